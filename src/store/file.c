/* SPDX-License-Identifier: MIT */
/* file.c - create, open, flush and close. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "store/inner.h"

bool nami_store_leads(const nami_store *s)
{
    return !s->comm || nami_comm_rank(s->comm) == 0;
}

nami_status nami_store_failed(nami_store *s, nami_status status)
{
    if (s->failure == NAMI_OK && status != NAMI_OK) {
        s->failure = status;
        snprintf(s->sentence, sizeof s->sentence, "%s", nami_fail_text());
    }
    return s->comm ? NAMI_OK : s->failure;
}

/* Say again why writing failed, as the caller may have dealt with the first word of it. */
static nami_status repeat_failure(const nami_store *s)
{
    if (s->failure != NAMI_OK && !nami_fail_text()[0])
        return nami_fail(s->failure, "%s", s->sentence);
    return s->failure;
}

nami_status nami_store_system(const nami_store *s, const char *what, int error)
{
    return nami_fail(NAMI_EENV, "%s %s: %s", s->path, what, strerror(error));
}

static nami_store *allocate(nami_comm *c, const char *path, bool writing)
{
    nami_store *s = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *s);
    *s = (nami_store){.comm = c, .writing = writing, .file = -1, .fd = -1};
    s->path = nami_strdup(path);
    return s;
}

static void discard(nami_store *s)
{
    for (int i = 0; i < s->arrays; i++)
        nami_free(s->array[i].name);
    nami_free(s->array);
    nami_free(s->path);
    nami_free(s);
}

/* The format of 1.8: metadata carries checksums, so damage is seen, and old tools can read it. No locks: they are
 * often refused on parallel file systems, and files appear by rename, whole. */
static hid_t access_list(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    H5Pset_alignment(list, 65536, 4096);
    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && H5_VERSION_LE(1, 12, 0))
    H5Pset_file_locking(list, 0, 1);
#endif
    return list;
}

/* A file that outgrows its limit is then an error like any other, and not the end of the process. */
static void survive_size_limit(void)
{
    struct sigaction now;
    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGXFSZ, SIG_IGN);
}

/* The library hides the system's reason, so ask the system first. */
static nami_status create_here(nami_store *s)
{
    int fd = open(s->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return nami_store_system(s, "cannot be created", errno);
    close(fd);
    nami_store_lock();
    hid_t list = access_list();
    nami_status status = NAMI_OK;
    s->file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    if (s->file < 0)
        status = nami_fail(NAMI_EENV, "%s cannot be created: %s", s->path,
                           nami_store_reason());
    H5Pclose(list);
    nami_store_unlock();
    return status;
}

nami_status nami_store_create(nami_comm *c, const char *path, nami_store **out)
{
    nami_store *s = allocate(c, path, true);
    *out = NULL;
    survive_size_limit();
    nami_status status =
        nami_comm_settle(c, nami_store_leads(s) ? create_here(s) : NAMI_OK);
    if (status != NAMI_OK) {
        discard(s);
        return status;
    }
    *out = s;
    return NAMI_OK;
}

/* The version of the format, -1 when it is no HDF5 file. The signature stands at 0, or at 512 or a larger power of two
 * behind what others keep there. */
static int format_version(int fd, off_t bytes)
{
    static const unsigned char signature[8] = "\211HDF\r\n\032\n";
    unsigned char head[9];
    for (off_t at = 0; at < bytes; at = at ? 2 * at : 512)
        if (pread(fd, head, sizeof head, at) == (ssize_t)sizeof head &&
            !memcmp(head, signature, sizeof signature))
            return head[8];
    return -1;
}

/* Formats before 2 carry no checksums, and the library crashes on some damaged files of that kind. */
static nami_status check_format(const char *path, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return nami_fail(NAMI_EENV, "%s cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return nami_fail(NAMI_EINPUT, "%s is not a file", path);
    if (st.st_size == 0)
        return nami_fail(NAMI_EINPUT, "%s is empty; an HDF5 file was expected", path);
    int version = format_version(fd, st.st_size);
    if (version < 0)
        return nami_fail(NAMI_EINPUT,
                         "%s is not a whole HDF5 file: its signature is not there",
                         path);
    if (version < 2)
        return nami_fail(NAMI_EINPUT,
                         "%s has the oldest HDF5 format, without checksums, which nami "
                         "does not read; "
                         "'h5repack --low=1 OLD NEW' converts it, and h5py writes the "
                         "newer one with libver='v108'",
                         path);
    return NAMI_OK;
}

static nami_status check_readable(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return nami_fail(errno == ENOENT || errno == ENOTDIR ? NAMI_EINPUT : NAMI_EENV,
                         "%s cannot be opened: %s", path, strerror(errno));
    nami_status status = check_format(path, fd);
    close(fd);
    return status;
}

static nami_status open_here(nami_store *s)
{
    NAMI_TRY(check_readable(s->path));
    nami_store_lock();
    hid_t list = access_list();
    nami_status status = NAMI_OK;
    s->file = H5Fopen(s->path, H5F_ACC_RDONLY, list);
    if (s->file < 0)
        status = nami_fail(NAMI_EINPUT, "%s is not a whole HDF5 file: %s", s->path,
                           nami_store_reason());
    H5Pclose(list);
    nami_store_unlock();
    return status;
}

/* Rank 0 looks first: thousands of ranks need not meet the same broken file. */
nami_status nami_store_open(nami_comm *c, const char *path, nami_store **out)
{
    nami_store *s = allocate(c, path, false);
    *out = NULL;
    nami_status status =
        nami_comm_settle(c, nami_store_leads(s) ? open_here(s) : NAMI_OK);
    if (status == NAMI_OK && c)
        status = nami_comm_settle(c, nami_store_leads(s) ? NAMI_OK : open_here(s));
    if (status == NAMI_OK) {
        *out = s;
        return NAMI_OK;
    }
    if (s->file >= 0) {
        nami_store_lock();
        H5Fclose(s->file);
        nami_store_unlock();
    }
    discard(s);
    return status;
}

nami_status nami_store_flush(nami_store *s)
{
    if (!s->writing)
        return NAMI_OK;
    if (!s->placed)
        nami_store_place(s);
    if (s->fd >= 0 && s->failure == NAMI_OK && fdatasync(s->fd) != 0)
        nami_store_failed(s, nami_store_system(s, "cannot be written", errno));
    nami_status status = nami_comm_settle(s->comm, repeat_failure(s));
    nami_store_failed(s, status);
    return status;
}

/* Close in the library; what it wrote is not yet on disk. */
static nami_status close_here(nami_store *s)
{
    if (s->file < 0)
        return NAMI_OK;
    nami_store_lock();
    nami_status status = NAMI_OK;
    if (H5Fclose(s->file) < 0)
        status = nami_fail(s->writing ? NAMI_EENV : NAMI_EINPUT,
                           "%s cannot be closed: %s", s->path, nami_store_reason());
    s->file = -1;
    nami_store_unlock();
    return status;
}

static nami_status sync_file(const nami_store *s)
{
    int fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return nami_store_system(s, "cannot be opened again", errno);
    nami_status status =
        fsync(fd) == 0 ? NAMI_OK : nami_store_system(s, "cannot be written", errno);
    close(fd);
    return status;
}

nami_status nami_store_close(nami_store *s)
{
    nami_status status = nami_store_flush(s), closed;
    if (s->fd >= 0 && close(s->fd) != 0 && status == NAMI_OK)
        status = nami_store_system(s, "cannot be written", errno);
    closed = close_here(s);
    if (status == NAMI_OK)
        status = closed;
    if (status == NAMI_OK && s->writing && nami_store_leads(s)) {
        status = sync_file(s);
        if (status == NAMI_OK)
            status = nami_store_sync_directory(s->path);
    }
    if (s->writing)
        status = nami_comm_settle(s->comm, status);
    discard(s);
    return status;
}

nami_status nami_store_sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = !slash          ? nami_strdup(".")
                 : slash == path ? nami_strdup("/")
                                 : nami_strf("%.*s", (int)(slash - path), path);
    nami_status status = NAMI_OK;
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: this file system has nothing to be done for directories. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = nami_fail(NAMI_EENV, "directory %s cannot be written: %s", name,
                           strerror(errno));
    if (fd >= 0)
        close(fd);
    nami_free(name);
    return status;
}
