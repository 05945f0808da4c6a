/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_jobs.c - see suite_internal.h: several members at once, each a process of its own.
 *
 * A child is this program again, below a keeper, so that it and its servers end when we do. Its
 * configuration is the merged one, in an unnamed file: the one on disk may have been edited since,
 * and it may hold secrets. Children take GPUs and ports themselves; we only start no more of them
 * than the machine has GPUs for.
 *
 * With SUITE_SSH the child is an ssh that runs the program on a host, one for each slot. Folders
 * are on a shared file system, so documents are in their usual places.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/sweep/sla.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "experiment/stages/allocate.h"
#include "experiment/suite/suite_internal.h"
#include "host/proc/keeper.h"
#include "host/proc/tool.h"
#include "results/read/read.h"

#define POLL_MS 50
#define STOP_S 15     /* a generous time for a child's work other than stopping its servers */

struct stream {
	int fd;                       /* -1: at its end */
	struct buf line;
};

struct host {                         /* of SUITE_SSH */
	const struct config_host *is;
	bool is_out;                  /* it has failed, and gets nothing more */
};

struct job {
	const struct suite_member *m; /* NULL: free */
	size_t place;                 /* of m in the suite */
	struct host *host;            /* NULL: a process of this machine */
	int life_fd;                  /* while it is open, the member on the host lives; -1: none */
	char *stem;                   /* of the files that the host runs */
	int64_t stop_ns;              /* until when the member on the host may stop by itself */
	struct keeper_end end;
	char last[256];               /* the last line on its stderr */
	struct keeper *keeper;
	struct stream stream[2];      /* its stdout, its stderr */
	int64_t began_ns;
	bool is_stopping;
	pthread_t stopper;
	atomic_bool is_stopped;
};

/* ---- what a member needs ---- */

static bool lists_meet(const struct experiment *a, const struct experiment *b)
{
	if (a->resources.want != GPUS_LIST || b->resources.want != GPUS_LIST)
		return false;
	for (const char *const *x = a->resources.list; *x; x++)
		for (const char *const *y = b->resources.list; *y; y++)
			if (strcmp(*x, *y) == 0)
				return true;
	return false;
}

static bool fits(const struct suite *s, const struct job *job, size_t n_jobs,
		 const struct experiment *x)
{
	unsigned gpus = x->resources.is_shared ? 0 : choose_wanted(x);
	bool is_alone = true;

	for (size_t i = 0; i < n_jobs; i++) {
		if (!job[i].m)
			continue;
		is_alone = false;
		if (!x->resources.is_shared && lists_meet(&job[i].m->x, x))
			return false;
		if (!job[i].m->x.resources.is_shared)
			gpus += choose_wanted(&job[i].m->x);
	}
	return is_alone || !s->know->is_gpus_known || !s->know->n_gpus || gpus <= s->know->n_gpus;
}

/* ---- starting ---- */

static int config_fd(const struct suite *s, const struct suite_member *m, struct err *e)
{
	struct buf text = { 0 };
	int fd = -1;

	if (suite_child_config(s, m, &text, e) == 0) {
		fd = memfd_create("experiment.yaml", MFD_CLOEXEC);
		if (fd >= 0 && (file_write_all(fd, buf_str(&text)) < 0 || lseek(fd, 0, SEEK_SET))) {
			close(fd);
			fd = -1;
		}
		if (fd < 0)
			err_set(e, ERR_IO, "cannot hand over the configuration of %s: %s", m->label,
				strerror(errno));
	}
	buf_release(&text);
	return fd;
}

/* ---- on another host ---- */

/* Run by the host's shell, which stays so that a signal's exit status is not ssh's 255. */
static const char on_host[] = "test -r \"$0\" || exit 252; sh \"$0\"; exit $?";
#define NO_SCRIPT 252
#define NO_CONNECTION 255

/*
 * ssh's input is a pipe of ours. The member ends when its input does: when we close the pipe, when
 * we end in any way, and when the connection is lost.
 */
static char **host_argv(const struct suite_sitting *t, const struct job *job, const char *script,
			struct arena *a)
{
	static const char *const first[] = {
		"sh", "-c", "exec \"$@\" <&3 3<&-", "sh", "ssh", "-T", "-o", "BatchMode=yes", "-o",
		"ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", NULL,
	};
	const struct opt_list *args = &t->s->scheduler.args;
	struct word_list argv = { .arena = a };
	struct buf command = { 0 };

	for (const char *const *word = first; *word; word++)
		words_add(&argv, arena_text(a, str_of(*word)));
	for (size_t i = 0; i < args->n; i++)
		words_add(&argv, arena_text(a, str_of(args->v[i])));
	words_add(&argv, arena_text(a, str_of(job->host->is->name)));
	buf_add_text(&command, "sh -c ");
	words_quote(&command, str_of(on_host));
	buf_add_char(&command, ' ');
	words_quote(&command, str_of(script));
	words_add(&argv, arena_text(a, buf_str(&command)));
	buf_release(&command);
	return argv.v;
}

/* The words that start m on job's host, and the pipe whose end stops it. NULL with e. */
static char **begin_on_host(struct suite_sitting *t, struct job *job, const struct suite_member *m,
			    struct arena *a, int *input, struct err *e)
{
	static const char *const more[] = { "--until-stdin-ends", NULL };
	char *folder = suite_scheduler_folder(t->s, e);
	int life[2] = { -1, -1 };
	struct buf stem = { 0 };

	if (!folder)
		return NULL;
	buf_printf(&stem, "%s%s", folder, strrchr(m->folder, '/'));
	free(folder);
	job->stem = buf_take(&stem);
	if (suite_child_files(t, m, job->stem, more, e) < 0)
		return NULL;
	if (pipe2(life, O_CLOEXEC) < 0) {
		err_set(e, ERR_RUN, "cannot make a pipe: %s", strerror(errno));
		return NULL;
	}
	*input = life[0];
	job->life_fd = life[1];
	return host_argv(t, job, arena_printf(a, "%s.sh", job->stem), a);
}

/* Closes the pipe of a member on a host and removes its files, which may hold secrets. */
static void leave_host(struct job *job)
{
	if (job->life_fd >= 0)
		close(job->life_fd);
	job->life_fd = -1;
	if (job->stem)
		suite_child_forget(job->stem);
	free(job->stem);
	job->stem = NULL;
}

/* Why the host cannot be used; NULL: it is not the host's fault. */
static const char *host_fault(const struct job *job, const struct suite *s, struct arena *a)
{
	switch (job->end.code) {
	case NO_CONNECTION:
		return *job->last ? job->last : "ssh could not connect, or lost the connection";
	case NO_SCRIPT:
	case SUITE_NO_FOLDER:
		return arena_printf(a, "it does not have the folder of %s, or the current one; both must "
				    "be on a file system that all hosts share", s->output);
	case 126:
	case 127:
		return arena_printf(a, "it does not have this program (%s); scheduler.program says where "
				    "it is on the hosts", *job->last ? job->last : "exit status 127");
	default:
		return NULL;
	}
}

/* Whether the host has failed and not the member, which other hosts may then run. */
static bool drop_host(struct suite_sitting *t, struct job *job)
{
	const struct experiment_hooks *hooks = &t->hooks->run;
	struct arena a = { 0 };
	const char *why = job->host && job->end.is_known && !suite_is_done(job->m) ?
			  host_fault(job, t->s, &a) : NULL;

	if (why && hooks->warn)
		hooks->warn(hooks->self, arena_printf(&a, "host %s %s: %s. The experiment %s goes to "
			    "another host", job->host->is->name, job->host->is_out ? "has failed" :
			    "is no longer used", why, job->m->label));
	if (why)
		job->host->is_out = true;
	arena_release(&a);
	return why != NULL;
}

/* ---- a child ---- */

double suite_grace_s(const struct experiment *x)
{
	double s = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		s = fmax(s, x->server[i].grace_s);
	return 4 * (s + STOP_S); /* the tree is only asked to end after a quarter of it */
}

static char **begin_here(struct suite_sitting *t, const struct suite_member *m, struct arena *a,
			 int *input, struct err *e)
{
	*input = config_fd(t->s, m, e);
	if (*input < 0)
		return NULL;
	return suite_child_words(t, m, "/proc/self/exe",
				 arena_printf(a, "/dev/fd/%d", KEEPER_PASSED_FD), a);
}

static int start(struct suite_sitting *t, struct job *job, size_t at, struct err *e)
{
	const struct suite_member *m = &t->s->member[t->due[at]];
	struct arena arena = { 0 };
	int input = -1, out[2] = { -1, -1 }, err[2] = { -1, -1 }, rc = -1;
	char **argv;

	*job = (struct job){ .host = job->host, .life_fd = -1, .place = t->due[at],
			     .stream = { { .fd = -1 }, { .fd = -1 } } };
	argv = job->host ? begin_on_host(t, job, m, &arena, &input, e) :
			   begin_here(t, m, &arena, &input, e);
	if (argv && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)) {
		err_set(e, ERR_RUN, "cannot make a pipe: %s", strerror(errno));
	} else if (argv) {
		struct keeper_opts o = {
			.argv = argv, .out_fd = out[1], .err_fd = err[1], .follow_fd = -1,
			.pass_fd = input, .grace_s = suite_grace_s(&m->x),
		};

		rc = keeper_start(&o, &job->keeper, NULL, e);
	}
	if (rc == 0) {
		job->m = m;
		job->began_ns = clock_mono_ns();
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(err[0], F_SETFL, O_NONBLOCK);
		job->stream[0].fd = out[0];
		job->stream[1].fd = err[0];
		out[0] = err[0] = -1;
		suite_say_begin(t, m, at + 1);
	} else {
		leave_host(job);
	}
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (err[i] >= 0)
			close(err[i]);
	}
	if (input >= 0)
		close(input);
	arena_release(&arena);
	return rc;
}

/* ---- what children print ---- */

static void say_line(const struct suite_sitting *t, struct job *job, bool is_err)
{
	struct buf *line = &job->stream[is_err].line;

	if (is_err && line->len)
		snprintf(job->last, sizeof(job->last), "%s", line->data);
	if (t->hooks->child)
		t->hooks->child(t->hooks->self, job->m, line->len ? line->data : "", is_err);
	buf_reset(line);
}

static void add_bytes(const struct suite_sitting *t, struct job *job, bool is_err,
		      const char *bytes, size_t n)
{
	struct stream *s = &job->stream[is_err];

	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n' || s->line.len >= SUITE_LINE_BYTES_MAX)
			say_line(t, job, is_err);
		if (bytes[i] != '\n' && bytes[i] != '\r')
			buf_add_char(&s->line, bytes[i]);
	}
}

static void drain(const struct suite_sitting *t, struct job *job, bool is_err)
{
	struct stream *s = &job->stream[is_err];
	char bytes[16384];
	ssize_t n = 1;

	while (s->fd >= 0 && n > 0) {
		n = read(s->fd, bytes, sizeof(bytes));
		if (n > 0)
			add_bytes(t, job, is_err, bytes, (size_t)n);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			close(s->fd);
			s->fd = -1;
		}
	}
}

static void wait_for_bytes(const struct suite_sitting *t, struct job *job, size_t n_jobs)
{
	struct pollfd p[2 * SUITE_JOBS_MAX];
	nfds_t n = 0;

	for (size_t i = 0; i < n_jobs; i++)
		for (int k = 0; k < 2; k++)
			if (job[i].m && job[i].stream[k].fd >= 0)
				p[n++] = (struct pollfd){ job[i].stream[k].fd, POLLIN, 0 };
	poll(p, n, POLL_MS);
	for (size_t i = 0; i < n_jobs; i++)
		for (int k = 0; job[i].m && k < 2; k++)
			drain(t, &job[i], k == 1);
}

/* ---- ending ---- */

/*
 * Reads the rest of its lines and its document. *next: it goes back to those that are to be
 * started.
 */
static int end(struct suite_sitting *t, struct job *job, size_t *next, struct err *e)
{
	double took_s = (double)(clock_mono_ns() - job->began_ns) / 1e9;
	const struct suite_member *m = job->m;
	bool is_back;

	for (int k = 0; k < 2; k++) {
		drain(t, job, k == 1);
		if (job->stream[k].line.len)
			say_line(t, job, k == 1);
		if (job->stream[k].fd >= 0)
			close(job->stream[k].fd);
		buf_release(&job->stream[k].line);
	}
	leave_host(job);
	is_back = !suite_is_cancelled(t) && drop_host(t, job);
	job->m = NULL;
	if (!is_back)
		return suite_ended(t, m, took_s, e);
	t->due[--*next] = job->place; /* in place of one that was started, which nothing looks at */
	return 0;
}

static void *stop_main(void *arg)
{
	struct job *job = arg;

	keeper_stop(job->keeper, NULL, NULL);
	atomic_store(&job->is_stopped, true);
	return NULL;
}

/* Asks all to end at the same time: each writes what it has measured. */
static void begin_stop(struct job *job)
{
	if (job->is_stopping)
		return;
	job->is_stopping = true;
	if (pthread_create(&job->stopper, NULL, stop_main, job) != 0) {
		job->stopper = pthread_self();
		stop_main(job);
	}
}

/* Ends the input of a member on a host, which then has the time that a child has here. */
static void ask_to_stop(struct job *job)
{
	int64_t now = clock_mono_ns();

	if (job->life_fd >= 0) {
		close(job->life_fd);
		job->life_fd = -1;
		job->stop_ns = now + clock_span_ns(suite_grace_s(&job->m->x));
	}
	if (now >= job->stop_ns)
		begin_stop(job);
}

static int reap(struct suite_sitting *t, struct job *job, size_t n_jobs, size_t *next,
		struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n_jobs; i++) {
		if (job[i].m && !job[i].is_stopping &&
		    keeper_has_ended(job[i].keeper, 0, &job[i].end))
			begin_stop(&job[i]); /* what it left, if it was killed */
		if (!job[i].m || !job[i].is_stopping || !atomic_load(&job[i].is_stopped))
			continue;
		if (!pthread_equal(job[i].stopper, pthread_self()))
			pthread_join(job[i].stopper, NULL);
		if (end(t, &job[i], next, rc == 0 ? e : NULL) < 0)
			rc = -1;
	}
	return rc;
}

static struct job *free_job(struct job *job, size_t n_jobs)
{
	for (size_t i = 0; i < n_jobs; i++)
		if (!job[i].m && !(job[i].host && job[i].host->is_out))
			return &job[i];
	return NULL;
}

/* Slots of the hosts, the first one of each host before the second one of any. */
static struct job *make_jobs(const struct suite *s, struct host *host)
{
	struct job *job = mem_array(s->jobs, sizeof(*job));
	size_t n = 0;

	for (size_t i = 0; i < s->n_hosts; i++)
		host[i].is = &s->host[i];
	for (unsigned slot = 0; n < s->jobs && s->n_hosts; slot++)
		for (size_t i = 0; i < s->n_hosts && n < s->jobs; i++)
			if (slot < s->host[i].slots)
				job[n++].host = &host[i];
	return job;
}

static bool has_running(const struct job *job, size_t n_jobs)
{
	for (size_t i = 0; i < n_jobs; i++)
		if (job[i].m)
			return true;
	return false;
}

/* Starts as many as there are slots for; on hosts one at a time, as sshd limits pending logins. */
static int start_more(struct suite_sitting *t, struct job *job, size_t n_jobs, size_t *next,
		      struct err *e)
{
	struct job *place;

	while ((place = free_job(job, n_jobs))) {
		/* Skips those that would fail like an earlier one. */
		while (*next < t->n_due && suite_is_futile(t, &t->s->member[t->due[*next]]))
			++*next;
		if (*next == t->n_due ||
		    (!place->host && !fits(t->s, job, n_jobs, &t->s->member[t->due[*next]].x)))
			break;
		if (start(t, place, (*next)++, e) < 0)
			return -1;
		if (place->host)
			break;
	}
	return 0;
}

int suite_jobs_run(struct suite_sitting *t, struct err *e)
{
	size_t n_jobs = t->s->jobs, next = 0;
	struct host *host = mem_array(t->s->n_hosts + 1, sizeof(*host));
	struct job *job = make_jobs(t->s, host);
	bool is_ending = false;
	int rc = 0;

	if (t->s->n_hosts && !tool_exists("ssh"))
		rc = err_set(e, ERR_USAGE, "--scheduler ssh: the program ssh is not in PATH");
	while (rc == 0 && (next < t->n_due || has_running(job, n_jobs))) {
		is_ending = is_ending || suite_is_cancelled(t) ||
			    (t->s->stop_on_error && t->tally->failed);
		if (is_ending && !has_running(job, n_jobs))
			break;
		if (!is_ending && !free_job(job, n_jobs) && !has_running(job, n_jobs)) {
			rc = err_set(e, ERR_RUN, "all hosts of %s have failed, and %zu experiment%s "
				     "not run; --resume runs %s", t->s->scheduler.hosts, t->n_due - next,
				     t->n_due - next == 1 ? " was" : "s were",
				     t->n_due - next == 1 ? "it" : "them");
			break;
		}
		if (!is_ending)
			rc = start_more(t, job, n_jobs, &next, e);
		for (size_t i = 0; suite_is_cancelled(t) && i < n_jobs; i++)
			if (job[i].m)
				ask_to_stop(&job[i]);
		wait_for_bytes(t, job, n_jobs);
		if (reap(t, job, n_jobs, &next, rc == 0 ? e : NULL) < 0)
			rc = -1;
	}
	while (rc < 0 && has_running(job, n_jobs)) {
		for (size_t i = 0; i < n_jobs; i++)
			if (job[i].m)
				ask_to_stop(&job[i]);
		wait_for_bytes(t, job, n_jobs);
		reap(t, job, n_jobs, &next, NULL);
	}
	free(job);
	free(host);
	return rc;
}

/* ---- verdicts ---- */

static double number_at(const struct json_value *result, const char *path)
{
	const struct json_value *v = result;
	struct str rest = str_of(path);

	while (v && rest.n) {
		struct str key = str_cut(&rest, '.');
		char name[64];

		if (key.n >= sizeof(name))
			return NAN;
		memcpy(name, key.p, key.n);
		name[key.n] = '\0';
		v = json_get(v, name);
	}
	return v && (v->kind == JSON_INT || v->kind == JSON_REAL) ? json_real(v, NAN) : NAN;
}

enum adapt_verdict adapt_judge(const struct json_value *result, const struct import_opts *o)
{
	static const char *const ttft[] = {
		"ttft_ms.p99", "metrics.ttft_ms.p99", "ttft.p99", "metrics.ttft.p99", "p99_ttft_ms",
		"ttft_ms.mean", "metrics.ttft_ms.mean", "ttft.mean", "metrics.ttft.mean",
		"mean_ttft_ms", NULL,
	};
	static const char *const tpot[] = {
		"tpot_ms.p99", "metrics.tpot_ms.p99", "tpot.p99", "metrics.tpot.p99", "p99_tpot_ms",
		"itl_ms.p99", "metrics.itl_ms.p99", "inter_token_latency_ms.p99",
		"metrics.inter_token_latency_ms.p99", "itl.p99", "metrics.itl.p99", "p99_itl_ms",
		"tpot_ms.mean", "metrics.tpot_ms.mean", "tpot.mean", "metrics.tpot.mean",
		"mean_tpot_ms", "itl_ms.mean", "metrics.itl_ms.mean", "inter_token_latency_ms.mean",
		"metrics.inter_token_latency_ms.mean", "itl.mean", "metrics.itl.mean", "mean_itl_ms",
		NULL,
	};
	const struct sla_limit limit[] = {
		{ "ttft", SLA_LE, o->sla_ttft_ms, false }, { "tpot", SLA_LE, o->sla_tpot_ms, false },
		sla_failures(o->sla_max_failed),
	};
	const struct sla sla = { limit, sizeof(limit) / sizeof(*limit) };
	double value[] = { NAN, NAN, 0 };
	struct str why;
	struct err e;

	for (const char *const *path = ttft; *path && isnan(value[0]); path++)
		value[0] = number_at(result, *path);
	for (const char *const *path = tpot; *path && isnan(value[1]); path++)
		value[1] = number_at(result, *path);
	if (sla_value(&limit[2], result, &value[2], &e) < 0 ||
	    !sla_is_measured(result, &sla, &why) || isnan(value[0]) || isnan(value[1]))
		return ADAPT_UNKNOWN;
	for (size_t i = 0; i < sla.n; i++)
		if (!sla_holds(&limit[i], value[i]))
			return ADAPT_FAIL;
	return ADAPT_PASS;
}

/* ---- the search ---- */

void adapt_begin(struct adapt *a, const struct import_opts *o, const struct adapt_point *points,
		 size_t n)
{
	*a = (struct adapt){ .o = o };
	for (size_t i = 0; i < n && !a->static_first_fail; i++) {
		if (points[i].verdict == ADAPT_PASS)
			a->static_last_pass = points[i].concurrency;
		else if (points[i].verdict == ADAPT_FAIL && a->static_last_pass)
			a->static_first_fail = points[i].concurrency;
	}
	a->last_pass = a->static_last_pass;
	a->first_fail = a->static_first_fail;
	a->largest = n ? points[n - 1].concurrency : 0;
	a->step = n > 1 ? points[n - 1].concurrency - points[n - 2].concurrency : a->largest;
	if (a->step < 1)
		a->step = 1;
	a->is_ended = !a->last_pass;
}

int64_t adapt_next(const struct adapt *a)
{
	int64_t next;

	if (a->is_ended || a->probes >= a->o->adaptive_max_probes)
		return 0;
	if (a->first_fail)
		return a->first_fail - a->last_pass > 1 ?
		       a->last_pass + (a->first_fail - a->last_pass) / 2 : 0;
	next = a->largest + a->step;
	if (next > a->o->adaptive_max_concurrency)
		next = a->o->adaptive_max_concurrency;
	return next > a->largest ? next : 0;
}

void adapt_take(struct adapt *a, int64_t concurrency, enum adapt_verdict verdict, bool is_new)
{
	assert(!a->is_ended && concurrency > a->last_pass &&
	       (!a->first_fail || concurrency < a->first_fail));
	a->probes += is_new;
	if (verdict == ADAPT_UNKNOWN) {
		a->is_ended = true;
	} else if (verdict == ADAPT_FAIL) {
		a->first_fail = concurrency;
	} else {
		a->last_pass = concurrency;
		if (!a->first_fail) {
			a->largest = concurrency;
			a->step *= 2;
		}
	}
}

/*
 * Searches beyond an imported test's list of concurrency (suite_internal.h).
 *
 * A group is all members of one test and rate. Its results are read from the files that upstream's
 * tools read, so that an interrupted search resumes from them like everything else.
 */

/* ---- groups ---- */

static void add_label(struct buf *out, const struct import_test *test, int64_t concurrency)
{
	buf_printf(out, "%s_qps_%s_concurrency_%lld", test->test, test->qps,
		   (long long)concurrency);
}

/* Members of a matrix, or repeated ones, are not upstream's points. */
static bool is_adaptive(const struct suite_member *m)
{
	const struct import_test *test = m->test;
	struct buf label = { 0 };
	bool is_plain;

	if (!test || !mode_is_served(test->mode) || !test->o->is_adaptive || !m->is_chosen)
		return false;
	add_label(&label, test, test->concurrency);
	is_plain = str_is(buf_str(&label), m->label);
	buf_release(&label);
	return is_plain;
}

static bool is_same_group(const struct suite_member *a, const struct suite_member *b)
{
	return a->test && b->test && strcmp(a->test->test, b->test->test) == 0 && a->test->qps &&
	       b->test->qps && strcmp(a->test->qps, b->test->qps) == 0;
}

bool suite_adapt_is_due(const struct suite_sitting *t, size_t at)
{
	const struct suite_member *m = &t->s->member[t->due[at]];

	if (!is_adaptive(m))
		return false;
	for (size_t i = at + 1; i < t->n_due; i++)
		if (is_same_group(&t->s->member[t->due[i]], m))
			return false;
	return true;
}

/* ---- results ---- */

static enum adapt_verdict judge_file(const struct suite_sitting *t, const struct suite_member *m)
{
	char *stem = suite_imported_stem(t->s, m);
	struct buf path = { 0 };
	struct arena arena = { 0 };
	enum adapt_verdict verdict = ADAPT_UNKNOWN;
	const struct json_value *v;

	buf_printf(&path, "%s.json", stem);
	v = result_json(path.data, DOCUMENT_BYTES_MAX, &arena, NULL);
	if (v)
		verdict = adapt_judge(v, m->test->o);
	buf_release(&path);
	arena_release(&arena);
	free(stem);
	return verdict;
}

static int by_concurrency(const void *a, const void *b)
{
	int64_t x = ((const struct adapt_point *)a)->concurrency;
	int64_t y = ((const struct adapt_point *)b)->concurrency;

	return (x > y) - (x < y);
}

static size_t read_points(const struct suite_sitting *t, const struct suite_member *m,
			  struct adapt_point *out)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < t->s->n; i++) {
		const struct suite_member *one = &t->s->member[i];

		if (is_same_group(one, m))
			out[n++] = (struct adapt_point){ one->test->concurrency,
							 judge_file(t, one) };
	}
	qsort(out, n, sizeof(*out), by_concurrency);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || out[kept - 1].concurrency != out[i].concurrency)
			out[kept++] = out[i];
	return kept;
}

/* ---- probes ---- */

static const struct json_value *put_int(const struct suite_sitting *t,
					const struct json_value *tree, const char *path, int64_t n,
					struct err *e)
{
	struct json_value v = { .kind = JSON_INT };

	v.integer = n;
	return tree ? config_put(t->s->config, tree, path, &v, e) : NULL;
}

static const struct json_value *with_word(struct suite_sitting *t, const struct json_value *tree,
					  const char *path, const struct json_value *list,
					  const char *word, struct err *e)
{
	struct json_value out = { .kind = JSON_ARRAY };
	size_t n = list && list->kind == JSON_ARRAY ? list->count : 0;

	out.item = arena_alloc(&t->arena, (n + 1) * sizeof(*out.item));
	for (size_t i = 0; i < n; i++)
		out.item[i] = list->item[i];
	out.item[n].kind = JSON_STRING;
	out.item[n].text = str_of(word);
	out.count = n + 1;
	return config_put(t->s->config, tree, path, &out, e);
}

/* The group's member m at another level; NULL with e. */
static struct suite_member *make_probe(struct suite_sitting *t, const struct suite_member *m,
				       int64_t concurrency, struct err *e)
{
	struct suite_member *out = arena_alloc(&t->arena, sizeof(*out));
	struct import_test *test = arena_alloc(&t->arena, sizeof(*test));
	const struct json_value *bench = json_get(m->config, "benchmark"), *tree;
	struct json_value name = { .kind = JSON_STRING };
	struct config_findings f = { 0 };
	struct buf label = { 0 };

	*test = *m->test;
	test->concurrency = concurrency;
	test->is_probe = true;
	out->test = test;
	out->is_chosen = true;
	add_label(&label, test, concurrency);
	out->label = arena_text(&t->arena, buf_str(&label));
	buf_release(&label);
	out->path = arena_printf(&t->arena, "%s/%s.json", t->s->folder, out->label);
	out->folder = arena_printf(&t->arena, "%s/%s", t->s->folder, out->label);
	name.text = str_of(out->label);
	tree = config_put(t->s->config, m->config, "name", &name, e);
	tree = put_int(t, tree, "benchmark.max_concurrency", concurrency, e);
	if (test->o->prompts_per_concurrency)
		tree = put_int(t, tree, "benchmark.num_prompts", import_prompts(test->o, concurrency),
			       e);
	tree = tree ? with_word(t, tree, "benchmark.metadata", json_get(bench, "metadata"),
				"adaptive_search=1", e) : NULL;
	if (!tree)
		return NULL;
	out->config = tree;
	if (config_experiment(t->s->config, tree, t->s->know, &t->arena, &out->x, &f) < 0) {
		err_set(e, ERR_USAGE, "%s: %s", out->label, f.errors.data);
		out = NULL;
	} else {
		out->x.output.path = out->path;
		out->x.output.folder = out->folder;
	}
	config_findings_release(&f);
	return out;
}

static int probe(struct suite_sitting *t, const struct suite_member *m, struct adapt *a,
		 struct experiment_site *site, struct err *e)
{
	int64_t level = adapt_next(a);
	struct suite_member *made = make_probe(t, m, level, e);
	bool is_new;

	if (!made)
		return -1;
	t->probe = mem_grow(t->probe, t->n_probe + 1, sizeof(struct suite_member *));
	t->probe[t->n_probe++] = made;
	is_new = !t->o->is_resumed || !suite_is_done(made) ||
		 judge_file(t, made) == ADAPT_UNKNOWN;
	if (is_new) {
		t->n_probes++;
		if (suite_run_one(t, made, t->n_ended + 1, site,
				  t->s->restart != SUITE_RESTART_ALWAYS, e) < 0)
			return -1;
	} else {
		t->tally->kept++;
	}
	adapt_take(a, level, judge_file(t, made), is_new);
	return 0;
}

/* ---- the summary ---- */

static int write_summary(const struct suite_sitting *t, const struct suite_member *m,
			 const struct adapt *a, struct err *e)
{
	const struct { const char *key; int64_t v; } level[] = {
		{ "static_last_pass", a->static_last_pass },
		{ "static_first_fail", a->static_first_fail },
		{ "final_last_pass", a->last_pass }, { "final_first_fail", a->first_fail },
	};
	char *stem = suite_imported_stem(t->s, m), *slash = strrchr(stem, '/');
	struct buf text = { 0 }, path = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	w.indent = 2;
	json_begin_object(&w);
	json_member_text(&w, "test_name", m->test->test);
	json_member_text(&w, "qps", m->test->qps);
	json_member_f64(&w, "sla_ttft_ms", a->o->sla_ttft_ms);
	json_member_f64(&w, "sla_tpot_ms", a->o->sla_tpot_ms);
	for (size_t i = 0; i < sizeof(level) / sizeof(*level); i++)
		if (level[i].v)
			json_member_int(&w, level[i].key, level[i].v);
		else
			json_member_null(&w, level[i].key);
	json_end_object(&w);
	buf_add_char(&text, '\n');
	buf_printf(&path, "%.*s/%s_qps_%s_sla_summary.json", (int)(slash - stem), stem,
		   m->test->test, m->test->qps);
	*slash = '\0';
	rc = file_mkdirs(stem, e);
	if (rc == 0)
		rc = file_write_atomic(path.data, buf_str(&text), e);
	buf_release(&text);
	buf_release(&path);
	free(stem);
	return rc;
}

int suite_adapt(struct suite_sitting *t, const struct suite_member *m,
		struct experiment_site *site, struct err *e)
{
	struct adapt_point *points = mem_array(t->s->n, sizeof(*points));
	const struct experiment_hooks *hooks = &t->hooks->run;
	struct adapt a;
	int rc = 0;

	adapt_begin(&a, m->test->o, points, read_points(t, m, points));
	free(points);
	while (rc == 0 && adapt_next(&a) && !suite_is_cancelled(t))
		rc = probe(t, m, &a, site, e);
	if (rc == 0 && !suite_is_cancelled(t))
		rc = write_summary(t, m, &a, e);
	if (rc == 0 && hooks->line) {
		struct buf text = { 0 };

		buf_printf(&text, "%s, rate %s: the largest concurrency within %g ms TTFT, %g ms "
			   "TPOT and %g %% failed requests is ", m->test->test, m->test->qps,
			   a.o->sla_ttft_ms, a.o->sla_tpot_ms, a.o->sla_max_failed);
		if (a.last_pass)
			buf_printf(&text, "%lld", (long long)a.last_pass);
		else
			buf_add_text(&text, "not known: none of the list is");
		hooks->line(hooks->self, text.data);
		buf_release(&text);
	}
	return rc;
}

int suite_adapt_rest(struct suite_sitting *t, struct experiment_site *site, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->s->n && !suite_is_cancelled(t); i++) {
		const struct suite_member *m = &t->s->member[i];
		bool is_seen_to = false; /* with an earlier member, or by due in this process */

		for (size_t k = 0; k < i; k++)
			is_seen_to |= is_same_group(&t->s->member[k], m);
		for (size_t k = 0; !suite_has_children(t->s) && k < t->n_due; k++)
			is_seen_to |= is_same_group(&t->s->member[t->due[k]], m);
		if (is_seen_to || !is_adaptive(m))
			continue;
		rc = suite_adapt(t, m, site, e);
		experiment_leave(site, &t->hooks->run);
	}
	return rc;
}
