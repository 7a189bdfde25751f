/* SPDX-License-Identifier: MIT */
/* gap.c - compare a measured step with its prediction. */
#include "train/gap.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static bool computes(const nami_span *s)
{
    return nami_semantics_of((nami_kind)s->action.kind)->compute;
}

/* The next computation of a row from index `i` on; its index, or the row's length. */
static int64_t next_of(const nami_timeline *t, int row, int64_t i)
{
    while (i < t->count[row] && !computes(&t->span[row][i]))
        i++;
    return i;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* --- the delay of messages --- */

/* When each value of a boundary was made. */
typedef struct made {
    const nami_timeline *timeline;
    const nami_layout *layout;
    const nami_place *place;
    int units, slices;
    double *end; /* [layout.replicas][2: output, gradient of the input][stages][units]
                    [slices] */
} made;

/* The same of what `stage` made of the unit and slice of `a`. Replicas that split samples share a value: it is made
 * when the last of them has made its part. */
static double *end_of(const made *m, int rank, bool gradient, int stage, nami_action a)
{
    const int replica =
        m->layout->replicas > 1 ? nami_layout_replica(m->layout, rank) : 0;
    const int64_t row = ((int64_t)replica * 2 + gradient) * m->place->stages + stage;
    return &m->end[(row * m->units + a.unit) * m->slices + a.slice];
}

static void count_units(made *m)
{
    const nami_timeline *t = m->timeline;
    for (int r = 0; r < t->positions; r++)
        for (int64_t i = 0; i < t->count[r]; i++) {
            const nami_action a = t->span[r][i].action;
            m->units = a.unit >= m->units ? a.unit + 1 : m->units;
            m->slices = a.slice >= m->slices ? a.slice + 1 : m->slices;
        }
}

static void note_ends(const made *m)
{
    const nami_timeline *t = m->timeline;
    for (int r = 0; r < t->positions; r++)
        for (int64_t i = next_of(t, r, 0); i < t->count[r]; i = next_of(t, r, i + 1)) {
            const nami_span *s = &t->span[r][i];
            const int kind = s->action.kind;
            if (kind != NAMI_F && kind != NAMI_B && kind != NAMI_BI)
                continue;
            double *end = end_of(m, r, kind != NAMI_F, s->action.stage, s->action);
            *end = fmax(*end, s->end);
        }
}

/* When the value that `a` takes from another position was made; NAN: it takes none. */
static double came_from(const made *m, int rank, nami_action a)
{
    const bool back = a.kind == NAMI_B || a.kind == NAMI_BI;
    const int stage = back ? a.stage + 1 : a.stage - 1;
    if ((a.kind != NAMI_F && !back) || stage < 0 || stage >= m->place->stages)
        return NAN;
    if (nami_place_of(m->place, a.copy, stage) ==
        nami_place_of(m->place, a.copy, a.stage))
        return NAN;
    return *end_of(m, rank, back, stage, a);
}

/* Delays of the messages that rank `r` waited for, into delay[]; how many. */
static int64_t delays_of(const made *m, int r, double *delay)
{
    const nami_timeline *t = m->timeline;
    int64_t count = 0;
    double free_since = -INFINITY;
    for (int64_t i = next_of(t, r, 0); i < t->count[r]; i = next_of(t, r, i + 1)) {
        const nami_span *s = &t->span[r][i];
        const double from = came_from(m, r, s->action);
        if (from >= free_since && s->start >= from)
            delay[count++] = s->start - from;
        free_since = s->end;
    }
    return count;
}

double nami_gap_hop(const nami_timeline *measured, const nami_layout *l)
{
    made m = {.timeline = measured,
              .layout = l,
              .place = &l->train.place,
              .units = 1,
              .slices = 1};
    count_units(&m);
    const int64_t cells =
        (int64_t)l->replicas * 2 * m.place->stages * m.units * m.slices;
    int64_t spans = 0, count = 0;
    for (int r = 0; r < measured->positions; r++)
        spans += measured->count[r];
    m.end = nami_alloc(NAMI_MEM_OTHER, (size_t)cells * sizeof *m.end);
    for (int64_t i = 0; i < cells; i++)
        m.end[i] = NAN;
    note_ends(&m);
    double *delay = nami_alloc(NAMI_MEM_OTHER, (size_t)(spans + 1) * sizeof *delay);
    for (int r = 0; r < measured->positions; r++)
        count += delays_of(&m, r, delay + count);
    qsort(delay, (size_t)count, sizeof *delay, compare);
    const double hop = count > 0 ? delay[count / 2] : 0;
    nami_free(delay);
    nami_free(m.end);
    return hop;
}

/* --- idle time --- */

static void insert(nami_gap out[NAMI_GAPS], int *count, nami_gap gap)
{
    int at = *count < NAMI_GAPS ? (*count)++ : NAMI_GAPS;
    for (; at > 0; at--) {
        const nami_gap *above = &out[at - 1];
        if (above->measured - above->predicted >= gap.measured - gap.predicted)
            break;
        if (at < NAMI_GAPS)
            out[at] = *above;
    }
    if (at < NAMI_GAPS)
        out[at] = gap;
}

int nami_gap_largest(const nami_timeline *measured, const nami_timeline *predicted,
                     const nami_layout *l, nami_gap out[NAMI_GAPS])
{
    double first[2], last[2];
    int count = 0;
    nami_timeline_range(measured, &first[0], &last[0]);
    nami_timeline_range(predicted, &first[1], &last[1]);
    for (int r = 0; r < measured->positions; r++) {
        const int p = nami_layout_position(l, r);
        double free_since[2] = {first[0], first[1]};
        int64_t i = next_of(measured, r, 0), k = next_of(predicted, p, 0);
        for (; i < measured->count[r] && k < predicted->count[p];
             i = next_of(measured, r, i + 1), k = next_of(predicted, p, k + 1)) {
            const nami_span *m = &measured->span[r][i], *s = &predicted->span[p][k];
            insert(out, &count,
                   (nami_gap){.rank = r,
                              .before = m->action,
                              .measured = m->start - free_since[0],
                              .predicted = s->start - free_since[1]});
            free_since[0] = m->end;
            free_since[1] = s->end;
        }
    }
    return count;
}
