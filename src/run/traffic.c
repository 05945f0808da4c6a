/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - from options and workload to a plan, and the lines that say so. */
#include "run/stage.h"

#include <math.h>

#include "base/fmt.h"
#include "base/limits.h"
#include "base/mem.h"
#include "rng/fork.h"

bool point_is_self_timed(const struct serve_opts *o, const struct point *p)
{
	return o->self_timed == OPT_TRI_YES ||
	       (o->self_timed == OPT_TRI_UNSET && p->workload.is_self_timed);
}

static int read_times(const struct workload *w, double *out, struct err *e)
{
	for (size_t i = 0; i < w->n; i++) {
		out[i] = w->v[i].timestamp_s;
		if (isnan(out[i]))
			return err_set(e, ERR_RUN, "--self-timed: request %zu of the workload has no time",
				       i);
	}
	return 0;
}

/* Requests that a cap lets through in the time when each takes 10 ms: more than any server does. */
static double count_by_cap(const struct stage *s)
{
	double n = 100.0 * s->derived->max_concurrency * s->opts->duration.v;

	return n < OPEN_ENDED_REQUESTS_MAX ? n : OPEN_ENDED_REQUESTS_MAX;
}

/* How many requests are planned: those of the workload, or what --duration needs. */
static int count_requests(const struct stage *s, const struct plan_opts *opts, uint32_t *out,
			  struct err *e)
{
	const struct workload *w = &s->point->workload;
	double n;

	*out = (uint32_t)w->n;
	if (!s->derived->duration_ns || opts->timestamps_s)
		return 0;
	n = plan_count(opts, s->opts->duration.v);
	if (isinf(n)) {
		n = count_by_cap(s);
		/* Without a cap there are --num-prompts (serve_load.c). */
		n = n > (double)w->n ? n : (double)w->n;
	}
	if (s->derived->is_num_prompts_given && n > (double)w->n)
		n = (double)w->n;
	if (n > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "--duration %g at this rate: %.0f requests are more "
			       "than the %u of one run", s->opts->duration.v, n, REQUESTS_MAX);
	*out = n < 1 ? 1 : (uint32_t)n;
	return 0;
}

/* Which server each request goes to; the least loaded one is found at admission. */
static void assign_urls(const struct stage *s, struct plan *plan)
{
	struct pcg64 g = rng_fork((uint64_t)s->opts->seed, "balance");
	unsigned n = s->derived->n_urls;

	if (n < 2 || s->derived->balance == BALANCE_LEAST_LOADED)
		return;
	for (uint32_t i = 0; i < plan->n; i++) {
		uint64_t url = i % n;

		if (s->derived->balance == BALANCE_RANDOM)
			url = (uint64_t)pcg64_bounded(&g, 0, n - 1);
		plan->entry[i].endpoint = (uint16_t)url;
	}
}

static void mark_cancelled(const struct stage *s, struct plan *plan)
{
	struct pcg64 g = rng_fork((uint64_t)s->opts->seed, "request-cancellation");
	double share = s->opts->request_cancellation_rate / 100;

	for (uint32_t i = 0; share > 0 && i < plan->n; i++)
		if (pcg64_double(&g) < share)
			plan->entry[i].flags |= PLAN_GIVES_UP;
}

int stage_make_plan(struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct serve_derived *d = s->derived;
	struct plan_opts opts = {
		.request_rate = o->request_rate, .burstiness = o->burstiness, .ramp_up = d->ramp_up,
		.ramp_start_rps = (double)o->ramp_up_start_rps.v,
		.ramp_end_rps = (double)o->ramp_up_end_rps.v,
	};
	const struct workload *w = &s->point->workload;
	struct plan *plan = &s->point->plan;
	double *timestamps = NULL;
	uint32_t n;
	int rc = 0;

	if (point_is_self_timed(s->opts, s->point)) {
		if (o->self_timed == OPT_TRI_UNSET && !isinf(o->request_rate))
			stage_warn(s, "--request-rate has no effect: requests are sent at the workload's times "
			     "(--no-self-timed ignores those)");
		timestamps = mem_array(w->n, sizeof(*timestamps));
		rc = read_times(w, timestamps, e);
		opts.timestamps_s = timestamps;
	}
	if (rc == 0)
		rc = count_requests(s, &opts, &n, e);
	if (rc == 0)
		rc = plan_arrivals(plan, n, &opts, &s->rng, e);
	free(timestamps);
	if (rc < 0)
		return -1;
	plan_repeat(plan, (uint32_t)w->n);
	plan_assign_lora(plan, (unsigned)o->lora_modules.n, d->lora, &s->rng);
	assign_urls(s, plan);
	mark_cancelled(s, plan);
	return 0;
}

void stage_say_traffic(const struct stage *s)
{
	const struct serve_opts *o = s->opts;
	char number[FMT_F64_BYTES];
	struct buf text = { 0 };

	if (point_is_self_timed(s->opts, s->point)) {
		stage_say(s, "Self timing is set, using the timestamps from the trace file.");
		return;
	}
	if (s->derived->ramp_up != RAMP_NONE)
		buf_printf(&text, "Traffic ramp-up strategy: %s.\nWill increase RPS from %lld to %lld "
			   "RPS over the duration of the benchmark.", o->ramp_up_strategy,
			   (long long)o->ramp_up_start_rps.v, (long long)o->ramp_up_end_rps.v);
	else
		buf_printf(&text, "Traffic request rate: %s", fmt_f64(number, o->request_rate));
	buf_printf(&text, "\nBurstiness factor: %s (%s)", fmt_f64(number, o->burstiness),
		   o->burstiness == 1.0 ? "Poisson process" : "Gamma distribution");
	if (s->derived->max_concurrency)
		buf_printf(&text, "\nMaximum request concurrency: %u", s->derived->max_concurrency);
	else
		buf_add_text(&text, "\nMaximum request concurrency: None");
	stage_say(s, text.data);
	buf_release(&text);
}
