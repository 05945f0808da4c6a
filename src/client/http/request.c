/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - see request.h. */
#include "client/http/request.h"

#include <assert.h>

/* ---- reading ---- */

static enum http_found broken(struct http_request *r, unsigned status)
{
	r->state = HTTP_BODY_BROKEN;
	r->is_keep_alive = false;
	r->bad_status = (uint16_t)status;
	return HTTP_BAD;
}

/* The target has no blanks and no control characters. */
static bool target_is_plain(struct str target)
{
	for (size_t i = 0; i < target.n; i++)
		if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f)
			return false;
	return target.n > 0;
}

/* "POST /v1/completions HTTP/1.1". Returns 0, or the status to refuse with. */
static unsigned line_read(struct http_request *r, struct str line, bool *is_old, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];
	struct str whole = line;

	r->method = str_cut(&line, ' ');
	r->target = str_cut(&line, ' ');
	if (str_starts(line, STR("HTTP/")) && line.n == 8 && line.p[6] == '.' &&
	    line.p[5] != '1') {
		err_set(e, ERR_NET, "the client speaks HTTP/%c, expected HTTP/1.1", line.p[5]);
		return 505;
	}
	if (!http_is_token(r->method) || !target_is_plain(r->target) || line.n != 8 ||
	    memcmp(line.p, "HTTP/1.", 7) != 0 || line.p[7] < '0' || line.p[7] > '9') {
		err_set(e, ERR_NET, "malformed HTTP request line '%s'", http_excerpt(text, whole));
		return 400;
	}
	*is_old = line.p[7] == '0';
	return 0;
}

/* Returns 0, or the status to refuse with. */
static unsigned head_read(struct http_request *r, struct str head, struct err *e)
{
	struct http_framing f;
	struct err why = { 0 };
	struct str rest = head, line;
	bool is_old = false;
	unsigned status;

	http_head_line(&rest, &line);
	status = line_read(r, line, &is_old, e);
	if (status)
		return status;
	if (http_framing_read(head, &f, &why) < 0) {
		err_set(e, why.code, "%s", why.text);
		return why.code == ERR_LIMIT ? 431 : 400;
	}
	if (!f.has_host && !is_old) {
		err_set(e, ERR_NET, "the request has no Host header");
		return 400;
	}
	r->is_chunked = f.is_chunked;
	r->is_continue_wanted = f.is_continue_wanted && !is_old;
	r->is_keep_alive = !f.is_close && (!is_old || f.is_keep_alive);
	r->left = f.length;
	r->state = f.is_chunked ? HTTP_BODY_SIZE : HTTP_BODY_LENGTH;
	return 0;
}

static enum http_found head_next(struct http_request *r, struct str *in, struct str *part,
				 struct err *e)
{
	unsigned status;
	ptrdiff_t n;

	while (in->n && (in->p[0] == '\n' ||
			 (in->n > 1 && in->p[0] == '\r' && in->p[1] == '\n'))) {
		size_t skip = in->p[0] == '\n' ? 1 : 2;

		in->p += skip;
		in->n -= skip;
	}
	if (in->n == 0 || (in->n == 1 && in->p[0] == '\r'))
		return HTTP_NEED;
	if (in->p[0] == 0x16) {
		err_set(e, ERR_NET, "the client uses TLS, but this port does not");
		return broken(r, 400);
	}
	if (!http_is_token((struct str){ in->p, 1 })) {
		err_set(e, ERR_NET, "what the client sent is not HTTP");
		return broken(r, 400);
	}
	n = http_head_end(*in, e);
	if (n <= 0)
		return n == 0 ? HTTP_NEED : broken(r, 431);
	*part = (struct str){ in->p, (size_t)n };
	status = head_read(r, *part, e);
	if (status)
		return broken(r, status);
	in->p += n;
	in->n -= (size_t)n;
	return HTTP_HEAD;
}

enum http_found http_request_next(struct http_request *r, struct str *in, struct str *part,
				  struct err *e)
{
	enum http_found found;

	if (r->state == HTTP_BODY_NONE)
		return head_next(r, in, part, e);
	if (r->state == HTTP_BODY_BROKEN) {
		err_set(e, ERR_NET, "the connection carried a malformed request before");
		return HTTP_BAD;
	}
	found = http_body_next(&r->left, &r->state, in, part, e);
	return found == HTTP_BAD ? broken(r, 400) : found;
}

bool http_request_is_between(const struct http_request *r)
{
	return r->state == HTTP_BODY_NONE;
}

/* ---- writing ---- */

const char *http_status_reason(unsigned status)
{
	static const struct { unsigned status; const char *reason; } rows[] = {
		{ 100, "Continue" }, { 200, "OK" }, { 201, "Created" }, { 202, "Accepted" },
		{ 204, "No Content" }, { 206, "Partial Content" }, { 301, "Moved Permanently" },
		{ 302, "Found" }, { 303, "See Other" }, { 304, "Not Modified" },
		{ 307, "Temporary Redirect" }, { 308, "Permanent Redirect" },
		{ 400, "Bad Request" }, { 401, "Unauthorized" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" }, { 408, "Request Timeout" },
		{ 409, "Conflict" }, { 411, "Length Required" }, { 413, "Content Too Large" },
		{ 414, "URI Too Long" }, { 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" }, { 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" }, { 431, "Request Header Fields Too Large" },
		{ 499, "Client Closed Request" }, { 500, "Internal Server Error" },
		{ 501, "Not Implemented" }, { 502, "Bad Gateway" },
		{ 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" }, { 507, "Insufficient Storage" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return "Unknown";
}

void http_write_head(struct buf *out, unsigned status, const char *type, int64_t length,
		     const char *extra)
{
	assert(status >= 100 && status <= 999);
	assert(length >= HTTP_LENGTH_NONE);
	buf_printf(out, "HTTP/1.1 %u %s\r\n", status, http_status_reason(status));
	if (type)
		buf_printf(out, "Content-Type: %s\r\n", type);
	if (length == HTTP_LENGTH_CHUNKED)
		buf_add_str(out, STR("Transfer-Encoding: chunked\r\n"));
	else if (length >= 0)
		buf_printf(out, "Content-Length: %lld\r\n", (long long)length);
	if (extra)
		buf_add_text(out, extra);
	buf_add_str(out, STR("\r\n"));
}

void http_write_chunk(struct buf *out, struct str data)
{
	char line[18]; /* 16 digits and CRLF, filled from the end */
	size_t at = sizeof(line) - 2;

	if (data.n == 0)
		return;
	memcpy(line + at, "\r\n", 2);
	for (size_t n = data.n; n; n >>= 4)
		line[--at] = "0123456789abcdef"[n & 15];
	buf_add(out, line + at, sizeof(line) - at);
	buf_add_str(out, data);
	buf_add(out, "\r\n", 2);
}

void http_write_last_chunk(struct buf *out)
{
	buf_add_str(out, STR("0\r\n\r\n"));
}
