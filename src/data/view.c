/* SPDX-License-Identifier: MIT */
/* view.c - what a model sees of an image: padding, augmentation, normalisation. */
#include "base/rng.h"
#include "data/images.h"

/* Number `index` of a sample's chances, uniform in 0..n-1. */
static int64_t draw(uint64_t key, uint64_t index, int64_t n)
{
    return (int64_t)(nami_uniform(key, index) * (double)n);
}

nami_chance nami_view_chance(const nami_view *v, uint64_t key, int64_t counter)
{
    uint64_t own = nami_mix(key, (uint64_t)counter);
    return (nami_chance){.down = draw(own, 0, 2 * v->crop + 1) - v->crop,
                         .right = draw(own, 1, 2 * v->crop + 1) - v->crop,
                         .mirror = v->flip && nami_uniform(own, 2) < 0.5,
                         .cut = v->cutout > 0 && nami_uniform(own, 3) < v->erase,
                         .row = draw(own, 4, v->height + 2 * v->pad),
                         .column = draw(own, 5, v->width + 2 * v->pad)};
}

static bool is_cut(const nami_view *v, const nami_chance *c, int64_t row,
                   int64_t column)
{
    int64_t top = c->row - v->cutout / 2, left = c->column - v->cutout / 2;
    return c->cut && row >= top && row < top + v->cutout && column >= left &&
           column < left + v->cutout;
}

/* One channel [H,W] into every v->channels-th number from `out` on; value[pixel] is the normalised one. */
static void see_channel(const nami_view *v, const nami_chance *c, const uint8_t *pixel,
                        const float *value, float *out)
{
    int64_t height = v->height + 2 * v->pad, width = v->width + 2 * v->pad;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++, out += v->channels) {
            int64_t across = c->mirror ? width - 1 - column : column;
            int64_t y = row + c->down - v->pad, x = across + c->right - v->pad;
            bool inside = y >= 0 && y < v->height && x >= 0 && x < v->width;
            *out = is_cut(v, c, row, column)
                       ? 0.0F
                       : value[inside ? pixel[y * v->width + x] : 0];
        }
}

void nami_view_see(const nami_view *v, const nami_chance *chance, const uint8_t *pixel,
                   float *out)
{
    static const nami_chance none = {0};
    float value[256];
    for (int64_t c = 0; c < v->channels; c++) {
        for (int i = 0; i < 256; i++)
            value[i] = (float)((i / 255.0 - v->mean[c]) / v->deviation[c]);
        see_channel(v, chance ? chance : &none, pixel + c * v->height * v->width, value,
                    out + c);
    }
}
