/* SPDX-License-Identifier: MIT */
/* chain.c - the profile of a chain of blocks as a file: three small tables, each known by its first column. */
#include "plan/chain.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { COLUMNS_MOST = 16, LINE_MOST = 1024, BYTES_MOST = 1 << 26 };

typedef enum table { NONE, LAYERS, LINKS, RUN, TABLES } table;

/* A number of a row. */
typedef struct column {
    table table;
    const char *name;
    size_t offset;
    double unit; /* of the file / ours */
} column;

/* What a row of any table fills; a table reads its own part. */
typedef struct row {
    nami_chain_block block;
    double backward;
    nami_chain_link link;
    double samples, ranks_per_node;
} row;

#define FIELD(name) offsetof(row, name)
static const column columns[] = {
    {LAYERS, "forward_ms", FIELD(block.forward), 1e-3},
    {LAYERS, "backward_ms", FIELD(backward), 1e-3},
    {LAYERS, "backward_input_ms", FIELD(block.input), 1e-3},
    {LAYERS, "backward_weight_ms", FIELD(block.weight), 1e-3},
    {LAYERS, "activation_bytes", FIELD(block.output), 1},
    {LAYERS, "kept_bytes", FIELD(block.kept), 1},
    {LAYERS, "transient_bytes", FIELD(block.transient), 1},
    {LAYERS, "parameter_bytes", FIELD(block.parameter), 1},
    {LAYERS, "packed_bytes", FIELD(block.packed), 1},
    {LINKS, "latency_us", FIELD(link.latency), 1e-6},
    {LINKS, "bytes_per_second", FIELD(link.rate), 1},
    {LINKS, "reduce_bytes_per_second", FIELD(link.reduce), 1},
    {RUN, "ranks_per_node", FIELD(ranks_per_node), 1},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *const first[TABLES] = {
    [LAYERS] = "layer", [LINKS] = "link", [RUN] = "samples"};

typedef struct reader {
    const char *where;
    int line;
    table table;
    int column[COLUMNS_MOST], count; /* of the table at hand */
    bool seen[TABLES], has[COLUMNS];
    int room;
    nami_chain *out;
} reader;

static int find_column(table t, const char *word)
{
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].table == t && strcmp(columns[i].name, word) == 0)
            return i;
    }
    return -1;
}

static bool has(const reader *r, const char *name)
{
    return r->has[find_column(LAYERS, name)];
}

/* A table of layers must say what a plan cannot do without. */
static nami_status check_head(const reader *r)
{
    bool whole = has(r, "backward_ms");
    bool split = has(r, "backward_input_ms") && has(r, "backward_weight_ms");
    bool part = has(r, "backward_input_ms") || has(r, "backward_weight_ms");
    if (r->table != LAYERS || (has(r, "forward_ms") && has(r, "activation_bytes") &&
                               has(r, "parameter_bytes") && (whole ? !part : split)))
        return NAMI_OK;
    return nami_fail(
        NAMI_EINPUT,
        "%s:%d: columns forward_ms, activation_bytes, parameter_bytes, and "
        "backward_ms or both backward_input_ms and backward_weight_ms are "
        "expected",
        r->where, r->line);
}

/* The head of table `t`: word [words], the first known. */
static nami_status read_head(reader *r, table t, char **word, int words)
{
    if (r->seen[t])
        return nami_fail(NAMI_EINPUT, "%s:%d: a second table \"%s\"", r->where, r->line,
                         first[t]);
    r->seen[t] = true;
    r->table = t;
    r->count = words - 1;
    for (int i = 1; i < words; i++) {
        int k = find_column(t, word[i]);
        if (k < 0 || r->has[k])
            return nami_fail(NAMI_EINPUT, "%s:%d: \"%.40s\" is %s of table \"%s\"",
                             r->where, r->line, word[i],
                             k < 0 ? "no column" : "twice a column", first[t]);
        r->has[k] = true;
        r->column[i - 1] = k;
    }
    return check_head(r);
}

static nami_status read_number(const reader *r, const char *name, const char *word,
                               double *out)
{
    if (nami_parse_real(word, out) && *out >= 0 && *out <= 1e15)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT,
                     "%s:%d: column %s: \"%.40s\" is no number from 0 to 1e15",
                     r->where, r->line, name, word);
}

static nami_status add_block(reader *r, const row *x, const char *name)
{
    nami_chain *c = r->out;
    nami_chain_block b = x->block;
    if (c->blocks == NAMI_CHAIN_MOST)
        return nami_fail(NAMI_EINPUT, "%s:%d: more than %d layers", r->where, r->line,
                         NAMI_CHAIN_MOST);
    if (c->blocks == r->room) {
        r->room = r->room > 0 ? 2 * r->room : 64;
        c->block =
            nami_realloc(NAMI_MEM_OTHER, c->block, (size_t)r->room * sizeof *c->block);
    }
    snprintf(b.name, sizeof b.name, "%s", name);
    if (has(r, "backward_ms"))
        b.input = b.weight = x->backward / 2;
    c->block[c->blocks++] = b;
    return NAMI_OK;
}

static nami_status add_link(reader *r, const row *x, const char *name)
{
    bool inside = strcmp(name, "inside") == 0;
    if (!inside && strcmp(name, "across") != 0)
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: link \"%.40s\": inside or across is expected",
                         r->where, r->line, name);
    if (!(x->link.rate > 0) || !(x->link.reduce > 0))
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: a link without bytes_per_second and "
                         "reduce_bytes_per_second above 0; leave a link that was not "
                         "measured out",
                         r->where, r->line);
    *(inside ? &r->out->inside : &r->out->across) = x->link;
    return NAMI_OK;
}

static nami_status add_run(reader *r, const row *x)
{
    if (x->samples < 1 || x->samples > 1e9 || x->ranks_per_node > 1e6)
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: samples from 1 to 1e9 and at most 1e6 ranks a node "
                         "are expected",
                         r->where, r->line);
    r->out->samples = (int64_t)x->samples;
    r->out->ranks_per_node = (int)x->ranks_per_node;
    return NAMI_OK;
}

static nami_status read_row(reader *r, char **word, int words)
{
    row x = {0};
    if (words != r->count + 1)
        return nami_fail(NAMI_EINPUT, "%s:%d: %d columns are named, but here are %d",
                         r->where, r->line, r->count + 1, words);
    if (r->table == RUN)
        NAMI_TRY(read_number(r, first[RUN], word[0], &x.samples));
    for (int i = 0; i < r->count; i++) {
        const column *c = &columns[r->column[i]];
        double number;
        NAMI_TRY(read_number(r, c->name, word[i + 1], &number));
        *(double *)((char *)&x + c->offset) = number * c->unit;
    }
    if (r->table == LAYERS)
        return add_block(r, &x, word[0]);
    return r->table == LINKS ? add_link(r, &x, word[0]) : add_run(r, &x);
}

/* One line without its comment; `text` is overwritten. */
static nami_status read_line(reader *r, char *text)
{
    char *word[COLUMNS_MOST], *rest = NULL;
    int words = 0;
    for (char *w = strtok_r(text, ", \t\r", &rest); w != NULL;
         w = strtok_r(NULL, ", \t\r", &rest)) {
        if (words == COLUMNS_MOST)
            return nami_fail(NAMI_EINPUT, "%s:%d: there are too many columns", r->where,
                             r->line);
        word[words++] = w;
    }
    if (words == 0)
        return NAMI_OK;
    for (int t = LAYERS; t < TABLES; t++) {
        if (strcmp(word[0], first[t]) == 0)
            return read_head(r, (table)t, word, words);
    }
    if (r->table == NONE)
        return nami_fail(NAMI_EINPUT,
                         "%s:%d: a profile starts with a line \"layer,forward_ms,...\"",
                         r->where, r->line);
    return read_row(r, word, words);
}

/* A plan divides by the time of the whole chain. */
static nami_status check_chain(const nami_chain *c, const char *where)
{
    double sum = 0;
    for (int i = 0; i < c->blocks; i++)
        sum += c->block[i].forward + c->block[i].input + c->block[i].weight;
    if (sum > 0)
        return NAMI_OK;
    return nami_fail(NAMI_EINPUT, "%s: %s", where,
                     c->blocks > 0 ? "no layer takes any time"
                                   : "no layers are in it; a line "
                                     "\"layer,forward_ms,...\" and one for each layer "
                                     "are expected");
}

nami_status nami_chain_parse(const char *text, const char *where, nami_chain *out)
{
    reader r = {.where = where, .out = out};
    *out = (nami_chain){0};
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
    return check_chain(out, where);
}

/* The bytes of `file` as text; what is no text or too large is refused. */
static nami_status read_text(FILE *file, const char *path, nami_text *text)
{
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part - 1, file)) > 0;) {
        part[got] = '\0';
        if (strlen(part) != got)
            return nami_fail(NAMI_EINPUT, "%s: is no text: a byte of it is zero", path);
        if (text->length > BYTES_MOST)
            return nami_fail(NAMI_EINPUT, "%s: is larger than 64 MiB, no profile is",
                             path);
        nami_text_add(text, "%s", part);
    }
    if (ferror(file))
        return nami_fail(NAMI_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
    return NAMI_OK;
}

nami_status nami_chain_read(const char *path, nami_chain *out)
{
    nami_text text = {0};
    *out = (nami_chain){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return nami_fail(NAMI_EINPUT, "%s: cannot be opened: %s", path,
                         strerror(errno));
    nami_status status = read_text(file, path, &text);
    fclose(file);
    if (status == NAMI_OK)
        status = nami_chain_parse(nami_text_get(&text), path, out);
    nami_text_free(&text);
    return status;
}

void nami_chain_free(nami_chain *c)
{
    nami_free(c->block);
    *c = (nami_chain){0};
}

static void write_link(const char *name, const nami_chain_link *l, nami_text *out)
{
    if (l->rate > 0)
        nami_text_add(out, "%s,%.6g,%.6g,%.6g\n", name, l->latency * 1e6, l->rate,
                      l->reduce);
}

void nami_chain_write(const nami_chain *c, nami_text *out)
{
    if (c->samples > 0)
        nami_text_add(out, "samples,ranks_per_node\n%lld,%d\n", (long long)c->samples,
                      c->ranks_per_node);
    if (c->inside.rate > 0 || c->across.rate > 0)
        nami_text_add(out,
                      "link,latency_us,bytes_per_second,reduce_bytes_per_second\n");
    write_link("inside", &c->inside, out);
    write_link("across", &c->across, out);
    nami_text_add(out,
                  "layer,forward_ms,backward_input_ms,backward_weight_ms,activation_"
                  "bytes,kept_bytes,transient_bytes,parameter_bytes,packed_bytes\n");
    for (int i = 0; i < c->blocks; i++) {
        const nami_chain_block *b = &c->block[i];
        nami_text_add(out, "%s,%.6g,%.6g,%.6g,%.0f,%.0f,%.0f,%.0f,%.0f\n", b->name,
                      b->forward * 1e3, b->input * 1e3, b->weight * 1e3, b->output,
                      b->kept, b->transient, b->parameter, b->packed);
    }
}

void nami_chain_scale(nami_chain *c, int64_t samples)
{
    if (c->samples == 0)
        return;
    double factor = (double)samples / (double)c->samples;
    for (int i = 0; i < c->blocks; i++) {
        nami_chain_block *b = &c->block[i];
        double *value[] = {&b->forward, &b->input, &b->weight,
                           &b->output,  &b->kept,  &b->transient};
        for (size_t k = 0; k < sizeof value / sizeof *value; k++)
            *value[k] *= factor;
    }
    c->samples = samples;
}

void nami_chain_sums_make(const nami_chain *c, nami_chain_sums *out)
{
    size_t n = (size_t)c->blocks + 1;
    double *all = nami_calloc(NAMI_MEM_OTHER, 6 * n, sizeof *all);
    *out = (nami_chain_sums){all,         all + n,     all + 2 * n,
                             all + 3 * n, all + 4 * n, all + 5 * n};
    for (int i = 0; i < c->blocks; i++) {
        const nami_chain_block *b = &c->block[i];
        out->forward[i + 1] = out->forward[i] + b->forward;
        out->backward[i + 1] = out->backward[i] + b->input + b->weight;
        out->parameter[i + 1] = out->parameter[i] + b->parameter;
        out->packed[i + 1] = out->packed[i] + b->packed;
        out->output[i + 1] = out->output[i] + b->output;
        out->kept[i + 1] = out->kept[i] + b->kept;
    }
}

void nami_chain_sums_free(nami_chain_sums *s)
{
    nami_free(s->forward);
    *s = (nami_chain_sums){0};
}
