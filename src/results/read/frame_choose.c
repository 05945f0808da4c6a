/* SPDX-License-Identifier: Apache-2.0 */
/* frame_choose.c - filters, bins and groups of records; see frame.h. */
#include <math.h>

#include "core/base/mem.h"
#include "core/json/python.h"
#include "results/read/frame.h"

#define ERROR_TEXT 900 /* bytes of a list in a message; struct err holds little more */

/* In search order: "<=" must not be read as "<". */
static const struct { const char *text, *python; } ops[] = {
	[FRAME_EQ] = { "==", "PlotEqualTo" },
	[FRAME_NE] = { "!=", "PlotNotEqualTo" },
	[FRAME_LE] = { "<=", "PlotLessThanOrEqualTo" },
	[FRAME_GE] = { ">=", "PlotGreaterThanOrEqualTo" },
	[FRAME_LT] = { "<", "PlotLessThan" },
	[FRAME_GT] = { ">", "PlotGreaterThan" },
};
#define OPS (sizeof(ops) / sizeof(*ops))

static const char *find(struct str s, const char *word)
{
	return s.n ? memmem(s.p, s.n, word, strlen(word)) : NULL;
}

static struct str strip(struct str s, char c)
{
	while (s.n && *s.p == c)
		s.p++, s.n--;
	while (s.n && s.p[s.n - 1] == c)
		s.n--;
	return s;
}

/* Around the one operator; a second one is Python's complaint about unpacking. */
static int cut_at(struct str s, const char *op, struct str *left, struct str *right, struct err *e)
{
	const char *at = find(s, op);
	size_t n = strlen(op);

	*left = (struct str){ s.p, (size_t)(at - s.p) };
	*right = (struct str){ at + n, s.n - left->n - n };
	if (find(*right, op))
		return err_set(e, ERR_RUN, "'%.*s': too many values to unpack (expected 2)", (int)s.n,
			       s.p);
	return 0;
}

static int bad_float(struct str text, struct err *e)
{
	struct buf shown = { 0 };

	json_repr_str(&shown, text);
	err_set(e, ERR_RUN, "could not convert string to float: %.*s", ERROR_TEXT, shown.data);
	buf_release(&shown);
	return -1;
}

static int parse_filter(struct frame_filter *f, struct str s, struct err *e)
{
	double number;

	for (size_t i = 0; i < OPS; i++) {
		if (!find(s, ops[i].text))
			continue;
		f->op = (enum frame_op)i;
		if (cut_at(s, ops[i].text, &f->var, &f->target, e) < 0)
			return -1;
		f->target = strip(strip(f->target, '\''), '"');
		if (f->op > FRAME_NE && !frame_float(f->target, &number))
			return bad_float(f->target, e);
		return 0;
	}
	return err_set(e, ERR_RUN, "Invalid operator for plot filter '%.*s'. Valid operators are: "
		       "['!=', '<', '<=', '==', '>', '>=']", (int)(s.n < 200 ? s.n : 200), s.p);
}

int frame_parse_filters(struct frame_filters *out, const char *text, struct arena *a,
			struct err *e)
{
	struct frame_keys part = frame_keys(text, a);

	out->item = arena_alloc(a, (part.n + 1) * sizeof(*out->item));
	for (out->n = 0; out->n < part.n; out->n++)
		if (parse_filter(&out->item[out->n], part.name[out->n], e) < 0)
			return -1;
	return 0;
}

int frame_parse_bins(struct frame_bins *out, const char *text, struct arena *a, struct err *e)
{
	struct frame_keys part = frame_keys(text, a);

	out->item = arena_alloc(a, (part.n + 1) * sizeof(*out->item));
	for (out->n = 0; out->n < part.n; out->n++) {
		struct frame_bin *bin = &out->item[out->n];
		struct str s = part.name[out->n], size;

		if (!find(s, "%"))
			return err_set(e, ERR_RUN, "Invalid operator for plot binner '%.*s'. Valid operators "
				       "are: ['%%']", (int)(s.n < 200 ? s.n : 200), s.p);
		if (cut_at(s, "%", &bin->var, &size, e) < 0)
			return -1;
		if (!frame_float(size, &bin->size))
			return bad_float(size, e);
		if (!(isfinite(bin->size) && bin->size != 0))
			return err_set(e, ERR_RUN, "--bin-by: '%.*s': the size of a bin is a number other "
				       "than 0", (int)s.n, s.p);
	}
	return 0;
}

void frame_filters_text(const struct frame_filters *f, struct buf *out)
{
	buf_add_char(out, '[');
	for (size_t i = 0; i < f->n; i++) {
		buf_printf(out, "%s%s(var=", i ? ", " : "", ops[f->item[i].op].python);
		json_repr_str(out, f->item[i].var);
		buf_add_text(out, ", target=");
		json_repr_str(out, f->item[i].target);
		buf_add_char(out, ')');
	}
	buf_add_char(out, ']');
}

/* ---- filters ---- */

static int no_column(const struct frame *f, const char *option, struct str var, struct err *e)
{
	struct buf columns = { 0 };

	frame_columns_text(f, &columns);
	err_set(e, ERR_RUN, "Cannot find %s='%.*s' in parameter sweep results. Available variables: "
		"%.*s", option, (int)var.n, var.p, ERROR_TEXT, columns.data);
	buf_release(&columns);
	return -1;
}

static bool is_equal(const struct frame_filter *by, const struct json_value *v)
{
	double target, x;

	if (frame_float(by->target, &target))
		return frame_number(v, &x) && x == target;
	return v && v->kind == JSON_STRING && !frame_number(v, &x) && str_eq(v->text, by->target);
}

/* 1: the row stays. */
static int keeps(const struct frame_filter *by, const struct json_value *v, struct err *e)
{
	double target = 0, x;

	if (by->op == FRAME_EQ || by->op == FRAME_NE)
		return is_equal(by, v) == (by->op == FRAME_EQ);
	if (!v || v->kind == JSON_NULL)
		return 0;
	if (!frame_number(v, &x))
		return err_set(e, ERR_RUN, "'%s' not supported between instances of '%s' and 'float' "
			       "(--filter-by, variable '%.*s')", ops[by->op].text,
			       v->kind == JSON_STRING ? "str" : v->kind == JSON_ARRAY ? "list" : "dict",
			       (int)by->var.n, by->var.p);
	frame_float(by->target, &target);
	return by->op == FRAME_LT ? x < target : by->op == FRAME_LE ? x <= target :
	       by->op == FRAME_GT ? x > target : x >= target;
}

int frame_filter(const struct frame *f, const struct frame_filters *by, struct frame *out,
		 struct arena *a, struct err *e)
{
	struct frame kept = *f;

	for (size_t k = 0; k < by->n; k++) {
		struct frame next = { 0 };

		if (!frame_has_column(f, by->item[k].var))
			return no_column(f, "filter_by", by->item[k].var, e);
		for (size_t i = 0; i < kept.n; i++) {
			const struct json_value *v = frame_value(kept.row[i], by->item[k].var);
			int keep = keeps(&by->item[k], v, e);

			if (keep < 0 || (keep && frame_add(&next, kept.row[i], "filter", a, e) < 0))
				return -1;
		}
		kept = next;
	}
	*out = kept;
	return 0;
}

/* ---- bins ---- */

/* NumPy's floor_divide, which is Python's //, times the size. */
static double low_end(double x, double size)
{
	double rest = fmod(x, size), quotient = (x - rest) / size, low;

	if (rest != 0 && (size < 0) != (rest < 0))
		quotient -= 1;
	if (quotient == 0)
		return copysign(0, x / size) * size;
	low = floor(quotient);
	if (quotient - low > 0.5)
		low += 1;
	return low * size;
}

/* A copy of the record in which key has the value; a dotted key becomes a top-level one. */
static const struct json_value *with(const struct json_value *record, struct str key, double x,
				     struct arena *a)
{
	struct json_value *copy = arena_alloc(a, sizeof(*copy));
	size_t at = 0;

	*copy = *record;
	while (at < record->count && !str_eq(record->key[at], key))
		at++;
	copy->count += at == record->count;
	copy->item = arena_alloc(a, copy->count * sizeof(*copy->item));
	copy->key = arena_alloc(a, copy->count * sizeof(*copy->key));
	if (record->count) {
		memcpy(copy->item, record->item, record->count * sizeof(*copy->item));
		memcpy(copy->key, record->key, record->count * sizeof(*copy->key));
	}
	copy->key[at] = key;
	copy->item[at] = (struct json_value){ .kind = JSON_REAL, .real = x };
	return copy;
}

int frame_bin(const struct frame *f, const struct frame_bins *by, struct frame *out,
	      struct arena *a, struct err *e)
{
	struct frame binned = *f;

	for (size_t k = 0; k < by->n; k++) {
		struct frame next = { 0 };
		struct str var = by->item[k].var;

		if (f->n && !frame_has_column(f, var))
			return no_column(f, "bin_by", var, e);
		for (size_t i = 0; i < binned.n; i++) {
			const struct json_value *v = frame_value(binned.row[i], var);
			double x = NAN;

			if (v && v->kind != JSON_NULL && !frame_number(v, &x))
				return err_set(e, ERR_RUN, "unsupported operand type(s) for //: '%s' and "
					       "'float' (--bin-by, variable '%.*s')",
					       v->kind == JSON_STRING ? "str" :
					       v->kind == JSON_ARRAY ? "list" : "dict", (int)var.n, var.p);
			x = low_end(x, by->item[k].size);
			if (frame_add(&next, with(binned.row[i], var, x, a), "bin", a, e) < 0)
				return -1;
		}
		binned = next;
	}
	*out = binned;
	return 0;
}

/* ---- groups ---- */

static int no_metric(const struct json_value *record, struct str key, struct err *e)
{
	struct buf name = { 0 }, shown = { 0 };

	json_repr_str(&name, key);
	json_repr(&shown, record);
	err_set(e, ERR_RUN, "Cannot find metric %s in run_data=%.*s", name.data, ERROR_TEXT,
		shown.data);
	buf_release(&name);
	buf_release(&shown);
	return -1;
}

/* The texts of a record's keys; id identifies their combination. */
static int texts_of(const struct json_value *record, const struct frame_keys *keys,
		    struct str *text, struct buf *id, struct arena *a, struct err *e)
{
	struct buf one = { 0 };

	buf_reset(id);
	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);

		if (!v)
			return no_metric(record, keys->name[k], e);
		frame_text(&one, v, FRAME_OBJECT);
		text[k] = arena_str(a, buf_str(&one));
		buf_printf(id, "%zu:", text[k].n);
		buf_add_str(id, text[k]);
		buf_release(&one);
	}
	return 0;
}

int frame_group_by(const struct frame *f, const struct frame_keys *keys, struct frame_groups *out,
		   struct arena *a, struct err *e)
{
	struct map seen = { 0 };
	struct buf id = { 0 };
	int rc = 0;

	*out = (struct frame_groups){ .item = arena_alloc(a, (f->n + 1) * sizeof(*out->item)) };
	for (size_t i = 0; rc == 0 && i < f->n; i++) {
		struct str *text = arena_alloc(a, (keys->n + 1) * sizeof(*text));
		uint64_t at = out->n;

		rc = texts_of(f->row[i], keys, text, &id, a, e);
		if (rc == 0 && !map_get(&seen, id.len ? buf_str(&id) : STR("-"), &at)) {
			map_put(&seen, id.len ? arena_str(a, buf_str(&id)) : STR("-"), at);
			out->item[out->n++].text = text;
		}
		if (rc == 0)
			rc = frame_add(&out->item[at].frame, f->row[i], "group", a, e);
	}
	map_release(&seen);
	buf_release(&id);
	return rc;
}
