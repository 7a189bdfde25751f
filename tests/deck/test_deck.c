/* SPDX-License-Identifier: MIT */
/* test_deck.c - grammar, binding, overrides, echo and manual of the deck. */
#include "nami_test.h"

#include <stdbool.h>

#include "base/rng.h"
#include "deck/deck.h"

/* One field of each kind, and a second table that shares a section. */
typedef struct all {
    int64_t count;
    double rate;
    bool flag;
    char *name;
    int order;
    double limit;
    nami_ints cuts;
} all;

typedef struct other {
    int64_t waves;
    char *path;
} other;

static const char *const orders[] = {"gpipe", "dapple", "hanayo", NULL};

#define ROW(s, k, knd, f, ...)                                                         \
    {                                                                                  \
        .section = s, .key = k, .kind = NAMI_OPTION_##knd, .offset = offsetof(all, f), \
        __VA_ARGS__                                                                    \
    }

static const nami_option all_row[] = {
    ROW("pipeline", "count", INT, count, .fallback = "4", .minimum = 1, .maximum = 99,
        .unit = "positions", .help = "Positions of the pipeline."),
    ROW("train", "rate", REAL, rate, .fallback = "1e-3", .maximum = 1, .help = "Rate."),
    ROW("train", "flag", BOOL, flag, .fallback = "no", .help = "-x. A flag."),
    ROW("train", "name", TEXT, name, .fallback = "", .help = ".name \\ of it."),
    ROW("pipeline", "order", CHOICE, order, .fallback = "gpipe", .choices = orders,
        .help = "Order."),
    ROW("run", "limit", DURATION, limit, .fallback = "2h", .help = "Time."),
    ROW("pipeline", "cuts", INTS, cuts, .fallback = "", .help = "Cuts."),
};

static const nami_option other_row[] = {
    {.section = "pipeline",
     .key = "waves",
     .kind = NAMI_OPTION_INT,
     .offset = offsetof(other, waves),
     .fallback = "1",
     .help = "Waves."},
    {.section = "data",
     .key = "path",
     .kind = NAMI_OPTION_TEXT,
     .offset = offsetof(other, path),
     .help = "Where."},
};

static const nami_option_table all_table = {all_row, sizeof all_row / sizeof *all_row};
static const nami_option_table other_table = {other_row, 2};
static const nami_option_table *const tables[] = {&all_table, &other_table};

static void release(all *a, other *o)
{
    nami_option_release(&all_table, a);
    nami_option_release(&other_table, o);
}

static nami_status parse(const char *text, nami_deck **deck)
{
    return nami_deck_parse(text, strlen(text), "d.ini", deck);
}

/* Parse and bind; the objects are filled anew. */
static nami_status load(const char *text, const char *override, all *a, other *o)
{
    nami_deck *deck = NULL;
    void *const objects[] = {a, o};
    nami_status status = parse(text, &deck);
    if (status == NAMI_OK && override)
        status = nami_deck_override(deck, override);
    if (status == NAMI_OK)
        status = nami_deck_bind(deck, tables, objects, 2);
    nami_deck_free(deck);
    return status;
}

/* The sentence a deck is refused with. */
static void check_refused(const char *text, const char *override, const char *part)
{
    all a = {0};
    other o = {0};
    assert_fails(load(text, override, &a, &o), NAMI_EINPUT, part);
    release(&a, &o);
}

static void test_values(void **state)
{
    (void)state;
    all a = {0};
    other o = {0};
    assert_ok(
        load("\xEF\xBB\xBF# first\r\n[pipeline] # x\r\ncount=7 # seven\n"
             "order =\thanayo\ncuts = 1-2, 3 4\n[ train ]\nname = \" a#\\\"\\n\" \n"
             "flag = on\nrate=.5\n[data]\npath = x#y\n[pipeline]\nwaves = 2\n"
             "[run]\nlimit = 1:30",
             NULL, &a, &o));
    assert_int_equal(a.count, 7);
    assert_int_equal(a.order, 2);
    assert_int_equal(a.cuts.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(a.cuts.item[i], i + 1);
    assert_string_equal(a.name, " a#\"\n");
    assert_true(a.flag);
    assert_true(a.rate == 0.5 && a.limit == 90.0);
    assert_string_equal(o.path, "x#y");
    assert_int_equal(o.waves, 2);
    release(&a, &o);
}

static void test_defaults_and_override(void **state)
{
    (void)state;
    all a = {0};
    other o = {0};
    assert_ok(
        load("[data]\npath = x\n[pipeline]\ncount = 3\n", "pipeline.count=5", &a, &o));
    assert_int_equal(a.count, 5);
    assert_true(a.rate == 1e-3 && a.limit == 7200.0);
    assert_string_equal(a.name, "");
    assert_int_equal(a.cuts.count, 0);
    assert_ok(load("[data]\npath = x\n", "train.name= a = b #", &a, &o));
    assert_string_equal(a.name, " a = b #");
    assert_int_equal(a.count, 4);
    release(&a, &o);
}

static void test_refused_lines(void **state)
{
    (void)state;
    check_refused("\n\nx y\n", NULL, "d.ini:3: expected '=' after the key");
    check_refused("x = 1\n", NULL, "d.ini:1: expected a '[section]'");
    check_refused("[train\n", NULL, "expected ']'");
    check_refused("[Train]\n", NULL, "expected a section name");
    check_refused("[train] x\n", NULL, "nothing after ']'");
    check_refused("[train]\nname = \"x\n", NULL, "d.ini:2: expected a closing");
    check_refused("[train]\nname = \"x\\q\"\n", NULL, "after the backslash");
    check_refused("[train]\nname = \"x\\", NULL, "after the backslash");
    check_refused("[train]\nname = \"x\" y\n", NULL, "nothing after the closing");
    check_refused("[train]\nname = a\rb\n", NULL, "control character");
    check_refused("[train]\n= 3\n", NULL, "expected '[section]', 'key = value'");
    check_refused("[train]\nrate = 1\n\n[train]\nrate = 1\n", NULL,
                  "d.ini:5: train.rate is set a second time, first in line 2");
}

static void test_refused_keys(void **state)
{
    (void)state;
    check_refused("[pipeline]\nwave = 2\n", NULL,
                  "d.ini:2: unknown key 'wave' in [pipeline]; did you mean 'waves'?");
    check_refused("[pipline]\nwaves = 2\n", NULL,
                  "unknown section [pipline]; did you mean [pipeline]?");
    check_refused("[zebra]\nwaves = 2\n", NULL,
                  "unknown section [zebra]; see nami-deck(5)");
    check_refused("[train]\nwaves = 2\n", NULL, "it belongs to [pipeline]");
    check_refused("[train]\n", NULL, "d.ini: required but not set: data.path");
    check_refused("", "train.rat=1",
                  "command line: unknown key 'rat' in [train]; did you mean 'rate'?");
}

static void test_refused_values(void **state)
{
    (void)state;
    check_refused("[pipeline]\ncount = four\n", NULL,
                  "d.ini:2: pipeline.count = 'four': expected a whole number");
    check_refused("[pipeline]\ncount = 100\n", NULL, "a value from 1 to 99 positions");
    check_refused("[pipeline]\ncount =\n", NULL, "expected a whole number");
    check_refused("[train]\nrate = -1e-300\n", NULL, "a value from 0 to 1");
    check_refused("[train]\nflag = maybe\n", NULL, "expected yes or no");
    check_refused("[pipeline]\norder = hanyo\n", NULL,
                  "one of gpipe, dapple, hanayo (did you mean 'hanayo'?)");
    check_refused("[run]\nlimit = soon\n", NULL, "expected a duration");
    check_refused("[pipeline]\ncuts = 1--2\n", NULL, "one separator");
    check_refused("[pipeline]\ncuts = 1,\n", NULL, "one separator");
    check_refused("[pipeline]\ncuts = -1\n", NULL, "whole numbers separated");
    check_refused("[pipeline]\ncuts = 99999999999\n", NULL, "whole numbers separated");
    check_refused("", "pipeline.count=0",
                  "command line: pipeline.count = '0': expected");
}

static void test_refused_overrides(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      "x",       "x=1",       ".x=1",       "train.=1", "=",
        "train", "train.x", "Train.x=1", "train.x =1", "a.b.c=1",  "train.name=\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused("", bad[i], "expected section.key=value");
}

static void test_two_owners(void **state)
{
    (void)state;
    const nami_option_table *const twice[] = {&other_table, &other_table};
    other o = {0};
    void *const objects[] = {&o, &o};
    nami_deck *deck;
    assert_ok(parse("", &deck));
    assert_fails(nami_deck_bind(deck, twice, objects, 2), NAMI_EBUG, "pipeline.waves");
    nami_deck_free(deck);
}

/* A random text of bytes a deck may carry. */
static void random_text(uint64_t key, char *out, int most)
{
    static const char alphabet[] = "ab #=\"\\\n\t\r[];.-\xe6\xb3\xa2";
    int length = (int)(nami_uniform(key, 0) * most);
    for (int i = 0; i < length; i++) {
        uint64_t pick =
            (uint64_t)(nami_uniform(key, (uint64_t)i + 1) * (sizeof alphabet - 1));
        out[i] = alphabet[pick];
    }
    out[length] = '\0';
}

static void check_equal(const all *a, const other *o, const all *b, const other *p)
{
    assert_true(a->count == b->count && a->order == b->order && a->flag == b->flag);
    assert_true(a->rate == b->rate && a->limit == b->limit && o->waves == p->waves);
    assert_string_equal(a->name, b->name);
    assert_string_equal(o->path, p->path);
    assert_int_equal(a->cuts.count, b->cuts.count);
    if (a->cuts.count)
        assert_memory_equal(a->cuts.item, b->cuts.item,
                            (size_t)a->cuts.count * sizeof(int));
}

static void fill_random(uint64_t key, all *a, other *o)
{
    char text[40];
    *a = (all){.count = 1 + (int64_t)(nami_uniform(key, 1) * 99),
               .rate = nami_uniform(key, 2),
               .flag = nami_uniform(key, 3) < 0.5,
               .order = (int)(nami_uniform(key, 4) * 3),
               .limit = 1e6 * nami_uniform(key, 5),
               .cuts.count = (int)(nami_uniform(key, 6) * 5)};
    a->cuts.item = nami_alloc(NAMI_MEM_OTHER, 5 * sizeof(int));
    for (int i = 0; i < a->cuts.count; i++)
        a->cuts.item[i] = (int)(nami_uniform(key, 7 + (uint64_t)i) * 2e9);
    random_text(nami_mix(key, 1), text, 39);
    a->name = nami_strdup(text);
    random_text(nami_mix(key, 2), text, 39);
    *o = (other){.waves = (int64_t)(nami_uniform(key, 12) * 1e18) - (int64_t)5e17,
                 .path = nami_strdup(text)};
}

/* What is echoed reads back to the same values, for random values. */
static void test_echo_round_trip(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(3);
    for (uint64_t trial = 0; trial < 2000; trial++) {
        all a, b = {0};
        other o, p = {0};
        nami_text echo = {0};
        fill_random(nami_mix(seed, trial), &a, &o);
        const void *const objects[] = {&a, &o};
        nami_deck_echo(tables, objects, 2, &echo);
        assert_ok(load(nami_text_get(&echo), NULL, &b, &p));
        check_equal(&a, &o, &b, &p);
        nami_text_free(&echo);
        release(&a, &o);
        release(&b, &p);
    }
}

/* Random bytes and broken decks are read or refused with a place; nothing else happens. */
static void test_hostile(void **state)
{
    (void)state;
    static const char deck_text[] =
        "[pipeline]\ncount = 4\norder = gpipe # c\ncuts = 1-2\n"
        "[train]\nname = \"a\\\"b\"\n[data]\npath = x\n";
    uint64_t seed = nami_test_seed(5);
    char text[sizeof deck_text];
    int read = 0, refused = 0;
    for (uint64_t trial = 0; trial < 20000; trial++) {
        uint64_t key = nami_mix(seed, trial);
        size_t length = (size_t)(nami_uniform(key, 0) * sizeof deck_text);
        int changes = (int)(nami_uniform(key, 1) * 4);
        memcpy(text, deck_text, sizeof text);
        for (int c = 0; c < changes && length; c++)
            text[(size_t)(nami_uniform(key, 2 + (uint64_t)c) * (double)length)] =
                (char)(nami_uniform(key, 9 + (uint64_t)c) * 256);
        nami_deck *deck;
        if (nami_deck_parse(text, length, "d.ini", &deck) == NAMI_OK) {
            read++;
        } else {
            refused++;
            assert_null(deck);
            assert_memory_equal(nami_fail_text(), "d.ini:", 6);
        }
        nami_fail_clear();
        nami_deck_free(deck);
    }
    assert_true(read > 1000 && refused > 1000);
}

static void test_sizes(void **state)
{
    (void)state;
    nami_deck *deck;
    size_t n = (1 << 20) + 1;
    char *big = nami_alloc(NAMI_MEM_OTHER, n);
    memset(big, 'a', n);
    assert_fails(nami_deck_parse(big, n, "d.ini", &deck), NAMI_EINPUT, "longer than");
    assert_fails(nami_deck_parse(big, n - 1, "d.ini", &deck), NAMI_EINPUT, "d.ini:1:");
    memset(big, '\n', n);
    assert_ok(nami_deck_parse(big, n - 1, "d.ini", &deck));
    nami_deck_free(deck);
    memset(big, 0, n);
    assert_fails(nami_deck_parse(big, 5, "d.ini", &deck), NAMI_EINPUT, "control");
    assert_ok(nami_deck_parse(big, 0, "d.ini", &deck));
    nami_deck_free(deck);
    nami_free(big);
    nami_text many = {0};
    nami_text_add(&many, "[x]\n");
    for (int i = 0; i <= 4096; i++)
        nami_text_add(&many, "k%d=\n", i);
    assert_fails(parse(nami_text_get(&many), &deck), NAMI_EINPUT,
                 "d.ini:4098: more than");
    nami_text_free(&many);
}

static void test_files(void **state)
{
    (void)state;
    char path[512];
    nami_deck *deck;
    assert_fails(nami_deck_read(nami_test_path(path, "none.ini"), &deck), NAMI_EINPUT,
                 "No such file");
    assert_null(deck);
    assert_fails(nami_deck_read("/", &deck), NAMI_EINPUT, "deck '/'");
    FILE *file = fopen(nami_test_path(path, "d.ini"), "w");
    assert_non_null(file);
    fputs("[a]\nb = c\n", file);
    fclose(file);
    assert_ok(nami_deck_read(path, &deck));
    assert_string_equal(nami_deck_value(deck, "a", "b"), "c");
    assert_null(nami_deck_value(deck, "a", "c"));
    nami_deck_free(deck);
}

/* Each key stands once below its section, sections are not repeated, roff stays harmless. */
static void test_manual(void **state)
{
    (void)state;
    nami_text page = {0};
    nami_deck_manual(tables, 2, &page);
    const char *text = nami_text_get(&page);
    const char *pipeline = strstr(text, ".SS [pipeline]\n");
    assert_non_null(pipeline);
    assert_null(strstr(pipeline + 1, ".SS [pipeline]\n"));
    const char *train = strstr(text, ".SS [train]\n"),
               *waves = strstr(text, ".B waves\n");
    assert_non_null(train);
    assert_true(waves > pipeline && waves < train);
    assert_non_null(strstr(text, "whole number, from 1 to 99, in positions.\n"));
    assert_non_null(
        strstr(text, "One of \\fBgpipe\\fR, \\fBdapple\\fR, \\fBhanayo\\fR.\n"));
    assert_non_null(strstr(text, "\n\\&.name \\e of it.\n"));
    assert_non_null(strstr(text, ".B path\nWhere.\nValue: text.\nRequired.\n"));
    nami_text_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_defaults_and_override),
        cmocka_unit_test(test_refused_lines),
        cmocka_unit_test(test_refused_keys),
        cmocka_unit_test(test_refused_values),
        cmocka_unit_test(test_refused_overrides),
        cmocka_unit_test(test_two_owners),
        cmocka_unit_test(test_echo_round_trip),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_manual),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
