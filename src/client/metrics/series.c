/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.c - metrics from the series of a record that telemetry/ read: of the servers (speculative
 * decoding, diffusion, queues, caches) and of the machine.
 *
 * A server's counter counts from the reading before the load to the one after it; it is unavailable
 * when either reading lacks it. The points in between are for gauges: the idle server before and
 * after would distort them. They also show that a server was restarted or that a load balancer
 * asked several servers in turn: a counter decreases, or the process start time changes. The counts
 * of that server are then unknown, even when the last reading is above the first, and none of its
 * counters is reported.
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <string.h>

#include "client/record/series.h"
#include "core/base/mem.h"

#define START_SLACK_S 1.5 /* some programs recompute it each time from an adjusted clock */

/* The value of a label as spelled, name with its ="; empty if absent. */
static struct str metrics_label(const struct record_series *s, const char *name)
{
	const char *at = strstr(s->labels, name), *end;

	if (!at)
		return (struct str){ 0 };
	at += strlen(name);
	end = strchr(at, '"');
	return (struct str){ at, end ? (size_t)(end - at) : 0 };
}

static struct str url_of(const struct record_series *s)
{
	return metrics_label(s, "url=\"");
}

/* The series with that name of the same server; NULL: none. */
static const struct record_series *series_of_server(const struct record *r,
						    const struct record_series *of,
						    const char *name)
{
	for (size_t i = 0; i < r->n_series; i++)
		if (strcmp(r->series[i]->name, name) == 0 &&
		    str_eq(url_of(r->series[i]), url_of(of)))
			return r->series[i];
	return NULL;
}

/* ---- counters ---- */

/* Whether s is in its server's last reading, and that reading came after the load. */
static bool is_in_last(const struct metrics *m, const struct record *r,
		       const struct record_series *s)
{
	const struct record_series *scrape = series_of_server(r, s, SERIES_SCRAPE);

	if (!scrape || scrape->n < 2 || s->n == 0)
		return false;
	if (m->opts.n_hosts < 2 && scrape->point[scrape->n - 1].at_ns < r->stop_ns)
		return false;
	return s->point[s->n - 1].at_ns == scrape->point[scrape->n - 1].at_ns;
}

static bool is_in_first(const struct record *r, const struct record_series *s)
{
	const struct record_series *scrape = series_of_server(r, s, SERIES_SCRAPE);

	return scrape && scrape->n && s->n && s->point[0].at_ns == scrape->point[0].at_ns;
}

static bool is_counter(const struct record_series *s)
{
	if (strcmp(s->name, SERIES_POSITION) == 0)
		return true;
	for (int id = SERIES_FIRST_COUNTER; id < SERIES_COUNT; id++)
		if (strcmp(s->name, series_name((enum series_id)id)) == 0)
			return true;
	return false;
}

/* Whether these points show that the process was restarted. */
static bool shows_restart(const struct record_series *s)
{
	bool is_start = strcmp(s->name, series_name(SERIES_PROCESS_START)) == 0;
	bool is_growing = is_counter(s);

	for (size_t i = 1; i < s->n; i++)
		if ((is_growing && s->point[i].value < s->point[i - 1].value) ||
		    (is_start && fabs(s->point[i].value - s->point[0].value) > START_SLACK_S))
			return true;
	return false;
}

/* Whether a server with the counter at this url ("": any) was restarted. */
static bool is_lost(const struct metrics *m, const struct record *r, const char *name,
		    struct str url)
{
	for (size_t i = 0; i < r->n_series; i++)
		for (size_t k = 0; strcmp(r->series[i]->name, name) == 0 && k < m->n_servers; k++)
			if (m->server[k].is_restarted &&
			    str_eq(m->server[k].url, url_of(r->series[i])) &&
			    (url.n == 0 || str_eq(m->server[k].url, url)))
				return true;
	return false;
}

static void add_growth(struct metrics_growth *g, const struct metrics *m, const struct record *r,
		       const struct record_series *s)
{
	if (!is_in_first(r, s) || !is_in_last(m, r, s))
		return;
	g->is_reported = true;
	g->value += s->point[s->n - 1].value - s->point[0].value;
}

/* Over all servers. */
static struct metrics_growth counter_growth(const struct metrics *m, const struct record *r,
				       enum series_id id)
{
	struct metrics_growth g = { 0 };

	if (is_lost(m, r, series_name(id), STR("")))
		return g;
	for (size_t i = 0; i < r->n_series; i++)
		if (strcmp(r->series[i]->name, series_name(id)) == 0 &&
		    !record_series_is_repeated(r, i))
			add_growth(&g, m, r, r->series[i]);
	return g;
}

/* ---- speculative decoding ---- */

/* A position that the reading before lacks began at 0; one that the last lacks stood still. */
static void spec_positions(struct metrics *m, const struct record *r, double drafts)
{
	double grown[SPEC_POSITIONS_MAX] = { 0 };
	bool is_reported[SPEC_POSITIONS_MAX] = { 0 };

	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];
		int64_t k;

		if (strcmp(s->name, SERIES_POSITION) != 0 || s->n == 0 ||
		    record_series_is_repeated(r, i) ||
		    !str_to_i64(metrics_label(s, "position=\""), &k) || k < 0 ||
		    k >= SPEC_POSITIONS_MAX)
			continue;
		is_reported[k] = true;
		if (is_in_last(m, r, s))
			grown[k] += s->point[s->n - 1].value -
				    (is_in_first(r, s) ? s->point[0].value : 0);
	}
	for (size_t k = 0; k < SPEC_POSITIONS_MAX; k++)
		if (is_reported[k])
			m->spec.position_rate[m->spec.n_positions++] = grown[k] / drafts;
}

/* Serve spec 4.10. */
static void spec(struct metrics *m, const struct record *r)
{
	double drafts = counter_growth(m, r, SERIES_DRAFTS).value;
	double draft_tokens = counter_growth(m, r, SERIES_DRAFT_TOKENS).value;
	double accepted = counter_growth(m, r, SERIES_ACCEPTED_TOKENS).value;

	if (draft_tokens <= 0)
		return;
	m->spec.is_reported = true;
	m->spec.drafts = metrics_whole(drafts);
	m->spec.draft_tokens = metrics_whole(draft_tokens);
	m->spec.accepted_tokens = metrics_whole(accepted);
	m->spec.acceptance_rate = accepted / draft_tokens * 100;
	if (drafts <= 0)
		return;
	m->spec.acceptance_length = 1 + accepted / drafts;
	spec_positions(m, r, drafts);
}

/* Serve spec 4.11; upstream divides by zero where this reports nothing. */
static void diffusion(struct metrics *m, const struct record *r)
{
	struct metrics_diffusion *d = &m->diffusion;
	double steps = counter_growth(m, r, SERIES_DIFFUSION_STEPS).value;
	double positions = counter_growth(m, r, SERIES_DIFFUSION_POSITIONS).value;
	double committed = counter_growth(m, r, SERIES_DIFFUSION_COMMITTED).value;
	double canvases;

	if (steps <= 0 || committed <= 0 || positions <= 0)
		return;
	canvases = committed / (positions / steps);
	d->is_reported = true;
	d->denoising_steps = steps - canvases;
	d->canvas_positions = metrics_whole(positions);
	d->committed_tokens = metrics_whole(committed);
	d->committed_throughput = m->duration_s > 0 ? committed / m->duration_s : 0;
	d->steps_per_canvas = d->denoising_steps / canvases;
	d->committed_per_step = d->denoising_steps != 0 ? committed / d->denoising_steps : 0;
}

/* ---- servers ---- */

static void add_gauge(struct metrics_gauge *g, const struct record *r,
		      const struct record_series *s)
{
	for (size_t i = 0; i < s->n; i++) {
		double v = s->point[i].value;

		if (s->point[i].at_ns < r->start_ns || s->point[i].at_ns > r->stop_ns)
			continue;
		g->min = g->n == 0 || v < g->min ? v : g->min;
		g->max = g->n == 0 || v > g->max ? v : g->max;
		g->mean += (v - g->mean) / (double)++g->n;
		if (s->point[i].at_ns >= g->last_ns) {
			g->last = v;
			g->last_ns = s->point[i].at_ns;
		}
	}
}

/* A series that was thinned has fewer points than there were readings. */
static uint32_t readings_of(const struct record *r, const struct record_series *scrape)
{
	const struct record_series *all = series_of_server(r, scrape, SERIES_READINGS);

	if (!all || all->n == 0)
		return (uint32_t)scrape->n;
	return (uint32_t)metrics_whole(all->point[all->n - 1].value);
}

static void add_series(struct metrics_server *to, const struct metrics *m, const struct record *r,
		       const struct record_series *s)
{
	const struct { const char *name; struct metrics_gauge *gauge; } gauges[] = {
		{ series_name(SERIES_RUNNING), &to->running },
		{ series_name(SERIES_WAITING), &to->waiting },
		{ series_name(SERIES_KV_USAGE), &to->kv_usage },
	};
	const struct { const char *name; struct metrics_growth *growth; } counters[] = {
		{ series_name(SERIES_PREFIX_QUERIES), &to->prefix_queries },
		{ series_name(SERIES_PREFIX_HITS), &to->prefix_hits },
		{ series_name(SERIES_PREEMPTIONS), &to->preemptions },
		{ series_name(SERIES_PROMPT_TOKENS), &to->prompt_tokens },
		{ series_name(SERIES_GENERATION_TOKENS), &to->generation_tokens },
	};

	for (size_t k = 0; k < sizeof(gauges) / sizeof(*gauges); k++)
		if (strcmp(s->name, gauges[k].name) == 0)
			add_gauge(gauges[k].gauge, r, s);
	for (size_t k = 0; k < sizeof(counters) / sizeof(*counters); k++)
		if (strcmp(s->name, counters[k].name) == 0 && !is_lost(m, r, s->name, to->url))
			add_growth(counters[k].growth, m, r, s);
	if (strcmp(s->name, SERIES_SCRAPE) == 0)
		to->scrapes += readings_of(r, s);
	if (strcmp(s->name, SERIES_SCRAPE_FAILED) == 0)
		to->failed_scrapes += (uint32_t)s->n;
}

static struct metrics_server *server_of(struct metrics *m, const struct record_series *s)
{
	struct str url = url_of(s);

	for (size_t i = 0; i < m->n_servers; i++)
		if (str_eq(m->server[i].url, url))
			return &m->server[i];
	m->server[m->n_servers] = (struct metrics_server){ .url = arena_str(&m->arena, url) };
	return &m->server[m->n_servers++];
}

static void servers(struct metrics *m, const struct record *r)
{
	m->server = arena_alloc(&m->arena, r->n_series * sizeof(*m->server));
	for (size_t i = 0; i < r->n_series; i++) {
		if (url_of(r->series[i]).n == 0)
			continue;
		server_of(m, r->series[i])->is_restarted |= shows_restart(r->series[i]);
		m->servers.is_restarted |= shows_restart(r->series[i]);
	}
	for (size_t i = 0; i < r->n_series; i++) {
		/* Without a url it is not a server's. */
		if (url_of(r->series[i]).n == 0 || record_series_is_repeated(r, i))
			continue;
		add_series(&m->servers, m, r, r->series[i]);
		add_series(server_of(m, r->series[i]), m, r, r->series[i]);
	}
	for (size_t i = 0; i < r->n_notes && m->server_note.n == 0; i++)
		if (strcmp(r->note[i].kind, NOTE_SERVER_METRICS) == 0)
			m->server_note = arena_str(&m->arena, str_of(r->note[i].text));
}

void metrics_engine(struct metrics *m, const struct record *r)
{
	servers(m, r);
	spec(m, r);
	diffusion(m, r);
}

/* ---- the machine: one series in the window of the load ---- */

#define GB 1e9

/* ---- one series in the window ---- */

struct series_window { int64_t from_ns, to_ns; };

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

/* The line through the samples, within the window: from its start over samples to its end. */
struct series_shape { double area, low, high, slope_low, slope_high; };
struct corner { int64_t at_ns; double value; };

static void go_on(struct series_shape *h, struct corner *at, int64_t to_ns, double value)
{
	double span_s = metrics_seconds(to_ns - at->at_ns);

	h->low = fmin(h->low, value); /* NAN loses against a number */
	h->high = fmax(h->high, value);
	if (span_s <= 0)
		return;
	h->area += (at->value + value) / 2 * span_s;
	h->slope_low = fmin(h->slope_low, (value - at->value) / span_s);
	h->slope_high = fmax(h->slope_high, (value - at->value) / span_s);
	*at = (struct corner){ to_ns, value };
}

static struct series_shape shape_of(const struct record_series *s, struct series_window in)
{
	struct corner at = { in.from_ns, value_at(s, in.from_ns) };
	struct series_shape h = { 0, at.value, at.value, NAN, NAN };

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

/* Rounding may put the mean just outside its bounds. */
static double mean_of(const struct series_shape *h, struct series_window in)
{
	if (in.to_ns <= in.from_ns)
		return h->low;
	return fmin(fmax(h->area / metrics_seconds(in.to_ns - in.from_ns), h->low), h->high);
}

static struct metrics_level level_of(const struct record_series *s, struct series_window in)
{
	struct series_shape h;

	if (is_empty(s))
		return no_level();
	h = shape_of(s, in);
	return (struct metrics_level){ s->n, h.low, mean_of(&h, in), h.high };
}

static double growth_in(const struct record_series *s, struct series_window in)
{
	return is_empty(s) ? NAN : value_at(s, in.to_ns) - value_at(s, in.from_ns);
}

/* The rate of a counter. */
static struct metrics_level rate_of(const struct record_series *s, struct series_window in)
{
	struct series_shape h;
	double mean;

	if (is_empty(s) || s->n < 2 || in.to_ns <= in.from_ns)
		return no_level();
	h = shape_of(s, in);
	mean = growth_in(s, in) / metrics_seconds(in.to_ns - in.from_ns);
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

/* The series of one GPU, host, process or sampler: those with the same labels. */
struct system_source {
	const char *labels;
	const struct record_series *series[SYSTEM_SERIES_COUNT];
};

enum source_kind { SOURCE_GPU, SOURCE_HOST, SOURCE_PROCESS, SOURCE_SAMPLER, SOURCE_KINDS };
struct system_sources { struct system_source *v; size_t n; };

static enum source_kind kind_of(enum system_series id)
{
	return id < SYSTEM_HOST_CPU ? SOURCE_GPU : id < SYSTEM_PROCESS_CPU ? SOURCE_HOST
	     : id < SYSTEM_SAMPLER_CPU ? SOURCE_PROCESS : SOURCE_SAMPLER;
}

static struct system_source *source_of(struct system_sources *all, const char *labels)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].labels, labels) == 0)
			return &all->v[i];
	all->v[all->n] = (struct system_source){ .labels = labels };
	return &all->v[all->n++];
}

static bool gather(struct system_sources all[SOURCE_KINDS], const struct record *r, struct arena *a)
{
	const size_t bytes = r->n_series * sizeof(struct system_source);
	bool is_any = false;

	for (int k = 0; k < SOURCE_KINDS; k++)
		all[k] = (struct system_sources){ arena_alloc(a, bytes), 0 };
	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];

		for (int id = 0; id < SYSTEM_SERIES_COUNT; id++) {
			struct system_source *t;

			if (strcmp(s->name, system_series_name((enum system_series)id)) != 0)
				continue;
			is_any = true;
			t = source_of(&all[kind_of((enum system_series)id)], s->labels);
			if (!t->series[id]) /* if several hosts sampled it, the first one's */
				t->series[id] = s;
		}
	}
	return is_any;
}

static const char *label_text(const struct system_source *t, const char *name, struct arena *a)
{
	const struct record_series labels = { .labels = t->labels };

	return arena_text(a, metrics_label(&labels, name));
}

static int64_t label_int(const struct system_source *t, const char *name)
{
	const struct record_series labels = { .labels = t->labels };
	int64_t v = -1;

	str_to_i64(metrics_label(&labels, name), &v);
	return v;
}

/* ---- GPUs, processes, hosts ---- */

/* A counter that decreased was reset: then power is integrated. */
static void gpu_energy(struct metrics_gpu *g, const struct system_source *t,
		       struct series_window in)
{
	const struct record_series *counter = t->series[SYSTEM_GPU_ENERGY];
	double counted = is_empty(counter) || counter->n < 2 ? NAN : growth_in(counter, in);

	g->is_energy_counted = counted >= 0;
	if (g->is_energy_counted)
		g->energy_j = counted;
	else
		g->energy_j = is_empty(t->series[SYSTEM_GPU_POWER]) ? NAN
			    : shape_of(t->series[SYSTEM_GPU_POWER], in).area;
}

static void describe_gpu(struct metrics_gpu *g, const struct system_source *t,
			 struct series_window in, struct arena *a)
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
		.sm_active = level_of(t->series[SYSTEM_GPU_SM_ACTIVE], in),
		.tensor_active = level_of(t->series[SYSTEM_GPU_TENSOR_ACTIVE], in),
		.dram_active = level_of(t->series[SYSTEM_GPU_DRAM_ACTIVE], in),
		.nvlink_sent = level_of(t->series[SYSTEM_GPU_NVLINK_SENT], in),
		.nvlink_received = level_of(t->series[SYSTEM_GPU_NVLINK_RECEIVED], in),
		.pcie_sent = level_of(t->series[SYSTEM_GPU_PCIE_SENT], in),
		.pcie_received = level_of(t->series[SYSTEM_GPU_PCIE_RECEIVED], in),
		.power_before_w = last_before(t->series[SYSTEM_GPU_POWER], in.from_ns),
	};
	gpu_energy(g, t, in);
}

static void describe_host(struct metrics_host *h, const struct system_source *t,
			  struct series_window in)
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

static void describe_process(struct metrics_process *p, const struct system_source *t,
			     struct series_window in, struct arena *a)
{
	*p = (struct metrics_process){
		.name = label_text(t, "process=\"", a), .pid = label_int(t, "pid=\""),
		.cpus = rate_of(t->series[SYSTEM_PROCESS_CPU], in),
		.cpu_s = growth_in(t->series[SYSTEM_PROCESS_CPU], in),
		.rss = level_of(t->series[SYSTEM_PROCESS_RSS], in),
		.threads = level_of(t->series[SYSTEM_PROCESS_THREADS], in),
		.count = level_of(t->series[SYSTEM_PROCESS_COUNT], in),
	};
}

/* Samples are counted in the window; their cost is over all samples. */
static void describe_sampler(struct metrics_system *out, const struct system_source *t,
			     struct series_window in)
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
		out->interval_s = metrics_seconds(last_ns - first_ns) / (double)(out->samples - 1);
	if (!is_empty(missed))
		out->missed = missed->point[missed->n - 1].value - missed->point[0].value;
	if (is_empty(cpu))
		return;
	out->sampler_cpu_s = cpu->point[cpu->n - 1].value - cpu->point[0].value;
	last_ns = cpu->point[cpu->n - 1].at_ns;
	if (last_ns > cpu->point[0].at_ns)
		out->sampler_share = out->sampler_cpu_s /
				     metrics_seconds(last_ns - cpu->point[0].at_ns);
}

/* ---- all together ---- */

/* NAN if one of them does not report it. */
static void over_gpus(struct metrics_system *out, struct series_window in,
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
		out->power_mean_w = energy / metrics_seconds(in.to_ns - in.from_ns);
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
	const struct series_window in = { r->start_ns, stop_ns };
	static const struct system_source none = { 0 };
	struct system_sources all[SOURCE_KINDS];

	*out = (struct metrics_system){
		.peak_gpu_memory_gb = NAN, .avg_gpu_utilization = NAN, .energy_j = NAN,
		.power_mean_w = NAN, .power_before_w = NAN, .j_per_token = NAN,
		.j_per_token_total = NAN, .tokens_per_s_per_w = NAN, .missed = NAN,
		.interval_s = NAN, .sampler_cpu_s = NAN, .sampler_share = NAN,
	};
	out->is_reported = gather(all, r, a);
	out->note = note_of(r, a);
	if (!out->is_reported)
		return;
	out->n_gpus = all[SOURCE_GPU].n;
	out->gpu = arena_alloc(a, out->n_gpus * sizeof(*out->gpu));
	for (size_t i = 0; i < out->n_gpus; i++)
		describe_gpu(&out->gpu[i], &all[SOURCE_GPU].v[i], in, a);
	out->n_processes = all[SOURCE_PROCESS].n;
	out->process = arena_alloc(a, out->n_processes * sizeof(*out->process));
	for (size_t i = 0; i < out->n_processes; i++)
		describe_process(&out->process[i], &all[SOURCE_PROCESS].v[i], in, a);
	describe_host(&out->host, all[SOURCE_HOST].n ? all[SOURCE_HOST].v : &none, in);
	describe_sampler(out, all[SOURCE_SAMPLER].n ? all[SOURCE_SAMPLER].v : &none, in);
	over_gpus(out, in, tokens);
}
