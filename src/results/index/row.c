/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - see row.h. */
#include "results/index/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to there every whole number is a double */

int text_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : (a.n > b.n) - (a.n < b.n);
}

int value_compare(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return a.kind < b.kind ? -1 : 1;
	switch (a.kind) {
	case VALUE_BOOL:
		return (int)a.is_true - (int)b.is_true;
	case VALUE_NUMBER:
		return (a.number > b.number) - (a.number < b.number);
	case VALUE_TEXT:
		return text_compare(a.text, b.text);
	case VALUE_ABSENT:
	case VALUE_NULL:
		break;
	}
	return 0;
}

bool value_same(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return false;
	if (a.kind == VALUE_TEXT)
		return str_eq(a.text, b.text);
	return value_compare(a, b) == 0;
}

int value_order(const void *a, const void *b)
{
	return value_compare(*(const struct value *)a, *(const struct value *)b);
}

struct value row_value(const struct row *r, struct str column)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->cell[i].column, column))
			return r->cell[i].value;
	return (struct value){ 0 };
}

void value_put_number(struct json_writer *w, double v)
{
	bool is_whole = fabs(v) < WHOLE_MAX && trunc(v) == v && !(v == 0 && signbit(v));

	if (isnan(v))
		json_put_null(w);
	else if (isinf(v))
		json_put_text(w, v < 0 ? "-inf" : "inf");
	else if (is_whole)
		json_put_int(w, (int64_t)v);
	else
		json_put_f64(w, v);
}

void value_put(struct json_writer *w, struct value v)
{
	switch (v.kind) {
	case VALUE_ABSENT:
	case VALUE_NULL:
		json_put_null(w);
		break;
	case VALUE_BOOL:
		json_put_bool(w, v.is_true);
		break;
	case VALUE_NUMBER:
		value_put_number(w, v.number);
		break;
	case VALUE_TEXT:
		json_put_str(w, v.text);
		break;
	}
}

#define YEAR_MAX_S 253402300800.0 /* the year 10000 */

bool when_is_column(struct str name)
{
	return str_is(name, "timestamp");
}

/* Reads exactly `digits` digits from *at and moves *at past them; -1: there are fewer. */
static int number(struct str text, size_t *at, size_t digits)
{
	int value = 0;

	for (size_t i = 0; i < digits; i++, ++*at) {
		if (*at >= text.n || text.p[*at] < '0' || text.p[*at] > '9')
			return -1;
		value = 10 * value + text.p[*at] - '0';
	}
	return value;
}

static bool skip(struct str text, size_t *at, const char *any_of)
{
	if (*at >= text.n || !text.p[*at] || !strchr(any_of, text.p[*at]))
		return false;
	++*at;
	return true;
}

/* ":SS" and ".fff", if present. */
static bool read_seconds(struct str text, size_t *at, struct tm *tm, double *fraction)
{
	double place = 0.1;
	size_t from;

	if (!skip(text, at, ":"))
		return true;
	tm->tm_sec = number(text, at, 2);
	if (!skip(text, at, "."))
		return tm->tm_sec >= 0;
	from = *at;
	for (int d; (d = number(text, at, 1)) >= 0; place /= 10)
		*fraction += d * place;
	return tm->tm_sec >= 0 && *at > from;
}

/* "Z", "+01:00", "-0130" or nothing. */
static bool read_offset(struct str text, size_t *at, double *seconds)
{
	bool is_west = *at < text.n && text.p[*at] == '-';
	int hours, minutes;

	*seconds = 0;
	if (skip(text, at, "zZ") || !skip(text, at, "+-"))
		return true;
	hours = number(text, at, 2);
	skip(text, at, ":");
	minutes = number(text, at, 2);
	*seconds = (is_west ? -60.0 : 60.0) * (60 * hours + minutes);
	return hours >= 0 && hours <= 14 && minutes >= 0 && minutes < 60;
}

bool when_read(struct str text, double *seconds)
{
	struct tm tm = { 0 }, asked;
	double fraction = 0, offset = 0;
	size_t at = 0;
	time_t t;

	tm.tm_year = number(text, &at, 4) - 1900;
	if (tm.tm_year < 0 || !skip(text, &at, "-"))
		return false;
	tm.tm_mon = number(text, &at, 2) - 1;
	if (tm.tm_mon < 0 || !skip(text, &at, "-"))
		return false;
	tm.tm_mday = number(text, &at, 2);
	if (at < text.n) {
		if (!skip(text, &at, "T "))
			return false;
		tm.tm_hour = number(text, &at, 2);
		if (!skip(text, &at, ":"))
			return false;
		tm.tm_min = number(text, &at, 2);
		if (!read_seconds(text, &at, &tm, &fraction) || !read_offset(text, &at, &offset))
			return false;
	}
	asked = tm;
	t = timegm(&tm);
	if (at != text.n || tm.tm_mon != asked.tm_mon || tm.tm_mday != asked.tm_mday ||
	    tm.tm_hour != asked.tm_hour || tm.tm_min != asked.tm_min || tm.tm_sec != asked.tm_sec)
		return false;
	*seconds = (double)t + fraction - offset;
	return true;
}

bool when_write(double seconds, char out[static WHEN_BYTES])
{
	double whole, ms;
	struct tm tm;
	time_t t;
	size_t n;

	if (!(seconds >= -2208988800.0 && seconds < YEAR_MAX_S)) /* from 1900 on; no NaN */
		return false;
	whole = floor(seconds);
	ms = round((seconds - whole) * 1000);
	if (ms >= 1000) {
		whole++;
		ms = 0;
	}
	t = (time_t)whole;
	gmtime_r(&t, &tm);
	n = strftime(out, WHEN_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	if (ms > 0)
		n += (size_t)snprintf(out + n, WHEN_BYTES - n, ".%03d", (int)ms);
	snprintf(out + n, WHEN_BYTES - n, "Z");
	return true;
}
