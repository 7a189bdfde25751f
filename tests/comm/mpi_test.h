/* SPDX-License-Identifier: MIT */
/* mpi_test.h - what tests with ranks include: one communicator for the whole program.
 *
 * A rank whose assertion fails leaves its test early; the others then end within a short limit, not by a hang.
 */
#ifndef NAMI_TESTS_COMM_MPI_TEST_H
#define NAMI_TESTS_COMM_MPI_TEST_H

#include "nami_test.h"

#include "comm/comm.h"

static nami_comm *world;
static int rank, size;

/* Open `world`; ends the test unless there are as many ranks as the list of tests says. */
static inline void mpi_test_open(int *argc, char ***argv)
{
    if (nami_comm_open(argc, argv, &world) != NAMI_OK)
        nami_die(NAMI_EENV);
    nami_comm_phase(world, "test", 60);
    rank = nami_comm_rank(world);
    size = nami_comm_size(world);
    if (size != nami_test_ranks())
        nami_die(nami_fail(NAMI_EENV, "%d ranks where the list of tests says %d", size,
                           nami_test_ranks()));
}

/* Close `world`; exit code: 1 when tests failed on any rank, or memory was not given back. */
static inline int mpi_test_close(int failed)
{
    int64_t all = nami_comm_sum(world, failed);
    nami_comm_close(world);
    if (nami_memory_blocks())
        print_error("%ld blocks were not given back\n", nami_memory_blocks());
    return all != 0 || nami_memory_blocks() != 0;
}

/* Wait for a request. */
static inline void mpi_test_wait(nami_request r)
{
    nami_patience patience = {0};
    while (!nami_comm_done(world, &r))
        nami_patience_wait(world, &patience);
}

#endif
