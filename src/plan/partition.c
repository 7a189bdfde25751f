/* SPDX-License-Identifier: MIT */
/* partition.c - a partition as the sections of a deck that ask for it. */
#include "plan/partition.h"

#include "base/memory.h"

void nami_partition_free(nami_partition *p)
{
    nami_free(p->part);
    *p = (nami_partition){0};
}

int nami_partition_versions(nami_weights policy, int stages, int s)
{
    int behind = stages - s; /* mini-batches between a forward and its update */
    switch (policy) {
    case NAMI_WEIGHTS_STASH:
        return behind;
    case NAMI_WEIGHTS_VERTICAL:
        return stages;
    case NAMI_WEIGHTS_2BW:
        return stages > 1 ? 2 : 1;
    case NAMI_WEIGHTS_PREDICT:
        return behind > 1 ? 2 : 1;
    case NAMI_WEIGHTS_GROUPED:
        return stages > 1 && s < stages / 2 ? 2 : 1;
    case NAMI_WEIGHTS_FLUSH:
    case NAMI_WEIGHTS_NEWEST:
        break;
    }
    return 1;
}

/* "key = 4-3-1" of a number of each stage. */
static void add_list(const nami_partition *p, const char *key, char between,
                     int (*number)(const nami_partition *p, int s), nami_text *out)
{
    nami_text_add(out, "%s = ", key);
    for (int s = 0; s < p->parts; s++) {
        if (s > 0)
            nami_text_add(out, "%c", between);
        nami_text_add(out, "%d", number(p, s));
    }
    nami_text_add(out, "\n");
}

static int cut_of(const nami_partition *p, int s)
{
    return p->part[s].first;
}

static int replicas_of(const nami_partition *p, int s)
{
    return p->part[s].replicas;
}

static int depth_of(const nami_partition *p, int s)
{
    return p->parts - 1 - s;
}

static int recompute_of(const nami_partition *p, int s)
{
    return p->part[s].recompute;
}

void nami_partition_fragment(const nami_partition *p, nami_weights policy,
                             nami_text *out)
{
    bool recompute = false;
    nami_text_add(out, "[pipeline]\nschedule = ashpipe\n");
    if (policy == NAMI_WEIGHTS_2BW || policy == NAMI_WEIGHTS_NEWEST)
        nami_text_add(out, "weights = %s\n",
                      policy == NAMI_WEIGHTS_2BW ? "2bw" : "newest");
    add_list(p, "cuts", ' ', cut_of, out);
    add_list(p, "stage_replicas", '-', replicas_of, out);
    add_list(p, "depth", '-', depth_of, out);
    for (int s = 0; s < p->parts; s++)
        recompute = recompute || p->part[s].recompute;
    if (recompute)
        add_list(p, "stage_recompute", '-', recompute_of, out);
    nami_text_add(out, "\n[plan]\npredicted = %.6g\n", p->seconds);
}
