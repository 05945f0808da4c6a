/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - tokenizer.json: the file, its vocabulary and its merges.
 *
 * The file is checked once as a whole and then walked with the pull scanner:
 * vocabulary and merges make up nearly all of it and go straight into their
 * tables. Only the small stages become trees (stages.c).
 */
#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/trace.h"
#include "token/chars.h"
#include "token/model.h"

/* The top-level members and those of "model", still as text. Absent ones are null. */
struct sections {
	struct json_slice added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model;
	struct json_slice type, vocab, merges, unk_token, fuse_unk, ignore_merges, byte_fallback,
		dropout, prefix, suffix;
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
	return rc ? err_set(e, ERR_PARSE, "is damaged") : 0;
}

static int find_sections(struct str text, struct sections *s, struct err *e)
{
	const struct member top[] = {
		{ "added_tokens", &s->added_tokens }, { "normalizer", &s->normalizer },
		{ "pre_tokenizer", &s->pre_tokenizer }, { "post_processor", &s->post_processor },
		{ "decoder", &s->decoder }, { "model", &s->model },
	};
	const struct member inner[] = {
		{ "type", &s->type }, { "vocab", &s->vocab }, { "merges", &s->merges },
		{ "unk_token", &s->unk_token }, { "fuse_unk", &s->fuse_unk },
		{ "ignore_merges", &s->ignore_merges }, { "byte_fallback", &s->byte_fallback },
		{ "dropout", &s->dropout }, { "continuing_subword_prefix", &s->prefix },
		{ "end_of_word_suffix", &s->suffix },
	};
	struct json_scan scan = { .text = text };
	struct json_slice root;

	if (json_next(&scan, &root, e))
		return err_wrap(e, "is not JSON");
	if (!json_at_end(&scan))
		return err_set(e, ERR_PARSE, "is not JSON: text after the end of the object");
	if (root.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "does not hold a JSON object");
	if (find_members(root, top, sizeof top / sizeof *top, e))
		return -1;
	if (s->model.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "has no \"model\"; it is no tokenizer.json");
	return find_members(s->model, inner, sizeof inner / sizeof *inner, e);
}

/* A string's text; into scratch only when it holds escapes. */
static struct str plain_text(struct str raw, struct buf *scratch)
{
	if (!memchr(raw.p, '\\', raw.n))
		return raw;
	buf_reset(scratch);
	json_unescape(scratch, raw);
	return buf_str(scratch);
}

/* ---- model ---- */

static int check_model(const struct sections *s, struct err *e)
{
	if (s->type.kind == JSON_STRING && !str_is(s->type.raw, "BPE"))
		return err_set(e, ERR_PARSE,
			"has model type \"%.*s\", which this version does not read",
			(int)(s->type.raw.n < 64 ? s->type.raw.n : 64), s->type.raw.p);
	if (s->vocab.kind != JSON_OBJECT || s->merges.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a BPE model without \"vocab\" or \"merges\"");
	if (json_truthy(s->byte_fallback))
		return err_set(e, ERR_PARSE,
			"has a BPE model with byte_fallback, which this version does not read");
	if (json_truthy(s->prefix) || json_truthy(s->suffix))
		return err_set(e, ERR_PARSE, "has a BPE model with continuing_subword_prefix or "
			"end_of_word_suffix, which this version does not read");
	if (json_truthy(s->dropout))
		return err_set(e, ERR_PARSE,
			"has a BPE model with dropout; its ids would be random");
	return 0;
}

static int load_vocab(struct model *m, const struct sections *s, struct err *e)
{
	struct json_iter it = json_iter(s->vocab);
	struct json_slice value;
	struct buf scratch = { 0 };
	struct str key;
	int rc;

	vocab_init(&m->vocab, s->vocab.raw.n);
	while ((rc = json_each(&it, &key, &value)) > 0) {
		int64_t id;

		if (value.kind != JSON_INT || !json_to_i64(value, &id))
			rc = err_set(e, ERR_PARSE,
				"has a vocabulary entry \"%.*s\" whose id is no whole number",
				(int)(key.n < 64 ? key.n : 64), key.p);
		else
			rc = vocab_add(&m->vocab, plain_text(key, &scratch), id, e);
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

/* One merge: its two parts, spelled; from "a b" or ["a", "b"]. */
static int split_merge(struct json_slice v, struct buf scratch[2], struct str part[2])
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;

	if (v.kind == JSON_STRING) {
		part[1] = plain_text(v.raw, &scratch[0]);
		part[0] = str_cut(&part[1], ' ');
		return part[0].n && part[1].n && !memchr(part[1].p, ' ', part[1].n) ? 0 : -1;
	}
	if (v.kind != JSON_ARRAY)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (json_each(&it, &key, &item) != 1 || item.kind != JSON_STRING)
			return -1;
		part[i] = plain_text(item.raw, &scratch[i]);
	}
	return json_each(&it, &key, &item) == 0 && part[0].n && part[1].n ? 0 : -1;
}

struct merge_reader {
	const struct vocab *vocab;
	struct buf scratch[2], bytes;
	uint32_t rank;
	struct ids found; /* four for each merge: left, right, rank, joined */
};

static int add_merge(struct merge_reader *r, struct json_slice v, struct err *e)
{
	const struct vocab *vocab = r->vocab;
	uint32_t left, right, joined;
	struct str part[2];
	size_t cut;
	bool is_bytes;

	if (split_merge(v, r->scratch, part))
		return err_set(e, ERR_PARSE, "has a merge (number %u) that is not two tokens",
			r->rank);
	buf_reset(&r->bytes);
	is_bytes = chars_to_bytes(part[0], &r->bytes);
	cut = r->bytes.len;
	/* A token that no bytes spell never stands in a word, so its merges never apply. */
	if (!is_bytes || !chars_to_bytes(part[1], &r->bytes)) {
		r->rank++;
		return 0;
	}
	left = vocab_find(vocab, r->bytes.data, cut);
	right = vocab_find(vocab, r->bytes.data + cut, r->bytes.len - cut);
	joined = vocab_find(vocab, r->bytes.data, r->bytes.len);
	if (left == VOCAB_NONE || right == VOCAB_NONE || joined == VOCAB_NONE)
		return err_set(e, ERR_PARSE,
			"has a merge (number %u, \"%.*s\" and \"%.*s\") of which "
			"a part or the result is not in the vocabulary", r->rank,
			(int)(part[0].n < 64 ? part[0].n : 64), part[0].p,
			(int)(part[1].n < 64 ? part[1].n : 64), part[1].p);
	ids_add(&r->found, (uint32_t[]){ left, right, r->rank++, joined }, 4);
	return 0;
}


static int load_merges(struct model *m, const struct sections *s, struct err *e)
{
	struct merge_reader r = { .vocab = &m->vocab };
	struct json_iter it = json_iter(s->merges);
	struct json_slice value;
	struct str key;
	int rc;

	while ((rc = json_each(&it, &key, &value)) > 0) {
		rc = add_merge(&r, value, e);
		if (rc)
			break;
	}
	bpe_reserve(&m->bpe, r.found.count / 4);
	for (size_t i = 0; i < r.found.count; i += 4) {
		const uint32_t *f = r.found.id + i;

		bpe_add(&m->bpe, f[0], f[1], f[2], f[3]);
	}
	buf_release(&r.scratch[0]);
	buf_release(&r.scratch[1]);
	buf_release(&r.bytes);
	ids_release(&r.found);
	return rc;
}

static int load_bpe(struct model *m, const struct sections *s, struct err *e)
{
	struct buf scratch = { 0 };
	int rc = 0;

	if (check_model(s, e) || load_vocab(m, s, e))
		return -1;
	m->bpe.vocab = &m->vocab;
	m->bpe.ignore_merges = json_truthy(s->ignore_merges);
	m->bpe.fuse_unk = json_truthy(s->fuse_unk);
	m->bpe.unk = VOCAB_NONE;
	if (s->unk_token.kind == JSON_STRING) {
		m->bpe.unk = vocab_find_spelled(&m->vocab, plain_text(s->unk_token.raw, &scratch));
		if (m->bpe.unk == VOCAB_NONE)
			rc = err_set(e, ERR_PARSE,
				"has an unk_token that is not in its vocabulary");
	}
	buf_release(&scratch);
	if (rc)
		return -1;
	bpe_index_bytes(&m->bpe);
	return load_merges(m, s, e);
}

static int load_text(struct model *m, struct str text, struct err *e)
{
	struct sections s = { 0 };

	if (find_sections(text, &s, e))
		return -1;
	/* The stages first: what is wrong with them is said before a large model is read. */
	if (stages_normalizer(m, s.normalizer, e) || check_model(&s, e) ||
		stages_pre_tokenizer(m, s.pre_tokenizer, e) ||
		stages_post_processor(m, s.post_processor, e) || stages_decoder(m, s.decoder, e))
		return -1;
	if (load_bpe(m, &s, e))
		return -1;
	return stages_added_tokens(m, s.added_tokens, e);
}

int model_load(struct model *m, const char *path, struct err *e)
{
	struct str text;
	int rc;

	if (file_map(path, &text, e))
		return -1;
	if (text.n > TOKEN_FILE_BYTES_MAX)
		rc = err_set(e, ERR_LIMIT, "has %zu bytes; at most %u are read", text.n,
			TOKEN_FILE_BYTES_MAX);
	else
		rc = load_text(m, text, e);
	file_unmap(text);
	if (rc) {
		struct err inner = e ? *e : (struct err){ 0 };

		return err_set(e, inner.code, "%s %s", path, inner.text);
	}
	TRACE(token, "%s: %zu tokens, %zu merges, %zu added\n", path, m->vocab.count, m->bpe.count,
		m->added_count);
	return 0;
}

void model_release(struct model *m)
{
	arena_release(&m->arena);
	vocab_release(&m->vocab);
	bpe_release(&m->bpe);
	pretok_release(&m->pretok);
	free(m->added);
	map_release(&m->added_index);
	added_release(&m->raw);
	added_release(&m->normalized);
	ids_release(&m->before);
	ids_release(&m->after);
	ids_release(&m->special);
	*m = (struct model){ 0 };
}
