/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_values.c - see sweep_values.h. */
#include "report/sweep_values.h"

#include "base/mem.h"

/* 0 a number, 1 a text or a container, 2 nothing. */
static int rank(const struct json_value *v, double *number)
{
	if (!v || v->kind == JSON_NULL)
		return 2;
	return !frame_number(v, number);
}

static int compare_one(const struct json_value *a, const struct json_value *b)
{
	double x = 0, y = 0;
	int i = rank(a, &x), j = rank(b, &y), order = i - j;
	struct buf s = { 0 }, t = { 0 };

	if (order || i == 2)
		return order;
	if (i == 0 && x == x && y == y)
		return (x > y) - (x < y);
	frame_text(&s, a, FRAME_OBJECT);
	frame_text(&t, b, FRAME_OBJECT);
	order = strcmp(s.data ? s.data : "", t.data ? t.data : "");
	buf_release(&s);
	buf_release(&t);
	return order;
}

static int compare(const struct frame_keys *keys, const struct json_value *a,
		   const struct json_value *b)
{
	int order = 0;

	for (size_t k = 0; order == 0 && k < keys->n; k++)
		order = compare_one(frame_value(a, keys->name[k]), frame_value(b, keys->name[k]));
	return order;
}

/* The first place whose record is not below; keys compare by the variables of the set. */
static size_t lower_bound(const struct sweep_values *v, const struct json_value *record)
{
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&v->keys, v->record[middle], record) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct str text_of(const struct json_value *record, const struct frame_keys *keys,
			  bool is_plain, struct arena *a)
{
	struct buf text = { 0 };
	struct str kept;

	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);

		if (k)
			buf_add_char(&text, '\n');
		if (!is_plain) {
			buf_add_str(&text, keys->name[k]);
			buf_add_char(&text, '=');
		}
		if (v)
			frame_text(&text, v, FRAME_OBJECT);
		else
			buf_add_text(&text, "None");
	}
	kept = arena_str(a, buf_str(&text));
	buf_release(&text);
	return kept;
}

static struct sweep_values make(const struct frame *f, const struct frame_keys *keys,
				bool is_plain, struct arena *a)
{
	struct sweep_values v = { .keys = *keys };

	v.record = arena_alloc(a, (f->n + 1) * sizeof(*v.record));
	for (size_t i = 0; i < f->n; i++) {
		size_t at = lower_bound(&v, f->row[i]);

		if (at < v.n && compare(keys, v.record[at], f->row[i]) == 0)
			continue;
		memmove(&v.record[at + 1], &v.record[at], (v.n - at) * sizeof(*v.record));
		v.record[at] = f->row[i];
		v.n++;
	}
	v.text = arena_alloc(a, (v.n + 1) * sizeof(*v.text));
	for (size_t i = 0; i < v.n; i++)
		v.text[i] = text_of(v.record[i], keys, is_plain, a);
	return v;
}

struct sweep_values sweep_values(const struct frame *f, const struct frame_keys *keys,
				 struct arena *a)
{
	return make(f, keys, false, a);
}

struct sweep_values sweep_values_plain(const struct frame *f, const struct frame_keys *keys,
				       struct arena *a)
{
	return make(f, keys, true, a);
}

size_t sweep_values_find(const struct sweep_values *v, const struct json_value *record)
{
	size_t at = lower_bound(v, record);

	return at < v->n ? at : v->n - 1;
}
