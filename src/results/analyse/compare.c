/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - groups of runs against a baseline: parameters that differ, and for each metric the
 * findings of decide/compare.h over the configurations that both have.
 *
 * A run that failed has no value of a metric, and one in which it is INVALID does not count for it
 * (counts_for); its requests count for the guards. Runs of one server session (provenance.session)
 * are one sample.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "results/analyse/analyse_internal.h"

#define OBSTACLES_NAMED_MAX 5

static const struct str version = { "environment.server.version", 26 };

static bool is_one_of(struct str column, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(column, list[i]))
			return true;
	return false;
}

/*
 * The runs of groups as configurations that can be compared. A configuration is everything that was
 * configured (series_role). A column with one value in each group, though not the same in all,
 * defines the groups and is not part of it, whether it is the value that was given or the effective
 * one (a default that was given in some runs only); neither is the number of GPUs where parallel
 * sizes define them, because it follows from those. The load's options that vary within one server
 * configuration are the load.
 */
struct matching {
	const struct analyse_request *r;
	const struct side *side;   /* the groups */
	size_t n_sides;
	const struct str *ignore;  /* columns that are not part of a configuration */
	size_t n_ignore;
	size_t total;              /* runs of all groups */
	const bool *is_left_out;   /* of run i: it has no metric, such as one that failed */

	/* filled by matching_find */
	struct str *key;           /* key columns that differ, model and hardware first */
	size_t n_keys;
	struct str *apart;         /* columns that define the groups */
	size_t n_apart;
	struct value *value;       /* of run i in key k: [k * total + i]; group after group */
	struct value *release;     /* of run i: its server's release, which determines defaults */
};

/* ---- work ---- */

const struct str work_columns[WORK_COLUMNS] = {
	{ "failed", 6 }, { "completed", 9 }, { "total_input_tokens", 18 },
	{ "total_output_tokens", 19 }, { "request_goodput", 15 }, { "request_throughput", 18 },
};

struct matched_work work_at(const struct value *const value[WORK_COLUMNS], size_t row)
{
	double v[WORK_COLUMNS];

	for (size_t c = 0; c < WORK_COLUMNS; c++)
		if (!parts_is_number(value[c][row], &v[c]))
			v[c] = NAN;
	return (struct matched_work){ v[0], v[1], v[2], v[3], v[4], v[5] };
}

/* ---- columns ---- */

/* Configured columns in which runs differ, found by counting their values. */
static int find_candidates(const struct matching *m, struct str *out, size_t *n, struct err *e)
{
	size_t n_all, n_columns = 0;
	const struct column_info *all = index_columns(m->r->view, &n_all);
	struct str *column = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*column));
	struct value_counts *counts;

	for (size_t i = 0; i < n_all; i++)
		if (series_role(all[i].name) == SERIES_KEY &&
		    !is_one_of(all[i].name, m->ignore, m->n_ignore))
			column[n_columns++] = all[i].name;
	counts = arena_alloc(m->r->arena, (n_columns * m->n_sides + 1) * sizeof(*counts));
	for (size_t s = 0; s < m->n_sides; s++)
		if (side_counts(m->r, &m->side[s], column, n_columns, counts + s * n_columns,
				e) < 0)
			return -1;
	*n = 0;
	for (size_t i = 0; i < n_columns; i++) {
		const struct value_counts *first = NULL;
		bool group_differs = false;

		for (size_t s = 0; s < m->n_sides; s++) {
			const struct value_counts *c = &counts[s * n_columns + i];

			group_differs |= c->distinct > 1 ||
				   (first && c->n &&
				    !value_same(first->of[0].value, c->of[0].value));
			first = !first && c->n ? c : first;
		}
		if (group_differs)
			out[(*n)++] = column[i];
	}
	return 0;
}

/* A column's values in all groups, as they count; kept in scratch. */
static int read_column(const struct matching *m, struct str column, const struct value *release,
		       struct arena *scratch, struct value *out, struct err *e)
{
	struct analyse_request r = *m->r;

	r.arena = scratch;
	for (size_t s = 0, at = 0; s < m->n_sides; at += m->side[s++].n) {
		struct value *v;

		if (side_column(&r, &m->side[s], column, &v, e) < 0)
			return -1;
		for (size_t i = 0; i < m->side[s].n; i++)
			out[at + i] = release ? series_value(column, v[i], release[at + i]) : v[i];
	}
	return 0;
}

enum group_differs { GROUP_SAME, GROUP_BETWEEN, GROUP_WITHIN };

/*
 * Within: a group has several values. Between: each has one, and they are not all the same. Runs
 * that are left out decide nothing: one that failed early does not know what its server had.
 */
static enum group_differs group_differs(const struct matching *m, const struct value *v)
{
	enum group_differs out = GROUP_SAME;
	const struct value *first = NULL;

	for (size_t s = 0, at = 0; s < m->n_sides; at += m->side[s++].n) {
		const struct value *own = NULL;

		for (size_t i = at; i < at + m->side[s].n; i++) {
			if (m->is_left_out[i])
				continue;
			if (own && !series_same_value(*own, v[i]))
				return GROUP_WITHIN;
			own = own ? own : &v[i];
		}
		if (own && first && !series_same_value(*first, *own))
			out = GROUP_BETWEEN;
		first = first ? first : own;
	}
	return out;
}

/* server.model and benchmark.model: the same word, and the same value in every run. */
static bool is_known(const struct matching *m, struct str column, const struct value *v)
{
	for (size_t k = 0; k < m->n_keys; k++) {
		const struct value *old = m->value + k * m->total;
		size_t i = 0;

		while (i < m->total && series_same_value(old[i], v[i]))
			i++;
		if (i == m->total && str_eq(parts_last_word(column), parts_last_word(m->key[k])))
			return true;
	}
	return false;
}

/* Takes out of the key what follows from the sizes that define the groups. */
static void drop_counts(struct matching *m)
{
	bool is_sized = false;
	size_t n = 0;

	for (size_t i = 0; i < m->n_apart; i++)
		is_sized |= str_ends(m->apart[i], STR("parallel_size"));
	for (size_t k = 0; k < m->n_keys; k++) {
		if (is_sized && (str_is(m->key[k], "gpus") || str_is(m->key[k], "hardware.gpus")))
			continue;
		m->key[n] = m->key[k];
		if (n != k && m->total)
			memcpy(m->value + n * m->total, m->value + k * m->total,
			       m->total * sizeof(*m->value));
		n++;
	}
	m->n_keys = n;
}

/* Model and hardware, then servers, then the load; within these in the order of names. */
static int rank_of(struct str column)
{
	static const char *const first[] = { "mode", "server.model", "hardware.", "server." };
	int i;

	for (i = 0; i < 4; i++)
		if (str_starts(column, str_of(first[i])))
			return i;
	return str_starts(column, STR("benchmark.")) ? i + 1 : i;
}

static int by_rank(const void *x, const void *y)
{
	const struct str *a = x, *b = y;
	int order = rank_of(*a) - rank_of(*b);

	return order ? order : text_compare(*a, *b);
}

static int add_key(struct matching *m, struct str column, const struct value *v, size_t *room,
		   struct err *e)
{
	if ((m->n_keys + 1) * m->total > ANALYSE_CELLS_MAX)
		return parts_refuse(e, "/groups", "configurations of %zu runs differ in more than %zu "
				    "columns (ANALYSE_CELLS_MAX): narrow the filters", m->total,
				    m->n_keys);
	if (m->n_keys == *room) {
		struct value *more;

		*room = *room ? 2 * *room : 8;
		more = arena_alloc(m->r->arena, (*room * m->total + 1) * sizeof(*more));
		if (m->n_keys)
			memcpy(more, m->value, m->n_keys * m->total * sizeof(*more));
		m->value = more;
	}
	memcpy(m->value + m->n_keys * m->total, v, m->total * sizeof(*v));
	m->key[m->n_keys++] = column;
	return 0;
}

static int find_keys(struct matching *m, const struct str *column, size_t n, struct err *e)
{
	size_t room = 0;

	m->release = arena_alloc(m->r->arena, (m->total + 1) * sizeof(*m->release));
	if (read_column(m, version, NULL, m->r->arena, m->release, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct arena own = { 0 };
		struct value *v = arena_alloc(&own, (m->total + 1) * sizeof(*v));
		int rc = read_column(m, column[i], m->release, &own, v, e);
		enum group_differs how = rc < 0 ? GROUP_SAME : group_differs(m, v);

		if (how == GROUP_WITHIN) { /* also where some runs name the default only */
			struct value *given = arena_alloc(&own, (m->total + 1) * sizeof(*given));

			rc = read_column(m, column[i], NULL, &own, given, e);
			if (rc == 0 && group_differs(m, given) == GROUP_BETWEEN)
				how = GROUP_BETWEEN;
		}
		if (how == GROUP_BETWEEN)
			m->apart[m->n_apart++] = column[i];
		if (rc == 0 && how == GROUP_WITHIN && !is_known(m, column[i], v))
			rc = add_key(m, column[i], v, &room, e);
		arena_release(&own);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int matching_find(struct matching *m, struct err *e)
{
	size_t n_all, n;
	struct str *column;

	assert(m->n_sides > 0 && m->n_sides <= SIDES_MAX);
	index_columns(m->r->view, &n_all);
	column = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*column));
	m->key = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*m->key));
	m->apart = arena_alloc(m->r->arena, (n_all + 1) * sizeof(*m->apart));
	if (find_candidates(m, column, &n, e) < 0)
		return -1;
	if (n)
		qsort(column, n, sizeof(*column), by_rank);
	if (find_keys(m, column, n, e) < 0)
		return -1;
	drop_counts(m);
	return 0;
}

/* ---- names ---- */

/* "max_num_seqs", or the whole name where another column of the key ends with the same word. */
static struct str short_name(const struct matching *m, size_t k)
{
	struct str word = parts_last_word(m->key[k]);

	for (size_t i = 0; i < m->n_keys; i++)
		if (i != k && str_eq(parts_last_word(m->key[i]), word))
			return m->key[k];
	return word;
}

/* The names of one kind, each made of the first run that has those values. */
struct names {
	const struct matching *m;
	const struct str *word;
	bool is_load;
	struct map texts;
	struct buf key, name;
};

static bool has_part(const struct names *n, size_t k)
{
	return !n->is_load || str_starts(n->m->key[k], STR("benchmark."));
}

/* Spells the run's name, as "max_num_seqs=64, dtype=bfloat16". */
static const char *spell_name(struct names *n, size_t run)
{
	const struct matching *m = n->m;
	struct arena scratch = { 0 };

	buf_reset(&n->name);
	for (size_t k = 0; k < m->n_keys; k++)
		if (has_part(n, k))
			buf_printf(&n->name, "%s%.*s=%s", n->name.len ? ", " : "", (int)n->word[k].n,
				   n->word[k].p, series_text(&scratch, m->key[k],
				   m->value[k * m->total + run], m->release[run]));
	arena_release(&scratch);
	return arena_text(m->r->arena, buf_str(&n->name));
}

/* NULL: no column of the key is included. */
static const char *name_of(struct names *n, size_t run)
{
	const struct matching *m = n->m;
	uint64_t at;

	buf_reset(&n->key);
	for (size_t k = 0; k < m->n_keys; k++)
		if (has_part(n, k))
			parts_add_key(&n->key, m->value[k * m->total + run]);
	if (!n->key.len)
		return n->is_load ? NULL : "all runs";
	if (!map_get(&n->texts, buf_str(&n->key), &at)) {
		at = (uint64_t)(uintptr_t)spell_name(n, run);
		map_put(&n->texts, arena_str(m->r->arena, buf_str(&n->key)), at);
	}
	return (const char *)(uintptr_t)at;
}

static void release_names(struct names *n)
{
	map_release(&n->texts);
	buf_release(&n->key);
	buf_release(&n->name);
}

/* Fills config and load of the runs, in the same order. */
static void matching_name(const struct matching *m, struct matched_run *run)
{
	struct str *word = arena_alloc(m->r->arena, (m->n_keys + 1) * sizeof(*word));
	struct names config = { .m = m, .word = word };
	struct names load = { .m = m, .word = word, .is_load = true };

	for (size_t k = 0; k < m->n_keys; k++)
		word[k] = short_name(m, k);
	for (size_t i = 0; i < m->total; i++) {
		run[i].config = name_of(&config, i);
		run[i].load = name_of(&load, i);
	}
	release_names(&config);
	release_names(&load);
}

/* ---- obstacles to a comparison ---- */

/* Whether two groups have a common value of key k; first: the first run of each. */
static bool have_common(const struct matching *m, size_t k, const size_t *first, size_t a, size_t b)
{
	const struct value *v = m->value + k * m->total;
	size_t from_a = first[a], n_a = m->side[a].n, from_b = first[b], n_b = m->side[b].n;
	struct arena scratch = { 0 };
	struct map seen = { 0 };
	bool is_common = false;

	for (size_t i = 0; i < n_a; i++)
		map_put(&seen, str_of(arena_printf(&scratch, "%d %s", v[from_a + i].kind,
						   parts_cell_text(&scratch, v[from_a + i]))), 0);
	for (size_t i = 0; i < n_b && !is_common; i++)
		is_common = map_get(&seen, str_of(arena_printf(&scratch, "%d %s", v[from_b + i].kind,
				    parts_cell_text(&scratch, v[from_b + i]))), NULL);
	map_release(&seen);
	arena_release(&scratch);
	return is_common;
}

/*
 * The columns of the key without a common value in two groups, as "model, dtype"; NULL: there is
 * none.
 */
static const char *matching_obstacles(const struct matching *m, size_t a, size_t b)
{
	size_t first[SIDES_MAX + 1] = { 0 }, n = 0;
	struct buf out = { 0 };
	const char *text;

	for (size_t s = 0; s < m->n_sides; s++)
		first[s + 1] = first[s] + m->side[s].n;
	for (size_t k = 0; k < m->n_keys; k++) {
		if (have_common(m, k, first, a, b))
			continue;
		if (n < OBSTACLES_NAMED_MAX) {
			buf_add_text(&out, n ? ", " : "");
			buf_add_str(&out, m->key[k]);
		}
		n++;
	}
	if (n > OBSTACLES_NAMED_MAX)
		buf_add_text(&out, ", ...");
	text = n ? arena_text(m->r->arena, buf_str(&out)) : NULL;
	buf_release(&out);
	return text;
}

#define COMPARE_RUNS_MAX (ANALYSE_CELLS_MAX / 48) /* of all groups together */
#define COMPARE_LISTED_MAX 6000 /* configurations of all metrics and groups together */
#define COMPARE_COLUMNS_NAMED 6 /* in a note */
#define COMPARE_CONFIGURATIONS_MAX 2000 /* including their values and runs */
#define COMPARE_IDS_SHOWN_MAX 4 /* per configuration and group */

static const char *const usual[] = {
	"request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
	"median_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_itl_ms",
	"p99_itl_ms", "median_e2el_ms", "p99_e2el_ms", "requests_per_second", "tokens_per_second",
	"avg_latency", "p99_latency", "avg_cold_startup_time", "avg_warm_startup_time",
	"system.j_per_token", "system.peak_gpu_memory_gb", "system.avg_gpu_utilization", NULL,
};

struct comparison {
	const struct analyse_request *r;
	struct side side[SIDES_MAX];
	size_t n_sides, baseline, total;
	size_t first[SIDES_MAX + 1];     /* first run of each side */
	double level;
	bool is_comparable_only;
	struct verdicts verdicts[SIDES_MAX];
	struct matching matching;
	struct str primary;              /* empty: none */
	struct str *metric;
	struct counting *counting;       /* of each metric */
	size_t n_metrics, room;          /* room: values of a run */
	double *value;                   /* of run i: [i * room + metric] */
	unsigned char *state;            /* of run i: [i * room + metric], enum matched_state */
	struct matched_run *run;
	bool *is_compared;               /* run i has a counterpart: a warning is about those */
	struct notes notes;
};

/* ---- the request ---- */

static int read_groups(struct comparison *c, struct err *e)
{
	const struct json_value *list = json_get(c->r->body, "groups");
	size_t runs = 0, by_number = 0;

	if (!list || list->kind != JSON_ARRAY || !list->count || list->count > SIDES_MAX)
		return parts_refuse(e, "/groups", "expected a list of 1 to %d groups",
				    SIDES_MAX);
	for (; c->n_sides < list->count; c->n_sides++) {
		size_t i = c->n_sides;
		const char *pointer = arena_printf(c->r->arena, "/groups/%zu", i);
		const char *name = arena_printf(c->r->arena, "%c", (int)('A' + i));

		if (side_read(c->r, &list->item[i], pointer, name, &c->side[i], e) < 0)
			return -1;
		runs += c->side[i].n;
		by_number += c->side[i].filter ? 0 : c->side[i].n;
		if (by_number > SIDES_IDS_MAX)
			return parts_refuse(e, pointer, "more than %d runs by number are too many in all "
					    "groups together (SIDES_IDS_MAX): name some groups by a filter",
					    SIDES_IDS_MAX);
	}
	if (runs > COMPARE_RUNS_MAX)
		return parts_refuse(e, "/groups", "%s runs are more than can be compared at once "
				    "(%s): narrow the filters", arena_count(c->r->arena, runs),
				    arena_count(c->r->arena, COMPARE_RUNS_MAX));
	return 0;
}

static int read_options(struct comparison *c, struct err *e)
{
	struct str *ignore;

	if (read_groups(c, e) < 0 ||
	    parts_whole(c->r->body, "", "baseline", 0, 0, c->n_sides - 1, &c->baseline, e) < 0 ||
	    parts_number(c->r->body, "", "level", 1 - MATCHED_ALPHA, 0.5001, 0.9999, &c->level, e) < 0 ||
	    parts_bool(c->r->body, "comparable_only", &c->is_comparable_only, e) < 0 ||
	    parts_columns(c->r, "ignore", &ignore, &c->matching.n_ignore, e) < 0)
		return -1;
	c->matching.ignore = ignore;
	for (size_t s = 0; s < c->n_sides; s++)
		c->first[s + 1] = c->first[s] + c->side[s].n;
	c->total = c->first[c->n_sides];
	return 0;
}

static int read_metrics(struct comparison *c, bool *is_asked, struct err *e)
{
	const struct json_value *asked = json_get(c->r->body, "metrics");
	const struct json_value *primary = json_get(c->r->body, "primary");

	*is_asked = asked && asked->kind != JSON_NULL;
	if (*is_asked) {
		if (parts_columns(c->r, "metrics", &c->metric, &c->n_metrics, e) < 0)
			return -1;
	} else {
		c->metric = parts_present(c->r, usual, &c->n_metrics);
	}
	if (!primary || primary->kind == JSON_NULL)
		return 0;
	if (parts_column(c->r, "primary", &c->primary, e) < 0)
		return -1;
	for (size_t m = 0; m < c->n_metrics; m++)
		if (str_eq(c->metric[m], c->primary))
			return 0;
	if (*is_asked)
		return parts_refuse(e, "/primary", "expected one of the metrics");
	c->metric[c->n_metrics++] = c->primary; /* parts_present leaves room for one */
	return 0;
}

/* ---- runs ---- */

static int fill_work(struct comparison *c, struct err *e)
{
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct value *value[WORK_COLUMNS];

		for (size_t k = 0; k < WORK_COLUMNS; k++) {
			struct value *v;

			if (side_column(c->r, &c->side[s], work_columns[k], &v, e) < 0)
				return -1;
			value[k] = v;
		}
		for (size_t i = 0; i < c->side[s].n; i++)
			c->run[c->first[s] + i].work = work_at(value, i);
	}
	return 0;
}

static int fill_runs(struct comparison *c, struct err *e)
{
	c->run = arena_alloc(c->r->arena, (c->total + 1) * sizeof(*c->run));
	c->is_compared = arena_alloc(c->r->arena, (c->total + 1) * sizeof(*c->is_compared));
	for (size_t s = 0; s < c->n_sides; s++) {
		struct value *id, *session;

		if (side_column(c->r, &c->side[s], STR("run_id"), &id, e) < 0 ||
		    side_column(c->r, &c->side[s], STR("provenance.session"), &session, e) < 0 ||
		    side_verdicts(c->r, &c->side[s], &c->verdicts[s], e) < 0)
			return -1;
		for (size_t i = 0; i < c->side[s].n; i++) {
			struct matched_run *run = &c->run[c->first[s] + i];

			/* The baseline is the engine's first side. */
			run->side = s == c->baseline ? 0 : s < c->baseline ? s + 1 : s;
			run->id = id[i].kind == VALUE_TEXT ? arena_text(c->r->arena, id[i].text) :
				arena_printf(c->r->arena, "%lld", (long long)c->side[s].id[i]);
			if (session[i].kind == VALUE_TEXT && session[i].text.n)
				run->session = arena_text(c->r->arena, session[i].text);
		}
	}
	return fill_work(c, e);
}

/* ---- values ---- */

static unsigned char state_of(const struct counting *c, const struct verdicts *j, size_t run,
			      enum counts counts)
{
	return counts == COUNTS_INVALID ? MATCHED_INVALID :
	       counting_is_degraded(c, j, run) ? MATCHED_DEGRADED : MATCHED_COUNTS;
}

/*
 * Reads one metric of all runs; is_telling: two sides have it, or the only one with runs, and it is
 * not 0 everywhere.
 */
static int fill_metric(struct comparison *c, size_t m, struct str column, bool *is_telling,
		       struct err *e)
{
	struct counting *counting = &c->counting[m];
	size_t with = 0, sides = 0;
	bool is_any = false;

	*counting = counting_of(column);
	c->metric[m] = column;
	for (size_t s = 0; s < c->n_sides; s++) {
		struct value *value;
		size_t n = 0;

		if (side_column(c->r, &c->side[s], column, &value, e) < 0)
			return -1;
		for (size_t i = 0; i < c->side[s].n; i++) {
			size_t at = (c->first[s] + i) * c->room + m;
			enum counts counts;
			double v;

			if (!parts_is_number(value[i], &v))
				v = NAN;
			counts = counting_see(counting, &c->verdicts[s], i, v);
			c->value[at] = counts == COUNTS || counts == COUNTS_INVALID ? v : NAN;
			c->state[at] = state_of(counting, &c->verdicts[s], i, counts);
			n += isnan(c->value[at]) ? 0 : 1;
			is_any |= fabs(c->value[at]) > 0;
		}
		with += n > 0;
		sides += c->side[s].n > 0;
	}
	*is_telling = is_any && (with > 1 || with == sides);
	return 0;
}

static int fill_metrics(struct comparison *c, struct err *e)
{
	bool is_asked;
	size_t n = 0;

	if (read_metrics(c, &is_asked, e) < 0)
		return -1;
	c->room = c->n_metrics;
	c->value = arena_alloc(c->r->arena, (c->total * c->room + 1) * sizeof(*c->value));
	c->state = arena_alloc(c->r->arena, c->total * c->room + 1);
	c->counting = arena_alloc(c->r->arena, (c->n_metrics + 1) * sizeof(*c->counting));
	for (size_t m = 0; m < c->n_metrics; m++) {
		struct str column = c->metric[m];
		bool is_telling;

		if (fill_metric(c, n, column, &is_telling, e) < 0)
			return -1;
		n += is_asked || is_telling || str_eq(column, c->primary);
	}
	c->n_metrics = n;
	for (size_t i = 0; i < c->total; i++) {
		c->run[i].value = c->value + i * c->room;
		c->run[i].state = c->state + i * c->room;
	}
	return 0;
}

/* ---- the comparison ---- */

static void make_spec(struct comparison *c, struct matched_spec *out)
{
	struct matched_metric *metric = arena_alloc(c->r->arena, (c->n_metrics + 1) *
						    sizeof(*metric));
	const char **name = arena_alloc(c->r->arena, c->n_sides * sizeof(*name));
	size_t cells = (c->n_sides - 1) * c->n_metrics;

	*out = (struct matched_spec){
		.run = c->run, .n_runs = c->total, .metric = metric, .n_metrics = c->n_metrics,
		.side = name, .n_sides = c->n_sides, .primary = c->n_metrics,
		.alpha = 1 - c->level, .is_comparable_only = c->is_comparable_only,
		.listed_max = COMPARE_LISTED_MAX / cells,
	};
	name[0] = c->side[c->baseline].name;
	for (size_t s = 0; s < c->n_sides; s++)
		if (s != c->baseline)
			name[s < c->baseline ? s + 1 : s] = c->side[s].name;
	for (size_t m = 0; m < c->n_metrics; m++) {
		const char *unit = column_unit(c->metric[m]);

		metric[m] = matched_metric_of(arena_text(c->r->arena, c->metric[m]),
					      *unit ? unit : NULL, column_better(c->metric[m]));
		if (c->primary.n && str_eq(c->metric[m], c->primary))
			out->primary = m;
	}
}

/* The group that the engine knows as this side. */
static size_t group_of(const struct comparison *c, size_t side)
{
	return side > c->baseline ? side : side - 1;
}

/* Adds which columns prevent that a group is compared. */
static void explain(const struct comparison *c, struct matched_pair *pair)
{
	const char *columns = pair->refusal != MATCHED_REFUSED_UNMATCHED ? NULL :
		matching_obstacles(&c->matching, c->baseline, group_of(c, pair->side));

	if (columns)
		pair->reason = arena_printf(c->r->arena, "%s; no value is on both sides of %s",
					    pair->reason, columns);
}

/* The runs of the configurations that both sides of some comparison have. */
static void mark_compared(struct comparison *c, const struct matched *m)
{
	for (size_t i = 0; i < m->n_pairs; i++) {
		const struct matched_pair *pair = &m->pair[i];
		struct map configs = { 0 };

		for (size_t k = 0; pair->refusal == MATCHED_ACCEPTED && k < pair->n_configs; k++)
			map_put(&configs, str_of(pair->config[k]), k);
		for (size_t k = 0; k < c->total; k++)
			if (!c->run[k].side || c->run[k].side == pair->side)
				c->is_compared[k] |=
					map_get(&configs, str_of(c->run[k].config), NULL);
		map_release(&configs);
	}
}

/*
 * Puts "comparisons", one for each group but the baseline. Nothing is refused where only some of
 * them cannot be compared.
 */
static int put_comparisons(struct comparison *c, struct json_writer *w, struct err *e)
{
	struct matched_spec spec;
	struct matched m = { .n_pairs = 0 };
	size_t refused = 0;

	if (c->n_sides > 1 && c->n_metrics) {
		make_spec(c, &spec);
		matched_compare(&spec, c->r->arena, &m);
	}
	for (size_t i = 0; i < m.n_pairs; i++) {
		refused += m.pair[i].refusal != MATCHED_ACCEPTED;
		explain(c, &m.pair[i]);
	}
	if (refused && refused == m.n_pairs)
		return parts_refuse(e, "/groups", "%s", m.pair[0].reason);
	mark_compared(c, &m);
	json_member_array(w, "comparisons");
	for (size_t i = 0; i < m.n_pairs; i++) {
		json_begin_object(w);
		parts_put_count(w, "group", group_of(c, m.pair[i].side));
		matched_put(w, &m, &m.pair[i], c->r->arena);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

/* ---- notes ---- */

/* Whether the compared runs of two groups have different values of a column. */
static int do_sides_differ(const struct comparison *c, struct str column, bool *out, struct err *e)
{
	const struct value *first = NULL, *release = c->matching.release;

	*out = false;
	for (size_t s = 0; s < c->n_sides; s++) {
		struct value *v;

		if (side_column(c->r, &c->side[s], column, &v, e) < 0)
			return -1;
		for (size_t i = 0; i < c->side[s].n; i++) {
			size_t at = c->first[s] + i;

			if (!c->is_compared[at])
				continue;
			v[i] = series_value(column, v[i], release[at]);
			*out |= first && !series_same_value(*first, v[i]);
			first = first ? first : &v[i];
		}
	}
	return 0;
}

/* A load that differs between groups is what differs between their figures. */
static int note_loads(struct comparison *c, struct err *e)
{
	struct buf names = { 0 };
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < c->matching.n_apart && rc == 0; i++) {
		struct str column = c->matching.apart[i];
		bool is_other = false;

		if (!str_starts(column, STR("benchmark.")))
			continue;
		rc = do_sides_differ(c, column, &is_other, e);
		if (is_other && n++ < COMPARE_COLUMNS_NAMED) {
			buf_add_text(&names, n > 1 ? ", " : "");
			buf_add_str(&names, column);
		}
	}
	if (n)
		parts_note(&c->notes, "The groups had different loads (%s%s): what differs may be due to "
			   "those", names.data, n > COMPARE_COLUMNS_NAMED ? ", ..." : "");
	buf_release(&names);
	return rc;
}

/* Notes what was left out, and whether it would have led; DEGRADED is noted per comparison. */
static void note_left_out(struct comparison *c)
{
	struct counting *left_out = arena_alloc(c->r->arena,
						(c->n_metrics + 1) * sizeof(*left_out));

	for (size_t m = 0; m < c->n_metrics; m++) {
		left_out[m] = c->counting[m];
		left_out[m].degraded = 0;
	}
	counting_notes(left_out, c->n_metrics, &c->notes);
}

/* ---- everything ---- */

static int put_groups(const struct comparison *c, struct json_writer *w, struct err *e)
{
	json_member_array(w, "groups");
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct side *side = &c->side[s];

		json_begin_object(w);
		json_member_text(w, "name", side->name);
		parts_put_count(w, "n", side->n);
		if (side_put_runs(c->r, side, w, e) < 0)
			return -1;
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static void put_columns(struct json_writer *w, const char *key, const struct str *column, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		json_put_str(w, column[i]);
	json_end_array(w);
}

/* A configuration's columns, and some of its runs. */
struct configured {
	const char *name;
	size_t run, n_ids[SIDES_MAX];
	int64_t id[SIDES_MAX][COMPARE_IDS_SHOWN_MAX];
};

static void put_configured(const struct comparison *c, struct json_writer *w,
			   const struct configured *o)
{
	const struct matching *m = &c->matching;

	json_begin_object(w);
	json_member_text(w, "configuration", o->name);
	json_member_array(w, "values");
	for (size_t k = 0; k < m->n_keys; k++)
		value_put(w, series_given(m->key[k], m->value[k * m->total + o->run],
					 m->release[o->run]));
	json_end_array(w);
	json_member_array(w, "ids");
	for (size_t s = 0; s < c->n_sides; s++) {
		json_begin_array(w);
		for (size_t i = 0; i < o->n_ids[s]; i++)
			json_put_int(w, o->id[s][i]);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/*
 * Puts "configurations" in the order of the baseline's runs. A configuration of the same name as
 * another one has different values that are written alike: it shares its entry.
 */
static void put_configurations(const struct comparison *c, struct json_writer *w)
{
	size_t most = c->total < COMPARE_CONFIGURATIONS_MAX ? c->total : COMPARE_CONFIGURATIONS_MAX;
	struct configured *out = arena_alloc(c->r->arena, (most + 1) * sizeof(*out));
	struct map seen = { 0 };
	size_t n = 0;

	for (size_t k = 0; k < c->n_sides; k++) {
		size_t s = k == 0 ? c->baseline : k <= c->baseline ? k - 1 : k;

		for (size_t i = 0; i < c->side[s].n; i++) {
			size_t run = c->first[s] + i;
			uint64_t at = n;

			if (!map_get(&seen, str_of(c->run[run].config), &at)) {
				if (n == most)
					continue;
				map_put(&seen, str_of(c->run[run].config), n);
				out[n].name = c->run[run].config;
				out[n++].run = run;
			}
			if (out[at].n_ids[s] < COMPARE_IDS_SHOWN_MAX)
				out[at].id[s][out[at].n_ids[s]++] = c->side[s].id[i];
		}
	}
	map_release(&seen);
	json_member_array(w, "configurations");
	for (size_t i = 0; i < n; i++)
		put_configured(c, w, &out[i]);
	json_end_array(w);
}

static const bool *left_out(const struct comparison *c)
{
	bool *out = arena_alloc(c->r->arena, c->total + 1);

	for (size_t i = 0; i < c->total; i++) {
		size_t m = 0;

		while (m < c->n_metrics && isnan(c->run[i].value[m]))
			m++;
		out[i] = c->n_metrics && m == c->n_metrics;
	}
	return out;
}

int analyse_compare(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct comparison c = { .r = r, .notes.arena = r->arena };

	if (read_options(&c, e) < 0 || fill_runs(&c, e) < 0 || fill_metrics(&c, e) < 0)
		return -1;
	c.matching.r = r;
	c.matching.side = c.side;
	c.matching.n_sides = c.n_sides;
	c.matching.total = c.total;
	c.matching.is_left_out = left_out(&c);
	if (matching_find(&c.matching, e) < 0)
		return -1;
	matching_name(&c.matching, c.run);
	if (put_groups(&c, w, e) < 0)
		return -1;
	if (differ_put(r, c.side, c.n_sides, w, e) < 0)
		return -1;
	put_columns(w, "matched_by", c.matching.key, c.matching.n_keys);
	put_columns(w, "groups_by", c.matching.apart, c.matching.n_apart);
	put_configurations(&c, w);
	if (put_comparisons(&c, w, e) < 0)
		return -1;
	counting_put(w, c.counting, c.n_metrics);
	if (mixtures_note(r, c.side, c.n_sides, c.run, c.is_compared, true, &c.notes, e) < 0)
		return -1;
	note_left_out(&c);
	for (size_t s = 0; s < c.n_sides && !c.n_metrics; s++)
		counting_note_failed(&c.verdicts[s], c.side[s].n, c.side[s].name, &c.notes);
	if (note_loads(&c, e) < 0 ||
	    mixtures_note(r, c.side, c.n_sides, c.run, c.is_compared, false, &c.notes, e) < 0)
		return -1;
	parts_put_notes(w, &c.notes);
	return 0;
}
