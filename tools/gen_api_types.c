/* SPDX-License-Identifier: Apache-2.0 */
/* gen_api_types.c - schema/api.json as TypeScript types and as a page; see gen_api.c. */
#include "gen_api.h"

/* ---- TypeScript ---- */

#define LINE_MAX 106

static void put_type(struct buf *out, struct str type);

static void put_one(struct buf *out, struct str one)
{
	const struct api_basic *basic = api_basic_of(one);
	struct str within = one, first;

	if (basic) {
		buf_add_text(out, basic->typescript);
	} else if (str_is(one, "any")) {
		buf_add_text(out, "unknown");
	} else if (one.p[0] == '{') {
		buf_add_text(out, "Record<string, ");
		put_type(out, api_inside(one));
		buf_add_char(out, '>');
	} else if (one.p[0] == '[') {
		within = api_inside(one);
		first = api_alternative(&within);
		if (within.n)
			buf_add_char(out, '(');
		put_type(out, api_inside(one));
		buf_add_text(out, within.n ? ")[]" : "[]");
	} else if (one.p[0] == '"') {
		first = api_inside(one);
		buf_printf(out, "'%.*s'", (int)first.n, first.p);
	} else {
		buf_add_str(out, one);
	}
}

static void put_type(struct buf *out, struct str type)
{
	while (type.n) {
		put_one(out, api_alternative(&type));
		if (type.n)
			buf_add_text(out, " | ");
	}
}

static void put_about(struct buf *out, struct str about, unsigned depth)
{
	if (!about.n)
		return;
	while (depth--)
		buf_add_char(out, '\t');
	buf_printf(out, "/** %.*s */\n", (int)about.n, about.p);
}

static void put_member(struct buf *out, struct str key, struct str type)
{
	bool is_optional;
	struct str name = api_member(key, &is_optional);

	buf_printf(out, "%.*s%s: ", (int)name.n, name.p, is_optional ? "?" : "");
	put_type(out, type);
}

/* "{ a: number; b?: string }", when nothing is said about a member and it fits into a line. */
static bool put_short(struct buf *out, const struct json_value *shape, size_t room)
{
	struct buf line = { 0 };
	bool is_short = true;

	buf_add_char(&line, '{');
	for (size_t i = 0; i < shape->count; i++) {
		struct api_note note = api_note_of(&shape->item[i]);

		is_short &= note.about.n == 0;
		buf_add_text(&line, i ? "; " : " ");
		put_member(&line, shape->key[i], note.type);
	}
	buf_add_text(&line, " }");
	is_short &= line.len <= room;
	if (is_short)
		buf_add_str(out, buf_str(&line));
	buf_release(&line);
	return is_short;
}

/* Members of which nothing is said share lines; what is said stands behind one, or above it. */
static void put_members(struct buf *out, const struct json_value *shape)
{
	struct buf member = { 0 };
	size_t column = 0; /* of the line that is open; 0: none is */

	buf_add_text(out, "{\n");
	for (size_t i = 0; i < shape->count; i++) {
		struct api_note note = api_note_of(&shape->item[i]);
		size_t comment = note.about.n ? note.about.n + 4 : 0;

		buf_reset(&member);
		put_member(&member, shape->key[i], note.type);
		if (column && (comment || column + member.len + 2 > LINE_MAX)) {
			buf_add_char(out, '\n');
			column = 0;
		}
		if (comment && member.len + comment + 10 > LINE_MAX) {
			put_about(out, note.about, 1);
			comment = 0;
		}
		buf_printf(out, "%s%s;", column ? " " : "\t", member.data);
		column += member.len + (column ? 2 : 9);
		if (!note.about.n)
			continue;
		if (comment)
			buf_printf(out, " // %.*s", (int)note.about.n, note.about.p);
		buf_add_char(out, '\n');
		column = 0;
	}
	buf_add_text(out, column ? "\n}" : "}");
	buf_release(&member);
}

static void put_shape(struct buf *out, struct str name, const struct json_value *shape,
		      bool is_answer)
{
	struct api_note note = api_note_of(shape);

	put_about(out, note.about, 0);
	if (shape->kind == JSON_STRING) {
		buf_printf(out, "export type %.*s = ", (int)name.n, name.p);
		put_type(out, note.type);
		buf_add_text(out, ";\n");
	} else if (is_answer && !shape->count) {
		buf_printf(out, "export type %.*s = Answer;\n", (int)name.n, name.p);
	} else {
		buf_printf(out, "export interface %.*s %s", (int)name.n, name.p,
			   is_answer ? "extends Answer " : "");
		if (!put_short(out, shape, LINE_MAX - name.n - (is_answer ? 32 : 18)))
			put_members(out, shape);
		buf_add_char(out, '\n');
	}
}

/* What a route takes or gives; bytes of another kind are text here. */
static void put_side(struct buf *out, const char *name, const struct json_value *v)
{
	struct api_note note = api_note_of(v);

	buf_printf(out, "%s: ", name);
	if (!v)
		buf_add_text(out, "undefined");
	else if (str_is(note.type, "multipart/form-data"))
		buf_add_text(out, "FormData");
	else if (str_is(note.type, "application/json"))
		buf_add_text(out, "unknown");
	else if (api_is_media(note.type))
		buf_add_text(out, "string");
	else
		put_type(out, note.type);
}

static void put_route(struct buf *out, const struct json_value *r)
{
	const struct json_value *query = json_get(r, "query"), *answer = json_get(r, "answer");
	struct buf rest = { 0 };

	buf_printf(out, "\t'%s %s': {", gen_member(r, "method"), gen_member(r, "path"));
	for (size_t i = 0; query && i < query->count; i++) {
		buf_printf(out, "%s%.*s?: ", i ? ";\n\t\t\t" : "\n\t\tquery: { ",
			   (int)query->key[i].n, query->key[i].p);
		put_type(out, api_note_of(&query->item[i]).type);
	}
	if (query)
		buf_add_text(out, " };\n\t\t");
	put_side(&rest, query ? "request" : "query: undefined; request", json_get(r, "request"));
	put_side(&rest, "; answer", &answer->item[0]);
	if (query)
		buf_printf(out, "%s;\n\t};\n", rest.data);
	else if (rest.len + strlen(gen_member(r, "path")) + 20 <= LINE_MAX)
		buf_printf(out, " %s };\n", rest.data);
	else
		buf_printf(out, "\n\t\t%s;\n\t};\n", rest.data);
	buf_release(&rest);
}

void gen_api_types(const struct json_value *api, struct buf *out)
{
	const struct json_value *routes = json_get(api, "routes");
	bool is_line, was_line = false;
	struct buf shape = { 0 };

	buf_add_text(out, "// SPDX-License-Identifier: Apache-2.0\n"
		     "// Generated from schema/api.json by `make reference`.\n\n"
		     "/** What every answer that is an object has. */\n"
		     "export interface Answer {\n\tdata_version: number;\n\tquery_ms: number;\n}\n");
	for (size_t l = 0; l < API_LISTS; l++) {
		const struct json_value *shapes = json_get(api, api_lists[l]);

		for (size_t i = 0; i < shapes->count; i++) {
			buf_reset(&shape);
			put_shape(&shape, shapes->key[i], &shapes->item[i], api_is_answer(l));
			/* Shapes of one line each stand together. */
			is_line = strchr(shape.data, '\n') + 1 == shape.data + shape.len;
			if (!is_line || !was_line)
				buf_add_char(out, '\n');
			was_line = is_line;
			buf_add_str(out, buf_str(&shape));
		}
	}
	buf_release(&shape);
	buf_add_text(out, "\n/** What each route takes and gives. */\nexport interface Routes {\n");
	for (size_t i = 0; i < routes->count; i++)
		put_route(out, &routes->item[i]);
	buf_add_text(out, "}\n");
}

/* ---- page ---- */

static void put_cells(struct buf *out, struct str name, struct api_note note)
{
	buf_printf(out, "| `%.*s` | `", (int)name.n, name.p);
	for (size_t i = 0; i < note.type.n; i++) {
		if (note.type.p[i] == '|')
			buf_add_text(out, " \\");
		buf_add_char(out, note.type.p[i]);
		if (note.type.p[i] == '|')
			buf_add_char(out, ' ');
	}
	buf_add_text(out, "` | ");
	if (note.about.n)
		gen_add_cell(out, note.about.p);
	buf_add_text(out, " |\n");
}

static void put_page_route(struct buf *out, const struct json_value *r)
{
	const struct json_value *query = json_get(r, "query"), *answer = json_get(r, "answer");
	const struct json_value *request = json_get(r, "request");
	struct str flags = json_text(json_get(r, "flags"), STR(""));

	buf_printf(out, "\n### `%s %s`\n\n%s.", gen_member(r, "method"), gen_member(r, "path"),
		   gen_member(r, "summary"));
	if (request)
		buf_printf(out, " Takes `%s`.", request->text.p);
	buf_add_text(out, " Answers");
	for (size_t i = 0; i < answer->count; i++)
		buf_printf(out, "%s %s `%s`", i ? "," : "", answer->key[i].p,
			   answer->item[i].text.p);
	buf_add_char(out, '.');
	if (strstr(flags.p, "open"))
		buf_add_text(out, " Needs no token.");
	if (strstr(flags.p, "changes"))
		buf_add_text(out, " Refused with `--read-only`.");
	buf_add_char(out, '\n');
	for (size_t i = 0; query && i < query->count; i++) {
		if (i == 0)
			buf_add_text(out, "\n| Parameter | Type | |\n|---|---|---|\n");
		put_cells(out, query->key[i], api_note_of(&query->item[i]));
	}
}

static void put_groups(struct buf *out, const struct json_value *routes)
{
	for (size_t i = 0; i < routes->count; i++) {
		const char *group = gen_member(&routes->item[i], "group");
		bool is_first = true;

		for (size_t k = 0; k < i; k++)
			is_first &= strcmp(group, gen_member(&routes->item[k], "group")) != 0;
		if (!is_first)
			continue;
		buf_printf(out, "\n## %s\n", group);
		for (size_t k = i; k < routes->count; k++)
			if (strcmp(group, gen_member(&routes->item[k], "group")) == 0)
				put_page_route(out, &routes->item[k]);
	}
}

static void put_page_shape(struct buf *out, struct str name, const struct json_value *shape,
			   bool is_answer)
{
	buf_printf(out, "\n### %.*s\n\n", (int)name.n, name.p);
	if (shape->kind == JSON_STRING) {
		buf_printf(out, "`%s`\n", shape->text.p);
		return;
	}
	if (is_answer)
		buf_add_text(out, "With `data_version` and `query_ms`.\n\n");
	if (!shape->count)
		return;
	buf_add_text(out, "| Member | Type | |\n|---|---|---|\n");
	for (size_t i = 0; i < shape->count; i++)
		put_cells(out, shape->key[i], api_note_of(&shape->item[i]));
}

void gen_api_page(const struct json_value *api, struct buf *out)
{
	buf_printf(out, "<!-- Generated from schema/api.json by `make reference`. -->\n"
		   "# The API of the dashboard\n\n%s\n\n%s\n", gen_member(api, "about"),
		   gen_member(api, "notation"));
	put_groups(out, json_get(api, "routes"));
	buf_add_text(out, "\n## Shapes\n");
	for (size_t l = 0; l < API_LISTS; l++) {
		const struct json_value *shapes = json_get(api, api_lists[l]);

		for (size_t i = 0; i < shapes->count; i++)
			put_page_shape(out, shapes->key[i], &shapes->item[i], api_is_answer(l));
	}
}
