/* SPDX-License-Identifier: MIT */
/* test_read.c - files that PyTorch made: the bits it had; and what must be refused of whole files. */
#include "nami_test.h"

#include <unistd.h>

#include "exchange/names.h"
#include "family.h"
#include "numbers.h"

static nami_model_options small(bool tied, bool bias)
{
    return (nami_model_options){.layers = 2,
                                .width = 12,
                                .heads = 3,
                                .context = 13,
                                .vocabulary = 37,
                                .tied = tied,
                                .bias = bias};
}

static float **make_arrays(const nami_model *m)
{
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *data);
    for (int p = 0; p < m->params; p++) {
        size_t count = (size_t)nami_shape_count(&m->param[p].shape);
        data[p] = nami_alloc(NAMI_MEM_OTHER, count * sizeof **data);
        memset(data[p], 0xff, count * sizeof **data);
    }
    return data;
}

static void free_arrays(const nami_model *m, float **data)
{
    for (int p = 0; p < m->params; p++)
        nami_free(data[p]);
    nami_free(data);
}

/* The formula of reference.py, in the order of its parameters, which is the model's. */
static void check_values(const nami_model *m, float **data)
{
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++) {
            double u = numbers_uniform((uint64_t)p, (uint64_t)e);
            float expected = (float)(m->param[p].init == NAMI_INIT_ONE ? 1 + u / 2 : u);
            if (memcmp(&expected, &data[p][e], sizeof expected) != 0)
                fail_msg("%s[%lld] is %g, expected %g", m->param[p].name, (long long)e,
                         (double)data[p][e], (double)expected);
        }
}

static nami_status load(const char *name, const nami_model_options *o, bool check)
{
    char path[512];
    nami_model *m;
    assert_ok(nami_model_new(o, 0, &m));
    float **data = make_arrays(m);
    nami_status status =
        nami_exchange_load(NULL, nami_test_source(path, name), m, data);
    if (status == NAMI_OK && check)
        check_values(m, data);
    free_arrays(m, data);
    nami_model_free(m);
    return status;
}

static void test_formats(void **state)
{
    static const char *const name[] = {
        "tests/data/weights-huggingface.safetensors",
        "tests/data/weights-nanogpt.safetensors.index.json",
        "tests/data/weights-zip.pt", "tests/data/weights-legacy.pt"};
    (void)state;
    const nami_model_options o = small(true, true);
    for (int i = 0; i < 4; i++) {
        char path[512];
        assert_true(nami_exchange_is(nami_test_source(path, name[i])));
        assert_ok(load(name[i], &o, true));
    }
}

/* What does not fit is refused by name. */
static void test_misfits(void **state)
{
    const char *hub = "tests/data/weights-huggingface.safetensors",
               *own = "tests/data/weights-nanogpt.safetensors.index.json";
    nami_model_options o = small(false, true);
    (void)state;
    assert_fails(load(hub, &o, false), NAMI_EINPUT, "lm_head.weight of the model is");
    assert_ok(load(own, &o, false)); /* its head becomes one of its own */
    o = small(true, false);
    assert_fails(load(hub, &o, false), NAMI_EINPUT, "has no parameter of this name");
    o = small(true, true);
    o.layers = 3;
    assert_fails(load(hub, &o, false), NAMI_EINPUT, "h.2.ln_1.weight of the model is");
    o.layers = 2;
    o.vocabulary = 38;
    assert_fails(load(hub, &o, false), NAMI_EINPUT, "wte.weight is [37,12]");
    o.vocabulary = 37;
    o.context = 14;
    assert_fails(load(hub, &o, false), NAMI_EINPUT, "wpe.weight is [13,12]");
    o.context = 13;
    assert_fails(load("tests/data/weights-types.safetensors", &o, false), NAMI_EINPUT,
                 "has no parameter of this name");
    assert_fails(load("tests/data/no-such.pt", &o, false), NAMI_EINPUT, "no-such.pt");
    assert_fails(load("tests/nami_test.h", &o, false), NAMI_EINPUT, "nami_test.h");
    assert_fails(load("tests", &o, false), NAMI_EINPUT, "no regular file");
}

static const nami_exchange_array *find(const nami_exchange *x, const char *name)
{
    int count;
    const nami_exchange_array *a = nami_exchange_arrays(x, &count);
    for (int i = 0; i < count; i++)
        if (!strcmp(a[i].name, name))
            return &a[i];
    fail_msg("no array %s", name);
    return NULL;
}

/* Each array of a narrow or wide type is what PyTorch's .float() makes of it. */
static void test_types(void **state)
{
    static const char *const name[] = {"half", "brain", "double", "scalar", "empty"};
    static const int64_t count[] = {1716, 50, 50, 1, 0};
    char path[512], wide[64];
    float a[2048], b[2048];
    nami_exchange *x;
    (void)state;
    assert_ok(nami_exchange_open(
        nami_test_source(path, "tests/data/weights-types.safetensors"), &x));
    for (int i = 0; i < 5; i++) {
        snprintf(wide, sizeof wide, "%s.float", name[i]);
        const nami_exchange_array *p = find(x, name[i]), *q = find(x, wide);
        int64_t n = 1;
        for (int k = 0; k < p->rank; k++)
            n *= p->dim[k];
        assert_int_equal(n, count[i]);
        memset(a, 0x11, sizeof a);
        memset(b, 0x22, sizeof b);
        assert_ok(nami_exchange_read(x, p, a));
        assert_ok(nami_exchange_read(x, q, b));
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
    }
    nami_exchange_close(x);
}

/* What the writer writes, the reader reads: all bits as f32, rounded as bf16. */
static void test_write(void **state)
{
    char path[512];
    float in[1000], out[1000];
    const nami_shape shape = nami_shape_of(4, 5, 50, 0), none = {.rank = 0};
    nami_exchange_writer *w;
    nami_exchange *x;
    (void)state;
    nami_test_path(path, "written.safetensors");
    for (int i = 0; i < 1000; i++)
        in[i] = (float)numbers_uniform(1, (uint64_t)i);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        assert_ok(nami_exchange_create(
            path, bf16 ? NAMI_EXCHANGE_BF16 : NAMI_EXCHANGE_F32, &w));
        nami_exchange_declare(w, "cube \"x\"", &shape);
        nami_exchange_declare(w, "one", &none);
        assert_ok(nami_exchange_write(w, 1000, in));
        assert_ok(nami_exchange_write(w, 1, in + 7));
        assert_ok(nami_exchange_finish(w, NAMI_OK));
        assert_ok(nami_exchange_open(path, &x));
        assert_ok(nami_exchange_read(x, find(x, "cube \"x\""), out));
        for (int i = 0; i < 1000; i++)
            assert_true(out[i] ==
                        (bf16 ? nami_bf16_to_f32(nami_f32_to_bf16(in[i])) : in[i]));
        assert_ok(nami_exchange_read(x, find(x, "one"), out));
        assert_true(find(x, "one")->rank == 0 && (bf16 || out[0] == in[7]));
        nami_exchange_close(x);
    }
    assert_ok(nami_exchange_create(path, NAMI_EXCHANGE_F32, &w));
    assert_status(nami_exchange_finish(w, NAMI_EENV), NAMI_EENV);
    assert_ok(nami_exchange_open(path, &x)); /* the old one is still there */
    nami_exchange_close(x);
    assert_status(nami_exchange_create("/no/such/place", NAMI_EXCHANGE_F32, &w),
                  NAMI_EENV);
}

static void test_names(void **state)
{
    static const char *const row[][3] = {
        {"gpt", "h.0.ln_1.bias", "transformer.h.0.ln_1.bias"},
        {"gpt", "transformer.h.0.ln_1.bias", "transformer.h.0.ln_1.bias"},
        {"gpt", "lm_head.weight", "lm_head.weight"},
        {"gpt", "module._orig_mod.wte.weight", "transformer.wte.weight"},
        {"gpt", "h.11.attn.bias", NULL},
        {"gpt", "transformer.h.11.attn.masked_bias", NULL},
        {"gpt", "h.11.attn.c_attn.bias", "transformer.h.11.attn.c_attn.bias"},
        {"resnet18", "bn1.num_batches_tracked", NULL},
        {"resnet18", "fc.weight", "fc.weight"},
        {"resnet18", "linear.weight", "linear.weight"},
        {"resnet20", "module.linear.weight", "fc.weight"},
        {"resnet110", "linear.weight", "fc.weight"},
        {"densenet121", "features.denseblock1.denselayer1.norm.1.weight",
         "features.denseblock1.denselayer1.norm1.weight"},
        {"densenet121", "features.denseblock4.denselayer16.conv.2.weight",
         "features.denseblock4.denselayer16.conv2.weight"},
        {"densenet121", "features.denseblock1.denselayer1.norm2.running_var",
         "features.denseblock1.denselayer1.norm2.running_var"},
        {"densenet121", "features.transition1.norm.weight",
         "features.transition1.norm.weight"},
        {"inception", "AuxLogits.fc.weight", NULL},
        {"inception", "Mixed_5b.branch1x1.conv.weight",
         "Mixed_5b.branch1x1.conv.weight"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        (void)family_named(row[i][0]);
        const nami_names *names = nami_names_of(row[i][0]);
        nami_names_found place;
        bool found = false;
        assert_int_equal(nami_names_none(names, row[i][1]), row[i][2] == NULL);
        for (int k = 0; row[i][2] && nami_names_place(names, row[i][1], k, &place);
             k++) {
            found = found || !strcmp(place.own, row[i][2]);
            nami_free(place.own);
        }
        assert_int_equal(found, row[i][2] != NULL);
    }
}

/* Write a ResNet-20 as published, all numbers 0.5: skips without projections but `kept` arrays of one, head "linear". */
static void put_resnet(const nami_model *m, const char *path, int kept)
{
    nami_exchange_writer *w;
    float *data = nami_alloc(NAMI_MEM_OTHER, (size_t)(1 << 16) * sizeof *data);
    for (int i = 0; i < 1 << 16; i++)
        data[i] = 0.5F;
    assert_ok(nami_exchange_create(path, NAMI_EXCHANGE_F32, &w));
    for (int write = 0; write < 2; write++)
        for (int p = 0, left = kept; p < m->params; p++) {
            const nami_param *q = &m->param[p];
            const char *head = strncmp(q->name, "fc.", 3) ? NULL : q->name + 3;
            char name[128];
            if (strstr(q->name, ".downsample.") && left-- <= 0)
                continue;
            snprintf(name, sizeof name, "module.%s%s", head ? "linear." : "",
                     head ? head : q->name);
            if (write)
                assert_ok(nami_exchange_write(w, nami_shape_count(&q->shape), data));
            else
                nami_exchange_declare(w, name, &q->shape);
        }
    assert_ok(nami_exchange_finish(w, NAMI_OK));
    nami_free(data);
}

/* The value that makes a projection a skip padded with zeros: [out,in,1,1], a norm of nothing. */
static double padded(const nami_param *q, int64_t e)
{
    const int64_t out = q->shape.dim[0], in = q->shape.dim[1];
    if (!strstr(q->name, ".downsample."))
        return 0.5;
    if (strstr(q->name, ".0.weight"))
        return e / in - (out - in) / 2 == e % in;
    return strstr(q->name, ".1.weight") ? 1 : strstr(q->name, "_var") ? 1 - 1e-5 : 0;
}

static void test_padding(void **state)
{
    nami_model_options o = {
        .image_height = 32, .image_width = 32, .image_channels = 3, .classes = 10};
    char path[512];
    nami_model *m;
    (void)state;
    o.family = family_named("resnet20");
    assert_ok(nami_model_new(&o, 0, &m));
    float **data = make_arrays(m);
    put_resnet(m, nami_test_path(path, "padded.safetensors"), 0);
    assert_ok(nami_exchange_load(NULL, path, m, data));
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++)
            if (data[p][e] != (float)padded(&m->param[p], e))
                fail_msg("%s[%lld] is %g", m->param[p].name, (long long)e,
                         (double)data[p][e]);
    put_resnet(m, path, 1);
    assert_fails(nami_exchange_load(NULL, path, m, data), NAMI_EINPUT,
                 "downsample.1.weight of the model is missing");
    put_resnet(m, path, 10);
    assert_ok(nami_exchange_load(NULL, path, m, data));
    free_arrays(m, data);
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_formats), cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_types),   cmocka_unit_test(test_write),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_padding),
    };
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
