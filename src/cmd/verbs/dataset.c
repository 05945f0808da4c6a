/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - `profllm dataset show` and `compile`: prints, or stores in a file, what bench serve
 * would send; `convert-sharegpt` and `slices`: makes dataset files as upstream's scripts do.
 *
 * The first two take bench serve's options, so that a command line is tried by changing its first
 * two words. Options that only concern sending have no effect.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/serve/build_workload.h"
#include "bench/serve/point.h"
#include "client/endpoint/endpoint.h"
#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "input/data/lengths.h"
#include "input/data/workload_file.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "input/trace/conversation.h"
#include "version.h"

#define BINS_MAX 12
#define BAR_COLUMNS 40
#define SHOWN_BYTES 300 /* of an example's prompt */

struct dataset_cmd_opts {
	struct serve_opts serve; /* first: its rows are used as they are */
	int64_t examples;
	bool json;
	const char *output;
};

#define D(member, flag, ...) OPT(struct dataset_cmd_opts, member, flag, __VA_ARGS__)
static const struct opt show_rows[] = {
	D(examples, "examples", .group = "Output", .flags = OPT_OURS, .arg = "N", .min = 0,
	  .max = 1000000, .help = "requests to print, from the first on"),
	D(json, "json", .group = "Output", .flags = OPT_OURS,
	  .help = "one JSON object in place of tables"),
};
static const struct opt compile_rows[] = {
	D(output, "output", .group = "Output", .flags = OPT_OURS, .arg = "FILE",
	  .help = "the workload file to write"),
};

/* bench serve's option set followed by rows of our own. */
struct extended_set {
	struct opt_set set;
	struct opt row[OPT_ROWS_MAX];
	struct dataset_cmd_opts defaults;
};

static const struct opt_set *extend(struct extended_set *x, const struct opt *row, size_t n,
				    const struct opt_set *words)
{
	if (x->set.n)
		return &x->set;
	x->defaults.serve = *(const struct serve_opts *)serve_opt_set.defaults;
	x->defaults.examples = 3;
	memcpy(x->row, serve_opt_set.row, serve_opt_set.n * sizeof(*row));
	memcpy(x->row + serve_opt_set.n, row, n * sizeof(*row));
	x->set = *words;
	x->set.usage = serve_opt_set.usage;
	x->set.groups = serve_opt_set.groups;
	x->set.row = x->row;
	x->set.n = serve_opt_set.n + n;
	x->set.defaults = &x->defaults;
	x->set.bytes = sizeof(x->defaults);
	return &x->set;
}

const struct opt_set *cmd_dataset_show_options(void)
{
	static struct extended_set x;
	static const struct opt_set words = {
		.command = "dataset show",
		.summary = "Shows what bench serve would send with the same options: lengths and "
			   "examples.",
		.epilog = "Examples:\n"
			  "  profllm dataset show --tokenizer sim --random-input-len 512\n"
			  "  profllm dataset show --tokenizer Qwen/Qwen3-8B --dataset-name sharegpt \\\n"
			  "      --dataset-path FILE --examples 1",
	};

	return extend(&x, show_rows, sizeof(show_rows) / sizeof(*show_rows), &words);
}

const struct opt_set *cmd_dataset_compile_options(void)
{
	static struct extended_set x;
	static const struct opt_set words = {
		.command = "dataset compile",
		.summary = "Writes what bench serve would send into one file, to be replayed with "
			   "--dataset-name workload.",
		.epilog = "Examples:\n"
			  "  profllm dataset compile --tokenizer sim --num-prompts 100 --output w.bin\n"
			  "  profllm bench serve --model sim --tokenizer sim --dataset-name workload \\\n"
			  "      --dataset-path w.bin",
	};

	return extend(&x, compile_rows, sizeof(compile_rows) / sizeof(*compile_rows), &words);
}

/* ---- building ---- */

static void on_warn(void *self, const char *text)
{
	progress_clear(self);
	cli_warn(text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	progress_show(self, stage, done, total, load);
}

static void on_bytes(void *self, const char *file, uint64_t done, uint64_t total)
{
	progress_bytes(self, file, done, total);
}

static int build(struct cli *cli, struct serve_opts *o, struct point *out)
{
	struct progress progress;
	struct run_hooks hooks = { .self = &progress, .warn = on_warn, .progress = on_progress,
				   .bytes = on_bytes,
				   .cancel = cli_is_interrupted() };
	struct serve_derived derived = { 0 };
	int rc;

	*out = (struct point){ 0 };
	o->dry_run = true;
	if (!o->model && !o->tokenizer && !o->skip_tokenizer_init)
		return err_set(&cli->err, ERR_USAGE, "--tokenizer or --model is needed to count "
			       "tokens");
	if (!o->model)
		o->model = o->tokenizer ? o->tokenizer : "none";
	/* Nothing is sent, so the path does not matter. */
	if (!opt_given(&serve_opt_set, &cli->result, "endpoint") && endpoint_find(o->backend))
		o->endpoint = endpoint_find(o->backend)->default_path;
	if (serve_opts_check(o, &cli->result, &cli->arena, &derived, &cli->err) < 0)
		return -1;
	cli_flush_notes(cli);
	progress_init(&progress, o->disable_tqdm ? PROGRESS_NONE : derived.progress);
	cli_catch_signals();
	rc = run_point(o, &derived, &hooks, out, &cli->err);
	progress_clear(&progress);
	return rc;
}

/* ---- show ---- */

struct length_values {
	const char *name;  /* of the JSON key */
	const char *title;
	double *v;         /* sorted */
	size_t n;
};

static void count_bins(const struct length_values *l, size_t *bins, double *width, uint64_t *count)
{
	double low = l->v[0], high = l->v[l->n - 1];

	*bins = high - low + 1 < BINS_MAX ? (size_t)(high - low) + 1 : BINS_MAX;
	*width = ceil((high - low + 1) / (double)*bins);
	*bins = (size_t)ceil((high - low + 1) / *width);
	memset(count, 0, BINS_MAX * sizeof(*count));
	for (size_t i = 0; i < l->n; i++)
		count[(size_t)((l->v[i] - low) / *width)]++;
}

static void print_histogram(const struct length_values *l, struct buf *out)
{
	static const char bar[] = "########################################";
	uint64_t count[BINS_MAX], most = 0;
	double width;
	size_t bins;

	count_bins(l, &bins, &width, count);
	for (size_t i = 0; i < bins; i++)
		most = count[i] > most ? count[i] : most;
	buf_printf(out, "%s\n", l->title);
	for (size_t i = 0; i < bins; i++)
		buf_printf(out, "%9.0f -%9.0f %9" PRIu64 " %.*s\n", l->v[0] + (double)i * width,
			   l->v[0] + (double)(i + 1) * width - 1, count[i],
			   (int)((double)count[i] / (double)most * BAR_COLUMNS), bar);
}

static void put_lengths(struct json_writer *w, const struct length_values *l)
{
	uint64_t count[BINS_MAX];
	double width;
	size_t bins;

	count_bins(l, &bins, &width, count);
	json_member_object(w, l->name);
	json_member_f64(w, "min", l->v[0]);
	json_member_f64(w, "mean", stats_mean(l->v, l->n));
	json_member_f64(w, "median", stats_percentile(l->v, l->n, 50));
	json_member_f64(w, "p99", stats_percentile(l->v, l->n, 99));
	json_member_f64(w, "max", l->v[l->n - 1]);
	json_member_f64(w, "bin_from", l->v[0]);
	json_member_f64(w, "bin_width", width);
	json_member_array(w, "bin_count");
	for (size_t i = 0; i < bins; i++)
		json_put_int(w, (int64_t)count[i]);
	json_end_array(w);
	json_end_object(w);
}

/* Fills both distributions; the caller frees v. */
static void gather(const struct workload *w, struct length_values l[2])
{
	l[0] = (struct length_values){ "prompt_len", "Prompt length (tokens)",
				 mem_array(w->n, sizeof(double)), w->n };
	l[1] = (struct length_values){ "output_len", "Output length (tokens)",
				 mem_array(w->n, sizeof(double)), 0 };
	for (size_t i = 0; i < w->n; i++) {
		l[0].v[i] = w->v[i].prompt_len;
		if (w->v[i].output_len >= 0)
			l[1].v[l[1].n++] = (double)w->v[i].output_len;
	}
	stats_sort(l[0].v, l[0].n);
	stats_sort(l[1].v, l[1].n);
}

/* Appends text for a terminal: no more than fits, without control characters. */
static void put_start(struct buf *out, struct str text)
{
	struct str start = { text.p, text.n < SHOWN_BYTES ? text.n : SHOWN_BYTES };

	while (start.n < text.n && start.n && ((uint8_t)start.p[start.n] & 0xc0) == 0x80)
		start.n--;
	json_quote(out, start, false);
	if (start.n < text.n)
		buf_printf(out, " ... (%zu bytes)", text.n);
}

static void print_example(const struct sample *s, size_t i, struct buf *out)
{
	const struct { const char *name; struct str text; } also[] = {
		{ "messages", s->messages }, { "media", s->media }, { "overrides", s->overrides },
		{ "headers", s->headers }, { "constraint", s->constraint },
		{ "expected", s->expected },
	};

	buf_printf(out, "\n[%zu] prompt_len %u, output_len %" PRId64, i, s->prompt_len,
		   s->output_len);
	if (!isnan(s->timestamp_s))
		buf_printf(out, ", at %.3f s", s->timestamp_s);
	if (s->file.n)
		buf_printf(out, ", %s: %zu bytes, %.2f s", s->file_name, s->file.n, (double)s->audio_s);
	buf_add_text(out, "\n    prompt: ");
	put_start(out, s->prompt);
	for (size_t k = 0; k < sizeof(also) / sizeof(*also); k++) {
		if (!also[k].text.n)
			continue;
		buf_printf(out, "\n    %s: ", also[k].name);
		put_start(out, also[k].text);
	}
	buf_add_char(out, '\n');
}

static void show_page(const struct point *p, const struct length_values l[2], size_t examples,
		      struct buf *out)
{
	dump_summary(&p->workload, &p->plan, out);
	buf_add_char(out, '\n');
	print_histogram(&l[0], out);
	if (l[1].n)
		print_histogram(&l[1], out);
	for (size_t i = 0; i < examples; i++)
		print_example(&p->workload.v[i], i, out);
}

static void show_json(const struct point *p, const struct length_values l[2], size_t examples,
		      struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct plan first = p->plan;
	struct buf lines = { 0 };
	struct str rest;

	json_begin_object(&w);
	json_member_text(&w, "dataset", p->workload.dataset);
	json_member_int(&w, "requests", (int64_t)p->workload.n);
	put_lengths(&w, &l[0]);
	if (l[1].n)
		put_lengths(&w, &l[1]);
	json_member_array(&w, "examples");
	first.n = (uint32_t)examples;
	dump_workload(&p->workload, &first, "", &lines);
	for (rest = buf_str(&lines); rest.n;)
		json_put_raw(&w, str_cut(&rest, '\n'));
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
	buf_release(&lines);
}

int cmd_dataset_show(struct cli *cli, void *values)
{
	struct dataset_cmd_opts *o = values;
	struct length_values l[2];
	struct buf text = { 0 };
	struct point point;

	if (build(cli, &o->serve, &point) == 0) {
		size_t all = point.plan.n, wanted = (size_t)o->examples;

		gather(&point.workload, l);
		(o->json ? show_json : show_page)(&point, l, wanted < all ? wanted : all, &text);
		cli_out_buf(&text);
		free(l[0].v);
		free(l[1].v);
	}
	point_release(&point);
	return 0;
}

/* ---- compile ---- */

static void describe(const struct serve_opts *o, const struct point *p, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_text(&w, "profllm", PROFLLM_VERSION);
	json_member_text(&w, "dataset", p->workload.dataset);
	json_member_text(&w, "dataset_path", o->data.path);
	json_member_text(&w, "tokenizer", p->tokenizer_id);
	json_member_int(&w, "seed", o->seed);
	json_member_bool(&w, "ignore_eos", o->ignore_eos || p->workload.is_eos_ignored);
	json_member_bool(&w, "self_timed", o->self_timed == OPT_TRI_YES ||
			 p->workload.is_self_timed);
	json_end_object(&w);
}

static int compile(const struct dataset_cmd_opts *o, const struct point *p, struct err *e)
{
	char hash[DIGEST_HEX];
	struct buf description = { 0 };
	int rc;

	describe(&o->serve, p, &description);
	rc = workload_file_write(o->output, &p->workload, str_of(o->serve.request_id_prefix),
				 buf_str(&description), cli_is_interrupted(), hash, e);
	buf_release(&description);
	if (rc == 0)
		printf("%s: %zu request%s of %s, hash %s\n", o->output, p->workload.n,
		       p->workload.n == 1 ? "" : "s", p->workload.dataset, hash);
	return rc;
}

int cmd_dataset_compile(struct cli *cli, void *values)
{
	struct dataset_cmd_opts *o = values;
	struct point point = { 0 };

	if (!o->output)
		err_set(&cli->err, ERR_USAGE, "--output is missing: the file to write the workload "
			"to");
	else if (build(cli, &o->serve, &point) == 0)
		compile(o, &point, &cli->err);
	point_release(&point);
	return 0;
}

/* ---- convert-sharegpt ---- */

#define FLUSH_BYTES (1u << 20)

struct convert_opts {
	struct opt_list files;
	const char *model;
	struct sharegpt_convert_opts convert;
};

#define C(member, flag, ...) OPT(struct convert_opts, member, flag, __VA_ARGS__)
static const struct opt convert_rows[] = {
	C(files, "FILE", .flags = OPT_POSITIONAL,
	  .help = "the ShareGPT file to read and the file to write"),
	C(convert.seed, "seed", .min = 0, .max = UINT32_MAX, .help = "seed of the random draws"),
	C(convert.max_items, "max-items", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "most conversations to write, drawn at random; 0 means all"),
	C(convert.min_turns, "min-turns", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "drop conversations with fewer messages"),
	C(convert.max_turns, "max-turns", .arg = "N", .min = 0, .max = REQUESTS_MAX,
	  .help = "keep only this many messages of each conversation; 0 means all"),
	C(convert.min_content_len, "min-content-len", .arg = "N", .min = 0, .max = INFINITY,
	  .help = "drop conversations with a message of fewer characters"),
	C(convert.max_content_len, "max-content-len", .arg = "N", .min = 0, .max = INFINITY,
	  .help = "drop conversations with a message of more characters; 0 means any number"),
	C(convert.any_language, "any-language", .flags = OPT_OURS,
	  .help = "keep conversations with characters that are not ASCII"),
	C(model, "model", .arg = "NAME",
	  .help = "accepted for compatibility; the lengths are characters with and without it"),
};
static const struct convert_opts convert_defaults = { 0 };
const struct opt_set cmd_dataset_convert_set = {
	.command = "dataset convert-sharegpt",
	.summary = "Converts a ShareGPT file to conversations, for bench multi-turn and the "
		   "conversations dataset.",
	.usage = "INPUT OUTPUT [options]",
	.epilog = "Examples:\n"
		  "  profllm dataset convert-sharegpt sharegpt.json chats.json --max-items 128\n"
		  "  profllm bench serve --backend openai-chat --endpoint /v1/chat/completions \\\n"
		  "      --dataset-name conversations --dataset-path chats.json",
	OPT_SET_OF(convert_rows, convert_defaults),
};

static int check_convert(const struct convert_opts *o, struct err *e)
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
	if (check_convert(o, &cli->err) == 0 &&
	    sharegpt_convert(o->files.v[0], &o->convert, &c, &count, &cli->err) == 0 &&
	    write_all(o->files.v[1], &c, &cli->err) == 0)
		print_counts(o->files.v[1], &count, &c);
	err_in_user_file(&cli->err);
	conversations_release(&c);
	return 0;
}

/* ---- slices ---- */

struct slices_opts {
	const char *input, *output, *tokenizer, *range_ratio;
	int64_t num_prompts, input_len, output_len, seed;
	bool trust_remote_code;
};

#define S(member, flag, ...) OPT(struct slices_opts, member, flag, __VA_ARGS__)
static const struct opt slices_rows[] = {
	S(input, "input", .arg = "FILE|URL", .help = "the text to cut"),
	S(output, "output", .arg = "FILE", .help = "the .jsonl file to write, for the custom dataset"),
	S(tokenizer, "tokenizer", .arg = "NAME",
	  .help = "a tokenizer's file, its directory, a model name, or sim"),
	S(num_prompts, "num-prompts", .min = 1, .max = REQUESTS_MAX, .help = "how many prompts"),
	S(input_len, "input-len", .arg = "TOKENS", .min = 1, .max = LENGTH_TOKENS_MAX,
	  .help = "tokens of a prompt"),
	S(output_len, "output-len", .arg = "TOKENS", .min = 1, .max = LENGTH_TOKENS_MAX,
	  .help = "output tokens to request"),
	S(range_ratio, "range-ratio", .arg = "RATIO",
	  .help = "relative deviation of lengths: a number in [0, 1), or JSON with \"input\" and "
		  "\"output\""),
	S(seed, "seed", .min = 0, .max = UINT32_MAX, .help = "seed of the random draws"),
	S(trust_remote_code, "trust-remote-code",
	  .help = "accepted for compatibility; nothing remote is ever run"),
};
static const struct slices_opts slices_defaults = {
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
	OPT_SET_OF(slices_rows, slices_defaults),
};

struct sink {
	int fd;
	struct buf pending;
	struct progress progress;
};

static void on_slices_progress(void *self, size_t done, size_t total)
{
	progress_show(&((struct sink *)self)->progress, STAGE_DATASET, done, total, NULL);
}

static int flush_slices(struct sink *s, struct err *e)
{
	if (file_write_all(s->fd, buf_str(&s->pending)) < 0)
		return err_set(e, ERR_IO, "the prompts cannot be written: %s", strerror(errno));
	buf_reset(&s->pending);
	return 0;
}

static int put_slice(void *self, struct str line, struct err *e)
{
	struct sink *s = self;

	buf_add_str(&s->pending, line);
	return s->pending.len < FLUSH_BYTES ? 0 : flush_slices(s, e);
}

static int make_slices(const struct slices_opts *o, const struct tokenizer *t, struct sink *s,
		struct err *e)
{
	struct dataset_opts data = {
		.random_input_len = o->input_len, .random_output_len = o->output_len,
	};
	struct dataset_env env = {
		.num_prompts = o->num_prompts, .seed = (uint64_t)o->seed, .tokenizer = t,
		.progress = on_slices_progress, .self = s, .cancel = cli_is_interrupted(),
	};

	if (range_ratio_parse("--range-ratio", o->range_ratio, &data.input_range_ratio,
			      &data.output_range_ratio, e) < 0 ||
	    slices_make(o->input, &data, &env, put_slice, s, e) < 0)
		return -1;
	return flush_slices(s, e);
}

static int run_slices(const struct slices_opts *o, struct err *e)
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
		rc = make_slices(o, t, &s, e);
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
	else if (run_slices(o, &cli->err) == 0)
		printf("%s: %lld prompts\n", o->output, (long long)o->num_prompts);
	return 0;
}
