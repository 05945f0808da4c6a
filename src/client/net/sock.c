/* SPDX-License-Identifier: Apache-2.0 */
/* sock.c - see sock.h. */
#include "client/net/sock.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long sock_stamps_on waits for the first stamp, one try a millisecond. */
#define STAMP_TRIES 100

/* ---- addresses ---- */

int sock_resolve(const char *host, uint16_t port, struct sock_addr addr[SOCK_ADDRS_MAX],
		 struct err *e)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char service[8];
	int count = 0;
	int rc;

	if (!host || !*host)
		return err_set(e, ERR_NET, "the host name is empty");
	snprintf(service, sizeof(service), "%u", (unsigned)port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		return err_set(e, ERR_HOST_UNKNOWN, "cannot resolve host '%s': %s", host,
			       rc == EAI_SYSTEM ? strerrordesc_np(errno) : gai_strerror(rc));
	for (const struct addrinfo *a = list; a && count < SOCK_ADDRS_MAX; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		assert(a->ai_addrlen <= sizeof(addr[count].storage));
		addr[count] = (struct sock_addr){ .len = a->ai_addrlen };
		memcpy(&addr[count].storage, a->ai_addr, a->ai_addrlen);
		count++;
	}
	freeaddrinfo(list);
	if (count == 0)
		return err_set(e, ERR_NET, "host '%s' has no IPv4 or IPv6 address", host);
	return count;
}

int sock_addr_unix(const char *path, struct sock_addr *addr, struct err *e)
{
	size_t n = strlen(path);

	*addr = (struct sock_addr){ 0 };
	if (n == 0)
		return err_set(e, ERR_USAGE, "the path of the Unix socket is empty");
	if (n >= sizeof(addr->local.sun_path))
		return err_set(e, ERR_USAGE, "Unix socket path '%s' is %zu bytes long, "
			       "the system's limit is %zu", path, n,
			       sizeof(addr->local.sun_path) - 1);
	addr->local.sun_family = AF_UNIX;
	memcpy(addr->local.sun_path, path, n + 1);
	addr->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	return 0;
}

void sock_addr_text(const struct sock_addr *addr, char *out, size_t cap)
{
	const struct sockaddr_in *in4 = (const void *)&addr->storage;
	const struct sockaddr_in6 *in6 = (const void *)&addr->storage;
	char host[INET6_ADDRSTRLEN];

	switch (addr->any.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
		snprintf(out, cap, "%s:%u", host, (unsigned)ntohs(in4->sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(out, cap, "[%s]:%u", host, (unsigned)ntohs(in6->sin6_port));
		break;
	case AF_UNIX:
		snprintf(out, cap, "unix:%.*s", (int)sizeof(addr->local.sun_path),
			 addr->len > offsetof(struct sockaddr_un, sun_path) ?
			 addr->local.sun_path : "");
		break;
	default:
		snprintf(out, cap, "?");
	}
}

/* ---- opening ---- */

static void stamps_enable(int fd)
{
	int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

	/* Refusal is not an error: reads then come without a stamp and are counted. */
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

/* A socket for addr's family, TCP_NODELAY set; -1 with errno and e. */
static int sock_open(const struct sock_addr *addr, struct err *e)
{
	int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		struct rlimit limit = { 0 };
		int saved = errno;

		getrlimit(RLIMIT_NOFILE, &limit);
		err_set(e, ERR_NET, "cannot open a socket: %s (limit %llu; raise it with "
			"ulimit -n)", strerrordesc_np(saved), (unsigned long long)limit.rlim_cur);
		errno = saved;
		return -1;
	}
	if (fd < 0) {
		int saved = errno;

		err_set(e, ERR_NET, "cannot open a socket: %s", strerrordesc_np(saved));
		errno = saved;
		return -1;
	}
	if (addr->any.sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Closes fd, keeps errno, and reports what failed for which address. */
static int sock_fail(int fd, const char *what, const struct sock_addr *addr, struct err *e)
{
	char text[sizeof(addr->local.sun_path) + 8];
	int saved = errno;

	sock_close(fd);
	sock_addr_text(addr, text, sizeof(text));
	err_set(e, ERR_NET, "cannot %s %s: %s", what, text, strerrordesc_np(saved));
	errno = saved;
	return -1;
}

int sock_addr_own(const char *text, struct sock_addr *addr, struct err *e)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;

	if (!*text || getaddrinfo(text, NULL, &hints, &found) != 0)
		return err_set(e, ERR_USAGE, "expected an IPv4 or IPv6 address of this machine, got "
			       "'%.100s'", text);
	*addr = (struct sock_addr){ .len = found->ai_addrlen };
	memcpy(&addr->storage, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* The port is chosen when the peer is known: one port serves connections to several peers. */
static int bind_own(int fd, const struct sock_addr *own)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, &own->any, own->len);
}

int sock_try_own(const struct sock_addr *own, struct err *e)
{
	int fd = sock_open(own, e);

	if (fd < 0)
		return -1;
	if (bind_own(fd, own) < 0)
		return sock_fail(fd, "connect from", own, e);
	sock_close(fd);
	return 0;
}

int sock_connect(const struct sock_addr *addr, bool is_stamped, struct err *e)
{
	return sock_connect_from(NULL, addr, is_stamped, e);
}

int sock_connect_from(const struct sock_addr *own, const struct sock_addr *addr, bool is_stamped,
		      struct err *e)
{
	int fd = sock_open(addr, e), one = 1;

	if (fd < 0)
		return -1;
	if (own && bind_own(fd, own) < 0)
		return sock_fail(fd, "connect from", own, e);
	if (is_stamped && addr->any.sa_family != AF_UNIX)
		stamps_enable(fd);
	if (addr->any.sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_INQ, &one, sizeof(one));
	if (connect(fd, &addr->any, addr->len) < 0 && errno != EINPROGRESS && errno != EINTR)
		return sock_fail(fd, "connect to", addr, e);
	return fd;
}

int sock_connect_result(int fd)
{
	int result = 0;
	socklen_t n = sizeof(result);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &n) < 0)
		return errno;
	return result;
}

bool sock_is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	return getpeername(fd, (struct sockaddr *)&peer, &n) == 0;
}

/* A socket file without a listener is left over from a process that was killed: remove it. */
static bool remove_stale(const struct sock_addr *addr)
{
	struct stat st;
	bool is_stale;
	int fd;

	if (lstat(addr->local.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	is_stale = connect(fd, &addr->any, addr->len) < 0 && errno == ECONNREFUSED;
	sock_close(fd);
	return is_stale && unlink(addr->local.sun_path) == 0;
}

int sock_listen(struct sock_addr *addr, int backlog, struct err *e)
{
	int fd = sock_open(addr, e);
	int one = 1;
	int rc;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	rc = bind(fd, &addr->any, addr->len);
	if (rc < 0 && errno == EADDRINUSE && addr->any.sa_family == AF_UNIX) {
		if (remove_stale(addr))
			rc = bind(fd, &addr->any, addr->len);
		else
			errno = EADDRINUSE;
	}
	if (rc < 0 || listen(fd, backlog) < 0)
		return sock_fail(fd, "listen on", addr, e);
	if (addr->any.sa_family != AF_UNIX) {
		addr->len = sizeof(addr->storage);
		if (getsockname(fd, &addr->any, &addr->len) < 0)
			return sock_fail(fd, "read the bound address of", addr, e);
	}
	return fd;
}

/* A kernel without IPv6 has no listener there. */
static int try_family(int family, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, error = 0, rc;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? 0 : errno;
	/* As servers do: connections that are over do not count, sockets that listen do. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		rc = bind(fd, (const struct sockaddr *)&v6, sizeof(v6));
	} else {
		rc = bind(fd, (const struct sockaddr *)&v4, sizeof(v4));
	}
	if (rc < 0 || listen(fd, 1) < 0)
		error = errno;
	close(fd);
	return family == AF_INET6 && error == EADDRNOTAVAIL ? 0 : error;
}

int sock_try_port(uint16_t port)
{
	int error = try_family(AF_INET, port);

	return error ? error : try_family(AF_INET6, port);
}

int sock_accept(int listener, bool is_stamped)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	int fd = accept4(listener, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int one = 1;

	if (fd < 0 || peer.ss_family == AF_UNIX)
		return fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (is_stamped)
		stamps_enable(fd);
	return fd;
}

/* ---- moving bytes ---- */

ssize_t sock_recv(int fd, void *data, size_t cap, int64_t *stamp_ns)
{
	bool is_drained;

	return sock_recv_last(fd, data, cap, stamp_ns, &is_drained);
}

ssize_t sock_recv_last(int fd, void *data, size_t cap, int64_t *stamp_ns, bool *is_drained)
{
	/* Room for a message's three stamps (software, unused, hardware) and for TCP_INQ. */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(struct timespec)) +
					      CMSG_SPACE(sizeof(int))];
	struct iovec piece = { data, cap };
	struct msghdr msg = { .msg_iov = &piece, .msg_iovlen = 1,
			      .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(fd, &msg, 0);
	while (n < 0 && errno == EINTR);
	*stamp_ns = 0;
	*is_drained = false;
	if (n <= 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct timespec t;
		int unread; /* bytes; 1 for the end of the stream */

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
			memcpy(&t, CMSG_DATA(c), sizeof(t));
			*stamp_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
		} else if (c->cmsg_level == IPPROTO_TCP && c->cmsg_type == TCP_CM_INQ) {
			memcpy(&unread, CMSG_DATA(c), sizeof(unread));
			*is_drained = unread == 0;
		}
	}
	return n;
}

ssize_t sock_send(int fd, struct str a)
{
	ssize_t n;

	do
		n = send(fd, a.p, a.n, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

/* ---- process-wide ---- */

/* One byte from sender to receiver; true when it arrived with a stamp. */
static bool stamp_try(int sender, int receiver)
{
	struct pollfd wait = { .fd = receiver, .events = POLLIN };
	int64_t stamp_ns = 0;
	char byte;

	if (sock_send(sender, STR("x")) != 1 || poll(&wait, 1, STAMP_TRIES) != 1)
		return false;
	return sock_recv(receiver, &byte, 1, &stamp_ns) == 1 && stamp_ns != 0;
}

int sock_stamps_on(struct err *e)
{
	struct sock_addr addr = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *in4 = (void *)&addr.storage;
	struct pollfd wait = { .events = POLLIN };
	int listener = -1, sender = -1, receiver = -1;
	bool has_stamp = false;

	in4->sin_family = AF_INET;
	in4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = sock_listen(&addr, 1, e);
	if (listener < 0)
		goto done;
	sender = sock_connect(&addr, true, e);
	if (sender < 0)
		goto done;
	wait.fd = listener;
	if (poll(&wait, 1, STAMP_TRIES) == 1)
		receiver = sock_accept(listener, true);
	if (receiver < 0) {
		err_set(e, ERR_NET, "cannot open a loopback connection to test receive stamps");
		goto done;
	}
	for (int i = 0; i < STAMP_TRIES && !has_stamp; i++) {
		has_stamp = stamp_try(sender, receiver);
		if (!has_stamp)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	if (!has_stamp) {
		err_set(e, ERR_NET, "the kernel gave no receive stamp within %d ms",
			STAMP_TRIES);
		sock_close(receiver);
		receiver = -1;
	}
done:
	sock_close(sender);
	sock_close(listener);
	return receiver;
}

size_t sock_raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = { limit.rlim_max, limit.rlim_max };

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	return (size_t)limit.rlim_cur;
}

void sock_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void sock_reset(int fd)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}
