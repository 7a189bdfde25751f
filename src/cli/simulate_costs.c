/* SPDX-License-Identifier: MIT */
/* simulate_costs.c - what flags and a profile say an action and a message cost. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "cli/simulate.h"

/* A number of at least zero, or `fallback` when the text is empty. */
static nami_status read_time(const char *key, const char *text, double fallback,
                             double *out)
{
    *out = fallback;
    if (*text == '\0')
        return NAMI_OK;
    if (!nami_parse_real(text, out) || !(*out >= 0.0) || isinf(*out))
        return nami_fail(NAMI_EINPUT,
                         "--%s \"%.40s\": a number of at least 0 is expected", key,
                         text);
    return NAMI_OK;
}

/* Bytes a time unit; 0 is without end, `fallback` for an empty text. */
static nami_status read_bandwidth(const char *key, const char *text, double fallback,
                                  double *out)
{
    *out = fallback;
    if (*text == '\0')
        return NAMI_OK;
    *out = 0.0;
    if (strcmp(text, "inf") == 0)
        return NAMI_OK;
    if (!nami_parse_real(text, out) || !(*out > 0.0) || isinf(*out))
        return nami_fail(NAMI_EINPUT,
                         "--%s \"%.40s\": a number above 0, or inf, is expected", key,
                         text);
    return NAMI_OK;
}

static nami_status read_links(const nami_simulate_flags *f, nami_cost *out)
{
    if (f->ranks_per_node == 0 &&
        (*f->node_latency != '\0' || *f->node_bandwidth != '\0'))
        return nami_fail(NAMI_EINPUT, "--node-latency and --node-bandwidth need "
                                      "--ranks-per-node to tell which links they mean");
    NAMI_TRY(read_bandwidth("bandwidth", f->bandwidth, 0.0, &out->bandwidth));
    NAMI_TRY(
        read_time("node-latency", f->node_latency, f->latency, &out->node_latency));
    return read_bandwidth("node-bandwidth", f->node_bandwidth, out->bandwidth,
                          &out->node_bandwidth);
}

static nami_status read_profile(const nami_simulate_flags *f, nami_profile *out)
{
    if (*f->profile == '\0')
        return NAMI_OK;
    if (f->tf != 1.0 || f->tb != 2.0 || *f->tbi != '\0' || *f->tbw != '\0' ||
        f->bytes != 0.0)
        return nami_fail(NAMI_EINPUT,
                         "--profile says times and bytes; leave --tf, --tb, "
                         "--tbi, --tbw and --bytes out");
    return nami_profile_read(f->profile, out);
}

nami_status nami_simulate_costs_open(const nami_simulate_flags *f,
                                     nami_simulate_costs *out)
{
    nami_cost *c = &out->cost;
    *out = (nami_simulate_costs){.flags = f};
    *c = (nami_cost){.tf = f->tf,
                     .latency = f->latency,
                     .samples = f->samples,
                     .ranks_per_node = (int)f->ranks_per_node,
                     .serial = f->serial,
                     .apart = f->apart,
                     .update = f->update,
                     .reduce = f->reduce,
                     .reduce_alone = f->reduce_alone};
    NAMI_TRY(read_time("tbi", f->tbi, f->tb / 2.0, &c->tbi));
    NAMI_TRY(read_time("tbw", f->tbw, f->tb / 2.0, &c->tbw));
    NAMI_TRY(read_time("tr", f->tr, 0.0, &c->tr));
    NAMI_TRY(read_links(f, c));
    return read_profile(f, &out->profile);
}

void nami_simulate_costs_close(nami_simulate_costs *c)
{
    nami_profile_free(&c->profile);
    nami_free(c->table);
    *c = (nami_simulate_costs){0};
}

nami_status nami_simulate_costs_for(nami_simulate_costs *c, int stages, nami_cost *out)
{
    size_t n = (size_t)stages;
    *out = c->cost;
    nami_free(c->table);
    c->table = nami_calloc(NAMI_MEM_OTHER, 4 * n, sizeof *c->table);
    double *f = c->table, *bi = f + n, *bw = bi + n, *bytes = bw + n;
    out->bytes = bytes;
    for (size_t i = 0; i < n; i++)
        bytes[i] = c->flags->bytes;
    if (c->profile.rows == 0)
        return NAMI_OK;
    out->stage_f = f;
    out->stage_bi = bi;
    out->stage_bw = bw;
    return nami_profile_cut(&c->profile, stages, f, bi, bw, bytes);
}
