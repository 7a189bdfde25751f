/* SPDX-License-Identifier: MIT */
/* stub.c - the answers of a build without CUDA. */
#include <stdio.h>

#include "kernels/device.h"

static const char reason[] = "built without CUDA";

int nami_cuda_built(void)
{
    return 0;
}

int nami_cuda_devices(void)
{
    return 0;
}

int nami_cuda_name(int device, char *buf, int size)
{
    (void)device;
    snprintf(buf, (size_t)size, "%s", reason);
    return 1;
}

int nami_cuda_selftest(int device, int n, char *buf, int size)
{
    (void)device;
    (void)n;
    snprintf(buf, (size_t)size, "%s", reason);
    return -1;
}
