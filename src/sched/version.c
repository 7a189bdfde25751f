/* SPDX-License-Identifier: MIT */
/* version.c - weight versions: each exists when it is read, as the policy promises. */
#include "sched/version.h"

#include "base/memory.h"

enum { VERSIONS = 256 };

void nami_versions_open(nami_versions *v, const nami_schedule *s)
{
    *v = (nami_versions){0};
    if (s->recipe.weights == NAMI_WEIGHTS_FLUSH)
        return;
    size_t stages = (size_t)s->place.stages, copies = (size_t)s->place.copies;
    size_t units = (size_t)s->recipe.microbatches * (size_t)s->recipe.slices;
    v->made = nami_calloc(NAMI_MEM_OTHER, copies * stages, VERSIONS);
    v->forward = nami_calloc(NAMI_MEM_OTHER, stages * units, 1);
    for (size_t i = 0; i < copies * stages; i++)
        v->made[i * VERSIONS] = 1;
}

void nami_versions_close(nami_versions *v)
{
    nami_free(v->made);
    nami_free(v->forward);
    *v = (nami_versions){0};
}

const char *nami_versions_see(nami_versions *v, const nami_schedule *s, nami_action a)
{
    const nami_semantics *is = nami_semantics_of(a.kind);
    nami_weights policy = s->recipe.weights;
    if (policy == NAMI_WEIGHTS_FLUSH)
        return a.version == 0 ? NULL
                              : "with a flush there is only version 0 of the weights";
    uint8_t *made = &v->made[((int64_t)a.copy * s->place.stages + a.stage) * VERSIONS];
    if (a.kind == NAMI_UPDATE)
        made[a.version] = 1;
    if (!is->reads_weights)
        return NULL;
    if (!made[a.version])
        return "this version of the weights has not been made";
    uint8_t *forward =
        &v->forward[((int64_t)a.stage * s->recipe.microbatches + a.unit) *
                        s->recipe.slices +
                    a.slice];
    if (a.kind == NAMI_F)
        *forward = a.version;
    else if (*forward != a.version && policy != NAMI_WEIGHTS_NEWEST &&
             policy != NAMI_WEIGHTS_PREDICT)
        return "the backward must read the version that its forward read";
    return NULL;
}
