/* SPDX-License-Identifier: Apache-2.0 */
/* hf_media.c - hub datasets of pictures, videos and speech; see hf.h. */
#include "input/sets/hf.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/chat/chat.h"
#include "input/data/media.h"

/* ---- pictures and videos ---- */

struct hf_item {
	const char *kind;  /* of the content part: "image_url", "video_url" */
	struct str bytes;  /* the file's; p NULL: not here */
	const char *file;  /* that is read for them; NULL: none */
	struct str ref;    /* a path or URL; used when there are no bytes */
	const char *where; /* the row, for errors */
};

static struct hf_item *add_item(const struct hf_row *r, const char *kind, struct arena *a,
				struct draft *d)
{
	struct hf_item *item = arena_alloc(a, sizeof(*item));

	item->kind = kind;
	item->where = hf_where(r, a);
	d->media = item;
	return item;
}

/* {"bytes": ..., "path": ...}, as the hub's library stores pictures */
static int add_stored(const struct hf_row *r, struct json_slice v, struct arena *a,
		      struct hf_item *item, struct err *e)
{
	struct json_slice member;
	struct str file;
	int rc = json_member(v, "bytes", &member) ? hf_bytes(r, member, a, &item->bytes, e) : 0;

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (!json_member(v, "path", &member) || member.kind != JSON_STRING)
		return hf_refuse(r, e, "an image has neither \"bytes\" nor a \"path\"");
	if (hf_file(r, rows_string(member, a), a, &file, e) < 0)
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
	struct hf_item *item;
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
	item->ref = rows_string(v, a);
	return 0;
}

static int make_url(const struct hf_item *item, struct str bytes, struct buf *url, struct err *e)
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
	const struct hf_item *item = d->media;
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
	d->sample.prompt = rows_string(content, a);
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
 * Videos are named by their place on the hub. The local copy is sent, as a file that the server
 * must be able to read, or as its bytes; without a copy, the place.
 */
static int add_video(const struct hf_row *r, struct str url, struct arena *a, struct draft *d,
		     struct err *e)
{
	const struct str hub = STR("https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main");
	struct hf_item *item = add_item(r, "video_url", a, d);
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
			dataset_note(h->w, "%s: the video file is missing; the server gets its "
				"address on the hub instead", item->where);
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
	at = str_find(question, mark);
	if (at)
		question.n = (size_t)(at - question.p);
	chat_apply(&strip, question, &r->hf->text);
	d->sample.prompt = hf_built(r, a);
	return hf_add_image(r, image, a, d, e) < 0 ? -1 : 1;
}

/* ---- speech ---- */

/*
 * Hub datasets of speech: spec 4.6, 5.19.
 *
 * A recording stored in the data is uploaded as a WAV file, one in a file of its own as it is. With
 * --enable-multimodal-chat, which upstream does not support here, either is a content part.
 */

#define EARNINGS "ArtificialAnalysis/Earnings22-Cleaned-AA"

struct recording {
	struct str bytes;     /* of an audio file; p NULL: there are samples */
	struct audio samples; /* in the lot's arena */
	const char *file;     /* its name, when the bytes are sent as they are; NULL: as WAV */
	const char *where;    /* the row, for errors */
};

int hf_open_asr(struct hf *h, struct err *e)
{
	/* Upstream never streams this one, as its rows refer to other files. */
	h->is_whole = h->id && strcmp(h->id, EARNINGS) == 0;
	return hf_open_split(h, e);
}

/* ---- from a row ---- */

/* The control tokens that models of two families begin with. */
static struct str prompt_for(const char *tokenizer)
{
	static const char cohere[] = "cohere";

	if (tokenizer && strstr(tokenizer, "openai"))
		return STR("<|startoftranscript|><|en|><|transcribe|><|notimestamps|>");
	if (tokenizer && strcasestr(tokenizer, cohere))
		return STR("<|startofcontext|><|startoftranscript|><|emo:undefined|><|en|><|en|><|pnc|>"
			   "<|noitn|><|notimestamp|><|nodiarize|>");
	return STR("");
}

static int read_file(const struct hf_row *r, struct json_slice name, struct arena *a,
		     struct recording *out, struct err *e)
{
	struct buf bytes = { 0 };
	struct str file;
	const char *slash;
	int rc;

	if (hf_file(r, rows_string(name, a), a, &file, e) < 0)
		return -1;
	if (!file.p)
		return hf_refuse(r, e, "there is no audio file \"%.*s\"", (int)name.raw.n, name.raw.p);
	rc = file_read(file.p, TABLE_ROW_BYTES_MAX, &bytes, e);
	if (rc == 0) {
		slash = strrchr(file.p, '/');
		out->bytes = arena_str(a, buf_str(&bytes));
		out->file = slash ? slash + 1 : file.p;
	}
	buf_release(&bytes);
	return rc < 0 ? err_wrap(e, "%s", out->where) : 0;
}

/* {"array": [samples], "sampling_rate": 16000} */
static int read_samples(const struct hf_row *r, struct json_slice array, struct json_slice rate,
			struct arena *a, struct recording *out, struct err *e)
{
	struct json_iter it = json_iter(array);
	struct json_slice v;
	int64_t hertz;
	size_t n = 0;

	if (!json_to_i64(rate, &hertz) || hertz <= 0 || hertz > UINT32_MAX)
		return hf_refuse(r, e, "\"sampling_rate\" must be a number of samples a second");
	while (json_each(&it, NULL, &v) == 1)
		n++;
	if (n == 0)
		return hf_refuse(r, e, "\"array\" has no samples");
	out->samples = (struct audio){
		.sample = arena_alloc(a, n * sizeof(float)), .frames = n, .channels = 1,
		.rate = (uint32_t)hertz,
	};
	it = json_iter(array);
	for (size_t i = 0; i < n; i++) {
		double sample;

		if (json_each(&it, NULL, &v) != 1 || !json_to_f64(v, &sample))
			return hf_refuse(r, e, "\"array\" must be a list of numbers");
		out->samples.sample[i] = (float)sample;
	}
	return 0;
}

/* Any of the forms in which audio is stored. */
static int read_audio(const struct hf_row *r, struct json_slice v, struct arena *a,
		      struct recording *out, struct err *e)
{
	struct json_slice member, rate;
	int rc;

	if (v.kind == JSON_STRING) {
		rc = hf_bytes(r, v, a, &out->bytes, e);
		return rc == 0 ? read_file(r, v, a, out, e) : rc < 0 ? -1 : 0;
	}
	if (json_member(v, "array", &member) && member.kind == JSON_ARRAY &&
	    json_member(v, "sampling_rate", &rate))
		return read_samples(r, member, rate, a, out, e);
	rc = json_member(v, "bytes", &member) ? hf_bytes(r, member, a, &out->bytes, e) : 0;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (json_member(v, "path", &member) && member.kind == JSON_STRING)
		return read_file(r, member, a, out, e);
	return hf_refuse(r, e, "audio must be a path, {bytes}, {path} or {array, sampling_rate}");
}

static int find_audio(const struct hf_row *r, struct arena *a, struct recording *out,
		      struct err *e)
{
	struct json_slice v;

	if (!json_member(r->object, "audio", &v) && json_member(r->object, "url", &v)) {
		if (v.kind != JSON_STRING)
			return hf_refuse(r, e, "\"url\" must be the path of an audio file");
		return read_file(r, v, a, out, e);
	}
	return hf_column(r, "audio", &v, e) < 0 ? -1 : read_audio(r, v, a, out, e);
}

int hf_draft_asr(const struct hf_row *r, struct arena *a, struct draft *d, struct err *e)
{
	struct hf *h = r->hf;
	const struct dataset_opts *o = h->opts;
	double max = o->asr_max_audio_len_sec == 0 ? INFINITY : o->asr_max_audio_len_sec, seconds;
	struct recording *rec = arena_alloc(a, sizeof(*rec));

	rec->where = hf_where(r, a);
	if (find_audio(r, a, rec, e) < 0)
		return -1;
	if (!rec->bytes.p)
		seconds = (double)rec->samples.frames / rec->samples.rate;
	else if (audio_duration(rec->bytes, &seconds, e) < 0)
		return err_wrap(e, "%s", rec->where);
	if (seconds < o->asr_min_audio_len_sec || seconds > max) {
		h->left_out++;
		return 0;
	}
	d->sample.prompt = prompt_for(h->env->tokenizer_name);
	d->sample.audio_s = (float)seconds;
	d->media = rec;
	d->is_media_file = !o->enable_multimodal_chat;
	if (d->is_media_file)
		d->sample.file_name = rec->file ? rec->file : "audio.wav";
	return 1;
}

/* ---- for accepted rows ---- */

int hf_make_audio(void *self, const struct draft *d, struct buf *parts, struct err *e)
{
	const struct recording *rec = d->media;
	struct json_writer w = json_writer(parts);
	struct audio decoded = { 0 };
	const struct audio *audio = rec->bytes.p ? &decoded : &rec->samples;
	int rc = 0;

	(void)self;
	if (d->is_media_file && rec->file) {
		buf_add_str(parts, rec->bytes);
		return 0;
	}
	if (rec->bytes.p)
		rc = audio_decode(rec->bytes, &decoded, e);
	if (rc == 0 && d->is_media_file)
		rc = audio_wav(audio, parts, e);
	else if (rc == 0) {
		json_begin_array(&w);
		rc = media_put_audio(&w, audio, e);
		if (rc == 0)
			json_end_array(&w);
	}
	audio_release(&decoded);
	return rc < 0 ? err_wrap(e, "%s", rec->where) : 0;
}

/* ---- results ---- */

static int by_length(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

void hf_finish_asr(struct hf *h)
{
	size_t n = h->w->n - h->first;
	float *seconds = mem_array(n, sizeof(*seconds));
	double sum = 0;

	if (h->left_out)
		dataset_note(h->w, "%zu recordings were skipped: not between %g and %g "
				   "seconds", h->left_out,
			h->opts->asr_min_audio_len_sec,
			h->opts->asr_max_audio_len_sec == 0 ? INFINITY :
							      h->opts->asr_max_audio_len_sec);
	for (size_t i = 0; i < n; i++) {
		seconds[i] = h->w->v[h->first + i].audio_s;
		sum += (double)seconds[i];
	}
	qsort(seconds, n, sizeof(*seconds), by_length);
	if (n)
		dataset_note(h->w, "recordings of %.2f to %.2f seconds, %.2f on average, median %.2f",
			(double)seconds[0], (double)seconds[n - 1], sum / (double)n,
			((double)seconds[(n - 1) / 2] + (double)seconds[n / 2]) / 2);
	free(seconds);
}
