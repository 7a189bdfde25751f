/* SPDX-License-Identifier: MIT */
/* partition.h - `nami plan` with a profile: stages with replicas of their own. */
#ifndef NAMI_CLI_PARTITION_H
#define NAMI_CLI_PARTITION_H

#include "train/options.h"

/* Seek stages as [plan] of `s` says and print them, with a deck fragment.
 * Local. `ranks`: 0 as many as plan.levels have. Status: NAMI_EINPUT, NAMI_EPLAN. */
nami_status nami_cli_partition(const nami_settings *s, int ranks);

#endif
