/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_slices.c - `profllm dataset slices`: prompts of a chosen length from a long text, as
 * upstream's script makes them.
 */
#include <errno.h>

#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/data/lengths.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"

#define FLUSH_BYTES (1u << 20)

struct slices_opts {
	const char *input, *output, *tokenizer, *range_ratio;
	int64_t num_prompts, input_len, output_len, seed;
	bool trust_remote_code;
};

#define S(member, flag, ...) OPT(struct slices_opts, member, flag, __VA_ARGS__)
static const struct opt rows[] = {
	S(input, "input", .arg = "FILE|URL", .help = "the text to cut"),
	S(output, "output", .arg = "FILE", .help = "the .jsonl file to write, for the custom dataset"),
	S(tokenizer, "tokenizer", .arg = "NAME",
	  .help = "a tokenizer's file, its directory, a model name, or sim"),
	S(num_prompts, "num-prompts", .min = 1, .max = REQUESTS_MAX, .help = "how many prompts"),
	S(input_len, "input-len", .arg = "TOKENS", .min = 1, .max = LENGTH_TOKENS_MAX,
	  .help = "tokens of a prompt"),
	S(output_len, "output-len", .arg = "TOKENS", .min = 1, .max = LENGTH_TOKENS_MAX,
	  .help = "tokens to ask for"),
	S(range_ratio, "range-ratio", .arg = "RATIO",
	  .help = "how far lengths may be off: a number in [0, 1), or JSON with \"input\" and "
		  "\"output\""),
	S(seed, "seed", .min = 0, .max = UINT32_MAX, .help = "seed of the random draws"),
	S(trust_remote_code, "trust-remote-code",
	  .help = "accepted for compatibility; nothing remote is ever run"),
};
static const struct slices_opts defaults = {
	.num_prompts = 1000, .input_len = 1024, .output_len = 128, .range_ratio = "0.0",
};
const struct opt_set cmd_dataset_slices_set = {
	.command = "dataset slices",
	.summary = "Cuts a long text into prompts of a chosen length.",
	.usage = "--input FILE --output FILE --tokenizer NAME [options]",
	.epilog = "Examples:\n"
		  "  profllm dataset slices --tokenizer sim --input book.txt --output slices.jsonl\n"
		  "  profllm bench serve --dataset-name custom --dataset-path slices.jsonl \\\n"
		  "      --skip-chat-template --custom-output-len -1",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
};

struct sink {
	int fd;
	struct buf pending;
	struct progress progress;
};

static void on_progress(void *self, size_t done, size_t total)
{
	progress_show(&((struct sink *)self)->progress, STAGE_DATASET, done, total, NULL);
}

static int flush(struct sink *s, struct err *e)
{
	if (file_write_all(s->fd, buf_str(&s->pending)) < 0)
		return err_set(e, ERR_IO, "the prompts cannot be written: %s", strerror(errno));
	buf_reset(&s->pending);
	return 0;
}

static int put(void *self, struct str line, struct err *e)
{
	struct sink *s = self;

	buf_add_str(&s->pending, line);
	return s->pending.len < FLUSH_BYTES ? 0 : flush(s, e);
}

static int make(const struct slices_opts *o, const struct tokenizer *t, struct sink *s,
		struct err *e)
{
	struct dataset_opts data = {
		.random_input_len = o->input_len, .random_output_len = o->output_len,
	};
	struct dataset_env env = {
		.num_prompts = o->num_prompts, .seed = (uint64_t)o->seed, .tokenizer = t,
		.progress = on_progress, .self = s, .cancel = cli_is_interrupted(),
	};

	if (range_ratio_parse("--range-ratio", o->range_ratio, &data.input_range_ratio,
			      &data.output_range_ratio, e) < 0 ||
	    slices_make(o->input, &data, &env, put, s, e) < 0)
		return -1;
	return flush(s, e);
}

static int run(const struct slices_opts *o, struct err *e)
{
	struct sink s = { 0 };
	struct file_swap swap;
	struct tokenizer *t = tokenizer_load(o->tokenizer, NULL, e);
	int rc = -1;

	if (!t)
		return -1;
	if (file_swap_begin(&swap, o->output) < 0) {
		err_set(e, ERR_IO, "--output: %s cannot be written: %s", o->output, strerror(errno));
	} else {
		s.fd = swap.fd;
		progress_init(&s.progress, PROGRESS_AUTO);
		rc = make(o, t, &s, e);
		progress_clear(&s.progress);
		if (file_swap_end(&swap, rc == 0) < 0 && rc == 0)
			rc = err_set(e, ERR_IO, "--output: %s cannot be written: %s", o->output,
				     strerror(errno));
	}
	buf_release(&s.pending);
	tokenizer_free(t);
	return rc;
}

int cmd_dataset_slices(struct cli *cli, void *values)
{
	struct slices_opts *o = values;

	cli_catch_signals();
	if (!o->input || !o->output || !o->tokenizer)
		err_set(&cli->err, ERR_USAGE, "--%s is needed",
			!o->input ? "input FILE" : !o->output ? "output FILE" : "tokenizer NAME");
	else if (run(o, &cli->err) == 0)
		printf("%s: %lld prompts\n", o->output, (long long)o->num_prompts);
	return 0;
}
