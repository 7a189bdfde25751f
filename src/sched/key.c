/* SPDX-License-Identifier: MIT */
/* key.c - keys and peers of messages, and what the lists count: in flight, split, posted, sent. */
#include "base/memory.h"
#include "sched/schedule.h"

/* The boundary that a message crosses: b lies between stages b and b+1. */
static int boundary(nami_action a)
{
    return a.kind == NAMI_SEND_F || a.kind == NAMI_RECV_B ? a.stage : a.stage - 1;
}

int64_t nami_action_key(const nami_schedule *s, nami_action a)
{
    bool gradient = a.kind == NAMI_SEND_B || a.kind == NAMI_RECV_B;
    int64_t row = (gradient ? (int64_t)s->place.stages : 0) + boundary(a);
    return (row * s->recipe.microbatches + a.unit) * s->recipe.slices + a.slice;
}

int64_t nami_schedule_keys(const nami_schedule *s)
{
    return 2 * (int64_t)s->place.stages * s->recipe.microbatches * s->recipe.slices;
}

int nami_action_peer(const nami_schedule *s, nami_action a)
{
    bool behind = a.kind == NAMI_SEND_F || a.kind == NAMI_RECV_B;
    return nami_place_of(&s->place, a.copy, behind ? a.stage + 1 : a.stage - 1);
}

/* Most actions of `open` without one of `close` behind them, on one stage; bit sets of kinds. */
static int most_between(const nami_schedule *s, int copy, int stage, unsigned open,
                        unsigned close)
{
    const nami_list *l = &s->list[nami_place_of(&s->place, copy, stage)];
    int now = 0, most = 0;
    for (int64_t i = 0; i < l->count; i++) {
        nami_action a = l->item[i];
        if (a.stage != stage || a.copy != copy)
            continue;
        now += (int)(open >> a.kind & 1u);
        most = now > most ? now : most;
        now -= (int)(close >> a.kind & 1u);
    }
    return most;
}

int nami_schedule_in_flight(const nami_schedule *s, int copy, int stage)
{
    unsigned close =
        s->purpose == NAMI_PURPOSE_TRAIN ? 1u << NAMI_B | 1u << NAMI_BW : 1u << NAMI_F;
    return most_between(s, copy, stage, 1u << NAMI_F, close);
}

int nami_schedule_in_split(const nami_schedule *s, int copy, int stage)
{
    return most_between(s, copy, stage, 1u << NAMI_BI, 1u << NAMI_BW);
}

int nami_schedule_in_receipt(const nami_schedule *s, int copy, int stage,
                             nami_kind direction)
{
    bool forward = direction == NAMI_RECV_F;
    return most_between(s, copy, stage, 1u << direction,
                        forward ? 1u << NAMI_F : 1u << NAMI_B | 1u << NAMI_BI);
}

/* Units in flight on a position; `shared`: those of a stage that recomputes share one slot. */
static int64_t held(const nami_schedule *s, int position, bool shared)
{
    const nami_list *l = &s->list[position];
    const nami_ints *again = &s->recipe.stage_recompute;
    bool train = s->purpose == NAMI_PURPOSE_TRAIN;
    int64_t now = 0, most = 0;
    int *inputs = nami_calloc(NAMI_MEM_OTHER, (size_t)s->place.stages, sizeof *inputs);
    for (int64_t i = 0; i < l->count; i++) {
        const nami_semantics *is = nami_semantics_of(l->item[i].kind);
        int stage = l->item[i].stage;
        bool opens = is->opens_saved, closes = train ? is->closes_saved : opens;
        if (shared && stage < again->count && again->item[stage] != 0) {
            inputs[stage] += opens; /* which share one slot of activations */
            opens = opens && inputs[stage] == 1;
            inputs[stage] -= closes;
            closes = closes && inputs[stage] == 0;
        }
        now += opens;
        most = now > most ? now : most;
        now -= closes;
    }
    nami_free(inputs);
    return most;
}

int64_t nami_schedule_held(const nami_schedule *s, int position)
{
    return held(s, position, true);
}

int64_t nami_schedule_units(const nami_schedule *s, int position)
{
    return held(s, position, false);
}

/* Whether the value that action `a` makes leaves its position. */
static bool leaves(const nami_schedule *s, nami_action a)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    int own = nami_place_of(&s->place, a.copy, a.stage);
    if (is->makes_output && a.stage + 1 < s->place.stages)
        return nami_place_of(&s->place, a.copy, a.stage + 1) != own;
    if (is->makes_gradient && a.stage > 0)
        return nami_place_of(&s->place, a.copy, a.stage - 1) != own;
    return false;
}

int64_t nami_schedule_messages(const nami_schedule *s)
{
    int64_t messages = 0;
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count; i++)
            messages += leaves(s, s->list[p].item[i]);
    }
    return messages;
}
