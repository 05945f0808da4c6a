/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - requests without tokens to stream: embeddings, pooling, rerank and score. The answer is
 * written when the request arrives and sent when it is due.
 *
 * Every number is derived from the seed and the input it belongs to. Token counts are the
 * tokenizer's; both texts of a pair count.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "sim/serving/serving.h"

#define DIMENSIONS 16
#define DIMENSIONS_MAX 65536
#define INPUTS_MAX 65536 /* of one request */

/* One text, list of ids, chat or other thing to embed or score. */
struct pool_input {
	uint64_t key;
	uint32_t tokens;
	struct str raw; /* as it stood in the request */
};

struct pooling {
	struct conn *conn;
	struct json_slice body;
	char id[REQUEST_ID_MAX + 1];
	struct pool_input *input;
	size_t n, cap;
	uint64_t tokens;
	int64_t limit;      /* tokens of an input; more are cut off, or refused */
	bool is_truncated;
	bool is_media;      /* inputs are places of media, not text */
};

static int refused(const char *member, const char *expected, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s must be %s", member, expected);
}

/* ---- reading ---- */

static int input_put(struct pooling *p, struct str key, size_t tokens, struct str raw,
		     struct err *e)
{
	if (p->n == INPUTS_MAX)
		return err_set(e, ERR_USAGE, "more than %d inputs", INPUTS_MAX);
	if (tokens == 0)
		return err_set(e, ERR_USAGE, "an input is empty: it has no tokens");
	if ((int64_t)tokens > p->limit && !p->is_truncated)
		return err_set(e, ERR_USAGE, "an input has %zu tokens; the model takes %" PRId64,
			       tokens, p->limit);
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->input = mem_grow(p->input, p->cap, sizeof(*p->input));
	}
	p->input[p->n++] = (struct pool_input){
		.key = words_mix(p->conn->sim->opts->seed ^ map_hash(key)), .raw = raw,
		.tokens = (uint32_t)((int64_t)tokens > p->limit ? (size_t)p->limit : tokens),
	};
	p->tokens += p->input[p->n - 1].tokens;
	return 0;
}

static int text_put(struct pooling *p, struct json_slice v, struct err *e)
{
	struct sim *s = p->conn->sim;

	buf_reset(&s->text);
	json_unescape(&s->text, v.raw);
	return input_put(p, buf_str(&s->text), p->is_media ? 1 :
			 tokenizer_count(s->tokenizer, buf_str(&s->text), true), v.raw, e);
}

static int chat_put(struct pooling *p, const char *name, struct json_slice v, struct err *e)
{
	struct sim *s = p->conn->sim;

	if (ask_messages(&s->text, name, v, e) < 0)
		return -1;
	return input_put(p, buf_str(&s->text),
			 tokenizer_count(s->tokenizer, buf_str(&s->text), false), v.raw, e);
}

static int ids_put(struct pooling *p, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;
	size_t n = 0;

	while (json_each(&it, &key, &item) > 0) {
		if (item.kind != JSON_INT)
			return refused("input", "texts or token ids", e);
		n++;
	}
	return input_put(p, v.raw, n, v.raw, e);
}

/* A text, ids, messages, or a list of such. */
static int inputs_read(struct pooling *p, const char *name, struct json_slice v, bool is_nested,
		       struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;

	if (v.kind == JSON_STRING)
		return text_put(p, v, e);
	if (v.kind != JSON_ARRAY || json_each(&it, &key, &item) <= 0)
		return refused(name, "a text, token ids, or a list of them", e);
	if (item.kind == JSON_INT)
		return ids_put(p, v, e);
	if (item.kind == JSON_OBJECT)
		return chat_put(p, name, v, e);
	if (is_nested)
		return refused(name, "a text, token ids, or a list of them", e);
	do
		if (inputs_read(p, name, item, true, e) < 0)
			return -1;
	while (json_each(&it, &key, &item) > 0);
	return 0;
}

/* Arrival, faults, JSON and model; false when the request was answered already. */
static bool pool_open(struct pooling *p, struct conn *c, struct str body)
{
	struct json_scan scan = { .text = body };
	struct json_slice v;
	struct buf *model = &c->sim->ask.model;
	int64_t n = 0;

	*p = (struct pooling){ .conn = c, .limit = c->sim->opts->max_model_len };
	if (!start_arrive(c, p->id))
		return false;
	if (json_next(&scan, &p->body, NULL) < 0 || !json_at_end(&scan) ||
	    p->body.kind != JSON_OBJECT) {
		start_refuse(c, 400, NULL, "the request body is not a JSON object", p->id);
		return false;
	}
	buf_reset(model);
	if (json_member(p->body, "model", &v) && v.kind == JSON_STRING)
		json_unescape(model, v.raw);
	p->is_truncated = json_member(p->body, "truncate_prompt_tokens", &v) &&
			  json_to_i64(v, &n);
	if (p->is_truncated && n > 0 && n < p->limit)
		p->limit = n;
	p->is_media = json_member(p->body, "modality", &v) && v.kind == JSON_STRING &&
		      !str_is(v.raw, "text");
	return start_has_model(c, buf_str(model), p->id);
}

/* ---- answering ---- */

static void pool_refuse(struct pooling *p, const struct err *e)
{
	start_refuse(p->conn, 400, NULL, e->text, p->id);
	free(p->input);
}

/* The answer is in the stream's body and is sent when it is due. */
static void pool_send(struct pooling *p, const char *type)
{
	struct sim_stream *t = &p->conn->stream;

	t->is_pooled = true;
	t->type = type;
	start_choices(p->conn, 1);
	t->choice->total = 1;
	t->choice->finish = FINISH_STOP;
	start_begin(p->conn, p->id, p->tokens, false);
	free(p->input);
	stream_pace(p->conn);
}

static void id_write(const struct pooling *p, const char *prefix, struct buf *out)
{
	const struct sim *s = p->conn->sim;
	char own[40];

	snprintf(own, sizeof(own), "%016" PRIx64 "%016" PRIx64,
		 words_mix((uint64_t)s->id_base), words_mix(s->arrivals));
	buf_printf(out, "{\"id\":\"%s", prefix);
	buf_add_text(out, p->id[0] ? p->id : own);
	buf_add_char(out, '"');
}

static void model_write(const struct pooling *p, struct buf *out)
{
	buf_add_text(out, ",\"model\":");
	json_quote(out, str_of(route_model(p->conn->sim)), true);
}

static void usage_write(const struct pooling *p, bool is_short, struct buf *out)
{
	if (p->conn->stream.fault.is_without_usage)
		return;
	buf_printf(out, ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"total_tokens\":%" PRIu64,
		   p->tokens, p->tokens);
	buf_add_text(out, is_short ? "}" :
		     ",\"completion_tokens\":0,\"prompt_tokens_details\":null}");
}

/* Between -1 and 1, exact as a float. */
static float value_at(uint64_t key, size_t i)
{
	return (float)((double)(words_mix(key + i) >> 40) / 8388608.0 - 1.0);
}

static void floats_write(uint64_t key, size_t n, struct buf *out)
{
	buf_add_char(out, '[');
	for (size_t i = 0; i < n; i++)
		buf_printf(out, i ? ",%.9g" : "%.9g", (double)value_at(key, i));
	buf_add_char(out, ']');
}

static void bytes_write(uint64_t key, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		float v = value_at(key, i);

		buf_add(out, &v, sizeof(v));
	}
}

static void list_begin(struct pooling *p, const char *prefix, struct buf *out)
{
	id_write(p, prefix, out);
	buf_printf(out, ",\"object\":\"list\",\"created\":%" PRId64,
		   p->conn->recv_ns / 1000000000);
	model_write(p, out);
	buf_add_text(out, ",\"data\":[");
}

/* {"id":..,"object":"list",..,"data":[{"index":0,"object":..,"embedding":..}..],"usage":..} */
static void vectors_write(struct pooling *p, const char *object, const char *member, size_t n,
			  bool is_base64, struct buf *out)
{
	struct buf bytes = { 0 };

	list_begin(p, "embd-", out);
	for (size_t i = 0; i < p->n; i++) {
		buf_printf(out, "%s{\"index\":%zu,\"object\":\"%s\",\"%s\":", i ? "," : "", i,
			   object, member);
		if (is_base64) {
			buf_reset(&bytes);
			bytes_write(p->input[i].key, n, &bytes);
			buf_add_char(out, '"');
			base64_encode(buf_str(&bytes), out);
			buf_add_char(out, '"');
		} else {
			floats_write(p->input[i].key, n, out);
		}
		buf_add_char(out, '}');
	}
	buf_add_char(out, ']');
	usage_write(p, false, out);
	buf_add_char(out, '}');
	buf_release(&bytes);
}

/* The metadata header describes the bytes in the body. */
static void metadata_write(struct pooling *p, size_t n, struct buf *extra)
{
	size_t bytes = n * sizeof(float);

	buf_add_text(extra, "metadata: ");
	list_begin(p, "embd-", extra);
	for (size_t i = 0; i < p->n; i++)
		buf_printf(extra, "%s{\"index\":%zu,\"embed_dtype\":\"float32\",\"endianness\":"
			   "\"native\",\"start\":%zu,\"end\":%zu,\"shape\":[%zu]}",
			   i ? "," : "", i, i * bytes, (i + 1) * bytes, n);
	buf_add_char(extra, ']');
	usage_write(p, false, extra);
	buf_add_text(extra, "}\r\n");
}

static int dimensions_read(const struct pooling *p, size_t *n, struct err *e)
{
	struct json_slice v;
	int64_t wanted = DIMENSIONS;

	if (json_member(p->body, "dimensions", &v) && v.kind != JSON_NULL &&
	    (!json_to_i64(v, &wanted) || wanted < 1 || wanted > DIMENSIONS_MAX))
		return refused("dimensions", "an integer from 1 to 65536", e);
	*n = (size_t)wanted;
	return 0;
}

/* The vectors in the form that encoding_format names. */
static int vectors_answer(struct pooling *p, const char *object, const char *member,
			  const char **type, struct err *e)
{
	struct sim_stream *t = &p->conn->stream;
	struct json_slice v;
	struct str format = STR("float");
	size_t n = 0;

	if (dimensions_read(p, &n, e) < 0)
		return -1;
	if (json_member(p->body, "encoding_format", &v) && v.kind == JSON_STRING)
		format = v.raw;
	*type = "application/json";
	if (str_is(format, "bytes") || str_is(format, "bytes_only")) {
		*type = "application/octet-stream";
		for (size_t i = 0; i < p->n; i++)
			bytes_write(p->input[i].key, n, &t->body);
		if (str_is(format, "bytes"))
			metadata_write(p, n, &t->extra);
		return 0;
	}
	if (!str_is(format, "float") && !str_is(format, "base64"))
		return refused("encoding_format", "float, base64, bytes or bytes_only", e);
	vectors_write(p, object, member, n, str_is(format, "base64"), &t->body);
	return 0;
}

static void vectors_serve(struct conn *c, struct str body, const char *object, const char *member)
{
	struct pooling p;
	struct json_slice v;
	struct err e = { 0 };
	const char *type = NULL;
	int rc;

	if (!pool_open(&p, c, body))
		return;
	if (json_member(p.body, "messages", &v))
		rc = chat_put(&p, "messages", v, &e);
	else if (json_member(p.body, "input", &v))
		rc = inputs_read(&p, "input", v, false, &e);
	else if (json_member(p.body, "data", &v))
		rc = input_put(&p, v.raw, 1, v.raw, &e);
	else
		rc = err_set(&e, ERR_USAGE, "input is missing");
	if (rc < 0 || vectors_answer(&p, object, member, &type, &e) < 0)
		pool_refuse(&p, &e);
	else
		pool_send(&p, type);
}

void pool_embed(struct conn *c, struct str body)
{
	vectors_serve(c, body, "embedding", "embedding");
}

void pool_pool(struct conn *c, struct str body)
{
	vectors_serve(c, body, "pooling", "data");
}

/* ---- pairs ---- */

/* A text, or an object with one, or a list of either. */
static int texts_read(struct pooling *p, const char *name, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice item, text;
	struct str key;

	if (v.kind == JSON_STRING)
		return text_put(p, v, e);
	if (v.kind == JSON_OBJECT)
		return json_member(v, "text", &text) && text.kind == JSON_STRING ?
		       text_put(p, text, e) : input_put(p, v.raw, 1, v.raw, e);
	if (v.kind != JSON_ARRAY)
		return refused(name, "a text or a list of texts", e);
	while (json_each(&it, &key, &item) > 0) {
		if (item.kind == JSON_ARRAY)
			return refused(name, "a text or a list of texts", e);
		if (texts_read(p, name, item, e) < 0)
			return -1;
	}
	return 0;
}

/* Reads both sides into p; *left of the inputs are the first side. */
static int pairs_read(struct pooling *p, const char *const names[2], size_t *left, struct err *e)
{
	struct json_slice v;

	for (int i = 0; i < 2; i++) {
		if (!json_member(p->body, names[i], &v))
			return err_set(e, ERR_USAGE, "%s is missing", names[i]);
		if (texts_read(p, names[i], v, e) < 0)
			return -1;
		if (p->n == (i ? *left : 0))
			return err_set(e, ERR_USAGE, "%s must not be empty", names[i]);
		if (i == 0)
			*left = p->n;
	}
	if (*left > 1 && p->n != 2 * *left)
		return err_set(e, ERR_USAGE, "%s and %s must be as many", names[0], names[1]);
	/* Both texts of every pair are read by the model. */
	p->tokens = 0;
	for (size_t i = *left; i < p->n; i++)
		p->tokens += p->input[i].tokens + p->input[*left > 1 ? i - *left : 0].tokens;
	return 0;
}

struct ranked {
	size_t index;
	double score;
};

static double score_of(const struct pooling *p, size_t left, size_t i)
{
	uint64_t pair = p->input[left > 1 ? i : 0].key ^ words_mix(p->input[left + i].key);

	return (double)(words_mix(pair) >> 40) / 16777216.0;
}

static int by_score(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void ranking_write(struct pooling *p, int64_t top, struct buf *out)
{
	size_t n = p->n - 1;
	struct ranked *rank = mem_array(n, sizeof(*rank));

	for (size_t i = 0; i < n; i++)
		rank[i] = (struct ranked){ i, score_of(p, 1, i) };
	qsort(rank, n, sizeof(*rank), by_score);
	id_write(p, "rerank-", out);
	model_write(p, out);
	usage_write(p, true, out);
	buf_add_text(out, ",\"results\":[");
	for (size_t i = 0; i < n && (top <= 0 || (int64_t)i < top); i++) {
		buf_printf(out, "%s{\"index\":%zu,\"document\":{\"text\":\"", i ? "," : "",
			   rank[i].index);
		buf_add_str(out, p->input[1 + rank[i].index].raw);
		buf_printf(out, "\"},\"relevance_score\":%.9g}", rank[i].score);
	}
	buf_add_text(out, "]}");
	free(rank);
}

void pool_rerank(struct conn *c, struct str body)
{
	static const char *const names[2] = { "query", "documents" };
	struct pooling p;
	struct json_slice v;
	struct err e = { 0 };
	int64_t top = 0;
	size_t left = 0;

	if (!pool_open(&p, c, body))
		return;
	if (pairs_read(&p, names, &left, &e) < 0) {
		pool_refuse(&p, &e);
		return;
	}
	if (json_member(p.body, "top_n", &v))
		json_to_i64(v, &top);
	ranking_write(&p, top, &c->stream.body);
	pool_send(&p, "application/json");
}

static void scores_write(struct pooling *p, size_t left, struct buf *out)
{
	list_begin(p, "embd-", out);
	for (size_t i = 0; i < p->n - left; i++)
		buf_printf(out, "%s{\"index\":%zu,\"object\":\"score\",\"score\":%.9g}",
			   i ? "," : "", i, score_of(p, left, i));
	buf_add_char(out, ']');
	usage_write(p, false, out);
	buf_add_char(out, '}');
}

void pool_score(struct conn *c, struct str body)
{
	static const char *const names[][2] = {
		{ "text_1", "text_2" }, { "queries", "documents" }, { "queries", "items" },
		{ "data_1", "data_2" },
	};
	struct pooling p;
	struct json_slice v;
	struct err e = { 0 };
	size_t left = 0, which = 0;

	if (!pool_open(&p, c, body))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (json_member(p.body, names[i][1], &v))
			which = i;
	if (pairs_read(&p, names[which], &left, &e) < 0) {
		pool_refuse(&p, &e);
		return;
	}
	scores_write(&p, left, &c->stream.body);
	pool_send(&p, "application/json");
}
