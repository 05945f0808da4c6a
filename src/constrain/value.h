/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/value.h - JSON values as JSON Schema compares them: numbers by value, objects without
 * order.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "json/read.h"

bool value_equal(const struct json_value *a, const struct json_value *b);
uint64_t value_hash(const struct json_value *v); /* equal for equal values */
bool value_has_repeats(const struct json_value *array);
/* A member by a key that may hold any bytes; NULL when v is not an object or has none. */
struct json_value *value_member(const struct json_value *v, struct str key);
static inline bool value_is_number(const struct json_value *v)
{
	return v->kind == JSON_INT || v->kind == JSON_REAL;
}
