/* SPDX-License-Identifier: MIT */
/* counters.c - hardware and software counters through PAPI. */
#include "prof/counters.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef NAMI_HAVE_PAPI
#include <papi.h>

/* Hardware first; a machine without them counts the software events behind. */
static const char *const hardware[] = {"PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L3_TCM",
                                       NULL};
static const char *const software[] = {"perf::TASK-CLOCK", "perf::PAGE-FAULTS",
                                       "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS",
                                       NULL};

/* Add those of `name` that can be added; returns PAPI's last refusal. */
static int add_all(nami_counters *c, const char *const *name)
{
    int refusal = PAPI_OK;
    for (; *name != NULL && c->count < NAMI_COUNTERS_MOST; name++) {
        int code = PAPI_add_named_event(c->set, *name);
        if (code == PAPI_OK)
            c->name[c->count++] = *name;
        else
            refusal = code;
    }
    return refusal;
}

static void unavailable(nami_counters *c, const char *what, int code)
{
    snprintf(c->text, sizeof c->text, "unavailable, because %s: %s", what,
             PAPI_strerror(code));
    c->count = 0;
}

static void say_available(nami_counters *c, int refusal)
{
    size_t at = (size_t)snprintf(c->text, sizeof c->text, "available:");
    for (int i = 0; i < c->count; i++)
        at += (size_t)snprintf(c->text + at, sizeof c->text - at, " %s", c->name[i]);
    if (refusal != PAPI_OK)
        snprintf(c->text + at, sizeof c->text - at, " (hardware events refused: %s)",
                 PAPI_strerror(refusal));
}

void nami_counters_open(nami_counters *c)
{
    *c = (nami_counters){.set = PAPI_NULL};
    int code = PAPI_is_initialized() ? (int)PAPI_VER_CURRENT
                                     : PAPI_library_init(PAPI_VER_CURRENT);
    if (code != PAPI_VER_CURRENT) {
        unavailable(c, "PAPI does not start", code);
        return;
    }
    code = PAPI_create_eventset(&c->set);
    if (code != PAPI_OK) {
        unavailable(c, "PAPI makes no event set", code);
        return;
    }
    int refusal = add_all(c, hardware);
    if (c->count == 0)
        (void)add_all(c, software);
    else
        refusal = PAPI_OK;
    code = c->count > 0 ? PAPI_start(c->set) : refusal;
    if (code == PAPI_OK) {
        say_available(c, refusal);
        return;
    }
    unavailable(c, c->count > 0 ? "PAPI does not count" : "PAPI refuses every event",
                code);
    nami_counters_close(c);
}

nami_status nami_counters_read(nami_counters *c)
{
    if (c->count == 0)
        return NAMI_OK;
    int code = PAPI_read(c->set, c->value);
    if (code != PAPI_OK)
        return nami_fail(NAMI_EENV, "PAPI cannot read its counters: %s",
                         PAPI_strerror(code));
    return NAMI_OK;
}

void nami_counters_close(nami_counters *c)
{
    long long last[NAMI_COUNTERS_MOST];
    if (c->set == PAPI_NULL)
        return;
    if (c->count > 0)
        (void)PAPI_stop(c->set, last);
    (void)PAPI_cleanup_eventset(c->set);
    (void)PAPI_destroy_eventset(&c->set);
    c->set = PAPI_NULL;
    c->count = 0;
}

#else

void nami_counters_open(nami_counters *c)
{
    *c = (nami_counters){.set = -1};
    snprintf(c->text, sizeof c->text,
             "unavailable, because nami was built without PAPI");
}

nami_status nami_counters_read(nami_counters *c)
{
    (void)c;
    return NAMI_OK;
}

void nami_counters_close(nami_counters *c)
{
    (void)c;
}

#endif

const char *nami_prof_counters(void)
{
    static char text[sizeof((nami_counters){0}).text];
    nami_counters c;
    nami_counters_open(&c);
    memcpy(text, c.text, sizeof text);
    nami_counters_close(&c);
    return text;
}
