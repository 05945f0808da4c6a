/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command table and nothing else. */
#include <signal.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "proc/keeper.h"
#include "version.h"

static const struct command commands[] = {
	{ "bench serve", "measure a running server under load; vllm bench serve's options",
	  cmd_bench_serve },
	{ "bench throughput", "measure how many requests an engine works off in a second",
	  cmd_bench_throughput },
	{ "bench latency", "measure how long an engine takes for one batch", cmd_bench_latency },
	{ "bench startup", "measure how long an engine takes to start, cold and warm",
	  cmd_bench_startup },
	{ "bench mm-processor", "measure the stages of multimodal preprocessing",
	  cmd_bench_mm_processor },
	{ "bench score", "report a recorded run again", cmd_bench_score },
	{ "bench compare", "what changed between results, folders or sweeps", cmd_bench_compare },
	{ "bench markdown", "a folder of results as tables", cmd_bench_markdown },
	{ "bench sweep serve", "measure every combination of a server's and a client's options",
	  cmd_bench_sweep_serve },
	{ "bench sweep serve_multi", "bench sweep serve's name of old; with --sla-params serve_sla's",
	  cmd_bench_sweep_multi },
	{ "bench sweep serve_workload", "measure loads from one request at a time to all at once",
	  cmd_bench_sweep_workload },
	{ "bench sweep serve_sla", "find the largest load at which limits hold",
	  cmd_bench_sweep_sla },
	{ "bench sweep startup", "measure starting a server with every combination of options",
	  cmd_bench_sweep_startup },
	{ "bench sweep plot", "draw curves from the results of sweeps", cmd_bench_plot },
	{ "bench sweep plot_pareto", "draw speed per user against speed per GPU, with the frontier",
	  cmd_bench_plot_pareto },
	{ "run", "experiments from one file: GPUs, servers, load, one document each", cmd_run },
	{ "dashboard", "the results store as pages and as an API", cmd_dashboard },
	{ "ingest", "results into the store, or to a dashboard", cmd_ingest },
	{ "export", "runs of the store as CSV or JSON lines", cmd_export },
	{ "backup", "a store as one file", cmd_backup },
	{ "restore", "a store from a backup", cmd_restore },
	{ "store check", "whether a store is whole", cmd_store_check },
	{ "store archive", "hide runs that are kept", cmd_store_archive },
	{ "store remove", "remove runs for good", cmd_store_remove },
	{ "store retain", "limits of age and room", cmd_store_retain },
	{ "store convert", "copy a store from one database to the other", cmd_store_convert },
	{ "args list", "the arguments of vLLM's server", cmd_args_list },
	{ "args show", "all that is known of an argument of vLLM's server", cmd_args_show },
	{ "args import", "learn the arguments of an installed server from its help",
	  cmd_args_import },
	{ "sim", "a simulated inference server that speaks vLLM's API", cmd_sim },
	{ "tokenizer encode", "text to token ids", cmd_tokenizer_encode },
	{ "tokenizer decode", "token ids to text", cmd_tokenizer_decode },
	{ "tokenizer count", "how many tokens texts have", cmd_tokenizer_count },
	{ "tokenizer show", "what a tokenizer is made of", cmd_tokenizer_show },
	{ "tokenizer compile", "make a tokenizer load in milliseconds", cmd_tokenizer_compile },
	{ "dataset show", "what would be sent: lengths and examples", cmd_dataset_show },
	{ "dataset compile", "what would be sent, in one file to replay", cmd_dataset_compile },
	{ "dataset slices", "prompts of a chosen length from a long text", cmd_dataset_slices },
	{ "completion", "print the completion script of a shell", cmd_completion },
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static int usage(FILE *out, const char *group, int status)
{
	fprintf(out, "profllm " PROFLLM_VERSION "\nUsage: profllm COMMAND [options]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		if (str_starts(str_of(commands[i].name), str_of(group)))
			fprintf(out, "  %-26s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\nprofllm COMMAND --help tells more.\n");
	return status;
}

/* How many of argv's words name the command; 0: they do not. */
static int match(const struct command *c, int argc, char **argv)
{
	struct str rest = str_of(c->name);
	int n = 0;

	while (rest.n) {
		if (n == argc || !str_eq(str_of(argv[n]), str_cut(&rest, ' ')))
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

/* Scripts of old that are commands now; paths and .py are how they were called. */
static const struct command *script(const char *word)
{
	static const struct { const char *script, *command; } old[] = {
		{ "benchmark_serving", "bench serve" },
		{ "benchmark_throughput", "bench throughput" },
		{ "benchmark_latency", "bench latency" },
	};
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
	size_t n = strlen(name);

	if (n > 3 && strcmp(name + n - 3, ".py") == 0)
		n -= 3;
	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
		for (size_t k = 0; k < COMMANDS; k++)
			if (str_eq((struct str){ name, n }, str_of(old[i].script)) &&
			    strcmp(commands[k].name, old[i].command) == 0)
				return &commands[k];
	return NULL;
}

/* A link called vllm is its server, the simulated one, for tools that start it by that name. */
static bool is_vllm(const char *program)
{
	const char *slash = strrchr(program, '/'), *as_vllm = getenv("PROFLLM_SIM_AS_VLLM");

	return as_vllm && strcmp(as_vllm, "1") == 0 &&
	       strcmp(slash ? slash + 1 : program, "vllm") == 0;
}

int main(int argc, char **argv)
{
	const struct command *old = argc > 0 ? script(argv[0]) : NULL;
	const char *first = argc > 1 ? argv[1] : "", *next;
	char group[64];
	int words;

	/* A parent that ignores it (some supervisors do) would hide how our own children end. */
	signal(SIGCHLD, SIG_DFL);
	if (old)
		return old->run(argc - 1, argv + 1);
	if (argc > 1 && is_vllm(argv[0]) && strcmp(first, "serve") == 0)
		return cmd_sim(argc - 2, argv + 2);
	if (strcmp(first, KEEPER_WORD) == 0)
		return keeper_main();
	if (argc < 2)
		return usage(stderr, "", 2);
	old = script(first);
	if (old)
		return old->run(argc - 2, argv + 2);
	for (size_t i = 0; i < COMMANDS; i++) {
		words = match(&commands[i], argc - 1, argv + 1);
		if (words)
			return commands[i].run(argc - 1 - words, argv + 1 + words);
	}
	if (strcmp(first, "--version") == 0)
		return puts("profllm " PROFLLM_VERSION) < 0;
	words = find_group(argc - 1, argv + 1, group);
	next = argc > 1 + words ? argv[1 + words] : "";
	if (words && !*next)
		return usage(stderr, group, 2);
	if (strcmp(next, "--help") == 0 || strcmp(next, "-h") == 0)
		return usage(stdout, group, 0);
	fprintf(stderr, "profllm: '%s%s%s' is no command of this version; profllm --help lists them\n",
		group, words ? " " : "", next);
	return 2;
}
