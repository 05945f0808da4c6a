/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom_image.c - the user's own prompts with images, one JSON object per line; datasets
 * spec 5.6.
 *
 * A line has either "content", a list of text and image parts that is the whole prompt, or
 * "prompt" and "image_files". Prompts are sent as they are, never through a template.
 */
#include "data/custom.h"
#include "data/media.h"

struct image_rows {
	struct rows rows;
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct buf text;
};

/* What make_media needs of a row: the list and which of the two forms it is. */
struct images {
	struct json_slice list; /* raw, in the lot's arena */
	bool is_content;
};

static int refuse(struct err *e, const char *what)
{
	return err_set(e, ERR_PARSE, "%s", what);
}

/* The reference of an "image_url": text, or the "url" of an object. */
static bool image_url_ref(struct json_slice v, struct json_slice *ref)
{
	*ref = v;
	return v.kind == JSON_STRING || (json_member(v, "url", ref) && ref->kind == JSON_STRING);
}

static int check_part(struct json_slice part, struct err *e)
{
	struct json_slice type, v, ref;

	if (part.kind != JSON_OBJECT || !json_member(part, "type", &type) || type.kind != JSON_STRING)
		return refuse(e, "each part of \"content\" must be an object with a \"type\"");
	if (str_is(type.raw, "text"))
		return json_member(part, "text", &v) && v.kind == JSON_STRING ? 0 :
		       refuse(e, "a part of type text needs \"text\"");
	if (str_is(type.raw, "image"))
		return json_member(part, "image", &v) && v.kind == JSON_STRING ? 0 :
		       refuse(e, "a part of type image needs \"image\", a path or URL");
	if (str_is(type.raw, "image_url"))
		return json_member(part, "image_url", &v) && image_url_ref(v, &ref) ? 0 :
		       refuse(e, "a part of type image_url needs \"image_url\", a URL or an object with "
			      "\"url\"");
	return err_set(e, ERR_PARSE, "a part of \"content\" has the type '%.*s'; known are text, image "
		       "and image_url", (int)(type.raw.n < 100 ? type.raw.n : 100), type.raw.p);
}

/* Every line is looked at before any is sent. */
static int check_row(void *self, struct json_slice row, struct err *e)
{
	struct json_slice list, prompt, item;
	bool is_content = json_member(row, "content", &list);
	struct json_iter it;
	struct str key;
	size_t n = 0;

	(void)self;
	if (!is_content && (!json_member(row, "prompt", &prompt) ||
			    !json_member(row, "image_files", &list)))
		return refuse(e, "a line needs \"content\", or \"prompt\" and \"image_files\"");
	if (!is_content && prompt.kind != JSON_STRING)
		return refuse(e, "\"prompt\" must be text");
	if (list.kind != JSON_ARRAY)
		return refuse(e, is_content ? "\"content\" must be a list" :
					      "\"image_files\" must be a list");
	it = json_iter(list);
	while (json_each(&it, &key, &item) == 1) {
		if (is_content && check_part(item, e) < 0)
			return -1;
		if (!is_content && item.kind != JSON_STRING)
			return refuse(e, "\"image_files\" must hold paths or URLs");
		n++;
	}
	return n ? 1 : refuse(e, is_content ? "\"content\" is empty" : "\"image_files\" is empty");
}

/* All texts of a content list, one behind the other: what is counted. */
static void join_texts(struct json_slice content, struct buf *out)
{
	struct json_iter it = json_iter(content);
	struct json_slice part, type;
	struct str key;

	while (json_each(&it, &key, &part) == 1)
		if (json_member(part, "type", &type) && str_is(type.raw, "text"))
			rows_text(part, "text", out);
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct image_rows *s = self;
	struct images *images = arena_alloc(a, sizeof(*images));
	struct json_slice row;

	if (rows_get(&s->rows, i, &row, e) < 0)
		return -1;
	buf_reset(&s->text);
	images->is_content = json_member(row, "content", &images->list);
	if (images->is_content) {
		join_texts(images->list, &s->text);
	} else {
		json_member(row, "image_files", &images->list);
		rows_text(row, "prompt", &s->text);
	}
	images->list.raw = arena_str(a, images->list.raw);
	d->media = images;
	d->is_media_prompt = images->is_content;
	d->counted = arena_str(a, buf_str(&s->text));
	if (!images->is_content)
		d->sample.prompt = d->counted;
	d->sample.output_len = s->o->custom_output_len;
	if (s->o->custom_output_len == -1 &&
	    custom_output_tokens(&s->rows, i, row, "custom-output-len", &d->sample.output_len, e) < 0)
		return -1;
	return rows_own_keys(&s->rows, i, row, a, d, e) < 0 ? -1 : 1;
}

/* {"type": "image_url", "image_url": {"url": ..., what else the row's object has}} */
static int put_image(const struct image_rows *s, struct json_slice ref, struct json_slice object,
		     struct json_writer *w, struct err *e)
{
	struct buf text = { 0 }, url = { 0 };
	struct arena a = { 0 };
	struct json_value *rest = NULL;
	int rc = 0;

	json_unescape(&text, ref.raw);
	if (s->o->custom_ensure_client_side_data)
		rc = media_inline_url(buf_str(&text), s->env->cancel, &url, e);
	else
		media_image_url(buf_str(&text), &url);
	if (rc == 0 && object.kind == JSON_OBJECT)
		rc = json_parse(&a, object.raw, &rest, e);
	if (rc == 0) {
		json_begin_object(w);
		json_member_text(w, "type", "image_url");
		json_member_object(w, "image_url");
		json_member_str(w, "url", buf_str(&url));
		for (size_t k = 0; rest && k < rest->count; k++) {
			if (str_is(rest->key[k], "url"))
				continue;
			json_key_str(w, rest->key[k]);
			json_put_value(w, &rest->item[k]);
		}
		json_end_object(w);
		json_end_object(w);
	}
	buf_release(&text);
	buf_release(&url);
	arena_release(&a);
	return rc;
}

static int put_part(const struct image_rows *s, struct json_slice part, struct json_writer *w,
		    struct err *e)
{
	struct json_slice type, v, ref;
	struct buf text = { 0 };

	json_member(part, "type", &type);
	if (str_is(type.raw, "text")) {
		rows_text(part, "text", &text);
		media_put_text(w, buf_str(&text));
		buf_release(&text);
		return 0;
	}
	if (json_member(part, "image", &v) && str_is(type.raw, "image"))
		return put_image(s, v, (struct json_slice){ .kind = JSON_NULL }, w, e);
	json_member(part, "image_url", &v);
	image_url_ref(v, &ref);
	return put_image(s, ref, v, w, e);
}

static int make_media(void *self, const struct draft *d, struct buf *parts, struct err *e)
{
	const struct image_rows *s = self;
	const struct images *images = d->media;
	struct json_writer w = json_writer(parts);
	struct json_iter it = json_iter(images->list);
	struct json_slice item;
	struct str key;
	int rc = 0;

	json_begin_array(&w);
	while (rc == 0 && json_each(&it, &key, &item) == 1)
		rc = images->is_content ? put_part(s, item, &w, e) :
		     put_image(s, item, (struct json_slice){ .kind = JSON_NULL }, &w, e);
	json_end_array(&w);
	return rc < 0 ? err_wrap(e, "%s", s->o->path) : 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	return custom_check_path(o->path, "custom_image", "\"prompt\" and \"image_files\" or "
				 "\"content\"", e);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "prompt", "image_files", "content", "output_tokens",
					       NULL };
	struct image_rows s = { .o = o, .env = env };
	const struct rows_opts opts = {
		.o = o, .env = env, .seed = env->seed, .columns = columns,
		.is_known_only = true, .output_len = o->custom_output_len, .keep = check_row,
	};
	struct take take = {
		.self = &s, .draft = draft, .make_media = make_media, .has_chat_form = true,
		.takes_all = true, .is_row_index = true,
	};
	int rc = rows_open(&s.rows, &o->path, 1, &opts, rng, e);

	if (rc == 0)
		rc = rows_take(&s.rows, &take, &opts, rng, w, e);
	if (rc == 0)
		dataset_note_media(w, env);
	if (rc == 0)
		rows_note_unused(&s.rows, o, w);
	rows_release(&s.rows);
	buf_release(&s.text);
	return rc;
}

static const char *const options[] = {
	"custom-output-len", "custom-ensure-client-side-data", "disable-shuffle", "no-oversample",
	"enable-multimodal-chat", NULL,
};

const struct dataset dataset_custom_image = {
	.name = "custom_image", .summary = "your own prompts with images from a .jsonl file",
	.options = options, .needs_path = true, .takes_all = true,
	.check = check, .build = build,
};

/* The older name. */
const struct dataset dataset_custom_mm = {
	.name = "custom_mm", .summary = "older name of custom_image",
	.options = options, .needs_path = true, .takes_all = true,
	.check = check, .build = build,
};
