/* SPDX-License-Identifier: MIT */
/* order_dualpipe.c - DualPipe and DualPipeV (DeepSeek-V3, arXiv 2412.19437 and its published code).
 *
 * Every position has two streams of micro-batches that meet in it: in DualPipe two copies of the model in
 * opposite directions, in DualPipeV the way down and the way back of one wave, which is DualPipe cut in the
 * middle. So both are one order of eight phases over R rows: R = P/2 and M/2 micro-batches a stream, or R = P and
 * M. A forward of one stream and a backward of the other run as a pair: both start when both have
 * their data, and what they make leaves at the end of the pair.
 */
#include "base/memory.h"
#include "sched/order.h"

typedef struct dualpipe {
    nami_list *out;
    bool copies;                 /* streams are copies, and share the micro-batches */
    int rows, row, units;        /* R, 0 at the ends, and micro-batches of a stream */
    int copy[2], stage[2];       /* of stream 0, which enters here first, and 1 */
    int forward[2], backward[2]; /* done */
    nami_action *owed;           /* weight backwards, first in, first out */
    int owes, paid;
} dualpipe;

static nami_action next(const dualpipe *d, nami_kind kind, int stream, int index)
{
    int unit = d->copies ? 2 * index + d->copy[stream] : index;
    return nami_action_in(kind, d->copy[stream], d->stage[stream], unit);
}

static void forward(dualpipe *d, int stream)
{
    nami_list_add(d->out, next(d, NAMI_F, stream, d->forward[stream]++));
}

static void backward(dualpipe *d, int stream)
{
    nami_list_add(d->out, next(d, NAMI_B, stream, d->backward[stream]++));
}

static void input_backward(dualpipe *d, int stream)
{
    int index = d->backward[stream]++;
    nami_list_add(d->out, next(d, NAMI_BI, stream, index));
    d->owed[d->owes++] = next(d, NAMI_BW, stream, index);
}

static void weight_backward(dualpipe *d)
{
    if (d->paid < d->owes)
        nami_list_add(d->out, d->owed[d->paid++]);
}

static void pair(dualpipe *d, int stream)
{
    forward(d, stream);
    d->out->item[d->out->count - 1].flags = NAMI_FLAG_PAIR;
    backward(d, 1 - stream);
}

/* Phases 1 to 3: only F of stream 0, F of both, then BI, BW and F of stream 1. */
static void fill(dualpipe *d)
{
    int inner = d->rows - 1 - d->row;
    for (int i = 0; i < 2 * inner; i++)
        forward(d, 0);
    for (int i = 0; i <= d->row; i++) {
        forward(d, 0);
        forward(d, 1);
    }
    for (int i = 0; i < inner; i++) {
        input_backward(d, 1);
        weight_backward(d);
        forward(d, 1);
    }
}

/* Phases 4 and 5: pairs. The first one of the middle row would have to wait for itself. */
static void stream_on(dualpipe *d)
{
    for (int i = 0; i < d->units - 2 * d->rows + d->row + 1; i++) {
        if (i == 0 && d->row == d->rows - 1) {
            forward(d, 0);
            backward(d, 1);
        } else {
            pair(d, 0);
        }
        pair(d, 1);
    }
    for (int i = 0; i < d->rows - 1 - d->row; i++) {
        backward(d, 1);
        pair(d, 1);
    }
}

/* Phases 6 to 8: backwards of both streams, whole and then split, whose BWs fill the end. */
static void drain(dualpipe *d)
{
    int both = 2 * (d->row + 1), whole = both - (d->row + 1);
    for (int i = 0; i < both; i++) {
        if (i < whole)
            backward(d, 1 - i % 2);
        else
            input_backward(d, 1 - i % 2);
    }
    for (int i = 0; i < d->rows - 1 - d->row; i++) {
        weight_backward(d);
        input_backward(d, 0);
    }
    while (d->paid < d->owes)
        weight_backward(d);
}

static void generate(dualpipe *d)
{
    d->owed = nami_alloc(NAMI_MEM_OTHER, 2 * (size_t)d->units * sizeof *d->owed);
    fill(d);
    stream_on(d);
    drain(d);
    nami_free(d->owed);
}

static void generate_copies(const nami_recipe *r, const nami_place *p, int position,
                            nami_list *out)
{
    int last = p->positions - 1, half = p->positions / 2;
    dualpipe d = {
        .out = out, .copies = true, .rows = half, .units = r->microbatches / 2};
    d.row = position < half ? position : last - position;
    for (int stream = 0; stream < 2; stream++) {
        d.copy[stream] = position < half ? stream : 1 - stream;
        d.stage[stream] = d.copy[stream] == 0 ? position : last - position;
    }
    generate(&d);
}

static void generate_v(const nami_recipe *r, const nami_place *p, int position,
                       nami_list *out)
{
    dualpipe d = {.out = out, .rows = p->positions, .units = r->microbatches};
    d.row = position;
    d.stage[0] = position;
    d.stage[1] = p->stages - 1 - position;
    generate(&d);
}

static int64_t held_copies(const nami_recipe *r, int position)
{
    (void)position;
    return (int64_t)r->positions + 1;
}

static int64_t held_v(const nami_recipe *r, int position)
{
    (void)position;
    return 2 * (int64_t)r->positions + 1;
}

static nami_status admits_copies(const nami_recipe *r)
{
    if (r->positions % 2 != 0)
        return nami_fail(NAMI_EPLAN,
                         "dualpipe needs an even number of positions, not %d",
                         r->positions);
    if (r->microbatches % 2 != 0 || r->microbatches < 2 * r->positions)
        return nami_fail(
            NAMI_EPLAN,
            "dualpipe needs an even number of micro-batches from 2P = 2 x %d "
            "= %d on, not %d",
            r->positions, 2 * r->positions, r->microbatches);
    return NAMI_OK;
}

static nami_status admits_v(const nami_recipe *r)
{
    if (r->microbatches < 2 * r->positions)
        return nami_fail(
            NAMI_EPLAN,
            "dualpipev needs at least 2P = 2 x %d = %d micro-batches, not %d",
            r->positions, 2 * r->positions, r->microbatches);
    return NAMI_OK;
}

const nami_order nami_order_dualpipe = {
    .name = "dualpipe",
    .summary = "two copies in opposite directions, forwards paired with backwards",
    .placements = NAMI_ON(NAMI_PLACE_BIDIRECTIONAL),
    .admits = admits_copies,
    .generate = generate_copies,
    .held = held_copies,
};

const nami_order nami_order_dualpipev = {
    .name = "dualpipev",
    .summary = "one wave, forwards paired with backwards of the other direction",
    .one_wave = true,
    .placements = NAMI_ON(NAMI_PLACE_WAVE),
    .admits = admits_v,
    .generate = generate_v,
    .held = held_v,
};
