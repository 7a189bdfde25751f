/* SPDX-License-Identifier: MIT */
/* run.c - nami run: carry a deck out. */
#include "train/run.h"

#include "config.h"

#include "base/memory.h"
#include "cli/deck.h"

typedef struct nami_run_flags {
    char *max_time, *restart;
} nami_run_flags;

/* The deck's words with the short-hands as assignments behind them; the caller frees the array and the last two. */
static char **add_shorthands(const nami_call *call, int *words)
{
    const nami_run_flags *f = call->options;
    char **word = nami_calloc(NAMI_MEM_OTHER, (size_t)call->words + 2, sizeof *word);
    for (int i = 0; i < call->words; i++)
        word[i] = call->word[i];
    *words = call->words;
    if (f->max_time[0])
        word[(*words)++] = nami_strf("run.max_time=%s", f->max_time);
    if (f->restart[0])
        word[(*words)++] = nami_strf("run.restart=%s", f->restart);
    return word;
}

static nami_status read_deck(const nami_call *call, nami_settings *settings)
{
    int words = 0;
    char **word = add_shorthands(call, &words);
    nami_status status = nami_cli_deck(call->comm, word, words, settings);
    for (int i = call->words; i < words; i++)
        nami_free(word[i]);
    nami_free(word);
    return status;
}

static nami_status run_run(const nami_call *call)
{
    nami_settings settings = {0};
    nami_text deck = {0}, command = {0};
    nami_status status = read_deck(call, &settings);
    if (status == NAMI_OK) {
        nami_cli_resolved(&settings, &deck);
        for (int i = 0; i < call->argc; i++)
            nami_text_add(&command, "%s%s", i ? " " : "", call->argv[i]);
        nami_run_request request = {.comm = call->comm,
                                    .settings = &settings,
                                    .deck = nami_text_get(&deck),
                                    .command = nami_text_get(&command),
                                    .version = nami_cli_version,
                                    .build = NAMI_COMPILER
                                    "; " NAMI_CFLAGS "; HDF5 " NAMI_HDF5_FROM
                                    "; oneDNN " NAMI_ONEDNN_FROM};
        status = nami_train_run(&request);
    }
    nami_text_free(&command);
    nami_text_free(&deck);
    nami_settings_release(&settings);
    return status;
}

static const nami_option rows[] = {
    {.key = "max-time",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_run_flags, max_time),
     .fallback = "",
     .help = "short for run.max_time=X: stop with a checkpoint before X has passed"},
    {.key = "restart",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(nami_run_flags, restart),
     .fallback = "",
     .help = "short for run.restart=X: no refuses a directory that is not empty"},
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

const nami_command nami_cli_run = {
    .name = "run",
    .words = "DECK [section.key=value ...]",
    .summary = "train as the deck says, or go on where the last run stopped",
    .text = "Start it with mpiexec -n RANKS. Files stop and save in run.directory, "
            "SIGTERM and\n"
            "SIGUSR1 are obeyed at the end of a step. nami-deck(5) lists the keys.\n",
    .options = &table,
    .size = sizeof(nami_run_flags),
    .fewest = 1,
    .most = -1,
    .needs_mpi = true,
    .run = run_run,
};
