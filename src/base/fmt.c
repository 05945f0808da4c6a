/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fmt.c - see fmt.h.
 *
 * The shortest form is found by printing with 15, 16 and 17 digits and taking
 * the first that reads back (fewer for subnormals). At 16 digits the correctly
 * rounded decimal can miss while a neighbour reads back (powers of two), so the
 * neighbours are tried before 17 digits are used.
 *
 * The decimal separator between the digits is whatever the locale of the thread makes
 * it: it is skipped, and read back by the strtod of the same locale.
 */
#include "base/fmt.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

locale_t fmt_c_locale(void)
{
	static _Atomic(locale_t) kept; /* all threads find the same one */
	locale_t c = atomic_load_explicit(&kept, memory_order_acquire);

	if (!c) {
		c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc has one: nothing is allocated */
		assert(c);
		atomic_store_explicit(&kept, c, memory_order_release);
	}
	return c;
}

int fmt_vtext(char *out, size_t cap, const char *fmt, va_list ap)
{
	locale_t before = uselocale(fmt_c_locale());
	int n = vsnprintf(out, cap, fmt, ap);

	uselocale(before);
	return n;
}

__attribute__((format(printf, 2, 3)))
static void put(char out[FMT_F64_BYTES], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fmt_vtext(out, FMT_F64_BYTES, fmt, ap);
	va_end(ap);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Scientific digits of |v|: "d.ddde[+-]xx" with `digits` significant ones. */
static int reads_back(char *sci, size_t cap, int digits, double v)
{
	snprintf(sci, cap, "%.*e", digits - 1, v);
	return strtod(sci, NULL) == v;
}

static int neighbour_reads_back(char *sci, size_t cap, double v)
{
	char up[FMT_F64_BYTES];
	char *e = strchr(sci, 'e');
	int carry = 1;

	snprintf(up, sizeof(up), "%s", sci);
	for (char *p = up + (e - sci) - 1; p >= up && carry; p--) {
		if (!is_digit(*p))
			continue;
		carry = *p == '9';
		*p = carry ? '0' : (char)(*p + 1);
	}
	if (carry || strtod(up, NULL) != v)
		return 0;
	snprintf(sci, cap, "%s", up);
	return 1;
}

static void shortest(char *sci, size_t cap, double v)
{
	if (v < DBL_MIN) {
		for (int digits = 1; digits < 15; digits++)
			if (reads_back(sci, cap, digits, v))
				return;
	}
	if (reads_back(sci, cap, 15, v) || reads_back(sci, cap, 16, v) ||
	    neighbour_reads_back(sci, cap, v))
		return;
	reads_back(sci, cap, 17, v);
}

/* Writes digits with the point after `point` of them; pads with zeros to reach it. */
static char *plain(char *o, const char *digits, int n, int point)
{
	if (point <= 0) {
		*o++ = '0';
		*o++ = '.';
		for (; point < 0; point++)
			*o++ = '0';
		memcpy(o, digits, (size_t)n);
		o += n;
	} else {
		for (int i = 0; i < point; i++)
			*o++ = i < n ? digits[i] : '0';
		*o++ = '.';
		if (n <= point)
			*o++ = '0';
		for (int i = point; i < n; i++)
			*o++ = digits[i];
	}
	*o = 0;
	return o;
}

char *fmt_f64(char out[FMT_F64_BYTES], double v)
{
	char sci[FMT_F64_BYTES], digits[FMT_F64_BYTES];
	char *o = out;
	int n = 0, exponent;

	if (isnan(v))
		return memcpy(out, "nan", 4);
	if (signbit(v))
		*o++ = '-';
	if (isinf(v)) {
		memcpy(o, "inf", 4);
		return out;
	}
	shortest(sci, sizeof(sci), fabs(v));
	exponent = (int)strtol(strchr(sci, 'e') + 1, NULL, 10);
	for (const char *p = sci; *p != 'e'; p++)
		if (is_digit(*p))
			digits[n++] = *p;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (exponent >= -4 && exponent < 16) {
		plain(o, digits, n, exponent + 1);
		return out;
	}
	*o++ = digits[0];
	if (n > 1) {
		*o++ = '.';
		memcpy(o, digits + 1, (size_t)n - 1);
		o += n - 1;
	}
	snprintf(o, (size_t)(out + FMT_F64_BYTES - o), "e%c%02d",
		 exponent < 0 ? '-' : '+', abs(exponent));
	return out;
}

char *fmt_duration(char out[FMT_F64_BYTES], int64_t ns)
{
	double v = fabs((double)ns);

	if (v < 1e3)
		put(out, "%lld ns", (long long)ns);
	else if (v < 1e6)
		put(out, "%.3g us", (double)ns / 1e3);
	else if (v < 1e9)
		put(out, "%.3g ms", (double)ns / 1e6);
	else
		put(out, "%.2f s", (double)ns / 1e9);
	return out;
}

char *fmt_rough_time(char out[FMT_F64_BYTES], double s)
{
	if (s < 89.5)
		put(out, "%.*f s", s < 9.95 ? 1 : 0, s);
	else if (s < 5400)
		put(out, "%.0f min", s / 60);
	else
		put(out, "%.1f h", s / 3600);
	return out;
}
