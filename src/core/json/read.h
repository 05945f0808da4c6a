/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - one JSON reader: a pull scanner, and a tree in an arena on top.
 *
 * The pull scanner walks a complete text in memory without allocating; values
 * come back as borrowed raw slices (strings still escaped). Strict RFC 8259
 * plus Python's NaN, Infinity and -Infinity. Nesting is limited by
 * JSON_DEPTH_MAX. Invalid UTF-8 inside strings is accepted here and made valid
 * (lossily) by json_unescape.
 *
 * Errors: -1 with line and column in the text.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

enum json_kind {
	JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_INT, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT,
};

/* ---- pull scanner ---- */

struct json_scan {
	struct str text;
	size_t at;
};

/* One value; for arrays and objects raw covers the whole container. */
struct json_slice {
	enum json_kind kind;
	struct str raw; /* strings: between the quotes, still escaped */
};

/* Reads the next value (skipping blanks) and moves past it. Fully validates it. */
int json_next(struct json_scan *s, struct json_slice *out, struct err *e);
/* Only blanks remain. */
bool json_at_end(struct json_scan *s);

/*
 * Iterates over a container's raw slice, which must come from json_next and so is valid. Start with
 * struct json_iter it = json_iter(slice); each call gives the next member or element: 1, 0 at the
 * end, -1 malformed. key is escaped (borrowed); for arrays it is empty.
 */
struct json_iter {
	struct str rest;
	bool is_object, is_started;
};
struct json_iter json_iter(struct json_slice container);
int json_each(struct json_iter *it, struct str *key, struct json_slice *value);

/*
 * json_each in steps, for containers too large to be read twice. json_step moves to the next
 * member's or element's value (1, 0 at the end, -1). Then either json_take reads it, or json_open
 * iterates inside it (false: not an object or array); once inner has returned 0, json_close moves
 * past it.
 */
int json_step(struct json_iter *it, struct str *key);
int json_take(struct json_iter *it, struct json_slice *value);
bool json_open(const struct json_iter *it, struct json_iter *inner);
void json_close(struct json_iter *it, const struct json_iter *inner);

/* First member with that (plain ASCII, unescaped) key; false when absent or not an object. */
bool json_member(struct json_slice object, const char *key, struct json_slice *value);
/* Path of member names: json_path(o, &v, "usage", "total_tokens", NULL). */
bool json_path(struct json_slice object, struct json_slice *value, ...) __attribute__((sentinel));

/* Appends the string's text. Lone surrogates and broken UTF-8 become U+FFFD. */
void json_unescape(struct buf *out, struct str raw);
bool json_to_i64(struct json_slice v, int64_t *out); /* JSON_INT, or an integral real */
bool json_to_f64(struct json_slice v, double *out);
bool json_truthy(struct json_slice v); /* Python's bool(): not null/false/0/""/[]/{} */

/* ---- tree ---- */

struct json_value {
	enum json_kind kind;
	union {
		int64_t integer;         /* JSON_INT that fits */
		double real;             /* JSON_REAL, and ints beyond 64 bits */
		struct str text;         /* JSON_STRING, unescaped, NUL-terminated, may hold NULs */
		struct {
			struct json_value *item; /* arrays: elements; objects: values */
			struct str *key;         /* objects: unescaped keys, in order */
			size_t count;
		};
	};
	struct str raw; /* a number's own spelling; also of YAML's booleans ("off"); else empty */
};

/* The whole text is one value. A duplicate key's last value is used, at the first one's place. */
int json_parse(struct arena *a, struct str text, struct json_value **out, struct err *e);
/*
 * As RFC 8259 recommends: NaN, infinities and duplicate keys are also errors. ERR_LIMIT: the text
 * is nested deeper than JSON_DEPTH_MAX.
 */
int json_parse_strict(struct arena *a, struct str text, struct json_value **out, struct err *e);

/* NULL when v is NULL, not an object, or has no such key. */
struct json_value *json_get(const struct json_value *v, const char *key);
/* Return otherwise when v is NULL or of another kind. */
struct str json_text(const struct json_value *v, struct str otherwise);
int64_t json_int(const struct json_value *v, int64_t otherwise);
double json_real(const struct json_value *v, double otherwise); /* also integers */
double json_setting(const struct json_value *v, double otherwise); /* also "inf" and "-inf" */
bool json_bool(const struct json_value *v, bool otherwise);
