/* SPDX-License-Identifier: MIT */
/* import_bert.c - sentences into data sets for BERT.
 *
 * A line is a sentence; a line of blanks, and each input's start, begins a document. Tokens and offsets go to unnamed files
 * first, as their number is known at the end alone.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/bert_set.h"
#include "data/inner.h"
#include "data/sink.h"
#include "data/tokens.h"
#include "data/wordpiece.h"

enum { ROOM = 1 << 20 /* bytes of text at hand: no line may be longer */ };
enum { TOKENS, SENTENCES, DOCUMENTS, LISTS };

/* A list of numbers being collected. */
typedef struct list {
    FILE *file;
    int64_t count; /* numbers */
    uint32_t sum;
} list;

typedef struct part {
    list list[LISTS];
    bool fresh; /* the next sentence begins a document */
    nami_sink sink;
} part;

typedef struct work {
    const nami_import *order; /* input[0] is the vocabulary */
    nami_wordpiece *words;
    uint32_t words_sum;   /* of the vocabulary file */
    nami_source **source; /* [texts] */
    int texts, parts;
    int64_t bytes,
        cut;      /* of all texts; lines that start below `cut` belong to part 0 */
    int64_t done; /* bytes encoded */
    int64_t vocabulary;
    unsigned char *text; /* [ROOM] */
    int64_t have, left;  /* bytes at hand; bytes of the current text still to read */
    uint16_t *token;     /* [ROOM] */
    part part[2];
} work;

static const struct {
    const char *array, *checksum;
    nami_store_type type;
    int width;
} kinds[LISTS] = {{"/tokens", "checksum", NAMI_STORE_U16, 2},
                  {"/sentences", "sentence_checksum", NAMI_STORE_I64, 8},
                  {"/documents", "document_checksum", NAMI_STORE_I64, 8}};

/* --- collect --- */

static nami_status add(part *p, int which, const void *number, int64_t count)
{
    list *l = &p->list[which];
    int width = kinds[which].width;
    l->count += count;
    l->sum = nami_tokens_checksum(l->sum, number, count, width);
    return nami_spool_add(l->file, number, (size_t)(count * width));
}

/* Offsets start with 0, and each sentence adds its end; a document its first sentence. */
static nami_status add_sentence(part *p, const uint16_t *token, int64_t count)
{
    int64_t sentences = p->list[SENTENCES].count;
    if (sentences == 0)
        NAMI_TRY(add(p, SENTENCES, &(int64_t){0}, 1));
    else
        sentences--;
    if (p->fresh)
        NAMI_TRY(add(p, DOCUMENTS, &sentences, 1));
    p->fresh = false;
    NAMI_TRY(add(p, TOKENS, token, count));
    return add(p, SENTENCES, &p->list[TOKENS].count, 1);
}

static bool is_blank(const unsigned char *line, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (line[i] != ' ' && !(line[i] >= '\t' && line[i] <= '\r'))
            return false;
    return true;
}

/* A line that starts at byte w->done of the input. */
static nami_status take_line(work *w, const unsigned char *line, int64_t bytes)
{
    part *p = &w->part[w->done < w->cut ? 0 : 1];
    if (is_blank(line, bytes)) {
        w->part[0].fresh = w->part[1].fresh = true;
        return NAMI_OK;
    }
    int64_t count = nami_wordpiece_encode(w->words, line, bytes, w->token);
    return count > 0 ? add_sentence(p, w->token, count) : NAMI_OK;
}

/* Take the lines at hand, and forget them; `all`: nothing follows. */
static nami_status take_lines(work *w, const char *name, bool all)
{
    int64_t at = 0;
    while (at < w->have) {
        const unsigned char *line = w->text + at,
                            *end = memchr(line, '\n', (size_t)(w->have - at));
        if (!end && !all)
            break;
        int64_t bytes = end ? end - line : w->have - at;
        NAMI_TRY(take_line(w, line, bytes));
        bytes += end != NULL;
        at += bytes;
        w->done += bytes;
    }
    if (at == 0 && w->have == ROOM)
        return nami_fail(NAMI_EINPUT,
                         "%s: %d bytes from byte %lld of the input on are one line, "
                         "where a sentence a line is expected",
                         name, ROOM, (long long)w->done);
    memmove(w->text, w->text + at, (size_t)(w->have - at));
    w->have -= at;
    nami_progress("import: %lld of %lld MiB", (long long)(w->done >> 20),
                  (long long)(w->bytes >> 20));
    return NAMI_OK;
}

static nami_status encode_input(work *w, int i)
{
    nami_source *s = w->source[i];
    w->left = nami_source_length(s);
    w->part[0].fresh = w->part[1].fresh = true;
    while (w->left + w->have > 0) {
        int64_t more = ROOM - w->have < w->left ? ROOM - w->have : w->left;
        NAMI_TRY(nami_source_read(s, w->text + w->have, (size_t)more));
        w->have += more;
        w->left -= more;
        NAMI_TRY(take_lines(w, nami_source_name(s), w->left == 0));
    }
    return NAMI_OK;
}

/* --- write --- */

static nami_status copy_list(work *w, part *p, int which)
{
    list *l = &p->list[which];
    int64_t most = ROOM * (int64_t)sizeof *w->token / kinds[which].width;
    NAMI_TRY(nami_spool_rewind(l->file));
    for (int64_t at = 0; at < l->count; at += most) {
        int64_t n = l->count - at < most ? l->count - at : most;
        NAMI_TRY(nami_spool_read(l->file, w->token, (size_t)(n * kinds[which].width)));
        NAMI_TRY(nami_store_write(p->sink.store, kinds[which].array, at, n, w->token));
    }
    return NAMI_OK;
}

static nami_status set_sum(nami_store *store, const char *name, uint32_t sum)
{
    char text[16];
    return nami_store_set_text(store, name, nami_tokens_sum_text(text, sum));
}

static nami_status set_attributes(const work *w, const part *p, const char *source)
{
    nami_store *store = p->sink.store;
    NAMI_TRY(nami_store_set_text(store, "kind", NAMI_BERT_TEXT_KIND));
    NAMI_TRY(nami_store_set_int(store, "vocabulary", w->vocabulary));
    NAMI_TRY(nami_store_set_int(store, "tokens", p->list[TOKENS].count));
    NAMI_TRY(nami_store_set_int(store, "sentences", p->list[SENTENCES].count - 1));
    NAMI_TRY(nami_store_set_int(store, "documents", p->list[DOCUMENTS].count - 1));
    for (int i = 0; i < NAMI_WORDPIECE_SPECIALS; i++)
        NAMI_TRY(nami_store_set_int(
            store, nami_bert_special[i],
            nami_wordpiece_special_of(w->words, (nami_wordpiece_special)i)));
    for (int i = 0; i < LISTS; i++)
        NAMI_TRY(set_sum(store, kinds[i].checksum, p->list[i].sum));
    NAMI_TRY(set_sum(store, "wordpiece", w->words_sum));
    return nami_store_set_text(store, "source", source);
}

static nami_status write_part(work *w, int number, const char *source)
{
    part *p = &w->part[number];
    char *path = nami_import_path(w->order, number);
    nami_status status = nami_sink_begin(path, &p->sink);
    nami_free(path);
    for (int i = 0; i < LISTS && status == NAMI_OK; i++)
        status = nami_store_define(p->sink.store, kinds[i].array, kinds[i].type, 1,
                                   &p->list[i].count);
    for (int i = 0; i < LISTS && status == NAMI_OK; i++)
        status = copy_list(w, p, i);
    NAMI_TRY(status);
    NAMI_TRY(set_attributes(w, p, source));
    char *summary = nami_strf("%lld tokens in %lld sentences of %lld documents, "
                              "vocabulary %lld, crc32 %08x",
                              (long long)p->list[TOKENS].count,
                              (long long)p->list[SENTENCES].count - 1,
                              (long long)p->list[DOCUMENTS].count - 1,
                              (long long)w->vocabulary, (unsigned)p->list[TOKENS].sum);
    status = nami_sink_end(&p->sink, summary);
    nami_free(summary);
    return status;
}

static nami_status write_parts(work *w)
{
    for (int i = 0; i < w->parts; i++) {
        part *p = &w->part[i];
        int64_t sentences = p->list[SENTENCES].count - 1;
        if (sentences < 2)
            return nami_fail(NAMI_EINPUT,
                             "%lld sentence%s too few%s: a data set needs at least 2 "
                             "lines with words",
                             (long long)(sentences < 0 ? 0 : sentences),
                             sentences == 1 ? " is" : "s are",
                             w->parts == 2 ? " for this split" : "");
        NAMI_TRY(add(p, DOCUMENTS, &sentences, 1));
    }
    char *source = nami_import_names(w->order);
    nami_status status = NAMI_OK;
    for (int i = 0; i < w->parts && status == NAMI_OK; i++)
        status = write_part(w, i, source);
    nami_free(source);
    for (int i = 0; i < w->parts && status == NAMI_OK; i++)
        status = nami_sink_publish(&w->part[i].sink);
    return status;
}

/* --- all of it --- */

static nami_status open_words(work *w)
{
    NAMI_TRY(nami_wordpiece_open(w->order->input[0], &w->words));
    int64_t own = nami_wordpiece_tokens(w->words), given = w->order->vocabulary;
    w->words_sum = nami_wordpiece_checksum(w->words);
    w->vocabulary = given ? given : own;
    if (w->vocabulary < own || w->vocabulary > 65536)
        return nami_fail(NAMI_EINPUT,
                         "--vocabulary is %lld, where %lld (as the vocabulary file has "
                         "it) to 65536 is expected",
                         (long long)given, (long long)own);
    return NAMI_OK;
}

static nami_status open_inputs(work *w)
{
    NAMI_TRY(nami_import_texts(w->order, w->texts, w->source, &w->bytes));
    w->cut = w->parts == 2 ? (int64_t)((double)w->bytes * w->order->split) : w->bytes;
    return NAMI_OK;
}

static nami_status carry_out(work *w)
{
    NAMI_TRY(nami_import_check(w->order, w->source, 0)); /* before a pipe is read */
    NAMI_TRY(open_words(w));
    NAMI_TRY(open_inputs(w));
    NAMI_TRY(nami_import_check(w->order, w->source, w->texts));
    for (int i = 0; i < w->parts; i++)
        for (int k = 0; k < LISTS; k++)
            NAMI_TRY(nami_spool_open(w->order->output, &w->part[i].list[k].file));
    for (int i = 0; i < w->texts; i++)
        NAMI_TRY(encode_input(w, i));
    return write_parts(w);
}

nami_status nami_import_bert_text(const nami_import *im)
{
    if (im->inputs < 2)
        return nami_fail(NAMI_EINPUT,
                         "bert-text takes a vocabulary file, then texts: VOCAB IN... "
                         "OUT");
    work w = {.order = im, .texts = im->inputs - 1, .parts = im->split > 0 ? 2 : 1};
    w.source = nami_calloc(NAMI_MEM_OTHER, (size_t)w.texts, sizeof(nami_source *));
    w.text = nami_alloc(NAMI_MEM_DATA, ROOM);
    w.token = nami_alloc(NAMI_MEM_DATA, ROOM * sizeof *w.token);
    nami_status status = carry_out(&w);
    for (int i = 0; i < w.parts; i++) {
        nami_sink_close(&w.part[i].sink);
        for (int k = 0; k < LISTS; k++)
            if (w.part[i].list[k].file)
                (void)fclose(w.part[i].list[k].file);
    }
    for (int i = 0; i < w.texts; i++)
        nami_source_close(w.source[i]);
    nami_wordpiece_close(w.words);
    nami_free(w.token);
    nami_free(w.text);
    nami_free(w.source);
    return status;
}
