/* SPDX-License-Identifier: MIT */
/* new.c - allocate an executor by its share, and fill in the initial values. */
#include "base/memory.h"
#include "exec/state.h"

enum { BUCKET = 1 << 20 }; /* bytes of a reduction moved at a time */

/* `bytes` of the backend; NULL for none. */
static void *device(nami_exec *e, nami_tag tag, size_t bytes)
{
    return bytes > 0 ? nami_backend_alloc(e->config.backend, tag, bytes) : NULL;
}

/* The mirror of `block` on the host: itself where the backend is the host. */
static void *mirror(const nami_exec *e, nami_tag tag, void *block, size_t bytes)
{
    if (e->config.backend->host || bytes == 0)
        return block;
    return nami_alloc(tag, bytes);
}

static void allocate(nami_exec *e)
{
    const nami_share *s = &e->share;
    e->parameter = device(e, NAMI_MEM_PARAMETER, s->parameter);
    e->state = device(e, NAMI_MEM_OPTIMIZER, (size_t)s->states * s->state);
    e->gradient = device(e, NAMI_MEM_GRADIENT, (size_t)s->levels * s->gradient);
    e->exchange = device(e, NAMI_MEM_GRADIENT, s->exchange);
    e->packed = device(e, NAMI_MEM_PACKED, s->packed);
    e->activation = device(e, NAMI_MEM_ACTIVATION, s->activation);
    e->transient = device(e, NAMI_MEM_TRANSIENT, s->transient);
    e->tokens = device(e, NAMI_MEM_DATA, s->tokens);
    e->targets = device(e, NAMI_MEM_DATA, s->targets);
    e->side = device(e, NAMI_MEM_DATA, s->side);
    e->losses = device(e, NAMI_MEM_MESSAGE, s->losses);
    e->squares = device(e, NAMI_MEM_MESSAGE, s->squares);
    e->boundary = device(e, NAMI_MEM_MESSAGE, (size_t)s->buffers * s->boundary);
    e->host_tokens = mirror(e, NAMI_MEM_DATA, e->tokens, s->tokens);
    e->host_targets = mirror(e, NAMI_MEM_DATA, e->targets, s->targets);
    e->host_side = mirror(e, NAMI_MEM_DATA, e->side, s->side);
    e->host_losses = mirror(e, NAMI_MEM_MESSAGE, e->losses, s->losses);
    e->host_squares = mirror(e, NAMI_MEM_MESSAGE, e->squares, s->squares);
    e->host_boundary =
        mirror(e, NAMI_MEM_MESSAGE, e->boundary, (size_t)s->buffers * s->boundary);
    e->host_gradient = mirror(e, NAMI_MEM_MESSAGE, e->gradient, s->gradient);
    e->host_exchange = mirror(e, NAMI_MEM_MESSAGE, e->exchange, s->exchange);
    if (!e->config.backend->host && s->shared > 0)
        e->host_shared = nami_alloc(NAMI_MEM_MESSAGE, s->shared);
    e->arranging = s->arrange > 0 ? nami_alloc(NAMI_MEM_DATA, s->arrange) : NULL;
    e->reading = s->reading > 0 ? nami_alloc(NAMI_MEM_DATA, s->reading) : NULL;
    e->merge = nami_alloc(NAMI_MEM_MESSAGE, s->merge);
    e->history = s->history > 0 ? nami_alloc(NAMI_MEM_MESSAGE, s->history) : NULL;
    e->tally = s->tally > 0 ? nami_alloc(NAMI_MEM_DATA, s->tally) : NULL;
}

static void release(nami_exec *e)
{
    void *both[][2] = {{e->host_squares, e->squares},   {e->host_tokens, e->tokens},
                       {e->host_targets, e->targets},   {e->host_losses, e->losses},
                       {e->host_boundary, e->boundary}, {e->host_gradient, e->gradient},
                       {e->host_exchange, e->exchange}, {e->host_side, e->side}};
    void *own[] = {e->parameter,  e->state,     e->gradient, e->exchange, e->packed,
                   e->activation, e->transient, e->tokens,   e->targets,  e->losses,
                   e->boundary,   e->squares,   e->side};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        if (both[i][0] != both[i][1])
            nami_free(both[i][0]);
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (own[i] != NULL)
            nami_backend_free(e->config.backend, own[i]);
    }
    nami_free(e->host_shared);
    nami_free(e->arranging);
    nami_free(e->reading);
    nami_free(e->merge);
    nami_free(e->history);
    nami_free(e->tally);
}

/* Tables of the executor itself. */
static void make_tables(nami_exec *e)
{
    const nami_share *s = &e->share;
    int most = 1;
    size_t pieces = 2 * (size_t)s->stages + 1;
    size_t params = (size_t)s->params + 1, stages = (size_t)s->stages + 1;
    for (int i = 0; i < s->stages; i++) {
        most = s->stage[i].uses > most ? s->stage[i].uses : most;
        pieces += 2 * (size_t)s->stage[i].uses; /* of sums, and of weights */
    }
    e->pointer = nami_calloc(NAMI_MEM_OTHER, 2 * (size_t)most, sizeof *e->pointer);
    e->message =
        nami_calloc(NAMI_MEM_OTHER, (size_t)s->buffers + 1, sizeof *e->message);
    e->requests = nami_calloc(NAMI_MEM_OTHER, (size_t)(s->buffers * s->parts_most) + 1,
                              sizeof *e->requests);
    e->sums = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *e->sums);
    e->piece = nami_calloc(NAMI_MEM_OTHER, pieces, sizeof *e->piece);
    e->group =
        nami_calloc(NAMI_MEM_OTHER, (size_t)e->config.layout->window, sizeof *e->group);
    e->read = nami_calloc(NAMI_MEM_OTHER, (size_t)s->units + 1, sizeof *e->read);
    e->kernels = nami_calloc(NAMI_MEM_OTHER, params, sizeof *e->kernels);
    e->moves = nami_calloc(NAMI_MEM_OTHER, params, sizeof *e->moves);
    e->add_terms = nami_calloc(NAMI_MEM_OTHER, params, sizeof *e->add_terms);
    e->shrink = nami_calloc(NAMI_MEM_OTHER, params, sizeof(*e->shrink));
    e->exchanged =
        nami_calloc(NAMI_MEM_OTHER, (size_t)s->moves + 1, sizeof *e->exchanged);
    for (int b = 0; b < s->buffers; b++) {
        e->message[b].data = e->boundary + (size_t)b * s->boundary;
        e->message[b].host = e->host_boundary + (size_t)b * s->boundary;
        e->message[b].request = e->requests + (size_t)b * (size_t)s->parts_most;
    }
}

static void free_tables(nami_exec *e)
{
    nami_free(e->pointer);
    nami_free(e->message);
    nami_free(e->requests);
    nami_free(e->sums);
    nami_free(e->piece);
    nami_free(e->group);
    nami_free(e->read);
    nami_free(e->kernels);
    nami_free(e->moves);
    nami_free(e->add_terms);
    nami_free((void *)e->shrink);
    nami_free(e->exchanged);
}

static nami_status prepare_add(nami_exec *e, int64_t count, const nami_prepared **out)
{
    nami_arg_vector a = {.wide = e->config.layout->wide, .count = count};
    return nami_backend_prepare(e->config.backend, NAMI_ADD, &a, out);
}

/* Kernels that move weights; statistics stay. */
static nami_status prepare_moves(nami_exec *e, int i)
{
    const nami_layout *l = e->config.layout;
    bool predicted = l->recipe.weights == NAMI_WEIGHTS_PREDICT;
    if (!nami_share_moves(&e->blueprint))
        return NAMI_OK;
    return nami_predict_prepare(e->config.optim, e->config.backend, l->wide,
                                e->share.param[i].own.count, predicted, &e->moves[i]);
}

/* Squares of a slice are summed block by block: of whole blocks, and of what is left. */
static nami_status prepare_blocks(nami_exec *e, int i)
{
    const int64_t block = NAMI_SQUARES_BLOCK, count = e->share.param[i].own.count;
    nami_optim_kernels last;
    NAMI_TRY(nami_optim_prepare(e->config.optim, e->config.backend,
                                e->config.layout->wide, block, &e->block));
    NAMI_TRY(nami_optim_prepare(e->config.optim, e->config.backend,
                                e->config.layout->wide,
                                count - (count - 1) / block * block, &last));
    e->kernels[i].squares = last.squares;
    return NAMI_OK;
}

static nami_status prepare(nami_exec *e)
{
    const nami_share *s = &e->share;
    for (int i = 0; i < s->stages; i++) {
        if (s->stage[i].sum_count > 0)
            NAMI_TRY(prepare_add(e, s->stage[i].sum_count, &e->sums[i].add));
    }
    for (int i = 0; i < s->params; i++) {
        const nami_share_param *h = &s->param[i];
        const int64_t count = h->own.count;
        if (count == 0)
            continue;
        NAMI_TRY(nami_optim_prepare(e->config.optim, e->config.backend,
                                    e->config.layout->wide, count, &e->kernels[i]));
        if (count < h->count)
            NAMI_TRY(prepare_blocks(e, i));
        NAMI_TRY(prepare_moves(e, i));
        const bool statistic = e->config.model->param[h->param].statistic;
        const nami_arg_vector a = {.wide = e->config.layout->wide, .count = count};
        if (h->terms > 1 || statistic)
            NAMI_TRY(prepare_add(e, count, &e->add_terms[i]));
        if (statistic)
            NAMI_TRY(
                nami_backend_prepare(e->config.backend, NAMI_SCALE, &a, &e->shrink[i]));
    }
    return NAMI_OK;
}

/* What was allocated is what was predicted, tag by tag. */
static void check_balance(const nami_exec *e, const size_t before[NAMI_MEM_TAGS])
{
    for (int t = 0; t < NAMI_MEM_TAGS; t++) {
        if (t != NAMI_MEM_OTHER)
            NAMI_CHECK(nami_memory_now((nami_tag)t) - before[t] == e->share.bytes[t]);
    }
}

/* --- initial values --- */

enum { PIECE = 65536 }; /* elements made at a time */

/* Elements of parameter `h` from `from` on, as the backend keeps them. */
static void put_piece(nami_exec *e, const nami_share_param *h, int64_t from,
                      int64_t count, float *narrow, double *wide)
{
    const void *value = narrow;
    nami_model_init(e->config.model, h->param, e->config.seed, from, count, narrow);
    for (int64_t i = 0; e->config.layout->wide == NAMI_F64 && i < count; i++) {
        wide[i] = narrow[i];
        value = wide;
    }
    nami_backend_copy(e->config.backend, 0,
                      e->parameter + h->weight + (size_t)from * e->share.wide, value,
                      (size_t)count * e->share.wide);
    nami_exec_finish_lane(e);
}

static void initialise(nami_exec *e)
{
    const nami_share *s = &e->share;
    float *narrow = nami_alloc(NAMI_MEM_OTHER, PIECE * sizeof *narrow);
    double *wide = nami_alloc(NAMI_MEM_OTHER, PIECE * sizeof *wide);
    if (s->parameter > 0) {
        nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, e->parameter,
                          s->parameter);
        nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, e->state,
                          (size_t)s->states * s->state);
        nami_backend_zero(e->config.backend, NAMI_LANE_COMPUTE, e->gradient,
                          (size_t)s->levels * s->gradient);
    }
    for (int i = 0; i < s->params; i++) {
        int64_t count = s->param[i].count;
        for (int64_t from = 0; from < count; from += PIECE)
            put_piece(e, &s->param[i], from,
                      count - from < PIECE ? count - from : PIECE, narrow, wide);
    }
    nami_free(narrow);
    nami_free(wide);
}

/* A tag for each message of a step: keys of the schedule, then uses of parameters. */
static nami_status check_tags(const nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    const int64_t need = nami_schedule_keys(&l->train) + e->blueprint.uses;
    if (need < nami_comm_tags(e->config.comm))
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN,
                     "a step of %d stages and %d micro-batches needs %lld message "
                     "tags; this MPI has %d",
                     nami_layout_stages(l), l->train.recipe.microbatches,
                     (long long)need, nami_comm_tags(e->config.comm));
}

static nami_status set_up(nami_exec *e)
{
    const nami_exec_config *c = &e->config;
    size_t before[NAMI_MEM_TAGS];
    int ranks = nami_layout_ranks(c->layout);
    if (nami_comm_size(c->comm) != ranks)
        return nami_fail(NAMI_EINPUT, "the layout is for %d ranks, but there are %d",
                         ranks, nami_comm_size(c->comm));
    e->position = nami_layout_position(c->layout, e->rank);
    e->replica = nami_layout_replica(c->layout, e->rank);
    NAMI_TRY(
        nami_blueprint_make(c->layout, c->model, c->optim, c->backend, &e->blueprint));
    NAMI_TRY(check_tags(e));
    NAMI_TRY(nami_share_make(&e->blueprint, e->position, e->replica, &e->share));
    for (int t = 0; t < NAMI_MEM_TAGS; t++)
        before[t] = nami_memory_now((nami_tag)t);
    allocate(e);
    check_balance(e, before);
    make_tables(e);
    nami_rings_open(e);
    NAMI_TRY(prepare(e));
    initialise(e);
    nami_exec_pack(e);
    return NAMI_OK;
}

/* Of the position's ranks, where there are several. */
static nami_status open_reducer(nami_exec *e)
{
    const nami_layout *l = e->config.layout;
    bool several = nami_layout_replicas(l, e->position) > 1;
    if (nami_layout_replicas_most(l) == 1)
        return NAMI_OK;
    NAMI_TRY(nami_reducer_open(e->config.comm, several ? e->position : -1, BUCKET, 0,
                               &e->reducer));
    nami_spans_open(e);
    return nami_statistics_open(e);
}

nami_status nami_exec_new(const nami_exec_config *config, nami_exec **out)
{
    nami_exec *e = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *e);
    e->config = *config;
    e->rank = nami_comm_rank(config->comm);
    if (e->config.bucket == 0)
        e->config.bucket = BUCKET;
    nami_status status = nami_comm_settle(config->comm, set_up(e));
    if (status == NAMI_OK)
        status = open_reducer(e);
    if (status != NAMI_OK) {
        nami_exec_free(e);
        e = NULL;
    }
    *out = e;
    return status;
}

void nami_exec_free(nami_exec *e)
{
    if (e == NULL)
        return;
    if (e->reducer != NULL)
        nami_reducer_close(e->reducer);
    nami_statistics_close(e);
    release(e);
    nami_free(e->shadow);
    nami_free(e->shadowed);
    nami_spans_close(e);
    free_tables(e);
    nami_rings_close(e);
    nami_variants_free(e);
    nami_share_free(&e->share);
    if (e->blueprint.layout != NULL)
        nami_blueprint_free(&e->blueprint);
    nami_free(e);
}
