/* SPDX-License-Identifier: MIT */
/* test_llama.c - the state_dict of Hugging Face's LlamaForCausalLM becomes our packed parameters, and back.
 *
 * The file is validation/torch/llama.py's: its weights are those of test_torch.c, whose logits and gradients are
 * compared with numbers that were checked against the same program.
 */
#include "nami_test.h"

#include "exchange/exchange.h"
#include "family.h"
#include "numbers.h"

static nami_model_options options(void)
{
    nami_model_options o = {.layers = 2,
                            .width = 12,
                            .heads = 3,
                            .kv_heads = 1,
                            .mlp_width = 10,
                            .rope_theta = 100,
                            .norm_eps = 1e-4,
                            .context = 13,
                            .vocabulary = 37};
    o.family = family_named("llama");
    return o;
}

static float **load(const nami_model *m, const char *name, nami_status *status)
{
    char path[512];
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *data);
    for (int p = 0; p < m->params; p++)
        data[p] = nami_calloc(NAMI_MEM_OTHER,
                              (size_t)nami_shape_count(&m->param[p].shape), 4);
    *status = nami_exchange_load(NULL, nami_test_source(path, name), m, data);
    return data;
}

static void release(const nami_model *m, float **data)
{
    for (int p = 0; p < m->params; p++)
        nami_free(data[p]);
    nami_free(data);
}

static void test_import(void **state)
{
    (void)state;
    nami_model_options o = options();
    nami_model *m;
    nami_status status;
    assert_ok(nami_model_new(&o, 0, &m));
    float **data = load(m, "tests/data/weights-llama.safetensors", &status);
    assert_ok(status);
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++) {
            const double u = numbers_uniform((uint64_t)p, (uint64_t)e);
            const float want =
                (float)(m->param[p].init == NAMI_INIT_ONE ? 1 + u / 2 : u);
            if (data[p][e] != want)
                fail_msg("%s[%lld] is %.9g, expected %.9g", m->param[p].name,
                         (long long)e, (double)data[p][e], (double)want);
        }
    release(m, data);
    nami_model_free(m);
}

/* What export writes of each parameter: the arrays of the file, in their shapes, each once. */
static void test_export(void **state)
{
    (void)state;
    char path[512];
    nami_model_options o = options();
    nami_model *m;
    nami_exchange *x;
    int arrays, written = 0;
    assert_ok(nami_model_new(&o, 0, &m));
    assert_ok(nami_exchange_open(
        nami_test_source(path, "tests/data/weights-llama.safetensors"), &x));
    const nami_exchange_array *a = nami_exchange_arrays(x, &arrays);
    for (int p = 0; p < m->params; p++) {
        const nami_param_rows rows = {m->param[p].name, m->param[p].shape.dim[0]};
        nami_exchange_piece piece;
        int64_t next = 0;
        for (int k = 0; nami_exchange_piece_of(&o, NULL, &rows, k, &piece); k++) {
            int found = 0;
            for (int i = 0; i < arrays; i++)
                if (strcmp(a[i].name, piece.name) == 0) {
                    found++;
                    assert_int_equal(a[i].dim[0], piece.to - piece.from);
                }
            assert_int_equal(found, 1);
            assert_int_equal(piece.from, next);
            assert_false(piece.turned);
            next = piece.to;
            written++;
            nami_free(piece.name);
        }
        assert_int_equal(next, rows.rows);
    }
    assert_int_equal(written, arrays);
    nami_exchange_close(x);
    nami_model_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        int64_t kv_heads, mlp_width;
        const char *says;
    } wrong[] = {{3, 10, "self_attn"}, {1, 11, "mlp"}};
    for (int i = 0; i < 2; i++) {
        nami_model_options o = options();
        nami_model *m;
        nami_status status;
        o.kv_heads = wrong[i].kv_heads;
        o.mlp_width = wrong[i].mlp_width;
        assert_ok(nami_model_new(&o, 0, &m));
        float **data = load(m, "tests/data/weights-llama.safetensors", &status);
        assert_fails(status, NAMI_EINPUT, wrong[i].says);
        release(m, data);
        nami_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("llama", tests, NULL, nami_test_balance);
}
