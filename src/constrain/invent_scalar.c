/* SPDX-License-Identifier: Apache-2.0 */
/* invent_scalar.c - see invent_scalar.h. */
#include "constrain/invent_scalar.h"

#include <assert.h>
#include <math.h>

#include "base/utf8.h"

#define NUMBERS_USUAL 100   /* multiples that are drawn from where a bound is missing */
#define PATTERN_TRIES_MAX 8
#define TEXT_BYTES_USUAL 12 /* of a text where nothing says how long it is */

const char *scalar_word(struct dice *d)
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

/* Words with blanks between them, exactly so many bytes. */
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

bool scalar_pattern(struct dice *d, struct str pattern, size_t bytes, struct buf *out)
{
	struct arena a = { 0 };
	struct syntax *s = syntax_of_pattern(&a, pattern, PATTERN_ECMA, NULL);
	bool is_made = s && syntax_sentence(s, d, bytes, out, NULL) == 0;

	arena_release(&a);
	return is_made;
}

static int64_t code_points(struct str s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

struct lengths { int64_t min, max; };

/* Shorter and shorter ones until one is short enough; words fill it up. */
static bool text_of_pattern(struct dice *d, struct str pattern, size_t bytes, struct lengths l,
			    struct buf *out)
{
	size_t from = out->len;

	if (l.max < (int64_t)bytes)
		bytes = (size_t)l.max;
	for (int i = 0; i < PATTERN_TRIES_MAX; i++, bytes /= 2) {
		int64_t length;

		if (!scalar_pattern(d, pattern, bytes, out))
			return false;
		length = code_points(buf_since(out, from));
		if (length < l.min)
			add_words(d, (size_t)(l.min - length), out);
		if (length <= l.max)
			return true;
		out->len = from;
	}
	return false;
}

bool scalar_text(struct dice *d, const struct ask *a, size_t bytes, struct buf *out)
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
			(struct lengths){ min, max }, out);
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

/* A decimal's own value, for bounds that a double does not hold. */
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

static struct bounds bounds_of(const struct ask *a)
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

bool scalar_number(struct dice *d, const struct ask *a, bool is_integer, struct buf *out)
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
