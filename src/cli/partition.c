/* SPDX-License-Identifier: MIT */
/* partition.c - `nami plan` with a profile: a table of stages, memory by weight policy, and the deck's sections. */
#include "cli/partition.h"

#include <math.h>

#include "base/log.h"
#include "plan/uneven.h"

/* The policies of the table of memory. */
static const struct policy {
    nami_weights policy;
    const char *name;
} policies[] = {
    {NAMI_WEIGHTS_FLUSH, "flush"},
    {NAMI_WEIGHTS_NEWEST, "newest"},
    {NAMI_WEIGHTS_2BW, "2bw"},
    {NAMI_WEIGHTS_STASH, "stash"},
};
enum { POLICIES = sizeof policies / sizeof *policies };

static double parameters_of(const nami_chain *c, const nami_part *p)
{
    double sum = 0;
    for (int i = p->first; i < p->last; i++)
        sum += c->block[i].parameter;
    return sum;
}

static void print_stages(const nami_chain *c, const nami_partition *p)
{
    nami_print("%5s %-14s %-24s %6s %9s %10s %10s %10s %10s %8s %10s\n", "stage",
               "blocks", "", "ranks", "recompute", "compute ms", "sends ms", "sums ms",
               "step ms", "versions", "MiB a rank");
    for (int s = 0; s < p->parts; s++) {
        const nami_part *a = &p->part[s];
        char blocks[32], names[64];
        snprintf(blocks, sizeof blocks, "%d-%d", a->first, a->last - 1);
        snprintf(names, sizeof names, "%.11s..%.11s", c->block[a->first].name,
                 c->block[a->last - 1].name);
        nami_print("%5d %-14s %-24s %6d %9s %10.4g %10.4g %10.4g %10.4g %8d %10.1f\n",
                   s, blocks, names, a->replicas, a->recompute ? "yes" : "no",
                   a->compute * 1e3, a->transfer * 1e3, a->reduce * 1e3,
                   a->seconds * 1e3, a->versions, a->bytes / 1048576.0);
    }
}

/* Weights that a rank of each stage holds under each policy. */
static void print_versions(const nami_chain *c, const nami_partition *p)
{
    nami_print(
        "\nMiB of weights a rank holds in the steady state, by policy (versions)\n"
        "%5s",
        "stage");
    for (int k = 0; k < POLICIES; k++)
        nami_print(" %16s", policies[k].name);
    nami_print("\n");
    for (int s = 0; s < p->parts; s++) {
        nami_print("%5d", s);
        for (int k = 0; k < POLICIES; k++) {
            int versions = nami_partition_versions(policies[k].policy, p->parts, s);
            nami_print(" %10.1f (%3d)",
                       versions * parameters_of(c, &p->part[s]) / 1048576.0, versions);
        }
        nami_print("\n");
    }
}

static double memory_of(const nami_settings *s)
{
    if (s->plan.memory > 0)
        return s->plan.memory;
    return s->run.memory > 0 ? s->run.memory * 1073741824.0 : INFINITY;
}

static void print_partition(const nami_settings *s, const nami_chain *c, int ranks,
                            const nami_partition *p)
{
    char limit[32];
    double memory = memory_of(s);
    nami_text fragment = {0};
    nami_print("profile   %s: %d blocks\n", s->plan.profile, c->blocks);
    nami_print("limit     %s a rank\n",
               isinf(memory) ? "none, any memory" : nami_human_bytes(memory, limit));
    nami_print("step      %.6g s predicted for a mini-batch, steady state: the slowest "
               "stage\n",
               p->seconds);
    if (p->bound > 0 && p->seconds > p->bound * (1 + 1e-6))
        nami_print(
            "bound     %.6g s: the plan is at most %.3g %% slower than the best\n",
            p->bound, 100 * (p->seconds / p->bound - 1));
    nami_print("ranks     %d in %d stage%s:", p->ranks, p->parts,
               p->parts > 1 ? "s" : "");
    for (int i = 0; i < p->parts; i++)
        nami_print("%s%d", i > 0 ? "-" : " ", p->part[i].replicas);
    if (p->ranks < ranks)
        nami_print("; %d more would make no stage faster", ranks - p->ranks);
    nami_print("\n\n");
    print_stages(c, p);
    print_versions(c, p);
    nami_partition_fragment(p, nami_plan_weights(&s->plan), &fragment);
    nami_print("\nAs sections of the deck, in place of those there:\n\n%s",
               nami_text_get(&fragment));
    nami_text_free(&fragment);
}

/* A link of a level: as measured, but with the bandwidth that the deck says. */
static nami_chain_link link_of(const nami_plan_level *l,
                               const nami_chain_link *measured)
{
    nami_chain_link own = *measured;
    if (l->bandwidth < own.rate || l->bandwidth > own.rate)
        own.rate = own.reduce = l->bandwidth;
    return own;
}

static nami_status seek_own(const nami_settings *s, const nami_chain *c,
                            const nami_ashpipe_request *levels, nami_partition *out)
{
    const nami_plan_level *l = levels->level;
    nami_uneven_request r = {.chain = c,
                             .ranks = l[0].ranks,
                             .inside = link_of(&l[0], &c->inside),
                             .memory = levels->memory,
                             .policy = nami_plan_weights(&s->plan),
                             .states = nami_optim_states(&s->optim),
                             .stages = (int)s->plan.stages};
    if (levels->levels > 2)
        return nami_fail(NAMI_EPLAN,
                         "method nami knows ranks of a node and nodes, but plan.levels "
                         "has %d levels",
                         levels->levels);
    if (levels->levels == 2) {
        r.ranks *= l[1].ranks;
        r.ranks_per_node = l[0].ranks;
        r.across = link_of(&l[1], &c->across);
    }
    return nami_uneven(&r, out);
}

/* *ranks: those there are. */
static nami_status seek(const nami_settings *s, int *ranks, const nami_chain *c,
                        nami_partition *out)
{
    nami_ashpipe_request r = {.chain = c, .memory = memory_of(s)};
    NAMI_TRY(nami_plan_levels(&s->plan, c, *ranks, r.level, &r.levels));
    *ranks = 1;
    for (int l = 0; l < r.levels; l++)
        *ranks *= r.level[l].ranks;
    return s->plan.method == NAMI_PLAN_ASHPIPE ? nami_ashpipe(&r, out)
                                               : seek_own(s, c, &r, out);
}

nami_status nami_cli_partition(const nami_settings *s, int ranks)
{
    nami_chain chain = {0};
    nami_partition found = {0};
    if (s->plan.profile[0] == '\0')
        return nami_fail(NAMI_EINPUT, "plan.method needs plan.profile, a file that "
                                      "nami profile writes");
    nami_status status = nami_chain_read(s->plan.profile, &chain);
    if (status == NAMI_OK) {
        nami_chain_scale(&chain, s->train.batch);
        status = seek(s, &ranks, &chain, &found);
    }
    if (status == NAMI_OK)
        print_partition(s, &chain, ranks, &found);
    nami_partition_free(&found);
    nami_chain_free(&chain);
    return status;
}
