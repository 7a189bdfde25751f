/* SPDX-License-Identifier: MIT */
/* place.c - placements: which position holds which stage. */
#include "base/memory.h"
#include "sched/schedule.h"

/* The position of stage s = cP + i. */
static int stage_position(nami_placement_kind kind, int positions, int stage)
{
    int chunk = stage / positions, i = stage % positions;
    bool back = kind == NAMI_PLACE_WAVE && chunk % 2 == 1;
    return back ? positions - 1 - i : i;
}

int nami_recipe_stages(const nami_recipe *r)
{
    switch (r->placement) {
    case NAMI_PLACE_LINEAR:
    case NAMI_PLACE_BIDIRECTIONAL:
        return r->positions;
    case NAMI_PLACE_LOOPING:
        return r->positions * r->chunks;
    case NAMI_PLACE_WAVE:
        return 2 * r->waves * r->positions;
    case NAMI_PLACE_FREE:
        break;
    }
    return 0;
}

nami_status nami_place_make(const nami_recipe *r, nami_place *out)
{
    int stages = nami_recipe_stages(r);
    int copies = r->placement == NAMI_PLACE_BIDIRECTIONAL ? 2 : 1;
    *out = (nami_place){.positions = r->positions, .stages = stages, .copies = copies};
    if (r->placement == NAMI_PLACE_FREE)
        return nami_fail(NAMI_EPLAN, "a placement of its own comes from a file only");
    out->position =
        nami_calloc(NAMI_MEM_OTHER, (size_t)copies * (size_t)stages, sizeof(int));
    out->replicas = nami_calloc(NAMI_MEM_OTHER, (size_t)r->positions, sizeof(int));
    nami_place_fill(r, out);
    for (int s = 0; s < stages; s++) {
        out->position[s] = stage_position(r->placement, r->positions, s);
        if (copies == 2)
            out->position[stages + s] = r->positions - 1 - s;
    }
    return NAMI_OK;
}

void nami_place_fill(const nami_recipe *r, nami_place *out)
{
    for (int p = 0; p < out->positions; p++) {
        out->replicas[p] = r->replicas > 0 ? r->replicas : 1;
        if (p < r->stage_replicas.count)
            out->replicas[p] = r->stage_replicas.item[p];
    }
}

int nami_place_first(const nami_place *p, int position)
{
    int rank = 0;
    for (int i = 0; i < position; i++)
        rank += p->replicas[i];
    return rank;
}

int nami_place_ranks(const nami_place *p)
{
    return nami_place_first(p, p->positions);
}

/* The first sample of rank i of r: rank k takes floor((B + k)/r). */
static int64_t first_sample(int64_t samples, int r, int i)
{
    int64_t extra = i - (r - samples % r); /* the last B mod r ranks take one more */
    return samples / r * i + (extra > 0 ? extra : 0);
}

int nami_place_pairs(int r, int q, int64_t samples)
{
    int64_t all = samples > 0 ? samples : (int64_t)r * q;
    int pairs = 0;
    for (int i = 0, k = 0; i < r && k < q;) {
        int64_t end = first_sample(all, r, i + 1), other = first_sample(all, q, k + 1);
        int64_t from = first_sample(all, r, i), begin = first_sample(all, q, k);
        pairs += (from > begin ? from : begin) < (end < other ? end : other);
        i += end <= other;
        k += other <= end;
    }
    return pairs;
}

void nami_place_free(nami_place *p)
{
    nami_free(p->position);
    nami_free(p->replicas);
    *p = (nami_place){0};
}

int nami_place_local(const nami_place *p, int position, int copy, int *stage)
{
    int count = 0;
    for (int s = 0; s < p->stages; s++) {
        if (nami_place_of(p, copy, s) == position)
            stage[count++] = s;
    }
    return count;
}
