/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/static.c - the front end: files that lie in the program, packed.
 *
 * Files below assets/ have their content's hash in their name and are kept for good; index.html is
 * asked for anew each time. A path without a dot is a view of the page, which finds out itself.
 */
#include "web/static.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/zip.h"
#include "web/state.h"

#define TAG_DIGITS 16
#define NO_PAGES \
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ProfLLM</title>" \
	"<h1>ProfLLM</h1><p>This build has no pages: it was made with <code>make WEB=0</code>. " \
	"<code>make</code> builds with them; it needs node and npm. " \
	"The API is there: <a href=\"/api/health\">/api/health</a>, " \
	"<a href=\"/api/openapi.json\">/api/openapi.json</a>.</p></html>\n"

const char *static_type(struct str name)
{
	static const struct { const char *end, *type; } types[] = {
		{ ".html", "text/html; charset=utf-8" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },
		{ ".json", "application/json" }, { ".svg", "image/svg+xml" },
		{ ".png", "image/png" }, { ".ico", "image/x-icon" },
		{ ".woff2", "font/woff2" }, { ".txt", "text/plain; charset=utf-8" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (str_ends(name, str_of(types[i].end)))
			return types[i].type;
	return "application/octet-stream";
}

static const struct web_asset *find(struct str name)
{
	for (const struct web_asset *a = web_assets; a->name; a++)
		if (str_is(name, a->name))
			return a;
	return NULL;
}

/* As it lies there when the client unpacks it, else unpacked here. */
static void put(struct exchange *x, const struct web_asset *a)
{
	struct web_answer *out = &x->answer;
	char hex[DIGEST_HEX];
	size_t got = 0;

	digest_hex(DIGEST_SHA256, (struct str){ a->packed, a->packed_bytes }, hex);
	snprintf(x->etag, sizeof(x->etag), "W/\"%.*s\"", TAG_DIGITS, hex);
	exchange_add_header(x, "Vary", "Accept-Encoding");
	exchange_add_header(x, "Cache-Control",
			    str_starts(str_of(a->name), STR("assets/")) ?
			    "public, max-age=31536000, immutable" : "no-cache");
	web_bytes(out, static_type(str_of(a->name)));
	if (exchange_has_tag(x, x->etag)) {
		out->status = 304;
	} else if (exchange_takes_gzip(x)) {
		buf_add(&out->body, a->packed, a->packed_bytes);
		x->is_gzip = true;
	} else if (buf_reserve(&out->body, a->bytes) == 0 &&
		   zip_unpack((struct str){ a->packed, a->packed_bytes }, out->body.data, a->bytes,
			      &got) == ZIP_DONE) {
		out->body.len = got;
	}
}

void static_answer(struct exchange *x)
{
	struct str path = { x->raw_path.p + 1, x->raw_path.n - 1 };
	const struct web_asset *a = find(path.n ? path : STR("index.html"));
	bool is_view = !memchr(path.p, '.', path.n);

	x->is_answered = true;
	if (!a && is_view)
		a = find(STR("index.html"));
	if (a) {
		put(x, a);
	} else if (is_view) {
		web_bytes(&x->answer, static_type(STR(".html")));
		buf_add_str(&x->answer.body, STR(NO_PAGES));
		exchange_add_header(x, "Cache-Control", "no-cache");
	} else {
		exchange_refuse(x, 404, "there is nothing at this address");
	}
}
