/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - what a record means: every number of the report.
 *
 * Pure functions of a record and of a few options; no clock, no network, no output. Definitions
 * with formulas: docs/metrics.md.
 *
 * Units: nanoseconds of the record become double seconds once ((double)ns / 1e9); arrays and all
 * statistics use those doubles, and the factor 1000 of a name that ends in _ms comes last. So
 * NumPy, fed with the arrays of the result file, gives the same bits.
 *
 * Rows: only those of the main phase. A success is a row in state REQ_DONE, a failure one in
 * REQ_FAILED; all others were cancelled (or never finished in a record that was cut off) and count
 * as neither. Requests left unsent by a time limit (REQ_UNSENT) do not belong to the run.
 *
 * Not here: whether the numbers can be trusted (metrics/trust.h), how they are written
 * (out/report/), filling in missing token counts (bench/serve/).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/metrics.h"
#include "client/record/record.h"
#include "client/record/system_series.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/stats/percentile.h"
#include "core/stats/settled.h"

/* The blocks of the report, in report order: X(bit name, key). */
#define METRIC_BLOCKS(X)                                                                  \
	X(TTFT, "ttft") X(TPOT, "tpot") X(ITL, "itl") X(E2EL, "e2el")                     \
	X(QUEUE_TIME, "client_queue_time") X(E2EL_WITH_QUEUE, "e2el_including_client_queue")
#define X(name, key) BLOCK_##name,
enum metric_block { METRIC_BLOCKS(X) BLOCK_COUNT };
#undef X
#define BLOCK_BIT(block) (1u << (block))

const char *metric_block_key(enum metric_block block);
enum metric_block metric_block_find(struct str key); /* BLOCK_COUNT: unknown */

#define METRICS_GOODPUT_MAX 3
struct metrics_goodput {
	enum metric_block block; /* TTFT, TPOT or E2EL */
	double limit_ms;
};

struct metrics_opts {
	const double *percentile;      /* in the order given, each 0..100 */
	size_t n_percentiles;
	unsigned selected;             /* BLOCK_BITs the user asked for */
	struct metrics_goodput goodput[METRICS_GOODPUT_MAX];
	size_t n_goodput;              /* 0: no objectives, goodput is null */
	double session_limit_ms;       /* --goodput session_duration; 0: no such objective */
	bool is_pooling;
	bool has_tokenizer;
	bool is_rate_finite;           /* as --request-rate says; false with ramp-up */
	bool is_user_stamps;           /* --timestamps user */
	bool is_peak_exact;            /* --compat peak */
	bool is_prompt_from_sample;    /* --compat v0.11: input tokens as counted by the dataset */
	bool is_peak_in_tokens;        /* --fix peak-tokens */
	bool is_eos_ignored;           /* answers were requested with their full length */
	int64_t max_concurrency;       /* 0: no cap */
	uint32_t max_sessions;         /* conversations under way at once; 0: no cap */
	uint32_t n_hosts;              /* records merged into this one; 0 counts as 1 */
	bool reports_cached_tokens;    /* --report-cached-tokens */
	bool finds_steady_state;       /* not --no-steady-state */
	double steady_threshold;       /* of max_concurrency */
	double steady_min_window_s;    /* 0: STEADY_WINDOW_S, or its share of the run */
};

/*
 * Adds a limit of --goodput: ttft, tpot, e2el or session_duration; replaces an earlier one of that
 * name. False for an unknown name.
 */
bool metrics_opts_add_goodput(struct metrics_opts *o, struct str name, double limit_ms);

#define METRICS_LATE_SHARE 0.10   /* of the median ITL: a later read distorts gaps */
#define METRICS_LATE_FLOOR_MS 0.1
#define WRITE_BYTES_MAX 65536 /* fits in any socket's buffer, so writing never waits */
#define STEADY_WINDOW_S 10.0
#define STEADY_WINDOW_SHARE 0.1

/* One block as upstream reports it; all in milliseconds. */
struct metrics_summary {
	bool is_reported;              /* selected, and defined for this run */
	size_t n;
	double mean_ms, median_ms, std_ms;
	double *percentile_ms;         /* one per requested percentile */
	struct percentile *bounds;     /* of the median, then of each, in s; or NULL */
	double *sketch;                /* SKETCH_QUANTILES, in s; NULL: of a part, or no latency */
};

/* Probe requests, sent one at a time next to the load. Reported when one succeeded. */
struct metrics_probe {
	uint32_t completed, failed;
	double median_ms, p99_ms, max_ms;
};

/* Speculative decoding during the run, over all servers. */
struct metrics_spec {
	bool is_reported;
	double acceptance_rate;        /* percent */
	double acceptance_length;      /* tokens; 0 without drafts */
	int64_t drafts, draft_tokens, accepted_tokens;
	double position_rate[SPEC_POSITIONS_MAX]; /* accepted / drafts, ascending */
	size_t n_positions;
};

/* A diffusion model's work during the run, over all servers. */
struct metrics_diffusion {
	bool is_reported;
	double committed_throughput;   /* tokens/s */
	double steps_per_canvas;       /* denoising steps, the committing one not counted */
	double committed_per_step;     /* tokens */
	double denoising_steps;
	int64_t committed_tokens, canvas_positions;
};

/* A gauge during the load; of several servers, the points of all. */
struct metrics_gauge { size_t n; double min, mean, max, last; int64_t last_ns; };
/* Increase of a counter from before the load to after it; of several servers, the sum. */
struct metrics_growth { bool is_reported; double value; };

struct metrics_server {
	struct str url;                /* of one of several servers; empty for all together */
	uint32_t scrapes, failed_scrapes;
	bool is_restarted;             /* counters decreased, or its process is another one */
	struct metrics_gauge running, waiting, kv_usage;
	struct metrics_growth prefix_queries, prefix_hits, preemptions, prompt_tokens,
		generation_tokens;
};

/* The part of a closed loop with enough requests in flight; ns of the record. */
struct metrics_steady {
	bool is_wanted;                /* a cap, an infinite rate, not --no-steady-state */
	bool is_reached;
	int64_t first_ns;              /* the first start of a success: windows count from it */
	int64_t start_ns, end_ns;
	double duration_s, run_s;      /* run_s: of the whole run, for the warning */
	int64_t threshold_requests, observed_peak;
	uint32_t started, completed, total; /* successes */
	bool is_short;                 /* shorter than the requested minimum */
	double request_throughput, input_throughput, output_throughput, total_token_throughput;
	double mean_ttft_ms, median_ttft_ms, *percentile_ttft_ms; /* one per requested percentile */
	double mean_tpot_ms, median_tpot_ms, p90_tpot_ms, p99_tpot_ms;
};

/* What has a mean over the settled part of a run: X(name, key). */
#define METRICS_SETTLED(X)                                                                \
	X(TTFT, "ttft_ms") X(TPOT, "tpot_ms") X(ITL, "itl_ms") X(E2EL, "e2el_ms")         \
	X(REQUESTS, "request_throughput") X(OUTPUT, "output_throughput")
#define X(name, key) METRICS_SETTLED_##name,
enum metrics_settled_value { METRICS_SETTLED(X) METRICS_SETTLED_COUNT };
#undef X

/*
 * The run without its warm-up and its end, as far as the numbers show them (core/stats/settled.h).
 * Successes in the order of their start.
 */
struct metrics_settled {
	bool is_reported;              /* something succeeded */
	bool is_burst;                 /* sent in less time than one request takes: cannot settle */
	uint32_t left_out_start, left_out_end; /* requests */
	uint32_t n;                    /* kept */
	double start_s, end_s;         /* starts of the first and last kept one, from first_ns */
	struct settled_mean mean[METRICS_SETTLED_COUNT]; /* ms, per s; n, needed: requests */
};

/*
 * A percentile over all attempted requests. One that failed or was cancelled took at least as long
 * as it ran: low counts that time, high counts it as infinite.
 */
struct metrics_attempted_percentile { double p, low_ms, high_ms; };
struct metrics_attempted_block {
	uint32_t known, censored;      /* requests whose value is known, and all others attempted */
	struct metrics_attempted_percentile *percentile; /* the median, then those asked for */
};
/* Every request is one of these: attempted = succeeded + failed + cancelled. */
struct metrics_attempted {
	uint32_t n, succeeded, failed, cancelled;
	uint32_t unsent;               /* cancelled before anything was sent; not attempted */
	uint32_t with_tpot, with_itl;  /* successes with values of these blocks */
	double good_share;             /* share of attempted within all --goodput limits; NAN */
	struct metrics_attempted_block ttft, e2el;
};

/* Summary of a metric that upstream does not report. */
struct metrics_spread {
	size_t n;                      /* 0: no values */
	double mean_ms, p50_ms, p99_ms, max_ms;
};
/* The largest skew that a record can hold; a spread that reaches it may be larger. */
#define METRICS_SKEW_MAX_MS 4294.967

/* Requests to one base URL. */
struct metrics_url { uint32_t requests, completed, failed; double mean_ttft_ms; };

/* More different priorities than this are not reported as classes. */
#define METRICS_CLASSES_MAX 32

/* The requests of one priority; times of its successes. */
struct metrics_class {
	int64_t priority;              /* lower ones are served earlier */
	uint32_t requests, completed, failed;
	struct metrics_spread ttft, tpot, e2el;
	struct metrics_spread queue;   /* in the server, if it reports that */
};
/* The values of one request for metrics_class_split. Seconds; NAN: not reported. */
struct metrics_class_request {
	int64_t priority;
	bool is_completed, is_failed;
	double ttft_s, tpot_s, e2el_s, queue_s;
};
/*
 * Splits by ascending priority. Returns the number of different priorities; fills out when it is at
 * most METRICS_CLASSES_MAX.
 */
size_t metrics_class_split(const struct metrics_class_request *v, size_t n,
			   struct metrics_class out[METRICS_CLASSES_MAX]);
/* Median of a class divided by that of the same requests without priorities; NAN: unknown. */
struct metrics_class_cost { double ttft, tpot, e2el, queue; };
struct metrics_class_cost metrics_class_cost(const struct metrics_class *with,
					     const struct metrics_class *without);

/*
 * What user-space stamps add to the times, where the kernel's are also known: p99 of how much later
 * the first event was read (TTFT) and the last (E2EL), of the difference between neighbours (ITL),
 * and of last minus first per gap (TPOT), without sign.
 */
struct metrics_shift { size_t n; double ttft_p99_ms, e2el_p99_ms, itl_p99_ms, tpot_p99_ms; };

/*
 * Whether an open loop's server kept up, from the first arrival plus the median E2EL (until then
 * requests only accumulate) to the last arrival.
 */
struct metrics_queue {
	bool is_known;                 /* a finite rate and enough requests */
	/* In that time; 0 if it is shorter than the median E2EL: then only growth_p is used. */
	uint32_t arrived, answered;
	uint32_t in_flight_before, in_flight_after;
	double offered_rps, carried_rps;
	double longer;                 /* of arrived: still running if the server keeps up, for they
					  take longer than the median E2EL */
	bool knows_growth;             /* prompts did not get longer; the thirds are large enough */
	double ttft_first_ms, ttft_last_ms; /* medians of the first and the last third to arrive */
	double growth_p;               /* of a trend of the medians of ten parts, two-sided */
	bool knows_waiting;            /* there are several priorities */
	double waiting_first, waiting_last; /* means of what an arrival of those thirds found: so
					  many requests waited for their first event */
	double waiting_p;              /* of a trend of the means of ten parts */
};

/*
 * How full a closed loop was: a cap, and all requests due at the start (conversations: their first
 * ones). Requests and conversations that were sent, whatever became of them.
 */
struct metrics_slots {
	bool is_known;
	uint32_t requests;             /* of a run with conversations: conversations */
	double in_flight_mean;         /* from the first start to the last end; 0: conversations */
};

/*
 * How long requests of an open loop with a cap waited in the client for one of its slots; its own
 * delay is not in it.
 */
struct metrics_held { size_t n; double mean_ms, share; }; /* share: that waited METRICS_LATE_NS */

/*
 * Whether the first requests of a run were slower than the others, in order of sending (the test is
 * in episodes.c).
 */
struct metrics_start {
	bool is_known;                 /* enough requests, and the first prompts are not longer */
	uint32_t n, first;             /* successes, and how many first ones are compared */
	double p;                      /* chance of this in a run whose requests are all alike */
	double ttft_first_ms, ttft_rest_ms; /* medians */
	double mean_ms, mean_rest_ms;  /* of TTFT: over all, and without the first */
};
/*
 * Probability that k of n drawn at random include at least `overlap` of k marked ones; k <= n,
 * overlap <= k.
 */
double metrics_overlap_p(uint32_t n, uint32_t k, uint32_t overlap);

/*
 * The longest sequence of requests that ended one after the other with a lost connection, at least
 * one of them because no connection could be made, with successes before and after it; requests 0:
 * none. start_s: end of the first of them, since the start of the run; duration_s: from there to
 * the next success.
 */
struct metrics_outage { uint32_t requests; double start_s, duration_s; };

/* Values of any unit. */
struct metrics_stats { size_t n; double mean, p50, p99, max; }; /* n 0: nothing to say */

/*
 * Requests with the same position in their conversation (row.turn). Rates are over the time in
 * which such requests were running: from the first one's start to the last one's end.
 */
struct metrics_turn {
	uint32_t turn, last_turn;      /* from 0; different for a range of turns */
	uint32_t n, completed, failed; /* n: all, also those that were not sent */
	int64_t total_input, total_output;
	double duration_s, request_throughput, input_throughput, output_throughput,
		total_token_throughput;
	struct metrics_summary block[BLOCK_COUNT];
	bool is_cache_known;           /* the server reports cached tokens */
	double cached_share;           /* of the prompt tokens of those that report it ... */
	double cache_known_tokens;     /* ... and the number of those prompt tokens */
	struct metrics_stats context;  /* prompt tokens of successes */
	struct metrics_stats cached;   /* of these cached, where the server says so */
};
#define METRICS_TURN_RANGES_MAX 12 /* rows of a table of turns that is still easy to read */

/*
 * Conversations that began. completed: all turns succeeded; failed: one failed or was given up;
 * unfinished: the run ended before. Durations are of completed ones, in seconds, from the first
 * start to the last end: serving is the time in which any of its requests was running, gap the
 * rest.
 */
#define METRICS_BLOCK_TOKENS 16 /* tokens per block of a prefix cache, vLLM's default */
struct metrics_sessions {
	uint32_t n, completed, failed, unfinished;
	uint32_t turns, turns_completed, turns_failed, turns_dropped, turns_unsent;
	struct metrics_stats turns_per_session, duration, serving, gap;
	double throughput;             /* completed per second of the run */
	double goodput;                /* sessions per second whose turns meet every objective */
	bool is_cache_known;
	double cached_share;           /* of all prompt tokens of turns that report it */
	struct metrics_stats cached_by_session;
	/*
	 * reusable: whole blocks (METRICS_BLOCK_TOKENS) of the continued turn's prompt and answer,
	 * as a share of the prompt tokens. efficiency: the share of those that was reused.
	 */
	double reusable_share, reuse_efficiency;
	struct metrics_spread first_ttft, later_ttft; /* of successes: turn 0, and all others */
	/*
	 * TTFT in ms per 1,000 prompt tokens, by least squares; NAN: all prompts have one length.
	 * Its standard error, NAN with two requests, and half of its 95 % interval (Student's t).
	 */
	double context_slope_ms, context_slope_error_ms, context_margin_ms;
	struct metrics_stats growth;   /* prompt tokens minus those of the turn it continues */
	struct metrics_spread gap_lag; /* due to sent, of turns that follow others */
	uint32_t bad_calls;            /* turns with a malformed tool call */
	uint32_t client_counted;       /* successes whose context was counted by the client */
	struct metrics_turn *by_turn;
	size_t n_turns;
	/* The first turn, then ranges of equal size; NULL if by_turn is short enough. */
	struct metrics_turn *by_range;
	size_t n_ranges;
	/*
	 * Without the first turn, whose prompt is seldom cached: slope of the turns' median TTFT,
	 * by least squares weighted by their successes, with its standard error (NAN for two
	 * requests), and whether its 95 % interval excludes 0 (is_growth_clear); and cached_share.
	 */
	bool knows_growth, is_growth_clear, is_later_cache_known;
	double ttft_growth_per_turn_ms, ttft_growth_error_ms, later_cached_share;
};

/* The machine during the load, from the series of a record. */

/* Over n samples, including those next to the window. */
struct metrics_level { size_t n; double min, mean, max; };

struct metrics_gpu {
	int64_t index;                 /* -1: not reported */
	const char *uuid, *name;       /* may be empty */
	double memory_total;           /* bytes */
	struct metrics_level memory;   /* bytes */
	struct metrics_level utilization, memory_busy; /* % of time */
	struct metrics_level sm_clock, memory_clock; /* MHz */
	struct metrics_level power;    /* W */
	struct metrics_level temperature; /* degrees Celsius */
	/* By DCGM; n 0: not read, or not supported. % of cycles; bytes/s over all links. */
	struct metrics_level sm_active, tensor_active, dram_active;
	struct metrics_level nvlink_sent, nvlink_received, pcie_sent, pcie_received;
	double energy_j;
	bool is_energy_counted;        /* by the GPU; else integrated from power */
	double power_before_w;         /* of the last sample before the load */
};

struct metrics_process {
	const char *name;
	int64_t pid;
	struct metrics_level cpus;     /* busy ones */
	double cpu_s;
	struct metrics_level rss, threads, count;
};

struct metrics_host {
	double cpus, memory_total;
	struct metrics_level cpus_busy, memory;
	struct metrics_level received, sent; /* bytes/s */
};

struct metrics_system {
	bool is_reported;                  /* there is at least one series of the machine */
	struct metrics_gpu *gpu;
	size_t n_gpus;
	struct metrics_host host;
	struct metrics_process *process;
	size_t n_processes;
	/* Over all GPUs; NAN without any. */
	double peak_gpu_memory_gb;     /* 1e9 bytes: sum of each GPU's peak */
	double avg_gpu_utilization;    /* %: mean of their means */
	double energy_j;               /* sum; NAN if one of them does not report it */
	double power_mean_w;           /* energy_j over the time */
	double power_before_w;
	double j_per_token, j_per_token_total; /* output; input and output */
	double tokens_per_s_per_w;     /* output tokens/s over power_mean_w: tokens per joule */
	/* The cost of monitoring. */
	size_t samples;                /* in the window */
	double missed, interval_s;     /* samples skipped; mean time between samples */
	double sampler_cpu_s, sampler_share; /* of one core */
	const char *note;              /* what could not be monitored; NULL: nothing */
};

struct metrics_tokens { double input, output; };

/* Lists and texts go to the arena. */
void metrics_system(struct metrics_system *out, const struct record *r,
		    const struct metrics_tokens *tokens, struct arena *a);

struct metrics_error { struct str text; uint32_t count; };
struct metrics_failures {
	uint32_t count;
	struct metrics_error example[ERROR_EXAMPLES_MAX]; /* distinct texts, first seen first */
	uint32_t n_examples;
	uint32_t n_others;             /* failures whose text is not among the examples */
};

/*
 * Due times come from CLOCK_MONOTONIC and sending is stamped by CLOCK_REALTIME, so smaller
 * differences do not count as sent early.
 */
#define METRICS_EARLY_NS 1000000

/* How closely the sending followed the plan: requests that were due and sent. */
struct metrics_schedule {
	uint32_t n;
	double planned_span_s, sent_span_s; /* from the first to the last root */
	double late_share;                  /* sent more than METRICS_LATE_NS after due */
};
#define METRICS_LATE_NS 1000000

/* The client's view of itself and of the connection; not in upstream. */
struct metrics_client {
	struct metrics_spread lag;          /* due to sent, waiting for a slot included */
	struct metrics_spread send_lag;     /* the part caused by the client itself */
	struct metrics_spread skew;         /* user-space clock minus kernel stamp, per event */
	struct metrics_spread connect;      /* new connections: TCP and TLS */
	struct metrics_spread from_due;     /* due to last token, successes */
	struct metrics_spread ttft_answer;  /* sent to first answer text, successes */
	struct metrics_spread ttft_content; /* sent to the first event with any content */
	struct metrics_spread best_tpot;    /* TPOT by the best known counts and first content */
	struct metrics_spread ttft_connect; /* TTFT including connecting, successes */
	struct metrics_spread write;        /* first to last byte; only up to WRITE_BYTES_MAX */
	struct metrics_spread first_late;   /* approximate TTFT added by late first reads */
	struct metrics_spread tpot_late;    /* and removed from TPOT, where it is known */
	struct metrics_shift shift;
	struct metrics_queue queue;
	struct metrics_slots slots;
	struct metrics_held held;           /* n 0: no cap, or no rate */
	struct metrics_start start;
	struct metrics_outage outage;
	struct metrics_schedule schedule;
	double mean_interarrival_s;         /* between due times of roots */
	uint64_t n_events;                  /* token events of all requests */
	uint64_t n_events_with_text;
	uint64_t n_shared;                  /* with text, in one read with an earlier one */
	uint64_t n_shared_late;             /* of these, read late and not in one segment */
	uint64_t n_joined;                  /* events in the same segment as the one before */
	uint64_t n_not_one_token;           /* events known to carry no token or several */
	uint64_t n_events_with_usage;       /* events of successes that have usage... */
	uint64_t n_tokens_with_usage;       /* ... and the number of tokens it reports */
	uint32_t n_usage;                   /* successes with usage, used or ignored */
	uint32_t n_usage_differs;           /* of these: usage differs from the tokens seen */
	uint32_t n_count_unlike_usage;      /* of these: as above, or the reported count differs */
	uint32_t n_usage_ignored;           /* of these: it only came in events with choices */
	uint32_t n_usage_refused;           /* successes with an impossible count */
	uint32_t n_counted;                 /* successes whose tokens the client counted */
	uint32_t n_count_short;             /* of these: fewer tokens than events with content */
	uint32_t n_count_unknown;           /* successes counted as one token */
	/*
	 * The best known counts of successes: usage, even if ignored; without any, the largest of
	 * the counted tokens, those of all text, and the events with content.
	 */
	int64_t best_output, best_input;
	uint32_t n_longer_than_asked;       /* successes with more output tokens than asked for */
	uint32_t n_shorter_than_asked;      /* by usage, and the model did not end the answer */
	uint32_t n_role_first;              /* successes whose TTFT is that of a role (client.c) */
	uint32_t n_at_once;                 /* successes whose tokens, two or more, came at once */
	uint32_t finishes[FINISH_COUNT];    /* successes by their finish reason */
	uint32_t n_user_stamped;            /* rows with a user-space stamp */
	uint32_t n_new_connections;
	uint32_t n_sent_early;              /* sent before they were due: always an error */
	uint64_t retries;                   /* requests written again */
	bool is_full;                       /* a shard's limit was reached; events are missing */
};

/* The cause of a slow gap before an event, as far as the record shows it (gaps.c). */
#define GAP_CAUSES_LIST(X)                                                                \
	X(SERVER, "server") X(DELIVERY, "delivery") X(CLIENT, "client") X(UNKNOWN, "unknown")
#define X(name, text) GAP_##name,
enum gap_cause { GAP_CAUSES_LIST(X) GAP_CAUSES };
#undef X
const char *gap_cause_name(enum gap_cause c);

#define METRICS_SLOW_FACTOR 2       /* a gap is slow above this multiple of the typical gap, */
#define METRICS_SLOW_FLOOR_MS 1     /* if it is also this much longer */

/*
 * Gaps of successes between arrivals (events that came together are one). p99_without_ms: 99th
 * percentile of event ITL without the slow gaps of this cause; NAN: none are left.
 */
struct metrics_gaps {
	uint64_t n, n_slow;
	double typical_ms, limit_ms;
	struct { uint64_t n; double p99_without_ms; } cause[GAP_CAUSES];
	struct metrics_spread event;        /* gap before each event, as upstream's ITL */
	struct metrics_spread token;        /* gap / tokens of the event, for each token */
	struct metrics_spread segment;      /* between different arrival stamps */
};

/*
 * Answers that had to satisfy a constraint. Our numbers cover successes; upstream's cover every
 * request, even if it failed or was sent without the constraint (conversations spec 4.4).
 */
struct metrics_correctness {
	uint32_t n;                    /* all requests with a constraint */
	uint32_t constrained, constrained_scored, constrained_correct; /* successes that got it */
	uint32_t free_scored, free_correct;       /* successes that did not get it */
	uint32_t upstream_scored, upstream_correct;
	uint32_t wrong[WRONG_COUNT];   /* of constrained ones, why they are wrong */
};

struct metrics {
	struct metrics_opts opts;      /* percentile points at a copy */
	uint32_t completed, failed, cancelled;
	uint32_t given_up;             /* cancelled as planned; not in cancelled */
	double duration_s;
	int64_t total_input, total_output, total_sequences;
	int64_t total_cached;          /* prompt tokens reported as cached by the server's usage */
	uint32_t n_cached_known;       /* successes whose usage has that */
	double request_throughput, request_goodput, output_throughput, total_token_throughput;
	double input_throughput;       /* prompt tokens/s; ours */
	double sequence_throughput, rtfx;
	double max_output_tokens_per_s;
	int64_t max_concurrent_requests;
	struct metrics_summary block[BLOCK_COUNT];

	/* n elements each, in row order, failures included. Seconds. */
	uint32_t n;
	uint32_t *row;                 /* index in the record */
	int64_t *input_len, *output_len;
	double *ttft, *latency, *queue_time;
	double *start_time;            /* since the epoch, to a quarter of a microsecond */
	double *itl;                   /* of element i: itl[itl_at[i]] to itl[itl_at[i + 1]] */
	size_t *itl_at;                /* n + 1 */

	struct metrics_probe probe;
	struct metrics_spec spec;
	struct metrics_diffusion diffusion;
	struct metrics_server servers; /* all together */
	struct metrics_server *server; /* each, if there are several */
	size_t n_servers;
	struct str server_note;        /* why a server's metrics could not be read; may be empty */
	struct metrics_system system;  /* the machine */
	struct metrics_steady steady;
	struct metrics_settled settled;
	struct metrics_attempted attempted;
	struct metrics_url *url;       /* by the rows' endpoint */
	size_t n_urls;
	struct metrics_sessions sessions; /* n 0: no conversations */
	struct metrics_class *class;   /* NULL: one priority, or more than METRICS_CLASSES_MAX */
	size_t n_priorities;           /* number of different ones */
	struct metrics_client client;
	struct metrics_gaps gaps;      /* n 0: no answer has two events */
	struct metrics_correctness correctness;
	struct metrics_failures failures[FAIL_COUNT];
	struct arena arena;            /* error texts, percentiles, servers */
};

void metrics_score(struct metrics *m, const struct record *r, const struct metrics_opts *opts);
void metrics_release(struct metrics *m);

/* Second by second from the earliest start of a success, successes only (serve spec 4.5). */
struct metrics_by_second {
	size_t n;         /* 0: none succeeded */
	double *tokens;   /* output token events (tokens with --fix peak-tokens) */
	int64_t *running; /* requests that touch the second */
};
void metrics_by_second(struct metrics_by_second *out, const struct metrics *m,
		       const struct record *r);
void metrics_by_second_release(struct metrics_by_second *s);

/* "99", "99.9": a percentile as spelled in labels and keys. Returns out. */
char *metrics_percentile_name(char out[FMT_F64_BYTES], double p);

/* A server's number as an integer, saturated. */
static inline int64_t metrics_whole(double v)
{
	return !(v < 0x1p63) ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}
