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

enum { HUGGING_FACE, NANOGPT };
enum { F32, BF16 };

typedef struct export_options {
    int layout, dtype;
} export_options;

static const char *const layouts[] = {"huggingface", "nanogpt", NULL};
static const char *const dtypes[] = {"f32", "bf16", NULL};

static const nami_option rows[] = {
    {.key = "layout",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(export_options, layout),
     .fallback = "huggingface",
     .choices = layouts,
     .help = "Of GPT-2's four matrices: huggingface, [in,out]; nanogpt, [out,in]."},
    {.key = "dtype",
     .kind = NAMI_OPTION_CHOICE,
     .offset = offsetof(export_options, dtype),
     .fallback = "f32",
     .choices = dtypes,
     .help = "Type of the elements; bf16 rounds to the nearest."},
};

static const nami_option_table table = {rows, sizeof rows / sizeof *rows};

#define GROUP "/parameters/"

/* An array of the checkpoint. */
typedef struct parameter {
    const char *name; /* behind GROUP */
    nami_shape shape;
    bool turned; /* written as [in,out] */
} parameter;

static nami_status find_parameters(nami_store *s, const char *path, char **name,
                                   int count, const char *family, parameter *out)
{
    for (int i = 0; i < count; i++) {
        nami_store_type type;
        NAMI_TRY(
            nami_store_shape(s, name[i], &type, &out[i].shape.rank, out[i].shape.dim));
        if (type != NAMI_STORE_F32 || out[i].shape.rank < 1)
            return nami_fail(NAMI_ERESTART, "%s: array %s is not of type f32", path,
                             name[i]);
        out[i].name = name[i] + strlen(GROUP);
        out[i].turned = family && nami_exchange_turned(family, out[i].name) &&
                        out[i].shape.rank == 2;
    }
    return NAMI_OK;
}

static void turn(const nami_shape *shape, const float *in, float *out)
{
    const int64_t rows_in = shape->dim[0], columns = shape->dim[1];
    for (int64_t i = 0; i < rows_in; i++)
        for (int64_t k = 0; k < columns; k++)
            out[k * rows_in + i] = in[i * columns + k];
}

static nami_status copy(nami_store *s, const char *full, const parameter *p,
                        nami_exchange_writer *w)
{
    const int64_t count = nami_shape_count(&p->shape);
    const size_t bytes = (size_t)count * sizeof(float);
    float *data = nami_alloc(NAMI_MEM_OTHER, bytes), *turned = NULL;
    nami_status status = nami_store_read(s, full, 0, count, data);
    if (status == NAMI_OK && p->turned) {
        turned = nami_alloc(NAMI_MEM_OTHER, bytes);
        turn(&p->shape, data, turned);
    }
    if (status == NAMI_OK)
        status = nami_exchange_write(w, count, turned ? turned : data);
    nami_free(turned);
    nami_free(data);
    return status;
}

static nami_status write_file(nami_store *s, char **name, const parameter *p, int count,
                              const char *path, nami_exchange_kind kind)
{
    nami_exchange_writer *w;
    nami_status status = nami_exchange_create(path, kind, &w);
    if (status != NAMI_OK)
        return status;
    for (int i = 0; i < count; i++) {
        nami_shape shape = p[i].shape;
        for (int k = 0; k < 2 && p[i].turned; k++)
            shape.dim[k] = p[i].shape.dim[1 - k];
        nami_exchange_declare(w, p[i].name, &shape);
    }
    for (int i = 0; i < count && status == NAMI_OK; i++)
        status = copy(s, name[i], &p[i], w);
    return nami_exchange_finish(w, status);
}

static nami_status export_file(const nami_call *call, const char *family)
{
    const export_options *o = call->options;
    nami_store *s;
    char **name = NULL;
    int count = 0;
    NAMI_TRY(nami_store_open(NULL, call->word[0], &s));
    nami_status status = nami_store_names(s, "/parameters", &name, &count);
    parameter *p = nami_calloc(NAMI_MEM_OTHER, (size_t)count + 1, sizeof *p);
    if (status == NAMI_OK)
        status = find_parameters(s, call->word[0], name, count,
                                 o->layout == NANOGPT ? NULL : family, p);
    if (status == NAMI_OK)
        status = write_file(s, name, p, count, call->word[1],
                            o->dtype == BF16 ? NAMI_EXCHANGE_BF16 : NAMI_EXCHANGE_F32);
    if (status == NAMI_OK)
        nami_log(NAMI_INFO, "%s: %d arrays of family %s", call->word[1], count, family);
    nami_free(p);
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

/* Files of image families have one layout. */
static nami_status check_layout(const export_options *o, const char *family)
{
    if (o->layout == NANOGPT && strcmp(family, "gpt") != 0)
        return nami_fail(NAMI_EINPUT,
                         "--layout nanogpt is for GPT-2, but the checkpoint is of "
                         "family %s",
                         family);
    return NAMI_OK;
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
        status = check_layout(call->options, nami_family_names[settings.model.family]);
    if (status == NAMI_OK)
        status = export_file(call, nami_family_names[settings.model.family]);
    nami_settings_release(&settings);
    nami_ckpt_state_free(&state);
    return status;
}

const nami_command nami_cli_export = {
    .name = "export",
    .words = "CHECKPOINT FILE.safetensors",
    .summary = "write a checkpoint's parameters as a safetensors file",
    .text =
        "Names are nanoGPT's, which are Hugging Face's of GPT-2, and torchvision's\n"
        "of image models. train.init reads such a file.\n",
    .options = &table,
    .size = sizeof(export_options),
    .fewest = 2,
    .most = 2,
    .run = run,
};
