/* SPDX-License-Identifier: Apache-2.0 */
/* hf_media.c - hub datasets of questions about pictures and videos: spec 5.13, 5.14, 5.22. */
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "data/hf.h"
#include "data/media.h"
#include "token/chat.h"

struct item {
	const char *kind;  /* of the content part: "image_url", "video_url" */
	struct str bytes;  /* the file's; p NULL: not here */
	const char *file;  /* that is read for them; NULL: none */
	struct str ref;    /* a path or URL; used when there are no bytes */
	const char *where; /* the row, for errors */
};

static struct item *add_item(const struct hf_row *r, const char *kind, struct arena *a,
			     struct draft *d)
{
	struct item *item = arena_alloc(a, sizeof(*item));

	item->kind = kind;
	item->where = hf_where(r, a);
	d->media = item;
	return item;
}

/* {"bytes": ..., "path": ...}, as the hub's library stores pictures */
static int add_stored(const struct hf_row *r, struct json_slice v, struct arena *a,
		      struct item *item, struct err *e)
{
	struct json_slice member;
	struct str file;
	int rc = json_member(v, "bytes", &member) ? hf_bytes(r, member, a, &item->bytes, e) : 0;

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (!json_member(v, "path", &member) || member.kind != JSON_STRING)
		return hf_refuse(r, e, "an image has neither \"bytes\" nor a \"path\"");
	if (hf_file(r, hf_string(member, a), a, &file, e) < 0)
		return -1;
	if (!file.p)
		return hf_refuse(r, e, "an image has no \"bytes\", and there is no file \"%.*s\"",
				 (int)member.raw.n, member.raw.p);
	item->file = file.p;
	return 0;
}

int hf_add_image(const struct hf_row *r, struct json_slice v, struct arena *a, struct draft *d,
		 struct err *e)
{
	struct item *item;
	int rc;

	if (v.kind == JSON_NULL)
		return 0;
	item = add_item(r, "image_url", a, d);
	if (v.kind == JSON_OBJECT)
		return add_stored(r, v, a, item, e);
	rc = hf_bytes(r, v, a, &item->bytes, e);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (v.kind != JSON_STRING)
		return hf_refuse(r, e, "an image must be its bytes, a path or a URL");
	item->ref = hf_string(v, a);
	return 0;
}

static int make_url(const struct item *item, struct str bytes, struct buf *url, struct err *e)
{
	bool is_image = strcmp(item->kind, "image_url") == 0;

	if (is_image && bytes.p)
		return media_jpeg_url(bytes, url, e);
	if (bytes.p)
		media_mp4_url(bytes, url);
	else
		(is_image ? media_image_url : media_video_url)(item->ref, url);
	return 0;
}

int hf_make_media(void *self, const struct draft *d, struct buf *parts, struct err *e)
{
	const struct item *item = d->media;
	struct json_writer w = json_writer(parts);
	struct buf url = { 0 };
	struct str bytes = item->bytes;
	int rc = item->file ? file_map(item->file, &bytes, e) : 0;

	(void)self;
	if (rc == 0)
		rc = make_url(item, bytes, &url, e);
	if (rc == 0) {
		json_begin_array(&w);
		media_put_url(&w, item->kind, buf_str(&url));
		json_end_array(&w);
	}
	if (item->file && bytes.p)
		file_unmap(bytes);
	buf_release(&url);
	return rc < 0 ? err_wrap(e, "%s", item->where) : 0;
}

/* ---- VisionArena ---- */

/* Both kinds of arena: a list of turns, each a list of messages. */
int hf_draft_vision_arena(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct json_slice turns, turn, message, content, images, image;

	if (!json_member(r->object, "turns", &turns) || turns.kind != JSON_ARRAY)
		if (hf_column(r, "conversation", &turns, e) < 0)
			return -1;
	if (!rows_item(turns, 0, &turn) || !rows_item(turn, 0, &message) ||
	    !json_member(message, "content", &content) || content.kind != JSON_STRING)
		return hf_refuse(r, e, "the conversation must be a list of lists of messages with "
				 "\"content\"");
	d->sample.prompt = hf_string(content, a);
	if (hf_column(r, "images", &images, e) < 0)
		return -1;
	if (!rows_item(images, 0, &image))
		return hf_refuse(r, e, "\"images\" must be a list with an image in it");
	return hf_add_image(r, image, a, d, e) < 0 ? -1 : 1;
}

/* ---- MMVU ---- */

/* The question, then "A.first B.second" of choices in their stored order. */
static int add_question(const struct hf_row *r, struct buf *text, struct err *e)
{
	struct json_slice choices, value;
	struct json_iter it;
	struct str key;

	if (hf_add_column(r, "question", text, e) < 0 || hf_column(r, "choices", &choices, e) < 0)
		return -1;
	if (choices.kind != JSON_OBJECT)
		return hf_refuse(r, e, "\"choices\" must be an object");
	buf_add_char(text, ' ');
	it = json_iter(choices);
	for (bool is_first = true; json_each(&it, &key, &value) == 1; is_first = false) {
		if (!is_first)
			buf_add_char(text, ' ');
		json_unescape(text, key);
		buf_add_char(text, '.');
		hf_format(text, value);
	}
	return 0;
}

/*
 * Videos are named by their place on the hub. What is sent is the copy on this machine, as a
 * file that the server must be able to read, or its bytes; where there is no copy, the place.
 */
static int add_video(const struct hf_row *r, struct str url, struct arena *a, struct draft *d,
		     struct err *e)
{
	const struct str hub = STR("https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main");
	struct item *item = add_item(r, "video_url", a, d);
	struct hf *h = r->hf;
	struct str file;
	char *whole;

	item->ref = url;
	if (!str_starts(url, hub) || url.n == hub.n)
		return 0;
	if (hf_file(r, (struct str){ url.p + hub.n + 1, url.n - hub.n - 1 }, a, &file, e) < 0)
		return -1;
	if (!file.p) {
		if (h->left_out++ == 0)
			dataset_note(h->w, "%s: the video is not there; the server is given its address on the "
				"hub", item->where);
		return 0;
	}
	whole = realpath(file.p, NULL);
	item->ref = str_of(*file.p == '/' || !whole ? file.p : arena_text(a, str_of(whole)));
	free(whole);
	if (h->opts->custom_ensure_client_side_data)
		item->file = item->ref.p;
	return 0;
}

int hf_draft_mmvu(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct str url;

	if (add_question(r, &r->hf->text, e) < 0)
		return -1;
	d->sample.prompt = hf_built(r, a);
	return hf_text(r, "video", a, &url, e) < 0 || add_video(r, url, a, d, e) < 0 ? -1 : 1;
}

/* ---- MMStar ---- */

/* The question without its choices. */
int hf_draft_mmstar(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	const struct chat_wrap strip = { .is_stripping = true };
	const struct str mark = STR("Options:");
	struct json_slice image;
	struct str question;
	const char *at;

	if (hf_text(r, "question", a, &question, e) < 0 || hf_column(r, "image", &image, e) < 0)
		return -1;
	at = memmem(question.p, question.n, mark.p, mark.n);
	if (at)
		question.n = (size_t)(at - question.p);
	chat_apply(&strip, question, &r->hf->text);
	d->sample.prompt = hf_built(r, a);
	return hf_add_image(r, image, a, d, e) < 0 ? -1 : 1;
}
