/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - see startup.h. */
#include "run/startup.h"

#include <math.h>

#include "base/mem.h"
#include "run/caches.h"

/* The engine runs in the program that tells of its compiling. */
#define ONE_PROCESS "VLLM_ENABLE_V1_MULTIPROCESSING=0"

struct bench {
	const struct startup_opts *o;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct startup_result *out;
	struct offline_hooks quiet; /* without the progress of a single start */
	bool is_left_said;
};

static void say(const struct bench *b, const char *text)
{
	if (b->hooks->line)
		b->hooks->line(b->hooks->self, text);
}

static void warn(const struct bench *b, const char *text)
{
	if (b->hooks->warn)
		b->hooks->warn(b->hooks->self, text);
}

/* ---- one start ---- */

/* The user's, ours and those of the caches; words are borrowed. */
static char **environment(const struct bench *b, const struct caches *caches)
{
	size_t n = 0, ours = 0, room = 6;
	char **env;

	while (b->engine->env && b->engine->env[ours])
		ours++;
	env = mem_array(ours + room, sizeof(*env));
	for (; n < ours; n++)
		env[n] = b->engine->env[n];
	if (!b->out->runs.is_server)
		env[n++] = (char *)(uintptr_t)ONE_PROCESS;
	for (size_t i = 0; i < sizeof(caches->env) / sizeof(*caches->env) && caches->env[i]; i++)
		env[n++] = caches->env[i];
	return env;
}

/* Texts live until offline_stop. */
static void keep_about(struct startup_result *r, const struct offline_about *about)
{
	struct arena *a = &r->arena;

	if (r->is_started)
		return;
	r->is_started = true;
	r->about = *about;
	r->about.engine = arena_text(a, str_of(about->engine));
	r->about.version = arena_text(a, str_of(about->version));
	r->about.device = arena_text(a, str_of(about->device));
	r->about.method = arena_text(a, str_of(about->method));
	r->about.profile_to = r->about.profile_dir = "";
	r->about.json = arena_str(a, about->json);
}

static void keep_times(struct startup_result *r, const struct offline_loaded *l,
		       struct startup_iteration *it)
{
	struct startup_phase *phase = arena_alloc(&r->arena, (l->n_phases + 1) * sizeof(*phase));

	for (size_t i = 0; i < l->n_phases; i++)
		phase[i] = (struct startup_phase){
			arena_text(&r->arena, str_of(l->phase[i].name)), l->phase[i].s };
	it->startup_s = isnan(l->load_s) ? l->ready_s : l->load_s;
	it->compilation_s = l->compilation_s;
	it->encoder_compilation_s = l->encoder_compilation_s;
	it->spawn_s = l->spawn_s;
	it->ready_s = l->ready_s;
	it->phase = phase;
	it->n_phases = l->n_phases;
}

/* Once, with the first start: what its version does not know of the arguments. */
static int judge(const struct bench *b, const struct offline_about *about, struct err *e)
{
	return b->out->is_started ? 0 :
		offline_judge(&b->o->common, b->engine, about, b->hooks, e);
}

static int start_engine(const struct bench *b, const struct caches *caches,
			struct startup_iteration *it, struct err *e)
{
	char **env = environment(b, caches);
	const struct offline_start how = {
		.opts = &b->o->common, .engine_argv = b->engine->argv, .env = env,
		.backend = b->engine->worker, .is_async = b->engine->is_async,
		.log_name = "startup", .hooks = b->quiet,
	};
	struct offline_loaded loaded;
	struct offline *engine = NULL;
	struct err left = { 0 };
	int rc = offline_start(&how, &engine, e);

	if (rc == 0)
		rc = judge(b, offline_about(engine), e);
	if (rc == 0 && (rc = offline_load(engine, &loaded, e)) < 0 && e->code != ERR_CANCELLED)
		err_wrap(e, "Subprocess failed"); /* upstream's sentence */
	if (rc == 0) {
		keep_about(b->out, offline_about(engine));
		keep_times(b->out, &loaded, it);
	}
	if (offline_stop(engine, &left) < 0 && rc == 0) {
		*e = left;
		rc = -1;
	}
	free(env);
	return rc;
}

/* ---- iterations ---- */

static int drop_pages(const struct bench *b, struct startup_iteration *it, struct err *e)
{
	struct pages pages;

	if (!b->o->drop_page_cache)
		return 0;
	if (pages_drop(b->engine->model, &pages, e) < 0)
		return -1;
	it->dropped_bytes = pages.dropped;
	it->left_bytes = pages.left;
	return 0;
}

static int one(struct bench *b, enum startup_side side, struct startup_iteration *it,
	       struct err *e)
{
	struct caches caches = { 0 };
	struct err left = { 0 };
	int rc = 0;

	it->dropped_bytes = it->left_bytes = -1;
	if (side == STARTUP_COLD && (drop_pages(b, it, e) < 0 || caches_new(&caches, e) < 0))
		return -1;
	rc = start_engine(b, &caches, it, e);
	if (caches_remove(&caches, &left) < 0 && !b->is_left_said) {
		warn(b, left.text);
		b->is_left_said = true;
	}
	return rc;
}

static int iterate(struct bench *b, enum startup_side side, const char *label, struct err *e)
{
	struct startup_runs *runs = &b->out->runs;
	size_t wanted = runs->side[side].wanted;

	runs->side[side].v = arena_alloc(&b->out->arena, wanted * sizeof(*runs->side[side].v));
	for (size_t i = 0; i < wanted; i++) {
		if (b->hooks->progress)
			b->hooks->progress(b->hooks->self, label, i, wanted);
		if (one(b, side, &runs->side[side].v[i], e) < 0)
			return -1;
		runs->side[side].n = i + 1;
	}
	if (wanted && b->hooks->progress)
		b->hooks->progress(b->hooks->self, label, wanted, wanted);
	return 0;
}

static int run_all(struct bench *b, struct err *e)
{
	if (!b->out->runs.is_server) {
		say(b, "Setting " ONE_PROCESS " to collect startup metrics.");
		say(b, "");
	}
	say(b, "Measuring cold startup time...");
	say(b, "");
	if (iterate(b, STARTUP_COLD, "Cold startup iterations", e) < 0)
		return -1;
	say(b, "");
	say(b, "Warming up for warm startup measurement...");
	say(b, "");
	if (iterate(b, STARTUP_WARMUP, "Warmup iterations", e) < 0)
		return -1;
	say(b, "");
	say(b, "Measuring warm startup time...");
	say(b, "");
	return iterate(b, STARTUP_WARM, "Warm startup iterations", e);
}

int startup_run(const struct startup_opts *o, const struct offline_engine *engine,
		const struct offline_hooks *hooks, struct startup_result *out, struct err *e)
{
	struct bench b = { .o = o, .engine = engine, .hooks = hooks, .out = out, .quiet = *hooks };
	const int64_t wanted[STARTUP_SIDES] = { o->num_iters_cold, o->num_iters_warmup,
						o->num_iters_warm };
	int rc;

	*out = (struct startup_result){ 0 };
	b.quiet.progress = NULL;
	out->runs.is_server = strcmp(engine->worker, "http") == 0;
	out->runs.is_page_cache_dropped = o->drop_page_cache;
	for (size_t i = 0; i < STARTUP_SIDES; i++)
		out->runs.side[i].wanted = wanted[i] > 0 ? (size_t)wanted[i] : 0;
	if (wanted[STARTUP_COLD] + wanted[STARTUP_WARMUP] + wanted[STARTUP_WARM] <= 0)
		return err_set(e, ERR_USAGE, "--num-iters-cold, --num-iters-warmup and --num-iters-warm are "
			       "0: there is nothing to start");
	if (out->runs.is_server && o->common.base_url)
		return err_set(e, ERR_USAGE, "--base-url: a server that runs already cannot be started; "
			       "give --server-cmd");
	rc = run_all(&b, e);
	/* A start that failed ends it, too; those before it are reported. */
	out->runs.is_interrupted = rc < 0 && (e->code == ERR_CANCELLED ||
					      out->runs.side[STARTUP_COLD].n > 0 ||
					      out->runs.side[STARTUP_WARM].n > 0);
	return rc;
}

void startup_result_release(struct startup_result *r)
{
	arena_release(&r->arena);
	*r = (struct startup_result){ 0 };
}
