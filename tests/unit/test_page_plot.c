/* SPDX-License-Identifier: Apache-2.0 */
/* test_page_plot.c - names, limits, histograms and the bytes of the pages. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "client/record/series.h"
#include "client/record/system_series.h"
#include "out/page/html.h"
#include "out/page/lengths.h"
#include "out/page/plot.h"
#include "plot_golden.h"
#include "scratch.h"

#define START_NS 1700000000000000000
#define MS 1000000

/* ---- names and limits ---- */

static void names(void **state)
{
	static const struct { const char *result, *path; } cases[] = {
		{ "run.json", "run.timeline.html" }, { "a.b/run", "a.b/run.timeline.html" },
		{ "dir/run.v1", "dir/run.timeline.html" }, { "run.v1.json", "run.v1.timeline.html" },
		{ ".hidden", ".hidden.timeline.html" }, { "dir/.hidden", "dir/.hidden.timeline.html" },
		{ "end.", "end..timeline.html" }, { "/tmp/a.json", "/tmp/a.timeline.html" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *path = plot_path(cases[i].result, PLOT_TIMELINE);

		assert_string_equal(path, cases[i].path);
		free(path);
	}
}

static void thresholds(void **state)
{
	static const char *const bad[] = {
		"25", "1,2,3", "a,5", "5, x y ", "1,", "", "1,2,z", "50,10", "5,5", "nan,5",
	};
	double ms[2] = { 0, 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(plot_thresholds(" 2.5 ,1e2", ms, &e), 0);
	assert_true(ms[0] == 2.5 && ms[1] == 100);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[200];

		assert_int_equal(plot_thresholds(bad[i], ms, &e), -1);
		snprintf(text, sizeof(text), "--timeline-itl-thresholds: expected two numbers of "
			 "milliseconds, the smaller one first, got '%s'", bad[i]);
		assert_string_equal(e.text, text);
		assert_int_equal(e.code, ERR_USAGE);
	}
}

/* ---- a run ---- */

struct run {
	struct record record;
	struct metrics metrics;
	struct trust trust;
	struct report_facts facts;
	struct report report;
};

static void add_event(struct record *r, struct request_row *row, int64_t gap_ns)
{
	record_event(&r->shard[0], row, gap_ns, 0);
	row->last_event_ns = (row->last_event_ns ? row->last_event_ns : row->sent_ns) + gap_ns;
	if (!row->first_event_ns)
		row->first_event_ns = row->last_event_ns;
}

/* n requests; every seventh fails after two events, one cannot connect, the last is never sent. */
static void make_run(struct run *run, uint32_t n, bool is_pooling)
{
	static const double percentile[] = { 99 };
	struct metrics_opts opts = { .percentile = percentile, .n_percentiles = 1, .selected = ~0u,
				     .is_pooling = is_pooling, .has_tokenizer = true };
	struct trust_facts seen = { 0 };
	struct err e = { 0 };

	assert_int_equal(record_init(&run->record, n + 1, 1, 1000, false, false, &e), 0);
	record_add_rows(&run->record, n);
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &run->record.row[i];
		bool is_failed = i % 7 == 3;

		row->prompt_tokens = 10 + i;
		row->due_ns = START_NS + i * 10 * MS;
		if (i + 1 == n)
			continue;
		if (i == 11) {
			row->connect_ns = row->due_ns + MS;
			row->end_ns = row->connect_ns + 2 * MS;
			record_finish(row, REQ_FAILED);
			continue;
		}
		/* Not in the order of the samples. */
		row->sent_ns = row->due_ns + (i % 2 ? 1 : 25 * MS);
		for (uint32_t k = 0; k < (is_failed ? 2u : 3 + i % 5); k++)
			add_event(&run->record, row, 5 * MS + i * 1000 + k);
		row->output_tokens = is_failed ? 0 : row->n_events;
		row->end_ns = row->last_event_ns + MS;
		if (is_failed)
			record_error(&run->record.shard[0], row, STR("</script> <!-- & \"\nmore"));
		record_finish(row, is_failed ? REQ_FAILED : REQ_DONE);
	}
	run->record.start_ns = START_NS;
	run->record.stop_ns = START_NS + 10000 * (int64_t)MS;
	metrics_score(&run->metrics, &run->record, &opts);
	trust_judge(&run->trust, &run->metrics, &seen);
	run->facts = (struct report_facts){ .date = "20260101-000000", .backend = "openai",
					    .model_id = "<b>m</b>", .request_rate = 5 };
	run->report = (struct report){ .facts = &run->facts, .record = &run->record,
				       .metrics = &run->metrics, .trust = &run->trust };
}

static void release_run(struct run *run)
{
	metrics_release(&run->metrics);
	record_release(&run->record);
}

/* The text of the element with that id. */
static struct str element(struct str page, const char *id)
{
	struct buf mark = { 0 };
	const char *at, *end;

	buf_printf(&mark, "id=\"%s\">", id);
	at = strstr(page.p, mark.data);
	assert_non_null(at);
	at += mark.len;
	buf_release(&mark);
	end = strstr(at, "</script>");
	assert_non_null(end);
	return (struct str){ at, (size_t)(end - at) };
}

struct numbers { char *bytes; size_t n, at; };

#define COLUMN_BYTES (8 << 20)

static struct numbers numbers_of(struct str page, const char *id)
{
	struct numbers v = { .bytes = mem_alloc(COLUMN_BYTES) };
	struct buf packed = { 0 };

	assert_true(base64_decode(element(page, id), &packed));
	assert_int_equal(zip_unpack(buf_str(&packed), v.bytes, COLUMN_BYTES, &v.n), ZIP_DONE);
	buf_release(&packed);
	return v;
}

static uint64_t next(struct numbers *v)
{
	uint64_t out = 0;
	unsigned char byte;
	unsigned shift = 0;

	do {
		assert_true(v->at < v->n);
		byte = (unsigned char)v->bytes[v->at++];
		out |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte > 127);
	return out;
}

static void done(struct numbers *v)
{
	assert_int_equal(v->at, v->n);
	free(v->bytes);
}

/* Two gauges that the page draws, one that has no value and one that it does not draw. */
static void add_series(struct record *r)
{
	const int64_t from_ns = START_NS + 10 * MS + 1;
	struct record_series *s = record_series_add(r, system_series_name(SYSTEM_GPU_POWER), "W", "gpu=\"0\"");

	record_series_point(s, from_ns + 2500999, 300);
	record_series_point(s, from_ns + 12000000, 310.5);
	s = record_series_add(r, series_name(SERIES_RUNNING), "", "engine=\"1\"");
	record_series_point(s, from_ns - 1000000, 4);
	record_series_add(r, series_name(SERIES_RUNNING), "", "engine=\"2\"");
	s = record_series_add(r, "other", "", "");
	record_series_point(s, from_ns, 1);
}

/* Every number of the record is found again. */
static void check_columns(struct str page, const struct run *run)
{
	struct numbers start = numbers_of(page, "start"), gaps = numbers_of(page, "gaps"),
		       gap = numbers_of(page, "gaps-0"), ttft = numbers_of(page, "ttft"),
		       states = numbers_of(page, "state"), whole = numbers_of(page, "whole"),
		       prompt = numbers_of(page, "prompt"), output = numbers_of(page, "output");
	int64_t at = START_NS + 10 * MS + 1; /* the second request is the first one sent */

	for (uint32_t i = 0; i < run->record.n_rows; i++) {
		const struct request_row *row = &run->record.row[i];
		uint64_t zigzag = next(&start), n = next(&gaps);
		int64_t from = i == 11 ? row->connect_ns : row->sent_ns;

		at += (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
		assert_int_equal(at, from ? from : START_NS + 10 * MS + 1);
		assert_int_equal(next(&ttft), row->sent_ns ? row->first_event_ns - from : 0);
		assert_int_equal(next(&whole), from ? row->end_ns - from : 0);
		assert_int_equal(next(&states), i == 11 ? 1 : !from ? 3 :
				 row->state == REQ_FAILED ? 5 : 0);
		assert_int_equal(next(&prompt), row->prompt_tokens);
		assert_int_equal(next(&output), row->output_tokens);
		assert_int_equal(n, row->n_events ? row->n_events - 1 : 0);
		for (uint32_t k = 1; k <= n; k++)
			assert_int_equal(next(&gap), 5 * MS + i * 1000 + k);
	}
	done(&start), done(&gaps), done(&gap), done(&ttft), done(&states), done(&whole);
	done(&prompt), done(&output);
}

static void timeline(void **state)
{
	static const char series[] =
		"\"series\": [{\"name\": \"running\", \"labels\": \"engine=\\\"1\\\"\", \"points\": [[-1.0, 4.0]]}, "
		"{\"name\": \"gpu_power\", \"labels\": \"gpu=\\\"0\\\"\", \"points\": "
		"[[2.5, 300.0], [12.0, 310.5]]}], \"errors\"";
	const double ms[2] = { 2.5, 50 };
	struct run run = { 0 };
	struct buf page = { 0 };
	struct err e = { 0 };
	char *path = file_join(dir, "t.html");
	struct str meta;

	(void)state;
	if (!plot_has_pages()) {
		print_message("# this build has no pages (WEB=0)\n");
		skip();
	}
	make_run(&run, 40, false);
	add_series(&run.record);
	assert_int_equal(plot_timeline(&run.report, ms, path, &e), PLOT_WRITTEN);
	assert_int_equal(file_read(path, 1 << 24, &page, &e), 0);
	check_columns(buf_str(&page), &run);
	meta = element(buf_str(&page), "meta");
	assert_non_null(memmem(meta.p, meta.n, "\\u003c/script> \\u003c!-- & \\\"\"", 28));
	assert_null(memchr(meta.p, '<', meta.n));
	/* Halves are rounded as Python rounds them. */
	assert_non_null(memmem(meta.p, meta.n, "\"ITL \\u003c 2ms\"", 15));
	assert_non_null(memmem(meta.p, meta.n, "\"ITL \\u2265 50ms\"", 16));
	if (!memmem(meta.p, meta.n, series, sizeof(series) - 1))
		fail_msg("%s", strstr(meta.p, "\"series\""));
	release_run(&run);
	buf_release(&page);
	free(path);
}

static struct str meta_of(struct run *run, const char *path, struct buf *page)
{
	const double of_run[2] = { 0, 0 };
	struct err e = { 0 };

	buf_reset(page);
	assert_int_equal(plot_timeline(&run->report, of_run, path, &e), PLOT_WRITTEN);
	assert_int_equal(file_read(path, 1 << 24, page, &e), 0);
	return element(buf_str(page), "meta");
}

/* Limits that were not asked for are those of the run; the peak is that of the curve. */
static void timeline_of_run(void **state)
{
	static const char low[] = "\"ITL \\u003c 10ms (2 \\u00d7 median)\"";
	static const char peak[] = "\"peak_concurrency\": 4,";
	struct run run = { 0 };
	struct buf page = { 0 };
	char *path = file_join(dir, "o.html");
	struct str meta;

	(void)state;
	if (!plot_has_pages())
		skip();
	make_run(&run, 40, false);
	for (uint32_t i = 0; i < run.metrics.n; i++) /* far more than there were at once */
		run.metrics.max_concurrent_requests = 99;
	meta = meta_of(&run, path, &page);
	if (!memmem(meta.p, meta.n, low, sizeof(low) - 1) ||
	    !memmem(meta.p, meta.n, "\"limits_ms\": [10.0, 20.0]", 25) ||
	    !memmem(meta.p, meta.n, peak, sizeof(peak) - 1))
		fail_msg("%.*s", (int)meta.n, meta.p);
	release_run(&run);
	buf_release(&page);
	free(path);
}

/* More gaps than are kept to the nanosecond: microseconds, whose errors do not add up. */
static void large_timeline(void **state)
{
	const double ms[2] = { 25, 50 };
	static const uint32_t n = (1u << 20) + 10;
	struct run run = { 0 };
	struct buf page = { 0 };
	struct err e = { 0 };
	char *path = file_join(dir, "large.html");
	struct numbers gap;
	uint64_t sum = 0;

	(void)state;
	if (!plot_has_pages()) {
		print_message("# this build has no pages (WEB=0)\n");
		skip();
	}
	make_run(&run, 2, false);
	for (uint32_t k = 0; k < n; k++)
		add_event(&run.record, &run.record.row[0], 1400);
	metrics_release(&run.metrics);
	metrics_score(&run.metrics, &run.record, &run.metrics.opts);
	assert_int_equal(plot_timeline(&run.report, ms, path, &e), PLOT_WRITTEN);
	assert_int_equal(file_read(path, 1 << 26, &page, &e), 0);
	gap = numbers_of(buf_str(&page), "gaps-0");
	for (size_t k = 0; k < run.metrics.itl_at[1]; k++)
		sum += next(&gap);
	done(&gap);
	/* Two gaps of 5 ms and some ns come first. */
	assert_int_equal(sum, (2 * 5 * MS + 3 + (int64_t)n * 1400 + 500) / 1000);
	assert_non_null(strstr(page.data, "\"unit_ns\": 1000"));
	release_run(&run);
	buf_release(&page);
	free(path);
}

static void nothing_to_draw(void **state)
{
	const double ms[2] = { 25, 50 };
	struct run pooling = { 0 }, empty = { 0 }, unsent = { 0 }, good = { 0 };
	struct err e = { 0 };
	char *path = file_join(dir, "none.html"), *bad = file_join(dir, "no/such/folder.html");

	(void)state;
	make_run(&pooling, 5, true);
	make_run(&empty, 0, false);
	make_run(&unsent, 1, false);
	make_run(&good, 5, false);
	assert_int_equal(plot_timeline(&pooling.report, ms, path, &e), PLOT_NOT_DETAILED);
	assert_int_equal(plot_dataset_page(&pooling.report, path, &e), PLOT_NOT_DETAILED);
	assert_int_equal(plot_dataset_script(&pooling.report, path, "x", &e), PLOT_NOT_DETAILED);
	assert_int_equal(plot_timeline(&empty.report, ms, path, &e), PLOT_NOT_DETAILED);
	assert_int_equal(plot_timeline(&unsent.report, ms, path, &e), PLOT_EMPTY);
	assert_false(file_exists(path));
	assert_int_equal(e.code, ERR_NONE);
	assert_int_equal(plot_timeline(&good.report, ms, bad, &e), PLOT_FAILED);
	if (plot_has_pages())
		assert_non_null(strstr(e.text, "folder.html: No such file or directory"));
	release_run(&pooling);
	release_run(&empty);
	release_run(&unsent);
	release_run(&good);
	free(path);
	free(bad);
}

/* ---- lengths ---- */

static void histograms(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(plot_golden) / sizeof(*plot_golden); c++) {
		int64_t v[5], zero[5] = { 0 };
		struct metrics m = { .n = (uint32_t)plot_golden[c].n, .input_len = v,
				     .output_len = zero };
		struct lengths_hist h;
		uint32_t seen = 0;

		memcpy(v, plot_golden[c].v, sizeof(v));
		lengths_count(&m, LENGTHS_TOTAL, &h);
		for (size_t k = 0; k < 5; k++) {
			uint32_t count = plot_golden[c].want[k].count;

			if (count)
				assert_int_equal(h.count[plot_golden[c].want[k].bin], count);
			seen += count;
		}
		assert_int_equal(seen, m.n);
		assert_true(h.edge[1] == plot_golden[c].edge_1);
		assert_true(h.edge[13] == plot_golden[c].edge_13);
	}
}

static void dataset(void **state)
{
	struct run run = { 0 };
	struct buf text = { 0 };
	struct err e = { 0 };
	char *path = file_join(dir, "d.gp");

	(void)state;
	make_run(&run, 40, false);
	assert_int_equal(plot_dataset_script(&run.report, path, "it's.png", &e), PLOT_WRITTEN);
	assert_int_equal(file_read(path, 1 << 20, &text, &e), 0);
	assert_non_null(strstr(text.data, "set output 'it''s.png'\n"));
	assert_non_null(strstr(text.data, "set title 'Total Tokens Distribution'\n"));
	assert_non_null(strstr(text.data, "$requests << END\n0.0 1 10 3\n1.0 1 11 4\n"));
	assert_non_null(strstr(text.data, "\n39.0 1 49 0\nEND\n"));
	/* Marks at whole tokens; the key is above the bars and covers none. */
	assert_non_null(strstr(text.data, "set xtics 10\n"));
	assert_non_null(strstr(text.data, "set key top right horizontal\n"));
	assert_null(strstr(text.data, "opaque"));
	for (uint32_t i = 0; i < run.metrics.n; i++)
		run.metrics.input_len[i] = 300;
	assert_int_equal(plot_dataset_script(&run.report, path, "x.png", &e), PLOT_WRITTEN);
	buf_reset(&text);
	assert_int_equal(file_read(path, 1 << 20, &text, &e), 0);
	/* Equal lengths are one bar. */
	assert_non_null(strstr(text.data, "$hist0 << END\n300 1 40\nEND\n"));
	assert_non_null(strstr(text.data, "set xrange [297.800:302.200]\n"));
	for (uint32_t i = 0; i < run.metrics.n; i++)
		run.metrics.input_len[i] = 10 + i;
	buf_reset(&text);
	if (plot_has_pages()) {
		struct numbers prompt;

		assert_int_equal(plot_dataset_page(&run.report, path, &e), PLOT_WRITTEN);
		assert_int_equal(file_read(path, 1 << 20, &text, &e), 0);
		prompt = numbers_of(buf_str(&text), "prompt");
		for (uint32_t i = 0; i < 40; i++)
			assert_int_equal(next(&prompt), 10 + i);
		done(&prompt);
	}
	release_run(&run);
	buf_release(&text);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(thresholds),
		cmocka_unit_test(timeline),
		cmocka_unit_test(timeline_of_run),
		cmocka_unit_test(large_timeline),
		cmocka_unit_test(nothing_to_draw),
		cmocka_unit_test(histograms),
		cmocka_unit_test(dataset),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
