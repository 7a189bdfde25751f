/* SPDX-License-Identifier: MIT */
/* test_reduce.c - sums over groups: bit-equal on both transports to the tree written down by hand. */
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

static void check_job(const void *data, int k, int64_t count, int wide, int members)
{
    for (int64_t i = 0; i < count; i++) {
        double x[64];
        for (int m = 0; m < members; m++)
            x[m] = wide == 8 ? value(k, m, i) : (double)(float)value(k, m, i);
        const double sum = tree(members, x, wide == 8);
        const float narrow = (float)sum;
        if (memcmp((const char *)data + i * wide,
                   wide == 4 ? (const void *)&narrow : (const void *)&sum,
                   (size_t)wide) != 0)
            fail_msg("job %d (%d members, f%d): element %ld of %ld differs", k, members,
                     8 * wide, (long)i, (long)count);
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

/* Many sums started at once and while others run, of sizes around the bucket's. */
static void run_jobs(nami_reducer *r, int me, size_t bucket)
{
    enum { JOBS = 40 };
    static const int64_t edge[] = {0, 1, 15, 16, 17, 0, 1, -1, 100};
    char *data[JOBS];
    int64_t count[JOBS];
    nami_patience patience = {0};
    for (int k = 0; k < JOBS; k++) {
        int wide = k % 3 ? 4 : 8;
        count[k] = k % 9 < 5
                       ? edge[k % 9]
                       : (int64_t)(bucket / (size_t)wide) * (1 + k % 4) + edge[k % 9];
        data[k] = nami_alloc(NAMI_MEM_OTHER, (size_t)count[k] * (size_t)wide);
        fill_job(data[k], k, count[k], wide, me);
        nami_reducer_start(r, data[k], count[k], wide);
        if (k % 5 == rank % 5)
            nami_reducer_poll(r);
    }
    while (!nami_reducer_poll(r)) {
        nami_comm_progress(world);
        nami_patience_wait(world, &patience);
    }
    for (int k = 0; k < JOBS; k++) {
        check_job(data[k], k, count[k], k % 3 ? 4 : 8, nami_reducer_size(r));
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
