/* SPDX-License-Identifier: MIT */
/* load.c - read slabs of a checkpoint straight to where they belong. */
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "ckpt/inner.h"

static bool same_shape(const nami_shape *shape, int rank, const int64_t extent[4])
{
    if (shape->rank == 0)
        return rank == 1 && extent[0] == 1;
    if (rank != shape->rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (extent[i] != shape->dim[i])
            return false;
    return true;
}

static nami_status wrong_shape(const char *path, const nami_ckpt_item *item, int rank,
                               const int64_t extent[4])
{
    nami_text expected = {0}, found = {0};
    nami_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dim[i] = extent[i];
    nami_shape_print(&item->shape, &expected);
    nami_shape_print(&shape, &found);
    nami_status status = nami_fail(
        NAMI_ERESTART, "%s: array %s/%s is %s in the checkpoint and %s in the model",
        path, item->group, item->name, nami_text_get(&found), nami_text_get(&expected));
    nami_text_free(&expected);
    nami_text_free(&found);
    return status;
}

static nami_status load_item(nami_store *s, const char *path,
                             const nami_ckpt_item *item)
{
    nami_store_type type;
    int rank;
    int64_t extent[4];
    char *name = nami_strf("/%s/%s", item->group, item->name);
    nami_status status = nami_store_shape_alone(s, name, &type, &rank, extent);
    if (status == NAMI_OK && rank < 0)
        status = nami_fail(NAMI_ERESTART, "%s: array %s/%s of the model is missing",
                           path, item->group, item->name);
    else if (status == NAMI_OK &&
             (type != NAMI_STORE_F32 || !same_shape(&item->shape, rank, extent)))
        status = wrong_shape(path, item, rank, extent);
    else if (status == NAMI_OK && item->count > 0)
        status = nami_store_read_alone(s, name, item->from, item->count, item->data);
    nami_free(name);
    return nami_ckpt_restart(status);
}

static nami_status verify_if_new(nami_comm *c, const char *path)
{
    int verified = nami_ckpt_leads(c) && nami_ckpt_verified(path);
    if (c)
        nami_comm_broadcast(c, &verified, sizeof verified, 0);
    return verified ? NAMI_OK : nami_ckpt_verify(c, path);
}

nami_status nami_ckpt_load(nami_comm *c, const char *path, const nami_ckpt_item *item,
                           int items)
{
    nami_store *s = NULL;
    NAMI_TRY(verify_if_new(c, path));
    nami_status status = nami_ckpt_restart(nami_store_open(NULL, path, &s));
    struct stat st;
    nami_ckpt_extend(c, stat(path, &st) == 0 ? (double)st.st_size : 0);
    for (int i = 0; i < items && status == NAMI_OK; i++)
        status = load_item(s, path, &item[i]);
    if (s)
        (void)nami_store_close(
            s); /* nothing can be lost in closing a file that was read */
    status = nami_comm_settle(c, status);
    nami_ckpt_extend(c, 0);
    return status;
}
