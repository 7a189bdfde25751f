/* SPDX-License-Identifier: MIT */
/* read_cifar.c - the binary version of CIFAR-10 and CIFAR-100.
 *
 * Records of 1 label byte (CIFAR-10) or a coarse and a fine one (CIFAR-100, the fine one counts), then 32x32 bytes of red, of
 * green and of blue, row by row; after https://www.cs.toronto.edu/~kriz/cifar.html.
 */
#include "data/pictures.h"

#include <string.h>

#include "base/memory.h"

enum { SIDE = 32, CHANNELS = 3, IMAGE = CHANNELS * SIDE * SIDE };

typedef struct cifar {
    int labels; /* bytes in front of an image */
    int64_t at; /* images handed out */
} cifar;

static nami_status read_cifar(nami_pictures *p, int64_t count, uint8_t *pixel,
                              uint16_t *label)
{
    cifar *own = p->own;
    unsigned char record[2 + IMAGE];
    for (int64_t i = 0; i < count; i++) {
        NAMI_TRY(nami_source_read(p->source[0], record, (size_t)own->labels + IMAGE));
        label[i] = record[own->labels - 1];
        if (label[i] >= p->classes)
            return nami_fail(NAMI_EINPUT,
                             "%s: the label of image %lld is %d, where less than %d is "
                             "expected: it is not a file of CIFAR-%d, or damaged",
                             nami_source_name(p->source[0]), (long long)own->at,
                             (int)label[i], (int)p->classes, (int)p->classes);
        memcpy(pixel + i * IMAGE, record + own->labels, IMAGE);
        own->at++;
    }
    return NAMI_OK;
}

static void drop_cifar(nami_pictures *p)
{
    nami_free(p->own);
}

nami_status nami_cifar_open(const char *path, int labels, const char *spool,
                            nami_pictures *p)
{
    NAMI_TRY(nami_source_open(path, spool, &p->source[0]));
    int64_t length = nami_source_length(p->source[0]), record = labels + IMAGE;
    *p = (nami_pictures){.samples = length / record,
                         .channels = CHANNELS,
                         .height = SIDE,
                         .width = SIDE,
                         .classes = labels == 1 ? 10 : 100,
                         .source = {p->source[0]},
                         .own = nami_calloc(NAMI_MEM_OTHER, 1, sizeof(cifar)),
                         .read = read_cifar,
                         .drop = drop_cifar};
    ((cifar *)p->own)->labels = labels;
    if (length % record != 0 || length == 0)
        return nami_fail(NAMI_EINPUT,
                         "%s has %lld bytes, not a multiple of the %lld of a record of "
                         "CIFAR-%d: it is truncated or another file",
                         nami_source_name(p->source[0]), (long long)length,
                         (long long)record, (int)p->classes);
    return NAMI_OK;
}
