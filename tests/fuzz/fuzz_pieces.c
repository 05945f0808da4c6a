/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pieces.c - a large file in pieces: whatever it is, it is cut or refused with one sentence,
 * and the pieces of a list that is JSON are lists that have all its members.
 *
 * The first byte says how many bytes a piece has at least.
 */
#include <stdint.h>

#include "check.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "mutate.h"
#include "results/read/pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Members of a piece that is JSON; of another one none. */
static size_t members(struct str piece, bool *is_json)
{
	struct arena a = { 0 };
	struct json_value *v = NULL;
	size_t n;

	*is_json = json_parse(&a, piece, &v, NULL) == 0;
	n = *is_json && v->kind == JSON_ARRAY ? v->count : 0;
	arena_release(&a);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data + 1, size - 1 };
	struct result_pieces p;
	struct buf piece = { 0 };
	struct err e = { 0 };
	size_t bytes = 0, in = 0, past = 0;
	bool is_json, is_whole;
	int more = 0;

	if (size < 2)
		return 0;
	if (result_pieces_begin(&p, text, data[0], &e) < 0) {
		CHECK(e.code == ERR_LIMIT && e.text[0]);
		return 0;
	}
	while ((more = result_pieces_next(&p, &piece, &e)) > 0) {
		CHECK(p.first == past + 1 && p.last >= p.first && piece.len > 0);
		past = p.last;
		bytes += piece.len;
		if (p.is_list)
			in += members(buf_str(&piece), &is_json);
	}
	CHECK(more == 0 || (e.code != ERR_NONE && e.text[0]));
	if (!p.is_list)
		CHECK(more == 0 && bytes <= text.n);
	else if (members(text, &is_whole) && is_whole)
		CHECK(more == 0 && in == past);
	buf_release(&piece);
	return 0;
}

/* Values, or lines; the first byte stays. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	if (size < 2)
		return LLVMFuzzerMutate(data, size, max);
	return 1 + (data[1] == '[' ? mutate_json(data + 1, size - 1, max - 1, seed) :
				     mutate_pieces(data + 1, size - 1, max - 1, '\n', seed));
}
