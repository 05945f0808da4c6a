/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine's log: whatever it says, phases have names, each once, and seconds that can be
 * written; values of arguments, from the log or from what a server answers, are strict JSON.
 */
#include <math.h>

#include "bench/server/engine_report.h"
#include "check.h"
#include "core/json/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_report(struct str text)
{
	struct engine_report r;
	struct json_value *v;
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	struct arena a = { 0 };

	engine_report_begin(&r, &a);
	engine_report_log(&r, text);
	engine_report_metrics(&r, text);
	engine_report_models(&r, text);
	engine_report_write(&r, &w);
	CHECK(json_parse(&a, buf_str(&out), &v, NULL) == 0 && v->kind == JSON_OBJECT);
	CHECK(!json_get(v, "port") && !json_get(v, "api_key"));
	buf_release(&out);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str log = { (const char *)data, size };
	struct engine_phase phase[ENGINE_LOG_PHASES];
	size_t n = engine_log_phases(log, phase);
	double compilation_s = engine_log_compilation_s(log);

	CHECK(n <= ENGINE_LOG_PHASES);
	for (size_t i = 0; i < n; i++) {
		CHECK(phase[i].name && *phase[i].name);
		CHECK(isfinite(phase[i].s) && phase[i].s >= 0);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(phase[k].name, phase[i].name) != 0);
	}
	check_report(log);
	CHECK(isnan(compilation_s) || (isfinite(compilation_s) && compilation_s >= 0));
	return 0;
}
