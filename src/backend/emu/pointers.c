/* SPDX-License-Identifier: MIT */
/* pointers.c - the addresses in each argument struct. */
#include "backend/emu/pointers.h"

#include <string.h>

enum { MOST = 16 };

/* One argument struct: its size and where its addresses are. */
typedef struct shape {
    size_t size;
    int count;
    size_t at[MOST];
} shape;

#define AT(type, field) offsetof(nami_arg_##type, field)

static const shape linear = {sizeof(nami_arg_linear),
                             12,
                             {AT(linear, x), AT(linear, w), AT(linear, b),
                              AT(linear, packed_f), AT(linear, packed_b), AT(linear, y),
                              AT(linear, dy), AT(linear, add), AT(linear, dx),
                              AT(linear, dw), AT(linear, db), AT(linear, scratch)}};
static const shape norm = {sizeof(nami_arg_norm),
                           11,
                           {AT(norm, x), AT(norm, w), AT(norm, b), AT(norm, y),
                            AT(norm, mean), AT(norm, rstd), AT(norm, dy), AT(norm, add),
                            AT(norm, dx), AT(norm, dw), AT(norm, db)}};
static const shape gelu = {
    sizeof(nami_arg_gelu), 4, {AT(gelu, x), AT(gelu, y), AT(gelu, dy), AT(gelu, dx)}};
static const shape attention = {sizeof(nami_arg_attention),
                                8,
                                {AT(attention, length), AT(attention, qkv),
                                 AT(attention, y), AT(attention, lse),
                                 AT(attention, dy), AT(attention, dqkv),
                                 AT(attention, dkv), AT(attention, scratch)}};
static const shape rotary = {
    sizeof(nami_arg_rotary),
    4,
    {AT(rotary, x), AT(rotary, y), AT(rotary, dy), AT(rotary, dx)}};
static const shape swiglu = {
    sizeof(nami_arg_swiglu),
    4,
    {AT(swiglu, x), AT(swiglu, y), AT(swiglu, dy), AT(swiglu, dx)}};
static const shape dropout = {sizeof(nami_arg_dropout),
                              5,
                              {AT(dropout, x), AT(dropout, add), AT(dropout, y),
                               AT(dropout, dy), AT(dropout, dx)}};
static const shape embed = {
    sizeof(nami_arg_embed),
    10,
    {AT(embed, token), AT(embed, type), AT(embed, wte), AT(embed, wpe), AT(embed, wtt),
     AT(embed, y), AT(embed, dy), AT(embed, dwte), AT(embed, dwpe), AT(embed, dwtt)}};
static const shape gather = {sizeof(nami_arg_gather),
                             6,
                             {AT(gather, row), AT(gather, x), AT(gather, y),
                              AT(gather, dy), AT(gather, add), AT(gather, dx)}};
static const shape xent = {sizeof(nami_arg_xent),
                           6,
                           {AT(xent, logits), AT(xent, target), AT(xent, loss),
                            AT(xent, best), AT(xent, five), AT(xent, scratch)}};
static const shape vector = {
    sizeof(nami_arg_vector), 3, {AT(vector, a), AT(vector, b), AT(vector, sum)}};
static const shape update = {sizeof(nami_arg_update),
                             6,
                             {AT(update, w), AT(update, from), AT(update, g),
                              AT(update, m), AT(update, v), AT(update, centre)}};
static const shape predict = {
    sizeof(nami_arg_predict),
    4,
    {AT(predict, w), AT(predict, m), AT(predict, v), AT(predict, out)}};
static const shape drift = {
    sizeof(nami_arg_drift), 3, {AT(drift, mean), AT(drift, before), AT(drift, after)}};
static const shape waiting = {
    sizeof(nami_arg_wait),
    6,
    {AT(wait, x), AT(wait, w), AT(wait, y), AT(wait, dy), AT(wait, dx), AT(wait, dw)}};

static const shape conv = {sizeof(nami_arg_conv),
                           11,
                           {AT(conv, x), AT(conv, w), AT(conv, b), AT(conv, packed_f),
                            AT(conv, packed_b), AT(conv, y), AT(conv, dy), AT(conv, dx),
                            AT(conv, dw), AT(conv, db), AT(conv, scratch)}};
static const shape batch_norm = {
    sizeof(nami_arg_batch_norm),
    16,
    {AT(batch_norm, x), AT(batch_norm, w), AT(batch_norm, b),
     AT(batch_norm, running_mean), AT(batch_norm, running_var), AT(batch_norm, y),
     AT(batch_norm, mean), AT(batch_norm, var), AT(batch_norm, dy), AT(batch_norm, dx),
     AT(batch_norm, dw), AT(batch_norm, db), AT(batch_norm, dmean),
     AT(batch_norm, dvar), AT(batch_norm, sums), AT(batch_norm, scratch)}};
static const shape pool = {
    sizeof(nami_arg_pool), 4, {AT(pool, x), AT(pool, y), AT(pool, dy), AT(pool, dx)}};
static const shape unary = {sizeof(nami_arg_unary),
                            4,
                            {AT(unary, x), AT(unary, y), AT(unary, dy), AT(unary, dx)}};
static const shape concat = {sizeof(nami_arg_concat),
                             6,
                             {AT(concat, a), AT(concat, b), AT(concat, y),
                              AT(concat, dy), AT(concat, da), AT(concat, db)}};
static const shape excite = {sizeof(nami_arg_excite),
                             6,
                             {AT(excite, x), AT(excite, s), AT(excite, y),
                              AT(excite, dy), AT(excite, dx), AT(excite, ds)}};
static const shape prepend = {
    sizeof(nami_arg_prepend),
    8,
    {AT(prepend, x), AT(prepend, token), AT(prepend, position), AT(prepend, y),
     AT(prepend, dy), AT(prepend, dx), AT(prepend, dtoken), AT(prepend, dposition)}};
static const shape turn = {sizeof(nami_arg_turn), 2, {AT(turn, x), AT(turn, y)}};

static const shape *const shapes[NAMI_KERNELS] = {
    [NAMI_LINEAR_PACK] = &linear,
    [NAMI_LINEAR_F] = &linear,
    [NAMI_LINEAR_BI] = &linear,
    [NAMI_LINEAR_BW] = &linear,
    [NAMI_NORM_F] = &norm,
    [NAMI_NORM_BI] = &norm,
    [NAMI_NORM_BW] = &norm,
    [NAMI_GELU_F] = &gelu,
    [NAMI_GELU_BI] = &gelu,
    [NAMI_ATTENTION_F] = &attention,
    [NAMI_ROTARY_F] = &rotary,
    [NAMI_ROTARY_BI] = &rotary,
    [NAMI_SWIGLU_F] = &swiglu,
    [NAMI_SWIGLU_BI] = &swiglu,
    [NAMI_DROPOUT_F] = &dropout,
    [NAMI_ATTENTION_BI] = &attention,
    [NAMI_DROPOUT_BI] = &dropout,
    [NAMI_EMBED_F] = &embed,
    [NAMI_EMBED_BW] = &embed,
    [NAMI_GATHER_F] = &gather,
    [NAMI_GATHER_BI] = &gather,
    [NAMI_XENT_F] = &xent,
    [NAMI_ADD] = &vector,
    [NAMI_SCALE] = &vector,
    [NAMI_SQUARES] = &vector,
    [NAMI_ADAMW] = &update,
    [NAMI_ADAM] = &update,
    [NAMI_SGD] = &update,
    [NAMI_RMSPROP] = &update,
    [NAMI_PREDICT] = &predict,
    [NAMI_DRIFT] = &drift,
    [NAMI_WAIT] = &waiting,
    [NAMI_CONV_PACK] = &conv,
    [NAMI_CONV_F] = &conv,
    [NAMI_CONV_BI] = &conv,
    [NAMI_CONV_BW] = &conv,
    [NAMI_BATCH_NORM_F] = &batch_norm,
    [NAMI_BATCH_NORM_BI] = &batch_norm,
    [NAMI_BATCH_NORM_BW] = &batch_norm,
    [NAMI_BATCH_NORM_F_OWN] = &batch_norm,
    [NAMI_BATCH_NORM_BI_OWN] = &batch_norm,
    [NAMI_POOL_F] = &pool,
    [NAMI_POOL_BI] = &pool,
    [NAMI_UNARY_F] = &unary,
    [NAMI_UNARY_BI] = &unary,
    [NAMI_CONCAT_F] = &concat,
    [NAMI_CONCAT_BI] = &concat,
    [NAMI_EXCITE_F] = &excite,
    [NAMI_EXCITE_BI] = &excite,
    [NAMI_TURN] = &turn,
    [NAMI_CAST] = &turn,
    [NAMI_PREPEND_F] = &prepend,
    [NAMI_PREPEND_BI] = &prepend,
    [NAMI_PREPEND_BW] = &prepend,
};

const void *nami_emu_translate(const nami_arena *a, nami_kernel k, const void *args,
                               nami_emu_args *out)
{
    const shape *s = shapes[k];
    NAMI_CHECK(s);
    memcpy(out, args, s->size);
    for (int i = 0; i < s->count; i++) {
        void *p;
        memcpy(&p, (char *)out + s->at[i], sizeof p);
        if (!p)
            continue;
        if (!nami_arena_has(a, p))
            return p;
        p = nami_arena_lane(a, p);
        memcpy((char *)out + s->at[i], &p, sizeof p);
    }
    return NULL;
}
