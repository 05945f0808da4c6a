/* SPDX-License-Identifier: Apache-2.0 */
/* system.c - see system.h. */
#include "out/report/report_internal.h"
#include "out/report/system.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "core/json/write.h"

#define GB 1e9
#define MB 1e6

/* ---- JSON ---- */

/* unit: what its numbers are divided by. */
static void put_level(struct json_writer *w, const char *key, const struct metrics_level *l,
		      double unit)
{
	json_key(w, key);
	if (l->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_f64(w, "min", l->min / unit);
	json_member_f64(w, "mean", l->mean / unit);
	json_member_f64(w, "max", l->max / unit);
	json_end_object(w);
}

/* From DCGM: left out if it was not read or does not know the value. */
static const struct { const char *key, *label; size_t offset; double unit; } dcgm_levels[] = {
	{ "sm_active", "GPU SMs active mean/max (%):", offsetof(struct metrics_gpu, sm_active), 1 },
	{ "tensor_active", "GPU tensor cores active (%):",
	  offsetof(struct metrics_gpu, tensor_active), 1 },
	{ "dram_active", "GPU memory active mean/max (%):", offsetof(struct metrics_gpu, dram_active),
	  1 },
	{ "nvlink_sent_mb_per_s", "GPU NVLink sent (MB/s):",
	  offsetof(struct metrics_gpu, nvlink_sent), MB },
	{ "nvlink_received_mb_per_s", "GPU NVLink received (MB/s):",
	  offsetof(struct metrics_gpu, nvlink_received), MB },
	{ "pcie_sent_mb_per_s", "GPU PCIe sent (MB/s):", offsetof(struct metrics_gpu, pcie_sent), MB },
	{ "pcie_received_mb_per_s", "GPU PCIe received (MB/s):",
	  offsetof(struct metrics_gpu, pcie_received), MB },
};
#define DCGM_LEVELS (sizeof(dcgm_levels) / sizeof(*dcgm_levels))

static const struct metrics_level *dcgm_level(const struct metrics_gpu *g, size_t k)
{
	return (const void *)((const char *)g + dcgm_levels[k].offset);
}

static void put_gpu(struct json_writer *w, const struct metrics_gpu *g)
{
	json_begin_object(w);
	json_member_int(w, "index", g->index);
	json_member_text(w, "uuid", g->uuid);
	json_member_text(w, "name", g->name);
	json_member_f64(w, "memory_total_gb", g->memory_total / GB);
	put_level(w, "memory_gb", &g->memory, GB);
	put_level(w, "utilization", &g->utilization, 1);
	put_level(w, "memory_busy", &g->memory_busy, 1);
	put_level(w, "sm_clock_mhz", &g->sm_clock, 1);
	put_level(w, "memory_clock_mhz", &g->memory_clock, 1);
	put_level(w, "power_w", &g->power, 1);
	put_level(w, "temperature_c", &g->temperature, 1);
	for (size_t k = 0; k < DCGM_LEVELS; k++)
		if (dcgm_level(g, k)->n)
			put_level(w, dcgm_levels[k].key, dcgm_level(g, k), dcgm_levels[k].unit);
	json_member_f64(w, "energy_j", g->energy_j);
	json_member_bool(w, "is_energy_counted", g->is_energy_counted);
	json_member_f64(w, "power_before_w", g->power_before_w);
	json_end_object(w);
}

static void put_host(struct json_writer *w, const struct metrics_host *h)
{
	json_member_object(w, "host");
	json_member_f64(w, "cpus", h->cpus);
	json_member_f64(w, "memory_total_gb", h->memory_total / GB);
	put_level(w, "cpus_busy", &h->cpus_busy, 1);
	put_level(w, "memory_gb", &h->memory, GB);
	put_level(w, "received_mb_per_s", &h->received, MB);
	put_level(w, "sent_mb_per_s", &h->sent, MB);
	json_end_object(w);
}

static void put_process(struct json_writer *w, const struct metrics_process *p)
{
	json_begin_object(w);
	json_member_text(w, "name", p->name);
	json_member_int(w, "pid", p->pid);
	json_member_f64(w, "cpu_s", p->cpu_s);
	put_level(w, "cpus_busy", &p->cpus, 1);
	put_level(w, "rss_gb", &p->rss, GB);
	put_level(w, "threads", &p->threads, 1);
	put_level(w, "processes", &p->count, 1);
	json_end_object(w);
}

static void put_telemetry(struct json_writer *w, const struct metrics_system *s)
{
	json_member_object(w, "telemetry");
	json_member_int(w, "samples", (int64_t)s->samples);
	json_key(w, "missed");
	if (isnan(s->missed))
		json_put_null(w);
	else
		json_put_int(w, (int64_t)s->missed);
	json_member_f64(w, "interval_s", s->interval_s);
	json_member_f64(w, "cpu_s", s->sampler_cpu_s);
	json_member_f64(w, "share_of_a_core", s->sampler_share);
	json_end_object(w);
}

void report_system_json(const struct metrics_system *s, struct json_writer *w)
{
	if (!s->is_reported) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_f64(w, "peak_gpu_memory_gb", s->peak_gpu_memory_gb);
	json_member_f64(w, "avg_gpu_utilization", s->avg_gpu_utilization);
	json_member_f64(w, "energy_j", s->energy_j);
	json_member_f64(w, "power_mean_w", s->power_mean_w);
	json_member_f64(w, "power_before_w", s->power_before_w);
	json_member_f64(w, "j_per_token", s->j_per_token);
	json_member_f64(w, "j_per_token_total", s->j_per_token_total);
	json_member_f64(w, "tokens_per_s_per_w", s->tokens_per_s_per_w);
	json_member_array(w, "gpus");
	for (size_t i = 0; i < s->n_gpus; i++)
		put_gpu(w, &s->gpu[i]);
	json_end_array(w);
	put_host(w, &s->host);
	json_member_array(w, "processes");
	for (size_t i = 0; i < s->n_processes; i++)
		put_process(w, &s->process[i]);
	json_end_array(w);
	put_telemetry(w, s);
	json_member_text(w, "not_watched", s->note);
	json_end_object(w);
}

/* ---- terminal: a mean, a stroke and the largest value ---- */

static void known_row(struct buf *out, const char *label, double v, int places)
{
	char text[400]; /* the longest double has 309 digits before the point */

	if (isnan(v))
		return;
	snprintf(text, sizeof(text), "%.*f", places, v);
	line_text(out, label, text);
}

static void level_row(struct buf *out, const char *label, const struct metrics_level *l,
		      double unit)
{
	char text[80];

	if (l->n == 0)
		return;
	snprintf(text, sizeof(text), "%.2f / %.2f", l->mean / unit, l->max / unit);
	line_text(out, label, text);
}

/* A cell of the table of GPUs. */
static void add_cell(struct buf *out, int width, const struct metrics_level *l, double unit,
		     int places)
{
	char text[80] = "-";

	if (l->n)
		snprintf(text, sizeof(text), "%.*f/%.*f", places, l->mean / unit, places,
			 l->max / unit);
	buf_printf(out, "%*s", width, text);
}

static void gpu_rows(const struct metrics_system *s, struct buf *out)
{
	if (s->n_gpus == 0)
		return;
	buf_printf(out, "%-6s%14s%14s%14s%14s%12s\n", "GPU", "memory (GB)", "used (%)", "power (W)",
		   "SM (MHz)", "temp (C)");
	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct metrics_gpu *g = &s->gpu[i];

		buf_printf(out, "%-6lld", (long long)g->index);
		add_cell(out, 14, &g->memory, GB, 1);
		add_cell(out, 14, &g->utilization, 1, 1);
		add_cell(out, 14, &g->power, 1, 1);
		add_cell(out, 14, &g->sm_clock, 1, 0);
		add_cell(out, 12, &g->temperature, 1, 0);
		buf_add_char(out, '\n');
	}
}

/* Means of the GPUs, and the largest value of any of them. */
static void dcgm_rows(const struct metrics_system *s, struct buf *out)
{
	for (size_t k = 0; k < DCGM_LEVELS; k++) {
		struct metrics_level all = { 0 };

		for (size_t i = 0; i < s->n_gpus; i++) {
			const struct metrics_level *l = dcgm_level(&s->gpu[i], k);

			if (!l->n)
				continue;
			all.mean += l->mean;
			all.max = l->max > all.max ? l->max : all.max;
			all.n++;
		}
		if (all.n)
			all.mean /= (double)all.n;
		level_row(out, dcgm_levels[k].label, &all, dcgm_levels[k].unit);
	}
}

static void energy_rows(const struct metrics_system *s, struct buf *out)
{
	known_row(out, "Peak GPU memory (GB):", s->peak_gpu_memory_gb, 2);
	known_row(out, "Mean GPU utilization (%):", s->avg_gpu_utilization, 2);
	known_row(out, "GPU energy (J):", s->energy_j, 2);
	known_row(out, "GPU power mean (W):", s->power_mean_w, 2);
	known_row(out, "GPU power before the load (W):", s->power_before_w, 2);
	known_row(out, "GPU energy per output token (J):", s->j_per_token, 4);
	known_row(out, "GPU energy per token, prompts too (J):", s->j_per_token_total, 4);
	known_row(out, "GPU output tokens/s per W:", s->tokens_per_s_per_w, 4);
}

static void process_rows(const struct metrics_process *p, struct buf *out)
{
	buf_printf(out, "Processes of %.40s:\n", p->name);
	level_row(out, "  CPUs busy mean/max:", &p->cpus, 1);
	level_row(out, "  Resident memory mean/max (GB):", &p->rss, GB);
}

void report_system_rows(const struct metrics_system *s, struct buf *out)
{
	char text[80];

	if (!s->is_reported)
		return;
	line_heading(out, '-', "System");
	energy_rows(s, out);
	gpu_rows(s, out);
	dcgm_rows(s, out);
	level_row(out, "Host CPUs busy mean/max:", &s->host.cpus_busy, 1);
	level_row(out, "Host memory used mean/max (GB):", &s->host.memory, GB);
	level_row(out, "Host received mean/max (MB/s):", &s->host.received, MB);
	level_row(out, "Host sent mean/max (MB/s):", &s->host.sent, MB);
	for (size_t i = 0; i < s->n_processes; i++)
		process_rows(&s->process[i], out);
	snprintf(text, sizeof(text), "%zu / %.0f", s->samples, s->missed);
	line_text(out, "Samples taken/left out:", text);
	known_row(out, "Sampling (% of a core):", 100 * s->sampler_share, 2);
	if (s->note) {
		buf_add_text(out, "Not watched: ");
		line_add_safe(out, str_of(s->note));
		buf_add_char(out, '\n');
	}
}
