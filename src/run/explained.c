/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explained.c - see explained.h.
 *
 * A prompt can find in the cache what it has in common with those sent before it:
 * earlier requests of the run, and the copies of the first prompt that the ready
 * check and warm-ups sent. Bytes in common stand for their share of the tokens. A
 * few tokens more are always granted: the head that the server's chat template puts
 * before every prompt, or the rest of a cache block. A turn of a conversation is
 * granted whole: it begins with what was said before.
 */
#include "run/explained.h"

#include "base/mem.h"
#include "data/repeat.h"
#include "record/series.h"

#define TEMPLATE_TOKENS 96 /* the longest known head of a chat template has 70 */
#define BLOCK_TOKENS 16

static bool is_any_cached(const struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++)
		if (r->row[i].phase == PHASE_MAIN && r->row[i].cached_tokens)
			return true;
	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];

		if (strcmp(s->name, series_name(SERIES_PREFIX_HITS)) == 0 && s->n &&
		    s->point[s->n - 1].value > s->point[0].value)
			return true;
	}
	return false;
}

static bool is_copy_sent(const struct record *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++)
		if ((r->row[i].phase == PHASE_READY || r->row[i].phase == PHASE_WARMUP) &&
		    r->row[i].state == REQ_DONE)
			return true;
	return false;
}

static double explained_of(const struct point *p, uint32_t entry, double share, double granted)
{
	double tokens = p->record.row[entry].sample_prompt_tokens;
	double explained = share * tokens + granted;

	if (p->plan.entry[entry].after != PLAN_NONE || p->is_prefix_warm)
		return tokens;
	return explained < tokens ? explained : tokens;
}

void run_explain_cache(const struct point *p, bool is_chat, struct trust_facts *facts)
{
	double *share, tokens = 0, explained = 0;
	struct str *text;
	uint32_t *entry;
	size_t n = 0, copies;

	if (!is_any_cached(&p->record) || p->workload.n == 0)
		return;
	text = mem_array((size_t)p->plan.n + 1, sizeof(*text));
	entry = mem_array(p->plan.n, sizeof(*entry));
	copies = p->salt == SALT_NONE && is_copy_sent(&p->record);
	if (copies)
		text[0] = prefix_text(&p->workload.v[0]);
	for (uint32_t i = 0; i < p->plan.n; i++) {
		if (!p->record.row[i].sent_ns)
			continue;
		text[copies + n] = prefix_text(&p->workload.v[p->plan.entry[i].sample]);
		entry[n++] = i;
	}
	share = mem_array(copies + n, sizeof(*share));
	prefix_shared(text, copies + n, share);
	for (size_t k = 0; k < n; k++) {
		tokens += p->record.row[entry[k]].sample_prompt_tokens;
		explained += explained_of(p, entry[k], share[copies + k],
					  is_chat ? TEMPLATE_TOKENS : BLOCK_TOKENS);
	}
	facts->knows_explained = tokens > 0;
	facts->cached_explained = tokens > 0 ? explained / tokens : 0;
	free(share);
	free(entry);
	free(text);
}
