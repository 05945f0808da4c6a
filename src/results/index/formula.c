/* SPDX-License-Identifier: Apache-2.0 */
/* formula.c - reads a formula by recursive descent and evaluates it on a small stack. */
#include "results/index/formula.h"

#include <assert.h>
#include <math.h>

#define DEPTH_MAX 16

struct reader {
	struct str text;
	size_t at, depth;
	struct formula *f;
	struct err *e;
};

static int sum(struct reader *r);

static int wrong(struct reader *r, const char *expected)
{
	return err_set(r->e, ERR_USAGE, "formula \"%.*s\": at character %zu, %s", (int)r->text.n,
		       r->text.p, r->at + 1, expected);
}

static char peek(struct reader *r)
{
	while (r->at < r->text.n && (r->text.p[r->at] == ' ' || r->text.p[r->at] == '\t'))
		r->at++;
	return r->at < r->text.n ? r->text.p[r->at] : '\0';
}

static int add(struct reader *r, enum formula_step_kind kind, double number)
{
	if (r->f->n_steps == FORMULA_STEPS_MAX)
		return wrong(r, "it has too many parts (FORMULA_STEPS_MAX)");
	r->f->step[r->f->n_steps++] = (struct formula_step){ kind, number };
	return 0;
}

static int add_column(struct reader *r, struct str name)
{
	size_t i = 0;

	while (i < r->f->n_columns && !str_eq(r->f->column[i], name))
		i++;
	if (i == FORMULA_COLUMNS_MAX)
		return wrong(r, "it has too many columns (FORMULA_COLUMNS_MAX)");
	if (i == r->f->n_columns)
		r->f->column[r->f->n_columns++] = name;
	return add(r, FORMULA_COLUMN, (double)i);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

static int expect(struct reader *r, char c, const char *expected)
{
	if (peek(r) != c)
		return wrong(r, expected);
	r->at++;
	return 0;
}

static int quoted(struct reader *r)
{
	size_t from = ++r->at;

	while (r->at < r->text.n && r->text.p[r->at] != '"')
		r->at++;
	if (r->at == r->text.n || r->at == from)
		return wrong(r, "expected the name of a column and a closing quote");
	return add_column(r, (struct str){ r->text.p + from, r->at++ - from });
}

/* Reads a number, a column, or a function with its parentheses. */
static int word(struct reader *r)
{
	static const struct {
		const char *name;
		enum formula_step_kind kind;
		bool has_two;
	} of[] = {
		{ "min", FORMULA_MIN, true }, { "max", FORMULA_MAX, true },
		{ "log", FORMULA_LOG, false },
	};
	size_t from = r->at;
	struct str name;
	double number;

	while (r->at < r->text.n && is_name(r->text.p[r->at]))
		r->at++;
	name = (struct str){ r->text.p + from, r->at - from };
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		if (!str_is(name, of[i].name) || peek(r) != '(')
			continue;
		r->at++;
		if (sum(r) < 0 ||
		    (of[i].has_two && (expect(r, ',', "expected a comma") < 0 || sum(r) < 0)) ||
		    expect(r, ')', "expected a closing parenthesis") < 0)
			return -1;
		return add(r, of[i].kind, 0);
	}
	if (name.p[0] < '0' || name.p[0] > '9')
		return add_column(r, name);
	if (!str_to_f64(name, &number) || !isfinite(number)) {
		r->at = from;
		return wrong(r, "expected a number such as 1000 or 0.5");
	}
	return add(r, FORMULA_NUMBER, number);
}

static int factor(struct reader *r)
{
	char c = peek(r);
	int rc;

	if (r->depth == DEPTH_MAX)
		return wrong(r, "it is nested too deep");
	r->depth++;
	if (c == '-') {
		r->at++;
		rc = factor(r) < 0 ? -1 : add(r, FORMULA_NEGATE, 0);
	} else if (c == '(') {
		r->at++;
		rc = sum(r) < 0 ? -1 : expect(r, ')', "expected a closing parenthesis");
	} else if (c == '"') {
		rc = quoted(r);
	} else if (is_name(c)) {
		rc = word(r);
	} else {
		rc = wrong(r, "expected a column, a number or an opening parenthesis");
	}
	r->depth--;
	return rc;
}

static int product(struct reader *r)
{
	if (factor(r) < 0)
		return -1;
	for (char c = peek(r); c == '*' || c == '/'; c = peek(r)) {
		r->at++;
		if (factor(r) < 0 || add(r, c == '*' ? FORMULA_MULTIPLY : FORMULA_DIVIDE, 0) < 0)
			return -1;
	}
	return 0;
}

static int sum(struct reader *r)
{
	if (product(r) < 0)
		return -1;
	for (char c = peek(r); c == '+' || c == '-'; c = peek(r)) {
		r->at++;
		if (product(r) < 0 || add(r, c == '+' ? FORMULA_ADD : FORMULA_SUBTRACT, 0) < 0)
			return -1;
	}
	return 0;
}

int formula_read(struct str text, struct formula *out, struct err *e)
{
	struct reader r = { .text = text, .f = out, .e = e };

	assert(formula_is(text));
	out->n_steps = out->n_columns = 0;
	if (text.n > FORMULA_BYTES_MAX)
		return err_set(e, ERR_USAGE, "a formula has at most %d bytes (FORMULA_BYTES_MAX)",
			       FORMULA_BYTES_MAX);
	r.at = 1;
	if (sum(&r) < 0)
		return -1;
	if (peek(&r))
		return wrong(&r, "expected +, -, * or /");
	return out->n_columns ? 0 : wrong(&r, "expected at least one column");
}

double formula_value(const struct formula *f, const double *operand)
{
	double stack[FORMULA_STEPS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < f->n_steps; i++) {
		const struct formula_step *s = &f->step[i];
		double *a = n > 1 ? &stack[n - 2] : stack, b = n ? stack[n - 1] : 0;

		switch (s->kind) {
		case FORMULA_NUMBER: stack[n++] = s->number; continue;
		case FORMULA_COLUMN: stack[n++] = operand[(size_t)s->number]; continue;
		case FORMULA_NEGATE: stack[n - 1] = -b; continue;
		case FORMULA_LOG: stack[n - 1] = b > 0 ? log(b) : NAN; continue;
		case FORMULA_ADD: *a += b; break;
		case FORMULA_SUBTRACT: *a -= b; break;
		case FORMULA_MULTIPLY: *a *= b; break;
		case FORMULA_DIVIDE: *a = fabs(b) > 0 ? *a / b : NAN; break;
		case FORMULA_MIN: *a = isnan(*a) || isnan(b) ? NAN : fmin(*a, b); break;
		case FORMULA_MAX: *a = isnan(*a) || isnan(b) ? NAN : fmax(*a, b); break;
		}
		n--;
	}
	assert(n == 1);
	return isfinite(stack[0]) ? stack[0] : NAN;
}
