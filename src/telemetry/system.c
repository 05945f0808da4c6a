/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - see system.h. */
#include "telemetry/system.h"

#include <math.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "http/prometheus.h"
#include "record/series.h"
#include "telemetry/beat.h"
#include "telemetry/system_host.h"
#include "telemetry/system_tree.h"

/*
 * What the thread may take of a core: beats beyond it are left out. Looking up who belongs to
 * a tree may take a part of that.
 */
#define CPU_SHARE_MAX 0.01
#define CPU_FREE_NS 20000000  /* whatever the share: a short run may begin at once */
#define FIND_SHARE_MAX 0.0025
#define FIND_INTERVAL_NS 1000000000ll
#define PATIENCE_S 10         /* with a driver that does not come back from a call */

/* The series of one thing, each NULL until it has a point. */
struct slots {
	struct record_series *series[SYSTEM_SERIES_COUNT];
	const char *labels;
};

struct watched_gpu {
	size_t place;                  /* in the list of gpu.h */
	double memory_total;
	struct slots slots;
	_Atomic double utilization, memory, power; /* sampled last */
};

/* A counter's last two values, and how fast it went. */
struct pace {
	int64_t at_ns;
	double value;
	_Atomic double per_s;
};

struct watched_tree {
	struct tree_watch tree;
	struct slots slots;
	struct pace pace;
	_Atomic double rss;
};

struct system_watch {
	struct record own;             /* only its series, notes and arena are used */
	struct beat beat;
	int64_t began_ns, thread_ns;   /* monotonic; of the thread's processor time */

	struct gpu_set *gpus;
	struct watched_gpu *gpu;
	size_t n_gpus;

	bool has_host;
	struct host host;
	struct slots host_slots;
	struct pace host_pace;
	double cpus, memory_limit;
	_Atomic double memory;

	struct watched_tree *trees;
	size_t n_trees;
	struct tree picture;           /* kept to be read into again */
	int64_t find_ns;               /* monotonic: not before */

	struct slots self;
};

static void add_point(struct system_watch *w, struct slots *of, enum system_series id,
		      int64_t at_ns, double value)
{
	struct record_series **s = &of->series[id];

	if (isnan(value))
		return;
	if (!*s)
		*s = record_series_add(&w->own, system_series_name(id), system_series_unit(id),
				       of->labels ? of->labels : "");
	record_series_point(*s, at_ns, value);
}

__attribute__((format(printf, 2, 3)))
static void note(struct system_watch *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	record_note_add(&w->own, clock_real_ns(), NOTE_SYSTEM, text);
}

static void keep(_Atomic double *to, double v)
{
	atomic_store_explicit(to, v, memory_order_relaxed);
}

static double kept(const _Atomic double *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static void keep_pace(struct pace *p, int64_t at_ns, double value)
{
	if (p->at_ns && at_ns > p->at_ns)
		keep(&p->per_s, (value - p->value) / ((double)(at_ns - p->at_ns) / 1e9));
	p->at_ns = at_ns;
	p->value = value;
}

/* ---- GPUs ---- */

static void sample_gpu(struct system_watch *w, struct watched_gpu *g)
{
	struct gpu_sample now;
	int64_t at_ns;

	gpu_sample(w->gpus, g->place, &now);
	at_ns = clock_real_ns();
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY, at_ns, now.memory_used_bytes);
	add_point(w, &g->slots, SYSTEM_GPU_UTILIZATION, at_ns, now.utilization_percent);
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_BUSY, at_ns, now.memory_busy_percent);
	add_point(w, &g->slots, SYSTEM_GPU_SM_CLOCK, at_ns, now.sm_clock_mhz);
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_CLOCK, at_ns, now.memory_clock_mhz);
	add_point(w, &g->slots, SYSTEM_GPU_POWER, at_ns, now.power_w);
	add_point(w, &g->slots, SYSTEM_GPU_TEMPERATURE, at_ns, now.temperature_c);
	add_point(w, &g->slots, SYSTEM_GPU_ENERGY, at_ns, now.energy_j);
	keep(&g->utilization, now.utilization_percent);
	keep(&g->memory, now.memory_used_bytes);
	keep(&g->power, now.power_w);
}

static void add_gpu(struct system_watch *w, const struct gpu *list, size_t place)
{
	const struct gpu *gpu = &list[place];
	struct watched_gpu *g = &w->gpu[w->n_gpus];
	struct buf labels = { 0 };
	char index[32];

	for (size_t i = 0; i < w->n_gpus; i++)
		if (w->gpu[i].place == place)
			return;
	snprintf(index, sizeof(index), "%d", gpu->index);
	prometheus_add_label(&labels, "gpu", str_of(index));
	prometheus_add_label(&labels, "uuid", str_of(gpu->uuid));
	prometheus_add_label(&labels, "name", str_of(gpu->name));
	g->place = place;
	g->memory_total = gpu->memory_bytes;
	g->slots.labels = arena_text(&w->own.arena, buf_str(&labels));
	add_point(w, &g->slots, SYSTEM_GPU_MEMORY_TOTAL, clock_real_ns(), gpu->memory_bytes);
	w->n_gpus++;
	buf_release(&labels);
}

/* A GPU that is split is watched by its parts, or it would be counted twice. */
static void find_gpus(struct system_watch *w, const struct system_opts *o)
{
	const struct gpu *list;
	size_t n;

	w->gpus = gpu_open(NULL);
	list = gpu_list(w->gpus, &n);
	w->gpu = mem_array(n, sizeof(*w->gpu));
	if (*gpu_note(w->gpus))
		note(w, "gpu: %s", gpu_note(w->gpus));
	else if (n == 0)
		note(w, "gpu: there is none on this machine that can be seen");
	for (size_t i = 0; o->n_gpus == 0 && i < n; i++)
		if (list[i].is_allowed && !list[i].is_split)
			add_gpu(w, list, i);
	for (size_t i = 0; i < o->n_gpus; i++) {
		int found = gpu_find(w->gpus, o->gpus[i]);

		if (found >= 0)
			add_gpu(w, list, (size_t)found);
		else if (n)
			note(w, "gpu: %s is called '%s'", found == -2 ? "more than one" : "none",
			     o->gpus[i]);
	}
}

/* ---- host ---- */

static void sample_host(struct system_watch *w)
{
	struct host_values now;
	int64_t at_ns;

	host_read(&w->host, &now);
	at_ns = clock_real_ns();
	add_point(w, &w->host_slots, SYSTEM_HOST_CPU, at_ns, now.cpu_s);
	add_point(w, &w->host_slots, SYSTEM_HOST_MEMORY, at_ns, now.memory);
	add_point(w, &w->host_slots, SYSTEM_HOST_RECEIVED, at_ns, now.received);
	add_point(w, &w->host_slots, SYSTEM_HOST_SENT, at_ns, now.sent);
	keep_pace(&w->host_pace, at_ns, now.cpu_s);
	keep(&w->memory, now.memory);
}

static void find_host(struct system_watch *w)
{
	int64_t at_ns = clock_real_ns();
	struct host_values now;

	w->has_host = true;
	host_open(&w->host);
	host_read(&w->host, &now);
	w->cpus = host_cpus();
	w->memory_limit = host_memory_limit(now.memory_total);
	add_point(w, &w->host_slots, SYSTEM_HOST_CPUS, at_ns, w->cpus);
	add_point(w, &w->host_slots, SYSTEM_HOST_MEMORY_TOTAL, at_ns, w->memory_limit);
}

/* ---- processes ---- */

static void sample_tree(struct system_watch *w, struct watched_tree *t)
{
	struct tree_values now;
	int64_t at_ns;

	if (!tree_watch_read(&t->tree, &now)) {
		keep(&t->rss, NAN);
		return;
	}
	at_ns = clock_real_ns();
	add_point(w, &t->slots, SYSTEM_PROCESS_CPU, at_ns, now.cpu_s);
	add_point(w, &t->slots, SYSTEM_PROCESS_RSS, at_ns, now.rss);
	add_point(w, &t->slots, SYSTEM_PROCESS_THREADS, at_ns, now.threads);
	add_point(w, &t->slots, SYSTEM_PROCESS_COUNT, at_ns, now.processes);
	keep_pace(&t->pace, at_ns, now.cpu_s);
	keep(&t->rss, now.rss);
}

/* Reads all of /proc, so the next time is as far away as this one was dear. */
static void find_trees(struct system_watch *w)
{
	int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), wait;

	if (tree_read(&w->picture) == 0)
		for (size_t i = 0; i < w->n_trees; i++)
			tree_watch_find(&w->trees[i].tree, &w->picture);
	wait = (int64_t)((double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / FIND_SHARE_MAX);
	w->find_ns = clock_mono_ns() + (wait > FIND_INTERVAL_NS ? wait : FIND_INTERVAL_NS);
}

static void add_trees(struct system_watch *w, const struct system_opts *o)
{
	w->trees = mem_array(o->n_processes, sizeof(*w->trees));
	w->n_trees = o->n_processes;
	for (size_t i = 0; i < o->n_processes; i++) {
		struct watched_tree *t = &w->trees[i];
		struct buf labels = { 0 };
		char pid[32];

		snprintf(pid, sizeof(pid), "%d", (int)o->processes[i].pid);
		prometheus_add_label(&labels, "process", str_of(o->processes[i].name));
		prometheus_add_label(&labels, "pid", str_of(pid));
		t->slots.labels = arena_text(&w->own.arena, buf_str(&labels));
		t->tree.root = o->processes[i].pid;
		buf_release(&labels);
	}
	find_trees(w);
	for (size_t i = 0; i < w->n_trees; i++)
		if (w->trees[i].tree.n == 0)
			note(w, "process: there is none with the number %d that we may look at",
			     (int)w->trees[i].tree.root);
	if (w->n_trees == 0)
		note(w, "process: it is not known which are the server's");
}

/* ---- one sample ---- */

static void sample_all(struct system_watch *w)
{
	for (size_t i = 0; i < w->n_gpus; i++)
		sample_gpu(w, &w->gpu[i]);
	if (w->has_host)
		sample_host(w);
	if (w->n_trees && clock_mono_ns() >= w->find_ns)
		find_trees(w);
	for (size_t i = 0; i < w->n_trees; i++)
		sample_tree(w, &w->trees[i]);
}

static void sample_self(struct system_watch *w)
{
	int64_t at_ns = clock_real_ns();

	add_point(w, &w->self, SYSTEM_SAMPLER_CPU, at_ns, (double)w->thread_ns / 1e9);
	add_point(w, &w->self, SYSTEM_SAMPLER_MISSED, at_ns, (double)w->beat.missed);
}

static void thin_when_full(struct system_watch *w)
{
	/* It has a point of every sample. */
	const struct record_series *longest = w->self.series[SYSTEM_SAMPLER_CPU];

	if (longest->n < TELEMETRY_POINTS_MAX)
		return;
	for (size_t i = 0; i < w->own.n_series; i++)
		series_thin(w->own.series[i]);
	w->beat.interval_ns *= 2;
}

static void sample_again(void *self)
{
	struct system_watch *w = self;

	sample_all(w);
	w->thread_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sample_self(w);
	thin_when_full(w);
	w->beat.not_before_ns = w->began_ns +
				(int64_t)((double)(w->thread_ns - CPU_FREE_NS) / CPU_SHARE_MAX);
}

/* ---- begin, now, end ---- */

struct system_watch *system_begin(const struct system_opts *o)
{
	struct system_watch *w = mem_alloc(sizeof(*w));

	keep(&w->host_pace.per_s, NAN);
	keep(&w->memory, NAN);
	w->cpus = w->memory_limit = NAN;
	if (o->gpu)
		find_gpus(w, o);
	if (o->host)
		find_host(w);
	if (o->process)
		add_trees(w, o);
	for (size_t i = 0; i < w->n_trees; i++)
		keep(&w->trees[i].pace.per_s, NAN);
	sample_all(w);
	sample_self(w);
	w->began_ns = clock_mono_ns();
	w->beat.patience_s = PATIENCE_S;
	if (o->interval_ns > 0)
		beat_start(&w->beat, o->interval_ns, sample_again, w);
	return w;
}

/* NAN stands for 0 as long as there is another. */
static double plus(double sum, double v)
{
	return isnan(sum) ? v : isnan(v) ? sum : sum + v;
}

void system_now(const struct system_watch *w, struct system_now *out)
{
	size_t told = 0;

	*out = (struct system_now){ 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (!w)
		return;
	out->gpus = (double)w->n_gpus;
	for (size_t i = 0; i < w->n_gpus; i++) {
		const struct watched_gpu *g = &w->gpu[i];
		double utilization = kept(&g->utilization);

		told += isnan(utilization) ? 0 : 1;
		out->gpu_utilization = plus(out->gpu_utilization, utilization);
		out->gpu_memory = plus(out->gpu_memory, kept(&g->memory));
		out->gpu_memory_total = plus(out->gpu_memory_total, g->memory_total);
		out->gpu_power = plus(out->gpu_power, kept(&g->power));
	}
	if (told)
		out->gpu_utilization /= (double)told;
	out->host_cpus_busy = kept(&w->host_pace.per_s);
	out->host_cpus = w->cpus;
	out->host_memory = kept(&w->memory);
	out->host_memory_total = w->memory_limit;
	for (size_t i = 0; i < w->n_trees; i++) {
		out->process_cpus_busy = plus(out->process_cpus_busy,
					      kept(&w->trees[i].pace.per_s));
		out->process_rss = plus(out->process_rss, kept(&w->trees[i].rss));
	}
}

void system_end(struct system_watch *w, struct record *into)
{
	if (!w)
		return;
	if (!beat_stop(&w->beat)) {
		record_note_add(into, clock_real_ns(), NOTE_SYSTEM,
				"a sample did not come to its end: the driver of the GPUs hangs");
		return;
	}
	if (w->beat.cpu_ns)
		w->thread_ns = w->beat.cpu_ns;
	w->find_ns = INT64_MAX;
	sample_all(w);
	sample_self(w);
	series_move(into, &w->own);
	record_release(&w->own);
	gpu_close(w->gpus);
	if (w->has_host)
		host_close(&w->host);
	for (size_t i = 0; i < w->n_trees; i++)
		tree_watch_release(&w->trees[i].tree);
	tree_release(&w->picture);
	free(w->gpu);
	free(w->trees);
	free(w);
}
