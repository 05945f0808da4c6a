/* SPDX-License-Identifier: Apache-2.0 */
/* reuse.c - what was sent again, and before: rows and members of the report; see report.h. */
#include "report/lines.h"
#include "json/write.h"
#include "report/report.h"

void report_reuse_rows(const struct report_reuse *r, struct buf *out)
{
	struct buf value = { 0 };

	if (r->order) {
		buf_printf(&value, "%u (%s, %u of each)", r->repeated, r->order, r->copies);
		line_text(out, "Repeated requests:", value.data);
		buf_reset(&value);
	}
	if (r->pass) {
		buf_printf(&value, "%s (%u requests)", r->pass, r->pass_requests);
		line_text(out, "Warm-up pass:", value.data);
	}
	if ((r->order || r->pass) && r->ideal >= 0)
		line_real(out, "Ideal prefix reuse (%):", 100 * r->ideal);
	buf_release(&value);
}

void report_reuse_json(const struct report_reuse *r, struct json_writer *w)
{
	if (!r->order && !r->pass)
		return;
	json_member_int(w, "repeat_count", r->order ? r->copies : 1);
	json_member_text(w, "repeat_order", r->order);
	json_member_int(w, "repeated_requests", r->repeated);
	json_member_text(w, "warmup_pass", r->pass);
	json_member_int(w, "warmup_pass_requests", r->pass_requests);
	json_key(w, "ideal_prefix_reuse");
	if (r->ideal >= 0)
		json_put_f64(w, r->ideal);
	else
		json_put_null(w);
}
