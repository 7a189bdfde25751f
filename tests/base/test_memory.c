/* SPDX-License-Identifier: MIT */
/* test_memory.c - balance, peaks, alignment, and the end when memory is exhausted. */
#include "nami_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"

static void test_balance(void **state)
{
    (void)state;
    size_t before = nami_memory_now(NAMI_MEM_DATA);
    void *a = nami_alloc(NAMI_MEM_DATA, 1000), *b = nami_alloc(NAMI_MEM_DATA, 500);
    assert_int_equal(nami_memory_now(NAMI_MEM_DATA), before + 1500);
    assert_int_equal(nami_memory_blocks(), 2);
    a = nami_realloc(NAMI_MEM_OTHER, a, 100); /* the tag stays */
    assert_int_equal(nami_memory_now(NAMI_MEM_DATA), before + 600);
    nami_free(a);
    nami_free(b);
    nami_free(NULL);
    assert_int_equal(nami_memory_now(NAMI_MEM_DATA), before);
    assert_true(nami_memory_peak(NAMI_MEM_DATA) >= before + 1500);
    assert_int_equal(nami_memory_blocks(), 0);
}

static void test_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20, (4 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = nami_calloc(NAMI_MEM_OTHER, sizes[i], 1);
        assert_int_equal((uintptr_t)p % (sizes[i] > 4 << 20 ? 2 << 20 : 64), 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(p[j], 0);
        memset(p, 0xA5, sizes[i]);
        nami_free(p);
    }
}

static void test_realloc_keeps(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(31);
    unsigned char *p = NULL;
    size_t old = 0;
    for (uint64_t i = 0; i < 300; i++) {
        size_t size = (size_t)(nami_uniform(seed, i) * 100000) + 1;
        p = nami_realloc(NAMI_MEM_OTHER, p, size);
        for (size_t j = 0; j < (old < size ? old : size); j++)
            assert_int_equal(p[j], (unsigned char)(j * 7));
        for (size_t j = 0; j < size; j++)
            p[j] = (unsigned char)(j * 7);
        old = size;
    }
    nami_free(p);
}

static void *churn(void *argument)
{
    uint64_t key = *(uint64_t *)argument;
    for (uint64_t i = 0; i < 20000; i++)
        nami_free(
            nami_alloc(NAMI_MEM_MESSAGE, 1 + (size_t)(nami_uniform(key, i) * 1000)));
    return NULL;
}

/* Lanes allocate at the same time as the main thread: the sums stay exact. */
static void test_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    uint64_t key[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, &key[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(nami_memory_now(NAMI_MEM_MESSAGE), 0);
    assert_true(nami_memory_peak(NAMI_MEM_MESSAGE) <= 4000);
    assert_int_equal(nami_memory_blocks(), 0);
}

/* Run `act` in a child; its exit code, and what it wrote to stderr into said[1024]. */
static int in_child(void (*act)(void), char said[1024])
{
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        act();
        _exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(pipes[0], said + length, 1023 - length)) > 0)
        length += (size_t)got;
    said[length] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void exhaust(void)
{
    nami_alloc(NAMI_MEM_ACTIVATION, (size_t)1 << 62);
}

static void overflow(void)
{
    nami_calloc(NAMI_MEM_ACTIVATION, (size_t)1 << 40, (size_t)1 << 40);
}

static void free_twice(void)
{
    static _Alignas(64) char foreign[128];
    nami_free(foreign + 64);
}

static void test_ends(void **state)
{
    (void)state;
    char said[1024];
    assert_int_equal(in_child(exhaust, said), NAMI_EENV);
    assert_non_null(strstr(said, "memory exhausted"));
    assert_non_null(strstr(said, "activation"));
    assert_int_equal(in_child(overflow, said), NAMI_EENV);
    assert_non_null(strstr(said, "exceed the address space"));
    assert_int_equal(in_child(free_twice, said), NAMI_EBUG);
    assert_non_null(strstr(said, "fault of nami"));
}

static void test_resident(void **state)
{
    (void)state;
    size_t before = nami_memory_resident(), size = (size_t)32 << 20;
    char *p = nami_alloc(NAMI_MEM_OTHER, size);
    memset(p, 1, size);
    assert_true(before > 0 && nami_memory_resident() >= before + size / 2);
    nami_free(p);
    assert_true(nami_memory_resident_peak() >= before + size / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balance),       cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_realloc_keeps), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_resident),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
