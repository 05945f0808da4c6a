/* SPDX-License-Identifier: Apache-2.0 */
/* web/request.c - what route.h offers to those who answer a request. */
#include "http/url.h"
#include "web/exchange.h"
#include "web/state.h"

/* "+" and %XX; what cannot be decoded stays as it is. */
static struct str decode(struct arena *a, struct str s)
{
	char *plain = arena_text(a, s);
	struct buf out = { 0 };
	struct str done;

	for (size_t i = 0; i < s.n; i++)
		if (plain[i] == '+')
			plain[i] = ' ';
	done = (struct str){ plain, s.n };
	if (url_add_decoded(&out, done))
		done = arena_str(a, buf_str(&out));
	buf_release(&out);
	return done;
}

bool request_key(const struct web_request *r, struct str *rest, struct str *key)
{
	while (rest->n) {
		struct str pair = str_cut(rest, '&');

		*key = decode(r->arena, str_cut(&pair, '='));
		if (key->n)
			return true;
	}
	return false;
}

static bool find(const struct web_request *r, const char *name, struct str *value)
{
	struct str rest = r->query;

	while (rest.n) {
		struct str pair = str_cut(&rest, '&'), key = str_cut(&pair, '=');

		if (str_is(decode(r->arena, key), name)) {
			*value = decode(r->arena, pair);
			return true;
		}
	}
	return false;
}

struct str web_param(const struct web_request *r, const char *name)
{
	struct str value = STR("");

	find(r, name, &value);
	return value;
}

bool web_has_param(const struct web_request *r, const char *name)
{
	struct str value;

	return find(r, name, &value);
}

void web_bytes(struct web_answer *a, const char *type)
{
	a->type = type;
	buf_reset(&a->body);
}

void web_set_header(const struct web_request *r, struct web_answer *a, const char *name,
		    const char *value)
{
	struct web_header *h = arena_alloc(r->arena, sizeof(*h));

	h->name = name;
	h->value = arena_text(r->arena, str_of(value));
	h->next = a->header;
	a->header = h;
}
