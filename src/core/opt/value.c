/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - one text into one field: Python's numbers, choices, ranges, JSON, dotted keys.
 *
 * Every refusal is one sentence: the option, what it accepts, what it got.
 */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "core/base/str.h"
#include "core/json/write.h"
#include "core/opt/opt_internal.h"

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

/* A range without ends only keeps NaN out. */
static bool has_ends(const struct opt *o)
{
	return opt_has_range(o) && !(isinf(o->min) && isinf(o->max));
}

void opt_range(const struct opt *o, struct buf *out)
{
	if (!has_ends(o))
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

/* Whether the value is a number of that unit. */
static bool is_in(const struct opt *o, const char *unit)
{
	return o->kind != OPT_TEXT && o->kind != OPT_LIST && o->arg && strcmp(o->arg, unit) == 0;
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
	if (has_ends(o)) {
		bool is_bound = isinf(o->min) || (isinf(o->max) && !(o->flags & OPT_MIN_EXCLUSIVE));

		buf_add_text(out, is_bound ? " of " : " "); /* at least, at most */
		opt_range(o, out);
	}
	if (is_in(o, "SECONDS"))
		buf_add_text(out, o->kind == OPT_INT || o->kind == OPT_MAYBE_INT ?
			     ", in whole seconds or as 10m" : ", in seconds or as 10m");
	else if (is_in(o, "BYTES"))
		buf_add_text(out, ", in bytes or as 4GiB");
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

/* Units of what an option's value is called, the longer ones of a letter first. */
struct unit { const char *of, *name; double is; };

static const struct unit units[] = {
	{ "SECONDS", "ms", 1e-3 }, { "SECONDS", "s", 1 }, { "SECONDS", "min", 60 },
	{ "SECONDS", "m", 60 }, { "SECONDS", "h", 3600 }, { "SECONDS", "d", 86400 },
	{ "BYTES", "KiB", 0x1p10 }, { "BYTES", "MiB", 0x1p20 }, { "BYTES", "GiB", 0x1p30 },
	{ "BYTES", "TiB", 0x1p40 }, { "BYTES", "kB", 1e3 }, { "BYTES", "MB", 1e6 },
	{ "BYTES", "GB", 1e9 }, { "BYTES", "TB", 1e12 },
};

/* "1h30m", "4GiB" in seconds or bytes. */
static bool read_units(const char *of, struct str s, double *out)
{
	double sum = 0, v;

	s = str_trim(s);
	if (!s.n)
		return false;
	for (size_t i; s.n; s = (struct str){ s.p + i, s.n - i }) {
		const struct unit *unit = units, *end = units + sizeof(units) / sizeof(*units);

		for (i = 0; i < s.n && (isdigit((unsigned char)s.p[i]) || s.p[i] == '.'); i++)
			;
		if (!str_to_f64((struct str){ s.p, i }, &v))
			return false;
		while (unit < end && !(strcmp(unit->of, of) == 0 &&
				       str_starts((struct str){ s.p + i, s.n - i },
						  str_of(unit->name))))
			unit++;
		if (unit == end)
			return false;
		i += strlen(unit->name);
		sum += v * unit->is;
	}
	*out = sum;
	return true;
}

bool opt_bytes(struct str s, int64_t *out)
{
	double v;

	if (opt_human_int(s, out))
		return true;
	if (!read_units("BYTES", s, &v) || v != trunc(v) || v >= 0x1p63)
		return false;
	*out = (int64_t)v;
	return true;
}

static bool as_int(const struct opt *o, struct str text, int64_t *out)
{
	double v;

	if (opt_python_int(text, out))
		return true;
	if (is_in(o, "BYTES"))
		return opt_bytes(text, out);
	if (!is_in(o, "SECONDS") || !read_units(o->arg, text, &v) || v != trunc(v) || v >= 0x1p63)
		return false;
	*out = (int64_t)v;
	return true;
}

static bool as_real(const struct opt *o, struct str text, double *out)
{
	return opt_python_float(text, out) ||
	       (is_in(o, "SECONDS") && read_units(o->arg, text, out));
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

	if (!as_int(o, text, &v) || !is_in_range(o, (double)v))
		return refuse(o, text, e);
	*field = v;
	return 0;
}

static int read_real(const struct opt *o, double *field, struct str text, struct err *e)
{
	double v;

	if (!as_real(o, text, &v) || !is_in_range(o, v))
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

/* Checks common to every kind, once the field is filled. */
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
	assert(o->kind == OPT_FLAG || o->kind == OPT_TRI);
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

	assert(o->kind != OPT_FLAG && o->kind != OPT_TRI);
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

/* ---- Values below a JSON option ---- */

/*
 * A tree per option grows as the keys come; nested objects are merged, lists are
 * joined, anything else is replaced with a note. A value is JSON when it reads as
 * JSON, else an integer (Python's, or with a suffix: 1k = 1000, 1K = 1024), else text.
 */

static struct json_value *new_value(struct arena *a, enum json_kind kind)
{
	struct json_value *v = arena_alloc(a, sizeof(*v));

	v->kind = kind;
	return v;
}

/* Room for one more element (and key) at the end; few, so copying each time is fine. */
static struct json_value *append(struct json_value *v, struct str key, struct arena *a)
{
	struct json_value *item = arena_alloc(a, (v->count + 1) * sizeof(*item));

	if (v->count)
		memcpy(item, v->item, v->count * sizeof(*item));
	v->item = item;
	if (v->kind == JSON_OBJECT) {
		struct str *keys = arena_alloc(a, (v->count + 1) * sizeof(*keys));

		if (v->count)
			memcpy(keys, v->key, v->count * sizeof(*keys));
		keys[v->count] = key;
		v->key = keys;
	}
	return &v->item[v->count++];
}

static struct json_value *find(struct json_value *object, struct str key)
{
	for (size_t i = 0; i < object->count; i++)
		if (str_eq(object->key[i], key))
			return &object->item[i];
	return NULL;
}

static void merge(struct json_value *into, const struct json_value *from, struct str path,
		  struct buf *notes, struct arena *a)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct json_value *v = &from->item[i];
		struct json_value *old = find(into, from->key[i]);
		struct str full = str_of(arena_printf(a, "%.*s.%.*s", (int)path.n, path.p,
						      (int)from->key[i].n, from->key[i].p));

		if (!old) {
			*append(into, from->key[i], a) = *v;
		} else if (old->kind == JSON_OBJECT && v->kind == JSON_OBJECT) {
			merge(old, v, full, notes, a);
		} else if (old->kind == JSON_ARRAY && v->kind == JSON_ARRAY) {
			for (size_t j = 0; j < v->count; j++)
				*append(old, (struct str){ 0 }, a) = v->item[j];
		} else {
			if (notes)
				buf_printf(notes, "--%.*s is given more than once; the last one "
					   "counts\n", (int)full.n, full.p);
			*old = *v;
		}
	}
}

bool opt_human_int(struct str s, int64_t *out)
{
	static const char suffixes[] = "kmgt";
	struct str number = str_trim(s);
	bool has_point = false;
	const char *at;
	unsigned power;
	double v;

	if (opt_python_int(s, out))
		return true;
	if (number.n < 2)
		return false;
	at = strchr(suffixes, tolower((unsigned char)number.p[number.n - 1]));
	if (!at || !*at)
		return false;
	power = (unsigned)(at - suffixes) + 1;
	number.n--;
	for (size_t i = 0; i < number.n; i++) {
		if (number.p[i] == '.' && !has_point && i > 0 && i + 1 < number.n)
			has_point = true;
		else if (!isdigit((unsigned char)number.p[i]))
			return false;
	}
	if (!str_to_f64(number, &v))
		return false;
	if (isupper((unsigned char)number.p[number.n])) {
		if (has_point) /* upstream takes 1.5K as text */
			return false;
		v = ldexp(v, (int)(10 * power));
	} else {
		v = trunc(v * pow(1000, power));
	}
	if (v >= 0x1p63)
		return false;
	*out = (int64_t)v;
	return true;
}

static struct json_value *leaf(struct str value, bool is_list, struct arena *a)
{
	struct json_value *v = NULL;
	int64_t number;

	if (is_list) {
		v = new_value(a, JSON_ARRAY);
		for (bool is_last = false; !is_last;) {
			struct json_value *item = append(v, (struct str){ 0 }, a);

			is_last = !memchr(value.p, ',', value.n);
			item->kind = JSON_STRING;
			item->text = arena_str(a, str_cut(&value, ','));
		}
		return v;
	}
	if (json_parse(a, value, &v, NULL) == 0)
		return v;
	if (opt_human_int(value, &number)) {
		v = new_value(a, JSON_INT);
		v->integer = number;
		v->raw = str_of(arena_printf(a, "%lld", (long long)number));
		return v;
	}
	v = new_value(a, JSON_STRING);
	v->text = arena_str(a, value);
	return v;
}

int opt_dotted_put(struct json_value **root, const char *name, struct str path, struct str value,
		   struct buf *notes, struct arena *a, struct err *e)
{
	bool is_list = path.n && path.p[path.n - 1] == '+';
	struct json_value *top = new_value(a, JSON_OBJECT), *at = top;
	size_t depth = 1;

	path.n -= is_list;
	for (;;) {
		bool is_last = !memchr(path.p, '.', path.n);
		struct str key = arena_str(a, str_cut(&path, '.'));
		struct json_value *slot = append(at, key, a);

		if (++depth > JSON_DEPTH_MAX / 2)
			return err_set(e, ERR_USAGE, "--%s: more than %d nested keys", name,
				       JSON_DEPTH_MAX / 2);
		if (is_last) {
			*slot = *leaf(value, is_list, a);
			break;
		}
		slot->kind = JSON_OBJECT;
		at = slot;
	}
	if (!*root || (*root)->kind != JSON_OBJECT)
		*root = new_value(a, JSON_OBJECT);
	merge(*root, top, str_of(name), notes, a);
	return 0;
}

const char *opt_dotted_text(const struct json_value *root, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	const char *text;

	w.is_python = true; /* for an engine's argument parser */
	json_put_value(&w, root);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* ---- one option from a file, a form or key=value ---- */

static bool is_any(struct str s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq_nocase(s, str_of(*words)))
			return true;
	return false;
}

static bool is_none(struct str s)
{
	static const char *const words[] = { "null", "none", "~", NULL };

	return s.n == 0 || is_any(s, words);
}

static int assign_bool(const struct opt_set *set, const struct opt *o, void *values,
		       struct str value, struct err *e)
{
	static const char *const yes[] = { "true", "yes", "on", "1", NULL };
	static const char *const no[] = { "false", "no", "off", "0", NULL };

	if (is_any(value, yes))
		return opt_read_bool(set, o, values, true, e);
	if (is_any(value, no))
		return opt_read_bool(set, o, values, false, e);
	if (o->kind == OPT_TRI && is_none(value)) {
		*(enum opt_tri *)opt_field(o, values) = OPT_TRI_UNSET;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s: expected true or false, got '%.*s'", o->name,
		       (int)value.n, value.p);
}

static int assign_list(const struct opt_set *set, const struct opt *o, void *values,
		       struct str value, struct arena *a, struct err *e)
{
	struct json_value *json;
	const char **v;

	if (value.n == 0 || value.p[0] != '[')
		return opt_read(set, o, values, value, a, e);
	if (json_parse(a, value, &json, e) < 0) {
		if (e)
			e->code = ERR_USAGE;
		return err_wrap(e, "%s: expected a JSON array of texts", o->name);
	}
	v = arena_alloc(a, (json->count + 1) * sizeof(*v));
	for (size_t i = 0; i < json->count; i++) {
		if (json->item[i].kind == JSON_STRING)
			v[i] = json->item[i].text.p;
		else
			v[i] = opt_dotted_text(&json->item[i], a);
	}
	if (json->count == 0 && o->flags & OPT_MANY)
		return err_set(e, ERR_USAGE, "%s: expected at least one element", o->name);
	return opt_read_list(set, o, values, v, json->count, e);
}

/* Changes one key and keeps the others: the order in a file does not matter. */
static int assign_key(const struct opt_set *set, const struct opt *o, void *values,
		      struct str path, struct str value, struct arena *a, struct err *e)
{
	const struct opt_json *field = opt_field_const(o, values);
	struct json_value *root = NULL;

	if (o->kind != OPT_JSON)
		return err_set(e, ERR_USAGE, "%s: is not a JSON value, so it has no key '%.*s'", o->name,
			       (int)path.n, path.p);
	if (field->text && json_parse(a, str_of(field->text), &root, e) < 0)
		return -1;
	if (opt_dotted_put(&root, o->name, path, value, NULL, a, e) < 0)
		return -1;
	return opt_read(set, o, values, str_of(opt_dotted_text(root, a)), a, e);
}

/* Unsets what may be absent; false for an option that always has a value. */
static bool assign_none(const struct opt_set *set, const struct opt *o, void *values)
{
	const void *otherwise = opt_field_const(o, set->defaults);
	void *field = opt_field(o, values);

	if (o->kind == OPT_MAYBE_INT)
		*(struct opt_int *)field = (struct opt_int){ 0 };
	else if (o->kind == OPT_MAYBE_REAL)
		*(struct opt_real *)field = (struct opt_real){ 0 };
	else if (o->kind == OPT_LIST)
		*(struct opt_list *)field = (struct opt_list){ 0 };
	else if ((o->kind == OPT_TEXT || o->kind == OPT_JSON) && !*(char *const *)otherwise)
		*(const char **)field = NULL;
	else
		return false;
	return true;
}

int opt_assign(const struct opt_set *set, void *values, const char *name, struct str value,
	       struct arena *a, struct err *e)
{
	struct str path = str_of(name), head = str_cut(&path, '.');
	const struct opt *o = opt_row(set, head);

	if (!o || o->flags & OPT_NO_CONFIG) {
		const char *near = opt_suggest(set, head);

		return err_set(e, ERR_USAGE, "unknown option '%.*s'%s%s%s", (int)head.n, head.p,
			       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	o = opt_target(set, o);
	if (head.n < strlen(name))
		return assign_key(set, o, values, path, value, a, e);
	if (o->kind == OPT_FLAG || o->kind == OPT_TRI)
		return assign_bool(set, o, values, value, e);
	/* An option with a default always has a value, and "none" may be one. */
	if (is_none(value) && assign_none(set, o, values))
		return 0;
	if (o->kind == OPT_LIST)
		return assign_list(set, o, values, value, a, e);
	return opt_read(set, o, values, value, a, e);
}

int opt_give(const struct opt_set *set, void *values, struct opt_result *result,
	     const char *name, struct str value, struct arena *a, struct err *e)
{
	struct str path = str_of(name), head = str_cut(&path, '.');
	size_t i;

	if (opt_assign(set, values, name, value, a, e) < 0)
		return -1;
	i = (size_t)(opt_target(set, opt_row(set, head)) - set->row);
	result->given[i / 64] |= UINT64_C(1) << i % 64;
	return 0;
}
