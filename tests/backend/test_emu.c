/* SPDX-License-Identifier: MIT */
/* test_emu.c - the imitated device: its address space, lanes, clock, costs and failures. */
#include "nami_test.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/emu/options.h"
#include "base/clock.h"

enum { COUNT = 1000 };

static nami_emu_options defaults(void)
{
    nami_emu_options o = {0};
    assert_ok(nami_option_defaults(&nami_emu_option_table, &o));
    return o;
}

static nami_backend *open_emu(const nami_emu_options *o, uint64_t number)
{
    nami_backend *b;
    const nami_backend_config c = {
        .threads = 1, .act = NAMI_F32, .number = number, .emu = o};
    assert_ok(nami_backend_open_with("emu", &c, &b));
    return b;
}

static float *take(nami_backend *b, int64_t count)
{
    return nami_backend_alloc(b, NAMI_MEM_ACTIVATION, (size_t)count * sizeof(float));
}

static nami_event copy(nami_backend *b, void *to, const void *from, int64_t count)
{
    return nami_backend_copy(b, 0, to, from, (size_t)count * sizeof(float));
}

static const nami_prepared *prepare(nami_backend *b, nami_kernel k, const void *args)
{
    const nami_prepared *p;
    assert_ok(nami_backend_prepare(b, k, args, &p));
    return p;
}

/* --- what ends a process, tried in a child --- */

typedef void attempt(nami_backend *b);

/* How a child ends that does `what` on a device with options *o: -signal or its exit code. */
static int end_of(attempt *what, const nami_emu_options *o)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        const nami_backend_config c = {.threads = 1, .act = NAMI_F32, .emu = o};
        nami_backend *b;
        if (nami_backend_open_with("emu", &c, &b) != NAMI_OK)
            _exit(98);
        what(b);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void touch_nothing(nami_backend *b)
{
    float *x = take(b, COUNT);
    nami_backend_wait(b, nami_backend_zero(b, 0, x, COUNT * sizeof *x));
    nami_backend_free(b, x);
}

static void touch_from_host(nami_backend *b)
{
    volatile float *x = take(b, COUNT);
    x[0] = 1;
}

/* An ADD over two arrays. */
static void add(nami_backend *b, float *x, const float *y)
{
    nami_arg_vector a = {.wide = NAMI_F32, .count = COUNT, .a = x, .b = y};
    const nami_prepared *p;
    if (nami_backend_prepare(b, NAMI_ADD, &a, &p) != NAMI_OK)
        _exit(97);
    nami_backend_wait(b, nami_backend_launch(b, 0, p, &a));
}

static void use_after_free(nami_backend *b)
{
    float *x = take(b, COUNT), *y = take(b, COUNT);
    nami_backend_free(b, y);
    add(b, x, y);
}

static void use_behind_the_end(nami_backend *b)
{
    float *x = take(b, COUNT), *y = take(b, COUNT);
    add(b, x, y + 100); /* a page holds 1024 floats, its guard page none */
}

static void give_host_memory(nami_backend *b)
{
    static float y[COUNT];
    add(b, take(b, COUNT), y);
}

static void take_twice(nami_backend *b)
{
    take(b, COUNT);
    take(b, COUNT);
}

static void take_much(nami_backend *b)
{
    take(b, (2 << 20) / 4);
}

static void add_twice(nami_backend *b)
{
    float *x = take(b, COUNT), *y = take(b, COUNT);
    add(b, x, y);
    add(b, x, y);
    touch_nothing(b);
}

static void test_memory_faults(void **state)
{
    (void)state;
    nami_emu_options o = defaults();
    assert_int_equal(end_of(touch_nothing, &o), 0);
    assert_int_equal(end_of(touch_from_host, &o), -SIGSEGV);
    assert_int_equal(end_of(use_after_free, &o), -SIGSEGV);
    assert_int_equal(end_of(use_behind_the_end, &o), -SIGSEGV);
    assert_int_equal(end_of(give_host_memory, &o), NAMI_EBUG);
}

static void test_failures(void **state)
{
    (void)state;
    nami_emu_options o = defaults();
    assert_int_equal(end_of(take_twice, &o), 0);
    o.fail_alloc = 2;
    assert_int_equal(end_of(touch_nothing, &o), 0);
    assert_int_equal(end_of(take_twice, &o), NAMI_EENV);
    o = defaults();
    assert_int_equal(end_of(add_twice, &o), 0);
    o.fail_launch = 2;
    assert_int_equal(end_of(add_twice, &o), NAMI_EENV);
    o.fail_launch = 3;
    assert_int_equal(end_of(add_twice, &o), 0);
    o = defaults();
    o.memory = 1;
    assert_int_equal(end_of(take_much, &o), NAMI_EENV);
    o.memory = 3;
    assert_int_equal(end_of(take_much, &o), 0);
}

/* --- memory --- */

static void test_poison(void **state)
{
    (void)state;
    nami_backend *b = open_emu(NULL, 0);
    float host[COUNT];
    const size_t before = nami_memory_now(NAMI_MEM_ACTIVATION);
    for (int round = 0; round < 3; round++) {
        float *x = take(b, COUNT);
        assert_int_equal(nami_memory_now(NAMI_MEM_ACTIVATION) - before, sizeof host);
        nami_backend_wait(b, copy(b, host, x, COUNT));
        for (int i = 0; i < COUNT; i++)
            assert_true(isnan(host[i]));
        nami_backend_wait(b, nami_backend_zero(b, 0, x, COUNT * sizeof *x));
        nami_backend_wait(b, copy(b, host, x, COUNT));
        for (int i = 0; i < COUNT; i++)
            assert_true(host[i] == 0);
        nami_backend_free(b, x);
        assert_int_equal(nami_memory_now(NAMI_MEM_ACTIVATION), before);
    }
    nami_backend_close(b);
}

/* Blocks taken and given in random order never overlap and keep what was put into them. */
static void test_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 20, TURNS = 400 };
    const uint64_t seed = nami_test_seed(7);
    nami_backend *b = open_emu(NULL, 0);
    float *block[BLOCKS] = {0};
    int64_t count[BLOCKS] = {0};
    float value[5000];
    for (int turn = 0; turn < TURNS; turn++) {
        const int i = (int)(nami_mix(seed, (uint64_t)turn) % BLOCKS);
        if (block[i]) {
            nami_backend_wait(b, copy(b, value, block[i], count[i]));
            for (int64_t e = 0; e < count[i]; e++)
                assert_true(value[e] == (float)(i + e));
            nami_backend_free(b, block[i]);
            block[i] = NULL;
            continue;
        }
        count[i] = 1 + (int64_t)(nami_mix(seed + 1, (uint64_t)turn) % 5000);
        block[i] = take(b, count[i]);
        for (int64_t e = 0; e < count[i]; e++)
            value[e] = (float)(i + e);
        nami_backend_wait(b, copy(b, block[i], value, count[i]));
    }
    for (int i = 0; i < BLOCKS; i++)
        nami_backend_free(b, block[i]);
    nami_backend_close(b);
}

/* --- lanes --- */

/* A launch that takes `seconds`. */
static nami_event wait_kernel(nami_backend *b, int lane, double seconds)
{
    const nami_arg_wait a = {.act = NAMI_F32, .seconds = seconds};
    return nami_backend_launch(b, lane, prepare(b, NAMI_WAIT, &a), &a);
}

static void test_asynchronous(void **state)
{
    (void)state;
    nami_backend *b = open_emu(NULL, 0);
    nami_backend_wait(b, wait_kernel(b, 0, 0)); /* threads run */
    const double start = nami_now();
    nami_event first = wait_kernel(b, 0, 0.2), second = wait_kernel(b, 0, 0.2);
    nami_event other = wait_kernel(b, 1, 0.2);
    nami_event ends[2] = {nami_backend_mark(b, 0), nami_backend_mark(b, 1)};
    assert_false(nami_backend_done(b, first));
    assert_false(nami_backend_done(b, other));
    nami_backend_wait(b, second);
    const double end = nami_now();
    assert_true(nami_backend_done(b, first));
    assert_true(end - start >= 0.4);
    nami_backend_wait(b, ends[0]);
    nami_backend_wait(b, ends[1]); /* the lanes ran side by side */
    assert_true(nami_backend_moment(b, ends[1]) < nami_backend_moment(b, ends[0]));
    nami_backend_close(b);
}

/* What one lane is told to do after another waits for it, and no longer. */
static void test_after(void **state)
{
    (void)state;
    nami_emu_options o = defaults();
    for (o.seed = 1; o.seed < 20; o.seed++) {
        o.jitter = o.seed < 2 ? 0 : 1e-3;
        nami_backend *b = open_emu(&o, 0);
        float one[COUNT], back[COUNT], *x = take(b, COUNT), *y = take(b, COUNT);
        for (int i = 0; i < COUNT; i++)
            one[i] = 1;
        nami_arg_vector a = {.wide = NAMI_F32, .count = COUNT, .a = x, .b = y};
        const nami_prepared *sum = prepare(b, NAMI_ADD, &a);
        wait_kernel(b, 2, 0.01);
        nami_backend_copy(b, 2, x, one, sizeof one);
        nami_backend_copy(b, 2, y, one, sizeof one);
        const nami_event in = nami_backend_mark(b, 2);
        nami_backend_after(b, 0, in);
        const nami_event begin = nami_backend_mark(b, 0);
        nami_backend_launch(b, 0, sum, &a);
        nami_backend_launch(b, 0, sum, &a);
        const nami_event made = nami_backend_mark(b, 0);
        wait_kernel(b, 0, 0.03);
        const nami_event end = nami_backend_mark(b, 0);
        nami_backend_after(b, 1, made);
        nami_backend_after(b, 1, 0);
        nami_backend_wait(b, nami_backend_copy(b, 1, back, x, sizeof back));
        if (o.seed < 2)
            assert_false(nami_backend_done(b, end));
        for (int i = 0; i < COUNT; i++)
            assert_true(back[i] == 3);
        assert_true(nami_backend_moment(b, begin) >= nami_backend_moment(b, in));
        nami_backend_free(b, y);
        nami_backend_free(b, x);
        nami_backend_close(b);
    }
}

/* Work queued ahead takes the sum of its times, however late threads wake. */
static void test_clock(void **state)
{
    (void)state;
    nami_backend *b = open_emu(NULL, 0);
    nami_event mark[11];
    wait_kernel(b, 0, 0.2); /* time to queue the rest */
    for (int i = 0; i <= 10; i++) {
        mark[i] = nami_backend_mark(b, 0);
        wait_kernel(b, 0, 0.01 + 0.001 * i);
    }
    nami_backend_wait(b, mark[10]);
    for (int i = 0; i < 10; i++) {
        const double took =
            nami_backend_moment(b, mark[i + 1]) - nami_backend_moment(b, mark[i]);
        assert_true(fabs(took - (0.01 + 0.001 * i)) < 1e-6);
    }
    const double late = nami_now() - nami_backend_moment(b, mark[10]);
    assert_true(late >= 0 && late < 10);
    nami_backend_close(b);
}

static void test_copy_cost(void **state)
{
    (void)state;
    nami_emu_options o = defaults();
    o.copy_latency = 0.01;
    o.copy_bandwidth = 1e5; /* 4000 bytes: 0.04 s */
    nami_backend *b = open_emu(&o, 0);
    static float host[COUNT];
    float *x = take(b, COUNT), *y = take(b, COUNT);
    wait_kernel(b, 0, 0.2); /* time to queue the rest */
    nami_event mark[4];
    mark[0] = nami_backend_mark(b, 0);
    copy(b, x, host, COUNT);
    mark[1] = nami_backend_mark(b, 0);
    copy(b, y, x, COUNT);
    mark[2] = nami_backend_mark(b, 0);
    copy(b, host, y, COUNT);
    mark[3] = nami_backend_mark(b, 0);
    nami_backend_wait(b, mark[3]);
    double at[4];
    for (int i = 0; i < 4; i++)
        at[i] = nami_backend_moment(b, mark[i]);
    assert_true(fabs(at[1] - at[0] - 0.05) < 1e-6);
    assert_true(fabs(at[2] - at[1]) < 1e-6);
    assert_true(fabs(at[3] - at[2] - 0.05) < 1e-6);
    nami_backend_free(b, y);
    nami_backend_free(b, x);
    nami_backend_close(b);
}

/* Moment between the first two marks with one launch in between, under a jitter. */
static double jittered(int64_t seed, uint64_t number)
{
    nami_emu_options o = defaults();
    o.jitter = 0.01;
    o.seed = seed;
    nami_backend *b = open_emu(&o, number);
    wait_kernel(b, 0, 0.2); /* time to queue the rest */
    nami_event first = nami_backend_mark(b, 0);
    wait_kernel(b, 0, 0.001);
    nami_event second = nami_backend_mark(b, 0);
    nami_backend_wait(b, second);
    const double took = nami_backend_moment(b, second) - nami_backend_moment(b, first);
    nami_backend_close(b);
    return took;
}

static void test_jitter(void **state)
{
    (void)state;
    const double one = jittered(1, 0);
    assert_true(one > 0.001 && one < 0.03);
    assert_true(fabs(one - jittered(1, 0)) < 1e-6);
    assert_true(fabs(one - jittered(2, 0)) > 1e-6);
    assert_true(fabs(one - jittered(1, 1)) > 1e-6);
}

/* Work of one lane runs in order under any delay, and computes what the delegate does. */
static void test_order(void **state)
{
    (void)state;
    nami_emu_options o = defaults();
    o.jitter = 0.0005;
    for (o.seed = 0; o.seed < 10; o.seed++) {
        nami_backend *b = open_emu(&o, 0);
        float host[COUNT], back[COUNT];
        float *x = take(b, COUNT);
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)i;
        nami_arg_vector a = {
            .wide = NAMI_F32, .count = COUNT, .a = x, .b = x, .s = -0.5};
        const nami_prepared *twice = prepare(b, NAMI_ADD, &a),
                            *scale = prepare(b, NAMI_SCALE, &a);
        copy(b, x, host, COUNT);
        for (int round = 0; round < 5; round++) {
            nami_backend_launch(b, 0, twice, &a);
            nami_backend_launch(b, 0, twice, &a);
            nami_backend_launch(b, 0, scale, &a);
        }
        nami_backend_wait(b, copy(b, back, x, COUNT));
        for (int i = 0; i < COUNT; i++)
            assert_true(back[i] == -32 * host[i]);
        nami_backend_free(b, x);
        nami_backend_close(b);
    }
}

/* More work than the queue first has room for. */
static void test_many(void **state)
{
    (void)state;
    nami_backend *b = open_emu(NULL, 0);
    float *x = take(b, COUNT), host[COUNT];
    nami_arg_vector a = {.wide = NAMI_F32, .count = COUNT, .a = x, .b = x, .s = 1};
    const nami_prepared *scale = prepare(b, NAMI_SCALE, &a);
    nami_backend_zero(b, 0, x, COUNT * sizeof *x);
    wait_kernel(b, 0, 0.05);
    for (int i = 0; i < 1000; i++)
        nami_backend_launch(b, 0, scale, &a);
    nami_backend_wait(b, copy(b, host, x, COUNT));
    assert_true(host[COUNT - 1] == 0);
    nami_backend_free(b, x);
    nami_backend_close(b);
}

/* Backends without lanes take the time inside the launch, and compute the same. */
static void test_wait_kernel(void **state)
{
    (void)state;
    static const char *const names[] = {"ref", "cpu"};
    for (int n = 0; n < 2; n++) {
        nami_backend *b;
        assert_ok(nami_backend_open(names[n], 1, NAMI_F32, &b));
        float x[3] = {1, 2, 3}, w = 0.5F, y[3] = {0}, dw = 10;
        const nami_arg_wait f = {
            .act = NAMI_F32, .count = 3, .seconds = 0.03, .x = x, .w = &w, .y = y};
        const nami_arg_wait back = {.act = NAMI_F32, .count = 3, .dy = x, .dw = &dw};
        const double start = nami_now();
        nami_backend_launch(b, 0, prepare(b, NAMI_WAIT, &f), &f);
        assert_true(nami_now() - start >= 0.03);
        nami_backend_launch(b, 0, prepare(b, NAMI_WAIT, &back), &back);
        assert_true(y[0] == 1.5F && y[2] == 3.5F && dw == 16);
        assert_int_equal(nami_backend_mark(b, 0), 0);
        nami_backend_close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_faults), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_poison),        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_asynchronous),  cmocka_unit_test(test_clock),
        cmocka_unit_test(test_copy_cost),     cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_after),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_wait_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
