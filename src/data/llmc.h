/* SPDX-License-Identifier: MIT */
/* llmc.h - token shards of llm.c (f1e2ace dev/data/data_common.py, llmc/dataloader.h). */
#ifndef NAMI_DATA_LLMC_H
#define NAMI_DATA_LLMC_H

#include "data/source.h"

/* Read and check the header of a shard; leaves the source at the first of *tokens tokens, 16-bit, little-endian.
 *
 * Local. Status: NAMI_EINPUT another file of llm.c, or of others; truncated. */
nami_status nami_llmc_header(nami_source *s, int64_t *tokens);

#endif
