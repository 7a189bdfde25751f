/* SPDX-License-Identifier: MIT */
/* library.c - the HDF5 library as a whole: start, lock, reasons, types. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "store/inner.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
hid_t nami_store_own_array, nami_store_own_group;

/* Called in front of a link to another file, whose format nobody checked. */
static herr_t refuse_link(const char *file, const char *group, const char *other,
                          const char *object, unsigned *flags, hid_t access, void *data)
{
    (void)file;
    (void)group;
    (void)other;
    (void)object;
    (void)flags;
    (void)access;
    (void)data;
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_LINK,
             H5E_TRAVERSE, "it lies in another file, which nami does not open");
    return -1;
}

/* Start the library before main. Started after MPI_Init, the parallel flavour hooks its end into MPI_Finalize, where it
 * touches again what could not be closed on a full disk, and crashes. For the same reason it does nothing at exit:
 * files are closed by us. Filters are not loaded from anywhere: a file must not choose code to run. */
__attribute__((constructor)) static void start(void)
{
    H5dont_atexit();
    H5open();
    H5PLset_loading_state(0);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* failures are worded by us */
    nami_store_own_array = H5Pcreate(H5P_DATASET_ACCESS);
    nami_store_own_group = H5Pcreate(H5P_GROUP_ACCESS);
    H5Pset_elink_cb(nami_store_own_array, refuse_link, NULL);
    H5Pset_elink_cb(nami_store_own_group, refuse_link, NULL);
}

void nami_store_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void nami_store_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

const char *nami_store_version(void)
{
    static char text[64];
    unsigned major = 0, minor = 0, release = 0;
    nami_store_lock();
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "HDF5 %u.%u.%u", major, minor, release);
    nami_store_unlock();
    return text;
}

static herr_t keep_innermost(unsigned n, const H5E_error2_t *e, void *context)
{
    if (n == 0 && e->desc)
        snprintf(context, 256, "%s", e->desc);
    return 0;
}

const char *nami_store_reason(void)
{
    static char text[256];
    text[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    H5Eclear2(H5E_DEFAULT);
    return text[0] ? text : "the HDF5 library gives no reason";
}

hid_t nami_store_native(nami_store_type t)
{
    switch (t) {
    case NAMI_STORE_F32:
        return H5T_NATIVE_FLOAT;
    case NAMI_STORE_F64:
        return H5T_NATIVE_DOUBLE;
    case NAMI_STORE_U8:
        return H5T_NATIVE_UINT8;
    case NAMI_STORE_U16:
        return H5T_NATIVE_UINT16;
    default:
        return H5T_NATIVE_INT64;
    }
}

size_t nami_store_width(nami_store_type t)
{
    static const size_t width[NAMI_STORE_TYPES] = {
        [NAMI_STORE_F32] = 4, [NAMI_STORE_F64] = 8, [NAMI_STORE_U8] = 1,
        [NAMI_STORE_U16] = 2, [NAMI_STORE_I64] = 8,
    };
    return width[t];
}

nami_store_type nami_store_type_of(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    for (int t = 0; t < NAMI_STORE_TYPES; t++) {
        hid_t native = nami_store_native((nami_store_type)t);
        if (class != H5Tget_class(native) ||
            H5Tget_size(type) != nami_store_width((nami_store_type)t))
            continue;
        if (class == H5T_FLOAT || H5Tget_sign(type) == H5Tget_sign(native))
            return (nami_store_type)t;
    }
    return NAMI_STORE_TYPES;
}

bool nami_store_is_integer(hid_t type)
{
    return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) <= sizeof(int64_t);
}

uint32_t nami_store_crc(uint32_t crc, const void *data, size_t bytes)
{
    return (uint32_t)crc32_z(crc, bytes ? data : (const void *)"", bytes);
}

uint32_t nami_store_crc_join(uint32_t a, uint32_t b, int64_t b_bytes)
{
    return (uint32_t)crc32_combine(a, b, (z_off_t)b_bytes);
}
