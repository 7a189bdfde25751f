/* SPDX-License-Identifier: MIT */
/* generate.c - nami generate: text from a checkpoint. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/deck.h"
#include "data/bpe.h"
#include "train/job.h"
#include "train/sample.h"

typedef struct nami_generate_options {
    char *prompt, *vocabulary;
    int64_t tokens, top, seed, threads;
    double temperature;
} nami_generate_options;

/* What tokens mean: bytes, pieces of text, or nothing that is known. */
typedef struct language {
    bool bytes;
    nami_bpe *bpe; /* NULL without a rank file */
    int64_t tokens;
} language;

static void print_token(const language *l, int32_t token)
{
    int64_t bytes = 0;
    if (l->bytes)
        nami_print("%c", (int)token);
    else if (l->bpe && token < nami_bpe_tokens(l->bpe)) {
        const unsigned char *text = nami_bpe_token(l->bpe, token, &bytes);
        for (int64_t i = 0; i < bytes; i++)
            nami_print("%c", (int)text[i]);
    } else if (l->bpe && token == nami_bpe_tokens(l->bpe))
        nami_print("<|endoftext|>");
    else
        nami_print(l->bpe ? "<%d>" : "%d ", (int)token);
}

/* The prompt as tokens; of an empty one a new line, or what stands between texts. */
static int64_t read_prompt(const language *l, const char *prompt, int32_t *token)
{
    int64_t count = (int64_t)strlen(prompt);
    if (l->bpe)
        count = nami_bpe_text(l->bpe, prompt, token);
    for (int64_t i = 0; !l->bpe && i < count; i++)
        token[i] = (unsigned char)prompt[i];
    if (count > 0)
        return count;
    bool between = l->bpe && nami_bpe_tokens(l->bpe) < l->tokens;
    token[0] = between ? (int32_t)nami_bpe_tokens(l->bpe) : '\n';
    return 1;
}

static nami_status speak(nami_speaker *s, const nami_generate_options *o,
                         const language *l)
{
    size_t room = strlen(o->prompt) + (size_t)o->tokens + 1;
    int32_t *token = nami_alloc(NAMI_MEM_OTHER, room * sizeof *token);
    nami_choice choice = {
        .temperature = o->temperature, .top = o->top, .seed = (uint64_t)o->seed};
    nami_status status = NAMI_OK;
    int64_t count = read_prompt(l, o->prompt, token);
    nami_print("%s", o->prompt);
    for (int64_t i = 0; i < o->tokens && status == NAMI_OK; i++) {
        status = nami_speaker_next(s, &choice, token, count, i, &token[count]);
        if (status == NAMI_OK)
            print_token(l, token[count++]);
    }
    nami_print("\n");
    nami_free(token);
    return status;
}

/* The language of a model with l->tokens tokens, known or not. */
static nami_status learn(const nami_generate_options *o, language *l)
{
    l->bytes = l->tokens == 256 && !o->vocabulary[0];
    if (o->vocabulary[0])
        NAMI_TRY(nami_bpe_open(o->vocabulary, &l->bpe));
    if (l->bpe && nami_bpe_tokens(l->bpe) > l->tokens)
        return nami_fail(NAMI_EINPUT, "%s has %lld tokens, but the model only %lld",
                         o->vocabulary, (long long)nami_bpe_tokens(l->bpe),
                         (long long)l->tokens);
    if (!l->bytes && !l->bpe && o->prompt[0])
        return nami_fail(NAMI_EINPUT,
                         "--prompt is text, and this model has %lld tokens, not bytes; "
                         "give their rank file by --vocabulary, or leave it out",
                         (long long)l->tokens);
    return NAMI_OK;
}

#define FIELD(name) offsetof(nami_generate_options, name)
static const nami_option rows[] = {
    {.key = "prompt",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(prompt),
     .fallback = "",
     .help = "text to go on with"},
    {.key = "vocabulary",
     .kind = NAMI_OPTION_TEXT,
     .offset = FIELD(vocabulary),
     .fallback = "",
     .help =
         "rank file that the model's text was encoded with (nami import bpe): tokens "
         "are printed as text, and the prompt is encoded"},
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
    language l = {.tokens = settings.model.vocabulary};
    if (status == NAMI_OK)
        status = learn(o, &l);
    if (status == NAMI_OK)
        status = nami_speaker_open(call->word[0], &settings,
                                   nami_node_threads(NULL, o->threads), &speaker);
    if (status == NAMI_OK)
        status = speak(speaker, o, &l);
    nami_bpe_close(l.bpe);
    nami_speaker_close(speaker);
    nami_settings_release(&settings);
    nami_ckpt_state_free(&state);
    return status;
}

const nami_command nami_cli_generate = {
    .name = "generate",
    .words = "CHECKPOINT",
    .summary = "print text that a trained model writes",
    .text =
        "A model of 256 tokens writes bytes, others text with --vocabulary and else "
        "token numbers.\n"
        "Without a prompt it goes on from a new line, or from the end of a text.\n",
    .options = &table,
    .size = sizeof(nami_generate_options),
    .fewest = 1,
    .most = 1,
    .run = run_generate,
};
