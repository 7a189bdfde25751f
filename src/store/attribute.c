/* SPDX-License-Identifier: MIT */
/* attribute.c - texts and numbers of the root group. */
#include <string.h>

#include "base/memory.h"
#include "store/inner.h"

enum { LARGEST_TEXT = 1 << 28 }; /* bytes; a larger one is damage */

static hid_t text_type(size_t length)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, length + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

/* Rank 0: write one attribute. */
static nami_status write_attribute(const nami_store *s, const char *name, hid_t type,
                                   const void *value)
{
    nami_status status = NAMI_OK;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate2(s->file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (a < 0 || H5Awrite(a, type, value) < 0 || H5Aclose(a) < 0)
        status = nami_fail(NAMI_EENV, "%s: attribute %s cannot be written: %s", s->path,
                           name, nami_store_reason());
    H5Sclose(space);
    return status;
}

nami_status nami_store_set_text(nami_store *s, const char *name, const char *value)
{
    NAMI_CHECK(s->writing);
    if (!nami_store_leads(s) || s->failure != NAMI_OK)
        return s->comm ? NAMI_OK : s->failure;
    nami_store_lock();
    hid_t type = text_type(strlen(value));
    nami_status status = write_attribute(s, name, type, value);
    H5Tclose(type);
    nami_store_unlock();
    return nami_store_failed(s, status);
}

nami_status nami_store_set_int(nami_store *s, const char *name, int64_t value)
{
    NAMI_CHECK(s->writing);
    if (!nami_store_leads(s) || s->failure != NAMI_OK)
        return s->comm ? NAMI_OK : s->failure;
    nami_store_lock();
    nami_status status = write_attribute(s, name, H5T_NATIVE_INT64, &value);
    nami_store_unlock();
    return nami_store_failed(s, status);
}

/* Whether attribute a is one value. */
static bool is_scalar(hid_t a)
{
    hid_t space = H5Aget_space(a);
    bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0)
        H5Sclose(space);
    return one;
}

/* The text of a, NULL when it is none. Texts of variable length, as other tools write, are read as well. */
static char *read_text(hid_t a)
{
    hid_t type = H5Aget_type(a);
    char *text = NULL, *lent = NULL;
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && is_scalar(a)) {
        size_t bytes = H5Tget_size(type);
        if (H5Tis_variable_str(type) > 0) {
            if (H5Aread(a, type, &lent) >= 0 && lent)
                text = nami_strdup(lent);
            if (lent)
                H5free_memory(lent);
        } else if (bytes > 0 && bytes <= LARGEST_TEXT) {
            text = nami_calloc(NAMI_MEM_OTHER, bytes + 1, 1);
            if (H5Aread(a, type, text) < 0) {
                nami_free(text);
                text = NULL;
            }
        }
    }
    if (type >= 0)
        H5Tclose(type);
    return text;
}

static bool read_int(hid_t a, int64_t *value)
{
    hid_t type = H5Aget_type(a);
    bool ok = type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
              H5Tget_size(type) <= 8 && is_scalar(a) &&
              H5Aread(a, H5T_NATIVE_INT64, value) >= 0;
    if (type >= 0)
        H5Tclose(type);
    return ok;
}

/* Read attribute `name` as a text (`text` not NULL) or a number. */
static nami_status read_attribute(const nami_store *s, const char *name, char **text,
                                  int64_t *number)
{
    nami_status status = NAMI_OK;
    nami_store_lock();
    bool there = H5Aexists(s->file, name) > 0;
    hid_t a = there ? H5Aopen(s->file, name, H5P_DEFAULT) : -1;
    if (a >= 0 && text)
        *text = read_text(a);
    if (a < 0 || (text ? !*text : !read_int(a, number)))
        status = nami_fail(NAMI_EINPUT,
                           there ? "%s: attribute %s cannot be read as a %s"
                                 : "%s: attribute %s, a %s, is missing",
                           s->path, name, text ? "text" : "number");
    if (a >= 0)
        H5Aclose(a);
    H5Eclear2(H5E_DEFAULT);
    nami_store_unlock();
    return status;
}

nami_status nami_store_get_text(nami_store *s, const char *name, char **value)
{
    NAMI_CHECK(!s->writing);
    *value = NULL;
    nami_status status =
        nami_comm_settle(s->comm, read_attribute(s, name, value, NULL));
    if (status != NAMI_OK) {
        nami_free(*value);
        *value = NULL;
    }
    return status;
}

nami_status nami_store_get_int(nami_store *s, const char *name, int64_t *value)
{
    NAMI_CHECK(!s->writing);
    return nami_comm_settle(s->comm, read_attribute(s, name, NULL, value));
}
