/* SPDX-License-Identifier: MIT */
/* names.c - match the names of arrays with those of parameters, by the tables of names.h. */
#include "exchange/names.h"

#include <string.h>

#include "base/memory.h"
#include "model/family.h"

static const nami_names *const tables[] = {
    &nami_names_gpt,         &nami_names_llama,     &nami_names_bert, &nami_names_cifar,
    &nami_names_densenet121, &nami_names_inception, &nami_names_vit};

const nami_names *nami_names_of(const char *family)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const char *const *f = tables[i]->family; *f; f++)
            if (!strcmp(*f, family))
                return tables[i];
    return &nami_names_image;
}

int nami_names_thirds(const nami_model_options *o, int64_t rows,
                      int64_t cut[NAMI_NAMES_PARTS + 1])
{
    (void)o;
    for (int i = 0; i < 3; i++)
        cut[i] = rows / 3 * i;
    cut[3] = rows;
    return 3;
}

/* --- patterns --- */

enum {
    WILDCARDS = 4,
    LONGEST =
        512 /* of names that are compared with patterns: those of a hostile file cost no time */
};

/* What a wildcard stands for. */
typedef struct span {
    const char *at;
    int length;
} span;

static bool is_wildcard(char c)
{
    return c == '#' || c == '*';
}

static bool match(const char *pattern, const char *s, span *found)
{
    for (; !is_wildcard(*pattern); pattern++, s++) {
        if (*pattern != *s)
            return false;
        if (!*pattern)
            return true;
    }
    const int least = *pattern == '#',
              most = (int)(least ? strspn(s, "0123456789") : strlen(s));
    for (int n = most; n >= least; n--) {
        *found = (span){s, n};
        if (match(pattern + 1, s + n, found + 1))
            return true;
    }
    return false;
}

/* `pattern` with what its wildcards stand for. */
static char *fill(const char *pattern, const span *found)
{
    nami_text text = {0};
    for (; *pattern; pattern++) {
        if (is_wildcard(*pattern)) {
            nami_text_add(&text, "%.*s", found->length, found->at);
            found++;
        } else {
            nami_text_add(&text, "%c", *pattern);
        }
    }
    char *name = nami_strdup(nami_text_get(&text));
    nami_text_free(&text);
    return name;
}

static bool matches_one(const char *const *pattern, const char *name)
{
    span found[WILDCARDS];
    if (strlen(name) > LONGEST)
        return false;
    for (; pattern && *pattern; pattern++)
        if (match(*pattern, name, found))
            return true;
    return false;
}

/* --- reading --- */

/* Behind what DataParallel and torch.compile put in front. */
static const char *strip(const char *name)
{
    static const char *const front[] = {"module.", "_orig_mod."};
    for (int i = 0; i < 2; i++)
        if (!strncmp(name, front[i], strlen(front[i])))
            return strip(name + strlen(front[i]));
    return name;
}

bool nami_names_none(const nami_names *n, const char *name)
{
    return matches_one(n->none, strip(name));
}

bool nami_names_padded(const nami_names *n, const char *own)
{
    const char *const pattern[] = {n->padded, NULL};
    return matches_one(pattern, own);
}

int nami_names_head(const nami_names *n, const char *own)
{
    for (int i = 0; n->heads && n->heads[i]; i++) {
        const char *const pattern[] = {n->heads[i], NULL};
        if (matches_one(pattern, own))
            return i;
    }
    return -1;
}

bool nami_names_turned(const nami_names *n, const char *own)
{
    for (const nami_dialect *l = n->dialect; l->name; l++)
        if (matches_one(l->turned, own))
            return true;
    return false;
}

/* Candidate *k for exactly this name; *k falls by those passed over. */
static bool place_of(const nami_names *n, const char *name, int *k,
                     nami_names_found *out)
{
    span found[WILDCARDS] = {{0}};
    if ((*k)-- == 0) {
        *out = (nami_names_found){.own = nami_strdup(name)};
        return true;
    }
    for (const nami_dialect *l = n->dialect; l->name; l++)
        for (const nami_name_row *r = l->row; r && r->own; r++)
            if (match(r->foreign, name, found) && (*k)-- == 0) {
                *out = (nami_names_found){.own = fill(r->own, found), .row = r};
                return true;
            }
    return false;
}

bool nami_names_place(const nami_names *n, const char *name, int k,
                      nami_names_found *out)
{
    const int fronts = (int)(sizeof n->front / sizeof *n->front);
    name = strip(name);
    if (strlen(name) > LONGEST)
        return false;
    bool there = place_of(n, name, &k, out);
    for (int i = 0; i < fronts && n->front[i] && !there; i++) {
        char *full = nami_strf("%s%s", n->front[i], name);
        there = place_of(n, full, &k, out);
        nami_free(full);
    }
    return there;
}

/* --- writing --- */

static const nami_dialect *layout_of(const nami_names *n, const char *name)
{
    const nami_dialect *l = n->dialect;
    while (name && l->name && strcmp(l->name, name) != 0)
        l++;
    return l->name ? l : NULL;
}

nami_status nami_exchange_layout(const char *family, const char *layout)
{
    const nami_names *n = nami_names_of(family);
    nami_text known = {0};
    if (layout_of(n, layout))
        return NAMI_OK;
    for (const nami_dialect *l = n->dialect; l->name; l++)
        nami_text_add(&known, "%s%s", l == n->dialect ? "" : " and ", l->name);
    nami_status status = nami_fail(
        NAMI_EINPUT, "--layout %s: the checkpoint is of family %s, which has %s",
        layout, family, nami_text_get(&known));
    nami_text_free(&known);
    return status;
}

/* Row number k, counted from 0, of those that write `own`; NULL: none. */
static const nami_name_row *writer(const nami_dialect *l, const char *own, int k,
                                   span *found)
{
    for (const nami_name_row *r = l->row; r && r->own; r++)
        if (!r->alias && !r->twin && match(r->own, own, found) && k-- == 0)
            return r;
    return NULL;
}

bool nami_exchange_piece_of(const nami_model_options *o, const char *layout,
                            const nami_param_rows *p, int k, nami_exchange_piece *out)
{
    const nami_names *n = nami_names_of(nami_family_names[o->family]);
    const nami_dialect *l = layout_of(n, layout);
    span found[WILDCARDS] = {{0}};
    int64_t cut[NAMI_NAMES_PARTS + 1] = {0, p->rows};
    NAMI_CHECK(l);
    const nami_name_row *r = writer(l, p->name, k, found);
    if (!r && k > 0)
        return false;
    if (r && r->split)
        r->split(o, p->rows, cut);
    const int part = r && r->split ? r->part : 0;
    *out = (nami_exchange_piece){.name =
                                     r ? fill(r->foreign, found) : nami_strdup(p->name),
                                 .from = cut[part],
                                 .to = cut[part + 1],
                                 .turned = matches_one(l->turned, p->name)};
    return true;
}
