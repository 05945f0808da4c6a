/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim_server.c - the simulator as its clients see it: a server in a thread,
 * a small blocking client over loopback, and the truth file as the judge.
 *
 * Nothing here fails because the machine is busy: events may be late by any
 * amount, but never early and never different.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/file.h"
#include "http/response.h"
#include "http/sse.h"
#include "json/read.h"
#include "net/sock.h"
#include "net/tls.h"
#include "sim/sim.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MS 1000000
#define PATIENCE_MS 20000

/* ---- a server in a thread ---- */

struct rig {
	struct sim_opts opts;
	struct sim *sim;
	pthread_t thread;
	int rc;
	struct err e;
	char truth[40], requests[40];
};

static void *rig_main(void *arg)
{
	struct rig *r = arg;

	r->rc = sim_run(r->sim, &r->e);
	return NULL;
}

/* Sets what every test wants; the caller adds to r->opts before rig_start. */
static void rig_init(struct rig *r)
{
	*r = (struct rig){ .opts = sim_defaults(), .truth = "/tmp/profllm-sim-truth-XXXXXX",
			   .requests = "/tmp/profllm-sim-reqs-XXXXXX" };
	close(mkstemp(r->truth));
	close(mkstemp(r->requests));
	r->opts.port = 0;
	r->opts.ttft_ms = "1";
	r->opts.itl_ms = "0.1";
	r->opts.truth_file = r->truth;
	r->opts.requests_file = r->requests;
}

static void rig_start(struct rig *r)
{
	r->sim = sim_new(&r->opts, &r->e);
	if (!r->sim)
		fail_msg("%s", r->e.text);
	assert_int_equal(pthread_create(&r->thread, NULL, rig_main, r), 0);
}

static void rig_stop(struct rig *r)
{
	sim_stop(r->sim);
	pthread_join(r->thread, NULL);
	if (r->rc < 0)
		fail_msg("%s", r->e.text);
	sim_free(r->sim);
	r->sim = NULL;
}

static void rig_release(struct rig *r)
{
	unlink(r->truth);
	unlink(r->requests);
}

/* ---- a client ---- */

struct reply {
	unsigned status;
	bool is_cut;        /* the connection ended before the answer did */
	bool is_reset;
	struct buf body;    /* without the chunks' framing */
};

struct client {
	int fd;
	struct http_response response;
	struct buf in;
};

static void client_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static struct client client_open(const struct rig *r)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct client c = { 0 };

	if (r->opts.uds)
		assert_int_equal(sock_addr_unix(r->opts.uds, &addr[0], NULL), 0);
	else
		assert_true(sock_resolve("127.0.0.1", sim_port(r->sim), addr, NULL) > 0);
	c.fd = sock_connect(&addr[0], false, NULL);
	assert_true(c.fd >= 0);
	client_wait(c.fd, POLLOUT);
	return c;
}

static void client_close(struct client *c)
{
	sock_close(c->fd);
	buf_release(&c->in);
}

static void client_send(struct client *c, struct str bytes)
{
	while (bytes.n) {
		ssize_t n = sock_send(c->fd, bytes);

		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			client_wait(c->fd, POLLOUT);
			continue;
		}
		bytes = (struct str){ bytes.p + n, bytes.n - (size_t)n };
	}
}

/* extra: header lines with CRLF, or "". */
static void client_ask(struct client *c, const char *method, const char *path, const char *extra,
		       const char *body)
{
	struct buf out = { 0 };

	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: here\r\n%sContent-Length: %zu\r\n\r\n%s", method,
		   path, extra, strlen(body), body);
	client_send(c, buf_str(&out));
	buf_release(&out);
}

/* More bytes into c->in; false at the end of the connection. */
static bool client_more(struct client *c, struct reply *r)
{
	char data[4096];
	int64_t stamp;
	ssize_t n;

	client_wait(c->fd, POLLIN);
	n = sock_recv(c->fd, data, sizeof(data), &stamp);
	r->is_reset = n < 0 && errno == ECONNRESET;
	if (n <= 0)
		return false;
	buf_add(&c->in, data, (size_t)n);
	return true;
}

static struct reply client_read(struct client *c)
{
	struct reply r = { 0 };
	struct str part;
	struct err e = { 0 };

	for (;;) {
		struct str in = buf_str(&c->in);
		enum http_found found = http_response_next(&c->response, &in, &part, &e);

		if (found == HTTP_BODY)
			buf_add_str(&r.body, part);
		if (found == HTTP_HEAD)
			r.status = c->response.status;
		buf_cut(&c->in, c->in.len - in.n);
		if (found == HTTP_BAD)
			fail_msg("%s", e.text);
		if (found == HTTP_END)
			return r;
		if (found == HTTP_NEED && !client_more(c, &r)) {
			r.is_cut = true;
			return r;
		}
	}
}

static struct reply ask(const struct rig *r, const char *method, const char *path,
			const char *extra, const char *body)
{
	struct client c = client_open(r);
	struct reply reply;

	client_ask(&c, method, path, extra, body);
	reply = client_read(&c);
	client_close(&c);
	return reply;
}

static void reply_release(struct reply *r)
{
	buf_release(&r->body);
}

/* ---- answers taken apart ---- */

struct answer {
	size_t events;         /* with choices */
	size_t errors, broken; /* error objects, events that are no JSON */
	bool is_done;
	int64_t prompt_tokens, output_tokens; /* of the usage event; -1: none */
	char finish[16], stop[32];
	struct buf text, reasoning;
};

static void choice_add(struct answer *a, struct json_value *choice)
{
	struct json_value *delta = json_get(choice, "delta");
	struct str text = json_text(json_get(delta ? delta : choice, delta ? "content" : "text"),
				    (struct str){ 0 });
	struct str reason = json_text(json_get(choice, "finish_reason"), (struct str){ 0 });
	struct str stop = json_text(json_get(choice, "stop_reason"), (struct str){ 0 });

	a->events++;
	buf_add_str(&a->text, text);
	buf_add_str(&a->reasoning, json_text(json_get(delta, "reasoning_content"),
					     (struct str){ 0 }));
	snprintf(a->finish, sizeof(a->finish), "%.*s", (int)reason.n, reason.p ? reason.p : "");
	snprintf(a->stop, sizeof(a->stop), "%.*s", (int)stop.n, stop.p ? stop.p : "");
}

static void event_add(struct answer *a, struct str data)
{
	struct arena arena = { 0 };
	struct json_value *v, *choices, *usage;

	if (str_is(data, "[DONE]")) {
		a->is_done = true;
		return;
	}
	assert_false(a->is_done);
	if (json_parse(&arena, data, &v, NULL) < 0) {
		a->broken++;
		arena_release(&arena);
		return;
	}
	choices = json_get(v, "choices");
	usage = json_get(v, "usage");
	a->errors += json_get(v, "error") != NULL;
	if (choices && choices->count)
		choice_add(a, &choices->item[0]);
	if (usage && usage->kind == JSON_OBJECT) {
		a->prompt_tokens = json_int(json_get(usage, "prompt_tokens"), -1);
		a->output_tokens = json_int(json_get(usage, "completion_tokens"), -1);
	}
	arena_release(&arena);
}

static struct answer answer_read(const struct reply *r)
{
	struct answer a = { .prompt_tokens = -1, .output_tokens = -1 };
	struct sse sse = { 0 };
	struct sse_event event;
	struct str in = buf_str(&r->body);

	while (sse_next(&sse, &in, &event) > 0)
		event_add(&a, event.data);
	sse_release(&sse);
	return a;
}

static void answer_release(struct answer *a)
{
	buf_release(&a->text);
	buf_release(&a->reasoning);
}

/* ---- the truth file ---- */

struct truths {
	struct arena arena;
	struct json_value *row[256];
	size_t n;
};

static struct truths truths_read(const char *path)
{
	struct truths t = { 0 };
	struct buf text = { 0 };
	struct str rest;

	assert_int_equal(file_read(path, 1 << 26, &text, NULL), 0);
	rest = arena_str(&t.arena, buf_str(&text));
	while (rest.n) {
		assert_true(t.n < COUNT(t.row));
		assert_int_equal(json_parse(&t.arena, str_cut(&rest, '\n'), &t.row[t.n++], NULL), 0);
	}
	buf_release(&text);
	return t;
}

static struct json_value *truth_of(const struct truths *t, const char *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_is(json_text(json_get(t->row[i], "request_id"), (struct str){ 0 }), id))
			return t->row[i];
	fail_msg("no truth of %s", id);
	return NULL;
}

static int64_t at(const struct json_value *list, size_t i)
{
	assert_true(list && i < list->count);
	return json_int(&list->item[i], -1);
}

/* ---- tests ---- */

#define ASK(tokens, more) "{\"model\":\"sim\",\"prompt\":\"one two\",\"max_tokens\":" #tokens \
	",\"stream\":true,\"stream_options\":{\"include_usage\":true}" more "}"
#define CHAT(tokens, more) "{\"model\":\"sim\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
	"\"max_completion_tokens\":" #tokens ",\"stream\":true,\"stream_options\":" \
	"{\"include_usage\":true}" more "}"

static void test_stream_and_truth(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	struct json_value *row, *sent;
	int64_t recv;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = "30";
	r.opts.itl_ms = "7";
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/completions", "x-request-id: r-1\r\n", ASK(5, ""));
	assert_int_equal(reply.status, 200);
	a = answer_read(&reply);
	assert_int_equal(a.events, 5);
	assert_true(a.is_done);
	assert_string_equal(a.finish, "length");
	assert_int_equal(a.prompt_tokens, 4); /* "one", then " two" as one word */
	assert_int_equal(a.output_tokens, 5);
	assert_int_equal(a.text.len, 20);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 1);
	row = truth_of(&t, "r-1");
	sent = json_get(row, "send_ns");
	recv = json_int(json_get(row, "recv_ns"), -1);
	assert_int_equal(sent->count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(at(sent, i) - recv >= 30 * MS + (int64_t)i * 7 * MS);
		assert_int_equal(at(json_get(row, "tokens"), i), 1);
	}
	assert_true(json_int(json_get(row, "end_ns"), -1) >= at(sent, 4));
	assert_int_equal(json_int(json_get(row, "output_tokens"), -1), 5);
	assert_int_equal(json_get(row, "fault")->kind, JSON_NULL);
	arena_release(&t.arena);
	answer_release(&a);
	reply_release(&reply);
	rig_release(&r);
}

static void test_burst_grid(void **state)
{
	struct rig r;
	struct client c[3];
	struct truths t;
	int64_t base;
	int on_grid = 0;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = "5";
	r.opts.itl_ms = NULL;
	r.opts.burst_ms = 40;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(c); i++) {
		c[i] = client_open(&r);
		client_ask(&c[i], "POST", "/v1/completions", "", ASK(8, ""));
		usleep(13000);
	}
	for (size_t i = 0; i < COUNT(c); i++) {
		struct reply reply = client_read(&c[i]);

		assert_int_equal(reply.status, 200);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 3);
	base = at(json_get(t.row[0], "send_ns"), 0);
	for (size_t i = 0; i < t.n; i++)
		for (size_t k = 0; k < 8; k++) {
			int64_t off = (at(json_get(t.row[i], "send_ns"), k) - base + 20 * MS) %
				      (40 * MS);

			on_grid += off > 15 * MS && off < 25 * MS;
		}
	assert_in_range(on_grid, 17, 24); /* a busy machine may be late now and then */
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_chat_reasoning_and_wide_events(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	static const int64_t tokens[] = { 0, 3, 1, 3, 3, 1 };
	(void)state;
	rig_init(&r);
	r.opts.reasoning = 4;
	r.opts.tokens_per_event = 3;
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/chat/completions", "x-request-id: c\r\n", CHAT(11, ""));
	assert_non_null(strstr(reply.body.data, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"));
	a = answer_read(&reply);
	assert_int_equal(a.events, 6); /* the role, then 3 + 1 reasoning, 3 + 3 + 1 answer */
	assert_int_equal(a.reasoning.len, 16);
	assert_int_equal(a.text.len, 28);
	assert_int_equal(a.output_tokens, 11);
	assert_int_equal(a.prompt_tokens, 26);
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < COUNT(tokens); i++)
		assert_int_equal(at(json_get(truth_of(&t, "c"), "tokens"), i), tokens[i]);
	arena_release(&t.arena);
	answer_release(&a);
	reply_release(&reply);
	rig_release(&r);
}

static void test_whole_answers(void **state)
{
	static const char wanted[] =
		"\"reasoning_content\":null,\"content\":\"";
	struct rig r;
	struct reply whole, streamed, chat;
	struct answer a;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	whole = ask(&r, "POST", "/v1/completions", "x-request-id: w\r\n",
		    "{\"prompt\":\"one two\",\"max_tokens\":3}");
	streamed = ask(&r, "POST", "/v1/completions", "x-request-id: w\r\n", ASK(3, ""));
	chat = ask(&r, "POST", "/v1/chat/completions", "",
		   "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
	a = answer_read(&streamed);
	assert_int_equal(whole.status, 200);
	assert_non_null(strstr(whole.body.data, a.text.data)); /* same prompt, same answer */
	assert_non_null(strstr(whole.body.data, "{\"id\":\"cmpl-w\",\"object\":\"text_completion\","));
	assert_non_null(strstr(whole.body.data, "\"finish_reason\":\"length\",\"stop_reason\":null}],"
		"\"usage\":{\"prompt_tokens\":4,\"total_tokens\":7,\"completion_tokens\":3}}"));
	assert_non_null(strstr(chat.body.data, wanted));
	assert_non_null(strstr(chat.body.data, "\"finish_reason\":\"stop\""));
	rig_stop(&r);
	answer_release(&a);
	reply_release(&whole);
	reply_release(&streamed);
	reply_release(&chat);
	rig_release(&r);
}

/* stop, min_tokens, natural lengths: what the answer must be given the unstopped one. */
static void test_lengths(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer full, a;
	char word[8], body[400];
	static const struct { const char *more; size_t text, events; const char *finish; } rows[] = {
		{ ",\"stop\":\"%s\"", 8, 3, "stop" },
		{ ",\"stop\":[\"nothing of this\",\"%s\"]", 8, 3, "stop" },
		{ ",\"stop\":\"%s\",\"include_stop_str_in_output\":true", 12, 3, "stop" },
		{ ",\"stop\":\"%s\",\"min_tokens\":3", 32, 8, "length" },
		{ ",\"ignore_eos\":true%.0s", 32, 8, "length" },
	};
	(void)state;
	rig_init(&r);
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/completions", "", ASK(8, ""));
	full = answer_read(&reply);
	reply_release(&reply);
	assert_int_equal(full.text.len, 32);
	snprintf(word, sizeof(word), "%.4s", full.text.data + 8);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int n = snprintf(body, sizeof(body), "{\"prompt\":\"one two\",\"max_tokens\":8,"
				 "\"stream\":true,\"stream_options\":{\"include_usage\":true}");

		/* The format is a row of the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		n += snprintf(body + n, sizeof(body) - (size_t)n, rows[i].more, word);
#pragma GCC diagnostic pop
		snprintf(body + n, sizeof(body) - (size_t)n, "}");
		reply = ask(&r, "POST", "/v1/completions", "", body);
		a = answer_read(&reply);
		assert_int_equal(a.text.len, rows[i].text);
		assert_memory_equal(a.text.data, full.text.data, a.text.len);
		assert_int_equal(a.events, rows[i].events);
		assert_int_equal(a.output_tokens, rows[i].events);
		assert_string_equal(a.finish, rows[i].finish);
		if (*rows[i].finish == 's')
			assert_string_equal(a.stop, word);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	answer_release(&full);
	rig_release(&r);
}

static void test_natural_length(void **state)
{
	static const struct { const char *body, *finish; int64_t tokens; } rows[] = {
		{ ASK(20, ""), "stop", 6 },
		{ ASK(4, ""), "length", 4 },
		{ ASK(20, ",\"ignore_eos\":true"), "length", 20 },
		{ ASK(20, ",\"min_tokens\":9"), "stop", 9 },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.output_len = "6";
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, "POST", "/v1/completions", "", rows[i].body);
		struct answer a = answer_read(&reply);

		assert_int_equal(a.output_tokens, rows[i].tokens);
		assert_string_equal(a.finish, rows[i].finish);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	rig_release(&r);
}

static void test_faults(void **state)
{
	static const char *const specs[] = {
		"status=503:id=status", "reset@3:id=reset", "close@3:id=close", "malformed@2:id=malformed",
		"drop-usage:id=drop", "no-done:id=nodone", "error-event@3:id=error", "crlf:id=crlf",
		"comments:id=comments", "split:id=split", "coalesce=2:id=coalesce",
		"stall@2=60ms:id=stall", "slow-start=60ms:id=slow",
	};
	static const struct {
		const char *id;
		unsigned status;
		bool is_cut, is_done;
		size_t events, broken, errors;
		int64_t usage;       /* -1: none */
		size_t sent;         /* events in the truth */
		const char *fault, *finish;
	} rows[] = {
		{ "none", 200, false, true, 5, 0, 0, 5, 5, "", "length" },
		{ "status", 503, false, false, 0, 0, 0, -1, 0, "status=503:id=status", "error" },
		{ "reset", 200, true, false, 2, 0, 0, -1, 2, "reset@3:id=reset", "error" },
		{ "close", 200, true, false, 2, 0, 0, -1, 2, "close@3:id=close", "error" },
		{ "malformed", 200, false, true, 4, 1, 0, 5, 5, "malformed@2:id=malformed", "length" },
		{ "drop", 200, false, true, 5, 0, 0, -1, 5, "drop-usage:id=drop", "length" },
		{ "nodone", 200, false, false, 5, 0, 0, 5, 5, "no-done:id=nodone", "length" },
		{ "error", 200, false, true, 2, 0, 1, -1, 2, "error-event@3:id=error", "error" },
		{ "crlf", 200, false, true, 5, 0, 0, 5, 5, "crlf:id=crlf", "length" },
		{ "comments", 200, false, true, 5, 0, 0, 5, 5, "comments:id=comments", "length" },
		{ "split", 200, false, true, 5, 0, 0, 5, 5, "split:id=split", "length" },
		{ "coalesce", 200, false, true, 5, 0, 0, 5, 5, "coalesce=2:id=coalesce", "length" },
		{ "stall", 200, false, true, 5, 0, 0, 5, 5, "stall@2=60ms:id=stall", "length" },
		{ "slow", 200, false, true, 5, 0, 0, 5, 5, "slow-start=60ms:id=slow", "length" },
	};
	struct rig r;
	struct truths t;
	struct json_value *sent;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "5";
	r.opts.faults = specs;
	r.opts.fault_count = COUNT(specs);
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply;
		struct answer a;
		char header[64];

		print_message("fault %s\n", rows[i].id);
		snprintf(header, sizeof(header), "X-Request-Id: %s\r\n", rows[i].id);
		reply = ask(&r, "POST", "/v1/completions", header, ASK(5, ""));
		a = answer_read(&reply);
		assert_int_equal(reply.status, rows[i].status);
		assert_int_equal(reply.is_cut, rows[i].is_cut);
		assert_int_equal(a.is_done, rows[i].is_done);
		/* A reset may overtake bytes the client has not read yet. */
		if (strcmp(rows[i].id, "reset") == 0)
			assert_true(reply.is_reset && a.events <= rows[i].events);
		else
			assert_int_equal(a.events, rows[i].events);
		assert_int_equal(a.broken, rows[i].broken);
		assert_int_equal(a.errors, rows[i].errors);
		assert_int_equal(a.output_tokens, rows[i].usage);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct json_value *row = truth_of(&t, rows[i].id);

		assert_int_equal(json_get(row, "send_ns")->count, rows[i].sent);
		assert_true(str_is(json_text(json_get(row, "fault"), (struct str){ 0 }), rows[i].fault));
		assert_true(str_is(json_text(json_get(row, "finish"), (struct str){ 0 }), rows[i].finish));
		assert_int_equal(json_int(json_get(row, "status"), 0), rows[i].status);
	}
	sent = json_get(truth_of(&t, "stall"), "send_ns");
	assert_true(at(sent, 1) - at(sent, 0) >= 60 * MS - 1 * MS);
	sent = json_get(truth_of(&t, "slow"), "send_ns");
	assert_true(at(sent, 0) - json_int(json_get(truth_of(&t, "slow"), "recv_ns"), 0) >= 61 * MS);
	sent = json_get(truth_of(&t, "coalesce"), "send_ns");
	assert_true(at(sent, 0) == at(sent, 1) && at(sent, 1) < at(sent, 2) &&
		    at(sent, 2) == at(sent, 3) && at(sent, 3) < at(sent, 4));
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_paths(void **state)
{
	static const struct { const char *method, *path, *body; unsigned status; const char *has; } rows[] = {
		{ "GET", "/health", "", 200, NULL },
		{ "GET", "/ping", "", 200, NULL },
		{ "POST", "/ping", "", 200, NULL },
		{ "GET", "/version", "", 200, "{\"version\":" },
		{ "GET", "/v1/models", "", 200, "\"id\":\"big\",\"object\":\"model\"" },
		{ "GET", "/v1/models?x=1", "", 200, "\"id\":\"small\"" },
		{ "GET", "/v1/models", "", 200, "\"root\":\"base\",\"parent\":null,\"max_model_len\":100," },
		{ "POST", "/tokenize", "{\"prompt\":\"a bcd\"}", 200,
		  "{\"count\":2,\"max_model_len\":100,\"tokens\":[97,987]}" },
		{ "POST", "/tokenize", "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}", 200, "{\"count\":24," },
		{ "POST", "/detokenize", "{\"tokens\":[97,256,34]}", 200, "{\"prompt\":\"a aaa\\\"\"}" },
		{ "POST", "/detokenize", "{\"tokens\":[99999]}", 400, "not in the vocabulary" },
		{ "GET", "/metrics", "", 200, "vllm:num_requests_running{engine=\"0\",model_name=\"big\"} 0.0" },
		{ "GET", "/", "", 404, "\"type\":\"NotFoundError\",\"param\":null,\"code\":404" },
		{ "GET", "/v1/completions", "", 405, "Method Not Allowed" },
		{ "POST", "/v1/completions", "{", 400, "\"type\":\"BadRequestError\"" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"model\":\"x\"}", 404,
		  "{\"error\":{\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\","
		  "\"param\":\"model\",\"code\":404}}" },
		{ "POST", "/v1/completions", "{\"prompt\":\"\"}", 400, "the prompt is empty" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":99}", 200, "\"completion_tokens\":99" },
		{ "POST", "/v1/completions", "{\"prompt\":\"ab\",\"max_tokens\":99}", 400,
		  "maximum context length is 100 tokens, but 101 were requested: 2 in the prompt and 99" },
		{ "POST", "/v1/completions", "{\"prompt\":\"a\",\"model\":\"small\"}", 200, "\"model\":\"big\"" },
		{ "POST", "/v1/completions", "{\"prompt\":[1,2,3],\"max_tokens\":1}", 200, "\"prompt_tokens\":3" },
	};
	static const char *const names[] = { "big", "small" };
	struct rig r;
	struct truths t;
	(void)state;
	rig_init(&r);
	r.opts.model = "base";
	r.opts.served = names;
	r.opts.served_count = 2;
	r.opts.max_model_len = 100;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, rows[i].method, rows[i].path, "", rows[i].body);

		if (reply.status != rows[i].status || (rows[i].has && !strstr(reply.body.data, rows[i].has)))
			fail_msg("%s %s %s: %u %s", rows[i].method, rows[i].path, rows[i].body,
				 reply.status, reply.body.data);
		reply_release(&reply);
	}
	rig_stop(&r);
	/* Every request is in the file, byte for byte. */
	t = truths_read(r.requests);
	assert_int_equal(t.n, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(str_is(json_text(json_get(t.row[i], "body"), STR("?")), rows[i].body));
		assert_true(str_is(json_text(json_get(t.row[i], "method"), STR("?")), rows[i].method));
	}
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_api_key(void **state)
{
	static const struct { const char *path, *header; unsigned status; } rows[] = {
		{ "/v1/models", "Authorization: Bearer secret\r\n", 200 },
		{ "/v1/models", "Authorization: Bearer secre\r\n", 401 },
		{ "/v1/models", "Authorization: secret\r\n", 401 },
		{ "/v1/models", "", 401 },
		{ "/health", "", 200 },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.api_key = "secret";
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, "GET", rows[i].path, rows[i].header, "");

		assert_int_equal(reply.status, rows[i].status);
		reply_release(&reply);
	}
	rig_stop(&r);
	rig_release(&r);
}

static void test_connections(void **state)
{
	struct rig r;
	struct client c;
	struct reply reply;
	struct answer a;
	struct buf body = { 0 };
	(void)state;
	rig_init(&r);
	r.opts.keep_alive_ms = 100;
	r.opts.max_model_len = 1000000;
	rig_start(&r);
	/* Three at once on one connection are answered in order. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "", ASK(3, ""));
	client_ask(&c, "GET", "/version", "", "");
	client_ask(&c, "POST", "/v1/completions", "", ASK(2, ""));
	for (int i = 0; i < 3; i++) {
		reply = client_read(&c);
		a = answer_read(&reply);
		assert_int_equal(reply.status, 200);
		assert_int_equal(a.events, i == 0 ? 3 : i == 1 ? 0 : 2);
		answer_release(&a);
		reply_release(&reply);
	}
	/* Then it is idle for too long. */
	reply = client_read(&c);
	assert_true(reply.is_cut && reply.status == 0);
	client_close(&c);
	/* A body in small pieces, and one that waits for permission. */
	buf_add_text(&body, "{\"max_tokens\":1,\"prompt\":\"");
	for (int i = 0; i < 200000; i++)
		buf_add_char(&body, 'x');
	buf_add_text(&body, "\"}");
	c = client_open(&r);
	client_send(&c, STR("POST /v1/completions HTTP/1.1\r\nHo"));
	usleep(2000);
	client_send(&c, STR("st: x\r\nExpect: 100-continue\r\nContent-Length: 200028\r\n"
			    "Connection: close\r\n\r\n"));
	assert_int_equal(body.len, 200028);
	client_send(&c, buf_str(&body));
	reply = client_read(&c);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body.data, "\"prompt_tokens\":200000,"));
	reply_release(&reply);
	reply = client_read(&c);
	assert_true(reply.is_cut);
	client_close(&c);
	/* What is no HTTP is refused and hung up on. */
	c = client_open(&r);
	client_send(&c, STR("hello\r\n\r\n"));
	reply = client_read(&c);
	assert_int_equal(reply.status, 400);
	reply_release(&reply);
	client_close(&c);
	buf_release(&body);
	rig_stop(&r);
	rig_release(&r);
}

static void test_clients_that_leave_or_lag(void **state)
{
	struct rig r;
	struct client c;
	struct reply reply;
	struct answer a;
	struct truths t;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "0";
	rig_start(&r);
	/* Does not read until far more was sent than sockets hold. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "x-request-id: lag\r\n", ASK(60000, ""));
	usleep(300000);
	reply = client_read(&c);
	a = answer_read(&reply);
	assert_int_equal(a.events, 60000);
	assert_true(a.is_done);
	answer_release(&a);
	reply_release(&reply);
	client_close(&c);
	/* Leaves in the middle. */
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "x-request-id: gone\r\n", ASK(100000, ""));
	client_more(&c, &reply);
	client_close(&c);
	usleep(50000);
	reply = ask(&r, "GET", "/metrics", "", "");
	assert_non_null(strstr(reply.body.data, "finished_reason=\"abort\"} 1.0"));
	reply_release(&reply);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_true(str_is(json_text(json_get(truth_of(&t, "gone"), "finish"), STR("?")), "abort"));
	assert_int_equal(json_get(truth_of(&t, "lag"), "send_ns")->count, 60000);
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_engine_serves(void **state)
{
	struct rig r;
	struct client c[3];
	struct truths t;
	struct json_value *first, *last;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = r.opts.itl_ms = NULL;
	r.opts.max_num_seqs = 2;
	r.opts.cost = (struct engine_cost){ 1000, 10, 4000, 100 };
	rig_start(&r);
	assert_false(sim_is_oracle(r.sim));
	for (int i = 0; i < 3; i++) {
		char header[32];

		c[i] = client_open(&r);
		snprintf(header, sizeof(header), "x-request-id: e%d\r\n", i);
		client_ask(&c[i], "POST", "/v1/completions", header, ASK(10, ""));
		usleep(500);
	}
	for (int i = 0; i < 3; i++) {
		struct reply reply = client_read(&c[i]);
		struct answer a = answer_read(&reply);

		assert_int_equal(a.events, 10);
		answer_release(&a);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	first = json_get(truth_of(&t, "e0"), "send_ns");
	last = json_get(truth_of(&t, "e2"), "send_ns");
	/* Only two at a time: the third starts after the first has ended. */
	assert_true(at(last, 0) > at(first, 9));
	/* Nine decode steps of at least 4.1 ms. */
	assert_true(at(first, 9) - at(first, 0) >= 9 * 4100000 - 1 * MS);
	arena_release(&t.arena);
	rig_release(&r);
}

static void test_unix_socket(void **state)
{
	struct rig r;
	struct reply reply;
	(void)state;
	rig_init(&r);
	r.opts.uds = "/tmp/profllm-sim-test.sock";
	rig_start(&r);
	assert_string_equal(sim_url(r.sim), "unix:/tmp/profllm-sim-test.sock");
	reply = ask(&r, "GET", "/version", "", "");
	assert_int_equal(reply.status, 200);
	reply_release(&reply);
	rig_stop(&r);
	assert_false(file_exists(r.opts.uds));
	rig_release(&r);
}

static void test_bad_options(void **state)
{
	static const char *const bad_fault[] = { "boom" }, *const stall[] = { "stall@1=1s" };
	struct sim_opts d = sim_defaults();
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	d.port = 0;
#define WITH(...) ({ struct sim_opts o_ = d; struct sim_opts *o = &o_; __VA_ARGS__; o_; })
	const struct { struct sim_opts opts; enum err_code code; const char *has; } rows[] = {
		{ WITH(o->ttft_ms = "x"), ERR_USAGE, "--ttft-ms: 'x'" },
		{ WITH(o->itl_ms = "exp:-1"), ERR_USAGE, "--itl-ms: 'exp:-1'" },
		{ WITH(o->output_len = "normal"), ERR_USAGE, "--output-len: 'normal'" },
		{ WITH(o->faults = bad_fault, o->fault_count = 1), ERR_USAGE, "'boom' is no fault" },
		{ WITH(o->faults = stall, o->fault_count = 1), ERR_USAGE, "need --ttft-ms" },
		{ WITH(o->tokenizer = "/no/such/file"), ERR_IO, "/no/such/file" },
		{ WITH(o->cert_file = "/tmp/x"), ERR_USAGE, "--ssl-certfile and --ssl-keyfile" },
		{ WITH(o->truth_file = "/no/dir/t"), ERR_IO, "--truth: cannot write /no/dir/t" },
		{ WITH(o->requests_file = "/no/dir/t"), ERR_IO, "--requests: cannot write /no/dir/t" },
		{ WITH(o->port_file = "/no/dir/p"), ERR_IO, "/no/dir/p" },
		{ WITH(o->uds = "/no/dir/s"), ERR_NET, "/no/dir/s" },
		{ WITH(o->port = sim_port(r.sim)), ERR_NET, "Address already in use" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		assert_null(sim_new(&rows[i].opts, &e));
		if (e.code != rows[i].code || !strstr(e.text, rows[i].has))
			fail_msg("'%s' where '%s' was expected", e.text, rows[i].has);
	}
	rig_stop(&r);
	rig_release(&r);
}

/* ---- TLS ---- */

static void certificate_make(const char *cert_path, const char *key_path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	FILE *f;

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
				   (const unsigned char *)"here", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	f = fopen(cert_path, "w");
	PEM_write_X509(f, cert);
	fclose(f);
	f = fopen(key_path, "w");
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* Sends request through a TLS connection and collects the plain answer until it holds end. */
static void tls_exchange(struct client *c, const char *request, const char *end, struct buf *plain)
{
	struct tls_opts opts = { .is_insecure = true };
	struct tls_config *config = tls_config_new(&opts, NULL);
	struct tls *t = tls_new(config, "localhost", NULL);
	struct buf out = { 0 };
	struct reply unused = { 0 };
	int state = tls_handshake(t, (struct str){ 0 }, &out, NULL);

	while (state == 0) {
		client_send(c, buf_str(&out));
		buf_reset(&out);
		assert_true(client_more(c, &unused));
		state = tls_handshake(t, buf_str(&c->in), &out, NULL);
		buf_reset(&c->in);
	}
	assert_int_equal(state, 1);
	assert_int_equal(tls_write(t, str_of(request), &out, NULL), 0);
	client_send(c, buf_str(&out));
	while (!plain->data || !strstr(plain->data, end)) {
		assert_true(client_more(c, &unused));
		assert_true(tls_read(t, buf_str(&c->in), plain, &out, NULL) >= 0);
		buf_reset(&c->in);
	}
	buf_release(&out);
	tls_free(t);
	tls_config_free(config);
}

static void test_tls(void **state)
{
	static const char body[] = ASK(4, "");
	const char *cert = "/tmp/profllm-sim-test.crt", *key = "/tmp/profllm-sim-test.key";
	struct rig r;
	struct client c;
	struct buf plain = { 0 };
	char request[600];
	(void)state;
	certificate_make(cert, key);
	rig_init(&r);
	r.opts.cert_file = cert;
	r.opts.key_file = key;
	rig_start(&r);
	assert_true(str_starts(str_of(sim_url(r.sim)), STR("https://127.0.0.1:")));
	c = client_open(&r);
	snprintf(request, sizeof(request), "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
		 "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	tls_exchange(&c, request, "data: [DONE]", &plain);
	assert_non_null(strstr(plain.data, "\"completion_tokens\":4}"));
	client_close(&c);
	/* Somebody who speaks no TLS is hung up on. */
	c = client_open(&r);
	client_send(&c, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	while (client_more(&c, &(struct reply){ 0 }))
		;
	client_close(&c);
	rig_stop(&r);
	buf_release(&plain);
	unlink(cert);
	unlink(key);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream_and_truth),
		cmocka_unit_test(test_burst_grid),
		cmocka_unit_test(test_chat_reasoning_and_wide_events),
		cmocka_unit_test(test_whole_answers),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_natural_length),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_api_key),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_clients_that_leave_or_lag),
		cmocka_unit_test(test_engine_serves),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_tls),
	};
	return cmocka_run_group_tests_name("sim server", tests, NULL, NULL);
}
