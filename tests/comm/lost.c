/* SPDX-License-Identifier: MIT */
/* lost.c - a program that goes wrong as its argument says; test_lost.sh looks at how it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/comm.h"

static nami_status fail_together(nami_comm *c, int rank)
{
    nami_status own =
        rank == 1 ? nami_fail(NAMI_EPLAN, "rank one cannot do this") : NAMI_OK;
    return nami_agree(c, own);
}

static void miss_barrier(nami_comm *c, int rank, int who)
{
    nami_comm_phase(c, "the test", 1);
    if (rank == who)
        nami_sleep(30);
    nami_comm_barrier(c);
}

/* A barrier that is reached late, but before the others give up. */
static void come_late(nami_comm *c, int rank)
{
    nami_comm_phase(c, "the test", 1);
    if (rank == 1)
        nami_sleep(2);
    nami_comm_barrier(c);
    nami_comm_barrier(c);
}

/* A barrier that one rank reaches long after the limit, which was extended. */
static void extend(nami_comm *c, int rank)
{
    nami_comm_phase(c, "the test", 1);
    nami_comm_extend(c, 30);
    if (rank == 1)
        nami_sleep(5);
    nami_comm_barrier(c);
    nami_comm_extend(c, 0);
}

static void mismatch(nami_comm *c, int rank, size_t sent, size_t expected)
{
    char data[1000] = "";
    nami_request r = rank == 0 ? nami_comm_send(c, data, sent, 1, 5) : 0;
    if (rank == 1)
        r = nami_comm_receive(c, data, expected, 0, 5);
    while (!nami_comm_done(c, &r))
        nami_comm_progress(c);
    nami_comm_barrier(c);
}

int main(int argc, char **argv)
{
    nami_comm *c;
    nami_status status = nami_comm_open(&argc, &argv, &c);
    const char *how = argc > 1 ? argv[1] : "";
    if (status != NAMI_OK)
        nami_die(status);
    int rank = nami_comm_rank(c);
    if (!strcmp(how, "agree"))
        status = fail_together(c, rank);
    if (!strcmp(how, "miss-1"))
        miss_barrier(c, rank, 1);
    if (!strcmp(how, "miss-0"))
        miss_barrier(c, rank, 0);
    if (!strcmp(how, "late"))
        come_late(c, rank);
    if (!strcmp(how, "extend"))
        extend(c, rank);
    if (!strcmp(how, "short"))
        mismatch(c, rank, 10, 100);
    if (!strcmp(how, "long"))
        mismatch(c, rank, 100, 10);
    if (!strcmp(how, "peer"))
        nami_comm_send(c, &rank, sizeof rank, 1000, 5);
    nami_comm_close(c);
    return (int)status;
}
