/* SPDX-License-Identifier: Apache-2.0 */
/* mm_processor.c - see mm_processor.h. */
#include "report/mm_processor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "base/limits.h"
#include "base/mem.h"
#include "json/python.h"
#include "opt/opt.h"
#include "report/grid.h"
#include "json/write.h"
#include "stats/stats.h"

const char mm_no_stages[] =
	"\n⚠️  Warning: No MM processor stats found in registry.\n"
	"   This may indicate that:\n"
	"   - No multimodal requests were processed\n"
	"   - Stats were already retrieved (registry is cleared after retrieval)\n";
const char mm_no_e2el[] =
	"\n⚠️  Warning: Detailed end-to-end latency metrics not available.\n"
	"   Falling back to average request latency (total_time / num_completed_requests).\n";

/* ---- numbers ---- */

static int bad_number(struct str text, struct err *e)
{
	struct buf shown = { 0 };

	json_repr_str(&shown, text);
	err_set(e, ERR_USAGE, "--metric-percentiles: could not convert string to float: %s",
		shown.data);
	buf_release(&shown);
	return -1;
}

int mm_percentiles(const char *text, struct mm_percentiles *out, struct arena *a, struct err *e)
{
	struct str rest = str_of(text);
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	*out = (struct mm_percentiles){ .v = arena_alloc(a, n * sizeof(*out->v)), .n = n };
	for (size_t i = 0; i < n; i++) {
		struct str one = str_cut(&rest, ',');

		if (!opt_python_float(one, &out->v[i]))
			return bad_number(one, e);
		if (!(out->v[i] >= 0 && out->v[i] <= 100))
			return err_set(e, ERR_USAGE, "--metric-percentiles: expected numbers from "
				       "0 to 100, got %.*s", (int)one.n, one.p);
	}
	return 0;
}

static struct mm_spread spread_of(const double *v, size_t n, const struct mm_percentiles *p,
				  struct arena *a)
{
	struct mm_spread s = { .percentile = arena_alloc(a, (p->n + 1) * sizeof(double)) };
	double *sorted = stats_sorted(v, n);

	s.mean = stats_mean(v, n);
	s.median = stats_median(sorted, n);
	s.std = stats_std(v, n);
	for (size_t i = 0; i < p->n; i++)
		s.percentile[i] = stats_percentile(sorted, n, p->v[i]);
	free(sorted);
	return s;
}

/* ---- stages ---- */

#define ENCODER_CALLS "num_encoder_calls"
#define SECONDS_MAX 1e12 /* of one stage; also calls: their sum must be an integer */

/* Every "_secs" becomes "_ms". */
static const char *shown_name(struct str key, struct arena *a)
{
	struct buf out = { 0 };
	char *name;

	while (key.n) {
		if (str_starts(key, STR("_secs"))) {
			buf_add_text(&out, "_ms");
			key = (struct str){ key.p + 5, key.n - 5 };
			continue;
		}
		buf_add_char(&out, *key.p);
		key = (struct str){ key.p + 1, key.n - 1 };
	}
	name = arena_text(a, buf_str(&out));
	buf_release(&out);
	return name;
}

/* Keys of all requests, each once, as they first appear; MM_STAGES_MAX + 1: there are more. */
static size_t stage_keys(const struct json_value *all, struct str key[static MM_STAGES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->item[i].count; k++) {
			size_t at = 0;

			while (at < n && !str_eq(key[at], all->item[i].key[k]))
				at++;
			if (at == MM_STAGES_MAX)
				return MM_STAGES_MAX + 1;
			if (at == n)
				key[n++] = all->item[i].key[k];
		}
	return n;
}

/* A request is an object of numbers that a time or a count can be, or null. */
static int check_request(struct str id, const struct json_value *one, struct err *e)
{
	if (one->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "times of stages that the engine told: '%.64s' is no "
			       "object", id.p);
	for (size_t k = 0; k < one->count; k++) {
		const struct json_value *v = &one->item[k];
		const double x = json_real(v, v->kind == JSON_NULL ? 0 : -1);

		if (!(x >= 0 && x <= SECONDS_MAX))
			return err_set(e, ERR_PARSE, "times of stages that the engine told: '%.64s' of "
				       "'%.64s' is no time", one->key[k].p, id.p);
	}
	return 0;
}

static void read_stage(const struct json_value *all, struct str key, struct mm_stages *out,
		       const struct mm_percentiles *p, struct arena *a)
{
	double *v = mem_array(all->count + 1, sizeof(*v)), sum;
	const bool is_count = str_is(key, ENCODER_CALLS);
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct json_value *one = json_get(&all->item[i], key.p);

		if (one && one->kind != JSON_NULL)
			v[n++] = json_real(one, 0) * (is_count ? 1 : 1000);
	}
	sum = stats_sum(v, n);
	if (n)
		out->v[out->n++] = (struct mm_stage){ .name = shown_name(key, a), .n = n,
						      .spread = spread_of(v, n, p, a), .sum = sum };
	if (n && is_count) {
		out->has_encoder = true;
		out->encoder_calls = (int64_t)sum;
		out->encoder_requests = n;
	}
	free(v);
}

int mm_stages_read(struct str json, const struct mm_percentiles *p, struct mm_stages *out,
		   struct arena *a, struct err *e)
{
	struct str key[MM_STAGES_MAX];
	struct json_value *all;
	size_t keys;

	*out = (struct mm_stages){ 0 };
	if (json.n == 0)
		return 0;
	if (json_parse(a, json, &all, e) < 0)
		return err_wrap(e, "times of stages that the engine told");
	if (all->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "times of stages that the engine told: expected an "
			       "object of requests");
	for (size_t i = 0; i < all->count; i++)
		if (check_request(all->key[i], &all->item[i], e) < 0)
			return -1;
	keys = stage_keys(all, key);
	if (keys > MM_STAGES_MAX)
		return err_set(e, ERR_LIMIT, "times of stages that the engine told: more than "
			       "MM_STAGES_MAX, %d stages", MM_STAGES_MAX);
	out->v = arena_alloc(a, (keys + 1) * sizeof(*out->v));
	out->requests = all->count;
	for (size_t i = 0; i < keys; i++)
		read_stage(all, key[i], out, p, a);
	return 0;
}

int mm_facts(const struct mm_run *run, struct str stages, const struct mm_percentiles *p,
	     struct mm_facts *out, struct arena *a, struct err *e)
{
	size_t n = run->n ? run->n : run->completed;
	double *ms = mem_array(n + 1, sizeof(*ms));

	*out = (struct mm_facts){ .is_average = run->n == 0 && run->completed > 0 };
	for (size_t i = 0; i < n; i++)
		ms[i] = (run->n ? run->e2el_s[i] : run->elapsed_s / (double)run->completed) * 1000;
	out->e2el_ms = spread_of(ms, n, p, a);
	free(ms);
	return mm_stages_read(stages, p, &out->stages, a, e);
}

/* ---- terminal ---- */

/* As pandas prints a table of texts without its index: all to the right, one blank between. */
static void put_table(const struct grid *g, struct buf *out)
{
	size_t *width = mem_array(g->cols, sizeof(*width));

	for (size_t i = 0; i < g->n; i++) {
		size_t n = grid_width(g->cell[i]);

		if (n > width[i % g->cols])
			width[i % g->cols] = n;
	}
	for (size_t i = 0; i < g->n; i++) {
		size_t gap = width[i % g->cols] - grid_width(g->cell[i]);

		buf_printf(out, "%s%*s%s%s", i % g->cols ? " " : "", (int)gap, "", g->cell[i],
			   (i + 1) % g->cols ? "" : "\n");
	}
	free(width);
}

static bool is_repeated(const struct mm_percentiles *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (p->v[k] <= p->v[i] && p->v[k] >= p->v[i])
			return true;
	return false;
}

static const char *percent_name(char letter, double p, struct arena *a)
{
	char text[FMT_F64_BYTES];

	return arena_printf(a, "%c%s", letter, fmt_f64(text, p));
}

/* A column for each percentile, of those asked for twice one, as a Python dict has them. */
static void stage_table(const struct mm_facts *f, const struct mm_percentiles *p, struct arena *a,
			struct buf *out)
{
	static const char *const head[] = { "Stage", "Mean", "Median", "Std" };
	struct grid g;

	grid_begin(&g, a);
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		grid_add(&g, head[i]);
	for (size_t k = 0; k < p->n; k++)
		if (!is_repeated(p, k))
			grid_add(&g, percent_name('P', p->v[k], a));
	grid_end_heads(&g);
	for (size_t i = 0; i < f->stages.n; i++) {
		const struct mm_stage *s = &f->stages.v[i];

		grid_add(&g, s->name);
		grid_add(&g, arena_printf(a, "%.2f", s->spread.mean));
		grid_add(&g, arena_printf(a, "%.2f", s->spread.median));
		grid_add(&g, arena_printf(a, "%.2f", s->spread.std));
		for (size_t k = 0; k < p->n; k++)
			if (!is_repeated(p, k))
				grid_add(&g, arena_printf(a, "%.2f", s->spread.percentile[k]));
	}
	put_table(&g, out);
}

static void e2el_table(const struct mm_facts *f, const struct mm_percentiles *p, struct arena *a,
		       struct buf *out)
{
	const struct mm_spread *s = &f->e2el_ms;
	struct grid g;

	grid_begin(&g, a);
	grid_add(&g, "Metric");
	grid_add(&g, "Value (ms)");
	grid_end_heads(&g);
	grid_add(&g, "Mean");
	grid_add(&g, arena_printf(a, "%.2f", s->mean));
	grid_add(&g, "Median");
	grid_add(&g, arena_printf(a, "%.2f", s->median));
	grid_add(&g, "Std");
	grid_add(&g, arena_printf(a, "%.2f", s->std));
	for (size_t k = 0; k < p->n; k++) {
		grid_add(&g, percent_name('P', p->v[k], a));
		grid_add(&g, arena_printf(a, "%.2f", s->percentile[k]));
	}
	put_table(&g, out);
}

static void rule(struct buf *out)
{
	for (int i = 0; i < 80; i++)
		buf_add_char(out, '=');
	buf_add_char(out, '\n');
}

void mm_terminal(const struct mm_facts *f, const struct mm_percentiles *p, struct buf *out)
{
	struct arena a = { 0 };

	buf_add_char(out, '\n');
	rule(out);
	buf_add_text(out, "Multimodal Processor Benchmark Results\n");
	rule(out);
	buf_add_text(out, "\nMM Processor Metrics:\n");
	if (f->stages.n)
		stage_table(f, p, &a, out);
	else
		buf_add_text(out, "Empty DataFrame\nColumns: []\nIndex: []\n");
	if (f->stages.has_encoder)
		buf_printf(out, "\nSummary: %" PRId64 " total encoder calls across %zu requests.\n",
			   f->stages.encoder_calls, f->stages.encoder_requests);
	buf_add_text(out, "\nEnd-to-End Latency (ms):\n");
	e2el_table(f, p, &a, out);
	arena_release(&a);
}

/* ---- the result file ---- */

static void put_stages(struct json_writer *w, const struct mm_stages *stages,
		       const struct mm_percentiles *p, struct arena *a)
{
	json_member_object(w, "mm_processor_stats");
	for (size_t i = 0; i < stages->n; i++) {
		const struct mm_spread *s = &stages->v[i].spread;

		json_member_object(w, stages->v[i].name);
		json_member_f64(w, "mean", s->mean);
		json_member_f64(w, "median", s->median);
		json_member_f64(w, "std", s->std);
		for (size_t k = 0; k < p->n; k++)
			if (!is_repeated(p, k))
				json_member_f64(w, percent_name('p', p->v[k], a), s->percentile[k]);
		json_end_object(w);
	}
	json_end_object(w);
	json_member_object(w, "encoder_summary");
	if (stages->has_encoder) {
		json_member_int(w, "total_encoder_calls", stages->encoder_calls);
		json_member_int(w, "num_requests_with_encoder_calls", (int64_t)stages->encoder_requests);
	}
	json_end_object(w);
}

static void put_e2el(struct json_writer *w, const struct mm_spread *s,
		     const struct mm_percentiles *p)
{
	json_member_f64(w, "mean_e2el_ms", s->mean);
	json_member_f64(w, "median_e2el_ms", s->median);
	json_member_f64(w, "std_e2el_ms", s->std);
	json_member_array(w, "percentiles_e2el_ms");
	for (size_t k = 0; k < p->n; k++) {
		json_begin_array(w);
		json_put_f64(w, p->v[k]);
		json_put_f64(w, s->percentile[k]);
		json_end_array(w);
	}
	json_end_array(w);
}

void mm_json(const struct mm_run *run, const struct mm_facts *f, const struct mm_percentiles *p,
	     const struct mm_config *config, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct arena a = { 0 };

	w.indent = 2;
	json_begin_object(&w);
	json_member_int(&w, "completed", (int64_t)run->completed);
	json_member_int(&w, "failed", (int64_t)run->failed);
	put_e2el(&w, &f->e2el_ms, p);
	put_stages(&w, &f->stages, p, &a);
	json_member_object(&w, "config");
	json_member_text(&w, "model", config->model);
	json_member_int(&w, "num_prompts", config->num_prompts);
	json_member_int(&w, "input_len", config->input_len);
	json_member_int(&w, "output_len", config->output_len);
	json_end_object(&w);
	json_member_text(&w, "timestamp", config->timestamp);
	json_member_object(&w, "profllm");
	json_put_members(&w, config->ours);
	json_end_object(&w);
	json_end_object(&w);
	arena_release(&a);
}
