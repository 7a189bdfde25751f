/* SPDX-License-Identifier: MIT */
/* bert_pair.c - which tokens of a text make a pair, and which of them are masked. */
#include "data/bert_pair.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"

/* What the numbers of a sample's key are for. */
enum { SHORT, LENGTH, CUT, RANDOM, DOCUMENT, PLACE, FRONT };
enum { POSITIONS = 100, CHANCE, WORD };

/* One of 0 to n - 1. */
static int64_t draw(uint64_t key, uint64_t index, int64_t n)
{
    int64_t i = (int64_t)(nami_uniform(key, index) * (double)n);
    return i < n ? i : n - 1;
}

/* --- offsets --- */

nami_status nami_offsets_get(nami_offsets *o, int64_t i, int64_t *out)
{
    NAMI_CHECK(i >= 0 && i <= o->count);
    if (o->whole) {
        *out = o->whole[i];
        return NAMI_OK;
    }
    int64_t from = i - i % NAMI_OFFSETS_BLOCK, n = o->count + 1 - from;
    if (!o->block || o->block_from != from) {
        if (!o->block)
            o->block = nami_alloc(NAMI_MEM_DATA, NAMI_OFFSETS_BLOCK * sizeof *o->block);
        o->block_from = -1;
        NAMI_TRY(nami_store_read_alone(o->store, o->name, from,
                                       n < NAMI_OFFSETS_BLOCK ? n : NAMI_OFFSETS_BLOCK,
                                       o->block));
        o->block_from = from;
    }
    *out = o->block[i - from];
    return NAMI_OK;
}

nami_status nami_offsets_find(nami_offsets *o, int64_t x, int64_t *out)
{
    int64_t low = 0, high = o->count; /* the part is in [low, high) */
    while (high - low > 1) {
        int64_t half = low + (high - low) / 2, start;
        NAMI_TRY(nami_offsets_get(o, half, &start));
        if (start <= x)
            low = half;
        else
            high = half;
    }
    *out = low;
    return NAMI_OK;
}

/* --- pairs --- */

/* Where a run of sentences starts. */
typedef struct start {
    /* token: the sentence's first, or one in a long sentence */
    int64_t sentence, token;
    int64_t document, first, end; /* its document's sentences are [first, end) */
} start;

typedef struct chooser {
    nami_offsets *sentence, *document;
    int64_t room; /* T - 3 */
    uint64_t key;
} chooser;

static nami_status find_start(const chooser *c, int64_t place, start *out)
{
    NAMI_TRY(nami_offsets_find(c->sentence, place, &out->sentence));
    NAMI_TRY(nami_offsets_get(c->sentence, out->sentence, &out->token));
    NAMI_TRY(nami_offsets_find(c->document, out->sentence, &out->document));
    NAMI_TRY(nami_offsets_get(c->document, out->document, &out->first));
    NAMI_TRY(nami_offsets_get(c->document, out->document + 1, &out->end));
    if (place - out->token >= c->room)
        out->token = place;
    return NAMI_OK;
}

/* Sentences from `s` on: at least `fewest`, then until there are `target` tokens; *end is behind the last. */
static nami_status extend(const chooser *c, const start *s, int64_t target, int fewest,
                          int64_t *end)
{
    for (*end = s->sentence + 1; *end < s->end; ++*end) {
        int64_t token;
        NAMI_TRY(nami_offsets_get(c->sentence, *end, &token));
        if (token - s->token >= target && *end - s->sentence >= fewest)
            break;
    }
    return NAMI_OK;
}

/* A token of another document than that of `s`; of one document, a token outside [s->token, behind). */
static nami_status other_place(const chooser *c, const start *s, int64_t behind,
                               int64_t *out)
{
    int64_t documents = c->document->count, sentence, first, end;
    if (documents == 1) {
        NAMI_TRY(nami_offsets_get(c->sentence, c->sentence->count, &end));
        *out = draw(c->key, PLACE, end - (behind - s->token));
        *out += *out >= s->token ? behind - s->token : 0;
        return NAMI_OK;
    }
    int64_t d = draw(c->key, DOCUMENT, documents - 1);
    d += d >= s->document;
    NAMI_TRY(nami_offsets_get(c->document, d, &sentence));
    NAMI_TRY(nami_offsets_get(c->sentence, sentence, &first));
    NAMI_TRY(nami_offsets_get(c->document, d + 1, &sentence));
    NAMI_TRY(nami_offsets_get(c->sentence, sentence, &end));
    *out = first + draw(c->key, PLACE, end - first);
    return NAMI_OK;
}

/* The second part from elsewhere, of `target` tokens or what its document has. */
static nami_status take_random(const chooser *c, const start *s, int64_t behind,
                               int64_t target, nami_bert_pair *out)
{
    int64_t place, last, end;
    start other;
    NAMI_TRY(other_place(c, s, behind, &place));
    NAMI_TRY(find_start(c, place, &other));
    NAMI_TRY(extend(c, &other, target, 1, &last));
    NAMI_TRY(nami_offsets_get(c->sentence, last, &end));
    if (other.token < s->token && end > s->token)
        end = s->token; /* the first part is not in the second */
    out->from[1] = other.token;
    out->count[1] = end - other.token;
    return NAMI_OK;
}

/* Shorten the longer part, then both, until they fit. */
static void shorten(const chooser *c, nami_bert_pair *p)
{
    int64_t keep[2] = {p->count[0], p->count[1]}, half = c->room / 2;
    if (keep[0] + keep[1] <= c->room)
        return;
    if (keep[1] <= half)
        keep[0] = c->room - keep[1];
    else if (keep[0] <= c->room - half)
        keep[1] = c->room - keep[0];
    else {
        keep[0] = c->room - half;
        keep[1] = half;
    }
    for (int i = 0; i < 2; i++) {
        int64_t excess = p->count[i] - keep[i];
        p->from[i] += draw(c->key, FRONT + (uint64_t)i, excess + 1);
        p->count[i] = keep[i];
    }
}

nami_status nami_bert_choose(nami_offsets *sentence, nami_offsets *document,
                             int64_t place, int64_t time, uint64_t key,
                             nami_bert_pair *out)
{
    chooser c = {sentence, document, time - 3, key};
    start s;
    int64_t target = c.room, end, middle, behind, total;
    NAMI_CHECK(time >= 5 && sentence->count >= 2);
    if (nami_uniform(key, SHORT) < 0.1)
        target = 2 + draw(key, LENGTH, c.room - 1);
    NAMI_TRY(find_start(&c, place, &s));
    if (s.sentence + 1 == s.end && s.sentence > s.first)
        NAMI_TRY(nami_offsets_get(sentence, --s.sentence, &s.token));
    NAMI_TRY(extend(&c, &s, target, 2, &end));
    int64_t sentences = end - s.sentence;
    int64_t cut = s.sentence + 1 + (sentences > 1 ? draw(key, CUT, sentences - 1) : 0);
    NAMI_TRY(nami_offsets_get(sentence, cut, &middle));
    NAMI_TRY(nami_offsets_get(sentence, end, &behind));
    NAMI_TRY(nami_offsets_get(sentence, sentence->count, &total));
    *out = (nami_bert_pair){.from = {s.token, middle},
                            .count = {middle - s.token, behind - middle}};
    bool elsewhere = document->count > 1 || behind - s.token < total;
    out->random = sentences == 1 || (elsewhere && nami_uniform(key, RANDOM) < 0.5);
    if (out->random)
        NAMI_TRY(take_random(&c, &s, behind, target - out->count[0], out));
    shorten(&c, out);
    return NAMI_OK;
}

/* --- masks --- */

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Positions that are masked, ascending; how many. */
static int64_t choose_positions(const nami_bert_tokens *t, const nami_bert_pair *pair,
                                uint64_t key, int32_t *position)
{
    int64_t words = pair->count[0] + pair->count[1];
    int64_t count = (15 * (words + 3) + 50) / 100; /* of all, the special ones too */
    count = count < 1 ? 1 : count;
    count = count > t->masked ? t->masked : count;
    count = count > words ? words : count;
    for (int64_t i = 0; i < count; i++) {
        int64_t word = (int64_t)nami_permute(nami_mix(key, POSITIONS), (uint64_t)i,
                                             (uint64_t)words);
        position[i] = (int32_t)(word < pair->count[0] ? 1 + word : 2 + word);
    }
    qsort(position, (size_t)count, sizeof *position, ascending);
    return count;
}

/* What the model sees at a masked position. */
static int32_t replacement(const nami_bert_tokens *t, uint64_t key, int32_t position,
                           int32_t token)
{
    double u = nami_uniform(nami_mix(key, CHANCE), (uint64_t)position);
    if (u < 0.8)
        return t->special[NAMI_WORDPIECE_MASK];
    if (u < 0.9)
        return token;
    return (int32_t)draw(nami_mix(key, WORD), (uint64_t)position, t->vocabulary);
}

void nami_bert_mask(const nami_bert_tokens *t, const nami_bert_pair *pair,
                    const uint16_t *a, const uint16_t *b, uint64_t key, int32_t *input,
                    int32_t *target)
{
    int32_t *token = input, *type = input + t->time;
    int32_t *position = target, *was = target + t->masked;
    int64_t at = 0;
    token[at++] = t->special[NAMI_WORDPIECE_CLS];
    for (int64_t i = 0; i < pair->count[0]; i++)
        token[at++] = a[i];
    token[at++] = t->special[NAMI_WORDPIECE_SEP];
    int64_t second = at;
    for (int64_t i = 0; i < pair->count[1]; i++)
        token[at++] = b[i];
    token[at++] = t->special[NAMI_WORDPIECE_SEP];
    NAMI_CHECK(at <= t->time);
    for (int64_t i = 0; i < t->time; i++) {
        type[i] = i >= second && i < at;
        if (i >= at)
            token[i] = t->special[NAMI_WORDPIECE_PAD];
    }
    input[2 * t->time] = (int32_t)at;
    int64_t count = choose_positions(t, pair, key, position);
    for (int64_t i = 0; i < t->masked; i++) {
        position[i] = i < count ? position[i] : 0;
        was[i] = i < count ? token[position[i]] : -1;
        if (i < count)
            token[position[i]] = replacement(t, key, position[i], was[i]);
    }
    target[2 * t->masked] = pair->random;
}
