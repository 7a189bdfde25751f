/* SPDX-License-Identifier: MIT */
/* journal.c - log.jsonl: open, cut back, append. */
#include "train/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

struct nami_journal {
    char *path;
    int file;
};

static nami_status refuse(const nami_journal *j, const char *what)
{
    return nami_fail(NAMI_EENV, "%s: %s: %s", j->path, what, strerror(errno));
}

/* Whether a complete line belongs to the steps up to `step`; what is no event of ours goes. */
static bool belongs(const char *line, int64_t step)
{
    const char *found = strstr(line, "\"step\":");
    char *end;
    if (!found)
        return false;
    int64_t at = strtoll(found + 7, &end, 10);
    return end > found + 7 && at <= step;
}

static nami_status write_all(const nami_journal *j, const char *data, size_t bytes)
{
    return nami_file_write(j->file, data, bytes) ? NAMI_OK
                                                 : refuse(j, "cannot be written");
}

static nami_status read_all(const nami_journal *j, nami_text *out)
{
    char piece[65536];
    ssize_t got;
    while ((got = read(j->file, piece, sizeof piece - 1)) > 0) {
        piece[got] = '\0';
        nami_text_add(out, "%s", piece);
    }
    return got < 0 ? refuse(j, "cannot be read") : NAMI_OK;
}

/* The lines of `all` that stay, appended to `kept`. */
static void select_lines(char *all, int64_t step, nami_text *kept)
{
    for (char *line = all; *line;) {
        char *end = strchr(line, '\n');
        if (!end) /* a line cut off by a kill */
            return;
        *end = '\0';
        if (belongs(line, step))
            nami_text_add(kept, "%s\n", line);
        line = end + 1;
    }
}

/* Write `kept` beside the log and put it in its place, so that a kill leaves one of the two. */
static nami_status replace(nami_journal *j, const nami_text *kept)
{
    char *fresh = nami_strf("%s.new", j->path);
    nami_journal copy = {
        .path = fresh,
        .file = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)};
    nami_status status = NAMI_OK;
    if (copy.file < 0)
        status = refuse(&copy, "cannot be made");
    if (status == NAMI_OK)
        status = write_all(&copy, nami_text_get(kept), kept->length);
    if (status == NAMI_OK && (fsync(copy.file) || rename(fresh, j->path)))
        status = refuse(&copy, "cannot replace the log");
    if (copy.file >= 0 && status == NAMI_OK) {
        close(j->file);
        j->file = copy.file;
    } else if (copy.file >= 0) {
        close(copy.file);
        unlink(fresh);
    }
    nami_free(fresh);
    return status;
}

static nami_status cut_back(nami_journal *j, int64_t step)
{
    nami_text all = {0}, kept = {0};
    nami_status status = read_all(j, &all);
    if (status == NAMI_OK && all.length > 0) {
        select_lines(all.data, step, &kept);
        if (kept.length != all.length)
            status = replace(j, &kept);
    }
    nami_text_free(&all);
    nami_text_free(&kept);
    return status;
}

/* Another run in the same directory would destroy this one. A file system without locks is let pass. */
static nami_status lock(const nami_journal *j)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(j->file, F_SETLK, &whole) == 0)
        return NAMI_OK;
    if (errno == EACCES || errno == EAGAIN)
        return nami_fail(NAMI_EENV,
                         "%s is in use: another run writes to this directory", j->path);
    return NAMI_OK;
}

nami_status nami_journal_open(const char *path, int64_t step, nami_journal **out)
{
    nami_journal *j = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *j);
    j->path = nami_strdup(path);
    j->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    nami_status status = NAMI_OK;
    if (j->file < 0)
        status = refuse(j, "cannot be opened");
    if (status == NAMI_OK)
        status = lock(j);
    if (status == NAMI_OK)
        status = cut_back(j, step);
    if (status == NAMI_OK)
        status = lock(j); /* of the file that is there now */
    if (status != NAMI_OK) {
        nami_journal_close(j);
        j = NULL;
    }
    *out = j;
    return status;
}

nami_status nami_journal_add(nami_journal *j, const nami_text *object)
{
    nami_text line = {0};
    nami_text_add(&line, "%s\n", nami_text_get(object));
    nami_status status = write_all(j, line.data, line.length);
    nami_text_free(&line);
    return status;
}

nami_status nami_journal_sync(nami_journal *j)
{
    /* pipes and some special files cannot be synced, and need not be */
    if (fsync(j->file) && errno != EINVAL && errno != EROFS)
        return refuse(j, "cannot be brought to the disk");
    return NAMI_OK;
}

void nami_journal_close(nami_journal *j)
{
    if (!j)
        return;
    if (j->file >= 0)
        close(j->file);
    nami_free(j->path);
    nami_free(j);
}

static void add_key(nami_text *t, const char *key)
{
    nami_text_add(t, ",");
    nami_text_json(t, key);
    nami_text_add(t, ":");
}

void nami_event_begin(nami_text *t, const char *event, int64_t step)
{
    nami_text_add(t, "{\"event\":");
    nami_text_json(t, event);
    nami_event_whole(t, "step", step);
}

void nami_event_number(nami_text *t, const char *key, double value)
{
    add_key(t, key);
    nami_text_number(t, value);
}

void nami_event_whole(nami_text *t, const char *key, int64_t value)
{
    add_key(t, key);
    nami_text_add(t, "%lld", (long long)value);
}

void nami_event_text(nami_text *t, const char *key, const char *value)
{
    add_key(t, key);
    nami_text_json(t, value);
}

nami_status nami_event_end(nami_text *t, nami_journal *j)
{
    nami_text_add(t, "}");
    nami_status status = j ? nami_journal_add(j, t) : NAMI_OK;
    nami_text_free(t);
    return status;
}
