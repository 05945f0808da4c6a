/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ab.h - two running servers compared live: pairs of blocks over the pipeline of `bench serve`
 * until decide/paired.h says stop.
 *
 * A block is one run_point with the options of `bench serve`, the same on both sides but for the
 * URL. It has a fixed number of requests, so both sides of a pair send the same ones:
 *
 *   arrivals  the seed of pair j is --seed + j, so both blocks have the same plan, and each pair
 *             another one. A plan of n requests at a rate lasts n / rate.
 *   prompts   drawn by the same seed, and begun with a salt whose key ends with the pair's
 *             number: neither side has them in a prefix cache, and the coin decides who goes first.
 *             With --prompt-salt none the prompts are those of the data set alone.
 *   drain     run_point returns when the last request has ended, so the other side starts idle.
 *   warm-up   the first requests of the plan are sent and not counted.
 *
 * The first pair is thrown away: it fills caches, compiles kernels, and its end-to-end time and
 * throughput give the length of the blocks that follow. At a finite --request-rate a block has
 * rate x length requests; without one it is a closed loop of --max-concurrency, and has as many
 * requests as the slower side answers in that time. --num-prompts gives the number itself.
 *
 * Failed requests are counted and not in any metric; decide/paired.h voids the verdict or stops.
 * A metric that a block's own verdict calls INVALID has no value in that pair. A server that
 * cannot be reached ends everything with its sentence; what was measured stays in the struct.
 */
#pragma once
#include "bench/serve/point.h"
#include "bench/server/server.h"
#include "client/metrics/metrics.h"
#include "core/base/mem.h"
#include "results/decide/paired.h"

/*
 * The two servers of an A/B comparison, if commands were given in place of URLs.
 *
 * A is started first and must answer before B is started, because engines take a share of a GPU's
 * free memory. Both then run until the end: while one is loaded the other is idle, but keeps its
 * memory. Each must listen on a port of its own.
 */

struct ab_serve {
	const char *cmd[2];       /* both, or NULL: the servers run already */
	double ready_timeout_s, grace_s;
	const char *log_dir;      /* a.log and b.log in it; NULL: logs are not kept */
};

struct ab_servers {
	const struct ab_serve *opts;
	const struct server_hooks *hooks;
	char **argv[2];           /* in arena */
	struct server_address where[2];
	char *log[2];             /* in arena */
	bool is_log_ours[2];
	struct server *server[2]; /* NULL: not started, or not any more */
	struct arena arena;
};

struct ab_metric {
	const char *name;             /* mean_tpot_ms, median_ttft_ms, p99_e2el_ms, ... */
	enum metric_block block;      /* of a time */
	bool is_output, is_requests;  /* a throughput of the counted requests */
	double percentile;            /* of a time; NAN: mean */
	int better;                   /* as in paired_metric */
};
/* ERR_USAGE lists the known metrics. */
int ab_metric_parse(const char *name, struct ab_metric *out, struct err *e);

struct ab_opts {
	int argc;                     /* options of bench serve, without URL */
	char **argv;
	const char *url[2];           /* both, or serve.cmd */
	struct ab_serve serve;
	const struct ab_metric *metric; /* as many as paired.metric has */
	struct paired_opts paired;    /* its seed is set from --seed */
	double block_s;               /* 0: paired_block */
};

/* One measured pair, kept for the report. */
struct ab_pair {
	enum paired_side first;
	struct paired_pair measured;
};

/* What the verdicts of blocks had against a metric. */
struct ab_doubt {
	unsigned blocks, degraded;    /* that count; of these, in which it was DEGRADED */
	bool is_invalid;              /* in some block */
	char why[320];                /* the worst reason of the last block that had one */
};

struct ab {
	const struct ab_opts *opts;
	struct paired paired;
	enum paired_next why;         /* the run ended */
	struct paired_block block;
	uint32_t requests, skipped;   /* of a block: all, and those of the warm-up */
	double e2el_s, rate;          /* of the first pair: the slower side */
	int64_t seed;
	enum salt_kind salt;
	char salt_key[SALT_KEY_BYTES + 1]; /* without a pair's number; empty: no salt */
	struct ab_pair *pair;         /* heap; [0] is the discarded one */
	size_t n_pairs;
	struct ab_doubt doubt[PAIRED_METRICS_MAX]; /* of each metric */
	char *failure[2];             /* heap: why the first one failed; NULL: none did */
	const char *url[2];           /* NULL until known */
	struct ab_servers servers;
	char *started_url[2];         /* heap: url of servers that were started */
	bool is_interrupted;
};

struct ab_hooks {
	void *self;
	void (*line)(void *self, const char *text); /* about the start of servers */
	void (*warn)(void *self, const char *text);
	/* After each pair, the first among them. */
	void (*paired)(void *self, const struct ab *ab);
	const atomic_bool *cancel;
};

/* 0: it ended by itself or was interrupted; -1: e says why it failed. ab_release in both cases. */
int ab_run(const struct ab_opts *opts, const struct ab_hooks *hooks, struct ab *out,
	   struct err *e);
void ab_release(struct ab *ab);
