/* SPDX-License-Identifier: MIT */
/* bert.c - samples of an opened data set for BERT. */
#include "data/bert.h"

#include "base/memory.h"
#include "base/rng.h"
#include "data/bert_inner.h"
#include "data/images.h"
#include "data/tokens.h"

int64_t nami_bert_masked(int64_t time)
{
    return (15 * time + 99) / 100;
}

int64_t nami_bert_samples(const nami_bert *d)
{
    return nami_bert_is_text(d) ? d->elements / (d->tokens.time - 3) : d->elements;
}

int64_t nami_bert_vocabulary(const nami_bert *d)
{
    return d->vocabulary;
}

int64_t nami_bert_used(const nami_bert *d)
{
    if (nami_bert_is_text(d))
        return nami_bert_masked(d->tokens.time);
    return d->used > 0 ? d->used : 1;
}

const char *nami_bert_identity(const nami_bert *d)
{
    return d->identity;
}

const char *nami_bert_wordpiece(const nami_bert *d)
{
    return d->wordpiece;
}

/* --- read --- */

nami_status nami_bert_check_tokens(void *context, int64_t from, int64_t count,
                                   const void *data)
{
    const nami_bert *d = context;
    int64_t bad = nami_tokens_outside(data, count, 2, d->tokens.vocabulary);
    if (bad < 0)
        return NAMI_OK;
    return nami_fail(
        NAMI_EINPUT, "%s: token %lld is %d, outside the vocabulary of %lld (%s)",
        d->path, (long long)(from + bad), (int)((const uint16_t *)data)[bad],
        (long long)d->tokens.vocabulary,
        d->tokens.vocabulary < d->vocabulary ? "the model's" : "its own");
}

/* `count` numbers from `from` on, into buffer `which` of `room` numbers where a set is not whole. */
static nami_status get(nami_bert *d, int64_t from, int64_t count, int64_t room,
                       int which, const uint16_t **out)
{
    const void *found = NULL;
    nami_status status =
        nami_flat_get(&d->flat, from, count, room, &d->part[which], &found);
    *out = found;
    return status;
}

/* The pair at `place` into input and target, both there. */
static nami_status read_pair(nami_bert *d, int64_t place, uint64_t key, int32_t *input,
                             int32_t *target)
{
    nami_bert_pair pair;
    const uint16_t *part[2];
    NAMI_TRY(nami_bert_choose(&d->sentence, &d->document, place, d->tokens.time, key,
                              &pair));
    for (int i = 0; i < 2; i++) {
        NAMI_TRY(get(d, pair.from[i], pair.count[i], d->tokens.time - 3, i, &part[i]));
        NAMI_TRY(nami_bert_check_tokens(d, pair.from[i], pair.count[i], part[i]));
    }
    nami_bert_mask(&d->tokens, &pair, part[0], part[1], key, input, target);
    return NAMI_OK;
}

/* Ready sample `index` into input and target, both there. */
static nami_status read_ready(nami_bert *d, int64_t index, int32_t *input,
                              int32_t *target)
{
    const nami_bert_tokens *t = &d->tokens;
    int64_t row = nami_bert_row_of(d), used = 0;
    const uint16_t *x;
    NAMI_TRY(get(d, index * row, row, row, 0, &x));
    nami_bert_shape shape = {t->time, d->stored_masked, t->vocabulary};
    NAMI_TRY(nami_bert_check_row(&shape, d->path, index, x, &used));
    if (used > t->masked)
        return nami_fail(NAMI_EINPUT,
                         "%s: sample %lld has more masked positions than announced",
                         d->path, (long long)index);
    const uint16_t *position = x + 2 * t->time + 1, *was = position + d->stored_masked;
    for (int64_t i = 0; i < 2 * t->time + 1; i++)
        input[i] = x[i];
    for (int64_t i = 0; i < t->masked; i++) {
        target[i] = i < used ? position[i] : 0;
        target[t->masked + i] = i < used ? was[i] : -1;
    }
    target[2 * t->masked] = x[row - 1];
    return NAMI_OK;
}

/* Window or sample, with room for what the caller does not want. */
static nami_status read_any(nami_bert *d, int64_t at, uint64_t key, int32_t *input,
                            int32_t *target)
{
    int64_t words = 2 * d->tokens.time + 1, targets = 2 * d->tokens.masked + 1;
    int32_t *spare = NULL;
    if (!input || !target)
        spare = nami_alloc(NAMI_MEM_OTHER, (size_t)(words + targets) * sizeof *spare);
    if (!input)
        input = spare;
    if (!target)
        target = spare + words;
    nami_status status = nami_bert_is_text(d) ? read_pair(d, at, key, input, target)
                                              : read_ready(d, at, input, target);
    nami_free(spare);
    return status;
}

nami_status nami_bert_read(nami_bert *d, uint64_t key, int64_t counter, int32_t *input,
                           int32_t *target)
{
    int64_t at = nami_bert_is_text(d)
                     ? nami_window(d->elements + 1, d->tokens.time - 3, key, counter)
                     : nami_image_index(d->elements, key, counter);
    uint64_t own = nami_mix(nami_mix(key, nami_hash_name("bert")), (uint64_t)counter);
    return read_any(d, at, own, input, target);
}

nami_status nami_bert_read_fixed(nami_bert *d, int64_t index, int32_t *input,
                                 int32_t *target)
{
    NAMI_CHECK(index >= 0 && index < nami_bert_samples(d));
    uint64_t own = nami_mix(nami_hash_name("bert validation"), (uint64_t)index);
    int64_t at = nami_bert_is_text(d) ? index * (d->tokens.time - 3) : index;
    return read_any(d, at, own, input, target);
}
