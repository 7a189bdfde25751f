/* SPDX-License-Identifier: MIT */
/* guard.c - a small process before each rank that outlives it.
 *
 * A launcher that sees a rank killed ends the job at once with a code of its own, and nobody learns who waited for
 * whom. So under a launcher each rank is the child of a guard: it passes signals on, returns the rank's exit code, and when the
 * rank is killed it says so and stays, until the other ranks have found out and ended the job with exit code 7.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"

/* early: a signal that came before the child */
static volatile sig_atomic_t child, early;

static void pass_on(int number)
{
    if (child > 0)
        (void)kill((pid_t)child, number);
    else
        early = number;
}

/* Ranks that the launcher says it started; 0 without a launcher. */
static int launched(void)
{
    static const char *const size[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE",
                                       "SLURM_STEP_NUM_TASKS", "PALS_SIZE"};
    int most = 0;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        const char *value = getenv(size[i]);
        int64_t n;
        if (value && nami_parse_int(value, &n) && n > most)
            most = (int)n;
    }
    return most;
}

static void watch_signals(void (*handler)(int))
{
    static const int number[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        (void)sigaction(number[i], &action, NULL);
}

static int wait_for_child(void)
{
    int status = 0;
    while (waitpid((pid_t)child, &status, 0) < 0)
        if (errno != EINTR)
            return NAMI_EBUG << 8; /* as if it had exited so */
    return status;
}

/* The rank is dead: say so and wait for the others to end the job, who wait for it at most so long. */
static int outlive(int number, int ranks)
{
    enum { SECONDS = 600 };
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    nami_log(NAMI_ERROR, "a rank on %s (process %d) was killed by signal %d (%s)", host,
             (int)child, number, strsignal(number));
    watch_signals(SIG_DFL);
    if (number == SIGTERM || number == SIGINT || number == SIGHUP || ranks == 1)
        return NAMI_ELOST;
    nami_sleep(SECONDS);
    return NAMI_ELOST;
}

bool nami_cli_guard(int *code)
{
    int ranks = launched(), status;
    pid_t parent = getpid();
    if (ranks == 0)
        return false;
    watch_signals(pass_on);
    child = fork();
    if (child <=
        0) { /* the rank itself; when there can be no other process, without a guard */
        watch_signals(SIG_DFL);
        if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
            (void)raise(SIGKILL);
        return false;
    }
    if (early)
        pass_on(early);
    (void)prctl(PR_SET_NAME, "nami-guard");
    status = wait_for_child();
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : outlive(WTERMSIG(status), ranks);
    return true;
}
