/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - see sweep.h: beginning and ending an experiment, its folder and its failures. */
#include "bench/sweep/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "host/proc/keeper.h"
#include "results/read/files.h"
#include "results/read/frame.h"
#include "results/read/kind.h"
#include "results/read/read.h"

#define RESUME_HINT "The script was terminated early. Use `--resume` to continue the script " \
		    "from its last checkpoint."

/* ---- talking ---- */

static void say(struct sweep *s, void (*hook)(void *self, const char *text), const char *fmt,
		va_list ap)
{
	char *text;

	if (!hook)
		return;
	text = mem_vprintf(fmt, ap);
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

void sweep_lines(struct sweep *s, struct str text)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		sweep_line(s, "%.*s", (int)line.n, line.p);
	}
}

void sweep_warn(struct sweep *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(s, s->hooks->warn, fmt, ap);
	va_end(ap);
}

static bool sweep_is_cancelled(const struct sweep *s)
{
	return atomic_load(s->hooks->cancel);
}

int sweep_cancelled(struct err *e)
{
	return err_set(e, ERR_CANCELLED, "interrupted");
}

/* The text in the arena; the buffer is released. */
static char *taken(struct sweep *s, struct buf *text)
{
	char *out = arena_text(&s->arena, buf_str(text));

	buf_release(text);
	return out;
}

char *sweep_argv_text(struct sweep *s, char *const *argv)
{
	char **shown = redact_words(argv, &s->arena);
	struct buf text = { 0 };

	buf_add_char(&text, '[');
	for (size_t i = 0; shown[i]; i++) {
		buf_add_text(&text, i ? ", " : "");
		json_repr_str(&text, str_of(shown[i]));
	}
	buf_add_char(&text, ']');
	return taken(s, &text);
}

char *sweep_comb_text(struct sweep *s, const struct json_value *comb)
{
	struct buf text = { 0 };

	json_repr(&text, comb);
	redact_tail(&text, 0, REDACT_SETTINGS);
	return taken(s, &text);
}

char *sweep_name(struct sweep *s, const struct json_value *comb, const char *otherwise)
{
	struct buf text = { 0 };

	params_name(comb, &text);
	if (!text.len)
		buf_add_text(&text, otherwise);
	return taken(s, &text);
}

/* ---- paths, as Python's pathlib joins and shows them ---- */

char *sweep_path(struct sweep *s, const char *folder, const char *file)
{
	struct str rest = str_of(file[0] == '/' ? file
				 : arena_printf(&s->arena, "%s/%s", folder, file));
	bool is_absolute = file[0] == '/' || folder[0] == '/';
	struct buf out = { 0 };

	while (rest.n) {
		struct str part = str_cut(&rest, '/');

		if (part.n == 0 || str_is(part, "."))
			continue;
		buf_add_text(&out, out.len || is_absolute ? "/" : "");
		buf_add_str(&out, part);
	}
	if (!out.len)
		buf_add_text(&out, is_absolute ? "/" : ".");
	return taken(s, &out);
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
					 (struct params_side){ s->startup_cmd ? "STARTUP-" : "BENCH-", bench }, extra,
					 &s->arena);
	char *folder = sweep_path(s, s->folder, name), *old;

	if (!s->o->resume.is_set || s->startup_cmd || extra || file_exists(folder))
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
		const struct json_value *x = json_get(serve, s->link[i].serve);
		const struct json_value *y = json_get(bench, s->link[i].bench);

		if (!x || !y || !params_equal(x, y))
			return false;
	}
	return true;
}

/* ---- begin, end ---- */

/* The prefix that base/file.c gives to files before it renames them. */
#define HALF_WRITTEN ".profllm-"

/* Removes unfinished files of an earlier process that was killed. */
static void remove_half_written(struct sweep *s, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (strncmp(entry->d_name, HALF_WRITTEN, strlen(HALF_WRITTEN)) == 0)
			unlink(sweep_path(s, folder, entry->d_name));
	if (dir)
		closedir(dir);
}

static int split(struct sweep *s, const char *option, const char *text, char ***argv,
		 struct err *e)
{
	if (!text)
		return 0;
	if (words_split(str_of(text), &s->arena, argv, NULL, e) < 0)
		return err_wrap(e, "%s", option);
	if (!**argv)
		return err_set(e, ERR_USAGE, "%s: the command is empty", option);
	return server_refuse_shell(*argv, e) < 0 ? err_wrap(e, "%s", option) : 0;
}

/* Upstream passes the list's text to the command; few commands know what to do with it. */
static void warn_of_list(struct sweep *s, const char *option, const struct params *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->item[i].count; k++) {
			struct str key = p->item[i].key[k];

			if (p->item[i].item[k].kind != JSON_ARRAY)
				continue;
			sweep_warn(s, "%s: the list of '%.*s' is passed as one value; to measure each of "
				   "its values, write an object for each: [{\"%.*s\": ...}, {\"%.*s\": ...}]",
				   option, (int)key.n, key.p, (int)key.n, key.p, (int)key.n, key.p);
			return;
		}
}

static int read_params(struct sweep *s, const char *option, const char *path, struct params *out,
		       struct err *e)
{
	if (params_read(path, &s->arena, out, e) < 0) {
		err_wrap(e, "%s", option);
		return err_in_user_file(e);
	}
	if (out->n == 0)
		return err_set(e, ERR_USAGE, "%s: %.100s holds no combination", option, path);
	if (out->twice)
		sweep_warn(s, "%s: %.100s: %s; only the last value is used", option, path, out->twice);
	warn_of_list(s, option, out);
	return 0;
}

static int refuse_gates(const char *option, char *const *argv, struct err *e)
{
	for (; argv && *argv; argv++)
		if (strcmp(*argv, "--fail-if") == 0 || str_starts(str_of(*argv), STR("--fail-if=")))
			return err_set(e, ERR_USAGE, "%s: a run that fails --fail-if would be lost to "
				       "the sweep; remove it, and judge the sweep's folder with profllm "
				       "bench compare FOLDER --fail-if CONDITION", option);
	return 0;
}

static bool is_varied(const struct params *p, const char *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (params_has(&p->item[i], key))
			return true;
	return false;
}

/* A benchmark that sends elsewhere than to the server; a proxy may be the reason. */
static void warn_of_port(struct sweep *s, const struct serve_opts *bench)
{
	struct server_address at;
	struct err ignored;

	if (!s->serve_cmd || bench->base_url || bench->base_urls.n || is_varied(&s->serve, "port") ||
	    is_varied(&s->bench, "port") || is_varied(&s->bench, "base_url") ||
	    server_address(s->serve_cmd, &at, &ignored) < 0 || at.is_elsewhere || at.uds[0] ||
	    at.port == (unsigned)bench->port)
		return;
	sweep_warn(s, "--bench-cmd sends to port %d, but the server of --serve-cmd listens on port %u",
		   (int)bench->port, at.port);
}

/* Options that are wrong in every combination are a mistake that no server need be started for. */
static int check_bench(struct sweep *s, struct err *e)
{
	const struct sweep_hooks *h = s->hooks;
	struct arena arena = { 0 };
	int rc = -1;

	if (!s->bench_cmd || s->o->exec_bench || !h->knows ||
	    !h->knows(h->self, s->bench_cmd))
		return 0;
	for (size_t i = s->bench.n; rc < 0 && i-- > 0;) {
		char **argv = params_apply(&s->bench.item[i], s->bench_cmd, &s->arena) + 3;
		struct serve_opts opts;
		struct opt_result given;
		int argc = 0;

		while (argv[argc])
			argc++;
		*e = (struct err){ 0 };
		rc = opt_parse(&serve_opt_set, argc, argv, &opts, &given, &arena, e);
		if (rc == 0)
			warn_of_port(s, &opts);
		opt_result_release(&given);
	}
	arena_release(&arena);
	return rc < 0 ? err_wrap(e, s->o->bench_params ? "--bench-cmd with --bench-params" :
				    "--bench-cmd") : 0;
}

int sweep_begin(struct sweep *s, const struct sweep_opts *o, const struct sweep_hooks *hooks,
		struct err *e)
{
	const char *second = o->startup_params ? o->startup_params : o->bench_params;
	const char *option = o->startup_params ? "--startup-params" : "--bench-params";

	*s = (struct sweep){ .o = o, .hooks = hooks, .progress.left_s = NAN };
	if (split(s, "--serve-cmd", o->serve_cmd, &s->serve_cmd, e) < 0 ||
	    split(s, "--bench-cmd", o->bench_cmd, &s->bench_cmd, e) < 0 ||
	    refuse_gates("--bench-cmd", s->bench_cmd, e) < 0 ||
	    split(s, "--startup-cmd", o->bench_cmd ? NULL : o->startup_cmd, &s->startup_cmd, e) < 0 ||
	    refuse_gates("--startup-cmd", s->startup_cmd, e) < 0 ||
	    split(s, "--after-bench-cmd", o->after_bench_cmd, &s->after_cmd, e) < 0 ||
	    read_params(s, "--serve-params", o->serve_params, &s->serve, e) < 0 ||
	    read_params(s, option, second, &s->bench, e) < 0 || check_bench(s, e) < 0 ||
	    parse_links(s, e) < 0 || settle_folder(s, e) < 0)
		return -1;
	if ((s->serve_cmd && sweep_server_check(s, e) < 0) ||
	    (o->resume.is_set && !o->dry_run && sweep_enter(s, e) < 0))
		return -1;
	if (o->resume.is_set && !o->dry_run)
		remove_half_written(s, s->folder);
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

/* Drops our own keys, so that the columns are upstream's. */
static bool is_upstreams(const void *self, struct str key)
{
	(void)self;
	return !str_is(key, "profllm");
}

static int write_csv(struct sweep *s, struct err *e)
{
	const char *path = sweep_path(s, s->folder, "summary.csv");
	struct frame frame = { 0 };
	struct buf text = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->records.n; i++)
		rc = frame_add(&frame,
			       params_filter(s->records.v[i], is_upstreams, NULL, &s->arena), path,
			       &s->arena, e);
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
	if (s->lock)
		close(s->lock - 1);
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
	const char *signal = status > 128 ? sigabbrev_np(status - 128) : NULL;

	if (signal)
		err_set(e, ERR_RUN, "Command '%s' died with <Signals.SIG%s: %d>.", shown, signal,
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

int sweep_enter(struct sweep *s, struct err *e)
{
	int fd;

	if (s->lock)
		return 0;
	if (file_mkdirs(s->folder, e) < 0)
		return -1;
	fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, "cannot open %s: %s", s->folder, strerror(errno));
	/* A file system without locks does not prevent measuring. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return err_set(e, ERR_RUN, "another sweep is using %s; wait for it to end, or use "
			       "another --experiment-name", s->folder);
	}
	s->lock = fd + 1;
	return 0;
}

/* ---- files ---- */

/* A benchmark that was interrupted says so in its result. */
static bool is_cut_short(const struct json_value *result)
{
	return json_bool(json_get(json_get(result, "profllm"), "interrupted"), false);
}

static const struct json_value *read_result(const char *path, struct arena *a, struct err *e)
{
	const struct json_value *result = result_json(path, FILE_BYTES_MAX, a, e);

	if (!result || result->kind == JSON_OBJECT)
		return result;
	err_set(e, ERR_PARSE, "%s: expected the object of one result", path);
	return NULL;
}

static bool is_whole(const char *path)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	const struct json_value *result = file_exists(path) ? read_result(path, &a, &e) : NULL;
	bool is = result && !is_cut_short(result);

	arena_release(&a);
	return is;
}

struct json_value *sweep_list(struct sweep *s, const struct sweep_records *records)
{
	struct json_value *list = arena_alloc(&s->arena, sizeof(*list));

	*list = (struct json_value){ .kind = JSON_ARRAY, .count = records->n };
	list->item = arena_alloc(&s->arena, (records->n + 1) * sizeof(*list->item));
	for (size_t i = 0; i < records->n; i++)
		list->item[i] = *records->v[i];
	return list;
}

/* ---- one level ---- */

#define WARMUP (-1) /* its run number */

struct level_runs {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const char *folder;
	bool has_run;  /* since the level began */
	unsigned runs;
};

/* A run; for a warm-up, bench is not the level's. */
struct sweep_run {
	const struct json_value *bench;
	int number;
	const char *path;
};

/* The file of a run, or (ending ".failure") of its failure. */
static char *run_path(const struct level_runs *l, int number, const char *ending)
{
	struct sweep *s = l->s;

	return sweep_path(s, l->folder, number == WARMUP ?
			  arena_printf(&s->arena, "warmup%s.json", ending) :
			  arena_printf(&s->arena, "run=%d%s.json", number, ending));
}

static unsigned lacking(const struct level_runs *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->runs; i++)
		n += !is_whole(run_path(l, (int)i, ""));
	return n;
}

unsigned sweep_runs_lacking(struct sweep *s, const char *folder)
{
	const struct level_runs l = { .s = s, .folder = folder, .runs = (unsigned)s->o->num_runs };

	return lacking(&l);
}

/* A run's result with the keys of its combinations; later ones replace earlier ones. */
static const struct json_value *merged(const struct level_runs *l, const struct sweep_run *run,
				       const struct json_value *result)
{
	struct arena *a = &l->s->arena;
	const struct json_value *record = params_with_int(result, "run_number", run->number, a);

	return params_or(params_or(record, l->serve, a), run->bench, a);
}

/* The record of an existing run; NULL: none, or an incomplete one. */
static const struct json_value *read_record(const struct level_runs *l, const struct sweep_run *run)
{
	struct err ignored = { 0 };
	const struct json_value *result = file_exists(run->path) ?
		read_result(run->path, &l->s->arena, &ignored) : NULL;

	return result && !is_cut_short(result) ? merged(l, run, result) : NULL;
}

/* Reads the record of a run just made, and writes its file again. NULL with e. */
static const struct json_value *take_record(const struct level_runs *l, const struct sweep_run *run,
					    struct err *e)
{
	const struct json_value *record = read_result(run->path, &l->s->arena, e);

	if (!record && !file_exists(run->path))
		err_set(e, ERR_RUN, "the benchmark ended with return code 0 and left no result in %s; it is "
			"given --save-result, --result-dir and --result-filename", run->path);
	if (!record)
		return NULL;
	record = merged(l, run, record);
	return sweep_save(run->path, record, e) < 0 ? NULL : record;
}

/*
 * Whether runs would find each other's prompts in the server's cache, and our own benchmark may
 * send different ones. What an --after-bench-cmd does with the cache is unknown.
 */
static bool keeps_caches(struct sweep *s, char *const *argv)
{
	if (!s->after_cmd || s->o->exec_bench || sweep_opts_restart(s->o) == SWEEP_RESTART_RUN ||
	    !s->hooks->knows || !s->hooks->knows(s->hooks->self, argv))
		return false;
	for (; *argv; argv++) {
		struct str word = str_of(*argv);

		if (str_is(str_cut(&word, '='), "--prompt-salt") ||
		    str_is(str_of(*argv), "--reset-prefix-cache"))
			return false;
	}
	return true;
}

/* The command without its own --output-json, and with ours. */
static char **startup_command(const struct level_runs *l, const struct json_value *startup,
			      const char *path)
{
	struct arena *a = &l->s->arena;
	char **argv = params_apply(startup, params_apply(l->serve, l->s->startup_cmd, a), a);
	struct word_list out = { .arena = a };

	for (; *argv; argv++) {
		struct str value = str_of(*argv), name = str_cut(&value, '=');

		if (!str_is(name, "--output-json") && !str_is(name, "--output_json"))
			words_add(&out, *argv);
		else if (!strchr(*argv, '=') && argv[1])
			argv++;
	}
	words_add(&out, (char *)"--output-json");
	words_add(&out, (char *)path);
	return out.v;
}

/* The bench command with its overrides and what makes it save where we look. */
static char **bench_command(const struct level_runs *l, const struct json_value *bench,
			    const char *path)
{
	struct sweep *s = l->s;
	char **base = params_apply(bench, s->bench_cmd, &s->arena);
	const char *const more[] = {
		"--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--result-dir", l->folder,
		"--result-filename", strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
	};
	struct word_list out = { .arena = &s->arena };

	for (char **word = base; *word; word++)
		words_add(&out, *word);
	if (keeps_caches(s, base)) {
		words_add(&out, (char *)"--prompt-salt");
		words_add(&out, (char *)salt_kind_name(SALT_FRESH));
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		words_add(&out, (char *)more[i]);
	return out.v;
}

/* Removes what a failed run left, so that it is not taken for a result. */
static int failed(const struct level_runs *l, const struct sweep_run *run, const char *type,
		  const struct err *why, const struct err *said, struct err *e)
{
	const struct sweep_failure f = { .type = type, .text = why->text, .why = said->text,
					 .serve = l->serve, .bench = run->bench,
					 .run = run->number };
	struct err ignored = { 0 };
	int rc;

	unlink(run->path);
	rc = sweep_fail(l->s, run_path(l, run->number, ".failure"), &f, e);
	if (rc == 0)
		sweep_server_after(l->s, run->number == WARMUP, &ignored);
	return rc;
}

/* The report of such a run is not shown, so its verdict is printed as a warning. */
static void warn_verdict(const struct level_runs *l, const struct sweep_run *run,
			 const struct json_value *record)
{
	const struct json_value *ours = json_get(record, "profllm");
	const struct json_value *reasons = json_get(ours, "reasons");
	enum result_verdict verdict = RESULT_VALID;
	struct str why = STR("");

	result_verdict_whole(record, &verdict);
	if (l->s->o->show_stdout || l->s->startup_cmd || verdict == RESULT_VALID)
		return;
	if (reasons && reasons->kind == JSON_ARRAY && reasons->count)
		why = json_text(json_get(&reasons->item[0], "text"), STR(""));
	sweep_warn(l->s, "%s is %s: %.*s", run->path, result_verdict_name(verdict), (int)why.n, why.p);
}

/* Runs the command and reads what it saved. *record stays NULL when that failed. */
static int execute(struct level_runs *l, const struct sweep_run *run, char *const *argv,
		   const struct json_value **record, struct err *e)
{
	struct sweep *s = l->s;
	struct err why = { 0 }, said = { 0 }, died = { 0 };
	int rc;

	unlink(run->path);
	if (sweep_enter(s, e) < 0 || file_mkdirs(l->folder, e) < 0)
		return -1;
	rc = sweep_command(s, argv, &said, &why);
	if (why.code == ERR_CANCELLED) {
		unlink(run->path);
		*e = why;
		return -1;
	}
	if (rc == 0)
		*record = take_record(l, run, &why);
	if (sweep_server_survived(s, !*record || json_int(json_get(*record, "failed"), 0) > 0,
				  &died) < 0) {
		*record = NULL;
		return failed(l, run, "RuntimeError", &died, &said, e);
	}
	if (!*record)
		return failed(l, run, rc > 0 ? "CalledProcessError" : "OSError", &why, &said, e);
	unlink(run_path(l, run->number, ".failure"));
	warn_verdict(l, run, *record);
	if (sweep_server_after(s, run->number == WARMUP, &why) == 0)
		return 0;
	if (why.code == ERR_CANCELLED) {
		*e = why;
		return -1;
	}
	/* What was measured is good; the next run gets a server of its own. */
	return sweep_fail(s, run_path(l, run->number, ".failure"),
			  &(struct sweep_failure){ .type = "RuntimeError", .text = why.text,
			  .serve = l->serve, .bench = run->bench, .run = run->number }, e);
}

static void show_begin(const struct level_runs *l, const struct sweep_run *run, char *const *argv)
{
	struct sweep *s = l->s;

	sweep_line(s, "[BEGIN BENCHMARK]");
	if (s->startup_cmd)
		sweep_line(s, "Serve overrides: %s", sweep_comb_text(s, l->serve));
	sweep_line(s, "%s overrides: %s", s->startup_cmd ? "Startup" : "Benchmark",
		   sweep_comb_text(s, run->bench));
	sweep_line(s, "Run Number: %d", run->number);
	sweep_line(s, "Benchmark command: %s", sweep_argv_text(s, argv));
	sweep_line(s, "Output file: %s", run->path);
}

/* One run: its record, read if it exists, else made. */
static int one(struct level_runs *l, const struct json_value *bench, int number,
	       const struct json_value **record, struct err *e)
{
	struct sweep *s = l->s;
	const struct sweep_run run = { bench, number, run_path(l, number, "") };
	char **argv = s->startup_cmd ? startup_command(l, bench, run.path) :
		      bench_command(l, bench, run.path);
	int64_t began_ns = clock_mono_ns();
	int rc;

	*record = read_record(l, &run);
	if (!*record && !s->o->dry_run) {
		if (sweep_is_cancelled(s))
			return sweep_cancelled(e);
		if (!s->startup_cmd && sweep_server_ready(s, l->serve, !l->has_run, e) < 0)
			return -1;
		if (s->is_server_failed)
			return 0;
		s->progress.run = (unsigned)(number + 1);
		s->progress.runs = l->runs;
		s->progress.left_s = s->n_runs && s->runs_left ?
				     s->run_s / s->n_runs * s->runs_left : NAN;
		if (s->hooks->progress)
			s->hooks->progress(s->hooks->self, &s->progress);
	}
	show_begin(l, &run, argv);
	if (*record) {
		sweep_line(s, "Found existing results.");
		sweep_line(s, "[SKIPPED BENCHMARK]");
		return 0;
	}
	if (!s->o->dry_run) {
		l->has_run = true;
		rc = execute(l, &run, argv, record, e);
		s->run_s += (double)(clock_mono_ns() - began_ns) * 1e-9;
		s->n_runs += number != WARMUP;
		s->runs_left -= number != WARMUP && s->runs_left > 0;
		if (rc < 0 || !*record)
			return rc;
	}
	sweep_line(s, "[END BENCHMARK]");
	return 0;
}

/* summary.json also includes existing runs that were not asked for, from `next` on. */
static int summary(const struct level_runs *l, const struct sweep_records *used, unsigned next,
		   struct err *e)
{
	struct sweep_records all = { 0 };

	for (size_t i = 0; i < used->n; i++)
		sweep_records_add(l->s, &all, used->v[i]);
	for (unsigned i = next; i < l->runs; i++) {
		const struct sweep_run run = { l->bench, (int)i, run_path(l, (int)i, "") };
		const struct json_value *record = read_record(l, &run);

		if (record)
			sweep_records_add(l->s, &all, record);
	}
	return sweep_save(sweep_path(l->s, l->folder, RESULT_SUMMARY), sweep_list(l->s, &all), e);
}

int sweep_level_until(struct sweep *s, const struct json_value *serve,
		      const struct json_value *bench, const char *folder,
		      sweep_enough *is_enough, void *self, struct sweep_records *out,
		      struct err *e)
{
	struct level_runs l = { .s = s, .serve = serve, .bench = bench, .folder = folder,
				.runs = (unsigned)s->o->num_runs };
	const struct json_value *record;
	int64_t warmup = s->o->warmup_num_prompts;
	unsigned i = 0;

	*out = (struct sweep_records){ 0 };
	s->is_server_failed = false;
	if (s->o->resume.is_set && !s->o->dry_run)
		remove_half_written(s, folder);
	if (warmup > 0 && (s->o->dry_run || lacking(&l) || file_exists(run_path(&l, WARMUP, ""))) &&
	    one(&l, params_with_int(bench, "num_prompts", warmup, &s->arena), WARMUP, &record,
		e) < 0)
		return -1;
	for (; i < l.runs && !(is_enough && out->n && is_enough(self, out)); i++) {
		if (one(&l, bench, (int)i, &record, e) < 0)
			return -1;
		if (record)
			sweep_records_add(s, out, record);
	}
	if (s->o->dry_run)
		*out = (struct sweep_records){ 0 };
	if (s->o->dry_run || out->n)
		return s->o->dry_run ? 0 : summary(&l, out, i, e);
	if (!s->is_server_failed && !s->startup_cmd)
		sweep_line(s, "[NO SUCCESSFUL MEASURED RUNS] leaving combination retryable");
	return 0;
}

int sweep_level(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		const char *folder, struct sweep_records *out, struct err *e)
{
	return sweep_level_until(s, serve, bench, folder, NULL, NULL, out, e);
}
