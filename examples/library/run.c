/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - an experiment from a C program:
 *
 *   cc -o run run.c $(pkg-config --cflags --libs profllm)
 *   ./run quickstart.yaml results.json benchmark.num_prompts=20
 *
 * Ctrl-C ends the run soon; what was measured until then is in the document.
 */
#include <profllm.h>
#include <signal.h>
#include <stdio.h>

static unsigned char cancel;

static void on_interrupt(int signal)
{
	(void)signal;
	cancel = 1;
}

static void print_line(void *self, const char *text)
{
	fprintf(self, "%s\n", text);
}

static void print_warning(void *self, const char *text)
{
	fprintf(self, "warning: %s\n", text);
}

int main(int argc, char **argv)
{
	struct profllm_request request = PROFLLM_REQUEST_INIT;
	struct profllm_outcome outcome = PROFLLM_OUTCOME_INIT;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: run CONFIG OUTPUT [KEY=VALUE ...]\n");
		return 2;
	}
	if (profllm_api() != PROFLLM_API) {
		fprintf(stderr, "run: made for version %d of the interface, found %u\n", PROFLLM_API,
			profllm_api());
		return 1;
	}
	signal(SIGINT, on_interrupt);
	request.config_path = argv[1];
	request.output_path = argv[2];
	request.set = (const char *const *)(argv + 3); /* argv ends with NULL, as the list must */
	request.hooks.self = stderr;
	request.hooks.line = print_line;
	request.hooks.warn = print_warning;
	request.cancel = &cancel;

	status = profllm_run(&request, &outcome);
	printf("profllm %s: status %d\n", profllm_version(), status);
	if (outcome.error)
		printf("%s\n", outcome.error);
	profllm_release(&outcome);
	return status;
}
