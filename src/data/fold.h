/* SPDX-License-Identifier: MIT */
/* fold.h - characters as BERT's uncased tokenizer sees them: lower case, without accents, with classes of its own.
 *
 * J. Devlin et al., github.com/google-research/bert, tokenization.py (BasicTokenizer); tables of Unicode 14.0.0.
 */
#ifndef NAMI_DATA_FOLD_H
#define NAMI_DATA_FOLD_H

#include <stdbool.h>
#include <stdint.h>

enum { NAMI_FOLD_MOST = 4 }; /* characters that one becomes */

typedef enum nami_fold_class {
    NAMI_FOLD_WORD,    /* part of a word */
    NAMI_FOLD_SPACE,   /* tab, line feed, carriage return, general category Z */
    NAMI_FOLD_CONTROL, /* left out: Cc, Cf, Co, U+FFFD */
    NAMI_FOLD_MARK,    /* left out behind a letter and by itself: Mn */
    NAMI_FOLD_SIGN /* a word of its own: P, and what else of ASCII is neither letter, digit nor blank */
} nami_fold_class;

nami_fold_class nami_fold_class_of(uint32_t c); /* Local, pure. */

/* Whether c is an ideograph, which is a word of its own. Local, pure. */
bool nami_fold_is_ideograph(uint32_t c);

/* Lower case, taken apart (NFD), without the marks (Mn): how many characters into out; 0 of a mark. A capital sigma becomes a
 * small one wherever it stands. Local, pure. */
int nami_fold(uint32_t c, uint32_t out[NAMI_FOLD_MOST]);

#endif
