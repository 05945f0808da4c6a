/* SPDX-License-Identifier: Apache-2.0 */
/* hf_text.c - hub datasets whose rows are questions: spec 5.15, 5.17, 5.21; see hf.h. */
#include "data/hf.h"
#include "json/write.h"

/* The two texts around which everything is said: what to do, and that code alone is wanted. */
int hf_draft_instruct_coder(const struct hf_row *r, struct arena *a, struct draft *d,
			    struct err *e)
{
	struct buf *text = &r->hf->text;

	if (hf_add_column(r, "input", text, e) < 0)
		return -1;
	buf_add_text(text, "\n\n");
	if (hf_add_column(r, "instruction", text, e) < 0)
		return -1;
	buf_add_text(text, " Just output the code, do not include any explanation.");
	d->sample.prompt = hf_built(r, a);
	return 1;
}

int hf_draft_mt_bench(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_slice turns, first;

	if (hf_column(r, "turns", &turns, e) < 0)
		return -1;
	if (!rows_item(turns, 0, &first) || first.kind != JSON_STRING)
		return hf_refuse(r, e, "\"turns\" must be a list of texts");
	d->sample.prompt = hf_string(first, a);
	return 1;
}

static int draft_text(const struct hf_row *r, const char *column, struct arena *a,
		      struct draft *d, struct err *e)
{
	return hf_text(r, column, a, &d->sample.prompt, e) < 0 ? -1 : 1;
}

int hf_draft_human_eval(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return draft_text(r, "prompt", a, d, e);
}

int hf_draft_gsm8k(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return draft_text(r, "question", a, d, e);
}

int hf_draft_aimo(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	return hf_text(r, "solution", a, &d->answer, e) < 0 ? -1 : draft_text(r, "problem", a, d, e);
}

/* {"role": role, "content": the column's text} */
static int put_message(const struct hf_row *r, const char *role, const char *column,
		       struct arena *a, struct json_writer *w, struct err *e)
{
	struct str content;

	if (hf_text(r, column, a, &content, e) < 0)
		return -1;
	json_begin_object(w);
	json_member_text(w, "role", role);
	json_member_str(w, "content", content);
	json_end_object(w);
	return 0;
}

int hf_draft_mlperf(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	const struct dataset_env *env = r->hf->env;
	struct json_writer w = json_writer(&r->hf->text);
	struct str messages;

	json_begin_array(&w);
	if (put_message(r, "system", "system_prompt", a, &w, e) < 0 ||
	    put_message(r, "user", "question", a, &w, e) < 0 ||
	    hf_text(r, "output", a, &d->answer, e) < 0)
		return -1;
	json_end_array(&w);
	messages = hf_built(r, a);
	if (env->render(env->render_self, messages, STR(""), &r->hf->text, e) < 0)
		return err_wrap(e, "%s", hf_where(r, a));
	d->sample.prompt = hf_built(r, a);
	d->is_answer_plain = true;
	return 1;
}
