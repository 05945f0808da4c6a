/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - see event.h. An event is collected as slices first, because the
 * chunk's size stands in front of its bytes; then everything is copied once.
 */
#include "sim/event.h"

#include <assert.h>
#include <inttypes.h>

#include "json/write.h"

#define PIECES_MAX 16

struct pieces {
	struct str piece[PIECES_MAX];
	size_t n, bytes;
};

static void piece_add(struct pieces *p, struct str s)
{
	assert(p->n < PIECES_MAX);
	p->piece[p->n++] = s;
	p->bytes += s.n;
}

static void pieces_write(const struct pieces *p, struct buf *out)
{
	char size[20];
	size_t at = sizeof(size);
	size_t left = p->bytes;

	size[--at] = '\n';
	size[--at] = '\r';
	do
		size[--at] = "0123456789abcdef"[left & 15];
	while (left >>= 4);
	if (buf_reserve(out, p->bytes + sizeof(size)) < 0)
		return;
	buf_add(out, size + at, sizeof(size) - at);
	for (size_t i = 0; i < p->n; i++)
		buf_add_str(out, p->piece[i]);
	buf_add(out, "\r\n", 2);
}

void event_prepare(struct event_form *f, bool is_chat, struct str id, struct str model,
		   int64_t created)
{
	f->is_chat = is_chat;
	buf_reset(&f->head);
	buf_add_text(&f->head, "data: {\"id\":");
	json_quote(&f->head, id, true);
	buf_printf(&f->head, ",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
		   is_chat ? "chat.completion.chunk" : "text_completion", created);
	json_quote(&f->head, model, true);
	buf_add_text(&f->head, ",\"choices\":[");
}

static struct str event_open(const struct event_form *f, enum event_part part)
{
	if (!f->is_chat)
		return STR("{\"index\":0,\"text\":\"");
	switch (part) {
	case EVENT_ROLE:
		return STR("{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"");
	case EVENT_REASONING:
		return STR("{\"index\":0,\"delta\":{\"reasoning_content\":\"");
	case EVENT_TEXT:
		break;
	}
	return STR("{\"index\":0,\"delta\":{\"content\":\"");
}

static struct str line_end(const struct event_form *f)
{
	return f->is_crlf ? STR("\r\n\r\n") : STR("\n\n");
}

static void pieces_start(struct pieces *p, const struct event_form *f)
{
	if (!f->is_commented)
		return;
	piece_add(p, STR(": keep-alive"));
	piece_add(p, line_end(f));
}

/* What closes the choice when it is the last one; stop and usage go to spare. */
static void pieces_finish(struct pieces *p, const struct event_form *f, const struct event *v,
			  struct buf *spare)
{
	buf_printf(spare, "\"%s\",\"stop_reason\":", v->finish_reason);
	if (v->stop_reason.n)
		json_quote(spare, v->stop_reason, true);
	else
		buf_add_text(spare, "null");
	piece_add(p, f->is_chat ? STR("\"},\"logprobs\":null,\"finish_reason\":") :
		     STR("\",\"logprobs\":null,\"finish_reason\":"));
	piece_add(p, buf_str(spare));
}

void event_write(const struct event_form *f, const struct event *v, struct buf *out)
{
	struct pieces p = { 0 };
	struct buf finish = { 0 }, usage = { 0 };

	pieces_start(&p, f);
	piece_add(&p, buf_str(&f->head));
	piece_add(&p, event_open(f, v->part));
	piece_add(&p, v->text);
	if (v->is_malformed) {
		piece_add(&p, line_end(f));
		pieces_write(&p, out);
		return;
	}
	if (v->finish_reason)
		pieces_finish(&p, f, v, &finish);
	else if (f->is_chat)
		piece_add(&p, STR("\"},\"logprobs\":null,\"finish_reason\":null"));
	else
		piece_add(&p, STR("\",\"logprobs\":null,\"finish_reason\":null,"
				  "\"stop_reason\":null"));
	if (f->has_usage_always) {
		event_usage(f->prompt_tokens, v->output_tokens, &usage);
		piece_add(&p, STR("}],\"usage\":"));
		piece_add(&p, buf_str(&usage));
		piece_add(&p, STR("}"));
	} else {
		piece_add(&p, f->is_chat ? STR("}]}") : STR("}],\"usage\":null}"));
	}
	piece_add(&p, line_end(f));
	pieces_write(&p, out);
	buf_release(&finish);
	buf_release(&usage);
}

void event_usage(uint32_t prompt_tokens, uint32_t output_tokens, struct buf *out)
{
	buf_printf(out, "{\"prompt_tokens\":%" PRIu32 ",\"total_tokens\":%" PRIu64
		   ",\"completion_tokens\":%" PRIu32 "}", prompt_tokens,
		   (uint64_t)prompt_tokens + output_tokens, output_tokens);
}

void event_write_usage(const struct event_form *f, uint32_t output_tokens, struct buf *out)
{
	struct pieces p = { 0 };
	struct buf usage = { 0 };

	event_usage(f->prompt_tokens, output_tokens, &usage);
	pieces_start(&p, f);
	piece_add(&p, buf_str(&f->head));
	piece_add(&p, STR("],\"usage\":"));
	piece_add(&p, buf_str(&usage));
	piece_add(&p, STR("}"));
	piece_add(&p, line_end(f));
	pieces_write(&p, out);
	buf_release(&usage);
}

void event_write_error(const struct event_form *f, const char *message, struct buf *out)
{
	struct pieces p = { 0 };

	pieces_start(&p, f);
	piece_add(&p, STR("data: {\"error\":{\"message\":\""));
	piece_add(&p, str_of(message));
	piece_add(&p, STR("\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}"));
	piece_add(&p, line_end(f));
	pieces_write(&p, out);
}

void event_write_done(const struct event_form *f, struct buf *out)
{
	struct pieces p = { 0 };

	pieces_start(&p, f);
	piece_add(&p, STR("data: [DONE]"));
	piece_add(&p, line_end(f));
	pieces_write(&p, out);
}

void event_form_release(struct event_form *f)
{
	buf_release(&f->head);
	*f = (struct event_form){ 0 };
}
