/* SPDX-License-Identifier: MIT */
/* flat.c - elements of an array, from memory or from the file. */
#include "data/flat.h"

#include "base/memory.h"
#include "data/data.h"

bool nami_flat_is_small(const nami_flat *f)
{
    return f->count <= NAMI_DATA_WHOLE / f->width;
}

static nami_status load_whole(nami_flat *f)
{
    void *data = nami_alloc(NAMI_MEM_DATA, (size_t)(f->count * f->width));
    nami_status status = nami_store_read_alone(f->store, f->array, 0, f->count, data);
    if (status == NAMI_OK)
        f->whole = data;
    else
        nami_free(data);
    return status;
}

nami_status nami_flat_get(nami_flat *f, int64_t from, int64_t count, int64_t room,
                          void **part, const void **out)
{
    NAMI_CHECK(from >= 0 && count <= room && from + count <= f->count);
    if (!f->whole && nami_flat_is_small(f))
        NAMI_TRY(load_whole(f));
    if (f->whole) {
        *out = (const char *)f->whole + from * f->width;
        return NAMI_OK;
    }
    if (!*part)
        *part = nami_alloc(NAMI_MEM_DATA, (size_t)(room * f->width));
    *out = *part;
    return nami_store_read_alone(f->store, f->array, from, count, *part);
}
