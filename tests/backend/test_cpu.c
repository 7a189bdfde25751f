/* SPDX-License-Identifier: MIT */
/* test_cpu.c - the cpu backend against the reference, over odd sizes, types, threads and offsets. */
#include "nami_test.h"

#include <math.h>

#include "backend/cpu/cpu.h"
#include "problem.h"

static uint64_t seed;

/* Sizes for one family; dims as the family says. */
typedef struct shape_list {
    const char *family;
    int64_t dim[12][8];
} shape_list;

static const shape_list shapes[] = {
    {"linear",
     {{1, 1, 1},
      {3, 17, 5},
      {65, 127, 33},
      {17, 1, 65},
      {64, 96, 64},
      {129, 65, 257},
      {5, 9, 4100}}},
    {"norm",
     {{1, 1},
      {3, 17},
      {65, 127},
      {33, 64},
      {7, 769},
      {100, 3},
      {1, 1, 1},
      {65, 127, 1},
      {33, 64, 1}}},
    {"rotary", /* B, T, H, D, R, first */
     {{1, 1, 1, 2, 0, 0},
      {2, 3, 3, 6, 5, 70},
      {1, 65, 2, 34, 17, 0},
      {3, 17, 5, 64, 128, 4000},
      {2, 130, 1, 260, 1, 11}}},
    {"swiglu", {{1, 1}, {3, 17}, {65, 127}, {33, 64}}},
    {"gelu", {{1}, {3}, {17}, {127}, {4097}, {9000}}},
    {"attention",
     {{1, 1, 1, 1},
      {2, 3, 3, 17},
      {1, 65, 2, 32},
      {2, 127, 1, 64},
      {1, 33, 2, 65},
      {1, 200, 3, 8},
      {3, 64, 2, 48},
      {2, 67, 6, 9, 2},
      {1, 33, 4, 16, 1, 1},
      {3, 75, 2, 17, 0, 1},
      {4, 70, 6, 24, 3, 2}}},
    {"dropout", {{1, 1}, {3, 17}, {2, 4097}, {5, 64}, {1, 10000}}},
    {"embed", {{1, 1, 1, 1}, {2, 3, 17, 5}, {3, 33, 65, 17}, {2, 17, 127, 300}}},
    {"masked", {{1, 1, 1, 1}, {2, 3, 17, 2}, {3, 33, 65, 5}, {5, 8, 130, 7}}},
    {"xent", {{1, 1, 1}, {2, 3, 17}, {3, 5, 257}, {2, 9, 1000}}},
    {"vector", {{1}, {17}, {65535}, {65537}, {200001}}},
    {"update", {{1}, {3}, {17}, {8193}, {20001}}},
    {"conv", /* B, H, W, I, O, K, stride, groups */
     {{1, 5, 6, 1, 1, 3, 1, 1},
      {2, 7, 5, 3, 17, 3, 2, 1},
      {2, 9, 8, 16, 33, 3, 1, 1},
      {3, 6, 6, 65, 24, 1, 1, 1},
      {2, 8, 9, 24, 24, 3, 1, 24},
      {1, 12, 13, 32, 48, 5, 2, 4},
      {2, 14, 14, 1, 6, 5, 1, 1},
      {3, 4, 4, 5, 7, 3, 1, 1},
      {2, 9, 7, 33, 20, 1, 2, 1},
      {1, 15, 15, 48, 40, 3, 1, 1}}},
    {"batch_norm", {{5, 1}, {7, 17}, {65, 127}, {200, 64}, {1000, 3}, {33, 600}}},
    {"pool", /* B, H, W, C, K, stride, padding */
     {{1, 4, 4, 1, 2, 2, 0},
      {2, 7, 6, 17, 3, 2, 1},
      {1, 9, 9, 65, 3, 1, 1},
      {3, 7, 7, 33, 7, 1, 0}}},
    {"image", {{1, 1, 1}, {2, 3, 17}, {3, 49, 64}, {2, 100, 127}}},
    {"prepend", {{1, 1, 1}, {2, 3, 17}, {3, 49, 64}, {5, 2, 127}}},
    {"rmsprop", {{1}, {3}, {17}, {8193}, {20001}}},
    {"predict", {{1}, {3}, {17}, {8193}, {20001}}},
};

static const shape_list *shapes_of(const char *family)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (!strcmp(shapes[i].family, family))
            return &shapes[i];
    return NULL;
}

static nami_backend *open_backend(const char *name, int threads, nami_dtype act)
{
    nami_backend *b;
    assert_ok(nami_backend_open(name, threads, act, &b));
    return b;
}

/* Whether parts agree within `tolerance` of the larger of 1 and the value; NaN agrees with NaN. */
static void assert_close(const char *family, const nami_problem *p,
                         const nami_array *got, const nami_array *want,
                         double tolerance)
{
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->count, want->count);
    for (int64_t i = 0; i < got->count; i++) {
        const double g = nami_array_get(got, i), w = nami_array_get(want, i);
        if (isnan(g) && isnan(w))
            continue;
        if (!(fabs(g - w) <= tolerance * fmax(1, fabs(w))))
            fail_msg(
                "%s %s[%lld] of [%lld,%lld,%lld,%lld] %s offset %d dropout %g: %.9g, "
                "reference %.9g",
                family, got->name, (long long)i, (long long)p->dim[0],
                (long long)p->dim[1], (long long)p->dim[2], (long long)p->dim[3],
                nami_dtype_name(p->act), p->offset, p->dropout, g, w);
    }
}

static void assert_same_bits(const char *family, const char *why, const nami_outcome *a,
                             const nami_outcome *b)
{
    for (int i = 0; i < a->parts; i++) {
        const size_t bytes =
            (size_t)a->part[i].count * nami_dtype_size(a->part[i].dtype);
        if (memcmp(a->part[i].data, b->part[i].data, bytes))
            fail_msg("%s %s differs in bits: %s", family, a->part[i].name, why);
    }
}

/* Error allowed: sums of f32 for f32; two roundings of bf16 on values of about 1 for bf16. */
static double tolerance_of(nami_dtype act, nami_dtype part)
{
    if (act == NAMI_BF16)
        return part == NAMI_BF16 ? 0.02 : 0.01;
    return 4e-5;
}

/* Run `p` on ref and cpu and compare; then cpu again in ways that must not change a bit. */
static void check(const nami_suite *f, nami_backend *const b[3], nami_problem p)
{
    nami_outcome ref = f->run(b[0], &p), one = f->run(b[1], &p);
    nami_outcome again = f->run(b[1], &p), two = f->run(b[2], &p),
                 two_again = f->run(b[2], &p);
    p.offset = 1;
    nami_outcome moved = f->run(b[1], &p), two_moved = f->run(b[2], &p);
    for (int i = 0; i < ref.parts; i++) {
        const double tolerance = tolerance_of(p.act, ref.part[i].dtype);
        assert_close(f->name, &p, &one.part[i], &ref.part[i], tolerance);
        assert_close(f->name, &p, &two.part[i], &ref.part[i], tolerance);
    }
    assert_same_bits(f->name, "run twice", &one, &again);
    assert_same_bits(f->name, "run twice on two threads", &two, &two_again);
    assert_same_bits(f->name, "other alignment", &one, &moved);
    assert_same_bits(f->name, "other alignment on two threads", &two, &two_moved);
    if (f->thread_free)
        assert_same_bits(f->name, "one and two threads", &one, &two);
    nami_outcome_free(b[0], &ref);
    nami_outcome *rest[] = {&one, &again, &two, &two_again, &moved, &two_moved};
    for (int i = 0; i < 6; i++)
        nami_outcome_free(b[1], rest[i]);
}

static void check_family(const nami_suite *f, nami_backend *const b[3], nami_dtype act)
{
    const shape_list *list = shapes_of(f->name);
    assert_non_null(list);
    for (int i = 0; i < 12 && list->dim[i][0]; i++)
        for (int variant = 0; variant < 3; variant++) {
            nami_problem p = {.act = act,
                              .seed = seed + (uint64_t)(10 * i + variant),
                              .bare = variant == 1,
                              .dropout = variant == 2 ? 0.3 : 0};
            memcpy(p.dim, list->dim[i], sizeof p.dim);
            check(f, b, p);
        }
}

/* `widened`: how bf16 layers are to run, in place of what suits this processor; -1 leaves that. */
static void all_families(nami_dtype act, int widened)
{
    nami_backend *const b[3] = {open_backend("ref", 1, act),
                                open_backend("cpu", 1, act),
                                open_backend("cpu", 2, act)};
    for (int i = 1; i < 3 && widened >= 0; i++)
        ((nami_cpu *)b[i]->state)->widened = widened;
    ((nami_cpu *)b[2]->state)->patch_bytes = 6000; /* several products a layer */
    for (int i = 0; i < nami_suites_count; i++)
        check_family(&nami_suites[i], b, act);
    for (int i = 0; i < 3; i++)
        nami_backend_close(b[i]);
}

static void test_f32(void **state)
{
    (void)state;
    all_families(NAMI_F32, -1);
}

static void test_bf16(void **state)
{
    (void)state;
    all_families(NAMI_BF16, 1);
    nami_onednn dnn;
    nami_product *p;
    const nami_product_spec spec = {
        .m = 16, .k = 16, .n = 16, .in = NAMI_BF16, .out = NAMI_BF16};
    assert_ok(nami_onednn_open(&dnn));
    const nami_status status = nami_product_new(&dnn, &spec, &p);
    if (status == NAMI_OK)
        nami_product_free(p);
    nami_onednn_close(&dnn);
    nami_fail_clear();
    if (status != NAMI_OK)
        print_message("bf16 products are not there and not tested\n");
    else
        all_families(NAMI_BF16, 0);
}

/* Our packing of weights [out,in] is the library's, bit by bit. */
static void same_packed(nami_backend *b, int64_t out, int64_t in, bool turned)
{
    const nami_cpu *cpu = b->state;
    const nami_product_spec spec = {.m = 5,
                                    .k = turned ? in : out,
                                    .n = turned ? out : in,
                                    .b_turned = turned,
                                    .in = NAMI_BF16,
                                    .out = NAMI_BF16,
                                    .pack = true};
    nami_product *p;
    if (nami_product_new(&cpu->dnn, &spec, &p) != NAMI_OK) {
        nami_fail_clear(); /* this processor has no such products */
        return;
    }
    const size_t bytes = nami_product_packed(p);
    float *w = nami_alloc(NAMI_MEM_OTHER, (size_t)(out * in) * sizeof *w);
    for (int64_t i = 0; i < out * in; i++)
        w[i] = (float)(nami_mix(7, (uint64_t)i) % 20001) / 10000 - 1;
    void *ours = nami_calloc(NAMI_MEM_OTHER, 1, bytes + 1),
         *theirs = nami_calloc(NAMI_MEM_OTHER, 1, bytes + 1);
    memset(ours, 0x55, bytes);
    nami_cpu_pack(b, p, w, ours);
    nami_product_pack(&cpu->dnn, p, w, theirs);
    assert_memory_equal(ours, theirs, bytes);
    nami_free(theirs);
    nami_free(ours);
    nami_free(w);
    nami_product_free(p);
}

static void test_pack(void **state)
{
    (void)state;
    static const int64_t size[][2] = {{1, 1},    {3, 130},  {64, 64}, {77, 35},
                                      {200, 96}, {257, 33}, {31, 500}};
    nami_backend *b = open_backend("cpu", 2, NAMI_BF16);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int turned = 0; turned < 2; turned++)
            same_packed(b, size[i][0], size[i][1], turned);
    nami_backend_close(b);
}

/* Token slices: attention of odd sizes, and dropout that begins anywhere in a sample. */
typedef struct sliced {
    const char *family;
    int64_t slices, dim[8];
} sliced;

static const sliced slices[] = {
    {"attention", 3, {1, 3, 1, 1}},
    {"attention", 2, {2, 10, 3, 17}},
    {"attention", 5, {1, 65, 2, 32}},
    {"attention", 7, {3, 77, 2, 5}},
    {"attention", 2, {2, 142, 1, 64}},
    {"attention", 3, {1, 99, 2, 65}},
    {"attention", 4, {1, 256, 2, 48}},
    {"attention", 2, {1, 290, 1, 16}},
    {"attention", 3, {2, 39, 6, 7, 2}},
    {"attention", 2, {1, 66, 4, 32, 1}},
    {"dropout", 2, {1, 17}},
    {"dropout", 3, {1, 10000}},
    {"dropout", 7, {1, 4099}},
};

/* `visit` for each with every variant of dropout and optional operands. */
static void each_sliced(nami_dtype act, nami_backend *const b[3],
                        void (*visit)(const nami_suite *f, nami_backend *const b[3],
                                      nami_problem p))
{
    for (size_t i = 0; i < 3 * sizeof slices / sizeof slices[0]; i++) {
        const sliced *s = &slices[i / 3];
        nami_problem p = {.act = act,
                          .slices = s->slices,
                          .seed = seed + i,
                          .bare = i % 3 == 1,
                          .dropout = i % 3 == 2 ? 0.3 : 0};
        memcpy(p.dim, s->dim, sizeof p.dim);
        for (int f = 0; f < nami_suites_count; f++)
            if (!strcmp(nami_suites[f].name, s->family))
                visit(&nami_suites[f], b, p);
    }
}

static void test_slices(void **state)
{
    (void)state;
    static const nami_dtype act[] = {NAMI_F32, NAMI_BF16};
    for (int i = 0; i < 2; i++) {
        nami_backend *cpu = open_backend("cpu", 1, act[i]);
        nami_backend *const b[3] = {open_backend("ref", 1, act[i]), cpu,
                                    open_backend("cpu", 2, act[i])};
        each_sliced(act[i], b, check);
        for (int k = 0; k < 3; k++)
            nami_backend_close(b[k]);
    }
}

/* The reference of slices against that of whole samples. */
static void check_whole(const nami_suite *f, nami_backend *const b[3], nami_problem p)
{
    nami_outcome cut = f->run(b[0], &p);
    p.slices = 0;
    nami_outcome whole = f->run(b[0], &p);
    assert_int_equal(cut.parts, whole.parts);
    for (int i = 0; i < whole.parts; i++)
        assert_close(f->name, &p, &cut.part[i], &whole.part[i], 1e-12);
    nami_outcome_free(b[0], &cut);
    nami_outcome_free(b[0], &whole);
}

static void test_slices_whole(void **state)
{
    (void)state;
    nami_backend *ref = open_backend("ref", 1, NAMI_F64);
    nami_backend *const b[3] = {ref, NULL, NULL};
    each_sliced(NAMI_F64, b, check_whole);
    nami_backend_close(ref);
}

/* Where a NaN of the input reaches the reference's output it reaches the cpu's (blocks may spread it further). */
static void test_nan(void **state)
{
    (void)state;
    enum { CASES = 6 };
    static const int64_t dim[CASES][8] = {{3, 65},     {100},      {1, 33, 2, 16},
                                          {2, 3, 129}, {3, 65, 1}, {3, 65}};
    static const char *const name[CASES] = {"norm", "gelu", "attention",
                                            "xent", "norm", "swiglu"};
    nami_backend *ref = open_backend("ref", 1, NAMI_F32),
                 *cpu = open_backend("cpu", 2, NAMI_F32);
    for (int k = 0; k < CASES; k++)
        for (int i = 0; i < nami_suites_count; i++) {
            if (strcmp(nami_suites[i].name, name[k]))
                continue;
            nami_problem p = {.act = NAMI_F32, .seed = seed, .poison = NAN};
            memcpy(p.dim, dim[k], sizeof p.dim);
            nami_outcome r = nami_suites[i].run(ref, &p),
                         c = nami_suites[i].run(cpu, &p);
            int nans = 0;
            for (int o = 0; o < r.parts; o++)
                for (int64_t e = 0; e < r.part[o].count; e++) {
                    const bool in_ref = isnan(nami_array_get(&r.part[o], e));
                    nans += in_ref;
                    if (in_ref && !isnan(nami_array_get(&c.part[o], e)))
                        fail_msg("%s %s[%lld]: the reference is NaN, cpu is not",
                                 name[k], r.part[o].name, (long long)e);
                }
            assert_true(nans > 0);
            nami_outcome_free(ref, &r);
            nami_outcome_free(cpu, &c);
        }
    nami_backend_close(ref);
    nami_backend_close(cpu);
}

/* The factors of the cpu backend are nami_keep, element by element. */
static void test_mask(void **state)
{
    (void)state;
    enum { SAMPLES = 3, COUNT = 1021 };
    static float x[SAMPLES * COUNT], y[SAMPLES * COUNT];
    for (int i = 0; i < SAMPLES * COUNT; i++)
        x[i] = 1;
    for (int threads = 1; threads <= 2; threads++) {
        nami_backend *b = open_backend("cpu", threads, NAMI_F32);
        const nami_arg_dropout a = {.act = NAMI_F32,
                                    .batch = SAMPLES,
                                    .count = COUNT,
                                    .dropout = 0.25,
                                    .key = seed,
                                    .first_sample = 41,
                                    .x = x,
                                    .y = y};
        const nami_prepared *p;
        assert_ok(nami_backend_prepare(b, NAMI_DROPOUT_F, &a, &p));
        nami_backend_launch(b, 0, p, &a);
        int kept = 0;
        for (int s = 0; s < SAMPLES; s++)
            for (int e = 0; e < COUNT; e++) {
                const bool keep = nami_keep(seed, 41 + s, e, 0.25);
                kept += keep;
                assert_true(y[s * COUNT + e] == (keep ? (float)(1 / 0.75) : 0.0f));
            }
        assert_true(kept > 0.7 * SAMPLES * COUNT && kept < 0.8 * SAMPLES * COUNT);
        nami_backend_close(b);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    nami_backend *b;
    assert_fails(nami_backend_open("gpu", 1, NAMI_F32, &b), NAMI_EINPUT,
                 "expected one of ref, cpu");
    assert_fails(nami_backend_open("cpu", 0, NAMI_F32, &b), NAMI_EINPUT, "at least 1");
    assert_fails(nami_backend_open("cpu", 1, NAMI_F64, &b), NAMI_EENV, "not in f64");
    b = open_backend("cpu", 1, NAMI_F32);
    const nami_prepared *p;
    const nami_arg_dropout drop = {
        .act = NAMI_F32, .batch = 1, .count = 1, .dropout = 1.5};
    assert_fails(nami_backend_prepare(b, NAMI_DROPOUT_F, &drop, &p), NAMI_EINPUT,
                 "0 to 0.9999");
    const nami_arg_gelu gelu = {.act = NAMI_BF16, .count = 1};
    assert_fails(nami_backend_prepare(b, NAMI_GELU_F, &gelu, &p), NAMI_EENV,
                 "opened for f32");
    nami_backend_close(b);
}

/* Equal requests share one prepared kernel; costs are as counted by hand. */
static void test_prepared(void **state)
{
    (void)state;
    nami_backend *b = open_backend("cpu", 2, NAMI_F32);
    const nami_prepared *p, *q, *r;
    nami_arg_linear a = {.act = NAMI_F32, .n = 4, .in = 3, .out = 5};
    assert_ok(nami_backend_prepare(b, NAMI_LINEAR_F, &a, &p));
    assert_ok(nami_backend_prepare(b, NAMI_LINEAR_F, &a, &q));
    assert_ptr_equal(p, q);
    assert_true(p->flops == 120);
    a.n = 5;
    assert_ok(nami_backend_prepare(b, NAMI_LINEAR_F, &a, &r));
    assert_ptr_not_equal(p, r);
    const nami_arg_attention t = {
        .act = NAMI_F32, .batch = 2, .time = 3, .heads = 5, .head_width = 7};
    assert_ok(nami_backend_prepare(b, NAMI_ATTENTION_F, &t, &p));
    assert_true(p->flops ==
                2 * 5 * 6 * (2 * 7) * 2); /* 6 pairs (i,j), two products of 7 */
    assert_true(p->bytes == 4 * (2 * 3 * 5 * 7) * 4); /* q, k, v, y */
    nami_arg_attention g = t;
    g.whole = true;
    g.kv_heads = 1;
    assert_ok(nami_backend_prepare(b, NAMI_ATTENTION_BI, &g, &p));
    assert_true(p->flops == 2 * 5 * 9 * (2 * 7) * 5);       /* all 9 pairs */
    assert_true(p->bytes == 4 * (2 * 3 * (4 * 5 + 4) * 7)); /* with the gradients */
    nami_backend_close(b);
}

static void test_peak(void **state)
{
    (void)state;
    static const char *const name[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        nami_backend *b = open_backend(name[i], 1, NAMI_F32);
        const double peak = nami_backend_peak(b, NAMI_F32, 0.05);
        print_message("%s: %.3g FLOP/s\n", name[i], peak);
        assert_true(peak > 1e6 && peak < 1e14);
        nami_backend_close(b);
    }
}

int main(void)
{
    seed = nami_test_seed(20240601);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),          cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_pack),         cmocka_unit_test(test_nan),
        cmocka_unit_test(test_mask),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_prepared),     cmocka_unit_test(test_peak),
        cmocka_unit_test(test_slices_whole), cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, nami_test_balance);
}
