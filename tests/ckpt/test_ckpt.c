/* SPDX-License-Identifier: MIT */
/* test_ckpt.c - save and load by any slabs; what is kept; what is refused and why. */
#include "comm/mpi_test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/contents.h"

static void check_newest(const char *directory, int64_t expected)
{
    char *path;
    int64_t step = -1;
    assert_ok(nami_ckpt_newest(world, directory, &path));
    if (expected < 0) {
        assert_null(path);
        return;
    }
    assert_non_null(path);
    assert_ok(contents_load(world, path, 50, false, &step));
    assert_int_equal(step, expected);
    assert_ok(contents_load(world, path, 50, true, &step));
    assert_ok(contents_load(NULL, path, 50, true, &step));
    nami_free(path);
}

static void test_round(void **state)
{
    (void)state;
    char d[512];
    nami_test_path(d, "round/a/b");
    check_newest(d, -1);
    assert_ok(contents_save(world, d, 2, 0, 50));
    check_newest(d, 0);
    assert_ok(contents_save(world, d, 2, 123456789, 50));
    check_newest(d, 123456789);
    assert_ok(contents_save(world, d, 2, 123456789, 50)); /* replaces itself */
    check_newest(d, 123456789);
}

static bool there(const char *directory, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void test_keep(void **state)
{
    (void)state;
    char d[512];
    nami_test_path(d, "keep");
    for (int64_t step = 10; step <= 50; step += 10)
        assert_ok(contents_save(world, d, 2, step, 50));
    nami_comm_barrier(world);
    assert_true(there(d, "step-00000040.h5") && there(d, "step-00000050.h5"));
    assert_false(there(d, "step-00000030.h5") || there(d, "step-00000010.h5"));
    nami_comm_barrier(world);
    /* a broken one does not count as kept, nor does one that is newer than the own drive the own away */
    if (rank == 0) {
        char path[1024];
        snprintf(path, sizeof path, "%s/step-00000050.h5", d);
        assert_int_equal(truncate(path, 1000), 0);
    }
    nami_comm_barrier(world);
    assert_ok(contents_save(world, d, 2, 45, 50));
    nami_comm_barrier(world);
    assert_true(there(d, "step-00000040.h5") && there(d, "step-00000045.h5"));
    check_newest(d, 45);
    assert_ok(contents_save(world, d, 1, 44, 50));
    nami_comm_barrier(world);
    assert_true(there(d, "step-00000044.h5"));
    nami_comm_barrier(world);
}

static void flip(const char *path, off_t at, unsigned char mask)
{
    unsigned char byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= mask;
    assert_true(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

/* One bit of one number: found by its checksum, named, and the older checkpoint taken. */
static void test_flip(void **state)
{
    (void)state;
    char d[512], path[1024];
    nami_test_path(d, "flip");
    assert_ok(contents_save(world, d, 3, 1, 50));
    assert_ok(contents_save(world, d, 3, 2, 50));
    snprintf(path, sizeof path, "%s/step-00000002.h5", d);
    if (rank == 0) {
        float x = contents_value(2, 0, 100);
        char *bytes = nami_alloc(NAMI_MEM_OTHER, 1 << 20);
        FILE *f = fopen(path, "rb");
        size_t n = fread(bytes, 1, 1 << 20, f);
        fclose(f);
        char *at = memmem(bytes, n, &x, sizeof x);
        assert_non_null(at);
        flip(path, at - bytes, 1);
        nami_free(bytes);
    }
    nami_comm_barrier(world);
    assert_fails(
        nami_ckpt_verify(world, path), NAMI_ERESTART,
        "step-00000002.h5: array parameters/token.weight does not match its checksum");
    check_newest(d, 1);
    int64_t step;
    assert_fails(contents_load(world, path, 50, false, &step), NAMI_ERESTART,
                 "does not match");
}

static void test_temporaries(void **state)
{
    (void)state;
    char d[512], path[1024];
    int fd = -1;
    nami_test_path(d, "temporaries");
    assert_ok(contents_save(world, d, 3, 1, 50));
    snprintf(path, sizeof path, "%s/.tmp-step-00000007.h5", d);
    for (int turn = 0; turn < 2; turn++) {
        if (rank == 0)
            close(open(path, O_CREAT | O_RDWR, 0666));
        nami_comm_barrier(world);
        if (turn == 0)
            assert_ok(contents_save(world, d, 3, 2, 50));
        else
            check_newest(d, 2);
        nami_comm_barrier(world);
        assert_false(there(d, ".tmp-step-00000007.h5"));
        nami_comm_barrier(world);
    }
    if (rank == 0) { /* another run that is saving now */
        fd = open(path, O_CREAT | O_RDWR, 0666);
        assert_int_equal(flock(fd, LOCK_EX), 0);
    }
    nami_comm_barrier(world);
    assert_fails(contents_save(world, d, 3, 3, 50), NAMI_EENV, "another run");
    nami_comm_barrier(world);
    assert_true(there(d, ".tmp-step-00000007.h5") && !there(d, "step-00000003.h5"));
    if (rank == 0)
        close(fd);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* No room, on all ranks or on one: the reason is told, nothing is left over, the older ones stay, nobody hangs. */
static void test_no_room(void **state)
{
    (void)state;
    char d[512];
    nami_test_path(d, "room");
    assert_ok(contents_save(world, d, 1, 1, 50));
    for (int bad = -1; bad < size; bad++) {
        nami_comm_barrier(world);
        if (bad < 0 || bad == rank)
            limit_file_size(40000);
        nami_status status = contents_save(world, d, 1, 2, 5000);
        limit_file_size(RLIM_INFINITY);
        assert_fails(status, NAMI_EENV, "File too large");
        nami_comm_barrier(world);
        assert_false(there(d, ".tmp-step-00000002.h5") || there(d, "step-00000002.h5"));
    }
    check_newest(d, 1);
    assert_fails(contents_save(world, "/proc/nami", 1, 1, 50), NAMI_EENV,
                 "/proc/nami cannot be made");
}

static void test_mismatch(void **state)
{
    (void)state;
    char d[512], path[1024];
    nami_ckpt_item item[CONTENTS_ITEMS];
    int64_t step;
    nami_test_path(d, "mismatch");
    assert_ok(contents_save(world, d, 1, 1, 50));
    snprintf(path, sizeof path, "%s/step-00000001.h5", d);
    assert_fails(
        contents_load(world, path, 51, false, &step), NAMI_ERESTART,
        "parameters/large is [50,100] in the checkpoint and [51,100] in the model");
    contents_items(item, 50);
    item[1].name = "block.9.bias";
    assert_fails(nami_ckpt_load(world, path, item, CONTENTS_ITEMS), NAMI_ERESTART,
                 "parameters/block.9.bias of the model is missing");
    contents_items(item, 50);
    item[5].shape = (nami_shape){2, {32, 7}};
    assert_fails(nami_ckpt_load(world, path, item, CONTENTS_ITEMS), NAMI_ERESTART,
                 "[4,8,7] in the checkpoint");
    assert_fails(nami_ckpt_load(world, d, item, CONTENTS_ITEMS), NAMI_ERESTART,
                 "is not a file");
}

/* Parts of ranks that leave a gap or overlap are a fault of the program, found before the file gets its name. */
static void test_gaps(void **state)
{
    (void)state;
    char d[512];
    nami_ckpt_state s = contents_state(1);
    nami_test_path(d, "gaps");
    for (int change = -1; change <= 1; change += 2) {
        nami_ckpt_item item[CONTENTS_ITEMS];
        contents_items(item, 50);
        contents_slabs(item, 1, rank, size);
        if (rank == size - 1)
            item[0].from -= change * (size > 1);
        if (rank == size - 1)
            item[0].count -= 1;
        assert_fails(nami_ckpt_save(world, d, 1, &s, item, CONTENTS_ITEMS), NAMI_EBUG,
                     "parameters/token.weight have gaps");
        contents_free(item);
        assert_false(there(d, "step-00000001.h5"));
    }
    nami_ckpt_state_free(&s);
}

/* Texts of any length and bytes. */
static void test_texts(void **state)
{
    (void)state;
    char d[512], path[1024];
    nami_ckpt_item item[CONTENTS_ITEMS];
    nami_ckpt_state s = contents_state(1), back;
    nami_test_path(d, "texts");
    nami_free(s.deck);
    s.deck = nami_calloc(NAMI_MEM_OTHER, 2000001, 1);
    for (int i = 0; i < 2000000; i++)
        s.deck[i] = (char)(1 + nami_mix(3, (uint64_t)i) % 255);
    contents_items(item, 1);
    contents_slabs(item, 1, rank, size);
    assert_ok(nami_ckpt_save(world, d, 1, &s, item, CONTENTS_ITEMS));
    snprintf(path, sizeof path, "%s/step-00000001.h5", d);
    assert_ok(nami_ckpt_verify(world, path));
    assert_ok(nami_ckpt_state_read(world, path, &back));
    assert_string_equal(back.deck, s.deck);
    nami_ckpt_state_free(&back);
    nami_ckpt_state_free(&s);
    contents_free(item);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_round),       cmocka_unit_test(test_keep),
        cmocka_unit_test(test_flip),        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_temporaries), cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_gaps),        cmocka_unit_test(test_texts),
    };
    mpi_test_open(&argc, &argv);
    return mpi_test_close(cmocka_run_group_tests(test, NULL, NULL));
}
