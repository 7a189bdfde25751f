/* SPDX-License-Identifier: MIT */
/* ring.c - prove the versions of complete lists: go through each stage's ring as the lists fill and read it. */
#include "base/memory.h"
#include "sched/version.h"

typedef struct rings {
    const nami_schedule *s;
    nami_versions v;
    int *ring;      /* [stages] slots */
    int32_t *all;   /* the slots of all stages */
    int32_t **slot; /* [stages][ring] number that lies there, -1: none */
} rings;

static void open_rings(rings *r, const nami_schedule *s)
{
    size_t stages = (size_t)s->place.stages, slots = 0;
    *r = (rings){.s = s};
    nami_versions_open(&r->v, s);
    r->ring = nami_alloc(NAMI_MEM_OTHER, stages * sizeof *r->ring);
    nami_versions_count(s, r->ring);
    for (size_t i = 0; i < stages; i++)
        slots += (size_t)r->ring[i];
    r->all = nami_alloc(NAMI_MEM_OTHER, slots * sizeof *r->all);
    r->slot = nami_alloc(NAMI_MEM_OTHER, stages * sizeof *r->slot);
    for (size_t i = 0; i < slots; i++)
        r->all[i] = -1;
    slots = 0;
    for (size_t i = 0; i < stages; i++) {
        r->slot[i] = &r->all[slots];
        r->slot[i][0] = 0; /* what the drain left */
        slots += (size_t)r->ring[i];
    }
}

static void close_rings(rings *r)
{
    nami_versions_close(&r->v);
    nami_free(r->slot);
    nami_free(r->all);
    nami_free(r->ring);
}

/* What is wrong with the slot of `a`, which reads or makes version `number`; nothing when `why` stays empty. */
static void look(rings *r, nami_action a, int number, nami_text *why)
{
    const int ring = r->ring[a.stage], place = number % ring;
    int32_t *slot = r->slot[a.stage];
    if (a.version >= ring) {
        nami_text_add(why, "the weights of stage %d have only %d slots", a.stage, ring);
    } else if (a.kind == NAMI_UPDATE && a.version != place) {
        nami_text_add(why, "version %d lies in slot %d of %d", number, place, ring);
    } else if (a.kind == NAMI_UPDATE) {
        slot[place] = number;
    } else if (number > r->v.newest[a.stage]) {
        nami_versions_explain(&r->v, a, number, why);
    } else if (slot[a.version] != number) {
        nami_text_add(why, "it must read version %d, but slot %d holds version %d",
                      number, a.version, slot[a.version]);
    }
}

static nami_status prove_position(rings *r, int position)
{
    const nami_list *l = &r->s->list[position];
    nami_text why = {0}, word = {0};
    nami_status status = NAMI_OK;
    for (int64_t i = 0; i < l->count && status == NAMI_OK; i++) {
        nami_action a = l->item[i];
        int number = nami_versions_see(&r->v, a);
        if (number >= 0)
            look(r, a, number, &why);
        else if (a.version != 0)
            nami_text_add(&why, "it neither reads nor makes weights");
        if (why.length == 0)
            continue;
        nami_action_print(a, &word);
        status = nami_fail(NAMI_EPLAN, "position %d, entry %lld (%s): %s", position,
                           (long long)i, nami_text_get(&word), nami_text_get(&why));
    }
    nami_text_free(&why);
    nami_text_free(&word);
    return status;
}

nami_status nami_versions_prove(const nami_schedule *s)
{
    rings r;
    nami_status status = NAMI_OK;
    if (!nami_versions_kept(s))
        return NAMI_OK;
    open_rings(&r, s);
    for (int p = 0; p < s->place.positions && status == NAMI_OK; p++)
        status = prove_position(&r, p);
    close_rings(&r);
    return status;
}
