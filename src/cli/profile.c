/* SPDX-License-Identifier: MIT */
/* profile.c - nami profile: measure blocks and links, print them, write them as a file for nami plan. */
#include <math.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/deck.h"
#include "plan/measure.h"
#include "train/job.h"

typedef struct nami_profile_flags {
    char *output;
    int64_t samples, warm, repeats;
} nami_profile_flags;

static void print_link(const char *name, const nami_chain_link *l, const char *missing)
{
    if (l->rate > 0)
        nami_print("%-10s %10.4g us %10.4g GB/s, sums of 2 replicas %10.4g GB/s\n",
                   name, l->latency * 1e6, l->rate * 1e-9, l->reduce * 1e-9);
    else
        nami_print("%-10s not measured: %s\n", name, missing);
}

static void print_chain(const nami_chain *c)
{
    double sum[3] = {0};
    nami_print("%-5s %-20s %12s %12s %12s %12s %12s %12s\n", "block", "", "forward ms",
               "input ms", "weight ms", "output MiB", "kept MiB", "param. MiB");
    for (int i = 0; i < c->blocks; i++) {
        const nami_chain_block *b = &c->block[i];
        nami_print("%5d %-20.20s %12.4f %12.4f %12.4f %12.3f %12.3f %12.3f\n", i,
                   b->name, b->forward * 1e3, b->input * 1e3, b->weight * 1e3,
                   b->output / 1048576.0, b->kept / 1048576.0,
                   b->parameter / 1048576.0);
        sum[0] += b->forward;
        sum[1] += b->input;
        sum[2] += b->weight;
    }
    nami_print("%5s %-20s %12.4f %12.4f %12.4f\n\n", "", "sum", sum[0] * 1e3,
               sum[1] * 1e3, sum[2] * 1e3);
    print_link("inside", &c->inside, "no two ranks share a node");
    print_link("across", &c->across, "all ranks are on one node");
}

/* A plan does not know of weights that blocks share. */
static void warn_shared(const nami_model *m)
{
    for (int i = 0; i < m->params; i++)
        if (m->param[i].uses > 1)
            nami_log(NAMI_WARNING,
                     "%s is shared by blocks: a plan that cuts between them cannot be "
                     "trained without a flush; use model.tied = no",
                     m->param[i].name);
}

static nami_status tell(const nami_profile_flags *f, const nami_settings *s, int ranks,
                        const nami_chain *c)
{
    nami_text text = {0};
    nami_print("%d ranks, backend %s, %s, %lld samples a pass\n\n", ranks,
               nami_settings_backend(s), nami_dtype_name(nami_settings_dtype(s)),
               (long long)c->samples);
    print_chain(c);
    nami_text_add(&text, "# nami profile: %d ranks, backend %s, %s\n", ranks,
                  nami_settings_backend(s), nami_dtype_name(nami_settings_dtype(s)));
    nami_chain_write(c, &text);
    nami_status status = nami_file_replace(f->output, text.data, text.length);
    if (status == NAMI_OK)
        nami_print("\nwritten to %s\n", f->output);
    nami_text_free(&text);
    return status;
}

/* A message as large as most are: the mean of the blocks' outputs, within reason. */
static size_t typical(const nami_chain *c)
{
    double sum = 0;
    for (int i = 0; i < c->blocks; i++)
        sum += c->block[i].output / c->blocks;
    return (size_t)fmin(fmax(sum, 1 << 16), 1 << 26) / 64 * 64;
}

static nami_status measure(nami_comm *c, const nami_profile_flags *f,
                           const nami_settings *s, nami_measure_request *r)
{
    nami_chain chain = {0};
    nami_comm_phase(c, "measuring", s->run.stall_seconds);
    nami_status status = nami_measure_blocks(r, &chain);
    if (status == NAMI_OK)
        status = nami_measure_links(c, typical(&chain), r->repeats, &chain);
    if (status == NAMI_OK && nami_comm_rank(c) == 0)
        status = tell(f, s, nami_comm_size(c), &chain);
    if (status == NAMI_OK && nami_comm_rank(c) == 0)
        warn_shared(r->model);
    nami_chain_free(&chain);
    return nami_agree(c, status);
}

/* Samples of a pass: the deck's micro-batch. */
static int64_t samples_of(const nami_profile_flags *f, const nami_settings *s)
{
    int64_t micro = s->train.batch / s->pipeline.microbatches;
    return f->samples > 0 ? f->samples : micro > 0 ? micro : 1;
}

static nami_status profile(nami_comm *c, const nami_profile_flags *f,
                           const nami_settings *s)
{
    nami_model *model = NULL;
    nami_backend *backend = NULL;
    const nami_backend_config config = {.threads =
                                            nami_node_threads(c, s->train.threads),
                                        .act = nami_settings_dtype(s),
                                        .number = (uint64_t)nami_comm_rank(c),
                                        .emu = &s->emu};
    nami_comm_threads(c, config.threads);
    nami_status status = nami_model_new(&s->model, s->train.dropout, &model);
    if (status == NAMI_OK)
        status = nami_backend_open_with(nami_settings_backend(s), &config, &backend);
    nami_measure_request r = {.comm = c,
                              .model = model,
                              .backend = backend,
                              .act = nami_settings_dtype(s),
                              .samples = samples_of(f, s),
                              .warm = (int)f->warm,
                              .repeats = (int)f->repeats};
    status = nami_agree(c, status);
    if (status == NAMI_OK)
        status = measure(c, f, s, &r);
    if (backend)
        nami_backend_close(backend);
    nami_model_free(model);
    return status;
}

static nami_status run_profile(const nami_call *call)
{
    nami_settings settings = {0};
    nami_status status = nami_cli_deck(call->comm, call->word, call->words, &settings);
    if (status == NAMI_OK)
        status = profile(call->comm, call->options, &settings);
    nami_settings_release(&settings);
    return status;
}

static const nami_option rows[] = {
    {.key = "output",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_profile_flags, output),
     .fallback = "profile.csv",
     .help = "file to write, for plan.profile"},
    {.key = "samples",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_profile_flags, samples),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e9,
     .help = "samples of a pass; 0: the deck's micro-batch"},
    {.key = "warm",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_profile_flags, warm),
     .fallback = "2",
     .minimum = 0,
     .maximum = 1000000,
     .help = "passes before the first that counts"},
    {.key = "repeats",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_profile_flags, repeats),
     .fallback = "7",
     .minimum = 1,
     .maximum = 1000000,
     .help = "passes of which the median counts"},
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

const nami_command nami_cli_profile = {
    .name = "profile",
    .words = "DECK [section.key=value ...]",
    .summary =
        "measure blocks of a deck's model and links between ranks, for nami plan",
    .text =
        "Start it with mpiexec on the ranks that will train. Every block's forward, "
        "backward-input and\n"
        "backward-weight run on the deck's backend on all ranks at once; bytes are "
        "those of the plan.\n"
        "Links: a message and a sum between two ranks of a node, and of two nodes, "
        "from host memory.\n",
    .options = &table,
    .size = sizeof(nami_profile_flags),
    .fewest = 1,
    .most = -1,
    .needs_mpi = true,
    .run = run_profile,
};
