/* SPDX-License-Identifier: MIT */
/* test_fuzz.c - damaged checkpoints and data files: refused with a sentence, or read right; never a crash or a hang.
 *
 * Each case damages a copy of a small file at places that follow from the seed and the case's number, and reads it in
 * a child process. NAMI_TEST_LONG=1 runs many more cases; NAMI_TEST_CASE=N runs one, in this process (for debuggers).
 */
#include "nami_test.h"

#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ckpt/contents.h"

enum { REFUSED, READ, WRONG, NO_SENTENCE, OUTCOMES };

static uint64_t seed;
static bool
    foreign; /* a file in the oldest format, without checksums, as other tools write it */
static char scratch[512], path[600];
static char *original;
static size_t bytes;

/* Number in [0, n) of draw k of a case. */
static size_t draw(int64_t number, int k, size_t n)
{
    return (size_t)(nami_mix(nami_mix(seed, (uint64_t)number), (uint64_t)k) % n);
}

/* Where metadata lies, more often than by chance: most bytes are data, whose damage is dull. */
static size_t draw_place(int64_t number, int k, size_t length)
{
    size_t at = draw(number, k, length);
    for (int i = 1; i < 4 && original[at] == 0; i++)
        at = draw(number, k + 1000 * i, length);
    return at;
}

/* A damaged copy of the file; returns its length. */
static size_t damage(int64_t number, char *copy)
{
    size_t length = bytes;
    static const unsigned char special[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xfe};
    memcpy(copy, original, bytes);
    int kind = (int)draw(number, 1, 6), times = 1 + (int)draw(number, 2, 4);
    if (kind == 0)
        return draw(number, 3, bytes); /* cut */
    for (int t = 0; t < times; t++) {
        size_t at = draw_place(number, 10 + t, length),
               run = 1 + draw(number, 20 + t, 16);
        size_t from = draw(number, 30 + t, length);
        run = run < length - at ? run : length - at;
        run = run < length - from ? run : length - from;
        if (kind == 1)
            copy[at] = (char)(copy[at] ^ (1 << draw(number, 40 + t, 8)));
        else if (kind == 2)
            copy[at] = (char)special[draw(number, 50 + t, sizeof special)];
        else if (kind == 3)
            memset(copy + at, (int)special[draw(number, 60 + t, sizeof special)], run);
        else if (kind == 4)
            memmove(copy + at, copy + from, run);
        else
            copy[at] = (char)draw(number, 70 + t, 256);
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
        return READ;
    if (status == NAMI_EBUG)
        return WRONG;
    return strstr(nami_fail_text(), scratch) ? REFUSED : NO_SENTENCE;
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
    return READ;
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
    if (outcome != REFUSED && outcome != READ)
        return outcome;
    int plain = read_plainly();
    return plain == NO_SENTENCE ? plain : outcome;
}

/* Cases [first, last) in a child that notes how far it came; -1 when all went well, else the case that did not. */
static int64_t run_batch(int64_t first, int64_t last, int64_t *shared)
{
    int status = 0;
    shared[0] = first;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on as the test */
        signal(SIGBUS, SIG_DFL);
        signal(SIGFPE, SIG_DFL);
        alarm(20);
        for (int64_t n = first; n < last; n++) {
            shared[0] = n;
            int outcome = try_case(n);
            shared[1 + outcome]++;
            if (outcome != REFUSED && outcome != READ)
                _Exit(1);
        }
        _Exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (status == 0)
        return -1;
    if (WIFSIGNALED(status))
        print_error("case %lld: signal %d%s\n", (long long)shared[0], WTERMSIG(status),
                    WTERMSIG(status) == SIGALRM ? ": no end" : "");
    else
        print_error("case %lld: %s\n", (long long)shared[0],
                    shared[1 + WRONG] ? "read without a word, and wrong"
                                      : "refused without naming the file");
    return shared[0];
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
    bool many = getenv("NAMI_TEST_LONG") != NULL;
    double end = nami_now() + (many ? 600 : 5);
    const char *one = getenv("NAMI_TEST_CASE");
    int64_t failed = 0;
    assert_ok(contents_save(NULL, scratch, 1, 3, 1));
    read_original();
    if (one) {
        assert_in_range(try_case(atoll(one)), REFUSED, READ);
        return;
    }
    int64_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t n = 0;
    for (; n < (many ? 300000 : 2000) && nami_now() < end; n += 100)
        failed += run_batch(n, n + 100, shared) >= 0;
    printf("%lld cases: %lld refused, %lld read right all the same\n", (long long)n,
           (long long)shared[1 + REFUSED], (long long)shared[1 + READ]);
    assert_int_equal(failed, 0);
    assert_true(foreign || shared[1 + REFUSED] > n / 2); /* the damage is real */
    munmap(shared, 4096);
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
    seed = nami_test_seed(20240601);
    nami_test_path(scratch, "fuzz");
    snprintf(path, sizeof path, "%s/damaged.h5", scratch);
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
