/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_constrain.c - constraints of all kinds and answers to them.
 *
 * The first byte is the kind (0 to 3: as in constrain.h; 4: a member of a request), the second a
 * seed; the rest is the constraint and, after a zero byte, an answer. A constraint is refused in
 * one sentence or judges any answer; an answer that is made for it is kept.
 */
#include "check.h"
#include "input/constrain/constrain.h"

#define ANSWER_BYTES 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data + 2, size - 2 }, text;
	struct constraint_opts opts = { .is_format_asserted = true };
	struct constraint_result r = { 0 };
	struct constraint *c;
	struct buf made = { 0 };
	struct err e = { 0 };

	if (size < 2)
		return 0;
	text = str_cut(&rest, 0);
	opts.is_format_asserted = data[1] & 1;
	c = data[0] % 5 == 4 ? constraint_compile_member(text, &opts, &e) :
		constraint_compile((enum constraint_kind)(data[0] % 5), text, &opts, &e);
	if (!c) {
		CHECK(e.code == ERR_USAGE && e.text[0]);
		return 0;
	}
	constraint_check(c, rest, &r);
	CHECK((r.verdict == CONSTRAINT_KEPT) == !r.why[0]);
	constraint_check_upstream(c, rest);
	if (constraint_generate(c, data[1], ANSWER_BYTES, &made, &e) == 0) {
		constraint_check(c, buf_str(&made), &r);
		CHECK(r.verdict != CONSTRAINT_BROKEN);
	} else {
		CHECK(e.code == ERR_RUN && e.text[0] && made.len == 0);
	}
	buf_release(&made);
	constraint_free(c);
	return 0;
}
