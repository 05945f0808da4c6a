/* SPDX-License-Identifier: Apache-2.0 */
/* trace_source.c - see trace_source.h: opening a file, and what rows of every family have. */
#include "data/trace_source.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/limits.h"
#include "data/trace_ids.h"
#include "data/trace_time.h"
#include "rng/xxh64.h"

#define RECORD_START "PLLMREC" /* docs/record-format.md */
#define SHOWN_COLUMNS_BYTES 200

int trace_refuse(const struct trace_source *s, size_t i, struct err *e, const char *fmt, ...)
{
	struct buf where = { 0 };
	char text[768];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (s->table)
		table_where(s->table, i, &where);
	else
		buf_printf(&where, "%s: request %zu", s->path, i);
	err_set(e, ERR_RUN, "%s: %s", where.data, text);
	buf_release(&where);
	return -1;
}

static void add_columns(struct json_slice row, struct buf *out)
{
	struct json_iter it = json_iter(row);
	struct json_slice v;
	struct str key;

	while (json_each(&it, &key, &v) == 1 && out->len < SHOWN_COLUMNS_BYTES) {
		buf_add_text(out, out->len ? ", " : "");
		buf_add_str(out, key);
	}
	if (!out->len)
		buf_add_text(out, "nothing");
}

int trace_refuse_missing(const struct trace_source *s, size_t i, struct json_slice row,
			 const char *column, struct err *e)
{
	struct buf columns = { 0 };

	add_columns(row, &columns);
	trace_refuse(s, i, e, "no \"%s\"; a row of %s has %s, and this one has %.250s; "
		     "--trace-format names another family", column, s->format->title,
		     s->format->keys, columns.data);
	buf_release(&columns);
	return -1;
}

/* ---- cells ---- */

/* CSV has texts, other formats numbers. */
int trace_number(struct trace_source *s, size_t i, struct json_slice row, const char *column,
		 double *out, struct err *e)
{
	struct json_slice v;
	bool is_one;

	if (!json_member(row, column, &v) || v.kind == JSON_NULL)
		return 0;
	if (v.kind == JSON_STRING) {
		buf_reset(&s->text);
		json_unescape(&s->text, v.raw);
		if (str_trim(buf_str(&s->text)).n == 0)
			return 0;
		is_one = str_to_f64(str_trim(buf_str(&s->text)), out);
	} else {
		is_one = json_to_f64(v, out);
	}
	if (!is_one || !isfinite(*out))
		return trace_refuse(s, i, e, "\"%s\" must be a number, got %.*s", column,
				    v.raw.n < 40 ? (int)v.raw.n : 40, v.raw.p);
	return 1;
}

uint64_t trace_key(struct trace_source *s, struct json_slice row, const char *column)
{
	struct json_slice v;
	uint64_t key;

	if (!json_member(row, column, &v))
		return TRACE_NOBODY;
	buf_reset(&s->text);
	if (!trace_ids_name(v, &s->text))
		return TRACE_NOBODY;
	key = xxh64(buf_str(&s->text), 0);
	return key == TRACE_NOBODY ? 1 : key;
}

static int read_tokens(struct trace_source *s, size_t i, struct json_slice row, const char *column,
		       bool is_optional, int64_t *out, struct err *e)
{
	double v;
	int rc = column ? trace_number(s, i, row, column, &v, e) : 0;

	if (rc < 0)
		return -1;
	if (rc == 0)
		return is_optional ? 0 : trace_refuse_missing(s, i, row, column, e);
	if (v < 0 || v > LENGTH_TOKENS_MAX || v != floor(v))
		return trace_refuse(s, i, e, "\"%s\" must be a whole number of tokens from 0 to %u, got "
				    "%g", column, LENGTH_TOKENS_MAX, v);
	*out = (int64_t)v;
	return 0;
}

static int read_clock(struct trace_source *s, size_t i, struct json_slice v, double *out,
		      struct err *e)
{
	int64_t ns;

	buf_reset(&s->text);
	json_unescape(&s->text, v.raw);
	if (v.kind != JSON_STRING || !trace_time_read(str_trim(buf_str(&s->text)), &ns))
		return trace_refuse(s, i, e, "\"%s\" must be a time such as 2023-11-16 18:17:03.9799600, "
				    "got %.*s", s->format->time, v.raw.n < 40 ? (int)v.raw.n : 40,
				    v.raw.p);
	if (!s->has_zero)
		s->zero_ns = ns;
	s->has_zero = true;
	*out = (double)(ns - s->zero_ns) / 1e9;
	return 0;
}

static int read_time(struct trace_source *s, size_t i, struct json_slice row, double *out,
		     struct err *e)
{
	const struct trace_format *f = s->format;
	struct json_slice v;
	double at;
	int rc;

	*out = NAN;
	if (!f->time)
		return 0;
	if (f->is_clock && json_member(row, f->time, &v))
		return read_clock(s, i, v, out, e);
	rc = trace_number(s, i, row, f->time, &at, e);
	if (rc == 1)
		*out = at / s->per_s;
	if (rc == 0 && !f->is_time_optional)
		return trace_refuse_missing(s, i, row, f->time, e);
	return rc < 0 ? -1 : 0;
}

static int read_ids(const struct trace_source *s, size_t i, struct json_slice row,
		    struct json_slice *out, struct err *e)
{
	struct json_slice v;

	if (!s->format->ids || !json_member(row, s->format->ids, &v) || v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return trace_refuse(s, i, e, "\"%s\" must be a list of ids", s->format->ids);
	*out = v;
	return 0;
}

/* ---- rows ---- */

static double span_s(int64_t ns)
{
	return (double)ns / 1e9;
}

/* Rows that sent the same sample had the same prompt. */
static void read_recorded(const struct trace_source *s, size_t i, struct trace_row *out)
{
	const struct request_row *row = &s->record.row[i];

	out->at_s = row->due_ns ? span_s(row->due_ns - s->record.start_ns) : NAN;
	out->input = row->prompt_tokens ? row->prompt_tokens : row->sample_prompt_tokens;
	out->output = row->state == REQ_DONE && row->output_tokens ? row->output_tokens
								    : row->asked_tokens;
	out->key = i + 1;
	out->parent = row->parent == RECORD_NONE ? TRACE_NOBODY : (uint64_t)row->parent + 1;
	out->turn = row->turn;
	out->name = row->sample;
}

int trace_source_row(struct trace_source *s, size_t i, struct trace_row *out, struct err *e)
{
	const struct trace_format *f = s->format;
	struct json_slice row;

	*out = (struct trace_row){ .delay_s = NAN, .output = -1, .name = (uint32_t)i };
	if (f->is_record) {
		read_recorded(s, i, out);
		return 0;
	}
	if (table_row(s->table, i, &row, e) < 0 || read_time(s, i, row, &out->at_s, e) < 0 ||
	    (f->read && f->read(s, i, row, out, e) < 0))
		return -1;
	if (out->text.raw.p || out->messages.raw.p || out->payload.raw.p)
		return read_tokens(s, i, row, f->output, true, &out->output, e);
	if (read_tokens(s, i, row, f->input, false, &out->input, e) < 0 ||
	    read_tokens(s, i, row, f->output, f->is_output_optional, &out->output, e) < 0)
		return -1;
	return read_ids(s, i, row, &out->ids, e);
}

/* ---- opening ---- */

static const struct trace_format *find_format(const char *name)
{
	for (size_t i = 0; i < trace_formats_n; i++)
		if (strcmp(trace_formats[i].name, name) == 0)
			return &trace_formats[i];
	return NULL;
}

static int refuse_unknown(const struct trace_source *s, struct json_slice row, struct err *e)
{
	struct buf columns = { 0 };
	struct json_slice v;

	add_columns(row, &columns);
	if (json_member(row, "turns", &v))
		trace_refuse(s, 0, e, "\"turns\" makes it a file of conversations and not a trace: bench "
			     "multi-turn reads those");
	else
		trace_refuse(s, 0, e, "no known trace has the columns %.250s; there are mooncake "
			     "(timestamp, input_length, output_length, hash_ids), bailian (chat_id), azure "
			     "(TIMESTAMP), burstgpt (Request tokens), aiperf and servegen; --trace-format "
			     "says which it is", columns.data);
	buf_release(&columns);
	return -1;
}

static int detect(struct trace_source *s, struct err *e)
{
	struct json_slice row;

	if (table_row(s->table, 0, &row, e) < 0)
		return -1;
	for (size_t i = 0; i < trace_formats_n && !s->format; i++)
		if (trace_formats[i].is_its && trace_formats[i].is_its(row))
			s->format = &trace_formats[i];
	return s->format ? 0 : refuse_unknown(s, row, e);
}

static int open_record(struct trace_source *s, struct err *e)
{
	s->format = find_format("record");
	if (record_file_load(&s->record, &s->info, s->path, e) < 0)
		return -1;
	while (s->rows < s->record.n_rows && s->record.row[s->rows].phase == PHASE_MAIN)
		s->rows++; /* main rows come first */
	return 0;
}

static bool begins_like_record(const char *path)
{
	char head[sizeof(RECORD_START)] = "";
	FILE *f = file_is_stream(path) ? NULL : fopen(path, "rb");
	size_t n = f ? fread(head, 1, sizeof(head) - 1, f) : 0;

	if (f)
		fclose(f);
	return str_starts((struct str){ head, n }, STR(RECORD_START));
}

static int open_table(struct trace_source *s, const struct dataset_env *env, struct err *e)
{
	struct dataset_reading reading = { .env = env, .path = s->path };
	const struct table_opts opts = {
		.ending = ".csv", .cancel = env->cancel, .progress = dataset_reading_show,
		.self = &reading,
	};

	s->table = table_open(s->path, &opts, e);
	if (!s->table)
		return -1;
	s->rows = table_rows(s->table);
	if (s->rows == 0)
		return err_set(e, ERR_RUN, "%s: the file has no rows", s->path);
	return s->format ? 0 : detect(s, e);
}

static double per_second(const char *unit)
{
	static const struct { const char *name; double per_s; } units[] = {
		{ "s", 1 }, { "ms", 1e3 }, { "us", 1e6 }, { "ns", 1e9 },
	};

	for (size_t i = 0; unit && i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].per_s;
	return 0;
}

int trace_source_open(struct trace_source *s, const struct dataset_opts *o,
		      const struct dataset_env *env, struct err *e)
{
	double per_s = per_second(o->trace_time_unit);
	const char *name = o->trace_format;
	bool is_record;

	*s = (struct trace_source){ .path = o->path };
	if (name && strcmp(name, "auto") != 0)
		s->format = find_format(name);
	is_record = s->format ? s->format->is_record : begins_like_record(o->path);
	if ((is_record ? open_record(s, e) : open_table(s, env, e)) < 0)
		return -1;
	if (per_s && (s->format->is_clock || s->format->is_record || !s->format->time))
		return err_set(e, ERR_USAGE, "--trace-time-unit %s: times of %s have no unit to choose",
			       o->trace_time_unit, s->format->title);
	s->per_s = per_s ? per_s : s->format->per_s;
	s->block = o->trace_block_size.is_set ? (unsigned)o->trace_block_size.v : s->format->block;
	return 0;
}

void trace_source_release(struct trace_source *s)
{
	table_close(s->table);
	record_release(&s->record);
	record_info_release(&s->info);
	buf_release(&s->text);
	*s = (struct trace_source){ 0 };
}
