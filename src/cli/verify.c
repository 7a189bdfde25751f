/* SPDX-License-Identifier: MIT */
/* verify.c - `nami verify`: prove a schedule before anybody runs it. */
#include <math.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/lists.h"
#include "sched/staleness.h"
#include "sched/version.h"

typedef struct verify_flags {
    nami_lists_flags lists;
    int64_t ahead;
    double memory;
    bool evaluate;
} verify_flags;

static double peak_of(const nami_schedule *s)
{
    double peak = 0.0, chunks = (double)s->place.stages / s->place.positions;
    for (int p = 0; p < s->place.positions; p++)
        peak =
            fmax(peak, (double)nami_schedule_held(s, p) / (chunks * s->recipe.slices));
    return peak;
}

static int64_t actions_of(const nami_schedule *s)
{
    int64_t actions = 0;
    for (int p = 0; p < s->place.positions; p++)
        actions += s->list[p].count;
    return actions;
}

/* What a window is proven to do with the weights; of the first stages. */
static void print_versions(const nami_schedule *s)
{
    enum { STAGES_MOST = 32 };
    const nami_recipe *r = &s->recipe;
    nami_text versions = {0}, forward = {0}, backward = {0};
    const int stages = s->place.stages < STAGES_MOST ? s->place.stages : STAGES_MOST;
    for (int i = 0; i < stages; i++) {
        nami_staleness d;
        nami_schedule_staleness(s, i, &d);
        int f = 0, b = 0;
        for (int k = 0; k < NAMI_WINDOW_PHASES; k++) {
            f = d.forward[k].most > f ? d.forward[k].most : f;
            b = d.backward[k].most > b ? d.backward[k].most : b;
        }
        nami_text_add(&versions, " %d", d.versions);
        nami_text_add(&forward, " %d", f);
        nami_text_add(&backward, " %d", b);
    }
    const char *more = stages < s->place.stages ? " ..." : "";
    nami_print("  updates       %d of each stage, each behind the sum of its %d "
               "micro-batches and of none of a later update\n",
               nami_recipe_updates(r), nami_recipe_group(r));
    nami_print("  weights       %s: each action finds what it must read; versions "
               "kept%s%s\n",
               nami_weights_name(r->weights), nami_text_get(&versions), more);
    nami_print("  delay         of forwards at most%s%s, of backwards%s%s updates\n",
               nami_text_get(&forward), more, nami_text_get(&backward), more);
    nami_text_free(&versions);
    nami_text_free(&forward);
    nami_text_free(&backward);
}

static void print_proof(const nami_schedule *s)
{
    const nami_recipe *r = &s->recipe;
    bool train = s->purpose == NAMI_PURPOSE_TRAIN;
    nami_print("VALID %s: %d positions, %d micro-batches, %d stages, %lld actions\n",
               r->name, s->place.positions, r->microbatches, s->place.stages,
               (long long)actions_of(s));
    nami_print("  complete      every stage runs each micro-batch %s\n",
               train ? "forward once and backward once" : "forward once");
    nami_print("  dependencies  every action stands behind all that it needs\n");
    nami_print(
        "  messages      %lld, each with one sender and one receiver of the same key\n",
        (long long)nami_schedule_messages(s));
    nami_print(
        "  no deadlock   the lists finish even when nothing is buffered on the way\n");
    if (!train)
        return;
    nami_print("  memory        at most %.6g M_a of activations on a position\n",
               peak_of(s));
    if (nami_versions_kept(s)) {
        print_versions(s);
        return;
    }
    nami_print("  updates       each stage once, behind the sum of its gradients, "
               "which is behind the "
               "last of them\n");
    nami_print("  weights       one version, read by all actions of the step\n");
}

static nami_status check_memory(const verify_flags *f, const nami_schedule *s)
{
    double peak = peak_of(s);
    if (f->memory > 0.0 && peak > f->memory)
        return nami_fail(
            NAMI_EPLAN,
            "a position holds %.6g M_a of activations, but --memory allows %.6g", peak,
            f->memory);
    return NAMI_OK;
}

/* Lists as given, then with all that lowering adds. */
static nami_status prove(const verify_flags *f, const nami_schedule *bare,
                         nami_schedule *full)
{
    NAMI_TRY(nami_schedule_validate(bare));
    NAMI_TRY(nami_schedule_lower(bare, (int)f->ahead, full));
    NAMI_TRY(nami_schedule_validate(full));
    return check_memory(f, full);
}

static const nami_option rows[] = {
    NAMI_LISTS_ROWS(verify_flags, lists),
    {.key = "ahead",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(verify_flags, ahead),
     .fallback = "1",
     .minimum = 0,
     .maximum = 1 << 20,
     .help = "compute actions that a receive is posted ahead"},
    {.key = "memory",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(verify_flags, memory),
     .fallback = "0",
     .minimum = 0.0,
     .maximum = 1e30,
     .help = "the most activations (in M_a) that a position may hold; 0: what the "
             "order promises"},
    {.key = "evaluate",
     .kind = NAMI_OPTION_BOOL,
     .offset = offsetof(verify_flags, evaluate),
     .fallback = "no",
     .help = "forwards only, as in an evaluation"},
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

static nami_status run_verify(const nami_call *call)
{
    const verify_flags *f = call->options;
    nami_recipe r;
    nami_schedule bare = {0}, full = {0};
    NAMI_TRY(nami_lists_recipe(&f->lists, &r));
    NAMI_TRY(nami_lists_check(&r, &table, f));
    nami_purpose purpose = f->evaluate ? NAMI_PURPOSE_EVALUATE : NAMI_PURPOSE_TRAIN;
    nami_status status = nami_schedule_generate(&r, purpose, &bare);
    if (status == NAMI_OK) {
        status = prove(f, &bare, &full);
        if (status == NAMI_OK) {
            print_proof(&full);
        } else {
            nami_print("INVALID %s: %s\n", r.name, nami_fail_text());
            nami_fail_clear();
        }
    }
    nami_schedule_free(&bare);
    nami_schedule_free(&full);
    return status;
}

const nami_command nami_cli_verify = {
    .name = "verify",
    .words = "",
    .summary = "prove a schedule: complete, free of deadlock, within its memory",
    .text = "Prints VALID and what was proven, or INVALID, the place and the reason "
            "with exit code 4.\n"
            "A file that cannot be read as lists ends with exit code 2.\n"
            "Example: nami verify --schedule file:lists.csv\n"
            "Example: nami verify --schedule hanayo --weights stash --positions 4 "
            "--microbatches 32\n",
    .options = &table,
    .size = sizeof(verify_flags),
    .most = 0,
    .run = run_verify,
};
