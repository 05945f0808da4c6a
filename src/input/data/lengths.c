/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c - see lengths.h. */
#include "input/data/lengths.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "core/rng/rng.h"
#include "core/stats/stats.h"

/* ---- laws ---- */

#define HISTOGRAM_BYTES_MAX (64u << 20)
#define MS_PER_S 1000

static double least(const struct lengths *l)
{
	return l->is_time ? 0 : 1;
}

static double most(const struct lengths *l)
{
	return l->is_time ? (double)MS_PER_S * DUE_S_MAX : LENGTH_TOKENS_MAX;
}

static bool is_value(const struct lengths *l, double v)
{
	return v >= least(l) && v <= most(l) && v == floor(v);
}

static const char *values_of(const struct lengths *l)
{
	return l->is_time ? "a time of 0 s to a year" : "a whole value of 1 to 67108864";
}

/* ---- histogram files ---- */

struct lengths_histogram {
	const char *path;
	struct lengths *out;
	size_t cap;
};

/* -1: not a value and a weight. */
static int add(struct lengths_histogram *h, struct str value, double weight)
{
	struct lengths *l = h->out;
	double v;

	if (!str_to_f64(value, &v) || !(weight >= 0) || isinf(weight))
		return -1;
	v = l->is_time ? rint(v * MS_PER_S) : v;
	if (!is_value(l, v))
		return -1;
	if (l->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 64;
		l->value = mem_grow(l->value, h->cap, sizeof(*l->value));
		l->cdf = mem_grow(l->cdf, h->cap, sizeof(*l->cdf));
	}
	l->value[l->n] = (int64_t)v;
	l->cdf[l->n++] = weight;
	return 0;
}

static bool is_head(struct str line)
{
	return line.n && ((line.p[0] | 32) >= 'a' && (line.p[0] | 32) <= 'z');
}

static int read_csv(struct lengths_histogram *h, struct str text, struct err *e)
{
	size_t number = 0;

	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n')), rest = line, value;
		double weight;

		number++;
		if (!line.n || line.p[0] == '#' || (!h->out->n && is_head(line)))
			continue;
		value = str_trim(str_cut(&rest, ','));
		if (!str_to_f64(str_trim(rest), &weight) || add(h, value, weight) < 0)
			return err_set(e, ERR_PARSE, "%s:%zu: \"%.*s\" is not \"value,weight\" with %s "
				       "and a weight of 0 or more", h->path, number,
				       (int)(line.n < 80 ? line.n : 80), line.p, values_of(h->out));
	}
	return 0;
}

/* [value, weight] */
static int add_pair(struct lengths_histogram *h, struct json_slice pair)
{
	struct json_iter it = json_iter(pair);
	struct json_slice value, weight, more;
	double w;

	if (pair.kind != JSON_ARRAY || json_each(&it, NULL, &value) != 1 ||
	    json_each(&it, NULL, &weight) != 1 || json_each(&it, NULL, &more) != 0 ||
	    !json_to_f64(weight, &w))
		return -1;
	return value.kind == JSON_INT || value.kind == JSON_REAL ? add(h, value.raw, w) : -1;
}

static int read_json(struct lengths_histogram *h, struct str text, struct err *e)
{
	struct json_scan scan = { .text = text };
	struct json_slice all, item;
	struct json_iter it;
	struct str key;
	double weight;

	if (json_next(&scan, &all, e) < 0)
		return err_wrap(e, "%s", h->path);
	if (!json_at_end(&scan))
		return err_set(e, ERR_PARSE, "%s: byte %zu: there is more than one JSON value", h->path,
			       scan.at);
	it = json_iter(all);
	while (json_each(&it, &key, &item) == 1) {
		bool is_good = all.kind == JSON_OBJECT ?
			json_to_f64(item, &weight) && add(h, key, weight) == 0 :
			add_pair(h, item) == 0;

		if (!is_good)
			return err_set(e, ERR_PARSE, "%s: entry %zu is not %s with a weight of 0 or "
				       "more: {\"128\": 3, ...} or [[128, 3], ...]", h->path,
				       h->out->n + 1, values_of(h->out));
	}
	return 0;
}

static int read_histogram(const char *path, struct lengths *out, struct err *e)
{
	struct lengths_histogram h = { .path = path, .out = out };
	struct buf text = { 0 };
	struct str all;
	double sum = 0;
	int rc;

	if (file_read(path, HISTOGRAM_BYTES_MAX, &text, e) < 0)
		return -1;
	all = str_trim(buf_str(&text));
	rc = all.n && (all.p[0] == '{' || all.p[0] == '[') ? read_json(&h, all, e) :
							      read_csv(&h, buf_str(&text), e);
	for (size_t i = 0; i < out->n; i++)
		sum += out->cdf[i];
	if (rc == 0 && !(sum > 0 && !isinf(sum)))
		rc = err_set(e, ERR_PARSE, "%s: the weights add up to %g; expected a sum above 0",
			     path, sum);
	if (rc == 0)
		pcg64_cdf(out->cdf, out->cdf, out->n);
	buf_release(&text);
	return rc < 0 ? err_in_user_file(e) : 0;
}

/* ---- what is written on the command line ---- */

struct law_form {
	const char *name, *arguments;
	enum lengths_kind kind;
	size_t numbers; /* that must be there */
	bool has_limits; /* two more may follow */
	bool is_b_unit;  /* the second number is one of the law's unit */
};

static const struct law_form forms[] = {
	{ "histogram", "FILE", LENGTHS_HISTOGRAM, 0, false, false },
	{ "uniform", "LO,HI", LENGTHS_UNIFORM, 2, false, true },
	{ "normal", "MEAN,SD[,MIN,MAX]", LENGTHS_NORMAL, 2, true, true },
	{ "lognormal", "MEAN,SIGMA[,MIN,MAX]", LENGTHS_LOGNORMAL, 2, true, false },
	{ "exponential", "MEAN[,MIN,MAX]", LENGTHS_EXPONENTIAL, 1, true, true },
	{ "zipf", "EXPONENT,MAX", LENGTHS_ZIPF, 2, false, false },
};

static int length_refuse(const char *option, const char *text, const struct law_form *f,
			 struct err *e)
{
	if (f)
		return err_set(e, ERR_USAGE, "%s %s: expected %s:%s, with lengths as whole numbers "
			       "from 1 to %u and the other numbers above 0", option, text, f->name, f->arguments,
			       LENGTH_TOKENS_MAX);
	return err_set(e, ERR_USAGE, "%s %s: expected histogram:FILE, uniform:LO,HI, "
		       "normal:MEAN,SD[,MIN,MAX], lognormal:MEAN,SIGMA[,MIN,MAX], "
		       "exponential:MEAN[,MIN,MAX] or zipf:EXPONENT,MAX", option, text);
}

static int refuse_time(const char *option, const char *text, const struct law_form *f,
		       struct err *e)
{
	if (f)
		return err_set(e, ERR_USAGE, "%s %s: expected %s:%s, with limits in seconds from 0 "
			       "to a year and the other numbers above 0", option, text, f->name, f->arguments);
	return err_set(e, ERR_USAGE, "%s %s: expected seconds from 0 to a year or a distribution "
		       "of seconds: constant:SECONDS, uniform:LO,HI, normal:MEAN,SD[,MIN,MAX], "
		       "lognormal:MEAN,SIGMA[,MIN,MAX], exponential:MEAN[,MIN,MAX] or "
		       "histogram:FILE",
		       option, text);
}

static bool set_limits(struct lengths *out, double min, double max)
{
	if (!is_value(out, min) || !is_value(out, max) || min > max)
		return false;
	out->min = (int64_t)min;
	out->max = (int64_t)max;
	return true;
}

/* Up to four numbers into v; limits, which may be 0 in times, are the last two. */
static bool split_numbers(const struct law_form *f, const struct lengths *l, struct str rest,
			  double *v, size_t *n)
{
	for (*n = 0; *n < 4 && rest.n; ++*n) {
		bool is_limit = f->kind == LENGTHS_UNIFORM || *n >= f->numbers;

		if (!str_to_f64(str_trim(str_cut(&rest, ',')), &v[*n]) || isinf(v[*n]) ||
		    !(v[*n] > 0 || (l->is_time && is_limit && v[*n] == 0)))
			return false;
		if (l->is_time && (is_limit || *n == 0 || f->is_b_unit))
			v[*n] *= MS_PER_S;
		if (l->is_time && is_limit)
			v[*n] = rint(v[*n]);
	}
	return !rest.n && (*n == f->numbers || (f->has_limits && *n == f->numbers + 2));
}

static bool read_numbers(const struct law_form *f, struct str rest, struct lengths *out)
{
	double v[4] = { 0 };
	size_t n;

	if (!split_numbers(f, out, rest, v, &n))
		return false;
	out->a = v[0];
	out->b = v[1];
	if (f->kind == LENGTHS_UNIFORM)
		return set_limits(out, v[0], v[1]);
	if (f->kind == LENGTHS_ZIPF)
		return v[0] <= 100 && set_limits(out, 1, v[1]);
	if (n > f->numbers)
		return set_limits(out, v[n - 2], v[n - 1]);
	return set_limits(out, least(out), most(out));
}

static const struct law_form *find_form(struct str name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (str_is(name, forms[i].name))
			return &forms[i];
	return NULL;
}

static int parse(const char *option, const char *text, struct lengths *out, struct err *e)
{
	struct str rest = str_of(text), name = str_cut(&rest, ':');
	const struct law_form *f = find_form(name);
	int rc = 0;

	if (!f || !rest.n || (out->is_time && f->kind == LENGTHS_ZIPF))
		return out->is_time ? refuse_time(option, text, NULL, e) :
				      length_refuse(option, text, f, e);
	out->kind = f->kind;
	if (f->kind == LENGTHS_HISTOGRAM)
		rc = read_histogram(rest.p, out, e) < 0 ? err_wrap(e, "%s", option) : 0;
	else if (!read_numbers(f, rest, out))
		rc = (out->is_time ? refuse_time : length_refuse)(option, text, f, e);
	if (rc < 0)
		lengths_release(out);
	return rc;
}

int lengths_parse(const char *option, const char *text, struct lengths *out, struct err *e)
{
	*out = (struct lengths){ 0 };
	return parse(option, text, out, e);
}

int lengths_parse_time(const char *option, const char *text, struct lengths *out, struct err *e)
{
	struct str number = str_of(text);

	*out = (struct lengths){ .is_time = true };
	if (str_starts(number, STR("constant:")))
		number = str_after(number, "constant:");
	else if (strchr(text, ':'))
		return parse(option, text, out, e);
	out->kind = LENGTHS_CONSTANT;
	if (str_to_f64(str_trim(number), &out->a) && out->a >= 0 && out->a <= DUE_S_MAX)
		return 0;
	return refuse_time(option, text, NULL, e);
}

void lengths_release(struct lengths *l)
{
	free(l->value);
	free(l->cdf);
	*l = (struct lengths){ 0 };
}

/* ---- draws ---- */

static double unit(struct pcg64 *rng) /* (0, 1] */
{
	return 1 - pcg64_double(rng);
}

static double standard_normal(struct pcg64 *rng)
{
	double radius = sqrt(-2 * log(unit(rng)));

	return radius * cos(2 * M_PI * unit(rng));
}

/*
 * The integral of x^-s from 1 to x and its inverse, written so that no precision is lost near s =
 * 1; expm1(t)/t and log1p(t)/t are 1 at 0.
 */
static double integral(double s, double x)
{
	double t = (1 - s) * log(x);

	return log(x) * (fabs(t) < 1e-12 ? 1 : expm1(t) / t);
}

static double integral_inverse(double s, double y)
{
	double t = y * (1 - s);

	t = t < -1 ? -1 : t; /* rounding only */
	return exp(y * (fabs(t) < 1e-12 ? 1 : log1p(t) / t));
}

static int64_t zipf(const struct lengths *l, struct pcg64 *rng)
{
	double s = l->a, max = (double)l->max;
	double low = integral(s, 1.5) - 1, high = integral(s, max + 0.5);
	/* Every candidate left of it is accepted. */
	double sure = 2 - integral_inverse(s, integral(s, 2.5) - pow(2, -s));

	for (;;) {
		double y = high + unit(rng) * (low - high), x = integral_inverse(s, y);
		double k = floor(x + 0.5);

		k = k < 1 ? 1 : k > max ? max : k;
		if (k - x <= sure || y >= integral(s, k + 0.5) - pow(k, -s))
			return (int64_t)k;
	}
}

static double draw_real(const struct lengths *l, struct pcg64 *rng)
{
	if (l->kind == LENGTHS_NORMAL)
		return l->a + l->b * standard_normal(rng);
	if (l->kind == LENGTHS_LOGNORMAL)
		return exp(log(l->a) - l->b * l->b / 2 + l->b * standard_normal(rng));
	return -l->a * log(unit(rng));
}

int64_t lengths_draw(const struct lengths *l, struct pcg64 *rng)
{
	double x = 0;

	assert(l->kind != LENGTHS_CONSTANT);
	if (l->kind == LENGTHS_HISTOGRAM)
		return l->value[pcg64_choose(rng, l->cdf, l->n)];
	if (l->kind == LENGTHS_UNIFORM)
		return pcg64_bounded(rng, l->min, l->max);
	if (l->kind == LENGTHS_ZIPF)
		return zipf(l, rng);
	for (int i = 0; i < LENGTHS_TRIES; i++) {
		x = rint(draw_real(l, rng));
		if (x >= (double)l->min && x <= (double)l->max)
			return (int64_t)x;
	}
	return x < (double)l->min ? l->min : l->max;
}

double lengths_draw_s(const struct lengths *l, struct pcg64 *rng)
{
	assert(l->is_time);
	return l->kind == LENGTHS_CONSTANT ? l->a : (double)lengths_draw(l, rng) / MS_PER_S;
}

/* ---- distributions ---- */

#define MEDIAN_RATIO 0.85 /* upstream's, where none is given */

int json_file_refuse(const struct json_file *f, const char *at, const char *key, struct err *e,
		     const char *fmt, ...)
{
	size_t line = 1;
	char text[512];
	va_list args;

	assert(f->where || (at >= f->text.p && at <= f->text.p + f->text.n));
	for (const char *p = f->text.p; !f->where && p < at; p++)
		line += *p == '\n';
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (f->where)
		return err_set(e, ERR_RUN, "%s: %s: %s", f->where, key, text);
	return err_set(e, ERR_RUN, "%s:%zu: %s: %s", f->path, line, key, text);
}

/* What a distribution is read with. */
struct lengths_reading {
	const struct json_file *file;
	const char *key;
	struct json_slice object;
	struct buf shown; /* the numbers so far, as Python prints them */
};

static int distribution_refuse(const struct lengths_reading *r, const char *what, struct err *e)
{
	return json_file_refuse(r->file, r->object.raw.p, r->key, e, "%s", what);
}

static void show(struct lengths_reading *r, struct json_slice v)
{
	struct json_writer w = json_writer(&r->shown);
	double x;

	buf_add_text(&r->shown, r->shown.len ? ", " : "");
	if (v.kind != JSON_REAL || !json_to_f64(v, &x))
		buf_add_str(&r->shown, v.raw);
	else
		json_put_f64(&w, x);
}

/* A number of the object: 1, 0 when it is missing or null, -1. */
static int number(struct lengths_reading *r, const char *name, struct json_slice *v, double *out,
		  struct err *e)
{
	if (!json_member(r->object, name, v) || v->kind == JSON_NULL)
		return 0;
	if ((v->kind == JSON_INT || v->kind == JSON_REAL) && json_to_f64(*v, out) && isfinite(*out))
		return 1;
	return json_file_refuse(r->file, v->raw.p, r->key, e, "\"%s\" must be a number, got %.*s",
				name, (int)(v->raw.n < 80 ? v->raw.n : 80), v->raw.p);
}

/* A required number, with its text; kind, if not NULL, receives which sort. */
static int needed(struct lengths_reading *r, const char *name, double *out, enum json_kind *kind,
		  struct err *e)
{
	struct json_slice v;
	int rc = number(r, name, &v, out, e);

	if (rc == 0)
		return json_file_refuse(r->file, r->object.raw.p, r->key, e, "\"%s\" is missing", name);
	if (rc < 0)
		return -1;
	if (kind)
		*kind = v.kind;
	show(r, v);
	return 0;
}

static int read_max(struct lengths_reading *r, bool is_shown, double *max, struct err *e)
{
	struct json_slice v;
	int rc = number(r, "max", &v, max, e);

	if (rc < 0)
		return -1;
	if (*max < 0)
		return distribution_refuse(r, "\"max\" must not be below 0; 0 or none means no limit", e);
	if (is_shown && rc)
		show(r, v);
	else if (is_shown)
		buf_add_text(&r->shown, ", None");
	return 0;
}

static int read_constant(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "value", &d->a, NULL, e) < 0)
		return -1;
	return d->a < 0 ? distribution_refuse(r, "\"value\" must not be below 0", e) : 0;
}

static int read_uniform(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	enum json_kind min, max;

	if (needed(r, "min", &d->a, &min, e) < 0 || needed(r, "max", &d->b, &max, e) < 0)
		return -1;
	if (!(d->a > 0))
		return distribution_refuse(r, "\"min\" must be above 0", e);
	if (d->b < d->a)
		return distribution_refuse(r, "\"max\" must not be below \"min\"", e);
	if (d->b > (double)DISTRIBUTION_VALUE_MAX)
		return distribution_refuse(r, "\"max\" is too large", e);
	d->is_whole = min == JSON_INT && max == JSON_INT;
	return 0;
}

static int read_average(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	double ratio = MEDIAN_RATIO, other = 0;
	struct json_slice v;
	int rc;

	if (needed(r, "average", &d->average, NULL, e) < 0)
		return -1;
	if (d->average < 1)
		return distribution_refuse(r, "\"average\" must be at least 1", e);
	for (int k = 0; k < 2; k++)
		if (number(r, k ? "sigma" : "mean", &v, &other, e) < 0 || other != 0)
			return other != 0 ? distribution_refuse(r, "\"average\" cannot be used together with "
								"\"mean\" or \"sigma\"", e) : -1;
	rc = number(r, "median_ratio", &v, &ratio, e);
	if (rc < 0)
		return -1;
	if (!(ratio > 0 && ratio < 1))
		return distribution_refuse(r, "\"median_ratio\" must be between 0 and 1", e);
	if (rc)
		show(r, v);
	else
		buf_add_text(&r->shown, ", 0.85");
	d->a = log(d->average * ratio);
	d->b = sqrt(2 * log(d->average / (d->average * ratio)));
	return 0;
}

static int read_lognormal(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	struct json_slice v;

	if (json_member(r->object, "average", &v)) {
		if (read_average(r, d, e) < 0)
			return -1;
	} else {
		if (needed(r, "mean", &d->a, NULL, e) < 0 || needed(r, "sigma", &d->b, NULL, e) < 0)
			return -1;
		if (!(d->a > 0) || d->b < 0)
			return distribution_refuse(r, "\"mean\" must be above 0 and \"sigma\" not below 0", e);
	}
	return read_max(r, true, &d->max, e);
}

static int read_zipf(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "alpha", &d->a, NULL, e) < 0 || read_max(r, false, &d->max, e) < 0)
		return -1;
	return d->a > 1 ? 0 : distribution_refuse(r, "\"alpha\" of zipf must be above 1", e);
}

static int read_poisson(struct lengths_reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "alpha", &d->a, NULL, e) < 0 || read_max(r, false, &d->max, e) < 0)
		return -1;
	if (d->a >= 0 && d->a <= LEGACY_POISSON_MEAN_MAX)
		return 0;
	return distribution_refuse(r, "\"alpha\" of poisson must not be below 0", e);
}

static const struct {
	const char *name, *shown;
	int (*read)(struct lengths_reading *r, struct distribution *d, struct err *e);
} kinds[] = {
	[DISTRIBUTION_CONSTANT] = { "constant", "Constant", read_constant },
	[DISTRIBUTION_UNIFORM] = { "uniform", "UniformDistribution", read_uniform },
	[DISTRIBUTION_LOGNORMAL] = { "lognormal", "LognormalDistribution", read_lognormal },
	[DISTRIBUTION_ZIPF] = { "zipf", "ZipfDistribution", read_zipf },
	[DISTRIBUTION_POISSON] = { "poisson", "PoissonDistribution", read_poisson },
};

int distribution_read(const struct json_file *f, const char *key, struct json_slice object,
		      struct arena *a, struct distribution *out, struct err *e)
{
	struct lengths_reading r = { .file = f, .key = key, .object = object };
	struct json_slice name;
	size_t k = 0, n = sizeof(kinds) / sizeof(*kinds);
	int rc;

	*out = (struct distribution){ .key = key };
	if (object.kind != JSON_OBJECT)
		return distribution_refuse(&r, "expected an object such as {\"distribution\": \"constant\", "
					   "\"value\": 10}", e);
	if (!json_member(object, "distribution", &name) || name.kind != JSON_STRING)
		return distribution_refuse(&r, "\"distribution\" is missing", e);
	while (k < n && !str_is(name.raw, kinds[k].name))
		k++;
	if (k == n)
		return json_file_refuse(f, name.raw.p, key, e, "unknown distribution '%.*s'; there are "
					"constant, uniform, lognormal, zipf and poisson",
					(int)(name.raw.n < 80 ? name.raw.n : 80), name.raw.p);
	out->kind = (enum distribution_kind)k;
	rc = kinds[k].read(&r, out, e);
	if (rc == 0)
		out->shown = str_of(arena_printf(a, "%s[%.*s]", kinds[k].shown, (int)r.shown.len,
						 r.shown.data));
	buf_release(&r.shown);
	return rc;
}

static double draw(const struct distribution *d, struct legacy *np)
{
	switch (d->kind) {
	case DISTRIBUTION_UNIFORM:
		if (d->is_whole)
			return (double)legacy_randint(np, (int64_t)d->a, (int64_t)d->b + 1);
		return legacy_uniform(np, d->a, d->b);
	case DISTRIBUTION_LOGNORMAL:
		return legacy_lognormal(np, d->a, d->b);
	case DISTRIBUTION_ZIPF:
		return (double)legacy_zipf(np, d->a);
	case DISTRIBUTION_POISSON:
		return (double)legacy_poisson(np, d->a);
	case DISTRIBUTION_CONSTANT:
		break;
	}
	return d->a;
}

void distribution_sample(const struct distribution *d, struct legacy *np, size_t n, int64_t *out)
{
	double *v = mem_array(n, sizeof(*v)), scale = 1;

	for (size_t i = 0; i < n; i++)
		v[i] = draw(d, np);
	if (d->average > 0)
		scale = d->average / stats_mean(v, n);
	for (size_t i = 0; i < n; i++) {
		double x = v[i] * scale;

		x = d->max > 0 && x > d->max ? d->max : x;
		out[i] = x < (double)DISTRIBUTION_VALUE_MAX ? (int64_t)rint(x) :
							      DISTRIBUTION_VALUE_MAX;
	}
	free(v);
}

double distribution_draw(const struct distribution *d, struct legacy *np)
{
	double x = draw(d, np);

	return d->max > 0 && x > d->max ? d->max : x;
}

static int check(const char *option, const char *text, const char *which, double r, struct err *e)
{
	if (r >= 0 && r < 1)
		return 0;
	return err_set(e, ERR_USAGE, "%s: the %s ratio must be in [0, 1), got '%.100s'", option, which,
		       text);
}

int range_ratio_parse(const char *option, const char *text, double *input, double *output,
		      struct err *e)
{
	struct json_scan scan = { str_of(text), 0 };
	struct json_slice object, in, out;

	if (opt_python_float(str_of(text), input)) {
		*output = *input;
		return check(option, text, "range", *input, e);
	}
	if (json_next(&scan, &object, NULL) < 0 || !json_at_end(&scan) ||
	    object.kind != JSON_OBJECT)
		return err_set(e, ERR_USAGE, "%s: expected a number or JSON like {\"input\": 0.3, "
			       "\"output\": 0.5}, got '%.100s'", option, text);
	if (!json_member(object, "input", &in) || !json_member(object, "output", &out) ||
	    !json_to_f64(in, input) || !json_to_f64(out, output))
		return err_set(e, ERR_USAGE, "%s: the object needs the numbers \"input\" and "
			       "\"output\", got '%.100s'", option, text);
	if (check(option, text, "input", *input, e) < 0)
		return -1;
	return check(option, text, "output", *output, e);
}
