/* SPDX-License-Identifier: MIT */
/* families.c - the table of model families. */
#include "model/family.h"

/* One line a family. */
#define FAMILIES(FAMILY) FAMILY(gpt)

#define DECLARE(name) extern const nami_family nami_family_##name;
#define ADDRESS(name) &nami_family_##name,
#define NAME(name) #name,

FAMILIES(DECLARE)
const nami_family *const nami_families[] = {FAMILIES(ADDRESS) NULL};
const char *const nami_family_names[] = {FAMILIES(NAME) NULL};
