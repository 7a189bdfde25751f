/* SPDX-License-Identifier: MIT */
/* chain.c - a net whose layers are listed in the deck: model.chain.
 *
 * Layers are numbered from 0 like the modules of PyTorch's Sequential, and so are their parameters: "3.weight". A bar
 * closes a block; without any, each layer with weights begins one.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/net.h"

enum { WORD = 32, WORDS = 12 };

/* One layer of the list as words. */
typedef struct phrase {
    char word[WORDS][WORD];
    int words;
} phrase;

typedef struct reader {
    nami_net *net;
    const nami_model_options *options;
    int x;      /* the layer so far */
    int number; /* of the next layer */
    int first;  /* of the block */
    bool bars;  /* the deck says where blocks end */
} reader;

static void fail(reader *r, const phrase *p, const char *why)
{
    if (r->net->status == NAMI_OK)
        r->net->status = nami_fail(NAMI_EINPUT, "model.chain, layer %d ('%s'): %s",
                                   r->number, p->word[0], why);
}

/* A number of at least `least`, or the word classes. */
static int64_t number(reader *r, const phrase *p, int i, int64_t least)
{
    int64_t n = 0;
    if (i < p->words && strcmp(p->word[i], "classes") == 0)
        return r->options->classes;
    if (i >= p->words || !nami_parse_int(p->word[i], &n) || n < least ||
        n > (1 << 20)) {
        fail(r, p,
             least > 0 ? "a number from 1 to 1048576 is missing"
                       : "a number from 0 to 1048576 is missing");
        return 1;
    }
    return n;
}

/* What follows `key` from word `from` on, else `fallback`. */
static int64_t option(reader *r, const phrase *p, int from, const char *key,
                      int64_t fallback)
{
    for (int i = from; i + 1 < p->words; i += 2)
        if (strcmp(p->word[i], key) == 0)
            return number(r, p, i + 1, strcmp(key, "pad") == 0 ? 0 : 1);
    return fallback;
}

/* Words from `from` on are pairs of these keys (separated by blanks) and values. */
static void check_options(reader *r, const phrase *p, int from, const char *keys)
{
    char spaced[WORD + 3], known[64];
    (void)snprintf(known, sizeof known, " %s ", keys);
    for (int i = from; i < p->words; i += 2) {
        (void)snprintf(spaced, sizeof spaced, " %s ", p->word[i]);
        if (strstr(known, spaced) == NULL)
            fail(r, p, "has a word that is not known, or one too many");
        else if (i + 1 == p->words)
            fail(r, p, "the value of the last word is missing");
    }
}

static bool has_bias(reader *r, const phrase *p)
{
    for (int i = 3; i + 1 < p->words; i += 2)
        if (strcmp(p->word[i], "bias") == 0) {
            if (strcmp(p->word[i + 1], "yes") != 0 && strcmp(p->word[i + 1], "no") != 0)
                fail(r, p, "bias is yes or no");
            return strcmp(p->word[i + 1], "yes") == 0;
        }
    return true;
}

static bool is(const phrase *p, const char *word)
{
    return strcmp(p->word[0], word) == 0;
}

/* Whether the layers before make an image. */
static bool is_image(const reader *r)
{
    return r->net->status == NAMI_OK && r->net->layer[r->x].shape.rank == 4;
}

static void add_conv(reader *r, const phrase *p, const char *name)
{
    const int64_t out = number(r, p, 1, 1), kernel = number(r, p, 2, 1);
    check_options(r, p, 3, "stride pad groups bias");
    const int64_t stride = option(r, p, 3, "stride", 1),
                  pad = option(r, p, 3, "pad", 0);
    r->x = nami_net_conv(r->net, r->x, name, out, nami_net_square(kernel, stride, pad),
                         option(r, p, 3, "groups", 1), has_bias(r, p));
}

static void add_pool(reader *r, const phrase *p)
{
    const int64_t kernel = number(r, p, 1, 1);
    check_options(r, p, 2, "stride pad");
    const int64_t stride = option(r, p, 2, "stride", kernel),
                  pad = option(r, p, 2, "pad", 0);
    if (2 * pad > kernel)
        fail(r, p, "pad is at most half the kernel");
    r->x =
        nami_net_pool(r->net, r->x, is(p, "max"), nami_net_square(kernel, stride, pad));
}

static bool add_unary(reader *r, const phrase *p)
{
    static const char *const words[NAMI_UNARIES] = {
        [NAMI_RELU] = "relu", [NAMI_RELU6] = "relu6",   [NAMI_SIGMOID] = "sigmoid",
        [NAMI_SILU] = "silu", [NAMI_GELU_ERF] = "gelu",

        [NAMI_TANH] = "tanh"};
    for (int f = 0; f < NAMI_UNARIES; f++)
        if (is(p, words[f])) {
            r->x = nami_net_unary(r->net, r->x, (nami_unary)f);
            return true;
        }
    return false;
}

/* Layers that want an image, or none. */
static void check_kind(reader *r, const phrase *p)
{
    static const char *const images[] = {"conv", "norm",   "max",
                                         "mean", "global", "flatten"};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        if (is(p, images[i]) && !is_image(r))
            fail(r, p, "comes behind flatten, but wants an image");
    if (is(p, "linear") && is_image(r))
        fail(r, p, "comes before flatten, but wants none of images");
}

/* A block is called after its first layer. */
static void close_block(reader *r)
{
    char name[32];
    (void)snprintf(name, sizeof name, "layer %d", r->first);
    nami_net_block(r->net, name);
    r->first = r->number;
}

static void add_layer(reader *r, const phrase *p)
{
    char name[NAMI_NET_NAME];
    (void)snprintf(name, sizeof name, "%d", r->number);
    check_kind(r, p);
    const bool weighty = is(p, "conv") || is(p, "linear");
    if (weighty && !r->bars && r->net->status == NAMI_OK &&
        r->net->layer[r->x].block == r->net->blocks && r->number > 0)
        close_block(r);
    if (is(p, "conv"))
        add_conv(r, p, name);
    else if (is(p, "max") || is(p, "mean"))
        add_pool(r, p);
    else if (is(p, "linear"))
        r->x = nami_net_linear(r->net, r->x, name, number(r, p, 1, 1));
    else if (is(p, "norm"))
        r->x = nami_net_batch_norm(r->net, r->x, name, false);
    else if (is(p, "global"))
        r->x = nami_net_global_pool(r->net, r->x);
    else if (is(p, "flatten"))
        r->x = nami_net_flatten(r->net, r->x);
    else if (is(p, "dropout"))
        r->x = nami_net_dropout(r->net, r->x, name);
    else if (!add_unary(r, p))
        fail(r, p, "is not a layer: see model.chain in nami-deck(5)");
}

/* The words up to the next comma or bar; returns what follows them. */
static const char *read_phrase(const char *text, phrase *p)
{
    p->words = 0;
    memset(p->word, 0, sizeof p->word);
    text += strspn(text, " \t");
    while (*text && *text != ',' && *text != '|' && p->words < WORDS) {
        const size_t length = strcspn(text, " \t,|");
        const size_t kept = length < WORD - 1 ? length : WORD - 1;
        memcpy(p->word[p->words++], text, kept);
        text += length;
        text += strspn(text, " \t");
    }
    return text;
}

static void make(nami_net *n, const nami_model_options *o)
{
    const char *text = o->chain ? o->chain : "";
    reader r = {.net = n, .options = o, .bars = strchr(text, '|') != NULL};
    phrase p;
    while (n->status == NAMI_OK) {
        text = read_phrase(text, &p);
        if (p.words == 0)
            fail(&r, &p, "a layer is missing (model.chain lists them)");
        else
            add_layer(&r, &p);
        r.number++;
        if (*text == '|' && n->status == NAMI_OK)
            close_block(&r);
        if (*text == '\0')
            break;
        if (*text != ',' && *text != '|')
            fail(&r, &p, "has too many words");
        text++;
    }
}

NAMI_NET_FAMILY_WITHOUT(chain, make, "stem");
