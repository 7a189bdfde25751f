/* SPDX-License-Identifier: MIT */
/* test_journal.c - log.jsonl is cut back to a step, survives cut lines and noise, and serves one run at a time. */
#include "nami_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "train/journal.h"

static void assert_content(const char *path, const char *expected)
{
    char text[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = fread(text, 1, sizeof text - 1, file);
    text[got] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
}

/* Open cut back to `step`, add one event, close. */
static void resume(const char *path, int64_t step)
{
    nami_journal *j;
    nami_text event = {0};
    assert_ok(nami_journal_open(path, step, &j));
    nami_event_begin(&event, "restart", step);
    assert_ok(nami_event_end(&event, j));
    assert_ok(nami_journal_sync(j));
    nami_journal_close(j);
}

static void test_cut(void **state)
{
    char path[512];
    static const char whole[] = "{\"event\":\"start\",\"step\":0}\n"
                                "{\"event\":\"step\",\"step\":1,\"loss\":2}\n"
                                "{\"event\":\"step\",\"step\":2,\"loss\":1}\n"
                                "{\"event\":\"eval\",\"step\":2}\n"
                                "{\"event\":\"step\",\"step\":3}\n"
                                "{\"event\":\"step\",\"st";
    (void)state;
    nami_test_path(path, "log.jsonl");
    nami_test_write(path, whole, sizeof whole - 1);
    resume(path, 2);
    assert_content(path, "{\"event\":\"start\",\"step\":0}\n"
                         "{\"event\":\"step\",\"step\":1,\"loss\":2}\n"
                         "{\"event\":\"step\",\"step\":2,\"loss\":1}\n"
                         "{\"event\":\"eval\",\"step\":2}\n"
                         "{\"event\":\"restart\",\"step\":2}\n");
    resume(path, 0);
    assert_content(path, "{\"event\":\"start\",\"step\":0}\n"
                         "{\"event\":\"restart\",\"step\":0}\n");
}

/* Lines that are no events go; nothing breaks. */
static void test_noise(void **state)
{
    char path[512], noise[3000];
    uint64_t seed = nami_test_seed(7);
    (void)state;
    nami_test_path(path, "noise.jsonl");
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)nami_mix(seed, i);
    nami_test_write(path, noise, sizeof noise);
    resume(path, 5);
    assert_content(path, "{\"event\":\"restart\",\"step\":5}\n");
    static const char odd[] =
        "\n\n{}\n\"step\":\n\"step\":x\n\"step\":99999999999999999999999\n";
    nami_test_write(path, odd, sizeof odd - 1);
    resume(path, 5);
    assert_content(path, "{\"event\":\"restart\",\"step\":5}\n");
    nami_test_write(path, "", 0);
    resume(path, 5);
    assert_content(path, "{\"event\":\"restart\",\"step\":5}\n");
}

/* A second process is refused while the first has the log, also after it was cut back. */
static void test_lock(void **state)
{
    char path[512];
    static const char whole[] =
        "{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":2}\n";
    nami_journal *j;
    int status = 0;
    (void)state;
    nami_test_path(path, "locked.jsonl");
    nami_test_write(path, whole, sizeof whole - 1);
    assert_ok(nami_journal_open(path, 1, &j));
    pid_t child = fork();
    if (child == 0) {
        nami_journal *other;
        bool refused = nami_journal_open(path, 9, &other) == NAMI_EENV &&
                       strstr(nami_fail_text(), "in use");
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    nami_journal_close(j);
    resume(path, 1);
}

static void test_values(void **state)
{
    char path[512];
    nami_journal *j;
    nami_text event = {0};
    (void)state;
    nami_test_path(path, "values.jsonl");
    assert_ok(nami_journal_open(path, 0, &j));
    nami_event_begin(&event, "step", 12);
    nami_event_number(&event, "loss", 0.1);
    nami_event_number(&event, "bad", 0.0 / 0.0);
    nami_event_whole(&event, "tokens", (int64_t)1 << 60);
    nami_event_text(&event, "reason", "a \"quoted\"\nline");
    assert_ok(nami_event_end(&event, j));
    assert_null(event.data);
    nami_journal_close(j);
    assert_content(path, "{\"event\":\"step\",\"step\":12,\"loss\":0.1,\"bad\":null,"
                         "\"tokens\":1152921504606846976,"
                         "\"reason\":\"a \\\"quoted\\\"\\nline\"}\n");
    assert_fails(nami_journal_open("/no/such/place", 0, &j), NAMI_EENV,
                 "/no/such/place");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
