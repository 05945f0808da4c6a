/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/document_results.c - a mode's result file as the document's "results" and "trust".
 *
 * Serving: its keys stand in "results" as they are but for two names; what it says of the client
 * and of itself moves to "trust", of the system to "system". Other modes: the file whole, in an
 * object of the mode's name, and beside it what they have in common with serving.
 */
#include "experiment/document_parts.h"

/* Keys of a result's "profllm" that stand elsewhere in the document. */
static const char *const elsewhere[] = {
	"verdict", "verdicts", "reasons", "notes", "options", "system", "provenance", "tags", "profiled",
	"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
	"requests_user_stamped", "shared_read_share", "not_one_token_share",
	"usage_differs_share", "late_shared_read_share", NULL,
};
static const char *const budget[] = {
	"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
	"requests_user_stamped", "shared_read_share", "not_one_token_share",
	"usage_differs_share",
};
/* Per request: only in detailed documents. */
static const char *const arrays[] = { "latencies", "queue_times" };

/* Always there; in the other modes from this path of their result. */
static const struct common {
	const char *key, *renamed;       /* renamed: what a result of serving calls it */
	const char *throughput, *latency; /* "profllm.x": below that key */
} common[] = {
	{ "completed_requests", "completed", "profllm.finished_requests", NULL },
	{ "failed_requests", "failed", NULL, NULL },
	{ "request_throughput", NULL, "requests_per_second", NULL },
	{ "output_throughput", NULL, "profllm.output_tokens_per_second",
	  "profllm.output_throughput" },
	{ "total_token_throughput", NULL, "tokens_per_second",
	  "profllm.total_token_throughput" },
	{ "median_ttft_ms", NULL, NULL, NULL },
	{ "p95_ttft_ms", NULL, NULL, NULL },
	{ "median_tpot_ms", NULL, NULL, NULL },
	{ "p95_tpot_ms", NULL, NULL, NULL },
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static bool is_among(struct str key, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(key, names[i]))
			return true;
	return false;
}

static const struct json_value *at_path(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path), head;

	if (!path)
		return NULL;
	head = str_cut(&rest, '.');
	return rest.n ? json_get(json_get(v, "profllm"), rest.p) : json_get(v, head.p);
}

/* ---- serving ---- */

static void put_key(struct document *d, struct str key)
{
	for (size_t i = 0; i < COUNT(common); i++)
		if (common[i].renamed && str_is(key, common[i].renamed))
			key = str_of(common[i].key);
	json_key_str(&d->w, key);
}

static void put_serve(struct document *d)
{
	const struct json_value *r = d->result;

	for (size_t i = 0; i < r->count; i++) {
		if (!d->x->output.is_detailed && is_among(r->key[i], arrays, COUNT(arrays)))
			continue;
		put_key(d, r->key[i]);
		if (!str_is(r->key[i], "profllm")) {
			document_put(d, &r->item[i],
				     str_is(r->key[i], "request_rate") ? DOCUMENT_INF :
				     DOCUMENT_NULLS);
			continue;
		}
		json_begin_object(&d->w);
		document_put_members(d, &r->item[i], elsewhere, DOCUMENT_NULLS);
		json_end_object(&d->w);
	}
	for (size_t i = 0; i < COUNT(common); i++)
		if (!json_get(r, common[i].renamed ? common[i].renamed : common[i].key)) {
			json_key(&d->w, common[i].key);
			json_put_null(&d->w);
		}
}

/* ---- the others ---- */

static void put_whole(struct document *d)
{
	static const char *const moved[] = { "verdict", "reasons", "system", NULL };
	static const char *const but[] = { "profllm", NULL };
	const struct json_value *ours = json_get(d->result, "profllm");

	json_begin_object(&d->w);
	document_put_members(d, d->result, but, DOCUMENT_NULLS);
	if (ours) {
		json_key(&d->w, "profllm");
		json_begin_object(&d->w);
		document_put_members(d, ours, moved, DOCUMENT_NULLS);
		json_end_object(&d->w);
	}
	json_end_object(&d->w);
}

static void put_offline(struct document *d)
{
	enum experiment_mode mode = d->x->mode;

	for (size_t i = 0; i < COUNT(common); i++) {
		const char *path = mode == MODE_LATENCY ? common[i].latency :
				   mode == MODE_STARTUP ? NULL : common[i].throughput;

		json_key(&d->w, common[i].key);
		document_put(d, at_path(d->result, path), DOCUMENT_NULLS);
	}
	json_key(&d->w, experiment_mode_name(mode));
	put_whole(d);
}

void document_put_results(struct document *d)
{
	if (!d->result || d->result->kind != JSON_OBJECT) {
		json_put_null(&d->w);
		return;
	}
	json_begin_object(&d->w);
	if (mode_is_served(d->x->mode))
		put_serve(d);
	else
		put_offline(d);
	json_end_object(&d->w);
}

/* ---- trust ---- */

static void put_reasons(struct document *d, const char *key, const struct json_value *list)
{
	json_key(&d->w, key);
	json_begin_array(&d->w);
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		document_put(d, &list->item[i], DOCUMENT_NULLS);
	json_end_array(&d->w);
}

void document_put_trust(struct document *d)
{
	const struct json_value *ours = json_get(d->result, "profllm");

	if (!ours) {
		json_put_null(&d->w);
		return;
	}
	json_begin_object(&d->w);
	json_key(&d->w, "verdict");
	document_put(d, json_get(ours, "verdict"), DOCUMENT_NULLS);
	json_key(&d->w, "verdicts");
	document_put(d, json_get(ours, "verdicts"), DOCUMENT_NULLS);
	put_reasons(d, "reasons", json_get(ours, "reasons"));
	put_reasons(d, "notes", json_get(ours, "notes"));
	json_key(&d->w, "error_budget");
	if (mode_is_served(d->x->mode)) {
		json_begin_object(&d->w);
		for (size_t i = 0; i < COUNT(budget); i++) {
			json_key(&d->w, budget[i]);
			document_put(d, json_get(ours, budget[i]), DOCUMENT_NULLS);
		}
		json_end_object(&d->w);
	} else {
		json_put_null(&d->w);
	}
	json_end_object(&d->w);
}
