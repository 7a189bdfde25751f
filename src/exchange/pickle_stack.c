/* SPDX-License-Identifier: MIT */
/* pickle_stack.c - bytes, values and the stack of a pickle, each within its bounds. */
#include "exchange/pickle_stack.h"

#include <string.h>

#include "base/memory.h"

enum { MOST = 1 << 22 }; /* values; a model of 100,000 tensors has two million */

nami_status nami_pickle_damaged(const nami_pickle *p, const char *what)
{
    return nami_fail(NAMI_EINPUT, "%s: its pickle, before byte %lld: %s", p->part->path,
                     (long long)p->at, what);
}

bool nami_pickle_is(const nami_pickle *p, int v, nami_pickle_kind kind, int items)
{
    return p->value[v].kind == kind && p->value[v].items >= items;
}

/* --- bytes --- */

nami_status nami_pickle_take(nami_pickle *p, size_t bytes, void *out)
{
    if (bytes > (size_t)(p->end - p->at))
        return nami_pickle_damaged(p, "it is cut short");
    if (bytes > sizeof p->buffer) {
        NAMI_TRY(nami_exchange_get(p->part, p->at, bytes, out));
        p->at += (int64_t)bytes;
        return NAMI_OK;
    }
    if (p->at < p->buffered || p->at + (int64_t)bytes > p->buffered + p->in_buffer) {
        const int64_t left = p->end - p->at, most = sizeof p->buffer;
        p->buffered = p->at;
        p->in_buffer = left < most ? left : most;
        NAMI_TRY(nami_exchange_get(p->part, p->at, (size_t)p->in_buffer, p->buffer));
    }
    memcpy(out, p->buffer + (p->at - p->buffered), bytes);
    p->at += (int64_t)bytes;
    return NAMI_OK;
}

nami_status nami_pickle_take_number(nami_pickle *p, size_t bytes, uint32_t *out)
{
    *out = 0;
    return nami_pickle_take(p, bytes, out);
}

nami_status nami_pickle_take_line(nami_pickle *p, char line[128])
{
    for (int n = 0; n < 128; n++) {
        NAMI_TRY(nami_pickle_take(p, 1, &line[n]));
        if (line[n] == '\n') {
            line[n] = '\0';
            return NAMI_OK;
        }
        if ((unsigned char)line[n] < 0x20 || line[n] == 0x7f)
            break;
    }
    return nami_pickle_damaged(p, "a name that is none");
}

/* --- values and the stack --- */

nami_status nami_pickle_grow(const nami_pickle *p, int **list, int *room, int count)
{
    if (count < *room)
        return NAMI_OK;
    if (count >= MOST)
        return nami_pickle_damaged(p, "it has more than 4194304 values");
    *room = *room ? 2 * *room : 16;
    *list = nami_realloc(NAMI_MEM_OTHER, *list, (size_t)*room * sizeof **list);
    return NAMI_OK;
}

nami_status nami_pickle_push(nami_pickle *p, int v)
{
    NAMI_TRY(nami_pickle_grow(p, &p->stack, &p->stack_room, p->depth));
    p->stack[p->depth++] = v;
    return NAMI_OK;
}

nami_status nami_pickle_make(nami_pickle *p, nami_pickle_kind kind, int64_t whole)
{
    if (p->values == MOST)
        return nami_pickle_damaged(p, "it has more than 4194304 values");
    if (p->values == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->value =
            nami_realloc(NAMI_MEM_OTHER, p->value, (size_t)p->room * sizeof *p->value);
    }
    p->value[p->values] = (nami_pickle_value){.kind = kind, .whole = whole};
    return nami_pickle_push(p, p->values++);
}

int nami_pickle_top(const nami_pickle *p)
{
    return p->depth > 0 ? p->stack[p->depth - 1] : NAMI_PICKLE_MARK;
}

nami_status nami_pickle_pop(nami_pickle *p, int *out)
{
    if (nami_pickle_top(p) == NAMI_PICKLE_MARK)
        return nami_pickle_damaged(p, "a value is missing");
    *out = p->stack[--p->depth];
    return NAMI_OK;
}

int nami_pickle_marked(const nami_pickle *p)
{
    for (int i = p->depth - 1; i >= 0; i--)
        if (p->stack[i] == NAMI_PICKLE_MARK)
            return p->depth - 1 - i;
    return -1;
}

bool nami_pickle_has(const nami_pickle *p, int count)
{
    if (count < 0 || count > p->depth)
        return false;
    for (int i = p->depth - count; i < p->depth; i++)
        if (p->stack[i] == NAMI_PICKLE_MARK)
            return false;
    return true;
}

nami_status nami_pickle_append(nami_pickle *p, int to, int v)
{
    nami_pickle_value *list = &p->value[to];
    if (++p->appended > 4 * (int64_t)MOST) /* one list can be copied many times */
        return nami_pickle_damaged(p, "it has more than 16777216 items");
    NAMI_TRY(nami_pickle_grow(p, &list->item, &list->room, list->items));
    list->item[list->items++] = v;
    return NAMI_OK;
}

nami_status nami_pickle_move(nami_pickle *p, int to, int count)
{
    for (int i = p->depth - count; i < p->depth; i++)
        NAMI_TRY(nami_pickle_append(p, to, p->stack[i]));
    p->depth -= count;
    return NAMI_OK;
}
