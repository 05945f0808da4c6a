/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom_audio.c - the user's own recordings with prompts, one JSON object per line; datasets
 * spec 5.7.
 *
 * With --enable-multimodal-chat the sound is a content part behind the text, else a WAV
 * file to upload. "audio" is a path, {"array": [...], "sampling_rate": n} or [[...], n].
 */
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "data/custom.h"
#include "data/media.h"
#include "token/chat.h"

#define OUTPUT_TOKENS 256 /* without a tokenizer and without any other number */

struct audio_rows {
	struct rows rows;
	const struct dataset_opts *o;
	const struct dataset_env *env;
	bool is_templated, is_silent;
	struct buf text, wrapped;
};

/* One recording: a file, or samples in JSON; in the lot's arena. */
struct sound {
	const char *path;           /* NULL: samples */
	struct json_slice samples;
	uint32_t rate;
};

static uint64_t count_items(struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice item;
	struct str key;
	uint64_t n = 0;

	while (json_each(&it, &key, &item) == 1)
		n++;
	return n;
}

/* {"array": ..., "sampling_rate": ...} or [array, rate]. */
static bool find_samples(struct json_slice v, struct sound *out)
{
	struct json_slice rate;
	int64_t hertz;
	bool is_pair = v.kind == JSON_ARRAY;

	if (!(is_pair ? rows_item(v, 0, &out->samples) && rows_item(v, 1, &rate) :
			json_member(v, "array", &out->samples) &&
			json_member(v, "sampling_rate", &rate)))
		return false;
	if (out->samples.kind != JSON_ARRAY || !json_to_i64(rate, &hertz) || hertz < 1 ||
	    hertz > 10000000)
		return false;
	out->rate = (uint32_t)hertz;
	return true;
}

static int file_seconds(const char *path, double *seconds, struct err *e)
{
	struct str bytes;
	int rc;

	if (file_map(path, &bytes, e) < 0)
		return -1;
	rc = audio_duration(bytes, seconds, e);
	file_unmap(bytes);
	return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

static int draft_sound(struct audio_rows *s, size_t i, struct json_slice row, struct arena *a,
		       struct draft *d, struct err *e)
{
	struct sound *sound = arena_alloc(a, sizeof(*sound));
	struct json_slice v;
	struct err why = { 0 };
	double seconds;

	if (!json_member(row, "audio", &v))
		return rows_refuse(&s->rows, i, e, "no \"audio\" field");
	if (v.kind == JSON_STRING) {
		buf_reset(&s->text);
		json_unescape(&s->text, v.raw);
		sound->path = arena_text(a, buf_str(&s->text));
		if (file_seconds(sound->path, &seconds, &why) < 0)
			return rows_refuse(&s->rows, i, e, "%s", why.text);
	} else {
		if (!find_samples(v, sound))
			return rows_refuse(&s->rows, i, e, "\"audio\" must be a path, {\"array\": [...], "
					   "\"sampling_rate\": n} or [[...], n]");
		seconds = (double)count_items(sound->samples) / sound->rate;
		sound->samples.raw = arena_str(a, sound->samples.raw);
	}
	d->sample.audio_s = (float)seconds;
	d->media = sound;
	d->is_media_file = !s->o->enable_multimodal_chat;
	if (d->is_media_file)
		d->sample.file_name = "audio.wav";
	return 0;
}

/* The flag, or each row's own; upstream's default where there is no tokenizer. */
static int output_len(const struct audio_rows *s, size_t i, struct json_slice row, int64_t *out,
		      struct err *e)
{
	*out = s->o->custom_output_len;
	if (*out != -1)
		return 0;
	if (s->env->tokenizer)
		return custom_output_tokens(&s->rows, i, row, "custom-output-len", out, e);
	*out = OUTPUT_TOKENS;
	return 0;
}

static int draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct audio_rows *s = self;
	struct json_slice row;

	if (rows_get(&s->rows, i, &row, e) < 0 ||
	    output_len(s, i, row, &d->sample.output_len, e) < 0)
		return -1;
	buf_reset(&s->text);
	if (!rows_text(row, "prompt", &s->text))
		return rows_refuse(&s->rows, i, e, "\"prompt\" must be text");
	if (s->is_templated) {
		buf_reset(&s->wrapped);
		chat_apply(s->env->chat, buf_str(&s->text), &s->wrapped);
		d->sample.prompt = arena_str(a, buf_str(&s->wrapped));
	} else {
		d->sample.prompt = arena_str(a, buf_str(&s->text));
	}
	if (!s->is_silent && draft_sound(s, i, row, a, d, e) < 0)
		return -1;
	return rows_own_keys(&s->rows, i, row, a, d, e) < 0 ? -1 : 1;
}

static int read_samples(const struct sound *sound, struct audio *out, struct err *e)
{
	struct json_iter it = json_iter(sound->samples);
	struct json_slice item;
	struct str key;
	uint64_t n = count_items(sound->samples);

	if (n > AUDIO_SAMPLES_MAX)
		return err_set(e, ERR_LIMIT, "\"audio\" has more than %u samples", AUDIO_SAMPLES_MAX);
	*out = (struct audio){ .channels = 1, .rate = sound->rate };
	out->sample = mem_array(n, sizeof(*out->sample));
	while (json_each(&it, &key, &item) == 1) {
		double v;

		if (!json_to_f64(item, &v))
			return err_set(e, ERR_PARSE, "\"audio\" has a sample that is no number (one "
				       "channel is read)");
		out->sample[out->frames++] = (float)v;
	}
	return 0;
}

static int read_file(const char *path, struct audio *out, struct err *e)
{
	struct str bytes;
	int rc;

	if (file_map(path, &bytes, e) < 0)
		return -1;
	rc = audio_decode(bytes, out, e);
	file_unmap(bytes);
	return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

static int make_media(void *self, const struct draft *d, struct buf *out, struct err *e)
{
	const struct audio_rows *s = self;
	const struct sound *sound = d->media;
	struct json_writer w = json_writer(out);
	struct audio audio = { 0 };
	int rc = sound->path ? read_file(sound->path, &audio, e) : read_samples(sound, &audio, e);

	if (rc == 0 && s->o->enable_multimodal_chat) {
		json_begin_array(&w);
		rc = media_put_audio(&w, &audio, e);
		json_end_array(&w);
	} else if (rc == 0) {
		rc = audio_wav(&audio, out, e);
	}
	audio_release(&audio);
	return rc < 0 ? err_wrap(e, "%s", s->o->path) : 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	const char *backend = env->backend ? env->backend : "";

	if (strcmp(backend, "openai-chat") == 0 && !o->enable_multimodal_chat)
		return err_set(e, ERR_RUN, "custom_audio with --backend openai-chat needs "
			       "--enable-multimodal-chat: sound goes into the message there");
	if (strcmp(backend, "openai-audio") == 0 && o->enable_multimodal_chat)
		return err_set(e, ERR_RUN, "custom_audio with --backend openai-audio uploads files: "
			       "--enable-multimodal-chat does not fit it");
	return custom_check_path(o->path, "custom_audio", "\"prompt\" and \"audio\"", e);
}

static void add_notes(const struct audio_rows *s, struct workload *w)
{
	const char *backend = s->env->backend;

	if (s->is_silent)
		dataset_note(w, "without a tokenizer only the texts of custom_audio are sent, as upstream");
	else if (backend && !s->env->is_offline &&
		 (strcmp(backend, "vllm") == 0 || strcmp(backend, "openai") == 0))
		dataset_note(w, "the sound of custom_audio is not sent by --backend %s; openai-audio and "
			     "openai-chat send it", backend);
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "prompt", "audio", "output_tokens", NULL };
	struct audio_rows s = {
		.o = o, .env = env,
		.is_templated = dataset_has_chat(env) && !o->enable_multimodal_chat,
		/* Upstream drops the sound then; as a file there would be nothing left to send. */
		.is_silent = !env->tokenizer && o->enable_multimodal_chat,
	};
	const struct rows_opts opts = {
		.o = o, .env = env, .seed = env->seed, .columns = columns,
		.is_known_only = true, .output_len = o->custom_output_len,
	};
	struct take take = {
		.self = &s, .draft = draft, .make_media = make_media,
		.takes_all = true, .is_row_index = true,
	};
	int rc = rows_open(&s.rows, &o->path, 1, &opts, rng, e);

	if (rc == 0)
		rc = rows_take(&s.rows, &take, &opts, rng, w, e);
	if (rc == 0)
		add_notes(&s, w);
	if (rc == 0)
		rows_note_unused(&s.rows, o, w);
	rows_release(&s.rows);
	buf_release(&s.text);
	buf_release(&s.wrapped);
	return rc;
}

static const char *const options[] = {
	"custom-output-len", "disable-shuffle", "no-oversample", "enable-multimodal-chat",
	"skip-chat-template", "chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_custom_audio = {
	.name = "custom_audio", .summary = "your own recordings with prompts from a .jsonl file",
	.options = options, .needs_path = true, .takes_all = true,
	.is_templated = true, .is_chat_plain = true, .check = check, .build = build,
};
