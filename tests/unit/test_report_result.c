/* SPDX-License-Identifier: Apache-2.0 */
/* The result file: keys, order, spelling; file names; writing; the meta of a record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/file.h"
#include "core/json/read.h"
#include "core/schema/schema.h"
#include "out/report/report.h"
#include "out/report/structured.h"
#define ANSWER_HEAD_BYTES 16000
#include "answers.h"
#include "record_sample.h"
#include "scratch.h"

#define T0 SAMPLE_START_NS
#define MS 1000000ll

static const double p99[] = { 99 }, two[] = { 50, 99.9 };

static int set_up(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	signal(SIGXFSZ, SIG_IGN);
	return make_dir(state);
}

struct fixture {
	struct report_facts facts;
	struct metrics_opts opts;
	struct metrics m;
	struct trust t;
	struct record r;
	struct report report;
};

/* A success with three events and a failure after one. */
static void fill_record(struct record *r)
{
	struct err e;

	assert_int_equal(record_init(r, 2, 1, 0, false, true, &e), 0);
	record_add_rows(r, 2);
	r->start_ns = T0;
	r->stop_ns = T0 + 2000 * MS;
	for (int i = 0; i < 2; i++) {
		struct request_row *row = &r->row[i];

		row->due_ns = row->admitted_ns = T0 + i * 1000 * MS;
		row->due_s = i;
		row->sent_ns = row->due_ns + 250 * MS;
		row->sample = (uint32_t)i;
		row->prompt_tokens = 12;
		row->attempts = 1;
		row->status = 200;
		for (int k = 0; k < (i ? 1 : 3); k++)
			sample_event(r, row, 125 * MS, 0);
		record_text(&r->shard[0], row, STR("caf\\u00e9 \\ud83d\\ude00 \xe2\x82\xac \\\"x\\\"\\n"));
		row->end_ns = row->last_event_ns;
		row->sequences = 3;
	}
	r->row[0].output_tokens = 3;
	r->row[0].flags = ROW_HAS_USAGE;
	r->row[0].state = REQ_DONE;
	r->row[1].fail = FAIL_RESET;
	r->row[1].state = REQ_FAILED;
	record_error(&r->shard[0], &r->row[1], STR("connection reset"));
}

static void fill(struct fixture *f)
{
	*f = (struct fixture){
		.facts = { .date = "20231114-221320", .backend = "openai", .model_id = "org/m",
			   .tokenizer_id = "tok", .num_prompts = 2, .request_rate = INFINITY,
			   .burstiness = 1, .version = "1.2.3", .build = "gcc", .transport = "native",
			   .dataset = "random", .request_id_prefix = "bench-", .threads = 1 },
		.opts = { .percentile = p99, .n_percentiles = 1, .selected = 7,
			  .has_tokenizer = true },
	};
	fill_record(&f->r);
	f->report = (struct report){ .facts = &f->facts, .record = &f->r, .metrics = &f->m,
				     .trust = &f->t };
}

static void clear(struct fixture *f)
{
	metrics_release(&f->m);
	record_release(&f->r);
}

/* The result without the last key, which is ours. */
static void same_json(struct fixture *f, const char *want)
{
	struct buf out = { 0 };
	struct err e = { 0 };
	char *ours;

	metrics_score(&f->m, &f->r, &f->opts);
	trust_judge(&f->t, &f->m, &(struct trust_facts){ 0 });
	assert_int_equal(report_result_json(&f->report, &out, &e), 0);
	ours = strstr(out.data, ", \"profllm\": {\"schema_version\": 1, ");
	assert_non_null(ours);
	*ours = 0;
	assert_string_equal(out.data, want);
	answers_release(&out);
	clear(f);
}

static const char minimal[] =
	"{\"date\": \"20231114-221320\", \"endpoint_type\": \"openai\", \"backend\": \"openai\", "
	"\"label\": null, \"model_id\": \"org/m\", \"tokenizer_id\": \"tok\", \"num_prompts\": 2, "
	"\"request_rate\": \"inf\", \"burstiness\": 1.0, \"max_concurrency\": null, "
	"\"duration\": 2.0, \"completed\": 1, \"failed\": 1, \"total_input_tokens\": 12, "
	"\"total_output_tokens\": 3, \"request_throughput\": 0.5, \"request_goodput\": null, "
	"\"output_throughput\": 1.5, \"total_token_throughput\": 7.5, \"latencies\": [0.375, 0.0], "
	"\"queue_times\": [0.25, 0.25], \"max_output_tokens_per_s\": 3.0, "
	"\"max_concurrent_requests\": 1, \"rtfx\": 0.0, \"mean_ttft_ms\": 125.0, "
	"\"median_ttft_ms\": 125.0, \"std_ttft_ms\": 0.0, \"p99_ttft_ms\": 125.0, "
	"\"mean_tpot_ms\": 125.0, \"median_tpot_ms\": 125.0, \"std_tpot_ms\": 0.0, "
	"\"p99_tpot_ms\": 125.0, \"mean_itl_ms\": 125.0, \"median_itl_ms\": 125.0, "
	"\"std_itl_ms\": 0.0, \"p99_itl_ms\": 125.0";

static void test_minimal(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	same_json(&f, minimal);
}

static void test_detailed(void **state)
{
	static const char want[] =
		"{\"date\": \"20231114-221320\", \"endpoint_type\": \"openai\", \"backend\": "
		"\"openai\", \"label\": \"run\", \"model_id\": \"org/m\", \"tokenizer_id\": \"tok\", "
		"\"num_prompts\": 2, \"request_rate\": 10.0, \"burstiness\": \"inf\", "
		"\"max_concurrency\": 8, \"duration\": 2.0, \"completed\": 1, \"failed\": 1, "
		"\"total_input_tokens\": 12, \"total_output_tokens\": 3, \"request_throughput\": 0.5, "
		"\"request_goodput\": 0.5, \"output_throughput\": 1.5, \"total_token_throughput\": 7.5, "
		"\"input_lens\": [12, 12], \"output_lens\": [3, 0], \"ttfts\": [0.125, 0.125], "
		"\"itls\": [[0.125, 0.125], []], \"latencies\": [0.375, 0.0], "
		"\"start_times\": [1700000000.25, 1700000001.25], \"queue_times\": [0.25, 0.25], "
		"\"generated_texts\": [\"caf\\u00e9 \\ud83d\\ude00 \\u20ac \\\"x\\\"\\n\", \"\"], "
		"\"errors\": [\"\", \"connection reset\"], \"max_output_tokens_per_s\": 3.0, "
		"\"max_concurrent_requests\": 1, \"rtfx\": 0.0, \"mean_e2el_ms\": 375.0, "
		"\"median_e2el_ms\": 375.0, \"std_e2el_ms\": 0.0, \"p50_e2el_ms\": 375.0, "
		"\"p99.9_e2el_ms\": 375.0, \"mean_client_queue_time_ms\": 250.0, "
		"\"median_client_queue_time_ms\": 250.0, \"std_client_queue_time_ms\": 0.0, "
		"\"p50_client_queue_time_ms\": 250.0, \"p99.9_client_queue_time_ms\": 250.0, "
		"\"mean_e2el_including_client_queue_ms\": 625.0, "
		"\"median_e2el_including_client_queue_ms\": 625.0, "
		"\"std_e2el_including_client_queue_ms\": 0.0, "
		"\"p50_e2el_including_client_queue_ms\": 625.0, "
		"\"p99.9_e2el_including_client_queue_ms\": 625.0";
	struct fixture f;

	(void)state;
	fill(&f);
	f.facts.is_detailed = true;
	f.facts.label = "run";
	f.facts.request_rate = 10;
	f.facts.burstiness = INFINITY;
	f.facts.max_concurrency = f.opts.max_concurrency = 8;
	f.opts.is_rate_finite = true;
	f.opts.selected = BLOCK_BIT(BLOCK_E2EL) | BLOCK_BIT(BLOCK_QUEUE_TIME) |
			  BLOCK_BIT(BLOCK_E2EL_WITH_QUEUE);
	f.opts.percentile = two;
	f.opts.n_percentiles = 2;
	f.opts.n_goodput = 1;
	f.opts.goodput[0] = (struct metrics_goodput){ BLOCK_TTFT, 125 };
	same_json(&f, want);
}

static void test_pooling(void **state)
{
	static const char want[] =
		"{\"date\": \"20231114-221320\", \"endpoint_type\": \"openai\", \"backend\": "
		"\"openai\", \"label\": null, \"model_id\": \"org/m\", \"tokenizer_id\": null, "
		"\"num_prompts\": 2, \"request_rate\": \"inf\", \"burstiness\": 1.0, "
		"\"max_concurrency\": null, \"duration\": 2.0, \"completed\": 1, "
		"\"total_input_tokens\": 12, \"total_input_sequences\": 3, "
		"\"request_throughput\": 0.5, \"input_sequence_throughput\": 1.5, "
		"\"total_token_throughput\": 6.0, \"input_lens\": [12, 0], "
		"\"latencies\": [0.375, 0.125], \"queue_times\": [0.25, 0.25], "
		"\"errors\": [\"\", \"connection reset\"], \"mean_e2el_ms\": 375.0, "
		"\"median_e2el_ms\": 375.0, \"std_e2el_ms\": 0.0, \"p99_e2el_ms\": 375.0";
	struct fixture f;

	(void)state;
	fill(&f);
	f.opts.is_pooling = true;
	f.opts.selected = BLOCK_BIT(BLOCK_E2EL);
	f.facts.is_detailed = true;
	f.facts.tokenizer_id = NULL;
	f.r.row[0].flags = f.r.row[1].flags = ROW_IS_POOLING;
	same_json(&f, want);
}

/* A metadata key: new, equal to an earlier key, to a later one, twice, and to a dropped array. */
static void test_metadata(void **state)
{
	struct report_pair pairs[] = {
		{ "tp", "2" }, { "label", "mine" }, { "duration", "lost" }, { "tp", "4" },
		{ "ttfts", "gone" }, { "profllm", "lost too" }, { "note", "\xc3\xa9\x01" },
	};
	struct report_ramp ramp[] = { { 1, "2023-11-14T22:13:20" },
				      { 2, "2023-11-14T22:13:21.500000" } };
	static const char want[] =
		"{\"date\": \"20231114-221320\", \"endpoint_type\": \"openai\", \"backend\": "
		"\"openai\", \"label\": \"mine\", \"model_id\": \"org/m\", \"tokenizer_id\": \"tok\", "
		"\"num_prompts\": 2, \"tp\": \"4\", \"duration\": 2.0, \"profllm\": {";
	static const char after[] =
		"\"note\": \"\\u00e9\\u0001\", \"request_rate\": \"inf\", \"burstiness\": 1.0, "
		"\"max_concurrency\": null, \"ramp_up_strategy\": \"linear\", \"ramp_up_start_rps\": 1, "
		"\"ramp_up_end_rps\": 2, \"completed\": 1, \"failed\": 1, ";
	struct fixture f;
	struct buf out = { 0 };
	struct err e;

	(void)state;
	fill(&f);
	f.facts.metadata = pairs;
	f.facts.n_metadata = sizeof(pairs) / sizeof(*pairs);
	f.facts.ramp_strategy = "linear";
	f.facts.ramp_start_rps = 1;
	f.facts.ramp_end_rps = 2;
	f.facts.ramp = ramp;
	f.facts.n_ramp = 2;
	f.facts.is_detail_strict = true;
	metrics_score(&f.m, &f.r, &f.opts);
	assert_int_equal(report_result_json(&f.report, &out, &e), 0);
	assert_true(str_starts(buf_str(&out), str_of(want)));
	assert_non_null(strstr(out.data, after));
	assert_non_null(strstr(out.data,
		"\"rtfx\": 0.0, \"rps_change_events\": [{\"rps\": 1, \"timestamp\": "
		"\"2023-11-14T22:13:20\"}, {\"rps\": 2, \"timestamp\": "
		"\"2023-11-14T22:13:21.500000\"}], \"mean_ttft_ms\""));
	assert_null(strstr(out.data, "gone"));
	assert_null(strstr(out.data, "lost"));
	assert_null(strstr(out.data, "latencies"));
	assert_null(strstr(out.data, "queue_times"));
	answers_release(&out);
	clear(&f);
}

static void test_no_tokenizer(void **state)
{
	struct fixture f;
	struct buf out = { 0 };
	struct err e;

	(void)state;
	fill(&f);
	f.opts.has_tokenizer = false;
	metrics_score(&f.m, &f.r, &f.opts);
	assert_int_equal(report_result_json(&f.report, &out, &e), 0);
	assert_null(strstr(out.data, "ttft_ms\": "));
	assert_non_null(strstr(out.data, "\"output_throughput\": 1.5"));
	answers_release(&out);
	clear(&f);
}

/* ---- ours ---- */

static const char *at(struct json_value *v, const char *key, char out[64])
{
	struct json_value *m = json_get(v, key);

	snprintf(out, 64, "%s", "absent");
	if (m && m->kind == JSON_STRING)
		snprintf(out, 64, "%.*s", (int)m->text.n, m->text.p);
	else if (m && (m->kind == JSON_INT || m->kind == JSON_REAL))
		snprintf(out, 64, "%.*s", (int)m->raw.n, m->raw.p);
	else if (m)
		snprintf(out, 64, "%s", m->kind == JSON_NULL ? "null" : m->kind == JSON_TRUE ? "true"
			 : m->kind == JSON_FALSE ? "false" : "container");
	return out;
}

static void test_ours(void **state)
{
	static const struct { const char *key, *want; } cases[] = {
		{ "schema_version", "1" }, { "version", "1.2.3" }, { "build", "gcc" },
		{ "transport", "native" }, { "dataset", "random" }, { "stamp_source", "kernel" },
		{ "chat_template", "null" },
		{ "start_ns", "1700000000000000000" }, { "stop_ns", "1700000002000000000" },
		{ "interrupted", "true" }, { "cancelled", "0" }, { "verdict", "DEGRADED" },
		{ "hosts", "1" }, { "connect_ms", "null" }, { "token_events", "4" },
		{ "retries", "0" }, { "requests_with_usage", "1" }, { "usage_differs_share", "0.0" },
		{ "tokens_per_event", "1.0" }, { "options", "container" }, { "failed", "absent" },
	};
	struct fixture f;
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct json_value *v, *list;
	struct err e;
	char text[64];

	(void)state;
	fill(&f);
	f.facts.is_detailed = true;
	f.facts.options = STR("{\"seed\": 1}");
	f.r.is_interrupted = true;
	metrics_score(&f.m, &f.r, &f.opts);
	trust_judge(&f.t, &f.m, &(struct trust_facts){ 0 });
	report_ours_json(&f.report, &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &v, &e), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(at(v, cases[i].key, text), cases[i].want);
	list = json_get(v, "reasons");
	assert_int_equal(list->count, 2);
	assert_string_equal(at(&list->item[0], "code", text), "failures");
	assert_string_equal(at(&list->item[0], "level", text), "DEGRADED");
	list = json_get(v, "failures");
	assert_int_equal(list->count, 1);
	assert_string_equal(at(&list->item[0], "category", text), "reset");
	assert_string_equal(at(&json_get(&list->item[0], "examples")->item[0], "text", text),
			    "connection reset");
	list = json_get(v, "requests");
	assert_true(str_is(json_text(&json_get(list, "request_id")->item[1], STR("")), "bench-1"));
	assert_true(json_int(&json_get(list, "sent_ns")->item[1], 0) == T0 + 1250 * MS);
	assert_true(json_real(&json_get(list, "due_s")->item[1], 0) == 1.0);
	assert_int_equal(json_get(list, "failure")->item[0].kind, JSON_NULL);
	assert_true(str_is(json_text(&json_get(list, "failure")->item[1], STR("")), "reset"));
	assert_true(json_real(json_get(json_get(v, "client_lag_ms"), "p50"), 0) == 250);
	arena_release(&a);
	answers_release(&out);
	clear(&f);
}

/* Every key of a detailed result, at any depth, has its row in the schema. */
static void in_schema(const struct json_value *v, const char *path)
{
	char key[256];

	for (size_t i = 0; (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && i < v->count; i++) {
		if (v->kind == JSON_ARRAY)
			snprintf(key, sizeof(key), "%s[%zu]", path, i);
		else
			snprintf(key, sizeof(key), "%s%s%.*s", path, *path ? "." : "",
				 (int)v->key[i].n, v->key[i].p);
		if (v->kind == JSON_OBJECT && !schema_field_find(key))
			fail_msg("%s is not in schema/result.json", key);
		if (strcmp(key, "profllm.options") != 0)
			in_schema(&v->item[i], key);
	}
}

static void test_schema(void **state)
{
	(void)state;
	for (int is_pooling = 0; is_pooling < 2; is_pooling++) {
		struct report_ramp ramp = { 1, "2023-11-14T22:13:20" };
		struct fixture f;
		struct buf out = { 0 };
		struct arena a = { 0 };
		struct json_value *v;
		struct err e;

		fill(&f);
		f.facts.is_detailed = true;
		f.facts.ramp_strategy = "linear";
		f.facts.ramp = &ramp;
		f.facts.n_ramp = 1;
		f.opts.is_pooling = is_pooling;
		f.opts.selected = (1u << BLOCK_COUNT) - 1;
		f.opts.max_concurrency = 2;
		f.opts.is_rate_finite = true;
		f.opts.percentile = two;
		f.opts.n_percentiles = 2;
		metrics_score(&f.m, &f.r, &f.opts);
		trust_judge(&f.t, &f.m, &(struct trust_facts){ 0 });
		assert_int_equal(report_result_json(&f.report, &out, &e), 0);
		assert_int_equal(json_parse(&a, buf_str(&out), &v, &e), 0);
		in_schema(v, "");
		arena_release(&a);
		answers_release(&out);
		clear(&f);
	}
}

/* ---- files ---- */

static void test_names(void **state)
{
	static const struct {
		struct report_facts f;
		const char *dir, *file, *want;
	} cases[] = {
		{ { .backend = "openai", .model_id = "org/m-1", .date = "D", .request_rate = 10 },
		  NULL, NULL, "openai-10.0qps-m-1-D.json" },
		{ { .backend = "openai", .label = "L", .model_id = "m", .date = "D",
		    .request_rate = INFINITY, .max_concurrency = 4 },
		  "d", NULL, "d/L-infqps-concurrency4-m-D.json" },
		{ { .backend = "openai", .model_id = "m", .date = "D", .request_rate = 0.5 },
		  "d", NULL, "d/openai-0.5qps-m-D.json" },
		{ { .backend = "b", .model_id = "m", .date = "D", .request_rate = INFINITY,
		    .ramp_strategy = "linear", .ramp_start_rps = 1, .ramp_end_rps = 20,
		    .max_concurrency = 4 },
		  NULL, NULL, "b-ramp-up-linear-1qps-20qps-concurrency4-m-D.json" },
		{ { .backend = "b", .date = "D", .request_rate = 1 }, "d", "x", "d/x" },
		{ { .backend = "b", .date = "D", .request_rate = 1 }, "d", "/abs/x.json", "/abs/x.json" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *path = report_path(&cases[i].f, cases[i].dir, cases[i].file);

		assert_string_equal(path, cases[i].want);
		free(path);
	}
}

static void test_dates(void **state)
{
	char out[REPORT_DATE_BYTES];

	(void)state;
	assert_string_equal(report_date(out, T0 + 999999999), "20231114-221320");
	assert_string_equal(report_timestamp(out, T0), "2023-11-14T22:13:20");
	assert_string_equal(report_timestamp(out, T0 + 999), "2023-11-14T22:13:20");
	assert_string_equal(report_timestamp(out, T0 + 1500), "2023-11-14T22:13:20.000001");
	assert_string_equal(report_timestamp(out, T0 + 999999999), "2023-11-14T22:13:20.999999");
}

static void same_file(const char *path, const char *want)
{
	struct buf bytes = { 0 };
	struct err e = { 0 };

	assert_int_equal(file_read(path, 1 << 20, &bytes, &e), 0);
	assert_int_equal(bytes.len, strlen(want));
	assert_memory_equal(bytes.data, want, bytes.len);
	buf_release(&bytes);
}

static void test_saving(void **state)
{
	char *path = file_join(dir, "a/b/result.json");
	struct rlimit old, low;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(report_save(path, STR("{\"a\": 1}"), false, &e), 0);
	same_file(path, "{\"a\": 1}");
	assert_int_equal(report_save(path, STR("{}"), false, &e), 0);
	same_file(path, "{}");
	assert_int_equal(report_save(path, STR("{\"b\": 2}"), true, &e), 0);
	assert_int_equal(report_save(path, STR("{\"c\": 3}"), true, &e), 0);
	same_file(path, "{}\n{\"b\": 2}\n{\"c\": 3}");
	/* No room: what was there stays as it was, both ways. */
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 24;
	setrlimit(RLIMIT_FSIZE, &low);
	assert_int_equal(report_save(path, STR("{\"d\": \"0123456789\"}"), true, &e), -1);
	assert_non_null(strstr(e.text, "cannot append to"));
	assert_non_null(strstr(e.text, "File too large"));
	assert_int_equal(report_save(path, STR("{\"d\": \"0123456789012345678\"}"), false, &e), -1);
	assert_non_null(strstr(e.text, "cannot write"));
	setrlimit(RLIMIT_FSIZE, &old);
	same_file(path, "{}\n{\"b\": 2}\n{\"c\": 3}");
	assert_int_equal(report_save("/dev/full", STR("{}"), true, &e), -1);
	assert_non_null(strstr(e.text, "cannot append to /dev/full: No space left on device"));
	assert_int_equal(report_save("/proc/no/such/x.json", STR("{}"), true, &e), -1);
	assert_int_equal(report_save(dir, STR("{}"), true, &e), -1);
	assert_non_null(strstr(e.text, "Is a directory"));
	free(path);
}

/* ---- meta ---- */

static void test_meta(void **state)
{
	struct report_pair pairs[] = { { "k", "v" }, { "k2", "\xc3\xa9" } };
	struct report_ramp ramp[] = { { 1, "t1" }, { 2, "t2" } };
	struct report_meta m = {
		.facts = { .date = "20231114-221320", .backend = "openai", .label = NULL,
			   .model_id = "m", .num_prompts = 5, .request_rate = INFINITY,
			   .burstiness = 0.25, .max_concurrency = 3, .ramp_strategy = "linear",
			   .ramp_start_rps = 1, .ramp_end_rps = 2, .ramp = ramp, .n_ramp = 2,
			   .metadata = pairs, .n_metadata = 2, .is_detailed = true,
			   .version = "v", .threads = 2, .options = STR("{\"seed\": 1}") },
		.opts = { .percentile = two, .n_percentiles = 2, .selected = 5,
			  .goodput = { { BLOCK_TPOT, 12.5 }, { BLOCK_E2EL, 100 } }, .n_goodput = 2,
			  .has_tokenizer = true, .max_concurrency = 3, .is_rate_finite = false },
		.trust = { .cpu_share_max = 0.5, .reads = 1ull << 40, .clock_step_ns = -7,
			   .is_interrupted = true },
	}, back;
	struct buf one = { 0 }, again = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	report_meta_write(&m, &one);
	assert_int_equal(report_meta_read(&back, buf_str(&one), &a, &e), 0);
	report_meta_write(&back, &again);
	assert_string_equal(one.data, again.data);
	assert_true(isinf(back.facts.request_rate));
	assert_null(back.facts.label);
	assert_string_equal(back.facts.date, "20231114-221320");
	assert_string_equal(back.facts.metadata[1].value, "\xc3\xa9");
	assert_true(back.opts.percentile[1] == 99.9 && back.opts.selected == 5);
	assert_int_equal(back.opts.goodput[1].block, BLOCK_E2EL);
	assert_true(back.trust.reads == 1ull << 40 && back.trust.clock_step_ns == -7);
	arena_release(&a);
	buf_release(&one);
	buf_release(&again);
}

static void test_meta_errors(void **state)
{
	static const struct { const char *json, *what; } cases[] = {
		{ "", "the record's meta" },
		{ "[]", "is not a JSON object" },
		{ "{\"metrics\": {\"percentiles\": [101]}}", "percentile outside 0..100" },
		{ "{\"metrics\": {\"percentiles\": [\"x\"]}}", "percentile outside 0..100" },
		{ "{\"metrics\": {\"goodput\": [[\"itl\", 1]]}}", "unknown goodput name" },
		{ "{\"metrics\": {\"goodput\": [7]}}", "unknown goodput name" },
		/* Odd values that are borne: wrong kinds read as absent. */
		{ "{}", NULL },
		{ "{\"report\": 5, \"metrics\": [], \"trust\": null, \"options\": 3}", NULL },
		{ "{\"report\": {\"metadata\": [3, [], [1, 2]], \"ramp\": [{}]}}", NULL },
		{ "{\"trust\": {\"reads\": -5}, \"metrics\": {\"max_concurrency\": -1}}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct report_meta m;
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = report_meta_read(&m, str_of(cases[i].json), &a, &e);

		assert_int_equal(rc, cases[i].what ? -1 : 0);
		if (cases[i].what && !strstr(e.text, cases[i].what))
			fail_msg("got '%s', expected '%s'", e.text, cases[i].what);
		if (!cases[i].what) {
			assert_string_equal(m.facts.backend, "unknown");
			assert_int_equal(m.facts.n_metadata, 0);
			assert_true(m.opts.max_concurrency == 0 && m.trust.reads == 0);
		}
		arena_release(&a);
	}
}

/* A result in the format of the structured-output script: descriptions, one object per answer. */
static void test_structured(void **state)
{
	static const struct structured_name names[] = {
		{ 0.5, true, "vllm", "org/leaf", "json", INFINITY, 100, 128 },
		{ 0, false, "vllm", "leaf", "grammar", 2.5, 7, 8 },
	};
	struct arena a = { 0 };
	struct buf text = { 0 }, out = { 0 };
	struct json_value *v;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		structured_file_name(&names[i], &out);
		buf_add_text(&out, "\n");
	}
	buf_printf(&text, "{\"backend\": \"vllm\", \"model_id\": \"m\", \"num_prompts\": 4, "
		   "\"completed\": 3, \"mean_ttft_ms\": 1, \"median_itl_ms\": 2, \"std_tpot_ms\": 3, "
		   "\"p99_ttft_ms\": 4, \"max_ttft_ms\": 5, \"pages_ms\": 6, \"p_ms\": 7, \"p9_s\": 8, "
		   "\"ttfts\": [0.5, 0.25, 9, 1], \"latencies\": [1.5, 0.75, 9, 1.5], "
		   "\"output_lens\": [5, 1, 4, 3], \"errors\": [\"\", \"\", \"refused\", \"\"], "
		   "\"generated_texts\": [\"a\", \"b\", \"c\", \"d\", \"e\"], \"request_goodput\": 1, "
		   "\"profllm\": {\"correctness\": {\"correct_rate_upstream\": 66.5}, \"requests\": "
		   "{\"correctness\": [%u, %u, %u, %u]}}}",
		   ROW_UPSTREAM_SCORED | ROW_UPSTREAM_CORRECT | ROW_SCORED | ROW_CORRECT,
		   ROW_UPSTREAM_SCORED | ROW_SCORED | ROW_CONSTRAINED | 1u << ROW_WRONG_SHIFT,
		   (unsigned)ROW_CONSTRAINED, (WRONG_COUNT - 1u) << ROW_WRONG_SHIFT);
	for (int is_empty = 0; is_empty < 2; is_empty++) {
		if (json_parse(&a, is_empty ? STR("{}") : buf_str(&text), &v, NULL) < 0)
			fail_msg("%s", text.data);
		structured_rate_line(v, &out);
		structured_json(v, &out);
		buf_add_text(&out, "\n");
	}
	answers_release(&out);
	buf_release(&text);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minimal), cmocka_unit_test(test_detailed),
		cmocka_unit_test(test_pooling), cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_no_tokenizer), cmocka_unit_test(test_ours),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_names), cmocka_unit_test(test_dates),
		cmocka_unit_test(test_saving), cmocka_unit_test(test_meta),
		cmocka_unit_test(test_meta_errors), cmocka_unit_test(test_structured),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
