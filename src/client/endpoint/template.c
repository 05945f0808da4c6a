/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.c - see template.h. In valid JSON two opening braces in a row only occur in strings, so
 * fields are found without parsing the rest.
 */
#include "client/endpoint/template.h"

#include <inttypes.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

static const struct { const char *name; enum template_field field; bool is_text; } fields[] = {
	{ "model", TEMPLATE_MODEL, true }, { "prompt", TEMPLATE_PROMPT, true },
	{ "output_len", TEMPLATE_OUTPUT_LEN, true }, { "request_id", TEMPLATE_REQUEST_ID, true },
	{ "messages", TEMPLATE_MESSAGES, false }, { "ignore_eos", TEMPLATE_IGNORE_EOS, false },
};
#define FIELDS (sizeof(fields) / sizeof(*fields))

static struct str find(struct str text, const char *two)
{
	const char *at = text.n < 2 ? NULL : memmem(text.p, text.n, two, 2);

	return at ? (struct str){ at, text.n - (size_t)(at - text.p) } : (struct str){ 0 };
}

/* The quote at p - 1 opens a string: it is not an escaped one inside of it. */
static bool is_opening(const char *from, const char *p)
{
	return p > from && p[-1] == '"' && (p - 1 == from || p[-2] != '\\');
}

static void add(struct template *t, enum template_field field, bool is_inside, struct str literal)
{
	t->piece[t->n++] = (struct template_piece){ field, is_inside, literal };
	t->fields |= 1u << field;
}

/* One field, from its braces on; moves past it. left: the literal before it. */
static int take_field(struct template *t, struct str json, struct str *left, struct str at,
		      struct err *e)
{
	struct str end = find(at, "}}"), name;
	const char *open = at.p, *close;
	bool is_whole;
	size_t i = 0;

	if (!end.p)
		return err_set(e, ERR_USAGE, "\"{{\" without \"}}\" in the body");
	name = str_trim((struct str){ at.p + 2, (size_t)(end.p - at.p) - 2 });
	close = end.p + 2;
	while (i < FIELDS && !str_is(name, fields[i].name))
		i++;
	if (i == FIELDS)
		return err_set(e, ERR_USAGE, "the body holds {{%.*s}}; known are model, prompt, "
			       "messages, output_len, ignore_eos and request_id",
			       (int)(name.n < 40 ? name.n : 40), name.p);
	is_whole = is_opening(json.p, open) && close < json.p + json.n && *close == '"';
	if (is_whole && close + 1 < json.p + json.n && close[1] == ':')
		return err_set(e, ERR_USAGE, "{{%s}} cannot be a key", fields[i].name);
	if (!is_whole && !fields[i].is_text)
		return err_set(e, ERR_USAGE, "{{%s}} has to be a value of its own, not a part of a "
			       "text", fields[i].name);
	open -= is_whole;
	close += is_whole;
	add(t, TEMPLATE_LITERAL, false, (struct str){ left->p, (size_t)(open - left->p) });
	add(t, fields[i].field, !is_whole, (struct str){ 0 });
	*left = (struct str){ close, (size_t)(json.p + json.n - close) };
	return 0;
}

int template_compile(struct template *t, struct str json, struct arena *a, struct err *e)
{
	struct str left = json, at;
	size_t count = 0;

	for (at = find(json, "{{"); at.p; at = find((struct str){ at.p + 2, at.n - 2 }, "{{"))
		count++;
	*t = (struct template){
		.piece = arena_alloc(a, (2 * count + 1) * sizeof(*t->piece)),
	};
	while ((at = find(left, "{{")).p)
		if (take_field(t, json, &left, at, e) < 0)
			return -1;
	add(t, TEMPLATE_LITERAL, false, left);
	return 0;
}

/* Text in a string: without quotes when it is a part of a longer one. */
static void add_text(struct buf *out, struct str text, bool is_inside)
{
	size_t from = out->len;

	json_quote(out, text, false);
	if (is_inside && !out->is_over) {
		memmove(out->data + from, out->data + from + 1, out->len - from - 1);
		out->len -= 2;
		out->data[out->len] = 0;
	}
}

static int fill_piece(const struct template_piece *p, const struct encode_opts *o,
		      const struct sample *s, struct buf *out, struct err *e)
{
	switch (p->field) {
	case TEMPLATE_LITERAL:
		buf_add_str(out, p->literal);
		return 0;
	case TEMPLATE_MODEL:
		add_text(out, o->model, p->is_inside);
		return 0;
	case TEMPLATE_PROMPT:
		if (s->kind == PROMPT_TEXT)
			add_text(out, s->prompt, p->is_inside);
		else if (p->is_inside)
			return err_set(e, ERR_RUN, "the body of --backend-file has {{prompt}} inside a "
				       "text, but a prompt is %.*s",
				       (int)(s->prompt.n < 40 ? s->prompt.n : 40), s->prompt.p);
		else
			buf_add_str(out, s->prompt);
		return 0;
	case TEMPLATE_OUTPUT_LEN:
		if (s->output_len < 0)
			buf_add_text(out, p->is_inside ? "" : "null");
		else
			buf_printf(out, "%" PRId64, s->output_len);
		return 0;
	case TEMPLATE_MESSAGES:
		openai_messages(s, out);
		return 0;
	case TEMPLATE_IGNORE_EOS:
		buf_add_text(out, o->is_ignore_eos ? "true" : "false");
		return 0;
	case TEMPLATE_REQUEST_ID:
		add_text(out, s->request_id, p->is_inside);
		return 0;
	}
	return 0;
}

int template_fill(const struct template *t, const struct encode_opts *o, const struct sample *s,
		  struct buf *out, struct err *e)
{
	for (size_t i = 0; i < t->n; i++)
		if (fill_piece(&t->piece[i], o, s, out, e) < 0)
			return -1;
	return 0;
}
