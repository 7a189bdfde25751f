/* SPDX-License-Identifier: MIT */
/* stalled.c - not a test by itself: a run whose last rank stops in step 2, by the signal argv[1]; stall.sh reads how
 * the others end. With argv[2] all ranks are replicas that share the statistics of images. */
#include "family.h"
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

enum { SIDE = 4, WORDS = SIDE * SIDE };

static nami_model *image_model(const tiny_problem *p)
{
    static char layers[] =
        "conv 3 3 pad 1, norm, relu, global, flatten, linear classes";
    nami_model *m = NULL;
    nami_model_options o = {.chain = layers,
                            .image_height = SIDE,
                            .image_width = SIDE,
                            .image_channels = 1,
                            .classes = 2,
                            .sync_batch_norm = true};
    o.family = family_named("chain");
    assert_ok(nami_model_new(&o, p->dropout, &m));
    return m;
}

/* It stops when it reads an image, the others when they want its statistics. */
static nami_status read_images(void *context, int64_t step, int64_t first,
                               int64_t count, int32_t *token, int32_t *target)
{
    (void)context;
    if (step == 2 && rank == size - 1 && token != NULL)
        kill(getpid(), stop_with);
    for (int64_t i = 0; token != NULL && i < count * WORDS; i++) {
        const float x = (float)((first * WORDS + i) % 5);
        memcpy(&token[i], &x, sizeof x);
    }
    for (int64_t i = 0; target != NULL && i < count; i++)
        target[i] = (int32_t)((first + i) % 2);
    return NAMI_OK;
}

static nami_status run(bool images)
{
    const tiny_problem p = {.backend = "ref",
                            .act = NAMI_F32,
                            .batch = 12,
                            .micros = 4,
                            .partials = 1,
                            .optimizer = NAMI_OPTIMIZER_ADAMW};
    const tiny_way w = {.schedule = images ? "ashpipe" : "dapple",
                        .positions = images ? 1 : size,
                        .waves = 1,
                        .chunks = 1,
                        .replicas = 1,
                        .stage_replicas = {.item = &size, .count = images}};
    tiny_other = images ? image_model : NULL;
    nami_model *m = tiny_model(&p);
    nami_optim_options optim = tiny_optim(&p);
    nami_backend *b = NULL;
    nami_layout layout;
    nami_exec *e = NULL;
    nami_prof prof;
    nami_exec_source source = {.read = images ? read_images : read_until_stopped};
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
    nami_status status = run(argc > 2);
    return (int)status; /* reached by nobody: the last rank is gone */
}
