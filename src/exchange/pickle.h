/* SPDX-License-Identifier: MIT */
/* pickle.h - pickles of protocol 2 as torch.save writes them, read into a table of values; nothing is ever called.
 *
 * The only names a pickle may use are those of containers, tensors and storages; any other is refused.
 */
#ifndef NAMI_EXCHANGE_PICKLE_H
#define NAMI_EXCHANGE_PICKLE_H

#include "exchange/inner.h"

typedef enum nami_pickle_kind {
    NAMI_PICKLE_NONE,
    NAMI_PICKLE_WHOLE,   /* numbers and truth values; `whole` */
    NAMI_PICKLE_REAL,    /* never looked at */
    NAMI_PICKLE_TEXT,    /* `text` */
    NAMI_PICKLE_TUPLE,   /* items */
    NAMI_PICKLE_LIST,    /* items */
    NAMI_PICKLE_DICT,    /* items: key, value, key, value */
    NAMI_PICKLE_MAKER,   /* `whole`: a nami_maker; of a storage `type` */
    NAMI_PICKLE_STORAGE, /* items: "storage", maker, key, device, count, [view]; `whole`: byte of its data, -1: unknown */
    NAMI_PICKLE_TENSOR   /* items: storage, offset, shape, strides, ... */
} nami_pickle_kind;

typedef enum nami_maker {
    NAMI_MAKER_DICT,
    NAMI_MAKER_TENSOR,
    NAMI_MAKER_PARAMETER,
    NAMI_MAKER_SIZE,
    NAMI_MAKER_STORAGE
} nami_maker;

typedef struct nami_pickle_value {
    nami_pickle_kind kind;
    int items, room;
    int *item; /* [items] numbers of values */
    union {
        int64_t whole;
        char *text; /* owned */
    };
    const nami_exchange_type *type;
} nami_pickle_value;

/* Values of all pickles of a file. */
typedef struct nami_pickle {
    const nami_exchange_file *part;
    int64_t at, end; /* of the bytes still to be read */
    nami_pickle_value *value;
    int values, room;
    int *stack;
    int depth, stack_room;
    int *memo;
    int memos, memo_room;
    int64_t appended; /* items of all values */
    unsigned char buffer[1 << 12];
    int64_t buffered;  /* byte of the file where buffer starts */
    int64_t in_buffer; /* bytes in it */
} nami_pickle;

/* Read the pickle at p->at; *out is its value, p->at then lies behind it. Local. Status: NAMI_EINPUT. */
nami_status nami_pickle_read(nami_pickle *p, int *out);
void nami_pickle_free(nami_pickle *p);

/* Whether value `v` is of a kind and has at least `items` items. Local. */
bool nami_pickle_is(const nami_pickle *p, int v, nami_pickle_kind kind, int items);

/* Add the tensors of value `v`, whose storages have their place in `whole`. Local. Status: NAMI_EINPUT. */
nami_status nami_torch_add(nami_exchange *x, const nami_pickle *p, int v);

/* The key of a storage, and its elements. Local. */
const char *nami_torch_key(const nami_pickle *p, int storage);
int64_t nami_torch_count(const nami_pickle *p, int storage);
const nami_exchange_type *nami_torch_type(const nami_pickle *p, int storage);

#endif
