/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv.h - KV caches that come from elsewhere, in the engine model: what a prompt need not compute
 * because it is brought over a link instead.
 *
 *   decode        a request that was prefilled elsewhere (X-Request-Id: ___prefill_addr_...): all
 *                 of its prompt but the last token, which the engine computes itself
 *   decode bench  vLLM's DecodeBenchConnector: likewise for every request, and it costs nothing
 *   host tier     blocks that were computed before and are in the host's memory
 *   cache server  blocks that any server that shares it has computed
 *
 * Bringing takes token_ns a token, one request after the other, while the engine goes on with
 * others; then the request queues. What tiers keep is named as prefix.h names it and written at a
 * request's first token, at no cost.
 *
 * A cache server (`profllm sim --role cache`) speaks plain text, a block's name of 16 hexadecimal
 * digits a line: POST /kv/look answers how many from the first line on it knows, POST /kv/keep
 * makes it know them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "net/loop.h"
#include "sim/call.h"
#include "sim/prefix.h"

enum kv_role { KV_ALONE, KV_PRODUCER, KV_CONSUMER, KV_BOTH };

struct kv_opts {
	enum kv_role role;
	bool is_decode_bench;
	bool is_cache_server;
	int64_t host_tokens;      /* room of the host tier, or of a cache server; 0: none */
	const char *cache_url;    /* NULL: no cache server */
	double us_per_token;      /* of the link */
};

struct conn;
struct sim;

/* A zeroed one brings nothing. */
struct kv {
	const struct kv_opts *opts;
	struct prefix_cache host;
	struct peer cache;
	bool is_on;               /* anything of it is in use */
	double token_ns;
	int64_t link_free_ns;     /* monotonic: when the link has brought what was asked so far */
	uint64_t queries, hits;   /* tokens looked up elsewhere, and found */
	struct kv_put *puts;      /* under way to the cache server */
};

/* Of one answer, until the engine has it. Zeroed: none. */
struct kv_wait {
	struct timer timer;
	struct call call;
	uint32_t local, brought;  /* tokens: in the engine's own cache; all that need no work */
	int64_t asked_ns;         /* monotonic */
	char answer[24];          /* of the cache server */
	size_t answered;          /* bytes of it */
	bool is_waiting;
	bool is_kept;             /* its blocks were handed to the tiers */
};

int kv_init(struct kv *k, const struct kv_opts *o, struct err *e);
void kv_release(struct kv *k);
/* Whether the names of prompts' blocks are needed. */
bool kv_wants_names(const struct kv *k);

/* Everything is set for the engine but what comes from elsewhere; ends in stream_admit. */
void kv_begin(struct conn *c);
void kv_cancel(struct conn *c);
/* The prompt is computed. */
void kv_keep(struct conn *c);

/* ---- a cache server's paths ---- */
void kv_serve_look(struct conn *c, struct str body);
void kv_serve_keep(struct conn *c, struct str body);
