/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotted.c - --extra-body.a.b 3: keys of a JSON option given one by one.
 *
 * A tree per option grows as the keys come; nested objects are merged, lists are
 * joined, anything else is replaced with a note. A value is JSON when it reads as
 * JSON, else an integer (Python's, or with a suffix: 1k = 1000, 1K = 1024), else text.
 */
#include "core/opt/row.h"

#include <ctype.h>
#include <math.h>

#include "core/json/write.h"

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
