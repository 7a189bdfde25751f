/* SPDX-License-Identifier: MIT */
/* test_images_torch.c - small image models against PyTorch: logits of evaluation, loss, gradients, statistics.
 *
 * The numbers were made in double by validation/torch/images.py; shapes, formulas and constants here are its.
 */
#include <math.h>

#include "family.h"
#include "chain.h"
#include "exchange/exchange.h"
#include "model/net.h"
#include "numbers.h"

enum { BATCH = 4, CLASSES = 10, SUMS = 4 };

static const char vgg[] =
    "conv 8 3 pad 1 bias no, norm, relu, max 2, conv 16 3 pad 1 bias no, norm, relu, "
    "conv 16 3 pad 1 groups 4, silu, mean 2, flatten, linear 24, relu, "
    "linear classes";

static nami_model *model_of(const char *family, char *layers, int64_t size,
                            int64_t channels)
{
    nami_model *m;
    nami_model_options o = {.chain = layers,
                            .image_height = size,
                            .image_width = size,
                            .image_channels = channels,
                            .classes = CLASSES,
                            .layers = 2, /* of vit */
                            .width = 12,
                            .heads = 3,
                            .mlp_width = 20,
                            .patch = 4};
    o.family = family_named(family);
    assert_ok(nami_model_new(&o, 0, &m));
    return m;
}

/* Parameters, images and classes by the formula. */
static void fill(chain *c)
{
    for (int p = 0; p < c->model->params; p++) {
        const nami_param *q = &c->model->param[p];
        const double each = (double)chain_count(c, p) / (double)q->shape.dim[0];
        for (int64_t e = 0; e < chain_count(c, p); e++) {
            double u = numbers_uniform((uint64_t)p, (uint64_t)e);
            u = q->shape.rank > 1 ? u * sqrt(24 / each)
                                  : u + (q->init == NAMI_INIT_ONE ? 1 : 0);
            chain_set(c->wide, c->param[p], e, (float)u);
        }
    }
    for (int64_t i = 0; i < BATCH * c->sample.words; i++) {
        const float pixel = (float)(4 * numbers_uniform(1000, (uint64_t)i));
        memcpy(&c->token[i], &pixel, sizeof pixel);
    }
    for (int64_t i = 0; i < BATCH; i++)
        c->target[i] = (int32_t)(numbers_hash(1001, (uint64_t)i) % CLASSES);
    c->scale = 1.0 / BATCH;
    chain_pack(c);
}

/* By the running statistics. */
static void check_logits(const chain *c, const numbers *n, double tolerance)
{
    nami_graph *g;
    assert_ok(nami_model_graph_logits(c->model, c->backend, c->o.act, BATCH, 1, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    enum { COUNT = BATCH * CLASSES };
    double wide[COUNT];
    float narrow[COUNT];
    const bool is_wide = c->o.act == NAMI_F64;
    nami_graph_call call = {
        .input = c->token,
        .output = is_wide ? (void *)wide : narrow,
        .transient = nami_alloc(NAMI_MEM_TRANSIENT, nami_graph_bytes(g)->transient),
        .packed = c->stage[0].packed,
        .param = c->stage[0].param};
    nami_walk w = {0};
    nami_walk_begin(&w, g, NAMI_WALK_F, &call);
    while (nami_walk_next(&w)) {
    }
    for (int i = 0; i < COUNT && !is_wide; i++)
        wide[i] = (double)narrow[i];
    numbers_compare(n, "logits", wide, COUNT, tolerance);
    nami_free(call.transient);
    nami_graph_free(g);
}

/* The norm of a gradient and its sums with numbers of the formula. */
static void check_gradient(const chain *c, const numbers *n, int p, double tolerance)
{
    double sum[1 + SUMS] = {0};
    const int64_t count = chain_count(c, p);
    for (int64_t e = 0; e < count; e++) {
        const double g = chain_grad(c, p, e);
        sum[0] += g * g;
        for (int k = 0; k < SUMS; k++)
            sum[1 + k] +=
                g * numbers_uniform(2000 + (uint64_t)p, (uint64_t)(k * count + e));
    }
    sum[0] = sqrt(sum[0]);
    const nami_param_rows param = {c->model->param[p].name, 1};
    nami_exchange_piece theirs; /* PyTorch's name */
    assert_true(nami_exchange_piece_of(&c->model->options, NULL, &param, 0, &theirs));
    char *name = nami_strf("gradient/%s", theirs.name);
    numbers_compare(n, name, sum, 1 + SUMS, tolerance);
    nami_free(name);
    nami_free(theirs.name);
}

static void check(const char *file, nami_model *m, const char *backend, nami_dtype act,
                  double tolerance)
{
    chain c;
    numbers n = numbers_read(file);
    const int cut[] = {0, m->blocks};
    chain_open(&c, m,
               &(chain_options){.backend = backend,
                                .act = act,
                                .batch = BATCH,
                                .time = 1,
                                .micro = 1,
                                .stages = 1,
                                .cut = cut});
    fill(&c);
    if (act != NAMI_BF16)
        check_logits(&c, &n, tolerance);
    chain_forward(&c);
    chain_backward(&c);
    const double loss = chain_loss(&c);
    numbers_compare(&n, "loss", &loss, 1, tolerance);
    for (int p = 0; p < m->params; p++)
        check_gradient(&c, &n, p, tolerance);
    chain_close(&c);
    numbers_free(&n);
}

static void both(const char *file, const char *family, int64_t size, int64_t channels)
{
    char layers[sizeof vgg];
    strcpy(layers, vgg);
    nami_model *m = model_of(family, layers, size, channels);
    check(file, m, "ref", NAMI_F64, 1e-8);
    check(file, m, "cpu", NAMI_F32, 1e-5);
    nami_model_free(m);
}

static void test_lenet(void **state)
{
    (void)state;
    both("tests/data/torch-lenet.txt", "lenet", 28, 1);
}

static void test_vgg(void **state)
{
    (void)state;
    both("tests/data/torch-vgg.txt", "chain", 8, 3);
}

static void test_resnet20(void **state)
{
    (void)state;
    both("tests/data/torch-resnet20.txt", "resnet20", 8, 3);
}

/* In bf16 each of some twenty operators in a row rounds by at most 2^-9. */
static void test_vit(void **state)
{
    (void)state;
    both("tests/data/torch-vit.txt", "vit", 12, 3);
    nami_model *m = model_of("vit", NULL, 12, 3);
    check("tests/data/torch-vit.txt", m, "cpu", NAMI_BF16, 20.0 / 512);
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lenet),
        cmocka_unit_test(test_vgg),
        cmocka_unit_test(test_resnet20),
        cmocka_unit_test(test_vit),
    };
    return cmocka_run_group_tests_name("images torch", tests, NULL, nami_test_balance);
}
