/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - one text into one field: Python's numbers, choices, ranges, JSON.
 *
 * Every refusal is one sentence: the option, what it accepts, what it got.
 */
#include "core/opt/row.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "core/base/str.h"
#include "core/json/write.h"

#define SHOWN_MAX 120 /* bytes of a bad value repeated in a message */

const struct opt opt_builtin[OPT_BUILTINS] = {
	[OPT_BUILTIN_HELP] = { .name = "help", .letter = 'h', .kind = OPT_TEXT, .arg = "TOPIC",
		.flags = OPT_NO_CONFIG, .group = "General",
		.help = "show the groups of options; =all, =GROUP, =WORD or =json shows more" },
	[OPT_BUILTIN_SHOW] = { .name = "show-config", .kind = OPT_FLAG,
		.flags = OPT_NO_CONFIG | OPT_OURS, .group = "General",
		.help = "print every option's value and where it comes from, then exit" },
};

bool opt_name_is(struct str spelled, const char *name)
{
	return strlen(name) == spelled.n && opt_name_starts(name, spelled);
}

bool opt_name_starts(const char *name, struct str prefix)
{
	for (size_t i = 0; i < prefix.n; i++) {
		char c = prefix.p[i] == '_' ? '-' : prefix.p[i];

		/* Rows may be spelled with "_" too (positionals, keys of a file). */
		if ((name[i] == '_' ? '-' : name[i]) != c)
			return false;
	}
	return true;
}

const struct opt *opt_row(const struct opt_set *set, struct str name)
{
	for (size_t i = 0; i < set->n; i++)
		if (opt_name_is(name, set->row[i].name))
			return &set->row[i];
	return NULL;
}

const struct opt *opt_target(const struct opt_set *set, const struct opt *o)
{
	const struct opt *target = o;

	if (o->alias_of) {
		target = opt_row(set, str_of(o->alias_of));
		assert(target && !target->alias_of);
	}
	return target;
}

const char *opt_label(const struct opt *o, char out[static 96])
{
	if (o->flags & OPT_POSITIONAL)
		return opt_arg(o, out);
	snprintf(out, 96, "--%s", o->name);
	return out;
}

const char *opt_arg(const struct opt *o, char out[static 96])
{
	size_t n = 0;

	if (o->arg)
		return o->arg;
	for (const char *p = o->name; *p && n < 95; p++)
		out[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	out[n] = 0;
	return out;
}

bool opt_has_range(const struct opt *o)
{
	return o->min != 0 || o->max != 0;
}

static void add_bound(const struct opt *o, double v, struct buf *out)
{
	char text[FMT_F64_BYTES];

	if (o->kind == OPT_INT || o->kind == OPT_MAYBE_INT || v == trunc(v))
		buf_printf(out, "%.0f", v);
	else
		buf_add_text(out, fmt_f64(text, v));
}

void opt_range(const struct opt *o, struct buf *out)
{
	if (!opt_has_range(o))
		return;
	if (isinf(o->min)) {
		buf_add_text(out, "at most ");
		add_bound(o, o->max, out);
	} else if (isinf(o->max)) {
		buf_add_text(out, o->flags & OPT_MIN_EXCLUSIVE ? "above " : "at least ");
		add_bound(o, o->min, out);
	} else {
		buf_add_text(out, o->flags & OPT_MIN_EXCLUSIVE ? "above " : "from ");
		add_bound(o, o->min, out);
		buf_add_text(out, " to ");
		add_bound(o, o->max, out);
	}
}

void opt_expected(const struct opt *o, struct buf *out)
{
	const char *what[] = {
		[OPT_FLAG] = "true or false", [OPT_TRI] = "true or false",
		[OPT_INT] = "an integer", [OPT_MAYBE_INT] = "an integer",
		[OPT_REAL] = "a number", [OPT_MAYBE_REAL] = "a number",
		[OPT_TEXT] = "a text", [OPT_LIST] = "a list", [OPT_JSON] = "JSON",
	};

	if (o->choices) {
		buf_add_text(out, "one of ");
		for (size_t i = 0; o->choices[i]; i++)
			buf_printf(out, "%s%s", i ? ", " : "", o->choices[i]);
		return;
	}
	buf_add_text(out, what[o->kind]);
	if (opt_has_range(o)) {
		bool is_bound = isinf(o->min) || (isinf(o->max) && !(o->flags & OPT_MIN_EXCLUSIVE));

		buf_add_text(out, is_bound ? " of " : " "); /* at least, at most */
		opt_range(o, out);
	}
}

static int refuse(const struct opt *o, struct str got, struct err *e)
{
	struct buf expected = { 0 };
	char label[96];

	opt_expected(o, &expected);
	err_set(e, ERR_USAGE, "%s: expected %s, got '%.*s'", opt_label(o, label),
		expected.data, (int)(got.n < SHOWN_MAX ? got.n : SHOWN_MAX), got.p);
	buf_release(&expected);
	return -1;
}

/* Digits as Python's int() and float() take them: blanks around, "_" between digits. */
static bool without_underscores(struct str s, char *out, size_t cap, size_t *n)
{
	*n = 0;
	s = str_trim(s);
	if (s.n == 0 || s.n >= cap)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '_') {
			out[(*n)++] = s.p[i];
			continue;
		}
		if (i == 0 || i + 1 == s.n || !isdigit((unsigned char)s.p[i - 1]) ||
		    !isdigit((unsigned char)s.p[i + 1]))
			return false;
	}
	return true;
}

bool opt_python_int(struct str s, int64_t *out)
{
	char digits[400];
	size_t n;

	return without_underscores(s, digits, sizeof(digits), &n) &&
	       str_to_i64((struct str){ digits, n }, out);
}

bool opt_python_float(struct str s, double *out)
{
	char digits[400];
	size_t n;

	return without_underscores(s, digits, sizeof(digits), &n) &&
	       str_to_f64((struct str){ digits, n }, out);
}

/* A NaN is outside every range. */
static bool is_in_range(const struct opt *o, double v)
{
	if (!opt_has_range(o))
		return true;
	if (o->flags & OPT_MIN_EXCLUSIVE ? !(v > o->min) : !(v >= o->min))
		return false;
	return v <= o->max;
}

static int read_int(const struct opt *o, int64_t *field, struct str text, struct err *e)
{
	int64_t v;

	if (!opt_python_int(text, &v) || !is_in_range(o, (double)v))
		return refuse(o, text, e);
	*field = v;
	return 0;
}

static int read_real(const struct opt *o, double *field, struct str text, struct err *e)
{
	double v;

	if (!opt_python_float(text, &v) || !is_in_range(o, v))
		return refuse(o, text, e);
	*field = v;
	return 0;
}

static bool is_choice(const struct opt *o, struct str text, const char *choice)
{
	size_t i = 0;

	if (!(o->flags & OPT_DASHED))
		return str_is(text, choice);
	for (; i < text.n && choice[i]; i++)
		if ((text.p[i] == '-' ? '_' : text.p[i]) != (choice[i] == '-' ? '_' : choice[i]))
			return false;
	return i == text.n && !choice[i];
}

static int check_choice(const struct opt *o, struct str text, struct err *e)
{
	struct buf expected = { 0 };
	char label[96];
	size_t n = 0;
	const struct opt_meant *meant = o->meant;
	const char *near;

	if (!o->choices)
		return 0;
	for (; o->choices[n]; n++)
		if (is_choice(o, text, o->choices[n]))
			return 0;
	opt_expected(o, &expected);
	while (meant && meant->typed && !str_is(text, meant->typed))
		meant++;
	near = opt_nearest(text, o->choices, n);
	err_set(e, ERR_USAGE, "%s: expected %s, got '%.*s'", opt_label(o, label), expected.data,
		(int)(text.n < SHOWN_MAX ? text.n : SHOWN_MAX), text.p);
	if (meant && meant->typed)
		err_add(e, "; %s", meant->use);
	else if (near)
		err_add(e, "; did you mean %s?", near);
	buf_release(&expected);
	return -1;
}

/* Kept as json.dumps would spell it, so that every later reader sees one form. */
static int read_json(const struct opt *o, struct opt_json *field, struct str text,
		     struct arena *a, struct err *e)
{
	struct json_value *v;
	char label[96];

	if (json_parse(a, text, &v, e) < 0) {
		if (e)
			e->code = ERR_USAGE;
		return err_wrap(e, "%s: expected JSON, got '%.*s'", opt_label(o, label),
				(int)(text.n < SHOWN_MAX ? text.n : SHOWN_MAX), text.p);
	}
	field->text = opt_dotted_text(v, a);
	return 0;
}

bool opt_is_default(const struct opt_set *set, const struct opt *o, const void *values)
{
	const void *a = opt_field_const(o, values), *b = opt_field_const(o, set->defaults);
	const struct opt_list *x = a, *y = b;

	switch (o->kind) {
	case OPT_FLAG:
		return *(const bool *)a == *(const bool *)b;
	case OPT_INT:
		return *(const int64_t *)a == *(const int64_t *)b;
	case OPT_REAL:
		return *(const double *)a == *(const double *)b;
	case OPT_MAYBE_INT:
		return ((const struct opt_int *)a)->is_set == ((const struct opt_int *)b)->is_set &&
		       ((const struct opt_int *)a)->v == ((const struct opt_int *)b)->v;
	case OPT_MAYBE_REAL:
		return ((const struct opt_real *)a)->is_set ==
			       ((const struct opt_real *)b)->is_set &&
		       ((const struct opt_real *)a)->v == ((const struct opt_real *)b)->v;
	case OPT_TRI:
		return *(const enum opt_tri *)a == *(const enum opt_tri *)b;
	case OPT_LIST:
		if (x->is_set != y->is_set || x->n != y->n)
			return false;
		for (size_t i = 0; i < x->n; i++)
			if (strcmp(x->v[i], y->v[i]) != 0)
				return false;
		return true;
	case OPT_TEXT:
	case OPT_JSON:
		/* Both are one pointer to text. */
		return str_eq(str_of(*(const char *const *)a), str_of(*(const char *const *)b)) &&
		       !*(const char *const *)a == !*(const char *const *)b;
	}
	return false;
}

/* What holds for every kind once the field is filled. */
static int finish(const struct opt_set *set, const struct opt *o, void *values, struct err *e)
{
	char label[96];

	if (o->flags & OPT_LATER && !opt_is_default(set, o, values))
		return err_set(e, ERR_USAGE, "%s: not in this version%s%s", opt_label(o, label),
			       o->note ? "; " : "", o->note ? o->note : "");
	return o->check ? o->check(o, opt_field(o, values), e) : 0;
}

int opt_read_list(const struct opt_set *set, const struct opt *o, void *values, const char **v,
		  size_t n, struct err *e)
{
	assert(o->kind == OPT_LIST);
	for (size_t i = 0; i < n; i++)
		if (check_choice(o, str_of(v[i]), e) < 0)
			return -1;
	*(struct opt_list *)opt_field(o, values) = (struct opt_list){ v, n, true };
	return finish(set, o, values, e);
}

int opt_read_bool(const struct opt_set *set, const struct opt *o, void *values, bool is_on,
		  struct err *e)
{
	if (o->kind == OPT_TRI)
		*(enum opt_tri *)opt_field(o, values) = is_on ? OPT_TRI_YES : OPT_TRI_NO;
	else
		*(bool *)opt_field(o, values) = is_on;
	return finish(set, o, values, e);
}

int opt_read(const struct opt_set *set, const struct opt *o, void *values, struct str text,
	     struct arena *a, struct err *e)
{
	void *field = opt_field(o, values);
	struct opt_int *maybe_int = field;
	struct opt_real *maybe_real = field;
	const char **list;
	int rc = 0;

	switch (o->kind) {
	case OPT_INT:
		rc = read_int(o, field, text, e);
		break;
	case OPT_REAL:
		rc = read_real(o, field, text, e);
		break;
	case OPT_MAYBE_INT:
		rc = read_int(o, &maybe_int->v, text, e);
		maybe_int->is_set = rc == 0;
		break;
	case OPT_MAYBE_REAL:
		rc = read_real(o, &maybe_real->v, text, e);
		maybe_real->is_set = rc == 0;
		break;
	case OPT_TEXT:
		rc = check_choice(o, text, e);
		if (rc == 0)
			*(const char **)field = arena_text(a, text);
		break;
	case OPT_JSON:
		rc = read_json(o, field, text, a, e);
		break;
	case OPT_LIST:
		list = arena_alloc(a, sizeof(*list));
		list[0] = arena_text(a, text);
		return opt_read_list(set, o, values, list, 1, e);
	case OPT_FLAG:
	case OPT_TRI:
		assert(!"flags have no text");
	}
	return rc < 0 ? rc : finish(set, o, values, e);
}
