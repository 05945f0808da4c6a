/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.h - kinds of files (read/kind.h): which columns each gives. Private to the
 * reader.
 *
 * A kind is a function that fills cells. The same thing has one
 * column whatever file it came from; docs/reference/columns.md lists them. To add a kind: a row
 * in read/kind.c, its function here, a case in tests/unit/test_store_read.c, a row in that page.
 */
#pragma once
#include "core/base/err.h"
#include "results/read/kind.h"
#include "results/store/flatten.h"

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

/* ---- the kinds, file by file ---- */

int put_document(struct reading *r, const struct json_value *v, struct err *e);
int put_serve(struct reading *r, const struct json_value *v, struct err *e);
int put_throughput(struct reading *r, const struct json_value *v, struct err *e);
int put_latency(struct reading *r, const struct json_value *v, struct err *e);
int put_startup(struct reading *r, const struct json_value *v, struct err *e);
int put_mm_processor(struct reading *r, const struct json_value *v, struct err *e);
int put_pytorch(struct reading *r, const struct json_value *v, struct err *e);
int put_nightly(struct reading *r, const struct json_value *v, struct err *e);

/* ---- what they share: kinds_parts.c ---- */

/* A column of another name than the key's. */
struct rename { const char *key, *column; };
/* Members of the table: true when key was one. v may be anything. */
bool put_renamed(struct reading *r, const struct rename *table, size_t n, struct str key,
		 const struct json_value *v);

/* What our verbs write under "profllm" (kinds_ours.c): verdict, options, the machine, the client ... */
void put_ours(struct reading *r, const struct json_value *ours);
/* Options of the load: benchmark.*. */
void put_options(struct reading *r, const struct json_value *options);
/* The members "verdict", "verdicts" and "reasons" of an object. */
void put_trust(struct reading *r, const struct json_value *from);
/* "client_lag_ms": {...} and its like: what the client added. false: it is no such key. */
bool put_budget(struct reading *r, struct str key, const struct json_value *v);
void put_system(struct reading *r, const struct json_value *system);

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
