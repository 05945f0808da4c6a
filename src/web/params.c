/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/params.c - what a request may hold, as schema/api.json declares it: the parameters of its
 * address, and the members of its body. Others are refused: somebody who asks for page=2 or
 * misspells a member must not get an answer to another question.
 *
 * The OpenAPI document is read once, at the start, so that what is declared is what is taken.
 */
#include <string.h>

#include "web/data_api.h"
#include "web/data_ask.h"
#include "web/state.h"

/* Words between blanks; members NULL: the body is of any shape, or there is none. */
struct params { const char *query, *members; };

static const struct json_value *operation_of(const struct json_value *paths,
					     const struct web_route *route)
{
	char method[16] = "";

	for (size_t i = 0; route->method[i] && i + 1 < sizeof(method); i++)
		method[i] = (char)(route->method[i] | 0x20);
	return json_get(json_get(paths, route->path), method);
}

static void add_word(struct buf *out, struct str word)
{
	if (out->len)
		buf_add_char(out, ' ');
	buf_add_str(out, word);
}

static const char *words_of(struct arena *a, struct buf *words)
{
	const char *kept = arena_text(a, buf_str(words));

	buf_release(words);
	return kept;
}

static const char *query_of(const struct json_value *operation, struct arena *a)
{
	const struct json_value *list = json_get(operation, "parameters");
	struct buf words = { 0 };

	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "in"), STR("")), "query"))
			add_word(&words, json_text(json_get(&list->item[i], "name"), STR("")));
	return words_of(a, &words);
}

/* Of a body that is one named object. */
static const char *members_of(const struct json_value *operation, const struct json_value *schemas,
			      struct arena *a)
{
	static const char head[] = "#/components/schemas/";
	const struct json_value *content = json_get(json_get(operation, "requestBody"), "content");
	const struct json_value *ref =
		json_get(json_get(json_get(content, "application/json"), "schema"), "$ref");
	const char *name = json_text(ref, STR("")).p;
	const struct json_value *members;
	struct buf words = { 0 };

	if (strncmp(name, head, strlen(head)) != 0)
		return NULL;
	members = json_get(json_get(schemas, name + strlen(head)), "properties");
	for (size_t i = 0; members && i < members->count; i++)
		add_word(&words, members->key[i]);
	return members ? words_of(a, &words) : NULL;
}

int params_open(struct web *w, struct err *e)
{
	struct arena scratch = { 0 };
	struct json_value *api;
	const struct json_value *paths, *schemas;
	struct params *made;
	int rc = json_parse(&scratch, str_of(data_api_text), &api, e);

	if (rc == 0) {
		paths = json_get(api, "paths");
		schemas = json_get(json_get(api, "components"), "schemas");
		made = arena_alloc(&w->arena, routes_count() * sizeof(*made));
		for (size_t i = 0; i < routes_count(); i++) {
			const struct json_value *operation = operation_of(paths, routes_at(i));

			made[i].query = query_of(operation, &w->arena);
			made[i].members = members_of(operation, schemas, &w->arena);
		}
		w->params = made;
	}
	arena_release(&scratch);
	return rc;
}

static bool has_word(const char *list, struct str word)
{
	struct str rest = str_of(list);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), word))
			return true;
	return false;
}

int params_check(struct exchange *x, struct err *e)
{
	const struct web_request *r = &x->request;
	const struct params *known = &x->web->params[x->route_at];
	struct str rest = r->query, key;

	while (request_key(r, &rest, &key))
		if (!has_word(known->query, key))
			return asked_unknown(&x->answer, e, r->arena, "parameter", key, known->query);
	if (!known->members || !r->body || r->body->kind != JSON_OBJECT)
		return 0;
	for (size_t i = 0; i < r->body->count; i++)
		if (!has_word(known->members, r->body->key[i]))
			return asked_unknown(&x->answer, e, r->arena, "member", r->body->key[i],
					     known->members);
	return 0;
}
