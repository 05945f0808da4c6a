/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.c - whether io_uring would make the simulator's events cheaper: it hands many sends to the
 * kernel in one system call. A server that only sends, 1,000 streams of 100 events a second, to the
 * reader of bench/sim: by send(), and by one io_uring_enter() for each batch. A batch leaves when
 * its last event is due, so its first one is late; the simulator could not do that and stay exact.
 *
 * The ring is made by its system calls, without a library. Where the kernel refuses it, those
 * figures are left out.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "kit/kit.h"

#define STREAMS 1000
#define EVENTS 200
#define EVENT_BYTES 261
#define INTERVAL_NS 10000
#define WAIT_STEP_NS 20000 /* a longer step was interrupted: it was not all CPU time */
#define REQUEST_BYTES 4096

static const unsigned batches[] = { 1, 8, 64 };
#define BATCH_MAX 64

struct ring {
	int fd;
	unsigned *sq_tail, *sq_array, *cq_head, *cq_tail;
	unsigned sq_mask, cq_mask;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
};

static void *map(int fd, size_t bytes, off_t what)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
}

static int ring_open(struct ring *r, struct err *e)
{
	struct io_uring_params p = { 0 };
	char *sq, *cq;

	r->fd = (int)syscall(SYS_io_uring_setup, BATCH_MAX, &p);
	if (r->fd < 0)
		return err_set(e, ERR_RUN, "io_uring is not to be had: %s", strerror(errno));
	sq = map(r->fd, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = map(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqe), IORING_OFF_CQ_RING);
	r->sqe = map(r->fd, p.sq_entries * sizeof(*r->sqe), IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)r->sqe == MAP_FAILED) {
		close(r->fd);
		return err_set(e, ERR_RUN, "io_uring cannot be mapped: %s", strerror(errno));
	}
	r->sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
	r->sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
	r->sq_mask = *(unsigned *)(void *)(sq + p.sq_off.ring_mask);
	r->cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
	r->cq_mask = *(unsigned *)(void *)(cq + p.cq_off.ring_mask);
	r->cqe = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
	return 0;
}

static const char event[EVENT_BYTES];

/* One event on each of n connections, in one system call. False: not all were sent whole. */
static bool ring_send(struct ring *r, const int *fd, unsigned n)
{
	unsigned tail = *r->sq_tail, head = *r->cq_head, end;
	bool is_sent = true;

	for (unsigned i = 0; i < n; i++, tail++) {
		unsigned k = tail & r->sq_mask;

		r->sqe[k] = (struct io_uring_sqe){ .opcode = IORING_OP_SEND, .fd = fd[i],
			.addr = (uintptr_t)event, .len = EVENT_BYTES,
			.msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT };
		r->sq_array[k] = k;
	}
	__atomic_store_n(r->sq_tail, tail, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != (long)n)
		return false;
	end = __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
	for (; head != end; head++)
		is_sent = is_sent && r->cqe[head & r->cq_mask].res == EVENT_BYTES;
	__atomic_store_n(r->cq_head, head, __ATOMIC_RELEASE);
	return is_sent;
}

static bool plain_send(const int *fd, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (send(fd[i], event, EVENT_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) != EVENT_BYTES)
			return false;
	return true;
}

/* What the sends of a whole run cost, in ns of CPU time without waiting; 0: one failed. */
static int64_t send_all(struct ring *ring, const int *fd, unsigned events, unsigned batch)
{
	int64_t next = clock_mono_ns(), now = next, before, waited = 0;
	int64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned k = 0; k < events; k++)
		for (unsigned i = 0; i < STREAMS; i += batch) {
			unsigned n = STREAMS - i < batch ? STREAMS - i : batch;

			next += (int64_t)n * INTERVAL_NS;
			while (now < next) {
				before = now;
				now = clock_mono_ns();
				waited += now - before < WAIT_STEP_NS ? now - before : 0;
			}
			if (!(ring ? ring_send(ring, fd + i, n) : plain_send(fd + i, n)))
				return 0;
			now = clock_mono_ns();
		}
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - from - waited;
}

/* In a process of its own: takes all connections and their requests, then sends. */
__attribute__((noreturn))
static void serve(int listener, struct ring *ring, unsigned events, unsigned batch, int64_t *cpu_ns)
{
	static int fd[STREAMS];
	char request[REQUEST_BYTES];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_pin_server();
	for (unsigned i = 0; i < STREAMS; i++)
		while ((fd[i] = sock_accept(listener, false)) < 0)
			;
	for (unsigned i = 0; i < STREAMS; i++)
		while (recv(fd[i], request, sizeof(request), MSG_DONTWAIT) < 0)
			;
	*cpu_ns = send_all(ring, fd, events, batch);
	pause();
	_exit(0);
}

static int run(struct ring *ring, unsigned events, unsigned batch, int64_t *cpu_ns, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	socklen_t n = sizeof(addr[0].storage);
	struct raw_spec raw = { .connections = STREAMS, .requests = STREAMS,
				.answer_bytes = (uint64_t)events * EVENT_BYTES };
	struct raw_result got;
	struct child child = { 0 };
	int listener, rc;

	if (sock_resolve("127.0.0.1", 0, addr, e) < 0)
		return -1;
	listener = sock_listen(&addr[0], 16384, e);
	if (listener < 0 || getsockname(listener, &addr[0].any, &n) < 0)
		return -1;
	raw.port = ntohs(((struct sockaddr_in *)&addr[0].storage)->sin_port);
	*cpu_ns = 0;
	child.pid = fork();
	if (child.pid == 0)
		serve(listener, ring, events, batch, cpu_ns);
	rc = child.pid < 0 ? err_set(e, ERR_RUN, "cannot start the server: %s", strerror(errno))
			   : raw_run(&raw, &got, e);
	for (int i = 0; rc == 0 && i < 1000 && *(volatile int64_t *)cpu_ns == 0; i++)
		usleep(1000);
	child_stop(&child, NULL);
	sock_close(listener);
	return rc < 0 || *cpu_ns ? rc : err_set(e, ERR_RUN, "a send was cut short");
}

int main(int argc, char **argv)
{
	int64_t *cpu_ns = mmap(NULL, sizeof(*cpu_ns), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static struct bench b;
	struct err e = { 0 }, refused = { 0 };
	struct ring ring;
	int rc = bench_begin(&b, "uring", argc, argv, &e);
	bool has_ring = rc == 0 && ring_open(&ring, &refused) == 0;
	const unsigned events = b.is_quick ? EVENTS / 20 : EVENTS;

	if (rc == 0 && !has_ring)
		fprintf(stderr, "bench/uring: %s\n", refused.text);
	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (unsigned i = 0; rc == 0 && i < 2 * sizeof(batches) / sizeof(*batches); i++) {
			const bool is_ring = i % 2;

			if (is_ring && !has_ring)
				continue;
			rc = run(is_ring ? &ring : NULL, events, batches[i / 2], cpu_ns, &e);
			if (rc == 0)
				bench_add(&b, "us", (double)*cpu_ns / 1e3 / (STREAMS * events),
					  "CPU per event, %s, batches of %u", is_ring ? "io_uring" :
					  "send()", batches[i / 2]);
		}
	return bench_end(&b, &e);
}
