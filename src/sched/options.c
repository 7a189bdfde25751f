/* SPDX-License-Identifier: MIT */
/* options.c - section [pipeline] of the deck, and the recipe it gives. */
#include "sched/options.h"

#include <string.h>

#include "base/memory.h"

static const char *const placements[] = {"preset", "linear",        "looping",
                                         "wave",   "bidirectional", NULL};
const char *const nami_weights_choices[] = {"preset",   "flush",   "stash",
                                            "vertical", "2bw",     "newest",
                                            "predict",  "grouped", NULL};
const char *const nami_split_choices[] = {"preset", "microbatch", "sample", NULL};

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
             "placements refuse it."},
    {.section = "pipeline",
     .key = "chunks",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(chunks),
     .fallback = "2",
     .minimum = 1,
     .maximum = NAMI_STAGES_MOST,
     .help = "Stages of each position (V) in the looping placement. Other placements "
             "refuse it."},
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
     .key = "zero",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(zero),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1,
     .help =
         "Stage of ZeRO. 1: each replica of a position keeps and updates a slice of "
         "the optimiser's state, so that it takes 1/D of the memory; gradients are "
         "scattered to their slices and updated weights are gathered. Bits, "
         "checkpoints and the bytes sent are those of 0. Needs a flush."},
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
     .choices = nami_weights_choices,
     .help = "Which version of the weights an action reads. flush: one, updated behind "
             "the whole step. The others update without waiting (asynchronous): stash "
             "(a backward reads what its forward read), vertical (all stages read what "
             "stage 0 read), 2bw (double-buffered), newest, predict, grouped."},
    {.section = "pipeline",
     .key = "split",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(split),
     .fallback = "preset",
     .choices = nami_split_choices,
     .help = "How a step is divided over the replicas of a position: whole "
             "micro-batches, or the samples of each micro-batch (sample), which takes "
             "any stage_replicas."},
    {.section = "pipeline",
     .key = "stage_replicas",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(stage_replicas),
     .fallback = "",
     .help =
         "Ranks of each position, as 4-3-1, instead of replicas; they add up to all "
         "ranks. Unequal ones need split = sample."},
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
     .help = "Micro-batches that each stage runs ahead in the order 1f1b, as 3-2-1-0; "
             "empty: S-1-s. They may not grow along the chain. Without a flush this is "
             "the delay of the stage's weights."},
    {.section = "pipeline",
     .key = "stage_recompute",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(stage_recompute),
     .fallback = "",
     .help =
         "Stages that keep only their inputs and run their forward again before the "
         "backward, while its gradient travels, as 1-1-0; never the last. Empty: "
         "none."},
    {.section = "pipeline",
     .key = "window",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(window),
     .fallback = "100",
     .minimum = 1,
     .maximum = INT32_MAX / 4,
     .help = "Without a flush: steps (updates) after which the pipeline drains, as it "
             "does at evaluations, checkpoints and the end. With a flush every step "
             "drains, and it is refused."},
};

const nami_option_table nami_pipeline_table = {.row = rows,
                                               .rows = sizeof rows / sizeof *rows};

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

/* P, from stage_replicas, which must use up the ranks. */
static nami_status derive_from_list(const nami_pipeline_options *o, int ranks,
                                    int64_t *positions)
{
    const nami_ints *list = &o->stage_replicas;
    nami_text sum = {0};
    int64_t total = 0;
    if (o->replicas != 1)
        return nami_fail(NAMI_EINPUT,
                         "pipeline.stage_replicas says the replicas of each position; "
                         "remove pipeline.replicas = %lld",
                         (long long)o->replicas);
    *positions = o->positions > 0 ? o->positions : list->count;
    if (list->count != *positions)
        return nami_fail(NAMI_EPLAN,
                         "pipeline.stage_replicas names %d positions, but "
                         "pipeline.positions = %lld",
                         list->count, (long long)*positions);
    for (int i = 0; i < list->count; i++) {
        total += list->item[i];
        if (i < 16)
            nami_text_add(&sum, "%s%d", i > 0 ? " + " : "", list->item[i]);
    }
    nami_status status =
        total == ranks
            ? NAMI_OK
            : nami_fail(
                  NAMI_EPLAN,
                  "pipeline.stage_replicas needs %s%s = %lld ranks, but there are "
                  "%d",
                  nami_text_get(&sum), list->count > 16 ? " + ..." : "",
                  (long long)total, ranks);
    nami_text_free(&sum);
    return status;
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
    if (*positions * d == ranks)
        return NAMI_OK;
    char *more = ranks % *positions == 0
                     ? nami_strf(" (pipeline.replicas = %lld takes them all)",
                                 ranks / (long long)*positions)
                     : nami_strdup("");
    nami_status status = nami_fail(
        NAMI_EPLAN,
        "%lld position%s x %lld replica%s need %lld rank%s, but there %s %d%s",
        (long long)*positions, nami_plural(*positions), (long long)d, nami_plural(d),
        (long long)*positions * d, nami_plural(*positions * d),
        ranks == 1 ? "is" : "are", ranks, more);
    nami_free(more);
    return status;
}

/* Units: micro-batches of an update and of the lists. */
static nami_status derive_units(const nami_pipeline_options *o, nami_recipe *r)
{
    int64_t d = 1;
    if (r->split == NAMI_SPLIT_MICROBATCH)
        d = r->stage_replicas.count > 0 ? r->stage_replicas.item[0] : o->replicas;
    if (d < 1 || o->microbatches % d != 0)
        return nami_fail(NAMI_EPLAN,
                         "%lld micro-batches cannot be shared by %lld replicas: %lld = "
                         "%lld x %lld + %lld",
                         (long long)o->microbatches, (long long)d,
                         (long long)o->microbatches, (long long)d,
                         (long long)(d < 1 ? 0 : o->microbatches / d),
                         (long long)(d < 1 ? o->microbatches : o->microbatches % d));
    r->microbatches = r->per_update = (int)(o->microbatches / d);
    if (nami_recipe_flushes(r))
        return NAMI_OK;
    if (o->window > INT32_MAX / 4 / r->per_update)
        return nami_fail(
            NAMI_EPLAN,
            "pipeline.window = %lld steps of %d micro-batches are %lld; at "
            "most %d fit in a window",
            (long long)o->window, r->per_update, (long long)(o->window * r->per_update),
            INT32_MAX / 4);
    r->microbatches = (int)(o->window * r->per_update);
    return NAMI_OK;
}

nami_status nami_recipe_from_options(const nami_pipeline_options *o, int ranks,
                                     nami_recipe *out)
{
    int64_t positions = 0;
    NAMI_TRY(o->stage_replicas.count > 0 ? derive_from_list(o, ranks, &positions)
                                         : derive_positions(o, ranks, &positions));
    nami_recipe r = {.positions = (int)positions,
                     .waves = 1,
                     .chunks = 1,
                     .slices = (int)o->slices,
                     .replicas = (int)o->replicas,
                     .recompute = o->recompute,
                     .zero = o->zero > 0,
                     .stage_replicas = o->stage_replicas,
                     .depth = o->depth,
                     .stage_recompute = o->stage_recompute};
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
    NAMI_TRY(nami_recipe_check_place(&r));
    NAMI_TRY(derive_units(o, &r));
    NAMI_TRY(nami_recipe_check(&r));
    NAMI_TRY(check_cuts(&o->cuts, nami_recipe_stages(&r)));
    *out = r;
    return NAMI_OK;
}
