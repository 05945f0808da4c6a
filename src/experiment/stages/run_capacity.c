/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_capacity.c - see run_internal.h: the largest load within limits in place of one run. The
 * servers are those of the experiment, started and held as for any other; the search is that of
 * `bench serve` (bench/sweep/find.h). Its result has the answer as numbers that tables, comparisons
 * and the store know, and as a whole in "capacity".
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/sweep/find.h"
#include "core/base/clock.h"
#include "core/json/write.h"
#include "experiment/stages/run_internal.h"
#include "out/report/report.h"

#define CANNOT "no capacity" /* the category of a search that ended without one */

struct capacity_talk { struct run *run; bool has_cost; };

static void say(const struct run *r, struct buf *text)
{
	if (text->len)
		run_line(r, "%s", text->data);
	buf_reset(text);
}

static void on_warn(void *self, const char *text)
{
	run_warn(((struct capacity_talk *)self)->run, text);
}

static void on_ended(void *self, const struct find *f)
{
	struct capacity_talk *t = self;
	struct buf text = { 0 };

	find_tell_step(f, &text);
	say(t->run, &text);
	if (!t->has_cost)
		find_tell_cost(f, &text);
	t->has_cost |= text.len > 0;
	say(t->run, &text);
	buf_release(&text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	const struct experiment_hooks *hooks = ((struct capacity_talk *)self)->run->hooks;

	(void)load;
	if (hooks->progress && stage == STAGE_MAIN)
		hooks->progress(hooks->self, "Level", done, total);
}

/* ---- the result ---- */

static void keep_result(struct run *r, const struct find *f)
{
	struct capacity_answer a = capacity_answer(f->search);
	const char *name = f->opts->load == CAPACITY_RATE ? "capacity_request_rate" :
							    "capacity_concurrency";
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);
	char date[REPORT_DATE_BYTES], key[64];

	json_begin_object(&w);
	json_member_text(&w, "date", report_date(date, clock_real_ns()));
	json_member_text(&w, "model_id", f->model);
	json_member_f64(&w, name, a.has_interval ? a.load : NAN);
	snprintf(key, sizeof(key), "%s_low", name);
	json_member_f64(&w, key, a.has_interval ? a.safe : NAN);
	snprintf(key, sizeof(key), "%s_high", name);
	json_member_f64(&w, key, a.has_interval ? a.high : NAN);
	json_member_object(&w, "capacity");
	find_put(f, &w);
	json_end_object(&w);
	json_end_object(&w);
	r->out->result = run_keep(r, &json);
	buf_release(&json);
}

/* The first line of the report of a search without an answer. */
static int without_answer(struct run *r, const struct find *f)
{
	struct buf text = { 0 };
	struct str rest, line;
	int rc;

	find_tell_answer(f, &text);
	rest = buf_str(&text);
	line = str_cut(&rest, '\n');
	rc = run_fail(r, CANNOT, "%.*s", (int)line.n, line.n ? line.p : "");
	buf_release(&text);
	return rc;
}

static int judge(struct run *r, const struct find *f, int rc, const struct err *e)
{
	struct buf text = { 0 };

	r->stage = AT_BENCHMARK;
	if (find_has_answer(f)) {
		find_tell_answer(f, &text);
		if (r->hooks->text)
			r->hooks->text(r->hooks->self, buf_str(&text));
		buf_release(&text);
	}
	if (servers_died(r, rc < 0))
		return -1;
	if (f->is_interrupted || run_is_cancelled(r))
		return run_interrupted(r);
	if (rc < 0)
		return run_fail(r, e->code == ERR_USAGE ? "bad configuration" : e->code == ERR_NET ?
				"network" : "not measured", "%s", e->text);
	return find_has_answer(f) ? 0 : without_answer(r, f);
}

/* ---- the search ---- */

static int options(const struct run *r, struct serve_opts *serve, struct find_opts *o,
		   struct arena *a, struct err *e)
{
	const struct experiment_search *s = &r->x->search;

	*serve = r->x->serve;
	serve->base_url = r->held->at[r->x->serving].url;
	serve->system_metrics = "off";
	serve->record_path = NULL;
	*o = (struct find_opts){
		.serve = serve, .given = &r->x->serve_given, .precision = s->precision / 100,
		.load = strcmp(s->find, "rate") == 0 ? CAPACITY_RATE : CAPACITY_CONCURRENCY,
		.level_s = s->level_s,
		.budget_s = s->budget_s.is_set ? s->budget_s.v : CAPACITY_BUDGET_S,
	};
	return slo_parse("search.slo", s->slo, a, &o->slo, e);
}

int bench_capacity(struct run *r)
{
	struct capacity_talk t = { .run = r };
	struct find_hooks hooks = { .self = &t, .warn = on_warn, .ended = on_ended,
				    .progress = on_progress, .cancel = &r->held->stop };
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct serve_opts serve;
	struct find_opts o;
	struct err e = { 0 };
	struct find f;
	int rc;

	if (options(r, &serve, &o, &a, &e) < 0) {
		arena_release(&a);
		return run_fail(r, "bad configuration", "%s", e.text);
	}
	find_tell_begin(&o, &text);
	say(r, &text);
	rc = find_run(&o, &hooks, &f, &e);
	keep_result(r, &f);
	rc = judge(r, &f, rc, &e);
	find_release(&f);
	buf_release(&text);
	arena_release(&a);
	return rc;
}
