/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json.c - tokenizer.json.
 *
 * The file is walked with the pull scanner, which checks it: vocabulary and merges
 * make up nearly all of it and go straight into their tables. Only the small stages
 * become trees (stages.c).
 */
#include "token/reader.h"

/* The top-level members, still as text; absent ones are null. */
struct file_sections {
	struct json_slice added_tokens, normalizer, pre_tokenizer, post_processor, decoder;
	struct model_sections model;
	bool has_model;
};

struct member {
	const char *name;
	struct json_slice *slice;
};

static void keep_member(const struct member *member, size_t count, struct str key,
	struct json_slice value)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(key, member[i].name))
			*member[i].slice = value;
}

static int find_in_model(struct json_iter *it, struct model_sections *s)
{
	const struct member member[] = {
		{ "type", &s->type }, { "vocab", &s->vocab }, { "merges", &s->merges },
		{ "unk_token", &s->unk_token }, { "fuse_unk", &s->fuse_unk },
		{ "ignore_merges", &s->ignore_merges }, { "byte_fallback", &s->byte_fallback },
		{ "dropout", &s->dropout }, { "continuing_subword_prefix", &s->prefix },
		{ "end_of_word_suffix", &s->suffix }, { "unk_id", &s->unk_id },
		{ "max_input_chars_per_word", &s->max_chars },
	};
	struct json_slice value;
	struct str key;
	int rc;

	*s = (struct model_sections){ 0 }; /* the last of equal names wins */
	while ((rc = json_each(it, &key, &value)) > 0)
		keep_member(member, sizeof member / sizeof *member, key, value);
	return rc;
}

/* -1: it is no JSON object, or something is behind it. The model is entered, not read twice. */
static int find_in_file(struct str text, struct file_sections *s)
{
	const struct member member[] = {
		{ "added_tokens", &s->added_tokens }, { "normalizer", &s->normalizer },
		{ "pre_tokenizer", &s->pre_tokenizer }, { "post_processor", &s->post_processor },
		{ "decoder", &s->decoder },
	};
	struct json_iter it, model;
	struct json_slice value;
	struct str key;
	int rc;

	if (text.n < 2 || *text.p != '{')
		return -1;
	it = json_iter((struct json_slice){ JSON_OBJECT, text });
	while ((rc = json_step(&it, &key)) > 0) {
		if (str_is(key, "model") && json_open(&it, &model) && model.is_object) {
			if (find_in_model(&model, &s->model))
				return -1;
			s->has_model = true;
			json_close(&it, &model);
			continue;
		}
		if (json_take(&it, &value) < 0)
			return -1;
		keep_member(member, sizeof member / sizeof *member, key, value);
	}
	return rc || !str_is(str_trim(it.rest), "}") ? -1 : 0;
}

static int find_sections(struct str text, struct file_sections *s, struct err *e)
{
	struct json_scan scan = { .text = text };
	struct json_slice root;

	if (find_in_file(str_trim(text), s)) {
		/* Only a damaged file is read again, to say where. */
		if (json_next(&scan, &root, e))
			return err_wrap(e, "is not JSON");
		return err_set(e, ERR_PARSE, json_at_end(&scan) ? "does not hold a JSON object"
			: "is not JSON: text after the end of the object");
	}
	if (!s->has_model)
		return err_set(e, ERR_PARSE, "has no \"model\"; it is no tokenizer.json");
	return 0;
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
	if (stages_load(m, &text, e) || read_model(m, &s.model, e))
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
