/* SPDX-License-Identifier: MIT */
/* test_large.c - messages, broadcasts and arrays above 2 and 4 GiB. Only with NAMI_TEST_LONG=1: 5 GB of memory and disk. */
#include "comm/mpi_test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "store/store.h"

static const size_t bytes = ((size_t)5 << 29) + 12345; /* 2.5 GiB */

/* Places that matter: the ends, the edges of pieces, of int, and some between. */
static size_t place(int k)
{
    static const size_t edge[] = {0,
                                  ((size_t)1 << 28) - 1,
                                  (size_t)1 << 28,
                                  ((size_t)1 << 30) - 1,
                                  (size_t)1 << 30,
                                  ((size_t)1 << 31) - 1,
                                  (size_t)1 << 31,
                                  ((size_t)1 << 31) + 1};
    enum { EDGES = sizeof edge / sizeof *edge };
    if (k < EDGES)
        return edge[k];
    return k == EDGES ? bytes - 1 : (size_t)(nami_mix(1, (uint64_t)k) % bytes);
}

enum { PLACES = 60 };

static unsigned char mark(int k)
{
    return (unsigned char)(1 + place(k) % 255);
}

/* Zeros that take no memory until they are written. */
static unsigned char *sparse(void)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void set_marks(unsigned char *p)
{
    for (int k = 0; k < PLACES; k++)
        p[place(k)] = mark(k);
}

static void check_marks(const unsigned char *p)
{
    for (int k = 0; k < PLACES; k++)
        assert_int_equal(p[place(k)], mark(k));
    size_t others = 0;
    for (size_t i = 0; i < bytes; i++)
        others += p[i] != 0;
    assert_in_range(others, PLACES / 2, PLACES);
}

static void test_message(void **state)
{
    (void)state;
    unsigned char *p = sparse();
    if (rank == 0) {
        set_marks(p);
        mpi_test_wait(nami_comm_send(world, p, bytes, 1, 3));
    } else if (rank == 1) {
        mpi_test_wait(nami_comm_receive(world, p, bytes, 0, 3));
        check_marks(p);
    }
    munmap(p, bytes);
    assert_int_equal(nami_comm_pending(world), 0);
}

static void test_broadcast(void **state)
{
    (void)state;
    unsigned char *p = sparse();
    if (rank == 1)
        set_marks(p);
    nami_comm_broadcast(world, p, bytes, 1);
    check_marks(p);
    munmap(p, bytes);
}

/* Two such slabs in one array, so that the second begins above 2 GiB and ends above 4. */
static void test_array(void **state)
{
    (void)state;
    char path[512];
    nami_store *s;
    unsigned char *p = sparse();
    set_marks(p);
    assert_ok(nami_store_create(world, nami_test_path(path, "large.h5"), &s));
    assert_ok(
        nami_store_define(s, "/x", NAMI_STORE_U8, 2, (int64_t[]){2, (int64_t)bytes}));
    assert_ok(nami_store_write(s, "/x", (int64_t)bytes * rank, (int64_t)bytes, p));
    assert_ok(nami_store_close(s));
    munmap(p, bytes);
    p = sparse();
    assert_ok(nami_store_open(world, path, &s));
    assert_ok(nami_store_read(s, "/x", (int64_t)bytes * (1 - rank), (int64_t)bytes, p));
    check_marks(p);
    assert_ok(nami_store_close(s));
    munmap(p, bytes);
    if (rank == 0)
        unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_array),
    };
    if (!getenv("NAMI_TEST_LONG")) {
        puts("skipped: needs 5 GB; make check-long runs it");
        return 77;
    }
    mpi_test_open(&argc, &argv);
    nami_comm_phase(world, "test", 600);
    return mpi_test_close(cmocka_run_group_tests(test, NULL, NULL));
}
