/* SPDX-License-Identifier: Apache-2.0 */
/* compare_notes.c - see compare.h: sentences about what was left out, counted or supposed. */
#include "results/decide/compare.h"

#include "core/base/mem.h"
#include "core/base/str.h"

#define NAMED_MAX 5 /* configurations named in a note */

static void note_alone(struct buf *out, const struct matched_pair *pair, unsigned k,
		       const char *const name[2])
{
	size_t n = pair->n_alone[k];

	if (!n)
		return;
	buf_printf(out, "%zu configuration%s of %s without a counterpart in %s: ", n,
		   n == 1 ? "" : "s", name[k], name[!k]);
	for (size_t i = 0; i < n && i < NAMED_MAX; i++)
		buf_printf(out, "%s%s", i ? "; " : "", pair->alone[k][i].config);
	buf_add_text(out, n > NAMED_MAX ? "; ...\n" : "\n");
}

static void note_apart(struct buf *out, const struct matched_pair *pair)
{
	size_t n = 0;

	for (size_t i = 0; i < pair->n_configs; i++)
		n += pair->guard[i] != NULL;
	if (!n)
		return;
	buf_printf(out, "%zu of %zu configurations not comparable: ", n, pair->n_configs);
	for (size_t i = 0, named = 0; i < pair->n_configs && named < NAMED_MAX; i++)
		if (pair->guard[i])
			buf_printf(out, "%s%s (%s)", named++ ? "; " : "", pair->config[i],
				   pair->guard[i]);
	buf_add_text(out, n > NAMED_MAX ? "; ...\n" : "\n");
}

/* Notes failed requests that still allow an answer. */
static void note_failed(struct buf *out, const struct matched_pair *pair, const char *const name[2])
{
	if (!pair->failed_differs)
		return;
	buf_printf(out, "%.2f %% of the requests of %s failed and %.2f %% of those of %s; ",
		   pair->failed[0] * 100, name[0], pair->failed[1] * 100, name[1]);
	if (pair->n_configs > 1)
		buf_printf(out, "the shares differ by more than %.1f percentage points in %zu of %zu "
			   "configurations, most in this one (%s); ", MATCHED_FAILED_SHARE * 100,
			   pair->failed_differs, pair->n_configs, pair->failed_worst);
	buf_printf(out, "failed requests are in no latency, so medians and rates are compared up to a "
		   "difference of %.0f point, P99 and means up to %.1f\n",
		   MATCHED_FAILED_SHARE_MAX * 100, MATCHED_FAILED_SHARE * 100);
}

/* Whether a metric before i has the same counts, and so has named i with its own. */
static bool is_counted_before(const struct matched_pair *pair, size_t i, bool is_invalid)
{
	const size_t *n = is_invalid ? pair->row[i].invalid : pair->row[i].degraded;

	for (size_t k = 0; k < i; k++) {
		const size_t *before = is_invalid ? pair->row[k].invalid : pair->row[k].degraded;

		if (before[0] == n[0] && before[1] == n[1])
			return true;
	}
	return false;
}

/* One line for all metrics: "what: 3 + 1 in output_throughput, p99_ttft_ms; 2 + 0 in p99_itl_ms". */
static void note_counts(struct buf *out, const struct matched *m, const struct matched_pair *pair,
			bool is_invalid)
{
	bool is_any = false;

	for (size_t i = 0; i < m->spec->n_metrics; i++) {
		const size_t *n = is_invalid ? pair->row[i].invalid : pair->row[i].degraded;

		if ((!n[0] && !n[1]) || is_counted_before(pair, i, is_invalid))
			continue;
		if (!is_any)
			buf_printf(out, "%s runs are %s (%s + %s): ",
				   is_invalid ? "INVALID" : "DEGRADED",
				   is_invalid ? "left out" : "included", m->spec->side[0],
				   m->spec->side[pair->side]);
		buf_printf(out, "%s%zu + %zu in %s", is_any ? "; " : "", n[0], n[1],
			   pair->row[i].metric->name);
		for (size_t k = i + 1; k < m->spec->n_metrics; k++) {
			const size_t *other = is_invalid ? pair->row[k].invalid
							 : pair->row[k].degraded;

			if (other[0] == n[0] && other[1] == n[1])
				buf_printf(out, ", %s", pair->row[k].metric->name);
		}
		is_any = true;
	}
	if (is_any)
		buf_add_char(out, '\n');
}

/* Runs that share a session: the most repeats of any metric. */
static void note_sessions(struct buf *out, struct arena *a, const struct matched *m,
			  const struct matched_pair *pair, unsigned k, const char *name)
{
	size_t runs = 0, sessions = 0;

	for (size_t i = 0; i < m->spec->n_metrics; i++)
		if (pair->row[i].runs[k] > runs) {
			runs = pair->row[i].runs[k];
			sessions = pair->row[i].sessions[k];
		}
	if (sessions && runs > sessions)
		buf_printf(out, "%s: repeats of a configuration within one server session count once "
			   "(%s runs, %s session%s)\n", name, arena_count(a, runs),
			   arena_count(a, sessions), sessions == 1 ? "" : "s");
	if (pair->sessions_unknown[k] > 1) /* one run shares nothing */
		buf_printf(out, "%s: it is not recorded which of %s runs shared a server, so each "
			   "configuration counts as one session of its own%s\n", name,
			   arena_count(a, pair->sessions_unknown[k]), pair->n_configs > 1 ?
			   "; where several loads shared one, the intervals are too narrow" : "");
}

static void note_supposed(struct buf *out, const struct matched *m, const struct matched_pair *pair)
{
	size_t n = 0;

	for (size_t i = 0; i < m->spec->n_metrics; i++)
		n += pair->row[i].verdict == MATCHED_NOT_ENOUGH && pair->row[i].need.sessions &&
		     pair->row[i].need.from == MATCHED_SUPPOSED;
	if (n)
		buf_printf(out, "how many sessions are needed is a guess: without repeats it supposes that "
			   "sessions scatter by %.3g %%\n", MATCHED_SCATTER_USUAL * 100);
}

const char *matched_notes(const struct matched *m, const struct matched_pair *pair,
			  struct arena *a)
{
	const char *const name[2] = { m->spec->side[0], m->spec->side[pair->side] };
	struct buf out = { 0 };
	const char *text;

	if (pair->refusal)
		buf_printf(&out, "not compared: %s\n", pair->reason);
	if (pair->shared)
		buf_printf(&out, "%s run%s on both sides left out\n", arena_count(a, pair->shared),
			   pair->shared == 1 ? "" : "s");
	for (unsigned k = 0; k < 2; k++)
		note_alone(&out, pair, k, name);
	if (pair->guard) {
		note_failed(&out, pair, name);
		note_apart(&out, pair);
	}
	for (unsigned k = 0; !pair->refusal && k < 2; k++)
		note_sessions(&out, a, m, pair, k, name[k]);
	if (pair->n_configs) {
		note_counts(&out, m, pair, true);
		note_counts(&out, m, pair, false);
		note_supposed(&out, m, pair);
	}
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}
