/* SPDX-License-Identifier: MIT */
/* model.c - make a model of a family from its options, and ask it. */
#include "model/family.h"
#include "model/net.h"

/* Samples of an image family are one step of time long. */
static nami_status check_images(nami_model_options *o)
{
    const struct {
        const char *key;
        int64_t value;
    } given[] = {{"image_height", o->image_height},
                 {"image_width", o->image_width},
                 {"image_channels", o->image_channels},
                 {"classes", o->classes}};
    for (int i = 0; i < 4; i++)
        if (given[i].value < 1)
            return nami_fail(NAMI_EINPUT,
                             "model.%s is %lld; without a training set it must be "
                             "given and at least 1",
                             given[i].key, (long long)given[i].value);
    o->vocabulary = o->classes;
    o->context = 1;
    return NAMI_OK;
}

nami_status nami_model_of(const nami_family *family, const nami_model_options *o,
                          double dropout, nami_model **out)
{
    *out = NULL;
    if (!(dropout >= 0 && dropout < 1))
        return nami_fail(NAMI_EINPUT,
                         "train.dropout is %g; it must be at least 0 and below 1",
                         dropout);
    nami_model_options own = *o;
    if (family->made_up && own.vocabulary == 0)
        own.vocabulary = own.width;
    if (family->images)
        NAMI_TRY(check_images(&own));
    if (family->masked && own.predictions == 0)
        own.predictions = (15 * own.context + 99) / 100;
    if (own.vocabulary < 1)
        return nami_fail(NAMI_EINPUT,
                         "model.vocabulary is %lld; without a training set it "
                         "must be given and at least 1",
                         (long long)own.vocabulary);
    nami_net *net = NULL;
    NAMI_TRY(family->net ? nami_net_make(family, &own, &net) : family->check(&own));
    nami_model *m = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *m);
    m->options = own;
    m->family = family;
    m->dropout = dropout;
    m->net = net;
    m->blocks = net ? net->blocks : family->blocks(&own);
    family->parameters(m);
    m->options.synthetic_forward = m->options.synthetic_input =
        m->options.synthetic_weight = m->options.chain =
            NULL; /* they belong to the caller */
    nami_status status = nami_model_close(m);
    if (status != NAMI_OK)
        nami_model_free(m);
    else
        *out = m;
    return status;
}

nami_status nami_model_new(const nami_model_options *o, double dropout,
                           nami_model **out)
{
    return nami_model_of(nami_families[o->family], o, dropout, out);
}

bool nami_model_made_up(const nami_model_options *o)
{
    return nami_families[o->family]->made_up;
}

void nami_model_free(nami_model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->params; i++)
        nami_free(m->param[i].name);
    nami_free(m->param);
    nami_free(m->named);
    nami_free(m->seconds);
    nami_net_free(m->net);
    nami_free(m);
}

const char *nami_model_block_name(const nami_model *m, int block, char buf[32])
{
    NAMI_CHECK(block >= 0 && block < m->blocks);
    m->family->block_name(m, block, buf);
    return buf;
}

bool nami_model_takes_images(const nami_model_options *o)
{
    return nami_families[o->family]->images;
}

double nami_model_block_flops(const nami_model *m, int block, int64_t time)
{
    NAMI_CHECK(block >= 0 && block < m->blocks);
    return m->family->flops(m, block, time);
}
