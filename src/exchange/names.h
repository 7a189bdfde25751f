/* SPDX-License-Identifier: MIT */
/* names.h - what other programs call the parameters of a family, as tables.
 *
 * A family's table lists its dialects (layouts of nami export), the ways in which other programs name and cut its
 * parameters: rows of pairs of patterns, ours and theirs. In a pattern # stands for a number and * for anything; the n-th of one side is the n-th of
 * the other. Names without a row are the same on both sides. A new family: one file names_FAMILY.c and one line in
 * names.c, nothing if its names are theirs.
 */
#ifndef NAMI_EXCHANGE_NAMES_H
#define NAMI_EXCHANGE_NAMES_H

#include "exchange/inner.h"

enum { NAMI_NAMES_PARTS = 8 };

/* Cut the `rows` rows of a parameter into parts: part i is [cut[i], cut[i+1]), cut[0] = 0, the last cut is `rows`.
 * Returns the number of parts, at most NAMI_NAMES_PARTS. Local. */
typedef int nami_names_split(const nami_model_options *o, int64_t rows,
                             int64_t cut[NAMI_NAMES_PARTS + 1]);

nami_names_split nami_names_thirds; /* q, k, v of equal heads */

typedef struct nami_name_row {
    const char *own, *foreign; /* patterns; own NULL ends a list */
    nami_names_split *split;   /* NULL: all of the parameter */
    int part;                  /* of the split: the foreign array is these rows */
    bool alias;                /* another name, read and never written */
    /* a second copy of the parameter: may be there, must be equal; never written */
    bool twin;
} nami_name_row;

typedef struct nami_dialect {
    const char *name; /* --layout of nami export; NULL ends a list */
    const nami_name_row *row;
    const char *const *turned; /* patterns of our matrices that it keeps as [in,out] */
} nami_dialect;

typedef struct nami_names {
    const char *family[6];   /* that it is for; the last is NULL */
    nami_dialect dialect[3]; /* the first is what export writes unless told */
    const char *front[2];    /* what names may lack in front */
    const char *const *none; /* patterns of arrays that are no parameters */
    /* pattern of parameters that may all be missing, see pad.c; NULL: none */
    const char *padded;
    /* patterns of groups of parameters that a file may lack, each as a whole */
    const char *const *heads;
} nami_names;

extern const nami_names nami_names_gpt, nami_names_llama, nami_names_bert;
extern const nami_names nami_names_cifar, nami_names_densenet121;
extern const nami_names nami_names_inception, nami_names_image;
extern const nami_names nami_names_vit;

/* The table of a family. Local. */
const nami_names *nami_names_of(const char *family);

/* Whether an array is known to be no parameter. Local. */
bool nami_names_none(const nami_names *n, const char *name);

/* Whether a parameter may be missing because skips are padded with zeros. Local. */
bool nami_names_padded(const nami_names *n, const char *own);

/* Number of the group of heads that a parameter belongs to, -1: none. Local. */
int nami_names_head(const nami_names *n, const char *own);

/* Whether a parameter can be [in,out] in some layout. Local. */
bool nami_names_turned(const nami_names *n, const char *own);

/* A parameter that an array may be. */
typedef struct nami_names_found {
    char *own;                /* freed with nami_free */
    const nami_name_row *row; /* NULL: the whole of it */
} nami_names_found;

/* Candidate k = 0, 1, ... for an array; false: there are no more. The first that the model has is meant. Local. */
bool nami_names_place(const nami_names *n, const char *name, int k,
                      nami_names_found *out);

#endif
