/* SPDX-License-Identifier: MIT */
/* megatron.h - Megatron-LM's indexed data sets: tokens in PREFIX.bin, where sequences and documents are in PREFIX.idx. */
#ifndef NAMI_DATA_MEGATRON_H
#define NAMI_DATA_MEGATRON_H

#include "data/source.h"

/* Open the tokens of `path`, which is PREFIX, PREFIX.bin or PREFIX.idx, after the index was found sound: sequences in
 * ascending order, end to end, as long together as the .bin; documents in order.
 *
 * Local. *type is Megatron's code of a token's type, *width its bytes.
 * Status: NAMI_EINPUT what is missing or does not fit together, tokens that are not whole numbers. */
nami_status nami_megatron_open(const char *path, nami_source **bin, int *type,
                               int *width);

/* Token `i` of `raw` as stored; below 0 when it cannot be a token. Local. */
int64_t nami_megatron_token(int type, const unsigned char *raw, int64_t i);

#endif
