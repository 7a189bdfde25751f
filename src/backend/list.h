/* SPDX-License-Identifier: MIT */
/* list.h - the backends there are. */
#ifndef NAMI_BACKEND_LIST_H
#define NAMI_BACKEND_LIST_H

#include "backend/backend.h"

extern const nami_backend_type nami_backend_ref; /* naive loops, the oracle */
/* oneDNN and vector loops on the host */
extern const nami_backend_type nami_backend_cpu;
extern const nami_backend_type nami_backend_emu; /* a device imitated on the host */

#endif
