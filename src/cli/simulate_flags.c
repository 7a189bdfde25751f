/* SPDX-License-Identifier: MIT */
/* simulate_flags.c - the flags of `nami simulate`, those that do nothing beside others, and the lists they ask for. */
#include <string.h>

#include "cli/simulate.h"

#define FIELD(name) offsetof(nami_simulate_flags, name)
#define TIME(word, field, value, text)                                                 \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_REAL, .offset = FIELD(field),               \
        .fallback = (value), .minimum = 0.0, .maximum = 1e30, .help = (text)           \
    }
#define TEXT(word, field, value, text)                                                 \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_TEXT, .offset = FIELD(field),               \
        .fallback = (value), .help = (text)                                            \
    }
#define SWITCH(word, field, text)                                                      \
    {                                                                                  \
        .key = (word), .kind = NAMI_OPTION_BOOL, .offset = FIELD(field),               \
        .fallback = "no", .help = (text)                                               \
    }
static const nami_option rows[] = {
    NAMI_LISTS_ROWS(nami_simulate_flags, lists),
    TIME("tf", tf, "1",
         "forward of one micro-batch on one position's share of the model"),
    TIME("tb", tb, "2", "backward of the same"),
    TEXT("tbi", tbi, "", "backward with respect to the input; empty: half of --tb"),
    TEXT("tbw", tbw, "", "backward with respect to the weights; empty: half of --tb"),
    TEXT("tr", tr, "",
         "with --recompute: the forward run again in the backward; empty: --tf"),
    TEXT(
        "profile", profile, "",
        "file of measured times of layers or stages, instead of --tf and --tb: columns "
        "f, bi, bw (or b) and bytes, named in its first line"),
    TIME("latency", latency, "0", "time of a message between positions"),
    TEXT("bandwidth", bandwidth, "inf", "bytes a time unit of a message, or inf"),
    TIME("bytes", bytes, "0", "bytes of a message"),
    {.key = "samples",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(samples),
     .fallback = "0",
     .minimum = 0,
     .maximum = INT32_MAX,
     .help = "samples of a micro-batch, where they are split over ranks: decides how "
             "many messages there are; 0: very many"},
    {.key = "ranks-per-node",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(ranks_per_node),
     .fallback = "0",
     .minimum = 0,
     .maximum = NAMI_STAGES_MOST,
     .help = "positions that share a node; 0: all share one"},
    TEXT("node-latency", node_latency, "",
         "time of a message between nodes; empty: --latency"),
    TEXT("node-bandwidth", node_bandwidth, "",
         "bytes a time unit of a message between nodes, or inf; empty: --bandwidth"),
    SWITCH("apart", apart,
           "run pairs of actions, as dualpipe has them, one after the other, each "
           "when it can"),
    SWITCH("serial-links", serial,
           "a position sends one message after another to the same peer"),
    TIME("update", update, "0", "optimiser step of one position"),
    TIME("reduce", reduce, "0",
         "sum of one position's gradients, beside the computation"),
    SWITCH("reduce-alone", reduce_alone, "compute nothing beside such a sum"),
    SWITCH("recompute", recompute, "run each forward again in its backward"),
    SWITCH("evaluate", evaluate, "forwards only, as in an evaluation"),
    SWITCH("lowered", lowered, "with communication, REDUCE and UPDATE in the lists"),
    SWITCH("list", list, "print the named schedules and what they are"),
    SWITCH("json", json, "print one JSON object"),
    SWITCH("actions", actions,
           "print the lists in text form (2F0: stage, kind, micro-batch)"),
    SWITCH("timeline", timeline, "print the timeline in letters"),
    TEXT("csv", csv, "",
         "write the lists to this file, as torch.distributed.pipelining does"),
    TEXT("svg", svg, "", "write a picture of the timeline to this file"),
    TEXT("trace", trace, "", "write a Chrome or Perfetto trace to this file"),
    SWITCH("compare", compare,
           "all named schedules for the given P, M and costs, best first"),
    TIME("memory", memory, "0",
         "with --compare: the most activations (in M_a) that a position may hold; 0: "
         "any"),
    TIME("state", state, "0",
         "with --compare: what the weights of model/P take with gradients and "
         "optimiser, "
         "in M_a; counts against --memory for each copy"),
};
const nami_option_table nami_simulate_flag_table = {.row = rows,
                                                    .rows = sizeof rows / sizeof *rows};

/* A list of names needs nothing else. */
static nami_status check_list(const nami_simulate_flags *f)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const nami_option_reach reach = {rows[i].key, !strcmp(rows[i].key, "list"),
                                         "with --list"};
        NAMI_TRY(nami_option_check_reach(&nami_simulate_flag_table, f, &reach, 1));
    }
    return NAMI_OK;
}

/* Flags of one schedule, which a comparison varies or does not show. */
static nami_status check_compare(const nami_simulate_flags *f)
{
    static const char *const key[] = {"schedule",        "weights",  "split",  "depth",
                                      "stage-recompute", "waves",    "chunks", "slices",
                                      "evaluate",        "lowered",  "csv",    "svg",
                                      "actions",         "timeline", "trace"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const nami_option_reach reach = {key[i], !f->compare, "with --compare"};
        NAMI_TRY(nami_option_check_reach(&nami_simulate_flag_table, f, &reach, 1));
    }
    return NAMI_OK;
}

/* Flags of what an evaluation does not have. */
static nami_status check_evaluate(const nami_simulate_flags *f)
{
    static const char *const key[] = {"tb",     "tbi",    "tbw",       "tr",
                                      "update", "reduce", "recompute", "reduce-alone"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const nami_option_reach reach = {key[i], !f->evaluate, "with --evaluate"};
        NAMI_TRY(nami_option_check_reach(&nami_simulate_flag_table, f, &reach, 1));
    }
    return NAMI_OK;
}

/* Whether a message takes time. */
static bool links_cost(const nami_simulate_flags *f)
{
    return f->latency > 0 || strcmp(f->bandwidth, "inf") != 0 ||
           *f->node_latency != '\0' || *f->node_bandwidth != '\0';
}

nami_status nami_simulate_check(const nami_simulate_flags *f)
{
    const bool again = f->recompute || f->lists.stage_recompute.count > 0 ||
                       !strncmp(f->lists.schedule, "file:", 5);
    const nami_option_reach reach[] = {
        {"memory", f->compare, "without --compare"},
        {"state", f->compare, "without --compare"},
        {"tb", !*f->tbi || !*f->tbw, "with both --tbi and --tbw"},
        {"tr", again, "without --recompute or --stage-recompute"},
        {"ranks-per-node", *f->node_latency || *f->node_bandwidth,
         "without --node-latency or --node-bandwidth"},
        {"serial-links", links_cost(f), "without --latency or --bandwidth"},
        {"reduce-alone", f->reduce > 0, "without --reduce"},
        {"samples", !f->compare || f->lists.stage_replicas.count > 0,
         "without --stage-replicas"},
    };
    if (f->json && (f->actions || f->timeline))
        return nami_fail(NAMI_EINPUT, "--json prints one JSON object and nothing else; "
                                      "remove --actions and --timeline");
    NAMI_TRY(f->list ? check_list(f) : NAMI_OK);
    NAMI_TRY(check_compare(f));
    NAMI_TRY(check_evaluate(f));
    return nami_option_check_reach(&nami_simulate_flag_table, f, reach,
                                   (int)(sizeof reach / sizeof *reach));
}

nami_status nami_simulate_check_one(const nami_simulate_flags *f, const nami_recipe *r)
{
    const nami_option_reach samples = {"samples", r->split == NAMI_SPLIT_SAMPLE,
                                       "without --split sample"};
    NAMI_TRY(nami_option_check_reach(&nami_simulate_flag_table, f, &samples, 1));
    return nami_lists_check(r, &nami_simulate_flag_table, f);
}

static bool has_pairs(const nami_schedule *s)
{
    for (int p = 0; p < s->place.positions; p++)
        for (int64_t i = 0; i < s->list[p].count; i++)
            if (nami_list_pair(&s->list[p], i))
                return true;
    return false;
}

nami_status nami_simulate_check_pairs(const nami_simulate_flags *f,
                                      const nami_schedule *s)
{
    const nami_option_reach apart = {"apart", !f->apart || has_pairs(s),
                                     "without pairs of actions in the lists"};
    return nami_option_check_reach(&nami_simulate_flag_table, f, &apart, 1);
}

nami_status nami_simulate_lists(const nami_simulate_flags *f, const nami_recipe *r,
                                nami_schedule *out)
{
    nami_purpose purpose = f->evaluate ? NAMI_PURPOSE_EVALUATE : NAMI_PURPOSE_TRAIN;
    if (f->lowered || !nami_recipe_flushes(r) || f->reduce_alone || f->update > 0.0 ||
        f->reduce > 0.0)
        return nami_schedule_make(r, purpose, out);
    NAMI_TRY(nami_schedule_generate(r, purpose, out));
    return nami_schedule_validate(out);
}
