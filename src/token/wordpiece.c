/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wordpiece.c - two tries: one for the front of a word, one for what follows.
 */
#include "token/wordpiece.h"

#include <stdlib.h>

#include "base/mem.h"

void wordpiece_index(struct wordpiece *p, struct str prefix)
{
	const struct vocab *v = p->vocab;
	struct trie_key *key = mem_array(2 * v->id_limit, sizeof *key), *later = key + v->id_limit;
	size_t count = 0, later_count = 0;

	for (uint32_t id = 0; id < v->id_limit; id++) {
		struct str bytes = vocab_bytes(v, id);

		if (!v->entry[id].is_known || bytes.n == 0)
			continue;
		key[count++] = (struct trie_key){ bytes, id };
		if (bytes.n > prefix.n && str_starts(bytes, prefix))
			later[later_count++] = (struct trie_key){
				{ bytes.p + prefix.n, bytes.n - prefix.n }, id };
	}
	trie_build(&p->first, key, count);
	trie_build(&p->later, later, later_count);
	free(key);
}

void wordpiece_release(struct wordpiece *p)
{
	trie_release(&p->first);
	trie_release(&p->later);
	*p = (struct wordpiece){ 0 };
}

static bool has_more_chars(struct str word, uint32_t max)
{
	size_t chars = 0;

	if (word.n <= max)
		return false;
	for (size_t i = 0; i < word.n; i++)
		chars += ((uint8_t)word.p[i] & 0xc0) != 0x80;
	return chars > max;
}

void wordpiece_word(const struct wordpiece *p, struct str word, struct ids *out)
{
	const struct trie *trie = &p->first;
	size_t before = out->count, n = 0;

	if (has_more_chars(word, p->max_chars)) {
		ids_push(out, p->unk);
		return;
	}
	for (; word.n > 0; word = (struct str){ word.p + n, word.n - n }) {
		uint32_t id = trie_longest(trie, word, &n);

		if (id == TRIE_NONE) {
			out->count = before;
			ids_push(out, p->unk);
			return;
		}
		ids_push(out, id);
		trie = &p->later;
	}
}

void wordlevel_word(const struct wordpiece *p, struct str word, struct ids *out)
{
	uint32_t id = vocab_find(p->vocab, word.p, word.n);

	ids_push(out, id == VOCAB_NONE ? p->unk : id);
}
