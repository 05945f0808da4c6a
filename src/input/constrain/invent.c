/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invent.c - generates values that satisfy a JSON Schema (schema.h).
 *
 * All schemas that apply to one value are gathered first: those of $ref and allOf, and one branch
 * of each anyOf, oneOf and if, at random. Then a value is made that satisfies all of them.
 */
#include "input/constrain/schema.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "input/constrain/syntax.h"

struct invent_ask {
	const struct schema_node *node[64]; /* all apply to the same value */
	size_t count;
};

/* ---- texts and numbers ---- */

#define NUMBERS_USUAL 100   /* multiples that are drawn from where a bound is missing */
#define PATTERN_TRIES_MAX 8
#define TEXT_BYTES_USUAL 12 /* of a text where nothing says how long it is */

static const char *scalar_word(struct dice *d)
{
	static const char *const word[] = {
		"amber", "anchor", "birch", "bridge", "candle", "cedar", "cloud", "copper", "delta",
		"ember", "falcon", "fern", "forest", "garden", "granite", "harbor", "hazel", "island",
		"ivory", "lantern", "maple", "marble", "meadow", "mirror", "north", "ocean", "olive",
		"orchard", "pebble", "quartz", "raven", "river", "saffron", "silver", "spruce",
		"stone", "summit", "thunder", "valley", "willow", "winter", "zephyr",
	};

	return word[dice_below(d, sizeof word / sizeof *word)];
}

/* Appends words with blanks between them, exactly this many bytes. */
static void add_words(struct dice *d, size_t bytes, struct buf *out)
{
	size_t end = out->len + bytes;

	while (out->len < end) {
		buf_add_text(out, scalar_word(d));
		if (out->len + 2 < end)
			buf_add_char(out, ' ');
	}
	if (out->data) {
		if (end > 0 && out->len > end && out->data[end - 1] == ' ')
			out->data[end - 1] = 's';
		out->len = end;
		out->data[end] = 0;
	}
}

static bool scalar_pattern(struct dice *d, struct str pattern, size_t bytes, struct buf *out)
{
	struct arena a = { 0 };
	struct syntax *s = syntax_of_pattern(&a, pattern, PATTERN_ECMA, NULL);
	bool is_made = s && syntax_sentence(s, d, bytes, out, NULL) == 0;

	arena_release(&a);
	return is_made;
}

struct text_lengths { int64_t min, max; };

/* Tries shorter and shorter texts until one is short enough; words fill it up. */
static bool text_of_pattern(struct dice *d, struct str pattern, size_t bytes, struct text_lengths l,
			    struct buf *out)
{
	size_t from = out->len;

	if (l.max < (int64_t)bytes)
		bytes = (size_t)l.max;
	for (int i = 0; i < PATTERN_TRIES_MAX; i++, bytes /= 2) {
		int64_t length;

		if (!scalar_pattern(d, pattern, bytes, out))
			return false;
		length = value_length(buf_since(out, from));
		if (length < l.min)
			add_words(d, (size_t)(l.min - length), out);
		if (length <= l.max)
			return true;
		out->len = from;
	}
	return false;
}

/* Each appends; false: none was found. */
static bool scalar_text(struct dice *d, const struct invent_ask *a, size_t bytes, struct buf *out)
{
	int64_t min = 0, max = INT64_MAX, length;
	const struct schema_node *n, *patterned = NULL;
	const struct format *format = NULL;
	size_t seen = 0;

	for (size_t i = 0; i < a->count; i++) {
		n = a->node[i];
		min = n->min_length > min ? n->min_length : min;
		max = n->max_length >= 0 && n->max_length < max ? n->max_length : max;
		format = n->format ? n->format : format;
		if (n->pattern && dice_below(d, ++seen) == 0)
			patterned = n;
	}
	if (min > SENTENCE_BYTES_MAX)
		return false;
	if (patterned)
		return text_of_pattern(d, patterned->pattern_text, bytes ? bytes : TEXT_BYTES_USUAL,
			(struct text_lengths){ min, max }, out);
	if (format) {
		buf_add_text(out, format_example(format));
		return true;
	}
	length = bytes ? (int64_t)(bytes / 2 + dice_below(d, bytes / 2 + 1)) :
		3 + (int64_t)dice_below(d, TEXT_BYTES_USUAL);
	length = length < min ? min : length > max ? max : length;
	add_words(d, (size_t)(length < SENTENCE_BYTES_MAX ? length : SENTENCE_BYTES_MAX), out);
	return true;
}

/* ---- numbers ---- */

static double real_of(const struct decimal *d)
{
	struct buf text = { 0 };
	double v;

	if (d->count == 0)
		return 0;
	buf_printf(&text, "%s0.", d->is_negative ? "-" : "");
	for (size_t i = 0; i < d->digits.n; i++)
		if (d->digits.p[i] != '.')
			buf_add_char(&text, d->digits.p[i]);
	buf_printf(&text, "e%lld", (long long)d->power);
	v = str_strtod(text.data, NULL);
	buf_release(&text);
	return v;
}

/* v times ten to the power, as JSON. */
static void put_scaled(struct buf *out, int64_t v, int power)
{
	struct buf digits = { 0 };
	uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v;

	buf_printf(&digits, "%llu", (unsigned long long)size);
	for (int i = 0; i < power && size; i++)
		buf_add_char(&digits, '0');
	if (v < 0)
		buf_add_char(out, '-');
	if (power >= 0 || size == 0) {
		buf_add_str(out, buf_str(&digits));
	} else {
		size_t after = (size_t)-power;

		if (digits.len <= after) {
			buf_add_text(out, "0.");
			for (size_t i = digits.len; i < after; i++)
				buf_add_char(out, '0');
			buf_add_str(out, buf_str(&digits));
		} else {
			buf_add(out, digits.data, digits.len - after);
			buf_add_char(out, '.');
			buf_add(out, digits.data + digits.len - after, after);
		}
	}
	buf_release(&digits);
}

/* The value of a decimal, for bounds that a double cannot hold. */
static bool put_decimal(struct buf *out, const struct decimal *d)
{
	int64_t power = d->power - d->count;

	if (d->count > DECIMAL_DIVISOR_DIGITS_MAX || power > 300 || power < -300)
		return false;
	put_scaled(out, d->is_negative ? -(int64_t)decimal_digits(*d) : (int64_t)decimal_digits(*d),
		(int)power);
	return true;
}

struct bounds {
	double low, high;                    /* may be infinite */
	bool is_low_out, is_high_out;        /* exclusive */
	const struct decimal *at_low, *at_high; /* inclusive ones, exactly */
	const struct decimal *step;
};

static struct bounds bounds_of(const struct invent_ask *a)
{
	struct bounds b = { .low = -INFINITY, .high = INFINITY };

	for (size_t i = 0; i < a->count; i++) {
		const struct schema_node *n = a->node[i];

		if (n->minimum && real_of(n->minimum) > b.low) {
			b.low = real_of(n->minimum);
			b.is_low_out = false;
			b.at_low = n->minimum;
		}
		if (n->maximum && real_of(n->maximum) < b.high) {
			b.high = real_of(n->maximum);
			b.is_high_out = false;
			b.at_high = n->maximum;
		}
		if (n->above && real_of(n->above) >= b.low) {
			b.low = real_of(n->above);
			b.is_low_out = true;
			b.at_low = NULL;
		}
		if (n->below && real_of(n->below) <= b.high) {
			b.high = real_of(n->below);
			b.is_high_out = true;
			b.at_high = NULL;
		}
		if (n->multiple_of && (!b.step || decimal_compare(*n->multiple_of, *b.step) > 0))
			b.step = n->multiple_of;
	}
	return b;
}

/* The unit whose multiples are drawn: its digits, times a power of ten. */
struct unit { int64_t digits; int power; };

/* The smallest whole number that is a multiple. */
static struct unit whole_unit(struct unit u)
{
	while (u.power < 0 && u.digits % 2 == 0 && u.digits % 5 == 0) {
		u.digits /= 10;
		u.power++;
	}
	for (int i = u.power; i < 0; i++) { /* a tenth: a 2 and a 5 of it may already be there */
		if (u.digits % 2 == 0)
			u.digits = u.digits / 2;
		if (u.digits % 5 == 0)
			u.digits = u.digits / 5;
	}
	u.power = u.power < 0 ? 0 : u.power;
	return u;
}

static struct unit unit_of(const struct bounds *b, bool is_integer)
{
	double width = b->high - b->low;

	if (b->step && b->step->power - b->step->count > -300 &&
	    b->step->power - b->step->count < 300) {
		struct unit u = { (int64_t)decimal_digits(*b->step),
			(int)(b->step->power - b->step->count) };

		return is_integer ? whole_unit(u) : u;
	}
	if (is_integer)
		return (struct unit){ 1, 0 };
	if (!isfinite(width) || width > 1 || width <= 0)
		return (struct unit){ 1, -2 };
	return (struct unit){ 1, (int)floor(log10(width)) - 2 };
}

static bool scalar_number(struct dice *d, const struct invent_ask *a, bool is_integer,
			  struct buf *out)
{
	struct bounds b = bounds_of(a);
	struct unit u = unit_of(&b, is_integer);
	double size = (double)u.digits * pow(10, u.power), low, high;
	const struct decimal *edge = b.at_low && (!b.at_high || dice_below(d, 2)) ? b.at_low :
		b.at_high;
	int64_t v;

	if (edge && dice_below(d, 8) == 0 && put_decimal(out, edge))
		return true;
	low = ceil(b.low / size);
	high = floor(b.high / size);
	low += b.is_low_out && low * size <= b.low;
	high -= b.is_high_out && high * size >= b.high;
	if (!isfinite(low))
		low = !isfinite(high) || high > 0 ? (high < 0 ? high - NUMBERS_USUAL : 0) :
			high - NUMBERS_USUAL;
	if (!isfinite(high))
		high = low + NUMBERS_USUAL;
	if (!(low <= high) || fabs(low) >= 0x1p53 || fabs(high) > 0x1p62)
		return edge && put_decimal(out, edge);
	v = (int64_t)low;
	if (high - low < 0x1p53)
		v += (int64_t)dice_below(d, (uint64_t)(high - low) + 1);
	else
		v += (int64_t)dice_below(d, NUMBERS_USUAL);
	if (__builtin_mul_overflow(v, u.digits, &v))
		return false;
	put_scaled(out, v, u.power);
	return true;
}

#define ASK_NODES_MAX 64       /* schemas for one value */
#define NAMES_MAX 4096         /* members of one object */
#define INVENT_STEPS_MAX 100000
#define NESTING_USUAL 8        /* beyond it nothing optional is made */
#define NESTING_MAX 48
#define EXTRA_ITEMS_MAX 3
#define SAME_ITEM_TRIES 16

/* The kinds of values; an integer is also a number. */
enum invent_form { FORM_NULL, FORM_BOOLEAN, FORM_OBJECT, FORM_ARRAY, FORM_STRING, FORM_INTEGER,
	FORM_NUMBER, FORM_COUNT };
#define ALL_FORMS ((1u << FORM_COUNT) - 1)

struct inventor {
	const struct schema *schema;
	struct dice *dice;
	size_t steps;
};

static bool make_value(struct inventor *m, const struct invent_ask *a, struct json_writer *w,
		       size_t share, unsigned nesting);

static bool is_likely(struct inventor *m, unsigned percent)
{
	return dice_below(m->dice, 100) < percent;
}

/* ---- the schemas that apply ---- */

static bool add_node(struct inventor *m, struct invent_ask *a, const struct schema_node *n,
		     unsigned nesting);

/* How much a schema tends to nest further. */
static unsigned weight(const struct schema_node *n)
{
	unsigned containers = 1u << JSON_OBJECT | 1u << JSON_ARRAY;

	if (n->is_boolean)
		return n->allows ? 0 : 9;
	return (n->ref || n->dynamic_ref ? 2u : 0u) + (n->types & containers ? 1u : 0u);
}

static const struct schema_node *pick_branch(struct inventor *m, const struct schema_list *list,
					     unsigned nesting)
{
	size_t chosen = dice_below(m->dice, list->count);

	if (nesting > NESTING_USUAL)
		for (size_t i = 0; i < list->count; i++)
			if (weight(list->item[i]) < weight(list->item[chosen]))
				chosen = i;
	return list->item[chosen];
}

static bool add_condition(struct inventor *m, struct invent_ask *a, const struct schema_node *n,
			  unsigned nesting)
{
	if (!is_likely(m, 50))
		return !n->else_that || add_node(m, a, n->else_that, nesting);
	return add_node(m, a, n->if_this, nesting) &&
		(!n->then_that || add_node(m, a, n->then_that, nesting));
}

static bool add_node(struct inventor *m, struct invent_ask *a, const struct schema_node *n,
		     unsigned nesting)
{
	if (n->is_boolean && n->allows)
		return true;
	if (n->is_boolean || a->count == ASK_NODES_MAX)
		return false;
	a->node[a->count++] = n;
	if (n->ref && !add_node(m, a, n->ref, nesting))
		return false;
	if (n->dynamic_ref && !add_node(m, a, n->dynamic_ref, nesting))
		return false;
	for (size_t i = 0; i < n->all_of.count; i++)
		if (!add_node(m, a, n->all_of.item[i], nesting))
			return false;
	if (n->any_of.count && !add_node(m, a, pick_branch(m, &n->any_of, nesting), nesting))
		return false;
	if (n->one_of.count && !add_node(m, a, pick_branch(m, &n->one_of, nesting), nesting))
		return false;
	return !n->if_this || add_condition(m, a, n, nesting);
}

static unsigned forms_of(unsigned types)
{
	unsigned forms = 0;

	if (!types)
		return ALL_FORMS;
	forms |= types & 1u << JSON_NULL ? 1u << FORM_NULL : 0;
	forms |= types & 1u << JSON_TRUE ? 1u << FORM_BOOLEAN : 0;
	forms |= types & 1u << JSON_OBJECT ? 1u << FORM_OBJECT : 0;
	forms |= types & 1u << JSON_ARRAY ? 1u << FORM_ARRAY : 0;
	forms |= types & 1u << JSON_STRING ? 1u << FORM_STRING : 0;
	forms |= types & 1u << JSON_INT ? 1u << FORM_NUMBER | 1u << FORM_INTEGER : 0;
	forms |= types & TYPE_INTEGER ? 1u << FORM_INTEGER : 0;
	return forms;
}

/* The types that its keywords are about, if it has no type. */
static unsigned meant_forms(const struct schema_node *n)
{
	unsigned forms = 0;

	if (n->property_count || n->required_count || n->additional || n->pattern_count ||
	    n->min_properties > 0 || n->property_names || n->needs_count || n->dependents.count)
		forms |= 1u << FORM_OBJECT;
	if (n->items || n->prefix_items.count || n->contains || n->min_items > 0 ||
	    n->has_unique_items)
		forms |= 1u << FORM_ARRAY;
	if (n->pattern || n->min_length >= 0 || n->max_length >= 0 || n->format)
		forms |= 1u << FORM_STRING;
	if (n->minimum || n->maximum || n->above || n->below || n->multiple_of)
		forms |= 1u << FORM_NUMBER;
	return forms;
}

static enum invent_form pick_form(struct inventor *m, const struct invent_ask *a, unsigned nesting,
				  bool *is_none)
{
	unsigned forms = ALL_FORMS, meant = 0, count = 0;
	enum invent_form chosen = FORM_NULL;

	for (size_t i = 0; i < a->count; i++) {
		forms &= a->node[i]->metaschema ? 1u << FORM_BOOLEAN | 1u << FORM_OBJECT :
			forms_of(a->node[i]->types);
		meant |= meant_forms(a->node[i]);
	}
	if (forms == ALL_FORMS)
		forms = meant ? meant : 1u << FORM_STRING;
	if ((forms & 1u << FORM_NUMBER) && (forms & 1u << FORM_INTEGER))
		forms &= ~(1u << FORM_INTEGER);
	if (nesting > NESTING_USUAL && forms & ~(1u << FORM_OBJECT | 1u << FORM_ARRAY))
		forms &= ~(1u << FORM_OBJECT | 1u << FORM_ARRAY);
	*is_none = forms == 0;
	for (unsigned f = 0; f < FORM_COUNT; f++)
		if (forms & 1u << f && dice_below(m->dice, ++count) == 0)
			chosen = (enum invent_form)f;
	return chosen;
}

/* ---- arrays ---- */

/* The schemas of an item; false: there can be none. */
static bool ask_item(struct inventor *m, const struct invent_ask *a, size_t i, bool is_contained,
		     unsigned nesting, struct invent_ask *out)
{
	bool is_known = false;

	for (size_t k = 0; k < a->count; k++) {
		const struct schema_node *n = a->node[k];
		const struct schema_node *item = i < n->prefix_items.count ?
			n->prefix_items.item[i] : n->items;

		is_known |= item || (n->contains && is_contained);
		if (item && !add_node(m, out, item, nesting))
			return false;
		if (n->contains && is_contained && !add_node(m, out, n->contains, nesting))
			return false;
	}
	for (size_t k = 0; !is_known && k < a->count; k++)
		if (a->node[k]->unevaluated_items &&
		    !add_node(m, out, a->node[k]->unevaluated_items, nesting))
			return false;
	return true;
}

struct sizes {
	int64_t min, max;
	int64_t contained; /* items that contains asks for */
	bool is_unique;
};

static struct sizes array_sizes(const struct invent_ask *a)
{
	struct sizes s = { .max = INT64_MAX };

	for (size_t i = 0; i < a->count; i++) {
		const struct schema_node *n = a->node[i];
		int64_t contained = !n->contains ? 0 : n->min_contains >= 0 ? n->min_contains : 1;

		s.min = n->min_items > s.min ? n->min_items : s.min;
		s.max = n->max_items >= 0 && n->max_items < s.max ? n->max_items : s.max;
		s.contained = contained > s.contained ? contained : s.contained;
		s.is_unique |= n->has_unique_items;
	}
	return s;
}

/* One more item as a text of its own, unique if that is required. */
static bool make_item(struct inventor *m, const struct invent_ask *a, struct buf *text,
		      struct map *seen, struct arena *arena, size_t share, unsigned nesting)
{
	for (int i = 0; i < SAME_ITEM_TRIES; i++) {
		struct json_writer w = json_writer(text);

		buf_reset(text);
		w.is_raw_utf8 = true;
		if (!make_value(m, a, &w, share, nesting))
			return false;
		if (!seen)
			return true;
		if (!map_get(seen, buf_str(text), NULL)) {
			map_put(seen, arena_str(arena, buf_str(text)), 1);
			return true;
		}
	}
	return false;
}

static int64_t item_count(struct inventor *m, const struct sizes *s, size_t share, unsigned nesting)
{
	int64_t count = s->min > s->contained ? s->min : s->contained;

	if (nesting <= NESTING_USUAL)
		count += (int64_t)dice_below(m->dice, EXTRA_ITEMS_MAX) + (share > 0 && count == 0);
	return count < s->max ? count : s->max;
}

static bool make_array(struct inventor *m, const struct invent_ask *a, struct json_writer *w,
		       size_t share, unsigned nesting)
{
	struct sizes s = array_sizes(a);
	int64_t count = item_count(m, &s, share, nesting);
	struct buf text = { 0 };
	struct map seen = { 0 };
	struct arena arena = { 0 };
	bool is_made = true;

	if (s.min > (int64_t)INVENT_STEPS_MAX)
		return false;
	json_begin_array(w);
	for (int64_t i = 0; i < count && is_made; i++) {
		struct invent_ask item = { .count = 0 };

		is_made = ask_item(m, a, (size_t)i, count - i <= s.contained, nesting + 1, &item) &&
			make_item(m, &item, &text, s.is_unique ? &seen : NULL, &arena,
				share / (size_t)count, nesting + 1);
		if (is_made) {
			json_put_raw(w, buf_str(&text));
		} else if (i >= s.min && i >= s.contained) {
			is_made = true;
			break;
		}
	}
	json_end_array(w);
	buf_release(&text);
	map_release(&seen);
	arena_release(&arena);
	return is_made;
}

/* ---- listed values ---- */

static bool all_hold(const struct inventor *m, const struct invent_ask *a,
		     const struct json_value *v)
{
	for (size_t i = 0; i < a->count; i++)
		if (!schema_node_holds(m->schema, a->node[i], v))
			return false;
	return true;
}

/* A value of enum or const that satisfies everything else; NULL: none does. */
static const struct json_value *pick_listed(struct inventor *m, const struct invent_ask *a,
					    bool *is_listed)
{
	const struct json_value *list = NULL;

	*is_listed = false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->node[i]->constant) {
			*is_listed = true;
			return a->node[i]->constant;
		}
		if (a->node[i]->enums && (!list || a->node[i]->enums->count < list->count))
			list = a->node[i]->enums;
	}
	*is_listed = list != NULL;
	for (size_t i = 0, from = list && list->count ? dice_below(m->dice, list->count) : 0;
	     list && i < list->count; i++) {
		const struct json_value *v = &list->item[(from + i) % list->count];

		if (all_hold(m, a, v))
			return v;
	}
	return NULL;
}

/* ---- objects ---- */

struct known_names {
	struct str *name;
	bool *is_required;
	size_t count, cap;
	struct map known; /* name: its index */
};

static void add_name(struct known_names *s, struct str name, bool is_required)
{
	uint64_t at;

	if (map_get(&s->known, name, &at)) {
		s->is_required[at] |= is_required;
		return;
	}
	if (s->count == NAMES_MAX)
		return;
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 16;
		s->name = mem_grow(s->name, s->cap, sizeof *s->name);
		s->is_required = mem_grow(s->is_required, s->cap, sizeof *s->is_required);
	}
	map_put(&s->known, name, s->count);
	s->name[s->count] = name;
	s->is_required[s->count++] = is_required;
}

static void add_names(struct known_names *s, const struct schema_node *n)
{
	for (size_t i = 0; i < n->property_count; i++)
		add_name(s, n->property[i], false);
	for (size_t i = 0; i < n->required_count; i++)
		add_name(s, n->required[i], true);
}

/* Adds what the members chosen so far require. */
static bool add_dependents(struct inventor *m, struct invent_ask *a, struct known_names *s,
			   unsigned nesting)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct schema_node *n = a->node[i];
		uint64_t at, node;

		for (size_t k = 0; k < n->needs_count; k++) {
			if (!map_get(&s->known, n->needs[k].key, &at) || !s->is_required[at])
				continue;
			for (size_t j = 0; j < n->needs[k].count; j++)
				add_name(s, n->needs[k].name[j], true);
		}
		for (size_t k = 0; n->dependents.count && k < s->count; k++) {
			const struct schema_node *more;

			if (!s->is_required[k] || !map_get(&n->dependents, s->name[k], &node))
				continue;
			more = (const struct schema_node *)(uintptr_t)node;
			if (!more->is_boolean || !more->allows) {
				size_t from = a->count;

				if (more->is_boolean || !add_node(m, a, more, nesting))
					return false;
				for (size_t j = from; j < a->count; j++)
					add_names(s, a->node[j]);
			}
		}
	}
	return true;
}

/* The schemas of a member; false: there can be none. */
static bool ask_member(struct inventor *m, const struct invent_ask *a, struct str name,
		       unsigned nesting, struct invent_ask *out)
{
	bool is_known_at_all = false;

	for (size_t i = 0; i < a->count; i++) {
		const struct schema_node *n = a->node[i];
		bool is_known = false;
		uint64_t node;

		if (map_get(&n->properties, name, &node)) {
			is_known = true;
			if (!add_node(m, out, (const struct schema_node *)(uintptr_t)node, nesting))
				return false;
		}
		for (size_t k = 0; k < n->pattern_count; k++) {
			const struct schema_pattern *p = &n->pattern_property[k];

			if (pattern_matches(p->pattern, name) != PATTERN_YES)
				continue;
			is_known = true;
			if (!add_node(m, out, p->node, nesting))
				return false;
		}
		if (!is_known && n->additional) {
			is_known = true;
			if (!add_node(m, out, n->additional, nesting))
				return false;
		}
		is_known_at_all |= is_known;
	}
	for (size_t i = 0; !is_known_at_all && i < a->count; i++)
		if (a->node[i]->unevaluated_properties &&
		    !add_node(m, out, a->node[i]->unevaluated_properties, nesting))
			return false;
	return true;
}

static void add_asked_name(struct inventor *m, const struct schema_node *names, struct buf *out)
{
	struct invent_ask name = { .count = 0 };
	const struct json_value *listed;
	bool is_listed;

	if (!add_node(m, &name, names, 0))
		return;
	listed = pick_listed(m, &name, &is_listed);
	if (!is_listed)
		scalar_text(m->dice, &name, 8, out);
	else if (listed && listed->kind == JSON_STRING)
		buf_add_str(out, listed->text);
}

/* A name for a member that no schema defines; empty: there can be none. */
static struct str new_name(struct inventor *m, const struct invent_ask *a, struct arena *arena,
			   size_t i)
{
	for (size_t k = 0; k < a->count; k++) {
		const struct schema_node *n = a->node[k];
		struct buf text = { 0 };
		struct str made = { 0 };

		if (n->pattern_count && is_likely(m, 80))
			scalar_pattern(m->dice, n->pattern_property[dice_below(m->dice,
				n->pattern_count)].text, 12, &text);
		else if (n->property_names)
			add_asked_name(m, n->property_names, &text);
		if (text.len)
			made = arena_str(arena, buf_str(&text));
		buf_release(&text);
		if (made.n || n->property_names)
			return made;
	}
	return str_of(arena_printf(arena, "%s_%zu", scalar_word(m->dice), i + 1));
}

struct object_sizes { int64_t min, max; bool has_names; };

static struct object_sizes object_sizes(const struct invent_ask *a)
{
	struct object_sizes s = { .max = NAMES_MAX };

	for (size_t i = 0; i < a->count; i++) {
		const struct schema_node *n = a->node[i];

		s.min = n->min_properties > s.min ? n->min_properties : s.min;
		s.max = n->max_properties >= 0 && n->max_properties < s.max ? n->max_properties :
			s.max;
		s.has_names |= n->pattern_count || n->property_names ||
			(n->additional && !n->additional->is_boolean);
	}
	return s;
}

/* Decides which members there are; sets is_required for those. */
static bool choose_names(struct inventor *m, struct invent_ask *a, struct known_names *s,
			 struct arena *arena, unsigned nesting)
{
	struct object_sizes sizes = object_sizes(a);
	unsigned percent = nesting > NESTING_USUAL ? 0 : 50;
	int64_t count = 0, extra;

	if (sizes.min > NAMES_MAX)
		return false;
	for (size_t i = 0; i < a->count; i++)
		add_names(s, a->node[i]);
	for (size_t i = 0; i < s->count; i++)
		count += s->is_required[i];
	for (size_t i = 0; i < s->count; i++) {
		struct invent_ask probe = { .count = 0 };

		if (s->is_required[i] || count >= sizes.max ||
		    (count >= sizes.min && !is_likely(m, percent)) ||
		    !ask_member(m, a, s->name[i], nesting, &probe))
			continue;
		s->is_required[i] = true;
		count++;
	}
	extra = sizes.min - count;
	if (extra <= 0 && s->count == 0 && sizes.has_names && nesting <= NESTING_USUAL)
		extra = 2;
	for (int64_t i = 0; i < extra && count + i < sizes.max; i++) {
		struct str name = new_name(m, a, arena, (size_t)i);

		if (name.n)
			add_name(s, name, true);
	}
	return add_dependents(m, a, s, nesting) && add_dependents(m, a, s, nesting);
}

static bool make_object(struct inventor *m, const struct invent_ask *asked, struct json_writer *w,
			size_t share, unsigned nesting)
{
	struct invent_ask a = *asked;
	struct known_names s = { 0 };
	struct arena arena = { 0 };
	bool is_made = choose_names(m, &a, &s, &arena, nesting);
	size_t count = 0;

	for (size_t i = 0; i < s.count; i++)
		count += s.is_required[i];
	json_begin_object(w);
	for (size_t i = 0; i < s.count && is_made; i++) {
		struct invent_ask member = { .count = 0 };

		if (!s.is_required[i])
			continue;
		json_key_str(w, s.name[i]);
		is_made = ask_member(m, &a, s.name[i], nesting + 1, &member);
		if (!is_made)
			json_put_null(w);
		else
			is_made = make_value(m, &member, w, share / count, nesting + 1);
	}
	json_end_object(w);
	free(s.name);
	free(s.is_required);
	map_release(&s.known);
	arena_release(&arena);
	return is_made;
}

/* ---- values ---- */

static bool make_form(struct inventor *m, const struct invent_ask *a, enum invent_form form,
		      struct json_writer *w, size_t share, unsigned nesting)
{
	struct buf text = { 0 };
	bool is_made = true;

	switch (form) {
	case FORM_NULL:
		json_put_null(w);
		break;
	case FORM_BOOLEAN:
		json_put_bool(w, is_likely(m, 50));
		break;
	case FORM_OBJECT:
		return make_object(m, a, w, share, nesting);
	case FORM_ARRAY:
		return make_array(m, a, w, share, nesting);
	case FORM_STRING:
		is_made = scalar_text(m->dice, a, share, &text);
		json_put_str(w, text.len ? buf_str(&text) : STR(""));
		break;
	case FORM_INTEGER:
	case FORM_NUMBER:
	case FORM_COUNT:
		is_made = scalar_number(m->dice, a, form == FORM_INTEGER, &text);
		json_put_raw(w, is_made ? buf_str(&text) : STR("0"));
		break;
	}
	buf_release(&text);
	return is_made;
}

/* Writes a value in any case; false: it does not satisfy the schemas. */
static bool make_value(struct inventor *m, const struct invent_ask *a, struct json_writer *w,
		       size_t share, unsigned nesting)
{
	const struct json_value *listed = NULL;
	bool is_listed = false, is_none = true;
	enum invent_form form = FORM_NULL;

	if (++m->steps <= INVENT_STEPS_MAX && nesting <= NESTING_MAX &&
	    w->out->len <= SENTENCE_BYTES_MAX) {
		listed = pick_listed(m, a, &is_listed);
		form = pick_form(m, a, nesting, &is_none);
	}
	if (listed) {
		json_put_value(w, listed);
		return true;
	}
	if (!is_none && !is_listed)
		return make_form(m, a, form, w, share, nesting);
	json_put_null(w);
	return false;
}

static bool make_checked(struct inventor *m, size_t bytes, struct buf *text)
{
	struct invent_ask root = { .count = 0 };
	struct json_writer w = json_writer(text);
	struct arena arena = { 0 };
	struct json_value *v;
	char why[128];
	bool is_good;

	w.is_raw_utf8 = true;
	is_good = add_node(m, &root, m->schema->root, 0) && make_value(m, &root, &w, bytes, 0) &&
		json_parse_strict(&arena, buf_str(text), &v, NULL) == 0 &&
		schema_judge(m->schema, v, why, sizeof why) == SCHEMA_KEPT;
	arena_release(&arena);
	return is_good;
}

int schema_invent(const struct schema *s, struct dice *d, size_t bytes, struct buf *out,
		  struct err *e)
{
	struct inventor m = { .schema = s, .dice = d };
	struct buf text = { .limit = 2 * SENTENCE_BYTES_MAX };
	bool is_made = false;

	for (int i = 0; i < INVENT_TRIES_MAX && !is_made && m.steps <= INVENT_STEPS_MAX; i++) {
		buf_reset(&text);
		is_made = make_checked(&m, bytes, &text);
	}
	if (is_made)
		buf_add_str(out, buf_str(&text));
	buf_release(&text);
	return is_made ? 0 : err_set(e, ERR_RUN, "no value that satisfies the schema was found");
}
