/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - the built-in tokenizer. Encoding looks at most seven bytes ahead and
 * never back, so the ids of a text do not depend on what came before it.
 */
#include "token/sim.h"

#include <assert.h>

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* The token at the front of n > 0 bytes; its length goes to *used. */
static inline uint32_t sim_next(const char *p, size_t n, size_t *used)
{
	if (*p == ' ' && n >= 4 && is_lower(p[1]) && is_lower(p[2]) && is_lower(p[3])) {
		*used = 4;
		return SIM_WORD_FIRST +
			(uint32_t)(((p[1] - 'a') * 26 + (p[2] - 'a')) * 26 + (p[3] - 'a'));
	}
	if (*p == '<' && n >= sizeof SIM_END_TEXT - 1 &&
	    memcmp(p, SIM_END_TEXT, sizeof SIM_END_TEXT - 1) == 0) {
		*used = sizeof SIM_END_TEXT - 1;
		return SIM_END;
	}
	*used = 1;
	return (uint8_t)*p;
}

void sim_encode(struct str text, struct ids *out)
{
	uint32_t *to = ids_reserve(out, text.n);
	const uint32_t *start = to;

	for (size_t i = 0, used; i < text.n; i += used)
		*to++ = sim_next(text.p + i, text.n - i, &used);
	out->count += (size_t)(to - start);
	assert(out->count <= out->cap);
}

size_t sim_count(struct str text)
{
	size_t count = 0;

	for (size_t i = 0, used; i < text.n; i += used) {
		sim_next(text.p + i, text.n - i, &used);
		count++;
	}
	return count;
}

void sim_decode(const uint32_t *ids, size_t n, bool skip_special, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id = ids[i], word = id - SIM_WORD_FIRST;

		if (id < SIM_WORD_FIRST) {
			buf_add_char(out, (char)id);
		} else if (id < SIM_VOCAB) {
			char text[4] = { ' ', (char)('a' + word / (26 * 26)),
				(char)('a' + word / 26 % 26), (char)('a' + word % 26) };

			buf_add(out, text, sizeof text);
		} else if (id == SIM_END && !skip_special) {
			buf_add_text(out, SIM_END_TEXT);
		}
	}
}
