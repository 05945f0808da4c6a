/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - prints values: --show-config, Python's Namespace line, JSON.
 *
 * Secrets are hidden: what base/redact.h recognises, and whole values of OPT_SECRET rows.
 */
#include "core/opt/opt_internal.h"

#include <math.h>

#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/json/write.h"

static bool is_kept(const struct opt *o)
{
	return !(o->flags & (OPT_HIDDEN | OPT_NO_CONFIG)) && !o->alias_of;
}

static bool is_absent(const struct opt *o, const void *field)
{
	switch (o->kind) {
	case OPT_MAYBE_INT:
		return !((const struct opt_int *)field)->is_set;
	case OPT_MAYBE_REAL:
		return !((const struct opt_real *)field)->is_set;
	case OPT_TRI:
		return *(const enum opt_tri *)field == OPT_TRI_UNSET;
	case OPT_LIST:
		return !((const struct opt_list *)field)->is_set;
	case OPT_TEXT:
	case OPT_JSON:
		return !*(const char *const *)field;
	case OPT_FLAG:
	case OPT_INT:
	case OPT_REAL:
		break;
	}
	return false;
}

static bool bool_of(const struct opt *o, const void *field)
{
	return o->kind == OPT_TRI ? *(const enum opt_tri *)field == OPT_TRI_YES :
				    *(const bool *)field;
}

static int64_t int_of(const struct opt *o, const void *field)
{
	return o->kind == OPT_MAYBE_INT ? ((const struct opt_int *)field)->v :
					  *(const int64_t *)field;
}

static double real_of(const struct opt *o, const void *field)
{
	return o->kind == OPT_MAYBE_REAL ? ((const struct opt_real *)field)->v :
					   *(const double *)field;
}

static void name_with_underscores(const struct opt *o, char out[static 96])
{
	size_t n = 0;

	for (const char *p = o->name; *p && n < 95; p++)
		out[n++] = *p == '-' ? '_' : *p;
	out[n] = 0;
}

static void add_real(struct buf *out, double v)
{
	char text[FMT_F64_BYTES];

	buf_add_text(out, fmt_f64(text, v));
}

static void add_json_text_repr(struct buf *out, const char *text)
{
	struct arena a = { 0 };
	struct json_value *v;

	if (json_parse(&a, str_of(text), &v, NULL) == 0)
		json_repr(out, v);
	else /* a default that is not JSON would be a bug; show it as text */
		json_repr_str(out, str_of(text));
	arena_release(&a);
}

static void add_python(const struct opt *o, const void *field, bool is_default, struct buf *out)
{
	const struct opt_list *list = field;

	if (is_absent(o, field)) {
		buf_add_text(out, "None");
		return;
	}
	if (o->flags & OPT_SECRET) {
		buf_add_text(out, "'" REDACTED "'");
		return;
	}
	switch (o->kind) {
	case OPT_FLAG:
	case OPT_TRI:
		buf_add_text(out, bool_of(o, field) ? "True" : "False");
		break;
	case OPT_INT:
	case OPT_MAYBE_INT:
		buf_printf(out, "%lld", (long long)int_of(o, field));
		break;
	case OPT_REAL:
	case OPT_MAYBE_REAL:
		if (o->flags & OPT_WHOLE && is_default)
			buf_printf(out, "%.0f", real_of(o, field));
		else
			add_real(out, real_of(o, field));
		break;
	case OPT_TEXT:
		if (o->flags & OPT_LITERAL)
			buf_add_text(out, *(const char *const *)field);
		else
			json_repr_str(out, str_of(*(const char *const *)field));
		break;
	case OPT_JSON:
		add_json_text_repr(out, ((const struct opt_json *)field)->text);
		break;
	case OPT_LIST:
		buf_add_char(out, '[');
		for (size_t i = 0; i < list->n; i++) {
			buf_add_text(out, i ? ", " : "");
			json_repr_str(out, str_of(list->v[i]));
		}
		buf_add_char(out, ']');
		break;
	}
}

void opt_namespace(const struct opt_set *set, const void *values, struct buf *out)
{
	bool is_first = true;
	size_t from = out->len;

	buf_printf(out, "Namespace(%s", set->namespace_head ? set->namespace_head : "");
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		char name[96];

		if (!is_kept(o) || o->flags & OPT_OURS)
			continue;
		name_with_underscores(o, name);
		buf_printf(out, "%s%s=", is_first ? "" : ", ", name);
		add_python(o, opt_field_const(o, values), opt_is_default(set, o, values), out);
		is_first = false;
	}
	buf_add_char(out, ')');
	redact_tail(out, from, REDACT_SETTINGS);
}

/* ---- JSON ---- */

static void put_whole(const struct opt *o, const void *field, struct json_writer *w)
{
	const struct opt_list *list = field;

	if (is_absent(o, field)) {
		json_put_null(w);
		return;
	}
	switch (o->kind) {
	case OPT_FLAG:
	case OPT_TRI:
		json_put_bool(w, bool_of(o, field));
		break;
	case OPT_INT:
	case OPT_MAYBE_INT:
		json_put_int(w, int_of(o, field));
		break;
	case OPT_REAL:
	case OPT_MAYBE_REAL:
		json_put_setting(w, real_of(o, field));
		break;
	case OPT_TEXT:
		json_put_text(w, *(const char *const *)field);
		break;
	case OPT_JSON:
		json_put_foreign(w, str_of(((const struct opt_json *)field)->text));
		break;
	case OPT_LIST:
		json_begin_array(w);
		for (size_t i = 0; i < list->n; i++)
			json_put_text(w, list->v[i]);
		json_end_array(w);
		break;
	}
}

static void put_json(const struct opt *o, const void *field, struct json_writer *w)
{
	if (o->flags & OPT_SECRET && !is_absent(o, field))
		json_put_text(w, REDACTED);
	else
		put_whole(o, field, w);
}

/* Whether redaction changes what was added to b from that offset on. */
static bool is_hidden(const struct opt *o, const void *field, const struct buf *b, size_t from)
{
	struct buf room = { 0 };
	bool is = o->flags & OPT_SECRET && !is_absent(o, field);

	buf_add(&room, b->data + from, b->len - from);
	redact_tail(&room, 0, REDACT_SETTINGS);
	is = is || room.len != b->len - from || memcmp(room.data, b->data + from, room.len) != 0;
	buf_release(&room);
	return is;
}

void opt_json_hidden(const struct opt_set *set, const void *values, struct buf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		const void *field = opt_field_const(o, values);
		struct json_writer w = json_writer(out);
		size_t from = out->len;
		char name[96];

		if (!is_kept(o))
			continue;
		name_with_underscores(o, name);
		json_begin_object(&w);
		json_key(&w, name);
		put_whole(o, field, &w);
		json_end_object(&w);
		if (!is_hidden(o, field, out, from))
			out->len = from;
	}
}

void opt_json(const struct opt_set *set, const void *values, struct buf *out)
{
	struct json_writer w = json_writer(out);
	size_t from = out->len;

	json_begin_object(&w);
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		char name[96];

		if (!is_kept(o))
			continue;
		name_with_underscores(o, name);
		json_key(&w, name);
		put_json(o, opt_field_const(o, values), &w);
	}
	json_end_object(&w);
	redact_tail(out, from, REDACT_SETTINGS);
}

void opt_value_json(const struct opt *o, const void *values, struct json_writer *w)
{
	put_json(o, opt_field_const(o, values), w);
}

bool opt_value_text(const struct opt *o, const void *values, struct buf *out)
{
	const void *field = opt_field_const(o, values);
	const struct opt_list *list = field;

	if (is_absent(o, field))
		return false;
	switch (o->kind) {
	case OPT_FLAG:
	case OPT_TRI:
		buf_add_text(out, bool_of(o, field) ? "on" : "off");
		break;
	case OPT_INT:
	case OPT_MAYBE_INT:
		buf_printf(out, "%lld", (long long)int_of(o, field));
		break;
	case OPT_REAL:
	case OPT_MAYBE_REAL:
		if (real_of(o, field) == trunc(real_of(o, field)) && fabs(real_of(o, field)) < 1e15)
			buf_printf(out, "%.0f", real_of(o, field));
		else
			add_real(out, real_of(o, field));
		break;
	case OPT_TEXT:
	case OPT_JSON:
		buf_add_text(out, *(const char *const *)field);
		break;
	case OPT_LIST:
		for (size_t i = 0; i < list->n; i++)
			buf_printf(out, "%s%s", i ? " " : "", list->v[i]);
		break;
	}
	return true;
}

/* ---- --show-config ---- */

void opt_show_config(const struct opt_set *set, const void *values, const struct opt_result *r,
		     struct buf *out)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		struct json_writer w = json_writer(out);
		bool is_given = r && r->given[i / 64] >> i % 64 & 1;
		size_t start = out->len, width;

		if (!is_kept(o))
			continue;
		buf_printf(out, "%s = ", o->name);
		put_json(o, opt_field_const(o, values), &w);
		redact_tail(out, start, REDACT_SETTINGS);
		width = out->len - start;
		buf_printf(out, "%*s# %s\n", width < 46 ? (int)(48 - width) : 2, "",
			   is_given ? "given" :
			   opt_is_default(set, o, values) ? "default" : "derived");
	}
	if (r)
		opt_foreign_show(&r->rest, out);
}
