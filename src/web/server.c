/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - HTTP by libmicrohttpd: connections, their requests and answers.
 *
 * The library's polling threads call on_request repeatedly for one request: once with its head,
 * then with pieces of the body, then with none. Then the connection is suspended until a worker has
 * answered, and on_request is called once more to send the answer.
 *
 * Every connection is in a list. One without a request is idle; when there are too many, the one
 * that has been idle longest is closed. Connections that send too slowly are closed, as are those
 * that take their answer too slowly: the kernel says how much they have taken, for it buffers
 * megabytes. When answers take up most of their memory budget, the slowest client with a large one
 * is closed. Closing is shutdown(), the library then does the rest; the list's lock ensures that
 * the descriptor has not been reused by then.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/library.h"
#include "core/base/mem.h"
#include "web/web_internal.h"

/* The functions in use: the library is loaded when first needed. */
#define MHD_CALLS(X) X(MHD_add_response_header) X(MHD_create_response_from_buffer) \
	X(MHD_create_response_from_callback) X(MHD_create_response_from_fd_at_offset64) \
	X(MHD_destroy_response) X(MHD_get_connection_info) X(MHD_lookup_connection_value_n) \
	X(MHD_queue_response) X(MHD_quiesce_daemon) X(MHD_resume_connection) \
	X(MHD_set_response_options) X(MHD_start_daemon) X(MHD_stop_daemon) \
	X(MHD_suspend_connection)
LIBRARY(lib, MHD_CALLS, "libmicrohttpd.so.12", "libmicrohttpd12");

#define POLLING_THREADS 2
#define CONNECTIONS_HARD_MAX (4 * WEB_CONNECTIONS_MAX)
#define IDLE_NS 75000000000           /* without a request; longer than a browser waits */
#define HEAD_NS 10000000000           /* for a first request's head */
#define SLOW_NS 10000000000           /* for a body, before its speed counts */
#define SLOW_BYTES_PER_S 1024
#define STREAM_BLOCK_BYTES 65536
/* Memory per connection: enough for a head that is too long, in order to refuse it. */
#define CONNECTION_BYTES (4 * WEB_HEAD_BYTES_MAX)
#define DROPPED_BYTES_MIN (1 << 20)   /* answers that may be broken off to make room */
#define DROPPED_NS 5000000000         /* once they have been sent for this long */
#define TRIM_NS 10000000000           /* between two times that freed memory is returned */
#define HEADERS_SECURITY \
	"default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; " \
	"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

enum line_state { LINE_IDLE, LINE_BODY, LINE_BUSY, LINE_SENDING };

/* One connection. */
struct line {
	struct line *next, *before;
	struct web *web;
	int fd;
	struct sockaddr_storage address; /* family 0: a Unix socket's client has none */
	char local[46];               /* the address that it is connected to; "": a Unix socket */
	bool is_local, is_fresh, is_closing;
	enum line_state state;
	struct exchange *asked;       /* with a worker: its connection is not polled; else NULL */
	int64_t since_ns;
	uint64_t bytes;               /* of the body so far */
	/*
	 * For an answer being sent: when it was last checked (on a Unix socket: when something
	 * moved), and what had been taken and was left then.
	 */
	int64_t looked_ns, unread;
	uint64_t taken, taken_before;
	size_t held;                  /* memory that it keeps */
};

struct sleeper { struct MHD_Connection *connection; struct exchange *x; struct sleeper *next; };

struct web_carrier {
	struct web *web;
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock;
	struct line *first;
	size_t n_lines;
	pthread_mutex_t sleep_lock;
	struct sleeper *sleeping;     /* event streams without an event */
	int64_t trimmed_ns;           /* with the lock */
};

/* ---- connections ---- */

static void close_line(struct web *w, struct line *l)
{
	l->is_closing = true;
	shutdown(l->fd, SHUT_RDWR);
	atomic_fetch_add(&w->evicted, 1);
}

/* Closes the connection that has been idle longest; of one address, or of all. */
static void make_room(struct web_carrier *c, const struct line *newest, bool is_of_address)
{
	struct line *oldest = NULL;

	for (struct line *l = c->first; l; l = l->next)
		if (l != newest && !l->is_closing && l->state < LINE_BUSY &&
		    (!is_of_address || server_is_same_client(&l->address, &newest->address)) &&
		    (!oldest || l->since_ns < oldest->since_ns))
			oldest = l;
	if (oldest)
		close_line(c->web, oldest);
}

/* Both ends of a connection. A Unix socket has no addresses, and its clients are this machine's. */
static void find_addresses(struct line *l, const struct sockaddr *peer)
{
	struct sockaddr_storage own = { 0 };
	socklen_t n = sizeof(own);
	char text[46];

	if (peer && peer->sa_family == AF_INET)
		memcpy(&l->address, peer, sizeof(struct sockaddr_in));
	else if (peer && peer->sa_family == AF_INET6)
		memcpy(&l->address, peer, sizeof(struct sockaddr_in6));
	if (getsockname(l->fd, (struct sockaddr *)&own, &n) == 0)
		server_address_text(&own, l->local);
	server_address_text(&l->address, text);
	l->is_local = own.ss_family == AF_UNIX || auth_is_loopback(str_of(text));
}

static void line_begin(struct web_carrier *c, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *fd =
		lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *address =
		lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct line *l = mem_alloc(sizeof(*l));
	size_t alike = 0, alive = 0;

	*l = (struct line){ .web = c->web, .fd = fd->connect_fd, .since_ns = clock_mono_ns(),
			    .is_fresh = true };
	find_addresses(l, address ? address->client_addr : NULL);
	pthread_mutex_lock(&c->lock);
	for (struct line *o = c->first; o; o = o->next) {
		alive += !o->is_closing;
		alike += !o->is_closing && server_is_same_client(&o->address, &l->address);
	}
	if (!l->is_local && alike >= WEB_ADDRESS_CONNECTIONS_MAX)
		make_room(c, l, true);
	else if (alive >= WEB_CONNECTIONS_MAX)
		make_room(c, l, false);
	l->next = c->first;
	if (c->first)
		c->first->before = l;
	c->first = l;
	c->n_lines++;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_add(&c->web->open, 1);
	*context = l;
}

static void line_end(struct web_carrier *c, struct line *l)
{
	pthread_mutex_lock(&c->lock);
	if (l->before)
		l->before->next = l->next;
	else
		c->first = l->next;
	if (l->next)
		l->next->before = l->before;
	c->n_lines--;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_sub(&c->web->open, 1);
	free(l);
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		line_begin(self, connection, context);
	else if (*context)
		line_end(self, *context);
}

static struct line *line_of(struct MHD_Connection *connection)
{
	return lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static void line_is(struct MHD_Connection *connection, enum line_state state, uint64_t bytes)
{
	struct line *l = line_of(connection);
	struct web_carrier *c = l->web->carrier;

	pthread_mutex_lock(&c->lock);
	if (l->state != state) {
		l->state = state;
		l->since_ns = clock_mono_ns();
		l->is_fresh = false;
	}
	l->bytes = bytes;
	l->held = 0;
	pthread_mutex_unlock(&c->lock);
}

/* Before x is handed to a worker, and once it is answered or over (NULL). */
static void line_asks(struct MHD_Connection *connection, struct exchange *x)
{
	struct line *l = line_of(connection);
	struct web_carrier *c = l->web->carrier;

	pthread_mutex_lock(&c->lock);
	l->asked = x;
	pthread_mutex_unlock(&c->lock);
}

/* Tells the worker when the client has closed the connection. */
static void look_for_client(struct line *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLRDHUP };

	if (poll(&p, 1, 0) > 0)
		atomic_store(&l->asked->is_gone, true);
}

/* An event stream is as slow as its events, so it is not judged by speed. */
static void line_sends(struct MHD_Connection *connection, const struct exchange *x)
{
	struct line *l = line_of(connection);
	struct web_carrier *c = l->web->carrier;

	line_is(connection, x->answer.is_stream ? LINE_BUSY : LINE_SENDING, 0);
	pthread_mutex_lock(&c->lock);
	l->held = x->answer.body.cap;
	l->looked_ns = clock_mono_ns();
	l->unread = sock_unread(l->fd, &l->taken);
	l->taken_before = l->taken;
	pthread_mutex_unlock(&c->lock);
}

/* Of a Unix socket all that is known is whether anything moves between two ticks. */
static bool has_moved(struct line *l)
{
	uint64_t none;
	int64_t unread = sock_unread(l->fd, &none);
	bool has = unread <= 0 || unread != l->unread;

	l->unread = unread;
	return has;
}

/* Too little was taken for some time, although there was more to take. */
static bool reads_too_slowly(struct line *l, int64_t now_ns)
{
	int64_t took = now_ns - l->looked_ns, unread;
	uint64_t before = l->taken;
	bool is_unix = !*l->local;

	if (is_unix && has_moved(l) && now_ns > l->looked_ns)
		l->looked_ns = now_ns;
	if (is_unix || took < WEB_READ_SECONDS * 1000000000ll)
		return now_ns - l->looked_ns >= WEB_READ_SECONDS * 1000000000ll;
	unread = sock_unread(l->fd, &l->taken);
	l->looked_ns = now_ns;
	return unread > 0 &&
	       (double)(l->taken - before) < (double)took / 1e9 * WEB_READ_BYTES_PER_S;
}

static bool is_too_slow(struct line *l, int64_t now_ns)
{
	int64_t took = now_ns - l->since_ns;

	if (l->state == LINE_IDLE)
		return took > (l->is_fresh ? HEAD_NS : IDLE_NS);
	if (l->state == LINE_SENDING)
		return reads_too_slowly(l, now_ns);
	return l->state == LINE_BODY && took > SLOW_NS &&
	       (double)l->bytes < (double)took / 1e9 * SLOW_BYTES_PER_S;
}

/* Of the connections that have been receiving a large answer for a while, the slowest one. */
static struct line *slowest(struct web_carrier *c, int64_t now_ns, int64_t *closing)
{
	struct line *found = NULL;
	double least = 0;

	*closing = 0;
	for (struct line *l = c->first; l; l = l->next) {
		int64_t took = now_ns - l->since_ns;
		uint64_t taken;
		double speed;

		*closing += l->is_closing ? (int64_t)l->held : 0;
		if (l->is_closing || l->state != LINE_SENDING || l->held < DROPPED_BYTES_MIN ||
		    took < DROPPED_NS || sock_unread(l->fd, &taken) == 0)
			continue;
		speed = (double)(taken - l->taken_before) / (double)took;
		if (!found || speed < least) {
			found = l;
			least = speed;
		}
	}
	return found;
}

/* Frees memory for the next request. */
static void drop_slowest(struct web *w, int64_t now_ns)
{
	int64_t used = atomic_load(&w->answers.used), closing;
	struct line *l;

	if (used <= w->answers.max / 4 * 3)
		return;
	l = slowest(w->carrier, now_ns, &closing);
	if (!l || used - closing <= w->answers.max / 4 * 3)
		return;
	close_line(w, l);
	atomic_fetch_add(&w->dropped, 1);
}

void carrier_tick(struct web *w, int64_t now_ns)
{
	struct web_carrier *c = w->carrier;
	bool is_due;

	pthread_mutex_lock(&c->lock);
	for (struct line *l = c->first; l; l = l->next) {
		bool is_sending = l->state == LINE_SENDING;

		if (l->asked)
			look_for_client(l);
		if (l->is_closing || !is_too_slow(l, now_ns))
			continue;
		close_line(w, l);
		atomic_fetch_add(&w->slow, is_sending);
	}
	drop_slowest(w, now_ns);
	is_due = now_ns - c->trimmed_ns >= TRIM_NS;
	if (is_due)
		c->trimmed_ns = now_ns;
	pthread_mutex_unlock(&c->lock);
	if (is_due)
		malloc_trim(0);
}

void carrier_look(struct web *w)
{
	struct web_carrier *c = w->carrier;
	struct sleeper *s;

	pthread_mutex_lock(&c->sleep_lock);
	s = c->sleeping;
	c->sleeping = NULL;
	pthread_mutex_unlock(&c->sleep_lock);
	while (s) {
		struct sleeper *next = s->next;

		if (!atomic_load(&w->is_stopping))
			s->x->answer.look(s->x->answer.self);
		lib.MHD_resume_connection(s->connection);
		free(s);
		s = next;
	}
}

void carrier_resume(struct web *w, struct exchange *x)
{
	(void)w;
	lib.MHD_resume_connection(x->carrier);
}

/* ---- the answer ---- */

static ssize_t on_pull(void *self, uint64_t at, char *out, size_t room)
{
	struct exchange *x = self;
	struct web_answer *a = &x->answer;
	struct web_carrier *c = x->web->carrier;
	struct sleeper *s;
	long n;

	(void)at;
	if (a->is_stream && atomic_load(&x->web->is_stopping))
		return MHD_CONTENT_READER_END_OF_STREAM;
	n = a->pull(a->self, out, room);
	if (n > 0) {
		x->sent += (uint64_t)n;
		return n;
	}
	if (n != -2)
		return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM :
				MHD_CONTENT_READER_END_WITH_ERROR;
	s = mem_alloc(sizeof(*s));
	s->connection = x->carrier;
	s->x = x;
	lib.MHD_suspend_connection(x->carrier);
	pthread_mutex_lock(&c->sleep_lock);
	s->next = c->sleeping;
	c->sleeping = s;
	pthread_mutex_unlock(&c->sleep_lock);
	return 0;
}

static struct MHD_Response *make_response(struct exchange *x)
{
	struct web_answer *a = &x->answer;
	struct MHD_Response *r;

	if (a->pull) {
		r = lib.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES,
							  on_pull, x, NULL);
		/* Otherwise the library ends HEAD's answer as if it had chunks, which is a body. */
		if (r && strcmp(x->method, "HEAD") == 0)
			lib.MHD_set_response_options(r, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT,
						 MHD_RO_END);
		return r;
	}
	if (a->fd >= 0 && a->status != 304) {
		r = lib.MHD_create_response_from_fd_at_offset64(x->file_bytes, a->fd, x->file_at);
		if (r) {
			a->fd = -1; /* the response closes it */
			x->sent = x->file_bytes;
		}
		return r;
	}
	x->sent = a->body.len;
	return lib.MHD_create_response_from_buffer(a->body.len, a->body.data ? a->body.data : "",
					       MHD_RESPMEM_PERSISTENT);
}

static void add_headers(struct exchange *x, struct MHD_Response *r)
{
	const struct web_answer *a = &x->answer;
	bool has_policy = false;
	char number[24];

	for (const struct web_header *h = a->header; h; h = h->next) {
		has_policy |= strcmp(h->name, "Cache-Control") == 0;
		lib.MHD_add_response_header(r, h->name, h->value);
	}
	if (!has_policy)
		lib.MHD_add_response_header(r, "Cache-Control", *x->etag ? "no-cache" : "no-store");
	if (a->type && a->status != 304 && a->status != 204)
		lib.MHD_add_response_header(r, "Content-Type", a->type);
	if (x->is_gzip && a->status != 304)
		lib.MHD_add_response_header(r, "Content-Encoding", "gzip");
	snprintf(number, sizeof(number), "%llu", (unsigned long long)x->number);
	lib.MHD_add_response_header(r, "X-Request-Id", number);
	lib.MHD_add_response_header(r, "Content-Security-Policy", HEADERS_SECURITY);
	lib.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	lib.MHD_add_response_header(r, "X-Frame-Options", "DENY");
	lib.MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	/* Popups may be messaged: a trace is handed to its viewer. */
	lib.MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin-allow-popups");
	lib.MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	if (atomic_load(&x->web->is_stopping) ||
	    (x->is_discarding && (x->head.length.p || x->head.is_chunked)))
		lib.MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result send_answer(struct exchange *x, struct MHD_Connection *connection)
{
	struct MHD_Response *r = make_response(x);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	add_headers(x, r);
	line_sends(connection, x);
	rc = lib.MHD_queue_response(connection, x->answer.status, r);
	lib.MHD_destroy_response(r);
	return rc;
}

/* ---- the request ---- */

static struct str header(struct MHD_Connection *c, const char *name)
{
	const char *value = NULL;
	size_t n = 0;

	if (lib.MHD_lookup_connection_value_n(c, MHD_HEADER_KIND, name, strlen(name), &value, &n) !=
	    MHD_YES || !value)
		return (struct str){ 0 };
	return (struct str){ value, n };
}

/* Determines the client: the connection's address, or the one that a proxy names. */
static void read_client(struct exchange *x, struct MHD_Connection *c)
{
	struct sockaddr_storage from = line_of(c)->address, named;
	bool is_proxy;

	server_address_text(&from, x->client);
	is_proxy = client_is_proxy(x->web, x->client);
	x->is_https = is_proxy && str_is(header(c, "X-Forwarded-Proto"), "https");
	if (is_proxy && client_forwarded(header(c, "X-Forwarded-For"), &named)) {
		from = named;
		server_address_text(&from, x->client);
	}
	if (!*x->client)
		snprintf(x->client, sizeof(x->client), "unix");
	x->user = server_client_key(&from);
}

static void read_head(struct exchange *x, struct MHD_Connection *c, const char *method)
{
	struct exchange_head *h = &x->head;

	x->carrier = c;
	x->method = arena_text(&x->arena, str_of(method));
	h->host = header(c, "Host");
	h->origin = header(c, "Origin");
	h->authorization = header(c, "Authorization");
	h->cookie = header(c, "Cookie");
	h->content_type = header(c, "Content-Type");
	h->content_encoding = header(c, "Content-Encoding");
	h->accept_encoding = header(c, "Accept-Encoding");
	h->if_none_match = header(c, "If-None-Match");
	h->range = header(c, "Range");
	h->if_range = header(c, "If-Range");
	h->length = header(c, "Content-Length");
	h->is_chunked = header(c, "Transfer-Encoding").p != NULL;
	snprintf(x->local, sizeof(x->local), "%s", line_of(c)->local);
	h->bytes = lib.MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
			   ->header_size;
	read_client(x, c);
}

static enum MHD_Result begin(struct exchange *x, struct MHD_Connection *c, const char *method)
{
	uint64_t length = 0;

	read_head(x, c, method);
	exchange_begin(x);
	line_is(c, LINE_BODY, 0);
	if (!x->is_answered)
		return MHD_YES;
	if (x->head.length.p)
		str_to_u64(x->head.length, &length);
	/* A short body is read first, so that the client then reads the answer. */
	if (length <= x->limit || x->not_before_ns)
		return MHD_YES;
	exchange_finish(x);
	return send_answer(x, c);
}

static enum MHD_Result end(struct exchange *x, struct MHD_Connection *c)
{
	line_is(c, LINE_BUSY, 0);
	if (!exchange_end(x))
		return send_answer(x, c);
	line_asks(c, x);
	lib.MHD_suspend_connection(c);
	if (x->is_answered)
		work_done(x->web, x);
	else if (!work_submit(x->web, x))
		lib.MHD_resume_connection(c);
	return MHD_YES;
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *n, void **context)
{
	struct exchange *x = *context;

	(void)self, (void)url, (void)version;
	if (!x)
		return MHD_NO;
	if (!x->has_begun)
		return begin(x, c, method);
	if (*n) {
		bool is_good = exchange_body(x, (struct str){ data, *n });

		*n = 0;
		line_is(c, LINE_BODY, x->received);
		return is_good ? MHD_YES : MHD_NO;
	}
	return x->has_ended ? send_answer(x, c) : end(x, c);
}

/* The target as sent: the library decodes it in place later. */
static void *on_target(void *self, const char *target, struct MHD_Connection *connection)
{
	struct web_carrier *c = self;

	(void)connection;
	return exchange_new(c->web, target);
}

static void on_completed(void *self, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode why)
{
	struct web_carrier *c = self;
	struct exchange *x = *context;
	unsigned status;

	if (!x)
		return;
	line_asks(connection, NULL);
	status = why == MHD_REQUEST_TERMINATED_COMPLETED_OK ? x->answer.status : 0;
	log_exchange(c->web, x, status);
	metrics_count(c->web, x, status, clock_mono_ns() - x->began_ns);
	exchange_free(x);
	*context = NULL;
	line_is(connection, LINE_IDLE, 0);
}

/* ---- its life ---- */

static void on_library_says(void *self, const char *fmt, va_list args)
{
	struct web *w = self;
	char text[512];

	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = 0;
	log_say(w, NULL, "warning", text);
}

void carrier_make(struct web *w)
{
	struct web_carrier *c = mem_alloc(sizeof(*c));

	c->web = w;
	w->carrier = c;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->sleep_lock, NULL);
}

int carrier_open(struct web *w, struct err *e)
{
	struct web_carrier *c = w->carrier;

	if (library_open(&lib_library, e) < 0)
		return -1;
	c->daemon = lib.MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
		NULL, NULL, on_request, c,
		MHD_OPTION_EXTERNAL_LOGGER, on_library_says, w,
		MHD_OPTION_LISTEN_SOCKET, w->listener,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned)POLLING_THREADS,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_HARD_MAX,
		/*
		 * None: carrier_tick finds slow connections. The library sees no byte for minutes
		 * while a slow line takes what the kernel holds.
		 */
		MHD_OPTION_CONNECTION_TIMEOUT, 0u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, c,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, c,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, c, MHD_OPTION_END);
	return c->daemon ? 0 : err_set(e, ERR_RUN, "the HTTP server cannot be started");
}

void carrier_quiesce(struct web *w)
{
	if (w->carrier && w->carrier->daemon)
		lib.MHD_quiesce_daemon(w->carrier->daemon);
}

void carrier_close(struct web *w)
{
	struct web_carrier *c = w->carrier;

	if (!c)
		return;
	/* Wake those that were suspended while their workers ended. */
	carrier_look(w);
	if (c->daemon)
		lib.MHD_stop_daemon(c->daemon);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->sleep_lock);
	free(c);
	w->carrier = NULL;
}
