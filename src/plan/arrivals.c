/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals.c - due times by upstream's recipe (serve spec 2.5 and 2.10).
 *
 * Each request has a rate: the one asked for, or a point on the ramp. The gap
 * before it is drawn for that rate, the gaps are added up from left to right,
 * and without a ramp the sums are stretched so that the last is n / rate. The
 * order of the floating-point operations is part of the contract: due times
 * equal upstream's to the last bit, and so do the draws left to later stages.
 *
 * Trace times are taken as they are. Upstream sends requests in file order and
 * never waits backwards, so a time before its predecessor's is due with it, and
 * a missing or negative one at once. What is due more than a year after the start
 * (DUE_S_MAX) is refused: it is a trace in another unit than seconds.
 */
#include <math.h>

#include "base/fmt.h"
#include "base/limits.h"
#include "base/mem.h"
#include "plan/entries.h"

/* The rate that holds when request i of n leaves. */
static double rate_at(const struct plan_opts *o, uint32_t i, uint32_t n)
{
	double progress = (double)i / (n > 1 ? (double)(n - 1) : 1.0);

	switch (o->ramp_up) {
	case RAMP_LINEAR:
		return o->ramp_start_rps + (o->ramp_end_rps - o->ramp_start_rps) * progress;
	case RAMP_EXPONENTIAL:
		return o->ramp_start_rps *
		       pow(o->ramp_end_rps / o->ramp_start_rps, progress);
	case RAMP_NONE:
		break;
	}
	return o->request_rate;
}

/* The gap before a request, in seconds. */
static double gap_s(double rate, double burstiness, struct legacy *np)
{
	if (isinf(rate))
		return 0.0;
	if (isinf(burstiness))
		return 1.0 / rate;
	return legacy_gamma(np, burstiness, 1.0 / (rate * burstiness));
}

/* Logs every whole rate above *last up to this one, and moves *last there. */
static int log_ramp(struct plan *p, uint32_t entry, double rate, double *last, struct err *e)
{
	double whole = trunc(rate);

	if (!(whole > *last))
		return 0;
	if (whole >= 0x1p53 || whole - *last > (double)(RAMP_EVENTS_MAX - p->n_ramp))
		return err_set(e, ERR_LIMIT, "the ramp-up passes more than %u whole rates; "
			       "choose an end rate nearer to the start", RAMP_EVENTS_MAX);
	p->ramp = mem_grow(p->ramp, p->n_ramp + (size_t)(whole - *last), sizeof(*p->ramp));
	while (*last < whole) {
		*last += 1.0;
		p->ramp[p->n_ramp++] = (struct plan_ramp){ (int64_t)*last, entry };
	}
	return 0;
}

static int draw(struct plan *p, const struct plan_opts *o, struct legacy *np, struct err *e)
{
	double due = 0, last = trunc(o->ramp_start_rps);
	char text[FMT_F64_BYTES];

	for (uint32_t i = 0; i < p->n; i++) {
		double rate = rate_at(o, i, p->n);

		if (!(rate > 0))
			return err_set(e, ERR_RUN, "Obtained non-positive request rate %s.",
				       fmt_f64(text, rate));
		if (o->ramp_up != RAMP_NONE && log_ramp(p, i, rate, &last, e) < 0)
			return -1;
		due = i ? due + gap_s(rate, o->burstiness, np) : gap_s(rate, o->burstiness, np);
		p->entry[i].due_s = due;
	}
	return 0;
}

static void rescale(struct plan *p, double rate)
{
	double last = p->entry[p->n - 1].due_s, factor;

	if (last == 0)
		return;
	factor = (double)p->n / rate / last;
	for (uint32_t i = 0; i < p->n; i++)
		p->entry[i].due_s *= factor;
}

static void take_trace(struct plan *p, const double *timestamps_s)
{
	double due = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (timestamps_s[i] > due)
			due = timestamps_s[i];
		p->entry[i].due_s = due;
	}
}

/* What is wrong with a time that is more than a year away, by the times clocks show today. */
static const char *unit_of(double due_s)
{
	static const struct { double from, to; const char *text; } unit[] = {
		{ 1e9, 1e10, "seconds since 1970: subtract the first one from all" },
		{ 1e12, 1e13, "milliseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.001" },
		{ 1e15, 1e16, "microseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.000001" },
		{ 1e18, 1e19, "nanoseconds since 1970: subtract the first one from all and use "
			      "--timed-trace-sec-multiplier 0.000000001" },
	};

	for (size_t i = 0; i < sizeof(unit) / sizeof(*unit); i++)
		if (due_s >= unit[i].from && due_s < unit[i].to)
			return unit[i].text;
	return "milliseconds or less: use --timed-trace-sec-multiplier 0.001";
}

static int refuse(const struct plan_opts *o, uint32_t entry, double due_s, struct err *e)
{
	char due[FMT_F64_BYTES], rate[FMT_F64_BYTES], shape[FMT_F64_BYTES];

	fmt_f64(due, isnan(due_s) ? INFINITY : due_s); /* inf - inf on the way */
	if (o->timestamps_s)
		return err_set(e, ERR_USAGE, "timestamps: request %u is due %s s after the start, "
			       "expected at most a year (%d s); they look like %s", entry, due,
			       DUE_S_MAX, unit_of(due_s));
	if (o->ramp_up != RAMP_NONE)
		return err_set(e, ERR_USAGE, "--ramp-up-start-rps %s (--burstiness %s): request %u is "
			       "due %s s after the start, expected at most a year (%d s); use a higher "
			       "rate", fmt_f64(rate, o->ramp_start_rps), fmt_f64(shape, o->burstiness),
			       entry, due, DUE_S_MAX);
	return err_set(e, ERR_USAGE, "--request-rate %s (--burstiness %s): request %u is due %s s "
		       "after the start, expected at most a year (%d s); use a higher rate",
		       fmt_f64(rate, o->request_rate), fmt_f64(shape, o->burstiness), entry, due,
		       DUE_S_MAX);
}

/* A schedule that is too long to wait for, or that overflows, is a mistake in the options. */
static int check(const struct plan *p, const struct plan_opts *o, struct err *e)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!(p->entry[i].due_s >= 0 && p->entry[i].due_s <= DUE_S_MAX))
			return refuse(o, i, p->entry[i].due_s, e);
	return 0;
}

/* The mean gap of a ramp is the mean of 1 / rate over it. */
double plan_count(const struct plan_opts *o, double seconds)
{
	double start = o->ramp_start_rps, end = o->ramp_end_rps, mean_gap_s;

	if (o->ramp_up == RAMP_NONE)
		return isinf(o->request_rate) ? INFINITY : round(o->request_rate * seconds);
	if (start == end)
		mean_gap_s = 1.0 / start;
	else if (o->ramp_up == RAMP_LINEAR)
		mean_gap_s = log(end / start) / (end - start);
	else
		mean_gap_s = (1.0 / start - 1.0 / end) / log(end / start);
	return round(seconds / mean_gap_s);
}

int plan_arrivals(struct plan *p, uint32_t n, const struct plan_opts *opts,
		  struct compat_rng *rng, struct err *e)
{
	char text[FMT_F64_BYTES];
	int rc = -1;

	*p = (struct plan){ 0 };
	if (!(opts->burstiness > 0))
		return err_set(e, ERR_RUN,
			       "A positive burstiness factor is expected, but given %s.",
			       fmt_f64(text, opts->burstiness));
	if (!n)
		return err_set(e, ERR_RUN, "No requests provided.");
	if (n > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%u requests are more than the %u of one run",
			       n, REQUESTS_MAX);
	plan_entries(p, n);
	if (opts->timestamps_s)
		take_trace(p, opts->timestamps_s);
	else if (draw(p, opts, &rng->np, e) < 0)
		goto done;
	else if (opts->ramp_up == RAMP_NONE)
		rescale(p, opts->request_rate);
	rc = check(p, opts, e);
done:
	if (rc < 0)
		plan_release(p);
	return rc;
}
