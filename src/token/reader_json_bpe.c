/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader_json_bpe.c - the BPE model of a tokenizer.json: its merges.
 */
#include <stdlib.h>

#include "base/mem.h"
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

/* Merges read and not yet looked up: their parts lie side by side in bytes. */
#define MERGES_TOGETHER 256

struct merge_reader {
	const struct vocab *vocab;
	struct buf scratch[2], bytes;
	struct {
		uint32_t start, cut, end, rank;
	} waiting[MERGES_TOGETHER];
	size_t waiting_count;
	uint32_t rank;
	struct bpe_pair *found;
	size_t found_count, found_cap;
};

static bool add_part(const struct vocab *v, struct str part, struct buf *bytes)
{
	if (v->is_spelled)
		return chars_to_bytes(part, bytes);
	buf_add_str(bytes, part);
	return true;
}

static int look_up(struct merge_reader *r, struct err *e)
{
	struct str key[3 * MERGES_TOGETHER];
	uint32_t id[3 * MERGES_TOGETHER];

	for (size_t i = 0; i < r->waiting_count; i++) {
		const char *p = r->bytes.data + r->waiting[i].start;
		size_t cut = r->waiting[i].cut - r->waiting[i].start;
		size_t all = r->waiting[i].end - r->waiting[i].start;

		key[3 * i] = (struct str){ p, cut };
		key[3 * i + 1] = (struct str){ p + cut, all - cut };
		key[3 * i + 2] = (struct str){ p, all };
	}
	vocab_find_many(r->vocab, key, id, 3 * r->waiting_count);
	for (size_t i = 0; i < r->waiting_count; i++) {
		const uint32_t *of = id + 3 * i;

		if (of[0] == VOCAB_NONE || of[1] == VOCAB_NONE || of[2] == VOCAB_NONE)
			return err_set(e, ERR_PARSE,
				"has a merge (number %u, \"%.*s\" and \"%.*s\") of which "
				"a part or the result is not in the vocabulary",
				r->waiting[i].rank,
				(int)(key[3 * i].n < 64 ? key[3 * i].n : 64), key[3 * i].p,
				(int)(key[3 * i + 1].n < 64 ? key[3 * i + 1].n : 64),
				key[3 * i + 1].p);
		if (r->found_count == r->found_cap) {
			r->found_cap = r->found_cap ? r->found_cap * 2 : 4096;
			r->found = mem_grow(r->found, r->found_cap, sizeof *r->found);
		}
		r->found[r->found_count++] =
			(struct bpe_pair){ of[0], of[1], r->waiting[i].rank, of[2] };
	}
	r->waiting_count = 0;
	buf_reset(&r->bytes);
	return 0;
}

static int add_merge(struct merge_reader *r, struct json_slice v, struct err *e)
{
	size_t start = r->bytes.len, cut;
	struct str part[2];
	bool is_bytes;

	if (split_merge(v, r->scratch, part))
		return err_set(e, ERR_PARSE, "has a merge (number %u) that is not two tokens",
			r->rank);
	is_bytes = add_part(r->vocab, part[0], &r->bytes);
	cut = r->bytes.len;
	/* A token that no bytes spell never stands in a word, so its merges never apply. */
	if (!is_bytes || !add_part(r->vocab, part[1], &r->bytes)) {
		r->bytes.len = start;
		r->rank++;
		return 0;
	}
	r->waiting[r->waiting_count].start = (uint32_t)start;
	r->waiting[r->waiting_count].cut = (uint32_t)cut;
	r->waiting[r->waiting_count].end = (uint32_t)r->bytes.len;
	r->waiting[r->waiting_count++].rank = r->rank++;
	return r->waiting_count == MERGES_TOGETHER ? look_up(r, e) : 0;
}

static int load_merges(struct model *m, const struct model_sections *s, struct err *e)
{
	struct merge_reader *r = mem_alloc(sizeof *r);
	struct json_iter it = json_iter(s->merges);
	struct json_slice value;
	struct str key;
	int rc;

	r->vocab = &m->vocab;
	while ((rc = json_each(&it, &key, &value)) > 0) {
		rc = add_merge(r, value, e);
		if (rc)
			break;
	}
	if (rc == 0)
		rc = look_up(r, e);
	if (rc == 0)
		bpe_index(&m->bpe, r->found, r->found_count);
	buf_release(&r->scratch[0]);
	buf_release(&r->scratch[1]);
	buf_release(&r->bytes);
	free(r->found);
	free(r);
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
	return load_merges(m, s, e);
}
