/* SPDX-License-Identifier: MIT */
/* advise.c - `nami plan --advise`: the best layouts of a deck's model, as a table, as JSON and as a deck. */
#include "cli/advise.h"

#include <math.h>

#include "base/log.h"
#include "base/memory.h"
#include "plan/advise.h"
#include "train/job.h"

static const char *const reason[NAMI_REFUSALS] = {
    [NAMI_REFUSED_MEMORY] = "memory",
    [NAMI_REFUSED_BLOCKS] = "blocks",
    [NAMI_REFUSED_COUNTS] = "counts",
    [NAMI_REFUSED_SLOWER] = "slower",
};

static const char *const meaning[NAMI_REFUSALS] = {
    [NAMI_REFUSED_MEMORY] = "do not fit into a rank",
    [NAMI_REFUSED_BLOCKS] =
        "have more stages than the model has blocks (counted once for all M)",
    [NAMI_REFUSED_COUNTS] = "do not go with their P and M",
    [NAMI_REFUSED_SLOWER] = "are slower than those above",
};

/* How the best compares with plain 1F1B: its time / the best's; NaN when plain 1F1B fits nowhere. */
static double plain_ratio(const nami_advice *a)
{
    return a->plain.rows > 0 ? a->plain.row[0].seconds / a->best.row[0].seconds : NAN;
}

static void print_head(const nami_text *title, nami_text *out)
{
    nami_text_add(out, "\n%s\n%4s %-20s %5s %5s %6s %5s %9s %12s %8s %10s %10s %10s\n",
                  title->data, "", "schedule", "P", "D", "M", "B", "recompute",
                  "step [s]", "bubble %", "MiB a rank", "messages", "sent MiB");
}

static void print_list(const nami_advice_list *l, const char *bytes, nami_text *out)
{
    for (int i = 0; i < l->rows; i++) {
        const nami_advice_row *r = &l->row[i];
        char name[48];
        nami_text_add(
            out,
            "%3d. %-20s %5d %5d %6d %5lld %9s %12.6g %8.3f %1s%9.1f %10lld %10.1f\n",
            i + 1, nami_advice_name(r, name), r->recipe.positions, r->replicas,
            r->recipe.microbatches * r->replicas, (long long)r->micro,
            r->recipe.recompute ? "yes" : "no", r->seconds, 100 * r->bubble, bytes,
            r->bytes / 1048576.0, (long long)r->messages, r->sent / 1048576.0);
    }
}

static void print_refused(const nami_advice *a, nami_text *out)
{
    nami_text_add(out, "\n%lld candidates; of the others\n", (long long)a->tried);
    for (int i = 0; i < NAMI_REFUSALS; i++) {
        if (a->refused[i] == 0)
            continue;
        nami_text_add(out, "%8lld %s", (long long)a->refused[i], meaning[i]);
        nami_text_add(out, a->example[i][0] ? "; the first: %s\n" : "%s\n",
                      a->example[i]);
    }
}

/* Whether the wave or whatever won is worth it. */
static void print_verdict(const nami_advice *a, nami_text *out)
{
    double ratio = plain_ratio(a);
    const nami_advice_row *best = &a->best.row[0];
    char name[48];
    nami_text_add(out, "\n");
    if (best->recipe.positions == 1)
        nami_text_add(out, "No pipeline is best: %d replicas of the whole model.\n",
                      best->replicas);
    else if (isnan(ratio))
        nami_text_add(out, "Plain 1F1B (dapple) fits nowhere.\n");
    else if (ratio <= 1)
        nami_text_add(out, "Plain 1F1B (dapple) wins: take it.\n");
    else if (ratio <= 1.01)
        nami_text_add(
            out,
            "Plain 1F1B (dapple) is within %.2f %% of %s: the simpler one may do.\n",
            100 * (ratio - 1), nami_advice_name(best, name));
    else
        nami_text_add(
            out,
            "Plain 1F1B (dapple) takes %.2f %% longer at its best, P=%d, D=%d, M=%d.\n",
            100 * (ratio - 1), a->plain.row[0].recipe.positions,
            a->plain.row[0].replicas,
            a->plain.row[0].recipe.microbatches * a->plain.row[0].replicas);
}

static void print_table(const nami_advise_request *r, bool measured,
                        const nami_advice *a, nami_text *out)
{
    char limit[32];
    const nami_advise_costs *c = &r->costs;
    nami_text_add(
        out,
        "model     %lld parameters, %d blocks; %lld samples a step on %d ranks of %s\n",
        (long long)nami_model_count(r->model), r->model->blocks, (long long)r->batch,
        r->ranks, nami_human_bytes(r->limit, limit));
    if (r->model->seconds)
        nami_text_add(out, "costs     blocks take the deck's set times");
    else
        nami_text_add(out,
                      "costs     %.4g GFLOP/s a rank (%s), %.4g us a block and pass",
                      c->flops * 1e-9, measured ? "matrix peak measured now" : "given",
                      c->overhead * 1e6);
    nami_text_add(
        out, "; a message %.4g us + %.4g GB/s; optimiser %.4g GB/s (0: infinite)\n",
        c->latency * 1e6, c->bandwidth * 1e-9, c->update * 1e-9);
    nami_text title = {0};
    nami_text_add(&title,
                  "Best, trained by nami run (bytes: the executor's own budget):");
    print_head(&title, out);
    print_list(&a->best, "", out);
    nami_text_free(&title);
    if (a->only.rows > 0) {
        nami_text_add(&title, "Simulated only, the executor does not carry them out "
                              "yet (bytes: at least):");
        print_head(&title, out);
        print_list(&a->only, ">", out);
        nami_text_free(&title);
    }
    print_refused(a, out);
    print_verdict(a, out);
    nami_text_add(
        out,
        "\nThe best as section [pipeline] of the deck, in place of the one there:\n\n");
    nami_advice_fragment(&a->best.row[0], out);
}

static void json_row(const nami_advice_row *r, nami_text *out)
{
    nami_text_add(out, "{\"schedule\":");
    nami_text_json(out, r->recipe.name);
    nami_text_add(
        out,
        ",\"positions\":%d,\"replicas\":%d,\"waves\":%d,\"chunks\":%d,\"slices\":%d,"
        "\"microbatches\":%d,\"micro\":%lld,\"recompute\":%s,\"seconds\":",
        r->recipe.positions, r->replicas, r->recipe.waves, r->recipe.chunks,
        r->recipe.slices, r->recipe.microbatches * r->replicas, (long long)r->micro,
        r->recipe.recompute ? "true" : "false");
    nami_text_number(out, r->seconds);
    nami_text_add(out, ",\"bubble\":");
    nami_text_number(out, r->bubble);
    nami_text_add(out, ",\"bytes\":%.0f,\"messages\":%lld,\"sent\":%.0f}", r->bytes,
                  (long long)r->messages, r->sent);
}

static void json_list(const char *key, const nami_advice_list *l, nami_text *out)
{
    nami_text_add(out, ",\"%s\":[", key);
    for (int i = 0; i < l->rows; i++) {
        nami_text_add(out, "%s", i > 0 ? "," : "");
        json_row(&l->row[i], out);
    }
    nami_text_add(out, "]");
}

static void print_json(const nami_advise_request *r, bool measured,
                       const nami_advice *a, nami_text *out)
{
    const nami_advise_costs *c = &r->costs;
    const double number[] = {r->limit,   c->flops,     c->overhead,
                             c->latency, c->bandwidth, c->update};
    static const char *const key[] = {"limit",   "flops",     "overhead",
                                      "latency", "bandwidth", "update_rate"};
    nami_text fragment = {0};
    nami_text_add(out, "{\"ranks\":%d,\"batch\":%lld", r->ranks, (long long)r->batch);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        nami_text_add(out, ",\"%s\":", key[i]);
        nami_text_number(out, number[i]);
    }
    nami_text_add(out, ",\"flops_measured\":%s", measured ? "true" : "false");
    json_list("best", &a->best, out);
    json_list("simulated_only", &a->only, out);
    json_list("plain", &a->plain, out);
    nami_text_add(out, ",\"plain_ratio\":");
    nami_text_number(out, plain_ratio(a));
    nami_text_add(out, ",\"plain_wins\":%s,\"tried\":%lld,\"refused\":{",
                  plain_ratio(a) <= 1 ? "true" : "false", (long long)a->tried);
    for (int i = 0; i < NAMI_REFUSALS; i++)
        nami_text_add(out, "%s\"%s\":%lld", i > 0 ? "," : "", reason[i],
                      (long long)a->refused[i]);
    nami_advice_fragment(&a->best.row[0], &fragment);
    nami_text_add(out, "},\"fragment\":");
    nami_text_json(out, nami_text_get(&fragment));
    nami_text_add(out, "}\n");
    nami_text_free(&fragment);
}

static double limit_of(const nami_advise_flags *f, const nami_settings *s, int ranks)
{
    if (f->memory > 0)
        return f->memory;
    return s->run.memory > 0 ? s->run.memory * 1073741824.0
                             : nami_node_memory() / ranks;
}

/* The rate of matrix products of one rank; on the host, also where a deck asks for an imitated device. */
static nami_status measure(const nami_settings *s, double *flops)
{
    nami_backend *b = NULL;
    NAMI_TRY(nami_backend_open(nami_settings_host_backend(s),
                               nami_node_threads(NULL, s->train.threads),
                               nami_settings_dtype(s), &b));
    *flops = nami_backend_peak(b, nami_settings_dtype(s), 0.5);
    nami_backend_close(b);
    return NAMI_OK;
}

static nami_status advise(const nami_advise_flags *f, const nami_settings *s,
                          nami_advise_request *r)
{
    nami_advice *a = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *a);
    nami_text text = {0};
    bool measured = f->flops <= 0 && r->model->seconds == NULL;
    nami_status status = measured ? measure(s, &r->costs.flops) : NAMI_OK;
    if (status == NAMI_OK)
        status = nami_advise(r, a);
    if (status == NAMI_OK && f->json)
        print_json(r, measured, a, &text);
    else if (status == NAMI_OK)
        print_table(r, measured, a, &text);
    nami_print("%s", nami_text_get(&text));
    nami_text_free(&text);
    nami_free(a);
    return status;
}

nami_status nami_cli_advise(const nami_advise_flags *f, const nami_settings *s,
                            int ranks)
{
    nami_model *model = NULL;
    nami_backend *backend = NULL;
    const nami_backend_config config = {.threads =
                                            nami_node_threads(NULL, s->train.threads),
                                        .act = nami_settings_dtype(s),
                                        .emu = &s->emu};
    NAMI_TRY(nami_model_new(&s->model, s->train.dropout, &model));
    nami_status status =
        nami_backend_open_with(nami_settings_backend(s), &config, &backend);
    nami_advise_request r = {.model = model,
                             .optim = &s->optim,
                             .backend = backend,
                             .costs = {.flops = f->flops,
                                       .overhead = f->overhead,
                                       .latency = f->latency,
                                       .bandwidth = f->bandwidth,
                                       .update = f->update},
                             .ranks = ranks,
                             .limit = limit_of(f, s, ranks),
                             .batch = s->train.batch,
                             .partials = (int)s->train.partials,
                             .zero = s->pipeline.zero > 0,
                             .act = nami_settings_dtype(s),
                             .top = (int)f->top};
    if (status == NAMI_OK && model->seconds && f->flops > 0)
        status = nami_fail(NAMI_EINPUT, "--flops is set, but does nothing with family "
                                        "synthetic, whose times are set; remove it");
    if (status == NAMI_OK)
        status = advise(f, s, &r);
    if (backend)
        nami_backend_close(backend);
    nami_model_free(model);
    return status;
}
