/* SPDX-License-Identifier: MIT */
/* stop.c - why a run ends early or saves: signals, files in its directory, time. */
#include "train/stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    (void)number;
    caught = 1;
}

static void set_action(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void nami_stop_watch(void)
{
    caught = 0;
    set_action(SIGTERM, on_signal);
    set_action(SIGUSR1, on_signal);
    set_action(SIGXFSZ, SIG_IGN);
}

void nami_stop_unwatch(void)
{
    /* a launcher may send it twice, to the rank and to what started the rank */
    void (*handler)(int) = caught ? SIG_IGN : SIG_DFL;
    set_action(SIGTERM, handler);
    set_action(SIGUSR1, handler);
}

static bool has_file(const char *directory, const char *name)
{
    char *path = nami_strf("%s/%s", directory, name);
    bool there = access(path, F_OK) == 0;
    nami_free(path);
    return there;
}

/* One more window and a save at 1.5 times its cost must fit. */
static bool time_is_up(const nami_stop_clock *c)
{
    double used = nami_now() - c->started;
    return c->max_time > 0 &&
           used + c->step_seconds + 1.5 * c->save_seconds > c->max_time;
}

int nami_stop_poll(const nami_stop_clock *clock, const char *directory)
{
    int wish = caught ? NAMI_WISH_SIGNAL : 0;
    if (!directory)
        return wish;
    wish |= has_file(directory, "stop") ? NAMI_WISH_STOP : 0;
    wish |= has_file(directory, "save") ? NAMI_WISH_SAVE : 0;
    wish |= time_is_up(clock) ? NAMI_WISH_TIME : 0;
    return wish;
}

static void remove_file(const char *directory, const char *name)
{
    char *path = nami_strf("%s/%s", directory, name);
    (void)unlink(path);
    nami_free(path);
}

void nami_stop_obeyed(int wish, const char *directory)
{
    if (wish & NAMI_WISH_STOP)
        remove_file(directory, "stop");
    if (wish & NAMI_WISH_SAVE)
        remove_file(directory, "save");
}

const char *nami_stop_reason(int wish)
{
    if (wish & NAMI_WISH_SIGNAL)
        return "signal SIGTERM or SIGUSR1";
    if (wish & NAMI_WISH_STOP)
        return "file stop in the run directory";
    return "run.max_time";
}
