/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - see page.h: wrapped text, and what help shows of foreign arguments. */
#include "core/opt/page.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define INDENT 2          /* before a spelling */
#define TEXT_COLUMN 28    /* where help starts; a longer spelling takes its own line */

static bool is_like(char a, char b)
{
	a = a == '_' || a == ' ' ? '-' : (char)tolower((unsigned char)a);
	b = b == '_' || b == ' ' ? '-' : (char)tolower((unsigned char)b);
	return a == b;
}

bool opt_page_has(const char *text, const char *part)
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

bool opt_page_is(const char *a, const char *b)
{
	return strlen(a) == strlen(b) && opt_page_has(a, b);
}

void opt_page_wrap(struct opt_page *p, struct str text, unsigned at, unsigned indent)
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

void opt_page_item(struct opt_page *p, struct str spellings, struct str text)
{
	unsigned at = INDENT + (unsigned)spellings.n;

	buf_printf(p->out, "%*s", INDENT, "");
	buf_add_str(p->out, spellings);
	if (at + 2 > TEXT_COLUMN) {
		buf_add_char(p->out, '\n');
		at = 0;
	}
	buf_printf(p->out, "%*s", (int)(TEXT_COLUMN - at), "");
	opt_page_wrap(p, text, TEXT_COLUMN, TEXT_COLUMN);
}

/* ---- foreign arguments ---- */

static void add_spellings(const struct opt_foreign_row *r, struct buf *out)
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

static void show_row(struct opt_page *p, const struct opt_foreign_row *r)
{
	struct buf spellings = { 0 }, text = { 0 };
	bool has_default = *r->initial && (r->has_value || strcmp(r->initial, "true") == 0);
	struct str choices = str_of(r->choices);
	const char *sep = " (choices: ";

	add_spellings(r, &spellings);
	buf_add_text(&text, r->help);
	while (choices.n) {
		buf_add_text(&text, sep);
		buf_add_str(&text, str_cut(&choices, ' '));
		sep = ", ";
	}
	if (has_default)
		buf_printf(&text, "%sdefault: %s", *r->choices ? "; " : " (", r->initial);
	buf_add_text(&text, *r->choices || has_default ? ")" : "");
	opt_page_item(p, buf_str(&spellings), buf_str(&text));
	buf_release(&spellings);
	buf_release(&text);
}

/* How many rows the group has that begins with row i; 0: it began before. */
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

void opt_page_foreign_groups(struct opt_page *p)
{
	if (p->foreign.n)
		buf_add_text(p->out, "\nGroups of the engine's arguments, which pass beside "
			     "them:\n");
	for (size_t i = 0; i < p->foreign.n; i++) {
		size_t n = group_at(p, i);

		if (n)
			buf_printf(p->out, "  %-25s %zu argument%s\n", p->foreign.row[i].group, n,
				   n == 1 ? "" : "s");
	}
}

bool opt_page_foreign(struct opt_page *p, const char *group)
{
	bool is_found = false;

	for (size_t i = 0; i < p->foreign.n; i++) {
		const char *name = p->foreign.row[i].group;

		if ((*group && !opt_page_is(name, group)) || !group_at(p, i))
			continue;
		is_found = true;
		buf_printf(p->out, "\n%s, the engine's:\n", name);
		for (size_t j = i; j < p->foreign.n; j++)
			if (strcmp(p->foreign.row[j].group, name) == 0)
				show_row(p, &p->foreign.row[j]);
	}
	return is_found;
}

size_t opt_page_foreign_named(struct opt_page *p, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < p->foreign.n; i++) {
		if (!opt_page_has(p->foreign.row[i].name, part))
			continue;
		if (n++ == 0)
			buf_printf(p->out, "\nArguments of the engine's matching '%s':\n", part);
		show_row(p, &p->foreign.row[i]);
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

void opt_page_foreign_json(const struct opt_page *p, struct json_writer *w)
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
