/* SPDX-License-Identifier: MIT */
/* test_fuzz.c - mutated inputs: an importer either refuses with a sentence or writes a sound set. */
#include "data/image_files.h"

#include <unistd.h>

#include "base/clock.h"
#include "data/decode.h"

/* At most for one format. */
#define SECONDS (getenv("NAMI_TEST_LONG") ? 20.0 : 1.5)

/* Random numbers of one trial. */
typedef struct dice {
    uint64_t key, index;
} dice;

static size_t roll(dice *d, size_t n)
{
    return (size_t)(nami_uniform(d->key, d->index++) * (double)n);
}

/* Change `p` of *bytes bytes, room for 4096: bits, whole words, cuts, repeats. */
static void mutate(unsigned char *p, size_t *bytes, dice *d)
{
    static const uint32_t extreme[] = {0,          1,          0x7fffffff, 0x80000000,
                                       0xffffffff, 0x80000001, 0x00010000, 0xfffffffe};
    for (size_t n = 1 + roll(d, 4); n > 0; n--) {
        size_t at = roll(d, *bytes + 1), word = 4 * roll(d, 4), add = roll(d, 64);
        switch (roll(d, 6)) {
        case 0:
            if (at < *bytes)
                p[at] ^= (unsigned char)(1u << roll(d, 8));
            break;
        case 1:
            *bytes = at;
            break;
        case 2: /* a word of the header */
            if (word + 4 <= *bytes)
                memcpy(p + word, &extreme[roll(d, 8)], 4);
            break;
        case 3: /* a word anywhere */
            if (at + 4 <= *bytes)
                memcpy(p + at, &extreme[roll(d, 8)], 4);
            break;
        case 4: /* repeat a piece */
            if (at + add <= *bytes && *bytes + add <= 4096) {
                memmove(p + at + add, p + at, *bytes - at);
                *bytes += add;
            }
            break;
        default:
            if (at < *bytes)
                p[at] = (unsigned char)roll(d, 256);
        }
    }
}

/* The set must open, which verifies checksum and range. */
static void expect_sound(const char *path)
{
    nami_data *d;
    assert_ok(nami_data_open(NULL, path, 1, 0, &d));
    nami_data_close(d);
}

/* Mutate the file `valid` again and again. */
static void fuzz(nami_import_format format, const char *name,
                 const unsigned char *valid, size_t size, uint64_t seed)
{
    double end = nami_now() + SECONDS;
    char in[512], out[512];
    int trials = 0, taken = 0;
    nami_test_path(out, "out.h5");
    for (; trials < 1500 && nami_now() < end; trials++) {
        unsigned char p[4096];
        dice d = {nami_mix(seed, (uint64_t)trials), 0};
        size_t bytes = size;
        memcpy(p, valid, size);
        mutate(p, &bytes, &d);
        put(in, name, p, bytes);
        nami_status status = import_one(
            format, in, out, trials % 3 ? 0 : 0.5,
            format == NAMI_IMPORT_NANOGPT || format == NAMI_IMPORT_MEGATRON ? 30000
                                                                            : 0);
        if (status == NAMI_OK) {
            taken++;
            expect_sound(trials % 3 ? out
                                    : nami_test_path((char[512]){0}, "out-train.h5"));
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d: %s", trials, (int)status, nami_fail_text());
        }
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(trials, 3, 1500);
    assert_in_range(taken, trials < 200 ? 0 : 1,
                    trials); /* a slow disk makes few trials */
    assert_int_equal(count_files("tmp"), 0);
}

static void test_text(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(51);
    fuzz(NAMI_IMPORT_TEXT, "in", (const unsigned char *)"In the beginning", 16, seed);
}

static void test_gz(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(52);
    unsigned char text[3000], file[4096];
    char gz[512];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i % 7 + i % 13 * 3);
    FILE *f = fopen(put_gz(gz, "valid.gz", text, sizeof text), "rb");
    size_t bytes = fread(file, 1, 2048, f);
    fclose(f);
    fuzz(NAMI_IMPORT_TEXT, "in.gz", file, bytes, seed);
}

static void test_tokens(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(53);
    uint16_t token[300];
    size_t bytes;
    for (size_t i = 0; i < 300; i++)
        token[i] = (uint16_t)(i * 97);
    unsigned char *file = shard(token, 300, &bytes);
    fuzz(NAMI_IMPORT_LLMC, "in", file, bytes, seed);
    fuzz(NAMI_IMPORT_NANOGPT, "in", file + 1024, bytes - 1024, seed);
    nami_free(file);
}

static void test_megatron(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(58);
    unsigned char index[INDEX_BYTES], token[2 * 20] = {0};
    char path[512];
    megatron_index(index, 8, 2, 20);
    put(path, "m.bin", token, sizeof token);
    fuzz(NAMI_IMPORT_MEGATRON, "m.idx", index, sizeof index, seed);
}

/* A data set with mutated bytes opens with its tokens unchanged, or is refused. */
static void test_set(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(54);
    char in[512], out[512];
    uint16_t token[16], want[16];
    unsigned char valid[4096], p[4096];
    put(in, "in", "In the beginning", 16);
    for (int i = 0; i < 16; i++)
        want[i] = (unsigned char)"In the beginning"[i];
    assert_ok(import_one(NAMI_IMPORT_TEXT, in, nami_test_path(out, "set.h5"), 0, 0));
    FILE *f = fopen(out, "rb");
    size_t size = fread(valid, 1, sizeof valid, f);
    fclose(f);
    double end = nami_now() + SECONDS;
    int trials = 0, taken = 0;
    for (; trials < 1500 && nami_now() < end; trials++) {
        nami_data *d;
        dice roll_of = {nami_mix(seed, (uint64_t)trials), 0};
        size_t bytes = size;
        memcpy(p, valid, size);
        mutate(p, &bytes, &roll_of);
        put(out, "set.h5", p, bytes);
        nami_status status = nami_data_open(NULL, out, 1, 0, &d);
        if (status == NAMI_OK && nami_data_tokens(d) == 16) {
            taken++;
            assert_ok(nami_data_slab(d, 0, 16, token));
            assert_memory_equal(token, want, sizeof want);
        } else if (!*nami_fail_text()) {
            fail_msg("trial %d: status %d without a sentence", trials, (int)status);
        }
        nami_data_close(status == NAMI_OK ? d : NULL);
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(taken, trials < 200 ? 0 : 1, trials);
}

/* Mutated images beside sound labels, and the other way round. */
static void test_idx(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(55);
    double end = nami_now() + SECONDS;
    char path[2][512], out[512];
    uint8_t pixel[6 * 20] = {3}, label[6] = {0, 1, 2, 3, 0, 1};
    size_t bytes[2];
    unsigned char *file[2] = {idx(pixel, 6, 4, 5, &bytes[0]),
                              idx(label, 6, 0, 0, &bytes[1])};
    int trials = 0, taken = 0;
    nami_test_path(out, "out.h5");
    for (; trials < 1500 && nami_now() < end; trials++) {
        dice d = {nami_mix(seed, (uint64_t)trials), 0};
        for (int i = 0; i < 2; i++) {
            unsigned char p[4096];
            size_t size = bytes[i];
            memcpy(p, file[i], size);
            if (trials % 2 == i)
                mutate(p, &size, &d);
            (trials % 4 > 1 ? put_gz : put)(path[i],
                                            trials % 4 > 1 ? "f.gz"
                                            : i            ? "l"
                                                           : "i",
                                            p, size);
            if (trials % 4 > 1) { /* one name a file */
                char *to = nami_strf("%s%d.gz", path[i], i);
                assert_int_equal(rename(path[i], to), 0);
                snprintf(path[i], sizeof path[i], "%s", to);
                nami_free(to);
            }
        }
        nami_status status =
            import_images(NAMI_IMPORT_IDX, path[0], path[1], out, trials % 3 ? 0 : 0.5);
        nami_images *set;
        if (status == NAMI_OK) {
            taken++;
            char half[512];
            assert_ok(nami_images_open(
                NULL, trials % 3 ? out : nami_test_path(half, "out-valid.h5"), &set));
            nami_images_close(set);
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d: %s", trials, (int)status, nami_fail_text());
        }
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(taken, trials < 200 ? 0 : 1, trials);
    assert_int_equal(count_files("tmp"), 0);
    nami_free(file[0]);
    nami_free(file[1]);
}

/* Records of CIFAR: refused, or a set with as many images as the file has records. */
static void test_cifar(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(59);
    double end = nami_now() + SECONDS / 2;
    enum { RECORD = 3074, RECORDS = 3 };
    static unsigned char valid[RECORDS * RECORD], p[RECORDS * RECORD];
    char in[512], out[512];
    int trials = 0, taken = 0;
    nami_test_path(out, "out.h5");
    for (; trials < 300 && nami_now() < end; trials++) {
        dice d = {nami_mix(seed, (uint64_t)trials), 0};
        size_t record = trials % 2 ? RECORD : RECORD - 1, bytes = RECORDS * record;
        nami_import_format format =
            trials % 2 ? NAMI_IMPORT_CIFAR100 : NAMI_IMPORT_CIFAR10;
        for (size_t i = 0; i < RECORDS; i++)
            valid[i * record] = valid[i * record + 1] = (unsigned char)roll(&d, 10);
        memcpy(p, valid, bytes);
        if (roll(&d, 3) == 0)
            bytes = roll(&d, 2) ? roll(&d, bytes) : record * roll(&d, RECORDS + 1);
        for (size_t n = roll(&d, 3); n > 0; n--)
            p[record * roll(&d, RECORDS) + roll(&d, 2)] = (unsigned char)roll(&d, 256);
        put(in, "c.bin", p, bytes);
        nami_status status = import_one(format, in, out, 0, 0);
        if (status == NAMI_OK) {
            nami_images *set;
            taken++;
            assert_ok(nami_images_open(NULL, out, &set));
            assert_int_equal(nami_images_facts(set)->samples * (int64_t)record, bytes);
            assert_int_equal(nami_images_label(set, 0), p[trials % 2]);
            nami_images_close(set);
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d: %s", trials, (int)status, nami_fail_text());
        }
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(taken, trials < 100 ? 0 : 1, trials);
    assert_int_equal(count_files("tmp"), 0);
}

#if defined NAMI_HAVE_PNG && defined NAMI_HAVE_JPEG
/* A mutated picture is decoded or refused; nothing is left over. */
static void test_pictures(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(56);
    double end = nami_now() + SECONDS;
    enum { H = 24, W = 20 };
    uint8_t pixel[H * W * 3];
    unsigned char *file[4];
    size_t bytes[4];
    int trials = 0, taken = 0;
    for (int i = 0; i < H * W * 3; i++)
        pixel[i] = (uint8_t)(i / 60 * 4 + i % 3 * 30);
    file[0] = png(pixel, H, W, 3, &bytes[0]);
    file[1] = png(pixel, H, W, 1, &bytes[1]);
    file[2] = jpeg(pixel, H, W, 3, false, &bytes[2]);
    file[3] = jpeg(pixel, H, W, 3, true, &bytes[3]);
    for (; trials < 8000 && nami_now() < end; trials++) {
        unsigned char p[4096];
        dice d = {nami_mix(seed, (uint64_t)trials), 0};
        size_t size = bytes[trials % 4];
        nami_bitmap b;
        assert_in_range(size, 1, 4000);
        memcpy(p, file[trials % 4], size);
        mutate(p, &size, &d);
        nami_status status = nami_decode("x", p, size, trials % 3 ? 3 : 1, &b);
        taken += status == NAMI_OK;
        if (status != NAMI_OK &&
            (status != NAMI_EINPUT || !*nami_fail_text() || b.pixel))
            fail_msg("trial %d: status %d: %s", trials, (int)status, nami_fail_text());
        nami_free(b.pixel);
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(taken, trials < 200 ? 0 : 1, trials);
    for (int i = 0; i < 4; i++)
        nami_free(file[i]);
}
#endif

/* A mutated set of images is refused, or opens with the images it had. */
static void test_image_set(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(57);
    double end = nami_now() + SECONDS;
    char in[2][512], out[512];
    uint8_t pixel[6 * 20] = {3}, label[6] = {0, 1, 2, 3, 0, 1};
    size_t bytes;
    unsigned char *file = idx(pixel, 6, 4, 5, &bytes), valid[4096], p[4096];
    put(in[0], "i", file, bytes);
    nami_free(file);
    file = idx(label, 6, 0, 0, &bytes);
    put(in[1], "l", file, bytes);
    nami_free(file);
    nami_test_path(out, "set.h5");
    assert_ok(import_images(NAMI_IMPORT_IDX, in[0], in[1], out, 0));
    FILE *f = fopen(out, "rb");
    size_t size = fread(valid, 1, sizeof valid, f);
    fclose(f);
    int trials = 0, taken = 0;
    for (; trials < 1500 && nami_now() < end; trials++) {
        nami_images *d;
        dice roll_of = {nami_mix(seed, (uint64_t)trials), 0};
        bytes = size;
        memcpy(p, valid, size);
        mutate(p, &bytes, &roll_of);
        put(out, "set.h5", p, bytes);
        nami_status status = nami_images_open(NULL, out, &d);
        if (status == NAMI_OK && nami_images_facts(d)->samples == 6 &&
            nami_images_facts(d)->height == 4) {
            const uint8_t *got;
            taken++;
            assert_ok(nami_images_pixels(d, 0, &got));
            assert_memory_equal(got, pixel, 20);
            assert_int_equal(nami_images_label(d, 3), 3);
        } else if (status != NAMI_OK && !*nami_fail_text()) {
            fail_msg("trial %d: status %d without a sentence", trials, (int)status);
        }
        nami_images_close(status == NAMI_OK ? d : NULL);
        nami_fail_clear();
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_in_range(taken, trials < 200 ? 0 : 1, trials);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_gz),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_megatron),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_idx),
#if defined NAMI_HAVE_PNG && defined NAMI_HAVE_JPEG
        cmocka_unit_test(test_pictures),
#endif
        cmocka_unit_test(test_image_set),
        cmocka_unit_test(test_cifar),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
