/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_form.c - a form's Content-Type (the first line) and body (the rest). Every part must be
 * inside the body, after the one before it, and no part contains the boundary.
 */
#include "check.h"
#include "client/http/form.h"
#include "core/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct str whole, struct str part)
{
	CHECK(!part.p || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf copy = { 0 };
	struct form f;
	struct form_part part;
	struct str body, type, boundary;
	const char *last;

	buf_add(&copy, data, size);
	body = buf_str(&copy);
	type = str_cut(&body, '\n');
	if (!type.p || !form_open(&f, type, body)) {
		buf_release(&copy);
		return 0;
	}
	last = body.p;
	boundary = (struct str){ f.line, f.line_bytes };
	while (form_next(&f, &part, NULL) > 0) {
		inside(body, part.name);
		inside(body, part.filename);
		inside(body, part.type);
		inside(body, part.body);
		CHECK(part.body.p > last);
		CHECK(!memmem(part.body.p, part.body.n, boundary.p, boundary.n));
		last = part.body.p;
	}
	buf_release(&copy);
	return 0;
}
