/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - see startup.h. */
#include "report/startup.h"

#include <math.h>
#include <stdlib.h>

#include "json/write.h"
#include "report/verdict.h"
#include "stats/stats.h"

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
