/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom.c - the user's own prompts, one JSON object per line; datasets spec 5.5.
 *
 * A prompt is one user message: it is sent and counted with the chat template applied, special
 * tokens included, so a BOS that both the template and the tokenizer add is counted twice, as
 * upstream does.
 */
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/chat/chat.h"
#include "input/data/build.h"
#include "input/data/media.h"
#include "input/data/source.h"

/* The sampler of custom, spec_bench and speed_bench: one text per row, with the chat template. */
struct custom_sampler {
	const struct dataset_opts *o;
	const struct dataset_env *env; /* its seed is the set's */
	const char *const *columns; /* as table_opts.columns */
	bool is_known_only;         /* see rows_opts; then rows have request keys, too */
	const char *field;          /* what a row must have: "prompt" */
	const char *category;       /* only rows of this "category"; NULL: all */
	int64_t output_len;         /* -1: each row's output_tokens */
	const char *output_option;  /* the option it comes from */
	struct opt_int input_max;   /* longer prompts are left out */
	const char *input_option;   /* the option that says so */
	/* Appends the row's text; false: it has none. */
	bool (*text)(struct json_slice row, struct buf *out);
	/* A row that is only a notice is left out, with a note; NULL: the set has none. */
	bool (*is_notice)(struct json_slice row);
	/* its own */
	struct dataset_rows rows;
	struct buf scratch, wrapped;
	size_t notices;
};

/* ---- custom ---- */

/* The row's own output_tokens: a whole number of tokens. */
static int custom_output_tokens(const struct dataset_rows *rows, size_t i, struct json_slice row,
				const char *option, int64_t *out, struct err *e)
{
	struct json_slice v;

	*out = 0;
	if (!json_member(row, "output_tokens", &v) &&
	    (json_member(row, "max_tokens", &v) || json_member(row, "max_completion_tokens", &v)))
		return 0; /* rows_own_keys takes it */
	if (!json_member(row, "output_tokens", &v))
		return rows_refuse(rows, i, e, "no \"output_tokens\" field; --%s TOKENS sets the "
				   "length of all answers", option);
	if (!json_to_i64(v, out) || *out < 0 || *out > LENGTH_TOKENS_MAX)
		return rows_refuse(rows, i, e, "\"output_tokens\" must be a whole number of tokens, at "
				   "most %u", LENGTH_TOKENS_MAX);
	return 0;
}

/* Reports whether this row has no text, or none has. */
static int refuse_text(struct custom_sampler *s, size_t i, struct err *e)
{
	struct json_slice row, v;
	bool has_field = false;

	for (size_t k = 0; k < s->rows.n && !has_field; k++) {
		if (rows_get(&s->rows, k, &row, e) < 0)
			return -1;
		has_field = json_member(row, s->field, &v);
	}
	if (!has_field)
		return err_set(e, ERR_RUN, "%s: no line has a \"%s\" field; every line needs one, a text",
			       s->o->path, s->field);
	if (rows_get(&s->rows, i, &row, e) < 0)
		return -1;
	if (!json_member(row, s->field, &v))
		return rows_refuse(&s->rows, i, e, "no \"%s\" field; every line needs one, a text",
				   s->field);
	return rows_refuse(&s->rows, i, e, "\"%s\" must be text, got %.*s", s->field,
			   v.raw.n < 40 ? (int)v.raw.n : 40, v.raw.p);
}

static int text_draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
{
	struct custom_sampler *s = self;
	struct json_slice row;
	int64_t asked = s->output_len;

	if (rows_get(&s->rows, i, &row, e) < 0)
		return -1;
	buf_reset(&s->scratch);
	if (!s->text(row, &s->scratch))
		return refuse_text(s, i, e);
	if (asked == -1 && custom_output_tokens(&s->rows, i, row, s->output_option, &asked, e) < 0)
		return -1;
	if (dataset_has_chat(s->env)) {
		buf_reset(&s->wrapped);
		chat_apply(s->env->chat, buf_str(&s->scratch), &s->wrapped);
		d->sample.prompt = arena_str(a, buf_str(&s->wrapped));
	} else {
		d->sample.prompt = arena_str(a, buf_str(&s->scratch));
	}
	/* Without a tokenizer upstream asks for one token, whatever the option says. */
	d->sample.output_len = s->env->tokenizer ? asked : 1;
	if (s->is_known_only && rows_own_keys(&s->rows, i, row, a, d, e) < 0)
		return -1;
	return 1;
}

static int is_wanted(void *self, struct json_slice row, struct err *e)
{
	struct custom_sampler *s = self;

	(void)e;
	buf_reset(&s->scratch);
	if (s->category && !(rows_text(row, "category", &s->scratch) &&
			     str_is(buf_str(&s->scratch), s->category)))
		return 0;
	if (!s->is_notice || !s->is_notice(row))
		return 1;
	s->notices++;
	return 0;
}

static int sample(struct custom_sampler *s, struct compat_rng *rng, struct workload *w,
		  struct err *e)
{
	struct take take = {
		.self = s, .rows = s->rows.n, .draft = text_draft,
		.takes_all = true, .is_row_index = true,
		.input_max = s->input_max.is_set ? (size_t)s->input_max.v : 0,
		.input_option = s->input_option,
	};

	if (s->rows.all == 0)
		return err_set(e, ERR_RUN, "%s: the file has no prompts", s->o->path);
	if (s->notices)
		dataset_note(w, "%zu of %zu rows hold a notice instead of a prompt and are skipped",
			     s->notices, s->rows.all);
	if (s->rows.n == 0 && s->notices)
		return err_set(e, ERR_RUN, "%s: every row is a notice that the data must be fetched; "
			       "run the dataset's own preparation script", s->o->path);
	if (s->rows.n == 0)
		return err_set(e, ERR_RUN, "%s: no row has the category '%s'", s->o->path, s->category);
	return dataset_take(&take, s->o, s->env, rng, w, e);
}

/* All rows of n files. */
static int custom_sample(struct custom_sampler *s, const char *const *path, size_t n,
			 struct compat_rng *rng, struct workload *w, struct err *e)
{
	const struct rows_opts opts = {
		.o = s->o, .env = s->env, .seed = s->env->seed, .columns = s->columns,
		.is_known_only = s->is_known_only, .output_len = s->output_len,
		.keep = s->category || s->is_notice ? is_wanted : NULL, .self = s,
	};
	int rc = rows_open(&s->rows, path, n, &opts, rng, e);

	if (rc == 0)
		rc = sample(s, rng, w, e);
	if (rc == 0)
		rows_note_unused(&s->rows, s->o, w);
	rows_release(&s->rows);
	buf_release(&s->scratch);
	buf_release(&s->wrapped);
	return rc;
}

/* A path must end in .jsonl, as upstream. what: the set; holds: what its rows do. */
static int custom_check_path(const char *path, const char *what, const char *holds, struct err *e)
{
	if (str_ends(str_of(path), STR(".jsonl")) || file_is_stream(path))
		return 0;
	return err_set(e, ERR_USAGE, "--dataset-path %s: %s datasets are .jsonl files, one JSON object "
		       "with %s per line", path, what, holds);
}

static bool prompt_text(struct json_slice row, struct buf *out)
{
	return rows_text(row, "prompt", out);
}

static int text_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	return custom_check_path(o->path, "custom", "\"prompt\"", e);
}

static int text_build(const struct dataset_opts *o, const struct dataset_env *env,
		      struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "prompt", "output_tokens", NULL };
	struct custom_sampler s = {
		.o = o, .env = env, .columns = columns, .is_known_only = true,
		.field = "prompt", .text = prompt_text,
		.output_len = o->custom_output_len, .output_option = "custom-output-len",
	};

	return custom_sample(&s, &o->path, 1, rng, w, e);
}

static const char *const text_options[] = {
	"custom-output-len", "disable-shuffle", "no-oversample", "skip-chat-template",
	"chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_custom = {
	.name = "custom", .summary = "your own prompts from a .jsonl file", .options = text_options,
	.needs_path = true, .is_templated = true, .takes_all = true,
	.check = text_check, .build = text_build,
};

/* ---- custom_image, custom_mm ---- */

/*
 * The user's own prompts with images, one JSON object per line; datasets
 * spec 5.6.
 *
 * A line has either "content", a list of text and image parts that is the whole prompt, or
 * "prompt" and "image_files". Prompts are sent as they are, never through a template.
 */

struct image_rows {
	struct dataset_rows rows;
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct buf text;
};

/* Input of make_media: a row's list and which of the two forms it has. */
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

/* Every line is checked before any is sent. */
static int check_row(void *self, struct json_slice row, struct err *e)
{
	struct json_slice list, prompt, item;
	bool is_content = json_member(row, "content", &list);
	struct json_iter it;
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
	while (json_each(&it, NULL, &item) == 1) {
		if (is_content && check_part(item, e) < 0)
			return -1;
		if (!is_content && item.kind != JSON_STRING)
			return refuse(e, "\"image_files\" must hold paths or URLs");
		n++;
	}
	return n ? 1 : refuse(e, is_content ? "\"content\" is empty" : "\"image_files\" is empty");
}

/* All texts of a content list, joined: the text that is counted. */
static void join_texts(struct json_slice content, struct buf *out)
{
	struct json_iter it = json_iter(content);
	struct json_slice part, type;

	while (json_each(&it, NULL, &part) == 1)
		if (json_member(part, "type", &type) && str_is(type.raw, "text"))
			rows_text(part, "text", out);
}

static int image_draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
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

/* {"type": "image_url", "image_url": {"url": ..., and the other members of the row's object}} */
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

static int image_make_media(void *self, const struct draft *d, struct buf *parts, struct err *e)
{
	const struct image_rows *s = self;
	const struct images *images = d->media;
	struct json_writer w = json_writer(parts);
	struct json_iter it = json_iter(images->list);
	struct json_slice item;
	int rc = 0;

	json_begin_array(&w);
	while (rc == 0 && json_each(&it, NULL, &item) == 1)
		rc = images->is_content ? put_part(s, item, &w, e) :
		     put_image(s, item, (struct json_slice){ .kind = JSON_NULL }, &w, e);
	json_end_array(&w);
	return rc < 0 ? err_wrap(e, "%s", s->o->path) : 0;
}

static int image_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	return custom_check_path(o->path, "custom_image", "\"prompt\" and \"image_files\" or "
				 "\"content\"", e);
}

static int image_build(const struct dataset_opts *o, const struct dataset_env *env,
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
		.self = &s, .draft = image_draft, .make_media = image_make_media,
		.has_chat_form = true, .takes_all = true, .is_row_index = true,
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

static const char *const image_options[] = {
	"custom-output-len", "custom-ensure-client-side-data", "disable-shuffle", "no-oversample",
	"enable-multimodal-chat", NULL,
};

const struct dataset dataset_custom_image = {
	.name = "custom_image", .summary = "your own prompts with images from a .jsonl file",
	.options = image_options, .needs_path = true, .takes_all = true,
	.check = image_check, .build = image_build,
};

/* The older name. */
const struct dataset dataset_custom_mm = {
	.name = "custom_mm", .summary = "older name of custom_image",
	.options = image_options, .needs_path = true, .takes_all = true,
	.check = image_check, .build = image_build,
};

/* ---- custom_audio ---- */

/*
 * The user's own recordings with prompts, one JSON object per line; datasets spec 5.7.
 *
 * With --enable-multimodal-chat the sound is a content part after the text, else a WAV file to
 * upload. "audio" is a path, {"array": [...], "sampling_rate": n} or [[...], n].
 */

#define OUTPUT_TOKENS 256 /* without a tokenizer and without any other number */

struct audio_rows {
	struct dataset_rows rows;
	const struct dataset_opts *o;
	const struct dataset_env *env;
	bool is_templated, is_silent;
	struct buf text, wrapped;
};

/* One recording: a file, or samples in JSON; in the lot's arena. */
struct sound {
	const char *path;           /* NULL: samples */
	struct json_slice samples;
	uint64_t n;
	uint32_t rate;
};

/* False: one of them is not a number. */
static bool count_samples(struct sound *sound)
{
	struct json_iter it = json_iter(sound->samples);
	struct json_slice item;
	double v;

	for (sound->n = 0; json_each(&it, NULL, &item) == 1; sound->n++)
		if (!json_to_f64(item, &v))
			return false;
	return true;
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
		if (file_seconds(sound->path, &seconds, &why) < 0) {
			rows_refuse(&s->rows, i, e, "%s", why.text);
			e->code = why.code; /* the row may be right, and its file not there */
			return -1;
		}
	} else {
		if (!find_samples(v, sound))
			return rows_refuse(&s->rows, i, e, "\"audio\" must be a path, {\"array\": [...], "
					   "\"sampling_rate\": n} or [[...], n]");
		if (!count_samples(sound))
			return rows_refuse(&s->rows, i, e, "\"audio\" has a sample that is not a number "
					   "(one channel is read)");
		if (sound->n > AUDIO_SAMPLES_MAX)
			return rows_refuse(&s->rows, i, e, "\"audio\" has more than %u samples",
					   AUDIO_SAMPLES_MAX);
		seconds = (double)sound->n / sound->rate;
		sound->samples.raw = arena_str(a, sound->samples.raw);
	}
	d->sample.audio_s = (float)seconds;
	d->media = sound;
	d->is_media_file = !s->o->enable_multimodal_chat;
	if (d->is_media_file)
		d->sample.file_name = "audio.wav";
	return 0;
}

/* The option's value, or each row's own; upstream's default if there is no tokenizer. */
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

static int audio_draft(void *self, size_t i, struct arena *a, struct draft *d, struct err *e)
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

static void read_samples(const struct sound *sound, struct audio *out)
{
	struct json_iter it = json_iter(sound->samples);
	struct json_slice item;
	double v = 0;

	*out = (struct audio){ .channels = 1, .rate = sound->rate };
	out->sample = mem_array(sound->n, sizeof(*out->sample));
	while (json_each(&it, NULL, &item) == 1 && json_to_f64(item, &v))
		out->sample[out->frames++] = (float)v;
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

static int audio_make_media(void *self, const struct draft *d, struct buf *out, struct err *e)
{
	const struct audio_rows *s = self;
	const struct sound *sound = d->media;
	struct json_writer w = json_writer(out);
	struct audio audio = { 0 };
	int rc = 0;

	if (sound->path)
		rc = read_file(sound->path, &audio, e);
	else
		read_samples(sound, &audio);
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

static int audio_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	const char *backend = env->backend ? env->backend : "";

	if (strcmp(backend, "openai-chat") == 0 && !o->enable_multimodal_chat)
		return err_set(e, ERR_USAGE, "custom_audio with --backend openai-chat needs "
			       "--enable-multimodal-chat: sound goes into the message there");
	if (strcmp(backend, "openai-audio") == 0 && o->enable_multimodal_chat)
		return err_set(e, ERR_USAGE, "custom_audio with --backend openai-audio uploads files: "
			       "--enable-multimodal-chat does not fit it");
	return custom_check_path(o->path, "custom_audio", "\"prompt\" and \"audio\"", e);
}

static int audio_build(const struct dataset_opts *o, const struct dataset_env *env,
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
		.self = &s, .draft = audio_draft, .make_media = audio_make_media,
		.takes_all = true, .is_row_index = true,
	};
	int rc = rows_open(&s.rows, &o->path, 1, &opts, rng, e);

	if (rc == 0)
		rc = rows_take(&s.rows, &take, &opts, rng, w, e);
	if (rc == 0 && s.is_silent)
		dataset_note(w, "without a tokenizer only the texts of custom_audio are sent, as in vLLM");
	if (rc == 0)
		dataset_note_media(w, env);
	if (rc == 0)
		rows_note_unused(&s.rows, o, w);
	rows_release(&s.rows);
	buf_release(&s.text);
	buf_release(&s.wrapped);
	return rc;
}

static const char *const audio_options[] = {
	"custom-output-len", "disable-shuffle", "no-oversample", "enable-multimodal-chat",
	"skip-chat-template", "chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_custom_audio = {
	.name = "custom_audio", .summary = "your own recordings with prompts from a .jsonl file",
	.options = audio_options, .needs_path = true, .takes_all = true,
	.is_templated = true, .is_chat_plain = true, .check = audio_check, .build = audio_build,
};

/* ---- spec_bench ---- */

/*
 * The first turns of Spec-Bench's question.jsonl; datasets spec 5.8.
 *
 * The order is always that of seed 0, whatever --seed is, as upstream.
 */

static bool turn_text(struct json_slice row, struct buf *out)
{
	struct json_slice turns, first;

	if (!json_member(row, "turns", &turns) || !rows_item(turns, 0, &first) ||
	    first.kind != JSON_STRING)
		return false;
	json_unescape(out, first.raw);
	return true;
}

static int spec_build(const struct dataset_opts *o, const struct dataset_env *env,
		      struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "turns", "category", "output_tokens", NULL };
	struct dataset_env seeded = *env;
	struct custom_sampler s = {
		.o = o, .env = &seeded, .columns = columns, .field = "turns", .text = turn_text,
		.category = o->spec_bench_category,
		.output_len = o->spec_bench_output_len, .output_option = "spec-bench-output-len",
	};

	seeded.seed = dataset_fixed_seed(w, o, env);
	return custom_sample(&s, &o->path, 1, rng, w, e);
}

static const char *const spec_options[] = {
	"spec-bench-output-len", "spec-bench-category", "disable-shuffle", "no-oversample",
	"chat-template-kwargs", "chat-prefix", "chat-suffix", NULL,
};

const struct dataset dataset_spec_bench = {
	.name = "spec_bench", .summary = "first turns of Spec-Bench (question.jsonl)",
	.options = spec_options, .needs_path = true, .needs_tokenizer = true,
	.is_templated = true, .is_always_templated = true, .takes_all = true, .build = spec_build,
};

/* ---- speed_bench ---- */

/*
 * First messages of one subset of SPEED-Bench; datasets spec 5.9.
 *
 * The path is the folder with SUBSET.jsonl that the set's own preparation script writes. Without
 * that file it is read in the hub's form: Parquet files with "turns", many of which hold only a
 * notice that the text must be downloaded. The order is always that of seed 0, as upstream.
 */

/* messages[0].content, or turns[0]. */
static bool first_text(struct json_slice row, struct buf *out)
{
	struct json_slice list, first;

	if (json_member(row, "messages", &list))
		return rows_item(list, 0, &first) && rows_text(first, "content", out);
	if (!json_member(row, "turns", &list) || !rows_item(list, 0, &first) ||
	    first.kind != JSON_STRING)
		return false;
	json_unescape(out, first.raw);
	return true;
}

/*
 * True for a notice in capitals that the full data must be downloaded; only raw files have such
 * rows.
 */
static bool is_notice(struct json_slice row)
{
	struct json_slice list;
	struct buf text = { 0 };
	bool is_capital = true;

	if (json_member(row, "messages", &list) || !first_text(row, &text)) {
		buf_release(&text);
		return false;
	}
	for (size_t i = 0; i < text.len && is_capital; i++)
		is_capital = text.data[i] < 'a' || text.data[i] > 'z';
	is_capital = is_capital && str_find(buf_str(&text), STR("FETCHED")) &&
		     str_find(buf_str(&text), STR("DATA"));
	buf_release(&text);
	return is_capital;
}

static int sample_files(struct custom_sampler *s, const struct source_opts *opts,
			struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct source source = { 0 };
	const char **path;
	int rc = source_open(opts, &source, e);

	if (rc < 0)
		return err_wrap(e, "--dataset-path %s has no %s.jsonl and is not SPEED-Bench "
				   "itself",
				opts->path, opts->subset);
	path = mem_array(source.count, sizeof(*path));
	for (size_t i = 0; i < source.count && rc == 0; i++) {
		struct buf one = { 0 };

		rc = source_path(opts, &source, i, &one, e);
		path[i] = arena_text(&source.arena, buf_str(&one));
		buf_release(&one);
	}
	if (rc == 0)
		rc = custom_sample(s, path, source.count, rng, w, e);
	free(path);
	source_release(&source);
	return rc;
}

static int speed_build(const struct dataset_opts *o, const struct dataset_env *env,
		       struct compat_rng *rng, struct workload *w, struct err *e)
{
	static const char *const columns[] = { "messages", "turns", "category", "output_tokens", NULL };
	struct dataset_env seeded = *env;
	struct custom_sampler s = {
		.o = o, .env = &seeded, .columns = columns, .field = "messages", .text = first_text,
		.category = o->speed_bench_category, .is_notice = is_notice,
		.output_len = o->speed_bench_output_len, .output_option = "speed-bench-output-len",
		.input_max = o->speed_bench_max_input_len, .input_option = "speed-bench-max-input-len",
	};
	const struct source_opts opts = {
		.path = o->path, .subset = o->speed_bench_dataset_subset, .cancel = env->cancel,
		.revision = o->hf_revision,
		.progress = env->download, .note = env->note, .self = env->self,
	};
	struct buf name = { 0 };
	char *path;
	int rc;

	seeded.seed = dataset_fixed_seed(w, o, env);
	buf_printf(&name, "%s.jsonl", o->speed_bench_dataset_subset);
	path = file_join(o->path, name.data);
	rc = file_exists(path) ? custom_sample(&s, &(const char *){ path }, 1, rng, w, e) :
				 sample_files(&s, &opts, rng, w, e);
	free(path);
	buf_release(&name);
	return rc;
}

static const char *const speed_options[] = {
	"speed-bench-dataset-subset", "speed-bench-output-len", "speed-bench-category",
	"speed-bench-max-input-len",
	"disable-shuffle", "no-oversample", "skip-chat-template", "chat-template-kwargs",
	"chat-prefix", "chat-suffix", "hf-revision", NULL,
};

const struct dataset dataset_speed_bench = {
	.name = "speed_bench", .summary = "first messages of a SPEED-Bench subset (a folder)",
	.options = speed_options, .needs_path = true, .needs_tokenizer = true, .is_templated = true,
	.takes_all = true, .build = speed_build,
};
