/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c - see lengths.h. */
#include "data/lengths.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "json/read.h"
#include "rng/swap.h"

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

struct histogram {
	const char *path;
	struct lengths *out;
	size_t cap;
};

/* -1: not a value and a weight. */
static int add(struct histogram *h, struct str value, double weight)
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

static int read_csv(struct histogram *h, struct str text, struct err *e)
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
static int add_pair(struct histogram *h, struct json_slice pair)
{
	struct json_iter it = json_iter(pair);
	struct json_slice value, weight, more;
	struct str key;
	double w;

	if (pair.kind != JSON_ARRAY || json_each(&it, &key, &value) != 1 ||
	    json_each(&it, &key, &weight) != 1 || json_each(&it, &key, &more) != 0 ||
	    !json_to_f64(weight, &w))
		return -1;
	return value.kind == JSON_INT || value.kind == JSON_REAL ? add(h, value.raw, w) : -1;
}

static int read_json(struct histogram *h, struct str text, struct err *e)
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
	struct histogram h = { .path = path, .out = out };
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
		rc = err_set(e, ERR_PARSE, "%s: the weights sum up to %g; a number above 0 is needed",
			     path, sum);
	if (rc == 0)
		pcg64_cdf(out->cdf, out->cdf, out->n);
	buf_release(&text);
	return rc;
}

/* ---- what is written on the command line ---- */

struct form {
	const char *name, *arguments;
	enum lengths_kind kind;
	size_t numbers; /* that must be there */
	bool has_limits; /* two more may follow */
	bool is_b_unit;  /* the second number is one of the law's unit */
};

static const struct form forms[] = {
	{ "histogram", "FILE", LENGTHS_HISTOGRAM, 0, false, false },
	{ "uniform", "LO,HI", LENGTHS_UNIFORM, 2, false, true },
	{ "normal", "MEAN,SD[,MIN,MAX]", LENGTHS_NORMAL, 2, true, true },
	{ "lognormal", "MEAN,SIGMA[,MIN,MAX]", LENGTHS_LOGNORMAL, 2, true, false },
	{ "exponential", "MEAN[,MIN,MAX]", LENGTHS_EXPONENTIAL, 1, true, true },
	{ "zipf", "EXPONENT,MAX", LENGTHS_ZIPF, 2, false, false },
};

static int refuse(const char *option, const char *text, const struct form *f, struct err *e)
{
	if (f)
		return err_set(e, ERR_USAGE, "%s %s: %s:%s was expected, lengths being whole numbers of "
			       "1 to %u and the others above 0", option, text, f->name, f->arguments,
			       LENGTH_TOKENS_MAX);
	return err_set(e, ERR_USAGE, "%s %s: expected histogram:FILE, uniform:LO,HI, "
		       "normal:MEAN,SD[,MIN,MAX], lognormal:MEAN,SIGMA[,MIN,MAX], "
		       "exponential:MEAN[,MIN,MAX] or zipf:EXPONENT,MAX", option, text);
}

static int refuse_time(const char *option, const char *text, const struct form *f, struct err *e)
{
	if (f)
		return err_set(e, ERR_USAGE, "%s %s: %s:%s was expected, limits being seconds from 0 to "
			       "a year and the others above 0", option, text, f->name, f->arguments);
	return err_set(e, ERR_USAGE, "%s %s: expected seconds from 0 to a year or a law of seconds: "
		       "constant:SECONDS, uniform:LO,HI, normal:MEAN,SD[,MIN,MAX], "
		       "lognormal:MEAN,SIGMA[,MIN,MAX], exponential:MEAN[,MIN,MAX] or histogram:FILE",
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
static bool split_numbers(const struct form *f, const struct lengths *l, struct str rest, double *v,
			  size_t *n)
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

static bool read_numbers(const struct form *f, struct str rest, struct lengths *out)
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

static const struct form *find_form(struct str name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (str_is(name, forms[i].name))
			return &forms[i];
	return NULL;
}

static int parse(const char *option, const char *text, struct lengths *out, struct err *e)
{
	struct str rest = str_of(text), name = str_cut(&rest, ':');
	const struct form *f = find_form(name);
	int rc = 0;

	if (!f || !rest.n || (out->is_time && f->kind == LENGTHS_ZIPF))
		return out->is_time ? refuse_time(option, text, NULL, e) :
				      refuse(option, text, f, e);
	out->kind = f->kind;
	if (f->kind == LENGTHS_HISTOGRAM)
		rc = read_histogram(rest.p, out, e) < 0 ? err_wrap(e, "%s", option) : 0;
	else if (!read_numbers(f, rest, out))
		rc = (out->is_time ? refuse_time : refuse)(option, text, f, e);
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
 * The integral of x^-s from 1 to x and its inverse, written so that s near 1 loses nothing;
 * expm1(t)/t and log1p(t)/t are 1 at 0.
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
	/* Left of it every candidate is accepted. */
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
