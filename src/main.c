/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the command table, which command the first words mean, and what holds for every command:
 * its output arrived, or it failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/offline/hash_bench.h"
#include "bench/offline/latency.h"
#include "bench/offline/mm_processor.h"
#include "bench/offline/prefix_bench.h"
#include "bench/offline/prioritization.h"
#include "bench/offline/startup.h"
#include "bench/offline/throughput.h"
#include "bench/options/serve_opts.h"
#include "bench/serve/multi_turn.h"
#include "bench/sweep/sweep.h"
#include "cmd/console/topics.h"
#include "cmd/verbs/cmd.h"
#include "core/base/banned.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "host/proc/keeper.h"
#include "version.h"

/* ---- completion ---- */

struct completion_opts { const char *shell; };

static const char *const shells[] = { "bash", "zsh", NULL };
static const struct opt completion_rows[] = {
	OPT(struct completion_opts, shell, "SHELL", .choices = shells,
	    .flags = OPT_POSITIONAL | OPT_MANY, .help = "the shell"),
};
static const struct completion_opts completion_defaults;

static const struct opt_set completion_set = {
	.command = "completion",
	.summary = "Prints the completion script of a shell.",
	.epilog = "Examples:\n"
		  "  source <(profllm completion bash)\n"
		  "  profllm completion bash >/etc/bash_completion.d/profllm",
	OPT_SET_OF(completion_rows, completion_defaults),
};

static cli_work completion;

static const struct command commands[] = {
	{ "bench serve", "measure a running server under load, as vllm bench serve does",
	  &serve_opt_set, .run = cmd_bench_serve },
	{ "bench structured-output", "measure answers that must follow a schema, a pattern or a "
				     "grammar",
	  &cmd_bench_structured_output_set, .run = cmd_bench_structured_output },
	{ "bench multi-turn", "measure a server with conversations of several turns",
	  &multi_turn_opt_set, .run = cmd_bench_multi_turn },
	{ "bench score", "report a recorded run again",
	  &cmd_bench_score_set, .work = cmd_bench_score },
	{ "bench tap", "measure the traffic of another client, live or from a capture file",
	  &cmd_bench_tap_set, .work = cmd_bench_tap },
#ifndef PROFLLM_CLIENT
	{ "bench throughput", "measure requests and tokens per second of an engine, without a server",
	  &throughput_opt_set, .run = cmd_bench_throughput },
	{ "bench prioritization", "measure requests of two priorities on an engine or a server",
	  &prioritization_opt_set, .run = cmd_bench_prioritization },
	{ "bench latency", "measure how long an engine takes for one batch",
	  &latency_opt_set, .run = cmd_bench_latency },
	{ "bench startup", "measure how long an engine takes to start, cold and warm",
	  &startup_opt_set, .run = cmd_bench_startup },
	{ "bench mm-processor", "measure the stages of multimodal preprocessing",
	  &mm_processor_opt_set, .run = cmd_bench_mm_processor },
	{ "bench prefix-caching", "measure an engine with repeated prompts",
	  &prefix_caching_opt_set, .run = cmd_bench_prefix_caching },
	{ "bench long-document-qa", "measure an engine with repeated questions about long "
				    "documents",
	  &long_document_opt_set, .run = cmd_bench_long_document_qa },
	{ "bench hash", "time the hash functions of an installed vLLM",
	  &hash_opt_set, .run = cmd_bench_hash },
	{ "bench prefix-block-hash", "time vLLM's hashing of prefix-cache blocks",
	  &block_hash_opt_set, .run = cmd_bench_prefix_block_hash },
	{ "bench ab", "measure two servers in turn and decide which is better",
	  &cmd_bench_ab_set, .work = cmd_bench_ab },
	{ "bench compare", "compare results, folders of results or sweeps",
	  &cmd_bench_compare_set, .run = cmd_bench_compare },
	{ "bench plot", "draw results: latency over throughput, the Pareto frontier",
	  &cmd_bench_plot_set, .work = cmd_bench_plot },
	{ "bench markdown", "write a folder of results as tables",
	  &cmd_bench_markdown_set, .work = cmd_bench_markdown },
	{ "bench sweep serve", "measure combinations of server and client options",
	  &sweep_serve_opt_set, .run = cmd_bench_sweep_serve },
	{ "bench sweep serve_multi", "old name of bench sweep serve (with --sla-params: serve_sla)",
	  .run = cmd_bench_sweep_multi },
	{ "bench sweep serve_workload", "measure loads between one request at a time and all at "
					"once",
	  .options = cmd_bench_sweep_workload_options, .run = cmd_bench_sweep_workload },
	{ "bench sweep serve_sla", "find the largest load within latency limits",
	  .options = cmd_bench_sweep_sla_options, .run = cmd_bench_sweep_sla },
	{ "bench sweep startup", "measure the start of a server with combinations of options",
	  &sweep_startup_opt_set, .run = cmd_bench_sweep_startup },
	{ "bench sweep plot", "draw curves from the results of sweeps",
	  &cmd_bench_sweep_plot_set, .work = cmd_bench_sweep_plot },
	{ "bench sweep plot_pareto", "draw speed per user against speed per GPU",
	  &cmd_bench_sweep_pareto_set, .work = cmd_bench_sweep_pareto },
	{ "init", "write an experiment file from three answers",
	  &cmd_init_set, .work = cmd_init },
	{ "run", "run experiments from one file: GPUs, servers, load, results",
	  &cmd_run_set, .work = cmd_run },
	{ "dashboard", "show the results store in a browser",
	  &cmd_dashboard_set, .work = cmd_dashboard },
	{ "ingest", "add results to the store, or send them to a dashboard",
	  &cmd_ingest_set, .work = cmd_ingest },
	{ "export", "write runs of the store as CSV or JSON lines",
	  &cmd_export_set, .work = cmd_export },
	{ "trends", "report whether a metric of the store changed, for cron and CI",
	  &cmd_trends_set, .work = cmd_trends },
	{ "backup", "copy a store into one file",
	  &cmd_backup_set, .work = cmd_backup },
	{ "restore", "replace the contents of a store by a backup",
	  &cmd_restore_set, .work = cmd_restore },
	{ "store check", "check a store for damage",
	  &cmd_store_check_set, .work = cmd_store_check },
	{ "store archive", "hide runs without removing them",
	  &cmd_store_archive_set, .work = cmd_store_archive },
	{ "store remove", "remove runs permanently",
	  &cmd_store_remove_set, .work = cmd_store_remove },
	{ "store retain", "apply limits of age and disk space",
	  &cmd_store_retain_set, .work = cmd_store_retain },
	{ "store convert", "copy a store to another database",
	  &cmd_store_convert_set, .work = cmd_store_convert },
	{ "args list", "list the arguments of vLLM's server",
	  &cmd_args_list_set, .work = cmd_args_list },
	{ "args show", "describe arguments of vLLM's server",
	  &cmd_args_show_set, .work = cmd_args_show },
	{ "args import", "import the arguments of an installed server from its help",
	  &cmd_args_import_set, .work = cmd_args_import },
#endif
	{ "doctor", "find what limits a measurement on this machine",
	  &cmd_doctor_set, .work = cmd_doctor },
	{ "sim", "start a simulated inference server with vLLM's API",
	  .options = cmd_sim_options, .run = cmd_sim },
	{ "tokenizer encode", "convert text to token IDs",
	  &cmd_tokenizer_encode_set, .work = cmd_tokenizer_encode },
	{ "tokenizer decode", "convert token IDs to text",
	  &cmd_tokenizer_decode_set, .work = cmd_tokenizer_decode },
	{ "tokenizer count", "count the tokens of texts",
	  &cmd_tokenizer_count_set, .work = cmd_tokenizer_count },
	{ "tokenizer show", "describe a tokenizer",
	  &cmd_tokenizer_show_set, .work = cmd_tokenizer_show },
	{ "tokenizer compile", "make a tokenizer load in milliseconds",
	  &cmd_tokenizer_compile_set, .work = cmd_tokenizer_compile },
	{ "dataset show", "show what would be sent: lengths and examples",
	  .options = cmd_dataset_show_options, .work = cmd_dataset_show },
	{ "dataset compile", "write what would be sent to a file, for replay",
	  .options = cmd_dataset_compile_options, .work = cmd_dataset_compile },
	{ "dataset slices", "cut a long text into prompts of a chosen length",
	  &cmd_dataset_slices_set, .work = cmd_dataset_slices },
	{ "dataset convert-sharegpt", "convert a ShareGPT file to conversations",
	  &cmd_dataset_convert_set, .work = cmd_dataset_convert },
	{ "completion", "print the completion script of a shell",
	  &completion_set, .work = completion },
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct opt_set *set_of(const struct command *c)
{
	return c->set || !c->options ? c->set : c->options();
}

/* `profllm completion bash|zsh`: the script a shell sources. */
static int completion(struct cli *cli, void *values)
{
	const struct completion_opts *o = values;
	const struct opt_set *sets[COMMANDS];
	struct buf script = { 0 };
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < COMMANDS; i++) {
		sets[n] = set_of(&commands[i]);
		n += sets[n] != NULL;
	}
	rc = opt_completion(sets, n, "profllm", o->shell, &script, &cli->err);
	if (rc == 0)
		cli_out_buf(&script);
	return rc;
}

static int start(const struct command *c, int argc, char **argv)
{
	return c->run ? c->run(argc, argv) : cli_run(set_of(c), c->work, argc, argv);
}

/* ---- which command ---- */

static int usage(FILE *out, const char *group, int status)
{
	fprintf(out, "profllm " PROFLLM_VERSION "\nUsage: profllm COMMAND [options]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		if (str_starts(str_of(commands[i].name), str_of(group)))
			fprintf(out, "  %-26s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\nprofllm COMMAND --help shows its options; profllm help errors lists what messages mean.\n");
	return status;
}

/* "-" and "_" are the same, as in names of options. */
static bool is_same_word(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && a.n == b.n; i++)
		if ((a.p[i] == '_' ? '-' : a.p[i]) != (b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return a.n == b.n;
}

/* How many of argv's words name the command; 0: they do not. */
static int match(const struct command *c, int argc, char **argv)
{
	struct str rest = str_of(c->name);
	int n = 0;

	while (rest.n) {
		if (n == argc || !is_same_word(str_of(argv[n]), str_cut(&rest, ' ')))
			return 0;
		n++;
	}
	return n;
}

#define GROUP_WORDS_MAX 2

/*
 * How many of argv's first words are the beginning of commands and not a whole one, which
 * group gets: "bench", "bench sweep".
 */
static int find_group(int argc, char **argv, char group[static 64])
{
	int found = 0;
	char words[64] = "";

	*group = 0;
	for (int n = 0; n < argc && n < GROUP_WORDS_MAX; n++) {
		size_t len = strlen(words);

		snprintf(words + len, sizeof(words) - len, "%s ", argv[n]);
		for (size_t i = 0; i < COMMANDS && found == n; i++)
			if (str_starts(str_of(commands[i].name), str_of(words))) {
				snprintf(group, 64, "%.*s", (int)strlen(words) - 1, words);
				found = n + 1;
			}
		if (found == n)
			break;
	}
	return found;
}

/* ---- scripts of vLLM's ---- */

/* A script's own name: paths and .py are how it was called. */
static struct str script_name(const char *word)
{
	const char *slash = strrchr(word, '/');
	struct str name = str_of(slash ? slash + 1 : word);

	if (name.n > 3 && str_ends(name, STR(".py")))
		name.n -= 3;
	return name;
}

/* Scripts of old that are commands now. */
static const struct command *script(const char *word)
{
	static const struct { const char *script, *command; } old[] = {
		{ "benchmark_serving", "bench serve" },
		{ "benchmark_throughput", "bench throughput" },
		{ "benchmark_latency", "bench latency" },
		{ "benchmark_serving_multi_turn", "bench multi-turn" },
		{ "convert_sharegpt_to_openai", "dataset convert-sharegpt" },
		{ "benchmark_serving_structured_output", "bench structured-output" },
		{ "benchmark_prioritization", "bench prioritization" },
		{ "benchmark_prefix_caching", "bench prefix-caching" },
		{ "benchmark_long_document_qa_throughput", "bench long-document-qa" },
		{ "benchmark_hash", "bench hash" },
		{ "benchmark_prefix_block_hash", "bench prefix-block-hash" },
	};
	struct str name = script_name(word);

	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
		for (size_t k = 0; k < COMMANDS; k++)
			if (str_eq(name, str_of(old[i].script)) &&
			    strcmp(commands[k].name, old[i].command) == 0)
				return &commands[k];
	return NULL;
}

#define TYPED_BYTES 96

/* ---- words that are not a command ---- */

#define COMMAND_WORDS_MAX 3
#define VARIANTS_MAX (1 << (COMMAND_WORDS_MAX - 1))

/*
 * A command's name as users shorten it: without blanks, and without some of the words before
 * the last: "bench sweep plot" is also "benchplot", "sweepplot" and "plot". Returns how many.
 */
static size_t shorten(const char *name, char out[VARIANTS_MAX][TYPED_BYTES])
{
	struct str rest = str_of(name), word[COMMAND_WORDS_MAX];
	size_t n = 0;

	while (rest.n && n < COMMAND_WORDS_MAX)
		word[n++] = str_cut(&rest, ' ');
	for (size_t kept = 0; kept < (size_t)1 << (n - 1); kept++) {
		size_t len = 0;

		for (size_t i = 0; i < n; i++)
			if (i == n - 1 || kept >> i & 1)
				len += (size_t)snprintf(out[kept] + len, TYPED_BYTES - len, "%.*s",
							(int)word[i].n, word[i].p);
	}
	return (size_t)1 << (n - 1);
}

/* Of the commands that begin with group, the one that the words after it probably mean. */
static const char *nearest_in(const char *group, struct str typed)
{
	static char text[COMMANDS][VARIANTS_MAX][TYPED_BYTES];
	const char *names[COMMANDS * VARIANTS_MAX], *near, *longer = NULL;
	size_t n = 0, begin = 0, skip = *group ? strlen(group) + 1 : 0;

	for (size_t i = 0; i < COMMANDS; i++) {
		if (!str_starts(str_of(commands[i].name), str_of(group)))
			continue;
		for (size_t k = shorten(commands[i].name + skip, text[i]); k-- > 0;)
			names[n++] = text[i][k];
	}
	/* "dataset convert": the only one that goes on like this. */
	for (size_t i = 0; i < n; i++) {
		if (!str_starts(str_of(names[i]), typed))
			continue;
		longer = begin++ ? longer : names[i];
	}
	near = begin == 1 ? longer : opt_nearest(typed, names, n);
	for (size_t i = 0; near && i < COMMANDS; i++)
		if (near >= text[i][0] && near < text[i][0] + sizeof(text[i]))
			return commands[i].name;
	return NULL;
}

/* As many of argv's words as belong together are taken; operands and options may follow. */
static const char *nearest(const char *group, int argc, char **argv)
{
	const char *near = NULL;
	char typed[TYPED_BYTES];

	for (int n = argc < COMMAND_WORDS_MAX ? argc : COMMAND_WORDS_MAX; n > 0 && !near; n--) {
		size_t len = 0;

		for (int i = 0; i < n && len < TYPED_BYTES; i++)
			len += (size_t)snprintf(typed + len, TYPED_BYTES - len, "%s", argv[i]);
		if (len < TYPED_BYTES && argv[n - 1][0] != '-')
			near = nearest_in(group, (struct str){ typed, len });
	}
	if (near || !*group)
		return near;
	near = nearest("", argc, argv); /* 'dataset list' does not mean 'args list' */
	return near && near[0] == argv[0][0] ? near : NULL;
}

static int unknown(const char *group, int words, int argc, char **argv, bool is_help_asked)
{
	const char *near;

	near = nearest(group, argc - words, argv + words);
	if (!near && is_help_asked)
		near = topic_nearest(str_of(argv[words]));
	fprintf(stderr, "profllm: unknown %s '%s%s%s'; ",
		*argv[words] == '-' ? "option" : is_help_asked ? "command or topic" : "command",
		group, words ? " " : "", argv[words]);
	if (near)
		fprintf(stderr, "did you mean '%s'?\n", near);
	else
		fprintf(stderr, "profllm%s%s --help lists the commands\n", words ? " " : "", group);
	return 2;
}

/* "profllm bench": which command is still to be said. */
static int missing(const char *group)
{
	const char *sep = ": ";

	fprintf(stderr, "profllm %s: a command is missing", group);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!str_starts(str_of(commands[i].name), str_of(group)))
			continue;
		fprintf(stderr, "%s%s", sep, commands[i].name);
		sep = ", ";
	}
	fprintf(stderr, "; profllm %s --help describes them\n", group);
	return 2;
}

/* A link called vllm is its server, the simulated one, for tools that start it by that name. */
static bool is_vllm(const char *program)
{
	const char *slash = strrchr(program, '/'), *as_vllm = getenv("PROFLLM_SIM_AS_VLLM");

	return as_vllm && strcmp(as_vllm, "1") == 0 &&
	       strcmp(slash ? slash + 1 : program, "vllm") == 0;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
	       str_starts(str_of(word), STR("--help="));
}

/*
 * `profllm help WORD...` and `profllm --help=WORD`: what is no command may be a topic; "errors"
 * lists them, "--markdown" is docs/errors.md. False: it is neither.
 */
static bool show_topic(int argc, char **argv)
{
	struct buf word = { 0 }, page = { 0 };
	bool is_known = true;

	for (int i = 0; i < argc; i++)
		buf_printf(&word, "%s%s", i ? "_" : "", argv[i]);
	if (argc == 1 && strcmp(argv[0], "errors") == 0)
		topic_list(&page);
	else if (argc == 1 && strcmp(argv[0], "--markdown") == 0)
		topic_markdown(&page);
	else
		is_known = topic_show(buf_str(&word), &page);
	cli_out_buf(&page);
	buf_release(&word);
	return is_known;
}

/* The command that argv begins with, with its own arguments; or what to say instead. */
static int run(int argc, char **argv, bool is_help_asked)
{
	static char help[] = "--help";
	char *only_help[] = { help, NULL };
	const struct command *found = argc > 0 ? script(argv[0]) : NULL;
	int words = found ? 1 : 0;
	char group[64];

	for (size_t i = 0; i < COMMANDS && !words; i++) {
		words = match(&commands[i], argc, argv);
		found = &commands[i];
	}
	if (words && is_help_asked)
		return start(found, 1, only_help);
	if (words)
		return start(found, argc - words, argv + words);
	words = find_group(argc, argv, group);
	if (is_help_asked && argc > words && show_topic(argc, argv))
		return 0;
	if (argc == 1 && str_starts(str_of(argv[0]), STR("--help=")))
		return run(1, (char *[]){ argv[0] + strlen("--help=") }, true);
	if (argc == words ? is_help_asked : is_help(argv[words]))
		return usage(stdout, group, 0);
	if (argc == words)
		return *group ? missing(group) : usage(stderr, "", 2);
	return unknown(group, words, argc, argv, is_help_asked);
}

#define UNWRITTEN "profllm: cannot write to standard output: "

/* Who reads our output has gone. Verbs that must still store something ignore the signal. */
static void on_pipe(int number)
{
	static const char text[] = UNWRITTEN "Broken pipe\n";
	ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)number;
	(void)written;
	_exit(1);
}

/*
 * A closed descriptor would be given to the next file that is opened, and reports written into
 * it. This one cannot be written to (read from), which is then reported.
 */
static void fill_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(1);
}

/* The exit status: a report that could not be written is a failure. */
static int finish(int status)
{
	bool is_lost = ferror(stdout);

	errno = 0;
	if (fclose(stdout) == 0 && !is_lost)
		return status;
	fprintf(stderr, UNWRITTEN "%s\n", errno ? strerror(errno) : "an earlier write failed");
	return status ? status : 1;
}

static int run_command(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	const struct command *old = argc > 0 ? script(argv[0]) : NULL;

	if (old)
		return start(old, argc - 1, argv + 1);
	if (argc > 1 && is_vllm(argv[0]) && strcmp(first, "serve") == 0)
		return cmd_sim(argc - 2, argv + 2);
	if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 ||
	    strcmp(first, "version") == 0)
		return puts("profllm " PROFLLM_VERSION) < 0;
	if (strcmp(first, "help") == 0)
		return run(argc - 2, argv + 2, true);
	return run(argc > 0 ? argc - 1 : 0, argv + 1, false);
}

int main(int argc, char **argv)
{
	redact_learn_lines(environ);
	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	/* A parent that ignores it (some supervisors do) would hide how our own children end. */
	signal(SIGCHLD, SIG_DFL);
	redact_learn_words(argv);
	fill_descriptors();
	signal(SIGPIPE, on_pipe);
	return finish(run_command(argc, argv));
}
