/* SPDX-License-Identifier: Apache-2.0 */
/* correct.c - how many answers keep to what they had to; see metrics_correctness in metrics.h. */
#include "metrics/parts.h"

void metrics_correctness(struct metrics *m, const struct record *r)
{
	struct metrics_correctness *c = &m->correctness;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		unsigned bits = row->correctness, wrong = bits >> ROW_WRONG_SHIFT;
		bool is_told = bits & ROW_CONSTRAINED, is_scored = bits & ROW_SCORED;
		bool is_correct = bits & ROW_CORRECT;

		c->n += (bits & ROW_HAS_CONSTRAINT) != 0;
		c->upstream_scored += (bits & ROW_UPSTREAM_SCORED) != 0;
		c->upstream_correct += (bits & ROW_UPSTREAM_CORRECT) != 0;
		if (!metrics_is_success(row))
			continue;
		c->constrained += is_told;
		c->constrained_scored += is_told && is_scored;
		c->constrained_correct += is_told && is_correct;
		c->free_scored += !is_told && is_scored;
		c->free_correct += !is_told && is_correct;
		if (is_told && wrong < WRONG_COUNT)
			c->wrong[wrong]++;
	}
}
