/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - see script.h. */
#include "sim/script.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void script_reset(struct script *s)
{
	struct script fresh = { .text = s->text, .ids = s->ids, .end = s->end,
				.end_cap = s->end_cap, .part = s->part };

	buf_reset(&fresh.text);
	ids_reset(&fresh.ids);
	*s = fresh;
}

void script_release(struct script *s)
{
	buf_release(&s->text);
	ids_release(&s->ids);
	free(s->end);
	free(s->part);
	*s = (struct script){ 0 };
}

/* The latest end of a character at or before at. */
static size_t char_end(struct str text, size_t at)
{
	while (at && at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80)
		at--;
	return at;
}

/* Where the tokens from first on end, which make up the text from byte from on. */
static void ends_find(struct script *s, const struct tokenizer *t, size_t first, size_t from)
{
	struct str all = buf_str(&s->text);
	size_t n = s->ids.count - first, at = from;
	struct buf piece = { 0 };

	for (size_t i = 0; i < n; i++) {
		buf_reset(&piece);
		tokenizer_decode_bytes(t, &s->ids.id[first + i], 1, false, &piece);
		at += piece.len;
		s->end[first + i] = at;
	}
	/* A tokenizer that changes what it reads: even shares are as good as any. */
	for (size_t i = 0; at != all.n && i < n; i++)
		s->end[first + i] = from + (all.n - from) * (i + 1) / n;
	for (size_t i = 0; i < n; i++)
		s->end[first + i] = char_end(all, s->end[first + i]);
	buf_release(&piece);
}

int script_add(struct script *s, const struct tokenizer *t, enum script_kind kind, struct str text,
	       struct str name, struct err *e)
{
	size_t first = s->ids.count, from = s->text.len;
	struct script_part *p;

	assert(s->parts < SCRIPT_PARTS_MAX);
	if (!s->part)
		s->part = mem_array(SCRIPT_PARTS_MAX, sizeof(*s->part));
	p = &s->part[s->parts];
	buf_add_str(&s->text, text);
	if (tokenizer_encode(t, text, false, &s->ids) < 0 || s->text.is_over)
		return err_set(e, ERR_RUN, "the answer cannot be tokenized");
	if (s->ids.count == first)
		return 0;
	if (s->ids.count > s->end_cap) {
		s->end_cap = s->ids.count * 2;
		s->end = mem_grow(s->end, s->end_cap, sizeof(*s->end));
	}
	ends_find(s, t, first, from);
	*p = (struct script_part){ .kind = kind, .token_end = (uint32_t)s->ids.count };
	if (kind == SCRIPT_CALL) {
		assert(name.p >= text.p && name.p + name.n <= text.p + text.n);
		p->name_at = from + (size_t)(name.p - text.p);
		p->name_n = name.n;
		s->calls++;
	}
	p->call = s->calls ? s->calls - 1 : 0;
	s->parts++;
	return 0;
}

struct str script_token(const struct script *s, uint32_t i)
{
	size_t from = i ? s->end[i - 1] : 0;

	assert(i < s->ids.count);
	return (struct str){ s->text.data + from, s->end[i] - from };
}

const struct script_part *script_part_of(const struct script *s, uint32_t i)
{
	const struct script_part *p = s->part;

	assert(i < s->ids.count);
	while (i >= p->token_end)
		p++;
	return p;
}

uint32_t script_calls(const struct script *s, uint32_t tokens, uint32_t *malformed)
{
	uint32_t calls = 0;

	*malformed = 0;
	for (uint32_t i = 0; i < s->parts; i++) {
		const struct script_part *p = &s->part[i];

		if (p->kind != SCRIPT_CALL || p->token_end > tokens)
			continue;
		calls++;
		*malformed += p->is_malformed;
	}
	return calls;
}
