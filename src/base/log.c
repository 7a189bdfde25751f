/* SPDX-License-Identifier: MIT */
/* log.c - lines for people on stderr and in the log file, results on stdout. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nami_level most = NAMI_INFO;
static int own_rank = -1;
static FILE *log_file;
static bool progress_shown;

static const char *const level_word[] = {
    [NAMI_ERROR] = "error: ", [NAMI_WARNING] = "warning: ", [NAMI_INFO] = "",
    [NAMI_DETAIL] = "",       [NAMI_DEBUG] = "debug: ",
};

/* One line in one write, as launchers mix what ranks write and may end a rank in between.
 * "nami: warning: " stands before it; the rank only where several ranks may print. */
static void put_line(FILE *file, nami_level level, const char *line)
{
    char whole[2112], rank[16] = "";
    if (own_rank >= 0)
        snprintf(rank, sizeof rank, "[%d]", own_rank);
    if (level > NAMI_WARNING)
        snprintf(whole, sizeof whole, "%s%s\n", level_word[level], line);
    else
        snprintf(whole, sizeof whole, "nami%s: %s%s\n", rank, level_word[level], line);
    fputs(whole, file);
    fflush(file);
}

static void end_progress(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

void nami_log(nami_level level, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    if (level > most || (level > NAMI_WARNING && own_rank > 0))
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    end_progress();
    put_line(stderr, level, line);
    if (log_file)
        put_line(log_file, level, line);
    pthread_mutex_unlock(&lock);
}

void nami_log_level(nami_level level)
{
    most = level;
}

void nami_log_rank(int rank)
{
    own_rank = rank;
}

void nami_log_file(FILE *file)
{
    log_file = file;
}

bool nami_log_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void nami_progress(const char *format, ...)
{
    va_list arguments;
    if (own_rank > 0 || !nami_log_terminal())
        return;
    pthread_mutex_lock(&lock);
    end_progress();
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    progress_shown = true;
    pthread_mutex_unlock(&lock);
}

void nami_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}
