/* SPDX-License-Identifier: MIT */
/* ngram.c - an n-gram model of tokens.
 *
 * A node is a sequence of tokens that occurred; its parent is the sequence without the last token. Nodes are found by (parent,
 * last token) in a hash table, so keys are exact at any order. Walking through a text, the node of each suffix of what was
 * read is kept, and one look-up per order both finds the count of the next token and moves on.
 */
#include "data/ngram.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

#define ROOT 0u
#define NONE UINT32_MAX
#define BLOCK ((int64_t)1 << 18)

typedef struct node {
    uint32_t parent, token;
    uint32_t next;  /* in the same bucket; NONE ends */
    uint32_t count; /* times this sequence occurred */
    uint32_t total; /* tokens seen after it */
    uint32_t types; /* different ones */
} node;

struct nami_ngram {
    int order;
    int64_t vocabulary;
    size_t limit;    /* bytes */
    int64_t trained; /* tokens */
    node *nodes;     /* [capacity] */
    uint32_t count, capacity;
    uint32_t *bucket; /* [buckets], a power of two */
    uint32_t buckets;
    int depth;                             /* suffixes known: min(order, tokens read) */
    uint32_t suffix[NAMI_NGRAM_ORDER + 2]; /* [depth+1] node of the last k tokens */
};

static uint32_t hash(uint32_t parent, uint32_t token)
{
    uint64_t h =
        (uint64_t)parent * 0x9E3779B97F4A7C15u ^ (uint64_t)token * 0xD1B54A32D192ED03u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(h >> 32);
}

static size_t bytes_of(uint64_t capacity, uint64_t buckets)
{
    return (size_t)(capacity * sizeof(node) + buckets * sizeof(uint32_t));
}

/* Put all nodes into `buckets` buckets. */
static void rehash(nami_ngram *g, uint32_t buckets)
{
    nami_free(g->bucket);
    g->bucket = nami_alloc(NAMI_MEM_OTHER, (size_t)buckets * sizeof *g->bucket);
    memset(g->bucket, 0xff, (size_t)buckets * sizeof *g->bucket);
    g->buckets = buckets;
    for (uint32_t i = 1; i < g->count; i++) {
        node *n = &g->nodes[i];
        uint32_t *head = &g->bucket[hash(n->parent, n->token) & (buckets - 1)];
        n->next = *head;
        *head = i;
    }
}

nami_ngram *nami_ngram_create(int order, int64_t vocabulary, size_t limit)
{
    NAMI_CHECK(order >= 0 && order <= NAMI_NGRAM_ORDER && vocabulary >= 1);
    nami_ngram *g = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *g);
    g->order = order;
    g->vocabulary = vocabulary;
    g->limit = limit;
    g->capacity = 4096;
    g->nodes = nami_calloc(NAMI_MEM_OTHER, g->capacity, sizeof *g->nodes);
    g->count = 1; /* the root: no token */
    rehash(g, 4096);
    nami_ngram_begin(g);
    return g;
}

void nami_ngram_free(nami_ngram *g)
{
    if (!g)
        return;
    nami_free(g->bucket);
    nami_free(g->nodes);
    nami_free(g);
}

size_t nami_ngram_bytes(const nami_ngram *g)
{
    return bytes_of(g->capacity, g->buckets);
}

void nami_ngram_begin(nami_ngram *g)
{
    g->depth = 0;
    g->suffix[0] = ROOT;
}

/* Make room for as many nodes as one token can add; more buckets when they get crowded. */
static nami_status grow(nami_ngram *g)
{
    uint64_t need = (uint64_t)g->count + (uint64_t)g->order + 1;
    if (need <= g->capacity)
        return NAMI_OK;
    uint64_t capacity = (uint64_t)g->capacity + g->capacity / 2;
    uint64_t buckets = capacity > g->buckets && g->buckets < 1u << 31
                           ? 2 * (uint64_t)g->buckets
                           : g->buckets;
    if (bytes_of(capacity, buckets) > g->limit || capacity >= NONE) {
        char buf[32];
        return nami_fail(
            NAMI_EPLAN,
            "order %d needs more than %s for its counts (reached after %lld "
            "tokens): choose a lower order or allow more memory",
            g->order, nami_human_bytes((double)g->limit, buf), (long long)g->trained);
    }
    g->nodes =
        nami_realloc(NAMI_MEM_OTHER, g->nodes, (size_t)capacity * sizeof *g->nodes);
    g->capacity = (uint32_t)capacity;
    if (buckets != g->buckets)
        rehash(g, (uint32_t)buckets);
    return NAMI_OK;
}

/* The node that adds `token` to `parent`, or NONE. */
static uint32_t find(const nami_ngram *g, uint32_t parent, uint32_t token)
{
    uint32_t i = g->bucket[hash(parent, token) & (g->buckets - 1)];
    while (i != NONE && (g->nodes[i].parent != parent || g->nodes[i].token != token))
        i = g->nodes[i].next;
    return i;
}

/* The same, made when missing; there is room. */
static uint32_t obtain(nami_ngram *g, uint32_t parent, uint32_t token)
{
    uint32_t i = find(g, parent, token);
    if (i != NONE)
        return i;
    uint32_t *head = &g->bucket[hash(parent, token) & (g->buckets - 1)];
    i = g->count++;
    g->nodes[i] = (node){.parent = parent, .token = token, .next = *head};
    *head = i;
    g->nodes[parent].types++;
    return i;
}

/* The suffixes after one more token; longer[k] adds it to suffix k. */
static void move_on(nami_ngram *g, const uint32_t *longer)
{
    if (g->depth < g->order)
        g->depth++;
    for (int k = 1; k <= g->depth; k++)
        g->suffix[k] = longer[k - 1];
}

nami_status nami_ngram_train(nami_ngram *g, const uint16_t *token, int64_t count)
{
    if (g->trained + count >= NONE)
        return nami_fail(NAMI_EPLAN, "more than %lld tokens cannot be counted",
                         (long long)NONE);
    for (int64_t t = 0; t < count; t++) {
        uint32_t longer[NAMI_NGRAM_ORDER + 1];
        NAMI_TRY(grow(g));
        for (int k = 0; k <= g->depth; k++) {
            longer[k] = obtain(g, g->suffix[k], token[t]);
            g->nodes[longer[k]].count++;
            g->nodes[g->suffix[k]].total++;
        }
        move_on(g, longer);
        g->trained++;
    }
    return NAMI_OK;
}

void nami_ngram_score(nami_ngram *g, const uint16_t *token, int64_t count, double *sum)
{
    for (int64_t t = 0; t < count; t++) {
        uint32_t longer[NAMI_NGRAM_ORDER + 1];
        double p = 1.0 / (double)g->vocabulary;
        for (int k = 0; k <= g->order; k++) {
            uint32_t context = k <= g->depth ? g->suffix[k] : NONE;
            longer[k] = NONE;
            if (context != NONE && g->nodes[context].total > 0) {
                const node *h = &g->nodes[context];
                longer[k] = find(g, context, token[t]);
                double seen = longer[k] == NONE ? 0 : g->nodes[longer[k]].count;
                p = (seen + h->types * p) / ((double)h->total + h->types);
            }
            sum[k] -= log(p);
        }
        move_on(g, longer);
    }
}

/* Walk through [from, to) of a set by blocks; sum NULL: train. */
static nami_status walk(nami_ngram *g, nami_data *d, int64_t from, int64_t to,
                        double *sum)
{
    uint16_t *token = nami_alloc(NAMI_MEM_DATA, (size_t)BLOCK * sizeof *token);
    nami_status status = NAMI_OK;
    nami_ngram_begin(g);
    for (int64_t at = from; at < to && status == NAMI_OK; at += BLOCK) {
        int64_t n = to - at < BLOCK ? to - at : BLOCK;
        status = nami_data_slab(d, at, n, token);
        if (status == NAMI_OK && sum)
            nami_ngram_score(g, token, n, sum);
        else if (status == NAMI_OK)
            status = nami_ngram_train(g, token, n);
        nami_progress("%s: %d %%", sum ? "evaluating" : "counting",
                      (int)(100.0 * (double)(at + n - from) / (double)(to - from)));
    }
    nami_free(token);
    return status;
}

nami_status nami_ngram_train_on(nami_ngram *g, nami_data *d, int64_t from, int64_t to)
{
    return walk(g, d, from, to, NULL);
}

nami_status nami_ngram_score_on(nami_ngram *g, nami_data *d, int64_t from, int64_t to,
                                double *sum)
{
    return walk(g, d, from, to, sum);
}
