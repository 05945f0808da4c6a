/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_compile.c - a schema's text to the graph of schema.h: keywords by a table, names and
 * references.
 *
 * References are collected and resolved when all places that can have a name are known; a JSON
 * pointer to a place that no keyword leads to makes a node there, which may bring new references.
 */
#include "input/constrain/schema.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

struct reference {
	struct schema_node *from;
	struct str text;
	struct str where; /* pointer to the keyword, for the message */
	bool is_dynamic;
	struct reference *next;
};

struct compile {
	struct schema *schema;
	struct arena *arena;
	struct map node;     /* the bytes of a value's address: the node made of it */
	struct map resource; /* URI */
	struct map anchor;   /* URI#name */
	struct reference *open;
	struct buf where;    /* pointer to what is being read */
	size_t nodes;
	enum schema_draft draft; /* where $schema says nothing */
	bool is_shape_only;  /* whether it is a schema at all: no references, no patterns */
	struct err *e;
};

/* One table: members of a schema and the fields of its node. */

/* The node of a schema inside a resource, made if it is new; NULL with an error. */
static struct schema_node *compile_node(struct compile *c, const struct json_value *v,
					struct schema_resource *around);

/* ---- places ---- */

/* -1: the error, with the place */
static int compile_expected(struct compile *c, const char *what)
{
	return err_set(c->e, ERR_USAGE, "%s: expected %s",
		c->where.len ? c->where.data : "the schema", what);
}

/* Steps to a member or item for messages; returns the argument for compile_leave. */
static size_t compile_enter(struct compile *c, struct str key)
{
	size_t was = c->where.len;

	buf_add_char(&c->where, '/');
	for (size_t i = 0; i < key.n; i++) {
		if (key.p[i] == '~' || key.p[i] == '/')
			buf_add_text(&c->where, key.p[i] == '~' ? "~0" : "~1");
		else
			buf_add_char(&c->where, key.p[i]);
	}
	return was;
}

static size_t compile_enter_index(struct compile *c, size_t i)
{
	size_t was = c->where.len;

	buf_printf(&c->where, "/%zu", i);
	return was;
}

static void compile_leave(struct compile *c, size_t was)
{
	c->where.len = was;
	c->where.data[was] = 0;
}

static struct str joined(struct compile *c, struct str uri, struct str name)
{
	const char *text = arena_printf(c->arena, "%.*s#%.*s", (int)uri.n, uri.p ? uri.p : "",
		(int)name.n, name.p);

	return str_of(text);
}

static int compile_anchor(struct compile *c, struct schema_node *n, struct str name)
{
	struct str key = joined(c, n->resource->uri, name);
	uint64_t other;

	if (map_get(&c->anchor, key, &other) && other != (uint64_t)(uintptr_t)n)
		return compile_expected(c, "a name that no other schema has");
	map_put(&c->anchor, key, (uint64_t)(uintptr_t)n);
	return 0;
}

/* ---- the forms that keywords have ---- */

typedef int read_fn(struct compile *c, struct schema_node *n, const struct json_value *v,
		    void *to);

static int read_schema(struct compile *c, struct schema_node *n, const struct json_value *v,
		       void *to)
{
	struct schema_node *made = compile_node(c, v, n->resource);

	*(struct schema_node **)to = made;
	return made ? 0 : -1;
}

static int read_schemas(struct compile *c, struct schema_node *n, const struct json_value *v,
			void *to)
{
	struct schema_list *list = to;

	if (v->kind != JSON_ARRAY || v->count == 0)
		return compile_expected(c, "a list of at least one schema");
	list->item = arena_alloc(c->arena, v->count * sizeof *list->item);
	list->count = v->count;
	for (size_t i = 0; i < v->count; i++) {
		size_t was = compile_enter_index(c, i);

		if (read_schema(c, n, &v->item[i], &list->item[i]) < 0)
			return -1;
		compile_leave(c, was);
	}
	return 0;
}

static int read_schema_map(struct compile *c, struct schema_node *n, const struct json_value *v,
			   void *to)
{
	struct map *map = to;

	if (v->kind != JSON_OBJECT)
		return compile_expected(c, "an object of schemas");
	for (size_t i = 0; i < v->count; i++) {
		size_t was = compile_enter(c, v->key[i]);
		struct schema_node *made = compile_node(c, &v->item[i], n->resource);

		if (!made)
			return -1;
		if (map)
			map_put(map, v->key[i], (uint64_t)(uintptr_t)made);
		compile_leave(c, was);
	}
	return 0;
}

/* $defs and definitions: made so that their names are known. */
static int read_definitions(struct compile *c, struct schema_node *n, const struct json_value *v,
			    void *to)
{
	(void)to;
	return read_schema_map(c, n, v, NULL);
}

static int read_properties(struct compile *c, struct schema_node *n, const struct json_value *v,
			   void *to)
{
	if (read_schema_map(c, n, v, to) < 0)
		return -1;
	n->property = v->key;
	n->property_count = v->count;
	return 0;
}

static struct pattern *read_regex(struct compile *c, struct str text)
{
	struct schema *s = c->schema;
	struct err why = { 0 };
	struct pattern *p = pattern_new(text, PATTERN_ECMA, PATTERN_ANYWHERE, &why);

	if (!p) {
		err_set(c->e, ERR_USAGE, "%s: %s", c->where.data, why.text);
		return NULL;
	}
	s->pattern = mem_room(s->pattern, s->pattern_count, &s->pattern_cap, sizeof(*s->pattern));
	s->pattern[s->pattern_count++] = p;
	return p;
}

static int read_pattern(struct compile *c, struct schema_node *n, const struct json_value *v,
			void *to)
{
	if (v->kind != JSON_STRING)
		return compile_expected(c, "a text with a regular expression");
	if (c->is_shape_only)
		return 0;
	n->pattern_text = v->text;
	*(struct pattern **)to = read_regex(c, v->text);
	return n->pattern ? 0 : -1;
}

static int read_pattern_properties(struct compile *c, struct schema_node *n,
				   const struct json_value *v, void *to)
{
	(void)to;
	if (v->kind != JSON_OBJECT)
		return compile_expected(c, "an object of schemas");
	n->pattern_property = arena_alloc(c->arena, v->count * sizeof *n->pattern_property);
	n->pattern_count = v->count;
	for (size_t i = 0; i < v->count; i++) {
		struct schema_pattern *p = &n->pattern_property[i];
		size_t was = compile_enter(c, v->key[i]);

		p->text = v->key[i];
		p->node = compile_node(c, &v->item[i], n->resource);
		if (!p->node)
			return -1;
		if (!c->is_shape_only && (p->pattern = read_regex(c, p->text)) == NULL)
			return -1;
		compile_leave(c, was);
	}
	return 0;
}

static int read_number(struct compile *c, struct schema_node *n, const struct json_value *v,
		       void *to)
{
	struct decimal *d = arena_alloc(c->arena, sizeof *d);

	(void)n;
	if (!value_is_number(v))
		return compile_expected(c, "a number");
	*d = decimal_of(v->raw);
	*(struct decimal **)to = d;
	return 0;
}

static int read_divisor(struct compile *c, struct schema_node *n, const struct json_value *v,
			void *to)
{
	if (read_number(c, n, v, to) < 0 || n->multiple_of->is_negative ||
	    n->multiple_of->count == 0)
		return compile_expected(c, "a number above 0");
	if (n->multiple_of->count > DECIMAL_DIVISOR_DIGITS_MAX)
		return compile_expected(c, "a number of at most 18 digits (DECIMAL_DIVISOR_DIGITS_MAX)");
	return 0;
}

static int read_count(struct compile *c, struct schema_node *n, const struct json_value *v,
		      void *to)
{
	struct decimal d;
	double real;

	(void)n;
	if (!value_is_number(v))
		return compile_expected(c, "a whole number of at least 0");
	d = decimal_of(v->raw);
	if (d.is_negative || !decimal_is_integer(d))
		return compile_expected(c, "a whole number of at least 0");
	real = json_real(v, 0);
	*(int64_t *)to = real < 0x1p62 ? (int64_t)real : INT64_MAX;
	return 0;
}

static int read_bool(struct compile *c, struct schema_node *n, const struct json_value *v, void *to)
{
	(void)n;
	if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
		return compile_expected(c, "true or false");
	if (to)
		*(bool *)to = v->kind == JSON_TRUE;
	return 0;
}

/* Keywords whose type is checked and whose content has no effect here. */
static int read_text(struct compile *c, struct schema_node *n, const struct json_value *v, void *to)
{
	(void)n;
	(void)to;
	return v->kind == JSON_STRING ? 0 : compile_expected(c, "a text");
}

static int read_content_schema(struct compile *c, struct schema_node *n, const struct json_value *v,
			       void *to)
{
	(void)to;
	return compile_node(c, v, n->resource) ? 0 : -1;
}

static int read_examples(struct compile *c, struct schema_node *n, const struct json_value *v,
			 void *to)
{
	(void)n;
	(void)to;
	return v->kind == JSON_ARRAY ? 0 : compile_expected(c, "a list");
}

static int read_enum(struct compile *c, struct schema_node *n, const struct json_value *v, void *to)
{
	(void)n;
	if (v->kind != JSON_ARRAY)
		return compile_expected(c, "a list of values");
	*(const struct json_value **)to = v;
	return 0;
}

static int read_const(struct compile *c, struct schema_node *n, const struct json_value *v,
		      void *to)
{
	(void)c;
	(void)n;
	*(const struct json_value **)to = v;
	return 0;
}

static int read_format(struct compile *c, struct schema_node *n, const struct json_value *v,
		       void *to)
{
	(void)to;
	if (v->kind != JSON_STRING)
		return compile_expected(c, "the name of a format");
	n->format = format_find(v->text);
	return 0;
}

static unsigned type_bits(struct str name)
{
	static const struct { const char *name; unsigned bits; } type[] = {
		{ "null", 1u << JSON_NULL }, { "boolean", 1u << JSON_FALSE | 1u << JSON_TRUE },
		{ "object", 1u << JSON_OBJECT }, { "array", 1u << JSON_ARRAY },
		{ "number", 1u << JSON_INT | 1u << JSON_REAL }, { "string", 1u << JSON_STRING },
		{ "integer", TYPE_INTEGER },
	};

	for (size_t i = 0; i < sizeof type / sizeof *type; i++)
		if (str_is(name, type[i].name))
			return type[i].bits;
	return 0;
}

static int read_type(struct compile *c, struct schema_node *n, const struct json_value *v, void *to)
{
	static const char what[] = "null, boolean, object, array, number, string or integer, "
		"or a list of different ones";

	(void)to;
	if (v->kind == JSON_STRING)
		n->types = type_bits(v->text);
	else if (v->kind == JSON_ARRAY && !value_has_repeats(v)) {
		for (size_t i = 0; i < v->count; i++) {
			unsigned bits = type_bits(json_text(&v->item[i], STR("")));

			if (!bits)
				return compile_expected(c, what);
			n->types |= bits;
		}
	}
	return n->types ? 0 : compile_expected(c, what);
}

static int read_names(struct compile *c, const struct json_value *v, struct str **name,
		      size_t *count)
{
	if (v->kind != JSON_ARRAY || value_has_repeats(v))
		return compile_expected(c, "a list of different texts");
	*name = arena_alloc(c->arena, v->count * sizeof **name);
	*count = v->count;
	for (size_t i = 0; i < v->count; i++) {
		if (v->item[i].kind != JSON_STRING)
			return compile_expected(c, "a list of different texts");
		(*name)[i] = v->item[i].text;
	}
	return 0;
}

static int read_required(struct compile *c, struct schema_node *n, const struct json_value *v,
			 void *to)
{
	(void)to;
	return read_names(c, v, &n->required, &n->required_count);
}

static int add_need(struct compile *c, struct schema_node *n, struct str key,
		    const struct json_value *names)
{
	struct schema_needs *need = &n->needs[n->needs_count++];

	need->key = key;
	return read_names(c, names, &need->name, &need->count);
}

/* dependentRequired, and dependencies of draft 7, whose members may be schemas, too. */
static int read_dependencies(struct compile *c, struct schema_node *n, const struct json_value *v,
			     void *to)
{
	bool may_be_schemas = to != NULL;

	if (v->kind != JSON_OBJECT)
		return compile_expected(c, "an object");
	n->needs = arena_alloc(c->arena, v->count * sizeof *n->needs);
	for (size_t i = 0; i < v->count; i++) {
		size_t was = compile_enter(c, v->key[i]);
		struct schema_node *made;

		if (!may_be_schemas || v->item[i].kind == JSON_ARRAY) {
			if (add_need(c, n, v->key[i], &v->item[i]) < 0)
				return -1;
		} else {
			made = compile_node(c, &v->item[i], n->resource);
			if (!made)
				return -1;
			map_put(to, v->key[i], (uint64_t)(uintptr_t)made);
		}
		compile_leave(c, was);
	}
	return 0;
}

static int read_dependent_required(struct compile *c, struct schema_node *n,
				   const struct json_value *v, void *to)
{
	(void)to;
	return read_dependencies(c, n, v, NULL);
}

/* Draft 7: items may be a list, and additionalItems says what follows it. */
static int read_old_items(struct compile *c, struct schema_node *n, const struct json_value *v,
			  void *to)
{
	if (v->kind != JSON_ARRAY)
		return read_schema(c, n, v, to);
	return v->count ? read_schemas(c, n, v, &n->prefix_items) :
		compile_expected(c, "a list of at least one schema");
}

static int read_reference(struct compile *c, struct schema_node *n, const struct json_value *v,
			  void *to)
{
	struct reference *r;

	if (v->kind != JSON_STRING)
		return compile_expected(c, "a reference, which is a text");
	if (c->is_shape_only)
		return 0;
	r = arena_alloc(c->arena, sizeof *r);
	*r = (struct reference){ .from = n, .text = v->text, .next = c->open,
		.where = arena_str(c->arena, buf_str(&c->where)),
		.is_dynamic = to == &n->dynamic_ref };
	c->open = r;
	return 0;
}

static bool is_anchor_name(const struct json_value *v)
{
	struct str s = json_text(v, STR(""));

	for (size_t i = 0; i < s.n; i++) {
		bool is_letter = (s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z';
		bool is_later = (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' || s.p[i] == '.';

		if (!is_letter && s.p[i] != '_' && !(i > 0 && is_later))
			return false;
	}
	return s.n > 0;
}

static int read_anchor(struct compile *c, struct schema_node *n, const struct json_value *v,
		       void *to)
{
	bool is_dynamic = to != NULL;

	if (!is_anchor_name(v))
		return compile_expected(c, "a name of letters, digits, '-', '_' and '.'");
	if (c->is_shape_only)
		return 0;
	if (is_dynamic)
		map_put(&n->resource->dynamic, v->text, (uint64_t)(uintptr_t)n);
	return compile_anchor(c, n, v->text);
}

static int read_dynamic_anchor(struct compile *c, struct schema_node *n, const struct json_value *v,
			       void *to)
{
	(void)to;
	return read_anchor(c, n, v, n);
}

/* ---- the table ---- */

struct keyword {
	const char *name;
	unsigned drafts;
	read_fn *read;
	size_t at; /* where in the node, for those that need it */
};

#define BOTH (DRAFT_7 | DRAFT_2020)
#define AT(member) offsetof(struct schema_node, member)

static const struct keyword keywords[] = {
	{ "$ref", BOTH, read_reference, AT(ref) },
	{ "$dynamicRef", DRAFT_2020, read_reference, AT(dynamic_ref) },
	{ "$anchor", DRAFT_2020, read_anchor, SIZE_MAX },
	{ "$dynamicAnchor", DRAFT_2020, read_dynamic_anchor, SIZE_MAX },
	{ "$defs", DRAFT_2020, read_definitions, SIZE_MAX },
	{ "definitions", BOTH, read_definitions, SIZE_MAX },
	{ "$comment", BOTH, read_text, SIZE_MAX },
	{ "type", BOTH, read_type, SIZE_MAX },
	{ "enum", BOTH, read_enum, AT(enums) },
	{ "const", BOTH, read_const, AT(constant) },
	{ "multipleOf", BOTH, read_divisor, AT(multiple_of) },
	{ "maximum", BOTH, read_number, AT(maximum) },
	{ "exclusiveMaximum", BOTH, read_number, AT(below) },
	{ "minimum", BOTH, read_number, AT(minimum) },
	{ "exclusiveMinimum", BOTH, read_number, AT(above) },
	{ "maxLength", BOTH, read_count, AT(max_length) },
	{ "minLength", BOTH, read_count, AT(min_length) },
	{ "pattern", BOTH, read_pattern, AT(pattern) },
	{ "format", BOTH, read_format, SIZE_MAX },
	{ "maxItems", BOTH, read_count, AT(max_items) },
	{ "minItems", BOTH, read_count, AT(min_items) },
	{ "uniqueItems", BOTH, read_bool, AT(has_unique_items) },
	{ "prefixItems", DRAFT_2020, read_schemas, AT(prefix_items) },
	{ "items", DRAFT_2020, read_schema, AT(items) },
	{ "items", DRAFT_7, read_old_items, AT(items) },
	{ "additionalItems", DRAFT_7, read_schema, SIZE_MAX }, /* see read_additional_items */
	{ "contains", BOTH, read_schema, AT(contains) },
	{ "maxContains", DRAFT_2020, read_count, AT(max_contains) },
	{ "minContains", DRAFT_2020, read_count, AT(min_contains) },
	{ "unevaluatedItems", DRAFT_2020, read_schema, AT(unevaluated_items) },
	{ "maxProperties", BOTH, read_count, AT(max_properties) },
	{ "minProperties", BOTH, read_count, AT(min_properties) },
	{ "required", BOTH, read_required, SIZE_MAX },
	{ "properties", BOTH, read_properties, AT(properties) },
	{ "patternProperties", BOTH, read_pattern_properties, SIZE_MAX },
	{ "additionalProperties", BOTH, read_schema, AT(additional) },
	{ "propertyNames", BOTH, read_schema, AT(property_names) },
	{ "unevaluatedProperties", DRAFT_2020, read_schema, AT(unevaluated_properties) },
	{ "dependentRequired", DRAFT_2020, read_dependent_required, SIZE_MAX },
	{ "dependentSchemas", DRAFT_2020, read_schema_map, AT(dependents) },
	{ "dependencies", DRAFT_7, read_dependencies, AT(dependents) },
	{ "allOf", BOTH, read_schemas, AT(all_of) },
	{ "anyOf", BOTH, read_schemas, AT(any_of) },
	{ "oneOf", BOTH, read_schemas, AT(one_of) },
	{ "not", BOTH, read_schema, AT(not_this) },
	{ "if", BOTH, read_schema, AT(if_this) },
	{ "then", BOTH, read_schema, AT(then_that) },
	{ "else", BOTH, read_schema, AT(else_that) },
	{ "title", BOTH, read_text, SIZE_MAX },
	{ "description", BOTH, read_text, SIZE_MAX },
	{ "examples", BOTH, read_examples, SIZE_MAX },
	{ "deprecated", DRAFT_2020, read_bool, SIZE_MAX },
	{ "readOnly", BOTH, read_bool, SIZE_MAX },
	{ "writeOnly", BOTH, read_bool, SIZE_MAX },
	{ "contentMediaType", BOTH, read_text, SIZE_MAX },
	{ "contentEncoding", BOTH, read_text, SIZE_MAX },
	{ "contentSchema", DRAFT_2020, read_content_schema, SIZE_MAX },
};

/* In draft 7 it has no effect unless items is a list, but must be a schema in any case. */
static int read_additional_items(struct compile *c, struct schema_node *n,
				 const struct json_value *items, const struct json_value *v)
{
	struct schema_node *made = NULL;

	if (read_schema(c, n, v, &made) < 0)
		return -1;
	if (items && items->kind == JSON_ARRAY)
		n->items = made;
	return 0;
}

/* One member of a schema object; unknown ones are ignored. */
static int compile_keyword(struct compile *c, struct schema_node *n,
			   const struct json_value *schema, size_t i)
{
	unsigned draft = n->resource->draft;
	size_t was;
	int rc = 0;

	for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++) {
		const struct keyword *word = &keywords[k];

		if (!(word->drafts & draft) || !str_is(schema->key[i], word->name))
			continue;
		was = compile_enter(c, schema->key[i]);
		if (strcmp(word->name, "additionalItems") == 0)
			rc = read_additional_items(c, n, json_get(schema, "items"),
				&schema->item[i]);
		else
			rc = word->read(c, n, &schema->item[i],
				word->at == SIZE_MAX ? NULL : (char *)n + word->at);
		if (rc == 0)
			compile_leave(c, was);
		return rc;
	}
	return 0;
}

/* ---- resources ---- */

static struct schema_resource *add_resource(struct compile *c, struct str uri,
					    const struct json_value *root, enum schema_draft draft)
{
	struct schema_resource *r = arena_alloc(c->arena, sizeof *r);

	r->uri = uri;
	r->root = (struct json_value *)root;
	r->draft = draft;
	r->next = c->schema->resources;
	c->schema->resources = r;
	map_put(&c->resource, uri, (uint64_t)(uintptr_t)r);
	return r;
}

static enum schema_draft metaschema_of(struct str uri)
{
	static const struct { const char *rest; enum schema_draft draft; } known[] = {
		{ "/2020-12/schema", DRAFT_2020 }, { "-07/schema", DRAFT_7 }, { "-06/schema", DRAFT_7 },
	};
	struct str rest = str_after(uri, "://json-schema.org/draft");

	if (str_starts(uri, STR("http")))
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (str_is(rest, known[i].rest))
				return known[i].draft;
	return 0;
}

static int draft_of(struct compile *c, const struct json_value *v, enum schema_draft *draft)
{
	struct str fragment = { 0 }, uri;
	enum schema_draft named;

	if (!v)
		return 0;
	uri = uri_without_fragment(json_text(v, STR("")), &fragment);
	named = fragment.n ? 0 : metaschema_of(uri);
	if (!named)
		return err_set(c->e, ERR_USAGE, "%s/$schema: '%.*s' is unknown; "
			"expected the URI of draft 2020-12, 7 or 6",
			c->where.len ? c->where.data : "", (int)(uri.n < 100 ? uri.n : 100), uri.p);
	*draft = named;
	return 0;
}

/* A $id makes a resource of its own; one that is only a fragment names a place in draft 7. */
static int enter_resource(struct compile *c, struct schema_node *n, const struct json_value *v,
			  struct schema_resource *around)
{
	const struct json_value *id = json_get(v, "$id");
	enum schema_draft draft = around ? around->draft : c->draft;
	struct str fragment, uri, base = around ? around->uri : STR("");
	bool is_ignored;

	n->resource = around;
	if ((!around || id) && !c->is_shape_only &&
	    draft_of(c, json_get(v, "$schema"), &draft) < 0)
		return -1;
	is_ignored = draft == DRAFT_7 && json_get(v, "$ref");
	if (id && id->kind != JSON_STRING && !is_ignored) {
		compile_enter(c, STR("$id"));
		return compile_expected(c, "a URI reference");
	}
	uri = id && !is_ignored ? uri_without_fragment(id->text, &fragment) : STR("");
	if (id && !is_ignored && fragment.n && draft == DRAFT_2020) {
		compile_enter(c, STR("$id"));
		return compile_expected(c, "a URI reference without a fragment");
	}
	if (!around || uri.n)
		n->resource = add_resource(c, uri_resolve(c->arena, base, uri), v, draft);
	if (id && !is_ignored && fragment.n && !c->is_shape_only)
		return compile_anchor(c, n, fragment);
	return 0;
}

static struct str node_key(struct compile *c, const struct json_value *v)
{
	const struct json_value **key = arena_alloc(c->arena, sizeof *key);

	*key = v;
	return (struct str){ (const char *)key, sizeof *key };
}

static struct schema_node *find_node(const struct compile *c, const struct json_value *v)
{
	uint64_t node = 0;

	map_get(&c->node, (struct str){ (const char *)&v, sizeof v }, &node);
	return (struct schema_node *)(uintptr_t)node;
}

static void set_counts(struct schema_node *n)
{
	n->min_length = n->max_length = n->min_items = n->max_items = -1;
	n->min_contains = n->max_contains = n->min_properties = n->max_properties = -1;
}

static struct schema_node *compile_node(struct compile *c, const struct json_value *v,
					struct schema_resource *around)
{
	struct schema_node *n = find_node(c, v);
	bool is_only_ref;

	if (n)
		return n;
	if (v->kind != JSON_OBJECT && v->kind != JSON_TRUE && v->kind != JSON_FALSE) {
		compile_expected(c, "a schema, which is an object, true or false");
		return NULL;
	}
	if (++c->nodes > SCHEMA_NODES_MAX) {
		compile_expected(c, "at most 100000 schemas in one (SCHEMA_NODES_MAX)");
		return NULL;
	}
	n = arena_alloc(c->arena, sizeof *n);
	n->next = c->schema->nodes;
	c->schema->nodes = n;
	map_put(&c->node, node_key(c, v), (uint64_t)(uintptr_t)n);
	set_counts(n);
	n->is_boolean = v->kind != JSON_OBJECT;
	n->allows = v->kind == JSON_TRUE;
	if (enter_resource(c, n, v, around) < 0)
		return NULL;
	is_only_ref = n->resource->draft == DRAFT_7 && json_get(v, "$ref");
	for (size_t i = 0; !n->is_boolean && i < v->count; i++) {
		if (is_only_ref && !str_is(v->key[i], "$ref") && !str_is(v->key[i], "definitions"))
			continue;
		if (compile_keyword(c, n, v, i) < 0)
			return NULL;
	}
	return n;
}

/* ---- references ---- */

static int no_target(struct compile *c, const struct reference *r, const char *why)
{
	return err_set(c->e, ERR_USAGE, "%.*s: '%.*s' %s", (int)r->where.n, r->where.p,
		(int)(r->text.n < 200 ? r->text.n : 200), r->text.p, why);
}

/* One step of a JSON pointer. */
static const struct json_value *step(const struct json_value *v, struct str part, struct buf *name)
{
	uint64_t index;

	buf_reset(name);
	buf_add_text(name, "");
	for (size_t i = 0; i < part.n; i++) {
		bool is_escape = part.p[i] == '~' && i + 1 < part.n;

		buf_add_char(name, !is_escape ? part.p[i] : part.p[++i] == '1' ? '/' : '~');
	}
	if (v->kind == JSON_OBJECT)
		return value_member(v, buf_str(name));
	if (v->kind == JSON_ARRAY && str_to_u64(buf_str(name), &index) && index < v->count)
		return &v->item[index];
	return NULL;
}

/* The schema a JSON pointer leads to; made there when no keyword leads to it. */
static struct schema_node *at_pointer(struct compile *c, struct schema_resource *r,
				      struct str pointer)
{
	const struct json_value *v = r->root;
	struct schema_node *node = NULL;
	struct buf name = { 0 };

	while (v && pointer.n) {
		struct str part = { pointer.p + 1, pointer.n - 1 };
		const char *slash = part.n ? memchr(part.p, '/', part.n) : NULL;

		if (slash)
			part.n = (size_t)(slash - part.p);
		pointer.p += part.n + 1;
		pointer.n -= part.n + 1;
		v = step(v, part, &name);
		node = v ? find_node(c, v) : NULL;
		if (node)
			r = node->resource;
	}
	buf_release(&name);
	return v ? compile_node(c, v, r) : NULL;
}

static int resolve(struct compile *c, struct reference *r)
{
	struct schema_node *from = r->from, *target = NULL;
	struct str fragment, uri = uri_without_fragment(r->text, &fragment);
	struct schema_resource *in;
	uint64_t found;

	fragment = uri_decoded(c->arena, fragment);
	uri = uri_resolve(c->arena, from->resource->uri, uri);
	if (!map_get(&c->resource, uri, &found)) {
		if (!metaschema_of(uri) || fragment.n || r->is_dynamic)
			return no_target(c, r, "is outside the schema; remote references are not followed");
		target = arena_alloc(c->arena, sizeof *target);
		target->metaschema = metaschema_of(uri);
		target->resource = from->resource;
		set_counts(target);
		from->ref = target;
		return 0;
	}
	in = (struct schema_resource *)(uintptr_t)found;
	if (fragment.n == 0 || *fragment.p == '/') {
		c->where.len = 0;
		buf_add_str(&c->where, fragment);
		target = at_pointer(c, in, fragment);
	} else if (map_get(&c->anchor, joined(c, uri, fragment), &found)) {
		target = (struct schema_node *)(uintptr_t)found;
	}
	if (!target)
		return c->e->code ? -1 : no_target(c, r, "does not refer to a schema");
	*(r->is_dynamic ? &from->dynamic_ref : &from->ref) = target;
	if (r->is_dynamic && fragment.n && *fragment.p != '/' &&
	    map_get(&target->resource->dynamic, fragment, &found) &&
	    found == (uint64_t)(uintptr_t)target)
		from->dynamic_name = fragment;
	return 0;
}

static int compile_tree(struct compile *c, const struct json_value *tree)
{
	c->schema->root = compile_node(c, tree, NULL);
	if (!c->schema->root)
		return -1;
	while (c->open) {
		struct reference *r = c->open;

		c->open = r->next;
		if (resolve(c, r) < 0)
			return -1;
	}
	return 0;
}

/* The tree outlives the schema, in the arena or elsewhere. */
static int compile(struct schema *s, const struct json_value *tree, enum schema_draft draft,
		   bool is_shape_only, struct err *e)
{
	struct compile c = { .schema = s, .arena = &s->arena, .draft = draft, .e = e,
		.is_shape_only = is_shape_only };
	int rc = compile_tree(&c, tree);

	map_release(&c.node);
	map_release(&c.resource);
	map_release(&c.anchor);
	buf_release(&c.where);
	return rc;
}

struct schema *schema_new(struct str text, bool is_format_asserted, struct err *e)
{
	struct schema *s = mem_alloc(sizeof *s);
	struct err why = { 0 };
	struct json_value *tree;

	s->is_format_asserted = is_format_asserted;
	if (text.n > SCHEMA_BYTES_MAX)
		err_set(e, ERR_USAGE, "the schema has %zu bytes; at most %u are read "
			"(SCHEMA_BYTES_MAX)", text.n, SCHEMA_BYTES_MAX);
	else if (json_parse_strict(&s->arena, text, &tree, &why) < 0)
		err_set(e, ERR_USAGE, "the schema is not JSON: %s", why.text);
	else if (compile(s, tree, DRAFT_2020, false, &why) < 0)
		err_set(e, ERR_USAGE, "%s", why.text);
	else
		return s;
	schema_free(s);
	return NULL;
}

void schema_free(struct schema *s)
{
	if (!s)
		return;
	for (struct schema_node *n = s->nodes; n; n = n->next) {
		map_release(&n->properties);
		map_release(&n->dependents);
	}
	for (struct schema_resource *r = s->resources; r; r = r->next)
		map_release(&r->dynamic);
	for (size_t i = 0; i < s->pattern_count; i++)
		pattern_free(s->pattern[i]);
	free(s->pattern);
	arena_release(&s->arena);
	free(s);
}

bool schema_is_one(const struct json_value *v, enum schema_draft draft)
{
	struct schema *s = mem_alloc(sizeof *s);
	struct err why = { 0 };
	bool is_one = compile(s, v, draft, true, &why) == 0;

	schema_free(s);
	return is_one;
}
