/* SPDX-License-Identifier: Apache-2.0 */
/* web/launch.c - see launch.h: the threads that run experiments, one each. */
#include "web/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/redact.h"
#include "proc/keeper.h"
#include "proc/roster.h"
#include "store/trace_files.h"
#include "web/launch_parts.h"

#define GRACE_S 45          /* in which a run stops its servers and writes its document */
#define HURRY_NS 7000000000 /* likewise when the dashboard itself ends */
#define LOOK_MS 100
#define REASON_BYTES 600
#define LOG_END_BYTES (64 << 10)

static void set_state(struct launch *l, const struct started *s, const char *state)
{
	struct buf detail = { 0 };
	struct err e = { 0 };

	launch_detail(s, &detail);
	if (store_job_state(l->web->store, s->id, state, buf_str(&detail), &e) < 0)
		log_say(l->web, NULL, "error", e.text);
	atomic_fetch_add(&l->web->job_changes, 1);
	buf_release(&detail);
}

void launch_drop(struct started *s)
{
	free(s->name);
	free(s->folder);
	free(s->reason);
	free(s->status);
	free(s->run_ids);
	free(s);
}

static void set_text(char **at, char *text)
{
	free(*at);
	*at = text;
}

/* ---- one experiment ---- */

static int open_log(const struct started *s)
{
	char *path = file_join(s->folder, LAUNCH_LOG);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

	free(path);
	return fd;
}

static int start(const struct launch *l, struct started *s, struct keeper **out, struct err *e)
{
	char *config = file_join(s->folder, LAUNCH_CONFIG);
	char *result = file_join(s->folder, LAUNCH_RESULT);
	char *events = file_join(s->folder, LAUNCH_EVENTS);
	char *const more[] = {
		(char[]){ "--config" }, config, (char[]){ "--output" }, result,
		(char[]){ "--events" }, events, (char[]){ "--progress" }, (char[]){ "none" },
		(char[]){ "--show-log" }, NULL,
	};
	int log = open_log(s), rc = -1;
	struct keeper_opts o = { .envp = l->envp, .out_fd = log, .err_fd = log, .follow_fd = -1,
				 .grace_s = GRACE_S };
	struct arena arena = { 0 };

	if (log < 0) {
		err_set(e, ERR_IO, "cannot write %s/" LAUNCH_LOG ": %s", s->folder, strerror(errno));
	} else if (launch_words(l, more, &arena, &o.argv, e) == 0) {
		rc = keeper_start(&o, out, NULL, e);
	}
	if (log >= 0)
		close(log);
	arena_release(&arena);
	free(config);
	free(result);
	free(events);
	return rc;
}

/* The last line of the log that says something, for a run that left no document. */
static char *last_words(const struct started *s)
{
	char *path = file_join(s->folder, LAUNCH_LOG), *words = NULL;
	struct buf text = { 0 };
	struct str rest, line, last = { 0 };

	if (launch_read_end(path, LOG_END_BYTES, &text)) {
		rest = buf_str(&text);
		while (rest.n) {
			line = str_trim(str_cut(&rest, '\n'));
			if (line.n)
				last = line;
		}
		if (last.n > REASON_BYTES)
			last.n = REASON_BYTES;
		words = last.n ? mem_copy(last.p, last.n) : NULL;
	}
	buf_release(&text);
	free(path);
	return words;
}

/* A line of the job's own log, which its page shows. */
static void warn(const struct started *s, const char *run_id, const char *text)
{
	int log = open_log(s);
	struct buf room = { 0 };
	struct str shown;

	if (log < 0)
		return;
	shown = redact(str_of(text), &room);
	dprintf(log, "WARNING: %s: %.*s\n", run_id, (int)shown.n, shown.n ? shown.p : "");
	buf_release(&room);
	close(log);
}

/* The traces that the run left in the job's folder. The run is kept, whatever becomes of them. */
static void take_traces(struct launch *l, const struct started *s, const char *path,
			const struct read_run *run, int64_t id, struct arena *a)
{
	const char *run_id = arena_text(a, run->run_id);
	struct trace_files files;
	struct err e = { 0 };
	bool is_new;

	trace_files_find(run->document, path, NULL, a, &files);
	if (files.note.n)
		warn(s, run_id, arena_text(a, files.note));
	for (size_t i = 0; i < files.n; i++)
		if (store_trace_take(l->web->store, id, str_of(files.file[i].name),
				     files.file[i].path, &is_new, &e) < 0) {
			err_wrap(&e, "its traces are not in the store");
			warn(s, run_id, e.text);
			log_say(l->web, NULL, "error", e.text);
			return;
		}
}

/* The document that was left, into the store. */
static int take_in(struct launch *l, struct started *s, struct err *e)
{
	char *path = file_join(s->folder, LAUNCH_RESULT);
	struct read_file file = { 0 };
	struct arena arena = { 0 };
	struct buf text = { 0 }, ids = { 0 };
	struct json_writer j = json_writer(&ids);
	int rc = file_read(path, INGEST_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = read_document(str_of(s->name), buf_str(&text), &arena, &file, e);
	if (rc == 0 && file.n) {
		struct put_result *result = arena_alloc(&arena, file.n * sizeof(*result));

		rc = store_put(l->web->store, file.run, file.n, STR("launch"), &arena, result, e);
		for (size_t i = 0; rc == 0 && i < file.n; i++)
			if (result[i].id)
				take_traces(l, s, path, &file.run[i], result[i].id, &arena);
	}
	json_begin_array(&j);
	for (size_t i = 0; rc == 0 && i < file.n; i++)
		json_put_str(&j, file.run[i].run_id);
	json_end_array(&j);
	set_text(&s->run_ids, buf_take(&ids));
	launch_read_status(s, buf_str(&text));
	buf_release(&text);
	arena_release(&arena);
	free(path);
	return rc;
}

static void finish(struct launch *l, struct started *s, const struct keeper_end *end)
{
	bool is_stopped = atomic_load(&l->is_ending);
	struct err e = { 0 };
	int rc;

	s->has_code = end->is_known;
	s->code = end->code;
	rc = take_in(l, s, &e);
	if (rc < 0 && s->code == 0)
		set_text(&s->reason, mem_text(e.text));
	else if (rc < 0 || (s->code && !s->reason))
		set_text(&s->reason, last_words(s));
	if (is_stopped)
		set_text(&s->reason, mem_text("the dashboard was stopped while it ran"));
	else if (atomic_load(&s->is_cancelled))
		set_text(&s->reason, mem_text("cancelled"));
	set_state(l, s, !is_stopped && atomic_load(&s->is_cancelled) ? "cancelled" :
			!is_stopped && rc == 0 && end->is_known && end->code == 0 ? "done" :
			"failed");
}

static void run_one(struct launch *l, struct started *s)
{
	struct keeper_end end = { 0 };
	struct keeper *keeper;
	struct err e = { 0 };

	if (start(l, s, &keeper, &e) < 0) {
		set_text(&s->reason, mem_text(e.text));
		set_state(l, s, "failed");
		return;
	}
	set_state(l, s, "running");
	while (!keeper_has_ended(keeper, LOOK_MS, &end) && !atomic_load(&s->is_cancelled) &&
	       !atomic_load(&l->is_ending))
		;
	if (keeper_stop(keeper, &l->is_hurried, &e) < 0)
		log_say(l->web, NULL, "error", e.text);
	finish(l, s, &end);
}

/* ---- the threads ---- */

static void *runner_main(void *self)
{
	struct launch *l = self;
	struct started *s;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		if (atomic_load(&l->is_ending))
			break;
		s = l->waiting;
		if (!s) {
			pthread_cond_wait(&l->more, &l->lock);
			continue;
		}
		l->waiting = s->next;
		s->next = l->running;
		l->running = s;
		pthread_mutex_unlock(&l->lock);
		run_one(l, s);
		pthread_mutex_lock(&l->lock);
		for (struct started **at = &l->running; *at; at = &(*at)->next)
			if (*at == s) {
				*at = s->next;
				break;
			}
		launch_drop(s);
	}
	l->n_over++;
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void say(void *self, const char *text)
{
	log_say(self, NULL, "warning", text);
}

/*
 * Servers of runs that were killed together with their keepers: looked for once, beside all else.
 */
static void *cleaner_main(void *self)
{
	struct launch *l = self;
	const struct roster_hooks hooks = { .self = l->web, .warn = say, .cancel = &l->is_ending };

	roster_clean(&hooks);
	return NULL;
}

static int start_threads(struct launch *l, struct err *e)
{
	unsigned n = l->web->o.launches;
	int rc = pthread_create(&l->cleaner, NULL, cleaner_main, l);

	l->has_cleaner = rc == 0;
	for (unsigned i = 0; i < n && rc == 0; i++) {
		rc = pthread_create(&l->runner[i], NULL, runner_main, l);
		l->n_runners += rc == 0;
	}
	return rc ? err_set(e, ERR_RUN, "cannot start a thread: %s", strerror(rc)) : 0;
}

int launch_open(struct web *w, struct err *e)
{
	struct launch *l = mem_alloc(sizeof(*l));

	l->web = w;
	w->launch = l;
	launch_settle(l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	if (!w->o.launches || w->o.is_read_only)
		return 0;
	return launch_resume(l, e) < 0 ? -1 : start_threads(l, e);
}

void launch_add(struct launch *l, struct started *s)
{
	struct started **at = &l->waiting;

	pthread_mutex_lock(&l->lock);
	while (*at)
		at = &(*at)->next;
	*at = s;
	pthread_cond_signal(&l->more);
	pthread_mutex_unlock(&l->lock);
}

int launch_cancel(struct web *w, const struct job *job, struct err *e)
{
	struct launch *l = w->launch;
	struct started *found = NULL;

	pthread_mutex_lock(&l->lock);
	for (struct started **at = &l->waiting; *at && !found; at = &(*at)->next)
		if (str_is(job->id, (*at)->id)) {
			found = *at;
			*at = found->next;
			break;
		}
	for (struct started *s = found ? NULL : l->running; s; s = s->next)
		if (str_is(job->id, s->id)) {
			atomic_store(&s->is_cancelled, true);
			pthread_mutex_unlock(&l->lock);
			return 0;
		}
	pthread_mutex_unlock(&l->lock);
	if (!found)
		return err_set(e, ERR_USAGE, "job %.*s is not run by this dashboard",
			       (int)job->id.n, job->id.p);
	set_text(&found->reason, mem_text("cancelled before it began"));
	set_state(l, found, "cancelled");
	launch_drop(found);
	return 0;
}

void launch_stop(struct web *w)
{
	struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };
	struct launch *l = w->launch;
	int64_t hurry = clock_mono_ns() + HURRY_NS;

	if (!l)
		return;
	atomic_store(&l->is_ending, true);
	pthread_mutex_lock(&l->lock);
	pthread_cond_broadcast(&l->more);
	while (l->n_over < l->n_runners) {
		pthread_mutex_unlock(&l->lock);
		if (clock_mono_ns() > hurry)
			atomic_store(&l->is_hurried, true);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < l->n_runners; i++)
		pthread_join(l->runner[i], NULL);
	if (l->has_cleaner)
		pthread_join(l->cleaner, NULL);
	l->n_runners = 0;
	l->has_cleaner = false;
}

void launch_close(struct web *w)
{
	struct launch *l = w->launch;

	if (!l)
		return;
	launch_stop(w);
	while (l->waiting) {
		struct started *s = l->waiting;

		l->waiting = s->next;
		launch_drop(s);
	}
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->more);
	free(l);
	w->launch = NULL;
}
