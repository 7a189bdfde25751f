/* SPDX-License-Identifier: MIT */
/* safetensors.c - read the header of a safetensors file: uint64 N, N bytes of JSON, then the arrays.
 *
 * Format: README of huggingface/safetensors. The arrays must cover what follows the header exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"

#define LONGEST 100000000 /* bytes of a header */

static const nami_exchange_type types[] = {
    {"F32", 32, NAMI_EXCHANGE_F32},      {"F64", 64, NAMI_EXCHANGE_F64},
    {"F16", 16, NAMI_EXCHANGE_F16},      {"BF16", 16, NAMI_EXCHANGE_BF16},
    {"BOOL", 8, NAMI_EXCHANGE_OTHER},    {"U8", 8, NAMI_EXCHANGE_OTHER},
    {"I8", 8, NAMI_EXCHANGE_OTHER},      {"F8_E5M2", 8, NAMI_EXCHANGE_OTHER},
    {"F8_E4M3", 8, NAMI_EXCHANGE_OTHER}, {"F8_E8M0", 8, NAMI_EXCHANGE_OTHER},
    {"I16", 16, NAMI_EXCHANGE_OTHER},    {"U16", 16, NAMI_EXCHANGE_OTHER},
    {"I32", 32, NAMI_EXCHANGE_OTHER},    {"U32", 32, NAMI_EXCHANGE_OTHER},
    {"I64", 64, NAMI_EXCHANGE_OTHER},    {"U64", 64, NAMI_EXCHANGE_OTHER},
    {"C64", 64, NAMI_EXCHANGE_OTHER},    {"F4", 4, NAMI_EXCHANGE_OTHER},
    {"F6_E2M3", 6, NAMI_EXCHANGE_OTHER}, {"F6_E3M2", 6, NAMI_EXCHANGE_OTHER},
};

static const nami_exchange_type *find_type(nami_json *j, const char *name)
{
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    (void)nami_json_fail(j, "a known dtype before this place");
    return NULL;
}

/* An entry of the header, and which of its members were there. */
typedef struct entry {
    nami_exchange_array array;
    int64_t begin, end;
    bool has_shape, has_offsets;
} entry;

static void take_shape(nami_json *j, entry *e)
{
    nami_json_take(j, '[');
    for (bool first = true; j->status == NAMI_OK && !nami_json_try(j, ']');
         first = false) {
        if (!first)
            nami_json_take(j, ',');
        int64_t extent = nami_json_whole(j);
        if (e->array.rank == NAMI_EXCHANGE_RANK)
            (void)nami_json_fail(j, "at most 8 dimensions");
        else
            e->array.dim[e->array.rank++] = extent;
    }
    e->has_shape = true;
}

static void take_offsets(nami_json *j, entry *e)
{
    nami_json_take(j, '[');
    e->begin = nami_json_whole(j);
    nami_json_take(j, ',');
    e->end = nami_json_whole(j);
    nami_json_take(j, ']');
    e->has_offsets = true;
}

static void take_member(nami_json *j, const char *name, entry *e)
{
    if (!strcmp(name, "dtype") && !e->array.type) {
        char *type = nami_json_string(j);
        e->array.type = find_type(j, type);
        nami_free(type);
    } else if (!strcmp(name, "shape") && !e->has_shape)
        take_shape(j, e);
    else if (!strcmp(name, "data_offsets") && !e->has_offsets)
        take_offsets(j, e);
    else
        (void)nami_json_fail(j, "dtype, shape and data_offsets, each once");
}

static void take_entry(nami_json *j, entry *e)
{
    bool first = true;
    nami_json_take(j, '{');
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first)) {
        take_member(j, name, e);
        nami_free(name);
    }
    if (j->status == NAMI_OK && !(e->array.type && e->has_shape && e->has_offsets))
        (void)nami_json_fail(j, "dtype, shape and data_offsets before this place");
}

/* Texts alone. */
static void take_metadata(nami_json *j)
{
    bool first = true;
    nami_json_take(j, '{');
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first)) {
        nami_free(name);
        nami_free(nami_json_string(j));
    }
}

/* Append an entry; its name moves on. */
static nami_status add(nami_exchange *x, entry *e, nami_extent buffer)
{
    const nami_exchange_file *p = &x->part[x->parts - 1];
    int64_t count = 0, bits = 0;
    nami_status status = nami_exchange_dense(p, &e->array, &count);
    const bool fits = !__builtin_mul_overflow(count, e->array.type->bits, &bits);
    if (status == NAMI_OK && (!fits || bits % 8 || e->begin > e->end ||
                              e->end > buffer.bytes || e->end - e->begin != bits / 8))
        status = nami_fail(
            NAMI_EINPUT,
            "%s: array %s: data_offsets are %lld and %lld, and its shape and type "
            "need %lld bytes of the %lld there are",
            p->path, e->array.name, (long long)e->begin, (long long)e->end,
            (long long)(bits / 8), (long long)buffer.bytes);
    if (status != NAMI_OK) {
        nami_free(e->array.name);
        return status;
    }
    return nami_exchange_add(x, &e->array,
                             (nami_extent){buffer.at + e->begin, e->end - e->begin}, 0);
}

static nami_status take_header(nami_exchange *x, nami_json *j, nami_extent buffer)
{
    bool first = true, metadata = false;
    nami_json_take(j, '{');
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first)) {
        entry e = {.array = {.name = name}};
        if (!strcmp(name, "__metadata__") && !metadata) {
            metadata = true;
            take_metadata(j);
            nami_free(name);
            continue;
        }
        take_entry(j, &e);
        if (j->status == NAMI_OK)
            j->status = add(x, &e, buffer);
        else
            nami_free(name);
    }
    while (j->status == NAMI_OK && j->at < j->end)
        if (*j->at++ != ' ')
            (void)nami_json_fail(j, "blanks to the end of the header");
    return j->status;
}

static int by_place(const void *a, const void *b)
{
    const nami_extent *p = a, *q = b;
    if (p->at != q->at)
        return p->at < q->at ? -1 : 1;
    return p->bytes < q->bytes ? -1 : p->bytes > q->bytes;
}

/* No holes, no overlaps, nothing behind. */
static nami_status check_cover(const nami_exchange *x, int from, nami_extent buffer)
{
    int n = x->arrays - from;
    int64_t at = buffer.at;
    bool good = true;
    nami_extent *e = nami_calloc(NAMI_MEM_OTHER, (size_t)n + 1, sizeof *e);
    for (int i = 0; i < n; i++) {
        const nami_exchange_array *a = &x->array[from + i];
        int64_t count = 1;
        for (int k = 0; k < a->rank; k++)
            count *= a->dim[k];
        e[i] = (nami_extent){a->at, count * a->type->bits / 8};
    }
    qsort(e, (size_t)n, sizeof *e, by_place);
    for (int i = 0; i < n; i++) {
        good = good && e[i].at == at;
        at = e[i].at + e[i].bytes;
    }
    nami_free(e);
    if (good && at == buffer.at + buffer.bytes)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT,
                     "%s: its arrays overlap, leave holes, or do not end with the file",
                     x->part[x->parts - 1].path);
}

nami_status nami_safetensors_open(nami_exchange *x)
{
    const nami_exchange_file *p = &x->part[x->parts - 1];
    const int from = x->arrays;
    uint64_t length = 0;
    NAMI_TRY(nami_exchange_get(p, 0, sizeof length, &length));
    if (length > LONGEST || 8 + (int64_t)length > p->bytes)
        return nami_fail(NAMI_EINPUT,
                         "%s: its header has %llu bytes: at most %d are allowed, and "
                         "the file has %lld",
                         p->path, (unsigned long long)length, LONGEST,
                         (long long)p->bytes);
    const nami_extent buffer = {8 + (int64_t)length, p->bytes - 8 - (int64_t)length};
    char *text = nami_alloc(NAMI_MEM_OTHER, (size_t)length);
    nami_json j = {.at = text, .end = text + length, .from = text, .path = p->path};
    nami_status status = nami_exchange_get(p, 8, (size_t)length, text);
    if (status == NAMI_OK)
        status = take_header(x, &j, buffer);
    if (status == NAMI_OK)
        status = check_cover(x, from, buffer);
    nami_free(text);
    return status;
}
