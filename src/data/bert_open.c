/* SPDX-License-Identifier: MIT */
/* bert_open.c - open a data set for BERT: its attributes, its shapes, its checksums. */
#include <string.h>

#include "base/memory.h"
#include "data/bert_inner.h"
#include "data/data.h"
#include "data/verify.h"

/* --- attributes and shapes --- */

/* An array must have this type and these extents. */
static nami_status check_array(nami_bert *d, const char *name, nami_store_type want,
                               int rank, const int64_t *size)
{
    nami_store_type type;
    int have;
    int64_t extent[4];
    NAMI_TRY(nami_store_shape(d->store, name, &type, &have, extent));
    bool ok = have == rank && type == want;
    for (int i = 0; ok && i < rank; i++)
        ok = extent[i] == size[i];
    if (!ok)
        return nami_fail(NAMI_EINPUT,
                         "%s: array %s is missing or has another shape or type than "
                         "its attributes announce",
                         d->path, name);
    return NAMI_OK;
}

static nami_status get_specials(nami_bert *d)
{
    for (int i = 0; i < NAMI_WORDPIECE_SPECIALS; i++) {
        int64_t number;
        NAMI_TRY(nami_store_get_int(d->store, nami_bert_special[i], &number));
        if (number < 0 || number >= d->tokens.vocabulary)
            return nami_fail(NAMI_EINPUT,
                             "%s: its token %s is %lld, outside the vocabulary of "
                             "%lld",
                             d->path, nami_bert_special[i], (long long)number,
                             (long long)d->tokens.vocabulary);
        d->tokens.special[i] = (uint16_t)number;
    }
    return NAMI_OK;
}

static nami_status check_text(nami_bert *d)
{
    int64_t *sentences = &d->sentence.count, *documents = &d->document.count;
    NAMI_TRY(get_specials(d));
    NAMI_TRY(nami_store_get_int(d->store, "tokens", &d->elements));
    NAMI_TRY(nami_store_get_int(d->store, "sentences", sentences));
    NAMI_TRY(nami_store_get_int(d->store, "documents", documents));
    NAMI_TRY(nami_store_get_text(d->store, "sentence_checksum", &d->offset_sum[0]));
    NAMI_TRY(nami_store_get_text(d->store, "document_checksum", &d->offset_sum[1]));
    if (*sentences < 2 || *sentences > d->elements || *documents < 1 ||
        *documents > *sentences || d->elements > INT64_MAX / 16)
        return nami_fail(NAMI_EINPUT,
                         "%s: %lld tokens in %lld sentences of %lld documents are no "
                         "text of two sentences or more",
                         d->path, (long long)d->elements, (long long)*sentences,
                         (long long)*documents);
    if (d->elements < d->tokens.time - 3)
        return nami_fail(NAMI_EINPUT, "%s has %lld tokens, too few for samples of %lld",
                         d->path, (long long)d->elements, (long long)d->tokens.time);
    d->sentence.name = "/sentences";
    d->document.name = "/documents";
    NAMI_TRY(check_array(d, "/tokens", NAMI_STORE_U16, 1, &d->elements));
    NAMI_TRY(
        check_array(d, "/sentences", NAMI_STORE_I64, 1, &(int64_t){*sentences + 1}));
    NAMI_TRY(
        check_array(d, "/documents", NAMI_STORE_I64, 1, &(int64_t){*documents + 1}));
    d->identity = nami_strf("%s sentences %s documents %s tokens:%lld vocabulary:%lld",
                            d->sum, d->offset_sum[0], d->offset_sum[1],
                            (long long)d->elements, (long long)d->vocabulary);
    return NAMI_OK;
}

static nami_status check_ready(nami_bert *d)
{
    int64_t time, used;
    NAMI_TRY(nami_store_get_int(d->store, "samples", &d->elements));
    NAMI_TRY(nami_store_get_int(d->store, "time", &time));
    NAMI_TRY(nami_store_get_int(d->store, "slots", &d->stored_masked));
    NAMI_TRY(nami_store_get_int(d->store, "masked", &used));
    if (d->elements < 1 || time < 1 || time > NAMI_BERT_TIME || d->stored_masked < 1 ||
        d->stored_masked > time || used < 0 || used > d->stored_masked)
        return nami_fail(NAMI_EINPUT,
                         "%s: %lld samples of %lld tokens with %lld slots, of which "
                         "%lld are used, cannot be",
                         d->path, (long long)d->elements, (long long)time,
                         (long long)d->stored_masked, (long long)used);
    if (time != d->tokens.time)
        return nami_fail(NAMI_EINPUT,
                         "%s has samples of %lld tokens, but model.context is %lld",
                         d->path, (long long)time, (long long)d->tokens.time);
    if (used > d->tokens.masked)
        return nami_fail(
            NAMI_EINPUT,
            "%s has samples with %lld masked positions, but model.predictions "
            "is %lld",
            d->path, (long long)used, (long long)d->tokens.masked);
    d->used = used;
    const int64_t extent[2] = {d->elements, nami_bert_row_of(d)};
    NAMI_TRY(check_array(d, "/samples", NAMI_STORE_U16, 2, extent));
    d->identity = nami_strf("%s samples:%lld tokens:%lld masked:%lld vocabulary:%lld",
                            d->sum, (long long)d->elements, (long long)time,
                            (long long)used, (long long)d->vocabulary);
    return NAMI_OK;
}

/* Attributes and shapes. Pure function of the file: equal on all ranks. */
static nami_status check_set(nami_bert *d, const nami_bert_want *want)
{
    NAMI_TRY(nami_store_get_text(d->store, "kind", &d->kind));
    if (!nami_bert_is_text(d) && strcmp(d->kind, NAMI_BERT_SAMPLES_KIND) != 0)
        return nami_fail(NAMI_EINPUT,
                         "%s is a set of kind '%s', but this model.family takes "
                         "sentences: sets made by nami import bert-text or nvidia-bert",
                         d->path, d->kind);
    NAMI_TRY(nami_store_get_int(d->store, "vocabulary", &d->vocabulary));
    NAMI_TRY(nami_store_get_text(d->store, "checksum", &d->sum));
    NAMI_TRY(nami_store_get_text(d->store, "wordpiece", &d->wordpiece));
    if (d->vocabulary < 1 || d->vocabulary > 65536)
        return nami_fail(NAMI_EINPUT, "%s: vocabulary %lld is not within 1 to 65536",
                         d->path, (long long)d->vocabulary);
    d->tokens.vocabulary = want->vocabulary > 0 && want->vocabulary < d->vocabulary
                               ? want->vocabulary
                               : d->vocabulary;
    return nami_bert_is_text(d) ? check_text(d) : check_ready(d);
}

/* --- verify --- */

/* Offsets while they are verified. */
typedef struct ascent {
    const nami_bert *d;
    const nami_offsets *offsets;
    int64_t total;
} ascent;

static nami_status check_offsets(void *context, int64_t from, int64_t count,
                                 const void *data)
{
    const ascent *a = context;
    const int64_t *x = data;
    int64_t before = -1;
    if (from > 0)
        NAMI_TRY(
            nami_store_read_alone(a->d->store, a->offsets->name, from - 1, 1, &before));
    bool ok = from > 0 || count == 0 || x[0] == 0;
    for (int64_t i = 0; i < count; i++) {
        ok = ok && x[i] > before;
        before = x[i];
    }
    if (from + count == a->offsets->count + 1)
        ok = ok && before == a->total;
    if (ok)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT,
                     "%s: %s is not a list of numbers that ascend from 0 to %lld",
                     a->d->path, a->offsets->name, (long long)a->total);
}

/* Verify a list of offsets, and keep a small one. */
static nami_status verify_offsets(nami_bert *d, nami_comm *c, nami_offsets *o,
                                  const char *sum, int64_t total)
{
    ascent a = {d, o, total};
    const nami_verify v = {.store = d->store,
                           .path = d->path,
                           .array = o->name,
                           .what = o->name,
                           .checksum = sum,
                           .count = o->count + 1,
                           .width = 8,
                           .check = check_offsets,
                           .context = &a};
    o->store = d->store;
    NAMI_TRY(nami_verify_array(&v, c));
    if (o->count >= NAMI_DATA_WHOLE / 8)
        return NAMI_OK;
    o->whole = nami_alloc(NAMI_MEM_DATA, (size_t)(o->count + 1) * sizeof *o->whole);
    return nami_comm_settle(
        c, nami_store_read_alone(d->store, o->name, 0, o->count + 1, o->whole));
}

static nami_status verify(nami_bert *d, nami_comm *c)
{
    const nami_verify v = {.store = d->store,
                           .path = d->path,
                           .array = d->flat.array,
                           .what = nami_bert_is_text(d) ? "tokens" : "samples",
                           .checksum = d->sum,
                           .count = d->flat.count,
                           .width = 2,
                           .check =
                               nami_bert_is_text(d) ? nami_bert_check_tokens : NULL,
                           .context = d};
    if (nami_bert_is_text(d)) {
        NAMI_TRY(verify_offsets(d, c, &d->sentence, d->offset_sum[0], d->elements));
        NAMI_TRY(
            verify_offsets(d, c, &d->document, d->offset_sum[1], d->sentence.count));
    }
    return nami_flat_is_small(&d->flat) ? nami_verify_array(&v, c) : NAMI_OK;
}

static nami_status open_set(nami_bert *d, nami_comm *c, const nami_bert_want *want)
{
    NAMI_TRY(nami_store_open(c, d->path, &d->store));
    NAMI_TRY(nami_comm_settle(c, check_set(d, want)));
    d->flat = (nami_flat){d->store, nami_bert_is_text(d) ? "/tokens" : "/samples",
                          d->elements * nami_bert_row_of(d), 2, NULL};
    return verify(d, c);
}

nami_status nami_bert_open(nami_comm *c, const char *path, const nami_bert_want *want,
                           nami_bert **out)
{
    *out = NULL;
    NAMI_CHECK(want->masked >= 1);
    if (want->time < NAMI_BERT_SHORTEST)
        return nami_comm_settle(
            c, nami_fail(NAMI_EINPUT,
                         "model.context is %lld, but samples of sentences have at "
                         "least %d tokens",
                         (long long)want->time, NAMI_BERT_SHORTEST));
    nami_bert *d = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *d);
    d->path = nami_strdup(path);
    d->tokens.time = want->time;
    d->tokens.masked = want->masked;
    nami_status status = open_set(d, c, want);
    if (status == NAMI_OK)
        *out = d;
    else
        nami_bert_close(d);
    return status;
}

void nami_bert_close(nami_bert *d)
{
    if (!d)
        return;
    if (d->store)
        (void)nami_store_close(d->store);
    nami_free(d->sentence.whole);
    nami_free(d->sentence.block);
    nami_free(d->document.whole);
    nami_free(d->document.block);
    for (int i = 0; i < 2; i++) {
        nami_free(d->part[i]);
        nami_free(d->offset_sum[i]);
    }
    nami_free(d->flat.whole);
    nami_free(d->identity);
    nami_free(d->wordpiece);
    nami_free(d->sum);
    nami_free(d->kind);
    nami_free(d->path);
    nami_free(d);
}
