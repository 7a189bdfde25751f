/* SPDX-License-Identifier: MIT */
/* test_status.c - failures keep their first sentence; the end has the right code; who prints what. */
#include "nami_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static void test_first_wins(void **state)
{
    (void)state;
    assert_string_equal(nami_fail_text(), "");
    assert_int_equal(nami_fail(NAMI_EPLAN, "first %d", 1), NAMI_EPLAN);
    assert_int_equal(nami_fail(NAMI_EINPUT, "second"), NAMI_EINPUT);
    assert_string_equal(nami_fail_text(), "first 1");
    nami_fail_clear();
    assert_string_equal(nami_fail_text(), "");
    char big[3000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    nami_fail(NAMI_EENV, "%s", big);
    assert_int_equal(strlen(nami_fail_text()), 1023);
    nami_fail_clear();
}

static nami_status inner(nami_status code)
{
    NAMI_TRY(code);
    return NAMI_NOTHING;
}

static void test_try(void **state)
{
    (void)state;
    assert_int_equal(inner(NAMI_ELOST), NAMI_ELOST);
    assert_int_equal(inner(NAMI_OK), NAMI_NOTHING);
}

/* Run `act` with stderr into a file of the scratch directory; what it wrote into said[2048]. */
static int capture(void (*act)(void), char said[2048])
{
    char path[512];
    int status;
    nami_test_path(path, "stderr");
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!freopen(path, "w", stderr))
            _exit(99);
        act();
        fflush(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    said[fread(said, 1, 2047, file)] = '\0';
    fclose(file);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void die_plain(void)
{
    nami_fail(NAMI_ENUMERIC, "loss is not finite");
    nami_die(NAMI_ENUMERIC);
}

static void hook(int code)
{
    _exit(code + 100);
}

static void die_hooked(void)
{
    nami_die_hook(hook);
    nami_die(NAMI_ELOST);
}

static void check_false(void)
{
    nami_fail(NAMI_EINPUT, "an older failure");
    NAMI_CHECK(1 + 1 == 3);
}

static void test_ends(void **state)
{
    (void)state;
    char said[2048];
    assert_int_equal(capture(die_plain, said), NAMI_ENUMERIC);
    assert_string_equal(said, "nami: error: loss is not finite\n");
    assert_int_equal(capture(die_hooked, said), 107);
    assert_string_equal(said, "");
    assert_int_equal(capture(check_false, said), NAMI_EBUG);
    assert_non_null(strstr(said, "'1 + 1 == 3' does not hold"));
}

static void say_all(void)
{
    nami_log(NAMI_ERROR, "e");
    nami_log(NAMI_WARNING, "w");
    nami_log(NAMI_INFO, "i");
    nami_log(NAMI_DETAIL, "d");
    nami_log(NAMI_DEBUG, "b");
    nami_progress("progress %d", 1); /* no terminal: nothing */
}

static void say_rank0(void)
{
    nami_log_rank(0);
    nami_log_level(NAMI_DEBUG);
    say_all();
}

static void say_rank1(void)
{
    nami_log_rank(1);
    nami_log_level(NAMI_DEBUG);
    say_all();
}

static void test_who_prints(void **state)
{
    (void)state;
    char said[2048];
    capture(say_all, said);
    assert_string_equal(said, "nami: error: e\nnami: warning: w\ni\n");
    capture(say_rank0, said);
    assert_string_equal(said,
                        "nami[0]: error: e\nnami[0]: warning: w\ni\nd\ndebug: b\n");
    capture(say_rank1, said);
    assert_string_equal(said, "nami[1]: error: e\nnami[1]: warning: w\n");
}

static void say_file(void)
{
    char path[512];
    FILE *file = fopen(nami_test_path(path, "log"), "w");
    if (!file)
        _exit(99);
    nami_log_file(file);
    nami_log(NAMI_INFO, "line %d", 1);
    nami_log_file(NULL);
    nami_log(NAMI_INFO, "line 2");
    fclose(file);
}

static void test_log_file(void **state)
{
    (void)state;
    char said[2048], path[512];
    assert_int_equal(capture(say_file, said), 0);
    FILE *file = fopen(nami_test_path(path, "log"), "r");
    assert_non_null(file);
    said[fread(said, 1, 2047, file)] = '\0';
    fclose(file);
    assert_string_equal(said, "line 1\n");
}

static void test_clock(void **state)
{
    (void)state;
    char text[32];
    double start = nami_now();
    nami_sleep(0.02);
    nami_sleep(-1.0);
    double passed = nami_now() - start;
    assert_true(passed >= 0.019 && passed < 10.0);
    assert_int_equal(strlen(nami_utc(text)), 20);
    assert_true(text[4] == '-' && text[10] == 'T' && text[19] == 'Z');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_wins), cmocka_unit_test(test_try),
        cmocka_unit_test(test_ends),       cmocka_unit_test(test_who_prints),
        cmocka_unit_test(test_log_file),   cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
