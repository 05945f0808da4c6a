/* SPDX-License-Identifier: Apache-2.0 */
/* distribution.c - see distribution.h. */
#include "data/distribution.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "json/write.h"
#include "stats/stats.h"

#define MEDIAN_RATIO 0.85 /* upstream's, where none is given */

int json_file_refuse(const struct json_file *f, const char *at, const char *key, struct err *e,
		     const char *fmt, ...)
{
	size_t line = 1;
	char text[512];
	va_list args;

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
struct reading {
	const struct json_file *file;
	const char *key;
	struct json_slice object;
	struct buf shown; /* the numbers so far, as Python prints them */
};

static int refuse(const struct reading *r, const char *what, struct err *e)
{
	return json_file_refuse(r->file, r->object.raw.p, r->key, e, "%s", what);
}

static void show(struct reading *r, struct json_slice v)
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
static int number(struct reading *r, const char *name, struct json_slice *v, double *out,
		  struct err *e)
{
	if (!json_member(r->object, name, v) || v->kind == JSON_NULL)
		return 0;
	if ((v->kind == JSON_INT || v->kind == JSON_REAL) && json_to_f64(*v, out) && isfinite(*out))
		return 1;
	return json_file_refuse(r->file, v->raw.p, r->key, e, "\"%s\" must be a number, got %.*s",
				name, (int)(v->raw.n < 80 ? v->raw.n : 80), v->raw.p);
}

/* A number that there has to be, shown; kind, if not NULL, receives which sort. */
static int needed(struct reading *r, const char *name, double *out, enum json_kind *kind,
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

static int read_max(struct reading *r, bool is_shown, double *max, struct err *e)
{
	struct json_slice v;
	int rc = number(r, "max", &v, max, e);

	if (rc < 0)
		return -1;
	if (*max < 0)
		return refuse(r, "\"max\" must not be below 0; 0 or none means no limit", e);
	if (is_shown && rc)
		show(r, v);
	else if (is_shown)
		buf_add_text(&r->shown, ", None");
	return 0;
}

static int read_constant(struct reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "value", &d->a, NULL, e) < 0)
		return -1;
	return d->a < 0 ? refuse(r, "\"value\" must not be below 0", e) : 0;
}

static int read_uniform(struct reading *r, struct distribution *d, struct err *e)
{
	enum json_kind min, max;

	if (needed(r, "min", &d->a, &min, e) < 0 || needed(r, "max", &d->b, &max, e) < 0)
		return -1;
	if (!(d->a > 0))
		return refuse(r, "\"min\" must be above 0", e);
	if (d->b < d->a)
		return refuse(r, "\"max\" must not be below \"min\"", e);
	if (d->b > (double)DISTRIBUTION_VALUE_MAX)
		return refuse(r, "\"max\" is too large", e);
	d->is_whole = min == JSON_INT && max == JSON_INT;
	return 0;
}

static int read_average(struct reading *r, struct distribution *d, struct err *e)
{
	double ratio = MEDIAN_RATIO, other = 0;
	struct json_slice v;
	int rc;

	if (needed(r, "average", &d->average, NULL, e) < 0)
		return -1;
	if (d->average < 1)
		return refuse(r, "\"average\" must be at least 1", e);
	for (int k = 0; k < 2; k++)
		if (number(r, k ? "sigma" : "mean", &v, &other, e) < 0 || other != 0)
			return other != 0 ? refuse(r, "\"average\" cannot be used together with "
						   "\"mean\" or \"sigma\"", e) : -1;
	rc = number(r, "median_ratio", &v, &ratio, e);
	if (rc < 0)
		return -1;
	if (!(ratio > 0 && ratio < 1))
		return refuse(r, "\"median_ratio\" must be between 0 and 1", e);
	if (rc)
		show(r, v);
	else
		buf_add_text(&r->shown, ", 0.85");
	d->a = log(d->average * ratio);
	d->b = sqrt(2 * log(d->average / (d->average * ratio)));
	return 0;
}

static int read_lognormal(struct reading *r, struct distribution *d, struct err *e)
{
	struct json_slice v;

	if (json_member(r->object, "average", &v)) {
		if (read_average(r, d, e) < 0)
			return -1;
	} else {
		if (needed(r, "mean", &d->a, NULL, e) < 0 || needed(r, "sigma", &d->b, NULL, e) < 0)
			return -1;
		if (!(d->a > 0) || d->b < 0)
			return refuse(r, "\"mean\" must be above 0 and \"sigma\" not below 0", e);
	}
	return read_max(r, true, &d->max, e);
}

static int read_zipf(struct reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "alpha", &d->a, NULL, e) < 0 || read_max(r, false, &d->max, e) < 0)
		return -1;
	return d->a > 1 ? 0 : refuse(r, "\"alpha\" of zipf must be above 1", e);
}

static int read_poisson(struct reading *r, struct distribution *d, struct err *e)
{
	if (needed(r, "alpha", &d->a, NULL, e) < 0 || read_max(r, false, &d->max, e) < 0)
		return -1;
	if (d->a >= 0 && d->a <= LEGACY_POISSON_MEAN_MAX)
		return 0;
	return refuse(r, "\"alpha\" of poisson must not be below 0", e);
}

static const struct {
	const char *name, *shown;
	int (*read)(struct reading *r, struct distribution *d, struct err *e);
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
	struct reading r = { .file = f, .key = key, .object = object };
	struct json_slice name;
	size_t k = 0, n = sizeof(kinds) / sizeof(*kinds);
	int rc;

	*out = (struct distribution){ .key = key };
	if (object.kind != JSON_OBJECT)
		return refuse(&r, "expected an object such as {\"distribution\": \"constant\", "
			      "\"value\": 10}", e);
	if (!json_member(object, "distribution", &name) || name.kind != JSON_STRING)
		return refuse(&r, "\"distribution\" is missing", e);
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
