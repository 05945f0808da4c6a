/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose_backend.c - which API is spoken: --backend, or the file of --backend-file; and
 * the path an API of ours has when --endpoint does not say.
 */
#include "endpoint/described.h"
#include "run/multi_turn.h"
#include "run/serve_check.h"

/* The API's own path, where the default of --endpoint cannot be: upstream refuses that. */
static void take_path(const struct check *c, const struct endpoint *ep)
{
	if (!ep->is_ours && endpoint_check_url(ep, c->o->endpoint, NULL) == 0)
		return;
	if (!ep->is_ours)
		serve_warn(c, "--endpoint is %s, the path of --backend %s", ep->default_path, ep->name);
	c->o->endpoint = ep->default_path;
}

int serve_choose_backend(const struct check *c)
{
	struct serve_opts *o = c->o;
	const struct endpoint *ep;

	if (o->backend_file && serve_given(c, "backend"))
		return err_set(c->e, ERR_USAGE, "--backend-file %s and --backend %s are mutually "
			       "exclusive", o->backend_file, o->backend);
	if (o->backend_file)
		ep = endpoint_described(o->backend_file, c->arena, c->e);
	else if (o->multi_turn)
		ep = multi_turn_endpoint(o->multi_turn);
	else
		ep = endpoint_find(o->backend);
	if (!ep && o->backend_file)
		return -1;
	if (!ep)
		return err_set(c->e, ERR_USAGE, "--backend %s: not in this version", o->backend);
	o->backend = ep->name;
	if (!serve_given(c, "endpoint"))
		take_path(c, ep);
	c->d->endpoint = ep;
	c->d->is_chat = ep->is_chat;
	return 0;
}
