/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_server.h - the peer of fake_kernel.h: servers that answer well and badly, and the truth of
 * what each request met.
 *
 * An answer follows one of the run's scripts: bytes, with the offsets at which its head, its events
 * and the message are complete, or at which a reader can tell that it is malformed. As the client
 * reads, those offsets become the truth of its request: which read completed which event, with
 * which stamps. So the truth needs no parser, and is known whatever the cut of segments and reads.
 */
#pragma once
#include "client/record/record.h"
#include "fake_kernel.h"

#define SCRIPTS 48           /* of a run */
#define SCRIPT_BYTES 2048
#define SCRIPT_EVENTS 12
#define SCRIPT_SLOTS 4       /* hexadecimal digits of an event's text that name its request */
#define NEVER UINT16_MAX
#define ENTRIES_MAX 8192
#define NO_ENTRY UINT32_MAX
#define REQUEST_BYTES 128    /* of a small request and its place */
#define LARGE_ONE_IN 32
#define LARGE_BYTES 20000

enum event_kind { EVENT_TOKEN, EVENT_BAD, EVENT_ERROR, EVENT_DONE };
/* How the server goes on after the last byte of a script. */
enum script_end { END_STAY, END_FIN, END_RST, END_STALL };

struct script_event {
	uint16_t end;                  /* offset after the byte that completes it */
	uint16_t slot[SCRIPT_SLOTS];   /* offsets of the digits; 0: not there */
	uint8_t kind, text_at, text_n; /* in script.text */
};
struct script {
	char bytes[SCRIPT_BYTES], text[256];
	uint16_t n, head_at, head_end; /* head_at: after heads of status 1xx */
	uint16_t complete_at, bad_at;  /* NEVER: it never is */
	uint16_t status;
	bool is_keep, is_until_close, is_done_at_end; /* the last: [DONE] lacks its blank line */
	uint8_t end, n_events;
	struct script_event event[SCRIPT_EVENTS];
};

/* How a server ends a connection that lies idle; most close it without a word. */
enum close_kind { CLOSE_GARBAGE, CLOSE_408, CLOSE_408_RST, CLOSE_RST, CLOSE_KINDS = 10 };

enum outcome { OPEN, COMPLETE, BAD, CUT, RESET, STALE };

struct seen { int64_t at_ns, user_ns, kernel_ns; uint8_t event; };

/* What is true of a request's last attempt. Stamps are CLOCK_REALTIME. */
struct truth {
	const struct script *script;
	int64_t connect_ns, connected_ns, sent_ns, sent_all_ns, first_byte_ns, end_ns;
	int64_t last_sent_ns; /* on the last of the connections that were tried */
	uint16_t port;       /* that it was sent to */
	uint64_t bytes;
	uint32_t n_tokens, n_shared, n_sends, n_stale;
	uint8_t outcome, first_fail;
	bool is_sent, is_new, is_done, is_wild, is_ended, has_first_byte;
	struct seen seen[SCRIPT_EVENTS]; /* token events */
};

/* The server's side of a connection. */
struct side {
	const struct script *special; /* what it says without having been asked */
	uint32_t entry, served;
	uint32_t base, special_at;    /* where in rx the answer, and what is special, begin */
	size_t got, whole;            /* bytes of the request */
	int64_t close_ns;             /* an idle connection ends then; 0: not */
	uint8_t close_kind;
	bool is_over, is_usable, is_warm, is_crossed, is_gone;
	bool is_found;                /* the client has looked, and found it ended */
};

/* How the servers are, by the seed. */
static struct {
	int64_t rtt_ns, think_ns, segment_gap_ns, idle_ns;
	uint32_t idle_one_in, refuse_one_in, drop_one_in;
	bool is_loopback, is_408; /* 408: every idle connection gets that, and a reset */
	unsigned n_addr;
	uint32_t n, cap;
	struct script script[SCRIPTS], timeout_408, garbage, early;
	struct truth truth[ENTRIES_MAX];
	struct side side[FAKE_SOCKS];
	struct truth *reading;        /* whose stamps the next reading of the clock completes */
	uint32_t reading_from;
	bool is_user_stamps, is_opening;
	uint32_t active;
	uint64_t n_stale, n_reads, n_unstamped, n_found;
	uint64_t n_unconnected;       /* requests */
	int64_t start_mono_ns, late_ns; /* the latter: how late things may be */
	double due_s[ENTRIES_MAX];
} world;

static char small_requests[ENTRIES_MAX][REQUEST_BYTES];
static char large_requests[ENTRIES_MAX / LARGE_ONE_IN][LARGE_BYTES];

static struct str request_of(uint32_t entry)
{
	if (entry % LARGE_ONE_IN == LARGE_ONE_IN - 1)
		return (struct str){ large_requests[entry / LARGE_ONE_IN],
				     LARGE_BYTES - entry * 2 };
	return (struct str){ small_requests[entry], REQUEST_BYTES - entry % 32 };
}

static uint32_t entry_of(const char *p)
{
	const char *small = small_requests[0], *large = large_requests[0];

	if (p >= small && p < small + sizeof(small_requests))
		return (uint32_t)((size_t)(p - small) / REQUEST_BYTES);
	if (p >= large && p < large + sizeof(large_requests))
		return (uint32_t)((size_t)(p - large) / LARGE_BYTES) * LARGE_ONE_IN +
		       LARGE_ONE_IN - 1;
	violated("bytes are sent that are of no request");
}

/* ---- scripts ---- */

struct draft {
	struct script *s;
	char body[SCRIPT_BYTES / 2];
	uint16_t n, shorter; /* shorter: a length that is announced too small, at an event's end */
	uint16_t end[SCRIPT_EVENTS], slot[SCRIPT_EVENTS]; /* in body */
	uint16_t wire[SCRIPT_BYTES / 2 + 1];              /* of a body's offset in bytes[] */
};

static void body_add(struct draft *d, const char *text)
{
	size_t n = strlen(text);

	memcpy(d->body + d->n, text, n);
	d->n = (uint16_t)(d->n + n);
}

static void wire_add(struct script *s, const char *format, unsigned value)
{
	s->n = (uint16_t)(s->n + snprintf(s->bytes + s->n, SCRIPT_BYTES - s->n, format, value));
}

static void draft_event(struct draft *d, enum event_kind kind, bool is_crlf)
{
	static const char *const prefix[] = { "", "!", "E", "[DONE]" };
	struct script *s = d->s;
	struct script_event *e = &s->event[s->n_events];
	uint8_t text_at = s->n_events ? (uint8_t)(s->event[s->n_events - 1].text_at +
						  s->event[s->n_events - 1].text_n) : 0;

	if (one_in(8))
		body_add(d, is_crlf ? ": ping\r\n\r\n" : ": ping\n\n");
	if (one_in(8))
		body_add(d, is_crlf ? "event: part\r\n" : "event: part\n");
	body_add(d, below(4) ? "data: " : "data:");
	*e = (struct script_event){ .kind = (uint8_t)kind, .text_at = text_at };
	body_add(d, prefix[kind]);
	d->slot[s->n_events] = d->n;
	if (kind != EVENT_DONE) {
		uint32_t more = below(12);

		body_add(d, "0000");
		for (uint32_t i = 0; i < more; i++)
			body_add(d, (const char[]){ (char)('g' + below(20)), 0 });
		e->text_n = (uint8_t)(SCRIPT_SLOTS + more);
		memcpy(s->text + text_at, d->body + d->slot[s->n_events], e->text_n);
	}
	if (kind == EVENT_DONE && one_in(8)) {
		body_add(d, "\n");
		s->is_done_at_end = true;
		d->end[s->n_events++] = NEVER;
		return;
	}
	body_add(d, is_crlf ? "\r\n\r" : "\n\n");
	d->end[s->n_events++] = d->n;
	if (is_crlf)
		body_add(d, "\n");
}

static void draft_body(struct draft *d)
{
	bool is_crlf = one_in(4);
	uint32_t n = one_in(12) ? 0 : one_in(12) ? below(SCRIPT_EVENTS) : 1 + below(4);

	if (d->s->status != 200) {
		body_add(d, "{\"error\": \"not now\"}");
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		draft_event(d, one_in(64) ? EVENT_BAD : one_in(64) ? EVENT_ERROR : EVENT_TOKEN,
			    is_crlf);
		if (below(2))
			d->shorter = d->n;
	}
	if (!one_in(24))
		draft_event(d, EVENT_DONE, is_crlf);
}

enum framing_kind { CHUNKED, LENGTH, UNTIL_CLOSE, SHORTER, LONGER, BAD_CHUNK, BOTH, NO_HTTP,
		    BAD_STATUS };

static void draft_head(struct draft *d, enum framing_kind kind)
{
	struct script *s = d->s;
	bool is_close = one_in(10), is_old = kind != CHUNKED && one_in(24);
	bool says_keep = is_old && below(2);

	if (kind == NO_HTTP) {
		s->bad_at = (uint16_t)(1 + below(4)); /* the first byte that is another */
		memcpy(s->bytes, "HTTP", 4);
		s->n = 4;
		s->bytes[s->bad_at - 1] = '#';
		wire_add(s, "/1.1 %u Fine\r\n\r\n", 200);
		return;
	}
	if (one_in(16))
		wire_add(s, "HTTP/1.1 %u Continue\r\n\r\n", 100);
	s->head_at = s->n;
	wire_add(s, kind == BAD_STATUS ? "HTTP/1.1 %uX Fine\r\n" :
		 is_old ? "HTTP/1.0 %u Fine\r\n" : "HTTP/1.1 %u Fine\r\n", s->status);
	wire_add(s, below(3) ? "Content-Type: text/event-stream\r\n" : "Content-Type: x/%u\r\n", 1);
	if (kind == CHUNKED || kind == BAD_CHUNK || kind == BOTH)
		wire_add(s, "Transfer-Encoding: chunked\r\n", 0);
	if (kind == SHORTER)
		wire_add(s, "Content-Length: %u\r\n", d->shorter);
	else if (kind == LONGER)
		wire_add(s, "Content-Length: %u\r\n", d->n + 1 + below(100));
	else if (kind == LENGTH || kind == BOTH)
		wire_add(s, "Content-Length: %u\r\n", d->n);
	if (is_close || says_keep)
		wire_add(s, is_close ? "Connection: close\r\n" : "Connection: keep-alive\r\n", 0);
	wire_add(s, one_in(8) ? "\n" : "\r\n", 0);
	s->head_end = s->n;
	s->is_until_close = kind == UNTIL_CLOSE;
	s->is_keep = !is_close && (!is_old || says_keep) && kind != UNTIL_CLOSE;
	if (kind == BOTH || kind == BAD_STATUS)
		s->bad_at = s->n;
}

static void draft_plain(struct draft *d)
{
	for (uint16_t i = 0; i <= d->n; i++)
		d->wire[i] = (uint16_t)(d->s->n + i);
	memcpy(d->s->bytes + d->s->n, d->body, d->n);
	d->s->n = (uint16_t)(d->s->n + d->n);
}

static void draft_chunks(struct draft *d, bool is_bad)
{
	struct script *s = d->s;
	uint32_t most = 1 + below(one_in(4) ? 4 : 200);
	uint16_t at = 0;

	while (at < d->n) {
		uint32_t left = (uint32_t)d->n - at, n = 1 + below(most);

		n = n < left ? n : left;
		if (SCRIPT_BYTES - s->n < 2 * (int)left + 80)
			n = left; /* no room for many chunks */
		wire_add(s, below(6) ? "%x\r\n" : below(2) ? "0%X;part=1\r\n" : "%x\n", n);
		for (uint32_t i = 0; i < n; i++)
			d->wire[at + i] = (uint16_t)(s->n + i);
		memcpy(s->bytes + s->n, d->body + at, n);
		s->n = (uint16_t)(s->n + n);
		at = (uint16_t)(at + n);
		if (is_bad && (at == d->n || one_in(3))) {
			wire_add(s, below(2) ? "+" : "\r\nzz\r\n", 0);
			s->bad_at = s->n;
			break;
		}
		wire_add(s, "\r\n", 0);
	}
	if (is_bad && !d->n) {
		wire_add(s, "zz\r\n", 0);
		s->bad_at = s->n;
	}
	if (s->bad_at == NEVER)
		wire_add(s, one_in(8) ? "0\r\nX-Left: %u\r\n\r\n" : "0\r\n\r\n", 1);
}

/* Offsets in the body become offsets in what is sent. */
static void draft_places(struct draft *d, uint16_t body_end)
{
	struct script *s = d->s;

	for (unsigned i = 0; i < s->n_events; i++) {
		struct script_event *e = &s->event[i];
		bool is_there = d->end[i] <= body_end && d->wire[d->end[i] - 1];

		e->end = is_there ? (uint16_t)(d->wire[d->end[i] - 1] + 1) : NEVER;
		for (unsigned k = 0; k < SCRIPT_SLOTS && e->kind != EVENT_DONE; k++)
			e->slot[k] = d->wire[d->slot[i] + k];
	}
}

static void script_make(struct script *s)
{
	static const uint16_t refusal[] = { 400, 404, 408, 429, 500, 503 };
	static struct draft d;
	enum framing_kind kind = one_in(12) ? (enum framing_kind)(UNTIL_CLOSE + below(7))
					    : (enum framing_kind)below(2);
	uint16_t whole;

	*s = (struct script){ .complete_at = NEVER, .bad_at = NEVER, .status = 200 };
	d = (struct draft){ .s = s };
	if (one_in(10))
		s->status = refusal[below(6)];
	draft_body(&d);
	draft_head(&d, kind);
	if (kind == CHUNKED || kind == BAD_CHUNK)
		draft_chunks(&d, kind == BAD_CHUNK);
	else
		draft_plain(&d);
	if (kind == CHUNKED || kind == LENGTH)
		s->complete_at = s->n;
	if (kind == SHORTER)
		s->complete_at = (uint16_t)(s->head_end + d.shorter);
	draft_places(&d, kind == BAD_CHUNK || kind == SHORTER ? SCRIPT_BYTES : d.n);
	if (kind != LENGTH && kind != CHUNKED)
		s->is_done_at_end = s->is_done_at_end && kind == UNTIL_CLOSE;
	whole = s->n;
	if (one_in(12))
		s->n = (uint16_t)below(whole); /* it breaks off, or never begins */
	s->end = (uint8_t)(END_FIN + below(3));
	if (s->n == whole && s->complete_at != NEVER)
		s->end = END_STAY;
	if (kind == UNTIL_CLOSE && s->n < whole && s->end == END_FIN)
		s->end = END_RST; /* a close would be its end, with part of an event */
	if (s->n == whole && kind == LENGTH && one_in(24))
		wire_add(s, "more than was announced", 0);
}

/* Three that are not drawn: an idle connection's timeout, bytes without a request, a refusal. */
static void scripts_make(void)
{
	struct script plain = { .complete_at = NEVER, .bad_at = NEVER };

	for (unsigned i = 0; i < SCRIPTS; i++)
		script_make(&world.script[i]);
	world.timeout_408 = world.garbage = world.early = plain;
	world.timeout_408.status = 408;
	wire_add(&world.timeout_408, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
		 "Content-Length: %u\r\n\r\n", 300);
	world.timeout_408.head_end = world.timeout_408.n;
	memset(world.timeout_408.bytes + world.timeout_408.n, '.', 300);
	world.timeout_408.complete_at = world.timeout_408.n += 300;
	wire_add(&world.garbage, "?%u", 1);
	world.garbage.bad_at = 1;
	world.early.status = 413;
	wire_add(&world.early, "HTTP/1.1 413 Large\r\nConnection: close\r\n"
		 "Content-Length: %u\r\n\r\n", 4);
	world.early.head_end = world.early.n;
	wire_add(&world.early, "no%u.", 1);
	world.early.complete_at = world.early.n;
}

/* For who looks into a violation. */
static void tell_of(uint32_t entry)
{
	const struct truth *t = &world.truth[entry];
	const struct script *sc = t->script;

	fprintf(stderr, "# request %u: outcome %d, %u tokens, %llu bytes, written %u times%s%s\n",
		entry, t->outcome, t->n_tokens, (unsigned long long)t->bytes, t->n_sends,
		t->is_done ? ", done" : "", t->is_wild ? ", wild" : "");
	if (!sc)
		return;
	fprintf(stderr, "# its answer: %u bytes, head %u, complete %u, malformed %u, then %u\n#   ",
		sc->n, sc->head_end, sc->complete_at, sc->bad_at, sc->end);
	for (uint32_t i = 0; i < sc->n; i++)
		fprintf(stderr, sc->bytes[i] == '\n' ? "\\n" : sc->bytes[i] == '\r' ? "\\r" : "%c",
			sc->bytes[i]);
	for (unsigned i = 0; i < sc->n_events; i++)
		fprintf(stderr, "%s%u:%u", i ? " " : "\n#   events ", sc->event[i].kind,
			sc->event[i].end);
	fprintf(stderr, "\n");
}

/* ---- the server ---- */

static struct side *side_of(const struct fake_sock *s)
{
	return &world.side[sock_index(s)];
}

static void peer_connect(struct fake_sock *s)
{
	struct side *side = side_of(s);

	*side = (struct side){ .entry = NO_ENTRY, .is_warm = world.is_opening };
	if (one_in(world.drop_one_in))
		return;
	if (one_in(world.refuse_one_in)) {
		if (below(2)) {
			kernel_at(s, kernel.now_ns + world.rtt_ns, NEWS_REFUSED);
			return;
		}
		s->state = FAKE_REFUSED;
		s->error = below(2) ? ECONNREFUSED : EADDRNOTAVAIL;
		return;
	}
	if (world.is_loopback)
		s->state = FAKE_UP;
	else
		kernel_at(s, kernel.now_ns + world.rtt_ns + spread(100, world.rtt_ns), NEWS_UP);
}

static void put_digits(char *bytes, const struct script *sc, uint32_t entry)
{
	static const char digit[] = "0123456789abcdef";

	for (unsigned i = 0; i < sc->n_events; i++)
		for (unsigned k = 0; k < SCRIPT_SLOTS; k++)
			if (sc->event[i].slot[k] && sc->event[i].slot[k] < sc->n)
				bytes[sc->event[i].slot[k]] =
					digit[(entry + i * 7) >> (4 * k) & 15];
}

/* Cuts the bytes from `at` on into segments. Returns when the last one arrives. */
static int64_t put_segments(struct fake_sock *s, const struct script *sc, uint32_t at,
			    int64_t when_ns)
{
	uint32_t end = at + sc->n, last = sc->complete_at < sc->n ? at + sc->complete_at : end;
	uint32_t pieces = below(2) ? 1 : below(8) ? 1 + below(6) : FAKE_SEGMENTS - 8;
	uint32_t most = pieces > 8 ? 3 : sc->n / pieces + 1;

	for (uint32_t i = 1; i < pieces && at + 1 < last; i++) {
		at += 1 + below(most);
		if (at >= last)
			break;
		rx_segment(s, at, when_ns);
		when_ns += one_in(3) ? 1 : spread(100, world.segment_gap_ns);
	}
	rx_segment(s, end, when_ns);
	return when_ns;
}

static void say(struct fake_sock *s, const struct script *sc, int64_t when_ns)
{
	struct side *side = side_of(s);

	if (sc->n) {
		side->base = rx_add(s, sc->n);
		memcpy(s->rx + side->base, sc->bytes, sc->n);
		if (side->entry != NO_ENTRY)
			put_digits(s->rx + side->base, sc, side->entry);
		when_ns = put_segments(s, sc, side->base, when_ns);
	}
	if (sc->end == END_FIN || sc->end == END_RST) {
		side->is_gone = true;
		kernel_at(s, when_ns + 1 + below(2000),
			  sc->end == END_FIN ? NEWS_FIN : NEWS_RST);
	}
	if (sc->end != END_STAY || !one_in(world.idle_one_in))
		return;
	side->close_ns = when_ns + spread(500, world.idle_ns);
	side->close_kind = (uint8_t)(world.is_408 ? CLOSE_408_RST : below(CLOSE_KINDS));
	kernel_at(s, side->close_ns, NEWS_PEER);
}

/* An idle connection has its end, unless a request reached the server before. */
static void peer_news(struct fake_sock *s)
{
	struct side *side = side_of(s);

	if (side->close_ns != kernel.event_ns || side->is_gone)
		return;
	side->is_gone = true;
	side->close_ns = 0;
	if (side->close_kind < CLOSE_RST) {
		side->special = side->close_kind == CLOSE_GARBAGE ? &world.garbage
								  : &world.timeout_408;
		side->special_at = rx_add(s, side->special->n);
		memcpy(s->rx + side->special_at, side->special->bytes, side->special->n);
		rx_segment(s, s->rx_n, kernel.now_ns);
		if (side->entry != NO_ENTRY && !side->is_over && side->is_crossed) {
			world.truth[side->entry].script = side->special;
			side->base = side->special_at;
		}
	}
	kernel_at(s, kernel.now_ns + (side->close_kind < CLOSE_RST ? 10 : 0),
		  side->close_kind == CLOSE_RST || side->close_kind == CLOSE_408_RST ? NEWS_RST
										     : NEWS_FIN);
}

/* The client has seen the end of what it asked for, or gave it up. */
static void request_over(struct side *side, struct truth *t, enum outcome outcome)
{
	t->outcome = (uint8_t)outcome;
	side->is_over = true;
	side->is_usable = false;
	world.active--;
}

static void attempt_begins(struct fake_sock *s, struct side *side, uint32_t entry)
{
	struct truth *t = &world.truth[entry];
	int64_t due_ns = world.start_mono_ns + (int64_t)(world.due_s[entry] * 1e9);
	uint32_t n_sends = t->n_sends, n_stale = t->n_stale;
	bool is_fresh = !t->is_sent || t->is_ended; /* not the same bytes on another connection */

	if (side->served && !side->is_usable)
		violated("request %u: its connection %u cannot serve another one", entry,
			 sock_index(s));
	if (s->is_told_more)
		violated("request %u: sent on connection %u, which was known to have more to read",
			 entry, sock_index(s));
	if (s->fin_ns && kernel.now_ns - s->fin_ns > world.late_ns)
		violated("request %u: sent on connection %u, which ended %lld ns before", entry,
			 sock_index(s), (long long)(kernel.now_ns - s->fin_ns));
	if (entry >= world.n)
		violated("request %u is not part of the run", entry);
	if (kernel.now_ns < due_ns)
		violated("request %u: sent %lld ns before it is due", entry,
			 (long long)(due_ns - kernel.now_ns));
	if (!is_fresh && t->outcome != STALE)
		violated("request %u: sent again, though it has not ended", entry);
	if (world.cap && world.active >= world.cap)
		violated("request %u: the server has %u others, the limit is %u", entry,
			 world.active, world.cap);
	if (is_fresh)
		*t = (struct truth){ .sent_ns = kernel.last_real_ns, .n_stale = n_stale };
	else
		t->bytes = 0;
	world.active++;
	t->n_sends = n_sends + 1;
	t->is_sent = true;
	t->outcome = OPEN;
	t->last_sent_ns = kernel.last_real_ns;
	t->port = s->port;
	t->script = NULL;
	t->is_new = side->served == 0 && !side->is_warm;
	t->connect_ns = t->is_new ? s->connect_ns : 0;
	t->connected_ns = t->is_new ? s->connected_ns : 0;
	if (world.is_user_stamps && t->is_new && is_fresh)
		t->sent_ns = t->connect_ns;
	side->entry = entry;
	side->served++;
	side->got = 0;
	side->whole = request_of(entry).n;
	side->is_over = side->is_usable = side->is_crossed = false;
	if (side->special) {
		t->script = side->special;
		side->base = side->special_at;
	} else if (s->read < s->rx_n) { /* what the answer before had too much */
		t->is_wild = true;
	}
	/* Its close is under way already: nothing more is read there. */
	side->is_crossed = side->is_gone ||
			   (side->close_ns && kernel.now_ns + world.rtt_ns >= side->close_ns);
	if (!side->is_crossed)
		side->close_ns = 0;
}

static void peer_sent(struct fake_sock *s, const char *p, size_t n)
{
	struct side *side = side_of(s);
	uint32_t entry = entry_of(p);
	struct truth *t = &world.truth[entry];

	if (side->entry == NO_ENTRY || side->is_over)
		attempt_begins(s, side, entry);
	if (entry != side->entry || p != request_of(entry).p + side->got ||
	    side->got + n > side->whole)
		violated("connection %u: after %zu bytes of request %u come others, of request %u",
			 sock_index(s), side->got, side->entry, entry);
	side->got += n;
	if (side->got == side->whole)
		kernel.stamp_next = &t->sent_all_ns;
	if (n == 0)
		return;
	if (side->is_gone)
		kernel_at(s, kernel.now_ns + world.rtt_ns, NEWS_RST);
	if (side->is_crossed || side->is_gone || t->script || t->is_wild)
		return;
	if (side->got < side->whole && one_in(4)) {
		t->script = &world.early; /* refused before it was read, and closed */
		side->is_gone = true;
		say(s, t->script, kernel.now_ns + world.rtt_ns);
		kernel_at(s, kernel.now_ns + 2 * world.rtt_ns, NEWS_FIN);
	} else if (side->got == side->whole) {
		t->script = &world.script[below(SCRIPTS)];
		say(s, t->script, kernel.now_ns + world.rtt_ns + spread(500, world.think_ns));
	}
}

/* ---- the truth ---- */

/* A client's reading of CLOCK_REALTIME: after a read it is the user stamp of what was read. */
static void peer_stamp(int64_t real_ns)
{
	struct truth *t = world.reading;

	if (!t)
		return;
	world.reading = NULL;
	if (t->has_first_byte && !t->first_byte_ns)
		t->first_byte_ns = real_ns;
	for (uint32_t i = world.reading_from; i < t->n_tokens; i++) {
		struct seen *e = &t->seen[i];
		int64_t last = i ? e[-1].at_ns : t->sent_ns;

		e->user_ns = real_ns;
		e->at_ns = e->kernel_ns && !world.is_user_stamps ? e->kernel_ns : real_ns;
		if (e->at_ns < last)
			e->at_ns = last;
	}
}

static void event_seen(struct truth *t, unsigned i, int64_t stamp_ns)
{
	static const uint8_t fail[] = { [EVENT_BAD] = FAIL_FORMAT, [EVENT_ERROR] = FAIL_STREAM };
	uint8_t kind = t->script->event[i].kind;

	if (kind == EVENT_DONE) {
		t->is_done = true;
	} else if (kind == EVENT_TOKEN) {
		t->n_shared += t->n_tokens > world.reading_from;
		t->seen[t->n_tokens++] = (struct seen){ .kernel_ns = stamp_ns,
							.event = (uint8_t)i };
	} else if (!t->first_fail) {
		t->first_fail = fail[kind];
	}
}

static void answer_read(struct fake_sock *s, struct side *side, struct truth *t, uint32_t a,
			uint32_t b, int64_t stamp_ns)
{
	const struct script *sc = t->script;
	uint32_t limit = b < sc->bad_at ? b : sc->bad_at;
	bool was_kept = side->served > 1 || side->is_warm;

	t->bytes += b - a;
	world.reading = t;
	world.reading_from = t->n_tokens;
	if (a < sc->head_end && b >= sc->head_end && sc->bad_at > sc->head_end) {
		if (sc->status == 408 && !sc->is_keep && was_kept) {
			t->bytes = 0;
			t->n_stale++;
			world.n_stale++;
			request_over(side, t, STALE);
			return;
		}
		t->has_first_byte = true;
		t->first_byte_ns = stamp_ns;
		t->first_fail = sc->status == 200 ? FAIL_NONE : FAIL_STATUS;
	}
	limit = limit < sc->complete_at ? limit : sc->complete_at;
	for (unsigned i = 0; i < sc->n_events; i++)
		if (sc->event[i].end > a && sc->event[i].end <= limit)
			event_seen(t, i, stamp_ns);
	if (b >= sc->bad_at) {
		request_over(side, t, BAD);
	} else if (b >= sc->complete_at) {
		t->is_done |= sc->is_done_at_end;
		kernel.stamp_next = &t->end_ns;
		request_over(side, t, COMPLETE);
		side->is_usable = sc->is_keep && b == sc->complete_at && side->got == side->whole;
	}
	(void)s;
}

static void peer_read(struct fake_sock *s, uint32_t from, uint32_t to, int64_t stamp_ns)
{
	struct side *side = side_of(s);

	if (side->entry == NO_ENTRY || side->is_over) {
		side->is_usable = false; /* not requested */
		side->is_found = true;
		return;
	}
	world.n_reads++;
	world.n_unstamped += stamp_ns == 0;
	if (world.truth[side->entry].is_wild)
		return;
	answer_read(s, side, &world.truth[side->entry], from - side->base, to - side->base,
		    stamp_ns);
}

static void peer_read_end(struct fake_sock *s, bool is_reset)
{
	struct side *side = side_of(s);
	struct truth *t = &world.truth[side->entry % ENTRIES_MAX];
	bool was_kept = side->served > 1 || side->is_warm;
	const struct script *sc;

	side->is_usable = false;
	side->is_found |= side->entry == NO_ENTRY || side->is_over;
	if (side->is_found || t->is_wild)
		return;
	sc = t->script;
	kernel.stamp_next = &t->end_ns;
	if (!t->bytes && was_kept) {
		t->n_stale++;
		world.n_stale++;
		request_over(side, t, STALE);
	} else if (!is_reset && sc && sc->is_until_close && t->has_first_byte) {
		t->is_done |= sc->is_done_at_end;
		request_over(side, t, COMPLETE);
	} else {
		request_over(side, t, is_reset || !t->bytes ? RESET : CUT);
	}
}

static void peer_close(struct fake_sock *s)
{
	struct side *side = side_of(s);

	if (s->state != FAKE_UP)
		return;
	world.n_found += side->is_found;
	if (side->entry == NO_ENTRY || side->is_over)
		return;
	request_over(side, &world.truth[side->entry], OPEN);
}
