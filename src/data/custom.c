/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom.c - the user's own prompts, one JSON object per line; datasets spec 5.5.
 *
 * A prompt is one user message: what the chat template makes of it is sent and
 * counted, special tokens included, so a BOS that both the template and the tokenizer
 * add is counted twice, as upstream does.
 */
#include "data/custom.h"

#include "base/file.h"
#include "base/limits.h"
#include "token/chat.h"

int custom_output_tokens(const struct rows *rows, size_t i, struct json_slice row,
			 const char *option, int64_t *out, struct err *e)
{
	struct json_slice v;

	*out = 0;
	if (!json_member(row, "output_tokens", &v) &&
	    (json_member(row, "max_tokens", &v) || json_member(row, "max_completion_tokens", &v)))
		return 0; /* rows_own_keys takes it */
	if (!json_member(row, "output_tokens", &v))
		return rows_refuse(rows, i, e, "no \"output_tokens\" field; --%s TOKENS sets the "
				   "length of all answers", option);
	if (!json_to_i64(v, out) || *out < 0 || *out > LENGTH_TOKENS_MAX)
		return rows_refuse(rows, i, e, "\"output_tokens\" must be a whole number of tokens, at "
				   "most %u", LENGTH_TOKENS_MAX);
	return 0;
}

/* Says whether it is this row or all of them that have no text. */
static int refuse_text(struct custom_sampler *s, size_t i, struct err *e)
{
	struct json_slice row, v;
	bool has_field = false;

	for (size_t k = 0; k < s->rows.n && !has_field; k++) {
		if (rows_get(&s->rows, k, &row, e) < 0)
			return -1;
		has_field = json_member(row, s->field, &v);
	}
	if (!has_field)
		return err_set(e, ERR_RUN, "%s: no line has a \"%s\" field", s->o->path, s->field);
	return rows_refuse(&s->rows, i, e, "\"%s\" must be text", s->field);
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct custom_sampler *s = self;
	struct json_slice row;
	int64_t asked = s->output_len;

	if (rows_get(&s->rows, i, &row, e) < 0)
		return -1;
	buf_reset(&s->scratch);
	if (!s->text(row, &s->scratch))
		return refuse_text(s, i, e);
	if (asked == -1 && custom_output_tokens(&s->rows, i, row, s->output_option, &asked, e) < 0)
		return -1;
	if (dataset_has_chat(s->env)) {
		buf_reset(&s->wrapped);
		chat_apply(s->env->chat, buf_str(&s->scratch), &s->wrapped);
		d->sample.prompt = arena_str(a, buf_str(&s->wrapped));
	} else {
		d->sample.prompt = arena_str(a, buf_str(&s->scratch));
	}
	/* Without a tokenizer upstream asks for one token, whatever the flag says. */
	d->sample.output_len = s->env->tokenizer ? asked : 1;
	if (s->is_known_only && rows_own_keys(&s->rows, i, row, a, d, e) < 0)
		return -1;
	return 1;
}

static int is_wanted(void *self, struct json_slice row, struct err *e)
{
	struct custom_sampler *s = self;

	(void)e;
	buf_reset(&s->scratch);
	if (s->category && !(rows_text(row, "category", &s->scratch) &&
			     str_is(buf_str(&s->scratch), s->category)))
		return 0;
	if (!s->is_notice || !s->is_notice(row))
		return 1;
	s->notices++;
	return 0;
}

static int sample(struct custom_sampler *s, struct compat_rng *rng, struct workload *w,
		  struct err *e)
{
	struct take take = {
		.self = s, .rows = s->rows.n, .draft = draft,
		.takes_all = true, .is_row_index = true,
		.input_max = s->input_max.is_set ? (size_t)s->input_max.v : 0,
		.input_option = s->input_option,
	};

	if (s->rows.all == 0)
		return err_set(e, ERR_RUN, "%s: the file has no prompts", s->o->path);
	if (s->notices)
		dataset_note(w, "%zu of %zu rows hold no prompt but a notice, and are left out",
			     s->notices, s->rows.all);
	if (s->rows.n == 0 && s->notices)
		return err_set(e, ERR_RUN, "%s: every row is a notice that the data must be fetched; "
			       "run the dataset's own preparation script", s->o->path);
	if (s->rows.n == 0)
		return err_set(e, ERR_RUN, "%s: no row has the category '%s'", s->o->path, s->category);
	return dataset_take(&take, s->o, s->env, rng, w, e);
}

int custom_sample(struct custom_sampler *s, const char *const *path, size_t n,
		  struct compat_rng *rng, struct workload *w, struct err *e)
{
	const struct rows_opts opts = {
		.o = s->o, .env = s->env, .seed = s->env->seed, .columns = s->columns,
		.is_known_only = s->is_known_only, .output_len = s->output_len,
		.keep = s->category || s->is_notice ? is_wanted : NULL, .self = s,
	};
	int rc = rows_open(&s->rows, path, n, &opts, rng, e);

	if (rc == 0)
		rc = sample(s, rng, w, e);
	if (rc == 0)
		rows_note_unused(&s->rows, s->o, w);
	rows_release(&s->rows);
	buf_release(&s->scratch);
	buf_release(&s->wrapped);
	return rc;
}

int custom_check_path(const char *path, const char *what, const char *holds, struct err *e)
{
	if (str_ends(str_of(path), STR(".jsonl")) || file_is_stream(path))
		return 0;
	return err_set(e, ERR_USAGE, "--dataset-path %s: %s datasets are .jsonl files, one JSON object "
		       "with %s per line", path, what, holds);
}

static bool prompt_text(struct json_slice row, struct buf *out)
{
	return rows_text(row, "prompt", out);
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	return custom_check_path(o->path, "custom", "\"prompt\"", e);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "prompt", "output_tokens", NULL };
	struct custom_sampler s = {
		.o = o, .env = env, .columns = columns, .is_known_only = true,
		.field = "prompt", .text = prompt_text,
		.output_len = o->custom_output_len, .output_option = "custom-output-len",
	};

	return custom_sample(&s, &o->path, 1, rng, w, e);
}

static const char *const options[] = {
	"custom-output-len", "disable-shuffle", "no-oversample", "skip-chat-template",
	"chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_custom = {
	.name = "custom", .summary = "your own prompts from a .jsonl file", .options = options,
	.needs_path = true, .is_templated = true, .takes_all = true,
	.check = check, .build = build,
};
