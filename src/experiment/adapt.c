/* SPDX-License-Identifier: Apache-2.0 */
/* adapt.c - see adapt.h. */
#include "experiment/adapt.h"

#include <math.h>

#include "run/sla.h"

/* ---- verdicts ---- */

static double number_at(const struct json_value *result, const char *path)
{
	const struct json_value *v = result;
	struct str rest = str_of(path);

	while (v && rest.n) {
		struct str key = str_cut(&rest, '.');
		char name[64];

		if (key.n >= sizeof(name))
			return NAN;
		memcpy(name, key.p, key.n);
		name[key.n] = '\0';
		v = json_get(v, name);
	}
	return v && (v->kind == JSON_INT || v->kind == JSON_REAL) ? json_real(v, NAN) : NAN;
}

static double first_of(const struct json_value *result, const char *const *path)
{
	double v = NAN;

	for (; *path && isnan(v); path++)
		v = number_at(result, *path);
	return v;
}

enum adapt_verdict adapt_judge(const struct json_value *result, const struct import_opts *o)
{
	static const char *const ttft[] = {
		"ttft_ms.p99", "metrics.ttft_ms.p99", "ttft.p99", "metrics.ttft.p99", "p99_ttft_ms",
		"ttft_ms.mean", "metrics.ttft_ms.mean", "ttft.mean", "metrics.ttft.mean",
		"mean_ttft_ms", NULL,
	};
	static const char *const tpot[] = {
		"tpot_ms.p99", "metrics.tpot_ms.p99", "tpot.p99", "metrics.tpot.p99", "p99_tpot_ms",
		"itl_ms.p99", "metrics.itl_ms.p99", "inter_token_latency_ms.p99",
		"metrics.inter_token_latency_ms.p99", "itl.p99", "metrics.itl.p99", "p99_itl_ms",
		"tpot_ms.mean", "metrics.tpot_ms.mean", "tpot.mean", "metrics.tpot.mean",
		"mean_tpot_ms", "itl_ms.mean", "metrics.itl_ms.mean", "inter_token_latency_ms.mean",
		"metrics.inter_token_latency_ms.mean", "itl.mean", "metrics.itl.mean", "mean_itl_ms",
		NULL,
	};
	const struct sla_limit limit[] = {
		{ "ttft", SLA_LE, o->sla_ttft_ms, false }, { "tpot", SLA_LE, o->sla_tpot_ms, false },
		sla_failures(o->sla_max_failed),
	};
	const struct sla sla = { limit, sizeof(limit) / sizeof(*limit) };
	double value[] = { first_of(result, ttft), first_of(result, tpot), 0 };
	struct str why;
	struct err e;

	if (sla_value(&limit[2], result, &value[2], &e) < 0 ||
	    !sla_is_measured(result, &sla, &why) || isnan(value[0]) || isnan(value[1]))
		return ADAPT_UNKNOWN;
	for (size_t i = 0; i < sla.n; i++)
		if (!sla_holds(&limit[i], value[i]))
			return ADAPT_FAIL;
	return ADAPT_PASS;
}

/* ---- the search ---- */

void adapt_begin(struct adapt *a, const struct import_opts *o, const struct adapt_point *points,
		 size_t n)
{
	*a = (struct adapt){ .o = o };
	for (size_t i = 0; i < n && !a->static_first_fail; i++) {
		if (points[i].verdict == ADAPT_PASS)
			a->static_last_pass = points[i].concurrency;
		else if (points[i].verdict == ADAPT_FAIL && a->static_last_pass)
			a->static_first_fail = points[i].concurrency;
	}
	a->last_pass = a->static_last_pass;
	a->first_fail = a->static_first_fail;
	a->largest = n ? points[n - 1].concurrency : 0;
	a->step = n > 1 ? points[n - 1].concurrency - points[n - 2].concurrency : a->largest;
	if (a->step < 1)
		a->step = 1;
	a->is_ended = !a->last_pass;
}

int64_t adapt_next(const struct adapt *a)
{
	int64_t next;

	if (a->is_ended || a->probes >= a->o->adaptive_max_probes)
		return 0;
	if (a->first_fail)
		return a->first_fail - a->last_pass > 1 ?
		       a->last_pass + (a->first_fail - a->last_pass) / 2 : 0;
	next = a->largest + a->step;
	if (next > a->o->adaptive_max_concurrency)
		next = a->o->adaptive_max_concurrency;
	return next > a->largest ? next : 0;
}

void adapt_take(struct adapt *a, int64_t concurrency, enum adapt_verdict verdict, bool is_new)
{
	a->probes += is_new;
	if (verdict == ADAPT_UNKNOWN) {
		a->is_ended = true;
	} else if (verdict == ADAPT_FAIL) {
		a->first_fail = concurrency;
	} else {
		a->last_pass = concurrency;
		if (!a->first_fail) {
			a->largest = concurrency;
			a->step *= 2;
		}
	}
}
