/* SPDX-License-Identifier: MIT */
/* test_text.c - texts, JSON values, conversions and the nearest word. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "base/text.h"

static void test_add(void **state)
{
    (void)state;
    nami_text t = {0};
    assert_string_equal(nami_text_get(&t), "");
    for (int i = 0; i < 1000; i++)
        nami_text_add(&t, "%d,", i % 10);
    assert_int_equal(t.length, 2000);
    assert_int_equal(strlen(t.data), 2000);
    nami_text_free(&t);
    assert_string_equal(nami_text_get(&t), "");
}

static void test_json(void **state)
{
    (void)state;
    nami_text t = {0};
    nami_text_json(&t, "a\"b\\c\n\t\x01 \xe6\xb3\xa2 \xff \xc0\x80 \xed\xa0\x80");
    assert_string_equal(nami_text_get(&t),
                        "\"a\\\"b\\\\c\\n\\t\\u0001 \xe6\xb3\xa2 \\ufffd "
                        "\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\"");
    nami_text_free(&t);
}

static void test_number(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(7);
    nami_text t = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        double x =
            ldexp(nami_normal(seed, i), (int)(nami_uniform(seed + 1, i) * 2000) - 1000);
        nami_text_free(&t);
        nami_text_number(&t, x);
        assert_true(strtod(nami_text_get(&t), NULL) == x);
    }
    nami_text_free(&t);
    nami_text_number(&t, 0.1);
    nami_text_add(&t, " ");
    nami_text_number(&t, 300); /* not 3e+02 */
    nami_text_add(&t, " ");
    nami_text_number(&t, NAN);
    nami_text_add(&t, " ");
    nami_text_number(&t, -INFINITY);
    assert_string_equal(nami_text_get(&t), "0.1 300 null null");
    nami_text_free(&t);
}

static void test_parse_int(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    " 1",   "1 ",  "x",
                                      "1x",  "0x10", "1.0", "9223372036854775808",
                                      "--1", "+",    "-",   "1e3"};
    int64_t x = 17;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(nami_parse_int(bad[i], &x));
    assert_int_equal(x, 17);
    assert_true(nami_parse_int("-9223372036854775808", &x));
    assert_true(x == INT64_MIN);
    assert_true(nami_parse_int("+12", &x));
    assert_int_equal(x, 12);
}

static void test_parse_real(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      " 1",  "1 ", "nan", "inf", "-inf",
                                      "1e999", "1,5", "e3", ".",   "0x"};
    double x = 17.0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(nami_parse_real(bad[i], &x));
    assert_true(x == 17.0);
    assert_true(nami_parse_real("-.5e-3", &x));
    assert_true(x == -.5e-3);
}

static void test_parse_duration(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      "s",      "-1",          "1:2",   "1:60",
                                      "1:30:", ":30",    "1:00:00:00",  "1h30m", "1 h",
                                      "nan",   "1e308d", "99999999:00", "ms",    "us",
                                      "1sm",   "1ns",    "1mm"};
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"90", 90},   {"1:30", 90},   {"1:30:00", 5400},    {"90s", 90},
                {"15m", 900}, {"2h", 7200},   {"1.5h", 5400},       {"1d", 86400},
                {"0", 0},     {"5ms", 0.005}, {"500us", 500 * 1e-6}};
    double x;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (nami_parse_duration(bad[i], &x))
            fail_msg("'%s' was read as %g s", bad[i], x);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(nami_parse_duration(good[i].text, &x));
        assert_true(x == good[i].seconds);
    }
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const word[] = {"positions", "waves", "chunks", "lr",
                                       "microbatches"};
    assert_int_equal(nami_distance("kitten", "sitting"), 3);
    assert_int_equal(nami_distance("ab", "ba"), 1);
    assert_int_equal(nami_distance("", "abc"), 3);
    assert_int_equal(nami_nearest("postions", word, 5), 0);
    assert_int_equal(nami_nearest("wave", word, 5), 1);
    assert_int_equal(nami_nearest("micro_batches", word, 5), 4);
    assert_int_equal(nami_nearest("zebra", word, 5), -1);
    assert_int_equal(nami_nearest("x", word, 5), -1);
    assert_int_equal(nami_nearest("", word, 5), -1);
}

/* The edit distance is symmetric, zero only for equals, and each random edit adds at most one. */
static void test_distance_bound(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(11);
    for (uint64_t trial = 0; trial < 500; trial++) {
        char a[16] = "abcdefghij", b[16];
        strcpy(b, a);
        int edits = (int)(nami_uniform(seed, trial) * 5);
        for (int e = 0; e < edits; e++)
            b[(int)(nami_uniform(seed + 1, trial * 8 + (uint64_t)e) * 10)] =
                (char)('a' +
                       (int)(nami_uniform(seed + 2, trial * 8 + (uint64_t)e) * 26));
        int d = nami_distance(a, b);
        assert_true(d <= edits);
        assert_int_equal(d, nami_distance(b, a));
        assert_int_equal(d == 0, strcmp(a, b) == 0);
    }
}

static void test_human(void **state)
{
    (void)state;
    char buf[32];
    assert_string_equal(nami_plural(0), "s");
    assert_string_equal(nami_plural(1), "");
    assert_string_equal(nami_plural(2), "s");
    assert_string_equal(nami_human_bytes(0, buf), "0 B");
    assert_string_equal(nami_human_bytes(1536, buf), "1.5 KiB");
    assert_string_equal(nami_human_bytes(1.5 * 1024 * 1024 * 1024, buf), "1.5 GiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),        cmocka_unit_test(test_json),
        cmocka_unit_test(test_number),     cmocka_unit_test(test_parse_int),
        cmocka_unit_test(test_parse_real), cmocka_unit_test(test_parse_duration),
        cmocka_unit_test(test_nearest),    cmocka_unit_test(test_distance_bound),
        cmocka_unit_test(test_human),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
