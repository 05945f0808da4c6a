/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.h - command lines of the program, each in a child process of the test and without another
 * program: what main() would do, with its output kept.
 *
 * A test is a table of command lines. What a line prints, its exit status and the files it wrote
 * are compared with tests/unit/answers/TEST.txt, where each line has a section of its own;
 * UPDATE_GOLDEN=1 writes the file: read the diff. The current folder is the scratch folder.
 *
 * In a line, 'x y' and "x y" are one word, $NAME is what verb_let gave it, and `profllm` as a
 * command that something else starts is $PROFLLM: this test program, which does what its arguments
 * say when it has some.
 */
#pragma once
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

int profllm_main(int argc, char **argv);
#define main profllm_main
#include "main.c"
#undef main

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define VERB_WORDS_MAX 96
#define VERB_NAMES_MAX 16
#define VERB_SERVERS_MAX 8
#define VERB_PATIENCE_NS 60000000000ll

enum {
	VERB_EXACT,
	VERB_TIMES = 1,     /* numbers with a fraction become # */
	VERB_ERR_TIMES = 2, /* on stderr alone */
	VERB_NO_ERR = 4,    /* stderr is not compared */
	VERB_NO_OUT = 8,    /* stdout is not */
	VERB_FLAT = 16,     /* JSON files become a line for each value, and of times only names */
	VERB_TERMINAL = 32, /* input and output are a terminal, whose output is stdout */
};

struct verb_case {
	const char *line;  /* without "profllm" */
	int status;
	unsigned mask;
	/*
	 * Those that are compared too, with blanks between them; may be NULL. Of +N:FILE what is
	 * new, of which there are N lines some time.
	 */
	const char *files;
	const char *env;   /* NAME=VALUE with blanks between them; may be NULL */
	const char *const *varies; /* see verb_varies; ended by NULL; may be NULL */
	const char *input; /* its standard input; NULL: none */
};

static char verb_root[4096]; /* the folder that the test was started in */
static struct { const char *name; char value[512]; } verb_name[VERB_NAMES_MAX];
static const char *verb_input; /* the file that the next line reads; NULL: /dev/null */
static unsigned verb_lines; /* so far; of a child also $VERB_LINE */
static pid_t verb_server[VERB_SERVERS_MAX];

static inline const char *verb_value(struct str name)
{
	for (size_t i = 0; i < VERB_NAMES_MAX && verb_name[i].name; i++)
		if (str_eq(name, str_of(verb_name[i].name)))
			return verb_name[i].value;
	return NULL;
}

/* The child of verb_begin ends with what this process had allocated: no leak of the program. */
#define VERB_EXPORTED __attribute__((visibility("default")))
VERB_EXPORTED const char *__lsan_default_suppressions(void);
VERB_EXPORTED const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:verb_add_file\nleak:verb_filled\nleak:verb_environment\nleak:verb_stored\n"
	       "leak:verb_replace\nleak:verb_answer\n";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

/* From now on $NAME is value. */
static inline void verb_let(const char *name, const char *value)
{
	size_t i = 0;

	while (i < VERB_NAMES_MAX && verb_name[i].name && strcmp(verb_name[i].name, name) != 0)
		i++;
	assert_true(i < VERB_NAMES_MAX);
	verb_name[i].name = name;
	assert_true(strlen(value) < sizeof(verb_name[i].value));
	memcpy(verb_name[i].value, value, strlen(value) + 1);
}

/* The text with its $NAMEs replaced; heap. */
static inline char *verb_filled(const char *text)
{
	struct buf out = { 0 };

	while (*text) {
		size_t n = 1;
		const char *value;

		while (*text == '$' && (isupper((unsigned char)text[n]) || text[n] == '_'))
			n++;
		value = n > 1 ? verb_value((struct str){ text + 1, n - 1 }) : NULL;
		if (value)
			buf_add_text(&out, value);
		else
			buf_add(&out, text, n);
		text += n;
	}
	buf_add_char(&out, '\0');
	return out.data;
}

/* A line's words after argv[0]; the text is cut into them. */
static inline int verb_words(char *text, char **argv)
{
	int n = 0;

	for (argv[n++] = (char *)"profllm"; *text; n++) {
		char *to = text, quote = 0;

		assert_true(n < VERB_WORDS_MAX);
		for (argv[n] = text; *text && (quote || *text != ' '); text++) {
			if (quote ? *text == quote : *text == '\'' || *text == '"')
				quote = quote ? 0 : *text;
			else
				*to++ = *text;
		}
		while (*text == ' ')
			text++;
		*to = '\0';
	}
	argv[n] = NULL;
	return n;
}

static inline void verb_environment(const char *text)
{
	char *filled = verb_filled(text ? text : ""), *argv[VERB_WORDS_MAX];
	int n = verb_words(filled, argv);

	for (int i = 1; i < n; i++)
		putenv(argv[i]);
}

/* A child that does what a command line says; its output goes to two files. */
static inline pid_t verb_begin(const char *line, const char *env, const char *out, const char *err)
{
	pid_t parent = getpid(), pid;
	char number[16];

	verb_lines++;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *argv[VERB_WORDS_MAX + 1];
		int n = verb_words(verb_filled(line), argv);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || !freopen(verb_input ? verb_input : "/dev/null", "r", stdin) ||
		    !freopen(out, "w", stdout) || !freopen(err, "w", stderr))
			_exit(127);
		verb_environment(env);
		snprintf(number, sizeof(number), "%u", verb_lines);
		setenv("VERB_LINE", number, 1);
		exit(profllm_main(n, argv));
	}
	return pid;
}

/* Its exit status; 128 and the signal that ended it. */
static inline int verb_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until a file has something in it. */
static inline void verb_wait_for(const char *path, pid_t pid)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;
	struct stat st;

	while (stat(path, &st) < 0 || st.st_size == 0) {
		if (clock_mono_ns() > until_ns || waitpid(pid, NULL, WNOHANG) == pid)
			fail_msg("%s does not appear", path);
		usleep(1000);
	}
}

/* A simulator on a port of its own, which $NAME is from now on. Ends with the test. */
static inline void verb_sim(const char *name, const char *options)
{
	char line[1024], port_file[64], out[80], err[80], port[16] = "";
	size_t i = 0;
	FILE *f;

	while (verb_server[i])
		assert_true(++i < VERB_SERVERS_MAX);
	snprintf(port_file, sizeof(port_file), "%s/%s.port", dir, name);
	snprintf(out, sizeof(out), "%s.out", port_file);
	snprintf(err, sizeof(err), "%s.err", port_file);
	snprintf(line, sizeof(line), "sim --port 0 --port-file %s %s", port_file, options);
	verb_server[i] = verb_begin(line, NULL, out, err);
	verb_wait_for(port_file, verb_server[i]);
	f = fopen(port_file, "r");
	assert_true(f && fscanf(f, "%15s", port) == 1);
	fclose(f);
	verb_let(name, port);
}

/* A port that nothing listens on just now. */
static inline void verb_free_port(const char *name)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[8];

	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	close(fd);
	snprintf(text, sizeof(text), "%u", ntohs(a.sin_port));
	verb_let(name, text);
}

/* ---- answers ---- */

#define INSTANT_DIGITS 13 /* of nanoseconds since 1970, and of what is added up of them */

/* Numbers with a fraction become #, also their signs,
and "huge" what no measurement here can be. */
static inline void verb_mask_times(struct buf *b)
{
	struct buf out = { 0 };
	const char *p = b->data;

	for (; p && *p;) {
		const char *end = p;
		bool has_point = false;

		while (isdigit((unsigned char)*end) ||
		       (*end == '.' && isdigit((unsigned char)end[1]) && end > p)) {
			has_point |= *end == '.';
			end++;
		}
		if (end > p && *end == 'e' && strchr("+-",
		end[1]) && isdigit((unsigned char)end[2])) {
			has_point = true;
			for (end += 2; isdigit((unsigned char)*end);)
				end++;
		}
		if (end == p) {
			bool is_wide = out.len > 1 && *p == ' ' && out.data[out.len - 1] == ' ' &&
				       out.data[out.len - 2] == ' ';

			/* Columns move with the width of a number. */
			if (!is_wide)
				buf_add_char(&out, *p);
			p++;
			continue;
		}
		if (has_point || end - p >= INSTANT_DIGITS) {
			double size = strtod(p, NULL);

			if (out.len > 1 && strchr("+-", out.data[out.len - 1]) &&
			    out.data[out.len - 2] == ' ')
				out.len--;
			while (out.len > 1 && out.data[out.len - 1] == ' ' &&
			       out.data[out.len - 2] == ' ')
				out.len--;
			buf_add_text(&out, has_point && size > 1e9 ? "huge" : "#");
			end += end[strspn(end, " ")] == '\n' ? strspn(end, " ") : 0;
		} else {
			buf_add(&out, p, (size_t)(end - p));
		}
		p = end;
	}
	buf_add_char(&out, '\0');
	out.len--;
	buf_release(b);
	*b = out;
}

static inline void verb_replace(struct buf *b, const char *what, const char *with)
{
	struct buf out = { 0 };
	size_t n = strlen(what);
	const char *from = b->data, *at;

	while (n && (at = strstr(from, what))) {
		/* A port may be a part of a longer number by chance. */
		char before = at > b->data ? at[-1] : ' ';
		bool is_part = isdigit((unsigned char)*what) &&
			       (isdigit((unsigned char)at[n]) ||
				isdigit((unsigned char)before) || before == '.');

		buf_add(&out, from, (size_t)(at - from));
		buf_add_text(&out, is_part ? what : with);
		from = at + n;
	}
	buf_add_text(&out, from);
	buf_add_char(&out, '\0');
	out.len--;
	buf_release(b);
	*b = out;
}

/*
 * What follows these to the end of the line is the machine's, or an instant; numbers with a
 * fraction of a line that has what follows ~.
 */
static const char *const verb_varies[] = {
	"100% 1/1 [", "100% 2/2 [", "100% 6/6 [", "100% 8/8 [", /* a busy machine takes seconds */
	"\"cpu\": ", ".host.", "profllm.date = ", "\"stop_ns\": ", "stop_ns = ", "\"cpus\": ", "\"memory_bytes\": ",
	"\"kernel\": ", "\"machine\": ",
	"\"hostname\": ", "\"spawn_s\": ", "\"ready_s\": ", "\"date\": ", "\"timestamp\": ",
};
/* The same of runs against a server; a line that begins with what follows - is left out. */
static const char *const verb_serve_varies[] = {
	"-  DEGRADED", "-  INVALID", "-  VALID", "-  Note:", "-  What to do:", "-The measurement"
	" is ",
	"Verdict: ", "date = ", "start_ns = ", "stop_ns = ", "_id_prefix = ", "verdict = ",
	"-profllm.options.", "-profllm.series.", "-profllm.requests.", "-profllm.slow_gaps",
	"-profllm.sketches.", "-profllm.derived.output_throughput_per_user",
	"-rps_change_events", "-profllm.verdicts.", "Slow gaps: ",
	"Slow by server", "Settled means: ", "Prompt salt: ", "salt_key = ", "runs.saved = ",
	"the saved result is that of run ", "requests_role_first = ", "-Mean TTFT with/without",
	"-Maximum TTFT", "-|:-", "-| `",
	"Median TTFT of attempted (ms): ", "context_slope_ms = ",
	"TTFT per 1000 prompt tokens (ms): ", "-profllm.percentiles", "itl_segment_ms.n = ", "/4"
	" [", "/2 [",
	"-profllm.settled", "-profllm.notes", "-profllm.reasons", "-profllm.host",
	"-profllm.client",
	"-profllm.system", "-profllm.machine", NULL,
};

/* A line by one of those rules; false: it has nothing of the kind. */
static inline bool verb_line_varies(struct str line, const char *rule, struct buf *out)
{
	const char *what = rule + (*rule == '~' || *rule == '-'), *at;
	struct buf numbers = { 0 };

	if (*rule == '-')
		return str_starts(line, str_of(what));
	at = memmem(line.p, line.n, what, strlen(what));
	if (!at)
		return false;
	if (*rule != '~') {
		buf_add(out, line.p, (size_t)(at - line.p) + strlen(what));
		buf_add_text(out, "#\n");
		return true;
	}
	buf_add(&numbers, line.p, line.n);
	buf_add_char(&numbers, '\0');
	verb_mask_times(&numbers);
	buf_printf(out, "%s\n", numbers.data);
	buf_release(&numbers);
	return true;
}

static inline void verb_mask(struct buf *b, bool has_times, const char *const *varies)
{
	struct str rest = buf_str(b);
	struct buf out = { 0 };
	bool is_ended = b->len && b->data[b->len - 1] == '\n';

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		bool is_done = false;
		/* An instant of a capture that a test makes. */
		bool is_made = memmem(line.p, line.n, " = 1700000000", 13);

		for (size_t i = 0; i < sizeof(verb_varies) / sizeof(*verb_varies) && !is_done; i++)
			is_done = !is_made && verb_line_varies(line, verb_varies[i], &out);
		for (size_t i = 0; varies && varies[i] && !is_done; i++)
			is_done = verb_line_varies(line, varies[i], &out);
		if (!is_done)
			buf_printf(&out, "%.*s\n", (int)line.n, line.p);
	}
	out.len -= out.len && !is_ended;
	buf_add_char(&out, '\0');
	out.len--;
	buf_release(b);
	*b = out;
	if (has_times)
		verb_mask_times(b);
}

/* A line for each value of a JSON text: its path and what it is. */
static inline void verb_flatten(struct buf *out, const char *path, const struct json_value *v)
{
	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY) {
		struct json_writer w = json_writer(out);

		buf_printf(out, "%s = ", path);
		json_put_value(&w, v);
		buf_add_char(out, '\n');
		return;
	}
	for (size_t i = 0; i < v->count; i++) {
		struct buf name = { 0 };

		if (v->kind == JSON_OBJECT)
			buf_printf(&name, "%s%s%.*s", path, *path ? "." : "", (int)v->key[i].n,
				   v->key[i].p);
		else
			buf_printf(&name, "%s[%zu]", path, i);
		verb_flatten(out, name.data, &v->item[i]);
		buf_release(&name);
	}
}

static inline void verb_flat(struct buf *b)
{
	struct arena a = { 0 };
	struct json_value *v;
	struct buf out = { 0 };
	struct err e = { 0 };

	if (json_parse(&a, buf_str(b), &v, &e) < 0)
		fail_msg("%s: %s", e.text, b->data);
	verb_flatten(&out, "", v);
	buf_add_char(&out, '\0');
	out.len--;
	buf_release(b);
	*b = out;
	arena_release(&a);
}

static size_t verb_seen; /* bytes of +N:FILE before the line; one of these in a line */

static inline size_t verb_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

/* Lines of a file from a place on; those of metrics, which come when they like, are left out. */
static inline unsigned long verb_lines_after(const char *path, size_t from, struct buf *out)
{
	struct buf all = { 0 };
	struct err e = { 0 };
	unsigned long n = 0;
	struct str rest;

	buf_reset(out);
	if (file_read(path, SIZE_MAX, &all, &e) < 0)
		fail_msg("%s", e.text);
	rest = (struct str){ all.data + from, all.len - from };
	while (memchr(rest.p, '\n', rest.n)) {
		struct str line = str_cut(&rest, '\n');

		if (memmem(line.p, line.n, "\"/metrics\"", 10))
			continue;
		buf_printf(out, "%.*s\n", (int)line.n, line.p);
		n++;
	}
	buf_release(&all);
	return n;
}

/* Waits until there are n of them. */
static inline void verb_new_lines(const char *path, size_t from, unsigned long n, struct buf *text)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;
	bool is_update = getenv("UPDATE_GOLDEN");
	unsigned long got;

	while ((got = verb_lines_after(path, from, text)) < n) {
		if (is_update && clock_mono_ns() > until_ns - VERB_PATIENCE_NS * 9 / 10) {
			print_error("%s has %lu new lines, expected %lu\n", path, got, n);
			break;
		}
		if (clock_mono_ns() > until_ns)
			fail_msg("%s has %lu new lines, not %lu", path, got, n);
		usleep(2000);
	}
}

static inline void verb_add_file(struct buf *out, const char *title, const char *path,
unsigned mask,
				 const char *const *varies)
{
	struct buf text = { 0 };
	struct err e = { 0 };

	if (*path == '+') {
		char *end;
		unsigned long n = strtoul(path + 1, &end, 10);

		verb_new_lines(end + 1, verb_seen, n, &text);
	} else if (file_read(path, SIZE_MAX, &text, &e) < 0) {
		buf_printf(out, "-- %s: absent\n", title);
		return;
	}
	buf_add_char(&text, '\0');
	text.len--;
	if (mask & VERB_FLAT && str_ends(str_of(path), STR(".json")))
		verb_flat(&text);
	verb_mask(&text, mask & VERB_TIMES, varies);
	if (text.len)
		buf_printf(out, "-- %s\n%s%s", title, text.data,
			   text.data[text.len - 1] == '\n' ? "" : "\n-- no newline\n");
	buf_release(&text);
}

#define VERB_SECTION "==== "

/* The stored answer of a title, which is its section; heap. */
static inline char *verb_stored(const char *path, const char *title)
{
	static char *all;
	struct buf head = { 0 };
	char *at, *end;

	if (!all) {
		FILE *f = fopen(path, "r");
		size_t room = 0;

		if (!f || getdelim(&all, &room, 0, f) < 0)
			fail_msg("%s: cannot be read; UPDATE_GOLDEN=1 writes it", path);
		fclose(f);
	}
	buf_printf(&head, VERB_SECTION "%s\n", title);
	at = strstr(all, head.data);
	if (!at)
		fail_msg("%s: has no section '%s'; UPDATE_GOLDEN=1 writes it", path, title);
	at += head.len;
	buf_release(&head);
	end = strstr(at, "\n" VERB_SECTION);
	return strndup(at, end ? (size_t)(end + 1 - at) : strlen(at));
}

/* Compares with the section of that title, or writes it. got is released. */
static inline void verb_answer(const char *title, struct buf *got)
{
	static FILE *written;
	char path[4224], self[4096] = "", *want;
	size_t at = 0;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	verb_replace(got, self, "SELF");
	verb_replace(got, dir, "DIR");
	verb_replace(got, PROFLLM_VERSION, "VERSION");
	verb_replace(got, "VERSION  \n", "VERSION\n"); /* the report pads short versions */
	for (size_t i = 0; i < VERB_NAMES_MAX && verb_name[i].name; i++)
		if (strlen(verb_name[i].value) > 3)
			verb_replace(got, verb_name[i].value, verb_name[i].name);
	snprintf(path, sizeof(path), "%s/tests/unit/answers/%s.txt", verb_root,
		 program_invocation_short_name);
	if (getenv("UPDATE_GOLDEN")) {
		written = written ? written : fopen(path, "w");
		assert_non_null(written);
		fprintf(written, VERB_SECTION "%s\n%s", title, got->data);
		fflush(written);
		buf_release(got);
		return;
	}
	want = verb_stored(path, title);
	while (got->data[at] && got->data[at] == want[at])
		at++;
	if (got->data[at] != want[at] && getenv("VERBOSE"))
		print_error("%s, byte %zu:\n%.300s\nexpected:\n%.300s\n", title, at,
			    got->data + (at < 100 ? 0 : at - 100),
			    want + (at < 100 ? 0 : at - 100));
	else if (got->data[at] != want[at])
		fail_msg("%s: '%s' is another from byte %zu on (UPDATE_GOLDEN=1 writes"
		" it):\n%.400s\n"
			 "expected:\n%.400s", path, title, at,
			 got->data + (at < 100 ? 0 : at - 100),
			 want + (at < 100 ? 0 : at - 100));
	free(want);
	buf_release(got);
}

/* Types the input on a terminal that the line has; what appears there goes to a file. */
static inline int verb_on_terminal(const struct verb_case *c, const char *out, const char *err)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct buf shown = { 0 };
	struct termios how;
	char name[64], part[4096];
	struct err e;
	ssize_t n;
	pid_t pid;

	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	assert_int_equal(ptsname_r(master, name, sizeof(name)), 0);
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0 && tcgetattr(slave, &how) == 0);
	how.c_lflag &= ~(tcflag_t)ECHO;
	how.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(slave, TCSANOW, &how), 0);
	if (c->input)
		assert_int_equal(file_write_all(master, str_of(c->input)), 0);
	verb_input = name;
	pid = verb_begin(c->line, c->env, name, name);
	verb_input = NULL;
	close(slave);
	while ((n = read(master, part, sizeof(part))) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (part[i] == '\r' || part[i] == '\033')
				buf_add_text(&shown, part[i] == '\r' ? "<CR>" : "<ESC>");
			else
				buf_add_char(&shown, part[i]);
	close(master);
	assert_int_equal(file_write_atomic(out, buf_str(&shown), &e), 0);
	assert_int_equal(file_write_atomic(err, STR(""), &e), 0);
	buf_release(&shown);
	return verb_end(pid);
}

/* Runs one line; its output goes to two files. */
static inline int verb_run(const struct verb_case *c, const char *out, const char *err)
{
	char in[64];
	struct err e;
	pid_t pid;

	if (c->mask & VERB_TERMINAL)
		return verb_on_terminal(c, out, err);
	snprintf(in, sizeof(in), "%s/.in", dir);
	if (c->input)
		assert_int_equal(file_write_atomic(in, str_of(c->input), &e), 0);
	verb_input = c->input ? in : NULL;
	pid = verb_begin(c->line, c->env, out, err);
	verb_input = NULL;
	return verb_end(pid);
}

/* Runs one line and compares all that comes of it. */
static inline void verb_check(const struct verb_case *c)
{
	struct buf got = { 0 }, title = { 0 };
	char out[64], err[64], *files, *rest, *one;
	int64_t began_ns = clock_mono_ns();
	int status;

	if (c->files && strchr(c->files, '+'))
		verb_seen = verb_size(strchr(strchr(c->files, '+'), ':') + 1);
	snprintf(out, sizeof(out), "%s/.out", dir);
	snprintf(err, sizeof(err), "%s/.err", dir);
	status = verb_run(c, out, err);
	if (getenv("VERBOSE"))
		print_message("%5.0f ms %s\n", (double)(clock_mono_ns() - began_ns) / 1e6, c->line);
	buf_printf(&got, "status %d\n", status);
	if (!(c->mask & VERB_NO_OUT))
		verb_add_file(&got, "stdout", out, c->mask, c->varies);
	if (!(c->mask & VERB_NO_ERR))
		verb_add_file(&got, "stderr", err, c->mask & VERB_ERR_TIMES ? VERB_TIMES : c->mask,
			      c->varies);
	files = rest = verb_filled(c->files ? c->files : "");
	while ((one = strsep(&rest, " ")))
		if (*one)
			verb_add_file(&got, one, one, c->mask, c->varies);
	free(files);
	if (status != c->status && getenv("UPDATE_GOLDEN"))
		print_error("%s: expected status %d, got %d\n", c->line, c->status, status);
	else if (status != c->status)
		fail_msg("%s: %s", c->line, got.data);
	buf_printf(&title, "%s%s%s%s", c->env ? c->env : "", c->env ? " " : "", c->line,
		   c->input ? " < " : "");
	for (const char *p = c->input; p && *p; p++)
		buf_add_char(&title, *p == '\n' ? '|' : *p);
	verb_answer(title.data, &got);
	buf_release(&title);
}

static inline void verb_check_all(const struct verb_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		verb_check(&c[i]);
}

/* ---- set-up of the group ---- */

/* $PROFLLM is called profllm: what starts servers knows them by name. */
static inline int verb_setup(void **state)
{
	char self[4096] = "";

	if (!getcwd(verb_root, sizeof(verb_root)) || make_dir(state) < 0 || chdir(dir) < 0 ||
	    readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	if (mkdir("bin", 0755) < 0 || symlink(self, "bin/profllm") < 0)
		return -1;
	snprintf(self, sizeof(self), "%s/bin/profllm", dir);
	verb_let("PROFLLM", self);
	setenv("PROFLLM_CONFIG", "/nonexistent", 1);
	setenv("COLUMNS", "100", 1);
	setenv("HOME", dir, 1);
	return 0;
}

static inline int verb_teardown(void **state)
{
	for (size_t i = 0; i < VERB_SERVERS_MAX && verb_server[i]; i++) {
		kill(verb_server[i], SIGTERM);
		waitpid(verb_server[i], NULL, 0);
	}
	return chdir("/") < 0 ? -1 : remove_dir(state);
}
