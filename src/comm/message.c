/* SPDX-License-Identifier: MIT */
/* message.c - nonblocking messages of any size, from a pool of requests. */
#include "base/memory.h"
#include "comm/inner.h"

enum { FIRST_SLOTS = 256 };

static void grow(nami_comm *c)
{
    int slots = c->slots ? 2 * c->slots : FIRST_SLOTS;
    c->slot = nami_realloc(NAMI_MEM_OTHER, c->slot, (size_t)slots * sizeof *c->slot);
    for (int i = slots - 1; i >= c->slots; i--) {
        c->slot[i] = (nami_slot){.request = MPI_REQUEST_NULL, .next = c->free_slot};
        c->free_slot = i;
    }
    c->slots = slots;
}

int nami_comm_slot(nami_comm *c)
{
    if (c->free_slot < 0)
        grow(c);
    int i = c->free_slot;
    c->free_slot = c->slot[i].next;
    c->slot[i] = (nami_slot){
        .request = MPI_REQUEST_NULL, .next = -1, .expected = -1, .busy = true};
    return i;
}

static int release(nami_comm *c, int i)
{
    int next = c->slot[i].next;
    c->slot[i].busy = false;
    c->slot[i].next = c->free_slot;
    c->free_slot = i;
    return next;
}

static void check_peer(const nami_comm *c, int peer, int tag)
{
    NAMI_CHECK(peer >= 0 && peer < c->size);
    NAMI_CHECK(tag >= 0 && tag < c->tags);
}

static void start_piece(nami_comm *c, nami_slot *s, void *data, int bytes, bool sending)
{
    if (sending) {
        MPI_Isend(data, bytes, MPI_BYTE, s->peer, s->tag, c->data, &s->request);
        return;
    }
    s->expected = bytes;
    MPI_Irecv(data, bytes, MPI_BYTE, s->peer, s->tag, c->data, &s->request);
}

/* MPI matches pieces of one (peer, tag) in the order they were started, so no piece needs a number. */
static nami_request start(nami_comm *c, void *data, size_t bytes, int peer, int tag,
                          bool sending)
{
    char *at = data;
    int first = -1, last = -1;
    check_peer(c, peer, tag);
    do {
        int piece = bytes < NAMI_COMM_PIECE ? (int)bytes : NAMI_COMM_PIECE;
        int i = nami_comm_slot(c);
        c->slot[i].peer = peer;
        c->slot[i].tag = tag;
        start_piece(c, &c->slot[i], at, piece, sending);
        if (last >= 0)
            c->slot[last].next = i;
        else
            first = i;
        last = i;
        at += piece;
        bytes -= (size_t)piece;
    } while (bytes > 0);
    c->pending++;
    return first + 1;
}

nami_request nami_comm_send(nami_comm *c, const void *data, size_t bytes, int peer,
                            int tag)
{
    return start(c, (void *)(uintptr_t)data, bytes, peer, tag, true);
}

nami_request nami_comm_receive(nami_comm *c, void *data, size_t bytes, int peer,
                               int tag)
{
    return start(c, data, bytes, peer, tag, false);
}

static void check_length(const nami_slot *s, const MPI_Status *status)
{
    int got = 0;
    if (s->expected < 0)
        return;
    MPI_Get_count(status, MPI_BYTE, &got);
    if (got == s->expected)
        return;
    nami_fail_clear();
    nami_die(nami_fail(NAMI_EBUG,
                       "a message of %d bytes came from rank %d with tag %d where %d "
                       "bytes were expected",
                       got, s->peer, s->tag, s->expected));
}

bool nami_comm_done(nami_comm *c, nami_request *r)
{
    while (*r > 0) {
        int i = *r - 1, flag = 0;
        MPI_Status status;
        NAMI_CHECK(i < c->slots && c->slot[i].busy);
        MPI_Test(&c->slot[i].request, &flag, &status);
        if (!flag)
            return false;
        check_length(&c->slot[i], &status);
        *r = release(c, i) + 1; /* 0 after the last piece */
        c->pending -= *r == 0;
        c->activity++;
    }
    return true;
}

bool nami_comm_all_done(int count, MPI_Request *request)
{
    for (int i = 0; i < count; i++) {
        int flag = 0;
        MPI_Status status;
        if (request[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Test(&request[i], &flag, &status);
        if (!flag)
            return false;
    }
    return true;
}

void nami_comm_progress(nami_comm *c)
{
    int flag = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c->data, &flag, &status);
}

int nami_comm_pending(const nami_comm *c)
{
    return c->pending;
}
