/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of multimodal stages, as an engine's program tells them: refused with a reason, or numbers
 * that can be shown and saved, where percentiles lie between the smallest and the largest.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/offline/mm_processor.h"
#include "core/json/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct mm_stages *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct mm_spread *x = &s->v[i].spread;

		if (!isfinite(x->mean) || !isfinite(x->std) || s->v[i].n > s->requests ||
		    s->v[i].n == 0 || !(x->percentile[0] <= x->percentile[1]))
			abort();
	}
	if (s->has_encoder && s->encoder_calls < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mm_run run = { .completed = 2, .elapsed_s = 1 };
	const struct mm_config config = { .model = "m", .timestamp = "t", .ours = STR("{}") };
	struct mm_percentiles p;
	struct mm_facts f;
	struct buf out = { 0 }, json = { 0 };
	struct json_value *tree;
	struct arena a = { 0 };
	struct err e = { 0 };

	if (mm_percentiles("0,100", &p, &a, &e) < 0)
		abort();
	if (mm_facts(&run, (struct str){ (const char *)data, size }, &p, &f, &a, &e) == 0) {
		check(&f.stages);
		mm_terminal(&f, &p, &out);
		mm_json(&run, &f, &p, &config, &json);
		if (json_parse(&a, buf_str(&json), &tree, &e) < 0)
			abort();
	} else if (!e.code || !*e.text) {
		abort();
	}
	buf_release(&out);
	buf_release(&json);
	arena_release(&a);
	return 0;
}
