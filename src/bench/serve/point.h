/* SPDX-License-Identifier: Apache-2.0 */
/*
 * point.h - one measured point: options in, record out.
 *
 * No globals: two points may run at once in one process (a sweep, the
 * experiment runner, a calibration). Order of stages as upstream (serve spec
 * 1.8): discovery, tokenizer, dataset, alignment, plan, ready check, warm-up,
 * main run (with --num-runs: several, of the same plan). Scoring is separate
 * (metrics/) and needs only the record.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "client/load/load.h"
#include "client/metrics/budget.h"
#include "client/plan/plan.h"
#include "client/plan/workload.h"
#include "client/record/file.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "host/ranks/ranks.h"
#include "host/telemetry/system.h"
#include "host/telemetry/telemetry.h"

enum point_stage { STAGE_DATASET, STAGE_ALIGN, STAGE_READY, STAGE_WARMUP, STAGE_MAIN, STAGE_COUNT };

struct point;
struct point_early;

/* State of a running main run, read on the thread that started it. */
struct run_sample {
	const struct record *record; /* rows that are published may be read: record_is_published */
	const struct plan *plan;
	uint32_t n_rows;             /* of the main run, in the order of the plan */
	uint32_t n_begun;            /* rows from this one on have not begun */
	struct load_totals load;
	struct telemetry_now server; /* NAN: not reported */
	struct system_now system;    /* NAN: not known */
};

/* Callbacks of a point, on the caller's thread; every hook may be NULL. */
struct run_hooks {
	void *self;
	/* A line upstream prints on stdout, and a warning for stderr; no newline at the end. */
	void (*line)(void *self, const char *text);
	void (*warn)(void *self, const char *text);
	/* Progress of a stage a few times a second; counters of the driver when load runs. */
	void (*progress)(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			 const struct load_progress *load);
	/* A few times a second while the main run goes on, and once at its end. */
	void (*sample)(void *self, const struct run_sample *now);
	/* Bytes of a file that is downloaded or read before anything is sent, and in all. */
	void (*bytes)(void *self, const char *file, uint64_t done, uint64_t total);
	/*
	 * A run is measured and still in the point: score and report it. Called once for each of
	 * --num-runs; may take the record (and zero it). NULL: run_point keeps the last one.
	 */
	void (*measured)(void *self, struct point *p);
	const atomic_bool *cancel;         /* set: stop load, keep what was measured */
	/* Of a main run; may be NULL. Set: send no more; cancel what is in flight as well. */
	const atomic_bool *close, *abandon;
	const struct point_env *env;       /* NULL: this process's */
	const struct transport *transport; /* NULL: native; tests use the null one */
	struct ranks *ranks; /* processes that make the run together; NULL: this one alone */
	bool is_server_up; /* known to answer: a refusal is not waited for to end */
	struct point_early *early; /* made of the same options (below): is used up; or NULL */
};

/* Result of comparing with the server's tokenizer (serve/remote.h). */
struct remote_alignment {
	bool is_available;       /* /tokenize answered */
	uint32_t checked, disagreeing, rewritten;
};

/* Everything a report needs in addition to the record. Released by point_release. */
struct point {
	struct record record;
	struct workload workload;
	struct plan plan;
	struct load_stats load;
	struct tokenizer *tokenizer;  /* NULL without one */
	const struct endpoint *endpoint;
	const struct transport *transport;
	struct record_info info;      /* this host and its clocks */
	struct record_stream *stream; /* --record: open from the main phase to point_store */
	char *model_id, *model_name, *tokenizer_id;
	char *meta;                   /* the record's meta JSON */
	/*
	 * For a dataset that uses the chat template: its source (chat_source_name), or "skipped".
	 * NULL for other datasets.
	 */
	const char *chat_template;
	struct remote_alignment alignment;
	enum salt_kind salt;          /* --prompt-salt, and what the salts are drawn from */
	char salt_key[SALT_KEY_BYTES + 1];
	char *failure;                /* why the first request failed, if none succeeded; or NULL */
	char *record_path;            /* --record; of several runs with a number; or NULL */
	bool is_profiled;
	bool is_prefix_warm;          /* every prompt was sent before: --warmup-pass same */
	struct budget budget;         /* of the client's error; rounds 0: none */
	int64_t clock_step_ns;        /* CLOCK_REALTIME against CLOCK_MONOTONIC, start to stop */
	unsigned processes;           /* of the run, with run_hooks.ranks; otherwise 0 */
	int64_t clock_error_ns;       /* how far their clocks may differ */
	uint32_t n_lost;              /* requests of processes that were lost (run_hooks.ranks) */
	bool is_interrupted;
};

/*
 * 0: measured (is_interrupted: only partly); -1: could not be measured; e is one sentence. With
 * opts->dry_run nothing is sent.
 */
int run_point(const struct serve_opts *opts, const struct serve_derived *derived,
	      const struct run_hooks *hooks, struct point *out, struct err *e);
/* Whether requests are sent at the times of the workload. */
bool point_is_self_timed(const struct serve_opts *o, const struct point *p);
/* Completes the file of --record, once the record is scored (its meta is final). */
int point_store(struct point *p, struct err *e);
void point_release(struct point *p);

/* ---- before there is a server ---- */

/*
 * Checks a point's endpoint, tokenizer, dataset, plan and record before minutes are spent on
 * loading a model.
 *
 * The stages are those of run_point, up to the plan; nothing is sent and no file is written. What
 * only the server can give is replaced by a substitute: its model, the tokenizer of a model
 * without local files, an unknown chat template. `waits` says so, and failures that a substitute
 * may cause are not reported.
 *
 * If nothing waits, the requests are the run's own: run_hooks.early hands them over together with
 * the generator's state, so the run sends exactly what it would have made itself.
 */

/* The subject of a mistake. */
enum point_part { PART_OPTIONS, PART_TOKENIZER, PART_DATASET, PART_RECORD };

struct point_early {
	enum point_part part;      /* after a failure: what failed */
	struct err waits;          /* what the server is needed for; ERR_NONE: nothing */
	bool has_tokenizer;        /* it was loaded and is not a substitute */
	size_t n_requests;
	const char *request_id_prefix; /* which the requests were made with */
	/* For run_point alone. */
	bool is_whole;             /* the requests are the run's */
	struct point point;
	struct compat_rng rng;     /* after the dataset has drawn from it */
	struct buf notes;          /* warnings about tokenizer and dataset, a line each */
	struct arena arena;        /* for the caller: options that the point borrows */
};

/*
 * *out is zeroed except for its arena. Of hooks only progress, bytes and cancel are called;
 * warnings are kept for the run. 0, or -1 with e: ERR_NET for the server or network, ERR_CANCELLED
 * for the caller's cancel, anything else a mistake in the options.
 */
int run_point_early(const struct serve_opts *opts, const struct serve_derived *derived,
		    const struct run_hooks *hooks, struct point_early *out, struct err *e);
void point_early_release(struct point_early *p);
