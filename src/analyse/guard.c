/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - see guard.h. */
#include "analyse/guard.h"

#include <math.h>

#include "stats/judge.h"

enum { FAILED, COMPLETED, OUTPUT_TOKENS, INPUT_TOKENS, GOODPUT, THROUGHPUT };

const struct str guard_columns[GUARD_COLUMNS] = {
	[FAILED] = { "failed", 6 }, [COMPLETED] = { "completed", 9 },
	[OUTPUT_TOKENS] = { "total_output_tokens", 19 },
	[INPUT_TOKENS] = { "total_input_tokens", 18 },
	[GOODPUT] = { "request_goodput", 15 }, [THROUGHPUT] = { "request_throughput", 18 },
};

/* One column's sum over another's, over runs that have both. */
static double share_of(const struct value *part, const struct value *whole,
		       bool is_part_in_whole, const size_t *member, size_t n)
{
	double sum = 0, all = 0, x, y;

	for (size_t i = 0; i < n; i++) {
		size_t row = member ? member[i] : i;

		if (!parts_is_number(part[row], &x) || !parts_is_number(whole[row], &y))
			continue;
		sum += x;
		all += is_part_in_whole ? y : x + y;
	}
	return all > 0 ? sum / all : NAN;
}

struct work work_of(const struct value *const value[GUARD_COLUMNS], const size_t *member, size_t n)
{
	return (struct work){
		.failed_share = share_of(value[FAILED], value[COMPLETED], false, member, n),
		.output_tokens = share_of(value[OUTPUT_TOKENS], value[COMPLETED], true, member, n),
		.input_tokens = share_of(value[INPUT_TOKENS], value[COMPLETED], true, member, n),
		.good_share = share_of(value[GOODPUT], value[THROUGHPUT], true, member, n),
	};
}

const char *guard_against(struct arena *arena, const struct work *a, const struct work *b)
{
	const struct { double before, after; const char *what; } done[] = {
		{ a->output_tokens, b->output_tokens, "output tokens per request" },
		{ a->input_tokens, b->input_tokens, "input tokens per request" },
	};
	double kept = b->good_share / a->good_share;

	if (b->failed_share - a->failed_share > JUDGE_FAILED_SHARE)
		return arena_printf(arena, "failed requests rose from %.1f %% to %.1f %%",
				    a->failed_share * 100, b->failed_share * 100);
	for (size_t i = 0; i < 2; i++)
		if (fabs(done[i].after / done[i].before - 1) > JUDGE_GUARD_CHANGE)
			return arena_printf(arena, "other work was done: %s %.1f, then %.1f",
					    done[i].what, done[i].before, done[i].after);
	if (kept < 1 - JUDGE_GUARD_CHANGE)
		return arena_printf(arena, "the share of requests within the goodput limits fell by "
				    "%.1f %%", (1 - kept) * 100);
	return NULL;
}
