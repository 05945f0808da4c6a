/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impact.c - which parameter moves which metric, as far as runs that were not designed as an
 * experiment can show it.
 *
 * For each parameter separately: the share of the metric's variance that its values explain
 * (stats/significance.h; on logarithms where all values are above 0) with F's p, adjusted by
 * Benjamini and Hochberg over the parameters shown, and the median at each value. Numbers with more
 * than LEVELS_MAX values are cut into ranges of equally many runs. Parameters that move together
 * (Cramer's V of at least TOGETHER) explain the same variance, and no analysis can separate them:
 * each names the others, and so does the note.
 *
 * Of a configuration that was measured with several versions only the newest is used (newest.c),
 * unless the request asks for a version's effect.
 *
 * In addition, matched effects: runs of one version whose configuration (series_role) only differs
 * in one parameter are one group, each value of it is one mean of logarithms there, and each two
 * neighbouring values are a pair. A step has the geometric mean of its pairs' ratios and Student's
 * interval of it. Columns with one value for each value of the parameter change along with it, and
 * are named. A tag is matched, too, but need not be equal otherwise: a note says where the runs
 * of a group differ in one.
 *
 * Parameters that are the same in all the runs are left out first; at most PARAMETERS_MAX of the
 * others are examined, and a note says how many were not. Only the largest shares keep details.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "results/analyse/analyse_internal.h"

#define ALPHA 0.05
#define LEVELS_MAX 24
#define RANGES 8
#define PARAMETERS_MAX 2000 /* varying parameters that are examined */
#define SHOWN_MAX 40        /* the largest shares */
#define COLUMNS_AT_ONCE 8   /* whose values are in memory */
#define TOGETHER 0.5
#define ENOUGH_RUNS 8       /* with fewer no parameter can be judged */
#define PAIRS_MIN 3         /* pairs of a step that is shown */
#define STEPS_SHOWN 40
#define ALSO_SHOWN 4
#define MATCHED_LEVEL 0.95

struct level { struct value low, high; size_t n; double median; };

struct parameter {
	struct str column;
	struct level level[LEVELS_MAX];
	size_t n_levels, seen;     /* seen: how many were before */
	bool is_range;
	uint8_t *code;             /* of each run; NULL: dropped */
	struct oneway o;
	double q;
};

struct impact {
	const struct analyse_request *r;
	struct str metric;
	int64_t *id;               /* runs that have the metric */
	double *y, *x;             /* its values; those the variance is of */
	size_t n;
	bool is_log;
	struct parameter *of;
	size_t n_of, many;         /* many: texts with too many values */
	size_t not_seen;           /* beyond PARAMETERS_MAX */
	size_t kept[SHOWN_MAX + 1], n_kept; /* with the largest shares so far, largest first */
	uint8_t *free_code;        /* for the next one; NULL: all are in use */
	size_t shown;
	double *together;          /* Cramer's V of those shown, shown by shown */
	uint32_t *version;         /* of each run: equal codes are equal versions; NULL: one */
	struct filter *filter;
	struct counting counting;
	struct notes notes;
	struct step_of *step;
	size_t n_steps;
};

/* From a value of a parameter to the next one, everything else equal. */
struct step_of {
	size_t parameter, from, to, pairs;
	double effect, low, high;  /* shares: 0.5 is half as much again */
	struct str also[ALSO_SHOWN];
	size_t n_also;             /* may be more than are named */
};

/* ---- levels ---- */

/* First guess of a value's level: equal values of a column nearly always share it. */
static uint8_t hint_of(struct value v)
{
	uint64_t bits = v.kind == VALUE_TEXT ? (uint64_t)(uintptr_t)v.text.p : 0;

	if (v.kind == VALUE_NUMBER)
		memcpy(&bits, &v.number, sizeof(bits));
	if (v.kind == VALUE_BOOL)
		bits = v.is_true;
	return (uint8_t)((bits + v.kind) * 0x9e3779b97f4a7c15u >> 56);
}

/* A level for each value; false when there are more than LEVELS_MAX. */
static bool one_each(struct parameter *q, const struct value *v, size_t n)
{
	uint8_t hint[256] = { 0 };

	for (size_t i = 0; i < n; i++) {
		uint8_t *at = &hint[hint_of(v[i])];

		if (!q->n_levels || !series_same_value(q->level[*at].low, v[i])) {
			for (*at = 0; *at < q->n_levels; ++*at)
				if (series_same_value(q->level[*at].low, v[i]))
					break;
			if (*at == LEVELS_MAX)
				return false;
			if (*at == q->n_levels)
				q->level[q->n_levels++] = (struct level){ v[i], v[i], 0, NAN };
		}
		q->code[i] = *at;
		q->level[*at].n++;
	}
	return true;
}

static int by_low(const void *a, const void *b)
{
	return value_compare(((const struct level *)a)->low, ((const struct level *)b)->low);
}

static void sort_levels(struct parameter *q, size_t n)
{
	struct level sorted[LEVELS_MAX];
	uint8_t place[LEVELS_MAX] = { 0 };

	memcpy(sorted, q->level, q->n_levels * sizeof(*sorted));
	qsort(sorted, q->n_levels, sizeof(*sorted), by_low);
	for (size_t l = 0; l < q->n_levels; l++)
		for (size_t k = 0; k < q->n_levels; k++)
			if (series_same_value(q->level[l].low, sorted[k].low))
				place[l] = (uint8_t)k;
	for (size_t i = 0; i < n; i++)
		q->code[i] = place[q->code[i]];
	memcpy(q->level, sorted, q->n_levels * sizeof(*sorted));
}

/* Ranges with about equally many runs, none splitting a value; non-numbers come first. */
static void ranges(struct parameter *q, const struct value *v, size_t n)
{
	double *x = mem_array(n + 1, sizeof(*x)), edge[RANGES] = { 0 };
	size_t count = 0, edges = 0, others;

	for (size_t i = 0; i < n; i++)
		if (v[i].kind == VALUE_NUMBER)
			x[count++] = v[i].number;
	stats_sort(x, count);
	for (size_t k = 0; k < RANGES && count; k++) {
		double at = x[k * count / RANGES];

		if (!edges || at > edge[edges - 1])
			edge[edges++] = at;
	}
	free(x);
	others = count < n;
	q->is_range = true;
	q->n_levels = edges + others;
	for (size_t l = 0; l < q->n_levels; l++)
		q->level[l] = (struct level){ { 0 }, { 0 }, 0, NAN };
	for (size_t i = 0; i < n; i++) {
		struct level *l;
		size_t at = 0;

		while (v[i].kind == VALUE_NUMBER && at + 1 < edges && v[i].number >= edge[at + 1])
			at++;
		at = v[i].kind == VALUE_NUMBER ? at + others : 0;
		q->code[i] = (uint8_t)at;
		l = &q->level[at];
		if (!l->n || value_compare(v[i], l->low) < 0)
			l->low = v[i];
		if (!l->n || value_compare(v[i], l->high) > 0)
			l->high = v[i];
		l->n++;
	}
}

static bool has_text(const struct value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == VALUE_TEXT)
			return true;
	return false;
}

/* false: it has only one value, or too many texts. */
static bool make_levels(struct impact *m, struct parameter *q, const struct value *v)
{
	if (one_each(q, v, m->n)) {
		sort_levels(q, m->n);
	} else if (has_text(v, m->n)) {
		m->many++;
		return false;
	} else {
		ranges(q, v, m->n);
	}
	return q->n_levels > 1;
}

static double share_of(const struct parameter *q)
{
	return isnan(q->o.share) ? -1 : q->o.share;
}

/* Keeps a parameter among those shown; otherwise its codes are freed for the next one. */
static void keep_largest(struct impact *m, size_t at)
{
	size_t k = m->n_kept++;

	for (; k && share_of(&m->of[at]) > share_of(&m->of[m->kept[k - 1]]); k--)
		m->kept[k] = m->kept[k - 1];
	m->kept[k] = at;
	if (m->n_kept > SHOWN_MAX) {
		struct parameter *least = &m->of[m->kept[--m->n_kept]];

		m->free_code = least->code;
		least->code = NULL;
	}
}

static void make_parameter(struct impact *m, struct str column, const int64_t *id, size_t n,
			   struct value *v)
{
	struct parameter *q = &m->of[m->n_of];
	size_t k = 0;

	*q = (struct parameter){ .column = column, .code = m->free_code, .q = NAN,
				 .seen = m->n_of };
	if (!q->code)
		q->code = arena_alloc(m->r->arena, m->n + 1);
	m->free_code = q->code;
	for (size_t i = 0; i < n && k < m->n; i++) /* runs without the metric drop out */
		if (id[i] == m->id[k])
			v[k++] = v[i];
	if (!make_levels(m, q, v))
		return;
	q->o = oneway_test(m->x, q->code, m->n, q->n_levels);
	m->free_code = NULL;
	keep_largest(m, m->n_of++);
}

/* Some columns at a time: the values of all of them would not fit. */
static int make_parameters(struct impact *m, const struct str *column, size_t n, struct err *e)
{
	for (size_t from = 0; from < n; from += COLUMNS_AT_ONCE) {
		size_t some = n - from < COLUMNS_AT_ONCE ? n - from : COLUMNS_AT_ONCE, rows;
		struct arena scratch = { 0 };
		struct value *v;
		int64_t *id;

		if (index_select(m->r->view, m->filter, 0, column + from, some, &scratch, &id,
				 &rows, &v, e) < 0) {
			arena_release(&scratch);
			return -1;
		}
		for (size_t c = 0; c < some; c++)
			make_parameter(m, column[from + c], id, rows, v + c * rows);
		/* Texts of levels are the view's, which outlives the scratch memory. */
		arena_release(&scratch);
	}
	return 0;
}

/* ---- what is looked at ---- */

static bool is_parameter(struct str column)
{
	static const char *const groups[] = { "run", "metric", "provenance", "trust", "client",
					      "steady_state", "failures", "system", "resources",
					      "sessions", "correctness", "priority", "prefix_cache" };
	struct column_name c = column_name(column);

	if (str_is(column, "mode") || str_is(column, "gpus"))
		return true;
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (str_is(c.group, groups[i]))
			return false;
	return !c.is_outcome && !str_ends(column, STR(".port")) && !str_ends(column, STR(".host"));
}

/* Takes out the columns that have one value, or none, in all runs that have the metric. */
static int drop_constant(const struct impact *m, struct str *column, size_t *n, struct err *e)
{
	struct filter has = { .kind = FILTER_MISSING, .column = m->metric, .is_missing = false };
	struct filter *part[] = { m->filter, &has };
	struct filter these = { .kind = FILTER_AND, .part = part, .n_parts = 2 };
	const struct filter *closed = filter_closed(&these, m->r->arena);
	size_t all = *n;

	*n = 0;
	for (size_t from = 0; from < all; from += QUERY_FACETS_MAX) {
		struct query q = { .filter = closed, .facet = column + from,
				   .facet_values_max = 1 };
		struct answer answer;

		q.n_facets = all - from < QUERY_FACETS_MAX ? all - from : QUERY_FACETS_MAX;
		if (index_query(m->r->view, &q, m->r->arena, &answer, e) < 0)
			return -1;
		for (size_t i = 0; i < q.n_facets; i++)
			if (!facet_is_constant(&answer.facet[i]))
				column[(*n)++] = column[from + i];
	}
	return 0;
}

static int choose(struct impact *m, struct str **column, size_t *n, struct err *e)
{
	const struct json_value *given = json_get(m->r->body, "parameters");
	const struct column_info *all;
	size_t n_all;

	if (given && given->kind != JSON_NULL)
		return parts_columns(m->r, "parameters", column, n, e);
	all = index_columns(m->r->view, &n_all);
	*column = arena_alloc(m->r->arena, (n_all + 1) * sizeof(**column));
	*n = 0;
	for (size_t i = 0; i < n_all; i++)
		if (is_parameter(all[i].name))
			(*column)[(*n)++] = all[i].name;
	if (drop_constant(m, *column, n, e) < 0)
		return -1;
	m->not_seen = *n > PARAMETERS_MAX ? *n - PARAMETERS_MAX : 0;
	*n -= m->not_seen;
	return 0;
}

/* Whether the request names a column that the versions are made of. */
static bool is_about_versions(const struct impact *m)
{
	const struct json_value *given = json_get(m->r->body, "parameters");

	for (size_t i = 0; given && given->kind == JSON_ARRAY && i < given->count; i++)
		if (setups_role(json_text(&given->item[i], STR(""))) == ROLE_VERSION)
			return true;
	return false;
}

/* A history of one configuration has too few runs of a version to judge: then all are used. */
static void narrow(const struct newest *newest, struct series_list *l, size_t n_rows, bool *keep,
		   struct notes *notes)
{
	struct notes unsaid = *notes;
	size_t n = 0, all = 0;

	for (size_t i = 0; i < l->n; i++)
		all += l->series[i].n;
	newest_narrow(newest, l, "configurations", NULL, &unsaid);
	for (size_t i = 0; i < l->n; i++)
		n += l->series[i].n;
	if (n < all && n < ENOUGH_RUNS) {
		parts_note(notes, "the newest versions have %zu runs, too few to judge: the numbers are "
			   "over all versions", n);
		return;
	}
	*notes = unsaid;
	memset(keep, 0, n_rows);
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->series[i].n; k++)
			keep[l->series[i].member[k]] = true;
}

/* Runs of one configuration and version are one value of a pair, also if they differ in a tag. */
static void note_mixed(struct impact *m, const struct series_list *l, size_t n_rows,
		       const struct newest *newest)
{
	uint32_t *group = arena_alloc(m->r->arena, (n_rows + 1) * sizeof(*group));
	struct str tag;

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->series[i].n; k++)
			group[l->series[i].member[k]] = (uint32_t)i + 1;
	tag = tags_mixed(m->r, NULL, group, newest->version, n_rows);
	if (tag.n)
		parts_note(&m->notes, "values are means over runs that differ in %.*s: filter by one value",
			   (int)tag.n, tag.p);
}

/*
 * Of each configuration only the runs of its newest version. Configurations may have different
 * ones, so that matched runs must also be of one version.
 */
static void keep_newest(struct impact *m, bool *keep)
{
	struct arena *a = m->r->arena;
	struct err none = { 0 };
	struct newest newest;
	struct series_key key;
	struct keyed keyed;
	struct str *column;
	struct rows rows;
	size_t n;

	if (series_key(m->r, &key, &none) < 0)
		return;
	column = arena_alloc(a, (key.n + NEWEST_COLUMNS_MAX) * sizeof(*column));
	if (key.n)
		memcpy(column, key.column, key.n * sizeof(*column));
	n = newest_columns(m->r, column + key.n);
	if (parts_select(m->r, column, key.n + n, &rows, &none) < 0) {
		parts_note(&m->notes, "these are too many runs to keep the newest version of each "
			   "configuration, so all versions are here: narrow the filter");
		return;
	}
	newest_read(a, &rows, key.n, n, &newest);
	series_make(m->r, &key, &rows, key.n + 1, keep, &keyed);
	note_mixed(m, &keyed.list, rows.n, &newest);
	narrow(&newest, &keyed.list, rows.n, keep, &m->notes);
	m->version = arena_alloc(a, (rows.n + 1) * sizeof(*m->version));
	n = 0;
	for (size_t i = 0; i < rows.n; i++)
		if (keep[i])
			m->version[n++] = newest.version[i];
}

static int read_metric(struct impact *m, struct err *e)
{
	struct rows rows;
	size_t missing = 0;
	bool *keep;

	if (parts_metric(m->r, "metric", &m->metric, e) < 0 ||
	    parts_select(m->r, &m->metric, 1, &rows, e) < 0 ||
	    filter_read(json_get(m->r->body, "filter"), "/filter", m->r->arena, &m->filter, e) < 0)
		return -1;
	m->id = arena_alloc(m->r->arena, (rows.n + 1) * sizeof(*m->id));
	m->y = arena_alloc(m->r->arena, (rows.n + 1) * sizeof(*m->y));
	m->x = arena_alloc(m->r->arena, (rows.n + 1) * sizeof(*m->x));
	m->is_log = true;
	m->counting = counting_of(m->metric);
	keep = arena_alloc(m->r->arena, rows.n + 1);
	for (size_t i = 0; i < rows.n; i++) {
		enum counts counts = counting_see(&m->counting, &rows.verdicts, i,
						  parts_number_at(&rows, 0, i));

		missing += counts == COUNTS_MISSING;
		keep[i] = counts == COUNTS;
	}
	if (!is_about_versions(m))
		keep_newest(m, keep);
	for (size_t i = 0; i < rows.n; i++) {
		double v = parts_number_at(&rows, 0, i);

		if (!keep[i])
			continue;
		m->is_log &= v > 0;
		m->y[m->n] = v;
		m->id[m->n++] = rows.id[i];
	}
	for (size_t i = 0; i < m->n; i++)
		m->x[i] = m->is_log ? log(m->y[i]) : m->y[i];
	if (missing)
		parts_note(&m->notes, "%s of %s runs have no %.*s", arena_count(m->r->arena, missing),
			   arena_count(m->r->arena, rows.n), (int)m->metric.n, m->metric.p);
	counting_notes(&m->counting, 1, &m->notes);
	return 0;
}

/* ---- judging ---- */

static void fill_medians(const struct impact *m, struct parameter *q)
{
	double *x = mem_array(m->n + 1, sizeof(*x));
	size_t from[LEVELS_MAX + 1] = { 0 }, to[LEVELS_MAX];

	for (size_t l = 0; l < q->n_levels; l++) {
		to[l] = from[l];
		from[l + 1] = from[l] + q->level[l].n;
	}
	for (size_t i = 0; i < m->n; i++)
		x[to[q->code[i]]++] = m->y[i];
	for (size_t l = 0; l < q->n_levels; l++)
		q->level[l].median = parts_median(x + from[l], q->level[l].n);
	free(x);
}

/* Of equal shares those already kept come first, then the preferred name, then the first seen. */
static int by_share(const void *a, const void *b)
{
	const struct parameter *p = a, *q = b;
	double x = share_of(p), y = share_of(q);
	size_t rank = column_rank(p->column), other = column_rank(q->column);

	if (x > y || x < y)
		return x > y ? -1 : 1;
	if (!p->code != !q->code)
		return p->code ? -1 : 1;
	if (rank != other)
		return rank < other ? -1 : 1;
	return (p->seen > q->seen) - (p->seen < q->seen);
}

static void judge_all(struct impact *m)
{
	double *p = arena_alloc(m->r->arena, (m->n_of + 1) * sizeof(*p));

	if (m->n_of)
		qsort(m->of, m->n_of, sizeof(*m->of), by_share);
	for (size_t i = 0; i < m->n_of; i++)
		p[i] = m->of[i].o.p;
	compare_adjust(p, m->n_of);
	for (size_t i = 0; i < m->n_of; i++)
		m->of[i].q = p[i];
	m->shown = m->n_kept;
	m->together = arena_alloc(m->r->arena, (m->shown * m->shown + 1) * sizeof(*m->together));
	for (size_t i = 0; i < m->shown; i++) {
		fill_medians(m, &m->of[i]);
		m->together[i * m->shown + i] = NAN;
		for (size_t k = 0; k < i; k++)
			m->together[i * m->shown + k] = m->together[k * m->shown + i] =
				cramers_v(m->of[i].code, m->of[i].n_levels, m->of[k].code,
					  m->of[k].n_levels, m->n);
	}
}

/* ---- everything else equal ---- */

/* The other configuration of the runs that have the metric. */
/* The configuration: a code for each run's value of each of n columns. */
struct configured {
	struct str *column;
	uint32_t **code;
	size_t n;
	/* For the current parameter: */
	bool *is_along; /* the column has one value for each of the parameter's ... */
	uint32_t (*at_level)[LEVELS_MAX]; /* ... with this code */
};

static int read_configured(const struct impact *m, struct configured *out)
{
	struct arena *a = m->r->arena;
	struct value *v = arena_alloc(a, (m->n + 1) * sizeof(*v));
	struct err none = { 0 };
	struct series_key key;
	struct rows rows;

	if (series_key(m->r, &key, &none) < 0 ||
	    parts_select(m->r, key.column, key.n, &rows, &none) < 0)
		return -1;
	*out = (struct configured){ .column = key.column, .n = key.n };
	out->code = arena_alloc(a, (key.n + 1) * sizeof(*out->code));
	out->is_along = arena_alloc(a, (key.n + 1) * sizeof(*out->is_along));
	out->at_level = arena_alloc(a, (key.n + 1) * sizeof(*out->at_level));
	for (size_t c = 0; c < key.n; c++) {
		uint32_t codes;
		size_t k = 0;

		for (size_t i = 0; i < rows.n && k < m->n; i++)
			if (rows.id[i] == m->id[k])
				v[k++] = rows.value[c * rows.n + i];
		out->code[c] = setups_codes(a, v, m->n, &codes);
	}
	return 0;
}

/* Whether a column has one value for each value of the parameter; first: their codes. */
static bool goes_along(const struct impact *m, const struct parameter *q, const uint32_t *code,
		       uint32_t *first)
{
	bool is_seen[LEVELS_MAX] = { false };

	for (size_t i = 0; i < m->n; i++) {
		size_t l = q->code[i];

		if (is_seen[l] && first[l] != code[i])
			return false;
		first[l] = code[i];
		is_seen[l] = true;
	}
	return true;
}

struct member { uint64_t rest; uint8_t level; double x; };

static int by_rest(const void *a, const void *b)
{
	const struct member *p = a, *q = b;

	if (p->rest != q->rest)
		return p->rest < q->rest ? -1 : 1;
	return (int)p->level - q->level;
}

/*
 * Each run with a hash of its version and of all that was configured, but for the parameter and
 * what goes along with it.
 */
static void fill_members(const struct impact *m, struct configured *c, const struct parameter *q,
			 struct member *out)
{
	for (size_t i = 0; i < m->n; i++)
		out[i] = (struct member){ 0x9e3779b97f4a7c15u + (m->version ? m->version[i] : 0),
					  q->code[i], m->x[i] };
	for (size_t k = 0; k < c->n; k++) {
		bool is_itself = str_eq(c->column[k], q->column);

		c->is_along[k] = !is_itself && goes_along(m, q, c->code[k], c->at_level[k]);
		if (is_itself || c->is_along[k])
			continue;
		for (size_t i = 0; i < m->n; i++) {
			uint64_t h = (out[i].rest ^ (c->code[k][i] + k * 0x100000001b3u)) *
				     0xbf58476d1ce4e5b9u;

			out[i].rest = h ^ h >> 29;
		}
	}
	qsort(out, m->n, sizeof(*out), by_rest);
}

/* The mean of the members of one group and level, from *at on, which then is after them. */
static double next_mean(const struct member *x, size_t n, size_t *at)
{
	size_t from = *at;
	double sum = 0;

	for (; *at < n && !by_rest(&x[from], &x[*at]); ++*at)
		sum += x[*at].x;
	return sum / (double)(*at - from);
}

static void add_step(struct impact *m, const struct configured *c, struct step_of step,
		     const double *x, size_t n)
{
	struct step_of *s = &m->step[m->n_steps];
	struct interval around = student_interval(x, n, MATCHED_LEVEL);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	*s = step;
	s->pairs = n;
	s->effect = expm1(sum / (double)n);
	s->low = expm1(around.low);
	s->high = expm1(around.high);
	for (size_t k = 0; k < c->n; k++) {
		if (!c->is_along[k] || c->at_level[k][s->from] == c->at_level[k][s->to])
			continue;
		if (s->n_also < ALSO_SHOWN)
			s->also[s->n_also] = c->column[k];
		s->n_also++;
	}
	m->n_steps++;
}

struct pair_of { size_t from, to; double ratio; };

static int by_step(const void *a, const void *b)
{
	const struct pair_of *p = a, *q = b;

	if (p->from != q->from)
		return p->from < q->from ? -1 : 1;
	if (p->to != q->to)
		return p->to < q->to ? -1 : 1;
	return (p->ratio > q->ratio) - (p->ratio < q->ratio);
}

/* Neighbouring values of the parameter in each group. */
static size_t pairs_of(const struct impact *m, const struct member *x, struct pair_of *out)
{
	double before = NAN;
	size_t n = 0;

	for (size_t i = 0; i < m->n;) {
		size_t first = i;
		double mean = next_mean(x, m->n, &i);

		if (first && x[first].rest == x[first - 1].rest)
			out[n++] = (struct pair_of){ x[first - 1].level, x[first].level,
						     mean - before };
		before = mean;
	}
	return n;
}

/* A name of --metadata that users gave to what they compare, and that is not configuration. */
static bool is_tag(struct str column)
{
	return str_starts(column, STR("tags.")) && series_role(column) == SERIES_CIRCUMSTANCE;
}

static bool is_configured(struct str column)
{
	return series_role(column) == SERIES_KEY;
}

/* Columns that split the runs identically are one: the first is shown, tags only alone. */
static bool is_repeated(const struct impact *m, size_t at)
{
	bool is_tag_here = is_tag(m->of[at].column);

	for (size_t k = 0; k < m->shown; k++)
		if (k != at && m->of[k].n_levels == m->of[at].n_levels &&
		    m->together[at * m->shown + k] > 1 - 1e-9 &&
		    (is_configured(m->of[k].column) ? k < at || is_tag_here :
		     is_tag_here && k < at && is_tag(m->of[k].column)))
			return true;
	return false;
}

static void match_parameter(struct impact *m, struct configured *c, size_t parameter,
			    struct member *x, struct pair_of *pair, double *ratio)
{
	size_t n;

	if (m->of[parameter].is_range || is_repeated(m, parameter) ||
	    !(is_configured(m->of[parameter].column) || is_tag(m->of[parameter].column)))
		return;
	fill_members(m, c, &m->of[parameter], x);
	n = pairs_of(m, x, pair);
	if (n)
		qsort(pair, n, sizeof(*pair), by_step);
	for (size_t from = 0, to; from < n; from = to) {
		struct step_of step = { .parameter = parameter, .from = pair[from].from,
					.to = pair[from].to };

		for (to = from; to < n && pair[to].from == step.from &&
		     pair[to].to == step.to; to++)
			ratio[to - from] = pair[to].ratio;
		if (to - from >= PAIRS_MIN)
			add_step(m, c, step, ratio, to - from);
	}
}

/* The largest changes first, in either direction. */
static int by_effect(const void *a, const void *b)
{
	double x = fabs(log1p(((const struct step_of *)a)->effect));
	double y = fabs(log1p(((const struct step_of *)b)->effect));

	return x < y ? 1 : x > y ? -1 : 0;
}

static void match_all(struct impact *m)
{
	struct arena *a = m->r->arena;
	struct member *x = arena_alloc(a, (m->n + 1) * sizeof(*x));
	struct pair_of *pair = arena_alloc(a, (m->n + 1) * sizeof(*pair));
	double *ratio = arena_alloc(a, (m->n + 1) * sizeof(*ratio));
	struct configured c;
	size_t room = 0;

	if (!m->shown || !m->is_log)
		return;
	if (read_configured(m, &c) < 0) {
		parts_note(&m->notes, "these are too many runs to match them: narrow the filter");
		return;
	}
	for (size_t i = 0; i < m->shown; i++)
		room += m->of[i].n_levels * m->of[i].n_levels;
	m->step = arena_alloc(a, (room + 1) * sizeof(*m->step));
	for (size_t i = 0; i < m->shown; i++)
		match_parameter(m, &c, i, x, pair, ratio);
	if (m->n_steps)
		qsort(m->step, m->n_steps, sizeof(*m->step), by_effect);
}

/* ---- out ---- */

static void put_step(const struct impact *m, struct json_writer *w, const struct step_of *s)
{
	const struct parameter *q = &m->of[s->parameter];

	json_begin_object(w);
	json_member_str(w, "column", q->column);
	parts_put_value(w, "from", q->level[s->from].low);
	parts_put_value(w, "to", q->level[s->to].low);
	parts_put_number(w, "effect", s->effect);
	parts_put_interval(w, "interval", s->low, s->high);
	parts_put_count(w, "pairs", s->pairs);
	json_member_array(w, "also");
	for (size_t i = 0; i < s->n_also && i < ALSO_SHOWN; i++)
		json_put_str(w, s->also[i]);
	json_end_array(w);
	parts_put_count(w, "also_total", s->n_also);
	json_end_object(w);
}

static void put_levels(struct json_writer *w, const struct parameter *q)
{
	json_member_array(w, "levels");
	for (size_t l = 0; l < q->n_levels; l++) {
		const struct level *one = &q->level[l];

		json_begin_object(w);
		parts_put_value(w, "value", one->low);
		if (q->is_range && !series_same_value(one->low, one->high))
			parts_put_value(w, "to", one->high);
		parts_put_count(w, "n", one->n);
		parts_put_number(w, "median", one->median);
		json_end_object(w);
	}
	json_end_array(w);
}

static double effect_of(const struct parameter *q)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t l = 0; l < q->n_levels; l++) {
		low = fmin(low, q->level[l].median);
		high = fmax(high, q->level[l].median);
	}
	return fabs(low) > 0 ? (high - low) / fabs(low) : NAN;
}

static size_t put_confounded(const struct impact *m, struct json_writer *w, size_t at)
{
	size_t n = 0;

	json_member_array(w, "confounded_with");
	for (size_t i = 0; i < m->shown; i++) {
		if (!(m->together[at * m->shown + i] >= TOGETHER))
			continue;
		json_begin_object(w);
		json_member_str(w, "column", m->of[i].column);
		parts_put_number(w, "strength", m->together[at * m->shown + i]);
		json_end_object(w);
		n++;
	}
	json_end_array(w);
	return n;
}

/* Whether configurations that are equal otherwise show that the parameter matters. */
static bool has_effect(const struct impact *m, size_t parameter)
{
	for (size_t i = 0; i < m->n_steps; i++)
		if (m->step[i].parameter == parameter && m->step[i].low * m->step[i].high > 0)
			return true;
	return false;
}

static void put_parameter(const struct impact *m, struct json_writer *w, size_t at)
{
	const struct parameter *q = &m->of[at];
	size_t together;

	json_begin_object(w);
	json_member_str(w, "column", q->column);
	parts_put_number(w, "share", q->o.share);
	parts_put_number(w, "p", q->o.p);
	parts_put_number(w, "p_adjusted", q->q);
	put_levels(w, q);
	parts_put_number(w, "effect", effect_of(q));
	together = put_confounded(m, w, at);
	json_member_text(w, "note", isnan(q->o.p) ? "too few runs of each value to decide" :
		       !(q->q <= ALPHA) ?
		       has_effect(m, at) ? "little next to what the others change; with everything else "
					   "equal it matters" : "no evidence that it matters" :
		       together ? "changes together with others: which of them matters cannot be decided "
				  "from these runs" : NULL);
	json_end_object(w);
}

static void put_all(struct impact *m, struct json_writer *w)
{
	json_member_str(w, "metric", m->metric);
	parts_put_kind(w, m->metric);
	parts_put_count(w, "n", m->n);
	json_member_array(w, "matched");
	for (size_t i = 0; i < m->n_steps && i < STEPS_SHOWN; i++)
		put_step(m, w, &m->step[i]);
	json_end_array(w);
	json_member_array(w, "parameters");
	for (size_t i = 0; i < m->shown; i++)
		put_parameter(m, w, i);
	json_end_array(w);
	if (m->shown < m->n_of)
		parts_note(&m->notes, "%zu parameters vary; the %zu that explain most are shown",
			   m->n_of, m->shown);
	if (m->many)
		parts_note(&m->notes, "%zu parameter%s more than %d values and %s left out", m->many,
			   m->many == 1 ? " has" : "s have", LEVELS_MAX, m->many == 1 ? "is" : "are");
	if (m->not_seen)
		parts_note(&m->notes, "%zu more parameters differ among these runs and were not looked at "
			   "(at most %d are): narrow the filter, or name those in question", m->not_seen,
			   PARAMETERS_MAX);
	counting_put(w, &m->counting, 1);
	parts_put_notes(w, &m->notes);
}

int analyse_impact(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct impact m = { .r = r, .notes.arena = r->arena };
	struct str *column;
	size_t n;

	if (read_metric(&m, e) < 0 || choose(&m, &column, &n, e) < 0)
		return -1;
	if (m.n < ENOUGH_RUNS) {
		parts_note(&m.notes, "not enough data: %zu run%s a finite %.*s, at least %d are needed",
			   m.n, m.n == 1 ? " has" : "s have", (int)m.metric.n, m.metric.p, ENOUGH_RUNS);
		n = 0;
	}
	m.of = arena_alloc(r->arena, (n + 1) * sizeof(*m.of));
	if (make_parameters(&m, column, n, e) < 0)
		return -1;
	judge_all(&m);
	match_all(&m);
	put_all(&m, w);
	return 0;
}
