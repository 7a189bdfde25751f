/* SPDX-License-Identifier: MIT */
/* import_common.c - what importers share: names of outputs and inputs, and what may not be one. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/inner.h"
#include "data/sink.h"

char *nami_import_path(const nami_import *im, int part)
{
    size_t n = strlen(im->output);
    if (im->split <= 0)
        return nami_strdup(im->output);
    if (n > 3 && !strcmp(im->output + n - 3, ".h5"))
        n -= 3;
    return nami_strf("%.*s-%s.h5", (int)n, im->output, part == 0 ? "train" : "valid");
}

nami_status nami_import_check(const nami_import *im, nami_source *const *source,
                              int sources)
{
    nami_status status = NAMI_OK;
    for (int part = 0; part < (im->split > 0 ? 2 : 1) && status == NAMI_OK; part++) {
        char *path = nami_import_path(im, part);
        status = nami_sink_allowed(path);
        for (int i = 0; i < sources && status == NAMI_OK; i++)
            if (source[i] && nami_source_is(source[i], path))
                status = nami_fail(NAMI_EINPUT, "%s is an input and the output", path);
        nami_free(path);
    }
    return status;
}

char *nami_import_spool(const char *output)
{
    const char *slash = strrchr(output, '/');
    return slash ? nami_strf("%.*s", (int)(slash - output + 1), output)
                 : nami_strdup(".");
}

nami_status nami_import_texts(const nami_import *im, int texts, nami_source **source,
                              int64_t *bytes)
{
    char *spool = nami_import_spool(im->output);
    nami_status status = NAMI_OK;
    for (int i = 0; i < texts && status == NAMI_OK; i++) {
        status = nami_source_open(im->input[i + 1], spool, &source[i]);
        if (status == NAMI_OK)
            *bytes += nami_source_length(source[i]);
    }
    nami_free(spool);
    return status;
}

char *nami_import_names(const nami_import *im)
{
    nami_text text = {0};
    for (int i = 0; i < im->inputs; i++) {
        const char *slash = strrchr(im->input[i], '/');
        const char *name = slash && slash[1] ? slash + 1 : im->input[i];
        if (text.length > 1000) {
            nami_text_add(&text, " and %d more", im->inputs - i);
            break;
        }
        nami_text_add(&text, "%s%s", i ? ", " : "",
                      strcmp(name, "-") ? name : "standard input");
    }
    return text.data;
}
