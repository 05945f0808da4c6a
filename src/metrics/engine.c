/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - what the servers said of themselves: speculative decoding, diffusion,
 * queues and caches, from the series that telemetry/ read.
 *
 * A counter counts from the reading before the load to the one after it; it is unavailable
 * when one of the two readings lacks it. The points in between are for gauges: an idle
 * server before and after would only blur them. They also show that a server was
 * restarted or that a load balancer asked several servers in turn: a counter goes back,
 * or the process start time changes. The counts of that server are then unknown, even
 * when the last reading is above the first, and none of its counters is reported.
 */
#include "metrics/parts.h"

#include <math.h>

#include "base/mem.h"
#include "record/series.h"

#define START_SLACK_S 1.5 /* some programs compute it anew each time, from a steered clock */

struct str metrics_label(const struct record_series *s, const char *name)
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

/* Hosts of one run read the same servers: the first one's view is taken. */
static bool is_repeated(const struct record *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(r->series[k]->name, r->series[i]->name) == 0 &&
		    strcmp(r->series[k]->labels, r->series[i]->labels) == 0)
			return true;
	return false;
}

/* The series of that name with the same server; NULL when there is none. */
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

/* Whether the last reading of s's server came after the load, and s was in it. */
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

/* Whether these points are of more than one life of a process. */
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

/* Whether a server of this url, or with "" any, that has the counter lost count of it. */
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
	g->is_told = true;
	g->value += s->point[s->n - 1].value - s->point[0].value;
}

/* Over all servers. */
static struct metrics_growth growth_of(const struct metrics *m, const struct record *r,
				       enum series_id id)
{
	struct metrics_growth g = { 0 };

	if (is_lost(m, r, series_name(id), STR("")))
		return g;
	for (size_t i = 0; i < r->n_series; i++)
		if (strcmp(r->series[i]->name, series_name(id)) == 0 && !is_repeated(r, i))
			add_growth(&g, m, r, r->series[i]);
	return g;
}

/* ---- speculative decoding ---- */

/* A position that the reading before lacks began at 0; one that the last lacks stood still. */
static void spec_positions(struct metrics *m, const struct record *r, double drafts)
{
	double grown[SPEC_POSITIONS_MAX] = { 0 };
	bool is_told[SPEC_POSITIONS_MAX] = { 0 };

	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];
		int64_t k;

		if (strcmp(s->name, SERIES_POSITION) != 0 || s->n == 0 || is_repeated(r, i) ||
		    !str_to_i64(metrics_label(s, "position=\""), &k) || k < 0 ||
		    k >= SPEC_POSITIONS_MAX)
			continue;
		is_told[k] = true;
		if (is_in_last(m, r, s))
			grown[k] += s->point[s->n - 1].value -
				    (is_in_first(r, s) ? s->point[0].value : 0);
	}
	for (size_t k = 0; k < SPEC_POSITIONS_MAX; k++)
		if (is_told[k])
			m->spec.position_rate[m->spec.n_positions++] = grown[k] / drafts;
}

/* Serve spec 4.10. */
static void spec(struct metrics *m, const struct record *r)
{
	double drafts = growth_of(m, r, SERIES_DRAFTS).value;
	double draft_tokens = growth_of(m, r, SERIES_DRAFT_TOKENS).value;
	double accepted = growth_of(m, r, SERIES_ACCEPTED_TOKENS).value;

	if (draft_tokens <= 0)
		return;
	m->spec.is_told = true;
	m->spec.drafts = metrics_whole(drafts);
	m->spec.draft_tokens = metrics_whole(draft_tokens);
	m->spec.accepted_tokens = metrics_whole(accepted);
	m->spec.acceptance_rate = accepted / draft_tokens * 100;
	if (drafts <= 0)
		return;
	m->spec.acceptance_length = 1 + accepted / drafts;
	spec_positions(m, r, drafts);
}

/* Serve spec 4.11; upstream divides by zero where this says nothing. */
static void diffusion(struct metrics *m, const struct record *r)
{
	struct metrics_diffusion *d = &m->diffusion;
	double steps = growth_of(m, r, SERIES_DIFFUSION_STEPS).value;
	double positions = growth_of(m, r, SERIES_DIFFUSION_POSITIONS).value;
	double committed = growth_of(m, r, SERIES_DIFFUSION_COMMITTED).value;
	double canvases;

	if (steps <= 0 || committed <= 0 || positions <= 0)
		return;
	canvases = committed / (positions / steps);
	d->is_told = true;
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
		if (url_of(r->series[i]).n == 0 || is_repeated(r, i))
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
