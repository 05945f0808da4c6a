/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c - Python's argparse help as arguments; see extra.h.
 *
 * A heading begins in the first column and ends with ":". In the third, an argument: its spellings
 * with what stands for a value. Its text begins in column 24, on the same line when there is room,
 * and ends with "(default: VALUE)".
 */
#include <ctype.h>
#include <math.h>

#include "core/base/limits.h"
#include "host/engine/extra.h"

#define TEXT_COLUMN 24
#define ABOUT_BYTES_MAX 300

struct reader {
	struct str rest;
	struct arena *a;
	struct engine_extra *out;
	const char *group;
	struct engine_arg arg;  /* the one whose text is read; name NULL: none */
	struct buf text;
	size_t room;
};

/* ---- what is given with it ---- */

static bool is_quoted_list(struct str s)
{
	return s.n > 3 && s.p[0] == '[' && (s.p[1] == '\'' || s.p[1] == '"');
}

/* "{a,b}", "['a', 'b']": blank-separated, "None" apart. */
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

/* What follows a spelling, in place of a value: "", "X", "[X]", "X [X ...]", "{a,b}", "['a', 'b']". */
static void read_value_name(struct reader *r, struct str s)
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
		if (s.n > 2 && (*s.p == '{' || is_quoted_list(s)))
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

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", s.p[i])
		    || !s.p[i])
			return false;
	return s.n > 0;
}

static void read_spellings(struct reader *r, struct str s)
{
	struct buf also = { 0 };

	r->arg = (struct engine_arg){ .kind = ENGINE_KINDS, .min = -INFINITY, .max = INFINITY,
				      .group = r->group, .choices = "", .also = "", .about = "",
				      .successor = "" };
	while (s.n) {
		struct str one = str_trim(cut_spelling(&s)), word = str_cut(&one, ' '), name = word;

		if (str_starts(word, STR("--")))
			name = (struct str){ word.p + 2, word.n - 2 };
		if (!is_name(name) || !str_starts(word, STR("-")))
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

/* The default behind the last "(default: "; empty: none. Cuts it off the text. */
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

/* A number's default tells that it is one. */
static void take_default(struct reader *r, struct str value)
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

static void end_argument(struct reader *r)
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

static void add_text(struct reader *r, struct str line)
{
	line = str_trim(line);
	if (!line.n || !r->arg.name)
		return;
	buf_add_text(&r->text, r->text.len ? " " : "");
	buf_add_str(&r->text, line);
}

/* Where the text begins on an argument's own line; its end when it does not. */
static size_t text_at(struct str line)
{
	if (line.n > TEXT_COLUMN && line.p[TEXT_COLUMN] != ' ' && line.p[TEXT_COLUMN - 1] == ' ' &&
	    line.p[TEXT_COLUMN - 2] == ' ')
		return TEXT_COLUMN;
	return line.n;
}

static void read_line(struct reader *r, struct str line)
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
		at = text_at(line);
		read_spellings(r, str_trim((struct str){ line.p, at }));
		add_text(r, (struct str){ line.p + at, line.n - at });
	} else if (indent >= TEXT_COLUMN) {
		add_text(r, line);
	}
}

int engine_help_read(struct str help, struct arena *a, struct engine_extra *out, struct err *e)
{
	struct reader r = { .rest = help, .a = a, .out = out, .group = "" };

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
