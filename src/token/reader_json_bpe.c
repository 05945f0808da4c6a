/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json_bpe.c - the BPE model of a tokenizer.json: its merges.
 */
#include "token/chars.h"
#include "token/reader.h"

static int check_model(const struct model_sections *s, struct err *e)
{
	if (s->vocab.kind != JSON_OBJECT || s->merges.kind != JSON_ARRAY)
		return err_set(e, ERR_PARSE, "has a BPE model without \"vocab\" or \"merges\"");
	if (json_truthy(s->prefix) || json_truthy(s->suffix))
		return err_set(e, ERR_PARSE, "has a BPE model with continuing_subword_prefix or "
			"end_of_word_suffix, which this version does not read");
	if (json_truthy(s->dropout))
		return err_set(e, ERR_PARSE,
			"has a BPE model with dropout; its ids would be random");
	return 0;
}

/* One merge: its two parts, spelled; from "a b" or ["a", "b"]. */
static int split_merge(struct json_slice v, struct buf scratch[2], struct str part[2])
{
	struct json_iter it = json_iter(v);
	struct json_slice item;
	struct str key;

	if (v.kind == JSON_STRING) {
		part[1] = reader_json_text(v.raw, &scratch[0]);
		part[0] = str_cut(&part[1], ' ');
		return part[0].n && part[1].n && !memchr(part[1].p, ' ', part[1].n) ? 0 : -1;
	}
	if (v.kind != JSON_ARRAY)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (json_each(&it, &key, &item) != 1 || item.kind != JSON_STRING)
			return -1;
		part[i] = reader_json_text(item.raw, &scratch[i]);
	}
	return json_each(&it, &key, &item) == 0 && part[0].n && part[1].n ? 0 : -1;
}

struct merge_reader {
	const struct vocab *vocab;
	struct buf scratch[2], bytes;
	uint32_t rank;
	struct ids found; /* four for each merge: left, right, rank, joined */
};

static bool add_part(const struct vocab *v, struct str part, struct buf *bytes)
{
	if (v->is_spelled)
		return chars_to_bytes(part, bytes);
	buf_add_str(bytes, part);
	return true;
}

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
	is_bytes = add_part(vocab, part[0], &r->bytes);
	cut = r->bytes.len;
	/* A token that no bytes spell never stands in a word, so its merges never apply. */
	if (!is_bytes || !add_part(vocab, part[1], &r->bytes)) {
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

static int load_merges(struct model *m, const struct model_sections *s, struct err *e)
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

static int read_unk(struct model *m, const struct model_sections *s, struct err *e)
{
	struct buf scratch = { 0 };

	m->bpe.unk = VOCAB_NONE;
	if (s->unk_token.kind != JSON_STRING)
		return 0;
	m->bpe.unk = vocab_find_spelled(&m->vocab, reader_json_text(s->unk_token.raw, &scratch));
	buf_release(&scratch);
	if (m->bpe.unk == VOCAB_NONE)
		return err_set(e, ERR_PARSE, "has an unk_token that is not in its vocabulary");
	return 0;
}

int reader_json_bpe(struct model *m, const struct model_sections *s, struct err *e)
{
	struct bpe *b = &m->bpe;

	m->kind = MODEL_BPE;
	if (check_model(s, e) || reader_json_vocab(m, s, e) || read_unk(m, s, e))
		return -1;
	b->vocab = &m->vocab;
	b->is_chars = !m->is_byte_level;
	b->has_byte_fallback = b->is_chars && json_truthy(s->byte_fallback);
	b->ignore_merges = json_truthy(s->ignore_merges);
	b->fuse_unk = json_truthy(s->fuse_unk);
	if (load_merges(m, s, e))
		return -1;
	bpe_index(b);
	return 0;
}
