/* SPDX-License-Identifier: MIT */
/* arguments.c - flags of the command line, parsed and explained from option tables. */
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"

/* The row of the flag `name` (without "--", `length` bytes), or NULL. */
static const nami_option *find_flag(const nami_option_table *table, const char *name,
                                    size_t length)
{
    for (int i = 0; table && i < table->rows; i++)
        if (strlen(table->row[i].key) == length &&
            !strncmp(table->row[i].key, name, length))
            return &table->row[i];
    return NULL;
}

static nami_status refuse_flag(const nami_command *command, const char *flag)
{
    const char *known[64];
    int count = 0;
    for (int i = 0; command->options && i < command->options->rows && count < 64; i++)
        known[count++] = command->options->row[i].key;
    int near = nami_nearest(flag + 2, known, count);
    if (near < 0)
        return nami_fail(NAMI_EINPUT, "unknown flag '%s'; see nami %s --help", flag,
                         command->name);
    return nami_fail(NAMI_EINPUT, "unknown flag '%s'; did you mean '--%s'?", flag,
                     known[near]);
}

/* One flag at argv[0]; *used counts the arguments it takes. */
static nami_status parse_flag(const nami_command *command, int argc, char **argv,
                              void *options, int *used)
{
    const char *flag = argv[0];
    const char *equals = strchr(flag, '=');
    size_t length = equals ? (size_t)(equals - flag) - 2 : strlen(flag) - 2;
    const nami_option *row = find_flag(command->options, flag + 2, length);
    *used = 1;
    if (!row)
        return refuse_flag(command, flag);
    if (equals)
        return nami_option_set(row, options, equals + 1, "command line");
    if (row->kind == NAMI_OPTION_BOOL)
        return nami_option_set(row, options, "yes", "command line");
    if (argc < 2)
        return nami_fail(NAMI_EINPUT, "flag '%s' needs a value; see nami %s --help",
                         flag, command->name);
    *used = 2;
    return nami_option_set(row, options, argv[1], "command line");
}

nami_status nami_cli_parse(const nami_command *command, int argc, char **argv,
                           void *options, int *words)
{
    bool flags = true;
    *words = 0;
    if (command->options)
        NAMI_TRY(nami_option_defaults(command->options, options));
    for (int i = 0, used = 1; i < argc; i += used) {
        used = 1;
        if (flags && !strcmp(argv[i], "--"))
            flags = false;
        else if (flags && !strncmp(argv[i], "--", 2))
            NAMI_TRY(parse_flag(command, argc - i, argv + i, options, &used));
        else
            argv[(*words)++] = argv[i];
    }
    return NAMI_OK;
}

void nami_cli_help(nami_text *out)
{
    nami_text_add(
        out, "usage: nami COMMAND [ARGUMENT ...]\n"
             "Trains deep networks with pipeline and data parallelism over MPI.\n\n");
    for (int i = 0; nami_cli_commands[i]; i++)
        if (!nami_cli_commands[i]->hidden)
            nami_text_add(out, "  %-10s %s\n", nami_cli_commands[i]->name,
                          nami_cli_commands[i]->summary);
    nami_text_add(
        out,
        "\n  nami COMMAND --help    flags of a command\n"
        "  nami --version         version and commit\n\n"
        "Exit codes: 0 done, 2 input, 3 environment, 4 plan infeasible, 5 numerical,\n"
        "6 restart data, 7 stall or lost rank, 70 bug, 75 stopped early and "
        "resumable,\n"
        "76 nothing to do. See nami(1), and nami-deck(5) for the input deck.\n");
}

static void help_of_flag(const nami_option *row, nami_text *out)
{
    nami_text flag = {0};
    nami_text_add(&flag, "--%s", row->key);
    if (row->kind == NAMI_OPTION_CHOICE)
        for (int i = 0; row->choices[i]; i++)
            nami_text_add(&flag, "%s%s", i ? "|" : " ", row->choices[i]);
    else if (row->kind != NAMI_OPTION_BOOL)
        nami_text_add(&flag, " X");
    nami_text_add(out, "  %-22s %s", nami_text_get(&flag), row->help);
    if (row->unit ||
        (row->fallback && row->fallback[0] && row->kind != NAMI_OPTION_BOOL))
        nami_text_add(out, " (%s%s%s%s%s)", row->unit ? row->unit : "",
                      row->unit && row->fallback && row->fallback[0] ? "; " : "",
                      row->fallback && row->fallback[0] ? "default " : "",
                      row->fallback ? row->fallback : "",
                      row->fallback ? "" : "; required");
    nami_text_add(out, "\n");
    nami_text_free(&flag);
}

void nami_cli_help_of(const nami_command *command, nami_text *out)
{
    bool flags = command->options && command->options->rows > 0;
    nami_text_add(out, "usage: nami %s%s%s%s\n%s\n", command->name,
                  flags ? " [--flag ...]" : "", command->words[0] ? " " : "",
                  command->words, command->summary);
    if (command->text)
        nami_text_add(out, "\n%s", command->text);
    if (flags)
        nami_text_add(out, "\n");
    for (int i = 0; flags && i < command->options->rows; i++)
        help_of_flag(&command->options->row[i], out);
}
