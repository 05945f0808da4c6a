/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c - see gate.h and compare.h: reads conditions and judges records and comparisons. */
#include "out/compare/gate.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/schema/schema.h"
#include "core/stats/significance.h"
#include "out/compare/compare.h"
#include "out/report/grid.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

#define DIGITS 4             /* of a value, if they distinguish it from the limit */
#define DIGITS_MAX 12
#define SENTENCE_BYTES 1024

/* ---- reading ---- */

/* The unit after the number, and the factor for it. */
static int read_unit(struct gate *g, struct str unit, struct err *e)
{
	static const struct { const char *given, *unit; double factor; } also[] = {
		{ "tok/s", "tokens/s", 1 }, { "req/s", "requests/s", 1 }, { "s", "ms", 1000 },
		{ "ms", "s", 0.001 },
	};
	const char *own = compare_unit(g->key);

	if (!unit.n || str_is(unit, own))
		return 0;
	if (str_is(unit, "%")) {
		g->is_relative = true;
		g->limit /= 100;
		return 0;
	}
	for (size_t i = 0; i < sizeof(also) / sizeof(*also); i++)
		if (str_is(unit, also[i].given) && strcmp(own, also[i].unit) == 0) {
			g->limit *= also[i].factor;
			return 0;
		}
	return err_set(e, ERR_USAGE, "'%s': '%.*s' after the number is not the unit of %s%s%s", g->text,
		       (int)unit.n, unit.p, g->key, *own ? ", which is " : "; write the number alone",
		       own);
}

int gate_parse(struct gate *g, struct str text, struct arena *a, struct err *e)
{
	const char *own = arena_text(a, text);
	size_t key_n = strcspn(own, "<>");
	struct str key = str_trim((struct str){ own, key_n });
	bool is_above = own[key_n] == '>', has_equal;
	const char *limit;
	char *end;

	if (!own[key_n] || !key.n)
		return err_set(e, ERR_USAGE, "'%s' is not a metric, one of > < >= <= and a number, such "
			       "as 'p99_ttft_ms>200' or 'p99_ttft_ms>+5%%'", own);
	has_equal = own[key_n + 1] == '=';
	limit = own + key_n + 1 + has_equal;
	*g = (struct gate){ .text = own, .key = arena_text(a, key) };
	g->op = is_above ? (has_equal ? GATE_AT_LEAST : GATE_ABOVE)
			 : (has_equal ? GATE_AT_MOST : GATE_BELOW);
	g->limit = str_strtod(limit, &end);
	if (end == limit || !isfinite(g->limit))
		return err_set(e, ERR_USAGE, "'%s' has no number after %.*s; expected one such as 200, or "
			       "+5%% for a change", own, has_equal ? 2 : 1, own + key_n);
	return read_unit(g, str_trim(str_of(end)), e);
}

int gate_check_key(const char *key, struct err *e)
{
	const struct schema_field *field = schema_field_find(key);
	const char **names;
	const char *near;

	if (field && (str_starts(str_of(field->type), STR("int")) ||
		      str_starts(str_of(field->type), STR("float"))))
		return 0;
	if (field)
		return err_set(e, ERR_USAGE, "'%s' is not a number in a result but %s", key,
			       field->type);
	names = mem_array(schema_field_count, sizeof(*names));
	for (size_t i = 0; i < schema_field_count; i++)
		names[i] = schema_fields[i].key;
	near = opt_nearest(str_of(key), names, schema_field_count);
	free(names);
	return err_set(e, ERR_USAGE, "a result has no key '%s'%s%s%s", key,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int check_absolute(const struct gate *g, struct err *e)
{
	return g->is_relative ? err_set(e, ERR_USAGE, "'%s': a change needs a baseline; profllm bench "
					"compare BASELINE FILE --fail-if judges changes", g->text) : 0;
}

int gate_check_alone(const struct gate *g, struct err *e)
{
	if (check_absolute(g, e) < 0)
		return -1;
	return gate_check_key(g->key, e) < 0 ? err_wrap(e, "'%s'", g->text) : 0;
}

/* Dotted keys of all numbers below v, into names. */
static void number_keys(const struct json_value *v, const char *before, const char ***names,
			size_t *n, struct arena *a)
{
	for (size_t i = 0; i < v->count; i++) {
		const char *key = arena_printf(a, "%s%.*s", before, (int)v->key[i].n, v->key[i].p);

		if (v->item[i].kind == JSON_OBJECT) {
			number_keys(&v->item[i], arena_printf(a, "%s.", key), names, n, a);
			continue;
		}
		if (v->item[i].kind != JSON_INT && v->item[i].kind != JSON_REAL)
			continue;
		*names = mem_grow(*names, *n + 1, sizeof(**names));
		(*names)[(*n)++] = key;
	}
}

int gate_check_like(const struct gate *g, const struct json_value *example, const char *verb,
		    struct err *e)
{
	const char **names = NULL, *near;
	struct arena a = { 0 };
	bool is_there = false;
	size_t n = 0;

	assert(example->kind == JSON_OBJECT);
	if (check_absolute(g, e) < 0)
		return -1;
	number_keys(example, "", &names, &n, &a);
	for (size_t i = 0; i < n; i++)
		is_there |= strcmp(names[i], g->key) == 0;
	near = is_there ? NULL : opt_nearest(str_of(g->key), names, n);
	if (!is_there)
		err_set(e, ERR_USAGE, "'%s': a result of %s has no number '%s'; %s%s%s", g->text, verb,
			g->key, near ? "did you mean '" : "expected one such as ", near ? near :
			names[0], near ? "'?" : "");
	free(names);
	arena_release(&a);
	return is_there ? 0 : -1;
}

bool gate_is_beyond(const struct gate *g, double v)
{
	switch (g->op) {
	case GATE_ABOVE:
		return v > g->limit;
	case GATE_BELOW:
		return v < g->limit;
	case GATE_AT_LEAST:
		return v >= g->limit;
	default:
		return v <= g->limit;
	}
}

/* ---- words ---- */

const char *gate_outcome_name(enum gate_outcome outcome)
{
	static const char *const names[] = { "passed", "failed", "unjudged" };

	assert((size_t)outcome < sizeof(names) / sizeof(*names));
	return names[outcome];
}

/* Without an exponent for anything a result has; more digits while it reads like other. */
static const char *number_text(double v, double other, struct arena *a)
{
	double size = fabs(v) >= 1 && isfinite(v) ? floor(log10(fabs(v))) + 1 : 1;
	int digits = size > DIGITS ? (int)fmin(size, DIGITS_MAX) : DIGITS;
	const char *text = arena_printf(a, "%.*g", digits, v);

	while (v < other || v > other) {
		if (digits >= DIGITS_MAX || strcmp(text, arena_printf(a, "%.10g", other)) != 0)
			break;
		text = arena_printf(a, "%.*g", ++digits, v);
	}
	return text;
}

/* "312 ms": with more digits if fewer would look equal to the limit; limit NAN: none. */
static const char *gate_value(const char *key, double v, double limit, struct arena *a)
{
	const char *unit = compare_unit(key);

	return arena_printf(a, "%s%s%s", number_text(v, limit, a), *unit ? " " : "", unit);
}

const char *gate_change(const struct gate *g, double delta, struct arena *a)
{
	bool is_fall = g->op == GATE_BELOW || g->op == GATE_AT_MOST;
	double v = 100 * delta, limit = 100 * g->limit;
	const char *verb = v < 0 ? "fell" : "rose";

	if (isinf(v))
		return arena_printf(a, "%s %s from 0 (limit %+.10g %%)", g->key, verb, limit);
	if (is_fall ? v <= 0 && limit <= 0 : v >= 0 && limit >= 0)
		return arena_printf(a, "%s %s by %s %% (limit %.10g %%)", g->key,
				    v < 0 || v > 0 ? verb : "changed",
				    number_text(fabs(v), fabs(limit), a), fabs(limit));
	return arena_printf(a, "%s changed by %+.1f %% (limit %+.10g %%)", g->key, v, limit);
}

/* ---- cases ---- */

void gate_log_add(struct gate_log *log, const char *condition, const char *where,
		  enum gate_outcome outcome, const char *fmt, ...)
{
	char text[SENTENCE_BYTES];
	va_list ap;

	log->item = arena_room(log->a, log->item, log->n, &log->cap, sizeof(*log->item));
	va_start(ap, fmt);
	fmt_vtext(text, sizeof(text), fmt, ap);
	va_end(ap);
	log->item[log->n++] = (struct gate_case){
		.condition = condition, .where = where, .outcome = outcome,
		.text = arena_text(log->a, str_of(text)),
	};
}

/* Why this key is INVALID in the result; false: it is not. */
static bool is_invalid(const struct json_value *record, const char *key, struct str *why)
{
	const struct json_value *reasons = json_get(json_get(record, "profllm"), "reasons");

	if (result_verdict(record, str_of(key)) != RESULT_INVALID)
		return false;
	*why = STR("The verdict on the measurement is INVALID.");
	for (size_t i = 0; reasons && reasons->kind == JSON_ARRAY && i < reasons->count; i++)
		if (result_reason_spoils(&reasons->item[i], str_of(key))) {
			*why = json_text(json_get(&reasons->item[i], "text"), STR(""));
			break;
		}
	return true;
}

/* Why the value is DEGRADED; NULL: it is not. */
static const char *why_degraded(const struct json_value *record, const char *key, struct arena *a)
{
	const struct json_value *reasons = json_get(json_get(record, "profllm"), "reasons");

	if (result_verdict(record, str_of(key)) != RESULT_DEGRADED)
		return NULL;
	for (size_t i = 0; reasons && reasons->kind == JSON_ARRAY && i < reasons->count; i++)
		if (result_reason_degrades(&reasons->item[i], str_of(key)))
			return arena_text(a, json_text(json_get(&reasons->item[i], "text"), STR("")));
	return NULL;
}

static void judge_value(const struct gate *g, const struct json_value *record, double v,
			const char *where, struct gate_log *log)
{
	gate_log_add(log, g->text, where, gate_is_beyond(g, v) ? GATE_FAILED : GATE_PASSED,
		     "%s is %s (limit %s)", g->key, gate_value(g->key, v, g->limit, log->a),
		     gate_value(g->key, g->limit, NAN, log->a));
	log->item[log->n - 1].degraded = why_degraded(record, g->key, log->a);
}

static void judge_one(const struct gate *g, const struct json_value *record, const char *where,
		      struct gate_log *log)
{
	struct str why;
	double v = NAN;

	if (g->is_relative)
		gate_log_add(log, g->text, where, GATE_UNJUDGED, "it is on a change, and there is no "
			     "baseline");
	else if (!frame_number(frame_value(record, str_of(g->key)), &v) || isnan(v))
		gate_log_add(log, g->text, where, GATE_UNJUDGED, "the result has no value of %s",
			     g->key);
	else if (result_is_unmeasured(record, str_of(g->key)))
		gate_log_add(log, g->text, where, GATE_UNJUDGED, "no request of this run has a value of %s",
			     g->key);
	else if (is_invalid(record, g->key, &why))
		gate_log_add(log, g->text, where, GATE_UNJUDGED, "%s is INVALID in this run: %.*s",
			     g->key, (int)why.n, why.p);
	else
		judge_value(g, record, v, where, log);
}

/* True for a condition on the number of failed requests. */
static bool is_on_failures(const struct gate *g)
{
	return strcmp(g->key, "failed") == 0 || strcmp(g->key, "profllm.failed") == 0;
}

static void judge_failures(const struct json_value *record, const char *where,
			   struct gate_log *log)
{
	double failed = 0, completed = 0, percent;

	frame_number(frame_value(record, STR("completed")), &completed);
	if (!frame_number(frame_value(record, STR("failed")), &failed))
		frame_number(frame_value(record, STR("profllm.failed")), &failed); /* pooling */
	if (!(failed > 0))
		return;
	percent = 100 * failed / (failed + completed);
	if (percent > GATE_FAILED_PERCENT_MAX)
		gate_log_add(log, "failed requests", where, GATE_FAILED, "%s %% of the requests failed "
			     "(limit %g %%, or a condition on failed)",
			     number_text(percent, GATE_FAILED_PERCENT_MAX, log->a),
			     GATE_FAILED_PERCENT_MAX);
}

void gate_judge(const struct gate *gate, size_t n, const struct json_value *record,
		const char *where, struct gate_log *log)
{
	bool is_on_any = false;

	for (size_t i = 0; i < n; i++) {
		judge_one(&gate[i], record, where, log);
		is_on_any |= is_on_failures(&gate[i]);
	}
	if (n && !is_on_any)
		judge_failures(record, where, log);
}

void gate_judge_none(const struct gate *gate, size_t n, const char *reason, const char *where,
		     struct gate_log *log)
{
	for (size_t i = 0; i < n; i++)
		gate_log_add(log, gate[i].text, where, GATE_UNJUDGED, "there is no result: %s", reason);
}

static size_t count(const struct gate_log *log, enum gate_outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++)
		n += log->item[i].outcome == outcome;
	return n;
}

bool gate_is_failed(const struct gate_log *log)
{
	return count(log, GATE_FAILED) ||
	       (!log->is_unjudged_allowed && count(log, GATE_UNJUDGED));
}

/* ---- for people ---- */

/* The number of different conditions; each is among the first cases. */
static size_t count_conditions(const struct gate_log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->n; i++) {
		size_t k = 0;

		while (strcmp(log->item[k].condition, log->item[i].condition) != 0)
			k++;
		n += k == i;
	}
	return n;
}

/* "1 condition", "30 checks of 3 conditions". */
static void add_count(const struct gate_log *log, size_t n, struct buf *out)
{
	size_t conditions = count_conditions(log);

	if (log->n > conditions)
		buf_printf(out, "%zu check%s of ", n, n == 1 ? "" : "s");
	else
		conditions = n;
	buf_printf(out, "%zu condition%s", conditions, conditions == 1 ? "" : "s");
}

/* "passed: 3 conditions"; "failed: 1 of 3 conditions, 1 could not be judged". */
static void add_sum(const struct gate_log *log, struct buf *out)
{
	size_t failed = count(log, GATE_FAILED), unjudged = count(log, GATE_UNJUDGED);

	buf_add_text(out, gate_is_failed(log) ? "failed: " : "passed: ");
	if (failed)
		buf_printf(out, "%zu of ", failed);
	if (failed || !gate_is_failed(log)) {
		add_count(log, failed ? log->n : count(log, GATE_PASSED), out);
		if (unjudged)
			buf_printf(out, ", %zu could not be judged", unjudged);
	} else {
		add_count(log, unjudged, out);
		buf_add_text(out, " could not be judged");
	}
	if (unjudged && !log->is_unjudged_allowed)
		buf_add_text(out, " (--allow-unjudged accepts that)");
}

/* "note: 2 of these values are DEGRADED; p99_ttft_ms>5 in a: REASON". */
static void add_degraded(const struct gate_log *log, struct buf *out)
{
	const struct gate_case *first = NULL;
	size_t n = 0;

	for (size_t i = log->n; i-- > 0;)
		if (log->item[i].degraded) {
			first = &log->item[i];
			n++;
		}
	if (n)
		buf_printf(out, "note: %zu of these values %s DEGRADED; %s%s%s: %s\n", n,
			   n == 1 ? "is" : "are", first->condition, *first->where ? " in " : "",
			   first->where, first->degraded);
}

/* What files have of a case; lines have it once for all cases. */
static const char *full_text(const struct gate_case *c, struct arena *a)
{
	return c->degraded ? arena_printf(a, "%s; the value is DEGRADED: %s", c->text, c->degraded)
			   : c->text;
}

void gate_lines(const struct gate_log *log, struct buf *out)
{
	for (size_t i = 0; i < log->n; i++) {
		const struct gate_case *c = &log->item[i];
		const char *in = *c->where ? " in " : "";

		if (c->outcome == GATE_FAILED)
			buf_printf(out, "FAILED: %s%s%s\n", c->text, in, c->where);
		else if (c->outcome == GATE_UNJUDGED)
			buf_printf(out, "NOT JUDGED: %s%s%s: %s\n", c->condition, in, c->where,
				   c->text);
	}
	if (!log->n)
		return;
	add_sum(log, out);
	buf_add_char(out, '\n');
	add_degraded(log, out);
}

/* ---- for programs ---- */

/* XML 1.0 cannot spell most control characters: they become blanks. */
static void add_xml(struct buf *out, const char *text)
{
	char *own = mem_text(text);

	for (char *c = own; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n' && *c != '\t')
			*c = ' ';
	html_escape(out, own);
	free(own);
}

static void add_attribute(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, " %s=\"", name);
	add_xml(out, text);
	buf_add_char(out, '"');
}

static void add_case(const struct gate_log *log, const struct gate_case *c, const char *title,
		     struct buf *out)
{
	const char *element = c->outcome == GATE_FAILED ? "failure" :
			      log->is_unjudged_allowed ? "skipped" : "error";
	struct buf name = { 0 };

	buf_printf(&name, "%s%s%s", c->condition, *c->where ? " in " : "", c->where);
	buf_add_text(out, "  <testcase");
	add_attribute(out, "classname", title);
	add_attribute(out, "name", name.data);
	buf_release(&name);
	if (c->outcome == GATE_PASSED) {
		buf_add_text(out, ">\n    <system-out>");
		add_xml(out, full_text(c, log->a));
		buf_add_text(out, "</system-out>\n  </testcase>\n");
		return;
	}
	buf_printf(out, ">\n    <%s", element);
	add_attribute(out, "message", full_text(c, log->a));
	buf_add_text(out, "/>\n  </testcase>\n");
}

void gate_junit(const struct gate_log *log, const char *title, struct buf *out)
{
	size_t unjudged = count(log, GATE_UNJUDGED);

	buf_add_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
	add_attribute(out, "name", title);
	buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n", log->n,
		   count(log, GATE_FAILED), log->is_unjudged_allowed ? 0 : unjudged,
		   log->is_unjudged_allowed ? unjudged : 0);
	for (size_t i = 0; i < log->n; i++)
		add_case(log, &log->item[i], title, out);
	buf_add_text(out, "</testsuite>\n");
}

void gate_markdown(const struct gate_log *log, const char *title, struct buf *out)
{
	bool has_where = false;
	struct arena a = { 0 };
	struct buf sum = { 0 };
	struct grid g;

	for (size_t i = 0; i < log->n; i++)
		has_where |= *log->item[i].where;
	add_sum(log, &sum);
	buf_printf(out, "### %s %s\n\n", gate_is_failed(log) ? "\xe2\x9d\x8c" : "\xe2\x9c\x85", title);
	buf_printf(out, "%s\n\n", sum.data);
	grid_begin(&g, &a);
	grid_add(&g, "Condition");
	if (has_where)
		grid_add(&g, "Run");
	grid_add(&g, "Outcome");
	grid_add(&g, "Reason");
	grid_end_heads(&g);
	for (size_t i = 0; i < log->n; i++) {
		const struct gate_case *c = &log->item[i];

		grid_add(&g, arena_printf(&a, "`%s`", c->condition));
		if (has_where)
			grid_add(&g, c->where);
		grid_add(&g, gate_outcome_name(c->outcome));
		grid_add(&g, full_text(c, &a));
	}
	grid_markdown(&g, out);
	buf_add_char(out, '\n');
	buf_release(&sum);
	arena_release(&a);
}

/* ---- conditions on a comparison ---- */

#define SESSIONS_MIN 4 /* for a limit on a value */

/* "slow at max_concurrency=8"; "" where there is one further side and one configuration (NULL). */
static const char *where(const struct bench_comparison *c, size_t side, const char *config,
			 struct arena *a)
{
	if (!config)
		return c->n_sides > 2 ? c->side[side].name : "";
	return arena_printf(a, "%s at %s", c->side[side].name, config);
}

/* Why no run of a side counts in a configuration (NULL: in any); NULL: one does. */
static const char *left_out(const struct bench_comparison *c, size_t side, size_t metric,
			    const char *config, struct arena *a)
{
	bool is_invalid = false;

	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->run[i];

		if (run->side != side || (config && strcmp(run->config, config) != 0) ||
		    isnan(run->value[metric]))
			continue;
		if (run->state[metric] != MATCHED_INVALID || c->o->is_invalid_counted)
			return NULL;
		is_invalid = true;
	}
	if (matched_has_no_success(&c->spec, side))
		return arena_printf(a, "every request of %s failed", c->side[side].name);
	return arena_printf(a, is_invalid ? "it is INVALID in every run of %s that has it"
					  : "%s has no value of it", c->side[side].name);
}

/* ---- a change ---- */

static void add_change(const struct gate *g, const struct matched_estimate *is, const char *at,
		       enum gate_outcome outcome, struct gate_log *log)
{
	gate_log_add(log, g->text, at, outcome, "%s: %s, then %s",
		     gate_change(g, is->ratio - 1, log->a),
		     gate_value(g->key, is->value[0], NAN, log->a),
		     gate_value(g->key, is->value[1], NAN, log->a));
}

/* Why a change cannot be judged; NULL: it can. */
static const char *unjudged(const struct matched_pair *pair, const struct matched_row *row,
			    bool is_any)
{
	if (pair->refusal)
		return pair->reason;
	switch (row->why) {
	case MATCHED_WHY_NONE:
	case MATCHED_WHY_WIDE:
	case MATCHED_WHY_CHANCE:
		return NULL;
	case MATCHED_WHY_DESIGN:
		return is_any ? NULL : row->reason;
	default:
		return row->reason;
	}
}

static void check_change(const struct bench_comparison *c, const struct gate *g,
			 const struct matched_pair *pair, size_t metric, bool is_any,
			 struct gate_log *log)
{
	const struct matched_row *row = &pair->row[metric];
	const char *why = unjudged(pair, row, is_any), *at = where(c, pair->side, NULL, log->a);
	bool is_failed;

	if (why) {
		gate_log_add(log, g->text, at, GATE_UNJUDGED, "%s", why);
		return;
	}
	is_failed = gate_is_beyond(g, row->is.ratio - 1) && (is_any || row->q <= c->o->alpha);
	add_change(g, &row->is, at, is_failed ? GATE_FAILED : GATE_PASSED, log);
	/* Configurations with evidence of their own, which the total may hide. */
	for (size_t i = 0; !is_failed && row->n_configs > 1 && i < row->n_configs; i++) {
		const struct matched_config *one = &row->config[i];

		if (!one->apart && (one->evident || is_any) && gate_is_beyond(g, one->is.ratio - 1))
			add_change(g, &one->is, where(c, pair->side, one->name, log->a),
				   GATE_FAILED, log);
	}
	/* Configurations missing in the estimate, which a gate must not ignore. */
	for (size_t i = 0; i < pair->n_configs; i++) {
		const char *config = pair->config[i];

		why = left_out(c, 0, metric, config, log->a);
		why = why ? why : left_out(c, pair->side, metric, config, log->a);
		if (why)
			gate_log_add(log, g->text, where(c, pair->side, config, log->a),
				     GATE_UNJUDGED, "%s", why);
	}
	for (size_t i = 0; i < pair->n_alone[0]; i++)
		gate_log_add(log, g->text, where(c, pair->side, pair->alone[0][i].config, log->a),
			     GATE_UNJUDGED, "only the baseline has it");
}

/* ---- a value ---- */

static void check_value(const struct bench_comparison *c, const struct gate *g,
			const struct compare_values *v, const char *at, bool is_any,
			struct gate_log *log)
{
	struct interval i = student_interval(v->value, v->n, 1 - c->o->alpha);
	bool is_failed = gate_is_beyond(g, v->median) &&
			 (is_any || (gate_is_beyond(g, i.low) && gate_is_beyond(g, i.high)));

	if (!is_any && v->n < SESSIONS_MIN)
		gate_log_add(log, g->text, at, GATE_UNJUDGED, "not enough data (%zu server session%s, "
			     "%d needed)", v->n, v->n == 1 ? "" : "s", SESSIONS_MIN);
	else
		gate_log_add(log, g->text, at, is_failed ? GATE_FAILED : GATE_PASSED,
			     "%s is %s (limit %s)", g->key,
			     gate_value(g->key, v->median, g->limit, log->a),
			     gate_value(g->key, g->limit, NAN, log->a));
}

static void check_values(const struct bench_comparison *c, const struct gate *g,
			 const struct matched_pair *pair, size_t metric, bool is_any,
			 struct gate_log *log)
{
	const size_t side = pair->side, n_configs = pair->n_configs + pair->n_alone[1];
	struct compare_values *v;
	size_t n = compare_values(c, metric, side, log->a, &v);

	if (!n) {
		gate_log_add(log, g->text, where(c, side, NULL, log->a), GATE_UNJUDGED, "%s",
			     left_out(c, side, metric, NULL, log->a));
		return;
	}
	for (size_t i = 0; i < n; i++)
		check_value(c, g, &v[i], where(c, side, n > 1 || n_configs > 1 ? v[i].config : NULL,
					       log->a), is_any, log);
	for (size_t i = 0; i < n_configs; i++) {
		const char *config = i < pair->n_configs ? pair->config[i]
				     : pair->alone[1][i - pair->n_configs].config;
		const char *why = left_out(c, side, metric, config, log->a);

		if (why)
			gate_log_add(log, g->text, where(c, side, config, log->a), GATE_UNJUDGED,
				     "%s", why);
	}
}

void compare_gate_check(const struct bench_comparison *c, const struct gate *g, bool is_any,
			struct gate_log *log)
{
	size_t metric = 0;

	while (strcmp(c->metric[metric].name, g->key) != 0)
		metric++;
	for (size_t i = 0; i < c->out.n_pairs; i++)
		if (g->is_relative)
			check_change(c, g, &c->out.pair[i], metric, is_any, log);
		else
			check_values(c, g, &c->out.pair[i], metric, is_any, log);
}

/* ---- failed requests ---- */

/* The share of failed requests of a side in one configuration; NAN: not known. */
static double failed_share(const struct bench_comparison *c, size_t side, const char *config)
{
	double failed = 0, all = 0;

	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->run[i];

		if (run->side != side || strcmp(run->config, config) != 0 ||
		    isnan(run->work.failed) || isnan(run->work.completed))
			continue;
		failed += run->work.failed;
		all += run->work.failed + run->work.completed;
	}
	return all > 0 ? failed / all : NAN;
}

void compare_gate_failures(const struct bench_comparison *c, struct gate_log *log)
{
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		for (size_t k = 0; k < pair->n_configs; k++) {
			const char *config = pair->config[k];
			const char *shown = pair->n_configs > 1 ? config : NULL;
			double before = failed_share(c, 0, config);
			double now = failed_share(c, pair->side, config);

			if (now - before > MATCHED_FAILED_SHARE)
				gate_log_add(log, "failed requests",
					     where(c, pair->side, shown, log->a), GATE_FAILED,
					     "failed requests rose from %.1f %% to %.1f %%",
					     before * 100, now * 100);
		}
	}
}

/* ---- the runs of one operand ---- */

/* "crowd (run 3 of results.json)"; a file's name where it holds one run; "" for the only run. */
static const char *run_name(const struct compare_side *s, size_t i, struct arena *a)
{
	const char *path = s->run[i].path;
	struct str name = json_text(json_get(s->run[i].record, "experiment"), STR(""));
	size_t first = i, end = i + 1;

	while (first && s->run[first - 1].path == path)
		first--;
	while (end < s->n && s->run[end].path == path)
		end++;
	if (s->n == 1)
		return "";
	if (end - first == 1)
		return path;
	path = arena_printf(a, "run %zu of %s", i - first + 1, path);
	return name.n ? arena_printf(a, "%.*s (%s)", (int)name.n, name.p, path) : path;
}

/* Refuses a mistyped key, which --allow-unjudged would otherwise hide for ever. */
static int check_key(const struct gate *g, const struct compare_side *s, struct err *e)
{
	double v;

	if (schema_field_find(g->key))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (compare_number(s->run[i].record, g->key, &v))
			return 0;
	return s->n ? gate_check_like(g, s->run[0].record, s->path, e) : 0;
}

int compare_gate_runs(const char *path, const struct gate *gate, size_t n, struct gate_log *log,
		      struct buf *notes, struct err *e)
{
	static const struct compare_opts none;
	struct bench_comparison c = { .o = &none, .a = log->a };
	const struct compare_side *s;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		if (gate[i].is_relative)
			return err_set(e, ERR_USAGE, "--fail-if '%s': a change needs a baseline, which is "
				       "the first of at least two operands", gate[i].text);
	c.side = arena_alloc(c.a, sizeof(*c.side));
	if (compare_read(&c, path, e) < 0) {
		compare_release(&c);
		return -1;
	}
	s = &c.side[0];
	for (size_t i = 0; i < n && rc == 0; i++)
		if ((rc = check_key(&gate[i], s, e)) < 0)
			err_wrap(e, "--fail-if");
	for (size_t i = 0; i < s->n && rc == 0; i++)
		gate_judge(gate, n, s->run[i].record, run_name(s, i, log->a), log);
	buf_add_str(notes, buf_str(&c.notes));
	compare_release(&c);
	return rc;
}
