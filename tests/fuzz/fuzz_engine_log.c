/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine's log: whatever it says, phases have names, each once, and seconds that can be
 * written.
 */
#include <math.h>

#include "check.h"
#include "run/engine_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str log = { (const char *)data, size };
	struct offline_phase phase[ENGINE_LOG_PHASES];
	size_t n = engine_log_phases(log, phase);
	double compilation_s = engine_log_compilation_s(log);

	CHECK(n <= ENGINE_LOG_PHASES);
	for (size_t i = 0; i < n; i++) {
		CHECK(phase[i].name && *phase[i].name);
		CHECK(isfinite(phase[i].s) && phase[i].s >= 0);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(phase[k].name, phase[i].name) != 0);
	}
	CHECK(isnan(compilation_s) || (isfinite(compilation_s) && compilation_s >= 0));
	return 0;
}
