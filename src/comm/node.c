/* SPDX-License-Identifier: MIT */
/* node.c - which cores a rank may use, and whether ranks of a node step on each other's toes. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "comm/inner.h"

enum { MASK_WORDS = 128, MASK_BITS = 64 * MASK_WORDS };

/* Affinity mask and threads of one rank. */
typedef struct cores {
    uint64_t word[MASK_WORDS];
    int threads;
} cores;

static bool has(const cores *m, int core)
{
    return m->word[core / 64] >> (core % 64) & 1;
}

static int count(const cores *m)
{
    int n = 0;
    for (int i = 0; i < MASK_WORDS; i++)
        n += __builtin_popcountll(m->word[i]);
    return n;
}

/* Cores that a container may keep busy (cgroup v2: "QUOTA PERIOD" in microseconds), MASK_BITS when there is no limit. */
static int quota(void)
{
    long long microseconds = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    int read = f ? fscanf(f, "%lld %lld", &microseconds, &period) : 0;
    if (f)
        fclose(f);
    if (read != 2 || microseconds <= 0 || period <= 0 ||
        microseconds / period >= MASK_BITS)
        return MASK_BITS;
    return (int)((microseconds + period - 1) / period);
}

static cores own_cores(const nami_comm *c)
{
    cores m = {.threads = c->threads};
    cpu_set_t *set = CPU_ALLOC(MASK_BITS);
    size_t bytes = CPU_ALLOC_SIZE(MASK_BITS);
    if (set && sched_getaffinity(0, bytes, set) == 0)
        for (int i = 0; i < MASK_BITS; i++)
            if (CPU_ISSET_S(i, bytes, set))
                m.word[i / 64] |= (uint64_t)1 << (i % 64);
    CPU_FREE(set);
    for (long i = 0; count(&m) == 0 && i < sysconf(_SC_NPROCESSORS_ONLN) && i < 64; i++)
        m.word[0] |= (uint64_t)1 << i;
    return m;
}

/* Union of the masks of this node's ranks, and their threads together. */
static cores node_cores(nami_comm *c)
{
    cores own = own_cores(c), sum = {.threads = 0};
    cores *all = nami_alloc(NAMI_MEM_OTHER, (size_t)c->node_size * sizeof *all);
    MPI_Request request;
    c->crowded = c->crowded || c->node_size > count(&own);
    MPI_Iallgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, c->node,
                   &request);
    nami_comm_wait(c, &request, "count of cores");
    for (int r = 0; r < c->node_size; r++) {
        sum.threads += all[r].threads;
        for (int i = 0; i < MASK_WORDS; i++)
            sum.word[i] |= all[r].word[i];
    }
    nami_free(all);
    return sum;
}

/* Cores of the node's ranks together: those of the masks, or fewer when a container limits them. */
static int usable(const cores *sum)
{
    int most = quota(), n = count(sum);
    return n < most ? n : most;
}

void nami_comm_count_cores(nami_comm *c)
{
    cores sum = node_cores(c);
    c->crowded = sum.threads > usable(&sum);
}

void nami_comm_threads(nami_comm *c, int threads)
{
    c->threads = threads > 0 ? threads : 1;
    nami_comm_count_cores(c);
}

/* "0-3,8" into text[size]; ends in "..." when it does not fit. */
static void print_cores(const cores *m, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < MASK_BITS; i++) {
        if (!has(m, i))
            continue;
        int last = i;
        while (last + 1 < MASK_BITS && has(m, last + 1))
            last++;
        if (length + 16 > size) {
            snprintf(text + length, size - length, "...");
            return;
        }
        length +=
            (size_t)snprintf(text + length, size - length,
                             last > i ? "%s%d-%d" : "%s%d", length ? "," : "", i, last);
        i = last;
    }
}

void nami_comm_places(nami_comm *c, nami_comm_place *all)
{
    cores own = own_cores(c), sum = node_cores(c);
    nami_comm_place place;
    memset(&place, 0, sizeof place);
    place.core_count = count(&own);
    place.threads = c->threads;
    place.node_cores = usable(&sum);
    place.node_ranks = c->node_size;
    c->crowded = sum.threads > place.node_cores;
    if (gethostname(place.host, sizeof place.host - 1) != 0)
        snprintf(place.host, sizeof place.host, "unknown");
    print_cores(&own, place.cores, sizeof place.cores);
    nami_comm_gather(c, &place, sizeof place, all);
}

static void warn_node(const nami_comm_place *place, int size, int first, nami_text *out)
{
    int threads = 0;
    for (int r = 0; r < size; r++) {
        if (strcmp(place[r].host, place[first].host) != 0)
            continue;
        if (r < first)
            return; /* told already */
        threads += place[r].threads;
    }
    if (threads > place[first].node_cores)
        nami_text_add(out,
                      "%s: %d ranks with %d threads together share %d core%s, so they "
                      "take turns: use fewer ranks or "
                      "threads, or bind ranks to different cores\n",
                      place[first].host, place[first].node_ranks, threads,
                      place[first].node_cores, nami_plural(place[first].node_cores));
}

void nami_comm_place_warnings(const nami_comm_place *place, int size, nami_text *out)
{
    for (int r = 0; r < size; r++) {
        warn_node(place, size, r, out);
        if (place[r].threads > place[r].core_count &&
            place[r].node_cores > place[r].core_count)
            nami_text_add(out,
                          "%s: rank %d has %d threads but is bound to %d core%s (%s)\n",
                          place[r].host, r, place[r].threads, place[r].core_count,
                          nami_plural(place[r].core_count), place[r].cores);
    }
}
