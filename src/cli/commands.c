/* SPDX-License-Identifier: MIT */
/* commands.c - the table of subcommands, and the way from a command line to one of them. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"

/* In the order of `nami --help`. */
const nami_command *const nami_cli_commands[] = {
    &nami_cli_run,
    &nami_cli_plan,
    &nami_cli_profile,
    &nami_cli_compare,
    &nami_cli_generate,
    &nami_cli_import,
    &nami_cli_export,
    &nami_cli_baseline,
    &nami_cli_simulate,
    &nami_cli_verify,
    &nami_cli_info,
    &nami_cli_manual,
    NULL,
};

static const nami_command *find_command(const char *name)
{
    for (int i = 0; nami_cli_commands[i]; i++)
        if (!strcmp(nami_cli_commands[i]->name, name))
            return nami_cli_commands[i];
    return NULL;
}

static nami_status refuse_command(const char *name)
{
    const char *known[32];
    int count = 0;
    for (int i = 0; nami_cli_commands[i] && count < 32; i++)
        if (!nami_cli_commands[i]->hidden)
            known[count++] = nami_cli_commands[i]->name;
    int near = nami_nearest(name, known, count);
    if (near < 0)
        return nami_fail(NAMI_EINPUT, "unknown command '%s'; see nami --help", name);
    return nami_fail(NAMI_EINPUT,
                     "unknown command '%s'; did you mean '%s'? See nami --help", name,
                     known[near]);
}

static void print_text(nami_text *text)
{
    nami_print("%s", nami_text_get(text));
    nami_text_free(text);
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static nami_status check_words(const nami_command *command, int words)
{
    if (words < command->fewest)
        return nami_fail(NAMI_EINPUT, "usage: nami %s %s (see nami %s --help)",
                         command->name, command->words, command->name);
    if (command->most >= 0 && words > command->most)
        return nami_fail(
            NAMI_EINPUT,
            "nami %s takes at most %d argument%s, not %d (see nami %s --help)",
            command->name, command->most, nami_plural(command->most), words,
            command->name);
    return NAMI_OK;
}

/* Collective when the command needs MPI. */
static nami_status carry_out(const nami_command *command, nami_call *call,
                             void *options)
{
    nami_status status;
    if (command->needs_mpi)
        NAMI_TRY(nami_comm_open(&call->argc, &call->argv, &call->comm));
    status =
        nami_cli_parse(command, call->argc - 2, call->argv + 2, options, &call->words);
    if (status == NAMI_OK)
        status = check_words(command, call->words);
    call->word = call->argv + 2;
    if (call->comm)
        status = nami_agree(call->comm, status);
    if (status == NAMI_OK)
        status = command->run(call);
    if (call->comm)
        nami_comm_close(call->comm);
    return status;
}

static nami_status dispatch(const nami_command *command, int argc, char **argv)
{
    nami_text help = {0};
    if (wants_help(argc - 2, argv + 2)) {
        nami_cli_help_of(command, &help);
        print_text(&help);
        return NAMI_OK;
    }
    int code = 0;
    if (command->needs_mpi && nami_cli_guard(&code))
        return (nami_status)code;
    void *options = nami_calloc(NAMI_MEM_OTHER, 1, command->size);
    nami_call call = {.options = options, .argc = argc, .argv = argv};
    nami_status status = carry_out(command, &call, options);
    if (nami_fail_text()[0]) /* an agreed failure has been printed and cleared */
        nami_log(NAMI_ERROR, "%s", nami_fail_text());
    if (command->options)
        nami_option_release(command->options, options);
    nami_free(options);
    return status;
}

int nami_cli_main(int argc, char **argv)
{
    nami_text help = {0};
    const char *name = argc > 1 ? argv[1] : "--help";
    const nami_command *command = find_command(name);
    if (command)
        return (int)dispatch(command, argc, argv);
    if (!strcmp(name, "--version")) {
        nami_print("nami %s\n", nami_cli_version);
        return NAMI_OK;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        nami_cli_help(&help);
        print_text(&help);
        return argc > 1 ? NAMI_OK : NAMI_EINPUT;
    }
    nami_status status = refuse_command(name);
    nami_log(NAMI_ERROR, "%s", nami_fail_text());
    return (int)status;
}
