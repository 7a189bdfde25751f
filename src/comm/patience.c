/* SPDX-License-Identifier: MIT */
/* patience.c - how to wait without taking the core from the rank one waits for.
 *
 * MPI libraries poll and never give the core away. With a core for every thread that is right, and we spin
 * too; with more threads than cores a sleep that doubles from 20 us to 1 ms costs little and lets the
 * others work. Also a wait that turned out long sleeps: then 20 us more do not matter.
 */
#include <sched.h>

#include "base/clock.h"
#include "comm/inner.h"

enum { SPINS_CROWDED = 4, SPINS = 2000, DOUBLINGS = 6 };

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#else
    sched_yield();
#endif
}

void nami_patience_step(bool crowded, nami_patience *p)
{
    int spins = crowded ? SPINS_CROWDED : SPINS;
    int doublings = crowded ? DOUBLINGS : 1;
    int k = p->idle - spins;
    if (k < spins + DOUBLINGS)
        p->idle++;
    if (k < 0) {
        pause_core();
        return;
    }
    nami_sleep_sharply();
    double seconds = 20e-6 * (double)(1 << (k < doublings ? k : doublings));
    nami_sleep(seconds < 1e-3 ? seconds : 1e-3);
}

void nami_patience_wait(const nami_comm *c, nami_patience *p)
{
    if (p->seen != c->activity)
        p->idle = 0;
    p->seen = c->activity;
    nami_patience_step(c->crowded, p);
}

int64_t nami_comm_activity(const nami_comm *c)
{
    return c->activity;
}

bool nami_comm_oversubscribed(const nami_comm *c)
{
    return c->crowded;
}
