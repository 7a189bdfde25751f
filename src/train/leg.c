/* SPDX-License-Identifier: MIT */
/* leg.c - the legs of a run, from the deck's sections to steps. */
#include "train/leg.h"

#include <math.h>

#include "base/memory.h"

const char *nami_leg_name(int number)
{
    static const char *const name[NAMI_LEGS] = {"[pipeline]", "[switch]", "[switch2]"};
    NAMI_CHECK(number >= 0 && number < NAMI_LEGS);
    return name[number];
}

void nami_leg_replicas(const nami_layout *l, nami_text *out)
{
    for (int p = 0; p < l->train.place.positions; p++)
        nami_text_add(out, "%s%d", p ? "-" : "", nami_layout_replicas(l, p));
}

void nami_leg_shape(const nami_layout *l, nami_text *out)
{
    int positions = l->train.place.positions;
    nami_text_add(out, "%d position%s ", positions, nami_plural(positions));
    if (l->recipe.split == NAMI_SPLIT_MICROBATCH) {
        nami_text_add(out, "x %d replica%s", l->replicas, nami_plural(l->replicas));
        return;
    }
    nami_text_add(out, "of ");
    nami_leg_replicas(l, out);
    nami_text_add(out, " ranks");
}

nami_status nami_legs_make(const nami_pipeline_options *pipeline,
                           const nami_switch_options *change, nami_leg *leg, int *legs)
{
    bool given = true;
    *legs = 1;
    NAMI_TRY(nami_switch_copy(pipeline, &leg[0].pipeline));
    for (int i = 0; i < NAMI_SWITCHES; i++) {
        bool before = given;
        nami_leg *next = &leg[*legs];
        NAMI_TRY(nami_switch_read(&change[i], i, &given, &next->at));
        if (!given)
            continue;
        if (!before)
            return nami_fail(NAMI_EINPUT, "the deck has %s, but no %s before it",
                             nami_leg_name(i + 1), nami_leg_name(i));
        NAMI_TRY(nami_switch_apply(&change[i], i, &leg[*legs - 1].pipeline,
                                   &next->pipeline));
        (*legs)++;
    }
    return NAMI_OK;
}

void nami_legs_free(nami_leg *leg)
{
    for (int i = 0; i < NAMI_LEGS; i++) {
        nami_option_release(&nami_pipeline_table, &leg[i].pipeline);
        nami_layout_free(&leg[i].layout);
        nami_free(leg[i].budget);
        leg[i] = (nami_leg){0};
    }
}

/* Steps done when so many epochs of samples have been used, counted on from where the run stands. */
static int64_t step_of(double epochs, const nami_leg_place *p)
{
    double left = ceil(epochs * (double)p->epoch) - (double)p->sample;
    return p->step + (int64_t)ceil(left / (double)p->batch);
}

nami_status nami_legs_place(nami_leg *leg, int legs, const nami_leg_place *p,
                            int *current)
{
    *current = 0;
    for (int i = 1; i < legs; i++) {
        if (leg[i].at.steps == 0 && p->epoch == 0)
            return nami_fail(NAMI_EINPUT,
                             "%s counts epochs, but this model.family makes up its "
                             "samples: say steps",
                             nami_leg_name(i));
        leg[i].first =
            leg[i].at.steps > 0 ? leg[i].at.steps : step_of(leg[i].at.epochs, p);
        if (i > 1 && leg[i].first <= leg[i - 1].first)
            return nami_fail(
                NAMI_EINPUT,
                "%s begins after step %lld, which is not behind step %lld, "
                "where %s begins",
                nami_leg_name(i), (long long)leg[i].first, (long long)leg[i - 1].first,
                nami_leg_name(i - 1));
        if (leg[i].first <= p->step)
            *current = i;
    }
    return NAMI_OK;
}
