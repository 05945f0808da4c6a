/* SPDX-License-Identifier: Apache-2.0 */
/* workload_sessions.c - see workload_sessions.h. */
#include "data/workload_sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"

#define ID_BYTES_MAX 4096 /* it goes into a header */

struct session_record { uint32_t n, id_bytes; };

struct turn_record {
	uint32_t history, n_waits; /* waits of turns follow each other */
	uint16_t number;
	uint8_t gap_kind, from; /* enum from */
	uint32_t zero;
	double gap_s;
};

enum from { FROM_END, FROM_START, FROM_ARRIVAL };

/* ---- writing ---- */

static struct turn_record record_of(const struct turn *t)
{
	return (struct turn_record){
		.history = t->history, .n_waits = t->n_waits, .number = t->number,
		.gap_kind = t->gap_kind, .gap_s = t->gap_s,
		.from = t->is_gap_from_start ? FROM_START :
			t->is_gap_from_arrival ? FROM_ARRIVAL : FROM_END,
	};
}

void workload_sessions_put(const struct sessions *s, struct buf *out)
{
	struct workload_sessions_head head = { .n_sessions = s->n_sessions, .n_turns = s->n_turns };
	size_t at = out->len;

	buf_add(out, &head, sizeof(head));
	for (size_t k = 0; k < s->n_sessions; k++) {
		struct session_record r = { s->session[k].n, (uint32_t)s->session[k].id.n };

		buf_add(out, &r, sizeof(r));
	}
	for (size_t i = 0; i < s->n_turns; i++) {
		struct turn_record r = record_of(&s->turn[i]);

		buf_add(out, &r, sizeof(r));
		head.n_waits += r.n_waits;
	}
	for (size_t i = 0; i < s->n_turns; i++)
		buf_add(out, s->waits + s->turn[i].wait, s->turn[i].n_waits * sizeof(*s->waits));
	for (size_t k = 0; k < s->n_sessions; k++)
		buf_add_str(out, s->session[k].id);
	head.bytes = out->len - at;
	memcpy(out->data + at, &head, sizeof(head));
}

/* ---- reading ---- */

struct reader {
	const char *session, *turn, *wait, *id, *end; /* where the next one is */
	struct session_build *made;
	bool *is_waited; /* of the session's turns */
	uint32_t n_sessions, n_turns; /* in the file */
	uint64_t waits_left;
};

static bool is_header_text(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < ' ' || p[i] == 0x7f)
			return false;
	return n <= ID_BYTES_MAX;
}

/* Whether the last turn waits for `turn`, directly or by way of others. */
static bool is_after(struct reader *r, uint32_t first, uint32_t turn)
{
	const struct session_build *b = r->made;
	uint32_t last = (uint32_t)b->n_turns - 1;

	memset(r->is_waited, 0, last - first + 1);
	r->is_waited[last - first] = true;
	for (uint32_t i = last; i > turn; i--) {
		const struct turn *t = &b->turn[i];

		for (uint32_t k = 0; r->is_waited[i - first] && k < t->n_waits; k++)
			r->is_waited[b->waits[t->wait + k] - first] = true;
	}
	return r->is_waited[turn - first];
}

/* The turn that comes next, of a session that begins with turn `first`. */
static bool take_turn(struct reader *r, uint32_t first)
{
	uint32_t at = (uint32_t)r->made->n_turns, wait;
	struct turn_record own;
	struct turn *t;

	memcpy(&own, r->turn, sizeof(own));
	r->turn += sizeof(own);
	if (own.number == UINT16_MAX || own.gap_kind > TURN_CALLS_TOOLS ||
	    own.from > FROM_ARRIVAL ||
	    !(own.gap_s >= 0 && own.gap_s <= DUE_S_MAX) || own.n_waits > r->waits_left ||
	    (own.history != TURN_NONE && (own.history < first || own.history >= at)))
		return false;
	session_add_turn(r->made, own.history);
	r->waits_left -= own.n_waits;
	for (uint32_t k = 0; k < own.n_waits; k++, r->wait += sizeof(wait)) {
		memcpy(&wait, r->wait, sizeof(wait));
		if (wait < first || wait >= at)
			return false;
		session_wait_for(r->made, wait);
	}
	t = &r->made->turn[at];
	t->number = own.number;
	t->gap_kind = own.gap_kind;
	t->gap_s = own.gap_s;
	t->is_gap_from_start = own.from == FROM_START;
	t->is_gap_from_arrival = own.from == FROM_ARRIVAL;
	return own.history == TURN_NONE || is_after(r, first, own.history);
}

static bool take_session(struct reader *r)
{
	struct session_record own;
	uint32_t first = (uint32_t)r->made->n_turns;

	memcpy(&own, r->session, sizeof(own));
	r->session += sizeof(own);
	if (!own.n || own.n > r->n_turns - first || own.id_bytes > (size_t)(r->end - r->id) ||
	    !is_header_text(r->id, own.id_bytes))
		return false;
	session_begin(r->made, (struct str){ r->id, own.id_bytes });
	r->id += own.id_bytes;
	free(r->is_waited);
	r->is_waited = mem_array(own.n, sizeof(*r->is_waited));
	for (uint32_t k = 0; k < own.n; k++)
		if (!take_turn(r, first))
			return false;
	return true;
}

static bool lay_out(struct str content, const struct workload_sessions_head *h, struct reader *r)
{
	uint64_t front;

	if (h->bytes > content.n || h->n_sessions > REQUESTS_MAX || h->n_turns > REQUESTS_MAX ||
	    h->n_waits > content.n / sizeof(uint32_t) || h->n_sessions > h->n_turns ||
	    h->n_sessions == 0)
		return false;
	r->session = content.p + sizeof(*h);
	r->turn = r->session + h->n_sessions * sizeof(struct session_record);
	r->wait = r->turn + h->n_turns * sizeof(struct turn_record);
	r->id = r->wait + h->n_waits * sizeof(uint32_t);
	r->end = content.p + h->bytes;
	front = (uint64_t)(r->id - content.p);
	r->n_sessions = (uint32_t)h->n_sessions;
	r->n_turns = (uint32_t)h->n_turns;
	r->waits_left = h->n_waits;
	return front <= h->bytes;
}

int workload_sessions_read(struct str content, size_t most, struct session_build *out,
			   uint64_t *bytes, struct err *e)
{
	struct reader r = { .made = out };
	struct workload_sessions_head h = { 0 };
	size_t k = 0;
	bool is_good;

	*out = (struct session_build){ 0 };
	if (content.n >= sizeof(h))
		memcpy(&h, content.p, sizeof(h));
	if (content.n < sizeof(h) || !lay_out(content, &h, &r))
		return err_set(e, ERR_PARSE, "its sessions are cut");
	while (k < r.n_sessions && k < most && take_session(&r))
		k++;
	is_good = k == r.n_sessions || k == most;
	if (k == r.n_sessions && (out->n_turns != r.n_turns || r.waits_left || r.id != r.end))
		is_good = false;
	free(r.is_waited);
	*bytes = h.bytes;
	if (is_good)
		return 0;
	session_build_release(out);
	return err_set(e, ERR_PARSE, "session %zu is malformed", k);
}
