/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command table and nothing else. */
#include "base/banned.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "version.h"

static const struct command commands[] = {
	{ "bench serve", "measure a running server under load; vllm bench serve's options",
	  cmd_bench_serve },
	{ "bench score", "report a recorded run again", cmd_bench_score },
	{ "sim", "a simulated inference server that speaks vLLM's API", cmd_sim },
	{ "completion", "print the completion script of a shell", cmd_completion },
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static int usage(FILE *out, const char *group, int status)
{
	fprintf(out, "profllm " PROFLLM_VERSION "\nUsage: profllm COMMAND [options]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		if (str_starts(str_of(commands[i].name), str_of(group)))
			fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
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

int main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	const char *last = argc > 2 ? argv[2] : "";
	int is_bench = strcmp(first, "bench") == 0;

	if (argc < 2)
		return usage(stderr, "", 2);
	for (size_t i = 0; i < COMMANDS; i++) {
		int words = match(&commands[i], argc - 1, argv + 1);

		if (words)
			return commands[i].run(argc - 1 - words, argv + 1 + words);
	}
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
		return usage(stdout, "", 0);
	if (strcmp(first, "--version") == 0)
		return puts("profllm " PROFLLM_VERSION) < 0;
	if (is_bench && argc == 2)
		return usage(stderr, "bench", 2);
	if (is_bench && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0))
		return usage(stdout, "bench", 0);
	fprintf(stderr, "profllm: '%s%s%s' is no command of this version; profllm --help lists them\n",
		first, is_bench ? " " : "", is_bench ? last : "");
	return 2;
}
