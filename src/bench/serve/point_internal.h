/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point_internal.h - what the stages of a point share. point.c runs them in order:
 *
 *   stage.c    what all of them need: hooks, options of load and requests, stand-ins before
 *              there is a server
 *   setup.c    model, tokenizer, dataset, alignment with the server, the plan
 *   measure.c  the record, ready check, warm-up, the main run
 *   beside.c   what goes on while load runs: probes, profiler, /metrics, the machine
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

/* Gone when run_point returns. */
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

/* A line, and a warning, to the hooks. Early ones about requests are given again by the run. */
__attribute__((format(printf, 2, 3)))
void stage_say(const struct stage *s, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void stage_warn(const struct stage *s, const char *fmt, ...);
bool stage_is_cancelled(const struct stage *s);
int stage_cancelled(struct err *e);
/* Progress of the stage that runs now, to the hooks. */
void stage_tick(void *stage);
bool stage_may_ask_server(const struct stage *s);
struct load_opts stage_load_opts(struct stage *s, enum request_phase phase);
struct prepare_opts stage_prepare_opts(const struct stage *s, bool is_without_ids);
/* A plan in rows of its own, with progress of stage now. */
int stage_load(struct stage *s, enum point_stage now, const struct load_opts *opts,
	       const struct prepare_opts *how, const struct plan *plan, uint32_t first_row,
	       struct err *e);

/*
 * --cpus: the calling thread, and those that it creates, run on this process's part of the list
 * until stage_unplace; so memory is taken where they run. ERR_USAGE: a processor that this process
 * may not use, or fewer of them than loops.
 */
int stage_place(struct stage *s, struct err *e);
void stage_unplace(struct stage *s);

/* ---- before there is a server ---- */

/* Which part comes now, and what the server is needed for: both before there is one. */
void stage_part(struct stage *s, enum point_part part);
void stage_wait(struct stage *s, const struct err *why);
/* In place of the model's own, which may be the server's to lend. */
int stage_stand_in(struct stage *s, const struct err *why, struct err *e);
/* A run_renderer's way for messages whose template is not known. */
int stage_render_stand_in(void *stage, struct str messages, struct str tools, struct buf *text,
			  struct err *e);
/* Whether a failure of a dataset that is being built may come of a stand-in. */
bool stage_may_pass(const struct stage *s, const struct dataset *d, bool is_building,
		    const struct err *e);
/* The dataset has drawn what it draws. */
void stage_made(struct stage *s);
/* Whether what was made is what the run would make. */
bool stage_is_whole(const struct stage *s);
/* Whether the file of --record can be made. */
int stage_check_record(const struct stage *s, struct err *e);
/* The requests that were made early, when there are any. */
bool stage_take_early(struct stage *s);

/* ---- setup ---- */

int stage_find_model(struct stage *s, struct err *e);
int stage_load_tokenizer(struct stage *s, struct err *e);
int stage_build_dataset(struct stage *s, const struct dataset *d, struct err *e);
void stage_align(struct stage *s, const struct dataset *d);
/* --prompt-salt. */
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

/* Which roots this process sends, once the plan is made. */
void dealt_begin(struct stage *s);
/* load_opts.start_at. */
int64_t dealt_start(struct stage *s);
/* After load with its outcome: -1 when any rank could not start. */
int dealt_started(struct stage *s, int rc, struct err *e);
void dealt_tick(struct stage *s);
/* Load has ended here; rank 0 waits for the others. */
void dealt_ended(struct stage *s);
/* Every answer is counted and judged: rank 0 gets the records, the others hand them over. */
int dealt_gather(struct stage *s, struct err *e);

/* ---- while load runs: small requests (serve spec 2.8), one at a time, past the cap ---- */

struct probe;

/* The shards of the record that probes need: 1 with --probe-request-rate, else 0. */
uint32_t probe_shards(const struct serve_opts *o);
/*
 * Rows in the record and the request's bytes. *out is NULL without --probe-request-rate.
 * The stage must outlive the probe.
 */
int probe_new(struct stage *s, struct probe **out, struct err *e);
/* The line upstream prints. */
void probe_say(const struct probe *p);
/* The clock of the main run has started. */
void probe_start(struct probe *p);
/*
 * The main run has ended: lets the one in flight end, unless the run was broken off. As
 * upstream, that one and the pause behind it count into the duration, unless --fix
 * probe-tail. Accepts NULL; frees.
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
/* The clock of the main run has started. Accepts NULL. */
void profile_watch(struct profile *p);
/* On the thread of the hooks: what the watcher has done meanwhile is said. Accepts NULL. */
void profile_tick(struct profile *p);
/* Load is over; point->is_profiled is set. Accepts NULL; frees. */
void profile_end(struct profile *p);

/* --reset-prefix-cache; warns once when a server has no such path. */
void profile_reset_cache(struct stage *s);
/* After the report: --profile. */
void stage_stop_profiler(struct stage *s);

/* ---- while load runs: the servers' /metrics, and the machine ---- */

struct watch_servers;

/* Reads them once, and goes on in a thread of its own. NULL when no server may be asked. */
struct watch_servers *watch_begin(struct stage *s);
/* What they said last; NULL: NANs. */
void watch_now(const struct watch_servers *w, struct telemetry_now *out);
/* Reads them once more; series and notes go to the record. Accepts NULL. */
void watch_end(struct watch_servers *w, struct record *into);

/*
 * The machine; NULL: not asked for. Where no process is named, the server's are looked for at the
 * ports of base URLs on loopback addresses. Ended by system_end.
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

/* Whether a sample has a constraint: then the record has to keep the answers' text. */
bool correct_is_asked(const struct workload *w);

/* Fills request_row.correctness of the main rows; the texts are the record's. */
void correct_answers(struct point *p);
