/* SPDX-License-Identifier: Apache-2.0 */
/* trace_content.c - see trace_content.h. */
#include "data/trace_content.h"

#include "json/write.h"
#include "token/tokenizer.h"

bool trace_has_content(const struct trace_row *row)
{
	return row->text.raw.p || row->messages.raw.p || row->payload.raw.p;
}

static struct str text_in(struct json_slice v, struct arena *a)
{
	struct buf text = { 0 };
	struct str out;

	json_unescape(&text, v.raw);
	out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Spelled as a body has it. */
static struct str json_in(struct json_slice v, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct str out;

	json_put_foreign(&w, v.raw);
	out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static uint32_t count(const struct dataset_env *env, struct str text)
{
	size_t n = env->tokenizer ? tokenizer_count(env->tokenizer, text, true) : 1;

	return n < UINT32_MAX ? (uint32_t)n : 0;
}

/* The bare texts of messages: what a client can count without the template. */
static struct str texts_of(struct json_slice messages, struct arena *a)
{
	struct json_iter it = json_iter(messages);
	struct json_slice message, content;
	struct buf text = { 0 };
	struct str key, out;

	while (json_each(&it, &key, &message) == 1) {
		if (!json_member(message, "content", &content) || content.kind != JSON_STRING)
			continue;
		if (text.len)
			buf_add_char(&text, '\n');
		json_unescape(&text, content.raw);
	}
	out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static int take_messages(const struct dataset_env *env, struct json_slice messages,
			 struct arena *a, struct sample *out)
{
	if (!env->is_chat_backend && env->backend)
		return -1;
	out->messages = json_in(messages, a);
	out->prompt = texts_of(messages, a);
	out->kind = PROMPT_TEXT;
	out->prompt_len = count(env, out->prompt);
	return 0;
}

int trace_content_take(const struct trace_source *s, const struct trace_row *row,
		       const struct dataset_env *env, struct arena *a, struct sample *out,
		       struct err *e)
{
	struct json_slice messages = row->messages, text = row->text;

	if (row->payload.raw.p) {
		json_member(row->payload, "messages", &messages);
		json_member(row->payload, "prompt", &text);
	}
	if (messages.raw.p && messages.kind == JSON_ARRAY) {
		if (take_messages(env, messages, a, out) == 0)
			return 0;
		return trace_refuse(s, row->name, e, "the row has messages, which --backend %s does not "
				    "take; openai-chat does", env->backend);
	}
	if (!text.raw.p || text.kind != JSON_STRING)
		return trace_refuse(s, row->name, e, "\"payload\" must have messages, or a prompt that is "
				    "a text");
	out->prompt = text_in(text, a);
	out->kind = PROMPT_TEXT;
	out->prompt_len = count(env, out->prompt);
	return 0;
}

/* ---- keys of the body ---- */

static void put_members(struct json_writer *w, struct json_slice object, const char *const *but)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;

	while (json_each(&it, &key, &v) == 1) {
		const char *const *left_out = but;

		while (*left_out && !str_is(key, *left_out))
			left_out++;
		if (*left_out)
			continue;
		json_key_str(w, key);
		if (v.kind == JSON_STRING) {
			struct buf text = { 0 };

			json_unescape(&text, v.raw);
			json_put_str(w, buf_str(&text));
			buf_release(&text);
		} else {
			json_put_foreign(w, v.raw);
		}
	}
}

void trace_content_overrides(const struct trace_row *row, bool is_min, int64_t output,
			     struct buf *out)
{
	/* What the run itself decides, and what the sample holds already. */
	static const char *const ours[] = { "model", "stream", "stream_options", "messages", "prompt",
					    NULL };
	static const char *const none[] = { NULL };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	if (is_min)
		json_member_int(&w, "min_tokens", output);
	if (row->tools.raw.p)
		json_member_foreign(&w, "tools", row->tools.raw);
	if (row->extra.raw.p)
		put_members(&w, row->extra, none);
	if (row->payload.raw.p)
		put_members(&w, row->payload, ours);
	json_end_object(&w);
	if (out->len == 2)
		buf_reset(out);
}
