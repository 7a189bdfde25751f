/* SPDX-License-Identifier: MIT */
/* inner.h - names and checks shared by the files of ckpt/. */
#ifndef NAMI_CKPT_INNER_H
#define NAMI_CKPT_INNER_H

#include "ckpt/ckpt.h"

enum { NAMI_CKPT_FORMAT = 1 };

/* Whether this process is the one that looks after names in the directory. Local. */
bool nami_ckpt_leads(const nami_comm *c);

/* Paths of step-%08d.h5 and of what it is called while it is written; freed with nami_free. Local. */
char *nami_ckpt_path(const char *directory, int64_t step);
char *nami_ckpt_temporary(const char *directory, int64_t step);

/* Steps that `directory` has files for, newest first, freed with nami_free; none when there is no directory.
 * Local. Status: NAMI_EENV. */
nami_status nami_ckpt_steps(const char *directory, int64_t **step, int *count);

/* Remove what killed saves left. Local. Status: NAMI_EENV when another process is saving there now. */
nami_status nami_ckpt_clean(const char *directory);

/* Delete all but the newest `keep` complete checkpoints; that of step `own` stays in any case and is one of them, that
 * of `spare` stays too. Local. */
nami_status nami_ckpt_prune(const char *directory, int64_t keep, int64_t own,
                            int64_t spare);

/* Make the directory and those above it. Local. */
nami_status nami_ckpt_make_directory(const char *directory);

/* Whether `path` is the file that this process verified last, unchanged. Local. */
bool nami_ckpt_verified(const char *path);

/* Checksum over all fields of a state. Local. */
int64_t nami_ckpt_state_crc(const nami_ckpt_state *s);

/* NAMI_ERESTART in the place of NAMI_EINPUT: a checkpoint is no input of the user. Local. */
nami_status nami_ckpt_restart(nami_status status);

/* Let ranks wait for slow disks as long as `bytes` may take (0: as before). Local. */
void nami_ckpt_extend(nami_comm *c, double bytes);

/* A part of an array and its checksum. */
typedef struct nami_ckpt_slab {
    int64_t from, count; /* elements */
    int64_t crc;
} nami_ckpt_slab;

/* Join the slabs part[0], part[stride], ... (ranks of them) to the checksum of an array of `count` elements of
 * `width` bytes; false when they leave gaps or overlap. Local; sorts a copy. */
bool nami_ckpt_join(const nami_ckpt_slab *part, int ranks, int stride, int64_t count,
                    int64_t width, int64_t *crc);

#endif
