/* SPDX-License-Identifier: Apache-2.0 */
/* reuse.c - see reuse.h. */
#include "run/reuse.h"

#include <inttypes.h>
#include <math.h>

#include "run/salt.h"

const char *const reuse_passes[] = { "none", "same", "other", NULL };

bool reuse_has_pass(const struct dataset_opts *o)
{
	return o->warmup_pass && strcmp(o->warmup_pass, "none") != 0;
}

size_t reuse_pass_count(const struct workload *w, const struct dataset_opts *o)
{
	if (!reuse_has_pass(o))
		return 0;
	return w->repeats ? w->repeats->n : w->n;
}

int reuse_pass(const struct workload *w, const struct dataset_opts *o, uint64_t seed,
	       const struct tokenizer *t, struct workload *out, struct err *e)
{
	const size_t n = reuse_pass_count(w, o);
	char key[SALT_KEY_BYTES + 1];
	struct salt salt;

	for (size_t i = 0; i < n; i++)
		*workload_add(out) = w->v[w->repeats ? w->repeats->first[i] : i];
	out->dataset = w->dataset;
	if (n == 0 || strcmp(o->warmup_pass, "same") == 0)
		return 0;
	snprintf(key, sizeof(key), "warmup-pass %" PRIu64, seed);
	salt_init(&salt, SALT_REQUEST, key, t);
	salt.option = "--warmup-pass other";
	return salt_workload(&salt, out, e);
}

void reuse_told(const struct workload *w, const struct dataset_opts *o, struct report_reuse *out)
{
	const struct repeats *r = w->repeats;
	double ideal;

	*out = (struct report_reuse){ .ideal = -1 };
	if (!r && !reuse_has_pass(o))
		return;
	if (r) {
		out->order = r->order;
		out->copies = r->count;
		out->repeated = (uint32_t)(w->n - r->n);
	}
	if (reuse_has_pass(o)) {
		out->pass = o->warmup_pass;
		out->pass_requests = (uint32_t)reuse_pass_count(w, o);
	}
	ideal = dataset_ideal_reuse(w, out->pass && strcmp(out->pass, "same") == 0);
	if (!isnan(ideal))
		out->ideal = ideal;
}
