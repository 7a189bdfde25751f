/* SPDX-License-Identifier: MIT */
/* run.c - deal the units of a kernel to threads. */
#include "backend/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE2__
#include <immintrin.h>
#endif

/* Run a range with subnormal numbers taken as zero: they can cost a hundred times as much, and weights of
 * far positions and squares of small gradients are full of them. */
static void run_range(const nami_cpu_kernel *k, const void *args, int64_t first,
                      int64_t end, void *scratch)
{
#ifdef __SSE2__
    enum { FLUSH = 0x8040 }; /* results and operands */
    const unsigned int old = _mm_getcsr();
    _mm_setcsr(old | FLUSH);
    k->range(args, first, end, scratch);
    _mm_setcsr(old);
#else
    k->range(args, first, end, scratch);
#endif
}

/* First unit of share `t` of `shares`, in whole grains. */
static int64_t share_first(int64_t units, int64_t grain, int t, int shares)
{
    const int64_t grains = (units + grain - 1) / grain;
    const int64_t first = grains * t / shares * grain;
    return first < units ? first : units;
}

void nami_cpu_run(const nami_backend *b, const nami_cpu_kernel *k, const void *args,
                  void *scratch, size_t scratch_each)
{
    const int64_t units = k->units(args);
    const int64_t grain = k->grain ? k->grain(args) : 1;
#ifdef _OPENMP
    if (b->threads > 1 && units > grain) {
#pragma omp parallel num_threads(b->threads)
        {
            const int t = omp_get_thread_num(), shares = omp_get_num_threads();
            const int64_t first = share_first(units, grain, t, shares);
            const int64_t end = share_first(units, grain, t + 1, shares);
            if (first < end)
                run_range(k, args, first, end,
                          (char *)scratch + (size_t)t * scratch_each);
        }
        return;
    }
#endif
    (void)b, (void)grain, (void)scratch_each, (void)share_first;
    if (units > 0)
        run_range(k, args, 0, units, scratch);
}
