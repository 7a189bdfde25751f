/* SPDX-License-Identifier: MIT */
/* test_reduce.c - sums over groups, whole or in spans, and spans collected: bit-equal on both transports to the tree
 * written down by hand. */
#include "comm/mpi_test.h"

#include "base/rng.h"

enum { MEMORY = 1, MESSAGES = 2 };

/* Value of member m, element i, of job k: of both signs, sizes spread over 2^32, so that another order gives other bits. */
static double value(int k, int m, int64_t i)
{
    uint64_t word = nami_mix((uint64_t)(64 * k + m), (uint64_t)i);
    return (double)((int64_t)word >> 32) * (double)((uint64_t)1 << (word & 31));
}

/* A sum in f32 or, `wide`, f64: that of two f32 in f64, rounded once, is their f32 sum. */
static double add(double a, double b, bool wide)
{
    return wide ? a + b : (double)(float)(a + b);
}

/* The oracle: pair neighbours whose interval is a power of two, bottom up, then fold the rest from the right. */
static double tree(int members, const double *x, bool wide)
{
    double part[8];
    int parts = 0, at = 0;
    for (int width = 64; width >= 1; width /= 2) {
        if (!(members & width))
            continue;
        double level[64];
        for (int i = 0; i < width; i++)
            level[i] = x[at + i];
        for (int w = width; w > 1; w /= 2)
            for (int i = 0; i < w / 2; i++)
                level[i] = add(level[2 * i], level[2 * i + 1], wide);
        part[parts++] = level[0];
        at += width;
    }
    double sum = part[--parts];
    while (parts > 0)
        sum = add(part[--parts], sum, wide);
    return sum;
}

static void check_job(const void *data, int k, int64_t first, int64_t count, int wide,
                      int members)
{
    for (int64_t i = first; i < first + count; i++) {
        double x[64];
        for (int m = 0; m < members; m++)
            x[m] = wide == 8 ? value(k, m, i) : (double)(float)value(k, m, i);
        const double sum = tree(members, x, wide == 8);
        const float narrow = (float)sum;
        if (memcmp((const char *)data + i * wide,
                   wide == 4 ? (const void *)&narrow : (const void *)&sum,
                   (size_t)wide) != 0)
            fail_msg("job %d (%d members, f%d): element %ld differs", k, members,
                     8 * wide, (long)i);
    }
}

static void fill_job(void *data, int k, int64_t count, int wide, int me)
{
    for (int64_t i = 0; i < count; i++) {
        double x = value(k, me, i);
        if (wide == 4)
            ((float *)data)[i] = (float)x;
        else
            ((double *)data)[i] = x;
    }
}

/* Sums to all, sums of spans, and spans collected. */
typedef enum kind { ALL, SCATTER, GATHER, KINDS } kind;

enum { SPANS = 12 };

/* Cut job k into spans of random members and lengths, the last to the end: some empty, some members without any. */
static void cut_job(char *data, int k, int64_t count, int wide, int members,
                    nami_reducer_span *span)
{
    int64_t at = 0;
    for (int i = 0; i < SPANS; i++) {
        uint64_t word = nami_mix((uint64_t)k, (uint64_t)i);
        int64_t most = i == SPANS - 1 ? count - at : (count - at) / 3;
        span[i] = (nami_reducer_span){
            .data = data + at * wide,
            .count = i == SPANS - 1 ? most : (int64_t)(word % 97) * most / 96,
            .member = (int)(word / 97 % (uint64_t)members)};
        at += span[i].count;
    }
}

static int64_t start_job(nami_reducer *r, kind is, void *data, int64_t count, int wide,
                         const nami_reducer_span *span)
{
    if (is == ALL)
        return nami_reducer_start(r, data, count, wide);
    return is == SCATTER ? nami_reducer_scatter(r, span, SPANS, wide)
                         : nami_reducer_gather(r, span, SPANS, wide);
}

/* Elements `first` on of job k are what member m began with. */
static void check_values(const char *data, int k, int64_t first, int64_t count,
                         int wide, int m)
{
    for (int64_t i = first; i < first + count; i++) {
        const double want = value(k, m, i);
        const float narrow = (float)want;
        if (memcmp(data + i * wide,
                   wide == 4 ? (const void *)&narrow : (const void *)&want,
                   (size_t)wide) != 0)
            fail_msg("job %d: element %ld is not that of member %d", k, (long)i, m);
    }
}

static void check_spans(kind is, const char *data, int k, int wide, int members, int me,
                        const nami_reducer_span *span)
{
    for (int i = 0; i < SPANS; i++) {
        int64_t first = ((char *)span[i].data - data) / wide;
        if (is == GATHER || span[i].member != me || members == 1)
            check_values(data, k, first, span[i].count, wide,
                         is == GATHER ? span[i].member : me);
        else
            check_job(data, k, first, span[i].count, wide, members);
    }
}

/* Many jobs started at once and while others run, of sizes around the bucket's. */
static void run_jobs(nami_reducer *r, int me, size_t bucket)
{
    enum { JOBS = 40 };
    static const int64_t edge[] = {0, 1, 15, 16, 17, 0, 1, -1, 100};
    const int members = nami_reducer_size(r);
    char *data[JOBS];
    int64_t count[JOBS], number = 0;
    nami_reducer_span span[JOBS][SPANS];
    nami_patience patience = {0};
    for (int k = 0; k < JOBS; k++) {
        int wide = k % 3 ? 4 : 8;
        count[k] = k % 9 < 5
                       ? edge[k % 9]
                       : (int64_t)(bucket / (size_t)wide) * (1 + k % 4) + edge[k % 9];
        data[k] = nami_alloc(NAMI_MEM_OTHER, (size_t)count[k] * (size_t)wide);
        fill_job(data[k], k, count[k], wide, me);
        cut_job(data[k], k, count[k], wide, members, span[k]);
        number = start_job(r, k / 3 % KINDS, data[k], count[k], wide, span[k]);
        if (k % 5 == rank % 5)
            nami_reducer_poll(r);
    }
    while (!nami_reducer_done(r, number)) {
        nami_reducer_poll(r);
        nami_comm_progress(world);
        nami_patience_wait(world, &patience);
    }
    assert_true(nami_reducer_poll(r));
    for (int k = 0; k < JOBS; k++) {
        int wide = k % 3 ? 4 : 8;
        if (k / 3 % KINDS == ALL)
            check_job(data[k], k, 0, count[k], wide, members);
        else
            check_spans(k / 3 % KINDS, data[k], k, wide, members, me, span[k]);
        nami_free(data[k]);
    }
}

/* Groups of `members` ranks, the first ones. */
static void run_members(int members, size_t bucket, int force)
{
    nami_reducer *r;
    assert_ok(nami_reducer_open(world, rank < members ? 0 : -1, bucket, force, &r));
    if (!r)
        return;
    assert_int_equal(nami_reducer_size(r), members);
    run_jobs(r, rank, bucket / 64 * 64);
    run_jobs(r, rank, bucket / 64 * 64);
    nami_reducer_close(r);
}

/* Also groups of five and six, when seven ranks are there anyway. */
static void run_all(int force)
{
    for (int members = size > 5 ? 5 : size; members <= size; members++)
        run_members(members, 200, force);
    run_members(size, 20000, force);
}

static void test_memory(void **state)
{
    (void)state;
    run_all(MEMORY);
}

static void test_messages(void **state)
{
    (void)state;
    run_all(MESSAGES);
}

/* Two groups and a rank outside at a time; groups in reverse ranks are still ordered by rank. */
static void test_groups(void **state)
{
    (void)state;
    for (int out = 0; out < size; out += 2) {
        nami_reducer *r;
        int color = rank == out ? -1 : rank % 2, me = 0;
        for (int other = 0; other < rank; other++)
            me += other != out && other % 2 == rank % 2;
        assert_ok(nami_reducer_open(world, color, 1024, 0, &r));
        if (color < 0) {
            assert_null(r);
            continue;
        }
        run_jobs(r, me, 1024);
        nami_reducer_close(r);
    }
}

/* Memory held is what is said, and little more than two buckets. */
static void test_bytes(void **state)
{
    (void)state;
    for (int force = MEMORY; force <= MESSAGES; force++) {
        nami_reducer *r;
        assert_ok(nami_reducer_open(world, 0, 1 << 20, force, &r));
        assert_true(nami_reducer_bytes(r) <= (size == 1 ? 0 : (size_t)4 << 20));
        assert_true(nami_reducer_poll(r));
        nami_reducer_close(r);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_bytes),
    };
    mpi_test_open(&argc, &argv);
    return mpi_test_close(cmocka_run_group_tests(test, NULL, NULL));
}
