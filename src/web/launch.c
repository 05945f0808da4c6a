/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - see job.h: how `profllm run` is started, a job's folder, the threads that run
 * experiments, one each, and resuming the jobs of an earlier process.
 *
 * The processes of a run inherit a lock (flock) on its log, which is released when the last of them
 * has ended. After a dashboard was killed, the next one can thus tell when the document of its run
 * is final.
 *
 * The environment of a started program is an allow list: what a program needs to find programs,
 * files and devices, and what --launch-env names. So an experiment has none of the dashboard's
 * secrets, neither by ${NAME} nor in its own environment. `--bounded` and the options after it
 * limit what the configuration may read and start (experiment/config_bounds.h).
 *
 * A job's folder is its id below the dashboard's folder: no path is ever taken from the store.
 * "owner" of its detail is the process that runs it, by number and start time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "host/proc/keeper.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"
#include "host/proc/tree.h"
#include "results/store/trace_files.h"
#include "web/api.h"
#include "web/job.h"
#include "web/web_internal.h"

#define LAUNCH_CONFIG "config.yaml"
#define LAUNCH_RESULT "result.json"
#define LAUNCH_CHECKS_MAX 2 /* at once, of different users; half of the workers stay free */
#define GRACE_S 45          /* in which a run stops its servers and writes its document */
#define HURRY_NS 7000000000 /* the same when the dashboard itself ends */
#define LEFT_NS 60000000000 /* after its dashboard was killed, a run is waited for so long */
#define LOOK_MS 100
#define REASON_BYTES 600
#define DISK_FULL_BYTES 65536
#define LOG_END_BYTES (64 << 10)
#define JOBS_LOOKED_AT 1000
#define CHECK_SECONDS 5
#define CHECK_FILE_BYTES_MAX (16u << 20) /* of a plan */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_MEMORY_BYTES_MAX 0         /* a shadow alone has more */
#else
#define CHECK_MEMORY_BYTES_MAX (1u << 30)
#endif

/* A job that waits or runs. It owns its texts. */
struct launch_job {
	struct launch_job *next;
	char id[17];
	char *name, *folder;
	char *by, *cancelled_by;   /* names of tokens; NULL: not known */
	char *status, *reason;     /* of the document: "completed"; why not; NULL: not known */
	char *run_ids;             /* a JSON list; NULL: none */
	size_t n_outcome[PUT_OUTCOMES];
	bool has_code;
	int code;                  /* exit status, or minus the signal */
	bool is_left;              /* it ran when the dashboard before us ended */
	atomic_bool is_cancelled;
};

struct launch {
	struct web *web;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct launch_job *waiting, *running;
	pthread_t runner[WEB_LAUNCHES_MAX], cleaner;
	unsigned n_runners, n_over;
	bool has_cleaner;
	atomic_bool is_ending, is_hurried;
	char *const *envp, *const *bounds;       /* of what is started; end with NULL */
	struct str checking[LAUNCH_CHECKS_MAX];  /* whose configurations are; p NULL: none */
};

/* ---- what is started ---- */

/* A star at the end matches any rest without a word for a secret. docs/guide/dashboard.md */
static const char *const kept[] = {
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*",
	"LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "CUDA_*",
	"NVIDIA_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "NCCL_*", "OMP_*", "HF_HOME",
	"HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HUGGINGFACE_HUB_CACHE",
	"TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT",
	"PROFLLM_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"no_proxy", "NO_PROXY", "DOCKER_HOST", "KUBERNETES_SERVICE_HOST", "container",
};

static bool is_kept_name(const char *pattern, const char *name)
{
	static const char *const secret[] = { "KEY", "TOKEN", "SECRET", "PASS" };
	size_t n = strlen(pattern);

	if (pattern[n - 1] != '*')
		return strcmp(pattern, name) == 0;
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		if (strstr(name, secret[i]))
			return false;
	return strncmp(pattern, name, n - 1) == 0;
}

static bool is_kept(const struct web_opts *o, const char *name)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (is_kept_name(kept[i], name))
			return true;
	for (size_t i = 0; i < o->launch_env.n; i++)
		if (strcmp(o->launch_env.v[i], name) == 0)
			return true;
	return false;
}

static void add_each(struct word_list *words, const char *option, const struct web_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		words_add(words, arena_printf(words->arena, "%s=%s", option, names->v[i]));
}

static void settle(struct launch *l)
{
	const struct web_opts *o = &l->web->o;
	struct word_list words = { .arena = &l->web->arena }, envp = words;
	static char *none[] = { NULL };

	for (char *const *line = environ; *line; line++)
		if (is_kept(o, arena_text(envp.arena, (struct str){ *line, strcspn(*line, "=") })))
			words_add(&envp, *line);
	words_add(&words, arena_text(words.arena, STR("--bounded")));
	add_each(&words, "--include-dir", &o->include_dir);
	add_each(&words, "--may-read", &o->launch_env);
	add_each(&words, "--may-start", &o->launch_command);
	l->envp = envp.v ? envp.v : none;
	l->bounds = words.v;
}

static int command_line(const struct launch *l, char *const *more, struct arena *a,
			char *const **out, struct err *e)
{
	struct word_list words = { .arena = a };
	struct buf program = { 0 };
	int rc = program_exec(&program, e);

	if (rc == 0) {
		words_add(&words, arena_text(a, buf_str(&program)));
		words_add(&words, arena_text(a, STR("run")));
		for (; *more; more++)
			words_add(&words, *more);
		for (char *const *bound = l->bounds; *bound; bound++)
			words_add(&words, *bound);
		*out = words.v;
	}
	buf_release(&program);
	return rc;
}

/* ---- asking it ---- */

int launch_ask(const struct web_request *r, struct web_answer *a, char *const *more,
	       struct str input, struct buf *out, struct buf *errors, struct err *e)
{
	struct tool_opts o = {
		.envp = r->web->launch->envp, .input = input, .timeout_s = CHECK_SECONDS,
		.cancel = r->is_gone, .file_bytes_max = CHECK_FILE_BYTES_MAX,
		.memory_bytes_max = CHECK_MEMORY_BYTES_MAX,
	};
	char *const *words;
	int rc = command_line(r->web->launch, more, r->arena, &words, e);

	if (rc < 0)
		return -1;
	o.argv = (const char *const *)words;
	rc = tool_run_within(&o, out, errors, e);
	if ((rc < 0 && e->code == ERR_LIMIT) || rc >= 128) {
		a->status = 422;
		return err_set(e, ERR_USAGE, "the check of this configuration was ended, because it took "
			       "more than %d s, 1 GiB of memory, or %u MiB for its plan; make the "
			       "configuration smaller", CHECK_SECONDS, CHECK_FILE_BYTES_MAX >> 20);
	}
	if (rc < 0 && e->code == ERR_CANCELLED) { /* only for the log; no client reads it */
		a->status = 408;
		e->code = ERR_USAGE;
	}
	return rc;
}

/* Reserves a place among the running checks; -1: none is left, and a is the refusal. */
static int take_place(const struct web_request *r, struct web_answer *a, size_t *at, struct err *e)
{
	struct launch *l = r->web->launch;
	bool is_own = false;

	*at = LAUNCH_CHECKS_MAX;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < LAUNCH_CHECKS_MAX; i++) {
		is_own = is_own || (l->checking[i].p && str_eq(l->checking[i], r->who));
		if (!l->checking[i].p)
			*at = i;
	}
	if (!is_own && *at < LAUNCH_CHECKS_MAX)
		l->checking[*at] = r->who;
	pthread_mutex_unlock(&l->lock);
	if (!is_own && *at < LAUNCH_CHECKS_MAX)
		return 0;
	a->status = 429;
	web_set_header(r, a, "Retry-After", "1");
	return err_set(e, ERR_USAGE, is_own ? "another configuration of %.*s is being checked; one is "
		       "checked at a time for each user" : "%.*s has to wait, because this "
		       "dashboard is already checking as many configurations as it can at once",
		       (int)r->who.n, r->who.p);
}

int launch_ask_once(const struct web_request *r, struct web_answer *a, char *const *more,
		    struct str input, struct buf *out, struct buf *errors, struct err *e)
{
	struct launch *l = r->web->launch;
	size_t at;
	int rc;

	if (take_place(r, a, &at, e) < 0)
		return -1;
	rc = launch_ask(r, a, more, input, out, errors, e);
	pthread_mutex_lock(&l->lock);
	l->checking[at] = (struct str){ 0 };
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* ---- a job ---- */

char *launch_folder(const struct web *w, const struct job *job)
{
	char id[17];

	if (job->id.n != 16)
		return NULL;
	for (size_t i = 0; i < 16; i++)
		if (str_hex(job->id.p[i]) < 0)
			return NULL;
	snprintf(id, sizeof(id), "%.*s", 16, job->id.p);
	return file_join(w->o.folder, id);
}

static void add_detail(const struct launch_job *s, struct buf *out)
{
	struct json_writer j = json_writer(out);
	struct tree_process self = { 0 };
	char owner[64] = "";

	if (tree_process_read(getpid(), &self))
		snprintf(owner, sizeof(owner), "%d %llu", (int)self.pid,
			 (unsigned long long)self.start);
	json_begin_object(&j);
	json_member_text(&j, "name", s->name);
	json_member_text(&j, "status", s->status);
	json_member_text(&j, "reason", s->reason);
	json_key(&j, "exit");
	if (s->has_code)
		json_put_int(&j, s->code);
	else
		json_put_null(&j);
	json_member_text(&j, "by", s->by);
	json_member_text(&j, "owner", owner);
	json_member_raw(&j, "run_ids", str_of(s->run_ids ? s->run_ids : "[]"));
	job_put_counts(&j, s->n_outcome);
	json_end_object(&j);
}

static char *text_of(const struct json_value *v, const char *key)
{
	struct str text = json_text(json_get(v, key), (struct str){ 0 });

	return text.p ? mem_copy(text.p, text.n) : NULL;
}

static void read_status(struct launch_job *s, struct str document)
{
	struct arena arena = { 0 };
	struct json_value *v = NULL;

	if (document.n && json_parse(&arena, document, &v, NULL) == 0) {
		free(s->status);
		s->status = text_of(v, "status");
		/* The run was ended from outside. */
		if (s->status && strcmp(s->status, "running") == 0) {
			free(s->status);
			s->status = mem_text("interrupted");
		}
		free(s->reason);
		s->reason = text_of(json_get(v, "error"), "reason");
	}
	arena_release(&arena);
}

static bool read_end(const char *path, size_t bytes, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && buf_reserve(out, bytes) == 0) {
		off_t at = st.st_size > (off_t)bytes ? st.st_size - (off_t)bytes : 0;

		n = pread(fd, out->data, bytes, at);
	}
	if (n > 0) {
		out->len = (size_t)n;
		out->data[n] = 0;
	}
	if (fd >= 0)
		close(fd);
	return n > 0;
}

static void set_state(struct launch *l, const struct launch_job *s, const char *state)
{
	struct buf detail = { 0 };
	struct err e = { 0 };

	add_detail(s, &detail);
	if (store_job_state(l->web->store, s->id, state, buf_str(&detail), &e) < 0)
		log_say(l->web, NULL, "error", e.text);
	atomic_fetch_add(&l->web->job_changes, 1);
	buf_release(&detail);
}

static void job_free(struct launch_job *s)
{
	free(s->name);
	free(s->by);
	free(s->cancelled_by);
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

static int open_log(const struct launch_job *s)
{
	char *path = file_join(s->folder, LAUNCH_LOG);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

	free(path);
	return fd;
}

static int start(const struct launch *l, struct launch_job *s, struct keeper **out, struct err *e)
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
	} else if (command_line(l, more, &arena, &o.argv, e) == 0) {
		flock(log, LOCK_EX | LOCK_NB);
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

/*
 * The last useful line of the log, for a run that left no document or no reason in it. Before
 * "failed: 1 of 2 conditions", the first condition (`require`) that was not met.
 */
static char *exit_reason(const struct launch_job *s)
{
	char *path = file_join(s->folder, LAUNCH_LOG), *words = NULL;
	struct buf text = { 0 }, reason = { 0 };
	struct str rest, line, last = { 0 }, condition = { 0 }, failed = STR("FAILED: ");

	if (read_end(path, LOG_END_BYTES, &text)) {
		rest = buf_str(&text);
		while (rest.n) {
			line = str_trim(str_cut(&rest, '\n'));
			if (!condition.n && str_starts(line, failed))
				condition = (struct str){ line.p + failed.n, line.n - failed.n };
			if (line.n)
				last = line;
		}
		if (condition.n && str_starts(last, STR("failed: ")))
			buf_printf(&reason, "%.*s; ", (int)condition.n, condition.p);
		buf_add_str(&reason, last);
		if (reason.len > REASON_BYTES)
			reason.len = REASON_BYTES;
		words = reason.len ? mem_copy(reason.data, reason.len) : NULL;
	}
	buf_release(&reason);
	buf_release(&text);
	free(path);
	return words;
}

/*
 * The program itself was killed, so nothing in its log says why; its last line is about something
 * else.
 */
static char *killed_reason(int signal)
{
	struct buf words = { 0 };

	buf_printf(&words, "profllm run was killed by signal %d (%s) while it ran", signal, strsignal(signal));
	if (signal == SIGKILL)
		buf_printf(&words, "; the kernel does that when memory runs out (journalctl -k says so)");
	return buf_take(&words);
}

#define DISK_FULL "the disk of --jobs-dir is full, so its log and its result are incomplete: make room " \
	"there, then launch it again"

/* Its log may then end in the middle of a line, which says nothing. */
static bool is_disk_full(const struct launch_job *s)
{
	int64_t bytes = file_free_bytes(s->folder);

	return bytes >= 0 && bytes < DISK_FULL_BYTES;
}

/* "cancelled", and by whom if that is known. */
static char *cancelled_reason(const struct launch_job *s, const char *when)
{
	struct buf words = { 0 };

	buf_printf(&words, "cancelled%s%s%s", s->cancelled_by ? " by " : "",
		   s->cancelled_by ? s->cancelled_by : "", when);
	return buf_take(&words);
}

/* A line of the job's own log, which its page shows. */
static void warn(const struct launch_job *s, const char *run_id, const char *text)
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

/* Stores the traces in the job's folder. The run is kept even if a trace is not. */
static void take_traces(struct launch *l, const struct launch_job *s, const char *path,
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

/* Stores the document that the run left. */
static int take_in(struct launch *l, struct launch_job *s, struct err *e)
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
		for (size_t i = 0; rc == 0 && i < file.n; i++) {
			s->n_outcome[result[i].outcome]++;
			if (result[i].id)
				take_traces(l, s, path, &file.run[i], result[i].id, &arena);
		}
	}
	json_begin_array(&j);
	for (size_t i = 0; rc == 0 && i < file.n; i++)
		json_put_str(&j, file.run[i].run_id);
	json_end_array(&j);
	set_text(&s->run_ids, buf_take(&ids));
	read_status(s, buf_str(&text));
	buf_release(&text);
	arena_release(&arena);
	free(path);
	return rc;
}

static void finish(struct launch *l, struct launch_job *s, const struct keeper_end *end)
{
	bool is_stopped = atomic_load(&l->is_ending), is_done;
	const char *state = "failed";
	struct err e = { 0 };
	int rc;

	s->has_code = end->is_known;
	s->code = end->code;
	rc = take_in(l, s, &e);
	/* A run that was stopped or cancelled may have completed before. */
	is_done = rc == 0 && (end->is_known ? end->code == 0 :
			      s->status && strcmp(s->status, "completed") == 0);
	if (s->code < 0)
		set_text(&s->reason, killed_reason(-s->code));
	else if (rc < 0 && s->code == 0)
		set_text(&s->reason, mem_text(e.text));
	else if (rc < 0 || (s->code && !s->reason))
		set_text(&s->reason, is_disk_full(s) ? mem_text(DISK_FULL) : exit_reason(s));
	if (is_done) {
		state = "done";
	} else if (s->is_left && !atomic_load(&s->is_cancelled)) {
		set_text(&s->reason, mem_text("the dashboard ended while it ran"));
	} else if (is_stopped) {
		set_text(&s->reason, mem_text("the dashboard was stopped while it ran"));
	} else if (atomic_load(&s->is_cancelled)) {
		set_text(&s->reason, cancelled_reason(s, ""));
		state = "cancelled";
	}
	set_state(l, s, state);
}

/* Whether a process of the run lives. */
static bool is_alive(const struct launch_job *s)
{
	int log = open_log(s);
	bool is = log >= 0 && flock(log, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (log >= 0)
		close(log);
	return is;
}

/* Waits until the run's keeper has ended it, then stores what it has measured. */
static void end_left(struct launch *l, struct launch_job *s)
{
	int64_t until_ns = clock_mono_ns() + LEFT_NS;
	struct keeper_end end = { 0 };

	while (is_alive(s) && clock_mono_ns() < until_ns && !atomic_load(&l->is_ending))
		nanosleep(&(struct timespec){ 0, LOOK_MS * 1000000l }, NULL);
	if (!atomic_load(&l->is_ending)) /* else it is left to the next dashboard */
		finish(l, s, &end);
}

static void run_one(struct launch *l, struct launch_job *s)
{
	struct keeper_end end = { 0 };
	struct keeper *keeper;
	struct err e = { 0 };

	if (s->is_left) {
		end_left(l, s);
		return;
	}
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

/* ---- jobs that wait ---- */

/* Appends to the queue. */
static void enqueue(struct launch *l, struct launch_job *s)
{
	struct launch_job **at = &l->waiting;

	pthread_mutex_lock(&l->lock);
	while (*at)
		at = &(*at)->next;
	*at = s;
	pthread_cond_signal(&l->more);
	pthread_mutex_unlock(&l->lock);
}

int launch_add(struct launch *l, struct str config, struct str name, struct str by,
	       char id[static 17], struct err *e)
{
	struct launch_job *s = mem_alloc(sizeof(*s));
	struct buf detail = { 0 };
	char *path = NULL;
	int rc;

	s->name = mem_copy(name.n ? name.p : "", name.n);
	s->by = by.n ? mem_copy(by.p, by.n) : NULL;
	add_detail(s, &detail);
	rc = store_job_begin(l->web->store, STR("run"), buf_str(&detail), s->id, e);
	buf_release(&detail);
	if (rc == 0) {
		s->folder = file_join(l->web->o.folder, s->id);
		path = file_join(s->folder, LAUNCH_CONFIG);
		rc = file_mkdirs(s->folder, e) < 0 ? -1 : file_write_atomic(path, config, e);
		if (rc < 0) {
			set_text(&s->reason, mem_text(e->text));
			set_state(l, s, "failed");
		}
	}
	free(path);
	if (rc < 0) {
		job_free(s);
		return -1;
	}
	memcpy(id, s->id, sizeof(s->id));
	enqueue(l, s);
	return 0;
}

enum owner { OWNER_UNKNOWN, OWNER_GONE, OWNER_OTHER };

static enum owner owner_of(const struct json_value *detail)
{
	uint64_t start;
	pid_t pid;

	if (!tree_parse_process(json_text(json_get(detail, "owner"), STR("")), &pid, &start))
		return OWNER_UNKNOWN;
	return pid != getpid() && tree_is_running(pid, start) ? OWNER_OTHER : OWNER_GONE;
}

/*
 * Resumes a waiting or running job whose owner no longer exists. One without its folder, such as
 * after a restore on another machine, would wait for ever. A dashboard elsewhere may have it if the
 * store is PostgreSQL's; then it is left alone.
 */
static void resume_one(struct launch *l, const struct job *job, struct arena *a)
{
	struct json_value *detail = NULL;
	char *folder = launch_folder(l->web, job);
	struct launch_job *s;
	bool is_here = folder && file_is_dir(folder);
	enum owner owner;

	json_parse(a, job->detail, &detail, NULL);
	owner = owner_of(detail);
	if (owner == OWNER_OTHER || (!is_here && (owner == OWNER_UNKNOWN || !folder ||
						  strcmp(store_kind(l->web->store), "sqlite") != 0))) {
		free(folder);
		return;
	}
	s = mem_alloc(sizeof(*s));
	s->folder = folder;
	s->name = text_of(detail, "name");
	s->by = text_of(detail, "by");
	snprintf(s->id, sizeof(s->id), "%.*s", (int)job->id.n, job->id.p);
	s->is_left = !str_is(job->state, "waiting");
	if (is_here) {
		enqueue(l, s);
		return;
	}
	set_text(&s->reason, mem_text("its folder is not below --jobs-dir: the store was restored from a "
				      "backup, or --jobs-dir is another one; launch it again"));
	set_state(l, s, "failed");
	job_free(s);
}

static int resume_all(struct launch *l, struct err *e)
{
	struct arena arena = { 0 };
	struct job *job;
	size_t n;
	int rc = store_jobs(l->web->store, JOBS_LOOKED_AT, &arena, &job, &n, e);

	/* Those that ran, then those that waited, in the order of their requests. */
	for (int waits = 0; waits < 2; waits++)
		for (size_t i = rc == 0 ? n : 0; i-- > 0;)
			if (str_is(job[i].kind, "run") && !job_is_over(&job[i]) &&
			    str_is(job[i].state, "waiting") == waits)
				resume_one(l, &job[i], &arena);
	arena_release(&arena);
	return rc;
}

/* ---- the threads ---- */

/* Where a list has the job; where it ends, if it has not. */
static struct launch_job **find_job(struct launch_job **at, struct str id)
{
	while (*at && !str_is(id, (*at)->id))
		at = &(*at)->next;
	return at;
}

static void *runner_main(void *self)
{
	struct launch *l = self;
	struct launch_job *s;

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
		*find_job(&l->running, str_of(s->id)) = s->next;
		job_free(s);
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
 * Ends servers of runs that were killed together with their keepers: once, in a thread of its own.
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
	settle(l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	if (!w->o.launches || w->o.is_read_only)
		return 0;
	return resume_all(l, e) < 0 ? -1 : start_threads(l, e);
}

int launch_cancel(struct web *w, const struct job *job, struct str by, struct err *e)
{
	struct launch *l = w->launch;
	struct launch_job **at, *found, *lives;

	pthread_mutex_lock(&l->lock);
	at = find_job(&l->waiting, job->id);
	found = *at;
	/* What a left one has measured is still to be stored. */
	lives = found && found->is_left ? found : *find_job(&l->running, job->id);
	found = lives ? lives : found;
	if (found && by.n && !found->cancelled_by) /* read once is_cancelled is set */
		found->cancelled_by = mem_copy(by.p, by.n);
	if (lives)
		atomic_store(&lives->is_cancelled, true);
	else if (found)
		*at = found->next;
	pthread_mutex_unlock(&l->lock);
	if (lives)
		return 0;
	if (!found)
		return err_set(e, ERR_USAGE, "job %.*s is not run by this dashboard",
			       (int)job->id.n, job->id.p);
	set_text(&found->reason, cancelled_reason(found, " before it began"));
	set_state(l, found, "cancelled");
	job_free(found);
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
		struct launch_job *s = l->waiting;

		l->waiting = s->next;
		job_free(s);
	}
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->more);
	free(l);
	w->launch = NULL;
}
