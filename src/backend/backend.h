/* SPDX-License-Identifier: MIT */
/* backend.h - the device interface: memory, lanes, kernels.
 *
 * Plan once, execute without a decision or an allocation: `prepare` does all choosing for a kernel and
 * its shapes, `launch` only runs. A lane is an in-order queue; cpu and ref complete inside launch.
 * Memory of a device backend is not for the host: use nami_backend_copy.
 */
#ifndef NAMI_BACKEND_BACKEND_H
#define NAMI_BACKEND_BACKEND_H

#include "backend/kernel.h"
#include "base/memory.h"
#include "base/status.h"

typedef uint64_t nami_event; /* 0: already complete */

/* A kernel chosen for given shapes. Owned by the backend, shared between equal requests. */
typedef struct nami_prepared {
    nami_kernel kernel;
    size_t scratch; /* bytes of scratch a launch needs */
    /* LINEAR and CONV kernels: bytes of the packed copies; 0: the master is used */
    size_t packed_f, packed_b;
    double flops; /* floating-point operations of one launch */
    double bytes; /* bytes that must move at least */
    void *data;   /* the backend's own */
} nami_prepared;

typedef struct nami_backend nami_backend;

struct nami_emu_options;

/* What a backend is opened with. */
typedef struct nami_backend_config {
    int threads;     /* that one kernel may use, >= 1 */
    nami_dtype act;  /* type of activations */
    uint64_t number; /* of this process in its run: imitated delays differ by it */
    const struct nami_emu_options *emu; /* backend/emu/options.h; NULL: defaults */
} nami_backend_config;

typedef struct nami_backend_type {
    const char *name; /* "cpu" */
    nami_status (*open)(nami_backend *b, const nami_backend_config *c);
    void (*close)(nami_backend *b);
    void *(*alloc)(nami_backend *b, nami_tag tag, size_t bytes);
    void (*free)(nami_backend *b, void *block);
    nami_event (*copy)(nami_backend *b, int lane, void *to, const void *from,
                       size_t bytes);
    nami_event (*zero)(nami_backend *b, int lane, void *to, size_t bytes);
    nami_status (*prepare)(nami_backend *b, nami_kernel k, const void *args,
                           const nami_prepared **out);
    nami_event (*launch)(nami_backend *b, int lane, const nami_prepared *p,
                         const void *args);
    bool (*done)(nami_backend *b, nami_event e);
    nami_event (*mark)(nami_backend *b, int lane); /* NULL where launch completes */
    double (*moment)(nami_backend *b, nami_event mark);
    void (*after)(nami_backend *b, int lane, nami_event mark); /* NULL: lanes are one */
} nami_backend_type;

struct nami_backend {
    const nami_backend_type *type;
    int threads;    /* that one kernel may use, >= 1 */
    bool host;      /* memory is host memory: MPI and I/O may use it directly */
    nami_dtype act; /* type of activations it was opened for */
    void *state;
};

/* Open the backend `name` (ref, cpu, emu); *c is not needed afterwards.
 *
 * Local. Status: NAMI_EINPUT unknown name; NAMI_EENV the device is not there or lacks `act` arithmetic. */
nami_status nami_backend_open_with(const char *name, const nami_backend_config *c,
                                   nami_backend **out);

/* The same with only these two set. */
nami_status nami_backend_open(const char *name, int threads, nami_dtype act,
                              nami_backend **out);
void nami_backend_close(nami_backend *b);

void *nami_backend_alloc(nami_backend *b, nami_tag tag, size_t bytes);
void nami_backend_free(nami_backend *b, void *block);
nami_event nami_backend_copy(nami_backend *b, int lane, void *to, const void *from,
                             size_t bytes);
nami_event nami_backend_zero(nami_backend *b, int lane, void *to, size_t bytes);

/* Choose how to run `k` for the shapes, types and options in `args` (pointers in it are not read, but
 * NULL where the launch will have NULL: b, db, add). Local.
 * Status: NAMI_EENV when the backend has no such kernel for this type. */
nami_status nami_backend_prepare(nami_backend *b, nami_kernel k, const void *args,
                                 const nami_prepared **out);

/* Run it; `args` is copied. Local. */
nami_event nami_backend_launch(nami_backend *b, int lane, const nami_prepared *p,
                               const void *args);
bool nami_backend_done(nami_backend *b, nami_event e);
void nami_backend_wait(nami_backend *b, nami_event e);

/* A point on a lane, done when all before it is; 0 on a backend that is done inside launch. At most
 * NAMI_BACKEND_MARKS marks of a lane are remembered. Local. */
enum { NAMI_BACKEND_MARKS = 256 };
nami_event nami_backend_mark(nami_backend *b, int lane);

/* Work given to `lane` from now on begins when `mark`, of another lane, is done; 0: at once. Local. */
void nami_backend_after(nami_backend *b, int lane, nami_event mark);

/* When the lane came to a mark (not 0) that is done, on the clock of nami_now. Local. */
double nami_backend_moment(nami_backend *b, nami_event mark);

/* Measured peak of matrix products on this process's threads now: FLOP/s. Takes about `seconds`. Local. */
double nami_backend_peak(nami_backend *b, nami_dtype act, double seconds);

/* Name of a kernel, "linear_f". Local. */
const char *nami_kernel_name(nami_kernel k);

#endif
