/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages_decoder.c - the decoder of a tokenizer.json.
 */
#include "base/str.h"
#include "token/model.h"
#include "token/stages.h"

static struct str step_type(const struct json_value *v)
{
	struct str type = json_text(json_get(v, "type"), STR(""));

	return (struct str){ type.p, type.n < 64 ? type.n : 64 };
}

static int member_missing(const struct json_value *v, const char *want, struct err *e)
{
	struct str type = step_type(v);

	return err_set(e, ERR_PARSE, "has a %.*s decoder without %s", (int)type.n, type.p, want);
}

static int read_replace(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	const struct json_value *pattern = json_get(v, "pattern"), *content = json_get(v, "content");
	struct str regex = json_text(json_get(pattern, "Regex"), STR(""));

	step->text = json_text(json_get(pattern, "String"), STR(""));
	step->content = json_text(content, STR(""));
	if (!content || content->kind != JSON_STRING)
		return member_missing(v, "its \"content\"", e);
	if (regex.n == 0 && step->text.n == 0)
		return member_missing(v, "a pattern that is a String or a Regex and not empty", e);
	step->kind = regex.n ? DECODER_REGEX : DECODER_REPLACE;
	if (regex.n == 0)
		return 0;
	step->regex = regex_new(regex, e);
	return step->regex ? 0 : err_wrap(e, "decoder Replace");
}

static int read_strip(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	int64_t start = json_int(json_get(v, "start"), -1), stop = json_int(json_get(v, "stop"), -1);

	step->kind = DECODER_STRIP;
	step->text = json_text(json_get(v, "content"), STR(""));
	step->start = (size_t)start;
	step->stop = (size_t)stop;
	if (!utf8_is_one(step->text))
		return member_missing(v, "a \"content\" of one character", e);
	return start >= 0 && stop >= 0 ? 0
		: member_missing(v, "counts of characters in \"start\" and \"stop\"", e);
}

static int read_metaspace(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	struct str scheme = json_text(json_get(v, "prepend_scheme"), STR("always"));
	bool is_never = str_is(scheme, "never");

	step->kind = DECODER_METASPACE;
	step->is_first_kept = is_never;
	step->text = json_text(json_get(v, "replacement"), STR(""));
	if (!utf8_is_one(step->text))
		return member_missing(v, "a \"replacement\" of one character", e);
	if (!is_never && !str_is(scheme, "always") && !str_is(scheme, "first"))
		return member_missing(v, "a prepend_scheme that is always, first or never", e);
	if (!is_never && !json_bool(json_get(v, "add_prefix_space"), true))
		return member_missing(v, "the prepend_scheme never that goes with its "
			"add_prefix_space", e);
	return 0;
}

static int read_word_piece(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	const struct json_value *prefix = json_get(v, "prefix"), *cleanup = json_get(v, "cleanup");

	step->kind = DECODER_WORDPIECE;
	step->text = json_text(prefix, STR(""));
	step->is_cleaned = json_bool(cleanup, false);
	return prefix && prefix->kind == JSON_STRING && cleanup ? 0
		: member_missing(v, "\"prefix\" and \"cleanup\"", e);
}

static int read_suffix(struct decoder_step *step, const struct json_value *v, struct err *e)
{
	step->kind = DECODER_SUFFIX;
	step->text = json_text(json_get(v, "suffix"), STR(""));
	return step->text.n ? 0 : member_missing(v, "a \"suffix\" that is not empty", e);
}

static const struct {
	const char *type;
	int (*read)(struct decoder_step *step, const struct json_value *v, struct err *e);
} STEPS[] = {
	{ "Replace", read_replace }, { "Strip", read_strip }, { "Metaspace", read_metaspace },
	{ "WordPiece", read_word_piece }, { "BPEDecoder", read_suffix },
};

static const struct {
	const char *type;
	enum decoder_kind kind;
} JOINS[] = {
	{ "Fuse", DECODER_PLAIN }, { "ByteFallback", DECODER_BYTE_RUNS },
	{ "ByteLevel", DECODER_BYTE_LEVEL },
};

/* What is known of the steps so far. */
struct order {
	const char *join;  /* the step that looked at neighbours; NULL: none yet */
	bool is_whole;     /* one text is left */
};

static int refuse_order(const struct json_value *v, const struct order *o, struct err *e)
{
	struct str type = step_type(v);

	return err_set(e, ERR_PARSE, "has a decoder with %.*s behind %s, which this version does "
		"not read", (int)type.n, type.p, o->join);
}

static int add_join(struct decoder *d, struct order *o, size_t index, const struct json_value *v,
	struct err *e)
{
	enum decoder_kind kind = JOINS[index].kind;

	if (o->join && kind != DECODER_PLAIN)
		return refuse_order(v, o, e);
	if (!o->join) {
		d->kind = kind;
		d->token_steps = d->steps;
		o->join = JOINS[index].type;
	}
	o->is_whole |= kind != DECODER_BYTE_RUNS;
	return 0;
}

static int add_decoder(struct decoder *d, struct order *o, const struct json_value *v,
	struct err *e)
{
	const struct json_value *list;

	if (stage_is(v, "Sequence")) {
		if (stage_members(v, "decoders", "decoder", &list, e))
			return -1;
		for (size_t i = 0; i < list->count; i++)
			if (add_decoder(d, o, list->item + i, e))
				return -1;
		return 0;
	}
	for (size_t i = 0; i < sizeof JOINS / sizeof *JOINS; i++)
		if (stage_is(v, JOINS[i].type))
			return add_join(d, o, i, v, e);
	for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
		if (!stage_is(v, STEPS[i].type))
			continue;
		if (o->join && !o->is_whole)
			return refuse_order(v, o, e);
		if (d->steps == TOKEN_STAGES_MAX)
			return err_set(e, ERR_LIMIT, "has more than %d decoder steps",
				TOKEN_STAGES_MAX);
		return STEPS[i].read(&d->step[d->steps++], v, e);
	}
	return stage_refuse(v, "decoder", e);
}

int stages_decoder(struct model *m, const struct json_value *root, struct err *e)
{
	struct decoder *d = &m->decoder;
	struct order order = { 0 };

	d->kind = DECODER_PLAIN;
	if (add_decoder(d, &order, root, e))
		return -1;
	if (!order.join)
		d->token_steps = d->steps;
	return 0;
}
