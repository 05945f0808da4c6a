/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - `profllm sim`: one server, SIGINT and SIGTERM; turns options into a server and its
 * hardware; prints the lines of vLLM's start (sizes and times that other programs look for) on
 * stderr.
 *
 * Exit status: 2 for bad options, 1 for failures (a taken port, an unwritable file) and a model
 * that does not fit, 0 after a signal.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sim_cli.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "host/proc/tree.h"
#include "sim/model/hardware.h"

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

static volatile sig_atomic_t is_stop_wanted;

/* A signal just before a sleep is noticed just after it. */
#define NAP_S 0.05

/* True when a signal cut it short. */
static bool sleep_for(double seconds)
{
	while (seconds > 0 && !is_stop_wanted) {
		double nap = fmin(seconds, NAP_S);
		struct timespec t = { 0, (long)(nap * 1e9) };

		nanosleep(&t, NULL);
		seconds -= nap;
	}
	return is_stop_wanted;
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

/* As in vLLM, once for each data-parallel rank, whose pipeline stages share a cache. */
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

/* vLLM's line with its final configuration, and two limits that vLLM prints elsewhere. */
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

/*
 * What precedes listening: phases of loading with their log lines and times, faults of --fail-start
 * and --never-ready. 1: a signal ended it; -1 with e: it failed.
 */
static int sim_start(const struct sim_cli *cli, const struct sim_setup *s, struct err *e)
{
	double load_s = s->hw.load_s * cli->startup_scale;
	double compile_s = s->hw.compile_s * cli->startup_scale;
	bool is_logged = s->has_hardware || cli->startup_scale > 0 || cli->is_never_ready;

	if (is_logged) {
		log_config(cli, s);
		sim_log("Starting to load model %s...", sim_model(cli));
	}
	if (sleep_for(load_s))
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
	if (sleep_for(compile_s))
		return 1;
	if (is_logged)
		sim_log("init engine (profile, create kv cache, warmup model) took %.2f s",
			 compile_s);
	while (cli->is_never_ready)
		if (sleep_for(3600))
			return 1;
	return 0;
}

static void sim_start_done(const struct sim_cli *cli, const struct sim_setup *s)
{
	if (s->has_hardware || cli->startup_scale > 0)
		sim_log("Application startup complete.");
}

/* ---- options into a server and its hardware ---- */

#define LENGTH_MIN 2 /* a prompt and an answer of one token each */

const char *sim_model(const struct sim_cli *cli)
{
	return cli->model_tag ? cli->model_tag : cli->model;
}

/* Whole seconds, milliseconds or requests: "2s", "500ms", "20req". */
static int death_read(const char *text, struct sim_opts *out, struct err *e)
{
	struct str s = str_of(text), number = s;
	uint64_t n;

	while (number.n && (number.p[number.n - 1] < '0' || number.p[number.n - 1] > '9'))
		number.n--;
	s = (struct str){ s.p + number.n, s.n - number.n };
	if (str_to_u64(number, &n) && n > 0 && n < 1000000000) {
		if (str_is(s, "s"))
			out->die_after_ns = (int64_t)n * 1000000000;
		else if (str_is(s, "ms"))
			out->die_after_ns = (int64_t)n * 1000000;
		else if (str_is(s, "req"))
			out->die_after_requests = (int64_t)n;
	}
	if (out->die_after_ns || out->die_after_requests)
		return 0;
	return err_set(e, ERR_USAGE, "--die-after: expected a time such as 2s or 500ms, or requests "
		       "such as 20req, got '%.80s'", text);
}

struct drafts {
	int64_t tokens;
	const char *method;
};

/* --speculative-config; --spec-tokens and --spec-method take precedence. */
static int drafts_read(const struct sim_cli *cli, const struct cli *parsed, struct drafts *d,
		       struct arena *a, struct err *e)
{
	struct json_value *config;
	struct str method;

	*d = (struct drafts){ cli->spec_tokens, cli->spec_method };
	if (!cli->speculative.text)
		return 0;
	if (json_parse(a, str_of(cli->speculative.text), &config, e) < 0)
		return err_wrap(e, "--speculative-config");
	if (!opt_given(parsed->set, &parsed->result, "spec-tokens"))
		d->tokens = json_int(json_get(config, "num_speculative_tokens"), 0);
	if (d->tokens < 0 || d->tokens > 32)
		return err_set(e, ERR_USAGE, "--speculative-config: num_speculative_tokens must be "
			       "from 0 to 32");
	method = json_text(json_get(config, "method"), (struct str){ 0 });
	if (method.n && !d->method)
		d->method = arena_text(a, method);
	return 0;
}

/* Reads where traces go, if profiling is asked for. */
static int profiler_read(const struct sim_cli *cli, struct sim_opts *out, struct arena *a,
			 struct err *e)
{
	const char *by_env = getenv("VLLM_TORCH_PROFILER_DIR");
	struct json_value *config;
	struct str which, folder;

	out->profile_dir = by_env && *by_env ? by_env : NULL;
	if (!cli->profiler.text)
		return 0;
	if (json_parse(a, str_of(cli->profiler.text), &config, e) < 0)
		return err_wrap(e, "--profiler-config");
	which = json_text(json_get(config, "profiler"), (struct str){ 0 });
	folder = json_text(json_get(config, "torch_profiler_dir"), (struct str){ 0 });
	if (str_is(which, "torch") && !folder.n)
		return err_set(e, ERR_USAGE, "--profiler-config: the torch profiler needs "
			       "torch_profiler_dir");
	if (which.n && !str_is(which, "torch") && !str_is(which, "cuda"))
		return err_set(e, ERR_USAGE, "--profiler-config: expected profiler torch or cuda, got "
			       "%.*s", (int)which.n, which.p);
	if (str_is(which, "torch"))
		out->profile_dir = arena_text(a, folder);
	return 0;
}

static struct sim_opts opts_of(const struct sim_cli *c)
{
	return (struct sim_opts){
		.host = c->host, .port = (uint16_t)c->port, .uds = c->uds,
		.port_file = c->port_file, .cert_file = c->cert_file, .key_file = c->key_file,
		.client_ca_file = c->client_ca_file,
		.api_key = c->api_key ? c->api_key : getenv("VLLM_API_KEY"),
		.keep_alive_ms = c->keep_alive_ms, .model = sim_model(c),
		.served = c->served.v, .served_count = c->served.n, .tokenizer = c->tokenizer,
		.max_model_len = c->max_model_len, .seed = (uint64_t)c->seed,
		.ttft_ms = c->ttft_ms, .itl_ms = c->itl_ms, .burst_ms = c->burst_ms,
		.tokens_per_event = c->tokens_per_event, .reasoning = c->reasoning,
		.output_len = c->output_len, .faults = c->faults.v, .fault_count = c->faults.n,
		.max_num_seqs = c->max_num_seqs, .kv_cache_tokens = c->kv_cache_tokens,
		.max_num_batched_tokens = c->max_num_batched_tokens,
		.block_size = c->block_size, .engines = c->dp, .chunk_max = c->chunk_max,
		.is_prompt_whole = c->chunked_prefill == OPT_TRI_NO,
		.cost = { .prefill_base_us = c->prefill_base_us,
			  .prefill_us_per_token = c->prefill_us_per_token,
			  .decode_base_us = c->decode_base_us,
			  .decode_us_per_seq = c->decode_us_per_seq },
		.spec_tokens = c->spec_tokens, .spec_acceptance = c->spec_acceptance,
		.diffusion_block = c->diffusion_block, .diffusion_steps = c->diffusion_steps,
		.is_prefix_cached = c->prefix_caching == OPT_TRI_YES,
		.is_cached_told = c->is_cached_told,
		.is_guided = strcmp(c->constraint_form, "guided") == 0,
		.is_constraint_ignored = c->is_constraint_ignored,
		.constraint_errors = c->constraint_errors, .tool_call_share = c->tool_call_share,
		.tool_call_errors = c->tool_call_errors, .tool_calls_max = c->tool_calls_max,
		.is_by_priority = strcmp(c->scheduling, "priority") == 0,
		.truth_file = c->truth_file, .requests_file = c->requests_file,
		.trace_ms = c->trace_ms,
	};
}

/* "NAME=PATH", or {"name": .., "path": .., "base_model_name": ..}. */
static int lora_read(const char *text, struct sim_lora *l, struct arena *a, struct err *e)
{
	struct str rest = str_of(text), name;
	struct json_value *v;

	if (*text == '{') {
		if (json_parse(a, rest, &v, e) < 0)
			return err_wrap(e, "--lora-modules");
		name = json_text(json_get(v, "name"), (struct str){ 0 });
		rest = json_text(json_get(v, "path"), (struct str){ 0 });
		if (json_get(v, "base_model_name"))
			l->base = arena_text(a, json_text(json_get(v, "base_model_name"), STR("")));
	} else {
		name = str_cut(&rest, '=');
	}
	if (name.n == 0 || rest.n == 0)
		return err_set(e, ERR_USAGE, "--lora-modules: expected NAME=PATH or a JSON object with "
			       "name and path, got '%.80s'", text);
	l->name = arena_text(a, name);
	l->path = arena_text(a, rest);
	return 0;
}

static int loras_read(const struct sim_cli *c, struct sim_opts *out, struct arena *a, struct err *e)
{
	struct sim_lora *lora = arena_alloc(a, (c->lora_modules.n + 1) * sizeof(*lora));

	if (c->lora_modules.n || c->lora == OPT_TRI_YES)
		out->loras_max = c->loras_max;
	for (size_t i = 0; i < c->lora_modules.n; i++) {
		lora[i] = (struct sim_lora){ 0 };
		if (lora_read(c->lora_modules.v[i], &lora[i], a, e) < 0)
			return -1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(lora[k].name, lora[i].name) == 0)
				return err_set(e, ERR_USAGE, "--lora-modules: two adapters are called "
					       "'%.80s'", lora[i].name);
	}
	out->lora = lora;
	out->lora_count = c->lora_modules.n;
	return 0;
}

/* ---- hardware ---- */

static bool given(const struct cli *parsed, const char *name)
{
	return opt_given(parsed->set, &parsed->result, name);
}

static const char *unless(const char *text, const char *none)
{
	return text && strcmp(text, none) ? text : NULL;
}

static struct hardware_opts hardware_of(const struct sim_cli *c, const struct cli *parsed,
					const struct sim_args *args, const struct drafts *d)
{
	return (struct hardware_opts){
		.gpu = c->gpu, .shape = c->shape, .model = sim_model(c),
		.dtype = unless(c->dtype, "auto"), .quantization = unless(c->quantization, "None"),
		.kv_cache_dtype = unless(c->kv_cache_dtype, "auto"), .tp = c->tp, .pp = c->pp,
		.dp = c->dp, .utilization = c->utilization, .block_size = c->block_size,
		.blocks = c->blocks.is_set ? c->blocks.v : 0,
		.kv_bytes = c->kv_bytes.is_set ? (double)c->kv_bytes.v : 0,
		.max_model_len = given(parsed, "max-model-len") ? c->max_model_len : 0,
		.is_len_auto = args->is_len_auto,
		.max_num_seqs = given(parsed, "max-num-seqs") ? c->max_num_seqs : 0,
		.max_num_batched_tokens = given(parsed, "max-num-batched-tokens") ?
			c->max_num_batched_tokens : 0,
		.drafted = d->tokens, .draft_method = d->method,
		.is_eager = c->eager == OPT_TRI_YES ||
			(args->is_level_eager && c->eager == OPT_TRI_UNSET),
		.is_sync = c->async_scheduling == OPT_TRI_NO,
		.is_prompt_whole = c->chunked_prefill == OPT_TRI_NO,
		.is_dummy = strcmp(c->load_format, "dummy") == 0,
		.offload_gib = c->cpu_offload_gib,
	};
}

/* Values from the hardware replace those that were not given. */
static void hardware_apply(const struct sim_cli *c, const struct cli *parsed,
			   struct sim_setup *s)
{
	static const char *const costs[] = { "prefill-base-us", "prefill-us-per-token",
					     "decode-base-us", "decode-us-per-seq" };
	const struct sim_hardware *hw = &s->hw;
	bool is_cost_given = false;

	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++)
		is_cost_given |= given(parsed, costs[i]);
	if (!is_cost_given)
		s->sim.cost = hw->cost;
	s->sim.max_model_len = hw->opts.max_model_len;
	s->sim.max_num_batched_tokens = hw->opts.max_num_batched_tokens;
	s->sim.max_num_seqs = (hw->opts.max_num_seqs + c->pp - 1) / c->pp;
	s->sim.engines = c->pp * c->dp;
	if (!given(parsed, "kv-cache-tokens"))
		s->sim.kv_cache_tokens = hw->kv_tokens;
}

/* Notes which arguments have no effect because no hardware was named. */
static void without_hardware(const struct sim_cli *c, const struct cli *parsed, struct sim_setup *s)
{
	static const char *const names[] = {
		"tensor-parallel-size", "pipeline-parallel-size", "dtype", "quantization",
		"kv-cache-dtype", "gpu-memory-utilization", "kv-cache-memory-bytes",
		"enforce-eager", "async-scheduling", "cpu-offload-gb",
	};
	size_t n = 0;

	if (c->blocks.is_set)
		s->sim.kv_cache_tokens = c->blocks.v * c->block_size;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (given(parsed, names[i]))
			buf_printf(&s->notes, "%s --%s", n++ ? "," : "no effect without --gpu, "
				   "--model-shape or a model of known shape:", names[i]);
	if (n)
		buf_add_char(&s->notes, '\n');
}

/* A proxy or a cache server runs no requests. */
static bool is_for_others(const struct sim_cli *c)
{
	return c->role && (strcmp(c->role, "proxy") == 0 || strcmp(c->role, "cache") == 0);
}

/*
 * The longest request must fit into the KV cache by itself, or the simulator would answer requests
 * that no engine can serve. A length that the user chose is refused, as by vLLM; the default is
 * reduced. Pipeline stages, which are engines here, share one cache.
 */
static int length_check(const struct sim_cli *c, const struct cli *parsed,
			const struct sim_args *args, struct sim_setup *s, struct err *e)
{
	int64_t room = s->sim.kv_cache_tokens / c->block_size * c->block_size *
		       (s->has_hardware ? c->pp : 1);
	bool is_fixed = !args->is_len_auto && (s->has_hardware || given(parsed, "max-model-len"));

	if (s->sim.max_model_len <= room)
		return 0;
	if (is_fixed || room < LENGTH_MIN)
		return err_set(e, ERR_RUN, "ValueError: The model's max seq len (%" PRId64 ") is larger "
			       "than the maximum number of tokens that can be stored in KV cache (%"
			       PRId64 "). Try a larger cache or decreasing `max_model_len`",
			       s->sim.max_model_len, room);
	buf_printf(&s->notes, "the KV cache holds %" PRId64 " tokens: --max-model-len is %" PRId64
		   " and not %" PRId64 "\n", room, room, s->sim.max_model_len);
	s->sim.max_model_len = room;
	return 0;
}

int sim_setup(const struct sim_cli *cli, const struct cli *parsed, const struct sim_args *args,
	      struct sim_setup *out, struct err *e)
{
	bool is_oracle = cli->ttft_ms || cli->itl_ms || cli->burst_ms > 0;
	bool is_engine = !is_oracle && !is_for_others(cli);
	struct arena *a = (struct arena *)(uintptr_t)&parsed->arena;
	struct hardware_opts hardware;
	struct drafts drafts;

	*out = (struct sim_setup){ .sim = opts_of(cli) };
	if (drafts_read(cli, parsed, &drafts, a, e) < 0)
		return -1;
	out->sim.spec_tokens = drafts.tokens;
	if (profiler_read(cli, &out->sim, a, e) < 0 || loras_read(cli, &out->sim, a, e) < 0)
		return -1;
	if (cli->die_after && death_read(cli->die_after, &out->sim, e) < 0)
		return -1;
	out->has_hardware = cli->gpu || cli->shape || cli->is_explained ||
			    (!is_oracle && hardware_shape_of(sim_model(cli)));
	hardware = hardware_of(cli, parsed, args, &drafts);
	if (out->has_hardware) {
		if (hardware_plan(&hardware, &out->hw, e) < 0)
			return -1;
		hardware_apply(cli, parsed, out);
		/* hardware_plan has already compared the hardware's own cache with this length. */
		if (given(parsed, "kv-cache-tokens") && is_engine &&
		    length_check(cli, parsed, args, out, e) < 0)
			return -1;
		return sim_kv_setup(cli, a, out, e);
	}
	without_hardware(cli, parsed, out);
	if (is_engine && length_check(cli, parsed, args, out, e) < 0)
		return -1;
	if (cli->startup_scale > 0) { /* only the time that starting takes */
		hardware.is_len_auto = true;
		if (hardware_plan(&hardware, &out->hw, e) < 0)
			return -1;
	}
	return sim_kv_setup(cli, a, out, e);
}

/* ---- the verb ---- */

#define STRAY_SECONDS 600

/* What the signal handler stops; one server per process. */
static struct sim *_Atomic serving;

static void on_signal(int signal)
{
	struct sim *s = serving;

	(void)signal;
	is_stop_wanted = 1;
	if (s)
		sim_stop(s);
}

static void signals_catch(bool is_term_ignored)
{
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGINT, &act, NULL);
	if (is_term_ignored)
		signal(SIGTERM, SIG_IGN);
	else
		sigaction(SIGTERM, &act, NULL);
}

static void summary_print(const struct sim *s)
{
	struct sim_summary m = sim_summary(s);
	char p50[FMT_F64_BYTES], p99[FMT_F64_BYTES], max[FMT_F64_BYTES];

	fprintf(stderr, "profllm sim: %" PRIu64 " request%s, %" PRIu64 " events, %" PRIu64 " tokens",
		m.requests, m.requests == 1 ? "" : "s", m.events, m.tokens);
	if (m.events)
		fprintf(stderr, "; CPU per event %.2f us", (double)m.busy_ns / (double)m.events / 1e3);
	if (sim_is_oracle(s))
		fprintf(stderr, "; sent after due: p50 %s, p99 %s, max %s",
			fmt_duration(p50, m.late_p50_ns), fmt_duration(p99, m.late_p99_ns),
			fmt_duration(max, m.late_max_ns));
	fputc('\n', stderr);
}

static int serve(const struct sim_cli *cli, const struct sim_setup *setup, struct err *e)
{
	const struct sim_opts *opts = &setup->sim;
	struct sim *s;
	int rc;

	/* Before signals are caught, so that they end it. */
	if (cli->is_daemon_forked && stray_leave(STRAY_SECONDS, e) < 0)
		return -1;
	/* Before the port file exists, so that a program waiting for it may stop us at once. */
	signals_catch(cli->is_term_ignored);
	rc = sim_start(cli, setup, e);
	if (rc)
		return rc > 0 ? 0 : -1;
	s = sim_new(opts, e);
	if (!s)
		return -1;
	serving = s;
	if (is_stop_wanted)
		sim_stop(s);
	fprintf(stderr, "profllm sim: serving model %s on %s (%s)\n",
		opts->served_count ? opts->served[0] : opts->model, sim_url(s),
		sim_is_oracle(s) ? "oracle" : "engine");
	sim_start_done(cli, setup);
	rc = sim_run(s, e);
	serving = NULL; /* a signal that comes twice, as timeout(1) sends it, changes nothing */
	summary_print(s);
	sim_free(s);
	return rc;
}

int cmd_sim(int argc, char **argv)
{
	struct sim_setup setup = { 0 };
	struct sim_args args = { 0 };
	struct sim_cli options;
	struct arena arena = { 0 };
	struct err e = { 0 };
	struct buf page = { 0 };
	struct cli cli;
	int status;

	(void)argc;
	if (sim_args_fit(cmd_sim_options(), argv, &args, &arena, &e) < 0) {
		fprintf(stderr, "profllm sim");
		cli_print_error(&e);
		status = err_exit_status(&e);
		goto done;
	}
	status = cli_begin(&cli, cmd_sim_options(), args.argc, args.argv, &options);
	if (status != CLI_CONTINUE)
		goto done;
	buf_add_str(&cli.result.notes, buf_str(&args.notes));
	if (options.is_worker) {
		sim_worker(&options, argv, &cli.err);
	} else if (options.account || options.worker_fault) {
		err_set(&cli.err, ERR_USAGE, "%s needs --engine-worker",
			options.account ? "--account" : "--worker-fault");
	} else if (sim_setup(&options, &cli, &args, &setup, &cli.err) == 0) {
		buf_add_str(&cli.result.notes, buf_str(&setup.notes));
		cli_flush_notes(&cli);
		if (options.is_explained)
			hardware_explain(&setup.hw, &page);
		else
			serve(&options, &setup, &cli.err);
		if (page.len)
			cli_out_buf(&page);
	}
	status = cli_end(&cli);
done:
	buf_release(&setup.notes);
	buf_release(&args.notes);
	arena_release(&arena);
	return status;
}
