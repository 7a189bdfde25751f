/* SPDX-License-Identifier: MIT */
/* torch_legacy.c - files of torch.save before 1.6: pickles, then the storages one behind the other.
 *
 * Magic number, protocol 1001, sizes of types, the object, the keys of the storages; then for each key an int64, its
 * elements, and the elements (torch/serialization.py, _legacy_load).
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/pickle.h"

static const unsigned char magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                      0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* A storage that the object uses. */
typedef struct use {
    const char *key;
    int value;
} use;

typedef struct uses {
    use *use; /* [count], sorted by key */
    int count;
} uses;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const use *)a)->key, ((const use *)b)->key);
}

static uses find_uses(const nami_pickle *p)
{
    uses all = {
        .use = nami_calloc(NAMI_MEM_OTHER, (size_t)p->values + 1, sizeof *all.use)};
    for (int i = 0; i < p->values; i++)
        if (p->value[i].kind == NAMI_PICKLE_STORAGE)
            all.use[all.count++] = (use){nami_torch_key(p, i), i};
    qsort(all.use, (size_t)all.count, sizeof *all.use, by_key);
    return all;
}

static nami_status wrong_storage(const nami_pickle *p, const char *key)
{
    return nami_fail(NAMI_EINPUT,
                     "%s: storage %s is not used, twice there, cut short, or not as "
                     "long as its tensors say",
                     p->part->path, key);
}

/* The storage at p->at, which is that of `key`, to all that use it. */
static nami_status place(nami_pickle *p, const uses *all, const char *key)
{
    const use wanted = {.key = key};
    use *u = all->count > 0
                 ? bsearch(&wanted, all->use, (size_t)all->count, sizeof *u, by_key)
                 : NULL;
    int64_t count = 0, bytes = 0;
    NAMI_TRY(nami_exchange_get(p->part, p->at, sizeof count, &count));
    p->at += (int64_t)sizeof count;
    if (!u || count < 0)
        return wrong_storage(p, key);
    while (u > all->use && by_key(u - 1, u) == 0)
        u--;
    const int bits = nami_torch_type(p, u->value)->bits;
    if (__builtin_mul_overflow(count, bits / 8, &bytes) || bytes > p->end - p->at)
        return wrong_storage(p, key);
    for (; u < all->use + all->count && !strcmp(u->key, key); u++) {
        nami_pickle_value *v = &p->value[u->value];
        if (v->whole >= 0 || nami_torch_type(p, u->value)->bits != bits ||
            nami_torch_count(p, u->value) != count)
            return wrong_storage(p, key);
        v->whole = p->at;
    }
    p->at += bytes;
    return NAMI_OK;
}

static nami_status place_all(nami_pickle *p, int keys)
{
    uses all = find_uses(p);
    nami_status status = NAMI_OK;
    if (!nami_pickle_is(p, keys, NAMI_PICKLE_LIST, 0))
        status = nami_fail(NAMI_EINPUT, "%s: its storages have no keys", p->part->path);
    for (int i = 0; status == NAMI_OK && i < p->value[keys].items; i++) {
        int key = p->value[keys].item[i];
        if (nami_pickle_is(p, key, NAMI_PICKLE_TEXT, 0))
            status = place(p, &all, p->value[key].text);
        else
            status = nami_fail(NAMI_EINPUT, "%s: the key of a storage is no text",
                               p->part->path);
    }
    if (status == NAMI_OK && p->at != p->end)
        status = nami_fail(NAMI_EINPUT, "%s: %lld bytes follow its last storage",
                           p->part->path, (long long)(p->end - p->at));
    nami_free(all.use);
    return status;
}

static nami_status read_pickles(nami_pickle *p, int *object)
{
    unsigned char head[sizeof magic];
    int protocol, sizes, keys;
    NAMI_TRY(nami_exchange_get(p->part, 0, sizeof head, head));
    if (memcmp(head, magic, sizeof magic) != 0)
        return nami_fail(NAMI_EINPUT,
                         "%s is a pickle, but not one that torch.save wrote",
                         p->part->path);
    p->at = sizeof head;
    NAMI_TRY(nami_pickle_read(p, &protocol));
    if (!nami_pickle_is(p, protocol, NAMI_PICKLE_WHOLE, 0) ||
        p->value[protocol].whole != 1001)
        return nami_fail(NAMI_EINPUT,
                         "%s: expected protocol 1001 of torch.save's legacy format",
                         p->part->path);
    NAMI_TRY(nami_pickle_read(p, &sizes));
    NAMI_TRY(nami_pickle_read(p, object));
    NAMI_TRY(nami_pickle_read(p, &keys));
    return place_all(p, keys);
}

nami_status nami_torch_open_legacy(nami_exchange *x)
{
    const nami_exchange_file *part = &x->part[x->parts - 1];
    nami_pickle *p = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *p);
    int object = 0;
    p->part = part;
    p->end = part->bytes;
    nami_status status = read_pickles(p, &object);
    if (status == NAMI_OK)
        status = nami_torch_add(x, p, object);
    nami_pickle_free(p);
    nami_free(p);
    return status;
}
