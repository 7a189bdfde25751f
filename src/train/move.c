/* SPDX-License-Identifier: MIT */
/* move.c - parameters and optimiser states on their way from one executor to the next. */
#include "train/move.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

static size_t elements(const nami_cargo *cargo, int param)
{
    return (size_t)nami_shape_count(&cargo->model->param[param].shape);
}

/* Arrays of a parameter: a statistic has no optimiser. */
static int arrays_of(const nami_cargo *cargo, int param)
{
    return cargo->model->param[param].statistic ? 1 : cargo->states;
}

void nami_cargo_take(nami_exec *e, const nami_model *m, int states, nami_cargo *out)
{
    *out = (nami_cargo){.model = m, .states = states};
    out->array = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params + 1, sizeof *out->array);
    for (int p = 0; p < m->params; p++) {
        bool owner = false;
        size_t count = elements(out, p);
        if (nami_exec_array(e, p, 0, &owner) == NULL || !owner)
            continue;
        int arrays = arrays_of(out, p);
        out->array[p] =
            nami_alloc(NAMI_MEM_OTHER, (size_t)arrays * count * sizeof(float));
        for (int s = 0; s < arrays; s++)
            memcpy(out->array[p] + (size_t)s * count, nami_exec_array(e, p, s, &owner),
                   count * sizeof(float));
    }
}

void nami_cargo_free(nami_cargo *cargo)
{
    for (int p = 0; cargo->array && p < cargo->model->params; p++)
        nami_free(cargo->array[p]);
    nami_free(cargo->array);
    *cargo = (nami_cargo){0};
}

/* --- who owns, who needs --- */

enum { OWNS = 1, NEEDS = 2 };

/* A hand-over under way. */
typedef struct handing {
    const nami_cargo *cargo;
    nami_comm *comm;
    nami_exec *exec;
    double stall;
    char *role;            /* [ranks][params]: OWNS, NEEDS or both */
    nami_request *request; /* [ranks * states] */
    int requests;
} handing;

static bool has_role(const handing *h, int rank, int param, int role)
{
    return (h->role[(size_t)rank * (size_t)h->cargo->model->params + (size_t)param] &
            role) != 0;
}

static void find_roles(handing *h)
{
    size_t params = (size_t)h->cargo->model->params;
    size_t ranks = (size_t)nami_comm_size(h->comm);
    bool owner;
    char *own = nami_calloc(NAMI_MEM_OTHER, params + 1, 1);
    h->role = nami_calloc(NAMI_MEM_OTHER, ranks * params + 1, 1);
    for (size_t p = 0; p < params; p++) {
        bool needs = nami_exec_array(h->exec, (int)p, 0, &owner) != NULL;
        own[p] = (char)((h->cargo->array[p] ? OWNS : 0) | (needs ? NEEDS : 0));
    }
    nami_comm_gather(h->comm, own, params, h->role);
    nami_free(own);
}

static int owner_of(const handing *h, int param)
{
    for (int r = 0; r < nami_comm_size(h->comm); r++)
        if (has_role(h, r, param, OWNS))
            return r;
    NAMI_CHECK(!"every parameter has an owner");
    return -1;
}

/* --- messages --- */

static float *target(const handing *h, int param, int state)
{
    bool owner;
    return nami_exec_array(h->exec, param, state, &owner);
}

static void start_sends(handing *h, int param)
{
    size_t count = elements(h->cargo, param);
    int arrays = arrays_of(h->cargo, param);
    for (int r = 0; r < nami_comm_size(h->comm); r++)
        for (int s = 0; s < arrays && has_role(h, r, param, NEEDS); s++) {
            const float *from = h->cargo->array[param] + (size_t)s * count;
            if (r == nami_comm_rank(h->comm))
                memcpy(target(h, param, s), from, count * sizeof *from);
            else
                h->request[h->requests++] =
                    nami_comm_send(h->comm, from, count * sizeof *from, r, 0);
        }
}

static void start_receives(handing *h, int param, int owner)
{
    size_t bytes = elements(h->cargo, param) * sizeof(float);
    for (int s = 0; s < arrays_of(h->cargo, param); s++)
        h->request[h->requests++] =
            nami_comm_receive(h->comm, target(h, param, s), bytes, owner, 0);
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

static void wait_all(handing *h, int param, int owner)
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
            nami_die(nami_fail(NAMI_ELOST,
                               "rank %d waited %.0f s while %s went from rank %d to "
                               "the ranks of the new layout",
                               nami_comm_rank(h->comm), h->stall,
                               h->cargo->model->param[param].name, owner));
        }
    }
    h->requests = 0;
}

void nami_cargo_give(const nami_cargo *cargo, nami_comm *c, nami_exec *e, double stall)
{
    handing h = {.cargo = cargo, .comm = c, .exec = e, .stall = stall};
    size_t most = (size_t)nami_comm_size(c) * (size_t)cargo->states;
    h.request = nami_calloc(NAMI_MEM_OTHER, most + 1, sizeof *h.request);
    find_roles(&h);
    for (int p = 0; p < cargo->model->params; p++) {
        int owner = owner_of(&h, p), rank = nami_comm_rank(c);
        if (rank == owner)
            start_sends(&h, p);
        else if (has_role(&h, rank, p, NEEDS))
            start_receives(&h, p, owner);
        wait_all(&h, p, owner);
    }
    nami_exec_refresh(e);
    nami_free(h.role);
    nami_free(h.request);
}
