/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see budget.h. */
#include "client/metrics/budget.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/metrics/metrics_internal.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"

const char *budget_stamps_name(uint32_t stamps)
{
#define X(name, text) [BUDGET_##name] = (text),
	static const char *const names[] = { BUDGET_STAMPS(X) };
#undef X

	return stamps < BUDGET_STAMPS_COUNT ? names[stamps] : NULL;
}

/* ---- the level of a run, and its rounds ---- */

/* Most requests at once: starts and ends in order of time, an end before a start of its instant. */
static uint32_t peak_of(int64_t *start, int64_t *end, size_t n)
{
	size_t ended = 0, peak = 0;

	metrics_sort_ints(start, n);
	metrics_sort_ints(end, n);
	for (size_t started = 0; started < n; started++) {
		while (ended < started && end[ended] <= start[started])
			ended++;
		if (started + 1 - ended > peak)
			peak = started + 1 - ended;
	}
	return (uint32_t)peak;
}

int budget_level_of(const struct record *r, struct budget_level *out, struct err *e)
{
	int64_t *start = mem_array(r->n_rows, sizeof(*start));
	int64_t *end = mem_array(r->n_rows, sizeof(*end));
	double events = 0, streamed_s = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];

		if (row->phase != PHASE_MAIN || !metrics_is_success(row) || !row->n_events)
			continue;
		start[n] = row->sent_ns;
		end[n++] = row->end_ns > row->last_event_ns ? row->end_ns : row->last_event_ns;
		events += row->n_events;
		streamed_s += metrics_seconds(row->last_event_ns - row->first_event_ns);
	}
	out->streams = peak_of(start, end, n);
	out->requests = (uint32_t)n;
	free(start);
	free(end);
	if (n == 0)
		return err_set(e, ERR_RUN, "no request succeeded");
	if (events - (double)n < (double)n || streamed_s <= 0)
		return err_set(e, ERR_RUN, "the answers have no gaps between tokens");
	out->events = (uint32_t)lround(events / (double)n);
	out->events_per_s = (events - (double)n) / streamed_s;
	return 0;
}

static double at_least(double v, double least)
{
	return v > least ? v : least;
}

struct budget_shape budget_shape(const struct budget_level *level)
{
	const double streams = level->streams;
	struct budget_shape s = { .itl_ms = 1000 / level->events_per_s, .rate = INFINITY };
	double waves = streams < BUDGET_ROUND_REQUESTS ? ceil(BUDGET_ROUND_REQUESTS / streams) : 1;
	double requests, events, most, answer_s;

	assert(level->streams && level->requests && level->events >= 2 && level->events_per_s > 0);
	/* The first requests only fill the streams; see struct budget_round. */
	if (waves < 2 && (!level->is_burst || level->requests > level->streams))
		waves = 2;
	requests = fmin(waves * streams, level->requests);
	most = floor(BUDGET_ROUND_EVENTS / requests);
	events = floor(1000 * BUDGET_ROUND_S / (waves * s.itl_ms));
	events = at_least(fmin(fmin(events, most), level->events), fmin(4, level->events));
	answer_s = (BUDGET_TTFT_MS + (events - 1) * s.itl_ms) / 1000;
	s.requests = (uint32_t)requests;
	s.events = (uint32_t)events;
	if (level->is_burst)
		s.cap = level->streams;
	else
		s.rate = streams / answer_s;
	/* The rest: connecting, and the simulator's work where it cannot keep up. */
	s.seconds = (BUDGET_ROUNDS + 1) * (ceil(requests / streams) * answer_s +
					   requests * 60e-6 + requests * events * 10e-6);
	return s;
}

/* ---- the signs of disturbances ---- */

struct signs {
	const struct record *r;
	double *bound;          /* of each gap so far, ms */
	size_t n_gaps;
	double median;          /* gap, ms */
	double first_events;    /* that came in the first event's late read */
	int64_t late_ns;
};

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

static bool is_counted(const struct request_row *row)
{
	return row->phase == PHASE_MAIN && metrics_is_success(row) && row->n_events > 0;
}

/* gap, skew: of the row's events, n_events each. A mark at event k: it shares k - 1's read. */
static void look_at_row(struct signs *s, const struct request_row *row, const int64_t *gap,
			const int64_t *skew)
{
	const struct record_mark *mark = NULL;
	double *bound = s->bound + s->n_gaps; /* of the gap before event k: bound[k - 1] */
	uint32_t last = 0; /* event of the read that the first event came in */

	while ((mark = record_marks(s->r, row, mark))) {
		uint32_t k = mark->event;

		if (mark->kind != MARK_SHARED || k == 0 || k >= row->n_events ||
		    (skew[k] >= 0 && skew[k] <= s->late_ns))
			continue;
		bound[k - 1] = fabs(ms(gap[k]) - s->median);
		if (k >= 2)
			bound[k - 2] = fmax(bound[k - 2], fabs(ms(gap[k - 1]) - s->median));
		if (k == last + 1) {
			s->first_events++;
			last = k;
		}
	}
	s->n_gaps += row->n_events - 1;
}

static double excess_of(double *v, size_t n)
{
	double median, sum = 0;

	stats_sort(v, n);
	median = stats_median(v, n);
	for (size_t i = 0; i < n; i++)
		sum += fmax(0, v[i] - median);
	return sum / (double)n;
}

struct budget_signs budget_signs(const struct record *r, uint32_t first, uint32_t n)
{
	struct budget_signs out = { 0 };
	struct signs s = { .r = r };
	double *write = mem_array(n, sizeof(*write)), *sorted;
	int64_t *gap, *skew;
	size_t gaps = 0, rows = 0;
	uint32_t most = 0;

	assert(first + n <= r->n_rows);
	for (uint32_t i = first; i < first + n; i++) {
		const struct request_row *row = &r->row[i];

		if (!is_counted(row))
			continue;
		write[rows++] = row->sent_all_ns > row->sent_ns
			      ? ms(row->sent_all_ns - row->sent_ns) : 0;
		gaps += row->n_events - 1;
		most = row->n_events > most ? row->n_events : most;
	}
	if (rows)
		out.ttft = out.e2el = excess_of(write, rows);
	free(write);
	if (!gaps)
		return out;
	gap = mem_array(most, sizeof(*gap));
	skew = mem_array(most, sizeof(*skew));
	s.bound = mem_array(gaps, sizeof(*s.bound));
	for (uint32_t i = first; i < first + n; i++)
		if (is_counted(&r->row[i])) {
			record_gaps(r, &r->row[i], gap);
			for (uint32_t k = 1; k < r->row[i].n_events; k++)
				s.bound[s.n_gaps++] = ms(gap[k]);
		}
	sorted = stats_sorted(s.bound, gaps);
	s.median = stats_median(sorted, gaps);
	free(sorted);
	s.late_ns = (int64_t)(1e6 * fmax(METRICS_LATE_FLOOR_MS, METRICS_LATE_SHARE * s.median));
	memset(s.bound, 0, gaps * sizeof(*s.bound));
	s.n_gaps = 0;
	for (uint32_t i = first; i < first + n; i++)
		if (is_counted(&r->row[i])) {
			record_gaps(r, &r->row[i], gap);
			record_skews(r, &r->row[i], skew);
			look_at_row(&s, &r->row[i], gap, skew);
		}
	out.ttft += s.first_events * s.median / (double)rows;
	stats_sort(s.bound, gaps);
	out.itl = stats_percentile(s.bound, gaps, 99);
	free(s.bound);
	free(skew);
	free(gap);
	return out;
}

void budget_add_signs(struct budget *b, const struct budget_signs *s)
{
	assert(b->rounds && b->signs.ttft == 0 && b->signs.itl == 0);
	b->signs = *s;
	b->ttft.high += s->ttft;
	b->e2el.high += s->e2el;
	b->itl.high += s->itl;
}

/* ---- rounds ---- */

static double median_of(double *v, size_t n)
{
	stats_sort(v, n);
	return stats_median(v, n);
}

static double p99_of_sizes(const double *v, size_t n)
{
	double *size = mem_array(n, sizeof(*size)), p99;

	for (size_t i = 0; i < n; i++)
		size[i] = fabs(v[i]);
	stats_sort(size, n);
	p99 = stats_percentile(size, n, 99);
	free(size);
	return p99;
}

/* Of the values from i up to, not including, n. */
static struct budget_part part_of(const double *us, uint32_t i, uint32_t n, double sign)
{
	return (struct budget_part){ i < n ? stats_mean(us + i, n - i) / 1e3 : NAN, sign };
}

struct budget_round budget_round(struct oracle_errors *errors, const struct record *r,
				 uint32_t first_row, uint32_t n_first)
{
	const uint32_t n = (uint32_t)errors->n_requests;
	const uint32_t first = n_first && n_first < n ? n_first : n;
	const struct budget_signs early = budget_signs(r, first_row, first);
	const struct budget_signs later = budget_signs(r, first_row + first, n - first);

	assert(n && errors->n_itl);
	oracle_errors_sort(errors);
	return (struct budget_round){
		.ttft_first = part_of(errors->ttft, 0, first, early.ttft),
		.ttft_later = part_of(errors->ttft, first, n, later.ttft),
		.e2el_first = part_of(errors->e2el, 0, first, early.e2el),
		.e2el_later = part_of(errors->e2el, first, n, later.e2el),
		.itl = { stats_percentile(errors->itl[0], errors->n_itl, 99) / 1e3,
			 budget_signs(r, first_row, n).itl },
		.ttft_p99 = p99_of_sizes(errors->ttft, n) / 1e3,
		.e2el_p99 = p99_of_sizes(errors->e2el, n) / 1e3,
		.itl_mean = stats_mean(errors->itl[0], errors->n_itl) / 1e3,
		.send = stats_mean(errors->send, n) / 1e3,
		.kernel = stats_median(errors->stamp[0], errors->n_stamp) / 1e3,
	};
}

void budget_predict(const double *v, size_t n, double level, double floor, double sd_least,
		    double *low, double *high)
{
	double *logs = mem_array(n, sizeof(*logs)), mean, sd, half;

	assert(n >= 2 && floor > 0 && level > 0 && level < 1);
	for (size_t i = 0; i < n; i++)
		logs[i] = log(at_least(v[i], floor));
	mean = stats_mean(logs, n);
	sd = at_least(stats_std(logs, n) * sqrt((double)n / (double)(n - 1)), sd_least);
	half = student_quantile(0.5 + level / 2, (double)(n - 1)) * sd *
	       sqrt(1 + 1 / (double)n);
	*low = exp(mean - half);
	*high = exp(mean + half);
	free(logs);
}

/*
 * Widens the interval by the prediction for one more of these values: the lower end from the
 * values, the upper end without what the signs explain. No undisturbed value is below the least.
 */
static void widen(struct budget_error *out, const struct budget_part *v, size_t n)
{
	double *all = mem_array(2 * n, sizeof(*all)), *clean = all + n, low, high, ignored;

	for (size_t i = 0; i < n; i++)
		all[i] = v[i].mean;
	stats_sort(all, n);
	for (size_t i = 0; i < n; i++)
		clean[i] = fmax(v[i].mean - v[i].sign, all[0]);
	budget_predict(all, n, BUDGET_COMPUTED, BUDGET_FLOOR_MS, BUDGET_SD_LEAST, &low, &ignored);
	budget_predict(clean, n, BUDGET_COMPUTED, BUDGET_FLOOR_MS, BUDGET_SD_LEAST, &ignored,
		       &high);
	stats_sort(clean, n);
	low = fmin(low, all[0]);
	if (low <= BUDGET_FLOOR_MS)
		low = fmin(0, all[0]);
	out->low = fmin(out->low, low);
	out->high = fmax(out->high, fmax(fmin(high, BUDGET_BEYOND * clean[n - 1]), clean[n - 1]));
	free(all);
}

static const struct budget_error nowhere = { .low = INFINITY, .high = -INFINITY };

void budget_of_rounds(struct budget *b, const struct budget_round *v, size_t n, double first_share)
{
	struct budget_part *part = mem_array(n, sizeof(*part));
	double *one = mem_array(n, sizeof(*one));

	assert(n >= 2 && first_share >= 0 && first_share <= 1);
	b->ttft = b->e2el = b->itl = nowhere;
#define MEDIAN(out, member)                                                               \
	for (size_t i = 0; i < n; i++)                                                    \
		one[i] = v[i].member;                                                     \
	(out) = median_of(one, n)
#define INTERVAL(metric, member)                                                          \
	for (size_t i = 0; i < n; i++)                                                    \
		part[i] = v[i].member;                                                    \
	widen(&b->metric, part, n)
#define MEANS(metric)                                                                     \
	INTERVAL(metric, metric##_first);                                                 \
	MEDIAN(b->metric.mean, metric##_first.mean);                                      \
	if (!isnan(v[0].metric##_later.mean)) {                                           \
		double later;                                                             \
									                  \
		INTERVAL(metric, metric##_later);                                         \
		MEDIAN(later, metric##_later.mean);                                       \
		b->metric.mean = first_share * b->metric.mean + (1 - first_share) * later; \
	}
	MEANS(ttft)
	MEANS(e2el)
	INTERVAL(itl, itl);
	MEDIAN(b->itl.p99, itl.mean);
	MEDIAN(b->itl.mean, itl_mean);
	MEDIAN(b->ttft.p99, ttft_p99);
	MEDIAN(b->e2el.p99, e2el_p99);
	MEDIAN(b->send, send);
	MEDIAN(b->kernel, kernel);
#undef MEANS
#undef INTERVAL
#undef MEDIAN
	b->late = b->ttft.mean - b->send - b->kernel;
	b->rounds = (uint32_t)n;
	free(one);
	free(part);
}

static bool is_near(double a, double b)
{
	return a <= b * BUDGET_BAND && b <= a * BUDGET_BAND;
}

bool budget_fits(const struct budget *b, const struct budget_level *run)
{
	const struct budget_level *l = &b->level;

	return b->rounds && l->threads == run->threads && l->stamps == run->stamps &&
	       l->is_burst == run->is_burst && l->is_tls == run->is_tls &&
	       is_near(l->streams, run->streams) && is_near(l->events_per_s, run->events_per_s) &&
	       run->requests >= l->requests && run->events >= l->events;
}

/* ---- kept ones ---- */

#define BUDGET_VERSION 1
#define BUDGET_MS_MAX 1e6 /* 17 minutes: no client is that wrong */

#define BUDGET_ERRORS(X) X(ttft) X(itl) X(e2el)

void budget_write(const struct budget *b, const char *machine, const char *build, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_int(&w, "version", BUDGET_VERSION);
	json_member_text(&w, "machine", machine);
	json_member_text(&w, "build", build);
	json_member_int(&w, "at_ns", b->at_ns);
	json_member_int(&w, "rounds", b->rounds);
	json_member_int(&w, "streams", b->level.streams);
	json_member_f64(&w, "events_per_s", b->level.events_per_s);
	json_member_int(&w, "requests", b->level.requests);
	json_member_int(&w, "events", b->level.events);
	json_member_int(&w, "threads", b->level.threads);
	json_member_text(&w, "stamps", budget_stamps_name(b->level.stamps));
	json_member_bool(&w, "burst", b->level.is_burst);
	json_member_bool(&w, "tls", b->level.is_tls);
#define X(name)                                                                           \
	json_member_object(&w, #name);                                                    \
	json_member_f64(&w, "mean_ms", b->name.mean);                                     \
	json_member_f64(&w, "p99_ms", b->name.p99);                                       \
	json_member_f64(&w, "low_ms", b->name.low);                                       \
	json_member_f64(&w, "high_ms", b->name.high);                                     \
	json_end_object(&w);
	BUDGET_ERRORS(X)
#undef X
	json_member_f64(&w, "send_ms", b->send);
	json_member_f64(&w, "kernel_ms", b->kernel);
	json_member_f64(&w, "late_ms", b->late);
	json_end_object(&w);
}

static bool read_ms(const struct json_value *v, const char *key, double *out)
{
	*out = json_real(json_get(v, key), NAN);
	return fabs(*out) <= BUDGET_MS_MAX;
}

static bool read_error(const struct json_value *v, struct budget_error *out)
{
	return read_ms(v, "mean_ms", &out->mean) && read_ms(v, "p99_ms", &out->p99) &&
	       read_ms(v, "low_ms", &out->low) && read_ms(v, "high_ms", &out->high) &&
	       out->low <= out->high;
}

static bool read_count(const struct json_value *v, const char *key, uint32_t *out)
{
	int64_t n = json_int(json_get(v, key), 0);

	*out = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
	return *out > 0;
}

static bool read_whole(struct budget *b, const struct json_value *v)
{
	struct budget_level *l = &b->level;
	struct str stamps = json_text(json_get(v, "stamps"), STR(""));
	const struct json_value *burst = json_get(v, "burst"), *tls = json_get(v, "tls");

	while (l->stamps < BUDGET_STAMPS_COUNT &&
	       !str_eq(stamps, str_of(budget_stamps_name(l->stamps))))
		l->stamps++;
	b->at_ns = json_int(json_get(v, "at_ns"), 0);
	l->events_per_s = json_real(json_get(v, "events_per_s"), 0);
	l->is_burst = json_bool(burst, false);
	l->is_tls = json_bool(tls, false);
	return json_int(json_get(v, "version"), 0) == BUDGET_VERSION && b->at_ns > 0 &&
	       l->stamps < BUDGET_STAMPS_COUNT && l->events_per_s > 0 && burst && tls &&
	       read_count(v, "rounds", &b->rounds) && read_count(v, "streams", &l->streams) &&
	       read_count(v, "requests", &l->requests) && read_count(v, "events", &l->events) &&
	       read_count(v, "threads", &l->threads) &&
#define X(name) read_error(json_get(v, #name), &b->name) &&
	       BUDGET_ERRORS(X)
#undef X
	       read_ms(v, "send_ms", &b->send) && read_ms(v, "kernel_ms", &b->kernel) &&
	       read_ms(v, "late_ms", &b->late);
}

enum budget_kept budget_read(struct budget *b, struct str text, const char *machine,
			     const char *build, int64_t now_ns)
{
	struct arena arena = { 0 };
	struct json_value *v;
	struct err ignored;
	enum budget_kept rc = BUDGET_DAMAGED;

	*b = (struct budget){ .is_kept = true };
	if (json_parse_strict(&arena, text, &v, &ignored) == 0 && read_whole(b, v)) {
		if (!str_eq(json_text(json_get(v, "machine"), STR("")), str_of(machine)) ||
		    !str_eq(json_text(json_get(v, "build"), STR("")), str_of(build)))
			rc = BUDGET_FOREIGN;
		else if (b->at_ns > now_ns || now_ns - b->at_ns > BUDGET_AGE_MAX_S * 1000000000ll)
			rc = BUDGET_OLD;
		else
			rc = BUDGET_USABLE;
	}
	arena_release(&arena);
	if (rc != BUDGET_USABLE)
		*b = (struct budget){ 0 };
	return rc;
}
