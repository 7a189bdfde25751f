/* SPDX-License-Identifier: MIT */
/* palette.h - colours of a timeline: one class of the style sheet for each kind and shade. */
#ifndef NAMI_SIM_PALETTE_H
#define NAMI_SIM_PALETTE_H

#include "sim/sim.h"

enum { NAMI_SHADES = 8 };

/* What a timeline needs. */
typedef struct nami_palette {
    int shades; /* used, 1 to NAMI_SHADES */
    int positions;
    /* copy and stage of each box that a position has, ascending, position by position */
    int32_t *stage;
    int64_t *first;        /* [positions + 1] where a position's begin */
    bool used[NAMI_KINDS]; /* kinds that occur with a length */
} nami_palette;

/* Look through `t`. Local; closed with nami_palette_close. */
void nami_palette_open(nami_palette *c, const nami_timeline *t);
void nami_palette_close(nami_palette *c);

/* The class of an action on `position` into name[8]; true when it belongs into the strip under the boxes. Local. */
bool nami_palette_class(const nami_palette *c, int position, nami_action a,
                        char name[8]);

/* Whether white text reads better on the class. Local. */
bool nami_palette_dark(const nami_palette *c, const char *name);

/* Whether anything belongs into the strip. Local. */
bool nami_palette_strip(const nami_palette *c);

/* Legend: class and meaning of entry i of nami_palette_entries(); false when nothing of it occurs. Local. */
int nami_palette_entries(void);
bool nami_palette_entry(const nami_palette *c, int i, char name[8], const char **text);

/* The style sheet of all classes, appended to `out`. Local. */
void nami_palette_style(const nami_palette *c, nami_text *out);

#endif
