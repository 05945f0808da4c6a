/* SPDX-License-Identifier: Apache-2.0 */
/* web/exchange.c - see exchange.h: what comes in, and whether it may. */
#include "web/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "web/login.h"
#include "web/state.h"

#define MEMORY_BYTES 65536            /* of a body; more of it goes to a file */
#define LARGE_BYTES (1u << 20)        /* bodies that are worked off one at a time */
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

/* false: refused. */
static bool check_sender(struct exchange *x)
{
	const struct web_opts *o = &x->web->o;
	const struct exchange_head *h = &x->head;

	if (h->host.p && !auth_is_host(h->host, x->local, o->host_name, o->n_host_names))
		exchange_refuse(x, 421, "this dashboard does not answer to the name or address in "
				"the Host header; profllm dashboard --host-name NAME adds it");
	else if (!is_reading(x) && h->origin.p && !auth_is_origin(h->origin, h->host))
		exchange_refuse(x, 403, "a page of another origin may not do this");
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
		exchange_refuse(x, 415, "packed bodies are not taken; send it as it is");
		exchange_add_header(x, "Accept-Encoding", "identity");
	} else if (h->length.p && !str_to_u64(h->length, &length)) {
		exchange_refuse(x, 400, "the Content-Length is no number");
	} else if (h->length.p && h->is_chunked) {
		exchange_refuse(x, 400, "a body has a Content-Length or is chunked, not both");
	} else if (length > x->limit) {
		exchange_refuse(x, 413, "the body has %llu bytes; at most %llu are taken here",
				(unsigned long long)length, (unsigned long long)x->limit);
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

	exchange_refuse(x, is_address ? 414 : 431, "the %s long; at most %d bytes of address and headers "
			"are taken (WEB_HEAD_BYTES_MAX)%s", is_address ? "address is too" :
			"headers are too", WEB_HEAD_BYTES_MAX,
			is_address ? "; a question may be the body of a POST" : "");
}

static void not_found(struct exchange *x, const char *allow)
{
	if (*allow) {
		exchange_refuse(x, 405, "%s is not what this address takes; %s are", x->method, allow);
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
				exchange_refuse(x, 403, "this dashboard is read only");
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

/* A file without a name in the folder of jobs: $TMPDIR may be memory. -1 with errno. */
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
		snprintf(why, sizeof(why), "the body has more than the %llu bytes that are taken here",
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
		snprintf(why, sizeof(why), "the body cannot be kept: %s", strerror(errno));
		refuse_late(x, 503, why);
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
