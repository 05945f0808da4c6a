/* SPDX-License-Identifier: Apache-2.0 */
/* datasets.c - the table of datasets. */
#include "input/sets/datasets.h"

/* One row per dataset; a file of input/ defines dataset_<name>. */
#define DATASETS(X) \
	X(random) \
	X(random_mm) \
	X(random_rerank) \
	X(prefix_repetition) \
	X(burstgpt) \
	X(sharegpt) \
	X(custom) \
	X(custom_image) \
	X(custom_mm) \
	X(custom_audio) \
	X(spec_bench) \
	X(speed_bench) \
	X(sonnet) \
	X(timed_trace) \
	X(prioritization) \
	X(trace) \
	X(hf) \
	X(structured) \
	X(conversations) \
	X(sessions) \
	X(mix) \
	X(workload)

#define X(name) extern const struct dataset dataset_##name;
DATASETS(X)
#undef X

#define X(name) &dataset_##name,
static const struct dataset *const table[] = { DATASETS(X) };
#undef X

const struct dataset *const *dataset_all(size_t *n)
{
	*n = sizeof(table) / sizeof(*table);
	return table;
}

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	return *a == *b;
}

const struct dataset *dataset_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (same_name(table[i]->name, name))
			return table[i];
	return NULL;
}
