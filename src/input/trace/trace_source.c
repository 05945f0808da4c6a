/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_source.c - see trace_internal.h: opening a file, and the columns that all families share.
 */
#include "input/trace/trace_internal.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/rng/rng.h"
#include "input/encode/model.h"

/* ---- dates ---- */

/* The Gregorian calendar without leap seconds, as in POSIX. */

/* Exactly n digits; moves past them. */
static bool digits(struct str *rest, size_t n, int64_t *out)
{
	*out = 0;
	if (rest->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (rest->p[i] < '0' || rest->p[i] > '9')
			return false;
		*out = *out * 10 + (rest->p[i] - '0');
	}
	*rest = (struct str){ rest->p + n, rest->n - n };
	return true;
}

static bool mark(struct str *rest, char a, char b)
{
	if (!rest->n || (*rest->p != a && *rest->p != b))
		return false;
	*rest = (struct str){ rest->p + 1, rest->n - 1 };
	return true;
}

/* Days since 1970-01-01 of a date whose year begins in March, so that a leap day comes last. */
static int64_t days(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static bool read_date(struct str *rest, int64_t *out)
{
	static const int64_t length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t year, month, day;
	bool is_leap;

	if (!digits(rest, 4, &year) || !mark(rest, '-', '-') || !digits(rest, 2, &month) ||
	    !mark(rest, '-', '-') || !digits(rest, 2, &day) || year < 1970 || year > 2200 ||
	    month < 1 || month > 12)
		return false;
	is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	*out = days(year, month, day);
	return day >= 1 && day <= length[month - 1] + (month == 2 && is_leap);
}

static bool read_fraction(struct str *rest, int64_t *ns)
{
	int64_t unit = 100000000;

	*ns = 0;
	if (!mark(rest, '.', '.'))
		return true;
	for (; rest->n && *rest->p >= '0' && *rest->p <= '9'; unit /= 10) {
		if (!unit)
			return false; /* a tenth digit */
		*ns += unit * (*rest->p - '0');
		*rest = (struct str){ rest->p + 1, rest->n - 1 };
	}
	return true;
}

/* Seconds ahead of UTC. */
static bool read_offset(struct str *rest, int64_t *out)
{
	int64_t hours, minutes = 0;
	bool is_ahead = rest->n && *rest->p == '+';

	*out = 0;
	if (!rest->n || mark(rest, 'Z', 'z'))
		return true;
	if (!mark(rest, '+', '-') || !digits(rest, 2, &hours) || hours > 23)
		return false;
	mark(rest, ':', ':');
	if (rest->n && (!digits(rest, 2, &minutes) || minutes > 59))
		return false;
	*out = (hours * 60 + minutes) * (is_ahead ? 60 : -60);
	return true;
}

/* Nanoseconds since 1970; false: no such time. */
static bool trace_time_read(struct str text, int64_t *ns)
{
	struct str rest = text;
	int64_t day, hour, minute, second, fraction, offset;

	if (!read_date(&rest, &day) || !mark(&rest, ' ', 'T') || !digits(&rest, 2, &hour) ||
	    !mark(&rest, ':', ':') || !digits(&rest, 2, &minute) || !mark(&rest, ':', ':') ||
	    !digits(&rest, 2, &second) || hour > 23 || minute > 59 || second > 60 ||
	    !read_fraction(&rest, &fraction) || !read_offset(&rest, &offset) || rest.n)
		return false;
	*ns = (((day * 24 + hour) * 60 + minute) * 60 + second - offset) * 1000000000 + fraction;
	return true;
}

/* ---- token ids ---- */

static bool is_token(const struct tokenizer *t, uint32_t id)
{
	const struct model *m = tokenizer_model(t);

	return !m || m->vocab.entry[id].is_known;
}

int trace_ids_all(const struct tokenizer *t, uint32_t **out, size_t *n, struct err *e)
{
	size_t limit = tokenizer_id_limit(t), n_special;
	const uint32_t *special = tokenizer_special_ids(t, &n_special);
	bool *is_special = mem_array(limit, sizeof(*is_special));
	uint32_t *list = mem_array(limit, sizeof(*list));

	*n = 0;
	for (size_t i = 0; i < n_special; i++)
		if (special[i] < limit)
			is_special[special[i]] = true;
	for (uint32_t id = 0; id < limit; id++)
		if (!is_special[id] && is_token(t, id))
			list[(*n)++] = id;
	free(is_special);
	*out = list;
	return *n ? 0 : err_set(e, ERR_RUN, "the tokenizer has no tokens but special ones");
}

/* A blank followed by letters begins a word of its own, whatever precedes it. */
static bool is_word(struct str text)
{
	if (text.n < 2 || text.p[0] != ' ')
		return false;
	for (size_t i = 1; i < text.n; i++)
		if ((text.p[i] | 0x20) < 'a' || (text.p[i] | 0x20) > 'z')
			return false;
	return true;
}

/* Encoded twice in a row, as some tokenizers treat the beginning of a text differently. */
static bool survives(const struct tokenizer *t, uint32_t id, struct buf *text, struct ids *again)
{
	const uint32_t twice[2] = { id, id };

	buf_reset(text);
	if (tokenizer_decode_bytes(t, twice, 1, false, text) < 0 || !is_word(buf_str(text)))
		return false;
	buf_reset(text);
	ids_reset(again);
	return tokenizer_decode(t, twice, 2, false, text) == 0 &&
	       tokenizer_encode(t, buf_str(text), false, again) == 0 && again->count == 2 &&
	       again->id[0] == id && again->id[1] == id;
}

void trace_ids_words(const struct tokenizer *t, uint32_t *id, size_t *n)
{
	uint32_t *word = mem_array(*n, sizeof(*word));
	struct buf text = { 0 };
	struct ids again = { 0 };
	size_t words = 0;

	for (size_t i = 0; i < *n; i++)
		if (survives(t, id[i], &text, &again))
			word[words++] = id[i];
	if (words >= TRACE_WORDS_MIN) {
		memcpy(id, word, words * sizeof(*word));
		*n = words;
	}
	free(word);
	buf_release(&text);
	ids_release(&again);
}

void trace_ids_put(struct buf *list, uint32_t id)
{
	char text[12];
	size_t at = sizeof(text);

	assert(list->len > 0);
	do
		text[--at] = (char)('0' + id % 10);
	while ((id /= 10) != 0);
	if (list->len > 1)
		buf_add_text(list, ", ");
	buf_add(list, text + at, sizeof(text) - at);
}

bool trace_ids_name(struct json_slice v, struct buf *out)
{
	char number[FMT_F64_BYTES];
	size_t before = out->len;
	double real;

	switch (v.kind) {
	case JSON_STRING:
		json_unescape(out, v.raw);
		if (out->len > before && memchr(out->data + before, '\0', out->len - before))
			return false;
		break;
	case JSON_INT:
		buf_add_str(out, str_is(v.raw, "-0") ? STR("0") : v.raw);
		break;
	case JSON_REAL:
		if (!json_to_f64(v, &real))
			return false;
		buf_add_text(out, fmt_f64(number, real));
		break;
	default:
		return false;
	}
	return true;
}

/* ---- members of a row ---- */

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

/* Reports a missing column, and those that the row has; returns -1. */
static int trace_refuse_missing(const struct trace_source *s, size_t i, struct json_slice row,
				const char *column, struct err *e)
{
	struct buf columns = { 0 };

	add_columns(row, &columns);
	trace_refuse(s, i, e, "no \"%s\"; a row of %s has %s, and this one has %.250s; choose "
		     "another format with --trace-format", column, s->format->title,
		     s->format->keys, columns.data);
	buf_release(&columns);
	return -1;
}

/* A member that is a number, a text in CSV: 1; 0: absent, null or empty; -1. */
static int trace_number(struct trace_source *s, size_t i, struct json_slice row, const char *column,
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

/* A member as a key of struct trace_row; TRACE_NOBODY: it is absent or null. */
static uint64_t trace_key(struct trace_source *s, struct json_slice row, const char *column)
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

/* ---- families ---- */

/*
 * The families of traces; conversations spec 6.1.
 *
 * The order is that of detection: the first family whose is_its is true for the file's first row.
 */

#define TURN_MAX 1000000000 /* the number of a turn in its session */

static bool has(struct json_slice row, const char *column)
{
	struct json_slice v;

	return json_member(row, column, &v);
}

/* ---- Bailian ---- */

static bool is_bailian(struct json_slice row)
{
	return has(row, "chat_id") && has(row, "parent_chat_id");
}

static int read_bailian(struct trace_source *s, size_t i, struct json_slice row,
			struct trace_row *out, struct err *e)
{
	double turn, parent;
	int rc = trace_number(s, i, row, "turn", &turn, e);

	if (rc < 0)
		return -1;
	if (rc && (turn < 0 || turn > TURN_MAX))
		return trace_refuse(s, i, e, "\"turn\" must be a number from 0 to %d, got %g", TURN_MAX,
				    turn);
	out->turn = rc ? (int64_t)turn : 0;
	if (!json_member(row, "chat_id", &out->id))
		return trace_refuse_missing(s, i, row, "chat_id", e);
	rc = trace_number(s, i, row, "parent_chat_id", &parent, e);
	if (rc <= 0)
		return rc < 0 ? -1 : trace_refuse_missing(s, i, row, "parent_chat_id", e);
	out->key = trace_key(s, row, "chat_id");
	out->parent = parent < 0 ? TRACE_NOBODY : trace_key(s, row, "parent_chat_id");
	return 0;
}

/* ---- Azure, BurstGPT, ServeGen ---- */

static bool is_azure(struct json_slice row)
{
	return has(row, "TIMESTAMP");
}

static bool is_burstgpt(struct json_slice row)
{
	return has(row, "Request tokens");
}

static bool is_servegen(struct json_slice row)
{
	return has(row, "request_id") && !has(row, "timestamp");
}

static bool is_mooncake(struct json_slice row)
{
	return has(row, "timestamp") && (has(row, "input_length") || has(row, "hash_ids"));
}

/* ---- aiperf ---- */

static bool is_aiperf(struct json_slice row)
{
	return has(row, "payload") || has(row, "messages") || has(row, "text_input") ||
	       (has(row, "input_length") && (has(row, "session_id") || has(row, "delay") ||
					     has(row, "extra") || !has(row, "timestamp")) &&
		!has(row, "request_id"));
}

static int read_content(const struct trace_source *s, size_t i, struct json_slice row,
			struct trace_row *out, struct err *e)
{
	static const char *const names[] = { "input_length", "text_input", "messages", "payload" };
	static const enum json_kind kinds[] = { JSON_INT, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
	struct json_slice none, *const to[] = { &none, &out->text, &out->messages, &out->payload };
	struct json_slice v;
	size_t n = 0;

	for (size_t k = 0; k < 4; k++) {
		if (!json_member(row, names[k], &v) || v.kind == JSON_NULL)
			continue;
		n++;
		if (k && v.kind != kinds[k])
			return trace_refuse(s, i, e, "\"%s\" must be %s", names[k], k == 1 ? "a text" :
					    k == 2 ? "a list of messages" : "an object");
		*to[k] = v;
	}
	if (n == 1)
		return 0;
	if (n == 0)
		return trace_refuse_missing(s, i, row, "input_length", e);
	return trace_refuse(s, i, e, "a row must have exactly one of input_length, text_input, messages "
			    "and payload, got %zu of them", n);
}

static int read_aiperf(struct trace_source *s, size_t i, struct json_slice row,
		       struct trace_row *out, struct err *e)
{
	double delay;
	int rc = trace_number(s, i, row, "delay", &delay, e);

	if (rc < 0 || read_content(s, i, row, out, e) < 0)
		return -1;
	if (rc && delay < 0)
		return trace_refuse(s, i, e, "\"delay\" must be 0 or more, got %g", delay);
	if (rc)
		out->delay_s = delay / s->per_s;
	if (json_member(row, "extra", &out->extra) && out->extra.kind != JSON_OBJECT)
		return trace_refuse(s, i, e, "\"extra\" must be an object");
	if (json_member(row, "tools", &out->tools) && out->tools.kind != JSON_ARRAY)
		return trace_refuse(s, i, e, "\"tools\" must be a list");
	out->key = trace_key(s, row, "session_id");
	json_member(row, "session_id", &out->id);
	return 0;
}

/* ---- the table ---- */

static const struct trace_format trace_formats[] = {
	{ .name = "bailian", .title = "a Bailian (Qwen) trace",
	  .keys = "chat_id, parent_chat_id, timestamp, input_length, output_length, turn, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1, .block = 16, .is_its = is_bailian,
	  .read = read_bailian },
	{ .name = "azure", .title = "an Azure trace",
	  .keys = "TIMESTAMP, ContextTokens, GeneratedTokens",
	  .time = "TIMESTAMP", .input = "ContextTokens", .output = "GeneratedTokens",
	  .per_s = 1, .is_clock = true, .is_its = is_azure },
	{ .name = "burstgpt", .title = "a BurstGPT trace",
	  .keys = "Timestamp, Model, Request tokens, Response tokens, Total tokens, Log Type",
	  .time = "Timestamp", .input = "Request tokens", .output = "Response tokens",
	  .per_s = 1, .is_its = is_burstgpt },
	{ .name = "aiperf", .title = "an aiperf mooncake_trace",
	  .keys = "input_length, text_input, messages or payload, output_length, timestamp, delay, "
		  "session_id, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1e3, .block = 512, .is_time_optional = true,
	  .is_output_optional = true, .is_chain = true, .is_its = is_aiperf,
	  .read = read_aiperf },
	{ .name = "servegen", .title = "a ServeGen file of requests",
	  .keys = "request_id, type, input_length, and output_length or hash_ids",
	  .input = "input_length", .output = "output_length", .ids = "hash_ids",
	  .block = 16, .is_output_optional = true, .is_its = is_servegen },
	{ .name = "mooncake", .title = "a Mooncake trace",
	  .keys = "timestamp, input_length, output_length, hash_ids",
	  .time = "timestamp", .input = "input_length", .output = "output_length",
	  .ids = "hash_ids", .per_s = 1e3, .block = 512, .is_its = is_mooncake },
	{ .name = "record", .title = "a record of bench serve --record", .keys = "requests",
	  .time = "due_ns", .per_s = 1e9, .is_record = true },
};
#define FORMATS (sizeof(trace_formats) / sizeof(*trace_formats))

/* ---- rows ---- */

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

	assert(s->format);
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

#define RECORD_START "PLLMREC" /* docs/record-format.md */

static const struct trace_format *find_format(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
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
		trace_refuse(s, 0, e, "\"turns\" makes it a file of conversations, not a trace; "
			     "use it with bench multi-turn");
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
	for (size_t i = 0; i < FORMATS && !s->format; i++)
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
