/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c - see peers.h. */
#include "client/endpoint/peers.h"

#include <assert.h>
#include <inttypes.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

/* The sampling flags of bench serve, as named in the extra body. */
static bool is_sampling(struct str key)
{
	static const char *const names[] = { "top_p", "top_k", "min_p", "temperature",
					     "frequency_penalty", "presence_penalty",
					     "repetition_penalty" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_is(key, names[i]))
			return true;
	return false;
}

static bool is_nested(const struct peer_place *place, struct str key)
{
	if (!place->nested)
		return false;
	if (!place->top[0])
		return is_sampling(key);
	for (size_t i = 0; i < sizeof(place->top) / sizeof(*place->top) && place->top[i]; i++)
		if (str_is(key, place->top[i]))
			return false;
	return true;
}

static int overlay(const struct peer_place *place, struct body *top, struct body *nested,
		   struct str object, struct err *e)
{
	struct json_scan scan = { object, 0 };
	struct json_slice all, value;
	struct json_iter it;
	struct str key;

	if (object.n == 0)
		return 0;
	if (json_next(&scan, &all, e) < 0)
		return -1;
	if (all.kind != JSON_OBJECT)
		return err_set(e, ERR_RUN, "extra body keys must be a JSON object");
	it = json_iter(all);
	while (json_each(&it, &key, &value) == 1) {
		struct body *into = is_nested(place, key) ? nested : top;
		bool is_off = place->is_off && place->is_off(key, value);

		if (place->nested && str_is(key, place->nested) && value.kind == JSON_OBJECT) {
			if (body_overlay(nested, value.raw, e) < 0)
				return -1;
			continue;
		}
		if (place->repetition && str_is(key, "repetition_penalty"))
			key = str_of(place->repetition);
		if (body_put_str(into, key, is_off ? STR("null") : event_raw(value), e) < 0)
			return -1;
	}
	return 0;
}

int peer_finish_body(const struct peer_place *place, struct body *top, struct body *nested,
		     const struct encode_opts *o, const struct sample *s, struct encoded *out,
		     struct err *e)
{
	struct buf inner = { 0 };
	int rc = -1;

	assert(!place->nested == !nested);
	if (o->is_ignore_eos && place->has_ignore_eos &&
	    body_put(nested ? nested : top, "ignore_eos", STR("true"), e) < 0)
		return -1;
	if (overlay(place, top, nested, o->extra_body, e) < 0 ||
	    overlay(place, top, nested, s->overrides, e) < 0)
		return -1;
	if (nested) {
		body_write(nested, &inner);
		if (body_put(top, place->nested, buf_str(&inner), e) < 0)
			goto done;
	}
	body_write(top, &out->body);
	rc = out->body.is_over ? err_set(e, ERR_LIMIT, "a request body exceeds the limit of 1 GiB")
			       : 0;
done:
	buf_release(&inner);
	return rc;
}

int peer_put_length(struct body *b, const char *key, const struct sample *s, char text[24],
		    struct err *e)
{
	if (s->output_len < 0)
		return 0;
	snprintf(text, 24, "%" PRId64, s->output_len);
	return body_put(b, key, str_of(text), e);
}

int peer_text_prompt(const char *backend, const struct sample *s, struct buf *quoted,
		     struct err *e)
{
	if (s->kind != PROMPT_TEXT)
		return err_set(e, ERR_RUN, "--backend %s sends plain text, but a prompt is %.*s",
			       backend, (int)(s->prompt.n < 40 ? s->prompt.n : 40), s->prompt.p);
	json_quote(quoted, s->prompt, false);
	return 0;
}

int peer_messages(const char *backend, const struct sample *s, struct buf *scratch,
		  struct json_slice *list, struct err *e)
{
	struct json_slice item, role;
	struct json_scan scan;
	struct json_iter it;
	struct str key;

	openai_messages(s, scratch);
	scan.text = buf_str(scratch);
	scan.at = 0;
	if (json_next(&scan, list, e) < 0)
		return err_wrap(e, "the messages of a request");
	it = json_iter(*list);
	while (json_each(&it, &key, &item) == 1)
		if (item.kind != JSON_OBJECT || !json_member(item, "role", &role) ||
		    role.kind != JSON_STRING)
			return err_set(e, ERR_RUN, "--backend %s sends messages with a role, but "
				       "one is %.*s", backend,
				       (int)(item.raw.n < 80 ? item.raw.n : 80), item.raw.p);
	return 0;
}

bool peer_error(struct json_slice error, struct decoded *out)
{
	if (!event_has(error) || !json_truthy(error))
		return false;
	out->bits = DECODED_ERROR;
	out->text = event_raw(error);
	return true;
}

int peer_scan(const struct json_paths *paths, size_t error, unsigned done_bits, struct str data,
	      struct json_slice *v, struct decoded *out, struct err *e)
{
	if (str_eq(data, STR("[DONE]"))) {
		out->bits = done_bits;
		return 0;
	}
	if (json_scan_run(paths, data, v) < 0)
		return event_not_json(data, e);
	return !peer_error(v[error], out);
}

void peer_answer(struct json_slice text, struct decoded *out)
{
	if (!event_has_text(text))
		return;
	out->bits |= DECODED_ANSWER;
	out->text = text.raw;
}

void peer_other(struct json_slice text, unsigned bit, struct decoded *out)
{
	if (!event_has_text(text))
		return;
	out->bits |= bit;
	out->other = text.raw;
}

void peer_usage(struct decoded *out, int64_t prompt, int64_t output, int64_t cached)
{
	out->prompt_tokens = prompt;
	out->output_tokens = output;
	out->cached_tokens = cached;
	if (prompt != -1 || output != -1)
		out->bits |= DECODED_USAGE;
}

const char *peer_finish(const struct request_row *row)
{
	if (!row->first_event_ns)
		return "the stream ended without a token";
	if (!(row->flags & (ROW_SAW_DONE | ROW_SAW_FINISH)))
		return "the stream ended before the answer did";
	return NULL;
}
