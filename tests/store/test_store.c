/* SPDX-License-Identifier: MIT */
/* test_store.c - arrays and attributes by slabs of several ranks, files of other tools, and files that are no good. */
#include "comm/mpi_test.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/text.h"
#include "store/store.h"

static float value(int k, int64_t i)
{
    return (float)nami_normal((uint64_t)k, (uint64_t)i);
}

/* Bounds of this rank's slab of n elements: uneven, and empty on the last rank of several. */
static int64_t bound(int64_t n, int r)
{
    int ranks = size > 1 ? size - 1 : 1;
    return r >= ranks ? n : n * r * (r + 1) / (ranks * (ranks + 1));
}

enum { ARRAYS = 5 };
static const int rank_of[ARRAYS] = {1, 2, 3, 4, 1};
static const int64_t extent_of[ARRAYS][4] = {
    {1}, {17, 33}, {5, 7, 11}, {3, 4, 5, 600}, {0}};

static int64_t count_of(int k)
{
    int64_t n = 1;
    for (int i = 0; i < rank_of[k]; i++)
        n *= extent_of[k][i];
    return n;
}

static const char *name_of(int k, char buf[64])
{
    snprintf(buf, 64, "/group/%s/array.%d", k % 2 ? "odd" : "even", k);
    return buf;
}

static void write_file(const char *path)
{
    nami_store *s;
    char name[64];
    assert_ok(nami_store_create(world, path, &s));
    for (int k = 0; k < ARRAYS; k++)
        assert_ok(nami_store_define(s, name_of(k, name), NAMI_STORE_F32, rank_of[k],
                                    extent_of[k]));
    assert_ok(nami_store_define(s, "/numbers", NAMI_STORE_I64, 1, &(int64_t){size}));
    for (int k = 0; k < ARRAYS; k++) {
        int64_t from = bound(count_of(k), rank),
                count = bound(count_of(k), rank + 1) - from;
        float *x = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof *x);
        for (int64_t i = 0; i < count; i++)
            x[i] = value(k, from + i);
        assert_ok(nami_store_write(s, name_of(k, name), from, count, x));
        nami_free(x);
    }
    assert_ok(nami_store_write(s, "/numbers", rank, 1, &(int64_t){INT64_MIN + rank}));
    assert_ok(nami_store_set_text(s, "words", "two\nlines \xe6\xb3\xa2"));
    assert_ok(nami_store_set_text(s, "none", ""));
    assert_ok(nami_store_flush(s));
    assert_ok(nami_store_set_int(s, "number", INT64_MAX));
    assert_ok(nami_store_close(s));
}

static void read_slabs(nami_store *s, int k)
{
    char name[64];
    int64_t n = count_of(k);
    float *x = nami_alloc(NAMI_MEM_OTHER, (size_t)n * sizeof *x);
    for (uint64_t t = 0; t < 40; t++) {
        int64_t from =
            t == 0 ? 0
                   : (int64_t)(nami_mix(t, (uint64_t)(rank + 1)) % (uint64_t)(n + 1));
        int64_t count = t == 0 ? n
                               : (int64_t)(nami_mix(t, (uint64_t)(rank + 99)) %
                                           (uint64_t)(n - from + 1));
        memset(x, 0xff, (size_t)n * sizeof *x);
        assert_ok(nami_store_read(s, name_of(k, name), from, count, x));
        for (int64_t i = 0; i < count; i++)
            assert_true(x[i] == value(k, from + i));
    }
    nami_free(x);
}

static void test_slabs(void **state)
{
    (void)state;
    char path[512], name[64];
    nami_store *s;
    nami_store_type type;
    int dims;
    int64_t extent[4], numbers[64];
    write_file(nami_test_path(path, "slabs.h5"));
    assert_ok(nami_store_open(world, path, &s));
    for (int k = 0; k < ARRAYS; k++) {
        assert_ok(nami_store_shape(s, name_of(k, name), &type, &dims, extent));
        assert_int_equal(type, NAMI_STORE_F32);
        assert_int_equal(dims, rank_of[k]);
        assert_memory_equal(extent, extent_of[k], (size_t)dims * sizeof *extent);
        read_slabs(s, k);
    }
    assert_ok(nami_store_read(s, "/numbers", 0, size, numbers));
    for (int r = 0; r < size; r++)
        assert_true(numbers[r] == INT64_MIN + r);
    assert_ok(nami_store_close(s));
}

static void test_attributes(void **state)
{
    (void)state;
    char path[512], *text;
    int64_t number = 0;
    nami_store *s;
    assert_ok(nami_store_open(world, nami_test_path(path, "slabs.h5"), &s));
    assert_ok(nami_store_get_text(s, "words", &text));
    assert_string_equal(text, "two\nlines \xe6\xb3\xa2");
    nami_free(text);
    assert_ok(nami_store_get_text(s, "none", &text));
    assert_string_equal(text, "");
    nami_free(text);
    assert_ok(nami_store_get_int(s, "number", &number));
    assert_true(number == INT64_MAX);
    assert_fails(nami_store_get_int(s, "words", &number), NAMI_EINPUT,
                 "words cannot be read as a number");
    assert_fails(nami_store_get_text(s, "number", &text), NAMI_EINPUT,
                 "number cannot be read as a text");
    assert_fails(nami_store_get_text(s, "nothing", &text), NAMI_EINPUT,
                 "nothing, a text, is missing");
    assert_ok(nami_store_close(s));
}

static void test_names(void **state)
{
    (void)state;
    char path[512], **names;
    int count;
    nami_store *s;
    assert_ok(nami_store_open(world, nami_test_path(path, "slabs.h5"), &s));
    assert_ok(nami_store_names(s, "/group", &names, &count));
    assert_int_equal(count, ARRAYS);
    assert_string_equal(names[0], "/group/even/array.0");
    assert_string_equal(names[3], "/group/odd/array.1");
    nami_store_names_free(names, count);
    assert_ok(nami_store_names(s, "/", &names, &count));
    assert_int_equal(count, ARRAYS + 1);
    assert_string_equal(names[ARRAYS], "/numbers");
    nami_store_names_free(names, count);
    assert_ok(nami_store_names(s, "/none", &names, &count));
    assert_int_equal(count, 0);
    nami_store_names_free(names, count);
    assert_ok(nami_store_close(s));
}

static void test_absent(void **state)
{
    (void)state;
    char path[512];
    float x[4];
    nami_store *s;
    nami_store_type type;
    int dims = 7;
    int64_t extent[4];
    assert_ok(nami_store_open(world, nami_test_path(path, "slabs.h5"), &s));
    assert_ok(nami_store_shape(s, "/group/even/array.9", &type, &dims, extent));
    assert_int_equal(dims, -1);
    assert_ok(nami_store_shape(s, "/no/such/way", &type, &dims, extent));
    assert_int_equal(dims, -1);
    assert_fails(nami_store_shape(s, "/group", &type, &dims, extent), NAMI_EINPUT,
                 "is not an array");
    assert_fails(
        nami_store_read(s, "/group/odd/array.1", 17 * 33 - 3, rank == 0 ? 4 : 1, x),
        NAMI_EINPUT, "does not have 4 elements from 558 on");
    assert_fails(nami_store_read(s, "/group/odd/array.1", -1, 1, x), NAMI_EINPUT,
                 "does not have");
    assert_fails(nami_store_read(s, "/group/odd/array.1", 1, INT64_MAX, x), NAMI_EINPUT,
                 "does not have");
    assert_ok(nami_store_close(s));
}

/* Texts of any length, and this process alone. */
static void test_alone(void **state)
{
    (void)state;
    char file[64], path[512], *text;
    size_t bytes = 3000000;
    nami_store *s;
    uint16_t token[1000];
    snprintf(file, sizeof file, "alone-%d.h5", rank);
    char *long_text = nami_alloc(NAMI_MEM_OTHER, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        long_text[i] = (char)('a' + nami_mix(1, i) % 26);
    long_text[bytes] = '\0';
    assert_ok(nami_store_create(NULL, nami_test_path(path, file), &s));
    assert_ok(nami_store_define(s, "/tokens", NAMI_STORE_U16, 1, &(int64_t){100000}));
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 1000; j++)
            token[j] = (uint16_t)(i * 1000 + j);
        assert_ok(nami_store_write(s, "/tokens", i * 1000, 1000, token));
    }
    assert_ok(nami_store_set_text(s, "long", long_text));
    assert_ok(nami_store_close(s));
    assert_ok(nami_store_open(NULL, path, &s));
    assert_ok(nami_store_get_text(s, "long", &text));
    assert_string_equal(text, long_text);
    assert_ok(nami_store_read_alone(s, "/tokens", 65530, 12, token));
    for (int j = 0; j < 12; j++)
        assert_int_equal(token[j], (uint16_t)(65530 + j));
    assert_ok(nami_store_close(s));
    nami_free(text);
    nami_free(long_text);
    unlink(path);
}

/* A file as other tools write it: chunked, compressed, big-endian, variable-length text. */
static void write_foreign(const char *path, H5F_libver_t format)
{
    hsize_t size2[2] = {50, 30}, chunk[2] = {7, 11};
    double x[1500];
    for (int i = 0; i < 1500; i++)
        x[i] = value(3, i);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, format, H5F_LIBVER_LATEST);
    hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access),
          how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, size2, NULL), one = H5Screate(H5S_SCALAR),
          type = H5Tcopy(H5T_C_S1);
    H5Pset_chunk(how, 2, chunk);
    H5Pset_shuffle(how);
    if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0)
        H5Pset_deflate(how, 1);
    hid_t d = H5Dcreate2(f, "x", H5T_IEEE_F64BE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dclose(d);
    d = H5Dcreate2(f, "unsigned", H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT);
    H5Dclose(d);
    d = H5Dcreate2(f, "void", H5T_STD_U16LE, space, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT); /* announced, never written */
    H5Dclose(d);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t a = H5Acreate2(f, "text", type, one, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, type, &(const char *){"of any length"});
    H5Aclose(a);
    a = H5Acreate2(f, "small", H5T_STD_I16BE, one, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_INT, &(int){-12345});
    H5Aclose(a);
    H5Tclose(type);
    H5Sclose(one);
    H5Sclose(space);
    H5Pclose(how);
    H5Pclose(access);
    H5Fclose(f);
}

static void test_oldest(void **state)
{
    (void)state;
    char path[512];
    nami_store *s;
    nami_test_path(path, "oldest.h5");
    if (rank == 0)
        write_foreign(path, H5F_LIBVER_EARLIEST);
    nami_comm_barrier(world);
    assert_fails(nami_store_open(world, path, &s), NAMI_EINPUT, "h5repack");
}

static void test_foreign(void **state)
{
    (void)state;
    char path[512], *text;
    nami_store *s;
    nami_store_type type;
    int dims;
    int64_t extent[4], number;
    double x[1500];
    nami_test_path(path, "foreign.h5");
    if (rank == 0)
        write_foreign(path, H5F_LIBVER_V18);
    nami_comm_barrier(world);
    assert_ok(nami_store_open(world, path, &s));
    assert_ok(nami_store_shape(s, "/x", &type, &dims, extent));
    assert_int_equal(type, NAMI_STORE_F64);
    for (int from = 0; from < 1500; from += 111) {
        assert_ok(nami_store_read(s, "/x", from, 1500 - from, x));
        for (int i = from; i < 1500; i++)
            assert_true(x[i - from] == value(3, i));
    }
    assert_fails(nami_store_shape(s, "/unsigned", &type, &dims, extent), NAMI_EINPUT,
                 "type or shape");
    assert_fails(nami_store_shape(s, "/void", &type, &dims, extent), NAMI_EINPUT,
                 "more elements than the file stores");
    assert_ok(nami_store_get_text(s, "text", &text));
    assert_string_equal(text, "of any length");
    nami_free(text);
    assert_ok(nami_store_get_int(s, "small", &number));
    assert_int_equal(number, -12345);
    assert_ok(nami_store_close(s));
}

static void test_bad_files(void **state)
{
    (void)state;
    char path[512];
    nami_store *s;
    nami_test_path(path, "bad.h5");
    assert_fails(nami_store_open(world, path, &s), NAMI_EINPUT, "No such file");
    if (rank == 0)
        nami_test_write(path, "", 0);
    assert_fails(nami_store_open(world, path, &s), NAMI_EINPUT, "is empty");
    nami_comm_barrier(world);
    if (rank == 0)
        nami_test_write(path, "this is a text and no HDF5 file", 31);
    assert_fails(nami_store_open(world, path, &s), NAMI_EINPUT, "signature");
    nami_comm_barrier(world);
    if (rank == 0)
        nami_test_write(path, "\211HDF\r\n\032\n", 8);
    assert_fails(nami_store_open(world, path, &s), NAMI_EINPUT,
                 "not a whole HDF5 file");
    assert_fails(nami_store_open(world, "/", &s), NAMI_EINPUT, "is not a file");
    assert_fails(nami_store_open(world, "/dev/null", &s), NAMI_EINPUT, "is not a file");
    assert_fails(nami_store_create(world, "/no/such/directory/x.h5", &s), NAMI_EENV,
                 "No such file or directory");
    assert_fails(nami_store_create(world, "/proc/x.h5", &s), NAMI_EENV,
                 "cannot be created");
}

/* Cut at any length, the file is refused, or (cut behind all that is read) reads the same. */
static void test_truncated(void **state)
{
    (void)state;
    char whole[512], path[512];
    struct stat st;
    nami_store *s;
    nami_test_path(whole, "slabs.h5");
    nami_test_path(path, "cut.h5");
    assert_int_equal(stat(whole, &st), 0);
    for (off_t length = 1; length < st.st_size; length = length * 5 / 4 + 1) {
        if (rank == 0) {
            char command[1200];
            snprintf(command, sizeof command, "head -c %lld '%s' >'%s'",
                     (long long)length, whole, path);
            assert_int_equal(system(command), 0);
        }
        nami_comm_barrier(world);
        nami_status status = nami_store_open(world, path, &s);
        assert_int_equal(status, NAMI_EINPUT);
        assert_non_null(strstr(nami_fail_text(), path));
        nami_fail_clear();
    }
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A size limit that the first rank sees is found before anything is written, with the reason. */
static void test_limit(void **state)
{
    (void)state;
    char path[512];
    nami_store *s;
    nami_test_path(path, "limit.h5");
    limit_file_size(100000);
    assert_ok(nami_store_create(world, path, &s));
    assert_ok(nami_store_define(s, "/x", NAMI_STORE_F64, 1, &(int64_t){100000}));
    nami_status status = nami_store_write(s, "/x", rank, 1, &(double){1});
    assert_int_equal(status, NAMI_OK);
    assert_fails(nami_store_close(s), NAMI_EENV,
                 "above the limit of this process for file sizes, 97.7 KiB");
    limit_file_size(RLIM_INFINITY);
}

/* A write that fails on one rank alone fails on all, at the flush; and nobody hangs. */
static void test_limit_on_one(void **state)
{
    (void)state;
    char path[512];
    nami_store *s;
    double *x = nami_calloc(NAMI_MEM_OTHER, 100000, sizeof *x);
    nami_test_path(path, "limit.h5");
    for (int bad = 0; bad < size; bad++) {
        assert_ok(nami_store_create(world, path, &s));
        assert_ok(
            nami_store_define(s, "/x", NAMI_STORE_F64, 2, (int64_t[]){size, 100000}));
        assert_ok(nami_store_write(s, "/x", 0, 0, x));
        if (rank == bad)
            limit_file_size(50000);
        assert_ok(nami_store_write(s, "/x", rank * (int64_t)100000, 100000, x));
        assert_ok(nami_store_write(s, "/x", rank * (int64_t)100000, 100000, x));
        limit_file_size(RLIM_INFINITY);
        assert_fails(nami_store_flush(s), NAMI_EENV, "File too large");
        assert_ok(nami_store_set_int(s, "later", 1));
        assert_fails(nami_store_close(s), NAMI_EENV, "File too large");
    }
    nami_free(x);
}

/* The library itself meets the limit when it writes attributes; files before and after are not troubled. */
static void test_limit_in_library(void **state)
{
    (void)state;
    char path[512], other[512], *text = nami_alloc(NAMI_MEM_OTHER, 1000001);
    nami_store *s;
    nami_test_path(path, "limit.h5");
    memset(text, 'x', 1000000);
    text[1000000] = '\0';
    for (int turn = 0; turn < 3; turn++) {
        assert_ok(nami_store_create(world, path, &s));
        assert_ok(nami_store_define(s, "/x", NAMI_STORE_F64, 1, &(int64_t){1}));
        assert_ok(nami_store_write(s, "/x", 0, 0, text));
        limit_file_size(200000);
        assert_ok(nami_store_set_text(s, "text", text));
        nami_status status = nami_store_close(s);
        limit_file_size(RLIM_INFINITY);
        assert_fails(status, NAMI_EENV, "limit.h5");
        write_file(nami_test_path(other, "after.h5"));
        assert_ok(nami_store_open(world, other, &s));
        read_slabs(s, 3);
        assert_ok(nami_store_close(s));
    }
    nami_free(text);
}

static void test_crc(void **state)
{
    (void)state;
    unsigned char x[1000];
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)nami_mix(7, i);
    assert_int_equal(nami_store_crc(0, "123456789", 9),
                     0xCBF43926); /* the check value of CRC-32/ISO-HDLC */
    uint32_t whole = nami_store_crc(0, x, sizeof x);
    for (int64_t cut = 0; cut <= 1000; cut += 125) {
        uint32_t a = nami_store_crc(0, x, (size_t)cut),
                 b = nami_store_crc(0, x + cut, (size_t)(1000 - cut));
        assert_int_equal(nami_store_crc_join(a, b, 1000 - cut), whole);
        assert_int_equal(nami_store_crc(a, x + cut, (size_t)(1000 - cut)), whole);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_slabs),        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_alone),        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_oldest),       cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_truncated),    cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_on_one), cmocka_unit_test(test_limit_in_library),
        cmocka_unit_test(test_crc),
    };
    mpi_test_open(&argc, &argv);
    return mpi_test_close(cmocka_run_group_tests(test, NULL, NULL));
}
