/* SPDX-License-Identifier: MIT */
/* device.h - what the CUDA side offers to C; a stub answers the same calls where CUDA is not built. */
#ifndef NAMI_KERNELS_DEVICE_H
#define NAMI_KERNELS_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Whether kernels are compiled in: 1 or 0. Local. */
int nami_cuda_built(void);

/* Number of usable devices; 0 also when the driver is missing. Local. */
int nami_cuda_devices(void);

/* Name of `device` into buf[size]; 0 on success, else nonzero and buf says why. Local. */
int nami_cuda_name(int device, char *buf, int size);

/* Add two vectors of `n` numbers on `device` and compare with the host.
 * Local. 0 when every element agrees, the number of wrong elements, or -1 with the reason in buf[size]. */
int nami_cuda_selftest(int device, int n, char *buf, int size);

#ifdef __cplusplus
}
#endif
#endif
