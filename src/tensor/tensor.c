/* SPDX-License-Identifier: MIT */
/* tensor.c - sizes, names and shapes. */
#include "tensor/tensor.h"

static const struct {
    size_t size;
    const char *name;
} dtype_table[NAMI_DTYPES] = {
    [NAMI_F32] = {4, "f32"},
    [NAMI_BF16] = {2, "bf16"},
    [NAMI_F64] = {8, "f64"},
    [NAMI_I32] = {4, "i32"},
};

size_t nami_dtype_size(nami_dtype d)
{
    return dtype_table[d].size;
}

const char *nami_dtype_name(nami_dtype d)
{
    return dtype_table[d].name;
}

nami_shape nami_shape_of(int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    nami_shape s = {.rank = 0, .dim = {d0, d1, d2, d3}};
    while (s.rank < NAMI_MAX_RANK && s.dim[s.rank] != 0)
        s.rank++;
    for (int i = s.rank; i < NAMI_MAX_RANK; i++)
        s.dim[i] = 0;
    return s;
}

int64_t nami_shape_count(const nami_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

size_t nami_tensor_bytes(const nami_tensor *t)
{
    return (size_t)nami_shape_count(&t->shape) * nami_dtype_size(t->dtype);
}

void nami_shape_print(const nami_shape *s, nami_text *out)
{
    nami_text_add(out, "[");
    for (int i = 0; i < s->rank; i++)
        nami_text_add(out, "%s%lld", i ? "," : "", (long long)s->dim[i]);
    nami_text_add(out, "]");
}
