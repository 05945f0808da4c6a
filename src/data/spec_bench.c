/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec_bench.c - the first turns of Spec-Bench's question.jsonl; datasets spec 5.8.
 *
 * The order is that of seed 0 whatever --seed says, as upstream.
 */
#include "data/custom.h"

static bool turn_text(struct json_slice row, struct buf *out)
{
	struct json_slice turns, first;

	if (!json_member(row, "turns", &turns) || !rows_item(turns, 0, &first) ||
	    first.kind != JSON_STRING)
		return false;
	json_unescape(out, first.raw);
	return true;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "turns", "category", "output_tokens", NULL };
	struct dataset_env seeded = *env;
	struct custom_sampler s = {
		.o = o, .env = &seeded, .columns = columns, .field = "turns", .text = turn_text,
		.category = o->spec_bench_category,
		.output_len = o->spec_bench_output_len, .output_option = "spec-bench-output-len",
	};

	seeded.seed = dataset_fixed_seed(w, o, env);
	return custom_sample(&s, &o->path, 1, rng, w, e);
}

static const char *const options[] = {
	"spec-bench-output-len", "spec-bench-category", "disable-shuffle", "no-oversample",
	"chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_spec_bench = {
	.name = "spec_bench", .summary = "first turns of Spec-Bench (question.jsonl)",
	.options = options, .needs_path = true, .needs_tokenizer = true,
	.is_templated = true, .is_always_templated = true, .takes_all = true, .build = build,
};
