/* SPDX-License-Identifier: MIT */
/* watch.c - blocking collectives end: done, or with a sentence who waits for whom.
 *
 * A rank whose limit has passed tells rank 0 so and waits a moment more. Rank 0, when it waits itself, collects
 * these reports; who sent none is who is missing. When rank 0 is the missing one, each rank ends by itself.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "comm/inner.h"

void nami_comm_phase(nami_comm *c, const char *phase, double seconds)
{
    snprintf(c->phase, sizeof c->phase, "%s", phase);
    c->limit = seconds;
}

void nami_comm_extend(nami_comm *c, double seconds)
{
    if (c)
        c->extra = seconds;
}

static bool is_complete(MPI_Request *request)
{
    int flag = 0;
    MPI_Status status;
    MPI_Test(request, &flag, &status);
    return flag;
}

/* Rank 0: mark who reports to be late, until `end`; true when the collective completed after all. */
static bool collect_reports(nami_comm *c, MPI_Request *request, double end, bool *late)
{
    nami_patience patience = {0};
    while (nami_now() < end) {
        int flag = 0;
        MPI_Status status;
        if (is_complete(request))
            return true;
        MPI_Iprobe(MPI_ANY_SOURCE, NAMI_COMM_LATE, c->control, &flag, &status);
        if (flag) {
            MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, NAMI_COMM_LATE, c->control,
                     &status);
            late[status.MPI_SOURCE] = true;
        }
        nami_patience_step(true, &patience);
    }
    return false;
}

static void list_missing(const nami_comm *c, const bool *late, nami_text *out)
{
    int shown = 0, missing = 0;
    for (int r = 1; r < c->size; r++)
        missing += !late[r];
    for (int r = 1; r < c->size && shown < 16; r++)
        if (!late[r])
            nami_text_add(out, "%s%d",
                          shown++       ? ", "
                          : missing > 1 ? "ranks "
                                        : "rank ",
                          r);
    if (missing > shown)
        nami_text_add(out, " and %d more", missing - shown);
}

static bool lead_ends(nami_comm *c, MPI_Request *request, const char *what)
{
    bool *late = nami_calloc(NAMI_MEM_OTHER, (size_t)c->size, sizeof *late);
    nami_text missing = {0};
    if (collect_reports(c, request, nami_now() + 2, late)) {
        nami_free(late);
        return true;
    }
    list_missing(c, late, &missing);
    nami_fail_clear();
    nami_die(nami_fail(NAMI_ELOST, "phase '%s': rank 0 waited %.0f s in a %s for %s",
                       c->phase, c->limit + c->extra, what,
                       missing.length
                           ? nami_text_get(&missing)
                           : "a message that does not come, though all ranks wait"));
}

static bool member_ends(nami_comm *c, MPI_Request *request, const char *what)
{
    MPI_Request report;
    nami_patience patience = {0};
    /* Ranks end one after the other, so that one sentence is printed and not thousands. */
    double end = nami_now() + 4 + 0.3 * (c->rank < 20 ? c->rank : 20);
    MPI_Isend(NULL, 0, MPI_BYTE, 0, NAMI_COMM_LATE, c->control, &report);
    while (nami_now() < end) {
        if (is_complete(request)) {
            MPI_Status status;
            MPI_Wait(
                &report,
                &status); /* rank 0 may take it at the next limit or never: it is empty, hence eager */
            return true;
        }
        nami_patience_step(true, &patience);
    }
    nami_fail_clear();
    nami_die(nami_fail(
        NAMI_ELOST,
        "phase '%s': rank %d waited %.0f s in a %s, and rank 0 did not answer",
        c->phase, c->rank, c->limit + c->extra, what));
}

/* Looks at the clock are far less than a second apart, also on a busy machine. When many seconds have passed, this
 * process was stopped, which is no waiting. */
enum { TURNS_A_LOOK = 64, LONGEST_LOOK = 10 };

void nami_comm_wait(nami_comm *c, MPI_Request *request, const char *what)
{
    nami_patience patience = {0};
    double waited = 0, last = 0;
    for (unsigned turn = 1; !is_complete(request); turn++) {
        nami_patience_wait(c, &patience);
        if (turn % TURNS_A_LOOK || c->limit <= 0)
            continue;
        double now = nami_now();
        waited += last > 0 && now - last < LONGEST_LOOK ? now - last : 0;
        last = now;
        if (waited < c->limit + c->extra)
            continue;
        if (c->rank == 0 ? lead_ends(c, request, what) : member_ends(c, request, what))
            return;
    }
}
