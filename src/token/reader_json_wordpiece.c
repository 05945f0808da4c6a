/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json_wordpiece.c - the WordPiece and WordLevel models of a tokenizer.json.
 *
 * The reference fails at the first unknown word when unk_token is not in the
 * vocabulary; here such a file is refused as a whole.
 */
#include "token/reader.h"

static int read_words(struct model *m, const struct model_sections *s, const char *name,
	struct err *e)
{
	struct wordpiece *p = &m->wordpiece;
	struct buf scratch = { 0 };
	struct str unk;

	if (m->is_byte_level)
		return err_set(e, ERR_PARSE, "has a %s model behind a ByteLevel stage, which this "
			"version does not read", name);
	if (reader_json_vocab(m, s, e))
		return -1;
	if (s->unk_token.kind != JSON_STRING)
		return err_set(e, ERR_PARSE, "has a %s model without \"unk_token\"", name);
	unk = reader_json_text(s->unk_token.raw, &scratch);
	p->vocab = &m->vocab;
	p->unk = vocab_find(&m->vocab, unk.p, unk.n);
	buf_release(&scratch);
	if (p->unk == VOCAB_NONE)
		return err_set(e, ERR_PARSE,
			"has a %s model whose unk_token is not in its vocabulary", name);
	return 0;
}

int reader_json_wordpiece(struct model *m, const struct model_sections *s, struct err *e)
{
	struct buf scratch = { 0 };
	int64_t max_chars;

	m->kind = MODEL_WORDPIECE;
	if (read_words(m, s, "WordPiece", e))
		return -1;
	if (s->prefix.kind != JSON_STRING)
		return err_set(e, ERR_PARSE,
			"has a WordPiece model without \"continuing_subword_prefix\"");
	if (s->max_chars.kind != JSON_INT || !json_to_i64(s->max_chars, &max_chars) ||
		max_chars < 0)
		return err_set(e, ERR_PARSE, "has a WordPiece model whose "
			"\"max_input_chars_per_word\" is no whole number from 0 on");
	m->wordpiece.max_chars = max_chars < UINT32_MAX ? (uint32_t)max_chars : UINT32_MAX;
	wordpiece_index(&m->wordpiece, reader_json_text(s->prefix.raw, &scratch));
	buf_release(&scratch);
	return 0;
}

int reader_json_wordlevel(struct model *m, const struct model_sections *s, struct err *e)
{
	m->kind = MODEL_WORDLEVEL;
	return read_words(m, s, "WordLevel", e);
}
