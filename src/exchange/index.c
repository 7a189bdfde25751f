/* SPDX-License-Identifier: MIT */
/* index.c - models in several files: NAME.index.json says which file holds which array. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"

#define LONGEST 100000000 /* bytes of an index */

/* What the index says of an array. */
typedef struct claim {
    char *name, *file; /* owned */
} claim;

typedef struct claims {
    claim *claim; /* [count] */
    int count, room;
} claims;

static void free_claims(claims *all)
{
    for (int i = 0; i < all->count; i++) {
        nami_free(all->claim[i].name);
        nami_free(all->claim[i].file);
    }
    nami_free(all->claim);
}

static void take_claim(nami_json *j, claims *all, char *name)
{
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        all->claim = nami_realloc(NAMI_MEM_OTHER, all->claim,
                                  (size_t)all->room * sizeof *all->claim);
    }
    char *file = nami_json_string(j);
    all->claim[all->count++] = (claim){name, file};
    if (file && (!file[0] || strchr(file, '/')))
        (void)nami_json_fail(j, "a file beside the index before this place");
}

static void take_map(nami_json *j, claims *all)
{
    bool first = true;
    nami_json_take(j, '{');
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first))
        take_claim(j, all, name);
}

static nami_status take_index(nami_json *j, claims *all)
{
    bool first = true;
    nami_json_take(j, '{');
    for (char *name = nami_json_member(j, &first); name;
         name = nami_json_member(j, &first)) {
        if (!strcmp(name, "weight_map") && all->count == 0)
            take_map(j, all);
        else
            nami_json_skip(j);
        nami_free(name);
    }
    if (j->status == NAMI_OK && all->count == 0)
        (void)nami_json_fail(j, "a weight_map with arrays before this place");
    return j->status;
}

static nami_status read_claims(const char *path, claims *all)
{
    nami_exchange whole = {0};
    nami_status status = nami_exchange_raw(&whole, path);
    const nami_exchange_file *p = whole.part;
    char *text = NULL;
    if (status == NAMI_OK && p->bytes > LONGEST)
        status = nami_fail(NAMI_EINPUT, "%s: an index of %lld bytes: at most %d", path,
                           (long long)p->bytes, LONGEST);
    if (status == NAMI_OK) {
        text = nami_alloc(NAMI_MEM_OTHER, (size_t)p->bytes);
        status = nami_exchange_get(p, 0, (size_t)p->bytes, text);
    }
    if (status == NAMI_OK) {
        nami_json j = {.at = text, .end = text + p->bytes, .from = text, .path = path};
        status = take_index(&j, all);
    }
    nami_free(text);
    nami_exchange_release(&whole);
    return status;
}

static int by_file(const void *a, const void *b)
{
    const claim *p = a, *q = b;
    int order = strcmp(p->file, q->file);
    return order ? order : strcmp(p->name, q->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const nami_exchange_array *)a)->name,
                  ((const nami_exchange_array *)b)->name);
}

/* Open the file of claims [0, n), whose arrays must be just these. */
static nami_status open_file(nami_exchange *x, const char *path, const claim *c, int n)
{
    const char *slash = strrchr(path, '/');
    const int from = x->arrays;
    if (x->parts == NAMI_EXCHANGE_PARTS)
        return nami_fail(NAMI_EINPUT, "%s names more than %d files", path,
                         NAMI_EXCHANGE_PARTS);
    char *full =
        nami_strf("%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, c->file);
    nami_status status = nami_exchange_part(x, full);
    nami_free(full);
    if (status != NAMI_OK)
        return status;
    if (x->arrays - from != n)
        return nami_fail(NAMI_EINPUT, "%s: %s has %d arrays, and the index names %d",
                         path, c->file, x->arrays - from, n);
    qsort(x->array + from, (size_t)n, sizeof *x->array, by_name);
    for (int i = 0; i < n; i++)
        if (strcmp(x->array[from + i].name, c[i].name) != 0)
            return nami_fail(NAMI_EINPUT, "%s: array %s is not in %s", path, c[i].name,
                             c->file);
    return NAMI_OK;
}

nami_status nami_index_open(nami_exchange *x, const char *path)
{
    claims all = {0};
    nami_status status = read_claims(path, &all);
    if (status == NAMI_OK && all.count > 0)
        qsort(all.claim, (size_t)all.count, sizeof *all.claim, by_file);
    for (int i = 0, n; i < all.count && status == NAMI_OK; i += n) {
        for (n = 1;
             i + n < all.count && !strcmp(all.claim[i].file, all.claim[i + n].file);)
            n++;
        status = open_file(x, path, &all.claim[i], n);
    }
    free_claims(&all);
    return status;
}
