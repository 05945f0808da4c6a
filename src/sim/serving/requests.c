/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - see worker_internal.h: the requests of a question. */
#include "sim/serving/worker_internal.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "sim/serving/ask.h"

void requests_release(struct requests *r)
{
	free(r->request);
	free(r->media);
	buf_release(&r->text);
	ids_release(&r->given);
	ids_release(&r->tokens);
	*r = (struct requests){ 0 };
}

static void requests_forget(struct requests *r)
{
	r->n = r->media_n = 0;
	buf_reset(&r->text);
	ids_reset(&r->given);
	ids_reset(&r->tokens);
}

static int wrong(const struct requests *r, const char *what, struct err *e)
{
	return err_set(e, ERR_PARSE, "requests[%zu]: %s", r->n, what);
}

/* ---- reading ---- */

static int ids_read(struct requests *r, struct request *q, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;
	int64_t id;

	q->kind = REQUEST_IDS;
	q->at = r->given.count;
	while (json_each(&it, &key, &item) > 0) {
		if (item.kind != JSON_INT || !json_to_i64(item, &id) || id < 0 || id > UINT32_MAX)
			return wrong(r, "prompt: expected token ids from 0 on", e);
		ids_push(&r->given, (uint32_t)id);
	}
	q->n = r->given.count - q->at;
	return 0;
}

static void media_add(struct requests *r, struct request *q, struct json_slice part)
{
	struct media_item item;

	if (!media_read(part, &item))
		return;
	if (r->media_n == r->media_cap) {
		r->media_cap = r->media_cap ? r->media_cap * 2 : 64;
		r->media = mem_grow(r->media, r->media_cap, sizeof(*r->media));
	}
	r->media[r->media_n++] = item;
	q->media_n++;
}

static void parts_read(struct requests *r, struct request *q, struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice part;
	struct str key;

	while (list.kind == JSON_ARRAY && json_each(&it, &key, &part) > 0)
		media_add(r, q, part);
}

/* The chat template's text of them, and the media among their parts. */
static int messages_read(struct requests *r, struct request *q, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	struct json_slice message, content;
	struct buf text = { 0 };
	struct str key;
	int rc = ask_messages(&text, "messages", v, e);

	q->kind = REQUEST_MESSAGES;
	q->at = r->text.len;
	q->n = text.len;
	buf_add_str(&r->text, buf_str(&text));
	buf_release(&text);
	if (rc < 0)
		return -1;
	while (json_each(&it, &key, &message) > 0)
		if (json_member(message, "content", &content))
			parts_read(r, q, content);
	return 0;
}

static int prompt_read(struct requests *r, struct request *q, struct json_slice v, struct err *e)
{
	struct json_slice prompt;

	if (json_member(v, "messages", &prompt) && prompt.kind == JSON_ARRAY)
		return messages_read(r, q, prompt, e);
	if (!json_member(v, "prompt", &prompt))
		return wrong(r, "neither prompt nor messages", e);
	if (prompt.kind == JSON_ARRAY)
		return ids_read(r, q, prompt, e);
	if (prompt.kind != JSON_STRING)
		return wrong(r, "prompt: expected a text or token ids", e);
	q->kind = REQUEST_TEXT;
	q->at = r->text.len;
	json_unescape(&r->text, prompt.raw);
	q->n = r->text.len - q->at;
	return 0;
}

/* Adapters are identified by a hash of their description; never 0. */
static uint32_t lora_number(struct json_slice lora)
{
	return (uint32_t)map_hash(lora.raw) | 1;
}

static int request_read(struct requests *r, struct json_slice v, struct err *e)
{
	struct request q = { .media_at = r->media_n, .output = -1 };
	struct json_slice member;

	if (v.kind != JSON_OBJECT)
		return wrong(r, "expected an object", e);
	if (prompt_read(r, &q, v, e) < 0)
		return -1;
	if (json_member(v, "media", &member))
		parts_read(r, &q, member);
	if (json_member(v, "output_len", &member) && member.kind != JSON_NULL &&
	    (!json_to_i64(member, &q.output) || q.output < 0 || q.output > LENGTH_TOKENS_MAX))
		return wrong(r, "output_len: expected a number of tokens", e);
	q.has_lora = json_member(v, "lora", &member) && member.kind == JSON_OBJECT;
	if (q.has_lora)
		q.lora = lora_number(member);
	if (json_member(v, "priority", &member) && member.kind != JSON_NULL &&
	    !json_to_i64(member, &q.priority))
		return wrong(r, "priority: expected an integer", e);
	if (r->text.is_over)
		return err_set(e, ERR_LIMIT, "the prompts are longer than BUF_BYTES_MAX");
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 256;
		r->request = mem_grow(r->request, r->cap, sizeof(*r->request));
	}
	r->request[r->n++] = q;
	return 0;
}

int requests_put(struct requests *r, struct json_slice frame, struct err *e)
{
	struct json_slice list, is_first, v;
	struct json_iter it;
	struct str key;

	if (json_member(frame, "is_first", &is_first) && is_first.kind == JSON_TRUE)
		requests_forget(r);
	r->is_counted = false;
	if (!json_member(frame, "requests", &list) || list.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "requests: expected a list");
	it = json_iter(list);
	while (json_each(&it, &key, &v) > 0)
		if (request_read(r, v, e) < 0)
			return -1;
	return 0;
}

/* ---- counting ---- */

/* The chat template's text around one user message. */
#define CHAT_BEFORE STR("<|user|>\n")
#define CHAT_BEHIND STR("\n<|assistant|>\n")

static int encode(struct requests *r, const struct tokenizer *t, struct str text, bool has_special,
		  struct err *e)
{
	if (tokenizer_encode(t, text, has_special, &r->tokens) == 0)
		return 0;
	return tokenizer_refuse(t, text, e);
}

static int count(struct requests *r, const struct tokenizer *t, const struct request *q,
		 struct err *e)
{
	struct str text = { 0 };
	bool is_wrapped = r->is_chat && q->kind != REQUEST_MESSAGES;
	struct buf wrapped = { 0 };
	int rc = 0;

	if (q->kind == REQUEST_IDS) {
		if (is_wrapped)
			rc = encode(r, t, CHAT_BEFORE, false, e);
		if (q->n)
			ids_add(&r->tokens, r->given.id + q->at, q->n);
		return is_wrapped && rc == 0 ? encode(r, t, CHAT_BEHIND, false, e) : rc;
	}
	if (q->n)
		text = (struct str){ r->text.data + q->at, q->n };
	if (!is_wrapped)
		return encode(r, t, text, q->kind == REQUEST_TEXT, e);
	buf_add_str(&wrapped, CHAT_BEFORE);
	buf_add_str(&wrapped, text);
	buf_add_str(&wrapped, CHAT_BEHIND);
	rc = encode(r, t, buf_str(&wrapped), false, e);
	buf_release(&wrapped);
	return rc;
}

/* Equal ids for equal bytes, so that the prefix cache recognises media. */
static void media_ids_add(struct requests *r, const struct media_item *m)
{
	for (uint32_t i = 0; i < m->tokens; i++)
		ids_push(&r->tokens, (uint32_t)(m->key >> 32));
}

int requests_count(struct requests *r, const struct tokenizer *t, bool is_chat, struct err *e)
{
	if (r->is_counted && r->is_chat == is_chat)
		return 0;
	r->is_chat = is_chat;
	ids_reset(&r->tokens);
	for (size_t i = 0; i < r->n; i++) {
		struct request *q = &r->request[i];

		q->tokens_at = r->tokens.count;
		if (count(r, t, q, e) < 0)
			return err_wrap(e, "prompt %zu", i);
		q->text_tokens = (uint32_t)(r->tokens.count - q->tokens_at);
		for (size_t k = 0; k < q->media_n; k++)
			media_ids_add(r, &r->media[q->media_at + k]);
		q->tokens = (uint32_t)(r->tokens.count - q->tokens_at);
		if (q->tokens == 0)
			return err_set(e, ERR_RUN, "prompt %zu: The decoder prompt cannot be empty", i);
	}
	r->is_counted = true;
	return 0;
}
