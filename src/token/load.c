/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - a tokenizer's file by the reader that knows it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"
#include "base/limits.h"
#include "token/reader.h"

static const struct reader *const READERS[] = {
	&reader_tiktoken, &reader_tekken, &reader_sentencepiece, &reader_merges, &reader_json,
};

static int read_bytes(struct model *m, const char *path, struct str bytes, struct err *e)
{
	size_t i = 0;

	if (bytes.n > TOKEN_FILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "has %zu bytes; at most %u are read", bytes.n,
			TOKEN_FILE_BYTES_MAX);
	while (!READERS[i]->is_mine(str_of(path), bytes))
		i++;
	snprintf(m->format, sizeof m->format, "%s", READERS[i]->name);
	if (READERS[i]->read(m, path, bytes, e))
		return -1;
	return model_index_added(m, e) ? -1 : decoder_index(m, e);
}

int model_load(struct model *m, const char *path, struct err *e)
{
	struct str bytes;
	int rc;

	if (file_map(path, &bytes, e))
		return -1;
	rc = read_bytes(m, path, bytes, e);
	file_unmap(bytes);
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
