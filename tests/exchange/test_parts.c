/* SPDX-License-Identifier: MIT */
/* test_parts.c - arrays that are rows of a parameter: PyTorch's files of a vision transformer read and written again in
 * both layouts, what is missing, there twice or of another shape; names of every family both ways.
 */
#include <math.h>
#include <unistd.h>

#include "exchange/names.h"
#include "family.h"
#include "model/family.h"
#include "nami_test.h"
#include "numbers.h"

#define HUB "tests/data/weights-vit-huggingface.safetensors"
#define LIBRARY "tests/data/weights-vit-torchvision.pt"
#define KEY "vit.encoder.layer.1.attention.attention.key."

/* That of validation/torch/vit.py. */
static nami_model *make_model(void)
{
    nami_model *m;
    nami_model_options o = {.layers = 2,
                            .width = 12,
                            .heads = 3,
                            .mlp_width = 20,
                            .patch = 4,
                            .image_height = 12,
                            .image_width = 12,
                            .image_channels = 3,
                            .classes = 10};
    o.family = family_named("vit");
    assert_ok(nami_model_new(&o, 0, &m));
    return m;
}

static float **make_arrays(const nami_model *m)
{
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *data);
    for (int p = 0; p < m->params; p++) {
        const size_t bytes =
            (size_t)nami_shape_count(&m->param[p].shape) * sizeof(float);
        data[p] = nami_alloc(NAMI_MEM_OTHER, bytes);
        memset(data[p], 0xff, bytes);
    }
    return data;
}

static void free_arrays(const nami_model *m, float **data)
{
    for (int p = 0; p < m->params; p++)
        nami_free(data[p]);
    nami_free(data);
}

/* The formula of images.py, in the order of our parameters, which is PyTorch's. */
static float expected(const nami_param *q, int p, int64_t e)
{
    const double each = (double)(nami_shape_count(&q->shape) / q->shape.dim[0]);
    const double u = numbers_uniform((uint64_t)p, (uint64_t)e);
    return (float)(q->shape.rank > 1 ? u * sqrt(24 / each)
                                     : u + (q->init == NAMI_INIT_ONE ? 1 : 0));
}

static void test_read(void **state)
{
    static const char *const name[] = {HUB, LIBRARY};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[512];
        nami_model *m = make_model();
        float **data = make_arrays(m);
        assert_ok(nami_exchange_load(NULL, nami_test_source(path, name[i]), m, data));
        for (int p = 0; p < m->params; p++)
            for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++)
                if (data[p][e] != expected(&m->param[p], p, e))
                    fail_msg("%s: %s[%lld] is %.9g, not %.9g", name[i],
                             m->param[p].name, (long long)e, (double)data[p][e],
                             (double)expected(&m->param[p], p, e));
        free_arrays(m, data);
        nami_model_free(m);
    }
}

/* The array of `name` in PyTorch's file has its shape and elements. */
static void check_array(const nami_exchange *x, const char *name, nami_shape shape,
                        const float *want)
{
    int count;
    const nami_exchange_array *a = nami_exchange_arrays(x, &count);
    int i = 0;
    while (i < count && strcmp(a[i].name, name) != 0)
        i++;
    if (i == count)
        fail_msg("PyTorch has no %s", name);
    assert_int_equal(a[i].rank, shape.rank);
    for (int d = 0; d < shape.rank; d++)
        assert_int_equal(a[i].dim[d], shape.dim[d]);
    const size_t bytes = (size_t)nami_shape_count(&shape) * sizeof(float);
    float *data = nami_alloc(NAMI_MEM_OTHER, bytes);
    assert_ok(nami_exchange_read(x, &a[i], data));
    assert_memory_equal(data, want, bytes);
    nami_free(data);
}

/* What export writes is what PyTorch's file holds: all of it, in their names. */
static void test_write(void **state)
{
    static const char *const name[] = {HUB, LIBRARY}, *const layout[] = {"huggingface",
                                                                         "torchvision"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[512];
        int count, made = 0;
        nami_exchange *x;
        nami_model *m = make_model();
        float **data = make_arrays(m);
        nami_test_source(path, name[i]);
        assert_ok(nami_exchange_load(NULL, path, m, data));
        assert_ok(nami_exchange_open(path, &x));
        assert_ok(nami_exchange_layout("vit", layout[i]));
        for (int p = 0; p < m->params; p++) {
            const nami_param_rows param = {m->param[p].name, m->param[p].shape.dim[0]};
            nami_exchange_piece piece;
            for (int k = 0;
                 nami_exchange_piece_of(&m->options, layout[i], &param, k, &piece);
                 k++, made++) {
                nami_shape shape = m->param[p].shape;
                const int64_t row = nami_shape_count(&shape) / shape.dim[0];
                shape.dim[0] = piece.to - piece.from;
                assert_false(piece.turned);
                check_array(x, piece.name, shape, data[p] + piece.from * row);
                nami_free(piece.name);
            }
        }
        (void)nami_exchange_arrays(x, &count);
        assert_int_equal(made, count);
        nami_exchange_close(x);
        free_arrays(m, data);
        nami_model_free(m);
    }
    assert_fails(nami_exchange_layout("vit", "nanogpt"), NAMI_EINPUT,
                 "family vit, which has torchvision and huggingface");
}

/* A change of one array of Hugging Face's layout. */
typedef struct change {
    const char *name; /* of the array; written under `as`, NULL: not at all */
    const char *as;
    const char *twice; /* and under this name too */
    int64_t rows;      /* of the array; 0: as they should be */
} change;

static void put(const change *c, const char *path)
{
    nami_exchange_writer *w;
    nami_model *m = make_model();
    float *zero = nami_calloc(NAMI_MEM_OTHER, 1 << 16, sizeof *zero);
    assert_ok(nami_exchange_create(path, NAMI_EXCHANGE_F32, &w));
    for (int write = 0; write < 2; write++)
        for (int p = 0; p < m->params; p++) {
            const nami_param_rows param = {m->param[p].name, m->param[p].shape.dim[0]};
            nami_exchange_piece piece;
            for (int k = 0;
                 nami_exchange_piece_of(&m->options, "huggingface", &param, k, &piece);
                 k++) {
                const bool it = !strcmp(piece.name, c->name);
                const char *names[] = {it ? c->as : piece.name, it ? c->twice : NULL};
                nami_shape shape = m->param[p].shape;
                shape.dim[0] = it && c->rows ? c->rows : piece.to - piece.from;
                for (int n = 0; n < 2; n++)
                    if (names[n] && write)
                        assert_ok(
                            nami_exchange_write(w, nami_shape_count(&shape), zero));
                    else if (names[n])
                        nami_exchange_declare(w, names[n], &shape);
                nami_free(piece.name);
            }
        }
    assert_ok(nami_exchange_finish(w, NAMI_OK));
    nami_free(zero);
    nami_model_free(m);
}

static nami_status try(const change *c)
{
    char path[512];
    nami_test_path(path, "parts.safetensors");
    put(c, path);
    nami_model *m = make_model();
    float **data = make_arrays(m);
    const nami_status status = nami_exchange_load(NULL, path, m, data);
    free_arrays(m, data);
    nami_model_free(m);
    unlink(path);
    return status;
}

static void test_misfits(void **state)
{
    (void)state;
    const char *key = KEY "weight";
    assert_ok(try(&(change){"none", NULL, NULL, 0}));
    assert_ok(try(&(change){key, "encoder.layer.1.attention.attention.key.weight", NULL,
                            0})); /* without vit. */
    assert_ok(try(&(change){key, key, "pooler.dense.weight", 0}));
    assert_fails(try(&(change){key, NULL, NULL, 0}), NAMI_EINPUT,
                 "the array for its rows from 12 on is missing");
    assert_fails(try(&(change){"vit.encoder.layer.0.attention.attention.query.bias",
                               NULL, NULL, 0}),
                 NAMI_EINPUT,
                 "self_attention.in_proj.bias of the model: the array for its rows "
                 "from 0 on is missing");
    assert_fails(
        try(&(change){key, key, "module.encoder.layer.1.attention.attention.key.weight",
                      0}),
        NAMI_EINPUT, "there are two for one parameter");
    assert_fails(try(&(change){key, key,
                               "encoder.layers.encoder_layer_1.self_attention."
                               "in_proj_weight",
                               0}),
                 NAMI_EINPUT, "there are two for one parameter");
    assert_fails(try(&(change){key, key, NULL, 11}), NAMI_EINPUT,
                 "key.weight is [11,12], and its part of parameter");
    assert_fails(
        try(&(change){key, "vit.encoder.layer.1.attention.attention.kay.weight", NULL,
                      0}),
        NAMI_EINPUT, "the model has no parameter of this name");
    assert_fails(try(&(change){"classifier.weight", NULL, NULL, 0}), NAMI_EINPUT,
                 "parameter heads.head.weight of the model is missing");
}

/* A model of family f, small where that can be set. */
static nami_model *small_model(int f)
{
    nami_model *m;
    char chain[] = "conv 4 3, norm, relu, flatten, linear classes";
    nami_model_options o = {0};
    assert_ok(nami_option_defaults(&nami_model_option_table, &o));
    nami_option_release(&nami_model_option_table, &o);
    o.family = f;
    o.chain = chain;
    o.layers = 2;
    o.width = 24;
    o.heads = 6;
    o.context = 16;
    o.vocabulary = 50;
    o.image_height = o.image_width =
        strcmp(nami_family_names[f], "inception") ? 224 : 299;
    o.image_channels = 3;
    o.classes = 5;
    o.synthetic_forward = o.synthetic_input = o.synthetic_weight = NULL;
    assert_ok(nami_model_new(&o, 0, &m));
    return m;
}

/* Every piece of every parameter, in each layout, is found again as what it is, and has no piece beside it. */
static void check_names(const nami_model *m, const nami_names *names,
                        const char *layout)
{
    for (int p = 0; p < m->params; p++) {
        const nami_param_rows param = {m->param[p].name, m->param[p].shape.dim[0]};
        int64_t done = 0;
        nami_exchange_piece piece;
        for (int k = 0; nami_exchange_piece_of(&m->options, layout, &param, k, &piece);
             k++) {
            nami_names_found found;
            bool same = false;
            assert_int_equal(piece.from, done);
            done = piece.to;
            assert_false(nami_names_none(names, piece.name));
            for (int c = 0; !same && nami_names_place(names, piece.name, c, &found);
                 c++) {
                same = !strcmp(found.own, param.name) &&
                       (k == 0 || (found.row && found.row->part == k));
                nami_free(found.own);
            }
            if (!same)
                fail_msg("%s, layout %s: %s is not %s", m->family->name, layout,
                         piece.name, param.name);
            nami_free(piece.name);
        }
        assert_int_equal(done, param.rows);
    }
}

static void test_families(void **state)
{
    (void)state;
    for (int f = 0; nami_family_names[f]; f++) {
        if (nami_families[f]->made_up)
            continue;
        const nami_names *names = nami_names_of(nami_family_names[f]);
        nami_model *m = small_model(f);
        for (const nami_dialect *d = names->dialect; d->name; d++)
            check_names(m, names, d->name);
        nami_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_write),
        cmocka_unit_test(test_misfits), cmocka_unit_test(test_families)};
    return cmocka_run_group_tests_name("parts", tests, NULL, nami_test_balance);
}
