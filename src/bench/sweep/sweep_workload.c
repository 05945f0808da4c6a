/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_workload.c - see sweep_internal.h: levels between one request at a time and all at once. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sweep/sweep_internal.h"
#include "core/base/file.h"
#include "results/read/frame.h"

#define PROMPTS 1000 /* of a benchmark that does not say; upstream's */

/* A rate of conversations, or the number in progress, by Little's law. */
static int estimate_sessions(const char *variable, const struct json_value *record, double *out,
			     struct err *e)
{
	bool is_rate = strcmp(variable, "request_rate") == 0;
	double throughput, duration_s = NAN;

	if (!frame_number(frame_value(record, STR("sessions.throughput")), &throughput))
		return err_set(e, ERR_RUN, "--sla-variable %s: the benchmark has no conversations, of which "
			       "it is a cap; --bench-cmd needs a dataset that has, such as --multi-turn",
			       variable);
	/* None may have completed when a run is cut by --duration. */
	if (!is_rate && !frame_number(frame_value(record, STR("sessions.duration_s.mean")), &duration_s))
		duration_s = 1 / fmax(throughput, 1);
	*out = is_rate ? throughput : throughput * duration_s;
	return 0;
}

static int estimate(const char *variable, const struct json_value *record, double *out,
		    struct err *e)
{
	bool is_rate = strcmp(variable, "request_rate") == 0;
	double throughput, latency_ms = NAN;

	if (strcmp(variable, "max_sessions") == 0 ||
	    (is_rate && frame_value(record, STR("sessions"))))
		return estimate_sessions(variable, record, out, e);
	if (!frame_number(frame_value(record, STR("request_throughput")), &throughput) ||
	    (!is_rate && !frame_number(frame_value(record, STR("mean_e2el_ms")), &latency_ms)))
		return err_set(e, ERR_RUN, "the benchmark's result has no number '%s', from which "
			       "%s is estimated", isnan(latency_ms) && !is_rate ?
			       "request_throughput' and 'mean_e2el_ms" : "request_throughput",
			       variable);
	*out = is_rate ? throughput : throughput * latency_ms / 1000;
	return 0;
}

int sweep_estimate_mean(const char *variable, const struct sweep_records *runs, double *out,
			struct err *e)
{
	double sum = 0, v = 0;

	for (size_t i = 0; i < runs->n; i++) {
		if (estimate(variable, runs->v[i], &v, e) < 0)
			return -1;
		sum += v;
	}
	*out = sum / (double)runs->n;
	return 0;
}

int sweep_begin_for(struct sweep *s, const struct json_value *serve, const char *folder,
		    struct err *e)
{
	if (file_exists(sweep_path(s, folder, "run=0.json")))
		return 0;
	return sweep_server_begin(s, serve, e);
}

struct explorer {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const char *variable;
};

/* pinned names the folder: the combination, at end points with its max_concurrency. */
static char *folder_of(struct explorer *x, const struct json_value *pinned, const char *value)
{
	const char *extra[] = {
		"WL-", arena_printf(&x->s->arena, "%s=%s", x->variable, value), NULL,
	};

	return sweep_folder(x->s, x->serve, pinned, extra);
}

static const struct json_value *serial_pin(struct explorer *x)
{
	return params_with_int(x->bench, "max_concurrency", 1, &x->s->arena);
}

/* Upstream's serial level also sends at most one request a second; ours does not, if asked to. */
static bool is_unthrottled(const struct explorer *x)
{
	return x->s->o->workload_serial_unthrottled && strcmp(x->variable, "request_rate") == 0;
}

static char *serial_folder(struct explorer *x)
{
	return folder_of(x, serial_pin(x), is_unthrottled(x) ? "inf" : "1");
}

/* The level with one request at a time. */
static int serial(struct explorer *x, struct sweep_records *out, struct err *e)
{
	const struct json_value *pinned = serial_pin(x);

	return sweep_level(x->s, x->serve, is_unthrottled(x) ?
			   params_with_text(pinned, x->variable, "inf", &x->s->arena) :
			   params_with_int(pinned, x->variable, 1, &x->s->arena),
			   serial_folder(x), out, e);
}

static int batch(struct explorer *x, int64_t size, struct sweep_records *out, struct err *e)
{
	struct arena *a = &x->s->arena;
	const struct json_value *pinned = params_with_int(x->bench, "max_concurrency", size, a);

	return sweep_level(x->s, x->serve, params_with_int(pinned, x->variable, size, a),
			   folder_of(x, pinned, arena_printf(a, "%lld", (long long)size)), out, e);
}

static int dataset_size(struct explorer *x, int64_t *size, struct err *e)
{
	const struct json_value *v = json_get(x->bench, "num_prompts");
	struct str text = { 0 };
	struct buf shown = { 0 };
	double number;

	*size = PROMPTS;
	if (v) {
		frame_text(&shown, v, FRAME_OBJECT);
		text = arena_str(&x->s->arena, buf_str(&shown));
		buf_release(&shown);
	}
	for (char **w = x->s->bench_cmd; !v && !text.p && *w; w++) {
		if (strcmp(*w, "--num-prompts") == 0 && w[1])
			text = str_of(w[1]);
		else if (str_starts(str_of(*w), STR("--num-prompts=")))
			text = str_of(*w + strlen("--num-prompts="));
	}
	if (!text.p)
		return 0;
	if (!frame_float(text, &number) || !(number >= 1) || number > 1e12)
		return err_set(e, ERR_RUN, "num_prompts is '%.*s', a number of at least 1 is expected",
			       (int)text.n, text.p);
	*size = (int64_t)number;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The inner points of count evenly spaced ones, rounded to even halves, each once. */
static size_t inner_levels(double low, double high, int64_t count, int64_t *level)
{
	double step = (high - low) / (double)(count - 1);
	size_t n = 0, kept = 0;

	for (int64_t i = 1; i + 1 < count; i++)
		level[n++] = (int64_t)nearbyint((double)i * step + low);
	qsort(level, n, sizeof(*level), by_value);
	for (size_t i = 0; i < n; i++)
		if (level[i] >= 1 && (kept == 0 || level[i] != level[kept - 1]))
			level[kept++] = level[i];
	return kept;
}

static int inner(struct explorer *x, double low, double high, struct sweep_records *out,
		 struct err *e)
{
	int64_t count = x->s->o->workload_iters;
	int64_t *level = arena_alloc(&x->s->arena, (size_t)count * sizeof(*level));
	size_t n = inner_levels(low, high, count, level);

	for (size_t i = 0; i < n; i++) {
		struct sweep_records runs;
		const char *value = arena_printf(&x->s->arena, "%lld", (long long)level[i]);

		sweep_line(x->s, "Exploring: %s=%s", x->variable, value);
		x->s->runs_left = (unsigned)((int64_t)(n - i) * x->s->o->num_runs);
		if (sweep_level(x->s, x->serve,
				params_with_int(x->bench, x->variable, level[i], &x->s->arena),
				folder_of(x, x->bench, value), &runs, e) < 0)
			return -1;
		for (size_t k = 0; k < runs.n; k++)
			sweep_records_add(x->s, out, runs.v[k]);
	}
	return 0;
}

static void add_all(struct sweep *s, const struct sweep_records *a, const struct sweep_records *b,
		    const struct sweep_records *c)
{
	sweep_add(s, a);
	sweep_add(s, b);
	sweep_add(s, c);
}

static int explore(struct explorer *x, struct err *e)
{
	struct sweep *s = x->s;
	struct sweep_records first = { 0 }, last = { 0 }, between = { 0 };
	struct buf serve = { 0 }, bench = { 0 };
	double low, high;
	int64_t size;

	params_text(x->serve, ", ", &serve);
	params_text(x->bench, ", ", &bench);
	sweep_line(s, "[WL START]");
	sweep_line(s, "Serve parameters: %s", serve.len ? serve.data : "(None)");
	sweep_line(s, "Bench parameters: %s", bench.len ? bench.data : "(None)");
	sweep_line(s, "Number of workload iterations: %lld", (long long)s->o->workload_iters);
	buf_release(&serve);
	buf_release(&bench);
	if (dataset_size(x, &size, e) < 0)
		return -1;
	sweep_line(s, "Dataset size: %lld", (long long)size);
	if (sweep_is_linked(s, x->serve, x->bench) &&
	    (serial(x, &first, e) < 0 || batch(x, size, &last, e) < 0))
		return -1;
	if (!first.n || !last.n) {
		/* Upstream drops an existing end point; it was measured, so we keep it. */
		add_all(s, &first, &between, &last);
		sweep_line(s, s->o->dry_run ? "Omitting intermediate Workload iterations." :
			   "Unable to establish both Workload Explorer endpoints; skipping "
			   "intermediate workload levels.");
		sweep_line(s, "[WL END]");
		return 0;
	}
	if (sweep_estimate_mean(x->variable, &first, &low, e) < 0 ||
	    sweep_estimate_mean(x->variable, &last, &high, e) < 0)
		return -1;
	low = ceil(low);
	high = floor(high);
	sweep_line(s, "Serial inference: %s=%.0f", x->variable, low);
	sweep_line(s, "Batch inference: %s=%.0f", x->variable, high);
	if (inner(x, low, high, &between, e) < 0)
		return -1;
	sweep_line(s, "[WL END]");
	add_all(s, &first, &between, &last);
	return 0;
}

static int explore_all(struct sweep *s, struct err *e)
{
	for (size_t i = 0; i < s->serve.n; i++) {
		struct explorer x = { .s = s, .serve = &s->serve.item[i],
				      .variable = s->o->workload_var };

		for (size_t k = 0; k < s->bench.n; k++) {
			x.bench = &s->bench.item[k];
			if (sweep_is_linked(s, x.serve, x.bench) &&
			    sweep_begin_for(s, x.serve, serial_folder(&x), e) < 0)
				return -1;
		}
		for (size_t k = 0; k < s->bench.n; k++) {
			x.bench = &s->bench.item[k];
			s->progress.point = (unsigned)(i * s->bench.n + k + 1);
			if (explore(&x, e) < 0)
				return -1;
		}
		if (sweep_server_end(s, e) < 0)
			return -1;
	}
	return 0;
}

int sweep_workload(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e)
{
	struct sweep s;
	int status = -1;

	if (o->workload_iters < 2)
		return err_set(e, ERR_USAGE, "--workload-iters: expected at least 2, got %lld",
			       (long long)o->workload_iters);
	if (o->workload_iters > WORKLOAD_LEVELS_MAX)
		return err_set(e, ERR_USAGE, "--workload-iters %lld is more than the %d of "
			       "WORKLOAD_LEVELS_MAX", (long long)o->workload_iters,
			       WORKLOAD_LEVELS_MAX);
	if (sweep_begin(&s, o, hooks, e) < 0)
		goto done;
	for (size_t i = 0; i < s.bench.n; i++)
		if (params_has(&s.bench.item[i], o->workload_var)) {
			err_set(e, ERR_RUN, "You should not override `%s` in `bench_params` since it "
				"is supposed to be explored automatically.", o->workload_var);
			goto done;
		}
	s.progress.points = (unsigned)(s.serve.n * s.bench.n);
	status = sweep_finish(&s, explore_all(&s, e), e);
done:
	sweep_release(&s);
	return status;
}
