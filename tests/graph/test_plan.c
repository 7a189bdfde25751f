/* SPDX-License-Identifier: MIT */
/* test_plan.c - plans of random graphs against a naive tape.
 *
 * Operators of the test's own read different things in their passes (input, output, saved, only dout), add or cannot
 * add, pass gradients through, or sum numbers over replicas on the way. Each random graph is a chain of blocks. Run as fused, split, recomputed and cut into
 * a chain of graphs, in poisoned memory of exactly the planned sizes between canaries, every way must give the
 * same bits, and these must agree with a tape that keeps everything.
 */
#include <math.h>

#include "base/rng.h"
#include "graph/plan.h"
#include "nami_test.h"

enum {
    BATCH = 2,
    TIME = 5,
    N = BATCH * TIME,
    BLOCKS = 4,
    NODES = 40,
    VALUES = 90,
    CASES = 150,
    REPLICAS = 3 /* all with the same samples */
};

/* Every operator is elementwise on [B,T] f64; a parameter has one element. */
static double *data(const nami_tensor *t)
{
    return t->data;
}

static nami_status prepare(nami_node *n, const nami_bind *shapes)
{
    static const nami_prepared with_scratch = {.scratch = 24, .flops = N};
    assert_true(n->op->adds || (!shapes->add[0] && !shapes->add[1]));
    n->prepared[NAMI_FORWARD] = &with_scratch;
    n->prepared[NAMI_BACKWARD_INPUT] = shapes->train ? &with_scratch : NULL;
    n->prepared[NAMI_FORWARD_OWN] = n->prepared[NAMI_BACKWARD_OWN] =
        n->op->shared ? &with_scratch : NULL;
    return NAMI_OK;
}

/* Fill the scratch, so that an overlap with anything alive is seen. */
static void use_scratch(const nami_bind *b)
{
    assert_non_null(b->scratch);
    memset(b->scratch, 0x5a, 24);
}

static double sum_so_far(const nami_bind *b, int k, int i)
{
    return b->add[k] ? ((const double *)b->add[k])[i] : 0;
}

static void scale_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->out)[i] = data(&b->param[0])[0] * data(&b->in[0])[i];
}

static void scale_bi(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    assert_null(b->in[0].data);
    for (int i = 0; i < N; i++)
        data(&b->din[0])[i] =
            sum_so_far(b, 0, i) + data(&b->param[0])[0] * data(&b->dout)[i];
}

static void scale_bw(const nami_node *n, const nami_bind *b)
{
    (void)n;
    for (int i = 0; i < N; i++)
        data(&b->dparam[0])[0] += data(&b->in[0])[i] * data(&b->dout)[i];
}

static void sine_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++) {
        data(&b->out)[i] = sin(data(&b->in[0])[i]);
        data(&b->saved[0])[i] = cos(data(&b->in[0])[i]);
    }
}

static void sine_bi(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->din[0])[i] = data(&b->saved[0])[i] * data(&b->dout)[i];
}

static void tanh_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->out)[i] = tanh(data(&b->in[0])[i]);
}

static void tanh_bi(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++) {
        double y = data(&b->out)[i];
        data(&b->din[0])[i] = sum_so_far(b, 0, i) + (1 - y * y) * data(&b->dout)[i];
    }
}

/* Less the mean over all replicas. */
static int64_t centre_shared(const nami_node *n, const nami_bind *shapes)
{
    (void)n;
    return shapes->together > 0 ? 1 : 0;
}

static void leave_sum(const nami_bind *b, const double *x)
{
    use_scratch(b);
    *b->shared = 0;
    for (int i = 0; i < N; i++)
        *b->shared += x[i];
}

static void centre_f_own(const nami_node *n, const nami_bind *b)
{
    (void)n;
    leave_sum(b, data(&b->in[0]));
}

static void centre_bi_own(const nami_node *n, const nami_bind *b)
{
    (void)n;
    leave_sum(b, data(&b->dout));
}

static void centre_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->out)[i] =
            data(&b->in[0])[i] - *b->shared / (double)(TIME * b->together);
}

static void centre_bi(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->din[0])[i] = sum_so_far(b, 0, i) + data(&b->dout)[i] -
                              *b->shared / (double)(TIME * b->together);
}

static void plus_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->out)[i] = data(&b->in[0])[i] + data(&b->in[1])[i];
}

static bool plus_passes(const nami_node *n, int input)
{
    (void)n;
    (void)input;
    return true;
}

static void times_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int i = 0; i < N; i++)
        data(&b->out)[i] = data(&b->in[0])[i] * data(&b->in[1])[i];
}

static void times_bi(const nami_node *n, const nami_bind *b)
{
    (void)n;
    use_scratch(b);
    for (int k = 1; k >= 0; k--) /* a hostile order: in0 last */
        for (int i = 0; i < N && b->din[k].data; i++)
            data(&b->din[k])[i] =
                sum_so_far(b, k, i) + data(&b->in[1 - k])[i] * data(&b->dout)[i];
}

/* Loss: half the sum of squares; leaves its gradient in its input. */
static void loss_f(const nami_node *n, const nami_bind *b)
{
    (void)n;
    double *x = data(&b->in[0]);
    for (int s = 0; s < BATCH; s++) {
        b->loss[s] = 0;
        for (int i = s * TIME; i < (s + 1) * TIME; i++)
            b->loss[s] += 0.5 * x[i] * x[i];
    }
    for (int i = 0; i < N && b->train; i++)
        x[i] *= b->scale;
}

static const nami_op scale = {.name = "scale",
                              .bi_reads = NAMI_READ_DOUT,
                              .bw_reads = NAMI_READ_IN0 | NAMI_READ_DOUT,
                              .adds = true,
                              .prepare = prepare,
                              .forward = scale_f,
                              .backward_input = scale_bi,
                              .backward_weight = scale_bw};
static const nami_op sine = {.name = "sine",
                             .bi_reads = NAMI_READ_SAVED | NAMI_READ_DOUT,
                             .prepare = prepare,
                             .forward = sine_f,
                             .backward_input = sine_bi};
static const nami_op hyperbolic = {.name = "tanh",
                                   .bi_reads = NAMI_READ_OUT | NAMI_READ_DOUT,
                                   .adds = true,
                                   .prepare = prepare,
                                   .forward = tanh_f,
                                   .backward_input = tanh_bi};
static const nami_op centre = {.name = "centre",
                               .bi_reads = NAMI_READ_DOUT,
                               .adds = true,
                               .shared = centre_shared,
                               .forward_own = centre_f_own,
                               .backward_own = centre_bi_own,
                               .prepare = prepare,
                               .forward = centre_f,
                               .backward_input = centre_bi};
static const nami_op plus = {
    .name = "plus", .passes = plus_passes, .prepare = prepare, .forward = plus_f};
static const nami_op times = {.name = "times",
                              .bi_reads =
                                  NAMI_READ_IN0 | NAMI_READ_IN1 | NAMI_READ_DOUT,
                              .adds = true,
                              .prepare = prepare,
                              .forward = times_f,
                              .backward_input = times_bi};
static const nami_op loss = {
    .name = "loss", .in_place_gradient = true, .prepare = prepare, .forward = loss_f};

/* A random net as plain data: node i makes value i+1 from values a and b; value 0 is the input. */
typedef struct net {
    const nami_op *op[NODES];
    int a[NODES], b[NODES], block[NODES], nodes;
    int use[NODES]; /* number of the parameter, -1 */
    double param[NODES];
    int params;
    int border[BLOCKS + 1]; /* value at the begin of each block, and the last value */
} net;

static int draw(uint64_t *key, int from, int to)
{
    *key = nami_mix(*key, 3);
    return from + (int)(*key % (uint64_t)(to - from + 1));
}

static void add_node(net *t, uint64_t *key, const nami_op *op, int block, int first)
{
    int i = t->nodes++, newest = i;
    t->op[i] = op;
    t->block[i] = block;
    t->a[i] = draw(key, 0, 2) ? newest : draw(key, first, newest);
    t->b[i] = -1;
    t->use[i] = -1;
    if (op == &plus || op == &times)
        do
            t->b[i] = draw(key, first, newest);
        while (t->b[i] == t->a[i]);
    if (op == &scale) {
        t->param[t->params] = 0.5 + draw(key, 0, 100) / 100.0;
        t->use[i] = t->params++;
    }
}

/* Blocks of one to seven nodes; the last node of a block does not read its output, which may be sent away. */
static net random_net(uint64_t *key)
{
    static const nami_op *const kinds[] = {&scale, &sine, &hyperbolic, &plus,
                                           &times, &plus, &centre};
    net t = {.nodes = 0};
    for (int block = 0; block < BLOCKS; block++) {
        int first = t.border[block] = t.nodes, inner = draw(key, 0, 6);
        for (int k = 0; k < inner; k++) {
            const nami_op *op = kinds[draw(key, 0, 6)];
            bool binary = op == &plus || op == &times;
            add_node(&t, key, binary && t.nodes == first ? &sine : op, block, first);
        }
        add_node(&t, key, inner && draw(key, 0, 1) ? &plus : &scale, block, first);
    }
    t.border[BLOCKS] = t.nodes;
    return t;
}

/* Results of a way to run: everything that must be equal. */
typedef struct result {
    double loss[BATCH], dinput[N], dparam[NODES];
} result;

static double mean(const double *x)
{
    double sum = 0;
    for (int e = 0; e < N; e++)
        sum += x[e];
    return sum / N;
}

/* The tape: every value, every gradient, plain chain rule. */
static result tape(const net *t, const double *input, double factor)
{
    static double x[NODES + 1][N], g[NODES + 1][N];
    result r = {0};
    memcpy(x[0], input, sizeof x[0]);
    memset(g, 0, sizeof g);
    for (int i = 0; i < t->nodes; i++)
        for (int e = 0; e < N; e++) {
            double a = x[t->a[i]][e], b = t->b[i] < 0 ? 0 : x[t->b[i]][e];
            x[i + 1][e] = t->op[i] == &scale        ? t->param[t->use[i]] * a
                          : t->op[i] == &centre     ? a - mean(x[t->a[i]])
                          : t->op[i] == &sine       ? sin(a)
                          : t->op[i] == &hyperbolic ? tanh(a)
                          : t->op[i] == &plus       ? a + b
                                                    : a * b;
        }
    for (int e = 0; e < N; e++) {
        r.loss[e / TIME] += 0.5 * x[t->nodes][e] * x[t->nodes][e];
        g[t->nodes][e] = factor * x[t->nodes][e];
    }
    for (int i = t->nodes - 1; i >= 0; i--)
        for (int e = 0; e < N; e++) {
            double a = x[t->a[i]][e], d = g[i + 1][e], y = x[i + 1][e];
            g[t->a[i]][e] += t->op[i] == &scale        ? t->param[t->use[i]] * d
                             : t->op[i] == &centre     ? d - mean(g[i + 1])
                             : t->op[i] == &sine       ? cos(a) * d
                             : t->op[i] == &hyperbolic ? (1 - y * y) * d
                             : t->op[i] == &plus       ? d
                                                       : x[t->b[i]][e] * d;
            if (t->b[i] >= 0)
                g[t->b[i]][e] += t->op[i] == &plus ? d : a * d;
            if (t->use[i] >= 0)
                r.dparam[t->use[i]] += a * d;
        }
    memcpy(r.dinput, g[0], sizeof g[0]);
    return r;
}

/* Blocks [first, last) of the net as a graph. */
static nami_graph *build(const net *t, nami_backend *b, int first, int last)
{
    nami_graph *g = nami_graph_new(b, NAMI_F64, BATCH, TIME);
    nami_shape shape = nami_shape_of(BATCH, TIME, 0, 0),
               one = nami_shape_of(1, 0, 0, 0);
    int value[NODES + 1];
    int input = value[t->border[first]] = nami_graph_value(g, NAMI_F64, shape);
    for (int i = t->border[first]; i < t->border[last]; i++) {
        nami_graph_block(g, t->block[i]);
        value[i + 1] = nami_graph_value(g, NAMI_F64, shape);
        int saved = t->op[i] == &sine ? nami_graph_value(g, NAMI_F64, shape) : -1;
        int use = t->use[i] >= 0 ? nami_graph_use(g, t->use[i], one) : -1;
        nami_node *n = nami_graph_node(g, t->op[i]);
        n->in[0] = value[t->a[i]];
        n->in[1] = t->b[i] < 0 ? -1 : value[t->b[i]];
        n->out = value[i + 1];
        n->saved[0] = saved;
        n->param[0] = use;
    }
    int output = value[t->border[last]];
    if (last == BLOCKS) {
        nami_graph_node(g, &loss)->in[0] = output;
        output = -1;
    }
    nami_graph_ends(g, input, output, -1);
    nami_graph_share(g, (int64_t)REPLICAS * BATCH);
    return g;
}

/* Memory of exactly `bytes` between canaries. */
enum { CANARY = 64 };

static char *guarded(size_t bytes)
{
    char *p = nami_alloc(NAMI_MEM_OTHER, bytes + 2 * (size_t)CANARY);
    memset(p, 0xc3, bytes + 2 * (size_t)CANARY);
    return p + CANARY;
}

static void check_guard(char *p, size_t bytes)
{
    for (int i = 1; i <= CANARY; i++) {
        assert_int_equal((unsigned char)p[-i], 0xc3);
        assert_int_equal((unsigned char)p[bytes + (size_t)i - 1], 0xc3);
    }
    nami_free(p - CANARY);
}

/* One planned graph and its memory. */
typedef struct stage {
    nami_graph *graph;
    nami_graph_call call;
    double output[N], doutput[N], dinput[N];
    void *param[NODES], *dparam[NODES];
    double loss[BATCH];
} stage;

static void poison(void *p, size_t bytes)
{
    if (bytes > 0)
        memset(p, 0xff, bytes); /* NaN in every type */
}

static void open_stage(stage *s, nami_graph *g, bool split, bool recompute)
{
    s->graph = g;
    assert_ok(nami_graph_plan(g, true, split, recompute));
    const nami_graph_sizes *z = nami_graph_bytes(g);
    s->call = (nami_graph_call){.kept = guarded(z->kept),
                                .held = guarded(z->held),
                                .transient = guarded(z->transient),
                                .param = s->param,
                                .dparam = s->dparam,
                                .output = s->output,
                                .dinput = s->dinput,
                                .loss = s->loss,
                                .scale = 0.25};
    poison(s->call.kept, z->kept);
    poison(s->call.held, z->held);
    assert_true(split || z->held == 0);
}

static void close_stage(stage *s)
{
    const nami_graph_sizes *z = nami_graph_bytes(s->graph);
    check_guard(s->call.kept, z->kept);
    check_guard(s->call.held, z->held);
    check_guard(s->call.transient, z->transient);
    nami_graph_free(s->graph);
}

static void walk(stage *s, nami_walk_kind kind)
{
    nami_walk w = {0};
    poison(s->call.transient, nami_graph_bytes(s->graph)->transient);
    nami_walk_begin(&w, s->graph, kind, &s->call);
    while (nami_walk_next(&w)) {
        int64_t count;
        double *shared = nami_walk_shared(&w, &count);
        assert_int_equal(count, shared ? 1 : 0);
        assert_in_range(count, 0, nami_graph_shared(s->graph));
        if (shared)
            *shared *= REPLICAS;
    }
}

/* Point the stage's uses at the parameters. */
static void attach(stage *s, net *t, result *r)
{
    for (int u = 0; u < nami_graph_uses(s->graph); u++) {
        s->param[u] = &t->param[nami_graph_use_param(s->graph, u)];
        s->dparam[u] = &r->dparam[nami_graph_use_param(s->graph, u)];
    }
}

/* Run the net as `stages` graphs cut at cut[]. */
static result run(net *t, nami_backend *b, const double *input, const int *cut,
                  int stages, bool split, bool recompute)
{
    static stage s[BLOCKS];
    result r = {0};
    for (int i = 0; i < stages; i++) {
        open_stage(&s[i], build(t, b, cut[i], cut[i + 1]), split, recompute);
        attach(&s[i], t, &r);
        s[i].call.input = i ? s[i - 1].output : input;
        walk(&s[i], NAMI_WALK_F);
    }
    memcpy(r.loss, s[stages - 1].loss, sizeof r.loss);
    for (int i = stages - 1; i >= 0; i--) {
        if (i + 1 < stages)
            memcpy(s[i].doutput, s[i + 1].dinput, sizeof s[i].doutput);
        s[i].call.doutput = i + 1 < stages ? s[i].doutput : NULL;
        walk(&s[i], split ? NAMI_WALK_BI : NAMI_WALK_B);
    }
    for (int i = 0; i < stages && split; i++)
        walk(&s[i], NAMI_WALK_BW);
    memcpy(r.dinput, s[0].dinput, sizeof r.dinput);
    assert_memory_equal(r.loss, s[stages - 1].loss, sizeof r.loss);
    for (int i = 0; i < stages; i++) {
        if (i + 1 < stages) /* read only */
            assert_memory_equal(s[i].doutput, s[i + 1].dinput, sizeof s[i].doutput);
        close_stage(&s[i]);
    }
    return r;
}

static void assert_close(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-11 * (1 + fabs(b[i]))))
            fail_msg("element %d is %.17g, expected %.17g", i, a[i], b[i]);
}

static void test_random(void **state)
{
    (void)state;
    static const int cuts[][BLOCKS + 1] = {{0, 4}, {0, 1, 2, 3, 4}, {0, 2, 4}};
    static const int stages[] = {1, 4, 2};
    uint64_t key = nami_test_seed(4711);
    nami_backend *b;
    assert_ok(nami_backend_open("ref", 1, NAMI_F64, &b));
    for (int c = 0; c < CASES; c++) {
        net t = random_net(&key);
        double input[N];
        for (int i = 0; i < N; i++)
            input[i] = nami_normal(key, (uint64_t)i);
        result expected = tape(&t, input, 0.25), first = {0};
        for (int mode = 0; mode < 12; mode++) {
            int k = mode / 4;
            result r = run(&t, b, input, cuts[k], stages[k], mode & 1, mode & 2);
            assert_close(r.loss, expected.loss, BATCH);
            assert_close(r.dinput, expected.dinput, N);
            assert_close(r.dparam, expected.dparam, t.params);
            if (mode == 0)
                first = r;
            assert_memory_equal(&r, &first, sizeof r);
        }
    }
    nami_backend_close(b);
}

/* Recomputation of a deep chain keeps block borders alone. */
static void test_recompute_keeps_less(void **state)
{
    (void)state;
    uint64_t key = 12;
    nami_backend *b;
    assert_ok(nami_backend_open("ref", 1, NAMI_F64, &b));
    net t = random_net(&key);
    nami_graph *g = build(&t, b, 0, BLOCKS);
    assert_ok(nami_graph_plan(g, true, false, true));
    assert_true(nami_graph_bytes(g)->kept <=
                (size_t)(BLOCKS - 1) * nami_plan_round(N * sizeof(double)));
    assert_true(nami_graph_bytes(g)->rerun > 0);
    nami_graph_free(g);
    g = build(&t, b, 0, BLOCKS);
    assert_ok(nami_graph_plan(g, false, true, true));
    assert_int_equal(nami_graph_bytes(g)->kept + nami_graph_bytes(g)->held, 0);
    nami_graph_free(g);
    nami_backend_close(b);
}

/* A builder's faults are told, not run. */
static void test_faults(void **state)
{
    (void)state;
    nami_backend *b;
    assert_ok(nami_backend_open("ref", 1, NAMI_F64, &b));
    nami_shape shape = nami_shape_of(BATCH, TIME, 0, 0);
    for (int fault = 0; fault < 4; fault++) {
        static const char *const part[] = {"before it is made", "twice",
                                           "after it was sent", "beside the loss"};
        nami_graph *g = nami_graph_new(b, NAMI_F64, BATCH, TIME);
        int x = nami_graph_value(g, NAMI_F64, shape),
            y = nami_graph_value(g, NAMI_F64, shape);
        int z = nami_graph_value(g, NAMI_F64, shape);
        nami_node *n = nami_graph_node(g, fault == 2 ? &hyperbolic : &plus);
        n->in[0] = x;
        n->in[1] = fault == 0 ? z : fault == 1 ? x : -1;
        n->out = y;
        if (fault == 3) {
            nami_graph_node(g, &loss)->in[0] = y;
            n = nami_graph_node(g, &loss);
            n->in[0] = y;
        }
        nami_graph_ends(g, x, fault == 3 ? -1 : y, -1);
        assert_fails(nami_graph_plan(g, true, false, false), NAMI_EBUG, part[fault]);
        nami_graph_free(g);
    }
    nami_backend_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_recompute_keeps_less),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
