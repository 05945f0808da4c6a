/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_server_server.c - where a server listens and what it is, by its words; why it ended, by its
 * log; its whole life, with small scripts as servers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "bench/server/server.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/proc/keeper.h"
#include "host/proc/exit_reason.h"
#include "host/proc/tree.h"
#include "input/fetch/fetch.h"

/* 35 bytes of a name, seven times a word. */
#define SEVEN "word-word-word-word-word-word-word-"

static char folder[64], variable[64];

/* ---- words ---- */

static void addresses(void **state)
{
	static const struct {
		const char *command;
		enum server_kind kind;
		const char *url;
	} cases[] = {
		{ "vllm serve m", SERVER_VLLM, "http://localhost:8000" },
		{ "vllm serve m --port 8001", SERVER_VLLM, "http://localhost:8001" },
		{ "vllm serve m --port=8001", SERVER_VLLM, "http://localhost:8001" },
		{ "vllm serve m -p 8002", SERVER_VLLM, "http://localhost:8002" },
		{ "vllm serve m --port 8001 --port 8003", SERVER_VLLM, "http://localhost:8003" },
		{ "vllm serve m -p 8002 --port 8003", SERVER_VLLM, "http://localhost:8003" },
		{ "vllm serve m --port 8003 -p 8002", SERVER_VLLM, "http://localhost:8002" },
		{ "vllm serve m --host 0.0.0.0", SERVER_VLLM, "http://127.0.0.1:8000" },
		{ "vllm serve m --host=::", SERVER_VLLM, "http://[::1]:8000" },
		{ "vllm serve m --host 10.1.2.3 --port 9", SERVER_VLLM, "http://10.1.2.3:9" },
		{ "vllm serve m --host ::1 --port 9", SERVER_VLLM, "http://[::1]:9" },
		{ "vllm serve m --uds /tmp/s --port 9", SERVER_VLLM, "http://localhost" },
		{ "vllm serve m --uds /" SEVEN SEVEN SEVEN "/", SERVER_VLLM, "http://localhost" },
		{ "vllm serve m --ssl-keyfile k --ssl-certfile c", SERVER_VLLM, "https://localhost:8000" },
		{ "/opt/venv/bin/vllm serve m", SERVER_VLLM, "http://localhost:8000" },
		{ "./my-vllm serve m", SERVER_VLLM, "http://localhost:8000" },
		{ "env A=1 B=2 vllm serve m", SERVER_VLLM, "http://localhost:8000" },
		{ "env A=1 numactl -N 0 /x/vllm serve m --port 1", SERVER_VLLM, "http://localhost:1" },
		{ "python -m vllm.entrypoints.openai.api_server --model m --port 7", SERVER_VLLM,
		  "http://localhost:7" },
		{ "/usr/bin/python3.11 -m vllm.entrypoints.openai.api_server", SERVER_VLLM,
		  "http://localhost:8000" },
		{ "python3 -m sglang.launch_server --model-path m", SERVER_SGLANG, "http://localhost:30000" },
		{ "sglang serve m --port 3", SERVER_SGLANG, "http://localhost:3" },
		{ "infinity_emb v2 --model-id m", SERVER_INFINITY, "http://localhost:7997" },
		{ "llama-server -m f.gguf", SERVER_LLAMACPP, "http://localhost:8080" },
		{ "profllm sim --port 5", SERVER_SIM, "http://localhost:5" },
		{ "env X=1 build/profllm sim --port 5", SERVER_SIM, "http://localhost:5" },
		{ "sh -c 'exec vllm serve m'", SERVER_VLLM, "http://localhost:8000" },
		{ "sh -c 'trap : TERM; vllm serve m --port 8001 & wait'", SERVER_VLLM,
		  "http://localhost:8001" },
		{ "env A=1 bash -lc 'vllm serve m --host 127.0.0.1 -p 8001; true'", SERVER_VLLM,
		  "http://127.0.0.1:8001" },
		{ "sh -c \"vllm serve 'm --port 1\"", SERVER_VLLM, "http://localhost:8000" },
		{ "docker run --rm -p 8005:8000 vllm/vllm-openai:v0.11.0 --model m", SERVER_VLLM,
		  "http://localhost:8005" },
		{ "podman run -p 127.0.0.1:8006:8000 vllm/vllm-openai m", SERVER_VLLM,
		  "http://localhost:8006" },
		{ "my-server --served-model-name vllm", SERVER_OTHER, "http://localhost:8000" },
		{ "tgi --name vllm --port 4", SERVER_OTHER, "http://localhost:4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct server_address a;
		struct arena arena = { 0 };
		struct err e = { 0 };
		char **argv;
		size_t n;

		assert_int_equal(words_split(str_of(cases[i].command), &arena, &argv, &n, &e), 0);
		assert_int_equal(server_address(argv, &a, &e), 0);
		if (a.kind != cases[i].kind || strcmp(a.url, cases[i].url) != 0)
			fail_msg("%s: kind %d, %s", cases[i].command, (int)a.kind, a.url);
		arena_release(&arena);
	}
}

static void bad_addresses(void **state)
{
	static const struct { const char *command, *says; } cases[] = {
		{ "vllm serve m --port 0", "--port 0: the server's port must be a number from 1 to 65535" },
		{ "vllm serve m --port=x", "--port x: the server's port must be" },
		{ "vllm serve m -p 65536", "--port 65536: the server's port must be" },
		{ "vllm serve m --uds /" SEVEN SEVEN SEVEN "/2", "/2: a socket's path has at most 107 bytes" },
		{ "vllm serve m --host " SEVEN SEVEN SEVEN SEVEN SEVEN SEVEN SEVEN "23456789012",
		  "--host: a name has at most 255 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct server_address a;
		struct arena arena = { 0 };
		struct err e = { 0 };
		char **argv;
		size_t n;

		assert_int_equal(words_split(str_of(cases[i].command), &arena, &argv, &n, &e), 0);
		assert_int_equal(server_address(argv, &a, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		assert_non_null(strstr(e.text, cases[i].says));
		arena_release(&arena);
	}
}

/* ---- logs ---- */

#define OOM "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB"
#define KEY "KeyError: 'model.layers.0.self_attn.qkv_proj.weight'"
#define BIND "OSError: [Errno 98] Address already in use"
#define HINT "INFO CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of " \
	"memory, consider decreasing gpu_memory_utilization or enforcing eager mode."
#define KERNEL "the kernel's log would tell whether it was out of memory"
#define TRACEBACK "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    g()\n"
#define CHAIN "\n\nDuring handling of the above exception, another exception occurred:\n\n"
#define CAUSED "\n\nThe above exception was the direct cause of the following exception:\n\n"

static void faults(void **state)
{
	static const struct {
		const char *log;
		int code;
		enum server_fault fault;
		const char *reason;
	} cases[] = {
		{ "", 1, SERVER_FAULT_CRASH, "" },
		{ "INFO a\nRuntimeError: no\n", 1, SERVER_FAULT_CRASH, "RuntimeError: no" },
		{ "INFO a\nOSError: [Errno 98] Address already in use\nbye\n", 1, SERVER_FAULT_PORT,
		  "OSError: [Errno 98] Address already in use" },
		{ "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.", 1,
		  SERVER_FAULT_MEMORY, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB." },
		{ "ValueError: No available memory for the cache blocks. Try\n", 1, SERVER_FAULT_MEMORY,
		  "ValueError: No available memory for the cache blocks. Try" },
		{ "INFO Application startup complete.\n", -SIGKILL, SERVER_FAULT_KILLED, KERNEL },
		{ "starting\n", 137, SERVER_FAULT_KILLED, KERNEL }, /* below a shell */
		{ OOM "\n", -SIGKILL, SERVER_FAULT_MEMORY, OOM },
		{ "usage: vllm\nvllm: error: unrecognized arguments: --max-modle-len 8\n", 2,
		  SERVER_FAULT_FLAG, "vllm: error: unrecognized arguments: --max-modle-len 8" },
		{ "profllm sim: --x is no option\n", 2, SERVER_FAULT_FLAG, "profllm sim: --x is no option" },
		{ "x\nOSError: no/such is not a local folder and is not a valid model identifier listed\n", 1,
		  SERVER_FAULT_MODEL,
		  "OSError: no/such is not a local folder and is not a valid model identifier listed" },
		{ "CUDA out of memory\nOSError: [Errno 28] No space left on device: 'x'\n", 1,
		  SERVER_FAULT_DISK, "OSError: [Errno 28] No space left on device: 'x'" },
		{ "much text", -SIGXFSZ, SERVER_FAULT_DISK, "much text" },
		/* What it survived is not what it died of. */
		{ "Address already in use\nCUDA out of memory\n", 1, SERVER_FAULT_MEMORY,
		  "CUDA out of memory" },
		{ "... Address already in use (old socket), retrying\n" OOM "\n", 1, SERVER_FAULT_MEMORY,
		  OOM },
		{ "Address already in use (old socket), retrying\n" KEY "\n", 1, SERVER_FAULT_CRASH, KEY },
		{ HINT "\n" KEY "\n", 1, SERVER_FAULT_CRASH, KEY },
		{ HINT "\n", 1, SERVER_FAULT_CRASH, HINT },
		{ "(Core pid=7) WARNING 05-05 12:00:00 [x.py:3] failed to allocate pinned memory\n" KEY "\n",
		  1, SERVER_FAULT_CRASH, KEY },
		{ "WARNING failed to allocate\nbye\n", 1, SERVER_FAULT_MEMORY, "WARNING failed to allocate" },
		/* An exception of one process is followed by that of the one that waited for it. */
		{ "(Core) ERROR 05-05 [core.py:7] " OOM "\nTraceback (most recent call last):\n  File \"x\"\n"
		  "    except KeyError:\nRuntimeError: Engine core initialization failed.\n", 1,
		  SERVER_FAULT_MEMORY, "(Core) ERROR 05-05 [core.py:7] " OOM },
		/* Chains: the first is the cause. */
		{ TRACEBACK OOM CHAIN TRACEBACK BIND "\n", 1, SERVER_FAULT_MEMORY, OOM },
		{ TRACEBACK OOM CAUSED TRACEBACK KEY CHAIN TRACEBACK BIND "\n", 1, SERVER_FAULT_MEMORY, OOM },
		{ TRACEBACK BIND "\nretried\n" TRACEBACK OOM "\n", 1, SERVER_FAULT_MEMORY, OOM },
		{ TRACEBACK OOM "\n" BIND "\n", 1, SERVER_FAULT_PORT, BIND },
		{ "Fatal Python error: Segmentation fault\n", -SIGSEGV, SERVER_FAULT_CRASH,
		  "Fatal Python error: Segmentation fault" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct str reason;
		enum server_fault f;

		f = server_fault_of(str_of(cases[i].log), true, cases[i].code, NULL, &reason);
		if (f != cases[i].fault || !str_is(reason, cases[i].reason))
			fail_msg("%s: %s, %.*s", cases[i].log, server_fault_name(f), (int)reason.n, reason.p);
	}
}

/* ---- lives ---- */

/* A server in Perl: argument 1 is the port; the rest of the words name what it does badly. */
static const char server_script[] =
	"use strict; use IO::Socket::INET; $| = 1;\n"
	"my ($port, %how) = (shift, map { $_ => 1 } @ARGV);\n"
	"print \"starting on $port\\n\";\n"
	"if ($how{oom}) { print \"ValueError: No available memory for the cache blocks.\\n\"; exit 1 }\n"
	"if ($how{never}) { sleep 1 while 1 }\n"
	"$SIG{TERM} = 'IGNORE' if $how{stubborn};\n"
	"if ($how{behind} && fork) { sleep 1 while 1 }\n"
	"my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 9,\n"
	"	ReuseAddr => 1) or die \"listen: $!\";\n"
	"while (my $c = $s->accept) {\n"
	"	my $path; while (<$c>) { $path //= (split)[1]; last if /^\\r?$/ }\n"
	"	print \"asked $path\\n\";\n"
	"	my $status = $how{old} && $path =~ /encoder/ ? 404 : $how{plain} && $path =~ /reset/ ? 404 :\n"
	"		$how{sick} && $path =~ /mm/ ? 500 : 200;\n"
	"	print $c \"HTTP/1.1 $status X\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n\";\n"
	"	close $c;\n"
	"	exit 7 if $path eq '/die';\n"
	"}\n";

static unsigned free_port(void)
{
	/* Below the kernel's own choices, apart between tests that run at once. */
	for (unsigned port = 21000 + (unsigned)getpid() % 5000; port < 32000; port++)
		if (port_look((uint16_t)port, NULL, 0, NULL) == PORT_FREE)
			return port;
	return 0;
}

static bool is_left(void)
{
	struct tree t = { 0 };
	bool is_found = false;

	assert_int_equal(tree_read(&t), 0);
	for (size_t i = 0; i < t.n; i++)
		is_found |= t.process[i].pid != getpid() &&
			    tree_has_variable(t.process[i].pid, variable);
	tree_release(&t);
	return is_found;
}

struct told { struct buf lines, warnings; };

static void told_line(void *self, const char *text)
{
	struct told *t = self;

	buf_printf(&t->lines, "%s\n", text);
}

static void told_warning(void *self, const char *text)
{
	struct told *t = self;

	buf_printf(&t->warnings, "%s\n", text);
}

struct life {
	struct told told;
	struct server *server;
	struct server_failure why;
	struct err e;
	char log[128], port[16];
	int rc;
};

/* Calls itself vllm, which decides how its caches are emptied. */
static void begin_at(struct life *l, unsigned port, const char *how, double timeout_s)
{
	char script[128], vllm[128];
	struct server_hooks hooks = { .self = &l->told, .line = told_line, .warn = told_warning };

	*l = (struct life){ 0 };
	snprintf(l->log, sizeof(l->log), "%s/logs/%s.log", folder, how);
	snprintf(script, sizeof(script), "%s/server.pl", folder);
	snprintf(vllm, sizeof(vllm), "%s/vllm", folder);
	snprintf(l->port, sizeof(l->port), "%u", port);
	{
		char *argv[] = { vllm, script, l->port, (char *)(uintptr_t)how, (char[]){ "--port" },
				 l->port, NULL };
		const struct server_opts o = { .argv = argv, .log_path = l->log, .show_fd = -1,
					       .ready_timeout_s = timeout_s, .grace_s = 0.3 };

		l->rc = server_start(&o, &hooks, &l->server, &l->why, &l->e);
	}
}

static void begin(struct life *l, const char *how, double timeout_s)
{
	begin_at(l, free_port(), how, timeout_s);
}

static void release(struct life *l)
{
	buf_release(&l->told.lines);
	buf_release(&l->told.warnings);
}

static void a_good_server(void **state)
{
	struct buf log = { 0 }, expected = { 0 };
	struct life l;

	(void)state;
	begin(&l, "well", 60);
	if (l.rc < 0)
		fail_msg("%s", l.e.text);
	assert_true(server_is_alive(l.server));
	assert_int_equal(server_check(l.server, NULL, NULL), 0);
	assert_true(server_startup_s(l.server) > 0);
	assert_int_equal(server_reset_caches(l.server, &l.e), 0);
	buf_printf(&expected, "Resetting caches at http://localhost:%s\n", l.port);
	assert_string_equal(l.told.lines.data, expected.data);
	assert_int_equal(server_stop(l.server, NULL, &l.e), 0);
	assert_false(is_left());
	assert_int_equal(file_read(l.log, 1 << 20, &log, NULL), 0);
	assert_non_null(strstr(log.data, "asked /health\nasked /reset_prefix_cache\n"
			       "asked /reset_mm_cache\nasked /reset_encoder_cache\n"));
	buf_release(&log);
	buf_release(&expected);
	release(&l);
}

static void caches(void **state)
{
	static const struct { const char *how; int rc; const char *says; } cases[] = {
		{ "old", 0, "" },
		{ "plain", -1, "only with VLLM_SERVER_DEV_MODE=1" },
		{ "sick", -1, "/reset_mm_cache was answered with 500" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct life l;

		begin(&l, cases[i].how, 60);
		assert_int_equal(l.rc, 0);
		assert_int_equal(server_reset_caches(l.server, &l.e), cases[i].rc);
		if (!strstr(l.e.text, cases[i].says))
			fail_msg("%s", l.e.text);
		assert_int_equal(server_stop(l.server, NULL, &l.e), 0);
		release(&l);
	}
}

static void bad_starts(void **state)
{
	static const struct {
		const char *how;
		double timeout_s;
		enum server_fault fault;
		const char *says, *warns;
	} cases[] = {
		{ "oom", 60, SERVER_FAULT_MEMORY, "Server process crashed with return code 1 (out of memory: "
		  "ValueError: No available memory for the cache blocks.)", "  ValueError: No available" },
		{ "never", 0.5, SERVER_FAULT_DEADLINE, "Server failed to become ready within 0.5 seconds.",
		  "  starting on" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct life l;

		begin(&l, cases[i].how, cases[i].timeout_s);
		assert_int_equal(l.rc, -1);
		assert_string_equal(l.e.text, cases[i].says);
		assert_int_equal(l.why.fault, cases[i].fault);
		assert_non_null(strstr(l.told.warnings.data, cases[i].warns));
		assert_false(is_left());
		release(&l);
	}
}

/* The listener is a grandchild that ignores TERM, whose parent dies of it. */
static void a_stubborn_tree(void **state)
{
	struct life l;

	(void)state;
	begin(&l, "behind", 60);
	assert_int_equal(l.rc, 0);
	assert_int_equal(server_stop(l.server, NULL, &l.e), 0);
	assert_false(is_left());
	release(&l);
	begin(&l, "stubborn", 60);
	assert_int_equal(l.rc, 0);
	assert_int_equal(server_stop(l.server, NULL, &l.e), 0);
	assert_false(is_left());
	release(&l);
}

static void a_death(void **state)
{
	struct fetch_reply reply = { 0 };
	struct server_failure why;
	struct buf url = { 0 };
	struct life l;

	(void)state;
	begin(&l, "mortal", 60);
	assert_int_equal(l.rc, 0);
	buf_printf(&url, "%s/die", server_url(l.server));
	fetch(url.data, NULL, &(struct fetch_opts){ .proxy = "" }, &reply, NULL);
	for (int i = 0; i < 1000 && server_is_alive(l.server); i++)
		usleep(10000);
	assert_int_equal(server_check(l.server, &why, &l.e), -1);
	assert_string_equal(l.e.text, "Server process crashed with return code 7 (crash: asked /die)");
	assert_int_equal(why.code, 7);
	assert_int_equal(server_stop(l.server, NULL, &l.e), 0);
	fetch_reply_release(&reply);
	buf_release(&url);
	release(&l);
}

static void a_taken_port(void **state)
{
	struct life first, second;
	unsigned port = free_port();
	char *says;

	(void)state;
	begin_at(&first, port, "first", 60);
	assert_int_equal(first.rc, 0);
	begin_at(&second, port, "second", 60);
	assert_int_equal(second.rc, -1);
	assert_int_equal(second.why.fault, SERVER_FAULT_PORT);
	says = strstr(second.e.text, " is already served by PID ");
	if (!says)
		fail_msg("%s", second.e.text);
	assert_non_null(strstr(says, "server.pl"));
	assert_true(server_is_alive(first.server));
	assert_int_equal(server_stop(first.server, NULL, NULL), 0);
	release(&first);
	release(&second);
}

static void no_such_command(void **state)
{
	char *argv[] = { (char[]){ "no-such-server" }, NULL };
	char log[128];
	const struct server_opts o = { .argv = argv, .log_path = log, .show_fd = -1,
				       .ready_timeout_s = 60 };
	struct server_failure why;
	struct server *s;
	struct err e;

	(void)state;
	snprintf(log, sizeof(log), "%s/logs/none.log", folder);
	assert_int_equal(server_start(&o, NULL, &s, &why, &e), -1);
	assert_int_equal(why.fault, SERVER_FAULT_NOT_FOUND);
	assert_string_equal(e.text, "cannot start no-such-server: No such file or directory");
}

static int set_up(void **state)
{
	char path[128];

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/server-%d", (int)getpid());
	snprintf(variable, sizeof(variable), "SERVER_TEST=%d", (int)getpid());
	setenv("XDG_RUNTIME_DIR", folder, 1);
	setenv("SERVER_TEST", variable + 12, 1);
	if (file_mkdirs(folder, NULL) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/server.pl", folder);
	if (file_write_atomic(path, str_of(server_script), NULL) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/vllm", folder);
	return symlink("/usr/bin/perl", path);
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
		cmocka_unit_test(addresses),
		cmocka_unit_test(bad_addresses),
		cmocka_unit_test(faults),
		cmocka_unit_test(a_good_server),
		cmocka_unit_test(caches),
		cmocka_unit_test(bad_starts),
		cmocka_unit_test(a_stubborn_tree),
		cmocka_unit_test(a_death),
		cmocka_unit_test(a_taken_port),
		cmocka_unit_test(no_such_command),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
