/* SPDX-License-Identifier: Apache-2.0 */
/* source_card.c - see source_internal.h. First a tree of what is indented, then its meaning. */
#include "data/source_internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

#define DEPTH_MAX 32 /* nesting; `features` of a config may have some levels */

enum kind { TEXT, LIST, MAPPING };

struct node {
	enum kind kind;
	struct str text;     /* TEXT */
	struct str key;      /* as a mapping's member */
	size_t line;
	struct node *child, *next;
};

/* A line of the head without its indentation, comment and final blanks. */
struct line {
	struct str text;
	size_t indent, number;
};

struct reader {
	struct arena *a;
	struct line *line;
	size_t count, at;
	struct err *e;
};

static int fail(const struct reader *r, size_t line, const char *what)
{
	return err_set(r->e, ERR_PARSE, "line %zu: %s", line, what);
}

static struct node *new_node(struct reader *r, enum kind kind, size_t line)
{
	struct node *node = arena_alloc(r->a, sizeof(*node));

	node->kind = kind;
	node->line = line;
	return node;
}

/* ---- texts and brackets ---- */

static struct str skip_blanks(struct str s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t'))
		s = (struct str){ s.p + 1, s.n - 1 };
	return s;
}

/* A text in quotes; *rest moves behind it. '' is a quote inside single ones. */
static int read_quoted(struct reader *r, struct str *rest, size_t line, struct str *out)
{
	char quote = *rest->p;
	struct buf text = { 0 };
	size_t i;

	for (i = 1; i < rest->n; i++) {
		char c = rest->p[i];
		bool is_double = i + 1 < rest->n && rest->p[i + 1] == '\'';

		if (c == quote && !(quote == '\'' && is_double))
			break;
		if ((quote == '\'' && c == quote) || (quote == '"' && c == '\\' && i + 1 < rest->n))
			c = rest->p[++i];
		buf_add_char(&text, c);
	}
	*out = arena_str(r->a, buf_str(&text));
	buf_release(&text);
	if (i == rest->n)
		return fail(r, line, "a text in quotes that does not end");
	*rest = (struct str){ rest->p + i + 1, rest->n - i - 1 };
	return 0;
}

static int read_flow(struct reader *r, struct str *rest, size_t line, unsigned depth,
	struct node **out);

/* A text inside brackets ends at a comma, a bracket or ": ". */
static int read_flow_text(struct reader *r, struct str *rest, size_t line, struct str *out)
{
	size_t n = 0;

	if (rest->n && (*rest->p == '"' || *rest->p == '\''))
		return read_quoted(r, rest, line, out);
	while (n < rest->n && !memchr(",[]{}", rest->p[n], 5) &&
	       !(rest->p[n] == ':' && (n + 1 == rest->n || rest->p[n + 1] == ' ')))
		n++;
	*out = str_trim((struct str){ rest->p, n });
	*rest = (struct str){ rest->p + n, rest->n - n };
	return 0;
}

static int read_brackets(struct reader *r, struct str *rest, size_t line, unsigned depth,
	struct node *node)
{
	char close = *rest->p == '[' ? ']' : '}';
	struct node **end = &node->child, *item;
	struct str key = { 0 };

	*rest = skip_blanks((struct str){ rest->p + 1, rest->n - 1 });
	while (rest->n && *rest->p != close) {
		if (node->kind == MAPPING) {
			if (read_flow_text(r, rest, line, &key) < 0)
				return -1;
			*rest = skip_blanks(*rest);
			if (rest->n == 0 || *rest->p != ':')
				return fail(r, line, "expected \"key: value\" in braces");
			*rest = skip_blanks((struct str){ rest->p + 1, rest->n - 1 });
		}
		if (read_flow(r, rest, line, depth + 1, &item) < 0)
			return -1;
		item->key = key;
		*end = item;
		end = &item->next;
		*rest = skip_blanks(*rest);
		if (rest->n && *rest->p == ',')
			*rest = skip_blanks((struct str){ rest->p + 1, rest->n - 1 });
		else if (rest->n == 0 || *rest->p != close)
			break;
	}
	if (rest->n == 0 || *rest->p != close)
		return fail(r, line, "a bracket that is not closed on its line");
	*rest = (struct str){ rest->p + 1, rest->n - 1 };
	return 0;
}

static int read_flow(struct reader *r, struct str *rest, size_t line, unsigned depth,
	struct node **out)
{
	if (depth > DEPTH_MAX)
		return fail(r, line, "nested too deeply");
	*rest = skip_blanks(*rest);
	if (rest->n && (*rest->p == '[' || *rest->p == '{')) {
		*out = new_node(r, *rest->p == '[' ? LIST : MAPPING, line);
		return read_brackets(r, rest, line, depth, *out);
	}
	*out = new_node(r, TEXT, line);
	return read_flow_text(r, rest, line, &(*out)->text);
}

/* A value that stands on one line. */
static int read_value(struct reader *r, struct str text, size_t line, unsigned depth,
	struct node **out)
{
	if (text.n && (*text.p == '[' || *text.p == '{'))
		return read_flow(r, &text, line, depth, out);
	*out = new_node(r, TEXT, line);
	(*out)->text = text;
	if (text.n && (*text.p == '"' || *text.p == '\''))
		return read_quoted(r, &text, line, &(*out)->text);
	return 0;
}

/* ---- indentation ---- */

static int read_block(struct reader *r, unsigned depth, struct node **out);

static bool is_item(struct str text)
{
	return text.n && *text.p == '-' && (text.n == 1 || text.p[1] == ' ');
}

/* The length of the key that a line begins with, without the colon; 0: there is none. */
static size_t key_length(struct str text)
{
	size_t from = 0;

	if (text.n && (*text.p == '[' || *text.p == '{'))
		return 0;
	if (text.n && (*text.p == '"' || *text.p == '\'')) {
		const char *end = memchr(text.p + 1, *text.p, text.n - 1);

		from = end ? (size_t)(end - text.p) : text.n;
	}
	for (size_t i = from; i < text.n; i++)
		if (text.p[i] == ':' && (i + 1 == text.n || text.p[i + 1] == ' '))
			return i;
	return 0;
}

/* Lines that go on with a text: folded and literal ones, which mean nothing here. */
static void skip_deeper(struct reader *r, size_t indent)
{
	while (r->at < r->count && r->line[r->at].indent > indent)
		r->at++;
}

/* What stands behind "key:" or on the lines below it; those of a list may not be indented. */
static int read_member(struct reader *r, size_t indent, struct str rest, unsigned depth,
	struct node **out)
{
	const struct line *line = &r->line[r->at], *below = line + 1;
	bool is_below = r->at + 1 < r->count && (below->indent > indent ||
		(below->indent == indent && is_item(below->text)));

	r->at++;
	if (rest.n == 0 && is_below)
		return read_block(r, depth + 1, out);
	if (read_value(r, rest, line->number, depth + 1, out) < 0)
		return -1;
	skip_deeper(r, indent);
	return 0;
}

static int read_mapping(struct reader *r, size_t indent, unsigned depth, struct node **end)
{
	while (r->at < r->count && r->line[r->at].indent == indent) {
		struct line *line = &r->line[r->at];
		size_t n = key_length(line->text);
		struct node *key, *value;

		if (is_item(line->text))
			return 0;
		if (n == 0)
			return fail(r, line->number, "expected \"key: value\"");
		if (read_value(r, str_trim((struct str){ line->text.p, n }), line->number, depth,
			&key) < 0 || read_member(r, indent, str_trim((struct str){
			line->text.p + n + 1, line->text.n - n - 1 }), depth, &value) < 0)
			return -1;
		value->key = key->text;
		*end = value;
		end = &value->next;
	}
	return 0;
}

static int read_list(struct reader *r, size_t indent, unsigned depth, struct node **end)
{
	while (r->at < r->count && r->line[r->at].indent == indent &&
	       is_item(r->line[r->at].text)) {
		struct line *line = &r->line[r->at];
		struct str rest = skip_blanks((struct str){ line->text.p + 1, line->text.n - 1 });
		struct node *item;
		int rc;

		if (is_item(rest) || key_length(rest)) {
			/* What follows the dash is the first line of a block of its own. */
			line->indent += (size_t)(rest.p - line->text.p);
			line->text = rest;
			rc = read_block(r, depth + 1, &item);
		} else {
			rc = read_member(r, indent, rest, depth, &item);
		}
		if (rc < 0)
			return -1;
		*end = item;
		end = &item->next;
	}
	return 0;
}

static int read_block(struct reader *r, unsigned depth, struct node **out)
{
	const struct line *line = &r->line[r->at];
	size_t indent = line->indent;
	bool is_list = is_item(line->text);
	int rc;

	if (depth > DEPTH_MAX)
		return fail(r, line->number, "nested too deeply");
	if (!is_list && key_length(line->text) == 0) { /* a text on a line of its own */
		r->at++;
		rc = read_value(r, line->text, line->number, depth, out);
		skip_deeper(r, indent - 1);
		return rc;
	}
	*out = new_node(r, is_list ? LIST : MAPPING, line->number);
	rc = is_list ? read_list(r, indent, depth, &(*out)->child) :
		read_mapping(r, indent, depth, &(*out)->child);
	if (rc == 0 && r->at < r->count && r->line[r->at].indent > indent)
		return fail(r, r->line[r->at].number, "indented unlike the lines before it");
	return rc;
}

/* Drops a comment, which begins the line or follows a blank, outside quotes. */
static struct str without_comment(struct str s)
{
	char quote = 0;

	for (size_t i = 0; i < s.n; i++) {
		bool is_start = i == 0 || memchr(" [{,", s.p[i - 1], 4);

		if (quote)
			quote = s.p[i] == quote ? 0 : quote;
		else if (is_start && (s.p[i] == '"' || s.p[i] == '\''))
			quote = s.p[i];
		else if (s.p[i] == '#' && (i == 0 || s.p[i - 1] == ' '))
			return (struct str){ s.p, i };
	}
	return s;
}

/* The lines that belong to `configs:`, into r; false: there is no such member. */
static bool take_lines(struct reader *r, struct str head)
{
	bool is_inside = false;

	for (size_t number = 2; head.n; number++) { /* the first line is --- */
		struct str raw = without_comment(str_cut(&head, '\n')), text = str_trim(raw);
		size_t indent = (size_t)(text.p - raw.p);

		if (text.n == 0)
			continue;
		if (indent == 0 && !is_item(text)) {
			if (is_inside)
				break;
			is_inside = str_starts(text, STR("configs:"));
			if (!is_inside)
				continue;
			text = str_trim((struct str){ text.p + 8, text.n - 8 });
			if (text.n == 0)
				continue;
		}
		if (!is_inside)
			continue;
		if ((r->count & (r->count - 1)) == 0)
			r->line = mem_grow(r->line, r->count ? 2 * r->count : 1, sizeof(*r->line));
		r->line[r->count++] = (struct line){ text, indent, number };
	}
	return r->count > 0;
}

/* ---- meaning ---- */

static const struct node *member(const struct node *node, const char *key)
{
	for (const struct node *at = node->child; at; at = at->next)
		if (node->kind == MAPPING && str_is(at->key, key))
			return at;
	return NULL;
}

static size_t count_children(const struct node *node)
{
	size_t n = 0;

	for (const struct node *at = node->child; at; at = at->next)
		n++;
	return n;
}

/* One text or a list of them. */
static int take_patterns(struct reader *r, const struct node *node, struct card_split *out)
{
	const struct node *at = node->kind == TEXT ? node : node->child;
	size_t n = node->kind == TEXT ? 1 : count_children(node);

	out->pattern = arena_alloc(r->a, n * sizeof(*out->pattern));
	for (; out->count < n; at = at->next) {
		if (at->kind != TEXT || at->text.n == 0 || node->kind == MAPPING)
			return fail(r, at->line, "data_files: expected a path, a list of paths, or a list "
				"of \"split\" and \"path\"");
		out->pattern[out->count++] = arena_text(r->a, at->text);
	}
	return 0;
}

static int take_splits(struct reader *r, const struct node *files, struct card_config *out)
{
	const struct node *first = files->child;

	if (files->kind == MAPPING || (files->kind == LIST && !first))
		return fail(r, files->line, "data_files: expected a path or a list");
	if (files->kind == TEXT || first->kind == TEXT) {
		out->split = arena_alloc(r->a, sizeof(*out->split));
		out->count = 1;
		out->split->name = "train";
		return take_patterns(r, files, out->split);
	}
	out->split = arena_alloc(r->a, count_children(files) * sizeof(*out->split));
	for (const struct node *at = first; at; at = at->next) {
		const struct node *name = member(at, "split"), *path = member(at, "path");
		struct card_split *split = &out->split[out->count++];

		if (!name || name->kind != TEXT || name->text.n == 0 || !path)
			return fail(r, at->line, "data_files: expected \"split\" and \"path\"");
		split->name = arena_text(r->a, name->text);
		if (take_patterns(r, path, split) < 0)
			return -1;
	}
	return 0;
}

static int take_config(struct reader *r, const struct node *node, struct card_config *out)
{
	const struct node *name = member(node, "config_name"), *files = member(node, "data_files");
	const struct node *dir = member(node, "data_dir"), *is_default = member(node, "default");

	if (!name || name->kind != TEXT || name->text.n == 0)
		return fail(r, node->line, "configs: expected entries with a \"config_name\"");
	out->name = arena_text(r->a, name->text);
	if (dir && dir->kind == TEXT && dir->text.n)
		out->data_dir = arena_text(r->a, dir->text);
	out->is_default = is_default && str_eq_nocase(is_default->text, STR("true"));
	if (!files || (files->kind == TEXT && (files->text.n == 0 || str_is(files->text, "null"))))
		return 0;
	return take_splits(r, files, out);
}

/* What stands between the first line, "---", and the next one; empty when there is none. */
static struct str find_head(struct str readme)
{
	struct str head = readme, rest;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = (struct str){ head.p + 3, head.n - 3 };
	if (!str_is(str_trim(str_cut(&head, '\n')), "---"))
		return STR("");
	rest = head;
	while (rest.n) {
		const char *line = rest.p;

		if (str_is(str_trim(str_cut(&rest, '\n')), "---"))
			return (struct str){ head.p, (size_t)(line - head.p) };
	}
	return STR("");
}

/* A name that is there twice means the later one, at the earlier one's place. */
static int take_configs(struct reader *r, struct card *out)
{
	struct map seen = { 0 };
	struct node *top;
	int rc = 0;

	if (read_block(r, 0, &top) < 0)
		return -1;
	if (r->at < r->count || top->kind != LIST)
		return fail(r, top->line, "configs: expected one list");
	out->config = arena_alloc(r->a, (count_children(top) + 1) * sizeof(*out->config));
	for (const struct node *at = top->child; at && rc == 0; at = at->next) {
		struct card_config config = { 0 };
		uint64_t place = out->count;

		rc = take_config(r, at, &config);
		if (rc < 0)
			break;
		if (!map_get(&seen, str_of(config.name), &place))
			map_put(&seen, str_of(config.name), out->count++);
		out->config[place] = config;
	}
	map_release(&seen);
	return rc;
}

int card_read(struct arena *a, struct str readme, struct card *out, struct err *e)
{
	struct reader r = { .a = a, .e = e };
	int rc = 0;

	*out = (struct card){ 0 };
	if (take_lines(&r, find_head(readme)))
		rc = take_configs(&r, out);
	free(r.line);
	return rc;
}
