/* SPDX-License-Identifier: MIT */
/* main.c - the program. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        nami_print("nami %s (%s)\n", PACKAGE_VERSION, NAMI_GIT);
        return NAMI_OK;
    }
    nami_log(NAMI_ERROR, "usage: nami --version");
    return NAMI_EINPUT;
}
