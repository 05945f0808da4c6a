/* SPDX-License-Identifier: Apache-2.0 */
/* sla.c - see sla.h. */
#include "bench/sweep/sla.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "bench/sweep/params.h"
#include "out/compare/gate.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

/* Longer ones first: "<" would match "<=" too. */
static const struct { const char *text; enum sla_op op; } ops[] = {
	{ "<=", SLA_LE }, { ">=", SLA_GE }, { "<", SLA_LT }, { ">", SLA_GT },
};

#define OPS (sizeof(ops) / sizeof(*ops))
#define GAP_MAX 12.0      /* e^12: a factor beyond which more tells nothing */
#define STRICT 1e-8       /* upstream's: what a strict limit asks for beyond equality */

static const char *op_text(enum sla_op op)
{
	for (size_t i = 0; i < OPS; i++)
		if (ops[i].op == op)
			return ops[i].text;
	return "";
}

/* ---- reading ---- */

static int parse_limit(struct str key, const struct json_value *v, bool is_checked,
		       struct arena *a, struct sla_limit *out, struct err *e)
{
	struct str text = json_text(v, STR(""));
	size_t i = 0;

	*out = (struct sla_limit){ .key = arena_text(a, key) };
	while (i < OPS && !str_starts(text, str_of(ops[i].text)))
		i++;
	if (i == OPS) {
		struct buf shown = { 0 };
		bool is_number = v->kind == JSON_INT || v->kind == JSON_REAL;

		frame_text(&shown, v, FRAME_OBJECT);
		err_set(e, ERR_USAGE, "--sla-params: the limit of '%s' is %.100s; expected a text with "
			"<=, >=, < or > before the number: \"<=%.100s\"", out->key,
			shown.data ? shown.data : "empty", is_number ? shown.data : "200");
		buf_release(&shown);
		return -1;
	}
	out->op = ops[i].op;
	text.p += strlen(ops[i].text);
	text.n -= strlen(ops[i].text);
	if (!frame_float(text, &out->limit) || isnan(out->limit))
		return err_set(e, ERR_USAGE, "--sla-params: the limit of '%s' is '%.*s', a number is "
			       "expected after '%s'", out->key, (int)text.n, text.p, ops[i].text);
	if (is_checked && gate_check_key(out->key, e) < 0)
		return err_wrap(e, "--sla-params");
	return 0;
}

int sla_parse(struct str text, bool is_checked, struct arena *a, struct slas *out, struct err *e)
{
	struct json_value *list;
	struct sla *item;

	if (json_parse(a, text, &list, e) < 0)
		return -1;
	if (list->kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "The SLA sweep should be a list of dictionaries: "
			       "[{\"p99_ttft_ms\": \"<=200\"}]");
	if (list->count == 0)
		return err_set(e, ERR_USAGE, "--sla-params: the list is empty; each of its objects is one "
			       "search: [{\"p99_ttft_ms\": \"<=200\"}]");
	item = arena_alloc(a, (list->count + 1) * sizeof(*item));
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *o = &list->item[i];
		struct sla_limit *limit;

		if (o->kind != JSON_OBJECT || o->count == 0 || o->count > SLA_LIMITS_MAX)
			return err_set(e, ERR_USAGE, "--sla-params: element %zu must be an object "
				       "with 1 to %d limits", i, SLA_LIMITS_MAX);
		limit = arena_alloc(a, o->count * sizeof(*limit));
		for (size_t k = 0; k < o->count; k++)
			if (parse_limit(o->key[k], &o->item[k], is_checked, a, &limit[k], e) < 0)
				return -1;
		item[i] = (struct sla){ limit, o->count };
	}
	*out = (struct slas){ item, list->count };
	return 0;
}

/* The last value of --metric-percentiles, as the command has it. */
static struct str percentiles_of(char *const *argv)
{
	struct str list = STR("99");

	for (size_t i = 0; argv[i]; i++) {
		struct str value = str_of(argv[i]), name = str_cut(&value, '=');

		if (!str_is(name, "--metric-percentiles") && !str_is(name, "--metric_percentiles"))
			continue;
		if (strchr(argv[i], '='))
			list = value;
		else if (argv[i + 1])
			list = str_of(argv[i + 1]);
	}
	return list;
}

static bool has_percentile(struct str list, double wanted)
{
	double v;

	while (list.n)
		if (str_to_f64(str_trim(str_cut(&list, ',')), &v) && v == wanted)
			return true;
	return false;
}

int sla_check_percentiles(const struct slas *s, char *const *bench_argv, struct err *e)
{
	struct str list = percentiles_of(bench_argv);

	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->item[i].n; k++) {
			const char *key = s->item[i].limit[k].key, *member = strstr(key, "].");
			struct str rest = str_of(member ? member + strlen("].") : key);
			struct str number = str_cut(&rest, '_');
			double wanted;

			if (!str_starts(number, STR("p")) || !rest.n ||
			    !str_to_f64((struct str){ number.p + 1, number.n - 1 }, &wanted) ||
			    has_percentile(list, wanted))
				continue;
			return err_set(e, ERR_USAGE, "--sla-params: '%s' is not computed by --bench-cmd, "
				       "whose --metric-percentiles is %.*s; add %g to it",
				       key, (int)list.n, list.p, wanted);
		}
	return 0;
}

int sla_read(const char *path, bool is_checked, struct arena *a, struct slas *out, struct err *e)
{
	struct buf text = { 0 };
	int rc = params_load(path, &text, e);

	if (rc < 0)
		err_wrap(e, "--sla-params");
	else if (sla_parse(arena_str(a, buf_str(&text)), is_checked, a, out, e) < 0)
		rc = e->code == ERR_PARSE ? err_wrap(e, "--sla-params %.100s", path) : -1;
	buf_release(&text);
	return rc < 0 ? err_in_user_file(e) : 0;
}

/* ---- texts ---- */

void sla_text(const struct sla *sla, const char *sep, struct buf *out)
{
	for (size_t i = 0; i < sla->n; i++)
		if (sla->limit[i].is_failures)
			buf_printf(out, "%sfailed%s%.2f %%", i ? sep : "",
				   op_text(sla->limit[i].op), 100 * sla->limit[i].limit);
		else
			buf_printf(out, "%s%s%s%.2f", i ? sep : "", sla->limit[i].key,
				   op_text(sla->limit[i].op), sla->limit[i].limit);
}

void sla_verdict_text(const struct sla_limit *l, double actual, struct buf *out)
{
	const char *verdict = sla_holds(l, actual) ? "PASSED" : "FAILED";

	if (l->is_failures)
		buf_printf(out, "failed = %.2f %%%s%.2f %% | %s", 100 * actual, op_text(l->op),
			   100 * l->limit, verdict);
	else
		buf_printf(out, "%s = %.2f%s%.2f | %s", l->key, actual, op_text(l->op), l->limit,
			   verdict);
}

/* ---- numbers ---- */

static bool is_upper(const struct sla_limit *l)
{
	return l->op == SLA_LE || l->op == SLA_LT;
}

double sla_margin(const struct sla_limit *l, double actual)
{
	double more = is_upper(l) ? actual - l->limit : l->limit - actual;

	/* In upstream's order of additions. */
	if (l->op == SLA_LT)
		return actual + STRICT - l->limit;
	return l->op == SLA_GT ? l->limit + STRICT - actual : more;
}

bool sla_holds(const struct sla_limit *l, double actual)
{
	return sla_margin(l, actual) <= 0;
}

double sla_gap(const struct sla_limit *l, double actual)
{
	double high = is_upper(l) ? actual : l->limit, low = is_upper(l) ? l->limit : actual;
	double gap;

	if (isnan(actual))
		return GAP_MAX;
	if (l->is_failures && actual <= 0) /* does not show how far off the level is */
		return -GAP_MAX;
	if (high == low)
		return 0;
	if (isinf(high - low)) /* one of them is infinite */
		return high > low ? GAP_MAX : -GAP_MAX;
	if (high > 0 && low > 0)
		gap = log(high) - log(low);
	else /* no ratio: how far in units of the limit */
		gap = (high - low) / (fabs(l->limit) > 0 ? fabs(l->limit) : 1);
	return fmin(fmax(gap, -GAP_MAX), GAP_MAX);
}

/* ---- a run's verdict about itself ---- */

struct sla_limit sla_failures(double percent_max)
{
	return (struct sla_limit){ "failed_share", SLA_LE, percent_max / 100, true };
}

struct sla sla_with_failures(const struct sla *asked, double percent_max, struct arena *a)
{
	struct sla_limit *all = arena_alloc(a, (asked->n + 1) * sizeof(*all));

	assert(asked->n <= SLA_LIMITS_MAX);
	memcpy(all, asked->limit, asked->n * sizeof(*all));
	all[asked->n] = sla_failures(percent_max);
	return (struct sla){ all, asked->n + 1 };
}

static double failed_share(const struct json_value *record)
{
	double completed = 0, failed, all;

	frame_number(frame_value(record, STR("completed")), &completed);
	if (!frame_number(frame_value(record, STR("failed")), &failed))
		failed = frame_number(frame_value(record, STR("num_prompts")), &all) ?
			 fmax(all - completed, 0) : 0;
	return completed + failed > 0 ? failed / (completed + failed) : 0;
}

/*
 * Whether a reason for INVALID prevents judging these limits: it affects a metric that has a limit.
 * Results without that list are from earlier versions.
 */
static bool is_spoiled(const struct json_value *reason, const struct json_value *record,
		       const struct sla *sla)
{
	struct str code = json_text(json_get(reason, "code"), STR(""));

	if (str_is(code, "failures") || str_is(code, "no_success"))
		for (size_t k = 0; k < sla->n; k++)
			if (sla->limit[k].is_failures &&
			    !sla_holds(&sla->limit[k], failed_share(record)))
				return false;
	for (size_t k = 0; k < sla->n; k++)
		if (result_reason_spoils(reason, str_of(sla->limit[k].key)))
			return true;
	return false;
}

bool sla_is_measured(const struct json_value *record, const struct sla *sla, struct str *why)
{
	const struct json_value *reasons = json_get(json_get(record, "profllm"), "reasons");

	for (size_t i = 0; reasons && reasons->kind == JSON_ARRAY && i < reasons->count; i++) {
		const struct json_value *r = &reasons->item[i];

		if (!is_spoiled(r, record, sla))
			continue;
		*why = json_text(json_get(r, "text"), STR(""));
		return false;
	}
	return true;
}

int sla_value(const struct sla_limit *l, const struct json_value *record, double *out,
	      struct err *e)
{
	if (l->is_failures) {
		*out = failed_share(record);
		return 0;
	}
	if (frame_number(frame_value(record, str_of(l->key)), out))
		return 0;
	return err_set(e, ERR_RUN, "SLA constraint on '%s': the benchmark's result has no such "
		       "number; percentiles other than p99 need --metric-percentiles in --bench-cmd",
		       l->key);
}
