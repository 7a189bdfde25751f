/* SPDX-License-Identifier: MIT */
/* names_image.c - torchvision's names, which are ours, and those of published files that differ.
 *
 * The ResNets for CIFAR call their head "linear" and pad their skips with zeros; the file of DenseNet-121 has "norm.1" for "norm1". Counters of batches
 * and Inception's auxiliary head are no parameters.
 */
#include "exchange/names.h"

static const nami_name_row cifar[] = {
    {.own = "fc.*", .foreign = "linear.*", .alias = true},
    {0},
};

static const nami_name_row densenet[] = {
    {.own = "*.denselayer#.norm#.*",
     .foreign = "*.denselayer#.norm.#.*",
     .alias = true},
    {.own = "*.denselayer#.conv#.*",
     .foreign = "*.denselayer#.conv.#.*",
     .alias = true},
    {0},
};

static const char *const none[] = {"*.num_batches_tracked", NULL};
static const char *const inception[] = {"*.num_batches_tracked", "AuxLogits.*", NULL};

const nami_names nami_names_image = {
    .family = {NULL}, .dialect = {{.name = "torchvision"}}, .none = none};

const nami_names nami_names_cifar = {
    .family = {"resnet20", "resnet32", "resnet44", "resnet56", "resnet110"},
    .dialect = {{.name = "torchvision", .row = cifar}},
    .none = none,
    .padded = "*.downsample.*"};

const nami_names nami_names_densenet121 = {
    .family = {"densenet121"},
    .dialect = {{.name = "torchvision", .row = densenet}},
    .none = none};

const nami_names nami_names_inception = {
    .family = {"inception"}, .dialect = {{.name = "torchvision"}}, .none = inception};
