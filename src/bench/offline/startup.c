/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - see startup.h: options, numbers, the run, its files. */
#include "bench/offline/startup.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/offline/caches.h"
#include "bench/offline/offline.h"
#include "bench/offline/pytorch.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/report/verdict.h"

static const char *const side_name[STARTUP_SIDES] = { "cold", "warmup", "warm" };

#define RULE "============================================================"

/* One figure of an iteration, with its names. */
struct startup_field {
	const char *key, *name, *lower; /* of upstream's metrics; NULL: ours */
	size_t offset;
};
enum { FIELD_STARTUP, FIELD_COMPILATION, FIELD_ENCODER, FIELD_SPAWN, FIELD_READY, FIELDS };
static const struct startup_field fields[FIELDS] = {
	{ "startup", "Startup time", "startup time", offsetof(struct startup_iteration, startup_s) },
	{ "compilation", "Compilation time", "compilation time",
	  offsetof(struct startup_iteration, compilation_s) },
	{ "encoder_compilation", "Encoder compilation time", "encoder compilation time",
	  offsetof(struct startup_iteration, encoder_compilation_s) },
	{ "spawn_s", NULL, NULL, offsetof(struct startup_iteration, spawn_s) },
	{ "ready_s", NULL, NULL, offsetof(struct startup_iteration, ready_s) },
};

static double value_of(const struct startup_iteration *it, size_t field)
{
	return *(const double *)(const void *)((const char *)it + fields[field].offset);
}

static const enum startup_side measured[] = { STARTUP_COLD, STARTUP_WARM };

/* ---- metrics ---- */

static bool has_encoder(const struct startup_runs *r)
{
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < r->side[measured[s]].n; i++)
			if (r->side[measured[s]].v[i].encoder_compilation_s > 0)
				return true;
	return false;
}

/* A compilation time that the engine does not report is 0, as upstream has it. */
static void fill(const struct startup_runs *r, enum startup_side side, size_t field,
		 struct startup_metric *m, struct arena *a)
{
	size_t n = r->side[side].n;
	double *value = arena_alloc(a, n * sizeof(*value));

	for (size_t i = 0; i < n; i++) {
		value[i] = value_of(&r->side[side].v[i], field);
		if (isnan(value[i]))
			value[i] = 0;
	}
	*m = (struct startup_metric){ .name = fields[field].name, .side = side, .value = value,
				      .n = n, .mean = stats_mean(value, n) };
	snprintf(m->key, sizeof(m->key), "%s_%s", side_name[side], fields[field].key);
	offline_percentiles(value, n, m->percentile);
}

size_t startup_metrics(const struct startup_runs *r, struct startup_metric *out, struct arena *a)
{
	size_t n = 0, per_side = has_encoder(r) ? 3 : 2;

	for (enum startup_side s = STARTUP_COLD; s < STARTUP_SIDES; s++) {
		if (s == STARTUP_WARMUP || r->side[s].n == 0)
			continue;
		for (size_t f = 0; f < per_side; f++)
			fill(r, s, f, &out[n++], a);
	}
	return n;
}

/* ---- doubts ---- */

static double mean_from(const struct startup_runs *r, enum startup_side side, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < r->side[side].n; i++)
		sum += r->side[side].v[i].startup_s;
	return sum / (double)(r->side[side].n - from);
}

static bool is_spread(const struct startup_runs *r, enum startup_side side)
{
	size_t n = r->side[side].n;
	struct arena a = { 0 };
	double *v = arena_alloc(&a, (n + 1) * sizeof(*v));
	bool is;

	for (size_t i = 0; i < n; i++)
		v[i] = r->side[side].v[i].startup_s;
	is = n >= STARTUP_JUDGE_MIN && stats_std(v, n) > STARTUP_SPREAD_SHARE * stats_mean(v, n);
	arena_release(&a);
	return is;
}

/* The first start of all reads from disk what later ones find in memory. */
static bool is_first_slow(const struct startup_runs *r)
{
	const enum startup_side side = STARTUP_COLD;

	return r->side[side].n >= STARTUP_JUDGE_MIN && !r->is_page_cache_dropped &&
	       r->side[side].v[0].startup_s > STARTUP_FIRST_SHARE * mean_from(r, side, 1);
}

static bool is_coarse(const struct startup_runs *r)
{
	for (size_t s = 0; s < 2; s++)
		if (r->is_server && r->side[measured[s]].n &&
		    STARTUP_POLL_S > STARTUP_COARSE_SHARE * mean_from(r, measured[s], 0))
			return true;
	return false;
}

unsigned startup_doubts(const struct startup_runs *r)
{
	unsigned doubts = r->is_interrupted ? STARTUP_STOPPED : 0;

	for (size_t s = 0; s < 2; s++) {
		size_t n = r->side[measured[s]].n;

		if (n && n < STARTUP_JUDGE_MIN)
			doubts |= STARTUP_FEW;
		if (is_spread(r, measured[s]))
			doubts |= STARTUP_SPREADS;
	}
	if (r->side[STARTUP_WARM].n && !r->side[STARTUP_WARMUP].n)
		doubts |= STARTUP_NO_WARMUP;
	if (is_first_slow(r))
		doubts |= STARTUP_FIRST_SLOW;
	return is_coarse(r) ? doubts | STARTUP_COARSE : doubts;
}

static const struct offline_doubt doubt_rows[] = {
	{ STARTUP_STOPPED, TRUST_DEGRADED, "interrupted",
	  "it was stopped before all starts were measured" },
	{ STARTUP_FEW, TRUST_DEGRADED, "few",
	  "one or two starts of a kind do not show their spread" },
	{ STARTUP_SPREADS, TRUST_DEGRADED, "spread", "starts of a kind differ: their standard deviation "
	  "is above 10 % of the mean" },
	{ STARTUP_NO_WARMUP, TRUST_DEGRADED, "no_warmup",
	  "nothing filled the caches before the first warm start" },
	{ STARTUP_FIRST_SLOW, TRUST_DEGRADED, "first_slow", "the first start took more than 20 % longer "
	  "than the other cold ones: it may have read the model from a disk, and they from memory" },
	{ STARTUP_COARSE, TRUST_DEGRADED, "coarse", "a server is polled ten times a second, and "
	  "one interval is more than 5 % of its start" },
};

static struct trust startup_trust(const struct startup_runs *r)
{
	return offline_verdict(doubt_rows, sizeof(doubt_rows) / sizeof(*doubt_rows),
			       startup_doubts(r), NULL, NULL);
}

/* ---- upstream's lines ---- */

static void put_side(const struct startup_metric *m, size_t n, enum startup_side side,
		     struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].side == side)
			for (size_t f = 0; f <= FIELD_ENCODER; f++)
				if (m[i].name == fields[f].name)
					buf_printf(out, "Avg %s: %.2f seconds\n", fields[f].lower,
						   m[i].mean);
	for (size_t i = 0; i < n; i++) {
		if (m[i].side != side)
			continue;
		buf_printf(out, "%s percentiles:\n", m[i].name);
		for (size_t p = 0; p < OFFLINE_PERCENTILES; p++)
			buf_printf(out, "  %d%%: %.2f seconds\n", offline_percentages[p],
				   m[i].percentile[p]);
	}
}

void startup_terminal(const struct startup_runs *r, struct buf *out)
{
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct arena a = { 0 };
	size_t n = startup_metrics(r, m, &a);

	buf_add_text(out, "\n" RULE "\nSTARTUP TIME BENCHMARK RESULTS\n" RULE "\n");
	buf_add_text(out, "\nCOLD STARTUP:\n");
	put_side(m, n, STARTUP_COLD, out);
	buf_add_text(out, "\nWARM STARTUP:\n");
	put_side(m, n, STARTUP_WARM, out);
	buf_add_text(out, RULE "\n");
	arena_release(&a);
}

/* ---- phases ---- */

#define PHASES_SHOWN 64 /* distinct names; more are no phases of an engine */

/* Distinct names of a run's phases in the order in which they first appear. */
struct phases {
	const char *name[PHASES_SHOWN];
	size_t n;
};

static void gather(const struct startup_runs *r, struct phases *p)
{
	*p = (struct phases){ .n = 0 };
	for (size_t s = 0; s < STARTUP_SIDES; s++)
		for (size_t i = 0; i < r->side[s].n; i++)
			for (size_t k = 0; k < r->side[s].v[i].n_phases; k++) {
				const char *name = r->side[s].v[i].phase[k].name;
				size_t at = 0;

				while (at < p->n && strcmp(p->name[at], name) != 0)
					at++;
				if (at == p->n && p->n < PHASES_SHOWN)
					p->name[p->n++] = name;
			}
}

/* Time an iteration spent in the phase, summed over its occurrences; NAN: no such phase. */
static double phase_of(const struct startup_iteration *it, const char *name)
{
	double sum = NAN;

	for (size_t k = 0; k < it->n_phases; k++)
		if (strcmp(it->phase[k].name, name) == 0)
			sum = isnan(sum) ? it->phase[k].s : sum + it->phase[k].s;
	return sum;
}

/* Collects the reported values of a side's field or phase; returns their number. */
static size_t told(const struct startup_runs *r, enum startup_side side, size_t field,
		   const char *phase, double *out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->side[side].n; i++) {
		const struct startup_iteration *it = &r->side[side].v[i];
		double v = phase ? phase_of(it, phase) : value_of(it, field);

		if (!isnan(v))
			out[n++] = v;
	}
	return n;
}

/* ---- ours ---- */

/* Returns how many iterations reported it. */
static size_t put_cell(const struct startup_runs *r, enum startup_side side, size_t field,
		       const char *phase, struct buf *out)
{
	struct arena a = { 0 };
	double *v = arena_alloc(&a, (r->side[side].n + 1) * sizeof(*v));
	size_t n = told(r, side, field, phase, v);

	if (n)
		buf_printf(out, "%11.2f", stats_mean(v, n));
	else
		buf_printf(out, "%11s", "-");
	arena_release(&a);
	return n;
}

/* Appends nothing when no iteration reported it. */
static void put_row(const struct startup_runs *r, const char *label, size_t field,
		    const char *phase, struct buf *out)
{
	struct buf cells = { 0 };
	size_t n = put_cell(r, STARTUP_COLD, field, phase, &cells);

	n += put_cell(r, STARTUP_WARM, field, phase, &cells);
	if (n)
		buf_printf(out, "%-38.38s%s\n", label, cells.data);
	buf_release(&cells);
}

static void put_pages(const struct startup_runs *r, struct buf *out)
{
	int64_t dropped = 0, left = 0;

	if (!r->is_page_cache_dropped) {
		buf_add_text(out, "Cold means empty compilation caches; the model's files stayed in the "
			     "page cache.\n");
		return;
	}
	for (size_t i = 0; i < r->side[STARTUP_COLD].n; i++) {
		dropped += r->side[STARTUP_COLD].v[i].dropped_bytes;
		left += r->side[STARTUP_COLD].v[i].left_bytes;
	}
	buf_printf(out, "Cold means empty compilation caches and the model's files out of the page "
		   "cache (%.1f MB dropped, %.1f MB stayed, over all cold starts).\n",
		   (double)dropped / 1e6, (double)left / 1e6);
}

void startup_terminal_ours(const struct startup_runs *r, struct buf *out)
{
	struct trust t = startup_trust(r);
	struct phases p;

	gather(r, &p);
	buf_printf(out, "%-38s%11s%11s\n", "Mean seconds", "cold", "warm");
	put_row(r, "from its start until it can be asked", FIELD_READY, NULL, out);
	put_row(r, "of it: interpreter and imports", FIELD_SPAWN, NULL, out);
	if (!r->is_server)
		put_row(r, "of it: building the engine (as above)", FIELD_STARTUP, NULL, out);
	for (size_t i = 0; i < p.n; i++)
		put_row(r, p.name[i], 0, p.name[i], out);
	put_pages(r, out);
	offline_show_verdict(&t, out);
}

/* ---- JSON ---- */

static void put_metric(struct json_writer *w, const struct startup_metric *m, bool has_mean)
{
	char key[96];

	if (has_mean) {
		snprintf(key, sizeof(key), "avg_%s_time", m->key);
		json_member_f64(w, key, m->mean);
	}
	snprintf(key, sizeof(key), "%s_times", m->key);
	json_member_f64s(w, key, m->value, m->n);
	snprintf(key, sizeof(key), "%s_percentiles", m->key);
	offline_put_percentiles(w, key, m->percentile);
}

/* The additional members of a metric's PyTorch record: a JSON object. */
static void startup_extra(const struct startup_metric *m, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_metric(&w, m, false);
	json_end_object(&w);
}

static void put_told(struct json_writer *w, const char *key, double v)
{
	if (!isnan(v))
		json_member_f64(w, key, v);
}

static void put_iteration(struct json_writer *w, const struct startup_runs *r,
			  const struct startup_iteration *it, const struct phases *p)
{
	json_begin_object(w);
	for (size_t f = 0; f < FIELDS; f++) {
		char key[64];

		snprintf(key, sizeof(key), "%s%s", fields[f].key, fields[f].name ? "_s" : "");
		put_told(w, key, value_of(it, f));
	}
	if (r->is_page_cache_dropped && it->dropped_bytes >= 0) {
		json_member_int(w, "page_cache_dropped_bytes", it->dropped_bytes);
		json_member_int(w, "page_cache_left_bytes", it->left_bytes);
	}
	json_member_object(w, "phases");
	for (size_t i = 0; i < p->n; i++)
		put_told(w, p->name[i], phase_of(it, p->name[i]));
	json_end_object(w);
	json_end_object(w);
}

/* {"mean": s, "percentiles": {...}} of what was reported; nothing when nothing was. */
static void put_spread(struct json_writer *w, const struct startup_runs *r, enum startup_side side,
		       size_t field, const char *phase)
{
	struct arena a = { 0 };
	double *v = arena_alloc(&a, (r->side[side].n + 1) * sizeof(*v));
	double percentile[OFFLINE_PERCENTILES];
	size_t n = told(r, side, field, phase, v);

	if (n) {
		offline_percentiles(v, n, percentile);
		json_member_object(w, phase ? phase : fields[field].key);
		json_member_f64(w, "mean", stats_mean(v, n));
		json_member_f64(w, "std", stats_std(v, n));
		offline_put_percentiles(w, "percentiles", percentile);
		json_end_object(w);
	}
	arena_release(&a);
}

static void put_side_json(struct json_writer *w, const struct startup_runs *r,
			  enum startup_side side, const struct phases *p)
{
	json_member_object(w, side_name[side]);
	json_member_int(w, "iterations_asked", (int64_t)r->side[side].wanted);
	put_spread(w, r, side, FIELD_SPAWN, NULL);
	put_spread(w, r, side, FIELD_READY, NULL);
	json_member_object(w, "phases");
	for (size_t i = 0; i < p->n; i++)
		put_spread(w, r, side, 0, p->name[i]);
	json_end_object(w);
	json_member_array(w, "iterations");
	for (size_t i = 0; i < r->side[side].n; i++)
		put_iteration(w, r, &r->side[side].v[i], p);
	json_end_array(w);
	json_end_object(w);
}

static void put_ours(struct json_writer *w, const struct startup_runs *r, struct str ours)
{
	struct trust t = startup_trust(r);
	struct phases p;

	gather(r, &p);
	json_member_object(w, "profllm");
	json_put_members(w, ours);
	json_member_text(w, "clock", r->is_server ? "server's start to its first healthy answer" :
		 "building the engine");
	json_member_text(w, "cold_means", r->is_page_cache_dropped ?
		 "empty compilation caches, model files out of the page cache" :
		 "empty compilation caches");
	json_member_bool(w, "interrupted", r->is_interrupted);
	verdict_put(w, &t);
	for (enum startup_side s = STARTUP_COLD; s < STARTUP_SIDES; s++)
		put_side_json(w, r, s, &p);
	json_end_object(w);
}

void startup_json(const struct startup_runs *r, struct str ours, struct buf *out)
{
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct json_writer w = json_writer(out);
	struct arena a = { 0 };
	size_t n = startup_metrics(r, m, &a);

	w.indent = 4;
	json_begin_object(&w);
	for (size_t i = 0; i < n; i++)
		put_metric(&w, &m[i], true);
	put_ours(&w, r, ours);
	json_end_object(&w);
	arena_release(&a);
}

/* ---- the run ---- */

/* Runs the engine in the process that reports its compilation time. */
#define ONE_PROCESS "VLLM_ENABLE_V1_MULTIPROCESSING=0"

struct startup_bench {
	struct offline_job *job;
	const struct startup_opts *o;
	struct startup_runs runs;
	struct offline_about about;  /* of the first start; its texts are copies */
	bool is_started;             /* about is filled */
	bool is_left_said;
	struct arena arena;
};

/* The user's variables, ours and those of the caches; words are borrowed. */
static char **environment(const struct startup_bench *b, const struct caches *caches)
{
	const size_t ours = words_count(b->job->engine->env), room = 6;
	char **env = mem_array(ours + room, sizeof(*env));
	size_t n = 0;

	for (; n < ours; n++)
		env[n] = b->job->engine->env[n];
	if (!b->runs.is_server)
		env[n++] = (char *)(uintptr_t)ONE_PROCESS;
	for (size_t i = 0; i < sizeof(caches->env) / sizeof(*caches->env) && caches->env[i]; i++)
		env[n++] = caches->env[i];
	assert(n < ours + room);
	return env;
}

/* Texts live until offline_stop. */
static void keep_about(struct startup_bench *b, const struct offline_about *about)
{
	struct arena *a = &b->arena;

	if (b->is_started)
		return;
	b->is_started = true;
	b->about = *about;
	b->about.engine = arena_text(a, str_of(about->engine));
	b->about.version = arena_text(a, str_of(about->version));
	b->about.device = arena_text(a, str_of(about->device));
	b->about.method = arena_text(a, str_of(about->method));
	b->about.profile_to = b->about.profile_dir = "";
	b->about.json = arena_str(a, about->json);
}

static void keep_times(struct startup_bench *b, const struct offline_loaded *l,
		       struct startup_iteration *it)
{
	struct engine_phase *phase = arena_alloc(&b->arena, (l->n_phases + 1) * sizeof(*phase));

	for (size_t i = 0; i < l->n_phases; i++)
		phase[i] = (struct engine_phase){
			arena_text(&b->arena, str_of(l->phase[i].name)), l->phase[i].s };
	it->startup_s = isnan(l->load_s) ? l->ready_s : l->load_s;
	it->compilation_s = l->compilation_s;
	it->encoder_compilation_s = l->encoder_compilation_s;
	it->spawn_s = l->spawn_s;
	it->ready_s = l->ready_s;
	it->phase = phase;
	it->n_phases = l->n_phases;
}

static int start_engine(struct startup_bench *b, const struct caches *caches,
			struct startup_iteration *it, struct err *e)
{
	struct offline_job *job = b->job;
	struct offline_start how = {
		.opts = job->opts, .engine_argv = job->engine->argv, .env = environment(b, caches),
		.backend = job->engine->worker, .is_async = job->engine->is_async,
		.log_name = "startup", .hooks = job->hooks,
	};
	struct offline_loaded loaded;
	struct offline *engine = NULL;
	struct err left = { 0 };
	int rc;

	how.hooks.progress = NULL; /* that of a single start */
	rc = offline_start(&how, &engine, e);
	/* Arguments unknown to the engine's version are reported at the first start. */
	if (rc == 0 && !b->is_started)
		rc = offline_judge(job->opts, job->engine, offline_about(engine), &job->hooks, e);
	if (rc == 0 && (rc = offline_load(engine, &loaded, e)) < 0 && e->code != ERR_CANCELLED)
		err_wrap(e, "Subprocess failed"); /* upstream's sentence */
	if (rc == 0) {
		keep_about(b, offline_about(engine));
		keep_times(b, &loaded, it);
	}
	if (offline_stop(engine, &left) < 0 && rc == 0) {
		*e = left;
		rc = -1;
	}
	free((void *)(uintptr_t)how.env);
	return rc;
}

static int drop_pages(const struct startup_bench *b, struct startup_iteration *it, struct err *e)
{
	struct cached_pages pages;

	if (!b->o->drop_page_cache)
		return 0;
	if (pages_drop(b->job->engine->model, &pages, e) < 0)
		return -1;
	it->dropped_bytes = pages.dropped;
	it->left_bytes = pages.left;
	return 0;
}

static int one(struct startup_bench *b, enum startup_side side, struct startup_iteration *it,
	       struct err *e)
{
	const struct offline_hooks *hooks = &b->job->hooks;
	struct caches caches = { 0 };
	struct err left = { 0 };
	int rc;

	it->dropped_bytes = it->left_bytes = -1;
	if (side == STARTUP_COLD && (drop_pages(b, it, e) < 0 || caches_new(&caches, e) < 0))
		return -1;
	rc = start_engine(b, &caches, it, e);
	if (caches_remove(&caches, &left) < 0 && !b->is_left_said) {
		if (hooks->warn)
			hooks->warn(hooks->self, left.text);
		b->is_left_said = true;
	}
	return rc;
}

static int iterate(struct startup_bench *b, enum startup_side side, const char *label,
		   struct err *e)
{
	struct startup_runs *runs = &b->runs;
	size_t wanted = runs->side[side].wanted;

	runs->side[side].v = arena_alloc(&b->arena, wanted * sizeof(*runs->side[side].v));
	for (size_t i = 0; i < wanted; i++) {
		offline_progress(&b->job->hooks, label, (int64_t)i, (int64_t)wanted);
		if (one(b, side, &runs->side[side].v[i], e) < 0)
			return -1;
		runs->side[side].n = i + 1;
	}
	offline_progress(&b->job->hooks, label, (int64_t)wanted, (int64_t)wanted);
	return 0;
}

static int measure(struct startup_bench *b, struct err *e)
{
	static const struct { enum startup_side side; const char *line, *label; } steps[] = {
		{ STARTUP_COLD, "Measuring cold startup time...", "Cold startup iterations" },
		{ STARTUP_WARMUP, "Warming up for warm startup measurement...", "Warmup iterations" },
		{ STARTUP_WARM, "Measuring warm startup time...", "Warm startup iterations" },
	};
	const struct offline_hooks *hooks = &b->job->hooks;

	if (!b->runs.is_server)
		offline_line(hooks, "Setting " ONE_PROCESS " to collect startup metrics.");
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (i || !b->runs.is_server)
			offline_line(hooks, "%s", "");
		offline_line(hooks, "%s", steps[i].line);
		offline_line(hooks, "%s", "");
		if (iterate(b, steps[i].side, steps[i].label, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- its files ---- */

/* One PyTorch file for each metric. */
static int save_metrics(const struct startup_bench *b, struct err *e)
{
	const struct run_pytorch_verb verb = { &startup_opt_set, b->o, b->job->engine,
					       b->job->opts->output_json };
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct arena a = { 0 };
	size_t n = startup_metrics(&b->runs, m, &a);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct buf value = { 0 }, extra = { 0 };
		char number[FMT_F64_BYTES];
		struct pytorch_metric metric = { .name = arena_printf(&a, "avg_%s_time", m[i].key) };

		buf_printf(&value, "[%s]", fmt_f64(number, m[i].mean));
		metric.values = buf_str(&value);
		startup_extra(&m[i], &extra);
		rc = run_pytorch_save_verb(&verb, m[i].key, &metric, 1, buf_str(&extra), e);
		buf_release(&value);
		buf_release(&extra);
	}
	arena_release(&a);
	return rc;
}

static int report(const struct startup_bench *b, struct err *e)
{
	const struct offline_reported reported = {
		.command = "startup", .backend = b->job->opts->backend, .about = &b->about,
	};
	struct buf text = { 0 }, ours = { 0 };
	struct json_writer w = json_writer(&ours);
	int rc;

	startup_terminal(&b->runs, &text);
	offline_reported_line(&text, &reported);
	startup_terminal_ours(&b->runs, &text);
	offline_say(&b->job->hooks, &text);
	json_begin_object(&w);
	offline_reported(&w, &reported);
	json_member_text(&w, "model_id", b->job->engine->model);
	json_member_texts(&w, "engine_args", b->job->engine->shown_argv);
	json_end_object(&w);
	startup_json(&b->runs, buf_str(&ours), &text);
	rc = offline_job_save(b->job, buf_str(&text), NULL, 0, STR(""), e);
	buf_release(&ours);
	buf_release(&text);
	return rc < 0 ? -1 : save_metrics(b, e);
}

/* ---- the verb ---- */

static int check(struct offline_job *job, struct err *e)
{
	struct startup_opts *o = (struct startup_opts *)job->opts;
	const struct { const char *name; int64_t *v, v011; } counts[STARTUP_SIDES] = {
		[STARTUP_COLD] = { "num-iters-cold", &o->num_iters_cold, 5 },
		[STARTUP_WARMUP] = { "num-iters-warmup", &o->num_iters_warmup, 3 },
		[STARTUP_WARM] = { "num-iters-warm", &o->num_iters_warm, 5 },
	};

	(void)e;
	for (size_t i = 0; job->engine->is_v011 && i < STARTUP_SIDES; i++)
		if (!opt_given(&startup_opt_set, job->given, counts[i].name))
			*counts[i].v = counts[i].v011;
	for (size_t i = 0; i < 2; i++)
		if (*counts[measured[i]].v <= 0)
			buf_printf(job->notes, "--%s %lld: %s starts are not measured, and the result has "
				   "no keys of them\n", counts[measured[i]].name,
				   (long long)*counts[measured[i]].v, side_name[measured[i]]);
	if (o->num_iters_warm > 0 && o->num_iters_warmup <= 0)
		buf_printf(job->notes, "--num-iters-warmup %lld: the first warm start may find empty "
			   "caches\n", (long long)o->num_iters_warmup);
	return 0;
}

static void plan(const struct offline_job *job, struct buf *out)
{
	const struct startup_opts *o = (const struct startup_opts *)job->opts;

	buf_printf(out, "Starts: %lld cold, %lld for warm-up, %lld warm\n",
		   (long long)o->num_iters_cold, (long long)o->num_iters_warmup,
		   (long long)o->num_iters_warm);
}

static int run(struct offline_job *job, struct err *e)
{
	const struct startup_opts *o = (const struct startup_opts *)job->opts;
	const int64_t wanted[STARTUP_SIDES] = { o->num_iters_cold, o->num_iters_warmup,
						o->num_iters_warm };
	struct startup_bench b = { .job = job, .o = o };
	struct startup_runs *runs = &b.runs;
	struct err unsaved = { 0 };
	int rc;

	runs->is_server = strcmp(job->engine->worker, "http") == 0;
	runs->is_page_cache_dropped = o->drop_page_cache;
	for (size_t i = 0; i < STARTUP_SIDES; i++)
		runs->side[i].wanted = wanted[i] > 0 ? (size_t)wanted[i] : 0;
	if (wanted[STARTUP_COLD] + wanted[STARTUP_WARMUP] + wanted[STARTUP_WARM] <= 0)
		return err_set(e, ERR_USAGE, "--num-iters-cold, --num-iters-warmup and --num-iters-warm are "
			       "0: there is nothing to start");
	if (runs->is_server && o->common.base_url)
		return err_set(e, ERR_USAGE, "--base-url: a server that runs already cannot be started; "
			       "give --server-cmd");
	rc = measure(&b, e);
	/* A failed start ends the run as well; the starts before it are reported. */
	runs->is_interrupted = rc < 0 && (e->code == ERR_CANCELLED ||
					  runs->side[STARTUP_COLD].n > 0 ||
					  runs->side[STARTUP_WARM].n > 0);
	if (b.is_started && (rc == 0 || runs->is_interrupted) && report(&b, &unsaved) < 0) {
		if (rc < 0)
			err_wrap(e, "%s", unsaved.text);
		else
			*e = unsaved;
		rc = -1;
	}
	arena_release(&b.arena);
	return rc;
}

static void example(const void *values, struct buf *out)
{
	const struct startup_opts *o = values;
	struct startup_iteration one = {
		.startup_s = 1, .compilation_s = 1, .encoder_compilation_s = 1, .spawn_s = 1,
		.ready_s = 1, .dropped_bytes = -1, .left_bytes = -1,
	};
	const int64_t n[] = { o->num_iters_cold, o->num_iters_warmup, o->num_iters_warm };
	struct startup_runs runs = { 0 };
	struct buf ours = { 0 };

	for (size_t i = 0; i < STARTUP_SIDES; i++) {
		runs.side[i].v = &one;
		runs.side[i].n = runs.side[i].wanted = n[i] > 0;
	}
	offline_reported_example("startup", &ours);
	startup_json(&runs, buf_str(&ours), out);
	buf_release(&ours);
}

/* ---- options ---- */

#define GROUP "Start-up"
#define COUNT_MAX 100000 /* days of starts */

/* The order of upstream's flags, then ours. */
static const struct opt rows[] = {
	OPT(struct startup_opts, num_iters_cold, "num-iters-cold", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts with empty compilation caches"),
	OPT(struct startup_opts, num_iters_warmup, "num-iters-warmup", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts that fill the caches and are not counted"),
	OPT(struct startup_opts, num_iters_warm, "num-iters-warm", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts with the caches of the one before"),
	OPT(struct startup_opts, common.output_json, "output-json", .group = GROUP, .arg = "FILE",
	    .help = "result file (JSON)"),
	OPT(struct startup_opts, drop_page_cache, "drop-page-cache", .group = GROUP,
	    .flags = OPT_OURS,
	    .help = "before each cold start, take the model's files out of the kernel's page cache"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
	GATE_ROW_FAIL_IF(struct startup_opts, common.gate, OFFLINE_GROUP_OURS, "avg_cold_startup_time>60"),
	GATE_ROWS(struct startup_opts, common.gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct startup_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.num_iters_cold = 3, .num_iters_warmup = 1, .num_iters_warm = 3,
};

const struct opt_set startup_opt_set = {
	.command = "bench startup",
	.summary = "Measures how long an engine takes to start, with empty caches and with full ones.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench startup --model facebook/opt-125m --output-json startup.json\n"
		  "  profllm bench startup --backend sim --model sim",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb startup_verb = {
	.name = "startup", .set = &startup_opt_set, .check = check, .plan = plan, .example = example,
	.run = run,
};
