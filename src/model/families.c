/* SPDX-License-Identifier: MIT */
/* families.c - the table of model families. */
#include "model/family.h"

/* One line a family. */
#define FAMILIES(FAMILY) FAMILY(gpt) FAMILY(synthetic)

#define ADDRESS(name) &nami_family_##name,
#define NAME(name) #name,

const nami_family *const nami_families[] = {FAMILIES(ADDRESS) NULL};
const char *const nami_family_names[] = {FAMILIES(NAME) NULL};
