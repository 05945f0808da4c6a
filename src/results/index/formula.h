/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formula.h - columns that users compute from others: "=output_throughput / power_w".
 *
 *   formula = "=" sum;  sum = product {("+"|"-") product};  product = factor {("*"|"/") factor}
 *   factor = number | column | "-" factor | "(" sum ")" | "log" "(" sum ")"
 *          | ("min"|"max") "(" sum "," sum ")"
 *
 * A column is letters, digits, "_" and ".", or any text in double quotes. A run without a number in
 * one of the columns has no value, nor has a division by zero. log is the natural logarithm.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"

#define FORMULA_BYTES_MAX 300
#define FORMULA_COLUMNS_MAX 8
#define FORMULA_STEPS_MAX 64

enum formula_step_kind {
	FORMULA_NUMBER, FORMULA_COLUMN, FORMULA_ADD, FORMULA_SUBTRACT, FORMULA_MULTIPLY,
	FORMULA_DIVIDE, FORMULA_NEGATE, FORMULA_MIN, FORMULA_MAX, FORMULA_LOG,
};

/* In the order of a stack machine. number: the number, or the place of the column. */
struct formula_step { enum formula_step_kind kind; double number; };

struct formula {
	struct formula_step step[FORMULA_STEPS_MAX];
	struct str column[FORMULA_COLUMNS_MAX]; /* slices of the text, each once */
	size_t n_steps, n_columns;
};

static inline bool formula_is(struct str column)
{
	return column.n && column.p[0] == '=';
}

/* The error names the character and what was expected there. */
int formula_read(struct str text, struct formula *out, struct err *e);
/* operand: a number for each column, NAN without; NAN: no value. */
double formula_value(const struct formula *f, const double *operand);
