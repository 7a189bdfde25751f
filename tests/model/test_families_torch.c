/* SPDX-License-Identifier: MIT */
/* test_families_torch.c - every family of image models against PyTorch: names, logits of evaluation, loss, gradients.
 *
 * The numbers were made in double by validation/torch/families.py; shapes, formulas and constants here are its. Double is
 * equal to 1e-9. Types that round are equal to 1e-5 (f32), or as near as PyTorch's own results in that type are: values
 * that nearly tie in ReLU and maximum pooling make gradients of deep nets jump. NAMI_TEST_FAMILY=CASE
 * runs that case alone.
 */
#include <math.h>

#include "family.h"
#include "chain.h"
#include "model/net.h"
#include "numbers.h"

enum { CLASSES = 10, SUMS = 2, MOST_BATCH = 8 };

/* SHORT: the reference in double, and oneDNN in both types. NAMI_TEST_LONG adds SLOW ones in double, and LARGE ones. */
enum { SHORT, SLOW, LARGE };

static const struct family_case {
    const char *name, *family;
    int64_t channels, size, batch;
    int small, batch_norm;
    int cost;
} cases[] = {
    {"mlp", "mlp", 3, 8, 4, 0, 0, SHORT},
    {"lenet", "lenet", 1, 28, 4, 0, 0, SHORT},
    {"resnet20", "resnet20", 3, 16, 4, 0, 0, SHORT},
    {"alexnet-small", "alexnet", 3, 32, 4, 1, 0, SLOW},
    {"vgg11-small", "vgg11", 3, 32, 8, 1, 0, LARGE},
    {"vgg11-bn-small", "vgg11", 3, 32, 8, 1, 1, SLOW},
    {"vgg13-small", "vgg13", 3, 32, 8, 1, 0, LARGE},
    {"vgg13-bn-small", "vgg13", 3, 32, 8, 1, 1, LARGE},
    {"vgg16-small", "vgg16", 3, 32, 8, 1, 0, LARGE},
    {"vgg16-bn-small", "vgg16", 3, 32, 8, 1, 1, LARGE},
    {"vgg19-small", "vgg19", 3, 32, 8, 1, 0, LARGE},
    {"vgg19-bn-small", "vgg19", 3, 32, 8, 1, 1, LARGE},
    {"resnet18-small", "resnet18", 3, 16, 4, 1, 0, SLOW},
    {"resnet18", "resnet18", 3, 64, 4, 0, 0, LARGE},
    {"resnet34", "resnet34", 3, 64, 4, 0, 0, LARGE},
    {"resnet50", "resnet50", 3, 64, 4, 0, 0, LARGE},
    {"resnet101", "resnet101", 3, 64, 4, 0, 0, LARGE},
    {"resnet152", "resnet152", 3, 64, 4, 0, 0, LARGE},
    {"resnext50", "resnext50", 3, 64, 4, 0, 0, SLOW},
    {"densenet121-small", "densenet121", 3, 16, 4, 1, 0, SHORT},
    {"densenet121", "densenet121", 3, 64, 4, 0, 0, LARGE},
    {"mobilenetv2-small", "mobilenetv2", 3, 16, 4, 1, 0, SHORT},
    {"mobilenetv2", "mobilenetv2", 3, 64, 4, 0, 0, SHORT},
    {"squeezenet-small", "squeezenet", 3, 24, 4, 1, 0, SHORT},
    {"squeezenet", "squeezenet", 3, 64, 4, 0, 0, SHORT},
    {"efficientnetv2-small", "efficientnetv2", 3, 16, 4, 1, 0, SLOW},
    {"efficientnetv2", "efficientnetv2", 3, 64, 4, 0, 0, LARGE},
    {"inception", "inception", 3, 107, 4, 0, 0, SLOW},
};

/* Of gradients relative to each array's norm: root mean square and largest; of the loss and of the logits. */
typedef struct errors {
    double rms, most, loss, logits;
} errors;

/* A line of the file: an array, and what PyTorch says of its gradient. */
typedef struct line {
    char name[96], shape[48];
    double sum[1 + SUMS]; /* norm, sums */
    double scale;         /* what errors are relative to */
    bool counts;          /* not 0 but for rounding */
} line;

typedef struct job {
    const struct family_case *of;
    nami_model *model;
    numbers text;
    line *line;     /* [lines] in the order of the file */
    int lines, *at; /* [params] line of a parameter */
    double loss, logits[MOST_BATCH * CLASSES];
    errors theirs[2]; /* f32, bf16 */
} job;

/* --- the file --- */

static const char *behind(const job *j, const char *start)
{
    char *head = nami_strf("\n%s ", start);
    const char *found = strstr(j->text.text, head);
    if (!found)
        fail_msg("%s: no line %s", j->of->name, start);
    found += strlen(head);
    nami_free(head);
    return found;
}

static void read_errors(const job *j, const char *start, errors *e)
{
    assert_int_equal(sscanf(behind(j, start), "%lf %lf %lf %lf", &e->rms, &e->most,
                            &e->loss, &e->logits),
                     4);
}

/* A bias in front of batch norm has a gradient of 0; then the weight before it is the scale. */
static void set_scale(line *l, const line *before)
{
    const size_t n = strlen(l->name);
    const bool bias = before && n > 5 && !strcmp(l->name + n - 5, ".bias");
    l->counts = !bias || l->sum[0] > 1e-6 * before->sum[0];
    l->scale = l->counts ? l->sum[0] : before->sum[0];
}

static void read_lines(job *j)
{
    const char *at = strchr(behind(j, "logits"), '\n');
    int used = 0;
    line l;
    while (at && sscanf(at, " %95s %47s %lf %lf %lf%n", l.name, l.shape, &l.sum[0],
                        &l.sum[1], &l.sum[2], &used) == 5) {
        set_scale(&l, j->lines > 0 ? &j->line[j->lines - 1] : NULL);
        j->line = nami_realloc(NAMI_MEM_OTHER, j->line,
                               ((size_t)j->lines + 1) * sizeof *j->line);
        j->line[j->lines++] = l;
        at += used;
    }
}

/* torchvision's names and shapes, no more and no less. */
static void match(job *j)
{
    const nami_model *m = j->model;
    assert_int_equal(j->lines, m->params);
    j->at = nami_calloc(NAMI_MEM_OTHER, (size_t)m->params, sizeof *j->at);
    for (int p = 0; p < m->params; p++) {
        char shape[96] = "";
        for (int k = 0; k < m->param[p].shape.rank; k++) {
            const size_t n = strlen(shape);
            (void)snprintf(shape + n, sizeof shape - n, "%s%lld", k ? "," : "",
                           (long long)m->param[p].shape.dim[k]);
        }
        while (j->at[p] < j->lines &&
               strcmp(j->line[j->at[p]].name, m->param[p].name) != 0)
            j->at[p]++;
        if (j->at[p] == j->lines)
            fail_msg("%s: PyTorch has no %s", j->of->name, m->param[p].name);
        assert_string_equal(j->line[j->at[p]].shape, shape);
    }
}

static nami_model *model_of(const struct family_case *f)
{
    nami_model *m;
    nami_model_options o = {.layers = 2,
                            .width = 512,
                            .stem = f->small,
                            .batch_norm = f->batch_norm,
                            .image_height = f->size,
                            .image_width = f->size,
                            .image_channels = f->channels,
                            .classes = CLASSES};
    o.family = family_named(f->family);
    assert_ok(nami_model_new(&o, 0, &m));
    return m;
}

static job open_job(const struct family_case *f)
{
    job j = {.of = f, .model = model_of(f)};
    char *name = nami_strf("tests/data/families/%s.txt", f->name);
    j.text = numbers_read(name);
    nami_free(name);
    read_errors(&j, "f32", &j.theirs[0]);
    read_errors(&j, "bf16", &j.theirs[1]);
    j.loss = strtod(behind(&j, "loss"), NULL);
    char *at = (char *)(uintptr_t)behind(&j, "logits");
    for (int i = 0; i < f->batch * CLASSES; i++)
        j.logits[i] = strtod(at, &at);
    read_lines(&j);
    match(&j);
    return j;
}

static void close_job(job *j)
{
    numbers_free(&j->text);
    nami_free(j->line);
    nami_free(j->at);
    nami_model_free(j->model);
}

/* --- a pass --- */

/* Parameters, images and classes by the formula. */
static void fill(const job *j, chain *c)
{
    const int64_t batch = j->of->batch;
    for (int p = 0; p < c->model->params; p++) {
        const nami_param *q = &c->model->param[p];
        const double each = (double)chain_count(c, p) / (double)q->shape.dim[0];
        for (int64_t e = 0; e < chain_count(c, p); e++) {
            double u = numbers_uniform((uint64_t)j->at[p], (uint64_t)e);
            u = q->shape.rank > 1 ? u * sqrt(24 / each)
                                  : u + (q->init == NAMI_INIT_ONE ? 1 : 0);
            chain_set(c->wide, c->param[p], e, (double)(float)u);
        }
    }
    for (int64_t i = 0; i < batch * c->sample.words; i++) {
        const float pixel = (float)(4 * numbers_uniform(1000, (uint64_t)i));
        memcpy(&c->token[i], &pixel, sizeof pixel);
    }
    for (int64_t i = 0; i < batch; i++)
        c->target[i] = (int32_t)(numbers_hash(1001, (uint64_t)i) % CLASSES);
    c->scale = 1.0 / (double)batch;
    chain_pack(c);
}

static double element(nami_dtype d, const void *p, int i)
{
    uint16_t half;
    if (d != NAMI_BF16)
        return numbers_get(d, p, i);
    memcpy(&half, (const char *)p + (size_t)i * sizeof half, sizeof half);
    return (double)nami_bf16_to_f32(half);
}

/* By the running statistics: the error of all logits relative to their norm. */
static double logits_error(const job *j, const chain *c)
{
    const int64_t batch = j->of->batch;
    double output[MOST_BATCH * CLASSES], norm = 0, error = 0;
    nami_graph *g;
    assert_ok(nami_model_graph_logits(c->model, c->backend, c->o.act, batch, 1, &g));
    assert_ok(nami_graph_plan(g, false, false, false));
    nami_graph_call call = {
        .input = c->token,
        .output = output,
        .transient = nami_alloc(NAMI_MEM_TRANSIENT, nami_graph_bytes(g)->transient),
        .packed = c->stage[0].packed,
        .param = c->stage[0].param};
    nami_walk w = {0};
    nami_walk_begin(&w, g, NAMI_WALK_F, &call);
    while (nami_walk_next(&w)) {
    }
    for (int i = 0; i < batch * CLASSES; i++) {
        const double off = element(c->o.act, output, i) - j->logits[i];
        norm += j->logits[i] * j->logits[i];
        error += off * off;
    }
    nami_free(call.transient);
    nami_graph_free(g);
    return sqrt(error / norm);
}

/* The largest error of a gradient's norm and its sums with numbers of the formula. */
static double gradient_error(const job *j, const chain *c, int p)
{
    const line *l = &j->line[j->at[p]];
    const uint64_t key = 2000 + (uint64_t)j->at[p];
    const int64_t count = chain_count(c, p);
    double sum[1 + SUMS] = {0}, most = 0;
    for (int64_t e = 0; e < count; e++) {
        const double g = chain_grad(c, p, e);
        sum[0] += g * g;
        for (int k = 0; k < SUMS; k++)
            sum[1 + k] += g * numbers_uniform(key, (uint64_t)(k * count + e));
    }
    sum[0] = sqrt(sum[0]);
    for (int k = 0; k < 1 + SUMS; k++) {
        const double off = fabs(sum[k] - l->sum[k]) / l->scale;
        most = off <= most ? most : off; /* NaN counts */
    }
    return most;
}

static errors run(const job *j, const char *backend, nami_dtype act)
{
    chain c;
    int counted = 0;
    const int cut[] = {0, j->model->blocks};
    chain_open(&c, j->model,
               &(chain_options){.backend = backend,
                                .act = act,
                                .batch = j->of->batch,
                                .time = 1,
                                .micro = 1,
                                .stages = 1,
                                .cut = cut});
    fill(j, &c);
    errors e = {.logits = logits_error(j, &c)};
    chain_forward(&c);
    chain_backward(&c);
    e.loss = fabs(chain_loss(&c) - j->loss) / j->loss;
    for (int p = 0; p < j->model->params; p++) {
        const double off = gradient_error(j, &c, p);
        const bool counts = j->line[j->at[p]].counts;
        e.most = off <= e.most ? e.most : off;
        e.rms += counts ? off * off : 0;
        counted += counts;
    }
    e.rms = sqrt(e.rms / counted);
    chain_close(&c);
    return e;
}

/* --- the comparison --- */

static void check(const job *j, const char *what, errors ours, errors limit)
{
    printf("%s %s: gradients %.2g (limit %.2g), largest %.2g (%.2g), loss %.2g (%.2g), "
           "logits %.2g (%.2g)\n",
           j->of->name, what, ours.rms, limit.rms, ours.most, limit.most, ours.loss,
           limit.loss, ours.logits, limit.logits);
    assert_true(ours.rms <= limit.rms && ours.most <= limit.most);
    assert_true(ours.loss <= limit.loss && ours.logits <= limit.logits);
}

/* Not less than `least`, or so many times what PyTorch's own are. A loss is one number, which may be near by luck: as near as
 * the gradients are will do. */
static errors limits(errors theirs, double times, double least)
{
    return (errors){fmax(least, times * theirs.rms), fmax(least, times * theirs.most),
                    fmax(fmax(least, times * theirs.loss), theirs.rms),
                    fmax(least, times * theirs.logits)};
}

static void test_cases(void **state)
{
    const bool all = getenv("NAMI_TEST_LONG") != NULL;
    const char *only = getenv("NAMI_TEST_FAMILY");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if ((cases[i].cost == LARGE && !all) ||
            (only && strcmp(only, cases[i].name) != 0))
            continue;
        job j = open_job(&cases[i]);
        if (cases[i].cost == SHORT || all)
            check(&j, "double", run(&j, "ref", NAMI_F64),
                  (errors){1e-9, 1e-9, 1e-9, 1e-9});
        check(&j, "f32", run(&j, "cpu", NAMI_F32), limits(j.theirs[0], 8, 1e-5));
        check(&j, "bf16", run(&j, "cpu", NAMI_BF16), limits(j.theirs[1], 2, 0.01));
        close_job(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests_name("families torch", tests, NULL,
                                       nami_test_balance);
}
