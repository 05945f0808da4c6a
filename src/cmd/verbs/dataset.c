/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - `profllm dataset show` and `profllm dataset compile`: what bench serve would
 * send, looked at or kept in a file.
 *
 * Both take bench serve's options, so that a command line is tried by changing its first
 * two words. What only concerns sending has no effect.
 */
#include <inttypes.h>
#include <math.h>

#include "bench/serve/build_workload.h"
#include "bench/serve/point.h"
#include "client/endpoint/endpoint.h"
#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "cmd/verbs/cmd.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "input/data/workload_file.h"
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

/* bench serve's set with rows of our own behind its rows. */
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
		.summary = "What bench serve would send with the same options: lengths and examples.",
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
		return err_set(&cli->err, ERR_USAGE, "--tokenizer or --model is needed, to count tokens "
			       "with");
	if (!o->model)
		o->model = o->tokenizer ? o->tokenizer : "none";
	/* Nothing is sent, so the path is of no interest. */
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

struct lengths {
	const char *name;  /* of the JSON key */
	const char *title;
	double *v;         /* sorted */
	size_t n;
};

static void count_bins(const struct lengths *l, size_t *bins, double *width, uint64_t *count)
{
	double low = l->v[0], high = l->v[l->n - 1];

	*bins = high - low + 1 < BINS_MAX ? (size_t)(high - low) + 1 : BINS_MAX;
	*width = ceil((high - low + 1) / (double)*bins);
	*bins = (size_t)ceil((high - low + 1) / *width);
	memset(count, 0, BINS_MAX * sizeof(*count));
	for (size_t i = 0; i < l->n; i++)
		count[(size_t)((l->v[i] - low) / *width)]++;
}

static void print_histogram(const struct lengths *l, struct buf *out)
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

static void put_lengths(struct json_writer *w, const struct lengths *l)
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

/* Both distributions; v is to be freed. */
static void gather(const struct workload *w, struct lengths l[2])
{
	l[0] = (struct lengths){ "prompt_len", "Prompt length (tokens)",
				 mem_array(w->n, sizeof(double)), w->n };
	l[1] = (struct lengths){ "output_len", "Output length (tokens)",
				 mem_array(w->n, sizeof(double)), 0 };
	for (size_t i = 0; i < w->n; i++) {
		l[0].v[i] = w->v[i].prompt_len;
		if (w->v[i].output_len >= 0)
			l[1].v[l[1].n++] = (double)w->v[i].output_len;
	}
	stats_sort(l[0].v, l[0].n);
	stats_sort(l[1].v, l[1].n);
}

/* Text for a terminal: no more than fits, nothing that moves the cursor. */
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

static void show_page(const struct point *p, const struct lengths l[2], size_t examples,
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

static void show_json(const struct point *p, const struct lengths l[2], size_t examples,
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
	struct lengths l[2];
	struct buf text = { 0 };
	struct point point;

	if (build(cli, &o->serve, &point) == 0) {
		size_t all = point.plan.n, wanted = (size_t)o->examples;

		gather(&point.workload, l);
		(o->json ? show_json : show_page)(&point, l, wanted < all ? wanted : all, &text);
		cli_out(buf_str(&text));
		buf_release(&text);
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
	json_key(&w, "dataset_path");
	if (o->data.path)
		json_put_text(&w, o->data.path);
	else
		json_put_null(&w);
	json_key(&w, "tokenizer");
	if (p->tokenizer_id)
		json_put_text(&w, p->tokenizer_id);
	else
		json_put_null(&w);
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
		printf("%s: %zu requests of %s, hash %s\n", o->output, p->workload.n,
		       p->workload.dataset, hash);
	return rc;
}

int cmd_dataset_compile(struct cli *cli, void *values)
{
	struct dataset_cmd_opts *o = values;
	struct point point = { 0 };

	if (!o->output)
		err_set(&cli->err, ERR_USAGE, "--output FILE says where the workload is to be written");
	else if (build(cli, &o->serve, &point) == 0)
		compile(o, &point, &cli->err);
	point_release(&point);
	return 0;
}
