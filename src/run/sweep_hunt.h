/* SPDX-License-Identifier: Apache-2.0 */
/* run/sweep_hunt.h - one search of `bench sweep serve_sla`, for its files only. */
#pragma once
#include "run/search.h"
#include "run/sla.h"
#include "run/sweep_parts.h"
#include "run/sweep_search.h"

struct hunt_level {
	int64_t level;
	double *mean; /* of each limit's key over the runs */
};

/* The elements of capacity.json so far. */
struct hunt_report { struct sweep_records outcomes; };

/* Levels of a pair that earlier questions asked for, ascending, with the most runs of one. */
struct hunt_known {
	struct { int64_t level; unsigned runs; } of[SEARCH_LEVELS_MAX];
	size_t n;
};

struct hunt {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const struct sla *asked;      /* as the user wrote it: names files */
	struct sla sla;               /* and the limit on failures, the last one */
	const char *variable;
	enum search_kind kind;
	char *folder;                 /* of the pair; levels lie in it */
	struct search search;
	struct settle settle;
	struct sweep_records records; /* of all levels, in the order of asking */
	struct hunt_level level[SEARCH_LEVELS_MAX];
	size_t n_levels;
	bool has_range, has_sessions; /* the runs' requests belong to conversations */
	unsigned runs_before;
	double requests;              /* of the run at infinite load, failed ones too */
	/* The server's KV cache; NAN: not told. */
	double kv_tokens, kv_requests, kv_request_tokens;
	struct hunt_report *report;
	struct hunt_known *known;
	unsigned known_runs;          /* of the level that is looked at */
};

/* What a level counts, for people. */
const char *hunt_unit(const struct hunt *h);
/* value[run * limits + limit]; ERR_RUN when a result lacks a key. */
int hunt_values(struct hunt *h, const struct sweep_records *runs, double *value, struct err *e);
/* What servers.json says of the cache, in requests as long as this run's. */
void hunt_read_capacity(struct hunt *h, const struct json_value *record);
/* Adds the outcome to capacity.json. */
int hunt_report(struct hunt *h, const struct search_outcome *o, struct err *e);
/* --hover: windows at the boundary, for as long as asked. */
int hunt_hover(struct hunt *h, const struct search_outcome *o, struct err *e);
