/* SPDX-License-Identifier: MIT */
/* test_resnet.c - the published weights of ResNet-20 for CIFAR-10 give PyTorch's logits.
 *
 * The file is not ours to hand on: NAMI_RESNET20 says where it is (resnet20-12fca82f.th of akamaster/pytorch_resnet_cifar10);
 * without it the test is skipped. The logits are those of validation/torch/weights.py, in double.
 */
#include "nami_test.h"

#include "exchange/chain_load.h"
#include "family.h"
#include "numbers.h"

enum { BATCH = 2, CLASSES = 10, WORDS = BATCH * 32 * 32 * 3 };

static void check_logits(const chain *c, const numbers *n)
{
    nami_graph *g;
    double logits[BATCH * CLASSES];
    assert_ok(nami_model_graph_logits(c->model, c->backend, NAMI_F32, BATCH, 1, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    nami_graph_call call = {
        .input = c->token,
        .output = nami_alloc(NAMI_MEM_MESSAGE, sizeof logits),
        .transient = nami_alloc(NAMI_MEM_TRANSIENT, nami_graph_bytes(g)->transient),
        .packed = c->stage[0].packed,
        .param = c->stage[0].param};
    nami_walk w = {0};
    nami_walk_begin(&w, g, NAMI_WALK_F, &call);
    while (nami_walk_next(&w)) {
    }
    for (int i = 0; i < BATCH * CLASSES; i++)
        logits[i] = chain_get(NAMI_F32, call.output, i);
    numbers_compare(n, "logits", logits, BATCH * CLASSES, 1e-5);
    nami_free(call.output);
    nami_free(call.transient);
    nami_graph_free(g);
}

static void test_backend(const char *backend)
{
    const char *file = getenv("NAMI_RESNET20");
    const int whole[] = {0, 11};
    nami_model_options o = {.family = family_named("resnet20"),
                            .image_height = 32,
                            .image_width = 32,
                            .image_channels = 3,
                            .classes = CLASSES};
    nami_model *m;
    chain c;
    assert_ok(nami_model_new(&o, 0, &m));
    assert_int_equal(m->blocks, whole[1]);
    chain_open(&c, m,
               &(chain_options){.backend = backend,
                                .act = NAMI_F32,
                                .batch = BATCH,
                                .time = 1,
                                .micro = 1,
                                .stages = 1,
                                .cut = whole});
    chain_load(&c, file);
    for (int i = 0; i < WORDS; i++) {
        float x = (float)(4 * numbers_uniform(7, (uint64_t)i));
        memcpy(&c.token[i], &x, sizeof x);
    }
    numbers n = numbers_read("tests/data/torch-resnet20-published.txt");
    check_logits(&c, &n);
    numbers_free(&n);
    chain_close(&c);
    nami_model_free(m);
}

static void test_cpu(void **state)
{
    (void)state;
    test_backend("cpu");
}

static void test_ref(void **state)
{
    (void)state;
    test_backend("ref");
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_ref),
    };
    if (!getenv("NAMI_RESNET20")) {
        printf("NAMI_RESNET20 is not set\n");
        return 77;
    }
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
