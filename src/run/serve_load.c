/* SPDX-License-Identifier: Apache-2.0 */
/* serve_load.c - options about how load is made that upstream does not have. */
#include <math.h>

#include "base/clock.h"
#include "base/limits.h"
#include "http/url.h"
#include "run/serve_check.h"

static int check_duration(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;

	d->is_num_prompts_given = serve_given(c, "num-prompts");
	if (!o->duration.is_set) {
		if (o->grace_period.is_set)
			serve_warn(c, "--grace-period has no effect without --duration");
		return 0;
	}
	d->duration_ns = clock_span_ns(o->duration.v);
	if (o->grace_period.is_set)
		d->deadline_ns = d->duration_ns + clock_span_ns(o->grace_period.v);
	if (isinf(o->request_rate) && d->ramp_up == RAMP_NONE && !d->max_concurrency &&
	    !o->max_sessions.is_set && !o->user_centric_rate.is_set && !d->is_num_prompts_given &&
	    o->self_timed != OPT_TRI_YES)
		return err_set(c->e, ERR_USAGE, "--duration needs --request-rate, "
			       "--max-concurrency or --num-prompts; without them requests without end "
			       "would be sent at once");
	return 0;
}

void serve_take_urls(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;

	d->base_urls = o->base_urls.n ? o->base_urls.v : &d->base_url;
	d->n_urls = o->base_urls.n ? (unsigned)o->base_urls.n : 1;
}

bool serve_is_any_tls(const struct check *c)
{
	for (unsigned i = 0; i < c->d->n_urls; i++)
		if (strncasecmp(c->d->base_urls[i], "https:", 6) == 0)
			return true;
	return false;
}

static int check_urls(const struct check *c)
{
	static const char *const hows[] = { [BALANCE_ROUND_ROBIN] = "round-robin",
					    [BALANCE_RANDOM] = "random",
					    [BALANCE_LEAST_LOADED] = "least-loaded" };
	const struct serve_opts *o = c->o;
	struct url url;

	for (size_t i = 0; i < sizeof(hows) / sizeof(*hows); i++)
		if (strcmp(o->balance, hows[i]) == 0)
			c->d->balance = (enum serve_balance)i;
	if (o->base_urls.n < 2 && serve_given(c, "balance"))
		serve_warn(c, "--balance has no effect without several --base-urls");
	if (!o->base_urls.n)
		return 0;
	if (o->base_url)
		return err_set(c->e, ERR_USAGE, "--base-urls and --base-url are mutually exclusive");
	if (serve_given(c, "host") || serve_given(c, "port"))
		serve_warn(c, "--host and --port have no effect with --base-urls");
	if (o->base_urls.n > ENDPOINTS_MAX)
		return err_set(c->e, ERR_USAGE, "--base-urls: expected at most %u URLs, got %zu",
			       ENDPOINTS_MAX, o->base_urls.n);
	for (size_t i = 0; i < o->base_urls.n; i++)
		if (url_parse(str_of(o->base_urls.v[i]), &url, c->e) < 0)
			return err_wrap(c->e, "--base-urls");
	return 0;
}

static void check_profile(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (serve_given(c, "profile-duration") && !o->profile_batch_threshold.is_set)
		serve_warn(c, "--profile-duration has no effect without --profile-batch-threshold");
}

static void check_cancellation(const struct check *c)
{
	const struct serve_opts *o = c->o;

	c->d->give_up_ns = clock_span_ns(o->request_cancellation_delay);
	if (o->request_cancellation_rate == 0 && serve_given(c, "request-cancellation-delay"))
		serve_warn(c, "--request-cancellation-delay has no effect without "
			   "--request-cancellation-rate");
}

int serve_check_load(const struct check *c)
{
	if (check_duration(c) < 0 || check_urls(c) < 0)
		return -1;
	check_cancellation(c);
	check_profile(c);
	return 0;
}
