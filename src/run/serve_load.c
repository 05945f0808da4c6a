/* SPDX-License-Identifier: Apache-2.0 */
/* serve_load.c - options about how load is made that upstream does not have. */
#include <math.h>

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
	d->duration_ns = (int64_t)(o->duration.v * 1e9);
	if (o->grace_period.is_set)
		d->deadline_ns = d->duration_ns + (int64_t)(o->grace_period.v * 1e9);
	if (isinf(o->request_rate) && d->ramp_up == RAMP_NONE && !d->max_concurrency &&
	    !d->is_num_prompts_given && o->self_timed != OPT_TRI_YES)
		return err_set(c->e, ERR_USAGE, "--duration: expected --request-rate, "
			       "--max-concurrency or --num-prompts beside it; without them requests "
			       "without end would be sent at once");
	return 0;
}

static void check_cancellation(const struct check *c)
{
	const struct serve_opts *o = c->o;

	c->d->give_up_ns = (int64_t)(o->request_cancellation_delay * 1e9);
	if (o->request_cancellation_rate == 0 && serve_given(c, "request-cancellation-delay"))
		serve_warn(c, "--request-cancellation-delay has no effect without "
			   "--request-cancellation-rate");
}

int serve_check_load(const struct check *c)
{
	if (check_duration(c) < 0)
		return -1;
	check_cancellation(c);
	return 0;
}
