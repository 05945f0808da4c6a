/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse_internal.h - shared by the analyses: members of requests, matching runs as columns, which
 * runs count for a metric, groups and series of runs, and numbers as JSON. Private to analyse/.
 *
 * A wrong member is refused as ERR_USAGE with a sentence that begins with its JSON pointer and a
 * colon. Runs that are excluded, archived, superseded or removed never take part, unless their
 * numbers are listed one by one.
 */
#pragma once
#include <stdint.h>

#include "core/base/err.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "results/analyse/analyse.h"
#include "results/decide/compare.h"
#include "results/index/formula.h"
#include "results/index/names.h"
#include "results/index/row.h"

struct notes;

/* Verdict columns of runs: the values of counted_columns, one per run. */
#define COUNTED_COLUMNS 5
extern const struct str counted_columns[COUNTED_COLUMNS];
struct verdicts {
	const struct value *value[COUNTED_COLUMNS];
	bool is_everything;        /* include_invalid */
};

enum counts {
	COUNTS,
	COUNTS_MISSING,            /* no number */
	COUNTS_FAILED, COUNTS_INVALID,
};

/* The runs of one metric: which count, and the best values of those that do not. */
struct counting {
	struct str metric;
	struct str judged;         /* the metric that verdicts name; of a quotient, its numerator */
	int better;                /* direction: 1, -1, 0 neither */
	bool is_measured;          /* else it is a parameter, and every run counts */
	bool is_of_failures;       /* failed runs also have it */
	size_t failed, invalid;    /* runs seen that do not count */
	size_t degraded;           /* runs seen that count although it is DEGRADED in them */
	double best[2];            /* of those that count, of those that are INVALID; NAN: none */
};
struct counting counting_of(struct str metric); /* costs microseconds: once per metric */
/* v: the run's value, NAN if missing. Updates no count. */
enum counts counts_for(const struct counting *c, const struct verdicts *j, size_t run, double v);
/* The same, and updates the counts in c. */
enum counts counting_see(struct counting *c, const struct verdicts *j, size_t run, double v);
/* Limits the count of DEGRADED runs to the series that are shown. */
struct series_list;
void counting_narrow(struct counting *c, const struct verdicts *j, const struct series_list *l);
/* Whether the metric is DEGRADED in a run that counts. */
bool counting_is_degraded(const struct counting *c, const struct verdicts *j, size_t run);

/* Adds a sentence if all n runs of a group failed. */
void counting_note_failed(const struct verdicts *j, size_t n, const char *name,
			  struct notes *notes);
/* Adds a sentence for each thing that a reader must know. */
void counting_notes(const struct counting *c, size_t n, struct notes *notes);
/* "trust": a list with an object for each metric that anything was seen of. */
void counting_put(struct json_writer *w, const struct counting *c, size_t n);

/* ---- limits ---- */

#define ANALYSE_CELLS_MAX (12u << 20) /* matching runs times requested columns: 300 MB */
#define ANALYSE_COLUMNS_MAX 32        /* in one list of a request */
#define ANALYSE_SERIES_MAX 100        /* shown; the largest ones */
#define ANALYSE_IDS_SHOWN_MAX 200     /* ids listed for one point or group */
#define ANALYSE_NOTES_MAX 40
#define ANALYSE_SLO_MAX 8             /* limits of a capacity; also in pages/capacity/slo.ts */
#define ANALYSE_NUMBER_MAX 1e100      /* larger ones measure nothing; their squares overflow */

/* ---- requests ---- */

__attribute__((format(printf, 3, 4)))
int parts_refuse(struct err *e, const char *pointer, const char *fmt, ...);
/* The name of a required column. */
int parts_column(const struct analyse_request *r, const char *key, struct str *out, struct err *e);
/* The same of one with numbers. */
int parts_metric(const struct analyse_request *r, const char *key, struct str *out, struct err *e);
/* A list of columns, or one as a text; n is 0 when missing. */
int parts_columns(const struct analyse_request *r, const char *key, struct str **out, size_t *n,
		  struct err *e);
/* *out is otherwise when missing. */
int parts_number(const struct json_value *object, const char *pointer, const char *key,
		 double otherwise, double min, double max, double *out, struct err *e);
/* The same for a whole number. */
int parts_whole(const struct json_value *object, const char *pointer, const char *key,
		size_t otherwise, size_t min, size_t max, size_t *out, struct err *e);
/* A member that is true, false or missing. */
int parts_bool(const struct json_value *body, const char *key, bool *out, struct err *e);
/* The columns of a list (ended by NULL) that any run of the view has. */
struct str *parts_present(const struct analyse_request *r, const char *const *list, size_t *n);
/* Columns that make runs comparable by default: model, hardware, workload, load. */
extern const char *const parts_series_default[];

/* ---- runs ---- */

struct rows {
	size_t n;
	int64_t *id;
	struct value *value; /* of row i in column c: [c * n + i] */
	struct verdicts verdicts; /* which metrics a row counts for */
};

/* Selects the runs of the body's "filter"; without columns only their ids and verdicts. */
int parts_select(const struct analyse_request *r, const struct str *column, size_t n_columns,
		 struct rows *out, struct err *e);
/* Selects the runs of another filter. */
int parts_select_by(const struct analyse_request *r, const struct filter *f,
		    const struct str *column, size_t n_columns, struct rows *out, struct err *e);
/*
 * Limits the filter to its newest `most` runs by a condition on time: not before the oldest of
 * them. *out NULL: no more than that match. matching: how many do.
 */
int parts_newest(const struct analyse_request *r, const struct filter *f, size_t most,
		 struct filter **out, size_t *matching, struct err *e);
/* Runs that both match; either may be NULL. */
struct filter *parts_both(struct arena *a, const struct filter *x, const struct filter *y);
/* Appends bytes that are equal only for equal values. */
void parts_add_key(struct buf *b, struct value v);
/* A finite number whose powers are also finite. */
bool parts_is_number(struct value v, double *out);
double parts_number_at(const struct rows *rows, size_t column, size_t row); /* NAN: not a number */

/* Rows with equal values in the first n_keys columns (absent and null are equal here). */
struct series {
	size_t row;      /* the first of them */
	size_t *member;  /* rows, ascending */
	size_t n;
	char *name;      /* what distinguishes it from the others, for people */
	char *id;        /* every column and value: independent of what else is shown */
};
struct series_list {
	struct series *series; /* most runs first */
	size_t n, shown;       /* only those shown, at most ANALYSE_SERIES_MAX, have names */
	const struct str *key;
	size_t n_keys;
	const struct rows *rows;
};
/* Rows for which keep[i] is false are left out; keep NULL: all are in. */
void parts_series(struct arena *a, const struct rows *rows, const struct str *key, size_t n_keys,
		  const bool *keep, struct series_list *out);
/* Sets names and ids again, from l->rows. */
void parts_name_series(struct arena *a, struct series_list *l);
/* "key": {COL: cell}, "name": text */
void parts_put_series(struct json_writer *w, const struct series_list *l, size_t i);

/* ---- out ---- */

void parts_put_double(struct json_writer *w, double v); /* null for NAN; "inf" */
void parts_put_number(struct json_writer *w, const char *key, double v); /* null for NAN */
void parts_put_value(struct json_writer *w, const char *key, struct value v);
const char *parts_cell_text(struct arena *a, struct value v); /* for people; "not set" */
struct str parts_last_word(struct str column);                 /* what follows the last dot */
void parts_put_count(struct json_writer *w, const char *key, size_t n);
void parts_put_interval(struct json_writer *w, const char *key, double low, double high);
/* "unit" and "better" of a column. */
void parts_put_kind(struct json_writer *w, struct str column);
/* "key": {"column", "unit", "better"} */
void parts_put_axis(struct json_writer *w, const char *key, struct str column);
void parts_put_ids(struct json_writer *w, const struct rows *rows, const size_t *member, size_t n);

/* Things a reader must know, a sentence each. */
struct notes { const char *text[ANALYSE_NOTES_MAX]; size_t n; struct arena *arena; };
__attribute__((format(printf, 2, 3)))
void parts_note(struct notes *n, const char *fmt, ...);
void parts_put_notes(struct json_writer *w, const struct notes *n);

/* NAN if there are none; sorts x. */
double parts_median(double *x, size_t n);

/*
 * Groups of runs that a request names, by their numbers or by a filter.
 *
 *   {"name"?, "ids": [number or run_id, ...]}   also runs that are excluded or archived
 *   {"name"?, "filter": F}                      usual runs
 */

#define SIDES_MAX 12
#define SIDE_IDS_MAX 2000
#define SIDES_IDS_MAX 10000 /* of all groups together, because whole rows are read */

struct side {
	const char *name;          /* as given, else "A", "B" ... */
	size_t n;
	int64_t *id;               /* ascending, each once */
	struct filter *filter;     /* NULL: by ids */
	struct row *row;           /* by ids: whole rows */
};

/* Reads one group; pointer is the position of json ("/groups/0"). */
int side_read(const struct analyse_request *r, const struct json_value *json, const char *pointer,
	      const char *name, struct side *out, struct err *e);
/* The value of every run in a column, in the order of id. */
int side_column(const struct analyse_request *r, const struct side *s, struct str column,
		struct value **out, struct err *e);
/* "ids", and "configurations": of each of them what repeats have in common (derive.c). */
int side_put_runs(const struct analyse_request *r, const struct side *s, struct json_writer *w,
		  struct err *e);
/* The verdict columns of the runs, in the order of id. */
int side_verdicts(const struct analyse_request *r, const struct side *s, struct verdicts *out,
		struct err *e);

/* ---- the values of a column, and how often they occur ---- */

struct value_count { struct value value; size_t count; }; /* absent: no value, or null */
struct value_counts {
	struct value_count *of;    /* most first */
	size_t n, distinct;        /* n: at most SIDE_VALUES_MAX of all */
};
#define SIDE_VALUES_MAX 20

/* out[i] is of column[i]. */
int side_counts(const struct analyse_request *r, const struct side *s, const struct str *column,
		size_t n, struct value_counts *out, struct err *e);

/*
 * Writes "parameters": only those that differ. "between": a group has a value that another one
 * lacks; "within": groups have the same values, but several.
 */
int differ_put(const struct analyse_request *r, const struct side *side, size_t n_sides,
	       struct json_writer *w, struct err *e);
/*
 * Notes what is not configuration and yet makes figures of one group differ: tags in which repeats
 * of a configuration differ, or versions. run and is_compared: of all groups, one after another.
 */
int mixtures_note(const struct analyse_request *r, const struct side *side, size_t n_sides,
		  const struct matched_run *run, const bool *is_compared, bool is_tags,
		  struct notes *notes, struct err *e);

/*
 * The runs of a series in order: by the commit of the measured engine, by its version, by day, or
 * one by one.
 *
 * A commit is placed at its earliest run, so that a later run of an old commit does not move it;
 * versions are in the order of their numbers; days are in UTC. All runs of a commit, a version or a
 * day are one point: its value is the mean over server sessions of each session's mean, of
 * logarithms where all values are above 0. A run with an unknown session is a session of its own.
 */

enum axis { AXIS_COMMIT, AXIS_VERSION, AXIS_DAY, AXIS_TIME, AXIS_AUTO };

/* Columns that points need in addition to the metric, in this order. */
enum { POINT_TIME, POINT_COMMIT, POINT_VERSION, POINT_SESSION, POINT_COLUMNS };
extern const struct str points_columns[POINT_COLUMNS];

/* Their positions in rows: the metric's, the first of points_columns. */
struct point_columns { size_t metric, first; enum axis axis; };

struct point {
	double at_s;         /* the earliest run, seconds since 1970 */
	struct str commit, version; /* of the first run that has one; or empty */
	size_t *member;      /* rows */
	size_t n, sessions;
	double value, low, high; /* as above; the smallest and the largest run */
};

/* Reads the request's "axis"; AXIS_AUTO without one, which points_choose then resolves. */
int points_axis(const struct analyse_request *r, enum axis *out, struct err *e);
/*
 * Chooses by the data: commits, else versions, when there are enough of them to find a change or
 * most runs name one; versions must not be rarer than every POINT_DAYS_A_VERSION days. Else days if
 * there are enough, else single runs. Any axis but AXIS_AUTO is unchanged.
 */
#define POINT_DAYS_A_VERSION 3
void points_choose(const struct rows *rows, const bool *keep, struct arena *a,
		   struct point_columns *c);
/* How many rows an axis would have, and how many points; single runs count as days. */
struct axis_use { size_t runs, places; };
struct axis_use points_on(const struct rows *rows, const bool *keep, struct arena *a,
			  struct point_columns c, enum axis axis);
const char *points_axis_name(enum axis axis);
const char *points_order(enum axis axis); /* a sentence: what a point is, what orders them */

/* Like strcmp: "0.9.2" is before "0.11.0rc1", which is before "0.11.0". */
int versions_order(struct str a, struct str b);

/* Whether a row can be on this axis at all. */
bool points_has(const struct rows *rows, const struct point_columns *c, size_t row);
/* The points in order; all members of s must have what points_has requires. */
struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n);
/*
 * The point at which a run without the metric belongs: that of its commit or version, else the last
 * one that began no later. SIZE_MAX: none.
 */
size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n);

/*
 * What makes runs one series: their whole configuration.
 *
 * Unless the request lists columns, the key of a run is every option of its servers and of its
 * load, model, hardware, driver, engine, the hash of a replayed workload, and the mode; not the
 * commit, the version, names, locations (ports, addresses, paths of results), seeds, and output
 * options. A file counts by its name, without its folder. The simulator's own costs represent the
 * code under test, so they are treated like its version.
 *
 * A value that is known to be the default (of the run's own release of vLLM, of `bench serve`), a
 * flag of the load that is off, and null mean the same as no value: a run that names a default
 * belongs to the series of those that omit it. Without a reported version no default of the engine
 * is known: then a missing option and its usual value are two configurations.
 */

enum series_role {
	SERIES_KEY,          /* runs with different values are in different series */
	SERIES_CIRCUMSTANCE, /* may explain a change: versions, machine, build, image, tags */
	SERIES_ASIDE,        /* names, locations, results */
};
enum series_role series_role(struct str column);
/* The value as used in keys: absent if it means the same. version: the engine's, or missing. */
struct value series_value(struct str column, struct value v, struct value version);
/* The value in effect: of a missing option the default of that version, if known. */
struct value series_given(struct str column, struct value v, struct value version);

struct series_key {
	struct str *column;
	size_t n;
	bool is_chosen;      /* by the request: values are used unchanged */
};
/*
 * The request's "series"; else the columns of keys in which the filter's runs differ, model and
 * hardware first.
 */
int series_key(const struct analyse_request *r, struct series_key *out, struct err *e);
/* Columns of the role or below it that can differ at all, in the same order. */
struct str *series_columns(const struct analyse_request *r, enum series_role most, size_t *n);

/* Runs by their keys; shown names and the list's rows have the original values. */
struct keyed {
	struct rows rows;    /* ids, and values of the key only, as used in keys */
	struct series_list list;
};
/*
 * rows begins with the key's columns; version is the column of environment.server.version. Ids of
 * series contain their whole key, including what all shown runs have in common.
 */
void series_make(const struct analyse_request *r, const struct series_key *key,
		 const struct rows *rows, size_t version, const bool *keep, struct keyed *out);
bool series_same_value(struct value a, struct value b); /* null and absent are the same */
bool series_is_same(const struct keyed *k, size_t row, size_t other);
/* A value of a key for people: "256 (default)" for a missing one with a known default, "not set". */
const char *series_text(struct arena *a, struct str column, struct value v, struct value version);

/* ---- what changed in addition to the metric ---- */

struct series_change { struct str column; struct value before, after; };
/*
 * Circumstances, and keys by their original values, that have one value in all runs of one side and
 * another one in all of the other; and tags of which the sides share no value, with the values of
 * the first run of each. Environment and hardware come first.
 */
struct series_change *series_changes(const struct analyse_request *r, const int64_t *before,
				     size_t n_before, const int64_t *after, size_t n_after,
				     size_t *n);

/*
 * A step of a trend for people: where it is, what else changed there, and the command that verifies
 * it.
 */

#define STEP_POINTS 3 /* on each side of a step; a circumstance must be constant in them */

struct step {
	struct str metric;
	enum axis axis;
	const struct point *before, *after; /* the points next to it */
	double value[2];     /* levels */
	const struct series_change *also;   /* what changed there in addition to the commit */
	size_t n_also;
};

/* "commit c000008", "2026-01-09": the name of a point on its axis. */
const char *step_place(struct arena *a, enum axis axis, const struct point *p);
/* "also": [{"column", "before", "after"}] */
void step_put_also(struct json_writer *w, const struct series_change *also, size_t n);
/*
 * A sentence without a full stop: "output_throughput fell by 10 %, from 100 to 90 tokens/s, at
 * commit c000008; changed there: environment.driver 550 -> 560, commit c000007 -> c000008".
 */
const char *step_text(struct arena *a, const struct step *s);
/*
 * `profllm bench ab` with the load of a run and URL_OF_ names for two servers; NULL: the run was
 * not a load on a server, or nothing distinguishes the sides.
 */
const char *step_command(const struct analyse_request *r, const struct step *s, int64_t run);

/* ---- the work of a run; compare.c ---- */

/* The columns that the work of a run is read from. */
#define WORK_COLUMNS 6
extern const struct str work_columns[WORK_COLUMNS];
/* value[c] is of work_columns[c]. */
struct matched_work work_at(const struct value *const value[WORK_COLUMNS], size_t row);

/*
 * The runs of one workload as configurations at their loads.
 *
 * Runs differ in columns of hardware, engine, version, precision, parallelism and other arguments
 * (index/names.h) in which enough of them have different values. One of these is the color;
 * versions that are not the color select the newest runs of each point; all others are the
 * configuration. A point is a configuration at a load, its runs are repeats.
 */

#define SETUP_METRICS_MAX 8
#define SETUP_COLUMNS_MAX 32
#define SETUP_COLORS_MAX 8

enum setup_fact {
	SETUP_LOAD, SETUP_LOAD_KIND, SETUP_TIME, SETUP_GPU, SETUP_GPUS, SETUP_GPUS_FROM,
	SETUP_SPEED_FROM, SETUP_OUTPUT, SETUP_RATE, SETUP_FACTS,
};

struct workload { struct str key; size_t runs, configurations; double newest_s; };

/* A column in which the runs differ. */
struct differing {
	struct str column;
	enum column_role role;
	size_t place;              /* in rows */
	uint32_t *code, n_codes;   /* of each row: equal codes are equal values */
	double entropy;            /* bits */
};

struct legend_color {
	struct value value;
	const char *name;
	size_t runs;
	double best;               /* of the y axis, more is better */
	bool is_natural, is_other; /* ordered by its name; all other values together */
};

#define SETUPS_RUNS_MAX 100000 /* the newest: more are months of a large team */

struct setups {
	const struct analyse_request *r;
	struct workload *workload; /* most configurations first */
	size_t n_workloads, runs;  /* runs of all workloads, out of `matching` */
	size_t matching;           /* the request's filter */
	struct str key;            /* of the chosen one; empty: runs without a workload */
	struct filter *filter;     /* the request's, and the workload */
	struct filter *unfiltered; /* all runs of the workload, ignoring the request's filter */
	struct filter *newest;     /* of the newest SETUPS_RUNS_MAX; NULL: there are not more */
	struct str metric[SETUP_METRICS_MAX];
	size_t n_metrics;
	struct counting counting[SETUP_METRICS_MAX];
	struct rows rows;          /* metrics, facts, columns that differ */
	struct str *column;
	size_t n_columns;
	struct differing *differs, *color; /* color NULL: all runs have one */
	size_t n_differs;
	struct differing *configuration[SETUP_COLUMNS_MAX], *version[SETUP_COLUMNS_MAX];
	size_t n_configuration, n_versions;
	struct legend_color *legend; /* setups_legend */
	size_t n_colors, *color_of;  /* of each row, a place in legend */
	bool *is_assumed;          /* of each row: power is assumed from its boards; NULL: none */
};

/* A configuration at a load: points with the same line are adjacent, by load. */
struct setup_point {
	uint32_t line;
	double load;               /* NAN: unknown */
	size_t *member, n;         /* rows; at least one */
	size_t n_older;            /* runs of older versions, not used */
};

/* The median, and the 95 % interval of the median; NAN if there are none. */
struct folded { double value, sure_low, sure_high; size_t n; };

/*
 * result: the metric that a configuration must have to count when a workload is chosen. color: the
 * request's member with the color column; NULL: chosen by the data.
 */
int setups_read(const struct analyse_request *r, const struct str *metric, size_t n_metrics,
		struct str result, const char *color, struct setups *out, struct err *e);
/* Values as codes from 0 in order of appearance; n_codes of them. Null is absent. */
uint32_t *setups_codes(struct arena *a, const struct value *v, size_t n, uint32_t *n_codes);
/*
 * Makes group[i] the number of the pair (group[i], code[i]), from 0 in the order they are met.
 * Returns how many there are.
 */
uint32_t setups_refine(uint32_t *group, const uint32_t *code, size_t n);
/* Columns that describe the code under test, such as the simulator's costs, are versions. */
enum column_role setups_role(struct str column);
/*
 * Fills a metric with $ per million output tokens, for runs whose GPU has a price: from the
 * request's "prices", else those kept by the server.
 */
int setups_price(struct setups *s, size_t metric, struct err *e);
/*
 * Fills a metric of power that was not measured with the board's power times GPUs, and sets
 * is_assumed for the row. Other metrics are unchanged.
 */
void setups_power(struct setups *s, size_t metric);
/* "unpriced": GPUs of runs without a price. */
void setups_put_unpriced(struct json_writer *w, const struct setups *s);
/* Sets colors in the order of the legend; metric is that of the y axis. */
int setups_legend(struct setups *s, size_t metric, struct err *e);
/* counts: of each row, whether it counts in the search for the newest version. */
struct setup_point *setups_points(const struct setups *s, const bool *counts, size_t *n);
/* Names of --metadata that are not configuration: users give them to what they compare. */
#define TAGS_MAX 8
size_t tags_of(const struct analyse_request *r, struct str out[static TAGS_MAX]);
/*
 * Whether rows with equal cells differ in a tag, two with one value and another with another: a
 * value for each run is a number of repeats. Rows of group 0 are left out.
 */
bool tag_is_mixed(const uint32_t *group, const uint32_t *cell, const struct value *tag, size_t n,
		  struct arena *a);
/*
 * A tag in which runs differ that one shown number joins; empty: none. Of each of the n runs of f
 * (NULL: of the request's filter): those with one group and one place (NULL: any) are joined, but
 * group 0 is left out.
 */
struct str tags_mixed(const struct analyse_request *r, const struct filter *f,
		      const uint32_t *group, const uint32_t *place, size_t n);
/* The same of series of the request's filter, and of points. */
struct str series_mixed(const struct analyse_request *r, const struct series_list *l,
			const uint32_t *place);
struct str setups_mixed(const struct setups *s, const struct setup_point *p, size_t n_points,
			const bool *counts);
struct folded setups_fold(const struct setups *s, const struct setup_point *p, size_t metric,
			  const bool *keep);
/* The place in p->member of the run to open for a median: the kept one nearest to it; else p->n. */
size_t setups_typical(const struct setups *s, const struct setup_point *p, size_t metric,
		      const bool *keep);
double setups_metric(const struct setups *s, size_t metric, size_t row);
struct value setups_fact(const struct setups *s, enum setup_fact fact, size_t row);
struct value setups_value(const struct setups *s, const struct differing *d, size_t row);
/* The configuration of a run in a few words, "TP4, fp8"; otherwise if there is none. */
const char *setups_name(const struct setups *s, size_t row, const char *otherwise);
const char *setups_load_text(const struct setups *s, const struct setup_point *p); /* "c32" */
/* "workload", "workloads" */
void setups_put_workloads(struct json_writer *w, const struct setups *s);
/* "3,725", "507.6": a number for a sentence. */
const char *setups_number(struct arena *a, double v);
/* Whether two medians are level: their 95 % intervals overlap, or 2 % apart with one run. */
bool setups_is_level(struct folded a, struct folded b);

/* ---- which version a median is of; newest.c ---- */

#define NEWEST_COLUMNS_MAX 16
#define NEWEST_EVERYWHERE UINT32_MAX /* the place of a run that answers alone, such as a search */

struct reach { uint32_t place; bool is_seen, is_wide; };

struct newest {
	const struct value *at, *release, *commit; /* columns of rows */
	const struct value *other; /* further columns of versions, such as tags.version */
	size_t n_other, n_rows;
	const uint32_t *version;   /* of each row; equal codes are equal versions */
	const uint32_t *place;     /* of each row; NULL: a version may have a single place */
	const bool *counts;        /* of each row; NULL: all do */
	struct reach *reach;       /* of each version */
	struct arena *arena;
	bool has_commits;          /* releases alone do not distinguish the versions */
};
/* The columns that newest_read needs, at most NEWEST_COLUMNS_MAX; returns how many. */
size_t newest_columns(const struct analyse_request *r, struct str *out);
/* first: the place of these columns in rows, which must outlive *out. Every row counts. */
void newest_read(struct arena *a, const struct rows *rows, size_t first, size_t n,
		 struct newest *out);
/*
 * Moves the rows of that version to the front, and after them, if has_newer, the newer ones that do
 * not count. Returns how many those are; the rows left out follow.
 */
size_t newest_keep(const struct newest *v, size_t *member, size_t n, bool has_newer);
/*
 * Leaves each series the rows of its newest version. Names for notes: what is "configurations"
 * or "series", place is "load", or NULL without places.
 */
void newest_narrow(const struct newest *v, struct series_list *l, const char *what,
		   const char *place, struct notes *notes);
/* "0.11.0", "nightly commit c0ffee1"; NULL: not known. */
const char *newest_text(const struct newest *v, size_t row);

/* ---- the newest version against the one before; versions.c ---- */

/* Writes "versions", for the overview: over the filter's runs, NULL: the whole store. */
int versions_put(const struct analyse_request *r, const struct filter *f, struct json_writer *w,
		 struct err *e);
