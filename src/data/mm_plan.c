/* SPDX-License-Identifier: Apache-2.0 */
/* mm_plan.c - see mm_plan.h. */
#include "data/mm_plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "json/read.h"
#include "media/video.h"

#define BUCKETS "--random-mm-bucket-config"
#define LIMITS "--random-mm-limit-mm-per-prompt"
#define JPEG_SIDE_MAX 65500

static const char *const kind_name[MM_KINDS] = { "image", "video" };

/* ---- a Python dict of tuples to numbers ---- */

struct cursor {
	struct str all;
	size_t at;
	struct err *e;
};

static char peek(struct cursor *c)
{
	while (c->at < c->all.n && isspace((unsigned char)c->all.p[c->at]))
		c->at++;
	return c->at < c->all.n ? c->all.p[c->at] : '\0';
}

static int wrong(const struct cursor *c, const char *expected)
{
	size_t rest = c->all.n - c->at;

	return err_set(c->e, ERR_USAGE, BUCKETS ": %s is expected at byte %zu, found '%.*s'; a bucket"
		       " is (height, width, frames): weight", expected, c->at + 1,
		       rest < 40 ? (int)rest : 40, c->all.p + c->at);
}

static bool accept(struct cursor *c, char wanted)
{
	if (peek(c) != wanted)
		return false;
	c->at++;
	return true;
}

static struct str number(struct cursor *c)
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

static int read_tuple(struct cursor *c, struct mm_bucket *b)
{
	int64_t *part[] = { &b->height, &b->width, &b->frames };

	if (!accept(c, '('))
		return wrong(c, "'('");
	for (unsigned i = 0; i < 3; i++) {
		struct cursor before = *c;

		if (!str_to_i64(number(c), part[i]))
			return wrong(&before, "a whole number");
		if (i < 2 && !accept(c, ','))
			return wrong(c, "','");
	}
	accept(c, ',');
	return accept(c, ')') ? 0 : wrong(c, "')' after three numbers");
}

/* The same in quotes: what JSON can say. */
static int read_key(struct cursor *c, struct mm_bucket *b)
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
	struct cursor c = { .all = str_of(text), .e = e };

	if (!accept(&c, '{'))
		return wrong(&c, "'{'");
	while (!accept(&c, '}')) {
		struct mm_bucket b;
		struct cursor before;

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
		return err_set(e, ERR_USAGE, BUCKETS ": (%" PRId64 ", %" PRId64 ", %" PRId64 ") is no"
			       " %s that can be made; sides are %" PRId64 " to %" PRId64 " pixels",
			       b->height, b->width, b->frames, kind_name[mm_kind(b)], side_min,
			       side_max);
	if (b->frames > MM_ITEM_BYTES_MAX / (3 * b->height * b->width))
		return err_set(e, ERR_USAGE, BUCKETS ": (%" PRId64 ", %" PRId64 ", %" PRId64 ") has"
			       " more than %lld bytes of pixels (MM_ITEM_BYTES_MAX)", b->height,
			       b->width, b->frames, MM_ITEM_BYTES_MAX);
	return 0;
}

/* Buckets that are never drawn count here too, as upstream has it. */
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
			return err_set(e, ERR_USAGE, BUCKETS ": %g is a weight below zero",
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

/* A kind of which there are enough is not drawn any more; false: nothing else is left. */
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
