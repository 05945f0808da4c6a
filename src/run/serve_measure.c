/* SPDX-License-Identifier: Apache-2.0 */
/* serve_measure.c - what is measured beside the requests: /metrics, the steady state. */
#include <math.h>
#include <string.h>

#include "http/url.h"
#include "run/serve_check.h"

#define INTERVAL_S_MIN 0.01 /* below, reading /metrics would be a load of its own */

static int check_metrics(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct url url;

	if (o->metrics_interval > 0 && o->metrics_interval < INTERVAL_S_MIN)
		return err_set(c->e, ERR_USAGE, "--metrics-interval: expected 0 or at least %g seconds, "
			       "got %g", INTERVAL_S_MIN, o->metrics_interval);
	if (o->metrics_url && url_parse(str_of(o->metrics_url), &url, c->e) < 0) {
		c->e->code = ERR_USAGE;
		return err_wrap(c->e, "--metrics-url");
	}
	return 0;
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

int serve_check_measure(const struct check *c)
{
	check_steady(c);
	return check_metrics(c);
}
