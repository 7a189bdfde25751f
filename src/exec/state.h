/* SPDX-License-Identifier: MIT */
/* state.h - inside exec/: what an executor is made of, and the steps that its files offer each other. */
#ifndef NAMI_EXEC_STATE_H
#define NAMI_EXEC_STATE_H

#include "exec/exec.h"
#include "exec/share.h"
#include "optim/predict.h"

/* Lanes of a device: copies to and from the host run beside the computation. */
enum { NAMI_LANE_COMPUTE, NAMI_LANE_OUT, NAMI_LANE_IN };

/* Where a value of a boundary is on its way. On a host backend it is never LEAVING, ARRIVED or ENTERING. */
typedef enum nami_transit {
    NAMI_AT_REST,
    NAMI_LEAVING,  /* being copied from the device, after the launches that make it */
    NAMI_SENT,     /* MPI has it */
    NAMI_EXPECTED, /* MPI will bring it */
    NAMI_ARRIVED, /* on the host; launches may still use the buffer for its value before */
    NAMI_ENTERING /* being copied to the device; launches are told to begin after that */
} nami_transit;

typedef struct nami_message {
    void *data; /* [boundary bytes] memory of the backend */
    void *host; /* where MPI reads and writes; data itself on a host backend */
    nami_transit transit;
    nami_request *request;        /* [share.parts_most] */
    const nami_layout_part *part; /* [parts] its other ends */
    int parts;
    nami_event busy;    /* the last launches that read or write data */
    nami_event event;   /* LEAVING: the copy; ENTERING: a mark behind it */
    nami_action action; /* the last send or receive */
    int tag;
} nami_message;

typedef enum nami_sums_state {
    NAMI_SUMS_GROWING,
    NAMI_SUMS_COMPLETE, /* on this replica; it is on its way to the host and over replicas */
    NAMI_SUMS_SHARED /* it is complete; what other positions wait for was sent */
} nami_sums_state;

/* Partial sums of one stage's gradients: a stack of complete ones, and the one that grows above it. */
typedef struct nami_sums {
    int weight[32]; /* [depth] partials in each complete sum */
    int depth;
    nami_sums_state state;
    int added;                /* backward passes in the growing sum */
    int open;                 /* uses whose sums grow yet, see nami_walk_open */
    int kept_back;            /* uses at the start whose sums are not handed over yet */
    const nami_prepared *add; /* a += b over the stage's sums */
    /* with slices (gather.c) */
    /* [uses + 1] those of each use's sum, one after the other */
    nami_reducer_span **span;
    nami_reducer_span *weights; /* those of updated weights: from the first on, */
    nami_reducer_span *unsent;  /* not on their way yet, */
    nami_reducer_span *end;     /* to the last */
    int last;                   /* pieces up to its last one; 0: none */
    int64_t job;                /* of the reducer: its newest */
} nami_sums;

/* A piece on its way, to the host, then over replicas: complete sums, or weights of slices. */
typedef struct nami_piece {
    int local;
    bool gathers;                  /* weights */
    size_t at, bytes;              /* of sums, in a gradient buffer */
    const nami_reducer_span *span; /* [spans] with slices */
    int spans;
    nami_event copied; /* to the host */
} nami_piece;

/* The versions of a stage's weights, and what its units read. Numbers count the updates of a window. */
typedef struct nami_ring {
    int base;         /* slot of version number 0 */
    int made;         /* updates so far */
    int forwards;     /* so far */
    int32_t *number;  /* [versions] of the version in each slot */
    int32_t *read[2]; /* [units] number that the forward, the backward read */
    bool *early;      /* [units] the forward ran before the first update */
    double moved_by, moved_rate; /* what the slot of moved weights was made for, */
    int moved_made;              /* behind so many updates; -1: nothing */
    nami_exec_staleness seen;
} nami_ring;

/* An update of a window. */
typedef struct nami_group {
    /* targets of each loss; the first -1: not yet */
    int64_t counted[NAMI_MODEL_LOSSES];
    double scale[NAMI_MODEL_LOSSES]; /* 1 / counted; 0 where there are none */
} nami_group;

/* Lists of a window that is shorter than the layout's. */
typedef struct nami_variant {
    int count;        /* updates */
    nami_route route; /* tasks of its own, else as share.train */
} nami_variant;

/* Something that was launched and is timed when a device is through with it. */
typedef struct nami_timing {
    nami_event first, last; /* marks before and behind */
    nami_action action;
    nami_phase phase;
    double aside; /* as of nami_timer */
} nami_timing;

/* not resolved at once, at most; a backend remembers more marks */
enum { NAMI_TIMINGS = 64 };

/* The beginning of something timed. */
typedef struct nami_timer {
    double start;     /* host backend */
    nami_event first; /* device: a mark */
    double aside;     /* seconds in between that are of NAMI_PHASE_REDUCE */
} nami_timer;

struct nami_exec {
    nami_exec_config config;
    nami_blueprint blueprint;
    nami_share share;
    int rank, replica, position;
    nami_reducer *reducer; /* NULL with one replica */
    nami_reducer *sharing; /* of numbers inside an action; NULL: there are none */
    nami_action shares;    /* the action under way that waits for it */

    /* memory of the backend, as share.h lays it out */
    char *parameter, *state, *gradient, *exchange, *packed, *activation, *transient;
    int32_t *tokens, *targets; /* [micro-batches here][slices][micro][time / slices] */
    int32_t *side;             /* [samples held][side] of each stage, see share.h */
    int32_t *reading;          /* [micro][words], on the host; NULL: no side words */
    int32_t *arranging;        /* [micro][time], on the host; NULL for whole samples */
    /* [3 losses][micro-batches here][slices][micro]: of each loss itself, best, five */
    double *losses;
    double *squares; /* [share.square] */
    char *boundary;  /* [buffers][boundary bytes] */
    /* their mirrors on the host; the same memory on a host backend */
    int32_t *host_tokens, *host_targets, *host_side;
    double *host_losses, *host_squares;
    char *host_boundary, *host_gradient, *host_exchange;
    double *host_shared; /* [share.shared] on the host; NULL on a host backend */

    nami_message *message;  /* [buffers] */
    nami_request *requests; /* [buffers][share.parts_most] */
    nami_sums *sums;        /* [stages] */
    /* [pieces_most] in the order of their actions, which all replicas share */
    nami_piece *piece;
    int pieces, started;     /* there; which are on their way over replicas */
    nami_reducer_span *span; /* of all stages */
    nami_ring *ring;         /* [stages] */
    nami_group *group;       /* [layout.window] */
    /* [layout.window][params] squares of each update; NULL with a flush */
    double *history;
    int32_t *tally;   /* [micro][targets] to be counted; NULL: not here */
    nami_event *read; /* [slots of units] copies of tokens and targets to a device */
    nami_variant *variant; /* [variants] */
    int variants;
    const nami_route *route; /* of the list under way */
    void *nan;               /* of poison: as long as a slot; NULL */
    void **pointer;          /* [2 * uses of the largest stage] of the call under way */
    nami_optim_kernels *kernels;     /* [params] */
    nami_predict_kernels *moves;     /* [params] */
    const nami_prepared **add_terms; /* [params] a += b; NULL where there is one term */
    const nami_prepared **shrink; /* [params] SCALE of a statistic; NULL for others */
    nami_optim_kernels block;     /* squares of a whole block; with slices */
    nami_request *exchanged;      /* [moves] */

    /* [3 losses][batch] of each loss itself, best, five; [blueprint.square] squares, [replicas][losses] counted targets; of
     * a window each update: [3 losses][batch], [model params], [losses] */
    double *merge;
    nami_request counting, merging;
    nami_event lane_end; /* that nami_exec_finish_lane waits for */

    nami_timing timing[NAMI_TIMINGS]; /* a ring */
    uint64_t timings, timed;          /* put in; resolved */
    double idle;                      /* from when the device has nothing to do */

    /* of a device: parameters and states as nami_exec_array hands them out; NULL until then */
    char *shadow;
    /* [params * (1 + states)] handed out since the last step or refresh */
    bool *shadowed;

    /* of the step under way */
    bool train, counted, settled;
    nami_status status;
    int64_t step;       /* the first of a window */
    const double *rate; /* [updates] */
    double clip;
    int64_t samples; /* of a step that count */
    int64_t counted_here
        [NAMI_MODEL_LOSSES]; /* targets of this rank, of an evaluation whose samples are read as they come */
    int units; /* of the window */
    const nami_exec_source *source;
    nami_exec_result result;
};

/* --- wait.c --- */

/* Something to wait for. `describe` completes "rank 3 (position 1) waits for ...". */
typedef struct nami_awaited {
    bool (*ready)(nami_exec *e, int number);
    void (*describe)(const nami_exec *e, int number, nami_text *out);
    int number;
    nami_phase phase;
} nami_awaited;

/* Let messages and reductions move. Local. */
void nami_exec_progress(nami_exec *e);

/* Wait politely; ends the program with NAMI_ELOST after config.stall_seconds. Local. */
void nami_exec_wait(nami_exec *e, const nami_awaited *w);

/* Wait until the backend has done all that was launched for computation. Local. */
void nami_exec_finish_lane(nami_exec *e);

/* --- timing.c --- */

/* Time what is launched between begin and end; `last` is a mark behind it (0 on a host backend). A device's times
 * become known later: nami_timing_progress takes note of those that are; waits are the gaps between them. Local. */
nami_timer nami_timing_begin(nami_exec *e);
void nami_timing_end(nami_exec *e, nami_timer t, nami_action a, nami_phase phase,
                     nami_event last);
void nami_timing_progress(nami_exec *e);

/* --- statistics.c: what replicas sum inside an action --- */

/* Collective, where the layout shares statistics. */
nami_status nami_statistics_open(nami_exec *e);
void nami_statistics_close(nami_exec *e);

/* Sum over replicas what the walk of `task` left, if anything, and put the wait aside in *timer. Local, but waits for the
 * same action of the other replicas. */
void nami_statistics_share(nami_exec *e, const nami_task *task, const nami_walk *w,
                           nami_timer *timer);

/* --- message.c --- */

/* Start the send or receive of `task` from or into buffer `b`, which is at rest. Local. */
void nami_message_start(nami_exec *e, const nami_task *task, int b);

/* Wait until buffer `b` (-1: none) is at rest: received, or free again. Local. */
void nami_message_wait(nami_exec *e, int b);

/* Let launches to come read buffer `b` (-1: none): wait until its value is here, or on its way to the device. Local. */
void nami_message_use(nami_exec *e, int b);

/* Advance all buffers that are under way. Local. */
void nami_message_progress(nami_exec *e);

/* --- gradient.c --- */

/* Bytes from the start of a gradient buffer plus its level: where stage `local` adds now. Local. */
char *nami_sums_growing(nami_exec *e, int local);

/* Before and after each action that adds to gradients; in between, when a walk has gone on that completes the sums of
 * uses from `open` on, and the sums are as they go over replicas. Local. */
void nami_sums_open(nami_exec *e, int local);
void nami_sums_hand(nami_exec *e, int local, int open);
void nami_sums_close(nami_exec *e, int local);

/* Nothing is summed yet. Local. */
void nami_sums_begin(nami_exec *e);

/* A training step begins: post the receives of sums that other positions will send. Local. */
void nami_sums_expect(nami_exec *e);

/* Let sums over replicas move; when all started ones are complete, send what other positions wait for and
 * return true. Local. */
bool nami_sums_progress(nami_exec *e);

/* Combine the partials and start the sum over replicas. Local. */
void nami_sums_reduce(nami_exec *e, int local);

/* Complete all sums: over replicas, copies of the model, and the uses of a parameter. Collective in effect. */
void nami_sums_settle(nami_exec *e);

/* Complete the sums of stage `local` over replicas and uses, for an update of that stage alone; the next ones may grow.
 * Local, but waits for other replicas. */
void nami_sums_finish(nami_exec *e, int local);

/* The gradient of the own slice of parameter `i` of the share, complete. Local. */
char *nami_sums_of(nami_exec *e, int i);

/* --- gather.c: slices of replicas; nothing to do without --- */

/* Note the slices of all sums; behind the tables and the reducer. Local. */
void nami_spans_open(nami_exec *e);
void nami_spans_close(nami_exec *e);

/* An update of a stage begins; parameter `i` was updated into a slot of its stage; the update ends. Full pieces go on their way
 * to the other replicas. Local. */
void nami_gather_begin(nami_exec *e, int local);
void nami_gather_add(nami_exec *e, int i, int slot);
void nami_gather_end(nami_exec *e, int local);

/* Wait until the weights of a stage are here from all replicas. Local, but waits for them. */
void nami_gather_finish(nami_exec *e, int local, int slot);

/* --- tell.c --- */

/* Count the targets of this rank and start to merge the counts; wait for them. Collective in effect. */
void nami_counts_start(nami_exec *e);
void nami_counts_wait(nami_exec *e);

/* The scales of an update from its counted targets. Local. */
nami_group nami_group_of(const int64_t counted[NAMI_MODEL_LOSSES]);

/* Losses and squares are on the host, when all that was launched is done. Local. */
void nami_tell_fetch(nami_exec *e);

/* This rank's losses, best and five of update k (0: of a step) into to [3 losses][batch], by global sample. Local. */
void nami_tell_losses(const nami_exec *e, int k, double *to);

/* Merge the first `count` numbers of `merge` over all ranks. Collective in effect. */
void nami_tell_merge(nami_exec *e, int count);

/* Losses and hits of a step, and what they were counted over, into *out. row [3 losses][batch]. Local.
 * Status: NAMI_EINPUT nothing was counted, NAMI_ENUMERIC a loss is not finite. */
nami_status nami_exec_judge(const nami_exec *e, const double *row,
                            const int64_t counted[NAMI_MODEL_LOSSES], int64_t step,
                            nami_exec_result *out);

/* The square of the norm of a parameter's gradient. Local. Status: NAMI_ENUMERIC it is not finite. */
nami_status nami_exec_judge_square(const nami_exec *e, double square, int param,
                                   int64_t step);

/* --- settle.c --- */

/* Merge losses and squares over all ranks; fills e->result, e->clip and e->status. Collective in effect. */
void nami_exec_settle(nami_exec *e);

/* The sum of squares of a parameter, from those that all ranks know. Local. */
double nami_exec_square(const nami_exec *e, int param);

/* --- update.c --- */

/* What the optimiser is told for an update. */
typedef struct nami_update {
    int local;    /* stage */
    int from, to; /* slots of its weights: read, written */
    int64_t step;
    double rate;
    double gap;  /* task.gap */
    double clip; /* without a flush; else it follows from e->result */
} nami_update;

/* Optimiser step of the parameters, or of their own slices, that a stage updates. Local. */
void nami_exec_update(nami_exec *e, const nami_update *u);

/* --- ring.c: versions of the weights --- */

void nami_rings_open(nami_exec *e);
void nami_rings_close(nami_exec *e);

/* The slot in memory of a slot of the lists. Local. */
static inline int nami_ring_slot(const nami_exec *e, int local, int version)
{
    return (e->ring[local].base + version) % e->share.stage[local].versions;
}

/* Parameter `i` of the share in a slot of its stage. Local. */
static inline char *nami_ring_weight(const nami_exec *e, int i, int slot)
{
    const nami_share_param *h = &e->share.param[i];
    return e->parameter + h->weight + (size_t)slot * h->stride;
}

/* Rebuild the packed weights of a slot; of the newest version of all stages, and wait. Local. */
void nami_ring_pack(nami_exec *e, int local, int slot);
void nami_exec_pack(nami_exec *e);

/* A window begins: the newest versions are number 0; it ends: those of `route` with the highest numbers become the
 * newest. Local. */
void nami_rings_begin(nami_exec *e);
void nami_rings_turn(nami_exec *e, const nami_route *route);

/* The slot that a computation reads; moved weights are made where the policy wants them. Local. */
int nami_ring_use(nami_exec *e, const nami_task *task);

/* Before an update of the stage's newest weights, in place, and behind it: the mean of updates, if there is one. Local. */
void nami_ring_before(nami_exec *e, const nami_update *u);
void nami_ring_behind(nami_exec *e, const nami_update *u);

/* A computation was launched, an update of the stage was made, in slot `to`: count. Local. */
void nami_ring_used(nami_exec *e, const nami_task *task);
void nami_ring_made(nami_exec *e, const nami_task *task);

/* --- unit.c: samples of windows --- */

/* Tokens and targets of the unit of an F, read into its slot. Local. */
void nami_unit_read(nami_exec *e, const nami_task *task);

/* Count the targets of an update of the window, of all replicas. Local. */
void nami_group_count(nami_exec *e, int group);

/* --- window.c: what schedules without a flush do themselves --- */

/* UPDATE: wait for the stage's own sums. Local, but waits for other replicas. */
void nami_window_update(nami_exec *e, const nami_task *task);

/* Lists of windows shorter than the layout's. */
void nami_variants_free(nami_exec *e);

/* --- array.c --- */

/* Values change: shadows handed out are old. Local. */
void nami_exec_forget(nami_exec *e);

/* --- step.c --- */

/* Places and pointers of a call of stage `local` with the weights in `slot` for `task` (NULL: packing). Local. */
nami_graph_call nami_exec_call(nami_exec *e, int local, int slot,
                               const nami_task *task);

/* Fill `count` samples of step `number`, the `first`-th of the step on, into *token and *target (either may be NULL);
 * those from e->samples on are padding that does not count. Local. */
nami_status nami_exec_read(nami_exec *e, int64_t number, int64_t first, int64_t count,
                           int32_t *token, int32_t *target);

/* The side words of `count` samples from their words, token [count][words] into side [count][side]. Local. */
void nami_side_take(const nami_exec *e, const int32_t *token, int64_t count,
                    int32_t *side);

/* Begin a list: nothing is summed, counted or settled. End it: everything is at rest. Local. */
void nami_exec_begin(nami_exec *e, int64_t number);
void nami_exec_run(nami_exec *e, const nami_route *route, int pending);

/* Numbers of a row of `losses` */
static inline int64_t nami_exec_pieces(const nami_exec *e)
{
    return (int64_t)(e->share.losses / (size_t)(3 * e->share.sample.losses)) /
           (int64_t)sizeof(double);
}

static inline int nami_exec_rows(const nami_exec *e) /* of losses, best and five */
{
    return 3 * e->share.sample.losses;
}

/* In `merge` of a step: squares by parameter, then counted targets. */
static inline double *nami_merge_squares(const nami_exec *e)
{
    return e->merge + nami_exec_rows(e) * e->config.layout->batch;
}

static inline double *nami_merge_counts(const nami_exec *e)
{
    return nami_merge_squares(e) + e->blueprint.square[e->config.model->params];
}

/* Of this replica and step */
static inline int64_t nami_exec_samples(const nami_exec *e)
{
    return e->share.samples.units * e->share.samples.micro;
}

#endif
