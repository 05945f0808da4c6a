/* SPDX-License-Identifier: Apache-2.0 */
/* observe.c - see observe.h. */
#include "bench/serve/observe.h"

#include <assert.h>
#include <math.h>

#include "bench/serve/point_internal.h"
#include "client/endpoint/endpoint.h"
#include "client/http/request.h"
#include "client/http/response.h"
#include "client/load/watch.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "version.h"

#define WATCHES_MAX 16

/* The APIs that generate text, by the ends of their paths; the longer ones first. */
static const struct route {
	const char *suffix, *streamed;  /* the API of a stream, by its --backend */
	const struct endpoint *whole;   /* of an answer in one piece; NULL: not supported */
} routes[] = {
	{ "/chat/completions", "openai-chat", &endpoint_whole_chat },
	{ "/completions", "openai", &endpoint_whole_completions },
	{ "/messages", "anthropic", NULL },
	{ "/responses", "openai-responses", NULL },
	{ "/api/generate", "ollama", NULL },
	{ "/api/chat", "ollama-chat", NULL },
	{ "/generate_stream", "tgi", NULL },
	{ "/generate", "sglang", NULL },
	{ "/completion", "llamacpp", NULL },
};

/* A request that waits for its answer, or for the rest of it. */
struct asked {
	struct asked *next;
	struct request_row *row; /* NULL: it is left out */
	const struct endpoint *streamed, *whole;
	struct exchange *x;      /* once its answer has begun */
	struct buf body;
	int64_t sent_ns, sent_all_ns;
	int64_t connect_ns, connected_ns;
	bool is_head, has_all;
};

struct dialog {
	struct observer *o;
	struct http_request request;
	struct http_response response;
	struct buf carry[2];     /* of an incomplete head or chunk line, by enum stream_side */
	struct asked *first, *last;
	unsigned n_asked;
	int64_t begun_ns;        /* stamp of the next request's first byte */
	int64_t connect_ns, connected_ns; /* until the first request */
	uint16_t server;
	bool is_unreadable;
};

struct observer {
	struct observe_opts opts;
	struct streams *streams;
	struct record record;
	struct record_info info;
	struct { const struct endpoint *endpoint; struct watch *watch; } watch[WATCHES_MAX];
	size_t n_watches;
	struct stream_peer server[ENDPOINTS_MAX];
	unsigned n_servers;
	struct report_capture counts;
	char *model;
	bool has_models;
	struct buf meta;
	struct arena arena;
};

/* ---- answers ---- */

static struct watch *watch_of(struct observer *o, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < o->n_watches; i++)
		if (o->watch[i].endpoint == endpoint)
			return o->watch[i].watch;
	if (o->n_watches == WATCHES_MAX)
		return NULL;
	o->watch[o->n_watches].endpoint = endpoint;
	o->watch[o->n_watches].watch = watch_new(endpoint, &o->record, NULL);
	return o->watch[o->n_watches++].watch;
}

/* Marks the row as not part of the run. */
static void leave_out(struct asked *a)
{
	if (a->row)
		record_finish(a->row, REQ_UNSENT);
	a->row = NULL;
}

static void begin_flight(struct observer *o, struct asked *a, const struct endpoint *endpoint)
{
	struct watch *w = watch_of(o, endpoint);

	assert(a->row && !a->x);
	a->x = w ? watch_flight(w, a->row, a->sent_ns, &a->x) : NULL;
	if (!a->x) {
		o->counts.beyond++;
		leave_out(a);
		return;
	}
	a->x->connect_ns = a->connect_ns;
	a->x->connected_ns = a->connected_ns;
	if (a->has_all)
		a->x->sink->on_sent(a->x, a->sent_all_ns);
}

static void free_asked(struct asked *a)
{
	buf_release(&a->body);
	free(a);
}

static struct asked *pop(struct dialog *d)
{
	struct asked *a = d->first;

	d->first = a->next;
	if (!d->first)
		d->last = NULL;
	d->n_asked--;
	return a;
}

/* Whether the answer is an event stream, or lines of JSON where the API has those. */
static bool is_stream(const struct endpoint *ep, const struct http_response *r, struct str head)
{
	struct str type = http_head_value(head, "Content-Type");

	if (r->status != 200 || !ep->is_streaming || r->is_event_stream)
		return true;
	return ep->framing == FRAMING_LINES && r->is_chunked &&
	       !str_starts(type, STR("text/html"));
}

static void on_head(struct dialog *d, struct asked *a, struct str head, int64_t stamp_ns)
{
	struct observer *o = d->o;

	if (!a->row)
		return;
	if (is_stream(a->streamed, &d->response, head)) {
		begin_flight(o, a, a->streamed);
	} else if (a->whole) {
		o->counts.whole++;
		begin_flight(o, a, a->whole);
	} else {
		o->counts.unread++;
		leave_out(a);
	}
	if (a->x)
		a->x->sink->on_head(a->x, d->response.status, d->response.is_event_stream, head,
				    stamp_ns, stamp_ns);
}

/* Handles one part found in the answer. False: there is nothing more to look for. */
static bool take_found(struct dialog *d, enum http_found found, struct str part, int64_t stamp_ns,
		       const struct err *e)
{
	struct asked *a = d->first;

	switch (found) {
	case HTTP_HEAD:
		on_head(d, a, part, stamp_ns);
		return true;
	case HTTP_BODY:
		if (a->x)
			a->x->sink->on_body(a->x, part, stamp_ns, stamp_ns);
		return true;
	case HTTP_END:
		if (a->x)
			a->x->sink->on_end(a->x, FAIL_NONE, "", stamp_ns);
		free_asked(pop(d));
		return d->first != NULL;
	case HTTP_BAD:
		if (a->row && !a->x)
			begin_flight(d->o, a, a->streamed);
		if (a->x)
			a->x->sink->on_end(a->x, FAIL_PROTOCOL, e->text, stamp_ns);
		free_asked(pop(d));
		d->is_unreadable = true;
		return false;
	default:
		return false;
	}
}

static bool take_answer(struct dialog *d, struct str in, int64_t stamp_ns)
{
	struct buf *carry = &d->carry[SIDE_SERVER];
	bool is_carried = carry->len > 0, goes_on = true;
	struct str part;
	struct err e;

	if (is_carried) {
		buf_add_str(carry, in);
		in = buf_str(carry);
	}
	while (d->first && goes_on) {
		struct str before = in;
		enum http_found found;

		d->response.is_head_request = d->first->is_head;
		found = http_response_next(&d->response, &in, &part, &e);
		if (d->first->x)
			d->first->x->bytes_in += before.n - in.n;
		goes_on = take_found(d, found, part, stamp_ns, &e);
	}
	/* An answer without a request cannot be assigned, and neither can what follows. */
	if (!d->first && in.n)
		return false;
	if (is_carried)
		buf_cut(carry, carry->len - in.n);
	else if (in.n)
		buf_add_str(carry, in);
	return !d->is_unreadable;
}

/* ---- requests ---- */

/* Finds the API by the path; false: it is not one that is read. */
static bool find_api(const struct observer *o, struct str method, struct str target,
		     struct asked *a)
{
	struct str path = str_cut(&target, '?');
	const struct endpoint *backend = o->opts.backend;

	if (!str_is(method, "POST"))
		return false;
	if (backend && !str_ends(path, str_of(backend->suffix)) &&
	    !(backend->other_suffix && str_ends(path, str_of(backend->other_suffix))))
		return false;
	a->streamed = backend;
	a->whole = backend && backend->decode_answer ? backend : NULL;
	for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
		if (!str_ends(path, str_of(routes[i].suffix)))
			continue;
		if (!a->streamed)
			a->streamed = endpoint_find(routes[i].streamed);
		if (!a->whole && strcmp(a->streamed->suffix,
					endpoint_find(routes[i].streamed)->suffix) == 0)
			a->whole = routes[i].whole;
		break;
	}
	return a->streamed != NULL;
}

static void begin_request(struct dialog *d, struct str head)
{
	struct observer *o = d->o;
	struct asked *a = mem_alloc(sizeof(*a));

	a->sent_ns = d->begun_ns;
	a->is_head = str_is(d->request.method, "HEAD");
	if (d->last)
		d->last->next = a;
	else
		d->first = a;
	d->last = a;
	d->n_asked++;
	if (!find_api(o, d->request.method, d->request.target, a)) {
		o->counts.other++;
	} else if (o->record.n_rows == o->record.rows_cap) {
		o->counts.beyond++;
	} else {
		a->row = &o->record.row[record_add_rows(&o->record, 1)];
		a->row->endpoint = d->server;
		a->row->request_bytes = (uint32_t)head.n;
		a->connect_ns = d->connect_ns;
		a->connected_ns = d->connected_ns;
	}
	d->connect_ns = d->connected_ns = 0;
}

static void note_model(struct observer *o, struct json_slice v)
{
	if (v.kind != JSON_STRING)
		return;
	if (!o->model)
		o->model = mem_copy(v.raw.p, v.raw.n);
	else if (!str_is(v.raw, o->model))
		o->has_models = true;
}

/* Reads from the body which kind of answer is wanted. */
static void end_request(struct observer *o, struct asked *a, int64_t stamp_ns)
{
	static const char *const lengths[] = { "max_completion_tokens", "max_tokens",
		"max_output_tokens", "max_new_tokens", "n_predict" };
	struct json_scan scan = { .text = buf_str(&a->body) };
	struct json_slice body, v, inner;
	int64_t n;

	a->sent_all_ns = stamp_ns;
	a->has_all = true;
	if (a->x)
		a->x->sink->on_sent(a->x, stamp_ns);
	if (!a->row || !a->body.len || json_next(&scan, &body, NULL) < 0 ||
	    body.kind != JSON_OBJECT)
		return;
	if (json_member(body, "model", &v))
		note_model(o, v);
	if (!json_member(body, "sampling_params", &inner) &&
	    !json_member(body, "parameters", &inner))
		inner = body;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths) && !a->row->asked_tokens; i++)
		if ((json_member(body, lengths[i], &v) || json_member(inner, lengths[i], &v)) &&
		    json_to_i64(v, &n) && n > 0 && n <= LENGTH_TOKENS_MAX)
			a->row->asked_tokens = (uint32_t)n;
	buf_release(&a->body);
}

static void add_body(struct asked *a, struct str part)
{
	if (!a->row)
		return;
	a->row->request_bytes += (uint32_t)part.n;
	if (part.n <= OBSERVED_BODY_BYTES_MAX - a->body.len)
		buf_add_str(&a->body, part);
}

static bool take_request(struct dialog *d, struct str in, int64_t stamp_ns)
{
	struct buf *carry = &d->carry[SIDE_CLIENT];
	bool is_carried = carry->len > 0;
	struct str part;
	struct err e;

	if (is_carried) {
		buf_add_str(carry, in);
		in = buf_str(carry);
	} else if (http_request_is_between(&d->request)) {
		d->begun_ns = stamp_ns;
	}
	for (;;) {
		switch (http_request_next(&d->request, &in, &part, &e)) {
		case HTTP_HEAD:
			if (d->n_asked == OBSERVED_PIPELINED_MAX)
				return false;
			begin_request(d, part);
			break;
		case HTTP_BODY:
			if (d->last)
				add_body(d->last, part);
			break;
		case HTTP_END:
			/* An answer may be complete before its request is. */
			if (d->last && !d->last->has_all)
				end_request(d->o, d->last, stamp_ns);
			d->begun_ns = stamp_ns;
			break;
		case HTTP_NEED:
			if (is_carried)
				buf_cut(carry, carry->len - in.n);
			else if (in.n)
				buf_add_str(carry, in);
			return true;
		case HTTP_BAD:
			d->is_unreadable = true;
			return false;
		}
	}
}

/* ---- connections ---- */

/* The server's index; servers beyond the limit share the last one. */
static uint16_t server_index(struct observer *o, const struct stream_peer *p)
{
	for (unsigned i = 0; i < o->n_servers; i++)
		if (o->server[i].port == p->port && o->server[i].is_ipv6 == p->is_ipv6 &&
		    memcmp(o->server[i].addr, p->addr, sizeof(p->addr)) == 0)
			return (uint16_t)i;
	if (o->n_servers == ENDPOINTS_MAX)
		return ENDPOINTS_MAX - 1;
	o->server[o->n_servers] = *p;
	return (uint16_t)o->n_servers++;
}

static void *opened(void *self, const struct stream_peer *server, int64_t connect_ns,
		    int64_t connected_ns)
{
	struct dialog *d = mem_alloc(sizeof(*d));

	d->o = self;
	d->server = server_index(self, server);
	d->connect_ns = connect_ns;
	d->connected_ns = connect_ns ? connected_ns : 0;
	return d;
}

static bool bytes(void *self, void *connection, enum stream_side from, struct str in,
		  int64_t stamp_ns)
{
	(void)self;
	return from == SIDE_CLIENT ? take_request(connection, in, stamp_ns)
				   : take_answer(connection, in, stamp_ns);
}

static const struct { enum fail_category fail; const char *text; } endings[] = {
	[STREAM_CLOSED] = { FAIL_TRUNCATED,
		"the server closed the connection before the answer was complete" },
	[STREAM_RESET] = { FAIL_RESET,
		"the server reset the connection before the answer was complete" },
	[STREAM_ABANDONED] = { FAIL_CANCELLED,
		"the client closed the connection before the answer was complete" },
	[STREAM_LOST] = { FAIL_CANCELLED, "the capture lacks packets of this connection" },
	[STREAM_CUT] = { FAIL_CANCELLED, "the capture ended before the answer was complete" },
};

static void end_asked(struct dialog *d, struct asked *a, enum stream_end why, int64_t stamp_ns)
{
	struct report_capture *n = &d->o->counts;
	struct err e;

	if (why == STREAM_CLOSED && a->x && a->x->bytes_in &&
	    http_response_eof(&d->response, &e) == 0) {
		a->x->sink->on_end(a->x, FAIL_NONE, "", stamp_ns);
		return;
	}
	if (a->row && !a->x && a->row->state == REQ_WAITING)
		begin_flight(d->o, a, a->streamed);
	if (!a->x)
		return;
	n->lost += why == STREAM_LOST;
	n->cut += why == STREAM_CUT;
	n->abandoned += why == STREAM_ABANDONED;
	a->x->sink->on_end(a->x, endings[why].fail, endings[why].text, stamp_ns);
}

static void ended(void *self, void *connection, enum stream_end why, int64_t stamp_ns)
{
	struct dialog *d = connection;

	(void)self;
	while (d->first) {
		struct asked *a = pop(d);

		end_asked(d, a, why, stamp_ns);
		free_asked(a);
	}
	buf_release(&d->carry[SIDE_CLIENT]);
	buf_release(&d->carry[SIDE_SERVER]);
	free(d);
}

/* ---- the whole ---- */

struct observer *observer_new(const struct observe_opts *opts, struct err *e)
{
	struct observer *o = mem_alloc(sizeof(*o));
	const struct stream_hooks hooks = { o, opened, bytes, ended };

	o->opts = *opts;
	if (record_init(&o->record, opts->requests_max, 1, 0, false, opts->keeps_text, e) < 0) {
		free(o);
		return NULL;
	}
	record_info_here(&o->info, 0, 1);
	o->streams = streams_new(&opts->filter, &hooks);
	return o;
}

void observer_free(struct observer *o)
{
	if (!o)
		return;
	streams_finish(o->streams);
	streams_free(o->streams);
	for (size_t i = 0; i < o->n_watches; i++)
		watch_free(o->watch[i].watch);
	record_release(&o->record);
	record_info_release(&o->info);
	buf_release(&o->meta);
	arena_release(&o->arena);
	free(o->model);
	free(o);
}

void observer_packet(struct observer *o, struct str packet, size_t wire_bytes, int64_t stamp_ns)
{
	streams_packet(o->streams, packet, wire_bytes, stamp_ns);
}

uint32_t observer_requests(const struct observer *o)
{
	return o->record.n_rows;
}

struct record *observer_record(struct observer *o)
{
	return &o->record;
}

struct record_info *observer_info(struct observer *o)
{
	return &o->info;
}

/* Events with content, plus the extra tokens that running counts show for some of them. */
static uint32_t tokens_by_events(const struct record *r, const struct request_row *row)
{
	const struct record_mark *m = NULL;
	uint64_t tokens = row->n_events;

	while ((m = record_marks(r, row, m)) != NULL) {
		tokens -= m->kind == MARK_EMPTY;
		tokens += m->kind == MARK_TOKENS ? m->value - 1 : 0;
	}
	return tokens < 1 ? 1 : tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
}

/* Sets the run's start and end: the first request and the last end. */
static void set_times(struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];

		if (row->state == REQ_UNSENT)
			continue;
		if (!r->start_ns || row->sent_ns < r->start_ns)
			r->start_ns = row->sent_ns;
		if (row->end_ns > r->stop_ns)
			r->stop_ns = row->end_ns;
	}
	for (uint32_t i = 0; i < r->n_rows; i++)
		if (r->row[i].state != REQ_UNSENT)
			r->row[i].due_s = (double)(r->row[i].sent_ns - r->start_ns) / 1e9;
}

static void count_tokens(struct observer *o, const struct tokenizer *t)
{
	struct record *r = &o->record;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct request_row *row = &r->row[i];

		if (row->state != REQ_DONE)
			continue;
		o->counts.without_usage += !(row->flags & ROW_HAS_USAGE);
		if (t || row->output_tokens || row->flags & ROW_IS_POOLING)
			continue;
		row->output_tokens = tokens_by_events(r, row);
		o->counts.counted++;
	}
	count_missing(r, t, true);
}

static const char *server_list(struct observer *o)
{
	char text[STREAM_PEER_BYTES];
	struct buf all = { 0 };
	const char *list;

	for (unsigned i = 0; i < o->n_servers; i++)
		buf_printf(&all, "%shttp://%s", i ? "\n" : "", stream_peer_text(text, &o->server[i]));
	list = arena_text(&o->arena, buf_str(&all));
	buf_release(&all);
	return list;
}

static uint64_t count_events(const struct observer *o)
{
	uint64_t n = 0;

	for (size_t i = 0; i < o->n_watches; i++)
		n += o->watch[i].watch ? watch_events(o->watch[i].watch) : 0;
	return n;
}

static const char *backend_name(const struct observer *o)
{
	if (o->opts.backend)
		return o->opts.backend->name;
	return o->n_watches == 1 ? o->watch[0].endpoint->name : "several";
}

static uint32_t count_rows(const struct record *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++)
		n += r->row[i].state != REQ_UNSENT;
	return n;
}

static void take_stream_stats(struct report_capture *n, const struct stream_stats *s)
{
	n->packets = s->packets;
	n->holes = s->holes;
	n->connections = s->connections;
	n->joined = s->joined;
	n->cut_packets = s->cut_packets;
	n->tls = s->tls;
	n->http2 = s->http2;
}

void observer_score(struct observer *o, const struct tokenizer *t, const char *source,
		    uint64_t dropped, struct report_meta *meta)
{
	struct report_capture *n = &o->counts;

	streams_finish(o->streams);
	take_stream_stats(n, streams_stats(o->streams));
	n->source = source;
	n->dropped = dropped;
	set_times(&o->record);
	count_tokens(o, t);
	meta->opts.has_tokenizer = true; /* answers have counts, by usage, text or events */
	meta->opts.is_pooling = o->opts.backend && o->opts.backend->is_pooling;
	meta->trust.is_kernel_stamped = true;
	meta->trust.capture_dropped = dropped;
	meta->trust.capture_lost = n->lost;
	meta->trust.is_capture = true;
	meta->trust.capture_counted = n->counted;
	meta->trust.capture_prompts = n->without_usage;
	meta->facts.backend = backend_name(o);
	meta->facts.model_id = o->has_models ? "several models" : o->model;
	meta->facts.num_prompts = count_rows(&o->record);
	meta->facts.request_rate = INFINITY;
	meta->facts.burstiness = 1;
	meta->facts.version = PROFLLM_VERSION;
	meta->facts.transport = "capture";
	meta->facts.http_version = "1.1";
	meta->facts.capture = *n;
	meta->facts.segments.events = count_events(o);
	meta->facts.segments.dropped = dropped;
	meta->facts.load.urls = o->n_servers > 1 ? server_list(o) : NULL;
	meta->facts.load.ideal_hit_rate = meta->facts.load.prefix_exact = -1;
	meta->facts.load.reuse.ideal = -1;
	report_date(meta->facts.date, o->record.stop_ns);
	record_info_stop(&o->info);
	report_meta_write(meta, &o->meta);
	o->record.meta = o->meta.data;
}

int observer_check(const struct observer *o, struct err *e)
{
	const struct report_capture *n = &o->counts;

	if (count_rows(&o->record))
		return 0;
	if (n->tls)
		return err_set(e, ERR_RUN, "the traffic of these ports is encrypted (TLS), so its requests "
			       "cannot be read: capture it where it is plain, between the proxy that ends "
			       "TLS and the server");
	if (n->http2)
		return err_set(e, ERR_RUN, "the traffic of these ports is HTTP/2, which is not read here: "
			       "capture it where it is HTTP/1.1, between the proxy and the server");
	if (n->unread)
		return err_set(e, ERR_RUN, "the %u answers of a generation API that were seen came in one "
			       "piece, and of their API only streams are read", n->unread);
	if (n->other)
		return err_set(e, ERR_RUN, "none of the %u requests that were seen is one of a generation "
			       "API; --backend names the API where the path does not", n->other);
	if (n->packets)
		return err_set(e, ERR_RUN, "%llu packets of these ports were seen and no HTTP request "
			       "among them", (unsigned long long)n->packets);
	return err_set(e, ERR_RUN, "no packet of these ports was seen: check --port%s",
		       o->opts.filter.has_host ? " and --host" : "");
}
