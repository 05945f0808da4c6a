/* SPDX-License-Identifier: Apache-2.0 */
/* priority.c - see priority.h. */
#include "data/priority.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "data/request_keys.h"

static int take_class(struct str pair, struct priority_classes *out)
{
	struct str share = pair, priority = str_trim(str_cut(&share, ':'));
	int64_t p;
	double s;

	if (!str_to_i64(priority, &p) || !str_to_f64(str_trim(share), &s) || !(s > 0) || isinf(s))
		return -1;
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].priority == p)
			return -1;
	out->v[out->n].priority = p;
	out->v[out->n++].share = s;
	return 0;
}

int priority_classes_parse(const char *option, const char *text, struct priority_classes *out,
			   struct err *e)
{
	struct str rest = str_of(text);
	bool has_more;

	out->n = 0;
	do {
		has_more = rest.n && memchr(rest.p, ',', rest.n);
		if (out->n == PRIORITY_CLASSES_MAX)
			return err_set(e, ERR_USAGE, "--%s: at most %d classes", option,
				       PRIORITY_CLASSES_MAX);
		if (take_class(str_cut(&rest, ','), out) < 0)
			return err_set(e, ERR_USAGE, "--%s %.100s: expected a whole number and a share "
				       "above 0 for each class, such as 0:0.5,1:0.5, and no number twice",
				       option, text);
	} while (has_more);
	return 0;
}

static int64_t draw(const struct priority_classes *c, double all, double random)
{
	double below = 0;

	for (size_t k = 0; k + 1 < c->n; k++) {
		below += c->v[k].share;
		if (random < below / all)
			return c->v[k].priority;
	}
	return c->v[c->n - 1].priority;
}

int priority_deal(const char *option, const struct priority_classes *c, struct pyrandom *g,
		  struct workload *w, struct err *e)
{
	double all = 0;

	if (w->has_priorities)
		return err_set(e, ERR_USAGE, "--%s: requests of this dataset have priorities already",
			       option);
	for (size_t k = 0; k < c->n; k++)
		all += c->v[k].share;
	for (size_t i = 0; i < w->n; i++) {
		struct sample *s = &w->v[i];
		char text[24];

		s->priority = draw(c, all, pyrandom_double(g));
		snprintf(text, sizeof(text), "%" PRId64, s->priority);
		request_keys_put(s, "priority", str_of(text), &w->arena);
	}
	w->has_priorities = true;
	return 0;
}
