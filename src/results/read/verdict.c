/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see kind.h: which values of a result its own verdicts call DEGRADED or INVALID. */
#include <assert.h>
#include <string.h>

#include "core/schema/schema.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

#define NAMED_MAX 3
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const char *const names[] = { "VALID", "DEGRADED", "INVALID" };

#define X(name, key) key,
static const char *const judged[] = { SCHEMA_JUDGED(X) };
#undef X

bool result_verdict_read(const struct json_value *v, enum result_verdict *out)
{
	struct str text = json_text(v, STR(""));

	for (unsigned i = 0; i < COUNT(names); i++)
		if (str_is(text, names[i])) {
			*out = (enum result_verdict)i;
			return true;
		}
	return false;
}

const char *result_verdict_name(enum result_verdict v)
{
	assert(v <= RESULT_INVALID);
	return names[v];
}

bool result_verdict_whole(const struct json_value *record, enum result_verdict *out)
{
	return result_verdict_read(frame_value(record, STR("profllm.verdict")), out) ||
	       result_verdict_read(frame_value(record, STR("verdict")), out);
}

static bool is_count_of_requests(struct str key)
{
	return str_is(key, "failed") || str_is(key, "completed") || str_is(key, "profllm.failed");
}

static bool has(struct str key, const char *part)
{
	return key.n && memmem(key.p, key.n, part, strlen(part));
}

/* The judged metric that a key is about; NULL: none. Keys hold its name, or are listed here. */
static const char *metric_of(struct str key)
{
	static const struct { const char *part, *metric; } other[] = {
		{ "output_tokens_per_s", "output_throughput" },
		{ "cost_per_million_output_tokens", "output_throughput" },
		{ "output_throughput_per_user", "tpot" },
		{ "cost_per_million_tokens", "total_token_throughput" },
		{ "sessions.duration_s", "e2el" }, { "sessions.serving_s", "e2el" },
	};

	for (size_t i = 0; i < COUNT(other); i++)
		if (has(key, other[i].part))
			return other[i].metric;
	for (size_t i = 0; i < COUNT(judged); i++)
		if (has(key, judged[i]))
			return judged[i];
	return NULL;
}

/* A row of a store lists its metrics by verdict: "ttft,itl". */
static bool is_in_column(const struct json_value *record, const char *column, const char *metric)
{
	struct str rest = json_text(frame_value(record, str_of(column)), STR(""));

	while (metric && rest.n)
		if (str_is(str_trim(str_cut(&rest, ',')), metric))
			return true;
	return false;
}

static bool is_spoiled_by(const struct json_value *reason, struct str key)
{
	const struct json_value *spoils = json_get(reason, "spoils");
	const char *metric = metric_of(key);

	if (is_count_of_requests(key))
		return false;
	if (!spoils || spoils->kind != JSON_ARRAY || spoils->count >= COUNT(judged))
		return true;
	for (size_t i = 0; metric && i < spoils->count; i++)
		if (str_is(json_text(&spoils->item[i], STR("-")), metric))
			return true;
	return false;
}

static bool lowers(const struct json_value *reason, struct str key, enum result_verdict to)
{
	enum result_verdict level;

	return result_verdict_read(json_get(reason, "level"), &level) && level == to &&
	       is_spoiled_by(reason, key);
}

bool result_reason_spoils(const struct json_value *reason, struct str key)
{
	return lowers(reason, key, RESULT_INVALID);
}

bool result_reason_degrades(const struct json_value *reason, struct str key)
{
	return lowers(reason, key, RESULT_DEGRADED);
}

bool result_is_unmeasured(const struct json_value *record, struct str key)
{
	static const struct { const char *end, *mean; } block[] = {
		{ "_ttft_ms", "mean_ttft_ms" }, { "_tpot_ms", "mean_tpot_ms" },
		{ "_itl_ms", "mean_itl_ms" }, { "_e2el_ms", "mean_e2el_ms" },
	};
	double mean;

	for (size_t i = 0; i < COUNT(block); i++)
		if (str_ends(key, str_of(block[i].end)) &&
		    frame_number(frame_value(record, str_of(block[i].mean)), &mean) && mean == 0)
			return !memchr(key.p, '.', key.n);
	return false;
}

static enum result_verdict best_of(const struct json_value *verdicts)
{
	enum result_verdict best = RESULT_INVALID, one;

	for (size_t i = 0; i < verdicts->count; i++)
		if (result_verdict_read(&verdicts->item[i], &one) && one < best)
			best = one;
	return best;
}

static enum result_verdict worst_of(const struct json_value *reasons, struct str key)
{
	enum result_verdict worst = RESULT_VALID, one;

	for (size_t i = 0; i < reasons->count; i++)
		if (is_spoiled_by(&reasons->item[i], key) &&
		    result_verdict_read(json_get(&reasons->item[i], "level"), &one) && one > worst)
			worst = one;
	return worst;
}

enum result_verdict result_verdict(const struct json_value *record, struct str key)
{
	const struct json_value *verdicts = frame_value(record, STR("profllm.verdicts"));
	const struct json_value *reasons = frame_value(record, STR("profllm.reasons"));
	const char *metric = metric_of(key);
	enum result_verdict out = RESULT_VALID;

	if (is_count_of_requests(key))
		return RESULT_VALID;
	if (metric && result_verdict_read(json_get(verdicts, metric), &out))
		return out;
	if (reasons && reasons->kind == JSON_ARRAY && reasons->count)
		return worst_of(reasons, key);
	if (!metric && verdicts && verdicts->kind == JSON_OBJECT && verdicts->count)
		return best_of(verdicts);
	if (frame_value(record, STR("trust.invalid")) || frame_value(record, STR("trust.degraded")))
		return is_in_column(record, "trust.invalid", metric)  ? RESULT_INVALID :
		       is_in_column(record, "trust.degraded", metric) ? RESULT_DEGRADED :
									RESULT_VALID;
	result_verdict_whole(record, &out);
	return out;
}

static bool is_same(const struct json_value *v, enum result_verdict want)
{
	enum result_verdict one;

	return result_verdict_read(v, &one) && one == want;
}

void result_verdict_text(const struct json_value *record, struct buf *out)
{
	const struct json_value *all = frame_value(record, STR("profllm.verdicts"));
	enum result_verdict whole;
	size_t n = 0, named = 0;

	if (!result_verdict_read(frame_value(record, STR("profllm.verdict")), &whole))
		return;
	buf_add_text(out, names[whole]);
	if (whole == RESULT_VALID || !all || all->kind != JSON_OBJECT)
		return;
	for (size_t i = 0; i < all->count; i++)
		n += is_same(&all->item[i], whole);
	for (size_t i = 0; n < all->count && i < all->count; i++)
		if (is_same(&all->item[i], whole) && named++ < NAMED_MAX)
			buf_printf(out, "%s%.*s", named > 1 ? ", " : ": ", (int)all->key[i].n,
				   all->key[i].p);
	if (named > NAMED_MAX)
		buf_printf(out, " and %zu more", named - NAMED_MAX);
}
