/* SPDX-License-Identifier: MIT */
/* scale.c - a decoded picture to the size of a set. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/decode.h"

/* Which inputs make output i of one direction: weights of [from, from+count), at most `room`. */
typedef struct taps {
    int64_t from, count;
    double *weight;
} taps;

/* Output `i` of a direction scaled by `scale` input pixels an output pixel, its grid starting at `offset`. */
static void find_taps(int64_t i, double scale, double offset, int64_t size, taps *t)
{
    double reach = scale > 1 ? scale : 1, sum = 0;
    double centre = offset + ((double)i + 0.5) * scale;
    int64_t first = (int64_t)floor(centre - reach + 0.5);
    int64_t last = (int64_t)floor(centre + reach + 0.5);
    t->from = first < 0 ? 0 : first;
    t->count = (last > size ? size : last) - t->from;
    for (int64_t k = 0; k < t->count; k++) {
        double distance = fabs((double)(t->from + k) + 0.5 - centre) / reach;
        t->weight[k] = distance < 1 ? 1 - distance : 0;
        sum += t->weight[k];
    }
    for (int64_t k = 0; k < t->count; k++)
        t->weight[k] /= sum;
}

/* One row of the picture across: out [side, channels]. */
static void scale_row(const nami_bitmap *in, int64_t row, int64_t side, double scale,
                      double *weight, double *out)
{
    taps t = {.weight = weight};
    double offset = ((double)in->width - (double)side * scale) / 2;
    for (int64_t x = 0; x < side; x++) {
        find_taps(x, scale, offset, in->width, &t);
        const uint8_t *p = in->pixel + (row * in->width + t.from) * in->channels;
        for (int64_t c = 0; c < in->channels; c++) {
            double sum = 0;
            for (int64_t k = 0; k < t.count; k++)
                sum += t.weight[k] * p[k * in->channels + c];
            out[x * in->channels + c] = sum;
        }
    }
}

/* Row `y` of the result from `across` [H,side*channels], into planes. */
static void scale_down(const nami_bitmap *in, int64_t y, int64_t side, const taps *t,
                       const double *across, uint8_t *out)
{
    int64_t channels = in->channels, width = side * channels;
    for (int64_t x = 0; x < width; x++) {
        double sum = 0.5;
        for (int64_t k = 0; k < t->count; k++)
            sum += t->weight[k] * across[(t->from + k) * width + x];
        out[(x % channels * side + y) * side + x / channels] =
            (uint8_t)(sum < 0     ? 0
                      : sum > 255 ? 255
                                  : sum);
    }
}

static void copy_planes(const nami_bitmap *in, uint8_t *out)
{
    int64_t plane = in->height * in->width;
    for (int64_t e = 0; e < plane; e++)
        for (int64_t c = 0; c < in->channels; c++)
            out[c * plane + e] = in->pixel[e * in->channels + c];
}

void nami_bitmap_planes(const nami_bitmap *in, int64_t side, uint8_t *out)
{
    if (side == 0 || (side == in->height && side == in->width)) {
        copy_planes(in, out);
        return;
    }
    int64_t shorter = in->height < in->width ? in->height : in->width;
    double scale = (double)shorter / (double)side;
    size_t most = 2 * (size_t)(scale > 1 ? scale + 1 : 1) + 3;
    double *weight = nami_calloc(NAMI_MEM_DATA, most, sizeof *weight);
    size_t width = (size_t)(side * in->channels);
    double *across =
        nami_calloc(NAMI_MEM_DATA, (size_t)in->height * width, sizeof *across);
    for (int64_t row = 0; row < in->height; row++)
        scale_row(in, row, side, scale, weight, across + (size_t)row * width);
    taps t = {.weight = weight};
    double offset = ((double)in->height - (double)side * scale) / 2;
    for (int64_t y = 0; y < side; y++) {
        find_taps(y, scale, offset, in->height, &t);
        scale_down(in, y, side, &t, across, out);
    }
    nami_free(across);
    nami_free(weight);
}
