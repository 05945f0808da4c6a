/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_jobs.c - see suite_parts.h: several members at once, each a process of its own.
 *
 * A child is this program again, below a keeper, so that it and its servers end when we do. Its
 * configuration is the merged one, in a nameless file: the one on disk may have been edited since,
 * and what it holds may be secret. GPUs and ports are its own to take; we only start no more of
 * them than the machine has GPUs for.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "experiment/suite_parts.h"
#include "json/write.h"
#include "proc/keeper.h"

#define POLL_MS 50
#define WAIT_S 60     /* for GPUs that another child is about to give back */
#define STOP_S 15     /* what a child needs beside stopping its servers, generously */

struct stream {
	int fd;                       /* -1: at its end */
	struct buf line;
};

struct job {
	const struct suite_member *m; /* NULL: free */
	struct keeper *keeper;
	struct stream stream[2];      /* its stdout, its stderr */
	int64_t began_ns;
	bool is_stopping;
	pthread_t stopper;
	atomic_bool is_stopped;
};

/* ---- what a member needs ---- */

static unsigned gpus_of(const struct experiment *x)
{
	unsigned n = 0;

	switch (x->resources.want) {
	case GPUS_NONE: return 0;
	case GPUS_COUNT: return x->resources.count;
	case GPUS_LIST:
		while (x->resources.list[n])
			n++;
		return n;
	case GPUS_AUTO: break;
	}
	for (size_t i = 0; i < x->n_servers; i++)
		n += x->server[i].url ? 0 : x->server[i].gpus;
	return n;
}

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
	unsigned gpus = x->resources.is_shared ? 0 : gpus_of(x);
	bool is_alone = true;

	for (size_t i = 0; i < n_jobs; i++) {
		if (!job[i].m)
			continue;
		is_alone = false;
		if (!x->resources.is_shared && lists_meet(&job[i].m->x, x))
			return false;
		if (!job[i].m->x.resources.is_shared)
			gpus += gpus_of(&job[i].m->x);
	}
	return is_alone || !s->know->is_gpus_known || !s->know->n_gpus || gpus <= s->know->n_gpus;
}

/* ---- starting ---- */

/* As it was written, where that says more than the value: "1.10", "yes". A child reads YAML. */
static void add_scalar(struct buf *out, const struct json_value *v)
{
	struct json_writer w = json_writer(out);
	struct str raw = v->raw;
	bool is_text = raw.n && memchr(raw.p, 'e', raw.n) && !memchr(raw.p, '.', raw.n);

	if (v->kind == JSON_STRING)
		json_quote(out, v->text, true);
	else if (v->kind == JSON_REAL && isinf(v->real))
		buf_add_text(out, v->real < 0 ? "-.inf" : ".inf");
	else if (raw.n && (v->kind != JSON_REAL || !is_text)) /* 1e5 is a text there */
		buf_add_str(out, raw);
	else
		json_put_value(&w, v);
}

static void add_value(struct buf *out, const struct json_value *v)
{
	bool is_object = v->kind == JSON_OBJECT;

	if (!is_object && v->kind != JSON_ARRAY) {
		add_scalar(out, v);
		return;
	}
	buf_add_char(out, is_object ? '{' : '[');
	for (size_t i = 0; i < v->count; i++) {
		buf_add_text(out, i ? ", " : "");
		if (is_object) {
			json_quote(out, v->key[i], true);
			buf_add_text(out, ": ");
		}
		add_value(out, &v->item[i]);
	}
	buf_add_char(out, is_object ? '}' : ']');
}

/* What is different of a child: where its files go, that it waits for others' GPUs, no upload. */
static const struct json_value *child_tree(const struct suite *s, const struct suite_member *m,
					   struct err *e)
{
	struct json_value folder = { .kind = JSON_STRING, .text = str_of(m->folder) }, null = { 0 };
	struct json_value wait = { .kind = JSON_INT, .integer = WAIT_S };
	const struct json_value *tree = config_put(s->config, m->config, "output.folder", &folder,
						   e);

	if (tree) /* a member's is ignored, as it is without children */
		tree = config_without(s->config, tree, "include");
	if (tree)
		tree = config_put(s->config, tree, "output.upload", &null, e);
	if (tree && m->x.resources.wait_s < WAIT_S)
		tree = config_put(s->config, tree, "resources.wait_s", &wait, e);
	return tree;
}

/* The merged configuration; "$" is doubled, because texts are filled in when they are read. */
static int config_fd(const struct suite *s, const struct suite_member *m, struct err *e)
{
	const struct json_value *tree = child_tree(s, m, e);
	struct buf text = { .limit = 4 * (size_t)EXPERIMENT_BYTES_MAX }, out = { 0 };
	int fd = -1;

	out.limit = 2 * text.limit;
	if (tree) {
		add_value(&text, tree);
		for (size_t i = 0; i < text.len; i++) {
			buf_add_char(&out, text.data[i]);
			if (text.data[i] == '$')
				buf_add_char(&out, '$');
		}
		fd = memfd_create("experiment.yaml", MFD_CLOEXEC);
		if (fd >= 0 && (file_write_all(fd, buf_str(&out)) < 0 || lseek(fd, 0, SEEK_SET))) {
			close(fd);
			fd = -1;
		}
		if (fd < 0)
			err_set(e, ERR_IO, "cannot hand over the configuration of %s: %s", m->label,
				strerror(errno));
	}
	buf_release(&text);
	buf_release(&out);
	return fd;
}

static char **child_argv(const struct suite_sitting *t, const struct suite_member *m,
			 struct arena *a)
{
	char *stem = m->test ? suite_imported_stem(t->s, m) : NULL;
	char *const *more = t->o->child_words;
	size_t n = 0, k = 0;
	char **argv;

	while (more && more[n])
		n++;
	argv = arena_alloc(a, (n + 10) * sizeof(*argv));
	argv[k++] = arena_text(a, STR("/proc/self/exe"));
	argv[k++] = arena_text(a, STR("run"));
	argv[k++] = arena_text(a, STR("--member"));
	argv[k++] = arena_printf(a, "%u/%u%s%s", m->x.repeat, m->x.repeats, stem ? ":" : "",
				 stem ? stem : "");
	argv[k++] = arena_text(a, STR("--config"));
	argv[k++] = arena_printf(a, "/dev/fd/%d", KEEPER_PASSED_FD);
	argv[k++] = arena_text(a, STR("--output"));
	argv[k++] = arena_text(a, str_of(m->path));
	for (size_t i = 0; i < n; i++)
		argv[k++] = more[i];
	free(stem);
	return argv;
}

double suite_grace_s(const struct experiment *x)
{
	double s = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		s = fmax(s, x->server[i].grace_s);
	return 4 * (s + STOP_S); /* the tree is only asked to end after a quarter of it */
}

static int start(struct suite_sitting *t, struct job *job, size_t at, struct err *e)
{
	const struct suite_member *m = &t->s->member[t->due[at]];
	struct arena arena = { 0 };
	int config = config_fd(t->s, m, e), out[2] = { -1, -1 }, err[2] = { -1, -1 }, rc = -1;

	*job = (struct job){ .stream = { { .fd = -1 }, { .fd = -1 } } };
	if (config < 0)
		return -1;
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		err_set(e, ERR_RUN, "cannot make a pipe: %s", strerror(errno));
	} else {
		struct keeper_opts o = {
			.argv = child_argv(t, m, &arena), .out_fd = out[1], .err_fd = err[1],
			.follow_fd = -1, .pass_fd = config, .grace_s = suite_grace_s(&m->x),
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
	}
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (err[i] >= 0)
			close(err[i]);
	}
	close(config);
	arena_release(&arena);
	return rc;
}

/* ---- what children print ---- */

static void say_line(const struct suite_sitting *t, struct job *job, bool is_err)
{
	struct buf *line = &job->stream[is_err].line;

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

/* The rest of its lines, its document. */
static int end(struct suite_sitting *t, struct job *job, struct err *e)
{
	double took_s = (double)(clock_mono_ns() - job->began_ns) / 1e9;
	const struct suite_member *m = job->m;

	for (int k = 0; k < 2; k++) {
		drain(t, job, k == 1);
		if (job->stream[k].line.len)
			say_line(t, job, k == 1);
		if (job->stream[k].fd >= 0)
			close(job->stream[k].fd);
		buf_release(&job->stream[k].line);
	}
	job->m = NULL;
	return suite_ended(t, m, took_s, e);
}

static void *stop_main(void *arg)
{
	struct job *job = arg;

	keeper_stop(job->keeper, NULL, NULL);
	atomic_store(&job->is_stopped, true);
	return NULL;
}

/* Asked to end, all at the same time: each writes what it has measured. */
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

static bool has_ended(struct job *job)
{
	if (!job->is_stopping && keeper_has_ended(job->keeper, 0, NULL))
		begin_stop(job); /* what it left, if it was killed */
	return job->is_stopping && atomic_load(&job->is_stopped);
}

static int reap(struct suite_sitting *t, struct job *job, size_t n_jobs, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n_jobs; i++) {
		if (!job[i].m || !has_ended(&job[i]))
			continue;
		if (!pthread_equal(job[i].stopper, pthread_self()))
			pthread_join(job[i].stopper, NULL);
		if (end(t, &job[i], rc == 0 ? e : NULL) < 0)
			rc = -1;
	}
	return rc;
}

static struct job *free_job(struct job *job, size_t n_jobs)
{
	for (size_t i = 0; i < n_jobs; i++)
		if (!job[i].m)
			return &job[i];
	return NULL;
}

static bool has_running(const struct job *job, size_t n_jobs)
{
	for (size_t i = 0; i < n_jobs; i++)
		if (job[i].m)
			return true;
	return false;
}

/* The first from there on that may fare better than one that has failed. */
static size_t useful(struct suite_sitting *t, size_t next)
{
	while (next < t->n_due && suite_is_futile(t, &t->s->member[t->due[next]]))
		next++;
	return next;
}

int suite_jobs_run(struct suite_sitting *t, struct err *e)
{
	size_t n_jobs = t->s->jobs, next = 0;
	struct job *job = mem_array(n_jobs, sizeof(*job));
	bool is_ending = false;
	int rc = 0;

	while (next < t->n_due || has_running(job, n_jobs)) {
		struct job *place = free_job(job, n_jobs);

		is_ending = is_ending || rc < 0 || suite_is_cancelled(t) ||
			    (t->s->stop_on_error && t->tally->failed);
		if (is_ending && !has_running(job, n_jobs))
			break;
		while (!is_ending && place && rc == 0 && (next = useful(t, next)) < t->n_due &&
		       fits(t->s, job, n_jobs, &t->s->member[t->due[next]].x)) {
			rc = start(t, place, next++, e);
			place = free_job(job, n_jobs);
		}
		for (size_t i = 0; (rc < 0 || suite_is_cancelled(t)) && i < n_jobs; i++)
			if (job[i].m)
				begin_stop(&job[i]);
		wait_for_bytes(t, job, n_jobs);
		if (reap(t, job, n_jobs, e) < 0)
			rc = -1;
	}
	free(job);
	return rc;
}
