/* SPDX-License-Identifier: Apache-2.0 */
/* gen_tree.c - see gen_tree.h. */
#include "gen_tree.h"

#include <stdlib.h>

/* ---- nodes ---- */

struct node *node_child(const struct node *n, const char *name)
{
	for (size_t i = 0; n && i < n->n; i++)
		if (strcmp(n->child[i]->name, name) == 0)
			return n->child[i];
	return NULL;
}

static struct node *add_child(struct node *parent, const char *name, struct arena *a)
{
	struct node *made = node_child(parent, name);

	if (made)
		return made;
	if (parent->n == parent->cap) {
		size_t cap = parent->cap ? 2 * parent->cap : 8;
		struct node **grown = arena_alloc(a, cap * sizeof(*grown));

		for (size_t i = 0; i < parent->n; i++)
			grown[i] = parent->child[i];
		parent->child = grown;
		parent->cap = cap;
	}
	made = arena_alloc(a, sizeof(*made));
	made->name = name;
	made->about = "";
	parent->child[parent->n++] = made;
	return made;
}

/* The node at a path; those on the way are made. */
static struct node *node_at(struct node *root, const char *path, struct arena *a)
{
	struct str rest = str_of(path);

	while (rest.n) {
		struct str name = str_cut(&rest, '.');
		bool is_list = name.n > 2 && str_ends(name, STR("[]"));

		if (is_list)
			name.n -= 2;
		root = add_child(root, arena_text(a, name), a);
		if (is_list)
			root = add_child(root, "[]", a);
	}
	return root;
}

bool node_may_be(const struct node *n, const char *alternative)
{
	const char *at = n->type ? n->type : "object";

	while (at) {
		const char *end = strstr(at, " or ");
		size_t len = end ? (size_t)(end - at) : strlen(at);

		if (len == strlen(alternative) && strncmp(at, alternative, len) == 0)
			return true;
		at = end ? end + 4 : NULL;
	}
	return false;
}

const char *node_element(const struct node *n)
{
	const char *at = n->type ? strstr(n->type, "list of ") : NULL;

	return at ? at + strlen("list of ") : NULL;
}

/* ---- a result file's keys ---- */

static bool has_place(const char *key)
{
	return strchr(key, '<') != NULL;
}

/* key with <place> replaced by what; the rest of the places stays. */
static const char *replaced(const char *key, const char *place, const char *what, struct arena *a)
{
	const char *at = strstr(key, place);

	return arena_printf(a, "%.*s%s%s", (int)(at - key), key, what, at + strlen(place));
}

static void add_result_node(struct node *root, const char *path, const struct json_value *f,
			    bool is_required, struct arena *a)
{
	struct node *made = node_at(root, path, a);
	const char *p = strstr(made->name, "<p>");

	if (made->type)
		return; /* declared by the document itself */
	if (p)
		made->name = arena_printf(a, "^%.*s[0-9.]+%s$", (int)(p - made->name), made->name,
					  p + 3);
	made->type = gen_member(f, "type");
	made->about = gen_member(f, "definition");
	made->field = f;
	made->is_pattern = p != NULL;
	made->may_be_nan = true;
	made->is_required = is_required && !*gen_member(f, "when");
}

/* Likewise for every name that its places stand for. */
static void add_result_field(const struct json_value *result, struct node *root, const char *path,
			     const struct json_value *f, bool is_required, struct arena *a)
{
	const struct json_value *names = json_get(result, "names");

	for (size_t i = 0; has_place(path) && i < names->count; i++) {
		const char *place = arena_printf(a, "<%s>", names->key[i].p);

		if (!strstr(path, place))
			continue;
		for (size_t k = 0; k < names->item[i].count; k++)
			add_result_field(result, root,
					 replaced(path, place, gen_member(&names->item[i].item[k],
									  "name"), a),
					 f, is_required, a);
		return;
	}
	add_result_node(root, path, f, is_required, a);
}

/* Of a result's "profllm": where the document has it; NULL: in its results. */
static const char *moved_to(const char *key)
{
	static const char *const budget[] = {
		"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
		"requests_user_stamped", "shared_read_share", "not_one_token_share",
		"usage_differs_share",
	};
	static const char *const dropped[] = {
		"verdict", "reasons", "options", "provenance", "tags", "profiled",
	};
	size_t n = strcspn(key, ".[");

	if (n == 6 && strncmp(key, "system", n) == 0)
		return "system";
	for (size_t i = 0; i < sizeof(budget) / sizeof(*budget); i++)
		if (strlen(budget[i]) == n && strncmp(key, budget[i], n) == 0)
			return "budget";
	for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
		if (strlen(dropped[i]) == n && strncmp(key, dropped[i], n) == 0)
			return "";
	return NULL;
}

static void add_one(const struct json_value *result, struct node *root, const char *from,
		    const struct json_value *f, const char *path, struct arena *a)
{
	const char *ours = strncmp(path, "profllm.", 8) == 0 ? path + 8 : NULL;
	const char *moved = ours ? moved_to(ours) : NULL;
	bool is_budget = strcmp(from, "budget") == 0;

	if (strcmp(from, "result") == 0 && !moved && strcmp(path, "completed") != 0 &&
	    strcmp(path, "failed") != 0)
		add_result_field(result, root, path, f, false, a);
	else if (moved && is_budget && strcmp(moved, "budget") == 0)
		add_result_field(result, root, ours, f, true, a);
	else if (moved && strcmp(from, "system") == 0 && strcmp(moved, "system") == 0 && ours[6])
		add_result_field(result, root, ours + 7, f, false, a);
}

static void add_result(const struct json_value *result, struct node *root, const char *from,
		       struct arena *a)
{
	const struct json_value *fields = json_get(result, "fields");
	const struct json_value *spreads = json_get(json_get(result, "names"), "spread");

	for (size_t i = 0; i < fields->count; i++) {
		const struct json_value *f = &fields->item[i];
		const char *path = gen_member(f, "key");

		if (!strstr(path, "<spread>")) {
			add_one(result, root, from, f, path, a);
			continue;
		}
		for (size_t k = 0; k < spreads->count; k++)
			add_one(result, root, from, f,
				replaced(path, "<spread>", gen_member(&spreads->item[k], "name"), a),
				a);
	}
}

/* ---- the engine's arguments ---- */

static bool has_flag(const struct json_value *arg, const char *flag)
{
	const struct json_value *flags = json_get(arg, "flags");

	for (size_t i = 0; flags && i < flags->count; i++)
		if (strcmp(json_text(&flags->item[i], STR("")).p, flag) == 0)
			return true;
	return false;
}

static const char *argument_type(const struct json_value *arg)
{
	static const char *const types[][2] = {
		{ "flag", "bool or null" }, { "switch", "bool or null" }, { "int", "int or null" },
		{ "human", "int or null" }, { "float", "float or null" },
		{ "text", "text or null" },
		{ "list", "list of any or text or null" },
	};
	const char *kind = gen_member(arg, "kind");

	if ((strcmp(kind, "int") == 0 || strcmp(kind, "human") == 0) &&
	    (has_flag(arg, "auto") || has_flag(arg, "text")))
		return "int or text or null";
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(kind, types[i][0]) == 0)
			return types[i][1];
	return "any";
}

static void add_arguments(const struct json_value *schema, struct node *root, struct arena *a)
{
	const struct json_value *args = json_get(schema, "arguments");

	for (size_t i = 0; i < args->count; i++) {
		char *name = arena_text(a, str_of(gen_member(&args->item[i], "name")));
		struct node *made;

		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p;
		made = add_child(root, name, a);
		made->type = argument_type(&args->item[i]);
		made->about = gen_member(&args->item[i], "about");
	}
}

/* ---- all ---- */

static void fill(struct node *made, const struct json_value *f)
{
	const struct json_value *open = json_get(f, "open");

	made->field = f;
	made->type = gen_member(f, "type");
	made->about = gen_member(f, "definition");
	made->is_required = !*gen_member(f, "when");
	if (open)
		made->open = open->kind == JSON_STRING ? NODE_OPEN_TEXT : NODE_OPEN;
}

struct node *node_tree(const struct json_value *all, const char *list, bool has_arguments,
		       struct arena *a)
{
	const struct json_value *fields = json_get(json_get(all, "experiment"), list);
	const struct json_value *result = json_get(all, "result");
	struct node *root = arena_alloc(a, sizeof(*root));

	root->name = root->about = "";
	for (size_t i = 0; i < fields->count; i++)
		fill(node_at(root, gen_member(&fields->item[i], "key"), a), &fields->item[i]);
	for (size_t i = 0; i < fields->count; i++) {
		const char *from = gen_member(&fields->item[i], "from");
		struct node *made = node_at(root, gen_member(&fields->item[i], "key"), a);

		if (strcmp(from, "engine_args") == 0) {
			made->open = NODE_OPEN;
			if (has_arguments)
				add_arguments(json_get(all, "engine_args"), made, a);
		} else if (strcmp(from, "experiment") == 0) {
			made->ref = from;
		} else if (*from) {
			add_result(result, made, from, a);
			if (strcmp(from, "result") == 0)
				made->open = NODE_OPEN_TEXT; /* --metadata */
		}
	}
	return root;
}
