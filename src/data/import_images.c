/* SPDX-License-Identifier: MIT */
/* import_images.c - files of images into sets. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/image_sink.h"
#include "data/inner.h"
#include "data/pictures.h"

#define BLOCK ((int64_t)4 << 20) /* bytes of pixels handled at a time, and one image */

/* An import under way. */
typedef struct work {
    const nami_import *order;
    nami_pictures *input; /* [inputs] */
    int inputs;
    nami_image_facts facts; /* of all images */
    int64_t cut;            /* images below it go to part 0 */
    int64_t done;           /* images written */
    nami_image_sink sink[2];
    int parts;
} work;

void nami_pictures_close(nami_pictures *p)
{
    if (p->drop && p->own)
        p->drop(p);
    nami_source_close(p->source[0]);
    nami_source_close(p->source[1]);
    nami_free(p->names);
    *p = (nami_pictures){0};
}

static nami_status open_input(const work *w, int i, const char *spool)
{
    char *const *path = w->order->input, *const *pair = path + (ptrdiff_t)2 * i;
    switch (w->order->format) {
    case NAMI_IMPORT_IDX:
        return nami_idx_open(pair[0], pair[1], spool, &w->input[i]);
    case NAMI_IMPORT_CIFAR10:
        return nami_cifar_open(path[i], 1, spool, &w->input[i]);
    case NAMI_IMPORT_CIFAR100:
        return nami_cifar_open(path[i], 2, spool, &w->input[i]);
    default:
        return nami_folder_open(path[i], w->order->channels, w->order->size,
                                &w->input[i]);
    }
}

/* Name of input i for messages. */
static const char *name_of(const work *w, int i)
{
    return w->order->input[w->order->format == NAMI_IMPORT_IDX ? 2 * i : i];
}

/* Inputs that are joined have images of one shape. */
static nami_status join(work *w, int i)
{
    const nami_pictures *p = &w->input[i], *first = &w->input[0];
    if (p->height != first->height || p->width != first->width)
        return nami_fail(NAMI_EINPUT,
                         "%s has images of %lld x %lld, but %s of %lld x %lld: they "
                         "cannot be joined",
                         name_of(w, 0), (long long)first->height,
                         (long long)first->width, name_of(w, i), (long long)p->height,
                         (long long)p->width);
    w->facts.samples += p->samples;
    w->facts.channels = p->channels;
    w->facts.height = p->height;
    w->facts.width = p->width;
    w->facts.classes = p->classes > w->facts.classes ? p->classes : w->facts.classes;
    return NAMI_OK;
}

static nami_status check_outputs(const work *w)
{
    nami_status status = NAMI_OK;
    for (int part = 0; part < w->parts && status == NAMI_OK; part++) {
        char *path = nami_import_path(w->order, part);
        status = nami_sink_allowed(path);
        for (int i = 0; i < 2 * w->inputs && status == NAMI_OK; i++) {
            const nami_source *s = w->input[i / 2].source[i % 2];
            if (s && nami_source_is(s, path))
                status = nami_fail(NAMI_EINPUT, "%s is an input and the output", path);
        }
        nami_free(path);
    }
    return status;
}

static nami_status open_inputs(work *w)
{
    char *spool = nami_import_spool(w->order->output);
    nami_status status = NAMI_OK;
    for (int i = 0; i < w->inputs && status == NAMI_OK; i++) {
        status = open_input(w, i, spool);
        if (status == NAMI_OK)
            status = join(w, i);
    }
    nami_free(spool);
    return status;
}

static nami_status choose_classes(work *w)
{
    int64_t given = w->order->classes;
    if (given > 0 && given < w->facts.classes)
        return nami_fail(NAMI_EINPUT,
                         "--classes is %lld, but there are labels up to %lld",
                         (long long)given, (long long)w->facts.classes - 1);
    if (given > 0)
        w->facts.classes = given;
    return NAMI_OK;
}

static nami_status open_sinks(work *w)
{
    double split = w->order->split;
    int64_t all = w->facts.samples;
    w->cut = w->parts == 2 ? (int64_t)((double)all * split) : all;
    if (w->cut < 1 || (w->parts == 2 && w->cut == all))
        return nami_fail(NAMI_EINPUT,
                         "%lld image%s are too few for this split: each part needs one",
                         (long long)all, nami_plural(all));
    for (int part = 0; part < w->parts; part++) {
        char *path = nami_import_path(w->order, part);
        nami_image_facts facts = w->facts;
        facts.samples = part == 0 ? w->cut : all - w->cut;
        nami_status status = nami_image_sink_open(path, &facts, &w->sink[part]);
        nami_free(path);
        NAMI_TRY(status);
    }
    return NAMI_OK;
}

/* Hand `count` images to the parts they belong to. */
static nami_status deliver(work *w, int64_t count, const uint8_t *pixel,
                           const uint16_t *label)
{
    int64_t bytes = w->facts.channels * w->facts.height * w->facts.width;
    int64_t first = w->cut - w->done;
    first = first < 0 ? 0 : first > count ? count : first;
    if (first > 0)
        NAMI_TRY(nami_image_sink_add(&w->sink[0], first, pixel, label));
    if (first < count)
        NAMI_TRY(nami_image_sink_add(&w->sink[1], count - first, pixel + first * bytes,
                                     label + first));
    w->done += count;
    return NAMI_OK;
}

static nami_status copy_input(work *w, nami_pictures *p, int64_t block, uint8_t *pixel,
                              uint16_t *label)
{
    for (int64_t at = 0; at < p->samples; at += block) {
        int64_t count = p->samples - at < block ? p->samples - at : block;
        NAMI_TRY(p->read(p, count, pixel, label));
        NAMI_TRY(deliver(w, count, pixel, label));
        nami_progress("import: %lld of %lld images", (long long)w->done,
                      (long long)w->facts.samples);
    }
    return NAMI_OK;
}

static nami_status copy_inputs(work *w)
{
    int64_t bytes = w->facts.channels * w->facts.height * w->facts.width;
    NAMI_CHECK(bytes > 0);
    int64_t block = 1 + BLOCK / bytes;
    uint8_t *pixel = nami_alloc(NAMI_MEM_DATA, (size_t)(block * bytes));
    uint16_t *label = nami_alloc(NAMI_MEM_DATA, (size_t)block * sizeof *label);
    nami_status status = NAMI_OK;
    for (int i = 0; i < w->inputs && status == NAMI_OK; i++)
        status = copy_input(w, &w->input[i], block, pixel, label);
    nami_free(label);
    nami_free(pixel);
    return status;
}

static nami_status finish(work *w)
{
    char *source = nami_import_names(w->order);
    const char *names = w->input[0].names ? w->input[0].names : "";
    nami_status status = NAMI_OK;
    for (int part = 0; part < w->parts && status == NAMI_OK; part++)
        status = nami_image_sink_finish(&w->sink[part], names, source);
    nami_free(source);
    for (int part = 0; part < w->parts && status == NAMI_OK; part++)
        status = nami_sink_publish(&w->sink[part].base);
    return status;
}

static nami_status check_order(const nami_import *im)
{
    bool folder = im->format == NAMI_IMPORT_FOLDER;
    if (im->vocabulary)
        return nami_fail(NAMI_EINPUT,
                         "--vocabulary is for tokens, not for images: see --classes");
    if (!folder && (im->channels || im->size))
        return nami_fail(NAMI_EINPUT,
                         "--channels and --size are for folders of images");
    if (im->format == NAMI_IMPORT_IDX && im->inputs % 2)
        return nami_fail(NAMI_EINPUT,
                         "idx takes pairs of files, IMAGES LABELS, but %d %s given "
                         "before the output",
                         im->inputs, im->inputs == 1 ? "is" : "are");
    if (folder && im->inputs > 1)
        return nami_fail(NAMI_EINPUT,
                         "a set is made of one folder, whose subfolders are the "
                         "classes, but %d are given before the output",
                         im->inputs);
    if (folder && im->split > 0)
        return nami_fail(NAMI_EINPUT,
                         "--split would cut a folder between classes, as their images "
                         "follow each other; import a folder for each set");
    return NAMI_OK;
}

static nami_status carry_out(work *w)
{
    NAMI_TRY(check_order(w->order));
    NAMI_TRY(check_outputs(w)); /* before a pipe is read */
    NAMI_TRY(open_inputs(w));
    NAMI_TRY(check_outputs(w));
    NAMI_TRY(choose_classes(w));
    NAMI_TRY(open_sinks(w));
    NAMI_TRY(copy_inputs(w));
    return finish(w);
}

nami_status nami_import_images(const nami_import *im)
{
    work w = {.order = im, .parts = im->split > 0 ? 2 : 1};
    w.inputs = im->format == NAMI_IMPORT_IDX ? im->inputs / 2 : im->inputs;
    w.input = nami_calloc(NAMI_MEM_OTHER, (size_t)w.inputs + 1, sizeof *w.input);
    nami_status status = carry_out(&w);
    for (int part = 0; part < 2; part++)
        nami_sink_close(&w.sink[part].base);
    for (int i = 0; i < w.inputs; i++)
        nami_pictures_close(&w.input[i]);
    nami_free(w.input);
    return status;
}
