/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_structured_output.c - `profllm bench structured-output`: vLLM's script as `bench serve
 * --dataset-name structured`. Its own option names become that verb's; all others pass unchanged.
 */
#include <math.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/serve_once.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "out/report/structured.h"

struct structured_opts {
	const char *dataset;
	int64_t output_len, num_prompts;
	struct opt_real ratio;
	bool no_structured_output, save_results;
	const char *result_dir, *result_filename;
};

static const char *const sets[] = {
	"json", "json-unique", "grammar", "regex", "choice", "xgrammar_bench", NULL,
};

#define S(member, flag, ...) OPT(struct structured_opts, member, flag, __VA_ARGS__)
static const struct opt rows[] = {
	S(dataset, "dataset", .choices = sets, .help = "the constraint on answers"),
	S(output_len, "output-len", .arg = "TOKENS", .min = 1, .max = LENGTH_TOKENS_MAX,
	  .help = "maximum output tokens"),
	S(num_prompts, "num-prompts", .arg = "N", .min = 1, .max = REQUESTS_MAX,
	  .help = "number of requests"),
	S(ratio, "structured-output-ratio", .min = 0, .max = 1,
	  .help = "share of the requests that send their constraint to the server"),
	S(no_structured_output, "no-structured-output",
	  .help = "send no constraint, and check what the model answers without one"),
	S(save_results, "save-results", .help = "write the result as JSON, as vLLM's script does"),
	S(result_dir, "result-dir", .arg = "DIR", .help = "folder of the result"),
	S(result_filename, "result-filename", .arg = "FILE",
	  .help = "name of the result; default: composed of the options"),
};

static const struct structured_opts defaults = { .dataset = "json", .output_len = 128,
						 .num_prompts = 1000 };

static const struct opt_foreign serve_options = {
	.self = &serve_opt_set, .words = opt_foreign_set_words,
};

const struct opt_set cmd_bench_structured_output_set = {
	.command = "bench structured-output",
	.summary = "Measures a server whose answers must follow a JSON Schema, a pattern, a choice "
		   "or a grammar, and checks whether they do.",
	.usage = "[options] [options of bench serve]",
	.epilog = "Example:\n"
		  "  profllm bench structured-output --model MODEL --dataset json --num-prompts 100\n"
		  "The options of `profllm bench serve` are accepted, too; --json-schema-path FILE and\n"
		  "--constraint-form are explained by `profllm bench serve --help=structured`.",
	OPT_SET_OF(rows, defaults), .foreign = &serve_options, .takes_prefixes = true,
};

/* The words for `bench serve`: ours, then the user's, which take precedence. */
static char **serve_words(const struct structured_opts *o, const struct opt_rest *rest,
			  struct arena *a, int *argc)
{
	char **argv = arena_alloc(a, (rest->n + 16) * sizeof(*argv));
	double ratio = o->no_structured_output ? 0 : o->ratio.is_set ? o->ratio.v : 1;
	int n = 0;

	argv[n++] = arena_printf(a, "--dataset-name=structured");
	argv[n++] = arena_printf(a, "--structured-dataset=%s", o->dataset);
	argv[n++] = arena_printf(a, "--structured-output-len=%lld", (long long)o->output_len);
	argv[n++] = arena_printf(a, "--structured-output-ratio=%.17g", ratio);
	argv[n++] = arena_printf(a, "--num-prompts=%lld", (long long)o->num_prompts);
	argv[n++] = arena_printf(a, "--temperature=0");
	argv[n++] = arena_printf(a, "--backend=vllm");
	for (size_t i = 0; i < rest->n; i++)
		argv[n++] = rest->v[i];
	argv[n] = NULL;
	*argc = n;
	return argv;
}

/* The script's name for its file; the model is the one that answered, once that is known. */
static char *path_of(const struct structured_opts *o, struct structured_name name,
		     const char *model, struct arena *a)
{
	struct buf text = { 0 };
	char *path;

	name.model = model;
	if (o->result_filename)
		buf_add_text(&text, o->result_filename);
	else
		structured_file_name(&name, &text);
	path = o->result_dir && *o->result_dir ? arena_printf(a, "%s/%s", o->result_dir, text.data)
					       : arena_text(a, buf_str(&text));
	buf_release(&text);
	return path;
}

/* Checks, before anything is sent, that the result can be written. */
static int check_result(const struct structured_opts *o, const struct structured_name *name,
			struct arena *a, struct err *e)
{
	if (o->result_dir && *o->result_dir && file_mkdirs(o->result_dir, e) < 0)
		return err_wrap(e, "--result-dir");
	return target_check("--result-filename", path_of(o, *name, "model", a), e);
}

static int write_result(const struct structured_opts *o, const struct structured_name *name,
			struct str text, struct arena *a, struct err *e)
{
	struct buf line = { 0 }, json = { 0 };
	struct json_value *result;
	int rc = json_parse(a, text, &result, e);

	if (rc == 0) {
		structured_rate_line(result, &line);
		cli_line(line.data);
	}
	if (rc == 0 && o->save_results) {
		struct str model = json_text(json_get(result, "model_id"), STR("model"));

		structured_json(result, &json);
		rc = file_write_atomic(path_of(o, *name, arena_text(a, model), a),
				       buf_str(&json), e);
	}
	buf_release(&line);
	buf_release(&json);
	return rc;
}

static int run(const struct structured_opts *o, const struct opt_rest *rest, struct arena *a,
	       struct err *e)
{
	struct structured_name name = {
		.ratio = o->ratio.is_set ? o->ratio.v : 1, .has_ratio = !o->no_structured_output,
		.dataset = o->dataset, .num_prompts = o->num_prompts, .output_len = o->output_len,
	};
	struct opt_set serve = serve_opt_set;
	struct serve_outcome out = { 0 };
	struct serve_opts opts;
	struct cli cli;
	int argc, status;
	char **argv = serve_words(o, rest, a, &argc);

	serve.command = cmd_bench_structured_output_set.command;
	status = cli_begin(&cli, &serve, argc, argv, &opts);
	if (status != CLI_CONTINUE)
		return status;
	opts.save_detailed = true;
	name.backend = arena_text(a, str_of(opts.backend));
	name.request_rate = opts.request_rate;
	if (o->save_results && check_result(o, &name, a, &cli.err) < 0)
		return cli_end(&cli);
	status = serve_once(&cli, &opts, &out);
	if (out.result.len && write_result(o, &name, buf_str(&out.result), a, e) < 0)
		status = 1;
	buf_release(&out.result);
	return status;
}

int cmd_bench_structured_output(int argc, char **argv)
{
	struct structured_opts o;
	struct cli cli;
	struct arena a = { 0 };
	int status = cli_begin(&cli, &cmd_bench_structured_output_set, argc, argv, &o), ended;

	if (status != CLI_CONTINUE)
		return status;
	status = run(&o, &cli.result.rest, &a, &cli.err);
	ended = cli_end(&cli);
	arena_release(&a);
	return status ? status : ended;
}
