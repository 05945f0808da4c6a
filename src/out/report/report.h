/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - scored runs for people and programs.
 *
 * Fills buffers and writes files; prints nothing. Everything from upstream comes first, byte for
 * byte; our additions come after the closing line of the terminal report and under the key
 * "profllm" of the result file.
 *
 * A report needs a record, its metrics, the verdict and a few facts about the run. The facts are
 * stored in the record's meta JSON (report_meta_*), so a record file alone can be reported again.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/budget.h"
#include "client/metrics/metrics.h"
#include "client/metrics/trust.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct json_writer;

struct report_pair { const char *key, *value; };
struct report_ramp { int64_t rps; const char *timestamp; }; /* see report_timestamp */

#define REPORT_DATE_BYTES 32

/* What was sent again, and what was sent before the measurement (options/salt.h). */
struct report_reuse {
	const char *order;               /* effective --repeat-order; NULL: nothing is repeated */
	const char *pass;                /* --warmup-pass; NULL: none */
	uint32_t copies;                 /* of each request */
	uint32_t repeated;               /* requests that are not the first of their copies */
	uint32_t pass_requests;          /* of the warm-up pass */
	double ideal;                    /* dataset_ideal_reuse; below 0: unknown */
};

/* How load was generated, where it differs from upstream; load.c. */
struct report_load {
	const char *aborted;             /* the limit of failures that ended the run; NULL: none */
	double time_limit_s;             /* --duration; 0: none */
	double used_up_s;                /* when the last planned request left, if early; else 0 */
	const char *urls;                /* several base URLs, one a line; NULL: one */
	const char *prompt_salt;         /* "run", "request", "fresh"; NULL: none */
	const char *prompt_salt_key;     /* seed of the salts; NULL: none */
	bool is_profile_asked, is_profiled;
	struct report_reuse reuse;
	bool is_replay;                  /* sent at the times of a trace */
	const char *trace_format;        /* its format; NULL: not a trace */
	double speedup;
	double ideal_hit_rate, prefix_exact; /* of struct trace_facts; below 0: unknown */
	unsigned adapters;               /* that requests name in place of the model; 0: none */
	struct str runs;                 /* JSON of several runs' values; empty: one run */
};

/* Texts are borrowed. NULL becomes null in the result file. */
/* Stamps of TCP segments (client/net/tap.h); all zero if not requested. */
struct report_segments {
	uint64_t events;                 /* token events with the stamp of their own segment */
	uint64_t dropped;                /* segments that were missed */
	const char *unused;              /* why no event has such a stamp; NULL: some have */
};

/* Traffic of another client that was captured (bench/serve/observe.h); source NULL: none. */
struct report_capture {
	const char *source;              /* the file, or the interface */
	uint64_t packets;                /* TCP packets of the servers' ports */
	uint64_t dropped;                /* lost by the capture, as far as it reports that */
	uint64_t holes;                  /* places of a connection where bytes are missing */
	uint64_t cut_packets;            /* packets of which only the beginning was kept */
	uint64_t connections, joined;    /* begun during the capture; entered in the middle */
	uint64_t tls, http2;             /* packets that cannot be read */
	uint32_t lost, cut, abandoned;   /* cancelled: a hole, the capture's end, the client */
	uint32_t other;                  /* requests to other paths */
	uint32_t beyond;                 /* left out: above a limit (OBSERVED_..._MAX) */
	uint32_t unread;                 /* unstreamed answers that could not be read */
	uint32_t whole;                  /* unstreamed answers that were read */
	uint32_t without_usage;          /* successes without token counts from the server */
	uint32_t counted;                /* of them, those counted as one token per event */
};

struct report_facts {
	char date[REPORT_DATE_BYTES];    /* YYYYmmdd-HHMMSS, local, when the run ended */
	const char *backend, *label, *model_id, *tokenizer_id;
	int64_t num_prompts;             /* as in the option */
	double request_rate, burstiness; /* may be INFINITY */
	double user_rate;                /* --user-centric-rate; 0: none */
	int64_t users;                   /* its --num-users */
	int64_t max_concurrency;         /* 0: null */
	uint32_t gpus;                   /* that serve; 0: unknown */
	double gpu_price;                /* of one, per hour; 0: unknown */
	const char *ramp_strategy;       /* NULL: no ramp-up */
	int64_t ramp_start_rps, ramp_end_rps;
	struct report_ramp *ramp;
	size_t n_ramp;
	struct report_pair *metadata;    /* in the order given */
	size_t n_metadata;
	bool is_detailed;                /* --save-detailed */
	bool is_detail_strict;           /* --compat detail */
	bool is_v011;                    /* --compat v0.11: as that release reported */
	bool has_plot_tip;               /* upstream's line about termplotlib */

	/* Ours. */
	const char *version, *build, *transport, *dataset;
	const char *http_version;        /* of the answers: "1.1", "2", "1.1 and 2" */
	const char *chat_template;       /* its source, or "skipped"; NULL: not templated */
	const char *workload_hash;       /* of the workload file; NULL: another dataset */
	const char *request_id_prefix;   /* NULL: requests had no id */
	unsigned warm_connections, threads;
	unsigned processes;              /* started by mpirun for this run; 0: one, without it */
	double clock_error_ms;           /* how far their clocks may differ */
	struct report_segments segments;
	/* Mean over connections of the shortest round trip that TCP saw on each; 0: unknown. */
	double round_trip_ms;
	struct report_capture capture;
	struct report_load load;
	struct budget budget;            /* rounds 0: none */
	struct str options;              /* JSON object of the resolved options; empty: none */
};

struct report {
	const struct report_facts *facts;
	const struct record *record;
	const struct metrics *metrics;
	const struct trust *trust;
	const char *charts; /* already drawn, replace upstream's tip; NULL: none */
};

/* How much of our part follows upstream's block. */
enum report_detail {
	REPORT_SHORT,                    /* failures, the verdict and its reasons */
	REPORT_FULL,                     /* every row */
};

/*
 * What was measured, the headline numbers and the verdict in three lines. Nothing when no
 * request succeeded. UTF-8; ends with a newline.
 */
void report_summary(const struct report *r, struct buf *out);
/*
 * The summary, then the report with everything that upstream prints around it; only the failures
 * when no request succeeded. No summary with --compat v0.11. UTF-8; ends with a newline.
 */
void report_terminal(const struct report *r, enum report_detail detail, struct buf *out);
/*
 * Charts of tokens and requests per second (serve spec 4.5) as commands for gnuplot's text
 * terminal of that many columns; out stays empty when nothing succeeded.
 */
void report_charts_script(const struct report *r, unsigned columns, struct buf *out);
/* gnuplot's drawing, without the blanks around it. */
void report_charts_trim(struct str drawn, struct buf *out);
/* The result: one JSON object without a newline. ERR_LIMIT if it exceeds a buffer's limit. */
int report_result_json(const struct report *r, struct buf *out, struct err *e);
/* The value of its key "profllm"; with the arrays per request when facts->is_detailed. */
void report_ours_json(const struct report *r, struct buf *out);

/* Text from a server: control characters, which a terminal would obey, become "?". */
void line_add_safe(struct buf *out, struct str text);
/* The values of the result's keys "sessions" and "per_turn_metrics". */
void report_sessions_json(struct json_writer *w, const struct metrics *m);
void report_turns_json(struct json_writer *w, const struct metrics *m);
/* One sentence on requests preempted from the KV cache, and what helps; else nothing. */
void report_preemptions(const struct metrics *m, struct buf *out);
/* The rows and the members of a run's load; used by the functions above. */
void report_load_rows(const struct report *r, struct buf *out);
void report_load_json(const struct report *r, struct json_writer *w);
/* Nothing if nothing is repeated or warmed up; also for offline runs. */
void report_reuse_rows(const struct report_reuse *r, struct buf *out);
void report_reuse_json(const struct report_reuse *r, struct json_writer *w);

/* YYYYmmdd-HHMMSS and YYYY-mm-ddTHH:MM:SS[.ffffff], local time. Return out. */
char *report_date(char out[REPORT_DATE_BYTES], int64_t real_ns);
char *report_timestamp(char out[REPORT_DATE_BYTES], int64_t real_ns);

/* ---- files ---- */

/* dir/name; filename NULL: the generated name of serve spec 6.1. Caller frees. */
char *report_path(const struct report_facts *f, const char *dir, const char *filename);
/*
 * Reserves the generated path, with -2, -3 ... before its ".json" if that file or one named after
 * it (STEM.*) exists: dates are whole seconds, and runs that end in the same one must not replace
 * each other's files. The file is created empty; a caller that does not write it must remove it.
 * NULL: ERR_IO. Caller frees.
 */
char *report_claim(const struct report_facts *f, const char *dir, struct err *e);
/*
 * Writes the file (replacing it) or appends a line (JSON lines). The directory is created. On
 * failure an existing file is unchanged.
 */
int report_save(const char *path, struct str json, bool is_append, struct err *e);

/* ---- meta ---- */

/* The content of a record's meta for scoring. */
struct report_meta {
	struct report_facts facts;
	struct metrics_opts opts;
	struct trust_facts trust;
};

void report_meta_write(const struct report_meta *m, struct buf *out);
/* Texts and arrays go to the arena. Absent members read as zero. */
int report_meta_read(struct report_meta *m, struct str json, struct arena *a, struct err *e);
