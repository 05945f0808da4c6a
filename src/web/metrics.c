/* SPDX-License-Identifier: Apache-2.0 */
/* web/metrics.c - what the server counts of itself, and /metrics in Prometheus' text format. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "web/metrics.h"
#include "web/state.h"

#define STATUSES_MAX 24   /* of one route */

static const double bound_s[] = { 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10 };
#define BOUNDS (sizeof(bound_s) / sizeof(*bound_s))

struct counted {
	struct { unsigned status; uint64_t n; } by[STATUSES_MAX];
	uint64_t within[BOUNDS + 1], n;
	double sum_s;
};

struct web_metrics {
	pthread_mutex_t lock;
	struct counted *row;     /* of each route, and one for what is none */
	size_t n;
};

void metrics_open(struct web *w)
{
	struct web_metrics *m = mem_alloc(sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	m->n = routes_count() + 1;
	m->row = mem_array(m->n, sizeof(*m->row));
	w->metrics = m;
}

void metrics_close(struct web *w)
{
	if (!w->metrics)
		return;
	pthread_mutex_destroy(&w->metrics->lock);
	free(w->metrics->row);
	free(w->metrics);
	w->metrics = NULL;
}

void metrics_count(struct web *w, const struct exchange *x, unsigned status, int64_t took_ns)
{
	struct web_metrics *m = w->metrics;
	struct counted *c = &m->row[x->route_at < m->n - 1 ? x->route_at : m->n - 1];
	double s = (double)took_ns / 1e9;
	size_t at = 0, bound = 0;

	while (bound < BOUNDS && s > bound_s[bound])
		bound++;
	pthread_mutex_lock(&m->lock);
	while (at < STATUSES_MAX - 1 && c->by[at].n && c->by[at].status != status)
		at++;
	c->by[at].status = status;
	c->by[at].n++;
	c->within[bound]++;
	c->n++;
	c->sum_s += s;
	pthread_mutex_unlock(&m->lock);
}

/* ---- the page ---- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct buf *b, const char *name, const char *type, const char *help, double v)
{
	head(b, name, type, help);
	buf_printf(b, "%s %.15g\n", name, v);
}

static void label_of(const struct web_metrics *m, size_t i, char out[static 160])
{
	const struct web_route *r = i < m->n - 1 ? routes_at(i) : NULL;

	snprintf(out, 160, "method=\"%s\",route=\"%s\"", r ? r->method : "GET",
		 r ? r->path : "pages");
}

static void put_requests(struct buf *b, struct web_metrics *m)
{
	char label[160];

	head(b, "profllm_http_requests_total", "counter", "Requests by route and status; status 0 "
	     "broke off.");
	for (size_t i = 0; i < m->n; i++) {
		label_of(m, i, label);
		for (size_t k = 0; k < STATUSES_MAX && m->row[i].by[k].n; k++)
			buf_printf(b, "profllm_http_requests_total{%s,status=\"%u\"} %llu\n", label,
				   m->row[i].by[k].status,
				   (unsigned long long)m->row[i].by[k].n);
	}
	head(b, "profllm_http_request_duration_seconds", "histogram",
	     "From the request's first line to the end of its answer.");
	for (size_t i = 0; i < m->n; i++) {
		const struct counted *c = &m->row[i];
		uint64_t sum = 0;

		if (!c->n)
			continue;
		label_of(m, i, label);
		for (size_t k = 0; k < BOUNDS; k++) {
			sum += c->within[k];
			buf_printf(b, "profllm_http_request_duration_seconds_bucket{%s,le=\"%g\"} "
				   "%llu\n", label, bound_s[k], (unsigned long long)sum);
		}
		buf_printf(b, "profllm_http_request_duration_seconds_bucket{%s,le=\"+Inf\"} %llu\n"
			   "profllm_http_request_duration_seconds_sum{%s} %.9g\n"
			   "profllm_http_request_duration_seconds_count{%s} %llu\n", label,
			   (unsigned long long)c->n, label, c->sum_s, label,
			   (unsigned long long)c->n);
	}
}

static double resident_bytes(void)
{
	struct buf text = { 0 };
	struct str rest;
	uint64_t pages = 0;

	if (file_read("/proc/self/statm", 4096, &text, NULL) == 0) {
		rest = buf_str(&text);
		str_cut(&rest, ' ');
		str_to_u64(str_cut(&rest, ' '), &pages);
	}
	buf_release(&text);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void put_jobs(struct buf *b, const struct pulse *p)
{
	static const char *const states[] = { "waiting", "running", "done", "failed", "cancelled" };

	head(b, "profllm_jobs", "gauge", "Uploads and experiments by state, of the latest 1000.");
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t s = 0; s < sizeof(states) / sizeof(*states); s++) {
			const char *name = kind ? "run" : "upload";
			size_t count = 0;

			for (size_t i = 0; i < p->n_jobs; i++)
				if (strcmp(p->jobs[i].kind, name) == 0 &&
				    strcmp(p->jobs[i].state, states[s]) == 0)
					count = p->jobs[i].n;
			buf_printf(b, "profllm_jobs{kind=\"%s\",state=\"%s\"} %zu\n", name, states[s],
				   count);
		}
}

/* What there is a limit for, and what passed it. */
static void put_costs(struct buf *b, struct web *w)
{
	static const char *const why[] = { [REFUSED_QUEUE] = "queue", [REFUSED_USER] = "user",
					   [REFUSED_BYTES] = "answer_bytes",
					   [REFUSED_STREAMS] = "streams" };
	struct work_figures f = work_figures(w);

	one(b, "profllm_http_requests_waiting", "gauge", "Requests that wait for a worker.",
	    (double)f.waiting);
	one(b, "profllm_http_answer_bytes", "gauge", "Memory of answers that are made or sent.",
	    (double)atomic_load(&w->answers.used));
	one(b, "profllm_http_answer_bytes_max", "gauge", "Their limit.", (double)w->answers.max);
	one(b, "profllm_http_streams", "gauge", "Open event streams and exports.",
	    (double)atomic_load(&w->streams));
	head(b, "profllm_http_refused_total", "counter", "Requests refused for what they would have "
	     "cost, by what there was too much of.");
	for (size_t i = 0; i < REFUSED_REASONS; i++)
		buf_printf(b, "profllm_http_refused_total{reason=\"%s\"} %llu\n", why[i],
			   (unsigned long long)atomic_load(&w->refused[i]));
	head(b, "profllm_http_answers_cut_total", "counter", "Answers broken off: read too slowly, "
	     "or to make room.");
	buf_printf(b, "profllm_http_answers_cut_total{reason=\"slow\"} %llu\n"
		   "profllm_http_answers_cut_total{reason=\"room\"} %llu\n",
		   (unsigned long long)atomic_load(&w->slow),
		   (unsigned long long)atomic_load(&w->dropped));
}

int metrics_page(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct web *w = r->web;
	struct buf *b = &a->body;
	struct store_columns columns;
	struct pulse p;
	size_t runs;

	if (metrics_runs(r, &runs, e) < 0)
		return -1;
	web_bytes(a, "text/plain; version=0.0.4; charset=utf-8");
	one(b, "profllm_runs", "gauge", "Runs in the store, hidden ones too.", (double)runs);
	store_columns(w->store, &columns);
	one(b, "profllm_store_columns", "gauge", "Columns whose names no schema lists.",
	    (double)columns.used);
	one(b, "profllm_store_columns_max", "gauge", "How many of these there may be.",
	    (double)columns.max);
	one(b, "profllm_data_version", "gauge", "Grows with each change of the data.",
	    (double)index_view_version(r->view));
	one(b, "profllm_index_bytes", "gauge", "Memory of the column index.",
	    (double)index_bytes(index_of(r->view)));
	one(b, "process_resident_memory_bytes", "gauge", "Memory of the process.",
	    resident_bytes());
	one(b, "process_start_time_seconds", "gauge", "When it was started.",
	    (double)w->began_ns / 1e9);
	one(b, "profllm_http_connections", "gauge", "Open connections.",
	    (double)atomic_load(&w->open));
	one(b, "profllm_http_connections_closed_total", "counter",
	    "Connections closed for being idle, slow, or in the way.",
	    (double)atomic_load(&w->evicted));
	one(b, "profllm_http_requests_in_flight", "gauge", "Requests under way.",
	    (double)atomic_load(&w->in_flight));
	one(b, "profllm_http_spooled_bytes", "gauge", "Bytes of bodies that are on their way in.",
	    (double)atomic_load(&w->spooled));
	put_costs(b, w);
	pulse_get(w, &p);
	one(b, "profllm_store_up", "gauge", "Whether the store answers.", p.is_there);
	one(b, "profllm_store_silent_seconds", "gauge", "Since the store answered last.", p.silent_s);
	put_jobs(b, &p);
	pthread_mutex_lock(&w->metrics->lock);
	put_requests(b, w->metrics);
	pthread_mutex_unlock(&w->metrics->lock);
	return 0;
}

int metrics_runs(const struct web_request *r, size_t *n, struct err *e)
{
	struct query q = { .shown = INDEX_EXCLUDED | INDEX_ARCHIVED };
	struct answer answer = { 0 };

	if (index_query(r->view, &q, r->arena, &answer, e) < 0)
		return -1;
	*n = answer.total;
	return 0;
}
