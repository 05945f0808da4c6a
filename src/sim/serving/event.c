/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - see event.h: framing, and code shared by several shapes. */
#include "sim/serving/event.h"

#include <assert.h>
#include <inttypes.h>

void event_prepare(struct event_form *f, const struct event_shape *shape, struct str id,
		   struct str model, int64_t created, struct str prompt)
{
	struct event_form fresh = {
		.shape = shape, .id = id, .model = model, .created = created, .block = -1,
		.choices = 1,
		.head = f->head, .said = f->said, .json = f->json, .frame = f->frame,
	};

	buf_reset(&fresh.head);
	buf_reset(&fresh.said);
	buf_reset(&fresh.json);
	*f = fresh;
	if (shape->prepare)
		shape->prepare(f, prompt);
}

void event_form_release(struct event_form *f)
{
	buf_release(&f->head);
	buf_release(&f->said);
	buf_release(&f->json);
	buf_release(&f->frame);
	*f = (struct event_form){ 0 };
}

/* ---- framing ---- */

/*
 * Slices are collected first, because a chunk's size precedes its bytes; then everything is copied
 * once.
 */
#define PIECES_MAX 10

struct event_pieces {
	struct str piece[PIECES_MAX];
	size_t n, bytes;
};

static void piece_add(struct event_pieces *p, struct str s)
{
	assert(p->n < PIECES_MAX);
	p->piece[p->n++] = s;
	p->bytes += s.n;
}

/* Writes the size of a chunk and makes room for its bytes and end; false if that fails. */
static bool chunk_begin(size_t bytes, struct buf *out)
{
	char size[20];
	size_t at = sizeof(size);
	size_t left = bytes;

	size[--at] = '\n';
	size[--at] = '\r';
	do
		size[--at] = "0123456789abcdef"[left & 15];
	while (left >>= 4);
	if (buf_reserve(out, bytes + sizeof(size) + 2) < 0)
		return false;
	buf_add(out, size + at, sizeof(size) - at);
	return true;
}

static void chunk_write(const struct event_pieces *p, struct buf *out)
{
	if (!chunk_begin(p->bytes, out))
		return;
	for (size_t i = 0; i < p->n; i++)
		buf_add_str(out, p->piece[i]);
	buf_add(out, "\r\n", 2);
}

void event_put(struct event_form *f, const char *name, struct buf *out)
{
	struct str end = f->is_crlf ? STR("\r\n") : STR("\n");
	struct str twice = f->is_crlf ? STR("\r\n\r\n") : STR("\n\n");
	struct str json = buf_str(&f->json);
	struct event_pieces p = { .n = 0 };

	if (f->is_malformed)
		json.n /= 2;
	if (f->is_commented && !f->shape->is_lines) {
		piece_add(&p, STR(": keep-alive"));
		piece_add(&p, twice);
	}
	if (name && !f->shape->is_lines) {
		piece_add(&p, STR("event: "));
		piece_add(&p, str_of(name));
		piece_add(&p, end);
	}
	if (!f->shape->is_lines)
		piece_add(&p, str_of(f->shape->data));
	piece_add(&p, json);
	piece_add(&p, f->shape->is_lines ? end : twice);
	chunk_write(&p, out);
	buf_reset(&f->json);
}

void event_open(struct event_form *f, struct buf *out)
{
	if (f->shape->open)
		f->shape->open(f, out);
}

/* Occurs in no text: JSON escapes control characters. */
#define FRAME_MARK '\1'
#define CHUNK_END 2 /* bytes after those that a chunk's size counts */

/* Spells v with a mark in place of its text, and takes the chunk's size and the mark out. */
static void frame_make(struct event_form *f, const struct event *v)
{
	const char mark[] = { FRAME_MARK };
	struct event marked = *v;
	char *end, *at;

	marked.text = (struct str){ mark, sizeof(mark) };
	buf_reset(&f->frame);
	f->shape->event(f, &marked, &f->frame);
	end = memchr(f->frame.data, '\n', f->frame.len);
	assert(end);
	buf_cut(&f->frame, (size_t)(end + 1 - f->frame.data));
	at = memchr(f->frame.data, FRAME_MARK, f->frame.len);
	assert(at > f->frame.data);
	f->frame_at = (size_t)(at - f->frame.data);
	f->frame_part = v->part;
	memmove(at, at + 1, --f->frame.len - f->frame_at);
}

static bool is_framed(const struct event_form *f, const struct event *v)
{
	return f->shape->is_uniform && f->choices == 1 && !f->has_usage_always &&
	       (v->part == EVENT_TEXT || v->part == EVENT_REASONING) && !v->finish_reason &&
	       v->stop_reason.n == 0 && !v->is_malformed;
}

static void frame_write(const struct event_form *f, struct str text, struct buf *out)
{
	const char *frame = f->frame.data;

	if (!chunk_begin(f->frame.len - CHUNK_END + text.n, out))
		return;
	buf_add(out, frame, f->frame_at);
	buf_add_str(out, text);
	buf_add(out, frame + f->frame_at, f->frame.len - f->frame_at);
}

void event_write(struct event_form *f, const struct event *v, struct buf *out)
{
	if (is_framed(f, v)) {
		if (f->frame_at == 0 || f->frame_part != v->part)
			frame_make(f, v);
		frame_write(f, v->text, out);
		return;
	}
	f->is_malformed = v->is_malformed;
	f->shape->event(f, v, out);
	f->is_malformed = false;
}

static void done_put(struct event_form *f, struct buf *out)
{
	if (!f->shape->has_done || f->is_without_done)
		return;
	buf_add_text(&f->json, "[DONE]");
	event_put(f, NULL, out);
}

void event_close(struct event_form *f, const struct event_ending *v, struct buf *out)
{
	if (f->shape->close)
		f->shape->close(f, v, out);
	done_put(f, out);
}

void event_error(struct event_form *f, const char *message, struct buf *out)
{
	f->shape->error(f, message, out);
	done_put(f, out);
}

struct str event_whole(struct event_form *f, const struct event_ending *v)
{
	buf_reset(&f->json);
	f->shape->whole(f, v);
	return buf_str(&f->json);
}

/* ---- shared spellings ---- */

void event_key(struct buf *json, const char *key)
{
	char last = json->len ? json->data[json->len - 1] : '{';

	if (last != '{' && last != '[')
		buf_add_char(json, ',');
	buf_add_char(json, '"');
	buf_add_text(json, key);
	buf_add_text(json, "\":");
}

void event_text(struct buf *json, const char *key, struct str escaped)
{
	event_key(json, key);
	buf_add_char(json, '"');
	buf_add_str(json, escaped);
	buf_add_char(json, '"');
}

void event_number(struct buf *json, const char *key, int64_t v)
{
	char text[20];
	size_t at = sizeof(text);
	uint64_t left = (uint64_t)v;

	assert(v >= 0);
	event_key(json, key);
	do
		text[--at] = (char)('0' + left % 10);
	while (left /= 10);
	buf_add(json, text + at, sizeof(text) - at);
}

void event_usage(const struct event_form *f, uint32_t output_tokens, struct buf *json)
{
	buf_add_char(json, '{');
	event_number(json, "prompt_tokens", f->prompt_tokens);
	event_number(json, "total_tokens", (int64_t)f->prompt_tokens + output_tokens);
	event_number(json, "completion_tokens", output_tokens);
	if (f->has_cached)
		buf_printf(json, ",\"prompt_tokens_details\":{\"cached_tokens\":%" PRIu32 "}",
			   f->cached_tokens);
	buf_add_char(json, '}');
}

void event_error_openai(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_text(&f->json, "{\"error\":{\"message\":\"");
	buf_add_text(&f->json, message);
	buf_add_text(&f->json, "\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}");
	event_put(f, NULL, out);
}
