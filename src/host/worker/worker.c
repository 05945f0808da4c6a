/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - see worker.h. All waiting is in await(): it sends the rest of the question, receives,
 * and checks every LOOK_MS whether it was cancelled, is overdue, or whether the program has ended,
 * because a process that it has forked may hold its socket open.
 */
#include "host/worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/proc/keeper.h"
#include "host/proc/exit_reason.h"
#include "host/proc/tool.h"
#include "host/worker/frame.h"

#define STATUS_NOT_EXECUTABLE 126 /* exit status of shells and env for that */
#define STATUS_NOT_FOUND 127

static const char *const names[] = {
	[WORKER_FAULT_NONE] = "none",
	[WORKER_FAULT_NOT_FOUND] = "program not found",
	[WORKER_FAULT_PACKAGE] = "package missing",
	[WORKER_FAULT_FLAG] = "bad flag",
	[WORKER_FAULT_MODEL] = "model not found",
	[WORKER_FAULT_MEMORY] = "out of memory",
	[WORKER_FAULT_UNSUPPORTED] = "unsupported",
	[WORKER_FAULT_DISK] = "out of disk",
	[WORKER_FAULT_KILLED] = "killed",
	[WORKER_FAULT_CRASHED] = "crash",
	[WORKER_FAULT_HUNG] = "no sign of life",
	[WORKER_FAULT_PROTOCOL] = "protocol",
	[WORKER_FAULT_CANCELLED] = "cancelled",
	[WORKER_FAULT_OTHER] = "error",
};

const char *worker_fault_name(enum worker_fault fault)
{
	assert((size_t)fault < sizeof(names) / sizeof(*names));
	return names[fault];
}

/* From an error frame's word: "memory", ...; unknown words give WORKER_FAULT_OTHER. */
static enum worker_fault fault_of_category(struct str category)
{
	static const struct { const char *word; enum worker_fault fault; } words[] = {
		{ "missing", WORKER_FAULT_PACKAGE }, { "flag", WORKER_FAULT_FLAG },
		{ "model", WORKER_FAULT_MODEL }, { "memory", WORKER_FAULT_MEMORY },
		{ "unsupported", WORKER_FAULT_UNSUPPORTED },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_is(category, words[i].word))
			return words[i].fault;
	return WORKER_FAULT_OTHER;
}

static bool has(struct str s, const char *text)
{
	return s.n && memmem(s.p, s.n, text, strlen(text)) != NULL;
}

/* Engines complain about optional packages while all is well: only the last line counts. */
static bool is_package(struct str line)
{
	return has(line, "No module named") || str_starts(line, STR("ImportError")) ||
	       has(line, "error while loading shared libraries");
}

/* Of a shell, or of an interpreter that cannot find its script. */
static bool is_program(struct str line, bool has_code, int code)
{
	return (has_code && (code == STATUS_NOT_FOUND || code == STATUS_NOT_EXECUTABLE)) ||
	       has(line, "can't open") || has(line, "Can't open") || has(line, "cannot open");
}

/*
 * From a program that ended without an answer: by its log, else by its exit status. reason: the
 * line of the log that says so, or empty. is_start: it had not sent anything, so what was not found
 * may be the program itself.
 */
static enum worker_fault fault_of_end(struct str log, bool is_start, bool has_code, int code,
				      const struct oom_counter *oom, struct str *reason)
{
	static const enum worker_fault faults[] = {
		[LAST_SIGN_NONE] = WORKER_FAULT_CRASHED,
		[LAST_SIGN_DISK] = WORKER_FAULT_DISK,
		[LAST_SIGN_PORT] = WORKER_FAULT_CRASHED,
		[LAST_SIGN_MEMORY] = WORKER_FAULT_MEMORY,
		[LAST_SIGN_FLAG] = WORKER_FAULT_FLAG,
		[LAST_SIGN_MODEL] = WORKER_FAULT_MODEL,
		[LAST_SIGN_KILLED] = WORKER_FAULT_KILLED,
	};
	struct str line = exit_reason_line(log);
	enum last_sign sign;

	*reason = line;
	if (is_package(line))
		return WORKER_FAULT_PACKAGE;
	if (is_start && is_program(line, has_code, code))
		return WORKER_FAULT_NOT_FOUND;
	sign = exit_reason_sign(log, has_code, code, oom, reason);
	return faults[sign];
}

/* ERR_USAGE for what the user can fix on the command line. */
static enum err_code fault_code(enum worker_fault fault)
{
	switch (fault) {
	case WORKER_FAULT_NOT_FOUND:
	case WORKER_FAULT_FLAG:
		return ERR_USAGE;
	case WORKER_FAULT_CANCELLED:
		return ERR_CANCELLED;
	case WORKER_FAULT_DISK:
		return ERR_IO;
	default:
		return ERR_RUN;
	}
}

#define LOOK_MS 50
#define CLOSED_NS 2000000000 /* for the end of a program that has closed its socket */
#define AT_START "starting"

struct engine_worker {
	char *name, *log_path;   /* log_path NULL: nameless */
	struct worker_hooks hooks;
	double load_s, silence_s, grace_s;
	struct keeper *keeper;
	int fd, log_fd;
	int64_t log_began;
	struct frames in;
	struct buf out;
	int64_t id;              /* of the last question */
	bool is_over;            /* its messages are no longer trusted */
	bool is_cancelled;
	struct worker_hello hello;
	struct oom_counter oom;  /* since its start */
	struct arena arena;
};

/* State of one await. */
struct wait {
	const char *during;      /* "load", for sentences */
	double limit_s;
	bool is_total;           /* limit_s is for all of it, not between two signs of life */
	int64_t from_ns, closed_ns;
	size_t sent;             /* of w->out */
	bool is_closed;
	struct worker_failure *why;
};

/* ---- faults ---- */

static void copy_text(struct str text, char *out, size_t room)
{
	size_t n = text.n < room - 1 ? text.n : room - 1;

	if (n)
		memcpy(out, text.p, n);
	out[n] = 0;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < ' ')
			out[i] = ' ';
}

static void show_tail(struct engine_worker *w, struct worker_failure *why)
{
	struct buf log = { 0 }, whose = { 0 };

	exit_reason_read(w->log_fd, w->log_began, &log);
	exit_reason_tail(buf_str(&log), why->tail, sizeof(why->tail));
	buf_printf(&whose, "the log of %s%s%s", w->name, w->log_path ? ", " : "",
		   w->log_path ? w->log_path : "");
	exit_reason_show(why->tail, whose.data, w->hooks.warn, w->hooks.self);
	buf_release(&log);
	buf_release(&whose);
}

static int fail_cancelled(struct engine_worker *w, struct wait *t, struct err *e)
{
	w->is_over = w->is_cancelled = true;
	t->why->fault = WORKER_FAULT_CANCELLED;
	return err_set(e, ERR_CANCELLED, "stopped while %s was busy with %s", w->name, t->during);
}

static int fail_hung(struct engine_worker *w, struct wait *t, struct err *e)
{
	w->is_over = true;
	t->why->fault = WORKER_FAULT_HUNG;
	show_tail(w, t->why);
	if (t->is_total)
		return err_set(e, ERR_RUN, "%s was not done with %s within %g seconds "
			       "(--load-timeout)", w->name, t->during, t->limit_s);
	return err_set(e, ERR_RUN, "%s gave no sign of life for %g seconds during %s "
		       "(--worker-timeout)", w->name, t->limit_s, t->during);
}

/* inner: the fault, without context. */
static int fail_protocol(struct engine_worker *w, struct worker_failure *why, const char *during,
			 const char *inner, struct err *e)
{
	w->is_over = true;
	why->fault = WORKER_FAULT_PROTOCOL;
	snprintf(why->reason, sizeof(why->reason), "%.500s", inner);
	show_tail(w, why);
	return err_set(e, ERR_RUN, "%s broke the protocol during %s: %s", w->name, during, inner);
}

/* "the vllm worker was killed by signal 9 (Killed) during load (out of memory: ...)" */
static int fail_dead(struct engine_worker *w, struct wait *t, const struct keeper_end *end,
		     struct err *e)
{
	struct buf log = { 0 }, how = { 0 };
	struct str reason;

	w->is_over = true;
	exit_reason_read(w->log_fd, w->log_began, &log);
	t->why->has_code = end->is_known;
	t->why->code = end->code;
	t->why->fault = fault_of_end(buf_str(&log), !w->hello.engine, end->is_known, end->code,
				     &w->oom, &reason);
	if (exit_reason_is_disk_full(w->log_fd))
		t->why->fault = WORKER_FAULT_DISK;
	copy_text(reason, t->why->reason, sizeof(t->why->reason));
	buf_release(&log);
	show_tail(w, t->why);
	if (!end->is_known)
		buf_add_text(&how, "was killed together with its keeper");
	else if (end->code < 0)
		buf_printf(&how, "was killed by signal %d (%s)", -end->code, strsignal(-end->code));
	else
		buf_printf(&how, "ended with status %d without an answer", end->code);
	err_set(e, fault_code(t->why->fault), "%s %s during %s (%s%s%s)", w->name, how.data,
		t->during, worker_fault_name(t->why->fault), t->why->reason[0] ? ": " : "",
		t->why->reason);
	buf_release(&how);
	return -1;
}

/* The worker reported the fault itself; its log is not shown if its sentence says everything. */
static int fail_answer(struct engine_worker *w, struct wait *t, const struct worker_message *m,
		       struct err *e)
{
	struct worker_failure *why = t->why;
	struct buf text = { 0 };

	json_unescape(&text, m->text);
	copy_text(str_trim(buf_str(&text)), why->reason, sizeof(why->reason));
	buf_release(&text);
	why->fault = fault_of_category(m->category);
	if (why->fault == WORKER_FAULT_OTHER || why->fault == WORKER_FAULT_MEMORY)
		show_tail(w, why);
	if (why->fault == WORKER_FAULT_OTHER)
		return err_set(e, ERR_RUN, "%s failed during %s: %s", w->name, t->during, why->reason);
	return err_set(e, fault_code(why->fault), "%s failed during %s (%s): %s", w->name, t->during,
		       worker_fault_name(why->fault), why->reason);
}

int worker_distrust(struct engine_worker *w, struct err *e, const char *fmt, ...)
{
	struct worker_failure why = { 0 };
	char text[512];
	va_list args;

	assert(!w->is_over);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return fail_protocol(w, &why, "its answer", text, e);
}

/* ---- waiting ---- */

static bool is_cancelled(const struct engine_worker *w)
{
	return w->hooks.cancel && atomic_load(w->hooks.cancel);
}

static bool is_overdue(const struct wait *t)
{
	return (double)(clock_mono_ns() - t->from_ns) / 1e9 > t->limit_s;
}

/* A send error is ignored: a program that does not read will end, or answers anyway. */
static void send_more(struct engine_worker *w, struct wait *t)
{
	ssize_t n = send(w->fd, w->out.data + t->sent, w->out.len - t->sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		t->sent += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		t->sent = w->out.len;
}

/* Whether anything was received. */
static bool receive_more(struct engine_worker *w, struct wait *t)
{
	char *room = frames_room(&w->in, READ_BYTES);
	ssize_t n = recv(w->fd, room, READ_BYTES, MSG_DONTWAIT);

	frames_add(&w->in, n > 0 ? (size_t)n : 0);
	if ((n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) && !t->is_closed) {
		t->is_closed = true;
		t->closed_ns = clock_mono_ns();
	}
	return n > 0;
}

static void tell(struct engine_worker *w, const struct worker_message *m)
{
	struct buf text = { 0 };

	if (m->kind == MESSAGE_PROGRESS && w->hooks.progress) {
		w->hooks.progress(w->hooks.self, m->done, m->total);
	} else if (m->kind == MESSAGE_LINE && w->hooks.line) {
		json_unescape(&text, m->text);
		w->hooks.line(w->hooks.self, text.data ? text.data : "");
		buf_release(&text);
	}
}

/* 1: *m is neither progress nor a line; 0: nothing complete has come; -1. */
static int next_message(struct engine_worker *w, struct wait *t, struct worker_message *m,
			struct err *e)
{
	struct err inner = { 0 };
	struct str frame;
	int rc;

	while ((rc = frames_next(&w->in, &frame, &inner)) == 1) {
		if (message_read(frame, m, &inner) < 0)
			break;
		if (m->kind != MESSAGE_PROGRESS && m->kind != MESSAGE_LINE)
			return 1;
		tell(w, m);
		if (!t->is_total)
			t->from_ns = clock_mono_ns();
	}
	return rc == 0 ? 0 : fail_protocol(w, t->why, t->during, inner.text, e);
}

/* Nothing more can come: why. 0: it is still ending. */
static int judge_end(struct engine_worker *w, struct wait *t, struct err *e)
{
	struct keeper_end end;

	if (keeper_has_ended(w->keeper, t->is_closed ? LOOK_MS : 0, &end)) {
		/* Messages sent before it ended. */
		if (!t->is_closed && receive_more(w, t))
			return 0;
		if (frames_is_amid(&w->in) && end.is_known && end.code == 0)
			return fail_protocol(w, t->why, t->during,
					     "it ended in the middle of a frame", e);
		return fail_dead(w, t, &end, e);
	}
	if (t->is_closed && clock_mono_ns() - t->closed_ns > CLOSED_NS)
		return fail_protocol(w, t->why, t->during,
				     "it closed its socket without an answer", e);
	return 0;
}

/* Sends w->out and waits for a message other than progress or a line. */
static int await(struct engine_worker *w, struct wait *t, struct worker_message *m, struct err *e)
{
	int rc;

	t->from_ns = clock_mono_ns();
	for (;;) {
		struct pollfd p = { .fd = w->fd, .events = POLLIN };

		rc = next_message(w, t, m, e);
		if (rc)
			return rc;
		if (is_cancelled(w))
			return fail_cancelled(w, t, e);
		if (is_overdue(t))
			return fail_hung(w, t, e);
		if (t->sent < w->out.len)
			p.events |= POLLOUT;
		if (!t->is_closed && poll(&p, 1, LOOK_MS) > 0) {
			if (p.revents & POLLOUT)
				send_more(w, t);
			if (p.revents & (POLLIN | POLLHUP | POLLERR))
				receive_more(w, t);
		} else if (judge_end(w, t, e) < 0) {
			return -1;
		}
	}
}

/* ---- starting ---- */

static int open_log(struct engine_worker *w, struct err *e)
{
	struct stat st;
	char *copy;
	int rc;

	if (!w->log_path) {
		w->log_fd = file_unnamed(NULL);
		return w->log_fd >= 0 ? 0 : err_set(e, ERR_IO, "cannot make a file for the log of %s: %s",
						    w->name, strerror(errno));
	}
	copy = mem_text(w->log_path);
	rc = file_mkdirs(dirname(copy), e);
	free(copy);
	if (rc < 0)
		return -1;
	w->log_fd = open(w->log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (w->log_fd < 0 || fstat(w->log_fd, &st) < 0)
		return err_set(e, ERR_IO, "cannot write the log of %s, %s: %s", w->name, w->log_path,
			       strerror(errno));
	w->log_began = st.st_size;
	return 0;
}

static int launch(struct engine_worker *w, const struct worker_opts *o, struct worker_failure *why,
		  struct err *e)
{
	char *own[] = { (char[]){ WORKER_FD_VARIABLE "=3" }, NULL }, **envp;
	int pair[2], error = 0, rc;

	assert(WORKER_FD == KEEPER_PASSED_FD);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, ERR_RUN, "cannot start %s: %s", w->name, strerror(errno));
	w->fd = pair[0];
	envp = environment_with(o->env, own);
	w->hello.began_ns = clock_mono_ns();
	rc = keeper_start(&(struct keeper_opts){
		.argv = o->argv, .envp = envp, .out_fd = w->log_fd, .err_fd = w->log_fd,
		.follow_fd = o->show_fd, .pass_fd = pair[1], .grace_s = o->grace_s },
		&w->keeper, &error, e);
	free(envp);
	close(pair[1]);
	if (rc < 0 && error) {
		why->fault = WORKER_FAULT_NOT_FOUND;
		return err_set(e, ERR_USAGE, "%s cannot be started: '%s': %s", w->name, o->argv[0],
			       strerror(error));
	}
	if (rc == 0)
		oom_begin(&w->oom, keeper_root(w->keeper));
	return rc;
}

static const char *keep_text(struct engine_worker *w, struct str escaped)
{
	struct buf text = { 0 };
	const char *kept;

	json_unescape(&text, escaped);
	kept = arena_text(&w->arena, buf_str(&text));
	buf_release(&text);
	return kept;
}

static int await_hello(struct engine_worker *w, struct worker_failure *why, struct err *e)
{
	struct wait t = { .during = AT_START, .limit_s = w->load_s, .is_total = true, .why = why };
	struct worker_message m;
	char text[64];

	if (await(w, &t, &m, e) < 0)
		return -1;
	if (m.kind == MESSAGE_ERROR) {
		fail_answer(w, &t, &m, e);
		w->is_over = true;
		return -1;
	}
	if (m.kind != MESSAGE_HELLO)
		return fail_protocol(w, why, AT_START, "its first frame is no hello", e);
	if (m.protocol != WORKER_PROTOCOL) {
		snprintf(text, sizeof(text), "it speaks version %lld, we speak %d",
			 (long long)m.protocol, WORKER_PROTOCOL);
		return fail_protocol(w, why, AT_START, text, e);
	}
	w->hello.spawn_s = (double)(clock_mono_ns() - w->hello.began_ns) / 1e9;
	w->hello.engine = keep_text(w, m.engine);
	w->hello.version = keep_text(w, m.version);
	w->hello.features = m.features;
	w->hello.features.raw = arena_str(&w->arena, m.features.raw);
	return 0;
}

int worker_start(const struct worker_opts *o, struct engine_worker **out,
		 struct worker_failure *why, struct err *e)
{
	struct engine_worker *w = mem_alloc(sizeof(*w));
	struct worker_failure unasked = { 0 };

	assert(o->name && o->argv);
	why = why ? why : &unasked;
	*why = (struct worker_failure){ 0 };
	w->name = mem_text(o->name);
	w->log_path = mem_text(o->log_path);
	w->hooks = o->hooks;
	w->load_s = o->load_s;
	w->silence_s = o->silence_s;
	w->grace_s = o->grace_s;
	w->fd = w->log_fd = -1;
	if (open_log(w, e) == 0 && launch(w, o, why, e) == 0 && await_hello(w, why, e) == 0) {
		*out = w;
		return 0;
	}
	if (why->fault == WORKER_FAULT_NONE)
		why->fault = WORKER_FAULT_OTHER;
	w->is_over = true;
	worker_stop(w, NULL);
	return -1;
}

const struct worker_hello *worker_hello(const struct engine_worker *w)
{
	return &w->hello;
}

bool worker_has(const struct engine_worker *w, const char *feature)
{
	struct json_iter it = json_iter(w->hello.features);
	struct json_slice v;
	struct str key;

	while (json_each(&it, &key, &v) == 1)
		if (str_is(v.raw, feature))
			return true;
	return false;
}

/* ---- asking ---- */

static int put_question(struct engine_worker *w, const char *type, const struct buf *members,
			struct err *e)
{
	size_t begin;

	buf_reset(&w->out);
	begin = frame_begin(&w->out);
	buf_printf(&w->out, "{\"id\":%lld,\"type\":\"%s\"", (long long)++w->id, type);
	if (members && members->len) {
		buf_add_char(&w->out, ',');
		buf_add_str(&w->out, buf_str(members));
	}
	buf_add_char(&w->out, '}');
	return frame_end(&w->out, begin, e);
}

static int ask(struct engine_worker *w, struct wait *t, struct worker_reply *out, struct err *e)
{
	struct worker_message m;
	char text[96];

	out->asked_ns = clock_mono_ns();
	if (await(w, t, &m, e) < 0)
		return -1;
	out->answered_ns = clock_mono_ns();
	if (m.kind == MESSAGE_HELLO)
		return fail_protocol(w, t->why, t->during, "a second hello", e);
	if (m.has_id && m.id != w->id) {
		snprintf(text, sizeof(text), "question %lld was answered as %lld", (long long)w->id,
			 (long long)m.id);
		return fail_protocol(w, t->why, t->during, text, e);
	}
	if (m.kind == MESSAGE_ERROR)
		return fail_answer(w, t, &m, e);
	out->body = m.body;
	/* Sent before all of the question was read: it answers something else. */
	if (t->sent < w->out.len)
		return fail_protocol(w, t->why, t->during, "an answer before the question's end", e);
	return 0;
}

int worker_call(struct engine_worker *w, const char *type, const struct buf *members,
		struct worker_reply *out, struct worker_failure *why, struct err *e)
{
	struct worker_failure unasked = { 0 };
	struct wait t = { .during = type, .limit_s = w->silence_s };

	assert(!w->is_over);
	t.why = why ? why : &unasked;
	*t.why = (struct worker_failure){ 0 };
	if (strcmp(type, "load") == 0) {
		t.limit_s = w->load_s;
		t.is_total = true;
	}
	return put_question(w, type, members, e) < 0 ? -1 : ask(w, &t, out, e);
}

/* ---- stopping ---- */

/* Asks for a clean shutdown; its answer and how it ends are ignored. */
static void shut_down(struct engine_worker *w)
{
	int64_t until_ns = clock_mono_ns() + (int64_t)(w->grace_s * 1e9);
	struct worker_failure why = { 0 };
	struct wait t = { .during = "shutdown", .limit_s = w->grace_s, .is_total = true, .why = &why };
	struct worker_hooks hooks = w->hooks;
	struct worker_reply reply;

	w->hooks.warn = NULL;
	if (put_question(w, "shutdown", NULL, NULL) == 0)
		ask(w, &t, &reply, NULL);
	while (!is_cancelled(w) && clock_mono_ns() < until_ns &&
	       !keeper_has_ended(w->keeper, LOOK_MS, NULL))
		;
	w->hooks = hooks;
	if (hooks.warn && !is_cancelled(w) && !keeper_has_ended(w->keeper, 0, NULL)) {
		struct buf text = { 0 };

		buf_printf(&text, "%s did not end within %g seconds when it was asked to", w->name,
			   w->grace_s);
		hooks.warn(hooks.self, text.data);
		buf_release(&text);
	}
}

int worker_stop(struct engine_worker *w, struct err *e)
{
	/* The rest of a failed worker has nothing to save. */
	atomic_bool hurry;
	int rc = 0;

	if (!w)
		return 0;
	if (w->keeper && !w->is_over && !is_cancelled(w))
		shut_down(w);
	if (w->fd >= 0)
		close(w->fd);
	atomic_init(&hurry, w->is_over && !w->is_cancelled);
	if (w->keeper && (rc = keeper_stop(w->keeper, &hurry, e)) < 0)
		err_wrap(e, "of %s", w->name);
	if (w->log_fd >= 0)
		close(w->log_fd);
	frames_release(&w->in);
	buf_release(&w->out);
	arena_release(&w->arena);
	free(w->name);
	free(w->log_path);
	free(w);
	return rc;
}
