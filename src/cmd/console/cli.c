/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c - see cli.h. */
#include "cmd/console/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/console/topics.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "out/report/report.h"

#define SAME_SIGNAL_NS 50000000

static atomic_bool interrupted;
static _Atomic(const char *) screen_enter, screen_leave; /* NULL: nothing to undo */

unsigned cli_columns(unsigned least, unsigned most, unsigned fallback)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < least)
		return fallback;
	return size.ws_col < most ? size.ws_col : most;
}

static void print(FILE *to, const char *before, struct str text)
{
	struct buf room = { 0 };
	struct str shown = redact(text, &room);

	fprintf(to, "%s%.*s\n", before, (int)shown.n, shown.n ? shown.p : "");
	buf_release(&room);
}

/*
 * A page with at most this many options is shown whole; others are listed by group, as upstream
 * does.
 */
#define HELP_WHOLE_MAX 40

/* --help=send_lag. A word without '_' searches the options; `profllm help usage` does not. */
static bool show_topic(const char *word, struct buf *out)
{
	return strchr(word, '_') && topic_show(str_of(word), out);
}

int cli_begin(struct cli *c, const struct opt_set *set, int argc, char **argv, void *values)
{
	struct buf text = { 0 };

	*c = (struct cli){ .set = set };
	if (opt_parse(set, argc, argv, values, &c->result, &c->arena, &c->err) < 0)
		return cli_end(c);
	if (!c->result.is_help && !c->result.is_show_config)
		return CLI_CONTINUE;
	if (c->result.is_help && !show_topic(c->result.help_topic, &text))
		opt_help(set, *c->result.help_topic || set->n > HELP_WHOLE_MAX
			 ? c->result.help_topic : set->foreign ? OPT_HELP_OWN : "all",
			 cli_columns(60, 120, 100), &text);
	else if (!c->result.is_help)
		opt_show_config(set, values, &c->result, &text);
	cli_flush_notes(c);
	cli_out_buf(&text);
	return cli_end(c);
}

void cli_print_error(const struct err *e)
{
	const char *topic = err_topic(e);
	struct buf text = { 0 };

	buf_add_text(&text, e->text);
	if (topic)
		buf_printf(&text, " (profllm help %s)", topic);
	print(stderr, ": ", buf_str(&text));
	buf_release(&text);
}

void cli_flush_notes(struct cli *c)
{
	struct str rest = buf_str(&c->result.notes);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		print(stderr, "WARNING: ", line);
	}
	buf_reset(&c->result.notes);
}

int cli_end(struct cli *c)
{
	int status = err_exit_status(&c->err);

	cli_flush_notes(c);
	fflush(stdout);
	if (c->err.code) {
		fprintf(stderr, "profllm %s", c->set->command);
		cli_print_error(&c->err);
	}
	opt_result_release(&c->result);
	arena_release(&c->arena);
	return status;
}

int cli_run(const struct opt_set *set, cli_work *work, int argc, char **argv)
{
	void *values = mem_alloc(set->bytes);
	struct cli c;
	int status = cli_begin(&c, set, argc, argv, values), rc;

	if (status == CLI_CONTINUE) {
		cli_flush_notes(&c);
		rc = work(&c, values);
		status = cli_end(&c);
		if (status == 0 && rc > 0)
			status = rc;
	}
	free(values);
	return status;
}

void cli_out(struct str text)
{
	struct buf room = { .limit = SIZE_MAX };
	struct str shown = redact_data(text, &room);

	if (shown.n)
		fwrite(shown.p, 1, shown.n, stdout);
	fflush(stdout);
	buf_release(&room);
}

/* The real stdout while it is diverted; -1: it is not. */
static int real_stdout = -1;

int cli_divert_begin(struct cli_divert *d, enum cli_divert_to to, struct err *e)
{
	int fd = to == CLI_TO_STDERR ? STDERR_FILENO : open("/dev/null", O_WRONLY | O_CLOEXEC);
	int rc = 0;

	fflush(stdout);
	d->outer = real_stdout;
	d->kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (d->kept < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		rc = err_set(e, ERR_RUN, "cannot divert stdout: %s", strerror(errno));
	else
		real_stdout = d->kept;
	if (to == CLI_TO_NOWHERE && fd >= 0)
		close(fd);
	return rc;
}

void cli_divert_end(struct cli_divert *d)
{
	fflush(stdout);
	real_stdout = d->outer;
	if (d->kept < 0)
		return;
	dup2(d->kept, STDOUT_FILENO);
	close(d->kept);
	d->kept = -1;
}

int cli_answer(struct str text, bool is_quiet, struct err *e)
{
	if (is_quiet)
		return cli_result(text, e);
	cli_out(text);
	return 0;
}

int cli_result(struct str text, struct err *e)
{
	struct buf room = { .limit = SIZE_MAX };
	int rc = 0;

	if (real_stdout < 0)
		cli_out(text);
	else if (file_write_all(real_stdout, redact_data(text, &room)) < 0)
		rc = err_set(e, ERR_IO, "cannot write to stdout: %s", strerror(errno));
	buf_release(&room);
	return rc;
}

void cli_out_buf(struct buf *text)
{
	cli_out(buf_str(text));
	buf_release(text);
}

void cli_line(const char *text)
{
	print(stdout, "", str_of(text));
	fflush(stdout);
}

void cli_warn(const char *text)
{
	print(stderr, "WARNING: ", str_of(text));
}

/* ---- a screen that must be undone ---- */

static void write_text(const char *text)
{
	int error = errno; /* of the interrupted thread. NOLINT(bugprone-signal-handler) */

	if (text && write(STDERR_FILENO, text, strlen(text)) < 0)
		error = 0; /* the terminal is gone */
	errno = error;
}

static void undo_screen(void)
{
	write_text(atomic_exchange(&screen_leave, NULL));
}

/* Ends as if the signal had not been caught, after restoring the terminal. */
static void on_fatal(int number)
{
	undo_screen();
	signal(number, SIG_DFL);
	raise(number);
}

static void on_stop(int number)
{
	sigset_t set;

	write_text(atomic_load(&screen_leave));
	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* stops here, and continues here */
	if (atomic_load(&screen_leave)) {
		write_text(atomic_load(&screen_enter));
		signal(number, on_stop);
	}
}

void cli_terminal_taken(const char *enter, const char *leave)
{
	static const struct { int number; void (*handler)(int number); } caught[] = {
		{ SIGQUIT, on_fatal }, { SIGABRT, on_fatal }, { SIGSEGV, on_fatal },
		{ SIGBUS, on_fatal }, { SIGFPE, on_fatal }, { SIGILL, on_fatal },
		{ SIGTSTP, on_stop },
	};
	static bool is_registered;

	atomic_store(&screen_enter, enter);
	atomic_store(&screen_leave, leave);
	if (leave && !is_registered) {
		atexit(undo_screen);
		(void)at_quick_exit(undo_screen);
	}
	is_registered |= leave != NULL;
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		if (signal(caught[i].number, leave ? caught[i].handler : SIG_DFL) == SIG_IGN)
			signal(caught[i].number, SIG_IGN); /* by nohup, say */
}

/*
 * `timeout`, a shell and other parents send a signal to the program and to its process group: what
 * follows at once is the same wish, and not a second one.
 */
static void on_signal(int number)
{
	static _Atomic int64_t first_ns;
	int64_t now_ns = clock_mono_ns();

	if (!atomic_exchange(&interrupted, true)) {
		atomic_store(&first_ns, now_ns);
	} else if (atomic_load(&first_ns) && now_ns - atomic_load(&first_ns) > SAME_SIGNAL_NS) {
		undo_screen();
		signal(number, SIG_DFL);
		raise(number);
	}
}

void cli_catch_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal }, before;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	/* A closed terminal ends a run like Ctrl-C, unless nohup ignores the signal. */
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
}

const _Atomic _Bool *cli_is_interrupted(void)
{
	return &interrupted;
}

int target_check(const char *what, const char *path, struct err *e)
{
	int fd = -1, rc;

	if (file_is_dir(path))
		return err_set(e, ERR_RUN, "%s: %s is a directory, not a file", what, path);
	if (file_exists(path)) {
		rc = access(path, W_OK);
	} else {
		fd = rc = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		/* A link to a file that does not exist yet. */
		if (rc < 0 && errno == EEXIST)
			rc = 0;
	}
	if (rc < 0)
		return err_set(e, ERR_RUN, "%s: cannot write %s: %s", what, path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return 0;
}

int target_make(const char *what, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash && slash > path ? mem_copy(path, (size_t)(slash - path)) : NULL;
	int rc = folder ? file_mkdirs(folder, e) : 0;

	free(folder);
	return rc < 0 ? err_wrap(e, "%s", what) : target_check(what, path, e);
}

static _Atomic(const char *) claimed; /* an empty file's name; NULL: there is none */

/* Removes the file if nothing was written to it. One whose size cannot be read is still empty. */
static void give_up(const char *path)
{
	struct stat st;

	if (path && (stat(path, &st) < 0 || st.st_size == 0))
		unlink(path);
}

/* Called when memory runs out. */
static void give_up_claimed(void)
{
	give_up(atomic_exchange(&claimed, NULL));
}

static void remember_claim(const char *path)
{
	static bool is_registered;

	atomic_store(&claimed, path);
	if (!is_registered)
		(void)at_quick_exit(give_up_claimed);
	is_registered = true;
}

int target_name(struct target *t, const struct report_facts *f, const char *dir,
		const char *filename, bool is_shared, struct err *e)
{
	char *usual;

	if (t->path)
		return 0;
	usual = report_path(f, dir, filename);
	t->is_claimed = !filename && !is_shared;
	t->path = t->is_claimed ? report_claim(f, dir, e) : mem_text(usual);
	if (t->is_claimed)
		remember_claim(t->path);
	if (t->path && strcmp(t->path, usual) != 0) {
		struct buf text = { 0 };

		buf_printf(&text, "%s belongs to another run; the result of this run is in "
			"%s", usual,
			   t->path);
		cli_warn(text.data);
		buf_release(&text);
	}
	free(usual);
	return t->path ? 0 : -1;
}

void target_written(struct target *t)
{
	const char *path = t->path;

	atomic_compare_exchange_strong(&claimed, &path, NULL);
	t->is_claimed = false;
}

void target_release(struct target *t)
{
	if (t->is_claimed)
		give_up(t->path);
	target_written(t);
	free(t->path);
	*t = (struct target){ 0 };
}

int gates_begin_with(struct gates *g, const struct gate_opts *o, struct gate *gate, size_t n,
		     const char *needs, struct arena *a, struct err *e)
{
	*g = (struct gates){ .o = o, .gate = gate, .n = n,
			     .log = { .a = a, .is_unjudged_allowed = o->allow_unjudged } };
	if (!n && (o->junit || o->summary))
		return err_set(e, ERR_USAGE, "--%s: there is no condition to report on; %s",
			       o->junit ? "junit" : "summary", needs);
	if (o->junit && target_check("--junit", o->junit, e) < 0)
		return -1;
	return o->summary ? target_check("--summary", o->summary, e) : 0;
}

int gates_begin(struct gates *g, const struct gate_opts *o, struct arena *a, struct err *e)
{
	size_t n = o->fail_if.n;
	struct gate *gate = arena_alloc(a, (n + 1) * sizeof(*gate));

	if (n > GATE_CONDITIONS_MAX)
		return err_set(e, ERR_USAGE, "--fail-if: %zu conditions, more than %d", n,
			       GATE_CONDITIONS_MAX);
	for (size_t i = 0; i < n; i++)
		if (gate_parse(&gate[i], str_of(o->fail_if.v[i]), a, e) < 0) {
			if (!strpbrk(o->fail_if.v[i], "<>"))
				err_add(e, "; in a shell it needs quotes");
			return err_wrap(e, "--fail-if");
		}
	return gates_begin_with(g, o, gate, n, "add --fail-if CONDITION", a, e);
}

int gates_judge_json(struct gates *g, struct str json, const char *where, struct err *e)
{
	struct json_value *record;

	if (!g->n)
		return 0;
	if (json_parse(g->log.a, json, &record, e) < 0)
		return err_wrap(e, "the result that --fail-if is to judge");
	gate_judge(g->gate, g->n, record, where, &g->log);
	return 0;
}

static int write_gate_file(const char *option, const char *path, const struct buf *text,
			   struct err *e)
{
	if (text->is_over)
		return err_set(e, ERR_LIMIT, "--%s: the file exceeds the limit of a "
					     "buffer", option);
	return file_write_atomic(path, buf_str(text), e) < 0 ? err_wrap(e, "--%s", option) : 0;
}

int gates_end(struct gates *g, const char *title, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (!g->n)
		return 0;
	gate_lines(&g->log, &text);
	fflush(stdout);
	if (text.len)
		fputs(text.data, stderr);
	buf_reset(&text);
	if (g->o->junit) {
		gate_junit(&g->log, title, &text);
		rc = write_gate_file("junit", g->o->junit, &text, e);
	}
	buf_reset(&text);
	if (rc == 0 && g->o->summary) {
		gate_markdown(&g->log, title, &text);
		rc = write_gate_file("summary", g->o->summary, &text, e);
	}
	buf_release(&text);
	return rc < 0 ? -1 : gate_is_failed(&g->log) ? GATE_EXIT : 0;
}
