/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - token counts the server did not give: the answer's text is
 * tokenized once load is over (serve spec 4.1). Without a tokenizer one token
 * per request is assumed, as upstream does, and the row says so; likewise where a
 * server's tokenizer does not answer.
 */
#include "run/count.h"

#include "json/read.h"

void count_missing(struct record *r, const struct tokenizer *t)
{
	struct buf escaped = { 0 }, text = { 0 };

	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct request_row *row = &r->row[i];
		size_t tokens;

		if (row->state != REQ_DONE || row->output_tokens)
			continue;
		if (!t) {
			row->output_tokens = 1;
			row->flags |= ROW_COUNT_UNKNOWN;
			continue;
		}
		buf_reset(&escaped);
		buf_reset(&text);
		record_text_of(r, row, &escaped);
		json_unescape(&text, buf_str(&escaped));
		tokens = tokenizer_count(t, buf_str(&text), false);
		row->output_tokens = tokens == SIZE_MAX ? 1 : (uint32_t)tokens;
		row->flags |= tokens == SIZE_MAX ? ROW_COUNT_UNKNOWN : ROW_COUNTED;
	}
	buf_release(&escaped);
	buf_release(&text);
}
