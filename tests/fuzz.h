/* SPDX-License-Identifier: MIT */
/* fuzz.h - cases of damaged files, each tried in a child process: never a crash, a hang or a wrong answer.
 *
 * NAMI_TEST_LONG=1 runs many more cases; NAMI_TEST_CASE=N runs one, in this process (for debuggers).
 */
#ifndef NAMI_TESTS_FUZZ_H
#define NAMI_TESTS_FUZZ_H

#include "nami_test.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

/* How a case ends: the last two are faults. */
enum { FUZZ_REFUSED, FUZZ_READ, FUZZ_WRONG, FUZZ_NO_SENTENCE, FUZZ_OUTCOMES };

typedef struct fuzz {
    uint64_t seed;
    int (*try_case)(int64_t number); /* returns an outcome */
    int64_t few, many;               /* cases, and with NAMI_TEST_LONG */
    double seconds; /* that many cases may take in all; few take what they take */
    int64_t outcome[FUZZ_OUTCOMES]; /* counted by fuzz_run */
} fuzz;

/* Number in [0, n) of draw k of a case. */
static inline size_t fuzz_draw(const fuzz *z, int64_t number, int k, size_t n)
{
    return (size_t)(nami_mix(nami_mix(z->seed, (uint64_t)number), (uint64_t)k) % n);
}

/* Cases [first, last) in the child; shared[0] tells how far it came. */
static inline void fuzz_child(const fuzz *z, int64_t first, int64_t last,
                              int64_t *shared)
{
    const struct rlimit busy = {.rlim_cur = 60, .rlim_max = 70};
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on as the test */
    signal(SIGBUS, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    setrlimit(RLIMIT_CPU, &busy); /* an endless loop, on a machine however slow */
    alarm(500);                   /* and a wait without end */
    for (int64_t n = first; n < last; n++) {
        shared[0] = n;
        int outcome = z->try_case(n);
        shared[1 + outcome]++;
        if (outcome != FUZZ_REFUSED && outcome != FUZZ_READ)
            _Exit(1);
    }
    _Exit(0);
}

/* Whether one of the cases [first, last) went wrong; says which and how. */
static inline bool fuzz_batch(const fuzz *z, int64_t first, int64_t last,
                              int64_t *shared)
{
    int status = 0;
    shared[0] = first;
    pid_t child = fork();
    if (child == 0)
        fuzz_child(z, first, last, shared);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (status == 0)
        return false;
    if (WIFSIGNALED(status))
        print_error("case %lld: signal %d%s\n", (long long)shared[0], WTERMSIG(status),
                    WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGALRM
                        ? ": no end"
                        : "");
    else
        print_error("case %lld: %s\n", (long long)shared[0],
                    shared[1 + FUZZ_WRONG] ? "read without a word, and wrong"
                                           : "refused without naming the file");
    return true;
}

/* Run the cases of `name` and count their outcomes; fails the test at the first that goes wrong. Returns the number of
 * cases, 0 when NAMI_TEST_CASE asked for one. */
static inline int64_t fuzz_run(fuzz *z, const char *name)
{
    enum { BATCH = 100 };
    const char *one = getenv("NAMI_TEST_CASE");
    const bool many = getenv("NAMI_TEST_LONG") != NULL;
    if (one) {
        assert_in_range(z->try_case(atoll(one)), FUZZ_REFUSED, FUZZ_READ);
        return 0;
    }
    int64_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const double end = nami_now() + (many ? z->seconds : 1e9);
    bool failed = false;
    int64_t n = 0;
    for (; n < (many ? z->many : z->few) && nami_now() < end && !failed; n += BATCH)
        failed = fuzz_batch(z, n, n + BATCH, shared);
    printf("%s: %lld cases: %lld refused, %lld read all the same\n", name, (long long)n,
           (long long)shared[1 + FUZZ_REFUSED], (long long)shared[1 + FUZZ_READ]);
    for (int i = 0; i < FUZZ_OUTCOMES; i++)
        z->outcome[i] = shared[1 + i];
    munmap(shared, 4096);
    assert_false(failed);
    return n;
}

#endif
