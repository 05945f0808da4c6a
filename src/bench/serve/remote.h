/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - a server outside the measurement: whether it answers before anything is loaded, its
 * first model, how it tokenizes our prompts, and why it refused every request.
 *
 * Before a tokenizer or a dataset is loaded, GET /v1/models shows whether the server can be reached
 * and accepts the key. No prompt is sent. Only what is certain to fail is refused: a server without
 * that path, or with models it does not list, may still answer the requests. load/load.h's
 * REFUSED_FIRST detects the rest.
 */
#pragma once
#include "bench/options/serve_opts.h"
#include "bench/serve/point.h"
#include "client/plan/workload.h"
#include "client/record/record.h"
#include "input/fetch/fetch.h"

/* ---- questions ---- */

/* How to reach the server with blocking requests. */
struct remote {
	const char *base_url;
	struct fetch_opts fetch;         /* timeout_ms 0, or longer: REMOTE_TIMEOUT_MS; no header */
	const struct serve_pair *header; /* --header, sent with every request */
	size_t n_headers;
	const char *api_key;             /* NULL: none */
	const char *key_header;          /* NULL: Authorization, as a bearer token */
};
#define REMOTE_TIMEOUT_MS 60000

/* A path of the server as libcurl takes it; released by remote_target_release. */
struct remote_target {
	struct buf url, socket;
	const char **header;    /* NULL-terminated */
	struct fetch_opts opts; /* header, TLS, Unix socket, cancel, timeout */
};
int remote_target_init(struct remote_target *t, const struct remote *r, const char *path,
		       struct err *e);
void remote_target_release(struct remote_target *t);
/*
 * Sends one request as fetch() does. timeout_ms 0: that of remote. The reply is released in any
 * case.
 */
int remote_ask(const struct remote *r, const char *path, const struct str *body, int64_t timeout_ms,
	       struct fetch_reply *reply, struct err *e);

/*
 * First entry of GET /v1/models (serve spec 2.2): *name is its id, *root its
 * root, or the id when it has none. Heap; the caller frees both.
 */
int remote_discover_model(const struct remote *r, const struct run_hooks *hooks, char **name,
			  char **root, struct err *e);

/*
 * Serve spec 2.9: asks /tokenize how long prompts are. With is_rewriting, too long ones are cut to
 * prompt_len by ids and replaced by /detokenize's text (in w's arena); otherwise (other text
 * datasets) a few are only compared. Never fails: without an answer prompts are unchanged.
 */
void remote_align(const struct remote *r, const char *model, bool is_rewriting,
		  struct workload *w, const struct run_hooks *hooks, struct remote_alignment *out);

/* ---- first contact, and failures ---- */

struct contact {
	struct remote remote;  /* one of the base URLs */
	const char *path;      /* of the requests: --endpoint */
	const char *model;     /* what the requests name; NULL: not checked */
	const char *key_variable; /* where the key is looked for; NULL: OPENAI_API_KEY */
	bool has_adapters;     /* requests name --lora-modules instead of a model */
};

/* 0: no reason against sending requests. -1: e is one sentence with the remedy. */
int contact_check(const struct contact *c, struct err *e);

/*
 * Appends why a request failed, on one line, the server's own words first: its status, the message
 * in the body, and for a wrong key or path the remedy. error: as in the record.
 */
void contact_add_failure(const struct contact *c, const struct request_row *row,
			 struct str error, struct buf *out);
