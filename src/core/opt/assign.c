/* SPDX-License-Identifier: Apache-2.0 */
/* assign.c - one option from a text that came from a file, a form or key=value. */
#include "core/opt/row.h"

static bool is_any(struct str s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq_nocase(s, str_of(*words)))
			return true;
	return false;
}

static bool is_none(struct str s)
{
	static const char *const words[] = { "null", "none", "~", NULL };

	return s.n == 0 || is_any(s, words);
}

static int assign_bool(const struct opt_set *set, const struct opt *o, void *values,
		       struct str value, struct err *e)
{
	static const char *const yes[] = { "true", "yes", "on", "1", NULL };
	static const char *const no[] = { "false", "no", "off", "0", NULL };

	if (is_any(value, yes))
		return opt_read_bool(set, o, values, true, e);
	if (is_any(value, no))
		return opt_read_bool(set, o, values, false, e);
	if (o->kind == OPT_TRI && is_none(value)) {
		*(enum opt_tri *)opt_field(o, values) = OPT_TRI_UNSET;
		return 0;
	}
	return err_set(e, ERR_USAGE, "%s: expected true or false, got '%.*s'", o->name,
		       (int)value.n, value.p);
}

static int assign_list(const struct opt_set *set, const struct opt *o, void *values,
		       struct str value, struct arena *a, struct err *e)
{
	struct json_value *json;
	const char **v;

	if (value.n == 0 || value.p[0] != '[')
		return opt_read(set, o, values, value, a, e);
	if (json_parse(a, value, &json, e) < 0) {
		if (e)
			e->code = ERR_USAGE;
		return err_wrap(e, "%s: expected a JSON array of texts", o->name);
	}
	v = arena_alloc(a, (json->count + 1) * sizeof(*v));
	for (size_t i = 0; i < json->count; i++) {
		if (json->item[i].kind == JSON_STRING)
			v[i] = json->item[i].text.p;
		else
			v[i] = opt_dotted_text(&json->item[i], a);
	}
	if (json->count == 0 && o->flags & OPT_MANY)
		return err_set(e, ERR_USAGE, "%s: expected at least one element", o->name);
	return opt_read_list(set, o, values, v, json->count, e);
}

/* Changes one key and keeps the others: a file has no order to speak of. */
static int assign_key(const struct opt_set *set, const struct opt *o, void *values,
		      struct str path, struct str value, struct arena *a, struct err *e)
{
	const struct opt_json *field = opt_field_const(o, values);
	struct json_value *root = NULL;

	if (o->kind != OPT_JSON)
		return err_set(e, ERR_USAGE, "%s: holds no JSON, so it has no key '%.*s'", o->name,
			       (int)path.n, path.p);
	if (field->text && json_parse(a, str_of(field->text), &root, e) < 0)
		return -1;
	if (opt_dotted_put(&root, o->name, path, value, NULL, a, e) < 0)
		return -1;
	return opt_read(set, o, values, str_of(opt_dotted_text(root, a)), a, e);
}

/* Unsets what may be absent; false for an option that always has a value. */
static bool assign_none(const struct opt_set *set, const struct opt *o, void *values)
{
	const void *otherwise = opt_field_const(o, set->defaults);
	void *field = opt_field(o, values);

	if (o->kind == OPT_MAYBE_INT)
		*(struct opt_int *)field = (struct opt_int){ 0 };
	else if (o->kind == OPT_MAYBE_REAL)
		*(struct opt_real *)field = (struct opt_real){ 0 };
	else if (o->kind == OPT_LIST)
		*(struct opt_list *)field = (struct opt_list){ 0 };
	else if ((o->kind == OPT_TEXT || o->kind == OPT_JSON) && !*(char *const *)otherwise)
		*(const char **)field = NULL;
	else
		return false;
	return true;
}

int opt_assign(const struct opt_set *set, void *values, const char *name, struct str value,
	       struct arena *a, struct err *e)
{
	struct str path = str_of(name), head = str_cut(&path, '.');
	const struct opt *o = opt_row(set, head);

	if (!o || o->flags & OPT_NO_CONFIG) {
		const char *near = opt_suggest(set, head);

		return err_set(e, ERR_USAGE, "unknown option '%.*s'%s%s%s", (int)head.n, head.p,
			       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	o = opt_target(set, o);
	if (head.n < strlen(name))
		return assign_key(set, o, values, path, value, a, e);
	if (o->kind == OPT_FLAG || o->kind == OPT_TRI)
		return assign_bool(set, o, values, value, e);
	/* An option with a default always has a value, and "none" may be one. */
	if (is_none(value) && assign_none(set, o, values))
		return 0;
	if (o->kind == OPT_LIST)
		return assign_list(set, o, values, value, a, e);
	return opt_read(set, o, values, value, a, e);
}

int opt_give(const struct opt_set *set, void *values, struct opt_result *result,
	     const char *name, struct str value, struct arena *a, struct err *e)
{
	size_t i;

	if (opt_assign(set, values, name, value, a, e) < 0)
		return -1;
	i = (size_t)(opt_target(set, opt_row(set, str_of(name))) - set->row);
	result->given[i / 64] |= UINT64_C(1) << i % 64;
	return 0;
}
