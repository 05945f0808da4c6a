/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/stage.h - what the stages of a point share. Private to run/: point.c runs
 * them in order, each file has one or two.
 *
 *   setup.c    model, tokenizer, dataset, alignment with the server
 *   early.c    those before there is a server
 *   traffic.c  the plan
 *   ready.c    ready check, warm-up
 *   measure.c  the record and the main run; beside it probe.c, profile.c
 */
#pragma once
#include "base/limits.h"
#include "run/early.h"
#include "run/point.h"
#include "run/prepare.h"
#include "run/remote.h"

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
	enum point_stage now;
	struct load_progress *progress;
	uint64_t total;
	int64_t began_ns;       /* monotonic: the clock of the main run; 0 before */
	unsigned run;           /* of --num-runs, from 0 */
	bool is_reset_missing;  /* the server cannot empty its prefix cache; said once */
};

void stage_say(const struct stage *s, const char *text);
void stage_warn(const struct stage *s, const char *text);
bool stage_is_cancelled(const struct stage *s);
int stage_cancelled(struct err *e);
/* Progress of the stage that runs now, to the hooks. */
void stage_tick(void *stage);
bool stage_may_ask_server(const struct stage *s);
struct load_opts stage_load_opts(struct stage *s, enum request_phase phase);
struct prepare_opts stage_prepare_opts(const struct stage *s, bool is_without_ids);

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
int stage_find_model(struct stage *s, struct err *e);
int stage_load_tokenizer(struct stage *s, struct err *e);
int stage_check_dataset(const struct dataset *d, const struct dataset_opts *data,
			const struct serve_opts *o, struct err *e);
int stage_build_dataset(struct stage *s, const struct dataset *d, struct err *e);
void stage_align(struct stage *s, const struct dataset *d);
/* --prompt-salt. */
int stage_salt(struct stage *s, const struct dataset *d, struct err *e);
int stage_make_plan(struct stage *s, struct err *e);
void stage_say_traffic(const struct stage *s);
/* How many connections this process may have open beside its other files. */
size_t stage_connections_max(bool is_process_watched);
int stage_check_files(struct stage *s, struct err *e);
int stage_make_record(struct stage *s, struct err *e);
int stage_ready_check(struct stage *s, struct err *e);
int stage_warm_up(struct stage *s, struct err *e);
int stage_run_main(struct stage *s, struct err *e);
/* After the report: --profile. */
void stage_stop_profiler(struct stage *s);
