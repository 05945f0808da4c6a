/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_edit.c - hub datasets of changes to code: spec 5.18, 5.20; see hf.h.
 *
 * The sentences of the prompts are upstream's to the byte: what is measured depends on them.
 */
#include "base/utf8.h"
#include "data/hf.h"

/*
 * What follows the marker. Without one upstream's search gives -1, which Python takes as "from
 * the last character on"; a length that is asked for must equal upstream's.
 */
static struct str editable_part(struct str output)
{
	const struct str marker = STR("<|editable_region_start|>");
	const char *at = memmem(output.p, output.n, marker.p, marker.n);
	size_t from = at ? (size_t)(at - output.p) : output.n;

	while (!at && from > 0) {
		from--;
		if (((unsigned char)output.p[from] & 0xc0) != 0x80)
			break;
	}
	return (struct str){ output.p + from, output.n - from };
}

int hf_draft_next_edit(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct buf *text = &r->hf->text;
	struct str output;

	buf_add_text(text, "### Instruction:\nYou are a code completion assistant and your task is "
		     "to analyze user edits and then rewrite an excerpt that the user provides, "
		     "suggesting the appropriate edits within the excerpt, taking into account the "
		     "cursor location.\n\n### User Edits:\n\n");
	if (hf_add_column(r, "events", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\n### User Excerpt:\n\n");
	if (hf_add_column(r, "input", text, e) < 0 || hf_text(r, "output", a, &output, e) < 0)
		return -1;
	buf_add_text(text, "\n\n### Response:\n\n");
	d->sample.prompt = hf_built(r, a);
	d->answer = editable_part(output);
	return 1;
}

/* Whether the row's distance is in the window that is asked for. */
static int is_within(const struct hf_row *r, struct err *e)
{
	const struct dataset_opts *o = r->hf->opts;
	struct json_slice v;
	double distance;

	if (hf_column(r, "norm_distance", &v, e) < 0)
		return -1;
	if (!json_to_f64(v, &distance) && (v.kind != JSON_STRING || !str_to_f64(v.raw, &distance)))
		return hf_refuse(r, e, "\"norm_distance\" must be a number");
	return distance >= o->blazedit_min_distance && distance <= o->blazedit_max_distance;
}

int hf_draft_blazedit(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct buf *text = &r->hf->text;
	int rc = is_within(r, e);

	if (rc <= 0)
		return rc;
	buf_add_text(text, "Given a code file, please apply the change requests and generate the new "
		     "file.\n\nOriginal file:\n```python\n");
	if (hf_add_column(r, "code", text, e) < 0)
		return -1;
	buf_add_text(text, "\n```\n\nChange request:\n");
	if (hf_add_column(r, "change_request", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\nPlease generate the new code file in the \"New file\" section below.");
	d->sample.prompt = hf_built(r, a);
	return 1;
}
