/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration: read, merged with itself, typed and judged. What passes can be
 * said as words; what does not says why.
 */
// LINKS: experiment
#include <stdlib.h>

#include "experiment/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct config *c, const struct json_value *tree,
		  const struct config_know *know, struct arena *a)
{
	struct config_findings f = { 0 };
	struct experiment x;
	int rc = config_experiment(c, tree, know, a, &x, &f);

	if (!x.name || (rc < 0) != (f.n_errors > 0) || (rc < 0 && !f.errors.len))
		abort();
	for (size_t i = 0; rc == 0 && i < x.n_servers; i++)
		if (!config_server_words(&x.server[i], a))
			abort();
	config_findings_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config_know machines[] = {
		{ 0 }, { .is_gpus_known = true, .n_gpus = 2, .compute_capability = 80 },
	};
	static const char *const sets[] = { "server.port=${PORT:-8001}" };
	struct str text = { (const char *)data, size };
	bool is_json = size && data[0] == '{';
	struct arena a = { 0 };
	struct config c;
	struct err e = { 0 };

	if (config_parse(text, is_json ? "x.json" : "x.yaml", sets, size % 2, &a, &c, &e) < 0) {
		if (!e.code || !*e.text)
			abort();
	} else {
		judge(&c, c.tree, &machines[size % 4 / 2], &a);
		judge(&c, config_merge(&c, c.tree, c.tree), &machines[0], &a);
	}
	arena_release(&a);
	return 0;
}
