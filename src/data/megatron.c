/* SPDX-License-Identifier: MIT */
/* megatron.c - Megatron-LM's indexed data sets.
 *
 * PREFIX.idx, little-endian: "MMIDIDX" and two NUL; uint64 version 1; uint8 type of a token; uint64 sequences S; uint64
 * entries of the document table D; int32 length[S] in tokens; int64 offset[S] in bytes of the .bin; int64 document[D], numbers
 * of first sequences, from 0 to S; of multimodal sets int8 mode[S]. After NVIDIA/Megatron-LM d98e8a6,
 * megatron/core/datasets/indexed_dataset.py.
 */
#include "data/megatron.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum {
    HEADER = 34,
    BLOCK = 1 << 16, /* numbers read at a time */
    BLOCK_BYTES = 8 * BLOCK
};

/* Types by their code: bytes of a token, 0: no whole numbers. */
static const int widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
enum { U8 = 1, I8, I16, I32, I64, U16 = 8, TYPES };

/* An index being checked; its three tables are read side by side. */
typedef struct nami_index {
    const char *name;
    nami_source *length, *offset, *document;
    unsigned char header[HEADER];
    int64_t sequences, documents;
    int width;
    int64_t tokens; /* so far */
    unsigned char *block[2];
} nami_index;

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

int64_t nami_megatron_token(int type, const unsigned char *raw, int64_t i)
{
    int width = widths[type];
    uint64_t x = little(raw + i * width, width);
    if (type == U8 || type == U16)
        return (int64_t)x;
    return x >> (8 * width - 1) ? -1 : (int64_t)x; /* the sign */
}

/* Read and check the header; leaves `length` behind it. */
static nami_status read_header(nami_index *x)
{
    size_t got;
    const unsigned char *p = x->header;
    NAMI_TRY(nami_source_some(x->length, x->header, HEADER, &got));
    if (got < HEADER || memcmp(p, "MMIDIDX\0\0", 9) != 0)
        return nami_fail(
            NAMI_EINPUT,
            "%s is no index of Megatron-LM: it does not start with MMIDIDX", x->name);
    if (little(p + 9, 8) != 1)
        return nami_fail(NAMI_EINPUT, "%s is an index of version %llu, expected 1",
                         x->name, (unsigned long long)little(p + 9, 8));
    if (p[17] >= TYPES || widths[p[17]] == 0)
        return nami_fail(NAMI_EINPUT,
                         "%s: tokens have type %d, which is none of whole numbers",
                         x->name, p[17]);
    uint64_t sequences = little(p + 18, 8), documents = little(p + 26, 8);
    uint64_t length = (uint64_t)nami_source_length(x->length) - HEADER;
    if (sequences > length / 12 || documents > length / 8 || documents < 1 ||
        (12 * sequences + 8 * documents != length &&
         13 * sequences + 8 * documents != length))
        return nami_fail(NAMI_EINPUT,
                         "%s announces %llu sequences and %llu entries of documents, "
                         "which do not make its %llu bytes: it is truncated or damaged",
                         x->name, (unsigned long long)sequences,
                         (unsigned long long)documents,
                         (unsigned long long)length + HEADER);
    x->sequences = (int64_t)sequences;
    x->documents = (int64_t)documents;
    x->width = widths[p[17]];
    return NAMI_OK;
}

/* Move a source forward. */
static nami_status skip(nami_index *x, nami_source *s, int64_t bytes)
{
    while (bytes > 0) {
        size_t n = bytes < BLOCK ? (size_t)bytes : BLOCK;
        NAMI_TRY(nami_source_read(s, x->block[0], n));
        bytes -= (int64_t)n;
    }
    return NAMI_OK;
}

/* Sequences lie end to end from the first byte on. */
static nami_status check_sequences(nami_index *x)
{
    for (int64_t at = 0; at < x->sequences; at += BLOCK) {
        int64_t n = x->sequences - at < BLOCK ? x->sequences - at : BLOCK;
        NAMI_TRY(nami_source_read(x->length, x->block[0], 4 * (size_t)n));
        NAMI_TRY(nami_source_read(x->offset, x->block[1], 8 * (size_t)n));
        for (int64_t i = 0; i < n; i++) {
            uint64_t length = little(x->block[0] + 4 * i, 4),
                     offset = little(x->block[1] + 8 * i, 8);
            if (length > INT32_MAX || offset != (uint64_t)(x->tokens * x->width))
                return nami_fail(
                    NAMI_EINPUT,
                    "%s: sequence %lld has %lld tokens at byte %llu, where "
                    "byte %lld and no less than 0 tokens are expected",
                    x->name, (long long)(at + i), (long long)(int32_t)length,
                    (unsigned long long)offset, (long long)(x->tokens * x->width));
            x->tokens += (int64_t)length;
        }
    }
    return NAMI_OK;
}

/* Documents begin at rising sequences, from 0 to all. */
static nami_status check_documents(nami_index *x)
{
    uint64_t last = 0, first = 0;
    for (int64_t at = 0; at < x->documents; at += BLOCK) {
        int64_t n = x->documents - at < BLOCK ? x->documents - at : BLOCK;
        NAMI_TRY(nami_source_read(x->document, x->block[0], 8 * (size_t)n));
        for (int64_t i = 0; i < n; i++) {
            uint64_t now = little(x->block[0] + 8 * i, 8);
            if (at + i == 0)
                first = now;
            if (now < last)
                return nami_fail(NAMI_EINPUT,
                                 "%s: document %lld starts at sequence %llu, behind "
                                 "%llu of the one before",
                                 x->name, (long long)(at + i), (unsigned long long)now,
                                 (unsigned long long)last);
            last = now;
        }
    }
    if (first != 0 || last != (uint64_t)x->sequences)
        return nami_fail(NAMI_EINPUT,
                         "%s: documents go from sequence %llu to %llu, where 0 to %lld "
                         "is expected",
                         x->name, (unsigned long long)first, (unsigned long long)last,
                         (long long)x->sequences);
    return NAMI_OK;
}

static nami_status check_index(nami_index *x)
{
    NAMI_TRY(nami_source_open(x->name, ".", &x->length));
    NAMI_TRY(nami_source_open(x->name, ".", &x->offset));
    NAMI_TRY(nami_source_open(x->name, ".", &x->document));
    NAMI_TRY(read_header(x));
    NAMI_TRY(skip(x, x->offset, HEADER + 4 * x->sequences));
    NAMI_TRY(skip(x, x->document, HEADER + 12 * x->sequences));
    NAMI_TRY(check_sequences(x));
    return check_documents(x);
}

static nami_status open_bin(const nami_index *x, const char *name, nami_source **bin)
{
    NAMI_TRY(nami_source_open(name, ".", bin));
    if (nami_source_length(*bin) != x->tokens * x->width)
        return nami_fail(
            NAMI_EINPUT,
            "%s has %lld bytes, but %s announces %lld tokens of %d bytes: it "
            "is truncated or another file",
            name, (long long)nami_source_length(*bin), x->name, (long long)x->tokens,
            x->width);
    return NAMI_OK;
}

nami_status nami_megatron_open(const char *path, nami_source **bin, int *type,
                               int *width)
{
    size_t n = strlen(path);
    bool ends =
        n > 4 && (!strcmp(path + n - 4, ".bin") || !strcmp(path + n - 4, ".idx"));
    int stem = (int)(ends ? n - 4 : n);
    char *name = nami_strf("%.*s.idx", stem, path),
         *tokens = nami_strf("%.*s.bin", stem, path);
    nami_index x = {.name = name,
                    .block = {nami_alloc(NAMI_MEM_DATA, BLOCK_BYTES),
                              nami_alloc(NAMI_MEM_DATA, BLOCK_BYTES)}};
    nami_status status = check_index(&x);
    if (status == NAMI_OK)
        status = open_bin(&x, tokens, bin);
    *type = x.header[17];
    *width = x.width;
    nami_source_close(x.document);
    nami_source_close(x.offset);
    nami_source_close(x.length);
    nami_free(x.block[1]);
    nami_free(x.block[0]);
    nami_free(tokens);
    nami_free(name);
    return status;
}
