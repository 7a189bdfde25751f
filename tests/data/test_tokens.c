/* SPDX-License-Identifier: MIT */
/* test_tokens.c - checksum, range and text form of tokens. */
#include "nami_test.h"

#include "base/rng.h"
#include "data/tokens.h"

static void test_checksum(void **state)
{
    (void)state;
    /* the check value of CRC-32 (ISO-HDLC) is 0xcbf43926 over "123456789" */
    assert_int_equal(nami_tokens_checksum(0, "123456789", 9, 1), 0xcbf43926);
    uint16_t word[4] = {0x3231, 0x3433, 0x3635, 0x3837};
    uint32_t sum = nami_tokens_checksum(0, word, 4, 2);
    assert_int_equal(nami_tokens_checksum(sum, "9", 1, 1), 0xcbf43926);
}

static void test_combine(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(61);
    static uint16_t word[10000];
    for (size_t i = 0; i < 10000; i++)
        word[i] = (uint16_t)(nami_uniform(seed, i) * 65536);
    uint32_t all = nami_tokens_checksum(0, word, 10000, 2);
    for (int64_t cut = 0; cut <= 10000; cut += 1111) {
        uint32_t a = nami_tokens_checksum(0, word, cut, 2);
        uint32_t b = nami_tokens_checksum(0, word + cut, 10000 - cut, 2);
        assert_int_equal(nami_tokens_combine(a, b, 2 * (10000 - cut)), all);
        assert_int_equal(nami_tokens_checksum(a, word + cut, 10000 - cut, 2), all);
    }
}

static void test_outside(void **state)
{
    (void)state;
    uint8_t byte[5] = {0, 3, 9, 4, 255};
    uint16_t word[3] = {65535, 1, 256};
    assert_int_equal(nami_tokens_outside(byte, 5, 1, 256), -1);
    assert_int_equal(nami_tokens_outside(byte, 5, 1, 255), 4);
    assert_int_equal(nami_tokens_outside(byte, 5, 1, 9), 2);
    assert_int_equal(nami_tokens_outside(byte, 0, 1, 1), -1);
    assert_int_equal(nami_tokens_outside(word, 3, 2, 65536), -1);
    assert_int_equal(nami_tokens_outside(word, 3, 2, 65535), 0);
    assert_int_equal(nami_tokens_outside(word + 1, 2, 2, 256), 1);
    assert_int_equal(nami_tokens_width(256), 1);
    assert_int_equal(nami_tokens_width(257), 2);
}

static void test_text(void **state)
{
    (void)state;
    static const int32_t token[] = {'I', 'n', ' ', 0xe6, 0xb3, 0xa2, 0, 300, -1, '\n'};
    nami_text t = {0};
    nami_tokens_text("bytes", token, 10, &t);
    assert_string_equal(nami_text_get(&t), "In \xe6\xb3\xa2???\n");
    nami_text_free(&t);
    nami_tokens_text("gpt2", token, 3, &t);
    nami_tokens_text("gpt2", token + 7, 1, &t);
    assert_string_equal(nami_text_get(&t), "73 110 32 300 ");
    nami_text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_combine),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
