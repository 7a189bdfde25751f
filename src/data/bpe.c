/* SPDX-License-Identifier: MIT */
/* bpe.c - byte-pair encoding by a table of ranks. */
#include "data/bpe.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/source.h"
#include "data/unicode.h"

enum {
    FILE_BYTES = 1 << 26,
    MOST = 65535,
    SLOTS = 1 << 18 /* of the hash table, > 2 MOST */
};

typedef struct token {
    int64_t at; /* of its bytes in the blob */
    int32_t bytes;
} token;

struct nami_bpe {
    unsigned char *blob; /* bytes of all tokens */
    token *token;        /* [tokens], by rank */
    int64_t tokens;
    int32_t *slot; /* [SLOTS] rank, -1: free */
};

static uint64_t hash_of(const unsigned char *p, int64_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* Where the token is in the table, or would be. */
static int32_t *slot_of(const nami_bpe *b, const unsigned char *p, int64_t bytes)
{
    for (uint64_t i = hash_of(p, bytes);; i++) {
        int32_t *s = &b->slot[i % SLOTS];
        if (*s < 0)
            return s;
        const token *t = &b->token[*s];
        if (t->bytes == bytes && !memcmp(b->blob + t->at, p, (size_t)bytes))
            return s;
    }
}

/* --- the file --- */

static int digit_of(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Bytes of base64 text p[0..n) into out; -1 when it is none. */
static int64_t decode64(const char *p, size_t n, unsigned char *out)
{
    int64_t count = 0;
    if (n == 0 || n % 4)
        return -1;
    for (size_t i = 0; i < n; i += 4) {
        int pad =
            i + 4 == n ? (p[i + 3] == '=') + (p[i + 2] == '=' && p[i + 3] == '=') : 0;
        uint32_t word = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = (int)k >= 4 - pad ? 0 : digit_of(p[i + k]);
            if (d < 0)
                return -1;
            word = word << 6 | (uint32_t)d;
        }
        for (int k = 0; k < 3 - pad; k++)
            out[count++] = (unsigned char)(word >> (16 - 8 * k));
    }
    return count;
}

/* Take the line in: its token goes to the place of its rank. */
static nami_status add_line(nami_bpe *b, const char *name, int64_t line, char *text,
                            int64_t lines, int64_t *used)
{
    char *blank = strchr(text, ' ');
    int64_t rank, bytes = -1;
    if (blank) {
        bytes = decode64(text, (size_t)(blank - text), b->blob + *used);
        if (!nami_parse_int(blank + 1, &rank))
            bytes = -1;
    }
    if (bytes < 1)
        return nami_fail(NAMI_EINPUT, "%s: line %lld is not base64, a blank and a rank",
                         name, (long long)line);
    if (rank < 0 || rank >= lines || b->token[rank].bytes)
        return nami_fail(NAMI_EINPUT,
                         "%s: line %lld has rank %lld, where each of 0 to %lld is "
                         "expected once",
                         name, (long long)line, (long long)rank, (long long)lines - 1);
    int32_t *s = slot_of(b, b->blob + *used, bytes);
    if (*s >= 0)
        return nami_fail(NAMI_EINPUT, "%s: line %lld has the token of rank %d again",
                         name, (long long)line, (int)*s);
    b->token[rank] = (token){.at = *used, .bytes = (int32_t)bytes};
    *s = (int32_t)rank;
    *used += bytes;
    return NAMI_OK;
}

static nami_status add_lines(nami_bpe *b, const char *name, char *text, int64_t lines)
{
    int64_t used = 0;
    for (int64_t line = 1; line <= lines; line++) {
        char *end = text + strcspn(text, "\n");
        char *next = *end ? end + 1 : end;
        if (end > text && end[-1] == '\r')
            end[-1] = '\0';
        *end = '\0';
        NAMI_TRY(add_line(b, name, line, text, lines, &used));
        text = next;
    }
    for (int c = 0; c < 256; c++) {
        unsigned char byte = (unsigned char)c;
        if (*slot_of(b, &byte, 1) < 0)
            return nami_fail(NAMI_EINPUT, "%s has no token of the single byte %02x",
                             name, (unsigned)c);
    }
    return NAMI_OK;
}

static nami_status read_file(nami_bpe *b, nami_source *s)
{
    const char *name = nami_source_name(s);
    int64_t length = nami_source_length(s), lines = 0;
    if (length > FILE_BYTES)
        return nami_fail(NAMI_EINPUT, "%s has %lld bytes, too many for a rank file",
                         name, (long long)length);
    char *text = nami_calloc(NAMI_MEM_OTHER, (size_t)length + 1, 1);
    nami_status status = nami_source_read(s, text, (size_t)length);
    for (int64_t i = 0; i < length; i++)
        lines += text[i] == '\n' || i == length - 1;
    if (status == NAMI_OK && (lines < 256 || lines > MOST))
        status = nami_fail(NAMI_EINPUT,
                           "%s has %lld lines, where one for each of 256 to %d tokens "
                           "is expected",
                           name, (long long)lines, MOST);
    if (status == NAMI_OK) {
        b->tokens = lines;
        b->token = nami_calloc(NAMI_MEM_OTHER, (size_t)lines, sizeof *b->token);
        b->blob = nami_alloc(NAMI_MEM_OTHER, (size_t)length + 4);
        status = add_lines(b, name, text, lines);
    }
    nami_free(text);
    return status;
}

nami_status nami_bpe_open(const char *path, nami_bpe **out)
{
    nami_source *s = NULL;
    *out = NULL;
    NAMI_TRY(nami_source_open(path, ".", &s));
    nami_bpe *b = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *b);
    b->slot = nami_alloc(NAMI_MEM_OTHER, SLOTS * sizeof *b->slot);
    memset(b->slot, 0xff, SLOTS * sizeof *b->slot);
    nami_status status = read_file(b, s);
    nami_source_close(s);
    if (status == NAMI_OK)
        *out = b;
    else
        nami_bpe_close(b);
    return status;
}

void nami_bpe_close(nami_bpe *b)
{
    if (!b)
        return;
    nami_free(b->slot);
    nami_free(b->token);
    nami_free(b->blob);
    nami_free(b);
}

int64_t nami_bpe_tokens(const nami_bpe *b)
{
    return b->tokens;
}

const unsigned char *nami_bpe_token(const nami_bpe *b, int64_t rank, int64_t *bytes)
{
    NAMI_CHECK(rank >= 0 && rank < b->tokens);
    *bytes = b->token[rank].bytes;
    return b->blob + b->token[rank].at;
}

/* --- pieces: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ --- */

/* Bytes of 's, 't, 're, 've, 'm, 'll, 'd at p; 0: none. */
static int64_t contraction(const unsigned char *p, int64_t bytes)
{
    if (bytes < 2 || p[0] != '\'')
        return 0;
    if (strchr("stmd", p[1]) && p[1])
        return 2;
    bool two =
        bytes >= 3 && ((p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') ||
                       (p[1] == 'l' && p[2] == 'l'));
    return two ? 3 : 0;
}

/* End of the run of characters of class `class` that starts at `at`, and where its last character starts. */
static int64_t run_end(const unsigned char *p, int64_t bytes, int64_t at,
                       nami_char class, int64_t *last)
{
    uint32_t c;
    while (at < bytes) {
        int n = nami_unicode_next(p + at, bytes - at, &c);
        if (nami_unicode_class(c) != class)
            break;
        *last = at;
        at += n;
    }
    return at;
}

int64_t nami_bpe_piece(const unsigned char *text, int64_t bytes, bool all)
{
    enum {
        LOOK = 8
    }; /* bytes that decide how a piece begins, and whether a character is whole */
    uint32_t c;
    int64_t last = 0, end = contraction(text, bytes), from = 0;
    if (!all && bytes < LOOK)
        return 0;
    if (end > 0)
        return end;
    nami_char class;
    (void)nami_unicode_next(text, bytes, &c);
    class = nami_unicode_class(c);
    if (text[0] == ' ' && bytes > 1) { /* a blank belongs to the word behind it */
        (void)nami_unicode_next(text + 1, bytes - 1, &c);
        if (nami_unicode_class(c) != NAMI_CHAR_SPACE) {
            class = nami_unicode_class(c);
            from = 1;
        }
    }
    end = run_end(text, bytes, from, class, &last);
    if (!all && end > bytes - LOOK)
        return 0;
    if (class == NAMI_CHAR_SPACE && end < bytes && last > 0)
        return last; /* the last blank belongs to what follows */
    return end;
}

/* --- merges --- */

/* Neighbours that could be joined: the pair that starts at byte `at`, as it was when the lengths of both were known. */
typedef struct pair {
    int32_t rank, at, bytes;
} pair;

/* A piece being encoded: parts as a list by their first byte. */
typedef struct merging {
    const nami_bpe *b;
    const unsigned char *p;
    /* [bytes+1] first byte of the neighbour; next of the last is the end, before -1 */
    int32_t *next, *before;
    bool *alive; /* [bytes] a part starts here */
    pair *heap;  /* lowest rank first, then first byte */
    int64_t pairs;
    int32_t bytes;
} merging;

static bool comes_first(const pair *a, const pair *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void swap(pair *a, pair *b)
{
    pair kept = *a;
    *a = *b;
    *b = kept;
}

static void push(merging *m, pair x)
{
    int64_t i = m->pairs++;
    m->heap[i] = x;
    for (; i > 0 && comes_first(&m->heap[i], &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&m->heap[i], &m->heap[(i - 1) / 2]);
}

static pair pop(merging *m)
{
    pair top = m->heap[0];
    m->heap[0] = m->heap[--m->pairs];
    for (int64_t i = 0;;) {
        int64_t least = i;
        for (int64_t k = 2 * i + 1; k <= 2 * i + 2; k++)
            if (k < m->pairs && comes_first(&m->heap[k], &m->heap[least]))
                least = k;
        if (least == i)
            return top;
        swap(&m->heap[i], &m->heap[least]);
        i = least;
    }
}

/* Consider the pair of the part at `at` and the next one. */
static void consider(merging *m, int32_t at)
{
    if (at < 0 || m->next[at] >= m->bytes)
        return;
    int32_t bytes = m->next[m->next[at]] - at;
    int32_t rank = *slot_of(m->b, m->p + at, bytes);
    if (rank >= 0)
        push(m, (pair){rank, at, bytes});
}

static void join(merging *m, const pair *x)
{
    int32_t second = m->next[x->at], after = m->next[second];
    m->alive[second] = false;
    m->next[x->at] = after;
    if (after < m->bytes)
        m->before[after] = x->at;
    consider(m, x->at);
    consider(m, m->before[x->at]);
}

/* A pair is of today when its two parts still are what they were. */
static bool is_current(const merging *m, const pair *x)
{
    return m->alive[x->at] && m->next[x->at] < m->bytes &&
           m->next[m->next[x->at]] == x->at + x->bytes;
}

int64_t nami_bpe_encode(const nami_bpe *b, const unsigned char *piece, int64_t bytes,
                        uint16_t *out)
{
    int32_t rank = *slot_of(b, piece, bytes);
    if (rank >= 0) { /* a token as it is, as tiktoken has it too */
        out[0] = (uint16_t)rank;
        return 1;
    }
    size_t n = (size_t)bytes;
    merging m = {.b = b, .p = piece, .bytes = (int32_t)bytes};
    m.next = nami_alloc(NAMI_MEM_OTHER, (n + 1) * sizeof *m.next);
    m.before = nami_alloc(NAMI_MEM_OTHER, (n + 1) * sizeof *m.before);
    m.alive = nami_alloc(NAMI_MEM_OTHER, n * sizeof *m.alive);
    m.heap = nami_alloc(NAMI_MEM_OTHER, 3 * n * sizeof *m.heap);
    for (int32_t i = 0; i <= m.bytes; i++) {
        m.next[i] = i + 1;
        m.before[i] = i - 1;
    }
    memset(m.alive, 1, n);
    for (int32_t i = 0; i < m.bytes; i++)
        consider(&m, i);
    while (m.pairs > 0) {
        pair x = pop(&m);
        if (is_current(&m, &x))
            join(&m, &x);
    }
    int64_t count = 0;
    for (int32_t i = 0; i < m.bytes; i = m.next[i])
        out[count++] = (uint16_t)*slot_of(b, piece + i, m.next[i] - i);
    nami_free(m.heap);
    nami_free(m.alive);
    nami_free(m.before);
    nami_free(m.next);
    return count;
}
