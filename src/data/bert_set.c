/* SPDX-License-Identifier: MIT */
/* bert_set.c - what makes a row of ready samples sound. */
#include "data/bert_set.h"

const char *const nami_bert_special[NAMI_WORDPIECE_SPECIALS] = {"pad", "unk", "cls",
                                                                "sep", "mask"};

static nami_status refuse(const char *path, int64_t index, const char *what,
                          int64_t value, int64_t bound)
{
    return nami_fail(NAMI_EINPUT, "%s: sample %lld has %s %lld, where %lld is too much",
                     path, (long long)index, what, (long long)value, (long long)bound);
}

/* The first of row[0..n) that is not below `bound`; n: none. */
static int64_t outside(const uint16_t *row, int64_t n, int64_t bound)
{
    int64_t i = 0;
    while (i < n && row[i] < bound)
        i++;
    return i;
}

/* The first of position[0..n) that stands in front of it too; n: none. */
static int64_t repeated(const uint16_t *position, int64_t n)
{
    uint64_t seen[1024] = {0}; /* a bit for each number */
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bit = UINT64_C(1) << position[i] % 64;
        if (seen[position[i] / 64] & bit)
            return i;
        seen[position[i] / 64] |= bit;
    }
    return n;
}

nami_status nami_bert_check_row(const nami_bert_shape *shape, const char *path,
                                int64_t index, const uint16_t *row, int64_t *used)
{
    const uint16_t *type = row + shape->time, *length = type + shape->time;
    const uint16_t *position = length + 1, *was = position + shape->slots;
    int64_t bad = outside(row, shape->time, shape->vocabulary);
    if (bad < shape->time)
        return refuse(path, index, "the token", row[bad], shape->vocabulary);
    bad = outside(type, shape->time, 2);
    if (bad < shape->time)
        return refuse(path, index, "the token type", type[bad], 2);
    if (*length < 1 || *length > shape->time)
        return nami_fail(NAMI_EINPUT,
                         "%s: sample %lld has %d tokens, where 1 to %lld are expected",
                         path, (long long)index, (int)*length, (long long)shape->time);
    *used = 0;
    while (*used < shape->slots && position[*used])
        ++*used;
    bad = outside(position, *used, *length);
    if (bad < *used)
        return refuse(path, index, "the masked position", position[bad], *length);
    bad = repeated(position, *used);
    if (bad < *used)
        return nami_fail(NAMI_EINPUT,
                         "%s: sample %lld has the masked position %d twice", path,
                         (long long)index, (int)position[bad]);
    bad = outside(was, *used, shape->vocabulary);
    if (bad < *used)
        return refuse(path, index, "the masked token", was[bad], shape->vocabulary);
    if (was[shape->slots] > 1)
        return refuse(path, index, "the next-sentence label", was[shape->slots], 2);
    return NAMI_OK;
}
