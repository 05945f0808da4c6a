/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sweep_find.c - what is printed, written and drawn of a search for the largest load: the
 * search is taken through all its steps on a made-up server, and every sentence is compared.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/sweep/find.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "scratch.h"
#define ANSWER_HEAD_BYTES 5000
#define ANSWERS_MAX       80
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * TTFT of a request is base_s + grow_s * (load / knee)^4, and every tenth request takes three times
 * as long; one of fail_every fails. What is above carried per second is left undone.
 */
struct server { double base_s, grow_s, knee, carried; unsigned fail_every,
	spoilt, doubted; bool is_easier; };

struct row {
	const char *name, *slo;
	enum capacity_load load;
	double precision, budget_s, load_min, load_max, failed_share;
	struct server server;
	unsigned steps; /* stopped after so many; 0: to its end */
	bool is_drawn;
};

static void run_level(const struct row *row, const struct find *f, double load, double hold_s,
		      double warmup_s, struct level *out)
{
	const struct server *v = &row->server;
	double per_s = row->load == CAPACITY_RATE ? load : 20 * load, last_s = 0;
	size_t n = (size_t)fmin(per_s * hold_s, 200000);
	struct level_request *r = mem_array(n + 1, sizeof(*r));
	double *value = mem_array((n + 1) * (row->slo ? f->opts->slo.n + 1 : 1), sizeof(*value));
	double ratio = load / v->knee;
	double ttft_s = v->base_s + v->grow_s * (v->is_easier ? 1 / (1 + ratio) : pow(ratio, 4));

	for (size_t i = 0; i < n; i++) {
		double due_s = (double)i / per_s,
			mine_s = ttft_s * (i % 10 == 3 ? 3 : 1 + 0.05 * (double)(i % 7));
		bool is_failed = v->fail_every && i % v->fail_every == v->fail_every - 1;

		last_s = fmax(due_s + mine_s + 0.05,
			per_s > v->carried ? last_s + 1 / v->carried : 0);
		slo_mark(&f->opts->slo, &(struct slo_request){ .due_s = due_s, .end_s = last_s,
			.ttft_s =
			 is_failed ? NAN : mine_s, .e2el_s = mine_s + 0.05, .tokens = 6,
			 .is_failed = is_failed }, slo_has_mean(&f->opts->slo) ?
			 value + i * (f->opts->slo.n + 1) : NULL, &r[i]);
	}
	*out = (struct level){ .load = load, .spent_s = hold_s + ttft_s };
	level_take(out, r, n, f->opts->slo.n + 1, warmup_s, hold_s);
	free(r);
	free(value);
}

static void step(const struct row *row, struct find *f, unsigned *spoilt)
{
	const struct capacity_step *s = &f->step;

	switch (s->ask) {
	case CAPACITY_PROBE:
		capacity_tell_probe(f->search, row->server.carried > 0, 0.25);
		break;
	case CAPACITY_UNLOADED_REQUESTS:
		run_level(row, f, 0.02,
			(double)s->requests / (row->load == CAPACITY_RATE ? 0.02 : 0.4), 0,
			  &f->level);
		f->level.spent_s = 10 * f->level.e2e_s;
		capacity_tell_unloaded(f->search, &f->level);
		break;
	case CAPACITY_SATURATE:
		f->saturation = (struct capacity_saturation){ .per_s = row->server.carried,
			.at_once = 40,
							      .spent_s = 4, .requests = 800 };
		capacity_tell_saturation(f->search, &f->saturation);
		break;
	default:
		run_level(row, f, s->load, s->hold_s, s->warmup_s, &f->level);
		f->spoilt = *spoilt ? 3 - (*spoilt)-- : 0;
		if (f->spoilt)
			snprintf(f->why_spoilt, sizeof(f->why_spoilt), "the client was late");
		else
			capacity_tell_level(f->search, &f->level);
		if (row->server.doubted && !s->is_bracketing)
			f->doubts = (struct find_doubts){
				row->server.doubted - 1, row->server.spoilt, "send_lag",
				"The client sent requests late." };
	}
}

static void add_line(struct buf *out, struct buf *line)
{
	if (line->len)
		buf_printf(out, "%s\n", line->data);
	buf_reset(line);
}

static void search(const struct row *row)
{
	struct find_opts o = { .load = row->load, .precision = row->precision,
		.budget_s = row->budget_s,
			       .level_s = 6, .load_min = row->load_min, .load_max = row->load_max,
			       .failed_share = row->failed_share };
	struct capacity_opts c = { .load = o.load, .precision = o.precision, .budget_s = o.budget_s,
				   .level_s = o.level_s, .load_min = o.load_min,
				  .load_max = o.load_max,
				   .failed_share = o.failed_share, .has_saturation = true };
	struct buf out = { 0 }, line = { 0 }, text = { 0 };
	struct json_writer w = json_writer(&out);
	unsigned steps = 0, spoilt = row->server.spoilt;
	struct find f = { .opts = &o };
	struct arena a = { 0 };
	struct err e = { 0 };
	char stem[64];

	if (slo_parse("--slo", row->slo, &a, &o.slo, &e) < 0)
		fail_msg("%s", e.text);
	slo_limits(&o.slo, &c);
	f.search = capacity_new(&c);
	buf_printf(&out, "== %s\n", row->name);
	find_tell_begin(&o, &line);
	add_line(&out, &line);
	for (;;) {
		f.step = capacity_next(f.search);
		if (f.step.ask == CAPACITY_DONE || (row->steps && steps++ == row->steps))
			break;
		step(row, &f, &spoilt);
		find_tell_step(&f, &line);
		add_line(&out, &line);
		find_tell_cost(&f, &line);
		add_line(&out, &line);
	}
	capacity_stop(f.search);
	find_tell_answer(&f, &out);
	answers_release(&out);
	out = (struct buf){ 0 };
	json_begin_object(&w);
	find_put(&f, &w);
	json_end_object(&w);
	answers_check(out.data, out.len);
	buf_release(&out);
	if (row->is_drawn && find_has_answer(&f)) {
		snprintf(stem, sizeof(stem), "%s/figure", dir);
		assert_int_equal(find_draw(&f, stem, &e), -1);
		snprintf(stem, sizeof(stem), "%s/figure.gp", dir);
		assert_int_equal(file_read(stem, SIZE_MAX, &text, &e), 0);
		snprintf(stem, sizeof(stem), "%s/figure.dat", dir);
		assert_int_equal(file_read(stem, SIZE_MAX, &text, &e), 0);
		answers_check(text.data, text.len);
		buf_release(&text);
	}
	buf_release(&line);
	find_release(&f);
	arena_release(&a);
}

static void searches(void **state)
{
#define TAIL "p90_ttft_ms<200"
#define MEAN "mean_e2el_ms<=200,p99_ttft_ms<5000"
	static const struct row row[] = {
		{ "a rate", TAIL, CAPACITY_RATE, 0.1, 2000, .is_drawn = true, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "a mean", MEAN, CAPACITY_RATE, 0.1, 2000, .is_drawn = true, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "at once, spoilt twice", TAIL, CAPACITY_CONCURRENCY, 0.2, 600,
		  .server = { 0.05, 0.05, 9, 4000, .spoilt = 2 } },
		{ "DEGRADED levels", TAIL, CAPACITY_RATE, 0.1, 2000,
		  .server = { 0.05, 0.05, 60, 400, .doubted = 3 } },
		{ "a DEGRADED level, and one again", TAIL, CAPACITY_RATE, 0.1, 2000,
		  .server = { 0.05, 0.05, 60, 400, .doubted = 2, .spoilt = 1 } },
		{ "levels again", TAIL, CAPACITY_RATE, 0.1, 2000,
		  .server = { 0.05, 0.05, 60, 400, .doubted = 1, .spoilt = 2 } },
		{ "the budget ends first", TAIL, CAPACITY_RATE, 0.001, 40, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "narrow, of few levels", TAIL, CAPACITY_RATE, 0.3, 200, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "a short budget", TAIL, CAPACITY_RATE, 0.1, 9, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "saturation", "p99_ttft_ms<9000", CAPACITY_RATE, 0.2, 400, .server = { 0.05, 0, 60, 30, 0 } },
		{ "failures", "p99_ttft_ms<9000", CAPACITY_RATE, 0.2, 100, .server = { 0.05, 0, 60, 300, 20 } },
		{ "failures that are allowed", "p99_ttft_ms<9000", CAPACITY_RATE, 0.2, 100, .failed_share = 0.1,
		  .load_max = 50, .server = { 0.05, 0, 60, 300, 20 } },
		{ "not even without load", TAIL, CAPACITY_RATE, 0.1, 100, .server = { 0.5, 0.05, 60, 400, 0 } },
		{ "nobody is there", TAIL, CAPACITY_RATE, 0.1, 100, .server = { 0.05, 0.05, 60, 0, 0 } },
		{ "all pass", TAIL, CAPACITY_CONCURRENCY, 0.1, 300, .load_max = 4,
		  .server = { 0.01, 0.001, 60, 4000, 0 } },
		{ "none pass", TAIL, CAPACITY_RATE, 0.1, 300, .load_min = 90, .server = { 0.05, 0.05, 60, 400, 0 } },
		{ "easier with load", "mean_ttft_ms<90", CAPACITY_RATE, 0.1, 300,
		  .server = { 0.01, 0.079, 60, 400, .is_easier = true } },
		{ "stopped", TAIL, CAPACITY_RATE, 0.1, 2000, .server = { 0.05, 0.05, 60, 400, 0 }, .steps = 5 },
		{ "stopped early", TAIL, CAPACITY_RATE, 0.1, 2000, .server = { 0.05, 0.05, 60, 400, 0 }, .steps = 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		search(&row[i]);
}

/* ---- the parts of a search ---- */

/* A row of a record, in seconds since load began (0: not yet), as a level that runs for 10 s. */
static void levels_that_run(void **state)
{
	static const struct {
		const char *name;
		enum request_state state;
		double due_s, admitted_s, sent_s, first_s, last_s, end_s;
		uint32_t tokens, events;
		bool is_closed;
	} row[] = {
		{ "due, not sent", REQ_WAITING, 4, 0, 0, 0, 0, 0, 0, 0, false },
		{ "due just now", REQ_WAITING, 10, 0, 0, 0, 0, 0, 0, 0, false },
		{ "not due", REQ_WAITING, 10.5, 0, 0, 0, 0, 0, 0, 0, false },
		{ "no slot is free", REQ_WAITING, 4, 0, 0, 0, 0, 0, 0, 0, true },
		{ "sent, and slow by now", REQ_RUNNING, 4, 0, 7, 0, 0, 0, 0, 0, false },
		{ "just sent", REQ_RUNNING, 4, 0, 9.95, 0, 0, 0, 0, 0, false },
		{ "just sent when a slot was free", REQ_RUNNING, 4, 0, 9.95, 0, 0, 0, 0, 0, true },
		{ "answered in time, unfinished", REQ_RUNNING, 4, 0, 9.8, 9.85, 9.9, 0, 0, 2,
		  false },
		{ "answered in time, not finished in time", REQ_RUNNING, 4, 0, 7, 7.05, 7.1, 0, 0,
		  2, false },
		{ "done", REQ_DONE, 4, 7, 7, 7.05, 7.3, 7.35, 6, 4, false },
		{ "done when a slot was free", REQ_DONE, 4, 7, 7, 7.05, 7.3, 7.35, 6, 4, true },
		{ "done, without usage", REQ_DONE, 4, 7, 7, 7.05, 7.3, 7.35, 0, 4, false },
		{ "done, too slow", REQ_DONE, 4, 7, 7, 7.25, 7.5, 7.5, 6, 6, false },
		{ "failed", REQ_FAILED, 4, 7, 7, 7.05, 7.1, 7.15, 0, 2, false },
		{ "failed before it was sent", REQ_FAILED, 4, 7, 0, 0, 0, 7.15, 0, 0, false },
		{ "failed before it was sent, in a slot", REQ_FAILED, 4, 7, 0, 0, 0, 7.15, 0, 0,
		  true },
		{ "cancelled", REQ_CANCELLED, 4, 7, 7, 7.05, 7.1, 7.15, 0, 2, false },
		{ "never sent", REQ_UNSENT, 4, 0, 0, 0, 0, 0, 0, 0, false },
	};
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct slo slo;
	struct err e;

	(void)state;
	assert_int_equal(slo_parse("--slo", "p90_ttft_ms<100,p90_tpot_ms<60,mean_e2el_ms<=400", &a,
				   &slo, &e),
			 0);
	for (size_t i = 0; i < COUNT(row); i++) {
#define NS(member) (row[i].member > 0 ? 1000000000 + (int64_t)(row[i].member * 1e9) : 0)
		struct request_row r = {
			.state = (uint8_t)row[i].state,
			.admitted_ns = NS(admitted_s),
			.sent_ns = NS(sent_s),
			.first_event_ns = NS(first_s),
			.last_event_ns = NS(last_s),
			.end_ns = NS(end_s),
			.output_tokens = row[i].tokens,
			.n_events = row[i].events,
		};
		struct plan_entry entry = { .due_s = row[i].due_s };
		struct plan plan = { .entry = &entry, .n = 1 };
		struct record record = { .row = &r, .n_rows = 1, .start_ns = 1000000000 };
		struct run_sample now = { .record = &record, .plan = &plan, .n_rows = 1 };
		struct level l = { 0 };

		find_level_now(&slo, &now, row[i].is_closed, 0, 10, 10, &l);
		buf_printf(&out, "%s: %d of %d, %d failed, E2EL %.3f, late %d/%d", row[i].name,
			   (int)l.attempted, (int)l.requests, (int)l.failed, l.e2e_s,
			   (int)l.due_late, (int)l.done_late);
		for (size_t j = 0; j < slo.n + 1 && l.batches; j++)
			buf_printf(&out, ", %u/%u", l.batch[0].slow[j], l.batch[0].n[j]);
		buf_printf(&out, ", mean %.3f\n", l.batches ? l.batch[0].mean[2] : NAN);
	}
	answers_check(out.data, out.len);
	buf_release(&out);
	arena_release(&a);
}

static const struct {
	const char *name;
	struct find_saturated r;
	double last_per_s;
	struct find_load l;
	bool goes_on;
	uint32_t cap;
	double prompts;
} saturation[] = {
	{ "refused: half at once",
	  { 9, 4, false, true },
	  0,
	  { INFINITY, 0, 100 },
	  true,
	  50,
	  250 },
	{ "few were sent", { 9, 4, false, true }, 0, { INFINITY, 0, 7 }, true, 3, 50 },
	{ "refused again", { 9, 4, true, true }, 0, { INFINITY, 50, 250 }, true, 25, 125 },
	{ "three at once", { 9, 4, false, true }, 0, { INFINITY, 3, 50 }, true, 1, 50 },
	{ "one at a time", { 9, 4, false, true }, 0, { INFINITY, 1, 50 }, false, 1, 50 },
	{ "carried with a cap",
	  { 9, 400, false, false },
	  0,
	  { INFINITY, 2, 50 },
	  false,
	  2,
	  50 },
	{ "too slow for more",
	  { 9, 400, true, false },
	  0,
	  { INFINITY, 0, 50 },
	  false,
	  0,
	  50 },
	{ "more run at once",
	  { 9, 30, false, false },
	  0,
	  { INFINITY, 0, 20 },
	  true,
	  0,
	  150 },
	{ "enough for those that run",
	  { 9, 4, false, false },
	  0,
	  { INFINITY, 0, 20 },
	  false,
	  0,
	  20 },
	{ "as many as may be",
	  { 9, 5000, false, false },
	  0,
	  { INFINITY, 0, 20 },
	  true,
	  0,
	  20000 },
	{ "no more than that",
	  { 9, 5000, false, false },
	  0,
	  { INFINITY, 0, 20000 },
	  false,
	  0,
	  20000 },
	{ "blind, and faster",
	  { 100, NAN, false, false },
	  90,
	  { INFINITY, 0, 20 },
	  true,
	  0,
	  40 },
	{ "blind, hardly faster",
	  { 100, NAN, false, false },
	  91,
	  { INFINITY, 0, 20 },
	  false,
	  0,
	  40 },
	{ "blind, nearly the most",
	  { 100, NAN, false, false },
	  9,
	  { INFINITY, 0, 3199 },
	  true,
	  0,
	  6398 },
	{ "blind, the most",
	  { 100, NAN, false, false },
	  9,
	  { INFINITY, 0, 3200 },
	  false,
	  0,
	  6400 },
};

static void next_saturations(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(saturation); i++) {
		struct find_load l = saturation[i].l;
		bool goes_on = find_next_saturation(&saturation[i].r, saturation[i].last_per_s, &l);

		if (goes_on != saturation[i].goes_on || l.cap != saturation[i].cap ||
		    l.prompts != saturation[i].prompts || !isinf(l.rate))
			fail_msg("%s: %d, cap %u, %g prompts", saturation[i].name, goes_on, l.cap,
				 l.prompts);
	}
}

/* Prompts of a level, and the rate that is left of a burst of completions. */
static void numbers(void **state)
{
	static const struct {
		enum capacity_load load;
		double e2e_s, per_s, at, hold_s, want;
	} prompts[] = {
		{ CAPACITY_RATE, 0.1, 0, 10, 4, 76 },
		{ CAPACITY_RATE, 0.1, 900, 100, 9, 1030 },
		{ CAPACITY_CONCURRENCY, 0.1, 50, 4, 2, 148 },
		{ CAPACITY_CONCURRENCY, 0.1, 0, 4, 2, 122 },
		{ CAPACITY_CONCURRENCY, 0, 0, 4, 2, 10418 },
	};
	static const struct {
		double per_s, at_once, e2e_s, want;
	} carried[] = {
		{ 100, 40, 0.2, 100 },
		{ 300, 40, 0.2, 200 },
		{ 300, 40, 0, 300 },
		{ 300, 40, NAN, 300 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(prompts); i++) {
		struct find_opts o = { .load = prompts[i].load };
		struct find f = { .opts = &o,
				  .level.e2e_s = prompts[i].e2e_s,
				  .saturation.per_s = prompts[i].per_s };
		struct capacity_step s = { .load = prompts[i].at, .hold_s = prompts[i].hold_s };

		assert_true(find_prompts(&f, &s) == prompts[i].want);
	}
	for (size_t i = 0; i < COUNT(carried); i++) {
		struct capacity_saturation m = { .per_s = carried[i].per_s,
						 .at_once = carried[i].at_once };

		assert_true(fabs(find_carried_per_s(&m, carried[i].e2e_s) - carried[i].want) <
			    1e-9);
	}
}

/* Without gnuplot the script stays. */
static int set_up(void **state)
{
	return make_dir(state) < 0 ? -1 : setenv("PATH", "/nowhere", 1);
}

static int tear_down(void **state)
{
	return setenv("PATH", "/usr/bin:/bin", 1) ? -1 : remove_dir(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(searches),
					    cmocka_unit_test(levels_that_run),
					    cmocka_unit_test(next_saturations),
					    cmocka_unit_test(numbers) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
