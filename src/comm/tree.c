/* SPDX-License-Identifier: MIT */
/* tree.c - the one order in which partial sums are added.
 *
 * Sums over replicas must not depend on the transport or on timing, so all go through this binary tree.
 */
#include <string.h>

#include "comm/inner.h"

/* elements summed at a time, so that the intermediate sums stay in the first cache */
enum { BLOCK = 512 };

/* Leaves that go left: the largest power of two below `leaves`. */
static int left_of(int leaves)
{
    int left = 1;
    while (2 * left < leaves)
        left *= 2;
    return left;
}

bool nami_tree_is_node(int leaves, int first, int last)
{
    if (first < 0 || last > leaves || first >= last)
        return false;
    if (first == 0 && last == leaves)
        return true;
    int left = left_of(leaves);
    if (last <= left)
        return nami_tree_is_node(left, first, last);
    return first >= left && nami_tree_is_node(leaves - left, first - left, last - left);
}

#define TREE_SUM(name, type)                                                           \
    static void name(const void *const *leaf, int leaves, int64_t from, int count,     \
                     type *out)                                                        \
    {                                                                                  \
        const type *a = (const type *)leaf[0] + from;                                  \
        if (leaves == 1) {                                                             \
            if (out != a)                                                              \
                memcpy(out, a, (size_t)count * sizeof *out);                           \
            return;                                                                    \
        }                                                                              \
        int left = left_of(leaves);                                                    \
        type other[BLOCK];                                                             \
        const type *b = other;                                                         \
        if (left > 1) {                                                                \
            name(leaf, left, from, count, out);                                        \
            a = out;                                                                   \
        }                                                                              \
        if (leaves - left == 1)                                                        \
            b = (const type *)leaf[left] + from;                                       \
        else                                                                           \
            name(leaf + left, leaves - left, from, count, other);                      \
        for (int i = 0; i < count; i++)                                                \
            out[i] = a[i] + b[i];                                                      \
    }

TREE_SUM(sum_f32, float)
TREE_SUM(sum_f64, double)

void nami_tree_sum(const void *const *leaf, int leaves, void *out, int64_t count,
                   int wide)
{
    NAMI_CHECK(leaves >= 1 && (wide == 4 || wide == 8));
    for (int64_t from = 0; from < count; from += BLOCK) {
        int n = count - from < BLOCK ? (int)(count - from) : BLOCK;
        if (wide == 4)
            sum_f32(leaf, leaves, from, n, (float *)out + from);
        else
            sum_f64(leaf, leaves, from, n, (double *)out + from);
    }
}
