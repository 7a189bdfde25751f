/* SPDX-License-Identifier: MIT */
/* uneven.c - bisect the time of the slowest stage; a dynamic programme says whether a time can be kept.
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
 * anchor of all ranks, or not the remainders. Beside that the programme runs as if all links were of the better class
 * (the bound), of the worse, and with stages of whole nodes; the best plan counts, improved by single steps. Above 512
 * blocks only the bound and whole nodes are sought.
 */
#include "plan/uneven.h"

#include <math.h>

#include "base/memory.h"
#include "plan/uneven_stage.h"

/* How the first stage of a choice lies. */
typedef enum lie {
    INSIDE, /* in one node, with all of the stage before */
    WITHIN, /* in one node, where the stage before is not or not whole */
    APART,  /* on several nodes */
    LIES
} lie;

/* How a span goes on. */
typedef struct choice {
    int ranks; /* of all that follows, this stage included; more than there are: impossible */
    int last, replicas, next; /* next: slot of what follows this stage */
    bool again;
} choice;

typedef struct search {
    nami_uneven_model m;
    double limit;
    int none;   /* ranks + 1 */
    int unit;   /* stages have multiples of so many ranks: 1, or whole nodes */
    int node;   /* ranks of a node; 1: where ranks lie does not count */
    int kept;   /* remainders that choices are kept for: node, or 1 */
    int slots;  /* choices of t stages from a block: LIES * kept, or 1 */
    int anchor; /* ranks of the plan modulo those of a node */
    int *least
        [2]; /* [blocks][blocks+1] replicas by time, without and with recomputation */
    choice *at;     /* [stages + 1][blocks + 1][slots] */
    int *reach;     /* [blocks] end of the longest span from a block */
    int *best;      /* [blocks + 1][slots] least ranks of all layers so far */
    bool *fresh[2]; /* [blocks + 1][slots] whether a layer was better than all before */
    nami_part *found; /* [stages] of the last feasible time */
    int parts;
} search;

static int64_t index_of(const search *s, int a, int slot)
{
    return (int64_t)a * s->slots + slot;
}

static choice *at(const search *s, int t, int a, int slot)
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

static bool tries_anchors(const nami_uneven_model *m)
{
    return !m->alike && steps_of(m) * m->r->ranks_per_node <= 1e6;
}

static void open_search(search *s, const nami_uneven_request *r)
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

static void close_search(search *s)
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

/* Ranks that blocks a..b-1 may take at most: all others need some. */
static int most_of(const search *s, int a, int b)
{
    double before = nami_uneven_work(&s->m, 0, a, s->limit);
    double behind = nami_uneven_work(&s->m, b, s->m.blocks, s->limit);
    return (int)(s->m.r->ranks - before - behind);
}

/* The least replicas from `low` on by time alone. */
static int least_of(const search *s, nami_uneven_stage *t, int low)
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
static bool too_long(const search *s, int a, int b)
{
    const double *parameter = s->m.sums.parameter;
    return nami_uneven_work(&s->m, a, b, s->limit) > 1 &&
           (parameter[b] - parameter[a]) / s->m.best.reduce > s->limit;
}

/* The least replicas of every span by time alone, as far as there are any. */
static void fill_least(search *s)
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
static int replicas_of(const search *s, const nami_uneven_stage *t, int behind)
{
    int by_time = s->least[t->again][(int64_t)t->first * (s->m.blocks + 1) + t->last];
    if (by_time == s->none || isinf(s->m.r->memory))
        return by_time;
    nami_uneven_stage own = *t;
    int by_memory = nami_uneven_fitting(&s->m, t, behind);
    return by_memory <= by_time ? by_time : least_of(s, &own, by_memory);
}

static void offer(const search *s, int t, const nami_uneven_stage *stage, int slot,
                  choice with)
{
    choice *c = at(s, t, stage->first, slot);
    with.last = stage->last;
    with.replicas = stage->replicas;
    with.again = stage->again;
    if (with.ranks < c->ranks)
        *c = with;
}

/* Offer the stage where its ranks lie now, if it keeps the time; returns whether it does in any way. `next` lies behind it. */
static bool offer_real(search *s, int t, nami_uneven_stage *c, choice with, lie next)
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
static void offer_all(search *s, int t, nami_uneven_stage *c, int slot)
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
static void go_on(search *s, int t, int a)
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
static bool compare(search *s, int t)
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
static int whole(const search *s, int t)
{
    for (int k = 0; k < s->slots; k++) {
        int ranks = at(s, t, 0, k)->ranks;
        if (ranks < s->none && ranks % s->node == s->anchor)
            return k;
    }
    return -1;
}

/* Read the stages of `t` layers back from `slot`. */
static void trace(search *s, int t, int slot)
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
static bool feasible_anchored(search *s)
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

static bool feasible(search *s, double limit)
{
    s->limit = limit;
    fill_least(s);
    s->anchor = s->m.r->ranks % s->node; /* all ranks are used */
    if (s->kept == 1 || !tries_anchors(&s->m))
        return feasible_anchored(s);
    for (s->anchor = 0; s->anchor < s->node; s->anchor++)
        if (feasible_anchored(s))
            return true;
    return false;
}

/* Stage i of a plan, whose first rank is `rank`. */
static nami_uneven_stage stage_of(const nami_uneven_model *m, const nami_part *part,
                                  int parts, int i, int rank)
{
    const nami_part *p = &part[i];
    nami_uneven_stage t = {p->first, p->last, p->replicas, p->recompute, {false}};
    int node = m->r->ranks_per_node;
    if (m->alike)
        return t;
    int low = i > 0 ? rank - part[i - 1].replicas : rank;
    int end = rank + p->replicas;
    int high = i + 1 < parts ? end + part[i + 1].replicas : end;
    t.across[NAMI_UNEVEN_IN] = low / node != (end - 1) / node;
    t.across[NAMI_UNEVEN_OUT] = rank / node != (high - 1) / node;
    t.across[NAMI_UNEVEN_SUM] = rank / node != (end - 1) / node;
    return t;
}

/* Seconds of the slowest stage; fills the parts. */
static double evaluate(const nami_uneven_model *m, nami_part *part, int parts)
{
    double slowest = 0;
    for (int i = 0, rank = 0; i < parts; rank += part[i++].replicas) {
        nami_uneven_stage t = stage_of(m, part, parts, i, rank);
        slowest = fmax(slowest, nami_uneven_seconds(m, &t, &part[i]));
    }
    return slowest;
}

/* Keep s->found as *out when it is better with real links. */
static void keep(search *s, nami_partition *out)
{
    nami_link_view view = s->m.view;
    s->m.view = NAMI_LINKS_REAL;
    double seconds = evaluate(&s->m, s->found, s->parts);
    s->m.view = view;
    if (out->parts > 0 && seconds >= out->seconds)
        return;
    out->parts = s->parts;
    out->seconds = seconds;
    for (int i = 0; i < s->parts; i++)
        out->part[i] = s->found[i];
}

/* The found plan's seconds in the view of the search. */
static double found_seconds(search *s)
{
    nami_link_view view = s->m.view;
    if (s->slots > 1)
        s->m.view = NAMI_LINKS_REAL;
    double seconds = evaluate(&s->m, s->found, s->parts);
    s->m.view = view;
    return seconds;
}

/* The least time of the view, from `low` on, below which nothing is; *bound: the same for the result. False: nothing
 * fits. */
static bool bisect(search *s, double low, nami_partition *out, double *bound)
{
    bool small = s->m.blocks <= 256, bounds = s->slots == 1 && s->unit == 1;
    double exact = small ? 1e-12 : bounds && s->m.view == NAMI_LINKS_BEST ? 1e-4 : 1e-3;
    double high = s->slots > 1 ? out->seconds : INFINITY; /* slots: links are real */
    if (s->slots == 1) {
        if (!feasible(s, 1e300))
            return false;
        high = found_seconds(s);
        keep(s, out);
    }
    while (high - low > exact * high) {
        double middle = (low + high) / 2;
        if (middle <= low || middle >= high)
            break;
        if (feasible(s, middle)) {
            high = found_seconds(s);
            NAMI_CHECK(high <= middle * (1 + 1e-9));
            high = fmin(high, middle); /* despite rounding */
            keep(s, out);
        } else {
            low = middle;
        }
    }
    *bound = low;
    return true;
}

/* With links of one class the optimum; else the best that the views find, or the best of all if that is quick. */
static bool solve(search *s, nami_partition *out)
{
    double low = nami_uneven_work(&s->m, 0, s->m.blocks, s->m.r->ranks);
    double unused;
    s->m.view = NAMI_LINKS_BEST;
    if (!bisect(s, low, out, &out->bound))
        return false;
    if (s->m.alike)
        return true;
    bool quick = s->m.blocks <= 512; /* else whole nodes alone */
    s->m.view = NAMI_LINKS_WORST;
    if (quick)
        (void)bisect(s, out->bound, out, &unused);
    s->m.view = NAMI_LINKS_REAL;
    s->unit = s->m.r->ranks_per_node;
    if (s->unit > 1)
        (void)bisect(s, out->bound, out, &unused);
    s->m.view = NAMI_LINKS_BEST;
    s->unit = 1;
    s->node = s->m.r->ranks_per_node;
    s->kept = keeps_remainders(&s->m) ? s->node : 1;
    s->slots = LIES * s->kept;
    if (quick)
        (void)bisect(s, out->bound, out, tries_anchors(&s->m) ? &out->bound : &unused);
    return true;
}

/* --- what is left: real links, idle ranks --- */

/* Choose recomputation of every stage by memory; false when one does not fit. */
static bool settle(const nami_uneven_model *m, nami_part *part, int parts)
{
    for (int i = 0; i < parts; i++) {
        nami_uneven_stage t = stage_of(m, part, parts, i, 0);
        for (t.again = false;; t.again = true) {
            part[i].bytes = nami_uneven_bytes(m, &t, parts - 1 - i);
            if (part[i].bytes <= m->r->memory)
                break;
            if (t.again)
                return false;
        }
        part[i].recompute = t.again;
    }
    return true;
}

/* Take the trial when it fits and is faster; with `even`, when it is not slower and the stages together are faster. */
static bool take(const nami_uneven_model *m, nami_part *trial, bool even,
                 nami_partition *out)
{
    double sum = 0, before = 0;
    if (!settle(m, trial, out->parts))
        return false;
    double seconds = evaluate(m, trial, out->parts);
    for (int i = 0; i < out->parts; i++) {
        sum += trial[i].seconds;
        before += out->part[i].seconds;
    }
    bool good = even ? seconds <= out->seconds && sum < before * (1 - 1e-9)
                     : seconds < out->seconds * (1 - 1e-9);
    if (!good)
        return false;
    out->seconds = seconds;
    for (int i = 0; i < out->parts; i++)
        out->part[i] = trial[i];
    return true;
}

static void copy(nami_part *to, const nami_partition *from)
{
    for (int i = 0; i < from->parts; i++)
        to[i] = from->part[i];
}

/* Move one block over a cut or one replica from stage to stage, wherever that makes the slowest stage faster. */
static bool improve(const nami_uneven_model *m, nami_part *trial, nami_partition *out)
{
    bool better = false;
    for (int i = 0; i + 1 < out->parts; i++)
        for (int step = -1; step <= 1; step += 2) {
            copy(trial, out);
            trial[i].last = trial[i + 1].first += step;
            if (trial[i].last > trial[i].first && trial[i + 1].last > trial[i].last)
                better = take(m, trial, false, out) || better;
        }
    for (int i = 0; i < out->parts; i++)
        for (int j = 0; j < out->parts; j++) {
            copy(trial, out);
            if (i == j || --trial[i].replicas == 0)
                continue;
            trial[j].replicas++;
            better = take(m, trial, false, out) || better;
        }
    return better;
}

/* Give idle ranks to stages that get faster by it. */
static void spread(const nami_uneven_model *m, nami_part *trial, nami_partition *out)
{
    bool any = true;
    while (any && out->ranks < m->r->ranks) {
        any = false;
        for (int i = 0; i < out->parts && out->ranks < m->r->ranks; i++) {
            copy(trial, out);
            trial[i].replicas++;
            if (!take(m, trial, true, out))
                continue;
            out->ranks++;
            any = true;
        }
    }
}

static void finish(search *s, nami_partition *out)
{
    enum { ROUNDS = 20 };
    nami_part *trial = s->found;
    s->m.view = NAMI_LINKS_REAL;
    (void)settle(&s->m, out->part, out->parts);
    out->seconds = evaluate(&s->m, out->part, out->parts);
    for (int i = 0; i < ROUNDS && out->bound < out->seconds * (1 - 1e-5); i++)
        if (!improve(&s->m, trial, out))
            break;
    for (int i = 0; i < out->parts; i++)
        out->ranks += out->part[i].replicas;
    spread(&s->m, trial, out);
    for (int i = 0; i < out->parts; i++)
        out->part[i].versions = nami_partition_versions(s->m.r->policy, out->parts, i);
}

static nami_status check(const nami_uneven_request *r)
{
    if (r->chain->blocks <= NAMI_UNEVEN_BLOCKS && r->ranks <= NAMI_UNEVEN_RANKS)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "method nami plans at most %d blocks on %d ranks, not %d on %d",
                     NAMI_UNEVEN_BLOCKS, NAMI_UNEVEN_RANKS, r->chain->blocks, r->ranks);
}

nami_status nami_uneven(const nami_uneven_request *r, nami_partition *out)
{
    nami_uneven_request own = *r;
    search s = {0};
    char limit[32];
    *out = (nami_partition){0};
    NAMI_TRY(check(r));
    own.stages = r->stages < r->ranks ? r->stages : r->ranks;
    own.stages = own.stages < r->chain->blocks ? own.stages : r->chain->blocks;
    out->part = nami_calloc(NAMI_MEM_OTHER, (size_t)own.stages, sizeof *out->part);
    open_search(&s, &own);
    bool fits = solve(&s, out);
    if (fits)
        finish(&s, out);
    close_search(&s);
    if (fits)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "no cut of %d blocks into at most %d stages fits %d ranks of %s, "
                     "also with recomputation",
                     r->chain->blocks, own.stages, r->ranks,
                     nami_human_bytes(r->memory, limit));
}
