/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - answers that are not streamed: one JSON body when the last token
 * is there, and what faults make of it.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "json/write.h"
#include "sim/server.h"

/* ---- the body ---- */

struct ending answer_ending(const struct stream *t)
{
	const struct choice *first = t->choice;
	int64_t now = clock_real_ns();
	int64_t first_ns = first->first_ns ? first->first_ns : now;
	int64_t last_ns = first->last_ns ? first->last_ns : now;
	struct ending end = {
		.finish_reason = choice_reason(first), .stop_reason = buf_str(&first->stop_reason),
		.prefill_ns = first_ns > t->recv_ns ? first_ns - t->recv_ns : 0,
		.decode_ns = last_ns > first_ns ? last_ns - first_ns : 0,
	};

	for (uint32_t i = 0; i < t->choices; i++) {
		end.output_tokens += t->choice[i].done;
		end.reasoning_tokens += t->choice[i].reasoning;
	}
	return end;
}

/* The texts of one choice; to be released. */
struct said {
	struct buf plain, reasoning, text, calls;
};

static void said_release(struct said *v)
{
	buf_release(&v->plain);
	buf_release(&v->reasoning);
	buf_release(&v->text);
	buf_release(&v->calls);
}

/* What tokens from..to say, clipped at the choice's cut and spelled as JSON. at: bytes before. */
static size_t words_write(const struct sim *s, const struct choice *x, uint32_t from, uint32_t to,
			  size_t at, struct said *v, struct buf *out)
{
	buf_reset(&v->plain);
	for (uint32_t i = from; i < to && at < x->cut; i++) {
		struct str word = choice_text(s, x, i);

		if (word.n > x->cut - at)
			word.n = x->cut - at;
		buf_add_str(&v->plain, word);
		at += word.n;
	}
	if (v->plain.len == 0)
		return at;
	if (!x->script.parts)
		buf_add_str(out, buf_str(&v->plain));
	else
		json_quote(out, buf_str(&v->plain), true);
	return at;
}

/* A call as OpenAI's list has it; its arguments are what of them was generated. */
static void call_write(const struct sim *s, const struct choice *x, const struct script_part *p,
		       struct said *v)
{
	uint32_t from = x->reasoning + p->token_end, to = from;
	struct str name = { x->script.text.data + p->name_at, p->name_n };
	bool has_arguments = p + 1 < x->script.part + x->script.parts &&
			     p[1].kind == SCRIPT_ARGUMENTS;

	if (has_arguments)
		to = x->reasoning + p[1].token_end;
	buf_printf(&v->calls, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":",
		   v->calls.len ? "," : "", p->call_id);
	json_quote(&v->calls, name, true);
	buf_add_text(&v->calls, ",\"arguments\":");
	if (from < x->total && from < to)
		words_write(s, x, from, to < x->total ? to : x->total, 0, v, &v->calls);
	else
		buf_add_text(&v->calls, "\"\"");
	buf_add_text(&v->calls, "}}");
}

/* Without the quotes that json_quote puts around it. */
static struct str bare(const struct buf *b)
{
	bool is_quoted = b->len >= 2 && b->data[0] == '"';

	return is_quoted ? (struct str){ b->data + 1, b->len - 2 } : buf_str(b);
}

/* Fills the texts of one choice's ending; they live as long as v. */
static void choice_say(const struct sim *s, const struct choice *x, struct said *v,
		       struct ending *end)
{
	size_t at;

	if (x->reasoning)
		at = words_write(s, x, 0, x->reasoning, 0, v, &v->reasoning);
	else
		at = 0;
	for (uint32_t i = 0, from = x->reasoning; i < x->script.parts && from < x->total; i++) {
		const struct script_part *p = &x->script.part[i];

		if (p->kind == SCRIPT_CALL && x->reasoning + p->token_end <= x->total)
			call_write(s, x, p, v);
		from = x->reasoning + p->token_end;
	}
	if (x->script.calls == 0)
		words_write(s, x, x->reasoning, x->total, at, v, &v->text);
	end->reasoning = bare(&v->reasoning);
	end->text = bare(&v->text);
	end->calls = buf_str(&v->calls);
}

/* The JSON of the answer, borrowed from its form. */
static struct str generated(struct sim *s, struct stream *t)
{
	struct ending *end = mem_array(t->choices, sizeof(*end));
	struct said *said = mem_array(t->choices, sizeof(*said));
	struct str json;

	end[0] = answer_ending(t);
	for (uint32_t i = 0; i < t->choices; i++) {
		const struct choice *x = &t->choice[i];

		end[i].finish_reason = choice_reason(x);
		end[i].stop_reason = buf_str(&x->stop_reason);
		choice_say(s, x, &said[i], &end[i]);
		if (i)
			end[i - 1].next = &end[i];
	}
	json = event_whole(&t->form, end);
	for (uint32_t i = 0; i < t->choices; i++)
		said_release(&said[i]);
	free(said);
	free(end);
	return json;
}

/* ---- sending ---- */

static struct str body_of(struct sim *s, struct stream *t)
{
	struct str body = t->is_pooled ? buf_str(&t->body) : generated(s, t);

	if (t->is_pooled && t->fault.error_at)
		body = STR("{\"error\":{\"message\":\"the engine failed on purpose\","
			   "\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}");
	if (t->fault.malformed_at &&
	    (t->is_pooled || t->fault.malformed_at <= t->choice->total))
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

	for (uint32_t i = 0; i < t->choices; i++)
		stream_sent(&t->choice[i], at, t->is_pooled ? 0 : t->choice[i].total);
	if (t->is_pooled)
		t->choice->done = 0;
	stream_over(c, t->choice->finish);
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

	assert(t->left == 0);
	whole_write(c, body_of(c->sim, t), &all, &head);
	cut = t->is_pooled ? cut_at(&t->fault, head, all.len - head) : SIZE_MAX;
	if (cut != SIZE_MAX) {
		if (cut)
			conn_write(c, (struct str){ all.data, cut });
		if (t->fault.reset_at)
			conn_reset(c);
		else
			conn_drop(c);
		t->choice->done = 0;
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
