/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.c - --compat v0.11: the options as they were in that release; see presets.h.
 *
 * Serve spec section 9. What its report and result have not stands in report/release.c. Not
 * taken over: its crashes, profiler calls that could not work, and pooling told by name.
 */
#include <string.h>

#include "run/presets.h"

const struct preset compat_presets[] = {
	{ "ready-check-timeout-sec", "600" },
	{ "percentile-metrics", "ttft,tpot,itl" },
	{ "request-id-prefix", "benchmark-serving" },
	{ NULL, NULL },
};

/* Options of upstream that came later. */
static const char *const newer[] = {
	"num-warmups", "extra-body", "insecure", "skip-tokenizer-init", "input-len", "output-len",
	"lora-assignment", "chat-template-kwargs", "plot-timeline", "timeline-itl-thresholds",
	"plot-dataset-stats", "probe-request-rate", "self-timed",
};

unsigned compat_bits(const char *list)
{
	struct str rest = str_of(list);
	unsigned bits = 0;

	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));

		for (const struct serve_switch *row = serve_compats; row->name; row++)
			bits |= str_is(name, row->name) ? row->bits : 0;
	}
	return bits;
}

static int check_mode(const struct check *c)
{
	static const char *const modes[] = { "auto", "slow", "mistral", "custom" };

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(c->o->tokenizer_mode, modes[i]) == 0)
			return 0;
	return err_set(c->e, ERR_USAGE, "--tokenizer-mode: v0.11 has auto, slow, mistral, custom; "
		       "got '%s'", c->o->tokenizer_mode);
}

int serve_check_compat(const struct check *c)
{
	struct serve_opts *o = c->o;

	if (!(c->d->compat & COMPAT_V011))
		return 0;
	if (!o->model)
		return err_set(c->e, ERR_USAGE, "the following arguments are required: --model");
	if (check_mode(c) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++)
		if (serve_given(c, newer[i]))
			serve_warn(c, "--%s came after v0.11; it works all the same", newer[i]);
	/* Greedy unless told otherwise: put into bodies, not shown among the options. */
	if (!c->d->is_pooling && !o->temperature.is_set)
		o->temperature = (struct opt_real){ .is_set = true, .v = 0 };
	return 0;
}
