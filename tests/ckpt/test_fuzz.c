/* SPDX-License-Identifier: MIT */
/* test_fuzz.c - damaged checkpoints and data files: refused with a sentence, or read right; never a crash or a hang.
 *
 * Each case damages a copy of a small file at places that follow from the seed and the case's number.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <hdf5.h>

#include "ckpt/contents.h"

static int try_case(int64_t number);
static fuzz z = {.try_case = try_case, .few = 1000, .many = 300000, .seconds = 600};
/* a file in the oldest format, without checksums, as other tools write it */
static bool foreign;
static char scratch[512], path[600];
static char *original;
static size_t bytes;

/* Where metadata lies, more often than by chance: most bytes are data, whose damage is dull. */
static size_t draw_place(int64_t number, int k, size_t length)
{
    size_t at = fuzz_draw(&z, number, k, length);
    for (int i = 1; i < 4 && original[at] == 0; i++)
        at = fuzz_draw(&z, number, k + 1000 * i, length);
    return at;
}

/* A damaged copy of the file; returns its length. */
static size_t damage(int64_t number, char *copy)
{
    size_t length = bytes;
    static const unsigned char special[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xfe};
    memcpy(copy, original, bytes);
    int kind = (int)fuzz_draw(&z, number, 1, 6),
        times = 1 + (int)fuzz_draw(&z, number, 2, 4);
    if (kind == 0)
        return fuzz_draw(&z, number, 3, bytes); /* cut */
    for (int t = 0; t < times; t++) {
        size_t at = draw_place(number, 10 + t, length),
               run = 1 + fuzz_draw(&z, number, 20 + t, 16);
        size_t from = fuzz_draw(&z, number, 30 + t, length);
        run = run < length - at ? run : length - at;
        run = run < length - from ? run : length - from;
        if (kind == 1)
            copy[at] = (char)(copy[at] ^ (1 << fuzz_draw(&z, number, 40 + t, 8)));
        else if (kind == 2)
            copy[at] = (char)special[fuzz_draw(&z, number, 50 + t, sizeof special)];
        else if (kind == 3)
            memset(copy + at,
                   (int)special[fuzz_draw(&z, number, 60 + t, sizeof special)], run);
        else if (kind == 4)
            memmove(copy + at, copy + from, run);
        else
            copy[at] = (char)fuzz_draw(&z, number, 70 + t, 256);
    }
    return length;
}

static void put(const char *copy, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, copy, length) != (ssize_t)length)
        abort();
    close(fd);
}

static int judge(nami_status status)
{
    if (status == NAMI_OK)
        return FUZZ_READ;
    if (status == NAMI_EBUG)
        return FUZZ_WRONG;
    return strstr(nami_fail_text(), scratch) ? FUZZ_REFUSED : FUZZ_NO_SENTENCE;
}

/* Everything a reader of data sets does with a file. */
static int read_plainly(void)
{
    nami_store *s;
    char **name, *text;
    int count;
    static float data[1 << 16];
    if (nami_store_open(NULL, path, &s) != NAMI_OK)
        return judge(NAMI_EINPUT);
    if (nami_store_names(s, "/", &name, &count) == NAMI_OK) {
        for (int i = 0; i < count; i++) {
            nami_store_type type;
            int rank;
            int64_t extent[4], n = 1;
            if (nami_store_shape(s, name[i], &type, &rank, extent) != NAMI_OK ||
                rank < 0)
                continue;
            for (int k = 0; k < rank; k++)
                if (__builtin_mul_overflow(n, extent[k], &n))
                    n = 0;
            if (type == NAMI_STORE_F32)
                (void)nami_store_read(s, name[i], 0, n < 1 << 16 ? n : 1 << 16, data);
        }
        nami_store_names_free(name, count);
    }
    if (nami_store_get_text(s, "deck", &text) == NAMI_OK)
        nami_free(text);
    (void)nami_store_close(s);
    return FUZZ_READ;
}

static int try_case(int64_t number)
{
    char *copy = malloc(bytes);
    int64_t step;
    put(copy, damage(number, copy));
    free(copy);
    if (foreign)
        return read_plainly();
    int outcome = judge(contents_load(NULL, path, 1, true, &step));
    nami_fail_clear();
    if (outcome != FUZZ_REFUSED && outcome != FUZZ_READ)
        return outcome;
    int plain = read_plainly();
    return plain == FUZZ_NO_SENTENCE ? plain : outcome;
}

/* The arrays of the checkpoint in chunks, compressed. */
static void make_foreign(const char *from, const char *to)
{
    nami_store *s;
    char **name;
    int count;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    H5Pset_create_intermediate_group(links, 1);
    hid_t f = H5Fcreate(to, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_ok(nami_store_open(NULL, from, &s));
    assert_ok(nami_store_names(s, "/", &name, &count));
    for (int i = 0; i < count; i++) {
        hsize_t size = 200, chunk = 30;
        float x[200];
        for (int k = 0; k < 200; k++)
            x[k] = contents_value(1, i, k);
        hid_t space = H5Screate_simple(1, &size, NULL),
              how = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(how, 1, &chunk);
        if (i % 2)
            H5Pset_deflate(how, 1);
        hid_t d =
            H5Dcreate2(f, name[i], H5T_IEEE_F32BE, space, links, how, H5P_DEFAULT);
        assert_true(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >=
                    0);
        H5Dclose(d);
        H5Pclose(how);
        H5Sclose(space);
    }
    nami_store_names_free(name, count);
    assert_ok(nami_store_close(s));
    H5Fclose(f);
    H5Pclose(links);
    H5Pclose(access);
}

static void read_original(void)
{
    char whole[600], other[600];
    snprintf(whole, sizeof whole, "%s/step-00000003.h5", scratch);
    snprintf(other, sizeof other, "%s/foreign.h5", scratch);
    if (foreign) {
        make_foreign(whole, other);
        memcpy(whole, other, sizeof whole);
    }
    FILE *f = fopen(whole, "rb");
    assert_non_null(f);
    original = malloc(1 << 20);
    bytes = fread(original, 1, 1 << 20, f);
    fclose(f);
    assert_in_range(bytes, 1000, (1 << 20) - 1);
}

static void run_cases(void)
{
    assert_ok(contents_save(NULL, scratch, 1, 3, 1));
    read_original();
    int64_t n = fuzz_run(&z, foreign ? "a foreign file" : "a checkpoint");
    assert_true(n == 0 || foreign ||
                z.outcome[FUZZ_REFUSED] > n / 2); /* the damage is real */
    free(original);
}

static void test_checkpoint(void **state)
{
    (void)state;
    foreign = false;
    run_cases();
}

static void test_foreign(void **state)
{
    (void)state;
    foreign = true;
    run_cases();
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_foreign),
    };
    z.seed = nami_test_seed(20240601);
    nami_test_path(scratch, "fuzz");
    snprintf(path, sizeof path, "%s/damaged.h5", scratch);
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
