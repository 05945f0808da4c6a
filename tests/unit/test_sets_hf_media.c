/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of hub datasets with pictures, videos and speech. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/codec.h"
#include "hf_sample.h"
#include "input/media/audio.h"
#include "input/media/image.h"

/* ---- pictures and videos ---- */

/* A PNG of w x h pixels, in base64. */
static void make_png(struct buf *out, uint32_t width, uint32_t height)
{
	struct image m = { width, height, mem_alloc((size_t)width * height * 3) };
	struct buf png = { 0 };
	struct err e;

	assert_int_equal(image_png(&m, &png, &e), 0);
	base64_encode(buf_str(&png), out);
	buf_release(&png);
	image_release(&m);
}

/* The one image of a request, decoded from its data URL. */
static void open_image(struct str media, struct image *m)
{
	const struct str before = STR("[{\"type\": \"image_url\", \"image_url\": "
				      "{\"url\": \"data:image/jpeg;base64,");
	struct buf jpeg = { 0 };
	struct err e;

	assert_true(str_starts(media, before));
	media = (struct str){ media.p + before.n, media.n - before.n - strlen("\"}}]") };
	assert_true(base64_decode(media, &jpeg));
	assert_int_equal(image_decode(buf_str(&jpeg), false, m, &e), 0);
	buf_release(&jpeg);
}

static void arenas_send_the_first_image(void **state)
{
	struct buf rows = { 0 }, png = { 0 };
	struct image m;
	struct fixture f;

	(void)state;
	make_png(&png, 5, 3);
	for (int i = 0; i < 40; i++)
		buf_printf(&rows, "{\"images\": [{\"bytes\": \"data:;base64,%s\", \"path\": null}, 3], "
			   "\"%s\": [[{\"role\": \"user\", \"content\": \"Q%d\"}]]}\n", png.data,
			   i % 2 ? "turns" : "conversation", i);
	start(&f, "lmarena-ai/VisionArena-Chat", rows.data);
	f.opts.hf_subset = "x";
	expect(&f, 40);
	expect_note(&f, "--hf-subset has no effect on VisionArena");
	is_text(f.w.v[1].prompt, "Q1");
	is_text(f.w.v[39].prompt, "Q39");
	assert_int_equal(f.w.v[0].prompt_len, tokens("Q0"));
	assert_int_equal(f.w.v[0].output_len, 128);
	for (size_t i = 0; i < 40; i += 39) {
		open_image(f.w.v[i].media, &m);
		assert_int_equal(m.width, 5);
		assert_int_equal(m.height, 3);
		image_release(&m);
	}
	finish(&f);
	start(&f, "lmarena-ai/vision-arena-bench-v0.1", "{\"images\": [{\"bytes\": "
	      "\"data:;base64,AAAA\"}], \"turns\": [[{\"role\": \"user\", \"content\": \"Q\"}]]}");
	expect_error(&f, "train.jsonl:1: ");
	start(&f, "lmarena-ai/vision-arena-bench-v0.1", "{\"images\": [{\"bytes\": null, \"path\": "
	      "\"gone.png\"}], \"turns\": [[{\"role\": \"user\", \"content\": \"Q\"}]]}");
	expect_error(&f, "no file \"gone.png\"");
	buf_release(&rows);
	buf_release(&png);
}

static void mmstar_drops_the_choices(void **state)
{
	struct buf png = { 0 }, bytes = { 0 };
	struct image m;
	struct fixture f;

	(void)state;
	start(&f, "Lin-Chen/MMStar", "{\"question\": \" \\u3000What is it?\\nOptions: A: a, Options:\", "
	      "\"image\": {\"bytes\": null, \"path\": \"i/a.png\"}}");
	make_png(&png, 4, 2);
	assert_true(base64_decode(buf_str(&png), &bytes));
	write_text(f.path, "i/x", "");
	{
		char *path = file_join(f.path, "i/a.png");

		assert_int_equal(file_write_atomic(path, buf_str(&bytes), &f.e), 0);
		free(path);
	}
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "What is it?");
	open_image(f.w.v[0].media, &m);
	assert_int_equal(m.width, 4);
	image_release(&m);
	finish(&f);
	buf_release(&png);
	buf_release(&bytes);
}

#define COMMIT "0123456789012345678901234567890123456789"
#define HUB_VIDEO "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main/videos/"
#define MMVU(name) "{\"question\": \"Q?\", \"choices\": {\"B\": \"two\", \"A\": null}, " \
	"\"video\": \"" HUB_VIDEO name "\"}\n"

static void mmvu_points_to_files(void **state)
{
	struct fixture f;
	char wanted[400];

	(void)state;
	start(&f, "yale-nlp/MMVU", MMVU("a/1.mp4") MMVU("a/2.mp4") MMVU("a/3.mp4"));
	write_text(f.path, "videos/a/1.mp4", "MP4");
	write_text(f.path, "datasets--yale-nlp--MMVU/refs/main", COMMIT);
	write_text(f.path, "datasets--yale-nlp--MMVU/snapshots/" COMMIT "/videos/a/3.mp4", "MP4");
	assert_int_equal(setenv("HF_HUB_CACHE", f.path, 1), 0);
	assert_int_equal(setenv("HF_HUB_OFFLINE", "1", 1), 0);
	expect(&f, 3);
	is_text(f.w.v[0].prompt, "Q? B.two A.None");
	snprintf(wanted, sizeof(wanted), "[{\"type\": \"video_url\", \"video_url\": "
		 "{\"url\": \"file://%s/videos/a/1.mp4\"}}]", f.path);
	is_text(f.w.v[0].media, wanted);
	snprintf(wanted, sizeof(wanted), "[{\"type\": \"video_url\", \"video_url\": "
		 "{\"url\": \"file://%s/datasets--yale-nlp--MMVU/snapshots/" COMMIT
		 "/videos/a/3.mp4\"}}]", f.path);
	is_text(f.w.v[2].media, wanted);
	is_text(f.w.v[1].media, "[{\"type\": \"video_url\", \"video_url\": "
		"{\"url\": \"" HUB_VIDEO "a/2.mp4\"}}]");
	expect_note(&f, "train.jsonl:2: the video file is missing");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.custom_ensure_client_side_data = true;
	expect(&f, 3);
	is_text(f.w.v[0].media, "[{\"type\": \"video_url\", \"video_url\": "
		"{\"url\": \"data:video/mp4;base64,TVA0\"}}]");
	finish(&f);
	unsetenv("HF_HUB_CACHE");
	unsetenv("HF_HUB_OFFLINE");
}

/* ---- speech ---- */

/* {"array": n samples} at 10 samples a second */
static void add_samples(struct buf *rows, int n)
{
	buf_add_text(rows, "{\"audio\": {\"sampling_rate\": 10, \"array\": [");
	for (int i = 0; i < n; i++)
		buf_add_text(rows, i ? ", 0.5" : "-1.0");
	buf_add_text(rows, "]}}\n");
}

static void speech_within_a_window_is_uploaded(void **state)
{
	struct buf rows = { 0 };
	struct audio a;
	struct fixture f;

	(void)state;
	for (int n = 5; n <= 40; n += 5)
		add_samples(&rows, n);
	start(&f, "openslr/librispeech_asr", rows.data);
	f.env.backend = "openai-audio";
	f.env.is_chat_backend = false;
	f.env.tokenizer_name = "openai/whisper-tiny";
	f.opts.asr_min_audio_len_sec = 1;
	f.opts.asr_max_audio_len_sec = 3.5;
	expect(&f, 6);
	is_text(f.w.v[0].prompt,
		"<|startoftranscript|><|en|><|transcribe|><|notimestamps|>");
	is_text(f.w.v[0].request_id, "r-0");
	assert_int_equal(f.w.v[0].output_len, 1024);
	assert_string_equal(f.w.v[0].file_name, "audio.wav");
	assert_true(f.w.v[5].audio_s == 3.5f);
	assert_int_equal(audio_decode(f.w.v[0].file, &a, &f.e), 0);
	assert_int_equal(a.frames, 10);
	assert_int_equal(a.rate, 10);
	audio_release(&a);
	expect_note(&f, "2 recordings were skipped");
	expect_note(&f, "of 1.00 to 3.50 seconds, 2.25 on average, median 2.25");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.asr_max_audio_len_sec = 0; /* no end */
	f.env.tokenizer_name = "CohereLabs/x";
	expect(&f, 7);
	assert_true(str_starts(f.w.v[0].prompt, STR("<|startofcontext|>")));
	finish(&f);
	buf_release(&rows);
}

static void speech_files_go_as_they_are(void **state)
{
	struct audio a = { .sample = mem_alloc(20 * sizeof(float)), .frames = 20, .channels = 1,
			   .rate = 10 };
	struct buf wav = { 0 };
	struct fixture f;
	char *path;

	(void)state;
	start(&f, "ArtificialAnalysis/Earnings22-Cleaned-AA", "{\"url\": \"audio/x.wav\"}\n");
	write_text(f.path, "audio/x", "");
	path = file_join(f.path, "audio/x.wav");
	assert_int_equal(audio_wav(&a, &wav, &f.e), 0);
	assert_int_equal(file_write_atomic(path, buf_str(&wav), &f.e), 0);
	f.env.backend = "openai-audio";
	f.env.is_chat_backend = false;
	expect(&f, 1);
	is_text(f.w.v[0].prompt, "");
	assert_string_equal(f.w.v[0].file_name, "x.wav");
	assert_true(str_eq(f.w.v[0].file, buf_str(&wav)));
	assert_true(f.w.v[0].audio_s == 2.0f);
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.env.backend = "openai-chat";
	f.env.is_chat_backend = true;
	expect(&f, 1);
	assert_int_equal(f.w.v[0].media.n, 0);
	expect_note(&f, "are not sent");
	workload_release(&f.w);
	f.w = (struct workload){ 0 };
	f.opts.enable_multimodal_chat = true;
	expect(&f, 1);
	assert_true(str_starts(f.w.v[0].media, STR("[{\"type\": \"input_audio\", \"input_audio\": ")));
	assert_int_equal(f.w.v[0].file.n, 0);
	finish(&f);
	start(&f, "LIUM/tedlium", "{\"audio\": {\"path\": \"none.wav\"}}\n");
	expect_error(&f, "train.jsonl:1: there is no audio file \"none.wav\"");
	start(&f, "LIUM/tedlium", "{\"audio\": {\"bytes\": \"data:;base64,AAAA\"}}\n");
	expect_error(&f, "train.jsonl:1: ");
	start(&f, "LIUM/tedlium", "{\"audio\": {\"array\": [1, \"x\"], \"sampling_rate\": 1}}\n");
	expect_error(&f, "list of numbers");
	start(&f, "LIUM/tedlium", "{}\n");
	f.env.backend = "vllm";
	expect_error(&f, "openai-audio");
	free(path);
	audio_release(&a);
	buf_release(&wav);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arenas_send_the_first_image),
		cmocka_unit_test(mmstar_drops_the_choices),
		cmocka_unit_test(mmvu_points_to_files),
		cmocka_unit_test(speech_within_a_window_is_uploaded),
		cmocka_unit_test(speech_files_go_as_they_are),
	};

	return cmocka_run_group_tests(tests, load_tokenizer, free_tokenizer);
}
