/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - what the timeline page of a large run costs: time, memory, size.
 *
 * A record of 100,000 requests with 130 gaps each is made here, with jitter in the
 * last microsecond digits as a real one has; metrics are made from it as after a
 * run. Measured is plot_timeline() alone. $TIMELINE_KEEP names a file that the page
 * stays in, for tests/web/pages.mjs and web/bench.mjs.
 */
#include <math.h>
#include <unistd.h>

#include "client/metrics/metrics.h"
#include "client/metrics/trust.h"
#include "client/record/series.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "kit/kit.h"
#include "out/page/plot.h"

#define REQUESTS 100000u
#define REQUESTS_QUICK 2000u
#define EVENTS 131u
#define START_NS 1700000000000000000
#define RATE 160.0          /* requests per second */
#define SERIES_STEP_NS 1000000000

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state % below);
}

/* Mostly near 20 ms, some up to 45, one in a hundred far above. */
static int64_t gap_ns(uint64_t *state)
{
	uint32_t kind = draw(state, 100);

	if (kind == 0)
		return 60000000 + draw(state, 200000000);
	return kind < 15 ? 25000000 + draw(state, 20000000) : 14000000 + draw(state, 10000000);
}

static void fill_request(struct record *r, uint32_t i, uint64_t *state)
{
	struct request_row *row = &r->row[i];
	bool is_failed = i % 500 == 499;
	uint32_t events = is_failed ? 10 : EVENTS;

	row->sample = i;
	row->due_ns = START_NS + (int64_t)(i / RATE * 1e9);
	row->sent_ns = row->due_ns + draw(state, i % 50 ? 40000 : 90000000);
	row->last_event_ns = row->sent_ns;
	row->prompt_tokens = 200 + draw(state, 800);
	row->output_tokens = is_failed ? 0 : events;
	for (uint32_t k = 0; k < events; k++) {
		int64_t gap = k ? gap_ns(state) : 80000000 + draw(state, 400000000);

		record_event(&r->shard[0], row, gap, 0);
		row->last_event_ns += gap;
		if (k == 0)
			row->first_event_ns = row->last_event_ns;
	}
	row->end_ns = row->last_event_ns + 200000;
	if (is_failed)
		record_error(&r->shard[0], row, STR("connection reset by peer"));
	record_finish(row, is_failed ? REQ_FAILED : REQ_DONE);
}

static int fill(struct record *r, uint32_t n, struct err *e)
{
	uint64_t state = 1;
	struct record_series *running;

	if (record_init(r, n, 1, (uint64_t)n * EVENTS, false, false, e) < 0)
		return -1;
	record_add_rows(r, n);
	r->start_ns = START_NS;
	for (uint32_t i = 0; i < n; i++) {
		fill_request(r, i, &state);
		if (r->row[i].end_ns > r->stop_ns)
			r->stop_ns = r->row[i].end_ns;
	}
	running = record_series_add(r, series_name(SERIES_RUNNING), series_unit(SERIES_RUNNING),
				    "url=\"http://server:8000\"");
	for (int64_t at = START_NS; at < r->stop_ns; at += SERIES_STEP_NS)
		record_series_point(running, at, 480 + draw(&state, 60));
	return 0;
}

/* One repeat: everything but plot_timeline is outside the measured time. */
static int measure(struct bench *b, const struct report *report, const char *path, struct err *e)
{
	const double limits_ms[2] = { 25, 50 };
	int64_t rss = bench_rss(), start = clock_mono_ns(), ns;
	struct buf page = { 0 };
	int rc = 0;

	if (plot_timeline(report, limits_ms, path, e) != PLOT_WRITTEN)
		return -1;
	ns = clock_mono_ns() - start;
	bench_add(b, "s", (double)ns / 1e9, "page written");
	bench_add(b, "MiB", (double)(bench_rss() - rss) / 1048576, "memory it took");
	rc = file_read(path, BUF_BYTES_MAX, &page, e);
	if (rc == 0)
		figure_most(bench_add(b, "MB", (double)page.len / 1e6, "size of the page"), 60);
	buf_release(&page);
	return rc;
}

int main(int argc, char **argv)
{
	static const double percentile[] = { 99 };
	struct metrics_opts opts = { .percentile = percentile, .n_percentiles = 1, .selected = ~0u,
				     .has_tokenizer = true, .is_rate_finite = true };
	struct report_facts facts = { .date = "20260101-120000", .backend = "openai",
				      .model_id = "made-up", .dataset = "random",
				      .request_rate = RATE, .burstiness = 1,
				      .num_prompts = REQUESTS };
	const char *keep = getenv("TIMELINE_KEEP");
	char path[] = "/tmp/profllm-timeline.XXXXXX";
	int fd = keep ? -1 : mkstemp(path);
	struct trust_facts seen = { .is_kernel_stamped = true };
	struct metrics metrics;
	struct record record;
	struct trust trust;
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "timeline", argc, argv, &e);
	struct report report = { .facts = &facts, .record = &record, .metrics = &metrics,
				 .trust = &trust };

	if (rc == 0 && fill(&record, b.is_quick ? REQUESTS_QUICK : REQUESTS, &e) == 0) {
		metrics_score(&metrics, &record, &opts);
		trust_judge(&trust, &metrics, &seen);
		for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
			rc = measure(&b, &report, keep ? keep : path, &e);
		metrics_release(&metrics);
		record_release(&record);
	}
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return bench_end(&b, &e);
}
