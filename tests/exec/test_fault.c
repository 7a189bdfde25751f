/* SPDX-License-Identifier: MIT */
/* test_fault.c - a gradient or loss that is not finite, targets that do not count, a batch of padding. */
#include "tiny.h"

#include <math.h>

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .dropout = 0.1,
                                   .clip = 1.0,
                                   .batch = 8,
                                   .micros = 4,
                                   .partials = 2,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW};

typedef struct bench {
    nami_model *model;
    nami_optim_options optim;
    nami_backend *backend;
    nami_layout layout;
    nami_prof prof;
    nami_exec *exec;
} bench;

/* A wave over all ranks; with `pairs` two replicas, which keep slices of optimiser states. */
static void bench_open(bench *b, bool pairs)
{
    int replicas = pairs && size % 2 == 0 ? 2 : 1;
    tiny_way way = {.schedule = "hanayo",
                    .positions = size / replicas,
                    .waves = 1,
                    .chunks = 1,
                    .replicas = replicas,
                    .zero = pairs};
    b->model = tiny_model(&basis);
    b->optim = tiny_optim(&basis);
    assert_ok(nami_backend_open(basis.backend, 1, basis.act, &b->backend));
    assert_ok(tiny_layout(&basis, &way, b->model, &b->layout));
    nami_prof_open(&b->prof, 4096);
    nami_exec_config config = {.comm = world,
                               .backend = b->backend,
                               .model = b->model,
                               .optim = &b->optim,
                               .layout = &b->layout,
                               .seed = 5,
                               .stall_seconds = 500,
                               .prof = &b->prof};
    assert_ok(nami_exec_new(&config, &b->exec));
}

static void bench_close(bench *b)
{
    nami_exec_free(b->exec);
    nami_prof_close(&b->prof);
    nami_layout_free(&b->layout);
    nami_backend_close(b->backend);
    nami_model_free(b->model);
}

static int64_t checksum(bench *b)
{
    return tiny_checksum(world, b->exec, b->model, nami_optim_states(&b->optim));
}

/* Set element 0 of a parameter wherever it lies; returns what was there (0 elsewhere). */
static float poke(bench *b, int param, float value)
{
    float *x = nami_exec_array(b->exec, param, 0).data, old = 0;
    if (x != NULL) {
        old = x[0];
        x[0] = value;
    }
    nami_exec_refresh(b->exec);
    return old;
}

static void fail_with(bench *b, int param, float value)
{
    nami_exec_result r;
    nami_exec_source source = {.read = tiny_read};
    float old = poke(b, param, value);
    int64_t before = checksum(b);
    assert_int_equal(nami_exec_step(b->exec, 1, 1e-2, &source, &r), NAMI_ENUMERIC);
    assert_non_null(strstr(nami_fail_text(), "step 1: the "));
    assert_non_null(strstr(nami_fail_text(), "finite"));
    nami_fail_clear();
    assert_int_equal(checksum(b), before);
    poke(b, param, old);
}

static void check_numbers(bool pairs)
{
    bench b;
    nami_exec_result r;
    nami_exec_source source = {.read = tiny_read};
    bench_open(&b, pairs);
    assert_ok(nami_exec_step(b.exec, 0, 1e-2, &source, &r));
    int64_t before = checksum(&b);
    fail_with(&b, b.model->params / 2, NAN);
    fail_with(&b, b.model->params - 1, INFINITY);
    fail_with(&b, 0, NAN);
    assert_int_equal(checksum(&b), before);
    assert_ok(nami_exec_step(b.exec, 1, 1e-2, &source, &r)); /* and it goes on */
    assert_true(isfinite(r.loss) && r.norm > 0);
    assert_int_not_equal(checksum(&b), before);
    bench_close(&b);
}

static void test_numbers(void **state)
{
    (void)state;
    check_numbers(false);
    check_numbers(true);
}

/* Targets of the last samples do not count. */
static nami_status read_some(void *context, int64_t step, int64_t first, int64_t count,
                             int32_t *token, int32_t *target)
{
    int64_t counted = *(const int64_t *)context;
    NAMI_TRY(tiny_read(NULL, step, first, count, token, target));
    for (int64_t i = 0; target != NULL && i < count * TINY_TIME; i++) {
        if (first * TINY_TIME + i >= counted)
            target[i] = -1;
    }
    return NAMI_OK;
}

static void test_nothing_counts(void **state)
{
    (void)state;
    bench b;
    nami_exec_result r;
    int64_t counted = 0;
    nami_exec_source source = {.read = read_some, .context = &counted};
    bench_open(&b, true);
    int64_t before = checksum(&b);
    assert_int_equal(nami_exec_step(b.exec, 0, 1e-2, &source, &r), NAMI_EINPUT);
    assert_non_null(strstr(nami_fail_text(), "no target"));
    nami_fail_clear();
    assert_int_equal(checksum(&b), before);
    counted = 3 * TINY_TIME + 2;
    assert_ok(nami_exec_step(b.exec, 0, 1e-2, &source, &r));
    assert_int_equal(r.tokens, counted);
    bench_close(&b);
}

/* An evaluation counts its samples alone, and changes nothing; its loss is the mean over them. */
static void test_evaluation(void **state)
{
    (void)state;
    bench b;
    nami_exec_result one, all, part;
    nami_exec_source source = {.read = tiny_read};
    bench_open(&b, true);
    int64_t before = checksum(&b);
    assert_ok(nami_exec_evaluate(b.exec, 7, 8, &source, &all));
    assert_ok(nami_exec_evaluate(b.exec, 7, 8, &source, &one));
    assert_true(one.loss == all.loss);
    assert_ok(nami_exec_evaluate(b.exec, 7, 3, &source, &part));
    assert_int_equal(part.tokens, 3 * TINY_TIME);
    assert_true(part.loss != all.loss);
    double sum = 0;
    for (int i = 0; i < 3;
         i++) { /* one sample more each time: differences are their own losses */
        assert_ok(nami_exec_evaluate(b.exec, 7, i + 1, &source, &one));
        sum = one.loss * one.tokens;
    }
    assert_true(fabs(sum - part.loss * 3 * TINY_TIME) < 1e-9 * sum);
    assert_int_equal(checksum(&b), before);
    bench_close(&b);
}

/* Spans of a recorded step: each computation of this rank once, in order of time, and nothing from evaluations. */
static void test_spans(void **state)
{
    (void)state;
    bench b;
    nami_exec_result r;
    nami_exec_source source = {.read = tiny_read};
    bench_open(&b, false);
    b.prof.record = true;
    assert_ok(nami_exec_step(b.exec, 0, 1e-2, &source, &r));
    b.prof.record = false;
    assert_ok(nami_exec_evaluate(b.exec, 0, 8, &source, &r));
    int stages = nami_layout_stages(&b.layout) / size, computed = 0;
    for (int i = 0; i < nami_prof_kept(&b.prof); i++) {
        const nami_prof_span *s = &b.prof.span[i];
        assert_true(s->end >= s->start);
        assert_true(i == 0 || s->start >= b.prof.span[i - 1].end);
        computed += nami_semantics_of(s->kind)->compute;
    }
    assert_int_equal(computed, 2 * stages * 4);
    assert_int_equal(b.prof.spans, computed + 2 * stages); /* and REDUCE and UPDATE */
    assert_int_equal(b.prof.count[NAMI_PHASE_B], stages * 4);
    assert_int_equal(b.prof.count[NAMI_PHASE_F], 2 * stages * 4);
    assert_true(b.prof.flops > 0);
    bench_close(&b);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_nothing_counts),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_spans),
    };
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
