/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.c - APIs that return vectors or scores: embeddings, pooling, rerank; serve spec 3.9.
 *
 * One request, one whole answer, of which only the count of prompt tokens is read.
 * "encoding_format" in the final body decides where that count is: in the JSON answer, in a header
 * (bytes), or nowhere (bytes_only: the client's own count is used).
 */
#include "client/endpoint/event.h"
#include "client/endpoint/openai.h"
#include "client/http/head.h"
#include "core/json/write.h"

#define IMAGE_ONLY "Represent the given image."
#define IMAGE_AND_TEXT "Represent the given image with the following question: "

/* How the text of a request with media is used. */
enum media_rule {
	MEDIA_BESIDE,  /* nothing */
	MEDIA_ALONE,   /* it goes: CLIP takes one or the other */
	MEDIA_FIRST,   /* it becomes an instruction after the media: VLM2Vec */
};

/* ---- bodies ---- */

static bool json_of(struct str text, struct json_slice *out)
{
	struct json_scan scan = { text, 0 };

	return text.n && json_next(&scan, out, NULL) == 0;
}

/* The trailing number of a request id is odd. */
static bool is_odd_request(const struct sample *s)
{
	char last = s->request_id.n ? s->request_id.p[s->request_id.n - 1] : '0';

	return last >= '0' && last <= '9' && (last - '0') % 2 == 1;
}

/* The sample as the media rule leaves it; scratch holds a text it makes. */
static struct sample apply(enum media_rule rule, const struct sample *s, struct buf *scratch)
{
	struct sample out = *s;

	if (s->media.n == 0 || rule == MEDIA_BESIDE)
		return out;
	out.kind = PROMPT_TEXT;
	if (rule == MEDIA_ALONE) {
		out.prompt = STR("");
	} else if (is_odd_request(s)) {
		buf_add_text(scratch, IMAGE_AND_TEXT);
		buf_add_str(scratch, s->prompt);
		out.prompt = buf_str(scratch);
	} else {
		out.prompt = STR(IMAGE_ONLY);
	}
	return out;
}

static int encode_embeddings(const struct endpoint *self, const struct encode_opts *o,
			     const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "input", openai_prompt(s, &prompt), e) == 0 &&
	    body_put(&b, "truncate_prompt_tokens", STR("-1"), e) == 0)
		rc = openai_finish_body(&b, o, s, out, e);
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

static int put_chat(enum media_rule rule, const struct encode_opts *o, const struct sample *s,
		    struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, messages = { 0 }, text = { 0 };
	struct sample with = apply(rule, s, &text);
	struct body b = { .n = 0 };
	int rc = -1;

	json_quote(&model, o->model, false);
	openai_user_message(&with, rule == MEDIA_FIRST, &messages);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "messages", buf_str(&messages), e) == 0 &&
	    body_put(&b, "truncate_prompt_tokens", STR("-1"), e) == 0)
		rc = openai_finish_body(&b, o, s, out, e);
	buf_release(&model);
	buf_release(&messages);
	buf_release(&text);
	return rc;
}

/* The one media item of a sample: its URL and its kind ("image_url": image), both quoted. */
static int put_media(struct body *b, const struct sample *s, struct buf *kind, struct err *e)
{
	struct json_slice all, item, type, url;
	struct json_iter it;
	struct str key, name;
	char member[64];

	if (!json_of(s->media, &all) || all.kind != JSON_ARRAY)
		goto bad;
	it = json_iter(all);
	if (json_each(&it, &key, &item) != 1 || !json_member(item, "type", &type) ||
	    type.kind != JSON_STRING || type.raw.n >= sizeof(member))
		goto bad;
	memcpy(member, type.raw.p, type.raw.n);
	member[type.raw.n] = 0;
	if (!json_path(item, &url, member, "url", NULL) || url.kind != JSON_STRING ||
	    json_each(&it, &key, &item) != 0)
		goto bad;
	name = type.raw;
	json_quote(kind, str_cut(&name, '_'), false);
	/* The slice of a string lies between its quotes. */
	if (body_put(b, "input", (struct str){ url.raw.p - 1, url.raw.n + 2 }, e) < 0)
		return -1;
	return body_put(b, "modality", buf_str(kind), e);
bad:
	return err_set(e, ERR_RUN, "infinity embeddings take a prompt, or one image, video or "
		       "sound with a URL");
}

static bool is_empty(const struct sample *s)
{
	struct json_slice v;

	return s->prompt.n == 0 ||
	       (s->kind == PROMPT_JSON && json_of(s->prompt, &v) && !json_truthy(v));
}

static int put_infinity(enum media_rule rule, const struct encode_opts *o,
			const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 }, kind = { 0 }, text = { 0 };
	struct sample with = apply(rule, s, &text);
	struct body b = { .n = 0 };
	int rc;

	json_quote(&model, o->model, false);
	rc = body_put(&b, "model", buf_str(&model), e);
	if (rc == 0 && is_empty(&with))
		rc = put_media(&b, &with, &kind, e);
	else if (rc == 0)
		rc = body_put(&b, "input", openai_prompt(&with, &prompt), e);
	if (rc == 0)
		rc = openai_finish_body(&b, o, s, out, e);
	buf_release(&model);
	buf_release(&prompt);
	buf_release(&kind);
	buf_release(&text);
	return rc;
}

#define ENCODE(name, how, rule)                                                            \
	static int name(const struct endpoint *self, const struct encode_opts *o,           \
			const struct sample *s, struct encoded *out, struct err *e)         \
	{                                                                                   \
		(void)self;                                                                 \
		return how(rule, o, s, out, e);                                             \
	}
ENCODE(encode_chat, put_chat, MEDIA_BESIDE)
ENCODE(encode_clip, put_chat, MEDIA_ALONE)
ENCODE(encode_vlm2vec, put_chat, MEDIA_FIRST)
ENCODE(encode_infinity, put_infinity, MEDIA_BESIDE)
ENCODE(encode_infinity_clip, put_infinity, MEDIA_ALONE)
#undef ENCODE

/* A prompt that is an object brings its own keys. */
static bool is_dict(const struct sample *s)
{
	struct str text = str_trim(s->prompt);

	return s->kind == PROMPT_JSON && text.n && *text.p == '{';
}

static int encode_pooling(const struct endpoint *self, const struct encode_opts *o,
			  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "truncate_prompt_tokens", STR("-1"), e) == 0)
		rc = is_dict(s) ? body_overlay(&b, s->prompt, e)
				: body_put(&b, "input", openai_prompt(s, &prompt), e);
	if (rc == 0)
		rc = openai_finish_body(&b, o, s, out, e);
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

/* Splits a list into its first element and where the others begin. False: no such list. */
static bool split_list(const struct sample *s, struct str *first, struct str *others)
{
	struct json_slice all, item[2];
	struct json_iter it;
	struct str key;

	if (s->kind != PROMPT_JSON || !json_of(s->prompt, &all) || all.kind != JSON_ARRAY)
		return false;
	it = json_iter(all);
	for (int i = 0; i < 2; i++) {
		if (json_each(&it, &key, &item[i]) != 1)
			return false;
		if (item[i].kind == JSON_STRING)
			item[i].raw = (struct str){ item[i].raw.p - 1, item[i].raw.n + 2 };
	}
	*first = item[0].raw;
	*others = (struct str){ item[1].raw.p,
				(size_t)(all.raw.p + all.raw.n - item[1].raw.p) };
	return true;
}

/* Only rerank accepts no further keys, as upstream. */
static int encode_rerank(const struct endpoint *self, const struct encode_opts *o,
			 const struct sample *s, struct encoded *out, struct err *e)
{
	const struct encode_opts no_opts = { 0 };
	const struct sample no_sample = { 0 };
	struct buf model = { 0 }, documents = { 0 };
	struct str query, rest;
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	if (!split_list(s, &query, &rest))
		return err_set(e, ERR_RUN, "vllm-rerank: a prompt must be a list of a query and at "
			       "least one document");
	json_quote(&model, o->model, false);
	buf_add_char(&documents, '[');
	buf_add_str(&documents, rest);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "query", query, e) == 0 &&
	    body_put(&b, "documents", buf_str(&documents), e) == 0 &&
	    body_put(&b, "truncate_prompt_tokens", STR("-1"), e) == 0)
		rc = openai_finish_body(&b, &no_opts, &no_sample, out, e);
	buf_release(&model);
	buf_release(&documents);
	return rc;
}

/* ---- answers ---- */

/* The last of the objects a body was made of that has such a key decides. */
static struct str encoding_format(const struct answer *a, bool is_prompt_overlaid)
{
	const struct sample *s = a->sample;
	const struct str from[] = {
		s ? s->overrides : (struct str){ 0 }, a->extra_body,
		s && is_prompt_overlaid && is_dict(s) ? s->prompt : (struct str){ 0 },
	};
	struct json_slice all, v;

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		if (json_of(from[i], &all) && json_member(all, "encoding_format", &v))
			return v.kind == JSON_STRING ? v.raw : (struct str){ 0 };
	return (struct str){ 0 };
}

/* application/json, or anything whose type ends in +json. */
static bool is_json_type(struct str type)
{
	type = str_trim(str_cut(&type, ';'));
	return str_eq_nocase(type, STR("application/json")) ||
	       (type.n > 5 && str_eq_nocase((struct str){ type.p + type.n - 5, 5 }, STR("+json")));
}

static int read_usage(struct str json, const char *where, struct decoded *out, struct err *e)
{
	struct json_slice all, usage, error, n;

	if (!json_of(str_trim(json), &all) || all.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "%s is not a JSON object: %.*s", where,
			       (int)(json.n < 200 ? json.n : 200), json.n ? json.p : "");
	if (json_member(all, "error", &error) && json_truthy(error)) {
		out->bits |= DECODED_ERROR;
		out->text = error.raw;
	}
	out->bits |= DECODED_USAGE;
	out->prompt_tokens = 0;
	if (!json_member(all, "usage", &usage))
		return 0;
	if (usage.kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "usage in %s is not a JSON object", where);
	if (json_member(usage, "prompt_tokens", &n))
		out->prompt_tokens = event_count(n);
	if (out->prompt_tokens == -1)
		out->prompt_tokens = 0;
	return 0;
}

static int decode(struct str format, const struct answer *a, struct decoded *out, struct err *e)
{
	struct str type = http_head_value(a->head, "content-type"), metadata;

	if (str_is(format, "bytes_only"))
		return 0; /* the sample's own count is used */
	if (str_is(format, "bytes")) {
		metadata = http_head_value(a->head, "metadata");
		if (!metadata.p)
			return err_set(e, ERR_PARSE, "the answer has no header \"metadata\"");
		return read_usage(metadata, "the header \"metadata\"", out, e);
	}
	/* Unknown for transports without heads. */
	if (a->head.n && !is_json_type(type))
		return err_set(e, ERR_PARSE, "the answer's Content-Type is %.*s, not application/json",
			       (int)type.n, type.n ? type.p : "");
	return read_usage(a->body, "the answer", out, e);
}

static int decode_answer(const struct endpoint *self, const struct answer *a,
			 struct decoded *out, struct err *e)
{
	return decode(encoding_format(a, self->encode == encode_pooling), a, out, e);
}

static int decode_rerank(const struct endpoint *self, const struct answer *a,
			 struct decoded *out, struct err *e)
{
	(void)self;
	return decode((struct str){ 0 }, a, out, e);
}

static const char *finish(const struct request_row *row)
{
	(void)row;
	return NULL; /* an answer that could be read is a success */
}

/* ---- input sequences ---- */

/* Elements of a list whose first one is a text or a list; 1 for all else. */
static uint32_t count_inputs(const struct sample *s)
{
	struct json_slice all, item;
	struct json_iter it;
	struct str key;
	uint32_t n = 0;

	if (s->kind != PROMPT_JSON || !json_of(s->prompt, &all) || all.kind != JSON_ARRAY)
		return 1;
	it = json_iter(all);
	while (json_each(&it, &key, &item) == 1)
		if (n++ == 0 && item.kind != JSON_STRING && item.kind != JSON_ARRAY)
			return 1;
	return n ? n : 1;
}

/* All but the query. */
static uint32_t count_documents(const struct sample *s)
{
	uint32_t n = count_inputs(s);

	return n > 1 ? n - 1 : 1;
}

/* ---- rows ---- */

#define COMMON .is_pooling = true, .finish = finish
#define OPENAI_EMBEDDINGS                                                                  \
	.suffix = "embeddings", .api_name = "OpenAI Embeddings API",                       \
	.default_path = "/v1/embeddings", .decode_answer = decode_answer, COMMON
#define INFINITY_EMBEDDINGS                                                                \
	.suffix = "embeddings", .api_name = "Infinity Embeddings API",                     \
	.default_path = "/embeddings", .decode_answer = decode_answer,                     \
	.sequences = count_inputs, COMMON

const struct endpoint endpoint_embeddings = {
	.name = "openai-embeddings", OPENAI_EMBEDDINGS, .encode = encode_embeddings,
	.sequences = count_inputs,
};
const struct endpoint endpoint_embeddings_chat = {
	.name = "openai-embeddings-chat", OPENAI_EMBEDDINGS, .encode = encode_chat,
};
const struct endpoint endpoint_embeddings_clip = {
	.name = "openai-embeddings-clip", OPENAI_EMBEDDINGS, .encode = encode_clip,
};
const struct endpoint endpoint_embeddings_vlm2vec = {
	.name = "openai-embeddings-vlm2vec", OPENAI_EMBEDDINGS, .encode = encode_vlm2vec,
};
const struct endpoint endpoint_infinity = {
	.name = "infinity-embeddings", INFINITY_EMBEDDINGS, .encode = encode_infinity,
};
const struct endpoint endpoint_infinity_clip = {
	.name = "infinity-embeddings-clip", INFINITY_EMBEDDINGS, .encode = encode_infinity_clip,
};
const struct endpoint endpoint_pooling = {
	.name = "vllm-pooling", .suffix = "pooling", .api_name = "vLLM Pooling API",
	.default_path = "/pooling", .encode = encode_pooling, .decode_answer = decode_answer,
	.sequences = count_inputs, COMMON,
};
const struct endpoint endpoint_rerank = {
	.name = "vllm-rerank", .suffix = "rerank", .api_name = "vLLM score API",
	.default_path = "/v1/rerank", .encode = encode_rerank, .decode_answer = decode_rerank,
	.sequences = count_documents, COMMON,
};
