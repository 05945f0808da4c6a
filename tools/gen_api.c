/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_api.c - schema/api.json as an OpenAPI document, as TypeScript types and as a page.
 *
 * A shape is an object of members or one type; a type is written as in the file's "notation":
 *
 *   text number integer bool null any object    what is built in
 *   Name                                        another shape
 *   [X] {X} X|Y "word"                          list, object with keys that are data, either, this
 *
 * and what follows " - " is about it. Shapes under "answers" end with data_version and query_ms.
 */
#include "gen_api.h"

#define OPENAPI_VERSION "3.1.0"

/* ---- types as they are written ---- */

struct api_note api_note_of(const struct json_value *v)
{
	struct str whole = json_text(v, STR(""));
	const char *dash = strstr(whole.p, " - ");

	if (!dash)
		return (struct api_note){ whole, STR("") };
	return (struct api_note){ { whole.p, (size_t)(dash - whole.p) }, str_of(dash + 3) };
}

struct str api_alternative(struct str *rest)
{
	struct str one = *rest;
	unsigned depth = 0;
	bool is_quoted = false;

	for (size_t i = 0; i < rest->n; i++) {
		char c = rest->p[i];

		if (c == '"')
			is_quoted = !is_quoted;
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}';
		if (c == '|' && depth == 0 && !is_quoted) {
			one.n = i;
			rest->p += i + 1;
			rest->n -= i + 1;
			return one;
		}
	}
	*rest = (struct str){ 0 };
	return one;
}

struct str api_inside(struct str one)
{
	return (struct str){ one.p + 1, one.n - 2 };
}

static const struct api_basic basics[] = {
	{ "text", "string", "string" }, { "number", "number", "number" },
	{ "integer", "integer", "number" }, { "bool", "boolean", "boolean" },
	{ "null", "null", "null" }, { "object", "object", "Record<string, unknown>" },
};

const struct api_basic *api_basic_of(struct str name)
{
	for (size_t i = 0; i < sizeof(basics) / sizeof(*basics); i++)
		if (str_is(name, basics[i].name))
			return &basics[i];
	return NULL;
}

struct str api_member(struct str key, bool *is_optional)
{
	*is_optional = key.n && key.p[key.n - 1] == '?';
	key.n -= *is_optional;
	return key;
}

const char *const api_lists[API_LISTS] = { "types", "answers", "analysis" };

bool api_is_answer(size_t list)
{
	return strcmp(api_lists[list], "answers") == 0;
}

bool api_is_media(struct str type)
{
	return type.n && memchr(type.p, '/', type.n);
}

/* ---- checking ---- */

static bool is_shape(const struct json_value *api, struct str name)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	for (size_t l = 0; l < API_LISTS; l++)
		if (json_get(json_get(api, api_lists[l]), text))
			return true;
	return false;
}

static int check_type(const struct json_value *api, const char *where, struct str type,
		      struct err *e)
{
	do {
		struct str one = api_alternative(&type);

		if (!one.n)
			return err_set(e, ERR_PARSE, "%s: a type is empty", where);
		if (one.p[0] == '[' || one.p[0] == '{') {
			if (check_type(api, where, api_inside(one), e) < 0)
				return -1;
		} else if (one.p[0] != '"' && !api_basic_of(one) && !str_is(one, "any") &&
			   !is_shape(api, one)) {
			return err_set(e, ERR_PARSE, "%s: no type is called \"%.*s\"", where,
				       (int)one.n, one.p);
		}
	} while (type.n);
	return 0;
}

static int check_members(const struct json_value *api, const char *where,
			 const struct json_value *v, struct err *e)
{
	if (v && v->kind == JSON_STRING)
		return api_is_media(v->text) ? 0 : check_type(api, where, api_note_of(v).type, e);
	for (size_t i = 0; v && i < v->count; i++)
		if (check_members(api, where, &v->item[i], e) < 0)
			return -1;
	return 0;
}

static int check_route(const struct json_value *api, size_t i, struct err *e)
{
	const struct json_value *routes = json_get(api, "routes"), *r = &routes->item[i];
	static const char *const texts[] = { "method", "path", "group", "summary" };
	const char *path = gen_member(r, "path");

	for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
		if (!*gen_member(r, texts[k]))
			return err_set(e, ERR_PARSE, "route %zu (%s): no text \"%s\"", i, path,
				       texts[k]);
	for (size_t k = 0; k < i; k++)
		if (strcmp(path, gen_member(&routes->item[k], "path")) == 0 &&
		    strcmp(gen_member(r, "method"), gen_member(&routes->item[k], "method")) == 0)
			return err_set(e, ERR_PARSE, "%s: two routes of one method", path);
	if (!json_get(r, "answer") || !json_get(r, "flags"))
		return err_set(e, ERR_PARSE, "%s: no \"answer\" or no \"flags\"", path);
	if (check_members(api, path, json_get(r, "query"), e) < 0 ||
	    check_members(api, path, json_get(r, "request"), e) < 0)
		return -1;
	return check_members(api, path, json_get(r, "answer"), e);
}

int gen_api_check(const struct json_value *api, struct err *e)
{
	const struct json_value *routes = json_get(api, "routes");

	if (!routes || routes->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected a list \"routes\"");
	for (size_t l = 0; l < API_LISTS; l++) {
		const struct json_value *shapes = json_get(api, api_lists[l]);

		if (!shapes || shapes->kind != JSON_OBJECT)
			return err_set(e, ERR_PARSE, "expected an object \"%s\"", api_lists[l]);
		for (size_t i = 0; i < shapes->count; i++)
			if (check_members(api, shapes->key[i].p, &shapes->item[i], e) < 0)
				return -1;
	}
	for (size_t i = 0; i < routes->count; i++)
		if (check_route(api, i, e) < 0)
			return -1;
	return 0;
}

/* ---- OpenAPI ---- */

static void put_pair(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	json_put_text(w, text);
}

static void put_schema(struct json_writer *w, struct str type);

/* The members of the schema of one alternative, within an object that is open. */
static void put_one(struct json_writer *w, struct str one)
{
	const struct api_basic *basic = api_basic_of(one);
	char ref[96];

	if (basic) {
		put_pair(w, "type", basic->json);
	} else if (one.p[0] == '[') {
		put_pair(w, "type", "array");
		json_key(w, "items");
		put_schema(w, api_inside(one));
	} else if (one.p[0] == '{') {
		put_pair(w, "type", "object");
		json_key(w, "additionalProperties");
		put_schema(w, api_inside(one));
	} else if (one.p[0] == '"') {
		json_key(w, "const");
		json_put_str(w, api_inside(one));
	} else if (!str_is(one, "any")) {
		snprintf(ref, sizeof(ref), "#/components/schemas/%.*s", (int)one.n, one.p);
		put_pair(w, "$ref", ref);
	}
}

/* Whether all alternatives are words in quotes, or all are built in. */
static bool all_are(struct str type, bool is_quoted)
{
	while (type.n) {
		struct str one = api_alternative(&type);

		if (is_quoted ? one.p[0] != '"' : !api_basic_of(one))
			return false;
	}
	return true;
}

static void put_alternatives(struct json_writer *w, struct str type)
{
	bool is_enum = all_are(type, true), is_basic = !is_enum && all_are(type, false);

	json_key(w, is_enum ? "enum" : is_basic ? "type" : "anyOf");
	json_begin_array(w);
	while (type.n) {
		struct str one = api_alternative(&type);

		if (is_enum)
			json_put_str(w, api_inside(one));
		else if (is_basic)
			json_put_text(w, api_basic_of(one)->json);
		else
			put_schema(w, one);
	}
	json_end_array(w);
}

static void put_type(struct json_writer *w, struct str type)
{
	struct str rest = type;

	api_alternative(&rest);
	if (rest.n)
		put_alternatives(w, type);
	else
		put_one(w, type);
}

static void put_schema(struct json_writer *w, struct str type)
{
	json_begin_object(w);
	put_type(w, type);
	json_end_object(w);
}

static void put_noted(struct json_writer *w, const struct json_value *v)
{
	struct api_note note = api_note_of(v);

	json_begin_object(w);
	put_type(w, note.type);
	if (note.about.n) {
		json_key(w, "description");
		json_put_str(w, note.about);
	}
	json_end_object(w);
}

static void put_required(struct json_writer *w, const struct json_value *shape, bool has_more)
{
	bool is_optional;

	json_key(w, "required");
	json_begin_array(w);
	for (size_t i = 0; i < shape->count; i++) {
		struct str name = api_member(shape->key[i], &is_optional);

		if (!is_optional)
			json_put_str(w, name);
	}
	if (has_more) {
		json_put_text(w, "data_version");
		json_put_text(w, "query_ms");
	}
	json_end_array(w);
}

static void put_shape(struct json_writer *w, const struct json_value *shape, bool has_more)
{
	bool is_optional;

	if (shape->kind == JSON_STRING) {
		put_noted(w, shape);
		return;
	}
	json_begin_object(w);
	put_pair(w, "type", "object");
	json_key(w, "properties");
	json_begin_object(w);
	for (size_t i = 0; i < shape->count; i++) {
		json_key_str(w, api_member(shape->key[i], &is_optional));
		put_noted(w, &shape->item[i]);
	}
	if (has_more) {
		json_key(w, "data_version");
		put_schema(w, STR("integer"));
		json_key(w, "query_ms");
		put_schema(w, STR("number"));
	}
	json_end_object(w);
	put_required(w, shape, has_more);
	json_key(w, "additionalProperties");
	json_put_bool(w, false);
	json_end_object(w);
}

/* {"content": {TYPE: {"schema": ...}}} of a shape or of media types. */
static void put_content(struct json_writer *w, struct str type, const char *media)
{
	bool is_media = api_is_media(type);

	json_key(w, "content");
	json_begin_object(w);
	do {
		struct str one = is_media ? api_alternative(&type) : str_of(media);

		json_key_str(w, one);
		json_begin_object(w);
		json_key(w, "schema");
		put_schema(w, is_media ? STR("any") : type);
		json_end_object(w);
	} while (is_media && type.n);
	json_end_object(w);
}

static void put_parameter(struct json_writer *w, struct str name, const char *in,
			  struct api_note note)
{
	bool is_path = strcmp(in, "path") == 0;

	json_begin_object(w);
	json_key(w, "name");
	json_put_str(w, name);
	put_pair(w, "in", in);
	json_key(w, "required");
	json_put_bool(w, is_path);
	if (note.about.n) {
		json_key(w, "description");
		json_put_str(w, note.about);
	}
	json_key(w, "schema");
	put_schema(w, note.type);
	json_end_object(w);
}

static void put_parameters(struct json_writer *w, const struct json_value *r)
{
	const struct json_value *query = json_get(r, "query");
	const char *open = strchr(gen_member(r, "path"), '{');

	json_key(w, "parameters");
	json_begin_array(w);
	for (; open; open = strchr(open + 1, '{'))
		put_parameter(w, (struct str){ open + 1, strcspn(open + 1, "}") }, "path",
			      (struct api_note){ STR("text"), STR("") });
	for (size_t i = 0; query && i < query->count; i++)
		put_parameter(w, query->key[i], "query", api_note_of(&query->item[i]));
	json_end_array(w);
}

static void put_answers(struct json_writer *w, const struct json_value *r)
{
	const struct json_value *answer = json_get(r, "answer");

	json_key(w, "responses");
	json_begin_object(w);
	for (size_t i = 0; i < answer->count; i++) {
		json_key_str(w, answer->key[i]);
		json_begin_object(w);
		put_pair(w, "description", gen_member(r, "summary"));
		put_content(w, api_note_of(&answer->item[i]).type, "application/json");
		json_end_object(w);
	}
	json_key(w, "default");
	json_begin_object(w);
	put_pair(w, "description", "What is wrong");
	put_content(w, STR("Problem"), "application/problem+json");
	json_end_object(w);
	json_end_object(w);
}

/* "GET", "/api/data/experiments/{id}" as get_data_experiments_id. */
static void put_operation_id(struct json_writer *w, const struct json_value *r)
{
	const char *path = gen_member(r, "path");
	struct buf name = { 0 };

	for (const char *m = gen_member(r, "method"); *m; m++)
		buf_add_char(&name, (char)(*m | 0x20));
	if (strncmp(path, "/api", 4) == 0)
		path += 4;
	for (; *path; path++)
		if (*path == '/' || *path == '.')
			buf_add_char(&name, '_');
		else if (*path != '{' && *path != '}')
			buf_add_char(&name, *path);
	json_key(w, "operationId");
	json_put_str(w, buf_str(&name));
	buf_release(&name);
}

static void put_route(struct json_writer *w, const struct json_value *r)
{
	struct str flags = json_text(json_get(r, "flags"), STR(""));
	const struct json_value *request = json_get(r, "request");
	char method[16] = "";

	for (const char *m = gen_member(r, "method"); *m && strlen(method) + 1 < sizeof(method); m++)
		method[strlen(method)] = (char)(*m | 0x20);
	json_key(w, method);
	json_begin_object(w);
	put_operation_id(w, r);
	put_pair(w, "summary", gen_member(r, "summary"));
	json_key(w, "tags");
	json_begin_array(w);
	json_put_text(w, gen_member(r, "group"));
	json_end_array(w);
	put_parameters(w, r);
	if (request) {
		json_key(w, "requestBody");
		json_begin_object(w);
		json_key(w, "required");
		json_put_bool(w, true);
		put_content(w, api_note_of(request).type, "application/json");
		json_end_object(w);
	}
	put_answers(w, r);
	json_key(w, "security");
	json_begin_array(w);
	if (!strstr(flags.p, "open")) {
		json_put_raw(w, STR("{\"token\": []}"));
		json_put_raw(w, STR("{}"));
	}
	json_end_array(w);
	json_key(w, "x-flags");
	json_begin_array(w);
	while (flags.n)
		json_put_str(w, str_cut(&flags, ' '));
	json_end_array(w);
	json_end_object(w);
}

static void put_paths(struct json_writer *w, const struct json_value *api)
{
	const struct json_value *routes = json_get(api, "routes");

	json_key(w, "paths");
	json_begin_object(w);
	for (size_t i = 0; i < routes->count; i++) {
		const char *path = gen_member(&routes->item[i], "path");
		bool is_first = true;

		for (size_t k = 0; k < i; k++)
			is_first &= strcmp(path, gen_member(&routes->item[k], "path")) != 0;
		if (!is_first)
			continue;
		json_key(w, path);
		json_begin_object(w);
		for (size_t k = i; k < routes->count; k++)
			if (strcmp(path, gen_member(&routes->item[k], "path")) == 0)
				put_route(w, &routes->item[k]);
		json_end_object(w);
	}
	json_end_object(w);
}

void gen_api_openapi(const struct json_value *api, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 1;
	json_begin_object(&w);
	put_pair(&w, "openapi", OPENAPI_VERSION);
	json_key(&w, "info");
	json_begin_object(&w);
	put_pair(&w, "title", "ProfLLM dashboard");
	put_pair(&w, "version", "1");
	put_pair(&w, "description", gen_member(api, "about"));
	json_end_object(&w);
	put_paths(&w, api);
	json_key(&w, "components");
	json_begin_object(&w);
	json_key(&w, "schemas");
	json_begin_object(&w);
	for (size_t l = 0; l < API_LISTS; l++) {
		const struct json_value *shapes = json_get(api, api_lists[l]);

		for (size_t i = 0; i < shapes->count; i++) {
			json_key_str(&w, shapes->key[i]);
			put_shape(&w, &shapes->item[i], api_is_answer(l));
		}
	}
	json_end_object(&w);
	json_key(&w, "securitySchemes");
	json_put_raw(&w, STR("{\"token\": {\"type\": \"http\", \"scheme\": \"bearer\"}}"));
	json_end_object(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

void gen_api_literal(const struct json_value *api, struct buf *out)
{
	struct buf text = { 0 };
	struct str rest;

	gen_api_openapi(api, &text);
	buf_add_text(out, "/* Generated by tools/gen.c from schema/api.json. */\n");
	rest = buf_str(&text);
	while (rest.n) {
		json_quote(out, str_trim(str_cut(&rest, '\n')), true);
		buf_add_text(out, " \"\\n\"\n");
	}
	buf_release(&text);
}
