/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null.c - an API for measuring the driver alone, with the null transport: an empty body, and every
 * event but [DONE] is one token.
 */
#include "client/endpoint/endpoint.h"

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	(void)self;
	(void)o;
	(void)s;
	(void)e;
	buf_add_text(&out->body, "{}");
	return 0;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	(void)self;
	(void)e;
	out->bits = str_eq(data, STR("[DONE]")) ? DECODED_DONE : DECODED_TOKEN | DECODED_ANSWER;
	out->text = data;
	return 0;
}

static const char *finish(const struct request_row *row)
{
	return row->first_event_ns ? NULL : "no event came";
}

const struct endpoint endpoint_null = {
	.name = "null", .suffix = "", .api_name = "null", .default_path = "/",
	.is_streaming = true, .encode = encode, .decode = decode,
	.finish = finish,
};
