/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_sla.c - see sweep_internal.h: the largest level that keeps its limits, and its chart. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sweep/gnuplot.h"
#include "bench/sweep/slo.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "out/figure/figure.h"
#include "results/read/frame.h"

#define X_KEY "request_throughput"
#define Y_KEY "p99_e2el_ms"
#define LIMIT_REACH 1.5 /* of the highest point: a limit up to there is shown */

struct chart_point { double level, x, y; };

static bool has_all(const struct json_value *record, const struct json_value *comb)
{
	for (size_t i = 0; i < comb->count; i++) {
		const struct json_value *v = frame_value(record, comb->key[i]);

		if (!v || !params_equal(v, &comb->item[i]))
			return false;
	}
	return true;
}

static int by_level(const void *a, const void *b)
{
	const struct chart_point *p = a, *q = b;

	return (p->level > q->level) - (p->level < q->level);
}

/* One point per level, the mean of its runs, labeled with the level; in order. */
static void curve_of(struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench, struct figure_curve *out)
{
	struct chart_point *p = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*p));
	double *x = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*x));
	double *y = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*y));
	const char **label = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*label));
	size_t *count = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*count)), n = 0;

	for (size_t i = 0; i < s->records.n; i++) {
		const struct json_value *r = s->records.v[i];

		n += has_all(r, bench) && has_all(r, serve) &&
		     frame_number(frame_value(r, str_of(s->o->sla_variable)), &p[n].level) &&
		     frame_number(frame_value(r, STR(X_KEY)), &p[n].x) &&
		     frame_number(frame_value(r, STR(Y_KEY)), &p[n].y);
	}
	qsort(p, n, sizeof(*p), by_level);
	for (size_t i = 0, next; i < n; i = next, out->n++) {
		for (next = i; next < n && p[next].level == p[i].level; next++) {
			x[out->n] += p[next].x;
			y[out->n] += p[next].y;
		}
		count[out->n] = next - i;
		x[out->n] /= (double)(next - i);
		y[out->n] /= (double)(next - i);
		label[out->n] = p[i].level == (double)s->o->sla_max ? "all at once" :
			arena_printf(&s->arena, "%.0f", p[i].level);
	}
	*out = (struct figure_curve){ .look = out->look, .n = out->n, .x = x, .y = y,
				      .count = count, .label = label };
}

/* The limits on the drawn latency, as lines; a limit far above all points would flatten them. */
static void add_limits(struct sweep *s, const struct slas *slas, struct figure_panel *panel)
{
	double highest = 0;
	struct figure_limit *limit =
		arena_alloc(&s->arena, slas->n * SLA_LIMITS_MAX * sizeof(*limit));

	for (size_t i = 0; i < panel->n_curves; i++)
		for (size_t k = 0; k < panel->curve[i].n; k++)
			highest = fmax(highest, panel->curve[i].y[k]);
	for (size_t i = 0; i < slas->n; i++)
		for (size_t k = 0; k < slas->item[i].n; k++) {
			const struct sla one = { &slas->item[i].limit[k], 1 };
			struct buf text = { 0 };

			if (strcmp(one.limit->key, Y_KEY) != 0 ||
			    one.limit->limit > LIMIT_REACH * highest)
				continue;
			sla_text(&one, "", &text);
			limit[panel->n_limits++] = (struct figure_limit){
				.at = one.limit->limit,
				.title = arena_text(&s->arena, buf_str(&text)),
			};
			buf_release(&text);
		}
	panel->limit = limit;
}

static void chart(struct sweep *s, const struct json_value *bench, const struct slas *slas)
{
	struct figure_curve *curve = arena_alloc(&s->arena, s->serve.n * sizeof(*curve));
	struct figure_panel panel = { .curve = curve };
	struct buf title = { 0 }, x = { 0 }, y = { 0 };
	struct figure f = { .panel = &panel, .rows = 1, .cols = 1 };
	const struct json_value none = { .kind = JSON_OBJECT };
	const char *name = params_folder((struct params_side){ "SERVE-", &none },
					 (struct params_side){ "BENCH-", bench }, NULL, &s->arena);
	struct err e = { 0 };

	for (size_t i = 0; i < s->serve.n; i++) {
		struct figure_curve *c = &curve[panel.n_curves];

		*c = (struct figure_curve){ .look.color = (unsigned)i };
		curve_of(s, &s->serve.item[i], bench, c);
		if (s->serve.n > 1)
			c->title = sweep_name(s, &s->serve.item[i], "(None)");
		panel.n_curves += c->n > 0;
	}
	add_limits(s, slas, &panel);
	params_text(bench, ", ", &title);
	buf_printf(&title, "%sby %s", title.len ? ", " : "", s->o->sla_variable);
	figure_axis_label(&x, X_KEY);
	figure_axis_label(&y, Y_KEY);
	f.title = title.data;
	f.x_label = x.data;
	f.y_label = y.data;
	if (panel.n_curves && gnuplot_figure(&f, sweep_path(s, s->folder, *name ? name : "BENCH"),
					     GNUPLOT_PNG, 0, NULL, &e) < 0)
		sweep_warn(s, "%s", e.text);
	buf_release(&title);
	buf_release(&x);
	buf_release(&y);
}

/*
 * Latency over throughput of every bench combination, with the limits on that latency; what cannot
 * be drawn is a warning.
 */
static void sweep_chart(struct sweep *s, const struct slas *slas)
{
	for (size_t i = 0; i < s->bench.n; i++)
		chart(s, &s->bench.item[i], slas);
}

static char *level_folder(struct hunt *h, int64_t level)
{
	return sweep_path(h->s, h->folder, arena_printf(&h->s->arena, "%s=%lld", h->variable,
							(long long)level));
}

/* Upstream prints req/s for either variable; we do not. */
const char *hunt_unit(const struct hunt *h)
{
	if (strcmp(h->variable, "request_rate") != 0)
		return "at once";
	return h->has_sessions ? "conversations/s" : "req/s";
}

/* ---- one level ---- */

int hunt_values(struct hunt *h, const struct sweep_records *runs, double *value, struct err *e)
{
	for (size_t i = 0; i < runs->n; i++)
		for (size_t k = 0; k < h->sla.n; k++)
			if (sla_value(&h->sla.limit[k], runs->v[i],
				      &value[i * h->sla.n + k], e) < 0)
				return -1;
	return 0;
}

static void print_verdict(struct hunt *h, const double *mean, const struct search_verdict *v)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < h->sla.n; k++) {
		buf_reset(&text);
		sla_verdict_text(&h->sla.limit[k], mean[k], &text);
		sweep_line(h->s, "Validating SLA: %s", text.data);
	}
	buf_reset(&text);
	if (h->kind != SEARCH_BISECT)
		buf_printf(&text, " (margin=%.2f)", v->margin);
	sweep_line(h->s, "SLA criteria are %s.%s", v->passes ? "met" : "not met",
		   text.len ? text.data : "");
	buf_release(&text);
}

/* Infinite load shows where to look: by Little's law, and by the size of the KV cache. */
static int look_around(struct hunt *h, const struct sweep_records *runs,
		       struct search_verdict *v, struct err *e)
{
	if (sweep_estimate_mean(h->variable, runs, &v->estimate, e) < 0)
		return -1;
	h->has_sessions = frame_value(runs->v[0], STR("sessions")) != NULL;
	hunt_read_capacity(h, runs->v[0]);
	if (h->kind == SEARCH_BISECT)
		sweep_line(h->s, "Initial %s to search: %.0f req/s.", h->variable,
			   ceil(v->estimate));
	return 0;
}

/* Prints, as upstream's first recipe does, when doubling ends and halving begins. */
static void print_range(struct hunt *h, int64_t level, bool passes)
{
	struct search_outcome o = search_outcome(&h->search);
	bool is_doubling = level < h->search.o.max && !h->has_range;

	if (h->kind != SEARCH_BISECT || !is_doubling || (passes && level * 2 < h->search.o.max))
		return;
	h->has_range = true;
	sweep_line(h->s, "Range of %s to search: [%lld, %lld] req/s.", h->variable,
		   (long long)o.passing, (long long)o.failing);
}

/* Passes a measured level's verdict to the search. 0: none of its runs counts. */
static int tell(struct hunt *h, int64_t level, const struct sweep_records *all, struct err *e)
{
	struct sweep_records measured = { 0 }, *runs = &measured;
	bool is_infinite = level == h->search.o.max;
	struct hunt_level *kept = &h->level[h->n_levels];
	struct search_verdict v;
	struct str why;
	double *value;

	for (size_t i = 0; i < all->n; i++) {
		sweep_records_add(h->s, &h->records, all->v[i]);
		if (sla_is_measured(all->v[i], &h->sla, &why))
			sweep_records_add(h->s, runs, all->v[i]);
		else
			sweep_warn(h->s, "%s/run=%lld.json does not count (delete it to have it "
				   "measured again): %.*s", level_folder(h, level),
				   (long long)json_int(json_get(all->v[i], "run_number"), 0),
				   (int)why.n, why.p);
	}
	value = arena_alloc(&h->s->arena, (runs->n * h->sla.n + 1) * sizeof(*value));
	if (runs->n == 0 || hunt_values(h, runs, value, e) < 0)
		return runs->n ? -1 : 0;
	assert(h->n_levels < SEARCH_LEVELS_MAX);
	h->n_levels++;
	*kept = (struct hunt_level){ level, arena_alloc(&h->s->arena, h->sla.n * sizeof(double)) };
	for (size_t k = 0; k < h->sla.n; k++)
		for (size_t i = 0; i < runs->n; i++)
			kept->mean[k] += value[i * h->sla.n + k] / (double)runs->n;
	v = search_judge(&h->sla, value, (unsigned)runs->n);
	if (is_infinite && look_around(h, runs, &v, e) < 0)
		return -1;
	if (!is_infinite || h->kind != SEARCH_BISECT)
		print_verdict(h, kept->mean, &v);
	search_tell(&h->search, level, &v);
	print_range(h, level, v.passes);
	return 1;
}

/* 1: measured; 0: nothing could be measured; -1: the experiment must end. */
static int one_level(struct hunt *h, int64_t level, struct err *e)
{
	struct sweep_records runs;
	int rc;

	if (level != h->search.o.max || h->kind != SEARCH_BISECT)
		sweep_line(h->s, "Testing %s: %lld req/s", h->variable, (long long)level);
	rc = sweep_level(h->s, h->serve,
			 params_with_int(h->bench, h->variable, level, &h->s->arena),
			 level_folder(h, level), &runs, e);
	if (rc < 0 || runs.n == 0)
		return rc;
	rc = tell(h, level, &runs, e);
	h->s->n_failed += rc == 0;
	return rc;
}

/* ---- one search ---- */

char *hunt_path(struct hunt *h, const char *ending)
{
	struct buf name = { 0 };
	const char *file;

	buf_add_text(&name, "SLA--");
	sla_text(h->asked, "-", &name);
	file = params_file_name_ending(buf_str(&name), ending, &h->s->arena);
	buf_release(&name);
	return sweep_path(h->s, h->folder, file);
}

static int save_records(struct hunt *h, struct err *e)
{
	if (file_mkdirs(h->folder, e) < 0)
		return -1;
	return sweep_save(hunt_path(h, ".json"), sweep_list(h->s, &h->records), e);
}

static void print_outcome(struct hunt *h, const struct search_outcome *o)
{
	const char *variable = h->variable, *unit = hunt_unit(h);
	struct sweep *s = h->s;

	if (o->end == SEARCH_NONE_PASSES)
		sweep_line(s, "No %s meets the SLA: even %lld %s does not.", variable,
			   (long long)o->failing, unit);
	else if (o->end == SEARCH_UNDECIDED)
		sweep_line(s, "The search for %s is undecided: a level could not be measured; between "
			   "%lld and %lld %s.", variable, (long long)o->passing,
			   (long long)(o->failing ? o->failing : h->search.o.max), unit);
	else
		sweep_line(s, "Maximum %s for SLA: %lld req/s.", variable, (long long)o->passing);
	if (o->end == SEARCH_ALL_PASS)
		sweep_line(s, "Every level meets the SLA, even %lld %s: its limits do not bind "
			   "with the %.0f requests of a run.", (long long)o->passing, unit,
			   h->requests);
	sweep_line(s, "Search: %u level%s, %u run%s (%u made now).", o->levels,
		   o->levels == 1 ? "" : "s", o->runs, o->runs == 1 ? "" : "s",
		   s->n_runs - h->runs_before);
	if (!o->is_monotone)
		sweep_warn(s, "a level below %lld fails and it passes: the limits do not grow with "
			   "%s, so there may be other answers", (long long)o->passing, variable);
	if (strcmp(variable, "max_concurrency") == 0 && h->kv_requests >= 1 &&
	    fmin((double)o->passing, h->requests) > h->kv_requests)
		sweep_warn(s, "max_concurrency=%lld is more than the %.0f requests of %.0f tokens that "
			   "the KV cache of %.0f tokens holds: the others wait or are preempted",
			   (long long)o->passing, floor(h->kv_requests), h->kv_request_tokens,
			   h->kv_tokens);
}

static int hunt_one(struct hunt *h, struct err *e)
{
	struct sweep *s = h->s;
	struct search_outcome o;
	struct buf text = { 0 };
	int64_t level;
	int rc = 1;

	search_init(&h->search, &(struct search_opts){ .kind = h->kind, .max = s->o->sla_max,
						       .tolerance = s->o->sla_tolerance });
	sla_text(&h->sla, ", ", &text);
	sweep_line(s, "[SLA START]");
	sweep_line(s, "SLA criteria: %s", text.data);
	buf_release(&text);
	while (rc > 0 && search_next(&h->search, &level))
		rc = one_level(h, level, e);
	if (rc < 0)
		return -1;
	if (s->o->dry_run) {
		sweep_line(s, "Omitting SLA search.");
		sweep_line(s, "[SLA END]");
		return 0;
	}
	o = search_outcome(&h->search);
	print_outcome(h, &o);
	if (rc > 0 && save_records(h, e) < 0)
		return -1;
	sweep_line(s, "[SLA END]");
	sweep_add(s, &h->records);
	if (hunt_report(h, &o, e) < 0)
		return -1;
	if (s->o->hover > 0 && o.end == SEARCH_FOUND)
		return hunt_hover(h, (double)o.passing, e);
	if (s->o->hover > 0)
		sweep_warn(s, "--hover: there is no boundary to stay at");
	return 0;
}

/* -1 with e: why the limits or the benchmark do not suit the capacity procedure. */
static int check_capacity(struct sweep *s, const struct slas *slas, bool is_checked, struct err *e)
{
	struct slo slo;

	if (!is_checked)
		return err_set(e, ERR_USAGE, "--sla-search capacity needs a --bench-cmd that runs inside "
			       "this program: '... bench serve' without --exec-bench");
	if (strcmp(s->o->sla_variable, "max_sessions") == 0)
		return err_set(e, ERR_USAGE, "--sla-search capacity counts single requests, and "
			       "--sla-variable max_sessions is about conversations");
	for (char **w = s->bench_cmd; *w; w++)
		if (str_starts(str_of(*w), STR("--multi-turn")) ||
		    str_starts(str_of(*w), STR("--multi_turn")))
			return err_set(e, ERR_USAGE, "--sla-search capacity counts single requests, and "
				       "--bench-cmd has conversations (%s)", *w);
	for (size_t i = 0; i < slas->n; i++)
		if (slo_of_sla("--sla-params", &slas->item[i], &s->arena, &slo, e) < 0)
			return -1;
	if (s->o->sla_max_failed <= 0 || s->o->sla_max_failed >= 100)
		return err_set(e, ERR_USAGE, "--sla-max-failed %g: --sla-search capacity needs a share "
			       "between 0 and 100 %%", s->o->sla_max_failed);
	return 0;
}

struct way { bool is_ours; enum search_kind kind; };

/* Without --sla-search, ours is used where it can answer the question. */
static int choose_search(struct sweep *s, const struct slas *slas, bool is_checked,
			 struct way *out, struct err *e)
{
	const char *name = s->o->sla_search;

	out->is_ours = !name || strcmp(name, sla_searches[0]) == 0;
	out->kind = name && strcmp(name, search_kinds[SEARCH_BISECT]) == 0 ? SEARCH_BISECT
									  : SEARCH_INTERPOLATE;
	if (out->is_ours && check_capacity(s, slas, is_checked, e) < 0) {
		if (name || s->o->base_url || e->code != ERR_USAGE)
			return -1;
		sweep_warn(s, "%s; --sla-search interpolate is used, which gives no interval", e->text);
		*e = (struct err){ 0 };
		out->is_ours = false;
	}
	if (!out->is_ours && s->o->base_url)
		return err_set(e, ERR_USAGE, "--base-url: --sla-search %s empties the server's caches "
			       "between runs, so it needs a server of its own: --serve-cmd", name);
	return 0;
}

static int hunt_pair(struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench, const struct slas *slas,
		     const struct way *way, struct sweep_records *outcomes, struct err *e)
{
	struct hunt *h = mem_alloc(sizeof(*h));
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < slas->n; i++) {
		*h = (struct hunt){
			.s = s, .serve = serve, .bench = bench, .asked = &slas->item[i],
			.sla = sla_with_failures(&slas->item[i], s->o->sla_max_failed, &s->arena),
			.variable = s->o->sla_variable, .kind = way->kind, .outcomes = outcomes,
			.folder = sweep_folder(s, serve, bench, NULL), .runs_before = s->n_runs,
			.kv_tokens = NAN, .kv_requests = NAN, .kv_request_tokens = NAN,
		};
		if (i == 0 && !way->is_ours)
			rc = sweep_begin_for(s, serve, level_folder(h, s->o->sla_max), e);
		s->progress.point++;
		if (rc == 0)
			rc = way->is_ours ? hunt_capacity(h, e) : hunt_one(h, e);
	}
	free(h);
	return rc;
}

static int hunt_all(struct sweep *s, const struct slas *slas, const struct way *way,
		    struct err *e)
{
	struct sweep_records outcomes = { 0 };

	s->progress.points = (unsigned)(s->serve.n * s->bench.n * slas->n);
	for (size_t i = 0; i < s->serve.n; i++) {
		for (size_t k = 0; k < s->bench.n; k++)
			if (sweep_is_linked(s, &s->serve.item[i], &s->bench.item[k]) &&
			    hunt_pair(s, &s->serve.item[i], &s->bench.item[k], slas, way,
				      &outcomes, e) < 0)
				return -1;
		if (sweep_server_end(s, e) < 0)
			return -1;
	}
	if (!s->o->dry_run && !way->is_ours)
		sweep_chart(s, slas);
	return 0;
}

int sweep_sla(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e)
{
	struct sweep s;
	struct slas slas;
	/* Keys are known only for our results and upstream's client's, which are the same. */
	bool is_checked;
	struct way way;
	int status = -1;

	if (!o->sla_params)
		return err_set(e, ERR_USAGE, "the following arguments are required: --sla-params");
	if (sweep_begin(&s, o, hooks, e) < 0)
		goto done;
	is_checked = !o->exec_bench && hooks->knows && hooks->knows(hooks->self, s.bench_cmd);
	if (sla_read(o->sla_params, is_checked, &s.arena, &slas, e) < 0)
		goto done;
	if (choose_search(&s, &slas, is_checked, &way, e) < 0)
		goto done;
	for (size_t i = 0; is_checked && !way.is_ours && i < s.bench.n; i++)
		if (sla_check_percentiles(&slas, params_apply(&s.bench.item[i], s.bench_cmd,
							      &s.arena), e) < 0)
			goto done;
	for (size_t i = 0; i < s.bench.n; i++)
		if (params_has(&s.bench.item[i], o->sla_variable)) {
			err_set(e, ERR_RUN, "You should not override `%s` in `bench_params` in SLA "
				"mode, since it is supposed to be determined automatically.",
				o->sla_variable);
			goto done;
		}
	if (o->hover > 0 && !is_checked) {
		err_set(e, ERR_USAGE, "--hover needs a --bench-cmd with --duration that runs inside "
			"this program: '... bench serve' without --exec-bench");
		goto done;
	}
	status = sweep_finish(&s, hunt_all(&s, &slas, &way, e), e);
done:
	sweep_release(&s);
	return status;
}
