/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_progress.c - what `profllm run` says on stderr of how far its stages are. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/verbs/run_verb.h"
#include "core/base/clock.h"
#include "on_stderr.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

#define S 1000000000ll

/* What is written when a stage that began so long ago has come so far. */
static const char *shown(const char *how, int64_t ago_ns, uint64_t done, uint64_t total)
{
	struct run_talk t;
	struct suite_hooks hooks;

	run_talk_init(&t, how, false);
	hooks = run_talk_hooks(&t, -1);
	begin_stderr();
	snprintf(t.what, sizeof(t.what), "Start");
	t.began_ns = t.drawn_ns = clock_mono_ns() - ago_ns;
	hooks.run.progress(hooks.run.self, "Start", done, total);
	return end_stderr();
}

/* Half a second more than is shown, so that the machine may be slow. */
static void stages(void **state)
{
	static const struct {
		const char *how;
		int64_t ago_ns;
		uint64_t done, total;
		const char *text;
	} row[] = {
		{ "lines", 10 * S + S / 2, 12, 48, "Start 12/48 [00:10<00:31]\n" },
		{ "lines", 10 * S + S / 2, 0, 48, "Start 0/48 [00:10]\n" },
		{ "lines", 10 * S + S / 2, 48, 48, "Start 48/48 [00:10]\n" },
		{ "lines", 100 * S + S / 2, 7, 0, "Start [01:40]\n" },
		{ "lines", S, 12, 48, "" }, { "none", 10 * S, 12, 48, "" },
		{ "bar", 10 * S + S / 2, 12, 48, "\rStart ######.................. 12/48 [00:10<00:31]\033[K" },
		{ "bar", 10 * S + S / 2, 50, 48, "\rStart ######################## 50/48 [00:10]\033[K" },
		{ "bar", S + S / 2, 0, 48, "\rStart ........................ 0/48 [00:01]\033[K" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_string_equal(shown(row[i].how, row[i].ago_ns, row[i].done, row[i].total),
				    row[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stages) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
