/* SPDX-License-Identifier: MIT */
/* test_bert.c - BERT's weights under Hugging Face's names, new and old, with and without heads; what is written. */
#include "nami_test.h"

#include "exchange/exchange.h"
#include "family.h"
#include "numbers.h"

/* What a file is like. */
typedef struct like {
    bool bare; /* no "bert." in front, no heads */
    bool old;  /* gamma and beta */
    bool twin; /* the decoder again; `other`: other numbers in it */
    bool other;
    const char *lacks; /* the end of a name that is left out */
} like;

typedef struct sink {
    nami_exchange_writer *writer;
    const like *like;
    bool declares;
} sink;

static nami_model *make(void)
{
    nami_model_options o = {.layers = 2,
                            .width = 8,
                            .heads = 2,
                            .context = 5,
                            .vocabulary = 11,
                            .type_vocabulary = 2,
                            .tied = true};
    nami_model *m;
    o.family = family_named("bert");
    assert_ok(nami_model_new(&o, 0, &m));
    return m;
}

static float value(int p, int64_t e)
{
    return (float)numbers_uniform((uint64_t)p, (uint64_t)e);
}

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Part `part` of `parts` of the rows of parameter p, as NAME. */
static void put(const sink *s, const nami_model *m, int p, const char *name, int part,
                int parts)
{
    nami_shape shape = m->param[p].shape;
    const int64_t count = nami_shape_count(&shape) / parts;
    float data[512];
    shape.dim[0] /= parts;
    if (s->like->lacks && ends(name, s->like->lacks))
        return;
    if (s->declares) {
        nami_exchange_declare(s->writer, name, &shape);
        return;
    }
    assert_true(count <= 512);
    for (int64_t e = 0; e < count; e++)
        data[e] = value(p, part * count + e) +
                  (s->like->other && ends(name, "decoder.weight") ? 1 : 0);
    assert_ok(nami_exchange_write(s->writer, count, data));
}

static void put_parameter(const sink *s, const nami_model *m, int p)
{
    static const char *const third[] = {"query", "key", "value"};
    const char *own = m->param[p].name, *qkv = strstr(own, "qkv");
    const char *norm = s->like->old ? strstr(own, "LayerNorm.") : NULL;
    const int skip = s->like->bare ? 5 : 0;
    char name[128];
    if (s->like->twin && strcmp(own, "cls.predictions.bias") == 0)
        put(s, m, p, "cls.predictions.decoder.bias", 0, 1);
    if (s->like->bare && strncmp(own, "bert.", 5) != 0)
        return;
    for (int i = 0; i < 3 && qkv; i++) {
        snprintf(name, sizeof name, "%.*s%s%s", (int)(qkv - own) - skip, own + skip,
                 third[i], qkv + 3);
        put(s, m, p, name, i, 3);
    }
    if (qkv)
        return;
    if (norm)
        snprintf(name, sizeof name, "%.*sLayerNorm.%s", (int)(norm - own) - skip,
                 own + skip, ends(own, "weight") ? "gamma" : "beta");
    else
        snprintf(name, sizeof name, "%s", own + skip);
    put(s, m, p, name, 0, 1);
    if (s->like->twin && p == 0)
        put(s, m, p, "cls.predictions.decoder.weight", 0, 1);
}

/* Write such a file, read it; in *data what it makes of arrays of 7. */
static nami_status pass(const nami_model *m, const like *l, float **data)
{
    char path[512];
    sink s = {.like = l};
    nami_test_path(path, "bert.safetensors");
    assert_ok(nami_exchange_create(path, NAMI_EXCHANGE_F32, &s.writer));
    for (int write = 0; write < 2; write++) {
        s.declares = !write;
        for (int p = 0; p < m->params; p++)
            put_parameter(&s, m, p);
    }
    assert_ok(nami_exchange_finish(s.writer, NAMI_OK));
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++)
            data[p][e] = 7;
    return nami_exchange_load(NULL, path, m, data);
}

static void check_values(const nami_model *m, float *const *data, bool heads)
{
    for (int p = 0; p < m->params; p++)
        for (int64_t e = 0; e < nami_shape_count(&m->param[p].shape); e++) {
            bool there = heads || strncmp(m->param[p].name, "bert.", 5) == 0;
            if (data[p][e] != (there ? value(p, e) : 7))
                fail_msg("%s[%lld] is %g", m->param[p].name, (long long)e,
                         (double)data[p][e]);
        }
}

static void test_reading(void **state)
{
    static const like good[] = {{0},
                                {.old = true},
                                {.twin = true},
                                {.bare = true},
                                {.bare = true, .old = true}};
    (void)state;
    nami_model *m = make();
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *data);
    for (int p = 0; p < m->params; p++)
        data[p] =
            nami_calloc(NAMI_MEM_OTHER, (size_t)nami_shape_count(&m->param[p].shape),
                        sizeof **data);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(pass(m, &good[i], data));
        check_values(m, data, !good[i].bare);
    }
    assert_fails(pass(m, &(like){.lacks = "0.attention.self.key.weight"}, data),
                 NAMI_EINPUT, "the array for its rows from 8 on is missing");
    assert_fails(pass(m, &(like){.lacks = "transform.dense.bias"}, data), NAMI_EINPUT,
                 "cls.predictions.transform.dense.bias of the model is missing");
    assert_fails(pass(m, &(like){.bare = true, .lacks = "pooler.dense.bias"}, data),
                 NAMI_EINPUT, "bert.pooler.dense.bias of the model is missing");
    assert_fails(pass(m, &(like){.twin = true, .other = true}, data), NAMI_EINPUT,
                 "cls.predictions.decoder.weight is not equal to");
    assert_fails(
        pass(m, &(like){.bare = true, .twin = true}, data), NAMI_EINPUT,
        "cls.predictions.bias of the model is missing"); /* its copy is there */
    for (int p = 0; p < m->params; p++)
        nami_free(data[p]);
    nami_free(data);
    nami_model_free(m);
}

/* Three arrays of one matrix; all others as they are. */
static void test_writing(void **state)
{
    (void)state;
    nami_model *m = make();
    for (int p = 0; p < m->params; p++) {
        const nami_param_rows rows = {m->param[p].name, m->param[p].shape.dim[0]};
        const bool qkv = strstr(rows.name, ".qkv.");
        nami_exchange_piece piece;
        int count = 0;
        int64_t next = 0;
        for (; nami_exchange_piece_of(&m->options, NULL, &rows, count, &piece);
             count++) {
            assert_true(!piece.turned && piece.from == next);
            assert_true(qkv ? strstr(piece.name, ".self.") && !strstr(piece.name, "qkv")
                            : !strcmp(piece.name, rows.name));
            next = piece.to;
            nami_free(piece.name);
        }
        assert_int_equal(count, qkv ? 3 : 1);
        assert_int_equal(next, rows.rows);
    }
    nami_model_free(m);
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_writing),
    };
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
