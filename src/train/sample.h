/* SPDX-License-Identifier: MIT */
/* sample.h - a trained model that continues tokens, in one process without MPI. */
#ifndef NAMI_TRAIN_SAMPLE_H
#define NAMI_TRAIN_SAMPLE_H

#include "train/options.h"

typedef struct nami_speaker nami_speaker;

/* Load the parameters of the checkpoint at `path` into a model as its deck says; `settings` are those of that deck.
 * `threads`: of the backend. Local. Status: NAMI_ERESTART, NAMI_EENV. */
nami_status nami_speaker_open(const char *path, const nami_settings *settings,
                              int threads, nami_speaker **out);
void nami_speaker_close(nami_speaker *s); /* NULL allowed */

/* How a token is chosen. */
typedef struct nami_choice {
    double temperature; /* 0: the likeliest */
    int64_t top;        /* of the likeliest tokens only; 0: all */
    uint64_t seed;
} nami_choice;

/* The token that follows token[0..count), number `index` of the sample; count >= 1, each below the vocabulary.
 * Only the last `context` tokens are seen. Local. Status: NAMI_ENUMERIC when the logits are not finite. */
nami_status nami_speaker_next(nami_speaker *s, const nami_choice *choice,
                              const int32_t *token, int64_t count, int64_t index,
                              int32_t *out);

#endif
