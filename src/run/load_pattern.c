/* SPDX-License-Identifier: Apache-2.0 */
/* load_pattern.c - well-known traffic under one name; see presets.h. */
#include "run/presets.h"

#include <string.h>

const struct load_pattern load_patterns[] = {
	{ "steady", "evenly spaced requests",
	  { { "request-rate", "10" }, { "burstiness", "inf" } } },
	{ "poisson", "independent users: a Poisson process",
	  { { "request-rate", "10" }, { "burstiness", "1" } } },
	{ "bursty", "clumps of requests and pauses between them",
	  { { "request-rate", "10" }, { "burstiness", "0.25" } } },
	{ "spiky", "rare, tall clumps",
	  { { "request-rate", "10" }, { "burstiness", "0.05" } } },
	{ "ramp", "a rate that grows evenly",
	  { { "ramp-up-strategy", "linear" }, { "ramp-up-start-rps", "1" },
	    { "ramp-up-end-rps", "20" } } },
	{ "surge", "a rate that doubles again and again",
	  { { "ramp-up-strategy", "exponential" }, { "ramp-up-start-rps", "1" },
	    { "ramp-up-end-rps", "64" } } },
	{ "saturate", "as many requests in flight as a cap allows, the next when one ends",
	  { { "request-rate", "inf" }, { "max-concurrency", "64" } } },
	{ "flood", "everything at once", { { "request-rate", "inf" } } },
	{ "soak", "a light load for an hour",
	  { { "request-rate", "2" }, { "burstiness", "1" }, { "duration", "3600" } } },
	{ NULL, NULL, { { NULL, NULL } } },
};

static const struct load_pattern *find(const char *name)
{
	const struct load_pattern *p = load_patterns;

	while (p->name && strcmp(p->name, name) != 0)
		p++;
	return p->name ? p : NULL;
}

static int assign(const struct preset *set, struct serve_opts *o, const struct opt_result *given,
		  struct arena *a, struct err *e)
{
	for (; set->option; set++)
		if (!opt_given(&serve_opt_set, given, set->option) &&
		    opt_assign(&serve_opt_set, o, set->option, str_of(set->value), a, e) < 0)
			return -1;
	return 0;
}

static int unknown(const char *name, struct err *e)
{
	const char *names[32], *near;
	size_t n = 0;

	while (load_patterns[n].name) {
		names[n] = load_patterns[n].name;
		n++;
	}
	near = opt_nearest(str_of(name), names, n);
	return err_set(e, ERR_USAGE, "--load-pattern: unknown name '%.100s'%s%s%s; "
		       "--load-pattern help lists the names", name, near ? "; did you mean " : "",
		       near ? near : "", near ? "?" : "");
}

int serve_presets(struct serve_opts *o, const struct opt_result *given, struct arena *a,
		  struct err *e)
{
	const struct load_pattern *pattern = o->load_pattern ? find(o->load_pattern) : NULL;

	if (o->load_pattern && !pattern)
		return unknown(o->load_pattern, e);
	if (pattern && assign(pattern->set, o, given, a, e) < 0)
		return -1;
	return compat_bits(o->compat) & COMPAT_V011 ? assign(compat_presets, o, given, a, e) : 0;
}

void load_pattern_flags(const struct serve_opts *o, const struct opt_result *given, struct buf *out)
{
	const struct load_pattern *pattern = o->load_pattern ? find(o->load_pattern) : NULL;

	for (const struct preset *p = pattern ? pattern->set : NULL; p && p->option; p++)
		if (!opt_given(&serve_opt_set, given, p->option))
			buf_printf(out, "%s--%s %s", out->len ? " " : "", p->option, p->value);
}
