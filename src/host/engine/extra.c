/* SPDX-License-Identifier: Apache-2.0 */
/* extra.c - see extra.h: files of arguments, and how they differ from the table. */
#include "host/engine/extra.h"

#include <math.h>

#include "core/base/limits.h"

static const char *const kind_names[ENGINE_KINDS] = {
	"flag", "switch", "int", "human", "float", "text", "list", "json",
};

const char *engine_kind_name(enum engine_kind kind)
{
	return kind_names[kind];
}

static bool name_is(const char *name, struct str typed)
{
	size_t i = 0;

	for (; i < typed.n && name[i]; i++)
		if (name[i] != (typed.p[i] == '_' ? '-' : typed.p[i]))
			return false;
	return i == typed.n && !name[i];
}

const struct engine_arg *engine_extra_find(const struct engine_extra *x, struct str name)
{
	for (size_t i = 0; x && i < x->n; i++)
		if (name_is(x->arg[i].name, name))
			return &x->arg[i];
	return NULL;
}

/* ---- files ---- */

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", name.p[i]) || !name.p[i])
			return false;
	return name.n > 0;
}

/* Texts of a list with blanks between them. */
static const char *joined(const struct json_value *list, struct arena *a)
{
	struct buf text = { 0 };
	const char *out;

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str word = json_text(&list->item[i], STR(""));

		if (!word.n || memchr(word.p, ' ', word.n))
			continue;
		buf_add_text(&text, text.len ? " " : "");
		buf_add_str(&text, word);
	}
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Help does not tell kinds apart that are typed alike. */
static bool is_bare(enum engine_kind kind)
{
	return kind == ENGINE_FLAG || kind == ENGINE_SWITCH;
}

static bool is_other_kind(enum engine_kind told, enum engine_kind was)
{
	if (is_bare(told) || is_bare(was))
		return told != was;
	return (told == ENGINE_LIST) != (was == ENGINE_LIST);
}

/* One that the table has keeps what help does not tell: its range, its finer kind. */
static void begin_from_table(struct engine_arg *out, enum engine_kind kind)
{
	const struct engine_arg *was = engine_arg_find(str_of(out->name));

	if (!was || is_other_kind(kind, was->kind))
		return;
	*out = *was;
	out->since = out->until = 0;
	out->earlier = NULL;
}

static int read_one(const struct json_value *v, struct arena *a, struct engine_arg *out,
		    struct err *e)
{
	struct str name = json_text(json_get(v, "name"), STR(""));
	struct str kind = json_text(json_get(v, "kind"), STR(""));

	*out = (struct engine_arg){ .min = -INFINITY, .max = INFINITY, .kind = ENGINE_KINDS,
				    .successor = "" };
	if (!is_name(name))
		return err_set(e, ERR_PARSE, "an argument's name is '%.*s'; expected small letters, "
			       "digits and dashes", (int)(name.n < 80 ? name.n : 80), name.p);
	for (int i = 0; i < ENGINE_KINDS; i++)
		if (str_is(kind, kind_names[i]))
			out->kind = (enum engine_kind)i;
	if (out->kind == ENGINE_KINDS)
		return err_set(e, ERR_PARSE, "%s: kind is '%.*s'; expected flag, switch, int, human, "
			       "float, text, list or json", name.p, (int)(kind.n < 80 ? kind.n : 80),
			       kind.p);
	out->name = name.p;
	begin_from_table(out, out->kind);
	out->also = joined(json_get(v, "also"), a);
	out->choices = joined(json_get(v, "choices"), a);
	out->group = json_text(json_get(v, "group"), STR("")).p;
	out->about = json_text(json_get(v, "about"), STR("")).p;
	out->initial = json_text(json_get(v, "default"), (struct str){ 0 }).p;
	if (json_bool(json_get(v, "optional"), false))
		out->flags |= ENGINE_OPTIONAL;
	if (json_bool(json_get(v, "none"), false))
		out->flags |= ENGINE_NONE;
	return 0;
}

int engine_extra_parse(struct str json, struct arena *a, struct engine_extra *out, struct err *e)
{
	const struct json_value *list;
	struct json_value *v;

	*out = (struct engine_extra){ .version = "" };
	if (json_parse(a, json, &v, e) < 0)
		return -1;
	list = json_get(v, "arguments");
	if (!list || list->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected an object with a list \"arguments\"");
	if (list->count > ENGINE_EXTRA_MAX)
		return err_set(e, ERR_LIMIT, "%zu arguments; at most %d are read", list->count,
			       ENGINE_EXTRA_MAX);
	out->version = json_text(json_get(v, "version"), STR("")).p;
	out->arg = arena_alloc(a, (list->count + 1) * sizeof(*out->arg));
	for (; out->n < list->count; out->n++)
		if (read_one(&list->item[out->n], a, &out->arg[out->n], e) < 0)
			return -1;
	return 0;
}

static void put_words(struct json_writer *w, const char *key, const char *words)
{
	struct str rest = str_of(words);

	if (!rest.n)
		return;
	json_member_array(w, key);
	while (rest.n)
		json_put_str(w, str_cut(&rest, ' '));
	json_end_array(w);
}

static void put_one(struct json_writer *w, const struct engine_arg *arg)
{
	json_begin_object(w);
	json_member_text(w, "name", arg->name);
	put_words(w, "also", arg->also);
	json_member_text(w, "group", arg->group);
	json_member_text(w, "kind", kind_names[arg->kind]);
	if (arg->initial)
		json_member_text(w, "default", arg->initial);
	put_words(w, "choices", arg->choices);
	if (arg->flags & ENGINE_OPTIONAL)
		json_member_bool(w, "optional", true);
	if (arg->flags & ENGINE_NONE)
		json_member_bool(w, "none", true);
	json_member_text(w, "about", arg->about);
	json_end_object(w);
}

void engine_extra_write(const struct engine_extra *x, struct json_writer *w)
{
	json_begin_object(w);
	json_member_text(w, "version", x->version);
	json_member_array(w, "arguments");
	for (size_t i = 0; i < x->n; i++)
		put_one(w, &x->arg[i]);
	json_end_array(w);
	json_end_object(w);
}

/* ---- differences ---- */

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_of(words);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), word))
			return true;
	return false;
}

static void add_lacking(const char *of, const char *in, const char *what, struct buf *out)
{
	struct str rest = str_of(of);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (!has_word(in, word))
			buf_printf(out, "%s%.*s is %s", out->len ? ", " : "", (int)word.n, word.p,
				   what);
	}
}

/* "1800.0" and "1800", "True" and "true", "Backend.TRITON" and "triton" are the same. */
static bool is_other_default(const struct engine_arg *told, const struct engine_arg *was)
{
	const char *dot = told->initial ? strrchr(told->initial, '.') : NULL;
	double x, y;

	if (!told->initial || !was->initial || was->kind == ENGINE_LIST ||
	    was->kind == ENGINE_JSON)
		return false;
	if (str_to_f64(str_of(told->initial), &x) && str_to_f64(str_of(was->initial), &y))
		return x != y;
	if (dot && str_eq_nocase(str_of(dot + 1), str_of(was->initial)))
		return false;
	return !str_eq_nocase(str_of(told->initial), str_of(was->initial));
}

static const char *difference(const struct engine_arg *told, const struct engine_arg *was,
			      struct arena *a)
{
	struct buf text = { 0 }, choices = { 0 };
	const char *out;

	/* Repeated options and lists are told apart by their default alone. */
	if (is_other_kind(told->kind, was->kind) &&
	    !(was->kind == ENGINE_LIST && told->initial && *told->initial == '['))
		buf_printf(&text, "a %s, was a %s", kind_names[told->kind], kind_names[was->kind]);
	if (*told->choices && *was->choices) {
		add_lacking(told->choices, was->choices, "new", &choices);
		add_lacking(was->choices, told->choices, "gone", &choices);
	}
	if (choices.len)
		buf_printf(&text, "%schoices: %s", text.len ? "; " : "", choices.data);
	if (is_other_default(told, was))
		buf_printf(&text, "%sdefault %s, was %s", text.len ? "; " : "", told->initial,
			   was->initial);
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	buf_release(&choices);
	return out;
}

void engine_extra_compare(const struct engine_extra *told, struct arena *a,
			  struct engine_changes *out)
{
	*out = (struct engine_changes){
		.added = arena_alloc(a, (told->n + 1) * sizeof(*out->added)),
		.changed = arena_alloc(a, (told->n + 1) * sizeof(*out->changed)),
		.gone = arena_alloc(a, (engine_arg_count + 1) * sizeof(*out->gone)),
	};
	for (size_t i = 0; i < told->n; i++) {
		const struct engine_arg *arg = &told->arg[i];
		const struct engine_arg *was = engine_arg_find(str_of(arg->name));
		const char *what = was ? difference(arg, was, a) : "";

		if (!was || was->until)
			out->added[out->n_added++] = (struct engine_change){ arg, was, "" };
		else if (*what)
			out->changed[out->n_changed++] = (struct engine_change){ arg, was, what };
	}
	for (size_t i = 0; i < engine_arg_count; i++)
		if (!engine_args[i].until &&
		    !engine_extra_find(told, str_of(engine_args[i].name)))
			out->gone[out->n_gone++] =
				(struct engine_change){ &engine_args[i], &engine_args[i], "" };
}

/* ---- for people ---- */

static void add_bound(const struct engine_arg *arg, struct buf *out)
{
	if (isfinite(arg->min))
		buf_printf(out, " %s %g", arg->flags & ENGINE_ABOVE ? "above" : "from", arg->min);
	if (isfinite(arg->max))
		buf_printf(out, " %s %g", arg->flags & ENGINE_BELOW ? "to below" : "to", arg->max);
}

void engine_arg_value_text(const struct engine_arg *arg, struct buf *out)
{
	static const char *const words[ENGINE_KINDS] = {
		"flag", "true or false", "integer", "integer (4k, 4K)", "number", "text", "list",
		"JSON",
	};
	struct str rest = str_of(arg->choices);

	buf_add_text(out, words[arg->kind]);
	add_bound(arg, out);
	for (const char *between = ": "; rest.n; between = ", ") {
		buf_add_text(out, between);
		buf_add_str(out, str_cut(&rest, ' '));
	}
	if (arg->flags & ENGINE_AUTO)
		buf_add_text(out, ", or auto");
	if (arg->flags & ENGINE_TEXT_TOO)
		buf_add_text(out, ", or text");
}
