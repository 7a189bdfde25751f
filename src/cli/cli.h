/* SPDX-License-Identifier: MIT */
/* cli.h - subcommands: one file each, which ends in the row that describes it.
 *
 * A command's flags are an option table like the deck's (section NULL), so that one row parses, checks and documents a
 * flag: "--key value", "--key=value"; a BOOL row "--key" alone means yes. main starts MPI only for commands that need it.
 */
#ifndef NAMI_CLI_CLI_H
#define NAMI_CLI_CLI_H

#include "base/option.h"
#include "comm/comm.h"

/* What a command gets. */
typedef struct nami_call {
    nami_comm *comm;     /* NULL unless the command needs MPI */
    const void *options; /* the struct its table fills, or NULL */
    char **word;         /* [words] arguments that are not flags */
    int words;
    int argc; /* the whole command line, for provenance */
    char **argv;
} nami_call;

typedef struct nami_command {
    const char *name;    /* "simulate" */
    const char *words;   /* of the usage line: "DECK [section.key=value ...]" */
    const char *summary; /* one line of `nami --help` */
    const char *text;    /* more for `nami NAME --help`, ends with a newline; or NULL */
    const nami_option_table *options; /* flags, or NULL */
    size_t size;                      /* bytes of the struct they fill */
    int fewest, most;                 /* words expected; most -1: any number */
    bool needs_mpi; /* run between nami_comm_open and nami_comm_close */
    bool hidden;    /* not listed by `nami --help` */
    nami_status (*run)(const nami_call *call); /* the status becomes the exit code */
} nami_command;

extern const nami_command nami_cli_run, nami_cli_plan, nami_cli_compare, nami_cli_info,
    nami_cli_generate;
extern const nami_command nami_cli_manual;
extern const nami_command nami_cli_simulate, nami_cli_verify; /* simulate.c, verify.c */
extern const nami_command nami_cli_profile;                   /* profile.c */
extern const nami_command nami_cli_import, nami_cli_baseline; /* import.c, baseline.c */
extern const nami_command nami_cli_export;                    /* export.c */

/* Version and commit, "0.1.0 (1905616)", with "-dirty" when the sources differ from the commit. */
extern const char nami_cli_version[];

/* All commands in the order of `nami --help`; NULL ends. */
extern const nami_command *const nami_cli_commands[];

/* Run the program: find the command, parse its flags, start MPI when needed. Returns the exit code. */
int nami_cli_main(int argc, char **argv);

/* Parse the flags of argv[0..argc) into `options` (zeroed by the caller; defaults are set first) and move the other
 * words to the front of argv; *words counts them. "--" ends the flags. Local. Status: NAMI_EINPUT. */
nami_status nami_cli_parse(const nami_command *command, int argc, char **argv,
                           void *options, int *words);

/* Under a launcher: go on in a child process and stay before it as its guard. Call before MPI starts and before
 * threads. Returns true in the guard, when the child is gone: `*code` is the exit code then; false in the rank. Local. */
bool nami_cli_guard(int *code);

/* The text of `nami --help` and `nami NAME --help`, appended to `out`. Local. */
void nami_cli_help(nami_text *out);
void nami_cli_help_of(const nami_command *command, nami_text *out);

#endif
