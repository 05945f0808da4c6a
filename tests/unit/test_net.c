/* SPDX-License-Identifier: Apache-2.0 */
/* test_net.c - sockets on loopback, the loop's timers, wake-up and waiting. */
/* threads: yes */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/net/loop.h"
#include "client/net/sock.h"
#include "core/base/clock.h"

#define MS 1000000

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, 2000), 1);
}

/* A connected pair: ours and the accepted one. */
struct pair { int listener, client, server; };

static struct pair pair_open(const char *host, bool is_stamped)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct pair p;
	struct err e = { 0 };

	assert_true(sock_resolve(host, 0, addr, &e) >= 1);
	p.listener = sock_listen(&addr[0], 8, &e);
	assert_true(p.listener >= 0);
	p.client = sock_connect(&addr[0], is_stamped, &e);
	assert_true(p.client >= 0);
	wait_for(p.listener, POLLIN);
	p.server = sock_accept(p.listener, is_stamped);
	assert_true(p.server >= 0);
	wait_for(p.client, POLLOUT);
	assert_int_equal(sock_connect_result(p.client), 0);
	return p;
}

static void pair_close(struct pair *p)
{
	sock_close(p->listener);
	sock_close(p->client);
	sock_close(p->server);
}

static void test_resolve_and_text(void **state)
{
	static const struct { const char *host; uint16_t port; const char *text; } rows[] = {
		{ "127.0.0.1", 8000, "127.0.0.1:8000" },
		{ "::1", 8000, "[::1]:8000" },
		{ "2001:db8::5", 1, "[2001:db8::5]:1" },
		{ "", 1, NULL },
		{ "no such host", 1, NULL },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sock_addr addr[SOCK_ADDRS_MAX];
		struct err e = { 0 };
		char text[200];
		int n = sock_resolve(rows[i].host, rows[i].port, addr, &e);

		if (!rows[i].text) {
			assert_int_equal(n, -1);
			assert_int_equal(e.code, ERR_NET);
			assert_true(strlen(e.text) > 0);
			continue;
		}
		assert_int_equal(n, 1);
		sock_addr_text(&addr[0], text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

/* An address to connect from: one of this machine, as a number. */
static void test_own_addresses(void **state)
{
	static const struct { const char *text; bool is_read, is_ours; } rows[] = {
		{ "127.0.0.1", true, true }, { "127.0.0.7", true, true }, { "192.0.2.1", true, false },
		{ "2001:db8::5", true, false }, { "localhost", false, false }, { "", false, false },
		{ "127.0.0.1:80", false, false },
	};
	struct sock_addr server[SOCK_ADDRS_MAX];
	struct err e = { 0 };
	int listener;

	(void)state;
	assert_int_equal(sock_resolve("127.0.0.1", 0, server, &e), 1);
	listener = sock_listen(&server[0], 4, &e);
	assert_true(listener >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sock_addr own, from = { .len = sizeof(from.storage) };
		char want[96], text[200];
		int client, side;

		e = (struct err){ 0 };
		if (sock_addr_own(rows[i].text, &own, &e) < 0) {
			assert_false(rows[i].is_read);
			snprintf(want, sizeof(want), "expected an IPv4 or IPv6 address of this machine, got '%s'",
				 rows[i].text);
			assert_string_equal(e.text, want);
			assert_int_equal(e.code, ERR_USAGE);
			continue;
		}
		assert_true(rows[i].is_read);
		if (sock_try_own(&own, &e) < 0) {
			assert_false(rows[i].is_ours);
			assert_non_null(strstr(e.text, "cannot connect from "));
			assert_non_null(strstr(e.text, rows[i].text));
			if (own.any.sa_family == AF_INET)
				assert_int_equal(sock_connect_from(&own, &server[0], false, &e),
						 -1);
			continue;
		}
		assert_true(rows[i].is_ours);
		client = sock_connect_from(&own, &server[0], false, &e);
		assert_true(client >= 0);
		wait_for(listener, POLLIN);
		side = accept(listener, &from.any, &from.len);
		assert_true(side >= 0);
		sock_addr_text(&from, text, sizeof(text));
		snprintf(want, sizeof(want), "%s:", rows[i].text);
		assert_memory_equal(text, want, strlen(want));
		sock_close(client);
		sock_close(side);
	}
	sock_close(listener);
}

static void test_exchange(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "::1" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sock_addr addr[SOCK_ADDRS_MAX];
		struct err e = { 0 };
		struct pair p;
		char got[32];
		int64_t stamp;
		int fd;

		assert_int_equal(sock_resolve(hosts[i], 0, addr, &e), 1);
		fd = sock_listen(&addr[0], 1, &e);
		if (fd < 0 && i == 1)
			continue; /* a machine without IPv6 */
		sock_close(fd);
		p = pair_open(hosts[i], false);
		assert_int_equal(sock_recv(p.client, got, sizeof(got), &stamp), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(sock_send(p.client, STR("hello, world")), 12);
		wait_for(p.server, POLLIN);
		assert_int_equal(sock_recv(p.server, got, sizeof(got), &stamp), 12);
		assert_memory_equal(got, "hello, world", 12);
		sock_close(p.client);
		p.client = -1;
		wait_for(p.server, POLLIN);
		assert_int_equal(sock_recv(p.server, got, sizeof(got), &stamp), 0);
		/* The peer is gone: no SIGPIPE, an errno. */
		while (sock_send(p.server, STR("x")) == 1)
			usleep(1000);
		assert_true(errno == EPIPE || errno == ECONNRESET);
		pair_close(&p);
	}
}

static void test_refused(void **state)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct err e = { 0 };
	int fd;

	(void)state;
	assert_int_equal(sock_resolve("127.0.0.1", 0, addr, &e), 1);
	fd = sock_listen(&addr[0], 1, &e); /* finds a free port, then frees it */
	assert_true(fd >= 0);
	sock_close(fd);
	fd = sock_connect(&addr[0], true, &e);
	if (fd >= 0) {
		wait_for(fd, POLLOUT);
		assert_int_equal(sock_connect_result(fd), ECONNREFUSED);
		sock_close(fd);
	} else {
		assert_non_null(strstr(e.text, "refused"));
	}
	/* A port in use names the address. */
	fd = sock_listen(&addr[0], 1, &e);
	assert_true(fd >= 0);
	assert_int_equal(sock_listen(&addr[0], 1, &e), -1);
	assert_non_null(strstr(e.text, "cannot listen on 127.0.0.1:"));
	assert_non_null(strstr(e.text, "in use"));
	sock_close(fd);
}

static void test_unix(void **state)
{
	char dir[] = "/tmp/profllm-net-XXXXXX", path[64], text[200], longer[200];
	struct sock_addr addr, taken;
	struct err e = { 0 };
	int listener, client, server;
	int64_t stamp;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	assert_int_equal(sock_addr_unix(path, &addr, &e), 0);
	sock_addr_text(&addr, text, sizeof(text));
	assert_memory_equal(text, "unix:", 5);
	assert_string_equal(text + 5, path);
	assert_int_equal(sock_connect(&addr, true, &e), -1);
	assert_non_null(strstr(e.text, "cannot connect to unix:"));
	listener = sock_listen(&addr, 4, &e);
	assert_true(listener >= 0);
	taken = addr;
	assert_int_equal(sock_listen(&taken, 4, &e), -1); /* a process listens: not stale */
	sock_close(listener);
	listener = sock_listen(&addr, 4, &e); /* stale file is replaced */
	assert_true(listener >= 0);
	client = sock_connect(&addr, true, &e);
	assert_true(client >= 0);
	server = sock_accept(listener, true);
	assert_true(server >= 0);
	assert_int_equal(sock_send(client, STR("hi")), 2);
	wait_for(server, POLLIN);
	assert_int_equal(sock_recv(server, text, sizeof(text), &stamp), 2);
	assert_int_equal(stamp, 0);
	sock_close(client);
	sock_close(server);
	sock_close(listener);
	unlink(path);
	rmdir(dir);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(sock_addr_unix(longer, &addr, &e), -1);
	assert_int_equal(sock_addr_unix("", &addr, &e), -1);
}

static void test_stamps(void **state)
{
	struct err e = { 0 };
	int keep = sock_stamps_on(&e);
	struct pair p;

	(void)state;
	if (keep < 0) {
		print_message("# no kernel stamps here: %s\n", e.text);
		skip();
	}
	p = pair_open("127.0.0.1", true);
	for (int i = 0; i < 20; i++) {
		int64_t before = clock_real_ns(), stamp = 0, after;
		char got[8];

		assert_int_equal(sock_send(p.client, STR("token")), 5);
		wait_for(p.server, POLLIN);
		assert_int_equal(sock_recv(p.server, got, sizeof(got), &stamp), 5);
		after = clock_real_ns();
		assert_true(stamp >= before && stamp <= after);
	}
	pair_close(&p);
	sock_close(keep);
}

static void test_nofile(void **state)
{
	struct rlimit limit;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(sock_raise_nofile(), limit.rlim_max);
	getrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

static void test_no_descriptors(void **state)
{
	struct rlimit old, low;
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct err e = { 0 };
	int fd;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(sock_resolve("127.0.0.1", 1, addr, &e), 1);
	low = old;
	low.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &low);
	fd = sock_connect(&addr[0], false, &e);
	assert_int_equal(errno, EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(e.text, "limit 3; raise it with ulimit -n"));
}

/* ---- timers ---- */

static char fired[64];
static size_t fired_count;
static struct loop *the_loop;

struct named { struct timer timer; char name; struct timer *cancels; int again; };

static void on_named(struct timer *t)
{
	struct named *n = (void *)t;

	fired[fired_count++] = n->name;
	if (n->cancels)
		loop_timer_cancel(the_loop, n->cancels);
	if (n->again-- > 0)
		loop_timer_set(the_loop, t, 0);
}

static void test_timer_order(void **state)
{
	struct err e = { 0 };
	struct named n[8];
	int64_t now;

	(void)state;
	the_loop = loop_new(&e);
	assert_non_null(the_loop);
	now = clock_mono_ns();
	memset(n, 0, sizeof(n));
	fired_count = 0;
	for (int i = 0; i < 8; i++)
		n[i] = (struct named){ .timer.on_time = on_named, .name = (char)('a' + i) };
	loop_timer_set(the_loop, &n[0].timer, now + 3 * MS);
	loop_timer_set(the_loop, &n[1].timer, now + 1 * MS);
	loop_timer_set(the_loop, &n[2].timer, now + 2 * MS);
	loop_timer_set(the_loop, &n[3].timer, now + 1 * MS); /* same as b, later */
	loop_timer_set(the_loop, &n[4].timer, now + 2 * MS);
	loop_timer_set(the_loop, &n[5].timer, now + 9 * MS); /* cancelled by c */
	loop_timer_set(the_loop, &n[6].timer, now + 9 * MS); /* moved to the front */
	loop_timer_set(the_loop, &n[6].timer, now);
	n[2].cancels = &n[5].timer;
	while (clock_mono_ns() < now + 12 * MS)
		loop_poll(the_loop, now + 12 * MS, false);
	assert_int_equal(fired_count, 6);
	assert_memory_equal(fired, "gbdcea", 6);
	for (int i = 0; i < 8; i++)
		assert_int_equal(n[i].timer.index, 0);
	loop_timer_cancel(the_loop, &n[5].timer); /* not set: nothing happens */
	loop_free(the_loop);
}

/* A timer that always sets itself in the past runs once per round and does not block others. */
static void test_timer_rearmed(void **state)
{
	struct err e = { 0 };
	struct named a = { .timer.on_time = on_named, .name = 'a', .again = 100 };
	struct named b = { .timer.on_time = on_named, .name = 'b' };

	(void)state;
	the_loop = loop_new(&e);
	fired_count = 0;
	loop_timer_set(the_loop, &a.timer, 0);
	loop_timer_set(the_loop, &b.timer, 1);
	assert_int_equal(loop_poll(the_loop, 0, false), 2);
	assert_memory_equal(fired, "ab", 2);
	assert_int_equal(loop_poll(the_loop, 0, false), 1);
	loop_free(the_loop);
}

/* Callbacks set, move and cancel timers; compared with a list of what is set. */
#define CHANGED 40
static struct timer changed[CHANGED];
static int64_t changed_at[CHANGED]; /* 0: not set */
static uint32_t changed_seed;
static int changed_fired;

static uint32_t changed_draw(uint32_t below)
{
	changed_seed = changed_seed * 1664525u + 1013904223u;
	return (changed_seed >> 8) % below;
}

static void changed_set(size_t i)
{
	changed_at[i] = clock_mono_ns() + changed_draw(200000);
	loop_timer_set(the_loop, &changed[i], changed_at[i]);
}

static void on_changed(struct timer *t)
{
	size_t i = (size_t)(t - changed), other = changed_draw(CHANGED);
	uint32_t what = changed_draw(4);

	for (size_t k = 0; k < CHANGED; k++)
		assert_true(changed_at[k] == 0 || changed_at[k] >= changed_at[i]);
	assert_true(changed_at[i] == t->at_ns && clock_mono_ns() >= t->at_ns);
	changed_at[i] = 0;
	if (++changed_fired > 3000)
		return;
	if (what & 1) {
		loop_timer_cancel(the_loop, &changed[other]);
		changed_at[other] = 0;
	}
	if (what & 2)
		changed_set(other);
	changed_set(i);
}

static void test_timer_changed_inside(void **state)
{
	bool is_left = true;
	struct err e = { 0 };

	(void)state;
	the_loop = loop_new(&e);
	for (size_t i = 0; i < CHANGED; i++) {
		changed[i] = (struct timer){ .on_time = on_changed };
		changed_set(i);
	}
	while (is_left) {
		loop_poll(the_loop, clock_mono_ns() + MS, true);
		is_left = false;
		for (size_t i = 0; i < CHANGED; i++) {
			assert_int_equal(changed_at[i] != 0, changed[i].index != 0);
			is_left |= changed_at[i] != 0;
		}
	}
	assert_true(changed_fired > 3000);
	loop_free(the_loop);
}

static int64_t many_last;
static int many_count;

static void on_many(struct timer *t)
{
	assert_true(t->at_ns >= many_last);
	many_last = t->at_ns;
	many_count++;
}

static void test_timer_many(void **state)
{
	enum { N = 2000 };
	static struct timer t[N];
	struct err e = { 0 };
	int64_t base = clock_mono_ns() - 10 * MS;
	uint32_t seed = 7;
	int expected = 0;

	(void)state;
	the_loop = loop_new(&e);
	many_last = 0;
	many_count = 0;
	for (int i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		t[i] = (struct timer){ .on_time = on_many };
		loop_timer_set(the_loop, &t[i], base + (seed >> 12));
	}
	for (int i = 0; i < N; i++) {
		seed = seed * 1664525 + 1013904223;
		if (seed >> 31)
			loop_timer_cancel(the_loop, &t[i]);
		else if (seed >> 30)
			loop_timer_set(the_loop, &t[i], base + (seed >> 12));
		expected += !(seed >> 31);
	}
	assert_int_equal(loop_poll(the_loop, 0, false), expected);
	assert_int_equal(many_count, expected);
	loop_free(the_loop);
}

/* ---- descriptors ---- */

struct end { struct watch watch; struct end *kills; int count; };

static void on_end(struct watch *w, uint32_t events)
{
	struct end *end = (void *)w;

	assert_true(events & EPOLLIN);
	end->count++;
	if (end->kills) {
		loop_unwatch(the_loop, &end->kills->watch);
		sock_close(end->kills->watch.fd);
		memset(end->kills, 0xff, sizeof(*end->kills)); /* as if freed */
		end->kills = NULL;
	}
}

/* Both are ready in one round; whichever comes first removes the other. */
static void test_unwatch_inside(void **state)
{
	struct pair p = pair_open("127.0.0.1", false), q = pair_open("127.0.0.1", false);
	struct err e = { 0 };
	struct end a = { 0 }, b = { 0 };

	(void)state;
	the_loop = loop_new(&e);
	a.watch = (struct watch){ .fd = p.server, .events = EPOLLIN, .on_ready = on_end };
	b.watch = (struct watch){ .fd = q.server, .events = EPOLLIN, .on_ready = on_end };
	a.kills = &b;
	b.kills = &a;
	assert_int_equal(loop_watch(the_loop, &a.watch, &e), 0);
	assert_int_equal(loop_watch(the_loop, &b.watch, &e), 0);
	sock_send(p.client, STR("x"));
	sock_send(q.client, STR("x"));
	usleep(2000);
	assert_int_equal(loop_poll(the_loop, 0, false), 1);
	loop_free(the_loop);
	sock_close(p.client);
	sock_close(q.client);
	sock_close(p.listener);
	sock_close(q.listener);
	close(a.count == 1 ? p.server : q.server);
}

/* Takes its time, as one does whose peer never stops sending. */
static void on_slow(struct watch *w, uint32_t events)
{
	(void)events;
	((struct end *)w)->count++;
	usleep(2000);
}

/*
 * A round of descriptors that are all ready for good ends soon, so that its caller can look at
 * signals and deadlines, and the next one goes on where it ended: all are served alike.
 */
static void test_round_is_short(void **state)
{
	enum { N = 64 };
	struct pair p[N];
	struct end end[N];
	struct err e = { 0 };
	int64_t longest_ns = 0;
	int least = 0, most = 0, made = 0, rounds = 0;

	(void)state;
	the_loop = loop_new(&e);
	for (int i = 0; i < N; i++) {
		p[i] = pair_open("127.0.0.1", false);
		end[i] = (struct end){ .watch = { p[i].server, EPOLLIN, on_slow } };
		assert_int_equal(loop_watch(the_loop, &end[i].watch, &e), 0);
		sock_send(p[i].client, STR("x"));
	}
	for (; made < 3 * N; rounds++) {
		int64_t began_ns = clock_mono_ns(), took_ns;

		made += loop_poll(the_loop, INT64_MAX, false);
		took_ns = clock_mono_ns() - began_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
	}
	for (int i = 0; i < N; i++) {
		least = i == 0 || end[i].count < least ? end[i].count : least;
		most = end[i].count > most ? end[i].count : most;
	}
	print_message("%d callbacks, %d to %d each, the longest round %.1f ms\n", made, least, most,
		      (double)longest_ns / 1e6);
	assert_true(made < rounds * 16); /* N a round without a limit */
	assert_true(most - least <= 1);
	for (int i = 0; i < N; i++)
		loop_unwatch(the_loop, &end[i].watch);
	loop_free(the_loop);
	for (int i = 0; i < N; i++)
		pair_close(&p[i]);
}

/* A library may close its descriptor before it says so. */
static void test_unwatch_closed(void **state)
{
	struct pair p = pair_open("127.0.0.1", false);
	struct err e = { 0 };
	struct end a = { 0 };

	(void)state;
	the_loop = loop_new(&e);
	a.watch = (struct watch){ .fd = p.server, .events = EPOLLIN, .on_ready = on_end };
	assert_int_equal(loop_watch(the_loop, &a.watch, &e), 0);
	sock_send(p.client, STR("x"));
	usleep(2000);
	close(p.server);
	loop_unwatch_foreign(the_loop, &a.watch);
	assert_int_equal(loop_poll(the_loop, 0, false), 0);
	assert_int_equal(a.count, 0);
	loop_free(the_loop);
	sock_close(p.client);
	sock_close(p.listener);
}

static void test_rewatch(void **state)
{
	struct pair p = pair_open("127.0.0.1", false);
	struct err e = { 0 };
	struct end a = { 0 };
	struct watch bad = { .fd = -1, .events = EPOLLIN, .on_ready = on_end };

	(void)state;
	the_loop = loop_new(&e);
	assert_int_equal(loop_watch(the_loop, &bad, &e), -1);
	a.watch = (struct watch){ .fd = p.server, .events = 0, .on_ready = on_end };
	assert_int_equal(loop_watch(the_loop, &a.watch, &e), 0);
	sock_send(p.client, STR("x"));
	usleep(2000);
	assert_int_equal(loop_poll(the_loop, 0, false), 0);
	loop_rewatch(the_loop, &a.watch, EPOLLIN);
	assert_int_equal(loop_poll(the_loop, 0, false), 1);
	loop_unwatch(the_loop, &a.watch);
	assert_int_equal(loop_poll(the_loop, 0, false), 0);
	loop_free(the_loop);
	pair_close(&p);
}

/* A peer that says nothing: the deadline's timer ends the waiting and removes the watch. */
struct silent { struct timer timer; struct watch watch; bool is_over; };

static void on_silent_time(struct timer *t)
{
	struct silent *s = (void *)t;

	loop_unwatch(the_loop, &s->watch);
	s->is_over = true;
}

static void test_deadline(void **state)
{
	struct pair p = pair_open("127.0.0.1", false);
	struct err e = { 0 };
	struct silent s = { .timer.on_time = on_silent_time };
	int64_t start = clock_mono_ns();

	(void)state;
	the_loop = loop_new(&e);
	s.watch = (struct watch){ .fd = p.client, .events = EPOLLIN, .on_ready = on_end };
	assert_int_equal(loop_watch(the_loop, &s.watch, &e), 0);
	loop_timer_set(the_loop, &s.timer, start + 5 * MS);
	while (!s.is_over)
		loop_poll(the_loop, INT64_MAX, false);
	assert_true(clock_mono_ns() - start >= 5 * MS);
	sock_send(p.server, STR("too late"));
	assert_int_equal(loop_poll(the_loop, clock_mono_ns() + 2 * MS, false), 0);
	loop_free(the_loop);
	pair_close(&p);
}

/* ---- waking and waiting ---- */

static atomic_int woken_stage;

static void *waker(void *arg)
{
	usleep(5000);
	atomic_store(&woken_stage, 1);
	loop_wake(arg);
	return NULL;
}

static void test_wake(void **state)
{
	struct err e = { 0 };
	pthread_t thread;
	int64_t start = clock_mono_ns();

	(void)state;
	the_loop = loop_new(&e);
	atomic_store(&woken_stage, 0);
	assert_int_equal(pthread_create(&thread, NULL, waker, the_loop), 0);
	while (!atomic_load(&woken_stage))
		assert_int_equal(loop_poll(the_loop, INT64_MAX, false), 0);
	assert_true(clock_mono_ns() - start < 1000 * MS);
	pthread_join(thread, NULL);
	/* Woken before it waits, twice: one round returns at once, and only one. */
	loop_poll(the_loop, 0, false);
	loop_wake(the_loop);
	loop_wake(the_loop);
	start = clock_mono_ns();
	loop_poll(the_loop, start + 500 * MS, true);
	assert_true(clock_mono_ns() - start < 400 * MS);
	start = clock_mono_ns();
	loop_poll(the_loop, start + 3 * MS, true);
	assert_true(clock_mono_ns() - start >= 3 * MS);
	loop_free(the_loop);
}

static int compare_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Never early; how late is printed, because the machine may be busy. */
static void test_wait(void **state)
{
	enum { N = 100 };
	int64_t late[N];
	struct err e = { 0 };

	(void)state;
	the_loop = loop_new(&e);
	for (int exact = 0; exact < 2; exact++) {
		for (int i = 0; i < N; i++) {
			int64_t until = clock_mono_ns() + 400000 + i * 5000;
			int64_t now;

			while ((now = clock_mono_ns()) < until)
				loop_poll(the_loop, until, exact);
			assert_true(loop_now_ns(the_loop) >= until);
			late[i] = now - until;
		}
		qsort(late, N, sizeof(*late), compare_i64);
		print_message("wait %s: late p50 %.2f us, p90 %.2f us, max %.2f us\n",
			      exact ? "exact" : "asleep", (double)late[N / 2] / 1e3,
			      (double)late[N * 9 / 10] / 1e3, (double)late[N - 1] / 1e3);
	}
	loop_free(the_loop);
}

/*
 * One of `rounds`, the best: other work on the machine only adds CPU time. A round in which every
 * wait began too late to spin does not count.
 */
static int64_t least_unspun_ns(struct loop *l, int rounds, int waits)
{
	int64_t least = INT64_MAX;

	while (rounds-- > 0) {
		int64_t start = clock_mono_ns(), spun = loop_spun_ns(l);
		int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (int i = 1; i <= waits; i++)
			loop_poll(l, start + i * MS, true);
		cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		spun = loop_spun_ns(l) - spun;
		assert_true(spun <= clock_mono_ns() - start);
		if (spun > 0 && cpu - spun < least)
			least = cpu - spun;
	}
	return least;
}

/* An idle loop that waits exactly a thousand times a second is idle: what it spins is known. */
static void test_spinning_is_counted(void **state)
{
	struct err e;
	struct loop *l = loop_new(&e);
	int64_t start = clock_mono_ns(), unspun;

	(void)state;
	assert_int_equal(loop_spun_ns(l), 0);
	for (int i = 1; i <= 20; i++)
		loop_poll(l, start + i * MS, false);
	assert_int_equal(loop_spun_ns(l), 0);
	unspun = least_unspun_ns(l, 10, 50);
	assert_true(loop_spun_ns(l) > 0);
	if (unspun > 50 * MS / 20)
		fail_msg("%lld us of CPU in 50 ms without spinning", (long long)unspun / 1000);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve_and_text),
		cmocka_unit_test(test_own_addresses),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_nofile),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_timer_order),
		cmocka_unit_test(test_timer_rearmed),
		cmocka_unit_test(test_timer_changed_inside),
		cmocka_unit_test(test_timer_many),
		cmocka_unit_test(test_unwatch_inside),
		cmocka_unit_test(test_round_is_short),
		cmocka_unit_test(test_unwatch_closed),
		cmocka_unit_test(test_rewatch),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_wake),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_spinning_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
