/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a dataset's README.md, and sorting files by what it says: one sentence or subsets
 * with splits that have files, each of them among the names.
 */
// LINKS: data
#include <stdlib.h>

#include "check.h"
#include "input/data/source_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_source(const struct source *s, const struct source_names *names)
{
	size_t in = 0;

	CHECK(s->split && s->count > 0 && s->split_count > 0);
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < names->count; k++)
			in += s->file[i] && strcmp(s->file[i], names->name[k]) == 0;
	CHECK(in == s->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *name[] = { ".x/train.csv", "README.md", "a b/test_0.jsonl", "a.parquet",
		"data/dev-00000-of-00001.parquet", "data/train-00000-of-00001.parquet", "m/eval/x.jsonl.gz",
		"train.jsonl", "z/default/0.parquet" };
	const struct source_names names = { name, sizeof(name) / sizeof(*name) };
	struct str text = { (const char *)data, size };
	struct source_opts o = { .path = "d" };
	struct source s = { 0 }, t = { 0 };
	struct err e = { 0 };
	struct dataset_card card;

	if (card_read(&s.arena, text, &card, &e) < 0) {
		CHECK((e.code == ERR_PARSE || e.code == ERR_LIMIT) && e.text[0]);
	} else if (source_sort(&o, "d", &names, &card, &s, &e) == 0) {
		check_source(&s, &names);
		o.subset = s.subset;
		o.split = s.splits[s.split_count - 1];
		CHECK(source_sort(&o, "d", &names, &card, &t, &e) == 0);
		check_source(&t, &names);
		CHECK(strcmp(t.split, o.split) == 0);
	} else {
		CHECK(e.code == ERR_RUN && e.text[0]);
	}
	arena_release(&t.arena);
	arena_release(&s.arena);
	return 0;
}
