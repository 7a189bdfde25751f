/* SPDX-License-Identifier: MIT */
/* test_nvidia.c - NVIDIA's files of ready BERT samples: imported, read back, refused, mutated. */
#include "data/files.h"

#include <hdf5.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "data/bert.h"

#define SECONDS 2.0 /* of mutations, at most */

enum { T = 12, P = 4, VOCABULARY = 300 };
enum { IDS, SEGMENTS, MASKS, POSITIONS, WAS, LABELS, ARRAYS };

static const struct {
    const char *name;
    int width;
} arrays[ARRAYS] = {{"input_ids", T},     {"segment_ids", T},
                    {"input_mask", T},    {"masked_lm_positions", P},
                    {"masked_lm_ids", P}, {"next_sentence_labels", 1}};

/* What a shard holds. */
typedef struct shard_text {
    int rows;
    int64_t x[ARRAYS][40 * T];
} shard_text;

/* Random samples, some with fewer masked positions than slots. */
static void make(shard_text *s, int rows, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->rows = rows;
    for (int r = 0; r < rows; r++) {
        uint64_t key = nami_mix(seed, (uint64_t)r);
        int length = 5 + (int)(key % (T - 4)), used = (int)(key / 64 % (P + 1));
        for (int i = 0; i < length; i++) {
            s->x[IDS][r * T + i] = (int64_t)(nami_mix(key, (uint64_t)i) % VOCABULARY);
            s->x[SEGMENTS][r * T + i] = i > length / 2;
            s->x[MASKS][r * T + i] = 1;
        }
        for (int i = 0; i < P; i++) {
            s->x[POSITIONS][r * P + i] = i < used ? 1 + i : i > used ? 7 : 0;
            s->x[WAS][r * P + i] =
                (int64_t)(nami_mix(key, 99 + (uint64_t)i) % VOCABULARY);
        }
        s->x[LABELS][r] = (int64_t)(key / 4096 % 2);
    }
}

typedef struct style {
    hid_t ids, others; /* types in the file */
    bool old, column;  /* the oldest format; labels as [N,1] */
    int skip, narrow;  /* an array left out, or with a column less; -1: none */
} style;

#define PLAIN                                                                          \
    (style)                                                                            \
    {                                                                                  \
        .ids = H5T_STD_I32LE, .others = H5T_STD_I8LE, .skip = -1, .narrow = -1         \
    }

static const char *write_shard(char path[512], const char *name, const shard_text *s,
                               style how)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, how.old ? H5F_LIBVER_EARLIEST : H5F_LIBVER_V18,
                         H5F_LIBVER_LATEST);
    hid_t f = H5Fcreate(nami_test_path(path, name), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(f >= 0);
    for (int a = 0; a < ARRAYS; a++) {
        hsize_t size[2] = {(hsize_t)s->rows, (hsize_t)arrays[a].width};
        hsize_t chunk[2] = {s->rows < 3 ? 1 : 3, 2};
        hid_t made = H5Pcreate(H5P_DATASET_CREATE);
        int rank = a == LABELS && !how.column ? 1 : 2;
        if (a == how.skip)
            size[0] = 0;
        size[1] -= a == how.narrow;
        chunk[1] = size[1] < 2 ? 1 : 2;
        H5Pset_chunk(made, rank, chunk);
        H5Pset_deflate(made, 4);
        hid_t space = H5Screate_simple(rank, size, NULL);
        bool wide = a == IDS || a == WAS || a == POSITIONS;
        hid_t d = a == how.skip
                      ? -1
                      : H5Dcreate2(f, arrays[a].name, wide ? how.ids : how.others,
                                   space, H5P_DEFAULT, made, H5P_DEFAULT);
        if (d >= 0) {
            assert_true(H5Dwrite(d, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                 s->x[a]) >= 0);
            H5Dclose(d);
        }
        H5Sclose(space);
        H5Pclose(made);
    }
    H5Pclose(access);
    H5Fclose(f);
    return path;
}

static nami_status import_shards(const char *one, const char *two, const char *out,
                                 double split, int64_t vocabulary)
{
    char *input[2] = {(char *)(uintptr_t)one, (char *)(uintptr_t)two};
    nami_import im = {.format = NAMI_IMPORT_NVIDIA_BERT,
                      .input = input,
                      .inputs = two ? 2 : 1,
                      .output = out,
                      .split = split,
                      .vocabulary = vocabulary};
    return nami_import_run(&im);
}

/* Sample r of the shard, as a model takes it with M = P + 1. */
enum { WORDS = 2 * T + 1, TARGETS = 2 * (P + 1) + 1 };
static void expect_sample(const shard_text *s, int r, const int32_t *x,
                          const int32_t *y)
{
    int length = 0, used = 0;
    for (int i = 0; i < T; i++) {
        assert_int_equal(x[i], s->x[IDS][r * T + i]);
        assert_int_equal(x[T + i], s->x[SEGMENTS][r * T + i]);
        length += (int)s->x[MASKS][r * T + i];
    }
    assert_int_equal(x[2 * T], length);
    while (used < P && s->x[POSITIONS][r * P + used])
        used++;
    for (int i = 0; i <= P; i++) {
        assert_int_equal(y[i], i < used ? s->x[POSITIONS][r * P + i] : 0);
        assert_int_equal(y[P + 1 + i], i < used ? s->x[WAS][r * P + i] : -1);
    }
    assert_int_equal(y[2 * P + 2], s->x[LABELS][r]);
}

static const nami_bert_want want = {.time = T, .masked = P + 1};

static void test_import(void **state)
{
    (void)state;
    static shard_text one, two;
    char path[2][512], out[512], part[512];
    int32_t x[WORDS], y[TARGETS];
    nami_bert *d;
    make(&one, 17, 1);
    make(&two, 5, 2);
    style other = PLAIN;
    other.ids = H5T_STD_U16BE;
    other.others = H5T_STD_I64LE;
    other.column = true;
    write_shard(path[0], "one.h5", &one, PLAIN);
    write_shard(path[1], "two.h5", &two, other);
    nami_test_path(out, "o.h5");
    assert_ok(import_shards(path[0], path[1], out, 0, VOCABULARY));
    assert_ok(nami_bert_open(NULL, out, &want, &d));
    assert_int_equal(nami_bert_samples(d), 22);
    assert_int_equal(nami_bert_vocabulary(d), VOCABULARY);
    for (int i = 0; i < 22; i++) {
        assert_ok(nami_bert_read_fixed(d, i, x, y));
        expect_sample(i < 17 ? &one : &two, i < 17 ? i : i - 17, x, y);
    }
    /* an epoch has each sample once */
    int seen[22] = {0};
    for (int i = 22; i < 44; i++) {
        assert_ok(nami_bert_read(d, 3, i, x, y));
        for (int r = 0; r < 22; r++) {
            int32_t x2[WORDS], y2[TARGETS];
            assert_ok(nami_bert_read_fixed(d, r, x2, y2));
            seen[r] += !memcmp(x, x2, sizeof x) && !memcmp(y, y2, sizeof y);
        }
    }
    for (int r = 0; r < 22; r++)
        assert_int_equal(seen[r], 1);
    nami_bert_close(d);
    assert_ok(import_shards(path[0], path[1], out, 0.5, VOCABULARY));
    assert_ok(nami_bert_open(NULL, nami_test_path(part, "o-train.h5"), &want, &d));
    assert_int_equal(nami_bert_samples(d), 11);
    nami_bert_close(d);
    assert_ok(nami_bert_open(NULL, nami_test_path(part, "o-valid.h5"), &want, &d));
    assert_int_equal(nami_bert_samples(d), 11);
    assert_ok(nami_bert_read_fixed(d, 0, x, y));
    expect_sample(&one, 11, x, y);
    nami_bert_close(d);
}

/* Sets whose samples are not those that the model wants. */
static void test_wanted(void **state)
{
    (void)state;
    static shard_text one;
    char path[512], out[512];
    nami_bert *d;
    make(&one, 30, 3);
    write_shard(path, "one.h5", &one, PLAIN);
    assert_ok(import_shards(path, NULL, nami_test_path(out, "o.h5"), 0, VOCABULARY));
    assert_fails(nami_bert_open(NULL, out, &(nami_bert_want){T + 1, P, 0}, &d),
                 NAMI_EINPUT, "samples of 12 tokens, but model.context is 13");
    assert_fails(nami_bert_open(NULL, out, &(nami_bert_want){T, P - 1, 0}, &d),
                 NAMI_EINPUT, "4 masked positions, but model.predictions is 3");
    assert_ok(nami_bert_open(NULL, out, &(nami_bert_want){T, P, 10}, &d));
    int32_t x[WORDS], y[TARGETS];
    assert_fails(nami_bert_read_fixed(d, 0, x, y), NAMI_EINPUT, "where 10 is too much");
    nami_bert_close(d);
    assert_fails(import_shards(path, NULL, path, 0, VOCABULARY), NAMI_EINPUT,
                 "is an input and the output");
}

/* Positions in falling order come as they are. */
static void test_order(void **state)
{
    (void)state;
    char path[512], out[512];
    static shard_text s;
    int32_t x[WORDS], y[TARGETS];
    nami_bert *d = NULL;
    make(&s, 30, 3);
    for (int r = 0; r < s.rows; r++)
        for (int i = 0; i < P && s.x[POSITIONS][r * P + i] > 0; i++)
            s.x[POSITIONS][r * P + i] = 4 - i;
    write_shard(path, "falling.h5", &s, PLAIN);
    assert_ok(import_shards(path, NULL, nami_test_path(out, "o.h5"), 0, VOCABULARY));
    assert_ok(nami_bert_open(NULL, out, &want, &d));
    for (int r = 0; r < s.rows; r++) {
        assert_ok(nami_bert_read_fixed(d, r, x, y));
        expect_sample(&s, r, x, y);
    }
    nami_bert_close(d);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        int array, at;
        int64_t value;
        const char *sentence;
    } row[] = {
        {IDS, 2 * T + 1, VOCABULARY, "sample 2 has the token 300"},
        {IDS, 0, -1, "sample 0 has -1 in /input_ids"},
        {IDS, T, 70000, "sample 1 has 70000 in /input_ids"},
        {SEGMENTS, 3 * T, 2, "the token type 2"},
        {MASKS, 0, 0, "ones in front"},
        {MASKS, 1, 2, "ones in front"},
        {POSITIONS, 0, T - 1, "the masked position 11, where"},
        {POSITIONS, 0, 5000, "the masked position 5000, where"},
        {POSITIONS, 1, -2, "-2 in /masked_lm_positions"},
        {POSITIONS, 3, 2, "sample 0 has the masked position 2 twice"},
        {WAS, 0, VOCABULARY, "the masked token 300"},
        {LABELS, 4, 2, "the next-sentence label 2"},
        {LABELS, 4, -1, "sample 4 has -1 in /next_sentence_labels"},
    };
    char path[512], other[512], out[512];
    static shard_text good, bad;
    nami_test_path(out, "o.h5");
    make(&good, 6, 4);
    for (int i = 0; i < T; i++)
        good.x[MASKS][i] = i < 6; /* sample 0 has 6 tokens and uses all slots */
    for (int i = 0; i < P; i++)
        good.x[POSITIONS][i] = 1 + i;
    style wide = PLAIN;
    wide.others = H5T_STD_I32LE;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        bad = good;
        bad.x[row[i].array][row[i].at] = row[i].value;
        write_shard(path, "bad.h5", &bad, wide);
        assert_fails(import_shards(path, NULL, out, 0, VOCABULARY), NAMI_EINPUT,
                     row[i].sentence);
    }
    for (int a = 0; a < ARRAYS; a++) {
        style how = PLAIN;
        how.skip = a;
        write_shard(path, "bad.h5", &good, how);
        assert_fails(import_shards(path, NULL, out, 0, VOCABULARY), NAMI_EINPUT,
                     "has no array");
        if (a == LABELS)
            continue;
        how.skip = -1;
        how.narrow = a;
        write_shard(path, "bad.h5", &good, how);
        assert_fails(import_shards(path, NULL, out, 0, VOCABULARY), NAMI_EINPUT,
                     "is expected as of");
    }
    style old = PLAIN;
    old.old = true;
    write_shard(path, "bad.h5", &good, old);
    assert_fails(import_shards(path, NULL, out, 0, VOCABULARY), NAMI_EINPUT,
                 "h5repack");
    write_shard(path, "good.h5", &good, PLAIN);
    good.rows = 1;
    write_shard(other, "few.h5", &good, PLAIN);
    assert_fails(import_shards(other, NULL, out, 0.5, VOCABULARY), NAMI_EINPUT,
                 "too few for this split");
    assert_int_equal(truncate(other, 900), 0);
    assert_fails(import_shards(path, other, out, 0, VOCABULARY), NAMI_EINPUT, "few.h5");
    assert_int_equal(count_files("tmp"), 0);
}

/* A mutated shard is refused, or becomes a set whose samples can all be read. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(95);
    static shard_text one;
    static unsigned char valid[1 << 16], p[1 << 16];
    char path[512], out[512];
    make(&one, 5, 5);
    write_shard(path, "one.h5", &one, PLAIN);
    FILE *f = fopen(path, "rb");
    size_t size = fread(valid, 1, sizeof valid, f);
    fclose(f);
    assert_in_range(size, 1000, sizeof valid - 1);
    nami_test_path(out, "o.h5");
    double end = nami_now() + SECONDS;
    int taken = 0;
    uint64_t trial = 0;
    for (; trial < 300 && nami_now() < end; trial++) {
        size_t bytes = trial % 8 ? size : nami_mix(seed, trial) % size;
        memcpy(p, valid, size);
        for (uint64_t k = 0; bytes && k <= trial % 3; k++)
            p[nami_mix(seed + trial, k) % bytes] =
                (unsigned char)nami_mix(seed + trial, 99 + k);
        put(path, "mutated.h5", p, bytes);
        nami_status status = import_shards(path, NULL, out, 0, VOCABULARY);
        if (status == NAMI_OK) {
            nami_bert *d;
            int32_t x[WORDS], y[TARGETS];
            assert_ok(nami_bert_open(NULL, out, &want, &d));
            for (int64_t i = 0; i < nami_bert_samples(d); i++)
                assert_ok(nami_bert_read_fixed(d, i, x, y));
            nami_bert_close(d);
            taken++;
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d: %s", (int)trial, (int)status,
                     nami_fail_text());
        }
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", (int)trial, taken);
    assert_in_range(taken, trial < 100 ? 0 : 1, trial);
}

/* A mutated set of ready samples is refused, or gives the samples it had. */
static void test_fuzz_set(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(96);
    static shard_text one;
    static unsigned char valid[1 << 16], p[1 << 16];
    char path[512], out[512];
    make(&one, 5, 6);
    write_shard(path, "one.h5", &one, PLAIN);
    assert_ok(import_shards(path, NULL, nami_test_path(out, "set.h5"), 0, VOCABULARY));
    FILE *f = fopen(out, "rb");
    size_t size = fread(valid, 1, sizeof valid, f);
    fclose(f);
    double end = nami_now() + SECONDS;
    int taken = 0;
    uint64_t trial = 0;
    for (; trial < 300 && nami_now() < end; trial++) {
        nami_bert *d;
        size_t bytes = trial % 8 ? size : nami_mix(seed, trial) % size;
        memcpy(p, valid, size);
        for (uint64_t k = 0; bytes && k <= trial % 3; k++)
            p[nami_mix(seed + trial, k) % bytes] =
                (unsigned char)nami_mix(seed + trial, 99 + k);
        put(out, "set.h5", p, bytes);
        nami_status status = nami_bert_open(NULL, out, &want, &d);
        if (status == NAMI_OK) {
            int32_t x[WORDS], y[TARGETS];
            assert_int_equal(nami_bert_samples(d), 5);
            for (int i = 0; i < 5; i++) {
                status = nami_bert_read_fixed(d, i, x, y);
                if (status == NAMI_OK)
                    expect_sample(&one, i, x, y);
            }
            nami_bert_close(d);
            taken++;
        } else if (!*nami_fail_text()) {
            fail_msg("trial %d: status %d without a sentence", (int)trial, (int)status);
        }
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", (int)trial, taken);
    assert_in_range(taken, trial < 100 ? 0 : 1, trial);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import), cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_order),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fuzz),   cmocka_unit_test(test_fuzz_set),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
