/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audio.c - the form of a transcription or translation, read into what any
 * answer is made from. The sound's bytes decide which words come; its length
 * decides nothing. The prompt is what a speech model starts from, then the
 * form's own prompt.
 */
#include "base/map.h"
#include "http/form.h"
#include "sim/server.h"

/* A form spells booleans as its client's language does: True, true, 1. */
static bool is_true(struct str v)
{
	return str_eq_nocase(v, STR("true")) || str_is(v, "1");
}

static int field_read(struct ask *a, const struct form_part *p, struct buf *prompt,
		      const char **param, struct err *e)
{
	if (str_is(p->name, "model"))
		buf_add_str(&a->model, p->body);
	else if (str_is(p->name, "prompt"))
		buf_add_str(prompt, p->body);
	else if (str_is(p->name, "stream"))
		a->is_stream = is_true(p->body);
	else if (str_is(p->name, "stream_include_usage"))
		a->has_usage = is_true(p->body);
	else if (str_is(p->name, "stream_continuous_usage_stats"))
		a->has_usage_always = is_true(p->body);
	else if (str_is(p->name, "ignore_eos"))
		a->is_eos_ignored = is_true(p->body);
	else if (str_is(p->name, "max_completion_tokens")) {
		*param = "max_completion_tokens";
		if (!str_to_i64(p->body, &a->max_tokens) || a->max_tokens < 1)
			return err_set(e, ERR_USAGE, "max_completion_tokens must be at least 1");
		*param = NULL;
	} else if (str_is(p->name, "file")) {
		a->salt = map_hash(p->body);
		a->has_prompt = p->body.n > 0;
	}
	return 0;
}

int audio_read(struct conn *c, struct str body, const char **param, struct err *e)
{
	struct ask *a = &c->sim->ask;
	struct buf prompt = { 0 };
	struct form form;
	struct form_part part;
	int rc = 0;

	*param = NULL;
	ask_reset(a, ASK_AUDIO);
	if (!form_open(&form, http_head_value(buf_str(&c->head), "content-type"), body))
		return err_set(e, ERR_PARSE, "the request is no multipart form");
	while (rc == 0 && (rc = form_next(&form, &part, e)) > 0)
		rc = field_read(a, &part, &prompt, param, e);
	buf_add_text(&a->text, "<|startoftranscript|>");
	buf_add_str(&a->text, buf_str(&prompt));
	buf_release(&prompt);
	if (rc < 0)
		return -1;
	if (a->has_prompt)
		return 0;
	*param = "file";
	return err_set(e, ERR_USAGE, "file is missing or empty");
}
