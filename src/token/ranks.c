/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what the readers of ranked tokens share.
 */
#include "token/ranks.h"

#include "base/limits.h"
#include "base/mem.h"
#include "json/write.h"
#include "token/base64.h"

static void write_pre_tokenizer(struct buf *out, struct str pattern)
{
	if (pattern.n > 0) {
		buf_add_text(out, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
			"\"pattern\":{\"Regex\":");
		json_quote(out, pattern, true);
		buf_add_text(out, "},\"behavior\":\"Isolated\",\"invert\":false},");
	}
	buf_printf(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
		"\"trim_offsets\":true,\"use_regex\":%s}", pattern.n ? "false" : "true");
	if (pattern.n > 0)
		buf_add_text(out, "]}");
}

static void write_post_processor(struct buf *out, struct str bos, uint32_t id)
{
	struct buf name = { 0 };

	json_quote(&name, bos, true);
	buf_printf(out, "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":%s,"
		"\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
		"\"special_tokens\":{%s:{\"id\":%s,\"ids\":[%u],\"tokens\":[%s]}}}",
		name.data, name.data, name.data, id, name.data);
	buf_release(&name);
}

int ranks_load_stages(struct model *m, const struct ranks_stages *s, struct err *e)
{
	struct buf pre = { 0 }, post = { 0 };
	struct stage_texts text = { .decoder = STR("{\"type\":\"ByteLevel\"}") };
	int rc;

	write_pre_tokenizer(&pre, s->pattern);
	if (s->bos.n > 0)
		write_post_processor(&post, s->bos, s->bos_id);
	if (s->is_nfc)
		text.normalizer = STR("{\"type\":\"NFC\"}");
	text.pre_tokenizer = buf_str(&pre);
	text.post_processor = buf_str(&post);
	rc = stages_load(m, &text, e);
	buf_release(&pre);
	buf_release(&post);
	return rc;
}

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
	bpe_add_splits(b, rank);
	free(rank);
	bpe_index(b);
	return 0;
}
