/* SPDX-License-Identifier: MIT */
/* info.c - nami info: what was built, what is loaded, and where the ranks run. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "prof/counters.h"
#include "train/job.h"

typedef struct nami_info_options {
    int64_t threads;
} nami_info_options;

static void print_build(void)
{
    nami_print("nami       %s\n", nami_cli_version);
    nami_print("compiler   %s\n", NAMI_COMPILER);
    nami_print("flags      %s\n", NAMI_CFLAGS);
    nami_print("MPI        %s\n", nami_comm_version());
    nami_print("HDF5       %s\n", NAMI_HDF5_FROM);
    nami_print("oneDNN     %s\n", NAMI_ONEDNN_FROM);
    nami_print("OpenMP     %s\n", NAMI_OPENMP_FROM);
    nami_print("zlib       %s\n", NAMI_ZLIB_FROM);
    nami_print("libjpeg    %s\n", NAMI_JPEG_FROM);
    nami_print("libpng     %s\n", NAMI_PNG_FROM);
    nami_print("hwloc      %s\n", NAMI_HWLOC_FROM);
    nami_print("PAPI       %s\n", NAMI_PAPI_FROM);
    nami_print("CUDA       %s\n", NAMI_CUDA_FROM);
}

/* Path of a shared object in a line of /proc/self/maps, NULL when the line has none. */
static char *object_of(char *line)
{
    char *path = strchr(line, '/');
    if (path)
        path[strcspn(path, "\n")] = '\0';
    return path;
}

/* OpenMP runtimes among the objects that are loaded: two of them fight over the cores. */
static void print_runtimes(void)
{
    static const char *const runtime[] = {"libgomp", "libomp", "libiomp5"};
    char line[4096];
    bool seen[3] = {false, false, false};
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        const char *path = object_of(line);
        const char *name = path ? strrchr(path, '/') + 1 : "";
        for (int i = 0; i < 3; i++)
            if (!seen[i] && !strncmp(name, runtime[i], strlen(runtime[i])) &&
                (name[strlen(runtime[i])] == '.' || name[strlen(runtime[i])] == '-')) {
                seen[i] = true;
                nami_print("loaded     %s\n", path);
                count++;
            }
    }
    if (maps)
        fclose(maps);
    if (count == 0)
        nami_print("loaded     no OpenMP runtime\n");
    if (count > 1)
        nami_print(
            "warning    %d OpenMP runtimes are loaded: each starts its own threads; "
            "build with one (see CONTRIBUTING.md)\n",
            count);
}

static void print_places(const nami_comm_place *place, int ranks)
{
    nami_print("ranks      %d\n", ranks);
    for (int r = 0; r < ranks; r++)
        nami_print("rank %-5d node %s (%d rank%s, %d core%s), cores %s, threads %d\n",
                   r, place[r].host, place[r].node_ranks,
                   nami_plural(place[r].node_ranks), place[r].node_cores,
                   nami_plural(place[r].node_cores), place[r].cores, place[r].threads);
}

static void print_warnings(const nami_comm_place *place, int ranks)
{
    nami_text text = {0};
    nami_comm_place_warnings(place, ranks, &text);
    for (const char *line = nami_text_get(&text); *line;) {
        int length = (int)strcspn(line, "\n");
        nami_print("warning    %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    nami_text_free(&text);
}

static nami_status run_info(const nami_call *call)
{
    const nami_info_options *o = call->options;
    int ranks = nami_comm_size(call->comm);
    nami_comm_place *place = nami_calloc(NAMI_MEM_OTHER, (size_t)ranks, sizeof *place);
    nami_comm_threads(call->comm, nami_node_threads(call->comm, o->threads));
    nami_comm_places(call->comm, place);
    if (nami_comm_rank(call->comm) == 0) {
        print_build();
        print_runtimes();
        nami_print("counters   %s\n", nami_prof_counters());
        print_places(place, ranks);
        print_warnings(place, ranks);
    }
    nami_free(place);
    return NAMI_OK;
}

static const nami_option rows[] = {
    {.key = "threads",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(nami_info_options, threads),
     .fallback = "0",
     .minimum = 0,
     .maximum = 4096,
     .help =
         "threads a rank will compute with, as train.threads; 0: its share of cores"},
};
static const nami_option_table table = {.row = rows, .rows = 1};

const nami_command nami_cli_info = {
    .name = "info",
    .words = "",
    .summary = "show build, libraries, ranks, nodes, cores and threads",
    .text = "Start it as a run would be started: mpiexec -n 4 nami info.\n",
    .options = &table,
    .size = sizeof(nami_info_options),
    .needs_mpi = true,
    .run = run_info,
};
