/* SPDX-License-Identifier: MIT */
/* pickle.c - the opcodes of Python's pickle (Lib/pickletools.py), protocol 2, as far as torch.save uses them. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/pickle_stack.h"

enum {
    LONGEST = 1 << 24, /* bytes of a text */
    MARKED = -1        /* as many values as lie behind the mark, which goes too */
};

/* A tuple of the last `count` values. */
static nami_status make_tuple(nami_pickle *p, int count)
{
    const bool mark = count == MARKED;
    if (mark)
        count = nami_pickle_marked(p);
    if (!nami_pickle_has(p, count))
        return nami_pickle_damaged(p, "a tuple of too few values");
    NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_TUPLE, 0));
    const int tuple = p->stack[--p->depth];
    NAMI_TRY(nami_pickle_move(p, tuple, count));
    p->depth -= mark;
    return nami_pickle_push(p, tuple);
}

/* APPEND(S), SETITEM(S): move the last `count` values into the container below them. */
static nami_status fill(nami_pickle *p, nami_pickle_kind kind, int count)
{
    const bool mark = count == MARKED;
    if (mark)
        count = nami_pickle_marked(p);
    const int below = p->depth - count - mark - 1;
    if (!nami_pickle_has(p, count) || below < 0 ||
        p->stack[below] == NAMI_PICKLE_MARK || p->value[p->stack[below]].kind != kind ||
        (kind == NAMI_PICKLE_DICT && count % 2))
        return nami_pickle_damaged(p, "items of no list or dictionary");
    NAMI_TRY(nami_pickle_move(p, p->stack[below], count));
    p->depth -= mark;
    return NAMI_OK;
}

static nami_status make_text(nami_pickle *p, size_t width)
{
    uint32_t length;
    NAMI_TRY(nami_pickle_take_number(p, width, &length));
    if (length > LONGEST || length > (uint64_t)(p->end - p->at))
        return nami_pickle_damaged(p, "a text is cut short or above 16 MiB");
    NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_NONE, 0));
    char *text = nami_alloc(NAMI_MEM_OTHER, (size_t)length + 1);
    text[length] = '\0';
    p->value[p->values - 1].kind = NAMI_PICKLE_TEXT;
    p->value[p->values - 1].text = text;
    NAMI_TRY(nami_pickle_take(p, length, text));
    for (uint32_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            text[i] = '\0'; /* such a text is no name, and is not printed */
            break;
        }
    return NAMI_OK;
}

/* LONG1; longer ones than 64 bits occur in the magic number alone. */
static nami_status make_long(nami_pickle *p)
{
    uint32_t bytes;
    unsigned char digit[8] = {0};
    NAMI_TRY(nami_pickle_take_number(p, 1, &bytes));
    if (bytes > sizeof digit)
        return nami_pickle_damaged(p, "a number of more than 64 bits");
    NAMI_TRY(nami_pickle_take(p, bytes, digit));
    if (bytes > 0 && digit[bytes - 1] & 0x80)
        memset(digit + bytes, 0xff, sizeof digit - bytes);
    int64_t whole;
    memcpy(&whole, digit, sizeof whole);
    return nami_pickle_make(p, NAMI_PICKLE_WHOLE, whole);
}

static nami_status make_number(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(nami_pickle_take_number(p, width, &number));
    return nami_pickle_make(p, NAMI_PICKLE_WHOLE,
                            width == 4 ? (int32_t)number : (int64_t)number);
}

static nami_status make_real(nami_pickle *p)
{
    double big_endian;
    NAMI_TRY(nami_pickle_take(p, sizeof big_endian, &big_endian));
    return nami_pickle_make(p, NAMI_PICKLE_REAL, 0);
}

/* BUILD: the _metadata of a state_dict, which nobody needs. */
static nami_status build(nami_pickle *p)
{
    int state = 0;
    NAMI_TRY(nami_pickle_pop(p, &state));
    const int of = nami_pickle_top(p);
    return of != NAMI_PICKLE_MARK && p->value[of].kind == NAMI_PICKLE_DICT
               ? NAMI_OK
               : nami_pickle_damaged(p, "a state of something else than a dictionary");
}

/* Python numbers what it keeps in order. */
static nami_status put(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(nami_pickle_take_number(p, width, &number));
    if (nami_pickle_top(p) == NAMI_PICKLE_MARK || (int64_t)number > p->memos)
        return nami_pickle_damaged(p, "something is kept under a number out of order");
    NAMI_TRY(nami_pickle_grow(p, &p->memo, &p->memo_room, p->memos));
    p->memo[number] = nami_pickle_top(p);
    p->memos += (int64_t)number == p->memos;
    return NAMI_OK;
}

static nami_status get(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(nami_pickle_take_number(p, width, &number));
    if ((int64_t)number >= p->memos)
        return nami_pickle_damaged(p, "something is wanted that was not kept");
    return nami_pickle_push(p, p->memo[number]);
}

static nami_status take_protocol(nami_pickle *p)
{
    uint32_t protocol;
    NAMI_TRY(nami_pickle_take_number(p, 1, &protocol));
    return protocol == 2 ? NAMI_OK : nami_pickle_damaged(p, "another protocol than 2");
}

static nami_status unknown(const nami_pickle *p, unsigned char opcode)
{
    char what[64];
    (void)snprintf(what, sizeof what, "opcode 0x%02x, which torch.save does not write",
                   opcode);
    return nami_pickle_damaged(p, what);
}

/* Opcodes that end in a number or text behind them. */
static nami_status step_reading(nami_pickle *p, unsigned char opcode)
{
    switch (opcode) {
    case 0x80:
        return take_protocol(p);
    case 'c':
        return nami_pickle_global(p);
    case 'q':
        return put(p, 1);
    case 'r':
        return put(p, 4);
    case 'h':
        return get(p, 1);
    case 'j':
        return get(p, 4);
    case 'X':
    case 'T':
        return make_text(p, 4);
    case 'U':
        return make_text(p, 1);
    case 'J':
        return make_number(p, 4);
    case 'K':
        return make_number(p, 1);
    case 'M':
        return make_number(p, 2);
    case 0x8a:
        return make_long(p);
    case 'G':
        return make_real(p);
    default:
        return unknown(p, opcode);
    }
}

static nami_status step(nami_pickle *p, unsigned char opcode)
{
    switch (opcode) {
    case '(':
        return nami_pickle_push(p, NAMI_PICKLE_MARK);
    case '}':
        return nami_pickle_make(p, NAMI_PICKLE_DICT, 0);
    case ']':
        return nami_pickle_make(p, NAMI_PICKLE_LIST, 0);
    case ')':
        return nami_pickle_make(p, NAMI_PICKLE_TUPLE, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(p, opcode - 0x84);
    case 't':
        return make_tuple(p, MARKED);
    case 0x88:
    case 0x89:
        return nami_pickle_make(p, NAMI_PICKLE_WHOLE, opcode == 0x88);
    case 'N':
        return nami_pickle_make(p, NAMI_PICKLE_NONE, 0);
    case 'Q':
        return nami_pickle_storage(p);
    case 'R':
        return nami_pickle_reduce(p);
    case 'b':
        return build(p);
    case 's':
        return fill(p, NAMI_PICKLE_DICT, 2);
    case 'u':
        return fill(p, NAMI_PICKLE_DICT, MARKED);
    case 'a':
        return fill(p, NAMI_PICKLE_LIST, 1);
    case 'e':
        return fill(p, NAMI_PICKLE_LIST, MARKED);
    default:
        return step_reading(p, opcode);
    }
}

nami_status nami_pickle_read(nami_pickle *p, int *out)
{
    unsigned char opcode = 0;
    p->depth = p->memos = 0;
    for (;;) {
        NAMI_TRY(nami_pickle_take(p, 1, &opcode));
        if (opcode == '.')
            break;
        NAMI_TRY(step(p, opcode));
    }
    NAMI_TRY(nami_pickle_pop(p, out));
    return p->depth == 0 ? NAMI_OK : nami_pickle_damaged(p, "values are left over");
}

void nami_pickle_free(nami_pickle *p)
{
    for (int i = 0; i < p->values; i++) {
        if (p->value[i].kind == NAMI_PICKLE_TEXT)
            nami_free(p->value[i].text);
        nami_free(p->value[i].item);
    }
    nami_free(p->value);
    nami_free(p->stack);
    nami_free(p->memo);
}
