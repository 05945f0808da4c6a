/* SPDX-License-Identifier: Apache-2.0 */
/*
 * added_load.c - the added tokens of a model.
 *
 * In a tokenizer.json ids are given out as the reference does: a token that the model knows keeps
 * the model's id; the others are counted on from the number of the model's entries. Files
 * agree with that.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "token/model.h"

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
		return err_set(e, ERR_LIMIT, "has more than %d added tokens", TOKEN_ADDED_MAX);
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
	struct json_value *list;
	struct arena scratch = { 0 };
	uint32_t next = (uint32_t)m->vocab.count;
	int rc = 0;

	if (v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "\"added_tokens\" is not a list");
	rc = json_parse(&scratch, v.raw, &list, e);
	for (size_t i = 0; rc == 0 && i < list->count; i++)
		rc = add_from_list(m, list->item + i, &next, e);
	arena_release(&scratch);
	return rc;
}

/* What is looked for in normalized text. sentencepiece leaves its symbols as they are. */
static struct str normalized_content(const struct model *m, struct normalize_work *work,
	const struct added_token *token)
{
	const struct normalizer *n = &m->normalizer;

	if (n->count == 1 && n->step[0].kind == NORMALIZE_SENTENCEPIECE)
		return token->content;
	return normalize(n, work, token->content);
}

/* Special ones first: of two tokens that look alike once normalized, the first is found. */
void model_index_added(struct model *m)
{
	struct normalize_work work = { 0 };

	added_init(&m->raw, m->added);
	added_init(&m->normalized, m->added);
	for (int special = 1; special >= 0; special--) {
		for (uint32_t i = 0; i < m->added_count; i++) {
			const struct added_token *token = m->added + i;

			if (token->is_special != special || token->is_silent)
				continue;
			if (token->is_normalized)
				added_put(&m->normalized, normalized_content(m, &work, token), i);
			else
				added_put(&m->raw, token->content, i);
		}
	}
	normalize_work_release(&work);
}
