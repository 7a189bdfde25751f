/* SPDX-License-Identifier: MIT */
/* contents.h - checkpoints whose every number follows from the step, so that any can be checked. */
#ifndef NAMI_TESTS_CKPT_CONTENTS_H
#define NAMI_TESTS_CKPT_CONTENTS_H

#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "ckpt/ckpt.h"

enum { CONTENTS_ITEMS = 7 };

/* Element i of array k at a step. */
static inline float contents_value(int64_t step, int k, int64_t i)
{
    return (float)nami_uniform(nami_mix((uint64_t)step, (uint64_t)k), (uint64_t)i);
}

/* Arrays of all ranks [0..3], of length 0 and 1, and one that is `scale` times larger than the rest. */
static inline void contents_items(nami_ckpt_item item[CONTENTS_ITEMS], int64_t scale)
{
    static const nami_ckpt_item all[CONTENTS_ITEMS] = {
        {.group = "parameters", .name = "token.weight", .shape = {2, {32, 7}}},
        {.group = "parameters", .name = "block.0.bias", .shape = {1, {13}}},
        {.group = "parameters", .name = "scale", .shape = {0, {0}}},
        {.group = "parameters", .name = "block.1.none", .shape = {1, {0}}},
        {.group = "optimizer/m", .name = "token.weight", .shape = {2, {32, 7}}},
        {.group = "optimizer/v", .name = "token.weight", .shape = {3, {4, 8, 7}}},
        {.group = "parameters", .name = "large", .shape = {2, {1, 100}}},
    };
    memcpy(item, all, sizeof all);
    item[CONTENTS_ITEMS - 1].shape.dim[0] = scale;
}

/* Give item k the slab [from, from+count) with its values at `step`. */
static inline void contents_fill(nami_ckpt_item *item, int k, int64_t step,
                                 int64_t from, int64_t count)
{
    item->from = from;
    item->count = count;
    item->data = nami_alloc(NAMI_MEM_OTHER, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        item->data[i] = contents_value(step, k, from + i);
}

/* Slabs for saving: uneven ones, different for each array, rank 0 without any of the second. */
static inline void contents_slabs(nami_ckpt_item item[CONTENTS_ITEMS], int64_t step,
                                  int me, int ranks)
{
    for (int k = 0; k < CONTENTS_ITEMS; k++) {
        int64_t n = nami_shape_count(&item[k].shape);
        int r =
            k % 2 ? ranks - 1 - me : me; /* order of slabs against the order of ranks */
        int64_t from = n * r * r / (ranks * ranks),
                to = n * (r + 1) * (r + 1) / (ranks * ranks);
        contents_fill(&item[k], k, step, from, to - from);
    }
}

static inline void contents_free(nami_ckpt_item item[CONTENTS_ITEMS])
{
    for (int k = 0; k < CONTENTS_ITEMS; k++)
        nami_free(item[k].data);
}

static inline nami_ckpt_state contents_state(int64_t step)
{
    nami_ckpt_state s = {.step = step, .sample = 1000 * step, .seed = 7, .partials = 4};
    s.deck = nami_strf("[train]\nsteps = %lld\n", (long long)step);
    s.build = nami_strdup("nami 0");
    s.parent = nami_strdup("");
    s.data = nami_strdup("crc32:00000000 of 5 tokens");
    s.numbers = nami_strdup(step % 2 ? "gradients clipped by stages" : "");
    return s;
}

/* Whether a state is what contents_state makes. */
static inline bool contents_same_state(const nami_ckpt_state *a)
{
    nami_ckpt_state b = contents_state(a->step);
    bool same = a->sample == b.sample && a->seed == b.seed &&
                a->partials == b.partials && !strcmp(a->deck, b.deck) &&
                !strcmp(a->build, b.build) && !strcmp(a->parent, b.parent) &&
                !strcmp(a->data, b.data) && !strcmp(a->numbers, b.numbers);
    nami_ckpt_state_free(&b);
    return same;
}

/* Whether loaded slabs have the values of `step`. */
static inline bool contents_same(const nami_ckpt_item item[CONTENTS_ITEMS],
                                 int64_t step)
{
    for (int k = 0; k < CONTENTS_ITEMS; k++)
        for (int64_t i = 0; i < item[k].count; i++)
            if (item[k].data[i] != contents_value(step, k, item[k].from + i))
                return false;
    return true;
}

/* Room for slabs of a load: this rank's part of `size` when even, everything when `whole`. */
static inline void contents_room(nami_ckpt_item item[CONTENTS_ITEMS], int me, int ranks,
                                 bool whole)
{
    for (int k = 0; k < CONTENTS_ITEMS; k++) {
        int64_t n = nami_shape_count(&item[k].shape);
        int64_t from = whole ? 0 : n * me / ranks,
                to = whole ? n : n * (me + 1) / ranks;
        contents_fill(&item[k], k, -1, from, to - from);
    }
}

/* Save step `step` of the standard contents. Collective. */
static inline nami_status contents_save(nami_comm *c, const char *directory,
                                        int64_t keep, int64_t step, int64_t scale)
{
    nami_ckpt_item item[CONTENTS_ITEMS];
    nami_ckpt_state state = contents_state(step);
    contents_items(item, scale);
    contents_slabs(item, step, c ? nami_comm_rank(c) : 0, c ? nami_comm_size(c) : 1);
    nami_status status =
        nami_ckpt_save(c, directory, keep, &state, item, CONTENTS_ITEMS);
    contents_free(item);
    nami_ckpt_state_free(&state);
    return status;
}

/* Load `path` and look at everything in it; *step is its step. NAMI_EBUG when it loads and is wrong. Collective. */
static inline nami_status contents_load(nami_comm *c, const char *path, int64_t scale,
                                        bool whole, int64_t *step)
{
    nami_ckpt_item item[CONTENTS_ITEMS];
    nami_ckpt_state state;
    NAMI_TRY(nami_ckpt_state_read(c, path, &state));
    *step = state.step;
    bool same = contents_same_state(&state);
    nami_ckpt_state_free(&state);
    contents_items(item, scale);
    contents_room(item, c ? nami_comm_rank(c) : 0, c ? nami_comm_size(c) : 1, whole);
    nami_status status = nami_ckpt_load(c, path, item, CONTENTS_ITEMS);
    if (status == NAMI_OK && !(same && contents_same(item, *step)))
        status =
            nami_fail(NAMI_EBUG, "%s was loaded without a word and is wrong", path);
    contents_free(item);
    return status;
}

#endif
