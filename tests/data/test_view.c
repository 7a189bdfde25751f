/* SPDX-License-Identifier: MIT */
/* test_view.c - what a model sees of an image, and in which order images come. */
#include "nami_test.h"

#include <math.h>

#include "base/rng.h"
#include "data/images.h"

enum { MOST = 3 * 24 * 24 };

static int roll(uint64_t seed, uint64_t *at, int n)
{
    return (int)(nami_mix(seed, (*at)++) % (uint64_t)n);
}

static nami_view random_view(uint64_t seed, uint64_t *at)
{
    nami_view v = {.channels = roll(seed, at, 2) ? 3 : 1,
                   .height = 1 + roll(seed, at, 12),
                   .width = 1 + roll(seed, at, 12),
                   .pad = roll(seed, at, 4),
                   .crop = roll(seed, at, 4),
                   .cutout = roll(seed, at, 6),
                   .flip = roll(seed, at, 2),
                   .erase = roll(seed, at, 3) / 2.0};
    for (int c = 0; c < 3; c++) {
        v.mean[c] = 0.1 * roll(seed, at, 10);
        v.deviation[c] = 0.1 * (1 + roll(seed, at, 9));
    }
    return v;
}

/* One pixel step by step: pad, crop out of the padded, mirror, normalise, cut. */
static float naive(const nami_view *v, const nami_chance *c, const uint8_t *pixel,
                   int64_t channel, int64_t row, int64_t column)
{
    static uint8_t padded[64][64], shifted[64][64];
    int64_t h = v->height + 2 * v->pad, w = v->width + 2 * v->pad;
    memset(padded, 0, sizeof padded);
    memset(shifted, 0, sizeof shifted);
    for (int64_t y = 0; y < v->height; y++)
        for (int64_t x = 0; x < v->width; x++)
            padded[16 + v->pad + y][16 + v->pad + x] =
                pixel[(channel * v->height + y) * v->width + x];
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            shifted[y][c->mirror ? w - 1 - x : x] =
                padded[16 + c->down + y][16 + c->right + x];
    if (c->cut &&
        labs(2 * (row - (c->row - v->cutout / 2)) - v->cutout + 1) < v->cutout &&
        labs(2 * (column - (c->column - v->cutout / 2)) - v->cutout + 1) < v->cutout)
        return 0;
    return (float)((shifted[row][column] / 255.0 - v->mean[channel]) /
                   v->deviation[channel]);
}

static void test_view(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(71), at = 0;
    uint8_t pixel[MOST];
    float out[MOST];
    for (int trial = 0; trial < 200; trial++) {
        nami_view v = random_view(seed, &at);
        for (int i = 0; i < MOST; i++)
            pixel[i] = (uint8_t)roll(seed, &at, 256);
        nami_chance chance = nami_view_chance(&v, seed, trial), none = {0};
        for (int augmented = 0; augmented < 2; augmented++) {
            const nami_chance *c = augmented ? &chance : &none;
            int64_t h = v.height + 2 * v.pad, w = v.width + 2 * v.pad;
            nami_view_see(&v, augmented ? c : NULL, pixel, out);
            for (int64_t e = 0; e < h * w * v.channels; e++)
                assert_true(out[e] == naive(&v, c, pixel, e % v.channels,
                                            e / v.channels / w, e / v.channels % w));
        }
    }
}

/* Each shift equally often, half of them mirrored, `erase` of them cut; the same for the same counter. */
static void test_chances(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(72);
    enum { N = 20000, CROP = 2, CELLS = (2 * CROP + 1) * (2 * CROP + 1) };
    nami_view v = {.channels = 1,
                   .height = 8,
                   .width = 8,
                   .crop = CROP,
                   .cutout = 3,
                   .flip = true,
                   .erase = 0.25};
    int cell[CELLS] = {0}, mirrored = 0, cut = 0;
    for (int64_t n = 0; n < N; n++) {
        nami_chance c = nami_view_chance(&v, seed, n), again;
        again = nami_view_chance(&v, seed, n);
        assert_true(c.down == again.down && c.right == again.right &&
                    c.mirror == again.mirror && c.cut == again.cut &&
                    c.row == again.row && c.column == again.column);
        assert_in_range(c.down + CROP, 0, 2 * CROP);
        assert_in_range(c.right + CROP, 0, 2 * CROP);
        assert_in_range(c.row, 0, 7);
        assert_in_range(c.column, 0, 7);
        cell[(c.down + CROP) * (2 * CROP + 1) + c.right + CROP]++;
        mirrored += c.mirror;
        cut += c.cut;
    }
    double chi = 0, want = (double)N / CELLS;
    for (int i = 0; i < CELLS; i++)
        chi += (cell[i] - want) * (cell[i] - want) / want;
    assert_true(chi < 60); /* 24 degrees of freedom: 1 in 10000 beyond 59 */
    assert_true(fabs(mirrored - 0.5 * N) < 4 * sqrt(0.25 * N));
    assert_true(fabs(cut - 0.25 * N) < 4 * sqrt(0.1875 * N));
    v.flip = false;
    v.erase = 0;
    v.crop = 0;
    for (int64_t n = 0; n < 1000; n++) {
        nami_chance c = nami_view_chance(&v, seed, n);
        assert_false(c.mirror || c.cut || c.down || c.right);
    }
}

/* An epoch visits each image once, the next in another order. */
static void test_order(void **state)
{
    (void)state;
    uint64_t seed = nami_test_seed(73);
    static const int64_t sizes[] = {1, 2, 77, 1000};
    for (int k = 0; k < 4; k++) {
        int64_t n = sizes[k], same = 0;
        char seen[1000] = {0};
        for (int64_t i = 0; i < 3 * n; i++) {
            int64_t index = nami_image_index(n, seed, i);
            assert_in_range(index, 0, n - 1);
            assert_int_equal(seen[index], i / n);
            seen[index]++;
            same += i >= n && index == nami_image_index(n, seed, i - n);
        }
        if (n > 100)
            assert_in_range(same, 0, n / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_chances),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, nami_test_balance);
}
