/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c - see decimal.h. */
#include "constrain/decimal.h"

#include <assert.h>

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
 * negative power would have to come out of m, whose last digit is not 0.
 */
bool decimal_is_multiple(struct decimal d, struct decimal divisor)
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

uint64_t decimal_hash(struct decimal d)
{
	uint64_t h = 0x9e3779b97f4a7c15u + (uint64_t)d.power * 31 + (d.count ? d.is_negative : 0);

	for (uint32_t i = 0; i < d.count; i++)
		h = (h ^ (uint64_t)next_digit(&d.digits)) * 0x100000001b3u;
	return h;
}
