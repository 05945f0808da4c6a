/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/remote.h - what is asked of the server outside the measurement: its
 * first model, and how it tokenizes our prompts.
 */
#pragma once
#include "fetch/fetch.h"
#include "plan/workload.h"
#include "run/point.h"

/* How to reach the server with blocking requests. */
struct remote {
	const char *base_url;
	bool is_insecure;
	const char *ca_file;
	const char *cert_file, *key_file; /* client certificate; NULL: none */
	const char *proxy;               /* as fetch_opts has it */
	bool is_http2;                   /* likewise */
	const struct serve_pair *header; /* --header, sent with every request */
	size_t n_headers;
	const char *api_key;             /* NULL: none */
	const char *key_header;          /* NULL: Authorization, as a bearer token */
	const atomic_bool *cancel;       /* set: stop asking; may be NULL */
	int64_t timeout_ms;              /* of one question; 0, or longer: REMOTE_TIMEOUT_MS */
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
 * First entry of GET /v1/models (serve spec 2.2): *name is its id, *root its
 * root, or the id when it has none. Heap; the caller frees both.
 */
int remote_discover_model(const struct remote *r, const struct run_hooks *hooks, char **name,
			  char **root, struct err *e);

/*
 * Serve spec 2.9: asks /tokenize how long prompts are. With is_rewriting, too
 * long ones are cut to prompt_len by ids and replaced by /detokenize's text
 * (in w's arena); otherwise (other text datasets) a few are only compared.
 * Never fails: what the server does not answer stays as it is.
 */
void remote_align(const struct remote *r, const char *model, bool is_rewriting,
		  struct workload *w, const struct run_hooks *hooks, struct remote_alignment *out);
