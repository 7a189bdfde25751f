/* SPDX-License-Identifier: MIT */
/* onednn.c - matrix products by oneDNN, versions 2.6 and 3.
 *
 * f32 products run by dnnl_sgemm on the plain weights: as fast as packed ones, and a step needs no packing
 * and no second copy; narrow ones by the matmul primitive, on plain weights too (docs/design/0007). bf16 products run by the matmul primitive, weights in the layout it likes best.
 */
#include "backend/cpu/onednn.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "backend/cpu/onednn_version.h"
#include "base/memory.h"

enum { HANDLE_A, HANDLE_B, HANDLE_BIAS, HANDLE_C, HANDLE_SCRATCH, HANDLES };

struct nami_product {
    nami_product_spec spec;
    dnnl_primitive_t run, pack;    /* NULL: dnnl_sgemm; not packed */
    dnnl_memory_t memory[HANDLES]; /* their data is set at each run; NULL: not used */
    dnnl_memory_t original;        /* f32 b, the source of packing */
    size_t scratch, packed;        /* bytes */
    bool blocked;                  /* `blocks` says how b is packed */
    nami_product_blocks blocks;
};

/* The descriptors of one product. */
typedef struct descs {
    desc a, b, original, bias, c;
} descs;

static dnnl_status_t descs_make(const nami_product_spec *s, descs *d)
{
    const dnnl_dims_t am = {s->m, s->k}, bm = {s->k, s->n}, cm = {s->m, s->n},
                      biasm = {1, s->n};
    const dnnl_dims_t as = {s->a_turned ? 1 : s->k, s->a_turned ? s->m : 1};
    const dnnl_dims_t bs = {s->b_turned ? 1 : s->n, s->b_turned ? s->k : 1};
    const dnnl_dims_t cs = {s->n, 1};
    dnnl_status_t status = desc_strided(&d->a, 2, am, type_of(s->in), as);
    if (status == dnnl_success)
        status = s->pack ? desc_any(&d->b, 2, bm, type_of(s->in))
                         : desc_strided(&d->b, 2, bm, type_of(s->in), bs);
    if (status == dnnl_success)
        status = desc_strided(&d->original, 2, bm, dnnl_f32, bs);
    if (status == dnnl_success)
        status = desc_strided(&d->bias, 2, biasm, dnnl_f32, cs);
    if (status == dnnl_success)
        status = desc_strided(&d->c, 2, cm, type_of(s->out), cs);
    return status;
}

static void descs_free(descs *d)
{
    desc_free(&d->a);
    desc_free(&d->b);
    desc_free(&d->original);
    desc_free(&d->bias);
    desc_free(&d->c);
}

/* Scratchpads are ours (planned memory); c may be added to. */
static dnnl_status_t attr_make(const nami_product_spec *s, dnnl_primitive_attr_t *attr)
{
    dnnl_status_t status = dnnl_primitive_attr_create(attr);
    if (status == dnnl_success)
        status =
            dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    dnnl_post_ops_t ops = NULL;
    if (status == dnnl_success && s->sum)
        status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success && s->sum)
        status = add_sum(ops, type_of(s->out));
    if (status == dnnl_success && s->sum)
        status = dnnl_primitive_attr_set_post_ops(*attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return status;
}

/* The reorder from the f32 original into `packed`. */
static dnnl_status_t pack_make(dnnl_engine_t e, nami_product *p, const descs *d,
                               const desc *packed)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = reorder_desc(&pd, e, &d->original, packed, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&p->pack, pd);
    if (status == dnnl_success)
        status = memory_of(&p->original, &d->original, e);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t memories_make(dnnl_engine_t e, nami_product *p, const descs *d,
                                   const desc *weights, const desc *scratch)
{
    dnnl_status_t status = memory_of(&p->memory[HANDLE_A], &d->a, e);
    if (status == dnnl_success)
        status = memory_of(&p->memory[HANDLE_B], weights, e);
    if (status == dnnl_success && p->spec.bias)
        status = memory_of(&p->memory[HANDLE_BIAS], &d->bias, e);
    if (status == dnnl_success)
        status = memory_of(&p->memory[HANDLE_C], &d->c, e);
    p->scratch = desc_size(scratch);
    if (status == dnnl_success && p->scratch)
        status = memory_of(&p->memory[HANDLE_SCRATCH], scratch, e);
    return status;
}

/* Whether blocks of pairs of rows, of whole vectors, tell it all. */
static bool read_blocks(const desc *packed, nami_product_blocks *out)
{
    desc_blocks b;
    if (!blocks_of(packed, &b) || b.count != 3 || b.axis[0] != 0 || b.axis[1] != 1 ||
        b.axis[2] != 0 || b.inner[2] != 2)
        return false;
    *out = (nami_product_blocks){.pairs = b.inner[0],
                                 .columns = b.inner[1],
                                 .blocks_k = b.padded[0] / (2 * b.inner[0]),
                                 .blocks_n = b.padded[1] / b.inner[1],
                                 .step_k = b.stride[0],
                                 .step_n = b.stride[1]};
    return true;
}

/* All objects that follow from the primitive's descriptor. */
static dnnl_status_t objects_make(dnnl_engine_t e, nami_product *p, const descs *d,
                                  const_dnnl_primitive_desc_t pd)
{
    desc weights = desc_of(pd, dnnl_query_weights_md);
    desc scratch = desc_of(pd, dnnl_query_scratchpad_md);
    dnnl_status_t status = dnnl_primitive_create(&p->run, pd);
    if (status == dnnl_success)
        status = memories_make(e, p, d, &weights, &scratch);
    if (status == dnnl_success && p->spec.pack) {
        p->packed = desc_size(&weights);
        p->blocked = p->spec.in == NAMI_BF16 && read_blocks(&weights, &p->blocks);
        status = pack_make(e, p, d, &weights);
    }
    desc_free(&weights);
    desc_free(&scratch);
    return status;
}

static dnnl_status_t product_make(dnnl_engine_t e, nami_product *p)
{
    descs d = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = descs_make(&p->spec, &d);
    if (status == dnnl_success)
        status = attr_make(&p->spec, &attr);
    if (status == dnnl_success)
        status =
            matmul_desc(&pd, e, &d.a, &d.b, p->spec.bias ? &d.bias : NULL, &d.c, attr);
    if (status == dnnl_success)
        status = objects_make(e, p, &d, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    descs_free(&d);
    return status;
}

/* Whether the library may use all of `isa`. */
static bool has(dnnl_cpu_isa_t isa)
{
    return ((int)dnnl_get_effective_cpu_isa() & (int)isa) == (int)isa;
}

static bool by_sgemm(const nami_product_spec *s)
{
    return s->in == NAMI_F32 && s->out == NAMI_F32 && !s->pack && !s->bias &&
           !(s->primitive && has(dnnl_cpu_isa_avx512_core));
}

nami_status nami_product_new(const nami_onednn *d, const nami_product_spec *spec,
                             nami_product **out)
{
    nami_product *p = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *p);
    p->spec = *spec;
    const dnnl_status_t status =
        by_sgemm(spec) ? dnnl_success : product_make(d->engine, p);
    if (status != dnnl_success) {
        nami_product_free(p);
        *out = NULL;
        return nami_fail(
            NAMI_EENV,
            "oneDNN has no product [%lld,%lld] x [%lld,%lld] of type %s on this "
            "processor (status %d)",
            (long long)spec->m, (long long)spec->k, (long long)spec->k,
            (long long)spec->n, nami_dtype_name(spec->in), (int)status);
    }
    *out = p;
    return NAMI_OK;
}

void nami_product_free(nami_product *p)
{
    if (!p)
        return;
    for (int i = 0; i < HANDLES; i++)
        if (p->memory[i])
            dnnl_memory_destroy(p->memory[i]);
    if (p->original)
        dnnl_memory_destroy(p->original);
    if (p->run)
        dnnl_primitive_destroy(p->run);
    if (p->pack)
        dnnl_primitive_destroy(p->pack);
    nami_free(p);
}

size_t nami_product_scratch(const nami_product *p)
{
    return p->scratch;
}

const nami_product_spec *nami_product_spec_of(const nami_product *p)
{
    return &p->spec;
}

bool nami_product_blocks_of(const nami_product *p, nami_product_blocks *out)
{
    *out = p->blocks;
    return p->blocked;
}

size_t nami_product_packed(const nami_product *p)
{
    return p->packed;
}

static void set_data(dnnl_memory_t m, const void *data)
{
    union {
        const void *from;
        void *to;
    } u = {
        .from =
            data}; /* the library has one kind of pointer for what it reads and writes */
    if (m)
        NAMI_CHECK(dnnl_memory_set_data_handle(m, u.to) == dnnl_success);
}

void nami_product_pack(const nami_onednn *d, nami_product *p, const void *b,
                       void *packed)
{
    set_data(p->original, b);
    set_data(p->memory[HANDLE_B], packed);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->original},
                                    {DNNL_ARG_TO, p->memory[HANDLE_B]}};
    NAMI_CHECK(dnnl_primitive_execute(p->pack, d->stream, 2, args) == dnnl_success);
    NAMI_CHECK(dnnl_stream_wait(d->stream) == dnnl_success);
}

void nami_sgemm(const nami_sgemm_spec *s, const float *a, const float *b, float *c)
{
    NAMI_CHECK(dnnl_sgemm(s->a_turned ? 'T' : 'N', s->b_turned ? 'T' : 'N', s->m, s->n,
                          s->k, 1, a, s->lda, b, s->ldb, s->sum ? 1.0f : 0.0f, c,
                          s->ldc) == dnnl_success);
}

static void run_sgemm(const nami_product_spec *s, const float *a, const float *b,
                      float *c)
{
    const nami_sgemm_spec g = {.m = s->m,
                               .k = s->k,
                               .n = s->n,
                               .lda = s->a_turned ? s->m : s->k,
                               .ldb = s->b_turned ? s->k : s->n,
                               .ldc = s->n,
                               .a_turned = s->a_turned,
                               .b_turned = s->b_turned,
                               .sum = s->sum};
    nami_sgemm(&g, a, b, c);
}

void nami_product_run(const nami_onednn *d, nami_product *p, const void *a,
                      const void *b, const void *bias, void *c, void *scratch)
{
    if (!p->run) {
        run_sgemm(&p->spec, a, b, c);
        return;
    }
    static const int role[HANDLES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                      DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    const void *const data[HANDLES] = {a, b, bias, c, scratch};
    dnnl_exec_arg_t args[HANDLES];
    int count = 0;
    for (int i = 0; i < HANDLES; i++)
        if (p->memory[i]) {
            set_data(p->memory[i], data[i]);
            args[count++] = (dnnl_exec_arg_t){role[i], p->memory[i]};
        }
    NAMI_CHECK(dnnl_primitive_execute(p->run, d->stream, count, args) == dnnl_success);
    NAMI_CHECK(dnnl_stream_wait(d->stream) == dnnl_success);
}

/* Whether the vector bf16 instruction runs at half the rate of f32: Intel cores that are meant to use AMX
 * (Sapphire Rapids, model 0x8f, and later ones), seen where a virtual machine hides AMX. */
static bool is_amx_core(void)
{
#ifdef __x86_64__
    unsigned int eax, ebx, ecx, edx;
    if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) || ebx != signature_INTEL_ebx)
        return false;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return false;
    const unsigned int family = eax >> 8 & 0xf,
                       model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
    return family == 6 && model >= 0x8f;
#else
    return false;
#endif
}

bool nami_onednn_slow_bf16(void)
{
    if (has(dnnl_cpu_isa_avx512_core_amx))
        return false;
    return !has(dnnl_cpu_isa_avx512_core_bf16) || is_amx_core();
}

nami_status nami_onednn_open(nami_onednn *out)
{
    dnnl_engine_t engine = NULL;
    dnnl_stream_t stream = NULL;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        return nami_fail(NAMI_EENV,
                         "backend cpu: oneDNN has no engine for this processor");
    if (dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) !=
        dnnl_success) {
        dnnl_engine_destroy(engine);
        return nami_fail(NAMI_EENV, "backend cpu: oneDNN cannot make a stream");
    }
    *out = (nami_onednn){.engine = engine, .stream = stream};
    return NAMI_OK;
}

void nami_onednn_close(nami_onednn *d)
{
    if (d->stream)
        dnnl_stream_destroy(d->stream);
    if (d->engine)
        dnnl_engine_destroy(d->engine);
    *d = (nami_onednn){0};
}
