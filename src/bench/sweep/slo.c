/* SPDX-License-Identifier: Apache-2.0 */
/* slo.c - see slo.h. */
#include "bench/sweep/slo.h"

#include <math.h>

#include "client/metrics/trust.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "core/schema/schema.h"

#define PERCENTILE_MIN 1.0
#define PERCENTILE_MAX 99.99

/* ---- reading ---- */

static int not_a_limit(const char *option, const char *key, struct err *e)
{
	if (strstr(key, "itl"))
		return err_set(e, ERR_USAGE, "%s: %s is taken over tokens and not over requests, so "
			       "requests cannot be counted against it; limit mean_tpot_ms or "
			       "p99_tpot_ms instead", option, key);
	if (schema_field_find(key))
		return err_set(e, ERR_USAGE, "%s: %s belongs to a whole run and not to a request, so "
			       "requests cannot be counted against it; limit TTFT, TPOT or E2EL, such as "
			       "p99_ttft_ms<200 (bench sweep serve_sla --sla-search bisect takes any key "
			       "of a result)", option, key);
	return err_set(e, ERR_USAGE, "%s: '%s' is not a limit on requests; expected mean_, median_ or "
		       "pNN_ (such as p99_) before ttft_ms, tpot_ms or e2el_ms, such as "
		       "p99_ttft_ms<200", option, key);
}

static int read_key(const char *option, const char *key, struct slo_limit *out, struct err *e)
{
	struct str rest = str_of(key), stat = str_cut(&rest, '_'), block = str_cut(&rest, '_');
	double p = NAN;

	out->block = metric_block_find(block);
	if (!str_is(rest, "ms") || (out->block != BLOCK_TTFT && out->block != BLOCK_TPOT &&
				    out->block != BLOCK_E2EL))
		return not_a_limit(option, key, e);
	out->is_mean = str_is(stat, "mean");
	if (out->is_mean)
		return 0;
	if (str_is(stat, "median"))
		p = 50;
	else if (!str_starts(stat, STR("p")) ||
		 !str_to_f64((struct str){ stat.p + 1, stat.n - 1 }, &p))
		return not_a_limit(option, key, e);
	if (!(p >= PERCENTILE_MIN && p <= PERCENTILE_MAX))
		return err_set(e, ERR_USAGE, "%s: %s: expected a percentile from %g to %g", option, key,
			       PERCENTILE_MIN, PERCENTILE_MAX);
	out->quantile = p / 100;
	return 0;
}

static int add(const char *option, const char *key, enum sla_op op, double value, struct arena *a,
	       struct slo *out, struct err *e)
{
	struct slo_limit *l = &out->limit[out->n];
	char text[FMT_F64_BYTES];

	if (out->n == CAPACITY_LIMITS_MAX)
		return err_set(e, ERR_USAGE, "%s: more than %d limits", option, CAPACITY_LIMITS_MAX);
	*l = (struct slo_limit){ .key = key };
	if (read_key(option, key, l, e) < 0)
		return -1;
	if (op == SLA_GE || op == SLA_GT)
		return err_set(e, ERR_USAGE, "%s: %s is limited from below, but latencies grow with the "
			       "load; expected < or <= after %s", option, key, key);
	if (!(value > 0) || isinf(value))
		return err_set(e, ERR_USAGE, "%s: the limit of %s is %g; expected a number of "
			       "milliseconds above 0", option, key, value);
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->limit[i].key, key) == 0)
			return err_set(e, ERR_USAGE, "%s: %s is limited twice, to %g and to %g ms; keep "
				       "one of them", option, key, out->limit[i].limit_s * 1000, value);
	l->limit_s = value / 1000;
	l->text = arena_printf(a, "%s%s%s", key, op == SLA_LT ? "<" : "<=", fmt_f64(text, value));
	if (value == floor(value) && value < 1e15)
		l->text = arena_printf(a, "%s%s%.0f", key, op == SLA_LT ? "<" : "<=", value);
	out->n++;
	return 0;
}

static int parse_one(const char *option, struct str one, struct arena *a, struct slo *out,
		     struct err *e)
{
	size_t at = 0, length;
	struct str number;
	enum sla_op op;
	double value;

	while (at < one.n && one.p[at] != '<' && one.p[at] != '>')
		at++;
	length = at + 1 < one.n && one.p[at + 1] == '=' ? 2 : 1;
	if (at == 0 || at + length >= one.n)
		return err_set(e, ERR_USAGE, "%s: '%.*s' is not a limit; expected a metric, < or <=, and "
			       "a number of milliseconds, such as p99_ttft_ms<200", option, (int)one.n,
			       one.p);
	op = one.p[at] == '<' ? (length == 2 ? SLA_LE : SLA_LT) : (length == 2 ? SLA_GE : SLA_GT);
	number = str_trim((struct str){ one.p + at + length, one.n - at - length });
	if (!str_to_f64(number, &value))
		return err_set(e, ERR_USAGE, "%s: '%.*s' in '%.*s' is not a number; the limit is in "
			       "milliseconds and has no unit", option, (int)number.n, number.p,
			       (int)one.n, one.p);
	one.n = at;
	return add(option, arena_text(a, str_trim(one)), op, value, a, out, e);
}

int slo_parse(const char *option, const char *text, struct arena *a, struct slo *out,
	      struct err *e)
{
	struct str rest = str_of(text);

	*out = (struct slo){ .n = 0 };
	do {
		if (parse_one(option, str_trim(str_cut(&rest, ',')), a, out, e) < 0)
			return -1;
	} while (rest.n);
	return 0;
}

int slo_of_sla(const char *option, const struct sla *sla, struct arena *a, struct slo *out,
	       struct err *e)
{
	*out = (struct slo){ .n = 0 };
	for (size_t i = 0; i < sla->n; i++)
		if (add(option, sla->limit[i].key, sla->limit[i].op, sla->limit[i].limit, a, out,
			e) < 0)
			return -1;
	return 0;
}

/* ---- requests ---- */

bool slo_has_mean(const struct slo *slo)
{
	for (size_t j = 0; j < slo->n; j++)
		if (slo->limit[j].is_mean)
			return true;
	return false;
}

/* NAN: not known, or an answer of one token, which has no TPOT. */
static double value_of(const struct slo_limit *l, const struct slo_request *r)
{
	if (l->block == BLOCK_TTFT)
		return r->ttft_s;
	if (r->is_failed || isinf(r->end_s))
		return NAN;
	if (l->block == BLOCK_E2EL)
		return r->e2el_s;
	return r->tokens > 1 ? (r->e2el_s - r->ttft_s) / (r->tokens - 1) : NAN;
}

void slo_mark(const struct slo *slo, const struct slo_request *r, double *value,
	      struct level_request *out)
{
	*out = (struct level_request){ .due_s = r->due_s, .end_s = r->end_s, .ttft_s = r->ttft_s,
				       .is_failed = r->is_failed, .value = value };
	for (size_t j = 0; j < slo->n; j++) {
		const struct slo_limit *l = &slo->limit[j];
		double v = value_of(l, r);
		/* An unfinished request takes at least as long as it has taken so far. */
		bool is_late = isinf(r->end_s) && l->block != BLOCK_TPOT && isnan(v) &&
			       r->age_s > l->limit_s;

		if (value)
			value[j] = r->is_failed ? NAN : v;
		out->slow |= (uint32_t)(is_late || v > l->limit_s) << j;
		out->open |= (uint32_t)(isnan(v) && !is_late && !r->is_failed) << j;
	}
	if (value)
		value[slo->n] = 0;
}

void slo_limits(const struct slo *slo, struct capacity_opts *out)
{
	out->limits = slo->n;
	for (size_t j = 0; j < slo->n; j++)
		out->limit[j] = (struct capacity_limit){ .is_mean = slo->limit[j].is_mean,
							 .quantile = slo->limit[j].quantile,
							 .value = slo->limit[j].limit_s };
}

unsigned slo_trust_bits(const struct slo *slo)
{
	unsigned bits = 0;

	for (size_t j = 0; j < slo->n; j++)
		bits |= TRUST_BIT(slo->limit[j].block == BLOCK_TTFT ? TRUST_TTFT :
				  slo->limit[j].block == BLOCK_TPOT ? TRUST_TPOT : TRUST_E2EL);
	return bits;
}
