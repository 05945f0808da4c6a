/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonnet.c - an instruction and lines of a poem up to a number of tokens; datasets spec 5.4.
 *
 * The first lines are shared by all prompts, the others are drawn with replacement from Python's
 * generator in its current state. A prompt that is too long is drawn again; upstream repeats this
 * forever when none can fit, here the tries are limited.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "input/chat/chat.h"
#include "input/data/build.h"
#include "input/fetch/fetch.h"
#include "input/sets/datasets.h"
#include "input/sets/random.h"
#include "input/token/tokenizer.h"

/* ---- sonnet ---- */

#define INSTRUCTION "Pick as many lines as you can from these poem lines:\n"
#define TRIES_MIN 1000
#define TRIES_PER_PROMPT 20
#define EXTRA_LINES_MAX (1u << 20) /* of one prompt */
/* The option's name depends on the command. */
#define INPUT_LEN "--sonnet-input-len (bench throughput: --input-len)"

struct sonnet {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct compat_rng *rng;
	struct str *line; /* with their line ends */
	size_t lines;
	size_t prefix_lines, extra_lines;
	size_t *drawn;
	struct buf text, wrapped;
};

/* Lines as Python's text files have them: \r\n and \r are \n. */
static void cut_lines(struct sonnet *s, struct buf *file)
{
	size_t n = 0, cap = 0, begin = 0;

	for (size_t i = 0; i < file->len; i++) {
		if (file->data[i] == '\r' && i + 1 < file->len && file->data[i + 1] == '\n')
			continue;
		file->data[n++] = file->data[i] == '\r' ? '\n' : file->data[i];
	}
	file->len = n;
	for (size_t i = 0; i < n; i++) {
		if (file->data[i] != '\n' && i + 1 < n)
			continue;
		s->line = mem_room(s->line, s->lines, &cap, sizeof(*s->line));
		s->line[s->lines++] = (struct str){ file->data + begin, i + 1 - begin };
		begin = i + 1;
	}
}

static struct str format(struct sonnet *s, struct str text)
{
	if (!dataset_has_chat(s->env))
		return text;
	buf_reset(&s->wrapped);
	chat_apply(s->env->chat, text, &s->wrapped);
	return buf_str(&s->wrapped);
}

/* The number of lines, from the mean length of one. */
static int plan_lines(struct sonnet *s, struct err *e)
{
	const struct dataset_opts *o = s->o;
	size_t *tokens = mem_array(s->lines, sizeof(*tokens)), sum = 0;
	size_t base = tokenizer_count(s->env->tokenizer, format(s, STR(INSTRUCTION)), true);
	double mean, input, prefix;
	int rc = tokenizer_count_batch(s->env->tokenizer, s->line, s->lines, true, s->env->threads,
				       tokens, e);

	for (size_t i = 0; rc == 0 && i < s->lines; i++)
		sum += tokens[i];
	free(tokens);
	if (rc < 0)
		return err_wrap(e, "%s", o->path);
	if (base == SIZE_MAX)
		return tokenizer_refuse(s->env->tokenizer, format(s, STR(INSTRUCTION)), e);
	if (o->sonnet_input_len <= (int64_t)base)
		return err_set(e, ERR_USAGE, "prompts of %" PRId64 " tokens are too short for sonnet: the "
			       "instruction alone has %zu tokens; raise " INPUT_LEN,
			       o->sonnet_input_len, base);
	if (sum == 0)
		return err_set(e, ERR_RUN, "%s: its lines have no tokens", o->path);
	mean = (double)sum / (double)s->lines;
	/* nearbyint rounds halves to the even number, as Python's round() does. */
	input = fmax(nearbyint((double)(o->sonnet_input_len - (int64_t)base) / mean), 1);
	prefix = fmax(nearbyint((double)(o->sonnet_prefix_len - (int64_t)base) / mean), 0);
	if (input > EXTRA_LINES_MAX)
		return err_set(e, ERR_USAGE, "prompts of %" PRId64 " tokens would need more than %u lines; "
			       "lower " INPUT_LEN, o->sonnet_input_len, EXTRA_LINES_MAX);
	s->extra_lines = input > prefix ? (size_t)(input - prefix) : 0;
	s->prefix_lines = prefix < (double)s->lines ? (size_t)prefix : s->lines;
	s->drawn = mem_array(s->extra_lines, sizeof(*s->drawn));
	return 0;
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct sonnet *s = self;
	bool is_bare = dataset_sends_messages(s->env); /* messages: the server templates */

	(void)i;
	buf_reset(&s->text);
	buf_add_text(&s->text, INSTRUCTION);
	for (size_t k = 0; k < s->prefix_lines; k++)
		buf_add_str(&s->text, s->line[k]);
	pyrandom_choices(&s->rng->py, s->lines, s->drawn, s->extra_lines);
	for (size_t k = 0; k < s->extra_lines; k++)
		buf_add_str(&s->text, s->line[s->drawn[k]]);
	if (s->text.is_over)
		return err_set(e, ERR_LIMIT, "%s: a prompt is longer than %llu bytes", s->o->path,
			       BUF_BYTES_MAX);
	d->counted = arena_str(a, format(s, buf_str(&s->text)));
	d->sample.prompt = is_bare ? arena_str(a, buf_str(&s->text)) : d->counted;
	d->sample.output_len = s->o->sonnet_output_len;
	return 1;
}

static int sample(struct sonnet *s, struct workload *w, struct err *e)
{
	struct dataset_opts plain = *s->o;
	size_t n = (size_t)s->env->num_prompts;
	struct take take = {
		.self = s, .draft = draft, .is_output_unchecked = true,
		.rows = n > TRIES_MIN / TRIES_PER_PROMPT ? n * TRIES_PER_PROMPT : TRIES_MIN,
		.prompt_max = (size_t)s->o->sonnet_input_len, .total_max = INT64_MAX,
	};

	plain.no_oversample = true;
	plain.enable_multimodal_chat = false;
	if (dataset_take(&take, &plain, s->env, s->rng, w, e) < 0)
		return -1;
	if (w->n == n)
		return 0;
	return err_set(e, ERR_RUN, "%s: %zu of %zu tries gave a prompt of at most %" PRId64
		       " tokens; raise " INPUT_LEN " or lower the length of the prefix", s->o->path,
		       w->n, take.rows, s->o->sonnet_input_len);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct sonnet s = { .o = o, .env = env, .rng = rng };
	struct buf raw = { 0 }, file = { 0 };
	int rc = -1;

	if (!dataset_has_chat(env) && !dataset_sends_messages(env))
		return err_set(e, ERR_RUN, "sonnet needs a chat template, and the tokenizer has none; "
			       "give the texts around a message with --chat-prefix and --chat-suffix");
	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	if (fetch_is_url(o->path) ? fetch_url(o->path, env->cancel, &raw, e) < 0 :
				    file_read(o->path, BUF_BYTES_MAX / 4, &raw, e) < 0)
		return -1;
	utf8_add_lossy(&file, buf_str(&raw));
	buf_release(&raw);
	cut_lines(&s, &file);
	if (s.lines == 0)
		err_set(e, ERR_RUN, "%s: the file has no lines", o->path);
	else if (plan_lines(&s, e) == 0)
		rc = sample(&s, w, e);
	free(s.line);
	free(s.drawn);
	buf_release(&s.text);
	buf_release(&s.wrapped);
	buf_release(&file);
	return rc;
}

static const char *const options[] = {
	"sonnet-input-len", "sonnet-output-len", "sonnet-prefix-len", "chat-template-kwargs",
	"chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_sonnet = {
	.name = "sonnet", .summary = "an instruction and lines of a poem (a text file)",
	.options = options, .needs_path = true, .needs_tokenizer = true,
	.is_templated = true, .is_always_templated = true, .build = build,
};

/* ---- slices of a text ---- */

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
	return rc < 0 ? err_in_user_file(e) : 0;
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

	assert(env->tokenizer);
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
