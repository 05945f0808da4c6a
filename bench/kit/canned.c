/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canned.c - the server of canned answers; see kit.h.
 *
 * Only as much HTTP as our own clients need: a head, Content-Length bytes, no
 * pipelining. A connection is one struct found by its descriptor.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "kit/kit.h"

#define EVENT_BYTES 261    /* what vLLM sends for one token of a completion */
#define FDS_MAX 65536
#define READY_MAX 256
#define REQUEST_BYTES 65536
#define SPIN_NS 1000000 /* awake that long after a request: waking it would be the client's cost */

struct peer {
	size_t got;        /* bytes of the request so far */
	size_t want;       /* whole request; 0: the head is not complete yet */
	uint32_t left;     /* events still to send */
	size_t at;         /* bytes already sent of the piece being sent */
	bool is_open;      /* an answer is in progress */
	char *head;        /* of a request that came in pieces */
};

struct server {
	const struct canned_spec *spec;
	int listener, epoll;
	struct buf start, events, tail, whole;
	struct peer *peer;
	int *open;         /* descriptors with an answer in progress, in turn */
	uint32_t n_open;
	bool is_flowing;
	int64_t next_ns, busy_ns;
	int64_t from_ns, waited_ns; /* CPU time at the first event; spent waiting since */
	int64_t *used_ns;           /* for canned_busy_ns */
	char read[REQUEST_BYTES];
};

static const char start_text[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
				 "transfer-encoding: chunked\r\n\r\n";

/* One event as one chunk; filler widens it to what vLLM's ids and names take. */
static void add_event(struct buf *out)
{
	static const char head[] = "data: {\"id\":\"cmpl-",
		tail[] = "\",\"object\":\"text_completion\",\"created\":1754000000,"
			 "\"model\":\"canned\",\"choices\":[{\"index\":0,\"text\":\" token\","
			 "\"logprobs\":null,\"finish_reason\":null,\"stop_reason\":null}],"
			 "\"usage\":null}\n\n";
	size_t fill = EVENT_BYTES - (sizeof(head) - 1) - (sizeof(tail) - 1);

	buf_printf(out, "%x\r\n%s", (unsigned)EVENT_BYTES, head);
	for (size_t i = 0; i < fill; i++)
		buf_add_char(out, "0123456789abcdef"[i * 7 % 16]);
	buf_printf(out, "%s\r\n", tail);
}

static void add_tail(struct buf *out, uint32_t events)
{
	struct buf usage = { 0 };

	buf_printf(&usage, "data: {\"id\":\"cmpl-0\",\"choices\":[],\"usage\":{\"prompt_tokens\":16,"
		   "\"total_tokens\":%u,\"completion_tokens\":%u}}\n\n", events + 16, events);
	buf_printf(out, "%zx\r\n%s\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", usage.len, usage.data);
	buf_release(&usage);
}

size_t canned_event_bytes(void)
{
	struct buf one = { 0 };
	size_t n;

	add_event(&one);
	n = one.len;
	buf_release(&one);
	return n;
}

size_t canned_answer_bytes(uint32_t events)
{
	struct buf tail = { 0 };
	size_t n;

	add_tail(&tail, events);
	n = sizeof(start_text) - 1 + events * canned_event_bytes() + tail.len;
	buf_release(&tail);
	return n;
}

static void build(struct server *s)
{
	uint32_t per_send = s->spec->per_send;

	buf_add_text(&s->start, start_text);
	for (uint32_t i = 0; i < (per_send ? per_send : s->spec->events); i++)
		add_event(&s->events);
	add_tail(&s->tail, s->spec->events);
	if (per_send == 0) {
		buf_add_str(&s->whole, buf_str(&s->start));
		buf_add_str(&s->whole, buf_str(&s->events));
		buf_add_str(&s->whole, buf_str(&s->tail));
	}
}

/* Sends the rest of piece; true when all of it is gone. */
static bool send_piece(int fd, struct peer *p, struct str piece)
{
	ssize_t n = send(fd, piece.p + p->at, piece.n - p->at, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		p->at += (size_t)n;
	if (p->at < piece.n)
		return false;
	p->at = 0;
	return true;
}

static void answer(struct server *s, int fd, struct peer *p)
{
	if (s->whole.len) {
		/* Small against the socket's buffer: never cut short. */
		(void)send_piece(fd, p, buf_str(&s->whole));
		return;
	}
	(void)send_piece(fd, p, buf_str(&s->start));
	p->left = s->spec->events;
	p->is_open = true;
	s->open[s->n_open++] = fd;
	if (s->n_open >= s->spec->wait_for && !s->is_flowing) {
		s->is_flowing = true;
		s->next_ns = clock_mono_ns();
		s->from_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		s->waited_ns = 0;
	}
}

/* Head and body sizes of a request; 0 while the head is not complete. */
static size_t request_bytes(const char *text, size_t n)
{
	const char *end = memmem(text, n, "\r\n\r\n", 4), *length;
	size_t body = 0;

	if (!end)
		return 0;
	length = memmem(text, (size_t)(end - text), "Content-Length: ", 16);
	if (length)
		body = strtoul(length + 16, NULL, 10);
	return (size_t)(end - text) + 4 + body;
}

static void forget(struct server *s, int fd)
{
	struct peer *p = &s->peer[fd];

	for (uint32_t i = 0; p->is_open && i < s->n_open; i++)
		if (s->open[i] == fd)
			s->open[i--] = s->open[--s->n_open];
	free(p->head);
	*p = (struct peer){ 0 };
	close(fd);
}

static void receive(struct server *s, int fd)
{
	struct peer *p = &s->peer[fd];
	ssize_t n = recv(fd, s->read, sizeof(s->read), MSG_DONTWAIT);
	size_t all;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		forget(s, fd);
		return;
	}
	all = p->got + (size_t)n;
	if (p->want == 0 && p->got == 0) {
		p->want = request_bytes(s->read, all);
	} else if (p->want == 0 && all <= REQUEST_BYTES) {
		p->head = mem_grow(p->head, REQUEST_BYTES, 1);
		memcpy(p->head + p->got, s->read, (size_t)n);
		p->want = request_bytes(p->head, all);
	}
	if (p->want == 0 && p->got == 0) {
		p->head = mem_grow(p->head, REQUEST_BYTES, 1);
		memcpy(p->head, s->read, (size_t)n);
	}
	p->got = all;
	if (p->want && p->got >= p->want) {
		p->got = p->want = 0;
		answer(s, fd, p);
	}
}

static void accept_all(struct server *s)
{
	int fd;

	while ((fd = sock_accept(s->listener, false)) >= 0) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

		if (fd >= FDS_MAX || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
			close(fd);
	}
}

static void look(struct server *s, int timeout_ms)
{
	struct epoll_event ev[READY_MAX];
	int n = epoll_wait(s->epoll, ev, READY_MAX, timeout_ms);

	if (n > 0)
		s->busy_ns = clock_mono_ns();

	for (int i = 0; i < n; i++) {
		if (ev[i].data.fd == s->listener)
			accept_all(s);
		else
			receive(s, ev[i].data.fd);
	}
}

/* The next piece of the stream in turn. Returns false when its answer is complete. */
static bool flow(struct server *s, int fd)
{
	struct peer *p = &s->peer[fd];

	if (p->left == 0)
		return !send_piece(fd, p, buf_str(&s->tail));
	if (send_piece(fd, p, buf_str(&s->events)))
		p->left -= s->spec->per_send;
	return true;
}

#define WAIT_STEP_NS 20000 /* a longer step was interrupted: it was not all CPU time */

/* Polls until the next piece is due; looks at the descriptors until look_ns before that. */
static void wait_due(struct server *s, int64_t look_ns)
{
	int64_t now_ns = clock_mono_ns(), before_ns;

	while (now_ns < s->next_ns) {
		before_ns = now_ns;
		if (s->next_ns - now_ns > look_ns)
			look(s, 0);
		now_ns = clock_mono_ns();
		if (now_ns - before_ns < WAIT_STEP_NS)
			s->waited_ns += now_ns - before_ns;
	}
}

/* One piece on every open stream, each at its time. */
static void round_of_events(struct server *s)
{
	for (uint32_t i = 0; i < s->n_open;) {
		int fd = s->open[i];

		if (s->spec->interval_ns)
			wait_due(s, 200000);
		s->next_ns += s->spec->interval_ns;
		if (i < s->n_open && s->open[i] == fd && flow(s, fd)) {
			i++;
		} else if (i < s->n_open && s->open[i] == fd) {
			s->peer[fd].is_open = false;
			s->open[i] = s->open[--s->n_open];
		}
	}
	*s->used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->from_ns - s->waited_ns;
	s->next_ns += s->spec->round_ns;
	if (s->spec->round_ns)
		wait_due(s, 0);
	if (s->n_open == 0)
		s->is_flowing = false;
}

__attribute__((noreturn))
static void serve(int listener, const struct canned_spec *spec, int64_t *used_ns)
{
	static struct server s;
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = listener };

	s.spec = spec;
	s.used_ns = used_ns;
	s.listener = listener;
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	s.peer = mem_array(FDS_MAX, sizeof(*s.peer));
	s.open = mem_array(FDS_MAX, sizeof(*s.open));
	build(&s);
	epoll_ctl(s.epoll, EPOLL_CTL_ADD, listener, &ev);
	for (;;) {
		look(&s, s.is_flowing || clock_mono_ns() - s.busy_ns < SPIN_NS ? 0 : -1);
		if (s.is_flowing)
			round_of_events(&s);
	}
}

int canned_start(struct canned *c, const struct canned_spec *spec, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	socklen_t n = sizeof(addr[0].storage);
	int listener;

	*c = (struct canned){ 0 };
	if (sock_resolve("127.0.0.1", 0, addr, e) < 0)
		return -1;
	listener = sock_listen(&addr[0], 16384, e);
	if (listener < 0)
		return -1;
	if (getsockname(listener, &addr[0].any, &n) < 0) {
		sock_close(listener);
		return err_set(e, ERR_NET, "no port for the canned server: %s", strerror(errno));
	}
	c->port = ntohs(((struct sockaddr_in *)&addr[0].storage)->sin_port);
	snprintf(c->url, sizeof(c->url), "http://127.0.0.1:%u", c->port);
	c->busy_ns = mmap(NULL, sizeof(*c->busy_ns), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->busy_ns == MAP_FAILED) {
		c->busy_ns = NULL;
		sock_close(listener);
		return err_set(e, ERR_RUN, "no memory for the canned server: %s", strerror(errno));
	}
	fflush(NULL);
	c->child.pid = fork();
	if (c->child.pid < 0) {
		sock_close(listener);
		return err_set(e, ERR_RUN, "cannot start the canned server: %s", strerror(errno));
	}
	if (c->child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_pin_server();
		serve(listener, spec, c->busy_ns);
	}
	sock_close(listener);
	return 0;
}

int64_t canned_busy_ns(const struct canned *c)
{
	return *(volatile const int64_t *)c->busy_ns;
}

void canned_stop(struct canned *c, struct rusage *use)
{
	child_stop(&c->child, use);
	if (c->busy_ns)
		munmap(c->busy_ns, sizeof(*c->busy_ns));
	c->busy_ns = NULL;
}
