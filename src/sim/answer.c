/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the JSON body of an answer that is not streamed, member for member as vLLM's. */
#include <inttypes.h>

#include "json/write.h"
#include "sim/server.h"

/* Tokens from..to as a JSON string, clipped at the answer's cut. Returns where the text is now. */
static size_t text_write(struct sim *s, const struct stream *t, uint32_t from, uint32_t to,
			 size_t at, struct buf *out)
{
	buf_add_char(out, '"');
	for (uint32_t i = from; i < to && at < t->cut; i++) {
		const struct word *w = words_at(&s->words, t->key, i);
		size_t n = w->n < t->cut - at ? w->n : t->cut - at;

		buf_add(out, w->text, n);
		at += n;
	}
	buf_add_char(out, '"');
	return at;
}

static void choice_write(struct sim *s, const struct stream *t, struct buf *out)
{
	size_t at = 0;

	if (!t->form.is_chat) {
		buf_add_text(out, "{\"index\":0,\"text\":");
		text_write(s, t, 0, t->total, 0, out);
		return;
	}
	buf_add_text(out, "{\"index\":0,\"message\":{\"role\":\"assistant\","
		     "\"reasoning_content\":");
	if (t->reasoning)
		at = text_write(s, t, 0, t->reasoning, 0, out);
	else
		buf_add_text(out, "null");
	buf_add_text(out, ",\"content\":");
	if (t->reasoning < t->total)
		text_write(s, t, t->reasoning, t->total, at, out);
	else
		buf_add_text(out, "null");
	buf_add_text(out, ",\"tool_calls\":[]}");
}

void answer_write(struct sim *s, const struct stream *t, struct buf *out)
{
	buf_add_text(out, "{\"id\":");
	json_quote(out, buf_str(&t->id), true);
	buf_printf(out, ",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
		   t->form.is_chat ? "chat.completion" : "text_completion", t->created);
	json_quote(out, str_of(route_model(s)), true);
	buf_add_text(out, ",\"choices\":[");
	choice_write(s, t, out);
	buf_printf(out, ",\"logprobs\":null,\"finish_reason\":\"%s\",\"stop_reason\":",
		   counters_finish_name(t->finish));
	if (t->stop_reason.len)
		json_quote(out, buf_str(&t->stop_reason), true);
	else
		buf_add_text(out, "null");
	buf_add_text(out, "}]");
	if (!t->fault.is_without_usage) {
		buf_add_text(out, ",\"usage\":");
		event_usage(t->form.prompt_tokens, t->total, out);
	}
	buf_add_char(out, '}');
}
