/* SPDX-License-Identifier: MIT */
/* state.h - inside exec/: what an executor is made of, and the steps that its files offer each other. */
#ifndef NAMI_EXEC_STATE_H
#define NAMI_EXEC_STATE_H

#include "exec/exec.h"
#include "exec/share.h"

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
    NAMI_SUMS_COMPLETE, /* on this replica; a device still copies it to the host */
    NAMI_SUMS_REDUCING, /* the sum over replicas has started */
    NAMI_SUMS_SHARED    /* it is complete; what other positions wait for was sent */
} nami_sums_state;

/* Partial sums of one stage's gradients: a stack of complete ones, and the one that grows above it. */
typedef struct nami_sums {
    int weight[32]; /* [depth] partials in each complete sum */
    int depth;
    nami_sums_state state;
    int added;                /* backward passes in the growing sum */
    nami_event copied;        /* to the host */
    const nami_prepared *add; /* a += b over the stage's sums */
} nami_sums;

/* Something that was launched and is timed when a device is through with it. */
typedef struct nami_timing {
    nami_event first, last; /* marks before and behind */
    nami_action action;
    nami_phase phase;
} nami_timing;

enum {
    NAMI_TIMINGS = 64
}; /* not resolved at once, at most; a backend remembers more marks */

/* The beginning of something timed. */
typedef struct nami_timer {
    double start;     /* host backend */
    nami_event first; /* device: a mark */
} nami_timer;

struct nami_exec {
    nami_exec_config config;
    nami_blueprint blueprint;
    nami_share share;
    int rank, replica, position;
    nami_reducer *reducer; /* NULL with one replica */

    /* memory of the backend, as share.h lays it out */
    char *parameter, *state, *gradient, *exchange, *packed, *activation, *transient;
    int32_t *tokens, *targets; /* [micro-batches here][slices][micro][time / slices] */
    int32_t *arranging;        /* [micro][time], on the host; NULL for whole samples */
    double *losses;  /* [3][micro-batches here][slices][micro]: losses, best, five */
    double *squares; /* [params here] */
    char *boundary;  /* [buffers][boundary bytes] */
    /* their mirrors on the host; the same memory on a host backend */
    int32_t *host_tokens, *host_targets;
    double *host_losses, *host_squares;
    char *host_boundary, *host_gradient, *host_exchange;

    nami_message *message;  /* [buffers] */
    nami_request *requests; /* [buffers][share.parts_most] */
    nami_sums *sums;        /* [stages] */
    int *order; /* [stages] in which their REDUCEs were reached in this step */
    int reached, started; /* of order: entries; whose sum over replicas has started */
    void **pointer;       /* [2 * uses of the largest stage] of the call under way */
    nami_optim_kernels *kernels;     /* [params] */
    const nami_prepared **add_terms; /* [params] a += b; NULL where there is one term */
    const nami_prepared **shrink; /* [params] SCALE of a statistic; NULL for others */
    nami_request *exchanged;      /* [moves] */

    double *
        merge; /* [3][batch] losses, best, five; [model params] squares, [replicas] counted tokens */
    nami_request counting, merging;
    nami_event lane_end; /* that nami_exec_finish_lane waits for */

    nami_timing timing[NAMI_TIMINGS]; /* a ring */
    uint64_t timings, timed;          /* put in; resolved */
    double idle;                      /* from when the device has nothing to do */

    /* of a device: parameters and states as nami_exec_array hands them out; NULL until then */
    char *shadow;
    bool *
        shadowed; /* [params * (1 + states)] handed out since the last step or refresh */

    /* of the step under way */
    bool train, counted, settled;
    nami_status status;
    int64_t step;
    double rate, scale, clip;
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

/* Before and after each action that adds to gradients. Local. */
void nami_sums_open(nami_exec *e, int local);
void nami_sums_close(nami_exec *e, int local);

/* A training step begins: post the receives of sums that other positions will send. Local. */
void nami_sums_expect(nami_exec *e);

/* Let sums over replicas move; when all started ones are complete, send what other positions wait for and
 * return true. Local. */
bool nami_sums_progress(nami_exec *e);

/* Combine the partials and start the sum over replicas. Local. */
void nami_sums_reduce(nami_exec *e, int local);

/* Complete all sums: over replicas, copies of the model, and the uses of a parameter. Collective in effect. */
void nami_sums_settle(nami_exec *e);

/* The gradient of parameter `i` of the share, complete. Local. */
char *nami_sums_of(nami_exec *e, int i);

/* --- update.c --- */

/* Count the targets of this rank and start to merge the counts; wait for them. Collective in effect. */
void nami_counts_start(nami_exec *e);
void nami_counts_wait(nami_exec *e);

/* Merge losses and squares over all ranks; fills e->result, e->clip and e->status. Collective in effect. */
void nami_exec_settle(nami_exec *e);

/* Optimiser step of the parameters that stage `local` updates. Local. */
void nami_exec_update(nami_exec *e, int local);

/* Rebuild the packed weights of all stages. Local. */
void nami_exec_pack(nami_exec *e);

/* --- array.c --- */

/* Values change: shadows handed out are old. Local. */
void nami_exec_forget(nami_exec *e);

/* --- step.c --- */

/* Places and pointers of a call of stage `local` for `task` (NULL: packing). Local. */
nami_graph_call nami_exec_call(nami_exec *e, int local, const nami_task *task);

static inline int64_t
nami_exec_pieces(const nami_exec *e) /* numbers of a row of `losses` */
{
    return (int64_t)(e->share.losses / (3 * sizeof(double)));
}

static inline int64_t
nami_exec_samples(const nami_exec *e) /* of this replica and step */
{
    return e->share.samples.units * e->share.samples.micro;
}

#endif
