/* SPDX-License-Identifier: MIT */
/* lane.c - the thread of a lane. */
#include "backend/emu/lane.h"

#include <signal.h>
#include <string.h>

#include "backend/emu/emu.h"
#include "backend/ref/ref.h"
#include "base/clock.h"

enum { FIRST_ITEMS = 64 };

/* Run a kernel of the delegate; returns the seconds it took. */
static double compute(const nami_emu *emu, const nami_emu_item *item)
{
    pthread_mutex_lock(emu->computing);
    const double start = nami_now();
    nami_backend_launch(emu->delegate, 0, item->prepared, &item->args);
    const double end = nami_now();
    pthread_mutex_unlock(emu->computing);
    return end - start;
}

/* Do the work of an item; returns its seconds on the lane's clock. */
static double work(const nami_emu *emu, const nami_emu_item *item)
{
    switch (item->kind) {
    case NAMI_EMU_LAUNCH:
        if (item->prepared->kernel != NAMI_WAIT)
            return compute(emu, item);
        nami_ref_wait_pass(&item->args.wait);
        return item->args.wait.seconds;
    case NAMI_EMU_COPY:
        if (item->bytes)
            memmove(item->to, item->from, item->bytes);
        return item->cost;
    case NAMI_EMU_ZERO:
        if (item->bytes)
            memset(item->to, 0, item->bytes);
        return 0;
    default:
        return 0;
    }
}

/* Wait until another lane has come to a mark; returns when that was. */
static double follow(const nami_emu_item *item)
{
    nami_emu_lane *other = item->other;
    pthread_mutex_lock(&other->lock);
    while (atomic_load(&other->done) < item->number)
        pthread_cond_wait(&other->less, &other->lock);
    pthread_mutex_unlock(&other->lock);
    return other->moment[item->mark];
}

static void carry_out(nami_emu_lane *l, const nami_emu_item *item, int64_t number)
{
    const double jitter = l->emu->options.jitter;
    double start = l->clock > item->queued ? l->clock : item->queued;
    if (item->kind == NAMI_EMU_AFTER) {
        const double moment = follow(item);
        start = moment > start ? moment : start;
    }
    if (jitter > 0) {
        start += jitter * nami_uniform(l->key, (uint64_t)number);
        nami_sleep_until(start);
    }
    l->clock = start + work(l->emu, item);
    nami_sleep_until(l->clock);
    if (item->kind == NAMI_EMU_MARK)
        l->moment[item->mark] = l->clock;
}

/* Take the next item; false when there will be none. */
static bool next(nami_emu_lane *l, int64_t number, nami_emu_item *out)
{
    pthread_mutex_lock(&l->lock);
    while (l->queued == number && !l->closing)
        pthread_cond_wait(&l->more, &l->lock);
    const bool found = l->queued > number;
    if (found)
        *out = l->ring[number & (l->capacity - 1)];
    pthread_mutex_unlock(&l->lock);
    return found;
}

static void *run(void *lane)
{
    nami_emu_lane *l = lane;
    nami_emu_item item;
    for (int64_t number = 0; next(l, number, &item); number++) {
        if (item.fails)
            atomic_store(&l->failed, true);
        if (!atomic_load(&l->failed)) /* a device that failed does nothing more */
            carry_out(l, &item, number);
        pthread_mutex_lock(&l->lock);
        atomic_store(&l->done, number + 1);
        pthread_cond_broadcast(&l->less);
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

void nami_emu_lane_open(nami_emu_lane *l, const nami_emu *emu, uint64_t key)
{
    *l = (nami_emu_lane){.emu = emu, .key = key, .capacity = FIRST_ITEMS};
    l->ring = nami_alloc(NAMI_MEM_OTHER, FIRST_ITEMS * sizeof *l->ring);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    pthread_cond_init(&l->less, NULL);
}

void nami_emu_lane_stop(nami_emu_lane *l)
{
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    if (l->running)
        pthread_join(l->thread, NULL);
}

void nami_emu_lane_close(nami_emu_lane *l)
{
    pthread_cond_destroy(&l->less);
    pthread_cond_destroy(&l->more);
    pthread_mutex_destroy(&l->lock);
    nami_free(l->ring);
}

/* Signals are the main thread's. */
static void start_thread(nami_emu_lane *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    if (pthread_create(&l->thread, NULL, run, l) != 0)
        nami_die(nami_fail(NAMI_EENV, "backend emu: no thread for a lane"));
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    l->running = true;
}

static void grow(nami_emu_lane *l)
{
    const int64_t more = 2 * l->capacity;
    nami_emu_item *ring = nami_alloc(NAMI_MEM_OTHER, (size_t)more * sizeof *ring);
    for (int64_t i = l->queued - l->capacity; i < l->queued; i++)
        ring[i & (more - 1)] = l->ring[i & (l->capacity - 1)];
    nami_free(l->ring);
    l->ring = ring;
    l->capacity = more;
}

int64_t nami_emu_lane_add(nami_emu_lane *l, const nami_emu_item *item)
{
    pthread_mutex_lock(&l->lock);
    if (l->queued - atomic_load(&l->done) >= l->capacity)
        grow(l);
    nami_emu_item *at = &l->ring[l->queued & (l->capacity - 1)];
    *at = *item;
    at->queued = nami_now();
    const int64_t number = ++l->queued;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    if (!l->running)
        start_thread(l);
    return number;
}
