/* SPDX-License-Identifier: MIT */
/* version.c - version and commit of this build; make writes source-id.h anew when the commit changes. */
#include "config.h"

#include "source-id.h"

#include "cli/cli.h"

const char nami_cli_version[] = PACKAGE_VERSION " (" NAMI_SOURCE_ID ")";
