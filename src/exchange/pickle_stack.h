/* SPDX-License-Identifier: MIT */
/* pickle_stack.h - the bytes that a pickle is read from, its table of values and the stack of their numbers.
 *
 * All local. Status: NAMI_EINPUT, with a sentence that says before which byte, unless the file itself cannot be read.
 */
#ifndef NAMI_EXCHANGE_PICKLE_STACK_H
#define NAMI_EXCHANGE_PICKLE_STACK_H

#include "exchange/pickle.h"

enum { NAMI_PICKLE_MARK = -1 }; /* on the stack: where a list of values begins */

/* Fail: `what` is wrong before the byte that would be read next. */
nami_status nami_pickle_damaged(const nami_pickle *p, const char *what);

/* The next `bytes` bytes; a little-endian number of `bytes` <= 4 of them; text up to a newline, without it. */
nami_status nami_pickle_take(nami_pickle *p, size_t bytes, void *out);
nami_status nami_pickle_take_number(nami_pickle *p, size_t bytes, uint32_t *out);
nami_status nami_pickle_take_line(nami_pickle *p, char line[128]);

/* Room for one more in a list of `count` numbers. */
nami_status nami_pickle_grow(const nami_pickle *p, int **list, int *room, int count);

/* Put value `v`, or a mark, on the stack; a new value, which is the last of the table; take one off. */
nami_status nami_pickle_push(nami_pickle *p, int v);
nami_status nami_pickle_make(nami_pickle *p, nami_pickle_kind kind, int64_t whole);
nami_status nami_pickle_pop(nami_pickle *p, int *out);

/* The value on top of the stack; NAMI_PICKLE_MARK when there is none. */
int nami_pickle_top(const nami_pickle *p);

/* Values behind the last mark; -1 when there is none. */
int nami_pickle_marked(const nami_pickle *p);

/* Whether `count` values, without a mark, lie on top of the stack. */
bool nami_pickle_has(const nami_pickle *p, int count);

/* Append value `v` to the items of `to`; the last `count` values of the stack, and take them off. */
nami_status nami_pickle_append(nami_pickle *p, int to, int v);
nami_status nami_pickle_move(nami_pickle *p, int to, int count);

/* BINPERSID: a storage from its tuple. GLOBAL: a name. REDUCE: what a name makes of a tuple. In pickle_make.c. */
nami_status nami_pickle_storage(nami_pickle *p);
nami_status nami_pickle_global(nami_pickle *p);
nami_status nami_pickle_reduce(nami_pickle *p);

#endif
