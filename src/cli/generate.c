/* SPDX-License-Identifier: MIT */
/* generate.c - nami generate: text from a checkpoint. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/deck.h"
#include "train/job.h"
#include "train/sample.h"

typedef struct nami_generate_options {
    char *prompt;
    int64_t tokens, top, seed, threads;
    double temperature;
} nami_generate_options;

/* Bytes are printed as they are; other tokens as numbers. */
static void print_token(int32_t token, bool bytes)
{
    if (bytes)
        nami_print("%c", (int)token);
    else
        nami_print("%d ", (int)token);
}

static nami_status speak(nami_speaker *s, const nami_generate_options *o, bool bytes)
{
    int64_t count = (int64_t)strlen(o->prompt);
    int32_t *token =
        nami_alloc(NAMI_MEM_OTHER, (size_t)(count + o->tokens + 1) * sizeof *token);
    nami_choice choice = {
        .temperature = o->temperature, .top = o->top, .seed = (uint64_t)o->seed};
    nami_status status = NAMI_OK;
    for (int64_t i = 0; i < count; i++)
        token[i] = (unsigned char)o->prompt[i];
    if (count == 0)
        token[count++] = '\n';
    nami_print("%s", o->prompt);
    for (int64_t i = 0; i < o->tokens && status == NAMI_OK; i++) {
        status = nami_speaker_next(s, &choice, token, count, i, &token[count]);
        if (status == NAMI_OK)
            print_token(token[count++], bytes);
    }
    nami_print("\n");
    nami_free(token);
    return status;
}

#define FIELD(name) offsetof(nami_generate_options, name)
static const nami_option rows[] = {
    {.key = "prompt",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(prompt),
     .fallback = "",
     .help = "text to go on with; empty: a new line"},
    {.key = "tokens",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(tokens),
     .fallback = "500",
     .minimum = 0,
     .maximum = 1e8,
     .help = "how many tokens follow"},
    {.key = "temperature",
     .kind = NAMI_OPTION_REAL,
     .offset = FIELD(temperature),
     .fallback = "0.8",
     .minimum = 0,
     .maximum = 100,
     .help = "1: as the model says; smaller: likelier tokens; 0: always the likeliest"},
    {.key = "top-k",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(top),
     .fallback = "0",
     .minimum = 0,
     .maximum = 1e9,
     .help = "choose among the K likeliest tokens; 0: all"},
    {.key = "seed",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(seed),
     .fallback = "1",
     .minimum = 0,
     .maximum = 9e15,
     .help = "key of the choices: the same seed gives the same text"},
    {.key = "threads",
     .kind = NAMI_OPTION_INT,
     .offset = FIELD(threads),
     .fallback = "0",
     .minimum = 0,
     .maximum = 4096,
     .help = "threads; 0: all cores"},
};
static const nami_option_table table = {.row = rows,
                                        .rows = sizeof rows / sizeof *rows};

/* Without chance there is nothing to choose. */
static nami_status check_flags(const nami_generate_options *o)
{
    static const char *const cold = "with --temperature 0";
    const bool warm = o->temperature > 0;
    const nami_option_reach reach[] = {{"top-k", warm, cold}, {"seed", warm, cold}};
    return nami_option_check_reach(&table, o, reach, 2);
}

static nami_status run_generate(const nami_call *call)
{
    const nami_generate_options *o = call->options;
    nami_ckpt_state state = {0};
    nami_settings settings = {0};
    nami_speaker *speaker = NULL;
    NAMI_TRY(check_flags(o));
    nami_status status = nami_ckpt_state_read(NULL, call->word[0], &state);
    if (status == NAMI_OK)
        status = nami_cli_deck_text(state.deck, call->word[0], &settings);
    bool bytes = settings.model.vocabulary == 256;
    if (status == NAMI_OK && !bytes && o->prompt[0])
        status =
            nami_fail(NAMI_EINPUT,
                      "--prompt is text, and this model has %lld tokens, not bytes; "
                      "leave it out",
                      (long long)settings.model.vocabulary);
    if (status == NAMI_OK)
        status = nami_speaker_open(call->word[0], &settings,
                                   nami_node_threads(NULL, o->threads), &speaker);
    if (status == NAMI_OK)
        status = speak(speaker, o, bytes);
    nami_speaker_close(speaker);
    nami_settings_release(&settings);
    nami_ckpt_state_free(&state);
    return status;
}

const nami_command nami_cli_generate = {
    .name = "generate",
    .words = "CHECKPOINT",
    .summary = "print text that a trained model writes",
    .text = "A model of 256 tokens writes bytes; others print token numbers.\n",
    .options = &table,
    .size = sizeof(nami_generate_options),
    .fewest = 1,
    .most = 1,
    .run = run_generate,
};
