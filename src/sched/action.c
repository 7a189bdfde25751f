/* SPDX-License-Identifier: MIT */
/* action.c - the semantics table, and the text form of one action. */
#include "sched/action.h"

#include <string.h>

#include "base/memory.h"

const nami_semantics nami_semantics_table[NAMI_KINDS] = {
    [NAMI_F] = {.name = "F",
                .letter = 'F',
                .compute = true,
                .per_unit = true,
                .needs_input = true,
                .makes_output = true,
                .opens_saved = true,
                .reads_weights = true},
    [NAMI_B] = {.name = "B",
                .letter = 'B',
                .compute = true,
                .per_unit = true,
                .needs_gradient = true,
                .makes_gradient = true,
                .closes_saved = true,
                .reads_weights = true,
                .adds_gradient = true},
    [NAMI_BI] = {.name = "I",
                 .letter = 'I',
                 .compute = true,
                 .per_unit = true,
                 .needs_gradient = true,
                 .makes_gradient = true,
                 .reads_weights = true},
    [NAMI_BW] = {.name = "W",
                 .letter = 'W',
                 .compute = true,
                 .per_unit = true,
                 .closes_saved = true,
                 .adds_gradient = true},
    [NAMI_R] = {.name = "R",
                .letter = 'R',
                .compute = true,
                .per_unit = true,
                .reads_weights = true},
    [NAMI_SEND_F] = {.name = "SEND_F", .sends = true, .per_unit = true},
    [NAMI_RECV_F] = {.name = "RECV_F", .receives = true, .per_unit = true},
    [NAMI_SEND_B] = {.name = "SEND_B", .sends = true, .per_unit = true},
    [NAMI_RECV_B] = {.name = "RECV_B", .receives = true, .per_unit = true},
    [NAMI_REDUCE] = {.name = "REDUCE"},
    [NAMI_REDUCE_SCATTER] = {.name = "REDUCE_SCATTER"},
    [NAMI_GATHER] = {.name = "GATHER"},
    [NAMI_UPDATE] = {.name = "UPDATE"},
    [NAMI_DRAIN] = {.name = "DRAIN"},
};

void nami_list_add(nami_list *l, nami_action a)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? 2 * l->capacity : 16;
        l->item = nami_realloc(NAMI_MEM_OTHER, l->item,
                               (size_t)l->capacity * sizeof *l->item);
    }
    l->item[l->count++] = a;
}

void nami_list_free(nami_list *l)
{
    nami_free(l->item);
    *l = (nami_list){0};
}

void nami_action_print(nami_action a, nami_text *out)
{
    nami_text_add(out, "%d%s", a.stage, nami_semantics_of(a.kind)->name);
    if (a.unit >= 0)
        nami_text_add(out, "%d", a.unit);
    if (a.slice > 0)
        nami_text_add(out, "/%d", a.slice);
    if (a.copy > 0)
        nami_text_add(out, "@%d", a.copy);
    if (a.version > 0)
        nami_text_add(out, "v%d", a.version);
    if (a.flags & NAMI_FLAG_PAIR)
        nami_text_add(out, "+");
}

/* A number of digits at *s, at most `most`, into *out; moves *s behind it. */
static bool read_number(const char **s, int64_t most, int64_t *out)
{
    int64_t n = 0;
    const char *c = *s;
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        n = 10 * n + (*c - '0');
        if (n > most)
            return false;
    }
    *s = c;
    *out = n;
    return true;
}

/* The kind whose name stands at *s, the longest one that fits; moves *s behind it. */
static int read_kind(const char **s)
{
    size_t length = strspn(*s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    for (int kind = 0; kind < NAMI_KINDS; kind++) {
        const char *name = nami_semantics_table[kind].name;
        if (strlen(name) == length && strncmp(*s, name, length) == 0) {
            *s += length;
            return kind;
        }
    }
    if (length == 2 &&
        strncmp(*s, "BW", 2) == 0) { /* torch's name of a full backward */
        *s += length;
        return NAMI_B;
    }
    return -1;
}

/* The optional tail "/slice@copy v version +". */
static bool read_tail(const char *s, nami_action *a)
{
    int64_t n;
    if (*s == '/') {
        s++;
        if (!read_number(&s, UINT16_MAX, &n))
            return false;
        a->slice = (uint16_t)n;
    }
    if (*s == '@') {
        s++;
        if (!read_number(&s, 1, &n))
            return false;
        a->copy = (uint8_t)n;
    }
    if (*s == 'v') {
        s++;
        if (!read_number(&s, UINT8_MAX, &n))
            return false;
        a->version = (uint8_t)n;
    }
    if (*s == '+') {
        s++;
        a->flags = NAMI_FLAG_PAIR;
    }
    return *s == '\0';
}

nami_status nami_action_parse(const char *word, nami_action *out)
{
    const char *s = word;
    int64_t stage, unit = -1;
    nami_action a = {0};
    if (!read_number(&s, UINT16_MAX - 1, &stage))
        return nami_fail(
            NAMI_EINPUT,
            "\"%.40s\": an action starts with its stage, 0 to 65534, as in 2F0", word);
    int kind = read_kind(&s);
    if (kind < 0)
        return nami_fail(NAMI_EINPUT,
                         "\"%.40s\": after the stage comes F, B, I, W, R, SEND_F, "
                         "RECV_F, SEND_B, RECV_B, "
                         "REDUCE, REDUCE_SCATTER, GATHER, UPDATE or DRAIN",
                         word);
    if (nami_semantics_table[kind].per_unit || (*s >= '0' && *s <= '9')) {
        if (!read_number(&s, INT32_MAX - 1, &unit))
            return nami_fail(
                NAMI_EINPUT,
                "\"%.40s\": the number of the micro-batch is missing or too large",
                word);
    }
    a.kind = (uint8_t)kind;
    a.stage = (uint16_t)stage;
    a.unit = (int32_t)unit;
    if (!read_tail(s, &a))
        return nami_fail(NAMI_EINPUT,
                         "\"%.40s\": after the micro-batch only /slice, @copy (0 or "
                         "1), vversion and + may "
                         "follow, in this order",
                         word);
    *out = a;
    return NAMI_OK;
}
