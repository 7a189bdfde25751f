/* SPDX-License-Identifier: MIT */
/* data.c - an opened data set. */
#include "data/data.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/bert_set.h"
#include "data/flat.h"
#include "data/tokens.h"
#include "data/verify.h"

struct nami_data {
    nami_store *store;
    char *path, *kind, *sum, *identity;
    int64_t tokens, time;
    int64_t vocabulary; /* as stored */
    int64_t limit;      /* every token handed out is below */
    int width;          /* bytes of a stored token */
    nami_flat flat;     /* its tokens */
    void *window;       /* [time+1] of a set that is not whole */
    int file;           /* to announce windows; -1 for a small set */
};

static nami_status outside(const nami_data *d, int64_t at, int token)
{
    return nami_fail(NAMI_EINPUT,
                     "%s: token %lld is %d, outside the vocabulary of %lld (%s)",
                     d->path, (long long)at, token, (long long)d->limit,
                     d->limit < d->vocabulary ? "the model's" : "its own");
}

static int token_at(const void *token, int width, int64_t i)
{
    return width == 1 ? ((const uint8_t *)token)[i] : ((const uint16_t *)token)[i];
}

/* Refuse a token out of range among `count` ones that start at `from` in the set. */
static nami_status check_range(const nami_data *d, const void *token, int64_t from,
                               int64_t count)
{
    int64_t bad = nami_tokens_outside(token, count, d->width, d->limit);
    return bad < 0 ? NAMI_OK : outside(d, from + bad, token_at(token, d->width, bad));
}

/* The array /tokens as it must be. Pure function of the file: equal on all ranks. */
static nami_status check_shape(nami_data *d)
{
    nami_store_type type;
    int rank;
    int64_t extent[4];
    NAMI_TRY(nami_store_shape(d->store, "/tokens", &type, &rank, extent));
    if (rank == -1)
        return nami_fail(
            NAMI_EINPUT,
            "%s is not a data set of tokens (of images, perhaps): it has no "
            "array /tokens",
            d->path);
    if (rank != 1 || (type != NAMI_STORE_U8 && type != NAMI_STORE_U16))
        return nami_fail(
            NAMI_EINPUT,
            "%s: /tokens is not a list of 8-bit or 16-bit unsigned numbers", d->path);
    d->tokens = extent[0];
    d->width = type == NAMI_STORE_U8 ? 1 : 2;
    d->flat = (nami_flat){d->store, "/tokens", d->tokens, d->width, NULL};
    return NAMI_OK;
}

static nami_status check_attributes(nami_data *d, int64_t vocabulary)
{
    int64_t tokens;
    NAMI_TRY(nami_store_get_int(d->store, "vocabulary", &d->vocabulary));
    NAMI_TRY(nami_store_get_int(d->store, "tokens", &tokens));
    NAMI_TRY(nami_store_get_text(d->store, "kind", &d->kind));
    NAMI_TRY(nami_store_get_text(d->store, "checksum", &d->sum));
    if (!strcmp(d->kind, NAMI_BERT_TEXT_KIND))
        return nami_fail(NAMI_EINPUT,
                         "%s is a set of sentences for BERT, but this model.family "
                         "takes tokens: make a set with nami import text or bpe",
                         d->path);
    if (d->vocabulary < 1 || d->vocabulary > 65536)
        return nami_fail(NAMI_EINPUT, "%s: vocabulary %lld is not within 1 to 65536",
                         d->path, (long long)d->vocabulary);
    if (tokens != d->tokens)
        return nami_fail(NAMI_EINPUT, "%s: it announces %lld tokens and holds %lld",
                         d->path, (long long)tokens, (long long)d->tokens);
    if (d->tokens <= d->time)
        return nami_fail(NAMI_EINPUT,
                         "%s has %lld tokens, too few for one sample of %lld and its "
                         "next token",
                         d->path, (long long)d->tokens, (long long)d->time);
    d->limit =
        vocabulary > 0 && vocabulary < d->vocabulary ? vocabulary : d->vocabulary;
    d->identity = nami_strf("%s tokens:%lld vocabulary:%lld", d->sum,
                            (long long)d->tokens, (long long)d->vocabulary);
    return NAMI_OK;
}

static nami_status check_block(void *context, int64_t from, int64_t count,
                               const void *token)
{
    return check_range(context, token, from, count);
}

/* Checksum, and the range of the tokens; each rank reads a part. */
static nami_status verify(nami_data *d, nami_comm *c)
{
    const nami_verify v = {.store = d->store,
                           .path = d->path,
                           .array = "/tokens",
                           .what = "tokens",
                           .checksum = d->sum,
                           .count = d->tokens,
                           .width = d->width,
                           .check = check_block,
                           .context = d};
    return nami_verify_array(&v, c);
}

static nami_status open_set(nami_data *d, nami_comm *c, int64_t vocabulary)
{
    NAMI_TRY(nami_store_open(c, d->path, &d->store));
    nami_status status = check_shape(d);
    NAMI_TRY(nami_comm_settle(c, status == NAMI_OK ? check_attributes(d, vocabulary)
                                                   : status));
    if (nami_flat_is_small(&d->flat))
        return verify(d, c);
    d->file = open(d->path, O_RDONLY | O_CLOEXEC);
    return NAMI_OK;
}

nami_status nami_data_open(nami_comm *c, const char *path, int64_t time,
                           int64_t vocabulary, nami_data **out)
{
    *out = NULL;
    NAMI_CHECK(time >= 1);
    if (!*path)
        return nami_comm_settle(c, nami_fail(NAMI_EINPUT,
                                             "no data set is given: data.train and "
                                             "data.valid name files of nami import"));
    nami_data *d = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *d);
    d->path = nami_strdup(path);
    d->time = time;
    d->file = -1;
    nami_status status = open_set(d, c, vocabulary);
    if (status == NAMI_OK)
        *out = d;
    else
        nami_data_close(d);
    return status;
}

void nami_data_close(nami_data *d)
{
    if (!d)
        return;
    if (d->store)
        (void)nami_store_close(d->store);
    if (d->file >= 0)
        close(d->file);
    nami_free(d->flat.whole);
    nami_free(d->window);
    nami_free(d->identity);
    nami_free(d->sum);
    nami_free(d->kind);
    nami_free(d->path);
    nami_free(d);
}

int64_t nami_data_samples(const nami_data *d)
{
    return (d->tokens - 1) / d->time;
}

int64_t nami_data_tokens(const nami_data *d)
{
    return d->tokens;
}

int64_t nami_data_vocabulary(const nami_data *d)
{
    return d->vocabulary;
}

const char *nami_data_kind(const nami_data *d)
{
    return d->kind;
}

const char *nami_data_identity(const nami_data *d)
{
    return d->identity;
}

int64_t nami_data_window(const nami_data *d, uint64_t key, int64_t counter)
{
    return nami_window(d->tokens, d->time, key, counter);
}

/* Find tokens [from, from+time] as stored, in range; valid until the next call. */
static nami_status find_window(nami_data *d, int64_t from, const void **token)
{
    NAMI_CHECK(from >= 0 && from + d->time < d->tokens);
    NAMI_TRY(
        nami_flat_get(&d->flat, from, d->time + 1, d->time + 1, &d->window, token));
    return d->flat.whole ? NAMI_OK : check_range(d, *token, from, d->time + 1);
}

/* count numbers of width 1 or 2 to int32. */
static void widen(const void *token, int width, int64_t count, int32_t *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = token_at(token, width, i);
}

nami_status nami_data_read(nami_data *d, const int64_t *from, int64_t count,
                           int32_t *token, int32_t *target)
{
    for (int64_t i = 0; i < count; i++) {
        const void *window;
        NAMI_TRY(find_window(d, from[i], &window));
        widen(window, d->width, d->time, token + i * d->time);
        widen((const char *)window + d->width, d->width, d->time, target + i * d->time);
    }
    return NAMI_OK;
}

nami_status nami_data_slab(nami_data *d, int64_t from, int64_t count, uint16_t *out)
{
    NAMI_CHECK(from >= 0 && count >= 0 && from + count <= d->tokens);
    NAMI_TRY(nami_store_read_alone(d->store, "/tokens", from, count, out));
    NAMI_TRY(check_range(d, out, from, count));
    if (d->width == 1)
        for (int64_t i = count - 1; i >= 0; i--)
            out[i] = ((const uint8_t *)out)[i];
    return NAMI_OK;
}

void nami_data_expect(nami_data *d, const int64_t *from, int64_t count)
{
    /* /tokens is contiguous and starts in the first few KiB of the file; nearly is enough for a hint. */
    const off_t slack = 16384;
    for (int64_t i = 0; d->file >= 0 && i < count; i++)
        (void)posix_fadvise(d->file, (off_t)(from[i] * d->width),
                            (off_t)((d->time + 1) * d->width) + slack,
                            POSIX_FADV_WILLNEED);
}
