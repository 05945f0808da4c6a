/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.c - ids back to text.
 */
#include "token/model.h"
#include "token/stages.h"

/* ByteLevel it must be, alone or as the one member of a Sequence. */
int stages_decoder(struct model *m, const struct json_value *root, struct err *e)
{
	const struct json_value *decoder = root, *list;

	(void)m;
	if (stage_is(decoder, "Sequence")) {
		if (stage_members(decoder, "decoders", "decoder", &list, e))
			return -1;
		if (list->count == 1)
			decoder = list->item;
	}
	return stage_is(decoder, "ByteLevel") ? 0 : stage_refuse(decoder, "decoder", e);
}

void decoder_release(struct decoder *d)
{
	*d = (struct decoder){ 0 };
}

int decoder_index(struct model *m, struct err *e)
{
	(void)m;
	(void)e;
	return 0;
}
