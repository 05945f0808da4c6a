/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - rows that are JSON already: one array of objects, or one object after the other.
 *
 * Which of the two is decided by the first character. A name that ends in .jsonl or
 * .ndjson promises one object per line, and that is held; in .json, objects may also be spread
 * over lines. {"data": [...]} with nothing else in the file stands for the list. Everything is
 * validated once, at open; later reads stay inside the mapping whatever has become of it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "table/pass.h"

struct json_table {
	struct table_pass pass;
	bool is_array; /* rows are elements: they have no lines */
};

static bool is_line_name(const char *name)
{
	struct str s = table_plain(name);

	return str_ends(s, STR(".jsonl")) || str_ends(s, STR(".ndjson"));
}

/* Malformed at `at`, which is read once more for the sake of the sentence. */
static int fail_at(const struct table_pass *p, size_t at, struct err *e)
{
	struct json_scan scan = { p->bytes->all, at };
	struct json_slice value;

	if (json_next(&scan, &value, e) == 0)
		err_set(e, ERR_PARSE, "byte %zu: the file changed while it was read", at);
	return err_wrap(e, "%s", p->bytes->name);
}

/* Not what was expected at `at`. */
static int fail_found(const struct table_pass *p, size_t at, const char *what, struct err *e)
{
	struct str all = p->bytes->all;
	const char *line = at ? memrchr(all.p, '\n', at) : NULL;
	size_t column = at - (line ? (size_t)(line + 1 - all.p) : 0) + 1;

	return err_set(e, ERR_PARSE, "%s: line %zu, column %zu: %s", p->bytes->name,
		table_line_at(p->bytes, at), column, what);
}

static size_t at_of(const struct table_pass *p, const struct json_iter *it)
{
	return (size_t)(it->rest.p - p->bytes->all.p);
}

/*
 * The elements of a list; it stands behind the bracket. 0: *end is behind the closing one; -1.
 * Between two elements a malformed text is found by json_step, which says nothing about it.
 */
static int take_list(struct table_pass *p, struct json_iter *it, size_t *end, struct err *e)
{
	struct json_slice value;
	size_t at = at_of(p, it);
	int rc;

	while ((rc = json_step(it, NULL)) == 1) {
		at = at_of(p, it);
		if (json_take(it, &value) < 0)
			return fail_at(p, at, e);
		if (table_check_size(p, at, value.raw.n, e) < 0 || table_pass_row(p, at, e) < 0 ||
		    table_pass_on(p, at_of(p, it), e) < 0)
			return -1;
	}
	at = at_of(p, it);
	if (rc < 0)
		return fail_found(p, at, at == p->bytes->all.n ? "the text ends inside the list" :
			"expected ',' or ']' after an element", e);
	*end = at + 1;
	return 0;
}

static struct json_iter iter_at(const struct table_pass *p, size_t at)
{
	struct str rest = { p->bytes->all.p + at, p->bytes->all.n - at };

	return (struct json_iter){ .rest = { rest.p + 1, rest.n - 1 },
		.is_object = *rest.p == '{' };
}

static bool is_end(const struct table_pass *p, size_t *at)
{
	struct json_scan scan = { p->bytes->all, *at };
	bool is = json_at_end(&scan);

	*at = scan.at;
	return is;
}

static int read_array(struct json_table *t, size_t at, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct json_iter it = iter_at(p, at);
	size_t end;

	t->is_array = true;
	if (take_list(p, &it, &end, e) < 0)
		return -1;
	if (!is_end(p, &end))
		return fail_found(p, end, "more text after the list", e);
	return 0;
}

/* Whether the file is one object whose one member is a list of objects: 1, 0, -1 stopped. */
static int read_wrapped(struct json_table *t, size_t at, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct json_iter it = iter_at(p, at), list, element;
	struct err why = { 0 };
	size_t end;
	bool is = false;

	if (json_step(&it, NULL) == 1 && json_open(&it, &list) && !list.is_object) {
		element = list;
		is = json_step(&element, NULL) == 0 || (element.rest.n && *element.rest.p == '{');
	}
	if (is && take_list(p, &list, &end, &why) < 0) {
		if (why.code == ERR_CANCELLED) {
			*e = why;
			return -1;
		}
		is = false;
	}
	if (is) {
		json_close(&it, &list);
		is = json_step(&it, NULL) == 0;
		end = at_of(p, &it) + 1;
	}
	t->is_array = is && is_end(p, &end);
	if (t->is_array)
		return 1;
	p->rows = p->kept = p->due = 0;
	return 0;
}

/* The first line break at or after `at`, or the end. */
static size_t line_end(const struct table_pass *p, size_t at)
{
	struct str all = p->bytes->all;
	const char *stop = at < all.n ? memchr(all.p + at, '\n', all.n - at) : NULL;

	return stop ? (size_t)(stop - all.p) : all.n;
}

/* Objects one after the other; with is_line each ends on its own line, alone. */
static int read_values(struct table_pass *p, size_t at, bool is_line, struct err *e)
{
	struct json_scan scan = { p->bytes->all, at };
	struct json_slice value;

	for (;;) {
		if (is_line)
			scan.text.n = line_end(p, scan.at);
		if (json_at_end(&scan)) {
			if (scan.text.n == p->bytes->all.n)
				return 0;
			scan.at = scan.text.n + 1;
			if (table_pass_on(p, scan.at, e) < 0)
				return -1;
			continue;
		}
		at = scan.at;
		if (json_next(&scan, &value, e) < 0)
			return err_wrap(e, "%s", p->bytes->name);
		if (is_line && !json_at_end(&scan))
			return fail_found(p, scan.at, "more text after the object; expected one on "
				"each line", e);
		if (table_check_size(p, at, value.raw.n, e) < 0 || table_pass_row(p, at, e) < 0 ||
		    table_pass_on(p, scan.at, e) < 0)
			return -1;
	}
}

static int read_rows(struct json_table *t, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct str all = p->bytes->all;
	size_t at;
	int rc = 0;

	if (table_text_at(p->bytes, &at, e) < 0)
		return -1;
	if (is_end(p, &at))
		return 0;
	if (all.p[at] == '[')
		return read_array(t, at, e);
	if (all.p[at] == '{' && !is_line_name(p->bytes->name))
		rc = read_wrapped(t, at, e);
	return rc ? (rc < 0 ? -1 : 0) : read_values(p, at, is_line_name(p->bytes->name), e);
}

static void json_table_close(void *state)
{
	struct json_table *t = state;

	if (t)
		table_pass_release(&t->pass);
	free(t);
}

static void *json_table_open(const struct table_bytes *bytes, const struct table_opts *o,
	struct err *e)
{
	struct json_table *t = mem_alloc(sizeof(*t));

	table_pass_begin(&t->pass, bytes, o);
	if (read_rows(t, e) == 0 && table_pass_end(&t->pass, e) == 0)
		return t;
	json_table_close(t);
	return NULL;
}

static size_t json_table_rows(const void *state)
{
	return ((const struct json_table *)state)->pass.rows;
}

static int json_table_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct json_table *t = state;
	struct table_pass *p = &t->pass;
	struct str all = p->bytes->all;
	struct json_scan scan = { all, p->place[row] };
	size_t next = row + 1 < p->rows ? p->place[row + 1] : all.n;

	table_touch(p, p->place[row], next - p->place[row]);
	if (json_next(&scan, out, e) < 0)
		return -1;
	if (out->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "expected an object, found %.*s",
			out->raw.n < 40 ? (int)out->raw.n : 40, out->raw.p);
	return 0;
}

static size_t json_table_line(const void *state, size_t row)
{
	const struct json_table *t = state;

	return t->is_array ? 0 : table_line_at(t->pass.bytes, t->pass.place[row]);
}

const struct table_format table_json = {
	.name = "json", .open = json_table_open, .close = json_table_close,
	.rows = json_table_rows, .row = json_table_row, .line = json_table_line,
};
