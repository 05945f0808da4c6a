/* SPDX-License-Identifier: Apache-2.0 */
/* uri.c - see uri.h. */
#include "constrain/uri.h"

#include "base/buf.h"

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
