/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash_bench.h - `bench hash` and `bench prefix-block-hash`: how long the hash functions take with
 * which an installed vLLM names the blocks of its prefix cache (conversations spec 5.4).
 *
 * Draws and printed lines are made here and equal those of vLLM's scripts; the functions are vLLM's
 * own, called and timed by workers/hash_worker.py in the interpreter that has vLLM. A program of
 * --worker-cmd answers these questions (docs/guide/adapters.md is the protocol):
 *   hash        function, bytes (hex), ints, iterations -> mean_s, std_s, or skipped: why not
 *   blocks      ids, is_first -> n: how many are held now
 *   block_hash  algorithm, block_size, trials -> times_s, or skipped
 */
#pragma once
#include "bench/offline/offline.h"

#define HASH_PAYLOAD 32 /* bytes of the hash before, and integers */

struct hash_opts {
	struct offline_opts common;    /* python, worker_cmd, worker_log, show_log, time-outs */
	int64_t seed;
	/* hash */
	int64_t iterations;
	/* prefix-block-hash */
	int64_t num_blocks, block_size, vocab_size, trials;
	struct opt_list algorithms;    /* empty: all */
};
extern const struct opt_set hash_opt_set, block_hash_opt_set;

struct hash_payload {
	uint8_t bytes[HASH_PAYLOAD];
	int64_t ints[HASH_PAYLOAD];    /* 1 to 1,000,000 */
};
/* Python's random.seed(seed): getrandbits(8) for each byte, then randint for each integer. */
void hash_draw(int64_t seed, struct hash_payload *out);
/* Python's Random(seed).randrange(vocab), n times; vocab at least 1. */
void hash_draw_ids(int64_t seed, int64_t vocab, size_t n, uint32_t *out);

/* The time of one function; seconds. */
struct hash_time { const char *name; double mean_s, std_s; };
/* "Results:" and the summary relative to the built-in function, lines with line ends. */
void hash_lines(const struct hash_time *t, size_t n, struct buf *out);
/* "NAME avg: ..." of trials that took times_s; n at least 1. */
void block_hash_line(const char *name, const double *times_s, size_t n, double tokens,
		     struct buf *out);

/*
 * Runs the benchmark, prints lines through hooks->line as they come, and writes --output-json.
 * ERR_RUN: no vLLM in that interpreter, or none of the functions could be timed.
 */
int hash_run(const struct hash_opts *o, const struct offline_hooks *hooks, struct err *e);
int block_hash_run(const struct hash_opts *o, const struct offline_hooks *hooks, struct err *e);
