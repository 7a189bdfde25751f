/* SPDX-License-Identifier: MIT */
/* baseline.c - nami baseline: the loss of an n-gram model, to compare a network's with. */
#include "cli/cli.h"
#include "data/data.h"
#include "data/ngram.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

#define SHARE 0.9 /* of a set without --train that is trained on */

typedef struct baseline_options {
    char *order, *train;
    double memory;
    bool json;
} baseline_options;

static const nami_option rows[] = {
    {.key = "order",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(baseline_options, order),
     .fallback = "0-5",
     .unit = "tokens",
     .help = "How many tokens of context predict the next: a number or a range, 0-5."},
    {.key = "train",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(baseline_options, train),
     .fallback = "",
     .help =
         "Data set to count in; none: the first 90 % of DATA, and the loss is that of "
         "its last 10 %."},
    {.key = "memory",
     .kind = NAMI_OPTION_REAL,
     .offset = offsetof(baseline_options, memory),
     .fallback = "4",
     .minimum = 0.001,
     .maximum = 1024,
     .unit = "GiB",
     .help = "Most memory the counts may take."},
    {.key = "json",
     .kind = NAMI_OPTION_BOOL,
     .offset = offsetof(baseline_options, json),
     .fallback = "no",
     .help = "Print one JSON object instead of a table."},
};

static const nami_option_table table = {rows, sizeof rows / sizeof *rows};

/* What is counted, what is evaluated, and the outcome. */
typedef struct baseline {
    int low, high;    /* orders printed */
    nami_data *train; /* may be the same as data */
    nami_data *data;
    const char *train_path, *path;
    int64_t train_tokens;              /* the first of train */
    int64_t from, to;                  /* tokens of data */
    double loss[NAMI_NGRAM_ORDER + 1]; /* nats per token */
} baseline;

static nami_status parse_order(const char *text, int *low, int *high)
{
    char *first = nami_strdup(text), *dash = strchr(first, '-');
    int64_t a = -1, b = -1;
    if (dash)
        *dash = '\0';
    bool good =
        nami_parse_int(first, &a) && nami_parse_int(dash ? dash + 1 : first, &b);
    nami_free(first);
    if (!good || a < 0 || b < a || b > NAMI_NGRAM_ORDER)
        return nami_fail(NAMI_EINPUT,
                         "--order %s: expected a number or a range within 0 to %d",
                         text, NAMI_NGRAM_ORDER);
    *low = (int)a;
    *high = (int)b;
    return NAMI_OK;
}

static nami_status open_sets(baseline *b)
{
    NAMI_TRY(nami_data_open(NULL, b->path, 1, 0, &b->data));
    b->to = nami_data_tokens(b->data);
    if (!*b->train_path) {
        b->train = b->data;
        b->train_path = b->path;
        b->from = b->train_tokens = (int64_t)((double)b->to * SHARE);
        return NAMI_OK;
    }
    NAMI_TRY(nami_data_open(NULL, b->train_path, 1, 0, &b->train));
    b->train_tokens = nami_data_tokens(b->train);
    if (strcmp(nami_data_kind(b->train), nami_data_kind(b->data)) != 0 ||
        nami_data_vocabulary(b->train) != nami_data_vocabulary(b->data))
        return nami_fail(
            NAMI_EINPUT, "%s and %s have different tokens (%s of %lld, %s of %lld)",
            b->train_path, b->path, nami_data_kind(b->train),
            (long long)nami_data_vocabulary(b->train), nami_data_kind(b->data),
            (long long)nami_data_vocabulary(b->data));
    if (!strcmp(nami_data_identity(b->train), nami_data_identity(b->data)))
        nami_log(NAMI_WARNING,
                 "the model is evaluated on the tokens it was trained on");
    return NAMI_OK;
}

static nami_status count_and_score(baseline *b, size_t limit)
{
    nami_ngram *g = nami_ngram_create(b->high, nami_data_vocabulary(b->data), limit);
    nami_status status = nami_ngram_train_on(g, b->train, 0, b->train_tokens);
    if (status == NAMI_OK)
        status = nami_ngram_score_on(g, b->data, b->from, b->to, b->loss);
    nami_ngram_free(g);
    for (int k = 0; k <= b->high; k++)
        b->loss[k] /= (double)(b->to - b->from);
    return status;
}

static int best_order(const baseline *b)
{
    int best = b->low;
    for (int k = b->low + 1; k <= b->high; k++)
        if (b->loss[k] < b->loss[best])
            best = k;
    return best;
}

static void print_table(const baseline *b)
{
    nami_print(
        "counted: tokens 0 to %lld of %s\nevaluated: tokens %lld to %lld of %s\n",
        (long long)b->train_tokens, b->train_path, (long long)b->from, (long long)b->to,
        b->path);
    nami_print("order  nats/token  bits/token\n");
    for (int k = b->low; k <= b->high; k++)
        nami_print("%5d  %10.4f  %10.4f%s\n", k, b->loss[k], b->loss[k] / log(2.0),
                   k == best_order(b) && b->high > b->low ? "  best" : "");
}

static void print_json(const baseline *b)
{
    nami_text t = {0};
    nami_text_add(&t, "{\"train\":");
    nami_text_json(&t, b->train_path);
    nami_text_add(&t, ",\"train_tokens\":%lld,\"data\":", (long long)b->train_tokens);
    nami_text_json(&t, b->path);
    nami_text_add(&t,
                  ",\"from_token\":%lld,\"tokens\":%lld,\"best_order\":%d,\"orders\":[",
                  (long long)b->from, (long long)(b->to - b->from), best_order(b));
    for (int k = b->low; k <= b->high; k++) {
        nami_text_add(
            &t, "%s{\"order\":%d,\"loss_nats_per_token\":", k > b->low ? "," : "", k);
        nami_text_number(&t, b->loss[k]);
        nami_text_add(&t, "}");
    }
    nami_print("%s]}\n", nami_text_get(&t));
    nami_text_free(&t);
}

static nami_status run(const nami_call *call)
{
    const baseline_options *options = call->options;
    baseline b = {.path = call->word[0], .train_path = options->train};
    NAMI_TRY(parse_order(options->order, &b.low, &b.high));
    nami_status status = open_sets(&b);
    if (status == NAMI_OK)
        status = count_and_score(&b, (size_t)(options->memory * 1073741824.0));
    if (status == NAMI_OK)
        (options->json ? print_json : print_table)(&b);
    if (b.train != b.data)
        nami_data_close(b.train);
    nami_data_close(b.data);
    return status;
}

const nami_command nami_cli_baseline = {
    .name = "baseline",
    .words = "DATA",
    .summary = "loss of byte or token n-gram models, to compare a network's with",
    .text =
        "Prints the mean -ln p of the tokens of DATA under interpolated Witten-Bell\n"
        "n-gram models counted in the set of --train. Without --train, the first 90 %\n"
        "of DATA are counted and its last 10 % evaluated.\n",
    .options = &table,
    .size = sizeof(baseline_options),
    .fewest = 1,
    .most = 1,
    .run = run,
};
