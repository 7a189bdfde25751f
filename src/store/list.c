/* SPDX-License-Identifier: MIT */
/* list.c - which arrays there are, and their shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "store/inner.h"

/* Whether every group on the way to `name` and the array itself exist; asking for the whole path at once is an error
 * of the library when a group is missing. */
static bool exists(const nami_store *s, const char *name)
{
    char *path = nami_strdup(name);
    bool there = true;
    for (char *p = path + 1; there && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        there = H5Lexists(s->file, path, nami_store_own_array) > 0;
        *p = '/';
    }
    there = there && H5Lexists(s->file, path, nami_store_own_array) > 0;
    nami_free(path);
    return there;
}

/* type NULL: whole numbers of any width. */
static bool read_shape(hid_t array, nami_store_type *type, int *rank, int64_t extent[4])
{
    hid_t space = H5Dget_space(array), t = H5Dget_type(array);
    hsize_t size[NAMI_STORE_RANK] = {0};
    nami_store_type known = t < 0 ? NAMI_STORE_TYPES : nami_store_type_of(t);
    bool ok = type ? known != NAMI_STORE_TYPES : t >= 0 && nami_store_is_integer(t);
    if (type)
        *type = known;
    *rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    ok = ok && *rank >= 1 && *rank <= NAMI_STORE_RANK &&
         H5Sget_simple_extent_dims(space, size, NULL) >= 0;
    for (int i = 0; i < NAMI_STORE_RANK; i++) {
        ok = ok && size[i] <= INT64_MAX;
        extent[i] = (int64_t)size[i];
    }
    if (space >= 0)
        H5Sclose(space);
    if (t >= 0)
        H5Tclose(t);
    return ok;
}

/* The shape of an array; type NULL: of whole numbers of any width. */
static nami_status shape_of(nami_store *s, const char *name, nami_store_type *type,
                            int *rank, int64_t extent[4])
{
    nami_status status = NAMI_OK;
    NAMI_CHECK(!s->writing && name[0] == '/');
    *rank = -1;
    nami_store_lock();
    if (exists(s, name)) {
        hid_t array = H5Dopen2(s->file, name, nami_store_own_array);
        if (array < 0)
            status = nami_fail(NAMI_EINPUT, "%s: %s is not an array: %s", s->path, name,
                               nami_store_reason());
        else if (!read_shape(array, type, rank, extent))
            status =
                nami_fail(NAMI_EINPUT,
                          "%s: array %s is of a type or shape that nami does not know",
                          s->path, name);
        else
            status = nami_store_stored(s, name, array, extent, *rank);
        if (array >= 0)
            H5Dclose(array);
    }
    H5Eclear2(H5E_DEFAULT);
    nami_store_unlock();
    return status;
}

nami_status nami_store_shape_alone(nami_store *s, const char *name,
                                   nami_store_type *type, int *rank, int64_t extent[4])
{
    return shape_of(s, name, type, rank, extent);
}

nami_status nami_store_integers_shape(nami_store *s, const char *name, int *rank,
                                      int64_t extent[4])
{
    return shape_of(s, name, NULL, rank, extent);
}

nami_status nami_store_shape(nami_store *s, const char *name, nami_store_type *type,
                             int *rank, int64_t extent[4])
{
    return nami_comm_settle(s->comm,
                            nami_store_shape_alone(s, name, type, rank, extent));
}

typedef struct listing {
    const char *group;
    char **name;
    int count;
} listing;

static herr_t add_name(hid_t group, const char *name, const H5O_info_t *info,
                       void *context)
{
    listing *l = context;
    (void)group;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    l->name =
        nami_realloc(NAMI_MEM_OTHER, l->name, (size_t)(l->count + 1) * sizeof *l->name);
    l->name[l->count++] =
        nami_strf("%s/%s", strcmp(l->group, "/") ? l->group : "", name);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

nami_status nami_store_names(nami_store *s, const char *group, char ***names,
                             int *count)
{
    listing l = {.group = group};
    nami_status status = NAMI_OK;
    NAMI_CHECK(!s->writing && group[0] == '/');
    nami_store_lock();
    if (!strcmp(group, "/") || exists(s, group)) {
        hid_t g = H5Gopen2(s->file, group, nami_store_own_group);
        if (g < 0 ||
            H5Ovisit2(g, H5_INDEX_NAME, H5_ITER_INC, add_name, &l, H5O_INFO_BASIC) < 0)
            status = nami_fail(NAMI_EINPUT, "%s: group %s cannot be read: %s", s->path,
                               group, nami_store_reason());
        if (g >= 0)
            H5Gclose(g);
    }
    nami_store_unlock();
    status = nami_comm_settle(s->comm, status);
    if (status != NAMI_OK) {
        nami_store_names_free(l.name, l.count);
        l = (listing){0};
    }
    if (l.count)
        qsort(l.name, (size_t)l.count, sizeof *l.name, compare);
    *names = l.name;
    *count = l.count;
    return status;
}

void nami_store_names_free(char **names, int count)
{
    for (int i = 0; i < count; i++)
        nami_free(names[i]);
    nami_free(names);
}
