/* SPDX-License-Identifier: MIT */
/* start.c - start and end of MPI, and the one way out when something is broken. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/inner.h"

/* Variables that tell how many processes a launcher started. SLURM_NTASKS is not among them: it is also
 * set in a batch script, where running one process by itself is right. */
static const char *const launcher_size[] = {
    "PMI_SIZE",  "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE",
    "PALS_SIZE", "SLURM_STEP_NUM_TASKS",
};

/* Nonzero rank variables betray a launcher that tells no size. */
static const char *const launcher_rank[] = {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};

static int number_in(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

static nami_status check_launcher(int size)
{
    if (size > 1)
        return NAMI_OK;
    for (size_t i = 0; i < sizeof launcher_size / sizeof *launcher_size; i++)
        if (number_in(launcher_size[i]) > 1 && !strncmp(launcher_size[i], "SLURM", 5))
            return nami_fail(
                NAMI_EENV,
                "srun started %d processes (%s) but each of them is alone: "
                "srun --mpi=TYPE must name what '%s' speaks, pmi2 for "
                "MPICH and pmix for Open MPI",
                number_in(launcher_size[i]), launcher_size[i], nami_comm_version());
        else if (number_in(launcher_size[i]) > 1)
            return nami_fail(NAMI_EENV,
                             "the launcher started %d processes (%s) but each of them "
                             "is alone: mpiexec belongs to "
                             "another MPI library; use the one of '%s'",
                             number_in(launcher_size[i]), launcher_size[i],
                             nami_comm_version());
    for (size_t i = 0; i < sizeof launcher_rank / sizeof *launcher_rank; i++)
        if (number_in(launcher_rank[i]) > 0)
            return nami_fail(NAMI_EENV,
                             "this process is number %d of its launcher (%s) but alone "
                             "in MPI: the launcher belongs "
                             "to another MPI library; use the one of '%s'",
                             number_in(launcher_rank[i]), launcher_rank[i],
                             nami_comm_version());
    return NAMI_OK;
}

const char *nami_comm_version(void)
{
    static char line[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (line[0])
        return line;
    MPI_Get_library_version(line, &length);
    /* MPICH fills ten lines: the first says its name and version, after a tab. */
    line[strcspn(line, "\n")] = '\0';
    for (char *p = line; *p; p++)
        if (*p == '\t')
            *p = ' ';
    return line;
}

static void abort_all(int code)
{
    nami_sleep(
        0.05); /* a launcher that hears of the end first may drop the sentence that explains it */
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* A received message that is too long is a fault of the schedule; anything else is the machine's. */
static void on_error(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, class = 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = ' ';
    nami_fail_clear();
    nami_die(nami_fail(class == MPI_ERR_TRUNCATE ? NAMI_EBUG : NAMI_EENV,
                       "MPI reports: %s", text));
}

static void on_comm_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    on_error(*code);
}

static void set_error_handler(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_comm_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            handler); /* communicators made from it inherit */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
}

static void open_communicators(nami_comm *c, MPI_Comm world)
{
    int *bound = NULL, found = 0;
    MPI_Comm_rank(world, &c->rank);
    MPI_Comm_size(world, &c->size);
    MPI_Comm_dup(world, &c->control);
    MPI_Comm_dup(world, &c->data);
    MPI_Comm_split_type(c->control, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL,
                        &c->node);
    MPI_Comm_rank(c->node, &c->node_rank);
    MPI_Comm_size(c->node, &c->node_size);
    c->node_leader = c->rank;
    MPI_Bcast(&c->node_leader, 1, MPI_INT, 0, c->node);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found);
    c->tags = found && *bound < INT_MAX ? *bound + 1 : found ? INT_MAX : 32768;
}

nami_status nami_comm_open(int *argc, char ***argv, nami_comm **out)
{
    int level = 0;
    *out = NULL;
    /* With more ranks than cores Open MPI would give the core away in every call, also in those that only ask; our own
     * waits sleep. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return nami_fail(NAMI_EENV, "MPI does not start: %s", nami_comm_version());
    nami_die_hook(abort_all);
    set_error_handler();
    nami_comm *c = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *c);
    *c = (nami_comm){.threads = 1, .limit = 600, .phase = "start", .free_slot = -1};
    open_communicators(c, MPI_COMM_WORLD);
    nami_log_rank(c->rank);
    nami_comm_count_cores(c);
    nami_status status = check_launcher(c->size);
    if (status == NAMI_OK && level < MPI_THREAD_FUNNELED)
        status = nami_fail(NAMI_EENV, "this MPI library does not allow threads: %s",
                           nami_comm_version());
    if (status != NAMI_OK) {
        nami_comm_close(c);
        return status;
    }
    *out = c;
    return NAMI_OK;
}

nami_comm *nami_comm_alone(const nami_comm *c)
{
    nami_comm *one = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *one);
    *one = (nami_comm){.threads = c->threads,
                       .limit = c->limit,
                       .phase = "alone",
                       .free_slot = -1,
                       .alone = true};
    open_communicators(one, MPI_COMM_SELF);
    one->crowded = c->crowded;
    return one;
}

static void end_mpi(void)
{
    nami_die_hook(NULL);
    MPI_Finalize();
    nami_log_rank(-1);
}

void nami_comm_close(nami_comm *c)
{
    if (!c)
        return;
    nami_comm_phase(c, "end", c->limit);
    nami_comm_barrier(
        c); /* politely, as MPI_Finalize waits for all without giving the core away */
    MPI_Comm_free(&c->node);
    MPI_Comm_free(&c->data);
    MPI_Comm_free(&c->control);
    if (!c->alone)
        end_mpi();
    nami_free(c->slot);
    nami_free(c);
}

int nami_comm_rank(const nami_comm *c)
{
    return c->rank;
}

int nami_comm_size(const nami_comm *c)
{
    return c->size;
}

int nami_comm_node_size(const nami_comm *c)
{
    return c->node_size;
}

int nami_comm_node(const nami_comm *c)
{
    return c->node_leader;
}

int nami_comm_node_rank(const nami_comm *c)
{
    return c->node_rank;
}

int nami_comm_tags(const nami_comm *c)
{
    return c->tags;
}
