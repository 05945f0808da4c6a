/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_asr.c - hub datasets of speech: spec 4.6, 5.19; see hf.h.
 *
 * A recording that is stored in the data is uploaded as a WAV file, one that is a file of its
 * own as it is. With --enable-multimodal-chat, which upstream does not know here, either is a
 * content part.
 */
#include <math.h>
#include <strings.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "data/hf.h"
#include "data/media.h"

#define EARNINGS "ArtificialAnalysis/Earnings22-Cleaned-AA"

struct recording {
	struct str bytes;     /* of an audio file; p NULL: there are samples */
	struct audio samples; /* in the lot's arena */
	const char *file;     /* its name, when the bytes are sent as they are; NULL: as WAV */
	const char *where;    /* the row, for errors */
};

int hf_open_asr(struct hf *h, struct err *e)
{
	/* Upstream never streams this one: its rows point to files beside. */
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

	if (hf_file(r, hf_string(name, a), a, &file, e) < 0)
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
	struct str key;
	int64_t hertz;
	size_t n = 0;

	if (!json_to_i64(rate, &hertz) || hertz <= 0 || hertz > UINT32_MAX)
		return hf_refuse(r, e, "\"sampling_rate\" must be a number of samples a second");
	while (json_each(&it, &key, &v) == 1)
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

		if (json_each(&it, &key, &v) != 1 || !json_to_f64(v, &sample))
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

/* ---- what came of it ---- */

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
		dataset_note(h->w, "%zu recordings were left out: not between %g and %g seconds", h->left_out,
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
	if (n && h->env->is_chat_backend && !h->opts->enable_multimodal_chat)
		dataset_note(h->w, "--backend %s uploads no files, so the recordings are not sent; "
			     "--enable-multimodal-chat puts them into the messages", h->env->backend);
	free(seconds);
}
