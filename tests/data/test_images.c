/* SPDX-License-Identifier: MIT */
/* test_images.c - every importer of images gives the images it was given, or one sentence. */
#include "data/image_files.h"

#include <math.h>
#include <unistd.h>

#include "base/text.h"
#include "data/decode.h"

/* The set at `path` is these images [n,C,H,W] and labels. */
static void expect_images(const char *path, const uint8_t *pixel, const uint8_t *label,
                          const nami_image_facts *want)
{
    nami_images *d;
    double mean = 0, square = 0;
    assert_ok(nami_images_open(NULL, path, &d));
    const nami_image_facts *f = nami_images_facts(d);
    assert_int_equal(f->samples, want->samples);
    assert_int_equal(f->channels, want->channels);
    assert_int_equal(f->height, want->height);
    assert_int_equal(f->width, want->width);
    assert_int_equal(f->classes, want->classes);
    int64_t plane = f->height * f->width, bytes = f->channels * plane;
    for (int64_t i = 0; i < f->samples; i++) {
        const uint8_t *got;
        assert_ok(nami_images_pixels(d, i, &got));
        assert_memory_equal(got, pixel + i * bytes, (size_t)bytes);
        assert_int_equal(nami_images_label(d, i), label[i]);
        for (int64_t e = 0; e < plane; e++) { /* of the last channel */
            mean += got[bytes - plane + e] / 255.0;
            square += pow(got[bytes - plane + e] / 255.0, 2);
        }
    }
    mean /= (double)(f->samples * plane);
    square /= (double)(f->samples * plane);
    assert_true(fabs(f->mean[f->channels - 1] - mean) < 1e-8);
    assert_true(fabs(pow(f->deviation[f->channels - 1], 2) - square + mean * mean) <
                1e-8);
    nami_images_close(d);
}

static int largest(const uint8_t *p, int64_t n)
{
    int most = 0;
    for (int64_t i = 0; i < n; i++)
        most = p[i] > most ? p[i] : most;
    return most;
}

static void test_idx(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(61);
    static const int shape[][3] = {{1, 1, 1}, {7, 28, 28}, {3, 5, 2}, {9001, 28, 28}};
    char images[512], labels[512], out[512];
    nami_test_path(out, "o.h5");
    for (int k = 0; k < 4; k++) {
        int64_t n = shape[k][0], h = shape[k][1], w = shape[k][2];
        uint8_t *pixel = noise_below((size_t)(n * h * w), 256, seed + (uint64_t)k);
        uint8_t *label = noise_below((size_t)n, 10, seed + 100 + (uint64_t)k);
        size_t bytes, label_bytes;
        unsigned char *a = idx(pixel, n, h, w, &bytes);
        unsigned char *b = idx(label, n, 0, 0, &label_bytes);
        (k % 2 ? put_gz : put)(images, k % 2 ? "i.gz" : "i", a, bytes);
        (k % 3 ? put_gz : put)(labels, k % 3 ? "l.gz" : "l", b, label_bytes);
        assert_ok(import_images(NAMI_IMPORT_IDX, images, labels, out, 0));
        nami_image_facts want = {.samples = n,
                                 .channels = 1,
                                 .height = h,
                                 .width = w,
                                 .classes = largest(label, n) + 1};
        expect_images(out, pixel, label, &want);
        nami_free(b);
        nami_free(a);
        nami_free(label);
        nami_free(pixel);
    }
    assert_int_equal(count_files("tmp"), 0);
}

/* Two pairs, cut inside the second. */
static void test_joined(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(62);
    enum { N = 40, H = 3, W = 5 };
    uint8_t *pixel = noise_below(N * H * W, 256, seed),
            *label = noise_below(N, 200, seed + 1);
    char path[4][512], out[512], train[512], valid[512];
    char *input[4] = {path[0], path[1], path[2], path[3]};
    size_t bytes;
    for (int k = 0; k < 2; k++) {
        int from = k ? 13 : 0, n = k ? N - 13 : 13;
        unsigned char *a = idx(pixel + from * H * W, n, H, W, &bytes);
        put(path[2 * k], k ? "i1" : "i0", a, bytes);
        nami_free(a);
        a = idx(label + from, n, 0, 0, &bytes);
        put(path[2 * k + 1], k ? "l1" : "l0", a, bytes);
        nami_free(a);
    }
    nami_import im = {.format = NAMI_IMPORT_IDX,
                      .input = input,
                      .inputs = 4,
                      .output = nami_test_path(out, "o.h5"),
                      .split = 0.75,
                      .classes = 300};
    assert_ok(nami_import_run(&im));
    nami_image_facts want = {
        .samples = 30, .channels = 1, .height = H, .width = W, .classes = 300};
    expect_images(nami_test_path(train, "o-train.h5"), pixel, label, &want);
    want.samples = 10;
    expect_images(nami_test_path(valid, "o-valid.h5"), pixel + 30 * H * W, label + 30,
                  &want);
    im.classes = 5;
    assert_fails(nami_import_run(&im), NAMI_EINPUT, "--classes is 5");
    im.classes = 0;
    im.inputs = 3;
    assert_fails(nami_import_run(&im), NAMI_EINPUT, "pairs");
    im.inputs = 2;
    im.split = 0.001;
    assert_fails(nami_import_run(&im), NAMI_EINPUT, "too few");
    im.split = 0;
    im.vocabulary = 7;
    assert_fails(nami_import_run(&im), NAMI_EINPUT, "--vocabulary is for tokens");
    nami_free(label);
    nami_free(pixel);
}

/* Records of `labels` label bytes and an image. */
static void cifar(nami_import_format format, int labels, int classes, uint64_t seed)
{
    enum { N = 21, IMAGE = 3072 };
    char in[512], out[512];
    uint8_t *pixel = noise_below(N * IMAGE, 256, seed),
            *label = noise_below(N, classes, seed + 1);
    size_t record = (size_t)labels + IMAGE, bytes = N * record;
    uint8_t *file = noise_below(bytes, 20, seed + 2); /* coarse labels of CIFAR-100 */
    for (size_t i = 0; i < N; i++) {
        file[i * record + (size_t)labels - 1] = label[i];
        memcpy(file + i * record + (size_t)labels, pixel + i * IMAGE, IMAGE);
    }
    nami_test_path(out, "o.h5");
    put(in, "c.bin", file, bytes);
    assert_ok(import_images(format, in, NULL, out, 0));
    nami_image_facts want = {
        .samples = N, .channels = 3, .height = 32, .width = 32, .classes = classes};
    expect_images(out, pixel, label, &want);
    put_gz(in, "c.bin.gz", file, bytes);
    assert_ok(import_images(format, in, NULL, out, 0));
    expect_images(out, pixel, label, &want);
    put(in, "c.bin", file, bytes - 1);
    assert_fails(import_images(format, in, NULL, out, 0), NAMI_EINPUT, "truncated");
    put(in, "c.bin", file, 0);
    assert_fails(import_images(format, in, NULL, out, 0), NAMI_EINPUT, "has 0 bytes");
    file[5 * record + (size_t)labels - 1] = (uint8_t)classes;
    put(in, "c.bin", file, bytes);
    assert_fails(import_images(format, in, NULL, out, 0), NAMI_EINPUT,
                 "label of image 5");
    nami_free(file);
    nami_free(label);
    nami_free(pixel);
}

static void test_cifar(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(63);
    cifar(NAMI_IMPORT_CIFAR10, 1, 10, seed);
    cifar(NAMI_IMPORT_CIFAR100, 2, 100, seed + 10);
}

/* Refused with the sentence, and nothing written. */
static void refuse_idx(const unsigned char *image, size_t bytes,
                       const unsigned char *label, size_t label_bytes,
                       const char *sentence)
{
    char images[512], labels[512], out[512];
    put(images, "i", image, bytes);
    put(labels, "l", label, label_bytes);
    nami_test_path(out, "none.h5");
    assert_fails(import_images(NAMI_IMPORT_IDX, images, labels, out, 0), NAMI_EINPUT,
                 sentence);
    assert_int_equal(access(out, F_OK), -1);
    assert_int_equal(count_files("tmp"), 0);
}

static void test_hostile_idx(void **state)
{
    (void)state;
    enum { N = 4, H = 3, W = 2, ALL = N * H * W };
    static const uint8_t pixel[ALL] = {1}, label[N] = {0, 1, 2, 3};
    size_t bytes, few;
    unsigned char *a = idx(pixel, N, H, W, &bytes), *b = idx(label, N, 0, 0, &few);
    refuse_idx(a, 0, b, few, "has 0 bytes, less than the 16");
    refuse_idx(a, 15, b, few, "less than the 16");
    refuse_idx(a, bytes - 1, b, few, "truncated or damaged");
    refuse_idx(a, bytes, b, few - 1, "announces 4 labels");
    refuse_idx(a, bytes, b, 3, "less than the 8");
    refuse_idx(b, few, a, bytes, "the order is IMAGES LABELS");
    refuse_idx((const unsigned char *)"no magic number here", 20, b, few,
               "is not an IDX file: it starts with 6e 6f 20 6d");
    a[2] = 13;
    refuse_idx(a, bytes, b, few, "IDX type 0d");
    a[2] = 8;
    big32(b + 4, N - 1);
    refuse_idx(a, bytes, b, few - 1, "4 images, but");
    big32(b + 4, N);
    big32(a + 8, 0);
    refuse_idx(a, bytes, b, few, "dimension 1 is 0");
    big32(a + 8, 65536);
    refuse_idx(a, bytes, b, few, "dimension 1 is 65536");
    big32(a + 4, 0xffffffff);
    big32(a + 8, 65535);
    big32(a + 12, 65535);
    refuse_idx(a, bytes, b, few, "more bytes than a file can hold");
    nami_free(a);
    nami_free(b);
}

/* A small .gz that unpacks to much more than it announces, or announces more than it can hold. */
static void test_bombs(void **state)
{
    (void)state;
    enum { ZEROS = 64 << 20 };
    char images[512], labels[512], out[512];
    uint8_t label[4] = {0};
    size_t bytes, few;
    uint8_t *zero = nami_calloc(NAMI_MEM_OTHER, ZEROS, 1);
    unsigned char *a = idx(zero, ZEROS / 64, 8, 8, &bytes);
    unsigned char *b = idx(label, 4, 0, 0, &few);
    put(labels, "l", b, few);
    nami_test_path(out, "none.h5");
    big32(a + 4, 4);
    put_gz(images, "bomb.gz", a, bytes);
    assert_fails(import_images(NAMI_IMPORT_IDX, images, labels, out, 0), NAMI_EINPUT,
                 "holds at least 257");
    big32(a + 4, 0x7fffffff);
    put_gz(images, "bomb.gz", a, 1000);
    assert_fails(import_images(NAMI_IMPORT_IDX, images, labels, out, 0), NAMI_EINPUT,
                 "bytes of gzip data can hold");
    big32(a + 4, 4);
    put(images, "not.gz", a, 16 + 256);
    assert_fails(import_images(NAMI_IMPORT_IDX, images, labels, out, 0), NAMI_EINPUT,
                 "is not gzip data");
    put_gz(images, "ok.gz", a, 16 + 256);
    assert_ok(import_images(NAMI_IMPORT_IDX, images, labels, out, 0));
    unlink(out);
    nami_free(b);
    nami_free(a);
    nami_free(zero);
}

/* Data sets whose arrays and attributes do not fit together. */
static void test_damaged_set(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(64);
    uint8_t *pixel = noise_below(8 * 16, 256, seed),
            *label = noise_below(8, 250, seed + 1);
    char images[512], labels[512], out[512];
    size_t bytes, size;
    unsigned char *a = idx(pixel, 8, 4, 4, &bytes), file[65536];
    put(images, "i", a, bytes);
    nami_free(a);
    a = idx(label, 8, 0, 0, &bytes);
    put(labels, "l", a, bytes);
    nami_free(a);
    nami_test_path(out, "o.h5");
    assert_ok(import_images(NAMI_IMPORT_IDX, images, labels, out, 0));
    FILE *f = fopen(out, "rb");
    size = fread(file, 1, sizeof file, f);
    fclose(f);
    nami_images *d;
    nami_data *tokens;
    assert_fails(nami_data_open(NULL, out, 1, 0, &tokens), NAMI_EINPUT, "images");
    for (size_t i = 0; i + 128 <= size; i++)
        if (!memcmp(file + i, pixel, 128)) {
            file[i] ^= 1;
            put(out, "o.h5", file, size);
            assert_fails(nami_images_open(NULL, out, &d), NAMI_EINPUT,
                         "its pixels have checksum");
            file[i] ^= 1;
        }
    for (size_t i = 0; i + 8 <= size; i++)
        if (!memcmp(file + i, label, 8)) {
            file[i] ^= 1;
            put(out, "o.h5", file, size);
            assert_fails(nami_images_open(NULL, out, &d), NAMI_EINPUT,
                         "its labels have checksum");
            file[i] ^= 1;
        }
    put(out, "o.h5", file, size / 2);
    assert_status(nami_images_open(NULL, out, &d), NAMI_EINPUT);
    nami_free(label);
    nami_free(pixel);
}

static void make_folder(const char *name)
{
    char path[512];
    mkdir(nami_test_path(path, name), 0777);
}

static nami_status import_folder(int64_t channels, int64_t size, const char *out)
{
    char path[512], *input[1] = {path};
    nami_test_path(path, "folder");
    nami_import im = {.format = NAMI_IMPORT_FOLDER,
                      .input = input,
                      .inputs = 1,
                      .output = out,
                      .channels = channels,
                      .size = size};
    return nami_import_run(&im);
}

#if defined NAMI_HAVE_PNG && defined NAMI_HAVE_JPEG
/* Classes and files in the order of their names; PNG exactly, JPEG nearly. */
static void test_folder(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(65);
    enum { H = 6, W = 9, PLANE = H * W };
    char path[512], out[512];
    uint8_t *rgb = noise_below(3 * PLANE, 256, seed), planar[2 * 3 * PLANE],
            grey[PLANE];
    size_t bytes;
    memset(grey, 77, sizeof grey);
    make_folder("folder");
    make_folder("folder/zebra");
    make_folder("folder/ant");
    nami_test_path(out, "o.h5");
    assert_fails(import_folder(0, 0, out), NAMI_EINPUT, "holds no image");
    unsigned char *p = png(rgb, H, W, 3, &bytes);
    put(path, "folder/zebra/b.png", p, bytes);
    nami_free(p);
    p = jpeg(grey, H, W, 1, false, &bytes);
    put(path, "folder/ant/a.dat", p, bytes);
    nami_free(p);
    put(path, "folder/ant/.hidden", "x", 1);
    assert_ok(import_folder(0, 0, out));
    for (int e = 0; e < PLANE; e++)
        for (int c = 0; c < 3; c++) {
            planar[c * PLANE + e] = 77;
            planar[(3 + c) * PLANE + e] = rgb[3 * e + c];
        }
    nami_image_facts want = {
        .samples = 2, .channels = 3, .height = H, .width = W, .classes = 2};
    expect_images(out, planar, (const uint8_t[]){0, 1}, &want);
    nami_images *d;
    assert_ok(nami_images_open(NULL, out, &d));
    assert_string_equal(nami_images_names(d), "ant\nzebra");
    nami_images_close(d);
    p = png(rgb, W, H, 3, &bytes);
    put(path, "folder/zebra/c.png", p, bytes);
    assert_fails(import_folder(0, 0, out), NAMI_EINPUT, "--size N");
    assert_ok(import_folder(1, 4, out));
    put(path, "folder/zebra/c.png", p, bytes / 2);
    assert_fails(import_folder(0, 4, out), NAMI_EINPUT, "damaged PNG");
    put(path, "folder/zebra/c.png", p, 0);
    assert_fails(import_folder(0, 4, out), NAMI_EINPUT, "it is empty");
    put(path, "folder/zebra/c.png", "text", 4);
    assert_fails(import_folder(0, 4, out), NAMI_EINPUT, "neither a JPEG nor a PNG");
    unlink(path);
    make_folder("folder/zebra/more");
    assert_fails(import_folder(0, 4, out), NAMI_EINPUT, "is not a file");
    nami_free(p);
    nami_free(rgb);
}

/* Colour, grey, inks, progressive: what comes back is near what went in. */
static void test_jpeg(void **state)
{
    (void)state;
    enum { H = 16, W = 24 };
    uint8_t pixel[H * W * 4];
    size_t bytes;
    for (int kind = 0; kind < 4; kind++) {
        int channels = kind == 0 ? 1 : kind == 3 ? 4 : 3;
        for (int i = 0; i < H * W * channels; i++)
            pixel[i] = (uint8_t)(100 + i / channels / W * 4 + i % channels * 20);
        if (channels == 4) /* no black */
            for (int i = 3; i < H * W * 4; i += 4)
                pixel[i] = 255;
        unsigned char *p = jpeg(pixel, H, W, channels, kind == 2, &bytes);
        nami_bitmap b;
        assert_ok(nami_decode("x", p, bytes, channels == 1 ? 1 : 3, &b));
        assert_int_equal(b.height, H);
        assert_int_equal(b.width, W);
        for (int i = 0; i < H * W; i++)
            for (int c = 0; c < (channels == 1 ? 1 : 3); c++)
                assert_in_range(b.pixel[i * (int)b.channels + c] + 4,
                                pixel[i * channels + c], pixel[i * channels + c] + 8);
        nami_free(b.pixel);
        for (size_t cut = 0; cut < bytes; cut += 7) {
            assert_status(nami_decode("x", p, cut, 3, &b), NAMI_EINPUT);
            assert_null(b.pixel);
        }
        nami_free(p);
    }
}

/* A PNG header that announces a huge picture is refused before anything is allocated. */
static void test_huge(void **state)
{
    (void)state;
    uint8_t pixel[4] = {0};
    size_t bytes;
    nami_bitmap b;
    unsigned char *p = png(pixel, 2, 2, 1, &bytes);
    big32(p + 16, 60000);
    big32(p + 20, 60000);
    big32(p + 29, (uint32_t)crc32(0, p + 12, 17));
    assert_fails(nami_decode("x", p, bytes, 1, &b), NAMI_EINPUT, "60000 x 60000");
    nami_free(p);
    p = jpeg(pixel, 2, 2, 1, false, &bytes);
    for (size_t i = 0; i + 9 < bytes; i++)
        if (p[i] == 0xff && p[i + 1] == 0xc0)
            memset(p + i + 5, 0xfe, 4);
    assert_fails(nami_decode("x", p, bytes, 1, &b), NAMI_EINPUT, "65278 x 65278");
    nami_free(p);
}
#else
static void test_absent(void **state)
{
    (void)state;
    char path[512], out[512];
    make_folder("folder");
    make_folder("folder/a");
    put(path, "folder/a/a", "\211PNG\r\n\032\n", 8);
    assert_fails(import_folder(0, 0, nami_test_path(out, "o.h5")), NAMI_EINPUT, "");
}
#endif

/* What a filter of positive weights that sum to one must do. */
static void test_scale(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(66);
    for (uint64_t trial = 0; trial < 60; trial++) {
        int64_t h = 1 + (int64_t)(nami_mix(seed, 3 * trial) % 60),
                w = 1 + (int64_t)(nami_mix(seed, 3 * trial + 1) % 60),
                side = 1 + (int64_t)(nami_mix(seed, 3 * trial + 2) % 40), n = h * w;
        nami_bitmap b = {.height = h, .width = w, .channels = 3};
        uint8_t *out = nami_alloc(NAMI_MEM_OTHER, (size_t)(3 * side * side));
        b.pixel = nami_alloc(NAMI_MEM_OTHER, (size_t)(3 * n));
        for (int64_t i = 0; i < 3 * n; i++) /* constant; down; across */
            b.pixel[i] = (uint8_t)(i % 3 == 0   ? 9
                                   : i % 3 == 1 ? 4 * (i / 3 / w)
                                                : 4 * (i / 3 % w));
        nami_bitmap_planes(&b, side, out);
        double scale = (double)(h < w ? h : w) / (double)side;
        for (int64_t y = 0; y < side; y++)
            for (int64_t x = 0; x < side; x++) {
                double at[2] = {
                    ((double)y + 0.5 - (double)side / 2) * scale + (double)h / 2 - 0.5,
                    ((double)x + 0.5 - (double)side / 2) * scale + (double)w / 2 - 0.5};
                double reach = scale > 1 ? scale : 1, size[2] = {(double)h, (double)w};
                assert_int_equal(out[y * side + x], 9);
                for (int c = 0; c < 2; c++) /* linear where the filter is inside */
                    if (at[c] - reach > 0 && at[c] + reach < size[c] - 1)
                        assert_true(fabs(out[((c + 1) * side + y) * side + x] -
                                         4 * at[c]) < 1.01);
            }
        nami_free(b.pixel);
        nami_free(out);
    }
}

/* The real thing, where Debian's package is. */
static void test_fashion(void **state)
{
    (void)state;
    const char *folder = "/usr/share/datasets/fashion-mnist";
    char out[512], *images = nami_strf("%s/t10k-images-idx3-ubyte.gz", folder),
                   *labels = nami_strf("%s/t10k-labels-idx1-ubyte.gz", folder);
    int count[10] = {0};
    bool there = access(images, R_OK) == 0 && access(labels, R_OK) == 0;
    nami_test_path(out, "fashion.h5");
    nami_status status =
        there ? import_images(NAMI_IMPORT_IDX, images, labels, out, 0) : NAMI_OK;
    nami_free(labels);
    nami_free(images);
    assert_ok(status);
    if (!there)
        skip();
    nami_images *d;
    assert_ok(nami_images_open(NULL, out, &d));
    for (int64_t i = 0; i < 10000; i++)
        count[nami_images_label(d, i)]++;
    for (int i = 0; i < 10; i++)
        assert_int_equal(count[i], 1000);
    assert_non_null(strstr(nami_images_identity(d), "crc32:12728439"));
    nami_images_close(d);
}

int main(void)
{
    nami_log_level(NAMI_WARNING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idx),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_cifar),
        cmocka_unit_test(test_hostile_idx),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_damaged_set),
#if defined NAMI_HAVE_PNG && defined NAMI_HAVE_JPEG
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_huge),
#else
        cmocka_unit_test(test_absent),
#endif
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_fashion),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
