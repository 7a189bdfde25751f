/* SPDX-License-Identifier: MIT */
/* chain_load.h - weights of a file into a chain of stages. */
#ifndef TESTS_EXCHANGE_CHAIN_LOAD_H
#define TESTS_EXCHANGE_CHAIN_LOAD_H

#include "nami_test.h"

#include "exchange/exchange.h"
#include "model/chain.h"

/* Parameters that the file may lack stay as they are. */
static inline void chain_load(chain *c, const char *file)
{
    const nami_model *m = c->model;
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *data);
    for (int p = 0; p < m->params; p++) {
        data[p] = nami_calloc(NAMI_MEM_OTHER, (size_t)chain_count(c, p), sizeof **data);
        for (int64_t e = 0; e < chain_count(c, p); e++)
            data[p][e] = (float)chain_get(c->wide, c->param[p], e);
    }
    assert_ok(nami_exchange_load(NULL, file, m, data));
    for (int p = 0; p < m->params; p++) {
        for (int64_t e = 0; e < chain_count(c, p); e++)
            chain_set(c->wide, c->param[p], e, (double)data[p][e]);
        nami_free(data[p]);
    }
    nami_free(data);
    chain_pack(c);
}

#endif
