/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random-mm: which items a request gets and their bytes, as NumPy and Pillow make them with
 * the same seed; the text of bucket configurations; limits; the same for any number of threads.
 *
 * threads: yes
 */
#include "data_rig.h"

#include "core/base/codec.h"
#include "core/json/read.h"
#include "input/media/image.h"
#include "input/sets/random.h"

#define IMAGES "{(48, 64, 1): 0.5, (33, 17, 1): 0.25, (16, 16, 1): 0.25, (64, 64, 4): 0}"
#define MIXED "{(48, 64, 1): 0.4, (64, 80, 3): 0.4, (50, 34, 7): 0.2}"
#define LIMITS "{\"image\": 255, \"video\": 1}"

static void begin(struct fixture *f)
{
	fixture_init(f, NULL, NULL);
	f->env.backend = "openai-chat";
	f->opts.random_input_len = 9;
	f->opts.random_mm_base_items_per_request = 1;
	f->opts.random_mm_limit_mm_per_prompt.text = LIMITS;
	f->opts.random_mm_bucket_config = IMAGES;
}

/* "64x48 <12 digits of the SHA-256>" for an image, "video" for a video. */
static void describe(struct json_slice part, struct buf *out)
{
	struct buf file = { 0 };
	struct json_slice url;
	struct image m;
	struct err e = { 0 };
	char hex[DIGEST_HEX];
	struct str data;

	buf_add_text(out, out->len ? ", " : "");
	if (json_path(part, &url, "video_url", "url", NULL)) {
		assert_true(str_starts(url.raw, STR("data:video/mp4;base64,AAAA")));
		buf_add_text(out, "video");
		return;
	}
	assert_true(json_path(part, &url, "image_url", "url", NULL));
	data = url.raw;
	assert_true(str_is(str_cut(&data, ','), "data:image/jpeg;base64"));
	assert_true(base64_decode(data, &file));
	assert_int_equal(image_decode(buf_str(&file), false, &m, &e), 0);
	buf_printf(out, "%ux%u %.12s", m.width, m.height,
		   digest_hex(DIGEST_SHA256, buf_str(&file), hex));
	image_release(&m);
	buf_release(&file);
}

static void assert_items(struct str media, const char *want)
{
	struct json_scan scan = { .text = media };
	struct buf got = { 0 };
	struct json_slice list, part;
	struct json_iter it;
	struct str key;

	assert_int_equal(json_next(&scan, &list, NULL), 0);
	it = json_iter(list);
	while (json_each(&it, &key, &part) == 1)
		describe(part, &got);
	buf_add_char(&got, '\0');
	assert_string_equal(got.data, want);
	buf_release(&got);
}

static const struct golden {
	uint32_t seed;
	const char *buckets, *limits;
	int64_t base;
	double ratio;
	const char *items[6]; /* NULL: no more requests */
} golden[] = {
	{ 0, IMAGES, LIMITS, 1, 0, {
		"64x48 c87b43dc84bc",
		"64x48 6ad3159ec54d",
		"16x16 94b87a93a45a",
		"17x33 18c9390c23e6",
		"17x33 4754c8e41bc7",
		"64x48 e6f15c68a613",
	} },
	{ 42, IMAGES, LIMITS, 3, 1, {
		"17x33 f8c06ae58d81, 17x33 179f178e22e6, 64x48 eadaf4a6f1b0, 16x16 56ad2a46bb8f, "
		"17x33 5ff0414bce5a, 16x16 e8bf235e2e17",
		"16x16 ab45faf502d7, 17x33 3e7ff0169c7f, 64x48 44202b39a968, 16x16 7438e565ddc1",
		"64x48 2f78048cad5a",
		"17x33 3a38245bc2ab",
		"64x48 ec568b721e67, 64x48 26dfeec735dc, 17x33 4a07f0c94bb1",
	} },
	{ 1, MIXED, "{\"image\": 2, \"video\": 1}", 3, 0.7, {
		"64x48 296ba2a9cc83, video, 64x48 d488715a184c",
		"64x48 e6fd07353f50",
		"video, 64x48 19ddfede5dd4, 64x48 1ac59f35eb64",
		"video, 64x48 d683404306fd",
		"video, 64x48 4e78e595af96",
		"64x48 b733b6c9bf52, video, 64x48 a8970f488870",
	} },
};

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		const struct golden *g = golden + i;
		struct fixture f;
		size_t n = 0;

		begin(&f);
		while (n < 6 && g->items[n])
			n++;
		f.env.num_prompts = (int64_t)n;
		f.env.seed = g->seed;
		f.opts.random_mm_bucket_config = g->buckets;
		f.opts.random_mm_limit_mm_per_prompt.text = g->limits;
		f.opts.random_mm_base_items_per_request = g->base;
		f.opts.random_mm_num_mm_items_range_ratio = g->ratio;
		if (build(&f, "random-mm") < 0)
			fail_msg("%s", f.e.text);
		assert_int_equal(f.w.n, n);
		for (size_t k = 0; k < n; k++) {
			assert_items(f.w.v[k].media, g->items[k]);
			assert_int_equal(f.w.v[k].prompt_len, 9);
			assert_int_equal(f.w.v[k].output_len, 128);
			assert_int_equal(f.w.v[k].kind, PROMPT_TEXT);
		}
		assert_true(str_is(f.w.v[n - 1].request_id, n == 6 ? "r-5" : "r-4"));
		fixture_release(&f);
	}
}

static void test_threads(void **state)
{
	struct fixture one, many;

	(void)state;
	begin(&one);
	one.opts.random_mm_bucket_config = MIXED;
	one.opts.random_mm_base_items_per_request = 4;
	one.opts.random_mm_num_mm_items_range_ratio = 0.5;
	one.env.num_prompts = 30;
	one.env.threads = 1;
	assert_int_equal(build(&one, "random_mm"), 0);
	begin(&many);
	many.opts = one.opts;
	many.env.num_prompts = 30;
	many.env.threads = 7;
	assert_int_equal(build(&many, "random-mm"), 0);
	for (size_t i = 0; i < 30; i++) {
		assert_true(str_eq(one.w.v[i].prompt, many.w.v[i].prompt));
		assert_true(str_eq(one.w.v[i].media, many.w.v[i].media));
	}
	fixture_release(&one);
	fixture_release(&many);
}

/* Pixels are made into files before there are too many of them; the order stays. */
static void test_many_lots(void **state)
{
	struct fixture f;
	struct str media;
	size_t parts = 0;

	(void)state;
	begin(&f);
	f.env.num_prompts = 3;
	f.opts.random_mm_bucket_config = "{(2000, 3000, 1): 1.0}";
	f.opts.random_mm_base_items_per_request = 5;
	assert_int_equal(build(&f, "random-mm"), 0);
	for (size_t i = 0; i < 3; i++) {
		media = f.w.v[i].media;
		for (const char *p = media.p; (p = memmem(p, (size_t)(media.p + media.n - p),
							  "/9j/", 4)) != NULL; p++)
			parts += memcmp(p - 7, "base64,", 7) == 0;
	}
	assert_int_equal(parts, 15);
	fixture_release(&f);
}

static void test_chat_form(void **state)
{
	struct fixture f, plain;
	struct buf want = { 0 };

	(void)state;
	begin(&plain);
	assert_int_equal(build(&plain, "random-mm"), 0);
	begin(&f);
	f.opts.enable_multimodal_chat = true;
	assert_int_equal(build(&f, "random-mm"), 0);
	for (size_t i = 0; i < 4; i++) {
		struct str text = plain.w.v[i].prompt, parts = plain.w.v[i].media;

		buf_reset(&want);
		buf_printf(&want, "[{\"role\": \"user\", \"content\": [{\"text\": \"%.*s\", "
			   "\"type\": \"text\"}, %.*s]}]", (int)text.n, text.p, (int)parts.n - 2,
			   parts.p + 1);
		assert_true(str_eq(f.w.v[i].prompt, buf_str(&want)));
		assert_int_equal(f.w.v[i].kind, PROMPT_JSON);
		assert_int_equal(f.w.v[i].media.n, 0);
	}
	buf_release(&want);
	fixture_release(&f);
	fixture_release(&plain);
}

static void test_no_items(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.opts.random_mm_base_items_per_request = 0;
	assert_int_equal(build(&f, "random-mm"), 0);
	assert_true(str_is(f.w.v[3].media, "[]"));
	f.opts.enable_multimodal_chat = true;
	assert_int_equal(build_again(&f, "random-mm"), 0);
	assert_true(str_ends(f.w.v[3].prompt, STR("\", \"type\": \"text\"}]}]")));
	fixture_release(&f);
}

/* Never above a limit; buckets as often as asked. */
static void test_distribution(void **state)
{
	struct dataset_opts o = {
		.random_mm_bucket_config = "{(1, 1, 1): 3, (2, 2, 1): 1, (4, 4, 2): 4}",
		.random_mm_limit_mm_per_prompt.text = "{\"image\": 3, \"video\": 2}",
		.random_mm_base_items_per_request = 2, .random_mm_num_mm_items_range_ratio = 1,
	};
	size_t first[3] = { 0 }, requests = 0;
	struct mm_plan p;
	struct pcg64 rng;
	struct err e = { 0 };

	(void)state;
	pcg64_seed(&rng, 5);
	assert_int_equal(mm_plan_read(&o, &p, &e), 0);
	assert_int_equal(p.min, 0);
	assert_int_equal(p.max, 4);
	for (unsigned i = 0; i < 10000; i++) {
		const struct mm_bucket *b;
		size_t of[MM_KINDS] = { 0 };
		int64_t wanted;

		mm_begin(&p, &rng);
		wanted = p.wanted;
		for (int64_t k = 0; (b = mm_next(&p, &rng)) != NULL; k++, wanted--) {
			of[mm_kind(b)]++;
			if (k == 0) {
				first[b - p.bucket]++;
				requests++;
			}
		}
		assert_int_equal(wanted, 0);
		assert_true(of[MM_IMAGE] <= 3 && of[MM_VIDEO] <= 2);
	}
	assert_in_range(requests, 7800, 8200);
	assert_in_range(first[0], requests * 35 / 100, requests * 40 / 100);
	assert_in_range(first[1], requests * 11 / 100, requests * 14 / 100);
	assert_in_range(first[2], requests * 47 / 100, requests * 53 / 100);
	mm_plan_release(&p);
}

static void test_spellings(void **state)
{
	static const char *const texts[] = {
		"{(7, 5, 1): 1, (6, 4, 2): 3}", "{(7,5,1):1.0,(6,4,2):3.0,}",
		" { ( 7 , 5 , 1 , ) : 1e0 ,\n(6, 4, 2) : 0.3E1 } ",
		"{\"(7, 5, 1)\": 0.25, '(6, 4, 2)': 0.75}",
		"{(7, 5, 1): 9, (6, 4, 2): 3, (7, 5, 1): 1, (9, 9, 9): 0}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct dataset_opts o = { .random_mm_bucket_config = texts[i],
					  .random_mm_limit_mm_per_prompt.text = LIMITS };
		struct mm_plan p;
		struct err e = { 0 };

		if (mm_plan_read(&o, &p, &e) < 0)
			fail_msg("%s: %s", texts[i], e.text);
		assert_int_equal(p.n, 2);
		assert_true(p.bucket[0].height == 7 && p.bucket[0].width == 5 &&
			    p.bucket[0].frames == 1 && p.bucket[0].weight == 0.25);
		assert_true(p.bucket[1].height == 6 && p.bucket[1].frames == 2 &&
			    p.bucket[1].weight == 0.75);
		mm_plan_release(&p);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *buckets, *limits, *want;
	} rows[] = {
		{ "[1]", LIMITS, "'{' is expected at byte 1" },
		{ "{}", LIMITS, "no bucket has a weight above zero" },
		{ "{(1, 2): 1}", LIMITS, "',' is expected at byte 7" },
		{ "{(1, 2, 3, 4): 1}", LIMITS, "')' after three numbers is expected" },
		{ "{(1, 2.5, 1): 1}", LIMITS, "a whole number is expected at byte" },
		{ "{5: 1}", LIMITS, "'(' is expected at byte 2" },
		{ "{(1, 2, 1) 1}", LIMITS, "':' is expected" },
		{ "{(1, 2, 1): x}", LIMITS, "a number is expected" },
		{ "{(1, 2, 1): inf}", LIMITS, "a number is expected" },
		{ "{(1, 2, 1): 1", LIMITS, "',' or '}' is expected" },
		{ "{'(1, 2, 1): 1}", LIMITS, "the closing quote is expected" },
		{ "{(1, 2, 1): 1} 7", LIMITS, "nothing more is expected" },
		{ "{(8, 8, 0): 1}", LIMITS, "0 frames" },
		{ "{(8, 8, 1): -0.5, (8, 8, 2): 1}", LIMITS, "-0.5 is a negative weight" },
		{ "{(8, 8, 1): 0}", LIMITS, "no bucket has a weight above zero" },
		{ "{(0, 8, 1): 1}", LIMITS, "sides are 1 to 65500" },
		{ "{(8, 1, 2): 1}", LIMITS, "sides are 2 to 8191" },
		{ "{(8000, 8000, 100): 1}", LIMITS, "MM_ITEM_BYTES_MAX" },
		{ "{(8, 8, 1): 1, (8, 8, 2): 0}", "{\"image\": 2}", "has no \"video\"" },
		{ IMAGES, "{\"image\": 2.5, \"video\": 1}", "\"image\" is not a whole number" },
		{ IMAGES, "[]", "a JSON object is expected" },
		{ IMAGES, "{", "--random-mm-limit-mm-per-prompt" },
		/* Three are wanted at least, zero-weight buckets lend no limit. */
		{ IMAGES, "{\"image\": 2, \"video\": 5}", "must have at least 3 items" },
	};
	struct fixture f;

	(void)state;
	begin(&f);
	f.opts.random_mm_base_items_per_request = 3;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		f.opts.random_mm_bucket_config = rows[i].buckets;
		f.opts.random_mm_limit_mm_per_prompt.text = rows[i].limits;
		assert_refused(&f, "random-mm", rows[i].want);
	}
	f.opts.random_mm_num_mm_items_range_ratio = 1.5;
	assert_refused(&f, "random-mm", "0 to 1 is expected");
	f.env.backend = "vllm";
	assert_refused(&f, "random-mm", "not supported on backend 'vllm'; use one of ['openai-audio', "
		       "'openai-chat'].");
	fixture_release(&f);
}

static void test_cancelled(void **state)
{
	atomic_bool cancel = true;
	struct fixture f;

	(void)state;
	begin(&f);
	f.env.cancel = &cancel;
	assert_int_equal(build(&f, "random-mm"), -1);
	assert_int_equal(f.e.code, ERR_CANCELLED);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_many_lots),
		cmocka_unit_test(test_chat_form),
		cmocka_unit_test(test_no_items),
		cmocka_unit_test(test_distribution),
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cancelled),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
