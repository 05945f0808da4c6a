/* SPDX-License-Identifier: Apache-2.0 */
/* What a result keeps so that a run can be drawn: the largest there is, and what is in it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "client/record/series.h"
#include "client/record/system_series.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/stats/sketch.h"
#include "out/report/sketch.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define SECOND 1000000000ll
#define REQUESTS 9000 /* five a second for 600 s, then ten a second for 600 s, of ten tokens each */
#define RUN_S 1200
#define BYTES_MAX 110000

static const double asked[] = { 50, 90, 95, 99 };

static void add_requests(struct record *r)
{
	struct sample_draw draw = { 88172645463325252 };

	record_add_rows(r, REQUESTS);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct request_row *row = &r->row[i];

		row->due_s = i < 3000 ? i / 5.0 : 600 + (i - 3000) / 10.0;
		row->due_ns = row->admitted_ns = T0 + (int64_t)(row->due_s * 1e9);
		row->sent_ns = row->due_ns + 1000000 * sample_draw(&draw, 3);
		row->sample = i;
		row->status = 200;
		row->attempts = 1;
		row->prompt_tokens = 100 + sample_draw(&draw, 4000);
		sample_event(r, row, 30000000 + sample_draw(&draw, 90000000), 0);
		for (int k = 1; k < 10; k++)
			sample_event(r, row, 8000000 + sample_draw(&draw, 7000000), 0);
		row->end_ns = row->last_event_ns;
		row->output_tokens = 10;
		row->flags = ROW_HAS_USAGE;
		row->state = i % 1000 == 999 ? REQ_FAILED : REQ_DONE;
	}
}

/* Ten readings a second; reading 7,777 of the second GPU's power is a spike. */
static void add_readings(struct record *r)
{
	struct sample_draw draw = { 362436069 };
	struct record_series *util[2], *power[2], *kv, *running, *waiting;

	for (int g = 0; g < 2; g++) {
		const char *labels = g ? "gpu=\"1\"" : "gpu=\"0\"";

		util[g] = record_series_add(r, system_series_name(SYSTEM_GPU_UTILIZATION), "%", labels);
		power[g] = record_series_add(r, system_series_name(SYSTEM_GPU_POWER), "W", labels);
	}
	kv = record_series_add(r, series_name(SERIES_KV_USAGE), "", "url=\"a\"");
	running = record_series_add(r, series_name(SERIES_RUNNING), "requests", "url=\"a\"");
	waiting = record_series_add(r, series_name(SERIES_WAITING), "requests", "url=\"a\"");
	for (int i = -5; i < 10 * RUN_S + 5; i++) {
		int64_t at = T0 + i * SECOND / 10;

		for (int g = 0; g < 2; g++) {
			record_series_point(util[g], at, 80 + sample_draw(&draw, 20));
			record_series_point(power[g], at, i == 7777 && g ? 900 : 300);
		}
		record_series_point(kv, at, sample_draw(&draw, 10000) / 10000.0);
		record_series_point(running, at, sample_draw(&draw, 250));
		record_series_point(waiting, at, sample_draw(&draw, 250));
	}
}

static const struct json_value *track(const struct json_value *series, const char *key)
{
	const struct json_value *list = json_get(series, "tracks");

	for (size_t i = 0; i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "key"), STR("")), key))
			return &list->item[i];
	fail_msg("no track %s", key);
	return NULL;
}

static double number(const struct json_value *track, const char *member, size_t i)
{
	return json_real(&json_get(track, member)->item[i], NAN);
}

/* Ten tokens of each success: 50 a second, then 100. */
static void tokens_are_right(const struct json_value *series)
{
	const struct json_value *t = track(series, "output_tokens_per_s");
	double before = 0, after = 0;

	assert_int_equal(json_get(t, "y")->count, SKETCH_POINTS_MAX);
	for (size_t i = 0; i < SKETCH_POINTS_MAX; i++)
		*(i < SKETCH_POINTS_MAX / 2 ? &before : &after) += number(t, "y", i) / 300;
	assert_true(fabs(before - 50) < 0.5);
	assert_true(fabs(after - 100) < 0.5);
}

static void spike_is_there(const struct json_value *series)
{
	const struct json_value *power = track(series, "gpu_power_w");
	size_t spikes = 0;

	for (size_t i = 0; i < SKETCH_POINTS_MAX; i++) {
		if (number(power, "max", i) < 700)
			continue;
		spikes++;
		assert_int_equal(i, 388);
		assert_true(number(power, "max", i) == 1200);
		assert_true(fabs(number(power, "y", i) - 630) < 0.1);
		assert_true(number(power, "min", i) == 600);
	}
	assert_int_equal(spikes, 1);
}

static void quantiles_are_right(const struct json_value *sketches, const struct metrics *m)
{
	const struct json_value *p = json_get(sketches, "p"), *list = json_get(sketches, "metrics");

	assert_int_equal(list->count, 4);
	for (size_t i = 0; i < list->count; i++) {
		enum metric_block b = metric_block_find(json_text(json_get(&list->item[i], "metric"),
								  STR("")));
		const struct metrics_summary *s = &m->block[b];

		assert_int_equal(json_int(json_get(&list->item[i], "n"), 0), (int64_t)s->n);
		for (size_t k = 0; k < 4; k++)
			for (size_t at = 0; at < p->count; at++)
				if (fabs(json_real(&p->item[at], NAN) - asked[k] / 100) < 1e-9)
					assert_true(fabs(number(&list->item[i], "value_ms", at) /
							 s->percentile_ms[k] - 1) < 1e-4);
	}
}

static void a_large_run(void **state)
{
	struct report_facts facts = { .model_id = "m" };
	struct metrics_opts opts = { .percentile = asked, .n_percentiles = 4, .selected = 15,
				     .has_tokenizer = true, .max_concurrency = 64 };
	struct record r;
	struct metrics m;
	struct report report = { .facts = &facts, .record = &r, .metrics = &m };
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct arena a = { 0 };
	struct json_value *v;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, REQUESTS, 1, 10 * REQUESTS, false, true, &e), 0);
	r.start_ns = T0;
	r.stop_ns = T0 + RUN_S * SECOND;
	add_requests(&r);
	add_readings(&r);
	metrics_score(&m, &r, &opts);
	json_begin_object(&w);
	report_sketch_members(&report, &w);
	json_end_object(&w);
	assert_int_equal(json_parse_strict(&a, buf_str(&text), &v, &e), 0);
	print_message("# %zu bytes\n", text.len);
	assert_true(text.len < BYTES_MAX);
	assert_int_equal(json_get(json_get(v, "series"), "tracks")->count, 8);
	tokens_are_right(json_get(v, "series"));
	spike_is_there(json_get(v, "series"));
	assert_int_equal(json_get(json_get(v, "series"), "failed_s")->count, REQUESTS / 1000);
	quantiles_are_right(json_get(v, "sketches"), &m);
	assert_int_equal(json_get(json_get(json_get(v, "sketches"), "by_prompt"), "ttft_ms")->count,
			 SKETCH_PAIRS_MAX);
	arena_release(&a);
	buf_release(&text);
	metrics_release(&m);
	record_release(&r);
}

/* A run in which nothing was sent has neither. */
static void nothing(void **state)
{
	struct report_facts facts = { 0 };
	struct metrics m = { 0 };
	struct record r = { 0 };
	struct report report = { .facts = &facts, .record = &r, .metrics = &m };
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	(void)state;
	json_begin_object(&w);
	report_sketch_members(&report, &w);
	json_end_object(&w);
	assert_string_equal(text.data, "{}");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_run), cmocka_unit_test(nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
