/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.c - see lengths.h. */
#include "out/page/lengths.h"

#include <assert.h>

const struct lengths_words lengths_words[LENGTHS_PANELS] = {
	[LENGTHS_PROMPT] = { "Prompt Tokens Distribution", "Prompt Tokens", "steelblue" },
	[LENGTHS_OUTPUT] = { "Output Tokens Distribution", "Output Tokens", "coral" },
	[LENGTHS_TOTAL] = { "Total Tokens Distribution", "Total Tokens (Prompt + Output)",
			    "mediumseagreen" },
};

/* Request i's length for a panel. */
static int64_t length_of(const struct metrics *m, enum lengths_panel panel, uint32_t i)
{
	return (panel != LENGTHS_OUTPUT ? m->input_len[i] : 0) +
	       (panel != LENGTHS_PROMPT ? m->output_len[i] : 0);
}

/* As NumPy: a product first, then at most a step to the bin whose edges really hold v. */
static size_t bin_of(const struct lengths_hist *h, double v)
{
	double from = h->edge[0], width = h->edge[LENGTHS_BINS] - from;
	size_t bin = (size_t)((v - from) / width * LENGTHS_BINS);

	if (bin >= LENGTHS_BINS)
		bin = LENGTHS_BINS - 1;
	if (v < h->edge[bin])
		bin--;
	else if (bin < LENGTHS_BINS - 1 && v >= h->edge[bin + 1])
		bin++;
	return bin;
}

void lengths_count(const struct metrics *m, enum lengths_panel panel, struct lengths_hist *h)
{
	double from, to, sum = 0;

	assert(m->n >= 1);
	*h = (struct lengths_hist){ .min = length_of(m, panel, 0),
				    .max = length_of(m, panel, 0) };
	for (uint32_t i = 0; i < m->n; i++) {
		int64_t v = length_of(m, panel, i);

		h->min = v < h->min ? v : h->min;
		h->max = v > h->max ? v : h->max;
		sum += (double)v;
	}
	h->mean = sum / (double)m->n;
	from = (double)h->min;
	to = (double)h->max;
	if (h->min == h->max) {
		from -= 0.5;
		to += 0.5;
	}
	for (int k = 0; k < LENGTHS_BINS; k++)
		h->edge[k] = from + k * ((to - from) / LENGTHS_BINS);
	h->edge[LENGTHS_BINS] = to;
	for (uint32_t i = 0; i < m->n; i++)
		h->count[bin_of(h, (double)length_of(m, panel, i))]++;
}
