/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the HTTP server: tokens, names of hosts, routes, forms, files. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "core/base/mem.h"
#include "web/api.h"
#include "web/auth.h"
#include "web/web_internal.h"

static struct str s(const char *text)
{
	return str_of(text);
}

/* ---- tokens ---- */

static void tokens_are_read(void **state)
{
	static const struct { const char *token, *who; enum auth_role role; } rows[] = {
		{ "correct-horse-battery", "alice", AUTH_LAUNCH },
		{ "0123456789abcdef", "token", AUTH_LAUNCH },
		{ "reader-of-16-characters", "bob", AUTH_READ },
		{ "upload-of-16-characters", "ci", AUTH_UPLOAD },
		{ "launch-of-16-characters", "carol", AUTH_LAUNCH },
		{ "0123456789abcdeF", "", AUTH_NONE }, { "", "", AUTH_NONE },
		{ "correct-horse-batter", "", AUTH_NONE }, { "alice", "", AUTH_NONE },
	};
	struct auth *a = mem_alloc(sizeof(*a));
	struct err e = { 0 };

	(void)state;
	assert_int_equal(auth_parse(a, STR("# people\n\nalice\t correct-horse-battery \r\n"
					   "0123456789abcdef\nbob reader-of-16-characters read\n"
					   "ci\tupload-of-16-characters\t upload\n"
					   "carol launch-of-16-characters launch"), &e), 0);
	assert_int_equal(a->n, 5);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct auth_visitor v = auth_visit(a, s(rows[i].token));

		assert_true(str_is(v.who, rows[i].who));
		assert_int_equal(v.role, rows[i].role);
		assert_int_equal(v.token != NULL, rows[i].role != AUTH_NONE);
	}
	a->is_read_open = true;
	assert_int_equal(auth_visit(a, STR("")).role, AUTH_READ);
	assert_int_equal(auth_visit(a, STR("upload-of-16-characters")).role, AUTH_UPLOAD);
	auth_release(a);
	assert_int_equal(auth_visit(a, STR("")).role, AUTH_LAUNCH);
	assert_true(str_is(auth_visit(a, STR("whatever")).who, "local"));
	free(a);
}

static void bad_token_files_are_refused(void **state)
{
	static const struct { const char *text, *why; } rows[] = {
		{ "", "expected a token in it" },
		{ "# only a comment\n", "expected a token in it" },
		{ "ok-ok-ok-ok-ok-ok-ok\nshort\n", "line 2: expected a token of at least 16 characters" },
		{ "bob 0123456789\x01" "abcdef\n", "line 1: a token is of printable ASCII" },
		{ "bob two words are not one token\n", "line 1: expected a token of at least 16" },
		{ "0123456789;abcdef\n", "line 1: a token is of printable ASCII" },
		{ "0123456789abcdef read\n", "line 1: the token is missing before the role read" },
		{ "bob 0123456789abcdef admin\n", "line 1: expected read, upload or launch after" },
		{ "bob 0123456789abcdef READ\n", "line 1: expected read, upload or launch after" },
		{ "bob 0123456789abcdef read more\n", "line 1: expected read, upload or launch after" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct auth *a = mem_alloc(sizeof(*a));
		struct err e = { 0 };

		assert_int_equal(auth_parse(a, s(rows[i].text), &e), -1);
		if (strncmp(e.text, rows[i].why, strlen(rows[i].why)) != 0)
			fail_msg("%s: %s", rows[i].text, e.text);
		assert_int_equal(e.code, ERR_USAGE);
		auth_release(a);
		free(a);
	}
}

static void made_tokens_are_random(void **state)
{
	struct auth *a = mem_alloc(sizeof(*a));
	char first[AUTH_MADE_CHARS + 1], second[AUTH_MADE_CHARS + 1];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(auth_make(a, first, &e), 0);
	assert_int_equal(auth_make(a, second, &e), 0);
	assert_true(4 * strlen(first) >= 128 && strspn(first, "0123456789abcdef") == strlen(first));
	assert_string_not_equal(first, second);
	assert_int_equal(auth_visit(a, s(first)).role, AUTH_LAUNCH);
	assert_int_equal(auth_visit(a, s(second)).role, AUTH_LAUNCH);
	auth_release(a);
	free(a);
}

static void tokens_are_carried(void **state)
{
	static const struct { const char *authorization, *token; } bearer[] = {
		{ "Bearer abc", "abc" }, { "bearer   abc ", "abc" }, { "Basic abc", "" },
		{ "Bearer", "" }, { NULL, "" }, { "", "" },
	};
	static const struct { const char *host, *cookie, *token; } cookie[] = {
		{ "lab", "profllm_token=xyz", "xyz" },
		{ "lab:80", "profllm_token=xyz; profllm_token_80=abc", "abc" },
		{ "[::1]:8080", "a=b; profllm_token_8080=xyz; c=d", "xyz" },
		{ "127.0.0.1:8080", "profllm_token_8081=xyz", "" },
		{ "lab", "xprofllm_token=xyz", "" }, { "lab", "profllm_token", "" },
		{ "lab", "profllm_token=a=b", "a=b" }, { "lab", NULL, "" },
		{ "lab:x", "profllm_token=xyz", "xyz" }, { NULL, "profllm_token=xyz", "xyz" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bearer) / sizeof(*bearer); i++)
		assert_true(str_is(auth_bearer(s(bearer[i].authorization)), bearer[i].token));
	for (size_t i = 0; i < sizeof(cookie) / sizeof(*cookie); i++) {
		char name[AUTH_COOKIE_CHARS_MAX];

		auth_cookie_name(s(cookie[i].host), name);
		if (!str_is(auth_cookie(s(cookie[i].cookie), name), cookie[i].token))
			fail_msg("%s at %s", cookie[i].cookie, cookie[i].host);
	}
}

/* ---- proxies ---- */

static void a_proxy_s_last_word_counts(void **state)
{
	static const struct { const char *header, *client; } rows[] = {
		{ "203.0.113.9", "203.0.113.9" }, { "10.0.0.1, 203.0.113.9", "203.0.113.9" },
		{ "10.0.0.1 ,2001:db8::1 ", "2001:db8::1" }, { "::ffff:203.0.113.9", "203.0.113.9" },
		{ "", NULL }, { "203.0.113.9,", "203.0.113.9" }, { "203.0.113.9, unknown", NULL },
		{ "203.0.113.9:80", NULL }, { "[2001:db8::1]", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sockaddr_storage address;
		char text[46] = "";

		if (client_forwarded(s(rows[i].header), &address))
			server_address_text(&address, text);
		assert_string_equal(text, rows[i].client ? rows[i].client : "");
	}
}

static void proxies_are_addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1", "::1", "unix" }, *const bad[] = { "nginx" };
	struct web_opts o = { .proxy = good, .n_proxies = 3 };
	struct web *w = mem_alloc(sizeof(*w));
	struct err e = { 0 };

	(void)state;
	assert_int_equal(client_check_names(&o, &e), 0);
	w->o = o;
	assert_true(client_is_proxy(w, "127.0.0.1"));
	assert_true(client_is_proxy(w, ""));
	assert_false(client_is_proxy(w, "127.0.0.2"));
	o = (struct web_opts){ .proxy = bad, .n_proxies = 1 };
	assert_int_equal(client_check_names(&o, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	free(w);
}

static void host_names_have_no_port(void **state)
{
	static const char *const good[] = { "bench.example", "Bench-2_a.example.", "10.0.0.1", "::1" };
	static const char *const bad[] = { "", "https://bench.example", "bench.example:8443", "a b",
					   "*.example", "a,b", "[::1]" };
	struct web_opts o = { .host_name = good, .n_host_names = 4 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(client_check_names(&o, &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o = (struct web_opts){ .host_name = &bad[i], .n_host_names = 1 };
		assert_int_equal(client_check_names(&o, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
	}
}

/* ---- the budget of answers ---- */

static int answer_a_megabyte(const struct web_request *r, struct web_answer *a, struct err *e)
{
	static const char kilobyte[1024];

	(void)r;
	(void)e;
	web_bytes(a, "application/octet-stream");
	for (int i = 0; i < 1024; i++)
		buf_add(&a->body, kilobyte, sizeof(kilobyte));
	return 0;
}

static struct exchange *worked_off(struct web *w)
{
	static const struct web_route route = { "POST", "/", ROUTE_CHANGES | ROUTE_QUICK,
						answer_a_megabyte };
	struct exchange *x = exchange_new(w, "/");

	x->method = "POST";
	x->route = &route;
	x->route_at = 0;
	exchange_work(x);
	exchange_finish(x);
	return x;
}

static void answers_share_a_budget(void **state)
{
	struct web *w = mem_alloc(sizeof(*w));
	struct exchange *first, *second;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(params_open(w, &e), 0);
	w->answers.max = 3 << 19;
	first = worked_off(w);
	assert_int_equal(first->answer.status, 200);
	assert_int_equal(first->answer.body.len, 1 << 20);
	assert_int_equal(w->answers.used, (1 << 20) + 1);
	second = worked_off(w);
	assert_int_equal(second->answer.status, 503);
	assert_non_null(strstr(second->answer.body.data, "WEB_ANSWERS_BYTES_MAX"));
	assert_string_equal(second->answer.header->name, "Retry-After");
	assert_int_equal(w->refused[REFUSED_BYTES], 1);
	exchange_free(second);
	exchange_free(first);
	assert_int_equal(w->answers.used, 0);
	second = worked_off(w);
	assert_int_equal(second->answer.status, 200);
	exchange_free(second);
	assert_int_equal(w->answers.used, 0);
	arena_release(&w->arena);
	free(w);
}

/* ---- names ---- */

static void hosts_are_ours_or_not(void **state)
{
	static const char *const names[] = { "lab.example", "192.168.7.7" };
	static const struct { const char *local, *host; bool is_ours; } rows[] = {
		{ "127.0.0.1", "localhost", true }, { "127.0.0.1", "LOCALHOST:8080", true },
		{ "127.0.0.1", "127.0.0.1:1", true }, { "127.0.0.1", "127.0.0.2", false },
		{ "127.0.0.1", "1.2.3.4", false }, { "127.0.0.1", "0.0.0.0", false },
		{ "127.0.0.1", "[::1]", false }, { "127.0.0.1", "[::ffff:127.0.0.1]", true },
		{ "192.168.1.5", "192.168.1.5", true }, { "192.168.1.5", "192.168.1.6", false },
		{ "192.168.1.5", "localhost", false }, { "192.168.1.5", "127.0.0.1", false },
		{ "::1", "[::1]", true }, { "::1", "[0:0::1]:80", true }, { "::1", "localhost", true },
		{ "fe80::1", "[fe80::1]:9000", true }, { "fe80::1", "[fe80::2]:9000", false },
		{ "127.0.0.1", "lab.example", true }, { "10.0.0.1", "Lab.Example:80", true },
		{ "172.17.0.2", "192.168.7.7:8080", true },
		{ "", "localhost", true }, { "", "lab.example", true }, { "", "127.0.0.1", false },
		{ "127.0.0.1", "evil.example", false },
		{ "127.0.0.1", "localhost.evil.example", false },
		{ "127.0.0.1", "127.0.0.1.evil.example", false }, { "127.0.0.1", "", false },
		{ "127.0.0.1", ":8080", false }, { "127.0.0.1", "localhost:", true },
		{ "127.0.0.1", "localhost:x", false }, { "127.0.0.1", "localhost:123456", false },
		{ "127.0.0.1", "localhost:65535", true }, { "127.0.0.1", "localhost:65536", false },
		{ "127.0.0.1", "localhost:00080", true }, { "127.0.0.1", "localhost:000080", false },
		{ "::1", "[::1]:65535", true }, { "::1", "[::1]:65536", false }, { "::1", "[]", false },
		{ "::1", "[::1", false }, { "::1", "[::1]x", false },
		{ "127.0.0.1", "[evil.example]", false }, { "127.0.0.1", "0x7f.1", false },
		{ "127.0.0.1", "lab.example.", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (auth_is_host(s(rows[i].host), rows[i].local, names, 2) != rows[i].is_ours)
			fail_msg("%s at %s", rows[i].host, rows[i].local);
}

static void origins_are_ours_or_not(void **state)
{
	static const struct { const char *origin, *host; bool is_ours; } rows[] = {
		{ "http://localhost:8080", "localhost:8080", true },
		{ "https://lab.example", "LAB.example", true },
		{ "http://localhost:8081", "localhost:8080", false },
		{ "http://localhost:8080.evil.example", "localhost:8080", false },
		{ "null", "localhost:8080", false }, { "", "", false },
		{ "file://localhost:8080", "localhost:8080", false },
		{ "http://", "", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (auth_is_origin(s(rows[i].origin), s(rows[i].host)) != rows[i].is_ours)
			fail_msg("%s at %s", rows[i].origin, rows[i].host);
}

static void addresses_are_this_machine_s(void **state)
{
	static const char *const own[] = { "127.0.0.1", "127.8.9.10", "::1", "localhost",
					   "::ffff:127.0.0.1" };
	static const char *const others[] = { "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "example",
					      "127.0.0.1.nip.example", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		assert_true(auth_is_loopback(s(own[i])));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(auth_is_loopback(s(others[i])));
}

/* ---- routes ---- */

static void paths_find_their_route(void **state)
{
	static const struct { const char *method, *path, *route, *id, *allow; } rows[] = {
		{ "GET", "/api/health", "/api/health", NULL, "GET, HEAD" },
		{ "HEAD", "/api/health", "/api/health", NULL, "GET, HEAD" },
		{ "POST", "/api/health", NULL, NULL, "GET, HEAD" },
		{ "GET", "/api/health/", NULL, NULL, "" },
		{ "GET", "/api", NULL, NULL, "" },
		{ "GET", "//api/health", NULL, NULL, "" },
		{ "GET", "/api/jobs/00ff/log", "/api/jobs/{id}/log", "00ff", "GET, HEAD" },
		{ "GET", "/api/jobs/a%20b%2fc", "/api/jobs/{id}", "a b/c", "GET, HEAD" },
		{ "GET", "/api/jobs/", NULL, NULL, "" },
		{ "GET", "/api/jobs/%00", NULL, NULL, "" },
		{ "GET", "/api/jobs/%zz", NULL, NULL, "" },
		{ "POST", "/api/jobs/1/cancel", "/api/jobs/{id}/cancel", "1", "POST" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct route_found found;

		routes_find(s(rows[i].path), rows[i].method, &a, &found);
		assert_string_equal(found.allow, rows[i].allow);
		assert_int_equal(found.route != NULL, rows[i].route != NULL);
		if (found.route) {
			assert_string_equal(found.route->path, rows[i].route);
			assert_ptr_equal(routes_at(found.at), found.route);
		}
		if (rows[i].id)
			assert_true(str_is(found.id[0], rows[i].id));
	}
	arena_release(&a);
}

/* Each address and method once, and no address that another one hides. */
static void routes_are_apart(void **state)
{
	(void)state;
	assert_null(routes_at(routes_count()));
	for (size_t i = 0; i < routes_count(); i++)
		for (size_t k = 0; k < i; k++)
			assert_false(strcmp(routes_at(i)->path, routes_at(k)->path) == 0 &&
				     strcmp(routes_at(i)->method, routes_at(k)->method) == 0);
}

static void parameters_are_decoded(void **state)
{
	struct arena a = { 0 };
	struct web_request r = { .arena = &a, .query = STR("name=a+b%2Fc&empty=&flag&x%79=1&bad=%z"
							   "&name=second") };

	(void)state;
	assert_true(str_is(web_param(&r, "name"), "a b/c"));
	assert_true(web_has_param(&r, "empty"));
	assert_true(web_has_param(&r, "flag"));
	assert_true(str_is(web_param(&r, "xy"), "1"));
	assert_true(str_is(web_param(&r, "bad"), "%z"));
	assert_false(web_has_param(&r, "nam"));
	assert_int_equal(web_param(&r, "nothing").n, 0);
	arena_release(&a);
}

/* ---- clients ---- */

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage a = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	void *to = a.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&a)->sin_addr :
					    (void *)&((struct sockaddr_in6 *)&a)->sin6_addr;

	assert_int_equal(inet_pton(a.ss_family, text, to), 1);
	return a;
}

/* Clients of IPv4 are also distinguished on a socket of both families. */
static void clients_are_told_apart(void **state)
{
	static const struct { const char *a, *b; bool is_same; } rows[] = {
		{ "10.0.0.1", "10.0.0.1", true }, { "10.0.0.1", "10.0.0.2", false },
		{ "2001:db8::1", "2001:db8::2", true }, { "2001:db8::1", "2001:db8:0:1::1", false },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.2", false },
		{ "::ffff:10.0.0.1", "::ffff:10.0.0.1", true },
		{ "::ffff:10.0.0.1", "10.0.0.1", true }, { "::ffff:10.0.0.1", "::1", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sockaddr_storage a = address_of(rows[i].a), b = address_of(rows[i].b);

		if (server_is_same_client(&a, &b) != rows[i].is_same)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
	}
}

/* ---- forms and files ---- */

static void names_of_parts_are_texts(void **state)
{
	struct arena a = { 0 };
	struct web_request r = {
		.arena = &a, .content_type = STR("multipart/form-data; boundary=e"),
		.raw = STR("--e\r\nContent-Disposition: form-data; name=\"file\"; "
			   "filename=\"../a\x01\xff.json\"\r\n\r\n{}\r\n--e--\r\n"),
	};
	struct upload_form p;
	struct upload_part part;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parts_open(&r, &p, &e), 0);
	assert_int_equal(parts_next(&p, &part, &e), 1);
	assert_true(str_is(part.field, "file"));
	assert_true(str_is(part.name, "../a_\xef\xbf\xbd.json"));
	assert_true(str_is(part.bytes, "{}"));
	assert_int_equal(parts_next(&p, &part, &e), 0);
	r.content_type = STR("application/json");
	assert_int_equal(parts_open(&r, &p, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	arena_release(&a);
}

static void files_have_types(void **state)
{
	(void)state;
	assert_string_equal(static_type(STR("index.html")), "text/html; charset=utf-8");
	assert_string_equal(static_type(STR("assets/a-1.js")), "text/javascript; charset=utf-8");
	assert_string_equal(static_type(STR("x.wasm")), "application/octet-stream");
	assert_non_null(web_examples[0].name);
}

static void tags_are_compared_weakly(void **state)
{
	struct exchange x = { .head.if_none_match = STR("\"a\", W/\"b\" ,\"c\"") };

	(void)state;
	assert_true(exchange_has_tag(&x, "W/\"a\""));
	assert_true(exchange_has_tag(&x, "\"b\""));
	assert_false(exchange_has_tag(&x, "W/\"d\""));
	x.head.if_none_match = STR("*");
	assert_true(exchange_has_tag(&x, "W/\"d\""));
	x.head.if_none_match = (struct str){ 0 };
	assert_false(exchange_has_tag(&x, "W/\"d\""));
}

static void packing_is_asked_for(void **state)
{
	static const struct { const char *accepted; bool takes; } rows[] = {
		{ "gzip", true }, { "deflate, GZIP;q=0.5", true }, { "*", true },
		{ "gzip;q=0", false }, { "br", false }, { "", false }, { "gzip;q=0.000, *", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct exchange x = { .head.accept_encoding = s(rows[i].accepted) };

		assert_int_equal(exchange_takes_gzip(&x), rows[i].takes);
	}
}

/* ---- answers that are kept ---- */

/* What the newest data says is kept, nothing else. */
static void answers_of_the_newest_data_are_kept(void **state)
{
	static const struct { uint64_t put, get; const char *key, *kept; } rows[] = {
		{ 5, 5, "a", "\"n\":5" }, { 0, 5, "a", "\"n\":5" }, { 0, 6, "a", "" }, { 0, 5, "b", "" },
		{ 4, 4, "a", "" }, { 0, 5, "a", "\"n\":5" }, { 6, 5, "a", "" }, { 0, 6, "a", "\"n\":6" },
		{ 6, 6, "b", "\"n\":6" }, { 0, 6, "a", "\"n\":6" },
	};
	struct answers kept = { 0 };

	(void)state;
	answers_begin(&kept);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf out = { 0 };
		struct json_writer w = json_writer(&out);
		char members[32];

		snprintf(members, sizeof(members), "\"n\":%d", (int)rows[i].put);
		if (rows[i].put)
			answers_put(&kept, rows[i].put, s(rows[i].key), s(members));
		json_begin_object(&w);
		if (!answers_get(&kept, rows[i].get, s(rows[i].key), &w))
			answers_end(&kept, rows[i].get, s(rows[i].key));
		if (!memmem(out.data, out.len, rows[i].kept, strlen(rows[i].kept)) ||
		    (!*rows[i].kept && out.len > 1))
			fail_msg("row %zu: %.*s", i, (int)out.len, out.data);
		buf_release(&out);
	}
	answers_release(&kept);
}

/* Threads that want one answer at once. */
struct crowd { struct answers kept; atomic_int made, got; bool is_kept; };

static void *want(void *self)
{
	struct crowd *c = self;
	struct timespec pause = { .tv_nsec = 50000000 };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	json_begin_object(&w);
	if (answers_get(&c->kept, 1, STR("question"), &w)) {
		atomic_fetch_add(&c->got, 1);
	} else {
		atomic_fetch_add(&c->made, 1);
		nanosleep(&pause, NULL);
		if (c->is_kept)
			answers_put(&c->kept, 1, STR("question"), STR("\"n\":1"));
		answers_end(&c->kept, 1, STR("question"));
	}
	buf_release(&out);
	return NULL;
}

static void a_crowd_waits_for_one_answer(void **state)
{
	enum { CROWD = 12 };

	(void)state;
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		struct crowd c = { .is_kept = is_kept };
		pthread_t thread[CROWD];

		answers_begin(&c.kept);
		for (size_t i = 0; i < CROWD; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, want, &c), 0);
		for (size_t i = 0; i < CROWD; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(c.made, is_kept ? 1 : CROWD);
		assert_int_equal(c.got, is_kept ? CROWD - 1 : 0);
		assert_int_equal(c.kept.n_makers, 0);
		answers_release(&c.kept);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_read), cmocka_unit_test(bad_token_files_are_refused),
		cmocka_unit_test(made_tokens_are_random),
		cmocka_unit_test(tokens_are_carried), cmocka_unit_test(hosts_are_ours_or_not),
		cmocka_unit_test(tokens_are_carried),
		cmocka_unit_test(a_proxy_s_last_word_counts),
		cmocka_unit_test(proxies_are_addresses), cmocka_unit_test(host_names_have_no_port),
		cmocka_unit_test(answers_share_a_budget),
		cmocka_unit_test(hosts_are_ours_or_not),
		cmocka_unit_test(origins_are_ours_or_not),
		cmocka_unit_test(addresses_are_this_machine_s),
		cmocka_unit_test(paths_find_their_route), cmocka_unit_test(routes_are_apart),
		cmocka_unit_test(parameters_are_decoded), cmocka_unit_test(clients_are_told_apart),
		cmocka_unit_test(names_of_parts_are_texts), cmocka_unit_test(files_have_types),
		cmocka_unit_test(tags_are_compared_weakly), cmocka_unit_test(packing_is_asked_for),
		cmocka_unit_test(answers_of_the_newest_data_are_kept),
		cmocka_unit_test(a_crowd_waits_for_one_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
