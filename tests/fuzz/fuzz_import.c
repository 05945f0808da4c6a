/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_import.c - any bytes as one of vLLM's test files, and as a suite's own keys.
 *
 * A test file is refused with a finding, or every experiment of it has a name of its own kind and a
 * configuration that can be merged, typed and judged. The same bytes as a configuration: a suite is
 * refused with a finding, or its members have different documents and each has its turn once.
 */
#include <string.h>

#include "check.h"
#include "core/base/limits.h"
#include "experiment/suite/import.h"
#include "experiment/suite/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMBERS_MAX 16 /* of a file: typing one costs a millisecond */

static void check_import(const struct config *base, struct str text, const struct import_opts *o,
			 struct arena *a)
{
	static const struct config_know nothing;
	struct import_list list = { 0 };
	struct config_findings f = { 0 };

	if (import_parse(base, text, "tests.json", o, a, &list, &f) < 0)
		CHECK(f.n_errors && f.errors.len);
	for (size_t i = 0; i < list.n && i < MEMBERS_MAX; i++) {
		const struct import_member *m = &list.v[i];
		struct config_findings own = { 0 };
		struct experiment x;

		CHECK(strchr(m->name, '_') && strstr(m->name, m->test.test) == m->name);
		CHECK(m->over->kind == JSON_OBJECT && json_get(m->over, "benchmark"));
		CHECK((m->test.mode == MODE_SERVE) == (m->test.concurrency > 0));
		config_experiment(base, config_merge(base, base->tree, m->over), &nothing, a, &x,
				  &own);
		CHECK(x.name != NULL);
		config_findings_release(&own);
	}
	config_findings_release(&f);
}

static void check_suite(struct str text, struct arena *a)
{
	static const struct config_know nothing;
	static const struct suite_opts asked = { .output = "out/r.json" };
	struct config_findings f = { 0 };
	struct config c;
	struct suite s;
	struct err e;

	if (config_parse(text, "suite.yaml", NULL, 0, a, &c, &e) < 0)
		return;
	/* Grids of thousands are right and slow. */
	if (json_get(c.tree, "matrix") && text.n > 300)
		return;
	if (suite_expand(&c, &nothing, &asked, &s, &f) == 0) {
		bool *seen = arena_alloc(a, s.n + 1);

		for (size_t i = 0; i < s.n; i++) {
			CHECK(s.order[i] < s.n && !seen[s.order[i]]);
			seen[s.order[i]] = true;
			CHECK(strncmp(s.member[i].path, "out/r", 5) == 0 || s.is_single ||
			      s.folder[0]);
		}
	} else {
		CHECK(f.n_errors && f.errors.len);
	}
	suite_release(&s);
	config_findings_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct import_opts usual = IMPORT_DEFAULTS;
	struct import_opts picky = IMPORT_DEFAULTS;
	struct str text = { (const char *)data, size };
	struct arena a = { 0 };
	struct config base;
	struct err e;

	picky.select = "^serving_|tp[12]";
	picky.prompts_per_concurrency = 3;
	picky.devices = 1;
	picky.remote = size % 4 < 2 ? "http://127.0.0.1:1" : NULL;
	CHECK(config_parse(STR("server: {command: sim}"), "base.yaml", NULL, 0, &a, &base, &e) == 0);
	check_import(&base, text, size % 2 ? &picky : &usual, &a);
	check_suite(text, &a);
	arena_release(&a);
	return 0;
}
