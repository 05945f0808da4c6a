/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - see compare.h: finds the metrics and parameters of runs, passes the runs to
 * decide/compare.h, explains refusals, returns the values of a side.
 */
#include "out/compare/compare.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/python.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/report/grid.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

#define DEGRADED_NAMED_MAX 8 /* different reasons of a side, in a note */

/* ---- what a key is ---- */

/* Keys of a result that say nothing about how the load was made. */
static bool is_bookkeeping(const char *key)
{
	static const char *const name[] = {
		"date", "run_number", "_benchmark_name", "label", "endpoint_type", "tokenizer_id",
		"rps_change_events", "total_num_tokens", "tags", "percentiles", "seed", "timestamp",
		"tokenizer", "cold_startup_percentiles", "cold_compilation_percentiles",
		"warm_startup_percentiles", "warm_compilation_percentiles",
	};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (strcmp(key, name[i]) == 0)
			return true;
	return false;
}

static bool has_number_prefix(const char *key)
{
	size_t n = *key == 'p' ? strspn(key + 1, "0123456789.") : 0;

	return n && key[n + 1] == '_';
}

static bool starts_with_any(const char *key, const char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(key, word[i], strlen(word[i])) == 0)
			return true;
	return false;
}

/* Numbers of the offline modes, which schema/result.json does not list. */
static bool is_offline_time(const char *key)
{
	static const char *const word[] = { "avg_", "mean_", "median_", "std_" };

	return strcmp(key, "elapsed_time") == 0 || strncmp(key, "percentiles.", 12) == 0 ||
	       strcmp(key, "total_startup_time") == 0 || has_number_prefix(key) ||
	       starts_with_any(key, word, sizeof(word) / sizeof(*word));
}

static bool is_offline_rate(const char *key)
{
	return str_ends(str_of(key), STR("_per_second")) ||
	       str_ends(str_of(key), STR("_throughput"));
}

bool compare_is_metric(const char *key)
{
	const struct schema_field *f = schema_field_find(key);

	if (f)
		return strcmp(f->group, "setup") != 0;
	return is_offline_time(key) || is_offline_rate(key);
}

static enum schema_better better_of(const char *key)
{
	const struct schema_field *f = schema_field_find(key);

	if (f)
		return f->better;
	return is_offline_rate(key) ? SCHEMA_HIGHER : is_offline_time(key) ? SCHEMA_LOWER
									   : SCHEMA_NONE;
}

const char *compare_unit(const char *key)
{
	static const struct { const char *end, *unit; } ends[] = {
		{ "requests_per_second", "requests/s" }, { "tokens_per_second", "tokens/s" },
		{ "_time", "s" }, { "_latency", "s" }, { "_s", "s" }, { "_ms", "ms" },
	};
	const struct schema_field *f = schema_field_find(key);

	if (f)
		return f->unit;
	if (strncmp(key, "percentiles.", 12) == 0 || strstr(key, "_percentiles."))
		return "s";
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (str_ends(str_of(key), str_of(ends[i].end)))
			return ends[i].unit;
	return "";
}

/* The work and its rate: always part of the configuration, never what defines a side. */
static bool is_workload(const char *key)
{
	static const char *const word[] = {
		"request_rate", "max_concurrency", "burstiness", "num_prompts", "ramp_up_",
		"load_pattern", "dataset_name", "random_", "sonnet_", "prefix_repetition_", "hf_",
		"sharegpt_", "custom_", "spec_bench_", "speed_bench_", "blazedit_", "asr_", "bfcl_",
		"timed_trace_", "trace_", "input_len", "output_len", "ignore_eos", "multi_turn",
		"per_turn_", "conversations_", "max_sessions", "user_centric_rate", "num_users",
		"think_time", "tool_time", "structured_", "constraint_form", "repeat_count",
		"num_requests", "batch_size", "use_beam_search",
	};

	return starts_with_any(key, word, sizeof(word) / sizeof(*word));
}

/* Options that shape the load and may not be among the result's own keys. */
static bool is_load_option(const char *key)
{
	static const char *const word[] = {
		"dataset_path", "temperature", "top_", "min_p", "extra_body", "endpoint", "logprobs",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "use_beam_search",
		"prompt_salt", "priority_classes", "lora_", "chat_template_kwargs", "mix",
	};

	return is_workload(key) || (starts_with_any(key, word, sizeof(word) / sizeof(*word)) &&
				    strcmp(key, "endpoint_type") != 0);
}

/* ---- parameters of all runs ---- */

static bool is_ignored(const struct bench_comparison *c, struct str key)
{
	struct str rest = str_of(c->o->ignore);

	while (rest.n)
		if (str_eq(str_trim(str_cut(&rest, ',')), key))
			return true;
	return false;
}

/* Classified keys of results and of options, so that each is judged once: 1 + its index. */
struct keys { struct map record, option; size_t cap; };

/* The index of a parameter, which is added if it is new. "-" and "_" are equal. */
static size_t param_at(struct bench_comparison *c, struct str key, size_t *cap)
{
	char *name = arena_text(c->a, key);
	size_t i;

	for (size_t k = 0; name[k] && name[k] != '.'; k++)
		if (name[k] == '-')
			name[k] = '_';
	for (i = 0; i < c->n_params; i++)
		if (strcmp(c->param[i].key, name) == 0)
			return i;
	c->param = arena_room(c->a, c->param, c->n_params, cap, sizeof(*c->param));
	c->param[c->n_params++] = (struct compare_param){ .key = name };
	return i;
}

static const char *python_text(struct bench_comparison *c, const struct json_value *v)
{
	struct buf text = { 0 };

	json_python_str(&text, v);
	return arena_take(c->a, &text).p;
}

static bool is_param(const struct bench_comparison *c, const char *name, bool is_option)
{
	if (is_ignored(c, str_of(name)))
		return false;
	return is_option ? is_load_option(name) : !compare_is_metric(name) && !is_bookkeeping(name);
}

/* 1 + the index of a key's parameter; 0: it is not a parameter. */
static size_t place_of(struct bench_comparison *c, struct keys *keys, struct str key,
		       bool is_option)
{
	struct map *known = is_option ? &keys->option : &keys->record;
	uint64_t place;

	if (!map_get(known, key, &place)) {
		const char *name = arena_text(c->a, key);

		place = is_param(c, name, is_option) ? 1 + param_at(c, key, &keys->cap) : 0;
		map_put(known, str_of(name), place);
	}
	return (size_t)place;
}

/* Notes which parameters a run has; with text their texts too, one place for each. */
static void read_params(struct bench_comparison *c, const struct compare_run *run,
			struct keys *keys, const char **text)
{
	const struct json_value *r = run->record;
	const struct json_value *options = frame_value(r, STR("profllm.options"));

	for (size_t i = 0; i < r->count; i++) {
		size_t at = r->item[i].kind == JSON_ARRAY ? 0 : place_of(c, keys, r->key[i], false);

		if (at && text)
			text[at - 1] = python_text(c, &r->item[i]);
	}
	for (size_t i = 0; options && options->kind == JSON_OBJECT && i < options->count; i++) {
		size_t at = options->item[i].kind == JSON_NULL ? 0 :
			place_of(c, keys, options->key[i], true);

		if (at && text && !text[at - 1])
			text[at - 1] = python_text(c, &options->item[i]);
	}
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether every side has it: a missing parameter must not prevent a match. */
static bool is_everywhere(const struct bench_comparison *c, size_t param)
{
	for (size_t s = 0; s < c->n_sides; s++)
		if (!c->side[s].run[0].param[param])
			return false;
	return true;
}

static void classify(struct bench_comparison *c)
{
	for (size_t p = 0; p < c->n_params; p++) {
		const char *key = c->param[p].key;
		enum compare_param_kind kind = COMPARE_SAME;

		for (size_t s = 0; s < c->n_sides; s++) {
			const struct compare_side *side = &c->side[s];

			if (!is_same(side->run[0].param[p], c->side[0].run[0].param[p]) &&
			    kind == COMPARE_SAME)
				kind = COMPARE_BETWEEN;
			for (size_t i = 1; i < side->n; i++)
				if (!is_same(side->run[i].param[p], side->run[0].param[p]))
					kind = COMPARE_WITHIN;
		}
		if (kind == COMPARE_BETWEEN && is_workload(key) && is_everywhere(c, p) &&
		    !(c->o->by && strcmp(c->o->by, key) == 0))
			kind = COMPARE_WITHIN;
		c->param[p].kind = kind;
	}
}

static void find_params(struct bench_comparison *c)
{
	struct keys keys = { .cap = 32 };

	c->param = arena_alloc(c->a, keys.cap * sizeof(*c->param));
	/* First which parameters there are, then what each run has of them. */
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++)
			read_params(c, &c->side[s].run[i], &keys, NULL);
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			struct compare_run *run = &c->side[s].run[i];

			run->param = arena_alloc(c->a, (c->n_params + 1) * sizeof(*run->param));
			read_params(c, run, &keys, run->param);
		}
	map_release(&keys.record);
	map_release(&keys.option);
	classify(c);
}

/* ---- runs ---- */

/* "max_concurrency=8 request_rate=inf": a run's parameters of a kind. In the arena. */
static const char *params_text(const struct bench_comparison *c, const struct compare_run *run,
			       enum compare_param_kind kind, bool is_of_workload)
{
	struct buf text = { 0 };

	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == kind && run->param[p] &&
		    (!is_of_workload || is_workload(c->param[p].key)))
			buf_printf(&text, "%s%s=%s", text.len ? " " : "", c->param[p].key,
				   run->param[p]);
	return arena_take(c->a, &text).p;
}

static const char *load_of(const struct bench_comparison *c, const struct compare_run *run)
{
	const char *load = params_text(c, run, COMPARE_WITHIN, true);

	return *load ? load : NULL;
}

static const char *config_of(const struct bench_comparison *c, const struct compare_run *run)
{
	const char *config = params_text(c, run, COMPARE_WITHIN, false);

	return *config ? config : "the only configuration";
}

/* The run's own id, else its content: a copy of a file holds the same run. */
static const char *id_of(const struct bench_comparison *c, const struct compare_run *run)
{
	struct str id = json_text(frame_value(run->record, STR("profllm.run_id")), STR(""));
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	const char *out;

	if (id.n)
		return arena_text(c->a, id);
	json_put_value(&w, run->record);
	out = text.is_over ? NULL :
		arena_printf(c->a, "%zu bytes %016" PRIx64, text.len, map_hash(buf_str(&text)));
	buf_release(&text);
	return out;
}

/* Unique over all runs; the parts of an operand that was split share its servers. */
static const char *session_of(const struct bench_comparison *c, const struct compare_side *side,
			      size_t i)
{
	if (c->o->is_each_run)
		return arena_printf(c->a, "%s run %zu", side->name, i);
	return side->run[i].session ?
		arena_printf(c->a, "%s server %u", side->path, side->run[i].session) : NULL;
}

static bool is_of_failures(const char *key)
{
	return strcmp(key, "failed") == 0 || strcmp(key, "completed") == 0;
}

/* The run's own verdict on a metric. */
static enum matched_state state_of(const struct json_value *record, const char *key)
{
	static const enum matched_state state[] = {
		[RESULT_VALID] = MATCHED_COUNTS, [RESULT_DEGRADED] = MATCHED_DEGRADED,
		[RESULT_INVALID] = MATCHED_INVALID,
	};

	return state[result_verdict(record, str_of(key))];
}

static double number_or_nan(const struct json_value *record, const char *key)
{
	double v;

	return compare_number(record, key, &v) ? v : NAN;
}

static struct matched_work work_of(const struct json_value *r)
{
	return (struct matched_work){
		.failed = number_or_nan(r, "failed"), .completed = number_or_nan(r, "completed"),
		.input_tokens = number_or_nan(r, "total_input_tokens"),
		.output_tokens = number_or_nan(r, "total_output_tokens"),
		.goodput = number_or_nan(r, "request_goodput"),
		.throughput = number_or_nan(r, "request_throughput"),
	};
}

/* If no request completed, latencies of 0 were never measured. */
static void fill_values(const struct bench_comparison *c, const struct json_value *r, double *value,
			unsigned char *state)
{
	double completed;
	bool is_empty = compare_number(r, "completed", &completed) && completed <= 0;

	for (size_t m = 0; m < c->n_metrics; m++) {
		const char *key = c->metric[m].name;

		value[m] = is_empty && !is_of_failures(key) ? NAN : number_or_nan(r, key);
		state[m] = (unsigned char)state_of(r, key);
	}
}

static void take_runs(struct bench_comparison *c)
{
	size_t n = 0;

	for (size_t s = 0; s < c->n_sides; s++)
		n += c->side[s].n;
	c->run = arena_alloc(c->a, (n + 1) * sizeof(*c->run));
	c->spec.n_runs = 0;
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct compare_run *run = &c->side[s].run[i];
			double *value = arena_alloc(c->a, (c->n_metrics + 1) * sizeof(*value));
			unsigned char *state = arena_alloc(c->a, c->n_metrics + 1);

			fill_values(c, run->record, value, state);
			c->run[c->spec.n_runs++] = (struct matched_run){
				.side = s, .config = config_of(c, run), .load = load_of(c, run),
				.session = session_of(c, &c->side[s], i), .id = id_of(c, run),
				.value = value, .state = state, .work = work_of(run->record) };
		}
}

void compare_note(struct bench_comparison *c, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	buf_printf(&c->notes, "%s\n", line);
}

bool compare_number(const struct json_value *record, const char *key, double *out)
{
	return frame_number(frame_value(record, str_of(key)), out) && isfinite(*out);
}

/* ---- metrics ---- */

static const char *const usual[] = {
	"request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
	"rtfx", "input_sequence_throughput", "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms",
	"p99_tpot_ms", "median_itl_ms", "p99_itl_ms", "median_e2el_ms", "p99_e2el_ms",
	"requests_per_second", "tokens_per_second", "avg_latency", "percentiles.50",
	"percentiles.99", "avg_cold_startup_time", "avg_warm_startup_time",
};

static bool has_metric(const struct compare_side *s, const char *key)
{
	double v;

	for (size_t i = 0; i < s->n; i++)
		if (compare_number(s->run[i].record, key, &v))
			return true;
	return false;
}

static bool has_only_failures(const struct compare_side *s)
{
	double completed, failed;

	for (size_t i = 0; i < s->n; i++)
		if (!compare_number(s->run[i].record, "completed", &completed) || completed > 0 ||
		    !compare_number(s->run[i].record, "failed", &failed) || failed <= 0)
			return false;
	return s->n > 0;
}

/* Metrics that are 0 everywhere are left out, such as the audio rate of a text model. */
static bool is_ever_more(const struct bench_comparison *c, const char *key)
{
	double v;

	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++)
			if (compare_number(c->side[s].run[i].record, key, &v) && fabs(v) > 0)
				return true;
	return false;
}

static struct matched_metric metric_of(const struct bench_comparison *c, const char *key)
{
	static const int better[] = { [SCHEMA_NONE] = 0, [SCHEMA_HIGHER] = 1, [SCHEMA_LOWER] = -1 };
	struct matched_metric m =
		matched_metric_of(key, compare_unit(key), better[better_of(key)]);

	if (c->o->min_effect > 0)
		m.effect_min = c->o->min_effect;
	return m;
}

static void add_metric(struct bench_comparison *c, const char *key, size_t *cap)
{
	for (size_t i = 0; i < c->n_metrics; i++)
		if (strcmp(c->metric[i].name, key) == 0)
			return;
	c->metric = arena_room(c->a, c->metric, c->n_metrics, cap, sizeof(*c->metric));
	c->metric[c->n_metrics++] = metric_of(c, key);
}

static int named_metric(struct bench_comparison *c, const char *option, const char *key,
			size_t *cap, struct err *e)
{
	for (size_t s = 0; s < c->n_sides; s++)
		if (has_metric(&c->side[s], key)) {
			add_metric(c, key, cap);
			return 0;
		}
	return err_set(e, ERR_USAGE, "%s: no run has a number called '%s'", option, key);
}

static int named_metrics(struct bench_comparison *c, size_t *cap, struct err *e)
{
	struct str rest = str_of(c->o->metrics);

	while (rest.n) {
		const char *key = arena_text(c->a, str_trim(str_cut(&rest, ',')));

		if (*key && named_metric(c, "--metrics", key, cap, e) < 0)
			return -1;
	}
	if (c->o->primary && named_metric(c, "--metric", c->o->primary, cap, e) < 0)
		return -1;
	for (size_t i = 0; i < c->o->n_also; i++)
		if (named_metric(c, "--fail-if", c->o->also[i], cap, e) < 0)
			return -1;
	return 0;
}

static void every_metric(struct bench_comparison *c, size_t *cap)
{
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct json_value *r = c->side[s].run[i].record;

			for (size_t k = 0; k < r->count; k++) {
				const char *key = arena_text(c->a, r->key[k]);
				double v;

				if (compare_is_metric(key) && better_of(key) != SCHEMA_NONE &&
				    compare_number(r, key, &v))
					add_metric(c, key, cap);
			}
		}
}

static int choose_metrics(struct bench_comparison *c, struct err *e)
{
	size_t cap = 0;

	if (c->o->is_all)
		every_metric(c, &cap);
	for (size_t i = 0; !c->o->metrics && i < sizeof(usual) / sizeof(*usual); i++) {
		bool is_everywhere = true;

		for (size_t s = 0; s < c->n_sides; s++)
			is_everywhere &= has_metric(&c->side[s], usual[i]);
		if (is_everywhere && is_ever_more(c, usual[i]))
			add_metric(c, usual[i], &cap);
	}
	if (named_metrics(c, &cap, e) < 0)
		return -1;
	for (size_t s = 0; !c->n_metrics && s < c->n_sides; s++)
		if (has_only_failures(&c->side[s]))
			return err_set(e, ERR_RUN, "every request of %s failed, so there is nothing to "
				       "compare", c->side[s].name);
	if (!c->n_metrics)
		return err_set(e, ERR_RUN, "the sides have no metric in common");
	return 0;
}

/* ---- everything ---- */

static int check_models(const struct bench_comparison *c, struct err *e)
{
	struct str first = { 0 };
	const char *path = NULL;

	for (size_t s = 0; s < c->n_sides && !c->o->is_any_model; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct compare_run *run = &c->side[s].run[i];
			struct str model = json_text(json_get(run->record, "model_id"), STR(""));

			if (model.n && first.n && !str_eq(model, first))
				return err_set(e, ERR_RUN, "%s is of model '%.*s', %s of '%.*s'; "
					       "--across-models compares them all the same",
					       path, (int)first.n, first.p, run->path,
					       (int)model.n, model.p);
			if (model.n && !first.n) {
				first = model;
				path = run->path;
			}
		}
	return 0;
}

int compare_load(struct bench_comparison *c, const struct compare_opts *o, const char *const *path,
		 size_t n, struct arena *a, struct err *e)
{
	*c = (struct bench_comparison){ .o = o, .a = a };
	if (n > COMPARE_SIDES_MAX)
		return err_set(e, ERR_LIMIT, "%zu sides are more than the limit of %d", n,
			       COMPARE_SIDES_MAX);
	c->side = arena_alloc(a, n * sizeof(*c->side));
	for (size_t i = 0; i < n; i++)
		if (compare_read(c, path[i], e) < 0)
			return -1;
	if (o->by && compare_split(c, e) < 0)
		return -1;
	if (check_models(c, e) < 0 || choose_metrics(c, e) < 0)
		return -1;
	find_params(c);
	return 0;
}

/* The place of the metric that is judged without adjustment; n_metrics: none. */
static size_t primary_of(const struct bench_comparison *c)
{
	size_t i = 0;

	if (!c->o->primary)
		return c->o->metrics ? 0 : c->n_metrics;
	while (strcmp(c->metric[i].name, c->o->primary) != 0)
		i++;
	return i;
}

/* Notes what only the user can know. */
static void note_unknown_sessions(struct bench_comparison *c)
{
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];
		bool is_wanted = false;

		for (size_t m = 0; m < c->n_metrics; m++)
			is_wanted |= pair->row[m].why == MATCHED_WHY_DESIGN;
		if (is_wanted && (pair->sessions_unknown[0] || pair->sessions_unknown[1])) {
			compare_note(c, "if each run had a freshly started server, --assume-independent "
				     "counts it as a session of its own; results of profllm run "
				     "and bench sweep serve say which server they used");
			return;
		}
	}
}

static bool degrades_any(const struct bench_comparison *c, const struct json_value *reason)
{
	for (size_t m = 0; m < c->n_metrics; m++)
		if (result_reason_degrades(reason, str_of(c->metric[m].name)))
			return true;
	return false;
}

/* "a: send_lag in 3, interrupted in 1 of 4 runs", if metrics that are compared are DEGRADED. */
static void add_degraded(const struct bench_comparison *c, const struct compare_side *side,
			 struct buf *out)
{
	struct { struct str code; size_t n; } seen[DEGRADED_NAMED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < side->n; i++) {
		const struct json_value *list = frame_value(side->run[i].record,
							    STR("profllm.reasons"));

		for (size_t k = 0; list && list->kind == JSON_ARRAY && k < list->count; k++) {
			struct str code = json_text(json_get(&list->item[k], "code"), STR(""));
			size_t at = 0;

			if (!code.n || !degrades_any(c, &list->item[k]))
				continue;
			while (at < n && !str_eq(seen[at].code, code))
				at++;
			if (at == DEGRADED_NAMED_MAX)
				continue;
			if (at == n)
				seen[n++].n = 0;
			seen[at].code = code;
			seen[at].n++;
		}
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%.*s in %zu", i ? ", " : arena_printf(c->a, "%s%s: ", out->len ? "; " :
			   "", side->short_name), (int)seen[i].code.n, seen[i].code.p, seen[i].n);
	if (n)
		buf_printf(out, " of %zu run%s", side->n, side->n == 1 ? "" : "s");
}

static void note_degraded(struct bench_comparison *c)
{
	struct buf text = { 0 };

	for (size_t s = 0; s < c->n_sides; s++)
		add_degraded(c, &c->side[s], &text);
	if (text.len)
		compare_note(c, "DEGRADED because of %s; profllm help explains each name", text.data);
	buf_release(&text);
}

/* Whether two sides differ in a parameter that defines them. */
static bool is_different(const struct bench_comparison *c, size_t param, size_t side)
{
	const char *a = c->side[0].run[0].param[param], *b = c->side[side].run[0].param[param];

	return c->param[param].kind == COMPARE_BETWEEN && a != b && !(a && b && strcmp(a, b) == 0);
}

/* Whether a parameter repeats an earlier one, as model and model_id do. */
static bool is_repeated(const struct bench_comparison *c, size_t param, size_t side)
{
	const char **a = c->side[0].run[0].param, **b = c->side[side].run[0].param;

	for (size_t p = 0; p < param; p++)
		if (is_different(c, p, side) && a[p] && a[param] && strcmp(a[p], a[param]) == 0 &&
		    b[p] && b[param] && strcmp(b[p], b[param]) == 0)
			return true;
	return false;
}

const char *compare_confounded(const struct bench_comparison *c, size_t side, struct arena *a)
{
	const char *names = "";
	size_t n = 0;

	assert(side < c->n_sides);
	for (size_t p = 0; p < c->n_params; p++)
		if (is_different(c, p, side) && !is_repeated(c, p, side) &&
		    strcmp(c->param[p].key, "experiment") != 0)
			names = arena_printf(a, "%s%s%s", names, n++ ? ", " : "", c->param[p].key);
	return n < 2 ? NULL :
		arena_printf(a, "%s and %s differ in %zu parameters (%s), so a change cannot be traced "
			     "to one of them", c->side[0].short_name, c->side[side].short_name, n, names);
}

/* Length of the part that all names share, up to the last separator; from_end: of their ends. */
static size_t same_part(const struct bench_comparison *c, bool from_end)
{
	const char *first = c->side[0].name;
	size_t n = strlen(first), length = n, part = 0;

	for (size_t s = 1; s < c->n_sides; s++) {
		const char *other = c->side[s].name;
		size_t m = strlen(other), k = 0;

		while (k < length && k < m && (from_end ? first[n - 1 - k] == other[m - 1 - k]
							: first[k] == other[k]))
			k++;
		length = k;
	}
	for (size_t k = 1; k <= length; k++)
		if (strchr("-_/ =,:", from_end ? first[n - k] : first[k - 1]))
			part = k;
	return part;
}

/* "0.13.0" of two folders whose long names differ in nothing else. */
static void shorten_names(struct bench_comparison *c)
{
	size_t before = same_part(c, false), after = same_part(c, true);
	bool is_long = false, is_short = true;

	for (size_t s = 0; s < c->n_sides; s++) {
		size_t n = strlen(c->side[s].name);

		is_long |= grid_width(c->side[s].name) > COMPARE_HEAD_CHARS_MAX;
		is_short &= n > before + after && n - before - after <= COMPARE_HEAD_CHARS_MAX;
	}
	for (size_t s = 0; s < c->n_sides; s++) {
		struct compare_side *side = &c->side[s];

		side->short_name = !is_long ? side->name :
			is_short ? arena_text(c->a, (struct str){ side->name + before,
					      strlen(side->name) - before - after }) :
			s ? arena_printf(c->a, "side %zu", s + 1) : "baseline";
	}
}

int compare_judge(struct bench_comparison *c, struct err *e)
{
	const char **name = arena_alloc(c->a, c->n_sides * sizeof(*name));

	if (c->n_sides < 2)
		return err_set(e, ERR_USAGE, "%s alone: a comparison needs a baseline and another side",
			       c->side[0].name);
	shorten_names(c);
	for (size_t s = 0; s < c->n_sides; s++) {
		name[s] = c->side[s].short_name;
		compare_note_server(c, &c->side[s]);
	}
	take_runs(c);
	c->spec = (struct matched_spec){
		.run = c->run, .n_runs = c->spec.n_runs, .metric = c->metric,
		.n_metrics = c->n_metrics, .side = name, .n_sides = c->n_sides,
		.primary = primary_of(c), .alpha = c->o->alpha,
		.is_invalid_counted = c->o->is_invalid_counted };
	matched_compare(&c->spec, c->a, &c->out);
	note_unknown_sessions(c);
	note_degraded(c);
	return 0;
}

void compare_release(struct bench_comparison *c)
{
	buf_release(&c->notes);
}

/* ---- nothing to compare ---- */

static bool has_value(const struct compare_side *s, size_t param, const char *value)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->run[i].param[param] && strcmp(s->run[i].param[param], value) == 0)
			return true;
	return false;
}

/* Whether the sides have the parameter but no common value of it. */
static bool is_apart(const struct bench_comparison *c, size_t param,
		     const struct compare_side *other)
{
	bool is_any = false;

	for (size_t i = 0; i < c->side[0].n; i++) {
		const char *value = c->side[0].run[i].param[param];

		if (value && has_value(other, param, value))
			return false;
		is_any |= value != NULL;
	}
	return is_any;
}

static const char *value_text(const char *value)
{
	return value && strcmp(value, "None") != 0 ? value : "none";
}

/* "no configuration in common" with the parameters that are to blame, and what can be done. */
static const char *unmatched(const struct bench_comparison *c, const struct matched_pair *pair)
{
	const struct compare_side *other = &c->side[pair->side];
	const char *which = "", *names = "";

	for (size_t p = 0; p < c->n_params; p++) {
		const char *a = c->side[0].run[0].param[p], *b = other->run[0].param[p];

		if (c->param[p].kind != COMPARE_WITHIN || !is_apart(c, p, other))
			continue;
		which = arena_printf(c->a, "%s%s%s (%s against %s)", which, *which ? ", " : "",
				     c->param[p].key, value_text(a), value_text(b));
		names = arena_printf(c->a, "%s%s%s", names, *names ? "," : "", c->param[p].key);
	}
	if (!*which)
		return pair->reason;
	return arena_printf(c->a, "%s: they differ in %s; --ignore %s compares them all the same",
			    pair->reason, which, names);
}

const char *compare_refusal(const struct bench_comparison *c)
{
	const struct matched_pair *pair = c->out.pair;

	for (size_t i = 0; i < c->out.n_pairs; i++)
		if (!pair[i].refusal)
			return NULL;
	return pair->refusal == MATCHED_REFUSED_UNMATCHED ? unmatched(c, pair) : pair->reason;
}

/* ---- values of a side ---- */

/* Sums of one session's runs in one configuration. */
struct session_part { const char *config, *session; double sum; size_t n; };

/* The part of a run, which is added if it is new. */
static struct session_part *part_of(struct session_part *part, size_t *n,
				    const struct matched_run *run)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(part[i].config, run->config) == 0 &&
		    (part[i].session == run->session ||
		     (run->session && part[i].session &&
		      strcmp(part[i].session, run->session) == 0)))
			return &part[i];
	part[*n] = (struct session_part){ .config = run->config, .session = run->session };
	return &part[(*n)++];
}

static double median_of(const double *x, size_t n)
{
	double *sorted = stats_sorted(x, n), median = stats_median(sorted, n);

	free(sorted);
	return median;
}

size_t compare_values(const struct bench_comparison *c, size_t metric, size_t side, struct arena *a,
		      struct compare_values **out)
{
	struct session_part *part = arena_alloc(a, (c->side[side].n + 1) * sizeof(*part));
	size_t parts = 0, n = 0;

	assert(side < c->n_sides && metric < c->n_metrics);
	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->run[i];
		struct session_part *one;

		if (run->side != side || isnan(run->value[metric]) ||
		    (run->state[metric] == MATCHED_INVALID && !c->o->is_invalid_counted))
			continue;
		one = part_of(part, &parts, run);
		one->sum += run->value[metric];
		one->n++;
	}
	*out = arena_alloc(a, (parts + 1) * sizeof(**out));
	for (size_t i = 0; i < parts; i++) {
		size_t at = 0;

		while (at < n && strcmp((*out)[at].config, part[i].config) != 0)
			at++;
		if (at == n)
			(*out)[n++] = (struct compare_values){
				.config = part[i].config,
				.value = arena_alloc(a, (parts - i) * sizeof(double)) };
		(*out)[at].value[(*out)[at].n++] = part[i].sum / (double)part[i].n;
	}
	for (size_t i = 0; i < n; i++)
		(*out)[i].median = median_of((*out)[i].value, (*out)[i].n);
	return n;
}
