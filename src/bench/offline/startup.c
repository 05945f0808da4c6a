/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - see startup.h: options, numbers, the run, its files. */
#include "bench/offline/startup.h"

#include <math.h>
#include <stdlib.h>

#include "bench/offline/caches.h"
#include "bench/offline/offline.h"
#include "bench/offline/pytorch.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/report/report.h"
#include "out/report/verdict.h"

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
	OPT(struct startup_opts, output_json, "output-json", .group = GROUP, .arg = "FILE",
	    .help = "result file (JSON)"),
	OPT(struct startup_opts, drop_page_cache, "drop-page-cache", .group = GROUP,
	    .flags = OPT_OURS,
	    .help = "before each cold start, take the model's files out of the kernel's page cache"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
	GATE_ROW_FAIL_IF(struct startup_opts, gate, OFFLINE_GROUP_OURS, "avg_cold_startup_time>60"),
	GATE_ROWS(struct startup_opts, gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct startup_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.num_iters_cold = 3, .num_iters_warmup = 1, .num_iters_warm = 3,
};

const struct opt_set startup_opt_set = {
	.command = "bench startup",
	.summary = "Measure how long an engine takes to start, with empty caches and with full ones",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench startup --model facebook/opt-125m --output-json startup.json\n"
		  "  profllm bench startup --backend sim --model sim",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb startup_verb = { .name = "startup" };

void startup_defaults(struct startup_opts *o, const struct opt_result *given,
		      const struct offline_engine *engine)
{
	const struct { const char *name; int64_t *v, v011; } old[] = {
		{ "num-iters-cold", &o->num_iters_cold, 5 },
		{ "num-iters-warmup", &o->num_iters_warmup, 3 },
		{ "num-iters-warm", &o->num_iters_warm, 5 },
	};

	for (size_t i = 0; engine->is_v011 && i < sizeof(old) / sizeof(*old); i++)
		if (!opt_given(&startup_opt_set, given, old[i].name))
			*old[i].v = old[i].v011;
}

static const int percentages[STARTUP_PERCENTILES] = { 10, 25, 50, 75, 90, 99 };
static const char *const side_name[STARTUP_SIDES] = { "cold", "warmup", "warm" };

#define RULE "============================================================"

/* What is told of an iteration, by name. */
struct field {
	const char *key, *name, *lower; /* of upstream's metrics; NULL: ours */
	size_t offset;
};
enum { FIELD_STARTUP, FIELD_COMPILATION, FIELD_ENCODER, FIELD_SPAWN, FIELD_READY, FIELDS };
static const struct field fields[FIELDS] = {
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

/* ---- metrics ---- */

static void distribution(const double *value, size_t n, double percentile[STARTUP_PERCENTILES])
{
	double *sorted = stats_sorted(value, n);

	for (size_t p = 0; p < STARTUP_PERCENTILES; p++)
		percentile[p] = stats_percentile(sorted, n, percentages[p]);
	free(sorted);
}

static bool has_encoder(const struct startup_runs *r)
{
	static const enum startup_side measured[] = { STARTUP_COLD, STARTUP_WARM };

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < r->side[measured[s]].n; i++)
			if (r->side[measured[s]].v[i].encoder_compilation_s > 0)
				return true;
	return false;
}

/* What the engine does not tell of compiling is 0, as upstream has it. */
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
	distribution(value, n, m->percentile);
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
		for (size_t p = 0; p < STARTUP_PERCENTILES; p++)
			buf_printf(out, "  %d%%: %.2f seconds\n", percentages[p],
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

/* What an iteration spent in it, however often it appears; NAN: it has none of that name. */
static double phase_of(const struct startup_iteration *it, const char *name)
{
	double sum = NAN;

	for (size_t k = 0; k < it->n_phases; k++)
		if (strcmp(it->phase[k].name, name) == 0)
			sum = isnan(sum) ? it->phase[k].s : sum + it->phase[k].s;
	return sum;
}

/* The told values of a side's field or phase; how many. */
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

/* How many told it. */
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

/* Nothing when nobody tells of it. */
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
	buf_printf(out, "Verdict: %s\n", trust_name(t.verdict));
	verdict_show(&t, out);
}

/* ---- JSON ---- */

static void put_percentiles(struct json_writer *w, const double percentile[STARTUP_PERCENTILES])
{
	char key[8];

	json_begin_object(w);
	for (size_t p = 0; p < STARTUP_PERCENTILES; p++) {
		snprintf(key, sizeof(key), "%d", percentages[p]);
		json_member_f64(w, key, percentile[p]);
	}
	json_end_object(w);
}

static void put_values(struct json_writer *w, const double *value, size_t n)
{
	json_begin_array(w);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, value[i]);
	json_end_array(w);
}

static void put_metric(struct json_writer *w, const struct startup_metric *m, bool has_mean)
{
	char key[96];

	if (has_mean) {
		snprintf(key, sizeof(key), "avg_%s_time", m->key);
		json_member_f64(w, key, m->mean);
	}
	snprintf(key, sizeof(key), "%s_times", m->key);
	json_key(w, key);
	put_values(w, m->value, m->n);
	snprintf(key, sizeof(key), "%s_percentiles", m->key);
	json_key(w, key);
	put_percentiles(w, m->percentile);
}

void startup_extra(const struct startup_metric *m, struct buf *out)
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

/* {"mean": s, "percentiles": {...}} of what was told; nothing when nothing was. */
static void put_spread(struct json_writer *w, const struct startup_runs *r, enum startup_side side,
		       size_t field, const char *phase)
{
	struct arena a = { 0 };
	double *v = arena_alloc(&a, (r->side[side].n + 1) * sizeof(*v));
	double percentile[STARTUP_PERCENTILES];
	size_t n = told(r, side, field, phase, v);

	if (n) {
		distribution(v, n, percentile);
		json_member_object(w, phase ? phase : fields[field].key);
		json_member_f64(w, "mean", stats_mean(v, n));
		json_member_f64(w, "std", stats_std(v, n));
		json_key(w, "percentiles");
		put_percentiles(w, percentile);
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

static const enum startup_side measured[] = { STARTUP_COLD, STARTUP_WARM };

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

/* The first start of all read from a disk what the later ones found in memory. */
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

static const struct { enum startup_doubt doubt; const char *code, *text; } doubt_rows[] = {
	{ STARTUP_STOPPED, "interrupted", "it was stopped before all starts were measured" },
	{ STARTUP_FEW, "few", "one or two starts of a kind tell nothing of their spread" },
	{ STARTUP_SPREADS, "spread", "starts of a kind differ: their standard deviation is above "
	  "10 % of the mean" },
	{ STARTUP_NO_WARMUP, "no_warmup", "nothing filled the caches before the first warm start" },
	{ STARTUP_FIRST_SLOW, "first_slow", "the first start took more than 20 % longer than the other "
	  "cold ones: it may have read the model from a disk, and they from memory" },
	{ STARTUP_COARSE, "coarse", "a server is asked ten times a second whether it is there, which is "
	  "more than 5 % of its start" },
};
#define DOUBT_ROWS (sizeof(doubt_rows) / sizeof(*doubt_rows))

struct trust startup_trust(const struct startup_runs *r)
{
	unsigned doubts = startup_doubts(r);
	struct trust t = { 0 };

	for (size_t i = 0; i < DOUBT_ROWS; i++)
		if (doubts & doubt_rows[i].doubt)
			verdict_doubt(&t, TRUST_DEGRADED, doubt_rows[i].code,
				      str_of(doubt_rows[i].text));
	return t;
}

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

static void put_members(const struct startup_opts *o, const struct offline_engine *engine,
		     const struct startup_result *r, struct buf *out)
{
	const struct offline_told told = {
		.command = "startup", .backend = o->common.backend,
		.about = r->is_started ? &r->about : NULL,
	};
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	offline_told(&w, &told);
	json_member_text(&w, "model_id", engine->model);
	offline_told_args(&w, engine);
	json_end_object(&w);
}

/* One file for each metric. */
static int save_metrics(const struct startup_opts *o, const struct offline_engine *engine,
			const struct startup_result *r, struct err *e)
{
	const struct run_pytorch_verb verb = { &startup_opt_set, o, engine, o->output_json };
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct arena a = { 0 };
	size_t n = startup_metrics(&r->runs, m, &a);
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

void startup_result_json(const struct startup_opts *o, const struct offline_engine *engine,
			 const struct startup_result *r, struct buf *out)
{
	struct buf ours = { 0 };

	put_members(o, engine, r, &ours);
	startup_json(&r->runs, buf_str(&ours), out);
	buf_release(&ours);
}

void startup_example(const struct startup_opts *o, struct buf *out)
{
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
	offline_told_example("startup", &ours);
	startup_json(&runs, buf_str(&ours), out);
	buf_release(&ours);
}

int startup_save(const struct startup_opts *o, const struct offline_engine *engine,
		 const struct startup_result *r, struct err *e)
{
	struct buf json = { 0 };
	int rc;

	if (!o->output_json)
		return 0;
	startup_result_json(o, engine, r, &json);
	rc = report_save(o->output_json, buf_str(&json), false, e);
	buf_release(&json);
	return rc < 0 ? -1 : save_metrics(o, engine, r, e);
}
