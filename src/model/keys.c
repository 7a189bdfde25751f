/* SPDX-License-Identifier: MIT */
/* keys.c - refuse keys that the family of a model does not read. */
#include <string.h>

#include "model/family.h"
#include "model/net.h"

/* Keys that not every family reads. */
static const struct reach {
    const char *key;
    bool text, images; /* read by the families of tokens, of images */
    /* starts of the names of those that read it, by blanks; NULL: all of these */
    const char *families;
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
    const nami_option_table *table = &nami_model_option_table;
    for (int i = 0; i < table->rows; i++)
        if (strcmp(table->row[i].section, "synthetic") == 0 &&
            !nami_families[o->family]->made_up &&
            !nami_option_untouched(&table->row[i], o))
            return nami_fail(NAMI_EINPUT,
                             "synthetic.%s is set, but family %s does not read it; "
                             "remove it",
                             table->row[i].key, nami_family_names[o->family]);
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
