/* SPDX-License-Identifier: MIT */
/* array.c - parameters and states for checkpoints: the memory itself, or of a device a shadow on the host. */
#include "base/memory.h"
#include "exec/state.h"

/* Elements of parameter `i` that are here of a state; state 0 is the parameter itself. */
static nami_slice held(const nami_exec *e, int i, int state)
{
    const nami_share_param *h = &e->share.param[i];
    return state == 0 ? (nami_slice){.count = h->count} : h->own;
}

/* In the shadow: all parameters, then each state. */
static size_t offset_of(const nami_exec *e, int i, int state)
{
    const nami_share_param *h = &e->share.param[i];
    if (state == 0)
        return h->whole;
    return e->share.whole + (size_t)(state - 1) * e->share.state + h->at;
}

static char *device_of(const nami_exec *e, int i, int state)
{
    const nami_share_param *h = &e->share.param[i];
    if (state == 0)
        return nami_ring_weight(e, i, e->ring[h->local].base);
    return e->state + (size_t)(state - 1) * e->share.state + h->at;
}

static void copy(nami_exec *e, void *to, const void *from, int i, int state)
{
    size_t bytes = (size_t)held(e, i, state).count * e->share.wide;
    if (bytes > 0)
        nami_backend_copy(e->config.backend, NAMI_LANE_COMPUTE, to, from, bytes);
}

/* Where the array lies on the host, up to date. */
static char *shadow_of(nami_exec *e, int i, int state)
{
    size_t arrays = (size_t)e->share.states + 1;
    if (e->shadow == NULL) {
        e->shadow = nami_alloc(
            NAMI_MEM_OTHER, e->share.whole + (size_t)e->share.states * e->share.state);
        e->shadowed = nami_calloc(NAMI_MEM_OTHER, arrays * (size_t)e->share.params, 1);
    }
    bool *known = &e->shadowed[(size_t)i * arrays + (size_t)state];
    char *host = e->shadow + offset_of(e, i, state);
    if (!*known) {
        copy(e, host, device_of(e, i, state), i, state);
        nami_exec_finish_lane(e);
    }
    *known = true;
    return host;
}

nami_exec_slab nami_exec_array(nami_exec *e, int param, int state)
{
    for (int i = 0; i < e->share.params; i++) {
        const nami_share_param *h = &e->share.param[i];
        if (h->param != param)
            continue;
        const nami_slice part = held(e, i, state);
        bool sliced = e->blueprint.bound != NULL && state > 0;
        char *data =
            e->config.backend->host ? device_of(e, i, state) : shadow_of(e, i, state);
        return (nami_exec_slab){.data = (float *)(void *)data,
                                .from = part.from,
                                .count = part.count,
                                .owner = h->owner && (sliced || e->replica == 0)};
    }
    return (nami_exec_slab){0};
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
                 e->shadow + offset_of(e, i / arrays, i % arrays), i / arrays,
                 i % arrays);
    }
    nami_exec_pack(e);
    nami_exec_forget(e);
}
