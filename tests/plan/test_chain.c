/* SPDX-License-Identifier: MIT */
/* test_chain.c - profiles of chains: what is read, what is refused and where, and mutated files. */
#include "../nami_test.h"

#include <math.h>

#include "base/clock.h"
#include "base/rng.h"
#include "plan/chain.h"

#define assert_near(a, b, most) assert_true(fabs((a) - (b)) <= (most))

#define HEAD "layer,forward_ms,backward_ms,activation_bytes,parameter_bytes\n"

static void test_alexnet(void **state)
{
    (void)state;
    char path[512];
    nami_chain c;
    assert_ok(nami_chain_read(
        nami_test_source(path, "validation/ashpipe/alexnet-profile.csv"), &c));
    assert_int_equal(c.blocks, 23);
    assert_string_equal(c.block[1].name, "conv2d");
    assert_near(c.block[0].input + c.block[0].weight, 49.308e-3, 1e-15);
    assert_near(c.block[22].parameter, 16388000, 0);
    assert_near(c.block[22].kept, 0, 0);
    assert_int_equal(c.samples, 0);
    nami_chain_scale(&c, 5); /* the file does not say for how many samples it is */
    assert_near(c.block[0].forward, 2.751e-3, 1e-15);
    nami_chain_free(&c);
}

/* What is written is read back, and scaled in proportion. */
static void test_round_trip(void **state)
{
    (void)state;
    nami_chain_block block[2] = {{"embedding", 1e-3, 2e-3, 4e-3, 100, 300, 7, 50, 60},
                                 {"head", 5e-3, 6e-3, 0, 40, 0, 9, 8, 0}};
    nami_chain c = {.blocks = 2,
                    .block = block,
                    .samples = 4,
                    .ranks_per_node = 2,
                    .inside = {1e-6, 3e9, 2e9}};
    nami_chain d;
    nami_text text = {0};
    nami_chain_write(&c, &text);
    assert_ok(nami_chain_parse(nami_text_get(&text), "text", &d));
    nami_text_free(&text);
    assert_int_equal(d.blocks, 2);
    assert_int_equal(d.samples, 4);
    assert_int_equal(d.ranks_per_node, 2);
    assert_near(d.inside.latency, 1e-6, 1e-12);
    assert_near(d.inside.reduce, 2e9, 1);
    assert_near(d.across.rate, 0, 0); /* not measured, not made up */
    nami_chain_scale(&d, 8);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(d.block[i].name, block[i].name);
        assert_near(d.block[i].forward, 2 * block[i].forward, 1e-12);
        assert_near(d.block[i].input, 2 * block[i].input, 1e-12);
        assert_near(d.block[i].weight, 2 * block[i].weight, 1e-12);
        assert_near(d.block[i].output, 2 * block[i].output, 0);
        assert_near(d.block[i].kept, 2 * block[i].kept, 0);
        assert_near(d.block[i].transient, 2 * block[i].transient, 0);
        assert_near(d.block[i].parameter, block[i].parameter, 0);
        assert_near(d.block[i].packed, block[i].packed, 0);
    }
    nami_chain_free(&d);
}

static const struct refusal {
    const char *text, *reason;
} refusals[] = {
    {"", "no layers are in it"},
    {"# nothing\n\n", "no layers are in it"},
    {HEAD, "no layers are in it"},
    {HEAD "a,0,0,1,1\n", "no layer takes any time"},
    {"a,1,2,3,4\n", "x:1: a profile starts with a line"},
    {HEAD "a,1,2,3\n", "x:2: 5 columns are named, but here are 4"},
    {HEAD "a,1,2,3,4,5\n", "x:2: 5 columns are named, but here are 6"},
    {HEAD "a,-1,2,3,4\n", "x:2: column forward_ms: \"-1\" is no number"},
    {HEAD "a,1,nan,3,4\n", "x:2: column backward_ms: \"nan\""},
    {HEAD "a,1,2,inf,4\n", "x:2: column activation_bytes: \"inf\""},
    {HEAD "a,1,2,3,1e16\n", "x:2: column parameter_bytes: \"1e16\""},
    {HEAD "a,1,2,3,4e999\n", "x:2: column parameter_bytes"},
    {HEAD HEAD, "x:2: a second table \"layer\""},
    {"layer,forward_ms,forward_ms\n", "\"forward_ms\" is twice a column"},
    {"layer,fore\n", "\"fore\" is no column of table \"layer\""},
    {"layer,forward_ms,activation_bytes,parameter_bytes,backward_input_ms\na,1,2,3,4\n",
     "x:1: columns forward_ms, activation_bytes"},
    {"layer,forward_ms,backward_ms,parameter_bytes\na,1,2,3\n", "x:1: columns"},
    {"link,latency_us\ninside,3\n", "x:2: a link without bytes_per_second"},
    {"link,bytes_per_second,reduce_bytes_per_second\nup,3,4\n",
     "x:2: link \"up\": inside or across is expected"},
    {"samples,ranks_per_node\n0,3\n", "x:2: samples from 1 to 1e9"},
    {"samples,ranks_per_node\n1,3e6\n", "x:2: samples from 1 to 1e9"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        nami_chain c;
        assert_fails(nami_chain_parse(refusals[i].text, "x", &c), NAMI_EINPUT,
                     refusals[i].reason);
        nami_chain_free(&c);
    }
}

static void test_files(void **state)
{
    (void)state;
    char path[512];
    nami_chain c;
    assert_fails(nami_chain_read("/nowhere/at/all", &c), NAMI_EINPUT,
                 "cannot be opened");
    nami_test_write(nami_test_path(path, "zero"), HEAD "a,1,2\0,3,4\n",
                    sizeof HEAD + 10);
    assert_fails(nami_chain_read(path, &c), NAMI_EINPUT, "a byte of it is zero");
    nami_chain_free(&c);
    char *line = nami_alloc(NAMI_MEM_OTHER, 100000);
    memset(line, 'a', 100000);
    nami_test_write(nami_test_path(path, "long"), line, 100000);
    nami_free(line);
    assert_fails(nami_chain_read(path, &c), NAMI_EINPUT, "the line is too long");
    nami_chain_free(&c);
    char directory[512];
    assert_fails(nami_chain_read(nami_test_path(directory, "."), &c), NAMI_EINPUT,
                 "cannot be read");
    nami_chain_free(&c);
}

/* Random bytes put in, taken out, changed; what is taken must be usable. */
static void mutate(char *text, size_t *length, uint64_t key)
{
    static const char likely[] = "0123456789.,-e\n# \t\rnaifx";
    uint64_t index = 0;
#define ROLL(n) ((size_t)(nami_uniform(key, index++) * (double)(n)))
    for (size_t n = 1 + ROLL(6); n > 0; n--) {
        size_t at = ROLL(*length + 1), kind = ROLL(5), span = ROLL(80);
        char fresh = ROLL(4) ? likely[ROLL(sizeof likely - 1)] : (char)(1 + ROLL(255));
        if (kind == 0 && at < *length) {
            text[at] = fresh;
        } else if (kind == 1 && *length + 1 < 4000) {
            memmove(text + at + 1, text + at, *length - at);
            text[at] = fresh;
            ++*length;
        } else if (kind == 2 && at + span < *length) {
            memmove(text + at, text + at + span, *length - at - span);
            *length -= span;
        } else if (kind == 3 && at + span < *length && *length + span < 4000) {
            memmove(text + at + span, text + at, *length - at);
            *length += span;
        } else if (kind == 4 && ROLL(4) == 0) {
            *length = at;
        }
    }
#undef ROLL
    text[*length] = '\0';
}

static void check_sound(const nami_chain *c)
{
    nami_chain_sums s;
    assert_in_range(c->blocks, 1, NAMI_CHAIN_MOST);
    nami_chain_sums_make(c, &s);
    assert_true(s.forward[c->blocks] + s.backward[c->blocks] > 0);
    assert_true(isfinite(s.output[c->blocks]) && isfinite(s.kept[c->blocks]));
    assert_true(c->samples >= 0 && c->ranks_per_node >= 0);
    nami_chain_sums_free(&s);
}

static void test_fuzz(void **state)
{
    (void)state;
    static const char valid[] =
        "# a comment\nsamples,ranks_per_node\n8,4\n"
        "link,latency_us,bytes_per_second,reduce_bytes_per_second\n"
        "inside,1.5,3e9,2e9\nacross,20,1e9,9e8\n" HEAD
        "conv,1.25,2.5,4096,1024\nrelu,0.5,0.25,4096,0\nlinear,3,6,128,65536\n";
    uint64_t seed = nami_test_seed(71);
    const char *wish = getenv("NAMI_FUZZ_SECONDS");
    double end = nami_now() + (wish ? atof(wish) : 4.0);
    int trials = 0, taken = 0;
    for (; nami_now() < end && (wish || trials < 200000); trials++) {
        char text[4096];
        size_t length = sizeof valid - 1;
        nami_chain c;
        memcpy(text, valid, sizeof valid);
        mutate(text, &length, nami_mix(seed, (uint64_t)trials));
        nami_status status = nami_chain_parse(text, "fuzz", &c);
        if (status == NAMI_OK) {
            taken++;
            check_sound(&c);
        } else if (status != NAMI_EINPUT || !*nami_fail_text()) {
            fail_msg("trial %d: status %d: %s", trials, (int)status, nami_fail_text());
        }
        nami_fail_clear();
        nami_chain_free(&c);
    }
    print_message("%d trials, %d taken\n", trials, taken);
    assert_true(trials > 10 && taken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alexnet),  cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_files),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
