/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - one request: receiving it, whether it is allowed, and its answer. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/http/request.h"
#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "web/web_internal.h"

#define MEMORY_BYTES 65536            /* of a body; more of it goes to a file */
#define LARGE_BYTES (1u << 20)        /* larger bodies are processed one at a time */
#define DISCARD_BYTES (8ull << 20)    /* of a refused body, so that its sender reads the answer */

struct exchange *exchange_new(struct web *w, const char *target)
{
	struct exchange *x = mem_alloc(sizeof(*x));
	struct str rest;

	x->web = w;
	x->number = atomic_fetch_add(&w->requests, 1) + 1;
	x->began_ns = clock_mono_ns();
	x->route_at = SIZE_MAX;
	x->method = "";
	x->answer.fd = -1;
	x->request.is_gone = &x->is_gone;
	x->target = arena_str(&x->arena, str_of(target));
	rest = x->target;
	x->raw_path = str_cut(&rest, '?');
	x->query = rest;
	x->body.limit = 2 * MEMORY_BYTES;
	x->answer.body.limit = WEB_ANSWER_BYTES_MAX;
	x->answer.body.meter = &w->answers;
	atomic_fetch_add(&w->in_flight, 1);
	return x;
}

static void drop_body(struct exchange *x)
{
	if (x->mapped.n)
		munmap((void *)(uintptr_t)x->mapped.p, x->mapped.n);
	x->mapped = (struct str){ 0 };
	if (x->spool_fd) {
		close(x->spool_fd);
		x->spool_fd = 0;
		atomic_fetch_sub(&x->web->spooled, (int64_t)x->received);
	}
	buf_release(&x->body);
}

void exchange_free(struct exchange *x)
{
	struct web_answer *a = &x->answer;

	if (a->pull_end)
		a->pull_end(a->self);
	if (a->fd >= 0)
		close(a->fd);
	if (x->is_stream_counted) {
		atomic_fetch_sub(&x->web->streams, 1);
		work_count_stream(x->web, x, -1);
	}
	drop_body(x);
	buf_release(&a->body);
	arena_release(&x->scratch);
	arena_release(&x->arena);
	atomic_fetch_sub(&x->web->in_flight, 1);
	free(x);
}

void exchange_add_header(struct exchange *x, const char *name, const char *value)
{
	struct web_request r = { .arena = &x->arena };

	for (const struct web_header *h = x->answer.header; h; h = h->next)
		if (strcmp(h->name, name) == 0 && strcmp(h->value, value) == 0)
			return;
	web_set_header(&r, &x->answer, name, value);
}

/* ---- whether it may come in ---- */

static bool is_reading(const struct exchange *x)
{
	return strcmp(x->method, "GET") == 0 || strcmp(x->method, "HEAD") == 0;
}

static int shown(struct str header)
{
	return header.n < 100 ? (int)header.n : 100;
}

/* false: refused. */
static bool check_sender(struct exchange *x)
{
	const struct web_opts *o = &x->web->o;
	const struct exchange_head *h = &x->head;

	if (h->host.p && !auth_is_host(h->host, x->local, o->host_name, o->n_host_names))
		exchange_refuse(x, 421, "this dashboard does not answer to '%.*s', the name or address in "
				"the Host header; profllm dashboard --host-name NAME adds it; a proxy must pass "
				"on the browser's Host header", shown(h->host), h->host.p);
	else if (!is_reading(x) && h->origin.p && !auth_is_origin(h->origin, h->host))
		exchange_refuse(x, 403, "a page of another origin (%.*s) may not do this at %.*s; a proxy must "
				"pass on the browser's Host header with its port (nginx: proxy_set_header Host "
				"$http_host)", shown(h->origin), h->origin.p, shown(h->host), h->host.p);
	return !x->is_answered;
}

static bool has_type(struct str type, const char *wanted)
{
	return str_eq_nocase(str_trim(str_cut(&type, ';')), str_of(wanted));
}

static bool check_body_head(struct exchange *x)
{
	const struct exchange_head *h = &x->head;
	unsigned flags = x->route->flags;
	uint64_t length = 0;

	x->limit = flags & ROUTE_PARTS ? WEB_FORM_BYTES_MAX :
		   flags & ROUTE_RAW ? INGEST_BYTES_MAX : WEB_JSON_BYTES_MAX;
	if (is_reading(x))
		x->limit = 0;
	if (h->content_encoding.n && !str_eq_nocase(h->content_encoding, STR("identity"))) {
		exchange_refuse(x, 415, "compressed bodies are not accepted; send the body "
					"uncompressed");
		exchange_add_header(x, "Accept-Encoding", "identity");
	} else if (h->length.p && !str_to_u64(h->length, &length)) {
		exchange_refuse(x, 400, "the Content-Length is not a number");
	} else if (h->length.p && h->is_chunked) {
		exchange_refuse(x, 400, "a body has a Content-Length or is chunked, not both");
	} else if (length > x->limit) {
		exchange_refuse(x, 413, "the body has %llu bytes; at most %llu are accepted here%s",
				(unsigned long long)length, (unsigned long long)x->limit,
				flags & ROUTE_RAW ? WEB_LARGER_FILES : "");
	} else if (length || h->is_chunked) {
		bool is_form = has_type(h->content_type, "multipart/form-data");
		bool is_json = has_type(h->content_type, "application/json");

		if (flags & ROUTE_PARTS && !is_form && !(flags & ROUTE_RAW && is_json))
			exchange_refuse(x, 415, "expected a form (multipart/form-data)%s",
					flags & ROUTE_RAW ? " or JSON (application/json)" : "");
		else if (!(flags & ROUTE_PARTS) &&
			 (is_form || has_type(h->content_type,
					      "application/x-www-form-urlencoded")))
			exchange_refuse(x, 415, "expected JSON (application/json), not a form");
	}
	return !x->is_answered;
}

static void too_long(struct exchange *x)
{
	bool is_address = x->target.n > x->head.bytes / 2;

	exchange_refuse(x, is_address ? 414 : 431, "the %s long; at most %d bytes of address and "
			"headers are accepted (WEB_HEAD_BYTES_MAX)%s", is_address ? "address is too" :
			"headers are too", WEB_HEAD_BYTES_MAX,
			is_address ? "; a query may be sent as the body of a POST" : "");
}

static void not_found(struct exchange *x, const char *allow)
{
	if (*allow) {
		exchange_refuse(x, 405, "this address does not accept %s; it accepts "
					"%s", x->method, allow);
		exchange_add_header(x, "Allow", allow);
	} else {
		exchange_refuse(x, 404, "there is nothing at this address");
	}
}

void exchange_begin(struct exchange *x)
{
	struct route_found found;
	struct str path = x->raw_path;
	bool is_api = str_starts(path, STR("/api/")) || str_is(path, "/metrics");

	assert(!x->has_begun);
	x->has_begun = true;
	if (x->head.bytes > WEB_HEAD_BYTES_MAX) {
		too_long(x);
	} else if (!path.n || path.p[0] != '/') {
		exchange_refuse(x, 400, "the address does not begin with a /");
	} else if (check_sender(x)) {
		routes_find(path, x->method, &x->arena, &found);
		x->route = found.route;
		if (found.route) {
			x->route_at = found.at;
			x->request.id[0] = found.id[0];
			x->request.id[1] = found.id[1];
			if (login_check(x) && check_body_head(x) &&
			    x->web->o.is_read_only && found.route->flags & ROUTE_CHANGES)
				exchange_refuse(x, 403, "this dashboard is read-only: it was started with "
						"--read-only, or its database is a read replica");
		} else if (*found.allow || is_api) {
			not_found(x, found.allow);
		} else if (!is_reading(x)) {
			not_found(x, "GET, HEAD");
		} else if (!login_by_address(x)) {
			static_answer(x);
		}
	}
	x->is_discarding = x->is_answered;
	x->limit = x->is_answered ? DISCARD_BYTES : x->limit;
}

/* ---- the body ---- */

/* An unnamed file in the folder of jobs, as $TMPDIR may be in memory. -1 with errno. */
static int spool_open(const char *folder)
{
	char *path = file_join(folder, ".body-XXXXXX");
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) {
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	free(path);
	return fd;
}

static void refuse_late(struct exchange *x, unsigned status, const char *why)
{
	drop_body(x);
	exchange_refuse(x, status, "%s", why);
	if (status == 503)
		exchange_add_header(x, "Retry-After", "5");
	x->is_discarding = true;
	x->limit = x->received + DISCARD_BYTES;
}

static bool spool(struct exchange *x, struct str bytes)
{
	struct web *w = x->web;

	if (!x->spool_fd) {
		int fd = spool_open(w->o.folder);

		if (fd < 0)
			return false;
		x->spool_fd = fd;
		atomic_fetch_add(&w->spooled, (int64_t)x->received);
		if (file_write_all(fd, buf_str(&x->body)) < 0)
			return false;
		buf_release(&x->body);
	}
	return file_write_all(x->spool_fd, bytes) == 0;
}

bool exchange_body(struct exchange *x, struct str bytes)
{
	char why[160];

	if (x->received + bytes.n > x->limit && !x->is_discarding) {
		snprintf(why, sizeof(why), "the body has more than the %llu bytes that are "
					   "accepted here",
			 (unsigned long long)x->limit);
		refuse_late(x, 413, why);
	}
	if (x->is_discarding) {
		x->received += bytes.n;
		return x->received <= x->limit;
	}
	if (!x->spool_fd && x->body.len + bytes.n <= MEMORY_BYTES) {
		buf_add_str(&x->body, bytes);
		x->received += bytes.n;
		return true;
	}
	if (atomic_load(&x->web->spooled) > (int64_t)WEB_SPOOL_BYTES_MAX) {
		refuse_late(x, 503, "too much is being uploaded at once");
	} else if (!spool(x, bytes)) {
		bool is_full = errno == ENOSPC || errno == EDQUOT;

		snprintf(why, sizeof(why), "the body cannot be kept: %s", is_full ?
			 "the disk of --jobs-dir is full: make room there, then do this again" :
			 strerror(errno));
		refuse_late(x, is_full ? 507 : 503, why);
		log_say(x->web, x, "error", why);
	} else {
		atomic_fetch_add(&x->web->spooled, (int64_t)bytes.n);
		x->received += bytes.n;
	}
	return true;
}

/* The whole body as one slice. */
static bool map_body(struct exchange *x)
{
	void *at;

	if (!x->spool_fd)
		return true;
	at = mmap(NULL, x->received, PROT_READ, MAP_PRIVATE, x->spool_fd, 0);
	if (at == MAP_FAILED)
		return false;
	x->mapped = (struct str){ at, x->received };
	return true;
}

bool exchange_end(struct exchange *x)
{
	assert(x->has_begun && !x->has_ended);
	x->has_ended = true;
	x->ready_ns = clock_mono_ns();
	if (!x->is_answered && !map_body(x)) {
		exchange_refuse(x, 503, "the body cannot be read again: %s", strerror(errno));
		exchange_add_header(x, "Retry-After", "5");
	}
	if (!x->is_answered && x->route->flags & ROUTE_QUICK)
		exchange_work(x);
	if (x->is_answered) {
		exchange_finish(x);
		return x->not_before_ns != 0;
	}
	x->is_large = x->received > LARGE_BYTES || x->route->flags & ROUTE_PARTS;
	return true;
}

/* ---- what is answered ---- */

#define PACKED_BYTES_MIN 1024
#define PACKED_LEVEL 4

static void begin_answer(struct web_answer *a)
{
	buf_release(&a->body);
	a->json = json_writer(&a->body);
	a->json.is_compact = a->json.is_raw_utf8 = true;
	json_begin_object(&a->json);
}

static void drop_answer(struct web_answer *a)
{
	if (a->pull_end)
		a->pull_end(a->self);
	a->pull = NULL;
	a->pull_end = NULL;
	a->type = NULL;
	a->is_stream = false;
	a->file_name = (struct str){ 0 };
}

void exchange_refuse(struct exchange *x, unsigned status, const char *fmt, ...)
{
	struct web_answer *a = &x->answer;
	char text[sizeof(((struct err *)0)->text)];
	va_list args;

	assert(status >= 400 && status < 600);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* The text may quote the request; control characters are replaced. */
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	drop_answer(a);
	begin_answer(a);
	json_member_text(&a->json, "type", "about:blank");
	json_member_text(&a->json, "title", http_status_reason(status));
	json_member_int(&a->json, "status", status);
	json_member_text(&a->json, "detail", text);
	if (a->pointer.p) {
		json_member_str(&a->json, "pointer", a->pointer);
	}
	json_end_object(&a->json);
	a->type = "application/problem+json";
	a->status = status;
	x->is_answered = true;
	*x->etag = 0;
}

/* ---- tags ---- */

static uint64_t fnv(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3;
	return (h ^ 0xff) * 0x100000001b3;
}

static void make_tag(struct exchange *x, struct str body)
{
	uint64_t h = fnv(0xcbf29ce484222325, x->target);

	h = fnv(h, body);
	h = fnv(h, (struct str){ (const char *)&x->web->boot, sizeof(x->web->boot) });
	snprintf(x->etag, sizeof(x->etag), "W/\"%llu-%016llx\"",
		 (unsigned long long)index_view_version(x->request.view), (unsigned long long)h);
}

/* Weak comparison (RFC 9110): a leading W/ makes no difference. */
bool exchange_has_tag(const struct exchange *x, const char *etag)
{
	struct str rest = x->head.if_none_match, own = str_of(etag);

	if (str_starts(own, STR("W/")))
		own = (struct str){ own.p + 2, own.n - 2 };
	while (rest.n) {
		struct str tag = str_trim(str_cut(&rest, ','));

		if (str_starts(tag, STR("W/")))
			tag = (struct str){ tag.p + 2, tag.n - 2 };
		if (str_eq(tag, own) || str_is(tag, "*"))
			return true;
	}
	return false;
}

/* ---- the route ---- */

static unsigned status_of(const struct web_answer *a, const struct err *e)
{
	if (a->status >= 400)
		return a->status;
	if (e->kind == ERR_DATABASE_UNREACHABLE || e->kind == ERR_STORE_BUSY)
		return 503;
	if (e->kind == ERR_DISK_FULL)
		return 507;
	return e->code == ERR_USAGE ? 400 : 500;
}

static int read_body(struct exchange *x, struct str body, struct err *e)
{
	struct json_value *v = NULL;

	if (x->route->flags & (ROUTE_RAW | ROUTE_PARTS)) {
		x->request.raw = body;
		return 0;
	}
	if (!str_trim(body).n)
		return 0;
	if (!utf8_is_valid(body))
		return err_set(e, ERR_USAGE, "the body is not valid UTF-8");
	if (json_parse(&x->scratch, body, &v, e) < 0) {
		e->code = ERR_USAGE;
		return err_wrap(e, "the body is not JSON");
	}
	x->request.body = v;
	return x->route->flags & (ROUTE_READS | ROUTE_FILTERS) ? tags_resolve(&x->request, v, e) :
								 0;
}

static void end_answer(struct exchange *x)
{
	struct web_answer *a = &x->answer;
	double ms = (double)(clock_mono_ns() - x->ready_ns) / 1e6;
	struct index_view *now = x->request.view ? NULL : store_view(x->web->store);
	uint64_t version = index_view_version(now ? now : x->request.view);

	index_view_release(now);
	json_member_int(&a->json, "data_version", (int64_t)version);
	json_member_f64(&a->json, "query_ms", round(ms * 1000) / 1000);
	json_end_object(&a->json);
	a->type = "application/json";
}

/* Copies what sending needs from the route's memory, which is then freed. */
static void keep_answer(struct exchange *x)
{
	struct web_answer *a = &x->answer;

	for (struct web_header **at = &a->header; *at; at = &(*at)->next) {
		struct web_header *h = arena_alloc(&x->arena, sizeof(*h));

		*h = **at;
		h->value = arena_text(&x->arena, str_of(h->value));
		*at = h;
	}
	if (a->file_name.n)
		a->file_name = arena_str(&x->arena, a->file_name);
	a->pointer = (struct str){ 0 };
	x->request.body = NULL;
	arena_release(&x->scratch);
	buf_fit(&a->body);
}

static void refuse_over(struct exchange *x)
{
	if (x->answer.body.is_short) {
		exchange_refuse(x, 503, "the answers to other requests use all of the %lld MiB for "
				"answers (WEB_ANSWERS_BYTES_MAX); ask for less, or try again in "
				"some seconds", WEB_ANSWERS_BYTES_MAX >> 20);
		exchange_add_header(x, "Retry-After", "5");
		atomic_fetch_add(&x->web->refused[REFUSED_BYTES], 1);
	} else {
		exchange_refuse(x, 422, "the answer has more than %u MiB (WEB_ANSWER_BYTES_MAX); ask for "
				"less", WEB_ANSWER_BYTES_MAX >> 20);
	}
}

void exchange_work(struct exchange *x)
{
	struct web_request *r = &x->request;
	struct web_answer *a = &x->answer;
	struct err e = { 0 };
	struct str body = x->mapped.n ? x->mapped : buf_str(&x->body);

	assert(x->route && !x->is_answered);
	r->web = x->web;
	r->store = x->web->store;
	/* A request that changes something may wait for its turn, and data may change meanwhile. */
	r->view = x->route->flags & ROUTE_CHANGES ? NULL : store_view(r->store);
	r->arena = &x->scratch;
	r->route = x->route;
	r->method = x->method;
	r->path = x->raw_path;
	r->query = x->query;
	r->content_type = x->head.content_type;
	begin_answer(a);
	if (x->route->flags & ROUTE_READS)
		make_tag(x, body);
	if (!(x->route->flags & ROUTE_QUICK) && store_is_replaced(r->store)) {
		exchange_refuse(x, 503, "the store was replaced or removed: restart this dashboard");
	} else if (*x->etag && exchange_has_tag(x, x->etag)) {
		web_bytes(a, NULL);
		a->status = 304;
	} else if (read_body(x, body, &e) < 0 || params_check(x, &e) < 0 ||
		   x->route->handle(r, a, &e) < 0) {
		unsigned status = status_of(a, &e);

		if (status >= 500 && e.code != ERR_USAGE)
			log_say(x->web, x, "error", e.text);
		exchange_refuse(x, status, "%s", e.text);
		if (status == 503)
			exchange_add_header(x, "Retry-After", "5");
	} else if (!a->type && !a->pull && a->fd < 0 && a->status != 204) {
		end_answer(x);
	}
	x->is_answered = true;
	if (a->is_late)
		x->not_before_ns = clock_mono_ns() + EXCHANGE_LATE_NS;
	if (a->body.is_over)
		refuse_over(x);
	/* Sending may take as long as the client likes. */
	index_view_release(r->view);
	r->view = NULL;
	keep_answer(x);
}

/* ---- once the answer is complete ---- */

bool exchange_takes_gzip(const struct exchange *x)
{
	struct str accepted = x->head.accept_encoding;

	while (accepted.n) {
		struct str one = str_cut(&accepted, ','), name = str_trim(str_cut(&one, ';'));
		struct str q = str_trim(one);
		double weight = 1;

		if (str_starts(q, STR("q=")))
			str_to_f64((struct str){ q.p + 2, q.n - 2 }, &weight);
		if (str_eq_nocase(name, STR("gzip")) || str_is(name, "*"))
			return weight > 0;
	}
	return false;
}

static bool is_text(const char *type)
{
	return type && (strncmp(type, "text/", 5) == 0 || strstr(type, "json") ||
			strstr(type, "javascript") || strstr(type, "svg"));
}

static void pack(struct exchange *x)
{
	struct web_answer *a = &x->answer;
	struct buf packed = { .limit = a->body.limit, .meter = a->body.meter };

	if (!is_text(a->type) || a->body.len < PACKED_BYTES_MIN || x->is_gzip)
		return;
	exchange_add_header(x, "Vary", "Accept-Encoding");
	if (!exchange_takes_gzip(x))
		return;
	zip_gzip(buf_str(&a->body), PACKED_LEVEL, &packed);
	if (packed.is_over) { /* there is no room for both */
		buf_release(&packed);
		return;
	}
	buf_fit(&packed);
	buf_release(&a->body);
	a->body = packed;
	x->is_gzip = true;
}

/* "bytes=A-B", "bytes=A-", "bytes=-N". 1: a part, 0: not a range we know, -1: outside. */
static int range_of(struct str text, uint64_t size, uint64_t *at, uint64_t *n)
{
	uint64_t first, last = size ? size - 1 : 0;
	struct str from;

	if (!str_starts(text, STR("bytes=")) || memchr(text.p, ',', text.n))
		return 0;
	text = (struct str){ text.p + 6, text.n - 6 };
	if (!memchr(text.p, '-', text.n))
		return 0;
	from = str_cut(&text, '-');
	if (from.n && !str_to_u64(from, &first))
		return 0;
	if (text.n && !str_to_u64(text, from.n ? &last : &first))
		return 0;
	if (!from.n) {
		if (!text.n)
			return 0;
		if (first == 0 || size == 0)
			return -1;
		first = first < size ? size - first : 0;
		last = size - 1;
	}
	if (last >= size && size)
		last = size - 1;
	if (first >= size)
		return -1;
	if (first > last)
		return 0;
	*at = first;
	*n = last - first + 1;
	return 1;
}

static void choose_range(struct exchange *x)
{
	struct web_answer *a = &x->answer;
	uint64_t size;
	struct stat st;
	char text[96];
	int rc;

	if (fstat(a->fd, &st) < 0) {
		exchange_refuse(x, 500, "the file cannot be read");
		return;
	}
	size = x->file_bytes = (uint64_t)st.st_size;
	exchange_add_header(x, "Accept-Ranges", "bytes");
	if (!x->head.range.p || x->head.if_range.p || (a->status && a->status != 200))
		return;
	rc = range_of(x->head.range, size, &x->file_at, &x->file_bytes);
	snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)size);
	if (rc < 0) {
		exchange_refuse(x, 416, "the file has %llu bytes", (unsigned long long)size);
	} else if (rc > 0) {
		a->status = 206;
		snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)x->file_at,
			 (unsigned long long)(x->file_at + x->file_bytes - 1),
			 (unsigned long long)size);
	} else {
		return;
	}
	exchange_add_header(x, "Content-Range", text);
}

/* RFC 6266: a name of plain ASCII, and the name as it is. */
static void name_file(struct exchange *x)
{
	struct str name = x->answer.file_name;
	struct buf v = { 0 };

	buf_add_text(&v, "attachment; filename=\"");
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		buf_add_char(&v, c <= ' ' || c > '~' || strchr("\"\\/%:;", c) ? '_' : (char)c);
	}
	buf_add_text(&v, "\"; filename*=UTF-8''");
	url_add_encoded(&v, name);
	exchange_add_header(x, "Content-Disposition", v.data);
	buf_release(&v);
}

/* A stream keeps its connection for long, and the number of connections is limited. */
static void count_stream(struct exchange *x)
{
	unsigned own = work_count_stream(x->web, x, 1);
	int all = atomic_fetch_add(&x->web->streams, 1) + 1;

	x->is_stream_counted = true;
	if (own <= WEB_USER_STREAMS_MAX && all <= WEB_STREAMS_MAX)
		return;
	if (own > WEB_USER_STREAMS_MAX)
		exchange_refuse(x, 429, "you already have %d event streams and exports open "
				"(WEB_USER_STREAMS_MAX); close some of them", WEB_USER_STREAMS_MAX);
	else
		exchange_refuse(x, 503, "%d event streams and exports are open already "
				"(WEB_STREAMS_MAX); try again in some seconds", WEB_STREAMS_MAX);
	exchange_add_header(x, "Retry-After", "5");
	atomic_fetch_add(&x->web->refused[REFUSED_STREAMS], 1);
}

void exchange_finish(struct exchange *x)
{
	struct web_answer *a = &x->answer;

	if (a->pull && !x->is_stream_counted)
		count_stream(x);
	if (!a->status)
		a->status = 200;
	if (a->status != 304 && a->fd >= 0 && a->status < 400)
		choose_range(x);
	if (a->status >= 400 && a->fd >= 0) {
		close(a->fd);
		a->fd = -1;
	}
	if (a->file_name.n)
		name_file(x);
	if (!a->pull && a->fd < 0)
		pack(x);
	if (*x->etag && a->status < 400)
		exchange_add_header(x, "ETag", x->etag);
}

/* ---- functions of route.h for handlers ---- */

/* "+" and %XX; what cannot be decoded stays as it is. */
static struct str decode(struct arena *a, struct str s)
{
	char *plain = arena_text(a, s);
	struct buf out = { 0 };
	struct str done;

	for (size_t i = 0; i < s.n; i++)
		if (plain[i] == '+')
			plain[i] = ' ';
	done = (struct str){ plain, s.n };
	if (url_add_decoded(&out, done))
		done = arena_str(a, buf_str(&out));
	buf_release(&out);
	return done;
}

bool request_key(const struct web_request *r, struct str *rest, struct str *key)
{
	while (rest->n) {
		struct str pair = str_cut(rest, '&');

		*key = decode(r->arena, str_cut(&pair, '='));
		if (key->n)
			return true;
	}
	return false;
}

static bool find(const struct web_request *r, const char *name, struct str *value)
{
	struct str rest = r->query;

	while (rest.n) {
		struct str pair = str_cut(&rest, '&'), key = str_cut(&pair, '=');

		if (str_is(decode(r->arena, key), name)) {
			*value = decode(r->arena, pair);
			return true;
		}
	}
	return false;
}

struct str web_param(const struct web_request *r, const char *name)
{
	struct str value = STR("");

	find(r, name, &value);
	return value;
}

bool web_has_param(const struct web_request *r, const char *name)
{
	struct str value;

	return find(r, name, &value);
}

void web_bytes(struct web_answer *a, const char *type)
{
	a->type = type;
	buf_reset(&a->body);
}

void web_set_header(const struct web_request *r, struct web_answer *a, const char *name,
		    const char *value)
{
	struct web_header *h = arena_alloc(r->arena, sizeof(*h));

	h->name = name;
	h->value = arena_text(r->arena, str_of(value));
	h->next = a->header;
	a->header = h;
}
