/* SPDX-License-Identifier: MIT */
/* status.h - status codes, and the one sentence that explains a failure.
 *
 * A status is also the exit code of the program. The first detector of an error words it with
 * nami_fail; callers only pass the code on. nami_agree (comm/) makes ranks agree and prints once.
 */
#ifndef NAMI_BASE_STATUS_H
#define NAMI_BASE_STATUS_H

typedef enum nami_status {
    NAMI_OK = 0,       /* done */
    NAMI_EINPUT = 2,   /* wrong deck, option, data set or file given by the user */
    NAMI_EENV = 3,     /* environment: MPI, device, file system, library */
    NAMI_EPLAN = 4,    /* the plan cannot be carried out: memory, divisibility */
    NAMI_ENUMERIC = 5, /* a loss or gradient is not finite */
    NAMI_ERESTART = 6, /* no usable checkpoint where one is needed */
    NAMI_ELOST = 7,    /* a rank stalled or was lost */
    NAMI_EBUG = 70,    /* a fault of nami itself */
    NAMI_STOPPED = 75, /* stopped early, resumable */
    NAMI_NOTHING = 76  /* nothing to do */
} nami_status;

/* Record the sentence "what, where, what was expected" and return `code`.
 *
 * Local. The first sentence recorded since nami_fail_clear wins; it is kept in a fixed buffer
 * (1023 bytes), so this works when memory is exhausted.
 */
nami_status nami_fail(nami_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The sentence recorded last, "" when there is none. Local. */
const char *nami_fail_text(void);

/* Forget the recorded sentence: the caller has dealt with the failure. Local. */
void nami_fail_clear(void);

/* End the whole program at once with exit code `code`, after printing the recorded sentence.
 *
 * Local, never returns. Calls the abort hook (comm/ sets it to MPI_Abort), else exits.
 */
_Noreturn void nami_die(nami_status code);

/* Set what nami_die calls before it exits itself; `hook` need not return. Local. */
void nami_die_hook(void (*hook)(int code));

/* Return from the calling function when `call` fails. */
#define NAMI_TRY(call)                                                                 \
    do {                                                                               \
        nami_status nami_try_status_ = (call);                                         \
        if (nami_try_status_ != NAMI_OK)                                               \
            return nami_try_status_;                                                   \
    } while (0)

/* End with exit code 70 when `condition` does not hold: a fault of nami itself. Always compiled in. */
#define NAMI_CHECK(condition)                                                          \
    ((condition) ? (void)0                                                             \
                 : nami_check_failed(#condition, __FILE__, __LINE__, __func__))
_Noreturn void nami_check_failed(const char *text, const char *file, int line,
                                 const char *function);

#endif
