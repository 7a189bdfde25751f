/* SPDX-License-Identifier: MIT */
/* collect.c - small collectives that wait politely. */
#include "comm/inner.h"

void nami_comm_broadcast(nami_comm *c, void *data, size_t bytes, int root)
{
    char *at = data;
    while (c->size > 1 && bytes > 0) {
        int piece = bytes < NAMI_COMM_PIECE ? (int)bytes : NAMI_COMM_PIECE;
        MPI_Request request;
        MPI_Ibcast(at, piece, MPI_BYTE, root, c->control, &request);
        nami_comm_wait(c, &request, "broadcast");
        at += piece;
        bytes -= (size_t)piece;
    }
}

void nami_comm_gather(nami_comm *c, const void *own, size_t bytes, void *all)
{
    MPI_Request request;
    NAMI_CHECK(bytes <= INT_MAX);
    MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->control,
                   &request);
    nami_comm_wait(c, &request, "gather");
}

void nami_comm_barrier(nami_comm *c)
{
    MPI_Request request;
    MPI_Ibarrier(c->control, &request);
    nami_comm_wait(c, &request, "barrier");
}

static double reduce_double(nami_comm *c, double x, MPI_Op op)
{
    double result = x;
    MPI_Request request;
    MPI_Iallreduce(&x, &result, 1, MPI_DOUBLE, op, c->control, &request);
    nami_comm_wait(c, &request, "reduction");
    return result;
}

double nami_comm_max(nami_comm *c, double x)
{
    return reduce_double(c, x, MPI_MAX);
}

double nami_comm_min(nami_comm *c, double x)
{
    return reduce_double(c, x, MPI_MIN);
}

int64_t nami_comm_sum(nami_comm *c, int64_t x)
{
    int64_t result = x;
    MPI_Request request;
    MPI_Iallreduce(&x, &result, 1, MPI_INT64_T, MPI_SUM, c->control, &request);
    nami_comm_wait(c, &request, "reduction");
    return result;
}

nami_request nami_comm_merge(nami_comm *c, double *inout, int count)
{
    if (c->size == 1 || count == 0)
        return 0;
    int slot = nami_comm_slot(c);
    MPI_Iallreduce(MPI_IN_PLACE, inout, count, MPI_DOUBLE, MPI_SUM, c->data,
                   &c->slot[slot].request);
    c->pending++;
    return slot + 1;
}
