/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - one small rule per source of doubt; see trust.h. */
#include "client/metrics/trust.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"

#define TTFT TRUST_BIT(TRUST_TTFT)
#define TPOT TRUST_BIT(TRUST_TPOT)
#define ITL TRUST_BIT(TRUST_ITL)
#define E2EL TRUST_BIT(TRUST_E2EL)
#define GOODPUT TRUST_BIT(TRUST_GOODPUT)
#define TOKENS (TRUST_BIT(TRUST_OUTPUT) | TRUST_BIT(TRUST_TOTAL))
#define RATES (TRUST_BIT(TRUST_REQUESTS) | TRUST_BIT(TRUST_INPUT) | TOKENS)

/*
 * What each reason spoils at most. Some spoil less, by what was measured: skew and shared_first
 * only the metrics that they move, answer_length TPOT only where the count itself is in doubt,
 * send_lag and clock_step the rates only when enough of the duration is concerned.
 */
static const struct { const char *code; unsigned spoils; } rules[] = {
	{ "no_success", TRUST_EVERYTHING },
	{ "failures", TRUST_EVERYTHING },       /* the others look better than the server is */
	{ "sent_early", TRUST_EVERYTHING },     /* not the requested load; always a bug */
	{ "skew", TTFT | TPOT | ITL | E2EL | GOODPUT },
	{ "send_stall", TTFT | E2EL | GOODPUT },
	{ "send_lag", TTFT | E2EL | GOODPUT | RATES },
	{ "shared_reads", ITL },
	{ "shared_first", TTFT | TPOT | GOODPUT }, /* TPOT begins where TTFT ends */
	{ "unstamped", ITL },
	{ "segments", 0 },
	{ "usage", ITL },                       /* gaps are between events, not between tokens */
	{ "cancelled", E2EL | GOODPUT | RATES }, /* their tokens, and the long answers, are missing */
	{ "answer_at_once", TTFT | TPOT | ITL | GOODPUT },
	{ "several_answers", TPOT | ITL | GOODPUT },
	{ "role_event", TTFT | TPOT | ITL | GOODPUT },
	{ "usage_ignored", TPOT | TRUST_BIT(TRUST_INPUT) | TOKENS | GOODPUT },
	{ "usage_refused", TPOT | TRUST_BIT(TRUST_INPUT) | TOKENS | GOODPUT },
	{ "token_count", TPOT | TOKENS | GOODPUT },
	{ "answer_length", TPOT | E2EL | TOKENS | GOODPUT | TRUST_BIT(TRUST_REQUESTS) },
	{ "prefix_cache", TTFT | E2EL | GOODPUT | RATES },
	{ "slots_empty", TRUST_EVERYTHING },    /* the numbers are those of a lower load */
	{ "rate_not_carried", TTFT | E2EL | GOODPUT },
	{ "queue_growing", TTFT | E2EL | GOODPUT },
	{ "slow_start", TTFT | E2EL | GOODPUT },
	{ "server_restarted", TRUST_EVERYTHING },
	{ "packet_loss", TTFT | TPOT | ITL | E2EL | GOODPUT },
	{ "capture_lost", TRUST_EVERYTHING },   /* long answers are lost more often than short ones */
	{ "capture_dropped", 0 },
	{ "capture_tokens", TPOT | TOKENS | TRUST_BIT(TRUST_INPUT) | GOODPUT },
	{ "no_local_port", TRUST_EVERYTHING },  /* failures that the server did not cause */
	{ "no_descriptor", TRUST_EVERYTHING },
	{ "client_cpu", TRUST_EVERYTHING },
	{ "clock_step", TTFT | TPOT | ITL | E2EL | GOODPUT | RATES },
	{ "record_full", TRUST_EVERYTHING },
	{ "interrupted", TRUST_EVERYTHING },
	{ "aborted", TRUST_EVERYTHING },
	{ "broken_off", TRUST_EVERYTHING },
	{ "lost_process", TRUST_EVERYTHING },
};

const char *trust_name(enum trust_verdict v)
{
	static const char *const names[] = { "VALID", "DEGRADED", "INVALID" };

	return names[v];
}

const char *trust_metric_key(enum trust_metric metric)
{
#define X(name, key) key,
	static const char *const keys[] = { SCHEMA_JUDGED(X) };
#undef X

	return keys[metric];
}

const char *trust_spoils_text(unsigned spoils, char out[TRUST_SPOILS_BYTES])
{
	static const struct { unsigned bits; const char *text; } words[] = {
		{ TTFT, "TTFT" }, { TPOT, "TPOT" }, { ITL, "ITL" }, { E2EL, "E2EL" },
		{ GOODPUT, "goodput" }, { RATES, "throughput" },
		{ TRUST_BIT(TRUST_REQUESTS), "request throughput" },
		{ TRUST_BIT(TRUST_INPUT), "input throughput" }, { TOKENS, "output throughput" },
		{ TRUST_BIT(TRUST_OUTPUT), "output throughput" },
		{ TRUST_BIT(TRUST_TOTAL), "total token throughput" },
	};
	size_t n = 0;

	out[0] = '\0';
	if ((spoils & TRUST_EVERYTHING) == TRUST_EVERYTHING)
		snprintf(out, TRUST_SPOILS_BYTES, "every metric");
	else
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			if ((spoils & words[i].bits) != words[i].bits)
				continue;
			spoils &= ~words[i].bits;
			n += (size_t)snprintf(out + n, TRUST_SPOILS_BYTES - n, "%s%s",
					      n ? ", " : "", words[i].text);
		}
	return out;
}

static unsigned rule_spoils(const char *code)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (strcmp(rules[i].code, code) == 0)
			return rules[i].spoils;
	assert(!"a reason without a row in rules[]");
	return TRUST_EVERYTHING;
}

/* Adds a reason. The caller may narrow what it spoils. */
__attribute__((format(printf, 4, 5)))
static struct trust_reason *doubt(struct trust *t, enum trust_verdict level, const char *code,
				  const char *fmt, ...)
{
	struct trust_reason *r = &t->reason[t->n_reasons];
	va_list ap;

	assert(t->n_reasons < TRUST_REASONS_MAX);
	r->level = level;
	r->spoils = level == TRUST_VALID ? 0 : rule_spoils(code);
	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	t->n_reasons++;
	return r;
}

/* The worst first, each level in the order of the rules; then the verdicts. */
static void conclude(struct trust *t)
{
	for (size_t i = 1; i < t->n_reasons; i++) {
		struct trust_reason r = t->reason[i];
		size_t at = i;

		for (; at > 0 && t->reason[at - 1].level < r.level; at--)
			t->reason[at] = t->reason[at - 1];
		t->reason[at] = r;
	}
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].spoils != TRUST_EVERYTHING)
			t->reason[i].spoils &= ~t->absent;
	for (size_t i = t->n_reasons; i-- > 0;)
		for (int k = 0; k < TRUST_METRIC_COUNT; k++)
			if (t->reason[i].spoils & TRUST_BIT(k))
				t->metric[k] = t->reason[i].level;
	for (int k = 0; k < TRUST_METRIC_COUNT; k++)
		if (t->metric[k] > t->verdict)
			t->verdict = t->metric[k];
}

/* The end of reasons whose cause is this machine: the verb that looks for it. */
#define SEE_DOCTOR " profllm doctor looks for the cause."
/* The end of reasons that a setting of this machine fixes. */
#define DOCTOR_MENDS " profllm doctor shows the command."

/* VALID below the first limit, INVALID above the second. */
static enum trust_verdict level_of(double value, double degraded, double invalid)
{
	if (value > invalid)
		return TRUST_INVALID;
	return value > degraded ? TRUST_DEGRADED : TRUST_VALID;
}

/*
 * A value next to a limit that it breaks, with as many decimals as it takes to see that: "10.04",
 * not "10".
 */
struct shown { char text[32]; };
static struct shown beyond(double value, double limit, int decimals)
{
	struct shown v, l;

	do {
		snprintf(v.text, sizeof(v.text), "%.*f", decimals, value);
		snprintf(l.text, sizeof(l.text), "%.*f", decimals, limit);
	} while (strcmp(v.text, l.text) == 0 && value != limit && decimals++ < 6);
	return v;
}

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* An option of bench serve that helps, but not where the traffic is another client's. */
static const char *advice(const struct trust_facts *f, const char *ours, const char *captured)
{
	return f->is_capture ? captured : ours;
}

static void judge_failures(struct trust *t, const struct metrics *m)
{
	double failed = share(m->failed, (double)m->completed + m->failed);
	enum trust_verdict level = level_of(failed, TRUST_FAILED_DEGRADED, TRUST_FAILED_INVALID);
	double limit = 100 * (level == TRUST_INVALID ? TRUST_FAILED_INVALID
						     : TRUST_FAILED_DEGRADED);

	if (m->completed + m->failed + m->cancelled + m->given_up == 0)
		doubt(t, TRUST_INVALID, "no_success",
		      "The run has no requests: it ended before the first one was due.");
	else if (m->completed == 0)
		doubt(t, TRUST_INVALID, "no_success",
		      "No request succeeded (%u failed, %u cancelled).", m->failed,
		      m->cancelled + m->given_up);
	else if (level != TRUST_VALID)
		doubt(t, level, "failures", "%s %% of the requests failed (limit %.0f %%).",
		      beyond(100 * failed, limit, 1).text, limit);
}

/* Requests that the end of the run cut off; what is cancelled on purpose is not among them. */
static void judge_cancelled(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	uint32_t unsent = m->attempted.unsent < m->cancelled ? m->attempted.unsent : m->cancelled;
	double ran = m->cancelled - unsent, cut = share(ran, m->completed + m->failed + ran);

	if (f->is_interrupted || f->is_aborted || f->is_broken_off || f->capture_lost)
		return; /* these reasons say it */
	if (cut > TRUST_CANCELLED_SHARE)
		doubt(t, TRUST_DEGRADED, "cancelled",
		      "%s %% of the requests were cancelled while they ran (limit %.0f %%): "
		      "throughput leaves out what they were sent, and E2EL is that of the others, whose "
		      "answers are shorter.",
		      beyond(100 * cut, 100 * TRUST_CANCELLED_SHARE, 1).text,
		      100 * TRUST_CANCELLED_SHARE);
}

/*
 * Kernel stamps do not move when the program reads late, so that skew is only worth a note.
 * User-space stamps are the instant of reading: what that adds to each metric is known where the
 * kernel's stamps are also known.
 */
static void judge_skew(struct trust *t, const struct metrics *m)
{
	const struct metrics_shift *s = &m->client.shift;
	const struct { double p99_ms; enum metric_block block; unsigned spoils; } moved[] = {
		{ s->itl_p99_ms, BLOCK_ITL, ITL },
		{ s->ttft_p99_ms, BLOCK_TTFT, TTFT | GOODPUT },
		{ s->tpot_p99_ms, BLOCK_TPOT, TPOT | GOODPUT },
		{ s->e2el_p99_ms, BLOCK_E2EL, E2EL | GOODPUT },
	};
	bool has_itl = m->block[BLOCK_ITL].median_ms > 0;
	double base = m->block[has_itl ? BLOCK_ITL : BLOCK_E2EL].median_ms;
	double p99 = m->client.skew.p99_ms;
	char late[32] = "more than 4.29 s";
	unsigned spoils = 0;

	if (m->client.skew.n == 0 || p99 <= TRUST_SKEW_FLOOR_MS)
		return;
	if (p99 < METRICS_SKEW_MAX_MS)
		snprintf(late, sizeof(late), "%.3f ms", p99);
	if (!m->opts.is_user_stamps) {
		if (p99 > base * TRUST_SKEW_SHARE)
			doubt(t, TRUST_VALID, "skew",
			      "The client read events %s (p99) after they arrived. The times are the "
			      "kernel's arrival stamps, which this does not change.", late);
		return;
	}
	for (size_t i = 0; i < sizeof(moved) / sizeof(*moved); i++)
		if (moved[i].p99_ms > TRUST_SKEW_FLOOR_MS &&
		    moved[i].p99_ms > TRUST_SKEW_SHARE * m->block[moved[i].block].median_ms)
			spoils |= moved[i].spoils;
	if (spoils)
		doubt(t, TRUST_DEGRADED, "skew",
		      "The client read events %s (p99) after they arrived, and --timestamps user "
		      "counts that as the server's time: ITL is wrong by up to %.3f ms (p99), TTFT by "
		      "%.3f ms." SEE_DOCTOR, late, s->itl_p99_ms, s->ttft_p99_ms)->spoils = spoils;
}

/*
 * A closed loop: requests have no due time, and a slot is used again once it is free. A loop that
 * ends before any slot is used twice is a burst, which should begin at one instant.
 */
static bool is_closed_loop(const struct metrics *m)
{
	return m->opts.max_concurrency > 0 && !m->opts.is_rate_finite &&
	       m->client.mean_interarrival_s <= 0 &&
	       m->client.send_lag.n > (size_t)m->opts.max_concurrency;
}

/* The share of the duration that the client's own delay may have added. */
static double lost_share(const struct metrics *m)
{
	const struct metrics_spread *lag = &m->client.send_lag;
	double last = share(lag->p99_ms, m->duration_s * 1000);
	double each = share(lag->mean_ms, lag->mean_ms + m->block[BLOCK_E2EL].mean_ms);

	/* In a closed loop slots wait for every one; else only the last ones count. */
	if (is_closed_loop(m))
		return each;
	return m->opts.max_concurrency && each > last ? each : last;
}

/*
 * Requests in flight are throughput times latency (Little's law). Time lost by the slots of a
 * closed loop is missing from that product, whichever of the two it affects.
 */
static void judge_slots(struct trust *t, const struct metrics *m)
{
	double lost = lost_share(m);

	if (lost > TRUST_LAG_THROUGHPUT)
		doubt(t, TRUST_DEGRADED, "send_lag",
		      "The client sent requests %.3f ms (mean) later than possible, which cost "
		      "%s %% of the time of the %lld slot%s of --max-concurrency (limit %.0f %%): "
		      "fewer requests were in flight than requested, and throughput or latencies "
		      "are too low, by up to that share." SEE_DOCTOR, m->client.send_lag.mean_ms,
		      beyond(100 * lost, 100 * TRUST_LAG_THROUGHPUT, 1).text,
		      (long long)m->opts.max_concurrency, m->opts.max_concurrency == 1 ? "" : "s",
		      100 * TRUST_LAG_THROUGHPUT);
}

/* With a schedule: whether requests were sent on time. */
static void judge_schedule(struct trust *t, const struct metrics *m)
{
	const struct metrics_client *c = &m->client;
	double base = m->opts.is_rate_finite ? c->mean_interarrival_s * 1000
		      : m->block[BLOCK_E2EL].median_ms;
	double limit = base * TRUST_LAG_SHARE, p99 = c->send_lag.p99_ms, lost = lost_share(m);

	if (limit < TRUST_LAG_FLOOR_MS)
		limit = TRUST_LAG_FLOOR_MS;
	if (c->send_lag.n && (p99 > limit || lost > TRUST_LAG_THROUGHPUT))
		doubt(t, TRUST_DEGRADED, "send_lag",
		      "The client sent requests %.3f ms (p99) later than possible (limit %.3f ms), "
		      "which cost %s %% of the duration (limit %.0f %%)."
		      SEE_DOCTOR, p99, limit,
		      beyond(100 * lost, 100 * TRUST_LAG_THROUGHPUT, 1).text,
		      100 * TRUST_LAG_THROUGHPUT)
			->spoils = (p99 > limit ? TTFT | E2EL | GOODPUT : 0) |
				   (lost > TRUST_LAG_THROUGHPUT ? RATES : 0);
}

static void judge_sending(struct trust *t, const struct metrics *m)
{
	const struct metrics_client *c = &m->client;
	double ttft = m->block[BLOCK_TTFT].median_ms;

	if (c->n_sent_early)
		doubt(t, TRUST_INVALID, "sent_early",
		      "%u request%s sent before the planned time: the load is not the requested "
		      "one. Please report this as a bug.", c->n_sent_early,
		      c->n_sent_early == 1 ? " was" : "s were");
	if (is_closed_loop(m))
		judge_slots(t, m);
	else
		judge_schedule(t, m);
	if (!m->opts.is_pooling && c->write.n && c->write.p99_ms > TRUST_SKEW_FLOOR_MS &&
	    c->write.p99_ms > TRUST_STALL_SHARE * ttft)
		doubt(t, TRUST_DEGRADED, "send_stall",
		      "Writing a request took %.3f ms (p99; limit %.0f %% of the median TTFT of %.3f "
		      "ms), which TTFT and E2EL include: the client was interrupted." SEE_DOCTOR,
		      c->write.p99_ms, 100 * TRUST_STALL_SHARE, ttft);
}

static void judge_events(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_client *c = &m->client;
	double late = share((double)c->n_shared_late, (double)c->n_events_with_text);
	double shared = share((double)c->n_shared, (double)c->n_events_with_text);
	double differs = share(c->n_usage_differs, c->n_usage);
	double gaps = (double)m->block[BLOCK_ITL].n;
	double tokens = (double)(c->best_output - m->completed);
	const char *peak = m->opts.is_peak_in_tokens ? "" : ", as is the peak output throughput";
	enum trust_verdict level = level_of(late, TRUST_SHARED_DEGRADED, TRUST_SHARED_INVALID);
	double shared_limit = 100 * (level == TRUST_INVALID ? TRUST_SHARED_INVALID
							    : TRUST_SHARED_DEGRADED);
	double ttft = m->block[BLOCK_TTFT].median_ms, tpot = m->block[BLOCK_TPOT].median_ms;
	unsigned moved = (c->first_late.p99_ms > TRUST_FIRST_SHARE * ttft ? TTFT | GOODPUT : 0) |
			 (c->tpot_late.p99_ms > TRUST_FIRST_SHARE * tpot ? TPOT | GOODPUT : 0);

	if (level != TRUST_VALID)
		doubt(t, level, "shared_reads",
		      "%s %% of the events were read %s, and share "
		      "its arrival stamp (limit %.1f %%): ITL is %s." SEE_DOCTOR,
		      beyond(100 * late, shared_limit, 2).text,
		      c->skew.n ? "late, together with an earlier one"
				: "together with an earlier one, late or because they were sent so",
		      shared_limit,
		      level == TRUST_INVALID ? "not usable" : "distorted");
	else if (shared > TRUST_SHARED_INVALID)
		doubt(t, TRUST_VALID, "shared_reads",
		      "%.1f %% of the events arrived together with an earlier one although the client "
		      "read promptly: the server or the network sends them together, and ITL shows it.",
		      100 * shared);
	if (moved)
		doubt(t, TRUST_DEGRADED, "shared_first",
		      "First tokens were read %stogether with later ones%s have their arrival "
		      "stamp: TTFT is about %.3f ms (p99) too long and TPOT %.3f ms too short%s (limit "
		      "%.0f %% of the median).", c->skew.n ? "late, " : "", c->skew.n ? ", and" : " and",
		      c->first_late.p99_ms, c->tpot_late.p99_ms,
		      c->skew.n ? "" : " if the client was late",
		      100 * TRUST_FIRST_SHARE)->spoils = moved;
	if (f->no_tap && (level != TRUST_VALID || moved))
		doubt(t, TRUST_VALID, "segments",
		      "Events that are read late can each have their own arrival stamp: %s.", f->no_tap);
	if (differs > TRUST_USAGE_SHARE)
		doubt(t, TRUST_DEGRADED, "usage",
		      "In %s %% of the requests the server's token count is not the number of token "
		      "events (limit %.0f %%): ITL is then per event, not per token%s.",
		      beyond(100 * differs, 100 * TRUST_USAGE_SHARE, 1).text,
		      100 * TRUST_USAGE_SHARE, peak);
	else if (gaps > 0 && tokens >= 0 && fabs(gaps - tokens) > TRUST_GAPS_SHARE * tokens)
		doubt(t, TRUST_DEGRADED, "usage",
		      "ITL has %.0f gaps for %.0f tokens after the first ones (limit: %.0f %% apart): it is "
		      "per event, not per token%s.%s%s", gaps, tokens, 100 * TRUST_GAPS_SHARE, peak,
		      gaps > tokens ? " Events without a token make it too short" : "",
		      gaps > tokens ? advice(f, "; --compat role-chunk leaves out those that have only "
						"a role.", ".") : "");
	if (c->is_full)
		doubt(t, TRUST_INVALID, "record_full",
		      "The record reached its limit: later token events are not in it.");
}

/* Where vLLM's interpretation of an answer is not the best: the switch and the right value. */
static void judge_answers(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_client *c = &m->client;
	double answers = TRUST_ANSWERS_SHARE * m->completed;
	double content = c->ttft_content.mean_ms, ttft = m->block[BLOCK_TTFT].mean_ms;
	double output = share(fabs((double)(c->best_output - m->total_output)),
			      (double)c->best_output);
	double input = share(fabs((double)(c->best_input - m->total_input)),
			     (double)c->best_input);
	double unlike = output > input ? output : input;
	enum trust_verdict level = level_of(unlike, TRUST_COUNT_DEGRADED, TRUST_COUNT_INVALID);
	double in_one_piece = share(c->n_at_once, m->completed);
	enum trust_verdict at_once = level_of(in_one_piece, TRUST_ANSWERS_SHARE,
					      TRUST_AT_ONCE_INVALID);
	struct trust_reason *r;

	if (c->n_usage_refused)
		doubt(t, TRUST_DEGRADED, "usage_refused",
		      "The server sent impossible token counts with %.1f %% of the answers: below zero, or "
		      "more than %d times what was asked for (output) or sent (prompt). They are not used; "
		      "those tokens are counted as if the server had sent no count.",
		      100 * share(c->n_usage_refused, m->completed), USAGE_ASKED_FACTOR);
	if (m->opts.is_pooling)
		return;
	if (at_once != TRUST_VALID &&
	    (c->n_at_once >= TRUST_AT_ONCE_ANSWERS || c->n_at_once == m->completed))
		doubt(t, at_once, "answer_at_once",
		      "In %.1f %% of the answers all tokens came at one instant: TTFT is the time of the "
		      "whole answer there, TPOT is 0, and ITL is not known. They were not streamed, or "
		      "something before the client collected them.",
		      100 * in_one_piece);
	if (f->answers > 1)
		doubt(t, TRUST_DEGRADED, "several_answers",
		      "Each request asks for %lld answers, which the server writes at the same time: TPOT and "
		      "ITL are the times between tokens of any of them, and up to %lld times longer for "
		      "one.", (long long)f->answers, (long long)f->answers);
	if (c->n_role_first > answers)
		doubt(t, content > TRUST_ROLE_INVALID * ttft ? TRUST_INVALID : TRUST_DEGRADED,
		      "role_event",
		      "The first event of %.1f %% of the answers has only a role, and TTFT ends with it "
		      "(mean %.3f ms). The first content came after %.3f ms%s",
		      100 * share(c->n_role_first, m->completed), ttft, content,
		      advice(f, "; --compat role-chunk measures that.", "."));
	if (c->n_usage_ignored > answers && level != TRUST_VALID)
		doubt(t, level, "usage_ignored",
		      "The server sends its token counts in an event with choices, where vllm does not "
		      "look: %lld output and %lld input tokens are reported, it says %lld and %lld%s",
		      (long long)m->total_output, (long long)m->total_input,
		      (long long)c->best_output, (long long)c->best_input,
		      advice(f, "; --fix usage takes those.", "."));
	else if (c->n_count_short > answers && output > TRUST_COUNT_DEGRADED)
		doubt(t, level, "token_count",
		      "Only the answer's text is counted, and %.1f %% of the answers have more events "
		      "than that has tokens (reasoning, tool calls): %lld output tokens are reported, "
		      "at least %lld were sent%s",
		      100 * share(c->n_count_short, m->completed), (long long)m->total_output,
		      (long long)c->best_output, advice(f, "; --fix all-text counts all.", "."));
	if (c->n_longer_than_asked + c->n_shorter_than_asked > answers) {
		r = doubt(t, TRUST_DEGRADED, "answer_length",
			  "%.1f %% of the answers are longer than asked for and %.1f %% shorter: the "
			  "server does not follow the length in the request%s",
			  100 * share(c->n_longer_than_asked, m->completed),
			  100 * share(c->n_shorter_than_asked, m->completed),
			  advice(f, ", which --extra-body can set under the name that it reads.", "."));
		/* If usage is wrong, TPOT is divided by tokens that never existed. */
		if (share(c->n_usage_differs, c->n_usage) <= TRUST_USAGE_SHARE)
			r->spoils &= ~TPOT;
	}
}

/*
 * A closed loop that was not as full as --max-concurrency says, over the whole run. A loop with few
 * requests for each slot consists of its start and its end; in a longer one slots stay empty at the
 * end because a few answers are long, which is a note unless most of the time was like that.
 */
static void judge_slots_used(struct trust *t, const struct metrics *m)
{
	const struct metrics_slots *s = &m->client.slots;
	double cap = (double)m->opts.max_concurrency, used = share(s->in_flight_mean, cap);
	double rounds = share(s->requests, cap), enough = TRUST_SLOTS_ENOUGH * cap;
	double least = rounds < TRUST_SLOTS_ROUNDS ? TRUST_SLOTS_DEGRADED
						   : TRUST_SLOTS_DEGRADED_LONG;
	enum trust_verdict level = used < least ? TRUST_DEGRADED : TRUST_VALID;

	if (!s->is_known || lost_share(m) > TRUST_LAG_THROUGHPUT)
		return; /* the client's own delay: send_lag reports it */
	if (m->sessions.n && rounds < 1)
		doubt(t, TRUST_DEGRADED, "slots_empty",
		      "The run has %u conversation%s, so at most that many of the %.0f slots of "
		      "--max-concurrency were in use: this is not the load of %.0f requests at once. "
		      "Give it more conversations, or lower --max-concurrency.", s->requests,
		      s->requests == 1 ? "" : "s", cap, cap);
	else if (m->sessions.n)
		return;
	else if (rounds < 1)
		doubt(t, level, "slots_empty",
		      "The run has %u request%s for the %.0f slots of --max-concurrency: %.1f were in "
		      "flight on average (limit %.1f). This is not the load of %.0f at once; "
		      "--num-prompts %.0f or more is.", s->requests, s->requests == 1 ? "" : "s", cap,
		      s->in_flight_mean, least * cap, cap, enough);
	else if (used < TRUST_SLOTS_NOTE)
		doubt(t, level, "slots_empty",
		      "On average %s requests were in flight, not the %.0f of --max-concurrency "
		      "(limit %.1f), because slots are empty at the end of a run: throughput is up to "
		      "%.0f %% lower than in a long run at %.0f. Give it more requests for each slot "
		      "(--num-prompts %.0f).", beyond(s->in_flight_mean, least * cap, 1).text, cap,
		      least * cap, 100 * (1 - used), cap, fmax(enough, 2.0 * s->requests));
}

/* How many requests at once the client allows: one for each conversation. 0: any number. */
static int64_t cap_of(const struct metrics *m)
{
	return m->opts.max_concurrency ? m->opts.max_concurrency : m->opts.max_sessions;
}

/*
 * Requests with a due time that waited in the client for a slot of --max-concurrency or
 * --max-sessions: true if that is reported. TTFT and E2EL begin when a request is sent.
 */
static bool judge_held(struct trust *t, const struct metrics *m, bool is_queue_held)
{
	const struct metrics_held *h = &m->client.held;
	const struct metrics_schedule *s = &m->client.schedule;
	double ttft = m->block[BLOCK_TTFT].mean_ms, e2el = m->block[BLOCK_E2EL].mean_ms;
	int64_t slots = cap_of(m);
	const char *cap = m->opts.max_concurrency ? "--max-concurrency" : "--max-sessions";
	bool is_long = h->mean_ms > TRUST_LAG_FLOOR_MS;
	unsigned moved = (is_long && ttft > 0 && h->mean_ms > TRUST_HELD_SHARE * ttft ? TTFT : 0) |
			 (is_long && h->mean_ms > TRUST_HELD_SHARE * e2el ? E2EL : 0);

	if (h->n == 0 || !(moved || is_queue_held))
		return false;
	doubt(t, TRUST_DEGRADED, "rate_not_carried",
	      "%.0f %% of the requests waited in the client for one of %lld slot%s of "
	      "%s, %.3f ms on average over all, which TTFT and E2EL leave out: "
	      "requests planned over %.3f s were sent over %.3f s. The load was not the planned one; a "
	      "higher %s shows whether the server sustains that.", 100 * h->share, (long long)slots,
	      slots == 1 ? "" : "s", cap, h->mean_ms, s->planned_span_s, s->sent_span_s, cap)
		->spoils = (moved ? moved : TTFT | E2EL) | GOODPUT;
	return true;
}

/* Of a short run at a rate the end, in which nothing arrives, is a large part. */
static void judge_end(struct trust *t, const struct metrics *m)
{
	const struct metrics_schedule *s = &m->client.schedule;
	double end = m->duration_s - s->sent_span_s;

	if (m->client.queue.is_known && s->n && !m->sessions.n &&
	    end > TRUST_END_NOTE * m->duration_s)
		doubt(t, TRUST_VALID, "long_end",
		      "Requests were sent for %.1f s of the %.1f s, and the last answers took the rest. "
		      "Throughput is of all that time, so it is below the rate of the requests even where "
		      "the server keeps up. Give the run more time (--num-prompts, --duration).",
		      s->sent_span_s, m->duration_s);
}

/* An open loop's server that answers fewer requests than arrive. */
static void judge_queue(struct trust *t, const struct metrics *m)
{
	const struct metrics_queue *q = &m->client.queue;
	double missing = (double)q->arrived - q->answered - q->longer;
	double noise = 3 * sqrt((double)q->in_flight_before + q->in_flight_after);
	bool is_growing = q->is_known && missing > TRUST_NOT_CARRIED * q->arrived &&
			  missing > noise;

	if (lost_share(m) > TRUST_LAG_THROUGHPUT)
		return; /* the client itself was late: send_lag reports it */
	if (judge_held(t, m, is_growing && q->in_flight_after > cap_of(m)))
		return;
	if (is_growing)
		doubt(t, TRUST_DEGRADED, "rate_not_carried",
		      "Requests arrived at %.2f/s and were answered at %.2f/s: the server cannot "
		      "sustain this rate, %u were unanswered when the last one arrived, and the "
		      "latencies depend on how long the run was.", q->offered_rps, q->carried_rps,
		      q->in_flight_after);
	else if (q->is_known && q->knows_growth && q->growth_p < TRUST_QUEUE_P &&
		 q->ttft_last_ms > TRUST_QUEUE_GROWTH * q->ttft_first_ms)
		doubt(t, TRUST_DEGRADED, "queue_growing",
		      "The median TTFT grew from %.3f ms in the first third of the run to %.3f ms in "
		      "the last: the queue was still growing, and a longer run would be slower.",
		      q->ttft_first_ms, q->ttft_last_ms);
	else if (q->knows_waiting && q->waiting_p < TRUST_QUEUE_P &&
		 q->waiting_last > TRUST_QUEUE_GROWTH * q->waiting_first)
		doubt(t, TRUST_DEGRADED, "queue_growing",
		      "The mean number of requests that waited for their first token grew from %.1f in "
		      "the first third of the run to %.1f in the last: the queue was still growing, and "
		      "a longer run would be slower.",
		      q->waiting_first, q->waiting_last);
	else
		judge_end(t, m);
}

/* Cached share of the prompt tokens: by usage, else by /metrics. 0 if neither reports it. */
static double cached_share(const struct metrics *m)
{
	const struct metrics_server *s = &m->servers;

	if (m->total_cached)
		return share((double)m->total_cached, (double)m->total_input);
	/* A request that was preempted finds its own blocks when it comes back. */
	if (!s->prefix_queries.is_reported || !s->prefix_hits.is_reported ||
	    s->preemptions.value > 0)
		return 0;
	return share(s->prefix_hits.value, s->prefix_queries.value);
}

/* Slow first requests. If all clients begin at once, that alone may slow them. */
static void judge_start(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_start *s = &m->client.start;
	double longer = share(s->mean_ms - s->mean_rest_ms, s->mean_rest_ms);
	char warm_up[80];

	if (!s->is_known || s->p > TRUST_START_P ||
	    s->ttft_first_ms <= TRUST_START_RATIO * s->ttft_rest_ms ||
	    (longer <= TRUST_START_MEAN && s->first <= TRUST_START_SHARE * s->n))
		return;
	snprintf(warm_up, sizeof(warm_up), " --num-warmups %u sends such requests before the measurement.",
		 s->first);
	doubt(t, m->opts.is_rate_finite ? TRUST_DEGRADED : TRUST_VALID, "slow_start",
	      "The first %u requests had a median TTFT of %.3f ms, the others of %.3f ms: %s, and the "
	      "mean TTFT is %.1f %% longer for it.%s", s->first, s->ttft_first_ms, s->ttft_rest_ms,
	      !m->opts.is_rate_finite ? "the server was cold, or it had to start all of them at once" :
	      cached_share(m) > TRUST_CACHED_SHARE ? "the server or its prefix cache was cold"
						   : "the server was cold",
	      100 * longer, advice(f, warm_up, ""));
}

static void judge_cache(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	double cached = cached_share(m), explained = f->cached_explained;

	/* /metrics count the prompt once for each answer, and all but the first find it. */
	if (!m->total_cached && f->answers > 1)
		explained = (explained + (double)f->answers - 1) / (double)f->answers;
	if (f->knows_explained && cached - explained > TRUST_CACHED_SHARE)
		doubt(t, TRUST_DEGRADED, "prefix_cache",
		      "The server had %.1f %% of the prompt tokens cached; this run's own prompts "
		      "explain %.1f %% (limit: %.0f %% more). Its prefix cache was warm: use "
		      "--prompt-salt run or --reset-prefix-cache.", 100 * cached, 100 * explained,
		      100 * TRUST_CACHED_SHARE);
}

static void judge_clocks(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	double unstamped = share((double)f->reads_without_stamp, (double)f->reads);
	double step_ms = fabs((double)f->clock_step_ns / 1e6);
	bool is_large = m->completed &&
			step_ms > TRUST_SKEW_SHARE * m->block[BLOCK_E2EL].median_ms;
	struct trust_reason *r;

	if (f->is_kernel_stamped && !m->opts.is_user_stamps && unstamped > TRUST_UNSTAMPED_SHARE)
		doubt(t, TRUST_DEGRADED, "unstamped",
		      "%s %% of the reads had no kernel stamp and took the user-space clock (limit "
		      "%.0f %%)." SEE_DOCTOR,
		      beyond(100 * unstamped, 100 * TRUST_UNSTAMPED_SHARE, 1).text,
		      100 * TRUST_UNSTAMPED_SHARE);
	if (step_ms > TRUST_CLOCK_STEP_NS / 1e6) {
		r = doubt(t, is_large ? TRUST_INVALID : TRUST_DEGRADED, "clock_step",
			  "The system clock moved by %.3f ms against the monotonic one during the run "
			  "(limit %.0f ms)." SEE_DOCTOR, (double)f->clock_step_ns / 1e6,
			  TRUST_CLOCK_STEP_NS / 1e6);
		if (step_ms <= TRUST_STEP_SHARE * m->duration_s * 1000)
			r->spoils &= ~(unsigned)RATES;
	}
}

static void judge_run(struct trust *t, const struct trust_facts *f)
{
	if (f->cpu_share_max > TRUST_CPU_INVALID)
		doubt(t, TRUST_INVALID, "client_cpu",
		      "The client's busiest loop used %s %% of a CPU (limit %.0f %%): it may be the "
		      "bottleneck.", beyond(100 * f->cpu_share_max, 100 * TRUST_CPU_INVALID, 0).text,
		      100 * TRUST_CPU_INVALID);
	else if (f->cpu_share_max > TRUST_CPU_NOTE)
		doubt(t, TRUST_VALID, "client_cpu",
		      "The client's busiest loop used %.0f %% of a CPU; above %.0f %% the run is "
		      "INVALID. --threads adds loops.", 100 * f->cpu_share_max,
		      100 * TRUST_CPU_INVALID);
	if (f->is_interrupted)
		doubt(t, TRUST_DEGRADED, "interrupted",
		      "The run was interrupted: the numbers cover what had finished by then.");
	if (f->is_aborted)
		doubt(t, TRUST_DEGRADED, "aborted",
		      "The run was stopped because too many requests failed.");
	if (f->lost)
		doubt(t, TRUST_INVALID, "lost_process",
		      "%llu request%s missing: a process that mpirun had started was lost. The load "
		      "was not the requested one.", (unsigned long long)f->lost,
		      f->lost == 1 ? " is" : "s are");
	if (f->is_broken_off)
		doubt(t, TRUST_DEGRADED, "broken_off",
		      "The record file breaks off: requests that had not been written are missing.");
}

/* What the machine withheld. The damage has separate rules; these notes name the cause. */
static void judge_machine(struct trust *t, const struct trust_facts *f)
{
	if (f->wait_share_max > TRUST_WAIT_NOTE)
		doubt(t, TRUST_VALID, "client_wait",
		      "A loop of the client was ready to run and waited for a processor for %s %% of "
		      "the run (limit %.0f %%): other programs use its core. Give it a core of its own."
		      SEE_DOCTOR, beyond(100 * f->wait_share_max, 100 * TRUST_WAIT_NOTE, 0).text,
		      100 * TRUST_WAIT_NOTE);
	if (f->throttled_share > TRUST_THROTTLED_NOTE)
		doubt(t, TRUST_VALID, "client_throttled",
		      "A CPU quota stopped the client for %s %% of the run (limit %.0f %%): raise the "
		      "quota of its container or control group." DOCTOR_MENDS,
		      beyond(100 * f->throttled_share, 100 * TRUST_THROTTLED_NOTE, 0).text,
		      100 * TRUST_THROTTLED_NOTE);
	if (f->no_ports)
		doubt(t, TRUST_DEGRADED, "no_local_port",
		      "%llu connection%s could not be opened because this machine had no local port "
		      "left: these failures are not the server's. Widen "
		      "net.ipv4.ip_local_port_range, add --source-addresses, or lower "
		      "--max-concurrency." DOCTOR_MENDS,
		      (unsigned long long)f->no_ports, f->no_ports == 1 ? "" : "s");
	else if (f->ports && (double)f->connections_most > TRUST_RESERVE_NOTE * (double)f->ports)
		doubt(t, TRUST_VALID, "no_local_port",
		      "%llu connections were open at once, and this machine has %llu local ports (limit "
		      "%.0f %% of them): with more, connecting fails." DOCTOR_MENDS,
		      (unsigned long long)f->connections_most, (unsigned long long)f->ports,
		      100 * TRUST_RESERVE_NOTE);
	if (f->no_descriptors)
		doubt(t, TRUST_DEGRADED, "no_descriptor",
		      "%llu connection%s could not be opened because the program may have no more than "
		      "%llu open files: these failures are not the server's. Raise the limit with "
		      "ulimit -n." DOCTOR_MENDS, (unsigned long long)f->no_descriptors,
		      f->no_descriptors == 1 ? "" : "s",
		      (unsigned long long)f->descriptors);
	else if (f->descriptors &&
		 (double)f->connections_most > TRUST_RESERVE_NOTE * (double)f->descriptors)
		doubt(t, TRUST_VALID, "no_descriptor",
		      "%llu connections were open at once, and the program may have %llu open files "
		      "(limit %.0f %% of them): with more, connecting fails. ulimit -n raises it."
		      DOCTOR_MENDS,
		      (unsigned long long)f->connections_most, (unsigned long long)f->descriptors,
		      100 * TRUST_RESERVE_NOTE);
}

/* Traffic of another client: what the capture lacks, and what the server did not report. */
static void judge_capture(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	double requests = (double)m->completed + m->failed + (double)f->capture_lost;
	double lost = share((double)f->capture_lost, requests);

	if (f->capture_lost)
		doubt(t, lost > TRUST_CAPTURE_LOST ? TRUST_DEGRADED : TRUST_VALID, "capture_lost",
		      "The capture lacks packets of %s %% of the requests (limit %.0f %%), which "
		      "are not in the numbers; long answers are affected more often than short "
		      "ones.%s",
		      beyond(100 * lost, 100 * TRUST_CAPTURE_LOST, 1).text,
		      100 * TRUST_CAPTURE_LOST,
		      f->capture_dropped ? " The capturing machine "
		      "dropped packets: narrow the capture with --interface and --host, or write it to a "
		      "file with tcpdump -B." : "");
	else if (f->capture_dropped)
		doubt(t, TRUST_VALID, "capture_dropped",
		      "The capture dropped %llu packets, none of which belonged to a request that was "
		      "seen; requests that it missed altogether are not counted.",
		      (unsigned long long)f->capture_dropped);
	if (f->capture_counted || f->capture_prompts)
		doubt(t, TRUST_DEGRADED, "capture_tokens",
		      "The server sent no token counts for %llu request%s, because the client did not ask "
		      "for them (stream_options.include_usage): the prompt tokens are not known%s.",
		      (unsigned long long)f->capture_prompts, f->capture_prompts == 1 ? "" : "s",
		      f->capture_counted
		      ? ", and each event with text is taken as one output token; --tokenizer counts the "
		      "text" : "")
			->spoils &= f->capture_counted ? TRUST_EVERYTHING : TRUST_BIT(TRUST_INPUT) |
							 TRUST_BIT(TRUST_TOTAL);
}

static void judge_network(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_client *c = &m->client;
	double requests = (double)m->completed + m->failed;
	double answer = m->block[m->opts.is_pooling ? BLOCK_E2EL : BLOCK_TTFT].median_ms;
	double resent = share((double)f->resent, requests);
	double early = share((double)f->out_of_order, (double)c->n_events_with_text);

	if (resent > TRUST_RESENT_SHARE || early > TRUST_EARLY_SHARE)
		doubt(t, TRUST_DEGRADED, "packet_loss",
		      "The network lost segments: for %.1f %% of the requests the client sent one again "
		      "(limit %.0f %%), and %.1f %% of the events arrived before an earlier segment "
		      "(limit %.1f %%). The latencies contain the time to repair that; repair the "
		      "network, or measure from a machine next to the server.", 100 * resent,
		      100 * TRUST_RESENT_SHARE, 100 * early, 100 * TRUST_EARLY_SHARE)
			->spoils = early > TRUST_EARLY_SHARE ? TTFT | TPOT | ITL | E2EL | GOODPUT
							     : TTFT | E2EL | GOODPUT;
	if (c->connect.n > TRUST_CONNECT_REQUESTS * requests &&
	    c->connect.p99_ms > TRUST_LAG_FLOOR_MS &&
	    c->connect.p99_ms > TRUST_CONNECT_SHARE * answer)
		doubt(t, TRUST_VALID, "slow_connect",
		      "Opening a connection took %.3f ms (p99), against a median %s of %.3f ms. "
		      "%s when the request is written; users wait for both.%s",
		      c->connect.p99_ms, m->opts.is_pooling ? "E2EL" : "TTFT", answer,
		      m->opts.is_pooling ? "E2EL begins" : "TTFT and E2EL begin",
		      advice(f, " --warm-connections opens connections before the measurement.", ""));
	if ((double)f->resolve_ns / 1e6 > TRUST_RESOLVE_NOTE_MS)
		doubt(t, TRUST_VALID, "slow_dns",
		      "Looking up the server's name took %.3f ms (limit %.0f ms). No number contains "
		      "that, because names are looked up before the clock starts; clients that look "
		      "them up for each connection would wait for it.", (double)f->resolve_ns / 1e6,
		      TRUST_RESOLVE_NOTE_MS);
}

/* The highest percentile that so few requests leave without an upper bound. */
static void judge_sample(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	enum metric_block b = m->opts.is_pooling ? BLOCK_E2EL : BLOCK_TTFT;
	const struct percentile *open = NULL, *bounds = m->block[b].bounds; /* median first */
	char name[FMT_F64_BYTES];
	double p = 0;

	for (size_t i = 0; bounds && i < m->opts.n_percentiles; i++)
		if (bounds[1 + i].marks & PERCENTILE_OPEN && m->opts.percentile[i] > p) {
			open = &bounds[1 + i];
			p = m->opts.percentile[i];
		}
	if (open)
		doubt(t, TRUST_VALID, "few_requests",
		      "p%s of %zu request%s has no upper bound: too few of them lie beyond it, and another "
		      "run would give another value. From %zu requests on it has one%s",
		      metrics_percentile_name(name, p), open->n, open->n == 1 ? "" : "s", open->needed,
		      advice(f, " (--num-prompts).", "; capture longer."));
}

static void judge_server(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_outage *o = &m->client.outage;

	if (m->servers.is_restarted)
		doubt(t, TRUST_DEGRADED, "server_restarted",
		      "The counters of the server's /metrics began again during the run: it was "
		      "restarted, or several servers answer at one address.");
	else if (o->requests && !f->no_ports && !f->no_descriptors) /* else the client's fault */
		doubt(t, TRUST_DEGRADED, "server_restarted",
		      "From %.3f s on the server took no connections for %.3f s, in which %u request%s "
		      "failed, and then answered again: it was restarted. Measure again once it is up.",
		      o->start_s, o->duration_s, o->requests, o->requests == 1 ? "" : "s");
}

/* Answers that were cut off count as wrong, whatever the server makes of constraints. */
static void judge_cut_answers(struct trust *t, const struct metrics *m)
{
	const struct metrics_correctness *c = &m->correctness;
	uint32_t cut = c->wrong[WRONG_TRUNCATED];

	if (cut > TRUST_CUT_SHARE * c->constrained_scored)
		doubt(t, TRUST_VALID, "constraints_truncated",
		      "%u of %u constrained answers were cut off at the length that was asked for and "
		      "count as wrong, although they might have become right. Ask for longer answers: "
		      "--output-len, with bench serve --structured-output-len.", cut,
		      c->constrained_scored);
}

/*
 * Whether the server knows the member with the constraints: a server that does not returns free
 * text instead of JSON, never JSON that the schema forbids.
 */
static void judge_constraints(struct trust *t, const struct metrics *m, const struct trust_facts *f)
{
	const struct metrics_correctness *c = &m->correctness;
	uint32_t free_text = c->wrong[WRONG_PARSE] + c->wrong[WRONG_MATCH];
	bool is_old, is_response;

	if (!f->told_by || c->constrained_scored < TRUST_IGNORED_ANSWERS ||
	    c->wrong[WRONG_SCHEMA] ||
	    c->constrained_correct > TRUST_IGNORED_SHARE * c->constrained_scored ||
	    free_text < (1 - TRUST_IGNORED_SHARE) * c->constrained_scored)
		return;
	is_old = strncmp(f->told_by, "guided_", strlen("guided_")) == 0;
	is_response = strcmp(f->told_by, "response_format") == 0;
	doubt(t, TRUST_VALID, "constraints_ignored",
	      "%u of %u constrained answers are free text. The server seems to ignore \"%s\", the key "
	      "that it was sent; --constraint-form %s sends %s.", free_text, c->constrained_scored,
	      f->told_by, is_old || is_response ? "structured_outputs" : "guided",
	      is_old || is_response ? "that key of vLLM since 0.11" :
				      "guided_json and its like, as vLLM before 0.11 has them");
}

void trust_judge(struct trust *t, const struct metrics *m, const struct trust_facts *facts)
{
	*t = (struct trust){ .verdict = TRUST_VALID,
			     .absent = m->opts.is_pooling ? TTFT | TPOT | ITL | GOODPUT : 0 };
	judge_failures(t, m);
	if (m->completed) {
		judge_cancelled(t, m, facts);
		judge_queue(t, m); /* before send_lag: of the two it weighs more */
		judge_skew(t, m);
		judge_sending(t, m);
		judge_events(t, m, facts);
		judge_answers(t, m, facts);
		judge_slots_used(t, m);
		judge_start(t, m, facts);
		judge_sample(t, m, facts);
		judge_server(t, m, facts);
		judge_cache(t, m, facts);
		judge_cut_answers(t, m);
		judge_constraints(t, m, facts);
		judge_network(t, m, facts);
		judge_capture(t, m, facts);
	}
	judge_clocks(t, m, facts);
	judge_machine(t, facts);
	judge_run(t, facts);
	conclude(t);
}
