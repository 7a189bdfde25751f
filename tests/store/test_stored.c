/* SPDX-License-Identifier: MIT */
/* test_stored.c - arrays that announce what the file does not hold, and whole numbers of any width. */
#include "nami_test.h"

#include <hdf5.h>

#include "store/store.h"

/* A file being made by the library alone. */
typedef struct maker {
    char path[512];
    hid_t file;
} maker;

static maker begin(void)
{
    maker m;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    m.file = H5Fcreate(nami_test_path(m.path, "made.h5"), H5F_ACC_TRUNC, H5P_DEFAULT,
                       access);
    assert_true(m.file >= 0);
    H5Pclose(access);
    return m;
}

/* Array "x" [count] made by `how`, which is closed; `data` NULL: not written. */
static void add(maker *m, hid_t type, hsize_t count, hid_t how, hid_t memory,
                const void *data)
{
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t d = H5Dcreate2(m->file, "x", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(d >= 0);
    if (data)
        assert_true(H5Dwrite(d, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(d);
    H5Sclose(space);
    H5Pclose(how);
}

static hid_t chunks(hsize_t size)
{
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(how, 1, &size);
    return how;
}

/* What the shape of x is refused with; NULL: it is not. */
static void expect(maker *m, const char *sentence)
{
    nami_store *s;
    nami_store_type type;
    int rank;
    int64_t extent[4];
    H5Fclose(m->file);
    assert_ok(nami_store_open(NULL, m->path, &s));
    nami_status status = nami_store_shape(s, "/x", &type, &rank, extent);
    if (sentence)
        assert_fails(status, NAMI_EINPUT, sentence);
    else
        assert_ok(status);
    assert_ok(nami_store_close(s));
}

static const char announces[] = "announces more elements than the file stores";

/* What deflate can do at most is taken, and unpacks. */
static void test_zeros(void **state)
{
    (void)state;
    enum { N = 1 << 22 };
    uint8_t *zero = nami_calloc(NAMI_MEM_OTHER, N, 1);
    maker m = begin();
    hid_t how = chunks(N);
    nami_store *s;
    H5Pset_deflate(how, 9);
    add(&m, H5T_STD_U8LE, N, how, H5T_NATIVE_UINT8, zero);
    expect(&m, NULL);
    memset(zero, 1, N);
    assert_ok(nami_store_open(NULL, m.path, &s));
    assert_ok(nami_store_read(s, "/x", 0, N, zero));
    assert_int_equal(zero[0] + zero[N / 2] + zero[N - 1], 0);
    assert_ok(nami_store_close(s));
    nami_free(zero);
}

static void test_not_written(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        maker m = begin();
        hid_t how = chunks(100);
        if (packed)
            H5Pset_deflate(how, 1);
        add(&m, H5T_STD_U8LE, (hsize_t)1 << 40, how, H5T_NATIVE_UINT8, NULL);
        expect(&m, announces);
    }
    maker m = begin(); /* nothing announced, nothing missing */
    add(&m, H5T_STD_U8LE, 0, chunks(100), H5T_NATIVE_UINT8, NULL);
    expect(&m, NULL);
}

/* Some of the chunks are there: `size` elements of 4 each, `count` in all. */
static void write_chunks(hsize_t size, hsize_t count, int packed, size_t bytes)
{
    maker m = begin();
    hid_t how = chunks(size);
    static const uint8_t stream[2048];
    if (packed)
        H5Pset_deflate(how, 9);
    add(&m, H5T_IEEE_F32LE, count, how, H5T_NATIVE_FLOAT, NULL);
    hid_t d = H5Dopen2(m.file, "x", H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(d, H5P_DEFAULT, 0, &(hsize_t){0}, bytes, stream) >= 0);
    H5Dclose(d);
    expect(&m, announces);
}

static void test_bombs(void **state)
{
    (void)state;
    write_chunks(10, 20, 0, 40);  /* the second chunk is missing */
    write_chunks(10, 11, 1, 100); /* likewise, though the bytes could hold both */
    write_chunks(1 << 28, 1 << 28, 1, 100);  /* a chunk of 1 GiB in 100 bytes */
    write_chunks(1 << 20, 1 << 20, 1, 2048); /* 4 MiB: twice what deflate can */
}

static void test_filters(void **state)
{
    (void)state;
    const uint8_t x[64] = {1, 2, 3};
    for (int i = 0; i < 4; i++) {
        maker m = begin();
        hid_t how = chunks(64);
        if (i == 0)
            H5Pset_scaleoffset(how, H5Z_SO_INT, 0);
        else if (i == 1)
            H5Pset_nbit(how);
        H5Pset_shuffle(how);
        H5Pset_deflate(how, 1);
        if (i == 2)
            H5Pset_deflate(how, 1);
        H5Pset_fletcher32(how);
        add(&m, H5T_STD_U8LE, 64, how, H5T_NATIVE_UINT8, x);
        expect(&m, i < 3 ? "another filter than deflate" : NULL);
    }
}

static void test_other_files(void **state)
{
    (void)state;
    char path[512];
    hsize_t n = 8;
    nami_test_path(path, "raw");
    nami_test_write(path, "12345678", 8);
    maker m = begin();
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(how, path, 0, 8);
    add(&m, H5T_STD_U8LE, 8, how, H5T_NATIVE_UINT8, NULL);
    expect(&m, "in other files");
    m = begin();
    how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, &n, NULL);
    H5Pset_virtual(how, space, "other.h5", "y", space);
    H5Sclose(space);
    add(&m, H5T_STD_U8LE, 8, how, H5T_NATIVE_UINT8, NULL);
    expect(&m, "in other files");
}

/* A link to another file, of which nobody knows the format, as an array or as a group on the way to it. */
static void test_links(void **state)
{
    (void)state;
    char other[512];
    nami_store *s;
    nami_store_type type;
    char **name;
    int rank, count;
    int64_t extent[4];
    maker m = begin();
    add(&m, H5T_STD_U8LE, 8, chunks(8), H5T_NATIVE_UINT8, "1234567");
    H5Lcreate_soft("/x", m.file, "y", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(m.file);
    nami_test_path(other, "other.h5");
    assert_int_equal(rename(m.path, other), 0);
    assert_ok(nami_store_open(NULL, other, &s));
    assert_ok(nami_store_shape(s, "/y", &type, &rank, extent)); /* its own */
    assert_int_equal(rank, 1);
    assert_ok(nami_store_close(s));
    m = begin();
    H5Lcreate_external("other.h5", "/x", m.file, "x", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/", m.file, "g", H5P_DEFAULT, H5P_DEFAULT);
    expect(&m, "/x is not an array: it lies in another file");
    assert_ok(nami_store_open(NULL, m.path, &s));
    assert_ok(nami_store_shape(s, "/g/x", &type, &rank, extent));
    assert_int_equal(rank, -1);
    uint8_t x[8];
    assert_fails(nami_store_read(s, "/x", 0, 8, x), NAMI_EINPUT, "does not have");
    assert_fails(nami_store_names(s, "/g", &name, &count), NAMI_EINPUT,
                 "it lies in another file");
    assert_ok(nami_store_close(s));
}

/* --- whole numbers --- */

static void expect_integers(hid_t type, const int64_t *x, hid_t memory)
{
    maker m = begin();
    nami_store *s;
    int rank;
    int64_t extent[4], got[3];
    hid_t how = chunks(2);
    H5Pset_deflate(how, 1);
    add(&m, type, 3, how, memory, x);
    H5Fclose(m.file);
    assert_ok(nami_store_open(NULL, m.path, &s));
    assert_ok(nami_store_integers_shape(s, "/x", &rank, extent));
    assert_int_equal(rank, 1);
    assert_int_equal(extent[0], 3);
    assert_ok(nami_store_integers(s, "/x", 0, 3, got));
    for (int i = 0; i < 3; i++)
        assert_true(got[i] ==
                    (x[i] >= 0 || memory == H5T_NATIVE_INT64 ? x[i] : INT64_MAX));
    assert_ok(nami_store_integers(s, "/x", 1, 1, got));
    assert_fails(nami_store_integers(s, "/x", 2, 2, got), NAMI_EINPUT,
                 "does not have 2 elements from 2");
    assert_ok(nami_store_close(s));
}

static void test_integers(void **state)
{
    (void)state;
    const int64_t x[3] = {-7, 0, 100}, u[3] = {5, -1, 0};
    expect_integers(H5T_STD_I8LE, x, H5T_NATIVE_INT64);
    expect_integers(H5T_STD_I16BE, x, H5T_NATIVE_INT64);
    expect_integers(H5T_STD_I32LE, x, H5T_NATIVE_INT64);
    expect_integers(H5T_STD_I64BE, x, H5T_NATIVE_INT64);
    expect_integers(H5T_STD_U64LE, u, H5T_NATIVE_UINT64); /* 2^64 - 1 is cut */
    maker m = begin();
    nami_store *s;
    int rank;
    int64_t extent[4], got[1];
    add(&m, H5T_IEEE_F32LE, 1, chunks(1), H5T_NATIVE_FLOAT, &(float){1});
    H5Fclose(m.file);
    assert_ok(nami_store_open(NULL, m.path, &s));
    assert_fails(nami_store_integers_shape(s, "/x", &rank, extent), NAMI_EINPUT,
                 "type or shape");
    assert_fails(nami_store_integers(s, "/x", 0, 1, got), NAMI_EINPUT, "does not have");
    assert_ok(nami_store_integers_shape(s, "/y", &rank, extent));
    assert_int_equal(rank, -1);
    assert_ok(nami_store_close(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros),    cmocka_unit_test(test_not_written),
        cmocka_unit_test(test_bombs),    cmocka_unit_test(test_filters),
        cmocka_unit_test(test_integers), cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
