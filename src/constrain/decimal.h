/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/decimal.h - numbers as they are written, compared without rounding.
 *
 * A struct decimal is a view of a JSON number's spelling, which has to outlive it. Its value is
 * 0.d1d2d3... times ten to the power, where d1 is the first and dn the last digit that is not 0.
 * Powers beyond DECIMAL_POWER_MAX count as that.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define DECIMAL_POWER_MAX (1ll << 40)
#define DECIMAL_DIVISOR_DIGITS_MAX 18 /* digits of a multipleOf, so that it fits 64 bits */

struct decimal {
	struct str digits; /* from the first to the last that counts; may hold the point */
	int64_t power;
	uint32_t count;    /* of digits; 0: the number is zero */
	bool is_negative;
};

struct decimal decimal_of(struct str number); /* a spelling the JSON reader accepted; finite */
int decimal_compare(struct decimal a, struct decimal b); /* negative, 0, positive */
bool decimal_is_integer(struct decimal d);
/* divisor is above 0 and has at most DECIMAL_DIVISOR_DIGITS_MAX digits. */
bool decimal_is_multiple(struct decimal d, struct decimal divisor);
uint64_t decimal_hash(struct decimal d); /* equal for equal values */
/* The digits as a number, for at most DECIMAL_DIVISOR_DIGITS_MAX of them. */
uint64_t decimal_digits(struct decimal d);
