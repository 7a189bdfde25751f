/* SPDX-License-Identifier: MIT */
/* test_fuzz.c - damaged files of weights: refused with a sentence that names the file, or read; never a crash or a hang.
 *
 * Each case damages a copy of a stored file at places that follow from the seed and the case's number, and reads it in a
 * child process. NAMI_TEST_LONG=1 runs many more cases; NAMI_TEST_CASE=N runs one, in this process (for debuggers).
 */
#include "nami_test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "exchange/exchange.h"

enum { REFUSED, READ, WRONG, NO_SENTENCE, OUTCOMES };
enum { LARGEST = 1 << 16, FEW = 1 << 20 };

static uint64_t seed;
static char scratch[512], path[600];
static unsigned char original[LARGEST];
static size_t bytes, described; /* of the file; of what is worth damaging */

/* Number in [0, n) of draw k of a case. */
static size_t draw(int64_t number, int k, size_t n)
{
    return (size_t)(nami_mix(nami_mix(seed, (uint64_t)number), (uint64_t)k) % n);
}

/* A byte of headers, pickles and directories; those of arrays are dull: none is both small and followed by such. */
static size_t draw_place(int64_t number, int k)
{
    if (draw(number, k, 2))
        return draw(number, k + 1, described); /* at the start */
    return bytes - 1 - draw(number, k + 2, described < bytes ? described : bytes);
}

/* A damaged copy of the file; returns its length. */
static size_t damage(int64_t number, unsigned char *copy)
{
    static const unsigned char special[] = {0x00, 0xff, 0x7f, 0x80, 0x01, '9',
                                            '0',  '"',  '{',  '(',  'h',  'q'};
    memcpy(copy, original, bytes);
    int kind = (int)draw(number, 1, 6), times = 1 + (int)draw(number, 2, 4);
    if (kind == 0)
        return draw(number, 3, bytes); /* cut */
    for (int t = 0; t < times; t++) {
        size_t at = draw_place(number, 100 + 10 * t),
               from = draw_place(number, 200 + 10 * t),
               run = 1 + draw(number, 20 + t, 16);
        run = run < bytes - at ? run : bytes - at;
        run = run < bytes - from ? run : bytes - from;
        if (kind == 1)
            copy[at] = (unsigned char)(copy[at] ^ (1 << draw(number, 40 + t, 8)));
        else if (kind == 2)
            copy[at] = special[draw(number, 50 + t, sizeof special)];
        else if (kind == 3)
            memset(copy + at, special[draw(number, 60 + t, sizeof special)], run);
        else if (kind == 4)
            memmove(copy + at, copy + from, run);
        else
            copy[at] = (unsigned char)draw(number, 70 + t, 256);
    }
    return bytes;
}

static void put(const unsigned char *copy, size_t length)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(copy, 1, length, f) != length || fclose(f))
        abort();
}

static int judge(nami_status status)
{
    if (status == NAMI_OK)
        return READ;
    if (status != NAMI_EINPUT)
        return WRONG;
    return strstr(nami_fail_text(), scratch) ? REFUSED : NO_SENTENCE;
}

/* All arrays that are not too long. */
static int read_arrays(const nami_exchange *x)
{
    static float out[FEW];
    int count;
    const nami_exchange_array *a = nami_exchange_arrays(x, &count);
    for (int i = 0; i < count; i++) {
        int64_t n = 1;
        for (int k = 0; k < a[i].rank; k++)
            n = n > FEW ? n : n * a[i].dim[k];
        if (n > FEW)
            continue;
        int outcome = judge(nami_exchange_read(x, &a[i], out));
        nami_fail_clear();
        if (outcome != READ && a[i].type->kind != NAMI_EXCHANGE_OTHER)
            return WRONG;
    }
    return READ;
}

static int try_case(int64_t number)
{
    static unsigned char copy[LARGEST];
    nami_exchange *x;
    put(copy, damage(number, copy));
    int outcome = judge(nami_exchange_open(path, &x));
    nami_fail_clear();
    if (outcome == READ)
        outcome = read_arrays(x);
    nami_exchange_close(x);
    return nami_memory_blocks() ? WRONG : outcome;
}

/* Cases [first, last) in a child that notes how far it came; whether one went wrong. */
static bool run_batch(int64_t first, int64_t last, int64_t *shared)
{
    int status = 0;
    shared[0] = first;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on as the test */
        signal(SIGBUS, SIG_DFL);
        signal(SIGFPE, SIG_DFL);
        alarm(30);
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
    if (status != 0)
        print_error("case %lld: %s %d\n", (long long)shared[0],
                    WIFSIGNALED(status) ? "signal"
                                        : "wrong, or without the file's name",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return status != 0;
}

static void run_cases(const char *name, size_t worth)
{
    char source[512];
    bool many = getenv("NAMI_TEST_LONG") != NULL;
    double end = nami_now() + (many ? 150 : 3);
    const char *one = getenv("NAMI_TEST_CASE"), *dot = strchr(name, '.');
    FILE *f = fopen(nami_test_source(source, name), "rb");
    assert_non_null(f);
    bytes = fread(original, 1, sizeof original, f);
    fclose(f);
    described = worth < bytes ? worth : bytes;
    snprintf(path, sizeof path, "%s/damaged%s", scratch,
             strcmp(dot, ".safetensors.index.json") ? dot : ".index.json");
    if (one) {
        assert_in_range(try_case(atoll(one)), REFUSED, READ);
        return;
    }
    int64_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t n = 0, failed = 0;
    for (; n < (many ? 1000000 : 4000) && nami_now() < end && failed == 0; n += 200)
        failed += run_batch(n, n + 200, shared);
    printf("%s: %lld cases: %lld refused, %lld read all the same\n", name, (long long)n,
           (long long)shared[1 + REFUSED], (long long)shared[1 + READ]);
    assert_int_equal(failed, 0);
    assert_true(shared[1 + REFUSED] > n / 4); /* the damage is real */
    munmap(shared, 4096);
}

static void test_safetensors(void **state)
{
    (void)state;
    run_cases("tests/data/weights-huggingface.safetensors", 3000);
}

static void test_zip(void **state)
{
    (void)state;
    run_cases("tests/data/weights-zip.pt", 4500);
}

static void test_legacy(void **state)
{
    (void)state;
    run_cases("tests/data/weights-legacy.pt", 4000);
}

/* The files that the index names lie beside it. */
static void copy_beside(const char *name)
{
    char source[512], data[] = "tests/data/";
    nami_test_source(source, data);
    strncat(source, name, sizeof source - strlen(source) - 1);
    FILE *f = fopen(source, "rb");
    assert_non_null(f);
    bytes = fread(original, 1, sizeof original, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    put(original, bytes);
}

static void test_index(void **state)
{
    (void)state;
    copy_beside("weights-nanogpt-0.safetensors");
    copy_beside("weights-nanogpt-1.safetensors");
    run_cases("tests/data/weights-nanogpt.safetensors.index.json", 3000);
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_zip),
        cmocka_unit_test(test_legacy),
        cmocka_unit_test(test_index),
    };
    seed = nami_test_seed(20240601);
    nami_test_path(scratch, "");
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
