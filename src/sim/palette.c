/* SPDX-License-Identifier: MIT */
/* palette.c - colours of a timeline.
 *
 * Forward blue, backward orange, weight gradient green: hues that stay apart for most colour-blind eyes, and
 * that differ in lightness when printed in grey. The shade of a box counts the stages of its position.
 */
#include "sim/palette.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const forward[NAMI_SHADES] = {"#b9d6f2", "#8fbde8", "#64a1db",
                                                 "#3d85c8", "#2569ab", "#1a4f86",
                                                 "#123b66", "#0b2848"};
static const char *const backward[NAMI_SHADES] = {"#ffdcae", "#ffc37d", "#fca54d",
                                                  "#f08723", "#d56c10", "#ae550b",
                                                  "#864108", "#5f2e06"};
static const char *const weight[NAMI_SHADES] = {"#c5e8c8", "#9ad6a0", "#6cc076",
                                                "#45a653", "#2f883d", "#226b2f",
                                                "#185023", "#0f3617"};
static const char *const again[NAMI_SHADES] = {"#d9d2ec", "#c0b3e0", "#a692d2",
                                               "#8c74c3", "#7359b0", "#5b4493",
                                               "#463472", "#322552"};

/* The first of `count` shades used to the darkest: spread over the lighter six. */
static int spread(int index, int shades)
{
    static const int table[NAMI_SHADES + 1][NAMI_SHADES] = {{0},
                                                            {2},
                                                            {1, 3},
                                                            {0, 2, 4},
                                                            {0, 1, 3, 4},
                                                            {0, 1, 2, 3, 4},
                                                            {0, 1, 2, 3, 4, 5},
                                                            {0, 1, 2, 3, 4, 5, 6},
                                                            {0, 1, 2, 3, 4, 5, 6, 7}};
    return table[shades][index];
}

static int32_t code_of(nami_action a)
{
    return (int32_t)a.copy << 16 | a.stage;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Append the distinct stages of a position's boxes. */
static int64_t collect(const nami_timeline *t, int position, int32_t *stage)
{
    int64_t count = 0, kept = 0;
    for (int64_t i = 0; i < t->count[position]; i++) {
        if (nami_semantics_of(t->span[position][i].action.kind)->compute)
            stage[count++] = code_of(t->span[position][i].action);
    }
    qsort(stage, (size_t)count, sizeof *stage, ascending);
    for (int64_t i = 0; i < count; i++) {
        if (kept == 0 || stage[kept - 1] != stage[i])
            stage[kept++] = stage[i];
    }
    return kept;
}

void nami_palette_open(nami_palette *c, const nami_timeline *t)
{
    int64_t all = 0;
    *c = (nami_palette){.shades = 1, .positions = t->positions};
    for (int p = 0; p < t->positions; p++) {
        all += t->count[p];
        for (int64_t i = 0; i < t->count[p]; i++) {
            const nami_span *s = &t->span[p][i];
            c->used[s->action.kind] |= s->end > s->start;
        }
    }
    c->stage = nami_alloc(NAMI_MEM_OTHER, (size_t)all * sizeof *c->stage);
    c->first = nami_calloc(NAMI_MEM_OTHER, (size_t)t->positions + 1, sizeof *c->first);
    for (int p = 0; p < t->positions; p++) {
        int64_t distinct = collect(t, p, c->stage + c->first[p]);
        c->first[p + 1] = c->first[p] + distinct;
        if (distinct > c->shades)
            c->shades = distinct < NAMI_SHADES ? (int)distinct : NAMI_SHADES;
    }
}

void nami_palette_close(nami_palette *c)
{
    nami_free(c->stage);
    nami_free(c->first);
    *c = (nami_palette){0};
}

/* Shade of an action: which of its position's stages it is; the last shade for all beyond. */
static int shade_of(const nami_palette *c, int position, nami_action a)
{
    int32_t code = code_of(a);
    const int32_t *begin = c->stage + c->first[position];
    size_t count = (size_t)(c->first[position + 1] - c->first[position]);
    const int32_t *found = bsearch(&code, begin, count, sizeof code, ascending);
    int64_t index = found != NULL ? found - begin : 0;
    return index < c->shades ? (int)index : c->shades - 1;
}

/* Letter of the class of a kind; those with shades are followed by one. */
static char letter_of(nami_kind kind)
{
    switch (kind) {
    case NAMI_F:
        return 'f';
    case NAMI_B:
    case NAMI_BI:
        return 'b';
    case NAMI_BW:
        return 'w';
    case NAMI_R:
        return 'a';
    case NAMI_UPDATE:
        return 'u';
    case NAMI_REDUCE:
    case NAMI_REDUCE_SCATTER:
    case NAMI_GATHER:
        return 's';
    default:
        return 'c';
    }
}

bool nami_palette_class(const nami_palette *c, int position, nami_action a,
                        char name[8])
{
    bool shaded = nami_semantics_of(a.kind)->compute;
    name[0] = letter_of(a.kind);
    name[1] = shaded ? "01234567"[shade_of(c, position, a)] : '\0';
    name[2] = '\0';
    return !shaded && a.kind != NAMI_UPDATE;
}

bool nami_palette_dark(const nami_palette *c, const char *name)
{
    static const char letters[] = "fbwa";
    static const int darkest[] = {2, 4, 3, 2}; /* shade that still takes black text */
    const char *letter = strchr(letters, name[0]);
    if (letter == NULL || name[1] == '\0')
        return true;
    return spread(name[1] - '0', c->shades) > darkest[letter - letters];
}

int nami_palette_entries(void)
{
    return 7;
}

bool nami_palette_strip(const nami_palette *c)
{
    bool any = false;
    for (int kind = 0; kind < NAMI_KINDS; kind++)
        any |= c->used[kind] && !nami_semantics_of((nami_kind)kind)->compute &&
               kind != NAMI_UPDATE;
    return any;
}

bool nami_palette_entry(const nami_palette *c, int i, char name[8], const char **text)
{
    const bool *u = c->used;
    const struct {
        char letter;
        bool shaded, used;
        const char *text;
    } entry[] = {
        {'f', true, u[NAMI_F], "forward"},
        {'b', true, u[NAMI_B] || u[NAMI_BI],
         !u[NAMI_BI]  ? "backward"
         : !u[NAMI_B] ? "backward (input)"
                      : "backward (whole or input)"},
        {'w', true, u[NAMI_BW], "backward (weights)"},
        {'a', true, u[NAMI_R], "recomputation"},
        {'c', false,
         u[NAMI_SEND_F] || u[NAMI_RECV_F] || u[NAMI_SEND_B] || u[NAMI_RECV_B],
         "message under way"},
        {'u', false, u[NAMI_UPDATE], "update"},
        {'s', false, u[NAMI_REDUCE] || u[NAMI_REDUCE_SCATTER] || u[NAMI_GATHER],
         "sum of gradients"},
    };
    name[0] = entry[i].letter;
    name[1] = entry[i].shaded ? "01234567"[c->shades / 2] : '\0';
    name[2] = '\0';
    *text = entry[i].text;
    return entry[i].used;
}

void nami_palette_style(const nami_palette *c, nami_text *out)
{
    static const char letter[] = "fbwa";
    const char *const *const table[] = {forward, backward, weight, again};
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < c->shades; i++)
            nami_text_add(out, ".%c%d{fill:%s}", letter[k], i,
                          table[k][spread(i, c->shades)]);
    }
    nami_text_add(out,
                  ".r{fill:#eef0f2}.u{fill:#c2255c}.c{fill:#868e96}.s{fill:#7048e8}");
}
