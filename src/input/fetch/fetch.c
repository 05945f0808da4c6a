/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - see fetch.h. The only file that includes libcurl besides a libcurl transport. */
#include "input/fetch/fetch.h"

#define CURL_DISABLE_TYPECHECK /* its macros would hide the functions */
#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

/* The functions in use: libcurl is loaded when first needed. */
#define CURL_CALLS(X) X(curl_easy_cleanup) X(curl_easy_getinfo) X(curl_easy_init) \
	X(curl_easy_perform) X(curl_easy_reset) X(curl_easy_setopt) X(curl_easy_strerror) \
	X(curl_free) X(curl_global_init) X(curl_mime_addpart) X(curl_mime_filedata) \
	X(curl_mime_free) X(curl_mime_init) X(curl_mime_name) X(curl_mime_type) \
	X(curl_multi_add_handle) X(curl_multi_cleanup) X(curl_multi_info_read) X(curl_multi_init) \
	X(curl_multi_perform) X(curl_multi_poll) X(curl_multi_remove_handle) X(curl_slist_append) \
	X(curl_slist_free_all) X(curl_url) X(curl_url_cleanup) X(curl_url_get) X(curl_url_set)
LIBRARY(lib, CURL_CALLS, "libcurl.so.4", "libcurl4");

#define PARALLEL_MAX 64
#define POOL_MAX THREADS_MAX          /* idle connections kept */
#define TIMEOUT_MS_DEFAULT 300000
#define REDIRECTS_MAX 10
#define LOOK_MS 100                /* how soon a cancel is noticed where nothing comes */
#define PAUSE_MS_FIRST 500
#define PAUSE_MS_MAX 8000
#define RETRY_AFTER_S_MAX 60       /* a longer pause is not waited for */
#define TRY_BYTES_MIN 65536        /* a try that brought as much does not count */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	lib.curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int load_curl(struct err *e)
{
	if (library_open(&lib_library, e) < 0)
		return -1;
	pthread_once(&curl_once, init_curl);
	return 0;
}

/* Idle handles; each keeps the connection of its last transfer. */
struct fetch_pool {
	pthread_mutex_t lock;
	CURL *idle[POOL_MAX];
	size_t n;
};

struct fetch_pool *fetch_pool_new(void)
{
	struct fetch_pool *p = mem_alloc(sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void fetch_pool_free(struct fetch_pool *p)
{
	if (!p)
		return;
	while (p->n)
		lib.curl_easy_cleanup(p->idle[--p->n]);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static CURL *handle_take(struct fetch_pool *p)
{
	CURL *curl = NULL;

	if (p) {
		pthread_mutex_lock(&p->lock);
		if (p->n)
			curl = p->idle[--p->n];
		pthread_mutex_unlock(&p->lock);
	}
	return curl ? curl : lib.curl_easy_init();
}

static void handle_give_back(struct fetch_pool *p, CURL *curl)
{
	if (p) {
		lib.curl_easy_reset(curl); /* connections stay */
		pthread_mutex_lock(&p->lock);
		if (p->n < POOL_MAX) {
			p->idle[p->n++] = curl;
			curl = NULL;
		}
		pthread_mutex_unlock(&p->lock);
	}
	if (curl)
		lib.curl_easy_cleanup(curl);
}

static size_t take_bytes(char *data, size_t size, size_t n, void *self)
{
	struct fetch_reply *reply = self;

	buf_add(&reply->body, data, size * n);
	return reply->body.is_over ? 0 : size * n;
}

/* Without a limit, libcurl would keep any number of interim answers, headers and trailers. */
static bool count_head(struct fetch_reply *reply, size_t n)
{
	reply->head_bytes += n;
	return reply->head_bytes <= HTTP_HEADS_BYTES_MAX;
}

static size_t take_head_bytes(char *data, size_t size, size_t n, void *self)
{
	(void)data;
	return count_head(self, size * n) ? size * n : 0;
}

static bool is_cancelled(const struct fetch_opts *o)
{
	return o->cancel && atomic_load(o->cancel);
}

static int on_progress(void *self, curl_off_t down, curl_off_t got, curl_off_t up, curl_off_t sent)
{
	(void)down, (void)got, (void)up, (void)sent;
	return is_cancelled(self);
}

static struct curl_slist *header_list(const struct fetch_opts *o, bool is_post)
{
	struct curl_slist *list = NULL;

	bool is_typed = false;

	for (const char *const *h = o->header; h && *h; h++)
		is_typed |= strncasecmp(*h, "Content-Type:", 13) == 0;
	if (is_post && !is_typed)
		list = lib.curl_slist_append(list, "Content-Type: application/json");
	for (const char *const *h = o->header; h && *h; h++)
		list = lib.curl_slist_append(list, *h);
	return list;
}

/* Certificates to trust. libcurl ignores the variable, which OpenSSL and the curl command read. */
static const char *ca_file(const struct fetch_opts *o)
{
	const char *set = getenv("SSL_CERT_FILE");

	return o->ca_file ? o->ca_file : set && *set ? set : NULL;
}

static void set_up(CURL *curl, const char *url, const struct str *body,
		   const struct fetch_opts *o, struct curl_slist *headers,
		   struct fetch_reply *reply, char *message)
{
	reply->body.limit = o->body_bytes_max ? o->body_bytes_max : FETCH_BODY_BYTES_MAX;
	lib.curl_easy_setopt(curl, CURLOPT_URL, url);
	lib.curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	lib.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	lib.curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
	lib.curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_head_bytes);
	lib.curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
	lib.curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
	lib.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	lib.curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	lib.curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	lib.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
			 (long)(o->timeout_ms ? o->timeout_ms : TIMEOUT_MS_DEFAULT));
	if (o->cancel) {
		lib.curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		lib.curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
		lib.curl_easy_setopt(curl, CURLOPT_XFERINFODATA, o);
	}
	if (o->unix_socket)
		lib.curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, o->unix_socket);
	if (ca_file(o))
		lib.curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file(o));
	if (o->cert_file) {
		lib.curl_easy_setopt(curl, CURLOPT_SSLCERT, o->cert_file);
		lib.curl_easy_setopt(curl, CURLOPT_SSLKEY,
				     o->key_file ? o->key_file : o->cert_file);
	}
	if (o->is_http2 && strncasecmp(url, "http:", 5) == 0)
		lib.curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
				 (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	if (o->proxy) {
		lib.curl_easy_setopt(curl, CURLOPT_PROXY, o->proxy);
		lib.curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
	}
	if (o->is_insecure) {
		lib.curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		lib.curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (body) {
		lib.curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->n);
		/* A copy: the next request may be written into the same memory. */
		lib.curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body->p ? body->p : "");
	}
}

static int failed(CURLcode code, const char *message, const struct fetch_reply *reply,
		  const char *url, const struct fetch_opts *o, struct err *e)
{
	if (is_cancelled(o))
		return err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", url);
	if (reply->body.is_over)
		return err_set(e, ERR_LIMIT, "the answer from %s exceeds the limit of %zu "
					     "bytes", url,
			       reply->body.limit);
	if (reply->head_bytes > HTTP_HEADS_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the headers and trailers of the answer from %s "
			       "exceed the limit of %d bytes", url, HTTP_HEADS_BYTES_MAX);
	err_set(e, ERR_NET, "%s: %s", url, *message ? message : lib.curl_easy_strerror(code));
	if (code == CURLE_PEER_FAILED_VERIFICATION && !o->ca_file)
		err_add(e, "; use --cacert FILE, or for a command without it the environment "
			   "variable SSL_CERT_FILE=FILE");
	return -1;
}

static void classify(CURL *curl, CURLcode code, struct fetch_reply *reply)
{
	curl_off_t connected_us = 0;
	long error = 0, tunnel = 0;

	reply->fault = FETCH_FAULT_OTHER;
	lib.curl_easy_getinfo(curl, CURLINFO_HTTP_CONNECTCODE, &tunnel);
	if (tunnel && tunnel / 100 != 2) {
		reply->fault = FETCH_FAULT_PROXY;
		reply->status = tunnel;
		return;
	}
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		reply->fault = FETCH_FAULT_NAME;
		break;
	case CURLE_COULDNT_CONNECT:
		lib.curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
		reply->fault = FETCH_FAULT_CONNECT;
		reply->error = (int)error;
		break;
	case CURLE_OPERATION_TIMEDOUT:
		lib.curl_easy_getinfo(curl, CURLINFO_CONNECT_TIME_T, &connected_us);
		if (connected_us == 0) {
			reply->fault = FETCH_FAULT_CONNECT;
			reply->error = ETIMEDOUT;
		}
		break;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
		reply->fault = FETCH_FAULT_TLS;
		break;
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		reply->fault = FETCH_FAULT_BROKEN;
		break;
	default:
		break;
	}
}

/* The part of a URL before its path. */
static void add_place(struct str url, struct buf *out)
{
	struct str rest = str_after(url, "://");

	buf_add(out, url.p, rest.n ? (size_t)(rest.p - url.p) : 0);
	buf_add_str(out, str_cut(&rest, '/'));
}

/* Ends a request: sets its result and releases everything it used. */
static int finish(CURL *curl, CURLcode code, const char *message, struct curl_slist *headers,
		  const char *url, const struct fetch_opts *o, struct fetch_reply *reply,
		  struct err *e)
{
	char *to = NULL;

	if (curl)
		lib.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
	if (curl && code != CURLE_OK)
		classify(curl, code, reply);
	if (curl && lib.curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &to) == CURLE_OK && to)
		add_place(str_of(to), &reply->redirect);
	if (curl)
		handle_give_back(o->pool, curl);
	lib.curl_slist_free_all(headers);
	if (code == CURLE_OK)
		return 0;
	failed(code, message, reply, url, o, e);
	fetch_reply_release(reply);
	return -1;
}

int fetch(const char *url, const struct str *body, const struct fetch_opts *o,
	  struct fetch_reply *reply, struct err *e)
{
	char message[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers;
	CURLcode code;
	CURL *curl;

	if (load_curl(e) < 0)
		return -1;
	curl = handle_take(o->pool);
	if (!curl)
		return err_set(e, ERR_NET, "libcurl cannot be started");
	*reply = (struct fetch_reply){ 0 };
	headers = header_list(o, body != NULL);
	set_up(curl, url, body, o, headers, reply, message);
	code = lib.curl_easy_perform(curl);
	return finish(curl, code, message, headers, url, o, reply, e);
}

int fetch_send_file(const char *url, const char *field, const char *path,
		    const struct fetch_opts *o, struct fetch_reply *reply, struct err *e)
{
	char message[CURL_ERROR_SIZE] = "";
	CURLcode code = CURLE_OUT_OF_MEMORY;
	struct curl_slist *headers;
	curl_mimepart *part;
	curl_mime *form;
	CURL *curl;

	if (load_curl(e) < 0)
		return -1;
	*reply = (struct fetch_reply){ 0 };
	headers = header_list(o, false);
	curl = handle_take(o->pool);
	form = curl ? lib.curl_mime_init(curl) : NULL;
	part = form ? lib.curl_mime_addpart(form) : NULL;
	if (part) {
		set_up(curl, url, NULL, o, headers, reply, message);
		lib.curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)o->timeout_ms);
		lib.curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		lib.curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)FETCH_SILENCE_S);
		lib.curl_easy_setopt(curl, CURLOPT_MIMEPOST, form);
		lib.curl_mime_name(part, field);
		lib.curl_mime_type(part, "application/octet-stream");
		code = lib.curl_mime_filedata(part, path);
	}
	if (code == CURLE_OK)
		code = lib.curl_easy_perform(curl);
	lib.curl_mime_free(form);
	return finish(curl, code, message, headers, url, o, reply, e);
}

void fetch_reply_release(struct fetch_reply *r)
{
	buf_release(&r->body);
	buf_release(&r->redirect);
	buf_release(&r->head);
}

/* One transfer in progress. */
struct fetch_transfer {
	CURL *curl;
	size_t index;
	struct fetch_reply reply;
	char message[CURL_ERROR_SIZE];
};

static void begin(CURLM *multi, struct fetch_transfer *t, size_t i, const char *url,
		  const struct fetch_many *many, const struct fetch_opts *o,
		  struct curl_slist *headers)
{
	struct str body = many->body(many->self, i);
	size_t limit;

	t->index = i;
	t->reply.head_bytes = 0;
	buf_reset(&t->reply.body);
	set_up(t->curl, url, &body, o, headers, &t->reply, t->message);
	limit = FETCH_MANY_BODY_BYTES_MIN + body.n * FETCH_MANY_BODY_FACTOR;
	if (limit < t->reply.body.limit)
		t->reply.body.limit = limit;
	lib.curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
	lib.curl_multi_add_handle(multi, t->curl);
}

int fetch_many(const char *url, const struct fetch_many *many, const struct fetch_opts *o,
	       struct err *e)
{
	unsigned parallel = many->parallel < PARALLEL_MAX ? many->parallel : PARALLEL_MAX;
	struct curl_slist *headers;
	struct fetch_transfer *transfer;
	size_t next = 0, done = 0, before;
	int running, left, rc = 0;
	CURLMsg *message;
	CURLM *multi;

	assert(many->parallel > 0);
	if (load_curl(e) < 0)
		return -1;
	transfer = mem_array(parallel, sizeof(*transfer));
	headers = header_list(o, true);
	multi = lib.curl_multi_init();
	for (unsigned k = 0; k < parallel && next < many->n; k++) {
		transfer[k].curl = lib.curl_easy_init();
		begin(multi, &transfer[k], next++, url, many, o, headers);
	}
	while (rc == 0 && done < many->n) {
		if (is_cancelled(o)) {
			rc = err_set(e, ERR_CANCELLED, "interrupted while waiting for %s", url);
			break;
		}
		before = done;
		if (lib.curl_multi_perform(multi, &running) != CURLM_OK)
			rc = err_set(e, ERR_NET, "%s: libcurl failed", url);
		while (rc == 0 && (message = lib.curl_multi_info_read(multi, &left))) {
			struct fetch_transfer *t;

			if (message->msg != CURLMSG_DONE)
				continue;
			lib.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
			lib.curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->reply.status);
			many->done(many->self, t->index,
				   message->data.result == CURLE_OK ? &t->reply : NULL);
			done++;
			lib.curl_multi_remove_handle(multi, t->curl);
			if (next < many->n)
				begin(multi, t, next++, url, many, o, headers);
		}
		/*
		 * A transfer that just began has to be performed before there is something to wait
		 * for.
		 */
		if (rc == 0 && done == before &&
		    lib.curl_multi_poll(multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK)
			rc = err_set(e, ERR_NET, "%s: libcurl failed", url);
	}
	for (unsigned k = 0; k < parallel; k++) {
		if (transfer[k].curl) {
			lib.curl_multi_remove_handle(multi, transfer[k].curl);
			lib.curl_easy_cleanup(transfer[k].curl);
		}
		fetch_reply_release(&transfer[k].reply);
	}
	lib.curl_multi_cleanup(multi);
	lib.curl_slist_free_all(headers);
	free(transfer);
	return rc;
}

/* ---- files of a hub ---- */

/* One fetch_get in progress. */
struct get {
	const struct fetch_get *g;
	struct fetch_reply *reply;
	CURL *curl;
	struct buf url;         /* of this hop */
	char message[CURL_ERROR_SIZE];
	int64_t from;           /* where this hop's body begins in the file */
	int64_t file_bytes;     /* what fd holds up to its position */
	int64_t heard_ns;       /* when the last byte came */
	int64_t heard_bytes;
	bool is_silent;
	bool is_head_whole;
	bool is_body_begun;
	CURLcode code;          /* how the last hop ended */
	struct err why;         /* set where a callback ended it */
};

struct str fetch_header(const struct fetch_reply *reply, const char *name)
{
	struct str rest = buf_str(&reply->head), want = str_of(name);

	while (rest.n) {
		struct str value = str_cut(&rest, '\n'), key = str_cut(&value, ':');

		if (str_eq_nocase(key, want))
			return str_trim(value);
	}
	return STR("");
}

static size_t take_head(char *data, size_t size, size_t n, void *self)
{
	struct get *t = self;

	/* Every answer on the way has a head: that of a proxy, that of 100 Continue. */
	if (str_starts((struct str){ data, size * n }, STR("HTTP/")))
		buf_reset(&t->reply->head);
	buf_add(&t->reply->head, data, size * n);
	t->is_head_whole = *data == '\r' || *data == '\n';
	if (!count_head(t->reply, size * n))
		err_set(&t->why, ERR_LIMIT, "the headers and trailers of all answers exceed the limit of %d bytes",
			HTTP_HEADS_BYTES_MAX);
	else if (t->reply->head.is_over)
		err_set(&t->why, ERR_LIMIT, "the headers of the answer exceed the limit of %d bytes",
			HTTP_HEAD_BYTES_MAX);
	else
		return size * n;
	return 0;
}

static long status_of(const struct get *t)
{
	long status = 0;

	lib.curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool is_for_file(const struct get *t)
{
	return t->g->fd >= 0 && (status_of(t) == 200 || status_of(t) == 206);
}

static int cut_file(struct get *t)
{
	t->file_bytes = 0;
	if (ftruncate(t->g->fd, 0) == 0 && lseek(t->g->fd, 0, SEEK_SET) == 0)
		return 0;
	return err_set(&t->why, ERR_IO, "cannot write the file: %s", strerror(errno));
}

/* A body begins: the part asked for, or the whole file. */
static int begin_body(struct get *t)
{
	struct buf want = { 0 };
	bool is_good;

	t->is_body_begun = true;
	if (status_of(t) == 200)
		return t->from > 0 ? cut_file(t) : 0;
	buf_printf(&want, "bytes %lld-", (long long)t->from);
	is_good = t->from > 0 &&
		str_starts(fetch_header(t->reply, "Content-Range"), buf_str(&want));
	buf_release(&want);
	if (is_good)
		return 0;
	return err_set(&t->why, ERR_NET, "the answer is another part of the file than the one "
		"from byte %lld", (long long)t->from);
}

static int write_file(struct get *t, struct str bytes)
{
	t->file_bytes += (int64_t)bytes.n;
	if (t->file_bytes > t->g->file_bytes_max)
		return err_set(&t->why, ERR_LIMIT, "the file is larger than %lld bytes",
			(long long)t->g->file_bytes_max);
	if (file_write_all(t->g->fd, bytes) < 0)
		return err_set(&t->why, ERR_IO, "cannot write the file: %s", strerror(errno));
	return 0;
}

static size_t take_body(char *data, size_t size, size_t n, void *self)
{
	struct get *t = self;

	if (!is_for_file(t))
		return take_bytes(data, size, n, t->reply);
	if (!t->is_body_begun && begin_body(t))
		return 0;
	return write_file(t, (struct str){ data, size * n }) ? 0 : size * n;
}

static int on_get_progress(void *self, curl_off_t down, curl_off_t got, curl_off_t up,
			   curl_off_t sent)
{
	int64_t now = clock_mono_ns();
	struct get *t = self;

	(void)down, (void)up, (void)sent;
	if (got != t->heard_bytes) {
		t->heard_bytes = got;
		t->heard_ns = now;
		if (t->g->progress && is_for_file(t))
			t->g->progress(t->g->self, t->file_bytes);
	}
	t->is_silent = now - t->heard_ns > t->g->silence_ms * 1000000;
	return t->is_silent || is_cancelled(t->g->opts);
}

/* The same scheme, host and port. */
static bool is_same_origin(const char *a, const char *b)
{
	static const CURLUPart part[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };
	CURLU *one = lib.curl_url(), *other = lib.curl_url();
	bool is_same = lib.curl_url_set(one, CURLUPART_URL, a, 0) == CURLUE_OK &&
		       lib.curl_url_set(other, CURLUPART_URL, b, 0) == CURLUE_OK;

	for (size_t i = 0; is_same && i < sizeof(part) / sizeof(*part); i++) {
		char *x = NULL, *y = NULL;

		is_same = lib.curl_url_get(one, part[i], &x, CURLU_DEFAULT_PORT) == CURLUE_OK &&
			  lib.curl_url_get(other, part[i], &y, CURLU_DEFAULT_PORT) == CURLUE_OK &&
			  strcasecmp(x, y) == 0;
		lib.curl_free(x);
		lib.curl_free(y);
	}
	lib.curl_url_cleanup(one);
	lib.curl_url_cleanup(other);
	return is_same;
}

/* Queries are left out: they may be signed, and are then like a password. */
static int url_shown(const struct get *t)
{
	return (int)strcspn(t->url.data, "?");
}

static void perform(struct get *t)
{
	struct curl_slist *headers = header_list(t->g->opts, false);
	struct buf line = { 0 };

	/* The file is stored as sent; sizes and ranges count those bytes. */
	headers = lib.curl_slist_append(headers, "Accept-Encoding: identity");
	if (t->g->authorization && is_same_origin(t->g->url, t->url.data)) {
		buf_printf(&line, "Authorization: %s", t->g->authorization);
		headers = lib.curl_slist_append(headers, line.data);
	}
	t->from = t->file_bytes;
	if (t->from > 0) {
		buf_reset(&line);
		buf_printf(&line, "Range: bytes=%lld-", (long long)t->from);
		headers = lib.curl_slist_append(headers, line.data);
	}
	lib.curl_easy_reset(t->curl);
	buf_reset(&t->reply->body);
	buf_reset(&t->reply->head);
	t->reply->head_bytes = 0;
	*t->message = 0;
	set_up(t->curl, t->url.data, NULL, t->g->opts, headers, t->reply, t->message);
	lib.curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS, (long)t->g->opts->timeout_ms);
	lib.curl_easy_setopt(t->curl, CURLOPT_NOBODY, t->g->is_head ? 1L : 0L);
	lib.curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, take_body);
	lib.curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	lib.curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, take_head);
	lib.curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
	lib.curl_easy_setopt(t->curl, CURLOPT_NOPROGRESS, 0L);
	lib.curl_easy_setopt(t->curl, CURLOPT_XFERINFOFUNCTION, on_get_progress);
	lib.curl_easy_setopt(t->curl, CURLOPT_XFERINFODATA, t);
	/* A name that does not resolve must not delay the end. */
	lib.curl_easy_setopt(t->curl, CURLOPT_QUICK_EXIT, 1L);
	t->is_body_begun = t->is_head_whole = t->is_silent = false;
	t->heard_ns = clock_mono_ns();
	t->heard_bytes = 0;
	t->why = (struct err){ 0 };
	t->code = lib.curl_easy_perform(t->curl);
	t->reply->status = status_of(t);
	if (t->code == CURLE_OK && !t->is_head_whole)
		t->code = CURLE_GOT_NOTHING;
	else if (t->code == CURLE_OK && is_for_file(t) && !t->is_body_begun && begin_body(t))
		t->code = CURLE_WRITE_ERROR;
	lib.curl_slist_free_all(headers);
	buf_release(&line);
}

/* 1: the answer is a redirect and t->url says where to; 0: it is the answer. */
static int next_hop(struct get *t, struct err *e)
{
	bool is_same;
	char *to = NULL;

	lib.curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &to);
	if (t->reply->status / 100 != 3 || !to)
		return 0;
	is_same = is_same_origin(t->url.data, to);
	if (t->g->mark && !is_same && fetch_header(t->reply, t->g->mark).n)
		return 0;
	if (strncasecmp(t->url.data, "https:", 6) == 0 && strncasecmp(to, "https:", 6) != 0)
		return err_set(e, ERR_NET, "%.*s redirects to %.*s, which is not encrypted",
			       url_shown(t), t->url.data, (int)strcspn(to, "?"), to);
	buf_reset(&t->url);
	buf_add_text(&t->url, to);
	return 1;
}

static int get_failed(const struct get *t, struct err *e)
{
	if (is_cancelled(t->g->opts) || (t->reply->body.is_over && t->why.code == ERR_NONE))
		return failed(t->code, t->message, t->reply, t->g->url, t->g->opts, e);
	if (t->why.code != ERR_NONE)
		return err_set(e, t->why.code, "%.*s: %s", url_shown(t), t->url.data, t->why.text);
	if (t->is_silent)
		return err_set(e, ERR_NET, "%.*s: no data arrived for %g s", url_shown(t),
			       t->url.data, (double)t->g->silence_ms / 1000);
	return err_set(e, ERR_NET, "%.*s: %s", url_shown(t), t->url.data,
		       *t->message ? t->message : lib.curl_easy_strerror(t->code));
}

/* One try, along its redirects. */
static int get_once(struct get *t, struct err *e)
{
	int hops = 0, rc;

	buf_reset(&t->url);
	buf_add_text(&t->url, t->g->url);
	do {
		perform(t);
		if (t->code != CURLE_OK)
			return get_failed(t, e);
		rc = next_hop(t, e);
	} while (rc == 1 && ++hops < REDIRECTS_MAX);
	if (rc == 1)
		return err_set(e, ERR_NET, "%.*s is redirected more than %d times",
			       (int)strcspn(t->g->url, "?"), t->g->url, REDIRECTS_MAX);
	return rc;
}

static bool is_worth_another(const struct get *t, int rc)
{
	long status = t->reply->status;

	switch (t->code) {
	case CURLE_OK:
		return rc == 0 && (status == 408 || status == 429 || status == 500 ||
				   (status >= 502 && status <= 504));
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return true;
	default:
		/* A server that sends nothing at all is not retried. */
		return t->is_silent && t->g->fd >= 0;
	}
}

/* false: the server asks for more time than allowed, or the caller has cancelled. */
static bool pause_before_next(const struct get *t, int rc, unsigned tries)
{
	int64_t pause_ms = PAUSE_MS_FIRST << (tries < 5 ? tries : 5), wanted_s;
	int64_t until_ns;

	if (rc == 0 && str_to_i64(fetch_header(t->reply, "Retry-After"), &wanted_s)) {
		if (wanted_s > RETRY_AFTER_S_MAX)
			return false;
		pause_ms = wanted_s * 1000;
	} else if (pause_ms > PAUSE_MS_MAX) {
		pause_ms = PAUSE_MS_MAX;
	}
	until_ns = clock_mono_ns() + pause_ms * 1000000;
	while (clock_mono_ns() < until_ns && !is_cancelled(t->g->opts)) {
		struct timespec step = { 0, 20000000 };

		nanosleep(&step, NULL);
	}
	return !is_cancelled(t->g->opts);
}

int fetch_get(const struct fetch_get *g, struct fetch_reply *reply, struct err *e)
{
	struct get t = { .g = g, .reply = reply };
	struct err why = { 0 };
	unsigned tries = 0;
	bool is_cut = false;
	int rc;

	*reply = (struct fetch_reply){ .head.limit = HTTP_HEAD_BYTES_MAX };
	if (load_curl(e) < 0)
		return -1;
	t.curl = lib.curl_easy_init();
	if (!t.curl)
		return err_set(e, ERR_NET, "libcurl cannot be started");
	if (g->fd >= 0)
		t.file_bytes = lseek(g->fd, 0, SEEK_CUR);
	for (;;) {
		int64_t before = t.file_bytes;

		rc = get_once(&t, &why);
		if (rc == 0 && reply->status == 416 && t.file_bytes > 0 && !is_cut) {
			is_cut = true;
			if (cut_file(&t) == 0)
				continue;
			t.code = CURLE_WRITE_ERROR;
			rc = get_failed(&t, &why);
		}
		if (t.file_bytes - before < TRY_BYTES_MIN)
			tries++;
		if (!is_worth_another(&t, rc) || tries >= g->tries ||
		    !pause_before_next(&t, rc, tries - 1))
			break;
	}
	if (rc < 0 || is_cancelled(g->opts))
		rc = is_cancelled(g->opts) ? failed(CURLE_OK, "", reply, g->url, g->opts, e) :
		     err_set(e, why.code, "%s", why.text);
	if (rc < 0)
		fetch_reply_release(reply);
	lib.curl_easy_cleanup(t.curl);
	buf_release(&t.url);
	return rc;
}

bool fetch_is_url(const char *text)
{
	return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

int fetch_url(const char *url, const atomic_bool *cancel, struct buf *body, struct err *e)
{
	const struct fetch_opts opts = { .cancel = cancel };
	const struct fetch_get get = {
		.url = url, .fd = -1, .opts = &opts, .silence_ms = 60000, .tries = 3,
	};
	struct fetch_reply reply = { 0 };
	int rc = fetch_get(&get, &reply, e);

	if (rc == 0 && reply.status != 200)
		rc = err_set(e, ERR_NET, "%s: the server answers with status %ld", url, reply.status);
	if (rc == 0) {
		*body = reply.body;
		reply.body = (struct buf){ 0 };
	}
	fetch_reply_release(&reply);
	return rc;
}
