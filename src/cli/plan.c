/* SPDX-License-Identifier: MIT */
/* plan.c - nami plan: what each position holds and needs, and what the schedule costs; nothing is trained. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/advise.h"
#include "cli/deck.h"
#include "cli/partition.h"
#include "sim/sim.h"
#include "train/job.h"

typedef struct nami_plan_flags {
    int64_t ranks;
    bool advise;
    char *profile;
    nami_advise_flags advice;
} nami_plan_flags;

/* Ranks that the deck asks for. */
static nami_status ranks_of(const nami_settings *s, int64_t wish, int *ranks)
{
    int64_t own = s->pipeline.positions * s->pipeline.replicas;
    for (int i = 0; i < s->pipeline.stage_replicas.count; i++)
        own = (i ? own : 0) + s->pipeline.stage_replicas.item[i];
    if (wish == 0 && own == 0)
        return nami_fail(NAMI_EINPUT,
                         "pipeline.positions = 0 leaves the number of ranks open: "
                         "give --ranks N");
    *ranks = (int)(wish > 0 ? wish : own);
    return NAMI_OK;
}

/* Bubble when stages cost what their FLOPs say and messages nothing. */
static double predict(const nami_job *job)
{
    const nami_layout *l = &job->layout;
    size_t stages = (size_t)nami_layout_stages(l);
    double *forward = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *forward);
    double *backward = nami_calloc(NAMI_MEM_OTHER, stages, sizeof *backward);
    for (size_t s = 0; s < stages; s++) {
        for (int b = l->cut[s]; b < l->cut[s + 1]; b++)
            forward[s] += nami_model_block_flops(job->model, b, l->time);
        backward[s] = forward[s] * (l->recompute ? 1.5 : 1);
    }
    nami_cost cost = {.stage_f = forward, .stage_bi = backward, .stage_bw = backward};
    nami_prediction p = {0};
    double bubble = NAN;
    if (nami_simulate(&l->train, &cost, false, &p) == NAMI_OK)
        bubble = p.bubble;
    nami_prediction_free(&p);
    nami_free(backward);
    nami_free(forward);
    return bubble;
}

/* Blocks of a position, "0-3,9-11". */
static void print_blocks(const nami_layout *l, int position, nami_text *out)
{
    const nami_place *place = &l->train.place;
    for (int s = 0, first = 1; s < place->stages; s++) {
        bool here = false;
        for (int c = 0; c < place->copies; c++)
            here = here || nami_place_of(place, c, s) == position;
        if (!here)
            continue;
        nami_text_add(out, "%s%d", first ? "" : ",", l->cut[s]);
        if (l->cut[s + 1] - 1 > l->cut[s])
            nami_text_add(out, "-%d", l->cut[s + 1] - 1);
        first = 0;
    }
}

/* Purposes of memory that the table shows. */
static const nami_tag column[] = {
    NAMI_MEM_PARAMETER,  NAMI_MEM_PACKED,    NAMI_MEM_GRADIENT, NAMI_MEM_OPTIMIZER,
    NAMI_MEM_ACTIVATION, NAMI_MEM_TRANSIENT, NAMI_MEM_MESSAGE,  NAMI_MEM_DATA};

static void print_position(const nami_job *job, int p)
{
    const nami_budget *b = &job->budget[p];
    nami_text blocks = {0};
    print_blocks(&job->layout, p, &blocks);
    nami_print("%4d %-18s %12lld %9.3f %6d", p, nami_text_get(&blocks),
               (long long)b->parameters, b->flops * 1e-9, b->slots);
    for (size_t i = 0; i < sizeof column / sizeof *column; i++)
        nami_print(" %10.2f", (double)b->bytes[column[i]] / 1048576.0);
    nami_print(" %10.2f\n", (double)b->total / 1048576.0);
    nami_text_free(&blocks);
}

/* What the column of parameters holds several times without a flush. */
static void print_versions(const nami_layout *l)
{
    nami_text list = {0};
    if (nami_recipe_flushes(&l->recipe))
        return;
    for (int s = 0; s < nami_layout_stages(l); s++)
        nami_text_add(&list, "%s%d", s > 0 ? " " : "",
                      nami_schedule_versions(&l->train, 0, s));
    nami_print("versions  %s of the weights, by stage; a window has %d updates\n",
               nami_text_get(&list), l->window);
    nami_text_free(&list);
}

static void print_plan(const nami_job *job)
{
    const nami_layout *l = &job->layout;
    char limit[32], first[32], last[32], exact[256];
    nami_text shape = {0};
    int blocks = job->model->blocks;
    nami_print("model     %lld parameters, %d blocks: 0 %s .. %d %s\n",
               (long long)nami_model_count(job->model), blocks,
               nami_model_block_name(job->model, 0, first), blocks - 1,
               nami_model_block_name(job->model, blocks - 1, last));
    nami_leg_shape(l, &shape);
    (void)nami_layout_exact(l, exact);
    nami_print("schedule  %s: %s = %d rank%s, %d stage%s, %lld micro-batch%s of %lld ",
               l->recipe.name, nami_text_get(&shape), job->ranks,
               nami_plural(job->ranks), nami_layout_stages(l),
               nami_plural(nami_layout_stages(l)), (long long)(l->batch / l->micro),
               l->batch == l->micro ? "" : "es", (long long)l->micro);
    if (nami_model_takes_images(&job->model->options))
        nami_print("image%s", nami_plural(l->micro));
    else
        nami_print("sample%s of %lld tokens", nami_plural(l->micro),
                   (long long)l->time);
    nami_print(", %s%s%s\n", nami_dtype_name(l->act),
               l->recompute ? ", recomputing" : "",
               l->recipe.zero ? ", states in slices" : "");
    nami_text_free(&shape);
    nami_print("bubble    %.4f predicted: stages cost their FLOPs, messages nothing\n",
               predict(job));
    print_versions(l);
    nami_print("limit     %s a rank\n", nami_human_bytes(job->limit, limit));
    nami_print("exact     %s\n\n", exact);
    nami_print("%4s %-18s %12s %9s %6s", "pos.", "blocks", "parameters", "GFLOP",
               "slots");
    for (size_t i = 0; i < sizeof column / sizeof *column; i++)
        nami_print(" %10s", nami_memory_name(column[i]));
    nami_print(" %10s\n", "total MiB");
    for (int p = 0; p < l->recipe.positions; p++)
        print_position(job, p);
}

static const nami_option rows[] = {
    {.key = "ranks",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_plan_flags, ranks),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1 << 24,
     .help =
         "number of ranks; 0: pipeline.positions x pipeline.replicas, or the sum of "
         "pipeline.stage_replicas"},
    {.key = "advise",
     .kind = NAMI_OPTION_BOOL,
     .offset = offsetof(nami_plan_flags, advise),
     .fallback = "no",
     .help =
         "rank schedules, W or V, P x D, micro-batch sizes and recomputation for the "
         "deck's model by simulation, instead of showing the deck's own layout"},
    {.key = "profile",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_plan_flags, profile),
     .fallback = "",
     .help = "file of nami profile: seek stage cuts and replicas for an asynchronous "
             "pipeline, as section [plan] says; short for plan.profile=X, and "
             "plan.method=nami unless the deck says another"},
    NAMI_ADVISE_ROWS(nami_plan_flags, advice),
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

/* Flags that do nothing without others. */
static nami_status check_flags(const nami_plan_flags *f, bool seek)
{
    static const char *const advise = "without --advise";
    const nami_option_reach reach[] = {
        {"memory", f->advise || seek, "without --advise or --profile"},
        {"flops", f->advise, advise},
        {"latency", f->advise, advise},
        {"bandwidth", f->advise, advise},
        {"overhead", f->advise, advise},
        {"update-rate", f->advise, advise},
        {"top", f->advise, advise},
        {"json", f->advise, advise},
    };
    return nami_option_check_reach(&table, f, reach,
                                   (int)(sizeof reach / sizeof *reach));
}

/* The flags that stand for keys of [plan]; whether stages are sought. */
static nami_status seeks(const nami_plan_flags *f, nami_settings *s, bool *seek)
{
    nami_plan_options *o = &s->plan;
    if (f->profile[0]) {
        nami_free(o->profile);
        o->profile = nami_strdup(f->profile);
        if (o->method == NAMI_PLAN_DECK)
            o->method = NAMI_PLAN_NAMI;
    }
    *seek = o->method != NAMI_PLAN_DECK;
    if (*seek && f->advise)
        return nami_fail(NAMI_EINPUT,
                         "--advise ranks schedules with a flush and --profile or "
                         "plan.method seeks stages without; choose one");
    NAMI_TRY(check_flags(f, *seek));
    if (*seek && f->advice.memory > 0)
        o->memory = f->advice.memory;
    return *seek ? nami_plan_check_keys(o) : NAMI_OK;
}

/* Whether the budget of every position is known, also when it does not fit. */
static bool is_counted(const nami_job *job)
{
    for (int p = 0; job->budget && p < job->layout.recipe.positions; p++)
        if (job->budget[p].total == 0)
            return false;
    return job->budget != NULL;
}

/* What the deck itself says, or with --advise would better say. */
static nami_status show(const nami_plan_flags *flags, nami_settings *settings)
{
    nami_job job = {0};
    int ranks = 0;
    NAMI_TRY(nami_settings_resolve(NULL, settings));
    NAMI_TRY(ranks_of(settings, flags->ranks, &ranks));
    if (flags->advise)
        return nami_cli_advise(&flags->advice, settings, ranks);
    nami_status status = nami_job_plan(&job, NULL, settings, ranks, 0);
    bool planned = is_counted(&job);
    while (planned) {
        print_plan(&job);
        planned = nami_job_advance(&job);
        if (planned)
            nami_print("\n%s at %s\n", nami_leg_name(job.current),
                       settings->change[job.current - 1].at);
    }
    nami_job_close(&job);
    return status;
}

static nami_status run_plan(const nami_call *call)
{
    const nami_plan_flags *flags = call->options;
    nami_settings settings = {0};
    bool seek = false;
    nami_status status = nami_cli_deck_bare(call->word, call->words, &settings);
    if (status == NAMI_OK)
        status = seeks(flags, &settings, &seek);
    if (status == NAMI_OK)
        status = seek ? nami_cli_partition(&settings, (int)flags->ranks)
                      : show(flags, &settings);
    nami_settings_release(&settings);
    return status;
}

const nami_command nami_cli_plan = {
    .name = "plan",
    .words = "DECK [section.key=value ...]",
    .summary = "show stages, memory and predicted bubble of a deck; needs no mpiexec",
    .text =
        "Memory in MiB by purpose; slots are activations of micro-batches held at "
        "once; GFLOP of\n"
        "one micro-batch, forward. Exit code 4 when a position does not fit "
        "run.memory.\n"
        "With --advise only the deck's model, batch, sums and memory count, and "
        "pipeline.zero of its\n"
        "[pipeline].\n"
        "With --profile or plan.method only [plan], train.batch and run.memory count; "
        "--ranks and\n"
        "--memory go with it.\n",
    .options = &table,
    .size = sizeof(nami_plan_flags),
    .fewest = 1,
    .most = -1,
    .run = run_plan,
};
