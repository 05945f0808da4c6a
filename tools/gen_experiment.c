/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_experiment.c - schema/experiment.json as a JSON Schema, TypeScript types and a page.
 *
 * Members of a field: key, unit, type, group, since and definition always; also values, pattern,
 * min (of JSON Schema), open (true: further keys; "text": further keys that are texts), from
 * (what another schema declares) and when (it is not always there).
 */
#include "gen_tree.h"

/* ---- checking ---- */

static int check_field(const struct json_value *schema, const struct json_value *f, struct err *e)
{
	static const char *const always[] = { "key", "type", "group", "since", "definition" };
	static const char *const also[] = {
		"unit", "values", "pattern", "min", "open", "from", "when",
	};
	const char *key = gen_member(f, "key"), *definition = gen_member(f, "definition");

	for (size_t i = 0; i < 5; i++)
		if (!*gen_member(f, always[i]))
			return err_set(e, ERR_PARSE, "%s: no \"%s\"", key, always[i]);
	for (size_t i = 0; i < f->count; i++) {
		bool is_known = false;

		for (size_t k = 0; k < 12; k++)
			is_known |= str_is(f->key[i], k < 5 ? always[k] : also[k - 5]);
		if (!is_known)
			return err_set(e, ERR_PARSE, "%s: \"%s\" is no member of a field", key,
				       f->key[i].p);
	}
	if (definition[strlen(definition) - 1] != '.')
		return err_set(e, ERR_PARSE, "%s: the definition is not a sentence", key);
	if (!gen_is_one_of(gen_member(f, "group"), json_get(schema, "groups")))
		return err_set(e, ERR_PARSE, "%s: group \"%s\" is not declared", key,
			       gen_member(f, "group"));
	return 0;
}

int gen_experiment_check(const struct json_value *all, struct err *e)
{
	const struct json_value *schema = json_get(all, "experiment");
	const char *const lists[] = { "fields", "suite" };

	for (size_t l = 0; l < 2; l++) {
		const struct json_value *fields = json_get(schema, lists[l]);

		if (!fields || fields->kind != JSON_ARRAY)
			return err_set(e, ERR_PARSE, "expected a list \"%s\"", lists[l]);
		for (size_t i = 0; i < fields->count; i++) {
			if (check_field(schema, &fields->item[i], e) < 0)
				return -1;
			for (size_t k = 0; k < i; k++)
				if (strcmp(gen_member(&fields->item[k], "key"),
					   gen_member(&fields->item[i], "key")) == 0)
					return err_set(e, ERR_PARSE, "%s: two fields with this key",
						       gen_member(&fields->item[i], "key"));
		}
	}
	return 0;
}

/* ---- JSON Schema ---- */

static const struct { const char *type, *schema, *script; } plain[] = {
	{ "text", "string", "string" }, { "int", "integer", "number" },
	{ "float", "number", "number" }, { "bool", "boolean", "boolean" },
	{ "object", "object", NULL }, { "null", "null", "null" },
};
#define PLAIN (sizeof(plain) / sizeof(*plain))

static void put_node(struct json_writer *w, const struct node *n);

/* The alternatives of a type, less what lists hold: "list of text or null" is a list or null. */
static void put_type(struct json_writer *w, const char *type, bool may_be_null)
{
	bool has_null = false;

	json_key(w, "type");
	json_begin_array(w);
	if (strncmp(type, "list of ", 8) == 0) {
		json_put_text(w, "array");
		has_null = strstr(type, " or null") != NULL;
		if (has_null)
			json_put_text(w, "null");
		if (strstr(type, " or text or null")) /* a list, or its one element */
			json_put_text(w, "string");
		json_end_array(w);
		return;
	}
	for (const char *at = type; at; at = strstr(at, " or ") ? strstr(at, " or ") + 4 : NULL) {
		for (size_t i = 0; i < PLAIN; i++) {
			size_t len = strlen(plain[i].type);

			if (strncmp(at, plain[i].type, len) != 0 || (at[len] && at[len] != ' '))
				continue;
			json_put_text(w, plain[i].schema);
			has_null |= strcmp(plain[i].type, "null") == 0;
		}
		if (strncmp(at, "list of", 7) == 0) {
			json_put_text(w, "array");
			break;
		}
	}
	if (may_be_null && !has_null)
		json_put_text(w, "null");
	json_end_array(w);
}

static void put_values(struct json_writer *w, const struct node *n)
{
	const struct json_value *values = json_get(n->field, "values");
	static const char *const range[][2] = { { "min", "minimum" }, { "max", "maximum" } };

	if (values) {
		json_key(w, "enum");
		json_begin_array(w);
		for (size_t i = 0; i < values->count; i++)
			json_put_value(w, &values->item[i]);
		if (node_may_be(n, "null"))
			json_put_null(w);
		json_end_array(w);
	}
	if (*gen_member(n->field, "pattern")) {
		json_key(w, "pattern");
		json_put_text(w, gen_member(n->field, "pattern"));
	}
	for (size_t i = 0; i < 2; i++) {
		if (!json_get(n->field, range[i][0]))
			continue;
		json_key(w, range[i][1]);
		json_put_value(w, json_get(n->field, range[i][0]));
	}
}

static void put_children(struct json_writer *w, const struct node *n, bool is_pattern)
{
	bool has_any = false;

	for (size_t i = 0; i < n->n; i++)
		has_any |= n->child[i]->is_pattern == is_pattern && strcmp(n->child[i]->name, "[]");
	if (!has_any)
		return;
	json_key(w, is_pattern ? "patternProperties" : "properties");
	json_begin_object(w);
	for (size_t i = 0; i < n->n; i++) {
		if (n->child[i]->is_pattern != is_pattern || !strcmp(n->child[i]->name, "[]"))
			continue;
		json_key(w, n->child[i]->name);
		json_begin_object(w);
		put_node(w, n->child[i]);
		json_end_object(w);
	}
	json_end_object(w);
}

static void put_members(struct json_writer *w, const struct node *n)
{
	put_children(w, n, false);
	put_children(w, n, true);
	json_key(w, "required");
	json_begin_array(w);
	for (size_t i = 0; i < n->n; i++)
		if (n->child[i]->is_required)
			json_put_text(w, n->child[i]->name);
	json_end_array(w);
	json_key(w, "additionalProperties");
	if (n->open == NODE_OPEN_TEXT) {
		json_begin_object(w);
		put_type(w, "text or null", false);
		json_end_object(w);
	} else {
		json_put_bool(w, n->open == NODE_OPEN);
	}
}

static void put_items(struct json_writer *w, const struct node *n, const char *element)
{
	const struct node *item = node_child(n, "[]");

	json_key(w, "items");
	json_begin_object(w);
	if (n->ref) {
		json_key(w, "$ref");
		json_put_raw(w, STR("\"#/$defs/experiment\""));
	} else if (strncmp(element, "object", 6) == 0 && item && item->n) {
		put_type(w, element, false);
		put_members(w, item);
	} else if (strncmp(element, "any", 3) != 0) {
		put_type(w, element, n->may_be_nan);
		if (strncmp(element, "list of ", 8) == 0)
			put_items(w, n, element + 8);
	}
	json_end_object(w);
}

static void put_node(struct json_writer *w, const struct node *n)
{
	const char *element = node_element(n);
	const char *type = n->type ? n->type : "object";

	if (*n->about) {
		json_key(w, "description");
		json_put_text(w, n->about);
	}
	if (strcmp(type, "any") == 0)
		return;
	put_type(w, type, n->may_be_nan && strstr(type, "float"));
	if (n->field)
		put_values(w, n);
	if (element)
		put_items(w, n, element);
	/* An object whose keys nothing declares may hold any. */
	if (node_may_be(n, "object") && (n->n || n->open != NODE_CLOSED))
		put_members(w, n);
}

/* What belongs together: a status and its error, a mode and its result. */
static const char conditions[] =
	"[{\"if\": {\"properties\": {\"status\": {\"const\": \"failed\"}}},"
	" \"then\": {\"properties\": {\"error\": {\"type\": \"object\"}}}},"
	" {\"if\": {\"properties\": {\"status\": {\"const\": \"completed\"}}},"
	" \"then\": {\"properties\": {\"error\": {\"type\": \"null\"},"
	" \"results\": {\"type\": \"object\"}, \"trust\": {\"type\": \"object\"},"
	" \"environment\": {\"type\": \"object\"}}}},"
	" {\"if\": {\"properties\": {\"config\": {\"type\": \"object\", \"properties\":"
	" {\"mode\": {\"const\": \"throughput\"}}}, \"results\": {\"type\": \"object\"}}},"
	" \"then\": {\"properties\": {\"results\": {\"type\": \"object\","
	" \"required\": [\"throughput\"]}}}},"
	" {\"if\": {\"properties\": {\"config\": {\"type\": \"object\", \"properties\":"
	" {\"mode\": {\"const\": \"latency\"}}}, \"results\": {\"type\": \"object\"}}},"
	" \"then\": {\"properties\": {\"results\": {\"type\": \"object\","
	" \"required\": [\"latency\"]}}}},"
	" {\"if\": {\"properties\": {\"config\": {\"type\": \"object\", \"properties\":"
	" {\"mode\": {\"const\": \"startup\"}}}, \"results\": {\"type\": \"object\"}}},"
	" \"then\": {\"properties\": {\"results\": {\"type\": \"object\","
	" \"required\": [\"startup\"]}}}}]";

static void put_definition(struct json_writer *w, const char *name, const char *title,
			   const struct node *root, const char *all_of)
{
	struct arena a = { 0 };
	struct json_value *also;

	json_key(w, name);
	json_begin_object(w);
	json_key(w, "title");
	json_put_text(w, title);
	json_key(w, "type");
	json_put_text(w, "object");
	put_members(w, root);
	if (all_of && json_parse(&a, str_of(all_of), &also, NULL) == 0) {
		json_key(w, "allOf");
		json_put_value(w, also);
	}
	json_end_object(w);
	arena_release(&a);
}

void gen_experiment_schema(const struct json_value *all, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct arena a = { 0 };

	w.indent = 1;
	json_begin_object(&w);
	json_key(&w, "$schema");
	json_put_text(&w, "https://json-schema.org/draft/2020-12/schema");
	json_key(&w, "$id");
	json_put_text(&w, "urn:profllm:experiment:1");
	json_key(&w, "title");
	json_put_text(&w, "ProfLLM: an experiment, or a suite of them");
	json_key(&w, "oneOf");
	json_put_raw(&w, STR("[{\"$ref\": \"#/$defs/experiment\"}, {\"$ref\": \"#/$defs/suite\"}]"));
	json_key(&w, "$defs");
	json_begin_object(&w);
	put_definition(&w, "experiment", "An experiment", node_tree(all, "fields", true, &a),
		       conditions);
	put_definition(&w, "suite", "A suite", node_tree(all, "suite", true, &a), NULL);
	json_end_object(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
	arena_release(&a);
}

void gen_experiment_literal(const struct json_value *all, struct buf *out)
{
	struct buf text = { 0 };
	struct str rest;

	gen_experiment_schema(all, &text);
	buf_add_text(out, "/* Generated by tools/gen.c from schema/. */\n");
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		json_quote(out, line, true);
		buf_add_text(out, " \"\\n\"\n");
	}
	buf_release(&text);
}
