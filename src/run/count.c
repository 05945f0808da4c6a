/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - token counts the server did not give: the answer's text is
 * tokenized once load is over (serve spec 4.1). Without a tokenizer one token
 * per request is assumed, as upstream does, and the row says so; likewise where a
 * server's tokenizer does not answer. The other text is counted in any case: a report
 * has to say what the count lacks.
 */
#include "run/count.h"

#include "json/read.h"

/* Tokens of a text that the record keeps; SIZE_MAX: not known. scratch: its two forms. */
static size_t count_text(const struct record *r, const struct request_row *row,
			 void (*text_of)(const struct record *, const struct request_row *,
					 struct buf *),
			 const struct tokenizer *t, struct buf scratch[2])
{
	buf_reset(&scratch[0]);
	buf_reset(&scratch[1]);
	text_of(r, row, &scratch[0]);
	if (scratch[0].len == 0)
		return 0;
	json_unescape(&scratch[1], buf_str(&scratch[0]));
	return tokenizer_count(t, buf_str(&scratch[1]), false);
}

static void count_row(const struct record *r, struct request_row *row, const struct tokenizer *t,
		      bool is_all_text, struct buf scratch[2])
{
	size_t answer = count_text(r, row, record_text_of, t, scratch);
	size_t other = count_text(r, row, record_other_text_of, t, scratch);

	if (answer == SIZE_MAX || other == SIZE_MAX) {
		row->output_tokens = 1;
		row->flags |= ROW_COUNT_UNKNOWN;
		return;
	}
	row->all_text_tokens = (uint32_t)(answer + other);
	row->output_tokens = is_all_text ? row->all_text_tokens : (uint32_t)answer;
	row->flags |= ROW_COUNTED;
}

/*
 * What a server without usage was sent. The workload states a turn's prompt with its history, whose
 * answers have the lengths that were asked for: the difference to the turn before holds that
 * answer, which may have come out shorter. An answer without an asked length is not in it.
 */
static void add_history(const struct record *r, struct request_row *row)
{
	const struct request_row *before;
	int64_t stated, surplus, prompt;

	if (row->history == RECORD_NONE || row->state != REQ_DONE || row->flags & ROW_HAS_USAGE)
		return;
	before = &r->row[row->history]; /* has a lower index: it is complete */
	stated = (int64_t)row->sample_prompt_tokens - before->sample_prompt_tokens;
	surplus = (int64_t)before->output_tokens - before->asked_tokens;
	prompt = (int64_t)before->prompt_tokens + stated + surplus;
	row->prompt_tokens = prompt > 0 ? (uint32_t)prompt : 0;
}

void count_missing(struct record *r, const struct tokenizer *t, bool is_all_text)
{
	struct buf scratch[2] = { 0 };

	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct request_row *row = &r->row[i];

		if (row->state != REQ_DONE || row->output_tokens)
			continue;
		if (t) {
			count_row(r, row, t, is_all_text, scratch);
		} else {
			row->output_tokens = 1;
			row->flags |= ROW_COUNT_UNKNOWN;
		}
	}
	for (uint32_t i = 0; i < r->n_rows; i++)
		add_history(r, &r->row[i]);
	buf_release(&scratch[0]);
	buf_release(&scratch[1]);
}
