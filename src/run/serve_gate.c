/* SPDX-License-Identifier: Apache-2.0 */
/* serve_gate.c - see serve_gate.h. */
#include "run/serve_gate.h"

#include <math.h>

#include "schema/schema.h"

#define STEADY "a cap, an infinite rate and no --no-steady-state"

struct check {
	const struct gate *g;
	const struct serve_opts *o;
	const struct serve_derived *d;
	bool is_experiment;
	struct err *e;
};

/* "...; add --max-concurrency", "...; add benchmark.max_concurrency". */
static int refuse(const struct check *c, const char *why, const char *what, const char *option)
{
	char spelled[64];

	snprintf(spelled, sizeof(spelled), "%s%s", c->is_experiment ? "benchmark." : "--", option);
	for (char *p = spelled + 2; c->is_experiment && *p; p++)
		*p = *p == '-' ? '_' : *p;
	return err_set(c->e, ERR_USAGE, "'%s': %s; %s %s", c->g->text, why, what, spelled);
}

/* "p99.9_ttft_ms", "mean_ttft_ms": what is before the first "_", and the metric. */
static int check_latency(const struct check *c, bool is_percentile)
{
	struct str metric = str_of(c->g->key), statistic = str_cut(&metric, '_');
	char why[64], what[48];
	double v = NAN;

	metric.n -= strlen("_ms");
	if (!(c->d->metrics & serve_metric_bit(metric))) {
		snprintf(why, sizeof(why), "%.*s is not computed", (int)metric.n, metric.p);
		return refuse(c, why, "add it to", "percentile-metrics");
	}
	if (!is_percentile)
		return 0;
	str_to_f64((struct str){ statistic.p + 1, statistic.n - 1 }, &v);
	for (size_t i = 0; i < c->d->n_percentiles; i++)
		if (!(c->d->percentile[i] < v) && !(c->d->percentile[i] > v))
			return 0;
	snprintf(what, sizeof(what), "add %.*s to", (int)statistic.n - 1, statistic.p + 1);
	return refuse(c, "this percentile is not computed", what, "metric-percentiles");
}

static int check_steady_state(const struct check *c)
{
	static const char why[] = "a steady state needs a cap and an infinite rate";

	if (c->o->no_steady_state)
		return refuse(c, "the steady state is not computed", "leave out", "no-steady-state");
	if (!c->d->max_concurrency)
		return refuse(c, why, "add", "max-concurrency");
	return isinf(c->o->request_rate) ? 0 : refuse(c, why, "leave out", "request-rate");
}

/* An experiment watches the machine and repeats by keys of its own. */
static int check_need(const struct check *c, const char *when)
{
	const struct serve_opts *o = c->o;
	const struct system_opts *s = &c->d->system;
	const bool is_own = c->is_experiment;
	const struct { const char *when, *option; bool is_met; } need[] = {
		{ "ramp-up", "ramp-up-strategy", c->d->ramp_up != RAMP_NONE },
		{ "--report-cached-tokens", "report-cached-tokens", o->report_cached_tokens },
		{ "probe requests were sent", "probe-request-rate", o->probe_request_rate > 0 },
		{ "--gpu-price", "gpu-price", c->d->gpu_price > 0 },
		{ "--gpus and --gpu-price", "gpu-price", c->d->gpu_price > 0 },
		{ "--num-runs above 1", "num-runs", is_own || o->num_runs > 1 },
		{ "--system-metrics", "system-metrics", is_own || s->gpu || s->host || s->process },
	};

	for (size_t i = 0; i < sizeof(need) / sizeof(*need); i++)
		if (strcmp(when, need[i].when) == 0 && !need[i].is_met)
			return refuse(c, "the result will not have it", "add", need[i].option);
	return 0;
}

int serve_gate_check(const struct gate *g, const struct serve_opts *o,
		     const struct serve_derived *d, bool is_experiment, struct err *e)
{
	const struct check c = { g, o, d, is_experiment, e };
	const struct schema_field *field = schema_field_find(g->key);

	if (gate_check_alone(g, e) < 0)
		return -1;
	if (strcmp(field->when, d->is_pooling ? "generation" : "pooling") == 0)
		return err_set(e, ERR_USAGE, "'%s': a result of backend %s does not have it; it is for "
			       "backends that %s", g->text, o->backend, d->is_pooling ?
			       "generate text" : "give vectors or scores");
	if (strcmp(g->key, "request_goodput") == 0 && !d->n_goodput)
		return refuse(&c, "there is no goodput without limits", "add them with", "goodput");
	if (strcmp(field->key, "p<p>_<metric>_ms") == 0)
		return check_latency(&c, true);
	if (strcmp(field->when, "metric selected") == 0)
		return check_latency(&c, false);
	if (str_starts(str_of(field->when), STR(STEADY)))
		return check_steady_state(&c);
	return check_need(&c, field->when);
}
