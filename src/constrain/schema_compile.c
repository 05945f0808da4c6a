/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_compile.c - a schema's text to the graph of schema.h.
 *
 * References are collected and resolved when all places that can have a name are known; a JSON
 * pointer to a place that no keyword leads to makes a node there, which may bring new references.
 */
#include "constrain/schema_compile.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "constrain/uri.h"
#include "constrain/value.h"

int compile_expected(struct compile *c, const char *what)
{
	return err_set(c->e, ERR_USAGE, "%s: expected %s",
		c->where.len ? c->where.data : "the schema", what);
}

size_t compile_enter(struct compile *c, struct str key)
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

size_t compile_enter_index(struct compile *c, size_t i)
{
	size_t was = c->where.len;

	buf_printf(&c->where, "/%zu", i);
	return was;
}

void compile_leave(struct compile *c, size_t was)
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

int compile_anchor(struct compile *c, struct schema_node *n, struct str name)
{
	struct str key = joined(c, n->resource->uri, name);
	uint64_t other;

	if (map_get(&c->anchor, key, &other) && other != (uint64_t)(uintptr_t)n)
		return compile_expected(c, "a name that no other schema has");
	map_put(&c->anchor, key, (uint64_t)(uintptr_t)n);
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

struct schema_node *compile_node(struct compile *c, const struct json_value *v,
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
		return c->e->code ? -1 : no_target(c, r, "leads to no schema");
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
