/* SPDX-License-Identifier: MIT */
/* families.c - the table of model families. */
#include "model/family.h"

/* One line a family. */
#define FAMILIES(FAMILY)                                                               \
    FAMILY(gpt)                                                                        \
    FAMILY(synthetic)                                                                  \
    FAMILY(bert)                                                                       \
    FAMILY(llama)                                                                      \
    FAMILY(chain)                                                                      \
    FAMILY(mlp)                                                                        \
    FAMILY(lenet)                                                                      \
    FAMILY(alexnet)                                                                    \
    FAMILY(vgg11)                                                                      \
    FAMILY(vgg13)                                                                      \
    FAMILY(vgg16)                                                                      \
    FAMILY(vgg19)                                                                      \
    FAMILY(resnet20)                                                                   \
    FAMILY(resnet32)                                                                   \
    FAMILY(resnet44)                                                                   \
    FAMILY(resnet56)                                                                   \
    FAMILY(resnet110)                                                                  \
    FAMILY(resnet18)                                                                   \
    FAMILY(resnet34)                                                                   \
    FAMILY(resnet50)                                                                   \
    FAMILY(resnet101)                                                                  \
    FAMILY(resnet152)                                                                  \
    FAMILY(resnext50)                                                                  \
    FAMILY(efficientnetv2)                                                             \
    FAMILY(inception)                                                                  \
    FAMILY(densenet121)                                                                \
    FAMILY(mobilenetv2)                                                                \
    FAMILY(squeezenet)                                                                 \
    FAMILY(vit)

#define ADDRESS(name) &nami_family_##name,
#define NAME(name) #name,

const nami_family *const nami_families[] = {FAMILIES(ADDRESS) NULL};
const char *const nami_family_names[] = {FAMILIES(NAME) NULL};
