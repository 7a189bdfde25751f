/* SPDX-License-Identifier: MIT */
/* main.c - the program. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return nami_cli_main(argc, argv);
}
