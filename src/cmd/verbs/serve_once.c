/* SPDX-License-Identifier: Apache-2.0 */
/* serve_once.c - see serve_once.h. */
#include "cmd/verbs/serve_once.h"

#include <ctype.h>
#include <math.h>

#include "bench/offline/pytorch.h"
#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "bench/serve/build_workload.h"
#include "bench/serve/point.h"
#include "bench/serve/repeat.h"
#include "bench/serve/score.h"
#include "bench/sweep/find.h"
#include "bench/sweep/gnuplot.h"
#include "cmd/console/cli.h"
#include "cmd/console/live.h"
#include "cmd/console/plots.h"
#include "cmd/console/progress.h"
#include "cmd/console/reporter.h"
#include "host/ranks/ranks.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"

#define EXIT_STRICT 3
#define EXIT_INTERRUPTED 130

struct talk {
	struct progress progress;
	struct live *live; /* NULL: progress */
	struct reporter *reporter; /* NULL: no --dashboard */
	const struct serve_opts *opts;
	const struct serve_derived *derived;
	struct repeat runs;
	struct buf runs_json; /* of several: a part of the result that is saved and sent */
	struct target target; /* the result's file, which plots are named after */
	struct err err; /* of storing what was measured */
	struct slo slo; /* --slo; n 0: no limits */
	bool is_not_held; /* a run that does not hold them, or cannot be judged */
	struct serve_outcome *outcome;
	struct gates *gates;
	struct ranks *ranks; /* of one process that mpirun started among several; NULL */
};

static void on_line(void *self, const char *text)
{
	struct talk *talk = self;

	if (live_is_on(talk->live)) {
		live_print(talk->live, false, text);
		return;
	}
	progress_clear(&talk->progress);
	cli_line(text);
}

/* Whether the text was a warning before, maybe with other numbers; if not, it is from now on. */
static bool was_warned(struct buf *warned, struct str text)
{
	struct buf line = { 0 };
	bool has_it;

	buf_add_char(&line, '\n');
	for (size_t i = 0; i < text.n; i++)
		if (!isdigit((unsigned char)text.p[i]))
			buf_add_char(&line, text.p[i]);
	buf_add_char(&line, '\n');
	has_it = warned->len && memmem(warned->data, warned->len, line.data, line.len);
	if (!has_it)
		buf_add_str(warned, buf_str(&line));
	buf_release(&line);
	return has_it;
}

/* Leaves those lines that were no warnings before. */
static void drop_warned(struct buf *warned, struct buf *notes)
{
	struct str rest = buf_str(notes);
	struct buf left = { 0 };

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (was_warned(warned, line))
			continue;
		buf_add_str(&left, line);
		buf_add_char(&left, '\n');
	}
	buf_release(notes);
	*notes = left;
}

static void on_warn(void *self, const char *text)
{
	struct talk *talk = self;
	struct buf *warned = talk->outcome ? talk->outcome->warned : NULL;

	if (warned && was_warned(warned, str_of(text)))
		return;
	if (live_is_on(talk->live)) {
		live_print(talk->live, true, text);
		return;
	}
	progress_clear(&talk->progress);
	cli_warn(text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	struct talk *talk = self;

	if (stage != STAGE_MAIN)
		reporter_stage(talk->reporter, progress_stage_name(stage), done, total);
	if (!talk->live || stage != STAGE_MAIN)
		progress_show(&talk->progress, stage, done, total, load);
}

static void on_sample(void *self, const struct run_sample *now)
{
	struct talk *talk = self;

	reporter_sample(talk->reporter, now);
	if (!talk->live)
		return;
	progress_clear(&talk->progress);
	live_show(talk->live, now);
}

static void on_bytes(void *self, const char *file, uint64_t done, uint64_t total)
{
	progress_bytes(&((struct talk *)self)->progress, file, done, total);
}

static void print_namespace(const struct serve_opts *o)
{
	struct buf text = { 0 };

	opt_namespace(&serve_opt_set, o, &text);
	buf_add_char(&text, '\n');
	cli_out_buf(&text);
}

static struct plots plots_of(const struct serve_opts *o, const struct serve_derived *d)
{
	return (struct plots){ .is_timeline = o->plot_timeline,
			       .is_dataset_stats = o->plot_dataset_stats,
			       .is_turns = o->plot_turns,
			       .timeline_ms = { d->timeline_ms[0], d->timeline_ms[1] } };
}

/* The parts of a generated name, except the date. */
static struct report_facts named_facts(const struct serve_opts *o, const struct serve_derived *d,
				       const char *model_id)
{
	return (struct report_facts){
		.backend = o->backend, .label = d->label, .request_rate = o->request_rate,
		.model_id = model_id, .max_concurrency = d->load.max_concurrency,
		.ramp_strategy = d->ramp_up == RAMP_NONE ? NULL : o->ramp_up_strategy,
		.ramp_start_rps = o->ramp_up_start_rps.v, .ramp_end_rps = o->ramp_up_end_rps.v,
	};
}

/* Checks the generated name, with a date and a model of the right length. */
static int check_result_path(const struct serve_opts *o, const struct serve_derived *d,
			     struct err *e)
{
	struct report_facts facts = named_facts(o, d, o->model ? o->model : "model");
	struct plots plots = plots_of(o, d);
	char *path;
	int rc = 0;

	snprintf(facts.date, sizeof(facts.date), "00000000-000000");
	path = report_path(&facts, o->result_dir, o->result_filename);
	if (o->save_result || o->append_result)
		rc = target_check(o->result_filename ? "--result-filename"
				  : o->append_result ? "--append-result" : "--save-result", path, e);
	if (rc == 0)
		rc = plots_check(&plots, path, e);
	free(path);
	return rc;
}

/* Whether any file is named after the result. */
static bool writes_by_name(const struct serve_opts *o)
{
	return o->save_result || o->append_result || o->plot_timeline || o->plot_dataset_stats ||
	       o->plot_load_pattern || o->plot_turns;
}

static int check_outputs(const struct serve_opts *o, const struct serve_derived *d, struct err *e)
{
	if (o->dump_workload && strcmp(o->dump_workload, "-") != 0 &&
	    target_check("--dump-workload", o->dump_workload, e) < 0)
		return -1;
	if (o->dry_run)
		return 0;
	if (o->record_path && target_check("--record", o->record_path, e) < 0)
		return -1;
	if (o->output_json && target_make("--output-json", o->output_json, e) < 0)
		return -1;
	if (!writes_by_name(o))
		return 0;
	if (o->result_dir && *o->result_dir && file_mkdirs(o->result_dir, e) < 0)
		return err_wrap(e, "--result-dir");
	return check_result_path(o, d, e);
}

/* Generates the name from the run that is saved, or in a dry run from the time. */
static int name_result(struct talk *talk, const struct point *point, struct err *e)
{
	const struct serve_opts *o = talk->opts;
	struct report_facts facts = named_facts(o, talk->derived, point->model_id);

	if (talk->runs.n) {
		facts = repeat_median(&talk->runs)->scored.meta.facts;
		facts.label = talk->derived->label;
	} else {
		report_date(facts.date, clock_real_ns());
	}
	return target_name(&talk->target, &facts, o->result_dir, o->result_filename,
			   o->append_result, e);
}

static int save(struct talk *talk, const struct scored *scored, struct err *e)
{
	const struct serve_opts *o = talk->opts;
	struct buf json = { 0 };
	int rc;

	if (!o->save_result && !o->append_result)
		return 0;
	rc = report_result_json(&scored->report, &json, e);
	if (rc == 0)
		rc = report_save(talk->target.path, buf_str(&json), o->append_result, e);
	if (rc == 0)
		target_written(&talk->target);
	if (rc == 0 && run_pytorch_is_wanted())
		rc = run_pytorch_save(o, talk->target.path, buf_str(&json), e);
	buf_release(&json);
	return rc;
}

/* --output-json: the result with all its arrays, whatever else is saved. */
static int save_detailed(const struct serve_opts *o, const struct scored *scored, struct err *e)
{
	struct report_facts facts = scored->meta.facts;
	struct report detailed = scored->report;
	struct buf json = { 0 };
	int rc;

	if (!o->output_json)
		return 0;
	facts.is_detailed = true;
	detailed.facts = &facts;
	rc = report_result_json(&detailed, &json, e);
	if (rc == 0)
		rc = report_save(o->output_json, buf_str(&json), false, e);
	buf_release(&json);
	return rc < 0 ? err_wrap(e, "--output-json") : 0;
}

/* The last error ends the program; one that is already there stays. */
static void add_error(struct err *e, const struct err *also)
{
	if (also->code && e->code)
		cli_warn(also->text);
	else if (also->code)
		*e = *also;
}

/* Prints to stdout with --report json and --quiet. */
static int print_result(const struct serve_opts *o, const struct report *r, struct buf *text,
			struct err *e)
{
	if (strcmp(o->report, "json") == 0) {
		if (report_result_json(r, text, e) < 0)
			return err_wrap(e, "--report json");
		buf_add_char(text, '\n');
	} else if (o->quiet) {
		report_summary(r, text);
	}
	return text->len ? cli_result(buf_str(text), e) : 0;
}

/* A run is measured: prints its report, stores its record, and keeps both. */
static void on_measured(void *self, struct point *point)
{
	struct talk *talk = self;
	struct repeat_run *run = repeat_add(&talk->runs);
	const struct scored *scored = &run->scored;
	struct buf text = { 0 };
	struct err e = { 0 };
	char *charts;

	live_leave(talk->live);
	progress_clear(&talk->progress);
	score_point(talk->opts, talk->derived, point, &run->scored);
	run->scored.report.charts = charts = charts_draw(talk->opts, &scored->report);
	report_terminal(&scored->report, strcmp(talk->opts->report, "short") == 0 ? REPORT_SHORT :
			REPORT_FULL, &text);
	run->scored.report.charts = NULL;
	free(charts);
	cli_out(buf_str(&text));
	fflush(stdout);
	buf_reset(&text);
	if (print_result(talk->opts, &scored->report, &text, &e) < 0)
		add_error(&talk->err, &e);
	e = (struct err){ 0 };
	buf_reset(&text);
	if (talk->slo.n && hold_tell(&talk->slo, talk->opts, point, scored, &text) != HOLDS_PASSES)
		talk->is_not_held = true;
	cli_answer(buf_str(&text), talk->opts->quiet, &e);
	add_error(&talk->err, &e);
	e = (struct err){ 0 };
	fflush(stdout);
	buf_release(&text);
	if (point->failure && !point->is_interrupted) {
		err_set(&e, ERR_NO_SUCCESS, "%s (%s; %u failed)", point->failure,
			point->load.end == LOAD_REFUSED ? "the run was stopped, no request succeeded"
			: "no request succeeded", scored->metrics.failed);
		if (talk->opts->backend_file && scored->metrics.failed)
			err_add(&e, "; compare the places in %s, \"text\" first, with an answer of the "
				"server", talk->opts->backend_file);
		add_error(&talk->err, &e);
		e = (struct err){ 0 };
	}
	if (talk->outcome && talk->outcome->measured &&
	    talk->outcome->measured(talk->outcome->self, point, &e) < 0) {
		add_error(&talk->err, &e);
		e = (struct err){ 0 };
	}
	/* The record is completed even if the result cannot be written, and vice versa. */
	point_store(point, &e);
	add_error(&talk->err, &e);
	repeat_take(run, point);
}

static int status_of(const struct serve_opts *o, const struct repeat *runs)
{
	int status = 0;

	for (unsigned i = 0; i < runs->n; i++) {
		const struct scored *s = &runs->run[i]->scored;

		if (runs->run[i]->record.is_interrupted)
			return EXIT_INTERRUPTED;
		if (s->metrics.completed == 0 || s->meta.facts.load.aborted)
			status = 1;
		else if (status == 0 && o->strict && s->trust.verdict != TRUST_VALID)
			status = EXIT_STRICT;
	}
	return status;
}

static void count_asked(const struct report *r, struct serve_outcome *out)
{
	out->requests = r->metrics->n;
	out->asked_tokens = 0;
	for (uint32_t i = 0; i < r->metrics->n; i++) {
		const struct request_row *row = &r->record->row[r->metrics->row[i]];

		out->asked_tokens += (uint64_t)row->sample_prompt_tokens + row->asked_tokens;
	}
}

/*
 * Checks the conditions with the result that would be saved. A failed run's status takes
 * precedence.
 */
static int judge(struct talk *talk, const struct scored *scored, int status)
{
	struct buf json = { 0 };
	struct err e = { 0 };
	int rc;

	if (!talk->gates->n)
		return status;
	rc = report_result_json(&scored->report, &json, &e);
	if (rc == 0)
		rc = gates_judge_json(talk->gates, buf_str(&json), "", &e);
	if (rc == 0)
		rc = gates_end(talk->gates, "bench serve", &e);
	add_error(&talk->err, &e);
	buf_release(&json);
	return rc < 0 ? 1 : status ? status : rc;
}

/* All runs are over: of several, saves the middle one, with the values of all. */
static int finish(struct talk *talk)
{
	const struct serve_opts *o = talk->opts;
	struct repeat_run *saved = repeat_median(&talk->runs);
	struct buf table = { 0 };
	struct err e = { 0 };
	int status;

	if (talk->runs.n > 1) {
		repeat_table(&talk->runs, &table);
		cli_answer(buf_str(&table), o->quiet, &e);
		add_error(&talk->err, &e);
		e = (struct err){ 0 };
		repeat_json(&talk->runs, &talk->runs_json);
		saved->scored.meta.facts.load.runs = buf_str(&talk->runs_json);
	}
	if (talk->target.path) {
		struct plots plots = plots_of(o, talk->derived);

		plots_draw(&plots, &saved->scored.report, talk->target.path);
		save(talk, &saved->scored, &e);
		add_error(&talk->err, &e);
		e = (struct err){ 0 };
	}
	if (talk->outcome) {
		report_result_json(&saved->scored.report, &talk->outcome->result, &e);
		count_asked(&saved->scored.report, talk->outcome);
	}
	add_error(&talk->err, &e);
	e = (struct err){ 0 };
	save_detailed(o, &saved->scored, &e);
	add_error(&talk->err, &e);
	buf_release(&table);
	status = talk->err.code ? 1 : status_of(o, &talk->runs);
	return judge(talk, &saved->scored, status == 0 && talk->is_not_held ? EXIT_STRICT : status);
}

static int write_dump(const struct serve_opts *o, const struct point *p, struct err *e)
{
	const char *path = o->dump_workload;
	struct buf text = { 0 };
	int rc = 0;

	dump_workload(&p->workload, &p->plan, o->request_id_prefix, &text);
	if (text.is_over)
		rc = err_set(e, ERR_LIMIT, "--dump-workload: the workload exceeds the limit of "
					   "%llu GiB",
			     WORKLOAD_DUMP_BYTES_MAX >> 30);
	else if (strcmp(path, "-") == 0)
		cli_out(buf_str(&text));
	else
		rc = file_write_atomic(path, buf_str(&text), e);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--dump-workload") : 0;
}

static void print_summary(const struct point *p)
{
	struct buf text = { 0 };

	dump_summary(&p->workload, &p->plan, &text);
	cli_out_buf(&text);
}

static void plot_load(struct talk *talk, const struct point *point)
{
	struct buf line = { 0 }, note = { 0 };
	struct err failed = { 0 };

	run_plot_load(talk->opts, point, talk->target.path, &line, &note, &failed);
	if (line.len)
		cli_line(line.data);
	if (note.len)
		cli_warn(note.data);
	add_error(&talk->err, &failed);
	buf_release(&line);
	buf_release(&note);
}

/* Nothing was measured: the files for other programs state the reason. */
static void judge_none(struct gates *g, const struct err *why)
{
	struct err e = { 0 };

	gate_judge_none(g->gate, g->n, why->text, "", &g->log);
	if (gates_end(g, "bench serve", &e) < 0)
		cli_warn(e.text);
}

/* --dashboard: begins the run there, under the name of what is measured. */
static int begin_report(struct talk *talk, struct err *e)
{
	const struct serve_opts *o = talk->opts;
	const struct reporter_opts how = { .url = o->dashboard, .kind = "bench serve", .self = talk,
					   .line = on_line, .warn = on_warn };
	struct buf name = { 0 };

	if (!o->dashboard)
		return 0;
	if (reporter_new(&how, &talk->reporter, e) < 0)
		return -1;
	if (o->dry_run) { /* the URL is read, and nothing is sent */
		reporter_free(talk->reporter);
		talk->reporter = NULL;
		return 0;
	}
	buf_printf(&name, "%s, %s", o->label ? o->label : o->model ? o->model : o->backend,
		   o->dataset_name);
	if (talk->derived->load.max_concurrency > 0)
		buf_printf(&name, ", concurrency %lld",
			   (long long)talk->derived->load.max_concurrency);
	if (isfinite(o->request_rate))
		buf_printf(&name, ", %g requests/s", o->request_rate);
	reporter_begin(talk->reporter, name.data);
	buf_release(&name);
	return 0;
}

/* Sends the result once it is saved. */
static void end_report(struct talk *talk, const struct err *e)
{
	struct buf json = { 0 };
	struct err none = { 0 };

	if (!talk->reporter)
		return;
	if (talk->runs.n)
		report_result_json(&repeat_median(&talk->runs)->scored.report, &json, &none);
	reporter_end(talk->reporter, buf_str(&json), e->code ? e->text : NULL);
	reporter_free(talk->reporter);
	buf_release(&json);
}

static int run(const struct serve_opts *o, const struct serve_derived *d, const struct slo *slo,
	       struct gates *gates, struct serve_outcome *outcome, struct ranks *ranks,
	       struct err *e)
{
	struct talk talk = { .opts = o, .derived = d, .outcome = outcome, .slo = *slo,
			     .gates = gates, .ranks = ranks };
	struct run_hooks hooks = { .self = &talk, .line = on_line, .warn = on_warn,
				   .progress = on_progress, .bytes = on_bytes,
				   .measured = on_measured, .cancel = cli_is_interrupted(),
				   .ranks = ranks };
	struct point point;
	struct err undumped = { 0 }, unnamed = { 0 };
	struct buf head = { 0 };
	int status = 0, rc;

	if (ranks && ranks->rank) /* rank 0 reports */
		hooks = (struct run_hooks){ .cancel = hooks.cancel, .ranks = ranks };
	if (begin_report(&talk, e) < 0)
		return -1;
	progress_init(&talk.progress, o->disable_tqdm ? PROGRESS_NONE : d->progress);
	cli_catch_signals();
	buf_printf(&head, "profllm bench serve  %s at %s", o->model ? o->model : o->backend,
		   d->base_url);
	if (o->live && !o->disable_tqdm)
		talk.live = live_new(head.data);
	if (talk.live || talk.reporter)
		hooks.sample = on_sample;
	rc = run_point(o, d, &hooks, &point, e);
	live_free(talk.live);
	buf_release(&head);
	progress_clear(&talk.progress);
	if (rc == 0 && o->dump_workload)
		write_dump(o, &point, &undumped);
	if (rc == 0 && o->dry_run)
		print_summary(&point);
	if ((talk.runs.n || (rc == 0 && o->plot_load_pattern)) && writes_by_name(o) &&
	    name_result(&talk, &point, &unnamed) < 0)
		add_error(&talk.err, &unnamed);
	if (rc == 0 && o->plot_load_pattern && talk.target.path)
		plot_load(&talk, &point);
	if (talk.runs.n) /* also when a later run failed */
		status = finish(&talk);
	else if (rc < 0)
		judge_none(gates, e);
	add_error(e, &talk.err);
	add_error(e, &undumped);
	end_report(&talk, e);
	buf_release(&talk.runs_json);
	target_release(&talk.target);
	repeat_release(&talk.runs);
	point_release(&point);
	return rc < 0 ? rc : status;
}

/* Prints the options that a pattern implies, so that they can be written out. */
static void print_pattern(const struct serve_opts *o, const struct opt_result *given)
{
	struct buf flags = { 0 };

	if (!o->load_pattern)
		return;
	load_pattern_flags(o, given, &flags);
	printf("Load pattern %s: %s\n", o->load_pattern, flags.len ? flags.data : "nothing more");
	buf_release(&flags);
}

/* Before an hour of load. */
static int check_gates(const struct gates *g, const struct serve_opts *o,
		       const struct serve_derived *d, struct err *e)
{
	for (size_t i = 0; i < g->n; i++)
		if (serve_gate_check(&g->gate[i], o, d, false, e) < 0)
			return err_wrap(e, "--fail-if");
	return 0;
}

/* ---- several processes together (bench/serve/dealt.c) ---- */

/* Refuses options that have no meaning with several ranks. */
static int check_ranks(const struct ranks *r, const struct serve_opts *o,
		       const struct serve_derived *d, struct err *e)
{
	const char *refused = o->multi_turn ? "bench multi-turn" : o->dashboard ? "--dashboard" : NULL;

	if (refused)
		return err_set(e, ERR_USAGE, "%s runs in one process; start it without mpirun",
			       refused);
	if (d->load.max_concurrency && d->load.max_concurrency < (uint32_t)r->n)
		return err_set(e, ERR_USAGE, "--max-concurrency %u is less than one request for each of "
			       "the %d processes that mpirun started", d->load.max_concurrency, r->n);
	if (d->load.max_sessions && d->load.max_sessions < (uint32_t)r->n)
		return err_set(e, ERR_USAGE, "--max-sessions %u is less than one for each of the %d "
			       "processes that mpirun started", d->load.max_sessions, r->n);
	return 0;
}

/* What only rank 0 does: files, probes, watching the server and the machine. */
static void leave_to_first(const struct ranks *r, struct serve_opts *o, struct serve_derived *d,
			   struct arena *a)
{
	o->save_result = o->append_result = o->plot_timeline = o->plot_dataset_stats = false;
	o->plot_load_pattern = o->plot_turns = o->profile = o->calibrate = o->live = false;
	o->disable_tqdm = true;
	o->output_json = o->dump_workload = o->slo = NULL;
	if (o->record_path) /* a part, which rank 0 takes over */
		o->record_path = arena_printf(a, "%s.part%d", o->record_path, r->rank);
	o->probe_request_rate = 0;
	o->gate = (struct gate_opts){ 0 };
	memset(&d->system, 0, sizeof(d->system));
}

/* Rank 0 draws all random values. */
static int share_draws(struct ranks *r, struct serve_opts *o, struct arena *a, struct err *e)
{
	struct { char prefix[256], salt[SALT_KEY_BYTES + 32]; } drawn = { 0 };
	char key[SALT_KEY_BYTES + 1];
	enum salt_kind kind;
	const char *given;

	if (salt_parse(o->prompt_salt, &kind, &given, e) < 0)
		return -1;
	if (kind != SALT_NONE && !given)
		salt_draw_key(key);
	snprintf(drawn.prefix, sizeof(drawn.prefix), "%s", o->request_id_prefix);
	snprintf(drawn.salt, sizeof(drawn.salt), "%s%s%s", o->prompt_salt,
		 kind != SALT_NONE && !given ? ":" : "", kind != SALT_NONE && !given ? key : "");
	if (ranks_share(r, &drawn, sizeof(drawn), e) < 0)
		return -1;
	if (strlen(o->request_id_prefix) < sizeof(drawn.prefix))
		o->request_id_prefix = arena_text(a, str_of(drawn.prefix));
	o->prompt_salt = arena_text(a, str_of(drawn.salt));
	return 0;
}

static int run_together(struct cli *cli, struct serve_opts *o, struct serve_derived *d,
			const struct slo *slo, struct gates *gates, struct serve_outcome *out,
			int rc)
{
	struct ranks ranks = { 0 };

	if (ranks_join(&ranks, &cli->err) < 0)
		return -1;
	if (rc == 0)
		rc = check_ranks(&ranks, o, d, &cli->err);
	rc = ranks_agree(&ranks, rc, &cli->err);
	if (rc == 0 && ranks.rank)
		leave_to_first(&ranks, o, d, &cli->arena);
	if (rc == 0)
		rc = share_draws(&ranks, o, &cli->arena, &cli->err);
	if (rc == 0)
		rc = check_outputs(o, d, &cli->err);
	rc = ranks_agree(&ranks, rc, &cli->err);
	if (rc == 0)
		rc = run(o, d, slo, gates, out, &ranks, &cli->err);
	if (ranks.rank) /* printed by rank 0 */
		cli->err = (struct err){ 0 };
	ranks_leave(&ranks);
	return rc;
}

int serve_once(struct cli *cli, struct serve_opts *opts, struct serve_outcome *out)
{
	struct serve_derived derived = { 0 };
	struct slo slo = { .n = 0 };
	struct gates gates;
	int status, rc = -1;

	if (serve_presets(opts, &cli->result, &cli->arena, &cli->err) < 0)
		goto done;
	serve_opts_fill(opts, &cli->arena);
	if (serve_compat_bits(opts->compat) & COMPAT_STDOUT)
		print_namespace(opts);
	print_pattern(opts, &cli->result);
	if (opts->trace)
		trace_enable(opts->trace); /* its row refused unknown names */
	if (opts->slo && slo_parse("--slo", opts->slo, &cli->arena, &slo, &cli->err) < 0)
		goto done;
	if (serve_opts_check(opts, &cli->result, &cli->arena, &derived, &cli->err) == 0 &&
	    gates_begin(&gates, &opts->gate, &cli->arena, &cli->err) == 0 &&
	    check_gates(&gates, opts, &derived, &cli->err) == 0)
		rc = 0;
	if (out && out->warned)
		drop_warned(out->warned, &cli->result.notes);
	if (rc == 0 && !ranks_are_started())
		cli_flush_notes(cli);
	if (ranks_are_started())
		rc = run_together(cli, opts, &derived, &slo, &gates, out, rc);
	else if (rc == 0 && (rc = check_outputs(opts, &derived, &cli->err)) == 0)
		rc = run(opts, &derived, &slo, &gates, out, NULL, &cli->err);
done:
	status = cli_end(cli);
	return rc > 0 ? rc : status;
}
