/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - see marks.h: the table, and JSON read with it (yaml.c reads YAML). */
#include "core/json/marks.h"

#include <assert.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/lex.h"

/* ---- the table ---- */

static size_t slot_of(const struct json_marks *m, const struct json_value *v)
{
	uint64_t at = (uint64_t)(uintptr_t)v * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	while (m->slot[at & (m->cap - 1)].of && m->slot[at & (m->cap - 1)].of != v)
		at++;
	return at & (m->cap - 1);
}

static void grow(struct json_marks *m)
{
	struct json_marks old = *m;

	m->cap = old.cap ? old.cap * 2 : 64;
	m->slot = arena_alloc(m->arena, m->cap * sizeof(*m->slot));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i].of)
			m->slot[slot_of(m, old.slot[i].of)] = old.slot[i];
}

void json_marks_put(struct json_marks *m, const struct json_value *v, struct json_mark mark)
{
	size_t at;

	assert(m->arena && v);
	if (m->count * 2 >= m->cap)
		grow(m);
	at = slot_of(m, v);
	m->count += m->slot[at].of == NULL;
	m->slot[at] = (struct json_marks_slot){ v, mark };
}

struct json_mark json_marks_get(const struct json_marks *m, const struct json_value *v)
{
	if (!m->cap || !v)
		return (struct json_mark){ 0 };
	return m->slot[slot_of(m, v)].mark;
}

void json_marks_copy(struct json_marks *m, const struct json_value *from,
		     const struct json_value *to)
{
	struct json_mark mark = json_marks_get(m, from);

	if (mark.file)
		json_marks_put(m, to, mark);
}

/* ---- JSON ---- */

/* Positions are requested in ascending order, so each line is counted once. */
struct marks_reading {
	struct arena *a;
	struct json_marks *marks;
	const char *file, *at, *line_start;
	unsigned line;
	struct buf scratch;
	struct err *e;
	size_t values;
};

static void place(struct marks_reading *r, const char *p, unsigned *line, unsigned *column)
{
	const char *newline;

	while ((newline = memchr(r->at, '\n', (size_t)(p - r->at))) != NULL) {
		r->line++;
		r->at = r->line_start = newline + 1;
	}
	r->at = p;
	*line = r->line;
	*column = (unsigned)(p - r->line_start) + 1;
}

static struct str unescaped(struct marks_reading *r, struct str raw)
{
	buf_reset(&r->scratch);
	json_unescape(&r->scratch, raw);
	return arena_str(r->a, buf_str(&r->scratch));
}

static int refuse_twice(struct marks_reading *r, const struct json_value *object, size_t first,
			const struct json_mark *mark)
{
	struct json_mark before = json_marks_get(r->marks, &object->item[first]);
	struct str key = object->key[first];

	return err_set(r->e, ERR_PARSE, "%u:%u: the key '%.*s' appears twice; it is also at %u:%u",
		       mark->key_line, mark->key_column, (int)(key.n < 80 ? key.n : 80), key.p,
		       before.key_line, before.key_column);
}

static int build(struct marks_reading *r, struct json_slice from, struct json_mark mark,
		 struct json_value *out);

static int build_container(struct marks_reading *r, struct json_slice from, struct json_value *out)
{
	struct json_iter it = json_iter(from), count = it;
	struct map seen = { 0 };
	struct json_slice v;
	struct str key;
	uint64_t first;
	size_t n = 0;
	int rc = 0;

	while (json_each(&count, NULL, &v) == 1)
		n++;
	out->item = arena_alloc(r->a, (n + 1) * sizeof(*out->item));
	if (it.is_object)
		out->key = arena_alloc(r->a, (n + 1) * sizeof(*out->key));
	for (size_t i = 0; rc == 0 && i < n && json_each(&it, &key, &v) == 1; i++) {
		struct json_mark mark = { .file = r->file };
		bool is_text = v.kind == JSON_STRING;

		if (it.is_object) {
			place(r, key.p - 1, &mark.key_line, &mark.key_column);
			out->key[i] = unescaped(r, key);
			if (map_get(&seen, out->key[i], &first))
				rc = refuse_twice(r, out, (size_t)first, &mark);
			map_put(&seen, out->key[i], i);
		}
		place(r, v.raw.p - is_text, &mark.line, &mark.column);
		out->count = i + 1;
		if (rc == 0)
			rc = build(r, v, mark, &out->item[i]);
	}
	map_release(&seen);
	return rc;
}

static int build(struct marks_reading *r, struct json_slice from, struct json_mark mark,
		 struct json_value *out)
{
	if (++r->values > YAML_VALUES_MAX)
		return err_set(r->e, ERR_LIMIT, "%u:%u: more than %d values (YAML_VALUES_MAX)",
			       mark.line, mark.column, YAML_VALUES_MAX);
	out->kind = from.kind;
	json_marks_put(r->marks, out, mark);
	switch (from.kind) {
	case JSON_STRING:
		out->text = unescaped(r, from.raw);
		return 0;
	case JSON_INT:
	case JSON_REAL:
		out->raw = arena_str(r->a, from.raw);
		if (from.kind == JSON_INT && str_to_i64(from.raw, &out->integer))
			return 0;
		out->kind = JSON_REAL;
		out->real = lex_f64(from.raw);
		return 0;
	case JSON_ARRAY:
	case JSON_OBJECT:
		return build_container(r, from, out);
	case JSON_NULL:
	case JSON_TRUE:
	case JSON_FALSE:
		break;
	}
	return 0;
}

int json_parse_marked(struct arena *a, struct str text, const char *file, struct json_marks *m,
		      struct json_value **out, struct err *e)
{
	struct marks_reading r = { .a = a, .marks = m, .file = file, .line = 1, .e = e };
	struct json_mark mark = { .file = file };
	struct lex l;
	struct json_slice root;
	const char *p;
	int rc;

	if (!text.p)
		text = STR("");
	r.at = r.line_start = text.p;
	l = (struct lex){ .end = text.p + text.n };
	p = lex_blank(&l, text.p);
	p = p == l.end ? lex_fail(&l, p, "expected a value, found the end of the text") :
		lex_value(&l, p, 0, &root);
	if (p && (p = lex_blank(&l, p)) < l.end)
		p = lex_fail(&l, p, "expected nothing after the value");
	if (!p) {
		place(&r, l.fail_at, &mark.line, &mark.column);
		err_set(e, ERR_PARSE, "%u:%u: ", mark.line, mark.column);
		return lex_add_why(&l, e);
	}
	place(&r, root.raw.p - (root.kind == JSON_STRING), &mark.line, &mark.column);
	*out = arena_alloc(a, sizeof(**out));
	rc = build(&r, root, mark, *out);
	buf_release(&r.scratch);
	return rc;
}
