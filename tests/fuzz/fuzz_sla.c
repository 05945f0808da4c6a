/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sla.c - files of limits: each is refused in one sentence, or judges every number and keeps
 * margin, gap and verdict of one mind.
 */
#include <math.h>
#include <string.h>

#include "bench/sweep/sla.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct sla_limit *l, double v)
{
	double gap = sla_gap(l, v);

	CHECK(!isnan(gap));
	CHECK(sla_holds(l, v) == (sla_margin(l, v) <= 0));
	/* The margin rounds where the gap does not, and a strict limit wants a bit more. */
	if (fabs(gap) > 1e-6 && fabs(v - l->limit) > 1e-6)
		CHECK(sla_holds(l, v) == (gap < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const double value[] = { 0, 1, -1, 0.5, 200, 1e9, -1e9, 1e-9 };
	struct str text = { (const char *)data, size };
	struct arena a = { 0 };
	struct slas slas;
	struct err e = { 0 };

	for (int is_checked = 0; is_checked < 2; is_checked++) {
		if (sla_parse(text, is_checked, &a, &slas, &e) < 0) {
			CHECK(e.code != ERR_NONE && *e.text);
			continue;
		}
		for (size_t i = 0; i < slas.n; i++) {
			struct buf shown = { 0 };

			sla_text(&slas.item[i], ", ", &shown);
			CHECK(shown.len > 0);
			buf_release(&shown);
			for (size_t k = 0; k < slas.item[i].n; k++)
				for (size_t v = 0; v < sizeof(value) / sizeof(*value); v++)
					judge(&slas.item[i].limit[k], value[v]);
		}
	}
	arena_release(&a);
	return 0;
}
