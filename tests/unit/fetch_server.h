/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_server.h - a server of canned answers on loopback, in a thread; include cmocka.h first.
 */
#pragma once
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/str.h"

#define ANSWERS_MAX 16

/* Answers request k with answer[k]; an empty one is silence, NULL ends the connection. */
struct server {
	int listener;
	unsigned short port;
	pthread_t thread;
	const char *answer[ANSWERS_MAX];
	struct buf asked; /* the heads of all requests */
	atomic_bool is_over;
	atomic_size_t answered; /* requests so far */
};

/* The head and, when it announces one that there is room for, the body. */
static inline bool is_whole(const char *head, size_t n)
{
	const char *end = strstr(head, "\r\n\r\n"), *length = strcasestr(head, "content-length:");
	size_t body = length && length < end ? strtoul(length + 15, NULL, 10) : 0;

	return end && (n >= (size_t)(end + 4 - head) + body || body > 2048);
}

static inline void *serve(void *self)
{
	struct server *s = self;
	char head[4096];

	for (size_t k = 0; k < ANSWERS_MAX;) {
		int c = accept(s->listener, NULL, NULL);
		size_t n = 0;
		ssize_t got;

		if (c < 0)
			break;
		while ((got = read(c, head + n, sizeof(head) - 1 - n)) > 0) {
			head[n += (size_t)got] = 0;
			if (is_whole(head, n))
				break;
		}
		if (n)
			buf_add(&s->asked, head, n);
		if (n && s->answer[k] && *s->answer[k])
			send(c, s->answer[k], strlen(s->answer[k]), MSG_NOSIGNAL);
		else if (n && s->answer[k])
			while (!atomic_load(&s->is_over))
				usleep(1000);
		k += n > 0;
		atomic_store(&s->answered, k);
		close(c);
	}
	return NULL;
}

static inline void server_start(struct server *s, const char *const *answer)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ANSWERS_MAX && answer[i]; i++)
		s->answer[i] = answer[i];
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &n), 0);
	s->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static inline void server_stop(struct server *s)
{
	atomic_store(&s->is_over, true);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	buf_release(&s->asked);
}

static inline size_t occurrences(const struct buf *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text->data; p && (p = strstr(p, what)); p++)
		n++;
	return n;
}

static inline void without_proxies(void)
{
	static const char *const name[] = { "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY" };

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		unsetenv(name[i]);
}
