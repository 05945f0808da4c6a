/* SPDX-License-Identifier: Apache-2.0 */
/* llama_engine.c - see llama_engine.h. */
#include "llama_engine.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

#define LEN_DEFAULT_MAX 2048
#define CONTEXT_TOKENS_MAX (1u << 30)
#define PIECE_BYTES 512

/* ---- loading ---- */

static int context_check(struct llama_engine *g, struct err *e)
{
	const struct llama_library *l = &g->lib;
	uint32_t want = g->how.len_max * g->how.sequences;

	g->category = "other";
	if (l->n_ctx(g->context) < want || l->n_batch(g->context) != g->how.batch ||
	    l->n_seq_max(g->context) != g->how.sequences)
		return err_set(e, ERR_RUN, "%s made a context of %u tokens, batches of %u and %u "
			       "sequences; %u, %u and %u were asked for", l->path,
			       l->n_ctx(g->context), l->n_batch(g->context),
			       l->n_seq_max(g->context), want, g->how.batch, g->how.sequences);
	if (l->n_ctx_seq && l->n_ctx_seq(g->context) < g->how.len_max)
		return err_set(e, ERR_RUN, "%s gives a sequence %u tokens, not %u", l->path,
			       l->n_ctx_seq(g->context), g->how.len_max);
	return 0;
}

static int context_make(struct llama_engine *g, struct err *e)
{
	struct llama_load *how = &g->how;
	struct llama_parameters p;
	int32_t trained = g->lib.model_n_ctx_train(g->model);

	g->category = "flag";
	if (!how->len_max)
		how->len_max = trained > 0 && trained < LEN_DEFAULT_MAX ? (uint32_t)trained
									: LEN_DEFAULT_MAX;
	if (g->lib.max_parallel_sequences && how->sequences > g->lib.max_parallel_sequences())
		return err_set(e, ERR_USAGE, "--max-num-seqs %u: llama.cpp takes at most %zu",
			       how->sequences, g->lib.max_parallel_sequences());
	if ((uint64_t)how->len_max * how->sequences > CONTEXT_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--max-model-len %u times --max-num-seqs %u is more than "
			       "%u tokens", how->len_max, how->sequences, CONTEXT_TOKENS_MAX);
	g->category = "other";
	if (llama_library_context(&g->lib, how->len_max * how->sequences, how->batch,
				  how->sequences, &p, e) < 0)
		return -1;
	g->context = g->lib.init_from_model(g->model, p);
	g->category = "memory";
	if (!g->context)
		return err_set(e, ERR_RUN, "llama.cpp made no context of %u tokens for %s",
			       how->len_max * how->sequences, how->model);
	return context_check(g, e);
}

/* The library's own choice is 4, which more than halves its speed where there are fewer. */
static int32_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int llama_engine_load(struct llama_engine *g, const struct llama_load *how, struct err *e)
{
	g->how = *how;
	g->category = "model";
	if (access(how->model, R_OK) < 0)
		return err_set(e, ERR_RUN, "no such model file: %s", how->model);
	g->model = g->lib.model_load_from_file(how->model, g->lib.model_default_params());
	if (!g->model)
		return err_set(e, ERR_RUN, "llama.cpp cannot load %s; its log says why", how->model);
	g->vocab = g->lib.model_get_vocab(g->model);
	if (context_make(g, e) < 0)
		return -1;
	g->memory = g->lib.get_memory(g->context);
	if (!g->how.threads)
		g->how.threads = processors();
	g->lib.set_n_threads(g->context, g->how.threads, g->how.threads);
	g->category = NULL;
	return 0;
}

void llama_engine_release(struct llama_engine *g)
{
	if (g->context)
		g->lib.free(g->context);
	if (g->model)
		g->lib.model_free(g->model);
	g->context = NULL;
	g->model = NULL;
}

/* ---- a run ---- */

struct place {          /* of a sequence in the context */
	bool is_taken;
	size_t request;
	const int32_t *prompt;
	int32_t prompt_n, at; /* at: tokens of the prompt that went in */
	int32_t last;
	uint32_t made;
	int32_t row;          /* of the step, whose logits are its next token's; -1: none */
};

struct steps {
	struct llama_engine *g;
	struct llama_run *run;
	struct place *place;
	struct llama_batch batch;
	struct llama_sampler *sampler;
	int32_t **prompt;     /* ids of requests that are text; NULL: the request has ids */
	size_t next, done, total; /* sequences */
};

static struct llama_sampler *sampler_make(const struct llama_engine *g, const struct llama_run *run)
{
	const struct llama_library *l = &g->lib;
	struct llama_sampler *chain = l->sampler_chain_init((struct llama_chain){ true });

	if (run->temperature <= 0) {
		l->sampler_chain_add(chain, l->sampler_init_greedy());
		return chain;
	}
	if (run->temperature != 1)
		l->sampler_chain_add(chain, l->sampler_init_temp(run->temperature));
	if (run->top_p < 1)
		l->sampler_chain_add(chain, l->sampler_init_top_p(run->top_p, 1));
	l->sampler_chain_add(chain, l->sampler_init_dist(g->how.seed));
	return chain;
}

static int prompt_tokenize(struct steps *s, size_t i, struct err *e)
{
	const struct llama_library *l = &s->g->lib;
	const struct llama_request *r = &s->run->request[i];
	int32_t n = r->tokens;

	if (r->text.p) {
		int32_t bytes = (int32_t)r->text.n, max = bytes + 8;

		s->prompt[i] = mem_array((size_t)max, sizeof(int32_t));
		n = l->tokenize(s->g->vocab, r->text.p, bytes, s->prompt[i], max, true, true);
	}
	if (n <= 0)
		return err_set(e, ERR_RUN, "request %zu has no tokens", i);
	s->run->prompt_tokens[i] = (uint32_t)n;
	if ((uint64_t)n + (r->output_len == UINT32_MAX ? 1 : r->output_len) > s->g->how.len_max)
		return err_set(e, ERR_RUN, "request %zu has %d tokens and asks for %u: more than "
			       "--max-model-len %u", i, n, r->output_len, s->g->how.len_max);
	return 0;
}

static void places_fill(struct steps *s)
{
	for (uint32_t i = 0; i < s->g->how.sequences && s->next < s->total; i++) {
		struct place *p = &s->place[i];
		size_t r = s->next / s->run->n;

		if (p->is_taken)
			continue;
		*p = (struct place){
			.is_taken = true, .request = r, .row = -1,
			.prompt = s->prompt[r] ? s->prompt[r] : s->run->request[r].token,
			.prompt_n = (int32_t)s->run->prompt_tokens[r],
		};
		s->next++;
	}
}

static void batch_add(struct llama_batch *b, int32_t token, int32_t pos, uint32_t sequence,
		      bool has_logits)
{
	int32_t i = b->n_tokens++;

	b->token[i] = token;
	b->pos[i] = pos;
	b->n_seq_id[i] = 1;
	b->seq_id[i][0] = (int32_t)sequence;
	b->logits[i] = has_logits;
}

static void batch_fill(struct steps *s)
{
	struct llama_batch *b = &s->batch;
	int32_t room = (int32_t)s->g->how.batch;

	b->n_tokens = 0;
	for (uint32_t i = 0; i < s->g->how.sequences; i++) {
		struct place *p = &s->place[i];

		p->row = -1;
		if (!p->is_taken || p->at < p->prompt_n || b->n_tokens == room)
			continue;
		p->row = b->n_tokens;
		batch_add(b, p->last, p->prompt_n + (int32_t)p->made - 1, i, true);
	}
	for (uint32_t i = 0; i < s->g->how.sequences; i++) {
		struct place *p = &s->place[i];

		while (p->is_taken && p->at < p->prompt_n && b->n_tokens < room) {
			bool is_last = p->at + 1 == p->prompt_n;

			if (is_last)
				p->row = b->n_tokens;
			batch_add(b, p->prompt[p->at], p->at, i, is_last);
			p->at++;
		}
	}
}

static void place_finish(struct steps *s, uint32_t i)
{
	struct place *p = &s->place[i];

	s->run->output_tokens[p->request] += p->made;
	s->g->lib.memory_seq_rm(s->g->memory, (int32_t)i, -1, -1);
	p->is_taken = false;
	s->done++;
}

static void tokens_take(struct steps *s)
{
	const struct llama_library *l = &s->g->lib;
	const struct llama_run *run = s->run;
	char piece[PIECE_BYTES];

	for (uint32_t i = 0; i < s->g->how.sequences; i++) {
		struct place *p = &s->place[i];

		if (!p->is_taken || p->row < 0)
			continue;
		p->last = l->sampler_sample(s->sampler, s->g->context, p->row);
		p->made++;
		if (run->detokenize)
			l->token_to_piece(s->g->vocab, p->last, piece, sizeof(piece), 0, false);
		if (p->made >= run->request[p->request].output_len ||
		    (uint32_t)p->prompt_n + p->made >= s->g->how.len_max ||
		    (!run->ignore_eos && l->vocab_is_eog(s->g->vocab, p->last)))
			place_finish(s, i);
	}
}

static int step(struct steps *s, struct err *e)
{
	int32_t rc;

	places_fill(s);
	batch_fill(s);
	rc = s->g->lib.decode(s->g->context, s->batch);
	if (rc) {
		s->g->category = rc == 1 ? "memory" : "other";
		return err_set(e, ERR_RUN, "llama_decode of %d tokens gave %d%s", s->batch.n_tokens, rc,
			       rc == 1 ? ": no room in the KV cache" : "");
	}
	tokens_take(s);
	if (s->run->progress)
		s->run->progress(s->run->self, s->done, s->total);
	return 0;
}

int llama_engine_run(struct llama_engine *g, struct llama_run *run, struct err *e)
{
	struct steps s = { .g = g, .run = run, .total = run->requests * run->n };
	int rc = 0;

	g->category = "other";
	s.place = mem_array(g->how.sequences, sizeof(*s.place));
	s.prompt = mem_array(run->requests, sizeof(*s.prompt));
	s.batch = g->lib.batch_init((int32_t)g->how.batch, 0, 1);
	s.sampler = sampler_make(g, run);
	for (uint32_t i = 0; i < g->how.sequences; i++)
		g->lib.memory_seq_rm(g->memory, (int32_t)i, -1, -1);
	run->began_ns = clock_mono_ns();
	for (size_t i = 0; rc == 0 && i < run->requests; i++)
		rc = prompt_tokenize(&s, i, e);
	while (rc == 0 && s.done < s.total)
		rc = step(&s, e);
	run->ended_ns = clock_mono_ns();
	for (size_t i = 0; i < run->requests; i++)
		free(s.prompt[i]);
	free(s.prompt);
	free(s.place);
	g->lib.batch_free(s.batch);
	g->lib.sampler_free(s.sampler);
	return rc;
}
