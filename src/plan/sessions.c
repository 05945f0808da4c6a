/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c - plans whose roots are sessions that arrive; see plan.h. */
#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "plan/entries.h"

static const struct session *session_of(const struct sessions *s, uint32_t arrival)
{
	return &s->session[arrival % s->n_sessions];
}

/* Turns, roots among them and waits beyond the first, over all arrivals. */
struct totals { uint64_t turns, roots, joins; };

static struct totals count(const struct sessions *s, uint32_t n)
{
	struct totals sum = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct session *session = session_of(s, i);

		sum.turns += session->n;
		for (uint32_t k = 0; k < session->n; k++) {
			uint32_t n_waits = s->turn[session->first + k].n_waits;

			sum.roots += n_waits == 0;
			sum.joins += n_waits > 1 ? n_waits - 1 : 0;
		}
	}
	return sum;
}

/* Where the next root and the next successor go; place[k]: the entry of the session's turn k. */
struct builder {
	struct plan *p;
	const struct sessions *s;
	uint32_t next_root, next, *place;
};

static uint32_t place_of(const struct builder *b, const struct session *session, uint32_t turn)
{
	assert(turn >= session->first && turn < session->first + session->n);
	return b->place[turn - session->first];
}

/* Of several waits the one that it continues comes first: gaps and URLs are taken from there. */
static void add_waits(struct builder *b, const struct session *session, const struct turn *turn,
		      struct plan_entry *entry)
{
	const uint32_t *wait = b->s->waits + turn->wait;
	uint32_t first = 0;

	if (!turn->n_waits)
		return;
	for (uint32_t i = 0; i < turn->n_waits; i++)
		if (wait[i] == turn->history)
			first = i;
	entry->after = place_of(b, session, wait[first]);
	entry->flags = turn->is_gap_from_arrival ? PLAN_FROM_PHASE :
		       turn->is_gap_from_start ? PLAN_FROM_START : 0;
	/* Until now the arrival's. */
	entry->due_s = turn->gap_s + (turn->is_gap_from_arrival ? entry->due_s : 0);
	for (uint32_t i = 0; i < turn->n_waits; i++)
		if (i != first)
			b->p->join[b->p->n_joins++] = (struct plan_join){
				(uint32_t)(entry - b->p->entry), place_of(b, session, wait[i])
			};
}

static void add_session(struct builder *b, const struct plan_entry *arrival, uint32_t number)
{
	const struct session *session = session_of(b->s, number);

	for (uint32_t k = 0; k < session->n; k++) {
		const struct turn *turn = &b->s->turn[session->first + k];
		uint32_t at = turn->n_waits ? b->next++ : b->next_root++;
		struct plan_entry *entry = &b->p->entry[at];

		b->place[k] = at;
		*entry = *arrival;
		entry->sample = session->first + k;
		entry->session = number;
		entry->turn = turn->number;
		if (turn->history != TURN_NONE)
			entry->history = place_of(b, session, turn->history);
		add_waits(b, session, turn, entry);
	}
}

int plan_sessions(struct plan *p, const struct sessions *s, struct err *e)
{
	struct plan arrivals = *p;
	struct totals sum = count(s, p->n);
	struct builder b = { .p = p, .s = s };
	uint32_t longest = 0;

	assert(p->n == p->n_roots && s->n_sessions > 0);
	if (sum.turns > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%u sessions have %llu turns, more than the %u requests of "
			       "one run", p->n, (unsigned long long)sum.turns, REQUESTS_MAX);
	for (size_t i = 0; i < s->n_sessions; i++)
		longest = s->session[i].n > longest ? s->session[i].n : longest;
	p->entry = mem_array((size_t)sum.turns, sizeof(*p->entry));
	p->join = mem_array((size_t)sum.joins, sizeof(*p->join));
	p->n = (uint32_t)sum.turns;
	p->n_roots = b.next = (uint32_t)sum.roots;
	b.place = mem_array(longest, sizeof(*b.place));
	for (uint32_t i = 0; i < arrivals.n; i++) {
		/* Ramp events name a root: the first one of the session that arrived then. */
		for (size_t k = 0; k < p->n_ramp; k++)
			if (p->ramp[k].entry == i && sum.roots != arrivals.n)
				p->ramp[k].entry = b.next_root;
		add_session(&b, &arrivals.entry[i], i);
	}
	assert(b.next_root == p->n_roots && b.next == p->n && p->n_joins == sum.joins);
	free(b.place);
	free(arrivals.entry);
	return 0;
}

/* ---- user-centric arrivals ---- */

/* A slot in which one user follows another; a heap by when the next one starts. */
struct slot { double start_s; uint32_t number; };

static bool is_earlier(struct slot a, struct slot b)
{
	return a.start_s != b.start_s ? a.start_s < b.start_s : a.number < b.number;
}

/* The first slot's start has moved back. */
static void sift(struct slot *slot, uint32_t n)
{
	struct slot moved = slot[0];
	uint32_t at = 0, below;

	while ((below = 2 * at + 1) < n) {
		if (below + 1 < n && is_earlier(slot[below + 1], slot[below]))
			below++;
		if (!is_earlier(slot[below], moved))
			break;
		slot[at] = slot[below];
		at = below;
	}
	slot[at] = moved;
}

/* How many turns follow each other in a session: branches run beside each other. */
static uint32_t turns_of(const struct sessions *s, const struct session *session)
{
	uint32_t n = 1;

	for (uint32_t k = 0; k < session->n; k++)
		if (s->turn[session->first + k].number >= n)
			n = s->turn[session->first + k].number + 1u;
	return n;
}

int plan_users(struct plan *p, const struct sessions *s, uint32_t n, uint32_t users, double rate,
	       struct err *e)
{
	double gap_s = users / rate;
	struct slot *slot;

	assert(users > 0 && rate > 0 && n > 0);
	if (!(gap_s <= DUE_S_MAX))
		return err_set(e, ERR_USAGE, "--user-centric-rate %g with %u users: each user would "
			       "wait more than a year (%d s) between two requests", rate, users,
			       DUE_S_MAX);
	plan_entries(p, n);
	slot = mem_array(users, sizeof(*slot));
	for (uint32_t i = 0; i < users; i++)
		slot[i] = (struct slot){ i / rate, i };
	for (uint32_t i = 0; i < n; i++) {
		p->entry[i].due_s = slot[0].start_s;
		slot[0].start_s += turns_of(s, session_of(s, i)) * gap_s;
		sift(slot, users);
	}
	free(slot);
	if (p->entry[n - 1].due_s > DUE_S_MAX)
		return err_set(e, ERR_USAGE, "--user-centric-rate %g: session %u would begin more than a "
			       "year (%d s) after the start", rate, n - 1, DUE_S_MAX);
	return 0;
}

void plan_user_gaps(struct plan *p, uint32_t users, double rate)
{
	for (uint32_t i = p->n_roots; i < p->n; i++) {
		p->entry[i].due_s = users / rate;
		p->entry[i].flags |= PLAN_FROM_START;
	}
}
