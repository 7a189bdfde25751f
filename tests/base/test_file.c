/* SPDX-License-Identifier: MIT */
/* test_file.c - a file is replaced whole or stays, and a failure is told. */
#include "nami_test.h"

#include <unistd.h>

#include "base/file.h"

static void assert_content(const char *path, const char *expected, size_t bytes)
{
    char text[64];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), bytes);
    assert_memory_equal(text, expected, bytes);
    fclose(f);
}

static void test_replace(void **state)
{
    (void)state;
    char path[512], fresh[512];
    nami_test_path(path, "replaced");
    nami_test_path(fresh, "replaced.new");
    assert_ok(nami_file_replace(path, "a longer first text", 19));
    assert_content(path, "a longer first text", 19);
    assert_ok(nami_file_replace(path, "a\0b", 3));
    assert_content(path, "a\0b", 3);
    assert_int_equal(access(fresh, F_OK), -1);
}

static void test_failures(void **state)
{
    (void)state;
    char path[512], below[512];
    nami_test_path(path, "there");
    nami_test_path(below, "there/no.txt");
    nami_test_write(path, "stays", 5);
    assert_fails(nami_file_replace(below, "x", 1), NAMI_EENV,
                 "there/no.txt cannot be written: Not a directory");
    assert_fails(nami_file_replace("", "x", 1), NAMI_EENV, " cannot be written: ");
    assert_content(path, "stays", 5);
}

/* A descriptor that cannot be written, and one that takes all. */
static void test_write(void **state)
{
    (void)state;
    int ends[2];
    char got[8];
    assert_int_equal(pipe(ends), 0);
    assert_true(nami_file_write(ends[1], "abc", 3));
    assert_int_equal(read(ends[0], got, sizeof got), 3);
    assert_memory_equal(got, "abc", 3);
    assert_false(nami_file_write(ends[0], "abc", 3));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
