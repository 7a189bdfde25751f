/* SPDX-License-Identifier: MIT */
/* wait.c - a kernel that takes a set time: so that pipelines of any length run on few cores. */
#include "backend/ref/ref.h"

#include "base/clock.h"

#define GET nami_ref_get

void nami_ref_wait_pass(const void *args)
{
    const nami_arg_wait *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    double sum = a->dw ? GET(wide, a->dw, 0) : 0;
    for (int64_t i = 0; i < a->count; i++) {
        if (a->y)
            nami_ref_set(a->act, a->y, i, GET(a->act, a->x, i) + GET(wide, a->w, 0));
        if (a->dx)
            nami_ref_set(a->act, a->dx, i, GET(a->act, a->dy, i));
        if (a->dw)
            sum += GET(a->act, a->dy, i);
    }
    if (a->dw)
        nami_ref_set(wide, a->dw, 0, sum);
}

void nami_ref_wait(const void *args)
{
    const nami_arg_wait *a = args;
    const double end = nami_now() + a->seconds;
    nami_ref_wait_pass(a);
    nami_sleep_until(end);
}
