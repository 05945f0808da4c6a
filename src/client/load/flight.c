/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.c - what happens to one request between admission and its end.
 *
 * The transport reports; this file turns reports into columns, gaps and marks
 * of the record. Everything here runs on the path a token takes: no malloc, no
 * full parse, one clock value per read (taken by the transport).
 *
 *   flight_start -> on_send -> on_sent -> on_head -> on_body... -> on_end
 *                                                     |
 *                                          token_event (one per event)
 */
#include "client/load/flight.h"

#include <assert.h>

#include "client/endpoint/whole_text.h"
#include "client/http/response.h"
#include "client/load/answer.h"
#include "client/load/follow.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define NOT_A_STREAM "the answer's Content-Type is not text/event-stream"

static struct flight *of(struct exchange *x)
{
	return (struct flight *)x;
}

/* Fails the request; only the first reason is kept. */
static void fail(struct flight *f, enum fail_category category, struct str text)
{
	if (f->is_failed)
		return;
	f->is_failed = true;
	f->row->fail = (uint8_t)category;
	record_error(f->worker->shard, f->row, text);
}

static void fail_limit(struct flight *f, const char *what, unsigned long long limit)
{
	char text[100];

	snprintf(text, sizeof(text), "%s exceeds the limit of %llu MiB", what, limit >> 20);
	fail(f, FAIL_LIMIT, str_of(text));
	f->is_cut = true;
}

/* The delay is the same for all, so the list is in order of time. */
static void give_up_later(struct flight *f)
{
	struct worker *w = f->worker;

	if (f->give_up_mono_ns)
		return; /* a retry */
	f->give_up_mono_ns = clock_mono_ns() + w->driver->opts->give_up_ns;
	f->give_up_prev = w->give_up_last;
	if (w->give_up_last)
		w->give_up_last->give_up_next = f;
	else
		w->give_up_first = f;
	w->give_up_last = f;
}

static void keep(struct flight *f)
{
	struct worker *w = f->worker;

	assert(f->give_up_mono_ns);
	assert(f->give_up_prev ? f->give_up_prev->give_up_next == f : w->give_up_first == f);
	if (f->give_up_prev)
		f->give_up_prev->give_up_next = f->give_up_next;
	else
		w->give_up_first = f->give_up_next;
	if (f->give_up_next)
		f->give_up_next->give_up_prev = f->give_up_prev;
	else
		w->give_up_last = f->give_up_prev;
	f->give_up_prev = f->give_up_next = NULL;
	f->give_up_mono_ns = 0;
}

void flight_give_up(struct worker *w, int64_t now_mono)
{
	struct flight *f;

	while ((f = w->give_up_first) && f->give_up_mono_ns <= now_mono) {
		f->row->flags |= ROW_GIVEN_UP;
		w->driver->opts->transport->cancel(w->transport, &f->x);
	}
}

static void on_send(struct exchange *x, int64_t now_ns)
{
	struct request_row *row = of(x)->row;

	assert(of(x)->is_live && row->state == REQ_WAITING && row->admitted_ns);
	if (of(x)->worker->driver->opts->is_user_stamps && x->connect_ns)
		now_ns = x->connect_ns; /* upstream's clock starts before connecting */
	if (row->sent_ns == 0)
		record_set_stamp(&row->sent_ns, now_ns); /* a retry keeps the first */
	of(x)->last_ns = row->sent_ns;
	if (of(x)->gives_up)
		give_up_later(of(x));
}

static void on_sent(struct exchange *x, int64_t now_ns)
{
	of(x)->row->sent_all_ns = now_ns;
}

static void on_head(struct exchange *x, unsigned status, bool is_event_stream, struct str head,
		    int64_t kernel_ns, int64_t user_ns)
{
	struct flight *f = of(x);
	const struct endpoint *ep = f->worker->driver->opts->endpoint;

	assert(f->is_live && f->row->sent_ns);
	f->row->status = (uint16_t)status;
	f->row->first_byte_ns = kernel_ns ? kernel_ns : user_ns;
	f->is_odd_type = !is_event_stream && ep->is_streaming && ep->framing == FRAMING_SSE;
	f->is_event_stream = status == 200 && !ep->is_pooling &&
			     (is_event_stream || ep->is_streaming);
	if (f->worker->driver->prepared->ended) {
		buf_add_str(&f->kept, head);
		f->kept_head = (uint32_t)head.n;
	}
	if (status == 200 && !f->is_event_stream) {
		buf_add_str(&f->sse.carry, head);
		f->head_bytes = (uint32_t)head.n;
	}
	if (status != 200) {
		struct str reason = http_head_reason(head);

		if (reason.n == 0)
			reason = STR("HTTP error without a reason phrase");
		fail(f, FAIL_STATUS, reason);
	}
}

/* Rows count in 32 bits; what no server can mean stays the largest there is. */
static uint32_t count_of(int64_t n)
{
	return n < (int64_t)UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Facts of a decoded message other than being a token event. */
static void note_usage(struct flight *f, const struct decoded *d)
{
	struct request_row *row = f->row;

	if (d->output_tokens > 0)
		row->output_tokens = count_of(d->output_tokens);
	if (d->prompt_tokens >= 0)
		row->prompt_tokens = count_of(d->prompt_tokens);
	if (d->cached_tokens > 0)
		row->cached_tokens = count_of(d->cached_tokens);
	if (d->cached_tokens >= 0)
		row->flags |= ROW_HAS_CACHED;
	if (d->reasoning_tokens > 0)
		row->reasoning_tokens = count_of(d->reasoning_tokens);
	row->flags |= ROW_HAS_USAGE;
}

/* Upstream looks at usage only in events without choices (serve spec 3.4). */
static void take_usage(struct flight *f, const struct decoded *d)
{
	const struct load_opts *o = f->worker->driver->opts;

	if (!(d->bits & DECODED_USAGE))
		return;
	if (!(d->bits & DECODED_TOKEN) || o->is_usage_with_choices || o->endpoint->is_ours) {
		note_usage(f, d);
		return;
	}
	if (d->prompt_tokens > 0)
		f->row->ignored_prompt_tokens = count_of(d->prompt_tokens);
	if (d->output_tokens > 0)
		f->row->ignored_output_tokens = count_of(d->output_tokens);
}

/* For APIs that repeat the whole text, keeps only the new part. */
static void take_new_text(struct flight *f, struct decoded *d)
{
	const struct load_opts *o = f->worker->driver->opts;
	const struct sample *s = o->workload ? &o->workload->v[f->row->sample] : NULL;
	bool is_last = d->bits & (DECODED_FINISH | DECODED_DONE);

	if (o->endpoint->is_prompt_echoed && !f->text_seen && s && s->kind == PROMPT_TEXT)
		f->text_seen = whole_text_prompt(d->text, s->prompt);
	d->text = whole_text_new(d->text, &f->text_seen, is_last);
	if (d->text.n)
		return;
	d->bits &= ~(unsigned)DECODED_ANSWER;
	/* A last event that repeats the text is not a token. */
	if (is_last && f->row->n_events && d->output_tokens <= (int64_t)f->running_tokens)
		d->bits &= ~(unsigned)DECODED_TOKEN;
}

/* The clock that counts for this run. */
static int64_t stamp(const struct flight *f, int64_t kernel_ns, int64_t user_ns)
{
	return kernel_ns && !f->worker->driver->opts->is_user_stamps ? kernel_ns : user_ns;
}

/* The content of the next token event, and when it came. */
static void note_content(struct flight *f, const struct decoded *d, int64_t at)
{
	struct record_shard *shard = f->worker->shard;
	struct request_row *row = f->row;

	if (!(d->bits & DECODED_CONTENT)) {
		record_mark(shard, row, MARK_EMPTY, 1);
		return;
	}
	if (!row->first_content_ns)
		row->first_content_ns = at;
	if (d->bits & DECODED_REASONING && !row->first_reasoning_ns)
		row->first_reasoning_ns = at;
	record_other_text(shard, row, d->other);
	if (d->bits & DECODED_ANSWER) {
		if (row->first_reasoning_ns && !row->first_answer_ns)
			record_mark(shard, row, MARK_ANSWER, 1);
		if (!row->first_answer_ns)
			row->first_answer_ns = at;
		record_text(shard, row, d->text);
	}
}

static void token_event(struct flight *f, const struct decoded *d, int64_t kernel_ns,
			int64_t user_ns)
{
	struct worker *w = f->worker;
	struct request_row *row = f->row;
	const struct load_opts *o = w->driver->opts;
	int64_t at = stamp(f, kernel_ns, user_ns);
	bool is_shared = f->read_user_ns == user_ns && f->read_kernel_ns == kernel_ns;

	if ((d->bits & DECODED_ROLE_ONLY) && o->is_role_chunk_skipped)
		return;
	if (at < f->last_ns) /* the clocks of two cores, or a step */
		at = f->last_ns;
	if (!row->first_event_ns) {
		record_set_stamp(&row->first_event_ns, at);
		row->user_first_event_ns = user_ns;
		row->flags |= d->bits & DECODED_ROLE_ONLY ? ROW_ROLE_FIRST : 0;
	}
	if (is_shared) {
		record_mark(w->shard, row, MARK_SHARED,
			    f->x.is_segment_stamp ? SHARED_SEGMENT : SHARED_READ);
		w->stats.reads_shared++;
	}
	w->stats.events_by_segment += f->x.is_segment_stamp;
	note_content(f, d, at);
	if (record_event(w->shard, row, at - f->last_ns, kernel_ns ? user_ns - kernel_ns : 0)) {
		row->n_shared += is_shared;
		row->n_reasoning += (d->bits & DECODED_REASONING) != 0;
		row->n_answer += (d->bits & DECODED_ANSWER) != 0;
		row->n_other += (d->bits & DECODED_OTHER) != 0;
	}
	row->last_event_ns = at;
	row->user_last_event_ns = user_ns;
	f->last_ns = at;
	f->read_user_ns = user_ns;
	f->read_kernel_ns = kernel_ns;
	atomic_store_explicit(&w->lane->tokens, w->lane->tokens + 1, memory_order_relaxed);
}

/* --compat stream-error: as upstream, neither an error in a stream nor its cut is a failure. */
static bool ignores_stream_errors(const struct flight *f)
{
	const struct load_opts *o = f->worker->driver->opts;

	return o->is_stream_error_ignored && !o->endpoint->is_error_final;
}

/* An error where an answer was promised: status 200 came before it was known. */
static void fail_by_error(struct flight *f, const struct decoded *d)
{
	char text[80];

	if (ignores_stream_errors(f))
		return;
	if (d->bits & DECODED_ERROR) {
		fail(f, FAIL_STREAM, d->text);
	} else if (d->bits & DECODED_ABORTED) {
		snprintf(text, sizeof(text), "the answer's finish_reason is \"%s\"",
			 finish_name(d->finish));
		fail(f, FAIL_STREAM, str_of(text));
	}
}

/* The end of the answer, from a decoded message. */
static void note_end(struct flight *f, const struct decoded *d)
{
	if (d->bits & DECODED_FINISH) {
		f->row->flags |= ROW_SAW_FINISH;
		f->row->finish = (uint8_t)d->finish;
	}
	if (d->bits & DECODED_DONE)
		f->row->flags |= ROW_SAW_DONE;
}

/* The text that a decoded message adds, and its counts. */
static void note_text(struct flight *f, struct decoded *d)
{
	uint64_t bytes = d->text.n + d->other.n;

	if (!(d->bits & DECODED_WHOLE_TEXT))
		f->text_bytes += bytes;
	else if (bytes > f->text_bytes)
		f->text_bytes = bytes;
	if (d->bits & DECODED_USAGE && answer_counts_refuse(f->row, f->text_bytes, d))
		f->row->flags |= ROW_USAGE_REFUSED;
}

/* Tool calls are kept only where a later request of the conversation has to repeat them. */
static void note_calls(struct flight *f, const struct decoded *d)
{
	if (!d->calls.n || !f->worker->driver->prepared->ended)
		return;
	buf_add_str(&f->kept, d->calls);
	buf_add_char(&f->kept, '\n');
}

/* name: of the event; empty where events have none. */
static void handle_event(struct flight *f, struct str name, struct str data, int64_t kernel_ns,
			 int64_t user_ns)
{
	const struct load_opts *o = f->worker->driver->opts;
	struct decoded d = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1,
			     .reasoning_tokens = -1 };
	struct err e = { 0 };
	int rc;

	if (answer_is_too_long(f->row, ++f->n_decoded, f->text_bytes, &e)) {
		fail(f, FAIL_LIMIT, str_of(e.text));
		f->is_cut = true;
		return;
	}
	rc = o->endpoint->decode(o->endpoint, data, &d, &e);
	if (str_is(name, "error") && (rc < 0 || !(d.bits & DECODED_ERROR))) {
		d = (struct decoded){ .bits = DECODED_ERROR, .text = data };
		rc = 0;
	}
	if (rc < 0) {
		record_mark(f->worker->shard, f->row, MARK_BAD_EVENT, 1);
		fail(f, FAIL_FORMAT, str_of(e.text));
		return;
	}
	fail_by_error(f, &d);
	note_text(f, &d);
	if (d.bits & DECODED_WHOLE_TEXT)
		take_new_text(f, &d);
	note_end(f, &d);
	note_calls(f, &d);
	if (d.bits & DECODED_TOKEN) {
		if ((d.bits & DECODED_USAGE) && d.output_tokens > 0 &&
		    (f->running_tokens || !f->row->n_events)) {
			/*
			 * Running counts: this event's share is the difference. A count that only
			 * comes with the last event says nothing about that event.
			 */
			int64_t more = d.output_tokens - (int64_t)f->running_tokens;

			if (more > 1)
				record_mark(f->worker->shard, f->row, MARK_TOKENS, count_of(more));
			f->running_tokens = count_of(d.output_tokens);
		}
		token_event(f, &d, kernel_ns, user_ns);
	}
	take_usage(f, &d);
}

/* Error bodies and answers that are not streams are gathered in the stream parser's buffer. */
static void gather(struct flight *f, struct str piece)
{
	struct buf *body = &f->sse.carry;
	size_t limit = f->row->status == 200 ? HTTP_BODY_BYTES_MAX : HTTP_ERROR_BODY_MAX;

	if (piece.n > limit - body->len) {
		if (f->row->status == 200)
			fail_limit(f, "the answer", HTTP_BODY_BYTES_MAX);
		piece.n = limit - body->len;
	}
	buf_add_str(body, piece);
	if (f->row->status != 200 && f->x.bytes_in > HTTP_ERROR_READ_MAX)
		f->is_cut = true; /* what it says is kept */
}

/* Parts of events and answers that are gathered are the only memory a server can make grow. */
static void count_held(struct flight *f)
{
	uint64_t held = f->sse.carry.cap + f->lines.carry.cap + f->kept.cap;

	if (held == f->held_bytes)
		return;
	f->worker->held_bytes += held - f->held_bytes;
	f->held_bytes = held;
	if (f->is_live && f->worker->held_bytes > ANSWERS_HELD_BYTES_MAX)
		fail_limit(f, "the memory for unfinished answers", ANSWERS_HELD_BYTES_MAX);
}

static void read_body(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	struct flight *f = of(x);
	struct sse_event event;
	struct str line;
	int found;

	if (!kernel_ns)
		f->row->flags |= ROW_USER_STAMPS;
	if (!f->is_event_stream) {
		f->body_ns = stamp(f, kernel_ns, user_ns);
		gather(f, piece);
		return;
	}
	if (f->worker->driver->opts->endpoint->framing == FRAMING_LINES) {
		while ((found = lines_next(&f->lines, &piece, &line)) == 1 && !f->is_cut)
			handle_event(f, (struct str){ 0 }, line, kernel_ns, user_ns);
	} else {
		while ((found = sse_next(&f->sse, &piece, &event)) == 1 && !f->is_cut)
			handle_event(f, event.name, event.data, kernel_ns, user_ns);
	}
	if (found < 0)
		fail_limit(f, "an event of the stream", SSE_EVENT_BYTES_MAX);
}

/*
 * An answer that exceeded a limit ends here: its connection is closed. A send that became due
 * during this read is made before the next socket is read.
 */
static void on_body(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	struct flight *f = of(x);
	struct worker *w = f->worker;

	assert(f->is_live && f->row->status);
	read_body(x, piece, kernel_ns, user_ns);
	count_held(f);
	if (x->bytes_in > ANSWER_WIRE_BYTES_MAX)
		fail_limit(f, "the answer", ANSWER_WIRE_BYTES_MAX);
	if (f->is_cut)
		w->driver->opts->transport->cancel(w->transport, x);
	if (user_ns >= w->next_due_real_ns)
		worker_admit(w, 1);
}

static int decode_whole(struct flight *f, struct decoded *d, struct err *e)
{
	const struct load_opts *o = f->worker->driver->opts;
	struct str all = buf_str(&f->sse.carry);
	struct answer answer = {
		.head = { all.p, f->head_bytes },
		.body = { all.p + f->head_bytes, all.n - f->head_bytes },
		.sample = o->workload ? &o->workload->v[f->row->sample] : NULL,
		.extra_body = o->extra_body,
	};

	if (!o->endpoint->decode_answer)
		return err_set(e, ERR_PARSE, "the answer is not an event stream");
	return o->endpoint->decode_answer(o->endpoint, &answer, d, e);
}

/*
 * A strict server names the keys that it does not know; they can be left out. Where it does not,
 * the keys that this request has of its own are the likely ones.
 */
static void hint_at_keys(struct flight *f)
{
	const struct workload *w = f->worker->driver->opts->workload;
	struct buf keys = { 0 }, hint = { 0 };
	struct str request = f->x.request, body;
	const char *end = request.n ? memmem(request.p, request.n, "\r\n\r\n", 4) : NULL;

	if (f->row->status < 400 || f->row->status > 499 || !end)
		return;
	body = (struct str){ end + 4, request.n - (size_t)(end + 4 - request.p) };
	body_named_keys(body, buf_str(&f->sse.carry), &keys);
	if (keys.len)
		buf_printf(&hint, "; the request has that key: --omit-body-keys %s removes it",
			   keys.data);
	else if (w && (f->row->status == 400 || f->row->status == 422))
		body_own_keys(body, w->v[f->row->sample].overrides, &keys);
	if (keys.len && !hint.len)
		buf_printf(&hint, "; this request has the additional keys %s: --omit-body-keys "
			   "removes such keys", keys.data);
	if (hint.len)
		record_error(f->worker->shard, f->row, buf_str(&hint));
	buf_release(&keys);
	buf_release(&hint);
}

static void end_body(struct flight *f, int64_t now_ns)
{
	struct sse_event event;
	struct decoded d = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1,
			     .reasoning_tokens = -1 };
	struct str line;
	struct err e;

	if (f->is_event_stream) {
		if (sse_finish(&f->sse, &event) == 1)
			handle_event(f, event.name, event.data, 0, now_ns);
		if (lines_finish(&f->lines, &line) == 1)
			handle_event(f, (struct str){ 0 }, line, 0, now_ns);
		return;
	}
	if (f->row->status != 200) {
		if (f->sse.carry.len) {
			record_error(f->worker->shard, f->row, STR("\n"));
			record_error(f->worker->shard, f->row, buf_str(&f->sse.carry));
			hint_at_keys(f);
		}
		return;
	}
	/* A complete answer, whatever its content: latency ends with its last byte. */
	if (f->worker->driver->opts->endpoint->is_pooling)
		f->row->last_event_ns = f->body_ns > f->last_ns ? f->body_ns : f->last_ns;
	if (decode_whole(f, &d, &e) < 0) {
		fail(f, FAIL_FORMAT, str_of(e.text));
		return;
	}
	fail_by_error(f, &d);
	note_text(f, &d);
	if (d.bits & DECODED_WHOLE_TEXT)
		take_new_text(f, &d);
	note_end(f, &d);
	if (d.bits & DECODED_TOKEN)
		token_event(f, &d, f->body_ns, now_ns);
	if (d.bits & DECODED_USAGE)
		note_usage(f, &d);
}

static void bump(_Atomic uint32_t *counter)
{
	atomic_store_explicit(counter, *counter + 1, memory_order_release);
}

/* First line: upstream's message. Second line: our extra detail. */
static void fail_unfinished(struct flight *f, const char *text)
{
	fail(f, f->row->first_event_ns ? FAIL_TRUNCATED : FAIL_EMPTY, str_of(text));
	if (f->is_odd_type)
		record_error(f->worker->shard, f->row, STR("\n" NOT_A_STREAM));
}

/* Why a complete HTTP answer counts as a failure; NULL when it is a success. */
static const char *why_unfinished(const struct flight *f)
{
	const char *why = f->worker->driver->opts->endpoint->finish(f->row);

	return why && f->row->first_event_ns && ignores_stream_errors(f) ? NULL : why;
}

/* Passes the answer to the caller that continues conversations, which may refuse it. */
static void hand_over(struct flight *f)
{
	const struct prepared *p = f->worker->driver->prepared;
	struct str all = buf_str(&f->kept), head = { all.p, f->kept_head };
	struct str calls = { all.p + f->kept_head, all.n - f->kept_head };
	struct err e = { 0 };
	int rc = p->ended(p->build_self, f->entry, f->row, head, calls, &e);

	if (rc != 0)
		f->row->flags |= ROW_BAD_CALL;
	if (rc < 0)
		fail(f, FAIL_FORMAT, str_of(e.text));
}

static void on_end(struct exchange *x, enum fail_category category, const char *text,
		   int64_t now_ns)
{
	struct flight *f = of(x);
	struct worker *w = f->worker;
	struct request_row *row = f->row;
	const struct driver *d = w->driver;
	const char *unfinished;

	assert(f->is_live && w->n_live > 0);
	if (row->status && (category == FAIL_NONE || (f->is_cut && row->status != 200)))
		end_body(f, now_ns);
	if (f->is_cut && category == FAIL_CANCELLED)
		category = (enum fail_category)row->fail;
	if (category != FAIL_NONE)
		fail(f, category, str_of(text));
	else if (!f->is_failed && (unfinished = why_unfinished(f)) != NULL)
		fail_unfinished(f, unfinished);
	row->end_ns = now_ns;
	row->connect_ns = x->connect_ns;
	row->connected_ns = x->connected_ns;
	if (x->connect_ns)
		row->flags |= ROW_NEW_CONNECTION;
	/* Its tokens are counted only when the server sent no count. */
	if (f->is_failed || row->output_tokens || row->ignored_output_tokens)
		record_drop_other_text(w->shard, row);
	row->answer_bytes = count_of((int64_t)x->bytes_in);
	row->attempts = row->attempts + x->attempts < UINT8_MAX ?
			(uint8_t)(row->attempts + x->attempts) : UINT8_MAX;
	if (d->prepared->ended)
		hand_over(f);
	if (f->kept.cap > STREAM_KEPT_BYTES_MAX)
		buf_release(&f->kept);
	sse_reset(&f->sse);
	lines_reset(&f->lines);
	f->is_live = false;
	count_held(f);
	f->next_free = w->free_flights;
	w->free_flights = f;
	w->n_live--;
	if (f->give_up_mono_ns)
		keep(f);
	if (d->opts->is_least_loaded)
		atomic_fetch_sub(&w->driver->live[x->endpoint], 1);
	TRACE(load, "request %u: ended after %.3f ms, %u events%s%s\n", f->entry,
	      (double)(now_ns - row->sent_ns) / 1e6, row->n_events, f->is_failed ? ", failed: " : "",
	      f->is_failed ? fail_name((enum fail_category)row->fail) : "");
	if (!d->is_followed || !follow_ended(f)) {
		bump(&w->lane->done);
		if (f->is_failed && category != FAIL_CANCELLED) {
			bump(&w->lane->failed);
			worker_failed(w, f);
		}
		record_finish(row, category == FAIL_CANCELLED ? REQ_CANCELLED
			      : f->is_failed ? REQ_FAILED : REQ_DONE);
	}
	worker_free_slot(w);
}

static const struct exchange_sink sink = {
	.on_send = on_send, .on_sent = on_sent, .on_head = on_head, .on_body = on_body,
	.on_end = on_end,
};

static struct flight *take_flight(struct worker *w)
{
	struct flight *f = w->free_flights;
	struct lines lines;
	struct sse sse;
	struct buf kept;
	uint64_t held;
	char *built;

	if (f) {
		w->free_flights = f->next_free;
	} else {
		f = slab_take(&w->flights, 1);
		assert(f); /* one per plan entry is reserved */
	}
	sse = f->sse; /* keeps its memory between requests */
	lines = f->lines;
	held = f->held_bytes;
	built = f->built;
	kept = f->kept;
	buf_reset(&kept);
	*f = (struct flight){ .worker = w, .sse = sse, .lines = lines, .held_bytes = held,
			      .built = built, .kept = kept };
	return f;
}

/* The body of an entry that depends on answers. */
static int build_body(struct worker *w, struct flight *f)
{
	const struct prepared *p = w->driver->prepared;
	struct err e = { 0 };

	buf_reset(&w->built);
	if (p->build(p->build_self, f->entry, &w->built, &e) < 0) {
		fail(f, FAIL_FORMAT, str_of(e.text));
		return -1;
	}
	/* The exchange borrows the request until its end; the copy is freed with the flight. */
	free(f->built);
	f->built = mem_copy(w->built.data, w->built.len);
	f->x.request = (struct str){ f->built, w->built.len };
	return 0;
}

/* The URL with the fewest in flight; of equals, another one each time. */
static uint16_t least_loaded(struct driver *d, uint32_t entry)
{
	unsigned n = d->opts->net.n_endpoints, best = entry % n;
	unsigned least = atomic_load(&d->live[best]);

	for (unsigned k = 1; k < n && least; k++) {
		unsigned i = (entry + k) % n, live = atomic_load(&d->live[i]);

		if (live < least) {
			least = live;
			best = i;
		}
	}
	atomic_fetch_add(&d->live[best], 1);
	return (uint16_t)best;
}

/* Puts the head of the exchange's URL in front of the rest. */
static void put_head(struct flight *f)
{
	const struct prepared *p = f->worker->driver->prepared;
	struct str head = p->head[f->x.endpoint], *all = &f->x.request;
	char *at = (char *)(uintptr_t)all->p + p->head_room - head.n;

	assert(head.n <= p->head_room && p->head_room <= all->n);
	memcpy(at, head.p, head.n);
	all->n -= (size_t)(at - all->p);
	all->p = at;
}

/* A session's later turns go where the one before went, unless each chooses. */
static uint16_t url_of(struct driver *d, const struct plan_entry *entry, uint32_t i)
{
	uint32_t before = plan_before(entry);
	uint16_t url;

	if (!d->opts->is_least_loaded)
		return entry->endpoint;
	if (before == PLAN_NONE || d->opts->is_session_spread)
		return least_loaded(d, i);
	url = d->record->row[d->first_row + before].endpoint;
	atomic_fetch_add(&d->live[url], 1);
	return url;
}

void flight_start(struct worker *w, struct pending p)
{
	struct driver *d = w->driver;
	const struct plan_entry *entry = &d->plan->entry[p.entry];
	struct flight *f = take_flight(w);
	struct request_row *row = &d->record->row[d->first_row + p.entry];

	f->entry = p.entry;
	f->client = p.client;
	f->n_retries = p.n_retries;
	f->row = row;
	f->is_live = true;
	f->x.sink = &sink;
	f->gives_up = entry->flags & PLAN_GIVES_UP;
	row->endpoint = f->x.endpoint = url_of(d, entry, p.entry);
	f->x.request = d->prepared->request[p.entry];
	assert(row->state == REQ_WAITING && row->admitted_ns == 0);
	assert(f->x.endpoint < d->opts->net.n_endpoints);
	row->shard = w->shard_index;
	row->due_ns = d->start_real_ns + (p.due_mono_ns - d->start_mono_ns);
	row->admitted_ns = clock_real_ns();
	TRACE(load, "request %u: admitted %.3f ms after it was due\n", p.entry,
	      (double)(row->admitted_ns - row->due_ns) / 1e6);
	w->n_live++;
	if (!p.n_retries)
		bump(&w->lane->admitted);
	if (d->prepared->build && f->x.request.n == 0 && build_body(w, f) < 0) {
		on_end(&f->x, FAIL_FORMAT, "the body could not be built", row->admitted_ns);
		return;
	}
	if (d->prepared->head_room)
		put_head(f);
	row->request_bytes = count_of((int64_t)f->x.request.n);
	if (d->opts->endpoint->is_pooling)
		row->flags |= ROW_IS_POOLING;
	d->opts->transport->start(w->transport, &f->x);
}

struct flight *flight_watch(struct worker *w, struct request_row *row)
{
	struct flight *f = take_flight(w);

	f->entry = f->client = PLAN_NONE;
	f->row = row;
	f->is_live = true;
	f->x.sink = &sink;
	w->n_live++;
	if (w->driver->opts->endpoint->is_pooling)
		row->flags |= ROW_IS_POOLING;
	return f;
}

void flight_cancel_all(struct worker *w)
{
	for (size_t i = 0; i < w->flights.count; i++) {
		struct flight *f = slab_at(&w->flights, i);

		if (f->is_live)
			w->driver->opts->transport->cancel(w->transport, &f->x);
	}
}

void flight_release(struct flight *f)
{
	sse_release(&f->sse);
	lines_release(&f->lines);
	buf_release(&f->kept);
	free(f->built);
}
