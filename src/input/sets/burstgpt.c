/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burstgpt.c - lengths of recorded conversations with generated text; datasets spec 5.3.
 *
 * Rows of the model GPT-4 with an answer are drawn as pandas draws them. Columns are found by their
 * names. Eight bytes a row stay in memory, whatever else the file holds.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/sets/random.h"
#include "input/table/table.h"
#include "input/token/tokenizer.h"

#define MODEL "GPT-4"
#define LOT_ITEMS 1024

struct lengths_row { uint32_t input, output; };

struct burstgpt_build {
	const struct dataset_env *env;
	struct workload *w;
	struct lengths_row *row;  /* those that may be drawn */
	size_t rows, cap;
	size_t *drawn;            /* [wanted] into row */
	size_t wanted, vocab;
	/* The requests that are made at once. */
	size_t begin, n;
	struct ids ids[LOT_ITEMS];
	struct buf text[LOT_ITEMS];
};

/* ---- the file ---- */

/* CSV has texts, other formats numbers. false: neither a number nor empty; NAN: empty. */
static bool read_number(struct json_slice v, struct buf *text, double *out)
{
	*out = NAN;
	if (v.kind == JSON_NULL)
		return true;
	if (v.kind != JSON_STRING)
		return json_to_f64(v, out);
	buf_reset(text);
	json_unescape(text, v.raw);
	return text->len == 0 || str_to_f64(str_trim(buf_str(text)), out);
}

static int refuse_row(const struct table *t, size_t i, const char *column, struct err *e)
{
	struct buf where = { 0 };

	table_where(t, i, &where);
	err_set(e, ERR_PARSE, "%s: \"%s\" must be a whole number of 0 to %u", where.data, column,
		LENGTH_TOKENS_MAX);
	buf_release(&where);
	return -1;
}

static int refuse_column(const struct table *t, size_t i, const char *column, struct err *e)
{
	struct buf where = { 0 };

	table_where(t, i, &where);
	err_set(e, ERR_PARSE, "%s: there is no column \"%s\"; a BurstGPT file has \"Model\", \"Request "
		"tokens\" and \"Response tokens\"", where.data, column);
	buf_release(&where);
	return -1;
}

static bool is_length(double v)
{
	return v >= 0 && v <= LENGTH_TOKENS_MAX && v == floor(v);
}

static int read_row(struct burstgpt_build *b, struct table *t, size_t i, struct buf *text,
		    struct err *e)
{
	static const char *const name[] = { "Model", "Request tokens", "Response tokens" };
	struct json_slice row, cell[3];
	double input, output;

	if (table_row(t, i, &row, e) < 0)
		return -1;
	for (size_t k = 0; k < 3; k++)
		if (!json_member(row, name[k], &cell[k]))
			return refuse_column(t, i, name[k], e);
	buf_reset(text);
	if (cell[0].kind == JSON_STRING)
		json_unescape(text, cell[0].raw);
	if (!str_is(buf_str(text), MODEL))
		return 0;
	if (!read_number(cell[2], text, &output) || (output > 0 && !is_length(output)))
		return refuse_row(t, i, name[2], e);
	if (!(output > 0))
		return 0;
	if (!read_number(cell[1], text, &input) || !is_length(input))
		return refuse_row(t, i, name[1], e);
	b->row = mem_room(b->row, b->rows, &b->cap, sizeof(*b->row));
	b->row[b->rows++] = (struct lengths_row){ (uint32_t)input, (uint32_t)output };
	return 0;
}

static int read_file(struct burstgpt_build *b, const char *path, struct err *e)
{
	static const char *const columns[] = { "Model", "Request tokens", "Response tokens", NULL };
	struct table *t = table_open(path, &(struct table_opts){ .columns = columns,
								 .ending = file_is_stream(path) ? ".csv" : NULL,
								 .cancel = b->env->cancel }, e);
	struct buf text = { 0 };
	int rc = t ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < table_rows(t); i++)
		rc = dataset_go_on(b->env, e) < 0 ? -1 : read_row(b, t, i, &text, e);
	if (rc == 0 && b->rows == 0)
		rc = err_set(e, ERR_RUN, "%s: none of its %zu rows is of the model " MODEL " with "
			     "\"Response tokens\" above 0; nothing to send", path, table_rows(t));
	buf_release(&text);
	table_close(t);
	return rc;
}

/* ---- requests ---- */

/* Request i's text is made of the vocabulary's ids i, i + 1, ... */
static bool make_one(void *self, size_t item, unsigned worker)
{
	struct burstgpt_build *b = self;
	size_t i = b->begin + item, left = b->row[b->drawn[i]].input;
	struct ids *ids = &b->ids[item];

	(void)worker;
	ids_reset(ids);
	for (size_t id = i % b->vocab; left--; id = id + 1 == b->vocab ? 0 : id + 1)
		ids_push(ids, (uint32_t)id);
	buf_reset(&b->text[item]);
	return dataset_go_on(b->env, NULL) == 0 &&
	       tokenizer_decode(b->env->tokenizer, ids->id, ids->count, false, &b->text[item]) == 0;
}

static size_t lot_size(const struct burstgpt_build *b)
{
	size_t n = 0, tokens = 0;

	while (n < LOT_ITEMS && b->begin + n < b->wanted && (n == 0 || tokens < RANDOM_LOT_TOKENS))
		tokens += b->row[b->drawn[b->begin + n++]].input;
	return n;
}

static int make_lot(struct burstgpt_build *b, struct err *e)
{
	b->n = lot_size(b);
	if (parallel_for(b->env->threads, b->n, make_one, b) < b->n)
		return dataset_go_on(b->env, e) < 0 ? -1 :
		       err_set(e, ERR_LIMIT, "the text of a prompt is too long");
	for (size_t item = 0; item < b->n; item++) {
		const struct lengths_row *row = &b->row[b->drawn[b->begin + item]];
		struct sample *s = workload_add(b->w);

		s->prompt = buf_str(&b->text[item]);
		s->prompt_len = row->input;
		s->output_len = row->output;
		s->request_id = dataset_request_id(b->w, b->env, b->w->n - 1);
		if (workload_keep(b->w, &s->prompt, e) < 0)
			return -1;
		dataset_progress(b->env, b->w->n, b->wanted);
	}
	b->begin += b->n;
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct burstgpt_build *b = mem_alloc(sizeof(*b));
	int rc;

	(void)rng; /* upstream's rows are drawn with a state of their own */
	b->env = env;
	b->w = w;
	b->vocab = tokenizer_vocab_size(env->tokenizer);
	rc = read_file(b, o->path, e);
	b->wanted = env->num_prompts > 0 ? (size_t)env->num_prompts : b->rows; /* 0: every row */
	if (rc == 0 && b->wanted > REQUESTS_MAX)
		rc = err_set(e, ERR_LIMIT, "%zu requests are more than the limit of %u", b->wanted,
			     REQUESTS_MAX);
	if (rc == 0 && b->vocab == 0)
		rc = err_set(e, ERR_RUN, "the tokenizer %s has no tokens to make prompts of",
			     tokenizer_name(env->tokenizer));
	if (rc == 0) {
		b->drawn = mem_array(b->wanted, sizeof(*b->drawn));
		legacy_pandas_sample((uint32_t)env->seed, b->rows, b->drawn, b->wanted,
				     b->wanted > b->rows);
	}
	while (rc == 0 && b->begin < b->wanted)
		rc = make_lot(b, e);
	for (size_t i = 0; i < LOT_ITEMS; i++) {
		ids_release(&b->ids[i]);
		buf_release(&b->text[i]);
	}
	free(b->row);
	free(b->drawn);
	free(b);
	return rc;
}

const struct dataset dataset_burstgpt = {
	.name = "burstgpt", .summary = "recorded lengths (BurstGPT CSV) with made-up text",
	.needs_path = true, .needs_tokenizer = true, .takes_all = true, .build = build,
};
