/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - parts of the runner that other modules use. The run of an experiment is experiment_run
 * (experiment.h).
 */
#pragma once
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/command.h"
#include "experiment/config/experiment.h"

/*
 * The outcome of an experiment that never began: its configuration is wrong, or its results cannot
 * be written. Texts are copied.
 */
void experiment_refused(const char *category, const char *reason, struct outcome *out);

/*
 * The engine's profiler during an experiment:
 *
 *   before a server starts  profiling_words    adds the profiler to its words and environment
 *   before load             profiling_serve    which window of the main run is profiled
 *   after load              profiling_settle   until traces are complete
 *   after servers stopped   profiling_collect  traces are found, measured, summed up
 *
 * torch: vLLM from 0.13 on gets --profiler-config, earlier ones $VLLM_TORCH_PROFILER_DIR. Settings
 * in the configuration take precedence. nsys: the command runs below `nsys profile`, which records
 * between the engine's own cudaProfilerStart and cudaProfilerStop; workers are spawned, because
 * forked ones are not followed well. Both are started and stopped by POST /start_profile and
 * /stop_profile (run/profile.h), so that only a window is recorded.
 *
 * Only servers that compute are profiled: those of role serve, prefill and decode.
 */
#define PROFILING_PROMPTS_MANY 20 /* more prompts make traces too large to open */

/*
 * The engine's version as a number of engine/args.h, from the output of `COMMAND --version` (the
 * words up to "serve"); 0: unknown. Takes as long as starting the engine's Python.
 */
unsigned profiling_version(char *const *command);

struct profiling_words {
	char *const *argv;    /* what is to be started, the given words included; ends NULL */
	char *const *env;     /* "NAME=VALUE" lines, the given ones included; ends NULL */
};

/*
 * The words that start a server with profiling; without it, out is what was given. dir: the folder
 * of traces (made here; passed as an absolute path). version: 0 unknown, then as the newest. notes:
 * a line for each thing the user should know. ERR_USAGE: no nsys in PATH.
 */
int profiling_words(const struct experiment *x, const struct experiment_server *s,
		    const char *dir, unsigned version, char *const *argv, char *const *env,
		    struct arena *a, struct profiling_words *out, struct buf *notes,
		    struct err *e);

/*
 * Sets the options of the main run; notes as above (more than PROFILING_PROMPTS_MANY prompts). at:
 * where x's servers listen (run.h): with a proxy each of them is started by itself. In the arena.
 */
void profiling_serve(const struct experiment *x, const struct role_at *at, struct serve_opts *o,
		     struct arena *a, struct buf *notes);

/*
 * The words of an offline verb (x->offline_argv) with profiling: --profile, and the engine's
 * --profiler-config, with nsys --nsight. Startup has nothing to profile: a note.
 */
int profiling_offline(const struct experiment *x, const char *dir, unsigned version,
		      char *const *argv, struct arena *a, char *const **out, struct buf *notes,
		      struct err *e);

/*
 * The absolute folder of traces: from the server's own words or environment, else profiling.dir,
 * else "traces" in the experiment's folder. In the arena.
 */
const char *profiling_folder(const struct experiment *x, struct arena *a);
/* "traces" in the experiment's folder, where they all end up; absolute, in the arena. */
const char *profiling_own_folder(const struct experiment *x, struct arena *a);

/*
 * Where traces come from, and which of them belong to this experiment. A server that is kept for
 * several experiments uses the first one's folder for all.
 */
struct trace_place {
	const char *dir;             /* absolute; NULL: not profiled */
	int64_t since_real_ns;       /* older files are others' */
	char *const *earlier;        /* so are these, whenever they change; ends NULL; NULL: none */
	bool is_others;              /* dir is another experiment's: what is ours is moved away */
};
/* The files in the folder now. In the arena. */
char *const *profiling_earlier(const char *dir, struct arena *a);

/*
 * After load, before servers are stopped, when the profiler was started: waits until there are
 * traces that have stopped growing. At most profiling.stop_timeout_s; cancel, may be NULL, ends it.
 * False: none, or still growing (a note).
 */
bool profiling_settle(const struct experiment *x, const struct trace_place *place,
		      const atomic_bool *cancel, struct buf *notes);

/*
 * After servers were stopped or are idle: saves `nsys stats` next to each report, links or copies
 * traces from elsewhere into the experiment's folder, and lists them all in out, largest first
 * (paths and list in out's arena). Never fails; notes say what is missing.
 */
void profiling_collect(const struct experiment *x, const struct trace_place *place,
		       struct outcome *out, struct buf *notes);
