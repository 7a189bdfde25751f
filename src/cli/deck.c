/* SPDX-License-Identifier: MIT */
/* deck.c - from a deck file and the command line to settings. */
#include "cli/deck.h"

#include <string.h>

#include "base/memory.h"
#include "deck/deck.h"

/* Rank 0's deck as text on every rank; a deck that cannot be read is a failure on rank 0 alone. */
static nami_status share_text(nami_comm *c, const char *path, nami_text *text)
{
    nami_status status = NAMI_OK;
    int64_t length = 0;
    if (!c || nami_comm_rank(c) == 0)
        status = nami_deck_load(path, text);
    if (!c)
        return status;
    NAMI_TRY(nami_agree(c, status));
    length = (int64_t)text->length;
    nami_comm_broadcast(c, &length, sizeof length, 0);
    char *bytes = nami_alloc(NAMI_MEM_OTHER, (size_t)length + 1);
    memcpy(bytes, nami_text_get(text), nami_comm_rank(c) == 0 ? (size_t)length : 0);
    nami_comm_broadcast(c, bytes, (size_t)length, 0);
    bytes[length] = '\0';
    nami_text_free(text);
    *text = (nami_text){
        .data = bytes, .length = (size_t)length, .capacity = (size_t)length + 1};
    return NAMI_OK;
}

/* Bind `text` with the assignments word[1..words); word[0] names the place. `own`: a user wrote it. */
static nami_status bind(const char *text, size_t length, char **word, int words,
                        bool own, nami_settings *out)
{
    nami_deck *deck = NULL;
    void *object[NAMI_SETTINGS_PARTS];
    nami_settings_objects(out, object);
    NAMI_TRY(nami_deck_parse(text, length, word[0], &deck));
    nami_status status = NAMI_OK;
    for (int i = 1; i < words && status == NAMI_OK; i++)
        status = nami_deck_override(deck, word[i]);
    if (status == NAMI_OK)
        status =
            nami_deck_bind(deck, nami_settings_tables, object, NAMI_SETTINGS_PARTS);
    if (status == NAMI_OK && own && nami_deck_value(deck, "model", "bias"))
        status = nami_model_check_bias(&out->model);
    if (status == NAMI_OK)
        nami_model_settle(&out->model);
    nami_deck_free(deck);
    return status;
}

nami_status nami_cli_deck(nami_comm *c, char **word, int words, nami_settings *out)
{
    nami_text text = {0};
    nami_status status = share_text(c, word[0], &text);
    if (status == NAMI_OK)
        status = bind(nami_text_get(&text), text.length, word, words, true, out);
    nami_text_free(&text);
    if (c)
        NAMI_TRY(nami_agree(c, status));
    if (status == NAMI_OK)
        status = nami_settings_resolve(c, out);
    return c ? nami_agree(c, status) : status;
}

nami_status nami_cli_deck_bare(char **word, int words, nami_settings *out)
{
    nami_text text = {0};
    nami_status status = share_text(NULL, word[0], &text);
    if (status == NAMI_OK)
        status = bind(nami_text_get(&text), text.length, word, words, true, out);
    nami_text_free(&text);
    return status;
}

nami_status nami_cli_deck_text(const char *text, const char *where, nami_settings *out)
{
    char *word = nami_strdup(where);
    nami_status status = bind(text, strlen(text), &word, 1, false, out);
    nami_free(word);
    return status;
}

void nami_cli_resolved(nami_settings *s, nami_text *out)
{
    void *object[NAMI_SETTINGS_PARTS];
    nami_settings_objects(s, object);
    nami_deck_echo(nami_settings_tables, (const void *const *)object,
                   NAMI_SETTINGS_PARTS, out);
}
