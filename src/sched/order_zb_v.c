/* SPDX-License-Identifier: MIT */
/* order_zb_v.c - ZB-V: one wave with a split backward (Qi et al., arXiv 2405.15362), in the order that
 * torch.distributed.pipelining gives it.
 *
 * Position d holds stages d (going down) and 2P-1-d (coming back). The order is made for at least 2P-1
 * micro-batches; for fewer it is that list without the surplus, which cannot create a cycle.
 */
#include "sched/order.h"

/* What a position has done of its two stages. */
typedef struct zb_v {
    const nami_recipe *r;
    nami_list *out;
    int stage[2];
    int f[2], bi[2], bw[2]; /* micro-batches done */
} zb_v;

static void add(zb_v *z, nami_kind kind, int chunk, int *done)
{
    if (*done < z->r->microbatches)
        nami_list_add(z->out, nami_action_of(kind, z->stage[chunk], *done));
    ++*done;
}

static void forward(zb_v *z, int chunk)
{
    add(z, NAMI_F, chunk, &z->f[chunk]);
}

static void input_backward(zb_v *z, int chunk)
{
    add(z, NAMI_BI, chunk, &z->bi[chunk]);
}

static void weight_backward(zb_v *z, int chunk)
{
    add(z, NAMI_BW, chunk, &z->bw[chunk]);
}

static void whole_backward(zb_v *z, int chunk)
{
    input_backward(z, chunk);
    weight_backward(z, chunk);
}

static void warm_up(zb_v *z, int position)
{
    int positions = z->r->positions;
    for (int i = 0; i < 2 * (positions - position) - 1; i++)
        forward(z, 0);
    for (int i = 0; i < position; i++) {
        forward(z, 1);
        forward(z, 0);
    }
    for (int i = position; i < positions; i++) {
        forward(z, 1);
        whole_backward(z, 1);
    }
}

static void cool_down(zb_v *z, int position)
{
    for (int i = 0; i < position; i++) {
        input_backward(z, 0);
        input_backward(z, 1);
    }
    for (int i = position; i < z->r->positions; i++)
        whole_backward(z, 0);
    while (z->bw[1] < z->bi[1])
        weight_backward(z, 1);
    while (z->bw[0] < z->bi[0])
        weight_backward(z, 0);
}

static void generate(const nami_recipe *r, const nami_place *p, int position,
                     nami_list *out)
{
    int least = 2 * r->positions - 1;
    int all = r->microbatches > least ? r->microbatches : least;
    zb_v z = {.r = r, .out = out, .stage = {position, p->stages - 1 - position}};
    warm_up(&z, position);
    while (z.f[1] < all) {
        if (z.f[0] < all)
            forward(&z, 0);
        whole_backward(&z, 0);
        forward(&z, 1);
        whole_backward(&z, 1);
    }
    cool_down(&z, position);
}

static int64_t held(const nami_recipe *r, int position)
{
    (void)position;
    return 2 *
           (int64_t)(r->microbatches < r->positions ? r->microbatches : r->positions);
}

static const char *advise(const nami_recipe *r)
{
    return r->microbatches < 2 * r->positions - 1
               ? "zb-v is made for M >= 2P-1; below it hanayo-zb is at least as fast"
               : NULL;
}

const nami_order nami_order_zb_v = {
    .name = "zb-v",
    .summary = "one wave with a split backward (ZB-V), P in flight",
    .one_wave = true,
    .placements = NAMI_ON(NAMI_PLACE_WAVE),
    .generate = generate,
    .held = held,
    .advise = advise,
};
