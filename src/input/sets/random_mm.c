/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_mm.c - random text with pictures and videos of noise; datasets spec 3.3 and 4.1 to 4.4.
 *
 * Everything is drawn in the order of the requests; pixels become files on all threads, some
 * LOT_BYTES of them at a time, so the bytes do not depend on the number of threads, and memory not
 * on the number of requests.
 */
#include "input/sets/random.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/json/read.h"
#include "input/data/media.h"
#include "input/media/image.h"
#include "input/media/video.h"
#include "input/sets/datasets.h"

/* ---- what is drawn ---- */

#define BUCKETS "--random-mm-bucket-config"
#define LIMITS "--random-mm-limit-mm-per-prompt"
#define JPEG_SIDE_MAX 65500

static const char *const kind_name[MM_KINDS] = { "image", "video" };

/* ---- a Python dict of tuples to numbers ---- */

struct dict_cursor {
	struct str all;
	size_t at;
	struct err *e;
};

static char peek(struct dict_cursor *c)
{
	while (c->at < c->all.n && isspace((unsigned char)c->all.p[c->at]))
		c->at++;
	return c->at < c->all.n ? c->all.p[c->at] : '\0';
}

static int wrong(const struct dict_cursor *c, const char *expected)
{
	size_t rest = c->all.n - c->at;

	return err_set(c->e, ERR_USAGE, BUCKETS ": %s is expected at byte %zu, found '%.*s'; a bucket"
		       " is (height, width, frames): weight", expected, c->at + 1,
		       rest < 40 ? (int)rest : 40, c->all.p + c->at);
}

static bool accept(struct dict_cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->at++;
	return true;
}

static struct str number(struct dict_cursor *c)
{
	size_t from;

	peek(c);
	for (from = c->at; c->at < c->all.n; c->at++) {
		char ch = c->all.p[c->at];

		if (!isdigit((unsigned char)ch) && !strchr("+-.eE", ch))
			break;
	}
	return (struct str){ c->all.p + from, c->at - from };
}

static int read_tuple(struct dict_cursor *c, struct mm_bucket *b)
{
	int64_t *part[] = { &b->height, &b->width, &b->frames };

	if (!accept(c, '('))
		return wrong(c, "'('");
	for (unsigned i = 0; i < 3; i++) {
		struct dict_cursor before = *c;

		if (!str_to_i64(number(c), part[i]))
			return wrong(&before, "a whole number");
		if (i < 2 && !accept(c, ','))
			return wrong(c, "','");
	}
	accept(c, ',');
	return accept(c, ')') ? 0 : wrong(c, "')' after three numbers");
}

/* The same in quotes, for JSON. */
static int read_key(struct dict_cursor *c, struct mm_bucket *b)
{
	char quote = peek(c);

	if (quote != '"' && quote != '\'')
		return read_tuple(c, b);
	c->at++;
	if (read_tuple(c, b) < 0)
		return -1;
	return accept(c, quote) ? 0 : wrong(c, "the closing quote");
}

/* As in Python, a key that comes again gives its first place a new value. */
static void put(struct mm_plan *p, const struct mm_bucket *b)
{
	for (size_t i = 0; i < p->n; i++) {
		struct mm_bucket *old = p->bucket + i;

		if (old->height != b->height || old->width != b->width || old->frames != b->frames)
			continue;
		old->weight = b->weight;
		return;
	}
	p->bucket = mem_grow(p->bucket, p->n + 1, sizeof *p->bucket);
	p->bucket[p->n++] = *b;
}

static int read_buckets(const char *text, struct mm_plan *p, struct err *e)
{
	struct dict_cursor c = { .all = str_of(text), .e = e };

	if (!accept(&c, '{'))
		return wrong(&c, "'{'");
	while (!accept(&c, '}')) {
		struct mm_bucket b;
		struct dict_cursor before;

		if (read_key(&c, &b) < 0)
			return -1;
		if (!accept(&c, ':'))
			return wrong(&c, "':'");
		before = c;
		if (!str_to_f64(number(&c), &b.weight) || !isfinite(b.weight))
			return wrong(&before, "a number");
		put(p, &b);
		if (!accept(&c, ',') && peek(&c) != '}')
			return wrong(&c, "',' or '}'");
	}
	return peek(&c) == '\0' && c.at == c.all.n ? 0 : wrong(&c, "nothing more");
}

/* ---- what may be drawn ---- */

static int check_size(const struct mm_bucket *b, struct err *e)
{
	int64_t side_max = mm_kind(b) == MM_IMAGE ? JPEG_SIDE_MAX : VIDEO_SIDE_MAX;
	int64_t side_min = mm_kind(b) == MM_IMAGE ? 1 : 2;

	if (b->height < side_min || b->width < side_min || b->height > side_max ||
	    b->width > side_max)
		return err_set(e, ERR_USAGE, BUCKETS ": (%" PRId64 ", %" PRId64 ", %" PRId64 ") is "
			       "not a possible %s; sides are %" PRId64 " to %" PRId64 " pixels",
			       b->height, b->width, b->frames, kind_name[mm_kind(b)], side_min,
			       side_max);
	if (b->frames > MM_ITEM_BYTES_MAX / (3 * b->height * b->width))
		return err_set(e, ERR_USAGE, BUCKETS ": (%" PRId64 ", %" PRId64 ", %" PRId64 ") has"
			       " more than %lld bytes of pixels (MM_ITEM_BYTES_MAX)", b->height,
			       b->width, b->frames, MM_ITEM_BYTES_MAX);
	return 0;
}

/* Buckets that are never drawn count here too, as in upstream. */
static int check_buckets(const struct mm_plan *p, const bool *has_limit, struct err *e)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct mm_bucket *b = p->bucket + i;

		if (b->frames <= 0)
			return err_set(e, ERR_USAGE, BUCKETS ": %" PRId64 " frames; 1 is an image, more"
				       " are a video", b->frames);
		if (!has_limit[mm_kind(b)])
			return err_set(e, ERR_USAGE, LIMITS " has no \"%s\", of which " BUCKETS
				       " has a bucket", kind_name[mm_kind(b)]);
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->bucket[i].weight < 0)
			return err_set(e, ERR_USAGE, BUCKETS ": %g is a negative weight",
				       p->bucket[i].weight);
	return 0;
}

static int keep_possible(struct mm_plan *p, const int64_t *limit, struct err *e)
{
	size_t kept = 0;
	double total = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (p->bucket[i].weight == 0)
			continue;
		if (check_size(p->bucket + i, e) < 0)
			return -1;
		total += p->bucket[i].weight;
		p->bucket[kept++] = p->bucket[i];
	}
	p->n = kept;
	if (kept == 0 || !isfinite(total))
		return err_set(e, ERR_USAGE, BUCKETS ": no bucket has a weight above zero");
	for (size_t i = 0; i < kept; i++) {
		p->bucket[i].weight /= total;
		p->limit[mm_kind(p->bucket + i)] = limit[mm_kind(p->bucket + i)];
	}
	return 0;
}

static int read_limits(const char *text, int64_t *limit, bool *has_limit, struct err *e)
{
	struct arena a = { 0 };
	struct json_value *v;
	int result = json_parse(&a, str_of(text), &v, e);

	if (result < 0)
		err_wrap(e, LIMITS);
	else if (v->kind != JSON_OBJECT)
		result = err_set(e, ERR_USAGE, LIMITS ": a JSON object is expected, got '%.100s'", text);
	for (unsigned k = 0; result == 0 && k < MM_KINDS; k++) {
		const struct json_value *one = json_get(v, kind_name[k]);

		has_limit[k] = one != NULL;
		if (one && (one->kind != JSON_INT || json_int(one, -1) < 0))
			result = err_set(e, ERR_USAGE, LIMITS ": \"%s\" is not a whole number from zero"
					 " on: '%.100s'", kind_name[k], text);
		limit[k] = json_int(one, 0);
	}
	arena_release(&a);
	return result;
}

static int count_items(const struct dataset_opts *o, struct mm_plan *p, struct err *e)
{
	double base = (double)o->random_mm_base_items_per_request;
	double ratio = o->random_mm_num_mm_items_range_ratio;
	double least = fmax(0, floor(base * (1 - ratio))), most = ceil(base * (1 + ratio));
	int64_t sum;

	if (__builtin_add_overflow(p->limit[MM_IMAGE], p->limit[MM_VIDEO], &sum))
		sum = INT64_MAX;
	p->max = most < (double)sum ? (int64_t)most : sum;
	p->min = least < (double)INT64_MAX ? (int64_t)least : INT64_MAX;
	if (p->min <= p->max)
		return 0;
	return err_set(e, ERR_USAGE, "a request must have at least %" PRId64 " items"
		       " (--random-mm-base-items-per-request %" PRId64 ", range ratio %g) and may have"
		       " %" PRId64 " (" LIMITS ")", p->min, o->random_mm_base_items_per_request, ratio,
		       p->max);
}

int dataset_check_buckets(const char *text, struct err *e)
{
	struct mm_plan plan = { 0 };
	int rc = read_buckets(text, &plan, e);

	mm_plan_release(&plan);
	return rc;
}

int mm_plan_read(const struct dataset_opts *o, struct mm_plan *p, struct err *e)
{
	double ratio = o->random_mm_num_mm_items_range_ratio;
	int64_t limit[MM_KINDS];
	bool has_limit[MM_KINDS];

	*p = (struct mm_plan){ 0 };
	if (!(ratio >= 0 && ratio <= 1))
		return err_set(e, ERR_USAGE, "--random-mm-num-mm-items-range-ratio is %g; 0 to 1 is"
			       " expected", ratio);
	if (read_limits(o->random_mm_limit_mm_per_prompt.text, limit, has_limit, e) < 0 ||
	    read_buckets(o->random_mm_bucket_config, p, e) < 0 ||
	    check_buckets(p, has_limit, e) < 0 || keep_possible(p, limit, e) < 0)
		return -1;
	p->weight = mem_array(p->n, sizeof *p->weight);
	p->cdf = mem_array(p->n, sizeof *p->cdf);
	return count_items(o, p, e);
}

void mm_plan_release(struct mm_plan *p)
{
	free(p->bucket);
	free(p->weight);
	free(p->cdf);
	*p = (struct mm_plan){ 0 };
}

/* ---- one request ---- */

void mm_begin(struct mm_plan *p, struct pcg64 *rng)
{
	p->wanted = pcg64_bounded(rng, p->min, p->max);
	for (unsigned k = 0; k < MM_KINDS; k++)
		p->left[k] = p->limit[k];
	for (size_t i = 0; i < p->n; i++)
		p->weight[i] = p->bucket[i].weight;
	pcg64_cdf(p->weight, p->cdf, p->n);
}

/* A kind that has reached its limit is not drawn any more; false: nothing else is left. */
static bool rule_out(struct mm_plan *p, enum mm_kind kind)
{
	double total = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (mm_kind(p->bucket + i) == kind)
			p->weight[i] = 0;
		total += p->weight[i];
	}
	if (total <= 0)
		return false;
	for (size_t i = 0; i < p->n; i++)
		p->weight[i] /= total;
	pcg64_cdf(p->weight, p->cdf, p->n);
	return true;
}

const struct mm_bucket *mm_next(struct mm_plan *p, struct pcg64 *rng)
{
	while (p->wanted > 0) {
		const struct mm_bucket *b = p->bucket + pcg64_choose(rng, p->cdf, p->n);

		if (p->left[mm_kind(b)] > 0) {
			p->left[mm_kind(b)]--;
			p->wanted--;
			return b;
		}
		if (!rule_out(p, mm_kind(b)))
			break;
	}
	return NULL;
}

/* ---- media ---- */

#define LOT_BYTES (128u << 20) /* pixels and texts: some forty pictures of 1280 x 720 */

/* One picture or video being made. */
struct mm_item {
	size_t sample;
	const struct mm_bucket *bucket;
	uint8_t *rgb;
	struct buf part;   /* JSON */
	struct err e;
};

struct mm_build {
	struct random_gen *gen;
	const struct random_lengths *lengths;
	struct workload *w;
	struct mm_plan plan;
	bool is_chat;
	struct mm_item *item; /* those not made */
	size_t n, cap, bytes;
	struct buf parts;  /* JSON list of the first sample that is not whole */
	size_t first;      /* that one; prompts from there on are on the heap */
};

/* ---- on all threads ---- */

static int make_file(struct mm_item *it, struct buf *file)
{
	const struct mm_bucket *b = it->bucket;
	struct image m = { (uint32_t)b->width, (uint32_t)b->height, it->rgb };

	return mm_kind(b) == MM_IMAGE ? image_jpeg(&m, file, &it->e) :
	       video_mp4(it->rgb, m.width, m.height, (uint32_t)b->frames, file, &it->e);
}

static bool make_part(void *self, size_t i, unsigned worker)
{
	struct mm_item *it = (struct mm_item *)self + i;
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

static int finish_sample(struct mm_build *b, struct err *e)
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

/* Makes what was drawn. Samples before `whole` are then complete. */
static int make_all(struct mm_build *b, size_t whole, struct err *e)
{
	size_t failed = parallel_for(b->gen->env->threads, b->n, make_part, b->item);
	int result = 0;

	if (failed < b->n) {
		*e = b->item[failed].e;
		result = -1;
	}
	for (size_t i = 0; i < b->n; i++) {
		struct mm_item *it = b->item + i;

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

static int draw_item(struct mm_build *b, const struct mm_bucket *bucket, struct err *e)
{
	size_t n = (size_t)(3 * bucket->height * bucket->width * bucket->frames);
	struct mm_item *it;

	if (b->bytes + n > LOT_BYTES && b->n > 0 &&
	    (dataset_go_on(b->gen->env, e) < 0 || make_all(b, b->w->n - 1, e) < 0))
		return -1;
	if (b->n == b->cap) {
		b->cap = 2 * b->cap + 64;
		b->item = mem_grow(b->item, b->cap, sizeof *b->item);
	}
	it = b->item + b->n++;
	*it = (struct mm_item){ .sample = b->w->n - 1, .bucket = bucket, .rgb = mem_alloc(n) };
	pcg64_fill_u8(&b->gen->rng, it->rgb, n);
	b->bytes += n;
	return 0;
}

static int add(void *self, const struct random_prompt *p, struct err *e)
{
	struct mm_build *b = self;
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

static void release(struct mm_build *b)
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
	struct mm_build b = { .gen = g, .lengths = &lengths, .w = w, .first = w->n,
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

/* Checks backends and options before anything is loaded. */
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
	.name = "random-mm", .summary = "random tokens with images and videos of noise",
	.forbids_path = true, .needs_tokenizer = true, .ignores_eos = true,
	.check = check,
	.build = build,
};
