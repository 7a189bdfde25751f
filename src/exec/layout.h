/* SPDX-License-Identifier: MIT */
/* layout.h - a layout is a value: how one model lies on the ranks, and the bytes that takes.
 *
 * Pure given the model: computed alike on every rank, before anything is allocated; nami plan prints it.
 */
#ifndef NAMI_EXEC_LAYOUT_H
#define NAMI_EXEC_LAYOUT_H

#include "model/model.h"
#include "optim/optim.h"
#include "sched/schedule.h"

typedef struct nami_layout {
    nami_recipe recipe;
    /* lowered and proven: a step, without a flush a whole window */
    nami_schedule train;
    nami_schedule evaluate; /* of the micro-batches of one step */
    int window;             /* updates between drains; 1 with a flush */
    int replicas; /* D with split = microbatch; else 1: the placement says how many ranks a position has */
    int partials; /* A gradient sums a step */
    int *cut;     /* [stages+1] first block of each stage */
    int64_t batch;   /* samples a step, over all replicas */
    int64_t micro;   /* B samples a micro-batch */
    int64_t time;    /* T tokens a sample */
    nami_dtype act;  /* type of activations; bf16 keeps f32 master parameters */
    nami_dtype wide; /* type of parameters, gradients and optimiser state */
    bool recompute;
    bool shares; /* batch statistics are shared by the replicas of a position */
} nami_layout;

/* What a layout is made from: the user's wishes. */
typedef struct nami_layout_request {
    /* of one pipeline; its microbatches, per_update, replicas and recompute are set from the fields below */
    nami_recipe recipe;
    int64_t batch;    /* samples a step, over all replicas */
    int microbatches; /* per step, over all replicas */
    int replicas; /* D of every position, where recipe.stage_replicas says nothing */
    int partials; /* A; 0: as many as each position has replicas that run micro-batches of their own */
    int window; /* updates between drains, not read with a flush; 0: 1 */
    int ranks;  /* must be those of all positions; 0: not checked (nami plan) */
    int cuts; /* 0: cut automatically, so that positions carry nearly equal work; else the stages */
    const int *cut; /* [cuts] first block of each stage, ascending from 0 */
    int64_t time;   /* T tokens a sample; 0: the model's context */
    nami_dtype act;
    bool recompute;
} nami_layout_request;

/* Check the arithmetic, make and prove the lists, cut the model.
 *
 * Local and pure. `out` is zeroed on entry and freed with nami_layout_free; strings of the recipe stay borrowed.
 * Status: NAMI_EINPUT for cuts that cannot be; NAMI_EPLAN when numbers do not divide, ranks do not match, or the
 * schedule or the number of stages does not admit them; always with the arithmetic. */
nami_status nami_layout_make(const nami_layout_request *r, const nami_model *m,
                             nami_layout *out);

/* --- who is who: ranks are numbered position by position, replica by replica (ranks.c; all Local) --- */

int nami_layout_ranks(const nami_layout *l);
int nami_layout_replicas(const nami_layout *l, int position); /* ranks of it, R */
int nami_layout_replicas_most(const nami_layout *l);
int nami_layout_rank(const nami_layout *l, int position, int replica);
int nami_layout_position(const nami_layout *l, int rank);
int nami_layout_replica(const nami_layout *l, int rank);

/* Samples of a step that a rank works on: units 0 .. units - 1 of `micro` samples each; the first sample of unit u is
 * number first + u * stride of the step. */
typedef struct nami_layout_samples {
    int64_t micro, first, stride;
    int units;
} nami_layout_samples;
nami_layout_samples nami_layout_samples_of(const nami_layout *l, int position,
                                           int replica);

/* Values of [micro] samples that go between two ranks of different positions. */
typedef struct nami_layout_part {
    int rank;             /* the other end */
    int64_t first, count; /* samples of the own micro-batch */
} nami_layout_part;

/* Who holds the samples of rank (position, replica) at `peer`: part [nami_layout_replicas(l, peer)]; returns how many,
 * ascending. */
int nami_layout_parts(const nami_layout *l, int position, int replica, int peer,
                      nami_layout_part *part);

/* Elements of the largest boundary between two stages, of one sample and all its token slices; 0: one stage. Local. */
int64_t nami_layout_crossing(const nami_layout *l, const nami_model *m);

/* The lists of a window of `count` <= l->window updates: those of the longest without the units behind, so slots of
 * versions are the same and no more memory is needed. With a flush: l->train. Local. Freed with nami_schedule_free. */
void nami_layout_window(const nami_layout *l, int count, nami_schedule *out);

/* Samples whose statistics a micro-batch shares at `position`: those of all its replicas; 0: only its own. Local. */
int64_t nami_layout_together(const nami_layout *l, int position);

int nami_layout_stages(const nami_layout *l);
int nami_layout_slices(const nami_layout *l); /* K token slices of a sample; 1: whole */

/* Why another D is or is not bit-equal: a sentence for the log, into buf[256]; returns whether the partial sums
 * of this layout combine in the tree that every D dividing A shares. Local. */
bool nami_layout_exact(const nami_layout *l, char buf[256]);

/* Cut the chain of blocks into the stages of `place`, none empty: the largest position carries as little work as a
 * search by single steps from nami_model_cuts finds, then stages are as equal as that allows.
 * Local. cut [stages + 1]. Status: NAMI_EPLAN when stages > blocks. */
nami_status nami_layout_cut(const nami_model *m, int64_t time, const nami_place *place,
                            int *cut);

/* Bytes of one rank of a position, the one with most samples, by tag, exactly as the executor will ask for them; and
 * what a table shows. */
typedef struct nami_budget {
    size_t bytes[NAMI_MEM_TAGS];
    size_t total;
    /* of its stages, for the table; a position may own several stages */
    int first_block, last_block;
    int64_t parameters; /* elements */
    /* of its stages, forward of one micro-batch; mean over the copies of the model */
    double flops;
    int slots; /* activations in flight, sum over its stages */
} nami_budget;

/* [out: positions] Local. Builds and plans the graphs with backend b, allocates nothing that lasts.
 * Status: NAMI_EPLAN, NAMI_EENV. */
nami_status nami_layout_budget(const nami_layout *l, const nami_model *m,
                               const nami_optim_options *o, nami_backend *b,
                               nami_budget *out);
void nami_layout_free(nami_layout *l);

#endif
