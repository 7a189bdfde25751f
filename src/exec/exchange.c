/* SPDX-License-Identifier: MIT */
/* exchange.c - which gradient sums make up the gradient of a parameter, and which of them positions send each other. */
#include "base/memory.h"
#include "exec/share.h"

/* The stage here that makes the sum of `use`, or -1. */
static int maker_of(const nami_share *s, const nami_share_use *use)
{
    for (int i = 0; use->position == s->position && i < s->stages; i++) {
        if (s->stage[i].stage == use->stage && s->stage[i].copy == use->copy)
            return i;
    }
    return -1;
}

/* Elements of the largest slice: all replicas of a position need the same memory. */
static int64_t largest_slice(const nami_share *s, const nami_share_param *h)
{
    const nami_blueprint *p = s->blueprint;
    int64_t most = 0;
    for (int r = 0; r < nami_layout_replicas(p->layout, s->position); r++) {
        const nami_slice slice = nami_slice_of(p, s->position, r, h->param);
        most = slice.count > most ? slice.count : most;
    }
    return most;
}

/* All sums of a parameter: those made here lie where they grow, the others arrive in the exchange buffer. */
static nami_status param_terms(nami_share *s, nami_share_param *h)
{
    const nami_blueprint *p = s->blueprint;
    const int copies = p->layout->train.place.copies;
    int uses = 0;
    for (int u = 0; u < p->uses; u++)
        uses += p->use[u].param == h->param;
    if (uses > 2 * copies)
        return nami_fail(NAMI_EPLAN, "parameter %s is used %d times; two are supported",
                         p->model->param[h->param].name, uses / copies);
    for (int u = 0; u < p->uses; u++) {
        const nami_share_use *use = &p->use[u];
        if (use->param != h->param)
            continue;
        nami_share_term *t = &h->term[h->terms++];
        *t = (nami_share_term){.use = u, .local = maker_of(s, use)};
        if (t->local >= 0) {
            t->at = s->stage[t->local].sum[use->number];
        } else {
            t->at = s->exchange;
            s->exchange += nami_share_round((size_t)largest_slice(s, h) * s->wide);
        }
    }
    h->owner = h->term[0].local >= 0;
    return NAMI_OK;
}

static void move_add(nami_share *s, int param, int term, int peer, nami_slice slice)
{
    const nami_blueprint *p = s->blueprint;
    const nami_share_term *t = &s->param[param].term[term];
    s->move =
        nami_realloc(NAMI_MEM_OTHER, s->move, (size_t)(s->moves + 1) * sizeof *s->move);
    s->move[s->moves++] = (nami_share_move){
        .param = param,
        .term = term,
        .peer = peer,
        .tag = (int)nami_schedule_keys(&p->layout->train) + t->use,
        .slice = slice,
        .sends = t->local >= 0,
    };
}

/* What the own slice has in common with those of the replicas of position `peer` goes to each, or comes from it. */
static void moves_of_slices(nami_share *s, int param, int term, int peer)
{
    const nami_blueprint *p = s->blueprint;
    const nami_slice own = s->param[param].own;
    for (int r = 0; r < nami_layout_replicas(p->layout, peer); r++) {
        const nami_slice other = nami_slice_of(p, peer, r, s->param[param].param);
        int64_t from = own.from > other.from ? own.from : other.from;
        int64_t end = own.from + own.count < other.from + other.count
                          ? own.from + own.count
                          : other.from + other.count;
        if (from < end)
            move_add(s, param, term, nami_layout_rank(p->layout, peer, r),
                     (nami_slice){.from = from, .count = end - from});
    }
}

/* A sum that position `peer` waits for: its replicas take turns in asking those of this position. */
static void moves_to(nami_share *s, int param, int term, int peer)
{
    const nami_layout *l = s->blueprint->layout;
    int own = nami_layout_replicas(l, s->position);
    for (int r = s->replica; r < nami_layout_replicas(l, peer); r += own)
        move_add(s, param, term, nami_layout_rank(l, peer, r), s->param[param].own);
}

static void move_from(nami_share *s, int param, int term, int peer)
{
    const nami_layout *l = s->blueprint->layout;
    int r = s->replica % nami_layout_replicas(l, peer);
    move_add(s, param, term, nami_layout_rank(l, peer, r), s->param[param].own);
}

/* Each sum made here goes once to every other position that holds the parameter; each of theirs comes here. */
static void param_moves(nami_share *s, int param)
{
    const nami_share_param *h = &s->param[param];
    const nami_share_use *use = s->blueprint->use;
    const bool slices = s->blueprint->bound != NULL;
    void (*to)(nami_share *, int, int, int) = slices ? moves_of_slices : moves_to;
    void (*from)(nami_share *, int, int, int) = slices ? moves_of_slices : move_from;
    for (int t = 0; t < h->terms; t++) {
        if (h->term[t].local < 0)
            from(s, param, t, use[h->term[t].use].position);
        for (int o = 0; h->term[t].local >= 0 && o < h->terms; o++) {
            int peer = use[h->term[o].use].position;
            bool known = h->term[o].local >= 0;
            for (int i = 0; i < o; i++)
                known = known || use[h->term[i].use].position == peer;
            if (!known)
                to(s, param, t, peer);
        }
    }
}

nami_status nami_share_exchange(nami_share *s)
{
    for (int i = 0; i < s->params; i++) {
        NAMI_TRY(param_terms(s, &s->param[i]));
        param_moves(s, i);
    }
    return NAMI_OK;
}
