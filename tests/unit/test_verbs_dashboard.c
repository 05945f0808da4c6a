/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_dashboard.c - dashboards: what their command line refuses; experiments that they
 * check, start, follow and cancel; uploads of many files; a dashboard that ends while an experiment
 * runs; what is sent to one.
 *
 * threads: yes
 */
#include "run_rig.h"
#include "ask.h"

struct step {
	const char *request; /* as in ask.h; $JOB is the latest job */
	const char *until;   /* asked again until the answer has this; NULL: once */
	enum { WHOLE, STATUS,
		EVENTS } how; /* of the answer: JSON in lines; the status; names of events */
};

static pid_t begin(const char *words)
{
	char out[64], err[64], port_file[64];
	struct buf line = { 0 };
	unsigned port = 0;
	pid_t pid;
	FILE *f;

	snprintf(out, sizeof(out), "%s/web.out", dir);
	snprintf(err, sizeof(err), "%s/web.err", dir);
	snprintf(port_file, sizeof(port_file), "%s/web.port", dir);
	unlink(port_file);
	buf_printf(&line, "dashboard --no-auth --listen 127.0.0.1:0 --port-file %s %s", port_file, words);
	pid = run_begin(line.data, "CHOSEN=chosen HIDDEN=hidden");
	buf_release(&line);
	verb_wait_for(port_file, pid);
	f = fopen(port_file, "r");
	assert_true(f && fscanf(f, "%u", &port) == 1);
	fclose(f);
	ask_port = (uint16_t)port;
	return pid;
}

static int end(pid_t pid)
{
	kill(pid, SIGTERM);
	return verb_end(pid);
}

static bool is_one_of(const char *const *name, size_t n, const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; i < n; i++)
		if (strcmp(dot ? dot + 1 : path, name[i]) == 0)
			return true;
	return false;
}

/* What differs from run to run, by the last word of its path. */
static bool is_measured(const char *path)
{
	static const char *const name[] = {
		"created", "ended", "query_ms", "data_version", "uptime_s", "content_hash", "started", "version",
		"run_ids[0]", "run_ids[1]", "run_id", "timestamp", "received", "began_s", "bytes_free", "date",
		"seconds", "items_hash", "elapsed_s", "received_at",
		"created_at", "at", "timings", "owner", "hash",
	};

	return is_one_of(name, COUNT(name), path);
}

/* Of the last sample of a live run; null if it came less than 0.5 s after the one before. */
static bool is_sampled(const char *path)
{
	static const char *const name[] = { "tokens_per_s", "ttft_ms" };

	return is_one_of(name, COUNT(name), path);
}

static void put(struct buf *out, const char *path, const struct json_value *v)
{
	if ((v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && v->count) {
		for (size_t i = 0; i < v->count; i++) {
			struct buf below = { 0 };

			if (v->kind == JSON_OBJECT)
				buf_printf(&below, "%s%s%.*s", path, *path ? "." : "", (int)v->key[i].n,
					   v->key[i].p);
			else
				buf_printf(&below, "%s[%zu]", path, i);
			put(out, below.data, &v->item[i]);
			buf_release(&below);
		}
		return;
	}
	buf_printf(out, "%s = ", path);
	if (is_measured(path) || is_sampled(path)) {
		buf_add_text(out, v->kind == JSON_NULL && !is_sampled(path) ? "null" : "#");
	} else {
		struct json_writer w = json_writer(out);

		json_put_value(&w, v);
	}
	buf_add_char(out, '\n');
}

/* Those that come with any pace. */
static void put_events(struct buf *out, const char *text)
{
	static const char *const name[] = { "event: log", "event: job", "event: end" };

	for (size_t i = 0; i < COUNT(name); i++)
		if (strstr(text, name[i]))
			buf_printf(out, "%s\n", name[i]);
}

static void mask(struct buf *b)
{
	run_mask(b, "[0-9a-f]{16}", "ID");
	verb_replace(b, run_program, "PROFLLM");
	run_mask_all(b, 0);
}

static unsigned taken;

static void take(const struct step *s)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;
	char *request = verb_filled(s->request), *body;
	struct buf reply = { 0 }, got = { 0 }, title = { 0 };
	struct json_value *v = NULL;
	struct arena a = { 0 };
	struct err e;

	for (;;) {
		buf_reset(&reply);
		ask(request, &reply);
		if (!s->until || strstr(reply.data, s->until))
			break;
		if (clock_mono_ns() > until_ns)
			fail_msg("%s has no '%s': %s", request, s->until, reply.data);
		usleep(20000);
	}
	body = strstr(reply.data, "\r\n\r\n");
	if (!body)
		fail_msg("%s: '%s'", request, reply.data);
	body += 4;
	buf_printf(&got, "%.*s\n", (int)strcspn(reply.data, "\r"), reply.data);
	if (s->how == EVENTS)
		put_events(&got, body);
	else if (s->how == WHOLE && json_parse(&a, str_of(body), &v, NULL) == 0)
		put(&got, "", v);
	else if (s->how == WHOLE && file_write_atomic(".body", str_of(body), &e) == 0)
		run_add_text(&got, "text", ".body", RUN_SORTED);
	if (str_starts(str_of(request), STR("POST")) && v && json_get(v, "job_id"))
		verb_let("JOB", arena_text(&a, json_text(json_get(v, "job_id"), STR(""))));
	buf_add_char(&got, '\0');
	got.len--;
	mask(&got);
	buf_printf(&title, "%u %s", ++taken, s->request);
	if (getenv("VERBOSE"))
		print_message("%5.0f ms %.60s\n", (double)(clock_mono_ns() - until_ns + VERB_PATIENCE_NS) / 1e6,
			      s->request);
	verb_answer(title.data, &got);
	buf_release(&title);
	buf_release(&reply);
	arena_release(&a);
	free(request);
}

static void take_all(const struct step *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		take(&s[i]);
}

static void refused(void **state)
{
	static const char *const varies[] = { "Failed to connect to ", NULL };
#define D "dashboard --store sqlite:s.db "
	static const struct verb_case cases[] = {
		{ D "--listen 127.0.0.1:0 --port 1", .status = 2 }, { D "--listen 127.0.0.1:0 --host h", .status = 2 },
		{ D "--no-auth --auth-token-file t", .status = 2 }, { D "--no-auth --open-read", .status = 2 },
		{ D "--listen unix:x --port-file p", .status = 2 }, { D "--include-dir none", .status = 2 },
		{ D "--launch-env A=B", .status = 2 }, { D "--launch-env ''", .status = 2 },
		{ D "--launch-command ''", .status = 2 }, { D "--launch-command \"vllm 'serve\"", .status = 2 },
		{ D "--launch 0", .status = 2 }, { D "--host 0.0.0.0 --port 0", .status = 2 },
		{ D "--host 0.0.0.0 --port 0 --no-auth", .status = 2 },
		{ D "--host 127.0.0.1 --port 0 --auth-token-file none", .status = 1 },
		{ D "--port 0 --auth-token-file short", .status = 2 },
		{ "dashboard --port 0 --store nothing:x", .status = 2 },
		{ "dashboard --port 0 --store sqlite:none/s.db", .status = 2 },
		{ "dashboard --health --port 9", .status = 1, .varies = varies },
		{ "dashboard --health --host 0.0.0.0 --port 9", .status = 1, .varies = varies },
		{ "dashboard --health --listen unix:none.sock", .status = 1, .varies = varies },
	};

	(void)state;
	run_write("short", "tooshort\n");
	verb_check_all(cases, COUNT(cases));
}

#define CONFIG(name, more) "{'config': 'name: " name "\\nserver: {command: sim, model: sim, ttft_ms: 2, " \
	"itl_ms: 1}\\nbenchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 8, random_output_len: 2, " \
	"max_concurrency: 2}\\ntelemetry: {enabled: false}\\n" more "'}"
#define LONG "{'config': 'name: long\\nserver: {command: sim, model: sim}\\nbenchmark: {tokenizer: sim, " \
	"num_prompts: 500, random_input_len: 8, random_output_len: 2, request_rate: 1}\\n'}"
#define CHECK "POST /api/launch/check "
#define LAUNCH "POST /api/launch "
#define JOB "GET /api/jobs/$JOB"

static void experiments(void **state)
{
	static const struct step step[] = {
		{ .request = "GET /api/health" }, { "GET /api/health/ready", .how = STATUS },
		{ .request = "GET /api/jobs" }, { .request = "GET /api/launch/examples", .how = STATUS },
		{ .request = "GET /api/launch/schema", .how = STATUS },
		{ .request = CHECK CONFIG("one", "") }, { .request = CHECK CONFIG("${CHOSEN}", "") },
		{ .request = CHECK CONFIG("${HIDDEN}", "") }, { .request = CHECK CONFIG("one", "include: base.yaml") },
		{ .request = CHECK CONFIG("one", "include: /etc/passwd") },
		{ .request = CHECK "{'config': 'server: {command: sim, modle: x}\\nbenchmark: {num_promts: 1}\\n'}" },
		{ .request = CHECK "{'config': 'a: ['}" }, { .request = CHECK "{}" },
		{ .request = CHECK "{'config': ''}" },
		{ .request = LAUNCH "{'config': 'server: {command: sim, modle: x}\\n'}" },
		{ .request = LAUNCH CONFIG("one", "") }, { JOB, "\"state\":\"done\"", .how = WHOLE },
		{ .request = JOB "/log" }, { .request = JOB "/log?offset=1" }, { .request = JOB "/log?offset=-1" },
		{ .request = JOB "/log?offset=x" }, { JOB "/events", .how = EVENTS },
		{ .request = "POST /api/jobs/$JOB/cancel {}" }, { .request = "GET /api/jobs/none" },
		{ .request = "GET /api/jobs?limit=0" }, { .request = "GET /api/jobs?limit=1" },
		{ .request = "GET /api/data/experiments?columns=server.model,benchmark.num_prompts,completed" },
		{ .request = LAUNCH CONFIG("bad", "require: [failed<0]") },
		{ JOB, "\"state\":\"failed\"", .how = WHOLE },
		{ .request = LAUNCH CONFIG("broken", "experiments: [{name: x, server: {extra_args: [--none]}}]") },
		{ JOB, "\"state\":\"failed\"", .how = STATUS }, { JOB "/log?offset=0", .how = STATUS },
		{ .request = LAUNCH LONG }, { JOB "/log", "Starting main", .how = STATUS },
		{ JOB, "\"state\":\"running\"", .how = STATUS },
	}, last[] = {
		{ .request = LAUNCH CONFIG("waiting", "") }, { JOB, "\"state\":\"waiting\"", .how = WHOLE },
		{ .request = "POST /api/jobs/$JOB/cancel {}" }, { JOB, "\"state\":\"cancelled\"", .how = WHOLE },
	}, cancelled[] = {
		{ .request = "POST /api/jobs/$LONG/cancel {}" },
		{ "GET /api/jobs/$LONG", "\"state\":\"cancelled\"", .how = WHOLE },
		{ "GET /api/jobs/$LONG/events", .how = EVENTS },
		{ "GET /api/jobs?limit=9", .how = WHOLE },
	};
	pid_t pid;

	(void)state;
	mkdir("opened", 0755);
	run_write("opened/base.yaml", "tags: {from: base}\n");
	pid = begin("--store sqlite:a.db --jobs-dir jobs --include-dir opened --launch-env CHOSEN");
	take_all(step, COUNT(step));
	verb_let("LONG", verb_value(STR("JOB")));
	take_all(last, COUNT(last));
	take_all(cancelled, COUNT(cancelled));
	assert_int_equal(end(pid), 0);
}

/* One is running and one waits when the dashboard ends; the next one starts what waits. */
static void interrupted(void **state)
{
	static const struct step first[] = {
		{ .request = LAUNCH LONG }, { JOB "/log", "Starting main", .how = STATUS },
	}, second[] = {
		{ .request = LAUNCH CONFIG("second", "") }, { JOB, "\"state\":\"waiting\"", .how = STATUS },
	}, after[] = {
		{ "GET /api/jobs/$LONG", "\"state\":\"failed\"", .how = WHOLE },
		{ JOB, "\"state\":\"done\"", .how = WHOLE },
	}, none[] = {
		{ .request = CHECK CONFIG("refused", "") }, { .request = LAUNCH CONFIG("refused", "") },
		{ .request = "GET /api/jobs" },
	}, kept[] = {
		{ .request = CHECK CONFIG("kept", "") }, { .request = "POST /api/upload/raw {}" },
		{ .request = "GET /api/data/experiments?limit=0" },
	};
	pid_t pid = begin("--store sqlite:b.db");

	(void)state;
	take_all(first, COUNT(first));
	verb_let("LONG", verb_value(STR("JOB")));
	take_all(second, COUNT(second));
	assert_int_equal(end(pid), 0);
	pid = begin("--store sqlite:b.db");
	take_all(after, COUNT(after));
	assert_int_equal(end(pid), 0);
	pid = begin("--store sqlite:b.db --no-launch");
	take_all(none, COUNT(none));
	assert_int_equal(end(pid), 0);
	pid = begin("--store sqlite:b.db --read-only");
	take_all(kept, COUNT(kept));
	assert_int_equal(end(pid), 0);
}

#define RESULT(day, rate) "{'date': '202601" day "-000000', 'backend': 'vllm', 'model_id': 'm', 'num_prompts': " \
	"6, 'request_rate': " rate ", 'duration': 2.5, 'completed': 5, 'failed': 1, 'total_input_tokens': 60, " \
	"'total_output_tokens': 20, 'request_throughput': " rate ", 'output_throughput': 8, 'mean_ttft_ms': 100, " \
	"'median_ttft_ms': 91}"
#define PART(name) "--x\nContent-Disposition: form-data; name='files'; filename='" name "'\n\n"

static void uploads(void **state)
{
	static const struct step step[] = {
		{ .request = "POST /api/upload/batch " PART("a.json") RESULT("01", "1") "\n" PART("b.jsonl")
		  RESULT("02", "2") "\n" RESULT("03", "3") "\n\n" PART("c.json") "{'no': 'run'}\n" PART("d.json")
		  "[\n" PART("e.json") RESULT("01", "1") "\n--x--\n" },
		{ "GET /api/upload/status/$JOB", "\"state\":\"done\"", .how = WHOLE },
		{ JOB "/events", .how = EVENTS }, { .request = JOB "/log" },
		{ .request = "POST /api/jobs/$JOB/cancel {}" }, { .request = "GET /api/jobs?limit=2" },
		{ .request = "GET /api/data/experiments?columns=benchmark.request_rate&sort=timestamp" },
		{ .request = "POST /api/upload/batch --x--\n" }, { .request = "GET /api/upload/status/nothing" },
	};
	pid_t pid = begin("--store sqlite:c.db");

	(void)state;
	take_all(step, COUNT(step));
	assert_int_equal(end(pid), 0);
}

static void write_result(const char *path, const char *day, int rate)
{
	char text[600];

	snprintf(text, sizeof(text), "{\"date\": \"202601%s-000000\", \"backend\": \"vllm\", \"model_id\": \"m\", "
		 "\"num_prompts\": 6, \"request_rate\": %d, \"duration\": 2.5, \"completed\": 5, \"failed\": 1, "
		 "\"total_input_tokens\": 60, \"total_output_tokens\": 20, \"request_throughput\": %d, "
		 "\"output_throughput\": 8, \"mean_ttft_ms\": 100, \"median_ttft_ms\": 91}", day, rate, rate);
	run_write(path, text);
}

/* What a run reports while it is measured; dashboards that cannot be reported to. */
static void reported(void **state)
{
#define BENCH "bench serve --base-url http://127.0.0.1:$SIM --model sim --tokenizer sim --random-input-len 6 " \
	"--random-output-len 3 --num-prompts 4 --max-concurrency 2 --temperature 0 --ready-check-timeout-sec 0 " \
	"--progress none --dashboard "
	static const char *const varies[] = { "-WARNING: this run", "-WARNING: the ", "http://127.0.0.1:9/api/", NULL };
	static const struct verb_case cases[] = {
		{ BENCH "http://127.0.0.1:$WEB/ --label one", .mask = VERB_NO_OUT, .varies = varies },
		{ BENCH "http://127.0.0.1:9", .mask = VERB_NO_OUT, .varies = varies },
		{ BENCH "http://127.0.0.1:$SIM", .mask = VERB_NO_OUT, .varies = varies },
		{ BENCH "127.0.0.1", .status = 2 },
		{ BENCH "http://127.0.0.1:$WEB --model none", .status = 1, .mask = VERB_NO_OUT, .varies = varies },
		{ .line = "ingest r1.json folder --server http://127.0.0.1:$WEB" },
		{ .line = "ingest r1.json --json --server http://127.0.0.1:$WEB/" },
		{ "ingest bad.json r3.json --json --server http://127.0.0.1:$WEB", .status = 1 },
		{ .line = "ingest --trace t.json --run 2 --server http://127.0.0.1:$WEB" },
		{ "ingest --trace t.json --run nobody --server http://127.0.0.1:$WEB", .status = 1 },
		{ "ingest r1.json --server http://127.0.0.1:9", .status = 1, .varies = varies },
		{ "ingest r1.json --server http://127.0.0.1:$SIM", .status = 1 },
		{ "ingest r1.json --server 127.0.0.1", .status = 2 },
		{ "ingest none.json --server http://127.0.0.1:$WEB", .status = 2 },
		{ "ingest r1.json --server http://127.0.0.1:$WEB --token-file none", .status = 1 },
		{ "ingest r1.json --server http://127.0.0.1:$WEB --store sqlite:x.db", .status = 2 },
	};
	static const struct step step[] = {
		{ "GET /api/live", "\"run\":1", .how = WHOLE },
		{ .request = "GET /api/data/experiments?columns=benchmark.num_prompts,completed" },
	};
	/* Members that report one after another; one that fails; addresses of their own. */
	static const struct run_case runs[] = {
		{ "told", "name: told\nmatrix: {benchmark.num_prompts: [2, 3]}\n" RUN_SIM RUN_LOAD,
		  .words = "--dashboard http://127.0.0.1:$WEB/",
		  .how = RUN_SORTED | RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "own", "experiments: [{name: a}, {name: b, server: {extra_args: [--none]}}, "
		  "{name: c, output: {dashboard: null}}]\n"
		  "output: {dashboard: 'http://127.0.0.1:$WEB'}\n" RUN_SIM RUN_LOAD, .status = 1,
		  .how = RUN_SORTED | RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "away", "name: away\noutput: {dashboard: nowhere}\n" RUN_SIM RUN_LOAD, .status = 2,
		  .how = RUN_NO_FILES },
	};
	static const struct step shown[] = {
		{ "GET /api/live", "\"run\":8", .how = WHOLE },
		{ .request = "GET /api/data/experiments?columns=name,benchmark.num_prompts,completed,status"
		  "&sort=timestamp" },
	};
	pid_t pid = begin("--store sqlite:d.db --no-launch");
	char port[8];

	(void)state;
	snprintf(port, sizeof(port), "%u", ask_port);
	verb_let("WEB", port);
	verb_sim("SIM", "--model sim --ttft-ms 2 --itl-ms 1");
	mkdir("folder", 0755);
	write_result("r1.json", "01", 1);
	write_result("folder/r2.json", "02", 2);
	write_result("r3.json", "03", 3);
	run_write("bad.json", "{\"no\": \"run\"}");
	run_write("folder/notes.txt", "no result");
	run_write("t.json", "{\"traceEvents\": []}");
	verb_check_all(cases, COUNT(cases));
	take_all(step, COUNT(step));
	RUN_CHECK_ALL(runs);
	take_all(shown, COUNT(shown));
	assert_int_equal(end(pid), 0);
}

RUN_MAIN(run_setup, cmocka_unit_test(reported), cmocka_unit_test(refused),
	cmocka_unit_test(experiments), cmocka_unit_test(interrupted),
	cmocka_unit_test(uploads))
