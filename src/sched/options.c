/* SPDX-License-Identifier: MIT */
/* options.c - section [pipeline] of the deck, and the recipe it gives. */
#include "sched/options.h"

#include <string.h>

static const char *const placements[] = {"preset", "linear",        "looping",
                                         "wave",   "bidirectional", NULL};
static const char *const weights[] = {"preset", "flush",   "stash",   "vertical", "2bw",
                                      "newest", "predict", "grouped", NULL};
static const char *const splits[] = {"preset", "microbatch", "sample", NULL};

#define FIELD(name) offsetof(nami_pipeline_options, name)
static const nami_option rows[] = {
    {.section = "pipeline",
     .key = "schedule",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(schedule),
     .fallback = "hanayo",
     .help = "Named schedule (nami simulate --list names all), or file:PATH. It "
             "presets placement, order, weights and split."},
    {.section = "pipeline",
     .key = "positions",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(positions),
     .fallback = "0",
     .minimum = 0,
     .maximum = NAMI_STAGES_MOST,
     .help = "Positions of the pipeline (P); 0: ranks divided by replicas."},
    {.section = "pipeline",
     .key = "waves",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(waves),
     .fallback = "1",
     .minimum = 1,
     .maximum = NAMI_STAGES_MOST,
     .help = "Waves (W) of the wave placement: each position holds 2W stages. Other "
             "placements do not "
             "read it."},
    {.section = "pipeline",
     .key = "chunks",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(chunks),
     .fallback = "2",
     .minimum = 1,
     .maximum = NAMI_STAGES_MOST,
     .help = "Stages of each position (V) in the looping placement. Other placements "
             "do not read it."},
    {.section = "pipeline",
     .key = "slices",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(slices),
     .fallback = "1",
     .minimum = 1,
     .maximum = UINT16_MAX,
     .help =
         "Token slices of each sequence (K), for an order that slices, as "
         "terapipe; causal models only. K divides the length of a sample; losses equal "
         "those of whole samples to rounding, not bit for bit. Not with recompute."},
    {.section = "pipeline",
     .key = "microbatches",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(microbatches),
     .fallback = "1",
     .minimum = 1,
     .maximum = INT32_MAX / 4,
     .help = "Micro-batches of a step over all replicas (M); the replicas divide it."},
    {.section = "pipeline",
     .key = "replicas",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(replicas),
     .fallback = "1",
     .minimum = 1,
     .maximum = 1 << 20,
     .help = "Data-parallel replicas of the pipeline (D)."},
    {.section = "pipeline",
     .key = "recompute",
     .kind = NAMI_OPTION_BOOL,
     .offset = FIELD(recompute),
     .fallback = "no",
     .help = "Keep only the input of each block and run its forward again in the "
             "backward."},
    {.section = "pipeline",
     .key = "placement",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(placement),
     .fallback = "preset",
     .choices = placements,
     .help = "Which position holds which stage."},
    {.section = "pipeline",
     .key = "order",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(order),
     .fallback = "",
     .help = "When each forward and backward runs: the name of an order, as wave; "
             "empty: the schedule's."},
    {.section = "pipeline",
     .key = "weights",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(weights),
     .fallback = "preset",
     .choices = weights,
     .help = "Which version of the weights an action reads; only flush is supported so "
             "far."},
    {.section = "pipeline",
     .key = "split",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(split),
     .fallback = "preset",
     .choices = splits,
     .help = "How a mini-batch is divided over replicas; only microbatch is supported "
             "so far."},
    {.section = "pipeline",
     .key = "stage_replicas",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(stage_replicas),
     .fallback = "",
     .help = "Replicas of each stage, as 4-3-1; not supported yet."},
    {.section = "pipeline",
     .key = "cuts",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(cuts),
     .fallback = "",
     .help = "First block of each stage, starting with 0; empty: balanced by the "
             "partitioner."},
    {.section = "pipeline",
     .key = "depth",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(depth),
     .fallback = "",
     .help = "Warm-up mini-batches of each stage without flush; not supported yet."},
};

const nami_option_table nami_pipeline_table = {.row = rows,
                                               .rows = sizeof rows / sizeof *rows};

static nami_status check_later(const nami_pipeline_options *o)
{
    if (o->stage_replicas.count > 0)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.stage_replicas arrives with asynchronous schedules; use "
            "pipeline.replicas for equal replicas of every stage");
    if (o->depth.count > 0)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.depth arrives with asynchronous schedules; with a flush "
            "the order fixes the warm-up");
    return NAMI_OK;
}

/* Whether `cuts` are the first blocks of `stages` stages (0: not known yet). */
static nami_status check_cuts(const nami_ints *cuts, int stages)
{
    if (cuts->count == 0)
        return NAMI_OK;
    if (stages > 0 && cuts->count != stages)
        return nami_fail(NAMI_EPLAN,
                         "pipeline.cuts names %d stages, but the layout has %d",
                         cuts->count, stages);
    if (cuts->item[0] != 0)
        return nami_fail(
            NAMI_EINPUT,
            "pipeline.cuts starts with block %d; the first stage starts with 0",
            cuts->item[0]);
    for (int i = 1; i < cuts->count; i++) {
        if (cuts->item[i] <= cuts->item[i - 1])
            return nami_fail(NAMI_EINPUT,
                             "pipeline.cuts must increase, but stage %d starts with "
                             "block %d after %d",
                             i, cuts->item[i], cuts->item[i - 1]);
    }
    return NAMI_OK;
}

/* P, and the ranks it needs with D replicas. */
static nami_status derive_positions(const nami_pipeline_options *o, int ranks,
                                    int64_t *positions)
{
    int64_t d = o->replicas;
    if (o->positions == 0 && ranks % d != 0)
        return nami_fail(
            NAMI_EPLAN,
            "%d ranks cannot be shared by %lld replicas: %d = %lld x %lld + %lld",
            ranks, (long long)d, ranks, (long long)d, ranks / (long long)d,
            ranks % (long long)d);
    *positions = o->positions > 0 ? o->positions : ranks / d;
    if (*positions * d != ranks)
        return nami_fail(
            NAMI_EPLAN,
            "%lld positions x %lld replicas need %lld ranks, but there are %d",
            (long long)*positions, (long long)d, (long long)*positions * d, ranks);
    return NAMI_OK;
}

nami_status nami_recipe_from_options(const nami_pipeline_options *o, int ranks,
                                     nami_recipe *out)
{
    int64_t positions = 0;
    NAMI_TRY(check_later(o));
    NAMI_TRY(derive_positions(o, ranks, &positions));
    if (o->microbatches % o->replicas != 0)
        return nami_fail(NAMI_EPLAN,
                         "%lld micro-batches cannot be shared by %lld replicas: %lld = "
                         "%lld x %lld + %lld",
                         (long long)o->microbatches, (long long)o->replicas,
                         (long long)o->microbatches, (long long)o->replicas,
                         (long long)(o->microbatches / o->replicas),
                         (long long)(o->microbatches % o->replicas));
    nami_recipe r = {.positions = (int)positions,
                     .microbatches = (int)(o->microbatches / o->replicas),
                     .waves = 1,
                     .chunks = 1,
                     .slices = (int)o->slices,
                     .recompute = o->recompute};
    NAMI_TRY(nami_recipe_preset(&r, o->schedule));
    if (r.placement == NAMI_PLACE_FREE && (o->placement > 0 || *o->order != '\0'))
        return nami_fail(NAMI_EINPUT,
                         "%s says placement and order; remove pipeline.placement and "
                         "pipeline.order",
                         r.name);
    if (r.placement == NAMI_PLACE_FREE && o->slices > 1)
        return nami_fail(NAMI_EINPUT, "%s says the slices; remove pipeline.slices",
                         r.name);
    r.placement =
        o->placement > 0 ? (nami_placement_kind)(o->placement - 1) : r.placement;
    r.order = *o->order != '\0' ? o->order : r.order;
    r.weights = o->weights > 0 ? (nami_weights)(o->weights - 1) : r.weights;
    r.split = o->split > 0 ? (nami_split)(o->split - 1) : r.split;
    if (r.placement == NAMI_PLACE_WAVE)
        r.waves = (int)o->waves;
    if (r.placement == NAMI_PLACE_LOOPING)
        r.chunks = (int)o->chunks;
    NAMI_TRY(nami_recipe_check(&r));
    NAMI_TRY(check_cuts(&o->cuts, nami_recipe_stages(&r)));
    *out = r;
    return NAMI_OK;
}
