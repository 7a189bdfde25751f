/* SPDX-License-Identifier: MIT */
/* list.c - the tables of orders and of named schedules: one line each. */
#include <string.h>

#include "base/memory.h"
#include "sched/order.h"

static const nami_order *const orders[] = {
    &nami_order_filldrain, &nami_order_1f1b,       &nami_order_interleaved,
    &nami_order_wave,      &nami_order_wave_paper, &nami_order_zb_h1,
    &nami_order_zb_h2,     &nami_order_zb_v,       &nami_order_wave_zb,
    &nami_order_gems,      &nami_order_chimera,    &nami_order_chimera_doubling,
    &nami_order_dualpipe,  &nami_order_dualpipev,  &nami_order_terapipe,
    &nami_order_wpipe,     &nami_order_template,
};

/* clang-format off */
#define FLUSH NAMI_WEIGHTS_FLUSH, NAMI_SPLIT_MICROBATCH
/* Those with a flush come first. */
static const nami_preset presets[] = {
    {"gpipe", "all forwards, then all backwards", NAMI_PLACE_LINEAR, "fill-drain", FLUSH},
    {"dapple", "one forward, one backward (1F1B), with a flush", NAMI_PLACE_LINEAR, "1f1b", FLUSH},
    {"interleaved", "1F1B over V chunks a position", NAMI_PLACE_LOOPING, "interleaved", FLUSH},
    {"hanayo", "W waves through 2W chunks a position", NAMI_PLACE_WAVE, "wave", FLUSH},
    {"hanayo-paper", "the waves as their paper draws them", NAMI_PLACE_WAVE, "wave-paper", FLUSH},
    {"hanayo-zb", "W waves with a split backward: the least idle time", NAMI_PLACE_WAVE, "wave-zb", FLUSH},
    {"zb-h1", "1F1B with a split backward, P in flight", NAMI_PLACE_LINEAR, "zb-h1", FLUSH},
    {"zb-h2", "1F1B with a split backward, 2P-1 in flight", NAMI_PLACE_LINEAR, "zb-h2", FLUSH},
    {"zb-v", "one wave with a split backward, for M >= 2P-1", NAMI_PLACE_WAVE, "zb-v", FLUSH},
    {"gems", "two copies of the model take turns", NAMI_PLACE_BIDIRECTIONAL, "gems", FLUSH},
    {"chimera", "two copies in opposite directions, even P", NAMI_PLACE_BIDIRECTIONAL, "chimera", FLUSH},
    {"chimera-doubling", "the same with forwards in pairs", NAMI_PLACE_BIDIRECTIONAL, "chimera-doubling", FLUSH},
    {"dualpipe", "two copies, forwards paired with backwards; even P and M, M >= 2P", NAMI_PLACE_BIDIRECTIONAL, "dualpipe", FLUSH},
    {"dualpipev", "one wave, forwards paired with backwards; M >= 2P", NAMI_PLACE_WAVE, "dualpipev", FLUSH},
    {"terapipe", "K token slices of each micro-batch, causal models", NAMI_PLACE_LINEAR, "terapipe", FLUSH},
    {"pipedream", "1F1B without a flush, each backward with the weights of its forward", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_STASH, NAMI_SPLIT_MICROBATCH},
    {"pipedream-vertical", "the same, every stage with the weights that stage 0 read", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_VERTICAL, NAMI_SPLIT_MICROBATCH},
    {"pipedream-2bw", "the same with two versions, updates of M >= P micro-batches", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_2BW, NAMI_SPLIT_MICROBATCH},
    {"pipemare", "1F1B without a flush, always the newest weights", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_NEWEST, NAMI_SPLIT_MICROBATCH},
    {"spectrain", "1F1B without a flush, forwards with weights predicted for their update", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_PREDICT, NAMI_SPLIT_MICROBATCH},
    {"xpipe", "the same, named for predictions along the direction of Adam", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_PREDICT, NAMI_SPLIT_MICROBATCH},
    {"wpipe", "two groups of stages updated in turn, two versions and one", NAMI_PLACE_LOOPING, "wpipe", NAMI_WEIGHTS_GROUPED, NAMI_SPLIT_MICROBATCH},
    {"ashpipe", "1F1B without a flush, as many ranks a stage as it needs, samples split over them", NAMI_PLACE_LINEAR, "1f1b", NAMI_WEIGHTS_STASH, NAMI_SPLIT_SAMPLE},
};
/* clang-format on */

int nami_orders(void)
{
    return (int)(sizeof orders / sizeof *orders);
}

const nami_order *nami_order_at(int index)
{
    return orders[index];
}

const nami_order *nami_order_find(const char *name)
{
    for (int i = 0; i < nami_orders(); i++) {
        if (strcmp(orders[i]->name, name) == 0)
            return orders[i];
    }
    return NULL;
}

int nami_presets(void)
{
    return (int)(sizeof presets / sizeof *presets);
}

int nami_presets_with_flush(void)
{
    int count = 0;
    while (count < nami_presets() && presets[count].weights == NAMI_WEIGHTS_FLUSH)
        count++;
    return count;
}

const nami_preset *nami_preset_at(int i)
{
    return &presets[i];
}

const nami_preset *nami_preset_find(const char *name)
{
    for (int i = 0; i < nami_presets(); i++) {
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    }
    return NULL;
}

/* Fail with the schedules that exist, the nearest one first. */
static nami_status unknown(const char *name)
{
    enum { COUNT = sizeof presets / sizeof *presets };
    const char *names[COUNT];
    nami_text all = {0};
    for (int i = 0; i < COUNT; i++) {
        names[i] = presets[i].name;
        nami_text_add(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    int near = nami_nearest(name, names, COUNT);
    nami_status status =
        near >= 0
            ? nami_fail(NAMI_EINPUT, "unknown schedule \"%.60s\"; did you mean \"%s\"?",
                        name, names[near])
            : nami_fail(NAMI_EINPUT,
                        "unknown schedule \"%.60s\"; known are %s, and file:PATH", name,
                        nami_text_get(&all));
    nami_text_free(&all);
    return status;
}

nami_status nami_recipe_preset(nami_recipe *r, const char *name)
{
    if (strncmp(name, "file:", 5) == 0) {
        r->name = name;
        r->placement = NAMI_PLACE_FREE;
        r->order = "file";
        return NAMI_OK;
    }
    const nami_preset *preset = nami_preset_find(name);
    if (preset == NULL)
        return unknown(name);
    r->name = preset->name;
    r->placement = preset->placement;
    r->order = preset->order;
    r->weights = preset->weights;
    r->split = preset->split;
    return NAMI_OK;
}
