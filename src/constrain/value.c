/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h. */
#include "constrain/value.h"

#include <assert.h>

#include "base/map.h"
#include "base/mem.h"
#include "constrain/decimal.h"

struct json_value *value_member(const struct json_value *v, struct str key)
{
	if (v->kind != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < v->count; i++)
		if (str_eq(v->key[i], key))
			return &v->item[i];
	return NULL;
}

static bool items_equal(const struct json_value *a, const struct json_value *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct json_value *other = &b->item[i];

		if (a->kind == JSON_OBJECT && !str_eq(a->key[i], b->key[i]))
			other = value_member(b, a->key[i]);
		if (!other || !value_equal(&a->item[i], other))
			return false;
	}
	return true;
}

bool value_equal(const struct json_value *a, const struct json_value *b)
{
	if (value_is_number(a) && value_is_number(b))
		return decimal_compare(decimal_of(a->raw), decimal_of(b->raw)) == 0;
	if (a->kind != b->kind)
		return false;
	if (a->kind == JSON_STRING)
		return str_eq(a->text, b->text);
	if (a->kind == JSON_ARRAY || a->kind == JSON_OBJECT)
		return items_equal(a, b);
	return true;
}

uint64_t value_hash(const struct json_value *v)
{
	uint64_t h = (uint64_t)v->kind + 1;

	if (value_is_number(v))
		return decimal_hash(decimal_of(v->raw));
	if (v->kind == JSON_STRING)
		return map_hash(v->text);
	if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT)
		return h;
	for (size_t i = 0; i < v->count; i++) {
		uint64_t item = value_hash(&v->item[i]);

		if (v->kind == JSON_OBJECT)
			h += (map_hash(v->key[i]) | 1) * (item + 0x9e3779b97f4a7c15u);
		else
			h = (h ^ item) * 0x100000001b3u;
	}
	return h;
}

struct hashed {
	uint64_t hash;
	const struct json_value *v;
};

static int by_hash(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;

	return (x->hash > y->hash) - (x->hash < y->hash);
}

bool value_has_repeats(const struct json_value *array)
{
	struct hashed *item;
	bool is_found = false;

	assert(array->kind == JSON_ARRAY);
	item = mem_array(array->count, sizeof *item);
	for (size_t i = 0; i < array->count; i++)
		item[i] = (struct hashed){ value_hash(&array->item[i]), &array->item[i] };
	qsort(item, array->count, sizeof *item, by_hash);
	for (size_t i = 0; i < array->count && !is_found; i++)
		for (size_t k = i; k-- > 0 && item[k].hash == item[i].hash && !is_found;)
			is_found = value_equal(item[k].v, item[i].v);
	free(item);
	return is_found;
}
