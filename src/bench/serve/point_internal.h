/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point_internal.h - what the stages of a point share. point.c runs them in order:
 *
 *   stage.c    what all of them need: hooks, options of load and requests, substitutes
 *              before there is a server
 *   setup.c    model, tokenizer, dataset, alignment with the server, the plan
 *   measure.c  the record, ready check, warm-up, the main run
 *   beside.c   what is measured during the load: probes, profiler, /metrics, the machine
 *   score.c    what is found in the record once load is over, and the report
 *   dealt.c    a run that several processes make together
 *   calibrate.c  the error of the client itself, measured after the main run
 *   multi_turn.c  the stages of bench multi-turn
 */
#pragma once
#include <sched.h>

#include "bench/serve/point.h"
#include "bench/serve/prepare.h"
#include "bench/serve/remote.h"
#include "core/base/limits.h"
#include "host/telemetry/system.h"
#include "host/telemetry/telemetry.h"

/* Lives until run_point returns. */
struct stage {
	const struct serve_opts *opts;
	const struct serve_derived *derived;
	const struct run_hooks *hooks;
	struct point *point;
	struct point_early *early; /* there is no server yet; NULL: there is one */
	struct compat_rng rng;
	struct remote remote;
	struct salt salt;
	const char *proxy[ENDPOINTS_MAX]; /* per base URL; NULL: none */
	const uint16_t *cpu;    /* of --cpus, what is this process's; NULL: any */
	cpu_set_t cpus_before;  /* with it: where the calling thread ran before */
	enum point_stage now;
	struct load_progress *progress;
	uint64_t total;
	int64_t began_ns;       /* monotonic: the clock of the main run; 0 before */
	double load_s;          /* how long the last stage_load took */
	unsigned run;           /* of --num-runs, from 0 */
	struct arena dealt;     /* of elsewhere */
	bool *elsewhere;        /* load_opts.elsewhere; NULL: this process sends everything */
	bool is_start_agreed;   /* of this run, by dealt_start */
	struct err start_err;   /* why another rank could not start */
	bool is_reset_missing;  /* the server cannot empty its prefix cache; said once */
};

/* Pass a line or a warning to the hooks. The run repeats early ones about requests. */
__attribute__((format(printf, 2, 3)))
void stage_say(const struct stage *s, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void stage_warn(const struct stage *s, const char *fmt, ...);
/* A whole number in an object of body members; -1: there is none of that name. */
int64_t extra_number(struct str object, const char *key);
bool stage_is_cancelled(const struct stage *s);
int stage_cancelled(struct err *e);
/* Passes progress of the current stage to the hooks. */
void stage_tick(void *stage);
bool stage_may_ask_server(const struct stage *s);
struct load_opts stage_load_opts(struct stage *s, enum request_phase phase);
struct prepare_opts stage_prepare_opts(const struct stage *s, bool is_without_ids);
/* Runs a plan into rows of its own, with progress of stage now. */
int stage_load(struct stage *s, enum point_stage now, const struct load_opts *opts,
	       const struct prepare_opts *how, const struct plan *plan, uint32_t first_row,
	       struct err *e);

/*
 * --cpus: the calling thread, and those that it creates, run on this process's part of the list
 * until stage_unplace, so that memory is allocated near them. ERR_USAGE: a processor that this
 * process may not use, or fewer processors than loops.
 */
int stage_place(struct stage *s, struct err *e);
void stage_unplace(struct stage *s);

/* ---- before there is a server ---- */

/* Before there is a server: set the part being checked; note why the server is needed. */
void stage_part(struct stage *s, enum point_part part);
void stage_wait(struct stage *s, const struct err *why);
/* Uses a substitute for the model's tokenizer, which the server may provide later. */
int stage_stand_in(struct stage *s, const struct err *why, struct err *e);
/* The render function for messages whose template is not known. */
int stage_render_stand_in(void *stage, struct str messages, struct str tools, struct buf *text,
			  struct err *e);
/* Whether the failure of a dataset being built may be due to a substitute. */
bool stage_may_pass(const struct stage *s, const struct dataset *d, bool is_building,
		    const struct err *e);
/* Called when the dataset has drawn everything. */
void stage_made(struct stage *s);
/* Whether the requests are exactly those that the run would make. */
bool stage_is_whole(const struct stage *s);
/* Checks that the file of --record can be made. */
int stage_check_record(const struct stage *s, struct err *e);
/* Takes the requests that were made early, if there are any. */
bool stage_take_early(struct stage *s);

/* ---- setup ---- */

int stage_find_model(struct stage *s, struct err *e);
int stage_load_tokenizer(struct stage *s, struct err *e);
int stage_build_dataset(struct stage *s, const struct dataset *d, struct err *e);
void stage_align(struct stage *s, const struct dataset *d);
/* Applies --prompt-salt. */
int stage_salt(struct stage *s, const struct dataset *d, struct err *e);
int stage_make_plan(struct stage *s, struct err *e);
void stage_say_traffic(const struct stage *s);

/* ---- load ---- */

/* How many connections this process may have open in addition to its other files. */
size_t stage_connections_max(bool is_process_watched);
int stage_check_files(struct stage *s, struct err *e);
int stage_make_record(struct stage *s, struct err *e);
int stage_ready_check(struct stage *s, struct err *e);
int stage_warm_up(struct stage *s, struct err *e);
int stage_run_main(struct stage *s, struct err *e);

/* ---- by several processes together; nothing happens where hooks->ranks is NULL ---- */

/* Chooses the roots that this process sends, once the plan is made. */
void dealt_begin(struct stage *s);
/* The value for load_opts.start_at. */
int64_t dealt_start(struct stage *s);
/* Called after the load with its result: -1 when any rank could not start. */
int dealt_started(struct stage *s, int rc, struct err *e);
void dealt_tick(struct stage *s);
/* Called when the load has ended here; rank 0 waits for the others. */
void dealt_ended(struct stage *s);
/* Called when answers are counted and judged: rank 0 gets the others' records. */
int dealt_gather(struct stage *s, struct err *e);

/* ---- while load runs: small requests (serve spec 2.8), one at a time, past the cap ---- */

struct probe;

/* The record's shards that probes need: 1 with --probe-request-rate, else 0. */
uint32_t probe_shards(const struct serve_opts *o);
/*
 * Makes the rows in the record and the request's bytes. *out is NULL without --probe-request-rate.
 * The stage must outlive the probe.
 */
int probe_new(struct stage *s, struct probe **out, struct err *e);
/* Prints upstream's line. */
void probe_say(const struct probe *p);
/* The main run's clock has started. */
void probe_start(struct probe *p);
/*
 * The main run has ended: waits for the probe in flight, unless the run was interrupted. As in
 * upstream, that probe and the pause after it count into the duration, unless --fix probe-tail.
 * Accepts NULL; frees.
 */
void probe_end(struct probe *p);

/* ---- while load runs: the server's profiler (serve spec 2.7) and its prefix cache ---- */

struct profile;

/*
 * --profile: starts the profiler now. With --profile-batch-threshold, or a window of time
 * (profile_from_s, profile_for_s), only a watcher is made, which profile_watch sets going: a thread
 * that reads the counters of the load or the clock every few milliseconds, and starts and
 * stops the profiler. NULL without both options.
 */
struct profile *profile_begin(struct stage *s, const struct load_progress *progress);
/* The main run's clock has started. Accepts NULL. */
void profile_watch(struct profile *p);
/* On the thread of the hooks: prints what the watcher has done since. Accepts NULL. */
void profile_tick(struct profile *p);
/* Load is over; point->is_profiled is set. Accepts NULL; frees. */
void profile_end(struct profile *p);

/* --reset-prefix-cache; warns once when a server has no such path. */
void profile_reset_cache(struct stage *s);
/* Stops the profiler after the report (--profile). */
void stage_stop_profiler(struct stage *s);

/* ---- while load runs: the servers' /metrics, and the machine ---- */

struct watch_servers;

/* Reads /metrics once and then continues in a thread. NULL when no server may be asked. */
struct watch_servers *watch_begin(struct stage *s);
/* The latest values; NULL: NANs. */
void watch_now(const struct watch_servers *w, struct telemetry_now *out);
/* Reads /metrics once more; series and notes go to the record. Accepts NULL. */
void watch_end(struct watch_servers *w, struct record *into);

/*
 * Watches the machine; NULL: not asked for. If no process is named, the servers' are looked for at
 * the ports of loopback base URLs. Ended by system_end.
 */
struct system_watch *watch_system(const struct stage *s);

/* ---- once load is over ---- */

/*
 * Successful rows without a count get one; t may be NULL. Call before scoring.
 * is_all_text: also counts reasoning, tool calls and refusals; upstream counts only the answer.
 */
void count_missing(struct record *r, const struct tokenizer *t, bool is_all_text);

/* Appends the text of a row's answer. */
void answer_text(const struct record *r, const struct request_row *row, struct buf *out);

/* Whether a sample has a constraint; if so the record has to keep the answers' text. */
bool correct_is_asked(const struct workload *w);

/* Fills request_row.correctness of the main rows; the texts are the record's. */
void correct_answers(struct point *p);
