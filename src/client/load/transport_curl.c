/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport_curl.c - the libcurl transport, for what the native client refuses: HTTP/2, SOCKS and
 * authenticated proxies, redirects.
 *
 * libcurl reads the sockets, so there are no kernel stamps: a stamp is taken when libcurl delivers
 * the first piece of a read. libcurl does not say which pieces came in one read, but those of one
 * read are adjacent in its buffer (HTTP/2 copies them, so there each piece counts as a read). A
 * head and what follows it have stamps of their own.
 *
 * libcurl may not be called from its own callbacks. What the driver starts or cancels from there
 * waits in a list until libcurl has returned; settle() then does it.
 *
 * A prepared request is HTTP/1.1 (serve/prepare.h). Its head is parsed here: the target becomes the
 * URL, the other lines libcurl's list of headers; the body is borrowed.
 */
#include <assert.h>
#define CURL_DISABLE_TYPECHECK /* its macros would hide the functions */
#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "client/http/head.h"
#include "client/http/response.h"
#include "client/load/curl_site.h"
#include "client/load/transport.h"
#include "client/net/loop.h"
#include "core/base/clock.h"
#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

/* The functions used, loaded on first use. */
#define CURL_CALLS(X) X(curl_easy_cleanup) X(curl_easy_getinfo) X(curl_easy_init) \
	X(curl_easy_setopt) X(curl_easy_strerror) X(curl_global_init) X(curl_multi_add_handle) \
	X(curl_multi_assign) X(curl_multi_cleanup) X(curl_multi_info_read) X(curl_multi_init) \
	X(curl_multi_remove_handle) X(curl_multi_setopt) X(curl_multi_socket_action) \
	X(curl_slist_append) X(curl_slist_free_all) X(curl_version_info)
LIBRARY(lib, CURL_CALLS, "libcurl.so.4", "libcurl4");

#define TRANSFERS_MAX (1u << 20)
#define REDIRECTS_MAX 10L
#define FOREVER_MS 0x7fffffffL /* libcurl's own limits must not strike before ours */
#define NO_SITE UINT16_MAX
/* Before this version libcurl cannot use a connection of HTTP/2 without TLS twice. */
#define REUSES_HTTP2 0x080000

/* A socket of libcurl's that the loop watches. */
struct curl_watch {
	struct watch watch; /* first: the loop gets back to us from it */
	struct client *client;
	struct curl_watch *next_free;
};

/* One exchange in progress, or an idle handle. */
struct transfer {
	struct timer deadline; /* first member */
	struct client *client;
	struct exchange *x;    /* NULL: idle, or given up from inside a callback */
	CURL *easy;
	struct curl_slist *headers;
	struct buf head;       /* the answer's head so far */
	struct buf url;
	struct transfer *next; /* in the list it is on: free, queued or dropped */
	struct transfer *sending_prev, *sending_next;
	uint64_t round;        /* number of the call into libcurl to which read_ns belongs */
	uintptr_t read_end;    /* where the last piece of that read ended */
	int64_t began_ns, read_ns;
	size_t body_bytes;     /* of the request */
	size_t head_bytes;     /* of the answer, trailers and other hops included */
	char message[CURL_ERROR_SIZE];
	struct err why;        /* set where a head is refused that libcurl would take */
	uint16_t site;         /* whose options the handle has */
	bool is_connected, is_sending, has_answer, is_head_whole, is_head_given;
};

struct site {
	struct curl_site text;
	struct curl_slist *resolve;
};

struct client {
	CURLM *multi;
	struct loop *loop;
	struct transport_opts opts;
	struct site *site;
	struct slab transfers, watches;
	struct transfer *free, *dropped;
	struct transfer *queue, **queue_end;
	struct transfer *sending;
	struct curl_watch *free_watches;
	/* libcurl's */
	struct timer_owner { struct timer timer; struct client *client; } tick;
	uint64_t round;
	bool is_inside, is_settling;
	struct transport_stats stats;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	lib.curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void settle(struct client *c);
static void end(struct transfer *t, enum fail_category category, const char *text);

/* Runs libcurl: for one socket, its timer or new transfers. */
static void enter(struct client *c, curl_socket_t fd, int events)
{
	int running;

	assert(!c->is_inside);
	c->is_inside = true;
	c->round++;
	lib.curl_multi_socket_action(c->multi, fd, events, &running);
	c->is_inside = false;
}

/* ---- what libcurl wants watched ---- */

static void on_ready(struct watch *w, uint32_t events)
{
	struct client *c = ((struct curl_watch *)w)->client;

	enter(c, w->fd, (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
			(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			(events & EPOLLERR ? CURL_CSELECT_ERR : 0));
	settle(c);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *at)
{
	struct client *c = self;
	struct curl_watch *w = at;
	uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
	struct transfer *t = NULL;
	struct err e;

	if (what == CURL_POLL_REMOVE && w) {
		loop_unwatch_foreign(c->loop, &w->watch);
		w->next_free = c->free_watches;
		c->free_watches = w;
	} else if (w && w->watch.events != events) {
		loop_rewatch(c->loop, &w->watch, events);
	}
	if (w || what == CURL_POLL_REMOVE)
		return 0;
	w = c->free_watches;
	if (w)
		c->free_watches = w->next_free;
	else
		w = slab_take(&c->watches, 1);
	assert(w); /* the slab reserves more than there can be descriptors */
	*w = (struct curl_watch){ .watch = { fd, events, on_ready }, .client = c };
	if (loop_watch(c->loop, &w->watch, &e) < 0) {
		w->next_free = c->free_watches;
		c->free_watches = w;
		/* Returning -1 would end all transfers. */
		lib.curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
		if (t && t->x)
			end(t, FAIL_CONNECT, e.text);
		return 0;
	}
	lib.curl_multi_assign(c->multi, fd, w);
	return 0;
}

static void on_tick(struct timer *t)
{
	struct client *c = ((struct timer_owner *)t)->client;

	enter(c, CURL_SOCKET_TIMEOUT, 0);
	settle(c);
}

static int on_timer(CURLM *multi, long timeout_ms, void *self)
{
	struct client *c = self;

	(void)multi;
	if (timeout_ms < 0)
		loop_timer_cancel(c->loop, &c->tick.timer);
	else
		loop_timer_set(c->loop, &c->tick.timer,
			       clock_mono_ns() + (int64_t)timeout_ms * 1000000);
	return 0;
}

/* ---- one transfer, as libcurl reports it ---- */

static void stop_sending(struct transfer *t)
{
	if (!t->is_sending)
		return;
	t->is_sending = false;
	if (t->sending_prev)
		t->sending_prev->sending_next = t->sending_next;
	else
		t->client->sending = t->sending_next;
	if (t->sending_next)
		t->sending_next->sending_prev = t->sending_prev;
	t->sending_prev = t->sending_next = NULL;
}

static void all_sent(struct transfer *t, int64_t now_ns)
{
	if (!t->is_sending)
		return;
	stop_sending(t);
	t->x->sink->on_sent(t->x, now_ns);
}

static void start_sending(struct transfer *t)
{
	struct client *c = t->client;

	if (t->is_sending)
		return;
	t->is_sending = true;
	t->sending_next = c->sending;
	if (c->sending)
		c->sending->sending_prev = t;
	c->sending = t;
}

/*
 * A connection is ready and the request is written next. A second call without an answer in
 * between: libcurl found a kept connection closed and tries again. After a redirect's answer it is
 * the next hop, which belongs to the same attempt.
 */
static int on_connected(void *self, char *to, char *from, int to_port, int from_port)
{
	struct transfer *t = self;
	struct exchange *x = t->x;
	int64_t now = clock_real_ns();
	long connects = 0;

	(void)to, (void)from, (void)to_port, (void)from_port;
	if (!x)
		return CURL_PREREQFUNC_ABORT;
	lib.curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
	if (connects && !t->is_connected) {
		x->connect_ns = t->began_ns;
		x->connected_ns = now;
	}
	t->client->stats.retries += t->is_connected && !t->has_answer;
	if (!t->is_connected || !t->has_answer) {
		x->attempts++;
		x->sink->on_send(x, now);
		start_sending(t);
	}
	if (!t->is_connected)
		loop_timer_set(t->client->loop, &t->deadline,
			       clock_mono_ns() + t->client->opts.request_timeout_ns);
	t->is_connected = true;
	t->has_answer = false;
	return CURL_PREREQFUNC_OK;
}

static void take_stamp(struct transfer *t)
{
	struct client *c = t->client;

	t->round = c->round;
	t->read_ns = clock_real_ns();
	c->stats.reads++;
	c->stats.reads_without_stamp++;
}

static int64_t stamp_of_head(struct transfer *t)
{
	if (t->round != t->client->round)
		take_stamp(t);
	t->read_end = UINTPTR_MAX;
	return t->read_ns;
}

static int64_t stamp_of(struct transfer *t, struct str piece)
{
	if (t->round != t->client->round || (uintptr_t)piece.p < t->read_end)
		take_stamp(t);
	t->read_end = (uintptr_t)piece.p + piece.n;
	return t->read_ns;
}

static unsigned status_of(const struct transfer *t)
{
	long status = 0;

	lib.curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return (unsigned)status;
}

/* False for a head that the native client refuses too. */
static bool give_head(struct transfer *t)
{
	struct str head = buf_str(&t->head);
	bool is_event_stream;
	long version = 0;

	lib.curl_easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
	t->client->stats.http2 += version == CURL_HTTP_VERSION_2_0;
	if (curl_head_read(head, &is_event_stream, &t->why) < 0)
		return false;
	t->is_head_given = true;
	t->x->sink->on_head(t->x, status_of(t), is_event_stream, head, 0, stamp_of_head(t));
	return true;
}

static bool is_followed(const struct transfer *t)
{
	return t->client->opts.is_redirected && status_of(t) / 100 == 3 &&
	       http_head_value(buf_str(&t->head), "Location").n;
}

static size_t on_header(char *data, size_t size, size_t n, void *self)
{
	struct transfer *t = self;
	struct str line = { data, size * n };

	if (!t->x)
		return 0;
	all_sent(t, stamp_of_head(t));
	t->has_answer = true;
	t->x->bytes_in += line.n;
	if (curl_head_add(&t->head, &t->head_bytes, line, t->is_head_given, &t->why) < 0)
		return 0;
	if (t->is_head_given)
		return line.n;
	t->is_head_whole = *data == '\r' || *data == '\n';
	if (!t->is_head_whole || status_of(t) / 100 == 1 || is_followed(t))
		return line.n;
	return give_head(t) && t->x ? line.n : 0;
}

static size_t on_bytes(char *data, size_t size, size_t n, void *self)
{
	struct transfer *t = self;
	struct str piece = { data, size * n };
	struct exchange *x = t->x;

	if (!x || (!t->is_head_given && !give_head(t)))
		return 0;
	if (t->x == x) { /* the head may have ended it */
		x->bytes_in += piece.n;
		x->sink->on_body(x, piece, 0, stamp_of(t, piece));
	}
	return t->x == x ? piece.n : 0;
}

/* ---- its beginning ---- */

static void set_tls(CURL *easy, const struct transport_opts *o)
{
	/* libcurl ignores the variable, which OpenSSL and so our own transport read. */
	const char *set = getenv("SSL_CERT_FILE");
	const char *ca = o->ca_file ? o->ca_file : set && *set ? set : NULL;

	lib.curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	lib.curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	lib.curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, o->is_insecure ? 0L : 1L);
	lib.curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, o->is_insecure ? 0L : 2L);
	lib.curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, o->is_insecure ? 0L : 1L);
	lib.curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, o->is_insecure ? 0L : 2L);
	if (ca) {
		lib.curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
		lib.curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, ca);
	}
	if (o->cert_file) {
		lib.curl_easy_setopt(easy, CURLOPT_SSLCERT, o->cert_file);
		lib.curl_easy_setopt(easy, CURLOPT_SSLKEY,
				     o->key_file ? o->key_file : o->cert_file);
	}
}

/* Options that never change for a handle. */
static void set_up(struct transfer *t)
{
	const struct transport_opts *o = &t->client->opts;
	CURL *easy = t->easy;

	set_tls(easy, o);
	lib.curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	lib.curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	lib.curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	lib.curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, o->is_redirected ? 1L : 0L);
	lib.curl_easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
	lib.curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	lib.curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	lib.curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, FOREVER_MS);
	lib.curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
	lib.curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, FOREVER_MS / 1000);
	lib.curl_easy_setopt(easy, CURLOPT_PIPEWAIT, o->is_http2 ? 1L : 0L);
	lib.curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->message);
	lib.curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	lib.curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
	lib.curl_easy_setopt(easy, CURLOPT_PREREQDATA, t);
	lib.curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	lib.curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	lib.curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
	lib.curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
}

static void set_site(struct transfer *t, uint16_t index)
{
	const struct site *site = &t->client->site[index];
	const struct curl_site *s = &site->text;
	bool is_http2 = t->client->opts.is_http2;
	bool is_once = is_http2 && !s->is_tls &&
		       lib.curl_version_info(CURLVERSION_NOW)->version_num < REUSES_HTTP2;

	t->site = index;
	lib.curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, is_once ? 1L : 0L);
	lib.curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, is_once ? 1L : 0L);
	lib.curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, !is_http2 ? (long)CURL_HTTP_VERSION_1_1
			 : s->is_tls ? (long)CURL_HTTP_VERSION_2TLS
				     : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	/* Without TLS a proxy could not recognise HTTP/2: use a tunnel. */
	lib.curl_easy_setopt(t->easy, CURLOPT_HTTPPROXYTUNNEL, is_http2 ? 1L : 0L);
	lib.curl_easy_setopt(t->easy, CURLOPT_PROXY, s->proxy);
	lib.curl_easy_setopt(t->easy, CURLOPT_NOPROXY, ""); /* exceptions were made before */
	lib.curl_easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, s->unix_path);
	lib.curl_easy_setopt(t->easy, CURLOPT_RESOLVE, site->resolve);
}

/* Passes header lines, except those that libcurl writes itself. */
static void take_headers(struct transfer *t, struct str lines, struct buf *scratch)
{
	struct str line;

	while (http_head_line(&lines, &line)) {
		struct str value = line, name = str_cut(&value, ':');

		if (str_eq_nocase(name, STR("Content-Length")))
			continue;
		buf_reset(scratch);
		buf_add_str(scratch, name);
		/* libcurl takes "Name:" as a wish to leave the header out. */
		buf_add_text(scratch, str_trim(value).n ? ": " : ";");
		buf_add_str(scratch, str_trim(value));
		t->headers = lib.curl_slist_append(t->headers, scratch->data);
	}
	t->headers = lib.curl_slist_append(t->headers, "Expect:");
}

static void set_request(struct transfer *t)
{
	struct curl_request r;
	struct buf scratch = { 0 };

	curl_request_split(t->x->request, &r);
	buf_reset(&t->url);
	if (*r.target.p == '/')
		buf_add_text(&t->url, t->client->site[t->x->endpoint].text.origin);
	buf_add_str(&t->url, r.target);
	take_headers(t, r.lines, &scratch);
	buf_release(&scratch);
	t->body_bytes = r.body.n;
	lib.curl_easy_setopt(t->easy, CURLOPT_URL, t->url.data);
	lib.curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	lib.curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r.body.n);
	lib.curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, r.body.p);
}

/* ---- its end ---- */

static void on_late(struct timer *timer);

static struct transfer *take_transfer(struct client *c)
{
	struct transfer *t = c->free;

	if (t) {
		c->free = t->next;
	} else {
		t = slab_take(&c->transfers, 1);
		assert(t);
		t->client = c;
		t->head.limit = HTTP_HEAD_BYTES_MAX;
		t->site = NO_SITE;
		t->deadline.on_time = on_late;
		t->easy = lib.curl_easy_init();
		assert(t->easy);
		set_up(t);
	}
	t->next = NULL;
	t->round = t->head_bytes = 0;
	t->is_connected = t->has_answer = t->is_head_whole = t->is_head_given = false;
	t->why.code = ERR_NONE;
	buf_reset(&t->head);
	*t->message = 0;
	return t;
}

/* Back to the handles that wait; a transfer that still ran is broken off. */
static void release(struct transfer *t)
{
	struct client *c = t->client;

	assert(!c->is_inside);
	loop_timer_cancel(c->loop, &t->deadline);
	stop_sending(t);
	lib.curl_multi_remove_handle(c->multi, t->easy);
	lib.curl_slist_free_all(t->headers);
	t->headers = NULL;
	t->next = c->free;
	c->free = t;
}

static void end(struct transfer *t, enum fail_category category, const char *text)
{
	struct exchange *x = t->x;
	char copy[sizeof(((struct err *)0)->text)];
	long connects = 0;

	snprintf(copy, sizeof(copy), "%s", text); /* may be in t */
	lib.curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connects);
	t->client->stats.connects += (uint64_t)connects;
	t->client->stats.connect_failures += category == FAIL_CONNECT || category == FAIL_TLS;
	if (!t->is_connected && !x->connect_ns)
		x->connect_ns = t->began_ns;
	t->x = NULL;
	x->connection = NULL;
	if (t->client->is_inside) { /* released once libcurl is left */
		stop_sending(t);
		t->next = t->client->dropped;
		t->client->dropped = t;
	} else {
		release(t);
	}
	x->sink->on_end(x, category, copy, clock_real_ns());
}

static void on_late(struct timer *timer)
{
	struct transfer *t = (struct transfer *)timer;
	const struct transport_opts *o = &t->client->opts;
	struct client *c = t->client;
	struct err e;

	if (t->is_connected)
		err_set(&e, ERR_NET, "no complete answer within %.6g s",
			(double)o->request_timeout_ns / 1e9);
	else
		err_set(&e, ERR_NET, "no connection within %.3g s",
			(double)o->connect_timeout_ns / 1e9);
	end(t, t->is_connected ? FAIL_TIMEOUT : FAIL_CONNECT, e.text);
	settle(c);
}

static enum fail_category category_of(const struct transfer *t, CURLcode code)
{
	switch (code) {
	case CURLE_SSL_CONNECT_ERROR: case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM: case CURLE_SSL_CACERT_BADFILE: case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR: case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_CLIENTCERT:
		return FAIL_TLS;
	case CURLE_COULDNT_RESOLVE_HOST: case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT: case CURLE_PROXY:
		return FAIL_CONNECT;
	case CURLE_UNSUPPORTED_PROTOCOL: case CURLE_WEIRD_SERVER_REPLY: case CURLE_HTTP2:
	case CURLE_TOO_MANY_REDIRECTS: case CURLE_BAD_CONTENT_ENCODING: case CURLE_WRITE_ERROR:
	case CURLE_URL_MALFORMAT:
		return FAIL_PROTOCOL;
	case CURLE_PARTIAL_FILE:
		return FAIL_TRUNCATED;
	case CURLE_RECV_ERROR:
		/* Also for framing that libcurl cannot read. */
		if (strstr(t->message, "chunked-encoding"))
			return FAIL_PROTOCOL;
		break;
	default:
		break;
	}
	return t->is_connected ? FAIL_RESET : FAIL_CONNECT;
}

/* Uses the native client's message where it has one for the same error. */
static const char *text_of(const struct transfer *t, CURLcode code)
{
	if (t->why.code != ERR_NONE)
		return t->why.text;
	if (code == CURLE_PARTIAL_FILE)
		return "the server closed the connection before the answer was complete";
	if (code == CURLE_GOT_NOTHING)
		return "the server closed the connection without an answer";
	if (code == CURLE_RECV_ERROR && t->has_answer && !strstr(t->message, "chunked-encoding"))
		return "connection lost while reading the answer";
	return *t->message ? t->message : lib.curl_easy_strerror(code);
}

static void finish(struct transfer *t, CURLcode code)
{
	all_sent(t, clock_real_ns());
	if (code != CURLE_OK) {
		end(t, category_of(t, code), text_of(t, code));
		return;
	}
	if (!t->is_head_given && !t->is_head_whole)
		end(t, FAIL_TRUNCATED, text_of(t, CURLE_PARTIAL_FILE));
	else if (!t->is_head_given && !give_head(t))
		end(t, FAIL_PROTOCOL, t->why.text);
	else
		end(t, FAIL_NONE, "");
}

/* ---- what waits until libcurl is left ---- */

static void note_sent(struct client *c)
{
	for (struct transfer *t = c->sending, *next; t; t = next) {
		curl_off_t sent = 0;

		next = t->sending_next;
		lib.curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
		if ((size_t)sent >= t->body_bytes)
			all_sent(t, clock_real_ns());
	}
}

static void take_ends(struct client *c)
{
	CURLMsg *message;
	int left;

	while ((message = lib.curl_multi_info_read(c->multi, &left))) {
		struct transfer *t;

		lib.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		if (message->msg == CURLMSG_DONE && t->x)
			finish(t, message->data.result);
	}
	while (c->dropped) {
		struct transfer *t = c->dropped;

		c->dropped = t->next;
		release(t);
	}
}

static bool start_queued(struct client *c)
{
	bool is_any = c->queue;

	while (c->queue) {
		struct transfer *t = c->queue;

		c->queue = t->next;
		t->next = NULL;
		if (lib.curl_multi_add_handle(c->multi, t->easy) != CURLM_OK)
			end(t, FAIL_CONNECT, "libcurl takes no more transfers");
	}
	c->queue_end = &c->queue;
	return is_any;
}

static void settle(struct client *c)
{
	if (c->is_settling || c->is_inside)
		return;
	c->is_settling = true;
	for (;;) {
		note_sent(c);
		take_ends(c);
		if (!start_queued(c))
			break;
		enter(c, CURL_SOCKET_TIMEOUT, 0);
	}
	c->is_settling = false;
}

/* ---- the hooks ---- */

static void curl_start(void *self, struct exchange *x)
{
	struct client *c = self;
	struct transfer *t = take_transfer(c);

	x->connection = t;
	x->attempts = 0;
	x->bytes_in = 0;
	x->connect_ns = x->connected_ns = 0;
	t->x = x;
	t->began_ns = clock_real_ns();
	loop_timer_set(c->loop, &t->deadline, clock_mono_ns() + c->opts.connect_timeout_ns);
	if (t->site != x->endpoint)
		set_site(t, x->endpoint);
	set_request(t);
	*c->queue_end = t;
	c->queue_end = &t->next;
	settle(c);
}

static void unqueue(struct client *c, struct transfer *t)
{
	struct transfer **at = &c->queue;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	if (c->queue_end == &t->next)
		c->queue_end = at;
}

static void curl_cancel(void *self, struct exchange *x)
{
	struct transfer *t = x->connection;

	assert(t && t->x == x);
	unqueue(self, t);
	end(t, FAIL_CANCELLED, "cancelled");
	settle(self);
}

static void curl_poll(void *self, int64_t until_mono_ns, bool is_exact,
		      struct transport_stats *stats)
{
	struct client *c = self;

	loop_poll(c->loop, until_mono_ns, is_exact);
	c->stats.spun_ns = loop_spun_ns(c->loop);
	*stats = c->stats;
}

static void curl_wake(void *self)
{
	loop_wake(((struct client *)self)->loop);
}

static void curl_close(void *self, struct transport_stats *stats)
{
	struct client *c = self;

	(void)stats;
	if (!c)
		return;
	for (size_t i = 0; i < c->transfers.count; i++) {
		struct transfer *t = slab_at(&c->transfers, i);

		lib.curl_multi_remove_handle(c->multi, t->easy);
		lib.curl_easy_cleanup(t->easy);
		lib.curl_slist_free_all(t->headers);
		buf_release(&t->head);
		buf_release(&t->url);
	}
	if (c->multi)
		lib.curl_multi_cleanup(c->multi);
	for (unsigned i = 0; c->site && i < c->opts.n_endpoints; i++) {
		curl_site_release(&c->site[i].text);
		lib.curl_slist_free_all(c->site[i].resolve);
	}
	free(c->site);
	slab_release(&c->transfers);
	slab_release(&c->watches);
	loop_free(c->loop);
	free(c);
}

static int fill_site(struct site *s, const char *base_url, const char *proxy, struct err *e)
{
	if (curl_site_fill(&s->text, base_url, proxy, e) < 0)
		return -1;
	if (s->text.resolve)
		s->resolve = lib.curl_slist_append(NULL, s->text.resolve);
	return 0;
}

static int open_multi(struct client *c, struct err *e)
{
	c->multi = lib.curl_multi_init();
	if (!c->multi)
		return err_set(e, ERR_NET, "libcurl cannot be started");
	lib.curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	lib.curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	lib.curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	lib.curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	lib.curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)TRANSFERS_MAX);
	/* The server's limit holds, not libcurl's. */
	lib.curl_multi_setopt(c->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 0x7fffffffL);
	return 0;
}

static void *curl_open(const struct transport_opts *o, struct err *e)
{
	struct client *c;

	if (library_open(&lib_library, e) < 0)
		return NULL;
	c = mem_alloc(sizeof(*c));
	pthread_once(&curl_once, init_curl);
	c->opts = *o;
	c->queue_end = &c->queue;
	c->tick = (struct timer_owner){ { .on_time = on_tick }, c };
	c->site = mem_array(o->n_endpoints, sizeof(*c->site));
	if (slab_init(&c->transfers, sizeof(struct transfer), TRANSFERS_MAX, e) < 0 ||
	    slab_init(&c->watches, sizeof(struct curl_watch), TRANSFERS_MAX, e) < 0)
		goto failed;
	c->loop = loop_new(e);
	if (!c->loop || open_multi(c, e) < 0)
		goto failed;
	for (unsigned i = 0; i < o->n_endpoints; i++)
		if (fill_site(&c->site[i], o->base_url[i], o->proxy ? o->proxy[i] : NULL, e) < 0)
			goto failed;
	return c;
failed:
	curl_close(c, NULL);
	return NULL;
}

const struct transport transport_curl = {
	.name = "curl", .open = curl_open, .start = curl_start, .cancel = curl_cancel,
	.poll = curl_poll, .wake = curl_wake, .close = curl_close,
};
