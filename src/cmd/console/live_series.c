/* SPDX-License-Identifier: Apache-2.0 */
/* live_series.c - see live_series.h. */
#include "cmd/console/live_series.h"

#include <math.h>

#define GB 1e9
#define HEAD_COLUMNS 36 /* before the sparkline */

void live_ring_add(struct live_ring *r, double v)
{
	r->v[r->n++ % LIVE_SECONDS] = v;
}

double live_ring_draw(const struct live_ring *r, size_t room, double full, bool is_utf8,
		      struct buf *out)
{
	static const char *const blocks[] = { " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
					      "\u2586", "\u2587", "\u2588" };
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
	size_t n = r->n < LIVE_SECONDS ? r->n : LIVE_SECONDS;

	if (n > room)
		n = room;
	if (full == 0)
		for (size_t i = r->n - n; i < r->n; i++) /* one that is NAN is passed over */
			full = fmax(full, r->v[i % LIVE_SECONDS]);
	for (size_t i = r->n - n; i < r->n; i++) {
		double v = r->v[i % LIVE_SECONDS], part = full > 0 ? ceil(v / full * 8) : 0;
		size_t level = !(part > 0) ? 0 : part > 8 ? 8 : (size_t)part;

		buf_add_text(out, is_utf8 ? blocks[level] : ascii[level]);
	}
	return full;
}

void live_series_take(struct live_series *s, const struct run_sample *now)
{
	const struct system_now *m = &now->system;

	s->now[LIVE_WAITING] = now->server.waiting;
	s->now[LIVE_KV] = 100 * now->server.kv_usage;
	s->now[LIVE_GPU] = m->gpu_utilization;
	s->now[LIVE_GPU_MEMORY] = m->gpu_memory / GB;
	s->now[LIVE_GPU_POWER] = m->gpu_power;
	s->now[LIVE_HOST_CPU] = m->host_cpus_busy;
	s->now[LIVE_HOST_MEMORY] = m->host_memory / GB;
	s->now[LIVE_SERVER_CPU] = m->process_cpus_busy;
	s->now[LIVE_SERVER_RSS] = m->process_rss / GB;
	s->full[LIVE_KV] = s->full[LIVE_GPU] = 100;
	s->full[LIVE_GPU_MEMORY] = m->gpu_memory_total > 0 ? m->gpu_memory_total / GB : 0;
	s->full[LIVE_HOST_CPU] = m->host_cpus > 0 ? m->host_cpus : 0;
	s->full[LIVE_HOST_MEMORY] = m->host_memory_total > 0 ? m->host_memory_total / GB : 0;
}

void live_series_second(struct live_series *s)
{
	for (int i = 0; i < LIVE_SERIES_COUNT; i++)
		live_ring_add(&s->ring[i], s->now[i]);
}

static bool is_ever_told(const struct live_series *s, enum live_series_id id)
{
	const struct live_ring *r = &s->ring[id];

	for (size_t i = 0; i < r->n && i < LIVE_SECONDS; i++)
		if (!isnan(r->v[i]))
			return true;
	return !isnan(s->now[id]);
}

bool live_series_line(const struct live_series *s, enum live_series_id id, unsigned columns,
		      bool is_utf8, struct buf *out)
{
#define X(id, name, unit) { name, unit },
	static const struct { const char *name, *unit; } row[] = { LIVE_SERIES(X) };
#undef X
	char value[40] = "-", of[40] = "";

	if (!is_ever_told(s, id))
		return false;
	if (!isnan(s->now[id]))
		snprintf(value, sizeof(value), "%.1f", s->now[id]);
	if (s->full[id] > 0 && strcmp(row[id].unit, "%") != 0)
		snprintf(of, sizeof(of), "of %.4g ", s->full[id]);
	buf_printf(out, "%-12s %8s %s%-*s", row[id].name, value, of, 13 - (int)strlen(of),
		   row[id].unit);
	live_ring_draw(&s->ring[id], columns > HEAD_COLUMNS + 8 ? columns - HEAD_COLUMNS : 8,
		       s->full[id], is_utf8, out);
	return true;
}
