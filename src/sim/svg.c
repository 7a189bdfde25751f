/* SPDX-License-Identifier: MIT */
/* svg.c - a timeline as a picture.
 *
 * One row a position: computation as boxes with the number of the micro-batch, communication, reductions
 * and waits as a strip under them, idle time as the empty row. Shades tell the stages of a position apart.
 * Past BOXES_MOST boxes a row is condensed: the height of a colour in a slice of time is its share of it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/palette.h"
#include "sim/sim.h"

enum {
    BOXES_MOST = 20000,  /* drawn one by one */
    TITLES_MOST = 4000,  /* boxes that get a tooltip each */
    SLICES_MOST = 20000, /* slices of condensed rows, over all rows */
    ROWS_MOST = 64,
    LEFT = 104,
    RIGHT = 84,
    TOP = 96,
    BOTTOM = 30
};

typedef struct picture {
    const nami_timeline *t;
    nami_text *out;
    nami_palette palette;
    double start, end; /* of the time axis */
    double width;      /* of the plot */
    double row, gap;   /* height of a row, distance to the next */
    int rows;
    double strip; /* height of the strip under the boxes, 0 without communication */
    bool titles;
    bool condensed;
    double factor;    /* from time to the unit of the axis */
    const char *unit; /* of the axis */
} picture;

static double x_of(const picture *v, double time)
{
    double span = v->end - v->start;
    return LEFT + (span > 0.0 ? (time - v->start) / span * v->width : 0.0);
}

/* Room for a word where positions are left out. */
static double break_of(const picture *v)
{
    return v->rows < v->t->positions ? 16.0 : 0.0;
}

static double y_of(const picture *v, int row)
{
    return TOP + row * (v->row + v->gap) + (row >= v->rows / 2 ? break_of(v) : 0.0);
}

/* Text of a document: the letters that XML keeps for itself are replaced. */
static void add_escaped(nami_text *out, const char *s)
{
    for (; *s != '\0'; s++) {
        switch (*s) {
        case '<':
            nami_text_add(out, "&lt;");
            break;
        case '>':
            nami_text_add(out, "&gt;");
            break;
        case '&':
            nami_text_add(out, "&amp;");
            break;
        default:
            nami_text_add(out, "%c", (unsigned char)*s < ' ' ? ' ' : *s);
        }
    }
}

/* A coordinate with at most two decimals and no useless zeros. */
static void add_number(nami_text *out, const char *name, double value)
{
    double rounded = round(value * 100.0) / 100.0;
    nami_text_add(out, " %s=\"%.7g\"", name, rounded);
}

static void add_rectangle(const picture *v, const char *colour, double x, double y,
                          double width, double height, bool closed)
{
    nami_text_add(v->out, "<rect");
    add_number(v->out, "x", x);
    add_number(v->out, "y", y);
    add_number(v->out, "width", width);
    add_number(v->out, "height", height);
    nami_text_add(v->out, " class=\"%s\"%s", colour, closed ? "/>\n" : ">");
}

/* Micro-batch number in the middle of a box, where it fits. */
static void add_label(const picture *v, const nami_span *s, const char *colour,
                      double x, double y, double width, double height)
{
    double size = fmin(13.0, height * 0.6);
    char label[16];
    if (s->action.unit < 0 || size < 5.0)
        return;
    int digits = snprintf(label, sizeof label, "%d", s->action.unit);
    double needed = digits * size * 0.6 + 2.0;
    if (needed > width) {
        size *= width / needed;
        if (size < 6.0)
            return;
    }
    nami_text_add(v->out, "<text");
    add_number(v->out, "x", x + width / 2);
    add_number(v->out, "y", y + height / 2 + size * 0.36);
    add_number(v->out, "font-size", size);
    nami_text_add(v->out, " class=\"n %s\">%s</text>\n",
                  nami_palette_dark(&v->palette, colour) ? "l" : "d", label);
}

static void add_tooltip(const picture *v, const nami_span *s)
{
    nami_text_add(v->out, "<title>");
    nami_action_print(s->action, v->out);
    nami_text_add(v->out, ": %.6g to %.6g %s</title></rect>\n",
                  (s->start - v->start) * v->factor, (s->end - v->start) * v->factor,
                  v->unit);
}

static void add_box(picture *v, int row, int position, const nami_span *s)
{
    double x = x_of(v, s->start), width = x_of(v, s->end) - x;
    if (!(width > 0.0))
        return;
    char colour[8];
    bool strip = nami_palette_class(&v->palette, position, s->action, colour);
    double body = v->row - v->strip, y = y_of(v, row);
    if (strip) {
        y += body + 1.0;
        body = v->strip - 1.0;
    }
    double inset = width > 3.0 ? 0.5 : 0.0;
    add_rectangle(v, colour, x + inset / 2, y, width - inset, body, !v->titles);
    if (v->titles)
        add_tooltip(v, s);
    if (!strip)
        add_label(v, s, colour, x, y, width, body);
}

/* Shares of time of forward, backward, weight gradient and the rest in one slice. */
enum { SHARES = 4 };

static int share_of(nami_action a)
{
    switch (a.kind) {
    case NAMI_F:
    case NAMI_R:
        return 0;
    case NAMI_B:
    case NAMI_BI:
        return 1;
    case NAMI_BW:
        return 2;
    case NAMI_UPDATE:
        return 3;
    default:
        return -1;
    }
}

static void add_condensed(picture *v, int row, int position)
{
    char colour[SHARES][16] = {"", "", "", "u"};
    for (int k = 0; k < SHARES - 1; k++)
        snprintf(colour[k], sizeof colour[k], "%c%d", "fbw"[k],
                 v -> palette.shades / 2);
    int slices = SLICES_MOST / v->rows;
    slices = slices > (int)v->width ? (int)v->width : slices;
    double step = (v->end - v->start) / slices;
    const nami_span *span = v->t->span[position];
    int64_t count = v->t->count[position], first = 0;
    for (int i = 0; i < slices; i++) {
        double from = v->start + i * step, to = from + step, share[SHARES] = {0};
        while (first < count && span[first].end <= from)
            first++;
        for (int64_t k = first; k < count && span[k].start < to; k++) {
            int which = share_of(span[k].action);
            double inside = fmin(span[k].end, to) - fmax(span[k].start, from);
            if (which >= 0 && inside > 0.0)
                share[which] += inside / step;
        }
        double y = y_of(v, row) + v->row;
        for (int k = 0; k < SHARES; k++) {
            double height = fmin(share[k], 1.0) * v->row;
            y -= height;
            if (height > 0.05)
                add_rectangle(v, colour[k], x_of(v, from), y, v->width / slices + 0.1,
                              height, true);
        }
    }
}

/* Idle share of one position. */
static double idle_of(const picture *v, int position)
{
    double busy = 0.0, span = v->end - v->start;
    for (int64_t i = 0; i < v->t->count[position]; i++) {
        const nami_span *s = &v->t->span[position][i];
        if (share_of(s->action) >= 0)
            busy += s->end - s->start;
    }
    return span > 0.0 ? 1.0 - busy / span : 0.0;
}

/* The position that row `row` shows: when rows are left out, those in the middle. */
static int position_of(const picture *v, int row)
{
    int left_out = v->t->positions - v->rows;
    return row < v->rows / 2 ? row : row + left_out;
}

static void add_row(picture *v, int row)
{
    int position = position_of(v, row);
    double y = y_of(v, row), size = fmin(12.0, fmax(6.0, v->row * 0.6));
    add_rectangle(v, "r", LEFT, y, v->width, v->row, true);
    nami_text_add(v->out, "<text x=\"%d\" text-anchor=\"end\"", LEFT - 8);
    add_number(v->out, "y", y + v->row / 2 + size * 0.36);
    add_number(v->out, "font-size", size);
    nami_text_add(v->out, ">position %d</text>\n<text", position);
    add_number(v->out, "x", LEFT + v->width + 8);
    add_number(v->out, "y", y + v->row / 2 + size * 0.36);
    add_number(v->out, "font-size", size);
    nami_text_add(v->out, " class=\"m\">idle %.1f %%</text>\n",
                  100.0 * idle_of(v, position));
    if (v->condensed) {
        add_condensed(v, row, position);
        return;
    }
    for (int64_t i = 0; i < v->t->count[position]; i++)
        add_box(v, row, position, &v->t->span[position][i]);
}

/* Say how many rows are left out, where they would be. */
static void add_break(const picture *v)
{
    if (v->rows == v->t->positions)
        return;
    nami_text_add(v->out, "<text x=\"%d\" y=\"%.2f\" font-size=\"11\" class=\"m\">",
                  LEFT, y_of(v, v->rows / 2) - 6.0);
    nami_text_add(v->out, "positions %d to %d are left out</text>\n", v->rows / 2,
                  position_of(v, v->rows / 2) - 1);
}

/* 1, 2 or 5 times a power of ten, so that about `ticks` of them fill `span`. */
static double nice_step(double span, int ticks)
{
    double raw = span / ticks, power = pow(10.0, floor(log10(raw)));
    double lead = raw / power;
    return power * (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0);
}

static void add_axis(const picture *v)
{
    double span = (v->end - v->start) * v->factor, bottom = y_of(v, v->rows) - v->gap;
    double step = span > 0.0 ? nice_step(span, (int)(v->width / 90.0)) : 1.0;
    for (int i = 0; i * step <= span * (1.0 + 1e-9); i++) {
        double x = x_of(v, v->start + i * step / v->factor);
        nami_text_add(v->out, "<path class=\"g\" d=\"M%.2f %dV%.2f\"/>\n", x, TOP - 4,
                      bottom + 4);
        nami_text_add(v->out,
                      "<text x=\"%.2f\" y=\"%.2f\" font-size=\"11\" "
                      "text-anchor=\"middle\">%.6g%s%s"
                      "</text>\n",
                      x, bottom + 18, i * step, *v->unit != '\0' ? " " : "", v->unit);
    }
}

/* "s" as milli- or microseconds where numbers read better. */
static void choose_unit(picture *v, const char *unit)
{
    double span = v->end - v->start;
    bool seconds = strcmp(unit, "s") == 0;
    v->unit = unit;
    v->factor = 1.0;
    if (seconds && span < 2e-3) {
        v->unit = "us";
        v->factor = 1e6;
    } else if (seconds && span < 2.0) {
        v->unit = "ms";
        v->factor = 1e3;
    }
}

/* Plot size: a common box should be wide enough for its number. */
static void choose_size(picture *v)
{
    int64_t boxes = 0, longest = 0;
    v->rows = v->t->positions < ROWS_MOST ? v->t->positions : ROWS_MOST;
    for (int row = 0; row < v->rows; row++) {
        int64_t count = v->t->count[position_of(v, row)];
        boxes += count;
        longest = count > longest ? count : longest;
    }
    v->titles = boxes <= TITLES_MOST;
    v->condensed = boxes > BOXES_MOST;
    v->width = fmin(1800.0, fmax(900.0, 20.0 * (double)longest));
    v->row = v->rows <= 12 ? 34.0 : v->rows <= 24 ? 24.0 : 15.0;
    v->gap = v->rows <= 12 ? 8.0 : v->rows <= 24 ? 5.0 : 3.0;
}

static void add_head(const picture *v, const char *title)
{
    nami_text_add(
        v->out, "<text x=\"%d\" y=\"30\" font-size=\"18\" font-weight=\"600\">", LEFT);
    add_escaped(v->out, title);
    nami_text_add(
        v->out, "</text>\n<text x=\"%d\" y=\"50\" font-size=\"13\" class=\"m\">", LEFT);
    nami_text_add(v->out, "bubble %.2f %%, makespan %.6g%s%s",
                  100.0 * nami_timeline_bubble(v->t), (v->end - v->start) * v->factor,
                  *v->unit != '\0' ? " " : "", v->unit);
    if (v->condensed)
        nami_text_add(v->out, "; too many boxes to draw: heights are shares of time");
    nami_text_add(v->out, "</text>\n");
}

/* One legend entry at *x; moves it on. */
static void add_entry(const picture *v, const char *colour, const char *text, double *x)
{
    add_rectangle(v, colour, *x, 64.0, 14.0, 14.0, true);
    nami_text_add(v->out, "<text x=\"%.1f\" y=\"75.5\" font-size=\"12\">%s</text>\n",
                  *x + 19.0, text);
    *x += 19.0 + 7.0 * (double)strlen(text) + 16.0;
}

static void add_legend(const picture *v)
{
    double x = LEFT;
    for (int i = 0; i < nami_palette_entries(); i++) {
        char colour[8];
        const char *text;
        if (nami_palette_entry(&v->palette, i, colour, &text))
            add_entry(v, colour, text, &x);
    }
    add_entry(v, "r", "idle", &x);
    if (v->palette.shades > 1 && !v->condensed) {
        nami_text_add(v->out,
                      "<text x=\"%.1f\" y=\"75.5\" font-size=\"12\" class=\"m\">stages "
                      "of a position, "
                      "first to last:</text>\n",
                      x);
        x += 206.0;
        for (int i = 0; i < v->palette.shades; i++) {
            char colour[16];
            snprintf(colour, sizeof colour, "f%d", i);
            add_rectangle(v, colour, x + 15.0 * i, 64.0, 14.0, 14.0, true);
        }
    }
}

void nami_timeline_svg(const nami_timeline *t, const char *title, const char *unit,
                       nami_text *out)
{
    picture v = {.t = t, .out = out};
    nami_timeline_range(t, &v.start, &v.end);
    choose_size(&v);
    choose_unit(&v, unit);
    nami_palette_open(&v.palette, t);
    v.strip = nami_palette_strip(&v.palette) ? 0.2 * v.row : 0.0;
    double width = LEFT + v.width + RIGHT, height = y_of(&v, v.rows) - v.gap + BOTTOM;
    nami_text_add(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\">\n<style>text{font-family:\"DejaVu "
        "Sans\",Helvetica,Arial,"
        "sans-serif;fill:#212529}.m{fill:#5c6670}.n{text-anchor:middle}.l{fill:#fff}"
        ".d{fill:#1a1e21}.g{stroke:#adb5bd;stroke-width:.6;stroke-dasharray:2 3}",
        width, height, width, height);
    nami_palette_style(&v.palette, out);
    nami_text_add(out,
                  "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
    add_head(&v, title);
    add_legend(&v);
    for (int row = 0; row < v.rows; row++)
        add_row(&v, row);
    add_break(&v);
    add_axis(&v);
    nami_text_add(out, "</svg>\n");
    nami_palette_close(&v.palette);
}
