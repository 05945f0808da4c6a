/* SPDX-License-Identifier: Apache-2.0 */
/* hf_chat.c - hub datasets of recorded conversations, with and without a picture: spec 5.16. */
#include "data/hf.h"

/* The first two turns; a conversation without them is none. */
int hf_draft_conversation(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_slice turns, turn[2], value[2];

	if (hf_column(r, "conversations", &turns, e) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		if (!rows_item(turns, i, &turn[i]))
			return turns.kind == JSON_ARRAY ? 0 :
			       hf_refuse(r, e, "\"conversations\" must be a list");
	for (size_t i = 0; i < 2; i++)
		if (!json_member(turn[i], "value", &value[i]) || value[i].kind != JSON_STRING)
			return hf_refuse(r, e, "\"conversations\": turn %zu has no text \"value\"", i);
	d->sample.prompt = hf_string(value[0], a);
	d->answer = hf_string(value[1], a);
	return 1;
}

int hf_draft_multimodal_conversation(const struct hf_row *r, struct arena *a, struct draft *d,
				     struct err *e)
{
	struct json_slice image;
	int rc = hf_draft_conversation(r, a, d, e);

	/* Rows without a picture are conversations like any other. */
	if (rc <= 0 || !json_member(r->object, "image", &image))
		return rc;
	return hf_add_image(r, image, a, d, e) < 0 ? -1 : 1;
}
