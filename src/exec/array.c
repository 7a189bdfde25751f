/* SPDX-License-Identifier: MIT */
/* array.c - parameters and states for checkpoints: the memory itself, or of a device a shadow on the host. */
#include "base/memory.h"
#include "exec/state.h"

static size_t offset_of(const nami_exec *e, int i, int state)
{
    return (size_t)state * e->share.state + e->share.param[i].at;
}

/* State 0 are the parameters; states 1.. follow each other. */
static char *device_of(const nami_exec *e, int i, int state)
{
    return state == 0 ? nami_ring_weight(e, i, e->ring[e->share.param[i].local].base)
                      : e->state + offset_of(e, i, state - 1);
}

static void copy(nami_exec *e, void *to, const void *from, int i)
{
    nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, to, from,
                      (size_t)e->share.param[i].count * e->share.wide);
}

/* Where the array lies on the host, up to date. */
static char *shadow_of(nami_exec *e, int i, int state)
{
    size_t arrays = (size_t)e->share.states + 1;
    if (e->shadow == NULL) {
        e->shadow = nami_alloc(NAMI_MEM_OTHER, arrays * e->share.state);
        e->shadowed = nami_calloc(NAMI_MEM_OTHER, arrays * (size_t)e->share.params, 1);
    }
    bool *known = &e->shadowed[(size_t)i * arrays + (size_t)state];
    char *host = e->shadow + offset_of(e, i, state);
    if (!*known) {
        copy(e, host, device_of(e, i, state), i);
        nami_exec_finish_lane(e);
    }
    *known = true;
    return host;
}

float *nami_exec_array(nami_exec *e, int param, int state, bool *owner)
{
    *owner = false;
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        if (h->param != param)
            continue;
        *owner = h->owner && e->replica == 0;
        char *data =
            e->config.backend->host ? device_of(e, i, state) : shadow_of(e, i, state);
        return (float *)(void *)data;
    }
    return NULL;
}

void nami_exec_forget(nami_exec *e)
{
    int arrays = e->share.states + 1;
    for (int i = 0; e->shadowed != NULL && i < e->share.params * arrays; i++)
        e->shadowed[i] = false;
}

void nami_exec_refresh(nami_exec *e)
{
    int arrays = e->share.states + 1;
    for (int i = 0; e->shadowed != NULL && i < e->share.params * arrays; i++) {
        if (e->shadowed[i])
            copy(e, device_of(e, i / arrays, i % arrays),
                 e->shadow + offset_of(e, i / arrays, i % arrays), i / arrays);
    }
    nami_exec_pack(e);
    nami_exec_forget(e);
}
