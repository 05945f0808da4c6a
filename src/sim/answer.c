/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - answers that are not streamed: one JSON body when the last token
 * is there, and what faults make of it.
 */
#include <assert.h>

#include "base/clock.h"
#include "sim/server.h"

/* ---- the body ---- */

struct ending answer_ending(const struct stream *t)
{
	int64_t now = clock_real_ns();
	int64_t first = t->first_ns ? t->first_ns : now;
	int64_t last = t->last_ns ? t->last_ns : now;

	return (struct ending){
		.output_tokens = t->done, .reasoning_tokens = t->reasoning,
		.finish_reason = counters_finish_name(t->finish),
		.stop_reason = buf_str(&t->stop_reason),
		.prefill_ns = first > t->recv_ns ? first - t->recv_ns : 0,
		.decode_ns = last > first ? last - first : 0,
	};
}

/* Tokens from..to into out, clipped at the answer's cut; at: bytes before. Returns bytes so far. */
static size_t words_write(const struct sim *s, const struct stream *t, uint32_t from, uint32_t to,
			  size_t at, struct buf *out)
{
	for (uint32_t i = from; i < to && at < t->cut; i++) {
		const struct word *w = words_at(&s->words, t->key, i);
		size_t n = w->n < t->cut - at ? w->n : t->cut - at;

		buf_add(out, w->text, n);
		at += n;
	}
	return at;
}

/* The JSON of the answer, borrowed from its form. */
static struct str generated(struct sim *s, struct stream *t)
{
	struct ending end = answer_ending(t);
	struct buf reasoning = { 0 };
	struct str json;
	size_t at;

	buf_reset(&s->text);
	at = words_write(s, t, 0, t->reasoning, 0, &reasoning);
	words_write(s, t, t->reasoning, t->total, at, &s->text);
	end.reasoning = buf_str(&reasoning);
	end.text = buf_str(&s->text);
	json = event_whole(&t->form, &end);
	buf_release(&reasoning);
	return json;
}

/* ---- sending ---- */

static struct str body_of(struct sim *s, struct stream *t)
{
	struct str body = t->is_pooled ? buf_str(&t->body) : generated(s, t);

	if (t->is_pooled && t->fault.error_at)
		body = STR("{\"error\":{\"message\":\"the engine failed on purpose\","
			   "\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}");
	if (t->fault.malformed_at && (t->is_pooled || t->fault.malformed_at <= t->total))
		body.n /= 2;
	return body;
}

static void whole_write(const struct conn *c, struct str body, struct buf *out, size_t *head)
{
	const struct stream *t = &c->stream;
	const char *extra = route_extra(c);
	struct buf lines = { 0 };

	buf_add_text(&lines, extra ? extra : "");
	buf_add_str(&lines, buf_str(&t->extra));
	http_write_head(out, 200, t->is_pooled ? t->type : "application/json", (int64_t)body.n,
			lines.len ? lines.data : NULL);
	*head = out->len;
	buf_add_str(out, body);
	buf_release(&lines);
}

static void whole_over(struct conn *c, int64_t at)
{
	struct stream *t = &c->stream;

	stream_sent(c, at, t->is_pooled ? 0 : t->total);
	if (t->is_pooled)
		t->done = 0;
	stream_over(c, t->finish);
}

/* Bytes of the answer that go out before a fault strikes; SIZE_MAX: none does. */
static size_t cut_at(const struct fault_plan *f, size_t head, size_t body)
{
	uint32_t part = f->reset_at ? f->reset_at : f->close_at;

	if (part == 0 || part > FAULT_PARTS)
		return SIZE_MAX;
	return part == 1 ? 0 : head + body * (part - 1) / FAULT_PARTS;
}

static void slow_send(struct conn *c, const struct buf *all, size_t head)
{
	const struct fault_plan *f = &c->stream.fault;
	struct str bytes = buf_str(all);

	if (!f->slow_head_ns && bytes.n > head) {
		conn_write(c, (struct str){ bytes.p, head });
		bytes = (struct str){ bytes.p + head, bytes.n - head };
	}
	trickle_start(c, bytes, f->slow_body_ns ? bytes.n : head,
		      f->slow_head_ns + f->slow_body_ns);
}

void answer_send(struct conn *c)
{
	struct stream *t = &c->stream;
	struct buf all = { 0 };
	size_t head, cut;
	int64_t at;

	assert(t->done == t->total);
	whole_write(c, body_of(c->sim, t), &all, &head);
	cut = t->is_pooled ? cut_at(&t->fault, head, all.len - head) : SIZE_MAX;
	if (cut != SIZE_MAX) {
		if (cut)
			conn_write(c, (struct str){ all.data, cut });
		if (t->fault.reset_at)
			conn_reset(c);
		else
			conn_drop(c);
		t->done = 0;
		stream_over(c, FINISH_ERROR);
	} else if (t->fault.slow_head_ns || t->fault.slow_body_ns) {
		slow_send(c, &all, head);
	} else {
		size_t half = t->fault.is_split ? all.len / 2 : 0;

		if (half)
			conn_write(c, (struct str){ all.data, half });
		at = clock_real_ns();
		conn_write(c, (struct str){ all.data + half, all.len - half });
		whole_over(c, at);
	}
	buf_release(&all);
}

void answer_trickled(struct conn *c)
{
	int64_t at = clock_real_ns();

	trickle_finish(c);
	if (!c->stream.is_streamed)
		whole_over(c, at);
}
