/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - see sweep.h: beginning and ending an experiment, its folder and its failures. */
#include "run/sweep.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/redact.h"
#include "base/words.h"
#include "json/python.h"
#include "proc/child.h"
#include "report/frame.h"
#include "run/sweep_parts.h"

#define RESUME_HINT "The script was terminated early. Use `--resume` to continue the script " \
		    "from its last checkpoint."

/* ---- talking ---- */

static void say(struct sweep *s, void (*hook)(void *self, const char *text), const char *fmt,
		va_list ap)
{
	char *text;

	if (!hook || vasprintf(&text, fmt, ap) < 0)
		return;
	hook(s->hooks->self, text);
	free(text);
}

void sweep_line(struct sweep *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(s, s->hooks->line, fmt, ap);
	va_end(ap);
}

void sweep_warn(struct sweep *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(s, s->hooks->warn, fmt, ap);
	va_end(ap);
}

bool sweep_is_cancelled(const struct sweep *s)
{
	return atomic_load(s->hooks->cancel);
}

int sweep_cancelled(struct err *e)
{
	return err_set(e, ERR_CANCELLED, "interrupted");
}

char *sweep_argv_text(struct sweep *s, char *const *argv)
{
	char **shown = redact_words(argv, &s->arena), *out;
	struct buf text = { 0 };

	buf_add_char(&text, '[');
	for (size_t i = 0; shown[i]; i++) {
		buf_add_text(&text, i ? ", " : "");
		json_repr_str(&text, str_of(shown[i]));
	}
	buf_add_char(&text, ']');
	out = arena_text(&s->arena, buf_str(&text));
	buf_release(&text);
	return out;
}

char *sweep_comb_text(struct sweep *s, const struct json_value *comb)
{
	struct buf text = { 0 };
	char *out;

	json_repr(&text, comb);
	redact_tail(&text, 0, REDACT_SETTINGS);
	out = arena_text(&s->arena, buf_str(&text));
	buf_release(&text);
	return out;
}

char *sweep_name(struct sweep *s, const struct json_value *comb, const char *otherwise)
{
	struct buf text = { 0 };
	char *out;

	params_name(comb, &text);
	out = arena_text(&s->arena, text.len ? buf_str(&text) : str_of(otherwise));
	buf_release(&text);
	return out;
}

/* ---- paths, as Python's pathlib joins and shows them ---- */

char *sweep_path(struct sweep *s, const char *folder, const char *file)
{
	struct str rest = str_of(file[0] == '/' ? file
				 : arena_printf(&s->arena, "%s/%s", folder, file));
	bool is_absolute = file[0] == '/' || folder[0] == '/';
	struct buf out = { 0 };
	char *path;

	while (rest.n) {
		struct str part = str_cut(&rest, '/');

		if (part.n == 0 || str_is(part, "."))
			continue;
		buf_add_text(&out, out.len || is_absolute ? "/" : "");
		buf_add_str(&out, part);
	}
	path = arena_text(&s->arena, out.len ? buf_str(&out) : is_absolute ? STR("/") : STR("."));
	buf_release(&out);
	return path;
}

static int settle_folder(struct sweep *s, struct err *e)
{
	const struct sweep_opts *o = s->o;
	const char *name = o->experiment_name;
	struct buf shown = { 0 };
	char now[32];
	time_t t = clock_real_ns() / 1000000000;
	struct tm tm;

	if (!name || !*name) {
		strftime(now, sizeof(now), "%Y%m%d_%H%M%S", localtime_r(&t, &tm));
		name = now;
	}
	s->folder = sweep_path(s, o->output_dir, name);
	if (file_exists(s->folder) == o->resume.is_set)
		return 0;
	json_repr_str(&shown, str_of(s->folder));
	err_set(e, ERR_RUN, "Cannot %s experiment_dir=PosixPath(%s)", o->resume.is_set ?
		"resume from non-existent" : "overwrite existing", shown.data);
	buf_release(&shown);
	return -1;
}

char *sweep_folder(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		   const char *const *extra)
{
	const char *name = params_folder((struct params_side){ "SERVE-", serve },
					 (struct params_side){ "BENCH-", bench }, extra,
					 &s->arena);
	char *folder = sweep_path(s, s->folder, name), *old;

	if (!s->o->resume.is_set || extra || file_exists(folder))
		return folder;
	old = sweep_path(s, s->folder, params_folder_single_dash(serve, bench, &s->arena));
	return file_is_dir(old) ? old : folder;
}

/* ---- links ---- */

static int parse_links(struct sweep *s, struct err *e)
{
	struct str rest = str_of(s->o->link_vars);
	size_t n = 1;

	for (size_t i = 0; i < rest.n; i++)
		n += rest.p[i] == ',';
	if (rest.n == 0)
		return 0;
	s->link = arena_alloc(&s->arena, n * sizeof(*s->link));
	while (s->n_links < n) {
		struct str pair = str_cut(&rest, ','), whole = pair, left = str_cut(&pair, '=');

		if (left.n == whole.n || (pair.n && memchr(pair.p, '=', pair.n)))
			return err_set(e, ERR_USAGE, "--link-vars: expected server's=benchmark's, "
				       "got '%.*s'", (int)whole.n, whole.p);
		s->link[s->n_links++] = (struct sweep_link){
			arena_text(&s->arena, str_trim(left)),
			arena_text(&s->arena, str_trim(pair)),
		};
	}
	return 0;
}

bool sweep_is_linked(const struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench)
{
	for (size_t i = 0; i < s->n_links; i++) {
		const struct json_value *x = params_get(serve, s->link[i].serve);
		const struct json_value *y = params_get(bench, s->link[i].bench);

		if (!x || !y || !params_equal(x, y))
			return false;
	}
	return true;
}

/* ---- begin, end ---- */

static int split(struct sweep *s, const char *option, const char *text, char ***argv,
		 struct err *e)
{
	if (!text)
		return 0;
	if (words_split(str_of(text), &s->arena, argv, NULL, e) < 0)
		return err_wrap(e, "%s", option);
	if (!**argv)
		return err_set(e, ERR_USAGE, "%s: the command is empty", option);
	return 0;
}

static int read_params(struct sweep *s, const char *option, const char *path, struct params *out,
		       struct err *e)
{
	if (params_read(path, &s->arena, out, e) < 0)
		return err_wrap(e, "%s", option);
	if (out->n == 0)
		return err_set(e, ERR_RUN, "%s: %.100s holds no combination", option, path);
	return 0;
}

int sweep_refuse_gates(const char *option, char *const *argv, struct err *e)
{
	for (; argv && *argv; argv++)
		if (strcmp(*argv, "--fail-if") == 0 || str_starts(str_of(*argv), STR("--fail-if=")))
			return err_set(e, ERR_USAGE, "%s: a run that fails --fail-if would be lost to "
				       "the sweep; remove it, and judge the sweep's folder with profllm "
				       "bench compare FOLDER --fail-if CONDITION", option);
	return 0;
}

int sweep_begin(struct sweep *s, const struct sweep_opts *o, const struct sweep_hooks *hooks,
		struct err *e)
{
	const char *second = o->startup_params ? o->startup_params : o->bench_params;
	const char *option = o->startup_params ? "--startup-params" : "--bench-params";

	*s = (struct sweep){ .o = o, .hooks = hooks, .progress.left_s = NAN };
	if (split(s, "--serve-cmd", o->serve_cmd, &s->serve_cmd, e) < 0 ||
	    split(s, "--bench-cmd", o->bench_cmd, &s->bench_cmd, e) < 0 ||
	    sweep_refuse_gates("--bench-cmd", s->bench_cmd, e) < 0 ||
	    split(s, "--after-bench-cmd", o->after_bench_cmd, &s->after_cmd, e) < 0 ||
	    read_params(s, "--serve-params", o->serve_params, &s->serve, e) < 0 ||
	    read_params(s, option, second, &s->bench, e) < 0 || parse_links(s, e) < 0 ||
	    settle_folder(s, e) < 0)
		return -1;
	if ((s->serve_cmd && sweep_server_check(s, e) < 0) ||
	    (o->resume.is_set && !o->dry_run && sweep_enter(s, e) < 0))
		return -1;
	if (o->resume.is_set && !o->dry_run)
		sweep_record_sweep_out(s, s->folder);
	return sweep_server_remember(s, e);
}

void sweep_records_add(struct sweep *s, struct sweep_records *r, const struct json_value *record)
{
	if (r->n == r->cap) {
		const struct json_value **v;

		r->cap = r->cap ? r->cap * 2 : 8;
		v = arena_alloc(&s->arena, r->cap * sizeof(*v));
		if (r->n)
			memcpy(v, r->v, r->n * sizeof(*v));
		r->v = v;
	}
	r->v[r->n++] = record;
}

void sweep_add(struct sweep *s, const struct sweep_records *level)
{
	for (size_t i = 0; i < level->n; i++)
		sweep_records_add(s, &s->records, level->v[i]);
}

/* A record without what is ours, so that the columns are upstream's. */
static const struct json_value *upstreams(struct sweep *s, const struct json_value *record)
{
	struct json_value *out = arena_alloc(&s->arena, sizeof(*out));

	out->kind = JSON_OBJECT;
	out->key = arena_alloc(&s->arena, (record->count + 1) * sizeof(*out->key));
	out->item = arena_alloc(&s->arena, (record->count + 1) * sizeof(*out->item));
	for (size_t i = 0; i < record->count; i++) {
		if (str_is(record->key[i], "profllm"))
			continue;
		out->key[out->count] = record->key[i];
		out->item[out->count++] = record->item[i];
	}
	return out;
}

static int write_csv(struct sweep *s, struct err *e)
{
	const char *path = sweep_path(s, s->folder, "summary.csv");
	struct frame frame = { 0 };
	struct buf text = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->records.n; i++)
		rc = frame_add(&frame, upstreams(s, s->records.v[i]), path, &s->arena, e);
	if (rc == 0)
		rc = sweep_enter(s, e);
	if (rc == 0) {
		frame_csv(&frame, &text);
		if (s->records.n == 0) { /* as Python's csv spells one empty name */
			buf_reset(&text);
			buf_add_text(&text, "\"\"\n");
		}
		redact_tail(&text, 0, REDACT_SENTENCES);
		rc = file_write_atomic(path, buf_str(&text), e);
	}
	buf_release(&text);
	return rc;
}

int sweep_finish(struct sweep *s, int rc, struct err *e)
{
	struct err left = { 0 };

	if (sweep_server_end(s, &left) < 0) {
		if (rc == 0)
			*e = left;
		else
			sweep_warn(s, "%s", left.text);
		rc = -1;
	}
	if (s->o->dry_run && rc == 0) {
		sweep_line(s, "Experiment will be saved at: %s", s->folder);
		return 0;
	}
	if (rc == 0)
		rc = write_csv(s, e);
	if (rc < 0 && s->lock) { /* there is something to resume */
		char *why = mem_text(e->text);

		err_set(e, e->code, "%s (%s)", RESUME_HINT, why);
		free(why);
	}
	if (rc < 0)
		return -1;
	sweep_line(s, "Experiment has been saved at: %s", s->folder);
	if (s->n_failed)
		sweep_warn(s, "%u failed; the files named above say why, --resume tries again",
			   s->n_failed);
	return s->n_failed ? 1 : 0;
}

void sweep_release(struct sweep *s)
{
	struct err e = { 0 };

	if (sweep_server_end(s, &e) < 0)
		sweep_warn(s, "%s", e.text);
	sweep_leave(s);
	arena_release(&s->arena);
	*s = (struct sweep){ 0 };
}

/* ---- failures ---- */

int sweep_fail(struct sweep *s, const char *path, const struct sweep_failure *f, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	w.indent = 2;
	json_begin_object(&w);
	if (f->bench)
		json_member_int(&w, "run_number", f->run);
	json_member_text(&w, "error_type", f->type);
	json_member_text(&w, "error", f->text);
	json_member_value(&w, "serve_overrides", f->serve);
	if (f->bench)
		json_member_value(&w, "bench_overrides", f->bench);
	if (f->why && *f->why)
		json_member_text(&w, "reason", f->why);
	json_end_object(&w);
	buf_add_char(&text, '\n');
	redact_tail(&text, 0, REDACT_SENTENCES);
	rc = file_write_atomic(path, buf_str(&text), e);
	buf_release(&text);
	s->n_failed++;
	if (f->bench)
		sweep_line(s, "[FAILED BENCHMARK] run=%d: %s: %s", f->run, f->type, f->text);
	else
		sweep_line(s, "[FAILED SERVER COMBINATION] %s: %s: %s",
			   sweep_name(s, f->serve, "(default)"), f->type, f->text);
	sweep_line(s, "Failure details: %s", path);
	if (rc == 0 && s->o->stop_on_error)
		rc = err_set(e, ERR_RUN, "%s", f->text);
	return rc;
}

int sweep_save(const char *path, const struct json_value *tree, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	w.indent = 4;
	json_put_value(&w, tree);
	redact_tail(&text, 0, REDACT_SENTENCES);
	rc = text.is_over ? err_set(e, ERR_LIMIT, "%s would pass BUF_BYTES_MAX", path) :
		file_write_atomic(path, buf_str(&text), e);
	buf_release(&text);
	return rc;
}

/* ---- commands ---- */

static int judge(struct sweep *s, char *const *argv, int status, struct err *e)
{
	const char *shown = sweep_argv_text(s, argv);

	if (status > 128)
		err_set(e, ERR_RUN, "Command '%s' died with <Signals.SIG%s: %d>.", shown,
			sigabbrev_np(status - 128) ? sigabbrev_np(status - 128) : "?",
			status - 128);
	else
		err_set(e, ERR_RUN, "Command '%s' returned non-zero exit status %d.", shown,
			status);
	return 1;
}

int sweep_command(struct sweep *s, char *const *argv, struct err *said, struct err *e)
{
	const struct sweep_hooks *h = s->hooks;
	int status;

	if (sweep_is_cancelled(s))
		return sweep_cancelled(e);
	if (said && h->bench && !s->o->exec_bench && h->knows(h->self, argv)) {
		*said = (struct err){ 0 };
		status = h->bench(h->self, argv, s->o->show_stdout, said);
	} else {
		const struct child_opts child = {
			.argv = argv, .out_fd = s->o->show_stdout ? STDOUT_FILENO : -1,
			.err_fd = STDERR_FILENO, .grace_s = s->o->server_grace,
			.cancel = h->cancel,
		};

		status = child_run(&child, e);
	}
	if (sweep_is_cancelled(s))
		return sweep_cancelled(e);
	return status > 0 ? judge(s, argv, status, e) : status;
}
