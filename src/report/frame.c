/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - reading records and their values; see frame.h. */
#include "report/frame.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/python.h"
#include "report/document_row.h"

#define SUMMARY "summary.json"

/* ---- getting records ---- */

int frame_add(struct frame *f, const struct json_value *record, const char *what,
	      struct arena *a, struct err *e)
{
	if (record->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "%s: a record is no JSON object", what);
	if (f->n == FRAME_RECORDS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than FRAME_RECORDS_MAX (%d) records", what,
			       FRAME_RECORDS_MAX);
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		const struct json_value **row = arena_alloc(a, cap * sizeof(*row));

		if (f->n)
			memcpy(row, f->row, f->n * sizeof(*row));
		f->row = row;
		f->cap = cap;
	}
	f->row[f->n++] = record;
	return 0;
}

/* A record as it stands, or an experiment's document as one; one without results is passed over. */
static int add_one(struct frame *f, const struct json_value *v, const char *path,
		   struct arena *a, struct err *e)
{
	if (document_is(v))
		v = document_row(v, a);
	return v ? frame_add(f, v, path, a, e) : 0;
}

static int add_all(struct frame *f, const struct json_value *v, const char *path,
		   struct arena *a, struct err *e)
{
	const struct json_value *suite = document_list(v);

	if (suite)
		v = suite;
	if (v->kind != JSON_ARRAY)
		return add_one(f, v, path, a, e);
	for (size_t i = 0; i < v->count; i++)
		if (add_one(f, &v->item[i], path, a, e) < 0)
			return -1;
	return 0;
}

/* Objects on lines of their own, as --append-result leaves them. */
static int add_lines(struct frame *f, struct str text, const char *path, struct arena *a,
		     struct err *e)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));
		struct json_value *v;

		if (line.n == 0)
			continue;
		if (json_parse(a, line, &v, e) < 0 || frame_add(f, v, path, a, e) < 0)
			return -1;
	}
	return 0;
}

int frame_read_lines(struct frame *f, struct str text, const char *what, struct arena *a,
		     struct err *e)
{
	return add_lines(f, text, what, a, e);
}

int frame_read_file(struct frame *f, const char *path, struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_value *v;
	struct err whole = { 0 }, lines = { 0 };
	size_t before = f->n;
	int rc = file_read(path, FRAME_FILE_BYTES_MAX, &text, e);

	if (rc == 0 && json_parse(a, buf_str(&text), &v, &whole) == 0) {
		rc = add_all(f, v, path, a, e);
	} else if (rc == 0 && (add_lines(f, buf_str(&text), path, a, &lines) < 0 ||
			       f->n == before)) {
		f->n = before;
		rc = err_set(e, ERR_PARSE, "%s: %s", path, whole.text);
	}
	buf_release(&text);
	return rc < 0 ? -1 : (int)(f->n - before);
}

/* ---- a folder ---- */

struct paths {
	char **path;
	size_t n, cap;
	unsigned depth;
};

static int walk(struct paths *p, const char *dir, struct err *e);

static int visit(struct paths *p, const char *dir, const char *name, struct err *e)
{
	char *path = file_join(dir, name);
	struct stat st;
	int rc = 0;

	/* Links to folders are not followed, as by upstream: they may lead in a circle. */
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		rc = walk(p, path, e);
	} else if (strcmp(name, SUMMARY) == 0) {
		if (p->n == p->cap) {
			p->cap = p->cap ? p->cap * 2 : 64;
			p->path = mem_grow(p->path, p->cap, sizeof(*p->path));
		}
		if (p->n == FRAME_RECORDS_MAX)
			rc = err_set(e, ERR_LIMIT, "%s: more than FRAME_RECORDS_MAX (%d) files", dir,
				     FRAME_RECORDS_MAX);
		else
			p->path[p->n++] = mem_text(path);
	}
	free(path);
	return rc;
}

static int walk(struct paths *p, const char *dir, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		return err_set(e, ERR_IO, "cannot read the folder %s: %s", dir, strerror(errno));
	if (++p->depth > FRAME_DEPTH_MAX)
		rc = err_set(e, ERR_LIMIT, "%s lies deeper than FRAME_DEPTH_MAX (%d) folders", dir,
			     FRAME_DEPTH_MAX);
	while (rc == 0 && (entry = readdir(d)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = visit(p, dir, entry->d_name, e);
	p->depth--;
	closedir(d);
	return rc;
}

static int by_path(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

int frame_read_sweep(struct frame *f, const char *dir, struct arena *a, struct err *e)
{
	struct paths p = { 0 };
	size_t before = f->n;
	int rc = walk(&p, dir, e);

	if (rc == 0 && p.n)
		qsort(p.path, p.n, sizeof(*p.path), by_path);
	for (size_t i = 0; rc >= 0 && i < p.n; i++)
		rc = frame_read_file(f, p.path[i], a, e);
	for (size_t i = 0; i < p.n; i++)
		free(p.path[i]);
	free(p.path);
	if (rc >= 0 && f->n == before)
		rc = err_set(e, ERR_RUN, "Did not find any parameter sweep results under %s", dir);
	return rc < 0 ? -1 : 0;
}

/* Another result's file, such as a record of servers, has neither. */
static bool is_result(const struct json_value *v)
{
	static const char *const sign[] = {
		"request_throughput", "output_throughput", "requests_per_second", "avg_latency",
		"input_sequence_throughput", "elapsed_time", "mean_ttft_ms",
	};

	for (size_t i = 0; i < sizeof(sign) / sizeof(*sign); i++)
		if (json_get(v, sign[i]))
			return true;
	return false;
}

static void drop_others(struct frame *f, size_t from)
{
	size_t n = from;

	for (size_t i = from; i < f->n; i++)
		if (is_result(f->row[i]))
			f->row[n++] = f->row[i];
	f->n = n;
}

/* Files that are no JSON, or of other things, are passed over. */
static int read_loose(struct frame *f, const char *dir, struct arena *a, struct err *e)
{
	struct dirent **entry;
	int n = scandir(dir, &entry, NULL, alphasort), rc = 0;

	for (int i = 0; i < n; i++) {
		struct err why = { 0 };
		char *path = file_join(dir, entry[i]->d_name);

		if (rc == 0 && entry[i]->d_name[0] != '.' &&
		    str_ends(str_of(path), STR(".json")) && !file_is_dir(path) &&
		    frame_read_file(f, path, a, &why) < 0 && why.code != ERR_PARSE) {
			*e = why;
			rc = -1;
		}
		free(path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return rc;
}

int frame_read_results(struct frame *f, const char *path, struct arena *a, struct err *e)
{
	size_t before = f->n;
	struct err none = { 0 };

	if (!file_exists(path))
		return err_set(e, ERR_RUN, "%s does not exist; a result, a folder of results, a suite's "
			       "document or the folder of a sweep is expected", path);
	if (!file_is_dir(path)) {
		if (frame_read_file(f, path, a, e) < 0)
			return -1;
	} else if (frame_read_sweep(f, path, a, &none) < 0) {
		f->n = before;
		if (read_loose(f, path, a, e) < 0)
			return -1;
	}
	drop_others(f, before);
	return f->n > before ? 0 : err_set(e, ERR_RUN, "%s holds no result of a benchmark "
					   "(--save-result writes one)", path);
}

/* ---- values ---- */

/* Also "NAME[2]", an element of a list. */
static const struct json_value *member(const struct json_value *object, struct str key)
{
	struct str place = key, name = str_cut(&place, '[');
	const struct json_value *list;
	int64_t i;

	if (object->kind != JSON_OBJECT)
		return NULL;
	for (size_t k = 0; k < object->count; k++)
		if (str_eq(object->key[k], key))
			return &object->item[k];
	if (!str_ends(place, STR("]")) ||
	    !str_to_i64((struct str){ place.p, place.n - 1 }, &i) || i < 0)
		return NULL;
	list = member(object, name);
	return list && list->kind == JSON_ARRAY && (uint64_t)i < list->count ? &list->item[i] :
									      NULL;
}

const struct json_value *frame_value(const struct json_value *record, struct str key)
{
	while (record) {
		const struct json_value *v = member(record, key);

		if (v || !key.n || !memchr(key.p, '.', key.n))
			return v;
		record = member(record, str_cut(&key, '.'));
	}
	return NULL;
}

/* An integer beyond 64 bits: json/read.h keeps it as a real with its digits. */
static bool is_big_integer(const struct json_value *v)
{
	for (size_t i = 0; i < v->raw.n; i++)
		if (!(v->raw.p[i] >= '0' && v->raw.p[i] <= '9') && v->raw.p[i] != '-')
			return false;
	return v->kind == JSON_REAL && v->raw.n > 0;
}

bool frame_number(const struct json_value *v, double *out)
{
	if (!v || v->kind == JSON_NULL || v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
		return false;
	if (v->kind == JSON_TRUE || v->kind == JSON_FALSE)
		*out = v->kind == JSON_TRUE;
	else if (v->kind != JSON_STRING)
		*out = json_real(v, 0);
	else if (str_is(v->text, "inf") || str_is(v->text, "-inf") || str_is(v->text, "nan"))
		return str_to_f64(v->text, out);
	else
		return false;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool frame_float(struct str text, double *out)
{
	char digits[128];
	size_t n = 0;

	text = str_trim(text);
	if (text.n == 0 || text.n >= sizeof(digits))
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '_')
			digits[n++] = text.p[i];
		else if (i == 0 || i + 1 == text.n || !is_digit(text.p[i - 1]) ||
			 !is_digit(text.p[i + 1]))
			return false;
	return str_to_f64((struct str){ digits, n }, out);
}

struct frame_columns frame_columns(const struct frame *f, struct arena *a)
{
	struct frame_columns c = { 0 };
	struct map seen = { 0 };
	size_t cap = 0;

	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->row[i]->count; k++) {
			struct str key = f->row[i]->key[k];

			if (map_get(&seen, key, NULL))
				continue;
			map_put(&seen, key, 1);
			if (c.n == cap) {
				struct str *old = c.name;

				cap = cap ? cap * 2 : 64;
				c.name = arena_alloc(a, cap * sizeof(key));
				if (c.n)
					memcpy(c.name, old, c.n * sizeof(key));
			}
			c.name[c.n++] = key;
		}
	map_release(&seen);
	return c;
}

bool frame_has_column(const struct frame *f, struct str key)
{
	for (size_t i = 0; i < f->n; i++)
		if (frame_value(f->row[i], key))
			return true;
	return false;
}

void frame_columns_text(const struct frame *f, struct buf *out)
{
	struct arena a = { 0 };
	struct frame_columns c = frame_columns(f, &a);

	buf_add_char(out, '[');
	for (size_t i = 0; i < c.n; i++) {
		if (i)
			buf_add_text(out, ", ");
		json_repr_str(out, c.name[i]);
	}
	buf_add_char(out, ']');
	arena_release(&a);
}

enum frame_kind frame_kind(const struct frame *f, struct str key)
{
	bool has_int = false, has_real = false, has_bool = false, has_gap = false;
	uint64_t fits;

	for (size_t i = 0; i < f->n; i++) {
		const struct json_value *v = frame_value(f->row[i], key);

		if (!v || v->kind == JSON_NULL)
			has_gap = true;
		else if (v->kind == JSON_TRUE || v->kind == JSON_FALSE)
			has_bool = true;
		else if (is_big_integer(v) && !str_to_u64(v->raw, &fits))
			return FRAME_OBJECT;
		else if (v->kind == JSON_INT || is_big_integer(v))
			has_int = true;
		else if (v->kind == JSON_REAL)
			has_real = true;
		else
			return FRAME_OBJECT;
	}
	if (has_bool)
		return has_int || has_real || has_gap ? FRAME_OBJECT : FRAME_BOOL;
	if (has_real || (has_int && has_gap))
		return FRAME_FLOAT;
	return has_int ? FRAME_INT : FRAME_OBJECT;
}

void frame_text(struct buf *out, const struct json_value *v, enum frame_kind kind)
{
	char number[FMT_F64_BYTES];
	double x;

	if (!v || (v->kind == JSON_NULL && kind == FRAME_FLOAT))
		buf_add_text(out, "nan");
	else if (kind == FRAME_FLOAT && frame_number(v, &x))
		buf_add_text(out, fmt_f64(number, x));
	else if (is_big_integer(v))
		buf_add_str(out, v->raw);
	else
		json_python_str(out, v);
}

struct frame_keys frame_keys(const char *list, struct arena *a)
{
	struct frame_keys keys = { 0 };
	struct str rest = str_of(list);
	bool is_more = rest.n > 0;

	keys.name = arena_alloc(a, (rest.n + 1) * sizeof(*keys.name));
	while (is_more) {
		const char *comma = rest.n ? memchr(rest.p, ',', rest.n) : NULL;

		keys.name[keys.n++] = comma ? str_cut(&rest, ',') : rest;
		is_more = comma != NULL;
	}
	return keys;
}
