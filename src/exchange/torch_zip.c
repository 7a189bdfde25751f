/* SPDX-License-Identifier: MIT */
/* torch_zip.c - files of torch.save since 1.6: a zip archive of stored members.
 *
 * TOP/data.pkl is the object, TOP/data/KEY a storage. Layout of the archive: PKWARE's APPNOTE 6.3, 4.3 and 4.5.3
 * (ZIP64). Members are never packed, so none can grow; none may share bytes with another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/pickle.h"

enum { TAIL = 22, LOCATOR = 20, TAIL64 = 56, CENTRAL = 46, LOCAL = 30 };

#define LONGEST 100000000 /* bytes of a directory */

typedef struct member {
    char *name;        /* owned */
    int64_t at, bytes; /* of its local header, then of its data */
} member;

typedef struct archive {
    const nami_exchange_file *part;
    int64_t directory, directory_bytes, count;
    member *member; /* [members] sorted by name */
    int members;
} archive;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes - 1; i >= 0; i--)
        n = n << 8 | at[i];
    return n;
}

static nami_status damaged(const archive *z, const char *what)
{
    return nami_fail(NAMI_EINPUT, "%s: a zip archive %s", z->part->path, what);
}

/* --- the directory --- */

/* Its place from the 64-bit record that `locator` leads to. */
static nami_status read_tail64(archive *z, int64_t locator)
{
    unsigned char l[LOCATOR], t[TAIL64];
    NAMI_TRY(nami_exchange_get(z->part, locator, sizeof l, l));
    if (memcmp(l, "PK\6\7", 4) != 0)
        return damaged(z, "without its 64-bit end");
    NAMI_TRY(nami_exchange_get(z->part, (int64_t)(number(l + 8, 8) & INT64_MAX),
                               sizeof t, t));
    if (memcmp(t, "PK\6\6", 4) != 0)
        return damaged(z, "without its 64-bit end");
    z->count = (int64_t)(number(t + 32, 8) & INT64_MAX);
    z->directory_bytes = (int64_t)(number(t + 40, 8) & INT64_MAX);
    z->directory = (int64_t)(number(t + 48, 8) & INT64_MAX);
    return NAMI_OK;
}

/* The end record is the last thing but a comment. */
static nami_status find_directory(archive *z)
{
    const int64_t most = TAIL + 65535,
                  n = z->part->bytes < most ? z->part->bytes : most;
    unsigned char *end = nami_alloc(NAMI_MEM_OTHER, (size_t)n);
    nami_status status = nami_exchange_get(z->part, z->part->bytes - n, (size_t)n, end);
    int64_t i = n - TAIL;
    while (status == NAMI_OK && i >= 0 &&
           (memcmp(end + i, "PK\5\6", 4) != 0 ||
            (int64_t)number(end + i + 20, 2) != n - TAIL - i))
        i--;
    if (status == NAMI_OK && i < 0)
        status = damaged(z, "without an end: it is cut short");
    if (status == NAMI_OK) {
        z->count = (int64_t)number(end + i + 10, 2);
        z->directory_bytes = (int64_t)number(end + i + 12, 4);
        z->directory = (int64_t)number(end + i + 16, 4);
        if (z->count == 0xffff || z->directory_bytes == 0xffffffff ||
            z->directory == 0xffffffff)
            status = read_tail64(z, z->part->bytes - n + i - LOCATOR);
    }
    nami_free(end);
    if (status == NAMI_OK &&
        (z->directory > z->part->bytes ||
         z->directory_bytes > z->part->bytes - z->directory ||
         z->directory_bytes > LONGEST || z->count > z->directory_bytes / CENTRAL))
        status = damaged(z, "whose directory lies outside of it or is too long");
    return status;
}

/* Sizes and place of a member with 64 bits, from the extra field [at, end) of its entry. */
static bool widen(const unsigned char *at, const unsigned char *end, uint64_t *plain,
                  uint64_t *packed, uint64_t *place)
{
    uint64_t *want[] = {plain, packed, place};
    while (end - at >= 4 && number(at, 2) != 1)
        at += 4 + number(at + 2, 2) > (uint64_t)(end - at) ? end - at
                                                           : 4 + (int)number(at + 2, 2);
    for (int i = 0, used = 4; i < 3; i++)
        if (*want[i] == 0xffffffff) {
            if (end - at < used + 8 || (int)number(at + 2, 2) < used + 4)
                return false;
            *want[i] = number(at + used, 8);
            used += 8;
        }
    return true;
}

/* The entry at e, of at most `left` bytes; *used of them. */
static nami_status read_entry(archive *z, const unsigned char *e, int64_t left,
                              int64_t *used)
{
    if (left < CENTRAL || memcmp(e, "PK\1\2", 4) != 0)
        return damaged(z, "with a damaged directory");
    const int64_t name = (int64_t)number(e + 28, 2), extra = (int64_t)number(e + 30, 2);
    *used = CENTRAL + name + extra + (int64_t)number(e + 32, 2);
    uint64_t packed = number(e + 20, 4), plain = number(e + 24, 4),
             place = number(e + 42, 4);
    if (*used > left || memchr(e + CENTRAL, 0, (size_t)name) ||
        !widen(e + CENTRAL + name, e + CENTRAL + name + extra, &plain, &packed, &place))
        return damaged(z, "with a damaged directory");
    if (number(e + 10, 2) != 0 || number(e + 8, 2) & 1 || packed != plain)
        return damaged(z, "with a packed or encrypted member, which torch.save "
                          "does not write");
    if (place > (uint64_t)z->directory || plain > (uint64_t)z->directory - place)
        return damaged(z, "with a member outside of it");
    z->member[z->members++] =
        (member){nami_strf("%.*s", (int)name, (const char *)e + CENTRAL),
                 (int64_t)place, (int64_t)plain};
    return NAMI_OK;
}

static nami_status read_directory(archive *z)
{
    unsigned char *all = nami_alloc(NAMI_MEM_OTHER, (size_t)z->directory_bytes);
    nami_status status =
        nami_exchange_get(z->part, z->directory, (size_t)z->directory_bytes, all);
    int64_t at = 0, used = 0;
    z->member = nami_calloc(NAMI_MEM_OTHER, (size_t)z->count + 1, sizeof *z->member);
    for (int64_t i = 0; i < z->count && status == NAMI_OK; i++, at += used)
        status = read_entry(z, all + at, z->directory_bytes - at, &used);
    nami_free(all);
    return status;
}

/* --- members --- */

static int by_place(const void *a, const void *b)
{
    const member *p = a, *q = b;
    return p->at < q->at ? -1 : p->at > q->at;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const member *)a)->name, ((const member *)b)->name);
}

/* From the local header of members sorted by place to their data, which ends before the next one. */
static nami_status find_data(archive *z)
{
    for (int i = 0; i < z->members; i++) {
        member *m = &z->member[i];
        unsigned char local[LOCAL];
        const int64_t end = i + 1 < z->members ? z->member[i + 1].at : z->directory;
        NAMI_TRY(nami_exchange_get(z->part, m->at, sizeof local, local));
        if (memcmp(local, "PK\3\4", 4) != 0)
            return damaged(z, "with a damaged member");
        m->at +=
            LOCAL + (int64_t)number(local + 26, 2) + (int64_t)number(local + 28, 2);
        if (m->at > end || m->bytes > end - m->at)
            return damaged(z, "whose members share bytes");
    }
    return NAMI_OK;
}

static nami_status find_members(archive *z)
{
    qsort(z->member, (size_t)z->members, sizeof *z->member, by_place);
    NAMI_TRY(find_data(z));
    qsort(z->member, (size_t)z->members, sizeof *z->member, by_name);
    for (int i = 1; i < z->members; i++)
        if (by_name(&z->member[i - 1], &z->member[i]) == 0)
            return damaged(z, "with two members of one name");
    return NAMI_OK;
}

static const member *find(const archive *z, const char *name)
{
    const member wanted = {.name = (char *)(uintptr_t)name};
    return z->members
               ? bsearch(&wanted, z->member, (size_t)z->members, sizeof wanted, by_name)
               : NULL;
}

/* The folder that all is in, with its slash: where data.pkl is; -1: nowhere. */
static int find_top(const archive *z, const member **pickle)
{
    for (int i = 0; i < z->members; i++) {
        const char *slash = strchr(z->member[i].name, '/');
        *pickle = &z->member[i];
        if (slash && !strcmp(slash, "/data.pkl"))
            return (int)(slash - z->member[i].name) + 1;
    }
    return -1;
}

static nami_status check_order(const archive *z, const char *top, int length)
{
    char *name = nami_strf("%.*sbyteorder", length, top), order[8] = "little";
    const member *m = find(z, name);
    nami_free(name);
    if (m && m->bytes < (int64_t)sizeof order) {
        memset(order, 0, sizeof order);
        NAMI_TRY(nami_exchange_get(z->part, m->at, (size_t)m->bytes, order));
    }
    if ((m && m->bytes >= (int64_t)sizeof order) || strcmp(order, "little") != 0)
        return damaged(z, "of a machine whose numbers start with the high byte");
    return NAMI_OK;
}

static nami_status place_storages(const archive *z, const char *top, int length,
                                  nami_pickle *p)
{
    for (int i = 0; i < p->values; i++) {
        if (p->value[i].kind != NAMI_PICKLE_STORAGE)
            continue;
        char *name = nami_strf("%.*sdata/%s", length, top, nami_torch_key(p, i));
        const member *m = find(z, name);
        const int64_t width = nami_torch_type(p, i)->bits / 8;
        nami_status status = NAMI_OK;
        if (!m || m->bytes % width || m->bytes / width != nami_torch_count(p, i))
            status = nami_fail(
                NAMI_EINPUT, "%s: %s is not there, or not %lld elements of %lld bytes",
                z->part->path, name, (long long)nami_torch_count(p, i),
                (long long)width);
        else
            p->value[i].whole = m->at;
        nami_free(name);
        NAMI_TRY(status);
    }
    return NAMI_OK;
}

static nami_status read_archive(nami_exchange *x, archive *z, nami_pickle *p)
{
    const member *pickle;
    int object;
    NAMI_TRY(find_directory(z));
    NAMI_TRY(read_directory(z));
    NAMI_TRY(find_members(z));
    const int length = find_top(z, &pickle);
    if (length < 0)
        return damaged(z, "without data.pkl: torch.save did not write it");
    NAMI_TRY(check_order(z, pickle->name, length));
    p->at = pickle->at;
    p->end = pickle->at + pickle->bytes;
    NAMI_TRY(nami_pickle_read(p, &object));
    NAMI_TRY(place_storages(z, pickle->name, length, p));
    return nami_torch_add(x, p, object);
}

nami_status nami_torch_open_zip(nami_exchange *x)
{
    archive z = {.part = &x->part[x->parts - 1]};
    nami_pickle *p = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *p);
    p->part = z.part;
    nami_status status = read_archive(x, &z, p);
    for (int i = 0; i < z.members; i++)
        nami_free(z.member[i].name);
    nami_free(z.member);
    nami_pickle_free(p);
    nami_free(p);
    return status;
}
