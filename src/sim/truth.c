/* SPDX-License-Identifier: Apache-2.0 */
/* truth.c - see truth.h. */
#include "sim/truth.h"

#include <inttypes.h>

#include "base/mem.h"
#include "json/write.h"

#define FLUSH_BYTES 16384 /* one share of spelling and writing: below 50 us */

struct truth_row *truth_row_new(const char *request_id, int64_t recv_ns)
{
	struct truth_row *r = mem_alloc(sizeof(*r));

	r->request_id = mem_text(request_id);
	r->recv_ns = recv_ns;
	r->status = 200;
	return r;
}

void truth_row_free(struct truth_row *r)
{
	if (!r)
		return;
	free(r->request_id);
	free(r->send_ns);
	free(r->tokens);
	free(r->choice);
	free(r);
}

void truth_event(struct truth_row *r, int64_t at_ns, uint32_t tokens)
{
	if (r->events == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 64;
		r->send_ns = mem_grow(r->send_ns, r->cap, sizeof(*r->send_ns));
		r->tokens = mem_grow(r->tokens, r->cap, sizeof(*r->tokens));
	}
	r->send_ns[r->events] = at_ns;
	r->tokens[r->events++] = tokens;
}

void truth_choice(struct truth_row *r, size_t i, const struct truth_choice *c)
{
	if (i >= r->choices) {
		r->choice = mem_grow(r->choice, i + 1, sizeof(*r->choice));
		while (r->choices <= i)
			r->choice[r->choices++] = (struct truth_choice){ 0 };
	}
	r->choice[i] = *c;
}

void truth_end(struct truth *t, struct truth_row *r)
{
	r->next = NULL;
	if (t->last)
		t->last->next = r;
	else
		t->first = r;
	t->last = r;
}

static void number(struct buf *out, uint64_t v)
{
	char text[20];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + v % 10);
	while (v /= 10);
	buf_add(out, text + at, sizeof(text) - at);
}

static void faults_write(const struct fault_set *set, uint64_t hit, struct buf *out)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < set->n; i++) {
		if (!(hit & 1ull << i))
			continue;
		if (names.len)
			buf_add_char(&names, ',');
		buf_add_text(&names, set->fault[i].text);
	}
	json_quote(out, buf_str(&names), false);
	buf_release(&names);
}

static void quoted_or_null(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, text ? ", \"%s\": \"%s\"" : ", \"%s\": null", key, text);
}

/* Nothing of an answer of words alone, which the row itself describes. */
static void choices_write(const struct truth_row *r, struct buf *out)
{
	const struct truth_choice *c = r->choice;

	if (r->choices == 0 || (r->choices == 1 && !c->constraint && !c->calls))
		return;
	buf_add_text(out, ", \"choices\": [");
	for (size_t i = 0; i < r->choices; i++, c++) {
		buf_printf(out, "%s{\"output_tokens\": %" PRIu32 ", \"finish\": \"%s\"", i ? ", " : "",
			   c->output_tokens, counters_finish_name(c->finish));
		quoted_or_null(out, "constraint", c->constraint);
		quoted_or_null(out, "mistake", c->mistake);
		buf_printf(out, ", \"tool_calls\": %" PRIu32 ", \"malformed\": %" PRIu32 "}",
			   c->calls, c->malformed);
	}
	buf_add_char(out, ']');
}

static void row_write(const struct truth *t, const struct truth_row *r, struct buf *out)
{
	buf_add_text(out, "{\"request_id\": ");
	if (r->request_id)
		json_quote(out, str_of(r->request_id), false);
	else
		buf_add_text(out, "null");
	buf_printf(out, ", \"recv_ns\": %" PRId64 ", \"send_ns\": [", r->recv_ns);
	for (size_t i = 0; i < r->events; i++) {
		if (i)
			buf_add_text(out, ", ");
		number(out, (uint64_t)r->send_ns[i]);
	}
	buf_add_text(out, "], \"tokens\": [");
	for (size_t i = 0; i < r->events; i++) {
		if (i)
			buf_add_text(out, ", ");
		number(out, r->tokens[i]);
	}
	buf_add_text(out, "], \"end_ns\": ");
	if (r->end_ns)
		number(out, (uint64_t)r->end_ns);
	else
		buf_add_text(out, "null");
	buf_printf(out, ", \"prompt_tokens\": %" PRIu32 ", \"cached_tokens\": %" PRIu32
		   ", \"output_tokens\": %" PRIu32 ", \"status\": %u, \"finish\": \"%s\", "
		   "\"fault\": ", r->prompt_tokens, r->cached_tokens, r->output_tokens, r->status,
		   counters_finish_name(r->finish));
	if (r->faults)
		faults_write(t->faults, r->faults, out);
	else
		buf_add_text(out, "null");
	if (r->transferred_tokens)
		buf_printf(out, ", \"transferred_tokens\": %" PRIu32 ", \"transfer_ns\": %" PRId64,
			   r->transferred_tokens, r->transfer_ns);
	choices_write(r, out);
	buf_add_text(out, "}\n");
}

bool truth_flush(struct truth *t)
{
	while (t->first && t->sink.lines.len - t->sink.written < FLUSH_BYTES) {
		struct truth_row *r = t->first;

		t->first = r->next;
		if (!t->first)
			t->last = NULL;
		row_write(t, r, &t->sink.lines);
		truth_row_free(r);
	}
	return sink_flush(&t->sink, FLUSH_BYTES) || t->first;
}

int truth_close(struct truth *t, struct err *e)
{
	while (truth_flush(t))
		;
	return sink_close(&t->sink, e);
}
