/* SPDX-License-Identifier: MIT */
/* import_bpe.c - text through a byte-pair encoding into data sets.
 *
 * Tokens go to an unnamed file first, as their number is known at the end alone.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/bpe.h"
#include "data/inner.h"
#include "data/sink.h"
#include "data/source.h"

enum { ROOM = 1 << 20 /* bytes of text at hand: no piece may be longer */ };

typedef struct work {
    const nami_import *order; /* input[0] is the rank file */
    nami_bpe *bpe;
    nami_source **source; /* [texts] */
    int texts, parts;
    int64_t bytes, cut; /* of all texts; those below `cut` belong to part 0 */
    int64_t done;       /* bytes encoded */
    int64_t vocabulary, tokens[2];
    FILE *spool;         /* tokens as uint16 of this machine */
    unsigned char *text; /* [ROOM] */
    int64_t have, left;  /* bytes at hand; bytes of the current text still to read */
    uint16_t *token;     /* [ROOM] */
    nami_sink sink[2];
} work;

static nami_status open_inputs(work *w)
{
    NAMI_TRY(nami_import_texts(w->order, w->texts, w->source, &w->bytes));
    w->cut = w->parts == 2 ? (int64_t)((double)w->bytes * w->order->split) : w->bytes;
    return NAMI_OK;
}

/* Have as much of the text at hand as there is room for. */
static nami_status fill(work *w, nami_source *s)
{
    int64_t more = ROOM - w->have < w->left ? ROOM - w->have : w->left;
    NAMI_TRY(nami_source_read(s, w->text + w->have, (size_t)more));
    w->have += more;
    w->left -= more;
    return NAMI_OK;
}

/* How many of the bytes at hand may be encoded now; *all: nothing follows them. The cut never divides a character. */
static int64_t limit_of(work *w, bool *all)
{
    *all = w->left == 0;
    if (w->cut <= w->done || w->cut > w->done + w->have ||
        (w->cut + 4 > w->done + w->have && !*all))
        return w->have;
    while (w->cut < w->done + w->have && (w->text[w->cut - w->done] & 0xc0) == 0x80)
        w->cut++;
    *all = true;
    return w->cut - w->done;
}

/* Encode pieces of the bytes at hand, and forget them. */
static nami_status encode(work *w, const char *name)
{
    bool all;
    int part = w->done < w->cut ? 0 : 1;
    int64_t limit = limit_of(w, &all), at = 0, count = 0;
    while (at < limit) {
        int64_t bytes = nami_bpe_piece(w->text + at, limit - at, all);
        if (bytes == 0)
            break;
        count += nami_bpe_encode(w->bpe, w->text + at, bytes, w->token + count);
        at += bytes;
    }
    if (at == 0 && w->have == ROOM)
        return nami_fail(NAMI_EINPUT,
                         "%s: %d bytes from byte %lld of the input on are one word: "
                         "this is no text",
                         name, ROOM, (long long)w->done);
    NAMI_TRY(nami_spool_add(w->spool, w->token, (size_t)count * sizeof *w->token));
    w->tokens[part] += count;
    memmove(w->text, w->text + at, (size_t)(w->have - at));
    w->have -= at;
    w->done += at;
    nami_progress("import: %lld of %lld MiB", (long long)(w->done >> 20),
                  (long long)(w->bytes >> 20));
    return NAMI_OK;
}

static nami_status encode_input(work *w, int i)
{
    nami_source *s = w->source[i];
    w->left = nami_source_length(s);
    while (w->left + w->have > 0) {
        NAMI_TRY(fill(w, s));
        NAMI_TRY(encode(w, nami_source_name(s)));
    }
    return NAMI_OK;
}

static nami_status write_part(work *w, int part)
{
    nami_sink *s = &w->sink[part];
    char *path = nami_import_path(w->order, part);
    nami_status status = nami_sink_open(path, w->tokens[part], w->vocabulary, s);
    nami_free(path);
    for (int64_t at = 0; at < w->tokens[part] && status == NAMI_OK; at += ROOM) {
        int64_t left = w->tokens[part] - at, n = left < ROOM ? left : ROOM;
        status = nami_spool_read(w->spool, w->token, (size_t)n * sizeof *w->token);
        if (status == NAMI_OK)
            status = nami_sink_add(s, w->token, n);
    }
    if (status != NAMI_OK)
        return status;
    char *source = nami_import_names(w->order);
    status = nami_sink_finish(s, nami_bpe_tokens(w->bpe) == 50256 ? "gpt2" : "tokens",
                              source);
    nami_free(source);
    return status;
}

static nami_status write_parts(work *w)
{
    for (int part = 0; part < w->parts; part++)
        if (w->tokens[part] < 2)
            return nami_fail(NAMI_EINPUT,
                             "%lld token%s are too few%s: a data set needs at least 2",
                             (long long)w->tokens[part], nami_plural(w->tokens[part]),
                             w->parts == 2 ? " for this split" : "");
    NAMI_TRY(nami_spool_rewind(w->spool));
    for (int part = 0; part < w->parts; part++)
        NAMI_TRY(write_part(w, part));
    for (int part = 0; part < w->parts; part++)
        NAMI_TRY(nami_sink_publish(&w->sink[part]));
    return NAMI_OK;
}

/* The last number beyond the table is <|endoftext|>. */
static nami_status choose_vocabulary(work *w)
{
    int64_t own = nami_bpe_tokens(w->bpe) + 1, given = w->order->vocabulary;
    w->vocabulary = given ? given : own;
    if (w->vocabulary < own || w->vocabulary > 65536)
        return nami_fail(
            NAMI_EINPUT,
            "--vocabulary is %lld, where %lld (as the rank file has it) to "
            "65536 is expected",
            (long long)given, (long long)own);
    return NAMI_OK;
}

static nami_status carry_out(work *w)
{
    NAMI_TRY(nami_import_check(w->order, w->source, 0)); /* before a pipe is read */
    NAMI_TRY(nami_bpe_open(w->order->input[0], &w->bpe));
    NAMI_TRY(choose_vocabulary(w));
    NAMI_TRY(open_inputs(w));
    NAMI_TRY(nami_import_check(w->order, w->source, w->texts));
    NAMI_TRY(nami_spool_open(w->order->output, &w->spool));
    for (int i = 0; i < w->texts; i++)
        NAMI_TRY(encode_input(w, i));
    return write_parts(w);
}

nami_status nami_import_bpe(const nami_import *im)
{
    if (im->inputs < 2)
        return nami_fail(NAMI_EINPUT,
                         "bpe takes a rank file, then texts: RANKS IN... OUT");
    work w = {.order = im, .texts = im->inputs - 1, .parts = im->split > 0 ? 2 : 1};
    w.source = nami_calloc(NAMI_MEM_OTHER, (size_t)w.texts, sizeof(nami_source *));
    w.text = nami_alloc(NAMI_MEM_DATA, ROOM);
    w.token = nami_alloc(NAMI_MEM_DATA, ROOM * sizeof *w.token);
    nami_status status = carry_out(&w);
    for (int part = 0; part < 2; part++)
        nami_sink_close(&w.sink[part]);
    for (int i = 0; i < w.texts; i++)
        nami_source_close(w.source[i]);
    if (w.spool)
        (void)fclose(w.spool);
    nami_bpe_close(w.bpe);
    nami_free(w.token);
    nami_free(w.text);
    nami_free(w.source);
    return status;
}
