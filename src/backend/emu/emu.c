/* SPDX-License-Identifier: MIT */
/* emu.c - a device imitated on the host: it proves the device path where there is no device.
 *
 * Kernels are those of another backend, run by the threads of the lanes on memory that host code cannot
 * touch. An event holds the lane (bits 0 to 3, from 1), the slot of a mark (bits 4 to 11) and the number
 * of the item in its lane.
 */
#include "backend/emu/emu.h"

#include "backend/list.h"
#include "base/clock.h"

enum { SLOT_BITS = 4, NUMBER_BITS = 12 };
_Static_assert(NAMI_BACKEND_MARKS == 1 << (NUMBER_BITS - SLOT_BITS), "slots fit");

static nami_event event_of(int lane, int slot, int64_t number)
{
    return (uint64_t)number << NUMBER_BITS | (uint64_t)slot << SLOT_BITS |
           (uint64_t)(lane + 1);
}

static int slot_of(nami_event e)
{
    return (int)(e >> SLOT_BITS) & (NAMI_BACKEND_MARKS - 1);
}

static nami_status choose_options(const nami_backend_config *c, nami_emu_options *out)
{
    if (!c->emu)
        return nami_option_defaults(&nami_emu_option_table, out);
    *out = *c->emu;
    return NAMI_OK;
}

static nami_status emu_open(nami_backend *b, const nami_backend_config *c)
{
    nami_emu_options o = {0};
    nami_arena arena;
    nami_backend *delegate;
    NAMI_TRY(choose_options(c, &o));
    NAMI_TRY(nami_backend_open(nami_emu_delegates[o.delegate], c->threads, c->act,
                               &delegate));
    const nami_status status = nami_arena_open(&arena, (size_t)o.memory << 20);
    if (status != NAMI_OK) {
        nami_backend_close(delegate);
        return status;
    }
    nami_emu *emu = nami_calloc(NAMI_MEM_OTHER, 1, sizeof *emu);
    emu->options = o;
    emu->arena = arena;
    emu->delegate = delegate;
    emu->computing = nami_alloc(NAMI_MEM_OTHER, sizeof *emu->computing);
    pthread_mutex_init(emu->computing, NULL);
    const uint64_t key = nami_mix((uint64_t)o.seed, c->number);
    for (int i = 0; i < NAMI_EMU_LANES; i++)
        nami_emu_lane_open(&emu->lane[i], emu, nami_mix(key, (uint64_t)i));
    b->state = emu;
    b->host = false;
    return NAMI_OK;
}

static void emu_close(nami_backend *b)
{
    nami_emu *emu = b->state;
    for (int i = 0; i < NAMI_EMU_LANES; i++)
        nami_emu_lane_stop(&emu->lane[i]);
    for (int i = 0; i < NAMI_EMU_LANES; i++)
        nami_emu_lane_close(&emu->lane[i]);
    pthread_mutex_destroy(emu->computing);
    nami_free(emu->computing);
    nami_backend_close(emu->delegate);
    nami_arena_close(&emu->arena);
    nami_free(emu);
}

/* A failure of the device shows with the next call, as real ones do. */
static void check_health(const nami_emu *emu)
{
    for (int i = 0; i < NAMI_EMU_LANES; i++)
        if (atomic_load(&emu->lane[i].failed))
            nami_die(nami_fail(NAMI_EENV,
                               "backend emu: launch %lld (%s) failed, as "
                               "emu.fail_launch asks",
                               (long long)emu->options.fail_launch,
                               nami_kernel_name(emu->failing)));
}

static void *emu_alloc(nami_backend *b, nami_tag tag, size_t bytes)
{
    nami_emu *emu = b->state;
    if (++emu->allocs == emu->options.fail_alloc)
        nami_die(nami_fail(NAMI_EENV,
                           "backend emu: allocation %lld (%zu bytes for '%s') failed, "
                           "as emu.fail_alloc asks",
                           (long long)emu->allocs, bytes, nami_memory_name(tag)));
    void *block = nami_arena_take(&emu->arena, tag, bytes);
    if (!block)
        nami_die(nami_fail(NAMI_EENV,
                           "backend emu: %zu bytes for '%s' do not fit, %zu of "
                           "emu.memory = %lld MiB are in use",
                           bytes, nami_memory_name(tag), nami_arena_used(&emu->arena),
                           (long long)emu->options.memory));
    return block;
}

/* Work that may still use the block comes first. */
static void emu_free(nami_backend *b, void *block)
{
    nami_emu *emu = b->state;
    for (int i = 0; i < NAMI_EMU_LANES; i++)
        while (atomic_load(&emu->lane[i].done) < emu->lane[i].queued)
            nami_sleep(20e-6);
    nami_arena_give(&emu->arena, block);
}

static nami_event add(nami_emu *emu, int lane, const nami_emu_item *item)
{
    NAMI_CHECK(lane >= 0 && lane < NAMI_EMU_LANES);
    check_health(emu);
    return event_of(lane, item->mark, nami_emu_lane_add(&emu->lane[lane], item));
}

static void *translate(const nami_emu *emu, const void *p)
{
    return nami_arena_has(&emu->arena, p) ? nami_arena_lane(&emu->arena, p)
                                          : (void *)(uintptr_t)p;
}

static nami_event emu_copy(nami_backend *b, int lane, void *to, const void *from,
                           size_t bytes)
{
    nami_emu *emu = b->state;
    const nami_emu_options *o = &emu->options;
    nami_emu_item item = {.kind = NAMI_EMU_COPY,
                          .to = translate(emu, to),
                          .from = translate(emu, from),
                          .bytes = bytes};
    if (item.to == to || item.from == from) { /* across the border */
        item.cost = o->copy_latency;
        if (o->copy_bandwidth > 0)
            item.cost += (double)bytes / o->copy_bandwidth;
    }
    return add(emu, lane, &item);
}

static nami_event emu_zero(nami_backend *b, int lane, void *to, size_t bytes)
{
    nami_emu *emu = b->state;
    NAMI_CHECK(bytes == 0 || nami_arena_has(&emu->arena, to));
    return add(emu, lane,
               &(nami_emu_item){
                   .kind = NAMI_EMU_ZERO, .to = translate(emu, to), .bytes = bytes});
}

static nami_status emu_prepare(nami_backend *b, nami_kernel k, const void *args,
                               const nami_prepared **out)
{
    const nami_emu *emu = b->state;
    return nami_backend_prepare(emu->delegate, k, args, out);
}

static nami_event emu_launch(nami_backend *b, int lane, const nami_prepared *p,
                             const void *args)
{
    nami_emu *emu = b->state;
    nami_emu_item item = {.kind = NAMI_EMU_LAUNCH, .prepared = p};
    const void *foreign = nami_emu_translate(&emu->arena, p->kernel, args, &item.args);
    if (foreign)
        nami_die(nami_fail(NAMI_EBUG,
                           "backend emu: %s was given %p, which is not memory of the "
                           "device",
                           nami_kernel_name(p->kernel), foreign));
    if (++emu->launches == emu->options.fail_launch) {
        item.fails = true;
        emu->failing = p->kernel;
    }
    return add(emu, lane, &item);
}

static bool emu_done(nami_backend *b, nami_event e)
{
    const nami_emu *emu = b->state;
    const nami_emu_lane *l = &emu->lane[(e & 15) - 1];
    check_health(emu);
    return atomic_load(&l->done) >= (int64_t)(e >> NUMBER_BITS);
}

static nami_event emu_mark(nami_backend *b, int lane)
{
    nami_emu *emu = b->state;
    const int slot = (int)(emu->lane[lane].marks++ % NAMI_BACKEND_MARKS);
    return add(emu, lane, &(nami_emu_item){.kind = NAMI_EMU_MARK, .mark = slot});
}

static void emu_after(nami_backend *b, int lane, nami_event mark)
{
    nami_emu *emu = b->state;
    const int other = (int)(mark & 15) - 1;
    if (other == lane) /* a lane keeps its order by itself */
        return;
    (void)add(emu, lane,
              &(nami_emu_item){.kind = NAMI_EMU_AFTER,
                               .mark = slot_of(mark),
                               .other = &emu->lane[other],
                               .number = (int64_t)(mark >> NUMBER_BITS)});
}

static double emu_moment(nami_backend *b, nami_event mark)
{
    const nami_emu *emu = b->state;
    return emu->lane[(mark & 15) - 1].moment[slot_of(mark)];
}

const nami_backend_type nami_backend_emu = {
    .name = "emu",
    .open = emu_open,
    .close = emu_close,
    .alloc = emu_alloc,
    .free = emu_free,
    .copy = emu_copy,
    .zero = emu_zero,
    .prepare = emu_prepare,
    .launch = emu_launch,
    .done = emu_done,
    .mark = emu_mark,
    .moment = emu_moment,
    .after = emu_after,
};
