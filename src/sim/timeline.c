/* SPDX-License-Identifier: MIT */
/* timeline.c - what a timeline says: its range, its bubble, a picture in letters, a trace. */
#include <math.h>

#include "base/memory.h"
#include "sim/sim.h"

void nami_timeline_free(nami_timeline *t)
{
    for (int p = 0; p < t->positions; p++)
        nami_free(t->span[p]);
    nami_free(t->span);
    nami_free(t->count);
    *t = (nami_timeline){0};
}

/* Whether the action keeps its position busy. */
static bool is_busy(nami_action a)
{
    return nami_semantics_of(a.kind)->compute || a.kind == NAMI_UPDATE;
}

void nami_timeline_range(const nami_timeline *t, double *start, double *end)
{
    double first = INFINITY, last = -INFINITY;
    for (int p = 0; p < t->positions; p++) {
        for (int64_t i = 0; i < t->count[p]; i++) {
            first = fmin(first, t->span[p][i].start);
            last = fmax(last, t->span[p][i].end);
        }
    }
    *start = last >= first ? first : 0.0;
    *end = last >= first ? last : 0.0;
}

double nami_timeline_bubble(const nami_timeline *t)
{
    double start, end, busy = 0.0;
    nami_timeline_range(t, &start, &end);
    for (int p = 0; p < t->positions; p++) {
        for (int64_t i = 0; i < t->count[p]; i++) {
            if (is_busy(t->span[p][i].action))
                busy += t->span[p][i].end - t->span[p][i].start;
        }
    }
    double whole = t->positions * (end - start);
    return whole > 0.0 ? 1.0 - busy / whole : 0.0;
}

/* The end of the first backward of stage 0, of the rank that has it last, and of its last forward, of the rank that has
 * it first; -1 each where there is none. */
static void full_time(const nami_timeline *t, double *full, double *emptying)
{
    *full = *emptying = -1.0;
    for (int p = 0; p < t->positions; p++) {
        double first = -1.0, last = -1.0;
        for (int64_t i = 0; i < t->count[p]; i++) {
            const nami_span *s = &t->span[p][i];
            if (s->action.stage != 0)
                continue;
            if (s->action.kind == NAMI_F)
                last = fmax(last, s->end);
            else if (nami_semantics_of(s->action.kind)->makes_gradient && first < 0.0)
                first = s->end;
        }
        *full = fmax(*full, first);
        if (last >= 0.0)
            *emptying = *emptying < 0.0 ? last : fmin(*emptying, last);
    }
}

double nami_timeline_steady(const nami_timeline *t, double *steady)
{
    double full, emptying, busy = 0.0;
    full_time(t, &full, &emptying);
    *steady = 0.0;
    if (full < 0.0 || emptying <= full)
        return 0.0;
    for (int p = 0; p < t->positions; p++) {
        for (int64_t i = 0; i < t->count[p]; i++) {
            const nami_span *s = &t->span[p][i];
            if (is_busy(s->action))
                busy += fmax(0.0, fmin(s->end, emptying) - fmax(s->start, full));
        }
    }
    *steady = emptying - full;
    return 1.0 - busy / (t->positions * *steady);
}

/* The letter of an action in the picture: a digit for F, letters for the rest. */
static char letter_of(nami_action a)
{
    if (a.unit < 0)
        return 'U';
    switch (a.kind) {
    case NAMI_F:
        return "0123456789"[a.unit % 10];
    case NAMI_B:
    case NAMI_BI:
        return "abcdefghij"[a.unit % 10];
    case NAMI_BW:
        return 'w';
    case NAMI_R:
        return 'r';
    default:
        return 'U';
    }
}

void nami_timeline_text(const nami_timeline *t, int columns, nami_text *out)
{
    double start, end;
    int width = columns > 24 ? columns - 14 : 10;
    nami_timeline_range(t, &start, &end);
    char *row = nami_alloc(NAMI_MEM_OTHER, (size_t)width + 1);
    for (int p = 0; p < t->positions; p++) {
        int64_t i = 0;
        for (int c = 0; c < width; c++) {
            double middle = start + (end - start) * (c + 0.5) / width;
            while (i < t->count[p] &&
                   (t->span[p][i].end <= middle || !is_busy(t->span[p][i].action)))
                i++;
            bool inside = i < t->count[p] && t->span[p][i].start <= middle;
            row[c] = inside ? letter_of(t->span[p][i].action) : '.';
        }
        row[width] = '\0';
        nami_text_add(out, "position %3d  %s\n", p, row);
    }
    nami_text_add(
        out,
        "0-9 forward, a-j backward of micro-batch 0-9 (last digit), w weight gradient, "
        "r recomputation, U update, . idle\n");
    nami_free(row);
}

/* One event of a trace; `lane` 0 computation, 1 communication. */
static void add_event(const nami_span *s, int position, const char *comma,
                      nami_text *out)
{
    nami_text name = {0};
    nami_action_print(s->action, &name);
    bool busy = is_busy(s->action);
    nami_text_add(out, "%s\n{\"name\":", comma);
    nami_text_json(out, nami_text_get(&name));
    nami_text_add(
        out,
        ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
        nami_semantics_of(s->action.kind)->name, position, busy ? 0 : 1, s->start * 1e6,
        (s->end - s->start) * 1e6);
    nami_text_add(out, ",\"args\":{\"stage\":%d,\"unit\":%d}}", s->action.stage,
                  s->action.unit);
    nami_text_free(&name);
}

void nami_timeline_trace(const nami_timeline *t, nami_text *out)
{
    const char *comma = "";
    nami_text_add(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (int p = 0; p < t->positions; p++) {
        nami_text_add(
            out,
            "%s\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
            "\"position %d\"}}",
            comma, p, p);
        comma = ",";
        for (int64_t i = 0; i < t->count[p]; i++)
            add_event(&t->span[p][i], p, comma, out);
    }
    nami_text_add(out, "\n]}\n");
}
