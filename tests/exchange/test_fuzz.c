/* SPDX-License-Identifier: MIT */
/* test_fuzz.c - damaged files of weights: refused with a sentence that names the file, or read; never a crash or a hang.
 *
 * Each case damages a copy of a stored file at places that follow from the seed and the case's number.
 */
#include "fuzz.h"

#include "exchange/exchange.h"

enum { LARGEST = 1 << 16, FEW = 1 << 20 };

static int try_case(int64_t number);
static fuzz z = {.try_case = try_case, .few = 1000, .many = 1000000, .seconds = 150};
static char scratch[512], path[600];
static unsigned char original[LARGEST];
static size_t bytes, described; /* of the file; of what is worth damaging */

/* A byte of headers, pickles and directories; those of arrays are dull: none is both small and followed by such. */
static size_t draw_place(int64_t number, int k)
{
    if (fuzz_draw(&z, number, k, 2))
        return fuzz_draw(&z, number, k + 1, described); /* at the start */
    return bytes - 1 -
           fuzz_draw(&z, number, k + 2, described < bytes ? described : bytes);
}

/* A damaged copy of the file; returns its length. */
static size_t damage(int64_t number, unsigned char *copy)
{
    static const unsigned char special[] = {0x00, 0xff, 0x7f, 0x80, 0x01, '9',
                                            '0',  '"',  '{',  '(',  'h',  'q'};
    memcpy(copy, original, bytes);
    int kind = (int)fuzz_draw(&z, number, 1, 6),
        times = 1 + (int)fuzz_draw(&z, number, 2, 4);
    if (kind == 0)
        return fuzz_draw(&z, number, 3, bytes); /* cut */
    for (int t = 0; t < times; t++) {
        size_t at = draw_place(number, 100 + 10 * t),
               from = draw_place(number, 200 + 10 * t),
               run = 1 + fuzz_draw(&z, number, 20 + t, 16);
        run = run < bytes - at ? run : bytes - at;
        run = run < bytes - from ? run : bytes - from;
        if (kind == 1)
            copy[at] =
                (unsigned char)(copy[at] ^ (1 << fuzz_draw(&z, number, 40 + t, 8)));
        else if (kind == 2)
            copy[at] = special[fuzz_draw(&z, number, 50 + t, sizeof special)];
        else if (kind == 3)
            memset(copy + at, special[fuzz_draw(&z, number, 60 + t, sizeof special)],
                   run);
        else if (kind == 4)
            memmove(copy + at, copy + from, run);
        else
            copy[at] = (unsigned char)fuzz_draw(&z, number, 70 + t, 256);
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
        return FUZZ_READ;
    if (status != NAMI_EINPUT)
        return FUZZ_WRONG;
    return strstr(nami_fail_text(), scratch) ? FUZZ_REFUSED : FUZZ_NO_SENTENCE;
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
        if (outcome != FUZZ_READ && a[i].type->kind != NAMI_EXCHANGE_OTHER)
            return FUZZ_WRONG;
    }
    return FUZZ_READ;
}

static int try_case(int64_t number)
{
    static unsigned char copy[LARGEST];
    nami_exchange *x;
    put(copy, damage(number, copy));
    int outcome = judge(nami_exchange_open(path, &x));
    nami_fail_clear();
    if (outcome == FUZZ_READ)
        outcome = read_arrays(x);
    nami_exchange_close(x);
    return nami_memory_blocks() ? FUZZ_WRONG : outcome;
}

static void run_cases(const char *name, size_t worth)
{
    char source[512];
    const char *dot = strchr(name, '.');
    FILE *f = fopen(nami_test_source(source, name), "rb");
    assert_non_null(f);
    bytes = fread(original, 1, sizeof original, f);
    fclose(f);
    described = worth < bytes ? worth : bytes;
    snprintf(path, sizeof path, "%s/damaged%s", scratch,
             strcmp(dot, ".safetensors.index.json") ? dot : ".index.json");
    int64_t n = fuzz_run(&z, name);
    assert_true(n == 0 || z.outcome[FUZZ_REFUSED] > n / 4); /* the damage is real */
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
    z.seed = nami_test_seed(20240601);
    nami_test_path(scratch, "");
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
