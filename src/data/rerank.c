/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rerank.c - random-rerank: one random query and random documents, in lists of a query and
 * some documents each; datasets spec 3.8.
 *
 * A list for a reranker is scored pair by pair, so its query counts once for each document,
 * with a separator; --no-reranker sends the list to an embedder, where it is one of the texts.
 */
#include <inttypes.h>

#include "base/limits.h"
#include "data/random_gen.h"
#include "json/write.h"
#include "token/tokenizer.h"

struct build {
	const struct dataset_env *env;
	struct workload *w;
	bool is_reranker;
	size_t documents;  /* per list */
	size_t all;        /* documents in all */
	struct buf query;  /* quoted */
	size_t query_tokens;
	struct buf list;   /* the one that is being filled */
	size_t in_list, tokens;
};

static int take_query(void *self, const struct random_prompt *p, struct err *e)
{
	struct build *b = self;

	(void)e;
	json_quote(&b->query, p->text, false);
	b->query_tokens = p->tokens;
	return 0;
}

static int end_list(struct build *b, struct err *e)
{
	size_t tokens = b->tokens + (b->is_reranker ? (b->query_tokens + 1) * b->in_list :
						      b->query_tokens);
	struct sample *s;

	buf_add_char(&b->list, ']');
	if (b->list.is_over || tokens > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--random-batch-size: the texts of one request have "
			       "more than %llu bytes", BUF_BYTES_MAX);
	s = workload_add(b->w);
	s->prompt = buf_str(&b->list);
	s->kind = PROMPT_JSON;
	s->prompt_len = (uint32_t)tokens;
	s->sequences = (uint32_t)(b->in_list + !b->is_reranker);
	s->request_id = dataset_request_id(b->w, b->env, b->w->n - 1);
	if (workload_keep(b->w, &s->prompt, e) < 0)
		return -1;
	buf_reset(&b->list);
	b->in_list = b->tokens = 0;
	return 0;
}

static int take_document(void *self, const struct random_prompt *p, struct err *e)
{
	struct build *b = self;

	if (b->in_list++ == 0) {
		buf_add_char(&b->list, '[');
		buf_add_str(&b->list, buf_str(&b->query));
	}
	buf_add_text(&b->list, ", ");
	json_quote(&b->list, p->text, false);
	b->tokens += p->tokens;
	return b->in_list == b->documents || p->index + 1 == b->all ? end_list(b, e) : 0;
}

static int fill(struct random_gen *g, const struct dataset_opts *o, struct build *b, struct err *e)
{
	const struct ids no_prefix = { 0 };
	struct random_lengths query = { 0 }, documents = { 0 };
	int64_t length = o->random_input_len, asked = b->is_reranker ? length / 2 - 1 : length;
	int rc = -1;

	if (random_lengths_draw(g, o, asked, 0, 1, &query, e) < 0 ||
	    random_prompts(g, &no_prefix, &query, 0, take_query, b, e) < 0)
		goto done;
	if (b->is_reranker)
		length -= query.input[0] + 1;
	if (random_lengths_draw(g, o, length, 0, b->all, &documents, e) == 0)
		rc = random_prompts(g, &no_prefix, &documents, 1, take_document, b, e);
done:
	random_lengths_release(&query);
	random_lengths_release(&documents);
	return rc;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	if (random_check_count(env, e) < 0)
		return -1;
	if (o->random_batch_size < 1)
		return err_set(e, ERR_USAGE, "--random-batch-size %" PRId64 ": at least 1 is needed",
			       o->random_batch_size);
	if (o->no_reranker && env->num_prompts < 2)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 ": with --no-reranker the query is "
			       "one of them, so at least 2 are needed", env->num_prompts);
	if (o->no_reranker && o->random_batch_size < 2)
		return err_set(e, ERR_USAGE, "--random-batch-size %" PRId64 ": with --no-reranker the "
			       "query is one of the texts of a request, so at least 2 are needed",
			       o->random_batch_size);
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	size_t query_counts = o->no_reranker;
	struct build b = {
		.env = env, .w = w, .is_reranker = !o->no_reranker,
		.documents = (size_t)o->random_batch_size - query_counts,
		.all = (size_t)env->num_prompts - query_counts,
	};
	struct random_gen g;
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (check(o, env, e) < 0 || random_gen_open(&g, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	g.is_sole = true;
	rc = fill(&g, o, &b, e);
	if (rc == 0)
		random_note_mismatch(g.mismatch, w);
	random_gen_release(&g);
	buf_release(&b.query);
	buf_release(&b.list);
	return rc;
}

static const char *const options[] = {
	"random-input-len", "random-range-ratio", "random-batch-size", "no-reranker", "input-len",
	NULL,
};

const struct dataset dataset_random_rerank = {
	.options = options,
	.name = "random-rerank", .summary = "a random query with random documents, for reranking",
	.forbids_path = true, .needs_tokenizer = true, .build = build, .check = check,
};
