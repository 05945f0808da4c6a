/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json.c - tokenizer.json.
 *
 * The file is checked once as a whole and then walked with the pull scanner:
 * vocabulary and merges make up nearly all of it and go straight into their
 * tables. Only the small stages become trees (stages.c).
 */
#include "token/reader.h"

/* The top-level members and those of "model", still as text. Absent ones are null. */
struct file_sections {
	struct json_slice added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model;
	struct model_sections inner;
};

struct member {
	const char *name;
	struct json_slice *slice;
};

/* Finds several members in one pass; the last of equal names wins. */
static int find_members(struct json_slice object, const struct member *member, size_t count,
	struct err *e)
{
	struct json_iter it = json_iter(object);
	struct json_slice value;
	struct str key;
	int rc;

	while ((rc = json_each(&it, &key, &value)) > 0)
		for (size_t i = 0; i < count; i++)
			if (str_is(key, member[i].name))
				*member[i].slice = value;
	if (rc || !str_is(str_trim(it.rest), "}")) /* what is behind the object is not of it */
		return err_set(e, ERR_PARSE, "is damaged");
	return 0;
}

static int find_sections(struct str text, struct file_sections *s, struct err *e)
{
	const struct member top[] = {
		{ "added_tokens", &s->added_tokens }, { "normalizer", &s->normalizer },
		{ "pre_tokenizer", &s->pre_tokenizer }, { "post_processor", &s->post_processor },
		{ "decoder", &s->decoder }, { "model", &s->model },
	};
	const struct member inner[] = {
		{ "type", &s->inner.type }, { "vocab", &s->inner.vocab }, { "merges", &s->inner.merges },
		{ "unk_token", &s->inner.unk_token }, { "fuse_unk", &s->inner.fuse_unk },
		{ "ignore_merges", &s->inner.ignore_merges }, { "byte_fallback", &s->inner.byte_fallback },
		{ "dropout", &s->inner.dropout }, { "continuing_subword_prefix", &s->inner.prefix },
		{ "end_of_word_suffix", &s->inner.suffix },
		{ "unk_id", &s->inner.unk_id },
		{ "max_input_chars_per_word", &s->inner.max_chars },
	};
	struct json_scan scan = { .text = text };
	struct json_slice root = { JSON_OBJECT, str_trim(text) };

	/* Members are checked one by one; only a damaged file is read again, to say where. */
	if (root.raw.n < 2 || root.raw.p[0] != '{' ||
		find_members(root, top, sizeof top / sizeof *top, e)) {
		if (json_next(&scan, &root, e))
			return err_wrap(e, "is not JSON");
		return err_set(e, ERR_PARSE, json_at_end(&scan) ? "does not hold a JSON object"
			: "is not JSON: text after the end of the object");
	}
	if (s->model.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "has no \"model\"; it is no tokenizer.json");
	return find_members(s->model, inner, sizeof inner / sizeof *inner, e);
}

struct str reader_json_text(struct str raw, struct buf *scratch)
{
	if (!memchr(raw.p, '\\', raw.n))
		return raw;
	buf_reset(scratch);
	json_unescape(scratch, raw);
	return buf_str(scratch);
}

int reader_json_vocab(struct model *m, const struct model_sections *s, struct err *e)
{
	struct json_iter it = json_iter(s->vocab);
	struct json_slice value;
	struct buf scratch = { 0 };
	struct str key;
	int rc;

	if (s->vocab.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "has a model whose \"vocab\" is no object");
	vocab_init(&m->vocab, m->is_byte_level, s->vocab.raw.n);
	while ((rc = json_each(&it, &key, &value)) > 0) {
		int64_t id;

		if (value.kind != JSON_INT || !json_to_i64(value, &id))
			rc = err_set(e, ERR_PARSE,
				"has a vocabulary entry \"%.*s\" whose id is no whole number",
				(int)(key.n < 64 ? key.n : 64), key.p);
		else
			rc = vocab_add(&m->vocab, reader_json_text(key, &scratch), id, e);
		if (rc)
			break;
	}
	buf_release(&scratch);
	if (rc)
		return -1;
	if (m->vocab.count == 0)
		return err_set(e, ERR_PARSE, "has an empty vocabulary");
	return vocab_index(&m->vocab, e);
}

static int read_model(struct model *m, const struct model_sections *s, struct err *e)
{
	static const struct {
		const char *type;
		int (*read)(struct model *m, const struct model_sections *s, struct err *e);
	} kind[] = {
		{ "BPE", reader_json_bpe }, { "Unigram", reader_json_unigram },
		{ "WordPiece", reader_json_wordpiece }, { "WordLevel", reader_json_wordlevel },
	};

	/* Old files name no type; they are told apart by what they hold. */
	if (s->type.kind != JSON_STRING)
		return s->merges.kind == JSON_ARRAY ? reader_json_bpe(m, s, e)
			: s->vocab.kind == JSON_ARRAY ? reader_json_unigram(m, s, e)
			: reader_json_wordpiece(m, s, e);
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
		if (str_is(s->type.raw, kind[i].type))
			return kind[i].read(m, s, e);
	return err_set(e, ERR_PARSE, "has model type \"%.*s\", which this version does not read",
		(int)(s->type.raw.n < 64 ? s->type.raw.n : 64), s->type.raw.p);
}

static int read_json(struct model *m, const char *path, struct str bytes, struct err *e)
{
	struct file_sections s = { 0 };
	struct stage_texts text;

	(void)path;
	if (find_sections(bytes, &s, e))
		return -1;
	text = (struct stage_texts){ s.normalizer.raw, s.pre_tokenizer.raw, s.post_processor.raw,
		s.decoder.raw };
	if (stages_load(m, &text, e) || read_model(m, &s.inner, e))
		return -1;
	return model_add_list(m, s.added_tokens, e);
}

static bool is_any(struct str path, struct str bytes)
{
	(void)path;
	(void)bytes;
	return true;
}

const struct reader reader_json = { "tokenizer.json", is_any, read_json };
