/* SPDX-License-Identifier: MIT */
/* load.c - parameters of a model from a file with PyTorch's names.
 */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "exchange/names.h"
#include "model/family.h"

/* What an array of the file is. */
typedef struct use {
    int param;        /* -1: none */
    int64_t from, to; /* rows of it */
    bool twin;        /* a copy, only compared */
    int next;         /* array of the same parameter, -1: the last */
} use;

/* A file and a model. */
typedef struct matching {
    const nami_model *model;
    const nami_names *names;
    nami_exchange *file;
    const char *path;
    bool turned; /* its matrices are [in,out] */
    bool padded; /* skips without projections */
    use *use;    /* [arrays] of the file */
    int *array;  /* [params] the first of the file for each, -1: none */
} matching;

static int find(const nami_model *m, const char *name)
{
    for (int i = 0; i < m->params; i++)
        if (!strcmp(m->param[i].name, name))
            return i;
    return -1;
}

static void use_rows(const matching *k, const nami_name_row *row, use *u)
{
    int64_t cut[NAMI_NAMES_PARTS + 1];
    u->from = 0;
    u->to = k->model->param[u->param].shape.dim[0];
    if (!row || !row->split)
        return;
    row->split(&k->model->options, u->to, cut);
    u->from = cut[row->part];
    u->to = cut[row->part + 1];
}

/* The first candidate that the model has; u->param -1: none. */
static void find_use(const matching *k, const char *name, use *u)
{
    nami_names_found place;
    for (int c = 0; u->param < 0 && nami_names_place(k->names, name, c, &place); c++) {
        u->param = find(k->model, place.own);
        u->twin = place.row && place.row->twin;
        if (u->param >= 0)
            use_rows(k, place.row, u);
        nami_free(place.own);
    }
}

/* Add array i to those of its parameter, in order of rows. */
static nami_status add_use(matching *k, int i)
{
    const use *u = &k->use[i];
    int *at = &k->array[u->param];
    while (*at >= 0 && k->use[*at].to <= u->from)
        at = &k->use[*at].next;
    if (*at >= 0 && k->use[*at].from < u->to)
        return nami_fail(
            NAMI_EINPUT,
            "%s: array %s: there are two for one parameter, %s is the other", k->path,
            k->file->array[i].name, k->file->array[*at].name);
    k->use[i].next = *at;
    *at = i;
    return NAMI_OK;
}

static nami_status match_array(matching *k, int i)
{
    const char *name = k->file->array[i].name;
    k->use[i] = (use){.param = -1, .next = -1};
    if (nami_names_none(k->names, name))
        return NAMI_OK;
    find_use(k, name, &k->use[i]);
    if (k->use[i].param < 0)
        return nami_fail(NAMI_EINPUT,
                         "%s: array %s: the model has no parameter of this name",
                         k->path, name);
    return k->use[i].twin ? NAMI_OK : add_use(k, i);
}

static bool has_no_projection(const matching *k)
{
    for (int p = 0; p < k->model->params; p++)
        if (k->array[p] >= 0 && nami_names_padded(k->names, k->model->param[p].name))
            return false;
    return true;
}

/* Whether parameter p takes the place of zeros. */
static bool is_pad(const matching *k, int p)
{
    return k->padded && k->array[p] < 0 &&
           nami_names_padded(k->names, k->model->param[p].name);
}

/* Whether arrays cover all rows of parameter p. */
static nami_status check_rows(const matching *k, int p)
{
    const nami_param *param = &k->model->param[p];
    int64_t done = 0, gap = 0;
    if (k->array[p] < 0)
        return nami_fail(NAMI_EINPUT, "%s: parameter %s of the model is missing",
                         k->path, param->name);
    for (int i = k->array[p]; i >= 0 && !gap; i = k->use[i].next) {
        gap = k->use[i].from - done;
        done = gap ? done : k->use[i].to;
    }
    if (done < param->shape.dim[0])
        return nami_fail(NAMI_EINPUT,
                         "%s: parameter %s of the model: the array for its rows from "
                         "%lld on is missing, %s is there",
                         k->path, param->name, (long long)done,
                         k->file->array[k->array[p]].name);
    return NAMI_OK;
}

/* Whether parameter p belongs to a head of which the file has nothing, no second copy either. */
static bool is_left(const matching *k, int p)
{
    const int head = nami_names_head(k->names, k->model->param[p].name);
    for (int i = 0; head >= 0 && i < k->file->arrays; i++)
        if (k->use[i].twin &&
            nami_names_head(k->names, k->model->param[k->use[i].param].name) == head)
            return false;
    for (int q = 0; head >= 0 && q < k->model->params; q++)
        if (k->array[q] >= 0 &&
            nami_names_head(k->names, k->model->param[q].name) == head)
            return false;
    return head >= 0;
}

static void tell_heads(const matching *k)
{
    for (int i = 0; k->names->heads && k->names->heads[i]; i++) {
        bool left = false;
        for (int p = 0; p < k->model->params && !left; p++)
            left = nami_names_head(k->names, k->model->param[p].name) == i &&
                   is_left(k, p);
        if (left)
            nami_log(NAMI_INFO, "%s has no %s: these parameters keep their values",
                     k->path, k->names->heads[i]);
    }
}

static nami_status match_names(matching *k)
{
    for (int p = 0; p < k->model->params; p++)
        k->array[p] = -1;
    for (int i = 0; i < k->file->arrays; i++)
        NAMI_TRY(match_array(k, i));
    k->padded = has_no_projection(k);
    for (int p = 0; p < k->model->params; p++)
        if (!is_pad(k, p) && !is_left(k, p))
            NAMI_TRY(check_rows(k, p));
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

static bool is_matrix(const matching *k, int i)
{
    return k->file->array[i].rank == 2 &&
           nami_names_turned(k->names, k->model->param[k->use[i].param].name);
}

/* Array i as the model has it. */
static nami_exchange_array array_for(const matching *k, int i)
{
    const nami_exchange_array *a = &k->file->array[i];
    return k->turned && is_matrix(k, i) ? turn(a) : *a;
}

/* The shape that array i should have. */
static nami_shape shape_for(const matching *k, int i)
{
    nami_shape shape = k->model->param[k->use[i].param].shape;
    shape.dim[0] = k->use[i].to - k->use[i].from;
    return shape;
}

/* All alike, so the first that is not square tells. */
static void find_orientation(matching *k)
{
    for (int i = 0; i < k->file->arrays; i++) {
        if (k->use[i].param < 0 || !is_matrix(k, i))
            continue;
        const int64_t *dim = k->file->array[i].dim;
        const nami_shape shape = shape_for(k, i);
        if (shape.dim[0] == shape.dim[1])
            continue;
        k->turned = dim[0] == shape.dim[1] && dim[1] == shape.dim[0];
        return;
    }
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

static nami_status wrong_shape(const matching *k, int i, const nami_exchange_array *a)
{
    const nami_param *param = &k->model->param[k->use[i].param];
    const nami_shape shape = shape_for(k, i);
    const bool part = shape.dim[0] != param->shape.dim[0];
    nami_text expected = {0}, found = {0};
    nami_shape_print(&shape, &expected);
    for (int d = 0; d < a->rank; d++)
        nami_text_add(&found, "%s%lld", d ? "," : "", (long long)a->dim[d]);
    nami_status status = nami_fail(
        NAMI_EINPUT, "%s: array %s is [%s], and %sparameter %s of the model %s",
        k->path, a->name, nami_text_get(&found), part ? "its part of " : "",
        param->name, nami_text_get(&expected));
    nami_text_free(&expected);
    nami_text_free(&found);
    return status;
}

static nami_status check_shapes(const matching *k)
{
    for (int i = 0; i < k->file->arrays; i++) {
        if (k->use[i].param < 0)
            continue;
        const nami_exchange_array a = array_for(k, i);
        const nami_shape shape = shape_for(k, i);
        if (!same_shape(&a, &shape))
            return wrong_shape(k, i, &a);
    }
    return NAMI_OK;
}

/* Parameter p from its arrays. */
static nami_status read_param(const matching *k, int p, float *data)
{
    const nami_shape *shape = &k->model->param[p].shape;
    const int64_t row = nami_shape_count(shape) / shape->dim[0];
    nami_status status = NAMI_OK;
    for (int i = k->array[p]; i >= 0 && status == NAMI_OK; i = k->use[i].next) {
        const nami_exchange_array a = array_for(k, i);
        status = nami_exchange_read(k->file, &a, data + k->use[i].from * row);
    }
    return status;
}

/* A second copy of a parameter, as of a tied head, must be equal to it. */
static nami_status check_twin(const matching *k, int i)
{
    const int p = k->use[i].param;
    const char *own = k->model->param[p].name;
    const nami_exchange_array a = array_for(k, i);
    const size_t bytes =
        (size_t)nami_shape_count(&k->model->param[p].shape) * sizeof(float);
    float *copy = nami_alloc(NAMI_MEM_OTHER, bytes),
          *data = nami_alloc(NAMI_MEM_OTHER, bytes);
    nami_status status = nami_exchange_read(k->file, &a, copy);
    if (status == NAMI_OK)
        status = read_param(k, p, data);
    if (status == NAMI_OK && memcmp(copy, data, bytes) != 0)
        status =
            nami_fail(NAMI_EINPUT,
                      "%s: array %s is not equal to %s, and they are one parameter "
                      "of the model, %s",
                      k->path, a.name, k->file->array[k->array[p]].name, own);
    nami_free(data);
    nami_free(copy);
    return status;
}

static nami_status check_twins(const matching *k)
{
    for (int i = 0; i < k->file->arrays; i++)
        if (k->use[i].param >= 0 && k->use[i].twin)
            NAMI_TRY(check_twin(k, i));
    return NAMI_OK;
}

/* The parameters that this rank holds. */
static nami_status read_all(const matching *k, float *const *data)
{
    for (int p = 0; p < k->model->params; p++) {
        if (!data[p] || is_left(k, p))
            continue;
        if (is_pad(k, p))
            nami_exchange_pad(&k->model->param[p], data[p]);
        else
            NAMI_TRY(read_param(k, p, data[p]));
    }
    return NAMI_OK;
}

static nami_status load(matching *k, bool leads, float *const *data)
{
    NAMI_TRY(nami_exchange_open(k->path, &k->file));
    k->use = nami_calloc(NAMI_MEM_OTHER, (size_t)k->file->arrays + 1, sizeof *k->use);
    NAMI_TRY(match_names(k));
    find_orientation(k);
    NAMI_TRY(check_shapes(k));
    if (leads) {
        tell_heads(k);
        NAMI_TRY(check_twins(k));
    }
    return read_all(k, data);
}

nami_status nami_exchange_load(nami_comm *c, const char *path, const nami_model *m,
                               float *const *data)
{
    matching k = {.model = m, .names = nami_names_of(m->family->name), .path = path};
    k.array = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params + 1, sizeof *k.array);
    nami_status status = load(&k, !c || nami_comm_rank(c) == 0, data);
    nami_exchange_close(k.file);
    nami_free(k.use);
    nami_free(k.array);
    return nami_comm_settle(c, status);
}
