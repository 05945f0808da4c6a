/* SPDX-License-Identifier: Apache-2.0 */
/* test_index_formula.c - what formulas mean, and what is said when one is wrong. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "results/index/formula.h"

/* a is 6, b is 3, c.d is missing, zero is 0. */
static double operand_of(struct str column)
{
	return str_is(column, "a") ? 6 : str_is(column, "b") ? 3 : str_is(column, "zero") ? 0 :
	       str_is(column, "e l") ? 2 : NAN;
}

static void values(void **state)
{
	static const struct { const char *text; double want; } row[] = {
		{ "=a", 6 }, { "=a / b", 2 }, { "= a-b-1", 2 }, { "=a - b * 2", 0 },
		{ "=(a - b) * 2", 6 }, { "=-a + b", -3 }, { "=a / b / 2", 1 }, { "=min(a, b)", 3 },
		{ "=max(a, b + 9)", 12 }, { "=log(a / 6)", 0 }, { "=1000 * b", 3000 },
		{ "=\"e l\" * a", 12 }, { "=1e3 / a * b", 500 }, { "=a / zero", NAN },
		{ "=a / c.d", NAN }, { "=min(a, c.d)", NAN }, { "=log(zero)", NAN },
		{ "=a + a + a", 18 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		double operand[FORMULA_COLUMNS_MAX], got;
		struct err e = { 0 };
		struct formula f;

		if (formula_read(str_of(row[i].text), &f, &e) < 0)
			fail_msg("%s: %s", row[i].text, e.text);
		for (size_t k = 0; k < f.n_columns; k++)
			operand[k] = operand_of(f.column[k]);
		got = formula_value(&f, operand);
		if (isnan(row[i].want) != isnan(got) ||
		    (!isnan(got) && fabs(got - row[i].want) > 1e-12))
			fail_msg("%s: %g, wanted %g", row[i].text, got, row[i].want);
	}
}

static void wrong(void **state)
{
	static const struct { const char *text, *want; } row[] = {
		{ "=", "at character 2, expected a column, a number or an opening parenthesis" },
		{ "=a /", "at character 5, expected a column" },
		{ "=a // b", "at character 5, expected a column" },
		{ "=(a", "at character 4, expected a closing parenthesis" },
		{ "=a b", "at character 4, expected +, -, *" },
		{ "=min(a)", "at character 7, expected a comma" }, { "=1 + 2", "at least one column" },
		{ "=1x", "at character 2, expected a number such as" }, { "=\"a", "a closing quote" },
		{ "=a + b + c + d + e + f + g + h + i", "FORMULA_COLUMNS_MAX" },
		{ "=((((((((((((((((((a))))))))))))))))))", "nested too deep" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct err e = { 0 };
		struct formula f;

		assert_int_equal(formula_read(str_of(row[i].text), &f, &e), -1);
		if (!strstr(e.text, row[i].want))
			fail_msg("%s: %s", row[i].text, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(values), cmocka_unit_test(wrong) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
