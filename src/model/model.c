/* SPDX-License-Identifier: MIT */
/* model.c - the catalogue of a model, and stages of it as graphs. */
#include <string.h>

#include "model/family.h"
#include "model/net.h"

enum { MOST = 1 << 30 };

#define ROW(k, c, ...)                                                                 \
    {                                                                                  \
        .section = "model", .key = #k, .kind = NAMI_OPTION_##c,                        \
        .offset = offsetof(nami_model_options, k), __VA_ARGS__                         \
    }
static const char *const stems[] = {"imagenet", "small", NULL};

static const nami_option rows[] = {
    ROW(family, CHOICE, .fallback = "gpt", .choices = nami_family_names,
        .help = "Family of models."),
    ROW(layers, INT, .fallback = "6", .minimum = 1, .maximum = 10000,
        .help = "Transformer layers; L layers give 2L+2 blocks that can be cut."),
    ROW(width, INT, .fallback = "384", .minimum = 1, .maximum = MOST,
        .help = "Width of the residual stream; a multiple of heads."),
    ROW(heads, INT, .fallback = "6", .minimum = 1, .maximum = MOST,
        .help = "Attention heads."),
    ROW(kv_heads, INT, .fallback = "0", .maximum = MOST,
        .help = "Family llama: heads of keys and values, a divisor of heads; 0: as "
                "many as heads."),
    ROW(mlp_width, INT, .fallback = "0", .maximum = MOST,
        .help = "Width between the two layers of an MLP; 0: four times width, and of "
                "llama two thirds of that, rounded up to a multiple of 256."),
    ROW(rope_theta, REAL, .fallback = "10000", .minimum = 1e-3, .maximum = 1e12,
        .help = "Family llama: base of the wavelengths of rotary positions."),
    ROW(norm_eps, REAL, .fallback = "1e-5", .minimum = 1e-20, .maximum = 1,
        .help = "Family llama: added to the mean of squares in a norm."),
    ROW(context, INT, .fallback = "256", .minimum = 1, .maximum = MOST,
        .unit = "tokens",
        .help = "Longest sequence, and the length of a training sample."),
    ROW(vocabulary, INT, .fallback = "0", .minimum = 0, .maximum = MOST,
        .help = "Different tokens; 0 takes the number from the training set."),
    ROW(image_height, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help = "Height of the images; 0 takes it from the training set."),
    ROW(image_width, INT, .fallback = "0", .maximum = 4096, .unit = "pixels",
        .help = "Width of the images; 0 takes it from the training set."),
    ROW(image_channels, INT, .fallback = "0", .maximum = 4096,
        .help = "Channels of the images; 0 takes them from the training set."),
    ROW(classes, INT, .fallback = "0", .maximum = MOST,
        .help = "Classes of images; 0 takes the number from the training set."),
    ROW(patch, INT, .fallback = "16", .minimum = 1, .maximum = 4096, .unit = "pixels",
        .help = "Family vit: height and width of the patches that become tokens."),
    ROW(stem, CHOICE, .fallback = "imagenet", .choices = stems,
        .help = "Image families: imagenet as published for 224 pixels, small with a "
                "stride of 1 at first and a head of one layer, for up to 64 pixels."),
    ROW(batch_norm, BOOL, .fallback = "yes",
        .help = "Family vgg: batch norm behind each convolution."),
    ROW(sync_batch_norm, BOOL, .fallback = "no",
        .help =
            "Image families with batch norm: while training, mean and variance of a "
            "micro-batch are those of all replicas together (PyTorch's "
            "SyncBatchNorm): of the micro-batches that replicas run at the same "
            "place of their lists, or, where replicas divide each micro-batch, of "
            "the whole of it. Results then depend on the number of replicas, "
            "whatever train.partials says; nami compare takes such a layout only "
            "where one rank can form the same groups."),
    ROW(chain, TEXT, .fallback = "",
        .help =
            "Family chain: its layers, separated by commas, with | between "
            "blocks: conv OUT KERNEL [stride N] [pad N] [groups N] [bias yes], "
            "norm, relu, relu6, silu, sigmoid, gelu (by erf), tanh, max KERNEL [stride "
            "N] [pad N], "
            "mean KERNEL, global, flatten, linear OUT, dropout; OUT may be "
            "classes."),
    ROW(type_vocabulary, INT, .fallback = "2", .minimum = 2, .maximum = MOST,
        .help = "Family bert: types of tokens, which tell the sentences of a sample "
                "apart."),
    ROW(predictions, INT, .fallback = "0", .maximum = MOST, .unit = "tokens",
        .help = "Family bert: masked tokens of a sample at most; 0 takes the number "
                "from the training set, and without one 15 % of the context."),
    ROW(tied, BOOL, .fallback = "yes",
        .help = "The head uses the weights of the token embedding."),
    ROW(bias, BOOL, .fallback = "yes",
        .help = "Biases in linear layers and norms; of llama always no."),
#define SYNTHETIC(k, f, c, ...)                                                        \
    {                                                                                  \
        .section = "synthetic", .key = #k, .kind = NAMI_OPTION_##c,                    \
        .offset = offsetof(nami_model_options, f), __VA_ARGS__                         \
    }
    SYNTHETIC(forward, synthetic_forward, TEXT, .fallback = "100ms",
              .help = "Time of a block's forward pass; a list sets each block's."),
    SYNTHETIC(backward_input, synthetic_input, TEXT, .fallback = "100ms",
              .help = "Time of a block's backward pass for its input; or a list."),
    SYNTHETIC(backward_weight, synthetic_weight, TEXT, .fallback = "100ms",
              .help = "Time of a block's backward pass for its weights; or a list."),
    SYNTHETIC(samples, synthetic_samples, INT, .fallback = "0", .maximum = MOST,
              .help =
                  "Samples of a micro-batch that takes these times; others, as those "
                  "of a rank where samples are split, take their share. 0: as long "
                  "whatever there are."),
    SYNTHETIC(saved, synthetic_saved, INT, .fallback = "0", .maximum = MOST,
              .unit = "bytes",
              .help = "Memory a block keeps for each sample from forward to backward."),
};
#undef SYNTHETIC
#undef ROW

const nami_option_table nami_model_option_table = {rows, sizeof rows / sizeof rows[0]};

/* Keys that not every family reads. */
static const struct reach {
    const char *key;
    bool text, images; /* read by the families of tokens, of images */
    const char *
        families; /* starts of the names of those that read it, by blanks; NULL: all of these */
} reaches[] = {
    {"layers", true, false, NULL},
    {"width", true, false, NULL},
    {"heads", true, false, NULL},
    {"context", true, false, NULL},
    {"vocabulary", true, false, NULL},
    {"tied", true, false, NULL},
    {"bias", true, false, NULL},
    {"kv_heads", true, false, "llama"},
    {"mlp_width", true, false, "bert llama"},
    {"rope_theta", true, false, "llama"},
    {"norm_eps", true, false, "llama"},
    {"type_vocabulary", true, false, "bert"},
    {"predictions", true, false, "bert"},
    {"image_height", false, true, NULL},
    {"image_width", false, true, NULL},
    {"image_channels", false, true, NULL},
    {"classes", false, true, NULL},
    {"stem", false, true, NULL},
    {"batch_norm", false, true, "vgg"},
    {"sync_batch_norm", false, true, NULL},
    {"chain", false, true, "chain"},
    {"patch", false, false, NULL},
};

/* Whether `word` is one of `list`, words with blanks between them; NULL: none. */
static bool is_among(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* Whether `name` starts with one of the words of `list`. */
static bool starts_with_one(const char *name, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, " ");
        if (strncmp(name, list, n) == 0)
            return true;
        list += n + strspn(list + n, " ");
    }
    return false;
}

/* Whether the family reads a key of [model], or train.dropout. */
static bool reads(const nami_family *f, const char *key)
{
    return !is_among(f->unread, key);
}

/* Keys of [synthetic] belong to the family of that name. */
static nami_status check_synthetic(const nami_model_options *o)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].section, "synthetic") == 0 &&
            !nami_families[o->family]->made_up && !nami_option_untouched(&rows[i], o))
            return nami_fail(NAMI_EINPUT,
                             "synthetic.%s is set, but family %s does not read it; "
                             "remove it",
                             rows[i].key, nami_family_names[o->family]);
    return NAMI_OK;
}

nami_status nami_model_check_keys(const nami_model_options *o)
{
    const char *name = nami_family_names[o->family];
    const nami_family *family = nami_families[o->family];
    bool images = family->images;
    for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
        const struct reach *r = &reaches[i];
        bool read = (images ? r->images : r->text) && reads(family, r->key);
        if (r->families && !starts_with_one(name, r->families))
            read = false;
        read = read || is_among(family->reads, r->key);
        if (!read && !nami_option_untouched(
                         nami_option_find(&nami_model_option_table, r->key), o))
            return nami_fail(NAMI_EINPUT,
                             "model.%s is set, but family %s does not read it; remove "
                             "it",
                             r->key, name);
    }
    return check_synthetic(o);
}

nami_status nami_model_check_bias(const nami_model_options *o)
{
    if (o->bias && nami_families[o->family]->bare)
        return nami_fail(NAMI_EINPUT,
                         "model.bias = yes, but family %s has no biases; remove it",
                         nami_family_names[o->family]);
    return NAMI_OK;
}

void nami_model_settle(nami_model_options *o)
{
    if (nami_families[o->family]->bare)
        o->bias = false;
}

nami_status nami_model_check_dropout(const nami_model *m)
{
    if (m->dropout > 0 &&
        !(m->net ? nami_net_drops(m->net) : reads(m->family, "dropout")))
        return nami_fail(NAMI_EINPUT,
                         "train.dropout is set, but family %s has nothing that drops; "
                         "remove it",
                         m->family->name);
    return NAMI_OK;
}

bool nami_model_shares(const nami_model *m)
{
    return m->options.sync_batch_norm;
}

nami_status nami_model_check_shares(const nami_model *m)
{
    if (nami_model_shares(m) &&
        !(m->net && nami_net_has(m->net, NAMI_LAYER_BATCH_NORM)))
        return nami_fail(
            NAMI_EINPUT,
            "model.sync_batch_norm is set, but this model of family %s has "
            "no batch norm; remove it",
            m->family->name);
    return NAMI_OK;
}

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

bool nami_model_takes_images(const nami_model_options *o)
{
    return nami_families[o->family]->images;
}

double nami_model_block_flops(const nami_model *m, int block, int64_t time)
{
    NAMI_CHECK(block >= 0 && block < m->blocks);
    return m->family->flops(m, block, time);
}
