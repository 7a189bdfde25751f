/* SPDX-License-Identifier: MIT */
/* test_bert_pair.c - pairs of sentences and their masks, on random texts in memory. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "data/bert_pair.h"

enum { PAD, UNK, CLS, SEP, MASK };

/* --- pairs --- */

/* Offsets of a random text in memory. */
typedef struct text {
    int64_t sentence[400], document[100];
    nami_offsets sentences, documents;
} text;

static void make_text(text *t, uint64_t seed, int documents, int longest)
{
    int64_t tokens = 0, sentences = 0;
    for (int d = 0; d < documents; d++) {
        t->document[d] = sentences;
        int64_t n = 1 + (int64_t)(nami_mix(seed, (uint64_t)d) % 4) + (documents == 1);
        for (int64_t i = 0; i < n; i++) {
            t->sentence[sentences++] = tokens;
            tokens += 1 + (int64_t)(nami_mix(seed + 1, (uint64_t)sentences) %
                                    (uint64_t)longest);
        }
    }
    t->document[documents] = sentences;
    t->sentence[sentences] = tokens;
    t->sentences = (nami_offsets){.count = sentences, .whole = t->sentence};
    t->documents = (nami_offsets){.count = documents, .whole = t->document};
}

/* Number of the part that x is in, the slow way. */
static int64_t part_of(const nami_offsets *o, int64_t x)
{
    int64_t i = 0;
    while (o->whole[i + 1] <= x)
        i++;
    return i;
}

static int64_t document_of(const text *t, int64_t token)
{
    return part_of(&t->documents, part_of(&t->sentences, token));
}

static void test_pairs(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(91);
    static text t;
    int64_t pairs = 0, random = 0;
    for (uint64_t trial = 0; trial < 300; trial++) {
        int documents = 1 + (int)(trial % 7), longest = trial % 3 ? 6 : 40;
        int64_t time = 5 + (int64_t)(nami_mix(seed, trial) % 40);
        make_text(&t, seed + 10 * trial, documents, longest);
        int64_t tokens = t.sentence[t.sentences.count];
        for (int64_t at = 0; at < tokens; at++) {
            nami_bert_pair p;
            uint64_t key = nami_mix(trial, (uint64_t)at);
            assert_ok(nami_bert_choose(&t.sentences, &t.documents, at, time, key, &p));
            assert_in_range(p.count[0], 1, time);
            assert_in_range(p.count[1], 1, time);
            assert_in_range(p.count[0] + p.count[1], 2, time - 3);
            for (int i = 0; i < 2; i++) {
                assert_in_range(p.from[i], 0, tokens - p.count[i]);
                assert_int_equal(document_of(&t, p.from[i]),
                                 document_of(&t, p.from[i] + p.count[i] - 1));
            }
            int64_t home = document_of(&t, at);
            assert_int_equal(document_of(&t, p.from[0]), home);
            if (!p.random) {
                assert_true(p.from[1] >= p.from[0] + p.count[0]);
                assert_int_equal(document_of(&t, p.from[1]), home);
                assert_true(part_of(&t.sentences, p.from[0]) <
                            part_of(&t.sentences, p.from[1]));
            } else if (documents > 1) {
                assert_int_not_equal(document_of(&t, p.from[1]), home);
            } else {
                assert_true(p.from[1] + p.count[1] <= p.from[0] ||
                            p.from[1] >= p.from[0] + p.count[0]);
            }
            if (documents > 1 && t.document[home + 1] - t.document[home] > 1) {
                pairs++;
                random += p.random;
            } else if (documents > 1) {
                assert_true(p.random);
            }
        }
    }
    print_message("%d of %d random\n", (int)random, (int)pairs);
    assert_true(fabs((double)random - (double)pairs / 2) < 2.5 * sqrt((double)pairs));
}

/* A pair that fits is not cut: the parts are whole sentences, end to end when the second is the next one. */
static void test_whole_sentences(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(92);
    static text t;
    int fits = 0;
    make_text(&t, seed, 9, 5);
    for (int64_t at = 0; at < t.sentence[t.sentences.count]; at++)
        for (uint64_t k = 0; k < 20; k++) {
            nami_bert_pair p;
            assert_ok(nami_bert_choose(&t.sentences, &t.documents, at, 64,
                                       nami_mix(seed + k, (uint64_t)at), &p));
            if (p.count[0] + p.count[1] == 61)
                continue;
            for (int i = 0; i < 2; i++) {
                int64_t end = p.from[i] + p.count[i];
                assert_int_equal(t.sentence[part_of(&t.sentences, p.from[i])],
                                 p.from[i]);
                assert_true(end == t.sentence[t.sentences.count] ||
                            t.sentence[part_of(&t.sentences, end)] == end);
            }
            if (!p.random)
                assert_int_equal(p.from[1], p.from[0] + p.count[0]);
            fits++;
        }
    assert_in_range(fits, 100, 100000);
}

/* --- masks --- */

static const nami_bert_tokens tokens = {
    .time = 40, .masked = 6, .vocabulary = 1000, .special = {PAD, UNK, CLS, SEP, MASK}};

static void test_masks(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(93);
    enum { T = 40, M = 6 };
    int64_t masks = 0, hidden = 0, same = 0, at[T] = {0};
    uint16_t word[T];
    for (int i = 0; i < T; i++)
        word[i] = (uint16_t)(100 + i);
    for (uint64_t trial = 0; trial < 20000; trial++) {
        int32_t input[2 * T + 1], target[2 * M + 1], plain[T];
        int64_t a = 1 + (int64_t)(nami_mix(seed, trial) % 20);
        int64_t b = 1 + (int64_t)(nami_mix(seed + 1, trial) % 17), length = a + b + 3;
        nami_bert_pair p = {.count = {a, b}, .random = trial % 2};
        nami_bert_mask(&tokens, &p, word, word + 20, nami_mix(seed, trial), input,
                       target);
        assert_int_equal(input[2 * T], length);
        assert_int_equal(target[2 * M], trial % 2);
        for (int i = 0; i < T; i++) {
            bool special = i == 0 || i == a + 1 || i == length - 1;
            plain[i] = i == 0        ? CLS
                       : special     ? SEP
                       : i >= length ? PAD
                       : i <= a      ? 99 + i
                                     : 120 + i - (int)a - 2;
            assert_int_equal(input[T + i], i > a + 1 && i < length);
        }
        int64_t want = (int64_t)floor(0.15 * (double)length + 0.5), used = 0;
        want = want < 1 ? 1 : want > M ? M : want;
        for (int i = 0; i < M && target[i]; i++, used++) {
            int32_t place = target[i];
            assert_true(i == 0 || place > target[i - 1]);
            assert_true(place < length - 1 && place != a + 1);
            assert_int_equal(target[M + i], plain[place]);
            hidden += input[place] == MASK;
            same += input[place] == plain[place];
            assert_in_range(input[place], 0, 999);
            plain[place] = input[place];
            at[place]++;
        }
        assert_int_equal(used, want);
        masks += used;
        for (int64_t i = used; i < M; i++) {
            assert_int_equal(target[i], 0);
            assert_int_equal(target[M + i], -1);
        }
        assert_memory_equal(plain, input, sizeof plain);
    }
    double n = (double)masks;
    print_message("%.3f hidden, %.3f the same\n", (double)hidden / n, (double)same / n);
    assert_true(fabs((double)hidden / n - 0.8) < 0.01);
    assert_true(fabs((double)same / n - 0.1) < 0.01);
    assert_true(at[1] > 1000 && at[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_whole_sentences),
        cmocka_unit_test(test_masks),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
