/* SPDX-License-Identifier: MIT */
/* clock.c - the steady clock, sleep and calendar time. */
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

double nami_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void nami_sleep(double seconds)
{
    if (!(seconds > 0.0))
        return;
    double whole = floor(seconds);
    struct timespec t = {.tv_sec = (time_t)whole,
                         .tv_nsec = (long)((seconds - whole) * 1e9)};
    nanosleep(&t, NULL);
}

void nami_sleep_sharply(void)
{
    static _Thread_local bool sharp;
    if (!sharp)
        prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    sharp = true;
}

void nami_sleep_until(double moment)
{
    if (!(moment > nami_now()))
        return;
    double whole = floor(moment);
    struct timespec t = {.tv_sec = (time_t)whole,
                         .tv_nsec = (long)((moment - whole) * 1e9)};
    nami_sleep_sharply();
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

const char *nami_utc(char buf[32])
{
    time_t now = time(NULL);
    struct tm parts;
    if (!gmtime_r(&now, &parts) || !strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &parts))
        buf[0] = '\0';
    return buf;
}
