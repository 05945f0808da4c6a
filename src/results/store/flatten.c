/* SPDX-License-Identifier: Apache-2.0 */
/* flatten.c - see flatten.h. */
#include "results/store/flatten.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "results/store/read.h"

#define NAMES_USUAL 400       /* columns of a result */
#define LIST_ELEMENTS_MAX 256 /* of a list that becomes a text; a longer one is data */

void cells_init(struct cells *c, struct arena *a)
{
	*c = (struct cells){ .arena = a };
	map_reserve(&c->names, NAMES_USUAL);
}

void cells_release(struct cells *c)
{
	free(c->cell);
	free(c->name);
	map_release(&c->names);
	buf_release(&c->scratch);
	*c = (struct cells){ 0 };
}

void cells_begin(struct cells *c)
{
	c->n = 0;
	c->is_over = false;
	c->run++;
}

struct row cells_row(const struct cells *c)
{
	struct row row = { .n = c->n };

	row.cell = arena_alloc(c->arena, (c->n + 1) * sizeof(*row.cell));
	if (c->n)
		memcpy(row.cell, c->cell, c->n * sizeof(*row.cell));
	return row;
}

/* ---- names ---- */

static bool is_name(struct str name)
{
	if (name.n == 0 || name.n > COLUMN_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
			return false;
	return true;
}

/* The name as the file knows it, from now on; NULL: it is none, or one too many. */
static struct known_name *know(struct cells *c, struct str name)
{
	uint64_t at;

	if (map_get(&c->names, name, &at))
		return &c->name[at];
	if (!is_name(name) || c->n_names == FLATTEN_NAMES_MAX) {
		c->bad_names++;
		return NULL;
	}
	if (c->n_names == c->cap_names) {
		c->cap_names = c->cap_names ? 2 * c->cap_names : 256;
		c->name = mem_grow(c->name, c->cap_names, sizeof(*c->name));
	}
	at = c->n_names++;
	c->name[at] = (struct known_name){ .text = arena_str(c->arena, name) };
	map_put(&c->names, c->name[at].text, at);
	return &c->name[at];
}

/* ---- values ---- */

static struct str cut_text(struct str s)
{
	size_t n = INGEST_TEXT_BYTES_MAX;

	if (s.n <= n)
		return s;
	while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return (struct str){ s.p, n };
}

/* A copy that every database takes: U+0000 becomes U+FFFD. */
static struct str keep_text(struct arena *a, struct str s)
{
	struct buf clean = { 0 };
	struct str kept;

	s = cut_text(s);
	if (!s.n || !memchr(s.p, 0, s.n))
		return arena_str(a, s);
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i])
			buf_add_char(&clean, s.p[i]);
		else
			buf_add_text(&clean, "\xef\xbf\xbd");
	kept = arena_str(a, cut_text(buf_str(&clean)));
	buf_release(&clean);
	return kept;
}

void cells_put(struct cells *c, struct str name, struct value v)
{
	struct known_name *known;

	if (v.kind == VALUE_ABSENT)
		return;
	known = know(c, name);
	if (!known || known->run == c->run)
		return;
	if (c->n == INGEST_CELLS_MAX) {
		c->is_over = true;
		return;
	}
	known->run = c->run;
	if (v.kind == VALUE_TEXT)
		v.text = keep_text(c->arena, v.text);
	else if (v.kind == VALUE_NUMBER && v.number == 0)
		v.number = 0; /* there is one zero */
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 512;
		c->cell = mem_grow(c->cell, c->cap, sizeof(*c->cell));
	}
	c->cell[c->n++] = (struct cell){ known->text, v };
}

void cells_put_text(struct cells *c, const char *name, struct str text)
{
	cells_put(c, str_of(name), (struct value){ .kind = VALUE_TEXT, .text = text });
}

void cells_put_number(struct cells *c, const char *name, double v)
{
	cells_put(c, str_of(name), isnan(v) ? (struct value){ .kind = VALUE_NULL } :
					      (struct value){ .kind = VALUE_NUMBER, .number = v });
}

static bool is_infinite(struct str s, double *out)
{
	bool is_minus = s.n && s.p[0] == '-';

	if (is_minus)
		s = (struct str){ s.p + 1, s.n - 1 };
	if (!str_is(s, "inf") && !str_is(s, "Infinity"))
		return false;
	*out = is_minus ? -INFINITY : INFINITY;
	return true;
}

struct value value_of(const struct json_value *v)
{
	struct value out = { .kind = VALUE_NUMBER };

	if (!v)
		return (struct value){ 0 };
	switch (v->kind) {
	case JSON_NULL:
		return (struct value){ .kind = VALUE_NULL };
	case JSON_FALSE:
	case JSON_TRUE:
		return (struct value){ .kind = VALUE_BOOL, .is_true = v->kind == JSON_TRUE };
	case JSON_INT:
	case JSON_REAL:
		out.number = json_real(v, 0);
		return out;
	case JSON_STRING:
		if (!is_infinite(v->text, &out.number))
			out = (struct value){ .kind = VALUE_TEXT, .text = v->text };
		return out;
	default:
		return (struct value){ 0 };
	}
}

struct value value_of_word(struct str text)
{
	struct value out = { .kind = VALUE_NUMBER };
	bool is_number = text.n && (text.p[0] == '-' || (text.p[0] >= '0' && text.p[0] <= '9'));

	if (is_infinite(text, &out.number) || (is_number && str_to_f64(text, &out.number)))
		return out;
	if (str_eq_nocase(text, STR("true")) || str_eq_nocase(text, STR("false")))
		return (struct value){ .kind = VALUE_BOOL, .is_true = text.n == 4 };
	if (str_is(text, "None") || str_is(text, "null"))
		return (struct value){ .kind = VALUE_NULL };
	return (struct value){ .kind = VALUE_TEXT, .text = text };
}

/* ---- trees ---- */

static bool is_flat(const struct json_value *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->item[i].kind == JSON_ARRAY || list->item[i].kind == JSON_OBJECT)
			return false;
	return list->count <= LIST_ELEMENTS_MAX;
}

static void put_spelled(struct cells *c, struct str name, const struct json_value *v)
{
	struct buf text = { .limit = INGEST_BYTES_MAX };
	struct json_writer w = json_writer(&text);

	w.is_raw_utf8 = true;
	json_put_value(&w, v);
	cells_put(c, name, (struct value){ .kind = VALUE_TEXT, .text = buf_str(&text) });
	buf_release(&text);
}

static void put_tree(struct cells *c, struct buf *name, struct str key, const struct json_value *v,
		     unsigned depth)
{
	size_t len = name->len;

	if (!key.n) {
		c->bad_names++;
		return;
	}
	if (len)
		buf_add_char(name, '.');
	buf_add(name, key.p, key.n > COLUMN_BYTES_MAX + 1 ? COLUMN_BYTES_MAX + 1 : key.n);
	if (v->kind == JSON_OBJECT && v->count && depth < FLATTEN_DEPTH_MAX) {
		for (size_t i = 0; i < v->count && !c->is_over; i++)
			put_tree(c, name, v->key[i], &v->item[i], depth + 1);
	} else if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) {
		if (v->kind == JSON_OBJECT || is_flat(v))
			put_spelled(c, buf_str(name), v);
	} else {
		cells_put(c, buf_str(name), value_of(v));
	}
	name->len = len;
}

void cells_put_json(struct cells *c, const char *prefix, struct str key,
		    const struct json_value *v)
{
	if (!v)
		return;
	buf_reset(&c->scratch);
	if (prefix)
		buf_add_text(&c->scratch, prefix);
	put_tree(c, &c->scratch, key, v, 0);
}

void cells_put_members(struct cells *c, const char *prefix, const struct json_value *object)
{
	for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->count; i++)
		cells_put_json(c, prefix, object->key[i], &object->item[i]);
}
