/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - see head.h. */
#include "client/http/head.h"

#include "core/base/limits.h"

const char *http_excerpt(char out[HTTP_EXCERPT_BYTES], struct str s)
{
	size_t n = s.n < HTTP_EXCERPT_BYTES - 4 ? s.n : HTTP_EXCERPT_BYTES - 4;

	for (size_t i = 0; i < n; i++)
		out[i] = s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : '?';
	memcpy(out + n, "...", s.n > n ? 4 : 1);
	if (s.n <= n)
		out[n] = 0;
	return out;
}

ptrdiff_t http_head_end(struct str in, struct err *e)
{
	size_t n = in.n < HTTP_HEAD_BYTES_MAX ? in.n : HTTP_HEAD_BYTES_MAX;
	const char *end = in.p + n;
	const char *at = in.p;

	while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		if (at < end && *at == '\n')
			return at + 1 - in.p;
		if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
			return at + 2 - in.p;
	}
	if (n == HTTP_HEAD_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the HTTP head is longer than %d bytes "
			       "(HTTP_HEAD_BYTES_MAX)", HTTP_HEAD_BYTES_MAX);
	return 0;
}

bool http_head_line(struct str *rest, struct str *line)
{
	*line = str_cut(rest, '\n');
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	return line->n > 0;
}

static struct str trim_blanks(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s.p++, s.n--;
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

struct str http_head_value(struct str head, const char *name)
{
	struct str wanted = str_of(name), line;

	http_head_line(&head, &line);
	while (http_head_line(&head, &line)) {
		if (line.n > wanted.n && line.p[wanted.n] == ':' &&
		    str_eq_nocase((struct str){ line.p, wanted.n }, wanted))
			return trim_blanks((struct str){ line.p + wanted.n + 1,
							 line.n - wanted.n - 1 });
	}
	return (struct str){ NULL, 0 };
}

/* RFC 9110's token characters: what a header name is made of. */
static const bool is_token[256] = {
	['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1,
	['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1,
	['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
	['8'] = 1, ['9'] = 1,
	['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1,
	['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1,
	['Q'] = 1, ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1,
	['Y'] = 1, ['Z'] = 1,
	['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1,
	['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1,
	['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1,
	['y'] = 1, ['z'] = 1,
};

bool http_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_token[(unsigned char)s.p[i]])
			return false;
	return s.n > 0;
}

bool http_header_is_plain(struct str name, struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] == 0 || value.p[i] == '\r' || value.p[i] == '\n')
			return false;
	return http_is_token(name);
}

static int bad_line(struct str line, const char *why, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];

	return err_set(e, ERR_NET, "malformed HTTP header line '%s': %s",
		       http_excerpt(text, line), why);
}

static int header_split(struct str line, struct str *name, struct str *value, struct err *e)
{
	size_t n = 0;

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return bad_line(line, "folded lines are not allowed", e);
	while (n < line.n && is_token[(unsigned char)line.p[n]])
		n++;
	if (n == line.n || line.p[n] != ':' || n == 0)
		return bad_line(line, "expected a name and a colon", e);
	if (memchr(line.p, 0, line.n) || memchr(line.p, '\r', line.n))
		return bad_line(line, "NUL or a lone CR inside", e);
	*name = (struct str){ line.p, n };
	*value = trim_blanks((struct str){ line.p + n + 1, line.n - n - 1 });
	return 0;
}

static int length_read(struct str value, struct http_framing *f, struct err *e)
{
	struct str whole = value;
	char text[HTTP_EXCERPT_BYTES];

	do {
		struct str one = trim_blanks(str_cut(&value, ','));
		uint64_t length;

		if (!str_to_u64(one, &length) || length > HTTP_CHUNK_BYTES_MAX)
			return err_set(e, ERR_NET, "bad Content-Length '%s'",
				       http_excerpt(text, whole));
		if (f->has_length && f->length != length)
			return err_set(e, ERR_NET, "two different Content-Length values, "
				       "%llu and %llu", (unsigned long long)f->length,
				       (unsigned long long)length);
		f->has_length = true;
		f->length = length;
	} while (value.n);
	return 0;
}

static void connection_read(struct str value, struct http_framing *f)
{
	while (value.n) {
		struct str one = trim_blanks(str_cut(&value, ','));

		if (str_eq_nocase(one, STR("close")))
			f->is_close = true;
		else if (str_eq_nocase(one, STR("keep-alive")))
			f->is_keep_alive = true;
	}
}

static bool is_event_stream(struct str value)
{
	static const struct str type = { "text/event-stream", 17 };

	return value.n >= type.n && str_eq_nocase((struct str){ value.p, type.n }, type) &&
	       (value.n == type.n || value.p[type.n] == ';' || value.p[type.n] == ' ' ||
		value.p[type.n] == '\t');
}

static int header_apply(struct str name, struct str value, struct http_framing *f,
			struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];

	switch (name.n) { /* the length tells nearly all names apart */
	case 4:
		if (str_eq_nocase(name, STR("Host")))
			f->has_host = true;
		break;
	case 6:
		if (str_eq_nocase(name, STR("Expect")) &&
		    str_eq_nocase(value, STR("100-continue")))
			f->is_continue_wanted = true;
		break;
	case 10:
		if (str_eq_nocase(name, STR("Connection")))
			connection_read(value, f);
		break;
	case 12:
		if (str_eq_nocase(name, STR("Content-Type")))
			f->is_event_stream = is_event_stream(value);
		break;
	case 14:
		if (str_eq_nocase(name, STR("Content-Length")))
			return length_read(value, f, e);
		break;
	case 16:
		if (str_eq_nocase(name, STR("Content-Encoding")) && value.n &&
		    !str_eq_nocase(value, STR("identity")))
			f->coding = value;
		break;
	case 17:
		if (!str_eq_nocase(name, STR("Transfer-Encoding")))
			break;
		if (f->is_chunked || !str_eq_nocase(value, STR("chunked")))
			return err_set(e, ERR_NET, "Transfer-Encoding '%s' is not supported, "
				       "only chunked is", http_excerpt(text, value));
		f->is_chunked = true;
		break;
	}
	return 0;
}

bool http_head_is_framing(struct str name)
{
	static const char *const names[] = { "Content-Length", "Transfer-Encoding", "Connection",
					     "Expect" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq_nocase(name, str_of(names[i])))
			return true;
	return false;
}

int http_framing_read(struct str head, struct http_framing *f, struct err *e)
{
	struct str line, name, value;
	int count = 0;

	*f = (struct http_framing){ 0 };
	http_head_line(&head, &line);
	while (http_head_line(&head, &line)) {
		if (++count > HTTP_HEADERS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d HTTP header lines "
				       "(HTTP_HEADERS_MAX)", HTTP_HEADERS_MAX);
		if (header_split(line, &name, &value, e) < 0 ||
		    header_apply(name, value, f, e) < 0)
			return -1;
	}
	if (f->has_length && f->is_chunked)
		return err_set(e, ERR_NET, "both Content-Length and Transfer-Encoding are given");
	return 0;
}
