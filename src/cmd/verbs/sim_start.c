/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_start.c - see sim_cli.h. The log has the lines by which vLLM's start is known (sizes and
 * times that other programs look for); it goes to stderr.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd/verbs/sim_cli.h"

void sim_log(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("INFO ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* 12345678 as 12,345,678. */
static const char *grouped(char out[32], int64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRId64, v), k = 0;

	for (int i = 0; i < n; i++) {
		out[k++] = digits[i];
		if ((n - 1 - i) % 3 == 0 && i + 1 < n)
			out[k++] = ',';
	}
	out[k] = '\0';
	return out;
}

/* A signal just before a nap is noticed just after it. */
#define NAP_S 0.05

/* True when a signal cut it short. */
static bool sleep_for(double seconds, sim_is_stopped *is_stopped)
{
	while (seconds > 0 && !is_stopped()) {
		double nap = fmin(seconds, NAP_S);
		struct timespec t = { 0, (long)(nap * 1e9) };

		nanosleep(&t, NULL);
		seconds -= nap;
	}
	return is_stopped();
}

int sim_start_fail(const char *how, struct err *e)
{
	struct str rest = str_of(how);
	uint64_t status;

	if (strcmp(how, "oom") == 0)
		return err_set(e, ERR_RUN, "torch.OutOfMemoryError: CUDA out of memory. Tried to "
			       "allocate 896.00 MiB. (--fail-start oom)");
	if (strcmp(how, "killed") == 0)
		raise(SIGKILL);
	if (str_eq(str_cut(&rest, '='), STR("exit")) && str_to_u64(rest, &status) && status < 256)
		exit((int)status);
	return err_set(e, ERR_USAGE, "--fail-start: expected oom, killed or exit=N, got '%.80s'", how);
}

/* As in vLLM once for each data-parallel rank, whose pipeline stages share a cache. */
void sim_log_cache(const struct sim_setup *s, int64_t ranks)
{
	char tokens[32], length[32];
	int64_t each = s->sim.kv_cache_tokens * s->sim.engines / ranks;

	for (int64_t i = 0; i < ranks; i++)
		fprintf(stderr, "(EngineCore_DP%" PRId64 " pid=%d) INFO GPU KV cache size: %s tokens, "
			"Maximum concurrency for %s tokens per request: %.2fx\n", i, getpid(),
			grouped(tokens, each), grouped(length, s->sim.max_model_len),
			(double)each / (double)s->sim.max_model_len);
}

/* vLLM's line of what its configuration has come to, and two limits that vLLM says elsewhere. */
static void log_config(const struct sim_cli *cli, const struct sim_setup *s)
{
	const struct hardware_opts *o = &s->hw.opts;
	int64_t seqs = s->has_hardware ? o->max_num_seqs : s->sim.max_num_seqs;
	int64_t batch = s->has_hardware ? o->max_num_batched_tokens : s->sim.max_num_batched_tokens;

	sim_log("Initializing a V1 LLM engine (vprofllm-sim) with config: model='%s', max_seq_len=%"
		PRId64 ", max_num_seqs=%" PRId64 ", max_num_batched_tokens=%" PRId64
		", tensor_parallel_size=%" PRId64 ", pipeline_parallel_size=%" PRId64
		", data_parallel_size=%" PRId64 ", enable_prefix_caching=%s, enable_chunked_prefill=%s",
		sim_model(cli), s->sim.max_model_len, seqs, batch, cli->tp, cli->pp, cli->dp,
		s->sim.is_prefix_cached ? "True" : "False", s->sim.is_prompt_whole ? "False" : "True");
}

int sim_start(const struct sim_cli *cli, const struct sim_setup *s, sim_is_stopped *is_stopped,
	      struct err *e)
{
	double load_s = s->hw.load_s * cli->startup_scale;
	double compile_s = s->hw.compile_s * cli->startup_scale;
	bool is_logged = s->has_hardware || cli->startup_scale > 0 || cli->is_never_ready;

	if (is_logged) {
		log_config(cli, s);
		sim_log("Starting to load model %s...", sim_model(cli));
	}
	if (sleep_for(load_s, is_stopped))
		return 1;
	if (cli->fail_start)
		return sim_start_fail(cli->fail_start, e);
	if (is_logged) {
		sim_log("Loading weights took %.2f seconds", load_s);
		sim_log("Model loading took %.2f GiB memory and %.6f seconds",
			 s->hw.weights_bytes / GIB, load_s);
		sim_log("Available KV cache memory: %.2f GiB", s->hw.kv_bytes / GIB);
		sim_log_cache(s, cli->dp);
	}
	if (sleep_for(compile_s, is_stopped))
		return 1;
	if (is_logged)
		sim_log("init engine (profile, create kv cache, warmup model) took %.2f s",
			 compile_s);
	while (cli->is_never_ready)
		if (sleep_for(3600, is_stopped))
			return 1;
	return 0;
}

void sim_start_done(const struct sim_cli *cli, const struct sim_setup *s)
{
	if (s->has_hardware || cli->startup_scale > 0)
		sim_log("Application startup complete.");
}
