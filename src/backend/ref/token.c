/* SPDX-License-Identifier: MIT */
/* token.c - embedding of tokens and cross entropy against them. */
#include "backend/ref/ref.h"

#include <math.h>

#define GET nami_ref_get

void nami_ref_embed_f(const void *args)
{
    const nami_arg_embed *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t n = 0; n < a->batch * a->time; n++) {
        const int64_t word = nami_word(n, a->time, a->stride);
        for (int64_t c = 0; c < a->width; c++)
            nami_ref_set(
                a->act, a->y, n * a->width + c,
                GET(wide, a->wte, a->token[word] * a->width + c) +
                    (a->type ? GET(wide, a->wtt, a->type[word] * a->width + c) : 0) +
                    (a->wpe ? GET(wide, a->wpe, n % a->time * a->width + c) : 0));
    }
}

static void add_to(nami_dtype d, void *p, int64_t i, double x)
{
    nami_ref_set(d, p, i, GET(d, p, i) + x);
}

void nami_ref_embed_bw(const void *args)
{
    const nami_arg_embed *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    for (int64_t n = 0; n < a->batch * a->time; n++) {
        const int64_t word = nami_word(n, a->time, a->stride);
        for (int64_t c = 0; c < a->width; c++) {
            const double dy = GET(a->act, a->dy, n * a->width + c);
            add_to(wide, a->dwte, a->token[word] * a->width + c, dy);
            if (a->dwpe)
                add_to(wide, a->dwpe, n % a->time * a->width + c, dy);
            if (a->type)
                add_to(wide, a->dwtt, a->type[word] * a->width + c, dy);
        }
    }
}

static int64_t row_of(const nami_arg_gather *a, int64_t n)
{
    return a->row ? a->row[nami_word(n, a->rows, a->stride)] : 0;
}

void nami_ref_gather_f(const void *args)
{
    const nami_arg_gather *a = args;
    for (int64_t n = 0; n < a->batch * a->rows; n++)
        for (int64_t c = 0; c < a->width; c++)
            nami_ref_set(a->act, a->y, n * a->width + c,
                         GET(a->act, a->x,
                             (n / a->rows * a->time + row_of(a, n)) * a->width + c));
}

void nami_ref_gather_bi(const void *args)
{
    const nami_arg_gather *a = args;
    for (int64_t i = 0; i < a->batch * a->time * a->width; i++)
        nami_ref_set(a->act, a->dx, i, a->add ? GET(a->act, a->add, i) : 0);
    for (int64_t n = 0; n < a->batch * a->rows; n++)
        for (int64_t c = 0; c < a->width; c++)
            add_to(a->act, a->dx, (n / a->rows * a->time + row_of(a, n)) * a->width + c,
                   GET(a->act, a->dy, n * a->width + c));
}

static int64_t target_of(const nami_arg_xent *a, int64_t n)
{
    return a->target[nami_word(n, a->time, a->stride)];
}

/* How many logits of a row are larger than the target's; equal ones in front of it are. */
static int64_t xent_place(const nami_arg_xent *a, int64_t n)
{
    const int64_t at = n * a->vocabulary, target = target_of(a, n);
    int64_t larger = 0;
    for (int64_t v = 0; v < a->vocabulary; v++) {
        const double x = GET(a->act, a->logits, at + v),
                     y = GET(a->act, a->logits, at + target);
        larger += x > y || (x == y && v < target);
    }
    return larger;
}

/* Count the targets of sample b among the largest logits. */
static void xent_hits(const nami_arg_xent *a, int64_t b)
{
    a->best[b] = a->five[b] = 0;
    for (int64_t n = b * a->time; n < (b + 1) * a->time; n++)
        if (target_of(a, n) >= 0) {
            const int64_t place = xent_place(a, n);
            a->best[b] += place < 1;
            a->five[b] += place < 5;
        }
}

/* Loss of one row of logits; its gradient in place when asked for. */
static double xent_row(const nami_arg_xent *a, int64_t n)
{
    const int64_t at = n * a->vocabulary, target = target_of(a, n);
    const double even = a->smoothing / (double)a->vocabulary;
    double top = -INFINITY, sum = 0, loss = 0;
    for (int64_t v = 0; v < a->vocabulary; v++)
        top = fmax(top, GET(a->act, a->logits, at + v));
    for (int64_t v = 0; v < a->vocabulary; v++)
        sum += exp(GET(a->act, a->logits, at + v) - top);
    const double lse = top + log(sum);
    for (int64_t v = 0; target >= 0 && v < a->vocabulary; v++) {
        const double part = even + (v == target ? 1 - a->smoothing : 0);
        loss += part > 0 ? part * (lse - GET(a->act, a->logits, at + v)) : 0;
    }
    for (int64_t v = 0; a->gradient && v < a->vocabulary; v++) {
        const double p = exp(GET(a->act, a->logits, at + v) - lse);
        nami_ref_set(
            a->act, a->logits, at + v,
            target < 0 ? 0
                       : a->scale * (p - even - (v == target ? 1 - a->smoothing : 0)));
    }
    return loss;
}

void nami_ref_xent_f(const void *args)
{
    const nami_arg_xent *a = args;
    for (int64_t b = 0; b < a->batch; b++) {
        if (a->best)
            xent_hits(a, b);
        a->loss[b] = 0;
        for (int64_t t = 0; t < a->time; t++)
            a->loss[b] += xent_row(a, b * a->time + t);
    }
}
