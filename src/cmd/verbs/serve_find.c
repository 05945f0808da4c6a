/* SPDX-License-Identifier: Apache-2.0 */
/* serve_find.c - see serve_find.h. */
#include "cmd/verbs/serve_find.h"

#include <math.h>

#include "bench/sweep/find.h"
#include "bench/sweep/gnuplot.h"
#include "cmd/console/progress.h"
#include "cmd/console/target.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "out/report/report.h"

#define EXIT_INTERRUPTED 130

struct talk {
	struct progress progress;
	bool has_cost;      /* the forecast was printed */
};

bool serve_find_is_wanted(const struct serve_opts *o)
{
	return o->find_max_rate || o->find_max_concurrency;
}

static void on_warn(void *self, const char *text)
{
	progress_clear(&((struct talk *)self)->progress);
	cli_warn(text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	progress_show(&((struct talk *)self)->progress, stage, done, total, load);
}

static void on_ended(void *self, const struct find *f)
{
	struct talk *t = self;
	struct buf out = { 0 };

	progress_clear(&t->progress);
	find_tell_step(f, &out);
	if (out.len)
		cli_line(out.data);
	buf_reset(&out);
	if (!t->has_cost)
		find_tell_cost(f, &out);
	if (out.len) {
		cli_line(out.data);
		t->has_cost = true;
	}
	fflush(stdout);
	buf_release(&out);
}

/* ---- files ---- */

/* "capacity-MODEL-DATE" in the folder of results, unless the user names it. */
static char *path_of(const struct serve_opts *o, const struct find *f)
{
	struct report_facts none = { .backend = o->backend };
	char date[REPORT_DATE_BYTES], *model = mem_text(f->model ? f->model : "model"), *path;
	struct buf name = { 0 };

	for (char *c = model; *c; c++)
		if (*c == '/')
			*c = '-';
	buf_printf(&name, "capacity-%s-%s.json", model, report_date(date, clock_real_ns()));
	path = report_path(&none, o->result_dir,
			   o->result_filename ? o->result_filename : name.data);
	buf_release(&name);
	free(model);
	return path;
}

static void put_document(const struct serve_opts *o, const struct find *f, struct buf *out)
{
	struct json_writer w = json_writer(out);
	char date[REPORT_DATE_BYTES];

	w.indent = 2;
	json_begin_object(&w);
	json_key(&w, "command"), json_put_text(&w, o->find_max_rate ? "bench serve --find-max-rate"
						   : "bench serve --find-max-concurrency");
	json_key(&w, "date"), json_put_text(&w, report_date(date, clock_real_ns()));
	json_key(&w, "model_id"), json_put_text(&w, f->model);
	json_key(&w, "seed"), json_put_int(&w, f->seed);
	json_key(&w, "salt_key"), json_put_text(&w, *f->salt_key ? f->salt_key : NULL);
	json_member_object(&w, "capacity");
	find_put(f, &w);
	json_end_object(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

static int save(const struct serve_opts *o, const struct find *f, struct err *e)
{
	struct buf text = { 0 };
	struct err undrawn = { 0 };
	char *path = NULL;
	size_t stem;
	int rc = 0;

	put_document(o, f, &text);
	if (o->output_json)
		rc = file_write_atomic(o->output_json, buf_str(&text), e);
	if (rc == 0 && o->save_result) {
		path = path_of(o, f);
		rc = file_write_atomic(path, buf_str(&text), e);
	}
	if (rc == 0 && path) {
		stem = strlen(path);
		if (stem > 5 && strcmp(path + stem - 5, ".json") == 0)
			path[stem - 5] = 0;
		if (find_has_answer(f) && find_draw(f, path, &undrawn) < 0)
			cli_warn(undrawn.text);
	}
	free(path);
	buf_release(&text);
	return rc;
}

static int check_files(const struct serve_opts *o, struct err *e)
{
	if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	if (o->save_result && o->result_dir && *o->result_dir && file_mkdirs(o->result_dir, e) < 0)
		return err_wrap(e, "--result-dir");
	return 0;
}

/* ---- the verb ---- */

static int read_options(struct cli *cli, const struct serve_opts *o, struct find_opts *out)
{
	struct err *e = &cli->err;
	bool is_rate = o->find_max_rate;
	const char *searched = is_rate ? "request-rate" : "max-concurrency";

	if (is_rate && o->find_max_concurrency)
		return err_set(e, ERR_USAGE, "--find-max-rate and --find-max-concurrency cannot be used "
			       "together: one of them is varied");
	if (!o->slo)
		return err_set(e, ERR_USAGE, "--find-max-%s needs --slo, the limits to keep, such as "
			       "--slo 'p99_ttft_ms<200,p99_tpot_ms<30'", is_rate ? "rate" : "concurrency");
	if (opt_given(&serve_opt_set, &cli->result, searched))
		return err_set(e, ERR_USAGE, "--%s is what --find-max-%s looks for; remove it", searched,
			       is_rate ? "rate" : "concurrency");
	if (!is_rate && opt_given(&serve_opt_set, &cli->result, "request-rate") &&
	    !isinf(o->request_rate))
		return err_set(e, ERR_USAGE, "--request-rate %g limits the load that "
			       "--find-max-concurrency looks for; remove it", o->request_rate);
	out->load = is_rate ? CAPACITY_RATE : CAPACITY_CONCURRENCY;
	out->precision = o->precision / 100;
	out->budget_s = o->budget;
	out->level_s = o->level_seconds;
	return slo_parse("--slo", o->slo, &cli->arena, &out->slo, e);
}

/* Options are right, and the first request is about to be sent. */
static void on_begun(void *self, const struct find *f)
{
	const struct find_opts *o = f->opts;
	struct buf out = { 0 };

	(void)self;
	if (f->step.ask != CAPACITY_PROBE)
		return;
	buf_printf(&out, "Searching for the largest %s with ",
		   o->load == CAPACITY_RATE ? "request rate" : "number of requests at once");
	for (size_t j = 0; j < o->slo.n; j++)
		buf_printf(&out, "%s%s", j ? ", " : "", o->slo.limit[j].text);
	buf_printf(&out, " and at most %g %% failed requests.", 100 * CAPACITY_FAILED_SHARE);
	cli_line(out.data);
	fflush(stdout);
	buf_release(&out);
}

static int search(struct cli *cli, const struct serve_opts *o, struct find_opts *find)
{
	struct talk t = { .has_cost = false };
	struct find_hooks hooks = { .self = &t, .warn = on_warn, .begun = on_begun,
				    .ended = on_ended, .progress = on_progress,
				    .cancel = cli_is_interrupted() };
	struct buf out = { 0 };
	struct err unsaved = { 0 };
	struct find f;
	int rc, status;

	progress_init(&t.progress, o->disable_tqdm ? PROGRESS_NONE : PROGRESS_AUTO);
	cli_catch_signals();
	rc = find_run(find, &hooks, &f, &cli->err);
	progress_clear(&t.progress);
	if (rc == 0 || find_has_answer(&f)) {
		find_tell_answer(&f, &out);
		cli_out(buf_str(&out));
		if ((o->save_result || o->output_json) && save(o, &f, &unsaved) < 0 &&
		    !cli->err.code)
			cli->err = unsaved;
	}
	status = f.is_interrupted ? EXIT_INTERRUPTED : find_has_answer(&f) ? 0 : 1;
	buf_release(&out);
	find_release(&f);
	return rc < 0 ? -1 : status;
}

int serve_find(struct cli *cli, const struct serve_opts *o, int argc, char **argv)
{
	struct find_opts find = { .argc = argc, .argv = argv };
	int rc = -1, status;

	if (read_options(cli, o, &find) == 0 && check_files(o, &cli->err) == 0) {
		cli_flush_notes(cli);
		rc = o->dry_run ? 0 : search(cli, o, &find);
	}
	status = cli_end(cli);
	return rc > 0 && !status ? rc : status;
}
