/* SPDX-License-Identifier: Apache-2.0 */
/* structured_rows.c - see structured_rows.h. */
#include "data/structured_rows.h"

#include <stdlib.h>

#include "base/mem.h"
#include "data/hf.h"

/* ---- what is left out ---- */

/* "type" is that word, or a list that has it. */
static bool is_of_type(const struct json_value *object, const char *type)
{
	const struct json_value *t = json_get(object, "type");

	if (t && t->kind == JSON_STRING)
		return str_is(t->text, type);
	for (size_t i = 0; t && t->kind == JSON_ARRAY && i < t->count; i++)
		if (t->item[i].kind == JSON_STRING && str_is(t->item[i].text, type))
			return true;
	return false;
}

static bool has(const struct json_value *object, const char *key)
{
	return json_get(object, key) != NULL;
}

static bool is_bad_array(const struct json_value *o)
{
	return has(o, "uniqueItems") || has(o, "contains") || has(o, "minContains") ||
	       has(o, "maxContains");
}

static bool has_two_rules(const struct json_value *o)
{
	return (has(o, "pattern") || has(o, "format")) && (has(o, "minLength") || has(o, "maxLength"));
}

static bool is_bad_string(const struct json_value *o)
{
	static const char *const formats[] = {
		"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid",
		"uri", "uri-reference", "uri-template", "json-pointer", "relative-json-pointer",
	};
	const struct json_value *format = json_get(o, "format");
	bool is_known = !format;

	for (size_t i = 0; format && i < sizeof(formats) / sizeof(*formats); i++)
		is_known = is_known || str_is(json_text(format, STR("")), formats[i]);
	return !is_known || has_two_rules(o);
}

static bool is_object(const struct json_value *v)
{
	return v && v->kind == JSON_OBJECT;
}

static bool is_bad_object(const struct json_value *o)
{
	const struct json_value *names = json_get(o, "propertyNames");
	const struct json_value *patterns = json_get(o, "patternProperties");
	const struct json_value *unevaluated = json_get(o, "unevaluatedProperties");
	bool has_properties = has(o, "properties");

	if (names && (has_properties || patterns || is_object(json_get(o, "additionalProperties")) ||
		      (unevaluated && unevaluated->kind != JSON_TRUE)))
		return true;
	if (is_object(names) && has_two_rules(names))
		return true;
	return patterns && (has_properties || (is_object(patterns) && patterns->count > 1));
}

/* In depth: also of objects that are data, such as values of an enum, as upstream. */
bool structured_is_unsupported(const struct json_value *v)
{
	if (v->kind == JSON_OBJECT) {
		bool is_number = is_of_type(v, "number") || is_of_type(v, "integer");

		if ((is_number && has(v, "multipleOf")) ||
		    (is_of_type(v, "array") && is_bad_array(v)) ||
		    (is_of_type(v, "string") && is_bad_string(v)) ||
		    (is_of_type(v, "object") && is_bad_object(v)))
			return true;
	}
	for (size_t i = 0; (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && i < v->count; i++)
		if (structured_is_unsupported(&v->item[i]))
			return true;
	return false;
}

/* ---- rows ---- */

static const struct hf_class bench = {
	.name = "xgrammar_bench", .split = "train",
	.ids = (const char *const[]){ XGRAMMAR_BENCH_NAME, NULL },
	.columns = (const char *const[]){ "prompt", "schema", "completion", NULL },
};

static int read_messages(const struct hf_row *r, struct arena *a, struct structured_row *out,
			 struct err *e)
{
	struct json_slice list, message, content;
	struct buf text = { 0 };
	struct json_iter it;
	struct str key;
	int rc = hf_column(r, "prompt", &list, e);

	if (rc == 0 && list.kind != JSON_ARRAY)
		rc = hf_refuse(r, e, "\"prompt\" must be a list of messages");
	it = json_iter(list);
	while (rc == 0 && json_each(&it, &key, &message) == 1) {
		if (!json_member(message, "content", &content) || content.kind != JSON_STRING)
			rc = hf_refuse(r, e, "\"prompt\": a message has no text \"content\"");
		else
			json_unescape(&text, content.raw);
		buf_add_char(&text, '\n');
	}
	if (rc == 0 && !text.len)
		rc = hf_refuse(r, e, "\"prompt\" has no messages");
	if (rc == 0) {
		out->messages = arena_str(a, list.raw);
		out->contents = arena_str(a, buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

/* 1; 0: it is left out; -1. */
static int read_row(const struct hf_row *r, struct arena *a, struct structured_row *out,
		    struct err *e)
{
	struct arena scratch = { 0 };
	struct json_value *schema;
	struct err why = { 0 };
	bool is_left_out = false;
	int rc = hf_text(r, "schema", a, &out->schema, e);

	if (rc == 0 && json_parse(&scratch, out->schema, &schema, &why) < 0)
		rc = hf_refuse(r, e, "\"schema\" is not valid JSON: %s", why.text);
	else if (rc == 0)
		is_left_out = structured_is_unsupported(schema);
	arena_release(&scratch);
	if (rc < 0 || is_left_out)
		return rc < 0 ? -1 : 0;
	return read_messages(r, a, out, e) < 0 ||
	       hf_text(r, "completion", a, &out->completion, e) < 0 ? -1 : 1;
}

static int read_all(struct hf *h, struct structured_rows *out, struct err *e)
{
	struct structured_row row = { 0 };
	struct hf_row next;
	int rc;

	for (size_t i = 0; (rc = hf_next_row(h, i, &next, e)) > 0; i++) {
		rc = dataset_go_on(h->env, e) < 0 ? -1 : read_row(&next, &out->arena, &row, e);
		if (rc < 0)
			return -1;
		out->left_out += rc == 0;
		if (rc == 0)
			continue;
		if (out->n == out->cap) {
			out->cap = out->cap ? 2 * out->cap : 128;
			out->v = mem_grow(out->v, out->cap, sizeof(*out->v));
		}
		out->v[out->n++] = row;
	}
	return rc;
}

int structured_rows_read(const struct dataset_opts *o, const struct dataset_env *env,
			 struct workload *w, struct structured_rows *out, struct err *e)
{
	struct dataset_opts in_order = *o;
	struct hf h = { .class = &bench, .opts = &in_order, .env = env, .w = w };
	int rc;

	in_order.disable_shuffle = true;
	in_order.path = o->path ? o->path : XGRAMMAR_BENCH_NAME;
	h.where = (struct source_opts){
		.path = in_order.path, .cancel = env->cancel, .split = bench.split,
		.progress = env->download, .note = env->note, .self = env->self,
	};
	rc = hf_open_split(&h, e);
	if (rc == 0)
		rc = read_all(&h, out, e);
	if (rc == 0 && !out->n)
		rc = err_set(e, ERR_RUN, "%s: no row is left; %zu have schemas that vLLM's benchmark leaves "
			     "out", in_order.path, out->left_out);
	hf_close_rows(&h);
	buf_release(&h.text);
	return rc;
}

void structured_rows_release(struct structured_rows *r)
{
	free(r->v);
	arena_release(&r->arena);
	*r = (struct structured_rows){ 0 };
}
