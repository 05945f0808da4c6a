/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - records as rows of a table: results of sweeps, to be filtered, grouped, drawn, compared
 * and written as CSV (sweep spec 7.8).
 *
 * A record is an ordered JSON object: a result with the parameters it was measured with. A frame
 * borrows its records; they, its own arrays and everything derived from it live in the caller's
 * arena. Columns are keys in the order in which records first have them.
 *
 * Texts of values are Python's str() (True, None, 0.5). A column has a kind as in pandas, which
 * decides how its numbers are written: integers with a gap or a fraction among them are floats.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"

struct frame {
	const struct json_value **row; /* objects */
	size_t n, cap;
};

/* ---- getting records ---- */

/* ERR_PARSE: not an object; ERR_LIMIT: more than FRAME_RECORDS_MAX. what names the source. */
int frame_add(struct frame *f, const struct json_value *record, const char *what,
	      struct arena *a, struct err *e);
/* Reads one object, a list of objects, or one object per line; returns the number added or -1. */
int frame_read_file(struct frame *f, const char *path, struct arena *a, struct err *e);
/*
 * Reads every summary.json below a directory, in the order of their paths. None, or no record in
 * them, is an error with upstream's sentence.
 */
int frame_read_sweep(struct frame *f, const char *dir, struct arena *a, struct err *e);

/*
 * Reads results of any kind: a file (as frame_read_file, without records that are not results), or
 * a folder: every summary.json below it, else results among its *.json files. ERR_RUN: none.
 */
int frame_read_results(struct frame *f, const char *path, struct arena *a, struct err *e);
/* The error of a place without results: -1 with e, which says why experiments have none. */
int frame_refuse(const char *path, struct arena *a, struct err *e);
/* One JSON record per line, as written by `profllm export`. what names the source. */
int frame_read_lines(struct frame *f, struct str text, const char *what, struct arena *a,
		     struct err *e);

/* ---- values ---- */

/*
 * The value of a key; a dotted key that does not exist as such ("profllm.verdict") reaches into
 * objects, "per_turn_metrics[0].failed" into lists. NULL: the record has none.
 */
const struct json_value *frame_value(const struct json_value *record, struct str key);
/* A number; true and false are 1 and 0, the texts inf, -inf, nan count. False: not a number. */
bool frame_number(const struct json_value *v, double *out);
/* A number as Python's float() reads it: blanks around, "_" between digits, inf, nan. */
bool frame_float(struct str text, double *out);

/* Keys in the order of first appearance. */
struct frame_columns { struct str *name; size_t n; };
struct frame_columns frame_columns(const struct frame *f, struct arena *a);
bool frame_has_column(const struct frame *f, struct str key); /* also dotted names */
/* ['a', 'b']: how upstream lists the columns in its errors. */
void frame_columns_text(const struct frame *f, struct buf *out);

/* A column's type as in pandas: decides how its values are written. */
enum frame_kind { FRAME_INT, FRAME_FLOAT, FRAME_BOOL, FRAME_OBJECT };
/* str() of a value (NULL: missing, "nan") in a column of that kind. */
void frame_text(struct buf *out, const struct json_value *v, enum frame_kind kind);

/* "a,b,c" cut at commas; "" and NULL give none. */
struct frame_keys { struct str *name; size_t n; };
struct frame_keys frame_keys(const char *list, struct arena *a);

/* ---- choosing rows ---- */

enum frame_op { FRAME_EQ, FRAME_NE, FRAME_LE, FRAME_GE, FRAME_LT, FRAME_GT };
struct frame_filter { struct str var, target; enum frame_op op; };
struct frame_filters { struct frame_filter *item; size_t n; };
struct frame_bin { struct str var; double size; };
struct frame_bins { struct frame_bin *item; size_t n; };

/* "a<3,b!=x" and "a%10"; NULL and "" give none. Errors (ERR_RUN) in upstream's words. */
int frame_parse_filters(struct frame_filters *out, const char *text, struct arena *a,
			struct err *e);
int frame_parse_bins(struct frame_bins *out, const char *text, struct arena *a, struct err *e);
/* Upstream's spelling: [PlotLessThan(var='a', target='3')] */
void frame_filters_text(const struct frame_filters *f, struct buf *out);

/* The rows for which every filter holds, in a new frame. */
int frame_filter(const struct frame *f, const struct frame_filters *by, struct frame *out,
		 struct arena *a, struct err *e);
/* New records in which each variable is the lower end of its bin, a float. */
int frame_bin(const struct frame *f, const struct frame_bins *by, struct frame *out,
	      struct arena *a, struct err *e);

/* Rows with equal texts of all keys, in the order in which these first appear. */
struct frame_group {
	const struct str *text; /* one per key */
	struct frame frame;
};
struct frame_groups { struct frame_group *item; size_t n; };
/* A record without a key is an error in upstream's words. No keys: one group (none if empty). */
int frame_group_by(const struct frame *f, const struct frame_keys *keys, struct frame_groups *out,
		   struct arena *a, struct err *e);

/* ---- CSV ---- */

/*
 * As pandas' to_csv: first column without a name and counting from 0, floats as repr(), True and
 * False, None and missing empty, nested values as Python text, quotes around texts with a comma, a
 * quote or a line end.
 */
void frame_csv(const struct frame *f, struct buf *out);
/* A text, in quotes if it has a comma, a quote or a line end. */
void frame_csv_field(struct buf *out, struct str text);
