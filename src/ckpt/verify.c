/* SPDX-License-Identifier: MIT */
/* verify.c - whether a checkpoint is what was written, and the newest that is. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/memory.h"
#include "ckpt/inner.h"

enum { BUFFER = 1 << 22 }; /* bytes read at a time */

/* The list of arrays and checksums of an open checkpoint. */
typedef struct listing {
    char *text;     /* the names, cut at newlines */
    char **name;    /* [arrays] "/group/name" */
    int64_t *crc;   /* [arrays] as stored */
    int64_t *count; /* [arrays] elements */
    int arrays;
} listing;

static void free_listing(listing *l)
{
    for (int i = 0; l->name && i < l->arrays; i++)
        nami_free(l->name[i]);
    nami_free(l->name);
    nami_free(l->text);
    nami_free(l->crc);
    nami_free(l->count);
}

static void cut_names(listing *l)
{
    for (const char *p = l->text; *p; p++)
        l->arrays += *p == '\n';
    l->name = nami_calloc(NAMI_MEM_OTHER, (size_t)l->arrays + 1, sizeof *l->name);
    const char *at = l->text;
    for (int i = 0; i < l->arrays; i++) {
        size_t length = strcspn(at, "\n");
        l->name[i] = nami_strf("/%.*s", (int)length, at);
        at += length + 1;
    }
}

static nami_status check_marks(nami_store *s, const char *path)
{
    int64_t format = 0, complete = 0;
    NAMI_TRY(nami_store_get_int(s, "format", &format));
    if (format != NAMI_CKPT_FORMAT)
        return nami_fail(NAMI_ERESTART,
                         "%s has checkpoint format %lld; this nami reads %d", path,
                         (long long)format, NAMI_CKPT_FORMAT);
    NAMI_TRY(nami_store_get_int(s, "complete", &complete));
    if (complete != 1)
        return nami_fail(NAMI_ERESTART, "%s was not written to its end", path);
    return NAMI_OK;
}

/* Elements of an array, -1 when there is none of the expected type. */
static int64_t elements_of(nami_store *s, const char *name, nami_store_type expected)
{
    nami_store_type type;
    int rank;
    int64_t extent[4], count = 1;
    if (nami_store_shape_alone(s, name, &type, &rank, extent) != NAMI_OK || rank < 0 ||
        type != expected)
        return -1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(count, extent[i], &count))
            return -1;
    return count;
}

/* Sizes of all arrays; they must fit in the file, or a forged size would keep us reading for ever. */
static nami_status measure(nami_store *s, const char *path, listing *l)
{
    struct stat st;
    int64_t bytes = 0;
    if (stat(path, &st) != 0)
        return nami_fail(NAMI_EENV, "%s: %s", path, strerror(errno));
    l->count = nami_calloc(NAMI_MEM_OTHER, (size_t)l->arrays + 1, sizeof *l->count);
    for (int i = 0; i < l->arrays; i++) {
        l->count[i] = elements_of(s, l->name[i], NAMI_STORE_F32);
        if (l->count[i] < 0)
            return nami_fail(NAMI_ERESTART, "%s: array %s is damaged or missing", path,
                             l->name[i]);
        if (l->count[i] > (st.st_size - bytes) / 4)
            return nami_fail(NAMI_ERESTART, "%s: array %s is larger than the file",
                             path, l->name[i]);
        bytes += 4 * l->count[i];
    }
    return NAMI_OK;
}

static nami_status read_listing(nami_store *s, const char *path, listing *l)
{
    NAMI_TRY(check_marks(s, path));
    NAMI_TRY(nami_store_get_text(s, "arrays", &l->text));
    cut_names(l);
    if (elements_of(s, "/checksums", NAMI_STORE_I64) != l->arrays)
        return nami_fail(NAMI_ERESTART, "%s: the list of checksums is damaged", path);
    l->crc = nami_calloc(NAMI_MEM_OTHER, (size_t)l->arrays + 1, sizeof *l->crc);
    NAMI_TRY(nami_store_read_alone(s, "/checksums", 0, l->arrays, l->crc));
    return measure(s, path, l);
}

static nami_status sum_slab(nami_store *s, const char *name, nami_ckpt_slab *slab,
                            void *buffer)
{
    uint32_t crc = 0;
    for (int64_t at = 0; at < slab->count; at += BUFFER / 4) {
        int64_t n = slab->count - at < BUFFER / 4 ? slab->count - at : BUFFER / 4;
        NAMI_TRY(nami_store_read_alone(s, name, slab->from + at, n, buffer));
        crc = nami_store_crc(crc, buffer, (size_t)n * 4);
    }
    slab->crc = crc;
    return NAMI_OK;
}

/* Checksums of this rank's share of every array. */
static nami_status sum_share(nami_store *s, const listing *l, int rank, int ranks,
                             nami_ckpt_slab *slab)
{
    nami_status status = NAMI_OK;
    void *buffer = nami_alloc(NAMI_MEM_OTHER, BUFFER);
    for (int i = 0; i < l->arrays && status == NAMI_OK; i++) {
        int64_t each = (l->count[i] + ranks - 1) / ranks, from = each * rank;
        from = from < l->count[i] ? from : l->count[i];
        slab[i].from = from;
        slab[i].count = l->count[i] - from < each ? l->count[i] - from : each;
        status = sum_slab(s, l->name[i], &slab[i], buffer);
    }
    nami_free(buffer);
    return status;
}

static nami_status compare(const char *path, const listing *l,
                           const nami_ckpt_slab *all, int ranks)
{
    for (int i = 0; i < l->arrays; i++) {
        int64_t crc;
        NAMI_CHECK(nami_ckpt_join(&all[i], ranks, l->arrays, l->count[i], 4, &crc));
        if (crc != l->crc[i])
            return nami_fail(NAMI_ERESTART, "%s: array %s does not match its checksum",
                             path, l->name[i] + 1);
    }
    return NAMI_OK;
}

/* All ranks hold the same listing when they come here, so the gather fits. */
static nami_status compare_all(nami_comm *c, nami_store *s, const char *path,
                               const listing *l)
{
    int ranks = c ? nami_comm_size(c) : 1;
    nami_ckpt_slab *own =
        nami_calloc(NAMI_MEM_OTHER, (size_t)l->arrays + 1, sizeof *own);
    nami_ckpt_slab *all =
        nami_calloc(NAMI_MEM_OTHER, (size_t)ranks * (size_t)l->arrays + 1, sizeof *all);
    nami_status status = nami_comm_settle(
        c, nami_ckpt_restart(sum_share(s, l, c ? nami_comm_rank(c) : 0, ranks, own)));
    if (status == NAMI_OK) {
        if (c)
            nami_comm_gather(c, own, (size_t)l->arrays * sizeof *own, all);
        status = compare(path, l, c ? all : own, ranks);
    }
    nami_free(all);
    nami_free(own);
    return status;
}

static nami_status verify_open(nami_comm *c, nami_store *s, const char *path)
{
    listing l = {0};
    nami_status status = nami_ckpt_restart(read_listing(s, path, &l));
    status = nami_comm_settle(c, status);
    /* a file that changes under us, or a node that sees an old one */
    if (status == NAMI_OK && c &&
        nami_comm_max(c, l.arrays) != nami_comm_min(c, l.arrays))
        status = nami_fail(NAMI_EENV, "%s is not the same on all nodes", path);
    if (status == NAMI_OK)
        status = compare_all(c, s, path, &l);
    free_listing(&l);
    return status;
}

/* The file this process verified last, so that loading it need not read it twice. */
static struct stat last_verified;

static bool is_last(const struct stat *st)
{
    return st->st_ino == last_verified.st_ino && st->st_dev == last_verified.st_dev &&
           st->st_size == last_verified.st_size &&
           st->st_mtim.tv_sec == last_verified.st_mtim.tv_sec &&
           st->st_mtim.tv_nsec == last_verified.st_mtim.tv_nsec && st->st_size > 0;
}

bool nami_ckpt_verified(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && is_last(&st);
}

nami_status nami_ckpt_verify(nami_comm *c, const char *path)
{
    nami_store *s = NULL;
    nami_ckpt_state state;
    struct stat st;
    if (stat(path, &st) != 0)
        st = (struct stat){0};
    NAMI_TRY(nami_ckpt_state_read(c, path, &state));
    nami_ckpt_state_free(&state);
    /* each process for itself, as the checks above the file agree on failures */
    nami_status status =
        nami_comm_settle(c, nami_ckpt_restart(nami_store_open(NULL, path, &s)));
    nami_ckpt_extend(c, (double)st.st_size);
    if (status == NAMI_OK)
        status = verify_open(c, s, path);
    nami_ckpt_extend(c, 0);
    if (s)
        (void)nami_store_close(
            s); /* nothing can be lost in closing a file that was read */
    if (status == NAMI_OK)
        last_verified = st;
    return status;
}

static nami_status list_candidates(nami_comm *c, const char *directory, int64_t **step,
                                   int *count)
{
    nami_status status = NAMI_OK;
    *step = NULL;
    *count = 0;
    if (nami_ckpt_leads(c)) {
        status = nami_ckpt_clean(directory);
        if (status == NAMI_OK)
            status = nami_ckpt_steps(directory, step, count);
    }
    NAMI_TRY(nami_comm_settle(c, status));
    if (!c)
        return NAMI_OK;
    nami_comm_broadcast(c, count, sizeof *count, 0);
    if (!nami_ckpt_leads(c))
        *step = nami_calloc(NAMI_MEM_OTHER, (size_t)*count + 1, sizeof **step);
    nami_comm_broadcast(c, *step, (size_t)*count * sizeof **step, 0);
    return NAMI_OK;
}

nami_status nami_ckpt_newest(nami_comm *c, const char *directory, char **path)
{
    int64_t *step;
    int count;
    nami_status status = NAMI_OK;
    *path = NULL;
    NAMI_TRY(list_candidates(c, directory, &step, &count));
    NAMI_CHECK(step || count == 0);
    for (int i = 0; i < count && !*path && status == NAMI_OK; i++) {
        char *candidate = nami_ckpt_path(directory, step[i]);
        status = nami_ckpt_verify(c, candidate);
        if (status == NAMI_OK) {
            *path = candidate;
            continue;
        }
        if (nami_ckpt_leads(c))
            nami_log(NAMI_WARNING, "a checkpoint is not used: %s", nami_fail_text());
        if (status == NAMI_ERESTART)
            status = NAMI_OK;
        if (status == NAMI_OK)
            nami_fail_clear();
        nami_free(candidate);
    }
    nami_free(step);
    return status;
}
