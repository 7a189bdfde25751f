/* SPDX-License-Identifier: MIT */
/* test_hostile.c - files made to harm: each is refused with a sentence that says why. */
#include "nami_test.h"

#include "exchange/exchange.h"

static char path[512];

static void put(const void *data, size_t bytes)
{
    nami_test_write(path, data, bytes);
}

/* Open what was put, and close it. */
static nami_status try(void)
{
    nami_exchange *x;
    nami_status status = nami_exchange_open(path, &x);
    nami_exchange_close(x);
    return status;
}

/* --- safetensors --- */

static nami_status try_header(const char *json, size_t buffer)
{
    char file[4096] = {0};
    uint64_t length = strlen(json);
    assert_in_range(length + buffer, 0, sizeof file - 8);
    memcpy(file, &length, 8);
    memcpy(file + 8, json, (size_t)length);
    put(file, 8 + (size_t)length + buffer);
    return try();
}

#define A(shape, begin, end)                                                           \
    "\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define B(shape, begin, end)                                                           \
    "\"b\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_legal(void **state)
{
    (void)state;
    assert_ok(try_header("{" A("[2,3]", "0", "24") "}", 24));
    assert_ok(try_header("{" A("[2,3]", "4", "28") "," B("[]", "0", "4") "}   ", 28));
    assert_ok(try_header("{" A("[2,0,3]", "0", "0") "}", 0));
    assert_ok(try_header("{" A("[2]", "0", "8") "," B("[0]", "8", "8") "}", 8));
    assert_ok(try_header("{ \"__metadata__\" : {\"a\\u00e9\":\"\\ud83d\\ude00\"}, " A(
                             "[1]", "0", "4") "}",
                         4));
}

static void test_safetensors(void **state)
{
    static const struct {
        const char *json;
        size_t buffer;
        const char *sentence;
    } row[] = {
        {"{" A("[2]", "0", "8") "," A("[2]", "8", "16") "}", 16, "two arrays a"},
        {"{" A("[2]", "0", "8") "," B("[2]", "4", "12") "}", 12, "overlap"},
        {"{" A("[2]", "0", "8") "," B("[2]", "0", "8") "}", 8, "overlap"},
        {"{" A("[2]", "0", "8") "," B("[2]", "12", "20") "}", 20, "overlap"},
        {"{" A("[2]", "0", "8") "}", 9, "overlap"},
        {"{" A("[2]", "4", "12") "}", 12, "overlap"},
        {"{" A("[2]", "0", "8") "}", 7, "need 8 bytes of the 7"},
        {"{" A("[3]", "0", "8") "}", 8, "need 12 bytes"},
        {"{" A("[2]", "8", "0") "}", 8, "need 8 bytes"},
        {"{" A("[2]", "9223372036854775800", "9223372036854775807") "}", 8, "array a"},
        {"{" A("[2]", "0", "9223372036854775808") "}", 8, "below 2^63"},
        {"{" A("[2]", "-8", "0") "}", 8, "below 2^63"},
        {"{" A("[2.0]", "0", "8") "}", 8, "below 2^63"},
        {"{" A("[2e0]", "0", "8") "}", 8, "below 2^63"},
        {"{" A("[02]", "0", "8") "}", 8, "below 2^63"},
        {"{" A("[4294967296,4294967296]", "0", "0") "}", 0, "more elements"},
        {"{" A("[4294967296,4294967296,0]", "0", "0") "}", 0, "more elements"},
        {"{" A("[4294967295,2147483647]", "0", "4") "}", 4, "more elements"},
        {"{" A("[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "at most 8 dimensions"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "dtype"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "need"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1]}}", 4, "each once"},
        {"{\"a\":{\"type\":\"F32\"}}", 4, "each once"},
        {"{\"a\":[]}", 0, "expected '{'"},
        {"{\"a\\u0000b\":{}}", 0, "printed"},
        {"{\"a\\u001b[2J\":{}}", 0, "printed"},
        {"{\"\\ud800\":{}}", 0, "printed"},
        {"{\"a\nb\":{}}", 0, "printed"},
        {"{\"a", 0, "expected"},
        {"{\"a\\", 0, "expected"},
        {"{", 0, "expected"},
        {"{}", 0, "no arrays"},
        {"{}{}", 0, "blanks"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "expected '\"'"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "dtype, shape"},
        {"{" A("[1]", "0", "4") ",}", 4, "expected '\"'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_fails(try_header(row[i].json, row[i].buffer), NAMI_EINPUT,
                     row[i].sentence);
}

static void test_lengths(void **state)
{
    const unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, '{'};
    const unsigned char endless[16] = {[7] = 0xff, [8] = '{'};
    (void)state;
    put(huge, sizeof huge);
    assert_fails(try(), NAMI_EINPUT, "4294967295 bytes");
    put(endless, sizeof endless);
    assert_fails(try(), NAMI_EINPUT, "neither");
    for (size_t n = 0; n < 9; n++) {
        put(huge, n);
        assert_fails(try(), NAMI_EINPUT, "neither");
    }
}

/* --- pickles, in the legacy format --- */

/* A pickle in the place of the object, then `tail`. */
static nami_status try_pickle(const char *object, size_t bytes, const char *tail,
                              size_t tail_bytes)
{
    static const char head[] = "\x80\2\x8a\12\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                               "\x80\2M\xe9\3."
                               "\x80\2}.";
    char file[4096];
    size_t n = sizeof head - 1;
    memcpy(file, head, n);
    memcpy(file + n, object, bytes);
    memcpy(file + n + bytes, tail, tail_bytes);
    put(file, n + bytes + tail_bytes);
    return try();
}

#define PICKLE(text, tail)                                                             \
    try_pickle("" text, sizeof text - 1, "" tail, sizeof tail - 1)

/* {"w": a tensor of FloatStorage "k"}, `count` elements; numbers are one byte. */
#define TENSOR(count, offset, shape, stride)                                           \
    "\x80\2}X\1\0\0\0w"                                                                \
    "ctorch._utils\n_rebuild_tensor_v2\n("                                             \
    "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpu" count "NtQ" offset \
    "(" shape "t(" stride "t\x89"                                                      \
    "ccollections\nOrderedDict\n)RtRs."
#define KEYS "\x80\2]X\1\0\0\0ka."
#define THREE "\3\0\0\0\0\0\0\0abcdefghijkl"

static void test_pickles(void **state)
{
    (void)state;
    assert_ok(PICKLE(TENSOR("K\3", "K\0", "K\3", "K\1"), KEYS THREE));
    assert_ok(PICKLE(TENSOR("K\3", "K\1", "K\2", "K\1"), KEYS THREE));
    assert_ok(PICKLE(TENSOR("K\3", "K\2", "K\5K\7", "K\0K\0"), KEYS THREE));
    assert_ok(PICKLE(TENSOR("K\3", "K\3", "K\0", "K\1"), KEYS THREE));
    assert_ok(PICKLE(TENSOR("K\3", "K\0", "", ""), KEYS THREE));
#define REFUSED(text, tail, sentence)                                                  \
    assert_fails(PICKLE(text, tail), NAMI_EINPUT, sentence)
    REFUSED(TENSOR("K\3", "K\1", "K\3", "K\1"), KEYS THREE, "outside of its 3");
    REFUSED(TENSOR("K\3", "K\0", "K\2K\2", "K\2K\1"), KEYS THREE, "outside of its 3");
    REFUSED(TENSOR("K\3", "K\4", "K\0", "K\1"), KEYS THREE, "outside of its 3");
    REFUSED(TENSOR("K\3", "J\xff\xff\xff\xff", "K\1", "K\1"), KEYS THREE, "outside");
    REFUSED(TENSOR("K\3", "K\2", "K\3", "J\xff\xff\xff\xff"), KEYS THREE, "outside");
    REFUSED(TENSOR("K\3", "K\0", "J\xff\xff\xff\xff", "K\1"), KEYS THREE, "damaged");
    REFUSED(TENSOR("K\3", "K\0", "K\3", ""), KEYS THREE, "damaged");
    REFUSED(TENSOR("K\3", "K\0", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f",
                   "K\0K\0K\0"),
            KEYS THREE, "more elements");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f"),
            KEYS THREE, "outside");
    REFUSED(TENSOR("K\4", "K\0", "K\3", "K\1"), KEYS THREE, "storage k is");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "K\1"), KEYS "\3\0\0\0\0\0\0\0ab",
            "storage k is");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "K\1"), KEYS THREE "x", "1 bytes follow");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "K\1"), KEYS "\xff\xff\xff\xff\xff\xff\xff\x7f",
            "storage k is");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "K\1"), "\x80\2].", "array w");
    REFUSED(TENSOR("K\3", "K\0", "K\3", "K\1"), "\x80\2]X\1\0\0\0ja." THREE,
            "storage j is");
    /* names that would do something */
    REFUSED("\x80\2cposix\nsystem\nX\2\0\0\0ls\x85R.", KEYS, "asks for posix.system");
    REFUSED("\x80\2c__builtin__\neval\n.", KEYS, "asks for __builtin__.eval");
    REFUSED("\x80\2ctorch\nload\n.", KEYS, "asks for torch.load");
    REFUSED("\x80\2ctorch\nFloatStorage\n)R.", KEYS, "from nothing");
    REFUSED("\x80\2]]R.", KEYS, "a call of no name");
    /* a stack that is none */
    REFUSED("\x80\2.", KEYS, "a value is missing");
    REFUSED("\x80\2(.", KEYS, "a value is missing");
    REFUSED("\x80\2]].", KEYS, "left over");
    REFUSED("\x80\2t.", KEYS, "too few values");
    REFUSED("\x80\2(\x85.", KEYS, "too few values");
    REFUSED("\x80\2}(K\1u.", KEYS, "no list or dictionary");
    REFUSED("\x80\2}(K\1s.", KEYS, "no list or dictionary");
    REFUSED("\x80\2h\0.", KEYS, "not kept");
    REFUSED("\x80\2]r\xff\xff\xff\xff.", KEYS, "out of order");
    REFUSED("\x80\2X\xff\xff\xff\xffx.", KEYS, "cut short");
    REFUSED("\x80\2X\0\1\0\0x.", KEYS, "cut short");
    REFUSED("\x80\4].", KEYS, "another protocol");
    REFUSED("\x80\2\x81.", KEYS, "opcode 0x81");
    REFUSED("\x80\2]]b.", KEYS, "something else than a dictionary");
    REFUSED("\x80\2NQ.", KEYS, "a storage that is none");
    REFUSED("\x80\2].", "\x80\2].", "expected a dictionary");
    REFUSED("\x80\2}q\0X\1\0\0\0ah\0s.", "\x80\2].", "no arrays");
}

/* A list is copied again and again by the two bytes that name it. */
static void test_growth(void **state)
{
    enum { PAIRS = 3000, COPIES = 60000 };
    static char file[1 << 20];
    static const char head[] = "\x80\2\x8a\12\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                               "\x80\2M\xe9\3.\x80\2}.\x80\2]";
    size_t n = sizeof head - 1;
    (void)state;
    memcpy(file, head, n);
    file[n++] = '(';
    for (int i = 0; i < PAIRS; i++, n += 3)
        memcpy(file + n, "NN\x86", 3);
    memcpy(file + n, "e\x85q\0", 4); /* a tuple of the list */
    n += 4;
    memcpy(file + n, "ccollections\nOrderedDict\nq\1", 27);
    n += 27;
    for (int i = 0; i < COPIES; i++, n += 5)
        memcpy(file + n, "h\1h\0R", 5);
    file[n++] = '.';
    put(file, n);
    assert_fails(try(), NAMI_EINPUT, "more than 16777216 items");
    memset(file + sizeof head - 1, ']', sizeof file - sizeof head + 1);
    put(file, sizeof file);
    assert_fails(try(), NAMI_EINPUT, "cut short");
}

/* --- zip --- */

/* The stored archive with `bytes` at `offset` of the directory entry of member number `entry`. */
static nami_status try_zip(int entry, size_t offset, const char *bytes, size_t count)
{
    static char file[1 << 16];
    char source[512];
    FILE *f = fopen(nami_test_source(source, "tests/data/weights-zip.pt"), "rb");
    assert_non_null(f);
    size_t n = fread(file, 1, sizeof file, f), at = 0;
    fclose(f);
    for (int seen = -1; at + 46 < n && seen < entry; at++)
        if (!memcmp(file + at, "PK\1\2", 4) && ++seen == entry)
            break;
    assert_true(at + 46 < n);
    memcpy(file + at + offset, bytes, count);
    put(file, n);
    return try();
}

static void test_zip(void **state)
{
    (void)state;
    assert_ok(try_zip(0, 0, "P", 1));
    assert_fails(try_zip(1, 10, "\x8", 1), NAMI_EINPUT, "packed or encrypted");
    assert_fails(try_zip(1, 8, "\x1", 1), NAMI_EINPUT, "packed or encrypted");
    assert_fails(try_zip(1, 24, "\xff\xff\xff\x7f", 4), NAMI_EINPUT, "packed");
    assert_fails(try_zip(1, 20, "\xff\xff\xff\x7f\xff\xff\xff\x7f", 8), NAMI_EINPUT,
                 "outside of it");
    assert_fails(try_zip(1, 42, "\xff\xff\xff\x7f", 4), NAMI_EINPUT, "outside of it");
    assert_fails(try_zip(2, 42, "\0\0\0\0", 4), NAMI_EINPUT, "share bytes");
    assert_fails(try_zip(2, 28, "\xff\xff", 2), NAMI_EINPUT, "damaged directory");
    assert_fails(try_zip(2, 0, "X", 1), NAMI_EINPUT, "damaged directory");
    assert_fails(try_zip(0, 47, "X", 1), NAMI_EINPUT, "");
}

static void put_number(char *at, uint64_t n, int count)
{
    for (int i = 0; i < count; i++, n >>= 8)
        at[i] = (char)(n & 0xff);
}

static uint64_t get_number(const char *at, int count)
{
    uint64_t n = 0;
    for (int i = count - 1; i >= 0; i--)
        n = n << 8 | (unsigned char)at[i];
    return n;
}

/* Give the last directory entry, at `entry` of file[0..n), its sizes and place in 64 bits; `more`: added to its place.
 * Returns the new length. */
static size_t widen_entry(char *file, size_t n, size_t entry, uint64_t more)
{
    const size_t extra = entry + 46 + get_number(file + entry + 28, 2);
    const uint64_t plain = get_number(file + entry + 24, 4),
                   packed = get_number(file + entry + 20, 4),
                   place = get_number(file + entry + 42, 4);
    memmove(file + extra + 28, file + extra, n - extra);
    put_number(file + extra, 1, 2);
    put_number(file + extra + 2, 24, 2);
    put_number(file + extra + 4, plain, 8);
    put_number(file + extra + 12, packed, 8);
    put_number(file + extra + 20, place + more, 8);
    put_number(file + entry + 30, get_number(file + entry + 30, 2) + 28, 2);
    memset(file + entry + 20, 0xff, 8);
    memset(file + entry + 42, 0xff, 4);
    return n + 28;
}

/* The stored archive with a 64-bit end and, in its last entry, 64-bit sizes. */
static nami_status try_zip64(uint64_t more, uint64_t count_more)
{
    static char file[1 << 16];
    char source[512], end[22], *wide;
    FILE *f = fopen(nami_test_source(source, "tests/data/weights-zip.pt"), "rb");
    assert_non_null(f);
    size_t n = fread(file, 1, sizeof file - 200, f), entry;
    fclose(f);
    n -= sizeof end;
    while (memcmp(file + n, "PK\5\6", 4) != 0 || get_number(file + n + 20, 2) != 0)
        n--; /* of more records than one, the last */
    memcpy(end, file + n, sizeof end);
    const uint64_t directory = get_number(end + 16, 4), count = get_number(end + 10, 2);
    n = directory + get_number(end + 12, 4);
    for (entry = n - 46; memcmp(file + entry, "PK\1\2", 4) != 0;)
        entry--;
    n = widen_entry(file, n, entry, more);
    wide = file + n;
    memset(wide, 0, 76);
    memcpy(wide, "PK\6\6", 4);
    put_number(wide + 32, count + count_more, 8);
    put_number(wide + 40, n - directory, 8);
    put_number(wide + 48, directory, 8);
    memcpy(wide + 56, "PK\6\7", 4);
    put_number(wide + 64, n, 8);
    memset(end + 10, 0xff, 10);
    memcpy(wide + 76, end, sizeof end);
    put(file, n + 76 + sizeof end);
    return try();
}

static void test_zip64(void **state)
{
    (void)state;
    assert_ok(try_zip64(0, 0));
    assert_fails(try_zip64(UINT64_C(1) << 40, 0), NAMI_EINPUT, "outside of it");
    assert_fails(try_zip64(UINT64_MAX - 5, 0), NAMI_EINPUT, "");
    assert_fails(try_zip64(0, 1), NAMI_EINPUT, "damaged directory");
    assert_fails(try_zip64(0, UINT64_C(1) << 50), NAMI_EINPUT, "too long");
}

/* --- index --- */

static nami_status try_index(const char *json)
{
    char kept[512];
    memcpy(kept, path, sizeof kept);
    nami_test_path(path, "hostile.index.json");
    put(json, strlen(json));
    nami_status status = try();
    memcpy(path, kept, sizeof kept);
    return status;
}

static void test_index(void **state)
{
    (void)state;
    assert_ok(try_header("{" A("[2,3]", "0", "24") "}", 24)); /* the file named below */
    assert_ok(try_index("{\"weight_map\":{\"a\":\"hostile.file\"}}"));
    assert_fails(try_index("{\"weight_map\":{\"b\":\"hostile.file\"}}"), NAMI_EINPUT,
                 "array b is not in");
    assert_fails(
        try_index("{\"weight_map\":{\"a\":\"hostile.file\",\"b\":\"hostile.file\"}}"),
        NAMI_EINPUT, "has 1 arrays");
    assert_fails(try_index("{\"weight_map\":{\"a\":\"../hostile.file\"}}"), NAMI_EINPUT,
                 "a file beside");
    assert_fails(try_index("{\"weight_map\":{\"a\":\"\"}}"), NAMI_EINPUT,
                 "a file beside");
    assert_fails(try_index("{\"weight_map\":{\"a\":\"none\"}}"), NAMI_EINPUT, "none");
    assert_fails(try_index("{\"weight_map\":{}}"), NAMI_EINPUT, "with arrays");
    assert_fails(try_index("{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
                 NAMI_EINPUT, "brackets");
    assert_fails(try_index(""), NAMI_EINPUT, "expected '{'");
}

int main(void)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(test_legal),   cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_pickles),
        cmocka_unit_test(test_growth),  cmocka_unit_test(test_zip),
        cmocka_unit_test(test_zip64),   cmocka_unit_test(test_index),
    };
    nami_test_path(path, "hostile.file");
    return cmocka_run_group_tests(test, NULL, nami_test_balance);
}
