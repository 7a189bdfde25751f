/* SPDX-License-Identifier: MIT */
/* main.c - the program. */
#include "cli/cli.h"

#include <signal.h>

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails, like on a full disk */
    return nami_cli_main(argc, argv);
}
