/* SPDX-License-Identifier: MIT */
/* ckpt.h - checkpoints: the model by parameter name, not by rank.
 *
 * checkpoints/step-00001000.h5: /parameters/NAME, /optimizer/STATE/NAME, attributes step, samples, key, deck,
 * build, parent, partials, ... Written to a temporary name, checksummed per array (zlib crc32 of each rank's
 * slab combined over the whole array), fsynced, renamed, directory fsynced.
 */
#ifndef NAMI_CKPT_CKPT_H
#define NAMI_CKPT_CKPT_H

#include "base/option.h"
#include "store/store.h"
#include "tensor/tensor.h"

/* [checkpoint] of the deck. */
typedef struct nami_ckpt_options {
    int64_t every; /* steps between saves, 0 = only at the end and on stop */
    int64_t keep;  /* last K kept, >= 1 */
    bool best;     /* also save and keep the one with the best evaluation */
} nami_ckpt_options;
extern const nami_option_table nami_ckpt_option_table;

/* One array of the model, in all ranks' lists in the same order (the whole catalogue). A rank that holds it gives
 * data for [from, from+count); others give count 0. When saving, each element comes from exactly one rank. */
typedef struct nami_ckpt_item {
    const char *group; /* "parameters", "optimizer/m" and other states */
    const char *name;
    nami_shape shape;
    int64_t from, count;
    float *data;
} nami_ckpt_item;

/* What a checkpoint says beside arrays. Texts owned; freed with nami_ckpt_state_free. */
typedef struct nami_ckpt_state {
    int64_t step;   /* steps done */
    int64_t sample; /* global sample counter */
    int64_t seed;
    int64_t partials;
    char *deck; /* resolved deck */
    char *build;
    char *parent; /* path of the checkpoint this run started from, "" */
    char *data;   /* identity of the training set: its checksum and size */
    char
        *numbers; /* what of the results depends on the layout, in words; "": nothing */
    int64_t spare; /* not stored: the file of this step is not deleted; 0: none */
} nami_ckpt_state;

/* Save under directory/step-%08d.h5 and delete all but the newest `keep` valid ones and `spare`. Collective.
 * Status: NAMI_EENV (full disk, file size limit, permissions): the temporary is removed, older ones stay. */
nami_status nami_ckpt_save(nami_comm *c, const char *directory, int64_t keep,
                           const nami_ckpt_state *state, const nami_ckpt_item *item,
                           int items);

/* Path of the newest valid checkpoint in `directory` (checksums verified; broken ones are named in a warning), NULL when
 * there is none. Collective. */
nami_status nami_ckpt_newest(nami_comm *c, const char *directory, char **path);

/* Read every byte of a checkpoint, shared among the ranks, and compare checksums. Collective; c NULL: this process alone.
 * Status: NAMI_ERESTART with what is wrong. */
nami_status nami_ckpt_verify(nami_comm *c, const char *path);

/* Read the state alone, or the arrays into the items' slabs (several ranks may want the same elements; an array that is
 * missing or of another shape is NAMI_ERESTART naming it). Collective; c NULL: this process alone.
 * Loading verifies first, unless this process has just verified that file. */
nami_status nami_ckpt_state_read(nami_comm *c, const char *path,
                                 nami_ckpt_state *state);
nami_status nami_ckpt_load(nami_comm *c, const char *path, const nami_ckpt_item *item,
                           int items);
void nami_ckpt_state_free(nami_ckpt_state *s);

#endif
