/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - see system.h. */
#include "metrics/system.h"

#include <math.h>
#include <string.h>

#include "metrics/parts.h"

#define GB 1e9

/* ---- one series in the window ---- */

struct window { int64_t from_ns, to_ns; };

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* On the line between the two points around an instant; beyond the ends, the nearest point's. */
static double value_at(const struct record_series *s, int64_t at_ns)
{
	size_t low = 0, high = s->n - 1;
	double part;

	if (at_ns <= s->point[low].at_ns)
		return s->point[low].value;
	if (at_ns >= s->point[high].at_ns)
		return s->point[high].value;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		*(s->point[middle].at_ns <= at_ns ? &low : &high) = middle;
	}
	part = (double)(at_ns - s->point[low].at_ns) /
	       (double)(s->point[high].at_ns - s->point[low].at_ns);
	return s->point[low].value + part * (s->point[high].value - s->point[low].value);
}

/* What the line that the samples make has in the window: from its start over samples to its end. */
struct shape { double area, low, high, slope_low, slope_high; };
struct corner { int64_t at_ns; double value; };

static void go_on(struct shape *h, struct corner *at, int64_t to_ns, double value)
{
	double span_s = seconds(to_ns - at->at_ns);

	h->low = fmin(h->low, value); /* NAN loses against a number */
	h->high = fmax(h->high, value);
	if (span_s <= 0)
		return;
	h->area += (at->value + value) / 2 * span_s;
	h->slope_low = fmin(h->slope_low, (value - at->value) / span_s);
	h->slope_high = fmax(h->slope_high, (value - at->value) / span_s);
	*at = (struct corner){ to_ns, value };
}

static struct shape shape_of(const struct record_series *s, struct window in)
{
	struct corner at = { in.from_ns, value_at(s, in.from_ns) };
	struct shape h = { 0, at.value, at.value, NAN, NAN };

	for (size_t i = 0; i < s->n; i++)
		if (s->point[i].at_ns > in.from_ns && s->point[i].at_ns < in.to_ns)
			go_on(&h, &at, s->point[i].at_ns, s->point[i].value);
	go_on(&h, &at, in.to_ns, value_at(s, in.to_ns));
	return h;
}

static bool is_empty(const struct record_series *s)
{
	return !s || s->n == 0;
}

static struct metrics_level no_level(void)
{
	return (struct metrics_level){ 0, NAN, NAN, NAN };
}

/* A sum of many products may end beside its bounds by a last digit. */
static double mean_of(const struct shape *h, struct window in)
{
	if (in.to_ns <= in.from_ns)
		return h->low;
	return fmin(fmax(h->area / seconds(in.to_ns - in.from_ns), h->low), h->high);
}

static struct metrics_level level_of(const struct record_series *s, struct window in)
{
	struct shape h;

	if (is_empty(s))
		return no_level();
	h = shape_of(s, in);
	return (struct metrics_level){ s->n, h.low, mean_of(&h, in), h.high };
}

static double growth_of(const struct record_series *s, struct window in)
{
	return is_empty(s) ? NAN : value_at(s, in.to_ns) - value_at(s, in.from_ns);
}

/* How fast a counter goes. */
static struct metrics_level rate_of(const struct record_series *s, struct window in)
{
	struct shape h;
	double mean;

	if (is_empty(s) || s->n < 2 || in.to_ns <= in.from_ns)
		return no_level();
	h = shape_of(s, in);
	mean = growth_of(s, in) / seconds(in.to_ns - in.from_ns);
	return (struct metrics_level){ s->n - 1, h.slope_low, mean, h.slope_high };
}

static double last_before(const struct record_series *s, int64_t at_ns)
{
	double v = NAN;

	for (size_t i = 0; s && i < s->n && s->point[i].at_ns <= at_ns; i++)
		v = s->point[i].value;
	return v;
}

static double fact_of(const struct record_series *s)
{
	return is_empty(s) ? NAN : s->point[0].value;
}

/* ---- what belongs together ---- */

/* The series of one thing. */
struct thing {
	const char *labels;
	const struct record_series *series[SYSTEM_SERIES_COUNT];
};

enum thing_kind { THING_GPU, THING_HOST, THING_PROCESS, THING_SAMPLER, THING_KINDS };
struct things { struct thing *v; size_t n; };

static enum thing_kind kind_of(enum system_series id)
{
	return id < SYSTEM_HOST_CPU ? THING_GPU : id < SYSTEM_PROCESS_CPU ? THING_HOST
	     : id < SYSTEM_SAMPLER_CPU ? THING_PROCESS : THING_SAMPLER;
}

static struct thing *thing_of(struct things *all, const char *labels)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].labels, labels) == 0)
			return &all->v[i];
	all->v[all->n] = (struct thing){ .labels = labels };
	return &all->v[all->n++];
}

static bool gather(struct things all[THING_KINDS], const struct record *r, struct arena *a)
{
	const size_t bytes = r->n_series * sizeof(struct thing);
	bool is_any = false;

	for (int k = 0; k < THING_KINDS; k++)
		all[k] = (struct things){ arena_alloc(a, bytes), 0 };
	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];

		for (int id = 0; id < SYSTEM_SERIES_COUNT; id++) {
			struct thing *t;

			if (strcmp(s->name, system_series_name((enum system_series)id)) != 0)
				continue;
			is_any = true;
			t = thing_of(&all[kind_of((enum system_series)id)], s->labels);
			if (!t->series[id]) /* of several hosts the first one's */
				t->series[id] = s;
		}
	}
	return is_any;
}

static const char *label_text(const struct thing *t, const char *name, struct arena *a)
{
	const struct record_series labels = { .labels = t->labels };

	return arena_text(a, metrics_label(&labels, name));
}

static int64_t label_int(const struct thing *t, const char *name)
{
	const struct record_series labels = { .labels = t->labels };
	int64_t v = -1;

	str_to_i64(metrics_label(&labels, name), &v);
	return v;
}

/* ---- things ---- */

/* A counter that went back was reset: power is integrated then, too. */
static void gpu_energy(struct metrics_gpu *g, const struct thing *t, struct window in)
{
	const struct record_series *counter = t->series[SYSTEM_GPU_ENERGY];
	double counted = is_empty(counter) || counter->n < 2 ? NAN : growth_of(counter, in);

	g->is_energy_counted = counted >= 0;
	if (g->is_energy_counted)
		g->energy_j = counted;
	else
		g->energy_j = is_empty(t->series[SYSTEM_GPU_POWER]) ? NAN
			    : shape_of(t->series[SYSTEM_GPU_POWER], in).area;
}

static void describe_gpu(struct metrics_gpu *g, const struct thing *t, struct window in,
			 struct arena *a)
{
	*g = (struct metrics_gpu){
		.index = label_int(t, "gpu=\""), .uuid = label_text(t, "uuid=\"", a),
		.name = label_text(t, "name=\"", a),
		.memory_total = fact_of(t->series[SYSTEM_GPU_MEMORY_TOTAL]),
		.memory = level_of(t->series[SYSTEM_GPU_MEMORY], in),
		.utilization = level_of(t->series[SYSTEM_GPU_UTILIZATION], in),
		.memory_busy = level_of(t->series[SYSTEM_GPU_MEMORY_BUSY], in),
		.sm_clock = level_of(t->series[SYSTEM_GPU_SM_CLOCK], in),
		.memory_clock = level_of(t->series[SYSTEM_GPU_MEMORY_CLOCK], in),
		.power = level_of(t->series[SYSTEM_GPU_POWER], in),
		.temperature = level_of(t->series[SYSTEM_GPU_TEMPERATURE], in),
		.power_before_w = last_before(t->series[SYSTEM_GPU_POWER], in.from_ns),
	};
	gpu_energy(g, t, in);
}

static void describe_host(struct metrics_host *h, const struct thing *t, struct window in)
{
	*h = (struct metrics_host){
		.cpus = fact_of(t->series[SYSTEM_HOST_CPUS]),
		.memory_total = fact_of(t->series[SYSTEM_HOST_MEMORY_TOTAL]),
		.cpus_busy = rate_of(t->series[SYSTEM_HOST_CPU], in),
		.memory = level_of(t->series[SYSTEM_HOST_MEMORY], in),
		.received = rate_of(t->series[SYSTEM_HOST_RECEIVED], in),
		.sent = rate_of(t->series[SYSTEM_HOST_SENT], in),
	};
}

static void describe_process(struct metrics_process *p, const struct thing *t, struct window in,
			     struct arena *a)
{
	*p = (struct metrics_process){
		.name = label_text(t, "process=\"", a), .pid = label_int(t, "pid=\""),
		.cpus = rate_of(t->series[SYSTEM_PROCESS_CPU], in),
		.cpu_s = growth_of(t->series[SYSTEM_PROCESS_CPU], in),
		.rss = level_of(t->series[SYSTEM_PROCESS_RSS], in),
		.threads = level_of(t->series[SYSTEM_PROCESS_THREADS], in),
		.count = level_of(t->series[SYSTEM_PROCESS_COUNT], in),
	};
}

/* The samples are counted in the window; what they cost, from the first to the last of all. */
static void describe_sampler(struct metrics_system *out, const struct thing *t, struct window in)
{
	const struct record_series *cpu = t->series[SYSTEM_SAMPLER_CPU];
	const struct record_series *missed = t->series[SYSTEM_SAMPLER_MISSED];
	int64_t first_ns = 0, last_ns = 0;

	for (size_t i = 0; cpu && i < cpu->n; i++) {
		int64_t at_ns = cpu->point[i].at_ns;

		if (at_ns < in.from_ns || at_ns > in.to_ns)
			continue;
		first_ns = out->samples++ ? first_ns : at_ns;
		last_ns = at_ns;
	}
	if (out->samples > 1)
		out->interval_s = seconds(last_ns - first_ns) / (double)(out->samples - 1);
	if (!is_empty(missed))
		out->missed = missed->point[missed->n - 1].value - missed->point[0].value;
	if (is_empty(cpu))
		return;
	out->sampler_cpu_s = cpu->point[cpu->n - 1].value - cpu->point[0].value;
	last_ns = cpu->point[cpu->n - 1].at_ns;
	if (last_ns > cpu->point[0].at_ns)
		out->sampler_share = out->sampler_cpu_s / seconds(last_ns - cpu->point[0].at_ns);
}

/* ---- all together ---- */

/* NAN as soon as one is not told. */
static void over_gpus(struct metrics_system *out, struct window in,
		      const struct metrics_tokens *tokens)
{
	double memory = 0, utilization = 0, energy = 0, before = 0;
	size_t n_utilization = 0;

	for (size_t i = 0; i < out->n_gpus; i++) {
		const struct metrics_gpu *g = &out->gpu[i];

		memory += g->memory.max;
		energy += g->energy_j;
		before += g->power_before_w;
		if (g->utilization.n) {
			utilization += g->utilization.mean;
			n_utilization++;
		}
	}
	if (out->n_gpus == 0)
		return;
	out->peak_gpu_memory_gb = memory / GB;
	out->energy_j = energy;
	out->power_before_w = before;
	if (n_utilization)
		out->avg_gpu_utilization = utilization / (double)n_utilization;
	if (in.to_ns > in.from_ns)
		out->power_mean_w = energy / seconds(in.to_ns - in.from_ns);
	if (tokens->output > 0)
		out->j_per_token = energy / tokens->output;
	if (tokens->input + tokens->output > 0)
		out->j_per_token_total = energy / (tokens->input + tokens->output);
	if (energy > 0)
		out->tokens_per_s_per_w = tokens->output / energy;
}

static const char *note_of(const struct record *r, struct arena *a)
{
	const char *text = NULL;

	for (size_t i = 0; i < r->n_notes; i++)
		if (strcmp(r->note[i].kind, NOTE_SYSTEM) == 0)
			text = text ? arena_printf(a, "%s; %s", text, r->note[i].text)
				    : arena_text(a, str_of(r->note[i].text));
	return text;
}

void metrics_system(struct metrics_system *out, const struct record *r,
		    const struct metrics_tokens *tokens, struct arena *a)
{
	const int64_t stop_ns = r->stop_ns < r->start_ns ? r->start_ns : r->stop_ns;
	const struct window in = { r->start_ns, stop_ns };
	static const struct thing none = { 0 };
	struct things all[THING_KINDS];

	*out = (struct metrics_system){
		.peak_gpu_memory_gb = NAN, .avg_gpu_utilization = NAN, .energy_j = NAN,
		.power_mean_w = NAN, .power_before_w = NAN, .j_per_token = NAN,
		.j_per_token_total = NAN, .tokens_per_s_per_w = NAN, .missed = NAN,
		.interval_s = NAN, .sampler_cpu_s = NAN, .sampler_share = NAN,
	};
	out->is_told = gather(all, r, a);
	out->note = note_of(r, a);
	if (!out->is_told)
		return;
	out->n_gpus = all[THING_GPU].n;
	out->gpu = arena_alloc(a, out->n_gpus * sizeof(*out->gpu));
	for (size_t i = 0; i < out->n_gpus; i++)
		describe_gpu(&out->gpu[i], &all[THING_GPU].v[i], in, a);
	out->n_processes = all[THING_PROCESS].n;
	out->process = arena_alloc(a, out->n_processes * sizeof(*out->process));
	for (size_t i = 0; i < out->n_processes; i++)
		describe_process(&out->process[i], &all[THING_PROCESS].v[i], in, a);
	describe_host(&out->host, all[THING_HOST].n ? all[THING_HOST].v : &none, in);
	describe_sampler(out, all[THING_SAMPLER].n ? all[THING_SAMPLER].v : &none, in);
	over_gpus(out, in, tokens);
}
