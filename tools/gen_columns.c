/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_columns.c - every column that the schemas know, as rows: COLUMN("name", type, kinds, min, max),
 * by name.
 *
 * Columns of schema/columns.json come first, then what its list "from" takes out of the other
 * schemas: fields of some groups whose keys begin with "keys", called "as" and the rest of the key.
 * Lists and objects are no columns. A name that comes again is ignored.
 */
#include <stdlib.h>

#include "gen.h"

#define COLUMNS_MAX 4000
#define NAME_BYTES 160

struct column {
	char name[NAME_BYTES];
	char row[64]; /* type, kinds, min, max */
};

struct columns {
	const struct json_value *all; /* the schemas */
	struct column *at;
	size_t n;
};

/* ---- checking ---- */

static const char *const kinds[][2] = {
	/* as it is written, as struct known_column has it: type in SQL, kinds that are taken */
	{ "any", "VALUE_TEXT, KNOWN_ANY" },
	{ "number or text", "VALUE_NUMBER, KNOWN_NUMBER | KNOWN_TEXT" },
	{ "number", "VALUE_NUMBER, KNOWN_NUMBER" },
	{ "text", "VALUE_TEXT, KNOWN_TEXT" },
	{ "bool", "VALUE_BOOL, KNOWN_BOOL" },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* The row of "KIND [from MIN] [to MAX]"; false: it is written in another way. */
static bool row_of(const char *text, char row[64])
{
	double ends[2];
	const char *end[2] = { "-INFINITY", "INFINITY" };
	char number[2][32];

	for (size_t i = 0; i < KINDS; i++) {
		size_t n = strlen(kinds[i][0]);

		if (strncmp(text, kinds[i][0], n) != 0 || (text[n] && text[n] != ' '))
			continue;
		for (size_t k = 0; k < 2; k++) {
			static const char *const word[] = { " from ", " to " };
			size_t len = strlen(word[k]);
			char *after;

			if (strncmp(text + n, word[k], len) != 0)
				continue;
			ends[k] = strtod(text + n + len, &after);
			n = (size_t)(after - text);
			snprintf(number[k], sizeof(number[k]), "%g", ends[k]);
			end[k] = number[k];
		}
		snprintf(row, 64, "%s, %s, %s", kinds[i][1], end[0], end[1]);
		return !text[n];
	}
	return false;
}

int gen_columns_check(const struct json_value *all, struct err *e)
{
	const struct json_value *schema = json_get(all, "columns");
	const struct json_value *columns = json_get(schema, "columns"), *from = json_get(schema, "from");
	char row[64];

	if (!columns || columns->kind != JSON_OBJECT || !from || from->kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "expected an object \"columns\" and a list \"from\"");
	for (size_t i = 0; i < columns->count; i++)
		if (!row_of(json_text(&columns->item[i], STR("")).p, row))
			return err_set(e, ERR_PARSE, "%s: expected KIND [from MIN] [to MAX]",
				       columns->key[i].p);
	for (size_t i = 0; i < from->count; i++)
		if (!json_get(all, gen_member(&from->item[i], "schema")))
			return err_set(e, ERR_PARSE, "from %zu: no schema is called so", i);
	return 0;
}

/* ---- gathering ---- */

static void add(struct columns *c, const char *name, const char *row)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->at[i].name, name) == 0)
			return;
	if (c->n == COLUMNS_MAX)
		abort();
	snprintf(c->at[c->n].name, NAME_BYTES, "%s", name);
	snprintf(c->at[c->n++].row, sizeof(c->at->row), "%s", row);
}

/* name with what stands in it from at to end replaced by a word. */
static void put_word(char out[NAME_BYTES], const char *name, const char *at, const char *end,
		     struct str word)
{
	snprintf(out, NAME_BYTES, "%.*s%.*s%s", (int)(at - name), name, (int)word.n, word.p, end);
}

/* "a.{b,c}" as a.b and a.c. */
static void add_braces(struct columns *c, const char *name, const char *row)
{
	const char *at = strchr(name, '{'), *end = at ? strchr(at, '}') : NULL;
	char one[NAME_BYTES];
	struct str words;

	if (!end) {
		add(c, name, row);
		return;
	}
	words = (struct str){ at + 1, (size_t)(end - at) - 1 };
	while (words.n) {
		put_word(one, name, at, end + 1, str_cut(&words, ','));
		add_braces(c, one, row);
	}
}

/* <p> as the percentiles people look at, <stat> and its like as each of its names. */
static void add_places(struct columns *c, const char *name, const char *row)
{
	static const char *const percentile[] = { "50", "90", "95", "99", "99.9" };
	const struct json_value *names = json_get(json_get(c->all, "result"), "names"), *list;
	const char *at = strchr(name, '<'), *end = at ? strchr(at, '>') : NULL;
	char one[NAME_BYTES], place[32];

	if (!end) {
		add(c, name, row);
		return;
	}
	snprintf(place, sizeof(place), "%.*s", (int)(end - at) - 1, at + 1);
	for (size_t i = 0; strcmp(place, "p") == 0 && i < 5; i++) {
		put_word(one, name, at, end + 1, str_of(percentile[i]));
		add_places(c, one, row);
	}
	list = json_get(names, place);
	for (size_t i = 0; list && i < list->count; i++) {
		put_word(one, name, at, end + 1, str_of(gen_member(&list->item[i], "name")));
		add_places(c, one, row);
	}
}

/* A field's type as the notation of columns has it; NULL: it is no column. */
static const char *kind_of_type(const char *type)
{
	static const char *const types[][2] = {
		{ "int", "number" }, { "float", "number" }, { "text", "text" }, { "bool", "bool" },
		{ "float or text", "number" }, /* the text is "inf" */
	};
	size_t n = strlen(type);

	if (n > 8 && strcmp(type + n - 8, " or null") == 0)
		n -= 8;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i][0]) == n && strncmp(types[i][0], type, n) == 0)
			return types[i][1];
	return NULL;
}

static bool has_word(const char *list, struct str word)
{
	struct str rest = str_of(list);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), word))
			return true;
	return false;
}

static void add_range(struct buf *out, const struct json_value *f)
{
	static const char *const end[][2] = { { "min", " from " }, { "max", " to " } };

	for (size_t i = 0; i < 2; i++) {
		const struct json_value *v = json_get(f, end[i][0]);

		if (!v)
			continue;
		buf_add_text(out, end[i][1]);
		buf_add_str(out, v->raw);
	}
}

static void add_fields(struct columns *c, const struct json_value *from)
{
	const struct json_value *fields =
		json_get(json_get(c->all, gen_member(from, "schema")), "fields");
	struct str head = str_of(gen_member(from, "keys"));
	char name[NAME_BYTES], row[64];

	for (size_t i = 0; i < fields->count; i++) {
		const struct json_value *f = &fields->item[i];
		struct str key = json_text(json_get(f, "key"), STR("")), rest;
		const char *kind = kind_of_type(gen_member(f, "type"));
		struct buf text = { 0 };

		if (!kind || !str_starts(key, head) ||
		    !has_word(gen_member(from, "groups"), str_of(gen_member(f, "group"))))
			continue;
		rest = (struct str){ key.p + head.n, key.n - head.n };
		if (strstr(rest.p, "[]") || has_word(gen_member(from, "not"), rest))
			continue;
		buf_add_text(&text, kind);
		add_range(&text, f);
		snprintf(name, sizeof(name), "%s%s", gen_member(from, "as"), rest.p);
		if (row_of(text.data, row))
			add_places(c, name, row);
		buf_release(&text);
	}
}

static bool has_flag(const struct json_value *arg, const char *flag)
{
	const struct json_value *flags = json_get(arg, "flags");

	for (size_t i = 0; flags && i < flags->count; i++)
		if (strcmp(json_text(&flags->item[i], STR("")).p, flag) == 0)
			return true;
	return false;
}

static const char *kind_of_argument(const struct json_value *arg)
{
	static const char *const by_kind[][2] = {
		{ "flag", "bool" }, { "switch", "bool" }, { "int", "number" }, { "human", "number" },
		{ "float", "number" }, { "text", "text" },
	};
	const char *kind = gen_member(arg, "kind");

	for (size_t i = 0; i < sizeof(by_kind) / sizeof(*by_kind) && !has_flag(arg, "optional"); i++)
		if (strcmp(kind, by_kind[i][0]) == 0)
			return strcmp(by_kind[i][1], "number") == 0 &&
				(has_flag(arg, "auto") || has_flag(arg, "text")) ? "number or text" :
				by_kind[i][1];
	return "any"; /* JSON, lists, and what may be without a value */
}

static void add_arguments(struct columns *c, const struct json_value *from)
{
	const struct json_value *args =
		json_get(json_get(c->all, gen_member(from, "schema")), "arguments");
	char name[NAME_BYTES], row[64];

	for (size_t i = 0; i < args->count; i++) {
		snprintf(name, sizeof(name), "%s%s", gen_member(from, "as"),
			 gen_member(&args->item[i], "name"));
		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p;
		if (row_of(kind_of_argument(&args->item[i]), row))
			add(c, name, row);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

void gen_columns_rows(const struct json_value *all, struct buf *out)
{
	const struct json_value *schema = json_get(all, "columns");
	const struct json_value *given = json_get(schema, "columns"), *from = json_get(schema, "from");
	struct columns c = { .all = all, .at = calloc(COLUMNS_MAX, sizeof(*c.at)) };
	char row[64];

	if (!c.at)
		abort();
	for (size_t i = 0; i < given->count; i++)
		if (row_of(json_text(&given->item[i], STR("")).p, row))
			add_braces(&c, given->key[i].p, row);
	for (size_t i = 0; i < from->count; i++)
		(strcmp(gen_member(&from->item[i], "schema"), "engine_args") == 0 ? add_arguments :
										    add_fields)
			(&c, &from->item[i]);
	qsort(c.at, c.n, sizeof(*c.at), by_name);
	buf_add_text(out, "/* Generated by tools/gen.c from schema/. */\n");
	for (size_t i = 0; i < c.n; i++) {
		buf_add_text(out, "COLUMN(");
		gen_add_literal(out, c.at[i].name);
		buf_printf(out, ", %s)\n", c.at[i].row);
	}
	free(c.at);
}
