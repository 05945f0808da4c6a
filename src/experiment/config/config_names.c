/* SPDX-License-Identifier: Apache-2.0 */
/* config_names.c - see config_internal.h: the names of keys, with "_" and without dots. */
#include <string.h>

#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "experiment/config/config.h"
#include "experiment/config/config_internal.h"
#include "host/engine/args.h"

const char *const config_section_names[] = {
	"server", "benchmark", "resources", "profiling", "telemetry", "output", NULL,
};

/* "-" as "_" before the first dot, as all keys of a configuration are stored. */
static struct str spelled(const struct config *c, struct str key)
{
	struct str rest = key, head = str_cut(&rest, '.');
	char *out;

	if (!memchr(head.p, '-', head.n))
		return key;
	out = arena_text(c->arena, key);
	for (size_t i = 0; i < head.n; i++)
		out[i] = out[i] == '-' ? '_' : out[i];
	return (struct str){ out, key.n };
}

/* section NULL: the keys of a whole file, where those that begin with "x-" are ignored. */
static int settle_keys(const struct config *c, struct json_value *v, const char *section,
		       struct err *e)
{
	size_t n = 0;

	/* Too many are refused later; here each is compared with all. */
	if (!v || v->kind != JSON_OBJECT || v->count > EXPERIMENT_KEYS_MAX)
		return 0;
	for (size_t i = 0; i < v->count; i++) {
		struct str key = spelled(c, v->key[i]);

		if (!section && str_starts(v->key[i], STR("x-")))
			continue;
		if (key.p != v->key[i].p && config_get_str(v, key, false))
			return config_refuse(c, e, &v->item[i], arena_printf(c->arena, "%s%s%s",
					     section ? section : "", section ? "." : "",
					     v->key[i].p),
					     "%.*s is also given; remove one of the two",
					     (int)key.n, key.p);
		v->key[n] = key;
		config_set_item(c, &v->item[n++], &v->item[i]);
	}
	v->count = n;
	return 0;
}

/* ---- dots ---- */

/* Whether a section's key is an object, so that its members may be given alone: env.NAME. */
static bool is_object_key(const char *section, struct str key)
{
	bool is_server = strncmp(section, "server", 6) == 0;
	const struct opt_set *set = is_server ? &config_server_set :
				    strcmp(section, "output") == 0 ? &config_output_set : NULL;
	const struct engine_arg *arg = is_server ? config_arg_of(key) : NULL;
	const struct opt *row = config_row(set, key);

	for (int mode = 0; !row && strcmp(section, "benchmark") == 0 && mode < MODE_COUNT; mode++)
		row = config_row(config_bench_set((enum experiment_mode)mode), key);
	return row ? row->kind == OPT_JSON : arg && arg->kind == ENGINE_JSON;
}

/* "a.", ".a", "a..b" */
static bool has_empty_part(struct str key)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] == '.' && (i == 0 || i + 1 == key.n || key.p[i - 1] == '.'))
			return true;
	return false;
}

/* All members HEAD.KEY of an object, as KEY; NULL: none. */
static struct json_value *members_at(const struct config *c, const struct json_value *v,
				     struct str head)
{
	struct json_value *out = NULL;

	for (size_t i = 0; i < v->count; i++) {
		struct str rest = v->key[i];

		if (!str_eq(str_cut(&rest, '.'), head) || !rest.n)
			continue;
		if (!out) {
			out = config_copy(c, v, 0);
			json_marks_copy(c->marks, &v->item[i], out);
			out->count = 0;
		}
		out->key[out->count] = rest;
		config_set_item(c, &out->item[out->count++], &v->item[i]);
	}
	return out;
}

/* An object and what is given for its members with a dot; NULL with e: both have the same. */
static const struct json_value *with_members(const struct config *c, const struct json_value *whole,
					     const struct json_value *members, const char *path,
					     struct err *e)
{
	const struct json_value *object = whole;

	if (whole && whole->kind == JSON_STRING)
		object = config_tree_of(whole->text, c->arena); /* JSON in quotes */
	if (whole && whole->kind != JSON_NULL && object->kind != JSON_OBJECT) {
		config_refuse(c, e, members, path, "is %s, and is also given by its members; remove "
			      "one of the two", config_got(whole, c->arena));
		return NULL;
	}
	for (size_t i = 0; object && i < members->count; i++)
		if (config_get_str(object, members->key[i], false)) {
			config_refuse(c, e, &members->item[i], path, "%.*s is given twice; remove "
				      "one of the two", (int)members->key[i].n,
				      members->key[i].p);
			return NULL;
		}
	return config_merge(c, object, members);
}

/*
 * Puts "env.NAME" into env, where everything else looks for it and where other files override it.
 * section: its name; NULL: an object at path, all of whose dots mean objects.
 */
static int nest_dots(const struct config *c, struct json_value *v, const char *section,
		     const char *path, struct err *e)
{
	struct json_value *out;

	if (!v || v->kind != JSON_OBJECT || v->count > EXPERIMENT_KEYS_MAX)
		return 0;
	out = config_copy(c, v, 0);
	out->count = 0;
	for (size_t i = 0; i < v->count; i++) {
		struct str key = v->key[i], rest = key, head = str_cut(&rest, '.');
		const struct json_value *one = &v->item[i];
		struct json_value *members = NULL;
		const char *inner;

		if (!section || is_object_key(section, head)) {
			if (has_empty_part(key))
				return config_refuse(c, e, one, path, "%.*s: a key is empty",
						     (int)key.n, key.p);
			members = members_at(c, v, head);
		}
		if (members && config_get_str(out, head, false))
			continue;
		if (members) {
			inner = arena_printf(c->arena, "%s.%.*s", path, (int)head.n, head.p);
			if (nest_dots(c, members, NULL, inner, e) < 0)
				return -1;
			one = with_members(c, config_get_str(v, head, false), members, inner, e);
			if (!one)
				return -1;
			key = arena_str(c->arena, head);
		}
		out->key[out->count] = key;
		config_set_item(c, &out->item[out->count++], one);
	}
	config_set_item(c, v, out);
	return 0;
}

/* ---- all of a file ---- */

static int settle_section(const struct config *c, struct json_value *v, const char *section,
			  struct err *e)
{
	return settle_keys(c, v, section, e) < 0 ? -1 : nest_dots(c, v, section, section, e);
}

static int settle_all(const struct config *c, struct json_value *tree, bool is_root,
		      struct err *e)
{
	struct json_value *list;

	if (settle_keys(c, tree, is_root ? NULL : "experiments", e) < 0)
		return -1;
	for (const char *const *name = config_section_names; *name; name++)
		if (settle_section(c, json_get(tree, *name), *name, e) < 0)
			return -1;
	list = json_get(tree, "servers");
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (settle_section(c, &list->item[i], "servers", e) < 0)
			return -1;
	list = is_root ? json_get(tree, "experiments") : NULL;
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (list->item[i].kind == JSON_OBJECT &&
		    settle_all(c, &list->item[i], false, e) < 0)
			return -1;
	return 0;
}

int config_settle_names(const struct config *c, struct json_value *tree, const char *section,
			struct err *e)
{
	if (!section)
		return settle_all(c, tree, true, e);
	return settle_keys(c, tree, NULL, e) < 0 ? -1 : nest_dots(c, tree, section, section, e);
}

const char *config_spelled_path(const struct config *c, struct str path)
{
	struct str rest = path, head = str_cut(&rest, '.');
	char *out = arena_text(c->arena, path);
	size_t n = config_is_any(head, config_section_names, SIZE_MAX) ? head.n + 1 : 0;

	if (str_is(head, "servers") || str_is(head, "experiments")) {
		/* servers.0.KEY; experiments.0.SECTION.KEY */
		struct str place = str_cut(&rest, '.');

		n = head.n + place.n + 2;
		if (str_is(head, "experiments") && n < path.n &&
		    !str_starts(rest, STR("experiments."))) {
			const char *inner = config_spelled_path(c, (struct str){ path.p + n,
									path.n - n });

			return arena_printf(c->arena, "%.*s%s", (int)n, out, inner);
		}
	}
	for (size_t i = n; i < path.n && out[i] != '.'; i++)
		out[i] = out[i] == '-' ? '_' : out[i];
	return out;
}
