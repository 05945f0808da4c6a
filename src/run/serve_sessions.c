/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_sessions.c - the options about conversations. Whether the dataset has any is only known
 * once it is built: then traffic.c says which of these options have no effect.
 */
#include "base/limits.h"
#include "data/lengths.h"
#include "http/head.h"
#include "run/serve_check.h"

#define TURN_RETRIES 3 /* --on-turn-failure retry, as its help says */

int serve_check_time(const struct opt *o, const void *field, struct err *e)
{
	const char *text = *(const char *const *)field;
	struct lengths law = { 0 };
	char option[32];
	int rc;

	snprintf(option, sizeof(option), "--%s", o->name);
	rc = text ? lengths_parse_time(option, text, &law, e) : 0;
	lengths_release(&law);
	return rc;
}

static int check_header(const struct check *c, const char *option, const char *name)
{
	if (http_is_token(str_of(name)) && !http_head_is_framing(str_of(name)))
		return 0;
	return err_set(c->e, ERR_USAGE, "--%s '%.100s': expected the name of a header that profllm does "
		       "not set itself, such as X-Session-ID", option, name);
}

static int check_users(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (!o->user_centric_rate.is_set && !o->num_users.is_set)
		return 0;
	if (!o->user_centric_rate.is_set)
		return err_set(c->e, ERR_USAGE, "--num-users needs --user-centric-rate, the requests per "
			       "second of all users together");
	if (!o->num_users.is_set)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate needs --num-users, the number of "
			       "users that send them");
	if (serve_given(c, "request-rate") || c->d->ramp_up != RAMP_NONE)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate and --%s are mutually exclusive: "
			       "both say when conversations begin",
			       c->d->ramp_up != RAMP_NONE ? "ramp-up-strategy" : "request-rate");
	if (o->think_time)
		return err_set(c->e, ERR_USAGE, "--user-centric-rate and --think-time are mutually "
			       "exclusive: both say when the next turn is sent");
	return 0;
}

int serve_check_sessions(const struct check *c)
{
	const struct serve_opts *o = c->o;
	struct serve_derived *d = c->d;

	if (*o->session_header && check_header(c, "session-header", o->session_header) < 0)
		return -1;
	if (o->session_token_header &&
	    check_header(c, "session-token-header", o->session_token_header) < 0)
		return -1;
	d->session_header = *o->session_header ? o->session_header : NULL;
	d->max_sessions = o->max_sessions.is_set && o->max_sessions.v < REQUESTS_MAX
			  ? (uint32_t)o->max_sessions.v : 0;
	d->is_chain_dropped = strcmp(o->on_turn_failure, "continue") != 0;
	d->turn_retries = strcmp(o->on_turn_failure, "retry") == 0 ? TURN_RETRIES : 0;
	d->is_session_spread = strcmp(o->session_affinity, "spread") == 0;
	if (d->n_urls < 2 && serve_given(c, "session-affinity"))
		serve_warn(c, "--session-affinity has no effect without several --base-urls");
	return check_users(c);
}
