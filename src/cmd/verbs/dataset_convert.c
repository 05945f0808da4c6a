/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_convert.c - `profllm dataset convert-sharegpt`: ShareGPT's raw file as conversations, by
 * the options of upstream's script.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/trace/conversation.h"

#define FLUSH_BYTES (1u << 20)

struct convert_opts {
	struct opt_list files;
	const char *model;
	struct sharegpt_convert_opts convert;
};

#define C(member, flag, ...) OPT(struct convert_opts, member, flag, __VA_ARGS__)
static const struct opt rows[] = {
	C(files, "FILE", .flags = OPT_POSITIONAL,
	  .help = "the ShareGPT file to read and the file to write"),
	C(convert.seed, "seed", .min = 0, .max = UINT32_MAX, .help = "seed of the random draws"),
	C(convert.max_items, "max-items", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "most conversations to write, drawn at random; 0 means all"),
	C(convert.min_turns, "min-turns", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "drop conversations with fewer messages"),
	C(convert.max_turns, "max-turns", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "keep only so many messages of a conversation; 0 means all"),
	C(convert.min_content_len, "min-content-len", .arg = "N", .min = 0, .max = INFINITY,
	  .help = "drop conversations with a message of fewer characters"),
	C(convert.max_content_len, "max-content-len", .arg = "N", .min = 0, .max = INFINITY,
	  .help = "drop conversations with a message of more characters; 0 means any number"),
	C(convert.any_language, "any-language", .flags = OPT_OURS,
	  .help = "keep conversations with characters that are not ASCII"),
	C(model, "model", .arg = "NAME",
	  .help = "accepted for compatibility; the lengths are characters with and without it"),
};
static const struct convert_opts defaults = { 0 };
const struct opt_set cmd_dataset_convert_set = {
	.command = "dataset convert-sharegpt",
	.summary = "Makes conversations of a ShareGPT file, for bench multi-turn and the conversations "
		   "dataset.",
	.usage = "INPUT OUTPUT [options]",
	.epilog = "Examples:\n"
		  "  profllm dataset convert-sharegpt sharegpt.json chats.json --max-items 128\n"
		  "  profllm bench serve --backend openai-chat --endpoint /v1/chat/completions \\\n"
		  "      --dataset-name conversations --dataset-path chats.json",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
};

static int check(const struct convert_opts *o, struct err *e)
{
	const struct sharegpt_convert_opts *c = &o->convert;

	if (o->files.n != 2)
		return err_set(e, ERR_USAGE, "expected two files, the one to read and the one to write; "
			       "got %zu", o->files.n);
	if (c->min_turns && c->max_turns && c->min_turns > c->max_turns)
		return err_set(e, ERR_USAGE, "--min-turns %" PRId64 " is above --max-turns %" PRId64,
			       c->min_turns, c->max_turns);
	if (c->min_content_len && c->max_content_len && c->min_content_len > c->max_content_len)
		return err_set(e, ERR_USAGE, "--min-content-len %" PRId64 " is above --max-content-len "
			       "%" PRId64, c->min_content_len, c->max_content_len);
	return 0;
}

static void put_conversation(struct json_writer *w, const struct conversations *c, size_t i)
{
	json_begin_object(w);
	json_member_str(w, "id", c->v[i].id);
	json_member_array(w, "messages");
	for (size_t k = 0; k < c->v[i].n; k++)
		conversation_put_message(w, &c->message[c->v[i].first + k]);
	json_end_array(w);
	json_end_object(w);
}

static int write_all(const char *path, const struct conversations *c, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct file_swap swap;
	int rc = 0;

	if (file_swap_begin(&swap, path) < 0)
		return err_set(e, ERR_IO, "%s cannot be written: %s", path, strerror(errno));
	w.indent = 2;
	w.is_raw_utf8 = true;
	json_begin_array(&w);
	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		put_conversation(&w, c, i);
		if (text.len < FLUSH_BYTES)
			continue;
		rc = file_write_all(swap.fd, buf_str(&text));
		buf_reset(&text);
	}
	json_end_array(&w);
	if (rc == 0)
		rc = file_write_all(swap.fd, buf_str(&text));
	if (rc < 0)
		err_set(e, ERR_IO, "%s cannot be written: %s", path, strerror(errno));
	if (file_swap_end(&swap, rc == 0) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "%s cannot be written: %s", path, strerror(errno));
	buf_release(&text);
	return rc;
}

static void print_counts(const char *path, const struct sharegpt_converted *n,
			 const struct conversations *c)
{
	printf("%s: %zu conversations of %zu items (%zu joined)\n", path, c->n, n->items, n->joined);
	if (n->too_short)
		printf("  dropped for fewer messages than --min-turns: %zu\n", n->too_short);
	if (n->not_alternating)
		printf("  dropped because user and assistant do not alternate: %zu\n",
		       n->not_alternating);
	if (n->wrong_length)
		printf("  dropped for the length of a message: %zu\n", n->wrong_length);
	if (n->wrong_language)
		printf("  dropped for characters that are not ASCII: %zu\n", n->wrong_language);
	if (n->kept > c->n)
		printf("  not drawn by --max-items: %zu\n", n->kept - c->n);
}

int cmd_dataset_convert(struct cli *cli, void *values)
{
	struct convert_opts *o = values;
	struct conversations c = { 0 };
	struct sharegpt_converted count;

	cli_catch_signals();
	o->convert.cancel = cli_is_interrupted();
	if (check(o, &cli->err) == 0 &&
	    sharegpt_convert(o->files.v[0], &o->convert, &c, &count, &cli->err) == 0 &&
	    write_all(o->files.v[1], &c, &cli->err) == 0)
		print_counts(o->files.v[1], &count, &c);
	conversations_release(&c);
	return 0;
}
