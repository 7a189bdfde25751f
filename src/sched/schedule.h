/* SPDX-License-Identifier: MIT */
/* schedule.h - a schedule: the four choices, the placement they give, and the lists.
 *
 * nami_schedule_make: recipe -> placement + compute lists -> lowered, complete lists. Pure: the same
 * recipe gives the same schedule on any rank.
 */
#ifndef NAMI_SCHED_SCHEDULE_H
#define NAMI_SCHED_SCHEDULE_H

#include "base/option.h"
#include "sched/action.h"

typedef enum nami_placement_kind {
    NAMI_PLACE_LINEAR,
    NAMI_PLACE_LOOPING,
    NAMI_PLACE_WAVE,
    NAMI_PLACE_BIDIRECTIONAL,
    NAMI_PLACE_FREE /* whatever the lists of a file say */
} nami_placement_kind;

typedef enum nami_weights {
    NAMI_WEIGHTS_FLUSH,
    NAMI_WEIGHTS_STASH,
    NAMI_WEIGHTS_VERTICAL,
    NAMI_WEIGHTS_2BW,
    NAMI_WEIGHTS_NEWEST,
    NAMI_WEIGHTS_PREDICT,
    NAMI_WEIGHTS_GROUPED
} nami_weights;

typedef enum nami_split { NAMI_SPLIT_MICROBATCH, NAMI_SPLIT_SAMPLE } nami_split;

/* What the list is for. */
typedef enum nami_purpose {
    NAMI_PURPOSE_TRAIN, /* one F and one B (or BI and BW) per stage and unit, then REDUCE and UPDATE */
    NAMI_PURPOSE_EVALUATE /* one F per stage and unit */
} nami_purpose;

/* Everything that determines a schedule. */
typedef struct nami_recipe {
    const char *name; /* preset, e.g. "hanayo"; or "file:PATH" */
    nami_placement_kind placement;
    const char *order; /* name of the generator of the order, e.g. "wave"; borrowed */
    nami_weights weights;
    nami_split split;
    int positions;    /* P */
    int microbatches; /* of a pipeline: M a step; without a flush all units of a window */
    int per_update; /* m: units of an update, divides microbatches; not read with a flush */
    int waves;      /* W, wave placement; else 1 */
    int chunks;     /* V, looping placement; else 1 */
    int slices;     /* K token slices, 1 unless the order says so */
    int replicas;   /* D ranks of every position; 0: 1 */
    bool recompute; /* block-level recomputation inside B; costs one more forward */
    bool zero;      /* replicas update slices: REDUCE_SCATTER and GATHER, not REDUCE */
    /* Lists are borrowed; empty: what is said behind the colon. */
    nami_ints stage_replicas;  /* [positions] R of each: replicas */
    nami_ints depth;           /* [stages] units ahead, order 1f1b: S-1-s */
    nami_ints stage_recompute; /* [stages] 1: R runs the forward again before B: 0 */
} nami_recipe;

/* Whether all units are of one update, which waits for all stages. Local. */
static inline bool nami_recipe_flushes(const nami_recipe *r)
{
    return r->weights == NAMI_WEIGHTS_FLUSH;
}

/* Units of an update: m without a flush, else all. Local. */
static inline int nami_recipe_group(const nami_recipe *r)
{
    return nami_recipe_flushes(r) ? r->microbatches : r->per_update;
}

/* Updates of the lists: 1 with a flush, else U of the window. Local. */
static inline int nami_recipe_updates(const nami_recipe *r)
{
    return r->microbatches / nami_recipe_group(r);
}

/* Whether the replicas of positions go with the split. Local. Status: NAMI_EINPUT or NAMI_EPLAN. */
nami_status nami_recipe_check_place(const nami_recipe *r);

/* Whether per_update divides the units of the window. Local. Status: NAMI_EPLAN with the arithmetic. */
nami_status nami_recipe_check_updates(const nami_recipe *r);

/* "stash". Local. */
const char *nami_weights_name(nami_weights weights);

enum { NAMI_STAGES_MOST = 65535 }; /* an action numbers stages in 16 bits */

/* Which position holds which stage. */
typedef struct nami_place {
    int positions; /* P */
    int stages;    /* S, of one copy */
    int copies;    /* of the model: 1, or 2 when bidirectional */
    int *position; /* [copies][stages]: where stage s of copy c lies */
    int *replicas; /* [positions]: R, ranks of each position */
} nami_place;

/* Place the stages of a recipe. Local; freed with nami_place_free.
 * Status: NAMI_EPLAN when the recipe has no such placement. */
nami_status nami_place_make(const nami_recipe *r, nami_place *out);
void nami_place_free(nami_place *p);

/* Fill replicas[] as the recipe says. Local. */
void nami_place_fill(const nami_recipe *r, nami_place *out);

/* The position of stage s of copy c. Local. */
static inline int nami_place_of(const nami_place *p, int copy, int stage)
{
    return p->position[(int64_t)copy * p->stages + stage];
}

/* The first rank of `position`: ranks are numbered position by position. Local. */
int nami_place_first(const nami_place *p, int position);
int nami_place_ranks(const nami_place *p); /* of all positions. Local. */

/* Pairs of ranks of two neighbouring positions of r and q ranks that have samples in common when each splits
 * `samples` samples (0: very many) among its ranks: the messages of one value. Local. */
int nami_place_pairs(int r, int q, int64_t samples);

/* The stages of `copy` on `position`, ascending, into stage[] (room for p->stages); returns how many. Local. */
int nami_place_local(const nami_place *p, int position, int copy, int *stage);

typedef struct nami_schedule {
    nami_recipe recipe;
    nami_purpose purpose;
    nami_place place;
    nami_list *list;   /* [positions] */
    bool communicates; /* sends and receives are in the lists */
    bool updates;      /* REDUCE and UPDATE are in the lists (train) */
} nami_schedule;

/* A schedule a user can name. One line each in sched/list.c. */
typedef struct nami_preset {
    const char *name;    /* "hanayo" */
    const char *summary; /* one sentence for --help and the manual */
    nami_placement_kind placement;
    const char *order;
    nami_weights weights;
    nami_split split;
} nami_preset;

int nami_presets(void);                                /* how many */
int nami_presets_with_flush(void);                     /* how many, which come first */
const nami_preset *nami_preset_at(int i);              /* 0 <= i < nami_presets() */
const nami_preset *nami_preset_find(const char *name); /* NULL when unknown */

/* Fill `r` from the preset `name`; positions, microbatches, waves, chunks stay as they are.
 * Local. Status: NAMI_EINPUT naming the nearest known schedule. */
nami_status nami_recipe_preset(nami_recipe *r, const char *name);

/* Stages of the recipe: P, V P or 2 W P; 0 when it comes from a file. Local. */
int nami_recipe_stages(const nami_recipe *r);

/* Whether the four choices, the counts and the order go together, and all of it is supported.
 * Local. Status: NAMI_EINPUT or NAMI_EPLAN with the reason. */
nami_status nami_recipe_check(const nami_recipe *r);

/* Compute lists only (train) or forwards only (evaluate). A name "file:PATH" reads the lists instead; then
 * positions and microbatches of the recipe are checked against the file, or 0 to take them from it.
 * Local; `out` is zeroed on entry and freed with nami_schedule_free (also after a failure).
 * Status: NAMI_EPLAN with the arithmetic when the order does not admit the recipe; NAMI_EINPUT for a file. */
nami_status nami_schedule_generate(const nami_recipe *r, nami_purpose purpose,
                                   nami_schedule *out);

/* Add communication, REDUCE and UPDATE to the lists of `in`; what `in` has already (a file may) stays.
 *
 * Local. A receive is posted `ahead` compute actions before the action that needs it (>= 0). Nothing
 * is sent where both stages share a position. REDUCE of a stage follows its last gradient of the step;
 * UPDATE of all stages of a position ends the list. Without a flush REDUCE k and UPDATE k of a stage follow the
 * last gradient of update k, and each action is given the slot of its version. An evaluate list has no REDUCE
 * and no UPDATE.
 * Status: NAMI_EPLAN when a unit has to read weights that no update before it has made. */
nami_status nami_schedule_lower(const nami_schedule *in, int ahead, nami_schedule *out);

/* generate + lower + validate, in one call. Local. */
nami_status nami_schedule_make(const nami_recipe *r, nami_purpose purpose,
                               nami_schedule *out);
void nami_schedule_free(nami_schedule *s);

/* Call visit(context, position, index) for every action of all lists, in an order in which each action
 * follows all that it waits for: the actions before it on its position, the sender's action for a
 * compute action that needs a message (its SEND where the schedule communicates), the REDUCEs of all
 * copies for an UPDATE. Time and memory grow with the number of actions. Local; `visit` may be NULL.
 * Status: NAMI_EPLAN naming a position that can never go on and what it waits for. */
nami_status nami_schedule_walk(const nami_schedule *s,
                               void (*visit)(void *, int, int64_t), void *context);

/* Prove the lists: completeness, dependencies, paired sends and receives with equal keys, no deadlock
 * with zero eager buffering, REDUCE and UPDATE after the last gradient (of their group), weight versions as the
 * policy promises, each in its slot from the update that makes it to its last reader, in-flight bound.
 * Works on compute-only lists (data dependencies across positions) and on lowered ones.
 * Local. Status: NAMI_EPLAN naming position, index, action and reason. */
nami_status nami_schedule_validate(const nami_schedule *s);

/* Most units of stage s held at once between F and B (or BW), as lists order them: the number of
 * activation slots that the executor allocates. Local. */
int nami_schedule_in_flight(const nami_schedule *s, int copy, int stage);

/* Most units of stage s between BI and its BW; 0 when the backward is not split. Local. */
int nami_schedule_in_split(const nami_schedule *s, int copy, int stage);

/* Most messages of a direction (NAMI_RECV_F or NAMI_RECV_B) that stage s has posted and not yet used, as
 * lists order them; 0 when nothing is received. Local. */
int nami_schedule_in_receipt(const nami_schedule *s, int copy, int stage,
                             nami_kind direction);

/* Versions of the weights of stage s that lists need at once: n, the slots of its ring. Version number v (0: what
 * the drain before left; UPDATE k makes k + 1) lies in slot v mod n; 1 with a flush and in an evaluation. Local. */
int nami_schedule_versions(const nami_schedule *s, int copy, int stage);

/* Units times stages of `position` that are held at once at most: activations in flight, in shares of a
 * stage (a token slice counts as one). All units of a stage that recomputes share one. Local. */
int64_t nami_schedule_held(const nami_schedule *s, int position);

/* The same, each unit counted though its stage holds only inputs: what an order promises. Local. */
int64_t nami_schedule_units(const nami_schedule *s, int position);

/* Messages of a step, over all positions and both directions. Local. */
int64_t nami_schedule_messages(const nami_schedule *s);

/* Text form: one line a position, words separated by a blank. CSV form: as torch.distributed.pipelining
 * writes it, cells in list order, without REDUCE and UPDATE, which it has not (without a flush they are there, in our
 * form). Appended to `out`. Local. */
void nami_schedule_print(const nami_schedule *s, nami_text *out);
void nami_schedule_csv(const nami_schedule *s, nami_text *out);

/* Read either form; '#' starts a comment, an empty cell of a CSV is an idle slot. The placement is derived
 * from which position runs which stage. A wrong placement or word is refused here, a wrong order by
 * nami_schedule_validate.
 * Local. Status: NAMI_EINPUT with position, line, word and reason. */
nami_status nami_schedule_read(const char *text, const char *where, nami_schedule *out);
nami_status nami_schedule_read_file(const char *path, nami_schedule *out);

/* Message key of an action that sends or receives: equal on both ends, distinct for distinct messages
 * of one step. 0 <= key < nami_schedule_keys(s). Local. */
int64_t nami_action_key(const nami_schedule *s, nami_action a);
int64_t nami_schedule_keys(const nami_schedule *s);

/* The peer position of a send or receive. Local. */
int nami_action_peer(const nami_schedule *s, nami_action a);

#endif
