/* SPDX-License-Identifier: MIT */
/* names.c - what PyTorch programs call the parameters of a family.
 *
 * gpt: nanoGPT's names, which are Hugging Face's with "transformer." in front (optional there); their four matrices are
 * [in,out] in Hugging Face's files (Conv1D) and [out,in] in nanoGPT's. Image models: torchvision's names, as they are; of
 * the ResNets for CIFAR also those of the published nets, of densenet121 those of the published file, which has "norm.1"
 * for "norm1".
 */
#include <string.h>

#include "base/memory.h"
#include "exchange/inner.h"

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

static bool starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

bool nami_exchange_turned(const char *family, const char *name)
{
    static const char *const matrix[] = {".attn.c_attn.weight", ".attn.c_proj.weight",
                                         ".mlp.c_fc.weight", ".mlp.c_proj.weight"};
    for (int i = 0; i < 4 && !strcmp(family, "gpt"); i++)
        if (ends_with(name, matrix[i]))
            return true;
    return false;
}

/* Behind what DataParallel and torch.compile put in front. */
static const char *strip(const char *name)
{
    static const char *const front[] = {"module.", "_orig_mod."};
    for (int i = 0; i < 2; i++)
        if (starts_with(name, front[i]))
            return strip(name + strlen(front[i]));
    return name;
}

/* Arrays that are no parameters: counters of batches, GPT-2's masks, Inception's auxiliary head. */
static bool is_none(const char *family, const char *name)
{
    if (!strcmp(family, "gpt"))
        return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
    if (!strcmp(family, "inception") && starts_with(name, "AuxLogits."))
        return true;
    return ends_with(name, ".num_batches_tracked");
}

/* "denselayer1.norm.1.weight" to "denselayer1.norm1.weight". */
static char *join_dense(const char *name)
{
    static const char *const part[] = {".norm.", ".conv."};
    const char *layer = strstr(name, ".denselayer");
    for (int i = 0; i < 2 && layer; i++) {
        const char *at = strstr(layer, part[i]);
        const int before = at ? (int)(at - name) + 5 : 0;
        if (at && (at[6] == '1' || at[6] == '2') && at[7] == '.')
            return nami_strf("%.*s%s", before, name, at + 6);
    }
    return nami_strdup(name);
}

char *nami_exchange_own(const char *family, const char *name)
{
    name = strip(name);
    if (is_none(family, name))
        return NULL;
    if (nami_exchange_cifar(family) && starts_with(name, "linear."))
        return nami_strf("fc.%s", name + strlen("linear."));
    if (!strcmp(family, "densenet121"))
        return join_dense(name);
    if (!strcmp(family, "gpt") && !starts_with(name, "transformer.") &&
        !starts_with(name, "lm_head."))
        return nami_strf("transformer.%s", name);
    return nami_strdup(name);
}
