/* SPDX-License-Identifier: MIT */
/* stalled.c - not a test by itself: a run whose last rank stops in step 2, by the signal argv[1]; stall.sh reads how
 * the others end. */
#include "tiny.h"

#include <signal.h>
#include <unistd.h>

static int stop_with;

static nami_status read_until_stopped(void *context, int64_t step, int64_t first,
                                      int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    if (step == 2 && rank == size - 1)
        kill(getpid(), stop_with);
    return tiny_read(NULL, step, first, count, token, target);
}

static nami_status run(void)
{
    const tiny_problem p = {.backend = "ref",
                            .act = NAMI_F32,
                            .batch = 8,
                            .micros = 4,
                            .partials = 1,
                            .optimizer = NAMI_OPTIMIZER_ADAMW};
    const tiny_way w = {.schedule = "dapple",
                        .positions = size,
                        .waves = 1,
                        .chunks = 1,
                        .replicas = 1};
    nami_model *m = tiny_model(&p);
    nami_optim_options optim = tiny_optim(&p);
    nami_backend *b = NULL;
    nami_layout layout;
    nami_exec *e = NULL;
    nami_prof prof;
    nami_exec_source source = {.read = read_until_stopped};
    NAMI_TRY(nami_backend_open(p.backend, 1, p.act, &b));
    NAMI_TRY(tiny_layout(&p, &w, m, &layout));
    nami_prof_open(&prof, 0);
    nami_exec_config config = {.comm = world,
                               .backend = b,
                               .model = m,
                               .optim = &optim,
                               .layout = &layout,
                               .stall_seconds = 2,
                               .prof = &prof};
    NAMI_TRY(nami_exec_new(&config, &e));
    for (int i = 0; i < 5; i++) {
        nami_exec_result r;
        NAMI_TRY(nami_exec_step(e, i, 1e-2, &source, &r));
    }
    return NAMI_OK;
}

int main(int argc, char **argv)
{
    mpi_test_open(&argc, &argv);
    stop_with = argc > 1 && strcmp(argv[1], "STOP") == 0 ? SIGSTOP : SIGKILL;
    nami_status status = run();
    return (int)status; /* reached by nobody: the last rank is gone */
}
