/* SPDX-License-Identifier: MIT */
/* test_measure.c - a profile of this machine: every pass runs and takes the set time, bytes add up to those of a stage. */
#include "comm/mpi_test.h"

#include <math.h>

#include "family.h"
#include "plan/measure.h"

/* Measure a model of blocks on `backend`. */
static void measure(const nami_model_options *o, const char *backend, nami_dtype act,
                    nami_chain *out, nami_model **model, nami_backend **b)
{
    assert_ok(nami_model_new(o, 0.1, model));
    assert_ok(nami_backend_open(backend, 1, act, b));
    nami_measure_request r = {.comm = world,
                              .model = *model,
                              .backend = *b,
                              .act = act,
                              .samples = 3,
                              .warm = 1,
                              .repeats = 3};
    assert_ok(nami_measure_blocks(&r, out));
    assert_int_equal(out->blocks, (*model)->blocks);
    assert_int_equal(out->samples, 3);
}

static void close_all(nami_chain *c, nami_model *m, nami_backend *b)
{
    nami_chain_free(c);
    nami_backend_close(b);
    nami_model_free(m);
}

/* A stage of several blocks keeps what they keep, and what passes from one to the next; its transient memory is that of
 * the largest, and at most one more such value. */
static void check_bytes(const nami_chain *c, const nami_model *m, nami_backend *b,
                        nami_dtype act)
{
    for (int i = 0; i < c->blocks; i++)
        for (int j = i + 1; j <= c->blocks; j++) {
            nami_graph *g;
            double kept = 0, transient = 0, parameter = 0, between = 0;
            assert_ok(nami_model_graph(m, i, j, b, act, 3, m->options.context, &g));
            assert_ok(nami_graph_plan(g, true, false, false));
            for (int k = i; k < j; k++) {
                double inner = k + 1 < j ? c->block[k].output : 0;
                kept += c->block[k].kept + inner;
                between = fmax(between, inner);
                parameter += c->block[k].parameter;
                transient = fmax(transient, c->block[k].transient);
            }
            const nami_graph_sizes *bytes = nami_graph_bytes(g);
            assert_true(fabs((double)bytes->kept - kept) <= 64.0 * (j - i));
            assert_true((double)bytes->transient >= transient &&
                        (double)bytes->transient <= transient + between);
            double uses = 0;
            for (int u = 0; u < nami_graph_uses(g); u++)
                uses += 4 * (double)nami_shape_count(
                                &m->param[nami_graph_use_param(g, u)].shape);
            assert_true(fabs(uses - parameter) < 0.5);
            nami_graph_free(g);
        }
}

static void test_gpt(void **state)
{
    (void)state;
    const nami_model_options o = {.layers = 2,
                                  .width = 32,
                                  .heads = 2,
                                  .context = 16,
                                  .vocabulary = 65,
                                  .tied = true,
                                  .bias = true};
    static const char *const backend[] = {"ref", "cpu", "cpu"};
    static const nami_dtype act[] = {NAMI_F32, NAMI_F32, NAMI_BF16};
    for (int i = 0; i < 3; i++) {
        nami_chain c;
        nami_model *m;
        nami_backend *b;
        measure(&o, backend[i], act[i], &c, &m, &b);
        assert_string_equal(c.block[0].name, "embedding");
        for (int k = 0; k < c.blocks; k++) {
            assert_true(c.block[k].forward > 0 && c.block[k].forward < 60);
            assert_true(c.block[k].weight > 0 && c.block[k].weight < 60);
            double out = 3.0 * 16 * 32 * (double)nami_dtype_size(act[i]);
            assert_true(fabs(c.block[k].output - (k + 1 < c.blocks ? out : 0)) < 0.5);
        }
        check_bytes(&c, m, b, act[i]);
        close_all(&c, m, b);
    }
}

/* On an imitated device each pass takes as long as it was told, or longer. */
static void test_set_times(void **state)
{
    (void)state;
    const nami_model_options o = {.family = family_named("synthetic"),
                                  .layers = 3,
                                  .width = 8,
                                  .context = 4,
                                  .vocabulary = 8,
                                  .synthetic_forward = (char *)"2ms 3ms 4ms",
                                  .synthetic_input = (char *)"5ms",
                                  .synthetic_weight = (char *)"6ms",
                                  .synthetic_saved = 65536};
    nami_chain c;
    nami_model *m;
    nami_backend *b;
    measure(&o, "emu", NAMI_F32, &c, &m, &b);
    for (int k = 0; k < 3; k++) {
        assert_true(c.block[k].forward >= (2 + k) * 0.999e-3);
        assert_true(c.block[k].input >= 4.995e-3 && c.block[k].weight >= 5.994e-3);
        assert_true(c.block[k].kept >= 3 * 65536);
    }
    close_all(&c, m, b);
}

/* All classes that there are, and no others; every rank has the same numbers. */
static void test_links(void **state)
{
    (void)state;
    nami_chain c = {0};
    assert_ok(nami_measure_links(world, 1 << 18, 3, &c));
    bool one = nami_comm_node_size(world) == size;
    assert_int_equal(c.inside.rate > 0, one ? size > 1 : c.ranks_per_node > 1);
    assert_int_equal(c.across.rate > 0, !one);
    nami_chain_link *link[] = {&c.inside, &c.across};
    for (int k = 0; k < 2; k++) {
        assert_true(link[k]->latency >= 0 && link[k]->reduce >= 0);
        assert_int_equal(link[k]->rate > 0, link[k]->reduce > 0);
        assert_true(nami_comm_max(world, link[k]->rate) <= link[k]->rate);
    }
    assert_int_equal(nami_comm_pending(world), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_set_times),
        cmocka_unit_test(test_links),
    };
    mpi_test_open(&argc, &argv);
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
