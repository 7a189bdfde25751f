/* SPDX-License-Identifier: MIT */
/* slice.c - which elements of each parameter a replica of a position updates.
 *
 * A slice ends where a block of NAMI_SQUARES ends, so that the sums of squares that make up a norm are the same however
 * many replicas there are. One parameter after the other is divided so that all replicas are as full as its blocks allow.
 */
#include "base/memory.h"
#include "exec/share.h"

/* The end of a block that is next to element `x` of `count`. */
static int64_t nearest(int64_t x, int64_t count)
{
    const int64_t block = NAMI_SQUARES_BLOCK;
    int64_t below = x / block * block;
    int64_t above = below + block < count ? below + block : count;
    return x - below <= above - x ? below : above;
}

/* Up to which level replicas are filled by `count` elements more. */
static int64_t level_of(const int64_t *full, int replicas, int64_t count)
{
    int64_t level = INT64_MAX, before;
    do {
        int64_t sum = count, below = 0;
        before = level;
        for (int r = 0; r < replicas; r++) {
            sum += full[r] < before ? full[r] : 0;
            below += full[r] < before;
        }
        level = below > 0 ? sum / below : before;
    } while (level < before);
    return level;
}

void nami_slices_cut(const int64_t *count, int params, int replicas, int64_t *bound)
{
    int64_t *full = nami_calloc(NAMI_MEM_OTHER, (size_t)replicas, sizeof *full);
    for (int i = 0; i < params; i++) {
        int64_t level = level_of(full, replicas, count[i]), poured = 0;
        int64_t *b = bound + (size_t)i * (size_t)(replicas + 1);
        b[0] = 0;
        for (int r = 0; r < replicas; r++) {
            poured += full[r] < level ? level - full[r] : 0;
            b[r + 1] = r == replicas - 1 ? count[i] : nearest(poured, count[i]);
            full[r] += b[r + 1] - b[r];
        }
    }
    nami_free(full);
}

int64_t nami_blocks_of(int64_t count)
{
    return (count + NAMI_SQUARES_BLOCK - 1) / NAMI_SQUARES_BLOCK;
}

/* Parameters of a position in the order of their first use there, copy by copy, into param [model params]. */
static int list_params(const nami_blueprint *p, int position, int *param)
{
    int n = 0;
    for (int i = 0; i < p->layout->train.place.copies * p->uses; i++) {
        const nami_share_use *use = &p->use[i % p->uses];
        bool known = use->position != position || use->copy != i / p->uses;
        for (int k = 0; k < n && !known; k++)
            known = param[k] == use->param;
        if (!known)
            param[n++] = use->param;
    }
    return n;
}

static void cut_position(nami_blueprint *p, int position)
{
    const int replicas = nami_layout_replicas(p->layout, position);
    const size_t params = (size_t)p->model->params, row = (size_t)replicas + 1;
    int *param = nami_calloc(NAMI_MEM_OTHER, params + 1, sizeof *param);
    int64_t *count = nami_calloc(NAMI_MEM_OTHER, params + 1, sizeof *count);
    int64_t *bound = nami_calloc(NAMI_MEM_OTHER, params * row + 1, sizeof *bound);
    int n = list_params(p, position, param);
    for (int i = 0; i < n; i++)
        count[i] = nami_shape_count(&p->model->param[param[i]].shape);
    nami_slices_cut(count, n, replicas, bound);
    p->bound[position] =
        nami_calloc(NAMI_MEM_OTHER, params * row + 1, sizeof **p->bound);
    for (int i = 0; i < n; i++)
        for (size_t r = 0; r < row; r++)
            p->bound[position][(size_t)param[i] * row + r] = bound[(size_t)i * row + r];
    nami_free(bound);
    nami_free(count);
    nami_free(param);
}

void nami_slices_make(nami_blueprint *p)
{
    const nami_model *m = p->model;
    const bool zero = p->layout->recipe.zero;
    const size_t positions = (size_t)p->layout->train.place.positions;
    p->square = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params + 1, sizeof *p->square);
    for (int i = 0; i < m->params; i++)
        p->square[i + 1] =
            p->square[i] +
            (zero ? nami_blocks_of(nami_shape_count(&m->param[i].shape)) : 1);
    if (!zero)
        return;
    p->bound = nami_calloc(NAMI_MEM_OTHER, positions, sizeof *p->bound);
    for (size_t i = 0; i < positions; i++)
        cut_position(p, (int)i);
}

void nami_slices_free(nami_blueprint *p)
{
    for (int i = 0; p->bound != NULL && i < p->layout->train.place.positions; i++)
        nami_free(p->bound[i]);
    nami_free(p->bound);
    nami_free(p->square);
}

nami_slice nami_slice_of(const nami_blueprint *p, int position, int replica, int param)
{
    if (p->bound == NULL)
        return (nami_slice){.count = nami_shape_count(&p->model->param[param].shape)};
    const size_t row = (size_t)nami_layout_replicas(p->layout, position) + 1;
    const int64_t *b = p->bound[position] + (size_t)param * row + (size_t)replica;
    return (nami_slice){.from = b[0], .count = b[1] - b[0]};
}
