/* SPDX-License-Identifier: MIT */
/* parse.c - the grammar of a deck, line by line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "deck/deck.h"
#include "deck/entry.h"

/* One line while it is read; `end` is behind its last byte. */
typedef struct reader {
    nami_deck *deck;
    const char *cursor, *end;
    int line;
    nami_text section, key, value;
} reader;

static nami_status refuse(const reader *r, const char *expected)
{
    char place[320];
    nami_deck_place(r->deck, r->line, place, sizeof place);
    return nami_fail(NAMI_EINPUT, "%s: expected %s", place, expected);
}

static void skip_blanks(reader *r)
{
    while (r->cursor < r->end && (*r->cursor == ' ' || *r->cursor == '\t'))
        r->cursor++;
}

/* Whether nothing but blanks or a comment is left of the line. */
static bool at_end(reader *r)
{
    skip_blanks(r);
    return r->cursor == r->end || *r->cursor == '#';
}

static void set_text(nami_text *t, const char *s, size_t n)
{
    t->length = 0;
    nami_text_add(t, "%.*s", (int)n, s);
}

/* Take the name at the cursor into `t`; false when there is none. */
static bool take_name(reader *r, nami_text *t)
{
    size_t n = nami_deck_name(r->cursor, (size_t)(r->end - r->cursor));
    set_text(t, r->cursor, n);
    r->cursor += n;
    return n > 0;
}

static nami_status read_section(reader *r)
{
    r->cursor++;
    skip_blanks(r);
    if (!take_name(r, &r->section))
        return refuse(r, "a section name of a-z, 0-9 and '_' after '['");
    skip_blanks(r);
    if (r->cursor == r->end || *r->cursor++ != ']')
        return refuse(r, "']' after the section name");
    return at_end(r) ? NAMI_OK : refuse(r, "nothing after ']'");
}

/* The byte that \c stands for, 0 when unknown. */
static char unescape(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case '"':
    case '\\':
        return c;
    default:
        return 0;
    }
}

/* A quoted value; the cursor is on the opening quote. */
static nami_status read_quoted(reader *r)
{
    set_text(&r->value, "", 0);
    for (r->cursor++; r->cursor < r->end && *r->cursor != '"'; r->cursor++) {
        char c = *r->cursor;
        if (c == '\\') {
            r->cursor++;
            c = '\0';
            if (r->cursor < r->end)
                c = unescape(*r->cursor);
            if (!c)
                return refuse(r, "one of \\\" \\\\ \\n \\t \\r after the backslash");
        }
        nami_text_add(&r->value, "%c", c);
    }
    if (r->cursor == r->end)
        return refuse(r, "a closing '\"'");
    r->cursor++;
    return at_end(r) ? NAMI_OK : refuse(r, "nothing after the closing '\"'");
}

/* A bare value: up to the end of the line or a '#' behind a blank, blanks trimmed. */
static void read_bare(reader *r)
{
    const char *from = r->cursor, *to = from;
    while (to < r->end &&
           !(*to == '#' && (to == from || to[-1] == ' ' || to[-1] == '\t')))
        to++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    set_text(&r->value, from, (size_t)(to - from));
}

/* Refuse a key that was set before. */
static nami_status check_fresh(const reader *r)
{
    char place[320];
    const nami_deck_entry *old =
        nami_deck_find(r->deck, nami_text_get(&r->section), nami_text_get(&r->key));
    if (!old)
        return NAMI_OK;
    nami_deck_place(r->deck, r->line, place, sizeof place);
    return nami_fail(NAMI_EINPUT, "%s: %s.%s is set a second time, first in line %d",
                     place, old->section, old->key, old->line);
}

static nami_status read_assignment(reader *r)
{
    if (!take_name(r, &r->key))
        return refuse(r, "'[section]', 'key = value' or '# comment'");
    skip_blanks(r);
    if (r->cursor == r->end || *r->cursor++ != '=')
        return refuse(r, "'=' after the key");
    if (r->section.length == 0)
        return refuse(r, "a '[section]' before the first key");
    skip_blanks(r);
    if (r->cursor < r->end && *r->cursor == '"')
        NAMI_TRY(read_quoted(r));
    else
        read_bare(r);
    NAMI_TRY(check_fresh(r));
    return nami_deck_append(r->deck, nami_text_get(&r->section), nami_text_get(&r->key),
                            nami_text_get(&r->value), r->line);
}

static nami_status read_line(reader *r)
{
    for (const char *c = r->cursor; c < r->end; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7F)
            return refuse(r, "text; there is a control character");
    if (at_end(r))
        return NAMI_OK;
    return *r->cursor == '[' ? read_section(r) : read_assignment(r);
}

static nami_status read_lines(reader *r, const char *text, const char *end)
{
    if (end - text >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3))
        text += 3; /* the mark that some editors put before UTF-8 */
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        r->cursor = text;
        r->end = newline ? newline : end;
        text = newline ? newline + 1 : end;
        if (r->end > r->cursor && r->end[-1] == '\r')
            r->end--;
        r->line++;
        NAMI_TRY(read_line(r));
    }
    return NAMI_OK;
}

nami_status nami_deck_parse(const char *text, size_t bytes, const char *where,
                            nami_deck **deck)
{
    *deck = NULL;
    if (bytes > NAMI_DECK_BYTES)
        return nami_fail(NAMI_EINPUT, "%.300s: longer than %d bytes; a deck is shorter",
                         where, NAMI_DECK_BYTES);
    reader r = {.deck = nami_deck_create(where)};
    nami_status status = read_lines(&r, text, text + bytes);
    nami_text_free(&r.section);
    nami_text_free(&r.key);
    nami_text_free(&r.value);
    if (status == NAMI_OK)
        *deck = r.deck;
    else
        nami_deck_free(r.deck);
    return status;
}

nami_status nami_deck_load(const char *path, nami_text *out)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return nami_fail(NAMI_EINPUT, "deck '%.300s': %s", path, strerror(errno));
    char *text = nami_alloc(NAMI_MEM_OTHER, NAMI_DECK_BYTES + 1);
    errno = 0;
    size_t bytes = fread(text, 1, NAMI_DECK_BYTES + 1, file);
    nami_status status = NAMI_OK;
    if (ferror(file))
        status = nami_fail(NAMI_EINPUT, "deck '%.300s': %s", path, strerror(errno));
    else if (bytes > NAMI_DECK_BYTES || memchr(text, '\0', bytes))
        status =
            nami_fail(NAMI_EINPUT, "deck '%.300s': expected a text of at most %d bytes",
                      path, NAMI_DECK_BYTES);
    else
        nami_text_add(out, "%.*s", (int)bytes, text);
    fclose(file);
    nami_free(text);
    return status;
}

nami_status nami_deck_read(const char *path, nami_deck **deck)
{
    nami_text text = {0};
    *deck = NULL;
    nami_status status = nami_deck_load(path, &text);
    if (status == NAMI_OK)
        status = nami_deck_parse(nami_text_get(&text), text.length, path, deck);
    nami_text_free(&text);
    return status;
}
