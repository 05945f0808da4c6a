/* SPDX-License-Identifier: Apache-2.0 */
/* trace_rows.c - see trace_internal.h: rows in the order of time, and as sessions. */
#include "input/trace/trace_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* ---- rows ---- */

#define GAP_S_MAX 100.0           /* a median gap beyond it looks like another unit */
#define SPAN_S_MAX (30.0 * 86400) /* and so does a last time beyond it */

/* ---- reading ---- */

static int check_rows(const struct trace_source *s, struct err *e)
{
	if (s->rows > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%s: %zu rows are more than the limit of %u "
			       "(REQUESTS_MAX)", s->path, s->rows, REQUESTS_MAX);
	return 0;
}

static void keep(struct trace_rows *r, size_t i, const struct trace_row *row)
{
	r->v = mem_room(r->v, r->n, &r->cap, sizeof(*r->v));
	r->v[r->n++] = (struct trace_kept){
		.at_s = row->at_s, .delay_s = row->delay_s, .key = row->key,
		.parent_key = row->parent, .turn = row->turn, .row = (uint32_t)i,
		.input = (uint32_t)row->input, .output = (int32_t)row->output,
		.parent = TRACE_NO_PARENT,
	};
}

static bool is_text(const struct trace_row *row)
{
	return row->text.raw.p || row->messages.raw.p || row->payload.raw.p;
}

/* Whether a row becomes a request at all. */
static bool is_sent(struct trace_rows *r, const struct dataset_opts *o, const struct trace_row *row)
{
	int64_t output = row->output < 0 ? o->trace_output_len : row->output;

	if (row->output == 0 || (row->input == 0 && !is_text(row))) {
		r->skipped++;
		return false;
	}
	if (o->max_model_len.is_set && row->input + output > o->max_model_len.v) {
		r->too_long++;
		return false;
	}
	return true;
}

static int check_time(const struct trace_source *s, const struct dataset_opts *o, size_t i,
		      const struct trace_row *row, double *last, struct err *e)
{
	char now[FMT_F64_BYTES], before[FMT_F64_BYTES];

	if (isnan(row->at_s))
		return 0;
	if (row->at_s < *last && !o->sort_trace)
		return trace_refuse(s, i, e, "the time is %s s, which is before that of an earlier row, "
				    "%s s; --sort-trace puts the rows in the order of their times",
				    fmt_f64(now, row->at_s), fmt_f64(before, *last));
	*last = row->at_s > *last ? row->at_s : *last;
	return 0;
}

static int read_all(struct trace_rows *r, struct trace_source *s, const struct dataset_opts *o,
		    const struct dataset_env *env, struct err *e)
{
	double last = -INFINITY;
	struct trace_row row;

	for (size_t i = 0; i < s->rows; i++) {
		if (dataset_go_on(env, e) < 0 || trace_source_row(s, i, &row, e) < 0 ||
		    check_time(s, o, i, &row, &last, e) < 0)
			return -1;
		if (is_sent(r, o, &row))
			keep(r, i, &row);
	}
	return 0;
}

/* ---- order ---- */

static int by_time(const void *a, const void *b)
{
	const struct trace_kept *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int sort(struct trace_rows *r, const struct trace_source *s, struct err *e)
{
	for (size_t i = 0; i < r->n; i++)
		if (isnan(r->v[i].at_s))
			return trace_refuse(s, r->v[i].row, e, "the row has no time, and --sort-trace needs "
					    "one in every row");
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), by_time);
	return 0;
}

/* ---- choosing ---- */

static bool is_within(const struct dataset_opts *o, double at_s)
{
	if (!o->trace_start.is_set && !o->trace_end.is_set)
		return true;
	return !isnan(at_s) && (!o->trace_start.is_set || at_s >= o->trace_start.v) &&
	       (!o->trace_end.is_set || at_s <= o->trace_end.v);
}

/* By the row's own time, or by that of its session's first turn; then the first `most` of them. */
static void choose(struct trace_rows *r, const struct dataset_opts *o, size_t most)
{
	uint32_t *moved = mem_array(r->n + 1, sizeof(*moved)), session = 0;
	bool is_kept = true;
	size_t n = 0;

	for (size_t i = 0; i < r->n && n < most; i++) {
		struct trace_kept k = r->v[i];

		if (i == 0 || !r->sessions || k.session != session)
			is_kept = is_within(o, k.at_s);
		session = k.session;
		moved[i] = (uint32_t)n;
		if (!is_kept)
			continue;
		if (k.parent != TRACE_NO_PARENT)
			k.parent = moved[k.parent];
		r->v[n++] = k;
	}
	free(moved);
	r->n = n;
}

static void count_sessions(struct trace_rows *r)
{
	uint32_t last = 0;
	size_t n = 0;

	for (size_t i = 0; r->sessions && i < r->n; i++) {
		uint32_t session = r->v[i].session;

		n += i == 0 || session != last;
		last = session;
		r->v[i].session = (uint32_t)n - 1;
	}
	r->sessions = n;
}

static int refuse_none(const struct trace_rows *r, const struct trace_source *s, size_t before,
		       struct err *e)
{
	if (before)
		return err_set(e, ERR_RUN, "%s: none of its %zu rows lies between --trace-start and "
			       "--trace-end", s->path, before);
	return err_set(e, ERR_RUN, "%s: none of its %zu rows can be sent: %" PRIu64 " have no answer or no "
		       "prompt tokens, %" PRIu64 " have more tokens than --max-model-len", s->path,
		       s->rows, r->skipped, r->too_long);
}

/* ---- times ---- */

/* Either every row that is to be sent by the clock has a time, or none has. */
static int check_times(struct trace_rows *r, const struct trace_source *s, struct err *e)
{
	const struct trace_kept *without = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct trace_kept *k = &r->v[i];

		if (r->sessions && k->parent != TRACE_NO_PARENT)
			continue;
		if (!isnan(k->at_s))
			n++;
		else if (!without)
			without = k;
	}
	r->has_times = n > 0;
	if (without && !r->sessions && !isnan(without->delay_s))
		return trace_refuse(s, without->row, e, "the row has a delay and no timestamp; "
				    "with --sessions it is sent that long after the previous turn "
				    "has ended");
	if (without && n)
		return trace_refuse(s, without->row, e, "the row has no time, but others have");
	return 0;
}

static double first_time(const struct trace_rows *r)
{
	double first = INFINITY;

	for (size_t i = 0; i < r->n; i++)
		first = r->v[i].at_s < first ? r->v[i].at_s : first;
	return first;
}

static void rebase(struct trace_rows *r, const struct dataset_opts *o)
{
	double zero = o->trace_origin && strcmp(o->trace_origin, "file") == 0 ? 0 : first_time(r);
	double by = dataset_speedup(o);

	for (size_t i = 0; i < r->n; i++) {
		r->v[i].at_s = (r->v[i].at_s - zero) / by;
		if (o->speedup_gaps)
			r->v[i].delay_s /= by;
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Called before times are rebased. */
static void check_unit(const struct trace_rows *r, const struct trace_source *s,
		       struct workload *w)
{
	double *v = mem_array(r->n + 1, sizeof(*v)), last = 0, gap = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!isnan(r->v[i].at_s))
			v[n++] = r->v[i].at_s;
	qsort(v, n, sizeof(*v), by_size);
	if (n > 1) {
		last = v[n - 1] - v[0];
		for (size_t i = 0; i + 1 < n; i++)
			v[i] = v[i + 1] - v[i];
		qsort(v, n - 1, sizeof(*v), by_size);
		gap = v[(n - 1) / 2];
	}
	free(v);
	if (gap > GAP_S_MAX || last > SPAN_S_MAX)
		dataset_note(w, "%s: the times look like another unit: half of the gaps are %.6g s "
			     "or more, and the last row comes %.6g s after the first; set their "
			     "unit with --trace-time-unit", s->path, gap, last);
}

/* ---- sessions ---- */

/*
 * Which rows of a trace are one session, and which waits for which.
 *
 * A row names the one that it follows, or its session. All connected rows are one session, so
 * missing names and cycles of names need no special rule. The order within a session is that of the
 * turns' numbers, then of the file; a row that would precede the one that it follows waits for the
 * row before it.
 */

struct named { uint64_t key; uint32_t at; };

struct grouping {
	struct trace_rows *r;
	struct named *by_key;  /* of the rows with a key */
	size_t n;
	uint32_t *parent;      /* row of the list that each follows, or TRACE_NO_PARENT */
	uint32_t *leader;      /* on the way to the first row of its session */
};

static int compare_keys(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The first row of that key. */
static uint32_t find_key(const struct grouping *g, uint64_t key)
{
	size_t low = 0, high = g->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (g->by_key[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->n && g->by_key[low].key == key ? g->by_key[low].at : TRACE_NO_PARENT;
}

static uint32_t lead(uint32_t *leader, uint32_t i)
{
	while (leader[i] != i)
		i = leader[i] = leader[leader[i]];
	return i;
}

/* When two sessions are found to be one, the earlier first row leads. */
static void join(uint32_t *leader, uint32_t a, uint32_t b)
{
	uint32_t x = lead(leader, a), y = lead(leader, b);

	if (x < y)
		leader[y] = x;
	else
		leader[x] = y;
}

static void find_parents(struct grouping *g, bool is_chain)
{
	const struct trace_rows *r = g->r;

	for (uint32_t i = 0; i < r->n; i++) {
		if (r->v[i].key != TRACE_NOBODY)
			g->by_key[g->n++] = (struct named){ r->v[i].key, i };
		g->parent[i] = TRACE_NO_PARENT;
		g->leader[i] = i;
	}
	qsort(g->by_key, g->n, sizeof(*g->by_key), compare_keys);
	for (size_t k = 1; is_chain && k < g->n; k++)
		if (g->by_key[k].key == g->by_key[k - 1].key)
			g->parent[g->by_key[k].at] = g->by_key[k - 1].at;
	for (uint32_t i = 0; !is_chain && i < r->n; i++)
		if (r->v[i].parent_key != TRACE_NOBODY)
			g->parent[i] = find_key(g, r->v[i].parent_key);
	for (uint32_t i = 0; i < r->n; i++)
		if (g->parent[i] != TRACE_NO_PARENT)
			join(g->leader, i, g->parent[i]);
}

static int compare_turns(const void *a, const void *b)
{
	const struct trace_kept *x = a, *y = b;

	if (x->session != y->session)
		return x->session < y->session ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/*
 * A session is named after its first turn, so that sessions are in the order of their beginnings.
 */
static void name_sessions(struct grouping *g)
{
	struct trace_rows *r = g->r;
	uint32_t *first = mem_array(r->n + 1, sizeof(*first));

	for (uint32_t i = 0; i < r->n; i++)
		first[i] = i;
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t *of = &first[lead(g->leader, i)];

		if (r->v[i].turn < r->v[*of].turn)
			*of = i;
	}
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].session = first[lead(g->leader, i)];
	free(first);
}

/* The row that the row at i waits for; place: of the old list's rows. */
static uint32_t parent_of(const struct grouping *g, const uint32_t *place, uint32_t i)
{
	const struct trace_kept *k = &g->r->v[i];
	uint32_t parent = g->parent[k->depth];

	if (i == 0 || k[-1].session != k->session)
		return TRACE_NO_PARENT;
	if (parent == TRACE_NO_PARENT || place[parent] >= i)
		return i - 1;
	return place[parent];
}

static void order_rows(struct grouping *g)
{
	struct trace_rows *r = g->r;
	uint32_t *place = mem_array(r->n + 1, sizeof(*place));

	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].depth = i; /* the old place, for now */
	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), compare_turns);
	for (uint32_t i = 0; i < r->n; i++)
		place[r->v[i].depth] = i;
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].parent = parent_of(g, place, i);
	for (uint32_t i = 0; i < r->n; i++)
		r->v[i].depth = r->v[i].parent == TRACE_NO_PARENT ? 0
			       : r->v[r->v[i].parent].depth + 1;
	free(place);
}

/*
 * Sessions of rows in the order of time: fills in parent, session and depth, and sorts the rows by
 * session, sessions by their first turn.
 */
static void trace_sessions_group(struct trace_rows *r, bool is_chain)
{
	struct grouping g = {
		.r = r, .by_key = mem_array(r->n + 1, sizeof(*g.by_key)),
		.parent = mem_array(r->n + 1, sizeof(*g.parent)),
		.leader = mem_array(r->n + 1, sizeof(*g.leader)),
	};

	find_parents(&g, is_chain);
	name_sessions(&g);
	order_rows(&g);
	r->sessions = 1; /* counted when rows are chosen */
	free(g.by_key);
	free(g.parent);
	free(g.leader);
}

/* ---- all of it ---- */

static void note(const struct trace_rows *r, const struct trace_source *s,
		 const struct dataset_opts *o, const struct dataset_env *env, struct workload *w)
{
	if (r->skipped)
		dataset_note(w, "%s: %" PRIu64 " row%s not sent: no answer or no prompt tokens", s->path,
			     r->skipped, r->skipped == 1 ? " is" : "s are");
	dataset_note_long(w, o, r->too_long);
	if (env->num_prompts > 0 && r->n < (size_t)env->num_prompts)
		dataset_note(w, "the trace has %zu row%s to send: fewer requests than --num-prompts",
			     r->n, r->n == 1 ? "" : "s");
}

int trace_rows_read(struct trace_rows *r, struct trace_source *s, const struct dataset_opts *o,
		    const struct dataset_env *env, struct workload *w, struct err *e)
{
	size_t before;

	assert(!r->n);
	if (check_rows(s, e) < 0 || read_all(r, s, o, env, e) < 0 ||
	    (o->sort_trace && sort(r, s, e) < 0))
		return -1;
	if (r->n == 0)
		return refuse_none(r, s, 0, e);
	if (o->sessions)
		trace_sessions_group(r, s->format->is_chain);
	before = r->n;
	choose(r, o, env->num_prompts > 0 ? (size_t)env->num_prompts : SIZE_MAX);
	count_sessions(r);
	if (r->n == 0)
		return refuse_none(r, s, before, e);
	if (check_times(r, s, e) < 0)
		return -1;
	if (r->has_times) {
		check_unit(r, s, w);
		rebase(r, o);
	}
	note(r, s, o, env, w);
	return 0;
}

void trace_rows_release(struct trace_rows *r)
{
	free(r->v);
	*r = (struct trace_rows){ 0 };
}
