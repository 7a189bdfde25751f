/* SPDX-License-Identifier: MIT */
/* save.c - write a checkpoint so that a kill at any moment leaves the older ones, or this one whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "ckpt/inner.h"

static int by_start(const void *a, const void *b)
{
    const nami_ckpt_slab *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

bool nami_ckpt_join(const nami_ckpt_slab *part, int ranks, int stride, int64_t count,
                    int64_t width, int64_t *crc)
{
    nami_ckpt_slab *sorted = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *sorted);
    int slabs = 0;
    int64_t at = 0;
    uint32_t whole = 0;
    for (int r = 0; r < ranks; r++)
        if (part[(size_t)r * (size_t)stride].count > 0)
            sorted[slabs++] = part[(size_t)r * (size_t)stride];
    qsort(sorted, (size_t)slabs, sizeof *sorted, by_start);
    bool ok = true;
    for (int i = 0; i < slabs; i++) {
        ok = ok && sorted[i].from == at;
        at += sorted[i].count;
        whole = nami_store_crc_join(whole, (uint32_t)sorted[i].crc,
                                    sorted[i].count * width);
    }
    nami_free(sorted);
    *crc = whole;
    return ok && at == count;
}

static char *array_name(const nami_ckpt_item *item)
{
    return nami_strf("/%s/%s", item->group, item->name);
}

static nami_status define_all(nami_store *s, const nami_ckpt_item *item, int items)
{
    nami_status status = NAMI_OK;
    int64_t count = items, one = 1;
    for (int i = 0; i < items && status == NAMI_OK; i++) {
        char *name = array_name(&item[i]);
        const nami_shape *shape = &item[i].shape;
        status =
            nami_store_define(s, name, NAMI_STORE_F32, shape->rank ? shape->rank : 1,
                              shape->rank ? shape->dim : &one);
        nami_free(name);
    }
    if (status == NAMI_OK)
        status = nami_store_define(s, "/checksums", NAMI_STORE_I64, 1, &count);
    return status;
}

static nami_status write_slabs(nami_store *s, const nami_ckpt_item *item, int items,
                               nami_ckpt_slab *slab)
{
    nami_status status = NAMI_OK;
    for (int i = 0; i < items && status == NAMI_OK; i++) {
        char *name = array_name(&item[i]);
        slab[i] = (nami_ckpt_slab){.from = item[i].from, .count = item[i].count};
        slab[i].crc =
            nami_store_crc(0, item[i].data, (size_t)item[i].count * sizeof(float));
        status = nami_store_write(s, name, item[i].from, item[i].count, item[i].data);
        nami_free(name);
    }
    return status;
}

/* Checksums of whole arrays from all ranks' slabs; each element must come from exactly one rank. */
static nami_status join_all(nami_comm *c, const nami_ckpt_item *item, int items,
                            const nami_ckpt_slab *own, int64_t *crc)
{
    nami_status status = NAMI_OK;
    int ranks = c ? nami_comm_size(c) : 1;
    nami_ckpt_slab *all =
        nami_calloc(NAMI_MEM_OTHER, (size_t)ranks * (size_t)items + 1, sizeof *all);
    if (c)
        nami_comm_gather(c, own, (size_t)items * sizeof *own, all);
    for (int i = 0; i < items && status == NAMI_OK; i++)
        if (!nami_ckpt_join(c ? &all[i] : &own[i], ranks, items,
                            nami_shape_count(&item[i].shape), sizeof(float), &crc[i]))
            status = nami_fail(
                NAMI_EBUG, "checkpoint: the ranks' parts of %s/%s have gaps or overlap",
                item[i].group, item[i].name);
    nami_free(all);
    return status;
}

static nami_status write_checksums(nami_store *s, nami_comm *c,
                                   const nami_ckpt_item *item, int items,
                                   const int64_t *crc)
{
    nami_text names = {0};
    for (int i = 0; i < items; i++)
        nami_text_add(&names, "%s/%s\n", item[i].group, item[i].name);
    nami_status status =
        nami_store_write(s, "/checksums", 0, nami_ckpt_leads(c) ? items : 0, crc);
    if (status == NAMI_OK)
        status = nami_store_set_text(s, "arrays", nami_text_get(&names));
    nami_text_free(&names);
    return status;
}

static nami_status write_state(nami_store *s, const nami_ckpt_state *state)
{
    NAMI_TRY(nami_store_set_int(s, "format", NAMI_CKPT_FORMAT));
    NAMI_TRY(nami_store_set_int(s, "step", state->step));
    NAMI_TRY(nami_store_set_int(s, "sample", state->sample));
    NAMI_TRY(nami_store_set_int(s, "seed", state->seed));
    NAMI_TRY(nami_store_set_int(s, "partials", state->partials));
    NAMI_TRY(nami_store_set_text(s, "deck", state->deck ? state->deck : ""));
    NAMI_TRY(nami_store_set_text(s, "build", state->build ? state->build : ""));
    NAMI_TRY(nami_store_set_text(s, "parent", state->parent ? state->parent : ""));
    NAMI_TRY(nami_store_set_text(s, "data", state->data ? state->data : ""));
    if (state->numbers && state->numbers[0])
        NAMI_TRY(nami_store_set_text(s, "numbers", state->numbers));
    return nami_store_set_int(s, "state_crc", nami_ckpt_state_crc(state));
}

static nami_status write_contents(nami_store *s, nami_comm *c,
                                  const nami_ckpt_state *state,
                                  const nami_ckpt_item *item, int items)
{
    nami_ckpt_slab *slab = nami_calloc(NAMI_MEM_OTHER, (size_t)items + 1, sizeof *slab);
    int64_t *crc = nami_calloc(NAMI_MEM_OTHER, (size_t)items + 1, sizeof *crc);
    nami_status status = define_all(s, item, items);
    if (status == NAMI_OK)
        status = write_slabs(s, item, items, slab);
    if (status == NAMI_OK)
        status = join_all(c, item, items, slab, crc);
    if (status == NAMI_OK)
        status = write_checksums(s, c, item, items, crc);
    if (status == NAMI_OK)
        status = write_state(s, state);
    if (status == NAMI_OK)
        status = nami_store_flush(s);
    if (status == NAMI_OK) /* only behind the slabs, and they are on disk now */
        status = nami_store_set_int(s, "complete", 1);
    nami_free(crc);
    nami_free(slab);
    return status;
}

static double bytes_of(const nami_ckpt_item *item, int items)
{
    double bytes = 0;
    for (int i = 0; i < items; i++)
        bytes += (double)nami_shape_count(&item[i].shape) * sizeof(float);
    return bytes;
}

static nami_status write_file(nami_comm *c, const char *path,
                              const nami_ckpt_state *state, const nami_ckpt_item *item,
                              int items)
{
    nami_store *s;
    NAMI_TRY(nami_store_create(c, path, &s));
    /* see remove_temporary; a file system without locks does without */
    int lock = nami_ckpt_leads(c) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (lock >= 0)
        (void)flock(lock, LOCK_EX | LOCK_NB);
    nami_status status = write_contents(s, c, state, item, items);
    nami_status closed = nami_store_close(s);
    if (lock >= 0)
        close(lock);
    return status != NAMI_OK ? status : closed;
}

/* Rank 0: let the file appear under its name. */
static nami_status publish(const char *temporary, const char *path)
{
    if (rename(temporary, path) != 0)
        return nami_fail(NAMI_EENV, "%s cannot be renamed to %s: %s", temporary, path,
                         strerror(errno));
    return nami_store_sync_directory(path);
}

static nami_status prepare(const char *directory)
{
    NAMI_TRY(nami_ckpt_make_directory(directory));
    return nami_ckpt_clean(directory);
}

/* Rank 0: old files that cannot be deleted are a nuisance, but no reason to call the save a failure. */
static void prune(const char *directory, int64_t keep, const nami_ckpt_state *state)
{
    if (nami_ckpt_prune(directory, keep, state->step, state->spare) == NAMI_OK)
        return;
    nami_log(NAMI_WARNING, "an old checkpoint stays: %s", nami_fail_text());
    nami_fail_clear();
}

nami_status nami_ckpt_save(nami_comm *c, const char *directory, int64_t keep,
                           const nami_ckpt_state *state, const nami_ckpt_item *item,
                           int items)
{
    bool leads = nami_ckpt_leads(c);
    NAMI_CHECK(keep >= 1 && state->step >= 0);
    NAMI_TRY(nami_comm_settle(c, leads ? prepare(directory) : NAMI_OK));
    char *path = nami_ckpt_path(directory, state->step);
    char *temporary = nami_ckpt_temporary(directory, state->step);
    nami_ckpt_extend(c, bytes_of(item, items));
    nami_status status = write_file(c, temporary, state, item, items);
    if (status == NAMI_OK)
        status = nami_comm_settle(c, leads ? publish(temporary, path) : NAMI_OK);
    nami_ckpt_extend(c, 0);
    if (leads && status == NAMI_OK)
        prune(directory, keep, state);
    else if (leads)
        unlink(temporary);
    nami_free(temporary);
    nami_free(path);
    return status;
}
