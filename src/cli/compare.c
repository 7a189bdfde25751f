/* SPDX-License-Identifier: MIT */
/* compare.c - nami compare: one rank against the layout, and where they part. */
#include "train/compare.h"

#include "base/log.h"
#include "cli/deck.h"

typedef struct nami_compare_flags {
    int64_t steps;
} nami_compare_flags;

static void print_comparison(const nami_comparison *r)
{
    if (!r->loss_step && !r->param_step) {
        nami_print("equal: %lld step%s, every loss and every parameter bit for bit\n",
                   (long long)r->steps, nami_plural(r->steps));
        return;
    }
    if (r->loss_step)
        nami_print("losses part at step %lld: one rank %a, layout %a\n",
                   (long long)r->loss_step, r->loss[0], r->loss[1]);
    if (r->param_step)
        nami_print("parameters part at step %lld: %s on position %d\n",
                   (long long)r->param_step, r->param, r->position);
    nami_print(
        "largest difference after %lld steps: %.3g of a parameter, %.3g of a loss "
        "(relative)\n",
        (long long)r->steps, r->difference, r->loss_difference);
}

/* Where equal bits are not promised, rounding alone may part the losses. */
static nami_status judge(const nami_comparison *r)
{
    static const double rounding = 1e-3; /* relative; bf16 keeps three digits */
    if (!r->loss_step && !r->param_step)
        return NAMI_OK;
    if (r->exact)
        return nami_fail(NAMI_ENUMERIC, "the layout and one rank part, though %s",
                         r->promise);
    nami_print("no equal bits are promised: %s\n", r->promise);
    if (r->loss_difference <= rounding)
        return NAMI_OK;
    return nami_fail(
        NAMI_ENUMERIC,
        "the losses part by %.3g (relative), more than rounding explains (%g)",
        r->loss_difference, rounding);
}

static nami_status run_compare(const nami_call *call)
{
    const nami_compare_flags *flags = call->options;
    nami_settings settings = {0};
    nami_comparison result = {0};
    bool leads = nami_comm_rank(call->comm) == 0;
    nami_status status = nami_cli_deck(call->comm, call->word, call->words, &settings);
    if (status == NAMI_OK)
        status = nami_train_compare(call->comm, &settings, flags->steps, &result);
    if (status == NAMI_OK && leads) {
        print_comparison(&result);
        status = judge(&result);
    }
    nami_settings_release(&settings);
    return nami_agree(call->comm, status);
}

static const nami_option rows[] = {
    {.key = "steps",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_compare_flags, steps),
     .fallback = "5",
     .minimum = 1,
     .maximum = 1e9,
     .help = "steps to compare"},
};
static const nami_option_table table = {.row = rows, .rows = 1};

const nami_command nami_cli_compare = {
    .name = "compare",
    .words = "DECK [section.key=value ...]",
    .summary = "train a few steps on all ranks and on one, and say where they part",
    .text = "Rank 0 also trains alone, with as many partial sums and threads. Losses "
            "and parameters\n"
            "are compared bit for bit after each step. Exit code 0 equal, 5 not. "
            "Writes no files.\n",
    .options = &table,
    .size = sizeof(nami_compare_flags),
    .fewest = 1,
    .most = -1,
    .needs_mpi = true,
    .run = run_compare,
};
