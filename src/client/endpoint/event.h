/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - predicates and readers for members of a decoded event. Private to endpoint/. */
#pragma once
#include "client/endpoint/endpoint.h"
#include "core/base/err.h"
#include "core/json/read.h"
#include "core/json/scan.h"

static inline bool event_has(struct json_slice v)
{
	return v.raw.p && v.kind != JSON_NULL;
}

/* A string that is not empty. */
static inline bool event_has_text(struct json_slice v)
{
	return v.raw.p && v.kind == JSON_STRING && v.raw.n > 0;
}

/* An array that holds something: its raw slice is more than brackets and blanks. */
static inline bool event_is_filled(struct json_slice v)
{
	return v.raw.p && v.kind == JSON_ARRAY && str_trim((struct str){ v.raw.p + 1,
								v.raw.n - 2 }).n > 0;
}

static inline bool event_is_true(struct json_slice v)
{
	return v.raw.p && v.kind == JSON_TRUE;
}

/* A number that is not a valid count: below -1, a fraction, too large. The caller rejects it. */
#define COUNT_IMPOSSIBLE -2

/* A count, or COUNT_IMPOSSIBLE; -1: not reported. */
static inline int64_t event_count(struct json_slice v)
{
	int64_t n;

	if (!v.raw.p || (v.kind != JSON_INT && v.kind != JSON_REAL))
		return -1;
	return json_to_i64(v, &n) && n >= -1 ? n : COUNT_IMPOSSIBLE;
}

/* A member as spelled in the text: strings with their quotes. */
static inline struct str event_raw(struct json_slice v)
{
	return v.kind == JSON_STRING ? (struct str){ v.raw.p - 1, v.raw.n + 2 } : v.raw;
}

/*
 * If there is a finish reason: sets DECODED_FINISH and out->finish, whatever API spelled it, and
 * DECODED_ABORTED when the server aborted the answer.
 */
void event_ended(struct json_slice reason, struct decoded *out);

static inline int event_not_json(struct str data, struct err *e)
{
	return err_set(e, ERR_PARSE, "a stream event is not JSON: %.*s",
		       (int)(data.n < 200 ? data.n : 200), data.p);
}
