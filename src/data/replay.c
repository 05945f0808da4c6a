/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the requests of a workload file (`profllm dataset compile`), in its order.
 */
#include <inttypes.h>

#include "data/common.h"
#include "data/workload_file.h"

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	size_t most = env->num_prompts > 0 ? (size_t)env->num_prompts : SIZE_MAX;
	char hash[DIGEST_HEX];
	struct str description;

	(void)rng; /* nothing is drawn: the file was made once */
	if (workload_file_read(o->path, most, env->request_id_prefix, w, &description, hash, e) < 0)
		return -1;
	if (most != SIZE_MAX && w->n < most)
		return err_set(e, ERR_RUN, "%s holds %zu requests, and --num-prompts asks for %" PRId64,
			       o->path, w->n, env->num_prompts);
	w->hash = arena_text(&w->arena, str_of(hash));
	return 0;
}

const struct dataset dataset_workload = {
	.name = "workload", .summary = "requests of a file that dataset compile made",
	.needs_path = true, .takes_all = true, .is_whole = true, .build = build,
};
