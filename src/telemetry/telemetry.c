/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h. */
#include "telemetry/telemetry.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "telemetry/beat.h"

/* Slots of a server's series: one per id, then these, then one per draft position. */
enum { SCRAPE = SERIES_COUNT, SCRAPE_FAILED, READINGS, FIRST_POSITION };
#define SLOTS (FIRST_POSITION + SPEC_POSITIONS_MAX)

struct server {
	struct telemetry_source source;
	struct record_series *series[SLOTS]; /* in t->own; NULL until there is a point */
	size_t readings;
	bool is_silent;                           /* asked once, and never again */
	_Atomic double now[SERIES_COUNT];         /* told last; NAN: not */
};

struct telemetry {
	struct server *server;
	size_t n;
	struct record own;             /* only its series, notes and arena are used */
	struct fetch_pool *pool;
	struct beat beat;              /* its end ends a reading that is under way */
};

/* ---- one reading ---- */

static void add_point(struct telemetry *t, struct server *s, int k, int64_t at_ns, double value)
{
	struct record_series **series = &s->series[k];
	const char *name = k < SERIES_COUNT ? series_name((enum series_id)k)
			   : k == SCRAPE ? SERIES_SCRAPE
			   : k == READINGS ? SERIES_READINGS : SERIES_SCRAPE_FAILED;
	const char *unit = k < SERIES_COUNT ? series_unit((enum series_id)k)
			   : k == SCRAPE ? "s" : "";

	if (!*series)
		*series = record_series_add(&t->own, name, unit, s->source.labels);
	record_series_point(*series, at_ns, value);
}

static void add_position(struct telemetry *t, struct server *s, int position, int64_t at_ns,
			 double value)
{
	struct record_series **series = &s->series[FIRST_POSITION + position];

	if (!*series) {
		struct buf labels = { 0 };

		buf_printf(&labels, "%s%sposition=\"%d\"", s->source.labels,
			   *s->source.labels ? "," : "", position);
		*series = record_series_add(&t->own, SERIES_POSITION, "tokens", labels.data);
		buf_release(&labels);
	}
	record_series_point(*series, at_ns, value);
}

static void add_values(struct telemetry *t, struct server *s, const struct telemetry_values *v,
		       int64_t at_ns)
{
	for (int k = 0; k < SERIES_COUNT; k++)
		if (v->is_told[k])
			add_point(t, s, k, at_ns, v->value[k]);
	for (int k = 0; k < SPEC_POSITIONS_MAX; k++)
		if (v->is_position_told[k])
			add_position(t, s, k, at_ns, v->position[k]);
}

/* 0: values and how long it took; -1: none, why says what was wrong. */
static int ask(struct telemetry *t, const struct server *s, struct telemetry_values *out,
	       int64_t *at_ns, int64_t *took_ns, struct err *why)
{
	struct fetch_opts opts = s->source.opts;
	struct fetch_reply reply = { 0 };
	int64_t from = clock_mono_ns();
	int rc;

	opts.timeout_ms = TELEMETRY_TIMEOUT_MS;
	opts.pool = t->pool;
	opts.cancel = &t->beat.is_over;
	rc = fetch(s->source.url, NULL, &opts, &reply, why);
	*took_ns = clock_mono_ns() - from;
	*at_ns = clock_real_ns() - *took_ns / 2;
	if (rc == 0 && reply.status != 200)
		rc = err_set(why, ERR_NET, "HTTP status %ld", reply.status);
	if (rc == 0) {
		telemetry_read(buf_str(&reply.body), out);
		if (out->n_told == 0)
			rc = err_set(why, ERR_PARSE, "it has no metric that is known here");
	}
	fetch_reply_release(&reply);
	return rc;
}

static void keep_now(struct server *s, const struct telemetry_values *v)
{
	for (int k = 0; k < SERIES_COUNT; k++)
		atomic_store_explicit(&s->now[k], v->is_told[k] ? v->value[k] : NAN,
				      memory_order_relaxed);
}

static void read_server(struct telemetry *t, struct server *s, struct err *why)
{
	struct telemetry_values values;
	int64_t at_ns, took_ns;

	if (ask(t, s, &values, &at_ns, &took_ns, why) == 0) {
		s->readings++;
		add_point(t, s, SCRAPE, at_ns, (double)took_ns / 1e9);
		add_values(t, s, &values, at_ns);
		keep_now(s, &values);
	} else if (!atomic_load(&t->beat.is_over)) {
		add_point(t, s, SCRAPE_FAILED, at_ns, 1);
	}
}

static void read_all(struct telemetry *t)
{
	struct err ignored;

	for (size_t i = 0; i < t->n; i++)
		if (!t->server[i].is_silent)
			read_server(t, &t->server[i], &ignored);
}

/* The reading before the load decides who is asked again. */
static bool read_first(struct telemetry *t)
{
	bool is_any = false;

	for (size_t i = 0; i < t->n; i++) {
		struct server *s = &t->server[i];
		struct err why = { 0 };
		struct buf text = { 0 };

		read_server(t, s, &why);
		s->is_silent = s->series[SCRAPE] == NULL;
		is_any |= !s->is_silent;
		if (!s->is_silent)
			continue;
		buf_printf(&text, "%s: %s", s->source.url, why.text);
		record_note_add(&t->own, clock_real_ns(), NOTE_SERVER_METRICS, text.data);
		buf_release(&text);
	}
	return is_any;
}

/* ---- the thread ---- */

/* Readings that failed are counted one by one: however many there are, they thin out nothing. */
static bool is_thinned(const struct record_series *s)
{
	return strcmp(s->name, SERIES_SCRAPE_FAILED) != 0;
}

static void thin_when_full(struct telemetry *t)
{
	bool is_full = false;

	for (size_t i = 0; i < t->own.n_series; i++)
		is_full |= t->own.series[i]->n >= TELEMETRY_POINTS_MAX &&
			   is_thinned(t->own.series[i]);
	if (!is_full)
		return;
	for (size_t i = 0; i < t->own.n_series; i++)
		if (is_thinned(t->own.series[i]))
			series_thin(t->own.series[i]);
	t->beat.interval_ns *= 2;
}

static void read_again(void *self)
{
	read_all(self);
	thin_when_full(self);
}

/* ---- begin and end ---- */

struct telemetry *telemetry_begin(const struct telemetry_source *source, size_t n,
				  int64_t interval_ns)
{
	struct telemetry *t = mem_alloc(sizeof(*t));

	t->server = mem_array(n, sizeof(*t->server));
	t->n = n;
	t->pool = fetch_pool_new();
	for (size_t i = 0; i < n; i++) {
		t->server[i].source = source[i];
		keep_now(&t->server[i], &(struct telemetry_values){ 0 });
	}
	if (read_first(t) && interval_ns > 0)
		beat_start(&t->beat, interval_ns, read_again, t);
	return t;
}

static double over_servers(const struct telemetry *t, enum series_id id, bool is_mean)
{
	double sum = 0;
	size_t told = 0;

	for (size_t i = 0; i < t->n; i++) {
		double v = atomic_load_explicit(&t->server[i].now[id], memory_order_relaxed);

		if (isnan(v))
			continue;
		sum += v;
		told++;
	}
	if (told == 0)
		return NAN;
	return is_mean ? sum / (double)told : sum;
}

void telemetry_now(const struct telemetry *t, struct telemetry_now *out)
{
	out->running = over_servers(t, SERIES_RUNNING, false);
	out->waiting = over_servers(t, SERIES_WAITING, false);
	out->kv_usage = over_servers(t, SERIES_KV_USAGE, true);
}

void telemetry_end(struct telemetry *t, struct record *into)
{
	if (!t)
		return;
	beat_stop(&t->beat);
	read_all(t);
	for (size_t i = 0; i < t->n; i++) {
		struct server *s = &t->server[i];

		if (s->series[SCRAPE] && s->readings > s->series[SCRAPE]->n)
			add_point(t, s, READINGS, clock_real_ns(), (double)s->readings);
	}
	series_move(into, &t->own);
	record_release(&t->own);
	fetch_pool_free(t->pool);
	free(t->server);
	free(t);
}
