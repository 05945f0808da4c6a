/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_error.c - how far the client's stamps are from what the server did.
 *
 * The simulator paces N streams exactly and records when it sent each event; the client measures
 * them; both are joined by request id. Kernel and user-space stamps come from the same run: the
 * record keeps the kernel's, and with each how much later user space read it. The stamps of
 * segments ("tap") come from a second run of the same scene; where they are not allowed, they are
 * left out.
 *
 * TTFT error: (first event - sent) of the client minus (first send - receive) of the server. ITL
 * error: the same for the time between two events, without sign. Stamp error: the client's arrival
 * time minus the send stamp; it includes the server's own send path of a few microseconds.
 *
 * The verdict of each run (metrics/trust.h) is compared with these errors, for both kinds of
 * stamps: a metric must be VALID where its error is small, and must not be where it is large. A run
 * that breaks this ends the program with 1. --hog puts a busy loop on the client's core; the
 * simulator keeps its priority, because its core must be quiet, or the truth itself is late.
 */
#include <math.h>

#include "client/metrics/oracle.h"
#include "client/metrics/trust.h"
#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

struct scene {
	const char *name;
	uint32_t streams, events;
	const char *itl_ms, *burst_ms;
	bool is_tls, is_long, has_targets;
	bool is_crowded; /* connecting delays the sends: DEGRADED, however good the stamps are */
};

static const struct scene scenes[] = {
	{ "1", 1, 400, "10", NULL, false, false, false, false },
	{ "10", 10, 200, "10", NULL, false, false, false, false },
	{ "100", 100, 200, "10", NULL, false, false, false, false },
	{ "1000", 1000, 200, "10", NULL, false, false, true, false },
	{ "1000 TLS", 1000, 100, "20", NULL, true, false, false, true },
	{ "burst256", 256, 100, "20", "20", false, false, true, false },
	{ "5000 x 10", 5000, 50, "100", NULL, false, true, false, true },
	{ "10000 x 5", 10000, 30, "200", NULL, false, true, false, true },
	{ "10000", 10000, 30, "100", NULL, false, true, false, false },
};

enum view { KERNEL, USER, TAP, VIEWS };
static const char *const view_name[] = { "kernel", "user", "tap" };
#define TAP_ITL_US 20  /* p99, however busy the client's core is */
#define TAP_TTFT_US 50 /* mean */
/* With fewer the server's core sleeps between events, and its send path wakes up differently. */
#define TAP_STREAMS_LEAST 100

/* One run: of a tapped one only the stamps of segments count. */
static void add_figures(struct bench *b, const struct scene *s, struct oracle_errors *r,
			bool is_tapped)
{
	const char *tap = is_tapped ? ", tap" : "";
	double ttft = 0, send = 0;
	struct figure *f;

	for (size_t i = 0; i < r->n_requests; i++) {
		ttft += fabs(r->ttft[i]) / (double)r->n_requests;
		send += fabs(r->send[i]) / (double)r->n_requests;
	}
	bench_add(b, "us", send, "%s: mean of sending%s", s->name, tap);
	f = bench_add(b, "us", ttft, "%s: mean |TTFT error|%s", s->name, tap);
	if (is_tapped && s->streams >= TAP_STREAMS_LEAST)
		figure_most_each(f, TAP_TTFT_US);
	else if (s->has_targets && !s->burst_ms)
		figure_most(f, 100);
	for (int k = 0; k < (is_tapped ? 1 : 2); k++) {
		const char *view = view_name[is_tapped ? TAP : k];

		bench_add(b, "us", stats_percentile(r->itl[k], r->n_itl, 50),
			  "%s: |ITL error| p50, %s", s->name, view);
		f = bench_add(b, "us", stats_percentile(r->itl[k], r->n_itl, 99),
			      "%s: |ITL error| p99, %s", s->name, view);
		if (is_tapped && s->streams >= TAP_STREAMS_LEAST)
			figure_most_each(f, TAP_ITL_US);
		else if (!is_tapped && s->has_targets && k == 0 && !b->has_hog)
			figure_most(f, TAP_ITL_US);
		bench_add(b, "us", r->itl[k][r->n_itl - 1], "%s: |ITL error| max, %s", s->name,
			  view);
		bench_add(b, "us", stats_percentile(r->stamp[k], r->n_stamp, 50),
			  "%s: stamp error p50, %s", s->name, view);
		bench_add(b, "us", stats_percentile(r->stamp[k], r->n_stamp, 99),
			  "%s: stamp error p99, %s", s->name, view);
	}
	bench_add(b, "%", 100.0 * (double)r->n_shared / (double)r->n_stamp,
		  "%s: events with a shared stamp%s", s->name, tap);
}

/* ---- the verdict ---- */

/* Of a metric's own size: errors that a verdict must overlook, and that it must not. */
#define SMALL 0.02
#define LARGE 0.10

struct judged { const char *name; enum trust_metric metric; double error; };

/* Tokens a second if all requests had come at once, as they were due: the longest answer's time. */
static double true_throughput(const struct oracle_truth *t)
{
	int64_t longest = 0;
	double events = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct oracle_request *row = &t->row[i];
		int64_t took = row->send_ns[row->events - 1] - row->recv_ns;

		longest = took > longest ? took : longest;
		events += row->events;
	}
	return events / ((double)longest / 1e9);
}

/* p99 of |TTFT error| in microseconds; user space read each first event later by its skew. */
static double ttft_error(const struct oracle_errors *r, const struct client *c, bool is_user)
{
	double *v = mem_array(r->n_requests, sizeof(*v)), p99;

	for (size_t i = 0; i < r->n_requests; i++) {
		const struct request_row *row = &c->record.row[i];

		v[i] = fabs(r->ttft[i]);
		if (is_user)
			v[i] += (double)(row->user_first_event_ns - row->first_event_ns) / 1e3;
	}
	stats_sort(v, r->n_requests);
	p99 = stats_percentile(v, r->n_requests, 99);
	free(v);
	return p99;
}

/* Whether something else than how requests were sent spoils the metric. */
static bool is_doubted(const struct trust *t, enum trust_metric metric)
{
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].spoils & TRUST_BIT(metric) &&
		    strcmp(t->reason[i].code, "send_lag") != 0)
			return true;
	return false;
}

static int check_verdict(struct bench *b, const struct scene *s, const struct oracle_errors *r,
			 const struct client *c, const struct oracle_truth *truth, enum view view,
			 struct err *e)
{
	bool is_user = view == USER;
	const struct load_stats *l = &c->stats;
	const struct metrics_opts opts = { .has_tokenizer = true, .is_user_stamps = is_user };
	const struct trust_facts facts = {
		.cpu_share_max = (double)l->cpu_ns_max / (double)l->wall_ns, .reads = l->net.reads,
		.reads_without_stamp = l->net.reads_without_stamp,
		.is_kernel_stamped = l->is_kernel_stamped,
	};
	struct metrics m;
	struct trust t;
	int rc = 0;

	metrics_score(&m, &c->record, &opts);
	trust_judge(&t, &m, &facts);
	const struct judged all[] = {
		{ "ITL", TRUST_ITL, stats_percentile(r->itl[is_user], r->n_itl, 99) /
				    (1e3 * m.block[BLOCK_ITL].mean_ms) },
		{ "TTFT", TRUST_TTFT, ttft_error(r, c, is_user) /
				      (1e3 * m.block[BLOCK_TTFT].median_ms) },
		{ "throughput", TRUST_OUTPUT,
		  fabs(m.output_throughput / true_throughput(truth) - 1) },
	};
	for (size_t i = 0; rc == 0 && i < sizeof(all) / sizeof(*all); i++) {
		enum trust_verdict v = t.metric[all[i].metric];
		double error = all[i].error;

		bench_add(b, "%", 100 * error, "%s: %s error, %s", s->name, all[i].name,
			  view_name[view]);
		bench_add(b, "", v, "%s: %s verdict (0 VALID), %s", s->name, all[i].name,
			  view_name[view]);
		/* Where every stamp is right, what was sent late is all that can be said. */
		if (view == TAP && v != TRUST_VALID && !is_doubted(&t, all[i].metric))
			continue;
		if ((error <= SMALL && v != TRUST_VALID) || (error > LARGE && v == TRUST_VALID))
			rc = err_set(e, ERR_RUN, "%s stamps: the error of %s is %.1f %% and its "
				     "verdict %s: %s", view_name[view], all[i].name,
				     100 * error, trust_name(v),
				     t.n_reasons ? t.reason[0].text : "no reason");
	}
	metrics_release(&m);
	return rc;
}

static void add_cost(struct bench *b, const struct scene *s, const struct client *c,
		     const struct rusage *server)
{
	const struct load_stats *l = &c->stats;
	const char *tap = l->is_tapped ? ", tap" : "";
	double wall = (double)l->wall_ns;

	bench_add(b, "%", 100.0 * (double)l->cpu_ns / wall, "%s: client CPU%s", s->name, tap);
	bench_add(b, "%", 1e11 * bench_cpu_s(server) / wall, "%s: simulator CPU%s", s->name, tap);
	if (l->is_tapped)
		bench_add(b, "", (double)l->tap.dropped, "%s: segments dropped", s->name);
}

static int measure(struct bench *b, const struct scene *s, struct sim_child *sim, struct client *c,
		   bool is_tapped, struct err *e)
{
	uint32_t events = b->is_quick ? 20 : s->events;
	struct client_spec spec = { .base_url = sim->url, .requests = s->streams,
				    .output_len = events, .prompt_bytes = 64, .rate = INFINITY,
				    .is_insecure = s->is_tls, .is_tapped = is_tapped };
	struct oracle_truth truth = { 0 };
	struct rusage use = { 0 };
	struct oracle_errors r;
	int rc = -1;

	oracle_errors_init(&r, s->streams, events);
	if (client_prepare(c, &spec, e) < 0 || client_send(c, e) < 0)
		goto done;
	sim_child_stop(sim, &use);
	if (oracle_read(&truth, sim->truth, "b", s->streams, e) < 0 ||
	    oracle_join(&r, &c->record, 0, &truth, 0, s->streams, events, e) < 0)
		goto done;
	oracle_errors_sort(&r);
	add_figures(b, s, &r, is_tapped);
	add_cost(b, s, c, &use);
	if (!c->stats.is_kernel_stamped)
		err_set(e, ERR_RUN, "this kernel gives no receive stamps");
	rc = e->code ? -1 : 0;
	if (s->is_crowded || (b->has_hog && s->has_targets))
		goto done;
	for (int view = is_tapped ? TAP : KERNEL; rc == 0 && !b->is_quick && view < VIEWS; view++)
		if (is_tapped || view != TAP)
			rc = check_verdict(b, s, &r, c, &truth, (enum view)view, e);
done:
	oracle_release(&truth);
	oracle_errors_release(&r);
	return rc;
}

static int run_scene(struct bench *b, const struct scene *s, bool is_tapped, struct err *e)
{
	const char *args[9] = { "--ttft-ms", "50", "--itl-ms", s->itl_ms };
	struct sim_child sim;
	struct client client = { 0 };
	struct child hog = { 0 };
	int rc;

	if (s->burst_ms) {
		args[4] = "--burst-ms";
		args[5] = s->burst_ms;
	}
	if (b->has_hog)
		bench_set_realtime(true);
	rc = sim_child_start(&sim, b, s->is_tls, args, e);
	if (b->has_hog)
		bench_set_realtime(false);
	if (rc == 0 && b->has_hog)
		rc = child_hog(&hog, e);
	if (rc == 0)
		rc = measure(b, s, &sim, &client, is_tapped, e);
	child_stop(&hog, NULL);
	client_release(&client);
	sim_child_release(&sim);
	return rc < 0 ? err_wrap(e, "%s streams", s->name) : 0;
}

/* --only: the runs of a scene; "tap": of all scenes with targets those by stamps of segments. */
static bool is_chosen(const struct bench *b, const struct scene *s, bool is_tapped)
{
	if (b->only && strcmp(b->only, "tap") != 0)
		return strcmp(b->only, s->name) == 0;
	if (b->only && (!is_tapped || s->streams < TAP_STREAMS_LEAST))
		return false;
	return b->is_long || !s->is_long;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "client_error", argc, argv, &e);

	bool has_tap = client_may_tap();

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			for (int tap = 0; rc == 0 && tap <= has_tap; tap++)
				if (is_chosen(&b, &scenes[i], tap))
					rc = run_scene(&b, &scenes[i], tap, &e);
	return bench_end(&b, &e);
}
