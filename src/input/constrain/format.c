/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - URIs as names, and the formats that can be asserted; see schema.h. */
#include "input/constrain/schema.h"

#include <stddef.h>

#include "core/base/str.h"

/* ---- URIs ---- */

struct uri {
	struct str scheme, authority, path, query; /* p is NULL for what is not there */
};

struct str uri_without_fragment(struct str uri, struct str *fragment)
{
	const char *hash = uri.n ? memchr(uri.p, '#', uri.n) : NULL;

	*fragment = hash ? (struct str){ hash + 1, uri.n - (size_t)(hash - uri.p) - 1 } : STR("");
	return hash ? (struct str){ uri.p, (size_t)(hash - uri.p) } : uri;
}

static struct str cut_front(struct str *rest, size_t n)
{
	struct str front = { rest->p, n };

	rest->p += n;
	rest->n -= n;
	return front;
}

/* Bytes before the first of the stops. */
static size_t span_until(struct str s, const char *stops)
{
	size_t n = 0;

	while (n < s.n && !strchr(stops, s.p[n]))
		n++;
	return n;
}

static struct uri split(struct str text)
{
	struct uri u = { { 0 }, { 0 }, { 0 }, { 0 } };
	size_t n = span_until(text, ":/?");

	if (n > 0 && n < text.n && text.p[n] == ':') {
		u.scheme = cut_front(&text, n);
		cut_front(&text, 1);
	}
	if (str_starts(text, STR("//"))) {
		cut_front(&text, 2);
		u.authority = cut_front(&text, span_until(text, "/?"));
	}
	u.path = cut_front(&text, span_until(text, "?"));
	if (text.n) {
		cut_front(&text, 1);
		u.query = text;
	}
	return u;
}

/* Takes . and .. out of a path (RFC 3986, 5.2.4). */
static void add_without_dots(struct buf *out, struct str path)
{
	size_t from = out->len;

	while (path.n) {
		size_t n = 1 + span_until((struct str){ path.p + 1, path.n - 1 }, "/");
		struct str part = cut_front(&path, n);
		struct str name = *part.p == '/' ? (struct str){ part.p + 1, n - 1 } : part;

		if (!str_is(name, ".") && !str_is(name, "..")) {
			buf_add_str(out, part);
			continue;
		}
		if (str_is(name, ".."))
			while (out->len > from && out->data[--out->len] != '/')
				;
		if (path.n == 0)
			buf_add_char(out, '/');
	}
}

static void add_merged(struct buf *out, const struct uri *base, struct str path)
{
	size_t keep = base->path.n;
	struct buf merged = { 0 };

	while (keep > 0 && base->path.p[keep - 1] != '/')
		keep--;
	if (base->authority.p && base->path.n == 0)
		buf_add_char(&merged, '/');
	buf_add(&merged, base->path.p, keep);
	buf_add_str(&merged, path);
	add_without_dots(out, buf_str(&merged));
	buf_release(&merged);
}

struct str uri_resolve(struct arena *a, struct str base, struct str reference)
{
	struct uri b = split(base), r = split(reference);
	bool has_own_path = r.scheme.p || r.authority.p;
	struct str scheme = r.scheme.p ? r.scheme : b.scheme;
	struct str authority = has_own_path ? r.authority : b.authority;
	struct str query = has_own_path || r.path.n || r.query.p ? r.query : b.query;
	struct buf out = { 0 };
	struct str whole;

	if (scheme.p)
		buf_printf(&out, "%.*s:", (int)scheme.n, scheme.p);
	if (authority.p)
		buf_printf(&out, "//%.*s", (int)authority.n, authority.p);
	if (r.scheme.p && !r.authority.p)
		buf_add_str(&out, r.path); /* urn:..., tag:...: no hierarchy */
	else if (has_own_path || (r.path.n && *r.path.p == '/'))
		add_without_dots(&out, r.path);
	else if (r.path.n)
		add_merged(&out, &b, r.path);
	else
		buf_add_str(&out, b.path);
	if (query.p)
		buf_printf(&out, "?%.*s", (int)query.n, query.p);
	whole = arena_str(a, out.len ? buf_str(&out) : STR(""));
	buf_release(&out);
	return whole;
}

struct str uri_decoded(struct arena *a, struct str text)
{
	char *copy = arena_text(a, text);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '%' && i + 2 < text.n && str_hex(text.p[i + 1]) >= 0 &&
		    str_hex(text.p[i + 2]) >= 0) {
			c = (char)(str_hex(text.p[i + 1]) << 4 | str_hex(text.p[i + 2]));
			i += 2;
		}
		copy[n++] = c;
	}
	copy[n] = 0;
	return (struct str){ copy, n };
}

/* ---- formats ---- */

#define LABEL_BYTES_MAX 63     /* RFC 1035 */
#define HOSTNAME_BYTES_MAX 253
#define EMAIL_LOCAL_BYTES_MAX 64 /* RFC 5321, 4.5.3.1.1 */

struct format {
	const char *name;
	bool (*holds)(struct str);
	const char *example;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static bool is_alnum(char c) { return is_digit(c) || is_letter(c); }

/* Takes a character of the set from the front. */
static bool take(struct str *s, const char *set)
{
	if (s->n == 0 || *s->p == 0 || !strchr(set, *s->p))
		return false;
	s->p++;
	s->n--;
	return true;
}

/* Takes exactly n digits whose value is in the range. */
static bool take_number(struct str *s, size_t n, int min, int max, int *out)
{
	int v = 0;

	if (s->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s->p[i]))
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	s->p += n;
	s->n -= n;
	*out = v;
	return v >= min && v <= max;
}

static bool take_date(struct str *s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, month, day;
	bool is_leap;

	if (!take_number(s, 4, 0, 9999, &year) || !take(s, "-") ||
	    !take_number(s, 2, 1, 12, &month) || !take(s, "-") ||
	    !take_number(s, 2, 1, 31, &day))
		return false;
	is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return day <= days[month - 1] + (month == 2 && is_leap);
}

/* A leap second is there at 23:59:60 UTC alone. */
static bool take_time(struct str *s)
{
	int hour, minute, second, off_hour = 0, off_minute = 0, sign = 0, utc;

	if (!take_number(s, 2, 0, 23, &hour) || !take(s, ":") ||
	    !take_number(s, 2, 0, 59, &minute) || !take(s, ":") ||
	    !take_number(s, 2, 0, 60, &second))
		return false;
	if (take(s, ".")) {
		if (!take(s, "0123456789"))
			return false;
		while (take(s, "0123456789"))
			;
	}
	if (!take(s, "zZ")) {
		sign = s->n && *s->p == '-' ? -1 : 1;
		if (!take(s, "+-") || !take_number(s, 2, 0, 23, &off_hour) || !take(s, ":") ||
		    !take_number(s, 2, 0, 59, &off_minute))
			return false;
	}
	utc = (hour * 60 + minute - sign * (off_hour * 60 + off_minute) + 2 * 1440) % 1440;
	return second < 60 || utc == 1439;
}

static bool is_date(struct str s)
{
	return take_date(&s) && s.n == 0;
}

static bool is_time(struct str s)
{
	return take_time(&s) && s.n == 0;
}

static bool is_date_time(struct str s)
{
	return take_date(&s) && take(&s, "tT") && take_time(&s) && s.n == 0;
}

/* Units in their order, each after digits, none left out between two (RFC 3339, appendix A). */
static bool take_units(struct str *s, const char *units)
{
	bool has_any = false, is_gap = false;

	while (s->n && is_digit(*s->p)) {
		const char *unit;

		while (take(s, "0123456789"))
			;
		unit = s->n && *s->p ? strchr(units, *s->p) : NULL;
		if (!unit)
			return false;
		is_gap = has_any && unit != units;
		if (is_gap)
			return false;
		has_any = true;
		units = unit + 1;
		take(s, unit);
	}
	return has_any;
}

static bool is_duration(struct str s)
{
	bool has_date;

	if (!take(&s, "P"))
		return false;
	if (s.n && s.p[s.n - 1] == 'W')
		return take_units(&s, "W") && s.n == 0;
	has_date = s.n && *s.p != 'T';
	if (has_date && !take_units(&s, "YMD"))
		return false;
	if (take(&s, "T"))
		return take_units(&s, "HMS") && s.n == 0;
	return has_date && s.n == 0;
}

static bool is_hostname(struct str s)
{
	if (s.n == 0 || s.n > HOSTNAME_BYTES_MAX || s.p[s.n - 1] == '.')
		return false;
	while (s.n) {
		struct str label = str_cut(&s, '.');

		if (label.n == 0 || label.n > LABEL_BYTES_MAX || label.p[0] == '-' ||
		    label.p[label.n - 1] == '-')
			return false;
		for (size_t i = 0; i < label.n; i++)
			if (!is_alnum(label.p[i]) && label.p[i] != '-')
				return false;
		/* Two hyphens there are reserved for encoded names (RFC 5891, 4.2.3.1). */
		if (label.n >= 4 && label.p[2] == '-' && label.p[3] == '-' &&
		    !str_eq_nocase((struct str){ label.p, 2 }, STR("xn")))
			return false;
	}
	return true;
}

static bool is_ipv4(struct str s)
{
	for (int part = 0; part < 4; part++) {
		int v = 0, digits = 0;

		if (part > 0 && !take(&s, "."))
			return false;
		if (s.n > 1 && *s.p == '0' && is_digit(s.p[1]))
			return false;
		for (; s.n && is_digit(*s.p) && digits < 4; digits++, s.p++, s.n--)
			v = v * 10 + (*s.p - '0');
		if (digits == 0 || v > 255)
			return false;
	}
	return s.n == 0;
}

static bool is_ipv6(struct str s)
{
	int groups = 0;
	bool has_gap = false;

	if (str_starts(s, STR("::"))) {
		has_gap = true;
		s.p += 2;
		s.n -= 2;
	}
	while (s.n) {
		size_t digits = 0;

		if (memchr(s.p, '.', s.n) && !memchr(s.p, ':', s.n)) {
			groups += 2;
			return is_ipv4(s) && (has_gap ? groups < 8 : groups == 8);
		}
		for (; s.n && str_hex(*s.p) >= 0 && digits < 5; digits++, s.p++, s.n--)
			;
		if (digits == 0 || digits > 4)
			return false;
		groups++;
		if (s.n == 0)
			break;
		if (!take(&s, ":") || s.n == 0)
			return false;
		if (*s.p == ':') {
			if (has_gap)
				return false;
			has_gap = take(&s, ":");
		}
	}
	return has_gap ? groups < 8 : groups == 8;
}

static bool is_atom_text(struct str s)
{
	if (s.n == 0 || s.p[0] == '.' || s.p[s.n - 1] == '.')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.' ? s.p[i - 1] == '.' :
		    !is_alnum(s.p[i]) && (!s.p[i] || !strchr("!#$%&'*+-/=?^_`{|}~", s.p[i])))
			return false;
	}
	return true;
}

static bool is_quoted_text(struct str s)
{
	if (s.n < 2 || s.p[0] != '"' || s.p[s.n - 1] != '"')
		return false;
	for (size_t i = 1; i < s.n - 1; i++) {
		if (s.p[i] == '\\' && ++i == s.n - 1)
			return false;
		else if (s.p[i] == '"' && s.p[i - 1] != '\\')
			return false;
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	}
	return true;
}

static bool is_email(struct str s)
{
	size_t at = s.n;
	struct str local, domain;

	while (at > 0 && s.p[at - 1] != '@')
		at--;
	if (at == 0)
		return false;
	local = (struct str){ s.p, at - 1 };
	domain = (struct str){ s.p + at, s.n - at };
	if (local.n > EMAIL_LOCAL_BYTES_MAX || (!is_atom_text(local) && !is_quoted_text(local)))
		return false;
	if (domain.n > 2 && domain.p[0] == '[' && domain.p[domain.n - 1] == ']') {
		domain = (struct str){ domain.p + 1, domain.n - 2 };
		return str_starts(domain, STR("IPv6:")) ?
			is_ipv6((struct str){ domain.p + 5, domain.n - 5 }) : is_ipv4(domain);
	}
	return is_hostname(domain);
}

/* Characters that a part of a URI may have: letters, digits, those of the set, and %41. */
static bool is_uri_part(struct str s, const char *set)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '%') {
			if (i + 2 >= s.n || str_hex(s.p[i + 1]) < 0 || str_hex(s.p[i + 2]) < 0)
				return false;
			i += 2;
		} else if (!is_alnum(s.p[i]) && (!s.p[i] || !strchr(set, s.p[i]))) {
			return false;
		}
	}
	return true;
}

#define UNRESERVED "-._~"
#define SUB_DELIMITERS "!$&'()*+,;="

static bool is_authority(struct str s)
{
	struct str host = s, user = { 0 };

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '@') {
			user = (struct str){ s.p, i };
			host = (struct str){ s.p + i + 1, s.n - i - 1 };
			break;
		}
	if (!is_uri_part(user, UNRESERVED SUB_DELIMITERS ":"))
		return false;
	if (host.n && *host.p == '[') {
		const char *close = memchr(host.p, ']', host.n);
		struct str inside;

		if (!close)
			return false;
		inside = (struct str){ host.p + 1, (size_t)(close - host.p) - 1 };
		if (!is_ipv6(inside) && !(inside.n > 1 && (*inside.p | 0x20) == 'v'))
			return false;
		host = (struct str){ close + 1, host.n - inside.n - 2 };
		if (host.n && *host.p != ':')
			return false;
	}
	if (!is_uri_part(str_cut(&host, ':'), UNRESERVED SUB_DELIMITERS))
		return false;
	for (size_t i = 0; i < host.n; i++)
		if (!is_digit(host.p[i]))
			return false;
	return true;
}

static bool is_uri_rest(struct str s)
{
	struct str rest = s, before, path;

	before = str_cut(&rest, '#');
	if (!is_uri_part(rest, UNRESERVED SUB_DELIMITERS ":@/?"))
		return false;
	path = str_cut(&before, '?');
	if (!is_uri_part(before, UNRESERVED SUB_DELIMITERS ":@/?"))
		return false;
	if (str_starts(path, STR("//"))) {
		size_t n = 2;

		while (n < path.n && path.p[n] != '/')
			n++;
		if (!is_authority((struct str){ path.p + 2, n - 2 }))
			return false;
		path = (struct str){ path.p + n, path.n - n };
	}
	return is_uri_part(path, UNRESERVED SUB_DELIMITERS ":@/");
}

/* The length of "scheme:" at the front, or 0. */
static size_t scheme_length(struct str s)
{
	size_t n = 0;

	if (s.n == 0 || !is_letter(*s.p))
		return 0;
	while (n < s.n && (is_alnum(s.p[n]) || s.p[n] == '+' || s.p[n] == '-' || s.p[n] == '.'))
		n++;
	return n < s.n && s.p[n] == ':' ? n + 1 : 0;
}

static bool is_uri(struct str s)
{
	size_t n = scheme_length(s);

	return n > 0 && is_uri_rest((struct str){ s.p + n, s.n - n });
}

static bool is_uri_reference(struct str s)
{
	if (is_uri(s))
		return true;
	for (size_t i = 0; i < s.n && !strchr("/?#", s.p[i]); i++)
		if (s.p[i] == ':') /* the first part of a relative path has no colon */
			return false;
	return is_uri_rest(s);
}

/* One {...} of a template: an operator, then names with :n or *. */
static bool is_expression(struct str s)
{
	if (s.n && *s.p && strchr("+#./;?&=,!@|", *s.p))
		s = (struct str){ s.p + 1, s.n - 1 };
	if (s.n == 0 || s.p[s.n - 1] == ',')
		return false;
	while (s.n) {
		struct str name = str_cut(&s, ','), length = name;

		name = str_cut(&length, ':');
		if (length.n > 4 || (length.n && *length.p == '0'))
			return false;
		for (size_t i = 0; i < length.n; i++)
			if (!is_digit(length.p[i]))
				return false;
		if (name.n && name.p[name.n - 1] == '*')
			name.n--;
		if (name.n == 0 || !is_uri_part(name, "_.") || name.p[0] == '.' ||
		    name.p[name.n - 1] == '.' || memmem(name.p, name.n, "..", 2))
			return false;
	}
	return true;
}

static bool is_uri_template(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char *close;

		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f || strchr("\"<>\\^`|}", s.p[i]))
			return false;
		if (s.p[i] != '{')
			continue;
		close = memchr(s.p + i, '}', s.n - i);
		if (!close || !is_expression((struct str){ s.p + i + 1,
							 (size_t)(close - s.p) - i - 1 }))
			return false;
		i = (size_t)(close - s.p);
	}
	return true;
}

static bool is_uuid(struct str s)
{
	if (s.n != 36)
		return false;
	for (size_t i = 0; i < 36; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? s.p[i] != '-' : str_hex(s.p[i]) < 0)
			return false;
	return true;
}

static bool is_json_pointer(struct str s)
{
	if (s.n && *s.p != '/')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '~' && (i + 1 == s.n || (s.p[i + 1] != '0' && s.p[i + 1] != '1')))
			return false;
	return true;
}

static bool is_relative_pointer(struct str s)
{
	if (s.n == 0 || !is_digit(*s.p) || (s.n > 1 && *s.p == '0' && is_digit(s.p[1])))
		return false;
	while (s.n && is_digit(*s.p))
		take(&s, "0123456789");
	return str_is(s, "#") || is_json_pointer(s);
}

static const struct format table[] = {
	{ "date-time", is_date_time, "2024-05-17T09:30:00Z" },
	{ "date", is_date, "2024-05-17" },
	{ "time", is_time, "09:30:00Z" },
	{ "duration", is_duration, "P3DT4H" },
	{ "email", is_email, "alan.turing@example.com" },
	{ "hostname", is_hostname, "www.example.com" },
	{ "ipv4", is_ipv4, "192.0.2.17" },
	{ "ipv6", is_ipv6, "2001:db8::17" },
	{ "uri", is_uri, "https://example.com/a?b=c" },
	{ "uri-reference", is_uri_reference, "/a/b?c=d" },
	{ "uri-template", is_uri_template, "https://example.com/{name}" },
	{ "uuid", is_uuid, "2f4a1f0e-8c1d-4b52-9a54-0d9f6a3f7c11" },
	{ "json-pointer", is_json_pointer, "/a/0" },
	{ "relative-json-pointer", is_relative_pointer, "1/a" },
};

const struct format *format_find(struct str name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (str_is(name, table[i].name))
			return &table[i];
	return NULL;
}

bool format_holds(const struct format *f, struct str text)
{
	return f->holds(text);
}

const char *format_example(const struct format *f)
{
	return f->example;
}
