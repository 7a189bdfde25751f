/* SPDX-License-Identifier: MIT */
/* write.c - write a safetensors file: under another name first, in one pass, header and all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "exchange/exchange.h"
#include "store/store.h"

enum { PIECE = 1 << 16 }; /* elements converted at a time */

struct nami_exchange_writer {
    char *path, *temporary;
    int fd;
    nami_exchange_kind kind;
    nami_text header;
    int64_t declared, written; /* bytes of arrays */
    bool started;              /* the header is in the file */
};

nami_status nami_exchange_create(const char *path, nami_exchange_kind kind,
                                 nami_exchange_writer **out)
{
    nami_exchange_writer *w = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *w);
    NAMI_CHECK(kind == NAMI_EXCHANGE_F32 || kind == NAMI_EXCHANGE_BF16);
    *w = (nami_exchange_writer){.path = nami_strdup(path), .kind = kind};
    w->temporary = nami_strf("%s.tmp.%ld", path, (long)getpid());
    /* what Hugging Face's readers ask for */
    nami_text_add(&w->header, "{\"__metadata__\":{\"format\":\"pt\"}");
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    *out = w;
    if (w->fd >= 0)
        return NAMI_OK;
    *out = NULL;
    nami_status status =
        nami_fail(NAMI_EENV, "%s cannot be written: %s", w->temporary, strerror(errno));
    return nami_exchange_finish(w, status);
}

static int64_t width(const nami_exchange_writer *w)
{
    return w->kind == NAMI_EXCHANGE_F32 ? 4 : 2;
}

void nami_exchange_declare(nami_exchange_writer *w, const char *name,
                           const nami_shape *shape)
{
    int64_t end = w->declared + nami_shape_count(shape) * width(w);
    nami_text_add(&w->header, ",");
    nami_text_json(&w->header, name);
    nami_text_add(&w->header, ":{\"dtype\":\"%s\",\"shape\":[",
                  w->kind == NAMI_EXCHANGE_F32 ? "F32" : "BF16");
    for (int i = 0; i < shape->rank; i++)
        nami_text_add(&w->header, "%s%lld", i ? "," : "", (long long)shape->dim[i]);
    nami_text_add(&w->header, "],\"data_offsets\":[%lld,%lld]}", (long long)w->declared,
                  (long long)end);
    w->declared = end;
}

static nami_status put(nami_exchange_writer *w, const void *data, size_t bytes)
{
    if (nami_file_write(w->fd, data, bytes))
        return NAMI_OK;
    return nami_fail(NAMI_EENV, "%s cannot be written: %s", w->temporary,
                     strerror(errno));
}

/* Padded so that arrays start at a multiple of 8. */
static nami_status put_header(nami_exchange_writer *w)
{
    w->started = true;
    nami_text_add(&w->header, "}");
    while (w->header.length % 8)
        nami_text_add(&w->header, " ");
    uint64_t length = w->header.length;
    NAMI_TRY(put(w, &length, sizeof length));
    return put(w, nami_text_get(&w->header), w->header.length);
}

nami_status nami_exchange_write(nami_exchange_writer *w, int64_t count,
                                const float *data)
{
    if (!w->started)
        NAMI_TRY(put_header(w));
    w->written += count * width(w);
    if (w->kind == NAMI_EXCHANGE_F32)
        return put(w, data, (size_t)count * sizeof *data);
    uint16_t *half = nami_alloc(NAMI_MEM_OTHER, PIECE * sizeof *half);
    nami_status status = NAMI_OK;
    for (int64_t i = 0; i < count && status == NAMI_OK; i += PIECE) {
        int64_t n = count - i < PIECE ? count - i : PIECE;
        for (int64_t k = 0; k < n; k++)
            half[k] = nami_f32_to_bf16(data[i + k]);
        status = put(w, half, (size_t)n * sizeof *half);
    }
    nami_free(half);
    return status;
}

static nami_status put_in_place(nami_exchange_writer *w)
{
    if (!w->started)
        NAMI_TRY(put_header(w));
    NAMI_CHECK(w->written == w->declared);
    if (fsync(w->fd) || rename(w->temporary, w->path))
        return nami_fail(NAMI_EENV, "%s cannot be written: %s", w->path,
                         strerror(errno));
    return nami_store_sync_directory(w->path);
}

nami_status nami_exchange_finish(nami_exchange_writer *w, nami_status status)
{
    if (status == NAMI_OK)
        status = put_in_place(w);
    if (w->fd >= 0) {
        close(w->fd);
        if (status != NAMI_OK)
            (void)unlink(w->temporary);
    }
    nami_text_free(&w->header);
    nami_free(w->temporary);
    nami_free(w->path);
    nami_free(w);
    return status;
}
