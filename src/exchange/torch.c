/* SPDX-License-Identifier: MIT */
/* torch.c - tensors in what torch.save was given: a state_dict, or a dictionary with one. */
#include <string.h>

#include "base/memory.h"
#include "exchange/pickle.h"

const char *nami_torch_key(const nami_pickle *p, int storage)
{
    return p->value[p->value[storage].item[2]].text;
}

int64_t nami_torch_count(const nami_pickle *p, int storage)
{
    return p->value[p->value[storage].item[4]].whole;
}

const nami_exchange_type *nami_torch_type(const nami_pickle *p, int storage)
{
    return p->value[p->value[storage].item[1]].type;
}

/* Whole numbers of a tuple into list[8]; -1: it is none, or too long. */
static int take_list(const nami_pickle *p, int v, int64_t list[NAMI_EXCHANGE_RANK])
{
    const nami_pickle_value *tuple = &p->value[v];
    if (tuple->kind != NAMI_PICKLE_TUPLE || tuple->items > NAMI_EXCHANGE_RANK)
        return -1;
    for (int i = 0; i < tuple->items; i++) {
        if (!nami_pickle_is(p, tuple->item[i], NAMI_PICKLE_WHOLE, 0))
            return -1;
        list[i] = p->value[tuple->item[i]].whole;
    }
    return tuple->items;
}

/* A legacy storage may be a view (key, first element, elements) of another one. */
static bool view_of(const nami_pickle *p, int storage, int64_t *first, int64_t *count)
{
    const nami_pickle_value *s = &p->value[storage];
    int64_t all = *count = nami_torch_count(p, storage);
    *first = 0;
    if (s->items < 6 || p->value[s->item[5]].kind == NAMI_PICKLE_NONE)
        return true;
    const nami_pickle_value *view = &p->value[s->item[5]];
    if (view->kind != NAMI_PICKLE_TUPLE || view->items != 3 ||
        !nami_pickle_is(p, view->item[1], NAMI_PICKLE_WHOLE, 0) ||
        !nami_pickle_is(p, view->item[2], NAMI_PICKLE_WHOLE, 0))
        return false;
    *first = p->value[view->item[1]].whole;
    *count = p->value[view->item[2]].whole;
    return *first >= 0 && *count >= 0 && *first <= all && *count <= all - *first;
}

static nami_status no_tensor(const nami_pickle *p, const char *name)
{
    return nami_fail(NAMI_EINPUT,
                     "%s: array %s: its storage, offset, shape or strides are damaged "
                     "(at most 8 dimensions)",
                     p->part->path, name);
}

static nami_status add_tensor(nami_exchange *x, const nami_pickle *p, const char *name,
                              int tensor)
{
    const int *item = p->value[tensor].item;
    nami_exchange_array a = {0};
    int64_t count = 0, first, elements;
    if (!nami_pickle_is(p, item[0], NAMI_PICKLE_STORAGE, 5) ||
        p->value[item[0]].whole < 0 ||
        !nami_pickle_is(p, item[1], NAMI_PICKLE_WHOLE, 0) ||
        !view_of(p, item[0], &first, &elements))
        return no_tensor(p, name);
    a.rank = take_list(p, item[2], a.dim);
    if (a.rank < 0 || take_list(p, item[3], a.stride) != a.rank)
        return no_tensor(p, name);
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] < 0)
            return no_tensor(p, name);
    nami_exchange_array dense = a; /* their number must not overflow either */
    dense.name = (char *)(uintptr_t)name;
    NAMI_TRY(nami_exchange_dense(p->part, &dense, &count));
    a.name = nami_strdup(name);
    a.type = nami_torch_type(p, item[0]);
    const int64_t width = a.type->bits / 8;
    return nami_exchange_add(
        x, &a, (nami_extent){p->value[item[0]].whole + first * width, elements * width},
        p->value[item[1]].whole);
}

/* Member `key` of a dictionary that is a dictionary itself; -1: there is none. */
static int inner_dict(const nami_pickle *p, int dict, const char *key)
{
    const nami_pickle_value *d = &p->value[dict];
    for (int i = 0; i + 1 < d->items; i += 2)
        if (nami_pickle_is(p, d->item[i], NAMI_PICKLE_TEXT, 0) &&
            !strcmp(p->value[d->item[i]].text, key) &&
            nami_pickle_is(p, d->item[i + 1], NAMI_PICKLE_DICT, 0))
            return d->item[i + 1];
    return -1;
}

nami_status nami_torch_add(nami_exchange *x, const nami_pickle *p, int v)
{
    static const char *const key[] = {"state_dict", "model_state_dict", "model"};
    if (!nami_pickle_is(p, v, NAMI_PICKLE_DICT, 0))
        return nami_fail(NAMI_EINPUT, "%s: expected a dictionary of tensors",
                         p->part->path);
    for (int i = 0; i < 3; i++) {
        int inner = inner_dict(p, v, key[i]);
        if (inner >= 0) {
            v = inner;
            break;
        }
    }
    const nami_pickle_value *d = &p->value[v];
    for (int i = 0; i + 1 < d->items; i += 2)
        if (nami_pickle_is(p, d->item[i], NAMI_PICKLE_TEXT, 0) &&
            nami_pickle_is(p, d->item[i + 1], NAMI_PICKLE_TENSOR, 4))
            NAMI_TRY(add_tensor(x, p, p->value[d->item[i]].text, d->item[i + 1]));
    return NAMI_OK;
}
