/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ask.c - any bytes as the body of a request to the simulator. What is refused has a sentence;
 * what is accepted holds to its limits, and its tools and stop strings lie within their texts.
 */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "sim/serving/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void accepted(const struct sim_ask *a)
{
	CHECK(a->has_prompt && a->n >= 1 && a->n <= ASK_CHOICES_MAX);
	CHECK(a->constraints <= 1 && a->tools <= ASK_TOOLS_MAX && a->stops <= ASK_STOPS_MAX);
	CHECK(a->calls == ASK_CALLS_NONE || a->tools > 0);
	CHECK(a->calls != ASK_CALLS_NAMED || a->named < a->tools);
	for (size_t i = 0; i < a->tools; i++) {
		struct str name = ask_tool_name(a, i);

		CHECK(name.p + name.n <= a->tool_text.data + a->tool_text.len);
	}
	for (size_t i = 0; i < a->stops; i++)
		CHECK(ask_stop(a, i).n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_ask a = { .knows = ASK_KNOWS_STRUCTURED | ASK_KNOWS_GUIDED | ASK_KNOWS_FORMAT };

	for (int api = 0; api < ASK_APIS; api++) {
		struct str body = { (const char *)data, size };
		struct err e = { 0 };
		const char *param = NULL;

		if (api == ASK_AUDIO) /* a form */
			continue;
		if (ask_read(&a, (enum ask_api)api, body, &param, &e) < 0)
			CHECK(e.text[0]);
		else if (api != ASK_DETOKENIZE)
			accepted(&a);
	}
	ask_release(&a);
	return 0;
}
