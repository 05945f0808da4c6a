/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_mm.c - random text beside pictures and videos of noise; datasets spec 3.3 and 4.1 to 4.4.
 *
 * Everything is drawn in the order of the requests; pixels become files on all threads, some
 * LOT_BYTES of them at a time, so the bytes do not depend on the number of threads, and
 * memory not on the number of requests.
 */
#include <stdlib.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "data/media.h"
#include "data/mm_plan.h"
#include "data/random_gen.h"
#include "media/image.h"
#include "media/video.h"

#define LOT_BYTES (128u << 20) /* pixels and texts: some forty pictures of 1280 x 720 */

/* One picture or video on its way. */
struct item {
	size_t sample;
	const struct mm_bucket *bucket;
	uint8_t *rgb;
	struct buf part;   /* JSON */
	struct err e;
};

struct build {
	struct random_gen *gen;
	const struct random_lengths *lengths;
	struct workload *w;
	struct mm_plan plan;
	bool is_chat;
	struct item *item; /* those not made */
	size_t n, cap, bytes;
	struct buf parts;  /* JSON list of the first sample that is not whole */
	size_t first;      /* that one; prompts from there on are on the heap */
};

/* ---- on all threads ---- */

static int make_file(struct item *it, struct buf *file)
{
	const struct mm_bucket *b = it->bucket;
	struct image m = { (uint32_t)b->width, (uint32_t)b->height, it->rgb };

	return mm_kind(b) == MM_IMAGE ? image_jpeg(&m, file, &it->e) :
	       video_mp4(it->rgb, m.width, m.height, (uint32_t)b->frames, file, &it->e);
}

static bool make_part(void *self, size_t i, unsigned worker)
{
	struct item *it = (struct item *)self + i;
	struct json_writer w = json_writer(&it->part);
	struct buf file = { 0 }, url = { 0 };
	bool is_image = mm_kind(it->bucket) == MM_IMAGE;
	bool ok = make_file(it, &file) == 0;

	(void)worker;
	free(it->rgb);
	it->rgb = NULL;
	if (ok && is_image) {
		buf_add_text(&url, "data:image/jpeg;base64,");
		base64_encode(buf_str(&file), &url);
	} else if (ok) {
		media_mp4_url(buf_str(&file), &url);
	}
	buf_release(&file);
	media_put_url(&w, is_image ? "image_url" : "video_url", buf_str(&url));
	if (ok && (url.is_over || it->part.is_over))
		ok = err_set(&it->e, ERR_LIMIT, "a video of %lld bytes of pixels is too long for a"
			     " request", (long long)(3 * it->bucket->height * it->bucket->width *
						     it->bucket->frames)) == 0;
	buf_release(&url);
	return ok;
}

/* ---- in order ---- */

static int finish_sample(struct build *b, struct err *e)
{
	struct sample *s = b->w->v + b->first;
	char *text = (char *)s->prompt.p;
	struct buf messages = { 0 };
	int result;

	buf_add_text(&b->parts, b->parts.len ? "]" : "[]");
	if (b->is_chat) {
		media_chat(s->prompt, buf_str(&b->parts), &messages);
		s->prompt = buf_str(&messages);
		s->kind = PROMPT_JSON;
	} else {
		s->media = buf_str(&b->parts);
	}
	b->first++;
	result = b->parts.is_over || messages.is_over ?
		 err_set(e, ERR_LIMIT, "the media of one request have more than %llu bytes"
			 " (BUF_BYTES_MAX)", BUF_BYTES_MAX) :
		 workload_keep(b->w, &s->prompt, e) < 0 || workload_keep(b->w, &s->media, e) < 0 ?
		 -1 : 0;
	free(text);
	buf_release(&messages);
	buf_reset(&b->parts);
	return result;
}

/* Makes what was drawn. Samples in front of `whole` are complete then. */
static int make_all(struct build *b, size_t whole, struct err *e)
{
	size_t failed = parallel_for(b->gen->env->threads, b->n, make_part, b->item);
	int result = 0;

	if (failed < b->n) {
		*e = b->item[failed].e;
		result = -1;
	}
	for (size_t i = 0; i < b->n; i++) {
		struct item *it = b->item + i;

		while (result == 0 && b->first < it->sample)
			result = finish_sample(b, e);
		if (result == 0) {
			buf_add_text(&b->parts, b->parts.len ? ", " : "[");
			buf_add_str(&b->parts, buf_str(&it->part));
		}
		free(it->rgb);
		buf_release(&it->part);
	}
	while (result == 0 && b->first < whole)
		result = finish_sample(b, e);
	b->n = b->bytes = 0;
	return result;
}

static int draw_item(struct build *b, const struct mm_bucket *bucket, struct err *e)
{
	size_t n = (size_t)(3 * bucket->height * bucket->width * bucket->frames);
	struct item *it;

	if (b->bytes + n > LOT_BYTES && b->n > 0 &&
	    (dataset_go_on(b->gen->env, e) < 0 || make_all(b, b->w->n - 1, e) < 0))
		return -1;
	if (b->n == b->cap) {
		b->cap = 2 * b->cap + 64;
		b->item = mem_grow(b->item, b->cap, sizeof *b->item);
	}
	it = b->item + b->n++;
	*it = (struct item){ .sample = b->w->n - 1, .bucket = bucket, .rgb = mem_alloc(n) };
	pcg64_fill_u8(&b->gen->rng, it->rgb, n);
	b->bytes += n;
	return 0;
}

static int add(void *self, const struct random_prompt *p, struct err *e)
{
	struct build *b = self;
	struct sample *s = workload_add(b->w);
	const struct mm_bucket *bucket;

	s->prompt = (struct str){ mem_copy(p->text.p, p->text.n), p->text.n };
	s->prompt_len = (uint32_t)p->tokens;
	s->output_len = b->lengths->output[p->index];
	s->request_id = dataset_request_id(b->w, b->gen->env, p->index);
	mm_begin(&b->plan, &b->gen->rng);
	while ((bucket = mm_next(&b->plan, &b->gen->rng)) != NULL) {
		if (draw_item(b, bucket, e) < 0)
			return -1;
	}
	b->bytes += p->text.n;
	return b->bytes > LOT_BYTES ? make_all(b, b->w->n, e) : 0;
}

static void release(struct build *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->item[i].rgb);
		buf_release(&b->item[i].part);
	}
	for (; b->first < b->w->n; b->first++) {
		free((char *)b->w->v[b->first].prompt.p);
		b->w->v[b->first].prompt = STR("");
	}
	free(b->item);
	buf_release(&b->parts);
	mm_plan_release(&b->plan);
}

static int fill(struct random_gen *g, const struct dataset_opts *o, struct workload *w,
		struct err *e)
{
	struct random_lengths lengths = { 0 };
	struct ids prefix = { 0 };
	struct build b = { .gen = g, .lengths = &lengths, .w = w, .first = w->n,
			   .is_chat = o->enable_multimodal_chat };
	int rc = -1;

	if (mm_plan_read(o, &b.plan, e) == 0 &&
	    random_lengths_draw(g, o, o->random_input_len, o->random_output_len,
				(size_t)g->env->num_prompts, &lengths, e) == 0 &&
	    random_prefix_draw(g, o->random_prefix_len, &prefix, e) == 0 &&
	    random_prompts(g, &prefix, &lengths, 0, add, &b, e) == 0)
		rc = make_all(&b, w->n, e);
	if (rc == 0)
		random_note_mismatch(g->mismatch, w);
	release(&b);
	ids_release(&prefix);
	random_lengths_release(&lengths);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct random_gen g;
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (random_check_count(env, e) < 0 || random_gen_open(&g, env, RANDOM_IDS_PLAIN, e) < 0)
		return -1;
	rc = fill(&g, o, w, e);
	random_gen_release(&g);
	return rc;
}

/* Before anything is loaded: backends without media, and the options. */
static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	struct mm_plan plan;
	const char *backends;
	int rc;

	if (env->backend && !dataset_carries_media(env, &backends))
		return err_set(e, ERR_USAGE, "--dataset-name random-mm: Multi-modal content (images) is "
			       "not supported on backend '%.100s'; use one of %s.", env->backend,
			       backends);
	rc = mm_plan_read(o, &plan, e);
	mm_plan_release(&plan);
	return rc;
}

static const char *const options[] = {
	"random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len",
	"random-mm-base-items-per-request", "random-mm-num-mm-items-range-ratio",
	"random-mm-limit-mm-per-prompt", "random-mm-bucket-config", "enable-multimodal-chat",
	"input-len", NULL,
};

const struct dataset dataset_random_mm = {
	.options = options,
	.name = "random-mm", .summary = "random tokens beside pictures and videos of noise",
	.forbids_path = true, .needs_tokenizer = true, .ignores_eos = true,
	.check = check,
	.build = build,
};
