/* SPDX-License-Identifier: MIT */
/* inner.h - what the importers of data/ share. */
#ifndef NAMI_DATA_INNER_H
#define NAMI_DATA_INNER_H

#include <stdio.h>

#include "data/import.h"
#include "data/source.h"

/* The directory of the output, where pipes are copied to; freed with nami_free. Local. */
char *nami_import_spool(const char *output);

/* Open inputs 1 to `texts`, behind a vocabulary, as `source` [texts], and add up their lengths. Of a failure some are
 * open, others NULL. Local. Status: NAMI_EINPUT, NAMI_EENV. */
nami_status nami_import_texts(const nami_import *im, int texts, nami_source **source,
                              int64_t *bytes);

/* The inputs' last name components, for the attribute "source"; freed with nami_free. Local. */
char *nami_import_names(const nami_import *im);

/* Outputs must be new names or data sets, and none one of the inputs. Local. */
nami_status nami_import_check(const nami_import *im, nami_source *const *source,
                              int sources);

/* An unnamed file in the directory of `output`, for what is counted before it is written. Local. Status: NAMI_EENV. */
nami_status nami_spool_open(const char *output, FILE **out);

/* Append `bytes` bytes; go back to the first; read them all. Local. Status: NAMI_EENV. */
nami_status nami_spool_add(FILE *f, const void *data, size_t bytes);
nami_status nami_spool_rewind(FILE *f);
nami_status nami_spool_read(FILE *f, void *data, size_t bytes);

/* Import as nami_import_run, text as bytes or token files. Local. */
nami_status nami_import_tokens(const nami_import *im);

/* Import as nami_import_run, sentences for BERT. Local. */
nami_status nami_import_bert_text(const nami_import *im);

/* Import as nami_import_run, ready samples for BERT. Local. */
nami_status nami_import_nvidia_bert(const nami_import *im);

/* Import as nami_import_run, through a byte-pair encoding. Local. */
nami_status nami_import_bpe(const nami_import *im);

#endif
