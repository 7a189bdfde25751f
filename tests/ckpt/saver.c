/* SPDX-License-Identifier: MIT */
/* saver.c - a program that saves without end and is killed; test_kill.sh looks at what is left.
 *
 * saver save DIRECTORY FIRST VICTIM MICROSECONDS   saves steps FIRST, FIRST+1, ...; VICTIM kills itself after that time
 * saver once DIRECTORY STEP                        saves that step
 * saver raw STEP                                   the bytes of parameters/token.weight of that step
 * saver load DIRECTORY LEAST                       the newest must be right and of step LEAST or later; prints its step
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt/contents.h"

enum { SCALE = 2000 }; /* large array of 800 kB */

/* No handler, no signal from elsewhere: this process is gone at some moment of what it does. */
static void *kill_myself(void *microseconds)
{
    usleep((useconds_t)(intptr_t)microseconds);
    kill(getpid(), SIGKILL);
    return NULL;
}

static nami_status save(nami_comm *c, char **argument)
{
    int64_t step = atoll(argument[1]);
    pthread_t thread;
    if (nami_comm_rank(c) == atoi(argument[2]) % nami_comm_size(c))
        pthread_create(&thread, NULL, kill_myself, (void *)(intptr_t)atol(argument[3]));
    for (;; step++) {
        nami_status status = contents_save(c, argument[0], 2, step, SCALE);
        if (status != NAMI_OK)
            return nami_agree(c, status);
        if (nami_comm_rank(c) == 0)
            nami_print("%" PRId64 "\n", step);
        fflush(stdout);
    }
}

static nami_status raw(nami_comm *c, const char *step)
{
    for (int64_t i = 0; i < 32 * 7 && nami_comm_rank(c) == 0; i++) {
        float x = contents_value(atoll(step), 0, i);
        if (fwrite(&x, sizeof x, 1, stdout) != 1)
            return nami_fail(NAMI_EENV, "standard output cannot be written");
    }
    return NAMI_OK;
}

static nami_status load(nami_comm *c, char **argument)
{
    char *path;
    int64_t step = 0, least = atoll(argument[1]);
    nami_status status = nami_ckpt_newest(c, argument[0], &path);
    if (status == NAMI_OK && path)
        status = contents_load(c, path, SCALE, false, &step);
    if (status == NAMI_OK && step < least)
        status = nami_fail(NAMI_ERESTART,
                           "%s: the newest is step %" PRId64 ", but step %" PRId64
                           " was saved",
                           argument[0], step, least);
    if (nami_comm_rank(c) == 0 && status == NAMI_OK)
        nami_print("%" PRId64 "\n", step);
    nami_free(path);
    return nami_agree(c, status);
}

int main(int argc, char **argv)
{
    nami_comm *c;
    nami_status status = nami_comm_open(&argc, &argv, &c);
    if (status != NAMI_OK)
        nami_die(status);
    if (argc == 6 && !strcmp(argv[1], "save"))
        status = save(c, argv + 2);
    else if (argc == 4 && !strcmp(argv[1], "once"))
        status = nami_agree(c, contents_save(c, argv[2], 2, atoll(argv[3]), SCALE));
    else if (argc == 3 && !strcmp(argv[1], "raw"))
        status = nami_agree(c, raw(c, argv[2]));
    else if (argc == 4 && !strcmp(argv[1], "load"))
        status = load(c, argv + 2);
    else
        status = nami_agree(c, nami_fail(NAMI_EINPUT, "saver save|load ..."));
    nami_comm_close(c);
    return (int)status;
}
