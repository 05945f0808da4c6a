/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halving.c - whether the search for the best of many configurations (decide/halving.h) finds it:
 * on the simulator's own engine model (sim/model), in virtual time, where every configuration of
 * 256 can be measured at length and the best one is known.
 *
 * The matrix: 8 values of max_num_seqs x 8 of max_num_batched_tokens x CUDA graphs or not x KV
 * cache in 16 or 8 bits. Each seed draws another problem: GPU, model, lengths of prompts and
 * answers, load, and metric in turn: output throughput of a closed loop, mean end-to-end latency
 * and mean TTFT at Poisson arrivals. All configurations of a round get the same requests and each
 * round draws others, as the runner does, and each step differs by 2 %. A measurement at full
 * length is 1,000 requests, or 27 for each one at once of a closed loop, so that the first round
 * reaches its load; intervals are those of settled means. Starts of the simulator are alike; with
 * --scatter they differ.
 *
 * The truth is the same metric over 4,000 other requests, the same ones for all, without the noise
 * of starts.
 * "Found" is defined beforehand: the true value of the answer is within 1 % of the true best. How
 * often it is exactly the best one is counted, too: many differ by
 * less than noise from the next one. The cost is the time of load, of which the whole matrix once
 * at full length is 100 %; servers of the simulator start in no time worth counting.
 *
 *   --seeds N     problems (20)        --share PERCENT  of the full cost (25)
 *   --seed N      the first one (1)    --threads N      1 or 2 (2)
 *   --repeats N   (4)                  --scatter PERCENT  of speed from start to start (0)
 *   --eta N       (3.5)                --first N          full length over the first round's (12)
 *
 * Seeds. The defaults of the search were chosen on seeds 1 to 80, with these and with other draws
 * of their requests. Seeds from 1001 on were run once after that, as the test;
 * docs/guide/experiments.md has the figures. A change of the search needs new seeds for its test.
 *
 * Exits with 1 when the best is not found within the share in 19 of 20 seeds.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/stats/percentile.h"
#include "core/stats/settled.h"
#include "core/stats/stats.h"
#include "kit/batcher.h"
#include "results/decide/halving.h"
#include "sim/model/hardware.h"

#define CONFIGS 256
#define FULL 1000             /* requests of a measurement at full length, or more: */
#define FULL_SLOTS 27         /* for each one at once of a closed loop */
#define TRUTH 4000
#define STEP_SD 0.02
#define WITHIN 0.01           /* of the true best: found */
#define LEAST 0.95            /* of the seeds */
#define BIN_REQUESTS 2        /* requests that end in a bin of throughput */

enum metric { THROUGHPUT, E2EL, TTFT, METRICS };
static const char *const metric_names[] = { "output throughput", "mean E2EL", "mean TTFT" };

/* A problem: what is measured on what. */
struct problem {
	enum metric metric;
	const char *gpu, *shape;
	double prompt, output;    /* means; both exponential with a floor */
	uint32_t slots;           /* closed loop */
	double rate;              /* open loop */
	size_t full;
	uint64_t seed;
};

static const uint32_t seqs[] = { 8, 16, 32, 64, 96, 128, 192, 256 };
static const uint32_t budgets[] = { 512, 1024, 2048, 3072, 4096, 6144, 8192, 16384 };

/* Configuration i of a problem's hardware. */
static bool plan(const struct problem *p, size_t i, struct sim_hardware *hw)
{
	struct hardware_opts o = {
		.gpu = p->gpu, .shape = p->shape, .model = p->shape, .tp = 1, .pp = 1, .dp = 1,
		.utilization = HARDWARE_UTILIZATION, .block_size = HARDWARE_BLOCK_TOKENS,
		.max_model_len = 8192, .max_num_seqs = seqs[i % 8],
		.max_num_batched_tokens = budgets[i / 8 % 8], .is_eager = i / 64 % 2,
		.kv_cache_dtype = i / 128 ? "fp8" : "auto",
	};
	struct err e;

	return hardware_plan(&o, hw, &e) == 0;
}

/* ---- one measurement, in virtual time ---- */

struct request {
	struct engine_seq seq;
	uint32_t output, done;
	double due, first, end;
};

struct bed {
	struct sim_engine g;
	struct request *r;
	size_t n, begun, ended, room;
	double now, speed, scatter;
	const struct problem *p;
	struct pcg64 noise;
	double *value;
};

static void begin(struct bed *b, double at)
{
	struct request *r = &b->r[b->begun++];

	if (!b->p->rate)
		r->due = at;
	engine_add(&b->g, &r->seq);
}

static void on_token(struct engine_seq *seq, void *ctx)
{
	struct request *r = (struct request *)seq;
	struct bed *b = ctx;

	if (r->done++ == 0)
		r->first = b->now;
	if (r->done < r->output)
		return;
	r->end = b->now;
	engine_remove(&b->g, seq);
	b->ended++;
	if (!b->p->rate && b->begun < b->n)
		begin(b, b->now);
}

/* The same requests for every configuration: of the problem, the part and their number. */
static void draw(struct bed *b, size_t n, uint64_t part)
{
	const struct problem *p = b->p;
	struct pcg64 g;
	double due = 0;

	pcg64_seed(&g, p->seed * 1000 + part);
	if (b->room < n) {
		b->room = n;
		b->r = mem_grow(b->r, n, sizeof(*b->r));
		b->value = mem_grow(b->value, n, sizeof(*b->value));
	}
	b->n = n;
	for (size_t i = 0; i < n; i++) {
		double prompt = 16 - (p->prompt - 16) * log(1 - pcg64_double(&g));
		double output = 4 - (p->output - 4) * log(1 - pcg64_double(&g));

		due -= p->rate ? log(1 - pcg64_double(&g)) / p->rate : 0;
		b->r[i] = (struct request){ .output = (uint32_t)fmin(2048, output), .due = due };
		b->r[i].seq.prompt_left = (uint32_t)fmin(6000, prompt);
	}
}

static void live(struct bed *b)
{
	b->begun = b->ended = 0;
	b->now = 0;
	while (!b->p->rate && b->begun < b->n && b->begun < b->p->slots)
		begin(b, 0);
	while (b->ended < b->n) {
		int64_t ns;

		while (b->p->rate && b->begun < b->n && b->r[b->begun].due <= b->now)
			begin(b, b->now);
		ns = engine_step_begin(&b->g);
		if (ns < 0) {
			b->now = b->r[b->begun].due;
			continue;
		}
		b->now += 1e-9 * (double)ns * b->speed *
			  (1 + STEP_SD * batcher_normal(&b->noise));
		engine_step_end(&b->g, on_token, b);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Tokens of a request spread evenly from its first token to its end, in bins of time. */
static struct settled_mean throughput(struct bed *b)
{
	size_t bins = b->n / BIN_REQUESTS;
	double *bin = b->value, last = 0, from = INFINITY, step;

	for (size_t i = 0; i < b->n; i++) {
		from = fmin(from, b->r[i].end);
		last = fmax(last, b->r[i].due);
	}
	if (bins < 2 || last <= from)
		return (struct settled_mean){ .low = NAN };
	step = (last - from) / (double)bins;
	memset(bin, 0, bins * sizeof(*bin));
	for (size_t i = 0; i < b->n; i++)
		for (uint32_t k = 0; k < b->r[i].output; k++) {
			double at = b->r[i].first + (b->r[i].end - b->r[i].first) * k /
				    fmax(1, b->r[i].output - 1);

			if (at >= from && at < last)
				bin[(size_t)fmin((double)bins - 1, (at - from) / step)] += 1;
		}
	return settled_mean(bin, NULL, bins, PERCENTILE_LEVEL);
}

static struct settled_mean latency(struct bed *b, size_t *warm_up)
{
	for (size_t i = 0; i < b->n; i++)
		b->value[i] = (b->p->metric == E2EL ? b->r[i].end : b->r[i].first) - b->r[i].due;
	*warm_up = settled_warm_up(b->value, b->n);
	return settled_mean(b->value + *warm_up, NULL, b->n - *warm_up, PERCENTILE_LEVEL);
}

/* start: whose server it is; 0: one without noise. Without an interval. */
static struct halving_seen run(struct bed *b, const struct sim_hardware *hw, size_t n,
			       uint64_t part, uint64_t start)
{
	struct halving_seen out = { .half = INFINITY };
	double sum = 0;

	pcg64_seed(&b->noise, b->p->seed * 7919 + start * 104729 + 1);
	b->speed = start ? exp(b->scatter * batcher_normal(&b->noise)) : 1;
	engine_of_hardware(&b->g, hw);
	draw(b, n, part);
	live(b);
	engine_release(&b->g);
	out.load_s = b->now;
	for (size_t i = 0; i < n; i++)
		sum += b->p->metric == THROUGHPUT ? b->r[i].output :
		       (b->p->metric == E2EL ? b->r[i].end : b->r[i].first) - b->r[i].due;
	out.value = b->p->metric == THROUGHPUT ? sum / b->now : sum / (double)n;
	return out;
}

static struct halving_seen measure(struct bed *b, const struct sim_hardware *hw, size_t n,
				   uint64_t part, uint64_t start)
{
	struct halving_seen out = run(b, hw, n, part, start);
	size_t warm_up;
	struct settled_mean is = b->p->metric == THROUGHPUT ? throughput(b) : latency(b, &warm_up);

	if (is.state == SETTLED_KNOWN && is.mean > 0 && is.low > 0)
		out.half = fmax(log(is.high / is.mean), log(is.mean / is.low));
	return out;
}

/* ---- a problem, its truth and the search ---- */

struct answer {
	struct problem p;
	size_t found, best, fit;
	double true_best, true_found, cost, rank;
	double true_all;          /* of what all of them at full length would have named */
	size_t near;              /* configurations within WITHIN of the best */
	unsigned rounds;
	size_t forced;
	bool is_cut_short;
};

struct study {
	uint64_t seed;
	double share;
	unsigned repeats;
	double scatter, eta, first;
	struct answer *answer;
	struct bed *bed;
};

static void draw_problem(uint64_t seed, struct bed *b, struct problem *p)
{
	static const char *const gpus[] = { "a100-80gb", "h100-80gb", "h200-141gb",
					    "l4-24gb" };
	static const char *const shapes[] = { "llama-3.1-8b", "qwen2.5-7b", "qwen3-8b" };
	struct sim_hardware hw;
	struct pcg64 g;

	pcg64_seed(&g, seed);
	*p = (struct problem){ .metric = (enum metric)(seed % METRICS), .seed = seed };
	do {
		p->gpu = gpus[pcg64_bounded(&g, 0, 3)];
		p->shape = shapes[pcg64_bounded(&g, 0, 2)];
	} while (!hardware_gpu(p->gpu) || !hardware_shape(p->shape) || !plan(p, 0, &hw));
	p->prompt = batcher_log_uniform(&g, 128, 2048);
	p->output = batcher_log_uniform(&g, 32, 256);
	p->slots = (uint32_t)batcher_log_uniform(&g, 16, 64);
	p->full = FULL_SLOTS * p->slots > FULL ? FULL_SLOTS * p->slots : FULL;
	if (p->metric == THROUGHPUT)
		return;
	p->full = FULL;
	/* An open loop at a part of what a middling configuration carries. */
	b->p = p;
	plan(p, 3 + 8 * 2, &hw);
	run(b, &hw, FULL, 1, 0);
	p->rate = batcher_uniform(&g, 0.5, 0.9) * FULL / b->now;
}

static void search(const struct study *s, struct bed *b, const struct sim_hardware *hw,
		   const bool *fits, struct answer *a)
{
	struct halving_opts o = { .n = CONFIGS, .eta = s->eta, .full = (double)a->p.full,
				  .first = rint((double)a->p.full / s->first),
				  .repeats = s->repeats, .share = s->share, .budget_s = INFINITY,
				  .pace_s = a->p.rate ? 1 / a->p.rate : 0,
				  .is_highest = a->p.metric == THROUGHPUT };
	struct halving_item item[CONFIGS];
	size_t order[CONFIGS];
	struct halving h;

	halving_begin(&h, &o, item, order);
	do {
		for (size_t i = 0; i < CONFIGS; i++) {
			struct halving_seen seen;

			if (item[i].fate != HALVING_IN)
				continue;
			if (!fits[i]) {
				halving_out(&h, i, 0, 0);
				continue;
			}
			seen = measure(b, &hw[i], (size_t)round(h.length[h.round]), h.round,
				       1 + i * HALVING_ROUNDS_MAX + h.round);
			halving_tell(&h, i, &seen);
		}
	} while (halving_next(&h));
	halving_order(&h);
	a->found = order[0];
	a->rounds = h.round + 1;
	a->cost = h.loaded_s;
	a->is_cut_short = h.is_cut_short;
	for (size_t i = 0; i < CONFIGS; i++)
		a->forced += item[i].fate == HALVING_FORCED;
}

static bool solve(void *self, size_t at, unsigned worker)
{
	struct study *s = self;
	struct answer *a = &s->answer[at];
	struct bed *b = &s->bed[worker];
	struct sim_hardware *hw = mem_array(CONFIGS, sizeof(*hw));
	double *truth = mem_array(CONFIGS, sizeof(*truth)), full = 0;
	struct halving_seen seen, all = { 0 };
	bool fits[CONFIGS], is_highest;

	draw_problem(s->seed + at, b, &a->p);
	b->p = &a->p;
	b->scatter = s->scatter;
	is_highest = a->p.metric == THROUGHPUT;
	a->best = CONFIGS;
	for (size_t i = 0; i < CONFIGS; i++) {
		fits[i] = plan(&a->p, i, &hw[i]);
		if (!fits[i])
			continue;
		a->fit++;
		seen = run(b, &hw[i], a->p.full, 0, 1 + CONFIGS * HALVING_ROUNDS_MAX + i);
		full += seen.load_s;
		truth[i] = run(b, &hw[i], TRUTH, 100, 0).value;
		if (a->best == CONFIGS || (truth[i] > truth[a->best]) == is_highest)
			a->best = i;
		if (all.value == 0 || (seen.value > all.value) == is_highest) {
			all = seen;
			a->true_all = truth[i];
		}
	}
	search(s, b, hw, fits, a);
	a->true_best = truth[a->best];
	a->true_found = truth[a->found];
	a->cost /= full;
	for (size_t i = 0; i < CONFIGS; i++) {
		a->near += fits[i] && fabs(log(truth[i] / truth[a->best])) <= WITHIN;
		a->rank += fits[i] && (is_highest ? truth[i] > truth[a->found] :
						    truth[i] < truth[a->found]);
	}
	free(truth);
	free(hw);
	return true;
}

/* ---- results ---- */

static double regret(const struct answer *a)
{
	return fabs(a->true_found / a->true_best - 1);
}

/* Of measuring all of them once at full length. */
static double regret_of_all(const struct answer *a)
{
	return fabs(a->true_all / a->true_best - 1);
}

static void row(const struct answer *a, uint64_t seed)
{
	char load[32];

	if (a->p.rate)
		snprintf(load, sizeof(load), "%.1f/s", a->p.rate);
	else
		snprintf(load, sizeof(load), "%u at once", a->p.slots);
	printf("%4llu %-18s %-10s %-13s %5.0f %5.0f %-11s %4zu %8.2f %5.0f %6.2f %6.1f %6zu%s\n",
	       (unsigned long long)seed, metric_names[a->p.metric], a->p.gpu, a->p.shape,
	       a->p.prompt, a->p.output, load, a->near, 100 * regret(a), a->rank + 1, 100 * a->cost,
	       (double)a->rounds, a->forced, a->is_cut_short ? " cut short" : "");
}

static bool parse(int argc, char **argv, struct study *s, size_t *seeds, unsigned *threads)
{
	*s = (struct study){ .seed = 1, .share = HALVING_SHARE, .repeats = HALVING_REPEATS,
			     .scatter = 0, .eta = HALVING_ETA, .first = HALVING_FIRST };
	*seeds = 20;
	*threads = 2;
	for (int i = 1; i < argc; i++) {
		double value = i + 1 < argc ? strtod(argv[i + 1], NULL) : NAN;

		if (!strcmp(argv[i], "--quick")) {
			*seeds = 1;
			continue;
		}
		if (!strcmp(argv[i], "--seeds") && value >= 1)
			*seeds = (size_t)value;
		else if (!strcmp(argv[i], "--seed") && value >= 0)
			s->seed = (uint64_t)value;
		else if (!strcmp(argv[i], "--share") && value > 0)
			s->share = value / 100;
		else if (!strcmp(argv[i], "--repeats") && value >= 1 && value <= 20)
			s->repeats = (unsigned)value;
		else if (!strcmp(argv[i], "--scatter") && value >= 0 && value <= 10)
			s->scatter = value / 100;
		else if (!strcmp(argv[i], "--eta") && value > 1)
			s->eta = value;
		else if (!strcmp(argv[i], "--first") && value >= 1)
			s->first = value;
		else if (!strcmp(argv[i], "--threads") && value >= 1 && value <= 2)
			*threads = (unsigned)value;
		else
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	size_t seeds, found = 0, by_all = 0, exact = 0, in_cost = 0, both = 0;
	double *cost, *off;
	struct study s;
	unsigned threads;

	if (!parse(argc, argv, &s, &seeds, &threads)) {
		fprintf(stderr, "halving: options are --seeds N, --seed N, --share PERCENT, --repeats N, "
				"--scatter PERCENT, --eta N, --first N, --threads 1|2, --quick\n");
		return 2;
	}
	s.answer = mem_array(seeds, sizeof(*s.answer));
	s.bed = mem_array(threads, sizeof(*s.bed));
	cost = mem_array(seeds, sizeof(*cost));
	off = mem_array(seeds, sizeof(*off));
	parallel_for(threads, seeds, solve, &s);
	printf("%4s %-18s %-10s %-13s %5s %5s %-11s %4s %8s %5s %6s %6s %6s\n", "seed", "metric", "GPU",
	       "model", "in", "out", "load", "near", "off %", "rank", "cost %", "rounds", "forced");
	for (size_t i = 0; i < seeds; i++) {
		const struct answer *a = &s.answer[i];
		bool is_found = regret(a) <= WITHIN, is_cheap = a->cost <= s.share;

		row(a, s.seed + i);
		found += is_found;
		by_all += regret_of_all(a) <= WITHIN;
		in_cost += is_cheap;
		both += is_found && is_cheap;
		exact += a->found == a->best;
		cost[i] = a->cost;
		off[i] = regret(a);
	}
	qsort(cost, seeds, sizeof(*cost), by_size);
	qsort(off, seeds, sizeof(*off), by_size);
	printf("near: configurations whose true value is within %.0f %% of the best; off: the answer's "
	       "true value from the true best; rank: the answer's true place\n", 100 * WITHIN);
	printf("cost: median %.1f %%, most %.1f %%; off: median %.2f %%, most %.2f %%\n",
	       100 * stats_median(cost, seeds), 100 * cost[seeds - 1],
	       100 * stats_median(off, seeds), 100 * off[seeds - 1]);
	printf("exactly the best in %zu of %zu, within %.0f %% of it in %zu, within the cost in %zu\n",
	       exact, seeds, 100 * WITHIN, found, in_cost);
	printf("all of them once at full length: within %.0f %% of the best in %zu\n", 100 * WITHIN,
	       by_all);
	printf("%s: within %.0f %% of the best for at most %.0f %% of the full cost in %zu of %zu (at "
	       "least %.0f %%)\n", (double)both >= LEAST * (double)seeds ? "passed" : "FAILED",
	       100 * WITHIN, 100 * s.share, both, seeds, 100 * LEAST);
	for (unsigned i = 0; i < threads; i++) {
		free(s.bed[i].r);
		free(s.bed[i].value);
	}
	free(s.answer);
	free(s.bed);
	free(cost);
	free(off);
	return (double)both >= LEAST * (double)seeds ? 0 : 1;
}
