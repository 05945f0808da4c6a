/* SPDX-License-Identifier: Apache-2.0 */
/* trace_time.c - see trace_time.h. The Gregorian calendar without leap seconds, as POSIX has it. */
#include "data/trace_time.h"

/* Exactly n digits; moves behind them. */
static bool digits(struct str *rest, size_t n, int64_t *out)
{
	*out = 0;
	if (rest->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (rest->p[i] < '0' || rest->p[i] > '9')
			return false;
		*out = *out * 10 + (rest->p[i] - '0');
	}
	*rest = (struct str){ rest->p + n, rest->n - n };
	return true;
}

static bool mark(struct str *rest, char a, char b)
{
	if (!rest->n || (*rest->p != a && *rest->p != b))
		return false;
	*rest = (struct str){ rest->p + 1, rest->n - 1 };
	return true;
}

/* Days since 1970-01-01 of a date whose year begins in March, so that a leap day comes last. */
static int64_t days(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static bool read_date(struct str *rest, int64_t *out)
{
	static const int64_t length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t year, month, day;
	bool is_leap;

	if (!digits(rest, 4, &year) || !mark(rest, '-', '-') || !digits(rest, 2, &month) ||
	    !mark(rest, '-', '-') || !digits(rest, 2, &day) || year < 1970 || year > 2200 ||
	    month < 1 || month > 12)
		return false;
	is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	*out = days(year, month, day);
	return day >= 1 && day <= length[month - 1] + (month == 2 && is_leap);
}

static bool read_fraction(struct str *rest, int64_t *ns)
{
	int64_t unit = 100000000;

	*ns = 0;
	if (!mark(rest, '.', '.'))
		return true;
	for (; rest->n && *rest->p >= '0' && *rest->p <= '9'; unit /= 10) {
		if (!unit)
			return false; /* a tenth digit */
		*ns += unit * (*rest->p - '0');
		*rest = (struct str){ rest->p + 1, rest->n - 1 };
	}
	return true;
}

/* Seconds ahead of UTC. */
static bool read_offset(struct str *rest, int64_t *out)
{
	int64_t hours, minutes = 0;
	bool is_ahead = rest->n && *rest->p == '+';

	*out = 0;
	if (!rest->n || mark(rest, 'Z', 'z'))
		return true;
	if (!mark(rest, '+', '-') || !digits(rest, 2, &hours) || hours > 23)
		return false;
	mark(rest, ':', ':');
	if (rest->n && (!digits(rest, 2, &minutes) || minutes > 59))
		return false;
	*out = (hours * 60 + minutes) * (is_ahead ? 60 : -60);
	return true;
}

bool trace_time_read(struct str text, int64_t *ns)
{
	struct str rest = text;
	int64_t day, hour, minute, second, fraction, offset;

	if (!read_date(&rest, &day) || !mark(&rest, ' ', 'T') || !digits(&rest, 2, &hour) ||
	    !mark(&rest, ':', ':') || !digits(&rest, 2, &minute) || !mark(&rest, ':', ':') ||
	    !digits(&rest, 2, &second) || hour > 23 || minute > 59 || second > 60 ||
	    !read_fraction(&rest, &fraction) || !read_offset(&rest, &offset) || rest.n)
		return false;
	*ns = (((day * 24 + hour) * 60 + minute) * 60 + second - offset) * 1000000000 + fraction;
	return true;
}
