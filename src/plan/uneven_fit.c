/* SPDX-License-Identifier: MIT */
/* uneven_fit.c - a dynamic programme says whether a time can be kept.
 *
 * Within a given time, fewest(t, a) is the least number of ranks on which blocks a.. can be put as t stages:
 *     fewest(t, a) = min over b of r(a, b, t-1) + fewest(t-1, b)
 * with r the least replicas of a stage of blocks a..b-1 that keep the time, and the memory with t-1 stages behind it. More
 * stages behind never need fewer bytes, so an entry that a smaller t beats is not gone on with. Blocks^2 x stages for each
 * of some 40 times at most, whatever the number of ranks.
 *
 * Where the class of links counts, it depends on where the ranks of a stage and its neighbours lie in their nodes: on the
 * ranks behind it modulo the ranks of a node, when the same of all ranks, the anchor, is given. Small problems keep
 * fewest(t, a) for each remainder and for how the first of the t stages lies, and try each anchor; larger ones only the
 * anchor of all ranks, or not the remainders.
 */
#include "plan/uneven_fit.h"

#include <math.h>

#include "base/memory.h"

/* How the first stage of a choice lies. */
typedef enum lie {
    INSIDE, /* in one node, with all of the stage before */
    WITHIN, /* in one node, where the stage before is not or not whole */
    APART,  /* on several nodes */
    LIES
} lie;

/* How a span goes on. */
typedef struct nami_uneven_choice {
    int ranks; /* of all that follows, this stage included; more than there are: impossible */
    int last, replicas, next; /* next: slot of what follows this stage */
    bool again;
} choice;

static int64_t index_of(const nami_uneven_fit *s, int a, int slot)
{
    return (int64_t)a * s->slots + slot;
}

static choice *at(const nami_uneven_fit *s, int t, int a, int slot)
{
    return &s->at[index_of(s, t * (s->m.blocks + 1) + a, slot)];
}

/* How large a problem is where the class of links counts: steps for one time with one anchor and all remainders. */
static double steps_of(const nami_uneven_model *m)
{
    double node = m->r->ranks_per_node, n = m->blocks;
    return n * n * m->r->stages * node * node;
}

/* Whether choices are kept for each remainder; and whether for each anchor, too: then the best of all plans is found. */
static bool keeps_remainders(const nami_uneven_model *m)
{
    return !m->alike && steps_of(m) <= 2e8;
}

bool nami_uneven_fit_exact(const nami_uneven_model *m)
{
    return !m->alike && steps_of(m) * m->r->ranks_per_node <= 1e6;
}

void nami_uneven_fit_open(nami_uneven_fit *s, const nami_uneven_request *r)
{
    size_t n = (size_t)r->chain->blocks, stages = (size_t)r->stages;
    nami_uneven_model_make(r, &s->m);
    s->none = r->ranks + 1;
    s->unit = s->node = s->kept = s->slots = 1;
    size_t most = LIES * (keeps_remainders(&s->m) ? (size_t)r->ranks_per_node : 1);
    for (int i = 0; i < 2; i++) {
        s->least[i] = nami_calloc(NAMI_MEM_OTHER, n * (n + 1), sizeof *s->least[i]);
        s->fresh[i] = nami_calloc(NAMI_MEM_OTHER, (n + 1) * most, sizeof(bool));
    }
    s->at = nami_calloc(NAMI_MEM_OTHER, (stages + 1) * (n + 1) * most, sizeof *s->at);
    s->reach = nami_calloc(NAMI_MEM_OTHER, n, sizeof *s->reach);
    s->best = nami_calloc(NAMI_MEM_OTHER, (n + 1) * most, sizeof *s->best);
    s->found = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *s->found);
}

void nami_uneven_fit_close(nami_uneven_fit *s)
{
    for (int i = 0; i < 2; i++) {
        nami_free(s->least[i]);
        nami_free(s->fresh[i]);
    }
    nami_free(s->at);
    nami_free(s->reach);
    nami_free(s->best);
    nami_free(s->found);
    nami_uneven_model_free(&s->m);
}

void nami_uneven_fit_nodes(nami_uneven_fit *s)
{
    s->unit = s->m.r->ranks_per_node;
}

void nami_uneven_fit_places(nami_uneven_fit *s)
{
    s->unit = 1;
    s->node = s->m.r->ranks_per_node;
    s->kept = keeps_remainders(&s->m) ? s->node : 1;
    s->slots = LIES * s->kept;
}

/* Ranks that blocks a..b-1 may take at most: all others need some. */
static int most_of(const nami_uneven_fit *s, int a, int b)
{
    double before = nami_uneven_work(&s->m, 0, a, s->limit);
    double behind = nami_uneven_work(&s->m, b, s->m.blocks, s->limit);
    return (int)(s->m.r->ranks - before - behind);
}

/* The least replicas from `low` on by time alone. */
static int least_of(const nami_uneven_fit *s, nami_uneven_stage *t, int low)
{
    int high = most_of(s, t->first, t->last), unit = s->unit;
    if (unit == 1)
        return nami_uneven_least(&s->m, t, low, high, s->limit);
    double work = nami_uneven_work(&s->m, t->first, t->last, s->limit);
    int start = (int)fmin(fmax(low, work), high) / unit * unit;
    for (t->replicas = start > 0 ? start : unit; t->replicas <= high;
         t->replicas += unit) {
        t->across[NAMI_UNEVEN_IN] = t->across[NAMI_UNEVEN_OUT] = true;
        t->across[NAMI_UNEVEN_SUM] = t->replicas > unit;
        if (t->replicas >= low && nami_uneven_within(&s->m, t, s->limit))
            return t->replicas;
    }
    return s->none;
}

/* Whether blocks a..b-1 need several ranks, whose sum takes too long: then longer spans do, too. */
static bool too_long(const nami_uneven_fit *s, int a, int b)
{
    const double *parameter = s->m.sums.parameter;
    return nami_uneven_work(&s->m, a, b, s->limit) > 1 &&
           (parameter[b] - parameter[a]) / s->m.best.reduce > s->limit;
}

/* The least replicas of every span by time alone, as far as there are any. */
static void fill_least(nami_uneven_fit *s)
{
    int n = s->m.blocks;
    for (int a = 0; a < n; a++) {
        s->reach[a] = a;
        for (int b = a + 1; b <= n && !too_long(s, a, b); b++)
            for (int again = 0; again < (isinf(s->m.r->memory) ? 1 : 2); again++) {
                nami_uneven_stage t = {.first = a, .last = b, .again = again};
                int least = least_of(s, &t, 1);
                s->least[again][(int64_t)a * (n + 1) + b] = least;
                s->reach[a] = least < s->none ? b : s->reach[a];
            }
    }
}

/* The least replicas that keep time and memory. */
static int replicas_of(const nami_uneven_fit *s, const nami_uneven_stage *t, int behind)
{
    int by_time = s->least[t->again][(int64_t)t->first * (s->m.blocks + 1) + t->last];
    if (by_time == s->none || isinf(s->m.r->memory))
        return by_time;
    nami_uneven_stage own = *t;
    int by_memory = nami_uneven_fitting(&s->m, t, behind);
    return by_memory <= by_time ? by_time : least_of(s, &own, by_memory);
}

static void offer(const nami_uneven_fit *s, int t, const nami_uneven_stage *stage,
                  int slot, choice with)
{
    choice *c = at(s, t, stage->first, slot);
    with.last = stage->last;
    with.replicas = stage->replicas;
    with.again = stage->again;
    if (with.ranks < c->ranks)
        *c = with;
}

/* Offer the stage where its ranks lie now, if it keeps the time; returns whether it does in any way. `next` lies behind it. */
static bool offer_real(nami_uneven_fit *s, int t, nami_uneven_stage *c, choice with,
                       lie next)
{
    int node = s->node, rest = with.ranks % node;
    int rank = (s->anchor - rest + node) % node; /* its first, in its node */
    bool within = rank + c->replicas <= node, kept = false;
    bool joins = within && (rank + c->replicas) % node != 0;
    if (next != APART && joins != (next == INSIDE))
        return false;
    c->across[NAMI_UNEVEN_SUM] = !within;
    c->across[NAMI_UNEVEN_OUT] = next != INSIDE;
    for (int across = within && rank > 0 ? 0 : 1; across < 2; across++) {
        lie own = !across ? INSIDE : within ? WITHIN : APART;
        c->across[NAMI_UNEVEN_IN] = across;
        if (!nami_uneven_within(&s->m, c, s->limit))
            continue;
        offer(s, t, c, rest % s->kept * LIES + (int)own, with);
        kept = true;
    }
    return kept;
}

/* Offer stage `c` as the t-th, before what choice `slot` has behind it, wherever its own ranks may end. */
static void offer_all(nami_uneven_fit *s, int t, nami_uneven_stage *c, int slot)
{
    int after = at(s, t - 1, c->last, slot)->ranks;
    int most = s->m.r->ranks - after, first = 0;
    c->replicas = replicas_of(s, c, t - 1);
    if (s->kept == 1 && most > c->replicas + 2 * s->node)
        most = c->replicas + 2 * s->node;
    if (s->slots == 1) {
        offer(s, t, c, 0, (choice){.ranks = c->replicas + after});
        return;
    }
    s->m.view = NAMI_LINKS_REAL;
    for (; c->replicas <= most; c->replicas++) {
        choice with = {.ranks = c->replicas + after, .next = slot};
        if (first > 0 && c->replicas - first > 2 * s->kept)
            break; /* every remainder had its turn */
        if (offer_real(s, t, c, with, (lie)(slot % LIES)) && first == 0)
            first = c->replicas;
    }
    s->m.view = NAMI_LINKS_BEST;
}

/* Blocks a.. as t stages. */
static void go_on(nami_uneven_fit *s, int t, int a)
{
    bool may_again = !isinf(s->m.r->memory) && t > 1;
    for (int k = 0; k < s->slots; k++)
        at(s, t, a, k)->ranks = s->none;
    for (int b = a + 1; b <= s->reach[a]; b++)
        for (int k = 0; k < s->slots; k++) {
            int after = at(s, t - 1, b, k)->ranks;
            if (!s->fresh[(t - 1) % 2][index_of(s, b, k)] ||
                (s->slots == 1 && after >= at(s, t, a, 0)->ranks))
                continue;
            for (int again = 0; again <= may_again; again++) {
                nami_uneven_stage c = {.first = a, .last = b, .again = again};
                offer_all(s, t, &c, k);
            }
        }
}

/* Note which entries of a layer are better than all before; false: none is. */
static bool compare(nami_uneven_fit *s, int t)
{
    bool any = false;
    for (int a = 0; a <= s->m.blocks; a++)
        for (int k = 0; k < s->slots; k++) {
            int64_t i = index_of(s, a, k);
            int ranks = at(s, t, a, k)->ranks;
            bool fresh = ranks < s->best[i] && ranks <= most_of(s, a, s->m.blocks);
            s->fresh[t % 2][i] = fresh;
            s->best[i] = fresh ? ranks : s->best[i];
            any = any || fresh;
        }
    return any;
}

/* The slot of a whole plan of t stages with the search's anchor; -1: there is none. */
static int whole(const nami_uneven_fit *s, int t)
{
    for (int k = 0; k < s->slots; k++) {
        int ranks = at(s, t, 0, k)->ranks;
        if (ranks < s->none && ranks % s->node == s->anchor)
            return k;
    }
    return -1;
}

/* Read the stages of `t` layers back from `slot`. */
static void trace(nami_uneven_fit *s, int t, int slot)
{
    s->parts = t;
    for (int a = 0, i = 0; t > 0; t--, i++) {
        const choice *c = at(s, t, a, slot);
        s->found[i] = (nami_part){.first = a,
                                  .last = c->last,
                                  .replicas = c->replicas,
                                  .recompute = c->again};
        a = c->last;
        slot = c->next;
    }
}

/* Whether some plan keeps `limit` with the search's anchor; then it is in s->found, of the fewest stages. */
static bool feasible_anchored(nami_uneven_fit *s)
{
    int n = s->m.blocks, start = s->slots > 1 ? APART : 0;
    for (int64_t i = 0; i < index_of(s, n + 1, 0); i++)
        s->best[i] = s->at[i].ranks = s->none;
    at(s, 0, n, start)->ranks = 0;
    bool any = compare(s, 0);
    for (int t = 1; t <= s->m.r->stages && any; t++) {
        for (int a = 0; a < n; a++)
            go_on(s, t, a);
        for (int k = 0; k < s->slots; k++)
            at(s, t, n, k)->ranks = s->none;
        any = compare(s, t);
        if (whole(s, t) >= 0) {
            trace(s, t, whole(s, t));
            return true;
        }
    }
    return false;
}

bool nami_uneven_fit_within(nami_uneven_fit *s, double limit)
{
    s->limit = limit;
    fill_least(s);
    s->anchor = s->m.r->ranks % s->node; /* all ranks are used */
    if (s->kept == 1 || !nami_uneven_fit_exact(&s->m))
        return feasible_anchored(s);
    for (s->anchor = 0; s->anchor < s->node; s->anchor++)
        if (feasible_anchored(s))
            return true;
    return false;
}
