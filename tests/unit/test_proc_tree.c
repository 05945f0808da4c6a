/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_tree.c - what /proc and rosters say: their lines, and the truth about ourselves. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/proc/roster.h"
#include "host/proc/tree.h"

static void stat_lines(void **state)
{
	static const struct {
		const char *line;
		bool is_good, is_zombie;
		pid_t pid, parent;
		uint64_t start;
	} cases[] = {
		{ "7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 3601333 3133440 362\n", true, false,
		  7, 3, 3601333 },
		{ "7 (a b) c) Z 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 12\n", true, true, 7, 3, 12 },
		{ "7 () S 0 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 0 1", true, false, 7, 0, 0 },
		{ "7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0", .is_good = false },
		{ "7 cat R 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 5 6", .is_good = false },
		{ "x (cat) R 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 5 6", .is_good = false },
		{ "-7 (cat) R 3 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 5 6", .is_good = false },
		{ "7 (cat) R x 7 1 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 5 6", .is_good = false },
		{ "", .is_good = false },
		{ ")", .is_good = false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tree_process p = { 0 };

		if (tree_parse_stat(str_of(cases[i].line), &p) != cases[i].is_good)
			fail_msg("%s", cases[i].line);
		assert_int_equal(p.pid, cases[i].pid);
		assert_int_equal(p.parent, cases[i].parent);
		assert_int_equal(p.start, cases[i].start);
		assert_int_equal(p.is_zombie, cases[i].is_zombie);
	}
}

static void socket_lines(void **state)
{
	static const struct { const char *line; uint64_t inode; } tcp[] = {
		{ "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        "
		  "0 1609 1 0", 1609 },
		{ "  12: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A "
		  "00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0", 77 },
		{ "   0: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1609", 0 },
		{ "   0: 00000000:1F40 00000000:0000 01 00000000:00000000 00:00000000 00000000 0 0 1609", 0 },
		{ "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0", 0 },
		{ "   0: 00000000 00000000:0000 0A", 0 },
		{ "", 0 },
	};
	static const struct { const char *line; uint64_t inode; } local[] = {
		{ "000000007e3a6f9d: 00000002 00000000 00010000 0001 01 4242 /tmp/a socket", 4242 },
		{ "000000007e3a6f9d: 00000002 00000000 00010000 0001 01 4242 /tmp/a sockets", 0 },
		{ "000000007e3a6f9d: 00000003 00000000 00000000 0001 03 4242 /tmp/a socket", 0 },
		{ "000000007e3a6f9d: 00000002 00000000 00010000 0001 01 4242", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tcp) / sizeof(*tcp); i++)
		assert_int_equal(port_line_inode(str_of(tcp[i].line), 8000), tcp[i].inode);
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		assert_int_equal(port_line_unix(str_of(local[i].line), "/tmp/a socket"), local[i].inode);
}

static void roster_texts(void **state)
{
#define HEAD "profllm roster 1\nmark 0123456789abcdef0123456789abcdef\nhost h\nboot b n\n" \
	     "owner 10 100\nkeeper 11 101\n"
	static const struct { const char *text; int rc; size_t members; } cases[] = {
		{ HEAD, 0, 0 },
		{ HEAD "grace 30\ncommand vllm serve m --x 1\nmember 12 102\nmember 13 103\n", 0, 2 },
		{ HEAD "member 12 102", -1, 0 },
		{ HEAD "member 12\n", -1, 0 },
		{ HEAD "member 1 102\n", -1, 0 },
		{ HEAD "member -1 102\n", -1, 0 },
		{ HEAD "member 0 102\n", -1, 0 },
		{ HEAD "grace -1\n", -1, 0 },
		{ HEAD "grace nan\n", -1, 0 },
		{ HEAD "mark 0123\n", -1, 0 },
		{ HEAD "other 1\n", -1, 0 },
		{ HEAD "\n", -1, 0 },
		{ "profllm roster 2\nowner 10 100\n", -1, 0 },
		{ "profllm roster 1\nowner 10 100\n", -1, 0 },
		{ "", -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct roster r, again;
		struct buf text = { 0 };

		if (roster_parse(str_of(cases[i].text), &r) != cases[i].rc)
			fail_msg("%s", cases[i].text);
		if (cases[i].rc == 0) {
			assert_int_equal(r.n, cases[i].members);
			roster_print(&r, &text);
			assert_int_equal(roster_parse(buf_str(&text), &again), 0);
			assert_string_equal(again.command, r.command);
			assert_int_equal(again.owner.pid, 10);
			assert_int_equal(again.keeper.start, 101);
			assert_int_equal(again.n, r.n);
			roster_release(&again);
		}
		roster_release(&r);
		buf_release(&text);
	}
}

static void marks_differ(void **state)
{
	struct roster a, b;

	(void)state;
	roster_init(&a);
	roster_init(&b);
	assert_int_equal(strlen(a.mark), ROSTER_MARK_BYTES - 1);
	assert_string_not_equal(a.mark, b.mark);
	assert_string_equal(a.boot, b.boot);
	assert_true(a.boot[0] && a.host[0]);
	roster_release(&a);
	roster_release(&b);
}

/* Of us and two generations below. */
static void our_own_tree(void **state)
{
	struct tree t = { 0 };
	struct tree_process me;
	char command[TREE_COMMAND_BYTES], byte;
	int up[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(up), 0);
	child = fork();
	if (child == 0) {
		if (fork() == 0 && write(up[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	assert_int_equal(tree_read(&t), 0);
	assert_int_equal(tree_mark(&t, getpid()), 2);
	assert_true(tree_find(&t, child)->is_in_tree);
	assert_false(tree_find(&t, getpid())->is_in_tree);
	assert_int_equal(tree_find(&t, child)->parent, getpid());
	assert_true(tree_process_read(getpid(), &me));
	assert_true(tree_is_running(me.pid, me.start));
	assert_false(tree_is_running(me.pid, me.start + 1));
	tree_command(getpid(), command);
	assert_non_null(strstr(command, "proc_tree"));
	for (size_t i = 0; i < t.n; i++)
		if (t.process[i].is_in_tree)
			kill(t.process[i].pid, SIGKILL);
	waitpid(child, NULL, 0);
	assert_null(tree_find(&t, 0));
	tree_release(&t);
	close(up[0]);
	close(up[1]);
}

static void our_own_sockets(void **state)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in in = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int four = socket(AF_INET, SOCK_STREAM, 0);
	int local = socket(AF_UNIX, SOCK_STREAM, 0);
	int over_six = socket(AF_INET6, SOCK_STREAM, 0);
	socklen_t n = sizeof(in);
	pid_t holder;

	(void)state;
	assert_int_equal(bind(four, (struct sockaddr *)&in, sizeof(in)), 0);
	getsockname(four, (struct sockaddr *)&in, &n);
	assert_int_equal(port_look(ntohs(in.sin_port), NULL, 0, &holder), PORT_FREE);
	assert_int_equal(listen(four, 1), 0);
	assert_int_equal(port_look(ntohs(in.sin_port), NULL, 0, &holder), PORT_FOREIGN);
	assert_int_equal(holder, getpid());
	assert_int_equal(port_look(ntohs(in.sin_port), NULL, getppid(), &holder),
			 PORT_IN_TREE);
	assert_int_equal(holder, getpid());
	assert_int_equal(port_look(ntohs(in.sin_port), NULL, getpid(), &holder), PORT_FOREIGN);
	close(four);
	assert_int_equal(port_look(ntohs(in.sin_port), NULL, 0, &holder), PORT_FREE);
	n = sizeof(six);
	/* A machine without IPv6 has nothing to look at. */
	if (over_six >= 0 && bind(over_six, (struct sockaddr *)&six, n) == 0) {
		getsockname(over_six, (struct sockaddr *)&six, &n);
		assert_int_equal(listen(over_six, 1), 0);
		assert_int_equal(port_look(ntohs(six.sin6_port), NULL, 0, NULL), PORT_FOREIGN);
	}
	close(over_six);
	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/port-%d", (int)getpid());
	assert_int_equal(bind(local, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(port_look(0, un.sun_path, 0, NULL), PORT_FREE);
	assert_int_equal(listen(local, 1), 0);
	assert_int_equal(port_look(0, un.sun_path, 0, &holder), PORT_FOREIGN);
	assert_int_equal(holder, getpid());
	close(local);
	unlink(un.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lines),
		cmocka_unit_test(socket_lines),
		cmocka_unit_test(roster_texts),
		cmocka_unit_test(marks_differ),
		cmocka_unit_test(our_own_tree),
		cmocka_unit_test(our_own_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
