/* SPDX-License-Identifier: MIT */
/* test_bert.c - sentences for BERT: import, and samples as functions of their number. */
#include "data/files.h"

#include <stdarg.h>

#include "base/rng.h"
#include "base/text.h"
#include "comm/mpi_test.h"
#include "data/bert.h"
#include "data/bert_pair.h"
#include "data/tokens.h"

/* --- texts --- */

#define FIVE "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
enum { PAD, UNK, CLS, SEP, MASK, FIRST, LETTERS = 26, VOCABULARY = FIRST + LETTERS };

/* A vocabulary of letters; a word "abc" is a ##b ##c only if those were there: words are single letters. */
static const char *put_vocabulary(char buf[512])
{
    nami_text t = {0};
    nami_text_add(&t, FIVE);
    for (int i = 0; i < LETTERS; i++)
        nami_text_add(&t, "%c\n", 'a' + i);
    put(buf, "vocab.txt", t.data, t.length);
    nami_text_free(&t);
    return buf;
}

static nami_status import_texts(const char *out, double split, int texts, ...)
{
    char *input[8], vocabulary[512];
    va_list list;
    va_start(list, texts);
    input[0] = vocabulary;
    put_vocabulary(vocabulary);
    for (int i = 0; i < texts; i++)
        input[1 + i] = va_arg(list, char *);
    va_end(list);
    nami_import im = {.format = NAMI_IMPORT_BERT_TEXT,
                      .input = input,
                      .inputs = 1 + texts,
                      .output = out,
                      .split = split};
    return nami_import_run(&im);
}

static void expect_list(const char *path, const char *name, const char *want)
{
    nami_store *s;
    nami_store_type type;
    int axes;
    int64_t extent[4], value[64];
    uint16_t token[64];
    nami_text got = {0};
    assert_ok(nami_store_open(NULL, path, &s));
    assert_ok(nami_store_shape(s, name, &type, &axes, extent));
    assert_int_equal(axes, 1);
    assert_in_range(extent[0], 1, 64);
    assert_ok(nami_store_read(s, name, 0, extent[0],
                              type == NAMI_STORE_U16 ? (void *)token : value));
    for (int i = 0; i < extent[0]; i++)
        nami_text_add(&got, "%s%lld", i ? " " : "",
                      type == NAMI_STORE_U16 ? (long long)token[i] - FIRST
                                             : (long long)value[i]);
    assert_string_equal(nami_text_get(&got), want);
    nami_text_free(&got);
    assert_ok(nami_store_close(s));
}

static void test_import(void **state)
{
    (void)state;
    if (rank != 0)
        return;
    char in[2][512], out[512], path[512];
    put(in[0], "a.txt", "A b\r\n\n\x01\nc d e\n \t\r\n\nF\n", 21);
    put(in[1], "b.txt", "\n\ng \xc3\xa1\nb", 8);
    nami_test_path(out, "o.h5");
    assert_ok(import_texts(out, 0, 2, in[0], in[1]));
    expect_list(out, "/tokens", "0 1 2 3 4 5 6 0 1");
    expect_list(out, "/sentences", "0 2 5 6 8 9");
    expect_list(out, "/documents", "0 1 2 3 5");
    /* the line that has the cut within goes to the first set, and the document goes on in the second */
    put(in[0], "c.txt", "a\nb\nc d\ne\nf\n\ng\n", 15);
    assert_ok(import_texts(out, 0.4, 1, in[0]));
    expect_list(nami_test_path(path, "o-train.h5"), "/tokens", "0 1 2 3");
    expect_list(path, "/documents", "0 3");
    expect_list(nami_test_path(path, "o-valid.h5"), "/tokens", "4 5 6");
    expect_list(path, "/sentences", "0 1 2 3");
    expect_list(path, "/documents", "0 2 3");
    assert_int_equal(count_files("nami-"), 0);
}

static void test_import_refuses(void **state)
{
    (void)state;
    if (rank != 0)
        return;
    char in[512], out[512];
    nami_test_path(out, "o.h5");
    put(in, "a.txt", "a b\n\n \n", 7);
    assert_fails(import_texts(out, 0, 1, in), NAMI_EINPUT, "1 sentence is too few");
    put(in, "a.txt", "\x01\n\n", 3);
    assert_fails(import_texts(out, 0, 1, in), NAMI_EINPUT, "0 sentences are too few");
    put(in, "a.txt", "a\nb\nc\n", 6);
    assert_fails(import_texts(out, 0.5, 1, in), NAMI_EINPUT, "for this split");
    assert_fails(import_texts(out, 0, 0), NAMI_EINPUT, "VOCAB IN... OUT");
    char *line = nami_alloc(NAMI_MEM_OTHER, (1 << 20) + 1);
    memset(line, 'a', (1 << 20) + 1);
    put(in, "a.txt", line, (1 << 20) + 1);
    assert_fails(import_texts(out, 0, 1, in), NAMI_EINPUT, "are one line");
    nami_free(line);
    assert_int_equal(count_files("tmp"), 0);
    assert_int_equal(count_files("nami-"), 0);
}

/* --- samples --- */

/* A text of `documents` documents, imported to `out`. */
static void make_set(char out[512], int documents, uint64_t seed)
{
    nami_text t = {0};
    char in[512];
    for (int d = 0, i = 0; d < documents; d++) {
        for (uint64_t s = 0; s < 1 + nami_mix(seed, (uint64_t)d) % 5; s++) {
            for (uint64_t w = 0; w < 1 + nami_mix(seed, (uint64_t)++i) % 9; w++)
                nami_text_add(&t, "%c ",
                              'a' + (int)(nami_mix(seed + w, (uint64_t)i) % 26));
            nami_text_add(&t, "\n");
        }
        nami_text_add(&t, "\n");
    }
    put(in, "set.txt", t.data, t.length);
    nami_text_free(&t);
    assert_ok(import_texts(nami_test_path(out, "set.h5"), 0, 1, in));
}

static const nami_bert_want want = {.time = 24, .masked = 4, .vocabulary = 0};
enum { WORDS = 2 * 24 + 1, TARGETS = 2 * 4 + 1 };

static void test_samples(void **state)
{
    (void)state;
    char out[512];
    nami_bert *d, *again;
    int32_t x[WORDS], y[TARGETS], x2[WORDS], y2[TARGETS];
    if (rank == 0)
        make_set(out, 60, 5);
    nami_test_path(out, "set.h5");
    nami_comm_barrier(world);
    assert_ok(nami_bert_open(world, out, &want, &d));
    assert_ok(nami_bert_open(NULL, out, &want, &again));
    int64_t n = nami_bert_samples(d);
    assert_in_range(n, 10, 1000);
    assert_int_equal(nami_bert_vocabulary(d), VOCABULARY);
    int differ = 0;
    for (int64_t i = 0; i < 3 * n; i++) {
        assert_ok(nami_bert_read(d, 7, i, x, y));
        assert_in_range(x[2 * 24], 5, 24);
        /* one output at a time, in another order */
        assert_ok(nami_bert_read(again, 7, 3 * n - 1 - i, x2, NULL));
        assert_ok(nami_bert_read(again, 7, i, NULL, y2));
        assert_ok(nami_bert_read(again, 7, i, x2, NULL));
        assert_memory_equal(x, x2, sizeof x);
        assert_memory_equal(y, y2, sizeof y);
        assert_ok(nami_bert_read(again, 8, i, x2, y2));
        differ += memcmp(x, x2, sizeof x) != 0;
    }
    assert_true(differ > 2 * n);
    for (int64_t i = 0; i < n; i++) {
        assert_ok(nami_bert_read_fixed(d, i, x, y));
        assert_ok(nami_bert_read_fixed(again, i, x2, y2));
        assert_memory_equal(x, x2, sizeof x);
        assert_memory_equal(y, y2, sizeof y);
    }
    nami_bert_close(again);
    nami_bert_close(d);
}

/* The numbers of a list read in blocks are those of the list in memory. */
static void test_offsets(void **state)
{
    (void)state;
    enum { N = 2500 };
    static int64_t whole[N + 1];
    char path[512];
    nami_store *s;
    if (rank != 0)
        return;
    for (int i = 1; i <= N; i++)
        whole[i] = whole[i - 1] + 1 + i % 3;
    nami_test_path(path, "offsets.h5");
    assert_ok(nami_store_create(NULL, path, &s));
    assert_ok(nami_store_define(s, "/sentences", NAMI_STORE_I64, 1, &(int64_t){N + 1}));
    assert_ok(nami_store_write(s, "/sentences", 0, N + 1, whole));
    assert_ok(nami_store_close(s));
    assert_ok(nami_store_open(NULL, path, &s));
    nami_offsets o = {.store = s, .name = "/sentences", .count = N};
    for (int i = 0; i <= N; i++) {
        int64_t at = i * 769 % (N + 1), got;
        assert_ok(nami_offsets_get(&o, at, &got));
        assert_int_equal(got, whole[at]);
        if (at == N)
            continue;
        assert_ok(nami_offsets_find(&o, whole[at], &got));
        assert_int_equal(got, at);
        assert_ok(nami_offsets_find(&o, whole[at + 1] - 1, &got));
        assert_int_equal(got, at);
    }
    nami_free(o.block);
    assert_ok(nami_store_close(s));
}

/* Write a text of `tokens` tokens in two documents of two sentences each, each token 7 letters behind the one before. */
static void write_large(const char *path, int64_t tokens)
{
    enum { BLOCK = 1 << 18 };
    static uint16_t block[BLOCK];
    static const char *const special[] = {"pad", "unk", "cls", "sep", "mask"};
    const int64_t sentence[5] = {0, tokens / 4, tokens / 2, tokens - 9, tokens};
    const int64_t document[3] = {0, 2, 4};
    static const char *const sum[] = {"checksum", "sentence_checksum",
                                      "document_checksum"};
    const uint32_t crc[] = {0, nami_tokens_checksum(0, sentence, 5, 8),
                            nami_tokens_checksum(0, document, 3, 8)};
    nami_store *s;
    assert_ok(nami_store_create(NULL, path, &s));
    assert_ok(nami_store_define(s, "/tokens", NAMI_STORE_U16, 1, &tokens));
    assert_ok(nami_store_define(s, "/sentences", NAMI_STORE_I64, 1, &(int64_t){5}));
    assert_ok(nami_store_define(s, "/documents", NAMI_STORE_I64, 1, &(int64_t){3}));
    for (int64_t at = 0; at < tokens; at += BLOCK) {
        int64_t n = tokens - at < BLOCK ? tokens - at : BLOCK;
        for (int64_t i = 0; i < n; i++)
            block[i] = (uint16_t)(FIRST + (at + i) * 7 % LETTERS);
        assert_ok(nami_store_write(s, "/tokens", at, n, block));
    }
    assert_ok(nami_store_write(s, "/sentences", 0, 5, sentence));
    assert_ok(nami_store_write(s, "/documents", 0, 3, document));
    assert_ok(nami_store_set_text(s, "kind", "bert-text"));
    assert_ok(nami_store_set_text(s, "wordpiece", ""));
    assert_ok(nami_store_set_int(s, "vocabulary", VOCABULARY));
    assert_ok(nami_store_set_int(s, "tokens", tokens));
    assert_ok(nami_store_set_int(s, "sentences", 4));
    assert_ok(nami_store_set_int(s, "documents", 2));
    for (int i = 0; i < 5; i++)
        assert_ok(nami_store_set_int(s, special[i], i));
    for (int i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "crc32:%08x", (unsigned)crc[i]);
        assert_ok(nami_store_set_text(s, sum[i], text));
    }
    assert_ok(nami_store_close(s));
}

/* A set that is too large to be kept: its parts are runs of the text. */
static void test_large(void **state)
{
    (void)state;
    char path[512];
    nami_bert *d;
    int32_t x[WORDS], y[TARGETS];
    nami_test_path(path, "large.h5");
    if (rank == 0)
        write_large(path, NAMI_DATA_WHOLE / 2 + 1000);
    nami_comm_barrier(world);
    assert_ok(nami_bert_open(world, path, &want, &d));
    for (int64_t i = 0; i < 200; i++) {
        assert_ok(nami_bert_read(d, 11, i, x, y));
        for (int k = 0; k < 4 && y[k]; k++)
            x[y[k]] = y[4 + k];
        int length = x[48], seps = 0;
        assert_int_equal(x[0], CLS);
        for (int k = 1; k < length; k++) {
            seps += x[k] == SEP;
            if (x[k] != SEP && x[k - 1] != SEP && x[k - 1] != CLS)
                assert_int_equal((x[k] - x[k - 1] + LETTERS) % LETTERS, 7);
        }
        assert_int_equal(seps, 2);
    }
    nami_bert_close(d);
}

/* Sets that are of another kind, or damaged: a sentence each. */
static void test_refuses(void **state)
{
    (void)state;
    char out[512], in[512];
    nami_bert *d;
    nami_data *plain;
    if (rank != 0)
        return;
    make_set(out, 5, 6);
    assert_fails(nami_data_open(NULL, out, 8, 0, &plain), NAMI_EINPUT, "sentences");
    nami_bert_want small = {.time = 24, .masked = 4, .vocabulary = FIRST + 3};
    assert_fails(nami_bert_open(NULL, out, &small, &d), NAMI_EINPUT,
                 "vocabulary of 8 (the model's)");
    small.vocabulary = 3;
    assert_fails(nami_bert_open(NULL, out, &small, &d), NAMI_EINPUT, "its token sep");
    nami_bert_want large = {.time = 5000, .masked = 4};
    assert_fails(nami_bert_open(NULL, out, &large, &d), NAMI_EINPUT, "too few");
    put(in, "plain", "some text", 9);
    nami_test_path(out, "plain.h5");
    assert_ok(import_one(NAMI_IMPORT_TEXT, in, out, 0, 0));
    assert_fails(nami_bert_open(NULL, out, &want, &d), NAMI_EINPUT, "of kind 'bytes'");
    assert_null(d);
}

/* A text whose offsets are damaged, with checksums that fit: a sentence each. */
static void test_bad_offsets(void **state)
{
    (void)state;
    static const int64_t list[][3] = {{1, 4, 9}, {0, 0, 9}, {0, 10, 9}, {0, 4, 8}};
    char path[512];
    if (rank != 0)
        return;
    nami_test_path(path, "offsets.h5");
    for (int i = 0; i < 4; i++) {
        char text[32];
        nami_bert *d;
        nami_store *s;
        uint16_t token[9] = {FIRST};
        static const char *const number[] = {"pad", "unk", "cls", "sep", "mask"};
        assert_ok(nami_store_create(NULL, path, &s));
        assert_ok(nami_store_define(s, "/tokens", NAMI_STORE_U16, 1, &(int64_t){9}));
        assert_ok(nami_store_define(s, "/sentences", NAMI_STORE_I64, 1, &(int64_t){3}));
        assert_ok(nami_store_define(s, "/documents", NAMI_STORE_I64, 1, &(int64_t){2}));
        assert_ok(nami_store_write(s, "/tokens", 0, 9, token));
        assert_ok(nami_store_write(s, "/sentences", 0, 3, list[i]));
        assert_ok(nami_store_write(s, "/documents", 0, 2, (int64_t[]){0, 2}));
        assert_ok(nami_store_set_text(s, "kind", "bert-text"));
        assert_ok(nami_store_set_text(s, "wordpiece", ""));
        assert_ok(nami_store_set_text(s, "checksum", ""));
        assert_ok(nami_store_set_text(s, "document_checksum", ""));
        snprintf(text, sizeof text, "crc32:%08x",
                 (unsigned)nami_tokens_checksum(0, list[i], 3, 8));
        assert_ok(nami_store_set_text(s, "sentence_checksum", text));
        assert_ok(nami_store_set_int(s, "vocabulary", VOCABULARY));
        assert_ok(nami_store_set_int(s, "tokens", 9));
        assert_ok(nami_store_set_int(s, "sentences", 2));
        assert_ok(nami_store_set_int(s, "documents", 1));
        for (int k = 0; k < 5; k++)
            assert_ok(nami_store_set_int(s, number[k], k));
        assert_ok(nami_store_close(s));
        assert_fails(nami_bert_open(NULL, path, &(nami_bert_want){8, 2, 0}, &d),
                     NAMI_EINPUT, "ascend from 0 to 9");
    }
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import),      cmocka_unit_test(test_import_refuses),
        cmocka_unit_test(test_samples),     cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_bad_offsets),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
