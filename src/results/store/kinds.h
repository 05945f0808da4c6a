/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/kinds.h - which columns each kind of file gives (read/kind.h), and cells under
 * construction: JSON values under dotted names, each name once. Private to the reader.
 *
 * The first value under a name stays; later ones are ignored, so the most certain one comes first.
 * Names are shared by all runs of a file. Names that cannot be cells are counted and noted: empty
 * ones, longer than COLUMN_BYTES_MAX or with control characters.
 *
 * A kind is a function that fills cells. The same thing has one column whatever file it came from;
 * docs/reference/columns.md lists them. To add a kind: a row in read/kind.c, its function here, a
 * case in tests/unit/test_store_read.c, a row in that page.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "results/index/row.h"
#include "results/read/kind.h"

#define COLUMN_BYTES_MAX 128
#define FLATTEN_DEPTH_MAX 8      /* objects deeper than this become JSON texts */
#define FLATTEN_NAMES_MAX 50000  /* different columns of one file */

struct cells {
	struct arena *arena;      /* of names and texts */
	struct cell *cell;        /* of the run under construction */
	size_t n, cap;
	bool is_over;             /* INGEST_CELLS_MAX was exceeded */
	size_t bad_names;         /* of the whole file */
	struct map names;         /* to an index in name */
	struct known_name { struct str text; size_t run; } *name;
	size_t n_names, cap_names;
	size_t run;               /* number of the run, from 1 */
	struct buf scratch;
};

void cells_init(struct cells *c, struct arena *a);
void cells_release(struct cells *c);
void cells_begin(struct cells *c); /* the next run: no cells */
/* The run's cells, copied into the arena. */
struct row cells_row(const struct cells *c);

/* Keeps a NaN until read.c has seen it: it reports that of a metric, and makes any other null. */
void cells_put(struct cells *c, struct str name, struct value v);
void cells_put_text(struct cells *c, const char *name, struct str text);
void cells_put_number(struct cells *c, const char *name, double v); /* NaN: null */

/*
 * Adds a JSON value: null, booleans, numbers and texts become cells, "inf" and "-inf" infinite
 * numbers. A list of those, and an empty object, becomes its JSON text; objects are flattened, with
 * a dot in the name per level; lists that hold objects or lists, or are long, are left out. prefix
 * NULL: none. v NULL: nothing.
 */
void cells_put_json(struct cells *c, const char *prefix, struct str key,
		    const struct json_value *v);
/* Every member of an object. */
void cells_put_members(struct cells *c, const char *prefix, const struct json_value *object);

/* The value of a text, number or word; absent for lists and objects. Borrowed from v. */
struct value value_of(const struct json_value *v);
/* "8", "0.5", "True", "null" as their values: for values that a command line made texts. */
struct value value_of_word(struct str text);

/* ---- kinds ---- */

#define RUN_ID_BYTES_MAX 256

/* One run being read. */
struct reading {
	struct cells *cells;
	struct str file;        /* name of the file; may be empty */
	struct arena *scratch;
	double timestamp_s;     /* NAN: unknown */
	struct str run_id;      /* empty: unknown */
	struct buf *notes;      /* a line each */
};

/* Fills the cells of a run of that kind. -1: an essential member has a wrong type. */
int put_kind(struct reading *r, enum result_kind kind, const struct json_value *v, struct err *e);

int put_document(struct reading *r, const struct json_value *v, struct err *e);
int put_serve(struct reading *r, const struct json_value *v, struct err *e);
int put_throughput(struct reading *r, const struct json_value *v, struct err *e);
int put_latency(struct reading *r, const struct json_value *v, struct err *e);
int put_startup(struct reading *r, const struct json_value *v, struct err *e);
int put_mm_processor(struct reading *r, const struct json_value *v, struct err *e);
int put_pytorch(struct reading *r, const struct json_value *v, struct err *e);
int put_aiperf(struct reading *r, const struct json_value *v, struct err *e);
int put_genai_perf(struct reading *r, const struct json_value *v, struct err *e);
int put_guidellm(struct reading *r, const struct json_value *v, struct err *e);
int put_mlperf(struct reading *r, const struct json_value *v, struct err *e);
int put_endpoints(struct reading *r, const struct json_value *v, struct err *e);
int put_inferencex(struct reading *r, const struct json_value *v, struct err *e);
int put_nightly(struct reading *r, const struct json_value *v, struct err *e);

/*
 * A log of MLPerf's LoadGen (mlperf_log.c): lines of ":::MLLOG {...}", or the summary for people,
 * as {"mlperf_loadgen": {key: value ...}} with the keys of the log.
 */
bool mlperf_log_is(struct str bytes);
int mlperf_log_json(struct str bytes, struct arena *a, struct str *json, struct err *e);

/* ---- common to the kinds ---- */

/* A column with another name than the key's. */
struct rename { const char *key, *column; };
/* Adds a member listed in the table: true if key is in it. v may be anything. */
bool put_renamed(struct reading *r, const struct rename *table, size_t n, struct str key,
		 const struct json_value *v);

/* The member "profllm" of our verbs (kinds_document.c): verdict, options, machine, client ... */
void put_ours(struct reading *r, const struct json_value *ours);
/* ["--tensor-parallel-size", "2", "--seed=1", "--no-x"] as server.NAME. */
void put_engine_args(struct reading *r, const struct json_value *list);
/* The members "verdict", "verdicts" and "reasons" of an object. */
void put_trust(struct reading *r, const struct json_value *from);
/* "client_lag_ms": {...} and similar: what the client added. false: not such a key. */
bool put_budget(struct reading *r, struct str key, const struct json_value *v);

/*
 * A parameter of unknown origin (--metadata, a sweep's combination, arguments of a PyTorch record):
 * server.NAME for an engine's argument, benchmark.NAME for an option of the load, else tags.NAME.
 * Texts that spell numbers or words such as True become those values.
 */
void put_parameter(struct reading *r, struct str key, const struct json_value *v);
bool is_load_option(struct str key);
/* {"50": x, "99": y}, or [[50, x], ...], as PREFIXp50_NAME ...; prefix may be "". */
void put_percentiles(struct reading *r, const char *prefix, const char *name,
		     const struct json_value *v);
/* median_X and p50_X are the same; either one gives both. */
void put_metric(struct reading *r, struct str name, const struct json_value *v);
void put_metric_value(struct reading *r, struct str name, struct value v);
/* Whether an unknown number is a measurement, by the ending of its name. */
bool is_metric_name(struct str name);

/*
 * "2026-11-22T08:41:40.712Z", "2026-11-22 08:41:40,7 +0100", "20261122-084329": without an offset
 * taken as UTC. NAN: another form, or an unknown offset.
 */
#define TIME_EXAMPLE "2026-01-31T12:00:00+01:00"
double time_of(struct str text);
/* The time of a result, unless it is known already; adds a note if it cannot be read. */
void put_date(struct reading *r, const struct json_value *date);
void note(struct reading *r, const char *text);
