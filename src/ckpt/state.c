/* SPDX-License-Identifier: MIT */
/* state.c - what a checkpoint says beside its arrays. */
#include <string.h>

#include "base/memory.h"
#include "ckpt/inner.h"

nami_status nami_ckpt_restart(nami_status status)
{
    return status == NAMI_EINPUT ? NAMI_ERESTART : status;
}

int64_t nami_ckpt_state_crc(const nami_ckpt_state *s)
{
    const char *const text[] = {s->deck, s->build, s->parent, s->data};
    int64_t number[] = {s->step, s->sample, s->seed, s->partials};
    uint32_t crc = nami_store_crc(0, number, sizeof number);
    for (int i = 0; i < 4; i++)
        crc = nami_store_crc(crc, text[i] ? text[i] : "",
                             text[i] ? strlen(text[i]) + 1 : 1);
    if (s->numbers && s->numbers[0])
        crc = nami_store_crc(crc, s->numbers, strlen(s->numbers) + 1);
    return crc;
}

static nami_status read_fields(nami_store *s, nami_ckpt_state *state)
{
    NAMI_TRY(nami_store_get_int(s, "step", &state->step));
    NAMI_TRY(nami_store_get_int(s, "sample", &state->sample));
    NAMI_TRY(nami_store_get_int(s, "seed", &state->seed));
    NAMI_TRY(nami_store_get_int(s, "partials", &state->partials));
    NAMI_TRY(nami_store_get_text(s, "deck", &state->deck));
    NAMI_TRY(nami_store_get_text(s, "build", &state->build));
    NAMI_TRY(nami_store_get_text(s, "parent", &state->parent));
    NAMI_TRY(nami_store_get_text(s, "data", &state->data));
    if (nami_store_get_text(s, "numbers", &state->numbers) != NAMI_OK) {
        nami_fail_clear(); /* where nothing depends, or the checksum tells */
        state->numbers = nami_strdup("");
    }
    return NAMI_OK;
}

/* Read on this process alone. */
static nami_status read_here(const char *path, nami_ckpt_state *state)
{
    nami_store *s;
    int64_t crc = 0;
    NAMI_TRY(nami_store_open(NULL, path, &s));
    nami_status status = read_fields(s, state), closed;
    if (status == NAMI_OK)
        status = nami_store_get_int(s, "state_crc", &crc);
    closed = nami_store_close(s);
    if (status == NAMI_OK)
        status = closed;
    if (status == NAMI_OK && crc != nami_ckpt_state_crc(state))
        status =
            nami_fail(NAMI_ERESTART, "%s: the state does not match its checksum", path);
    return status;
}

static void share_text(nami_comm *c, char **text)
{
    int64_t bytes = *text ? (int64_t)strlen(*text) + 1 : 0;
    nami_comm_broadcast(c, &bytes, sizeof bytes, 0);
    if (nami_comm_rank(c) != 0)
        *text = nami_alloc(NAMI_MEM_OTHER, (size_t)bytes);
    nami_comm_broadcast(c, *text, (size_t)bytes, 0);
}

/* Give the state of rank 0 to all. */
static void share(nami_comm *c, nami_ckpt_state *state)
{
    int64_t number[] = {state->step, state->sample, state->seed, state->partials};
    nami_comm_broadcast(c, number, sizeof number, 0);
    state->step = number[0];
    state->sample = number[1];
    state->seed = number[2];
    state->partials = number[3];
    share_text(c, &state->deck);
    share_text(c, &state->build);
    share_text(c, &state->parent);
    share_text(c, &state->data);
    share_text(c, &state->numbers);
}

nami_status nami_ckpt_state_read(nami_comm *c, const char *path, nami_ckpt_state *state)
{
    *state = (nami_ckpt_state){0};
    nami_status status =
        nami_ckpt_leads(c) ? nami_ckpt_restart(read_here(path, state)) : NAMI_OK;
    status = nami_comm_settle(c, status);
    if (status != NAMI_OK)
        nami_ckpt_state_free(state);
    else if (c)
        share(c, state);
    return status;
}

void nami_ckpt_state_free(nami_ckpt_state *s)
{
    nami_free(s->deck);
    nami_free(s->build);
    nami_free(s->parent);
    nami_free(s->data);
    nami_free(s->numbers);
    *s = (nami_ckpt_state){0};
}
