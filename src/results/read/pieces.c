/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - see pieces.h. */
#include "results/read/pieces.h"

#include <string.h>

#include "results/read/files.h"
#include "results/read/read.h"

#define TOO_LARGE "a result may have at most %u MiB: leave out what it says of each request, for example " \
	"with jq 'del(.ttfts, .itls, .generated_texts, .errors, .input_lens, .output_lens, " \
	".start_times)', or split a suite into the documents of its experiments. JSON lines and lists " \
	"of results may have any size"

static struct str skip_blanks(struct str s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t' || *s.p == '\r' || *s.p == '\n')) {
		s.p++;
		s.n--;
	}
	return s;
}

/* The length of the value at the front, by its brackets; 0: incomplete. */
static size_t value_length(struct str s)
{
	size_t depth = 0, i = 0;
	bool is_text = false;

	for (; i < s.n; i++) {
		char c = s.p[i];

		if (is_text) {
			i += c == '\\';
			is_text = c != '"';
		} else if (c == '"') {
			is_text = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == '}' || c == ']') && depth > 0) {
			if (--depth == 0)
				return i + 1;
		} else if (depth == 0 && (c == ',' || c == ']')) {
			return i;
		}
	}
	return 0;
}

static int too_large(const struct result_pieces *p, struct err *e)
{
	return err_set(e, ERR_LIMIT, "%s %zu has more than %u MiB; " TOO_LARGE,
		       p->is_list ? "result" : "line", p->last, INGEST_BYTES_MAX >> 20,
		       INGEST_BYTES_MAX >> 20);
}

int result_pieces_begin(struct result_pieces *p, struct str text, size_t bytes, struct err *e)
{
	struct str from = skip_blanks(str_starts(text, STR("\xef\xbb\xbf")) ?
				      (struct str){ text.p + 3, text.n - 3 } : text);
	const char *end;

	*p = (struct result_pieces){ .rest = from, .bytes = bytes };
	if (result_is_packed(text))
		return err_set(e, ERR_LIMIT, "a packed file may have at most %u MiB, packed and "
			       "unpacked: unpack it first", INGEST_BYTES_MAX >> 20);
	if (from.n && *from.p == '[') {
		p->is_list = true;
		p->rest = (struct str){ from.p + 1, from.n - 1 };
		return 0;
	}
	/* One object over several lines, or all in one, cannot be cut. */
	end = from.n ? memchr(from.p, '\n', from.n) : NULL;
	if (!end || *from.p != '{' ||
	    value_length(from) != (size_t)(end - from.p) - (end > from.p && end[-1] == '\r'))
		return err_set(e, ERR_LIMIT, "the file has %zu MiB and is not a list of results: "
			       TOO_LARGE, text.n >> 20, INGEST_BYTES_MAX >> 20);
	return 0;
}

/* The next line with its end; empty: none. */
static struct str next_line(struct str rest)
{
	const char *end = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;

	return (struct str){ rest.p, end ? (size_t)(end - rest.p) + 1 : rest.n };
}

/* The next member of the list; empty: it is over. -1: the list is not closed. */
static int next_member(struct result_pieces *p, struct str *out, struct err *e)
{
	struct str s = skip_blanks(p->rest);

	*out = (struct str){ 0 };
	if (s.n && *s.p == ']') {
		if (skip_blanks((struct str){ s.p + 1, s.n - 1 }).n)
			return err_set(e, ERR_PARSE, "after the list of %zu results something follows",
				       p->last);
		return 0; /* and also the next time */
	}
	if (p->last && s.n && *s.p == ',')
		s = skip_blanks((struct str){ s.p + 1, s.n - 1 });
	else if (p->last && s.n)
		return err_set(e, ERR_PARSE, "after result %zu: expected ',' or ']'", p->last);
	*out = (struct str){ s.p, value_length(s) };
	if (!out->n)
		return err_set(e, ERR_PARSE, "the list of results ends within result %zu", p->last + 1);
	p->rest = (struct str){ s.p + out->n, s.n - out->n };
	return 0;
}

static int add_members(struct result_pieces *p, struct buf *out, struct err *e)
{
	struct str member;

	while (out->len < p->bytes) {
		struct result_pieces before = *p;

		if (next_member(p, &member, e) < 0)
			return -1;
		if (!member.n)
			break;
		p->last++;
		if (member.n > INGEST_BYTES_MAX - 2)
			return too_large(p, e);
		if (out->len + member.n > INGEST_BYTES_MAX - 2) {
			*p = before;
			break;
		}
		buf_add_char(out, out->len ? ',' : '[');
		buf_add_str(out, member);
	}
	if (out->len)
		buf_add_char(out, ']');
	return 0;
}

static int add_lines(struct result_pieces *p, struct buf *out, struct err *e)
{
	while (p->rest.n && out->len < p->bytes) {
		struct str line = next_line(p->rest);

		if (out->len && out->len + line.n > INGEST_BYTES_MAX)
			break;
		p->last++;
		if (line.n > INGEST_BYTES_MAX)
			return too_large(p, e);
		buf_add_str(out, line);
		p->rest = (struct str){ p->rest.p + line.n, p->rest.n - line.n };
	}
	return 0;
}

int result_pieces_next(struct result_pieces *p, struct buf *out, struct err *e)
{
	size_t before = p->last;

	buf_reset(out);
	if ((p->is_list ? add_members(p, out, e) : add_lines(p, out, e)) < 0)
		return -1;
	p->first = before + 1;
	return p->last > before;
}
