/* SPDX-License-Identifier: MIT */
/* verify.c - arrays of a data set against their checksums. */
#include "data/verify.h"

#include <string.h>

#include "base/memory.h"
#include "data/tokens.h"

#define BLOCK ((int64_t)1 << 20) /* bytes read at a time */

/* Checksum of elements [from, from+count) by blocks. */
static nami_status sum_part(const nami_verify *v, int64_t from, int64_t count,
                            uint32_t *sum)
{
    int64_t block = count < BLOCK / v->width ? count : BLOCK / v->width;
    void *data = nami_alloc(NAMI_MEM_DATA, (size_t)(block * v->width));
    nami_status status = NAMI_OK;
    *sum = 0;
    for (int64_t at = 0; at < count && status == NAMI_OK; at += block) {
        int64_t n = count - at < block ? count - at : block;
        status = nami_store_read_alone(v->store, v->array, from + at, n, data);
        if (status == NAMI_OK && v->check)
            status = v->check(v->context, from + at, n, data);
        *sum = nami_tokens_checksum(*sum, data, n, v->width);
    }
    nami_free(data);
    return status;
}

/* The checksum of the whole from the ranks' parts. */
static nami_status compare(const nami_verify *v, const uint32_t *sum, int size)
{
    uint32_t all = 0;
    char text[16];
    for (int r = 0; r < size; r++) {
        int64_t count = v->count * (r + 1) / size - v->count * r / size;
        all = nami_tokens_combine(all, sum[r], count * v->width);
    }
    if (strcmp(nami_tokens_sum_text(text, all), v->checksum) != 0)
        return nami_fail(NAMI_EINPUT,
                         "%s is damaged: its %s have checksum %s, expected %s", v->path,
                         v->what, text, v->checksum);
    return NAMI_OK;
}

nami_status nami_verify_array(const nami_verify *v, nami_comm *c)
{
    int rank = c ? nami_comm_rank(c) : 0, size = c ? nami_comm_size(c) : 1;
    int64_t from = v->count * rank / size, to = v->count * (rank + 1) / size;
    uint32_t own;
    NAMI_TRY(nami_comm_settle(c, sum_part(v, from, to - from, &own)));
    uint32_t *sum = nami_calloc(NAMI_MEM_OTHER, (size_t)size, sizeof *sum);
    sum[0] = own;
    if (c)
        nami_comm_gather(c, &own, sizeof own, sum);
    nami_status status = nami_comm_settle(c, compare(v, sum, size));
    nami_free(sum);
    return status;
}
