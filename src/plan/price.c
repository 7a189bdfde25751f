/* SPDX-License-Identifier: MIT */
/* price.c - what the stages of a candidate cost. */
#include "plan/price.h"

#include <math.h>

#include "base/memory.h"

/* FLOPs of one sample through block `b`, pass by pass, as its kernels count them. */
static nami_status block_work(const nami_advise_request *r, int b,
                              nami_block_prices *out)
{
    const nami_model *m = r->model;
    nami_graph *g = NULL;
    if (m->seconds != NULL) {
        for (int pass = 0; pass < 3; pass++)
            out->work[pass * out->blocks + b] = m->seconds[pass * out->blocks + b];
        return NAMI_OK;
    }
    NAMI_TRY(
        nami_model_graph(m, b, b + 1, r->backend, r->act, 1, m->options.context, &g));
    nami_status status = nami_graph_plan(g, true, true, false);
    if (status == NAMI_OK) {
        const double *flops = nami_graph_bytes(g)->flops;
        out->work[b] = flops[NAMI_FORWARD];
        out->work[out->blocks + b] = flops[NAMI_BACKWARD_INPUT];
        out->work[2 * out->blocks + b] = flops[NAMI_BACKWARD_WEIGHT];
    }
    nami_graph_free(g);
    return status;
}

nami_status nami_block_prices_make(const nami_advise_request *r, nami_block_prices *out)
{
    const nami_model *m = r->model;
    size_t n = (size_t)m->blocks;
    nami_status status = NAMI_OK;
    *out = (nami_block_prices){.blocks = m->blocks, .tied = -1};
    out->work = nami_calloc(NAMI_MEM_OTHER, 3 * n, sizeof *out->work);
    out->elements = nami_calloc(NAMI_MEM_OTHER, n, sizeof *out->elements);
    for (int b = 0; b < m->blocks && status == NAMI_OK; b++)
        status = block_work(r, b, out);
    for (int i = 0; i < m->params; i++) {
        out->elements[m->param[i].block] += nami_shape_count(&m->param[i].shape);
        if (m->param[i].uses > 1)
            out->tied = i;
    }
    return status;
}

void nami_block_prices_free(nami_block_prices *p)
{
    nami_free(p->work);
    nami_free(p->elements);
    *p = (nami_block_prices){0};
}

static double transfer(const nami_advise_costs *c, double bytes)
{
    return c->bandwidth > 0 ? bytes / c->bandwidth : 0;
}

/* Times and messages of one stage; returns elements of its parameters. */
static int64_t price_stage(const nami_advise_request *r, const nami_block_prices *b,
                           const int *cut, int s, int64_t micro, nami_stage_prices *out)
{
    const nami_advise_costs *c = &r->costs;
    double *to[3] = {out->f, out->bi, out->bw};
    int64_t elements = 0;
    bool set = r->model->seconds != NULL; /* times of a micro-batch, not of a sample */
    double share = nami_model_time_share(r->model, micro);
    for (int i = cut[s]; i < cut[s + 1]; i++) {
        elements += b->elements[i];
        for (int pass = 0; pass < 3; pass++) {
            double work = b->work[pass * b->blocks + i];
            to[pass][s] +=
                set ? share * work : (double)micro * work / c->flops + c->overhead;
        }
    }
    const int64_t sent =
        cut[s + 1] < r->model->blocks
            ? nami_model_boundary(r->model, cut[s + 1], r->model->options.context)
            : 0;
    out->bytes[s] = (double)micro * (double)sent * (double)nami_dtype_size(r->act);
    return elements;
}

/* A sum over D replicas: each owns a slice, gets it from all others, and hands the result out. */
static double reduction(const nami_advise_costs *c, double bytes, int replicas)
{
    double share = (double)(replicas - 1) / replicas;
    return replicas > 1 ? 2 * (c->latency + transfer(c, share * bytes)) : 0;
}

/* Whether `position` holds stage `s` of some copy; *away counts the copies elsewhere. */
static bool holds(const nami_place *p, int s, int position, int *away)
{
    int here = 0;
    for (int c = 0; c < p->copies; c++)
        here += nami_place_of(p, c, s) == position;
    *away = p->copies - here;
    return here > 0;
}

/* Elements that `position` gets from others behind its own sums: those of the other copy, of the other use of a tied
 * parameter. */
static double received(const nami_advise_request *r, const nami_block_prices *b,
                       const nami_place *p, int position, const int64_t *elements)
{
    double sum = 0, tied = 0;
    int away, other, last = p->stages - 1;
    if (b->tied >= 0)
        tied = (double)nami_shape_count(&r->model->param[b->tied].shape);
    for (int s = 0; s < p->stages; s++) {
        if (holds(p, s, position, &away))
            sum += away * ((double)elements[s] - (s == 0 ? tied : 0));
    }
    bool first = holds(p, 0, position, &away), end = holds(p, last, position, &other);
    return sum + (first || end ? (away + other) * tied : 0);
}

/* What holds for one position: bytes of weights, sums and states; work of a micro-batch. */
static void price_position(const nami_advise_request *r, const nami_block_prices *b,
                           const nami_place *place, int position, int replicas,
                           const int64_t *elements, nami_stage_prices *out)
{
    const nami_advise_costs *c = &r->costs;
    double wide = (double)nami_dtype_size(r->act == NAMI_F64 ? NAMI_F64 : NAMI_F32);
    double states = nami_optim_states(r->optim), count = 0, busy = 0, again = 0;
    const double slices = r->zero ? replicas : 1; /* of what is updated */
    for (int s = 0; s < place->stages; s++) {
        int away;
        if (!holds(place, s, position, &away))
            continue;
        double share = (double)(place->copies - away) / place->copies;
        count += (double)elements[s];
        busy += share * (out->f[s] + out->bi[s] + out->bw[s]);
        again += share * out->f[s];
    }
    double swap = wide * received(r, b, place, position, elements);
    double after = swap > 0 ? c->latency + transfer(c, swap) : 0;
    after += c->update > 0 ? count / slices * wide * (3 + 2 * states) / c->update : 0;
    out->reduce = fmax(out->reduce, reduction(c, count * wide, replicas));
    out->after = fmax(out->after, after);
    out->least = fmax(out->least, count * wide * (2 + states / slices));
    out->busy = fmax(out->busy, busy);
    out->again = fmax(out->again, busy + again);
}

void nami_stage_prices_make(const nami_advise_request *r, const nami_block_prices *b,
                            const nami_shape_of_stages *shape, int replicas,
                            int64_t micro, nami_stage_prices *out)
{
    const nami_place *place = &shape->place;
    size_t n = (size_t)place->stages;
    int64_t *elements = nami_calloc(NAMI_MEM_OTHER, n, sizeof *elements);
    *out = (nami_stage_prices){.stages = place->stages};
    out->f = nami_calloc(NAMI_MEM_OTHER, 4 * n, sizeof *out->f);
    out->bi = out->f + n;
    out->bw = out->bi + n;
    out->bytes = out->bw + n;
    for (int s = 0; s < place->stages; s++)
        elements[s] = price_stage(r, b, shape->cut, s, micro, out);
    for (int p = 0; p < place->positions; p++)
        price_position(r, b, place, p, replicas, elements, out);
    nami_free(elements);
}

void nami_stage_prices_free(nami_stage_prices *p)
{
    nami_free(p->f);
    *p = (nami_stage_prices){0};
}

nami_cost nami_stage_prices_cost(const nami_advise_request *r,
                                 const nami_stage_prices *p)
{
    return (nami_cost){.stage_f = p->f,
                       .stage_bi = p->bi,
                       .stage_bw = p->bw,
                       .bytes = p->bytes,
                       .latency = r->costs.latency,
                       .bandwidth = r->costs.bandwidth,
                       .serial = true,
                       .apart = !r->backend->host, /* as nami run has pairs */
                       .reduce = p->reduce};
}
