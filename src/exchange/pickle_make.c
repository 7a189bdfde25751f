/* SPDX-License-Identifier: MIT */
/* pickle_make.c - the few names that a pickle may call, and what each makes: nothing is called. */
#include <string.h>

#include "exchange/pickle_stack.h"

static const nami_exchange_type storages[] = {
    {"FloatStorage", 32, NAMI_EXCHANGE_F32},
    {"DoubleStorage", 64, NAMI_EXCHANGE_F64},
    {"HalfStorage", 16, NAMI_EXCHANGE_F16},
    {"BFloat16Storage", 16, NAMI_EXCHANGE_BF16},
    {"LongStorage", 64, NAMI_EXCHANGE_OTHER},
    {"IntStorage", 32, NAMI_EXCHANGE_OTHER},
    {"ShortStorage", 16, NAMI_EXCHANGE_OTHER},
    {"CharStorage", 8, NAMI_EXCHANGE_OTHER},
    {"ByteStorage", 8, NAMI_EXCHANGE_OTHER},
    {"BoolStorage", 8, NAMI_EXCHANGE_OTHER},
    {"ComplexFloatStorage", 64, NAMI_EXCHANGE_OTHER},
    {"ComplexDoubleStorage", 128, NAMI_EXCHANGE_OTHER},
};

static const struct {
    const char *module, *name;
    nami_maker maker;
} makers[] = {
    {"collections", "OrderedDict", NAMI_MAKER_DICT},
    {"torch._utils", "_rebuild_tensor_v2", NAMI_MAKER_TENSOR},
    {"torch._utils", "_rebuild_tensor", NAMI_MAKER_TENSOR},
    {"torch._utils", "_rebuild_parameter", NAMI_MAKER_PARAMETER},
    {"torch", "Size", NAMI_MAKER_SIZE},
};

nami_status nami_pickle_global(nami_pickle *p)
{
    char module[128], name[128];
    NAMI_TRY(nami_pickle_take_line(p, module));
    NAMI_TRY(nami_pickle_take_line(p, name));
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (!strcmp(makers[i].module, module) && !strcmp(makers[i].name, name))
            return nami_pickle_make(p, NAMI_PICKLE_MAKER, makers[i].maker);
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
        if (!strcmp(module, "torch") && !strcmp(storages[i].name, name)) {
            NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_MAKER, NAMI_MAKER_STORAGE));
            p->value[p->values - 1].type = &storages[i];
            return NAMI_OK;
        }
    return nami_fail(NAMI_EINPUT,
                     "%s: its pickle asks for %s.%s: only tensors in dictionaries are "
                     "read; save a state_dict",
                     p->part->path, module, name);
}

nami_status nami_pickle_storage(nami_pickle *p)
{
    int id = 0;
    NAMI_TRY(nami_pickle_pop(p, &id));
    const nami_pickle_value *v = &p->value[id];
    const bool good = nami_pickle_is(p, id, NAMI_PICKLE_TUPLE, 5) && v->items <= 6 &&
                      nami_pickle_is(p, v->item[0], NAMI_PICKLE_TEXT, 0) &&
                      !strcmp(p->value[v->item[0]].text, "storage") &&
                      nami_pickle_is(p, v->item[1], NAMI_PICKLE_MAKER, 0) &&
                      p->value[v->item[1]].type &&
                      nami_pickle_is(p, v->item[2], NAMI_PICKLE_TEXT, 0) &&
                      nami_pickle_is(p, v->item[4], NAMI_PICKLE_WHOLE, 0) &&
                      p->value[v->item[4]].whole >= 0;
    if (!good)
        return nami_pickle_damaged(p, "a storage that is none");
    NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_STORAGE, -1));
    const int storage = p->values - 1;
    for (int i = 0; i < p->value[id].items; i++)
        NAMI_TRY(nami_pickle_append(p, storage, p->value[id].item[i]));
    return NAMI_OK;
}

/* OrderedDict() or, of Python 2, OrderedDict([[key, value], ...]). */
static nami_status make_dict(nami_pickle *p, int arguments)
{
    NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_DICT, 0));
    const int dict = p->values - 1;
    if (p->value[arguments].items == 0)
        return NAMI_OK;
    const int list = p->value[arguments].item[0];
    if (!nami_pickle_is(p, list, NAMI_PICKLE_LIST, 0))
        return nami_pickle_damaged(p, "a dictionary of something else than a list");
    for (int i = 0; i < p->value[list].items; i++) {
        const int pair = p->value[list].item[i];
        if (p->value[pair].items != 2)
            return nami_pickle_damaged(p, "a dictionary of something else than pairs");
        NAMI_TRY(nami_pickle_append(p, dict, p->value[pair].item[0]));
        NAMI_TRY(nami_pickle_append(p, dict, p->value[pair].item[1]));
    }
    return NAMI_OK;
}

static nami_status make_tensor(nami_pickle *p, int arguments)
{
    if (p->value[arguments].items < 4)
        return nami_pickle_damaged(p, "a tensor that is none");
    NAMI_TRY(nami_pickle_make(p, NAMI_PICKLE_TENSOR, 0));
    const int tensor = p->values - 1;
    for (int i = 0; i < 4; i++)
        NAMI_TRY(nami_pickle_append(p, tensor, p->value[arguments].item[i]));
    return NAMI_OK;
}

nami_status nami_pickle_reduce(nami_pickle *p)
{
    int arguments = 0, maker = 0;
    NAMI_TRY(nami_pickle_pop(p, &arguments));
    NAMI_TRY(nami_pickle_pop(p, &maker));
    if (p->value[arguments].kind != NAMI_PICKLE_TUPLE ||
        p->value[maker].kind != NAMI_PICKLE_MAKER)
        return nami_pickle_damaged(p, "a call of no name");
    switch ((nami_maker)p->value[maker].whole) {
    case NAMI_MAKER_DICT:
        return make_dict(p, arguments);
    case NAMI_MAKER_TENSOR:
        return make_tensor(p, arguments);
    case NAMI_MAKER_PARAMETER:
    case NAMI_MAKER_SIZE:
        if (p->value[arguments].items < 1)
            return nami_pickle_damaged(p, "a call without arguments");
        return nami_pickle_push(p, p->value[arguments].item[0]);
    default:
        return nami_pickle_damaged(p, "a storage that is made from nothing");
    }
}
