/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/serve_gate.h - before a load is sent: whether its result will have what a condition is on.
 *
 * Decided by schema/result.json, which says of each key what must hold for it to be there, and by
 * the options. What only the server or the machine decides (a GPU's power, drafted tokens) passes.
 */
#pragma once
#include "report/gate.h"
#include "run/serve_opts.h"

/*
 * o and d: after serve_opts_check. ERR_USAGE: a sentence that begins with the condition in quotes
 * and names the option to set, as an experiment's key when is_experiment.
 */
int serve_gate_check(const struct gate *g, const struct serve_opts *o,
		     const struct serve_derived *d, bool is_experiment, struct err *e);
