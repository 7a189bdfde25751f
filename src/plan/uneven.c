/* SPDX-License-Identifier: MIT */
/* uneven.c - bisect the time of the slowest stage, in several views of the links; the best plan counts.
 *
 * uneven_fit.c says whether a time can be kept. Where the class of links counts, it runs as if all links were of the better
 * class (the bound), of the worse, with stages of whole nodes, and with real links as far as a problem is small enough;
 * uneven_mend.c improves the best by single steps. Above 512 blocks only the bound and whole nodes are sought.
 */
#include "plan/uneven.h"

#include <math.h>

#include "base/memory.h"
#include "plan/uneven_fit.h"
#include "plan/uneven_mend.h"

/* Keep s->found as *out when it is better with real links. */
static void keep(nami_uneven_fit *s, nami_partition *out)
{
    nami_link_view view = s->m.view;
    s->m.view = NAMI_LINKS_REAL;
    double seconds = nami_uneven_slowest(&s->m, s->found, s->parts);
    s->m.view = view;
    if (out->parts > 0 && seconds >= out->seconds)
        return;
    out->parts = s->parts;
    out->seconds = seconds;
    for (int i = 0; i < s->parts; i++)
        out->part[i] = s->found[i];
}

/* The found plan's seconds in the view of the search. */
static double found_seconds(nami_uneven_fit *s)
{
    nami_link_view view = s->m.view;
    if (s->slots > 1)
        s->m.view = NAMI_LINKS_REAL;
    double seconds = nami_uneven_slowest(&s->m, s->found, s->parts);
    s->m.view = view;
    return seconds;
}

/* The least time of the view, from `low` on, below which nothing is; *bound: the same for the result. False: nothing
 * fits. */
static bool bisect(nami_uneven_fit *s, double low, nami_partition *out, double *bound)
{
    bool small = s->m.blocks <= 256, bounds = s->slots == 1 && s->unit == 1;
    double exact = small ? 1e-12 : bounds && s->m.view == NAMI_LINKS_BEST ? 1e-4 : 1e-3;
    double high = s->slots > 1 ? out->seconds : INFINITY; /* slots: links are real */
    if (s->slots == 1) {
        if (!nami_uneven_fit_within(s, 1e300))
            return false;
        high = found_seconds(s);
        keep(s, out);
    }
    while (high - low > exact * high) {
        double middle = (low + high) / 2;
        if (middle <= low || middle >= high)
            break;
        if (nami_uneven_fit_within(s, middle)) {
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
static bool solve(nami_uneven_fit *s, nami_partition *out)
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
    nami_uneven_fit_nodes(s);
    if (s->unit > 1)
        (void)bisect(s, out->bound, out, &unused);
    s->m.view = NAMI_LINKS_BEST;
    nami_uneven_fit_places(s);
    if (quick)
        (void)bisect(s, out->bound, out,
                     nami_uneven_fit_exact(&s->m) ? &out->bound : &unused);
    return true;
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
    nami_uneven_fit s = {0};
    char limit[32];
    *out = (nami_partition){0};
    NAMI_TRY(check(r));
    own.stages = r->stages < r->ranks ? r->stages : r->ranks;
    own.stages = own.stages < r->chain->blocks ? own.stages : r->chain->blocks;
    out->part = nami_calloc(NAMI_MEM_OTHER, (size_t)own.stages, sizeof *out->part);
    nami_uneven_fit_open(&s, &own);
    bool fits = solve(&s, out);
    if (fits)
        nami_uneven_mend(&s.m, s.found, out);
    nami_uneven_fit_close(&s);
    if (fits)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "no cut of %d blocks into at most %d stages fits %d ranks of %s, "
                     "also with recomputation",
                     r->chain->blocks, own.stages, r->ranks,
                     nami_human_bytes(r->memory, limit));
}
