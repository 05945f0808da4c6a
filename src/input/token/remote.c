/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - see remote.h.
 */
#include "input/token/remote.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"

#define TIMEOUT_MS 60000
#define PARALLEL 64
#define HOLE_IDS 16 /* ids in a row that may be missing below the highest */

struct remote_kept {
	bool is_set;
	uint8_t key[DIGEST_BYTES];
	struct ids ids;
};

struct token_remote {
	struct token_server server;
	char *base_url, *model, *ca_file, *unix_socket;
	const char **header;
	size_t vocab_size, id_limit, special_count;
	pthread_mutex_t lock; /* of kept */
	struct remote_kept kept[TOKEN_REMOTE_TEXTS_MAX];
};

/* ---- requests and answers ---- */

static struct json_writer begin_body(struct buf *body, const char *model)
{
	struct json_writer w;

	buf_reset(body);
	w = json_writer(body);
	json_begin_object(&w);
	json_member_text(&w, "model", model);
	return w;
}

static void tokenize_body(struct buf *body, const char *model, struct str text, bool add_special)
{
	struct json_writer w = begin_body(body, model);

	json_member_str(&w, "prompt", text);
	json_member_bool(&w, "add_special_tokens", add_special);
	json_end_object(&w);
}

static void detokenize_body(struct buf *body, const char *model, const uint32_t *ids, size_t n)
{
	struct json_writer w = begin_body(body, model);

	json_member_array(&w, "tokens");
	for (size_t i = 0; i < n; i++)
		json_put_int(&w, ids[i]);
	json_end_array(&w);
	json_end_object(&w);
}

static int read_object(const struct fetch_reply *reply, const char *key, enum json_kind kind,
	struct json_slice *out, struct err *e)
{
	struct json_scan scan = { buf_str(&reply->body), 0 };
	struct json_slice object;

	if (reply->status != 200)
		return err_set(e, ERR_NET, "HTTP status %ld", reply->status);
	if (json_next(&scan, &object, e) < 0 || !json_at_end(&scan))
		return err_set(e, ERR_NET, "the answer is not JSON");
	if (!json_member(object, key, out) || out->kind != kind)
		return err_set(e, ERR_NET, "the answer has no \"%s\"", key);
	return 0;
}

/* Appends the "tokens" of an answer; out is unchanged on failure. */
static int read_ids(const struct fetch_reply *reply, struct ids *out, struct err *e)
{
	const size_t before = out->count;
	struct json_slice tokens, item;
	struct json_iter it;
	struct str key;

	if (read_object(reply, "tokens", JSON_ARRAY, &tokens, e))
		return -1;
	it = json_iter(tokens);
	while (json_each(&it, &key, &item) > 0) {
		int64_t id;

		if (item.kind != JSON_INT || !json_to_i64(item, &id) || id < 0 ||
			id >= TOKEN_ID_MAX) {
			out->count = before;
			return err_set(e, ERR_NET, "the answer's \"tokens\" are not token ids");
		}
		ids_push(out, (uint32_t)id);
	}
	return 0;
}

static int read_text(const struct fetch_reply *reply, struct buf *out, struct err *e)
{
	struct json_slice prompt;

	if (read_object(reply, "prompt", JSON_STRING, &prompt, e))
		return -1;
	json_unescape(out, prompt.raw);
	return 0;
}

/* One request; body NULL: GET. The error names the URL. */
static int ask(const struct token_server *s, const char *path, const struct buf *body,
	struct fetch_reply *reply, struct err *e)
{
	struct fetch_opts opts = s->fetch;
	struct str text = body ? buf_str(body) : STR("");
	struct buf url = { 0 };
	int rc;

	if (!opts.timeout_ms || opts.timeout_ms > TIMEOUT_MS)
		opts.timeout_ms = TIMEOUT_MS;
	buf_printf(&url, "%s%s", s->base_url, path);
	rc = fetch(url.data, body ? &text : NULL, &opts, reply, e);
	buf_release(&url);
	return rc;
}

static int ask_ids(const struct token_server *s, const struct buf *body, struct ids *out,
	struct err *e)
{
	struct fetch_reply reply = { 0 };
	int rc = ask(s, "/tokenize", body, &reply, e);

	if (rc == 0 && read_ids(&reply, out, e))
		rc = err_wrap(e, "%s/tokenize", s->base_url);
	fetch_reply_release(&reply);
	return rc;
}

int token_server_render_messages(const struct token_server *s, struct str messages,
	struct str tools, struct str kwargs, struct ids *out, struct err *e)
{
	struct buf body = { 0 };
	struct json_writer w = begin_body(&body, s->model);
	int rc;

	json_member_raw(&w, "messages", messages);
	json_member_bool(&w, "add_generation_prompt", true);
	json_member_bool(&w, "add_special_tokens", false);
	if (tools.n)
		json_member_raw(&w, "tools", tools);
	if (kwargs.n)
		json_member_raw(&w, "chat_template_kwargs", kwargs);
	json_end_object(&w);
	rc = ask_ids(s, &body, out, e);
	buf_release(&body);
	return rc;
}

int token_server_render(const struct token_server *s, struct str content, struct str kwargs,
	struct ids *out, struct err *e)
{
	struct buf messages = { 0 };
	int rc;

	buf_add_text(&messages, "[{\"role\": \"user\", \"content\": ");
	json_quote(&messages, content, false);
	buf_add_text(&messages, "}]");
	rc = token_server_render_messages(s, buf_str(&messages), STR(""), kwargs, out, e);
	buf_release(&messages);
	return rc;
}

/* ---- what is kept ---- */

static struct remote_kept *kept_at(struct token_remote *r, const uint8_t key[DIGEST_BYTES])
{
	size_t i = (size_t)key[0] | (size_t)key[1] << 8;

	return &r->kept[i % TOKEN_REMOTE_TEXTS_MAX];
}

static void key_of(struct str text, bool add_special, uint8_t key[DIGEST_BYTES])
{
	digest(DIGEST_SHA256, STR(""), text, key);
	key[DIGEST_BYTES - 1] ^= add_special;
}

static bool kept_get(struct token_remote *r, const uint8_t key[DIGEST_BYTES], struct ids *out)
{
	struct remote_kept *k = kept_at(r, key);
	bool is_there;

	pthread_mutex_lock(&r->lock);
	is_there = k->is_set && memcmp(k->key, key, DIGEST_BYTES) == 0;
	if (is_there)
		ids_add(out, k->ids.id, k->ids.count);
	pthread_mutex_unlock(&r->lock);
	return is_there;
}

static void kept_put(struct token_remote *r, const uint8_t key[DIGEST_BYTES], const uint32_t *id,
	size_t n)
{
	struct remote_kept *k = kept_at(r, key);

	if (n > TOKEN_REMOTE_IDS_MAX)
		return;
	pthread_mutex_lock(&r->lock);
	k->is_set = true;
	memcpy(k->key, key, DIGEST_BYTES);
	ids_reset(&k->ids);
	ids_add(&k->ids, id, n);
	pthread_mutex_unlock(&r->lock);
}

/* ---- texts ---- */

int token_remote_encode(struct token_remote *r, struct str text, bool add_special,
	struct ids *out, struct err *e)
{
	const size_t before = out->count;
	uint8_t key[DIGEST_BYTES];
	struct buf body = { 0 };
	int rc;

	key_of(text, add_special, key);
	if (kept_get(r, key, out))
		return 0;
	tokenize_body(&body, r->model, text, add_special);
	rc = ask_ids(&r->server, &body, out, e);
	if (rc == 0)
		kept_put(r, key, out->id + before, out->count - before);
	buf_release(&body);
	return rc;
}

int token_remote_decode(struct token_remote *r, const uint32_t *ids, size_t n, struct buf *out,
	struct err *e)
{
	struct fetch_reply reply = { 0 };
	struct buf body = { 0 };
	int rc;

	detokenize_body(&body, r->model, ids, n);
	rc = ask(&r->server, "/detokenize", &body, &reply, e);
	if (rc == 0 && read_text(&reply, out, e))
		rc = err_wrap(e, "%s/detokenize", r->base_url);
	fetch_reply_release(&reply);
	buf_release(&body);
	return rc;
}

/* ---- many at once ---- */

struct remote_batch {
	struct token_remote *r;
	const struct str *text;
	bool add_special;
	struct ids *ids; /* or */
	size_t *count;
	size_t *pending; /* texts to ask for */
	size_t n_pending;
	struct buf body;
	struct ids scratch;
	struct err why;  /* of the first text that failed */
	size_t failed;
};

static struct str batch_body(void *self, size_t i)
{
	struct remote_batch *b = self;

	tokenize_body(&b->body, b->r->model, b->text[b->pending[i]], b->add_special);
	return buf_str(&b->body);
}

static void batch_take(struct remote_batch *b, size_t i)
{
	if (b->ids)
		ids_add(b->ids + i, b->scratch.id, b->scratch.count);
	else
		b->count[i] = b->scratch.count;
}

static void batch_done(void *self, size_t at, const struct fetch_reply *reply)
{
	struct remote_batch *b = self;
	const size_t i = b->pending[at];
	uint8_t key[DIGEST_BYTES];
	struct err why = { 0 };
	int rc;

	ids_reset(&b->scratch);
	rc = reply ? read_ids(reply, &b->scratch, &why) : err_set(&why, ERR_NET, "no answer");
	if (rc == 0) {
		key_of(b->text[i], b->add_special, key);
		kept_put(b->r, key, b->scratch.id, b->scratch.count);
		batch_take(b, i);
	} else if (b->why.code == ERR_NONE || i < b->failed) {
		b->why = why;
		b->failed = i;
	}
}

int token_remote_batch(struct token_remote *r, const struct str *text, size_t n,
	bool add_special, struct ids *ids, size_t *count, struct err *e)
{
	struct remote_batch b = { .r = r, .text = text, .add_special = add_special, .ids = ids,
		.count = count, .pending = mem_array(n, sizeof *b.pending) };
	struct fetch_many many = { .parallel = PARALLEL, .body = batch_body, .done = batch_done,
		.self = &b };
	struct fetch_opts opts = r->server.fetch;
	struct buf url = { 0 };
	uint8_t key[DIGEST_BYTES];
	int rc = 0;

	assert(!ids != !count);
	for (size_t i = 0; i < n; i++) {
		ids_reset(&b.scratch);
		key_of(text[i], add_special, key);
		if (kept_get(r, key, &b.scratch))
			batch_take(&b, i);
		else
			b.pending[b.n_pending++] = i;
	}
	many.n = b.n_pending;
	if (!opts.timeout_ms || opts.timeout_ms > TIMEOUT_MS)
		opts.timeout_ms = TIMEOUT_MS;
	buf_printf(&url, "%s/tokenize", r->base_url);
	if (many.n)
		rc = fetch_many(url.data, &many, &opts, e);
	if (rc == 0 && b.why.code != ERR_NONE)
		rc = err_set(e, b.why.code, "text %zu: %s: %s", b.failed, url.data, b.why.text);
	buf_release(&url);
	buf_release(&b.body);
	ids_release(&b.scratch);
	free(b.pending);
	return rc;
}

/* ---- facts ---- */

/* Ids that are requested one by one, several at once: one of them has a text. */
struct window {
	struct token_remote *r;
	uint32_t first;
	struct buf body;
	bool has_text;
};

static struct str window_body(void *self, size_t i)
{
	struct window *w = self;

	detokenize_body(&w->body, w->r->model, (uint32_t[]){ w->first + (uint32_t)i }, 1);
	return buf_str(&w->body);
}

static void window_done(void *self, size_t i, const struct fetch_reply *reply)
{
	struct window *w = self;
	struct buf text = { 0 };

	(void)i;
	if (reply && read_text(reply, &text, NULL) == 0)
		w->has_text |= text.len > 0;
	buf_release(&text);
}

static int has_tokens(struct token_remote *r, uint32_t first, bool *has, struct err *e)
{
	struct window w = { .r = r, .first = first };
	struct fetch_many many = { .n = HOLE_IDS, .parallel = HOLE_IDS, .body = window_body,
		.done = window_done, .self = &w };
	struct fetch_opts opts = r->server.fetch;
	struct buf url = { 0 };
	int rc;

	if (!opts.timeout_ms || opts.timeout_ms > TIMEOUT_MS)
		opts.timeout_ms = TIMEOUT_MS;
	buf_printf(&url, "%s/detokenize", r->base_url);
	rc = fetch_many(url.data, &many, &opts, e);
	*has = w.has_text;
	buf_release(&url);
	buf_release(&w.body);
	return rc;
}

/* The highest id that has a text, plus one. */
static int find_id_limit(struct token_remote *r, struct err *e)
{
	uint32_t there = 0, gone = TOKEN_ID_MAX;
	bool has;

	if (has_tokens(r, 0, &has, e))
		return -1;
	if (!has)
		return err_set(e, ERR_NET, "%s/detokenize returns no text for the ids 0 to %d",
			r->base_url, HOLE_IDS - 1);
	while (gone - there > 1) {
		uint32_t middle = there + (gone - there) / 2;

		if (has_tokens(r, middle, &has, e))
			return -1;
		if (has)
			there = middle;
		else
			gone = middle;
	}
	r->id_limit = there + 1;
	return 0;
}

/* V: ids below the run of added tokens at the end, where the server lists those. */
static void find_vocab_size(struct token_remote *r)
{
	struct fetch_reply reply = { 0 };
	struct json_slice added, item;
	struct json_iter it;
	bool *is_added = mem_array(r->id_limit + 1, sizeof *is_added);
	struct str key;

	r->vocab_size = r->id_limit;
	if (ask(&r->server, "/tokenizer_info", NULL, &reply, NULL) == 0 &&
		read_object(&reply, "added_tokens_decoder", JSON_OBJECT, &added, NULL) == 0) {
		it = json_iter(added);
		while (json_each(&it, &key, &item) > 0) {
			uint64_t id;

			if (str_to_u64(key, &id) && id < r->id_limit)
				is_added[id] = true;
		}
		while (r->vocab_size > 0 && is_added[r->vocab_size - 1])
			r->vocab_size--;
	}
	free(is_added);
	fetch_reply_release(&reply);
}

static int find_special_count(struct token_remote *r, struct err *e)
{
	struct ids with = { 0 }, without = { 0 };
	int rc = token_remote_encode(r, STR("a"), true, &with, e);

	if (rc == 0)
		rc = token_remote_encode(r, STR("a"), false, &without, e);
	if (rc == 0 && (without.count == 0 || with.count < without.count))
		rc = err_set(e, ERR_NET, "%s/tokenize gives %zu ids for a letter, %zu with "
			"special tokens", r->base_url, without.count, with.count);
	if (rc == 0)
		r->special_count = with.count - without.count;
	ids_release(&with);
	ids_release(&without);
	return rc;
}

/* ---- life ---- */

struct token_remote *token_remote_new(const struct token_server *s, struct err *e)
{
	struct token_remote *r = mem_alloc(sizeof *r);
	size_t headers = 0;

	while (s->fetch.header && s->fetch.header[headers])
		headers++;
	r->header = mem_array(headers + 1, sizeof *r->header);
	for (size_t i = 0; i < headers; i++)
		r->header[i] = mem_text(s->fetch.header[i]);
	r->base_url = mem_text(s->base_url);
	r->model = mem_text(s->model);
	r->ca_file = mem_text(s->fetch.ca_file);
	r->unix_socket = mem_text(s->fetch.unix_socket);
	r->server = (struct token_server){ .base_url = r->base_url, .model = r->model,
		.fetch = s->fetch };
	r->server.fetch.header = r->header;
	r->server.fetch.ca_file = r->ca_file;
	r->server.fetch.unix_socket = r->unix_socket;
	r->server.fetch.pool = fetch_pool_new();
	pthread_mutex_init(&r->lock, NULL);
	if (find_special_count(r, e) || find_id_limit(r, e)) {
		token_remote_free(r);
		return NULL;
	}
	find_vocab_size(r);
	return r;
}

void token_remote_free(struct token_remote *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < TOKEN_REMOTE_TEXTS_MAX; i++)
		ids_release(&r->kept[i].ids);
	for (size_t i = 0; r->header[i]; i++)
		free((char *)(uintptr_t)r->header[i]);
	free(r->header);
	free(r->base_url);
	free(r->model);
	free(r->ca_file);
	free(r->unix_socket);
	fetch_pool_free(r->server.fetch.pool);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

size_t token_remote_vocab_size(const struct token_remote *r)
{
	return r->vocab_size;
}

size_t token_remote_id_limit(const struct token_remote *r)
{
	return r->id_limit;
}

size_t token_remote_special_per_sequence(const struct token_remote *r)
{
	return r->special_count;
}
