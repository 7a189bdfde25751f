/* SPDX-License-Identifier: MIT */
/* journal.h - log.jsonl: one JSON object a line, cut back to a checkpoint's step when a run resumes.
 *
 * Kept by rank 0 alone. A line reaches the kernel when it is added, so a killed process loses none.
 */
#ifndef NAMI_TRAIN_JOURNAL_H
#define NAMI_TRAIN_JOURNAL_H

#include "base/text.h"
#include "base/status.h"

typedef struct nami_journal nami_journal;

/* Open `path`, keep the complete lines whose "step" is at most `step`, and lock it against a second run.
 * Local. Status: NAMI_EENV (file system, or another run holds it). */
nami_status nami_journal_open(const char *path, int64_t step, nami_journal **out);

/* Append one line; `object` is a JSON object without a newline. Local. Status: NAMI_EENV when it cannot be written. */
nami_status nami_journal_add(nami_journal *j, const nami_text *object);

/* Bring all lines to the disk. Local. Status: NAMI_EENV. */
nami_status nami_journal_sync(nami_journal *j);
void nami_journal_close(nami_journal *j); /* NULL allowed */

/* Begin an object {"event":"NAME","step":N ; add numbers and texts; the caller ends it with "}". Local. */
void nami_event_begin(nami_text *t, const char *event, int64_t step);
void nami_event_number(nami_text *t, const char *key, double value);
void nami_event_whole(nami_text *t, const char *key, int64_t value);
void nami_event_text(nami_text *t, const char *key, const char *value);

/* End the object, add it to `j` (NULL: drop it) and empty `t`. Local. Status: NAMI_EENV. */
nami_status nami_event_end(nami_text *t, nami_journal *j);

#endif
