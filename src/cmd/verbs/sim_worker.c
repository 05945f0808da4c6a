/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_worker.c - see sim_cli.h: the modelled engine as a worker program. Its options are those it
 * was started with, followed by the engine's arguments of each "load".
 *
 * A small file in $VLLM_CACHE_ROOT, else in $PROFLLM_CACHE_DIR/sim, $XDG_CACHE_HOME/profllm/sim or
 * ~/.cache/profllm/sim marks a compiled model: with it the next load of the same model is a warm
 * one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sim_cli.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/engine/args.h"
#include "host/worker/worker.h"
#include "sim/model/fault.h"
#include "sim/serving/worker.h"
#include "version.h"

/* Share of the time a model takes to start, unless --startup-scale is given. */
#define WORKER_STARTUP_SCALE 0.002
/* Seconds to start a model without a description. */
#define SOME_LOAD_S 6.0
#define SOME_COMPILE_S 24.0
#define SOME_PROFILE_S 2.0
#define SOME_CAPTURE_S 6.0
#define SPAWN_S 2.5          /* the engine's own process */
#define WARM_SHARE 0.15      /* of compiling, with a cached result */
#define ENCODER_SHARE 0.25   /* and the encoder's part, when it is compiled too */

struct host {
	char *const *own;        /* options of ours, ended by NULL */
	struct cli cli;          /* those in effect */
	struct sim_cli options;
	struct sim_args args;
	struct sim_setup setup;
	double scale;
	char marker[4096];       /* of the compile cache; empty: there is none */
};

static void host_forget(struct host *h)
{
	buf_release(&h->args.notes);
	buf_release(&h->setup.notes);
	opt_result_release(&h->cli.result);
	arena_release(&h->cli.arena);
	h->cli = (struct cli){ 0 };
	h->args = (struct sim_args){ 0 };
	h->setup = (struct sim_setup){ 0 };
}

/* ---- the compile cache ---- */

static bool cache_root(char *out, size_t n)
{
	static const struct { const char *variable, *behind; } roots[] = {
		{ "VLLM_CACHE_ROOT", "" }, { "PROFLLM_CACHE_DIR", "/sim" },
		{ "XDG_CACHE_HOME", "/profllm/sim" }, { "HOME", "/.cache/profllm/sim" },
	};

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		const char *dir = getenv(roots[i].variable);

		if (dir && *dir)
			return (size_t)snprintf(out, n, "%s%s", dir, roots[i].behind) < n;
	}
	return false;
}

/* The path that marks this model as compiled under these arguments. */
static void marker_name(struct host *h)
{
	const struct hardware_opts *o = &h->setup.hw.opts;
	const struct sim_opts *s = &h->setup.sim;
	char root[3584], identity[512];
	const char *off = getenv("VLLM_DISABLE_COMPILE_CACHE");
	int n;

	h->marker[0] = '\0';
	if ((off && strcmp(off, "1") == 0) || !cache_root(root, sizeof(root)))
		return;
	n = snprintf(identity, sizeof(identity), "%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "|%"
		     PRId64 "|%" PRId64, s->model, h->options.dtype,
		     h->options.quantization ? h->options.quantization : "", o->tp, o->pp,
		     s->max_num_batched_tokens, s->max_model_len, s->spec_tokens);
	snprintf(h->marker, sizeof(h->marker), "%s/torch_compile_cache/sim-%016" PRIx64 "/compiled",
		 root, map_hash((struct str){ identity, (size_t)n < sizeof(identity) ? (size_t)n :
		 sizeof(identity) - 1 }));
}

/* Written while later phases run; their deadlines are fixed, so no time is lost. */
static void marker_leave(const struct host *h)
{
	char *folder = mem_text(h->marker);
	int fd = -1;

	*strrchr(folder, '/') = '\0';
	if (file_mkdirs(folder, NULL) == 0)
		fd = open(h->marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
	free(folder);
}

/* ---- the plan of a load ---- */

static void phase_add(const struct host *h, struct sim_model *m, const char *name, double s)
{
	if (s > 0)
		m->phase[m->phases++] = (struct sim_phase){ .name = name,
							    .modelled_s = s * h->scale };
}

static void phases_plan(struct host *h, struct sim_model *m, bool has_encoder)
{
	struct sim_hardware *hw = &h->setup.hw;
	double compile, encoder = 0;

	if (hw->load_s == 0) {
		hw->load_s = SOME_LOAD_S;
		hw->profile_s = SOME_PROFILE_S;
		hw->capture_s = h->options.eager == OPT_TRI_YES ? 0 : SOME_CAPTURE_S;
		hw->compile_s = h->options.eager == OPT_TRI_YES ? SOME_PROFILE_S : SOME_COMPILE_S;
	}
	compile = hw->compile_s - hw->profile_s - hw->capture_s;
	marker_name(h);
	m->is_compiled = h->marker[0] && file_exists(h->marker);
	if (m->is_compiled)
		compile *= WARM_SHARE;
	if (has_encoder)
		encoder = compile * ENCODER_SHARE;
	if (!m->is_in_process)
		phase_add(h, m, "engine process", SPAWN_S);
	phase_add(h, m, "load weights", hw->load_s);
	phase_add(h, m, "torch.compile", compile);
	phase_add(h, m, "torch.compile of the encoder", encoder);
	phase_add(h, m, "KV cache", hw->profile_s / 2);
	phase_add(h, m, "CUDA graphs", hw->capture_s);
	phase_add(h, m, "warm-up", hw->profile_s / 2);
	m->compilation_s = m->encoder_compilation_s = m->is_in_process ? 0 : NAN;
}

static bool has_part(const char *text, const char *const *parts)
{
	for (; *parts; parts++)
		if (strcasestr(text, *parts))
			return true;
	return false;
}

/* Reads vLLM's arguments that the simulated model's options do not cover. */
static void engine_read(struct host *h, char *const *argv, struct sim_model *m, bool *has_encoder)
{
	static const char *const pooling[] = { "embed", "rerank", "bge-", "e5-", "gte-", NULL };
	struct arena *a = &h->cli.arena;
	const char *multi = getenv("VLLM_ENABLE_V1_MULTIPROCESSING");
	const char *runner = engine_argv_text(argv, "runner", a);
	const char *profiler = engine_argv_text(argv, "profiler-config.profiler", a);
	const char *folder = engine_argv_text(argv, "profiler-config.torch_profiler_dir", a);
	const char *by_env = getenv("VLLM_TORCH_PROFILER_DIR");
	const char *cache = engine_argv_text(argv, "mm-processor-cache-gb", a);
	const char *encoder = engine_argv_text(argv, "compilation-config.compile_mm_encoder", a);
	double gb = 1;

	m->profile_to = m->profile_dir = "";
	if ((profiler && strcmp(profiler, "torch") == 0 && folder) || (by_env && *by_env)) {
		m->profile_to = "torch";
		m->profile_dir = folder ? folder : by_env;
	}
	m->is_in_process = multi && strcmp(multi, "0") == 0;
	m->is_pooling = runner && strcmp(runner, "pooling") == 0;
	if (!runner || strcmp(runner, "auto") == 0)
		m->is_pooling = has_part(sim_model(&h->options), pooling);
	m->is_media_uncached = cache && str_to_f64(str_of(cache), &gb) && gb <= 0;
	*has_encoder = encoder && strcasecmp(encoder, "true") == 0;
}

/* Our arguments, then the engine's, after a program name as argv[0]. */
static char **argv_join(struct host *h, char *const *args)
{
	size_t n = 1, k;
	char **all;

	for (k = 0; h->own[k]; k++)
		n++;
	for (k = 0; args[k]; k++)
		n++;
	all = arena_alloc(&h->cli.arena, (n + 1) * sizeof(*all));
	all[0] = arena_text(&h->cli.arena, STR("sim"));
	n = 1;
	for (k = 0; h->own[k]; k++)
		all[n++] = h->own[k];
	for (k = 0; args[k]; k++)
		all[n++] = arena_text(&h->cli.arena, str_of(args[k]));
	return all;
}

static int options_read(struct host *h, char **all, struct err *e)
{
	const struct opt_set *set = cmd_sim_options();

	h->cli.set = set;
	if (sim_args_fit(set, all + 1, &h->args, &h->cli.arena, e) < 0)
		return -1;
	if (opt_parse(set, h->args.argc, h->args.argv, &h->options, &h->cli.result, &h->cli.arena,
		      e) < 0)
		return -1;
	if (h->options.ttft_ms || h->options.itl_ms || h->options.burst_ms > 0)
		return err_set(e, ERR_USAGE, "--ttft-ms, --itl-ms and --burst-ms set the pace of a "
			       "server's answers; a worker has only the engine model");
	if (h->options.truth_file || h->options.requests_file)
		return err_set(e, ERR_USAGE, "--truth and --requests describe a server's requests; "
			       "use --account FILE for a worker's batches");
	return sim_setup(&h->options, &h->cli, &h->args, &h->setup, e);
}

static int account_check(const char *path, struct err *e)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

	if (path && fd < 0)
		return err_set(e, ERR_IO, "--account: %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return 0;
}

static int plan(void *self, char *const *args, struct sim_model *m, struct err *e)
{
	struct host *h = self;
	bool has_encoder;
	char **all;

	host_forget(h);
	all = argv_join(h, args);
	if (options_read(h, all, e) < 0)
		return -1;
	fputs(h->args.notes.len ? h->args.notes.data : "", stderr);
	fputs(h->setup.notes.len ? h->setup.notes.data : "", stderr);
	h->scale = opt_given(h->cli.set, &h->cli.result, "startup-scale") ?
		   h->options.startup_scale : WORKER_STARTUP_SCALE;
	if (account_check(h->options.account, e) < 0)
		return -1;
	*m = (struct sim_model){ .opts = &h->setup.sim, .dtype = h->options.dtype,
				 .account = h->options.account, .mishap = h->options.worker_fault,
				 .device = h->setup.has_hardware ? h->setup.hw.gpu->name : "sim" };
	engine_read(h, all, m, &has_encoder);
	phases_plan(h, m, has_encoder);
	return 0;
}

/* ---- the load ---- */

/* Sleeps until shortly before the time, as waking up is late on a busy machine; then spins. */
#define AWAKE_NS 1000000

static void wait_until(int64_t at_ns)
{
	int64_t early = at_ns - AWAKE_NS;
	struct timespec t = { early / 1000000000, early % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		continue;
	while (clock_mono_ns() < at_ns)
		continue;
}

static void phase_log(const struct host *h, const struct sim_model *m, const struct sim_phase *p)
{
	const struct sim_hardware *hw = &h->setup.hw;

	if (strcmp(p->name, "load weights") == 0) {
		sim_log("Loading weights took %.2f seconds", p->s);
		sim_log("Model loading took %.2f GiB memory and %.6f seconds",
			hw->weights_bytes / GIB, p->s);
	} else if (strcmp(p->name, "torch.compile") == 0 && m->is_compiled) {
		sim_log("Directly load the compiled graph(s) for compile range (1, %" PRId64 ") from "
			"the cache, took %.3f s", m->opts->max_num_batched_tokens, p->s);
	} else if (strcmp(p->name, "torch.compile") == 0) {
		sim_log("torch.compile took %.2f s in total", p->s);
	} else if (strcmp(p->name, "KV cache") == 0) {
		sim_log("Available KV cache memory: %.2f GiB", hw->kv_bytes / GIB);
		sim_log_cache(&h->setup, h->options.dp);
	} else if (strcmp(p->name, "CUDA graphs") == 0) {
		sim_log("Graph capturing finished in %.0f secs, took 0.50 GiB", p->s);
	}
}

/* vLLM's counters, which are readable when the engine is in this process. */
static void counter_fill(struct sim_model *m, const struct sim_phase *p)
{
	if (m->is_in_process && strcmp(p->name, "torch.compile") == 0)
		m->compilation_s = p->s;
	else if (m->is_in_process && strcmp(p->name, "torch.compile of the encoder") == 0)
		m->encoder_compilation_s = p->s;
}

static int start(void *self, struct sim_model *m, struct err *e)
{
	struct host *h = self;
	int64_t began = clock_mono_ns(), at = began;
	double init_s = 0;

	sim_log("Starting to load model %s...", m->opts->model);
	for (size_t i = 0; i < m->phases; i++) {
		struct sim_phase *p = &m->phase[i];
		int64_t before = clock_mono_ns();

		at += (int64_t)llround(p->modelled_s * 1e9);
		wait_until(at);
		p->s = (double)(clock_mono_ns() - before) * 1e-9;
		counter_fill(m, p);
		phase_log(h, m, p);
		if (strcmp(p->name, "load weights") == 0) {
			if (h->options.fail_start)
				return sim_start_fail(h->options.fail_start, e);
			init_s = 0;
			continue;
		}
		init_s += p->s;
		if (strcmp(p->name, "torch.compile") == 0 && h->marker[0] && !m->is_compiled)
			marker_leave(h);
	}
	sim_log("init engine (profile, create kv cache, warmup model) took %.2f s", init_s);
	while (h->options.is_never_ready)
		pause();
	return 0;
}

static void crash(void *self, const char *how)
{
	struct err e = { 0 };

	(void)self;
	sim_start_fail(how, &e);
	fprintf(stderr, "%s\n", e.text);
	exit(1);
}

/* ---- the program ---- */

static int worker_fd(struct err *e)
{
	const char *text = getenv(WORKER_FD_VARIABLE);
	int64_t fd = WORKER_FD;

	if (text && (!str_to_i64(str_of(text), &fd) || fd < 0 || fd > INT32_MAX))
		return err_set(e, ERR_USAGE, WORKER_FD_VARIABLE ": expected a descriptor's number, "
			       "got '%.80s'", text);
	if (fcntl((int)fd, F_GETFD) < 0)
		return err_set(e, ERR_USAGE, "--engine-worker speaks over descriptor %d, which is not "
			       "open: bench throughput and its like start it with --backend sim",
			       (int)fd);
	return (int)fd;
}

int sim_worker(const struct sim_cli *cli, char **argv, struct err *e)
{
	struct host h = { .own = argv };
	struct sim_worker_host host = { .self = &h, .version = PROFLLM_VERSION,
					.mishap = cli->worker_fault, .plan = plan,
					.start = start, .crash = crash };
	struct mishap mishap;
	int fd, rc;

	if (mishap_read(&mishap, cli->worker_fault, e) < 0)
		return -1;
	fd = worker_fd(e);
	if (fd < 0)
		return -1;
	rc = sim_worker_serve(&host, fd, e);
	host_forget(&h);
	return rc;
}
