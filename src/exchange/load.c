/* SPDX-License-Identifier: MIT */
/* load.c - parameters of a model from a file with PyTorch's names.
 */
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"
#include "model/family.h"

/* A file and a model. */
typedef struct matching {
    const nami_model *model;
    nami_exchange *file;
    const char *path;
    bool gpt, tied, turned; /* turned: its matrices are [in,out] */
    bool padded;            /* skips without projections */
    int *array;             /* [params] of the file, -1: none */
    int head;               /* array of a tied head, -1: none */
} matching;

static int find(const nami_model *m, const char *name)
{
    for (int i = 0; i < m->params; i++)
        if (!strcmp(m->param[i].name, name))
            return i;
    return -1;
}

static nami_status match_array(matching *k, int i)
{
    char *own = nami_exchange_own(k->model->family->name, k->file->array[i].name);
    if (!own)
        return NAMI_OK;
    const int p = find(k->model, own);
    const bool head = k->gpt && k->tied && !strcmp(own, "lm_head.weight");
    nami_status status = NAMI_OK;
    if (head && k->head < 0)
        k->head = i;
    else if (p >= 0 && k->array[p] < 0)
        k->array[p] = i;
    else
        status =
            nami_fail(NAMI_EINPUT, "%s: array %s: %s", k->path, k->file->array[i].name,
                      p < 0 && !head ? "the model has no parameter of this name"
                                     : "there are two for one parameter");
    nami_free(own);
    return status;
}

static bool has_no_projection(const matching *k)
{
    for (int p = 0; p < k->model->params; p++)
        if (k->array[p] >= 0 &&
            nami_exchange_padded(k->model->family->name, k->model->param[p].name))
            return false;
    return true;
}

/* Whether parameter p takes the place of zeros. */
static bool is_pad(const matching *k, int p)
{
    return k->padded && k->array[p] < 0 &&
           nami_exchange_padded(k->model->family->name, k->model->param[p].name);
}

static nami_status match_names(matching *k)
{
    for (int p = 0; p < k->model->params; p++)
        k->array[p] = -1;
    for (int i = 0; i < k->file->arrays; i++)
        NAMI_TRY(match_array(k, i));
    k->padded = has_no_projection(k);
    for (int p = 0; p < k->model->params; p++)
        if (k->array[p] < 0 && !is_pad(k, p))
            return nami_fail(NAMI_EINPUT, "%s: parameter %s of the model is missing",
                             k->path, k->model->param[p].name);
    return NAMI_OK;
}

/* An array with its two axes exchanged. */
static nami_exchange_array turn(const nami_exchange_array *a)
{
    nami_exchange_array b = *a;
    for (int i = 0; i < 2; i++) {
        b.dim[i] = a->dim[1 - i];
        b.stride[i] = a->stride[1 - i];
    }
    return b;
}

/* The array for parameter p as the model has it. */
static nami_exchange_array array_for(const matching *k, int p)
{
    const nami_exchange_array *a = &k->file->array[k->array[p]];
    const bool matrix =
        nami_exchange_turned(k->model->family->name, k->model->param[p].name);
    return k->turned && matrix && a->rank == 2 ? turn(a) : *a;
}

static void find_orientation(matching *k)
{
    const int p = k->gpt ? find(k->model, "transformer.h.0.attn.c_attn.weight") : -1;
    if (p < 0)
        return;
    const nami_exchange_array *a = &k->file->array[k->array[p]];
    const int64_t *dim = k->model->param[p].shape.dim;
    k->turned = a->rank == 2 && a->dim[0] == dim[1] && a->dim[1] == dim[0];
}

static bool same_shape(const nami_exchange_array *a, const nami_shape *shape)
{
    if (a->rank != shape->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != shape->dim[i])
            return false;
    return true;
}

static nami_status wrong_shape(const matching *k, const nami_exchange_array *a,
                               const nami_param *param)
{
    nami_text expected = {0}, found = {0};
    nami_shape_print(&param->shape, &expected);
    for (int i = 0; i < a->rank; i++)
        nami_text_add(&found, "%s%lld", i ? "," : "", (long long)a->dim[i]);
    nami_status status = nami_fail(
        NAMI_EINPUT, "%s: array %s is [%s], and parameter %s of the model %s", k->path,
        a->name, nami_text_get(&found), param->name, nami_text_get(&expected));
    nami_text_free(&expected);
    nami_text_free(&found);
    return status;
}

static nami_status check_shapes(const matching *k)
{
    for (int p = 0; p < k->model->params; p++) {
        if (is_pad(k, p))
            continue;
        nami_exchange_array a = array_for(k, p);
        if (!same_shape(&a, &k->model->param[p].shape))
            return wrong_shape(k, &a, &k->model->param[p]);
    }
    return NAMI_OK;
}

/* A tied head must be the embedding. */
static nami_status check_head(const matching *k)
{
    const nami_model *m = k->model;
    if (k->head < 0)
        return NAMI_OK;
    const int p = find(m, "transformer.wte.weight");
    const nami_exchange_array *head = &k->file->array[k->head];
    if (!same_shape(head, &m->param[p].shape))
        return wrong_shape(k, head, &m->param[p]);
    const size_t bytes = (size_t)nami_shape_count(&m->param[p].shape) * sizeof(float);
    float *a = nami_alloc(NAMI_MEM_OTHER, bytes),
          *b = nami_alloc(NAMI_MEM_OTHER, bytes);
    nami_status status = nami_exchange_read(k->file, head, a);
    if (status == NAMI_OK)
        status = nami_exchange_read(k->file, &k->file->array[k->array[p]], b);
    if (status == NAMI_OK && memcmp(a, b, bytes) != 0)
        status = nami_fail(NAMI_EINPUT,
                           "%s: array %s is not the embedding, and model.tied = yes",
                           k->path, head->name);
    nami_free(b);
    nami_free(a);
    return status;
}

/* The parameters that this rank holds. */
static nami_status read_all(const matching *k, float *const *data)
{
    for (int p = 0; p < k->model->params; p++) {
        if (is_pad(k, p)) {
            if (data[p])
                nami_exchange_pad(&k->model->param[p], data[p]);
            continue;
        }
        nami_exchange_array a = array_for(k, p);
        if (data[p])
            NAMI_TRY(nami_exchange_read(k->file, &a, data[p]));
    }
    return NAMI_OK;
}

static nami_status load(matching *k, bool leads, float *const *data)
{
    NAMI_TRY(nami_exchange_open(k->path, &k->file));
    NAMI_TRY(match_names(k));
    find_orientation(k);
    NAMI_TRY(check_shapes(k));
    if (leads)
        NAMI_TRY(check_head(k));
    return read_all(k, data);
}

nami_status nami_exchange_load(nami_comm *c, const char *path, const nami_model *m,
                               float *const *data)
{
    matching k = {.model = m,
                  .path = path,
                  .gpt = !strcmp(m->family->name, "gpt"),
                  .tied = m->options.tied,
                  .head = -1};
    k.array = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params + 1, sizeof *k.array);
    nami_status status = load(&k, !c || nami_comm_rank(c) == 0, data);
    nami_exchange_close(k.file);
    nami_free(k.array);
    return nami_comm_settle(c, status);
}
