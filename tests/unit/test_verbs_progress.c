/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_progress.c - what `profllm run` says on stderr of how far its stages are, and of
 * warnings; --events.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/verbs/run_verb.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "on_stderr.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

#define S 1000000000ll

/* What is written when a stage that began so long ago has come so far. */
static const char *shown(const char *how, int64_t ago_ns, uint64_t done, uint64_t total)
{
	struct run_talk t;
	struct suite_hooks hooks;

	run_talk_init(&t, how, false);
	hooks = run_talk_hooks(&t, -1);
	begin_stderr();
	snprintf(t.what, sizeof(t.what), "Start");
	t.began_ns = t.drawn_ns = clock_mono_ns() - ago_ns;
	hooks.run.progress(hooks.run.self, "Start", done, total);
	return end_stderr();
}

/* Half a second more than is shown, so that the machine may be slow. */
static void stages(void **state)
{
	static const struct {
		const char *how;
		int64_t ago_ns;
		uint64_t done, total;
		const char *text;
	} row[] = {
		{ "lines", 10 * S + S / 2, 12, 48, "Start 12/48 [00:10<00:31]\n" },
		{ "lines", 10 * S + S / 2, 0, 48, "Start 0/48 [00:10]\n" },
		{ "lines", 10 * S + S / 2, 48, 48, "Start 48/48 [00:10]\n" },
		{ "lines", 100 * S + S / 2, 7, 0, "Start [01:40]\n" },
		{ "lines", S, 12, 48, "" }, { "none", 10 * S, 12, 48, "" },
		{ "bar", 10 * S + S / 2, 12, 48, "\rStart ######.................. 12/48 [00:10<00:31]\033[K" },
		{ "bar", 10 * S + S / 2, 50, 48, "\rStart ######################## 50/48 [00:10]\033[K" },
		{ "bar", S + S / 2, 0, 48, "\rStart ........................ 0/48 [00:01]\033[K" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_string_equal(shown(row[i].how, row[i].ago_ns, row[i].done, row[i].total),
				    row[i].text);
}

static void tell(struct suite_hooks *hooks, char how, const char *text)
{
	struct suite_member m = { .label = "one" };

	if (how == 'w')
		hooks->run.warn(hooks->run.self, text);
	else if (how == 'c')
		hooks->child(hooks->self, &m, text, true);
	else
		hooks->run.progress(hooks->run.self, text, 3, 4);
}

/* Warnings while a bar is drawn; -q shows one warning once, also with other numbers. */
static void warnings(void **state)
{
	static const struct { const char *how; bool is_quiet; const char *said; } row[] = {
		{ "none", true, "w: 3 of 5 late|w: 41 of 7 late|w: other|w: 3 of 5 later" },
		{ "none", false, "w: 3 of 5 late|w: 41 of 7 late|c: a line" },
		{ "bar", false, "p: Start|w: late|w: later|p: Stop|c: a line|c: another" },
	};
	static const char *const shown[] = {
		"WARNING: 3 of 5 late\nWARNING: other\nWARNING: 3 of 5 later\n",
		"WARNING: 3 of 5 late\nWARNING: 41 of 7 late\none: a line\n",
		"\rStart ##################...... 3/4 [00:00<00:00]\033[K\r\033[KWARNING: late\nWARNING: later\n"
		"\rStop ##################...... 3/4 [00:00<00:00]\033[K\r\033[Kone: a line\none: another\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct str rest = str_of(row[i].said);
		struct suite_hooks hooks;
		struct run_talk t;

		run_talk_init(&t, row[i].how, row[i].is_quiet);
		hooks = run_talk_hooks(&t, -1);
		begin_stderr();
		while (rest.n) {
			struct str one = str_cut(&rest, '|');
			char text[64];

			snprintf(text, sizeof(text), "%.*s", (int)one.n - 3, one.p + 3);
			tell(&hooks, *one.p, text);
		}
		assert_string_equal(end_stderr(), shown[i]);
	}
}

/* Warnings that -q remembers: what comes after the last of them is shown every time. */
static void many_warnings(void **state)
{
	struct suite_hooks hooks;
	struct run_talk t;
	char text[8] = "";

	(void)state;
	run_talk_init(&t, "none", true);
	hooks = run_talk_hooks(&t, -1);
	begin_stderr();
	for (int i = 0; i < RUN_TALK_WARNED; i++) {
		snprintf(text, sizeof(text), "%c%c", 'a' + i / 26, 'a' + i % 26);
		tell(&hooks, 'w', text);
	}
	end_stderr();
	begin_stderr();
	tell(&hooks, 'w', text);
	tell(&hooks, 'w', "aa");
	tell(&hooks, 'w', "zz");
	tell(&hooks, 'w', "zz");
	assert_string_equal(end_stderr(), "WARNING: zz\nWARNING: zz\n");
}

static int calls;

static void count_sample(void *self, const struct run_sample *now)
{
	(void)self;
	(void)now;
	calls++;
}

/* --events: what is told is in the file, and goes on to the one who was told before. */
static void events(void **state)
{
	static const struct { const char *path, *text; } row[] = {
		{ "/dev/full", NULL },
		{ NULL, "{\"event\": \"progress\", \"at\": #, \"what\": \"Start\", \"done\": 3, \"total\": 4}\n"
		  "{\"event\": \"telemetry\", \"at\": #, \"total\": 9, \"admitted\": 5, \"done\": 4, \"failed\": 1, "
		  "\"tokens\": 77, \"running\": 2.5, \"waiting\": null, \"kv_cache_usage\": null, "
		  "\"gpu_utilization_percent\": 6.0, \"gpu_memory_bytes\": 7.0, \"gpu_power_w\": 8.0, "
		  "\"host_cpus_busy\": 9.0, \"host_memory_bytes\": 10.0, \"process_cpus_busy\": 11.0, "
		  "\"process_rss_bytes\": 12.0}\n" },
	};
	struct run_sample now = {
		.n_rows = 9, .load = { .admitted = 5, .done = 4, .failed = 1, .tokens = 77 },
		.server = { .running = 2.5, .waiting = NAN, .kv_usage = NAN },
		.system = { .gpu_utilization = 6, .gpu_memory = 7, .gpu_power = 8,
			    .host_cpus_busy = 9, .host_memory = 10,
			    .process_cpus_busy = 11, .process_rss = 12 },
	};
	char own[] = "/tmp/profllm-unit-XXXXXX";
	int fd = mkstemp(own);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < COUNT(row); i++) {
		const char *path = row[i].path ? row[i].path : own;
		struct suite_hooks hooks;
		struct run_events *r;
		struct run_talk t;
		struct buf got = { 0 };
		struct err e;

		run_talk_init(&t, "none", false);
		hooks = run_talk_hooks(&t, -1);
		hooks.run.sample = count_sample;
		assert_int_equal(run_events_begin(path, &hooks, &r, &e), 0);
		calls = 0;
		begin_stderr();
		tell(&hooks, 'p', "Start");
		hooks.run.sample(hooks.run.self, &now);
		/* Within a second of the first: not written. */
		hooks.run.sample(hooks.run.self, &now);
		tell(&hooks, 'w', "late");
		tell(&hooks, 'c', "a line");
		assert_string_equal(end_stderr(), "WARNING: late\none: a line\n");
		assert_int_equal(calls, 2);
		run_events_end(r);
		if (!row[i].text)
			continue;
		assert_int_equal(file_read(path, SIZE_MAX, &got, &e), 0);
		buf_add_char(&got, '\0');
		for (char *at = got.data, *end; (at = strstr(at, "\"at\": ")); at = end) {
			at += strlen("\"at\": ");
			end = at + strcspn(at, ",");
			*at = '#';
			memmove(at + 1, end, strlen(end) + 1);
			end = at;
		}
		assert_string_equal(got.data, row[i].text);
		buf_release(&got);
	}
	unlink(own);
	{
		struct suite_hooks hooks = { 0 };
		struct run_events *r;
		struct err e;

		assert_int_equal(run_events_begin("/nothing/events", &hooks, &r, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_null(r);
		assert_int_equal(run_events_begin(NULL, &hooks, &r, &e), 0);
		assert_null(r);
		assert_null(hooks.member);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages), cmocka_unit_test(warnings),
		cmocka_unit_test(many_warnings), cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
