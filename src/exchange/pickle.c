/* SPDX-License-Identifier: MIT */
/* pickle.c - the stack machine of Python's pickle (Lib/pickletools.py), protocol 2, as far as torch.save uses it. */
#include "exchange/pickle.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    MOST = 1 << 22,    /* values; a model of 100,000 tensors has two million */
    LONGEST = 1 << 24, /* bytes of a text */
    MARK = -1          /* on the stack */
};

static const nami_exchange_type storages[] = {
    {"FloatStorage", 32, NAMI_EXCHANGE_F32},
    {"DoubleStorage", 64, NAMI_EXCHANGE_F64},
    {"HalfStorage", 16, NAMI_EXCHANGE_F16},
    {"BFloat16Storage", 16, NAMI_EXCHANGE_BF16},
    {"LongStorage", 64, NAMI_EXCHANGE_OTHER},
    {"IntStorage", 32, NAMI_EXCHANGE_OTHER},
    {"ShortStorage", 16, NAMI_EXCHANGE_OTHER},
    {"CharStorage", 8, NAMI_EXCHANGE_OTHER},
    {"ByteStorage", 8, NAMI_EXCHANGE_OTHER},
    {"BoolStorage", 8, NAMI_EXCHANGE_OTHER},
    {"ComplexFloatStorage", 64, NAMI_EXCHANGE_OTHER},
    {"ComplexDoubleStorage", 128, NAMI_EXCHANGE_OTHER},
};

static const struct {
    const char *module, *name;
    nami_maker maker;
} makers[] = {
    {"collections", "OrderedDict", NAMI_MAKER_DICT},
    {"torch._utils", "_rebuild_tensor_v2", NAMI_MAKER_TENSOR},
    {"torch._utils", "_rebuild_tensor", NAMI_MAKER_TENSOR},
    {"torch._utils", "_rebuild_parameter", NAMI_MAKER_PARAMETER},
    {"torch", "Size", NAMI_MAKER_SIZE},
};

static nami_status damaged(const nami_pickle *p, const char *what)
{
    return nami_fail(NAMI_EINPUT, "%s: its pickle, before byte %lld: %s", p->part->path,
                     (long long)p->at, what);
}

bool nami_pickle_is(const nami_pickle *p, int v, nami_pickle_kind kind, int items)
{
    return p->value[v].kind == kind && p->value[v].items >= items;
}

/* --- bytes --- */

static nami_status take(nami_pickle *p, size_t bytes, void *out)
{
    if (bytes > (size_t)(p->end - p->at))
        return damaged(p, "it is cut short");
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

/* An unsigned number of `bytes` <= 4 bytes. */
static nami_status take_number(nami_pickle *p, size_t bytes, uint32_t *out)
{
    *out = 0;
    return take(p, bytes, out);
}

/* Text up to a newline. */
static nami_status take_line(nami_pickle *p, char line[128])
{
    for (int n = 0; n < 128; n++) {
        NAMI_TRY(take(p, 1, &line[n]));
        if (line[n] == '\n') {
            line[n] = '\0';
            return NAMI_OK;
        }
        if ((unsigned char)line[n] < 0x20 || line[n] == 0x7f)
            break;
    }
    return damaged(p, "a name that is none");
}

/* --- values and the stack --- */

static nami_status grow(const nami_pickle *p, int **list, int *room, int count)
{
    if (count < *room)
        return NAMI_OK;
    if (count >= MOST)
        return damaged(p, "it has more than 4194304 values");
    *room = *room ? 2 * *room : 16;
    *list = nami_realloc(NAMI_MEM_OTHER, *list, (size_t)*room * sizeof **list);
    return NAMI_OK;
}

static nami_status push(nami_pickle *p, int v)
{
    NAMI_TRY(grow(p, &p->stack, &p->stack_room, p->depth));
    p->stack[p->depth++] = v;
    return NAMI_OK;
}

/* A new value on the stack. */
static nami_status make(nami_pickle *p, nami_pickle_kind kind, int64_t whole)
{
    if (p->values == MOST)
        return damaged(p, "it has more than 4194304 values");
    if (p->values == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->value =
            nami_realloc(NAMI_MEM_OTHER, p->value, (size_t)p->room * sizeof *p->value);
    }
    p->value[p->values] = (nami_pickle_value){.kind = kind, .whole = whole};
    return push(p, p->values++);
}

static nami_status pop(nami_pickle *p, int *out)
{
    if (p->depth == 0 || p->stack[p->depth - 1] == MARK)
        return damaged(p, "a value is missing");
    *out = p->stack[--p->depth];
    return NAMI_OK;
}

static nami_status append(nami_pickle *p, int to, int v)
{
    nami_pickle_value *list = &p->value[to];
    if (++p->appended > 4 * (int64_t)MOST) /* one list can be copied many times */
        return damaged(p, "it has more than 16777216 items");
    NAMI_TRY(grow(p, &list->item, &list->room, list->items));
    list->item[list->items++] = v;
    return NAMI_OK;
}

/* Append the last `count` values of the stack to `to`, and take them off. */
static nami_status move(nami_pickle *p, int to, int count)
{
    for (int i = p->depth - count; i < p->depth; i++)
        NAMI_TRY(append(p, to, p->stack[i]));
    p->depth -= count;
    return NAMI_OK;
}

/* Values behind the last mark; -1 when there is none. */
static int marked(const nami_pickle *p)
{
    for (int i = p->depth - 1; i >= 0; i--)
        if (p->stack[i] == MARK)
            return p->depth - 1 - i;
    return -1;
}

/* --- what opcodes do --- */

/* A tuple of the last `count` values; -1: of those behind the mark, which goes too. */
static nami_status make_tuple(nami_pickle *p, int count)
{
    const bool mark = count < 0;
    if (mark)
        count = marked(p);
    if (count < 0 || count > p->depth)
        return damaged(p, "a tuple of too few values");
    for (int i = p->depth - count; i < p->depth; i++)
        if (p->stack[i] == MARK)
            return damaged(p, "a tuple of too few values");
    NAMI_TRY(make(p, NAMI_PICKLE_TUPLE, 0));
    const int tuple = p->stack[--p->depth];
    NAMI_TRY(move(p, tuple, count));
    p->depth -= mark;
    return push(p, tuple);
}

/* APPEND(S), SETITEM(S): move values into the container below them. */
static nami_status fill(nami_pickle *p, nami_pickle_kind kind, int count)
{
    const bool mark = count < 0;
    if (mark)
        count = marked(p);
    const int below = p->depth - count - mark - 1;
    if (count < 0 || below < 0 || p->stack[below] == MARK ||
        p->value[p->stack[below]].kind != kind ||
        (kind == NAMI_PICKLE_DICT && count % 2))
        return damaged(p, "items of no list or dictionary");
    for (int i = p->depth - count; i < p->depth; i++)
        if (p->stack[i] == MARK)
            return damaged(p, "items of no list or dictionary");
    NAMI_TRY(move(p, p->stack[below], count));
    p->depth -= mark;
    return NAMI_OK;
}

static nami_status make_text(nami_pickle *p, size_t width)
{
    uint32_t length;
    NAMI_TRY(take_number(p, width, &length));
    if (length > LONGEST || length > (uint64_t)(p->end - p->at))
        return damaged(p, "a text is cut short or above 16 MiB");
    NAMI_TRY(make(p, NAMI_PICKLE_NONE, 0));
    char *text = nami_alloc(NAMI_MEM_OTHER, (size_t)length + 1);
    text[length] = '\0';
    p->value[p->values - 1].kind = NAMI_PICKLE_TEXT;
    p->value[p->values - 1].text = text;
    NAMI_TRY(take(p, length, text));
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
    NAMI_TRY(take_number(p, 1, &bytes));
    if (bytes > sizeof digit)
        return damaged(p, "a number of more than 64 bits");
    NAMI_TRY(take(p, bytes, digit));
    if (bytes > 0 && digit[bytes - 1] & 0x80)
        memset(digit + bytes, 0xff, sizeof digit - bytes);
    int64_t whole;
    memcpy(&whole, digit, sizeof whole);
    return make(p, NAMI_PICKLE_WHOLE, whole);
}

static nami_status make_global(nami_pickle *p)
{
    char module[128], name[128];
    NAMI_TRY(take_line(p, module));
    NAMI_TRY(take_line(p, name));
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (!strcmp(makers[i].module, module) && !strcmp(makers[i].name, name))
            return make(p, NAMI_PICKLE_MAKER, makers[i].maker);
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
        if (!strcmp(module, "torch") && !strcmp(storages[i].name, name)) {
            NAMI_TRY(make(p, NAMI_PICKLE_MAKER, NAMI_MAKER_STORAGE));
            p->value[p->values - 1].type = &storages[i];
            return NAMI_OK;
        }
    return nami_fail(NAMI_EINPUT,
                     "%s: its pickle asks for %s.%s: only tensors in dictionaries are "
                     "read; save a state_dict",
                     p->part->path, module, name);
}

/* BINPERSID: a storage from its tuple. */
static nami_status make_storage(nami_pickle *p)
{
    int id = 0;
    NAMI_TRY(pop(p, &id));
    const nami_pickle_value *v = &p->value[id];
    const bool good = nami_pickle_is(p, id, NAMI_PICKLE_TUPLE, 5) && v->items <= 6 &&
                      nami_pickle_is(p, v->item[0], NAMI_PICKLE_TEXT, 0) &&
                      !strcmp(p->value[v->item[0]].text, "storage") &&
                      nami_pickle_is(p, v->item[1], NAMI_PICKLE_MAKER, 0) &&
                      p->value[v->item[1]].type &&
                      nami_pickle_is(p, v->item[2], NAMI_PICKLE_TEXT, 0) &&
                      nami_pickle_is(p, v->item[4], NAMI_PICKLE_WHOLE, 0) &&
                      p->value[v->item[4]].whole >= 0;
    if (!good)
        return damaged(p, "a storage that is none");
    NAMI_TRY(make(p, NAMI_PICKLE_STORAGE, -1));
    const int storage = p->values - 1;
    for (int i = 0; i < p->value[id].items; i++)
        NAMI_TRY(append(p, storage, p->value[id].item[i]));
    return NAMI_OK;
}

/* OrderedDict() or, of Python 2, OrderedDict([[key, value], ...]). */
static nami_status make_dict(nami_pickle *p, int arguments)
{
    NAMI_TRY(make(p, NAMI_PICKLE_DICT, 0));
    const int dict = p->values - 1;
    if (p->value[arguments].items == 0)
        return NAMI_OK;
    const int list = p->value[arguments].item[0];
    if (!nami_pickle_is(p, list, NAMI_PICKLE_LIST, 0))
        return damaged(p, "a dictionary of something else than a list");
    for (int i = 0; i < p->value[list].items; i++) {
        const int pair = p->value[list].item[i];
        if (p->value[pair].items != 2)
            return damaged(p, "a dictionary of something else than pairs");
        NAMI_TRY(append(p, dict, p->value[pair].item[0]));
        NAMI_TRY(append(p, dict, p->value[pair].item[1]));
    }
    return NAMI_OK;
}

static nami_status make_tensor(nami_pickle *p, int arguments)
{
    if (p->value[arguments].items < 4)
        return damaged(p, "a tensor that is none");
    NAMI_TRY(make(p, NAMI_PICKLE_TENSOR, 0));
    const int tensor = p->values - 1;
    for (int i = 0; i < 4; i++)
        NAMI_TRY(append(p, tensor, p->value[arguments].item[i]));
    return NAMI_OK;
}

static nami_status reduce(nami_pickle *p)
{
    int arguments = 0, maker = 0;
    NAMI_TRY(pop(p, &arguments));
    NAMI_TRY(pop(p, &maker));
    if (p->value[arguments].kind != NAMI_PICKLE_TUPLE ||
        p->value[maker].kind != NAMI_PICKLE_MAKER)
        return damaged(p, "a call of no name");
    switch ((nami_maker)p->value[maker].whole) {
    case NAMI_MAKER_DICT:
        return make_dict(p, arguments);
    case NAMI_MAKER_TENSOR:
        return make_tensor(p, arguments);
    case NAMI_MAKER_PARAMETER:
    case NAMI_MAKER_SIZE:
        if (p->value[arguments].items < 1)
            return damaged(p, "a call without arguments");
        return push(p, p->value[arguments].item[0]);
    default:
        return damaged(p, "a storage that is made from nothing");
    }
}

/* BUILD: the _metadata of a state_dict, which nobody needs. */
static nami_status build(nami_pickle *p)
{
    int state = 0;
    NAMI_TRY(pop(p, &state));
    if (p->depth == 0 || p->stack[p->depth - 1] == MARK ||
        p->value[p->stack[p->depth - 1]].kind != NAMI_PICKLE_DICT)
        return damaged(p, "a state of something else than a dictionary");
    return NAMI_OK;
}

/* Python numbers what it keeps in order. */
static nami_status put(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(take_number(p, width, &number));
    if (p->depth == 0 || p->stack[p->depth - 1] == MARK || (int64_t)number > p->memos)
        return damaged(p, "something is kept under a number out of order");
    NAMI_TRY(grow(p, &p->memo, &p->memo_room, p->memos));
    p->memo[number] = p->stack[p->depth - 1];
    p->memos += (int64_t)number == p->memos;
    return NAMI_OK;
}

static nami_status get(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(take_number(p, width, &number));
    if ((int64_t)number >= p->memos)
        return damaged(p, "something is wanted that was not kept");
    return push(p, p->memo[number]);
}

static nami_status make_number(nami_pickle *p, size_t width)
{
    uint32_t number;
    NAMI_TRY(take_number(p, width, &number));
    return make(p, NAMI_PICKLE_WHOLE, width == 4 ? (int32_t)number : (int64_t)number);
}

static nami_status make_real(nami_pickle *p)
{
    double big_endian;
    NAMI_TRY(take(p, sizeof big_endian, &big_endian));
    return make(p, NAMI_PICKLE_REAL, 0);
}

static nami_status take_protocol(nami_pickle *p)
{
    uint32_t protocol;
    NAMI_TRY(take_number(p, 1, &protocol));
    return protocol == 2 ? NAMI_OK : damaged(p, "another protocol than 2");
}

static nami_status unknown(const nami_pickle *p, unsigned char opcode)
{
    char what[64];
    (void)snprintf(what, sizeof what, "opcode 0x%02x, which torch.save does not write",
                   opcode);
    return damaged(p, what);
}

/* Opcodes that end in a number or text behind them. */
static nami_status step_reading(nami_pickle *p, unsigned char opcode)
{
    switch (opcode) {
    case 0x80:
        return take_protocol(p);
    case 'c':
        return make_global(p);
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
        return push(p, MARK);
    case '}':
        return make(p, NAMI_PICKLE_DICT, 0);
    case ']':
        return make(p, NAMI_PICKLE_LIST, 0);
    case ')':
        return make(p, NAMI_PICKLE_TUPLE, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(p, opcode - 0x84);
    case 't':
        return make_tuple(p, -1);
    case 0x88:
    case 0x89:
        return make(p, NAMI_PICKLE_WHOLE, opcode == 0x88);
    case 'N':
        return make(p, NAMI_PICKLE_NONE, 0);
    case 'Q':
        return make_storage(p);
    case 'R':
        return reduce(p);
    case 'b':
        return build(p);
    case 's':
        return fill(p, NAMI_PICKLE_DICT, 2);
    case 'u':
        return fill(p, NAMI_PICKLE_DICT, -1);
    case 'a':
        return fill(p, NAMI_PICKLE_LIST, 1);
    case 'e':
        return fill(p, NAMI_PICKLE_LIST, -1);
    default:
        return step_reading(p, opcode);
    }
}

nami_status nami_pickle_read(nami_pickle *p, int *out)
{
    unsigned char opcode = 0;
    p->depth = p->memos = 0;
    for (;;) {
        NAMI_TRY(take(p, 1, &opcode));
        if (opcode == '.')
            break;
        NAMI_TRY(step(p, opcode));
    }
    NAMI_TRY(pop(p, out));
    return p->depth == 0 ? NAMI_OK : damaged(p, "values are left over");
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
