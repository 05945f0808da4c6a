/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_proxy.c - the simulator in front of others: which server answers, which id and
 * headers it sees, what the proxy writes down, and servers that refuse or do not answer.
 *
 * threads: yes
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "sim_rig.h"

#define ID_128 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_256 ID_128 ID_128
#define BODY "{\"prompt\":\"a\",\"max_tokens\":3,\"stream\":true}"

/* Two servers and the proxy before them. */
struct front {
	struct rig server[2], proxy;
	char url[2][64];
	const char *urls[2];
};

static void front_start(struct front *f, bool is_split, const char *api_key)
{
	for (int i = 0; i < 2; i++) {
		rig_init(&f->server[i]);
		f->server[i].opts.api_key = api_key;
		rig_start(&f->server[i]);
		snprintf(f->url[i], sizeof(f->url[i]), "http://127.0.0.1:%u", sim_port(f->server[i].sim));
		f->urls[i] = f->url[i];
	}
	rig_init(&f->proxy);
	f->proxy.opts.is_proxy = true;
	f->proxy.opts.proxy = (struct proxy_opts){ .kv_host = "kv", .prefill_kv_port = 7, .decode_kv_port = 8,
						   .timeout_s = 20 };
	if (is_split) {
		f->proxy.opts.proxy.prefill = &f->urls[0];
		f->proxy.opts.proxy.decode = &f->urls[1];
		f->proxy.opts.proxy.prefills = f->proxy.opts.proxy.decodes = 1;
	} else {
		f->proxy.opts.proxy.backend = f->urls;
		f->proxy.opts.proxy.backends = 2;
	}
	rig_start(&f->proxy);
}

static void front_stop(struct front *f)
{
	rig_stop(&f->proxy);
	for (int i = 0; i < 2; i++)
		if (f->server[i].sim)
			rig_stop(&f->server[i]);
}

static void front_release(struct front *f)
{
	rig_release(&f->proxy);
	rig_release(&f->server[0]);
	rig_release(&f->server[1]);
}

static unsigned status_of(const struct rig *r, const char *method, const char *path,
			  const char *head, const char *body, const char *want)
{
	struct reply reply = ask(r, method, path, head, body);
	unsigned status = reply.status;

	assert_false(reply.is_cut);
	if (want && !strstr(reply.body.data ? reply.body.data : "", want))
		fail_msg("%s %s: %s", method, path, reply.body.data ? reply.body.data : "");
	reply_release(&reply);
	return status;
}

static const char *text_of(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), STR("-")).p;
}

/* In turn; ids are passed on, up to the longest that is allowed. */
static void in_turn(void **state)
{
	static const struct { const char *head, *id, *forwarded; } row[] = {
		{ "X-Request-Id: one\r\n", "one", "one" }, { "X-Request-Id: two\r\n", "two", "two" },
		{ "", NULL, "-" }, { "X-Request-Id: " ID_256 "\r\n", ID_256, ID_256 },
		{ "X-Request-Id: c" ID_256 "\r\n", "c" ID_256, "-" },
	};
	struct truths t, served[2];
	struct front f;

	(void)state;
	front_start(&f, false, NULL);
	for (size_t i = 0; i < COUNT(row); i++)
		assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", row[i].head, BODY, "[DONE]"), 200);
	front_stop(&f);
	t = truths_read(f.proxy.truth);
	served[0] = truths_read(f.server[0].truth);
	served[1] = truths_read(f.server[1].truth);
	assert_int_equal(t.n, COUNT(row));
	assert_int_equal(served[0].n, 3);
	assert_int_equal(served[1].n, 2);
	for (size_t i = 0; i < COUNT(row); i++) {
		const struct json_value *v = t.row[i], *decode = json_get(v, "decode");
		const struct json_value *there = served[i % 2].row[i / 2], *sends = json_get(v, "send_ns");

		assert_string_equal(text_of(v, "request_id"), row[i].id ? row[i].id : "-");
		assert_string_equal(text_of(v, "forwarded_id"), row[i].forwarded);
		if (i < 2 || i == 3)
			assert_string_equal(text_of(there, "request_id"), row[i].forwarded);
		assert_int_equal(json_get(v, "prefill")->kind, JSON_NULL);
		assert_string_equal(text_of(decode, "url"), f.url[i % 2] + 7);
		assert_int_equal(json_int(json_get(decode, "status"), 0), 200);
		assert_int_equal(json_int(json_get(v, "status"), 0), 200);
		assert_true(json_int(json_get(v, "recv_ns"), 0) <= json_int(json_get(decode, "sent_ns"), 0));
		assert_true(json_int(json_get(decode, "sent_ns"), 0) <= json_int(json_get(decode, "first_ns"), 0));
		assert_true(json_int(json_get(decode, "first_ns"), 0) <= json_int(json_get(decode, "end_ns"), 0));
		assert_true(sends->count > 0 && at(sends, sends->count - 1) <= json_int(json_get(v, "end_ns"), 0));
	}
	arena_release(&t.arena);
	arena_release(&served[0].arena);
	arena_release(&served[1].arena);
	front_release(&f);
}

/* First one token of a prefill server, then the answer of a decode server; one id for both. */
static void split(void **state)
{
	const char *beginning = "___prefill_addr_kv:7___decode_addr_kv:8_";
	struct truths t, prefill, decode;
	struct front f;

	(void)state;
	front_start(&f, true, NULL);
	assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "X-Request-Id: own\r\n", BODY, "[DONE]"), 200);
	assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "", BODY, "[DONE]"), 200);
	assert_int_equal(status_of(&f.proxy, "GET", "/v1/models", "", "", "\"id\""), 200);
	front_stop(&f);
	t = truths_read(f.proxy.truth);
	prefill = truths_read(f.server[0].truth);
	decode = truths_read(f.server[1].truth);
	assert_int_equal(t.n, 2);
	assert_int_equal(prefill.n, 2);
	assert_int_equal(decode.n, 2);
	assert_string_equal(text_of(t.row[0], "request_id"), "own");
	for (size_t i = 0; i < 2; i++) {
		const char *id = text_of(t.row[i], "forwarded_id");
		const struct json_value *first = json_get(t.row[i], "prefill"), *last = json_get(t.row[i], "decode");

		assert_memory_equal(id, beginning, strlen(beginning));
		assert_int_equal(strlen(id), strlen(beginning) + 32);
		assert_int_equal(strspn(id + strlen(beginning), "0123456789abcdef"), 32);
		assert_string_equal(text_of(prefill.row[i], "request_id"), id);
		assert_string_equal(text_of(decode.row[i], "request_id"), id);
		assert_int_equal(json_int(json_get(prefill.row[i], "output_tokens"), 0), 1);
		assert_int_equal(json_int(json_get(decode.row[i], "output_tokens"), 0), 3);
		assert_string_equal(text_of(first, "url"), f.url[0] + 7);
		assert_string_equal(text_of(last, "url"), f.url[1] + 7);
		assert_true(json_int(json_get(first, "end_ns"), 0) <= json_int(json_get(last, "sent_ns"), 0));
	}
	assert_string_not_equal(text_of(t.row[0], "forwarded_id"), text_of(t.row[1], "forwarded_id"));
	arena_release(&t.arena);
	arena_release(&prefill.arena);
	arena_release(&decode.arena);
	front_release(&f);
}

/* Its own key, else the environment's; a refusal is passed on, but for a prefill server's. */
static void keys_and_refusals(void **state)
{
	struct front f;

	(void)state;
	unsetenv("OPENAI_API_KEY");
	for (int is_split = 0; is_split < 2; is_split++) {
		front_start(&f, is_split, "secret");
		assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions",
					   "Authorization: Bearer secret\r\n", BODY, "[DONE]"),
				 200);
		assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "", BODY,
					   is_split ? "the prefill server refused: " : NULL), is_split ? 500 : 401);
		setenv("OPENAI_API_KEY", "secret", 1);
		assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "", BODY, "[DONE]"), 200);
		assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "Authorization: Bearer other\r\n", BODY,
					   NULL), is_split ? 500 : 401);
		unsetenv("OPENAI_API_KEY");
		assert_int_equal(status_of(&f.proxy, "GET", "/health", "", "", NULL), 200);
		front_stop(&f);
		front_release(&f);
	}
}

/* The proxy says which server is away, and stays healthy. */
static void servers_that_are_gone(void **state)
{
	struct truths t;
	struct front f;

	(void)state;
	front_start(&f, true, NULL);
	rig_stop(&f.server[1]);
	assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "X-Request-Id: a\r\n", BODY,
				   "the server does not answer: "), 503);
	rig_stop(&f.server[0]);
	assert_int_equal(status_of(&f.proxy, "POST", "/v1/completions", "X-Request-Id: b\r\n", BODY,
				   "the prefill server does not answer: "), 503);
	assert_int_equal(status_of(&f.proxy, "GET", "/health", "", "", NULL), 200);
	front_stop(&f);
	t = truths_read(f.proxy.truth);
	assert_int_equal(t.n, 2);
	assert_int_equal(json_int(json_get(truth_of(&t, "a"), "status"), 0), 503);
	assert_int_equal(json_int(json_get(json_get(truth_of(&t, "a"), "prefill"), "status"), 0), 200);
	assert_int_equal(json_int(json_get(truth_of(&t, "b"), "status"), 0), 503);
	assert_int_equal(json_get(truth_of(&t, "b"), "decode")->kind, JSON_NULL);
	arena_release(&t.arena);
	front_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(split),
		cmocka_unit_test(keys_and_refusals),
		cmocka_unit_test(servers_that_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
