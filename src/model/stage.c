/* SPDX-License-Identifier: MIT */
/* stage.c - stages of a model, runs of its blocks, as graphs. */
#include "model/family.h"
#include "model/net.h"

nami_status nami_model_slices(const nami_model *m, int64_t time, int slices)
{
    if (slices == 1)
        return NAMI_OK;
    if (!m->family->causal)
        return nami_fail(
            NAMI_EPLAN,
            "%d token slices need a causal model; in family %s a token may "
            "depend on later ones",
            slices, m->family->name);
    if (slices < 1 || time % slices != 0)
        return nami_fail(NAMI_EPLAN,
                         "a sample of %lld tokens cannot be cut into %d equal slices "
                         "(the remainder is %lld)",
                         (long long)time, slices,
                         (long long)(slices < 1 ? 0 : time % slices));
    return NAMI_OK;
}

static nami_dtype first_type(const nami_model *m)
{
    return m->family->images ? NAMI_F32 : NAMI_I32;
}

/* What enters block `first`. */
static nami_shape input_shape(const nami_model *m, int first, int64_t batch,
                              int64_t time)
{
    const nami_model_options *o = &m->options;
    if (m->family->masked && first == 0)
        return nami_shape_of(batch, nami_model_sample_of(m, time).words, 0, 0);
    if (m->family->shape)
        return m->family->shape(m, first, batch);
    return nami_shape_of(batch, time, first == 0 ? 0 : o->width, 0);
}

/* Blocks [first, last); `loss`: the last block of the model ends in the loss, else in its logits. */
static nami_status make_graph(const nami_model *m, int first, int last, bool loss,
                              nami_backend *b, nami_dtype act, int64_t batch,
                              int64_t time, int slices, nami_graph **out)
{
    NAMI_CHECK(0 <= first && first < last && last <= m->blocks);
    *out = NULL;
    if (time > m->options.context)
        return nami_fail(NAMI_EINPUT,
                         "a sample of %lld tokens is longer than model.context = %lld",
                         (long long)time, (long long)m->options.context);
    NAMI_TRY(nami_model_slices(m, time, slices));
    time /= slices;
    nami_graph *g = nami_graph_new(b, act, batch, time);
    nami_graph_slice(g, slices);
    const nami_model_sample sample = nami_model_sample_of(m, time);
    nami_block_build build = {.model = m,
                              .graph = g,
                              .act = act,
                              .wide = act == NAMI_F64 ? NAMI_F64 : NAMI_F32,
                              .batch = batch,
                              .time = time,
                              .block = first,
                              .side = -1,
                              .targets = -1};
    int input = nami_graph_value(g, first == 0 ? first_type(m) : act,
                                 input_shape(m, first, batch, time));
    if (first == 0)
        nami_graph_given(g);
    if (sample.side > 0) {
        build.side = nami_graph_value(g, NAMI_I32, nami_shape_of(batch, 0, 0, 0));
        nami_graph_side(g, build.side);
    }
    if (loss && last == m->blocks)
        build.targets =
            nami_graph_value(g, NAMI_I32, nami_shape_of(batch, sample.targets, 0, 0));
    int value = input;
    for (; build.block < last; build.block++) {
        nami_graph_block(g, build.block);
        value = m->family->build(&build, value);
    }
    nami_graph_ends(g, input, value, build.targets);
    *out = g;
    return NAMI_OK;
}

nami_status nami_model_graph(const nami_model *m, int first, int last, nami_backend *b,
                             nami_dtype act, int64_t batch, int64_t time,
                             nami_graph **out)
{
    return make_graph(m, first, last, true, b, act, batch, time, 1, out);
}

nami_status nami_model_graph_sliced(const nami_model *m, int first, int last,
                                    nami_backend *b, nami_dtype act, int64_t batch,
                                    int64_t time, int slices, nami_graph **out)
{
    return make_graph(m, first, last, true, b, act, batch, time, slices, out);
}

nami_status nami_model_graph_logits(const nami_model *m, nami_backend *b,
                                    nami_dtype act, int64_t batch, int64_t time,
                                    nami_graph **out)
{
    return make_graph(m, 0, m->blocks, false, b, act, batch, time, 1, out);
}

int64_t nami_model_boundary(const nami_model *m, int block, int64_t time)
{
    NAMI_CHECK(block > 0 && block < m->blocks);
    const nami_shape s = input_shape(m, block, 1, time);
    return nami_shape_count(&s);
}
