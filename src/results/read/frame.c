/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - reading records and their values; see frame.h. */
#include "results/read/frame.h"

#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "results/read/document.h"
#include "results/read/files.h"
#include "results/read/kind.h"
#include "results/read/read.h"

/* ---- getting records ---- */

int frame_add(struct frame *f, const struct json_value *record, const char *what,
	      struct arena *a, struct err *e)
{
	if (record->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "%s: a record is not a JSON object", what);
	if (f->n == FRAME_RECORDS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than FRAME_RECORDS_MAX (%d) records", what,
			       FRAME_RECORDS_MAX);
	f->row = arena_room(a, f->row, f->n, &f->cap, sizeof(*f->row));
	f->row[f->n++] = record;
	return 0;
}

/* A record, or an experiment's document as one; a document without results is skipped. */
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
	const struct json_value *suite = result_suite(v), *wrapped = result_wrapped(v);

	v = suite ? suite : wrapped ? wrapped : v;
	if (v->kind != JSON_ARRAY)
		return add_one(f, v, path, a, e);
	for (size_t i = 0; i < v->count; i++)
		if (add_one(f, &v->item[i], path, a, e) < 0)
			return -1;
	return 0;
}

int frame_read_lines(struct frame *f, struct str text, const char *what, struct arena *a,
		     struct err *e)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));
		struct json_value *v;

		if (line.n && (json_parse(a, line, &v, e) < 0 || add_one(f, v, what, a, e) < 0))
			return -1;
	}
	return 0;
}

int frame_read_file(struct frame *f, const char *path, struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_value *v;
	struct err whole = { 0 }, lines = { 0 };
	struct str bytes = { 0 };
	size_t before = f->n;
	int rc = file_read(path, FRAME_FILE_BYTES_MAX, &text, e);

	if (rc == 0) {
		bytes = buf_str(&text);
		if (result_unpack(&bytes, FRAME_FILE_BYTES_MAX, a, e) < 0)
			rc = err_wrap(e, "%s", path);
	}
	if (rc == 0 && json_parse(a, bytes, &v, &whole) == 0) {
		rc = add_all(f, v, path, a, e);
	} else if (rc == 0 && (frame_read_lines(f, bytes, path, a, &lines) < 0 || f->n == before)) {
		f->n = before;
		rc = err_set(e, ERR_PARSE, "%s: %s", path, whole.text);
	}
	buf_release(&text);
	return rc < 0 ? -1 : (int)(f->n - before);
}

/* Files that are not JSON hold no record. */
static int read_files(struct frame *f, const struct result_files *files, bool is_strict,
		      struct arena *a, struct err *e)
{
	for (size_t i = 0; i < files->n; i++) {
		struct err why = { 0 };

		if (frame_read_file(f, files->path[i], a, &why) < 0 &&
		    (is_strict || why.code != ERR_PARSE)) {
			*e = why;
			return -1;
		}
	}
	return 0;
}

int frame_read_sweep(struct frame *f, const char *dir, struct arena *a, struct err *e)
{
	struct result_files files = { 0 };
	size_t before = f->n;
	int rc = result_files_find(dir, RESULT_FILES_SUMMARIES, &files, NULL, NULL, e);

	if (rc == 0)
		rc = read_files(f, &files, true, a, e);
	result_files_release(&files);
	if (rc == 0 && f->n == before)
		rc = err_set(e, ERR_RUN, "Did not find any parameter sweep results under %s", dir);
	return rc;
}

static void drop_others(struct frame *f, size_t from)
{
	size_t n = from;

	for (size_t i = from; i < f->n; i++)
		if (result_is_record(f->row[i]))
			f->row[n++] = f->row[i];
	f->n = n;
}

int frame_refuse(const char *path, struct arena *a, struct err *e)
{
	const struct json_value *v = file_is_dir(path) ? NULL :
		result_json(path, FRAME_FILE_BYTES_MAX, a, NULL);
	const struct json_value *suite = v ? result_suite(v) : NULL;
	bool is_suite = suite && suite->kind == JSON_ARRAY && suite->count;

	if (is_suite && document_is(&suite->item[0]))
		return err_set(e, ERR_RUN, "none of the %zu experiments of %s has a result. The first "
			       "one: %s", suite->count, path, document_failure(&suite->item[0], a));
	if (v && document_is(v))
		return err_set(e, ERR_RUN, "the experiment of %s has no result: %s", path,
			       document_failure(v, a));
	return err_set(e, ERR_NO_RESULTS, "%s holds no result of a benchmark (--save-result writes one; "
		       "profllm ingest reads those of other tools)", path);
}

int frame_read_results(struct frame *f, const char *path, struct arena *a, struct err *e)
{
	struct result_files files = { 0 };
	size_t before = f->n;
	bool is_sweep;
	int rc;

	if (!file_exists(path))
		return err_set(e, ERR_RUN, "%s does not exist; a result, a folder of results, a suite's "
			       "document or the folder of a sweep is expected", path);
	if (!file_is_dir(path))
		rc = frame_read_file(f, path, a, e) < 0 ? -1 : 0;
	else if ((rc = result_files_of(path, &files, &is_sweep, e)) == 0)
		rc = read_files(f, &files, is_sweep, a, e);
	result_files_release(&files);
	if (rc < 0)
		return -1;
	drop_others(f, before);
	return f->n > before ? 0 : frame_refuse(path, a, e);
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
			c.name = arena_room(a, c.name, c.n, &cap, sizeof(*c.name));
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

static enum frame_kind frame_kind(const struct frame *f, struct str key)
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

/* ---- CSV, as pandas writes it ---- */

void frame_csv_field(struct buf *out, struct str text)
{
	bool is_quoted = false;

	for (size_t i = 0; i < text.n; i++)
		is_quoted |= strchr(",\"\n\r", text.p[i]) && text.p[i];
	if (!is_quoted) {
		buf_add_str(out, text);
		return;
	}
	buf_add_char(out, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, text.p[i]);
	}
	buf_add_char(out, '"');
}

static void add_value(struct buf *out, const struct json_value *v, enum frame_kind kind,
		      struct buf *scratch)
{
	if (!v || v->kind == JSON_NULL || (v->kind == JSON_REAL && isnan(v->real)))
		return;
	buf_reset(scratch);
	frame_text(scratch, v, kind);
	frame_csv_field(out, buf_str(scratch));
}

void frame_csv(const struct frame *f, struct buf *out)
{
	struct arena a = { 0 };
	struct buf scratch = { 0 };
	struct frame_columns c = frame_columns(f, &a);
	enum frame_kind *kind = arena_alloc(&a, (c.n + 1) * sizeof(*kind));

	for (size_t k = 0; k < c.n; k++) {
		kind[k] = frame_kind(f, c.name[k]);
		buf_add_char(out, ',');
		frame_csv_field(out, c.name[k]);
	}
	buf_add_char(out, '\n');
	for (size_t i = 0; i < f->n; i++) {
		buf_printf(out, "%zu", i);
		for (size_t k = 0; k < c.n; k++) {
			buf_add_char(out, ',');
			add_value(out, frame_value(f->row[i], c.name[k]), kind[k], &scratch);
		}
		buf_add_char(out, '\n');
	}
	buf_release(&scratch);
	arena_release(&a);
}
