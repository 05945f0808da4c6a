/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h - the names of the series and notes that a record has of servers.
 *
 * telemetry/ writes them, metrics/ and report/ read them; only telemetry/ knows the servers' own
 * names for their metrics. Every series has the label url.
 */
#pragma once

/* X(enum, name of the record's series, unit). Counters only grow while the server lives. */
#define SERVER_SERIES(X)                                                              \
	X(RUNNING, "running", "requests")               /* in the engine's batch */        \
	X(WAITING, "waiting", "requests")               /* not yet in it */                \
	X(KV_USAGE, "kv_usage", "")                     /* of the KV cache, 0 to 1 */      \
	X(PROCESS_START, "process_start", "s")          /* when its process began */       \
	X(PREFIX_QUERIES, "prefix_queries", "tokens")   /* counter: looked up in it */    \
	X(PREFIX_HITS, "prefix_hits", "tokens")         /* counter: of these, found */     \
	X(PREEMPTIONS, "preemptions", "")               /* counter */                      \
	X(PROMPT_TOKENS, "prompt_tokens", "tokens")     /* counter */                      \
	X(GENERATION_TOKENS, "generation_tokens", "tokens") /* counter */                  \
	X(DRAFTS, "spec_drafts", "drafts")              /* counter */                      \
	X(DRAFT_TOKENS, "spec_draft_tokens", "tokens")  /* counter */                      \
	X(ACCEPTED_TOKENS, "spec_accepted_tokens", "tokens") /* counter */                 \
	X(DIFFUSION_STEPS, "diffusion_steps", "steps")  /* counter: denoising */           \
	X(DIFFUSION_POSITIONS, "diffusion_positions", "positions") /* counter: of canvases */ \
	X(DIFFUSION_COMMITTED, "diffusion_committed", "tokens") /* counter */
#define X(id, name, unit) SERIES_##id,
enum series_id { SERVER_SERIES(X) SERIES_COUNT };
#undef X
#define SERIES_FIRST_COUNTER SERIES_PREFIX_QUERIES /* this and all after it */

/* A counter per position in a draft; the position is one more label of the series. */
#define SERIES_POSITION "spec_accepted_at"
/* Duration in seconds of one read of /metrics: a point for each successful read ... */
#define SERIES_SCRAPE "scrape"
/* ... and one, of value 1, for each failed one. */
#define SERIES_SCRAPE_FAILED "scrape_failed"
/* One point: the number of successful reads, if the series were thinned. */
#define SERIES_READINGS "readings"
/* A note of this kind says why a server's /metrics were not read: "URL: reason". */
#define NOTE_SERVER_METRICS "server_metrics"

const char *series_name(enum series_id id);
const char *series_unit(enum series_id id);

struct record;
struct record_series;
/* Points of from's series are moved; names and notes are copied. */
void series_move(struct record *into, struct record *from);
/*
 * Drops about every second point: of four in a row the minimum and the maximum stay, so that
 * extremes are kept and means are not biased. The first one, from before the load, always stays.
 */
void series_thin(struct record_series *s);
