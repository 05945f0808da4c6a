/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_jobs.c - experiments that the dashboard starts: what is checked before, what they leave,
 * how they end, in which order they wait, and what a restart makes of them.
 *
 * The program that is started is this one: `run` in its arguments makes it do what the first word
 * of the configuration says.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ANSWERS_MAX 200
#include "host/proc/keeper.h"
#include "host/proc/tree.h"
#include "web_rig.h"

/* ---- the program that is started ---- */

static const char *word_after(int argc, char **argv, const char *option)
{
	for (int i = 2; i + 1 < argc; i++)
		if (strcmp(argv[i], option) == 0)
			return argv[i + 1];
	return NULL;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(99);
	close(fd);
}

#define DOCUMENT(id, status, more) \
	"{\"schema_version\": 1, \"run_id\": \"" id "\", \"status\": \"" status "\", \"timestamp\": " \
	"\"2026-01-01T00:00:00Z\", \"config\": {\"name\": \"x\", \"mode\": \"serve\", \"server\": " \
	"{\"model\": \"m\"}}, \"results\": {\"completed\": 5, \"request_throughput\": 2}" more "}\n"

static int keys(void)
{
	puts("# Keys\n\n| key | outside |\n\n## server\n\nText.\n\n| Key | Value | Default | Help |\n"
	     "|---|---|---|---|\n| `model` | text | | A name \\| a path. |\n| `gpus` | a\\b | `0` | |\n\n"
	     "## load\n\n| Key | Value | Default | Help |\n|---|---|---|---|\n| `rate` | number | `inf` "
	     "| Per second. |\n\n## empty\n");
	return 0;
}

static int plan(const char *config)
{
	if (strncmp(config, "invalid", 7) == 0) {
		fputs("WARNING: stdin:1:2: odd\nWARNING: nowhere\nprofllm run: stdin:3:14: rate: expected a "
		      "number\nprofllm run: no place\n\nother\n", stderr);
		return 2;
	}
	if (strncmp(config, "vague", 5) == 0) {
		fputs("first\nlast\n", stderr);
		return 2;
	}
	if (strncmp(config, "killed", 6) == 0)
		raise(SIGKILL);
	if (strncmp(config, "suite", 5) == 0)
		puts("{\"suite\": \"many\", \"experiments\": [{\"name\": \"one\"}]}");
	else if (strncmp(config, "unnamed", 7) == 0)
		puts("{\"experiments\": []}");
	else
		printf("{\"experiments\": [{\"name\": \"%.*s\"}]}\n", (int)strcspn(config, "\n"), config);
	return 0;
}

/* Until the file is there. */
static void await_file(const char *name)
{
	int64_t until_ns = clock_mono_ns() + RIG_PATIENCE_NS;

	while (access(name, F_OK) < 0 && clock_mono_ns() < until_ns)
		usleep(2000);
}

static void beside(const char *result, const char *name, char out[static 256])
{
	snprintf(out, 256, "%.*s%s", (int)(strrchr(result, '/') + 1 - result), result, name);
}

static int measure(const char *config, const char *result, const char *events)
{
	char path[256];

	if (strncmp(config, "good", 4) == 0) {
		puts("begins");
		put(events, "{\"event\": \"progress\", \"done\": 1}\nnot JSON\n{\"event\": \"other\"}\n"
		    "{\"event\": \"telemetry\", \"power_w\": 300}\n[1]\n{\"event\": \"progress\"} x\n"
		    "{\"event\": \"progress\", \"done\": 2}");
		put(result, DOCUMENT("g1", "completed", ""));
		fputs("no line end", stdout);
		return 0;
	}
	if (strncmp(config, "traced", 6) == 0) {
		beside(result, "a.json", path);
		put(path, "{\"traceEvents\": []}");
		put(result, DOCUMENT("t1", "completed", ", \"profiling\": {\"traces\": [{\"path\": "
				     "\"a.json\", \"bytes\": 19}, {\"path\": \"gone.json\", \"bytes\": 3}]}"));
		return 0;
	}
	if (strncmp(config, "long", 4) == 0) {
		for (int i = 0; i < 4000; i++)
			printf("line %04d\n", i);
		return 0;
	}
	if (strncmp(config, "failed", 6) == 0) {
		put(result, DOCUMENT("f1", "failed", ", \"error\": {\"reason\": \"the server died\"}"));
		return 1;
	}
	if (strncmp(config, "half", 4) == 0) {
		put(result, DOCUMENT("h1", "running", ""));
		return 3;
	}
	if (strncmp(config, "silent", 6) == 0) {
		puts("the first line\n\n  the last useful line  \n\n");
		return 4;
	}
	if (strncmp(config, "shot", 4) == 0) {
		puts("a line about something else");
		fflush(stdout);
		raise(SIGKILL);
	}
	if (strncmp(config, "gate", 4) == 0) {
		put(result, DOCUMENT("k1", "completed", ""));
		puts("FAILED: p99_ttft_ms is 9 ms (limit 5 ms)\nFAILED: another\nfailed: 2 of 3 conditions");
		return 3;
	}
	if (strncmp(config, "broken", 6) == 0) {
		put(result, "{\"half\": ");
		return 0;
	}
	if (strncmp(config, "env", 3) == 0) {
		for (char **line = environ; *line; line++)
			if (strstr(*line, "WEBTEST") || strncmp(*line, "HOME=", 5) == 0)
				puts(*line);
		return 5;
	}
	if (strncmp(config, "whole", 5) == 0)
		put(result, DOCUMENT("e1", "completed", ""));
	puts("waits");
	fflush(stdout);
	beside(result, "go", path);
	await_file(path);
	puts("goes on");
	put(result, DOCUMENT("w1", "completed", ""));
	return 0;
}

static void end(int number)
{
	(void)number;
	_exit(7);
}

static int stand_in(int argc, char **argv)
{
	const char *config = word_after(argc, argv, "--config");
	struct buf text = { 0 };
	int rc = 6;

	signal(SIGTERM, end);
	if (argc > 2 && strcmp(argv[2], "--print-keys") == 0)
		return keys();
	if (!config || file_read(strcmp(config, "-") == 0 ? "/dev/stdin" : config, 1 << 20, &text,
				 NULL) < 0)
		return 98;
	if (word_after(argc, argv, "--plan"))
		rc = plan(text.data);
	else if (strncmp(text.data, "words", 5) == 0)
		for (int i = 1; i < argc; i++)
			puts(argv[i]);
	else
		rc = measure(text.data, word_after(argc, argv, "--output"),
			     word_after(argc, argv, "--events"));
	buf_release(&text);
	return rc;
}

/* ---- asking ---- */

static void start(unsigned launches)
{
	static const char *const env[] = { "WEBTEST_KEPT" }, *const include[] = { "/etc", "/opt" };
	static const char *const command[] = { "vllm" };

	rig_start("jobs", (struct web_opts){ .has_no_auth = true, .launches = launches,
		  .launch_env = { env, 1 }, .include_dir = { include, 2 },
		  .launch_command = { command, 1 } });
}

/* A job of that configuration; its id is hidden below the name. */
static const char *begin(const char *config, struct arena *a)
{
	const char *id = rig_member("POST /api/launch", arena_printf(a, "{'config': '%s\\n'}", config),
				    "job_id", a);

	rig_hide(id, config);
	return id;
}

static const char *state_of(const char *id, struct arena *a)
{
	return rig_member(arena_printf(a, "GET /api/jobs/%s", id), NULL, "state", a);
}

static void await_state(const char *id, const char *state, struct arena *a)
{
	int64_t until_ns = clock_mono_ns() + RIG_PATIENCE_NS;

	while (strcmp(state_of(id, a), state) != 0) {
		if (clock_mono_ns() > until_ns)
			fail_msg("%s is %s, not %s", id, state_of(id, a), state);
		usleep(5000);
	}
}

static void check(struct arena *a, const char *fmt, const char *id)
{
	const struct rig_request r = { arena_printf(a, fmt, id), NULL };

	rig_check(&r);
}

/* The job, its log, and its events from the beginning. */
static void check_job(const char *id, bool has_events, struct arena *a)
{
	check(a, "GET /api/jobs/%s", id);
	check(a, "GET /api/jobs/%s/log", id);
	if (has_events)
		check(a, "GET /api/jobs/%s/events", id);
}

static void let_go(const char *id, struct arena *a)
{
	put(arena_printf(a, "%s/%s/go", rig_jobs, id), "");
}

/* A stream of a job's events, read until they have a word. */
static int follow(const char *id, const char *word, struct buf *seen, struct arena *a)
{
	const struct rig_request request = { arena_printf(a, "GET /api/jobs/%s/events", id), NULL };
	struct buf bytes = rig_bytes(&request);
	int fd = rig_connect();

	rig_send(fd, buf_str(&bytes));
	buf_release(&bytes);
	buf_reserve(seen, 65536);
	while (!strstr(seen->data ? seen->data : "", word)) {
		ssize_t n = rig_read(fd, seen->data + seen->len, 4096);

		assert_true(n > 0 && seen->len < 32768);
		seen->len += (size_t)n;
		seen->data[seen->len] = '\0';
	}
	return fd;
}

/* ---- tests ---- */

static const struct rig_request before[] = {
	{ "GET /api/launch/schema", NULL }, { "GET /api/launch/examples", NULL },
	{ "POST /api/launch/check", "{'config': 'invalid'}" },
	{ "POST /api/launch/check", "{'config': 'suite'}" },
	{ "POST /api/launch/check", "{'config': 'killed'}" },
	{ "POST /api/launch/check", "{'config': 7}" }, { "POST /api/launch/check", "{}" },
	{ "POST /api/launch", "{'config': 'invalid'}" }, { "POST /api/launch", "{'config': 'vague'}" },
	{ "POST /api/launch", "{'config': 'killed'}" },
	{ "GET /api/jobs", NULL }, { "GET /api/jobs?limit=0", NULL },
	{ "GET /api/jobs?limit=1001", NULL }, { "GET /api/jobs?limit=1000", NULL },
	{ "GET /api/jobs/0123456789abcdef", NULL }, { "GET /api/jobs/x/events", NULL },
	{ "GET /api/jobs/x/log", NULL }, { "POST /api/jobs/x/cancel", "{}" },
};

static void experiments_end(void **state)
{
	static const char *const config[] = { "good", "traced", "failed", "half", "silent", "broken",
					      "shot", "gate", "env", "words", "suite", "unnamed" };
	struct arena a = { 0 };
	const char *id[COUNT(config)], *last;

	(void)state;
	setenv("WEBTEST_KEPT", "yes", 1);
	setenv("WEBTEST_OTHER", "no", 1);
	setenv("LC_WEBTEST", "C", 1);
	setenv("PROFLLM_WEBTEST_TOKEN", "secret", 1);
	setenv("HOME", "/dev/null/home", 1); /* no folder can be made there */
	start(1);
	rig_check_all(before, COUNT(before));
	for (size_t i = 0; i < COUNT(config) - 2; i++) {
		id[i] = begin(config[i], &a);
		await_state(id[i], i < 2 ? "done" : "failed", &a);
		check_job(id[i], i == 0, &a);
	}
	last = begin("long", &a);
	await_state(last, "failed", &a);
	check_job(last, true, &a);
	check(&a, "GET /api/jobs/%s/log?offset=39990", last);
	check(&a, "GET /api/jobs/%s/log?offset=-1", last);
	check(&a, "GET /api/jobs/%s/log?offset=x", last);
	check(&a, "GET /api/jobs/%s/log?offset=99999", last);
	check(&a, "GET /api/jobs?limit=%s", "2");
	check(&a, "GET /api/traces%s", "");
	check(&a, "GET /api/data/experiments?columns=run_id,status%s", "");
	for (size_t i = COUNT(config) - 2; i < COUNT(config); i++) {
		id[i] = begin(config[i], &a);
		let_go(id[i], &a);
		await_state(id[i], "done", &a);
		check(&a, "GET /api/jobs/%s", id[i]);
	}
	rig_stop();
	arena_release(&a);
}

/* One at a time, in the order of their requests; each may be cancelled. */
static void experiments_wait(void **state)
{
	struct arena a = { 0 };
	const char *first, *second, *third;
	struct buf seen = { 0 };
	int fd;

	(void)state;
	start(1);
	first = begin("wait1", &a);
	await_state(first, "running", &a);
	second = begin("wait2", &a);
	third = begin("wait3", &a);
	assert_string_equal(state_of(second, &a), "waiting");
	check(&a, "GET /api/jobs/%s", second);
	check(&a, "POST /api/jobs/%s/cancel", second);
	check(&a, "POST /api/jobs/%s/cancel", second);
	check(&a, "GET /api/jobs/%s", second);
	/* Followed from before its end to its end. */
	fd = follow(first, "waits", &seen, &a);
	assert_null(strstr(seen.data, "goes on"));
	let_go(first, &a);
	rig_rest(fd, &seen);
	assert_non_null(strstr(seen.data, "\"text\":"));
	assert_non_null(strstr(seen.data, "goes on"));
	assert_non_null(strstr(seen.data, "event: end"));
	assert_non_null(strstr(strstr(seen.data, "event: end"), "\"state\":\"done\""));
	await_state(third, "running", &a);
	check(&a, "POST /api/jobs/%s/cancel", third);
	await_state(third, "cancelled", &a);
	check(&a, "GET /api/jobs/%s", third);
	rig_stop();
	buf_release(&seen);
	arena_release(&a);
}

/* Files that are added while an upload is followed: each is there once, when it is done. */
static void uploads_grow(void **state)
{
	struct arena a = { 0 };
	struct buf seen = { 0 };
	struct err e = { 0 };
	char id[17];
	int fd = -1;

	(void)state;
	start(1);
	assert_int_equal(store_job_begin(rig_store, STR("upload"), STR("{}"), id, &e), 0);
	for (int i = 0; i < 100; i++) {
		const char *name = arena_printf(&a, "file %d", i);

		if (i == 40)
			fd = follow(id, "\"total\":40", &seen, &a);
		assert_int_equal(store_job_add(rig_store, id, str_of(name), STR("no result"), &e), 0);
	}
	assert_int_equal(store_job_state(rig_store, id, "running", (struct str){ 0 }, &e), 0);
	buf_release(&seen);
	/* Another upload wakes the one who takes them in. */
	rig_member("POST /api/upload/batch", "--x\nContent-Disposition: form-data; name='file'; filename='f'\n\n"
		   "x\n--x--\n", "job_id", &a);
	rig_rest(fd, &seen);
	for (int i = 0; i < 100; i++) {
		const char *name = arena_printf(&a, "\"file %d\"", i), *at = strstr(seen.data, name);

		if (!at || strstr(at + 1, name))
			fail_msg("%s: %s", name, seen.data);
	}
	assert_non_null(strstr(seen.data, "event: end"));
	rig_stop();
	buf_release(&seen);
	arena_release(&a);
}

/* One that is not taken in yet; then it is over. */
static void uploads_are_cancelled(void **state)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	char id[17];

	(void)state;
	start(1);
	assert_int_equal(store_job_begin(rig_store, STR("upload"), STR("{}"), id, &e), 0);
	rig_hide(id, "stopped");
	check(&a, "GET /api/jobs/%s/log", id);
	check(&a, "POST /api/jobs/%s/cancel", id);
	assert_string_equal(state_of(id, &a), "cancelled");
	check(&a, "POST /api/jobs/%s/cancel", id);
	rig_stop();
	arena_release(&a);
}

static void put_config(const char *id, const char *text, struct arena *a)
{
	file_mkdirs(arena_printf(a, "%s/%s", rig_jobs, id), NULL);
	put(arena_printf(a, "%s/%s/config.yaml", rig_jobs, id), text);
}

/*
 * What ran is failed, or done if its document says so; what waited begins; what has no folder is
 * failed; what another process owns, or made elsewhere, stays.
 */
static void restarted(void **state)
{
	struct arena a = { 0 };
	const char *running, *waiting;
	char lost[17], left[17], elsewhere[17], owned[17], queued[17], restored[17];
	struct err e = { 0 };
	struct tree_process other;
	const char *detail;

	(void)state;
	start(1);
	running = begin("wait4", &a);
	await_state(running, "running", &a);
	waiting = begin("wait5", &a);
	assert_int_equal(store_job_begin(rig_store, STR("run"), STR("{\"name\": \"lost\", \"owner\": "
				 "\"1 1\"}"), lost, &e), 0);
	put_config(lost, "good\n", &a);
	assert_int_equal(store_job_state(rig_store, lost, "running", (struct str){ 0 }, &e), 0);
	assert_int_equal(store_job_begin(rig_store, STR("run"), STR("{\"name\": \"left\"}"), left, &e),
			 0);
	put_config(left, "good\n", &a);
	put(arena_printf(&a, "%s/%s/result.json", rig_jobs, left), DOCUMENT("l1", "completed", ""));
	assert_int_equal(store_job_state(rig_store, left, "running", (struct str){ 0 }, &e), 0);
	assert_int_equal(store_job_begin(rig_store, STR("run"), STR("{}"), elsewhere, &e), 0);
	assert_int_equal(store_job_begin(rig_store, STR("run"), STR("{\"name\": \"q\"}"), queued, &e), 0);
	put_config(queued, "good\n", &a);
	assert_int_equal(store_job_begin(rig_store, STR("run"), STR("{\"owner\": \"1 1\"}"), restored, &e),
			 0);
	assert_true(tree_process_read(getppid(), &other));
	detail = arena_printf(&a, "{\"owner\": \"%d %llu\"}", (int)other.pid,
			      (unsigned long long)other.start);
	assert_int_equal(store_job_begin(rig_store, STR("run"), str_of(detail), owned, &e), 0);
	put_config(owned, "good\n", &a);
	rig_hide(lost, "lost");
	rig_hide(left, "left");
	rig_hide(elsewhere, "elsewhere");
	rig_hide(queued, "queued");
	rig_hide(restored, "restored");
	rig_hide(owned, "owned");
	check(&a, "POST /api/jobs/%s/cancel", elsewhere);
	rig_stop();
	start(1);
	check(&a, "GET /api/jobs/%s", running);
	await_state(lost, "failed", &a);
	check(&a, "GET /api/jobs/%s", lost);
	await_state(left, "done", &a);
	check(&a, "GET /api/jobs/%s", left);
	check(&a, "GET /api/jobs/%s", elsewhere);
	check(&a, "GET /api/jobs/%s", restored);
	assert_string_equal(state_of(owned, &a), "waiting");
	await_state(waiting, "running", &a);
	assert_string_equal(state_of(queued, &a), "waiting");
	let_go(waiting, &a);
	await_state(waiting, "done", &a);
	await_state(queued, "done", &a);
	check(&a, "GET /api/jobs/%s", queued);
	rig_stop();
	arena_release(&a);
}

/* A run that had measured everything is done, even if its end was not awaited. */
static void stopped_at_its_end(void **state)
{
	struct arena a = { 0 };
	const char *cancelled, *stopped;

	(void)state;
	start(1);
	cancelled = begin("whole", &a);
	await_file(arena_printf(&a, "%s/%s/result.json", rig_jobs, cancelled));
	check(&a, "POST /api/jobs/%s/cancel", cancelled);
	await_state(cancelled, "done", &a);
	stopped = begin("whole", &a);
	await_file(arena_printf(&a, "%s/%s/result.json", rig_jobs, stopped));
	rig_stop();
	start(1);
	assert_string_equal(state_of(stopped, &a), "done");
	check(&a, "GET /api/jobs/%s", stopped);
	rig_stop();
	arena_release(&a);
}

/* None may be started, but what was started before is shown. */
static void refused(void **state)
{
	static const struct rig_request request[] = {
		{ "POST /api/launch", "{'config': 'good'}" },
		{ "POST /api/launch/check", "{'config': 'good'}" },
		{ "GET /api/jobs?limit=1", NULL },
	};

	(void)state;
	start(0);
	rig_check_all(request, COUNT(request));
	rig_stop();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experiments_end), cmocka_unit_test(experiments_wait),
		cmocka_unit_test(restarted), cmocka_unit_test(stopped_at_its_end),
		cmocka_unit_test(refused), cmocka_unit_test(uploads_grow),
		cmocka_unit_test(uploads_are_cancelled),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	if (argc > 1 && strcmp(argv[1], "run") == 0)
		return stand_in(argc, argv);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
