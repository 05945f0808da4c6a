/* SPDX-License-Identifier: Apache-2.0 */
/* read_parts.c - see read_parts.h. */
#include "results/store/read_parts.h"

#include <stdlib.h>

#include "core/json/write.h"
#include "results/store/read.h"

#define CUT_DEPTH_MAX 4

/* What has an element for each request, or each iteration. */
static const char *const array_name[] = {
	"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times",
	"generated_texts", "errors", "warmup_latencies",
};
/* Objects that may hold such arrays. */
static const char *const holder[] = {
	"results", "profllm", "throughput", "latency", "startup", "metric", "extra_info",
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

struct cut {
	struct buf rest;      /* the document without arrays */
	struct buf arrays;    /* an object without its closing brace */
	struct array { struct str name, raw; } array[COUNT(array_name) + 1];
	size_t n;
};

/* ---- cutting ---- */

static bool is_one_of(struct str key, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(key, list[i]))
			return true;
	return false;
}

static bool is_array(struct str key, struct json_slice v)
{
	if (str_is(key, "requests")) /* columns per request of a detailed result */
		return v.kind == JSON_OBJECT;
	return v.kind == JSON_ARRAY && is_one_of(key, array_name, COUNT(array_name));
}

/* The first of a name is kept; those that say it again are dropped. */
static void take(struct cut *c, struct str key, struct json_slice v)
{
	for (size_t i = 0; i < c->n; i++)
		if (str_eq(c->array[i].name, key))
			return;
	c->array[c->n++] = (struct array){ key, v.raw };
	buf_printf(&c->arrays, "%s\"%.*s\": ", c->arrays.len ? ", " : "{", (int)key.n, key.p);
	buf_add_str(&c->arrays, v.raw);
}

static void add_raw(struct buf *out, struct json_slice v)
{
	if (v.kind == JSON_STRING)
		buf_add_char(out, '"');
	buf_add_str(out, v.raw);
	if (v.kind == JSON_STRING)
		buf_add_char(out, '"');
}

static void cut_object(struct cut *c, struct json_slice object, unsigned depth)
{
	struct json_iter it = json_iter(object);
	struct json_slice v;
	struct str key;
	bool is_first = true;

	buf_add_char(&c->rest, '{');
	while (json_each(&it, &key, &v) > 0) {
		if (is_array(key, v)) {
			take(c, key, v);
			continue;
		}
		buf_add_text(&c->rest, is_first ? "\"" : ", \"");
		buf_add_str(&c->rest, key);
		buf_add_text(&c->rest, "\": ");
		is_first = false;
		if (v.kind == JSON_OBJECT && depth < CUT_DEPTH_MAX &&
		    is_one_of(key, holder, COUNT(holder)))
			cut_object(c, v, depth + 1);
		else
			add_raw(&c->rest, v);
	}
	buf_add_char(&c->rest, '}');
}

/* ---- limits ---- */

/* Members and elements are counted before anything is built from them. "":0, is the least. */
static int count(struct str text, struct err *e)
{
	size_t members = 0, values = 0;
	bool is_inside = false;

	if (text.n < 5 * INGEST_MEMBERS_MAX && text.n < 2 * INGEST_VALUES_MAX)
		return 0;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (is_inside && c == '\\') {
			i++;
		} else if (c == '"') {
			is_inside = !is_inside;
		} else if (!is_inside) {
			members += c == ':';
			values += c == ',';
		}
	}
	if (members > INGEST_MEMBERS_MAX)
		return err_set(e, ERR_LIMIT, "one run has %zu keys; at most %d are taken "
			       "(INGEST_MEMBERS_MAX)", members, INGEST_MEMBERS_MAX);
	if (values > INGEST_VALUES_MAX)
		return err_set(e, ERR_LIMIT, "one run has more than %d values besides known arrays "
			       "per request (INGEST_VALUES_MAX)", INGEST_VALUES_MAX);
	return 0;
}

/* ---- the hash ---- */

/* head: the key's first eight bytes as a number, which settles most comparisons. */
struct order { uint64_t head; struct str key; const struct json_value *value; };

static struct order order_of(struct str key, const struct json_value *value)
{
	struct order o = { 0, key, value };

	for (size_t i = 0; i < 8; i++)
		o.head = o.head << 8 | (i < key.n ? (unsigned char)key.p[i] : 0);
	return o;
}

static int by_key(const void *a, const void *b)
{
	const struct order *o = a, *p = b;
	struct str x = o->key, y = p->key;
	size_t n = x.n < y.n ? x.n : y.n;
	int d;

	if (o->head != p->head)
		return o->head < p->head ? -1 : 1;
	d = n ? memcmp(x.p, y.p, n) : 0;
	return d ? d : (x.n > y.n) - (x.n < y.n);
}

static void canonical(struct buf *out, const struct json_value *v, struct arena *a);

static void canonical_object(struct buf *out, const struct json_value *v, struct arena *a)
{
	struct order *order = arena_alloc(a, (v->count + 1) * sizeof(*order));

	for (size_t i = 0; i < v->count; i++)
		order[i] = order_of(v->key[i], &v->item[i]);
	qsort(order, v->count, sizeof(*order), by_key);
	buf_add_char(out, '{');
	for (size_t i = 0; i < v->count; i++) {
		if (i)
			buf_add_char(out, ',');
		json_quote(out, order[i].key, true);
		buf_add_char(out, ':');
		canonical(out, order[i].value, a);
	}
	buf_add_char(out, '}');
}

/* Recursion is bounded by JSON_DEPTH_MAX. */
static void canonical(struct buf *out, const struct json_value *v, struct arena *a)
{
	static const char *const word[] = { "null", "false", "true" };

	switch (v->kind) {
	case JSON_OBJECT:
		canonical_object(out, v, a);
		break;
	case JSON_ARRAY:
		buf_add_char(out, '[');
		for (size_t i = 0; i < v->count; i++) {
			if (i)
				buf_add_char(out, ',');
			canonical(out, &v->item[i], a);
		}
		buf_add_char(out, ']');
		break;
	case JSON_STRING:
		json_quote(out, v->text, true);
		break;
	case JSON_INT:
	case JSON_REAL:
		buf_add_str(out, v->raw);
		break;
	default:
		buf_add_text(out, word[v->kind - JSON_NULL]);
	}
}

static void squeeze(struct buf *out, struct str raw)
{
	bool is_inside = false;

	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];

		if (is_inside && c == '\\' && i + 1 < raw.n) {
			buf_add_char(out, c);
			c = raw.p[++i];
		} else if (c == '"') {
			is_inside = !is_inside;
		} else if (!is_inside && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
			continue;
		}
		buf_add_char(out, c);
	}
}

static int by_name(const void *a, const void *b)
{
	struct order x = order_of(((const struct array *)a)->name, NULL);
	struct order y = order_of(((const struct array *)b)->name, NULL);

	return by_key(&x, &y);
}

static void hash(struct cut *c, const struct json_value *tree, struct arena *scratch,
		 char out[DIGEST_HEX])
{
	struct buf text = { 0 }, one = { 0 };
	char hex[DIGEST_HEX];

	canonical(&text, tree, scratch);
	qsort(c->array, c->n, sizeof(*c->array), by_name);
	for (size_t i = 0; i < c->n; i++) {
		buf_reset(&one);
		squeeze(&one, c->array[i].raw);
		buf_printf(&text, "\n%.*s: %s", (int)c->array[i].name.n, c->array[i].name.p,
			   digest_hex(DIGEST_SHA256, buf_str(&one), hex));
	}
	digest_hex(DIGEST_SHA256, buf_str(&text), out);
	buf_release(&text);
	buf_release(&one);
}

int parts_read(struct json_slice run, struct arena *keep, struct arena *scratch, struct parts *out,
	       struct err *e)
{
	struct cut c = { 0 };
	int rc;

	*out = (struct parts){ .document = run.raw };
	if (run.kind == JSON_OBJECT)
		cut_object(&c, run, 0);
	if (c.n) {
		out->document = arena_str(keep, buf_str(&c.rest));
		buf_add_char(&c.arrays, '}');
		out->arrays = arena_str(keep, buf_str(&c.arrays));
	}
	rc = count(out->document, e) < 0 || json_parse(scratch, out->document, &out->tree, e) < 0 ?
		-1 : 0;
	if (rc == 0)
		hash(&c, out->tree, scratch, out->hash);
	buf_release(&c.rest);
	buf_release(&c.arrays);
	return rc;
}
