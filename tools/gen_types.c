/* SPDX-License-Identifier: Apache-2.0 */
/* gen_types.c - schema/experiment.json as TypeScript types and as a page; see gen_experiment.c. */
#include "gen_tree.h"

/* ---- TypeScript ---- */

static void put_tabs(struct buf *out, unsigned depth)
{
	while (depth--)
		buf_add_char(out, '\t');
}

static void put_members(struct buf *out, const struct node *n, unsigned depth);

static void put_object(struct buf *out, const struct node *n, unsigned depth)
{
	if (!n || (!n->n && n->open == NODE_CLOSED)) {
		buf_add_text(out, "Record<string, Json>");
		return;
	}
	buf_add_text(out, "{\n");
	put_members(out, n, depth + 1);
	put_tabs(out, depth);
	buf_add_char(out, '}');
}

static void put_list(struct buf *out, const struct node *n, struct str element, unsigned depth)
{
	if (n->ref) {
		buf_add_text(out, "ExperimentDocument[]");
	} else if (str_is(element, "object")) {
		put_object(out, node_child(n, "[]"), depth);
		buf_add_text(out, "[]");
	} else if (str_starts(element, STR("list of "))) {
		put_list(out, n, (struct str){ element.p + 8, element.n - 8 }, depth);
		buf_add_text(out, "[]");
	} else {
		buf_printf(out, n->may_be_nan ? "(%s | null)[]" : "%s[]",
			   str_is(element, "text") ? "string" : "number");
	}
}

#define VALUES_PER_LINE 6

/* One of a type's alternatives. */
static void put_one(struct buf *out, const struct node *n, struct str type, unsigned depth)
{
	const struct json_value *values = json_get(n->field, "values");

	if (str_is(type, "object"))
		put_object(out, n, depth);
	else if (str_starts(type, STR("list of ")))
		put_list(out, n, (struct str){ type.p + 8, type.n - 8 }, depth);
	else if (values && !str_is(type, "null"))
		for (size_t i = 0; i < values->count; i++) {
			const struct json_value *v = &values->item[i];

			buf_add_text(out, !i ? "" : i % VALUES_PER_LINE ? " | " : " |");
			if (i && i % VALUES_PER_LINE == 0) {
				buf_add_text(out, "\n");
				put_tabs(out, depth + 1);
			}
			if (v->kind == JSON_STRING)
				buf_printf(out, "'%s'", v->text.p);
			else
				buf_add_str(out, v->raw);
		}
	else
		buf_add_text(out, str_is(type, "text") ? "string" : str_is(type, "bool") ?
			     "boolean" : str_is(type, "null") ? "null" : "number");
}

static void put_type(struct buf *out, const struct node *n, unsigned depth)
{
	const char *at = n->type ? n->type : "object";
	bool is_first = true, has_null = false, has_number = false;

	while (at) {
		const char *end = strstr(at, " or ");
		struct str one = { at, end ? (size_t)(end - at) : strlen(at) };

		buf_add_text(out, is_first ? "" : " | ");
		put_one(out, n, one, depth);
		is_first = false;
		has_null |= str_is(one, "null");
		has_number |= str_is(one, "float");
		at = end ? end + 4 : NULL;
	}
	if (n->may_be_nan && has_number && !has_null)
		buf_add_text(out, " | null");
}

/* "^p[0-9.]+_ttft_ms$" as `p${number}_ttft_ms`. */
static void put_pattern(struct buf *out, const char *name)
{
	const char *open = strchr(name, '['), *close = strchr(name, '+');

	buf_printf(out, "[key: `%.*s${number}%.*s`]: ", (int)(open - name - 1), name + 1,
		   (int)strlen(close + 1) - 1, close + 1);
}

static void put_members(struct buf *out, const struct node *n, unsigned depth)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct node *child = n->child[i];
		const char *quote = strchr(child->name, '-') ? "'" : "";

		if (strcmp(child->name, "[]") == 0)
			continue;
		put_tabs(out, depth);
		if (child->is_pattern)
			put_pattern(out, child->name);
		else
			buf_printf(out, "%s%s%s%s: ", quote, child->name, quote,
				   child->is_required ? "" : "?");
		put_type(out, child, depth);
		buf_add_text(out, ";\n");
	}
	if (n->open != NODE_CLOSED) {
		put_tabs(out, depth);
		buf_add_text(out, "[key: string]: unknown;\n");
	}
}

void gen_experiment_types(const struct json_value *all, struct buf *out)
{
	struct arena a = { 0 };
	const struct { const char *name, *list, *about; } types[] = {
		{ "ExperimentDocument", "fields", "What `profllm run` writes of one experiment." },
		{ "SuiteDocument", "suite", "What `profllm run` writes of several." },
	};

	buf_add_text(out, "// SPDX-License-Identifier: Apache-2.0\n"
		     "// Generated from schema/experiment.json by `make reference`.\n\n"
		     "export type Json = null | boolean | number | string | Json[]"
		     " | { [key: string]: Json };\n");
	for (size_t i = 0; i < 2; i++) {
		buf_printf(out, "\n/** %s */\nexport interface %s {\n", types[i].about,
			   types[i].name);
		put_members(out, node_tree(all, types[i].list, false, &a), 1);
		buf_add_text(out, "}\n");
	}
	arena_release(&a);
}

/* ---- page ---- */

static void put_line(const struct json_value *f, struct buf *out)
{
	const struct json_value *values = json_get(f, "values");

	buf_printf(out, "| `%s` | %s | %s | ", gen_member(f, "key"), gen_member(f, "unit"),
		   gen_member(f, "type"));
	gen_add_cell(out, gen_member(f, "definition"));
	for (size_t i = 0; values && values->count > 1 && i < values->count; i++)
		buf_printf(out, "%s`%s`", i ? ", " : " One of ", values->item[i].text.p);
	if (values && values->count > 1)
		buf_add_char(out, '.');
	if (*gen_member(f, "when")) {
		buf_add_text(out, " Present: ");
		gen_add_cell(out, gen_member(f, "when"));
		buf_add_char(out, '.');
	}
	buf_add_text(out, " |\n");
}

static void put_group(const struct json_value *schema, const struct json_value *group,
		      struct buf *out)
{
	const char *const lists[] = { "fields", "suite" };

	buf_printf(out, "\n## %s\n\n%s\n\n| Key | Unit | Type | Definition |\n|---|---|---|---|\n",
		   gen_member(group, "title"), gen_member(group, "about"));
	for (size_t l = 0; l < 2; l++) {
		const struct json_value *fields = json_get(schema, lists[l]);

		for (size_t i = 0; i < fields->count; i++)
			if (strcmp(gen_member(&fields->item[i], "group"),
				   gen_member(group, "name")) == 0)
				put_line(&fields->item[i], out);
	}
}

void gen_experiment_page(const struct json_value *all, struct buf *out)
{
	const struct json_value *schema = json_get(all, "experiment");
	const struct json_value *groups = json_get(schema, "groups");

	buf_add_text(out,
		"<!-- Generated from schema/experiment.json by `make reference`. -->\n"
		"# The document of an experiment\n\n"
		"What `profllm run --output` writes: one JSON object per experiment, whatever came of\n"
		"it, and one with all of them for a suite. It is strict JSON: no `NaN` and no\n"
		"`Infinity`; a number that is not known is null. `profllm run --print-schema` prints the\n"
		"JSON Schema (draft 2020-12) that holds it, with every engine argument of\n"
		"[the server](engine-args.md); `make install` puts it into `share/profllm`. A dot leads\n"
		"into an object, `[]` into the elements of a list. Every key is always there unless its\n"
		"line says when.\n");
	for (size_t i = 0; i < groups->count; i++)
		put_group(schema, &groups->item[i], out);
}
