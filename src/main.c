/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command table and nothing else. */
#include "base/banned.h"
#include "cmd/cmd.h"
#include "version.h"

static const struct command commands[] = {
	{ "sim", "a simulated inference server that speaks vLLM's API", cmd_sim },
};

static int usage(FILE *out, int status)
{
	fprintf(out, "profllm " PROFLLM_VERSION "\nUsage: profllm COMMAND [options]\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "\nprofllm COMMAND --help tells more.\n");
	return status;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return usage(stdout, 0);
	if (strcmp(argv[1], "--version") == 0)
		return puts("profllm " PROFLLM_VERSION) < 0;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "profllm: '%s' is no command; profllm --help lists them\n", argv[1]);
	return 2;
}
