/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - one small rule per source of doubt; see trust.h. */
#include "metrics/trust.h"

#include <assert.h>
#include <stdarg.h>

const char *trust_name(enum trust_verdict v)
{
	static const char *const names[] = { "VALID", "DEGRADED", "INVALID" };

	return names[v];
}

__attribute__((format(printf, 4, 5)))
static void doubt(struct trust *t, enum trust_verdict level, const char *code, const char *fmt, ...)
{
	struct trust_reason *r = &t->reason[t->n_reasons];
	va_list ap;

	assert(t->n_reasons < TRUST_REASONS_MAX);
	r->level = level;
	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	t->n_reasons++;
	if (level > t->verdict)
		t->verdict = level;
}

/* VALID below the first limit, INVALID above the second. */
static enum trust_verdict level_of(double value, double degraded, double invalid)
{
	if (value > invalid)
		return TRUST_INVALID;
	return value > degraded ? TRUST_DEGRADED : TRUST_VALID;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void judge_failures(struct trust *t, const struct metrics *m)
{
	double failed = share(m->failed, (double)m->completed + m->failed);
	enum trust_verdict level;

	level = level_of(failed, TRUST_FAILED_DEGRADED, TRUST_FAILED_INVALID);
	if (m->completed == 0)
		doubt(t, TRUST_INVALID, "no_success",
		      "No request succeeded (%u failed, %u cancelled).", m->failed, m->cancelled);
	else if (level != TRUST_VALID)
		doubt(t, level, "failures", "%.1f %% of the requests failed (limit %.0f %%).",
		      100 * failed, 100 * (level == TRUST_INVALID ? TRUST_FAILED_INVALID
					   : TRUST_FAILED_DEGRADED));
}

static void judge_skew(struct trust *t, const struct metrics *m)
{
	bool has_itl = m->block[BLOCK_ITL].median_ms > 0;
	double base = m->block[has_itl ? BLOCK_ITL : BLOCK_E2EL].median_ms;
	double p99 = m->client.skew.p99_ms;
	char late[32] = "more than 4.29 s";

	if (m->client.skew.n == 0 || p99 <= TRUST_SKEW_FLOOR_MS || p99 <= base * TRUST_SKEW_SHARE)
		return;
	if (p99 < METRICS_SKEW_MAX_MS)
		snprintf(late, sizeof(late), "%.3f ms", p99);
	doubt(t, TRUST_DEGRADED, "skew",
	      "The client read events %s (p99) after the kernel had them: more than %.0f %% of "
	      "the median %s of %.3f ms.", late, 100 * TRUST_SKEW_SHARE, has_itl ? "ITL" : "E2EL",
	      base);
}

static void judge_send_lag(struct trust *t, const struct metrics *m)
{
	double base = m->opts.is_rate_finite ? m->client.mean_interarrival_s * 1000
		      : m->block[BLOCK_E2EL].median_ms;
	double limit = base * TRUST_LAG_SHARE, p99 = m->client.send_lag.p99_ms;

	if (limit < TRUST_LAG_FLOOR_MS)
		limit = TRUST_LAG_FLOOR_MS;
	if (m->client.send_lag.n && p99 > limit)
		doubt(t, TRUST_DEGRADED, "send_lag",
		      "Requests left %.3f ms (p99) later than they could have (limit %.3f ms).", p99,
		      limit);
}

static void judge_events(struct trust *t, const struct metrics *m)
{
	const struct metrics_client *c = &m->client;
	double shared = share((double)c->n_shared, (double)c->n_events_with_text);
	double differs = share(c->n_usage_differs, c->n_usage);
	enum trust_verdict level = level_of(shared, TRUST_SHARED_DEGRADED, TRUST_SHARED_INVALID);

	if (level != TRUST_VALID)
		doubt(t, level, "shared_reads",
		      "%.2f %% of the events came in one read with an earlier one and share its stamp "
		      "(limit %.1f %%): ITL is %s.", 100 * shared,
		      100 * (level == TRUST_INVALID ? TRUST_SHARED_INVALID : TRUST_SHARED_DEGRADED),
		      level == TRUST_INVALID ? "not usable" : "smeared");
	if (differs > TRUST_USAGE_SHARE)
		doubt(t, TRUST_DEGRADED, "usage",
		      "In %.1f %% of the requests the server's token count is not the number of token "
		      "events (limit %.0f %%): ITL is then per event, not per token.", 100 * differs,
		      100 * TRUST_USAGE_SHARE);
	if (c->is_full)
		doubt(t, TRUST_DEGRADED, "record_full",
		      "The record reached its limit: later token events are not in it.");
}

/* Of the prompt tokens: what usage calls cached, else what /metrics do. 0 when neither tells. */
static double cached_share(const struct metrics *m)
{
	const struct metrics_server *s = &m->servers;

	if (m->total_cached)
		return share((double)m->total_cached, (double)m->total_input);
	/* A request that was preempted finds its own blocks when it comes back. */
	if (!s->prefix_queries.is_told || !s->prefix_hits.is_told || s->preemptions.value > 0)
		return 0;
	return share(s->prefix_hits.value, s->prefix_queries.value);
}

static void judge_cache(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	double cached = cached_share(m), explained = f->cached_explained;

	if (f->knows_explained && cached - explained > TRUST_CACHED_SHARE)
		doubt(t, TRUST_DEGRADED, "prefix_cache",
		      "The server had %.1f %% of the prompt tokens cached; this run's own prompts "
		      "explain %.1f %% (limit: %.0f %% more). Its prefix cache was warm: use --prompt-salt "
		      "or --reset-prefix-cache.", 100 * cached, 100 * explained,
		      100 * TRUST_CACHED_SHARE);
}

static void judge_clocks(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	double unstamped = share((double)f->reads_without_stamp, (double)f->reads);
	int64_t step = f->clock_step_ns < 0 ? -f->clock_step_ns : f->clock_step_ns;

	if (f->is_kernel_stamped && !m->opts.is_user_stamps && unstamped > TRUST_UNSTAMPED_SHARE)
		doubt(t, TRUST_DEGRADED, "unstamped",
		      "%.1f %% of the reads had no kernel stamp and took the user-space clock (limit "
		      "%.0f %%).", 100 * unstamped, 100 * TRUST_UNSTAMPED_SHARE);
	if (step > TRUST_CLOCK_STEP_NS)
		doubt(t, TRUST_DEGRADED, "clock_step",
		      "The system clock moved by %.3f ms against the monotonic one during the run "
		      "(limit %.0f ms).", (double)f->clock_step_ns / 1e6, TRUST_CLOCK_STEP_NS / 1e6);
}

static void judge_run(struct trust *t, const struct trust_facts *f)
{
	enum trust_verdict level = level_of(f->cpu_share_max, TRUST_CPU_DEGRADED,
					    TRUST_CPU_INVALID);

	if (level != TRUST_VALID)
		doubt(t, level, "client_cpu",
		      "The client's busiest loop used %.0f %% of a CPU (limit %.0f %%).",
		      100 * f->cpu_share_max,
		      100 * (level == TRUST_INVALID ? TRUST_CPU_INVALID : TRUST_CPU_DEGRADED));
	if (f->is_interrupted)
		doubt(t, TRUST_DEGRADED, "interrupted",
		      "The run was interrupted: the numbers cover what had finished by then.");
	if (f->is_aborted)
		doubt(t, TRUST_DEGRADED, "aborted",
		      "The run was stopped because too many requests failed.");
	if (f->is_broken_off)
		doubt(t, TRUST_DEGRADED, "broken_off",
		      "The record file breaks off: requests that had not been written are missing.");
}

void trust_judge(struct trust *t, const struct metrics *m, const struct trust_facts *facts)
{
	*t = (struct trust){ .verdict = TRUST_VALID };
	judge_failures(t, m);
	if (m->completed) {
		judge_skew(t, m);
		judge_send_lag(t, m);
		judge_events(t, m);
		judge_cache(t, m, facts);
	}
	judge_clocks(t, m, facts);
	judge_run(t, facts);
}
