/* SPDX-License-Identifier: MIT */
/* test_comm.c - agreement, collectives, messages of all sizes, polite waiting. */
#include "comm/mpi_test.h"

#include <time.h>

#include "base/clock.h"
#include "base/rng.h"

/* Sizes on both sides of the eager limits of shared memory and networks. */
static const size_t message_size[] = {0,     1,     7,     8,      63,      64,
                                      65,    1023,  4096,  8191,   16384,   16385,
                                      65535, 65536, 65537, 262144, 1048577, 5000011};
enum { SIZES = sizeof message_size / sizeof *message_size };

static void fill(unsigned char *p, size_t bytes, uint64_t key)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(nami_mix(key, i / 8) >> (8 * (i % 8)));
}

static void test_agree(void **state)
{
    (void)state;
    assert_int_equal(nami_agree(world, NAMI_OK), NAMI_OK);
    for (int bad = 0; bad < size; bad++) {
        nami_status own =
            rank == bad ? nami_fail(NAMI_EPLAN, "rank %d objects", bad) : NAMI_OK;
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d objects", bad);
        assert_fails(nami_comm_settle(world, own), NAMI_EPLAN, expected);
    }
}

static void test_agree_worst(void **state)
{
    (void)state;
    nami_status own =
        nami_fail(rank == size - 1 ? NAMI_ERESTART : NAMI_EINPUT, "from rank %d", rank);
    char expected[64];
    snprintf(expected, sizeof expected, "from rank %d", size - 1);
    assert_fails(nami_comm_settle(world, own), NAMI_ERESTART, expected);
    own = nami_fail(NAMI_EINPUT, "from rank %d", rank);
    assert_fails(nami_comm_settle(world, own), NAMI_EINPUT, "from rank 0");
    own = nami_fail(NAMI_NOTHING, "nothing left to do (printed once, on purpose)");
    assert_int_equal(nami_agree(world, own), NAMI_NOTHING);
    assert_string_equal(nami_fail_text(), "");
}

static void test_collect(void **state)
{
    (void)state;
    for (int root = 0; root < size; root++) {
        unsigned char got[1000], want[1000];
        fill(want, sizeof want, (uint64_t)root);
        memset(got, 0, sizeof got);
        if (rank == root)
            memcpy(got, want, sizeof got);
        nami_comm_broadcast(world, got, sizeof got, root);
        assert_memory_equal(got, want, sizeof got);
    }
    int own[2] = {rank, -rank}, all[2 * 64];
    nami_comm_gather(world, own, sizeof own, all);
    for (int r = 0; r < size; r++) {
        assert_int_equal(all[2 * r], r);
        assert_int_equal(all[2 * r + 1], -r);
    }
    assert_true(nami_comm_max(world, rank + 0.5) == size - 0.5);
    assert_true(nami_comm_min(world, rank - 7.0) == -7.0);
    assert_int_equal(nami_comm_sum(world, ((int64_t)1 << 40) + rank),
                     size * ((int64_t)1 << 40) + size * (size - 1) / 2);
}

/* Everyone to everyone at once, all sizes, posted in different orders: matched by (peer, tag). */
static void test_messages(void **state)
{
    (void)state;
    int count = size * SIZES;
    unsigned char **in = nami_calloc(NAMI_MEM_OTHER, (size_t)count, sizeof *in);
    unsigned char **out = nami_calloc(NAMI_MEM_OTHER, (size_t)count, sizeof *out);
    nami_request *request =
        nami_calloc(NAMI_MEM_OTHER, 2 * (size_t)count, sizeof *request);
    for (int i = 0; i < count; i++) {
        int peer = i % size, k = i / size;
        in[i] = nami_alloc(NAMI_MEM_OTHER, message_size[k]);
        out[i] = nami_alloc(NAMI_MEM_OTHER, message_size[k]);
        fill(out[i], message_size[k], (uint64_t)(100 * rank + peer));
        request[2 * i] = nami_comm_receive(world, in[i], message_size[k], peer, k);
    }
    for (int i = count - 1; i >= 0; i--)
        request[2 * i + 1] =
            nami_comm_send(world, out[i], message_size[i / size], i % size, i / size);
    assert_int_equal(nami_comm_pending(world), 2 * count);
    for (int i = 0; i < 2 * count; i++)
        mpi_test_wait(request[i]);
    assert_int_equal(nami_comm_pending(world), 0);
    for (int i = 0; i < count; i++) {
        size_t bytes = message_size[i / size];
        fill(out[i], bytes, (uint64_t)(100 * (i % size) + rank));
        assert_memory_equal(in[i], out[i], bytes);
        nami_free(in[i]);
        nami_free(out[i]);
    }
    nami_free(in);
    nami_free(out);
    nami_free(request);
}

/* Messages of one peer and tag arrive in the order they were sent. */
static void test_order(void **state)
{
    (void)state;
    enum { N = 500 };
    int out[N], in[N], next = (rank + 1) % size, before = (rank + size - 1) % size,
                       tag = nami_comm_tags(world) - 1;
    nami_request request[2 * N];
    for (int i = 0; i < N; i++) {
        out[i] = 1000 * rank + i;
        request[i] = nami_comm_send(world, &out[i], sizeof out[i], next, tag);
    }
    for (int i = 0; i < N; i++)
        request[N + i] = nami_comm_receive(world, &in[i], sizeof in[i], before, tag);
    for (int i = 0; i < 2 * N; i++)
        mpi_test_wait(request[i]);
    for (int i = 0; i < N; i++)
        assert_int_equal(in[i], 1000 * before + i);
    assert_int_equal(nami_comm_pending(world), 0);
}

static void test_merge(void **state)
{
    (void)state;
    enum { N = 300 };
    double x[N];
    for (int i = 0; i < N; i++)
        x[i] = i % size == rank ? nami_normal(5, (uint64_t)i) : 0;
    mpi_test_wait(nami_comm_merge(world, x, N));
    for (int i = 0; i < N; i++)
        assert_true(x[i] == nami_normal(5, (uint64_t)i));
}

/* A barrier that waits 0.3 s for rank 0 costs the others little processor time when cores are scarce. */
/* One rank works by itself while the others wait in a barrier. */
static void test_alone(void **state)
{
    (void)state;
    if (rank == size - 1) {
        nami_comm *one = nami_comm_alone(world);
        int sent = 7, got = 0;
        assert_int_equal(nami_comm_rank(one), 0);
        assert_int_equal(nami_comm_size(one), 1);
        assert_int_equal(nami_comm_sum(one, 5), 5);
        nami_request r = nami_comm_receive(one, &got, sizeof got, 0, 3);
        nami_request s = nami_comm_send(one, &sent, sizeof sent, 0, 3);
        while (!nami_comm_done(one, &r) || !nami_comm_done(one, &s))
            ;
        assert_int_equal(got, 7);
        nami_comm_close(one);
    }
    nami_comm_barrier(world);
}

static void test_polite(void **state)
{
    (void)state;
    nami_comm_threads(world, 100000);
    assert_true(nami_comm_oversubscribed(world));
    nami_comm_barrier(world);
    double cpu = (double)clock() / CLOCKS_PER_SEC;
    if (rank == 0)
        nami_sleep(0.3);
    nami_comm_barrier(world);
    cpu = (double)clock() / CLOCKS_PER_SEC - cpu;
    assert_true(cpu < 0.1);
    nami_comm_threads(world, 1);
}

/* A wait that gets somewhere starts again at short sleeps. */
static void test_patience(void **state)
{
    (void)state;
    nami_patience p = {0};
    int64_t before = nami_comm_activity(world);
    for (int i = 0; i < 12; i++)
        nami_patience_wait(world, &p);
    assert_true(p.idle > 4);
    char in, out = 1;
    nami_request r = nami_comm_receive(world, &in, 1, rank, 1),
                 w = nami_comm_send(world, &out, 1, rank, 1);
    mpi_test_wait(r);
    mpi_test_wait(w);
    assert_int_equal(nami_comm_activity(world), before + 2);
    nami_patience_wait(world, &p);
    assert_int_equal(p.idle, 1);
}

static void test_places(void **state)
{
    (void)state;
    nami_comm_place *place = nami_calloc(NAMI_MEM_OTHER, (size_t)size, sizeof *place);
    nami_text text = {0};
    nami_comm_places(world, place);
    for (int r = 0; r < size; r++) {
        assert_true(place[r].host[0] && place[r].cores[0]);
        assert_true(place[r].core_count >= 1 && place[r].node_cores >= 1);
    }
    assert_int_equal(nami_comm_oversubscribed(world), size > place[0].node_cores);
    nami_comm_place_warnings(place, size, &text);
    assert_int_equal(text.length > 0, size > place[0].node_cores);
    nami_text_free(&text);
    nami_free(place);
}

static void test_warnings(void **state)
{
    (void)state;
    nami_comm_place place[3] = {
        {.host = "a",
         .cores = "0",
         .core_count = 1,
         .threads = 2,
         .node_cores = 4,
         .node_ranks = 2},
        {.host = "b",
         .cores = "0-3",
         .core_count = 4,
         .threads = 5,
         .node_cores = 4,
         .node_ranks = 1},
        {.host = "a",
         .cores = "1-3",
         .core_count = 3,
         .threads = 2,
         .node_cores = 4,
         .node_ranks = 2},
    };
    nami_text text = {0};
    nami_comm_place_warnings(place, 3, &text);
    assert_string_equal(nami_text_get(&text),
                        "a: rank 0 has 2 threads but is bound to 1 core (0)\n"
                        "b: 1 ranks with 5 threads together share 4 cores, so they "
                        "take turns: use fewer ranks or "
                        "threads, or bind ranks to different cores\n");
    nami_text_free(&text);
}

static void test_tree(void **state)
{
    (void)state;
    assert_true(nami_tree_is_node(4, 0, 2) && nami_tree_is_node(4, 2, 4) &&
                nami_tree_is_node(6, 4, 6));
    assert_false(nami_tree_is_node(6, 0, 3) || nami_tree_is_node(4, 1, 3) ||
                 nami_tree_is_node(4, 2, 2));
    assert_true(nami_tree_is_node(5, 4, 5) && nami_tree_is_node(7, 4, 6) &&
                nami_tree_is_node(7, 4, 7));
    /* ((0 1) (2 3)) ((4 5) 6), written out */
    float x[7], sum = 0;
    const void *leaf[7];
    for (int i = 0; i < 7; i++) {
        x[i] = (float)nami_normal(3, (uint64_t)i);
        leaf[i] = &x[i];
    }
    nami_tree_sum(leaf, 7, &sum, 1, 4);
    assert_true(sum == ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6]));
    nami_tree_sum(leaf, 7, &x[0], 1, 4);
    assert_true(sum == x[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_alone),       cmocka_unit_test(test_agree),
        cmocka_unit_test(test_agree_worst), cmocka_unit_test(test_collect),
        cmocka_unit_test(test_messages),    cmocka_unit_test(test_order),
        cmocka_unit_test(test_merge),       cmocka_unit_test(test_polite),
        cmocka_unit_test(test_patience),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_warnings),    cmocka_unit_test(test_tree),
    };
    mpi_test_open(&argc, &argv);
    return mpi_test_close(cmocka_run_group_tests(test, NULL, NULL));
}
