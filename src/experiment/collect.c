/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - see run_parts.h: traces, the machine and its versions. */
#include "experiment/hardware.h"
#include "experiment/profiling.h"
#include "experiment/run_parts.h"

static bool was_profiled(const struct run *r)
{
	return r->trace_dir && r->stage >= AT_BENCHMARK && r->x->mode != MODE_STARTUP;
}

void collect_settle(struct run *r)
{
	struct buf notes = { 0 };

	if (!was_profiled(r) || r->has_failed)
		return;
	run_line(r, "Waiting for traces in %s", r->trace_dir);
	profiling_settle(r->x, r->trace_dir, r->out->began_real_ns, r->hooks->cancel, &notes);
	run_notes(r, &notes);
	buf_release(&notes);
}

void collect_traces(struct run *r)
{
	struct buf notes = { 0 };

	if (!was_profiled(r))
		return;
	profiling_collect(r->x, r->trace_dir, r->out->began_real_ns, r->out, &notes);
	run_notes(r, &notes);
	buf_release(&notes);
	if (r->out->n_traces == 0 && !r->has_failed) {
		r->stage = AT_COLLECT;
		run_fail(r, "no trace", "%s: the profiler has left no trace", r->trace_dir);
	}
}

void collect_about(struct run *r)
{
	struct buf text = { 0 };

	hardware_json("", &text);
	r->out->hardware = run_keep(r, &text);
}
