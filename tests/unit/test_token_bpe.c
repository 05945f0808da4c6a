/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-pair encoding: the walk over tokens against plain merging, on thousands of
 * small random vocabularies, of which many make tokens in odd orders; and the trie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/mem.h"
#include "input/encode/bpe.h"

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* Symbols are characters of one to three bytes. */
static const char *const SYMBOL[] = { "a", "b", "c", "\xc3\xa9", "\xe4\xb8\xad" };
#define SYMBOLS 5

struct sample {
	struct vocab vocab;
	struct bpe bpe;
	uint32_t *rank;
};

static void add_token(struct sample *s, const char *text, size_t n)
{
	struct str spelled = { text, n };

	for (uint32_t id = 0; id < s->vocab.id_limit; id++)
		if (str_eq(vocab_bytes(&s->vocab, id), spelled))
			return;
	assert_int_equal(vocab_add(&s->vocab, spelled, (int64_t)s->vocab.id_limit, NULL), 0);
}

static void add_fallback(struct sample *s, unsigned byte)
{
	char text[8];

	snprintf(text, sizeof text, "<0x%02X>", byte);
	add_token(s, text, 6);
}

static uint32_t find(const struct sample *s, const char *p, size_t n)
{
	return vocab_find(&s->vocab, p, n);
}

/* The bytes that symbols are made of come first, so that tokens are made of them. */
static void add_bytes(struct sample *s)
{
	static const char used[] = "abc\xc3\xa9\xe4\xb8\xad";

	for (size_t i = 0; i < sizeof used - 1; i++)
		add_token(s, used + i, 1);
}

static void add_other_bytes(struct sample *s)
{
	for (unsigned i = 0; i < 256; i++)
		add_token(s, (char[]){ (char)i }, 1);
}

/* Tokens made by joining two at random; merges of random cuts with ranks in random order. */
static void make_sample(struct sample *s, bool is_by_rank, bool is_chars)
{
	size_t symbols = 1 + below(SYMBOLS), tokens = 1 + below(12), n = 0;
	uint32_t order[512], grown;
	struct bpe_pair merge[512];

	*s = (struct sample){ 0 };
	vocab_init(&s->vocab, false, 256);
	for (size_t i = 0; is_chars && i < symbols; i++)
		add_token(s, SYMBOL[i], strlen(SYMBOL[i]));
	if (!is_chars)
		add_bytes(s);
	for (size_t i = 0; i < tokens; i++) {
		char joined[256];
		struct str a = vocab_bytes(&s->vocab, below((uint32_t)s->vocab.id_limit));
		struct str b = vocab_bytes(&s->vocab, below((uint32_t)s->vocab.id_limit));

		if (a.n + b.n > 40)
			continue;
		memcpy(joined, a.p, a.n);
		memcpy(joined + a.n, b.p, b.n);
		add_token(s, joined, a.n + b.n);
	}
	grown = (uint32_t)s->vocab.id_limit;
	if (!is_chars)
		add_other_bytes(s);
	else if (below(2))
		for (unsigned i = 0; i < 256; i++)
			add_fallback(s, i);
	assert_int_equal(vocab_index(&s->vocab, NULL), 0);
	s->bpe = (struct bpe){ .vocab = &s->vocab, .is_chars = is_chars, .unk = VOCAB_NONE,
		.has_byte_fallback = is_chars && s->vocab.id_limit > grown };
	s->rank = mem_array(s->vocab.id_limit, sizeof *s->rank);
	for (uint32_t id = 0; id < s->vocab.id_limit; id++)
		s->rank[id] = id < grown ? below(20) : BPE_NEVER;
	if (is_by_rank) {
		bpe_index_splits(&s->bpe, s->rank);
		return;
	}
	for (uint32_t id = 0; id < grown; id++) {
		struct str t = vocab_bytes(&s->vocab, id);

		for (size_t cut = 1; cut < t.n && n < 512; cut++) {
			uint32_t left = find(s, t.p, cut), right = find(s, t.p + cut, t.n - cut);

			if (left == VOCAB_NONE || right == VOCAB_NONE || below(4) == 0)
				continue;
			merge[n] = (struct bpe_pair){ left, right, 0, id };
			order[n] = (uint32_t)n;
			n++;
		}
	}
	/* Nearly sorted, as real files are, or shuffled. */
	for (size_t i = 0, swaps = below(3) ? below(4) : 4 * n; n > 1 && i < swaps; i++) {
		uint32_t a = below((uint32_t)n), b = below((uint32_t)n), t = order[a];

		order[a] = order[b];
		order[b] = t;
	}
	for (size_t i = 0; i < n; i++)
		merge[i].rank = order[i];
	bpe_index(&s->bpe, merge, n);
}

static void free_sample(struct sample *s)
{
	bpe_release(&s->bpe);
	vocab_release(&s->vocab);
	free(s->rank);
}

/* The definition: the pair of the lowest rank, the leftmost of equals, until there is none. */
static void merge_plainly(const struct bpe *b, struct str text, struct ids *out)
{
	bpe_spell(b, text, out);
	for (;;) {
		const struct bpe_pair *best = NULL;
		size_t at = 0;

		for (size_t i = 0; i + 1 < out->count; i++) {
			const struct bpe_pair *pair = bpe_find(b, out->id[i], out->id[i + 1]);

			if (pair && (!best || pair->rank < best->rank)) {
				best = pair;
				at = i;
			}
		}
		if (!best)
			return;
		out->id[at] = best->id;
		out->count--;
		memmove(out->id + at + 1, out->id + at + 2,
			(out->count - at - 1) * sizeof *out->id);
	}
}

static size_t odd_tokens, lost_tokens, cuts;

static void check_sample(struct sample *s, struct bpe_work *w)
{
	struct ids want = { 0 }, got = { 0 };
	char text[1024];

	for (uint32_t id = 0; id < s->vocab.id_limit; id++) {
		odd_tokens += s->bpe.token[id].order == BPE_ODD;
		lost_tokens += s->bpe.token[id].order == BPE_NEVER;
	}
	for (int round = 0; round < 12; round++) {
		size_t symbols = 1 + below(round ? 24 : 200), n = 0;
		struct str rest;

		for (size_t i = 0; i < symbols; i++) {
			const char *symbol = SYMBOL[below(SYMBOLS)];

			memcpy(text + n, symbol, strlen(symbol));
			n += strlen(symbol);
		}
		rest = (struct str){ text, n };
		merge_plainly(&s->bpe, rest, &want);
		ids_reset(&got);
		bpe_word(&s->bpe, w, rest, &got);
		assert_int_equal(got.count, want.count);
		assert_memory_equal(got.id, want.id, want.count * sizeof *want.id);
		/* Cut where that is allowed: the same. */
		ids_reset(&got);
		while (s->bpe.seam && rest.n > 0) {
			size_t cut = bpe_cut(&s->bpe, rest);

			bpe_word(&s->bpe, w, (struct str){ rest.p, cut }, &got);
			cuts += cut < rest.n;
			rest = (struct str){ rest.p + cut, rest.n - cut };
		}
		assert_true(!s->bpe.seam || (got.count == want.count &&
			memcmp(got.id, want.id, want.count * sizeof *want.id) == 0));
	}
	ids_release(&want);
	ids_release(&got);
}

static void test_walk_equals_merging(void **state)
{
	(void)state;
	for (seed = 1; seed < 4000; seed++) {
		uint64_t at = seed;
		struct bpe_work *w = bpe_work_new();
		struct sample s;

		make_sample(&s, at % 2, at / 2 % 2);
		check_sample(&s, w);
		free_sample(&s);
		bpe_work_free(w);
		seed = at;
	}
	/* The samples hold what they are for. */
	assert_true(odd_tokens > 300);
	assert_true(lost_tokens > 300);
	assert_true(cuts > 3000);
}

static void test_trie(void **state)
{
	struct trie_key key[300];
	char text[300][12];
	struct trie t;

	(void)state;
	seed = 7;
	for (size_t i = 0; i < 300; i++) {
		size_t n = 1 + below(11);

		for (size_t k = 0; k < n; k++)
			text[i][k] = (char)(below(8) ? 'a' + (int)below(3) : (int)below(256));
		key[i] = (struct trie_key){ { text[i], n }, (uint32_t)i };
	}
	trie_build(&t, key, 300);
	for (size_t round = 0; round < 20000; round++) {
		char word[14];
		size_t n = below(14), best = 0, length = 0;
		uint32_t got;

		for (size_t k = 0; k < n; k++)
			word[k] = (char)(below(12) ? 'a' + (int)below(3) : (int)below(256));
		for (size_t i = 0; i < 300; i++)
			if (key[i].bytes.n <= n && key[i].bytes.n > best &&
				memcmp(key[i].bytes.p, word, key[i].bytes.n) == 0)
				best = key[i].bytes.n;
		got = trie_longest(&t, (struct str){ word, n }, &length);
		assert_int_equal(got != TRIE_NONE, best > 0);
		if (best == 0)
			continue;
		assert_int_equal(length, best);
		assert_memory_equal(text[got], word, best);
		for (size_t i = 0; i < got; i++) /* the first of equal keys */
			assert_false(strncmp(text[i], text[got], best) == 0 && key[i].value == i &&
				key[i].bytes.n == best && str_eq(key[i].bytes, key[got].bytes));
	}
	trie_release(&t);
	trie_build(&t, key, 0);
	assert_int_equal(trie_longest(&t, STR("abc"), &(size_t){ 0 }), TRIE_NONE);
	trie_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_equals_merging),
		cmocka_unit_test(test_trie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
