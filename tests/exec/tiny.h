/* SPDX-License-Identifier: MIT */
/* tiny.h - a small GPT of odd sizes, its samples, and runs of it under any layout. */
#ifndef NAMI_TESTS_EXEC_TINY_H
#define NAMI_TESTS_EXEC_TINY_H

#include "../comm/mpi_test.h"

#include <math.h>

#include "base/rng.h"
#include "exec/exec.h"
#include "model/family.h"

#ifndef TINY_TIME
#define TINY_TIME 7 /* a test may bring its own */
#endif

#ifndef TINY_VOCABULARY
#define TINY_VOCABULARY 37
#endif

enum { TINY_STEPS = 20 };

/* What numbers may depend on. */
typedef struct tiny_problem {
    const char *backend;
    nami_dtype act;
    bool tied, recompute;
    double dropout, clip;
    int clip_scope; /* nami_clip_scope */
    int anneal;     /* PipeMare's T1, steps */
    bool correct;   /* and T2 */
    int batch, micros, partials;
    int optimizer; /* nami_optimizer */
    int steps;
} tiny_problem;

/* What they must not depend on. */
typedef struct tiny_way {
    const char *schedule;
    int positions, waves, chunks, replicas;
    int slices; /* 0: whole samples */
    bool zero;
    nami_split split;
    nami_ints stage_replicas, depth, stage_recompute;
    int weights; /* 0: the preset's, else nami_weights + 1 */
    int window;
} tiny_way;

/* What comes out. */
typedef struct tiny_outcome {
    double loss[TINY_STEPS], norm[TINY_STEPS];
    double valid;       /* loss of an evaluation behind the last step */
    int64_t best, five; /* its targets among the largest logits */
    int64_t parameters; /* checksum of all parameters and states */
} tiny_outcome;

/* How runs get their backend; a test may bring its own. */
static nami_status (*tiny_open)(const char *, int, nami_dtype,
                                nami_backend **) = nami_backend_open;
static void (*tiny_close)(nami_backend *) = nami_backend_close;

/* A test may bring a model of its own. */
static nami_model *(*tiny_other)(const tiny_problem *p);

static inline nami_model *tiny_model(const tiny_problem *p)
{
    nami_model *m = NULL;
    if (tiny_other != NULL)
        return tiny_other(p);
    nami_model_options o = {.layers = 8,
                            .width = 12,
                            .heads = 3,
                            .context = TINY_TIME,
                            .vocabulary = TINY_VOCABULARY,
                            .tied = p->tied,
                            .bias = true};
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

/* A Llama of the same depth: for tiny_other. */
static inline nami_model *tiny_llama(const tiny_problem *p)
{
    nami_model *m = NULL;
    nami_model_options o = {.layers = 8,
                            .width = 12,
                            .heads = 3,
                            .kv_heads = 1,
                            .mlp_width = 20,
                            .rope_theta = 100,
                            .norm_eps = 1e-5,
                            .context = TINY_TIME,
                            .vocabulary = TINY_VOCABULARY,
                            .tied = p->tied};
    assert_ok(nami_model_of(&nami_family_llama, &o, p->dropout, &m));
    return m;
}

static inline nami_optim_options tiny_optim(const tiny_problem *p)
{
    return (nami_optim_options){.optimizer = p->optimizer,
                                .lr = 1e-2,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .momentum = 0.9,
                                .alpha = 0.95,
                                .centered = p->optimizer == NAMI_OPTIMIZER_RMSPROP,
                                .eps = 1e-8,
                                .decay = 0.1,
                                .clip = p->clip,
                                .clip_scope = p->clip_scope,
                                .anneal = p->anneal,
                                .correct = p->correct,
                                .correct_decay = 0.135};
}

/* Text of period 5 with noise that depends on step, sample and place alone. */
static inline int32_t tiny_token(int64_t step, int64_t sample, int64_t t)
{
    uint64_t noise = nami_mix(nami_mix((uint64_t)step, (uint64_t)sample), (uint64_t)t);
    return noise % 4 == 0 ? (int32_t)(noise / 4 % TINY_VOCABULARY)
                          : (int32_t)((sample + t) % 5 * 7);
}

static inline nami_status tiny_read(void *context, int64_t step, int64_t first,
                                    int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    for (int64_t i = 0; i < count * TINY_TIME; i++) {
        int64_t s = first + i / TINY_TIME, t = i % TINY_TIME;
        if (token != NULL)
            token[i] = tiny_token(step, s, t);
        if (target != NULL)
            target[i] = tiny_token(step, s, t + 1);
    }
    return NAMI_OK;
}

static inline nami_status tiny_layout(const tiny_problem *p, const tiny_way *w,
                                      const nami_model *m, nami_layout *out)
{
    nami_layout_request r = {.recipe = {.positions = w->positions,
                                        .waves = w->waves,
                                        .chunks = w->chunks,
                                        .slices = w->slices > 0 ? w->slices : 1},
                             .batch = p->batch,
                             .microbatches = p->micros,
                             .replicas = w->replicas,
                             .partials = p->partials,
                             .act = p->act,
                             .window = w->window,
                             .recompute = p->recompute};
    NAMI_TRY(nami_recipe_preset(&r.recipe, w->schedule));
    r.recipe.zero = w->zero;
    r.recipe.stage_replicas = w->stage_replicas;
    r.recipe.depth = w->depth;
    r.recipe.stage_recompute = w->stage_recompute;
    if (w->split == NAMI_SPLIT_SAMPLE)
        r.recipe.split = w->split;
    if (w->weights > 0)
        r.recipe.weights = (nami_weights)(w->weights - 1);
    return nami_layout_make(&r, m, out);
}

/* FNV-1a over 64-bit words is enough to tell any two bit patterns apart. */
static inline uint64_t tiny_hash(uint64_t h, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        h = (h ^ bits) * 0x100000001b3u;
    }
    return h;
}

/* What one rank holds of one array: a hash for each stretch of it. */
enum { TINY_STRETCH = 65536 };
typedef struct tiny_piece {
    int64_t from, count;
    /* of the hashes of its stretches, each of which does not depend on the others */
    int64_t hash;
    bool owned;
} tiny_piece;

/* Hashes of the stretches of elements [from, from + count), which begins with one, mixed with their numbers and added
 * up. */
static inline int64_t tiny_stretches(const float *x, int64_t from, int64_t count)
{
    uint64_t sum = 0;
    assert_int_equal(from % TINY_STRETCH, 0);
    for (int64_t at = 0; at < count; at += TINY_STRETCH) {
        int64_t n = count - at < TINY_STRETCH ? count - at : TINY_STRETCH;
        sum += nami_mix(tiny_hash(0xcbf29ce484222325u, x + at, n),
                        (uint64_t)((from + at) / TINY_STRETCH));
    }
    return (int64_t)sum;
}

/* Checksum of the whole model on every rank of c; its owners have each element once, and copies that a parameter has elsewhere
 * must equal them. */
static inline int64_t tiny_checksum(nami_comm *c, nami_exec *e, const nami_model *m,
                                    int states)
{
    int ranks = nami_comm_size(c), arrays = m->params * (states + 1);
    size_t bytes = (size_t)arrays * sizeof(tiny_piece);
    tiny_piece *own = calloc(1, bytes), *all = calloc((size_t)ranks, bytes);
    for (int i = 0; i < arrays; i++) {
        const nami_exec_slab x = nami_exec_array(e, i / (states + 1), i % (states + 1));
        own[i] = (tiny_piece){.from = x.from, .count = x.count, .owned = x.owner};
        if (x.count > 0)
            own[i].hash = tiny_stretches(x.data, x.from, x.count);
    }
    nami_comm_gather(c, own, bytes, all);
    uint64_t sum = 0;
    for (int i = 0; i < arrays; i++) {
        const int64_t whole = nami_shape_count(&m->param[i / (states + 1)].shape);
        int64_t count = 0;
        uint64_t hash = 0;
        for (int r = 0; r < ranks; r++) {
            const tiny_piece *p = &all[r * arrays + i];
            count += p->owned ? p->count : 0;
            hash += p->owned ? (uint64_t)p->hash : 0;
        }
        assert_int_equal(count, whole);
        for (int r = 0; r < ranks; r++) {
            if (all[r * arrays + i].count == whole)
                assert_int_equal(all[r * arrays + i].hash, (int64_t)hash);
        }
        sum = nami_mix(sum, hash);
    }
    free(own);
    free(all);
    return (int64_t)sum;
}

/* Called in front of each window, and behind the last (step = all). */
static void (*tiny_between)(nami_exec *e, const nami_model *m, int states,
                            int64_t step);

/* What every executor of a test gets. */
static size_t tiny_bucket;
static bool tiny_poison;
static int tiny_first; /* step */
static nami_status (*tiny_source)(void *, int64_t, int64_t, int64_t, int32_t *,
                                  int32_t *) = tiny_read;
static nami_status tiny_fails; /* how the last window ends; NAMI_OK: all train */

/* Learning rate of a step. */
static inline double tiny_rate(int64_t step)
{
    return 1e-2 * (1 - 0.03 * (double)step);
}

/* Steps from `*i` on in one go: those of a window, as many as are left. */
static inline void tiny_steps(nami_exec *e, const tiny_problem *p, const tiny_way *w,
                              const nami_exec_source *source, tiny_outcome *out, int *i)
{
    nami_exec_result r[TINY_STEPS];
    double rate[TINY_STEPS];
    int most = w->window > 0 ? w->window : 1;
    int count = p->steps - *i < most ? p->steps - *i : most;
    for (int k = 0; k < count; k++)
        rate[k] = tiny_rate(*i + k);
    nami_status status = nami_exec_window(e, *i, count, rate, source, r);
    assert_int_equal(status, *i + count == p->steps ? tiny_fails : NAMI_OK);
    nami_fail_clear();
    if (status != NAMI_OK) {
        *i = p->steps;
        return;
    }
    for (int k = 0; k < count; k++) {
        out->loss[*i + k] = r[k].loss;
        out->norm[*i + k] = r[k].norm;
        assert_int_equal(r[k].tokens, p->batch * TINY_TIME);
    }
    *i += count;
}

static inline void tiny_evaluate(nami_exec *e, const tiny_problem *p,
                                 const nami_exec_source *source, tiny_outcome *out)
{
    nami_exec_result r;
    assert_ok(nami_exec_evaluate(e, 1000, p->batch - 1, source, &r));
    assert_int_equal(r.tokens, (p->batch - 1) * TINY_TIME);
    assert_in_range(r.five, r.best, r.tokens);
    if (TINY_VOCABULARY < 100) /* five of few words: some are always among them */
        assert_true(r.five > 0);
    out->valid = r.loss;
    out->best = r.best;
    out->five = r.five;
}

/* Train `p` the way `w` on all ranks of c. */
static inline tiny_outcome tiny_run(nami_comm *c, const tiny_problem *p,
                                    const tiny_way *w)
{
    tiny_outcome out = {0};
    nami_model *m = tiny_model(p);
    nami_optim_options optim = tiny_optim(p);
    nami_backend *b = NULL;
    nami_layout layout;
    nami_exec *e = NULL;
    nami_prof prof;
    nami_exec_source source = {.read = tiny_source};
    assert_ok(tiny_open(p->backend, 1, p->act, &b));
    assert_ok(tiny_layout(p, w, m, &layout));
    nami_prof_open(&prof, 0);
    nami_exec_config config = {.comm = c,
                               .backend = b,
                               .model = m,
                               .optim = &optim,
                               .layout = &layout,
                               .seed = 5,
                               .stall_seconds = 500,
                               .bucket = tiny_bucket,
                               .poison = tiny_poison,
                               .prof = &prof};
    assert_ok(nami_exec_new(&config, &e));
    for (int i = tiny_first; i < p->steps;) {
        if (tiny_between != NULL)
            tiny_between(e, m, nami_optim_states(&optim), i);
        tiny_steps(e, p, w, &source, &out, &i);
    }
    if (tiny_between != NULL)
        tiny_between(e, m, nami_optim_states(&optim), p->steps);
    if (tiny_fails == NAMI_OK)
        tiny_evaluate(e, p, &source, &out);
    out.parameters = tiny_checksum(c, e, m, nami_optim_states(&optim));
    nami_exec_free(e);
    nami_prof_close(&prof);
    nami_layout_free(&layout);
    tiny_close(b);
    nami_model_free(m);
    return out;
}

/* The same on one rank, without a pipeline, in `slices` (0: whole samples); known on all ranks. */
static inline tiny_outcome tiny_alone(const tiny_problem *p, int slices)
{
    tiny_outcome out = {0};
    if (rank == 0) {
        nami_comm *alone = nami_comm_alone(world);
        out = tiny_run(alone, p,
                       &(tiny_way){.schedule = slices > 0 ? "terapipe" : "gpipe",
                                   .slices = slices,
                                   .positions = 1,
                                   .waves = 1,
                                   .chunks = 1,
                                   .replicas = 1});
        nami_comm_close(alone);
    }
    nami_comm_broadcast(world, &out, sizeof out, 0);
    return out;
}

/* Whether `b` is `a` to `by`, relative. */
static inline bool tiny_near(double a, double b, double by)
{
    return fabs(a - b) <= by * fabs(a);
}

static inline tiny_outcome tiny_reference(const tiny_problem *p)
{
    return tiny_alone(p, 0);
}

#endif
