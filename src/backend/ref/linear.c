/* SPDX-License-Identifier: MIT */
/* linear.c - y = x w^T + b and its gradients. */
#include "backend/ref/ref.h"

#define GET nami_ref_get

void nami_ref_linear_f(const void *args)
{
    const nami_arg_linear *a = args;
    const nami_dtype act = a->act, wide = nami_ref_wide(act);
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t o = 0; o < a->out; o++) {
            double sum = a->b ? GET(wide, a->b, o) : 0;
            for (int64_t i = 0; i < a->in; i++)
                sum += GET(act, a->x, n * a->in + i) *
                       nami_ref_round(act, GET(wide, a->w, o * a->in + i));
            nami_ref_set(act, a->y, n * a->out + o, sum);
        }
}

void nami_ref_linear_bi(const void *args)
{
    const nami_arg_linear *a = args;
    const nami_dtype act = a->act, wide = nami_ref_wide(act);
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t i = 0; i < a->in; i++) {
            double sum = a->add ? GET(act, a->add, n * a->in + i) : 0;
            for (int64_t o = 0; o < a->out; o++)
                sum += GET(act, a->dy, n * a->out + o) *
                       nami_ref_round(act, GET(wide, a->w, o * a->in + i));
            nami_ref_set(act, a->dx, n * a->in + i, sum);
        }
}

static void linear_dw(const nami_arg_linear *a, nami_dtype wide, int64_t o, int64_t i)
{
    double sum = GET(wide, a->dw, o * a->in + i);
    for (int64_t n = 0; n < a->n; n++)
        sum += GET(a->act, a->dy, n * a->out + o) * GET(a->act, a->x, n * a->in + i);
    nami_ref_set(wide, a->dw, o * a->in + i, sum);
}

static void linear_db(const nami_arg_linear *a, nami_dtype wide, int64_t o)
{
    double sum = GET(wide, a->db, o);
    for (int64_t n = 0; n < a->n; n++)
        sum += GET(a->act, a->dy, n * a->out + o);
    nami_ref_set(wide, a->db, o, sum);
}

void nami_ref_linear_bw(const void *args)
{
    const nami_arg_linear *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t o = 0; o < a->out; o++) {
        for (int64_t i = 0; i < a->in; i++)
            linear_dw(a, wide, o, i);
        if (a->db)
            linear_db(a, wide, o);
    }
}
