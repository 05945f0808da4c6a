/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_normalize.c - the normalizer of a tokenizer.json.
 */
#include "token/model.h"
#include "token/stages.h"

static int add_normalizer(struct model *m, const struct json_value *v, struct err *e)
{
	const struct json_value *list;

	if (stage_is(v, "NFC")) {
		m->normalizer.is_nfc = true;
		return 0;
	}
	if (!stage_is(v, "Sequence"))
		return stage_refuse(v, "normalizer", e);
	if (stage_members(v, "normalizers", "normalizer", &list, e))
		return -1;
	for (size_t i = 0; i < list->count; i++)
		if (add_normalizer(m, list->item + i, e))
			return -1;
	return 0;
}

int stages_normalizer(struct model *m, const struct json_value *root, struct err *e)
{
	return add_normalizer(m, root, e);
}
