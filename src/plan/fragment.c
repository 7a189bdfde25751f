/* SPDX-License-Identifier: MIT */
/* fragment.c - a candidate as the section of a deck that asks for it. */
#include <stdio.h>

#include "plan/advise.h"

void nami_advice_fragment(const nami_advice_row *row, nami_text *out)
{
    const nami_recipe *r = &row->recipe;
    nami_text_add(out, "[pipeline]\nschedule = %s\npositions = %d\nreplicas = %d\n",
                  r->name, r->positions, row->replicas);
    if (r->placement == NAMI_PLACE_WAVE)
        nami_text_add(out, "waves = %d\n", r->waves);
    if (r->placement == NAMI_PLACE_LOOPING)
        nami_text_add(out, "chunks = %d\n", r->chunks);
    if (r->slices > 1)
        nami_text_add(out, "slices = %d\n", r->slices);
    nami_text_add(out, "microbatches = %d\nrecompute = %s\n",
                  r->microbatches * row->replicas, r->recompute ? "yes" : "no");
    if (r->zero)
        nami_text_add(out, "zero = 1\n");
}

const char *nami_advice_name(const nami_advice_row *row, char buf[48])
{
    const nami_recipe *r = &row->recipe;
    char size[16] = "";
    if (r->placement == NAMI_PLACE_WAVE)
        snprintf(size, sizeof size, " W=%d", r->waves);
    else if (r->placement == NAMI_PLACE_LOOPING)
        snprintf(size, sizeof size, " V=%d", r->chunks);
    else if (r->slices > 1)
        snprintf(size, sizeof size, " K=%d", r->slices);
    snprintf(buf, 48, "%.28s%s", r->name, size);
    return buf;
}
