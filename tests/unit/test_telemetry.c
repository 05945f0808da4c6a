/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of /metrics, and the series that come of it. */
/* threads: yes */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/record/file.h"
#include "core/base/clock.h"
#include "fetch_server.h"
#include "host/telemetry/telemetry.h"
#include "scratch.h"

/* ---- names ---- */

struct want { enum series_id id; double value; };

static void reads(const char *text, const struct want *want, size_t n)
{
	struct telemetry_values v;

	telemetry_read(str_of(text), &v);
	assert_int_equal(v.n_told, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(v.is_reported[want[i].id]);
		assert_true(v.value[want[i].id] == want[i].value);
	}
}
#define READS(text, ...)                                                                  \
	reads(text, (const struct want[]){ __VA_ARGS__ },                                 \
	      sizeof((const struct want[]){ __VA_ARGS__ }) / sizeof(struct want))

static void test_names(void **state)
{
	(void)state;
	READS("# HELP vllm:num_requests_running x\n# TYPE vllm:num_requests_running gauge\n"
	      "vllm:num_requests_running{engine=\"0\",model_name=\"a b\"} 3.0\n"
	      "vllm:num_requests_running{engine=\"1\",model_name=\"a b\"} 4.0\n"
	      "vllm:num_requests_waiting{engine=\"0\"} 5\n"
	      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n"
	      "vllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n"
	      "vllm:prefix_cache_queries_total 100\nvllm:prefix_cache_hits_total 40\n"
	      "vllm:num_preemptions_total 2\nvllm:prompt_tokens_total 1e6\n"
	      "vllm:prompt_tokens_created 1.7e9\nvllm:generation_tokens_total 7\n",
	      { SERIES_RUNNING, 7 }, { SERIES_WAITING, 5 }, { SERIES_KV_USAGE, 0.375 },
	      { SERIES_PREFIX_QUERIES, 100 }, { SERIES_PREFIX_HITS, 40 },
	      { SERIES_PREEMPTIONS, 2 }, { SERIES_PROMPT_TOKENS, 1000000 },
	      { SERIES_GENERATION_TOKENS, 7 });
	/* An old and a new name of one thing. */
	READS("vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.2\n",
	      { SERIES_KV_USAGE, 0.2 });
	READS("vllm:gpu_cache_usage_perc 0.1\n", { SERIES_KV_USAGE, 0.1 });
	READS("sglang:num_running_reqs{model_name=\"m\"} 1\nsglang:num_queue_reqs 2\n"
	      "sglang:token_usage 0.28\nsglang:prompt_tokens_total 8.128902e+06\n"
	      "sglang:generation_tokens_total 9\nsglang:cached_tokens_total 10\n",
	      { SERIES_RUNNING, 1 }, { SERIES_WAITING, 2 }, { SERIES_KV_USAGE, 0.28 },
	      { SERIES_PROMPT_TOKENS, 8128902 }, { SERIES_PREFIX_QUERIES, 8128902 },
	      { SERIES_PREFIX_HITS, 10 }, { SERIES_GENERATION_TOKENS, 9 });
	READS("tgi_batch_current_size 1\ntgi_queue_size 2\ntgi_request_input_length_sum 3\n"
	      "tgi_request_generated_tokens_sum 4\n", { SERIES_RUNNING, 1 },
	      { SERIES_WAITING, 2 }, { SERIES_PROMPT_TOKENS, 3 },
	      { SERIES_GENERATION_TOKENS, 4 });
	READS("llamacpp:requests_processing 1\nllamacpp:requests_deferred 2\n"
	      "llamacpp:kv_cache_usage_ratio 0.5\nllamacpp:prompt_tokens_total 3\n"
	      "llamacpp:tokens_predicted_total 4\n", { SERIES_RUNNING, 1 }, { SERIES_WAITING, 2 },
	      { SERIES_KV_USAGE, 0.5 }, { SERIES_PROMPT_TOKENS, 3 },
	      { SERIES_GENERATION_TOKENS, 4 });
	/* Sums of what no server has stay numbers. */
	READS("vllm:num_requests_running{a=\"0\"} 1e308\nvllm:num_requests_running{a=\"1\"} 1e308\n"
	      "vllm:num_preemptions_total -1e308\nvllm:num_preemptions_total -1e308\n"
	      "vllm:spec_decode_num_drafts_total 1e308\nvllm:spec_decode_num_drafts_total 1e308\n",
	      { SERIES_RUNNING, DBL_MAX }, { SERIES_PREEMPTIONS, -DBL_MAX },
	      { SERIES_DRAFTS, DBL_MAX });
	/* Nothing that is known, no number, and lines that are broken. */
	READS("up 1\nvllm:kv_cache_usage_perc NaN\nvllm:num_requests_running{ 3\n"
	      "<html>\nvllm:num_requests_waiting 1\n", { SERIES_WAITING, 1 });
}

/* The start time is read, but does not by itself mark a page as an inference server's. */
static void test_process_start(void **state)
{
	struct telemetry_values v;

	(void)state;
	telemetry_read(STR("process_start_time_seconds 1767225601.5\n"), &v);
	assert_true(v.is_reported[SERIES_PROCESS_START]);
	assert_true(v.value[SERIES_PROCESS_START] == 1767225601.5);
	assert_int_equal(v.n_told, 0);
}

static void test_counters_by_part(void **state)
{
	struct telemetry_values v;

	(void)state;
	telemetry_read(STR("vllm:spec_decode_num_drafts_total{engine=\"0\"} 10.9\n"
			   "vllm:spec_decode_num_drafts_total{engine=\"1\"} 5.9\n"
			   "vllm:spec_decode_num_drafts_created{engine=\"0\"} 1.7e9\n"
			   "vllm:spec_decode_num_draft_tokens_total 60\n"
			   "vllm:spec_decode_num_accepted_tokens_total 30\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 12\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{a=\"b\",position=\"0\"} 8\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 9\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"9999\"} 9\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"-1\"} 9\n"
			   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"x\"} 9\n"
			   "vllm:spec_decode_other_total 9\nvllm:spec_decode_num_drafts 99\n"), &v);
	assert_int_equal(v.n_told, 5);
	assert_true(v.value[SERIES_DRAFTS] == 15); /* whole numbers of every line */
	assert_true(v.value[SERIES_DRAFT_TOKENS] == 60);
	assert_true(v.value[SERIES_ACCEPTED_TOKENS] == 30);
	assert_true(v.is_position_told[0] && v.is_position_told[1] && !v.is_position_told[2]);
	assert_true(v.position[0] == 17 && v.position[1] == 12);
	READS("vllm:diffusion_num_denoising_steps_total 8\n"
	      "vllm:diffusion_num_canvas_positions_total 256\n"
	      "vllm:diffusion_num_committed_tokens_total{x=\"y\"} 64\n",
	      { SERIES_DIFFUSION_STEPS, 8 }, { SERIES_DIFFUSION_POSITIONS, 256 },
	      { SERIES_DIFFUSION_COMMITTED, 64 });
}

/* ---- series ---- */

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define RUNNING(n) OK "vllm:num_requests_running " #n "\n"

static char url[2][64];

static struct telemetry_source source(const struct server *s, int i)
{
	static const char *const header[] = { "Authorization: Bearer k", NULL };

	without_proxies();
	snprintf(url[i], sizeof(url[i]), "http://127.0.0.1:%u/metrics", (unsigned)s->port);
	return (struct telemetry_source){ .url = url[i], .labels = i ? "url=\"b\"" : "url=\"a\"",
					  .opts = { .header = header } };
}

static void wait_for(struct server *s, size_t answers)
{
	for (int i = 0; i < 20000 && atomic_load(&s->answered) < answers; i++)
		usleep(1000);
	assert_true(atomic_load(&s->answered) >= answers);
}

static const struct record_series *series_of(const struct record *r, const char *name,
					     const char *labels)
{
	for (size_t i = 0; i < r->n_series; i++)
		if (strcmp(r->series[i]->name, name) == 0 &&
		    strcmp(r->series[i]->labels, labels) == 0)
			return r->series[i];
	fail_msg("no series %s{%s}", name, labels);
	return NULL;
}

static void test_before_and_after(void **state)
{
	static const char *const answers[] = {
		OK "vllm:num_requests_running 1\n"
		"vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"2\"} 4\n",
		RUNNING(2), NULL };
	const struct record_series *s;
	struct record r = { 0 };
	struct telemetry_source from;
	struct telemetry *t;
	struct server server;
	int64_t begin = clock_real_ns(), between;

	(void)state;
	server_start(&server, answers);
	from = source(&server, 0);
	t = telemetry_begin(&from, 1, 0);
	between = clock_real_ns();
	telemetry_end(t, &r);
	s = series_of(&r, "running", "url=\"a\"");
	assert_string_equal(s->unit, "requests");
	assert_int_equal(s->n, 2);
	assert_true(s->point[0].value == 1 && s->point[1].value == 2);
	assert_true(s->point[0].at_ns >= begin && s->point[0].at_ns <= between);
	assert_true(s->point[1].at_ns >= between && s->point[1].at_ns <= clock_real_ns());
	s = series_of(&r, SERIES_POSITION, "url=\"a\",position=\"2\"");
	assert_int_equal(s->n, 1);
	assert_int_equal(series_of(&r, SERIES_SCRAPE, "url=\"a\"")->n, 2);
	assert_int_equal(r.n_notes, 0);
	assert_int_equal(occurrences(&server.asked, "Authorization: Bearer k"), 2);
	record_release(&r);
	server_stop(&server);
}

/* The thread's points, from two servers at once, of which one breaks off in between. */
static void test_while_load_runs(void **state)
{
	static const char *const good[] = { RUNNING(1), RUNNING(2), RUNNING(3), RUNNING(4),
					    RUNNING(5), RUNNING(6), RUNNING(7), RUNNING(8), NULL };
	static const char *const bad[] = {
		RUNNING(1), "HTTP/1.1 500 Busy\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 500 Busy\r\nConnection: close\r\n\r\n", RUNNING(4), RUNNING(5),
		RUNNING(6), RUNNING(7), RUNNING(8), NULL };
	struct server server[2];
	struct telemetry_source from[2];
	const struct record_series *s;
	struct record r = { 0 };
	struct telemetry *t;

	(void)state;
	server_start(&server[0], good);
	server_start(&server[1], bad);
	from[0] = source(&server[0], 0);
	from[1] = source(&server[1], 1);
	t = telemetry_begin(from, 2, 50 * 1000000);
	wait_for(&server[0], 4);
	telemetry_end(t, &r);
	s = series_of(&r, "running", "url=\"a\"");
	assert_true(s->n >= 3);
	for (size_t i = 1; i < s->n; i++) {
		assert_true(s->point[i].at_ns > s->point[i - 1].at_ns);
		assert_true(s->point[i].value > s->point[i - 1].value);
	}
	assert_true(series_of(&r, SERIES_SCRAPE_FAILED, "url=\"b\"")->n >= 1);
	assert_int_equal(r.n_notes, 0);
	record_release(&r);
	server_stop(&server[0]);
	server_stop(&server[1]);
}

static void test_no_metrics(void **state)
{
	static const char *const missing[] = {
		"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nnothing", NULL };
	static const char *const page[] = { OK "<html><body>hello</body></html>\n", NULL };
	const struct { const char *const *answer; const char *why; } cases[] = {
		{ missing, "HTTP status 404" }, { page, "it has no metric that is known here" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct record r = { 0 };
		struct telemetry_source from;
		struct server server;
		char want[200];

		server_start(&server, cases[i].answer);
		from = source(&server, 0);
		telemetry_end(telemetry_begin(&from, 1, 1000000), &r);
		assert_int_equal(r.n_series, 1);
		assert_string_equal(r.series[0]->name, SERIES_SCRAPE_FAILED);
		assert_int_equal(r.series[0]->n, 1); /* asked once and never again */
		assert_int_equal(r.n_notes, 1);
		assert_string_equal(r.note[0].kind, NOTE_SERVER_METRICS);
		snprintf(want, sizeof(want), "%s: %s", url[0], cases[i].why);
		assert_string_equal(r.note[0].text, want);
		assert_int_equal(occurrences(&server.asked, "GET /metrics"), 1);
		record_release(&r);
		server_stop(&server);
	}
	telemetry_end(NULL, NULL);
}

/* A server that is silent once load runs must not hold the run up. */
static void test_silence(void **state)
{
	static const char *const answers[] = { RUNNING(1), "", NULL };
	struct telemetry_source from;
	struct record r = { 0 };
	struct telemetry *t;
	struct server server;
	int64_t from_ns;

	(void)state;
	server_start(&server, answers);
	from = source(&server, 0);
	t = telemetry_begin(&from, 1, 1000000);
	usleep(50000); /* the thread waits for its answer */
	from_ns = clock_mono_ns();
	atomic_store(&server.is_over, true);
	telemetry_end(t, &r);
	assert_true(clock_mono_ns() - from_ns < 3000000000);
	assert_int_equal(series_of(&r, "running", "url=\"a\"")->n, 1);
	record_release(&r);
	server_stop(&server);
}

static void test_thin(void **state)
{
	/* The first one, then of each four the least and the greatest, in their order. */
	static const struct thin_row {
		double from[10];
		size_t n;
		int at[6];
		size_t kept;
	} rows[] = {
		{ { 0 }, 0, { 0 }, 0 },
		{ { 7 }, 1, { 0 }, 1 },
		{ { 7, 1 }, 2, { 0, 1 }, 2 },
		{ { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, 9, { 0, 1, 4, 5, 8 }, 5 },  /* a counter */
		{ { 0, 1, 2, 3, 0, 1, 2, 3, 4 }, 9, { 0, 3, 4, 5, 8 }, 5 },  /* restarted */
		{ { 9, 1, 5, 99, 5, 5, 5, 5, 5 }, 9, { 0, 1, 3, 5, 8 }, 5 }, /* a peak */
		{ { 9, 5, 99, 1, 5, 2, 3, 1 }, 8, { 0, 2, 3, 6, 7 }, 5 },
	};
	struct record r = { 0 };

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		struct record_series *s = record_series_add(&r, "running", "", "");

		for (size_t i = 0; i < rows[k].n; i++)
			record_series_point(s, (int64_t)i, rows[k].from[i]);
		series_thin(s);
		assert_int_equal(s->n, rows[k].kept);
		for (size_t i = 0; i < s->n; i++)
			if (s->point[i].at_ns != rows[k].at[i] ||
			    s->point[i].value != rows[k].from[rows[k].at[i]])
				fail_msg("row %zu, point %zu: %d", k, i, (int)s->point[i].at_ns);
	}
	record_release(&r);
}

/* Series written by a streamed record file are those that came while load ran. */
static void test_record_file(void **state)
{
	static const char *const answers[] = { RUNNING(1), RUNNING(2), RUNNING(3), RUNNING(4),
					       RUNNING(5), RUNNING(6), RUNNING(7), NULL };
	struct record r = { 0 }, back = { 0 };
	struct record_info info = { 0 };
	struct telemetry_source from;
	struct record_stream *stream;
	const struct record_series *s, *same;
	struct telemetry *t;
	struct server server;
	char path[sizeof(dir) + 16];
	struct err e = { 0 };

	(void)state;
	snprintf(path, sizeof(path), "%s/series.rec", dir);
	server_start(&server, answers);
	from = source(&server, 0);
	assert_int_equal(record_init(&r, 1, 1, 0, false, false, &e), 0);
	record_add_rows(&r, 1);
	stream = record_stream_open(&r, NULL, path, &e);
	assert_non_null(stream);
	t = telemetry_begin(&from, 1, 30 * 1000000);
	wait_for(&server, 3);
	record_finish(&r.row[0], REQ_DONE);
	telemetry_end(t, &r);
	assert_int_equal(record_stream_close(stream, &e), 0);
	assert_int_equal(record_file_load(&back, &info, path, &e), 0);
	s = series_of(&back, "running", "url=\"a\"");
	assert_true(s->n >= 3);
	same = series_of(&r, "running", "url=\"a\"");
	assert_int_equal(s->n, same->n);
	for (size_t i = 0; i < s->n; i++)
		assert_true(s->point[i].value == same->point[i].value &&
			    s->point[i].at_ns == same->point[i].at_ns);
	record_info_release(&info);
	record_release(&r);
	record_release(&back);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_process_start), cmocka_unit_test(test_counters_by_part),
		cmocka_unit_test(test_before_and_after),
		cmocka_unit_test(test_while_load_runs),
		cmocka_unit_test(test_no_metrics),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_thin),
		cmocka_unit_test(test_record_file),
	};

	return cmocka_run_group_tests_name("telemetry", tests, make_dir, remove_dir);
}
