/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results against the schema: every key that is written has a row and a value of
 * the row's type, and every row without a condition is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "client/record/series.h"
#include "client/record/system_series.h"
#include "core/json/read.h"
#include "core/schema/schema.h"
#include "out/report/report.h"
#include "record_sample.h"

#define FIELDS_MAX 768

static const double percentiles[] = { 50, 99, 99.9 };
static struct report_ramp ramp[] = { { 1, "2023-11-14T22:13:20" } };

static bool seen[FIELDS_MAX]; /* rows of the schema met so far */

static bool fits(struct str type, const struct json_value *v);

static bool fits_word(struct str type, const struct json_value *v)
{
	static const struct {
		const char *word;
		enum json_kind kind;
	} row[] = {
		{ "null", JSON_NULL }, { "bool", JSON_FALSE }, { "bool", JSON_TRUE },
		{ "int", JSON_INT }, { "float", JSON_REAL }, { "text", JSON_STRING },
		{ "object", JSON_OBJECT },
	};

	if (str_starts(type, STR("list of "))) {
		type = (struct str){ type.p + 8, type.n - 8 };
		for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++)
			if (!fits(type, &v->item[i]))
				return false;
		return v->kind == JSON_ARRAY;
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		if (str_is(type, row[i].word) && v->kind == row[i].kind)
			return true;
	return false;
}

/* "int or null"; "list of" binds what follows it, "or" included. */
static bool fits(struct str type, const struct json_value *v)
{
	const char *cut = strstr(type.p, " or ");
	struct str first = type;

	if (!cut || str_starts(type, STR("list of ")))
		return fits_word(type, v);
	first.n = (size_t)(cut - type.p);
	return fits_word(first, v) || fits(str_of(cut + 4), v);
}

static void check_value(const char *path, const struct json_value *v)
{
	const struct schema_field *f = schema_field_find(path);
	char below[300];

	if (!f)
		fail_msg("%s has no row in schema/result.json", path);
	if (!fits(str_of(f->type), v))
		fail_msg("%s is not of type %s", path, f->type);
	seen[f - schema_fields] = true;
	if (strcmp(path, "profllm.options") == 0) /* its members are options, not fields */
		return;
	for (size_t i = 0; v->kind == JSON_OBJECT && i < v->count; i++) {
		snprintf(below, sizeof(below), "%s.%s", path, v->key[i].p);
		check_value(below, &v->item[i]);
	}
	for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++) {
		for (size_t k = 0; v->item[i].kind == JSON_OBJECT && k < v->item[i].count; k++) {
			snprintf(below, sizeof(below), "%s[%zu].%s", path, i, v->item[i].key[k].p);
			check_value(below, &v->item[i].item[k]);
		}
	}
}

static bool has_servers; /* whether the record has series of two servers and a probe */
static bool has_sessions;

static void add_series(struct record *r, const char *name, const char *labels, double step)
{
	struct record_series *s = record_series_add(r, name, "", labels);

	for (int i = -1; i <= 3; i++)
		record_series_point(s, i < 3 ? SAMPLE_START_NS + i * 100ll * SAMPLE_MS
				    : r->stop_ns + SAMPLE_MS, 10 + i * step);
}

static void add_servers(struct record *r)
{
	static const char *const url[] = { "url=\"http://a\"", "url=\"http://b\"" };
	char labels[80];

	for (int k = 0; k < 2; k++) {
		add_series(r, SERIES_SCRAPE, url[k], 0);
		for (int id = 0; id < SERIES_COUNT; id++)
			add_series(r, series_name((enum series_id)id), url[k],
				   id != SERIES_PROCESS_START);
		snprintf(labels, sizeof(labels), "%s,position=\"0\"", url[k]);
		add_series(r, SERIES_POSITION, labels, 1);
	}
	record_note_add(r, 0, NOTE_SERVER_METRICS, "http://c: HTTP status 404");
	r->row[5].phase = PHASE_PROBE;
}

static bool has_system; /* whether it has series of the machine */

/* One of each, of two GPUs, the host, a server and the sampler. */
static void add_system(struct record *r)
{
	for (int id = 0; id < SYSTEM_SERIES_COUNT; id++) {
		const char *name = system_series_name((enum system_series)id);

		if (id < SYSTEM_HOST_CPU) {
			add_series(r, name, "gpu=\"0\",uuid=\"GPU-a\",name=\"A\"", 1);
			add_series(r, name, "gpu=\"1\",uuid=\"GPU-b\",name=\"A\"", 1);
		} else {
			add_series(r, name, id < SYSTEM_PROCESS_CPU || id >= SYSTEM_SAMPLER_CPU ? ""
					    : "process=\"server\",pid=\"7\"", 1);
		}
	}
	record_note_add(r, 0, NOTE_SYSTEM, "gpu: none is called '9'");
}

/* Conversations of three turns each. */
static void add_sessions(struct record *r)
{
	for (uint32_t i = 0; i < 60; i++) {
		r->row[i].session = i / 3;
		r->row[i].turn = (uint16_t)(i % 3);
		r->row[i].parent = r->row[i].history = i % 3 ? i - 1 : RECORD_NONE;
		r->row[i].admitted_ns = r->row[i].sent_ns;
		r->row[i].flags |= ROW_HAS_CACHED;
	}
}

static void check_result(struct report_facts *facts, struct metrics_opts *opts)
{
	struct metrics m = { 0 };
	struct record r = { 0 };
	struct trust t = { 0 };
	struct report report = { .facts = facts, .record = &r, .metrics = &m, .trust = &t };
	struct json_value *result;
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	assert_int_equal(sample_record(&r, 60, 2), 0);
	if (has_servers)
		add_servers(&r);
	if (has_system)
		add_system(&r);
	if (has_sessions)
		add_sessions(&r);
	opts->percentile = percentiles;
	opts->n_percentiles = 3;
	opts->selected = (1u << BLOCK_COUNT) - 1;
	metrics_score(&m, &r, opts);
	trust_judge(&t, &m, &(struct trust_facts){ .cpu_share_max = 0.99 });
	assert_int_equal(report_result_json(&report, &out, &e), 0);
	assert_int_equal(json_parse(&a, buf_str(&out), &result, &e), 0);
	for (size_t i = 0; i < result->count; i++)
		check_value(result->key[i].p, &result->item[i]);
	arena_release(&a);
	buf_release(&out);
	metrics_release(&m);
	record_release(&r);
}

static struct report_facts facts(void)
{
	return (struct report_facts){
		.date = "20231114-221320", .backend = "openai", .model_id = "org/m",
		.tokenizer_id = "tok", .num_prompts = 60, .request_rate = 10, .burstiness = 1,
		.max_concurrency = 8, .version = "1.2.3", .build = "gcc", .transport = "native",
		.dataset = "random", .request_id_prefix = "bench-", .threads = 1,
		.is_detailed = true,
	};
}

static void generation(void **state)
{
	struct report_facts f = facts();
	struct metrics_opts o = { .has_tokenizer = true, .is_rate_finite = true,
				  .max_concurrency = 8, .n_goodput = 1,
				  .goodput = { { BLOCK_TTFT, 40 } } };

	(void)state;
	f.options = STR("{\"model\": \"org/m\"}");
	check_result(&f, &o);
	assert_true(schema_field_count <= FIELDS_MAX);
	for (size_t i = 0; i < schema_field_count; i++)
		if (!*schema_fields[i].when && !seen[i])
			fail_msg("%s is never written, and says no condition", schema_fields[i].key);
}

static void ramp_up(void **state)
{
	struct report_facts f = facts();
	struct metrics_opts o = { .has_tokenizer = true };

	(void)state;
	f.request_rate = (double)INFINITY;
	f.max_concurrency = 0;
	f.label = "a label";
	f.tokenizer_id = NULL;
	f.ramp_strategy = "linear";
	f.ramp_start_rps = 1;
	f.ramp_end_rps = 2;
	f.ramp = ramp;
	f.n_ramp = 1;
	check_result(&f, &o);
}

static void pooling(void **state)
{
	struct report_facts f = facts();
	struct metrics_opts o = { .is_pooling = true, .has_tokenizer = true };

	(void)state;
	check_result(&f, &o);
}

static void conversations(void **state)
{
	static const char *const keys[] = {
		"sessions.n", "sessions.goodput", "sessions.duration_s.p99", "sessions.cached_share",
		"per_turn_metrics[2].turn_index", "per_turn_metrics[2].p99_ttft_ms",
		"per_turn_metrics[0].context_tokens.mean",
	};
	struct report_facts f = facts();
	struct metrics_opts o = { .has_tokenizer = true, .session_limit_ms = 1e6 };

	(void)state;
	memset(seen, 0, sizeof(seen));
	has_sessions = true;
	check_result(&f, &o);
	has_sessions = false;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct schema_field *row = schema_field_find(keys[i]);

		assert_non_null(row);
		if (!seen[row - schema_fields])
			fail_msg("%s is never written", keys[i]);
	}
}

/* Every key that needs more than a plain server, and each is met. */
static void servers(void **state)
{
	static const char *const keys[] = {
		"total_cached_tokens", "probe_completed", "probe_max_e2el_ms",
		"spec_decode_acceptance_rate", "spec_decode_per_position_acceptance_rates",
		"diffusion_committed_throughput", "diffusion_canvas_positions",
		"profllm.server.running.mean", "profllm.server.each[0].url",
		"profllm.server.each[0].kv_usage.last", "profllm.steady_state.window.warning",
		"profllm.steady_state.p99_tpot_ms", "profllm.steady_state.percentiles_ttft_ms",
	};
	struct report_facts f = facts();
	struct metrics_opts o = { .has_tokenizer = true, .max_concurrency = 2,
				  .reports_cached_tokens = true, .finds_steady_state = true,
				  .steady_threshold = 0.5 };

	(void)state;
	f.request_rate = (double)INFINITY;
	memset(seen, 0, sizeof(seen));
	has_servers = true;
	check_result(&f, &o);
	o.max_concurrency = 1000; /* never reached */
	check_result(&f, &o);
	has_servers = false;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct schema_field *field = schema_field_find(keys[i]);

		assert_non_null(field);
		if (!seen[field - schema_fields])
			fail_msg("%s was not written", keys[i]);
	}
}

/* Every row of the machine is met, each figure with each of its statistics. */
static void machine(void **state)
{
	static const char *const keys[] = {
		"profllm.system.gpus[1].temperature_c.mean", "profllm.system.host.cpus_busy.max",
		"profllm.system.processes[0].rss_gb.min", "profllm.system.telemetry.cpu_s",
	};
	struct report_facts f = facts();
	struct metrics_opts o = { .has_tokenizer = true };

	(void)state;
	memset(seen, 0, sizeof(seen));
	has_system = true;
	check_result(&f, &o);
	has_system = false;
	for (size_t i = 0; i < schema_field_count; i++)
		if (strcmp(schema_fields[i].group, "system") == 0 && !seen[i])
			fail_msg("%s was not written", schema_fields[i].key);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_non_null(schema_field_find(keys[i]));
	assert_null(schema_field_find("profllm.system.gpus[0].temperature_c.last"));
	assert_null(schema_field_find("profllm.system.host.rss_gb.max"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generation),
		cmocka_unit_test(ramp_up),
		cmocka_unit_test(pooling),
		cmocka_unit_test(conversations), cmocka_unit_test(servers),
		cmocka_unit_test(machine),
	};

	return cmocka_run_group_tests_name("report_schema", tests, NULL, NULL);
}
