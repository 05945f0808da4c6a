/* SPDX-License-Identifier: Apache-2.0 */
/* response.c - see response.h. */
#include "client/http/response.h"

static enum http_found broken(struct http_response *r)
{
	r->state = HTTP_BODY_BROKEN;
	r->is_keep_alive = false;
	return HTTP_BAD;
}

/* Detects from the first bytes that something is not an HTTP/1 answer. */
static int start_check(struct str in, struct err *e)
{
	static const char magic[] = "HTTP/";
	size_t n = in.n < 5 ? in.n : 5;

	if (n == 0 || memcmp(in.p, magic, n) == 0)
		return 0;
	if (in.p[0] == 0x15 || in.p[0] == 0x16)
		return err_set(e, ERR_TLS_SCHEME, "the server speaks TLS: use https://");
	if (in.p[0] == 0)
		return err_set(e, ERR_NET, "the server speaks HTTP/2 or another binary protocol, "
			       "not HTTP/1.1");
	return err_set(e, ERR_NET, "what the server sent does not begin with HTTP/1");
}

/* "HTTP/1.1 200 OK"; the reason may be missing. */
static int status_read(struct str line, unsigned *status, bool *is_old, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];
	const char *p = line.p;

	if (line.n >= 6 && (p[5] == '2' || p[5] == '3'))
		return err_set(e, ERR_NET, "the server answered in HTTP/%c, expected HTTP/1.1",
			       p[5]);
	if (line.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || p[7] < '0' || p[7] > '9' ||
	    p[8] != ' ' || p[9] < '1' || p[9] > '9' || p[10] < '0' || p[10] > '9' ||
	    p[11] < '0' || p[11] > '9' || (line.n > 12 && p[12] != ' '))
		return err_set(e, ERR_NET, "malformed HTTP status line '%s'",
			       http_excerpt(text, line));
	*is_old = p[7] == '0';
	*status = (unsigned)(p[9] - '0') * 100 + (unsigned)(p[10] - '0') * 10 +
		  (unsigned)(p[11] - '0');
	return 0;
}

static int head_read(struct http_response *r, struct str head, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];
	struct http_framing f;
	struct str rest = head, line;
	unsigned status = 0;
	bool is_old = false, has_body;

	http_head_line(&rest, &line);
	if (status_read(line, &status, &is_old, e) < 0 || http_framing_read(head, &f, e) < 0)
		return -1;
	if (status == 101)
		return err_set(e, ERR_NET, "the server switched protocols (status 101) unasked");
	r->status = (uint16_t)status;
	has_body = status >= 200 && status != 204 && status != 304 && !r->is_head_request &&
		   !(r->is_connect_request && status < 300);
	if (has_body && f.coding.p)
		return err_set(e, ERR_NET, "the answer is compressed (Content-Encoding: %s) though "
			       "identity was asked for", http_excerpt(text, f.coding));
	r->is_event_stream = f.is_event_stream;
	r->is_chunked = has_body && f.is_chunked;
	r->is_until_close = has_body && !f.is_chunked && !f.has_length;
	r->is_keep_alive = !f.is_close && (!is_old || f.is_keep_alive) && !r->is_until_close;
	r->left = has_body && !r->is_chunked ? f.length : 0;
	r->state = r->is_chunked ? HTTP_BODY_SIZE :
		   r->is_until_close ? HTTP_BODY_CLOSE : HTTP_BODY_LENGTH;
	return 0;
}

/* At the start of an answer: skips empty lines and 1xx heads, then reads the head. */
static enum http_found head_next(struct http_response *r, struct str *in, struct str *part,
				 struct err *e)
{
	for (;;) {
		ptrdiff_t n;

		while (in->n && (in->p[0] == '\n' ||
				 (in->n > 1 && in->p[0] == '\r' && in->p[1] == '\n'))) {
			size_t skip = in->p[0] == '\n' ? 1 : 2;

			in->p += skip;
			in->n -= skip;
		}
		if (in->n == 0 || (in->n == 1 && in->p[0] == '\r'))
			return HTTP_NEED;
		if (start_check(*in, e) < 0)
			return broken(r);
		n = http_head_end(*in, e);
		if (n <= 0)
			return n == 0 ? HTTP_NEED : broken(r);
		*part = (struct str){ in->p, (size_t)n };
		if (head_read(r, *part, e) < 0)
			return broken(r);
		in->p += n;
		in->n -= (size_t)n;
		if (r->status >= 200)
			return HTTP_HEAD;
		r->state = HTTP_BODY_NONE;
	}
}

enum http_found http_response_next(struct http_response *r, struct str *in, struct str *part,
				   struct err *e)
{
	if (r->state == HTTP_BODY_NONE)
		return head_next(r, in, part, e);
	if (r->state == HTTP_BODY_BROKEN) {
		err_set(e, ERR_NET, "the connection carried a malformed answer before");
		return HTTP_BAD;
	}
	return http_body_next(&r->left, &r->state, in, part, e);
}

int http_response_eof(struct http_response *r, struct err *e)
{
	uint64_t left = r->left;
	uint8_t state = r->state;

	r->state = HTTP_BODY_NONE;
	r->left = 0;
	r->is_keep_alive = false;
	switch (state) {
	case HTTP_BODY_NONE:
		return err_set(e, ERR_NET, "the server closed the connection without an answer");
	case HTTP_BODY_CLOSE:
		return 0;
	case HTTP_BODY_LENGTH:
		if (left == 0)
			return 0;
		return err_set(e, ERR_NET, "the server closed the connection %llu bytes before "
			       "the end of the body", (unsigned long long)left);
	case HTTP_BODY_BROKEN:
		return err_set(e, ERR_NET, "the connection carried a malformed answer before");
	default:
		return err_set(e, ERR_NET, "the server closed the connection before the last "
			       "chunk of the body");
	}
}

struct str http_head_reason(struct str head)
{
	struct str line;

	http_head_line(&head, &line);
	if (line.n <= 13)
		return STR("");
	return (struct str){ line.p + 13, line.n - 13 };
}
