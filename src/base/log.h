/* SPDX-License-Identifier: MIT */
/* log.h - plain lines for people.
 *
 * Levels: ERROR the run ends or a file is unusable; WARNING it goes on but the user should act;
 * INFO what a user expects to see once a phase; DETAIL a line per step or file; DEBUG for us.
 * Only rank 0 prints INFO and below; every rank prints warnings and errors.
 */
#ifndef NAMI_BASE_LOG_H
#define NAMI_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef enum nami_level {
    NAMI_ERROR,
    NAMI_WARNING,
    NAMI_INFO,
    NAMI_DETAIL,
    NAMI_DEBUG
} nami_level;

/* Print one line, without its newline in `format`, to stderr and to the log file if one is set. Local. */
void nami_log(nami_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print lines up to `level` (default NAMI_INFO). Local. */
void nami_log_level(nami_level level);

/* Tell the log who prints: -1 (default) before ranks are known. Local. */
void nami_log_rank(int rank);

/* Also write lines to `file`, NULL for none; the caller closes it. Local. */
void nami_log_file(FILE *file);

/* Show `format` as the progress line, rewritten in place when stderr is a terminal; else do nothing.
 * The next nami_log line ends it. Local. */
void nami_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether stderr is a terminal. Local. */
bool nami_log_terminal(void);

/* Write `format` to standard output: the result a user asked for. Local. */
void nami_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
