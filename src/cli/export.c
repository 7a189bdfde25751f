/* SPDX-License-Identifier: MIT */
/* export.c - nami export: the parameters of a checkpoint as a safetensors file. */
#include "ckpt/ckpt.h"
#include "cli/deck.h"
#include "exchange/exchange.h"
#include "model/family.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"

enum { F32, BF16 };

enum { DEFAULT };

typedef struct export_options {
    int layout, dtype;
} export_options;

static const char *const layouts[] = {"default", "huggingface", "nanogpt",
                                      "torchvision", NULL};
static const char *const dtypes[] = {"f32", "bf16", NULL};

static const nami_option rows[] = {
    {.key = "layout",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(export_options, layout),
     .fallback = "default",
     .choices = layouts,
     .help = "Whose names and shapes: of family gpt huggingface, its four matrices "
             "[in,out], or nanogpt, [out,in]; of bert and llama huggingface; of vit "
             "huggingface or torchvision; of image models torchvision. default: the "
             "first that the family has."},
    {.key = "dtype",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(export_options, dtype),
     .fallback = "f32",
     .choices = dtypes,
     .help = "Type of the elements; bf16 rounds to the nearest."},
};

static const nami_option_table table = {rows, sizeof rows / sizeof *rows};

#define GROUP "/parameters/"

/* An array to be written, and where it comes from. */
typedef struct piece {
    const char *full; /* array of the checkpoint */
    nami_shape shape; /* of the rows taken, as they lie there */
    int64_t row;      /* elements of a row */
    nami_exchange_piece what;
} piece;

typedef struct pieces {
    piece *piece; /* [count] */
    int count;
} pieces;

static void add_pieces(pieces *all, const nami_model_options *o, const char *layout,
                       const char *full, const nami_shape *shape)
{
    const nami_param_rows param = {full + strlen(GROUP), shape->dim[0]};
    nami_exchange_piece what;
    for (int k = 0; nami_exchange_piece_of(o, layout, &param, k, &what); k++) {
        all->piece = nami_realloc(NAMI_MEM_OTHER, all->piece,
                                  ((size_t)all->count + 1) * sizeof *all->piece);
        piece *p = &all->piece[all->count++];
        *p = (piece){.full = full, .shape = *shape, .what = what};
        p->row = shape->dim[0] ? nami_shape_count(shape) / shape->dim[0] : 0;
        p->shape.dim[0] = what.to - what.from;
        p->what.turned = what.turned && shape->rank == 2;
    }
}

static nami_status find_pieces(nami_store *s, const char *path, char **name, int count,
                               const nami_model_options *o, const char *layout,
                               pieces *all)
{
    for (int i = 0; i < count; i++) {
        nami_store_type type;
        nami_shape shape = {0};
        NAMI_TRY(nami_store_shape(s, name[i], &type, &shape.rank, shape.dim));
        if (type != NAMI_STORE_F32 || shape.rank < 1)
            return nami_fail(NAMI_ERESTART, "%s: array %s is not of type f32", path,
                             name[i]);
        add_pieces(all, o, layout, name[i], &shape);
    }
    return NAMI_OK;
}

static void free_pieces(pieces *all)
{
    for (int i = 0; i < all->count; i++)
        nami_free(all->piece[i].what.name);
    nami_free(all->piece);
}

static void turn(const nami_shape *shape, const float *in, float *out)
{
    const int64_t rows_in = shape->dim[0], columns = shape->dim[1];
    for (int64_t i = 0; i < rows_in; i++)
        for (int64_t k = 0; k < columns; k++)
            out[k * rows_in + i] = in[i * columns + k];
}

static nami_status copy(nami_store *s, const piece *p, nami_exchange_writer *w)
{
    const int64_t count = nami_shape_count(&p->shape);
    const size_t bytes = (size_t)count * sizeof(float);
    float *data = nami_alloc(NAMI_MEM_OTHER, bytes), *turned = NULL;
    nami_status status =
        nami_store_read(s, p->full, p->what.from * p->row, count, data);
    if (status == NAMI_OK && p->what.turned) {
        turned = nami_alloc(NAMI_MEM_OTHER, bytes);
        turn(&p->shape, data, turned);
    }
    if (status == NAMI_OK)
        status = nami_exchange_write(w, count, turned ? turned : data);
    nami_free(turned);
    nami_free(data);
    return status;
}

static nami_status write_file(nami_store *s, const pieces *all, const char *path,
                              nami_exchange_kind kind)
{
    nami_exchange_writer *w;
    nami_status status = nami_exchange_create(path, kind, &w);
    if (status != NAMI_OK)
        return status;
    for (int i = 0; i < all->count; i++) {
        const piece *p = &all->piece[i];
        nami_shape shape = p->shape;
        for (int k = 0; k < 2 && p->what.turned; k++)
            shape.dim[k] = p->shape.dim[1 - k];
        nami_exchange_declare(w, p->what.name, &shape);
    }
    for (int i = 0; i < all->count && status == NAMI_OK; i++)
        status = copy(s, &all->piece[i], w);
    return nami_exchange_finish(w, status);
}

/* Of the command; NULL: the family's first. */
static const char *layout_of(const nami_call *call)
{
    const export_options *o = call->options;
    return o->layout == DEFAULT ? NULL : layouts[o->layout];
}

static nami_status export_file(const nami_call *call, const nami_model_options *m)
{
    const export_options *o = call->options;
    nami_store *s;
    char **name = NULL;
    int count = 0;
    pieces all = {0};
    NAMI_TRY(nami_store_open(NULL, call->word[0], &s));
    nami_status status = nami_store_names(s, "/parameters", &name, &count);
    if (status == NAMI_OK)
        status = find_pieces(s, call->word[0], name, count, m, layout_of(call), &all);
    if (status == NAMI_OK)
        status = write_file(s, &all, call->word[1],
                            o->dtype == BF16 ? NAMI_EXCHANGE_BF16 : NAMI_EXCHANGE_F32);
    if (status == NAMI_OK)
        nami_log(NAMI_INFO, "%s: %d arrays of family %s", call->word[1], all.count,
                 nami_family_names[m->family]);
    free_pieces(&all);
    nami_store_names_free(name, count);
    (void)nami_store_close(s); /* it was only read */
    return status;
}

/* A name given by mistake, as that of the checkpoint, costs no file. */
static nami_status check_output(const char *path)
{
    unsigned char head[9] = {0};
    struct stat st;
    if (stat(path, &st) != 0)
        return NAMI_OK;
    FILE *f = S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
    size_t got = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        (void)fclose(f);
    if (f &&
        (st.st_size == 0 || (got == sizeof head && head[7] == 0 && head[8] == '{')))
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT,
                     "%s exists and is not a safetensors file: it is not replaced",
                     path);
}

static nami_status run(const nami_call *call)
{
    nami_ckpt_state state = {0};
    nami_settings settings = {0};
    NAMI_TRY(check_output(call->word[1]));
    nami_status status = nami_ckpt_verify(NULL, call->word[0]);
    if (status == NAMI_OK)
        status = nami_ckpt_state_read(NULL, call->word[0], &state);
    if (status == NAMI_OK)
        status = nami_cli_deck_text(state.deck, call->word[0], &settings);
    if (status == NAMI_OK)
        status = nami_exchange_layout(nami_family_names[settings.model.family],
                                      layout_of(call));
    if (status == NAMI_OK)
        status = export_file(call, &settings.model);
    nami_settings_release(&settings);
    nami_ckpt_state_free(&state);
    return status;
}

const nami_command nami_cli_export = {
    .name = "export",
    .words = "CHECKPOINT FILE.safetensors",
    .summary = "write a checkpoint's parameters as a safetensors file",
    .text =
        "Names are Hugging Face's of GPT-2, which are nanoGPT's, of Llama and BERT,\n"
        "and torchvision's of image models. train.init reads such a file.\n",
    .options = &table,
    .size = sizeof(export_options),
    .fewest = 2,
    .most = 2,
    .run = run,
};
