/* SPDX-License-Identifier: Apache-2.0 */
/* judged.c - see judged.h. */
#include "report/judged.h"

#include <string.h>

#include "report/frame.h"

#define NAMED_MAX 3

static bool read_verdict(const struct json_value *v, enum trust_verdict *out)
{
	struct str text = json_text(v, STR(""));

	for (unsigned i = TRUST_VALID; i <= TRUST_INVALID; i++)
		if (str_is(text, trust_name((enum trust_verdict)i))) {
			*out = (enum trust_verdict)i;
			return true;
		}
	return false;
}

/* Keys of rates are those of the verdicts; a latency's holds the name of its block. */
static int metric_of(struct str key)
{
	static const struct { const char *key; enum trust_metric metric; } derived[] = {
		{ "output_throughput_per_gpu", TRUST_OUTPUT },
		{ "output_tokens_per_s_per_kw", TRUST_OUTPUT },
		{ "output_throughput_per_user", TRUST_TPOT },
		{ "total_token_throughput_per_gpu", TRUST_TOTAL },
		{ "cost_per_million_output_tokens", TRUST_OUTPUT },
		{ "cost_per_million_tokens", TRUST_TOTAL },
	};

	if (str_starts(key, STR("derived.")))
		key = (struct str){ key.p + strlen("derived."), key.n - strlen("derived.") };
	for (size_t i = 0; i < sizeof(derived) / sizeof(*derived); i++)
		if (str_is(key, derived[i].key))
			return (int)derived[i].metric;
	for (int k = 0; k < TRUST_METRIC_COUNT; k++) {
		const char *name = trust_metric_key((enum trust_metric)k);

		if (str_is(key, name) ||
		    (k <= TRUST_E2EL && key.n && memmem(key.p, key.n, name, strlen(name))))
			return k;
	}
	return -1;
}

/* A run of a store lists its metrics by verdict. */
static bool is_in_list(const struct json_value *record, const char *column, const char *metric)
{
	struct str rest = json_text(frame_value(record, str_of(column)), STR(""));

	while (rest.n)
		if (str_is(str_trim(str_cut(&rest, ',')), metric))
			return true;
	return false;
}

enum trust_verdict judged_metric(const struct json_value *record, struct str key)
{
	const struct json_value *verdicts = frame_value(record, STR("profllm.verdicts"));
	enum trust_verdict out = TRUST_VALID;
	int metric = metric_of(key);
	const char *name = metric < 0 ? NULL : trust_metric_key((enum trust_metric)metric);

	if (name && read_verdict(json_get(verdicts, name), &out))
		return out;
	if (read_verdict(frame_value(record, STR("profllm.verdict")), &out))
		return out;
	read_verdict(frame_value(record, STR("verdict")), &out);
	if (!name || (!frame_value(record, STR("trust.invalid")) &&
			   !frame_value(record, STR("trust.degraded"))))
		return out;
	return is_in_list(record, "trust.invalid", name) ? TRUST_INVALID :
	       is_in_list(record, "trust.degraded", name) ? TRUST_DEGRADED : TRUST_VALID;
}

void judged_text(const struct json_value *record, struct buf *out)
{
	const struct json_value *verdicts = frame_value(record, STR("profllm.verdicts"));
	enum trust_verdict whole, one;
	size_t n = 0;

	if (!read_verdict(frame_value(record, STR("profllm.verdict")), &whole))
		return;
	buf_add_text(out, trust_name(whole));
	for (int k = 0; whole != TRUST_VALID && k < TRUST_METRIC_COUNT; k++)
		n += read_verdict(json_get(verdicts, trust_metric_key(k)), &one) && one == whole;
	for (int k = 0, named = 0; n && n < TRUST_METRIC_COUNT && k < TRUST_METRIC_COUNT &&
	     named <= NAMED_MAX; k++) {
		const char *name = trust_metric_key((enum trust_metric)k);

		if (!read_verdict(json_get(verdicts, name), &one) || one != whole)
			continue;
		if (named == NAMED_MAX)
			buf_printf(out, " and %zu more", n - NAMED_MAX);
		else
			buf_printf(out, "%s%s", named ? ", " : ": ", name);
		named++;
	}
}
