/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - see history.h. */
#include "bench/options/history.h"

#include <assert.h>

#include "bench/options/serve_opts.h"
#include "client/http/head.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"

#define TOOL_CALLS_MAX 128 /* of one answer; more are ignored */

/* What an answer adds to the history that the record does not keep. */
struct said {
	char *messages; /* JSON objects with commas between; NULL: the text of the entry's row */
	char *token;    /* NULL: the server sent none */
};

struct history {
	struct history_opts o;
	struct said *said; /* one per entry */
};

struct history *history_new(const struct history_opts *o)
{
	struct history *h = mem_alloc(sizeof(*h));

	h->o = *o;
	h->said = mem_array(o->plan->n, sizeof(*h->said));
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->o.plan->n; i++) {
		free(h->said[i].messages);
		free(h->said[i].token);
	}
	free(h->said);
	free(h);
}

/* ---- the list of messages ---- */

static void add_comma(struct buf *out)
{
	if (out->len > 1) /* the list's bracket */
		buf_add_text(out, ", ");
}

/* Appends an entry's own part: its sample's messages, or its prompt as the user's message. */
static void add_own(const struct history *h, uint32_t entry, struct buf *out)
{
	const struct sample *s = &h->o.workload->v[h->o.plan->entry[entry].sample];
	struct str inner = str_trim(s->messages);

	if (inner.n == 0) {
		add_comma(out);
		buf_add_text(out, "{\"role\": \"user\", \"content\": ");
		json_quote(out, s->prompt, false);
		buf_add_char(out, '}');
		return;
	}
	assert(inner.n >= 2 && inner.p[0] == '[' && inner.p[inner.n - 1] == ']');
	inner = str_trim((struct str){ inner.p + 1, inner.n - 2 });
	if (inner.n == 0)
		return;
	add_comma(out);
	buf_add_str(out, inner);
}

static void add_answer(const struct history *h, uint32_t entry, struct buf *out)
{
	const struct request_row *row = &h->o.record->row[h->o.first_row + entry];

	add_comma(out);
	if (h->said[entry].messages) {
		buf_add_text(out, h->said[entry].messages);
		return;
	}
	buf_add_text(out, "{\"role\": \"assistant\", \"content\": \"");
	if (row->fail == FAIL_NONE)
		record_text_of(h->o.record, row, out);
	buf_add_text(out, "\"}");
}

void history_messages(const struct history *h, uint32_t entry, struct buf *out)
{
	const struct plan_entry *all = h->o.plan->entry;
	uint32_t n = 0, *path;

	assert(entry < h->o.plan->n);
	for (uint32_t i = all[entry].history; i != PLAN_NONE; i = all[i].history)
		n++;
	path = mem_array(n, sizeof(*path));
	for (uint32_t i = all[entry].history, k = n; i != PLAN_NONE; i = all[i].history)
		path[--k] = i;
	assert(out->len == 0);
	buf_add_char(out, '[');
	for (uint32_t k = 0; k < n; k++) {
		add_own(h, path[k], out);
		add_answer(h, path[k], out);
	}
	add_own(h, entry, out);
	buf_add_char(out, ']');
	free(path);
}

void history_set_answer(struct history *h, uint32_t entry, struct str escaped)
{
	struct buf message = { 0 };

	assert(entry < h->o.plan->n);
	buf_add_text(&message, "{\"role\": \"assistant\", \"content\": \"");
	buf_add_str(&message, escaped);
	buf_add_text(&message, "\"}");
	free(h->said[entry].messages);
	h->said[entry].messages = buf_take(&message);
}

/* ---- tool calls ---- */

/* A call put together from its deltas; texts as they are spelled between quotes. */
struct call { struct str id, name; struct buf arguments; };
struct calls { struct call v[TOOL_CALLS_MAX]; size_t n; };

static void take_text(struct json_slice object, const char *key, struct str *out)
{
	struct json_slice v;

	if (json_member(object, key, &v) && v.kind == JSON_STRING && v.raw.n)
		*out = v.raw;
}

/* Adds one delta: its index says which call it belongs to; without one it is a call by itself. */
static void add_delta(struct calls *c, struct json_slice delta)
{
	struct json_slice v, function;
	int64_t index = (int64_t)c->n;
	struct str arguments = { 0 };

	if (delta.kind != JSON_OBJECT)
		return;
	if (json_member(delta, "index", &v))
		json_to_i64(v, &index);
	if (index < 0 || index >= TOOL_CALLS_MAX)
		return;
	if ((size_t)index >= c->n)
		c->n = (size_t)index + 1;
	take_text(delta, "id", &c->v[index].id);
	if (!json_member(delta, "function", &function) || function.kind != JSON_OBJECT)
		return;
	take_text(function, "name", &c->v[index].name);
	take_text(function, "arguments", &arguments);
	buf_add_str(&c->v[index].arguments, arguments);
}

/* lines: a JSON list of deltas on each. */
static void read_calls(struct calls *c, struct str lines)
{
	while (lines.n) {
		struct json_scan scan = { str_cut(&lines, '\n'), 0 };
		struct json_slice list, delta;
		struct json_iter it;
		struct str key;

		if (json_next(&scan, &list, NULL) < 0 || list.kind != JSON_ARRAY)
			continue; /* cut by a limit; the decoder has checked it */
		it = json_iter(list);
		while (json_each(&it, &key, &delta) == 1)
			add_delta(c, delta);
	}
}

/* Whether arguments are an object, in escaped form. None at all mean no parameters. */
static bool is_well_formed(struct str escaped)
{
	struct buf text = { 0 };
	struct json_scan scan = { 0 };
	struct json_slice v;
	bool is_object;

	if (escaped.n == 0)
		return true;
	json_unescape(&text, escaped);
	scan.text = buf_str(&text);
	is_object = json_next(&scan, &v, NULL) == 0 && v.kind == JSON_OBJECT && json_at_end(&scan);
	buf_release(&text);
	return is_object;
}

static void write_call(const struct call *c, struct buf *out)
{
	buf_printf(out, "{\"id\": \"%.*s\", \"type\": \"function\", \"function\": {\"name\": "
		   "\"%.*s\", \"arguments\": \"", (int)c->id.n, c->id.p, (int)c->name.n, c->name.p);
	buf_add_str(out, buf_str(&c->arguments));
	buf_add_text(out, "\"}}");
}

static void write_result(const struct history *h, const struct call *c, struct buf *out)
{
	uint32_t words = h->o.tool_result_words ? h->o.tool_result_words : TOOL_RESULT_WORDS;

	buf_printf(out, ", {\"role\": \"tool\", \"tool_call_id\": \"%.*s\", \"content\": \"",
		   (int)c->id.n, c->id.p);
	for (uint32_t i = 0; i < words; i++)
		buf_add_text(out, i ? " ok" : "ok");
	buf_add_text(out, "\"}");
}

/* Writes the assistant's message as received, then a tool message for each call. */
static char *write_calls(const struct history *h, const struct request_row *row,
			 const struct calls *c)
{
	struct buf out = { 0 };

	buf_add_text(&out, "{\"role\": \"assistant\", \"content\": ");
	if (row->text_bytes) {
		buf_add_char(&out, '"');
		record_text_of(h->o.record, row, &out);
		buf_add_char(&out, '"');
	} else {
		buf_add_text(&out, "null");
	}
	buf_add_text(&out, ", \"tool_calls\": [");
	for (size_t i = 0; i < c->n; i++) {
		if (i)
			buf_add_text(&out, ", ");
		write_call(&c->v[i], &out);
	}
	buf_add_text(&out, "]}");
	for (size_t i = 0; i < c->n; i++)
		write_result(h, &c->v[i], &out);
	return buf_take(&out);
}

static int take_calls(struct history *h, uint32_t entry, const struct request_row *row,
		      struct str lines, struct err *e)
{
	struct calls *c = mem_alloc(sizeof(*c));
	int rc = 0;

	read_calls(c, lines);
	for (size_t i = 0; i < c->n && rc >= 0; i++) {
		struct call *call = &c->v[i];

		if (is_well_formed(buf_str(&call->arguments)))
			continue;
		rc = 1;
		if (h->o.is_bad_call_failure)
			rc = err_set(e, ERR_PARSE, "the arguments of the tool call %.*s are not a JSON "
				     "object (--bad-tool-calls replace continues with {})",
				     (int)(call->name.n < 80 ? call->name.n : 80),
				     call->name.p ? call->name.p : "");
		buf_reset(&call->arguments);
		buf_add_text(&call->arguments, "{}");
	}
	if (c->n && rc >= 0) {
		free(h->said[entry].messages);
		h->said[entry].messages = write_calls(h, row, c);
	}
	for (size_t i = 0; i < c->n; i++)
		buf_release(&c->v[i].arguments);
	free(c);
	return rc;
}

/* ---- for the driver ---- */

int history_ended(struct history *h, uint32_t entry, const struct request_row *row,
		  struct str head, struct str calls, struct err *e)
{
	struct str token = { 0 };

	assert(entry < h->o.plan->n);
	if (h->o.token_header)
		token = http_head_value(head, h->o.token_header);
	if (token.n && http_header_is_plain(str_of(h->o.token_header), token)) {
		free(h->said[entry].token);
		h->said[entry].token = mem_copy(token.p, token.n);
	}
	if (!calls.n || row->fail != FAIL_NONE)
		return 0;
	return take_calls(h, entry, row, calls, e);
}

struct str history_token(const struct history *h, uint32_t entry)
{
	const struct plan_entry *all = h->o.plan->entry;

	for (uint32_t i = plan_before(&all[entry]); i != PLAN_NONE; i = plan_before(&all[i]))
		if (h->said[i].token)
			return str_of(h->said[i].token);
	return (struct str){ 0 };
}
