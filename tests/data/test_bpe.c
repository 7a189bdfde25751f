/* SPDX-License-Identifier: MIT */
/* test_bpe.c - byte-pair encoding: pieces by hand, merges against a naive encoder, hostile rank files, whole imports. */
#include "data/files.h"

#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "data/bpe.h"

/* --- a table of ranks: all bytes, then merges of what is there --- */

enum { TOKENS = 700, LONGEST = 64 };
static unsigned char token[TOKENS][LONGEST];
static int length[TOKENS];

static int find(const unsigned char *p, int64_t bytes)
{
    for (int i = 0; i < TOKENS; i++)
        if (length[i] == bytes && !memcmp(token[i], p, (size_t)bytes))
            return i;
    return -1;
}

static void make_ranks(uint64_t seed)
{
    static const char letters[] = "aabcde  e.'1\n";
    for (int i = 0; i < 256; i++) {
        token[i][0] = (unsigned char)i;
        length[i] = 1;
    }
    for (int i = 256, at = 0; i < TOKENS;
         at++) { /* two tokens that there are, of few letters */
        uint64_t r = nami_mix(seed, (uint64_t)at);
        int a = i > 256 && r % 2 ? 256 + (int)(r / 2 % (uint64_t)(i - 256))
                                 : letters[r / 8 % (sizeof letters - 1)];
        int b = i > 256 && r / 4 % 2 ? 256 + (int)(r / 1024 % (uint64_t)(i - 256))
                                     : letters[r / 4096 % (sizeof letters - 1)];
        unsigned char both[2 * LONGEST];
        int n = length[a] + length[b];
        memcpy(both, token[a], (size_t)length[a]);
        memcpy(both + length[a], token[b], (size_t)length[b]);
        if (n > 12 || find(both, n) >= 0)
            continue;
        memcpy(token[i], both, (size_t)n);
        length[i++] = n;
    }
}

static void base64(nami_text *t, const unsigned char *p, int n)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < n; i += 3) {
        uint32_t w = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p[i + 2] : 0);
        nami_text_add(t, "%c%c%c%c", digit[w >> 18], digit[w >> 12 & 63],
                      i + 1 < n ? digit[w >> 6 & 63] : '=',
                      i + 2 < n ? digit[w & 63] : '=');
    }
}

/* The rank file; freed by the caller. */
static nami_text rank_file(void)
{
    nami_text t = {0};
    for (int i = 0; i < TOKENS; i++) {
        base64(&t, token[i], length[i]);
        nami_text_add(&t, " %d\n", i);
    }
    return t;
}

static const char *put_ranks(char buf[512])
{
    nami_text t = rank_file();
    put(buf, "ranks", t.data, t.length);
    nami_text_free(&t);
    return buf;
}

/* --- pieces --- */

static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pieces; /* with | between */
    } row[] = {
        {"Hello world", "Hello| world"},
        {"I'm we've they'll he'd it's don't you're 's",
         "I|'m| we|'ve| they|'ll| he|'d| it|'s| don|'t| you|'re| '|s"},
        {"I'M", "I|'|M"},
        {"a  b   c", "a| | b|  | c"},
        {"end.  \n\n next", "end|.|  \n\n| next"},
        {"x \n", "x| \n"},
        {"x   ", "x|   "},
        {"\tx", "\t|x"},
        {"abc123 45,6!!", "abc|123| 45|,|6|!!"},
        {"na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82 \xc2\xbd",
         "na\xc3\xafve| \xe4\xb8\xad\xe6\x96\x87|\xe3\x80\x82| \xc2\xbd"},
        {"a\xc2\xa0 b", "a|\xc2\xa0| b"},
        {"\xff\xfe x", "\xff\xfe| x"},
        {" ", " "},
        {"'", "'"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        nami_text got = {0};
        int64_t n = (int64_t)strlen(row[i].text);
        for (int64_t at = 0; at < n;) {
            int64_t bytes =
                nami_bpe_piece((const unsigned char *)row[i].text + at, n - at, true);
            assert_in_range(bytes, 1, n - at);
            nami_text_add(&got, "%s%.*s", at ? "|" : "", (int)bytes, row[i].text + at);
            at += bytes;
        }
        assert_string_equal(nami_text_get(&got), row[i].pieces);
        nami_text_free(&got);
    }
}

/* Text of few letters and some noise; freed with nami_free. */
static unsigned char *make_text(size_t bytes, uint64_t seed)
{
    static const char letters[] = "aaabcdee  ee.'s1\n\n tX";
    unsigned char *p = nami_alloc(NAMI_MEM_OTHER, bytes);
    for (size_t i = 0; i < bytes; i++) {
        uint64_t r = nami_mix(seed, i);
        p[i] = (unsigned char)(r % 97 ? letters[r / 128 % (sizeof letters - 1)]
                                      : (int)(r >> 56));
    }
    return p;
}

/* What a prefix decides stays so whatever follows. */
static void test_prefixes(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(81);
    unsigned char *p = make_text(3000, seed);
    for (int at = 0; at < 2900; at += 3) {
        int64_t whole = nami_bpe_piece(p + at, 3000 - at, true);
        for (int64_t n = 1; n < 40; n++) {
            int64_t part = nami_bpe_piece(p + at, n, false);
            assert_true(part == 0 || part == whole);
            if (n > whole + 12)
                assert_int_equal(part, whole);
        }
    }
    nami_free(p);
}

/* --- merges --- */

/* The definition, a pair at a time. */
static int64_t naive(const unsigned char *p, int64_t bytes, uint16_t *out)
{
    int64_t start[4096], parts = bytes;
    if (find(p, bytes) >= 0) {
        out[0] = (uint16_t)find(p, bytes);
        return 1;
    }
    for (int64_t i = 0; i <= bytes; i++)
        start[i] = i;
    for (;;) {
        int best = TOKENS;
        int64_t at = -1;
        for (int64_t i = 0; i + 1 < parts; i++) {
            int rank = find(p + start[i], start[i + 2] - start[i]);
            if (rank >= 0 && rank < best) {
                best = rank;
                at = i;
            }
        }
        if (at < 0)
            break;
        memmove(&start[at + 1], &start[at + 2],
                (size_t)(parts - at - 1) * sizeof *start);
        parts--;
    }
    for (int64_t i = 0; i < parts; i++)
        out[i] = (uint16_t)find(p + start[i], start[i + 1] - start[i]);
    return parts;
}

/* A text is the tokens of its pieces, whose bytes are the text again. */
static void test_text(void **state)
{
    (void)state;
    enum { BYTES = 2000 };
    uint64_t seed = nami_test_seed(83);
    char path[512];
    nami_bpe *b;
    make_ranks(seed);
    assert_ok(nami_bpe_open(put_ranks(path), &b));
    unsigned char *p = make_text(BYTES, seed);
    int32_t *got = nami_alloc(NAMI_MEM_OTHER, BYTES * sizeof *got);
    p[BYTES - 1] = '\0';
    for (int i = 0; i < BYTES - 1; i++) /* a string */
        p[i] = p[i] ? p[i] : 'x';
    int64_t tokens = nami_bpe_text(b, (const char *)p, got), at = 0, k = 0;
    while (at < BYTES - 1) {
        uint16_t want[BYTES];
        int64_t piece = nami_bpe_piece(p + at, BYTES - 1 - at, true);
        int64_t count = naive(p + at, piece, want);
        for (int64_t i = 0; i < count; i++, k++) {
            int64_t bytes;
            assert_int_equal(got[k], want[i]);
            const unsigned char *text = nami_bpe_token(b, got[k], &bytes);
            assert_memory_equal(text, p + at, (size_t)bytes);
            at += bytes;
        }
    }
    assert_int_equal(k, tokens);
    assert_int_equal(nami_bpe_text(b, "", got), 0);
    nami_free(got);
    nami_free(p);
    nami_bpe_close(b);
}

static void test_merges(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(82);
    char path[512];
    nami_bpe *b;
    make_ranks(seed);
    assert_ok(nami_bpe_open(put_ranks(path), &b));
    assert_int_equal(nami_bpe_tokens(b), TOKENS);
    for (uint64_t trial = 0; trial < 150; trial++) {
        uint16_t got[300], want[300];
        int64_t n = 1 + (int64_t)(nami_mix(seed, trial) % (trial % 10 ? 20 : 200));
        unsigned char *p = make_text((size_t)n, seed + trial);
        int64_t count = naive(p, n, want);
        assert_int_equal(nami_bpe_encode(b, p, n, got), count);
        assert_memory_equal(got, want, (size_t)count * sizeof *got);
        nami_free(p);
    }
    nami_bpe_close(b);
}

/* --- imports --- */

static nami_status import_bpe(const char *text, const char *out, double split)
{
    char ranks[512], *input[2] = {ranks, (char *)(uintptr_t)text};
    nami_test_path(ranks, "ranks");
    nami_import im = {.format = NAMI_IMPORT_BPE,
                      .input = input,
                      .inputs = 2,
                      .output = out,
                      .split = split};
    return nami_import_run(&im);
}

/* The set's tokens stand for exactly these bytes. */
static void expect_text(const char *path, const unsigned char *p, size_t bytes)
{
    nami_data *d;
    size_t at = 0;
    assert_ok(nami_data_open(NULL, path, 1, 0, &d));
    assert_int_equal(nami_data_vocabulary(d), TOKENS + 1);
    int64_t n = nami_data_tokens(d);
    uint16_t *t = nami_alloc(NAMI_MEM_OTHER, (size_t)n * sizeof *t);
    assert_ok(nami_data_slab(d, 0, n, t));
    for (int64_t i = 0; i < n; i++) {
        assert_true(at + (size_t)length[t[i]] <= bytes);
        assert_memory_equal(p + at, token[t[i]], (size_t)length[t[i]]);
        at += (size_t)length[t[i]];
    }
    assert_int_equal(at, bytes);
    nami_free(t);
    nami_data_close(d);
}

static void test_import(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(83);
    enum { N = 2500000 };
    char in[512], out[512], path[512], train[512], valid[512];
    make_ranks(seed);
    put_ranks(path);
    unsigned char *p = make_text(N, seed);
    memcpy(p + N / 2 - 1, "\xe4\xb8\xad", 3); /* not cut: the split is behind it */
    put(in, "in", p, N);
    nami_test_path(out, "o.h5");
    assert_ok(import_bpe(in, out, 0));
    expect_text(out, p, N);
    assert_ok(import_bpe(in, out, 0.5));
    expect_text(nami_test_path(train, "o-train.h5"), p, N / 2 + 2);
    expect_text(nami_test_path(valid, "o-valid.h5"), p + N / 2 + 2, N - N / 2 - 2);
    put(in, "few", "q", 1);
    assert_fails(import_bpe(in, out, 0), NAMI_EINPUT, "too few");
    memset(p, 'a', N);
    put(in, "word", p, N);
    assert_fails(import_bpe(in, out, 0), NAMI_EINPUT, "are one word");
    assert_int_equal(count_files("tmp"), 0);
    assert_int_equal(count_files("nami-"), 0);
    nami_free(p);
}

/* Rank files that are none: a sentence each. */
static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *line, *sentence; /* put in the place of the last line */
    } row[] = {
        {"", "no token of the single byte ff"},
        {"/w== 254", "rank 254"},
        {"/w== 700", "rank 700"},
        {"/w== -1", "rank -1"},
        {"/w==", "is not base64"},
        {"/w=", "is not base64"},
        {"* 255", "is not base64"},
        {" 255", "is not base64"},
        {"/w== x", "is not base64"},
        {"AA== 255", "again"},
    };
    char path[512];
    nami_bpe *b;
    make_ranks(1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        nami_text t = {0};
        for (int k = 0; k < 255; k++) {
            base64(&t, token[k], 1);
            nami_text_add(&t, " %d\n", k);
        }
        if (i == 0) {
            base64(&t, (const unsigned char *)"ab", 2);
            nami_text_add(&t, " 255\n");
        } else {
            nami_text_add(&t, "%s\n", row[i].line);
        }
        put(path, "bad", t.data, t.length);
        assert_fails(nami_bpe_open(path, &b), NAMI_EINPUT, row[i].sentence);
        assert_null(b);
        nami_text_free(&t);
    }
    put(path, "bad", "", 0);
    assert_fails(nami_bpe_open(path, &b), NAMI_EINPUT, "has 0 lines");
    put(path, "bad", "\0\0\n\0", 4);
    assert_fails(nami_bpe_open(path, &b), NAMI_EINPUT, "has 2 lines");
    assert_fails(nami_bpe_open("none", &b), NAMI_EINPUT, "none");
}

/* A mutated rank file is refused, or encodes and gives all bytes back. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(84);
    char path[512];
    make_ranks(seed);
    nami_text t = rank_file();
    int taken = 0;
    for (uint64_t trial = 0; trial < 150; trial++) {
        nami_bpe *b;
        char *copy = nami_alloc(NAMI_MEM_OTHER, t.length);
        memcpy(copy, t.data, t.length);
        size_t bytes = t.length;
        for (uint64_t k = 0; k < 1 + trial % 3; k++)
            copy[nami_mix(seed + trial, k) % bytes] =
                (char)(nami_mix(seed + trial, 99 + k) >> (trial % 2 ? 0 : 58));
        if (trial % 5 == 0)
            bytes = nami_mix(seed, trial) % bytes;
        put(path, "mutated", copy, bytes);
        nami_status status = nami_bpe_open(path, &b);
        if (status == NAMI_OK) {
            uint16_t out[16];
            int64_t count =
                nami_bpe_encode(b, (const unsigned char *)"a bad cabbage!.", 15, out);
            assert_in_range(count, 1, 15);
            for (int64_t i = 0; i < count; i++)
                assert_in_range(out[i], 0, nami_bpe_tokens(b) - 1);
            taken++;
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d", (int)trial, (int)status);
        }
        nami_fail_clear();
        nami_bpe_close(b);
        nami_free(copy);
    }
    print_message("%d taken\n", taken);
    assert_in_range(taken, 1, 150);
    nami_text_free(&t);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_merges), cmocka_unit_test(test_text),
        cmocka_unit_test(test_import), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
