/* SPDX-License-Identifier: MIT */
/* reduce.c - sums over the members of a group: jobs, chunks, and the choice of a transport. */
#include "comm/reduce.h"

#include "base/log.h"
#include "base/memory.h"

enum { FIRST_JOBS = 16, STEPS_A_POLL = 8 };

bool nami_reduce_chunk(const nami_reducer *r, const nami_cursor *at, nami_chunk *out)
{
    if (at->job == r->last)
        return false;
    const nami_reduce_job *job = &r->job[at->job & (r->jobs - 1)];
    int64_t most = (int64_t)(r->bucket / (size_t)job->wide),
            left = job->count - at->from;
    out->data = job->data + at->from * job->wide;
    out->count = left < most ? left : most;
    out->wide = job->wide;
    return true;
}

bool nami_reduce_next(const nami_reducer *r, nami_cursor *at)
{
    nami_chunk chunk;
    NAMI_CHECK(nami_reduce_chunk(r, at, &chunk));
    at->chunk++;
    at->from += chunk.count;
    if (at->from < r->job[at->job & (r->jobs - 1)].count)
        return false;
    at->job++;
    at->from = 0;
    return true;
}

/* Slices begin on cache lines, so that no line has two writers. */
int64_t nami_reduce_slice(const nami_reducer *r, const nami_chunk *chunk, int m,
                          int64_t *from)
{
    int64_t line = 64 / chunk->wide;
    int64_t each = (chunk->count + r->members - 1) / r->members;
    each = (each + line - 1) / line * line;
    int64_t first = each * m < chunk->count ? each * m : chunk->count;
    *from = first;
    return chunk->count - first < each ? chunk->count - first : each;
}

static bool on_one_node(const nami_reducer *r)
{
    int range[2] = {r->comm->node_leader, -r->comm->node_leader}, most[2];
    MPI_Request request;
    MPI_Iallreduce(range, most, 2, MPI_INT, MPI_MAX, r->group, &request);
    nami_comm_wait(r->comm, &request, "start of a group");
    return most[0] == -most[1];
}

static nami_status choose(nami_reducer *r, int force)
{
    if (r->members == 1)
        return NAMI_OK;
    bool near = force != 2 && on_one_node(r);
    if (near && nami_reduce_by_memory(r))
        return NAMI_OK;
    if (force == 1)
        return nami_fail(
            NAMI_EENV,
            near ? "the system refuses %zu bytes of shared memory for reductions"
                 : "members of a group that was to share memory are on several nodes "
                   "(%zu bytes asked)",
            r->bytes);
    if (near && r->me == 0)
        nami_log(NAMI_WARNING, "the system refuses shared memory, so gradients are "
                               "summed by messages, which is slower");
    nami_reduce_by_messages(r);
    return NAMI_OK;
}

nami_status nami_reducer_open(nami_comm *c, int color, size_t bucket, int force,
                              nami_reducer **out)
{
    MPI_Comm group;
    nami_status status = NAMI_OK;
    *out = NULL;
    NAMI_CHECK(bucket >= 64 && bucket <= NAMI_COMM_PIECE);
    nami_comm_barrier(
        c); /* politely, as the split waits for all without giving the core away */
    MPI_Comm_split(c->control, color < 0 ? MPI_UNDEFINED : color, c->rank, &group);
    if (group != MPI_COMM_NULL) {
        nami_reducer *r = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *r);
        *r = (nami_reducer){
            .comm = c, .group = group, .bucket = bucket / 64 * 64, .jobs = FIRST_JOBS};
        MPI_Comm_size(group, &r->members);
        MPI_Comm_rank(group, &r->me);
        r->job = nami_calloc(NAMI_MEM_OTHER, FIRST_JOBS, sizeof *r->job);
        status = choose(r, force);
        *out = r;
    }
    status = nami_comm_settle(c, status);
    if (status != NAMI_OK) {
        nami_reducer_close(*out);
        *out = NULL;
    }
    return status;
}

void nami_reducer_close(nami_reducer *r)
{
    if (!r)
        return;
    MPI_Request request;
    MPI_Ibarrier(r->group, &request);
    nami_comm_wait(r->comm, &request, "end of a group");
    if (r->close)
        r->close(r);
    MPI_Comm_free(&r->group);
    nami_free(r->job);
    nami_free(r);
}

int nami_reducer_size(const nami_reducer *r)
{
    return r->members;
}

size_t nami_reducer_bytes(const nami_reducer *r)
{
    return r->bytes;
}

static void grow(nami_reducer *r)
{
    nami_reduce_job *wider =
        nami_calloc(NAMI_MEM_OTHER, 2 * (size_t)r->jobs, sizeof *wider);
    for (int64_t i = r->first; i < r->last; i++)
        wider[i & (2 * r->jobs - 1)] = r->job[i & (r->jobs - 1)];
    nami_free(r->job);
    r->job = wider;
    r->jobs *= 2;
}

void nami_reducer_start(nami_reducer *r, void *data, int64_t count, int wide)
{
    NAMI_CHECK((wide == 4 || wide == 8) && count >= 0);
    if (r->members == 1 || count == 0)
        return;
    if (r->last - r->first == r->jobs)
        grow(r);
    r->job[r->last++ & (r->jobs - 1)] =
        (nami_reduce_job){.data = data, .count = count, .wide = wide};
}

bool nami_reducer_poll(nami_reducer *r)
{
    for (int i = 0; i < STEPS_A_POLL && r->first < r->last; i++) {
        if (!r->advance(r))
            break;
        r->comm->activity++;
    }
    return r->first == r->last;
}
