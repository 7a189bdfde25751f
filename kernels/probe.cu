/* SPDX-License-Identifier: MIT */
/* probe.cu - which devices there are, and the proof that a kernel runs on one. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device.h"

static __global__ void add(int n, const float *a, const float *b, float *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] = a[i] + b[i];
}

extern "C" int nami_cuda_built(void)
{
    return 1;
}

extern "C" int nami_cuda_devices(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* Word the failure of `what`. */
static int refuse(const char *what, cudaError_t error, char *buf, int size)
{
    snprintf(buf, (size_t)size, "%s: %s", what, cudaGetErrorString(error));
    return -1;
}

extern "C" int nami_cuda_name(int device, char *buf, int size)
{
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return refuse("cudaGetDeviceProperties", error, buf, size);
    snprintf(buf, (size_t)size, "%s, compute capability %d.%d", properties.name,
             properties.major, properties.minor);
    return 0;
}

static int count_wrong(int n, const float *a, const float *b, const float *sum)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += sum[i] != a[i] + b[i];
    return wrong;
}

/* Run the kernel over three managed vectors of n numbers. */
static int run(int n, float *v, char *buf, int size)
{
    float *a = v, *b = v + n, *sum = v + 2 * (size_t)n;
    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
        sum[i] = -1.0f;
    }
    add<<<(n + 255) / 256, 256>>>(n, a, b, sum);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        return refuse("kernel", error, buf, size);
    return count_wrong(n, a, b, sum);
}

extern "C" int nami_cuda_selftest(int device, int n, char *buf, int size)
{
    float *v = NULL;
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess)
        error = cudaMallocManaged(&v, 3 * (size_t)n * sizeof *v);
    if (error != cudaSuccess)
        return refuse("set-up", error, buf, size);
    int wrong = run(n, v, buf, size);
    cudaFree(v);
    return wrong;
}
