/* SPDX-License-Identifier: MIT */
/* import_nvidia.c - NVIDIA's HDF5 shards of ready BERT samples into data sets.
 *
 * NVIDIA/DeepLearningExamples PyTorch/LanguageModeling/BERT: create_pretraining_data.py, run_pretraining.py.
 */
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/bert_set.h"
#include "data/inner.h"
#include "data/sink.h"
#include "data/tokens.h"

#define BLOCK ((int64_t)1 << 18) /* numbers of one array handled at a time */
#define MOST ((int64_t)1 << 40)  /* samples */

enum { IDS, SEGMENTS, MASK, POSITIONS, WAS, LABELS, ARRAYS };

static const struct {
    const char *name;
    int row; /* numbers of a row: 0: L, 1: P, 2: one */
} arrays[ARRAYS] = {{"/input_ids", 0},     {"/segment_ids", 0},
                    {"/input_mask", 0},    {"/masked_lm_positions", 1},
                    {"/masked_lm_ids", 1}, {"/next_sentence_labels", 2}};

typedef struct work {
    const nami_import *order;
    nami_bert_shape shape; /* time 0: no shard was opened yet */
    int64_t *samples;      /* [inputs] */
    int64_t total, cut;    /* samples; those below `cut` go to part 0 */
    int64_t done;
    int64_t *raw[ARRAYS]; /* a block of each array */
    uint16_t *row;
    nami_sink sink[2];
    uint32_t sum[2];
    int64_t masked[2]; /* most masked positions of a sample */
    int parts;
} work;

static int64_t width_of(const work *w, int array)
{
    return arrays[array].row == 0   ? w->shape.time
           : arrays[array].row == 1 ? w->shape.slots
                                    : 1;
}

/* --- shapes --- */

static nami_status get_shape(nami_store *s, const char *path, int array, int64_t *rows,
                             int64_t *width)
{
    int rank;
    int64_t extent[4];
    NAMI_TRY(nami_store_integers_shape(s, arrays[array].name, &rank, extent));
    bool list = arrays[array].row == 2;
    if (rank == -1)
        return nami_fail(
            NAMI_EINPUT,
            "%s has no array %s: it is not a file of NVIDIA's BERT samples", path,
            arrays[array].name);
    if (rank != 2 && !(list && rank == 1))
        return nami_fail(NAMI_EINPUT, "%s: array %s has %d dimensions", path,
                         arrays[array].name, rank);
    *rows = extent[0];
    *width = rank == 2 ? extent[1] : 1;
    return NAMI_OK;
}

/* T and P of the first shard, which all others must have. */
static nami_status take_sizes(work *w, const char *path, int64_t time, int64_t slots)
{
    nami_bert_shape *s = &w->shape;
    if (time < 5 || time > NAMI_BERT_TIME || slots < 1 || slots > time)
        return nami_fail(NAMI_EINPUT,
                         "%s has samples of %lld tokens with %lld masked positions, "
                         "where 5 to %d and not more than tokens are expected",
                         path, (long long)time, (long long)slots, NAMI_BERT_TIME);
    if (s->time && (s->time != time || s->slots != slots))
        return nami_fail(
            NAMI_EINPUT,
            "%s has samples of %lld tokens with %lld masked positions, but "
            "%s of %lld with %lld",
            path, (long long)time, (long long)slots, w->order->input[0],
            (long long)s->time, (long long)s->slots);
    s->time = time;
    s->slots = slots;
    return NAMI_OK;
}

static nami_status check_shapes(work *w, nami_store *s, int input)
{
    const char *path = w->order->input[input];
    int64_t rows = 0, time = 0, slots = 0, width = 0;
    NAMI_TRY(get_shape(s, path, IDS, &w->samples[input], &time));
    NAMI_TRY(get_shape(s, path, POSITIONS, &rows, &slots));
    NAMI_TRY(take_sizes(w, path, time, slots));
    for (int a = 0; a < ARRAYS; a++) {
        NAMI_TRY(get_shape(s, path, a, &rows, &width));
        if (rows != w->samples[input] || width != width_of(w, a))
            return nami_fail(NAMI_EINPUT,
                             "%s: array %s is %lld x %lld, where %lld x %lld is "
                             "expected as of %s",
                             path, arrays[a].name, (long long)rows, (long long)width,
                             (long long)w->samples[input], (long long)width_of(w, a),
                             arrays[arrays[a].row == 1 ? POSITIONS : IDS].name);
    }
    if (w->samples[input] > MOST - w->total)
        return nami_fail(NAMI_EINPUT, "%s: %lld samples are too many", path,
                         (long long)w->samples[input]);
    w->total += w->samples[input];
    return NAMI_OK;
}

/* --- rows --- */

/* Numbers of one sample to 16 bits; mask, positions and labels of the file are -1 nowhere. */
static nami_status narrow(const work *w, const char *path, int array, int64_t sample,
                          int64_t at, uint16_t *out)
{
    int64_t width = width_of(w, array);
    const int64_t *x = w->raw[array] + at * width;
    for (int64_t i = 0; i < width; i++) {
        if (x[i] < 0 || x[i] > 65535)
            return nami_fail(NAMI_EINPUT,
                             "%s: sample %lld has %lld in %s, where 0 to 65535 is "
                             "expected",
                             path, (long long)sample, (long long)x[i],
                             arrays[array].name);
        out[i] = (uint16_t)x[i];
    }
    return NAMI_OK;
}

/* Ones in front, then zeros: how many ones. */
static nami_status length_of(const work *w, const char *path, int64_t sample,
                             int64_t at, uint16_t *out)
{
    const int64_t *x = w->raw[MASK] + at * w->shape.time;
    int64_t length = 0, i;
    while (length < w->shape.time && x[length] == 1)
        length++;
    for (i = length; i < w->shape.time && x[i] == 0; i++)
        ;
    if (i < w->shape.time)
        return nami_fail(NAMI_EINPUT,
                         "%s: sample %lld has an input_mask that is not ones in front "
                         "and zeros behind",
                         path, (long long)sample);
    *out = (uint16_t)length;
    return NAMI_OK;
}

/* What stands behind the first position 0 is unused, whatever it is. */
static void clear_unused(const nami_bert_shape *s, uint16_t *position, uint16_t *was)
{
    int64_t used = 0;
    while (used < s->slots && position[used])
        used++;
    for (; used < s->slots; used++)
        position[used] = was[used] = 0;
}

/* Sample `at` of the block as a row. */
static nami_status make_row(work *w, const char *path, int64_t sample, int64_t at,
                            uint16_t *row, int64_t *used)
{
    uint16_t *type = row + w->shape.time, *length = type + w->shape.time;
    uint16_t *position = length + 1, *was = position + w->shape.slots;
    NAMI_TRY(narrow(w, path, IDS, sample, at, row));
    NAMI_TRY(narrow(w, path, SEGMENTS, sample, at, type));
    NAMI_TRY(length_of(w, path, sample, at, length));
    NAMI_TRY(narrow(w, path, POSITIONS, sample, at, position));
    NAMI_TRY(narrow(w, path, WAS, sample, at, was));
    NAMI_TRY(narrow(w, path, LABELS, sample, at, was + w->shape.slots));
    clear_unused(&w->shape, position, was);
    return nami_bert_check_row(&w->shape, path, sample, row, used);
}

static nami_status add_rows(work *w, int part, const uint16_t *row, int64_t rows)
{
    int64_t width = nami_bert_row(w->shape.time, w->shape.slots);
    int64_t from = part == 0 ? w->done : w->done - w->cut;
    w->sum[part] = nami_tokens_checksum(w->sum[part], row, rows * width, 2);
    w->done += rows;
    return nami_store_write(w->sink[part].store, "/samples", from * width, rows * width,
                            row);
}

/* `rows` samples of the block that starts at sample `from` of a shard. */
static nami_status take_rows(work *w, const char *path, int64_t from, int64_t rows)
{
    int64_t width = nami_bert_row(w->shape.time, w->shape.slots);
    int64_t first = w->cut - w->done;
    first = first < 0 ? 0 : first > rows ? rows : first;
    for (int64_t i = 0; i < rows; i++) {
        int part = i < first ? 0 : 1;
        int64_t used;
        NAMI_TRY(make_row(w, path, from + i, i, w->row + i * width, &used));
        w->masked[part] = used > w->masked[part] ? used : w->masked[part];
    }
    if (first > 0)
        NAMI_TRY(add_rows(w, 0, w->row, first));
    if (first < rows)
        NAMI_TRY(add_rows(w, 1, w->row + first * width, rows - first));
    nami_progress("import: %lld of %lld samples", (long long)w->done,
                  (long long)w->total);
    return NAMI_OK;
}

/* --- all of it --- */

static nami_status open_input(const work *w, int input, nami_store **out)
{
    const char *path = w->order->input[input];
    struct stat in, have;
    *out = NULL;
    if (stat(path, &in) == 0)
        for (int part = 0; part < w->parts; part++) {
            char *name = nami_import_path(w->order, part);
            bool same = stat(name, &have) == 0 && in.st_dev == have.st_dev &&
                        in.st_ino == have.st_ino;
            nami_free(name);
            if (same)
                return nami_fail(NAMI_EINPUT, "%s is an input and the output", path);
        }
    return nami_store_open(NULL, path, out);
}

static nami_status look_at_inputs(work *w)
{
    for (int i = 0; i < w->order->inputs; i++) {
        nami_store *s;
        NAMI_TRY(open_input(w, i, &s));
        nami_status status = check_shapes(w, s, i);
        (void)nami_store_close(s);
        NAMI_TRY(status);
    }
    w->cut = w->parts == 2 ? (int64_t)((double)w->total * w->order->split) : w->total;
    if (w->cut < 1 || (w->parts == 2 && w->cut == w->total))
        return nami_fail(NAMI_EINPUT, "%lld samples are too few%s", (long long)w->total,
                         w->parts == 2 ? " for this split" : "");
    return NAMI_OK;
}

static nami_status open_sinks(work *w)
{
    for (int part = 0; part < w->parts; part++) {
        char *path = nami_import_path(w->order, part);
        const int64_t extent[2] = {part == 0 ? w->cut : w->total - w->cut,
                                   nami_bert_row(w->shape.time, w->shape.slots)};
        nami_status status = nami_sink_begin(path, &w->sink[part]);
        if (status == NAMI_OK)
            status = nami_store_define(w->sink[part].store, "/samples", NAMI_STORE_U16,
                                       2, extent);
        nami_free(path);
        NAMI_TRY(status);
    }
    return NAMI_OK;
}

static nami_status copy_input(work *w, int input)
{
    const char *path = w->order->input[input];
    int64_t most = BLOCK / w->shape.time;
    nami_store *s;
    NAMI_TRY(open_input(w, input, &s));
    nami_status status = NAMI_OK;
    for (int64_t at = 0; at < w->samples[input] && status == NAMI_OK; at += most) {
        int64_t left = w->samples[input] - at, n = left < most ? left : most;
        for (int a = 0; a < ARRAYS && status == NAMI_OK; a++)
            status = nami_store_integers(s, arrays[a].name, at * width_of(w, a),
                                         n * width_of(w, a), w->raw[a]);
        if (status == NAMI_OK)
            status = take_rows(w, path, at, n);
    }
    (void)nami_store_close(s);
    return status;
}

static nami_status set_attributes(const work *w, int part, const char *source)
{
    nami_store *store = w->sink[part].store;
    char sum[16];
    NAMI_TRY(nami_store_set_text(store, "kind", NAMI_BERT_SAMPLES_KIND));
    NAMI_TRY(
        nami_store_set_int(store, "samples", part == 0 ? w->cut : w->total - w->cut));
    NAMI_TRY(nami_store_set_int(store, "time", w->shape.time));
    NAMI_TRY(nami_store_set_int(store, "slots", w->shape.slots));
    NAMI_TRY(nami_store_set_int(store, "masked", w->masked[part]));
    NAMI_TRY(nami_store_set_int(store, "vocabulary", w->shape.vocabulary));
    NAMI_TRY(nami_store_set_text(store, "checksum",
                                 nami_tokens_sum_text(sum, w->sum[part])));
    NAMI_TRY(nami_store_set_text(store, "wordpiece", ""));
    return nami_store_set_text(store, "source", source);
}

static nami_status finish(work *w)
{
    char *source = nami_import_names(w->order);
    nami_status status = NAMI_OK;
    for (int part = 0; part < w->parts && status == NAMI_OK; part++) {
        status = set_attributes(w, part, source);
        char *summary = nami_strf(
            "%lld samples of %lld tokens, up to %lld masked, vocabulary %lld, crc32 "
            "%08x",
            (long long)(part == 0 ? w->cut : w->total - w->cut),
            (long long)w->shape.time, (long long)w->masked[part],
            (long long)w->shape.vocabulary, (unsigned)w->sum[part]);
        if (status == NAMI_OK)
            status = nami_sink_end(&w->sink[part], summary);
        nami_free(summary);
    }
    nami_free(source);
    for (int part = 0; part < w->parts && status == NAMI_OK; part++)
        status = nami_sink_publish(&w->sink[part]);
    return status;
}

static nami_status carry_out(work *w)
{
    NAMI_TRY(nami_import_check(w->order, NULL, 0));
    NAMI_TRY(look_at_inputs(w));
    NAMI_TRY(open_sinks(w));
    int64_t most = BLOCK / w->shape.time;
    for (int a = 0; a < ARRAYS; a++)
        w->raw[a] = nami_alloc(NAMI_MEM_DATA,
                               (size_t)(most * width_of(w, a)) * sizeof **w->raw);
    w->row = nami_alloc(NAMI_MEM_DATA,
                        (size_t)(most * nami_bert_row(w->shape.time, w->shape.slots)) *
                            sizeof *w->row);
    for (int i = 0; i < w->order->inputs; i++)
        NAMI_TRY(copy_input(w, i));
    return finish(w);
}

nami_status nami_import_nvidia_bert(const nami_import *im)
{
    enum { OWN = 30522 }; /* of BERT's uncased models */
    work w = {.order = im, .parts = im->split > 0 ? 2 : 1};
    w.shape.vocabulary = im->vocabulary ? im->vocabulary : OWN;
    w.samples = nami_calloc(NAMI_MEM_OTHER, (size_t)im->inputs, sizeof *w.samples);
    nami_status status = carry_out(&w);
    for (int part = 0; part < w.parts; part++)
        nami_sink_close(&w.sink[part]);
    for (int a = 0; a < ARRAYS; a++)
        nami_free(w.raw[a]);
    nami_free(w.row);
    nami_free(w.samples);
    return status;
}
