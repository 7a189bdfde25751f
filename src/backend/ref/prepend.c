/* SPDX-License-Identifier: MIT */
/* prepend.c - a token in front of the rows of a sample, and positions. */
#include "backend/ref/ref.h"

#define GET nami_ref_get

void nami_ref_prepend_f(const void *args)
{
    const nami_arg_prepend *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    const int64_t each = (a->time + 1) * a->width;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t e = 0; e < each; e++)
            nami_ref_set(
                a->act, a->y, b * each + e,
                GET(wide, a->position, e) +
                    (e < a->width
                         ? GET(wide, a->token, e)
                         : GET(a->act, a->x, b * (each - a->width) + e - a->width)));
}

void nami_ref_prepend_bi(const void *args)
{
    const nami_arg_prepend *a = args;
    const int64_t each = a->time * a->width;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t e = 0; e < each; e++)
            nami_ref_set(a->act, a->dx, b * each + e,
                         GET(a->act, a->dy, b * (each + a->width) + e + a->width));
}

void nami_ref_prepend_bw(const void *args)
{
    const nami_arg_prepend *a = args;
    const nami_dtype wide = nami_ref_wide(a->act);
    const int64_t each = (a->time + 1) * a->width;
    for (int64_t e = 0; e < each; e++) {
        double sum = 0;
        for (int64_t b = 0; b < a->batch; b++)
            sum += GET(a->act, a->dy, b * each + e);
        nami_ref_set(wide, a->dposition, e, GET(wide, a->dposition, e) + sum);
        if (e < a->width)
            nami_ref_set(wide, a->dtoken, e, GET(wide, a->dtoken, e) + sum);
    }
}
