/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c - prints the rows for people (--help, =all, =GROUP, =WORD) and for programs (=json).
 *
 * Text is wrapped to the terminal's width; every spelling of an option is printed in full.
 */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json/write.h"
#include "core/opt/opt_internal.h"

#define INDENT 2          /* before a spelling */
#define TEXT_COLUMN 28    /* where help starts; a longer spelling takes its own line */

struct opt_page {
	const struct opt_set *set;
	struct buf *out;
	unsigned columns;
	struct opt_foreign_rows foreign;
};

static bool is_like(char a, char b)
{
	a = a == '_' || a == ' ' ? '-' : (char)tolower((unsigned char)a);
	b = b == '_' || b == ' ' ? '-' : (char)tolower((unsigned char)b);
	return a == b;
}

/* Case, "_", "-" and blanks do not matter: whether text holds part, or equals it. */
static bool holds(const char *text, const char *part)
{
	for (; *text; text++) {
		size_t i = 0;

		while (part[i] && text[i] && is_like(text[i], part[i]))
			i++;
		if (!part[i])
			return true;
	}
	return false;
}

static bool is_same(const char *a, const char *b)
{
	return strlen(a) == strlen(b) && holds(a, b);
}

/* Words of text from column `at` on; later lines start at `indent`. Ends the line. */
static void wrap(struct opt_page *p, struct str text, unsigned at, unsigned indent)
{
	bool is_line_start = true;

	while (text.n) {
		struct str word = str_cut(&text, ' ');
		unsigned n = (unsigned)word.n;

		if (n == 0)
			continue;
		if (!is_line_start && at + 1 + n > p->columns) {
			buf_printf(p->out, "\n%*s", (int)indent, "");
			at = indent;
			is_line_start = true;
		}
		if (!is_line_start) {
			buf_add_char(p->out, ' ');
			at++;
		}
		buf_add_str(p->out, word);
		at += n;
		is_line_start = false;
	}
	buf_add_char(p->out, '\n');
}

/* One option: its spellings, then what it does next to or below them. */
static void add_item(struct opt_page *p, struct str spellings, struct str text)
{
	unsigned at = INDENT + (unsigned)spellings.n;

	buf_printf(p->out, "%*s", INDENT, "");
	buf_add_str(p->out, spellings);
	if (at + 2 > TEXT_COLUMN) {
		buf_add_char(p->out, '\n');
		at = 0;
	}
	buf_printf(p->out, "%*s", (int)(TEXT_COLUMN - at), "");
	wrap(p, text, TEXT_COLUMN, TEXT_COLUMN);
}

/* ---- foreign arguments ---- */

static void add_foreign_spellings(const struct opt_foreign_row *r, struct buf *out)
{
	struct str also = str_of(r->also);

	while (also.n) {
		buf_add_str(out, str_cut(&also, ' '));
		buf_add_text(out, ", ");
	}
	buf_printf(out, "--%s", r->name);
	if (r->is_switch)
		buf_printf(out, ", --no-%s", r->name);
	if (!r->has_value)
		return;
	buf_add_char(out, ' ');
	for (const char *c = r->name; *c; c++)
		buf_add_char(out, *c == '-' ? '_' : (char)toupper((unsigned char)*c));
	if (strcmp(r->kind, "list") == 0)
		buf_add_text(out, " ...");
	if (strcmp(r->kind, "json") == 0)
		buf_printf(out, ", --%s.KEY VALUE", r->name);
}

static void show_foreign_row(struct opt_page *p, const struct opt_foreign_row *r)
{
	struct buf spellings = { 0 }, text = { 0 };
	bool has_default = *r->initial && (r->has_value || strcmp(r->initial, "true") == 0);
	struct str choices = str_of(r->choices);
	const char *sep = " (choices: ";

	add_foreign_spellings(r, &spellings);
	buf_add_text(&text, r->help);
	while (choices.n) {
		buf_add_text(&text, sep);
		buf_add_str(&text, str_cut(&choices, ' '));
		sep = ", ";
	}
	if (has_default)
		buf_printf(&text, "%sdefault: %s", *r->choices ? "; " : " (", r->initial);
	buf_add_text(&text, *r->choices || has_default ? ")" : "");
	add_item(p, buf_str(&spellings), buf_str(&text));
	buf_release(&spellings);
	buf_release(&text);
}

/* Number of rows in the group that begins with row i; 0: it began earlier. */
static size_t group_at(const struct opt_page *p, size_t i)
{
	size_t n = 0;

	for (size_t j = 0; j < p->foreign.n; j++) {
		if (strcmp(p->foreign.row[j].group, p->foreign.row[i].group) != 0)
			continue;
		if (j < i)
			return 0;
		n++;
	}
	return n;
}

/* The list of groups of foreign arguments. */
static void show_foreign_groups(struct opt_page *p)
{
	if (p->foreign.n)
		buf_add_text(p->out, "\nArguments of the engine are accepted, too; "
				     "--help=GROUP lists those of a group:\n");
	for (size_t i = 0; i < p->foreign.n; i++) {
		size_t n = group_at(p, i);

		if (n)
			buf_printf(p->out, "  %-25s %zu argument%s\n", p->foreign.row[i].group, n,
				   n == 1 ? "" : "s");
	}
}

/* Prints one foreign group, "": all; false: there is no such group. */
static bool show_foreign(struct opt_page *p, const char *group)
{
	bool is_found = false;

	for (size_t i = 0; i < p->foreign.n; i++) {
		const char *name = p->foreign.row[i].group;

		if ((*group && !is_same(name, group)) || !group_at(p, i))
			continue;
		is_found = true;
		buf_printf(p->out, "\n%s, an argument group of the engine:\n", name);
		for (size_t j = i; j < p->foreign.n; j++)
			if (strcmp(p->foreign.row[j].group, name) == 0)
				show_foreign_row(p, &p->foreign.row[j]);
	}
	return is_found;
}

/* Prints foreign rows with part in their name; returns how many. */
static size_t show_foreign_named(struct opt_page *p, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < p->foreign.n; i++) {
		if (!holds(p->foreign.row[i].name, part))
			continue;
		if (n++ == 0)
			buf_printf(p->out, "\nArguments of the engine that match '%s':\n", part);
		show_foreign_row(p, &p->foreign.row[i]);
	}
	return n;
}

static void put_words(struct json_writer *w, const char *key, struct str rest)
{
	json_member_array(w, key);
	while (rest.n)
		json_put_str(w, str_cut(&rest, ' '));
	json_end_array(w);
}

/* Objects in the array of options. */
static void put_foreign(const struct opt_page *p, struct json_writer *w)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < p->foreign.n; i++) {
		const struct opt_foreign_row row = p->foreign.row[i];

		buf_reset(&text);
		buf_printf(&text, "%s%s--%s", row.also, *row.also ? " " : "", row.name);
		if (row.is_switch)
			buf_printf(&text, " --no-%s", row.name);
		json_begin_object(w);
		json_member_text(w, "name", row.name);
		put_words(w, "spellings", buf_str(&text));
		json_member_text(w, "kind", row.kind);
		json_member_text(w, "group", row.group);
		json_member_text(w, "help", row.help);
		json_member_text(w, "default", *row.initial ? row.initial : NULL);
		if (*row.choices)
			put_words(w, "choices", str_of(row.choices));
		json_member_array(w, "flags");
		json_put_text(w, "engine");
		json_end_array(w);
		json_end_object(w);
	}
	buf_release(&text);
}

/* ---- rows of the set ---- */

#define COLUMNS_MIN 48
#define COLUMNS_MAX 120

static bool is_shown(const struct opt *o)
{
	return !(o->flags & OPT_HIDDEN) && !o->alias_of;
}

static const char *group_of(const struct opt *o)
{
	return o->group ? o->group : o->flags & OPT_POSITIONAL ? "Arguments" : "Options";
}

/* ---- one option ---- */

static void add_arg(const struct opt *o, struct buf *out)
{
	char name[96];
	const char *arg = opt_arg(o, name);

	if (o == &opt_builtin[OPT_BUILTIN_HELP])
		buf_printf(out, "[=%s]", arg);
	else if (o->kind == OPT_FLAG || o->kind == OPT_TRI)
		return;
	else if (o->kind == OPT_LIST && o->flags & OPT_MANY)
		buf_printf(out, " %s [%s ...]", arg, arg);
	else if (o->kind == OPT_LIST)
		buf_printf(out, " [%s ...]", arg);
	else
		buf_printf(out, " %s", arg);
}

static void add_spellings(const struct opt *o, struct buf *out)
{
	char name[96];

	if (o->flags & OPT_POSITIONAL) {
		buf_printf(out, "%s%s", opt_arg(o, name), o->kind == OPT_LIST ? " ..." : "");
		return;
	}
	if (o->letter)
		buf_printf(out, "-%c, ", o->letter);
	buf_printf(out, "--%s", o->name);
	if (o->kind == OPT_TRI)
		buf_printf(out, ", --no-%s", o->name);
	add_arg(o, out);
	if (o->kind == OPT_JSON)
		buf_printf(out, ", --%s.KEY VALUE", o->name);
}

static void add_facts(struct opt_page *p, const struct opt *o, struct buf *text)
{
	struct buf value = { 0 };
	const char *sep = " (";
	bool is_builtin = o >= opt_builtin && o < opt_builtin + OPT_BUILTINS;

	if (o->choices) {
		buf_printf(text, "%schoices: ", sep);
		for (size_t i = 0; o->choices[i]; i++)
			buf_printf(text, "%s%s", i ? ", " : "", o->choices[i]);
		sep = "; ";
	}
	if (opt_has_range(o) && !(isinf(o->min) && isinf(o->max))) {
		buf_add_text(text, sep);
		opt_range(o, text);
		sep = "; ";
	}
	/* A switch that is off is what anyone expects. */
	if (!is_builtin && opt_value_text(o, p->set->defaults, &value) &&
	    (o->kind != OPT_FLAG || *(const bool *)opt_field_const(o, p->set->defaults))) {
		buf_printf(text, "%sdefault: %s", sep, value.len ? value.data : "''");
		sep = "; ";
	}
	if (o->flags & OPT_LATER) {
		buf_printf(text, "%snot in this version%s%s", sep, o->note ? ": " : "",
			   o->note ? o->note : "");
		sep = "; ";
	}
	if (o->flags & OPT_OURS && !is_builtin) {
		buf_printf(text, "%sProfLLM only", sep);
		sep = "; ";
	}
	if (sep[0] == ';')
		buf_add_char(text, ')');
	buf_release(&value);
}

static void show_option(struct opt_page *p, const struct opt *o)
{
	struct buf text = { 0 }, spellings = { 0 };

	add_spellings(o, &spellings);
	buf_add_text(&text, o->help);
	add_facts(p, o, &text);
	add_item(p, buf_str(&spellings), buf_str(&text));
	buf_release(&spellings);
	buf_release(&text);
}

/* ---- pages ---- */

static bool is_listed(const struct opt_set *set, const char *group)
{
	for (size_t i = 0; set->groups && set->groups[i]; i++)
		if (strcmp(set->groups[i], group) == 0)
			return true;
	return false;
}

/* Whether the row at i is the first shown one of its group. */
static bool opens_group(const struct opt_set *set, size_t i)
{
	if (!is_shown(opt_row_at(set, i)))
		return false;
	for (size_t j = 0; j < i; j++)
		if (is_shown(opt_row_at(set, j)) &&
		    strcmp(group_of(opt_row_at(set, j)), group_of(opt_row_at(set, i))) == 0)
			return false;
	return true;
}

static size_t count_group(const struct opt_set *set, const char *group)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(set, i);

		n += is_shown(o) && strcmp(group_of(o), group) == 0;
	}
	return n;
}

/* The groups in order: those the set lists, then the others as their rows come. NULL: no more. */
static const char *next_group(const struct opt_set *set, size_t *at)
{
	size_t n_listed = 0;

	while (set->groups && set->groups[n_listed])
		n_listed++;
	while (*at < n_listed + set->n + OPT_BUILTINS) {
		size_t i = (*at)++;
		const char *group = i < n_listed ? set->groups[i] :
						   group_of(opt_row_at(set, i - n_listed));

		if (i < n_listed ? count_group(set, group) > 0 :
				   opens_group(set, i - n_listed) && !is_listed(set, group))
			return group;
	}
	return NULL;
}

static void show_group(struct opt_page *p, const char *group)
{
	buf_printf(p->out, "\n%s:\n", group);
	for (size_t i = 0; i < p->set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(p->set, i);

		if (is_shown(o) && strcmp(group_of(o), group) == 0)
			show_option(p, o);
	}
}

static void show_usage(struct opt_page *p)
{
	char name[96];

	buf_printf(p->out, "Usage: profllm %s", p->set->command);
	if (p->set->usage) {
		buf_printf(p->out, " %s", p->set->usage);
	} else {
		buf_add_text(p->out, " [options]");
		for (size_t i = 0; i < p->set->n; i++) {
			const struct opt *o = &p->set->row[i];
			bool is_needed = o->flags & OPT_MANY;

			if (!(o->flags & OPT_POSITIONAL) || !is_shown(o))
				continue;
			buf_printf(p->out, " %s%s%s%s", is_needed ? "" : "[", opt_arg(o, name),
				   o->kind == OPT_LIST ? " ..." : "", is_needed ? "" : "]");
		}
	}
	buf_add_text(p->out, "\n\n");
	wrap(p, str_of(p->set->summary), 0, 0);
}

/* Examples and the most used options, where the set names some. */
static void show_common(struct opt_page *p)
{
	if (p->set->epilog)
		buf_printf(p->out, "\n%s\n", p->set->epilog);
	buf_add_text(p->out, "\nMost used options:\n");
	for (const char *const *name = p->set->common; *name; name++) {
		size_t i = 0;

		while (i < p->set->n && strcmp(p->set->row[i].name, *name) != 0)
			i++;
		assert(i < p->set->n);
		show_option(p, &p->set->row[i]);
	}
}

static void show_groups(struct opt_page *p)
{
	const char *group;

	show_usage(p);
	if (p->set->common)
		show_common(p);
	buf_printf(p->out, "\n%s:\n", p->set->common ? "All options by group" :
		   "Groups of options");
	for (size_t at = 0; (group = next_group(p->set, &at)) != NULL;) {
		size_t n = count_group(p->set, group);

		buf_printf(p->out, "  %-25s %zu option%s\n", group, n, n == 1 ? "" : "s");
	}
	show_foreign_groups(p);
	buf_add_char(p->out, '\n');
	wrap(p, STR("--help=GROUP shows one group, --help=all everything, --help=WORD the options "
		    "about WORD, --help=json the same for programs."), 0, 0);
	if (p->set->epilog && !p->set->common)
		buf_printf(p->out, "\n%s\n", p->set->epilog);
}

/* is_whole: also every foreign argument, not only their groups. */
static void show_all(struct opt_page *p, bool is_whole)
{
	const char *group;

	show_usage(p);
	for (size_t at = 0; (group = next_group(p->set, &at)) != NULL;)
		show_group(p, group);
	if (is_whole)
		show_foreign(p, "");
	else
		show_foreign_groups(p);
	if (p->set->epilog)
		buf_printf(p->out, "\n%s\n", p->set->epilog);
}

/* By its name, or by other tools' names for it. */
static bool is_about(const struct opt *o, const char *topic)
{
	return holds(o->name, topic) || (o->words && holds(o->words, topic));
}

/* Whether only its help text has the word. */
static bool mentions(const struct opt *o, const char *topic)
{
	return is_shown(o) && holds(o->help, topic) && !is_about(o, topic);
}

/* Prints whole rows. is_text: those that only mention the topic. */
static size_t show_matches(struct opt_page *p, const char *topic, bool is_text)
{
	size_t found = 0;

	for (size_t i = 0; i < p->set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(p->set, i);

		if (is_text ? !mentions(o, topic) : !is_shown(o) || !is_about(o, topic))
			continue;
		if (found++ == 0)
			buf_printf(p->out, "\nOptions matching '%s':\n", topic);
		show_option(p, o);
	}
	return found;
}

/* Prints only the names of options that mention the topic. */
static void list_mentions(struct opt_page *p, const char *topic)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < p->set->n + OPT_BUILTINS; i++) {
		const struct opt *o = opt_row_at(p->set, i);

		if (mentions(o, topic))
			buf_printf(&names, "%s--%s", names.len ? ", " : "", o->name);
	}
	if (names.len) {
		buf_printf(p->out, "\nOptions whose description mentions '%s':\n%*s", topic, INDENT,
			   "");
		wrap(p, buf_str(&names), INDENT, INDENT);
	}
	buf_release(&names);
}

/*
 * A whole group name first, then parts of option names and words (with the names of options
 * that mention the topic), then parts of group names, then help texts; foreign arguments after
 * each.
 */
static void show_topic(struct opt_page *p, const char *topic)
{
	size_t found, start = p->out->len;
	const char *group;

	while (*topic == '-')
		topic++;
	for (size_t at = 0; (group = next_group(p->set, &at)) != NULL;) {
		if (is_same(group, topic)) {
			show_group(p, group);
			return;
		}
	}
	if (show_foreign(p, topic))
		return;
	found = show_matches(p, topic, false);
	found += show_foreign_named(p, topic);
	if (found)
		list_mentions(p, topic);
	for (size_t at = 0; !found && (group = next_group(p->set, &at)) != NULL;)
		if (holds(group, topic))
			show_group(p, group);
	if (p->out->len == start)
		show_matches(p, topic, true);
	if (p->out->len == start)
		buf_printf(p->out, "No group or option matches '%s'; --help lists the groups, "
			   "--help=all every option.\n", topic);
}

/* ---- for programs ---- */

static const char *kind_name(enum opt_kind kind)
{
	static const char *const names[] = {
		[OPT_FLAG] = "flag", [OPT_INT] = "int", [OPT_REAL] = "real", [OPT_TEXT] = "text",
		[OPT_MAYBE_INT] = "maybe_int", [OPT_MAYBE_REAL] = "maybe_real", [OPT_TRI] = "tri",
		[OPT_LIST] = "list", [OPT_JSON] = "json",
	};
	return names[kind];
}

static void put_texts(struct json_writer *w, const char *key, const char *const *v)
{
	if (!v)
		return;
	json_member_array(w, key);
	for (; *v; v++)
		json_put_text(w, *v);
	json_end_array(w);
}

static void put_flags(struct json_writer *w, const struct opt *o)
{
	static const struct { unsigned bit; const char *name; } names[] = {
		{ OPT_LATER, "later" }, { OPT_OURS, "ours" }, { OPT_MANY, "needs_value" },
		{ OPT_SECRET, "secret" }, { OPT_NO_CONFIG, "no_config" },
		{ OPT_MIN_EXCLUSIVE, "min_exclusive" }, { OPT_POSITIONAL, "positional" },
	};

	json_member_array(w, "flags");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (o->flags & names[i].bit)
			json_put_text(w, names[i].name);
	json_end_array(w);
}

static void put_spellings(struct json_writer *w, const struct opt *o)
{
	char text[112];

	json_member_array(w, "spellings");
	if (!(o->flags & OPT_POSITIONAL)) {
		snprintf(text, sizeof(text), "-%c", o->letter);
		if (o->letter)
			json_put_text(w, text);
		snprintf(text, sizeof(text), "--%s", o->name);
		json_put_text(w, text);
		snprintf(text, sizeof(text), "--no-%s", o->name);
		if (o->kind == OPT_TRI)
			json_put_text(w, text);
	}
	json_end_array(w);
}

static void put_option(struct json_writer *w, const struct opt_set *set, const struct opt *o)
{
	bool is_builtin = o >= opt_builtin && o < opt_builtin + OPT_BUILTINS;
	char arg[96];

	json_begin_object(w);
	json_member_text(w, "name", o->name);
	put_spellings(w, o);
	json_member_text(w, "kind", kind_name(o->kind));
	json_member_text(w, "group", group_of(o));
	json_member_text(w, "arg", o->kind == OPT_FLAG || o->kind == OPT_TRI ? NULL : opt_arg(o,
			 arg));
	json_member_text(w, "help", o->help);
	json_key(w, "default");
	if (is_builtin)
		json_put_null(w);
	else
		opt_value_json(o, set->defaults, w);
	put_texts(w, "choices", o->choices);
	if (opt_has_range(o)) {
		/* An open end is left out: JSON has no infinity. */
		if (!isinf(o->min))
			json_member_f64(w, "min", o->min);
		if (!isinf(o->max))
			json_member_f64(w, "max", o->max);
	}
	put_flags(w, o);
	if (o->note)
		json_member_text(w, "note", o->note);
	json_end_object(w);
}

static void show_json(const struct opt_page *p)
{
	struct json_writer w = json_writer(p->out);

	w.indent = 1;
	json_begin_object(&w);
	json_member_text(&w, "command", p->set->command);
	json_member_text(&w, "summary", p->set->summary);
	json_member_array(&w, "options");
	for (size_t i = 0; i < p->set->n + OPT_BUILTINS; i++)
		if (is_shown(opt_row_at(p->set, i)))
			put_option(&w, p->set, opt_row_at(p->set, i));
	put_foreign(p, &w);
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(p->out, '\n');
}

void opt_help(const struct opt_set *set, const char *topic, unsigned columns, struct buf *out)
{
	struct opt_page p = { .set = set, .out = out, .columns = columns };
	struct arena a = { 0 };

	p.foreign = opt_foreign_rows(set->foreign, &a);
	if (columns < COLUMNS_MIN)
		p.columns = COLUMNS_MIN;
	if (columns > COLUMNS_MAX)
		p.columns = COLUMNS_MAX;
	if (!topic || !*topic)
		show_groups(&p);
	else if (is_same(topic, "all"))
		show_all(&p, true);
	else if (is_same(topic, OPT_HELP_OWN))
		show_all(&p, false);
	else if (is_same(topic, "json"))
		show_json(&p);
	else
		show_topic(&p, topic);
	arena_release(&a);
}
