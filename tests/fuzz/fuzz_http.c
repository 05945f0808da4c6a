/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http.c - the response and the request reader, fed whole and cut into
 * pieces: both ways must find the same messages, the same bodies and the same
 * end. The first byte chooses the reader and how the rest is cut.
 */
#include <assert.h>

#include "client/http/request.h"
#include "client/http/response.h"
#include "mutate.h"
#include "core/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct http_response response;
	struct http_request request;
	struct buf kept, log;
	struct err e;
	bool is_request, is_broken;
};

static enum http_found next(struct run *r, struct str *in, struct str *part)
{
	return r->is_request ? http_request_next(&r->request, in, part, &r->e) :
			       http_response_next(&r->response, in, part, &r->e);
}

static void log_head(struct run *r, struct str head)
{
	struct str value = http_head_value(head, "content-type");

	buf_add_str(&r->log, head);
	if (r->is_request)
		buf_printf(&r->log, "{%.*s %.*s %d%d%d}", (int)r->request.method.n,
			   r->request.method.p, (int)r->request.target.n, r->request.target.p,
			   r->request.is_keep_alive, r->request.is_chunked,
			   r->request.is_continue_wanted);
	else
		buf_printf(&r->log, "{%d %d%d%d%d %.*s}", r->response.status,
			   r->response.is_keep_alive, r->response.is_chunked,
			   r->response.is_until_close, r->response.is_event_stream,
			   (int)http_head_reason(head).n, http_head_reason(head).p);
	buf_add_str(&r->log, value);
}

static void feed(struct run *r, const uint8_t *data, size_t n)
{
	struct str in, part;
	char *copy;

	if (r->is_broken)
		return;
	buf_add(&r->kept, data, n);
	copy = malloc(r->kept.len + 1);
	assert(copy);
	memcpy(copy, r->kept.data, r->kept.len);
	in = (struct str){ copy, r->kept.len };
	for (enum http_found found; (found = next(r, &in, &part)) != HTTP_NEED;) {
		if (found == HTTP_HEAD) {
			log_head(r, part);
		} else if (found == HTTP_BODY) {
			assert(part.n > 0);
			buf_add_str(&r->log, part);
		} else if (found == HTTP_END) {
			buf_add_text(&r->log, "{end}");
		} else {
			buf_printf(&r->log, "{bad %d}", r->is_request ? r->request.bad_status : 0);
			r->is_broken = true;
			break;
		}
	}
	buf_cut(&r->kept, r->kept.len - in.n);
	free(copy);
}

static void finish(struct run *r)
{
	if (!r->is_broken && !r->is_request && http_response_eof(&r->response, &r->e) < 0)
		buf_add_text(&r->log, "{cut}");
	buf_add_text(&r->log, r->e.text);
	buf_release(&r->kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole = { 0 }, cut = { 0 };
	uint32_t seed;

	if (size < 1)
		return 0;
	seed = data[0];
	whole.is_request = cut.is_request = seed & 1;
	whole.response.is_head_request = cut.response.is_head_request = (seed & 6) == 6;
	data++, size--;
	feed(&whole, data, size);
	for (size_t at = 0; at < size;) {
		size_t n = 1;

		if (seed & 8) {
			seed = (seed * 1664525u + 1013904223u) | 8;
			n = 1 + (seed >> 24) % 24;
		}
		if (n > size - at)
			n = size - at;
		feed(&cut, data + at, n);
		at += n;
	}
	finish(&whole);
	finish(&cut);
	assert(str_eq(buf_str(&whole.log), buf_str(&cut.log)));
	buf_release(&whole.log);
	buf_release(&cut.log);
	return 0;
}

/* Lines of the message; the first byte stays. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return size < 2 ? LLVMFuzzerMutate(data, size, max) :
			  1 + mutate_pieces(data + 1, size - 1, max - 1, '\n', seed);
}
