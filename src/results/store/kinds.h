/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/kinds.h - which columns each kind of file gives (read/kind.h), and cells in the making:
 * JSON values under dotted names, each name once. Private to the reader.
 *
 * The first value under a name stays; later ones are ignored, so the most certain one comes first.
 * Names are shared by all runs of a file. What cannot be a cell is counted and said in a note:
 * names that are empty, longer than COLUMN_BYTES_MAX or hold control characters.
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
	struct cell *cell;        /* of the run in the making */
	size_t n, cap;
	bool is_over;             /* more than INGEST_CELLS_MAX */
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

/* A NaN stays until read.c has seen it: of a metric it is told, else it is null. */
void cells_put(struct cells *c, struct str name, struct value v);
void cells_put_text(struct cells *c, const char *name, struct str text);
void cells_put_number(struct cells *c, const char *name, double v); /* NaN: null */

/*
 * A value as it stands: null, booleans, numbers and texts are cells, "inf" and "-inf" infinite numbers.
 * A list of those, and an empty object, is its JSON as a text; objects are taken apart, a name
 * with a dot for each level; lists that hold objects or lists, or are long, are left out. prefix
 * NULL: none. v NULL: nothing.
 */
void cells_put_json(struct cells *c, const char *prefix, struct str key,
		    const struct json_value *v);
/* Every member of an object. */
void cells_put_members(struct cells *c, const char *prefix, const struct json_value *object);

/* What a text, number or word stands for; absent for lists and objects. Borrowed from v. */
struct value value_of(const struct json_value *v);
/* "8", "0.5", "True", "null" as what they mean: for values that a command line made texts. */
struct value value_of_word(struct str text);

/* ---- kinds ---- */

#define RUN_ID_BYTES_MAX 256

/* One run being read. */
struct reading {
	struct cells *cells;
	struct str file;        /* what the file was called; may be empty */
	struct arena *scratch;
	double timestamp_s;     /* NAN: not told */
	struct str run_id;      /* empty: not told */
	struct buf *notes;      /* a line each */
};

/* Fills the cells of a run of that kind. -1: what the run rests on has a wrong type. */
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
 * A log of MLPerf's LoadGen (mlperf_log.c): lines of ":::MLLOG {...}", or the summary for people, as
 * {"mlperf_loadgen": {key: value ...}}, the keys being those of the log.
 */
bool mlperf_log_is(struct str bytes);
int mlperf_log_json(struct str bytes, struct arena *a, struct str *json, struct err *e);

/* ---- what they share ---- */

/* A column of another name than the key's. */
struct rename { const char *key, *column; };
/* Members of the table: true when key was one. v may be anything. */
bool put_renamed(struct reading *r, const struct rename *table, size_t n, struct str key,
		 const struct json_value *v);

/* What our verbs write under "profllm" (kinds_document.c): verdict, options, the machine, the client ... */
void put_ours(struct reading *r, const struct json_value *ours);
/* ["--tensor-parallel-size", "2", "--seed=1", "--no-x"] as server.NAME. */
void put_engine_args(struct reading *r, const struct json_value *list);
/* The members "verdict", "verdicts" and "reasons" of an object. */
void put_trust(struct reading *r, const struct json_value *from);
/* "client_lag_ms": {...} and its like: what the client added. false: it is no such key. */
bool put_budget(struct reading *r, struct str key, const struct json_value *v);

/*
 * A parameter of unknown origin (--metadata, a sweep's combination, arguments of a PyTorch record):
 * server.NAME for an engine's argument, benchmark.NAME for an option of the load, else
 * tags.NAME. Texts that are numbers or words for one become what they mean.
 */
void put_parameter(struct reading *r, struct str key, const struct json_value *v);
bool is_load_option(struct str key);
/* {"50": x, "99": y}, or [[50, x], ...], as PREFIXp50_NAME ...; prefix may be "". */
void put_percentiles(struct reading *r, const char *prefix, const char *name,
		     const struct json_value *v);
/* median_X and p50_X are the same; whichever is there gives both. */
void put_metric(struct reading *r, struct str name, const struct json_value *v);
void put_metric_value(struct reading *r, struct str name, struct value v);
/* Whether an unknown number is a measurement, by how its name ends. */
bool is_metric_name(struct str name);

/*
 * "2026-11-22T08:41:40.712Z", "2026-11-22 08:41:40,7 +0100", "20261122-084329": without an offset it
 * is taken as UTC. NAN: none of them, or the offset is not understood.
 */
#define TIME_EXAMPLE "2026-01-31T12:00:00+01:00"
double time_of(struct str text);
/* When a result says it ran, unless that is known; a note when nobody can tell. */
void put_date(struct reading *r, const struct json_value *date);
void note(struct reading *r, const char *text);
