/* SPDX-License-Identifier: Apache-2.0 */
/* extra.c - see extra.h: files of arguments, and their differences from the table. */
#include "host/engine/extra.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>

#include "core/base/limits.h"

static const char *const kind_names[ENGINE_KINDS] = {
	"flag", "switch", "int", "human", "float", "text", "list", "json",
};

const char *engine_kind_name(enum engine_kind kind)
{
	assert((size_t)kind < ENGINE_KINDS);
	return kind_names[kind];
}

const struct engine_arg *engine_extra_find(const struct engine_extra *x, struct str name)
{
	for (size_t i = 0; x && i < x->n; i++)
		if (engine_name_is(x->arg[i].name, name))
			return &x->arg[i];
	return NULL;
}

/* ---- files ---- */

/* Only letters, digits, "-" and "_"; is_plain: only small letters and "-". */
static bool is_name(struct str name, bool is_plain)
{
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		if (!islower(c) && !isdigit(c) && c != '-' &&
		    (is_plain || (!isupper(c) && c != '_')))
			return false;
	}
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

/* Kinds that help cannot distinguish because they are typed alike. */
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

static int read_one(const struct json_value *v, struct arena *a, struct engine_arg *out,
		    struct err *e)
{
	struct str name = json_text(json_get(v, "name"), STR(""));
	struct str kind = json_text(json_get(v, "kind"), STR(""));
	const struct engine_arg *was;

	*out = (struct engine_arg){ .min = -INFINITY, .max = INFINITY, .kind = ENGINE_KINDS,
				    .successor = "" };
	if (!is_name(name, true))
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
	/* A known argument keeps what help does not show: its range, its finer kind. */
	was = engine_arg_find(name);
	if (was && !is_other_kind(out->kind, was->kind)) {
		*out = *was;
		out->since = out->until = 0;
		out->earlier = NULL;
	}
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

static void add_lacking(const char *of, const char *in, const char *what, struct buf *out)
{
	struct str rest = str_of(of);

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');

		if (!engine_word_in(in, word))
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

	/* Only the default distinguishes repeated options from lists. */
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

void engine_arg_value_text(const struct engine_arg *arg, struct buf *out)
{
	static const char *const words[ENGINE_KINDS] = {
		"flag", "true or false", "integer", "integer (4k, 4K)", "number", "text", "list",
		"JSON",
	};
	struct str rest = str_of(arg->choices);

	buf_add_text(out, words[arg->kind]);
	if (isfinite(arg->min))
		buf_printf(out, " %s %g", arg->flags & ENGINE_ABOVE ? "above" : "from", arg->min);
	if (isfinite(arg->max))
		buf_printf(out, " %s %g", arg->flags & ENGINE_BELOW ? "to below" : "to", arg->max);
	for (const char *between = ": "; rest.n; between = ", ") {
		buf_add_text(out, between);
		buf_add_str(out, str_cut(&rest, ' '));
	}
	if (arg->flags & ENGINE_AUTO)
		buf_add_text(out, ", or auto");
	if (arg->flags & ENGINE_TEXT_TOO)
		buf_add_text(out, ", or text");
}

#define TEXT_COLUMN 24
#define ABOUT_BYTES_MAX 300

struct help_reader {
	struct str rest;
	struct arena *a;
	struct engine_extra *out;
	const char *group;
	struct engine_arg arg;  /* the one whose text is read; name NULL: none */
	struct buf text;
	size_t room;
};

/* ---- what is given with it ---- */

/* "{a,b}", "['a', 'b']" as blank-separated words; "None" becomes a flag. */
static const char *choices_of(struct str s, struct engine_arg *arg, struct arena *a)
{
	struct buf text = { 0 };
	const char *out;

	s = (struct str){ s.p + 1, s.n - 2 };
	while (s.n) {
		struct str word = str_trim(str_cut(&s, ','));

		if (word.n >= 2 && (*word.p == '\'' || *word.p == '"'))
			word = (struct str){ word.p + 1, word.n - 2 };
		if (str_is(word, "None")) {
			arg->flags |= ENGINE_NONE;
		} else if (word.n && !memchr(word.p, ' ', word.n)) {
			buf_add_text(&text, text.len ? " " : "");
			buf_add_str(&text, word);
		}
	}
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Interprets the word after a spelling: "", "X", "[X]", "X [X ...]", "{a,b}", "['a', 'b']". */
static void read_value_name(struct help_reader *r, struct str s)
{
	struct engine_arg *arg = &r->arg;

	if (arg->kind == ENGINE_SWITCH || (!s.n && arg->kind != ENGINE_KINDS))
		return;
	if (!s.n) {
		arg->kind = ENGINE_FLAG;
	} else if (str_ends(s, STR("...]"))) {
		const char *end = *s.p == '{' ? memchr(s.p, '}', s.n) : NULL;

		arg->kind = ENGINE_LIST;
		if (end)
			arg->choices = choices_of((struct str){ s.p, (size_t)(end - s.p) + 1 }, arg,
						  r->a);
	} else {
		arg->kind = ENGINE_TEXT;
		if (s.n > 2 && (*s.p == '{' || (s.n > 3 && (str_starts(s, STR("['")) ||
							    str_starts(s, STR("[\""))))))
			arg->choices = choices_of(s, arg, r->a);
		else if (*s.p == '[')
			arg->flags |= ENGINE_OPTIONAL;
	}
}

/* The first of several spellings, cut at ", " outside of braces and brackets. */
static struct str cut_spelling(struct str *rest)
{
	int depth = 0;

	for (size_t i = 0; i < rest->n; i++) {
		depth += rest->p[i] == '{' || rest->p[i] == '[';
		depth -= rest->p[i] == '}' || rest->p[i] == ']';
		if (depth <= 0 && rest->p[i] == ',' && i + 1 < rest->n && rest->p[i + 1] == ' ') {
			struct str one = { rest->p, i };

			*rest = (struct str){ rest->p + i + 2, rest->n - i - 2 };
			return one;
		}
	}
	return str_cut(rest, '\n');
}

static void read_spellings(struct help_reader *r, struct str s)
{
	struct buf also = { 0 };

	r->arg = (struct engine_arg){ .kind = ENGINE_KINDS, .min = -INFINITY, .max = INFINITY,
				      .group = r->group, .choices = "", .also = "", .about = "",
				      .successor = "" };
	while (s.n) {
		struct str one = str_trim(cut_spelling(&s)), word = str_cut(&one, ' '), name = word;

		if (str_starts(word, STR("--")))
			name = (struct str){ word.p + 2, word.n - 2 };
		if (!is_name(name, false) || !str_starts(word, STR("-")))
			continue;
		if (str_starts(word, STR("--no-")) && r->arg.name &&
		    str_is((struct str){ name.p + 3, name.n - 3 }, r->arg.name)) {
			r->arg.kind = ENGINE_SWITCH;
			continue;
		}
		if (str_starts(word, STR("--")) && !r->arg.name) {
			char *copy = arena_text(r->a, name);

			for (char *p = copy; *p; p++)
				*p = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
			r->arg.name = copy;
		} else {
			buf_add_text(&also, also.len ? " " : "");
			buf_add_str(&also, word);
		}
		read_value_name(r, str_trim(one));
	}
	r->arg.also = arena_text(r->a, buf_str(&also));
	buf_release(&also);
}

/* ---- its text ---- */

/* Returns the default after the last "(default: " and cuts it off the text; empty: none. */
static struct str cut_default(struct str *text)
{
	static const char mark[] = "(default: ";
	size_t n = sizeof(mark) - 1;
	struct str value;

	for (size_t at = text->n; at-- > 0;) {
		if (text->n - at < n + 1 || memcmp(text->p + at, mark, n) != 0)
			continue;
		value = str_trim((struct str){ text->p + at + n, text->n - at - n });
		if (!value.n || value.p[value.n - 1] != ')')
			return STR("");
		text->n = at;
		return (struct str){ value.p, value.n - 1 };
	}
	return STR("");
}

/* A numeric default shows that the argument is a number. */
static void take_default(struct help_reader *r, struct str value)
{
	struct engine_arg *arg = &r->arg;
	int64_t whole;
	double real;
	char *text;

	if (!value.n || str_is(value, "None"))
		return;
	text = arena_text(r->a, value);
	arg->initial = text;
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		arg->initial = str_is(value, "True") ? "true" : "false";
	else if (arg->kind != ENGINE_TEXT || *arg->choices)
		return;
	else if (str_to_i64(value, &whole))
		arg->kind = ENGINE_INT;
	else if (str_to_f64(value, &real) && isfinite(real))
		arg->kind = ENGINE_REAL;
	else if (*value.p == '{')
		arg->kind = ENGINE_JSON;
}

/* Its first sentence, or as much as is shown. */
static const char *first_sentence(struct str text, struct arena *a)
{
	text = str_trim(text);
	for (size_t i = 0; i + 1 < text.n; i++)
		if (text.p[i] == '.' && text.p[i + 1] == ' ' && i > 8) {
			text.n = i + 1;
			break;
		}
	if (text.n > ABOUT_BYTES_MAX)
		text.n = ABOUT_BYTES_MAX;
	return arena_text(a, text);
}

static void end_argument(struct help_reader *r)
{
	struct str text = buf_str(&r->text);

	if (r->arg.name && strcmp(r->arg.name, "help") != 0 && r->out->n < ENGINE_EXTRA_MAX &&
	    !engine_extra_find(r->out, str_of(r->arg.name))) {
		if (r->arg.kind == ENGINE_KINDS)
			r->arg.kind = ENGINE_FLAG;
		if (text.n) {
			take_default(r, cut_default(&text));
			r->arg.about = first_sentence(text, r->a);
		}
		if (r->out->n == r->room) {
			size_t room = r->room ? 2 * r->room : 64;
			struct engine_arg *grown = arena_alloc(r->a, room * sizeof(*grown));

			if (r->out->n)
				memcpy(grown, r->out->arg, r->out->n * sizeof(*grown));
			r->out->arg = grown;
			r->room = room;
		}
		r->out->arg[r->out->n++] = r->arg;
	}
	r->arg.name = NULL;
	buf_reset(&r->text);
}

/* ---- lines ---- */

static void add_text(struct help_reader *r, struct str line)
{
	line = str_trim(line);
	if (!line.n || !r->arg.name)
		return;
	buf_add_text(&r->text, r->text.len ? " " : "");
	buf_add_str(&r->text, line);
}

static void read_line(struct help_reader *r, struct str line)
{
	size_t indent = 0, at;

	while (indent < line.n && line.p[indent] == ' ')
		indent++;
	if (indent == line.n)
		return;
	if (indent == 0) {
		end_argument(r);
		if (line.p[line.n - 1] == ':' && !memchr(line.p, ' ', line.n))
			r->group = arena_text(r->a, (struct str){ line.p, line.n - 1 });
		if (strcmp(r->group, "options") == 0)
			r->group = "Server";
	} else if (indent == 2 && line.p[2] == '-' && *r->group) {
		end_argument(r);
		/* Where help begins on an argument's own line; the line's end without any. */
		at = line.n > TEXT_COLUMN && line.p[TEXT_COLUMN] != ' ' &&
		     line.p[TEXT_COLUMN - 1] == ' ' && line.p[TEXT_COLUMN - 2] == ' ' ?
		     TEXT_COLUMN : line.n;
		read_spellings(r, str_trim((struct str){ line.p, at }));
		add_text(r, (struct str){ line.p + at, line.n - at });
	} else if (indent >= TEXT_COLUMN) {
		add_text(r, line);
	}
}

int engine_help_read(struct str help, struct arena *a, struct engine_extra *out, struct err *e)
{
	struct help_reader r = { .rest = help, .a = a, .out = out, .group = "" };

	*out = (struct engine_extra){ .version = "" };
	while (r.rest.n) {
		struct str line = str_cut(&r.rest, '\n');

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		read_line(&r, line);
	}
	end_argument(&r);
	buf_release(&r.text);
	if (!out->n)
		return err_set(e, ERR_PARSE, "no argument is found in it; expected the help of "
			       "`vllm serve --help=all`");
	return 0;
}
