/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_stages.c - stages of a byte-level model as JSON.
 */
#include "token/byte_stages.h"

#include "json/write.h"

static void write_pre_tokenizer(struct buf *out, const struct byte_stages *s)
{
	if (s->pattern.n > 0) {
		buf_add_text(out, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
			"\"pattern\":{\"Regex\":");
		json_quote(out, s->pattern, true);
		buf_add_text(out, "},\"behavior\":\"Isolated\",\"invert\":false},");
	}
	buf_printf(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
		"\"use_regex\":%s}", s->has_prefix_space ? "true" : "false",
		s->pattern.n ? "false" : "true");
	if (s->pattern.n > 0)
		buf_add_text(out, "]}");
}

/* One special token of a template: in its row, or with its id. */
static void write_special(struct json_writer *w, struct str name, uint32_t id, bool is_in_row)
{
	if (name.n == 0)
		return;
	if (is_in_row) {
		json_begin_object(w);
		json_key(w, "SpecialToken");
	} else {
		json_key_str(w, name);
	}
	json_begin_object(w);
	json_member_str(w, "id", name);
	json_key(w, is_in_row ? "type_id" : "ids");
	if (is_in_row) {
		json_put_int(w, 0);
	} else {
		json_begin_array(w);
		json_put_int(w, id);
		json_end_array(w);
	}
	json_end_object(w);
	if (is_in_row)
		json_end_object(w);
}

static void write_post_processor(struct buf *out, const struct byte_stages *s)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_text(&w, "type", "TemplateProcessing");
	json_member_array(&w, "single");
	write_special(&w, s->bos, s->bos_id, true);
	json_put_raw(&w, STR("{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"));
	write_special(&w, s->eos, s->eos_id, true);
	json_end_array(&w);
	json_member_object(&w, "special_tokens");
	write_special(&w, s->bos, s->bos_id, false);
	if (!str_eq(s->bos, s->eos))
		write_special(&w, s->eos, s->eos_id, false);
	json_end_object(&w);
	json_end_object(&w);
}

int byte_stages_load(struct model *m, const struct byte_stages *s, struct err *e)
{
	struct buf pre = { 0 }, post = { 0 };
	struct stage_texts text = { .decoder = STR("{\"type\":\"ByteLevel\"}") };
	int rc;

	write_pre_tokenizer(&pre, s);
	if (s->bos.n > 0 || s->eos.n > 0)
		write_post_processor(&post, s);
	if (s->is_nfc)
		text.normalizer = STR("{\"type\":\"NFC\"}");
	text.pre_tokenizer = buf_str(&pre);
	text.post_processor = buf_str(&post);
	rc = stages_load(m, &text, e);
	buf_release(&pre);
	buf_release(&post);
	return rc;
}
