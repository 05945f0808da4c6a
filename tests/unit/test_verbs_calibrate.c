/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_calibrate.c - bench serve --calibrate: the error budget of a run, where it is kept,
 * and which of the kept ones a later run uses. Errors are times, of which only relations are known.
 *
 * threads: yes
 */
#include <glob.h>
#include <math.h>

#include "bench/serve/calibrate.h"
#include "client/net/tls.h"
#include "verb.h"
#include "version.h"

#define RUN \
	" --model sim --tokenizer sim --ready-check-timeout-sec 0 --progress none --prompt-salt none" \
	" --random-input-len 8 --random-output-len 3 --timestamps user --output-json r.json "
#define PLAIN  "bench serve --base-url http://127.0.0.1:$C" RUN
#define SECURE "bench serve --base-url https://127.0.0.1:$T --insecure" RUN

static void spew(const char *path, const char *text)
{
	struct err e;

	assert_int_equal(file_write_atomic(path, str_of(text), &e), 0);
}

static struct json_value *read_json(const char *path, struct arena *a)
{
	struct buf text = { 0 };
	struct json_value *v;
	struct err e;

	assert_int_equal(file_read(path, SIZE_MAX, &text, &e), 0);
	assert_int_equal(json_parse(a, arena_str(a, buf_str(&text)), &v, &e), 0);
	buf_release(&text);
	return v;
}

static double real(const struct json_value *v, const char *object, const char *key)
{
	return json_real(json_get(object ? json_get(v, object) : v, key), NAN);
}

/* Whether the parts of a measured budget agree with each other. */
static void check_relations(const struct json_value *b)
{
	static const char *const of[] = { "ttft", "itl", "e2el" };
	double parts =
		real(b, NULL, "send_ms") + real(b, NULL, "kernel_ms") + real(b, NULL, "late_ms");

	assert_true(fabs(parts - real(b, "ttft", "mean_ms")) < 1e-6);
	for (size_t i = 0; i < COUNT(of); i++) {
		double middle = real(b, of[i], strcmp(of[i], "itl") == 0 ? "p99_ms" : "mean_ms");

		assert_true(real(b, of[i], "low_ms") <= middle);
		assert_true(real(b, of[i], "high_ms") > real(b, of[i], "low_ms"));
		assert_true(real(b, of[i], "high_ms") <
			    2000); /* one of another round would be far off */
	}
}

/* What is known of the budget in r.json beforehand. */
static void add_budget(struct buf *got)
{
	static const char *const keys[] = { "source", "stamps",         "streams",
					    "rounds", "round_requests", "round_events" };
	struct arena a = { 0 };
	const struct json_value *b =
		json_get(json_get(read_json("r.json", &a), "profllm"), "error_budget");
	struct json_writer w = json_writer(got);

	for (size_t i = 0; i < COUNT(keys) && b->kind == JSON_OBJECT; i++) {
		buf_printf(got, "%s ", keys[i]);
		json_put_value(&w, json_get(b, keys[i]));
		buf_add_char(got, '\n');
	}
	if (b->kind != JSON_OBJECT)
		buf_add_text(got, "no budget\n");
	else if (str_is(json_text(json_get(b, "source"), STR("")), "calibrated"))
		check_relations(b);
	else
		buf_printf(got, "%s old, TTFT off by %g\n",
			   real(b, NULL, "age_s") > 0 ? "some time" : "not",
			   real(b, "ttft", "mean_ms"));
	arena_release(&a);
}

/* Numbers that depend on the machine. */
static void mask_number(struct str line, const char *before, struct buf *got)
{
	const char *at = memmem(line.p, line.n, before, strlen(before));
	size_t head = at ? (size_t)(at - line.p) + strlen(before) : line.n, digits = 0;

	while (head + digits < line.n && isdigit((unsigned char)line.p[head + digits]))
		digits++;
	buf_printf(got, "%.*s%s%.*s\n", (int)head, line.p, digits ? "N" : "",
		   (int)(line.n - head - digits), line.p + head + digits);
}

/* The lines of a file that are about budgets. */
static void add_lines(const char *path, struct buf *got)
{
	struct buf text = { 0 };
	struct str rest;
	struct err e;

	assert_int_equal(file_read(path, SIZE_MAX, &text, &e), 0);
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_cut(&rest, '\n');

		if (memmem(line.p, line.n, "alibrat", 7)
			    ? !str_starts(line, STR("Error of"))
			    : memmem(line.p, line.n, "budget", 6) != NULL)
			mask_number(line, "reached only ", got);
	}
	buf_release(&text);
}

/* Files below a folder by name; what names the machine is left out. */
static void add_names(const char *folder, struct buf *got)
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		buf_printf(got, "kept as %s\n",
			   strchr(found.gl_pathv[i] + strlen(folder) + 1, '-'));
	globfree(&found);
}

static void check(const char *line, const char *env, const char *folder)
{
	struct buf got = { 0 }, title = { 0 };
	char out[64], err[64];

	unlink("r.json");
	snprintf(out, sizeof(out), "%s/.out", dir);
	snprintf(err, sizeof(err), "%s/.err", dir);
	buf_printf(&got, "status %d\n", verb_end(verb_begin(line, env, out, err)));
	add_lines(out, &got);
	add_lines(err, &got);
	add_budget(&got);
	if (folder)
		add_names(folder, &got);
	buf_printf(&title, "%s %s", env, line);
	verb_answer(title.data, &got);
	buf_release(&title);
}

static void measured(void **state)
{
	(void)state;
	check(PLAIN "--num-prompts 4 --max-concurrency 3 --calibrate --calibrate-itl 20",
	      "XDG_CACHE_HOME=$DIR/xdg", "xdg/profllm/budgets");
	check(SECURE
	      "--num-prompts 2 --request-rate 90 --threads 2 --warm-connections 3 --calibrate --calibrate-itl 20",
	      "PROFLLM_CACHE_DIR=/proc/none", NULL);
	check(PLAIN "--num-prompts 2 --max-concurrency 2 --calibrate --calibrate-itl 0.0001",
	      "PROFLLM_CACHE_DIR=$DIR/none", "none");
	check(PLAIN "--num-prompts 2 --calibrate --random-output-len 1",
	      "PROFLLM_CACHE_DIR=$DIR/none", "none");
	check(PLAIN "--num-prompts 2 --max-concurrency 1 --calibrate --calibrate-itl 20",
	      "TMPDIR=/proc/none PROFLLM_CACHE_DIR=", "none");
}

/* Ctrl-C while it calibrates ends that alone. */
static void interrupted(void **state)
{
	struct buf got = { 0 }, text = { 0 };
	struct err e;
	pid_t pid;

	(void)state;
	unlink("r.json");
	pid = verb_begin(PLAIN "--num-prompts 8 --max-concurrency 1 --calibrate",
			 "PROFLLM_CACHE_DIR=$DIR/none", "cut.out", "cut.err");
	do {
		verb_wait_for("cut.out", pid);
		buf_reset(&text);
		assert_int_equal(file_read("cut.out", SIZE_MAX, &text, &e), 0);
		usleep(1000);
	} while (!memmem(text.data, text.len, "Calibrating", 11));
	kill(pid, SIGINT);
	buf_printf(&got, "status %d\n", verb_end(pid));
	add_lines("cut.err", &got);
	add_budget(&got);
	add_names("none", &got);
	verb_answer("interrupted", &got);
	buf_release(&text);
}

/* ---- kept budgets ---- */

static char machine[80];

/* A budget of 10 rounds whose mean error of TTFT is so many ms. */
static void keep(const char *folder, const char *name, unsigned streams, double events_per_s,
		 double ttft_ms, double age_s)
{
	struct budget b = {
		.level = { .streams = streams,
			   .events_per_s = events_per_s,
			   .requests = 2,
			   .events = 3,
			   .threads = 1,
			   .stamps = BUDGET_USER,
			   .is_burst = true },
		.rounds = 10,
		.ttft = { ttft_ms, ttft_ms, ttft_ms / 2, 2 * ttft_ms },
		.itl = { 1, 1, 1, 1 },
		.e2el = { 1, 1, 1, 1 },
		.send = ttft_ms,
		.at_ns = clock_real_ns() - (int64_t)(age_s * 1e9),
	};
	struct buf text = { 0 };
	char path[256];
	struct err e;

	assert_int_equal(file_mkdirs(folder, &e), 0);
	budget_write(&b, machine, PROFLLM_VERSION, &text);
	snprintf(path, sizeof(path), "%s/%.12s%s", folder, machine, name);
	assert_int_equal(file_write_atomic(path, buf_str(&text), &e), 0);
	buf_release(&text);
}

static void drop(const char *folder, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%.12s%s", folder, machine, name);
	assert_int_equal(unlink(path), 0);
}

static void kept(void **state)
{
#define SLOW  "bench serve --base-url http://127.0.0.1:$K" RUN
#define LATER SLOW "--random-output-len 5 --num-prompts 3 --max-concurrency 3"
#define MANY  SLOW "--random-output-len 5 --num-prompts 8 --max-concurrency 8"
#define IN    "PROFLLM_CACHE_DIR=$DIR/own"
	struct arena a = { 0 };
	char path[256];
	glob_t found;

	(void)state;
	assert_int_equal(glob("xdg/profllm/budgets/*.json", 0, NULL, &found), 0);
	snprintf(machine, sizeof(machine), "%.70s",
		 json_text(json_get(read_json(found.gl_pathv[0], &a), "machine"), STR("")).p);
	machine[strcspn(machine, "\"")] = '\0';
	globfree(&found);
	arena_release(&a);
	keep("xdg/profllm/budgets", "-a.json", 3, 10, 6.5, 9);
	check(LATER, "PROFLLM_CACHE_DIR= XDG_CACHE_HOME=$DIR/xdg", NULL);

	/* the nearer one, in whichever order the folder has them */
	keep("own/budgets", "-a.json", 9, 10, 1.5, 9);
	keep("own/budgets", "-b.json", 8, 14, 2.5, 9);
	check(MANY, IN, NULL);
	keep("own/budgets", "-a.json", 8, 14, 2.5, 9);
	keep("own/budgets", "-b.json", 9, 10, 1.5, 9);
	check(MANY " --seed 1", IN, NULL);
	keep("own/budgets", "-a.json", 3, 2, 2.5, 9);          /* another level */
	keep("own/budgets", "-b.json", 3, 10, 3.5, 2 * 86400); /* too old */
	check(LATER " --seed 2", IN, NULL);
	snprintf(path, sizeof(path), "own/budgets/%.12s-c.txt", machine);
	spew(path, "{");
	spew("own/budgets/000000000000-d.json", "{");
	keep("own/budgets", "-b.json", 3, 10, 4.5, 60);
	check(LATER " --seed 3", IN, NULL);
	drop("own/budgets", "-b.json");
	snprintf(path, sizeof(path), "own/budgets/%.12s-a.json", machine);
	spew(path, "{");
	verb_let("KEPT", path);
	check(LATER " --seed 4", IN, NULL);

	keep("home/.cache/profllm/budgets", "-a.json", 3, 10, 5.5, 9);
	check(LATER, "XDG_CACHE_HOME= HOME=$DIR/home", NULL);
	check(LATER, "XDG_CACHE_HOME= HOME=", NULL);
}

/* ---- a simulator that does not start ---- */

static void unable(void **state)
{
	static const struct {
		const char *script, *want;
		enum err_code code;
		bool is_cancelled;
	} row[] = {
		{ "echo one >&2; echo 'no more ports' >&2; exit 2",
		  "the simulator did not start: no more ports", ERR_RUN, false },
		{ "exit 0", "the simulator did not start", ERR_RUN, false },
		{ "sleep 9", "interrupted", ERR_CANCELLED, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct load_opts load = { .threads = 1 };
		atomic_bool cancel = row[i].is_cancelled;
		struct calibration c = {
			.level = { .streams = 1,
				   .events_per_s = 50,
				   .requests = 2,
				   .events = 3,
				   .threads = 1 },
			.load = &load,
			.program = "./simulator",
			.cancel = &cancel,
		};
		struct buf text = { 0 };
		struct budget b;
		struct err e = { 0 };
		glob_t found;

		/* What keeps it is this program. */
		buf_printf(&text, "#!/bin/sh\n[ \"$1\" = sim ] || exec %s \"$@\"\n%s\n",
			   verb_value(STR("PROFLLM")), row[i].script);
		spew("simulator", text.data);
		assert_int_equal(chmod("simulator", 0755), 0);
		buf_release(&text);
		setenv("TMPDIR", dir, 1);
		assert_int_equal(calibrate(&c, &b, &e), -1);
		assert_string_equal(e.text, row[i].want);
		assert_int_equal(e.code, row[i].code);
		assert_int_equal(b.rounds, 0);
		assert_int_equal(glob("profllm-calibrate-*", 0, NULL, &found), GLOB_NOMATCH);
	}
}

static int setup(void **state)
{
	struct err e;

	if (verb_setup(state) < 0)
		return -1;
	verb_let("DIR", dir);
	setenv("TMPDIR", dir, 1);
	unsetenv("PROFLLM_CACHE_DIR");
	if (tls_make_certificate("cert.pem", "key.pem", &e) < 0)
		return -1;
	verb_sim("C", "--ttft-ms 20 --itl-ms 20");
	verb_sim("K", "--ttft-ms 5 --itl-ms 100");
	verb_sim("T", "--ttft-ms 20 --itl-ms 20 --ssl-certfile cert.pem --ssl-keyfile key.pem");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(kept),
		cmocka_unit_test(unable),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
