/* SPDX-License-Identifier: MIT */
/* status.c - the sentence of the first failure, and the one way to end at once. */
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char sentence[1024];
static void (*abort_hook)(int code);

nami_status nami_fail(nami_status code, const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&lock);
    if (!sentence[0]) {
        va_start(arguments, format);
        vsnprintf(sentence, sizeof sentence, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

const char *nami_fail_text(void)
{
    return sentence;
}

void nami_fail_clear(void)
{
    pthread_mutex_lock(&lock);
    sentence[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void nami_die_hook(void (*hook)(int code))
{
    abort_hook = hook;
}

void nami_die(nami_status code)
{
    if (sentence[0])
        nami_log(NAMI_ERROR, "%s", sentence);
    fflush(NULL);
    if (abort_hook)
        abort_hook((int)code);
    _Exit((int)code);
}

void nami_check_failed(const char *text, const char *file, int line,
                       const char *function)
{
    nami_fail_clear();
    nami_fail(
        NAMI_EBUG,
        "%s:%d: %s: '%s' does not hold; this is a fault of nami, please report it",
        file, line, function, text);
    nami_die(NAMI_EBUG);
}
