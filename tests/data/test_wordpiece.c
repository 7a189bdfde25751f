/* SPDX-License-Identifier: MIT */
/* test_wordpiece.c - BERT's tokens: folding of every character, texts against Hugging Face's, hostile vocabularies. */
#include "data/files.h"

#include "base/clock.h"
#include "base/rng.h"
#include "data/fold.h"
#include "data/unicode.h"
#include "data/wordpiece.h"

#define SECONDS 2.0 /* of mutations, at most */

static uint32_t sum_words(uint32_t sum, const uint32_t *word, int count)
{
    unsigned char byte[4 * 8];
    for (int i = 0; i < count; i++)
        little(byte + 4 * i, word[i], 4);
    return nami_store_crc(sum, byte, 4 * (size_t)count);
}

/* Against Python's unicodedata: validation/data/fold.py sum. */
static void test_fold(void **state)
{
    (void)state;
    uint32_t sum = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t word[3 + NAMI_FOLD_MOST];
        if (c >= 0xd800 && c < 0xe000)
            continue;
        int n = nami_fold(c, word + 3);
        assert_in_range(n, 0, NAMI_FOLD_MOST);
        word[0] = c;
        word[1] = (uint32_t)nami_fold_class_of(c);
        word[2] = (uint32_t)n;
        sum = sum_words(sum, word, 3 + n);
    }
    assert_int_equal(sum, 0x235fd2cd);
    assert_true(nami_fold_is_ideograph(0x4e2d) && nami_fold_is_ideograph(0x2fa1f));
    assert_false(nami_fold_is_ideograph(0x3042) || nami_fold_is_ideograph('a') ||
                 nami_fold_is_ideograph(0x2fa20));
}

static nami_wordpiece *open_own(void)
{
    char path[512];
    nami_wordpiece *w;
    assert_ok(nami_wordpiece_open(
        nami_test_source(path, "tests/data/wordpiece-vocab.txt"), &w));
    return w;
}

static void test_vectors(void **state)
{
    (void)state;
    static char line[1 << 14];
    char path[512];
    int texts = 0;
    nami_wordpiece *w = open_own();
    FILE *f = fopen(nami_test_source(path, "tests/data/wordpiece.txt"), "r");
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); texts++) {
        unsigned char text[1 << 12];
        uint16_t got[1 << 12];
        int64_t bytes = 0;
        char *p = line;
        for (unsigned x; sscanf(p, "%2x", &x) == 1 && *p != ' '; p += 2)
            text[bytes++] = (unsigned char)x;
        p += *p == '-';
        int64_t count = nami_wordpiece_encode(w, text, bytes, got);
        assert_in_range(count, 0, bytes);
        for (int64_t i = 0; i < count; i++) {
            char *end;
            long want = strtol(p, &end, 10);
            if (end == p || want != got[i])
                fail_msg("text %d, token %d: %d where %ld is expected", texts, (int)i,
                         (int)got[i], want);
            p = end;
        }
        assert_string_equal(p, "\n");
    }
    fclose(f);
    assert_in_range(texts, 100, 1000);
    nami_wordpiece_close(w);
}

static void test_specials(void **state)
{
    (void)state;
    uint16_t out[8];
    static const uint16_t number[NAMI_WORDPIECE_SPECIALS] = {0, 2, 3, 4, 5};
    nami_wordpiece *w = open_own();
    assert_int_equal(nami_wordpiece_tokens(w), 298);
    for (int i = 0; i < NAMI_WORDPIECE_SPECIALS; i++)
        assert_int_equal(nami_wordpiece_special_of(w, (nami_wordpiece_special)i),
                         number[i]);
    /* "[", four letters, "]" */
    assert_int_equal(nami_wordpiece_encode(w, (const unsigned char *)"[MASK]", 6, out),
                     6);
    assert_int_equal(
        nami_wordpiece_encode(w, (const unsigned char *)"\xff\xc3", 2, out), 0);
    nami_wordpiece_close(w);
}

/* --- vocabulary files that are none --- */

#define FIVE "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *file, *sentence;
    } row[] = {
        {"", "has 0 lines"},
        {"\n", "has 1 lines"},
        {FIVE, "has 5 lines"},
        {FIVE "a\n\nb\n", "line 7 is empty"},
        {FIVE "\r\n", "line 6 is empty"},
        {FIVE "a\nb\na\n", "line 8 has the token of line 6 again"},
        {FIVE "[SEP]\n", "line 6 has the token of line 4 again"},
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n", "has no token [MASK]"},
        {"[PAD]\n[UNK]\n[cls]\n[SEP]\n[MASK]\nb\n", "has no token [CLS]"},
    };
    char path[512];
    nami_wordpiece *w;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put(path, "bad", row[i].file, strlen(row[i].file));
        assert_fails(nami_wordpiece_open(path, &w), NAMI_EINPUT, row[i].sentence);
        assert_null(w);
    }
    put(path, "bad", FIVE "a\r\nb", sizeof FIVE + 3);
    assert_ok(nami_wordpiece_open(path, &w));
    assert_int_equal(nami_wordpiece_tokens(w), 7);
    nami_wordpiece_close(w);
    char *huge = nami_alloc(NAMI_MEM_OTHER, 1 << 20);
    memset(huge, 'x', 1 << 20);
    memcpy(huge, FIVE, sizeof FIVE - 1);
    put(path, "bad", huge, 1 << 20);
    assert_fails(nami_wordpiece_open(path, &w), NAMI_EINPUT, "more than the 512");
    memset(huge, '\n', 1 << 20);
    put(path, "bad", huge, 1 << 20);
    assert_fails(nami_wordpiece_open(path, &w), NAMI_EINPUT, "1048576 lines");
    nami_free(huge);
    assert_fails(nami_wordpiece_open("none", &w), NAMI_EINPUT, "none");
}

/* A mutated vocabulary is refused, or its tokens are below its size; so they are of any bytes. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(85);
    char path[512], valid[4096], p[4096];
    FILE *f = fopen(nami_test_source(path, "tests/data/wordpiece-vocab.txt"), "r");
    assert_non_null(f);
    size_t size = fread(valid, 1, sizeof valid, f);
    fclose(f);
    double end = nami_now() + SECONDS;
    int taken = 0;
    uint64_t trial = 0;
    for (; trial < 200 && nami_now() < end; trial++) {
        size_t bytes = trial % 4 ? size : nami_mix(seed, trial) % size;
        nami_wordpiece *w;
        memcpy(p, valid, size);
        for (uint64_t k = 0; bytes && k < trial % 5; k++)
            p[nami_mix(seed + trial, k) % bytes] =
                (char)(nami_mix(seed + trial, 99 + k) >> (trial % 2 ? 0 : 58));
        put(path, "mutated", p, bytes);
        nami_status status = nami_wordpiece_open(path, &w);
        if (status == NAMI_OK) {
            unsigned char text[300];
            uint16_t out[300];
            for (size_t i = 0; i < sizeof text; i++)
                text[i] = (unsigned char)(nami_mix(trial, i) >> (i % 3 ? 57 : 40));
            int64_t n = nami_wordpiece_encode(w, text, sizeof text, out);
            assert_in_range(n, 1, 300);
            for (int64_t i = 0; i < n; i++)
                assert_in_range(out[i], 0, nami_wordpiece_tokens(w) - 1);
            taken++;
        } else if (status != NAMI_EINPUT || !*nami_fail_text() || w) {
            fail_msg("trial %d: status %d", (int)trial, (int)status);
        }
        nami_fail_clear();
        nami_wordpiece_close(w);
    }
    print_message("%d trials, %d taken\n", (int)trial, taken);
    assert_in_range(taken, trial < 100 ? 0 : 1, trial);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),     cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_specials), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
