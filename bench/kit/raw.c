/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - the least a client can do: wait, receive, count bytes; see kit.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "kit/kit.h"

#define READY_MAX 256

#define LAST_CHUNK "0\r\n\r\n"
#define LAST_BYTES (sizeof(LAST_CHUNK) - 1)

/* One connection; its answer has `left` bytes still to come, or ends as `last` says. */
struct raw_peer { int fd; uint64_t left; char last[LAST_BYTES]; };

struct raw {
	const struct raw_spec *spec;
	struct raw_peer *peer;
	int epoll;
	uint32_t asked, done;
	struct buf request;
	struct buf copies; /* like ours: one for each request, so that none is warm in a cache */
};

static bool send_request(struct raw *r, int fd)
{
	const char *from = r->request.data;
	char body[200];

	if (r->spec->tokens) {
		int n = snprintf(body, sizeof(body), "{\"model\":\"sim\",\"prompt\":\"question %u\","
				 "\"max_tokens\":%u,\"ignore_eos\":true,\"stream\":true}", r->asked,
				 r->spec->tokens);

		buf_reset(&r->request);
		buf_printf(&r->request, "POST /v1/completions HTTP/1.1\r\nHost: b\r\nContent-Type: "
			   "application/json\r\nContent-Length: %d\r\n\r\n%s", n, body);
		from = r->request.data;
	}
	if (r->spec->is_like_ours)
		from = r->copies.data + r->request.len * (r->asked - 1);
	return send(fd, from, r->request.len, MSG_NOSIGNAL) == (ssize_t)r->request.len;
}

static int ask(struct raw *r, struct raw_peer *p, struct err *e)
{
	if (r->asked == r->spec->requests)
		return 0;
	r->asked++;
	p->left = r->spec->answer_bytes;
	if (!send_request(r, p->fd))
		return err_set(e, ERR_NET, "the raw reader cannot send: %s", strerror(errno));
	return 0;
}

static int open_all(struct raw *r, struct err *e)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(r->spec->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (uint32_t i = 0; i < r->spec->connections; i++) {
		struct raw_peer *p = &r->peer[i];
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };
		int on = 1, flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

		p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (r->spec->is_like_ours)
			setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
		if (connect(p->fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		    epoll_ctl(r->epoll, EPOLL_CTL_ADD, p->fd, &ev) < 0)
			return err_set(e, ERR_NET, "the raw reader cannot connect: %s",
				       strerror(errno));
	}
	return 0;
}

/* Whether the answer's last chunk is there, with these bytes. */
static bool is_last(struct raw_peer *p, const char *data, size_t n)
{
	size_t fresh = n < LAST_BYTES ? n : LAST_BYTES;

	memmove(p->last, p->last + fresh, LAST_BYTES - fresh);
	memcpy(p->last + LAST_BYTES - fresh, data + n - fresh, fresh);
	return memcmp(p->last, LAST_CHUNK, LAST_BYTES) == 0;
}

static int receive(struct raw *r, struct raw_peer *p, struct raw_result *out, struct err *e)
{
	static char data[65536];
	int64_t stamp;
	ssize_t got = r->spec->is_like_ours ? sock_recv(p->fd, data, sizeof(data), &stamp)
					    : recv(p->fd, data, sizeof(data), MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0 || (!r->spec->tokens && (uint64_t)got > p->left))
		return err_set(e, ERR_NET, "the server's answer is not what was asked for");
	out->reads++;
	p->left -= (uint64_t)got;
	if (r->spec->tokens ? !is_last(p, data, (size_t)got) : p->left > 0)
		return 0;
	r->done++;
	return ask(r, p, e);
}

static int drain(struct raw *r, struct raw_result *out, struct err *e)
{
	struct epoll_event ev[READY_MAX];

	for (uint32_t i = 0; i < r->spec->connections; i++)
		if (ask(r, &r->peer[i], e) < 0)
			return -1;
	while (r->done < r->spec->requests) {
		int n = epoll_wait(r->epoll, ev, READY_MAX, 10000);

		if (n <= 0)
			return err_set(e, ERR_NET, "the canned server fell silent");
		for (int i = 0; i < n; i++)
			if (receive(r, ev[i].data.ptr, out, e) < 0)
				return -1;
	}
	return 0;
}

int raw_run(const struct raw_spec *spec, struct raw_result *out, struct err *e)
{
	struct raw r = { .spec = spec, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	int64_t wall, cpu;
	int rc;

	*out = (struct raw_result){ 0 };
	r.peer = mem_array(spec->connections, sizeof(*r.peer));
	buf_printf(&r.request, "POST / HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", spec->body_bytes);
	for (size_t i = 0; i < spec->body_bytes; i++)
		buf_add_char(&r.request, 'x');
	for (uint64_t i = 0; spec->is_like_ours && i < spec->requests; i++)
		buf_add(&r.copies, r.request.data, r.request.len);
	rc = open_all(&r, e);
	wall = clock_mono_ns();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (rc == 0)
		rc = drain(&r, out, e);
	out->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	out->wall_ns = clock_mono_ns() - wall;
	for (uint32_t i = 0; i < spec->connections; i++)
		close(r.peer[i].fd);
	close(r.epoll);
	free(r.peer);
	buf_release(&r.request);
	buf_release(&r.copies);
	return rc;
}
