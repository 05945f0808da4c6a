/* SPDX-License-Identifier: Apache-2.0 */
/*
 * added.c - a byte trie with sibling lists, and a fast search for first bytes.
 */
#include "token/added.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "token/chars.h"

void added_init(struct added_set *s, const struct added_token *token)
{
	*s = (struct added_set){ .token = token, .only_first = -1 };
}

void added_release(struct added_set *s)
{
	if (!s->is_borrowed)
		free(s->node);
	*s = (struct added_set){ 0 };
}

static uint32_t new_node(struct added_set *s, uint8_t byte)
{
	if (s->count == 0)
		s->count = 1; /* 0 means none */
	if (s->count >= s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		s->node = mem_grow(s->node, s->cap, sizeof *s->node);
	}
	s->node[s->count] = (struct added_node){ .token = ADDED_NONE, .byte = byte };
	return (uint32_t)s->count++;
}

static uint32_t find_child(const struct added_set *s, uint32_t node, uint8_t byte)
{
	uint32_t child = s->node[node].child;

	while (child && s->node[child].byte != byte)
		child = s->node[child].sibling;
	return child;
}

static uint32_t child_or_new(struct added_set *s, uint32_t node, uint8_t byte)
{
	uint32_t child = find_child(s, node, byte);

	if (!child) {
		child = new_node(s, byte);
		s->node[child].sibling = s->node[node].child;
		s->node[node].child = child;
	}
	return child;
}

void added_put(struct added_set *s, struct str pattern, uint32_t token)
{
	uint8_t first;
	uint32_t node;

	if (pattern.n == 0)
		return;
	first = (uint8_t)pattern.p[0];
	s->only_first = s->count == 0 || s->only_first == first ? first : -1;
	if (!s->root[first])
		s->root[first] = new_node(s, first);
	node = s->root[first];
	for (size_t i = 1; i < pattern.n; i++)
		node = child_or_new(s, node, (uint8_t)pattern.p[i]);
	if (s->node[node].token == ADDED_NONE)
		s->node[node].token = token;
}

/* The longest token that begins at at; its length, 0 for none. */
static size_t match_at(const struct added_set *s, struct str text, size_t at, uint32_t *token)
{
	uint32_t node = s->root[(uint8_t)text.p[at]];
	size_t length = 0;

	for (size_t i = at; node; node = find_child(s, node, (uint8_t)text.p[i])) {
		i++;
		if (s->node[node].token != ADDED_NONE) {
			*token = s->node[node].token;
			length = i - at;
		}
		if (i == text.n)
			break;
	}
	return length;
}

static size_t next_candidate(const struct added_set *s, struct str text, size_t at)
{
	if (s->only_first >= 0 && at < text.n) {
		const char *p = memchr(text.p + at, s->only_first, text.n - at);

		return p ? (size_t)(p - text.p) : text.n;
	}
	while (at < text.n && !s->root[(uint8_t)text.p[at]])
		at++;
	return at;
}

static bool is_inside_word(struct str text, size_t start, size_t end)
{
	size_t n;

	if (start > 0 && chars_is_word(chars_last((struct str){ text.p, start })))
		return true;
	return end < text.n &&
		chars_is_word(utf8_decode((struct str){ text.p + end, text.n - end }, &n));
}

bool added_next(const struct added_set *s, struct added_walk *w, struct str *before, uint32_t *id)
{
	struct str text = w->text;

	while (s->count > 0 && (w->from = next_candidate(s, text, w->from)) < text.n) {
		uint32_t index = 0;
		size_t start = w->from, n = match_at(s, text, start, &index), end = start + n;
		const struct added_token *token = s->token + index;

		w->from += n ? n : 1;
		if (n == 0 || (token->is_single_word && is_inside_word(text, start, end)))
			continue;
		/* Blanks that the token before has taken are not looked at again. */
		if (start < w->done)
			start = w->done;
		else if (token->is_lstrip)
			start -= chars_space_back((struct str){ text.p + w->done,
				start - w->done });
		if (token->is_rstrip && end >= w->done)
			end += chars_space_front((struct str){ text.p + end, text.n - end });
		*before = (struct str){ text.p + w->done, start - w->done };
		*id = token->id;
		if (end > w->done)
			w->done = end;
		return true;
	}
	*before = (struct str){ text.p + w->done, text.n - w->done };
	w->done = text.n;
	return false;
}
