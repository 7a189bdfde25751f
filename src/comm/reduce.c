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
    bool whole = job->kind == NAMI_JOB_ALL;
    int64_t most = (int64_t)((whole ? r->bucket : r->region) / (size_t)job->wide),
            left = job->count - at->from;
    *out = (nami_chunk){.job = *job,
                        .data = whole ? job->data + at->from * job->wide : NULL,
                        .from = at->from,
                        .count = left < most ? left : most,
                        .wide = job->wide};
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

/* --- spans --- */

/* Elements of a member in all spans. */
static int64_t elements_of(const nami_reduce_job *job, int m)
{
    int64_t count = 0;
    for (int i = 0; i < job->spans; i++)
        count += job->span[i].member == m ? job->span[i].count : 0;
    return count;
}

int64_t nami_reduce_region(const nami_chunk *chunk, int m)
{
    int64_t left = elements_of(&chunk->job, m) - chunk->from;
    left = left > 0 ? left : 0;
    return left < chunk->count ? left : chunk->count;
}

bool nami_reduce_part(const nami_chunk *chunk, int m, nami_reduce_run *p)
{
    const nami_reduce_job *job = &chunk->job;
    int64_t first = 0; /* of the span, among the member's elements */
    const int64_t end = chunk->from + chunk->count;
    for (int i = 0; i < job->spans && first < end; i++) {
        const nami_reducer_span *s = &job->span[i];
        if (s->member != m)
            continue;
        int64_t from = first > chunk->from ? first : chunk->from;
        int64_t to = first + s->count < end ? first + s->count : end;
        if (i > p->span && from < to) {
            *p = (nami_reduce_run){.data = (char *)s->data + (from - first) * job->wide,
                                   .at = from - chunk->from,
                                   .count = to - from,
                                   .span = i};
            return true;
        }
        first += s->count;
    }
    return false;
}

/* --- life --- */

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
        r->region = r->bucket / (size_t)r->members / 64 * 64;
        r->region = r->region > 0 ? r->region : 64;
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

/* --- jobs --- */

static int64_t start(nami_reducer *r, nami_reduce_job job)
{
    NAMI_CHECK((job.wide == 4 || job.wide == 8) && job.count >= 0);
    if (r->members == 1 || job.count == 0)
        return r->last;
    if (r->last - r->first == r->jobs)
        grow(r);
    r->job[r->last++ & (r->jobs - 1)] = job;
    return r->last;
}

int64_t nami_reducer_start(nami_reducer *r, void *data, int64_t count, int wide)
{
    return start(r,
                 (nami_reduce_job){
                     .kind = NAMI_JOB_ALL, .data = data, .count = count, .wide = wide});
}

static int64_t start_spans(nami_reducer *r, nami_reduce_kind kind,
                           const nami_reducer_span *span, int spans, int wide)
{
    nami_reduce_job job = {.kind = kind, .span = span, .spans = spans, .wide = wide};
    for (int m = 0; m < r->members; m++) {
        int64_t count = elements_of(&job, m);
        job.count = count > job.count ? count : job.count;
    }
    return start(r, job);
}

int64_t nami_reducer_scatter(nami_reducer *r, const nami_reducer_span *span, int spans,
                             int wide)
{
    return start_spans(r, NAMI_JOB_SCATTER, span, spans, wide);
}

int64_t nami_reducer_gather(nami_reducer *r, const nami_reducer_span *span, int spans,
                            int wide)
{
    return start_spans(r, NAMI_JOB_GATHER, span, spans, wide);
}

bool nami_reducer_done(const nami_reducer *r, int64_t job)
{
    return r->first >= job;
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
