/* SPDX-License-Identifier: MIT */
/* ranks.c - which rank is which, which samples it works on, and whom it shares them with. */
#include "exec/layout.h"

static bool by_sample(const nami_layout *l)
{
    return l->recipe.split == NAMI_SPLIT_SAMPLE;
}

int nami_layout_replicas(const nami_layout *l, int position)
{
    return by_sample(l) ? l->train.place.replicas[position] : l->replicas;
}

int nami_layout_replicas_most(const nami_layout *l)
{
    int most = 1;
    for (int p = 0; p < l->train.place.positions; p++) {
        int r = nami_layout_replicas(l, p);
        most = r > most ? r : most;
    }
    return most;
}

int nami_layout_rank(const nami_layout *l, int position, int replica)
{
    int first = 0;
    for (int p = 0; p < position; p++)
        first += nami_layout_replicas(l, p);
    return first + replica;
}

int nami_layout_ranks(const nami_layout *l)
{
    return nami_layout_rank(l, l->train.place.positions, 0);
}

int nami_layout_position(const nami_layout *l, int rank)
{
    int p = 0;
    while (rank >= nami_layout_rank(l, p + 1, 0))
        p++;
    return p;
}

int nami_layout_replica(const nami_layout *l, int rank)
{
    return rank - nami_layout_rank(l, nami_layout_position(l, rank), 0);
}

/* First sample of replica r of R, which takes floor((B + r)/R) samples in the order of ranks. */
static int64_t interval(int64_t B, int R, int r)
{
    int64_t first = 0;
    for (int i = 0; i < r; i++)
        first += (B + i) / R;
    return first;
}

nami_layout_samples nami_layout_samples_of(const nami_layout *l, int position,
                                           int replica)
{
    int units = (int)(l->batch / l->micro / l->replicas), R;
    if (!by_sample(l))
        return (nami_layout_samples){.micro = l->micro,
                                     .first = l->micro * units * replica,
                                     .stride = l->micro,
                                     .units = units};
    R = nami_layout_replicas(l, position);
    return (nami_layout_samples){.micro = (l->micro + replica) / R,
                                 .first = interval(l->micro, R, replica),
                                 .stride = l->micro,
                                 .units = units};
}

int nami_layout_parts(const nami_layout *l, int position, int replica, int peer,
                      nami_layout_part *part)
{
    int parts = 0;
    const nami_layout_samples own = nami_layout_samples_of(l, position, replica);
    for (int r = 0; r < nami_layout_replicas(l, peer); r++) {
        const nami_layout_samples other = nami_layout_samples_of(l, peer, r);
        int64_t first = own.first > other.first ? own.first : other.first;
        int64_t end = own.first + own.micro < other.first + other.micro
                          ? own.first + own.micro
                          : other.first + other.micro;
        if (by_sample(l) ? first < end : r == replica)
            part[parts++] = (nami_layout_part){.rank = nami_layout_rank(l, peer, r),
                                               .first = first - own.first,
                                               .count = end - first};
    }
    return parts;
}
