/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what the readers of ranked tokens share.
 */
#include "token/ranks.h"

#include "base/codec.h"
#include "base/limits.h"
#include "base/mem.h"

int ranks_add(struct model *m, struct str base64, int64_t id, const char *what, size_t number,
	struct err *e)
{
	struct buf bytes = { 0 };
	int rc;

	if (id >= TOKEN_ID_MAX)
		return err_set(e, ERR_LIMIT, "%s %zu has the id %lld; ids are 0 to %u", what, number,
			(long long)id, TOKEN_ID_MAX - 1);
	if (base64.n / 4 * 3 > TOKEN_RANKED_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s %zu has a token of more than %u bytes", what,
			number, TOKEN_RANKED_BYTES_MAX);
	buf_reserve(&bytes, base64.n);
	if (base64_decode(base64, &bytes) && bytes.len > 0)
		rc = vocab_add(&m->vocab, buf_str(&bytes), id, e);
	else
		rc = err_set(e, ERR_PARSE, "%s %zu has \"%.*s\" where a token's bytes are "
			"expected in base64", what, number,
			(int)(base64.n < 64 ? base64.n : 64), base64.p);
	buf_release(&bytes);
	return rc;
}

static int check_bytes(const struct vocab *v, struct err *e)
{
	for (unsigned i = 0; i < 256; i++)
		if (vocab_find(v, (char[]){ (char)i }, 1) == VOCAB_NONE)
			return err_set(e, ERR_PARSE, "has no token for the byte 0x%02x; every byte "
				"must be one", i);
	return 0;
}

int ranks_index(struct model *m, uint32_t first, struct err *e)
{
	struct bpe *b = &m->bpe;
	uint32_t *rank;

	if (vocab_index(&m->vocab, e) || check_bytes(&m->vocab, e))
		return -1;
	m->kind = MODEL_BPE;
	b->vocab = &m->vocab;
	b->ignore_merges = true;
	b->unk = VOCAB_NONE;
	rank = mem_array(m->vocab.id_limit, sizeof *rank);
	for (uint32_t id = first; id < m->vocab.id_limit; id++)
		rank[id] = id - first;
	bpe_index_splits(b, rank);
	free(rank);
	return 0;
}
