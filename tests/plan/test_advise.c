/* SPDX-License-Identifier: MIT */
/* test_advise.c - the best candidate is the best of all: against a loop that leaves nothing out. */
#include "../nami_test.h"

#include <math.h>

#include "family.h"
#include "plan/advise.h"
#include "sched/options.h"

enum { BLOCKS_MOST = 64 };

/* A model, its prices by block and what is asked for. */
typedef struct problem {
    nami_model *model;
    nami_backend *backend;
    nami_optim_options optim;
    nami_advise_request request;
    double work[3]
               [BLOCKS_MOST]; /* F, BI, BW: FLOPs of a sample; seconds when synthetic */
} problem;

/* FLOPs of the passes of each block, from one graph of all blocks before it and one with it. */
static void flops_of(problem *p)
{
    double before[3] = {0};
    for (int b = 0; b < p->model->blocks; b++) {
        nami_graph *g;
        assert_ok(nami_model_graph(p->model, 0, b + 1, p->backend, NAMI_F32, 1,
                                   p->model->options.context, &g));
        assert_ok(nami_graph_plan(g, true, true, false));
        const double *f = nami_graph_bytes(g)->flops;
        const double now[3] = {f[NAMI_FORWARD], f[NAMI_BACKWARD_INPUT],
                               f[NAMI_BACKWARD_WEIGHT]};
        for (int pass = 0; pass < 3; pass++) {
            p->work[pass][b] = now[pass] - before[pass];
            before[pass] = now[pass];
        }
        nami_graph_free(g);
    }
}

static void open_problem(problem *p, const nami_model_options *o, int ranks, int batch)
{
    *p = (problem){.optim = {.optimizer = NAMI_OPTIMIZER_ADAMW}};
    assert_ok(nami_model_new(o, 0, &p->model));
    assert_ok(nami_backend_open("ref", 1, NAMI_F32, &p->backend));
    assert_true(p->model->blocks <= BLOCKS_MOST);
    p->request = (nami_advise_request){.model = p->model,
                                       .optim = &p->optim,
                                       .backend = p->backend,
                                       .ranks = ranks,
                                       .limit = 1e18,
                                       .batch = batch,
                                       .act = NAMI_F32,
                                       .top = 5};
    for (int i = 0; p->model->seconds && i < 3 * p->model->blocks; i++)
        p->work[i / p->model->blocks][i % p->model->blocks] = p->model->seconds[i];
    if (!p->model->seconds)
        flops_of(p);
}

static void close_problem(problem *p)
{
    nami_backend_close(p->backend);
    nami_model_free(p->model);
}

static void open_gpt(problem *p, int ranks, int batch, bool tied)
{
    open_problem(p,
                 &(nami_model_options){.layers = 5,
                                       .width = 8,
                                       .heads = 2,
                                       .context = 6,
                                       .vocabulary = 29,
                                       .tied = tied,
                                       .bias = true},
                 ranks, batch);
    p->request.costs = (nami_advise_costs){.flops = 1e6,
                                           .latency = 1e-3,
                                           .bandwidth = 1e6,
                                           .overhead = 1e-4,
                                           .update = 1e6};
}

static void open_synthetic(problem *p, int ranks, int batch, char *f, char *bi,
                           char *bw)
{
    open_problem(p,
                 &(nami_model_options){.family = family_named("synthetic"),
                                       .layers = 20,
                                       .synthetic_saved = 65536,
                                       .width = 8,
                                       .context = 4,
                                       .vocabulary = 8,
                                       .synthetic_forward = f,
                                       .synthetic_input = bi,
                                       .synthetic_weight = bw},
                 ranks, batch);
    assert_non_null(p->model->seconds);
}

/* --- the loop that leaves nothing out --- */

typedef struct found {
    double best[2],
        plain;    /* seconds: that run, that are simulated only; of plain 1F1B */
    double bytes; /* of best[0] */
    int candidates, fits, full;
} found;

static int stage_with(const nami_layout *l, int block)
{
    int s = 0;
    while (l->cut[s + 1] <= block)
        s++;
    return s;
}

/* Uses of parameter k, in all copies, on `position` (*here) and elsewhere (*away). */
static void uses_of(const problem *p, const nami_layout *l, int k, int position,
                    int *here, int *away)
{
    const nami_param *q = &p->model->param[k];
    const int block[2] = {q->block, p->model->blocks - 1}; /* tied: the head's too */
    *here = *away = 0;
    for (int i = 0; i < q->uses * l->train.place.copies; i++) {
        int at = nami_place_of(&l->train.place, i / q->uses,
                               stage_with(l, block[i % q->uses]));
        *here += at == position;
        *away += at != position;
    }
}

/* Bytes of the weights of a position with sums and states; what ends a step. */
static void ends(const problem *p, const nami_layout *l, double *weights,
                 double *reduce, double *after)
{
    const nami_advise_costs *c = &p->request.costs;
    double rate = c->bandwidth > 0 ? 1 / c->bandwidth : 0, D = l->replicas;
    double slices = p->request.zero ? D : 1;
    *weights = *reduce = *after = 0;
    for (int position = 0; position < l->recipe.positions; position++) {
        double count = 0, others = 0, end = 0;
        for (int k = 0; k < p->model->params; k++) {
            const nami_param *q = &p->model->param[k];
            double size = (double)nami_shape_count(&q->shape);
            int here, away, first = 0;
            uses_of(p, l, k, position, &here, &away);
            for (int copy = 0; copy < l->train.place.copies; copy++)
                first |= nami_place_of(&l->train.place, copy,
                                       stage_with(l, q->block)) == position;
            count += first ? size : 0;
            others += here > 0 ? away * size : 0;
        }
        if (others > 0)
            end = c->latency + 4 * others * rate;
        if (c->update > 0)
            end += 28 * count / slices / c->update;
        *weights = fmax(*weights, (8 + 8 / slices) * count);
        *after = fmax(*after, end);
        if (D > 1)
            *reduce = fmax(*reduce, 2 * (c->latency + (D - 1) / D * 4 * count * rate));
    }
}

static double simulate(const problem *p, const nami_layout *l, double reduce)
{
    double f[BLOCKS_MOST] = {0}, bi[BLOCKS_MOST] = {0}, bw[BLOCKS_MOST] = {0},
           bytes[BLOCKS_MOST];
    double *to[3] = {f, bi, bw};
    const nami_advise_costs *c = &p->request.costs;
    for (int s = 0; s < nami_layout_stages(l); s++) {
        bytes[s] = 4.0 * (double)(l->micro * l->time * p->model->options.width);
        for (int pass = 0; pass < 3; pass++) {
            for (int b = l->cut[s]; b < l->cut[s + 1]; b++)
                to[pass][s] +=
                    p->model->seconds
                        ? p->work[pass][b]
                        : (double)l->micro * p->work[pass][b] / c->flops + c->overhead;
        }
    }
    nami_cost cost = {.stage_f = f,
                      .stage_bi = bi,
                      .stage_bw = bw,
                      .bytes = bytes,
                      .latency = c->latency,
                      .bandwidth = c->bandwidth,
                      .serial = true,
                      .apart = !p->backend->host,
                      .reduce = reduce};
    nami_prediction out;
    assert_ok(nami_simulate(&l->train, &cost, false, &out));
    double makespan = out.makespan;
    nami_prediction_free(&out);
    return makespan;
}

static void look_at(const problem *p, const nami_layout *l, found *f)
{
    double weights, reduce, after, bytes = 0;
    nami_budget budget[16];
    ends(p, l, &weights, &reduce, &after);
    nami_status status = nami_layout_budget(l, p->model, &p->optim, p->backend, budget);
    assert_true(status == NAMI_OK || status == NAMI_EPLAN);
    nami_fail_clear();
    for (int i = 0; i < l->recipe.positions && status == NAMI_OK; i++)
        bytes = fmax(bytes, (double)budget[i].total);
    if (status == NAMI_OK) /* the bound on which candidates are refused unseen is one */
        assert_true(weights <= bytes);
    f->candidates++;
    if (fmax(bytes, weights) > p->request.limit) {
        f->full++;
        return;
    }
    f->fits++;
    double seconds = simulate(p, l, reduce) + after;
    double *best = &f->best[status != NAMI_OK];
    if (status == NAMI_OK &&
        (seconds < *best || (seconds <= *best && bytes < f->bytes)))
        f->bytes = bytes;
    *best = fmin(*best, seconds);
    if (status == NAMI_OK && strcmp(l->recipe.name, "dapple") == 0)
        f->plain = fmin(f->plain, seconds);
}

/* One preset and size on one P x D: all M, with and without recomputation; cut as nami run cuts. */
static void all_counts(const problem *p, nami_layout_request r, found *f)
{
    for (r.microbatches = 1; r.microbatches <= p->request.batch; r.microbatches++) {
        for (int again = 0; again < 2; again++) {
            nami_layout l;
            r.recompute = again;
            r.recipe.microbatches = r.microbatches / r.replicas;
            nami_status status = nami_recipe_check(&r.recipe);
            if (status == NAMI_OK && nami_layout_make(&r, p->model, &l) == NAMI_OK) {
                look_at(p, &l, f);
                nami_layout_free(&l);
            }
            nami_fail_clear();
        }
    }
}

static found search_all(const problem *p)
{
    found f = {.best = {INFINITY, INFINITY}, .plain = INFINITY, .bytes = INFINITY};
    for (int P = 1; P <= p->request.ranks; P++) {
        for (int i = 0; i < nami_presets_with_flush() && p->request.ranks % P == 0;
             i++) {
            nami_layout_request r = {.batch = p->request.batch,
                                     .replicas = p->request.ranks / P,
                                     .partials = p->request.partials,
                                     .ranks = p->request.ranks,
                                     .act = p->request.act};
            for (int size = 1; size <= 8; size *= 2) {
                r.recipe = (nami_recipe){.positions = P,
                                         .waves = 1,
                                         .chunks = 1,
                                         .slices = 1,
                                         .zero = p->request.zero};
                assert_ok(nami_recipe_preset(&r.recipe, nami_preset_at(i)->name));
                bool wave = r.recipe.placement == NAMI_PLACE_WAVE,
                     loop = r.recipe.placement == NAMI_PLACE_LOOPING;
                bool slices = strcmp(r.recipe.name, "terapipe") == 0;
                r.recipe.waves = wave ? size : 1;
                r.recipe.chunks = loop ? 2 * size : 1;
                r.recipe.slices = slices ? 2 * size : 1;
                if ((wave || loop || slices || size == 1) &&
                    (P > 1 || strcmp(r.recipe.name, "dapple") == 0))
                    all_counts(p, r, &f);
            }
        }
    }
    return f;
}

/* --- what must hold --- */

static void assert_sorted(const nami_advice_list *l)
{
    for (int i = 1; i < l->rows; i++)
        assert_true(l->row[i - 1].seconds <= l->row[i].seconds);
}

static void assert_equal_time(double a, double b)
{
    if (!(fabs(a - b) <= 1e-12 * fabs(b)))
        fail_msg("%.17g is not %.17g", a, b);
}

/* Compare with the loop; the counts account for every candidate. */
static found compare(const problem *p, const char *what)
{
    nami_advice *a = calloc(1, sizeof *a);
    found f = search_all(p);
    nami_status status = nami_advise(&p->request, a);
    printf("%s: %d candidates, %d fit, %d do not; %lld tried\n", what, f.candidates,
           f.fits, f.full, (long long)a->tried);
    if (isinf(f.best[0])) {
        assert_int_equal(status, NAMI_EPLAN);
        assert_int_equal(a->best.rows, 0);
        nami_fail_clear();
        free(a);
        return f;
    }
    assert_ok(status);
    assert_equal_time(a->best.row[0].seconds, f.best[0]);
    assert_true(a->best.row[0].bytes <= f.bytes);
    assert_int_equal(a->only.rows > 0, isfinite(f.best[1]));
    if (a->only.rows > 0)
        assert_equal_time(a->only.row[0].seconds, f.best[1]);
    assert_int_equal(a->plain.rows, isfinite(f.plain));
    if (a->plain.rows)
        assert_equal_time(a->plain.row[0].seconds, f.plain);
    int64_t sum = a->best.rows + a->only.rows;
    for (int i = 0; i < NAMI_REFUSALS; i++)
        sum += a->refused[i];
    assert_int_equal(sum, a->tried);
    assert_sorted(&a->best);
    assert_sorted(&a->only);
    for (int i = 0; i < a->best.rows; i++)
        assert_true(a->best.row[i].bytes <= p->request.limit);
    free(a);
    return f;
}

static void test_exhaustive(void **state)
{
    (void)state;
    static const int ranks[] = {2, 3, 4};
    for (int i = 0; i < 3; i++) {
        problem p;
        open_gpt(&p, ranks[i], 12, i != 1);
        p.request.zero = i == 2;
        found f = compare(&p, "all memory");
        assert_true(f.candidates > 30 && f.full == 0);
        double need = f.bytes;
        for (double share = 0.9; share > 0.3; share -= 0.3) {
            p.request.limit = share * need;
            compare(&p, "less memory");
        }
        close_problem(&p);
    }
}

/* Seeds draw costs: latency from nothing to far more than a stage. */
static void test_drawn_costs(void **state)
{
    (void)state;
    problem p;
    srand((unsigned)nami_test_seed(20261130));
    open_synthetic(&p, 4, 8, "1ms",
                   "2ms 1ms 1ms 3ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms 1ms "
                   "1ms 1ms 1ms 4ms",
                   "1ms");
    for (int i = 0; i < 6; i++) {
        p.request.partials = 1 << rand() % 4;
        p.request.costs.latency = 1e-3 * pow(10, rand() % 6 - 4);
        p.request.costs.bandwidth = rand() % 2 ? 0 : 1e5;
        compare(&p, "drawn");
    }
    close_problem(&p);
}

static const char *winner(const problem *p, nami_advice *a)
{
    char name[48];
    assert_ok(nami_advise(&p->request, a));
    printf("best: %s in %g s, plain 1F1B in %g s\n",
           nami_advice_name(&a->best.row[0], name), a->best.row[0].seconds,
           a->plain.row[0].seconds);
    return a->best.row[0].recipe.name;
}

/* Five positions and eight micro-batches: 5 shares no factor with 8 partial sums, so D = 1, M = 8. */
static void open_five(problem *p, char *bi, char *bw, double latency)
{
    open_synthetic(p, 5, 8, "1ms", bi, bw);
    p->request.partials = 8;
    p->request.costs.latency = latency;
}

static void test_latency_decides(void **state)
{
    (void)state;
    problem p;
    nami_advice *a = calloc(1, sizeof *a);
    open_five(&p, "1ms", "1ms", 0);
    assert_string_equal(winner(&p, a), "hanayo-zb");
    assert_int_equal(a->best.row[0].recipe.waves, 2);
    assert_equal_time(a->best.row[0].seconds, 4e-3 * (3 * 8 + 4 / 4.0));
    assert_equal_time(a->plain.row[0].seconds, 4e-3 * (3 * 8 + 3 * 4));
    close_problem(&p);
    /* nothing to split off, messages of half a stage, no room for all eight at once */
    open_five(&p, "2ms", "0", 2e-3);
    (void)winner(&p, a);
    p.request.limit = a->plain.row[0].bytes;
    assert_string_equal(winner(&p, a), "dapple");
    assert_true(a->best.row[0].plain);
    assert_equal_time(a->best.row[0].seconds, a->plain.row[0].seconds);
    close_problem(&p);
    free(a);
}

/* The fragment asks for exactly the row: read back it gives the same recipe. */
static void test_fragment(void **state)
{
    (void)state;
    problem p;
    nami_advice *a = calloc(1, sizeof *a);
    open_gpt(&p, 4, 12, true);
    p.request.top = NAMI_ADVICE_MOST;
    p.request.zero = true;
    assert_ok(nami_advise(&p.request, a));
    for (int i = 0; i < a->best.rows; i++) {
        const nami_advice_row *row = &a->best.row[i];
        nami_pipeline_options o = {0};
        nami_text text = {0};
        nami_recipe r;
        char key[32], value[64];
        assert_ok(nami_option_defaults(&nami_pipeline_table, &o));
        nami_advice_fragment(row, &text);
        for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
            for (int k = 0; k < nami_pipeline_table.rows &&
                            sscanf(line, "%31s = %63s", key, value) == 2;
                 k++) {
                if (strcmp(nami_pipeline_table.row[k].key, key) == 0)
                    assert_ok(nami_option_set(&nami_pipeline_table.row[k], &o, value,
                                              "fragment"));
            }
        }
        assert_ok(nami_recipe_from_options(&o, 4, &r));
        assert_string_equal(r.name, row->recipe.name);
        assert_int_equal(r.positions, row->recipe.positions);
        assert_int_equal(r.microbatches, row->recipe.microbatches);
        assert_int_equal(nami_recipe_stages(&r), nami_recipe_stages(&row->recipe));
        assert_int_equal(r.recompute, row->recipe.recompute);
        assert_true(r.zero && row->recipe.zero);
        assert_int_equal(o.replicas, row->replicas);
        nami_option_release(&nami_pipeline_table, &o);
        nami_text_free(&text);
    }
    close_problem(&p);
    free(a);
}

static void test_nothing_fits(void **state)
{
    (void)state;
    problem p;
    nami_advice *a = calloc(1, sizeof *a);
    open_gpt(&p, 2, 4, true);
    p.request.limit = 1000;
    assert_fails(nami_advise(&p.request, a), NAMI_EPLAN,
                 "no layout fits: the smallest needs");
    assert_true(a->refused[NAMI_REFUSED_MEMORY] > 0 && a->least > 1000);
    p.request.limit = 1e18;
    p.request.ranks = 97; /* more than blocks, and no replicas of 4 samples */
    assert_fails(nami_advise(&p.request, a), NAMI_EPLAN,
                 "97 stages, but the model has only 12 blocks");
    close_problem(&p);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustive),      cmocka_unit_test(test_drawn_costs),
        cmocka_unit_test(test_latency_decides), cmocka_unit_test(test_fragment),
        cmocka_unit_test(test_nothing_fits),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
