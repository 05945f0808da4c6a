/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dashboard reads of a request by itself: target, Host, Origin, tokens, tags, ranges, the
 * parts of a form. The first line is the target, the second a header's value, the rest a form.
 */
#include <stddef.h>
#include <stdint.h>

#include "check.h"
#include "mutate.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "web/api.h"
#include "web/web_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void targets(struct arena *a, struct str line)
{
	struct str rest = line, path = str_cut(&rest, '?');
	struct web_request r = { .arena = a, .query = rest };
	struct route_found found;

	routes_find(path, "GET", a, &found);
	CHECK(!found.route || *found.allow);
	for (int i = 0; i < 2; i++)
		CHECK(!found.id[i].p || !memchr(found.id[i].p, 0, found.id[i].n));
	CHECK(!web_param(&r, "name").n || web_has_param(&r, "name"));
}

static void headers(struct str line)
{
	struct exchange x = { .head = { .if_none_match = line, .accept_encoding = line } };
	struct str host = auth_host_part(line), token = auth_bearer(line);
	char name[AUTH_COOKIE_CHARS_MAX];

	auth_cookie_name(line, name);
	CHECK(host.n <= line.n && token.n <= line.n && auth_cookie(line, name).n <= line.n);
	CHECK(host.p || !auth_is_host(line, "127.0.0.1", NULL, 0));
	auth_is_origin(line, line);
	auth_is_loopback(line);
	exchange_has_tag(&x, "W/\"tag\"");
	exchange_takes_gzip(&x);
}

static void forms(struct arena *a, struct str body)
{
	struct web_request r = { .arena = a, .raw = body,
				 .content_type = STR("multipart/form-data; boundary=e") };
	struct upload_form p;
	struct upload_part part;

	if (parts_open(&r, &p, NULL) < 0)
		return;
	for (struct err e = { 0 }; parts_next(&p, &part, &e) > 0;) {
		CHECK(utf8_is_valid(part.name) && utf8_is_valid(part.field));
		CHECK(part.bytes.p >= body.p && part.bytes.p + part.bytes.n <= body.p + body.n);
		for (size_t i = 0; i < part.name.n; i++)
			CHECK((unsigned char)part.name.p[i] >= 0x20);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data, n }, first, second;
	struct auth *auth = mem_alloc(sizeof(*auth));
	struct arena a = { 0 };

	auth_parse(auth, text, NULL);
	auth_release(auth);
	free(auth);
	first = str_cut(&text, '\n');
	second = str_cut(&text, '\n');
	targets(&a, first);
	headers(second);
	forms(&a, text);
	arena_release(&a);
	return 0;
}

/* Lines of the request, headers of its parts. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return mutate_pieces(data, size, max, '\n', seed);
}
