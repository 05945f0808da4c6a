/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup.c - from exec to the first request byte: `profllm bench serve` is
 * started against a socket of this program with the built-in tokenizer, one
 * random prompt and no ready check. "first byte" is the first byte of anything
 * (the question about the server's tokenizer comes before the load), "first
 * request" the first byte of the first request of the load.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

#define STARTS 15
#define STARTS_QUICK 2
#define WAIT_MS 10000

static const char absent[] = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

/* Accepts and reads until a request of the load comes; other questions get a 404. */
static int watch(int listener, int64_t *first_ns, int64_t *request_ns, struct err *e)
{
	struct pollfd p[16] = { { .fd = listener, .events = POLLIN } };
	nfds_t n = 1;
	char data[8192];

	*first_ns = 0;
	for (;;) {
		if (poll(p, n, WAIT_MS) <= 0)
			return err_set(e, ERR_RUN, "no request came within 10 s");
		for (nfds_t i = 1; i < n; i++) {
			ssize_t got;

			if (!p[i].revents)
				continue;
			got = recv(p[i].fd, data, sizeof(data), 0);
			if (got <= 0) {
				p[i].fd = -1;
				continue;
			}
			*request_ns = clock_mono_ns();
			if (*first_ns == 0)
				*first_ns = *request_ns;
			if (memmem(data, (size_t)got, "/completions", 12))
				return 0;
			if (send(p[i].fd, absent, sizeof(absent) - 1, MSG_NOSIGNAL) < 0)
				p[i].fd = -1;
		}
		if (p[0].revents && n < 16) {
			p[n].fd = accept(listener, NULL, NULL);
			p[n++].events = POLLIN;
		}
	}
}

static int start_once(const struct bench *b, int listener, const char *url, double *first_ms,
		      double *request_ms, struct err *e)
{
	const char *const argv[] = {
		b->binary, "bench", "serve", "--base-url", url, "--model", "sim",
		"--tokenizer", "sim", "--dataset-name", "random", "--num-prompts", "1",
		"--random-input-len", "128",
		"--random-output-len", "1", "--ready-check-timeout-sec", "0", NULL,
	};
	int64_t start = clock_mono_ns(), first_ns = 0, request_ns = 0;
	struct child child;
	int rc = child_exec(&child, argv, "/dev/null", e);

	if (rc == 0)
		rc = watch(listener, &first_ns, &request_ns, e);
	child_stop(&child, NULL);
	if (rc < 0)
		return -1;
	*first_ms = (double)(first_ns - start) / 1e6;
	*request_ms = (double)(request_ns - start) / 1e6;
	return 0;
}

static int listen_any(char *url, size_t cap, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	socklen_t n = sizeof(addr[0].storage);
	int fd;

	if (sock_resolve("127.0.0.1", 0, addr, e) < 0)
		return -1;
	fd = sock_listen(&addr[0], 64, e);
	if (fd >= 0 && getsockname(fd, &addr[0].any, &n) == 0)
		snprintf(url, cap, "http://127.0.0.1:%u",
			 ntohs(((struct sockaddr_in *)&addr[0].storage)->sin_port));
	return fd;
}

int main(int argc, char **argv)
{
	double first[STARTS], request[STARTS];
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "startup", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++) {
		size_t starts = b.is_quick ? STARTS_QUICK : STARTS;

		for (size_t i = 0; rc == 0 && i < starts; i++) {
			char url[64] = "";
			int fd = listen_any(url, sizeof(url), &e); /* a new one: it is empty */

			rc = fd < 0 ? -1 : start_once(&b, fd, url, &first[i], &request[i], &e);
			sock_close(fd);
		}
		if (rc < 0)
			break;
		stats_sort(first, starts);
		stats_sort(request, starts);
		figure_most(bench_add(&b, "ms", stats_median(first, starts), "exec to first byte"),
			    10);
		bench_add(&b, "ms", stats_median(request, starts),
			  "exec to first request of the load");
		bench_add(&b, "ms", first[starts - 1], "exec to first byte, slowest of %zu",
			  starts);
	}
	return bench_end(&b, &e);
}
