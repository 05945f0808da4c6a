/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_requests.c - any JSON as what a simulated worker is handed. What is accepted is counted
 * without leaving its arrays, as prompts and as chats; what is not says which request it was.
 */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "sim/serving/worker_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(struct requests *r, const struct tokenizer *t, bool is_chat)
{
	struct err e = { 0 };

	if (requests_count(r, t, is_chat, &e) < 0) {
		CHECK(e.text[0]);
		return;
	}
	for (size_t i = 0; i < r->n; i++) {
		const struct request *q = &r->request[i];

		CHECK(q->tokens >= 1 && q->tokens >= q->text_tokens);
		CHECK(q->tokens_at + q->tokens <= r->tokens.count);
		CHECK(q->media_at + q->media_n <= r->media_n);
		CHECK(q->output >= -1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tokenizer *t;
	struct json_scan scan = { .text = { (const char *)data, size } };
	struct json_slice frame;
	struct requests r = { 0 };
	struct err e = { 0 };

	if (!t)
		t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	if (json_next(&scan, &frame, NULL) < 0 || !json_at_end(&scan))
		return 0;
	if (requests_put(&r, frame, &e) < 0)
		CHECK(e.text[0]);
	count(&r, t, false);
	count(&r, t, true);
	if (requests_put(&r, frame, &e) == 0)
		count(&r, t, false);
	requests_release(&r);
	return 0;
}
