/* SPDX-License-Identifier: Apache-2.0 */
/* web/answer.c - see exchange.h: what is answered. */
#include <math.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/zip.h"
#include "http/request.h"
#include "http/url.h"
#include "web/state.h"

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

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* It may quote the request, and is one sentence all the same. */
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	drop_answer(a);
	begin_answer(a);
	json_key(&a->json, "type");
	json_put_text(&a->json, "about:blank");
	json_key(&a->json, "title");
	json_put_text(&a->json, status == 421 ? "Misdirected Request" : http_status_reason(status));
	json_key(&a->json, "status");
	json_put_int(&a->json, status);
	json_key(&a->json, "detail");
	json_put_text(&a->json, text);
	if (a->pointer.p) {
		json_key(&a->json, "pointer");
		json_put_str(&a->json, a->pointer);
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

/* Weak comparison (RFC 9110): W/ in front makes no difference. */
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
		return err_wrap(e, "the body is no JSON");
	}
	x->request.body = v;
	return 0;
}

static void end_answer(struct exchange *x)
{
	struct web_answer *a = &x->answer;
	double ms = (double)(clock_mono_ns() - x->ready_ns) / 1e6;
	struct index_view *now = x->request.view ? NULL : store_view(x->web->store);
	uint64_t version = index_view_version(now ? now : x->request.view);

	index_view_release(now);
	json_key(&a->json, "data_version");
	json_put_int(&a->json, (int64_t)version);
	json_key(&a->json, "query_ms");
	json_put_f64(&a->json, round(ms * 1000) / 1000);
	json_end_object(&a->json);
	a->type = "application/json";
}

/* What sending needs of what lies in the route's memory, which then goes. */
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
		exchange_refuse(x, 503, "the answers to other requests, which are being made or read, take up "
				"the %lld MiB there are for all of them (WEB_ANSWERS_BYTES_MAX); ask for "
				"less, or again in some seconds", WEB_ANSWERS_BYTES_MAX >> 20);
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

	r->web = x->web;
	r->store = x->web->store;
	/* A request that changes something may wait for its turn, in which much may change. */
	r->view = x->route->flags & ROUTE_CHANGES ? NULL : store_view(r->store);
	r->arena = &x->scratch;
	r->method = x->method;
	r->path = x->raw_path;
	r->query = x->query;
	r->content_type = x->head.content_type;
	begin_answer(a);
	if (x->route->flags & ROUTE_READS)
		make_tag(x, body);
	if (*x->etag && exchange_has_tag(x, x->etag)) {
		web_bytes(a, NULL);
		a->status = 304;
	} else if (read_body(x, body, &e) < 0 || params_check(x, &e) < 0 ||
		   x->route->handle(r, a, &e) < 0) {
		unsigned status = status_of(a, &e);

		if (status == 500)
			log_say(x->web, x, "error", e.text);
		exchange_refuse(x, status, "%s", e.text);
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

/* ---- once it stands ---- */

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

/* An answer whose end is open keeps its connection for long: there are only so many. */
static void count_stream(struct exchange *x)
{
	unsigned own = work_count_stream(x->web, x, 1);
	int all = atomic_fetch_add(&x->web->streams, 1) + 1;

	x->is_stream_counted = true;
	if (own <= WEB_USER_STREAMS_MAX && all <= WEB_STREAMS_MAX)
		return;
	if (own > WEB_USER_STREAMS_MAX)
		exchange_refuse(x, 429, "%d event streams and exports of yours are open already "
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
