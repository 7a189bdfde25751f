/* SPDX-License-Identifier: MIT */
/* family.h - model families by name. */
#ifndef NAMI_TESTS_FAMILY_H
#define NAMI_TESTS_FAMILY_H

#include "model/family.h"
#include "nami_test.h"

/* The number of a family; a name that is none fails the test. */
static inline int family_named(const char *name)
{
    for (int i = 0; nami_family_names[i]; i++)
        if (!strcmp(nami_family_names[i], name))
            return i;
    fail_msg("no family %s", name);
    return -1;
}

#endif
