/* SPDX-License-Identifier: MIT */
/* problem_masked.c - random problems for the kernels of masked sentences: types of tokens, chosen rows, their loss. */
#include "job.h"

/* Word i of `words` is below the bound of its kind: W = 2T + 1 + 2M words a sample, T tokens, T types, M rows, M targets
 * of which every third is -1, and one more. */
static int32_t *words_of(nami_backend *b, const int64_t *d, int64_t vocabulary)
{
    const int64_t t = d[1], m = d[3], each = 2 * t + 2 * m + 1;
    int32_t *words =
        nami_backend_alloc(b, NAMI_MEM_OTHER, (size_t)(d[0] * each) * sizeof *words);
    for (int64_t i = 0; i < d[0] * each; i++) {
        const int64_t at = i % each;
        const uint64_t r = nami_mix(17, (uint64_t)i);
        const int64_t bound = at < t           ? vocabulary
                              : at < 2 * t     ? 2
                              : at < 2 * t + m ? t
                                               : vocabulary;
        words[i] = at >= 2 * t + m && at % 3 == 0 ? -1 : (int32_t)(r % (uint64_t)bound);
    }
    return words;
}

static void run_gather(job *j, const int32_t *row, int64_t stride, int64_t rows,
                       const char *const name[2])
{
    const int64_t *d = j->p->dim;
    nami_arg_gather g = {.act = j->p->act,
                         .batch = d[0],
                         .time = d[1],
                         .rows = rows,
                         .width = d[2],
                         .stride = stride,
                         .row = row};
    g.x = job_fresh(j, "x", g.act, d[0] * d[1] * d[2], 1);
    g.dy = job_fresh(j, "d rows", g.act, d[0] * rows * d[2], 1);
    g.y = job_result(j, name[0], g.act, d[0] * rows * d[2], 0);
    g.dx = job_result(j, name[1], g.act, d[0] * d[1] * d[2], 1);
    g.add = row == NULL  ? g.dx /* the sum so far, in place */
            : j->p->bare ? NULL
                         : job_fresh(j, "add", g.act, d[0] * d[1] * d[2], 1);
    job_go(j, NAMI_GATHER_F, &g, NULL);
    job_go(j, NAMI_GATHER_BI, &g, NULL);
}

/* B, T, width, M: words of a sample lie together, see words_of; bare: the gradient of x begins at 0 */
nami_outcome nami_run_masked(nami_backend *b, const nami_problem *p)
{
    enum { VOCABULARY = 11 };
    job j = {.b = b, .p = p};
    const int64_t *d = p->dim, n = d[0] * d[1] * d[2];
    const int64_t each = 2 * d[1] + 2 * d[3] + 1;
    const nami_dtype act = p->act, w = job_wide(act);
    int32_t *words = words_of(b, d, VOCABULARY);
    nami_arg_embed e = {.act = act,
                        .batch = d[0],
                        .time = d[1],
                        .width = d[2],
                        .vocabulary = VOCABULARY,
                        .stride = each,
                        .token = words,
                        .type = words + d[1]};
    e.wte = job_fresh(&j, "wte", w, VOCABULARY * d[2], 1);
    e.wpe = job_fresh(&j, "wpe", w, d[1] * d[2], 1);
    e.wtt = job_fresh(&j, "wtt", w, 2 * d[2], 1);
    e.dy = job_fresh(&j, "dy", act, n, 1);
    e.y = job_result(&j, "embedding", act, n, 0);
    e.dwte = job_result(&j, "dwte", w, VOCABULARY * d[2], 1);
    e.dwpe = job_result(&j, "dwpe", w, d[1] * d[2], 1);
    e.dwtt = job_result(&j, "dwtt", w, 2 * d[2], 1);
    job_go(&j, NAMI_EMBED_F, &e, NULL);
    job_go(&j, NAMI_EMBED_BW, &e, NULL);
    run_gather(&j, words + 2 * d[1], each, d[3],
               (const char *const[2]){"rows", "dx rows"});
    run_gather(&j, NULL, 0, 1, (const char *const[2]){"first", "dx first"});
    nami_arg_xent x = {.act = act,
                       .batch = d[0],
                       .time = d[3],
                       .vocabulary = VOCABULARY,
                       .stride = each,
                       .target = words + 2 * d[1] + d[3],
                       .scale = 0.25,
                       .gradient = true};
    x.logits = job_result(&j, "logits", act, d[0] * d[3] * VOCABULARY, 6);
    x.loss = job_result(&j, "loss", NAMI_F64, d[0], 0);
    x.best = job_result(&j, "best", NAMI_F64, d[0], 0);
    x.five = job_result(&j, "five", NAMI_F64, d[0], 0);
    job_go(&j, NAMI_XENT_F, &x, &x.scratch);
    nami_backend_free(b, words);
    return job_done(&j);
}
