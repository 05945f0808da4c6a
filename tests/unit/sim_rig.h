/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_rig.h - for the simulator's tests: a server in a thread, a small blocking
 * client over loopback, answers taken apart, and the truth file read back.
 *
 * Nothing fails because the machine is busy: events may be late by any amount,
 * but never early and never different.
 */
#pragma once
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/http/response.h"
#include "client/http/sse.h"
#include "client/net/sock.h"
#include "core/base/file.h"
#include "core/json/read.h"
#include "sim/serving/sim.h"

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

static inline void *rig_main(void *arg)
{
	struct rig *r = arg;

	r->rc = sim_run(r->sim, &r->e);
	return NULL;
}

/* Sets what every test wants; the caller adds to r->opts before rig_start. */
static inline void rig_init(struct rig *r)
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

static inline void rig_start(struct rig *r)
{
	r->sim = sim_new(&r->opts, &r->e);
	if (!r->sim)
		fail_msg("%s", r->e.text);
	assert_int_equal(pthread_create(&r->thread, NULL, rig_main, r), 0);
}

static inline void rig_stop(struct rig *r)
{
	sim_stop(r->sim);
	pthread_join(r->thread, NULL);
	if (r->rc < 0)
		fail_msg("%s", r->e.text);
	sim_free(r->sim);
	r->sim = NULL;
}

static inline void rig_release(struct rig *r)
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

static inline void client_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static inline struct client client_open(const struct rig *r)
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

static inline void client_close(struct client *c)
{
	sock_close(c->fd);
	buf_release(&c->in);
}

static inline void client_send(struct client *c, struct str bytes)
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
static inline void client_ask(struct client *c, const char *method, const char *path,
			      const char *extra, const char *body)
{
	struct buf out = { 0 };

	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: here\r\n%sContent-Length: %zu\r\n\r\n%s", method,
		   path, extra, strlen(body), body);
	client_send(c, buf_str(&out));
	buf_release(&out);
}

/* More bytes into c->in; false at the end of the connection. */
static inline bool client_more(struct client *c, struct reply *r)
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

static inline struct reply client_read(struct client *c)
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

static inline struct reply ask(const struct rig *r, const char *method, const char *path,
			       const char *extra, const char *body)
{
	struct client c = client_open(r);
	struct reply reply;

	client_ask(&c, method, path, extra, body);
	reply = client_read(&c);
	client_close(&c);
	return reply;
}

static inline void reply_release(struct reply *r)
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

static inline void choice_add(struct answer *a, struct json_value *choice)
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

static inline void event_add(struct answer *a, struct str data)
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

static inline struct answer answer_read(const struct reply *r)
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

static inline void answer_release(struct answer *a)
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

static inline struct truths truths_read(const char *path)
{
	struct truths t = { 0 };
	struct buf text = { 0 };
	struct str rest;

	assert_int_equal(file_read(path, 1 << 26, &text, NULL), 0);
	rest = arena_str(&t.arena, buf_str(&text));
	while (rest.n) {
		assert_true(t.n < COUNT(t.row));
		assert_int_equal(json_parse(&t.arena, str_cut(&rest, '\n'), &t.row[t.n++], NULL),
			0);
	}
	buf_release(&text);
	return t;
}

static inline struct json_value *truth_of(const struct truths *t, const char *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_is(json_text(json_get(t->row[i], "request_id"), (struct str){ 0 }), id))
			return t->row[i];
	fail_msg("no truth of %s", id);
	return NULL;
}

static inline int64_t at(const struct json_value *list, size_t i)
{
	assert_true(list && i < list->count);
	return json_int(&list->item[i], -1);
}

/* ---- bodies ---- */


#define ASK(tokens, more) "{\"model\":\"sim\",\"prompt\":\"one two\",\"max_tokens\":" #tokens \
	",\"stream\":true,\"stream_options\":{\"include_usage\":true}" more "}"
#define CHAT(tokens, more) "{\"model\":\"sim\",\"messages\":[{\"role\":\"user\"," \
	"\"content\":\"hi\"}],\"max_completion_tokens\":" #tokens ",\"stream\":true," \
	"\"stream_options\":" \
	"{\"include_usage\":true}" more "}"
