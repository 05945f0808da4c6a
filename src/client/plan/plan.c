/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - see plan.h: simple plans, arrivals by a rate or by times, sessions, users. */
#include "client/plan/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* Makes p n roots due at 0: entry i sends sample i and waits for nothing. */
static void plan_entries(struct plan *p, uint32_t n)
{
	*p = (struct plan){ .entry = mem_array(n, sizeof(*p->entry)), .n = n, .n_roots = n };
	for (uint32_t i = 0; i < n; i++)
		p->entry[i] = (struct plan_entry){
			.sample = i,
			.after = PLAN_NONE,
			.history = PLAN_NONE,
			.session = PLAN_NONE,
			.lora = PLAN_NO_LORA,
		};
}

void plan_same(struct plan *p, uint32_t n, uint32_t sample)
{
	plan_entries(p, n);
	for (uint32_t i = 0; i < n; i++)
		p->entry[i].sample = sample;
}

void plan_chain(struct plan *p, uint32_t n, double gap_s)
{
	assert(gap_s >= 0 && gap_s <= DUE_S_MAX);
	plan_same(p, n, 0);
	p->n_roots = 1;
	for (uint32_t i = 1; i < n; i++) {
		p->entry[i].after = i - 1;
		p->entry[i].due_s = gap_s;
	}
}

void plan_repeat(struct plan *p, uint32_t n)
{
	assert(n > 0);
	for (uint32_t i = n; i < p->n; i++)
		p->entry[i].sample = i % n;
}

void plan_assign_lora(struct plan *p, unsigned n_modules, enum plan_lora how,
		      struct compat_rng *rng)
{
	assert(n_modules < PLAN_NO_LORA);
	if (!n_modules)
		return;
	/* A single module still costs its draws: upstream chooses among one. */
	for (uint32_t i = 0; i < p->n; i++)
		p->entry[i].lora = (uint16_t)(how == LORA_RANDOM ?
					      pyrandom_choice(&rng->py, n_modules) :
					      i % n_modules);
}

void plan_release(struct plan *p)
{
	if (!p)
		return;
	free(p->entry);
	free(p->join);
	free(p->ramp);
	*p = (struct plan){ 0 };
}

/* ---- arrivals ---- */

/*
 * Due times by upstream's recipe (serve spec 2.5 and 2.10).
 *
 * Each request has a rate: the one asked for, or a point on the ramp. The gap
 * before it is drawn for that rate, the gaps are added up from left to right,
 * and without a ramp the sums are stretched so that the last is n / rate. The
 * order of the floating-point operations is part of the contract: due times
 * equal upstream's to the last bit, and so do the draws left to later stages.
 *
 * Trace times are taken as they are. Upstream sends requests in file order and
 * never waits backwards, so a time before its predecessor's is due with it, and
 * a missing or negative one at once. What is due more than a year after the start
 * (DUE_S_MAX) is refused: it is a trace in another unit than seconds.
 */
/* The rate that holds when request i of n leaves. */
static double rate_at(const struct plan_opts *o, uint32_t i, uint32_t n)
{
	double progress = (double)i / (n > 1 ? (double)(n - 1) : 1.0);

	switch (o->ramp_up) {
	case RAMP_LINEAR:
		return o->ramp_start_rps + (o->ramp_end_rps - o->ramp_start_rps) * progress;
	case RAMP_EXPONENTIAL:
		return o->ramp_start_rps *
		       pow(o->ramp_end_rps / o->ramp_start_rps, progress);
	case RAMP_NONE:
		break;
	}
	return o->request_rate;
}

/* The gap before a request, in seconds. */
static double gap_s(double rate, double burstiness, struct legacy *np)
{
	if (isinf(rate))
		return 0.0;
	if (isinf(burstiness))
		return 1.0 / rate;
	return legacy_gamma(np, burstiness, 1.0 / (rate * burstiness));
}

/* Logs every whole rate above *last up to this one, and moves *last there. */
static int log_ramp(struct plan *p, uint32_t entry, double rate, double *last, struct err *e)
{
	double whole = trunc(rate);

	if (!(whole > *last))
		return 0;
	if (whole >= 0x1p53 || whole - *last > (double)(RAMP_EVENTS_MAX - p->n_ramp))
		return err_set(e, ERR_LIMIT, "the ramp-up passes more than %u whole rates; "
			       "choose an end rate nearer to the start", RAMP_EVENTS_MAX);
	p->ramp = mem_grow(p->ramp, p->n_ramp + (size_t)(whole - *last), sizeof(*p->ramp));
	while (*last < whole) {
		*last += 1.0;
		p->ramp[p->n_ramp++] = (struct plan_ramp){ (int64_t)*last, entry };
	}
	return 0;
}

static int draw(struct plan *p, const struct plan_opts *o, struct legacy *np, struct err *e)
{
	double due = 0, last = trunc(o->ramp_start_rps);
	char text[FMT_F64_BYTES];

	for (uint32_t i = 0; i < p->n; i++) {
		double rate = rate_at(o, i, p->n);

		if (!(rate > 0))
			return err_set(e, ERR_RUN, "Obtained non-positive request rate %s.",
				       fmt_f64(text, rate));
		if (o->ramp_up != RAMP_NONE && log_ramp(p, i, rate, &last, e) < 0)
			return -1;
		due = i ? due + gap_s(rate, o->burstiness, np) : gap_s(rate, o->burstiness, np);
		p->entry[i].due_s = due;
	}
	return 0;
}

static void rescale(struct plan *p, double rate)
{
	double last = p->entry[p->n - 1].due_s, factor;

	if (last == 0)
		return;
	factor = (double)p->n / rate / last;
	for (uint32_t i = 0; i < p->n; i++)
		p->entry[i].due_s *= factor;
}

static void take_trace(struct plan *p, const double *timestamps_s)
{
	double due = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (timestamps_s[i] > due)
			due = timestamps_s[i];
		p->entry[i].due_s = due;
	}
}

/* Suggests a cause for a time more than a year away, such as a unit, by today's clock. */
static const char *unit_of(double due_s)
{
	static const struct { double from, to; const char *text; } unit[] = {
		{ 1e9, 1e10, "seconds since 1970: subtract the first one from all" },
		{ 1e12, 1e13, "milliseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.001" },
		{ 1e15, 1e16, "microseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.000001" },
		{ 1e18, 1e19, "nanoseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.000000001" },
	};

	for (size_t i = 0; i < sizeof(unit) / sizeof(*unit); i++)
		if (due_s >= unit[i].from && due_s < unit[i].to)
			return unit[i].text;
	return "milliseconds or less: use --timed-trace-sec-multiplier 0.001";
}

static int refuse(const struct plan_opts *o, uint32_t entry, double due_s, struct err *e)
{
	char due[FMT_F64_BYTES], rate[FMT_F64_BYTES], shape[FMT_F64_BYTES];

	fmt_f64(due, isnan(due_s) ? INFINITY : due_s); /* inf - inf on the way */
	if (o->timestamps_s)
		return err_set(e, ERR_USAGE, "timestamps: request %u is due %s s after the start, "
			       "expected at most a year (%d s); they look like %s", entry, due,
			       DUE_S_MAX, unit_of(due_s));
	if (o->ramp_up != RAMP_NONE)
		return err_set(e, ERR_USAGE, "--ramp-up-start-rps %s (--burstiness %s): request %u is "
			       "due %s s after the start, expected at most a year (%d s); use a higher "
			       "rate", fmt_f64(rate, o->ramp_start_rps), fmt_f64(shape, o->burstiness),
			       entry, due, DUE_S_MAX);
	return err_set(e, ERR_USAGE, "--request-rate %s (--burstiness %s): request %u is due %s s "
		       "after the start, expected at most a year (%d s); use a higher rate",
		       fmt_f64(rate, o->request_rate), fmt_f64(shape, o->burstiness), entry, due,
		       DUE_S_MAX);
}

/* A schedule too long to wait for, or one that overflows, is a mistake in the options. */
static int check(const struct plan *p, const struct plan_opts *o, struct err *e)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!(p->entry[i].due_s >= 0 && p->entry[i].due_s <= DUE_S_MAX))
			return refuse(o, i, p->entry[i].due_s, e);
	return 0;
}

/* The mean gap of a ramp is the mean of 1 / rate over it. */
double plan_count(const struct plan_opts *o, double seconds)
{
	double start = o->ramp_start_rps, end = o->ramp_end_rps, mean_gap_s;

	if (o->ramp_up == RAMP_NONE)
		return isinf(o->request_rate) ? INFINITY : round(o->request_rate * seconds);
	if (start == end)
		mean_gap_s = 1.0 / start;
	else if (o->ramp_up == RAMP_LINEAR)
		mean_gap_s = log(end / start) / (end - start);
	else
		mean_gap_s = (1.0 / start - 1.0 / end) / log(end / start);
	return round(seconds / mean_gap_s);
}

int plan_arrivals(struct plan *p, uint32_t n, const struct plan_opts *opts,
		  struct compat_rng *rng, struct err *e)
{
	char text[FMT_F64_BYTES];
	int rc = -1;

	*p = (struct plan){ 0 };
	if (!(opts->burstiness > 0))
		return err_set(e, ERR_RUN,
			       "A positive burstiness factor is expected, but given %s.",
			       fmt_f64(text, opts->burstiness));
	if (!n)
		return err_set(e, ERR_RUN, "No requests provided.");
	if (n > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%u requests are more than the limit of %u for one "
					     "run",
			       n, REQUESTS_MAX);
	plan_entries(p, n);
	if (opts->timestamps_s)
		take_trace(p, opts->timestamps_s);
	else if (draw(p, opts, &rng->np, e) < 0)
		goto done;
	else if (opts->ramp_up == RAMP_NONE)
		rescale(p, opts->request_rate);
	rc = check(p, opts, e);
done:
	if (rc < 0)
		plan_release(p);
	return rc;
}

/* ---- sessions that arrive ---- */

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

/* Next root and next successor; place[k]: the entry of the session's turn k. */
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

/* Of several waits the one that it continues comes first: gaps and URLs are taken from it. */
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

/* A slot in which one user follows another; a heap ordered by the next one's start. */
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

/* How many turns follow each other in a session, on its longest branch. */
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
