/* SPDX-License-Identifier: MIT */
/* profile.c - measured times of layers or stages, from a small table in a text file. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/sim.h"

enum { COLUMNS_MOST = 16, ROWS_MOST = 1 << 20, LINE_MOST = 1024 };
enum { F, BI, BW, B, BYTES, SKIPPED, NAMES };

static const char *const names[NAMES] = {"f", "bi", "bw", "b", "bytes", "stage"};

typedef struct reader {
    const char *where;
    int line, columns; /* columns 0: the names have not come yet */
    int column[COLUMNS_MOST];
    bool has[NAMES];
    int room;
    nami_profile *out;
} reader;

static nami_status name_column(reader *r, const char *word)
{
    int k = 0;
    while (k < NAMES && strcmp(names[k], word) != 0)
        k++;
    if (strcmp(word, "name") == 0)
        k = SKIPPED;
    if (k == NAMES)
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: \"%.40s\" is no column of a profile; f, bi, bw, b, "
                         "bytes, stage and name are",
                         r->where, r->line, word);
    if (r->has[k] && k != SKIPPED)
        return nami_fail(NAMI_EINPUT, "%s:%d: column \"%s\" is there twice", r->where,
                         r->line, word);
    if (r->columns == COLUMNS_MOST)
        return nami_fail(NAMI_EINPUT, "%s:%d: there are too many columns", r->where,
                         r->line);
    r->has[k] = true;
    r->column[r->columns++] = k;
    return NAMI_OK;
}

/* f, and either bi and bw or b. */
static nami_status check_columns(const reader *r)
{
    bool split = r->has[BI] && r->has[BW] && !r->has[B];
    bool whole = r->has[B] && !r->has[BI] && !r->has[BW];
    if (r->has[F] && (split || whole))
        return NAMI_OK;
    return nami_fail(
        NAMI_EINPUT,
        "%s:%d: the first line must name the columns f, and bi and bw or b", r->where,
        r->line);
}

static void grow(reader *r)
{
    nami_profile *p = r->out;
    if (p->rows < r->room)
        return;
    r->room = r->room > 0 ? 2 * r->room : 64;
    double **column[] = {&p->f, &p->bi, &p->bw, &p->bytes};
    for (int i = 0; i < 4; i++)
        *column[i] =
            nami_realloc(NAMI_MEM_OTHER, *column[i], (size_t)r->room * sizeof(double));
}

static void add_row(reader *r, const double *value)
{
    nami_profile *p = r->out;
    grow(r);
    p->f[p->rows] = value[F];
    p->bi[p->rows] = r->has[B] ? value[B] / 2.0 : value[BI];
    p->bw[p->rows] = r->has[B] ? value[B] / 2.0 : value[BW];
    p->bytes[p->rows++] = value[BYTES];
}

static nami_status read_value(const reader *r, int column, const char *word,
                              double *out)
{
    if (r->column[column] == SKIPPED)
        return NAMI_OK;
    if (!nami_parse_real(word, out) || !(*out >= 0.0) || isinf(*out))
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: column %s: \"%.40s\" is no number of at least 0",
                         r->where, r->line, names[r->column[column]], word);
    return NAMI_OK;
}

/* One line without its comment; `text` is overwritten. */
static nami_status read_line(reader *r, char *text)
{
    double value[NAMES] = {0};
    int words = 0;
    bool header = r->columns == 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, ", \t\r", &rest); word != NULL;
         word = strtok_r(NULL, ", \t\r", &rest), words++) {
        if (header)
            NAMI_TRY(name_column(r, word));
        else if (words < r->columns)
            NAMI_TRY(read_value(r, words, word, &value[r->column[words]]));
    }
    if (words == 0)
        return NAMI_OK;
    if (header)
        return check_columns(r);
    if (words != r->columns)
        return nami_fail(NAMI_EINPUT, "%s:%d: %d columns are named, but here are %d",
                         r->where, r->line, r->columns, words);
    if (r->out->rows == ROWS_MOST)
        return nami_fail(NAMI_EINPUT, "%s:%d: there are too many rows", r->where,
                         r->line);
    add_row(r, value);
    return NAMI_OK;
}

nami_status nami_profile_parse(const char *text, const char *where, nami_profile *out)
{
    reader r = {.where = where, .out = out};
    *out = (nami_profile){0};
    while (*text != '\0') {
        char line[LINE_MOST];
        size_t length = strcspn(text, "\n"), used = strcspn(text, "#\n");
        r.line++;
        if (used >= sizeof line)
            return nami_fail(NAMI_EINPUT, "%s:%d: the line is too long", where, r.line);
        memcpy(line, text, used);
        line[used] = '\0';
        NAMI_TRY(read_line(&r, line));
        text += length + (text[length] == '\n');
    }
    if (out->rows == 0)
        return nami_fail(
            NAMI_EINPUT,
            "%s: no times are in it; a line \"f,b\" and one for each stage "
            "are expected",
            where);
    return NAMI_OK;
}

nami_status nami_profile_read(const char *path, nami_profile *out)
{
    nami_text text = {0};
    char part[4096];
    *out = (nami_profile){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return nami_fail(NAMI_EINPUT, "%s: cannot be opened: %s", path,
                         strerror(errno));
    bool text_only = true;
    for (size_t got; (got = fread(part, 1, sizeof part - 1, file)) > 0;) {
        part[got] = '\0';
        text_only = text_only && strlen(part) == got;
        nami_text_add(&text, "%s", part);
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    nami_status status =
        failed ? nami_fail(NAMI_EINPUT, "%s: cannot be read: %s", path, strerror(errno))
        : !text_only
            ? nami_fail(NAMI_EINPUT, "%s: is no text: a byte of it is zero", path)
            : nami_profile_parse(nami_text_get(&text), path, out);
    nami_text_free(&text);
    return status;
}

void nami_profile_free(nami_profile *p)
{
    nami_free(p->f);
    nami_free(p->bi);
    nami_free(p->bw);
    nami_free(p->bytes);
    *p = (nami_profile){0};
}

nami_status nami_profile_cut(const nami_profile *p, int stages, double *f, double *bi,
                             double *bw, double *bytes)
{
    if (stages < 1 || p->rows % stages != 0)
        return nami_fail(
            NAMI_EPLAN,
            "the profile's %d rows cannot be shared by %d stages: %d = %d x "
            "%d + %d",
            p->rows, stages, p->rows, stages, p->rows / stages, p->rows % stages);
    int each = p->rows / stages;
    for (int s = 0; s < stages; s++) {
        f[s] = bi[s] = bw[s] = 0.0;
        for (int i = s * each; i < (s + 1) * each; i++) {
            f[s] += p->f[i];
            bi[s] += p->bi[i];
            bw[s] += p->bw[i];
            bytes[s] = p->bytes[i];
        }
    }
    return NAMI_OK;
}
