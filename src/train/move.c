/* SPDX-License-Identifier: MIT */
/* move.c - parameters and optimiser states on their way from one executor to the next. */
#include "train/move.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

/* Arrays of a parameter: a statistic has no optimiser. */
static int arrays_of(const nami_cargo *cargo, int param)
{
    return cargo->model->param[param].statistic ? 1 : cargo->states;
}

void nami_cargo_take(nami_exec *e, const nami_model *m, int states, nami_cargo *out)
{
    *out = (nami_cargo){.model = m, .states = states};
    out->slab = nami_calloc(NAMI_MEM_OTHER, (size_t)(m->params * states) + 1,
                            sizeof *out->slab);
    for (int i = 0; i < m->params * states; i++) {
        if (i % states >= arrays_of(out, i / states))
            continue;
        nami_exec_slab slab = nami_exec_array(e, i / states, i % states);
        if (!slab.owner || slab.count == 0)
            continue;
        size_t bytes = (size_t)slab.count * sizeof *slab.data;
        out->slab[i] = slab;
        out->slab[i].data = nami_alloc(NAMI_MEM_OTHER, bytes);
        memcpy(out->slab[i].data, slab.data, bytes);
    }
}

void nami_cargo_free(nami_cargo *cargo)
{
    for (int i = 0; cargo->slab && i < cargo->model->params * cargo->states; i++)
        nami_free(cargo->slab[i].data);
    nami_free(cargo->slab);
    *cargo = (nami_cargo){0};
}

/* --- who owns, who needs --- */

/* Elements [from, end) of an array. */
typedef struct range {
    int64_t from, end;
} range;

/* What a rank has of an array, and what it needs. */
typedef struct role {
    range owns, needs;
} role;

/* A hand-over under way. */
typedef struct handing {
    const nami_cargo *cargo;
    nami_comm *comm;
    nami_exec *exec;
    double stall;
    int arrays;
    role *role;            /* [ranks][arrays] */
    nami_request *request; /* [2 * ranks] */
    int requests;
} handing;

static nami_exec_slab target(const handing *h, int array)
{
    const int states = h->cargo->states, param = array / states;
    return array % states < arrays_of(h->cargo, param)
               ? nami_exec_array(h->exec, param, array % states)
               : (nami_exec_slab){0};
}

static void find_roles(handing *h)
{
    const size_t ranks = (size_t)nami_comm_size(h->comm), arrays = (size_t)h->arrays;
    role *own = nami_calloc(NAMI_MEM_OTHER, arrays + 1, sizeof *own);
    h->role = nami_calloc(NAMI_MEM_OTHER, ranks * arrays + 1, sizeof *h->role);
    for (int i = 0; i < h->arrays; i++) {
        const nami_exec_slab *has = &h->cargo->slab[i], in = target(h, i);
        own[i] = (role){.owns = {has->from, has->from + has->count},
                        .needs = {in.from, in.from + in.count}};
    }
    nami_comm_gather(h->comm, own, arrays * sizeof *own, h->role);
    nami_free(own);
}

static const role *role_of(const handing *h, int rank, int array)
{
    return &h->role[(size_t)rank * (size_t)h->arrays + (size_t)array];
}

static range common(range a, range b)
{
    return (range){.from = a.from > b.from ? a.from : b.from,
                   .end = a.end < b.end ? a.end : b.end};
}

/* --- messages --- */

/* What `rank` needs and this rank has goes there, and the other way round. */
static void exchange(handing *h, int array, int rank)
{
    const int me = nami_comm_rank(h->comm);
    const role *own = role_of(h, me, array), *other = role_of(h, rank, array);
    const range out = common(own->owns, other->needs);
    const range back = common(other->owns, own->needs);
    const nami_exec_slab *has = &h->cargo->slab[array], in = target(h, array);
    const size_t sent = sizeof(float) * (size_t)(out.end - out.from);
    if (rank == me && out.from < out.end) {
        NAMI_CHECK(in.data && has->data);
        memcpy(in.data + (out.from - in.from), has->data + (out.from - has->from),
               sent);
    }
    if (rank == me)
        return;
    if (out.from < out.end)
        h->request[h->requests++] =
            nami_comm_send(h->comm, has->data + (out.from - has->from), sent, rank, 0);
    if (back.from < back.end)
        h->request[h->requests++] =
            nami_comm_receive(h->comm, in.data + (back.from - in.from),
                              sizeof(float) * (size_t)(back.end - back.from), rank, 0);
}

static bool all_done(handing *h)
{
    bool done = true;
    for (int i = 0; i < h->requests; i++)
        done = nami_comm_done(h->comm, &h->request[i]) && done;
    return done;
}

/* A process that was stopped and goes on sees the clock jump; that is not waiting. */
enum { JUMP = 1 };

static void wait_all(handing *h, int param)
{
    nami_patience patience = {0};
    double waited = 0, last = nami_now();
    int64_t activity = nami_comm_activity(h->comm);
    while (!all_done(h)) {
        nami_patience_wait(h->comm, &patience);
        double now = nami_now();
        waited += now - last < JUMP ? now - last : 0;
        last = now;
        if (activity != nami_comm_activity(h->comm))
            waited = 0;
        activity = nami_comm_activity(h->comm);
        if (h->stall > 0 && waited > h->stall) {
            nami_fail_clear();
            nami_die(nami_fail(
                NAMI_ELOST,
                "rank %d waited %.0f s while %s went to the ranks of the "
                "new layout",
                nami_comm_rank(h->comm), h->stall, h->cargo->model->param[param].name));
        }
    }
    h->requests = 0;
}

void nami_cargo_give(const nami_cargo *cargo, nami_comm *c, nami_exec *e, double stall)
{
    handing h = {.cargo = cargo,
                 .comm = c,
                 .exec = e,
                 .stall = stall,
                 .arrays = cargo->model->params * cargo->states};
    const int ranks = nami_comm_size(c);
    h.request = nami_calloc(NAMI_MEM_OTHER, 2 * (size_t)ranks, sizeof *h.request);
    find_roles(&h);
    for (int i = 0; i < h.arrays; i++) {
        for (int r = 0; r < ranks; r++)
            exchange(&h, i, r);
        wait_all(&h, i / cargo->states);
    }
    nami_exec_refresh(e);
    nami_free(h.role);
    nami_free(h.request);
}
