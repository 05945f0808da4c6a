/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - one run as cells: the form of every document in the index, to which filters apply.
 *
 * A column is a dotted name. Plain names are the run's own (run_id, suite, name, timestamp, status,
 * mode, source, verdict ...) and its metrics by their result names (request_throughput,
 * median_ttft_ms ...); server.NAME are engine arguments, ROLE.NAME those of servers with another
 * role (prefill.tensor_parallel_size), benchmark.NAME the load's options; system.NAME,
 * hardware.NAME, environment.NAME, provenance.NAME and tags.NAME the rest. store/kinds.h lists
 * which kind of file gives which columns.
 *
 * Absent, null, false and 0 are different. An infinite number means "inf" in JSON; NaN does not
 * occur. timestamp is a number, seconds since 1970 in UTC.
 *
 * Everything is borrowed: a row's texts live as long as their source.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"
#include "core/json/write.h"

enum value_kind { VALUE_ABSENT, VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT };

struct value {
	enum value_kind kind;
	union {
		bool is_true;
		double number;
		struct str text; /* valid UTF-8 */
	};
};

struct cell {
	struct str column;
	struct value value; /* never absent */
};

/* Columns occur once each, in any order. */
struct row {
	int64_t id; /* the store's number of the run, above 0; never reused */
	struct cell *cell;
	size_t n;
};

/* The row's value in a column; absent when it has no such cell. */
struct value row_value(const struct row *r, struct str column);

static inline bool value_is_missing(struct value v)
{
	return v.kind == VALUE_ABSENT || v.kind == VALUE_NULL;
}

static inline bool value_is_text(struct value v, const char *text)
{
	return v.kind == VALUE_TEXT && str_is(v.text, text);
}

/*
 * As strict JSON: absent is null, an infinite number "inf" or "-inf", NaN null; whole numbers are
 * written without a point.
 */
void value_put(struct json_writer *w, struct value v);
void value_put_number(struct json_writer *w, double v);

/* An order over all values: absent, null, false, true, numbers, texts by bytes. */
int value_compare(struct value a, struct value b);
bool value_same(struct value a, struct value b);
int value_order(const void *a, const void *b); /* value_compare, for qsort */
int text_compare(struct str a, struct str b);  /* by bytes */

/* ---- moments: stored as seconds since 1970 in UTC, read and written as people write them ---- */

#define WHEN_BYTES 40

/* Whether a column's numbers are moments. */
bool when_is_column(struct str name);
/*
 * "2026-11-22", "2026-11-22T08:41", "2026-11-22 08:41:40.712+01:00": UTC without an offset, a date
 * alone is its first moment. False: malformed.
 */
bool when_read(struct str text, double *seconds);
/* "2026-11-22T08:41:40.712Z", milliseconds only if not 0; false: outside the calendar. */
bool when_write(double seconds, char out[static WHEN_BYTES]);
