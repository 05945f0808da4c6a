/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_serve.c - bench serve against a simulator: reports, results, gates and failures.
 * Times are masked; that they are right is for tests/load.
 *
 * threads: yes
 */
#include "serve_rig.h"

#include "client/record/file.h"
#include "out/report/report.h"

static void reports(void **state)
{
	static const struct verb_case cases[] = {
		{ SERVE SMALL " --output-json r.json", F, .files = "r.json +6:asked" },
		{ SERVE SMALL " --report full --percentile-metrics"
		  " ttft,tpot,itl,e2el,client_queue_time"
		  " --metric-percentiles 50,90,99.9 --goodput ttft:9000 e2el:20000 --temperature 0"
		  " --request-rate 200 --charts always", M },
		{ SERVE SMALL " --report full --compat stdout --num-warmups 2", M },
		{ SERVE SMALL " -q", M },
		{ SERVE SMALL " --report json --save-detailed --label mine --metadata gpu=2"
		  " note= --ignore-eos"
		  " --save-result --result-filename d.json --gpus 2xH100 --gpu-price 3", SILENT,
		  .files = "d.json" },
		{ SERVE SMALL " --num-runs 2 --output-json runs.json", F, .files = "runs.json" },
		{ SERVE SMALL " --append-result --result-filename lines.json", SILENT },
		{ .line = "bench serve --compare one.json two.json" },
		{ SERVE SMALL " --fail-if 'failed>0' 'total_output_tokens>19' --junit j.xml --summary"
		  " s.md",
		  .status = 3, M, .files = "j.xml s.md" },
		{ SERVE SMALL " --slo p90_ttft_ms<20000 --request-rate 300", .status = 3, M },
		{ SERVE SMALL " --progress lines --plot-timeline --plot-dataset-stats --plot-turns"
		  " --save-result --result-filename plot.json", .mask = VERB_TIMES | VERB_NO_OUT,
		  .varies = verb_serve_varies },
		{ SERVE SMALL " --record run.rec", SILENT },
		{ .line = "bench score nothing.rec", .status = 1 },
		{ "bench score run.rec", M },
		{ "bench score run.rec --percentile-metrics e2el --metric-percentiles 75"
		  " --report full"
		  " --goodput e2el:30000", M },
		{ "bench score run.rec run.rec", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void failures(void **state)
{
	static const struct verb_case cases[] = {
		{ BROKEN SMALL " --output-json b.json", SILENT, .files = "b.json" },
		{ BROKEN SMALL " --strict", .status = 3, M },
		{ BROKEN SMALL " --max-errors 1", .status = 1, M },
		{ BROKEN SMALL " --max-error-rate 0.1", M },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --model sim --tokenizer sim"
		  " " QUICK " " SMALL,
		  .status = 1 },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --tokenizer sim"
		  " " QUICK " " SMALL, .status = 1 },
		{ .line = "bench serve --base-url http://127.0.0.1:$S --model other --tokenizer"
		  " sim " QUICK " "
		  SMALL " --served-model-name none", .status = 1 },
		{ .line = SERVE SMALL " --burstiness -1", .status = 2 },
		{ .line = SERVE SMALL " --request-rate 0", .status = 2 },
		{ .line = SERVE SMALL " --find-max-rate", .status = 2 },
		{ .line = SERVE SMALL " --goodput ttft", .status = 2 },
		{ .line = SERVE SMALL " --num-warmups x", .status = 2 },
		{ .line = SERVE SMALL " --no-such", .status = 2 },
		{ .line = SERVE SMALL " --cpus 900", .status = 2 },
		{ .line = SERVE SMALL " --output-json /proc/none/r.json", .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* The processes of servers of this machine, each once whatever addresses it has. */
static void watched(void **state)
{
#define WATCHED(urls) { "bench serve --base-urls " urls " --model sim --tokenizer sim " QUICK " " SMALL \
	" --system-metrics process --output-json watched.json", .mask = VERB_NO_OUT | VERB_NO_ERR }
	static const struct verb_case row[] = {
		WATCHED("http://127.0.0.1:$S http://127.0.0.1:$B"),
		WATCHED("http://127.0.0.1:$S http://localhost:$S http://127.0.0.1:$B"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const struct json_value *system, *list;
		struct json_value *v;
		struct arena a = { 0 };
		struct buf text = { 0 };
		struct err e = { 0 };

		verb_check(&row[i]);
		assert_int_equal(file_read("watched.json", 1 << 24, &text, &e), 0);
		assert_int_equal(json_parse(&a, buf_str(&text), &v, &e), 0);
		system = json_get(json_get(v, "profllm"), "system");
		list = json_get(system, "processes");
		assert_int_equal(list->count, 2);
		assert_int_equal(json_get(system, "not_watched")->kind, JSON_NULL);
		for (size_t k = 0; k < 2; k++) {
			assert_true(str_is(json_text(json_get(&list->item[k], "name"), STR("")), "server"));
			assert_true(json_real(json_get(&list->item[k], "pid"), 0) == (double)verb_server[k]);
		}
		buf_release(&text);
		arena_release(&a);
	}
}

/* scored.rec as another host would have it, later_ns after it. */
static void save_host(const char *path, const char *meta, int64_t later_ns)
{
	struct record_info info;
	struct record r;
	struct err e = { 0 };

	assert_int_equal(record_file_load(&r, &info, "scored.rec", &e), 0);
	r.meta = meta ? meta : r.meta;
	r.start_ns += later_ns;
	r.stop_ns += later_ns;
	assert_int_equal(record_file_save(&r, NULL, path, &e), 0);
	record_release(&r);
	record_info_release(&info);
}

static void save_changed(const char *path, const char *meta, int state, uint32_t other, uint32_t of)
{
	struct record_info info;
	struct record r;
	struct err e = { 0 };

	if (record_file_load(&r, &info, "scored.rec", &e) < 0)
		fail_msg("%s", e.text);
	r.meta = meta;
	for (uint32_t i = 0; i < r.n_rows; i++)
		if (i % of != other)
			r.row[i].state = (uint8_t)state;
	if (record_file_save(&r, NULL, path, &e) < 0)
		fail_msg("%s", e.text);
	record_release(&r);
	record_info_release(&info);
}

/* The requests of scored.rec: of two processes, of failures, cut off, without options. */
static void save_records(void)
{
	struct record_info info;
	struct report_meta meta;
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct record r;
	struct err e = { 0 };

	assert_int_equal(record_file_load(&r, &info, "scored.rec", &e), 0);
	assert_int_equal(report_meta_read(&meta, str_of(r.meta), &a, &e), 0);
	save_changed("failed.rec", r.meta, REQ_FAILED, 4, 4);
	meta.facts.processes = 2;
	report_meta_write(&meta, &text);
	save_host("host1.rec", NULL, 0);
	save_host("later.rec", NULL, 3600 * 1000000000ll);
	save_changed("part0.rec", text.data, REQ_UNSENT, 0, 2);
	save_changed("part1.rec", text.data, REQ_UNSENT, 1, 2);
	meta.facts.processes = 0;
	meta.facts.model_id = "another";
	buf_reset(&text);
	report_meta_write(&meta, &text);
	save_host("model.rec", text.data, 0);
	save_changed("bare.rec", NULL, REQ_DONE, 0, 1);
	save_changed("wrong.rec", "{", REQ_DONE, 0, 1);
	save_changed("cut.rec", r.meta, REQ_DONE, 0, 1);
	assert_int_equal(truncate("cut.rec", (off_t)verb_size("cut.rec") - 1), 0);
	record_release(&r);
	record_info_release(&info);
	buf_release(&text);
	arena_release(&a);
}

static void scored(void **state)
{
	static const struct verb_case measure = { SERVE SMALL " --record scored.rec --temperature 0", SILENT };
	static const struct verb_case cases[] = {
		{ "bench score part0.rec part1.rec --report full", M },
		{ "bench score part0.rec part0.rec", .status = 1 },
		{ "bench score part0.rec scored.rec", M },
		{ "bench score scored.rec host1.rec --record both.rec", .mask = VERB_NO_OUT },
		{ "bench score both.rec", M }, { "bench score host1.rec both.rec", .status = 2 },
		{ "bench score scored.rec later.rec host1.rec", .status = 2, M },
		{ "bench score scored.rec model.rec", .status = 2 },
		{ "bench score failed.rec", .status = 1, M }, { "bench score cut.rec", M },
		{ "bench score bare.rec", .status = 1 }, { "bench score wrong.rec", .status = 1 },
		{ .env = "PATH=/nonexistent", .line = "bench score scored.rec --plot-timeline --plot-turns"
		  " --plot-dataset-stats --result-dir figures/all --save-result"
		  " --result-filename s.json --timeline-itl-thresholds 5,10", M },
		{ "bench score scored.rec --plot-timeline --timeline-itl-thresholds 5", .status = 2, M },
		{ "bench score scored.rec --plot-turns --result-dir /proc/none --save-result", .status = 1, M },
		{ "bench score scored.rec --append-result --result-filename l.jsonl --report json", SILENT },
		{ "bench score scored.rec --percentile-metrics ttft,speed", .status = 2 },
		{ "bench score scored.rec --metric-percentiles 50,101", .status = 2 },
		{ "bench score scored.rec --goodput ttft", .status = 2 },
		{ "bench score scored.rec --goodput ttft:-1", .status = 2 },
	};

	(void)state;
	verb_check(&measure);
	save_records();
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reports), cmocka_unit_test(failures),
		cmocka_unit_test(watched), cmocka_unit_test(scored) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, serve_setup, verb_teardown);
}
