/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker.c - worker programs: good ones, and every kind of bad one.
 *
 * They are lines of Perl after a common beginning. Whatever they start carries a variable in its
 * environment; after each case nothing that carries it may be left.
 *
 * threads: yes
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/proc/keeper.h"
#include "host/proc/tree.h"
#include "host/worker/worker.h"

#define BEGIN \
	"$SIG{PIPE} = 'IGNORE'; open(my $s, '+<&=', $ENV{PROFLLM_WORKER_FD}) or die; binmode $s;" \
	"sub raw { my $t = shift; while (length $t) { my $n = syswrite($s, $t); $n or exit 9; " \
	"  substr($t, 0, $n) = '' } }" \
	"sub put { my $t = shift; raw(pack('N', length $t) . $t) }" \
	"sub take { my ($n, $t) = (shift, ''); while (length $t < $n) {" \
	"  sysread($s, $t, $n - length $t, length $t) or exit 0 } $t }" \
	"sub get { my $t = take(unpack 'N', take(4)); our ($id) = $t =~ /\"id\":(\\d+)/;" \
	"  if ($t =~ /\"shutdown\"/) { put(qq({\"id\":$id,\"type\":\"ok\"})); exit 0 } $t }" \
	"sub hello { put('{\"type\":\"hello\",\"protocol\":1,\"engine\":\"test\",\"version\":\"1.2\"," \
	"  \"features\":[\"chat\",\"beam\"]}') } our $id;"

static char folder[64], variable[64];

static unsigned survivors(void)
{
	struct tree t = { 0 };
	unsigned n = 0;

	assert_int_equal(tree_read(&t), 0);
	for (size_t i = 0; i < t.n; i++)
		n += t.process[i].pid != getpid() && !t.process[i].is_zombie &&
		     tree_has_variable(t.process[i].pid, variable);
	tree_release(&t);
	return n;
}

static void remember(void *self, const char *text)
{
	buf_add_text(self, text);
	buf_add_char(self, '\n');
}

static void count(void *self, uint64_t done, uint64_t total)
{
	buf_printf(self, "%llu/%llu\n", (unsigned long long)done, (unsigned long long)total);
}

struct rig {
	struct engine_worker *w;
	struct worker_opts o;
	struct worker_failure why;
	struct buf said;
	struct err e;
	char *argv[4];
};

static int start(struct rig *r, const char *script)
{
	struct buf text = { 0 };
	int rc;

	buf_add_text(&text, BEGIN);
	buf_add_text(&text, script);
	r->argv[0] = (char[]){ "perl" };
	r->argv[1] = (char[]){ "-e" };
	r->argv[2] = text.data;
	r->o.name = "the test worker";
	r->o.argv = r->argv;
	r->o.show_fd = -1;
	r->o.load_s = r->o.load_s ? r->o.load_s : 20;
	r->o.silence_s = r->o.silence_s ? r->o.silence_s : 20;
	r->o.grace_s = r->o.grace_s ? r->o.grace_s : 20;
	r->o.hooks.self = &r->said;
	r->o.hooks.line = r->o.hooks.warn = remember;
	r->o.hooks.progress = count;
	rc = worker_start(&r->o, &r->w, &r->why, &r->e);
	buf_release(&text);
	return rc;
}

static void stop(struct rig *r)
{
	assert_int_equal(worker_stop(r->w, &r->e), 0);
	assert_int_equal(survivors(), 0);
	buf_release(&r->said);
}

static int ask(struct rig *r, const char *type, struct worker_reply *reply)
{
	return worker_call(r->w, type, NULL, reply, &r->why, &r->e);
}

static void expect_text(const char *text, const char *part, const char *of)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in '%s' of: %s", part, text ? text : "", of);
}

/* ---- what goes well ---- */

static void a_talk(void **state)
{
	struct rig r = { 0 };
	struct worker_reply reply;
	struct buf members = { 0 };
	struct json_slice v;
	int64_t n;

	(void)state;
	assert_int_equal(start(&r, "hello(); while (1) { $_ = get();"
			       "put('{\"type\":\"progress\",\"done\":1,\"total\":2}');"
			       "put('{\"type\":\"line\",\"text\":\"so \\u00fc\"}'); print 'to the log';"
			       "put(qq({\"id\":$id,\"type\":\"ok\",\"asked\":$_})) }"), 0);
	assert_string_equal(worker_hello(r.w)->engine, "test");
	assert_string_equal(worker_hello(r.w)->version, "1.2");
	assert_true(worker_hello(r.w)->spawn_s > 0);
	assert_true(worker_has(r.w, "beam"));
	assert_false(worker_has(r.w, "async"));
	buf_add_text(&members, "\"n\":7");
	for (int64_t i = 1; i < 4; i++) {
		assert_int_equal(worker_call(r.w, "generate", &members, &reply, NULL, &r.e), 0);
		assert_true(json_path(reply.body, &v, "asked", "id", NULL));
		assert_true(json_to_i64(v, &n) && n == i);
		assert_true(json_path(reply.body, &v, "asked", "n", NULL));
		assert_true(json_to_i64(v, &n) && n == 7);
		assert_true(reply.asked_ns <= reply.answered_ns);
	}
	assert_string_equal(r.said.data, "1/2\nso \xc3\xbc\n1/2\nso \xc3\xbc\n1/2\nso \xc3\xbc\n");
	buf_release(&members);
	stop(&r);
}

/* Both sides write at once: neither may wait for the other to read. */
static void large_frames(void **state)
{
	struct rig r = { 0 };
	struct worker_reply reply;
	struct buf members = { 0 };

	(void)state;
	assert_int_equal(start(&r, "hello(); while (1) { my $head = take(4);"
			       "put('{\"type\":\"progress\",\"done\":0,\"total\":0,\"x\":\"' ."
			       " 'y' x 3000000 . '\"}');"
			       "$_ = take(unpack 'N', $head); my ($id) = /\"id\":(\\d+)/;"
			       "put(qq({\"id\":$id,\"type\":\"ok\",\"asked\":$_}));"
			       "exit 0 if /shutdown/ }"), 0);
	buf_add_text(&members, "\"x\":\"");
	for (int i = 0; i < 300000; i++)
		buf_add_text(&members, "0123456789");
	buf_add_text(&members, "\"");
	assert_int_equal(worker_call(r.w, "put", &members, &reply, &r.why, &r.e), 0);
	assert_true(reply.body.raw.n > 3000000);
	buf_release(&members);
	stop(&r);
}

/* Progress keeps it alive for longer than its silence may last. */
static void signs_of_life(void **state)
{
	struct rig r = { .o.silence_s = 1 };
	struct worker_reply reply;

	(void)state;
	assert_int_equal(start(&r, "hello(); get(); for (1 .. 6) { select(undef, undef, undef, 0.3);"
			       "put('{\"type\":\"progress\",\"done\":1,\"total\":0}') }"
			       "put(qq({\"id\":$id,\"type\":\"ok\"})); get()"), 0);
	assert_int_equal(ask(&r, "generate", &reply), 0);
	assert_true(reply.answered_ns - reply.asked_ns > 1500000000);
	stop(&r);
}

/* An "error" answer is an answer: the next question is asked as if nothing had been. */
static void errors_are_answers(void **state)
{
	static const struct {
		const char *category;
		enum worker_fault fault;
		enum err_code code;
		const char *text;
	} cases[] = {
		{ "missing", WORKER_FAULT_PACKAGE, ERR_RUN, "failed during load (package missing): why" },
		{ "flag", WORKER_FAULT_FLAG, ERR_USAGE, "(bad flag): why" },
		{ "model", WORKER_FAULT_MODEL, ERR_RUN, "(model not found): why" },
		{ "memory", WORKER_FAULT_MEMORY, ERR_RUN, "(out of memory): why" },
		{ "unsupported", WORKER_FAULT_UNSUPPORTED, ERR_RUN, "(unsupported): why" },
		{ "other", WORKER_FAULT_OTHER, ERR_RUN, "the test worker failed during load: why" },
		{ "new", WORKER_FAULT_OTHER, ERR_RUN, "the test worker failed during load: why" },
	};
	struct rig r = { 0 };
	struct worker_reply reply;

	(void)state;
	assert_int_equal(start(&r, "hello(); for my $c (qw(missing flag model memory unsupported other new))"
			       "{ get(); put(qq({\"id\":$id,\"type\":\"error\",\"category\":\"$c\","
			       "\"text\":\"why\"})) } get();"
			       "put(qq({\"id\":$id,\"type\":\"ok\"})); get()"), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(ask(&r, "load", &reply), -1);
		assert_int_equal(r.why.fault, cases[i].fault);
		assert_int_equal(r.e.code, cases[i].code);
		assert_string_equal(r.why.reason, "why");
		expect_text(r.e.text, cases[i].text, cases[i].category);
	}
	assert_int_equal(ask(&r, "load", &reply), 0);
	stop(&r);
}

/* ---- faults ---- */

/* CALL "body": a question reaches body, which has read it. */
#define CALL(body) "hello(); get(); " body

static const struct bad {
	const char *script;
	bool is_call;
	enum worker_fault fault;
	enum err_code code;
	const char *text, *said; /* parts of the sentence and of the warnings */
	double load_s, silence_s;
} bad[] = {
	{ "exit 3", false, WORKER_FAULT_CRASHED, ERR_RUN,
	  .text = "ended with status 3 without an answer during starting (crash)", "nothing was written" },
	{ "exit 0", false, WORKER_FAULT_CRASHED, ERR_RUN, .text = "ended with status 0 without an answer" },
	{ "exit 127", false, WORKER_FAULT_NOT_FOUND, ERR_USAGE, .text = "(program not found)" },
	{ "print STDERR qq(WARNING: No module named 'x'\\nModuleNotFoundError: No module named 'vllm'\\n);"
	  "exit 1", false, WORKER_FAULT_PACKAGE, ERR_RUN,
	  .text = "(package missing: ModuleNotFoundError: No module named 'vllm')",
	  "the end of the log of the test worker:\n  WARNING: No module named 'x'\n" },
	{ "print STDERR qq(No module named 'x'\\nValueError: no\\n); exit 1", false,
	  WORKER_FAULT_CRASHED, ERR_RUN, .text = "(crash: ValueError: no)" },
	{ "print STDERR qq(w.py: error: unrecognized arguments: --foo\\n); exit 2", false,
	  WORKER_FAULT_FLAG, ERR_USAGE, .text = "(bad flag: w.py: error: unrecognized arguments: --foo)" },
	{ "put('{\"type\":\"error\",\"category\":\"missing\",\"text\":\"No module named vllm\"}'); exit 1",
	  false, WORKER_FAULT_PACKAGE, ERR_RUN, .text = "starting (package missing): No module named vllm" },
	{ "kill 9, $$", false, WORKER_FAULT_KILLED, ERR_RUN, .text = "was killed by signal 9 (Killed)" },
	{ "sleep 100", false, WORKER_FAULT_HUNG, ERR_RUN, .text = "was not done with starting within 0.3 seconds",
	  .load_s = 0.3 },
	{ "$SIG{TERM} = 'IGNORE'; sleep 1 while 1", false, WORKER_FAULT_HUNG, ERR_RUN, .text = "--load-timeout",
	  .load_s = 0.3 },
	{ "exit 4 if fork; sleep 100", false, WORKER_FAULT_CRASHED, ERR_RUN, .text = "ended with status 4" },
	{ "unless (fork) { setpgrp; $SIG{TERM} = 'IGNORE'; exit if fork; sleep 1 while 1 } exit 5", false,
	  WORKER_FAULT_CRASHED, ERR_RUN, .text = "ended with status 5" },
	{ "raw(\"Hello, world\\n\"); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "broke the protocol during starting: 'Hell' found where a frame's length was expected" },
	{ "raw(pack 'N', 0xfffffff0); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "a frame of 4294967280 bytes; at most 268435456" },
	{ "put('{\"type\":'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "a frame that is not a JSON object: {\"type\":" },
	{ "put('[1]'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "not a JSON object: [1]" },
	{ "put('{\"type\":1}'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "without a type" },
	{ "put('{\"type\":\"x\"}'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "unknown type" },
	{ "put('{\"type\":\"hello\"}'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "without the protocol's version" },
	{ "put('{\"type\":\"hello\",\"protocol\":2}'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "it speaks version 2, we speak 1" },
	{ "put('{\"type\":\"hello\",\"protocol\":1,\"features\":[1]}'); sleep 100", false,
	  WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "a member of a wrong type" },
	{ "put('{\"id\":1,\"type\":\"ok\"}'); sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "its first frame is no hello" },
	{ "raw(pack('N', 100) . '{'); exit 0", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "it ended in the middle of a frame" },
	{ "close $s; sleep 100", false, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "it closed its socket without an answer" },
	{ CALL("exit 1"), true, WORKER_FAULT_CRASHED, ERR_RUN,
	  .text = "status 1 without an answer during generate" },
	{ CALL("kill 11, $$"), true, WORKER_FAULT_CRASHED, ERR_RUN,
	  .text = "killed by signal 11 (Segmentation fault) during generate" },
	{ CALL("print STDERR qq(a\\ntorch.OutOfMemoryError: CUDA out of memory. Tried\\nb\\n); exit 1"), true,
	  WORKER_FAULT_MEMORY, ERR_RUN,
	  .text = "(out of memory: torch.OutOfMemoryError: CUDA out of memory. Tried)", "  b\n" },
	{ CALL("sleep 100"), true, WORKER_FAULT_HUNG, ERR_RUN,
	  .text = "gave no sign of life for 0.3 seconds during generate (--worker-timeout)", .silence_s = 0.3 },
	{ CALL("print 'out'; raw('garbage'); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "'garb'" },
	{ CALL("put('{\"id\":77,\"type\":\"ok\"}'); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "question 1 was answered as 77" },
	{ CALL("put('{\"id\":\"1\",\"type\":\"ok\"}'); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "an id that is no integer" },
	{ CALL("put('{\"type\":\"ok\"}'); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "an answer without an id" },
	{ CALL("put('{\"id\":1,\"type\":\"error\"}'); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "an error without a text" },
	{ CALL("put('{\"type\":\"progress\",\"done\":-1}'); sleep 100"), true, WORKER_FAULT_PROTOCOL,
	  ERR_RUN, .text = "progress that is no count" },
	{ CALL("hello(); sleep 100"), true, WORKER_FAULT_PROTOCOL, ERR_RUN, .text = "a second hello" },
	{ CALL("raw(pack('N', 100) . '{\"id\":1'); exit 0"), true, WORKER_FAULT_PROTOCOL, ERR_RUN,
	  .text = "it ended in the middle of a frame" },
};

static void every_fault(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct bad *b = &bad[i];
		struct rig r = { .o.load_s = b->load_s, .o.silence_s = b->silence_s };
		struct worker_reply reply;

		assert_int_equal(start(&r, b->script), b->is_call ? 0 : -1);
		if (b->is_call)
			assert_int_equal(ask(&r, "generate", &reply), -1);
		if (r.why.fault != b->fault || r.e.code != b->code)
			fail_msg("%s: %s (%s)", b->script, worker_fault_name(r.why.fault), r.e.text);
		expect_text(r.e.text, b->text, b->script);
		if (b->said)
			expect_text(r.said.data, b->said, b->script);
		stop(&r);
	}
}

static void no_such_program(void **state)
{
	struct rig r = { 0 };
	struct engine_worker *w;

	(void)state;
	r.o.name = "the x worker";
	r.argv[0] = (char[]){ "no-such-worker-anywhere" };
	r.o.argv = r.argv;
	r.o.show_fd = -1;
	assert_int_equal(worker_start(&r.o, &w, &r.why, &r.e), -1);
	assert_int_equal(r.why.fault, WORKER_FAULT_NOT_FOUND);
	assert_int_equal(r.e.code, ERR_USAGE);
	assert_string_equal(r.e.text, "the x worker cannot be started: 'no-such-worker-anywhere': "
			    "No such file or directory");
}

/* What is answered before it was heard is no answer to it. */
static void an_early_answer(void **state)
{
	struct rig r = { 0 };
	struct worker_reply reply;
	struct buf members = { 0 };

	(void)state;
	assert_int_equal(start(&r, "hello(); take(100); put('{\"id\":1,\"type\":\"ok\"}'); sleep 100"), 0);
	buf_add_text(&members, "\"x\":\"");
	for (int i = 0; i < 300000; i++)
		buf_add_text(&members, "0123456789");
	buf_add_text(&members, "\"");
	assert_int_equal(worker_call(r.w, "put", &members, &reply, &r.why, &r.e), -1);
	assert_int_equal(r.why.fault, WORKER_FAULT_PROTOCOL);
	expect_text(r.e.text, "an answer before the question's end", "an early answer");
	buf_release(&members);
	stop(&r);
}

static void *set_soon(void *cancel)
{
	usleep(200000);
	atomic_store((atomic_bool *)cancel, true);
	return NULL;
}

/* It ends by TERM; one that ignores it is killed when the grace is over. */
static void cancelled(void **state)
{
	static const char *const scripts[] = {
		"hello(); get(); sleep 100",
		"$SIG{TERM} = 'IGNORE'; hello(); get(); sleep 1 while 1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		atomic_bool cancel = false;
		struct rig r = { .o.grace_s = 0.3, .o.hooks.cancel = &cancel };
		struct worker_reply reply;
		int64_t began_ns;
		pthread_t thread;

		assert_int_equal(start(&r, scripts[i]), 0);
		assert_int_equal(pthread_create(&thread, NULL, set_soon, &cancel), 0);
		assert_int_equal(ask(&r, "generate", &reply), -1);
		began_ns = clock_mono_ns();
		pthread_join(thread, NULL);
		assert_int_equal(r.e.code, ERR_CANCELLED);
		assert_int_equal(r.why.fault, WORKER_FAULT_CANCELLED);
		stop(&r);
		assert_true(clock_mono_ns() - began_ns < 15000000000);
	}
}

/* What does not end when asked is ended, and that is said. */
static void refuses_to_end(void **state)
{
	struct rig r = { .o.grace_s = 0.3 };

	(void)state;
	assert_int_equal(start(&r, "$SIG{TERM} = 'IGNORE'; hello(); sleep 1 while 1"), 0);
	assert_int_equal(worker_stop(r.w, &r.e), 0);
	assert_int_equal(survivors(), 0);
	assert_string_equal(r.said.data, "the test worker did not end within 0.3 seconds when it was "
			    "asked to\n");
	buf_release(&r.said);
}

static void a_named_log(void **state)
{
	struct rig r = { 0 };
	char *path = file_join(folder, "logs/worker.log");
	struct buf text = { 0 };

	(void)state;
	r.o.log_path = path;
	assert_int_equal(start(&r, "print STDERR 'first run: out of memory'; hello(); get()"), 0);
	stop(&r);
	/* What an earlier one wrote says nothing about this one. */
	assert_int_equal(start(&r, "print \"second\\n\"; exit 1"), -1);
	assert_int_equal(r.why.fault, WORKER_FAULT_CRASHED);
	assert_string_equal(r.why.tail, "second");
	expect_text(r.said.data, path, "the log's name");
	assert_int_equal(file_read(path, 1000, &text, NULL), 0);
	assert_string_equal(text.data, "first run: out of memorysecond\n");
	buf_release(&text);
	buf_release(&r.said);
	free(path);
}

static void distrust(void **state)
{
	struct rig r = { 0 };
	struct worker_reply reply;

	(void)state;
	assert_int_equal(start(&r, "hello(); get(); put(qq({\"id\":$id,\"type\":\"ok\"})); sleep 100"), 0);
	assert_int_equal(ask(&r, "put", &reply), 0);
	assert_int_equal(worker_distrust(r.w, &r.e, "n is %d", 5), -1);
	assert_string_equal(r.e.text, "the test worker broke the protocol during its answer: n is 5");
	stop(&r);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/worker-%d", (int)getpid());
	snprintf(variable, sizeof(variable), "WORKER_TEST=%d", (int)getpid());
	setenv("XDG_RUNTIME_DIR", folder, 1);
	setenv("WORKER_TEST", variable + 12, 1);
	return file_mkdirs(folder, NULL);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_talk),
		cmocka_unit_test(large_frames),
		cmocka_unit_test(signs_of_life),
		cmocka_unit_test(errors_are_answers),
		cmocka_unit_test(every_fault),
		cmocka_unit_test(no_such_program),
		cmocka_unit_test(an_early_answer),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(refuses_to_end),
		cmocka_unit_test(a_named_log),
		cmocka_unit_test(distrust),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
