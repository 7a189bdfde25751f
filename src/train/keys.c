/* SPDX-License-Identifier: MIT */
/* keys.c - keys of the deck that are set but do nothing beside the others. */
#include <string.h>

#include "train/leg.h"
#include "train/options.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static nami_status check_data(const nami_settings *s)
{
    static const char *const cutout = "without data.cutout above 0";
    const nami_option_reach reach[] = {
        {"last_batch", s->data.valid[0], "without data.valid"},
        {"cutout_probability", s->data.cutout > 0, cutout},
        {"cutout_growth", s->data.cutout > 0, cutout},
    };
    return nami_option_check_reach(&nami_data_option_table, &s->data, reach,
                                   COUNT(reach));
}

static nami_status check_evaluations(const nami_settings *s)
{
    const bool valid = s->data.valid[0];
    const bool often = s->train.eval_every > 0 || s->train.eval_epochs > 0;
    const nami_option_reach train[] = {
        {"eval_every", valid, "without data.valid"},
        {"eval_epochs", valid, "without data.valid"},
        {"eval_batches", valid && often,
         valid ? "without train.eval_every or eval_epochs, as the evaluation at the "
                 "end uses all batches"
               : "without data.valid"},
    };
    const nami_option_reach ckpt[] = {{"best", valid, "without data.valid"}};
    NAMI_TRY(nami_option_check_reach(&nami_train_option_table, &s->train, train,
                                     COUNT(train)));
    return nami_option_check_reach(&nami_ckpt_option_table, &s->ckpt, ckpt,
                                   COUNT(ckpt));
}

/* Naive loops run in one thread, also those of an imitated device. */
static nami_status check_threads(const nami_settings *s)
{
    const bool direct = strcmp(nami_settings_backend(s), "ref") == 0;
    const nami_option_reach reach = {
        "threads", strcmp(nami_settings_host_backend(s), "ref") != 0,
        direct ? "with train.backend = ref, which computes in one thread"
               : "with emu.delegate = ref, which computes in one thread"};
    return nami_option_check_reach(&nami_train_option_table, &s->train, &reach, 1);
}

static nami_status check_emu(const nami_settings *s)
{
    const bool emu = strcmp(nami_settings_backend(s), "emu") == 0;
    static const char *const backend = "without train.backend = emu";
    const nami_option_reach reach[] = {
        {"delegate", emu, backend},
        {"memory", emu, backend},
        {"copy_latency", emu, backend},
        {"copy_bandwidth", emu, backend},
        {"jitter", emu, backend},
        {"seed", emu && s->emu.jitter > 0, emu ? "without emu.jitter" : backend},
        {"fail_launch", emu, backend},
        {"fail_alloc", emu, backend},
    };
    return nami_option_check_reach(&nami_emu_option_table, &s->emu, reach,
                                   COUNT(reach));
}

/* What a leg's schedule and keys make of the keys that only some layouts read; a schedule that is not known is refused
 * elsewhere. */
static nami_recipe recipe_of(const nami_pipeline_options *o)
{
    nami_recipe r = {.weights = NAMI_WEIGHTS_FLUSH};
    if (nami_recipe_preset(&r, o->schedule) != NAMI_OK)
        nami_fail_clear();
    if (o->placement > 0)
        r.placement = (nami_placement_kind)(o->placement - 1);
    if (o->weights > 0)
        r.weights = (nami_weights)(o->weights - 1);
    return r;
}

static bool reads(const nami_pipeline_options *o, const char *key)
{
    const nami_recipe r = recipe_of(o);
    if (strcmp(key, "waves") == 0)
        return r.placement == NAMI_PLACE_WAVE;
    if (strcmp(key, "chunks") == 0)
        return r.placement == NAMI_PLACE_LOOPING;
    return !nami_recipe_flushes(&r);
}

/* Whether section `i` sets the key: [pipeline] is 0. */
static bool sets(const nami_settings *s, int i, const char *key)
{
    if (i == 0)
        return !nami_option_untouched(nami_option_find(&nami_pipeline_table, key),
                                      &s->pipeline);
    return !nami_option_untouched(nami_option_find(&nami_switch_tables[i - 1], key),
                                  &s->change[i - 1]);
}

/* A key that switches keep is read by the leg of its section, or by one behind it that has no value of its own. */
static nami_status check_kept(const nami_settings *s, const nami_leg *leg, int legs,
                              const char *key, const char *when)
{
    for (int i = 0; i < legs; i++) {
        bool read = !sets(s, i, key) || reads(&leg[i].pipeline, key);
        for (int k = i + 1; k < legs && !read && !sets(s, k, key); k++)
            read = reads(&leg[k].pipeline, key);
        if (!read)
            return nami_fail(
                NAMI_EINPUT, "%s.%s is set, but does nothing %s; remove it",
                i > 0 ? nami_switch_tables[i - 1].row[0].section : "pipeline", key,
                when);
    }
    return NAMI_OK;
}

static nami_status check_pipeline(const nami_settings *s)
{
    nami_leg leg[NAMI_LEGS] = {0};
    int legs = 0;
    nami_status status = nami_legs_make(&s->pipeline, s->change, leg, &legs);
    if (status == NAMI_OK)
        status = check_kept(s, leg, legs, "waves", "without placement wave");
    if (status == NAMI_OK)
        status = check_kept(s, leg, legs, "chunks", "without placement looping");
    if (status == NAMI_OK)
        status = check_kept(s, leg, legs, "window",
                            "with a flush, behind which every step drains");
    nami_legs_free(leg);
    return status;
}

nami_status nami_settings_check_keys(const nami_settings *s)
{
    NAMI_TRY(check_data(s));
    NAMI_TRY(check_evaluations(s));
    NAMI_TRY(check_threads(s));
    NAMI_TRY(check_emu(s));
    NAMI_TRY(nami_plan_check_keys(&s->plan));
    return check_pipeline(s);
}
