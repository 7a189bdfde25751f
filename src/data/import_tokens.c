/* SPDX-License-Identifier: MIT */
/* import_tokens.c - text as bytes, and token files of nanoGPT, llm.c and Megatron-LM, into data sets.
 *
 * nanoGPT 3adf61e data/NAME/prepare.py; the others: llmc.h, megatron.h.
 */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/inner.h"
#include "data/llmc.h"
#include "data/megatron.h"
#include "data/sink.h"
#include "data/tokens.h"

#define BLOCK ((int64_t)1 << 20) /* tokens handled at a time */

static const char *const kinds[] = {"bytes", "tokens", "gpt2", "tokens"};

/* An import under way. */
typedef struct work {
    const nami_import *order;
    nami_source **source; /* [order->inputs] */
    int64_t *tokens;      /* [order->inputs] of each */
    int *type;            /* [order->inputs] Megatron's code of a token */
    int64_t total, cut;   /* tokens; those below `cut` go to part 0 */
    int64_t vocabulary;
    nami_sink sink[2];
    int parts;
    int64_t done;       /* tokens written */
    unsigned char *raw; /* [8*BLOCK] as read */
    uint16_t *word;     /* [BLOCK] decoded, or BLOCK bytes */
} work;

/* Tokens of an opened input, and where they start. */
static nami_status count_tokens(const work *w, nami_source *s, int64_t *tokens)
{
    int64_t length = nami_source_length(s);
    if (w->order->format == NAMI_IMPORT_TEXT)
        *tokens = length;
    else if (w->order->format == NAMI_IMPORT_LLMC)
        return nami_llmc_header(s, tokens);
    else if (length % 2)
        return nami_fail(NAMI_EINPUT,
                         "%s has an odd number of bytes (%lld): it does not consist of "
                         "16-bit tokens",
                         nami_source_name(s), (long long)length);
    else
        *tokens = length / 2;
    return NAMI_OK;
}

static nami_status choose_vocabulary(work *w)
{
    int64_t given = w->order->vocabulary;
    if (w->order->format == NAMI_IMPORT_TEXT) {
        if (given && given != 256)
            return nami_fail(NAMI_EINPUT,
                             "text has a vocabulary of 256 bytes, not %lld",
                             (long long)given);
        w->vocabulary = 256;
    } else if (w->order->format == NAMI_IMPORT_LLMC) {
        w->vocabulary = given ? given : 50257;
    } else if (!given) {
        return nami_fail(NAMI_EINPUT,
                         "files of %s do not tell their vocabulary: give --vocabulary "
                         "(50257 for GPT-2's)",
                         nami_import_formats[w->order->format]);
    } else {
        w->vocabulary = given;
    }
    if (w->vocabulary < 1 || w->vocabulary > 65536)
        return nami_fail(NAMI_EINPUT, "vocabulary %lld is not within 1 to 65536",
                         (long long)w->vocabulary);
    return NAMI_OK;
}

static nami_status open_megatron(work *w, int i)
{
    int width;
    NAMI_TRY(
        nami_megatron_open(w->order->input[i], &w->source[i], &w->type[i], &width));
    w->tokens[i] = nami_source_length(w->source[i]) / width;
    return NAMI_OK;
}

static nami_status open_inputs(work *w)
{
    char *spool = nami_import_spool(w->order->output);
    nami_status status = NAMI_OK;
    for (int i = 0; i < w->order->inputs && status == NAMI_OK; i++) {
        status = w->order->format == NAMI_IMPORT_MEGATRON
                     ? open_megatron(w, i)
                     : nami_source_open(w->order->input[i], spool, &w->source[i]);
        if (status == NAMI_OK && w->order->format != NAMI_IMPORT_MEGATRON)
            status = count_tokens(w, w->source[i], &w->tokens[i]);
        w->total += w->tokens[i];
    }
    nami_free(spool);
    return status;
}

/* Where the set is cut; both parts must hold a token and its successor. */
static nami_status choose_cut(work *w)
{
    double split = w->order->split;
    w->cut = w->parts == 2 ? (int64_t)((double)w->total * split) : w->total;
    int64_t least =
        w->parts == 2 && w->total - w->cut < w->cut ? w->total - w->cut : w->cut;
    if (w->total == 0)
        return nami_fail(NAMI_EINPUT, "%s%s: there is not one token to import",
                         nami_source_name(w->source[0]),
                         w->order->inputs > 1 ? " and the other inputs" : "");
    if (least < 2)
        return nami_fail(NAMI_EINPUT,
                         "%lld token%s are too few%s: a data set needs at least 2",
                         (long long)w->total, nami_plural(w->total),
                         w->parts == 2 ? " for this split" : "");
    return NAMI_OK;
}

static nami_status open_sinks(work *w)
{
    for (int part = 0; part < w->parts; part++) {
        char *path = nami_import_path(w->order, part);
        int64_t tokens = part == 0 ? w->cut : w->total - w->cut;
        nami_status status =
            nami_sink_open(path, tokens, w->vocabulary, &w->sink[part]);
        nami_free(path);
        NAMI_TRY(status);
    }
    return NAMI_OK;
}

/* Bytes of a token of input i. */
static size_t width_of(const work *w, int i)
{
    if (w->order->format != NAMI_IMPORT_MEGATRON)
        return 2;
    return (size_t)(nami_source_length(w->source[i]) / w->tokens[i]);
}

/* Token i of w->raw. */
static int64_t decode(const work *w, int input, int64_t i)
{
    if (w->order->format == NAMI_IMPORT_MEGATRON)
        return nami_megatron_token(w->type[input], w->raw, i);
    return w->raw[2 * i] | w->raw[2 * i + 1] << 8;
}

/* Read `count` tokens of an input, checked, in the width of the data set into w->word. */
static nami_status read_block(work *w, int input, int64_t at, int64_t count)
{
    nami_source *s = w->source[input];
    if (w->order->format == NAMI_IMPORT_TEXT)
        return nami_source_read(s, w->word, (size_t)count);
    NAMI_TRY(nami_source_read(s, w->raw, width_of(w, input) * (size_t)count));
    uint8_t *byte = (uint8_t *)w->word;
    int width = nami_tokens_width(w->vocabulary);
    for (int64_t i = 0; i < count; i++) {
        int64_t token = decode(w, input, i);
        if (token < 0 || token >= w->vocabulary)
            return nami_fail(NAMI_EINPUT,
                             "%s: token %lld is %lld, outside the vocabulary of %lld",
                             nami_source_name(s), (long long)(at + i), (long long)token,
                             (long long)w->vocabulary);
        if (width == 1)
            byte[i] = (uint8_t)token;
        else
            w->word[i] = (uint16_t)token;
    }
    return NAMI_OK;
}

/* Hand `count` tokens of w->word to the parts they belong to. */
static nami_status deliver(work *w, int64_t count)
{
    int64_t first = w->cut - w->done;
    first = first < 0 ? 0 : first > count ? count : first;
    const char *data = (const char *)w->word;
    if (first > 0)
        NAMI_TRY(nami_sink_add(&w->sink[0], data, first));
    if (first < count)
        NAMI_TRY(nami_sink_add(&w->sink[1],
                               data + first * nami_tokens_width(w->vocabulary),
                               count - first));
    w->done += count;
    return NAMI_OK;
}

static nami_status copy_input(work *w, int input)
{
    for (int64_t at = 0; at < w->tokens[input]; at += BLOCK) {
        int64_t left = w->tokens[input] - at, count = left < BLOCK ? left : BLOCK;
        NAMI_TRY(read_block(w, input, at, count));
        NAMI_TRY(deliver(w, count));
        nami_progress("import: %lld of %lld million tokens, %d %%",
                      (long long)(w->done / 1000000), (long long)(w->total / 1000000),
                      (int)(100.0 * (double)w->done / (double)w->total));
    }
    return NAMI_OK;
}

static nami_status finish(work *w)
{
    char *source = nami_import_names(w->order);
    nami_status status = NAMI_OK;
    for (int part = 0; part < w->parts && status == NAMI_OK; part++)
        status = nami_sink_finish(&w->sink[part], kinds[w->order->format], source);
    nami_free(source);
    for (int part = 0; part < w->parts && status == NAMI_OK; part++)
        status = nami_sink_publish(&w->sink[part]);
    return status;
}

static nami_status carry_out(work *w)
{
    NAMI_TRY(choose_vocabulary(w));
    NAMI_TRY(nami_import_check(w->order, w->source, 0)); /* before a pipe is read */
    NAMI_TRY(open_inputs(w));
    NAMI_TRY(nami_import_check(w->order, w->source, w->order->inputs));
    NAMI_TRY(choose_cut(w));
    NAMI_TRY(open_sinks(w));
    for (int i = 0; i < w->order->inputs; i++)
        NAMI_TRY(copy_input(w, i));
    return finish(w);
}

nami_status nami_import_tokens(const nami_import *im)
{
    work w = {.order = im, .parts = im->split > 0 ? 2 : 1};
    w.source = nami_calloc(NAMI_MEM_OTHER, (size_t)im->inputs, sizeof *w.source);
    w.tokens = nami_calloc(NAMI_MEM_OTHER, (size_t)im->inputs, sizeof *w.tokens);
    w.type = nami_calloc(NAMI_MEM_OTHER, (size_t)im->inputs, sizeof *w.type);
    w.raw = nami_alloc(NAMI_MEM_DATA, 8 * (size_t)BLOCK);
    w.word = nami_alloc(NAMI_MEM_DATA, 2 * (size_t)BLOCK);
    nami_status status = carry_out(&w);
    for (int part = 0; part < 2; part++)
        nami_sink_close(&w.sink[part]);
    for (int i = 0; i < im->inputs; i++)
        nami_source_close(w.source[i]);
    nami_free(w.word);
    nami_free(w.raw);
    nami_free(w.type);
    nami_free(w.tokens);
    nami_free(w.source);
    return status;
}
