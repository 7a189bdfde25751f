/* SPDX-License-Identifier: MIT */
/* read.c - schedules from text or CSV; the placement follows from who runs what. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sched/schedule.h"

enum { WORD_MOST = 96 };

typedef struct reader {
    const char *where;
    bool csv;
    int line; /* 1-based */
    nami_schedule *s;
    int positions, capacity;
} reader;

/* Fail at `word` of the line being read, for the reason that nami_action_parse would word. */
static nami_status at_line(const reader *r, const char *reason)
{
    char copy[600];
    snprintf(copy, sizeof copy, "%s", reason);
    nami_fail_clear();
    return nami_fail(NAMI_EINPUT, "%s:%d (position %d): %s", r->where, r->line,
                     r->positions - 1, copy);
}

static nami_status add_word(reader *r, const char *word, bool pair)
{
    nami_action a;
    if (nami_action_parse(word, &a) != NAMI_OK)
        return at_line(r, nami_fail_text());
    if (pair)
        a.flags |= NAMI_FLAG_PAIR;
    nami_list_add(&r->s->list[r->positions - 1], a);
    return NAMI_OK;
}

/* "(0F7;7B3)OVERLAP_F_B": neighbours that overlap. `word` is overwritten. */
static nami_status add_pair(reader *r, char *word)
{
    char *end = strchr(word, ')'), *part = word + 1;
    if (end == NULL || strcmp(end, ")OVERLAP_F_B") != 0)
        return at_line(r, "a word in brackets must read like (0F7;7B3)OVERLAP_F_B");
    *end = '\0';
    for (char *semicolon; (semicolon = strchr(part, ';')) != NULL;
         part = semicolon + 1) {
        *semicolon = '\0';
        NAMI_TRY(add_word(r, part, true));
    }
    return add_word(r, part, false);
}

/* One cell of a line, text[0..length), maybe empty. */
static nami_status add_cell(reader *r, const char *text, size_t length)
{
    char word[WORD_MOST];
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL)
        length--;
    while (length > 0 && strchr(" \t\r", *text) != NULL) {
        text++;
        length--;
    }
    if (length == 0)
        return NAMI_OK;
    if (length >= sizeof word)
        return at_line(r, "a word is longer than an action can be");
    memcpy(word, text, length);
    word[length] = '\0';
    return *word == '(' ? add_pair(r, word) : add_word(r, word, false);
}

static void add_position(reader *r)
{
    if (r->positions == r->capacity) {
        int more = r->capacity > 0 ? 2 * r->capacity : 16;
        r->s->list =
            nami_realloc(NAMI_MEM_OTHER, r->s->list, (size_t)more * sizeof(nami_list));
        for (int i = r->capacity; i < more; i++)
            r->s->list[i] = (nami_list){0};
        r->capacity = more;
    }
    r->positions++;
    r->s->place.positions = r->positions;
}

/* One line, text[0..length); blank lines and comments are no positions. */
static nami_status add_line(reader *r, const char *text, size_t length)
{
    const char *comment = memchr(text, '#', length);
    if (comment != NULL)
        length = (size_t)(comment - text);
    size_t blank = 0;
    while (blank < length && strchr(" \t\r", text[blank]) != NULL)
        blank++;
    if (blank == length)
        return NAMI_OK;
    if (r->positions == NAMI_STAGES_MOST)
        return at_line(r, "too many positions");
    add_position(r);
    for (size_t start = 0; start < length;) {
        size_t end = start;
        while (end < length &&
               (r->csv ? text[end] != ',' : strchr(" \t\r", text[end]) == NULL))
            end++;
        NAMI_TRY(add_cell(r, text + start, end - start));
        start = end + 1;
    }
    return NAMI_OK;
}

static nami_status add_lines(reader *r, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        r->line++;
        NAMI_TRY(add_line(r, text, length));
        text += length + (text[length] == '\n');
    }
    return NAMI_OK;
}

/* Largest numbers in use give the counts. */
static nami_status count(const char *where, nami_schedule *s)
{
    int stages = 0, units = 0, slices = 1, copies = 1;
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_action a = s->list[p].item[i];
            stages = a.stage >= stages ? a.stage + 1 : stages;
            units = a.unit >= units ? a.unit + 1 : units;
            slices = a.slice >= slices ? a.slice + 1 : slices;
            copies = a.copy >= copies ? a.copy + 1 : copies;
            s->communicates |=
                nami_semantics_of(a.kind)->sends || nami_semantics_of(a.kind)->receives;
            s->updates |= !nami_semantics_of(a.kind)->per_unit && a.kind != NAMI_DRAIN;
        }
    }
    if (stages == 0 || units == 0)
        return nami_fail(
            NAMI_EINPUT,
            "%s: no action is in it; a line like \"0F0 0B0\" per position is "
            "expected",
            where);
    s->place.stages = stages;
    s->place.copies = copies;
    s->recipe = (nami_recipe){.name = "file",
                              .placement = NAMI_PLACE_FREE,
                              .order = "file",
                              .positions = s->place.positions,
                              .microbatches = units,
                              .waves = 1,
                              .chunks = 1,
                              .slices = slices};
    return NAMI_OK;
}

/* A stage lies where its actions are. */
static nami_status place(const char *where, nami_schedule *s)
{
    nami_place *p = &s->place;
    size_t entries = (size_t)p->copies * (size_t)p->stages;
    p->position = nami_alloc(NAMI_MEM_OTHER, entries * sizeof(int));
    p->replicas = nami_alloc(NAMI_MEM_OTHER, (size_t)p->positions * sizeof(int));
    for (size_t i = 0; i < entries; i++)
        p->position[i] = -1;
    nami_place_fill(&s->recipe, p);
    for (int position = 0; position < p->positions; position++) {
        for (int64_t i = 0; i < s->list[position].count; i++) {
            nami_action a = s->list[position].item[i];
            int *here = &p->position[(int64_t)a.copy * p->stages + a.stage];
            if (*here >= 0 && *here != position)
                return nami_fail(NAMI_EINPUT,
                                 "%s: stage %d has actions on position %d and on "
                                 "position %d (entry %lld)",
                                 where, a.stage, *here, position, (long long)i);
            *here = position;
        }
    }
    for (size_t i = 0; i < entries; i++) {
        if (p->position[i] < 0)
            return nami_fail(NAMI_EINPUT,
                             "%s: there are %d stages, but stage %d has no action",
                             where, p->stages, (int)(i % (size_t)p->stages));
    }
    return NAMI_OK;
}

/* torch writes B for the input backward too when a W follows: tell the two apart. */
static void split_backward(nami_schedule *s)
{
    int64_t entries = 0, units = (int64_t)s->recipe.microbatches * s->recipe.slices;
    for (int p = 0; p < s->place.positions; p++)
        entries += s->list[p].count;
    if ((double)units * s->place.stages > (double)entries)
        return; /* not complete, so the validator refuses it anyway */
    bool *has_w =
        nami_calloc(NAMI_MEM_OTHER, (size_t)(units * s->place.stages), sizeof *has_w);
    for (int pass = 0; pass < 2; pass++) {
        for (int p = 0; p < s->place.positions; p++) {
            for (int64_t i = 0; i < s->list[p].count; i++) {
                nami_action *a = &s->list[p].item[i];
                if (a->unit < 0)
                    continue;
                int64_t at =
                    a->stage * units + (int64_t)a->unit * s->recipe.slices + a->slice;
                if (pass == 0 && a->kind == NAMI_BW)
                    has_w[at] = true;
                if (pass == 1 && a->kind == NAMI_B && has_w[at])
                    a->kind = NAMI_BI;
            }
        }
    }
    nami_free(has_w);
}

nami_status nami_schedule_read(const char *text, const char *where, nami_schedule *out)
{
    *out = (nami_schedule){0};
    reader r = {.where = where, .csv = strchr(text, ',') != NULL, .s = out};
    nami_status status = add_lines(&r, text);
    if (status == NAMI_OK)
        status = count(where, out);
    if (status == NAMI_OK)
        status = place(where, out);
    if (status == NAMI_OK && r.csv)
        split_backward(out);
    if (status != NAMI_OK)
        nami_schedule_free(out);
    return status;
}

/* The whole of `file` as text. */
static nami_status slurp(FILE *file, const char *path, char **text)
{
    size_t length = 0, capacity = 1u << 16;
    *text = nami_alloc(NAMI_MEM_OTHER, capacity + 1);
    for (;;) {
        size_t got = fread(*text + length, 1, capacity - length, file);
        length += got;
        if (got == 0)
            break;
        if (length == capacity) {
            capacity *= 2;
            *text = nami_realloc(NAMI_MEM_OTHER, *text, capacity + 1);
        }
    }
    if (ferror(file))
        return nami_fail(NAMI_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
    (*text)[length] = '\0';
    if (strlen(*text) != length)
        return nami_fail(NAMI_EINPUT, "%s: is no text: byte %zu is zero", path,
                         strlen(*text));
    return NAMI_OK;
}

nami_status nami_schedule_read_file(const char *path, nami_schedule *out)
{
    char *text = NULL;
    *out = (nami_schedule){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return nami_fail(NAMI_EINPUT, "%s: cannot be opened: %s", path,
                         strerror(errno));
    nami_status status = slurp(file, path, &text);
    if (status == NAMI_OK)
        status = nami_schedule_read(text, path, out);
    nami_free(text);
    fclose(file);
    return status;
}
