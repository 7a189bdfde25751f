/* SPDX-License-Identifier: MIT */
/* options.c - section [plan] of the deck. */
#include "plan/options.h"

#include <string.h>

static const char *const methods[] = {"deck", "nami", "ashpipe", NULL};
static const char *const policies[] = {"stash", "2bw", "newest", NULL};

#define FIELD(name) offsetof(nami_plan_options, name)
static const nami_option rows[] = {
    {.section = "plan",
     .key = "method",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(method),
     .fallback = "deck",
     .choices = methods,
     .help = "What nami plan does: deck shows the deck's own layout; nami and ashpipe "
             "seek stage cuts and replicas for an asynchronous pipeline from "
             "plan.profile, by our model or by that of AshPipe's authors."},
    {.section = "plan",
     .key = "profile",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(profile),
     .fallback = "",
     .help = "Times and bytes of blocks and links, written by nami profile; see "
             "docs/formats.md."},
    {.section = "plan",
     .key = "weights",
     .kind = NAMI_OPTION_CHOICE,
     .offset = FIELD(weights),
     .fallback = "stash",
     .choices = policies,
     .help = "Weight policy that method nami counts versions for."},
    {.section = "plan",
     .key = "stages",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(stages),
     .fallback = "64",
     .minimum = 1,
     .maximum = 1024,
     .help = "Most stages of method nami; the first stage's gradients are stages - 1 "
             "updates late."},
    {.section = "plan",
     .key = "levels",
     .kind = NAMI_OPTION_INTS,
     .offset = FIELD(levels),
     .fallback = "",
     .minimum = 1,
     .maximum = 1 << 20,
     .help =
         "Ranks of a node, then nodes, as 4 2; empty: as the profile says, else one "
         "node."},
    {.section = "plan",
     .key = "bandwidth",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(bandwidth),
     .fallback = "",
     .unit = "bytes/s",
     .help = "Of the links of each level, as 300e9 25e9; empty: as measured in the "
             "profile."},
    {.section = "plan",
     .key = "connected",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(connected),
     .fallback = "",
     .help = "Whether each pair of a level has a link of its own, as yes no; empty: "
             "only the first level's. Read by method ashpipe."},
    {.section = "plan",
     .key = "memory",
     .kind = NAMI_OPTION_REAL,
     .offset = FIELD(memory),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e18,
     .unit = "bytes",
     .help = "Memory of a rank that a plan must fit; 0: run.memory, or any."},
    {.section = "plan",
     .key = "predicted",
     .kind = NAMI_OPTION_REAL,
     .offset = FIELD(predicted),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e9,
     .unit = "seconds",
     .help = "Step time that nami plan predicted; report.json sets the measured one "
             "beside it."},
};

const nami_option_table nami_plan_option_table = {.row = rows,
                                                  .rows = sizeof rows / sizeof *rows};

nami_weights nami_plan_weights(const nami_plan_options *o)
{
    static const nami_weights policy[] = {NAMI_WEIGHTS_STASH, NAMI_WEIGHTS_2BW,
                                          NAMI_WEIGHTS_NEWEST};
    return policy[o->weights];
}

nami_status nami_plan_check_keys(const nami_plan_options *o)
{
    const bool seeks = o->method != NAMI_PLAN_DECK, own = o->method == NAMI_PLAN_NAMI;
    static const char *const method = "without plan.method = nami or ashpipe";
    const nami_option_reach reach[] = {
        {"profile", seeks, method},
        {"weights", seeks, method},
        {"stages", own, "without plan.method = nami"},
        {"levels", seeks, method},
        {"bandwidth", seeks, method},
        {"connected", o->method == NAMI_PLAN_ASHPIPE, "without plan.method = ashpipe"},
        {"memory", seeks, method},
    };
    return nami_option_check_reach(&nami_plan_option_table, o, reach,
                                   (int)(sizeof reach / sizeof *reach));
}

/* The next word of a list, at most 31 characters, into word[32]; false at the end. */
static bool next_word(const char **text, char word[32])
{
    *text += strspn(*text, " \t,");
    size_t length = strcspn(*text, " \t,");
    size_t used = length < 31 ? length : 31;
    memcpy(word, *text, used);
    word[used] = '\0';
    *text += length;
    return length > 0;
}

static nami_status read_word(const char *key, const char *word, nami_plan_level *l)
{
    bool yes = strcmp(word, "yes") == 0;
    if (strcmp(key, "bandwidth") == 0) {
        if (nami_parse_real(word, &l->bandwidth) && l->bandwidth >= 1 &&
            l->bandwidth <= 1e18)
            return NAMI_OK;
        return nami_fail(NAMI_EINPUT,
                         "plan.bandwidth \"%s\": bytes/s from 1 to 1e18 are expected",
                         word);
    }
    if (!yes && strcmp(word, "no") != 0)
        return nami_fail(NAMI_EINPUT, "plan.connected \"%s\": yes or no is expected",
                         word);
    l->connected = yes;
    return NAMI_OK;
}

/* One word for each of `levels` levels; none at all leaves them as they are. */
static nami_status read_words(const char *key, const char *text, nami_plan_level *level,
                              int levels)
{
    char word[32];
    int count = 0;
    while (next_word(&text, word)) {
        if (count < levels)
            NAMI_TRY(read_word(key, word, &level[count]));
        count++;
    }
    if (count == 0 || count == levels)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT, "plan.%s has %d word%s, but there are %d levels", key,
                     count, nami_plural(count), levels);
}

/* Nodes of the profile, else one level. */
static void default_levels(const nami_chain *chain, int ranks, nami_plan_level *level,
                           int *levels)
{
    int node = chain->ranks_per_node;
    *levels = 1;
    level[0].ranks = ranks;
    if (node <= 0 || node >= ranks || ranks % node != 0)
        return;
    *levels = 2;
    level[0].ranks = node;
    level[1].ranks = ranks / node;
}

static nami_status sizes_of_levels(const nami_plan_options *o, const nami_chain *chain,
                                   int ranks, nami_plan_level *level, int *levels)
{
    int64_t product = 1;
    if (o->levels.count == 0 && ranks > 0) {
        default_levels(chain, ranks, level, levels);
        return NAMI_OK;
    }
    if (o->levels.count == 0 || o->levels.count > NAMI_LEVELS_MOST)
        return nami_fail(
            NAMI_EINPUT,
            "plan.levels names %d levels; 1 to %d are expected, or --ranks "
            "for one",
            o->levels.count, NAMI_LEVELS_MOST);
    *levels = o->levels.count;
    for (int l = 0; l < *levels; l++) {
        level[l].ranks = o->levels.item[l];
        product *= level[l].ranks;
        if (product > 1 << 20)
            return nami_fail(NAMI_EINPUT, "plan.levels: more than %d ranks", 1 << 20);
    }
    if (ranks == 0 || ranks == product)
        return NAMI_OK;
    return nami_fail(NAMI_EPLAN, "the levels have %lld ranks, but there are %d",
                     (long long)product, ranks);
}

nami_status nami_plan_levels(const nami_plan_options *o, const nami_chain *chain,
                             int ranks, nami_plan_level level[NAMI_LEVELS_MOST],
                             int *levels)
{
    memset(level, 0, NAMI_LEVELS_MOST * sizeof *level);
    NAMI_TRY(sizes_of_levels(o, chain, ranks, level, levels));
    level[0].connected = true;
    level[0].bandwidth = chain->inside.rate;
    for (int l = 1; l < *levels; l++)
        level[l].bandwidth = chain->across.rate;
    NAMI_TRY(read_words("bandwidth", o->bandwidth, level, *levels));
    NAMI_TRY(read_words("connected", o->connected, level, *levels));
    if (!(level[0].bandwidth > 0))
        return nami_fail(
            NAMI_EINPUT,
            "the profile has no link inside a node; give plan.bandwidth for %d level%s",
            *levels, nami_plural(*levels));
    for (int l = 1, all = level[0].ranks; l < *levels; l++) {
        all *= level[l].ranks;
        if (!(level[l].bandwidth > 0))
            return nami_fail(NAMI_EINPUT,
                             "the profile has no link across nodes, each of %d rank%s; "
                             "give plan.bandwidth for %d levels, or plan.levels = %d "
                             "for one node",
                             level[0].ranks, nami_plural(level[0].ranks), *levels, all);
    }
    return NAMI_OK;
}
