/* SPDX-License-Identifier: MIT */
/* sampler.c - which window of a data set a training sample is. */
#include "base/rng.h"
#include "data/data.h"

/* Streams of an epoch's key. */
enum { SHIFT = 1, ORDER = 2 };

int64_t nami_window(int64_t tokens, int64_t time, uint64_t key, int64_t counter)
{
    NAMI_CHECK(time >= 1 && tokens > time && counter >= 0);
    int64_t windows = (tokens - 1) / time, last = tokens - 1 - time;
    uint64_t epoch = nami_mix(key, (uint64_t)(counter / windows));
    int64_t shift = (int64_t)(nami_uniform(nami_mix(epoch, SHIFT), 0) * (double)time);
    int64_t window = (int64_t)nami_permute(
        nami_mix(epoch, ORDER), (uint64_t)(counter % windows), (uint64_t)windows);
    int64_t from = shift + window * time;
    return from < last ? from : last;
}
