/* SPDX-License-Identifier: Apache-2.0 */
/* config_tree.c - see config.h: trees laid over each other, and findings at their values. */
#include <inttypes.h>
#include <stdarg.h>

#include "base/limits.h"
#include "base/mem.h"
#include "experiment/config_parts.h"
#include "json/write.h"

#define SHOWN_MAX 80 /* bytes of a value repeated in a message */

/* ---- trees ---- */

/* A copy with room for more members or elements; what is inside is shared. */
static struct json_value *copy(const struct config *c, const struct json_value *v, size_t more)
{
	struct json_value *out = arena_alloc(c->arena, sizeof(*out));

	*out = *v;
	json_marks_copy(c->marks, v, out);
	out->item = arena_alloc(c->arena, (v->count + more + 1) * sizeof(*out->item));
	if (v->kind == JSON_OBJECT)
		out->key = arena_alloc(c->arena, (v->count + more + 1) * sizeof(*out->key));
	for (size_t i = 0; i < v->count; i++) {
		out->item[i] = v->item[i];
		json_marks_copy(c->marks, &v->item[i], &out->item[i]);
		if (v->kind == JSON_OBJECT)
			out->key[i] = v->key[i];
	}
	return out;
}

static void set_item(const struct config *c, struct json_value *at, const struct json_value *v)
{
	*at = *v;
	json_marks_copy(c->marks, v, at);
}

const struct json_value *config_merge(const struct config *c, const struct json_value *base,
				      const struct json_value *over)
{
	struct map places = { 0 };
	struct json_value *out;

	if (!base || base->kind != JSON_OBJECT || over->kind != JSON_OBJECT)
		return over;
	out = copy(c, base, over->count);
	for (size_t i = 0; i < base->count; i++)
		map_put(&places, base->key[i], i);
	for (size_t i = 0; i < over->count; i++) {
		uint64_t at = out->count;

		if (map_get(&places, over->key[i], &at)) {
			set_item(c, &out->item[at],
				 config_merge(c, &out->item[at], &over->item[i]));
			continue;
		}
		out->key[at] = over->key[i];
		set_item(c, &out->item[at], &over->item[i]);
		out->count++;
	}
	map_release(&places);
	return out;
}

const struct json_value *config_without(const struct config *c, const struct json_value *tree,
					const char *key)
{
	struct json_value *out;
	size_t n = 0;

	if (!json_get(tree, key))
		return tree;
	out = copy(c, tree, 0);
	for (size_t i = 0; i < tree->count; i++) {
		if (str_is(tree->key[i], key))
			continue;
		out->key[n] = tree->key[i];
		set_item(c, &out->item[n++], &tree->item[i]);
	}
	out->count = n;
	return out;
}

/* The member of that name, or where a new one goes. */
static size_t member_place(const struct json_value *object, struct str key)
{
	size_t i = 0;

	while (i < object->count && !str_eq(object->key[i], key))
		i++;
	return i;
}

static int place_in(const struct json_value *tree, struct str key, const char *path, size_t *at,
		    struct err *e)
{
	int64_t place;

	if (tree->kind == JSON_OBJECT) {
		*at = member_place(tree, key);
		return 0;
	}
	if (tree->kind != JSON_ARRAY)
		return err_set(e, ERR_USAGE, "%s: what '%.*s' is looked for in is no object", path,
			       (int)key.n, key.p);
	if (!str_to_i64(key, &place) || place < 0 || (uint64_t)place > tree->count)
		return err_set(e, ERR_USAGE, "%s: expected a place in the list, from 0 to %zu, got "
			       "'%.*s'", path, tree->count, (int)key.n, key.p);
	*at = (size_t)place;
	return 0;
}

static const struct json_value *put(const struct config *c, const struct json_value *tree,
				    struct str rest, const char *path,
				    const struct json_value *value, struct err *e)
{
	static const struct json_value empty = { .kind = JSON_OBJECT };
	const struct json_value *inner;
	struct json_value *out;
	struct str whole = rest, key;
	size_t at = 0;

	if (!tree || tree->kind == JSON_NULL)
		tree = &empty;
	/* A key that was written with its dots stands for itself. */
	if (tree->kind == JSON_OBJECT && member_place(tree, whole) < tree->count)
		rest = (struct str){ 0 }, key = whole;
	else
		key = str_cut(&rest, '.');
	if (!key.n) {
		err_set(e, ERR_USAGE, "%s: a key is empty", path);
		return NULL;
	}
	if (place_in(tree, key, path, &at, e) < 0)
		return NULL;
	inner = rest.n ? put(c, at < tree->count ? &tree->item[at] : NULL, rest, path, value, e) :
		value;
	if (!inner)
		return NULL;
	out = copy(c, tree, 1);
	set_item(c, &out->item[at], inner);
	if (at == out->count) {
		if (out->kind == JSON_OBJECT)
			out->key[at] = arena_str(c->arena, key);
		out->count++;
	}
	return out;
}

const struct json_value *config_put(const struct config *c, const struct json_value *tree,
				    const char *path, const struct json_value *value,
				    struct err *e)
{
	return put(c, tree, str_of(path), path, value, e);
}

/* ---- values as texts ---- */

const char *config_json(const struct json_value *v, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	const char *text;

	w.is_raw_utf8 = w.is_python = true; /* options read it again */
	json_put_value(&w, v);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

const char *config_scalar(const struct json_value *v, struct arena *a)
{
	switch (v->kind) {
	case JSON_NULL:
		return "";
	case JSON_TRUE:
	case JSON_FALSE:
		return v->raw.n ? arena_text(a, v->raw) : v->kind == JSON_TRUE ? "true" : "false";
	case JSON_STRING:
		return v->text.p;
	case JSON_INT:
		return v->raw.n ? arena_text(a, v->raw) : arena_printf(a, "%" PRId64, v->integer);
	case JSON_REAL:
		return v->raw.n ? arena_text(a, v->raw) : config_json(v, a);
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return NULL;
}

const char *config_got(const struct json_value *v, struct arena *a)
{
	const char *text;

	if (v->kind == JSON_ARRAY)
		return "a list";
	if (v->kind == JSON_OBJECT)
		return "an object";
	if (v->kind == JSON_NULL)
		return "nothing";
	text = config_scalar(v, a);
	if (v->kind == JSON_STRING)
		return arena_printf(a, "the text '%.*s'", SHOWN_MAX, text);
	return arena_printf(a, "%.*s", SHOWN_MAX, text);
}

struct json_value *config_tree_of(struct str json, struct arena *a)
{
	struct json_value *v = NULL;

	if (json_parse(a, json, &v, NULL) < 0)
		v = arena_alloc(a, sizeof(*v));
	return v;
}

void config_member(struct json_value *object, const char *key, struct json_value v,
		   struct arena *a)
{
	size_t at = member_place(object, str_of(key));

	/* Room doubles, so powers of two are full. */
	if (at == object->count && (at & (at - 1)) == 0) {
		size_t room = at ? 2 * at : 1;
		struct json_value *item = arena_alloc(a, room * sizeof(*item));
		struct str *keys = arena_alloc(a, room * sizeof(*keys));

		for (size_t i = 0; i < at; i++) {
			item[i] = object->item[i];
			keys[i] = object->key[i];
		}
		object->item = item;
		object->key = keys;
	}
	if (at == object->count) {
		object->key[at] = arena_str(a, str_of(key));
		object->count++;
	}
	object->item[at] = v;
}

const struct json_value *config_get(const struct json_value *object, const char *key)
{
	const struct json_value *v = json_get(object, key);

	return v && v->kind != JSON_NULL ? v : NULL;
}

/* ---- findings ---- */

void config_findings_release(struct config_findings *f)
{
	buf_release(&f->errors);
	buf_release(&f->notes);
	*f = (struct config_findings){ 0 };
}

static void add_place(const struct config *c, const struct json_value *v, bool is_key,
		      struct buf *out)
{
	struct json_mark m = json_marks_get(c->marks, v);

	if (!m.file) {
		buf_add_text(out, c->path);
	} else if (is_key && m.key_line) {
		buf_printf(out, "%s:%u:%u", m.file, m.key_line, m.key_column);
	} else if (m.line) {
		buf_printf(out, "%s:%u:%u", m.file, m.line, m.column);
	} else {
		buf_add_text(out, m.file);
	}
	buf_add_text(out, ": ");
}

static void add(const struct config *c, struct buf *out, const struct json_value *v, bool is_key,
		const char *path, const char *fmt, va_list ap)
{
	const char *file = json_marks_get(c->marks, v).file;
	char text[sizeof(((struct err *)0)->text)];

	add_place(c, v, is_key, out);
	if (c->bounds && file && file != c->path) {
		buf_printf(out, "%s\n", config_bounds_fault(c, ""));
		return;
	}
	vsnprintf(text, sizeof(text), fmt, ap);
	if (path && *path)
		buf_printf(out, "%s: ", path);
	buf_printf(out, "%s\n", text);
}

int config_complain(const struct config *c, struct config_findings *f,
		    const struct json_value *v, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_errors > EXPERIMENT_FINDINGS_MAX)
		return -1;
	va_start(ap, fmt);
	add(c, &f->errors, v, false, path, fmt, ap);
	va_end(ap);
	return -1;
}

int config_complain_key(const struct config *c, struct config_findings *f,
			const struct json_value *v, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_errors > EXPERIMENT_FINDINGS_MAX)
		return -1;
	va_start(ap, fmt);
	add(c, &f->errors, v, true, path, fmt, ap);
	va_end(ap);
	return -1;
}

void config_note(const struct config *c, struct config_findings *f, const struct json_value *v,
		 const char *path, const char *fmt, ...)
{
	va_list ap;

	if (++f->n_notes > EXPERIMENT_FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	add(c, &f->notes, v, false, path, fmt, ap);
	va_end(ap);
}
