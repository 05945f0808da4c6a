/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c - whether the error budget covers the error of the run that follows.
 *
 * Each repeat calibrates for a level (bench/serve/calibrate.h) and then makes an independent run at
 * that level, against a new simulator whose truth file gives the run's real error. At least
 * BUDGET_LEVEL of all repeats must be covered: the mean error of TTFT and of E2EL within its
 * interval, the p99 of |ITL error| not above its bound. A very wide budget covers everything
 * without meaning anything, so the widths are shown too.
 *
 * A calibration can be refused because the machine was busy. There is no budget then that could be
 * right or wrong, so the repeat does not count; at most REFUSED_PERCENT_MAX of all may be refused.
 *
 * build/bench/budget --repeats 100 --strict is the whole; --only N runs one level alone. Each
 * repeat is a line on stderr as it ends, with the counts so far, so that nothing is lost when the
 * program is ended early.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/serve/calibrate.h"
#include "client/metrics/oracle.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

struct scene {
	const char *name;
	uint32_t streams, waves, events;
	double itl_ms;
};

static const struct scene scenes[] = {
	{ "1", 1, 20, 20, 10 },
	{ "100", 100, 2, 60, 10 },
	{ "1000", 1000, 2, 40, 20 },
	{ "5000", 5000, 1, 15, 100 },
};
#define SCENES (sizeof(scenes) / sizeof(*scenes))

enum judged { JUDGED_TTFT, JUDGED_E2EL, JUDGED_ITL, JUDGED };
static const char *const names[] = { "mean TTFT error", "mean E2EL error", "p99 |ITL error|" };

#define REFUSED_PERCENT_MAX 5

struct tally { unsigned runs, refused, covered[JUDGED]; };

static struct budget_level level_of(const struct scene *s)
{
	return (struct budget_level){
		.streams = s->streams, .requests = s->streams * s->waves, .events = s->events,
		.events_per_s = 1000 / s->itl_ms, .threads = 1, .is_burst = true,
	};
}

/* The error that a run of the scene has, in ms, and what its record shows of disturbances. */
static int run(const struct bench *b, const struct scene *s, double out[JUDGED],
	       struct budget_signs *signs, struct err *e)
{
	char itl_ms[16];
	const char *args[] = { "--ttft-ms", "20", "--itl-ms", itl_ms, NULL };
	const uint32_t n = s->streams * s->waves;
	struct client client = { 0 };
	struct oracle_truth truth = { 0 };
	struct oracle_errors errors;
	struct sim_child sim;
	int rc;

	snprintf(itl_ms, sizeof(itl_ms), "%g", s->itl_ms);
	oracle_errors_init(&errors, n, s->events);
	rc = sim_child_start(&sim, b, false, args, e);
	if (rc == 0) {
		const struct client_spec spec = { .base_url = sim.url, .requests = n,
			.output_len = s->events, .prompt_bytes = 64, .rate = INFINITY,
			.cap = s->streams };

		rc = client_prepare(&client, &spec, e) < 0 || client_send(&client, e) < 0 ? -1 : 0;
	}
	sim_child_stop(&sim, NULL);
	if (rc == 0)
		rc = oracle_read(&truth, sim.truth, "b", n, e);
	if (rc == 0)
		rc = oracle_join(&errors, &client.record, 0, &truth, 0, n, s->events, e);
	if (rc == 0) {
		*signs = budget_signs(&client.record, 0, n);
		oracle_errors_sort(&errors);
		out[JUDGED_TTFT] = stats_mean(errors.ttft, errors.n_requests) / 1e3;
		out[JUDGED_E2EL] = stats_mean(errors.e2el, errors.n_requests) / 1e3;
		out[JUDGED_ITL] = stats_percentile(errors.itl[0], errors.n_itl, 99) / 1e3;
	}
	oracle_errors_release(&errors);
	oracle_release(&truth);
	client_release(&client);
	sim_child_release(&sim);
	return rc;
}

/* One repeat's line: what it gave, and the counts up to it. */
static void say_progress(const struct bench *b, const struct scene *s, const struct tally *t,
			 const char *what)
{
	fprintf(stderr, "%s streams, repeat %u of %u: %s; covered so far: TTFT %u, E2EL %u, ITL %u of "
		"%u, %u refused\n", s->name, t->runs + t->refused, b->repeats, what,
		t->covered[JUDGED_TTFT], t->covered[JUDGED_E2EL], t->covered[JUDGED_ITL], t->runs,
		t->refused);
}

static void judge(struct bench *b, const struct scene *s, struct tally *t,
		  const struct budget *budget, const double error[JUDGED])
{
	const struct budget_error *bound[JUDGED] = { &budget->ttft, &budget->e2el, &budget->itl };
	char what[256];
	size_t n = 0;

	t->runs++;
	for (int k = 0; k < JUDGED; k++) {
		double low = k == JUDGED_ITL ? 0 : bound[k]->low, high = bound[k]->high;

		t->covered[k] += low <= error[k] && error[k] <= high;
		bench_add(b, "us", 1e3 * error[k], "%s: %s", s->name, names[k]);
		bench_add(b, "us", 1e3 * bound[k]->low, "%s: %s, lower bound", s->name, names[k]);
		bench_add(b, "us", 1e3 * high, "%s: %s, upper bound", s->name, names[k]);
		n += (size_t)snprintf(what + n, sizeof(what) - n, "%s%s %.1f us (%.1f to %.1f)",
				      k ? ", " : "", names[k], 1e3 * error[k], 1e3 * low, 1e3 * high);
	}
	say_progress(b, s, t, what);
}

static int repeat(struct bench *b, const struct scene *s, struct tally *t, struct err *e)
{
	const struct calibration c = { .level = level_of(s), .program = b->binary,
		.load = &(struct load_opts){ .transport = &transport_native, .threads = 1 } };
	double error[JUDGED];
	struct budget_signs signs;
	struct budget budget;
	char what[256];

	if (calibrate(&c, &budget, e) < 0) {
		if (e->code != ERR_RUN)
			return err_wrap(e, "%s streams: calibration", s->name);
		t->refused++;
		snprintf(what, sizeof(what), "the calibration was refused: %.200s", e->text);
		*e = (struct err){ 0 };
		say_progress(b, s, t, what);
		return 0;
	}
	if (run(b, s, error, &signs, e) < 0)
		return err_wrap(e, "%s streams", s->name);
	budget_add_signs(&budget, &signs);
	judge(b, s, t, &budget, error);
	return 0;
}

/* What all repeats of a level say together. */
static void sum_up(struct bench *b, const struct scene *s, const struct tally *t)
{
	for (int k = 0; t->runs && k < JUDGED; k++)
		figure_least(bench_add(b, "%", 100.0 * t->covered[k] / t->runs, "%s: %s, runs covered",
				       s->name, names[k]), 100 * BUDGET_LEVEL);
	if (t->runs + t->refused)
		figure_most(bench_add(b, "%", 100.0 * t->refused / (t->runs + t->refused),
				      "%s: calibrations refused", s->name), REFUSED_PERCENT_MAX);
}

int main(int argc, char **argv)
{
	struct tally tally[SCENES] = { 0 };
	unsigned runs = 0, refused = 0;
	static struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "budget", argc, argv, &e);

	for (unsigned i = 0; rc == 0 && i < b.repeats; i++)
		for (size_t k = 0; rc == 0 && k < SCENES; k++)
			if (b.only ? strcmp(b.only, scenes[k].name) == 0 : !b.is_quick || k < 2)
				rc = repeat(&b, &scenes[k], &tally[k], &e);
	for (size_t k = 0; k < SCENES; k++) {
		sum_up(&b, &scenes[k], &tally[k]);
		runs += tally[k].runs;
		refused += tally[k].refused;
	}
	if (rc == 0 && refused && !runs)
		err_set(&e, ERR_RUN, "every calibration was refused, for the reasons above");
	return bench_end(&b, &e);
}
