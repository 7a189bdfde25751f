/* SPDX-License-Identifier: MIT */
/* inner.h - what an open file is; for the files of store/ alone. */
#ifndef NAMI_STORE_INNER_H
#define NAMI_STORE_INNER_H

#include <hdf5.h>

#include "store/store.h"

enum { NAMI_STORE_RANK = 4, NAMI_STORE_PIECE = 1 << 28 }; /* bytes of one transfer */

/* An array of a file that is being written, known on all ranks. */
typedef struct nami_store_array {
    char *name;
    nami_store_type type;
    int64_t count;  /* elements */
    int64_t offset; /* of its first byte in the file; -1: no elements */
} nami_store_array;

struct nami_store {
    nami_comm *comm; /* NULL: this process alone */
    char *path;
    bool writing;
    bool placed; /* writing: offsets are known and the file has its final size */
    hid_t file;  /* -1: not open in the library on this rank */
    int fd;      /* writing: for slabs; -1: not open */
    nami_status failure; /* writing: first failure on this rank */
    char sentence[1024]; /* of that failure */
    nami_store_array *array;
    int arrays;
};

/* The library is not safe to call from several threads: hold this around its calls. Local. */
void nami_store_lock(void);
void nami_store_unlock(void);

/* How arrays (and links to them) and groups are opened for reading: a link to another file is not followed. */
extern hid_t nami_store_own_array, nami_store_own_group;

/* The innermost reason of the library's last failure; clears it. Valid until the next call. Local. */
const char *nami_store_reason(void);

/* Whether this rank holds the file in the library while writing: rank 0. Local. */
bool nami_store_leads(const nami_store *s);

/* Record that writing failed (the first failure stays) and return what the caller returns: the status when this
 * process is alone, else NAMI_OK as flush and close report. Local. */
nami_status nami_store_failed(nami_store *s, nami_status status);

/* The file's type for t, and the t of a file's type (NAMI_STORE_TYPES: none). Local. */
hid_t nami_store_native(nami_store_type t);
size_t nami_store_width(nami_store_type t);
nami_store_type nami_store_type_of(hid_t type);

/* Whether a file's type is whole numbers of at most 8 bytes. Local. */
bool nami_store_is_integer(hid_t type);

/* Whether the file can hold the array's elements, and nami unpacks them. Under the lock. Local. Status: NAMI_EINPUT. */
nami_status nami_store_stored(const nami_store *s, const char *name, hid_t array,
                              const int64_t extent[4], int rank);

/* Place the defined arrays in the file and give it its size, so that a full disk is found now; open it for slabs.
 * Collective. */
void nami_store_place(nami_store *s);

/* "cannot be written" and its likes from errno: NAMI_EENV. Local. */
nami_status nami_store_system(const nami_store *s, const char *what, int error);

#endif
