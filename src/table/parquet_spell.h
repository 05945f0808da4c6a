/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_spell.h - one stored value as JSON. Private to table/.
 *
 * Integers are numbers, signed or not; floats the shortest decimal that reads back as the same
 * double (a float's value as a double, the way Python reads it); half floats likewise. Text is
 * text. Decimals are texts with all digits of their scale ("12.50"). Dates, times and
 * timestamps are ISO 8601 as Python's isoformat() spells them: "2024-05-01",
 * "13:45:00.250000", "2024-05-01T13:45:00+00:00"; a fraction of zero is left out, any other
 * has the 3, 6 or 9 digits of the column's unit; "+00:00" stands where the column is in UTC;
 * years outside 0 to 9999 have a sign. INT96 is a timestamp of nanoseconds. UUIDs are texts with
 * hyphens. All other bytes are texts of the form "data:;base64,...".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "table/parquet_file.h"

/* Appends; value as parquet_values_next gives it. -1 with e set, without a place. */
int parquet_spell(const struct parquet_leaf *leaf, struct str value, struct buf *out,
		  struct err *e);
