/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - requests to a dashboard on a port of loopback, each on a connection of its own. The
 * answer is all that the server sends: head, empty line, body.
 */
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/str.h"

static uint16_t ask_port;

static inline void ask_converse(const char *text, size_t n, struct buf *reply)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ask_port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char part[65536];
	ssize_t got;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	for (size_t at = 0; at < n; at += (size_t)got) {
		got = send(fd, text + at, n - at, MSG_NOSIGNAL);
		if (got <= 0)
			break;
	}
	while ((got = read(fd, part, sizeof(part))) > 0)
		buf_add(reply, part, (size_t)got);
	buf_add_text(reply, "");
	close(fd);
}

/* A request as "METHOD PATH BODY" with ' for "; lines of a form when the body begins with --. */
static inline void ask(const char *request, struct buf *reply)
{
	struct buf all = { 0 }, body = { 0 };
	struct str rest = str_of(request), method = str_cut(&rest, ' '), path = str_cut(&rest, ' ');
	bool is_form = str_starts(rest, STR("--"));

	for (size_t i = 0; i < rest.n; i++) {
		if (is_form && rest.p[i] == '\n')
			buf_add_char(&body, '\r');
		buf_add_char(&body, rest.p[i] == '\'' ? '"' : rest.p[i]);
	}
	buf_printf(&all, "%.*s %.*s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n", (int)method.n,
		   method.p, (int)path.n, path.p, ask_port);
	if (rest.n)
		buf_printf(&all, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			   is_form ? "multipart/form-data; boundary=x" : "application/json", body.len);
	buf_add_text(&all, "\r\n");
	buf_add_str(&all, buf_str(&body));
	ask_converse(all.data, all.len, reply);
	buf_release(&all);
	buf_release(&body);
}
