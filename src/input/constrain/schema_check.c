/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_check.c - decimals, values, and whether a value satisfies a schema (schema.h).
 *
 * The parts of an object or array that some keyword has evaluated are a row of marks, one per item.
 * It is kept only where a schema asks for unevaluated parts: each schema that applies to the same
 * value gets a row of its own, which is added to its parent's when it holds.
 */
#include "input/constrain/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"

/* ---- decimals ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int64_t clamp(int64_t power)
{
	if (power > DECIMAL_POWER_MAX)
		return DECIMAL_POWER_MAX;
	return power < -DECIMAL_POWER_MAX ? -DECIMAL_POWER_MAX : power;
}

/* The exponent after e or E, clamped. */
static int64_t exponent_of(struct str text)
{
	bool is_negative = text.n > 0 && *text.p == '-';
	int64_t v = 0;

	for (size_t i = 0; i < text.n; i++)
		if (is_digit(text.p[i]))
			v = clamp(v * 10 + (text.p[i] - '0'));
	return is_negative ? -v : v;
}

struct decimal decimal_of(struct str number)
{
	struct decimal d = { 0 };
	struct str rest = number;
	int64_t before_point = 0; /* digits from the first that counts; negative: zeros after it */
	bool is_after_point = false;
	const char *last = NULL;

	assert(number.n > 0 && is_digit(number.p[number.n - 1]));
	if (*rest.p == '-') {
		d.is_negative = true;
		rest.p++;
		rest.n--;
	}
	for (; rest.n && (*rest.p | 0x20) != 'e'; rest.p++, rest.n--) {
		if (*rest.p == '.') {
			is_after_point = true;
			continue;
		}
		if (!d.digits.p && *rest.p == '0') {
			before_point -= is_after_point;
			continue;
		}
		if (!d.digits.p)
			d.digits.p = rest.p;
		before_point += !is_after_point;
		if (*rest.p != '0')
			last = rest.p;
	}
	if (!last)
		return (struct decimal){ 0 };
	d.digits.n = (size_t)(last - d.digits.p) + 1;
	for (size_t i = 0; i < d.digits.n; i++)
		d.count += is_digit(d.digits.p[i]);
	if (rest.n)
		before_point += exponent_of((struct str){ rest.p + 1, rest.n - 1 });
	d.power = clamp(before_point);
	return d;
}

/* The digits one after the other, without the point. */
static int next_digit(struct str *digits)
{
	while (digits->n) {
		char c = *digits->p++;

		digits->n--;
		if (c != '.')
			return c - '0';
	}
	return 0;
}

static int compare_sizes(struct decimal a, struct decimal b)
{
	uint32_t n = a.count > b.count ? a.count : b.count;

	if (a.power != b.power)
		return a.power < b.power ? -1 : 1;
	while (n--) {
		int x = next_digit(&a.digits), y = next_digit(&b.digits);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

int decimal_compare(struct decimal a, struct decimal b)
{
	int sign_a = a.count == 0 ? 0 : a.is_negative ? -1 : 1;
	int sign_b = b.count == 0 ? 0 : b.is_negative ? -1 : 1;

	if (sign_a != sign_b)
		return sign_a < sign_b ? -1 : 1;
	return sign_a == 0 ? 0 : sign_a * compare_sizes(a, b);
}

bool decimal_is_integer(struct decimal d)
{
	return d.count == 0 || d.power >= (int64_t)d.count;
}

uint64_t decimal_digits(struct decimal d)
{
	uint64_t v = 0;

	assert(d.count <= DECIMAL_DIVISOR_DIGITS_MAX);
	for (uint32_t i = 0; i < d.count; i++)
		v = v * 10 + (uint64_t)next_digit(&d.digits);
	return v;
}

static uint64_t times_mod(uint64_t a, uint64_t b, uint64_t m)
{
	return (uint64_t)((unsigned __int128)a * b % m);
}

static uint64_t ten_to_mod(int64_t power, uint64_t m)
{
	uint64_t base = 10 % m, v = 1 % m;

	for (; power > 0; power >>= 1) {
		if (power & 1)
			v = times_mod(v, base, m);
		base = times_mod(base, base, m);
	}
	return v;
}

/*
 * With m and n the digits of both as whole numbers, d / divisor is m / n times a power of ten. A
 * negative power would have to come out of m, whose last digit is not 0. The divisor is above 0 and
 * has at most DECIMAL_DIVISOR_DIGITS_MAX digits.
 */
static bool decimal_is_multiple(struct decimal d, struct decimal divisor)
{
	int64_t power = (d.power - d.count) - (divisor.power - divisor.count);
	uint64_t n = decimal_digits(divisor), rest = 0;

	assert(n > 0);
	if (d.count == 0)
		return true;
	if (power < 0)
		return false;
	for (uint32_t i = 0; i < d.count; i++)
		rest = (times_mod(rest, 10, n) + (uint64_t)next_digit(&d.digits)) % n;
	return times_mod(rest, ten_to_mod(power, n), n) == 0;
}

/* Equal for equal values. */
static uint64_t decimal_hash(struct decimal d)
{
	uint64_t h = 0x9e3779b97f4a7c15u + (uint64_t)d.power * 31 + (d.count ? d.is_negative : 0);

	for (uint32_t i = 0; i < d.count; i++)
		h = (h ^ (uint64_t)next_digit(&d.digits)) * 0x100000001b3u;
	return h;
}

/* ---- values ---- */

struct json_value *value_member(const struct json_value *v, struct str key)
{
	if (v->kind != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < v->count; i++)
		if (str_eq(v->key[i], key))
			return &v->item[i];
	return NULL;
}

static bool value_equal(const struct json_value *a, const struct json_value *b);

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

static bool value_equal(const struct json_value *a, const struct json_value *b)
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

/* Equal for equal values. */
static uint64_t value_hash(const struct json_value *v)
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

int64_t value_length(struct str s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* ---- schemas ---- */

/* A place in the value. */
struct value_place {
	const struct json_value *v;
	const struct value_place *up;
	struct str key; /* p NULL: an index */
	size_t index;
};

/* Resources that were entered, the innermost first. */
struct scope {
	const struct schema_resource *resource;
	const struct scope *outer;
};

struct judge {
	const struct schema *schema;
	char *why;
	size_t why_bytes;
	unsigned quiet;      /* above 0: a failure may still be made good */
	unsigned depth;
	size_t steps;
	bool has_given_up;
};

static bool check(struct judge *j, const struct schema_node *n, const struct value_place *at,
		  const struct scope *outer, bool *marks);

static bool give_up(struct judge *j, const char *why)
{
	if (!j->has_given_up)
		snprintf(j->why, j->why_bytes, "%s", why);
	j->has_given_up = true;
	return false;
}

static void add_pointer(struct buf *out, const struct value_place *at)
{
	if (!at->up)
		return;
	add_pointer(out, at->up);
	buf_add_char(out, '/');
	if (!at->key.p)
		buf_printf(out, "%zu", at->index);
	for (size_t i = 0; i < at->key.n; i++) {
		if (at->key.p[i] == '~' || at->key.p[i] == '/')
			buf_add_text(out, at->key.p[i] == '~' ? "~0" : "~1");
		else
			buf_add_char(out, at->key.p[i]);
	}
}

/* Notes the first decisive failure, which is the innermost one; returns false. */
static bool fail(struct judge *j, const struct value_place *at, const char *keyword)
{
	struct buf pointer = { 0 };
	size_t room = j->why_bytes - strlen(keyword) - 2;

	if (j->quiet || *j->why)
		return false;
	add_pointer(&pointer, at);
	if (pointer.len == 0)
		buf_add_text(&pointer, "(root)");
	if (pointer.len > room) { /* the front of a long pointer, whole characters only */
		while (room > 0 && ((unsigned char)pointer.data[room] & 0xc0) == 0x80)
			room--;
		pointer.data[room] = 0;
	}
	snprintf(j->why, j->why_bytes, "%s %s", pointer.data, keyword);
	buf_release(&pointer);
	return false;
}

/*
 * Applies a schema to a part of the value. Only `false` itself is reported as the keyword that
 * contains it.
 */
static bool check_part(struct judge *j, const struct schema_node *n, const struct value_place *at,
		       const struct scope *scope, const char *keyword)
{
	if (n->is_boolean && !n->allows)
		return fail(j, at, keyword);
	return check(j, n, at, scope, NULL);
}

static bool check_item(struct judge *j, const struct schema_node *n,
		       const struct value_place *array, size_t i, const struct scope *scope,
		       const char *keyword)
{
	struct value_place item = { .v = &array->v->item[i], .up = array, .index = i };

	return check_part(j, n, &item, scope, keyword);
}

static bool check_member(struct judge *j, const struct schema_node *n,
			 const struct value_place *object, size_t i, const struct scope *scope,
			 const char *keyword)
{
	struct value_place member = {
		.v = &object->v->item[i], .up = object, .key = object->v->key[i],
	};

	return check_part(j, n, &member, scope, keyword);
}

/* Applies another schema to the same value; its marks are added to those of the parent schema. */
static bool check_same(struct judge *j, const struct schema_node *n, const struct value_place *at,
		       const struct scope *scope, bool *marks)
{
	bool *own = marks ? mem_array(at->v->count, sizeof *own) : NULL;
	bool holds = check(j, n, at, scope, own);

	for (size_t i = 0; own && holds && i < at->v->count; i++)
		marks[i] |= own[i];
	free(own);
	return holds;
}

static bool try_same(struct judge *j, const struct schema_node *n, const struct value_place *at,
		     const struct scope *scope, bool *marks)
{
	bool holds;

	j->quiet++;
	holds = check_same(j, n, at, scope, marks);
	j->quiet--;
	return holds;
}

static bool has_type(const struct json_value *v, unsigned types)
{
	if (types & 1u << v->kind)
		return true;
	return (types & TYPE_INTEGER) && value_is_number(v) &&
		decimal_is_integer(decimal_of(v->raw));
}

static bool is_listed(const struct json_value *list, const struct json_value *v)
{
	for (size_t i = 0; i < list->count; i++)
		if (value_equal(&list->item[i], v))
			return true;
	return false;
}

static bool check_number(struct judge *j, const struct schema_node *n, const struct value_place *at)
{
	struct decimal d = decimal_of(at->v->raw);

	if (n->multiple_of && !decimal_is_multiple(d, *n->multiple_of))
		return fail(j, at, "multipleOf");
	if (n->maximum && decimal_compare(d, *n->maximum) > 0)
		return fail(j, at, "maximum");
	if (n->below && decimal_compare(d, *n->below) >= 0)
		return fail(j, at, "exclusiveMaximum");
	if (n->minimum && decimal_compare(d, *n->minimum) < 0)
		return fail(j, at, "minimum");
	if (n->above && decimal_compare(d, *n->above) <= 0)
		return fail(j, at, "exclusiveMinimum");
	return true;
}

static bool matches(struct judge *j, const struct pattern *p, struct str text)
{
	enum pattern_answer answer = pattern_matches(p, text);

	if (answer == PATTERN_GAVE_UP)
		return give_up(j, "a pattern needs more than PATTERN_STEPS_MAX steps");
	return answer == PATTERN_YES;
}

static bool check_string(struct judge *j, const struct schema_node *n, const struct value_place *at)
{
	int64_t length = n->min_length >= 0 || n->max_length >= 0 ? value_length(at->v->text) : 0;

	if (n->max_length >= 0 && length > n->max_length)
		return fail(j, at, "maxLength");
	if (length < n->min_length)
		return fail(j, at, "minLength");
	if (n->pattern && !matches(j, n->pattern, at->v->text))
		return fail(j, at, "pattern");
	if (n->format && j->schema->is_format_asserted && !format_holds(n->format, at->v->text))
		return fail(j, at, "format");
	return true;
}

static bool check_contains(struct judge *j, const struct schema_node *n,
			   const struct value_place *at, const struct scope *scope, bool *marks)
{
	int64_t min = n->min_contains >= 0 ? n->min_contains : 1, found = 0;

	j->quiet++;
	for (size_t i = 0; i < at->v->count; i++) {
		if (!check_item(j, n->contains, at, i, scope, "contains"))
			continue;
		found++;
		if (marks)
			marks[i] = true;
	}
	j->quiet--;
	if (found < min)
		return fail(j, at, n->min_contains >= 0 ? "minContains" : "contains");
	if (n->max_contains >= 0 && found > n->max_contains)
		return fail(j, at, "maxContains");
	return true;
}

static bool check_array(struct judge *j, const struct schema_node *n, const struct value_place *at,
			const struct scope *scope, bool *marks)
{
	bool is_old = n->resource->draft == DRAFT_7;
	const char *front = is_old ? "items" : "prefixItems";
	const char *rest = is_old && n->prefix_items.count ? "additionalItems" : "items";
	size_t count = at->v->count, first = n->prefix_items.count;

	if (n->max_items >= 0 && (int64_t)count > n->max_items)
		return fail(j, at, "maxItems");
	if ((int64_t)count < n->min_items)
		return fail(j, at, "minItems");
	for (size_t i = 0; i < count; i++) {
		const struct schema_node *item = i < first ? n->prefix_items.item[i] : n->items;

		if (!item)
			continue;
		if (!check_item(j, item, at, i, scope, i < first ? front : rest))
			return false;
		if (marks)
			marks[i] = true;
	}
	if (n->contains && !check_contains(j, n, at, scope, marks))
		return false;
	if (n->has_unique_items && value_has_repeats(at->v))
		return fail(j, at, "uniqueItems");
	return true;
}

/* One member by properties, patternProperties and additionalProperties. */
static bool check_property(struct judge *j, const struct schema_node *n,
			   const struct value_place *at, size_t i, const struct scope *scope,
			   bool *marks)
{
	struct str key = at->v->key[i];
	bool is_known = false;
	uint64_t node;

	if (map_get(&n->properties, key, &node)) {
		is_known = true;
		if (!check_member(j, (const struct schema_node *)(uintptr_t)node, at, i, scope,
				  "properties"))
			return false;
	}
	for (size_t k = 0; k < n->pattern_count; k++) {
		if (!matches(j, n->pattern_property[k].pattern, key))
			continue;
		is_known = true;
		if (!check_member(j, n->pattern_property[k].node, at, i, scope,
				  "patternProperties"))
			return false;
	}
	if (!is_known && n->additional) {
		is_known = true;
		if (!check_member(j, n->additional, at, i, scope, "additionalProperties"))
			return false;
	}
	if (marks && is_known)
		marks[i] = true;
	return !j->has_given_up;
}

static bool check_name(struct judge *j, const struct schema_node *n, const struct value_place *at,
		       size_t i, const struct scope *scope)
{
	struct json_value name = { .kind = JSON_STRING, .text = at->v->key[i] };
	struct value_place member = { .v = &name, .up = at, .key = at->v->key[i] };
	bool holds;

	j->quiet++;
	holds = check(j, n->property_names, &member, scope, NULL);
	j->quiet--;
	return holds || fail(j, &member, "propertyNames");
}

static bool has_all(const struct json_value *v, const struct str *name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!value_member(v, name[i]))
			return false;
	return true;
}

static bool check_dependents(struct judge *j, const struct schema_node *n,
			     const struct value_place *at, const struct scope *scope, bool *marks)
{
	uint64_t node;

	for (size_t i = 0; i < n->needs_count; i++)
		if (value_member(at->v, n->needs[i].key) &&
		    !has_all(at->v, n->needs[i].name, n->needs[i].count))
			return fail(j, at, "dependentRequired");
	for (size_t i = 0; n->dependents.count && i < at->v->count; i++)
		if (map_get(&n->dependents, at->v->key[i], &node) &&
		    !check_same(j, (const struct schema_node *)(uintptr_t)node, at, scope, marks))
			return fail(j, at, "dependentSchemas");
	return true;
}

static bool check_object(struct judge *j, const struct schema_node *n, const struct value_place *at,
			 const struct scope *scope, bool *marks)
{
	const struct json_value *v = at->v;
	bool has_keys = n->properties.count || n->pattern_count || n->additional;

	if (!has_all(v, n->required, n->required_count))
		return fail(j, at, "required");
	if (n->max_properties >= 0 && (int64_t)v->count > n->max_properties)
		return fail(j, at, "maxProperties");
	if ((int64_t)v->count < n->min_properties)
		return fail(j, at, "minProperties");
	for (size_t i = 0; i < v->count; i++) {
		if (has_keys && !check_property(j, n, at, i, scope, marks))
			return false;
		if (n->property_names && !check_name(j, n, at, i, scope))
			return false;
	}
	return check_dependents(j, n, at, scope, marks);
}

static bool check_one_of(struct judge *j, const struct schema_node *n, const struct value_place *at,
			 const struct scope *scope, bool *marks)
{
	unsigned held = 0;

	for (size_t i = 0; i < n->one_of.count && held < 2; i++)
		held += try_same(j, n->one_of.item[i], at, scope, marks);
	return held == 1 || fail(j, at, "oneOf");
}

static bool check_any_of(struct judge *j, const struct schema_node *n, const struct value_place *at,
			 const struct scope *scope, bool *marks)
{
	bool holds = false;

	/* With marks every branch that holds adds its own. */
	for (size_t i = 0; i < n->any_of.count && (!holds || marks); i++)
		holds |= try_same(j, n->any_of.item[i], at, scope, marks);
	return holds || fail(j, at, "anyOf");
}

static bool check_combined(struct judge *j, const struct schema_node *n,
			   const struct value_place *at, const struct scope *scope, bool *marks)
{
	const struct schema_node *next;

	for (size_t i = 0; i < n->all_of.count; i++)
		if (!check_same(j, n->all_of.item[i], at, scope, marks))
			return fail(j, at, "allOf");
	if (n->any_of.count && !check_any_of(j, n, at, scope, marks))
		return false;
	if (n->one_of.count && !check_one_of(j, n, at, scope, marks))
		return false;
	if (n->not_this && (try_same(j, n->not_this, at, scope, NULL) || j->has_given_up))
		return fail(j, at, "not");
	if (!n->if_this)
		return true;
	next = try_same(j, n->if_this, at, scope, marks) ? n->then_that : n->else_that;
	return !next || check_same(j, next, at, scope, marks) ||
		fail(j, at, next == n->then_that ? "then" : "else");
}

/* The outermost resource that has the name decides. */
static const struct schema_node *dynamic_target(const struct schema_node *n,
						const struct scope *scope)
{
	const struct schema_node *target = n->dynamic_ref;
	uint64_t node;

	for (; n->dynamic_name.n && scope; scope = scope->outer)
		if (map_get(&scope->resource->dynamic, n->dynamic_name, &node))
			target = (const struct schema_node *)(uintptr_t)node;
	return target;
}

static bool check_unevaluated(struct judge *j, const struct schema_node *n,
			      const struct value_place *at, const struct scope *scope, bool *marks)
{
	bool is_array = at->v->kind == JSON_ARRAY;
	const struct schema_node *part = is_array ? n->unevaluated_items :
		n->unevaluated_properties;

	for (size_t i = 0; part && i < at->v->count; i++) {
		if (marks[i])
			continue;
		if (!(is_array ? check_item(j, part, at, i, scope, "unevaluatedItems") :
		      check_member(j, part, at, i, scope, "unevaluatedProperties")))
			return false;
		marks[i] = true;
	}
	return true;
}

static bool check_alone(struct judge *j, const struct schema_node *n, const struct value_place *at,
			const struct scope *scope, bool *marks)
{
	const struct json_value *v = at->v;

	if (n->types && !has_type(v, n->types))
		return fail(j, at, "type");
	if (n->enums && !is_listed(n->enums, v))
		return fail(j, at, "enum");
	if (n->constant && !value_equal(n->constant, v))
		return fail(j, at, "const");
	switch (v->kind) {
	case JSON_INT:
	case JSON_REAL:
		return check_number(j, n, at);
	case JSON_STRING:
		return check_string(j, n, at);
	case JSON_ARRAY:
		return check_array(j, n, at, scope, marks);
	case JSON_OBJECT:
		return check_object(j, n, at, scope, marks);
	case JSON_NULL:
	case JSON_FALSE:
	case JSON_TRUE:
		return true;
	}
	return true;
}

static bool check_node(struct judge *j, const struct schema_node *n, const struct value_place *at,
		       const struct scope *scope, bool *marks)
{
	if (n->metaschema)
		return schema_is_one(at->v, n->metaschema) || fail(j, at, "$ref");
	if (n->ref && !check_same(j, n->ref, at, scope, marks))
		return fail(j, at, "$ref");
	if (n->dynamic_ref && !check_same(j, dynamic_target(n, scope), at, scope, marks))
		return fail(j, at, "$dynamicRef");
	return check_alone(j, n, at, scope, marks) && check_combined(j, n, at, scope, marks) &&
		(!marks || check_unevaluated(j, n, at, scope, marks));
}

/* marks: NULL, or a cleared row for this schema alone. */
static bool check(struct judge *j, const struct schema_node *n, const struct value_place *at,
		  const struct scope *outer, bool *marks)
{
	struct scope scope = { n->resource, outer };
	bool has_parts = at->v->kind == JSON_ARRAY || at->v->kind == JSON_OBJECT;
	bool is_asked = has_parts && (n->unevaluated_items || n->unevaluated_properties);
	bool *own = NULL, holds;

	if (n->is_boolean)
		return n->allows || fail(j, at, "false");
	if (j->has_given_up)
		return false;
	if (++j->steps > SCHEMA_STEPS_MAX)
		return give_up(j, "the schema needs more than SCHEMA_STEPS_MAX steps");
	if (j->depth == SCHEMA_DEPTH_MAX)
		return give_up(j, "references nest deeper than SCHEMA_DEPTH_MAX");
	if (!has_parts)
		marks = NULL;
	else if (is_asked && !marks)
		marks = own = mem_array(at->v->count, sizeof *own);
	j->depth++;
	holds = check_node(j, n, at, outer && outer->resource == n->resource ? outer : &scope,
		marks);
	j->depth--;
	free(own);
	return holds && !j->has_given_up;
}

enum schema_answer schema_judge(const struct schema *s, const struct json_value *v, char *why,
				size_t why_bytes)
{
	struct judge j = { .schema = s, .why = why, .why_bytes = why_bytes };
	struct value_place root = { .v = v };
	bool holds;

	assert(why_bytes >= 64);
	*why = 0;
	holds = check(&j, s->root, &root, NULL, NULL);
	if (j.has_given_up)
		return SCHEMA_GAVE_UP;
	assert(holds || *why);
	return holds ? SCHEMA_KEPT : SCHEMA_BROKEN;
}

bool schema_node_holds(const struct schema *s, const struct schema_node *n,
		       const struct json_value *v)
{
	char why[64] = "";
	struct judge j = { .schema = s, .why = why, .why_bytes = sizeof why, .quiet = 1 };
	struct value_place root = { .v = v };

	return check(&j, n, &root, NULL, NULL);
}
