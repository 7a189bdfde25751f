/* SPDX-License-Identifier: MIT */
/* test_import.c - every importer gives the tokens it was given, or one sentence. */
#include "data/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"

/* Tokens [from, from+count) of the set at `path`, which must hold exactly `count`. */
static void expect_set(const char *path, const uint16_t *want, int64_t count,
                       int64_t vocabulary, const char *kind)
{
    nami_data *d;
    assert_ok(nami_data_open(NULL, path, 1, 0, &d));
    assert_int_equal(nami_data_tokens(d), count);
    assert_int_equal(nami_data_vocabulary(d), vocabulary);
    assert_string_equal(nami_data_kind(d), kind);
    uint16_t *got = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *got);
    assert_ok(nami_data_slab(d, 0, count, got));
    assert_memory_equal(got, want, (size_t)count * sizeof *got);
    nami_free(got);
    nami_data_close(d);
}

static void expect_bytes(const char *path, const unsigned char *want, int64_t count)
{
    uint16_t *word = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *word);
    for (int64_t i = 0; i < count; i++)
        word[i] = want[i];
    expect_set(path, word, count, 256, "bytes");
    nami_free(word);
}

static unsigned char *noise(size_t bytes, uint64_t seed)
{
    unsigned char *p = nami_alloc(NAMI_MEM_OTHER, bytes);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(nami_mix(seed, i / 8) >> 8 * (i % 8));
    return p;
}

static uint16_t *words(int64_t count, int64_t vocabulary, uint64_t seed)
{
    uint16_t *p = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *p);
    for (int64_t i = 0; i < count; i++)
        p[i] = (uint16_t)(nami_mix(seed, (uint64_t)i) % (uint64_t)vocabulary);
    return p;
}

static void test_text(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(31);
    static const size_t sizes[] = {2, 3, 1000, 1048575, 1048576, 1048577, 3000000};
    char in[512], gz[512], out[512];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = noise(sizes[i], seed + i);
        put(in, "in", p, sizes[i]);
        assert_ok(import_one(NAMI_IMPORT_TEXT, in, nami_test_path(out, "o.h5"), 0, 0));
        expect_bytes(out, p, (int64_t)sizes[i]);
        put_gz(gz, "in.gz", p, sizes[i]);
        assert_ok(import_one(NAMI_IMPORT_TEXT, gz, out, 0, 256));
        expect_bytes(out, p, (int64_t)sizes[i]);
        nami_free(p);
    }
    assert_int_equal(count_files("tmp"), 0);
}

static void test_split(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(32);
    static const double split[] = {0.9, 0.5, 0.001, 0.999};
    enum { N = 1300001 };
    unsigned char *p = noise(N, seed);
    char in[512], out[512], train[512], valid[512];
    put(in, "in", p, N);
    nami_test_path(train, "o-train.h5");
    nami_test_path(valid, "o-valid.h5");
    for (int i = 0; i < 4; i++) {
        int64_t cut = (int64_t)(N * split[i]);
        nami_test_path(out, i % 2 ? "o.h5" : "o");
        assert_ok(import_one(NAMI_IMPORT_TEXT, in, out, split[i], 0));
        expect_bytes(train, p, cut);
        expect_bytes(valid, p + cut, N - cut);
    }
    nami_free(p);
    put(in, "few", "abc", 3);
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, out, 0.9, 0), NAMI_EINPUT,
                 "too few for this split");
}

static void test_nanogpt(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(33);
    static const int64_t vocabulary[] = {1, 65, 256, 257, 50257, 65536};
    char in[512], out[512];
    nami_test_path(out, "o.h5");
    for (int i = 0; i < 6; i++) {
        int64_t n = i % 2 ? 1500000 : 77;
        uint16_t *p = words(n, vocabulary[i], seed + (uint64_t)i);
        size_t bytes;
        unsigned char *file = shard(p, n, &bytes);
        put(in, "in.bin", file + 1024, bytes - 1024);
        assert_ok(import_one(NAMI_IMPORT_NANOGPT, in, out, 0, vocabulary[i]));
        expect_set(out, p, n, vocabulary[i], "tokens");
        nami_free(file);
        nami_free(p);
    }
}

static void test_llmc(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(34);
    enum { SHARDS = 5 };
    uint16_t *all = words(5000000, 50257, seed);
    char path[SHARDS][512], out[512], *input[SHARDS];
    int64_t at = 0;
    for (int i = 0; i < SHARDS; i++) {
        int64_t n =
            i == 2 ? 0 : (int64_t)(nami_uniform(seed, (uint64_t)i) * 1500000) + 1;
        size_t bytes;
        unsigned char *file = shard(all + at, n, &bytes);
        char name[32];
        snprintf(name, sizeof name, "s%d.bin%s", i, i == 1 ? ".gz" : "");
        (i == 1 ? put_gz : put)(path[i], name, file, bytes);
        input[i] = path[i];
        nami_free(file);
        at += n;
    }
    nami_test_path(out, "o.h5");
    nami_import im = {
        .format = NAMI_IMPORT_LLMC, .input = input, .inputs = SHARDS, .output = out};
    assert_ok(nami_import_run(&im));
    expect_set(out, all, at, 50257, "gpt2");
    nami_free(all);
}

/* Each type of a token; the input named in three ways. */
static void test_megatron(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(37);
    static const struct {
        int type, width;
        int64_t count, vocabulary;
    } way[] = {{1, 1, 77, 200},   {2, 1, 77, 100},    {3, 2, 1500000, 30000},
               {4, 4, 77, 50257}, {5, 8, 1200000, 7}, {8, 2, 77, 65536},
               {8, 2, 5, 50257}};
    for (int k = 0; k < 7; k++) {
        char in[512], bin[512], out[512];
        unsigned char index[INDEX_BYTES];
        int64_t n = way[k].count;
        uint16_t *p = words(n, way[k].vocabulary, seed + (uint64_t)k);
        unsigned char *file =
            nami_calloc(NAMI_MEM_OTHER, (size_t)(n * way[k].width), 1);
        for (int64_t i = 0; i < n; i++)
            little(file + i * way[k].width, p[i], way[k].width);
        megatron_index(index, way[k].type, way[k].width, n);
        put(in, "m.idx", index, sizeof index);
        put(bin, "m.bin", file, (size_t)(n * way[k].width));
        in[strlen(in) - (k % 3 ? 0 : 4)] = '\0';
        assert_ok(import_one(NAMI_IMPORT_MEGATRON, k % 3 == 1 ? bin : in,
                             nami_test_path(out, "o.h5"), 0, way[k].vocabulary));
        expect_set(out, p, n, way[k].vocabulary, "tokens");
        nami_free(file);
        nami_free(p);
    }
}

/* One number of the index changed, or another length of the files. */
static void test_hostile_megatron(void **state)
{
    (void)state;
    enum { N = 20 };
    static const struct {
        int at, bytes; /* at -1: unchanged */
        int64_t value;
        size_t index, bin; /* bytes of the files */
        const char *sentence;
    } row[] = {
        {0, 1, 'X', INDEX_BYTES, 2 * N, "does not start with MMIDIDX"},
        {9, 8, 2, INDEX_BYTES, 2 * N, "version 2"},
        {17, 1, 7, INDEX_BYTES, 2 * N, "type 7"},
        {17, 1, 200, INDEX_BYTES, 2 * N, "type 200"},
        {18, 8, INT64_MAX, INDEX_BYTES, 2 * N, "do not make its 94 bytes"},
        {18, 8, 0, INDEX_BYTES, 2 * N, "do not make"},
        {26, 8, -1, INDEX_BYTES, 2 * N, "do not make"},
        {26, 8, 0, INDEX_BYTES, 2 * N, "do not make"},
        {34, 4, -5, INDEX_BYTES, 2 * N, "sequence 0 has -5 tokens"},
        {34, 4, 6, INDEX_BYTES, 2 * N, "sequence 1 has 0 tokens at byte 10"},
        {54, 8, 13, INDEX_BYTES, 2 * N, "where byte 10"},
        {46, 8, -2, INDEX_BYTES, 2 * N, "where byte 0"},
        {70, 8, 1, INDEX_BYTES, 2 * N, "from sequence 1 to 3"},
        {78, 8, 4, INDEX_BYTES, 2 * N, "behind"},
        {86, 8, 2, INDEX_BYTES, 2 * N, "from sequence 0 to 2"},
        {-1, 0, 0, INDEX_BYTES - 1, 2 * N, "truncated or damaged"},
        {-1, 0, 0, 33, 2 * N, "does not start"},
        {-1, 0, 0, 0, 2 * N, "does not start"},
        {-1, 0, 0, INDEX_BYTES, 2 * N - 1, "announces 20 tokens of 2 bytes"},
        {-1, 0, 0, INDEX_BYTES, 0, "announces 20 tokens"},
    };
    char in[512], out[512];
    unsigned char token[2 * N] = {0};
    nami_test_path(out, "none.h5");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        unsigned char index[INDEX_BYTES];
        megatron_index(index, 8, 2, N);
        if (row[i].at >= 0)
            little(index + row[i].at, row[i].value, row[i].bytes);
        put(in, "m.bin", token, row[i].bin);
        put(in, "m.idx", index, row[i].index);
        assert_fails(import_one(NAMI_IMPORT_MEGATRON, in, out, 0, 50257), NAMI_EINPUT,
                     row[i].sentence);
        assert_int_equal(access(out, F_OK), -1);
    }
    unsigned char index[INDEX_BYTES];
    megatron_index(index, 3, 2, N);
    little(token + 2 * 7, -3, 2);
    put(in, "m.bin", token, sizeof token);
    put(in, "m.idx", index, sizeof index);
    assert_fails(import_one(NAMI_IMPORT_MEGATRON, in, out, 0, 50257), NAMI_EINPUT,
                 "token 7 is -1");
    assert_fails(import_one(NAMI_IMPORT_MEGATRON, in, out, 0, 0), NAMI_EINPUT,
                 "--vocabulary");
    unlink(in);
    assert_fails(import_one(NAMI_IMPORT_MEGATRON, in, out, 0, 9), NAMI_EINPUT, "m.idx");
}

/* Standard input as a pipe and as a file that was read in part, between two files. */
static void test_standard_input(void **state)
{
    (void)state;
    char a[512], b[512], out[512];
    put(a, "a", "first ", 6);
    put(b, "b", " last", 5);
    nami_test_path(out, "o.h5");
    char *input[] = {a, (char[]){"-"}, b};
    nami_import im = {
        .format = NAMI_IMPORT_TEXT, .input = input, .inputs = 3, .output = out};
    int pipes[2], keep = dup(0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "middle", 6), 6);
    close(pipes[1]);
    dup2(pipes[0], 0);
    close(pipes[0]);
    assert_ok(nami_import_run(&im));
    expect_bytes(out, (const unsigned char *)"first middle last", 17);
    char c[512];
    FILE *f = fopen(put(c, "c", "skip this middle", 16), "rb");
    assert_int_equal(lseek(fileno(f), 10, SEEK_SET), 10);
    dup2(fileno(f), 0);
    assert_ok(nami_import_run(&im));
    expect_bytes(out, (const unsigned char *)"first middle last", 17);
    fclose(f);
    dup2(keep, 0);
    close(keep);
}

typedef struct hostile {
    nami_import_format format;
    const char *name; /* of the input file */
    size_t bytes;     /* of the valid file below to keep; more: zeros */
    int at;           /* 4 bytes changed there to `value`; -1: none */
    uint32_t value;
    int64_t vocabulary;
    const char *sentence;
} hostile;

static const hostile hostiles[] = {
    {NAMI_IMPORT_TEXT, "x", 0, -1, 0, 0, "not one token"},
    {NAMI_IMPORT_TEXT, "x", 1, -1, 0, 0, "too few"},
    {NAMI_IMPORT_TEXT, "x", 100, -1, 0, 65, "vocabulary of 256"},
    {NAMI_IMPORT_TEXT, "x.gz", 0, -1, 0, 0, "not gzip data"},
    {NAMI_IMPORT_TEXT, "x.gz", 100, -1, 0, 0, "not gzip data"},
    {NAMI_IMPORT_TEXT, "x.gz", 100, 0, 0x00088b1f, 0, "gzip"},
    {NAMI_IMPORT_NANOGPT, "x", 0, -1, 0, 9, "not one token"},
    {NAMI_IMPORT_NANOGPT, "x", 1025, -1, 0, 65536, "odd number of bytes"},
    {NAMI_IMPORT_NANOGPT, "x", 1024, -1, 0, 0, "--vocabulary"},
    {NAMI_IMPORT_NANOGPT, "x", 1024, -1, 0, 70000, "not within"},
    {NAMI_IMPORT_NANOGPT, "x", 1024, -1, 0, -1, "not within"},
    {NAMI_IMPORT_NANOGPT, "x", 1224, 1100, 0xffff0000, 60000, "token 551 is 65535"},
    {NAMI_IMPORT_LLMC, "x", 0, -1, 0, 0, "less than the 1024"},
    {NAMI_IMPORT_LLMC, "x", 1023, -1, 0, 0, "less than the 1024"},
    {NAMI_IMPORT_LLMC, "x", 1024, -1, 0, 0, "announces 100 tokens"},
    {NAMI_IMPORT_LLMC, "x", 1223, -1, 0, 0, "announces 100 tokens"},
    {NAMI_IMPORT_LLMC, "x", 1225, -1, 0, 0, "announces 100 tokens"},
    {NAMI_IMPORT_LLMC, "x", 1224, 0, 0x01020304, 0, "magic 16909060"},
    {NAMI_IMPORT_LLMC, "x", 1224, 0, 20240801, 0, "32-bit tokens"},
    {NAMI_IMPORT_LLMC, "x", 1224, 0, 20240522, 0, "evaluation file"},
    {NAMI_IMPORT_LLMC, "x", 1224, 0, 20240326, 0, "checkpoint"},
    {NAMI_IMPORT_LLMC, "x", 1224, 4, 2, 0, "version 2"},
    {NAMI_IMPORT_LLMC, "x", 1224, 8, 0x7fffffff, 0, "announces 2147483647"},
    {NAMI_IMPORT_LLMC, "x", 1224, 8, 0xffffffff, 0, "announces -1"},
    {NAMI_IMPORT_LLMC, "x", 1224, 8, 0x80000064, 0, "announces -2147483548"},
};

static void test_hostile(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(35);
    char in[512], out[512], old[512];
    nami_test_path(out, "hostile-out.h5");
    put(old, "old", "kept as it was", 14);
    assert_ok(import_one(NAMI_IMPORT_TEXT, old, out, 0, 0));
    for (size_t i = 0; i < sizeof hostiles / sizeof *hostiles; i++) {
        const hostile *h = &hostiles[i];
        uint16_t *p = words(100, 9, seed);
        size_t bytes;
        unsigned char *valid = shard(p, 100, &bytes), file[2048] = {0};
        memcpy(file, valid, bytes);
        for (int k = 0; k < 4 && h->at >= 0; k++)
            file[h->at + k] = (unsigned char)(h->value >> 8 * k);
        put(in, h->name, file, h->bytes);
        nami_status status = import_one(h->format, in, out, 0, h->vocabulary);
        if (status != NAMI_EINPUT)
            fail_msg("row %zu gave %d: %s", i, (int)status, nami_fail_text());
        assert_fails(status, NAMI_EINPUT, h->sentence);
        nami_free(valid);
        nami_free(p);
    }
    expect_bytes(out, (const unsigned char *)"kept as it was", 14);
    assert_int_equal(count_files("tmp"), 0);
    assert_int_equal(count_files("nami-"), 0);
}

static void test_token_outside(void **state)
{
    (void)state;
    char in[512], out[512];
    uint16_t p[3] = {50256, 50257, 3};
    size_t bytes;
    unsigned char *file = shard(p, 3, &bytes);
    put(in, "x", file, bytes);
    nami_test_path(out, "o.h5");
    assert_fails(import_one(NAMI_IMPORT_LLMC, in, out, 0, 0), NAMI_EINPUT,
                 "token 1 is 50257, outside the vocabulary of 50257");
    assert_ok(import_one(NAMI_IMPORT_LLMC, in, out, 0, 50304));
    expect_set(out, p, 3, 50304, "gpt2");
    nami_free(file);
}

static void test_truncated_gz(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(36);
    enum { N = 20000 };
    unsigned char *p = noise(N, seed), file[2 * N];
    char gz[512], out[512];
    put_gz(gz, "x.gz", p, N);
    nami_test_path(out, "gz.h5");
    FILE *f = fopen(gz, "rb");
    size_t bytes = fread(file, 1, sizeof file, f);
    fclose(f);
    assert_in_range(bytes, N, 2 * N - 1);
    for (size_t cut = 3; cut < bytes; cut = cut < 30 ? cut + 1 : cut + 997) {
        put(gz, "x.gz", file, cut);
        assert_fails(import_one(NAMI_IMPORT_TEXT, gz, out, 0, 0), NAMI_EINPUT, "gz");
    }
    file[bytes - 6] ^= 1; /* in the stored checksum */
    put(gz, "x.gz", file, bytes);
    assert_fails(import_one(NAMI_IMPORT_TEXT, gz, out, 0, 0), NAMI_EINPUT, "damaged");
    nami_free(p);
}

static void test_places(void **state)
{
    (void)state;
    char in[512], out[512], in_h5[512];
    put(in, "in", "some text", 9);
    assert_fails(import_one(NAMI_IMPORT_TEXT, nami_test_path(out, "none"), out, 0, 0),
                 NAMI_EINPUT, "none");
    assert_fails(import_one(NAMI_IMPORT_TEXT, nami_test_path(out, ""), "o.h5", 0, 0),
                 NAMI_EINPUT, "is a directory");
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, nami_test_path(out, "no/o.h5"), 0, 0),
                 NAMI_EINPUT, "directory");
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, nami_test_path(out, "in/o.h5"), 0, 0),
                 NAMI_EINPUT, "directory");
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, "", 0, 0), NAMI_EINPUT, "no name");
    nami_test_path(out, "d.h5");
    assert_int_equal(mkdir(out, 0777), 0);
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, out, 0, 0), NAMI_EINPUT, "directory");
    put(out, "precious", "not a data set", 14);
    assert_fails(import_one(NAMI_IMPORT_TEXT, in, out, 0, 0), NAMI_EINPUT,
                 "not replaced");
    nami_test_path(in_h5, "in.h5");
    assert_ok(import_one(NAMI_IMPORT_TEXT, in, in_h5, 0, 0));
    assert_fails(import_one(NAMI_IMPORT_TEXT, in_h5, in_h5, 0, 0), NAMI_EINPUT,
                 "is an input and the output");
    assert_int_equal(count_files("tmp"), 0);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),           cmocka_unit_test(test_split),
        cmocka_unit_test(test_nanogpt),        cmocka_unit_test(test_llmc),
        cmocka_unit_test(test_megatron),       cmocka_unit_test(test_hostile_megatron),
        cmocka_unit_test(test_standard_input), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_token_outside),  cmocka_unit_test(test_truncated_gz),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
