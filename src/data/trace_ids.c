/* SPDX-License-Identifier: Apache-2.0 */
/* trace_ids.c - see trace_ids.h. */
#include "data/trace_ids.h"

#include <stdlib.h>

#include "base/fmt.h"
#include "base/mem.h"
#include "token/model.h"

static bool is_token(const struct tokenizer *t, uint32_t id)
{
	const struct model *m = tokenizer_model(t);

	return !m || m->vocab.entry[id].is_known;
}

int trace_ids_all(const struct tokenizer *t, uint32_t **out, size_t *n, struct err *e)
{
	size_t limit = tokenizer_id_limit(t), n_special;
	const uint32_t *special = tokenizer_special_ids(t, &n_special);
	bool *is_special = mem_array(limit, sizeof(*is_special));
	uint32_t *list = mem_array(limit, sizeof(*list));

	*n = 0;
	for (size_t i = 0; i < n_special; i++)
		if (special[i] < limit)
			is_special[special[i]] = true;
	for (uint32_t id = 0; id < limit; id++)
		if (!is_special[id] && is_token(t, id))
			list[(*n)++] = id;
	free(is_special);
	*out = list;
	return *n ? 0 : err_set(e, ERR_RUN, "the tokenizer has no tokens but special ones");
}

/* A blank and then letters: whatever stands before it, it begins a word of its own. */
static bool is_word(struct str text)
{
	if (text.n < 2 || text.p[0] != ' ')
		return false;
	for (size_t i = 1; i < text.n; i++)
		if ((text.p[i] | 0x20) < 'a' || (text.p[i] | 0x20) > 'z')
			return false;
	return true;
}

/* Twice in a row: some tokenizers treat the beginning of a text in a way of its own. */
static bool survives(const struct tokenizer *t, uint32_t id, struct buf *text, struct ids *again)
{
	const uint32_t twice[2] = { id, id };

	buf_reset(text);
	if (tokenizer_decode_bytes(t, twice, 1, false, text) < 0 || !is_word(buf_str(text)))
		return false;
	buf_reset(text);
	ids_reset(again);
	return tokenizer_decode(t, twice, 2, false, text) == 0 &&
	       tokenizer_encode(t, buf_str(text), false, again) == 0 && again->count == 2 &&
	       again->id[0] == id && again->id[1] == id;
}

void trace_ids_words(const struct tokenizer *t, uint32_t *id, size_t *n)
{
	uint32_t *word = mem_array(*n, sizeof(*word));
	struct buf text = { 0 };
	struct ids again = { 0 };
	size_t words = 0;

	for (size_t i = 0; i < *n; i++)
		if (survives(t, id[i], &text, &again))
			word[words++] = id[i];
	if (words >= TRACE_WORDS_MIN) {
		memcpy(id, word, words * sizeof(*word));
		*n = words;
	}
	free(word);
	buf_release(&text);
	ids_release(&again);
}

void trace_ids_put(struct buf *list, uint32_t id)
{
	char text[12];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + id % 10);
	while ((id /= 10) != 0);
	if (list->len > 1)
		buf_add_text(list, ", ");
	buf_add(list, text + at, sizeof(text) - at);
}

bool trace_ids_name(struct json_slice v, struct buf *out)
{
	char number[FMT_F64_BYTES];
	size_t before = out->len;
	double real;

	switch (v.kind) {
	case JSON_STRING:
		json_unescape(out, v.raw);
		if (out->len > before && memchr(out->data + before, '\0', out->len - before))
			return false;
		break;
	case JSON_INT:
		buf_add_str(out, str_is(v.raw, "-0") ? STR("0") : v.raw);
		break;
	case JSON_REAL:
		if (!json_to_f64(v, &real))
			return false;
		buf_add_text(out, fmt_f64(number, real));
		break;
	default:
		return false;
	}
	return true;
}
