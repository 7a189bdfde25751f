/* SPDX-License-Identifier: MIT */
/* test_torch.c - lists that torch.distributed.pipelining made: they load, are right, and equal ours cell by cell.
 *
 * tests/sched/torch/make.py wrote the files from torch 2.9.1. An empty cell is an idle slot, and is not compared. Files run-*
 * are what torch's own step runs, with a stage that records.
 */
#include "nami_test.h"

#include "sched/oracle.h"

/* The file without its empty cells. */
static void read_cells(const char *name, nami_text *out)
{
    char path[512], part[80];
    snprintf(part, sizeof part, "tests/sched/torch/%s", name);
    FILE *file = fopen(nami_test_source(path, part), "r");
    if (file == NULL)
        fail_msg("%s is missing", path);
    int last = '\n';
    for (int c; (c = getc(file)) != EOF; last = c) {
        if (c == ',' || (c == '\n' && last == ',' && out->length == 0))
            continue;
        if (last == ',' && c != '\n' && out->length > 0 &&
            nami_text_get(out)[out->length - 1] != '\n')
            nami_text_add(out, ",");
        nami_text_add(out, "%c", c);
    }
    fclose(file);
}

/* Ours, as CSV. */
static void write_cells(const char *schedule, int positions, int microbatches,
                        int chunks, nami_text *out)
{
    nami_schedule s;
    nami_recipe r = oracle_recipe(schedule, positions, microbatches, chunks);
    assert_ok(nami_schedule_generate(&r, NAMI_PURPOSE_TRAIN, &s));
    nami_schedule_csv(&s, out);
    nami_schedule_free(&s);
}

static void check_file(const char *name, const char *schedule, int positions,
                       int microbatches, int chunks, bool equal)
{
    nami_schedule s;
    nami_text theirs = {0}, ours = {0};
    read_cells(name, &theirs);
    write_cells(schedule, positions, microbatches, chunks, &ours);
    if (equal)
        assert_string_equal(nami_text_get(&theirs), nami_text_get(&ours));
    else
        assert_string_not_equal(nami_text_get(&theirs), nami_text_get(&ours));
    assert_ok(nami_schedule_read(nami_text_get(&theirs), name, &s));
    assert_ok(nami_schedule_validate(&s));
    assert_true(oracle_valid(&s));
    assert_int_equal(s.place.positions, positions);
    assert_int_equal(s.recipe.microbatches, microbatches);
    nami_schedule_free(&s);
    nami_text_free(&theirs);
    nami_text_free(&ours);
}

static void test_equal(void **state)
{
    (void)state;
    check_file("gpipe-4x8.csv", "gpipe", 4, 8, 1, true);
    check_file("run-gpipe-4x8.csv", "gpipe", 4, 8, 1, true);
    check_file("run-1f1b-4x8.csv", "dapple", 4, 8, 1, true);
    check_file("run-1f1b-5x3.csv", "dapple", 5, 3, 1, true);
    check_file("interleaved2-4x8.csv", "interleaved", 4, 8, 2, true);
    check_file("interleaved3-2x6.csv", "interleaved", 2, 6, 3, true);
    check_file("zbv-4x8.csv", "zb-v", 4, 8, 1, true);
    check_file("zbv-4x4.csv", "zb-v", 4, 4, 1, true);
    check_file("zbv-3x11.csv", "zb-v", 3, 11, 1, true);
    check_file("dualpipev-2x6.csv", "dualpipev", 2, 6, 1, true);
    check_file("dualpipev-4x10.csv", "dualpipev", 4, 10, 1, true);
}

/* Where P does not divide M, torch makes rounds of M / floor(M/P) micro-batches, we keep groups of P with a short
 * last one; here torch's holds more and both are right. */
static void test_different(void **state)
{
    (void)state;
    check_file("interleaved2-4x10.csv", "interleaved", 4, 10, 2, false);
}

static void refuse_file(const char *name, const char *part)
{
    nami_schedule s;
    nami_text theirs = {0};
    read_cells(name, &theirs);
    assert_ok(nami_schedule_read(nami_text_get(&theirs), name, &s));
    assert_fails(nami_schedule_validate(&s), NAMI_EPLAN, part);
    nami_schedule_free(&s);
    nami_text_free(&theirs);
}

/* What torch 2.9.1 says of its 1F1B (_get_pipeline_order) is not what it runs: the last rank counts from 1 on, and
 * with fewer micro-batches than ranks there are forwards too many. */
static void test_wrong(void **state)
{
    (void)state;
    refuse_file("1f1b-4x8.csv", "some are missing");
    refuse_file("1f1b-5x3.csv", "some are missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
