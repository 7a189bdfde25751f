/* SPDX-License-Identifier: MIT */
/* state.c - save and load checkpoints of a run, and compare decks. */
#include "train/state.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "exchange/exchange.h"

/* The whole catalogue, `states` arrays a parameter, one a statistic. When saving, each element comes from its owner alone. */
static nami_ckpt_item *make_items(nami_job *job, int states, bool save, int *items)
{
    const nami_optim_options *optim = &job->settings->optim;
    int params = job->model->params;
    nami_ckpt_item *item =
        nami_calloc(NAMI_MEM_OTHER, (size_t)(params * states), sizeof *item);
    *items = 0;
    for (int p = 0; p < params; p++)
        for (int s = 0; s < states; s++) {
            const nami_param *param = &job->model->param[p];
            if (param->statistic && s > 0)
                continue;
            nami_exec_slab slab = nami_exec_array(job->exec, p, s);
            bool used = slab.count > 0 && (slab.owner || !save);
            item[(*items)++] = (nami_ckpt_item){
                .group = s ? nami_optim_state_group(optim, s - 1) : "parameters",
                .name = param->name,
                .shape = param->shape,
                .from = used ? slab.from : 0,
                .count = used ? slab.count : 0,
                .data = used ? slab.data : NULL};
        }
    return item;
}

nami_status nami_job_save(nami_job *job, const char *directory,
                          const nami_ckpt_state *state)
{
    int states = 1 + nami_optim_states(&job->settings->optim);
    int items;
    nami_ckpt_item *item = make_items(job, states, true, &items);
    nami_status status = nami_ckpt_save(job->comm, directory, job->settings->ckpt.keep,
                                        state, item, items);
    nami_free(item);
    return status;
}

nami_status nami_job_load(nami_job *job, const char *path, bool parameters_only)
{
    int states = parameters_only ? 1 : 1 + nami_optim_states(&job->settings->optim);
    int items;
    nami_ckpt_item *item = make_items(job, states, false, &items);
    nami_status status = nami_ckpt_load(job->comm, path, item, items);
    nami_free(item);
    if (status == NAMI_OK)
        nami_exec_refresh(job->exec);
    return status;
}

/* Rank 0 says what kind of file it is: all must go the same way. */
static bool is_foreign(nami_comm *c, const char *path)
{
    int foreign = nami_comm_rank(c) == 0 && nami_exchange_is(path);
    nami_comm_broadcast(c, &foreign, sizeof foreign, 0);
    return foreign;
}

nami_status nami_job_init(nami_job *job, const char *path)
{
    if (!is_foreign(job->comm, path))
        return nami_job_load(job, path, true);
    int params = job->model->params;
    float **data = nami_calloc(NAMI_MEM_OTHER, (size_t)params + 1, sizeof *data);
    for (int p = 0; p < params; p++)
        data[p] = nami_exec_array(job->exec, p, 0).data;
    nami_status status = nami_exchange_load(job->comm, path, job->model, data);
    nami_free(data);
    if (status == NAMI_OK)
        nami_exec_refresh(job->exec);
    return status;
}

/* Keys that do not change what is computed. */
static bool is_free(const nami_option *row)
{
    return !strcmp(row->section, "run") || !strcmp(row->section, "checkpoint") ||
           !strcmp(row->section, "plan");
}

/* Keys without which the run would be another one. */
static bool is_fixed(const nami_option *row)
{
    return !strcmp(row->section, "model") || !strcmp(row->key, "seed") ||
           !strcmp(row->key, "optimizer");
}

/* The settings that a checkpoint's deck set; keys of other versions are left out. */
static nami_status read_then(const nami_ckpt_state *state, const char *path,
                             nami_settings *then)
{
    nami_deck *deck = NULL;
    void *object[NAMI_SETTINGS_PARTS];
    nami_settings_objects(then, object);
    nami_status status = nami_deck_parse(state->deck, strlen(state->deck), path, &deck);
    for (int t = 0; t < NAMI_SETTINGS_PARTS && status == NAMI_OK; t++) {
        const nami_option_table *table = nami_settings_tables[t];
        status = nami_option_defaults(table, object[t]);
        for (int i = 0; i < table->rows && status == NAMI_OK; i++) {
            const nami_option *row = &table->row[i];
            const char *value = nami_deck_value(deck, row->section, row->key);
            if (value)
                status = nami_option_set(row, object[t], value, path);
        }
    }
    if (status == NAMI_OK)
        nami_model_settle(&then->model);
    nami_deck_free(deck);
    return status;
}

/* A key whose value is another one now. */
typedef struct difference {
    const nami_option *row;
    const char *now, *then;
} difference;

typedef nami_status (*visit_difference)(void *context, const difference *d);

static nami_status compare_row(const nami_option *row, const void *now,
                               const void *then, visit_difference visit, void *context)
{
    nami_text a = {0}, b = {0};
    nami_status status = NAMI_OK;
    nami_option_echo(row, now, &a);
    nami_option_echo(row, then, &b);
    difference d = {row, nami_text_get(&a), nami_text_get(&b)};
    if (strcmp(d.now, d.then) != 0)
        status = visit(context, &d);
    nami_text_free(&b);
    nami_text_free(&a);
    return status;
}

/* Call visit for every key that differs between the checkpoint's deck and `s`, until it fails. */
static nami_status compare(const nami_ckpt_state *state, const char *path,
                           const nami_settings *s, visit_difference visit,
                           void *context)
{
    void *now[NAMI_SETTINGS_PARTS], *was[NAMI_SETTINGS_PARTS];
    nami_settings copy = *s, then = {0}; /* copy: shallow, only read */
    nami_status status = read_then(state, path, &then);
    nami_settings_objects(&copy, now);
    nami_settings_objects(&then, was);
    for (int t = 0; t < NAMI_SETTINGS_PARTS; t++)
        for (int i = 0; i < nami_settings_tables[t]->rows && status == NAMI_OK; i++)
            status = compare_row(&nami_settings_tables[t]->row[i], now[t], was[t],
                                 visit, context);
    nami_settings_release(&then);
    return status;
}

static nami_status refuse_fixed(void *path, const difference *d)
{
    if (!is_fixed(d->row))
        return NAMI_OK;
    return nami_fail(NAMI_ERESTART,
                     "%s.%s is %s, but %s in the checkpoint %s; set it back, choose "
                     "another run.directory, or start from it with train.init",
                     d->row->section, d->row->key, d->now, d->then, (const char *)path);
}

static nami_status tell_changed(void *unused, const difference *d)
{
    (void)unused;
    if (!is_fixed(d->row) && !is_free(d->row))
        nami_log(NAMI_INFO, "since the checkpoint %s.%s changed from '%s' to '%s'",
                 d->row->section, d->row->key, d->then, d->now);
    return NAMI_OK;
}

nami_status nami_state_check(const nami_ckpt_state *state, const char *path,
                             const nami_settings *s)
{
    NAMI_TRY(compare(state, path, s, refuse_fixed, (void *)(uintptr_t)path));
    if (state->step >= s->train.steps)
        return nami_fail(
            NAMI_NOTHING,
            "nothing to do: all %lld steps are done (%s); raise train.steps "
            "to go on",
            (long long)s->train.steps, path);
    return NAMI_OK;
}

void nami_state_differences(const nami_ckpt_state *state, const nami_settings *s)
{
    (void)compare(state, "checkpoint", s, tell_changed, NULL);
    nami_fail_clear();
}
