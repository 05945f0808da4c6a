/* SPDX-License-Identifier: Apache-2.0 */
/* slices.c - see slices.h. */
#include "data/slices.h"

#include <inttypes.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "data/random_gen.h"
#include "fetch/fetch.h"
#include "json/write.h"
#include "token/tokenizer.h"

#define AT_ONCE 256
#define AT_ONCE_TOKENS (1u << 22)

struct slices {
	const struct dataset_env *env;
	struct ids ids;    /* of the whole text */
	const struct random_lengths *length;
	size_t *start;
	size_t first, n;   /* of the lot */
	struct buf line[AT_ONCE];
};

static int read_ids(struct slices *s, const char *input, struct err *e)
{
	struct buf text = { 0 };
	int rc = fetch_is_url(input) ? fetch_url(input, s->env->cancel, &text, e) :
				       file_read(input, TOKEN_TEXT_BYTES_MAX, &text, e);

	if (rc == 0 && tokenizer_encode(s->env->tokenizer, buf_str(&text), false, &s->ids) < 0) {
		tokenizer_refuse(s->env->tokenizer, buf_str(&text), e);
		rc = err_wrap(e, "%s", input);
	}
	buf_release(&text);
	if (rc == 0 && s->ids.count == 0)
		rc = err_set(e, ERR_RUN, "%s: the text has no tokens", input);
	return rc;
}

static bool make_line(void *self, size_t i, unsigned worker)
{
	struct slices *s = self;
	struct json_writer w = json_writer(&s->line[i]);
	size_t index = s->first + i, length = (size_t)s->length->input[index];
	uint32_t *run = mem_array(length, sizeof(*run));
	struct buf text = { 0 };
	int rc;

	(void)worker;
	for (size_t k = 0, at = s->start[index]; k < length; k++) {
		run[k] = s->ids.id[at];
		at = at + 1 < s->ids.count ? at + 1 : 0;
	}
	rc = tokenizer_decode(s->env->tokenizer, run, length, false, &text);
	buf_reset(&s->line[i]);
	w.is_raw_utf8 = true;
	json_begin_object(&w);
	json_member_str(&w, "prompt", buf_str(&text));
	json_member_int(&w, "output_tokens", s->length->output[index]);
	json_end_object(&w);
	buf_add_char(&s->line[i], '\n');
	buf_release(&text);
	free(run);
	return rc == 0 && !s->line[i].is_over;
}

static int make_all(struct slices *s, size_t total,
		    int (*put)(void *self, struct str line, struct err *e), void *self,
		    struct err *e)
{
	for (s->first = 0; s->first < total; s->first += s->n) {
		size_t tokens = 0;

		if (dataset_go_on(s->env, e) < 0)
			return -1;
		for (s->n = 0; s->n < AT_ONCE && s->first + s->n < total && tokens < AT_ONCE_TOKENS;
		     s->n++)
			tokens += (size_t)s->length->input[s->first + s->n];
		if (parallel_for(s->env->threads, s->n, make_line, s) < s->n)
			return err_set(e, ERR_LIMIT, "a slice cannot be decoded, or has more than %llu "
				       "bytes", BUF_BYTES_MAX);
		for (size_t i = 0; i < s->n; i++)
			if (put(self, buf_str(&s->line[i]), e) < 0)
				return -1;
		dataset_progress(s->env, s->first + s->n, total);
	}
	return 0;
}

static void draw_starts(struct slices *s, size_t n)
{
	struct pyrandom rng;

	pyrandom_seed(&rng, (int64_t)s->env->seed);
	s->start = mem_array(n, sizeof(*s->start));
	for (size_t i = 0; i < n; i++)
		s->start[i] = (size_t)pyrandom_below(&rng, s->ids.count);
}

int slices_make(const char *input, const struct dataset_opts *o, const struct dataset_env *env,
		int (*put)(void *self, struct str line, struct err *e), void *self,
		struct err *e)
{
	struct slices *s = mem_alloc(sizeof(*s));
	struct random_gen gen = { 0 };
	struct random_lengths length = { 0 };
	size_t n = (size_t)env->num_prompts;
	int rc = -1;

	s->env = env;
	s->length = &length;
	if (env->num_prompts < 1 || env->num_prompts > REQUESTS_MAX)
		err_set(e, ERR_USAGE, "--num-prompts: expected 1 to %u, got %" PRId64, REQUESTS_MAX,
			env->num_prompts);
	else if (read_ids(s, input, e) == 0 &&
		 random_gen_open(&gen, env, RANDOM_IDS_UNDECLARED, e) == 0 &&
		 random_lengths_draw(&gen, o, o->random_input_len, o->random_output_len, n, &length,
				     e) == 0)
		rc = 0;
	if (rc == 0) {
		draw_starts(s, n);
		rc = make_all(s, n, put, self, e);
	}
	for (size_t i = 0; i < AT_ONCE; i++)
		buf_release(&s->line[i]);
	random_lengths_release(&length);
	random_gen_release(&gen);
	ids_release(&s->ids);
	free(s->start);
	free(s);
	return rc;
}
