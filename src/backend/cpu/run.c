/* SPDX-License-Identifier: MIT */
/* run.c - deal the units of a kernel to threads. */
#include "backend/cpu/cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif

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
                k->range(args, first, end, (char *)scratch + (size_t)t * scratch_each);
        }
        return;
    }
#endif
    (void)b, (void)scratch_each, (void)share_first;
    if (units > 0)
        k->range(args, 0, units, scratch);
}
