/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_rig.h - a dashboard of a store of its own in this process, and requests to it, byte by byte.
 * Include cmocka.h first.
 *
 * A request is its first line without "HTTP/1.1", further header lines after it, and a body. In a
 * body ' stands for "; one that begins with -- is a form. What is answered is compared whole, head
 * and body, without what differs each time.
 */
#pragma once
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "web/web.h"
#include "answers.h"
#include "scratch.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define RIG_HIDDEN_MAX 32
#define RIG_PATIENCE_NS 60000000000ll

struct rig_request { const char *head, *body; };

static struct store *rig_store;
static struct web *rig_web;
static char rig_jobs[128], rig_socket[128];
static unsigned rig_port;
static struct { char what[64], name[16]; } rig_hidden[RIG_HIDDEN_MAX]; /* see rig_hide */
static size_t rig_n_hidden;
static bool rig_is_whole; /* the headers that all answers have are compared, too */

/* Starts a dashboard with these options and the store "NAME.db" of the scratch folder. */
static inline void rig_start(const char *name, struct web_opts o)
{
	char place[160];
	struct store_opts so = { .url = place };
	struct err e = { 0 };

	snprintf(place, sizeof(place), "sqlite:%s/%s.db", dir, name);
	snprintf(rig_jobs, sizeof(rig_jobs), "%s/jobs-%s", dir, name);
	o.listen = o.listen ? o.listen : "127.0.0.1:0";
	o.version = "test";
	o.log_fd = -1;
	o.folder = rig_jobs;
	if (store_open(&so, &rig_store, &e) < 0 || web_open(&o, &rig_web, &e) < 0 ||
	    web_start(rig_web, rig_store, &e) < 0)
		fail_msg("%s", e.text);
	rig_port = web_port(rig_web);
}

static inline void rig_stop(void)
{
	assert_true(web_stop(rig_web));
	web_free(rig_web);
	store_close(rig_store);
}

/* From now on answers have name instead of this text. */
static inline void rig_hide(const char *what, const char *name)
{
	assert_true(rig_n_hidden < RIG_HIDDEN_MAX);
	snprintf(rig_hidden[rig_n_hidden].what, sizeof(rig_hidden->what), "%s", what);
	snprintf(rig_hidden[rig_n_hidden++].name, sizeof(rig_hidden->name), "%s", name);
}

/* ---- talking ---- */

static inline int rig_connect(void)
{
	const struct timeval patience = { .tv_sec = 60 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)rig_port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(rig_port ? AF_INET : AF_UNIX, SOCK_STREAM, 0);

	memcpy(at.sun_path, rig_socket, strnlen(rig_socket, sizeof(at.sun_path) - 1));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(rig_port ? connect(fd, (struct sockaddr *)&to, sizeof(to)) :
			 connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static inline void rig_send(int fd, struct str bytes)
{
	while (bytes.n) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		bytes = (struct str){ bytes.p + n, bytes.n - (size_t)n };
	}
}

/* Signals that are meant for other threads of the process interrupt it, too. */
static inline ssize_t rig_read(int fd, char *to, size_t room)
{
	ssize_t got;

	do
		got = read(fd, to, room);
	while (got < 0 && errno == EINTR);
	return got;
}

/* All that comes until the connection ends; it is closed then. */
static inline void rig_rest(int fd, struct buf *out)
{
	char part[65536];
	ssize_t got;

	while ((got = rig_read(fd, part, sizeof(part))) > 0)
		buf_add(out, part, (size_t)got);
	if (got < 0)
		fail_msg("the answer ends with: %s", strerror(errno));
	buf_add_text(out, "");
	close(fd);
}

/* The bytes of a request. Without a header Host one is added. */
static inline struct buf rig_bytes(const struct rig_request *r)
{
	struct str rest = str_of(r->head), line = str_cut(&rest, '\n');
	bool is_form = r->body && strncmp(r->body, "--", 2) == 0;
	struct buf out = { 0 }, body = { 0 };

	for (const char *p = r->body ? r->body : ""; *p; p++) {
		if (is_form && *p == '\n')
			buf_add_char(&body, '\r');
		buf_add_char(&body, *p == '\'' ? '"' : *p);
	}
	buf_printf(&out, "%.*s HTTP/1.1\r\nConnection: close\r\n", (int)line.n, line.p);
	if (!strcasestr(r->head, "\nhost:"))
		buf_printf(&out, "Host: 127.0.0.1:%u\r\n", rig_port);
	while (rest.n) {
		line = str_cut(&rest, '\n');
		buf_printf(&out, "%.*s\r\n", (int)line.n, line.p);
	}
	if (r->body && !strcasestr(r->head, "\ncontent-type:"))
		buf_printf(&out, "Content-Type: %s\r\n", is_form ? "multipart/form-data; boundary=x" :
			   "application/json");
	if (r->body && !strcasestr(r->head, "\ncontent-length:") &&
	    !strcasestr(r->head, "\ntransfer-encoding:"))
		buf_printf(&out, "Content-Length: %zu\r\n", body.len);
	buf_add_text(&out, "\r\n");
	buf_add_str(&out, buf_str(&body));
	buf_release(&body);
	return out;
}

/* A chunked body becomes what it holds. */
static inline void rig_unchunk(struct buf *reply)
{
	char *at = strstr(reply->data, "\r\n\r\n");
	struct buf out = { 0 };
	unsigned long n;

	if (!at || !strcasestr(reply->data, "transfer-encoding: chunked"))
		return;
	at += 4;
	buf_add(&out, reply->data, (size_t)(at - reply->data));
	while ((n = strtoul(at, &at, 16)) > 0) {
		buf_add(&out, at + 2, n);
		at += 2 + n + 2;
	}
	buf_release(reply);
	*reply = out;
}

/* What one request is answered, head and body. */
static inline struct buf rig_ask(const char *head, const char *body)
{
	const struct rig_request r = { head, body };
	struct buf bytes = rig_bytes(&r), reply = { 0 };
	int fd = rig_connect();

	rig_send(fd, buf_str(&bytes));
	rig_rest(fd, &reply);
	if (!strstr(reply.data ? reply.data : "", "\r\n\r\n"))
		fail_msg("%s %s: '%s'", head, body ? body : "", reply.data ? reply.data : "");
	rig_unchunk(&reply);
	buf_release(&bytes);
	return reply;
}

/* ---- comparing ---- */

/* What follows every occurrence of key up to one of the characters of end becomes #. */
static inline void rig_mask(struct buf *b, const char *key, const char *end)
{
	struct buf out = { 0 };
	const char *from = b->data, *at;

	while ((at = strstr(from, key))) {
		at += strlen(key);
		buf_add(&out, from, (size_t)(at - from));
		buf_add_char(&out, '#');
		from = at + strcspn(at, end);
	}
	buf_add_text(&out, from);
	buf_release(b);
	*b = out;
}

/* The text from the first occurrence of begin to the end of end after it is left out. */
static inline void rig_cut(struct buf *b, const char *begin, const char *end)
{
	char *from = strstr(b->data, begin), *to = from ? strstr(from, end) : NULL;

	if (!to)
		return;
	to += strlen(end);
	memmove(from, to, strlen(to) + 1);
	b->len = strlen(b->data);
}

/* What differs each time: moments, names that are made, and the length that they have. */
static inline void rig_clean(struct buf *b)
{
	static const char *const member[] = {
		"query_ms", "data_version", "received", "created", "ended", "uptime_s", "at", "now_s",
		"bytes_free", "owner", "store_silent_s",
	};
	static const char *const line[] = { "ETag: ", "Content-Length: ", "X-Request-Id: " };
	char key[64];

	snprintf(key, sizeof(key), "127.0.0.1:%u", rig_port);
	answers_mask(b, key, "HERE");
	snprintf(key, sizeof(key), "profllm_token_%u=", rig_port);
	answers_mask(b, key, "profllm_token_PORT=");
	for (size_t i = 0; i < COUNT(member); i++) {
		snprintf(key, sizeof(key), "\"%s\":", member[i]);
		rig_mask(b, key, ",}]\r\n");
	}
	for (size_t i = 0; i < COUNT(line); i++)
		rig_mask(b, line[i], "\r\n");
	for (size_t i = 0; i < rig_n_hidden; i++)
		answers_mask(b, rig_hidden[i].what, rig_hidden[i].name);
	answers_mask(b, "\r", "");
	rig_cut(b, "Date: ", "\n");
	rig_cut(b, "X-Request-Id: ", rig_is_whole ? "\n" : "Resource-Policy: same-origin\n");
}

/* The length that an answer announces is the one it has. */
static inline void rig_check_length(const char *head, const struct buf *reply)
{
	const char *end = strstr(reply->data, "\r\n\r\n");
	const char *length = strcasestr(reply->data, "\r\nContent-Length: ");

	if (strncmp(head, "HEAD", 4) == 0 || !length || length > end ||
	    strncmp(reply->data, "HTTP/1.1 304", 12) == 0)
		return;
	if (strtoul(length + 18, NULL, 10) != reply->len - (size_t)(end + 4 - reply->data))
		fail_msg("%s: %zu bytes of %.*s", head,
			 reply->len - (size_t)(end + 4 - reply->data), 40, length);
}

static inline void rig_check(const struct rig_request *r)
{
	struct buf reply = rig_ask(r->head, r->body), out = { 0 };

	rig_check_length(r->head, &reply);
	buf_printf(&out, "%s\n%s", r->head, reply.data);
	rig_clean(&out);
	answers_release(&out);
	buf_release(&reply);
}

static inline void rig_check_all(const struct rig_request *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rig_check(&r[i]);
}

/* The text of a member of an answer's object; in the arena. */
static inline const char *rig_member(const char *head, const char *body, const char *key,
				     struct arena *a)
{
	struct buf reply = rig_ask(head, body);
	struct json_value *v = NULL;

	if (json_parse(a, str_of(strstr(reply.data, "\r\n\r\n") + 4), &v, NULL) < 0 ||
	    !json_get(v, key))
		fail_msg("%s: %s", head, reply.data);
	buf_release(&reply);
	return arena_text(a, json_text(json_get(v, key), STR("")));
}
