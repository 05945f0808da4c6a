/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.h - every byte of every request, serialized before the clock starts, so that sending one
 * is a single call. Sets above bytes_max are serialized by a look-ahead thread instead, a bounded
 * number of requests before they are due.
 *
 * That thread puts them into a ring in plan order; the loop that admits an entry takes its bytes
 * out. Entries are taken once each, nearly in order (several loops may overtake each other by a
 * few). A taker waits only when the thread is late, and its loop reads no socket meanwhile: kernel
 * stamps stay right, more events share a read, and the wait is send lag of that request, which the
 * verdict judges.
 */
#pragma once
#include "bench/options/history.h"
#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "bench/serve/point.h"
#include "client/load/load.h"

struct prepare_opts {
	const struct endpoint *endpoint;
	struct encode_opts encode;
	const char *const *omit;      /* keys that bodies do without: --omit-body-keys */
	size_t n_omit;
	const char *const *base_url;
	const char *path;             /* appended to each base URL as it is: --endpoint */
	const char *const *proxy;     /* per base URL: NULL or the proxy in use */
	unsigned n_urls;              /* of base_url and proxy */
	const struct serve_pair *header; /* --header, overrides the built-in ones */
	size_t n_headers;
	const char *api_key;          /* NULL: none */
	const char *key_header;       /* NULL: Authorization, as a bearer token */
	const char *const *lora;      /* module names; NULL: none */
	bool is_without_ids;          /* ready check, warm-up */
	bool is_rehosted;             /* the URL is chosen at admission: room for any head */
	const struct salt *salt;      /* what a repeated sample's salt is replaced by; NULL: none */
	uint32_t salt_round;          /* above 0: all samples are repeated */
	const char *request_id_prefix; /* of requests that repeat a sample; not NULL with ids */
	const char *version;          /* for User-Agent */
	const bool *elsewhere;        /* as in load_opts: roots whose requests are not made */
	size_t bytes_max;             /* larger sets are looked ahead; 0: PREPARED_BYTES_MAX */
	/*
	 * For plans with conversations (NULL: none): a request that continues another one is made
	 * when it is due, from the answers so far; if the set is larger than bytes_max, all
	 * requests are. Borrowed, in use until prepared_release.
	 */
	struct history *history;
	const char *session_header;   /* names an entry's session; NULL: none */
	const char *token_header;     /* repeats the router's token (history_opts); NULL: none */
};

/* o, plan and w must outlive out (the look-ahead thread reads them). */
int prepare(const struct prepare_opts *o, const struct plan *plan, const struct workload *w,
	    struct prepared *out, struct err *e);
void prepared_release(struct prepared *p);

/*
 * Appends entry i's request id: its sample's, or, when a plan longer than the workload
 * sends samples again, prefix and i. Nothing for samples without ids.
 */
void prepare_request_id(const char *prefix, const struct plan *plan, uint32_t i,
			const struct workload *w, struct buf *out);
