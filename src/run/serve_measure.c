/* SPDX-License-Identifier: Apache-2.0 */
/* serve_measure.c - what is measured beside the requests: /metrics, the steady state. */
#include <math.h>
#include <string.h>

#include "http/url.h"
#include "run/serve_check.h"

#define INTERVAL_S_MIN 0.01 /* below, reading /metrics would be a load of its own */

/* One, or several with commas between. */
static int check_urls(const struct check *c)
{
	struct str rest = str_of(c->o->metrics_url);
	struct url url;

	while (rest.n)
		if (url_parse(str_trim(str_cut(&rest, ',')), &url, c->e) < 0) {
			c->e->code = ERR_USAGE;
			return err_wrap(c->e, "--metrics-url");
		}
	return 0;
}

static int check_metrics(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (o->metrics_interval > 0 && o->metrics_interval < INTERVAL_S_MIN)
		return err_set(c->e, ERR_USAGE, "--metrics-interval: expected 0 or at least %g seconds, "
			       "got %g", INTERVAL_S_MIN, o->metrics_interval);
	return check_urls(c);
}

static void check_steady(const struct check *c)
{
	static const char *const names[] = { "steady-state-threshold", "steady-state-min-window" };
	const char *why = c->o->no_steady_state ? "with --no-steady-state"
			  : !c->d->max_concurrency ? "without --max-concurrency"
			  : !isinf(c->o->request_rate) ? "with a finite --request-rate" : NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (why && serve_given(c, names[i]))
			serve_warn(c, "--%s has no effect %s", names[i], why);
}

static void check_unused(const struct check *c)
{
	static const char *const names[] = { "metrics-interval", "metrics-url" };
	const struct serve_opts *o = c->o;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if ((c->d->compat & COMPAT_V011) && serve_given(c, names[i]))
			serve_warn(c, "--%s has no effect: v0.11 does not read /metrics", names[i]);
	if (o->probe_request_rate < 0)
		serve_warn(c, "--probe-request-rate %g has no effect: only rates above 0 have one",
			   o->probe_request_rate);
	if (o->live && o->disable_tqdm)
		serve_warn(c, "--live has no effect with --disable-tqdm");
	if (o->profile && o->profile_batch_threshold.is_set)
		serve_warn(c, "--profile has no effect with --profile-batch-threshold, which starts "
			   "the profiler");
}

int serve_check_measure(const struct check *c)
{
	check_unused(c);
	check_steady(c);
	return check_metrics(c);
}
