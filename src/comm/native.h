/* SPDX-License-Identifier: MIT */
/* native.h - the MPI communicator itself, for store/ alone (parallel HDF5 needs it). */
#ifndef NAMI_COMM_NATIVE_H
#define NAMI_COMM_NATIVE_H

#include <mpi.h>

#include "comm/comm.h"

MPI_Comm nami_comm_native(const nami_comm *c);

#endif
