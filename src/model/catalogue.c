/* SPDX-License-Identifier: MIT */
/* catalogue.c - the parameters of a model: appended in order, found by name. */
#include <stdlib.h>
#include <string.h>

#include "model/family.h"

nami_param *nami_model_param(nami_model *m, int block, const char *name,
                             nami_shape shape, nami_init init, double deviation)
{
    const size_t n = (size_t)m->params; /* room doubles at powers of two */
    if ((n & (n - 1)) == 0)
        m->param = nami_realloc(NAMI_MEM_OTHER, m->param,
                                (n > 0 ? 2 * n : 1) * sizeof *m->param);
    nami_param *p = &m->param[m->params++];
    *p = (nami_param){.name = nami_strdup(name),
                      .shape = shape,
                      .init = init,
                      .deviation = deviation,
                      .decay = shape.rank > 1,
                      .block = block,
                      .uses = 1};
    return p;
}

/* A name and where it stands. */
struct nami_named {
    const char *name; /* the parameter's own */
    int param;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const nami_named *)a)->name, ((const nami_named *)b)->name);
}

nami_status nami_model_close(nami_model *m)
{
    double all = 0;
    m->named = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params + 1, sizeof *m->named);
    for (int i = 0; i < m->params; i++) {
        double count = 1;
        for (int d = 0; d < m->param[i].shape.rank; d++)
            count *= (double)m->param[i].shape.dim[d];
        all += count;
        m->named[i] = (nami_named){m->param[i].name, i};
    }
    qsort(m->named, (size_t)m->params, sizeof *m->named, by_name);
    if (all > NAMI_MODEL_MOST)
        return nami_fail(NAMI_EINPUT,
                         "the sizes in [model] make %.3g parameters of family %s; at "
                         "most %.3g can be counted",
                         all, m->family->name, NAMI_MODEL_MOST);
    return NAMI_OK;
}

int nami_model_seek(const nami_model *m, const char *name)
{
    const nami_named key = {.name = name};
    const nami_named *at =
        bsearch(&key, m->named, (size_t)m->params, sizeof key, by_name);
    return at ? at->param : -1;
}

int nami_model_find(const nami_model *m, const char *name)
{
    int i = nami_model_seek(m, name);
    NAMI_CHECK(i >= 0);
    return i;
}

int64_t nami_model_count(const nami_model *m)
{
    int64_t sum = 0;
    for (int i = 0; i < m->params; i++)
        sum += m->param[i].statistic ? 0 : nami_shape_count(&m->param[i].shape);
    return sum;
}

void nami_model_init(const nami_model *m, int i, uint64_t seed, int64_t from,
                     int64_t count, float *out)
{
    const nami_param *p = &m->param[i];
    uint64_t key = nami_mix(seed, nami_hash_name(p->name));
    for (int64_t e = 0; e < count; e++)
        out[e] = p->init == NAMI_INIT_ZERO ? 0.0F
                 : p->init == NAMI_INIT_ONE
                     ? 1.0F
                     : (float)(p->deviation * nami_normal(key, (uint64_t)(from + e)));
}
