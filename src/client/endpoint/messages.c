/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - a sample as chat messages, for chat and for embeddings of chats; serve spec 3.6. */
#include "client/endpoint/openai.h"
#include "core/json/write.h"

/* Predicates for the elements of a prompt that is a JSON list. */
static bool is_message(struct json_slice item)
{
	struct json_slice member;

	return json_member(item, "role", &member) && member.kind == JSON_STRING &&
	       json_member(item, "content", &member) &&
	       (member.kind == JSON_STRING || member.kind == JSON_ARRAY);
}

static bool is_part(struct json_slice item)
{
	struct json_slice member;

	return json_member(item, "type", &member) && member.kind == JSON_STRING;
}

/* A non-empty JSON array whose elements all satisfy the predicate. */
static bool is_list_of(const struct sample *s, bool (*is_one)(struct json_slice item))
{
	struct json_scan scan = { s->prompt, 0 };
	struct json_slice all, item;
	struct json_iter it;
	struct str key;
	bool has_items = false;

	if (s->kind != PROMPT_JSON || json_next(&scan, &all, NULL) < 0 || all.kind != JSON_ARRAY)
		return false;
	it = json_iter(all);
	while (json_each(&it, &key, &item) == 1) {
		if (!is_one(item))
			return false;
		has_items = true;
	}
	return has_items;
}

/* The text between the brackets of a JSON list. */
static struct str list_items(struct str list)
{
	list = str_trim(list);
	return str_trim((struct str){ list.p + 1, list.n - 2 });
}

static void add_text(const struct sample *s, struct buf *out)
{
	if (is_list_of(s, is_part)) {
		buf_add_str(out, list_items(s->prompt)); /* content parts, ready made */
		return;
	}
	buf_add_text(out, "{\"type\": \"text\", \"text\": ");
	if (s->kind == PROMPT_JSON)
		buf_add_str(out, s->prompt); /* for example ids: the server must refuse them */
	else
		json_quote(out, s->prompt, false);
	buf_add_char(out, '}');
}

void openai_user_message(const struct sample *s, bool is_media_first, struct buf *out)
{
	struct str media = s->media.n ? list_items(s->media) : (struct str){ 0 };

	if (is_list_of(s, is_message)) {
		buf_add_str(out, s->prompt);
		return;
	}
	buf_add_text(out, "[{\"role\": \"user\", \"content\": [");
	if (media.n && is_media_first) {
		buf_add_str(out, media);
		buf_add_text(out, ", ");
	}
	add_text(s, out);
	if (media.n && !is_media_first) {
		buf_add_text(out, ", ");
		buf_add_str(out, media);
	}
	buf_add_text(out, "]}]");
}

void openai_messages(const struct sample *s, struct buf *out)
{
	if (s->messages.n)
		buf_add_str(out, s->messages);
	else
		openai_user_message(s, false, out);
}
