/* SPDX-License-Identifier: Apache-2.0 */
/* config_values.c - see config_parts.h: what a server's arguments are, defaults included. */
#include "engine/args.h"
#include "experiment/config_parts.h"
#include "opt/dotted.h"

/* A number as it counts: "4k" is 4000. False: it is none, or need not be one. */
static bool as_number(const struct engine_arg *arg, struct str text, struct json_value *out)
{
	bool is_whole = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN;

	*out = (struct json_value){ .kind = is_whole ? JSON_INT : JSON_REAL };
	if (is_whole)
		return opt_human_int(text, &out->integer);
	return arg->kind == ENGINE_REAL && opt_python_float(text, &out->real);
}

static struct json_value initial_value(const struct engine_arg *arg, struct arena *a)
{
	struct json_value v = { .kind = JSON_STRING, .text = str_of(arg->initial) }, *json, number;

	if (!arg->initial)
		return (struct json_value){ 0 };
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		return (struct json_value){ .kind = str_is(v.text, "true") ? JSON_TRUE : JSON_FALSE };
	if (as_number(arg, v.text, &number))
		return number;
	if (arg->kind == ENGINE_JSON && json_parse(a, v.text, &json, NULL) == 0)
		return *json;
	return v;
}

static struct json_value given_value(const struct engine_arg *arg, const struct json_value *v)
{
	struct json_value number;

	if (arg->flags & ENGINE_SECRET)
		return (struct json_value){ .kind = JSON_STRING, .text = STR("***") };
	return v->kind == JSON_STRING && as_number(arg, v->text, &number) ? number : *v;
}

static char *underscored(const char *name, struct arena *a)
{
	char *text = arena_text(a, str_of(name));

	for (char *c = text; *c; c++)
		*c = *c == '-' ? '_' : *c;
	return text;
}

/* The simulator's defaults are its own. What it alone has is there when it was given. */
static void put_sim(struct config_reader *r, const struct json_value *args, const void *sim,
		    struct json_value *out)
{
	const struct opt_set *set = r->know->sim;
	const struct json_value *all;
	struct buf json = { 0 };

	opt_json(set, sim, &json);
	all = config_tree_of(buf_str(&json), r->a);
	buf_release(&json);
	for (size_t i = 0; i < all->count; i++) {
		const struct opt *row = config_row(set, all->key[i]);
		bool is_null = all->item[i].kind == JSON_NULL;

		if (row && !is_null && (engine_arg_find(all->key[i]) ||
					json_get(args, all->key[i].p)))
			config_member(out, all->key[i].p, all->item[i], r->a);
	}
}

const struct json_value *config_values(struct config_reader *r, const struct json_value *args,
				       const void *sim, bool has_defaults)
{
	struct json_value *out = arena_alloc(r->a, sizeof(*out));

	out->kind = JSON_OBJECT;
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *name = underscored(arg->name, r->a);
		const struct json_value *v = json_get(args, name);

		if (v || (has_defaults && !arg->until))
			config_member(out, name, v ? given_value(arg, v) : initial_value(arg, r->a),
				      r->a);
	}
	for (size_t i = 0; i < args->count; i++)
		if (!engine_arg_find(args->key[i]))
			config_member(out, args->key[i].p, args->item[i], r->a);
	if (sim && has_defaults)
		put_sim(r, args, sim, out);
	return out;
}
