/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document and the table of routes tell the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "web/web_internal.h"

static const struct { unsigned flag; const char *word; } words[] = {
	{ ROUTE_CHANGES, "changes" }, { ROUTE_RAW, "raw" }, { ROUTE_OPEN, "open" },
	{ ROUTE_READS, "reads" }, { ROUTE_PARTS, "parts" },
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static struct json_value *document_of(struct arena *a)
{
	struct json_value *v = NULL;
	struct err e = { 0 };

	if (json_parse(a, str_of(data_api_text), &v, &e) < 0)
		fail_msg("%s", e.text);
	return v;
}

static const struct web_route *route_of(struct str path, struct str method)
{
	for (size_t i = 0; i < routes_count(); i++) {
		const struct web_route *r = routes_at(i);

		if (str_is(path, r->path) && str_eq_nocase(method, str_of(r->method)))
			return r;
	}
	return NULL;
}

static bool has_word(const struct json_value *list, const char *word)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(list->item[i].text, word))
			return true;
	return false;
}

static void every_path_has_its_route(void **state)
{
	struct arena a = { 0 };
	const struct json_value *paths = json_get(document_of(&a), "paths");

	(void)state;
	assert_true(paths->count > 20);
	for (size_t i = 0; i < paths->count; i++)
		for (size_t k = 0; k < paths->item[i].count; k++) {
			const struct json_value *operation = &paths->item[i].item[k];
			const struct web_route *r = route_of(paths->key[i], paths->item[i].key[k]);

			if (!r)
				fail_msg("the document has %s %s, the server has not",
					 paths->item[i].key[k].p, paths->key[i].p);
			for (size_t f = 0; f < COUNT(words); f++)
				if (has_word(json_get(operation, "x-flags"), words[f].word) !=
				    !!(r->flags & words[f].flag))
					fail_msg("%s %s: flag %s", r->method, r->path, words[f].word);
		}
	arena_release(&a);
}

static void every_route_has_its_path(void **state)
{
	struct arena a = { 0 };
	const struct json_value *paths = json_get(document_of(&a), "paths");

	(void)state;
	for (size_t i = 0; i < routes_count(); i++) {
		const struct web_route *r = routes_at(i);
		const struct json_value *path = json_get(paths, r->path);
		char method[16] = "";

		for (size_t k = 0; r->method[k] && k + 1 < sizeof(method); k++)
			method[k] = (char)(r->method[k] | 0x20);
		if (!json_get(path, method))
			fail_msg("the server has %s %s, the document has not", r->method, r->path);
	}
	arena_release(&a);
}

/* Every "$ref" of the document names a schema that is there. */
static void check_refs(const struct json_value *v, const struct json_value *schemas)
{
	const struct json_value *ref = json_get(v, "$ref");
	const char *head = "#/components/schemas/";

	if (ref && ref->kind == JSON_STRING && !json_get(schemas, ref->text.p + strlen(head)))
		fail_msg("%s does not exist", ref->text.p);
	if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			check_refs(&v->item[i], schemas);
}

static void references_lead_somewhere(void **state)
{
	struct arena a = { 0 };
	const struct json_value *all = document_of(&a);

	(void)state;
	check_refs(all, json_get(json_get(all, "components"), "schemas"));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_has_its_route),
		cmocka_unit_test(every_route_has_its_path),
		cmocka_unit_test(references_lead_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
