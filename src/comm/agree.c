/* SPDX-License-Identifier: MIT */
/* agree.c - all ranks learn of a failure on one of them. */
#include <string.h>

#include "base/log.h"
#include "comm/inner.h"

/* Largest code first, then the lowest rank. */
static int64_t pack(const nami_comm *c, nami_status own)
{
    return (int64_t)own * ((int64_t)1 << 32) + (c->size - 1 - c->rank);
}

nami_status nami_comm_settle(nami_comm *c, nami_status own)
{
    if (!c || c->size == 1)
        return own;
    int64_t mine = pack(c, own), worst = 0;
    char sentence[NAMI_COMM_SENTENCE] = "";
    MPI_Request request;
    MPI_Iallreduce(&mine, &worst, 1, MPI_INT64_T, MPI_MAX, c->control, &request);
    nami_comm_wait(c, &request, "agreement");
    nami_status status = (nami_status)(worst >> 32);
    if (status == NAMI_OK)
        return NAMI_OK;
    strncpy(sentence, nami_fail_text(), sizeof sentence - 1);
    nami_comm_broadcast(c, sentence, sizeof sentence,
                        c->size - 1 - (int)(worst & 0xffffffff));
    nami_fail_clear();
    if (sentence[0])
        return nami_fail(status, "%s", sentence);
    return status;
}

nami_status nami_agree(nami_comm *c, nami_status own)
{
    nami_status status = nami_comm_settle(c, own);
    if (status == NAMI_OK)
        return NAMI_OK;
    if ((!c || c->rank == 0) && nami_fail_text()[0])
        nami_log(status == NAMI_STOPPED || status == NAMI_NOTHING ? NAMI_INFO
                                                                  : NAMI_ERROR,
                 "%s", nami_fail_text());
    nami_fail_clear();
    return status;
}
