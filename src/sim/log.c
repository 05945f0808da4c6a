/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - one line of --requests: the request as it came. Bodies that are not
 * UTF-8 are spelled in base64; forms are taken apart.
 */
#include <inttypes.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "http/form.h"
#include "json/write.h"
#include "sim/server.h"

/* "key": bytes as text, or "key": null, "key_base64": "..". */
static void bytes_write(struct buf *out, const char *key, struct str bytes)
{
	buf_printf(out, "\"%s\": ", key);
	if (utf8_is_valid(bytes)) {
		json_quote(out, bytes, false);
		return;
	}
	buf_printf(out, "null, \"%s_base64\": \"", key);
	base64_encode(bytes, out);
	buf_add_char(out, '"');
}

static void name_write(struct buf *out, struct str name)
{
	struct buf lower = { 0 };

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		buf_add_char(&lower, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
	}
	json_quote(out, buf_str(&lower), false);
	buf_release(&lower);
}

/* Header lines as an object in their order; of a repeated one every value stands there. */
static void headers_write(struct buf *out, struct str head)
{
	struct str line;
	bool is_first = true;

	buf_add_text(out, ", \"headers\": {");
	http_head_line(&head, &line);
	while (http_head_line(&head, &line)) {
		struct str name = str_cut(&line, ':');

		if (!is_first)
			buf_add_text(out, ", ");
		is_first = false;
		name_write(out, name);
		buf_add_text(out, ": ");
		json_quote(out, str_trim(line), false);
	}
	buf_add_char(out, '}');
}

static void quoted_or_null(struct buf *out, const char *key, struct str text)
{
	buf_printf(out, "\"%s\": ", key);
	if (text.p)
		json_quote(out, text, false);
	else
		buf_add_text(out, "null");
	buf_add_text(out, ", ");
}

static void parts_write(struct buf *out, struct str type, struct str body)
{
	struct form form;
	struct form_part part;
	bool is_first = true;

	if (!form_open(&form, type, body))
		return;
	buf_add_text(out, ", \"parts\": [");
	while (form_next(&form, &part, NULL) > 0) {
		buf_add_text(out, is_first ? "{" : ", {");
		is_first = false;
		quoted_or_null(out, "name", part.name);
		quoted_or_null(out, "filename", part.filename);
		quoted_or_null(out, "content_type", part.type);
		bytes_write(out, "body", part.body);
		buf_add_char(out, '}');
	}
	buf_add_char(out, ']');
}

void log_request(struct conn *c, struct str path, struct str body)
{
	struct buf *out = &c->sim->requests.lines;
	struct str head = buf_str(&c->head);
	struct str id = http_head_value(head, "x-request-id");

	if (!c->sim->requests.path)
		return;
	buf_printf(out, "{\"recv_ns\": %" PRId64 ", \"method\": ", c->recv_ns);
	json_quote(out, c->request.method, false);
	buf_add_text(out, ", \"path\": ");
	json_quote(out, path, false);
	buf_add_text(out, ", ");
	quoted_or_null(out, "request_id", id);
	buf_printf(out, "\"authorization\": %s",
		   http_head_value(head, "authorization").p ? "true" : "false");
	headers_write(out, head);
	buf_add_text(out, ", ");
	bytes_write(out, "body", body);
	parts_write(out, http_head_value(head, "content-type"), body);
	buf_add_text(out, "}\n");
	sim_flush_soon(c->sim);
}
