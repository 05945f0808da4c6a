/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/presets.h - options that stand for others: --load-pattern NAME, --compat v0.11.
 *
 * A preset gives values to options that the command line does not name; what is named wins.
 */
#pragma once
#include "run/serve_check.h"

struct preset { const char *option, *value; }; /* as on a command line, without the dashes */

#define PRESET_OPTIONS_MAX 6

struct load_pattern {
	const char *name, *help;
	struct preset set[PRESET_OPTIONS_MAX]; /* ends with a NULL option */
};
extern const struct load_pattern load_patterns[]; /* ends with a NULL name */

/* Gives what o->load_pattern and o->compat stand for; a second time changes nothing. ERR_USAGE. */
int serve_presets(struct serve_opts *o, const struct opt_result *given, struct arena *a,
		  struct err *e);
/* "--request-rate 10 --burstiness inf": what o->load_pattern stands for here. */
void load_pattern_flags(const struct serve_opts *o, const struct opt_result *given,
			struct buf *out);

/* ---- --compat v0.11 (run/compat.c) ---- */

extern const struct preset compat_presets[]; /* ends with a NULL option */
/* Of a list that is not checked yet: the bits of the names that there are. */
unsigned compat_bits(const char *list);
/*
 * The rules of that release, if it is asked for: what it had not is noted or refused, its
 * temperature is set. Before the body is put together.
 */
int serve_check_compat(const struct check *c);
