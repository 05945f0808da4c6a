/* SPDX-License-Identifier: Apache-2.0 */
/* Requests byte for byte, and the look-ahead thread against serialising all at once. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/serve/prepare.h"

struct set {
	struct workload w;
	struct plan plan;
	struct prepare_opts opts;
	const char *url[1], *proxy[1];
};

static void set_init(struct set *s, uint32_t n)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < n; i++) {
		struct sample *sample = workload_add(&s->w);

		sample->prompt = str_of(arena_printf(&s->w.arena, "prompt %u", i));
		sample->request_id = str_of(arena_printf(&s->w.arena, "id-%u", i));
		sample->output_len = i;
	}
	plan_same(&s->plan, n, 0);
	for (uint32_t i = 0; i < n; i++)
		s->plan.entry[i].sample = i;
	s->url[0] = "http://127.0.0.1:8000";
	s->opts = (struct prepare_opts){
		.endpoint = endpoint_find("vllm"), .encode = { .model = STR("m") },
		.base_url = s->url, .path = "/v1/completions", .proxy = s->proxy, .n_urls = 1,
		.version = "1",
	};
}

static void set_release(struct set *s)
{
	workload_release(&s->w);
	plan_release(&s->plan);
}

static void heads_are_complete(void **state)
{
	static const struct serve_pair headers[] = { { "Accept", "x/y" }, { "x-request-id", "no" } };
	static const struct { const char *url, *proxy, *want; } row[] = {
		{ "http://127.0.0.1:8000", NULL,
		  "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n" },
		{ "http://[::1]:80/", NULL, "POST //v1/completions HTTP/1.1\r\nHost: [::1]\r\n" },
		{ "http://h:81/p", "http://proxy:3128",
		  "POST http://h:81/p/v1/completions HTTP/1.1\r\nHost: h:81\r\n" },
		{ "https://h", "http://proxy:3128", "POST /v1/completions HTTP/1.1\r\nHost: h\r\n" },
		{ "unix:/tmp/s.sock", NULL, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct prepared p;
		struct err e = { 0 };
		struct set s;
		struct buf want = { 0 };

		set_init(&s, 1);
		s.url[0] = row[i].url;
		s.proxy[0] = row[i].proxy;
		s.opts.header = headers;
		s.opts.n_headers = 2;
		s.opts.api_key = "k";
		assert_int_equal(prepare(&s.opts, &s.plan, &s.w, &p, &e), 0);
		buf_printf(&want, "%sUser-Agent: profllm/1\r\nAccept-Encoding: identity\r\n"
			   "Authorization: Bearer k\r\nAccept: x/y\r\n", row[i].want);
		assert_true(p.request[0].n > want.len);
		assert_memory_equal(p.request[0].p, want.data, want.len);
		buf_release(&want);
		prepared_release(&p);
		set_release(&s);
	}
}

/* An API's own headers replace ours, --header replaces both. */
static void no_header_is_sent_twice(void **state)
{
	static const struct endpoint_header own[] = {
		{ "accept", "a/b" }, { "Content-Type", "c/d" }, { "Host", "h" }, { "X-A", "1" },
		{ "x-request-id", "no" },
	};
	static const struct serve_pair headers[] = { { "x-a", "2" } };
	struct endpoint ep = *endpoint_find("vllm");
	struct prepared p;
	struct err e = { 0 };
	struct set s;
	struct str want = STR("POST /v1/completions HTTP/1.1\r\nUser-Agent: profllm/1\r\n"
			      "Accept-Encoding: identity\r\naccept: a/b\r\nContent-Type: c/d\r\n"
			      "Host: h\r\nx-a: 2\r\nx-request-id: id-0\r\nContent-Length: ");

	(void)state;
	ep.header = own;
	ep.n_headers = sizeof(own) / sizeof(*own);
	set_init(&s, 1);
	s.opts.endpoint = &ep;
	s.opts.header = headers;
	s.opts.n_headers = 1;
	assert_int_equal(prepare(&s.opts, &s.plan, &s.w, &p, &e), 0);
	assert_true(str_starts(p.request[0], want));
	prepared_release(&p);
	set_release(&s);
}

static void bad_headers_are_refused(void **state)
{
	static const struct serve_pair bad[] = {
		{ "Content-Length", "5" }, { "transfer-encoding", "chunked" }, { "a b", "c" },
		{ "a", "b\r\nc: d" }, { "", "x" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct prepared p;
		struct err e = { 0 };
		struct set s;

		set_init(&s, 1);
		s.opts.header = &bad[i];
		s.opts.n_headers = 1;
		assert_int_equal(prepare(&s.opts, &s.plan, &s.w, &p, &e), -1);
		assert_non_null(strstr(e.text, "--header"));
		set_release(&s);
	}
}

static void looking_ahead_gives_the_same_bytes(void **state)
{
	enum { N = 5000 };
	struct prepared all, ahead;
	struct err e = { 0 };
	struct set s;
	struct buf tail = { 0 };

	(void)state;
	set_init(&s, N);
	assert_int_equal(prepare(&s.opts, &s.plan, &s.w, &all, &e), 0);
	assert_null(all.build);
	s.opts.bytes_max = 1000;
	assert_int_equal(prepare(&s.opts, &s.plan, &s.w, &ahead, &e), 0);
	assert_non_null(ahead.build);
	for (uint32_t i = 0; i < N - 10; i++) {
		/* Two loops may overtake each other. */
		uint32_t entry = i ^ (i < N - 12 ? 1 : 0);

		buf_reset(&tail);
		assert_int_equal(ahead.request[entry].n, 0);
		assert_int_equal(ahead.build(ahead.build_self, entry, &tail, &e), 0);
		assert_int_equal(tail.len, all.request[entry].n);
		assert_memory_equal(tail.data, all.request[entry].p, tail.len);
	}
	buf_release(&tail);
	prepared_release(&ahead); /* with entries that were not taken */
	prepared_release(&all);
	set_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_are_complete),
		cmocka_unit_test(no_header_is_sent_twice),
		cmocka_unit_test(bad_headers_are_refused),
		cmocka_unit_test(looking_ahead_gives_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
