/* SPDX-License-Identifier: MIT */
/* test_device.c - a backend with memory and time of its own: everything launched or copied waits in a queue, one piece
 * is done each time somebody asks whether an event is over. Whoever reads without waiting reads old values. */
#include "tiny.h"

#include "backend/emu/options.h"

typedef struct work {
    enum { COPY, ZERO, LAUNCH, MARK } what;
    void *to;
    const void *from;
    size_t bytes;
    const nami_prepared *prepared;
    union {
        nami_arg_linear linear;
        nami_arg_norm norm;
        nami_arg_gelu gelu;
        nami_arg_attention attention;
        nami_arg_rotary rotary;
        nami_arg_swiglu swiglu;
        nami_arg_dropout dropout;
        nami_arg_embed embed;
        nami_arg_gather gather;
        nami_arg_xent xent;
        nami_arg_vector vector;
        nami_arg_update update;
        nami_arg_predict predict;
        nami_arg_drift drift;
    } args;
} work;

typedef struct late {
    nami_backend *inner;
    work *queue; /* [room], a ring */
    uint64_t first, last, room;
} late;

static void work_off(late *l)
{
    const work *w = &l->queue[l->first++ % l->room];
    if (w->what == COPY && w->bytes > 0)
        memcpy(w->to, w->from, w->bytes);
    else if (w->what == ZERO && w->bytes > 0)
        memset(w->to, 0, w->bytes);
    else if (w->what == LAUNCH)
        nami_backend_launch(l->inner, 0, w->prepared, &w->args);
}

static nami_event put(nami_backend *b, const work *w)
{
    late *l = b->state;
    if (l->last - l->first == l->room)
        work_off(l);
    l->queue[l->last++ % l->room] = *w;
    return l->last;
}

static bool late_done(nami_backend *b, nami_event e)
{
    late *l = b->state;
    if (l->first < e)
        work_off(l);
    return l->first >= e;
}

static nami_event late_mark(nami_backend *b, int lane)
{
    (void)lane;
    return put(b, &(work){.what = MARK});
}

static double late_moment(nami_backend *b, nami_event mark)
{
    (void)b;
    return (double)mark * 1e-6;
}

static void *late_alloc(nami_backend *b, nami_tag tag, size_t bytes)
{
    (void)b;
    void *block = nami_alloc(tag, bytes);
    memset(block, 0xff, bytes); /* not numbers */
    return block;
}

static void late_free(nami_backend *b, void *block)
{
    (void)b;
    nami_free(block);
}

static nami_event late_copy(nami_backend *b, int lane, void *to, const void *from,
                            size_t bytes)
{
    (void)lane;
    return put(b, &(work){.what = COPY, .to = to, .from = from, .bytes = bytes});
}

static nami_event late_zero(nami_backend *b, int lane, void *to, size_t bytes)
{
    (void)lane;
    return put(b, &(work){.what = ZERO, .to = to, .bytes = bytes});
}

static nami_status late_prepare(nami_backend *b, nami_kernel k, const void *args,
                                const nami_prepared **out)
{
    return nami_backend_prepare(((late *)b->state)->inner, k, args, out);
}

static size_t size_of(nami_kernel k)
{
    static const size_t size_of_args[NAMI_KERNELS] = {
        [NAMI_LINEAR_PACK] = sizeof(nami_arg_linear),
        [NAMI_LINEAR_F] = sizeof(nami_arg_linear),
        [NAMI_LINEAR_BI] = sizeof(nami_arg_linear),
        [NAMI_LINEAR_BW] = sizeof(nami_arg_linear),
        [NAMI_NORM_F] = sizeof(nami_arg_norm),
        [NAMI_NORM_BI] = sizeof(nami_arg_norm),
        [NAMI_NORM_BW] = sizeof(nami_arg_norm),
        [NAMI_GELU_F] = sizeof(nami_arg_gelu),
        [NAMI_GELU_BI] = sizeof(nami_arg_gelu),
        [NAMI_ATTENTION_F] = sizeof(nami_arg_attention),
        [NAMI_ATTENTION_BI] = sizeof(nami_arg_attention),
        [NAMI_ROTARY_F] = sizeof(nami_arg_rotary),
        [NAMI_ROTARY_BI] = sizeof(nami_arg_rotary),
        [NAMI_SWIGLU_F] = sizeof(nami_arg_swiglu),
        [NAMI_SWIGLU_BI] = sizeof(nami_arg_swiglu),
        [NAMI_DROPOUT_F] = sizeof(nami_arg_dropout),
        [NAMI_DROPOUT_BI] = sizeof(nami_arg_dropout),
        [NAMI_EMBED_F] = sizeof(nami_arg_embed),
        [NAMI_EMBED_BW] = sizeof(nami_arg_embed),
        [NAMI_GATHER_F] = sizeof(nami_arg_gather),
        [NAMI_GATHER_BI] = sizeof(nami_arg_gather),
        [NAMI_XENT_F] = sizeof(nami_arg_xent),
        [NAMI_ADD] = sizeof(nami_arg_vector),
        [NAMI_SCALE] = sizeof(nami_arg_vector),
        [NAMI_SQUARES] = sizeof(nami_arg_vector),
        [NAMI_ADAMW] = sizeof(nami_arg_update),
        [NAMI_ADAM] = sizeof(nami_arg_update),
        [NAMI_SGD] = sizeof(nami_arg_update),
        [NAMI_RMSPROP] = sizeof(nami_arg_update),
        [NAMI_PREDICT] = sizeof(nami_arg_predict),
        [NAMI_DRIFT] = sizeof(nami_arg_drift),
    };
    assert_true(size_of_args[k] > 0);
    return size_of_args[k];
}

static nami_event late_launch(nami_backend *b, int lane, const nami_prepared *p,
                              const void *args)
{
    work w = {.what = LAUNCH, .prepared = p};
    (void)lane;
    memcpy(&w.args, args, size_of(p->kernel));
    return put(b, &w);
}

static const nami_backend_type late_type = {.name = "late",
                                            .alloc = late_alloc,
                                            .free = late_free,
                                            .copy = late_copy,
                                            .zero = late_zero,
                                            .prepare = late_prepare,
                                            .launch = late_launch,
                                            .done = late_done,
                                            .mark = late_mark,
                                            .moment = late_moment};

static nami_status late_open(const char *name, int threads, nami_dtype act,
                             nami_backend **out)
{
    late *l = calloc(1, sizeof *l);
    nami_backend *b = calloc(1, sizeof *b);
    NAMI_TRY(nami_backend_open(name, threads, act, &l->inner));
    l->room = 5000;
    l->queue = calloc(l->room, sizeof *l->queue);
    *b = *l->inner;
    b->type = &late_type;
    b->host = false;
    b->state = l;
    *out = b;
    return NAMI_OK;
}

static void late_close(nami_backend *b)
{
    late *l = b->state;
    nami_backend_close(l->inner);
    free(l->queue);
    free(l);
    free(b);
}

/* The imitated device of the program, with copies that take their time and delays at random. */
static nami_status emu_open(const char *name, int threads, nami_dtype act,
                            nami_backend **out)
{
    nami_emu_options emu = {.delegate = strcmp(name, "cpu") == 0,
                            .memory = 64,
                            .copy_latency = 20e-6,
                            .jitter = 20e-6,
                            .seed = 3};
    nami_backend_config c = {
        .threads = threads, .act = act, .number = (uint64_t)rank, .emu = &emu};
    return nami_backend_open_with("emu", &c, out);
}

static void check(const tiny_problem *p, bool emu)
{
    static const char *const schedule[] = {"gpipe", "dapple", "interleaved", "hanayo"};
    tiny_open = nami_backend_open;
    tiny_close = nami_backend_close;
    tiny_outcome want = tiny_reference(p);
    tiny_open = emu ? emu_open : late_open;
    tiny_close = emu ? nami_backend_close : late_close;
    for (int d = 1; d <= size && size % d == 0; d *= 2) {
        for (int i = 0; i < 4; i++) {
            tiny_way w = {.schedule = schedule[i],
                          .positions = size / d,
                          .waves = 1,
                          .chunks = 2,
                          .replicas = d};
            tiny_outcome got = tiny_run(world, p, &w);
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

static const tiny_problem basis = {.backend = "ref",
                                   .act = NAMI_F32,
                                   .tied = true,
                                   .recompute = true,
                                   .dropout = 0.1,
                                   .clip = 0.5,
                                   .batch = 8,
                                   .micros = 4,
                                   .partials = 4,
                                   .optimizer = NAMI_OPTIMIZER_ADAMW,
                                   .steps = 4};

static void check_kinds(bool emu)
{
    tiny_problem p = basis;
    check(&p, emu);
    p.tied = false;
    p.act = NAMI_BF16;
    p.backend = emu ? "cpu" : "ref";
    check(&p, emu);
}

static void test_late(void **state)
{
    (void)state;
    check_kinds(false);
}

static void test_emu(void **state)
{
    (void)state;
    check_kinds(true);
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_late),
                                       cmocka_unit_test(test_emu)};
    return mpi_test_close(cmocka_run_group_tests(tests, NULL, NULL));
}
