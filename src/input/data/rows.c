/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - rows of files, and their own request keys; see build.h, request_keys.h. */
#include "input/data/build.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http/head.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "input/data/request_keys.h"

/* ---- what a request has with its prompt ---- */

#define SHOWN_BYTES 60 /* of a value that is refused */

enum kind {
	BODY, HEADERS, PRIORITY, LENGTH, NUMBER, INTEGER, TRUTH, TEXT_OR_LIST, LIST, OBJECT,
};

/* The sampling parameters by vLLM's names, after ours. */
static const struct row { const char *name; enum kind kind; } rows[] = {
	{ "extra_body", BODY }, { "headers", HEADERS }, { "priority", PRIORITY },
	{ "max_tokens", LENGTH }, { "max_completion_tokens", LENGTH },
	{ "temperature", NUMBER }, { "top_p", NUMBER }, { "min_p", NUMBER },
	{ "presence_penalty", NUMBER }, { "frequency_penalty", NUMBER },
	{ "repetition_penalty", NUMBER }, { "length_penalty", NUMBER },
	{ "top_k", INTEGER }, { "seed", INTEGER }, { "min_tokens", INTEGER }, { "n", INTEGER },
	{ "ignore_eos", TRUTH }, { "skip_special_tokens", TRUTH },
	{ "include_stop_str_in_output", TRUTH },
	{ "stop", TEXT_OR_LIST }, { "stop_token_ids", LIST }, { "bad_words", LIST },
	{ "logit_bias", OBJECT }, { "structured_outputs", OBJECT }, { "response_format", OBJECT },
};

static const struct row *find(struct str key)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (str_is(key, rows[i].name))
			return &rows[i];
	return NULL;
}

bool request_keys_know(struct str key)
{
	return find(key) != NULL;
}

static int refuse(const char *key, const char *expected, struct json_slice got, struct err *e)
{
	const char *quote = got.kind == JSON_STRING ? "\"" : "";
	size_t n = got.raw.n < SHOWN_BYTES ? got.raw.n : SHOWN_BYTES;

	return err_set(e, ERR_RUN, "\"%s\" must be %s, got %s%.*s%s%s", key, expected, quote, (int)n,
		       got.raw.p, n < got.raw.n ? "..." : "", quote);
}

/* ---- objects ---- */

static struct json_value *object_of(struct str text, struct arena *a)
{
	struct json_value *v = NULL;

	if (!text.n || json_parse(a, text, &v, NULL) < 0 || v->kind != JSON_OBJECT)
		return NULL;
	return v;
}

static struct json_value *member(struct json_value *object, struct str key, bool is_nocase)
{
	for (size_t i = 0; object && i < object->count; i++)
		if (is_nocase ? str_eq_nocase(object->key[i], key) : str_eq(object->key[i], key))
			return &object->item[i];
	return NULL;
}

/* over's members in the places of under's, then those that only over has. */
static struct str lay(struct str over, struct str under, bool is_nocase, struct arena *a)
{
	struct arena scratch = { 0 };
	struct json_value *top = object_of(over, &scratch), *low = object_of(under, &scratch);
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct str made;

	json_begin_object(&w);
	for (size_t i = 0; low && i < low->count; i++) {
		struct json_value *v = member(top, low->key[i], is_nocase);

		json_key_str(&w, low->key[i]);
		json_put_value(&w, v ? v : &low->item[i]);
	}
	for (size_t i = 0; top && i < top->count; i++) {
		if (member(low, top->key[i], is_nocase))
			continue;
		json_key_str(&w, top->key[i]);
		json_put_value(&w, &top->item[i]);
	}
	json_end_object(&w);
	made = out.len > 2 ? arena_str(a, buf_str(&out)) : STR("");
	buf_release(&out);
	arena_release(&scratch);
	return made;
}

void request_keys_put(struct sample *s, const char *key, struct str json, struct arena *a)
{
	struct str one = str_of(arena_printf(a, "{\"%s\": %.*s}", key, (int)json.n, json.p));

	s->overrides = lay(one, s->overrides, false, a);
}

bool request_keys_has(const struct sample *s, const char *key)
{
	struct json_scan scan = { s->overrides, 0 };
	struct json_slice object, v;

	return s->overrides.n && json_next(&scan, &object, NULL) == 0 &&
	       json_member(object, key, &v);
}

void request_keys_lay(struct sample *s, const struct sample *under, struct arena *a)
{
	if (under->priority && !request_keys_has(s, "priority"))
		s->priority = under->priority;
	if (under->overrides.n)
		s->overrides = lay(s->overrides, under->overrides, false, a);
	if (under->headers.n)
		s->headers = lay(s->headers, under->headers, true, a);
}

void request_keys_sampling(const struct sample *s, struct buf *out)
{
	struct arena scratch = { 0 };
	struct json_value *body = object_of(s->overrides, &scratch);
	struct json_writer w = json_writer(out);
	bool is_any = false;

	for (size_t i = 0; body && i < body->count; i++) {
		const struct row *k = find(body->key[i]);

		/* Keys that engines always get need no note. */
		if (!k || k->kind <= LENGTH || strcmp(k->name, "response_format") == 0 ||
		    (strcmp(k->name, "ignore_eos") == 0 && body->item[i].kind == JSON_TRUE))
			continue;
		if (!is_any)
			json_begin_object(&w);
		is_any = true;
		json_key_str(&w, body->key[i]);
		json_put_value(&w, &body->item[i]);
	}
	if (is_any)
		json_end_object(&w);
	arena_release(&scratch);
}

/* ---- values ---- */

static bool is_finite(struct json_slice v)
{
	double number;

	return (v.kind == JSON_INT || v.kind == JSON_REAL) && json_to_f64(v, &number) &&
	       isfinite(number);
}

static bool is_whole(struct json_slice v, int64_t *out)
{
	return (v.kind == JSON_INT || v.kind == JSON_REAL) && json_to_i64(v, out);
}

/* NULL: it is right. */
static const char *expected_of(enum kind kind, struct json_slice v)
{
	int64_t n;

	switch (kind) {
	case BODY:
		return v.kind == JSON_OBJECT ? NULL : "an object of members for the request's body";
	case HEADERS:
		return v.kind == JSON_OBJECT ? NULL : "an object of names and texts";
	case PRIORITY:
		return is_whole(v, &n) ? NULL : "a whole number of 64 bits (the lower, the earlier)";
	case LENGTH:
		return is_whole(v, &n) && n >= 0 && n <= LENGTH_TOKENS_MAX ? NULL :
		       "a whole number of tokens, 0 or more";
	case NUMBER:
		return is_finite(v) ? NULL : "a number";
	case INTEGER:
		return is_whole(v, &n) ? NULL : "a whole number";
	case TRUTH:
		return v.kind == JSON_TRUE || v.kind == JSON_FALSE ? NULL : "true or false";
	case TEXT_OR_LIST:
		return v.kind == JSON_STRING || v.kind == JSON_ARRAY ? NULL : "a text or a list";
	case LIST:
		return v.kind == JSON_ARRAY ? NULL : "a list";
	default:
		return v.kind == JSON_OBJECT ? NULL : "an object";
	}
}

static int check_header(struct str name, struct json_slice value, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (value.kind != JSON_STRING)
		return err_set(e, ERR_RUN, "\"headers\": \"%.*s\" must be a text, got %.*s",
			       (int)(name.n < SHOWN_BYTES ? name.n : SHOWN_BYTES), name.p,
			       (int)(value.raw.n < SHOWN_BYTES ? value.raw.n : SHOWN_BYTES),
			       value.raw.p);
	json_unescape(&text, value.raw);
	if (http_head_is_framing(name) || str_eq_nocase(name, STR("x-request-id")))
		rc = err_set(e, ERR_RUN, "\"headers\": \"%.*s\" is set by profllm itself; leave it out",
			     (int)name.n, name.p);
	else if (!http_header_is_plain(name, buf_str(&text)))
		rc = err_set(e, ERR_RUN, "\"headers\": \"%.*s\" is not a valid header: a name is one "
			     "word, and a value has no line break",
			     (int)(name.n < SHOWN_BYTES ? name.n : SHOWN_BYTES), name.p);
	buf_release(&text);
	return rc;
}

int request_keys_check_headers(struct json_slice headers, struct err *e)
{
	struct json_iter it = json_iter(headers);
	struct json_slice value;
	struct buf name = { 0 };
	struct str key;
	int rc = 0;

	while (rc == 0 && json_each(&it, &key, &value) == 1) {
		buf_reset(&name);
		json_unescape(&name, key);
		rc = check_header(buf_str(&name), value, e);
	}
	buf_release(&name);
	return rc;
}

/* Reads one key. The value goes into the body in Python's spelling. */
static int take(const struct row *k, struct json_slice v, struct arena *a, struct sample *s,
		struct err *e)
{
	const char *expected = expected_of(k->kind, v);
	struct str raw = v.raw;
	int64_t whole;

	if (expected)
		return refuse(k->name, expected, v, e);
	if (k->kind == HEADERS) {
		if (request_keys_check_headers(v, e) < 0)
			return -1;
		s->headers = lay(v.raw, STR(""), true, a);
		return 0;
	}
	if (k->kind == BODY) {
		s->overrides = lay(v.raw, s->overrides, false, a);
		return 0;
	}
	if (request_keys_has(s, k->name))
		return err_set(e, ERR_RUN, "\"%s\" is given in the row and in its \"extra_body\"; keep one "
			       "of them", k->name);
	if (v.kind == JSON_STRING)
		raw = (struct str){ raw.p - 1, raw.n + 2 }; /* with its quotes */
	else if (v.kind == JSON_REAL && k->kind != NUMBER && is_whole(v, &whole))
		raw = str_of(arena_printf(a, "%" PRId64, whole)); /* 3.0 */
	if (k->kind == LENGTH)
		json_to_i64(v, &s->output_len);
	request_keys_put(s, k->name, raw, a);
	return 0;
}

/* Sets the priority, from either place. */
static int take_priority(struct sample *s, bool *has_priority, struct err *e)
{
	struct json_scan scan = { s->overrides, 0 };
	struct json_slice object, v;
	const char *expected;

	if (!s->overrides.n || json_next(&scan, &object, NULL) < 0 ||
	    !json_member(object, "priority", &v))
		return 0;
	expected = expected_of(PRIORITY, v);
	if (expected)
		return refuse("priority", expected, v, e);
	json_to_i64(v, &s->priority);
	*has_priority = true;
	return 0;
}

int request_keys_read(struct json_slice row, struct arena *a, struct sample *s,
		      bool *has_priority, struct err *e)
{
	struct json_iter it = json_iter(row);
	struct json_slice v;
	struct str key;
	bool is_any = false;

	if (json_member(row, "extra_body", &v) && v.kind != JSON_NULL) {
		if (take(&rows[0], v, a, s, e) < 0)
			return -1;
		is_any = true;
	}
	while (row.kind == JSON_OBJECT && json_each(&it, &key, &v) == 1) {
		const struct row *k = v.kind == JSON_NULL ? NULL : find(key);

		if (!k || k->kind == BODY)
			continue;
		if (take(k, v, a, s, e) < 0)
			return -1;
		is_any = true;
	}
	return is_any ? take_priority(s, has_priority, e) : 0;
}

/* ---- priorities ---- */

static int take_class(struct str pair, struct priority_classes *out)
{
	struct str share = pair, priority = str_trim(str_cut(&share, ':'));
	int64_t p;
	double s;

	if (!str_to_i64(priority, &p) || !str_to_f64(str_trim(share), &s) || !(s > 0) || isinf(s))
		return -1;
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].priority == p)
			return -1;
	out->v[out->n].priority = p;
	out->v[out->n++].share = s;
	return 0;
}

int priority_classes_parse(const char *option, const char *text, struct priority_classes *out,
			   struct err *e)
{
	struct str rest = str_of(text);
	bool has_more;

	out->n = 0;
	do {
		has_more = rest.n && memchr(rest.p, ',', rest.n);
		if (out->n == PRIORITY_CLASSES_MAX)
			return err_set(e, ERR_USAGE, "--%s: at most %d classes", option,
				       PRIORITY_CLASSES_MAX);
		if (take_class(str_cut(&rest, ','), out) < 0)
			return err_set(e, ERR_USAGE, "--%s %.100s: expected a whole number and a share "
				       "above 0 for each class, such as 0:0.5,1:0.5, and no number twice",
				       option, text);
	} while (has_more);
	return 0;
}

static int64_t draw(const struct priority_classes *c, double all, double random)
{
	double below = 0;

	for (size_t k = 0; k + 1 < c->n; k++) {
		below += c->v[k].share;
		if (random < below / all)
			return c->v[k].priority;
	}
	return c->v[c->n - 1].priority;
}

int priority_deal(const char *option, const struct priority_classes *c, struct pyrandom *g,
		  struct workload *w, struct err *e)
{
	double all = 0;

	assert(c->n > 0);
	if (w->has_priorities)
		return err_set(e, ERR_USAGE, "--%s: requests of this dataset have priorities already",
			       option);
	for (size_t k = 0; k < c->n; k++)
		all += c->v[k].share;
	for (size_t i = 0; i < w->n; i++) {
		struct sample *s = &w->v[i];
		char text[24];

		s->priority = draw(c, all, pyrandom_double(g));
		snprintf(text, sizeof(text), "%" PRId64, s->priority);
		request_keys_put(s, "priority", str_of(text), &w->arena);
	}
	w->has_priorities = true;
	return 0;
}

/* ---- rows of files ---- */

static struct table *table_of(const struct dataset_rows *r, size_t *row)
{
	size_t t = 0;

	while (*row >= r->end[t])
		t++;
	*row -= t ? r->end[t - 1] : 0;
	return r->table[t];
}

static int refuse_at(const struct dataset_rows *r, size_t row, struct err *e, enum err_code code,
		     const char *text)
{
	struct buf where = { 0 };
	struct table *t = table_of(r, &row);

	table_where(t, row, &where);
	err_set(e, code, "%s: %s", where.data, text);
	buf_release(&where);
	return -1;
}

int rows_refuse(const struct dataset_rows *r, size_t i, struct err *e, const char *fmt, ...)
{
	char text[512];
	va_list args;

	assert(i < r->n);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return refuse_at(r, r->order[i], e, ERR_RUN, text);
}

/* Bytes of another encoding would be sent as U+FFFD: other prompts than those of the file. */
static int get(struct dataset_rows *r, size_t row, struct json_slice *out, struct err *e)
{
	size_t in_table = row;
	struct table *t = table_of(r, &in_table);

	if (table_row(t, in_table, out, e) < 0)
		return -1;
	return utf8_is_valid(out->raw) ? 0 :
		refuse_at(r, row, e, ERR_RUN, "the row has bytes that are not UTF-8. Convert the file, "
			  "for example with iconv -f latin1 -t utf8");
}

static bool is_known(const struct dataset_rows *r, struct str key)
{
	if (str_is(key, "output_tokens"))
		return r->output_len == -1;
	for (const char *const *k = r->known; *k; k++)
		if (str_is(key, *k))
			return true;
	return request_keys_know(key);
}

static void count_unused(struct dataset_rows *r, struct json_slice row)
{
	struct json_iter it = json_iter(row);
	struct json_slice value;
	struct str key;

	while (json_each(&it, &key, &value) == 1) {
		size_t k = 0;

		if (is_known(r, key))
			continue;
		while (k < r->n_unused && !str_is(key, r->unused[k].name))
			k++;
		if (k == UNUSED_KEYS_MAX) {
			r->unnamed++;
			continue;
		}
		if (k == r->n_unused) {
			char *name = mem_array(key.n + 1, 1);

			memcpy(name, key.p, key.n);
			r->unused[r->n_unused++].name = name;
		}
		r->unused[k].rows++;
	}
}

int rows_get(struct dataset_rows *r, size_t i, struct json_slice *row, struct err *e)
{
	assert(i < r->n);
	if (get(r, r->order[i], row, e) < 0)
		return -1;
	if (r->known && row->kind == JSON_OBJECT)
		count_unused(r, *row);
	return 0;
}

void rows_note_unused(const struct dataset_rows *r, const struct dataset_opts *o,
		      struct workload *w)
{
	for (size_t i = 0; i < r->n_unused; i++) {
		const struct unused_key *key = &r->unused[i];

		if (strcmp(key->name, "output_tokens") == 0)
			dataset_note(w, "%s: \"output_tokens\" of %zu row%s is not used, because "
				     "--custom-output-len is %" PRId64 "; -1 uses it", o->path,
				     key->rows, key->rows > 1 ? "s" : "", r->output_len);
		else
			dataset_note(w, "%s: \"%.100s\" of %zu row%s is not used", o->path, key->name,
				     key->rows, key->rows > 1 ? "s" : "");
	}
	if (r->unnamed)
		dataset_note(w, "%s: more than %d keys are not used; keys beyond these occur %zu times",
			     o->path, UNUSED_KEYS_MAX, r->unnamed);
}

int rows_own_keys(const struct dataset_rows *r, size_t i, struct json_slice row, struct arena *a,
		  struct draft *d, struct err *e)
{
	struct err why = { 0 };

	if (request_keys_read(row, a, &d->sample, &d->has_priority, &why) == 0)
		return 0;
	return rows_refuse(r, i, e, "%s", why.text);
}

static int open_tables(struct dataset_rows *r, const char *const *path, size_t n,
		       const struct rows_opts *opts, struct err *e)
{
	struct dataset_reading reading = { .env = opts->env };
	struct table_opts table_opts = {
		.columns = opts->columns, .cancel = opts->env->cancel,
		.progress = dataset_reading_show, .self = &reading,
	};

	r->table = mem_array(n, sizeof(struct table *));
	r->end = mem_array(n, sizeof(*r->end));
	for (size_t i = 0; i < n; i++) {
		struct table *t;

		reading.path = path[i];
		table_opts.ending = file_is_stream(path[i]) ? ".jsonl" : NULL;
		t = table_open(path[i], &table_opts, e);

		if (!t)
			return -1;
		r->table[r->tables] = t;
		r->all += table_rows(t);
		r->end[r->tables++] = r->all;
		if (r->all > SHUFFLED_ROWS_MAX)
			return err_set(e, ERR_LIMIT, "%s: more than %llu rows to be shuffled "
				       "(SHUFFLED_ROWS_MAX)", path[i], SHUFFLED_ROWS_MAX);
	}
	return 0;
}

static int choose(struct dataset_rows *r, const struct rows_opts *opts, struct err *e)
{
	r->order = mem_array(r->all, sizeof(*r->order));
	for (size_t row = 0; row < r->all; row++) {
		struct json_slice object;
		struct err why = { 0 };
		int is_kept = 1;

		if (opts->keep) {
			if (dataset_go_on(opts->env, e) < 0 || get(r, row, &object, e) < 0)
				return -1;
			is_kept = opts->keep(opts->self, object, &why);
		}
		if (is_kept < 0)
			return refuse_at(r, row, e, why.code, why.text);
		if (is_kept)
			r->order[r->n++] = row;
	}
	return 0;
}

int rows_open(struct dataset_rows *r, const char *const *path, size_t n,
	      const struct rows_opts *opts, struct compat_rng *rng, struct err *e)
{
	*r = (struct dataset_rows){
		.known = opts->is_known_only ? opts->columns : NULL, .output_len = opts->output_len,
	};
	if (open_tables(r, path, n, opts, e) < 0 || choose(r, opts, e) < 0)
		return -1;
	pyrandom_seed(&rng->py, (int64_t)opts->seed);
	if (!opts->o->disable_shuffle)
		pyrandom_shuffle(&rng->py, r->order, r->n, sizeof(*r->order));
	return 0;
}

void rows_release(struct dataset_rows *r)
{
	for (size_t i = 0; i < r->tables; i++)
		table_close(r->table[i]);
	for (size_t i = 0; i < r->n_unused; i++)
		free(r->unused[i].name);
	free(r->table);
	free(r->end);
	free(r->order);
	*r = (struct dataset_rows){ 0 };
}

bool rows_text(struct json_slice object, const char *key, struct buf *out)
{
	struct json_slice v;

	if (!json_member(object, key, &v) || v.kind != JSON_STRING)
		return false;
	json_unescape(out, v.raw);
	return true;
}

struct str rows_string(struct json_slice v, struct arena *a)
{
	struct buf text = { 0 };

	json_unescape(&text, v.raw);
	return arena_take(a, &text);
}

bool rows_item(struct json_slice list, size_t index, struct json_slice *item)
{
	struct json_iter it;

	if (list.kind != JSON_ARRAY)
		return false;
	it = json_iter(list);
	for (size_t i = 0; json_each(&it, NULL, item) == 1; i++)
		if (i == index)
			return true;
	return false;
}

int rows_take(const struct dataset_rows *r, struct take *take, const struct rows_opts *opts,
	      struct compat_rng *rng, struct workload *w, struct err *e)
{
	if (r->all == 0)
		return err_set(e, ERR_RUN, "%s: the file has no prompts", opts->o->path);
	take->rows = r->n;
	return dataset_take(take, opts->o, opts->env, rng, w, e);
}
