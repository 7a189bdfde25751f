/* SPDX-License-Identifier: MIT */
/* wordpiece.c - BERT's uncased tokens. */
#include "data/wordpiece.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/fold.h"
#include "data/source.h"
#include "data/tokens.h"
#include "data/unicode.h"

enum {
    FILE_BYTES = 1 << 26,
    MOST = 65536,
    SLOTS = 1 << 18, /* of the hash table, > 2 MOST */
    WORD_BYTES = 2 + 4 * NAMI_WORDPIECE_WORD
};

const char *const nami_wordpiece_special_names[NAMI_WORDPIECE_SPECIALS] = {
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

typedef struct token {
    const char *text; /* in the file, without its end */
    int bytes;
} token;

struct nami_wordpiece {
    char *file;
    token *token; /* [tokens] */
    int64_t tokens;
    int32_t *slot; /* [SLOTS] number of a token, -1: free */
    int longest;   /* bytes of a token */
    uint32_t sum;  /* of the file */
    uint16_t special[NAMI_WORDPIECE_SPECIALS];
};

/* --- the file --- */

/* Where the token is in the table, or would be. */
static int32_t *slot_of(const nami_wordpiece *w, const char *p, int bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < bytes; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    for (h ^= h >> 29;; h++) {
        int32_t *s = &w->slot[h % SLOTS];
        if (*s < 0)
            return s;
        const token *t = &w->token[*s];
        if (t->bytes == bytes && !memcmp(t->text, p, (size_t)bytes))
            return s;
    }
}

/* Take in line `line` (from 0): text[0..bytes). */
static nami_status add_line(nami_wordpiece *w, const char *name, int64_t line,
                            const char *text, size_t bytes)
{
    if (bytes == 0)
        return nami_fail(NAMI_EINPUT,
                         "%s: line %lld is empty, where one token a line is expected",
                         name, (long long)line + 1);
    if (bytes > NAMI_WORDPIECE_BYTES)
        return nami_fail(
            NAMI_EINPUT, "%s: line %lld has %lld bytes, more than the %d of a token",
            name, (long long)line + 1, (long long)bytes, NAMI_WORDPIECE_BYTES);
    int32_t *s = slot_of(w, text, (int)bytes);
    if (*s >= 0)
        return nami_fail(NAMI_EINPUT, "%s: line %lld has the token of line %lld again",
                         name, (long long)line + 1, (long long)*s + 1);
    *s = (int32_t)line;
    w->token[line] = (token){.text = text, .bytes = (int)bytes};
    w->longest = (int)bytes > w->longest ? (int)bytes : w->longest;
    return NAMI_OK;
}

static nami_status add_lines(nami_wordpiece *w, const char *name, int64_t length)
{
    const char *text = w->file, *end = w->file + length;
    for (int64_t line = 0; line < w->tokens; line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop > text && stop[-1] == '\r')
            stop--;
        NAMI_TRY(add_line(w, name, line, text, (size_t)(stop - text)));
        text = next;
    }
    for (int i = 0; i < NAMI_WORDPIECE_SPECIALS; i++) {
        const char *special = nami_wordpiece_special_names[i];
        int32_t number = *slot_of(w, special, (int)strlen(special));
        if (number < 0)
            return nami_fail(NAMI_EINPUT, "%s has no token %s", name, special);
        w->special[i] = (uint16_t)number;
    }
    return NAMI_OK;
}

static nami_status read_file(nami_wordpiece *w, nami_source *s)
{
    const char *name = nami_source_name(s);
    int64_t length = nami_source_length(s);
    if (length > FILE_BYTES)
        return nami_fail(NAMI_EINPUT, "%s has %lld bytes, too many for a vocabulary",
                         name, (long long)length);
    w->file = nami_calloc(NAMI_MEM_OTHER, (size_t)length + 1, 1);
    NAMI_TRY(nami_source_read(s, w->file, (size_t)length));
    w->sum = nami_tokens_checksum(0, w->file, length, 1);
    for (int64_t i = 0; i < length; i++)
        w->tokens += w->file[i] == '\n' || i == length - 1;
    if (w->tokens < NAMI_WORDPIECE_SPECIALS + 1 || w->tokens > MOST)
        return nami_fail(NAMI_EINPUT,
                         "%s has %lld lines, where one for each of %d to %d tokens is "
                         "expected",
                         name, (long long)w->tokens, NAMI_WORDPIECE_SPECIALS + 1, MOST);
    w->token = nami_calloc(NAMI_MEM_OTHER, (size_t)w->tokens, sizeof *w->token);
    return add_lines(w, name, length);
}

nami_status nami_wordpiece_open(const char *path, nami_wordpiece **out)
{
    nami_source *s = NULL;
    *out = NULL;
    NAMI_TRY(nami_source_open(path, ".", &s));
    nami_wordpiece *w = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *w);
    w->slot = nami_alloc(NAMI_MEM_OTHER, SLOTS * sizeof *w->slot);
    memset(w->slot, 0xff, SLOTS * sizeof *w->slot);
    nami_status status = read_file(w, s);
    nami_source_close(s);
    if (status == NAMI_OK)
        *out = w;
    else
        nami_wordpiece_close(w);
    return status;
}

void nami_wordpiece_close(nami_wordpiece *w)
{
    if (!w)
        return;
    nami_free(w->slot);
    nami_free(w->token);
    nami_free(w->file);
    nami_free(w);
}

int64_t nami_wordpiece_tokens(const nami_wordpiece *w)
{
    return w->tokens;
}

uint32_t nami_wordpiece_checksum(const nami_wordpiece *w)
{
    return w->sum;
}

uint16_t nami_wordpiece_special_of(const nami_wordpiece *w, nami_wordpiece_special s)
{
    return w->special[s];
}

/* --- text --- */

/* A word being read. */
typedef struct word {
    const nami_wordpiece *w;
    char text[WORD_BYTES]; /* from 2 on: room for "##" in front of every piece */
    int end;               /* of its bytes */
    int64_t characters;    /* also those there was no room for */
    uint16_t *out;
    int64_t count; /* tokens so far */
} word;

/* Append as UTF-8. */
static void add_character(word *x, uint32_t c)
{
    if (++x->characters > NAMI_WORDPIECE_WORD)
        return;
    char *p = x->text + x->end;
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        p[i] = (char)(0x80 | (c & 0x3f));
    p[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xffu) | c);
    x->end += n;
}

/* The number of the longest piece from `from` on, and where it ends; -1: none. */
static int32_t longest_piece(const word *x, int from, int *to)
{
    char piece[WORD_BYTES];
    int mark = from > 2 ? 2 : 0;
    piece[0] = piece[1] = '#';
    memcpy(piece + mark, x->text + from, (size_t)(x->end - from));
    int bytes = x->end - from;
    bytes = bytes + mark > x->w->longest ? x->w->longest - mark : bytes;
    for (; bytes > 0; bytes--) {
        if (from + bytes < x->end && (x->text[from + bytes] & 0xc0) == 0x80)
            continue;
        int32_t number = *slot_of(x->w, piece, mark + bytes);
        *to = from + bytes;
        if (number >= 0)
            return number;
    }
    return -1;
}

/* Write the word's tokens, and begin another. */
static void end_word(word *x)
{
    int64_t first = x->count;
    bool known = x->characters <= NAMI_WORDPIECE_WORD;
    for (int at = 2; known && at < x->end;) {
        int32_t number = longest_piece(x, at, &at);
        known = number >= 0;
        if (known)
            x->out[x->count++] = (uint16_t)number;
    }
    if (!known) {
        x->count = first;
        x->out[x->count++] = x->w->special[NAMI_WORDPIECE_UNK];
    }
    x->end = 2;
    x->characters = 0;
}

/* A character of a word, folded, or several. */
static void take(word *x, uint32_t c)
{
    uint32_t part[NAMI_FOLD_MOST];
    int parts = nami_fold(c, part);
    for (int i = 0; i < parts; i++) {
        bool sign = nami_fold_class_of(part[i]) == NAMI_FOLD_SIGN;
        if (sign)
            end_word(x);
        add_character(x, part[i]);
        if (sign)
            end_word(x);
    }
}

int64_t nami_wordpiece_encode(const nami_wordpiece *w, const unsigned char *text,
                              int64_t bytes, uint16_t *out)
{
    word x = {.w = w, .end = 2, .out = out};
    for (int64_t at = 0; at < bytes;) {
        uint32_t c;
        at += nami_unicode_next(text + at, bytes - at, &c);
        nami_fold_class class = nami_fold_class_of(c);
        bool alone = class == NAMI_FOLD_SPACE || nami_fold_is_ideograph(c);
        if (alone)
            end_word(&x);
        if (class != NAMI_FOLD_SPACE && class != NAMI_FOLD_CONTROL)
            take(&x, c);
        if (alone)
            end_word(&x);
    }
    end_word(&x);
    return x.count;
}
