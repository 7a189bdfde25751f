/* SPDX-License-Identifier: MIT */
/* lists.c - what simulate and verify share: flags to a recipe, files. */
#include "cli/lists.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

nami_status nami_lists_recipe(const nami_lists_flags *f, nami_recipe *out)
{
    nami_recipe r = {.positions = (int)f->positions,
                     .microbatches = (int)f->microbatches,
                     .waves = 1,
                     .chunks = 1,
                     .slices = (int)f->slices,
                     .per_update = (int)f->per_update,
                     .stage_replicas = f->stage_replicas,
                     .depth = f->depth,
                     .stage_recompute = f->stage_recompute};
    NAMI_TRY(nami_recipe_preset(&r, f->schedule));
    if (f->weights > 0)
        r.weights = (nami_weights)(f->weights - 1);
    if (f->split > 0)
        r.split = (nami_split)(f->split - 1);
    if (r.positions == 0)
        r.positions = f->stage_replicas.count;
    if (r.placement != NAMI_PLACE_FREE && (r.positions == 0 || r.microbatches == 0))
        return nami_fail(NAMI_EINPUT,
                         "schedule \"%s\" needs --positions and --microbatches",
                         r.name);
    if (r.placement == NAMI_PLACE_WAVE)
        r.waves = (int)f->waves;
    if (r.placement == NAMI_PLACE_LOOPING)
        r.chunks = (int)f->chunks;
    *out = r;
    return NAMI_OK;
}

nami_status nami_lists_check(const nami_recipe *r, const nami_option_table *table,
                             const void *flags)
{
    const bool file = r->placement == NAMI_PLACE_FREE;
    const nami_option_reach reach[] = {
        {"waves", r->placement == NAMI_PLACE_WAVE, "without a wave placement"},
        {"chunks", r->placement == NAMI_PLACE_LOOPING, "without a looping placement"},
        {"slices", !file, "with lists from a file, which say the slices"},
        {"per-update", !nami_recipe_flushes(r), "with a flush"},
    };
    return nami_option_check_reach(table, flags, reach,
                                   (int)(sizeof reach / sizeof *reach));
}

void nami_lists_presets(nami_text *out)
{
    for (int i = 0; i < nami_presets(); i++)
        nami_text_add(out, "  %-18s %s\n", nami_preset_at(i)->name,
                      nami_preset_at(i)->summary);
}

nami_status nami_lists_write(const char *path, const nami_text *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return nami_fail(NAMI_EENV, "%s: cannot be written: %s", path, strerror(errno));
    size_t wrote = fwrite(nami_text_get(text), 1, text->length, file);
    bool closed = fclose(file) == 0;
    if (wrote != text->length || !closed)
        return nami_fail(NAMI_EENV, "%s: cannot be written whole: %s", path,
                         strerror(errno));
    return NAMI_OK;
}
