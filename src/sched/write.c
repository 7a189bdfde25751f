/* SPDX-License-Identifier: MIT */
/* write.c - a schedule as text, and as the CSV of torch.distributed.pipelining. */
#include "sched/version.h"

void nami_schedule_print(const nami_schedule *s, nami_text *out)
{
    for (int p = 0; p < s->place.positions; p++) {
        for (int64_t i = 0; i < s->list[p].count; i++) {
            nami_text_add(out, "%s", i > 0 ? " " : "");
            nami_action_print(s->list[p].item[i], out);
        }
        nami_text_add(out, "\n");
    }
}

/* Whether torch's form has a word for the action: it knows no REDUCE and no UPDATE. Without a flush they are kept
 * in our form, because the versions of the others depend on them. */
static bool has_cell(nami_action a, bool whole)
{
    return whole || nami_semantics_of(a.kind)->per_unit;
}

/* One action as torch names it: a slice, a copy and a version have no place there and keep our form. */
static void add_cell(nami_action a, const char *before, nami_text *out)
{
    a.flags = 0;
    nami_text_add(out, "%s", before);
    nami_action_print(a, out);
}

static void add_line(const nami_list *l, bool whole, nami_text *out)
{
    const char *comma = "";
    for (int64_t i = 0; i < l->count; i++) {
        if (!has_cell(l->item[i], whole))
            continue;
        nami_text_add(out, "%s", comma);
        comma = ",";
        if ((l->item[i].flags & NAMI_FLAG_PAIR) && i + 1 < l->count) {
            add_cell(l->item[i++], "(", out);
            add_cell(l->item[i], ";", out);
            nami_text_add(out, ")OVERLAP_F_B");
        } else {
            add_cell(l->item[i], "", out);
        }
    }
    nami_text_add(out, "\n");
}

void nami_schedule_csv(const nami_schedule *s, nami_text *out)
{
    for (int p = 0; p < s->place.positions; p++)
        add_line(&s->list[p], nami_versions_kept(s), out);
}
