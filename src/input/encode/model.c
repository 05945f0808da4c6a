/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - added tokens: a byte trie with sibling lists, a fast search for first bytes, and those
 * of a model.
 *
 * Ids in a tokenizer.json are assigned as in the reference: a token that the model knows keeps the
 * model's id; the others get the ids from the number of the model's entries on. Files agree with
 * that.
 */
#include "input/encode/model.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/chars.h"

/* ---- finding added tokens ---- */

/* token: the array the ids given to added_put index; it must not move afterwards. */
static void added_init(struct added_set *s, const struct added_token *token)
{
	*s = (struct added_set){ .token = token, .only_first = -1 };
}

static void added_release(struct added_set *s)
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

static void added_put(struct added_set *s, struct str pattern, uint32_t token)
{
	uint8_t first;
	uint32_t node;

	assert(!s->is_borrowed);
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
		/* Blanks that the previous token has taken are not examined again. */
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

/* ---- the model's ---- */

const struct added_token *model_added(const struct model *m, struct str content)
{
	uint64_t index;

	return map_get(&m->added_index, content, &index) ? m->added + index : NULL;
}

uint32_t model_find(const struct model *m, struct str content)
{
	const struct added_token *added = model_added(m, content);

	return added ? added->id : vocab_find_spelled(&m->vocab, content);
}

int model_add(struct model *m, struct added_token token, struct err *e)
{
	const struct added_token *old = model_added(m, token.content);

	if (m->added_count == TOKEN_ADDED_MAX && !old)
		return err_set(e, ERR_LIMIT, "has more than %d added tokens (TOKEN_ADDED_MAX)",
			TOKEN_ADDED_MAX);
	if (token.content.n > TOKEN_ENTRY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has an added token of %zu bytes; at most %d are read "
			"(TOKEN_ENTRY_BYTES_MAX)", token.content.n, TOKEN_ENTRY_BYTES_MAX);
	if (vocab_set_added(&m->vocab, token.content, token.id, token.is_special, e))
		return -1;
	if (old) {
		token.content = old->content;
		m->added[old - m->added] = token;
		return 0;
	}
	if (m->added_count == m->added_cap) {
		m->added_cap = m->added_cap ? m->added_cap * 2 : 256;
		m->added = mem_grow(m->added, m->added_cap, sizeof *m->added);
	}
	token.content = arena_str(&m->arena, token.content);
	map_put(&m->added_index, token.content, m->added_count);
	m->added[m->added_count++] = token;
	return 0;
}

static int add_from_list(struct model *m, const struct json_value *v, uint32_t *next,
	struct err *e)
{
	struct str content = json_text(json_get(v, "content"), STR(""));
	struct added_token token = {
		.content = content,
		.is_single_word = json_bool(json_get(v, "single_word"), false),
		.is_lstrip = json_bool(json_get(v, "lstrip"), false),
		.is_rstrip = json_bool(json_get(v, "rstrip"), false),
		.is_normalized = json_bool(json_get(v, "normalized"), true),
		.is_special = json_bool(json_get(v, "special"), false),
	};
	const struct added_token *old = model_added(m, content);

	if (!json_get(v, "content"))
		return err_set(e, ERR_PARSE, "has an added token without content");
	if (content.n == 0)
		return 0;
	token.id = old ? old->id : vocab_find_spelled(&m->vocab, content);
	if (token.id == VOCAB_NONE)
		token.id = (*next)++;
	return model_add(m, token, e);
}

int model_add_list(struct model *m, struct json_slice v, struct err *e)
{
	struct json_iter it = json_iter(v);
	uint32_t next = (uint32_t)m->vocab.count;
	struct json_slice item;
	struct str key;
	int rc;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "\"added_tokens\" is not a list");
	/* One at a time: the tree of all may need twenty times the memory of their text. */
	while ((rc = json_each(&it, &key, &item)) > 0) {
		struct arena scratch = { 0 };
		struct json_value *token;

		rc = json_parse(&scratch, item.raw, &token, e);
		if (rc == 0)
			rc = add_from_list(m, token, &next, e);
		arena_release(&scratch);
		if (rc)
			break;
	}
	return rc;
}

/* The text to look for in normalized text. sentencepiece leaves its symbols unchanged. */
static struct str normalized_content(const struct model *m, struct normalize_work *work,
	const struct added_token *token)
{
	const struct normalizer *n = &m->normalizer;

	if (n->count == 1 && n->step[0].kind == NORMALIZE_SENTENCEPIECE)
		return token->content;
	return normalize(n, work, token->content);
}

/* Contents to look for are normalized, so limits apply to them, too. */
static int put_added(struct model *m, struct normalize_work *work, uint32_t index, size_t *bytes,
	struct err *e)
{
	const struct added_token *token = m->added + index;
	struct str text = token->content;

	if (token->is_normalized)
		text = normalized_content(m, work, token);
	if (token->is_normalized && work->failure) {
		normalize_explain(&m->normalizer, work, e);
		return err_wrap(e, "added token \"%.*s\"",
			(int)(token->content.n < 64 ? token->content.n : 64), token->content.p);
	}
	*bytes += text.n;
	if (text.n > TOKEN_ENTRY_BYTES_MAX || *bytes > TOKEN_ADDED_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has added tokens that are too long: \"%.*s\" has %zu "
			"bytes when normalized (TOKEN_ENTRY_BYTES_MAX is %d), it and those before "
			"it %zu (TOKEN_ADDED_BYTES_MAX is %u)",
			(int)(token->content.n < 64 ? token->content.n : 64), token->content.p,
			text.n, TOKEN_ENTRY_BYTES_MAX, *bytes, TOKEN_ADDED_BYTES_MAX);
	added_put(token->is_normalized ? &m->normalized : &m->raw, text, index);
	return 0;
}

/* Special ones first: of two tokens that look alike once normalized, the first is found. */
int model_index_added(struct model *m, struct err *e)
{
	struct normalize_work work = { 0 };
	size_t bytes = 0;
	int rc = 0;

	added_init(&m->raw, m->added);
	added_init(&m->normalized, m->added);
	for (size_t i = 0; i < m->added_count; i++)
		bytes += m->added[i].content.n;
	normalize_begin(&work, bytes);
	bytes = 0;
	for (int special = 1; special >= 0; special--)
		for (uint32_t i = 0; i < m->added_count && rc == 0; i++)
			if (m->added[i].is_special == special && !m->added[i].is_silent)
				rc = put_added(m, &work, i, &bytes, e);
	normalize_work_release(&work);
	return rc;
}

void model_release(struct model *m)
{
	arena_release(&m->arena);
	vocab_release(&m->vocab);
	bpe_release(&m->bpe);
	unigram_release(&m->unigram);
	wordpiece_release(&m->wordpiece);
	normalizer_release(&m->normalizer);
	pretok_release(&m->pretok);
	decoder_release(&m->decoder);
	free(m->added);
	map_release(&m->added_index);
	added_release(&m->raw);
	added_release(&m->normalized);
	ids_release(&m->before);
	ids_release(&m->after);
	ids_release(&m->special);
	if (m->mapping.n > 0)
		file_unmap(m->mapping);
	*m = (struct model){ 0 };
}
