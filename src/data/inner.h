/* SPDX-License-Identifier: MIT */
/* inner.h - what the importers of data/ share. */
#ifndef NAMI_DATA_INNER_H
#define NAMI_DATA_INNER_H

#include "data/import.h"

/* The directory of the output, where pipes are copied to; freed with nami_free. Local. */
char *nami_import_spool(const char *output);

/* The inputs' last name components, for the attribute "source"; freed with nami_free. Local. */
char *nami_import_names(const nami_import *im);

/* Import as nami_import_run, through a byte-pair encoding. Local. */
nami_status nami_import_bpe(const nami_import *im);

#endif
