/* SPDX-License-Identifier: MIT */
/* kernels.c - speed of every kernel on the shapes of two models, as shares of the measured peak.
 *
 * usage: kernels [-b backend] [-t threads] [-p f32|bf16] [-m gpt2|byte] [-s seconds-each] [-c]
 * -c counts processor time over threads in place of wall time: for a machine that does other work too.
 * The last column is the time of one training step (one micro-batch) spent in that kernel.
 */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/log.h"

typedef struct model {
    const char *name;
    int64_t layers, width, heads, vocabulary, batch, time;
} model;

static const model models[] = {
    {"gpt2", 12, 768, 12, 50257, 4, 256},
    {"byte", 6, 384, 6, 256, 8, 256},
};

/* One program run. */
typedef struct speed {
    nami_backend *b;
    nami_dtype act;
    bool processor; /* processor time, not wall time */
    model m;
    double each, peak;     /* seconds for one kernel; FLOP/s */
    double total, product; /* seconds of a step, all kernels and products alone */
    double flops;          /* of the products in a step */
    char *pool;            /* memory that all arguments point into */
    size_t used, size;     /* bytes */
} speed;

/* Numbers of about 1 in either type: zeros would let the processor run faster than it does. */
static void fill(char *data, size_t bytes)
{
    uint16_t *half = (uint16_t *)data;
    uint64_t x = 88172645463325252u; /* Marsaglia, Xorshift RNGs (2003) */
    for (size_t i = 0; i < bytes / 2; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        half[i] = (uint16_t)(0x3e00u + (x & 0x81ffu)); /* +- 0.125 to 2 */
    }
}

/* `bytes` of the pool, 4096-aligned. */
static void *take(speed *s, size_t bytes)
{
    NAMI_CHECK(s->used + bytes <= s->size);
    char *p = s->pool + s->used;
    s->used = (s->used + bytes + 8191) / 4096 * 4096;
    fill(p, bytes);
    return p;
}

/* Wall time, or with -c processor time of all threads over their number. */
static double clock_now(const speed *s)
{
    struct timespec t;
    if (!s->processor)
        return nami_now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / s->b->threads;
}

/* Median seconds of a launch. */
static double median(speed *s, const nami_prepared *p, const void *args)
{
    enum { MOST = 200 };
    double t[MOST];
    int n = 0;
    nami_backend_wait(s->b, nami_backend_launch(s->b, 0, p, args));
    for (const double end = nami_now() + s->each;
         n < MOST && (n < 3 || nami_now() < end); n++) {
        const double start = clock_now(s);
        nami_backend_wait(s->b, nami_backend_launch(s->b, 0, p, args));
        t[n] = clock_now(s) - start;
        for (int i = n; i > 0 && t[i] < t[i - 1]; i--) {
            const double swap = t[i];
            t[i] = t[i - 1];
            t[i - 1] = swap;
        }
    }
    return t[n / 2];
}

/* Time one kernel that a step launches `times` times, and print its line. */
static void line(speed *s, const char *what, nami_kernel k, const void *args,
                 void **scratch, double times)
{
    const nami_prepared *p;
    if (nami_backend_prepare(s->b, k, args, &p) != NAMI_OK)
        nami_die(NAMI_EENV);
    const size_t mark = s->used;
    if (scratch)
        *scratch = take(s, p->scratch + 64);
    const double t = median(s, p, args);
    s->used = mark;
    s->total += times * t;
    const bool product =
        k == NAMI_LINEAR_F || k == NAMI_LINEAR_BI || k == NAMI_LINEAR_BW;
    const bool flops = product || k == NAMI_ATTENTION_F || k == NAMI_ATTENTION_BI;
    s->product += product ? times * t : 0;
    s->flops += flops ? times * p->flops : 0;
    if (flops)
        nami_print(
            "%-14s %-13s %9.3f ms %8.1f GFLOP/s %5.1f %% of peak %8.1f ms/step\n",
            nami_kernel_name(k), what, t * 1e3, p->flops / t * 1e-9,
            100 * p->flops / t / s->peak, times * t * 1e3);
    else
        nami_print("%-14s %-13s %9.3f ms %8.1f GB/s %26.1f ms/step\n",
                   nami_kernel_name(k), what, t * 1e3, p->bytes / t * 1e-9,
                   times * t * 1e3);
}

static void linear(speed *s, const char *what, int64_t in, int64_t out, bool bias,
                   double times)
{
    const size_t mark = s->used, size = nami_dtype_size(s->act);
    const int64_t n = s->m.batch * s->m.time;
    nami_arg_linear a = {.act = s->act, .n = n, .in = in, .out = out};
    a.x = take(s, (size_t)(n * in) * size);
    a.w = take(s, (size_t)(in * out) * 4);
    a.b = bias ? take(s, (size_t)out * 4) : NULL;
    a.y = take(s, (size_t)(n * out) * size);
    a.dy = take(s, (size_t)(n * out) * size);
    a.dx = take(s, (size_t)(n * in) * size);
    a.dw = take(s, (size_t)(in * out) * 4);
    a.db = bias ? take(s, (size_t)out * 4) : NULL;
    const nami_prepared *p;
    if (nami_backend_prepare(s->b, NAMI_LINEAR_PACK, &a, &p) != NAMI_OK)
        nami_die(NAMI_EENV);
    a.packed_f = take(s, p->packed_f);
    a.packed_b = take(s, p->packed_b);
    line(s, what, NAMI_LINEAR_PACK, &a, &a.scratch, times);
    line(s, what, NAMI_LINEAR_F, &a, &a.scratch, times);
    line(s, what, NAMI_LINEAR_BI, &a, &a.scratch, times);
    line(s, what, NAMI_LINEAR_BW, &a, &a.scratch, times);
    s->used = mark;
}

static void norm(speed *s)
{
    const size_t mark = s->used, size = nami_dtype_size(s->act);
    const int64_t n = s->m.batch * s->m.time, width = s->m.width;
    const double times = 2 * (double)s->m.layers + 1;
    const size_t bytes = (size_t)(n * width) * size;
    nami_arg_norm a = {.act = s->act, .n = n, .width = width, .eps = 1e-5};
    a.x = take(s, bytes);
    a.y = take(s, bytes);
    a.dy = take(s, bytes);
    a.add = take(s, bytes);
    a.dx = take(s, bytes);
    a.w = take(s, (size_t)width * 4);
    a.b = take(s, (size_t)width * 4);
    a.dw = take(s, (size_t)width * 4);
    a.db = take(s, (size_t)width * 4);
    a.mean = take(s, (size_t)n * 4);
    a.rstd = take(s, (size_t)n * 4);
    line(s, "", NAMI_NORM_F, &a, NULL, times);
    line(s, "", NAMI_NORM_BI, &a, NULL, times);
    line(s, "", NAMI_NORM_BW, &a, NULL, times);
    s->used = mark;
}

static void elements(speed *s)
{
    const size_t mark = s->used, size = nami_dtype_size(s->act);
    const int64_t count = s->m.batch * s->m.time * s->m.width;
    void *x = take(s, (size_t)count * 4 * size), *y = take(s, (size_t)count * 4 * size);
    void *z = take(s, (size_t)count * 4 * size);
    const nami_arg_gelu g = {
        .act = s->act, .count = 4 * count, .x = x, .y = y, .dy = y, .dx = z};
    line(s, "", NAMI_GELU_F, &g, NULL, (double)s->m.layers);
    line(s, "", NAMI_GELU_BI, &g, NULL, (double)s->m.layers);
    nami_arg_dropout d = {.act = s->act,
                          .batch = s->m.batch,
                          .count = count / s->m.batch,
                          .x = x,
                          .add = y,
                          .y = z,
                          .dy = x,
                          .dx = z};
    line(s, "add, p = 0", NAMI_DROPOUT_F, &d, NULL, 2 * (double)s->m.layers);
    d.dropout = 0.1;
    d.key = 77;
    line(s, "p = 0.1", NAMI_DROPOUT_F, &d, NULL, 0);
    line(s, "p = 0.1", NAMI_DROPOUT_BI, &d, NULL, 0);
    s->used = mark;
}

static void attention(speed *s, double p, double times)
{
    const size_t mark = s->used, size = nami_dtype_size(s->act);
    const int64_t count = s->m.batch * s->m.time * s->m.width;
    nami_arg_attention a = {.act = s->act,
                            .batch = s->m.batch,
                            .time = s->m.time,
                            .heads = s->m.heads,
                            .head_width = s->m.width / s->m.heads,
                            .dropout = p,
                            .key = 5};
    a.qkv = take(s, (size_t)count * 3 * size);
    a.y = take(s, (size_t)count * size);
    a.lse = take(s, (size_t)(s->m.batch * s->m.heads * s->m.time) * 4);
    a.dy = take(s, (size_t)count * size);
    a.dqkv = take(s, (size_t)count * 3 * size);
    line(s, p > 0 ? "p = 0.1" : "", NAMI_ATTENTION_F, &a, &a.scratch, times);
    line(s, p > 0 ? "p = 0.1" : "", NAMI_ATTENTION_BI, &a, &a.scratch, times);
    s->used = mark;
}

static int32_t *some_tokens(speed *s)
{
    const int64_t n = s->m.batch * s->m.time;
    int32_t *t = take(s, (size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        t[i] = (int32_t)(nami_mix(9, (uint64_t)i) % (uint64_t)s->m.vocabulary);
    return t;
}

static void token(speed *s)
{
    const size_t mark = s->used, size = nami_dtype_size(s->act);
    const int64_t n = s->m.batch * s->m.time, width = s->m.width, v = s->m.vocabulary;
    nami_arg_embed e = {.act = s->act,
                        .batch = s->m.batch,
                        .time = s->m.time,
                        .width = width,
                        .vocabulary = v,
                        .token = some_tokens(s)};
    e.wte = take(s, (size_t)(v * width) * 4);
    e.wpe = take(s, (size_t)(s->m.time * width) * 4);
    e.dwte = take(s, (size_t)(v * width) * 4);
    e.dwpe = take(s, (size_t)(s->m.time * width) * 4);
    e.y = take(s, (size_t)(n * width) * size);
    e.dy = take(s, (size_t)(n * width) * size);
    line(s, "", NAMI_EMBED_F, &e, NULL, 1);
    line(s, "", NAMI_EMBED_BW, &e, NULL, 1);
    double loss[64];
    nami_arg_xent x = {.act = s->act,
                       .batch = s->m.batch,
                       .time = s->m.time,
                       .vocabulary = v,
                       .target = some_tokens(s),
                       .scale = 1 / (double)n,
                       .gradient = true,
                       .loss = loss};
    x.logits = take(s, (size_t)(n * v) * size);
    line(s, "", NAMI_XENT_F, &x, NULL, 1);
    s->used = mark;
}

static void whole(speed *s)
{
    const size_t mark = s->used;
    const model *m = &s->m;
    const int64_t c = m->width, count = m->layers * 12 * c * c + m->vocabulary * c;
    double sum;
    nami_arg_update u = {.wide = NAMI_F32,
                         .count = count,
                         .lr = 1e-5,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-8,
                         .decay = 0.1,
                         .grad_scale = 1,
                         .step = 1};
    u.w = take(s, (size_t)count * 4);
    u.g = take(s, (size_t)count * 4);
    u.m = take(s, (size_t)count * 4);
    u.v = take(s, (size_t)count * 4);
    line(s, "", NAMI_ADAMW, &u, NULL, 1);
    const nami_arg_vector v = {
        .wide = NAMI_F32, .count = count, .a = u.w, .b = u.m, .s = 1, .sum = &sum};
    line(s, "", NAMI_SQUARES, &v, NULL, 1);
    line(s, "", NAMI_ADD, &v, NULL, 0);
    s->used = mark;
}

/* Rate of a square product of type `act` by the chosen clock. */
static double square_rate(speed *s, nami_dtype act)
{
    const size_t mark = s->used;
    nami_arg_linear a = {.act = act, .n = 768, .in = 768, .out = 768};
    const nami_prepared *pack, *p;
    if (nami_backend_prepare(s->b, NAMI_LINEAR_BI, &a, &p) != NAMI_OK ||
        nami_backend_prepare(s->b, NAMI_LINEAR_PACK, &a, &pack) != NAMI_OK)
        nami_die(NAMI_EENV);
    void *x = take(s, 768 * 768 * 4);
    a.w = a.dy = x;
    a.dx = take(s, 768 * 768 * 4);
    a.packed_f = take(s, pack->packed_f);
    a.packed_b = take(s, pack->packed_b);
    a.scratch = take(s, p->scratch);
    nami_backend_launch(s->b, 0, pack, &a);
    const double t = median(s, p, &a);
    s->used = mark;
    return p->flops / t;
}

/* The backend's peak by wall time; with -c the better of its types by processor time. */
static double peak(speed *s)
{
    if (!s->processor)
        return nami_backend_peak(s->b, s->act, 1);
    const double own = square_rate(s, s->act), f32 = square_rate(s, NAMI_F32);
    return own > f32 ? own : f32;
}

static void report(speed *s)
{
    const model *m = &s->m;
    const int64_t c = m->width;
    linear(s, "qkv", c, 3 * c, true, (double)m->layers);
    linear(s, "projection", c, c, true, (double)m->layers);
    linear(s, "up", c, 4 * c, true, (double)m->layers);
    linear(s, "down", 4 * c, c, true, (double)m->layers);
    linear(s, "head", c, m->vocabulary, false, 1);
    attention(s, 0, (double)m->layers);
    attention(s, 0.1, 0);
    norm(s);
    elements(s);
    token(s);
    whole(s);
    const double tokens = (double)(m->batch * m->time);
    nami_print("step %.1f ms, %.0f tokens/s, products and attention %.1f GFLOP: %.1f "
               "%% of peak "
               "(products alone %.1f %% of the time)\n",
               s->total * 1e3, tokens / s->total, s->flops * 1e-9,
               100 * s->flops / s->total / s->peak, 100 * s->product / s->total);
}

int main(int argc, char **argv)
{
    const char *backend = "cpu";
    int threads = 1, option;
    speed s = {.act = NAMI_F32, .m = models[0], .each = 0.3};
    while ((option = getopt(argc, argv, "b:t:p:m:s:c")) != -1) {
        if (option == 'b')
            backend = optarg;
        else if (option == 't')
            threads = atoi(optarg);
        else if (option == 'p')
            s.act = strcmp(optarg, "bf16") ? NAMI_F32 : NAMI_BF16;
        else if (option == 'm')
            s.m = models[strcmp(optarg, "byte") ? 0 : 1];
        else if (option == 's')
            s.each = atof(optarg);
        else if (option == 'c')
            s.processor = true;
        else
            return NAMI_EINPUT;
    }
    if (nami_backend_open(backend, threads, s.act, &s.b) != NAMI_OK)
        nami_die(NAMI_EENV);
    s.size = (size_t)3 << 30;
    s.pool = nami_backend_alloc(s.b, NAMI_MEM_OTHER, s.size);
    s.peak = peak(&s);
    nami_print("%s %s %s, %d threads: peak %.1f GFLOP/s\n", s.m.name, backend,
               nami_dtype_name(s.act), threads, s.peak * 1e-9);
    report(&s);
    nami_backend_free(s.b, s.pool);
    nami_backend_close(s.b);
    return 0;
}
