/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - scored runs as people and programs read them.
 *
 * Fills buffers and writes files; prints nothing. Everything upstream has comes
 * first, byte for byte; what is ours comes after the closing line of the
 * terminal report and under the key "profllm" of the result file.
 *
 * A report needs a record, its metrics, the verdict and a few facts about the
 * run. The facts travel in the record's meta JSON (report_meta_*), so a record
 * file alone can be reported again.
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

/* What was sent again, and what before the measurement (options/salt.h). */
struct report_reuse {
	const char *order;               /* --repeat-order in force; NULL: nothing is repeated */
	const char *pass;                /* --warmup-pass; NULL: none */
	uint32_t copies;                 /* of each request */
	uint32_t repeated;               /* requests that are not the first of their copies */
	uint32_t pass_requests;          /* of the warm-up pass */
	double ideal;                    /* dataset_ideal_reuse; below 0: not known */
};

/* How load was made, where that is not upstream's way; load.c. */
struct report_load {
	const char *aborted;             /* the limit of failures that ended the run; NULL: none */
	double time_limit_s;             /* --duration; 0: none */
	double used_up_s;                /* when the last planned request left, if early; else 0 */
	const char *urls;                /* several base URLs, one a line; NULL: one */
	const char *prompt_salt;         /* "run", "request", "fresh"; NULL: none */
	const char *prompt_salt_key;     /* what salts are drawn from; NULL: none */
	bool is_profile_asked, is_profiled;
	struct report_reuse reuse;
	bool is_replay;                  /* sent at the times of a trace */
	const char *trace_format;        /* its family; NULL: of another kind */
	double speedup;
	double ideal_hit_rate, prefix_exact; /* of struct trace_facts; below 0: not known */
	struct str runs;                 /* JSON of several runs' values; empty: one run */
};

/* Texts are borrowed. NULL where the result file shall say null. */
/* Stamps of TCP segments (client/net/tap.h); all zero where the run was not asked for them. */
struct report_segments {
	uint64_t events;                 /* token events with the stamp of their own segment */
	uint64_t dropped;                /* segments that were not seen */
	const char *unused;              /* why no event has such a stamp; NULL: some have */
};

/* Traffic of another client that was captured (bench/serve/observe.h); source NULL: none. */
struct report_capture {
	const char *source;              /* the file, or where it was listened */
	uint64_t packets;                /* TCP packets of the servers' ports */
	uint64_t dropped;                /* that the capture lost, as far as it says so */
	uint64_t holes;                  /* places of a connection where bytes are missing */
	uint64_t cut_packets;            /* of which only the beginning was kept */
	uint64_t connections, joined;    /* begun meanwhile; entered in their middle */
	uint64_t tls, http2;             /* packets that cannot be read */
	uint32_t lost, cut, abandoned;   /* cancelled: a hole, the capture's end, the client */
	uint32_t other;                  /* requests to other paths */
	uint32_t beyond;                 /* left out: over a limit (OBSERVED_..._MAX) */
	uint32_t unread;                 /* answers in one piece that are not read */
	uint32_t whole;                  /* answers in one piece that were read */
	uint32_t without_usage;          /* successes for which the server sent no token counts */
	uint32_t counted;                /* of them, those with a token for each event */
};

struct report_facts {
	char date[REPORT_DATE_BYTES];    /* YYYYmmdd-HHMMSS, local, when the run ended */
	const char *backend, *label, *model_id, *tokenizer_id;
	int64_t num_prompts;             /* as the option says */
	double request_rate, burstiness; /* may be INFINITY */
	int64_t max_concurrency;         /* 0: null */
	uint32_t gpus;                   /* that serve; 0: not known */
	double gpu_price;                /* of one, per hour; 0: not known */
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
	const char *chat_template;       /* how texts were put through it; NULL: the set is not */
	const char *workload_hash;       /* of the workload file; NULL: another dataset */
	const char *request_id_prefix;   /* NULL: requests had no id */
	unsigned warm_connections, threads;
	unsigned processes;              /* that mpirun started for this run; 0: one, without it */
	double clock_error_ms;           /* how far their clocks may differ */
	struct report_segments segments;
	/* Mean over connections of the shortest that TCP saw on each; 0: not known. */
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
	const char *charts; /* drawn already, in place of upstream's tip; NULL: none */
};

/* How much of ours follows upstream's block. */
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
 * when no request succeeded. With --compat v0.11 no summary. UTF-8; ends with a newline.
 */
void report_terminal(const struct report *r, enum report_detail detail, struct buf *out);
/*
 * Charts of tokens and requests per second (serve spec 4.5) as commands for gnuplot's text
 * terminal of that many columns; out stays empty when nothing succeeded.
 */
void report_charts_script(const struct report *r, unsigned columns, struct buf *out);
/* What gnuplot drew, without the blanks around it. */
void report_charts_trim(struct str drawn, struct buf *out);
/* The result: one JSON object without a newline. ERR_LIMIT when it passes the limit of a buffer. */
int report_result_json(const struct report *r, struct buf *out, struct err *e);
/* The value of its key "profllm"; with the arrays per request when facts->is_detailed. */
void report_ours_json(const struct report *r, struct buf *out);

/* Text from a server: control characters, which a terminal would obey, become "?". */
void line_add_safe(struct buf *out, struct str text);
/* The values of the result's keys "sessions" and "per_turn_metrics". */
void report_sessions_json(struct json_writer *w, const struct metrics *m);
void report_turns_json(struct json_writer *w, const struct metrics *m);
/* One sentence on requests that lost their place in the KV cache, and what helps; else nothing. */
void report_preemptions(const struct metrics *m, struct buf *out);
/* The rows and the members of a run's load; parts of the two above. */
void report_load_rows(const struct report *r, struct buf *out);
void report_load_json(const struct report *r, struct json_writer *w);
/* Nothing where nothing is repeated or warmed up; also for offline runs. */
void report_reuse_rows(const struct report_reuse *r, struct buf *out);
void report_reuse_json(const struct report_reuse *r, struct json_writer *w);

/* YYYYmmdd-HHMMSS and YYYY-mm-ddTHH:MM:SS[.ffffff], local time. Return out. */
char *report_date(char out[REPORT_DATE_BYTES], int64_t real_ns);
char *report_timestamp(char out[REPORT_DATE_BYTES], int64_t real_ns);

/* ---- files ---- */

/* dir/name; filename NULL: the generated name of serve spec 6.1. Caller frees. */
char *report_path(const struct report_facts *f, const char *dir, const char *filename);
/*
 * The generated path, with -2, -3 ... before its ".json" when that file or one named after it
 * (STEM.*) is there: dates are whole seconds, and runs that end in the same one must not replace
 * each other's files. It is created empty to reserve it; a caller that does not write it must
 * remove it. NULL: ERR_IO. Caller frees.
 */
char *report_claim(const struct report_facts *f, const char *dir, struct err *e);
/*
 * Writes whole (replacing) or appends a line (JSON lines). The directory is
 * made. On failure a file that was there before is as it was.
 */
int report_save(const char *path, struct str json, bool is_append, struct err *e);

/* ---- meta ---- */

/* What a record's meta holds for scoring. */
struct report_meta {
	struct report_facts facts;
	struct metrics_opts opts;
	struct trust_facts trust;
};

void report_meta_write(const struct report_meta *m, struct buf *out);
/* Texts and arrays go to the arena. Members that are absent read as zero. */
int report_meta_read(struct report_meta *m, struct str json, struct arena *a, struct err *e);
