/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - from options and workload to a plan, and the lines that say so. */
#include "run/stage.h"

#include <math.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/lengths.h"
#include "rng/rng.h"
#include "run/multi_turn.h"

bool point_is_self_timed(const struct serve_opts *o, const struct point *p)
{
	return o->self_timed == OPT_TRI_YES ||
	       (o->self_timed == OPT_TRI_UNSET && p->workload.is_self_timed);
}

/* What arrives: conversations, or samples that stand alone. */
static size_t n_arriving(const struct workload *w)
{
	return w->sessions ? w->sessions->n_sessions : w->n;
}

static int read_times(const struct workload *w, double *out, struct err *e)
{
	for (size_t i = 0; i < n_arriving(w); i++) {
		size_t sample = w->sessions ? w->sessions->session[i].first : i;

		out[i] = w->v[sample].timestamp_s;
		if (isnan(out[i]))
			return err_set(e, ERR_RUN, "--self-timed: request %zu of the workload has no time",
				       sample);
	}
	return 0;
}

/* Requests that a cap lets through in the time when each takes 10 ms: more than any server does. */
static double count_by_cap(const struct stage *s)
{
	uint32_t cap = s->derived->max_concurrency ? s->derived->max_concurrency
						   : s->derived->max_sessions;
	double n = 100.0 * cap * s->opts->duration.v;

	return n < OPEN_ENDED_REQUESTS_MAX ? n : OPEN_ENDED_REQUESTS_MAX;
}

/* Requests that one arrival stands for, on average. */
static double turns_per_arrival(const struct workload *w)
{
	return (double)w->n / (double)n_arriving(w);
}

/* How many conversations users of a given rate begin in that time, and those under way. */
static double count_by_users(const struct stage *s)
{
	const struct serve_opts *o = s->opts;

	return ceil(o->user_centric_rate.v * o->duration.v /
		    turns_per_arrival(&s->point->workload)) + (double)o->num_users.v;
}

/* How many arrivals are planned: those of the workload, or what --duration needs. */
static int count_arrivals(const struct stage *s, const struct plan_opts *opts, uint32_t *out,
			  struct err *e)
{
	const struct workload *w = &s->point->workload;
	double n, given = (double)n_arriving(w);

	*out = (uint32_t)given;
	if (!s->derived->duration_ns || opts->timestamps_s)
		return 0;
	n = s->opts->user_centric_rate.is_set ? count_by_users(s)
					      : plan_count(opts, s->opts->duration.v);
	if (isinf(n)) {
		n = ceil(count_by_cap(s) / turns_per_arrival(w));
		/* Without a cap there are --num-prompts (serve_load.c). */
		n = n > given ? n : given;
	}
	if (s->derived->is_num_prompts_given && n > given)
		n = given;
	if (n > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "--duration %g at this rate: %.0f requests are more "
			       "than the %u of one run", s->opts->duration.v, n, REQUESTS_MAX);
	*out = n < 1 ? 1 : (uint32_t)n;
	return 0;
}

/* Which server each entry goes to; the least loaded one is found at admission. */
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

/* Options about conversations, of a dataset that has none. */
static int check_without_sessions(const struct stage *s, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const char *dataset = s->point->workload.dataset;
	struct buf text = { 0 };

	if (o->user_centric_rate.is_set)
		return err_set(e, ERR_USAGE, "--user-centric-rate: the %s dataset has no conversations; "
			       "--request-rate says when requests are sent", dataset);
	buf_printf(&text, "%s has no effect: the %s dataset has no conversations",
		   o->max_sessions.is_set ? "--max-sessions" :
		   o->think_time ? "--think-time" : "--tool-time", dataset);
	if (o->max_sessions.is_set || o->think_time || o->tool_time)
		stage_warn(s, text.data);
	buf_release(&text);
	return 0;
}

/*
 * Gaps of one kind by a law: a draw for each turn of the plan, from a generator of their own, so
 * that they change nothing else.
 */
static int set_gaps(const struct stage *s, const char *option, const char *law, bool is_tool,
		    struct plan *plan, struct err *e)
{
	const struct sessions *sessions = s->point->workload.sessions;
	struct pcg64 rng = rng_fork((uint64_t)s->opts->seed + 1, option);
	struct lengths times;

	if (!law)
		return 0;
	if (lengths_parse_time(option, law, &times, e) < 0)
		return -1;
	for (uint32_t i = plan->n_roots; i < plan->n; i++) {
		struct plan_entry *entry = &plan->entry[i];
		bool runs_tool = sessions->turn[entry->sample].gap_kind == TURN_CALLS_TOOLS;

		if (runs_tool == is_tool && !(entry->flags & PLAN_FROM_PHASE))
			entry->due_s = lengths_draw_s(&times, &rng);
	}
	lengths_release(&times);
	return 0;
}

/* Whether any turn holds the server's answers, and not all that it sends by itself. */
static bool has_history(const struct sessions *s)
{
	for (size_t i = 0; i < s->n_turns; i++)
		if (s->turn[i].history != TURN_NONE)
			return true;
	return false;
}

/* Arrivals become conversations. */
static int add_turns(const struct stage *s, struct plan *plan, struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct sessions *sessions = s->point->workload.sessions;

	if (!s->derived->is_chat && has_history(sessions))
		return err_set(e, ERR_USAGE, "--backend %s: a conversation needs an API that takes a list "
			       "of messages, such as --backend openai-chat --endpoint "
			       "/v1/chat/completions", o->backend);
	if (plan_sessions(plan, sessions, e) < 0)
		return -1;
	if (set_gaps(s, "--think-time", o->think_time, false, plan, e) < 0 ||
	    set_gaps(s, "--tool-time", o->tool_time, true, plan, e) < 0)
		return -1;
	if (o->user_centric_rate.is_set)
		plan_user_gaps(plan, (uint32_t)o->num_users.v, o->user_centric_rate.v);
	if (s->derived->is_session_spread)
		assign_urls(s, plan);
	return 0;
}

static int make_arrivals(struct stage *s, const struct plan_opts *opts, struct plan *plan,
			 struct err *e)
{
	const struct serve_opts *o = s->opts;
	const struct workload *w = &s->point->workload;
	uint32_t n;

	if (!w->sessions && check_without_sessions(s, e) < 0)
		return -1;
	if (count_arrivals(s, opts, &n, e) < 0)
		return -1;
	if (o->user_centric_rate.is_set)
		return plan_users(plan, w->sessions, n, (uint32_t)o->num_users.v,
				  o->user_centric_rate.v, e);
	return plan_arrivals(plan, n, opts, &s->rng, e);
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
	int rc = 0;

	if (o->multi_turn) {
		multi_turn_plan(s);
		return 0;
	}
	if (point_is_self_timed(s->opts, s->point)) {
		if (w->repeats)
			return err_set(e, ERR_USAGE, "--repeat-count, --repeat-order: requests that are sent "
				       "at times of their own (%s) cannot be repeated or reordered; "
				       "--no-self-timed ignores the times", w->dataset);
		if (o->self_timed == OPT_TRI_UNSET && !isinf(o->request_rate))
			stage_warn(s, "--request-rate has no effect: requests are sent at the workload's times "
			     "(--no-self-timed ignores those)");
		timestamps = mem_array(n_arriving(w), sizeof(*timestamps));
		rc = read_times(w, timestamps, e);
		opts.timestamps_s = timestamps;
	}
	if (rc == 0)
		rc = make_arrivals(s, &opts, plan, e);
	free(timestamps);
	if (rc < 0)
		return -1;
	plan_repeat(plan, (uint32_t)n_arriving(w));
	plan_assign_lora(plan, (unsigned)o->lora_modules.n, d->lora, &s->rng);
	assign_urls(s, plan);
	if (w->sessions && add_turns(s, plan, e) < 0)
		return -1;
	mark_cancelled(s, plan);
	return 0;
}

void stage_say_traffic(const struct stage *s)
{
	const struct serve_opts *o = s->opts;
	char number[FMT_F64_BYTES];
	struct buf text = { 0 };

	if (o->multi_turn)
		return; /* its parameters are in its report */
	if (o->user_centric_rate.is_set) {
		buf_printf(&text, "Traffic user-centric rate: %s requests/s by %lld users",
			   fmt_f64(number, o->user_centric_rate.v), (long long)o->num_users.v);
		stage_say(s, text.data);
		buf_release(&text);
		return;
	}
	if (point_is_self_timed(s->opts, s->point)) {
		stage_say(s, "Self timing is set, using the timestamps from the trace file.");
		return;
	}
	if (s->derived->ramp_up != RAMP_NONE)
		buf_printf(&text, "Traffic ramp-up strategy: %s.\nWill increase RPS from %lld to %lld "
			   "RPS over the duration of the benchmark.", o->ramp_up_strategy,
			   (long long)o->ramp_up_start_rps.v, (long long)o->ramp_up_end_rps.v);
	else
		buf_printf(&text, "Traffic %s rate: %s", s->point->workload.sessions ? "session"
										     : "request",
			   fmt_f64(number, o->request_rate));
	buf_printf(&text, "\nBurstiness factor: %s (%s)", fmt_f64(number, o->burstiness),
		   o->burstiness == 1.0 ? "Poisson process" : "Gamma distribution");
	if (s->derived->max_concurrency)
		buf_printf(&text, "\nMaximum request concurrency: %u", s->derived->max_concurrency);
	else
		buf_add_text(&text, "\nMaximum request concurrency: None");
	stage_say(s, text.data);
	buf_release(&text);
}
