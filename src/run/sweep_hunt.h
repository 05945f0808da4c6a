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

struct hunt {
	struct sweep *s;
	const struct json_value *serve, *bench;
	const struct sla *asked;      /* as the user wrote it: names files */
	struct sla sla;               /* and the limit on failures, the last one */
	const char *variable;
	enum search_kind kind;        /* where it is one of upstream's */
	char *folder;                 /* of the pair; levels lie in it */
	struct search search;
	struct sweep_records records; /* of all levels, in the order of asking */
	struct hunt_level level[SEARCH_LEVELS_MAX];
	size_t n_levels;
	bool has_range, has_sessions; /* the runs' requests belong to conversations */
	unsigned runs_before;
	double requests;              /* of the run at infinite load, failed ones too */
	/* The server's KV cache; NAN: not told. */
	double kv_tokens, kv_requests, kv_request_tokens;
	struct hunt_report *report;
};

/* What a level counts, for people. */
const char *hunt_unit(const struct hunt *h);
/* value[run * limits + limit]; ERR_RUN when a result lacks a key. */
int hunt_values(struct hunt *h, const struct sweep_records *runs, double *value, struct err *e);
/* What servers.json says of the cache, in requests as long as this run's. */
void hunt_read_capacity(struct hunt *h, const struct json_value *record);
/* Adds the outcome to capacity.json. */
int hunt_report(struct hunt *h, const struct search_outcome *o, struct err *e);
/* The same of an element that is there already. */
int hunt_add(struct hunt *h, const struct json_value *element, struct err *e);
/* Where the search's own file lies. */
char *hunt_path(struct hunt *h, const char *ending);
/* --hover: windows at the boundary, for as long as asked. */
int hunt_hover(struct hunt *h, double capacity, struct err *e);
/* The whole search by the capacity procedure (sweep_capacity.c). -1: the sweep must end. */
int hunt_capacity(struct hunt *h, struct err *e);
