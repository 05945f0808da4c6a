/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.c - the table of all routes, finding the one for a path, what a request may contain, and
 * the server's own routes: metrics, pages, health.
 */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "web/api.h"
#include "web/web_internal.h"

static const struct web_routes server_routes;

static const struct web_routes *const lists[] = {
	&server_routes, &login_routes, &upload_routes, &job_routes, &live_routes, &filters_routes,
	&data_routes, &series_routes, &export_routes, &analysis_routes, &prices_routes,
	&tags_routes,
};
#define LISTS (sizeof(lists) / sizeof(*lists))

size_t routes_count(void)
{
	size_t n = 0;

	for (size_t i = 0; i < LISTS; i++)
		n += lists[i]->n;
	return n;
}

const struct web_route *routes_at(size_t i)
{
	for (size_t k = 0; k < LISTS; k++) {
		if (i < lists[k]->n)
			return &lists[k]->route[i];
		i -= lists[k]->n;
	}
	return NULL;
}

/* Whether path has this form; id gets the parts in place of {...}, still encoded. */
static bool is_match(const char *form, struct str path, struct str id[2])
{
	struct str f = str_of(form);
	size_t n_ids = 0;

	while (f.n || path.n) {
		bool is_last = !memchr(f.p, '/', f.n);
		struct str want = str_cut(&f, '/'), got;

		if (is_last != !memchr(path.p, '/', path.n))
			return false;
		got = str_cut(&path, '/');
		if (want.n && want.p[0] == '{') {
			if (got.n == 0 || n_ids == 2)
				return false;
			id[n_ids++] = got;
		} else if (!str_eq(want, got)) {
			return false;
		}
		if (is_last)
			return true;
	}
	return true;
}

/* False: not decodable, or a NUL in it. */
static bool decode(struct arena *a, struct str *s)
{
	struct buf out = { 0 };
	bool is_good = url_add_decoded(&out, *s) && !memchr(out.data ? out.data : "", 0, out.len);

	if (is_good)
		*s = arena_str(a, buf_str(&out));
	buf_release(&out);
	return is_good;
}

/* "GET, HEAD, POST": each method once. */
static void allow(char list[static 64], const char *method)
{
	size_t n = strlen(list);

	if (strstr(list, method))
		return;
	snprintf(list + n, 64 - n, "%s%s%s", n ? ", " : "", method,
		 strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

void routes_find(struct str raw_path, const char *method, struct arena *a, struct route_found *out)
{
	size_t n = routes_count();

	*out = (struct route_found){ 0 };
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	for (size_t i = 0; i < n; i++) {
		const struct web_route *r = routes_at(i);
		struct str id[2] = { 0 };

		if (!is_match(r->path, raw_path, id))
			continue;
		if ((id[0].p && !decode(a, &id[0])) || (id[1].p && !decode(a, &id[1])))
			continue;
		allow(out->allow, r->method);
		if (out->route || strcmp(r->method, method) != 0)
			continue;
		out->route = r;
		out->at = i;
		out->id[0] = id[0];
		out->id[1] = id[1];
	}
}

/*
 * What a request may hold, as schema/api.json declares it: the parameters of its address, and the
 * members of its body. Others are refused: a client that sends page=2 or misspells a member must
 * not get the answer to another question.
 *
 * The OpenAPI document is read once, at the start, so that the declaration is what is enforced.
 */

/* Words between blanks; members NULL: the body is of any shape, or there is none. */
struct route_params { const char *query, *members; };

static const struct json_value *operation_of(const struct json_value *paths,
					     const struct web_route *route)
{
	char method[16] = "";

	for (size_t i = 0; route->method[i] && i + 1 < sizeof(method); i++)
		method[i] = (char)(route->method[i] | 0x20);
	return json_get(json_get(paths, route->path), method);
}

static void add_word(struct buf *out, struct str word)
{
	if (out->len)
		buf_add_char(out, ' ');
	buf_add_str(out, word);
}

static const char *words_of(struct arena *a, struct buf *words)
{
	const char *kept = arena_text(a, buf_str(words));

	buf_release(words);
	return kept;
}

static const char *query_of(const struct json_value *operation, struct arena *a)
{
	const struct json_value *list = json_get(operation, "parameters");
	struct buf words = { 0 };

	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "in"), STR("")), "query"))
			add_word(&words, json_text(json_get(&list->item[i], "name"), STR("")));
	return words_of(a, &words);
}

/* The members of a body that is one named object. */
static const char *members_of(const struct json_value *operation, const struct json_value *schemas,
			      struct arena *a)
{
	static const char head[] = "#/components/schemas/";
	const struct json_value *content = json_get(json_get(operation, "requestBody"), "content");
	const struct json_value *ref =
		json_get(json_get(json_get(content, "application/json"), "schema"), "$ref");
	const char *name = json_text(ref, STR("")).p;
	const struct json_value *members;
	struct buf words = { 0 };

	if (strncmp(name, head, strlen(head)) != 0)
		return NULL;
	members = json_get(json_get(schemas, name + strlen(head)), "properties");
	for (size_t i = 0; members && i < members->count; i++)
		add_word(&words, members->key[i]);
	return members ? words_of(a, &words) : NULL;
}

int params_open(struct web *w, struct err *e)
{
	struct arena scratch = { 0 };
	struct json_value *api;
	const struct json_value *paths, *schemas;
	struct route_params *made;
	int rc = json_parse(&scratch, str_of(data_api_text), &api, e);

	if (rc == 0) {
		paths = json_get(api, "paths");
		schemas = json_get(json_get(api, "components"), "schemas");
		made = arena_alloc(&w->arena, routes_count() * sizeof(*made));
		for (size_t i = 0; i < routes_count(); i++) {
			const struct json_value *operation = operation_of(paths, routes_at(i));

			made[i].query = query_of(operation, &w->arena);
			made[i].members = members_of(operation, schemas, &w->arena);
		}
		w->params = made;
	}
	arena_release(&scratch);
	return rc;
}

static bool has_word(const char *list, struct str word)
{
	struct str rest = str_of(list);

	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), word))
			return true;
	return false;
}

int params_check(struct exchange *x, struct err *e)
{
	const struct web_request *r = &x->request;
	const struct route_params *known = &x->web->params[x->route_at];
	struct str rest = r->query, key;

	while (request_key(r, &rest, &key))
		if (!has_word(known->query, key))
			return asked_unknown(&x->answer, e, r->arena, "parameter", key, known->query);
	if (!known->members || !r->body || r->body->kind != JSON_OBJECT)
		return 0;
	for (size_t i = 0; i < r->body->count; i++)
		if (!has_word(known->members, r->body->key[i]))
			return asked_unknown(&x->answer, e, r->arena, "member", r->body->key[i],
					     known->members);
	return 0;
}

const char data_api_text[] =
#include "web/api_text.h"
;

int data_api(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)r;
	(void)e;
	web_bytes(a, "application/json");
	buf_add_text(&a->body, data_api_text);
	return 0;
}

/* ---- what the server counts of itself, and /metrics in Prometheus' text format ---- */

#define STATUSES_MAX 24   /* of one route */

static const double bound_s[] = { 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10 };
#define BOUNDS (sizeof(bound_s) / sizeof(*bound_s))

struct route_counts {
	struct { unsigned status; uint64_t n; } by[STATUSES_MAX];
	uint64_t within[BOUNDS + 1], n;
	double sum_s;
};

struct web_metrics {
	pthread_mutex_t lock;
	struct route_counts *row;     /* of each route, and one for unknown paths */
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
	struct route_counts *c = &m->row[x->route_at < m->n - 1 ? x->route_at : m->n - 1];
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

	head(b, "profllm_http_requests_total", "counter", "Requests by route and status; status 0: "
	     "the answer was cut off.");
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
		const struct route_counts *c = &m->row[i];
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

static double open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	double n = -3; /* ".", ".." and the folder itself */

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
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

/* Appends limited resources: current use, limits, and requests refused for them. */
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
	one(b, "profllm_http_answer_bytes_max", "gauge", "Limit of the memory of "
							 "answers.", (double)w->answers.max);
	one(b, "profllm_http_streams", "gauge", "Open event streams and exports.",
	    (double)atomic_load(&w->streams));
	head(b, "profllm_http_refused_total", "counter", "Requests refused because of their cost, "
	     "by the limit that they exceed.");
	for (size_t i = 0; i < REFUSED_REASONS; i++)
		buf_printf(b, "profllm_http_refused_total{reason=\"%s\"} %llu\n", why[i],
			   (unsigned long long)atomic_load(&w->refused[i]));
	head(b, "profllm_http_answers_cut_total", "counter", "Answers cut off: read too slowly, or "
	     "to free memory.");
	buf_printf(b, "profllm_http_answers_cut_total{reason=\"slow\"} %llu\n"
		   "profllm_http_answers_cut_total{reason=\"room\"} %llu\n",
		   (unsigned long long)atomic_load(&w->slow),
		   (unsigned long long)atomic_load(&w->dropped));
}

static int metrics_runs(const struct web_request *r, size_t *n, struct err *e)
{
	struct query q = { .shown = INDEX_EXCLUDED | INDEX_ARCHIVED };
	struct answer answer = { 0 };

	if (index_query(r->view, &q, r->arena, &answer, e) < 0)
		return -1;
	*n = answer.total;
	return 0;
}

/* Runs that this process stored, and its errors. */
static void put_events(struct buf *b, struct web *w)
{
	uint64_t n[PUT_OUTCOMES];

	store_put_counts(w->store, n);
	head(b, "profllm_runs_received_total", "counter", "Runs of uploads and experiments that this "
	     "process has handed to the store, by outcome.");
	for (size_t i = 0; i < PUT_OUTCOMES; i++)
		buf_printf(b, "profllm_runs_received_total{outcome=\"%s\"} %llu\n",
			   put_outcome_name((enum put_outcome)i), (unsigned long long)n[i]);
	one(b, "profllm_errors_total", "counter", "Lines of the log that are errors.",
	    (double)atomic_load(&w->errors));
	one(b, "profllm_last_error_timestamp_seconds", "gauge", "When the last of them was written; "
	    "0: none.", (double)atomic_load(&w->error_ns) / 1e9);
}

/* The process metrics of Prometheus' client libraries, under their names. */
static void put_process(struct buf *b, struct web *w)
{
	struct rlimit files = { 0 };
	struct timespec cpu = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	getrlimit(RLIMIT_NOFILE, &files);
	one(b, "process_resident_memory_bytes", "gauge", "Memory of the process.", resident_bytes());
	one(b, "process_start_time_seconds", "gauge", "Start time of the process.",
	    (double)w->began_ns / 1e9);
	one(b, "process_cpu_seconds_total", "counter", "Processor time that it has used.",
	    (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
	one(b, "process_open_fds", "gauge", "Open files and connections.", open_files());
	one(b, "process_max_fds", "gauge", "Maximum number of open files.",
	    (double)files.rlim_cur);
	head(b, "profllm_build_info", "gauge", "1, with the version.");
	buf_printf(b, "profllm_build_info{version=\"%s\"} 1\n", w->o.version);
}

static int metrics_page(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct web *w = r->web;
	struct buf *b = &a->body;
	struct store_columns columns;
	struct pulse p;
	size_t runs;

	if (metrics_runs(r, &runs, e) < 0)
		return -1;
	web_bytes(a, "text/plain; version=0.0.4; charset=utf-8");
	one(b, "profllm_runs", "gauge", "Runs in the store, including hidden ones.", (double)runs);
	store_columns(w->store, &columns);
	one(b, "profllm_store_columns", "gauge", "Columns whose names no schema lists.",
	    (double)columns.used);
	one(b, "profllm_store_columns_max", "gauge", "Maximum number of such columns.",
	    (double)columns.max);
	one(b, "profllm_data_version", "gauge", "Grows with each change of the data.",
	    (double)index_view_version(r->view));
	one(b, "profllm_index_bytes", "gauge", "Memory of the column index.",
	    (double)index_bytes(index_of(r->view)));
	put_process(b, w);
	put_events(b, w);
	one(b, "profllm_http_connections", "gauge", "Open connections.",
	    (double)atomic_load(&w->open));
	one(b, "profllm_http_connections_closed_total", "counter",
	    "Connections closed for being idle, slow, or in the way.",
	    (double)atomic_load(&w->evicted));
	one(b, "profllm_http_requests_in_flight", "gauge", "Requests under way.",
	    (double)atomic_load(&w->in_flight));
	one(b, "profllm_http_spooled_bytes", "gauge", "Bytes of request bodies that are being "
						      "received.",
	    (double)atomic_load(&w->spooled));
	put_costs(b, w);
	pulse_get(w, &p);
	one(b, "profllm_store_up", "gauge", "Whether the store answers.", p.is_there);
	one(b, "profllm_store_silent_seconds", "gauge", "Time since the store last "
							"answered.", p.silent_s);
	if (!isnan(p.store_bytes))
		one(b, "profllm_store_bytes", "gauge", "Bytes of the database on disk.",
		    p.store_bytes);
	if (!isnan(p.free_bytes))
		one(b, "profllm_disk_free_bytes", "gauge", "Bytes free on the disk of the SQLite file; "
		    "with PostgreSQL, of --jobs-dir.", p.free_bytes);
	put_jobs(b, &p);
	pthread_mutex_lock(&w->metrics->lock);
	put_requests(b, w->metrics);
	pthread_mutex_unlock(&w->metrics->lock);
	return 0;
}

/*
 * The front end: files that are part of the program, compressed.
 *
 * Files below assets/ have a hash of their content in their name and are cached forever; index.html
 * is requested again each time. A path without a dot is a view of the page, which reads the path
 * itself.
 */

#define TAG_DIGITS 16
#define NO_PAGES \
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ProfLLM</title>" \
	"<h1>ProfLLM</h1><p>This build has no pages: it was made with <code>make WEB=0</code>. " \
	"<code>make</code> builds with them; it needs node and npm. " \
	"The API is there: <a href=\"/api/health\">/api/health</a>, " \
	"<a href=\"/api/openapi.json\">/api/openapi.json</a>.</p></html>\n"

const char *static_type(struct str name)
{
	static const struct { const char *end, *type; } types[] = {
		{ ".html", "text/html; charset=utf-8" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },
		{ ".json", "application/json" }, { ".svg", "image/svg+xml" },
		{ ".png", "image/png" }, { ".ico", "image/x-icon" },
		{ ".woff2", "font/woff2" }, { ".txt", "text/plain; charset=utf-8" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (str_ends(name, str_of(types[i].end)))
			return types[i].type;
	return "application/octet-stream";
}

static const struct web_asset *find(struct str name)
{
	for (const struct web_asset *a = web_assets; a->name; a++)
		if (str_is(name, a->name))
			return a;
	return NULL;
}

/* Sent compressed if the client accepts that, else unpacked here. */
static void put(struct exchange *x, const struct web_asset *a)
{
	struct web_answer *out = &x->answer;
	char hex[DIGEST_HEX];
	size_t got = 0;

	digest_hex(DIGEST_SHA256, (struct str){ a->packed, a->packed_bytes }, hex);
	snprintf(x->etag, sizeof(x->etag), "W/\"%.*s\"", TAG_DIGITS, hex);
	exchange_add_header(x, "Vary", "Accept-Encoding");
	exchange_add_header(x, "Cache-Control",
			    str_starts(str_of(a->name), STR("assets/")) ?
			    "public, max-age=31536000, immutable" : "no-cache");
	web_bytes(out, static_type(str_of(a->name)));
	if (exchange_has_tag(x, x->etag)) {
		out->status = 304;
	} else if (exchange_takes_gzip(x)) {
		buf_add(&out->body, a->packed, a->packed_bytes);
		x->is_gzip = true;
	} else if (buf_reserve(&out->body, a->bytes) == 0 &&
		   zip_unpack((struct str){ a->packed, a->packed_bytes }, out->body.data, a->bytes,
			      &got) == ZIP_DONE) {
		out->body.len = got;
	}
}

void static_answer(struct exchange *x)
{
	struct str path = { x->raw_path.p + 1, x->raw_path.n - 1 };
	const struct web_asset *a = find(path.n ? path : STR("index.html"));
	bool is_view = !memchr(path.p, '.', path.n);

	x->is_answered = true;
	if (!a && is_view)
		a = find(STR("index.html"));
	if (a) {
		put(x, a);
	} else if (is_view) {
		web_bytes(&x->answer, static_type(STR(".html")));
		buf_add_str(&x->answer.body, STR(NO_PAGES));
		exchange_add_header(x, "Cache-Control", "no-cache");
	} else {
		exchange_refuse(x, 404, "there is nothing at this address");
	}
}
/* ---- health and metrics ---- */

/*
 * Answered by the thread that reads the request, even while every worker and the store are stuck.
 */
static int health(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct web_opts *o = &r->web->o;
	struct pulse p;
	size_t runs;

	if (metrics_runs(r, &runs, e) < 0)
		return -1;
	pulse_get(r->web, &p);
	json_member_text(&a->json, "status", p.is_there ? "ok" : p.is_replaced ?
			 "store was replaced" : "store does not answer");
	json_member_f64(&a->json, "store_silent_s", p.silent_s);
	json_member_text(&a->json, "version", o->version);
	json_member_text(&a->json, "store", store_kind(r->store));
	json_member_int(&a->json, "runs", (int64_t)runs);
	json_member_bool(&a->json, "is_read_only", o->is_read_only);
	json_member_bool(&a->json, "needs_token", atomic_load(&r->web->auth)->n > 0);
	json_member_bool(&a->json, "can_launch", o->launches > 0 && !o->is_read_only && r->role >= AUTH_LAUNCH);
	json_member_bool(&a->json, "can_change", !o->is_read_only && r->role >= AUTH_UPLOAD);
	json_member_text(&a->json, "role", auth_role_name(r->role));
	return 0;
}

/* The same, but 503 when requests that need the store would fail. */
static int ready(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct pulse p;

	pulse_get(r->web, &p);
	if (p.is_there)
		return health(r, a, e);
	a->status = 503;
	if (p.is_replaced)
		return err_set(e, ERR_USAGE, "the store was replaced or removed: restart this dashboard");
	web_set_header(r, a, "Retry-After", "5");
	return err_set(e, ERR_USAGE, "the store has not answered for %.0f s", p.silent_s);
}

static const struct web_route routes[] = {
	{ "GET", "/api/health", ROUTE_OPEN | ROUTE_QUICK, health },
	{ "GET", "/api/health/ready", ROUTE_OPEN | ROUTE_QUICK, ready },
	{ "GET", "/metrics", ROUTE_QUICK, metrics_page },
};
static const struct web_routes server_routes = { routes, sizeof(routes) / sizeof(*routes) };
